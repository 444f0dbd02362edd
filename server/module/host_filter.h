/* Existing clients: ZADD becomes LB.ZADD for keys whose names match a `board` line of the module's
 * configuration. Only the name of the command changes, never the number of arguments. */
#ifndef SERVER_MODULE_HOST_FILTER_H
#define SERVER_MODULE_HOST_FILTER_H

#include "server/module/module.h"

/* Without a `board` line there is no filter. false: the host refused. */
bool host_filter_register(struct host_context *ctx);
/* The server is a replica from now on, or a master. */
void host_filter_note_role(bool is_now_replica);

#endif
