/* Leagues: members in tiers, and in each period in rooms, from which they go up and down.
 *
 *     weekly             a board: FIELD tier 8 FIELD period 24 FIELD room 32     who is in which tier
 *     {weekly}:rooms     the template: an empty board, whose layout and options the rooms have
 *     {weekly}:3:17      room 17 of tier 3: a board like the template
 *
 * The best key of a tier and a period is that of the room opened last, so all state follows from
 * these boards. A member's entry says where it had its last result; its tier now follows from that,
 * and from its rank in the archive of that room:
 *
 *     the best `up` of a room go one tier up, of the others the last `down` go one tier down;
 *     where idle_goes_down, each period after that without a result takes it one tier down
 *
 * Entries of past periods are brought up to date when their members come, or before the archive
 * is removed because it has expired: they then get the entry that they would get if they came.
 *
 *     tier 3, period 2026-11-16, room 17  --{weekly}:3:17@2026-11-16, rank 2 of 30-->  tier 4, ..., room 0
 *
 * A member that is not in its room's archive, or whose archive is not there, stays in its tier. Room 0: in the tier,
 * with nothing to come from the period before. */
#ifndef SKIPLIST_LEAGUE_H
#define SKIPLIST_LEAGUE_H

#include "skiplist/keyspace/effect.h"

enum {
    LEAGUE_SUFFIX_MAX = 2 + 1 + 3 + 1 + 10, /* braces, and ":tier:room" */
    LEAGUE_PERIOD_MAX = (1 << 24) - 1,
};
/* Fields of the layout. */
enum { LEAGUE_TIER, LEAGUE_PERIOD, LEAGUE_ROOM };

struct league_entry {
    uint32_t tier;   /* 1 is the lowest */
    uint32_t period; /* league_period */
    uint32_t room;   /* from 1 on; 0: none */
};

/* Make it FIELD tier 8 FIELD period 24 FIELD room 32. */
void league_init_layout(struct layout *layout);
static inline uint64_t league_key(struct league_entry entry) {
    return (uint64_t)entry.tier << 56 | (uint64_t)entry.period << 32 | entry.room;
}
static inline struct league_entry league_entry_of(uint64_t key) {
    return (struct league_entry){.tier = (uint32_t)(key >> 56),
                                 .period = (uint32_t)(key >> 32) & LEAGUE_PERIOD_MAX,
                                 .room = (uint32_t)key};
}

/* ---- periods ---- */

/* The number of a period that begins at this time: hours since 2020, as far as 24 bits go. */
uint32_t league_period(int64_t start_ms);
/* When it begins: the inverse for a period of this calendar. */
int64_t league_period_start(const struct period *period, uint32_t number);
/* How many periods of the calendar are between two, neither counted, up to this maximum. */
uint32_t league_count_between(const struct period *period, uint32_t from, uint32_t to,
                              uint32_t maximum);

/* ---- tiers ---- */

/* The tier after a period in which a member had this rank in a room of so many. */
uint32_t league_tier_after(const struct board_league *league, uint32_t tier, uint32_t rank,
                           uint32_t count);
/* The tier after so many periods without a result. */
uint32_t league_tier_idle(const struct board_league *league, uint32_t tier, uint32_t periods);

/* ---- names ---- */

/* Can a league have this name? It must leave room for those of its archives, and its rooms be in its
 * slot: with braces, it has to have a tag, {in the braces}. */
MUST_CHECK bool league_is_name(struct bytes name);
/* The names of a league's keys, each printed in the place of the one before. A league's name that has a tag
 * gets no braces. */
struct league_names {
    size_t prefix_size; /* of "{weekly}:", with which all begin */
    char at[REGISTRY_NAME_MAX];
};
void league_names_init(struct league_names *names, struct bytes league);
/* "{weekly}:*", which matches them all; "{weekly}:rooms"; "{weekly}:3:17". */
struct bytes league_pattern(struct league_names *names);
struct bytes league_template(struct league_names *names);
struct bytes league_room(struct league_names *names, uint32_t tier, uint32_t room);
/* Of the room and the period of an entry, "{weekly}:3:17@2026-11-16". */
struct bytes league_archive(struct league_names *names, struct league_entry entry,
                            const struct period *period);
/* The parts of a room's name: what is before them, and without its braces; false: it is none. A
 * league may have either name. */
MUST_CHECK bool league_parse_room(struct bytes name, struct bytes *prefix, struct bytes *inner,
                                  struct league_entry *entry);

/* ---- in the registry ---- */

/* Called with a key's name before it is looked up. false: it cannot be. */
typedef bool league_open(const void *context, struct bytes name);
/* The tier now of a member whose entry is of a period before this one of this calendar; names are those of
 * this league. Look-ups of
 * archives bring due ones to their end, which may change entries of the league: look up the member
 * again afterwards. false: open has failed. */
MUST_CHECK bool league_find_tier(struct registry *registry, const struct registry_key *league,
                                 struct league_names *names, struct bytes member,
                                 struct league_entry entry, const struct period *period,
                                 uint32_t now_period, int64_t now_ms, league_open *open,
                                 const void *context, uint32_t *tier);

/* Give entries of their own to at most members_max members whose results the key has, if it is the
 * archive of a room. *work is how many were looked up, each in O(log n). */
MUST_CHECK enum key_expiry league_settle(struct registry *registry, const struct registry_key *key,
                                         uint32_t members_max, uint32_t *work);
/* Are both members in rooms of the running period, each in another one, of the league whose board this is, or one of
 * whose rooms they are in it is? What they have is then not to be put together board by board. */
MUST_CHECK bool league_parts(const struct registry *registry, const struct registry_key *key,
                             struct bytes one, struct bytes other);
/* The league of this database that has a room of this name, and the options of its template. NULL: there is none, or its
 * template has no PERIOD. */
struct registry_key *league_find_of_room(const struct registry *registry, uint32_t number,
                                         struct bytes name, struct league_entry *entry,
                                         const struct board_options **rooms);
/* The league of which this is the template's name; the template may have gone. NULL: there is none. */
struct registry_key *league_find_of_template(const struct registry *registry, uint32_t number,
                                             struct bytes name);

#endif
