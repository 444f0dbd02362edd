/* Batched look-up of the members that one request names: their cache misses overlap, like those of
 * a group of requests (server/loop/prefetch.h).
 *
 *     lookup_members(board, names, step, count, ahead);
 *     for (i = 0; i < count; i++)
 *         board_look_up(board, names[i * step], &ahead[i], &member);
 *
 * Only hints: changes in between are harmless. Boards small enough to stay in the cache skip the
 * stages. */
#ifndef SERVER_LOOKUP_H
#define SERVER_LOOKUP_H

#include "skiplist/board.h"

enum {
    LOOKUP_GROUP = 16, /* most members at a time */
    /* A request with at least this many members does its own batched look-up. Shorter requests are
     * prefetched together with others (prefetch.h). */
    LOOKUP_OWN_MIN = 5,
    LOOKUP_BOARD_MIN = 4096, /* members; smaller boards stay in the cache while in use */
};

/* The members' names are names[0], names[step], ...; ahead has room for count. */
void lookup_members(const struct board *board, const struct bytes *names, uint32_t step,
                    unsigned count, struct board_prefetch *ahead);
/* The same for members about to be put: keys[i] is the new key of the ith one. */
void lookup_members_to_put(const struct board *board, const struct bytes *names, uint32_t step,
                           unsigned count, const uint64_t *keys, struct board_prefetch *ahead);
/* The same for members about to be removed. */
void lookup_members_to_take(const struct board *board, const struct bytes *names, uint32_t step,
                            unsigned count, struct board_prefetch *ahead);
/* The size of the group that starts at member begin of member_count. */
static inline unsigned lookup_group_size(uint32_t member_count, uint32_t begin) {
    uint32_t left = member_count - begin;
    return left < LOOKUP_GROUP ? left : LOOKUP_GROUP;
}
/* Prefetch for board_count_above and board_count_from of these keys. */
void lookup_keys(const struct board *board, const uint64_t *keys, unsigned count);

#endif
