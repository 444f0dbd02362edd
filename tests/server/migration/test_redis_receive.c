/* The spool: what is put comes out, and is bounded. And what a Redis sends on its way into
 * it, however it is cut. */
#include "tests/support/test.h"

#include "server/migration/redis_receive.h"
#include "tests/support/directory.h"

struct place {
    uv_loop_t loop;
    char directory[DIRECTORY_PATH_MAX];
    struct redis_spool *spool;
    uint64_t in, out;
};

static void ignore(void *context) {
    (void)context;
}

static void begin(struct place *place, uint64_t size_max) {
    char error[DISK_ERROR_MAX];
    assert_int_equal(uv_loop_init(&place->loop), 0);
    directory_make(place->directory);
    place->spool =
        redis_receive_spool_open(&place->loop, place->directory, size_max, ignore, NULL, error);
    assert_non_null(place->spool);
    place->in = place->out = 0;
}

static void end(struct place *place) {
    redis_receive_spool_close(place->spool);
    while (!place->spool->worker.is_closed) {
        (void)uv_run(&place->loop, UV_RUN_NOWAIT);
    }
    redis_receive_spool_free(place->spool);
    assert_int_equal(uv_loop_close(&place->loop), 0);
    assert_int_equal(directory_count(place->directory), 0);
    directory_remove(place->directory);
}

static char byte_at(uint64_t position) {
    return (char)(position * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static void put(struct place *place, size_t size) {
    OWNED char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(place->in + i);
    }
    assert_true(redis_receive_spool_put(place->spool, (struct bytes){.at = bytes, .size = size}));
    place->in += size;
}

static size_t take(struct place *place, size_t size) {
    worker_wait(&place->spool->worker);
    struct bytes piece = redis_receive_spool_peek(place->spool);
    size = size < piece.size ? size : piece.size;
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(piece.at[i], byte_at(place->out + i));
    }
    redis_receive_spool_take(place->spool, size);
    place->out += size;
    return size;
}

static void take_all(struct place *place) {
    while (place->out < place->in) {
        assert_true(take(place, SIZE_MAX) > 0);
    }
}

TEST(what_is_put_comes_out_in_order_through_memory_and_disk) {
    ENDED_BY(end) struct place place;
    begin(&place, 0);
    for (int copy = 0; copy < 4; copy++) {
        uint64_t random = (uint64_t)copy + 99;
        redis_receive_spool_begin(place.spool); /* the second time, with much that nobody reads */
        place.in = place.out = 0;
        for (int step = 0; step < 300; step++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            size_t size = (size_t)(random >> 40) % 300000 + 1;
            if (step % 2 == 0 || step < 30) {
                put(&place, size);
            }
            (void)take(&place, step < 100 ? size / 2 : size * 2);
            assert_int_equal(redis_receive_spool_waiting(place.spool), place.in - place.out);
        }
        if (copy != 1) {
            take_all(&place);
        }
    }
}

TEST(a_full_spool_wants_no_more_until_something_is_taken) {
    enum { LIMIT = 3 << 20 };
    ENDED_BY(end) struct place place;
    begin(&place, LIMIT);
    redis_receive_spool_begin(place.spool);
    while (!redis_receive_spool_is_full(place.spool)) {
        put(&place, 100000);
        worker_wait(&place.spool->worker);
    }
    assert_in_range(place.in, LIMIT, LIMIT + 100000);
    assert_true(redis_receive_spool_is_over_limit(place.spool));
    while (place.out < 200000) {
        (void)take(&place, 200000);
    }
    assert_false(redis_receive_spool_is_full(place.spool));
    take_all(&place);
}

TEST(what_the_disk_has_not_taken_is_bounded) {
    ENDED_BY(end) struct place place;
    begin(&place, 0);
    redis_receive_spool_begin(place.spool);
    while (!redis_receive_spool_is_full(place.spool)) { /* nobody has waited for the thread */
        put(&place, 100000);
    }
    assert_false(redis_receive_spool_is_over_limit(place.spool));
    worker_wait(&place.spool->worker);
    assert_false(redis_receive_spool_is_full(place.spool));
    take_all(&place);
}

static ssize_t fail_read(int fd, void *bytes, size_t size, off_t offset) {
    (void)fd, (void)bytes, (void)size, (void)offset;
    errno = EIO;
    return -1;
}

TEST(what_cannot_be_read_is_read_again) {
    ENDED_BY(end) struct place place;
    char error[DISK_ERROR_MAX];
    struct disk failing = disk_system;
    failing.read_at = fail_read;
    begin(&place, 0);
    redis_receive_spool_begin(place.spool);
    disk = &failing;
    put(&place, 1000000);
    put(&place, 1000000);
    worker_wait(&place.spool->worker);
    assert_false(redis_receive_spool_check(place.spool, error));
    assert_string_equal(error, "cannot read the spool: Input/output error");
    disk = &disk_system;
    while (!redis_receive_spool_check(place.spool, error)) {
        uv_sleep(100);
    }
    take_all(&place);
}

/* The loop has not heard of it. */
static void let_job_end(struct worker *worker) {
    bool is_done = false;
    while (!is_done) {
        uv_mutex_lock(&worker->mutex);
        is_done = worker->state == WORKER_DONE;
        uv_mutex_unlock(&worker->mutex);
    }
}

TEST(a_job_that_has_failed_is_not_done_again_before_the_loop_knows) {
    enum { SIZE = 1000000 };
    ENDED_BY(end) struct place place;
    char error[DISK_ERROR_MAX];
    struct disk failing = disk_system;
    failing.read_at = fail_read;
    begin(&place, 0);
    uv_ref((uv_handle_t *)&place.spool->worker.async); /* a loop without handles does not turn */
    redis_receive_spool_begin(place.spool);
    disk = &failing;
    put(&place, SIZE);
    put(&place, SIZE);
    let_job_end(&place.spool->worker);
    put(&place, SIZE);
    redis_receive_spool_take(place.spool, SIZE);
    place.out = SIZE;
    (void)uv_run(&place.loop, UV_RUN_NOWAIT);
    assert_true(place.spool->worker.is_busy);
    let_job_end(&place.spool->worker); /* it has written the third, and could not read the second */
    assert_true(redis_receive_spool_check(place.spool, error));
    (void)uv_run(&place.loop, UV_RUN_NOWAIT);
    assert_false(redis_receive_spool_check(place.spool, error));
    disk = &disk_system;
    while (!redis_receive_spool_check(place.spool, error)) {
        uv_sleep(100);
    }
    take_all(&place);
    uv_unref((uv_handle_t *)&place.spool->worker.async);
}

TEST(a_directory_that_is_not_there_is_an_error) {
    char error[DISK_ERROR_MAX];
    assert_null(
        redis_receive_spool_open(uv_default_loop(), "/nowhere/at/all", 0, ignore, NULL, error));
    assert_non_null(strstr(error, "/nowhere/at/all"));
}

/* ---- receiving ---- */

#define ID   "0123456789012345678901234567890123456789"
#define MARK "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm!"

/* In pieces of this size, as a socket gives them. */
static void receive(struct redis_receive *receive, const char *text, size_t piece) {
    char held[1024];
    size_t held_size = 0, used;
    const char *error;
    for (size_t at = 0; at < strlen(text);) {
        size_t left = strlen(text) - at;
        size_t size = left < piece ? left : piece;
        memcpy(held + held_size, text + at, size);
        held_size += size;
        at += size;
        assert_true(redis_receive_take(receive, (struct bytes){.at = held, .size = held_size},
                                       &used, &error));
        memmove(held, held + used, held_size - used);
        held_size -= used;
    }
    assert_int_equal(held_size, 0);
}

static void expect_spooled(struct place *place, const char *wanted) {
    worker_wait(&place->spool->worker);
    struct bytes piece = redis_receive_spool_peek(place->spool);
    assert_int_equal(piece.size, strlen(wanted));
    assert_memory_equal(piece.at, wanted, piece.size);
}

TEST(a_copy_and_what_follows_it_may_be_cut_anywhere) {
    static const char *const copies[] = {
        "\n\n$EOF:" MARK "\r\ncopy mmmmm!" MARK "PING\r\n",
        "\n$11\r\ncopy mmmmm!PING\r\n",
    };
    ENDED_BY(end) struct place place;
    char offset[REDIS_RECEIVE_OFFSET_SIZE];
    begin(&place, 0);
    for (size_t i = 0; i < 2; i++) {
        for (size_t piece = 1; piece <= strlen(copies[i]); piece++) {
            struct redis_receive r;
            redis_receive_init(&r, place.spool, "", 0);
            assert_string_equal(redis_receive_print_wish(&r, offset), "?");
            assert_string_equal(offset, "-1");
            assert_true(redis_receive_take_answer(&r, BYTES("+FULLRESYNC " ID " 700")));
            assert_true(r.is_restarted);
            receive(&r, copies[i], piece);
            assert_int_equal(r.begin_offset, 700);
            expect_spooled(&place, "copy mmmmm!PING\r\n");
            assert_string_equal(redis_receive_print_wish(&r, offset), ID);
            assert_string_equal(offset, "707");
            assert_true(redis_receive_take_answer(&r, BYTES("+CONTINUE")));
        }
    }
}

TEST(what_is_no_answer_and_no_copy_is_refused) {
    static const char *const answers[] = {"+CONTINUE", "+FULLRESYNC " ID, "+FULLRESYNC " ID " x",
                                          "-ERR no", "+FULLRESYNC 12 12"};
    static const char *const heads[] = {"$x\r\n", "$EOF:short\r\n", "copy\r\n"};
    ENDED_BY(end) struct place place;
    struct redis_receive r;
    const char *error;
    size_t used;
    begin(&place, 0);
    redis_receive_init(&r, place.spool, "", 0);
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        assert_false(redis_receive_take_answer(&r, bytes_from_text(answers[i])));
    }
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        assert_true(redis_receive_take_answer(&r, BYTES("+FULLRESYNC " ID " 1")));
        assert_false(redis_receive_take(&r, bytes_from_text(heads[i]), &used, &error));
        assert_string_equal(error, "what the source sends is no copy");
    }
}
