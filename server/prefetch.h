/* Prefetching: the cache misses of a group of queued requests, started together before they run.
 *
 *     boards         of the keys that the requests name
 *     slots          of the member index; the command table says which arguments are members
 *     descriptors    of the members' blocks            and the index on the way to where
 *     blocks                                           a lone new score will stand
 *     entries        of the members in their blocks
 *
 * A cold look-up is mostly waiting for memory; this way the waits of a group overlap.
 *
 * Invariant: it is a hint and no more. Nothing is changed and nothing found here is kept, so every
 * request has the same result without it; a malformed one is left to its handler. */
#ifndef SERVER_PREFETCH_H
#define SERVER_PREFETCH_H

#include "server/tick.h"

/* entries[0 .. count-1], at most TICK_GROUP, will run next; void ones among them are passed over.
 */
void prefetch_entries(const struct server *server, const struct tick_entry *entries,
                      unsigned count);

#endif
