/* Boards with a PERIOD, by the time of its end, and boards with STALE, by that of the next step of a pass: a timer of
 * the host rolls them over, and has members leave, on masters only.
 *
 * A note is a hint: the board may have been renamed or removed since. What is found under the name
 * then decides. A look-up rolls over what it finds due, so a board that lost its note rolls over at the
 * next one. A board with STALE has one note, whose number it knows; a note with another number is dropped. */
#ifndef SERVER_MODULE_HOST_PERIOD_H
#define SERVER_MODULE_HOST_PERIOD_H

#include "server/module/host_value.h"

/* What is left of a pass over a board with STALE. */
enum host_stale {
    HOST_STALE_GONE, /* there is no such board, or it has another note */
    HOST_STALE_MORE,
    HOST_STALE_DONE,
};

/* roll: look the key up, in the context's database, and so roll it over if it is due.
 * drop: one step of a pass over a board whose note has this number; *from_key: where it goes on. */
void host_period_init(void (*roll)(struct host_context *ctx, struct host_string *name),
                      enum host_stale (*drop)(struct host_context *ctx, struct host_string *name,
                                              uint64_t number, uint64_t *from_key));
/* Note the end of the board's period, if it has one, and that it has a STALE. Without memory for it nothing is
 * noted. */
void host_period_note(struct host_value *value, int database);
/* The same under a name that the host has given it just now. */
void host_period_note_as(struct host_value *value, struct bytes name, int database);

#endif
