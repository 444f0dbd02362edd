/* A client's line in CLIENT LIST, CLIENT INFO and ACL LOG. */
#ifndef SERVER_CLIENT_LINE_H
#define SERVER_CLIENT_LINE_H

#include "server/sessions/server.h"

/* Append the line with its line end. */
void client_line_print(const struct session *session, int64_t monotonic_ms, struct buffer *out);
/* Note in ACL LOG what was refused to the client; reason: as acl_log_add has it. */
void client_line_log(struct server *server, const struct session *session, const char *reason,
                     struct bytes object, struct bytes user);

#endif
