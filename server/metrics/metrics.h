/* What the server answers over HTTP: /metrics, /healthz, /readyz, which is a table of routes on http/. /metrics copies
 * the figures on the engine's thread, and prints them on the HTTP thread: as OpenMetrics 1.0, or in the text format of
 * Prometheus that is older. INFO and the page (web/) show the same figures. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "codec/buffer.h"
#include "server/http/http_routes.h"
#include "server/metrics/figures.h"

struct metrics;

/* The listening socket, and PEM texts (certificate NULL: without TLS), which are borrowed, as is the server.
 * engine_loop is the caller's. NULL: error (HTTP_ERROR_MAX) says why, and fd is closed. */
MUST_CHECK struct metrics *metrics_start(int fd, uv_loop_t *engine_loop, struct server *server,
                                         const char *certificate, const char *key, char *error);
/* As http_routes_stop and http_routes_destroy. */
void metrics_stop(struct metrics *metrics);
void metrics_destroy(struct metrics *metrics);

enum metrics_format { METRICS_OPENMETRICS, METRICS_PROMETHEUS };

/* The format that an Accept header asks for; NULL: OpenMetrics. */
enum metrics_format metrics_choose(const char *accept);
/* Print all metrics. */
void metrics_print(const struct figures *figures, enum metrics_format format, struct buffer *out);

#endif
