/* What files of this room share, and INFO's text. */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include "server/dispatch/call.h"

/* Describes a command and its subcommands. Returns the number of elements or pairs written. */
typedef uint64_t command_describe(struct call *call, uint32_t index);
/* Reply an array or a map of the commands named by the arguments from 2 on, without any of all. In
 * an array an unknown name is nil, in a map it is left out. A command that is named again is
 * copied: even a million repetitions cost no more than copying the reply. */
void describe_each(struct call *call, command_describe *describe, bool is_map);

/* Append INFO's text. sections: as given to INFO; none: the default sections. */
void info_print(struct server *server, int64_t now_ms, const struct bytes *sections,
                uint32_t section_count, struct buffer *out);

#endif
