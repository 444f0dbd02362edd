/* Scanning a board: see skiplist/scan.h. */
#include "skiplist/large_board.h"
#include "skiplist/prefetch.h"
#include "skiplist/scan.h"

struct board_scan {
    const struct board *board;
    board_visit *visit;
    void *context;
};

static void board_scan_visit_entry(void *context, const struct scan_item *item) {
    const struct board_scan *scan = context;
    struct board_stored entry = board_entry_at(item->at, item->index, item->offset);
    scan->visit(scan->context, &entry);
}

static void board_scan_fetch_node(const void *owner, uint32_t id) {
    const struct board *board = owner;
    if (id < board->large->list.node_end) {
        prefetch_line(skiplist_node(&board->large->list, id));
    }
}

enum { SCAN_WINDOW = 64 };
/* Bitmap of the entries of a leaf, from one on, whose tags admit a hash in the range. */
static uint64_t board_scan_match_tags(const struct block *block, uint32_t first, uint32_t from,
                                      uint32_t last) {
    uint8_t tag_first = board_hash_tag((uint64_t)from << 32);
    uint8_t width = (uint8_t)(board_hash_tag((uint64_t)last << 32) - tag_first);
    uint64_t matches = 0;
    for (uint32_t i = 0; i < SCAN_WINDOW && first + i < block->count; i++) {
        matches |= (uint64_t)((uint8_t)(block_tag(block, first + i) - tag_first) <= width) << i;
    }
    return matches;
}

/* The state of one candidate in board_scan_find_members. */
struct scan_leaf {
    const struct block *block;
    uint32_t first; /* the entry that the first bit is of */
    uint64_t matches;
};

static void board_scan_add_matches(const struct board *board, const struct scan_leaf *leaf,
                                   const struct scan_candidate *candidate, struct scan *scan) {
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
            scan_add(scan, &item);
        }
    }
}

static void board_scan_find_members(const void *owner, const struct scan_candidate *candidates,
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
            board_scan_match_tags(leaves[i].block, 0, candidates[i].from, candidates[i].last);
        for (uint64_t matches = leaves[i].matches; matches != 0; matches &= matches - 1) {
            uint32_t index = (uint32_t)__builtin_ctzll(matches);
            const char *member = block_heap(leaves[i].block) + block_offset(leaves[i].block, index);
            prefetch_lines(member, block_heap_size(block_code(leaves[i].block, index)));
            prefetch_line(block_keys(leaves[i].block) + index);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        board_scan_add_matches(board, &leaves[i], &candidates[i], scan);
    }
}

/* Visit all members by rank. false: that would exceed one step. */
static bool board_scan_small(struct board_scan *scan, const struct scan_limits *limits) {
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
    if (scan_visit_work(limits, block->count, bytes) > limits->work_max) {
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

uint64_t board_scan(const struct board *board, uint64_t cursor, const struct scan_limits *limits,
                    board_visit *visit, void *context) {
    struct board_scan own = {.board = board, .visit = visit, .context = context};
    struct scan scan;
    if (cursor >= SCAN_END || board_count(board) == 0) {
        return 0;
    }
    if (!board->is_large && cursor == 0 && board_scan_small(&own, limits)) {
        return 0;
    }
    scan_init(&scan, limits, board_scan_visit_entry, &own);
    if (board->is_large) {
        scan.owner = board;
        scan.fetch = board_scan_fetch_node;
        scan.find = board_scan_find_members;
        return scan_map(&scan, &board->large->map, cursor);
    }
    struct scan_candidate all = {.from = (uint32_t)cursor, .last = UINT32_MAX};
    uint64_t next;
    do {
        struct scan_leaf leaf = {.block = board->leaf};
        for (; leaf.first < leaf.block->count; leaf.first += SCAN_WINDOW) {
            leaf.matches = board_scan_match_tags(leaf.block, leaf.first, all.from, UINT32_MAX);
            board_scan_add_matches(board, &leaf, &all, &scan);
        }
        next = scan_items(&scan);
        all.from = (uint32_t)next;
    } while (scan_has_room(&scan));
    return next;
}
