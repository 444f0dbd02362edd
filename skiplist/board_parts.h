/* Private to the board: what it is made of.
 *
 *     small   board -> leaf block                   one leaf, 24 bytes beside it
 *     large   board -> large_board: skiplist, map   any number of leaves
 *
 * board.c looks up and changes, board_append.c fills new boards, board_walk.c reads along the
 * ranks, board_prefetch.c fetches ahead. What they do with the skiplist of a large board they do
 * with a list made on the stack for a small one: a list of one leaf is nothing but that leaf. */
#ifndef SKIPLIST_BOARD_PARTS_H
#define SKIPLIST_BOARD_PARTS_H

#include "skiplist/board.h"
#include "skiplist/map.h"
#include "skiplist/skiplist.h"

struct large_board {
    struct skiplist list;
    struct map map;       /* (hash of the member, id of its leaf) */
    struct board *board;  /* the one that points here */
    struct board *next;   /* in the chain of boards with remains */
    struct board **link;  /* what points to the board there; NULL: it is in none */
    uint32_t added_count; /* members added since additions last freed remains */
};

static inline bool board_is_latest(const struct board *board) {
    return board->layout->time.bits > 0 && board->layout->time.is_latest;
}

/* The board's list; for a small board a new one in *own, which board_keep_list takes over after a
 * change. */
static inline struct skiplist *board_list(const struct board *board, struct skiplist *own) {
    if (board->is_large)
        return &board->large->list;
    skiplist_init_leaf(own, board_is_latest(board), board->leaf);
    return own;
}

static inline void board_keep_list(struct board *board, const struct skiplist *list) {
    if (!board->is_large)
        board->leaf = skiplist_only_leaf(list);
}

/* The leaf with this id; NULL when there is none, whatever id is. A small board's has the id 0. */
static inline const struct block *board_leaf(const struct board *board, uint32_t id) {
    if (board->is_large)
        return skiplist_leaf(&board->large->list, id);
    return id == 0 ? board->leaf : NULL;
}

static inline bool board_has_dead(const struct board *board) {
    return board->is_large && skiplist_has_dead(&board->large->list);
}

/* Is the leaf with this id, which is in use, on the board? */
static inline bool board_leaf_is_alive(const struct board *board, uint32_t id) {
    return !board_has_dead(board) || skiplist_is_alive(&board->large->list, id);
}

/* Make a small board large, with the same leaf and nothing in its map. false: no memory, and it is
 * as it was. */
MUST_CHECK bool board_make_large(struct board *board);
/* Index all members of a large board that has no entry in its map yet. false: no memory. */
MUST_CHECK bool board_fill_map(struct board *board);
/* Index the members of one leaf; there is room. *id is the next leaf then. Returns how many. */
uint32_t board_index_leaf(struct board *board, uint32_t *id);

/* Hash count members of a block from index on. */
void board_hash_members(const struct board *board, const struct block *block, uint32_t index,
                        uint32_t count, uint64_t *hashes);
uint64_t board_hash(const struct board *board, struct bytes member);

/* The block's tag: bits that neither the map's home bucket nor its tag is made of. */
static inline uint8_t board_hash_tag(uint64_t hash) {
    return (uint8_t)hash;
}

#endif
