/* A board: members with packed 64-bit keys, best first.
 *
 *     rank    0        1        2        3
 *     key   [ 900    | 700    | 700    | 120   ]     keys in descending order
 *     member  zoe      ann      bob      kim         equal keys: in arrival order
 *
 * The member index (a hash map) maps a member to the block that holds it. The span-indexed block
 * skiplist maps a block to its rank, and a rank or a key to a block. A small board is a single
 * block and has neither.
 *
 * The board knows nothing of clocks, names or text: it holds keys packed by codec/layout.h. Ranks
 * are 0-based, best first. Returned pointers to members are borrowed until the next change of the
 * board. Not thread-safe; one thread owns a board at a time. */
#ifndef SKIPLIST_BOARD_H
#define SKIPLIST_BOARD_H

#include "codec/bytes.h"
#include "codec/layout.h"
#include "codec/name.h"
#include "skiplist/map.h"

enum {
    BOARD_MEMBER_MAX = 65536, /* bytes; at least 1 */
};
/* Most members on one board. */
#define BOARD_MEMBERS_MAX UINT32_MAX

/* A server may hold a million boards of ten members, so this struct and one block header are the
 * only overhead of a small board. The fields are private (skiplist/large_board.h). */
struct board {
    const struct layout *layout;
    uint64_t hash_seed : 62;
    uint64_t is_dense : 1;
    uint64_t is_large : 1;
    union {
        struct block *leaf;        /* small: the only leaf; NULL: no members */
        struct large_board *large; /* large: the skiplist and the index */
    };
};
#define BOARD_SEED_MASK (UINT64_MAX >> 2)

enum board_status {
    BOARD_OK = 0,
    BOARD_OUT_OF_MEMORY,
    BOARD_FULL, /* already BOARD_MEMBERS_MAX members */
};

/* An entry to be put. */
struct board_entry {
    uint64_t key;
    struct bytes member; /* borrowed */
};

/* The entry at one rank, as it is stored. */
struct board_stored {
    uint64_t key;
    struct name member; /* borrowed until the next change; name_text is its text */
};

/* An empty board, which holds no memory and is not dense. layout is borrowed and must outlive the board. hash_seed:
 * random, secret. */
void board_init(struct board *board, const struct layout *layout, uint64_t hash_seed);
/* Free everything; the board is then empty. */
void board_deinit(struct board *board);
/* The same for about work_max members at a time; true when done. Between calls the board may not be
 * used for anything else. */
MUST_CHECK bool board_deinit_step(struct board *board, uint32_t work_max);

/* Move the board to `to`, which is overwritten without being freed; board is then empty. */
void board_move_to(struct board *board, struct board *to);
/* Overwrite copy (without freeing it) with a board of the same layout, members, keys and arrival
 * order, dense or not as this one. false: no memory; copy is then empty. */
MUST_CHECK bool board_copy(const struct board *board, struct board *copy);

const struct layout *board_layout(const struct board *board);
static inline bool board_is_latest(const struct board *board) {
    return board->layout->time.bits > 0 && board->layout->time.is_latest;
}
/* Use another layout for the board's keys from now on. It must outlive the board and may differ
 * from the old one only in START. */
void board_set_layout(struct board *board, const struct layout *layout);
uint32_t board_count(const struct board *board);
/* Heap bytes held for the board, including remains of removed members, excluding the struct
 * itself. */
size_t board_memory_size(const struct board *board);

/* The member's packed key; false: not on the board. */
MUST_CHECK bool board_find(const struct board *board, struct bytes member, uint64_t *key);

/* The result of looking up a member, for later calls that depend on it. Valid until the next change
 * of the board. */
struct board_member {
    struct bytes name;
    uint64_t key; /* its current key */
    bool is_there;
    uint64_t hash; /* seeded hash of the name; the remaining fields are private */
    uint32_t leaf;
    uint32_t index;
    uint32_t offset;
    uint32_t target; /* the leaf where its new key probably belongs, or an impossible id */
    uint32_t place;  /* where in that leaf, or an impossible index */
};
/* Where an entry of a large board is among those below a lowest index block: that block's id and its place in
 * them; without index blocks, in the only leaf. */
struct board_below {
    uint32_t block, index;
};
/* ahead: the staged look-up of this name on this board (skiplist/lookup.h), which may be stale; or
 * NULL. */
struct lookup;
void board_look_up(const struct board *board, struct bytes name, const struct lookup *ahead,
                   struct board_member *member);
/* The rank of a member that is on the board. */
uint32_t board_rank_of(const struct board *board, const struct board_member *member);

/* Does it count different scores (skiplist/dense.c)? Then the dense rank of each member is found in O(log n). */
static inline bool board_is_dense(const struct board *board) {
    return board->is_dense;
}
/* Begin or end to. It takes a look at every leaf to begin. false: no memory, nothing changed. */
MUST_CHECK bool board_set_dense(struct board *board, bool is_dense);
/* Of a dense board: how many scores are better than that of the entry at a rank, or of a member; and all of them. */
uint32_t board_dense_rank(const struct board *board, uint32_t rank);
uint32_t board_dense_rank_of(const struct board *board, const struct board_member *member);
uint32_t board_dense_count(const struct board *board);

/* Add member with key, or move it there if it is already on the board (even if its key is the
 * same). It is placed behind all members with an equal key (LATEST layouts: before them).
 *
 * Errors: BOARD_OUT_OF_MEMORY, BOARD_FULL; the board is then unchanged. */
MUST_CHECK enum board_status board_put(struct board *board, struct bytes member, uint64_t key);
/* The same for a member that has been looked up, which saves a second look-up. */
MUST_CHECK enum board_status board_put_member(struct board *board,
                                              const struct board_member *member, uint64_t key);

/* Bulk-load a new board in rank order, many times faster than board_put. Call board_append any
 * number of times, then board_append_end, or board_append_end_step until *is_done. Each call begins
 * a new leaf, so pass some hundred entries at a time to waste no memory. In between the board may
 * only be deinitialised. The caller guarantees that keys are in descending order and members are
 * unique. Equal keys keep the order of their arrival here, whatever the layout.
 *
 * Errors: BOARD_OUT_OF_MEMORY, BOARD_FULL; the board may then only be deinitialised. */
MUST_CHECK enum board_status board_append(struct board *board, const struct board_entry *entries,
                                          uint32_t count);
/* The same on a board in use: the members are found at once. */
MUST_CHECK enum board_status
board_append_indexed(struct board *board, const struct board_entry *entries, uint32_t count);
MUST_CHECK enum board_status board_append_end(struct board *board);
/* Index about work_max members of the board. progress: zeroed before the first step. */
struct board_indexing {
    uint32_t indexed_count; /* members; the rest is private */
    uint32_t next_leaf;
    bool has_begun;
};
MUST_CHECK enum board_status board_append_end_step(struct board *board,
                                                   struct board_indexing *progress,
                                                   uint32_t work_max, bool *is_done);

/* Estimated bytes that board_put of count new members may allocate, excluding the members' own
 * bytes. Rather too high than too low; for memory_reserve_begin. */
size_t board_growth_size(const struct board *board, uint32_t count);

/* Remove a member that has been looked up and is on the board. Never fails. */
void board_remove_member(struct board *board, const struct board_member *member);
/* Remove count members from rank on (rank + count <= board_count). Never fails.
 *
 * Large ranges are detached in O(log n) and leave remains: unreachable blocks and entries of the
 * member index. board_free_step frees them, and every new member also frees about as much as it
 * adds: remains and members together never take more memory than the members did before. */
void board_remove_range(struct board *board, uint32_t rank, uint32_t count);
/* Are there remains, or of tags: values of a removed one, or counts that readers would have to make? */
bool board_has_remains(const struct board *board);
/* Free remains of up to about work_max members, and let the index shrink; true when nothing is left
 * to do. */
bool board_free_step(struct board *board, uint32_t work_max);

/* Free remains of about a thousand members now, and nothing more: members that were looked up stay valid. false: there
 * are none. */
bool board_free_remains(struct board *board);

/* A linked list of boards with remains, for freeing them later. The zeroed list is empty. A board
 * removes itself when board_free_step returns true or when it is destroyed. */
struct board_chain {
    struct board *first;
};
/* Add a board to the list if it has remains and is not in a list yet. Needs no memory. */
void board_chain_put(struct board_chain *chain, struct board *board);
/* The boards keep what remains, and are in no list. true: there were some. */
bool board_chain_clear(struct board_chain *chain);
/* The list's head is at another address than before. */
void board_chain_moved(struct board_chain *chain);

/* Number of members whose key is above key: the rank at which equal keys begin. */
uint32_t board_count_above(const struct board *board, uint64_t key);
/* Number of members whose key is above or equal to key: the rank behind equal keys. */
uint32_t board_count_from(const struct board *board, uint64_t key);

/* The entry at a rank (rank < board_count). */
struct board_stored board_at(const struct board *board, uint32_t rank);
/* One of both for many keys, in any order: cache misses overlap. or_equal: board_count_from. */
enum { BOARD_AT_MAX = 16 };
void board_count_many(const struct board *board, const uint64_t *keys, uint32_t count,
                      bool or_equal, uint32_t *counts);
/* The entries at many ranks, in any order. On a large board much faster than repeated board_at,
 * because the cache misses overlap. */
void board_at_many(const struct board *board, const uint32_t *ranks, uint32_t count,
                   struct board_stored *entries);

/* Iterate over the ranks. Valid until the next change.
 *
 *     for (board_cursor_seek(board, rank, &cursor); board_cursor_read(&cursor, &entry);
 *          board_cursor_next(&cursor)) */
struct board_cursor {
    const struct board *board;
    const void *block;
    uint32_t index;         /* in the block */
    uint32_t member_offset; /* of that entry's member */
};
/* If rank is board_count or more, the cursor is at the end. */
void board_cursor_seek(const struct board *board, uint32_t rank, struct board_cursor *cursor);
/* At the first member whose key is not above this one; at the end, if there is none. */
void board_cursor_seek_key(const struct board *board, uint64_t key, struct board_cursor *cursor);
MUST_CHECK bool board_cursor_read(const struct board_cursor *cursor, struct board_stored *entry);
void board_cursor_next(struct board_cursor *cursor);     /* to the next worse entry */
void board_cursor_previous(struct board_cursor *cursor); /* to the next better entry */
/* As count times board_cursor_next, which is at the end then if there are not so many. */
void board_cursor_skip(struct board_cursor *cursor, uint32_t count);
struct block_run; /* skiplist/block.h */
/* The entries of the cursor's block from the cursor on, at most count_max (at least 1). The cursor
 * moves past them; after that only this function may advance it. false: no entries left. */
MUST_CHECK bool board_cursor_run(struct board_cursor *cursor, bool is_best_first,
                                 uint32_t count_max, struct block_run *run);

/* SCAN with Redis's guarantee: a member that is on the board during the whole scan is visited at
 * least once, whatever changes meanwhile; a member that was never on the board is not visited.
 * Start with cursor 0; returns the next cursor, 0 at the end. Visits about as many members as the
 * limits say: a small board all at once, fewer where many have been removed or the work limit is
 * reached. visit must not change the board. Cursors are below 2^32. */
typedef void board_visit(void *context, const struct board_stored *entry);
uint64_t board_cursor_scan(const struct board *board, uint64_t cursor,
                           const struct scan_limits *limits, board_visit *visit, void *context);

/* ---- moving blocks to other addresses, for an allocator that knows where its memory is full of holes ----
 *
 * Blocks refer to each other by id, so a block's address is in its node alone (on a small board: in the
 * board), and any block can be moved at any time between two commands, and so can sheets of tags, which
 * are in the block above their leaves. What stays where it is: the tables of ids, which are few and large,
 * members longer than NAME_TEXT_MAX, counts and values of tags. */

/* The allocation's new address, with the same content and the old one freed; NULL: it stays. */
typedef void *board_mover(void *context, void *allocation);

/* Offer to move the blocks with ids from `from` on, count ids of them. Returns where to go on; 0: that
 * was all. */
uint32_t board_relocate(struct board *board, uint32_t from, uint32_t count, board_mover *move,
                        void *context);
/* The bytes of the board itself have been moved here. */
void board_relocated(struct board *board);

/* Check every invariant of the board, its skiplist and its index, in O(n log n). reason: the first
 * violated invariant. */
MUST_CHECK bool board_validate(const struct board *board, const char **reason);

#endif
