/* INFO's text. */
#ifndef SERVER_INFO_H
#define SERVER_INFO_H

#include "server/sessions/server.h"

/* sections: as given to INFO; none: the default sections. */
void info_print(struct server *server, int64_t now_ms, const struct bytes *sections,
                uint32_t section_count, struct buffer *out);

#endif
