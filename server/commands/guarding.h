/* What a board holds against results: its LIMITS (skiplist/keyspace/limits.h) and its HOLD (holding.h), for the commands that
 * write results.
 *
 *     if (guarding_applies(&writing)) {
 *         guarding_plan(&writing, &result, &guards, &guarded)   for each result, one of a member at a time
 *         memory for guarding_growth_size(&writing, &guards)
 *         guarding_put(&writing, &result, &guarded)             when the other results are put; cannot fail
 *     }
 *
 * For LIMITS a result counts when its command is done, also if it is not the member's best. What NX and XX leave out does
 * not, nor does an id that came before (ONCE). On a board with a WINDOW the result is the one of the running period.
 *
 * TICKETS are of a command, whatever boards it writes: ticketing.h. */
#ifndef SERVER_GUARDING_H
#define SERVER_GUARDING_H

#include "server/commands/holding.h"
#include "server/commands/writing.h"
#include "skiplist/keyspace/limits.h"

struct limited {
    uint8_t size;   /* of the record; 0: the rule keeps none, or the result does not count */
    uint8_t broken; /* the limit that the result breaks, where HOLD keeps it; LIMITS: none */
    char record[LIMITS_RECORD_BYTES_MAX];
};

/* Do the board's LIMITS hold for who writes? */
static inline bool guarding_has_limits(const struct writing *writing) {
    const struct board_options *options = writing_shown_options(writing);
    return __builtin_expect(options->has_limits, 0) && !writing->is_approval &&
           (options->limits.is_for_all || writing->call->session->player != NULL);
}
/* It comes too soon for this limit. Replies the error; false. */
bool guarding_refuse_wait(const struct writing *writing, enum limit limit, int64_t wait_ms);
/* "member 'ann' is given twice ...". Replies the error; false. */
bool guarding_refuse_again(const struct call *call, struct bytes member);

static inline bool guarding_applies(const struct writing *writing) {
    return guarding_has_limits(writing) || holding_applies(writing);
}

/* A result that the board would take. */
struct guarding_result {
    struct bytes member;
    bool had_result;        /* the member had before as its key */
    bool is_written;        /* something changes, be it the time alone */
    uint64_t before, after; /* keys */
    /* Adds the words of the LB.ADD that writes it, should it be held. */
    void (*put_words)(const void *context, struct holding_words *words);
    const void *context;
};
/* What becomes of it. Zeroed at first. */
struct guarded {
    struct limited limited;
    uint8_t held;                   /* why it is held; 0: it is not */
    uint64_t held_before, held_key; /* then: what the member has, and would have */
};
/* Those of a command on a board. Zeroed at first. */
struct guards {
    uint32_t count, held_count;
    size_t names_size;
};

/* May it be, and is it held? false: the error was replied. */
MUST_CHECK bool guarding_plan(const struct writing *writing, const struct guarding_result *result,
                              struct guards *guards, struct guarded *guarded);
/* The bytes that guarding_put may take for all of them. */
size_t guarding_growth_size(const struct writing *writing, const struct guards *guards);
/* Of the result, member, put_words and context count. There is memory for it. */
void guarding_put(struct writing *writing, const struct guarding_result *result,
                  const struct guarded *guarded);

#endif
