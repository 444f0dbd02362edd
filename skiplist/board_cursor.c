/* Reading a board in the order of ranks: see skiplist/board.h and skiplist/run.h. */
#include "codec/check.h"
#include "skiplist/large_board.h"
#include "skiplist/prefetch.h"
#include "skiplist/run.h"

/* While a walk is in one block, prefetch the next one: first its node, and some entries later the
 * first lines of the block. Once it is being read, the hardware prefetcher takes over. */
static void board_cursor_fetch_nodes(const struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL) {
        return;
    }
    if (block->links.next != SKIPLIST_NONE) {
        prefetch_line(skiplist_node(&cursor->board->large->list, block->links.next));
    }
    if (block->links.previous != SKIPLIST_NONE) {
        prefetch_line(skiplist_node(&cursor->board->large->list, block->links.previous));
    }
}

static void board_cursor_fetch_ahead(const struct board_cursor *cursor, uint32_t id) {
    if (cursor->index % 8 == 4) {
        const struct block *ahead = board_leaf(cursor->board, id);
        if (ahead != NULL) {
            prefetch_lines(ahead, sizeof *ahead + 10 * BLOCK_ENTRIES_MAX);
        }
    }
}

/* To the entry that has this index, counted from the first of this block, which may be NULL. */
static void board_cursor_set(struct board_cursor *cursor, const struct block *block,
                             uint32_t index) {
    while (block != NULL && index >= block->count) {
        index -= block->count;
        block = board_leaf(cursor->board, block->links.next);
    }
    cursor->block = block;
    if (block == NULL) {
        return;
    }
    cursor->index = index;
    cursor->member_offset = index > 0 ? block_offset(block, index) : 0;
    board_cursor_fetch_nodes(cursor);
}

void board_cursor_seek(const struct board *board, uint32_t rank, struct board_cursor *cursor) {
    *cursor = (struct board_cursor){.board = board};
    if (rank >= board_count(board)) {
        return;
    }
    struct skiplist_place place = board_place_at(board, rank);
    board_cursor_set(cursor, board_leaf(board, place.leaf), place.index);
}

void board_cursor_seek_key(const struct board *board, uint64_t key, struct board_cursor *cursor) {
    struct skiplist own;
    const struct skiplist *list = board_list(board, &own);
    *cursor = (struct board_cursor){.board = board};
    if (board_is_below_all(list, key)) {
        return;
    }
    struct skiplist_place place = {.leaf = list->first};
    if (!board_is_above_all(list, key)) {
        place = skiplist_place_above(list, key, false);
    }
    board_cursor_set(cursor, board_leaf(board, place.leaf), place.index);
}

bool board_cursor_read(const struct board_cursor *cursor, struct board_stored *entry) {
    if (cursor->block == NULL) {
        return false;
    }
    *entry = board_entry_at(cursor->block, cursor->index, cursor->member_offset);
    return true;
}

void board_cursor_next(struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL) {
        return;
    }
    cursor->member_offset += block_heap_size(block_code(block, cursor->index));
    if (++cursor->index < block->count) {
        board_cursor_fetch_ahead(cursor, block->links.next);
        return;
    }
    cursor->block = board_leaf(cursor->board, block->links.next);
    cursor->index = 0;
    cursor->member_offset = 0;
    board_cursor_fetch_nodes(cursor);
}

void board_cursor_skip(struct board_cursor *cursor, uint32_t count) {
    board_cursor_set(cursor, cursor->block, cursor->index + count);
}

void board_cursor_previous(struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL) {
        return;
    }
    if (cursor->index == 0) {
        block = board_leaf(cursor->board, block->links.previous);
        cursor->block = block;
        if (block == NULL) {
            return;
        }
        cursor->index = block->count;
        cursor->member_offset = block->heap_used;
        board_cursor_fetch_nodes(cursor);
    }
    cursor->index--;
    cursor->member_offset -= block_heap_size(block_code(block, cursor->index));
    board_cursor_fetch_ahead(cursor, block->links.previous);
}

/* CURSOR_AT_EDGE: the cursor has reached a block through a run and has not read it yet.
 * OFFSET_UNKNOWN: the offset of its entry has not been computed, because it may never be needed. */
#define CURSOR_AT_EDGE UINT32_MAX
#define OFFSET_UNKNOWN UINT32_MAX

bool board_cursor_run(struct board_cursor *cursor, bool is_best_first, uint32_t count_max,
                      struct board_run *run) {
    const struct block *block = cursor->block;
    if (block == NULL) {
        return false;
    }
    if (cursor->index == CURSOR_AT_EDGE) {
        cursor->index = is_best_first ? 0 : block->count - 1U;
        cursor->member_offset = is_best_first ? 0 : OFFSET_UNKNOWN;
    }
    if (cursor->member_offset == OFFSET_UNKNOWN) {
        cursor->member_offset = block_offset(block, cursor->index);
    }
    uint32_t ahead = is_best_first ? block->links.next : block->links.previous;
    uint32_t here = is_best_first ? block->count - cursor->index : cursor->index + 1;
    uint32_t count = here < count_max ? here : count_max;
    count = count < BOARD_RUN_MAX ? count : BOARD_RUN_MAX;
    /* A backward walk is positioned behind its next entry. */
    uint32_t index = is_best_first ? cursor->index : cursor->index + 1;
    uint32_t last_size = is_best_first ? 0 : block_heap_size(block_code(block, cursor->index));
    *run = (struct board_run){
        .marks = block_marks(block) + index,
        .keys = block_keys(block) + index,
        .members = block_heap(block) + cursor->member_offset + last_size,
        .count = count,
        .is_best_first = is_best_first,
        .is_of_one_code = block->only_code != 0,
    };
    if (count == here) {
        cursor->block = board_leaf(cursor->board, ahead);
        cursor->index = CURSOR_AT_EDGE;
        if (cursor->block != NULL) {
            prefetch_lines(cursor->block, sizeof *block + 10 * BLOCK_ENTRIES_MAX);
        }
        return true;
    }
    cursor->index = is_best_first ? cursor->index + count : cursor->index - count;
    cursor->member_offset = OFFSET_UNKNOWN;
    return true;
}
