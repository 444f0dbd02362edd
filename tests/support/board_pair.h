/* A board and its naive twin (twin_board.h), for tests that do the same to both and compare. */
#ifndef TESTS_SUPPORT_BOARD_PAIR_H
#define TESTS_SUPPORT_BOARD_PAIR_H

#include "codec/memory.h"
#include "skiplist/lookup.h"
#include "tests/support/random.h"
#include "tests/support/stored_text.h"
#include "tests/support/test.h"
#include "tests/support/twin_board.h"

/* Room for the text of any member that member_of and user_of make. */
enum { PAIR_MEMBER_MAX = 512 };

struct board_pair {
    struct board own;
    struct board *board; /* it */
    struct twin_board twin;
    struct layout layout;
};

/* The member with this number. One byte for the first 26; then, of those that are packed some of each
 * kind, and of others sizes on both sides of every limit: the longest that are stored in their place,
 * and the first that lie in a piece of their own. */
static inline struct bytes member_of(uint32_t number, char *text) {
    static const size_t sizes[] = {4, 9, 17, 17, 40, 120, 126, 127, 128, 129, 255, 256, 400};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    if (number < 26) {
        text[0] = (char)('a' + number);
        return (struct bytes){.at = text, .size = 1};
    }
    uint32_t kind = (number * 2654435761U >> 16) % (SIZES + PACKED_KINDS);
    if (kind >= SIZES) {
        return packed_kind_text(kind - SIZES, number, text);
    }
    size_t size = sizes[kind];
    memset(text, 'x', size);
    memcpy(text, &number, sizeof number);
    return (struct bytes){.at = text, .size = size};
}

/* Members of equal size, as real ones are. */
static inline struct bytes user_of(uint32_t number, char *text) {
    int size = snprintf(text, PAIR_MEMBER_MAX, "user:%012u", number);
    return (struct bytes){.at = text, .size = (size_t)size};
}

/* Remove the member with this name; false: not on the board. */
static inline bool remove_named(struct board *board, struct bytes name) {
    struct board_member member;
    board_look_up(board, name, NULL, &member);
    if (member.is_there) {
        board_remove_member(board, &member);
    }
    return member.is_there;
}

/* The pair must stay where it is: its board borrows the layout. Every other seed makes a dense board, whose scores are
 * shared by few keys or by many. */
static inline void pair_init(struct board_pair *pair, bool is_latest, uint64_t hash_seed) {
    static const uint8_t score_shifts[] = {1, 3, 20, 23};
    layout_init_default(&pair->layout);
    pair->layout.time.is_latest = is_latest;
    if (hash_seed % 2 != 0) {
        pair->layout.time.bits = score_shifts[hash_seed / 2 % COUNT_OF(score_shifts)];
    }
    board_init(&pair->own, &pair->layout, hash_seed);
    assert_true(board_set_dense(&pair->own, hash_seed % 2 != 0));
    pair->board = &pair->own;
    twin_board_init(&pair->twin, is_latest);
}

static inline void pair_deinit(struct board_pair *pair) {
    board_deinit(pair->board);
    twin_board_deinit(&pair->twin);
}

static inline void pair_put(struct board_pair *pair, struct bytes member, uint64_t key) {
    assert_int_equal(board_put(pair->board, member, key), BOARD_OK);
    twin_board_put(&pair->twin, member, key);
}

/* The same with a staged look-up of the member. */
static inline void pair_put_looked_up(struct board_pair *pair, struct bytes name, uint64_t key,
                                      const struct lookup *ahead) {
    struct board_member member;
    board_look_up(pair->board, name, ahead, &member);
    assert_int_equal(board_put_member(pair->board, &member, key), BOARD_OK);
    twin_board_put(&pair->twin, name, key);
}

static inline void pair_remove(struct board_pair *pair, struct bytes member) {
    assert_int_equal(remove_named(pair->board, member), twin_board_remove(&pair->twin, member));
}

static inline void pair_remove_range(struct board_pair *pair, uint32_t rank, uint32_t count) {
    board_remove_range(pair->board, rank, count);
    twin_board_remove_range(&pair->twin, rank, count);
}

/* The dense ranks of some ten entries and of the last one. */
static inline void pair_compare_dense(const struct board_pair *pair) {
    uint32_t count = pair->twin.count, shift = board_layout(pair->board)->time.bits;
    for (uint32_t rank = 0; rank < count; rank += count / 10 + 1) {
        assert_int_equal(board_dense_rank(pair->board, rank),
                         twin_board_dense_rank(&pair->twin, rank, shift));
    }
    uint32_t last = count > 0 ? twin_board_dense_rank(&pair->twin, count - 1, shift) : 0;
    assert_int_equal(board_dense_count(pair->board), count > 0 ? last + 1 : 0);
}

/* All members, in the order of ranks, and between them some who are not there. */
static inline void pair_compare_readings(const struct board_pair *pair) {
    enum { NAMES = 100 };
    struct bytes names[NAMES];
    struct lookup_stream stream;
    for (uint32_t begin = 0; begin < pair->twin.count; begin += NAMES / 2) {
        uint32_t count = 0, left = pair->twin.count - begin;
        for (uint32_t i = 0; i < NAMES / 2 && i < left; i++) {
            names[count++] = pair->twin.entries[begin + i].member;
            names[count++] = BYTES("not on any board");
        }
        const struct lookup_found *found = NULL;
        lookup_stream_begin(&stream, pair->board, names, count);
        for (uint32_t i = 0; i < count; i++) {
            found = i % LOOKUP_TURN == 0 ? lookup_stream_next(&stream) : found + 1;
            assert_int_equal(found->rank, i % 2 == 0 ? begin + i / 2 : LOOKUP_NOWHERE);
            if (i % 2 == 0) {
                assert_int_equal(found->key, pair->twin.entries[begin + i / 2].key);
            }
        }
    }
}

static inline void pair_compare(const struct board_pair *pair) {
    ASSERT_VALID(board_validate, pair->board);
    assert_true(twin_board_equals(&pair->twin, pair->board));
    pair_compare_readings(pair);
    if (board_is_dense(pair->board)) {
        pair_compare_dense(pair);
    }
}

/* A test with an empty pair and random numbers; no memory may be left. */
#define PAIR_TEST(name)                                                                            \
    static void name##_of(struct board_pair *pair, struct random *random);                         \
    TEST(name) {                                                                                   \
        pair_test(#name, name##_of);                                                               \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) struct board_pair *pair,                         \
                          __attribute__((unused)) struct random *random)
static inline void pair_test(const char *name,
                             void (*test)(struct board_pair *pair, struct random *random)) {
    struct random random = random_begin(name);
    uint64_t live_before = memory_live_count();
    struct board_pair pair;
    pair_init(&pair, false, random_next(&random));
    test(&pair, &random);
    pair_deinit(&pair);
    assert_int_equal(memory_live_count(), live_before);
}

/* Put the members with the first count numbers, at random keys below keys. */
static inline void pair_fill(struct board_pair *pair, struct random *random, uint32_t count,
                             uint64_t keys) {
    char text[PAIR_MEMBER_MAX];
    for (uint32_t i = 0; i < count; i++) {
        pair_put(pair, member_of(i, text), random_below(random, keys));
    }
}

/* Every way to ask for one member gives what the twin says. */
static inline void pair_compare_member(const struct board_pair *pair, struct bytes member) {
    uint32_t twin_rank = 0;
    uint64_t found_key = 0;
    struct board_member found;
    bool is_there = twin_board_rank(&pair->twin, member, &twin_rank);
    board_look_up(pair->board, member, NULL, &found);
    assert_int_equal(found.is_there, is_there);
    assert_int_equal(board_find(pair->board, member, &found_key), is_there);
    if (!is_there) {
        return;
    }
    assert_int_equal(board_rank_of(pair->board, &found), twin_rank);
    assert_int_equal(found.key, pair->twin.entries[twin_rank].key);
    assert_int_equal(found_key, found.key);
    if (board_is_dense(pair->board)) {
        assert_int_equal(
            board_dense_rank_of(pair->board, &found),
            twin_board_dense_rank(&pair->twin, twin_rank, board_layout(pair->board)->time.bits));
    }
    struct board_stored entry = board_at(pair->board, twin_rank);
    assert_true(bytes_equal(stored_text(entry.member), member));
    assert_int_equal(entry.key, found.key);
}

static inline void pair_compare_key(const struct board_pair *pair, uint64_t key) {
    assert_int_equal(board_count_above(pair->board, key), twin_board_count_above(&pair->twin, key));
    assert_int_equal(board_count_from(pair->board, key), twin_board_count_from(&pair->twin, key));
    const uint64_t keys[] = {key + 1, 0, key, UINT64_MAX, key};
    enum { KEYS = sizeof keys / sizeof *keys };
    uint32_t above[KEYS], from[KEYS];
    board_count_many(pair->board, keys, KEYS, false, above);
    board_count_many(pair->board, keys, KEYS, true, from);
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(above[i], twin_board_count_above(&pair->twin, keys[i]));
        assert_int_equal(from[i], twin_board_count_from(&pair->twin, keys[i]));
    }
}

#endif
