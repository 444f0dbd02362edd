/* A client's line in CLIENT LIST, CLIENT INFO and ACL LOG. */
#ifndef SERVER_CLIENT_LINE_H
#define SERVER_CLIENT_LINE_H

#include "server/clients/session.h"

/* Append the line with its line end. */
void client_line_print(const struct session *session, int64_t monotonic_ms, struct buffer *out);
/* A line that is alone in its buffer, without the end. */
struct bytes client_line_text(const struct buffer *line);

#endif
