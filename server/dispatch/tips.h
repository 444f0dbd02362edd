/* What COMMAND INFO tells clients of a cluster, and those that compare replies, of a command. */
#ifndef SERVER_TIPS_H
#define SERVER_TIPS_H

#include <stdint.h>

/* Redis's tips of a command, by its number; a blank between them. "": none. */
const char *tips_of_command(uint32_t index);

#endif
