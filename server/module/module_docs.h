/* What COMMAND DOCS of the host says of our commands, where their keys are, and in which categories they are,
 * from the same entries as in the server. By the keys' flags the host knows which rights a user needs: ~pattern,
 * %R~pattern or %W~pattern; by the categories what +@sortedset and -@dangerous mean.
 *
 * Redis 7.0 has no categories for modules; @leaderboard is only where modules may add one. */
#ifndef SERVER_MODULE_MODULE_DOCS_H
#define SERVER_MODULE_MODULE_DOCS_H

#include "server/module/host_api.h"

/* Before all others. */
void module_docs_init(struct host_context *ctx);
/* name: of the host's command; number: of the entry (server/dispatch/command.h). false: no memory, or the host
 * refused it. */
bool module_docs_set(struct host_context *ctx, const char *name, uint32_t number);
/* A command without an entry, whose first argument is a key with these flags (enum key_flag). */
bool module_docs_set_key(struct host_context *ctx, const char *name, const char *summary,
                         unsigned flags);
/* The same command's categories: "keyspace read". */
bool module_docs_set_categories(struct host_context *ctx, const char *name, const char *categories);

#endif
