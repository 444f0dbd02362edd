/* Dump files loaded in pieces, and every way in which that may fail. */
#ifndef TESTS_SERVER_RDB_LOADING_H
#define TESTS_SERVER_RDB_LOADING_H

#include "server/rdb/rdb.h"
#include "tests/server/rdb/rdb_maker.h"
#include "tests/support/harness.h"

/* A test with a server `h`, a client of it `s`, an empty file and its loading. */
#define RDB_TEST(name, settings)                                                                   \
    static void name##_of(struct harness *h, struct session *s, struct buffer *file,               \
                          struct rdb_load *load);                                                  \
    HARNESS_TEST(name, settings) {                                                                 \
        struct buffer file;                                                                        \
        struct rdb_load load;                                                                      \
        buffer_init(&file, 0);                                                                     \
        rdb_load_init(&load, h->server.registry, 7, HARNESS_START_US);                             \
        name##_of(h, s, &file, &load);                                                             \
        rdb_load_deinit(&load);                                                                    \
        buffer_deinit(&file);                                                                      \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) struct harness *h,                               \
                          __attribute__((unused)) struct session *s,                               \
                          __attribute__((unused)) struct buffer *file,                             \
                          __attribute__((unused)) struct rdb_load *load)

/* In pieces of this size, in place of what was loaded before. */
static inline enum rdb_load_status load_pieces(struct rdb_load *load, struct registry *registry,
                                               const struct buffer *file, size_t piece) {
    enum rdb_load_status status = RDB_LOAD_MORE;
    rdb_load_deinit(load);
    rdb_load_init(load, registry, 7, HARNESS_START_US);
    for (size_t at = 0; at < file->size && status == RDB_LOAD_MORE; at += piece) {
        size_t left = file->size - at;
        status = rdb_load_feed(
            load, (struct bytes){.at = file->at + at, .size = left < piece ? left : piece});
    }
    return status;
}

/* What was loaded into a registry of its own, whose boards the server's settings make. */
struct trial {
    enum rdb_load_status status;
    size_t left; /* bytes behind the file's end */
    char error[RDB_LOAD_ERROR_MAX];
};

/* It holds together and leaves no memory, however far it came. nth: the allocation that fails, or 0. */
static inline struct trial load_apart(struct harness *h, const struct buffer *file, size_t piece,
                                      uint64_t nth) {
    struct trial trial;
    struct rdb_load load;
    uint64_t live = memory_live_count();
    struct registry *registry = registry_create(1, setting_board_options_for, &h->server.settings);
    rdb_load_init(&load, registry, 7, HARNESS_START_US);
    memory_fail_at(nth);
    trial.status = load_pieces(&load, registry, file, piece);
    memory_fail_at(0);
    trial.left = rdb_reader_left(&load.reader);
    snprintf(trial.error, sizeof trial.error, "%s", load.error);
    rdb_load_deinit(&load);
    ASSERT_VALID(registry_validate, registry);
    registry_destroy(registry);
    assert_int_equal(memory_live_count(), live);
    return trial;
}

/* Ends the file. */
static inline void expect_refused(struct harness *h, struct buffer *file, const char *told) {
    make_end(file);
    struct trial trial = load_apart(h, file, file->size, 0);
    assert_int_equal(trial.status, RDB_LOAD_FAILED);
    if (strstr(trial.error, told) == NULL) {
        assert_string_equal(trial.error, told);
    }
}

static inline void expect_any_allocation_may_fail(struct harness *h, const struct buffer *file,
                                                  size_t piece, uint64_t failures_min) {
    uint64_t nth = 1;
    struct trial trial;
    while ((trial = load_apart(h, file, piece, nth)).status != RDB_LOAD_DONE) {
        assert_string_equal(trial.error, "out of memory");
        nth++;
    }
    assert_true(nth > failures_min);
}

/* Flip every bit from an offset on: what is loaded then holds together. Returns how often the file was
 * not whole. may_be_done: of a trial with a file that was loaded; NULL: any. */
static inline uint64_t flip_each_bit(struct harness *h, struct buffer *file, size_t from,
                                     bool (*may_be_done)(const struct trial *trial)) {
    uint64_t refused_count = 0;
    for (size_t bit = from * 8; bit < file->size * 8; bit++) {
        file->at[bit / 8] = (char)(file->at[bit / 8] ^ (1 << bit % 8));
        struct trial trial = load_apart(h, file, file->size, 0);
        assert_true((trial.status == RDB_LOAD_FAILED) == (trial.error[0] != '\0'));
        assert_true(trial.status != RDB_LOAD_DONE || may_be_done == NULL || may_be_done(&trial));
        refused_count += trial.status != RDB_LOAD_DONE;
        file->at[bit / 8] = (char)(file->at[bit / 8] ^ (1 << bit % 8));
    }
    return refused_count;
}

static inline void begin_file(struct buffer *file) {
    buffer_clear(file);
    MAKE_RAW(file, "REDIS0010\xfe\x00");
}

#endif
