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
 * Invariant: it is a hint and no more. Nothing is changed, and what is found here is checked before
 * it is used (board_look_up), so every request has the same result without it; a malformed one is
 * left to its handler. */
#ifndef SERVER_PREFETCH_H
#define SERVER_PREFETCH_H

#include "server/command.h"
#include "server/tick.h"

enum {
    PREFETCH_MEMBERS_MAX = 64, /* in a group; those beyond are not fetched */
    PREFETCH_NO_KEY = TICK_GROUP,
};

/* A group of entries and what was found for them. */
struct prefetch_group {
    struct registry_prefetch keys[TICK_GROUP]; /* neighbours with the same key share one */
    unsigned key_count;
    uint8_t key_numbers[TICK_GROUP];            /* by entry: in keys, or PREFETCH_NO_KEY */
    const struct board *boards[TICK_GROUP];     /* by entry; NULL: nothing to fetch */
    const struct command *commands[TICK_GROUP]; /* by entry; NULL: nothing to fetch */
    struct board_prefetch *ahead[TICK_GROUP];   /* by entry: for its only member, or NULL */
    struct board_prefetch members[PREFETCH_MEMBERS_MAX];
    bool are_changes[PREFETCH_MEMBERS_MAX];
    unsigned member_count;
    struct board_way ways[TICK_GROUP]; /* to where lone new scores will stand */
    struct board_prefetch *way_members[TICK_GROUP];
    unsigned way_count;
};

/* entries[0 .. count-1], at most TICK_GROUP, will run next; void ones among them are passed over.
 * What was found stays in group and borrows from the entries. */
void prefetch_entries(const struct server *server, const struct tick_entry *entries, unsigned count,
                      struct prefetch_group *group);

/* Entry i of the group is the next to run: what was found for its key is handed on. */
void prefetch_recall(const struct server *server, const struct prefetch_group *group, unsigned i);

#endif
