/* The table of all commands, up to {0}, by group and name. main passes it to execute_init. */
#ifndef SERVER_TABLE_H
#define SERVER_TABLE_H

#include "server/dispatch/command.h"

extern const struct command_row command_table[];

#endif
