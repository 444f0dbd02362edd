/* Bans: members that are kept off boards (LB.BAN), whatever command writes.
 *
 *     ban of a member = a hash in a database of the server's own
 *       its key     the database (1 byte), the member
 *       a field     a pattern of boards' names; its value: until when, 8 bytes, unix milliseconds; SHADOW: one byte more
 *
 * So bans are in the journal and in snapshots as any hash. One whose time is over counts no more;
 * the key expires with the last. A server without bans tests one number for each command that
 * writes. */
#ifndef SERVER_BAN_H
#define SERVER_BAN_H

#include "server/dispatch/call.h"
#include "skiplist/keyspace/registry.h"

enum {
    BAN_DATABASE = REGISTRY_BANS,
    BAN_PATTERNS_MAX = 16,      /* of a member */
    BAN_NUMBER_MAX = UINT8_MAX, /* of a database (keyspace_number); those above have no bans */
};
#define BAN_FOREVER INT64_MAX

enum ban_status {
    BAN_OK,
    BAN_OUT_OF_MEMORY,
    BAN_NO_DATABASE, /* BAN_NUMBER_MAX */
    BAN_TOO_MANY,    /* the member has BAN_PATTERNS_MAX others */
};

/* Is anybody banned from anything? */
static inline bool ban_exists(const struct registry *registry) {
    return registry_count(registry, BAN_DATABASE) > 0;
}
enum ban_kind {
    BAN_NONE,
    BAN_SHADOW, /* it goes on, and sees its entry alone: below */
    BAN_FULL,   /* also where others of its bans are SHADOW */
};
/* The member's ban from a board of this name. until_ms, if it is SHADOW: when that ends. */
enum ban_kind ban_find(struct registry *registry, uint32_t database, struct bytes board,
                       struct bytes member, int64_t now_ms, int64_t *until_ms);
/* Is the member banned from a board of this name, in either way? */
bool ban_holds(struct registry *registry, uint32_t database, struct bytes board,
               struct bytes member, int64_t now_ms);
/* Ban the member from boards that match, "*": all. A ban with this pattern is replaced. An error
 * changes nothing. */
MUST_CHECK enum ban_status ban_put(struct registry *registry, uint32_t database,
                                   struct bytes member, struct bytes pattern, int64_t until_ms,
                                   bool is_shadow, int64_t now_ms);
/* Lift all bans of the member. false: there was none. */
bool ban_lift(struct registry *registry, uint32_t database, struct bytes member, int64_t now_ms);
/* Until when a field's value says, and whether the ban is SHADOW. */
int64_t ban_until(struct bytes value);
bool ban_is_shadow(struct bytes value);

/* ---- shadows ----
 *
 * Entries of members who are banned with SHADOW. They see themselves among the others, and nobody else does.
 *
 *     shadow entry = a note of the board (registry.h), under a name of the board's own
 *       name      0 'S' member
 *       value     'S', packed key (8 bytes), then of each tag that has a value: name and value, each a size and so many bytes
 *
 * An entry is off the board, so others' ranks, counts and pages are as if the member were not there, and all that carries
 * a board carries it. It is put on the board for one command at a time, and nobody can look in between:
 *
 *     LB.ADD ... ann      put it back   run the command   keep it as a note     all three are effects of one group, so others
 *                                                                               read what is there before or behind them
 *     LB.RANGE, by ann    put it there  run the command   take it off           without an effect: also on a replica
 *
 * So results, ties, LIMITS, KEEP BEST, tags and ranks follow from the board's own rules. A command that writes members
 * (member_arg) shows those that it names, whoever sends it; of those that read, the player's own do (COMMAND_OWN_MEMBER).
 *
 * Boards that cannot have shadows take such a ban as one without SHADOW: those with a WINDOW or RATING, and leagues.
 * When the ban is over, a job (ban_shadow_job) puts the entries back, as does the first command that writes one. */

/* Can the board have shadows? */
bool ban_shadow_may_be(const struct registry_key *key);
/* Has it one of this member? */
bool ban_shadow_is_there(const struct registry_key *key, struct bytes member);
/* Is a note's name that of a shadow? Then of which member. */
bool ban_shadow_find_member(struct bytes note_name, struct bytes *member);

enum shadow_status {
    SHADOW_NONE, /* the member is not on the board */
    SHADOW_KEPT,
    SHADOW_OUT_OF_MEMORY, /* nothing has changed */
};
/* Take the member off the board, and keep its entry as a shadow. The key may get another address. The caller tells of
 * the change. */
MUST_CHECK enum shadow_status ban_shadow_hide(struct registry *registry, struct registry_key **key,
                                              struct bytes member);
/* Put a shadow back among all. false: no memory, nothing changed. */
MUST_CHECK bool ban_shadow_return(struct registry *registry, struct registry_key *key,
                                  struct bytes member);
/* Forget it. false: there is none. */
bool ban_shadow_remove(struct registry *registry, struct registry_key *key, struct bytes member);

/* Is the name short enough for a note's? */
static inline bool ban_shadow_fits(struct bytes member) {
    return member.size > 0 && member.size + 2 <= BOARD_MEMBER_MAX;
}

/* May the running command write this member, who is banned with SHADOW? */
bool ban_shadow_is_shown(const struct call *call, const struct registry_key *key, bool is_new,
                         struct bytes member);
/* CAP: how many of the board's members are there for the running command alone. */
uint32_t ban_shadow_count_shown(const struct call *call, const struct registry_key *key);

/* Run a command with the shadows that it sees: server.shadows.run. */
void ban_shadow_run_call(struct call *call);
/* Puts those back whose ban is over (server/sessions/job.h). */
extern const struct board_work ban_shadow_job;

#endif
