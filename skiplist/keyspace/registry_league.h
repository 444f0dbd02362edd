/* Members of leagues (skiplist/keyspace/league.h) whose period is over: their tier follows from the
 * archives of rooms.
 *
 *     entry: tier 3, period 2026-11-16, room 17  --{weekly}:3:17@2026-11-16, rank 2 of 30-->  tier 4
 *
 * Before an archive is removed because it has expired, the members who have not come since get the
 * entry that they would get if they came: tier 4, period 2026-11-16, room 0. */
#ifndef SKIPLIST_REGISTRY_LEAGUE_H
#define SKIPLIST_REGISTRY_LEAGUE_H

#include "skiplist/keyspace/league.h"
#include "skiplist/keyspace/registry.h"

/* Called with a key's name before it is looked up. false: it cannot be. */
typedef bool registry_league_open(const void *context, struct bytes name);
/* The tier now of a member whose entry is of a period before this one of this calendar; names are those of
 * this league. Look-ups of
 * archives bring due ones to their end, which may change entries of the league: look up the member
 * again afterwards. false: open has failed. */
MUST_CHECK bool registry_league_tier(struct registry *registry, const struct registry_key *league,
                                     struct league_names *names, struct bytes member,
                                     struct league_entry entry, const struct period *period,
                                     uint32_t now_period, int64_t now_ms,
                                     registry_league_open *open, const void *context,
                                     uint32_t *tier);

enum registry_league_status {
    REGISTRY_LEAGUE_SETTLED,
    REGISTRY_LEAGUE_MORE, /* members_max have got one, and others may be left */
    REGISTRY_LEAGUE_OUT_OF_MEMORY,
};
/* Give entries of their own to at most members_max members whose results the key has, if it is the
 * archive of a room. *work is how many were looked up, each in O(log n). */
MUST_CHECK enum registry_league_status registry_league_settle(struct registry *registry,
                                                              const struct registry_key *key,
                                                              uint32_t members_max, uint32_t *work);
/* Are both members in rooms of the running period, each in another one, of the league whose board this is, or one of
 * whose rooms they are in it is? What they have is then not to be put together board by board. */
MUST_CHECK bool registry_league_parts(const struct registry *registry,
                                      const struct registry_key *key, struct bytes one,
                                      struct bytes other);
/* Leagues of all databases; those that wait to be freed count, too. */
uint64_t registry_league_count(const struct registry *registry);

#endif
