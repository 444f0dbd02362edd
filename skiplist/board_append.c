/* Bulk loading in rank order: leaf by leaf, with all members indexed at the end. */
#include "codec/memory.h"
#include "skiplist/board_parts.h"

enum {
    /* Worst-case cost of allocating a segment of the map, in members to be indexed: first touches
     * of its 64 KiB take half a millisecond if the pool's keeper has fallen behind. */
    SEGMENT_WORK = 3 * MAP_SEGMENT_BUCKETS,
};

/* Entries for one leaf. */
struct leaf_fill {
    struct block_entry entries[BLOCK_ENTRIES_MAX];
    uint32_t count;
    uint32_t heap;
    struct packed_name forms[BLOCK_ENTRIES_MAX];
    char long_bytes[BLOCK_ENTRIES_MAX][BLOCK_LONG_SIZE];
};

/* Add one more entry. is_full: there is no room for it. false: no memory. */
static bool board_append_put_entry(struct leaf_fill *fill, const struct board *board,
                                   const struct board_entry *from, bool *is_full) {
    uint32_t index = fill->count;
    *is_full = index == BLOCK_ENTRIES_MAX;
    if (*is_full) {
        return true;
    }
    name_pack(from->member, &fill->forms[index]);
    struct name member = name_from(from->member, &fill->forms[index]);
    *is_full = fill->heap + block_heap_size(member.code) > BLOCK_HEAP_MAX;
    if (*is_full) {
        return true;
    }
    if (member.code == NAME_LONG) {
        if (!block_long_create(member, fill->long_bytes[index])) {
            return false;
        }
        member.at = fill->long_bytes[index];
    }
    fill->entries[index] = (struct block_entry){
        .key = from->key,
        .at = member.at,
        .tag = board_hash_tag(board_hash(board, from->member)),
        .code = member.code,
    };
    fill->count = index + 1;
    fill->heap += block_heap_size(member.code);
    return true;
}

static void board_append_drop_entries(struct leaf_fill *fill) {
    for (uint32_t i = 0; i < fill->count; i++) {
        if (fill->entries[i].code == NAME_LONG) {
            block_long_destroy(fill->entries[i].at);
        }
    }
}

/* Append a leaf. false: no memory. */
static bool board_append_leaf(struct board *board, const struct leaf_fill *fill) {
    struct skiplist own;
    if (!board->is_large && board->leaf != NULL && !board_make_large(board)) {
        return false;
    }
    struct skiplist *list = board_list(board, &own);
    if (!skiplist_append(list, fill->entries, fill->count)) {
        return false;
    }
    board_keep_list(board, list);
    return true;
}

enum board_status board_append(struct board *board, const struct board_entry *entries,
                               uint32_t count) {
    if (count > BOARD_MEMBERS_MAX - board_count(board)) {
        return BOARD_FULL;
    }
    while (count > 0) {
        struct leaf_fill fill;
        bool has_memory = true;
        bool is_full = false;
        fill.count = 0;
        fill.heap = 0;
        while (count > 0 && has_memory && !is_full) {
            has_memory = board_append_put_entry(&fill, board, entries, &is_full);
            entries += !is_full;
            count -= !is_full;
        }
        if (!has_memory || !board_append_leaf(board, &fill)) {
            board_append_drop_entries(&fill);
            return BOARD_OUT_OF_MEMORY;
        }
    }
    return BOARD_OK;
}

/* A value (board_tag_at) has made the board large, and its members known, while it had one leaf: all are
 * indexed in the end. */
static void board_append_forget_index(struct board *board) {
    if (board->is_large && map_count(&board->large->map) > 0) {
        map_deinit(&board->large->map);
    }
}

enum board_status board_append_end(struct board *board) {
    board_append_forget_index(board);
    return !board->is_large || board_fill_map(board) ? BOARD_OK : BOARD_OUT_OF_MEMORY;
}

/* One step of preparing a map for all members. Returns the work done. */
static uint32_t board_append_prepare_map(struct large_board *large, enum board_status *status,
                                         bool *is_ready) {
    if (!map_prepare(&large->map, large->list.count, large->list.node_end, is_ready)) {
        *status = BOARD_OUT_OF_MEMORY;
    }
    return SEGMENT_WORK;
}

enum board_status board_append_end_step(struct board *board, struct board_indexing *progress,
                                        uint32_t work_max, bool *is_done) {
    enum board_status status = BOARD_OK;
    *is_done = !board->is_large;
    for (uint32_t work = 0; !*is_done && work < work_max && status == BOARD_OK;) {
        if (!progress->has_begun) {
            board_append_forget_index(board);
            work += board_append_prepare_map(board->large, &status, &progress->has_begun);
            progress->next_leaf = board->large->list.first;
        } else {
            uint32_t count = board_index_leaf(board, &progress->next_leaf);
            progress->indexed_count += count;
            work += count;
            *is_done = progress->next_leaf == SKIPLIST_NONE;
        }
    }
    return status;
}
