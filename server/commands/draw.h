/* Shared by ZRANDMEMBER and HRANDFIELD: drawing at random.
 *
 *     key              one, or nil
 *     key 3            3 different ones (all, if there are fewer), in any order
 *     key -3           3 draws, which may repeat */
#ifndef SERVER_DRAW_H
#define SERVER_DRAW_H

#include "server/dispatch/cost.h"
#include "server/dispatch/syntax.h"

/* The arguments. */
struct draw {
    bool is_one; /* no count */
    int64_t count;
    bool with_values; /* the word behind the count was given */
};

/* For a syntax of "options=[count:integer [WORD]]". */
#define DRAW_BINDINGS(word)                                                                        \
    (const struct binding[]) {                                                                     \
        {BIND(word, struct draw, with_values), .repeat = BINDING_ONCE}, {0},                       \
    }

enum { DRAW_GROUP = 16 };
/* What is drawn from. */
struct draw_source {
    const struct call *call;
    const void *value; /* a board, a hash; NULL: size is 0 */
    uint32_t size;
    /* Reply those of these indexes, at most DRAW_GROUP. */
    void (*put)(const struct draw_source *source, const uint32_t *indexes, uint32_t count,
                bool with_values);
    /* Visit all in any order, and reply those that draw_takes, count of them. */
    void (*walk)(const struct draw_source *source, uint32_t count, bool with_values);
};

/* false: the error was replied. */
MUST_CHECK bool draw_read(const struct call *call, struct draw *draw);
/* The number of draws, for the cost of a command. */
uint64_t draw_work(const struct cost_view *view);
/* Draw and reply. */
void draw_reply(const struct draw_source *source, const struct draw *draw);

/* 0 .. limit - 1. The bias is below limit / 2^64 * 2^32, that is 2^-32 at worst per draw. */
uint32_t draw_below(const struct call *call, uint32_t limit);
/* In a walk: is the next one taken, when left are still ahead and count are wanted? Source:
 * Knuth, The Art of Computer Programming, volume 2, 3.4.2, algorithm S. */
static inline bool draw_takes(const struct call *call, uint32_t left, uint32_t count) {
    return draw_below(call, left) < count;
}

#endif
