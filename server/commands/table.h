/* The table of all commands, NULL-terminated, by group and name. main passes it to command_init. */
#ifndef SERVER_TABLE_H
#define SERVER_TABLE_H

#include "server/dispatch/command.h"

extern const struct command *const command_table[];

#endif
