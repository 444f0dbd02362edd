/* A board: members with packed 64-bit keys, best first.
 *
 *     rank    0        1        2        3
 *     key   [ 900    | 700    | 700    | 120   ]     keys never increase along the list
 *     member  zoe      ann      bob      kim         equal keys: in arrival order
 *
 * The member index (a hash map) leads from a member to the block that holds it; the span-indexed
 * block skiplist leads from a block to its rank, and from a rank or a key to a block. A small
 * board is that one block and has neither.
 *
 * The board does not know clocks, names or text: it holds keys that codec/layout.h packs. Ranks
 * are 0-based, best first, always. Pointers to members that it hands out are borrowed until the
 * next change of the board. Not thread-safe; one thread owns a board at a time. */
#ifndef SKIPLIST_BOARD_H
#define SKIPLIST_BOARD_H

#include "codec/bytes.h"
#include "codec/layout.h"

enum {
    BOARD_MEMBER_MAX = 65536, /* bytes; 1 at least */
};
/* Members on one board. */
#define BOARD_MEMBERS_MAX UINT32_MAX

/* A server may hold a million boards of ten members: what a small one takes beside its members is
 * this and its block's header. The fields are the board's own (skiplist/board_parts.h). */
struct board {
    const struct layout *layout;
    uint64_t hash_seed : 63;
    uint64_t is_large : 1;
    union {
        struct block *leaf;        /* small: all there is; NULL: no members */
        struct large_board *large; /* large: the skiplist and the index */
    };
};
#define BOARD_SEED_MASK (UINT64_MAX >> 1)

enum board_status {
    BOARD_OK = 0,
    BOARD_OUT_OF_MEMORY,
    BOARD_FULL, /* BOARD_MEMBERS_MAX members already */
};

/* What stands at one rank. */
struct board_entry {
    uint64_t key;
    struct bytes member; /* borrowed until the next change */
};

/* An empty board, which holds no memory. layout is borrowed and outlives the board. hash_seed:
 * random, secret. */
void board_init(struct board *board, const struct layout *layout, uint64_t hash_seed);
/* Free everything; the board is then as after board_init. */
void board_deinit(struct board *board);
/* The same by about work_max members' worth; true when it is done. Between calls the board may not
 * be used for anything else. */
MUST_CHECK bool board_deinit_step(struct board *board, uint32_t work_max);

/* Take the board to another place in memory, to, whatever was there; board is then empty. */
void board_move_to(struct board *board, struct board *to);
/* Make copy, whatever was there, a board with the same layout, members, keys and arrival order.
 * false: no memory; copy is then empty. */
MUST_CHECK bool board_copy(const struct board *board, struct board *copy);

const struct layout *board_layout(const struct board *board);
/* Read the board's keys by another layout from now on, which outlives the board. It cuts them as
 * the one before did, and differs in START at the most. */
void board_set_layout(struct board *board, const struct layout *layout);
uint32_t board_count(const struct board *board);
/* Heap bytes held for the board, what remains of removed members included, itself not. */
size_t board_memory_size(const struct board *board);

/* The member's packed key; false: not on the board. */
MUST_CHECK bool board_find(const struct board *board, struct bytes member, uint64_t *key);
/* Its rank and key; false: not on the board. */
MUST_CHECK bool board_rank(const struct board *board, struct bytes member, uint32_t *rank,
                           uint64_t *key);

/* A member that was looked up, for what depends on what was found. Valid until the next change of
 * the board. */
struct board_member {
    struct bytes name;
    uint64_t key; /* where it is on the board */
    bool is_there;
    uint64_t hash; /* of the name, seeded; the rest is board.c's */
    uint32_t leaf;
    uint32_t index;
    uint32_t offset;
    uint32_t target; /* the leaf where its new key is likely to belong, or an impossible number */
};
/* ahead: what prefetching has found for this very name on this board, changes since then or not; or
 * NULL. */
struct board_prefetch;
void board_look_up(const struct board *board, struct bytes name, const struct board_prefetch *ahead,
                   struct board_member *member);
/* The rank of a member that is there. */
uint32_t board_rank_of(const struct board *board, const struct board_member *member);

/* Add member with key, or move it there when it is on the board already (also when its key is
 * the same). It stands behind every member with an equal key (a LATEST layout: before).
 *
 * Errors: BOARD_OUT_OF_MEMORY, BOARD_FULL; the board is then as it was. */
MUST_CHECK enum board_status board_put(struct board *board, struct bytes member, uint64_t key);
/* The same for a member that was looked up, which saves looking it up again. */
MUST_CHECK enum board_status board_put_member(struct board *board,
                                              const struct board_member *member, uint64_t key);

/* Fill a new board in rank order, which takes a fraction of what board_put takes: as many calls as
 * one likes (each begins a leaf of its own: some hundred entries at a time waste nothing), then
 * board_append_end, or board_append_end_step until *is_done. In between the board may only be
 * deinitialised. Keys never increase, and no member comes twice: the caller answers for that. Equal
 * keys stand in the order in which they come, whatever the layout.
 *
 * Errors: BOARD_OUT_OF_MEMORY, BOARD_FULL; then only deinitialising it is left. */
MUST_CHECK enum board_status board_append(struct board *board, const struct board_entry *entries,
                                          uint32_t count);
MUST_CHECK enum board_status board_append_end(struct board *board);
/* Index about work_max members' worth of the board. progress: zeroed before the first step. */
struct board_indexing {
    uint32_t indexed_count; /* members; the rest is board_append.c's */
    uint32_t next_leaf;
    bool has_begun;
};
MUST_CHECK enum board_status board_append_end_step(struct board *board,
                                                   struct board_indexing *progress,
                                                   uint32_t work_max, bool *is_done);

/* Bytes that board_put of count new members may take, beside the members' own: an estimate, high
 * rather than low, for memory_reserve_begin. */
size_t board_growth_size(const struct board *board, uint32_t count);

/* false: it was not on the board. Never fails for want of memory. */
bool board_remove(struct board *board, struct bytes member);
/* The same for a member that was looked up and is there. */
void board_remove_member(struct board *board, const struct board_member *member);
/* Remove count members from rank on (both in range: rank + count <= board_count). Never fails.
 *
 * Many members are cut out of the list in O(log n) and leave remains: blocks, and entries of the
 * member index, that nobody sees any more. board_free_step frees them, and so does every new member
 * by about its own worth: remains and members together never take more than the members did. */
void board_remove_range(struct board *board, uint32_t rank, uint32_t count);
bool board_has_remains(const struct board *board);
/* Free up to about work_max members' worth of remains, and let the index shrink; true when there is
 * nothing left to do. */
bool board_free_step(struct board *board, uint32_t work_max);

/* Boards with remains, for whoever frees them. Zeroed is empty. A board leaves its chain by itself
 * when board_free_step has returned true, or when it is destroyed. */
struct board_chain {
    struct board *first;
};
/* Put a board into the chain if it has remains and is in none. Needs no memory. */
void board_chain_put(struct board_chain *chain, struct board *board);

/* Members whose key is above key: the rank at which key's equals begin. */
uint32_t board_count_above(const struct board *board, uint64_t key);
/* Members whose key is above or equal to key: the rank behind key's equals. */
uint32_t board_count_from(const struct board *board, uint64_t key);

/* The entry at a rank (rank < board_count). */
struct board_entry board_at(const struct board *board, uint32_t rank);

/* Walk along the ranks. Valid until the next change.
 *
 *     for (board_seek(board, rank, &cursor); board_cursor_read(&cursor, &entry);
 *          board_cursor_next(&cursor)) */
struct board_cursor {
    const struct board *board;
    const void *block;
    uint32_t index;         /* in the block */
    uint32_t member_offset; /* of that entry's member */
};
/* rank may be board_count or more: then there is nothing to read. */
void board_seek(const struct board *board, uint32_t rank, struct board_cursor *cursor);
MUST_CHECK bool board_cursor_read(const struct board_cursor *cursor, struct board_entry *entry);
void board_cursor_next(struct board_cursor *cursor);     /* to the next worse */
void board_cursor_previous(struct board_cursor *cursor); /* to the next better */

/* SCAN with Redis's guarantee: a member on the board during the whole scan is visited at least
 * once, whatever changes meanwhile; one that was never there is not. Begin with cursor 0; visits
 * about count members (a small board: all; where many have been removed, fewer) and returns the
 * next cursor, 0 at the end. visit must not change the board. Cursors are below 2^48. */
typedef void board_visit(void *context, const struct board_entry *entry);
uint64_t board_scan(const struct board *board, uint64_t cursor, uint32_t count, board_visit *visit,
                    void *context);

/* Staged prefetch: the cache misses of many commands overlap when the stages run over a whole
 * group of them before any is executed. Hints only: nothing is changed, and changes between the
 * stages and the execution do no harm. board_look_up takes what was found, after checking it.
 *
 *     stage 1  hash the member, fetch its map slots
 *     stage 2  read the slots, fetch the block's descriptor
 *     stage 3  fetch the block's first lines and its parent's
 *     stage 4  find the member in the block, fetch its key and its bytes (changes: and all that
 *              stands behind it)
 *     stage 5  (changes) fetch where the key will go: board_prefetch_key, or for many keys at once
 *              board_prefetch_way, _way_index, _way_leaf and _way_end, each for all of them */
struct board_prefetch {
    const struct board *board;
    struct bytes member; /* borrowed */
    uint64_t hash_seed;  /* the board's: another one may have come to lie in its place */
    uint64_t hash;
    uint32_t block;  /* candidate, or an impossible number */
    uint32_t index;  /* in the block, likewise */
    uint32_t target; /* the block where its new key belongs, likewise; the user fills it in */
};
void board_prefetch_slots(const struct board *board, struct bytes member,
                          struct board_prefetch *state);
void board_prefetch_descriptor(struct board_prefetch *state);
void board_prefetch_block(const struct board_prefetch *state);
void board_prefetch_entry(struct board_prefetch *state, bool is_change);
/* Fetch the lines that board_put with this key would change. */
void board_prefetch_key(const struct board *board, uint64_t key);
struct board_way {
    const struct board *board;
    uint64_t key;
    uint32_t block; /* how far it came */
};
void board_prefetch_way(const struct board *board, uint64_t key, struct board_way *way);
void board_prefetch_way_index(const struct board_way *way);
void board_prefetch_way_leaf(struct board_way *way);
/* _way_leaf in finer steps, none of which waits; what they cost is worth it in large groups. */
void board_prefetch_way_fences(const struct board_way *way);
void board_prefetch_way_child(struct board_way *way);
void board_prefetch_way_line(const struct board_way *way);
void board_prefetch_way_keys(const struct board_way *way);
void board_prefetch_way_end(const struct board_way *way);

/* Check every invariant of the board, its skiplist and its index, in O(n log n). reason: the
 * first that does not hold. */
MUST_CHECK bool board_validate(const struct board *board, const char **reason);

#endif
