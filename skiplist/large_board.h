/* What is inside a board, for those that read or change it: private to this room.
 *
 *     small   board -> leaf block                   one leaf of up to 240 entries, 24 bytes beside it
 *     large   board -> large_board: skiplist, map   any number of leaves
 *
 * board.c looks up and changes, board_append.c loads, board_cursor.c reads in order, lookup.c looks up many members in
 * stages. For a small board they use a temporary skiplist on the stack: a list of one leaf consists of nothing but
 * that leaf. */
#ifndef SKIPLIST_LARGE_BOARD_H
#define SKIPLIST_LARGE_BOARD_H

#include "skiplist/board.h"
#include "skiplist/map.h"
#include "skiplist/skiplist.h"

struct large_board {
    struct skiplist list;
    struct map map;       /* (hash of the member, id of its leaf) */
    struct board *board;  /* back pointer */
    struct board *next;   /* next board with remains */
    struct board **link;  /* the pointer to this board in that list; NULL: not in a list */
    uint32_t added_count; /* members added since an addition last freed remains */
};

/* The board's list. For a small board a temporary one in *own, which board_keep_list stores back
 * after a change. */
static inline struct skiplist *board_list(const struct board *board, struct skiplist *own) {
    if (board->is_large) {
        return &board->large->list;
    }
    skiplist_init_leaf(own, board_is_latest(board), board->leaf);
    own->is_small = true;
    return own;
}

static inline void board_keep_list(struct board *board, const struct skiplist *list) {
    if (!board->is_large) {
        board->leaf = skiplist_only_leaf(list);
    }
}

/* The leaf with this id; NULL if there is none, for any id. The leaf of a small board has id 0. */
static inline const struct block *board_leaf(const struct board *board, uint32_t id) {
    if (board->is_large) {
        return skiplist_leaf(&board->large->list, id);
    }
    return id == 0 ? board->leaf : NULL;
}

static inline bool board_has_detached(const struct board *board) {
    return board->is_large && skiplist_has_detached(&board->large->list);
}

/* The list's tags; NULL: nobody has a value. */
static inline const struct tags *board_tags(const struct board *board) {
    return board->is_large ? board->large->list.tags : NULL;
}

/* Is the leaf with this id, which is in use, on the board (not detached)? */
static inline bool board_leaf_is_alive(const struct board *board, uint32_t id) {
    return !board_has_detached(board) || skiplist_is_alive(&board->large->list, id);
}

/* ---- places and entries ---- */

/* Most limits asked for are open: they lie beyond every key. */
static inline bool board_is_above_all(const struct skiplist *list, uint64_t key) {
    const struct block *first = skiplist_leaf(list, list->first);
    return first == NULL || key > block_keys(first)[0];
}

static inline bool board_is_below_all(const struct skiplist *list, uint64_t key) {
    const struct block *last = skiplist_leaf(list, list->last);
    return last == NULL || key < block_keys(last)[last->count - 1];
}

static inline struct skiplist_place board_place_at(const struct board *board, uint32_t rank) {
    CHECK(rank < board_count(board));
    if (!board->is_large) {
        return (struct skiplist_place){.leaf = 0, .index = rank};
    }
    return skiplist_at(&board->large->list, rank);
}

/* Where a member that was looked up is. */
static inline struct skiplist_place board_place_of(const struct board_member *member) {
    return (struct skiplist_place){.leaf = member->leaf, .index = member->index};
}

static inline struct board_stored board_entry_at(const struct block *block, uint32_t index,
                                                 uint32_t offset) {
    return (struct board_stored){
        .key = block_keys(block)[index],
        .member = block_member(block, index, offset),
    };
}

/* ---- its life ---- */

/* Convert a small board to a large one, whose map has its members and whose leaves have room. false: no
 * memory; the board is unchanged. */
MUST_CHECK bool board_make_itself_large(struct board *board);
/* The same; with a map of its members if it is to be indexed. Its leaf, if it is too large for a skiplist, is divided into
 * leaves of so many entries. */
MUST_CHECK bool board_enlarge(struct board *board, uint32_t leaf_entries, bool is_indexed);
/* Index all members of a large board whose map is empty. false: no memory. */
MUST_CHECK bool board_fill_map(struct board *board);
/* Index the members of one leaf, for which the map has room. Sets *id to the next leaf; returns the
 * number of members. */
uint32_t board_index_leaf(struct board *board, uint32_t *id);
/* Make a large board without tags and remains small, if its members fit one leaf. false: they do not, or
 * there is no memory; the board is unchanged. */
bool board_make_small(struct board *board);

uint64_t board_hash(const struct board *board, struct bytes member);

/* The block's tag: the highest of the bits that select the home bucket in the map. A scan knows
 * those bits, so it need not hash every member of a leaf. Look-ups lose nothing: the other members
 * of the leaf have other home buckets. */
static inline uint8_t board_hash_tag(uint64_t hash) {
    return (uint8_t)(hash >> 56);
}

#endif
