/* What Redis calls its commands beside their names: the categories of users' rules (+@read), with
 * @leaderboard; and the commands of Redis 7.0 that this server does not have, by what they are
 * about, so that the error behind an unknown command can say so. docs/reference/differences-from-redis.md
 * shows the same table. */
#ifndef SERVER_CATEGORY_H
#define SERVER_CATEGORY_H

#include "codec/bytes.h"
#include "server/dispatch/command.h"

enum { CATEGORIES = 22 };
#define CATEGORY_OWN "leaderboard"

/* "keyspace", in Redis's order; ours is last. */
const char *category_name(uint32_t category);
/* CATEGORIES: there is none of this name. In any case. */
uint32_t category_find(struct bytes name);
/* A bit for each category of the command: 1 << category. */
uint32_t category_mask(uint32_t command);

/* What COMMAND INFO and --describe call a flag, and the module's host; NULL: nothing. */
struct category_flag {
    unsigned flags; /* any of them */
    const char *name, *host_name;
};
/* In the order of COMMAND INFO; ends with a row without flags. */
extern const struct category_flag category_flags[];

struct absent_group {
    const char *title;
    const char *names; /* upper case, a blank between them */
};

/* Ends with a row whose title is NULL. */
extern const struct absent_group category_absent_groups[];

/* The title of the group of this command, in any case. NULL: Redis does not have it, either. */
const char *category_absent_title(struct bytes name);
/* Is this the full name of a command or subcommand that Redis has and this server has not: "set",
 * "xinfo|stream", "client|tracking"? */
MUST_CHECK bool category_is_absent(struct bytes full_name);

/* Is the name one of these words, which a blank separates? In any case. */
MUST_CHECK bool category_has_word(const char *words, struct bytes name);

/* What COMMAND INFO tells clients of a cluster, and those that compare replies, of a command, by its number:
 * Redis's tips, a blank between them. "": none. */
const char *category_tips(uint32_t index);

#endif
