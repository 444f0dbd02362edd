/* A board and its naive twin (twin_board.h), for tests that do the same to both and compare. To be
 * included behind cmocka.h. */
#ifndef TESTS_SUPPORT_BOARD_PAIR_H
#define TESTS_SUPPORT_BOARD_PAIR_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/twin_board.h"

/* Room for the text of any member that member_of and user_of make. */
enum { PAIR_MEMBER_MAX = 512 };

struct board_pair {
    struct board own;
    struct board *board; /* it */
    struct twin_board twin;
    struct layout layout;
};

/* The member with this number. One byte for the first 26; then sizes on both sides of every limit:
 * the longest inline ones, the first that lie in a piece of their own, of the tiny build too. */
static inline struct bytes member_of(uint32_t number, char *text) {
    static const size_t sizes[] = {4, 9, 17, 17, 39, 40, 41, 120, 253, 254, 255, 256, 400};
    if (number < 26) {
        text[0] = (char)('a' + number);
        return (struct bytes){.at = text, .size = 1};
    }
    size_t size = sizes[(number * 2654435761U >> 16) % (sizeof sizes / sizeof *sizes)];
    memset(text, 'x', size);
    memcpy(text, &number, sizeof number);
    return (struct bytes){.at = text, .size = size};
}

/* Members of equal size, as real ones are. */
static inline struct bytes user_of(uint32_t number, char *text) {
    int size = snprintf(text, PAIR_MEMBER_MAX, "user:%012u", number);
    return (struct bytes){.at = text, .size = (size_t)size};
}

static inline void assert_board_valid(const struct board *board) {
    const char *reason = "";
    if (!board_validate(board, &reason)) {
        fail_msg("%s", reason);
    }
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

/* The pair must stay where it is: its board borrows the layout. */
static inline void pair_init(struct board_pair *pair, bool is_latest, uint64_t hash_seed) {
    layout_init_default(&pair->layout);
    pair->layout.time.is_latest = is_latest;
    board_init(&pair->own, &pair->layout, hash_seed);
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

static inline void pair_compare(const struct board_pair *pair) {
    assert_board_valid(pair->board);
    assert_true(twin_board_equals(&pair->twin, pair->board));
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
    struct board_entry entry = board_at(pair->board, twin_rank);
    assert_true(bytes_equal(entry.member, member));
    assert_int_equal(entry.key, found.key);
}

static inline void pair_compare_key(const struct board_pair *pair, uint64_t key) {
    assert_int_equal(board_count_above(pair->board, key), twin_board_count_above(&pair->twin, key));
    assert_int_equal(board_count_from(pair->board, key), twin_board_count_from(&pair->twin, key));
}

#endif
