/* What the server answers over HTTP: /metrics, /healthz, /readyz. */
#ifndef SERVER_MONITORING_H
#define SERVER_MONITORING_H

#include "server/clients/server.h"
#include "server/http/http.h"

struct monitoring;

/* The server is borrowed. NULL: out of memory. */
MUST_CHECK struct monitoring *monitoring_create(struct server *server);
void monitoring_destroy(struct monitoring *monitoring);
/* The routes, with the monitor as context; options->hosts and the PEM texts are the caller's. */
void monitoring_fill_options(struct monitoring *monitoring, struct http_options *options);

#endif
