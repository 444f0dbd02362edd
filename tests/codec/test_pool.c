/* Random operations on the pool, against a plain record of the allocated pieces. Every piece is
 * filled with its own pattern, so that overlaps are detected. */
#include "tests/support/test.h"

#include "codec/pool.h"
#include "tests/support/chunks_held.h"
#include "tests/support/random.h"

enum {
    RANGE_CHUNKS = 8,
    PIECES = 3000,
    OPERATIONS = 200000,
};

struct held {
    unsigned char *at;
    size_t size;
    unsigned char pattern;
};

static struct held pieces[PIECES];

static void assert_pattern(const struct held *piece, size_t size) {
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(piece->at[i], piece->pattern);
    }
}

static void fill(struct held *piece, uint64_t number) {
    piece->pattern = (unsigned char)number;
    memset(piece->at, piece->pattern, piece->size);
}

/* Mostly sizes of blocks, now and then a very small or a large one. */
static size_t random_size(struct random *random) {
    uint32_t kind = (uint32_t)random_below(random, 100);
    if (kind < 70) {
        return 16 + random_below(random, 1500);
    }
    if (kind < 98) {
        return 1 + random_below(random, 80);
    }
    return 1 + random_below(random, 200000);
}

static void step(struct pool *pool, struct random *random, uint64_t number) {
    struct held *piece = &pieces[random_below(random, PIECES)];
    if (piece->at == NULL) {
        size_t size = random_size(random);
        piece->at = random_below(random, 3) == 0 ? pool_allocate_lasting(pool, size)
                                                 : pool_allocate(pool, size);
        if (piece->at != NULL) {
            assert_true(pool_owns(pool, piece->at));
            assert_int_equal((uintptr_t)piece->at % 16, 0);
            assert_true(pool_size(piece->at) >= size);
            piece->size = pool_size(piece->at);
            fill(piece, number);
        }
    } else if (random_below(random, 4) == 0) {
        size_t size = random_size(random);
        size_t kept = size < piece->size ? size : piece->size;
        if (pool_resize(pool, piece->at, size)) {
            assert_pattern(piece, kept);
            assert_true(pool_size(piece->at) >= size);
        } else {
            assert_pattern(piece, piece->size);
        }
        piece->size = pool_size(piece->at);
        fill(piece, number);
    } else {
        assert_pattern(piece, piece->size);
        pool_free(pool, piece->at);
        piece->at = NULL;
    }
}

static void free_all(struct pool *pool) {
    for (size_t i = 0; i < PIECES; i++) {
        if (pieces[i].at != NULL) {
            assert_pattern(&pieces[i], pieces[i].size);
            pool_free(pool, pieces[i].at);
            pieces[i].at = NULL;
        }
    }
    pool_settle(pool);
}

TEST(random_pieces_never_overlap) {
    struct random random = random_begin("pool");
    ENDED_BY(pool_deinit) struct pool pool;
    assert_true(pool_init(&pool, (size_t)RANGE_CHUNKS * CHUNK_SIZE, false));
    for (uint64_t i = 0; i < OPERATIONS; i++) {
        step(&pool, &random, i);
        if (i % 1000 == 0) {
            ASSERT_VALID(pool_validate, &pool);
        }
    }
    free_all(&pool);
    ASSERT_VALID(pool_validate, &pool);
}

TEST(a_pool_that_is_empty_again_holds_a_spare_chunk_at_most) {
    ENDED_BY(pool_deinit) struct pool pool;
    assert_true(pool_init(&pool, (size_t)RANGE_CHUNKS * CHUNK_SIZE, false));
    assert_int_equal(chunks_held_size(&pool.chunks), 0);
    for (int round = 0; round < 2; round++) { /* what was freed can be allocated again */
        for (size_t i = 0; i < PIECES; i++) {
            pieces[i].at = pool_allocate(&pool, 4000);
            assert_non_null(pieces[i].at);
            pieces[i].size = pool_size(pieces[i].at);
            fill(&pieces[i], i);
        }
        assert_int_equal(chunks_held_size(&pool.chunks), 6 * (size_t)CHUNK_SIZE);
        free_all(&pool);
        assert_int_equal(chunks_held_size(&pool.chunks), CHUNKS_SPARE_MAX * (size_t)CHUNK_SIZE);
        ASSERT_VALID(pool_validate, &pool);
    }
}

/* Long-lived pieces must not be between short-lived ones, where the holes would be too small for
 * anything. */
TEST(freed_pieces_beside_lasting_ones_make_room_for_larger_ones) {
    ENDED_BY(pool_deinit) struct pool pool;
    assert_true(pool_init(&pool, (size_t)RANGE_CHUNKS * CHUNK_SIZE, false));
    for (size_t i = 0; i < PIECES; i++) {
        assert_non_null(pool_allocate_lasting(&pool, 50));
        pieces[i].at = pool_allocate(&pool, 100);
        pieces[i].size = pool_size(pieces[i].at);
        fill(&pieces[i], i);
    }
    size_t held = chunks_held_size(&pool.chunks);
    for (size_t i = 0; i < PIECES; i++) {
        pool_free(&pool, pieces[i].at);
    }
    pool_settle(&pool);
    for (size_t i = 0; i < PIECES / 4; i++) {
        assert_non_null(pool_allocate(&pool, 350));
    }
    assert_int_equal(chunks_held_size(&pool.chunks), held);
    ASSERT_VALID(pool_validate, &pool);
    memset(pieces, 0, sizeof pieces);
}

TEST(a_range_that_is_used_up_gives_null_and_goes_on) {
    struct pool pool;
    void *large[2 * RANGE_CHUNKS];
    size_t count = 0;
    assert_true(pool_init(&pool, (size_t)RANGE_CHUNKS * CHUNK_SIZE, false));
    while (count < 2 * RANGE_CHUNKS &&
           (large[count] = pool_allocate(&pool, POOL_PIECE_MAX)) != NULL) {
        count++;
    }
    /* One fits in each chunk, with its header. */
    assert_int_equal(count, RANGE_CHUNKS);
    ASSERT_VALID(pool_validate, &pool);
    void *small = pool_allocate(&pool, 1000);
    assert_non_null(small);
    pool_free(&pool, small);
    while (count > 0) {
        pool_free(&pool, large[--count]);
    }
    ASSERT_VALID(pool_validate, &pool);
    void *again = pool_allocate(&pool, POOL_PIECE_MAX);
    assert_non_null(again);
    pool_free(&pool, again);
    pool_deinit(&pool);
}

TEST(a_piece_grows_where_it_lies_only_into_free_neighbours) {
    ENDED_BY(pool_deinit) struct pool pool;
    assert_true(pool_init(&pool, CHUNK_SIZE, false));
    char *first = pool_allocate(&pool, 100);
    char *second = pool_allocate(&pool, 100);
    memset(first, 'a', 100);
    assert_false(pool_resize(&pool, first, 150));
    pool_free(&pool, second);
    pool_settle(&pool);
    assert_true(pool_resize(&pool, first, 150));
    assert_true(pool_size(first) >= 150);
    assert_int_equal(first[99], 'a');
    assert_true(pool_resize(&pool, first, 20));
    assert_true(pool_size(first) < 100);
    ASSERT_VALID(pool_validate, &pool);
    pool_free(&pool, first);
    ASSERT_VALID(pool_validate, &pool);
}

TEST(a_piece_freed_of_late_is_the_next_of_its_size) {
    ENDED_BY(pool_deinit) struct pool pool;
    assert_true(pool_init(&pool, CHUNK_SIZE, false));
    void *kept = pool_allocate(&pool, 700);
    void *freed = pool_allocate(&pool, 700);
    assert_ptr_not_equal(kept, freed);
    pool_free(&pool, freed);
    ASSERT_VALID(pool_validate, &pool);
    assert_ptr_equal(pool_allocate(&pool, 700), freed);
    pool_free(&pool, freed);
    pool_free(&pool, kept);
    assert_int_equal(pool_chunks_is_used(&pool.chunks, 0), true);
    pool_settle(&pool);
    assert_int_equal(pool_chunks_is_used(&pool.chunks, 0), false);
    ASSERT_VALID(pool_validate, &pool);
}

TEST(a_pool_without_range_owns_nothing) {
    ENDED_BY(pool_deinit) struct pool pool;
    int here = 0;
    assert_false(pool_init(&pool, 100, false));
    assert_false(pool_owns(&pool, &here));
    assert_false(pool_owns(&pool, NULL));
}

TEST(another_chunk_is_expected_when_the_last_is_nearly_full) {
    ENDED_BY(pool_deinit) struct pool pool;
    assert_true(pool_init(&pool, (size_t)RANGE_CHUNKS * CHUNK_SIZE, false));
    assert_non_null(pool_allocate(&pool, POOL_PIECE_MAX));
    assert_non_null(pool_allocate(&pool, POOL_PIECE_MAX / 4));
    assert_false(pool.chunks.is_expected);
    void *large = pool_allocate(&pool, POOL_PIECE_MAX / 2);
    assert_true(pool.chunks.is_expected);
    pool_free(&pool, large);
    assert_non_null(pool_allocate(&pool, POOL_PIECE_MAX));
    assert_false(pool.chunks.is_expected);
}
