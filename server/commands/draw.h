/* Shared by ZRANDMEMBER and HRANDFIELD: their arguments, and drawing indexes at random.
 *
 *     key              one, or nil
 *     key 3            3 different ones (all, if there are fewer), in any order
 *     key -3           3 draws, which may repeat */
#ifndef SERVER_DRAW_H
#define SERVER_DRAW_H

#include "server/dispatch/cost.h"

struct draw {
    int64_t count;
    bool with_values; /* the word behind the count was given */
};

/* Read the count, and the word (WITHSCORES) if it is given. false: the error was replied. */
MUST_CHECK bool draw_read(const struct call *call, const char *word, struct draw *draw);
/* The number of draws, for the cost of a command. */
uint64_t draw_work(const struct cost_view *view, const char *word);

/* 0 .. limit - 1. The bias is below limit / 2^64 * 2^32, that is 2^-32 at worst per draw. */
uint32_t draw_below(const struct call *call, uint32_t limit);
/* Is it better to walk over all of size and take each one with the remaining probability, than to
 * draw count indexes and sort them? */
bool draw_is_walk(int64_t count, uint32_t size);
/* In such a walk: is the next one taken, when left are still ahead and count are wanted? Source:
 * Knuth, The Art of Computer Programming, volume 2, 3.4.2, algorithm S. */
static inline bool draw_takes(const struct call *call, uint32_t left, uint32_t count) {
    return draw_below(call, left) < count;
}
/* count different indexes below size, in order, to be freed (memory_free). count is at least 1 and
 * much smaller than size. NULL: the error was replied. */
MUST_CHECK uint32_t *draw_indexes(const struct call *call, uint32_t count, uint32_t size);

#endif
