/* The naive twin of a board: a sorted array, searched from end to end. Slow and obviously right;
 * tests do the same to both and compare.
 *
 * It takes its memory from malloc directly, so that failures that a test injects through
 * codec/memory.h do not hit it, and it is not among the live allocations. */
#ifndef TESTS_SUPPORT_TWIN_BOARD_H
#define TESTS_SUPPORT_TWIN_BOARD_H

#include "skiplist/board.h"

struct twin_entry {
    uint64_t key;
    struct bytes member; /* its own copy */
};

struct twin_board {
    struct twin_entry *entries; /* in rank order */
    uint32_t count;
    uint32_t capacity;
    bool is_latest; /* a newcomer stands before its equals */
};

void twin_board_init(struct twin_board *twin, bool is_latest);
void twin_board_deinit(struct twin_board *twin);
/* Make to (just initialised) a copy. */
void twin_board_copy(const struct twin_board *twin, struct twin_board *to);

/* The member's rank; false: not on the board. */
bool twin_board_rank(const struct twin_board *twin, struct bytes member, uint32_t *rank);
void twin_board_put(struct twin_board *twin, struct bytes member, uint64_t key);
bool twin_board_remove(struct twin_board *twin, struct bytes member);
void twin_board_remove_range(struct twin_board *twin, uint32_t rank, uint32_t count);
uint32_t twin_board_count_above(const struct twin_board *twin, uint64_t key);
uint32_t twin_board_count_from(const struct twin_board *twin, uint64_t key);

/* Different scores above the entry at a rank: keys without so many bits. */
uint32_t twin_board_dense_rank(const struct twin_board *twin, uint32_t rank, unsigned score_shift);

/* Do both hold the same members with the same keys in the same order? */
bool twin_board_equals(const struct twin_board *twin, const struct board *board);

#endif
