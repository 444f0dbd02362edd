/* What is kept beside the keys (server/rdb/rdb_board.h): compared, and made part by part. */
#ifndef TESTS_SERVER_RDB_STATE_MAKER_H
#define TESTS_SERVER_RDB_STATE_MAKER_H

#include "tests/server/rdb/board_maker.h"

#include "server/rdb/rdb.h"
#include "server/rdb/rdb_board.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry.h"

struct state_comparison {
    const struct registry *a, *b;
};

static inline void compare_state_key(void *context, const struct registry_key *key) {
    const struct state_comparison *comparison = context;
    const struct registry_key *other =
        registry_peek(comparison->b, key->database, registry_name(key), INT64_MIN);
    assert_non_null(other);
    assert_int_equal(registry_expiry(comparison->a, key), registry_expiry(comparison->b, other));
    assert_int_equal(hash_count(registry_hash(key)), hash_count(registry_hash(other)));
    struct hash_cursor cursor = hash_begin(registry_hash(key));
    for (struct hash_pair pair; hash_next(&cursor, &pair);) {
        struct bytes value;
        assert_true(hash_find(registry_hash(other), pair.field, &value));
        assert_true(bytes_equal(value, pair.value));
    }
}

/* The same bans and orders, to the last byte. */
static inline void expect_same_state(const struct registry *a, const struct registry *b) {
    struct state_comparison comparison = {.a = a, .b = b};
    for (uint32_t database = REGISTRY_SYSTEM; registry_is_of_hosts(database); database++) {
        assert_int_equal(registry_count(a, database), registry_count(b, database));
        registry_walk_each(a, database, INT64_MIN, compare_state_key, &comparison);
    }
}

/* An order that is not finished. */
static inline void put_order(struct registry *registry, const char *name, const char *member) {
    const struct bytes args[] = {BYTES("db"),        BYTES("0"), BYTES("0"),
                                 BYTES("LB.FORGET"), BYTES("1"), bytes_from_text(member)};
    uint32_t added_count;
    bool is_new;
    struct registry_key *key = registry_hash_find_or_create(
        registry, REGISTRY_JOBS, bytes_from_text(name), INT64_MIN, &is_new);
    assert_true(key != NULL && is_new);
    assert_int_equal(registry_hash_put(registry, &key, args, 3, &added_count), HASH_OK);
    registry_tell_members(registry, key);
}

static inline bool put_piece(void *context, const char *at, size_t size) {
    buffer_append(context, at, size);
    return true;
}

/* All keys of a registry as a dump file. */
static inline void write_file(struct buffer *file, struct registry *registry, int64_t time_us) {
    buffer_clear(file);
    assert_true(rdb_write(registry, time_us, put_piece, file));
}

/* A dump file up to the first blob; a blob; what is behind the last one. */
static inline void begin_state(struct buffer *file, uint64_t type_id) {
    buffer_clear(file);
    MAKE_RAW(file, "REDIS0010\xf7");
    make_length(file, type_id);
    make_number(file, 1);
}
static inline void make_blob(struct buffer *file, const struct effect *effects, size_t count) {
    struct effect_encoder encoder;
    ENDED_BY(buffer_deinit) struct buffer blob;
    buffer_init(&blob, 0);
    effect_bytes_begin_blob(&encoder, &blob, 1);
    for (size_t i = 0; i < count; i++) {
        effect_bytes_encode(&encoder, &effects[i]);
    }
    make_chunk(file, &blob);
}
static inline void end_state(struct buffer *file) {
    make_length(file, 5);
    make_length(file, 0);
    make_byte(file, 0);
}

#endif
