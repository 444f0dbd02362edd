/* STALE: members whose time is longer ago than the option of their board says leave it.
 *
 *     STALE 6 HOUR, now 12:00      zoe 900, 11:58   ann 700, 05:59   bob 700, 06:30
 *                                                   ^ leaves
 *
 * A time is over when the unit of the layout that has it is: with TIME in hours, 05:59 counts from 06:00 on. So
 * nobody leaves too early.
 *
 * The stale are anywhere on a board, so a pass goes over all its members, in steps, from the best to the worst. It
 * holds a key, not a rank: what comes and goes meanwhile does not move it. A member that moves past it meanwhile, with
 * a time that is stale already, leaves with the next pass.
 *
 * Boards that take no writes now keep their members. */
#ifndef SKIPLIST_REGISTRY_STALE_H
#define SKIPLIST_REGISTRY_STALE_H

#include "skiplist/keyspace/registry.h"

/* Where a pass over one board goes on. */
#define REGISTRY_STALE_BEGIN UINT64_MAX

/* Is there anything for a pass to do on the board? */
bool registry_stale_may_leave(const struct registry_key *key, int64_t now_ms);
/* One step of a pass over the board of a key that can be stale: look at members from *from_key on, and remove those
 * that are stale, until *work is used up; an empty board stays. *is_done: that was the last. Returns how many were
 * removed. */
uint32_t registry_stale_drop(struct registry *registry, struct registry_key *key, int64_t now_ms,
                             uint64_t *from_key, uint32_t *work, bool *is_done);

#endif
