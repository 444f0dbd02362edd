/* Taking and freeing chunks, also while the keeper runs. */
#include "tests/support/test.h"

#include <unistd.h>

#include "codec/pool.h"
#include "tests/support/chunks_held.h"
#include "tests/support/random.h"

enum { RANGE_CHUNKS = 40, ROUNDS = 3000 };

TEST(every_chunk_of_the_range_can_be_taken_once) {
    ENDED_BY(pool_chunks_deinit) struct chunks chunks;
    char *taken[RANGE_CHUNKS];
    assert_true(pool_chunks_init(&chunks, (size_t)RANGE_CHUNKS * CHUNK_SIZE, false));
    for (size_t i = 0; i < RANGE_CHUNKS; i++) {
        taken[i] = pool_chunks_take(&chunks);
        assert_non_null(taken[i]);
        assert_int_equal((uintptr_t)taken[i] % CHUNK_SIZE, 0);
        for (size_t j = 0; j < i; j++) {
            assert_ptr_not_equal(taken[i], taken[j]);
        }
    }
    assert_null(pool_chunks_take(&chunks));
    pool_chunks_give(&chunks, taken[7] + 12345);
    assert_ptr_equal(pool_chunks_take(&chunks), taken[7]);
}

TEST(what_is_given_back_beyond_the_spare_ones_is_the_systems) {
    ENDED_BY(pool_chunks_deinit) struct chunks chunks;
    char *taken[RANGE_CHUNKS];
    assert_true(pool_chunks_init(&chunks, (size_t)RANGE_CHUNKS * CHUNK_SIZE, false));
    for (size_t i = 0; i < RANGE_CHUNKS; i++) {
        taken[i] = pool_chunks_take(&chunks);
        memset(taken[i], 'x', 100);
    }
    assert_int_equal(chunks_held_size(&chunks), (size_t)RANGE_CHUNKS * CHUNK_SIZE);
    for (size_t i = 0; i < RANGE_CHUNKS; i++) {
        pool_chunks_give(&chunks, taken[i]);
    }
    assert_int_equal(chunks_held_size(&chunks), (size_t)CHUNKS_SPARE_MAX * CHUNK_SIZE);
    /* Returned memory is zeroed when taken again. */
    assert_int_equal(taken[RANGE_CHUNKS - 1][0], 0);
}

/* Every chunk taken is filled with its own number; the keeper must never touch it. */
TEST(the_keeper_never_touches_what_is_in_use) {
    struct random random = random_begin(__func__);
    ENDED_BY(pool_chunks_deinit) struct chunks chunks;
    char *taken[RANGE_CHUNKS] = {NULL};
    assert_true(pool_chunks_init(&chunks, (size_t)RANGE_CHUNKS * CHUNK_SIZE, true));
    for (int round = 0; round < ROUNDS; round++) {
        size_t i = random_below(&random, RANGE_CHUNKS);
        if (taken[i] == NULL) {
            taken[i] = pool_chunks_take(&chunks);
            /* The keeper may be processing one chunk, and some may be ready. */
            if (taken[i] != NULL) {
                memset(taken[i], (int)i + 1, 100);
                memset(taken[i] + CHUNK_SIZE - 100, (int)i + 1, 100);
            }
        } else {
            for (size_t j = 0; j < 100; j++) {
                assert_int_equal(taken[i][j], i + 1);
                assert_int_equal(taken[i][CHUNK_SIZE - 1 - j], i + 1);
            }
            pool_chunks_give(&chunks, taken[i]);
            taken[i] = NULL;
        }
        if (round % 100 == 0) {
            usleep(1000);
        }
    }
}

/* A minute at least. */
static void wait_for(struct chunks *chunks, size_t count) {
    for (int i = 0; i < 6000 && chunks_held_size(chunks) != count * CHUNK_SIZE; i++) {
        usleep(10000);
    }
    assert_int_equal(chunks_held_size(chunks), count * CHUNK_SIZE);
}

/* Growth counts as finished after a second, which a test that is held up may miss: then it takes
 * one more. */
static size_t wait_while_growing(struct chunks *chunks, size_t used) {
    for (int i = 1; i < 6000 && chunks_held_size(chunks) != (used + CHUNKS_READY) * CHUNK_SIZE;
         i++) {
        usleep(10000);
        if (i % 300 == 0) {
            assert_non_null(pool_chunks_take(chunks));
            used++;
        }
    }
    assert_int_equal(chunks_held_size(chunks), (used + CHUNKS_READY) * CHUNK_SIZE);
    return used;
}

TEST(chunks_are_made_ready_ahead_of_their_use) {
    ENDED_BY(pool_chunks_deinit) struct chunks chunks;
    assert_true(pool_chunks_init(&chunks, (size_t)RANGE_CHUNKS * CHUNK_SIZE, true));
    assert_int_equal(chunks_held_size(&chunks), 0);
    assert_non_null(pool_chunks_take(&chunks));
    wait_for(&chunks, 1 + 1);
    for (size_t used = 2; used <= CHUNKS_MANY; used++) {
        assert_non_null(pool_chunks_take(&chunks));
    }
    size_t used = wait_while_growing(&chunks, CHUNKS_MANY);
    /* When no more are taken, all are returned, until another is expected. */
    wait_for(&chunks, used);
    pool_chunks_expect(&chunks);
    wait_for(&chunks, used + 1);
}

/* A keeper that never comes. */
TEST(work_that_can_wait_waits_for_the_keeper_and_leaves_a_chunk_to_others_while_usage_grows) {
    ENDED_BY(pool_chunks_deinit) struct chunks chunks;
    char *taken[RANGE_CHUNKS];
    assert_true(pool_chunks_init(&chunks, (size_t)RANGE_CHUNKS * CHUNK_SIZE, false));
    taken[0] = pool_chunks_take(&chunks);
    assert_true(pool_chunks_are_ready(&chunks)); /* there is no keeper */
    chunks.has_keeper = true;
    assert_false(pool_chunks_are_ready(&chunks));
    pool_chunks_give(&chunks, taken[0]);
    assert_true(pool_chunks_are_ready(&chunks));
    for (size_t i = 0; i <= CHUNKS_MANY; i++) {
        taken[i] = pool_chunks_take(&chunks);
    }
    assert_false(pool_chunks_are_ready(&chunks));
    pool_chunks_give(&chunks, taken[0]);
    assert_false(pool_chunks_are_ready(&chunks));
    pool_chunks_give(&chunks, taken[1]);
    assert_true(pool_chunks_are_ready(&chunks));
    taken[1] = pool_chunks_take(&chunks);
    assert_false(pool_chunks_are_ready(&chunks));
    chunks.is_growing = false;
    assert_true(pool_chunks_are_ready(&chunks));
    while (pool_chunks_take(&chunks) != NULL) {}
    chunks.is_growing = true;
    assert_true(pool_chunks_are_ready(&chunks)); /* no more will come */
    chunks.has_keeper = false;
}

TEST(a_range_of_nothing_gives_nothing) {
    ENDED_BY(pool_chunks_deinit) struct chunks chunks;
    assert_false(pool_chunks_init(&chunks, CHUNK_SIZE - 1, true));
    assert_null(pool_chunks_take(&chunks));
    assert_int_equal(chunks_held_size(&chunks), 0);
}
