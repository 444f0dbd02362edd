/* Members that one request names, looked up together: the cache misses of a group of them overlap,
 * as those of a group of requests do (server/prefetch.h).
 *
 *     lookup_members(board, names, step, count, ahead);
 *     for (i = 0; i < count; i++)
 *         board_look_up(board, names[i * step], &ahead[i], &member);
 *
 * Hints only: changes in between do no harm. Boards that stay in the cache are spared the stages.
 */
#ifndef SERVER_LOOKUP_H
#define SERVER_LOOKUP_H

#include "skiplist/board.h"

enum {
    LOOKUP_GROUP = 16,       /* members at a time, at most */
    LOOKUP_BOARD_MIN = 4096, /* members of a board: smaller ones stay in the cache when in use */
};

/* names[0], names[step], ... are the members' names; ahead has room for count. */
void lookup_members(const struct board *board, const struct bytes *names, uint32_t step,
                    unsigned count, struct board_prefetch *ahead);
/* The same for members that will be put: keys[i] is the key that the ith one will get. */
void lookup_members_to_put(const struct board *board, const struct bytes *names, uint32_t step,
                           unsigned count, const uint64_t *keys, struct board_prefetch *ahead);
/* For board_count_above and board_count_from of these keys. */
void lookup_keys(const struct board *board, const uint64_t *keys, unsigned count);

#endif
