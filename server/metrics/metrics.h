/* What the server answers over HTTP: /metrics, /healthz, /readyz. /metrics copies the figures on the engine's thread, and
 * prints them on the HTTP thread: as OpenMetrics 1.0, or in the text format of Prometheus that is older. INFO and the page
 * (web/) show the same figures. They are a table of routes on a listener (http.h), and questions to the engine (http.h):
 *
 *     HTTP thread (low priority)                         engine's thread
 *
 *     route; login?  ------------ ask ------------------>  may this user?
 *     wait up to GATHER, for others with the same route
 *              ------------------ ask ------------------>  look(): fill in the route's view
 *     write(): the reply of each that waits, from the view
 *
 * So many requests cost the engine as much as one: a route's view is asked for at most once in
 * METRICS_GATHER_MS, and every reply shows the state after its request came. A request that the engine does
 * not answer in time (it loads a board's worth of memory, or runs a long command) gets a 503.
 *
 * Who is not authenticated takes one of METRICS_CONNECTIONS_MAX connections. Requests have no body, and only GET and HEAD
 * are answered. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "codec/buffer.h"
#include "server/http/http.h"
#include "server/metrics/figures.h"

/* ---- a table of routes ---- */

enum {
    METRICS_CONNECTIONS_MAX = 32, /* fits the descriptors that process.c keeps from clients */
    METRICS_ROUTES_MAX = 16,
    METRICS_GATHER_MS = 50,
};

struct metrics_route {
    const char *path; /* "/metrics"; NULL ends the table */
    bool needs_user;
    /* On the engine's thread, between two ticks: fill in the view. It must be short. NULL: the reply needs
     * nothing of the engine. */
    void (*look)(void *context, void *view);
    /* On the HTTP thread: write the reply. accept: the header, or NULL. */
    void (*write)(const void *view, const char *accept, struct http_reply *reply);
    void *view; /* the route's own */
};

struct metrics_routes_options {
    const struct metrics_route *routes;
    void *context;     /* of look and login; used on the engine's thread */
    const char *hosts; /* names of this server (http.h); "" for none */
    /* On the engine's thread. */
    enum http_verdict (*login)(void *context, struct http_login *login);
    /* PEM texts; certificate NULL: without TLS. */
    const char *certificate, *key;
};

struct metrics_routes;

/* Serve, on a thread of its own; engine_loop is the caller's. What the options point to is borrowed.
 * NULL: error (HTTP_ERROR_MAX) says why, and fd is closed. */
MUST_CHECK struct metrics_routes *metrics_routes_start(int fd, uv_loop_t *engine_loop,
                                                       const struct metrics_routes_options *options,
                                                       char *error);
/* Close all connections, and end the thread. The loop must turn once more before metrics_routes_destroy. */
void metrics_routes_stop(struct metrics_routes *http);
void metrics_routes_destroy(struct metrics_routes *http);

/* ---- the metrics ---- */

struct metrics;

/* The listening socket, and PEM texts (certificate NULL: without TLS), which are borrowed, as is the server.
 * engine_loop is the caller's. NULL: error (HTTP_ERROR_MAX) says why, and fd is closed. */
MUST_CHECK struct metrics *metrics_start(int fd, uv_loop_t *engine_loop, struct server *server,
                                         const char *certificate, const char *key, char *error);
/* As metrics_routes_stop and metrics_routes_destroy. */
void metrics_stop(struct metrics *metrics);
void metrics_destroy(struct metrics *metrics);

enum metrics_format { METRICS_OPENMETRICS, METRICS_PROMETHEUS };

/* The format that an Accept header asks for; NULL: OpenMetrics. */
enum metrics_format metrics_choose(const char *accept);
/* Print all metrics. */
void metrics_print(const struct figures *figures, enum metrics_format format, struct buffer *out);

#endif
