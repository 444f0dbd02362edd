/* What LB.INFO and LB.LIST reply about a board. */
#ifndef SERVER_COMMAND_LB_INFO_H
#define SERVER_COMMAND_LB_INFO_H

#include "server/dispatch/call.h"
#include "skiplist/keyspace/rules.h"

/* Entries of a map that lb_put_options writes: the options, and the period. */
enum { LB_OPTIONS = 8 };
void lb_put_options(const struct call *call, const struct rules *rules);
/* Another entry: "archives", the names of those that are there, the newest first. They are looked for under
 * the names of the periods before the present one: a bounded number. */
void lb_put_archives(const struct call *call, const struct registry_key *key);

#endif
