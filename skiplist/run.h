/* A run: consecutive entries in one block of a board, read in place. Walks over many members (such
 * as the top 100) proceed run by run, so that per-block work is done once per block.
 *
 *     board_cursor_seek(board, rank, &cursor);
 *     while (board_cursor_run(&cursor, is_best_first, left, &run))
 *         for (left -= run.count; board_run_read(&run, &key, &member);)
 *             ...
 *
 * Valid until the next change of the board. */
#ifndef SKIPLIST_RUN_H
#define SKIPLIST_RUN_H

#include "skiplist/block.h"
#include "skiplist/board.h"

/* A run is what a block has, and while it is read the next block is prefetched. */
enum { BOARD_RUN_MAX = BLOCK_ENTRIES_MAX };

struct board_run {
    const uint16_t *marks; /* of the next entry; backwards: behind it */
    const uint64_t *keys;
    const char *members;
    uint32_t count; /* entries left */
    bool is_best_first;
    bool is_of_one_code; /* all of them; else they may be of several */
};

/* The entries of the cursor's block from the cursor on, at most count_max (at least 1). The cursor
 * moves past them; after that only this function may advance it. false: no entries left. */
MUST_CHECK bool board_cursor_run(struct board_cursor *cursor, bool is_best_first,
                                 uint32_t count_max, struct board_run *run);

/* Read the next entry. false: the run is finished. is_best_first must be the run's; if it is a
 * constant, the compiler generates a loop for each direction. */
MUST_CHECK static inline bool board_run_read_to(struct board_run *run, bool is_best_first,
                                                uint64_t *key, struct name *member) {
    if (run->count == 0) {
        return false;
    }
    run->count--;
    if (!is_best_first) {
        run->marks--;
        run->keys--;
    }
    uint8_t code = (uint8_t)(*run->marks >> 8);
    *key = *run->keys;
    if (!is_best_first) {
        run->members -= block_heap_size(code);
    }
    const char *at = run->members;
    if (is_best_first) {
        run->marks++;
        run->keys++;
        run->members += block_heap_size(code);
    }
    *member = block_member_at(code, at);
    return true;
}

MUST_CHECK static inline bool board_run_read(struct board_run *run, uint64_t *key,
                                             struct name *member) {
    return board_run_read_to(run, run->is_best_first, key, member);
}

#endif
