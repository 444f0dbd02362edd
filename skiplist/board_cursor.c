/* Reading a board: in the order of ranks, entry by entry or run by run, and in that of hashes. */
#include "codec/check.h"
#include "codec/memory.h"
#include "skiplist/block.h"
#include "skiplist/large_board.h"

/* While a walk is in one block, prefetch the next one: first its node, and some entries later the
 * first lines of the block. Once it is being read, the hardware prefetcher takes over. */
static void board_cursor_fetch_nodes(const struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL) {
        return;
    }
    if (block->links.next != SKIPLIST_NONE) {
        memory_prefetch(skiplist_node(&cursor->board->large->list, block->links.next));
    }
    if (block->links.previous != SKIPLIST_NONE) {
        memory_prefetch(skiplist_node(&cursor->board->large->list, block->links.previous));
    }
}

static void board_cursor_fetch_ahead(const struct board_cursor *cursor, uint32_t id) {
    if (cursor->index % 8 == 4) {
        const struct block *ahead = board_leaf(cursor->board, id);
        if (ahead != NULL) {
            memory_prefetch_lines(ahead, sizeof *ahead + 10 * BLOCK_ENTRIES_MAX);
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
                      struct block_run *run) {
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
    count = count < BLOCK_RUN_MAX ? count : BLOCK_RUN_MAX;
    /* A backward walk is positioned behind its next entry. */
    uint32_t index = is_best_first ? cursor->index : cursor->index + 1;
    uint32_t last_size = is_best_first ? 0 : block_heap_size(block_code(block, cursor->index));
    *run = (struct block_run){
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
            memory_prefetch_lines(cursor->block, sizeof *block + 10 * BLOCK_ENTRIES_MAX);
        }
        return true;
    }
    cursor->index = is_best_first ? cursor->index + count : cursor->index - count;
    cursor->member_offset = OFFSET_UNKNOWN;
    return true;
}

/* ---- scans: skiplist/map.h ---- */

struct board_scan {
    const struct board *board;
    board_visit *visit;
    void *context;
};

static void board_cursor_scan_visit_entry(void *context, const struct scan_item *item) {
    const struct board_scan *scan = context;
    struct board_stored entry = board_entry_at(item->at, item->index, item->offset);
    scan->visit(scan->context, &entry);
}

static void board_cursor_scan_fetch(const void *owner, uint32_t id) {
    const struct board *board = owner;
    if (id < board->large->list.node_end) {
        memory_prefetch(skiplist_node(&board->large->list, id));
    }
}

enum { SCAN_WINDOW = 64 };
/* Bitmap of the entries of a leaf, from one on, whose tags admit a hash in the range. */
static uint64_t board_cursor_scan_match_tags(const struct block *block, uint32_t first,
                                             uint32_t from, uint32_t last) {
    uint8_t tag_first = board_hash_tag((uint64_t)from << 32);
    uint8_t width = (uint8_t)(board_hash_tag((uint64_t)last << 32) - tag_first);
    uint64_t matches = 0;
    for (uint32_t i = 0; i < SCAN_WINDOW && first + i < block->count; i++) {
        matches |= (uint64_t)((uint8_t)(block_tag(block, first + i) - tag_first) <= width) << i;
    }
    return matches;
}

/* The state of one candidate in board_cursor_scan_find. */
struct scan_leaf {
    const struct block *block;
    uint32_t first; /* the entry that the first bit is of */
    uint64_t matches;
};

static void board_cursor_scan_add_matches(const struct board *board, const struct scan_leaf *leaf,
                                          const struct scan_candidate *candidate,
                                          struct scan *scan) {
    for (uint64_t matches = leaf->matches; matches != 0; matches &= matches - 1) {
        uint32_t index = leaf->first + (uint32_t)__builtin_ctzll(matches);
        uint32_t offset = block_offset(leaf->block, index);
        char room[NAME_TEXT_ROOM];
        struct bytes member = name_text(block_member(leaf->block, index, offset), room);
        struct scan_item item = {
            .prefix = (uint32_t)(board_hash(board, member) >> 32),
            .index = index,
            .offset = offset,
            .name_size = (uint32_t)member.size,
            .at = leaf->block,
        };
        if (item.prefix >= candidate->from && item.prefix <= candidate->last) {
            map_scan_add(scan, &item);
        }
    }
}

static void board_cursor_scan_find(const void *owner, const struct scan_candidate *candidates,
                                   uint32_t count, struct scan *scan) {
    const struct board *board = owner;
    struct scan_leaf leaves[SCAN_CANDIDATES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        const struct block *block = board_leaf(board, candidates[i].id);
        leaves[i] = (struct scan_leaf){.block = block};
        if (block != NULL) {
            memory_prefetch_lines(block, sizeof *block + 2 * BLOCK_ENTRIES_MAX);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (leaves[i].block == NULL || !board_leaf_is_alive(board, candidates[i].id)) {
            continue;
        }
        leaves[i].matches = board_cursor_scan_match_tags(leaves[i].block, 0, candidates[i].from,
                                                         candidates[i].last);
        for (uint64_t matches = leaves[i].matches; matches != 0; matches &= matches - 1) {
            uint32_t index = (uint32_t)__builtin_ctzll(matches);
            const char *member = block_heap(leaves[i].block) + block_offset(leaves[i].block, index);
            memory_prefetch_lines(member, block_heap_size(block_code(leaves[i].block, index)));
            memory_prefetch(block_keys(leaves[i].block) + index);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        board_cursor_scan_add_matches(board, &leaves[i], &candidates[i], scan);
    }
}

/* Visit all members by rank. false: that would exceed one step. */
static bool board_cursor_scan_small(struct board_scan *scan, const struct scan_limits *limits) {
    const struct block *block = scan->board->leaf;
    uint64_t bytes = 0;
    if (block->count > SCAN_ITEMS_MAX) {
        return false;
    }
    uint32_t offset = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        bytes += name_size(block_member(block, i, offset));
        offset += block_heap_size(block_code(block, i));
    }
    if (map_scan_visit_work(limits, block->count, bytes) > limits->work_max) {
        return false;
    }
    offset = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        struct board_stored entry = board_entry_at(block, i, offset);
        scan->visit(scan->context, &entry);
        offset += block_heap_size(block_code(block, i));
    }
    return true;
}

uint64_t board_cursor_scan(const struct board *board, uint64_t cursor,
                           const struct scan_limits *limits, board_visit *visit, void *context) {
    struct board_scan own = {.board = board, .visit = visit, .context = context};
    struct scan scan;
    if (cursor >= SCAN_END || board_count(board) == 0) {
        return 0;
    }
    if (!board->is_large && cursor == 0 && board_cursor_scan_small(&own, limits)) {
        return 0;
    }
    map_scan_init(&scan, limits, board_cursor_scan_visit_entry, &own);
    if (board->is_large) {
        scan.owner = board;
        scan.fetch = board_cursor_scan_fetch;
        scan.find = board_cursor_scan_find;
        return map_scan_names(&scan, &board->large->map, cursor);
    }
    struct scan_candidate all = {.from = (uint32_t)cursor, .last = UINT32_MAX};
    uint64_t next;
    do {
        struct scan_leaf leaf = {.block = board->leaf};
        for (; leaf.first < leaf.block->count; leaf.first += SCAN_WINDOW) {
            leaf.matches =
                board_cursor_scan_match_tags(leaf.block, leaf.first, all.from, UINT32_MAX);
            board_cursor_scan_add_matches(board, &leaf, &all, &scan);
        }
        next = map_scan_items(&scan);
        all.from = (uint32_t)next;
    } while (map_scan_has_room(&scan));
    return next;
}
