/* Redis's categories of commands, as users' rules name them (+@read), and @leaderboard. */
#ifndef SERVER_CATEGORY_H
#define SERVER_CATEGORY_H

#include "server/dispatch/command.h"

enum { CATEGORIES = 22 };
#define CATEGORY_OWN "leaderboard"

/* "keyspace", in Redis's order; ours is last. */
const char *category_name(uint32_t category);
/* CATEGORIES: there is none of this name. In any case. */
uint32_t category_find(struct bytes name);
/* A bit for each category of the command: 1 << category. */
uint32_t category_mask(uint32_t command);

#endif
