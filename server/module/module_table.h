/* The commands of the module: those of boards. ZADD is LB.ZADD to the host, LB.ADD is LB.ADD. */
#ifndef SERVER_MODULE_TABLE_H
#define SERVER_MODULE_TABLE_H

#include "server/module/host_api.h"

enum { MODULE_COMMANDS_MAX = 64 };

/* Complete the entries; then register them. false: the host refused one. */
void module_table_init(void);
bool module_table_register(struct host_context *ctx);

#endif
