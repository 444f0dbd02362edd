/* The spool: what is put comes out, once or, while it is kept, again; bounded. */
#include "tests/support/test.h"

#include "server/migration/redis_spool.h"
#include "tests/support/directory.h"

static bool is_never_ended(void *context) {
    (void)context;
    return false;
}

/* The loop's half of redis_spool_begin, on a thread of its own: here the loop waits for nothing. */
static void look(void *context) {
    struct redis_spool *spool = context;
    while (!redis_spool_look(spool)) {
        uv_sleep(1);
    }
}

static void begin(struct redis_spool *spool) {
    uv_thread_t thread;
    assert_int_equal(uv_thread_create(&thread, look, spool), 0);
    assert_true(redis_spool_begin(spool, is_never_ended, NULL));
    uv_thread_join(&thread);
}

static char byte_at(uint64_t position) {
    return (char)(position * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static enum redis_spool_status put(struct redis_spool *spool, uint64_t *position, size_t size) {
    char error[DISK_ERROR_MAX];
    char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(*position + i);
    }
    enum redis_spool_status status =
        redis_spool_put(spool, (struct bytes){.at = bytes, .size = size}, error);
    *position += status == REDIS_SPOOL_OK ? size : 0;
    free(bytes);
    return status;
}

static size_t take(struct redis_spool *spool, uint64_t *position, size_t size) {
    char error[DISK_ERROR_MAX];
    bool is_more;
    assert_true(redis_spool_pump(spool, &is_more, error));
    struct bytes piece = redis_spool_peek(spool);
    size = size < piece.size ? size : piece.size;
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(piece.at[i], byte_at(*position + i));
    }
    redis_spool_take(spool, size);
    *position += size;
    return size;
}

TEST(what_is_put_comes_out_in_order_through_memory_and_disk) {
    struct redis_spool spool;
    char error[DISK_ERROR_MAX];
    char directory[DIRECTORY_PATH_MAX];
    directory_make(directory);
    assert_true(redis_spool_open(&spool, directory, 0, error));
    for (int copy = 0; copy < 3; copy++) {
        uint64_t in = 0;
        uint64_t out = 0;
        uint64_t random = (uint64_t)copy + 99;
        begin(&spool);
        for (int step = 0; step < 300; step++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            size_t size = (size_t)(random >> 40) % 300000 + 1;
            if (step == 20) {
                out = 0;
                redis_spool_rewind(&spool);
            } else if (step == 40) {
                redis_spool_release(&spool);
            }
            if (step % 2 == 0 || step < 30) {
                assert_int_equal(put(&spool, &in, size), REDIS_SPOOL_OK);
            }
            (void)take(&spool, &out, step < 100 ? size / 2 : size * 2);
            assert_int_equal(redis_spool_waiting(&spool), in - out);
        }
        while (out < in) {
            assert_true(take(&spool, &out, SIZE_MAX) > 0);
        }
    }
    redis_spool_close(&spool);
    assert_int_equal(directory_count(directory), 0);
    directory_remove(directory);
}

TEST(a_full_spool_takes_no_more_until_something_is_taken) {
    enum { LIMIT = 3 << 20 };
    struct redis_spool spool;
    char error[DISK_ERROR_MAX];
    char directory[DIRECTORY_PATH_MAX];
    directory_make(directory);
    uint64_t in = 0;
    uint64_t out = 0;
    assert_true(redis_spool_open(&spool, directory, LIMIT, error));
    begin(&spool);
    redis_spool_release(&spool);
    while (put(&spool, &in, 100000) == REDIS_SPOOL_OK) {
        assert_true(in <= LIMIT);
    }
    assert_true(in > LIMIT - 100000);
    assert_int_equal(put(&spool, &in, 100000), REDIS_SPOOL_FULL);
    assert_int_equal(redis_spool_waiting(&spool), in);
    while (out < 200000) {
        (void)take(&spool, &out, 200000);
    }
    assert_int_equal(put(&spool, &in, 100000), REDIS_SPOOL_OK);
    while (out < in) {
        assert_true(take(&spool, &out, SIZE_MAX) > 0);
    }
    redis_spool_close(&spool);
    directory_remove(directory);
}

TEST(a_directory_that_is_not_there_is_an_error) {
    struct redis_spool spool;
    char error[DISK_ERROR_MAX];
    assert_false(redis_spool_open(&spool, "/nowhere/at/all", 0, error));
    assert_non_null(strstr(error, "/nowhere/at/all"));
}
