/* Reading a board by rank and in scan order. */
#include "codec/check.h"
#include "skiplist/large_board.h"
#include "skiplist/prefetch.h"
#include "skiplist/run.h"

/* ---- ranges ---- */

/* Most limits asked for are open: they lie beyond every key. */
static bool board_walk_is_above_all(const struct skiplist *list, uint64_t key) {
    const struct block *first = skiplist_leaf(list, list->first);
    return first == NULL || key > block_keys(first)[0];
}

static bool board_walk_is_below_all(const struct skiplist *list, uint64_t key) {
    const struct block *last = skiplist_leaf(list, list->last);
    return last == NULL || key < block_keys(last)[last->count - 1];
}

static uint32_t board_walk_count_above(const struct board *board, uint64_t key, bool or_equal) {
    struct skiplist own;
    const struct skiplist *list = board_list(board, &own);
    if (board_walk_is_above_all(list, key)) {
        return 0;
    }
    if (board_walk_is_below_all(list, key)) {
        return list->count;
    }
    return skiplist_rank(list, skiplist_place_above(list, key, or_equal));
}

uint32_t board_count_above(const struct board *board, uint64_t key) {
    return board_walk_count_above(board, key, false);
}

uint32_t board_count_from(const struct board *board, uint64_t key) {
    return board_walk_count_above(board, key, true);
}

static struct skiplist_place board_walk_place_at(const struct board *board, uint32_t rank) {
    CHECK(rank < board_count(board));
    if (!board->is_large) {
        return (struct skiplist_place){.leaf = 0, .index = rank};
    }
    return skiplist_at(&board->large->list, rank);
}

static struct board_stored board_walk_entry_at(const struct block *block, uint32_t index,
                                               uint32_t offset) {
    return (struct board_stored){
        .key = block_keys(block)[index],
        .member = block_member(block, index, offset),
    };
}

struct board_stored board_at(const struct board *board, uint32_t rank) {
    struct skiplist_place place = board_walk_place_at(board, rank);
    const struct block *block = board_leaf(board, place.leaf);
    return board_walk_entry_at(block, place.index, block_offset(block, place.index));
}

_Static_assert((int)BOARD_AT_MAX <= (int)SKIPLIST_AT_MAX, "places are found at once");

void board_at_many(const struct board *board, const uint32_t *ranks, uint32_t count,
                   struct board_stored *entries) {
    struct skiplist_place places[BOARD_AT_MAX];
    uint32_t offsets[BOARD_AT_MAX];
    CHECK(count <= BOARD_AT_MAX);
    if (!board->is_large) {
        for (uint32_t i = 0; i < count; i++) {
            entries[i] = board_at(board, ranks[i]);
        }
        return;
    }
    skiplist_at_many(&board->large->list, ranks, count, places);
    for (uint32_t i = 0; i < count; i++) {
        const struct block *block = board_leaf(board, places[i].leaf);
        uint32_t index = places[i].index;
        offsets[i] = block_offset(block, index);
        prefetch_line(block_keys(block) + index);
        prefetch_lines(block_heap(block) + offsets[i], block_heap_size(block_code(block, index)));
    }
    for (uint32_t i = 0; i < count; i++) {
        entries[i] =
            board_walk_entry_at(board_leaf(board, places[i].leaf), places[i].index, offsets[i]);
    }
}

/* While a walk is in one block, prefetch the next one: first its node, and some entries later the
 * first lines of the block. Once it is being read, the hardware prefetcher takes over. */
static void board_walk_fetch_nodes(const struct board_cursor *cursor) {
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

static void board_walk_fetch_ahead(const struct board_cursor *cursor, uint32_t id) {
    if (cursor->index % 8 == 4) {
        const struct block *ahead = board_leaf(cursor->board, id);
        if (ahead != NULL) {
            prefetch_lines(ahead, sizeof *ahead + 10 * BLOCK_ENTRIES_MAX);
        }
    }
}

/* To the entry that has this index, counted from the first of this block, which may be NULL. */
static void board_walk_set_cursor(struct board_cursor *cursor, const struct block *block,
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
    board_walk_fetch_nodes(cursor);
}

void board_seek(const struct board *board, uint32_t rank, struct board_cursor *cursor) {
    *cursor = (struct board_cursor){.board = board};
    if (rank >= board_count(board)) {
        return;
    }
    struct skiplist_place place = board_walk_place_at(board, rank);
    board_walk_set_cursor(cursor, board_leaf(board, place.leaf), place.index);
}

void board_seek_key(const struct board *board, uint64_t key, struct board_cursor *cursor) {
    struct skiplist own;
    const struct skiplist *list = board_list(board, &own);
    *cursor = (struct board_cursor){.board = board};
    if (board_walk_is_below_all(list, key)) {
        return;
    }
    struct skiplist_place place = {.leaf = list->first};
    if (!board_walk_is_above_all(list, key)) {
        place = skiplist_place_above(list, key, false);
    }
    board_walk_set_cursor(cursor, board_leaf(board, place.leaf), place.index);
}

bool board_cursor_read(const struct board_cursor *cursor, struct board_stored *entry) {
    if (cursor->block == NULL) {
        return false;
    }
    *entry = board_walk_entry_at(cursor->block, cursor->index, cursor->member_offset);
    return true;
}

void board_cursor_next(struct board_cursor *cursor) {
    const struct block *block = cursor->block;
    if (block == NULL) {
        return;
    }
    cursor->member_offset += block_heap_size(block_code(block, cursor->index));
    if (++cursor->index < block->count) {
        board_walk_fetch_ahead(cursor, block->links.next);
        return;
    }
    cursor->block = board_leaf(cursor->board, block->links.next);
    cursor->index = 0;
    cursor->member_offset = 0;
    board_walk_fetch_nodes(cursor);
}

void board_cursor_skip(struct board_cursor *cursor, uint32_t count) {
    board_walk_set_cursor(cursor, cursor->block, cursor->index + count);
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
        board_walk_fetch_nodes(cursor);
    }
    cursor->index--;
    cursor->member_offset -= block_heap_size(block_code(block, cursor->index));
    board_walk_fetch_ahead(cursor, block->links.previous);
}

/* CURSOR_AT_EDGE: the cursor has reached a block through a run and has not read it yet.
 * OFFSET_UNKNOWN: the offset of its entry has not been computed, because it may never be needed. */
#define CURSOR_AT_EDGE UINT32_MAX
#define OFFSET_UNKNOWN UINT32_MAX

static void board_walk_settle_cursor(struct board_cursor *cursor, bool is_best_first) {
    const struct block *block = cursor->block;
    if (cursor->index == CURSOR_AT_EDGE) {
        cursor->index = is_best_first ? 0 : block->count - 1U;
        cursor->member_offset = is_best_first ? 0 : OFFSET_UNKNOWN;
    }
    if (cursor->member_offset == OFFSET_UNKNOWN) {
        cursor->member_offset = block_offset(block, cursor->index);
    }
}

/* Move the cursor to the block with this id and prefetch it. */
static void board_walk_leave_block(struct board_cursor *cursor, uint32_t id) {
    const struct block *block = board_leaf(cursor->board, id);
    cursor->block = block;
    cursor->index = CURSOR_AT_EDGE;
    if (block != NULL) {
        prefetch_lines(block, sizeof *block + 10 * BLOCK_ENTRIES_MAX);
    }
}

bool board_cursor_run(struct board_cursor *cursor, bool is_best_first, uint32_t count_max,
                      struct board_run *run) {
    const struct block *block = cursor->block;
    if (block == NULL) {
        return false;
    }
    board_walk_settle_cursor(cursor, is_best_first);
    uint32_t ahead = is_best_first ? block->links.next : block->links.previous;
    uint32_t here = is_best_first ? block->count - cursor->index : cursor->index + 1;
    uint32_t count = here < count_max ? here : count_max;
    /* A backward walk is positioned behind its next entry. */
    uint32_t index = is_best_first ? cursor->index : cursor->index + 1;
    uint32_t last_size = is_best_first ? 0 : block_heap_size(block_code(block, cursor->index));
    *run = (struct board_run){
        .marks = block_marks(block) + index,
        .keys = block_keys(block) + index,
        .members = block_heap(block) + cursor->member_offset + last_size,
        .count = count,
        .is_best_first = is_best_first,
    };
    if (count == here) {
        board_walk_leave_block(cursor, ahead);
        return true;
    }
    cursor->index = is_best_first ? cursor->index + count : cursor->index - count;
    cursor->member_offset = OFFSET_UNKNOWN;
    return true;
}

/* ---- scanning ---- */

struct board_scan {
    const struct board *board;
    board_visit *visit;
    void *context;
};

static void board_walk_scan_visit_entry(void *context, const struct scan_item *item) {
    const struct board_scan *scan = context;
    struct board_stored entry = board_walk_entry_at(item->at, item->index, item->offset);
    scan->visit(scan->context, &entry);
}

static void board_walk_scan_fetch_node(const void *owner, uint32_t id) {
    const struct board *board = owner;
    if (id < board->large->list.node_end) {
        prefetch_line(skiplist_node(&board->large->list, id));
    }
}

/* Bitmap of the entries of a leaf whose tags admit a hash in the range. */
static uint64_t board_walk_match_tags(const struct block *block, uint32_t from, uint32_t last) {
    uint8_t tag_first = board_hash_tag((uint64_t)from << 32);
    uint8_t width = (uint8_t)(board_hash_tag((uint64_t)last << 32) - tag_first);
    uint64_t matches = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        matches |= (uint64_t)((uint8_t)(block_tag(block, i) - tag_first) <= width) << i;
    }
    return matches;
}

/* The state of one candidate in board_walk_find_members. */
struct scan_leaf {
    const struct block *block;
    uint64_t matches;
};

static void board_walk_fetch_matches(const struct scan_leaf *leaf) {
    for (uint64_t matches = leaf->matches; matches != 0; matches &= matches - 1) {
        uint32_t index = (uint32_t)__builtin_ctzll(matches);
        const char *member = block_heap(leaf->block) + block_offset(leaf->block, index);
        prefetch_lines(member, block_heap_size(block_code(leaf->block, index)));
        prefetch_line(block_keys(leaf->block) + index);
    }
}

static void board_walk_add_matches(const struct board *board, const struct scan_leaf *leaf,
                                   const struct scan_candidate *candidate, struct scan *scan) {
    for (uint64_t matches = leaf->matches; matches != 0; matches &= matches - 1) {
        uint32_t index = (uint32_t)__builtin_ctzll(matches);
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
            scan_add(scan, &item);
        }
    }
}

static void board_walk_find_members(const void *owner, const struct scan_candidate *candidates,
                                    uint32_t count, struct scan *scan) {
    const struct board *board = owner;
    struct scan_leaf leaves[SCAN_CANDIDATES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        const struct block *block = board_leaf(board, candidates[i].id);
        leaves[i] = (struct scan_leaf){.block = block};
        if (block != NULL) {
            prefetch_lines(block, sizeof *block + 2 * BLOCK_ENTRIES_MAX);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (leaves[i].block == NULL || !board_leaf_is_alive(board, candidates[i].id)) {
            continue;
        }
        leaves[i].matches =
            board_walk_match_tags(leaves[i].block, candidates[i].from, candidates[i].last);
        board_walk_fetch_matches(&leaves[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        board_walk_add_matches(board, &leaves[i], &candidates[i], scan);
    }
}

/* Visit all members by rank. false: that would exceed one step. */
static bool board_walk_scan_small(struct board_scan *scan, const struct scan_limits *limits) {
    const struct block *block = scan->board->leaf;
    uint64_t bytes = 0;
    uint32_t offset = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        bytes += name_size(block_member(block, i, offset));
        offset += block_heap_size(block_code(block, i));
    }
    if (scan_visit_work(limits, block->count, bytes) > limits->work_max) {
        return false;
    }
    offset = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        struct board_stored entry = board_walk_entry_at(block, i, offset);
        scan->visit(scan->context, &entry);
        offset += block_heap_size(block_code(block, i));
    }
    return true;
}

uint64_t board_scan(const struct board *board, uint64_t cursor, const struct scan_limits *limits,
                    board_visit *visit, void *context) {
    struct board_scan own = {.board = board, .visit = visit, .context = context};
    struct scan scan;
    if (cursor >= SCAN_END || board_count(board) == 0) {
        return 0;
    }
    if (!board->is_large && cursor == 0 && board_walk_scan_small(&own, limits)) {
        return 0;
    }
    scan_init(&scan, limits, board_walk_scan_visit_entry, &own);
    if (board->is_large) {
        scan.owner = board;
        scan.fetch = board_walk_scan_fetch_node;
        scan.find = board_walk_find_members;
        return scan_map(&scan, &board->large->map, cursor);
    }
    struct scan_leaf leaf = {.block = board->leaf};
    leaf.matches = board_walk_match_tags(leaf.block, 0, UINT32_MAX);
    struct scan_candidate all = {.from = (uint32_t)cursor, .last = UINT32_MAX};
    board_walk_add_matches(board, &leaf, &all, &scan);
    return scan_items(&scan);
}
