/* What the server answers over HTTP: /metrics, /healthz, /readyz. */
#ifndef SERVER_MONITORING_H
#define SERVER_MONITORING_H

#include "server/clients/server.h"
#include "server/http/http.h"

struct monitoring;

/* The listening socket, and PEM texts (certificate NULL: without TLS), which are borrowed, as is the server. engine_loop is
 * the caller's. NULL: error (HTTP_ERROR_MAX) says why, and fd is closed. */
MUST_CHECK struct monitoring *monitoring_start(int fd, uv_loop_t *engine_loop,
                                               struct server *server, const char *certificate,
                                               const char *key, char *error);
/* As http_stop and http_destroy. */
void monitoring_stop(struct monitoring *monitoring);
void monitoring_destroy(struct monitoring *monitoring);

#endif
