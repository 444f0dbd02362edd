/* LB.LEAGUE: leagues (skiplist/keyspace/league.h). lb_league.c has all subcommands but CREATE and ADD. */
#ifndef SERVER_COMMAND_LB_LEAGUE_H
#define SERVER_COMMAND_LB_LEAGUE_H

#include "server/dispatch/call.h"
#include "skiplist/keyspace/league.h"

enum { LB_LEAGUE_KEY = 2 }; /* the argument */

struct lb_league {
    const struct call *call;
    struct registry_key *key;
    const struct board_options *options;
    const struct board_options
        *rooms;          /* of the template. NULL: there is none with a PERIOD, or none yet for
                                * the running period, on a replica */
    const char *refusal; /* why rooms cannot have the template's options; NULL: they can */
    uint32_t period;     /* the running one; if there are rooms */
    struct league_names names;
};

/* A member, as it is now. */
struct lb_league_place {
    struct board_member member; /* looked up on the league's board */
    struct league_entry entry;  /* if it is there */
    uint32_t tier;              /* now; if it is there */
    uint32_t tier_before;       /* on the league's board, as the command found it */
    bool is_in_room;            /* the entry's, in the running period */
    struct registry_key *room;  /* that one; NULL: it does not exist */
};

/* Find the league of the command's key, on which the user needs the rights of the command, and on all
 * its rooms: {key}:*. false: the error was replied. */
MUST_CHECK bool lb_league_begin(const struct call *call, struct lb_league *league);
/* Why can rooms not have these options, which have a PERIOD? NULL: they can. */
const char *lb_league_refusal(const struct call *call, const struct board_options *rooms);
/* For a command that writes: does the league take writes now, and has it rooms? false: the error was
 * replied. */
MUST_CHECK bool lb_league_check_writing(struct lb_league *league);
/* Another key of the league; NULL: it does not exist. false: no memory; the error was replied. */
MUST_CHECK bool lb_league_find_key(const struct call *call, struct bytes name,
                                   struct registry_key **key);
MUST_CHECK bool lb_league_check_access(const struct call *call, struct league_names *names);

/* Without rooms, tiers are those of the entries. false: no memory; the error was replied. */
MUST_CHECK bool lb_league_look_up(struct lb_league *league, struct bytes member,
                                  struct lb_league_place *place);
/* May it be a member, and is there room for it on the league's board? false: the error was replied. */
MUST_CHECK bool lb_league_check_newcomer(const struct lb_league *league, struct bytes member,
                                         const struct lb_league_place *place);
/* Reply the tier, the room and the record of a member, on the board and in the running period: the first
 * three elements of GET and ADD. */
void lb_league_reply_place(const struct lb_league *league, const struct lb_league_place *place,
                           bool with_strings);
/* The entry of the room opened last in a tier, at the first of those who are in it; room 0: none was. */
struct league_entry lb_league_open_room(const struct lb_league *league, uint32_t tier,
                                        struct board_cursor *cursor);
/* Put the member into the league, or change its entry; there is memory. Clients are told. */
void lb_league_put(const struct lb_league *league, const struct lb_league_place *place,
                   struct league_entry entry);
/* Tell clients of an entry that has changed, or been removed. */
void lb_league_tell(const struct lb_league *league, struct league_entry entry, uint32_t tier_before,
                    struct bytes member);

extern const struct command lb_league_create, lb_league_add;

#endif
