/* Reading a board along its ranks, and in the order of a scan. */
#include "codec/check.h"
#include "skiplist/board_parts.h"
#include "skiplist/prefetch.h"
#include "skiplist/run.h"

enum {
    /* A scan step that meets only empty buckets ends all the same. As in Redis. */
    SCAN_STEPS_PER_MEMBER = 10,
};

/* ---- ranges ---- */

/* Most limits asked for are open: they lie beyond every key. */
static bool is_above_all(const struct skiplist *list, uint64_t key) {
    const struct block *first = skiplist_leaf(list, list->first);
    return first == NULL || key > block_keys(first)[0];
}

static bool is_below_all(const struct skiplist *list, uint64_t key) {
    const struct block *last = skiplist_leaf(list, list->last);
    return last == NULL || key < block_keys(last)[last->count - 1];
}

static uint32_t count_above(const struct board *board, uint64_t key, bool or_equal) {
    struct skiplist own;
    const struct skiplist *list = board_list(board, &own);
    if (is_above_all(list, key))
        return 0;
    if (is_below_all(list, key))
        return list->count;
    return skiplist_rank(list, skiplist_place_above(list, key, or_equal));
}

uint32_t board_count_above(const struct board *board, uint64_t key) {
    return count_above(board, key, false);
}

uint32_t board_count_from(const struct board *board, uint64_t key) {
    return count_above(board, key, true);
}

static struct skiplist_place place_at(const struct board *board, uint32_t rank) {
    CHECK(rank < board_count(board));
    if (!board->is_large)
        return (struct skiplist_place){.leaf = 0, .index = rank};
    return skiplist_at(&board->large->list, rank);
}

static struct board_entry entry_at(const struct block *block, uint32_t index, uint32_t offset) {
    return (struct board_entry){
        .key = block_keys(block)[index],
        .member = block_member(block, index, offset),
    };
}

struct board_entry board_at(const struct board *board, uint32_t rank) {
    struct skiplist_place place = place_at(board, rank);
    const struct block *block = board_leaf(board, place.leaf);
    return entry_at(block, place.index, block_offset(block, place.index));
}

/* While a walk is in one block, fetch the next one. First its node, then, some entries later, the
 * first lines of the block; once reading has begun, the processor sees the pattern itself. */
static void fetch_nodes(const struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL)
        return;
    if (block->links.next != SKIPLIST_NONE)
        prefetch_line(skiplist_node(&cursor->board->large->list, block->links.next));
    if (block->links.previous != SKIPLIST_NONE)
        prefetch_line(skiplist_node(&cursor->board->large->list, block->links.previous));
}

static void fetch_ahead(const struct board_cursor *cursor, uint32_t id) {
    if (cursor->index % 8 == 4) {
        const struct block *ahead = board_leaf(cursor->board, id);
        if (ahead != NULL)
            prefetch_lines(ahead, sizeof *ahead + 10 * BLOCK_ENTRIES_MAX);
    }
}

void board_seek(const struct board *board, uint32_t rank, struct board_cursor *cursor) {
    *cursor = (struct board_cursor){.board = board};
    if (rank >= board_count(board))
        return;
    struct skiplist_place place = place_at(board, rank);
    const struct block *block = board_leaf(board, place.leaf);
    cursor->block = block;
    cursor->index = place.index;
    cursor->member_offset = place.index > 0 ? block_offset(block, place.index) : 0;
    fetch_nodes(cursor);
}

bool board_cursor_read(const struct board_cursor *cursor, struct board_entry *entry) {
    if (cursor->block == NULL)
        return false;
    *entry = entry_at(cursor->block, cursor->index, cursor->member_offset);
    return true;
}

void board_cursor_next(struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL)
        return;
    cursor->member_offset += block_heap_size(block_len(block, cursor->index));
    if (++cursor->index < block->count) {
        fetch_ahead(cursor, block->links.next);
        return;
    }
    cursor->block = board_leaf(cursor->board, block->links.next);
    cursor->index = 0;
    cursor->member_offset = 0;
    fetch_nodes(cursor);
}

void board_cursor_previous(struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL)
        return;
    if (cursor->index == 0) {
        block = board_leaf(cursor->board, block->links.previous);
        cursor->block = block;
        if (block == NULL)
            return;
        cursor->index = block->count;
        cursor->member_offset = block->heap_used;
        fetch_nodes(cursor);
    }
    cursor->index--;
    cursor->member_offset -= block_heap_size(block_len(block, cursor->index));
    fetch_ahead(cursor, block->links.previous);
}

/* The cursor has come to a block by a run, and has not looked into it yet; or to an entry, whose
 * offset nobody may ever ask for. */
#define CURSOR_AT_EDGE UINT32_MAX
#define OFFSET_UNKNOWN UINT32_MAX

static void settle_cursor(struct board_cursor *cursor, bool is_best_first) {
    const struct block *block = cursor->block;
    if (cursor->index == CURSOR_AT_EDGE) {
        cursor->index = is_best_first ? 0 : block->count - 1U;
        cursor->member_offset = is_best_first ? 0 : OFFSET_UNKNOWN;
    }
    if (cursor->member_offset == OFFSET_UNKNOWN)
        cursor->member_offset = block_offset(block, cursor->index);
}

/* Take the cursor to the block with this id, and fetch that without waiting for it. */
static void leave_block(struct board_cursor *cursor, uint32_t id) {
    const struct block *block = board_leaf(cursor->board, id);
    cursor->block = block;
    cursor->index = CURSOR_AT_EDGE;
    if (block != NULL)
        prefetch_lines(block, sizeof *block + 10 * BLOCK_ENTRIES_MAX);
}

bool board_cursor_run(struct board_cursor *cursor, bool is_best_first, uint32_t count_max,
                      struct board_run *run) {
    const struct block *block = cursor->block;
    if (block == NULL)
        return false;
    settle_cursor(cursor, is_best_first);
    uint32_t ahead = is_best_first ? block->links.next : block->links.previous;
    uint32_t here = is_best_first ? block->count - cursor->index : cursor->index + 1;
    uint32_t count = here < count_max ? here : count_max;
    if (count > BOARD_RUN_MAX)
        count = BOARD_RUN_MAX;
    /* Backwards a walk stands behind its next entry. */
    uint32_t index = is_best_first ? cursor->index : cursor->index + 1;
    uint32_t last_size = is_best_first ? 0 : block_heap_size(block_len(block, cursor->index));
    *run = (struct board_run){
        .marks = block_marks(block) + index,
        .keys = block_keys(block) + index,
        .members = block_heap(block) + cursor->member_offset + last_size,
        .count = count,
        .is_best_first = is_best_first,
    };
    if (count == here) {
        leave_block(cursor, ahead);
        return true;
    }
    cursor->index = is_best_first ? cursor->index + count : cursor->index - count;
    cursor->member_offset = OFFSET_UNKNOWN;
    if (ahead != SKIPLIST_NONE)
        prefetch_line(skiplist_node(&cursor->board->large->list, ahead));
    return true;
}

/* ---- scanning ---- */

struct scan {
    const struct board *board;
    uint64_t from; /* upper halves of hashes: from .. end - 1 */
    uint64_t end;
    uint32_t visited;
    board_visit *visit;
    void *context;
};

static void scan_leaf(void *context, uint32_t id) {
    struct scan *scan = context;
    const struct block *block = board_leaf(scan->board, id);
    uint64_t hashes[BLOCK_ENTRIES_MAX];
    if (block == NULL || !board_leaf_is_alive(scan->board, id))
        return;
    board_hash_members(scan->board, block, 0, block->count, hashes);
    uint32_t offset = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        uint64_t prefix = hashes[i] >> 32;
        if (prefix >= scan->from && prefix < scan->end) {
            struct board_entry entry = entry_at(block, i, offset);
            scan->visit(scan->context, &entry);
            scan->visited++;
        }
        offset += block_heap_size(block_len(block, i));
    }
}

uint64_t board_scan(const struct board *board, uint64_t cursor, uint32_t count, board_visit *visit,
                    void *context) {
    const uint64_t over = UINT64_C(1) << 32;
    struct scan scan = {
        .board = board, .from = cursor, .end = over, .visit = visit, .context = context};
    if (cursor >= over)
        return 0;
    if (!board->is_large) {
        scan_leaf(&scan, 0);
        return 0;
    }
    uint64_t steps_left = (count + UINT64_C(1)) * SCAN_STEPS_PER_MEMBER;
    while (scan.from < over && steps_left-- > 0) {
        map_scan(&board->large->map, (uint32_t)scan.from, &scan.end, scan_leaf, &scan);
        scan.from = scan.end;
        if (scan.visited >= count)
            break;
    }
    return scan.from < over ? scan.from : 0;
}
