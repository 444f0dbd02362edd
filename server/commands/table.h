/* The table of all commands, up to {0}, by group and name. main passes it to execute_init.
 *
 * How this room works: a folder holds a group of commands, a file a family of them, each entry beside
 * its handler. What writes members goes through writing.h, so that no command can bypass a board's
 * rules or a ban (ban.h); what walks over keys in steps goes through scanning.h and keyspace.h. */
#ifndef SERVER_TABLE_H
#define SERVER_TABLE_H

#include "server/dispatch/command.h"

extern const struct command_row command_table[];

#endif
