/* Looking up many members in stages, so that their waits for memory overlap.
 *
 *                    the member                          (puts) where the new key belongs
 *     begin          hash it, fetch its map slots        descend to the lowest index block
 *     LOOKUP_NODE    read the slots, fetch its node      fetch that index block
 *     LOOKUP_LEAF    fetch its leaf and the parent
 *     LOOKUP_FENCES                                      fetch the part of it with the child
 *     LOOKUP_CHILD                                       find the leaf, fetch its node
 *     LOOKUP_ENTRY   find it in the leaf, fetch its key  fetch the leaf's header, marks and keys
 *                    and bytes (changes: all behind it)
 *     LOOKUP_PLACE                                       find the place, fetch what is moved
 *
 * A stage reads what the stages before it have fetched. Run each for a whole group before the next
 * (lookup_finish), or run different stages of many look-ups in turn (lookup_advance). Then
 * board_look_up takes the result.
 *
 * Look-ups are only hints: they change nothing, and changes of the board between the stages and
 * after them are harmless. board_look_up verifies the result before using it. */
#ifndef SKIPLIST_LOOKUP_H
#define SKIPLIST_LOOKUP_H

#include "skiplist/board.h"

enum {
    LOOKUP_GROUP = 16, /* a good number of members at a time */
    LOOKUP_RING = 16,  /* more than LOOKUP_STAGES, a power of two */
    /* A request with at least this many members does its own staged look-up. Shorter requests are
     * looked up together with others (server/loop/lookahead.h). */
    LOOKUP_OWN_MIN = 5,
/* In members; a smaller board stays in the cache while it is in use. */
#ifdef SKIPLIST_TINY
    LOOKUP_BOARD_MIN = 8,
#else
    LOOKUP_BOARD_MIN = 4096,
#endif
};

enum lookup_stage {
    LOOKUP_NODE,
    LOOKUP_LEAF,
    LOOKUP_FENCES,
    LOOKUP_CHILD,
    LOOKUP_ENTRY,
    LOOKUP_PLACE,
    LOOKUP_STAGES
};

/* One look-up. The fields are private, but for more. */
struct lookup {
    const struct board *board;
    struct bytes member; /* borrowed; empty: only the place of a key */
    uint64_t hash_seed;  /* the board's: detects another board at the same address */
    uint64_t hash;
    uint64_t key;    /* its new key */
    uint32_t leaf;   /* candidate, or an impossible id */
    uint32_t index;  /* in the leaf, or an impossible index */
    uint32_t target; /* the block reached on the way to the key's leaf, or an impossible id */
    uint32_t place;  /* where in that leaf, or an impossible index */
    bool is_change;
    struct lookup *more; /* the caller's: on another board, for the same request; or NULL */
};

/* is_change: the member is about to be put or removed. */
void lookup_begin(struct lookup *lookup, const struct board *board, struct bytes member,
                  bool is_change);
/* The same of the member that another look-up is of. */
void lookup_begin_like(struct lookup *lookup, const struct board *board, const struct lookup *other,
                       bool is_change);
/* Where the member is if it was put where its key belonged then (lookup_begin_place). */
struct lookup lookup_after_put(const struct lookup *lookup);
/* That of these which is on the board; NULL: none is. */
static inline const struct lookup *lookup_on(const struct lookup *lookup,
                                             const struct board *board) {
    while (lookup != NULL && lookup->board != board) {
        lookup = lookup->more;
    }
    return lookup;
}
/* The member is about to be put with this key. */
void lookup_begin_place(struct lookup *lookup, uint64_t key);
/* The same with the key that another look-up has. false: it has none, or its board another layout. */
MUST_CHECK bool lookup_begin_place_like(struct lookup *lookup, const struct lookup *other);
/* Turn now of count look-ups that follow each other, the ith of which is ring[i % LOOKUP_RING] and
 * has begun before turn i + 1. Each turn runs a stage of every one that is under way; all of the ith
 * have run behind turn i + LOOKUP_STAGES. */
void lookup_advance_ring(struct lookup ring[LOOKUP_RING], uint32_t now, uint32_t count);
/* Run the stage s of the look-up due[s], if that is not NULL. The boards may have changed since the
 * stages before, but must still exist. */
void lookup_advance(struct lookup *const due[LOOKUP_STAGES]);
/* Of each look-up that has begun a key that its member, if it is there, is not above: that of the next
 * better leaf, or the largest key. That takes half the time of the stages that find the member; run
 * those (lookup_finish) for members that matter. */
void lookup_bounds(struct lookup *lookups, unsigned count, uint64_t *bounds);
/* One stage of the members of a group; the caller does something else until memory has answered. */
void lookup_run(struct lookup *lookups, unsigned count, enum lookup_stage stage);
/* All stages for a group, whose members may be on different boards. */
void lookup_finish(struct lookup *lookups, unsigned count);

/* Look up count members of one board: names[0], names[step], ... lookups has room for count. On
 * boards small enough to stay in the cache, members are only hashed.
 *
 *     lookup_members(board, names, step, count, lookups);
 *     for (i = 0; i < count; i++)
 *         board_look_up(board, names[i * step], &lookups[i], &member); */
void lookup_members(const struct board *board, const struct bytes *names, uint32_t step,
                    unsigned count, struct lookup *lookups);
/* The same for members about to be put: keys[i] is the new key of the ith one. */
void lookup_members_to_put(const struct board *board, const struct bytes *names, uint32_t step,
                           unsigned count, const uint64_t *keys, struct lookup *lookups);
/* The same for members about to be removed. */
void lookup_members_to_take(const struct board *board, const struct bytes *names, uint32_t step,
                            unsigned count, struct lookup *lookups);
/* Members that have been looked up (is_change) are about to be put: only the places of their keys are fetched. */
void lookup_places(struct lookup *lookups, unsigned count, const uint64_t *keys);
/* The size of the group that starts at member begin of member_count. */
static inline unsigned lookup_group_size(uint32_t member_count, uint32_t begin) {
    uint32_t left = member_count - begin;
    return left < LOOKUP_GROUP ? left : LOOKUP_GROUP;
}
/* ---- members that are only read ----
 *
 * The board does not change until all are read, so what a stage has found is what the next one begins with, and
 * nothing is verified. */

/* What is read of a member. */
struct lookup_found {
    uint64_t key;
    uint32_t rank;        /* LOOKUP_NOWHERE: it is not on the board; the rest means nothing then */
    uint32_t leaf, index; /* as in struct board_member */
    struct board_below below; /* for tags_below_many */
};
#define LOOKUP_NOWHERE                                                                             \
    UINT32_MAX /* no member has this rank: a board has at most UINT32_MAX members */

/* A member on its way. The fields are private. */
struct lookup_reading {
    uint64_t hash;
    const struct skiplist_node *node;   /* of its leaf; NULL: there is none */
    const struct skiplist_node *parent; /* of the index block above; NULL: there is none */
    uint32_t leaf;
    uint32_t index; /* in the leaf, or an impossible index */
};

/* Read many members, LOOKUP_TURN at a time: while they are used, the next ones are fetched.
 *
 *     lookup_stream_begin(&stream, board, names, count);
 *     for (i = 0; i < count; i += LOOKUP_TURN)
 *         found = lookup_stream_next(&stream); */
enum { LOOKUP_TURN = LOOKUP_GROUP / 4 }; /* a group has four stages */
struct lookup_stream {
    const struct board *board;
    const struct bytes *names; /* borrowed */
    uint32_t count, next;
    struct lookup_reading
        groups[2][LOOKUP_GROUP];             /* the one in use, and the one behind it, in turns */
    struct lookup_found found[LOOKUP_GROUP]; /* of the one in use */
};
void lookup_stream_begin(struct lookup_stream *stream, const struct board *board,
                         const struct bytes *names, uint32_t count);
/* What was found of the next LOOKUP_TURN members, or of those that are left. */
const struct lookup_found *lookup_stream_next(struct lookup_stream *stream);
/* Read one group of at most LOOKUP_GROUP. */
void lookup_read(const struct board *board, const struct bytes *names, unsigned count,
                 struct lookup_found *found);
/* The same of one member. ahead: as for board_look_up. */
void lookup_read_one(const struct board *board, struct bytes name, const struct lookup *ahead,
                     struct lookup_found *found);

/* Prefetch for board_count_above and board_count_from of at most LOOKUP_GROUP keys. */
void lookup_keys(const struct board *board, const uint64_t *keys, unsigned count);

#endif
