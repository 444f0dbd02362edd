/* Loading a board in the order of ranks: leaf by leaf, with all members indexed at the end. */
#include "codec/memory.h"
#include "skiplist/large_board.h"

/* Entries for one leaf. */
struct leaf_fill {
    struct block_entry entries[BLOCK_ENTRIES_MAX];
    uint32_t count;
    uint32_t heap;
    uint32_t count_max, heap_max;
    struct packed_name forms[BLOCK_ENTRIES_MAX];
    char long_bytes[BLOCK_ENTRIES_MAX][BLOCK_LONG_SIZE];
};

/* Add one more entry. is_full: there is no room for it. false: no memory. */
static bool board_append_put_entry(struct leaf_fill *fill, const struct board *board,
                                   const struct board_entry *from, bool *is_full) {
    uint32_t index = fill->count;
    *is_full = index == fill->count_max;
    if (*is_full) {
        return true;
    }
    name_pack(from->member, &fill->forms[index]);
    struct name member = name_from(from->member, &fill->forms[index]);
    *is_full = fill->heap + block_heap_size(member.code) > fill->heap_max;
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

/* Append a leaf. false: no memory. */
static bool board_append_leaf(struct board *board, const struct leaf_fill *fill, bool is_indexed) {
    struct skiplist own;
    if (!board->is_large && board->leaf != NULL) {
        /* May its only leaf take these entries, too? */
        struct block *leaf = board->leaf;
        bool has_long = leaf->long_count > 0;
        for (uint32_t i = 0; i < fill->count && !has_long; i++) {
            has_long = fill->entries[i].code == NAME_LONG;
        }
        if (!has_long && leaf->count + fill->count <= BLOCK_ALONE_ENTRIES_MAX &&
            leaf->heap_used + fill->heap <= BLOCK_ALONE_HEAP_MAX) {
            struct block *larger =
                block_create(leaf->count + fill->count, leaf->heap_used + fill->heap);
            if (larger == NULL) {
                return false;
            }
            larger->links = leaf->links;
            block_copy(larger, 0, leaf, 0, leaf->count);
            for (uint32_t i = 0; i < fill->count; i++) {
                CHECK(fill->entries[i].key <= block_keys(larger)[larger->count - 1]);
                block_insert(larger, larger->count, &fill->entries[i]);
            }
            board->leaf = larger;
            memory_free(leaf);
            return true;
        }
        if (!(is_indexed ? board_make_itself_large(board)
                         : board_enlarge(board, BLOCK_ENTRIES_MAX, false))) {
            return false;
        }
    }
    struct skiplist *list = board_list(board, &own);
    is_indexed = is_indexed && board->is_large;
    /* For each entry, as each pays for a step of the map's growth. */
    for (uint32_t i = 0; i < fill->count && is_indexed; i++) {
        if (!map_reserve(&board->large->map, fill->count,
                         list->node_end + SKIPLIST_LEVELS_MAX + 1)) {
            return false;
        }
    }
    if (!skiplist_append(list, fill->entries, fill->count)) {
        return false;
    }
    board_keep_list(board, list);
    if (is_indexed) {
        uint32_t id = list->last;
        (void)board_index_leaf(board, &id);
    }
    return true;
}

static enum board_status board_append_leaves(struct board *board, const struct board_entry *entries,
                                             uint32_t count, bool is_indexed) {
    if (count > BOARD_MEMBERS_MAX - board_count(board)) {
        return BOARD_FULL;
    }
    while (count > 0) {
        /* As full as random growth would leave it: of leaves one after another, each number between the limits is as
         * frequent as the others; and no few that are left are a leaf of their own. */
        enum { CHOICES = BLOCK_LOADED_MAX - BLOCK_LOADED_MIN + 1, STRIDE = 11 };
        uint32_t leaf = board->is_large ? board->large->list.node_end : 0;
        uint32_t count_max = BLOCK_LOADED_MIN + (leaf % CHOICES) * STRIDE % CHOICES;
        if (count <= BLOCK_LOADED_MAX) {
            count_max = BLOCK_LOADED_MAX;
        } else if (count < count_max + BLOCK_LOADED_MIN) {
            count_max = (count + 1) / 2;
        }
        struct leaf_fill fill;
        fill.count = fill.heap = 0;
        fill.count_max = count_max;
        fill.heap_max = BLOCK_HEAP_MAX * count_max / BLOCK_ENTRIES_MAX;
        bool has_memory = true;
        bool is_full = false;
        while (count > 0 && has_memory && !is_full) {
            has_memory = board_append_put_entry(&fill, board, entries, &is_full);
            entries += !is_full;
            count -= !is_full;
        }
        if (!has_memory || !board_append_leaf(board, &fill, is_indexed)) {
            for (uint32_t i = 0; i < fill.count; i++) {
                if (fill.entries[i].code == NAME_LONG) {
                    block_long_destroy(fill.entries[i].at);
                }
            }
            return BOARD_OUT_OF_MEMORY;
        }
    }
    return BOARD_OK;
}

enum board_status board_append(struct board *board, const struct board_entry *entries,
                               uint32_t count) {
    return board_append_leaves(board, entries, count, false);
}

enum board_status board_append_indexed(struct board *board, const struct board_entry *entries,
                                       uint32_t count) {
    return board_append_leaves(board, entries, count, true);
}

/* A value (tags_set_at) has made the board large, and its members known, while it had one leaf: all are
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

enum board_status board_append_end_step(struct board *board, struct board_indexing *progress,
                                        uint32_t work_max, bool *is_done) {
    enum board_status status = BOARD_OK;
    *is_done = !board->is_large;
    for (uint32_t work = 0; !*is_done && work < work_max && status == BOARD_OK;) {
        if (!progress->has_begun) {
            board_append_forget_index(board);
            const struct skiplist *list = &board->large->list;
            if (!map_prepare(&board->large->map, list->count, list->node_end,
                             &progress->has_begun)) {
                status = BOARD_OUT_OF_MEMORY;
            }
            progress->next_leaf = list->first;
            /* The worst case, in members to be indexed: first touches of a segment's 64 KiB take half a millisecond if
             * the pool's keeper has fallen behind. */
            work += 3 * MAP_SEGMENT_BUCKETS;
        } else {
            uint32_t count = board_index_leaf(board, &progress->next_leaf);
            progress->indexed_count += count;
            work += count;
            *is_done = progress->next_leaf == SKIPLIST_NONE;
        }
    }
    return status;
}
