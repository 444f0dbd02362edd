/* Boards with a PERIOD, by the time of its end: a timer of the host rolls them over, on masters only.
 *
 * A note is a hint: the board may have been renamed or removed since. What is found under the name
 * then decides. A look-up rolls over what it finds due, so a board that lost its note rolls over at the
 * next one. */
#ifndef SERVER_MODULE_HOST_PERIOD_H
#define SERVER_MODULE_HOST_PERIOD_H

#include "server/module/module.h"

/* roll: look the key up, in the context's database, and so roll it over if it is due. */
void host_period_init(void (*roll)(struct host_context *ctx, struct host_string *name));
/* Note the end of its period, if it has one. Without memory for it nothing is noted. */
void host_period_note(const struct registry_key *key, int database);
void host_period_note_name(struct bytes name, const struct rules *rules, int database);

#endif
