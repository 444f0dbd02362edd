/* Prefetching for look-ups and changes. Each step reads only what an earlier step has fetched. A
 * small board is a single block, which the first step fetches directly. */
#include "skiplist/board_parts.h"
#include "skiplist/prefetch.h"

void board_prefetch_slots(const struct board *board, struct bytes member,
                          struct board_prefetch *state) {
    state->board = board;
    state->hash_seed = board->hash_seed;
    state->hash = board_hash(board, member);
    state->member = member;
    state->block = SKIPLIST_NONE;
    state->index = SKIPLIST_NONE;
    state->target = SKIPLIST_NONE;
    if (board->is_large)
        map_prefetch(&board->large->map, state->hash);
    else if (board->leaf != NULL)
        prefetch_lines(board->leaf, sizeof *board->leaf + 10 * BLOCK_ENTRIES_MAX);
}

void board_prefetch_descriptor(struct board_prefetch *state) {
    const struct board *board = state->board;
    struct map_find find;
    if (!board->is_large) {
        state->block = 0;
        return;
    }
    map_find(&board->large->map, state->hash, &find);
    if (!map_find_next(&find, &state->block)) {
        state->block = SKIPLIST_NONE;
        return;
    }
    prefetch_line(skiplist_node(&board->large->list, state->block));
}

void board_prefetch_block(const struct board_prefetch *state) {
    const struct board *board = state->board;
    if (board->is_large && state->block < board->large->list.node_end)
        skiplist_prefetch_leaf(&board->large->list, state->block);
}

void board_prefetch_entry(struct board_prefetch *state, bool is_change) {
    struct skiplist own;
    if (!skiplist_prefetch_entry(board_list(state->board, &own), state->block,
                                 board_hash_tag(state->hash), state->member.size, is_change,
                                 &state->index))
        state->index = SKIPLIST_NONE;
}

void board_prefetch_key(const struct board *board, uint64_t key) {
    if (board->is_large)
        skiplist_prefetch_place(&board->large->list, key);
}

void board_prefetch_way(const struct board *board, uint64_t key, struct board_way *way) {
    *way = (struct board_way){board, key, SKIPLIST_NONE};
    if (board->is_large)
        way->block = skiplist_prefetch_way(&board->large->list, key);
}

void board_prefetch_way_index(const struct board_way *way) {
    if (way->board->is_large)
        skiplist_prefetch_way_index(&way->board->large->list, way->block);
}

void board_prefetch_way_fences(const struct board_way *way) {
    if (way->board->is_large)
        skiplist_prefetch_way_fences(&way->board->large->list, way->block, way->key);
}

void board_prefetch_way_child(struct board_way *way) {
    if (way->board->is_large)
        way->block = skiplist_prefetch_way_child(&way->board->large->list, way->block, way->key);
}

void board_prefetch_way_line(const struct board_way *way) {
    if (way->board->is_large)
        skiplist_prefetch_way_line(&way->board->large->list, way->block);
}

void board_prefetch_way_keys(const struct board_way *way) {
    if (way->board->is_large)
        skiplist_prefetch_way_keys(&way->board->large->list, way->block);
}

void board_prefetch_way_leaf(struct board_way *way) {
    if (way->board->is_large)
        way->block = skiplist_prefetch_way_leaf(&way->board->large->list, way->block, way->key);
}

void board_prefetch_way_end(const struct board_way *way) {
    if (way->board->is_large)
        skiplist_prefetch_way_end(&way->board->large->list, way->block, way->key);
}
