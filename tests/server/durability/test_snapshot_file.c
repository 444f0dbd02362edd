/* Snapshots: blocks are read back unchanged, or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "server/durability/snapshot_file.h"
#include "tests/support/directory_test.h"
#include "tests/support/failing_disk.h"
#include "tests/support/random.h"

enum { BLOCKS_MAX = 8 };

static int directory_fd;

static int set_up(void **state) {
    (void)directory_set_up(state);
    directory_fd = open(directory, O_RDONLY | O_DIRECTORY);
    assert_true(directory_fd >= 0);
    return 0;
}

static int tear_down(void **state) {
    close(directory_fd);
    return directory_tear_down(state);
}

static const char *file_path(void) {
    return directory_join(directory, "base");
}

/* ---- files made for a test ---- */

/* The raw sizes of a file's blocks; odd ones have random bytes, which zstd cannot compress. */
struct plan {
    uint32_t sizes[BLOCKS_MAX];
    unsigned count;
};

static const struct plan plan_small = {.sizes = {200, 60, 1, 17, 300, 3}, .count = 6};
static const struct plan plan_empty = {.count = 0};
static const struct plan plan_large = {.sizes = {SNAPSHOT_BLOCK_SIZE, SNAPSHOT_BLOCK_SIZE - 1, 5,
                                                 SNAPSHOT_BLOCK_SIZE + 1, 3 * SNAPSHOT_BLOCK_SIZE,
                                                 5 * SNAPSHOT_BLOCK_SIZE + 7, SNAPSHOT_BLOCK_SIZE},
                                       .count = 7};

static char *make_raw(const struct plan *plan, unsigned i) {
    struct random random = {.state = i};
    char *raw = malloc(plan->sizes[i]);
    assert_non_null(raw);
    for (uint32_t at = 0; at < plan->sizes[i]; at++) {
        raw[at] = i % 2 == 0 ? (char)('a' + at / 16 % 8) : (char)random_next(&random);
    }
    return raw;
}

static const struct snapshot_footer footer_given = {
    .sequence = 81250, .time_us = UINT64_C(1795293205000000), .board_count = 3, .member_count = 99};

static bool open_writer(struct snapshot_writer *writer, int level) {
    return snapshot_file_writer_init(writer, level) &&
           snapshot_file_writer_open(writer, directory_fd, "base", 1234);
}

static bool write_blocks(struct snapshot_writer *writer, const struct plan *plan,
                         struct snapshot_footer *footer) {
    bool is_done = true;
    for (unsigned i = 0; is_done && i < plan->count; i++) {
        OWNED char *raw = make_raw(plan, i);
        is_done = snapshot_file_writer_block(writer, raw, plan->sizes[i]);
    }
    return is_done && snapshot_file_writer_finish(writer, footer);
}

/* false: errno says why. The file is left incomplete. */
static bool write_plan(const struct plan *plan, struct snapshot_footer *footer, int level) {
    struct snapshot_writer writer;
    *footer = footer_given;
    bool is_done = open_writer(&writer, level) && write_blocks(&writer, plan, footer);
    int error = errno;
    snapshot_file_writer_close(&writer);
    errno = error;
    return is_done;
}

static void make_file(const struct plan *plan) {
    struct snapshot_footer footer;
    assert_true(write_plan(plan, &footer, SNAPSHOT_LEVEL));
}

/* ---- reading ---- */

struct result {
    enum snapshot_status status;
    unsigned block_count;
    struct snapshot_footer footer;
    char error[DISK_ERROR_MAX];
};

/* Read the next block into memory that the caller frees; it is enlarged as required. */
static enum snapshot_status read_block(struct snapshot_reader *reader, char **raw, size_t *size) {
    size_t room = SNAPSHOT_BLOCK_SIZE;
    *raw = malloc(room);
    assert_non_null(*raw);
    enum snapshot_status status = snapshot_file_reader_next(reader, *raw, room, size);
    if (status == SNAPSHOT_LARGER) {
        assert_true(*size > room);
        free(*raw);
        *raw = malloc(*size);
        assert_non_null(*raw);
        status = snapshot_file_reader_next(reader, *raw, *size, size);
    }
    return status;
}

static enum snapshot_status open_reader(struct snapshot_reader *reader) {
    int fd = disk_open(AT_FDCWD, file_path(), O_RDONLY, 0);
    assert_true(fd >= 0);
    return snapshot_file_reader_open(reader, fd, "some.base");
}

/* Read everything; every block returned is correct. */
static struct result read_all(const struct plan *plan) {
    struct snapshot_reader reader;
    struct result result = {.status = open_reader(&reader)};
    while (result.status == SNAPSHOT_BLOCK) {
        char *raw;
        size_t size;
        result.status = read_block(&reader, &raw, &size);
        if (result.status == SNAPSHOT_BLOCK) {
            unsigned i = result.block_count++;
            assert_in_range(i, 0, plan->count - 1);
            OWNED char *expected = make_raw(plan, i);
            assert_int_equal(size, plan->sizes[i]);
            assert_memory_equal(raw, expected, size);
        }
        free(raw);
    }
    assert_int_not_equal(result.status, SNAPSHOT_LARGER);
    assert_true(result.status != SNAPSHOT_END || reader.created_ms == 1234);
    result.footer = reader.footer;
    memcpy(result.error, reader.error, sizeof result.error);
    snapshot_file_reader_close(&reader);
    return result;
}

static void assert_error_has(const struct result *result, const char *words) {
    if (strstr(result->error, words) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", words, result->error);
    }
}

static void assert_whole(const struct plan *plan) {
    struct result result = read_all(plan);
    uint64_t raw_size = 0;
    for (unsigned i = 0; i < plan->count; i++) {
        raw_size += plan->sizes[i];
    }
    assert_int_equal(result.status, SNAPSHOT_END);
    assert_int_equal(result.block_count, plan->count);
    assert_int_equal(result.footer.sequence, footer_given.sequence);
    assert_int_equal(result.footer.time_us, footer_given.time_us);
    assert_int_equal(result.footer.board_count, footer_given.board_count);
    assert_int_equal(result.footer.member_count, footer_given.member_count);
    assert_int_equal(result.footer.raw_size, raw_size);
}

/* ---- whole files ---- */

#define IN_FIXTURE(name) TEST_WITH(name, set_up, tear_down)

IN_FIXTURE(blocks_and_footer_come_back_as_they_were) {
    const struct plan *const plans[] = {&plan_small, &plan_empty, &plan_large};
    for (unsigned i = 0; i < 3; i++) {
        make_file(plans[i]);
        assert_whole(plans[i]);
        assert_int_equal(remove(file_path()), 0);
    }
}

IN_FIXTURE(blocks_become_smaller_where_they_can) {
    const struct plan even = {.sizes = {SNAPSHOT_BLOCK_SIZE}, .count = 1};
    struct snapshot_footer footer;
    assert_true(write_plan(&even, &footer, SNAPSHOT_LEVEL));
    assert_in_range(footer.offset, 1, SNAPSHOT_BLOCK_SIZE / 10);
    assert_int_equal(remove(file_path()), 0);
    /* The second block is incompressible: it costs its head and nothing else. */
    const struct plan odd = {.sizes = {1, SNAPSHOT_BLOCK_SIZE}, .count = 2};
    assert_true(write_plan(&odd, &footer, SNAPSHOT_LEVEL));
    assert_int_equal(footer.offset,
                     SNAPSHOT_FILE_HEAD + 2 * SNAPSHOT_BLOCK_HEAD + 1 + SNAPSHOT_BLOCK_SIZE);
}

IN_FIXTURE(every_level_of_compression_reads_the_same) {
    for (int level = 1; level <= 3; level++) {
        struct snapshot_footer footer;
        assert_true(write_plan(&plan_large, &footer, level));
        assert_whole(&plan_large);
        assert_int_equal(remove(file_path()), 0);
    }
}

IN_FIXTURE(a_block_is_given_only_where_there_is_room) {
    ENDED_BY(snapshot_file_reader_close) struct snapshot_reader reader;
    char raw[200];
    size_t size = 0;
    make_file(&plan_small);
    assert_int_equal(open_reader(&reader), SNAPSHOT_BLOCK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(snapshot_file_reader_next(&reader, raw, 199, &size), SNAPSHOT_LARGER);
        assert_int_equal(size, 200);
    }
    assert_int_equal(snapshot_file_reader_next(&reader, raw, 200, &size), SNAPSHOT_BLOCK);
    assert_int_equal(snapshot_file_reader_next(&reader, raw, 200, &size), SNAPSHOT_BLOCK);
    assert_int_equal(size, 60);
}

static void *write_in_a_thread(void *context) {
    struct snapshot_footer footer = footer_given;
    return write_blocks(context, &plan_large, &footer) ? context : NULL;
}

IN_FIXTURE(another_thread_can_write_and_takes_no_memory_of_ours) {
    struct snapshot_writer writer;
    pthread_t thread;
    void *is_done = NULL;
    assert_true(open_writer(&writer, SNAPSHOT_LEVEL));
    uint64_t requests_before = memory_requests();
    assert_int_equal(pthread_create(&thread, NULL, write_in_a_thread, &writer), 0);
    assert_int_equal(pthread_join(thread, &is_done), 0);
    assert_non_null(is_done);
    assert_int_equal(memory_requests(), requests_before);
    snapshot_file_writer_close(&writer);
    assert_whole(&plan_large);
}

/* ---- damage ---- */

IN_FIXTURE(any_bit_flipped_is_found) {
    const struct plan *const plans[] = {&plan_small, &plan_empty};
    for (unsigned i = 0; i < 2; i++) {
        make_file(plans[i]);
        size_t size;
        char *bytes = file_read(file_path(), &size);
        for (size_t at = 0; at < size * 8; at++) {
            bytes[at / 8] = (char)(bytes[at / 8] ^ (1 << at % 8));
            file_write(file_path(), bytes, size);
            struct result result = read_all(plans[i]);
            assert_int_equal(result.status, SNAPSHOT_DAMAGED);
            assert_error_has(&result, "some.base is damaged at offset ");
            bytes[at / 8] = (char)(bytes[at / 8] ^ (1 << at % 8));
        }
        free(bytes);
        assert_int_equal(remove(file_path()), 0);
    }
}

IN_FIXTURE(any_byte_cut_or_added_is_found) {
    make_file(&plan_small);
    size_t size;
    OWNED char *bytes = file_read(file_path(), &size);
    for (size_t cut = 0; cut < size; cut++) {
        file_write(file_path(), bytes, cut);
        struct result result = read_all(&plan_small);
        assert_int_equal(result.status, SNAPSHOT_DAMAGED);
        assert_error_has(&result, "the file ends ");
    }
    file_write(file_path(), bytes, size + 1);
    struct result result = read_all(&plan_small);
    assert_int_equal(result.status, SNAPSHOT_DAMAGED);
    assert_error_has(&result, "continues after its end mark");
}

/* Where each block begins; the last is the end mark, then the end of the file. */
static unsigned find_blocks(const char *bytes, size_t size, size_t starts[BLOCKS_MAX + 2]) {
    unsigned count = 0;
    for (size_t at = SNAPSHOT_FILE_HEAD; at < size; count++) {
        uint32_t stored_size;
        memcpy(&stored_size, bytes + at + 12, sizeof stored_size);
        starts[count] = at;
        at += SNAPSHOT_BLOCK_HEAD + stored_size;
    }
    starts[count] = size;
    return count;
}

IN_FIXTURE(a_block_left_out_or_moved_is_found) {
    make_file(&plan_small);
    size_t size;
    size_t starts[BLOCKS_MAX + 2];
    OWNED char *bytes = file_read(file_path(), &size);
    OWNED char *changed = malloc(size);
    unsigned count = find_blocks(bytes, size, starts);
    assert_int_equal(count, plan_small.count + 1);
    for (unsigned gone = 0; gone < count - 1; gone++) {
        size_t gone_size = starts[gone + 1] - starts[gone];
        memcpy(changed, bytes, starts[gone]);
        memcpy(changed + starts[gone], bytes + starts[gone + 1], size - starts[gone + 1]);
        file_write(file_path(), changed, size - gone_size);
        assert_int_equal(read_all(&plan_small).status, SNAPSHOT_DAMAGED);
        /* Put it back after the next one. */
        size_t next_size = starts[gone + 2] - starts[gone + 1];
        memcpy(changed, bytes, size);
        memcpy(changed + starts[gone], bytes + starts[gone + 1], next_size);
        memcpy(changed + starts[gone] + next_size, bytes + starts[gone], gone_size);
        file_write(file_path(), changed, size);
        assert_int_equal(read_all(&plan_small).status, SNAPSHOT_DAMAGED);
    }
}

IN_FIXTURE(a_flip_in_a_huge_block_is_found_before_memory_is_asked_for) {
    make_file(&plan_large);
    size_t size;
    size_t starts[BLOCKS_MAX + 2];
    OWNED char *bytes = file_read(file_path(), &size);
    find_blocks(bytes, size, starts);
    for (unsigned i = 3; i < 6; i++) {
        char *at = bytes + starts[i + 1] - 1;
        *at = (char)(*at ^ 4);
        file_write(file_path(), bytes, size);
        struct snapshot_reader reader;
        char *raw = malloc(SNAPSHOT_BLOCK_SIZE);
        size_t raw_size = 0;
        unsigned given = 0;
        enum snapshot_status status = open_reader(&reader);
        while (given < i && status == SNAPSHOT_BLOCK) {
            free(raw);
            status = read_block(&reader, &raw, &raw_size);
            given++;
        }
        status = snapshot_file_reader_next(&reader, raw, 0, &raw_size);
        assert_int_equal(status, SNAPSHOT_DAMAGED);
        snapshot_file_reader_close(&reader);
        free(raw);
        *at = (char)(*at ^ 4);
    }
}

/* ---- the nth call fails ---- */

IN_FIXTURE(whichever_call_fails_a_snapshot_is_whole_or_is_no_snapshot) {
    for (int i = FAILURE_EIO; i <= FAILURE_CRASH; i++) {
        bool is_harmless = i == FAILURE_EINTR || i == FAILURE_SHORT;
        bool is_reached = true;
        for (uint64_t nth = 1; is_reached; nth++) {
            struct snapshot_footer footer;
            failing_disk_begin((enum failure)i, nth);
            bool is_done = write_plan(&plan_small, &footer, SNAPSHOT_LEVEL);
            int error = errno;
            is_reached = failing_disk_end() >= nth;
            assert_int_equal(is_done, is_harmless || !is_reached);
            if (is_done) {
                assert_whole(&plan_small);
            } else {
                assert_int_equal(error, i == FAILURE_ENOSPC ? ENOSPC : EIO);
            }
            assert_int_equal(memory_live_count(), directory_live_before);
            remove(file_path());
        }
    }
}

IN_FIXTURE(a_file_that_cannot_be_begun_is_removed) {
    struct snapshot_footer footer;
    failing_disk_begin(FAILURE_ENOSPC, 2);
    assert_false(write_plan(&plan_small, &footer, SNAPSHOT_LEVEL));
    failing_disk_end();
    assert_false(file_exists(file_path()));
}

static unsigned write_backs;
static unsigned write_back_waits;
static uint64_t write_back_end;
static int write_back_error;

static int count_write_back(int fd, uint64_t offset, uint64_t size, bool is_waiting) {
    (void)fd;
    write_backs += !is_waiting;
    write_back_waits += is_waiting;
    assert_true(is_waiting || offset == write_back_end);
    write_back_end = is_waiting ? write_back_end : offset + size;
    errno = write_back_error;
    return is_waiting && write_back_error != 0 ? -1 : 0;
}

static int sync_nothing(int fd) {
    (void)fd;
    return 0;
}

/* 100 MiB that cannot be compressed. */
static bool write_much(void) {
    struct random random = {.state = 1};
    struct disk counting = disk_system;
    struct snapshot_writer writer;
    struct snapshot_footer footer = footer_given;
    char *raw = malloc(SNAPSHOT_BLOCK_SIZE);
    for (size_t at = 0; at < SNAPSHOT_BLOCK_SIZE; at++) {
        raw[at] = (char)random_next(&random);
    }
    write_backs = write_back_waits = 0;
    write_back_end = 0;
    counting.write_back = count_write_back;
    counting.sync = sync_nothing;
    disk = &counting;
    bool is_done = open_writer(&writer, SNAPSHOT_LEVEL);
    for (int i = 0; is_done && i < 100; i++) {
        is_done = snapshot_file_writer_block(&writer, raw, SNAPSHOT_BLOCK_SIZE);
    }
    is_done = is_done && snapshot_file_writer_finish(&writer, &footer);
    disk = &disk_system;
    snapshot_file_writer_close(&writer);
    free(raw);
    return is_done;
}

IN_FIXTURE(the_disk_is_kept_writing_behind_the_writer) {
    write_back_error = 0;
    assert_true(write_much());
    assert_int_equal(write_backs, 3);
    assert_int_equal(write_back_waits, 2);
}

IN_FIXTURE(an_error_while_the_disk_writes_ends_the_snapshot) {
    write_back_error = EIO;
    assert_false(write_much());
    assert_int_equal(write_back_waits, 1);
}

IN_FIXTURE(a_read_that_fails_is_no_damage) {
    const struct plan plan = {.sizes = {SNAPSHOT_BLOCK_SIZE, 5, SNAPSHOT_BLOCK_SIZE + 1, 60},
                              .count = 4};
    make_file(&plan);
    for (int i = FAILURE_EIO; i <= FAILURE_SHORT; i++) {
        bool is_reached = true;
        for (uint64_t nth = 2; is_reached; nth += 1 + nth / 8) {
            failing_disk_begin((enum failure)i, nth);
            struct result result = read_all(&plan);
            is_reached = failing_disk_end() >= nth;
            bool is_harmless = i == FAILURE_EINTR || i == FAILURE_SHORT || !is_reached;
            assert_int_equal(result.status, is_harmless ? SNAPSHOT_END : SNAPSHOT_FAILED);
            if (!is_harmless) {
                assert_error_has(&result, "cannot read some.base at offset ");
            }
        }
    }
}

IN_FIXTURE(without_memory_nothing_is_begun_and_nothing_leaks) {
    struct snapshot_footer footer;
    memory_fail_at(1);
    assert_false(write_plan(&plan_small, &footer, SNAPSHOT_LEVEL));
    assert_false(file_exists(file_path()));
    make_file(&plan_small);
    memory_fail_at(1);
    struct result result = read_all(&plan_small);
    assert_int_equal(result.status, SNAPSHOT_FAILED);
    assert_error_has(&result, "out of memory: reading some.base takes ");
}
