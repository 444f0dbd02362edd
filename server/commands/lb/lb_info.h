/* What LB.INFO and LB.LIST reply about a board. */
#ifndef SERVER_COMMAND_LB_INFO_H
#define SERVER_COMMAND_LB_INFO_H

#include "server/dispatch/call.h"
#include "skiplist/keyspace/rules.h"

/* Entries of a map that lb_put_options writes: the options, and the period. */
enum { LB_OPTIONS = 8 };
void lb_put_options(const struct call *call, const struct rules *rules);

#endif
