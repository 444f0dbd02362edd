/* Random commands of all kinds to a real server, and what it then holds, to be compared
 * (registry_workload.h). */
#ifndef TESTS_SUPPORT_COMMANDS_H
#define TESTS_SUPPORT_COMMANDS_H

#include "skiplist/keyspace/registry.h"
#include "tests/support/process.h"
#include "tests/support/wire.h"

/* Begin the random numbers anew; the name is told with their seed. */
void commands_begin(const char *name);
/* Boards and a ban, each of a kind of its own. */
void commands_make_kinds(struct wire *wire);
/* So many commands and some more, also in transactions; what they answer does not matter. */
void commands_write(struct wire *wire, int count);

/* All that a server holds, by way of a backup with that path: registry_destroy releases it. */
struct registry *commands_copy(const struct process *server, const char *path);
struct registry *commands_read_copy(const char *path);

#endif
