/* Results and the LIMITS of their board (skiplist/keyspace/limits.h): asked before anything changes, noted when all of it
 * has.
 *
 * A result counts when its command is done, also if it is not the member's best. What NX and XX leave out does not, nor
 * does an id that came before (ONCE). On a board with a WINDOW the result is the one of the running period. */
#ifndef SERVER_LIMITING_H
#define SERVER_LIMITING_H

#include "server/commands/writing.h"
#include "skiplist/keyspace/limits.h"

struct limited {
    uint8_t size;   /* of the record; 0: the rule keeps none, or the result does not count */
    uint8_t broken; /* the limit that the result breaks, where HOLD keeps it; LIMITS: none */
    char record[LIMITS_RECORD_BYTES_MAX];
};

/* Do the board's LIMITS hold for who writes? */
static inline bool limiting_applies(const struct writing *writing) {
    const struct board_options *options =
        writing->whole == NULL ? writing->options : registry_options(writing->whole);
    return __builtin_expect(options->has_limits, 0) && !writing->is_approval &&
           (options->limits.is_for_all || writing->call->session->player != NULL);
}
/* May this result be, as far as LIMITS say? before, after: keys of the member; had_result: is there a key before?
 * counts: it is none that NX or XX leave out; is_put: it changes the first field;
 * is_written: it changes something, so that HOLD may keep it. false: the error was replied, and the refusal is counted. */
MUST_CHECK bool limiting_check(const struct writing *writing, struct bytes member, bool had_result,
                               uint64_t before, uint64_t after, bool is_put, bool is_written,
                               struct limited *limited);
/* It comes too soon for this limit. Replies the error; false. */
bool limiting_refuse_wait(const struct writing *writing, enum limit limit, int64_t wait_ms);
/* "member 'ann' is given twice ...". Replies the error; false. */
bool limiting_refuse_again(const struct call *call, struct bytes member);
/* The bytes that limiting_put may take for so many members. */
size_t limiting_growth_size(const struct writing *writing, uint32_t count, size_t names_size);
/* Note it. There is memory for it. */
void limiting_put(const struct writing *writing, struct bytes member,
                  const struct limited *limited);

#endif
