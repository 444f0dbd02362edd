/* What is due when: boards with a PERIOD, by its end; boards with STALE, by the next step of a pass; ids of results,
 * by when the oldest is to be forgotten. A timer of the host rolls boards over, has members leave, and forgets ids, on
 * masters only.
 *
 * A note is a hint: the key may have been renamed or removed since. What is found under the name
 * then decides. A look-up rolls over what it finds due, so a board that lost its note rolls over at the
 * next one. STALE and ids have one note each, whose number their value knows; a note with another number is dropped. */
#ifndef SERVER_MODULE_HOST_PERIOD_H
#define SERVER_MODULE_HOST_PERIOD_H

#include "server/module/host_value.h"

/* What is left of a pass over a board with STALE, or over ids. */
enum host_stale {
    HOST_STALE_GONE, /* there is no such board, or it has another note */
    HOST_STALE_MORE,
    HOST_STALE_DONE,
};

/* In the context's database. */
struct host_period_work {
    /* Look the key up, and so roll it over if it is due. */
    void (*roll)(struct host_context *ctx, struct host_string *name);
    /* One step of a pass over a board with STALE whose note has this number; *from_key: where it goes on. */
    enum host_stale (*drop)(struct host_context *ctx, struct host_string *name, uint32_t number,
                            uint64_t *from_key);
    /* The same over ids; *again_ms: when the oldest of those that are left is to be forgotten. */
    enum host_stale (*forget)(struct host_context *ctx, struct host_string *name, uint32_t number,
                              int64_t *again_ms);
};
void host_period_init(const struct host_period_work *work);
/* Note what is to be done with the value, which is found under this name from now on. Without memory for it nothing
 * is noted. */
void host_period_note(struct host_value *value, struct bytes name, int database);
/* Note that it has ids, unless that was done. */
void host_period_note_ids(struct host_value *value, struct bytes name, int database);

#endif
