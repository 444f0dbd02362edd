/* Shadows: entries of members who are banned with SHADOW. They see themselves among the others, and nobody else does.
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
 * When the ban is over, a job (shadow_job) puts the entries back, as does the first command that writes one. */
#ifndef SERVER_SHADOW_H
#define SERVER_SHADOW_H

#include "server/commands/ban.h"
#include "server/dispatch/call.h"

/* Can the board have shadows? */
bool shadow_may_be(const struct registry_key *key);
/* Has it one of this member? */
bool shadow_is_there(const struct registry_key *key, struct bytes member);
/* Is a note's name that of a shadow? Then of which member. */
bool shadow_find_member(struct bytes note_name, struct bytes *member);

enum shadow_status {
    SHADOW_NONE, /* the member is not on the board */
    SHADOW_KEPT,
    SHADOW_OUT_OF_MEMORY, /* nothing has changed */
};
/* Take the member off the board, and keep its entry as a shadow. The key may get another address. The caller tells of
 * the change. */
MUST_CHECK enum shadow_status shadow_hide(struct registry *registry, struct registry_key **key,
                                          struct bytes member);
/* Put a shadow back among all. false: no memory, nothing changed. */
MUST_CHECK bool shadow_return(struct registry *registry, struct registry_key *key,
                              struct bytes member);
/* Forget it. false: there is none. */
bool shadow_remove(struct registry *registry, struct registry_key *key, struct bytes member);

/* Is the name short enough for a note's? */
static inline bool shadow_fits(struct bytes member) {
    return member.size > 0 && member.size + 2 <= BOARD_MEMBER_MAX;
}

/* May the running command write this member, who is banned with SHADOW? */
bool shadow_is_shown(const struct call *call, const struct registry_key *key, bool is_new,
                     struct bytes member);
/* CAP: how many of the board's members are there for the running command alone. */
uint32_t shadow_count_shown(const struct call *call, const struct registry_key *key);

/* Run a command with the shadows that it sees: server.shadows.run. */
void shadow_run_call(struct call *call);
/* Puts those back whose ban is over (server/sessions/job.h). */
extern const struct board_work shadow_job;

#endif
