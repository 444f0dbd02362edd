/* HTTP for operators and their programs: a table of routes on a listener (http.h), and questions to
 * the engine (asks.h).
 *
 *     HTTP thread (low priority)                         engine's thread
 *
 *     route; login?  ------------ ask ------------------>  may this user?
 *     wait up to GATHER, for others with the same route
 *              ------------------ ask ------------------>  look(): fill in the route's view
 *     write(): the reply of each that waits, from the view
 *
 * So many requests cost the engine as much as one: a route's view is asked for at most once in
 * HTTP_GATHER_MS, and every reply shows the state after its request came. A request that the engine does
 * not answer in time (it loads a board's worth of memory, or runs a long command) gets a 503.
 *
 * Who is not authenticated takes one of HTTP_CONNECTIONS_MAX connections. Requests have no body, and only GET and HEAD
 * are answered. */
#ifndef SERVER_HTTP_ROUTES_H
#define SERVER_HTTP_ROUTES_H

#include "server/http/http.h"

enum {
    HTTP_CONNECTIONS_MAX = 32, /* fits the descriptors that process.c keeps from clients */
    HTTP_ROUTES_MAX = 16,
    HTTP_GATHER_MS = 50,
};

struct http_route {
    const char *path; /* "/metrics"; NULL ends the table */
    bool needs_user;
    /* On the engine's thread, between two ticks: fill in the view. It must be short. NULL: the reply needs
     * nothing of the engine. */
    void (*look)(void *context, void *view);
    /* On the HTTP thread: write the reply. accept: the header, or NULL. */
    void (*write)(const void *view, const char *accept, struct http_reply *reply);
    void *view; /* the route's own */
};

struct http_routes_options {
    const struct http_route *routes;
    void *context;     /* of look and login; used on the engine's thread */
    const char *hosts; /* names of this server (http.h); "" for none */
    /* On the engine's thread. */
    enum http_verdict (*login)(void *context, struct http_login *login);
    /* PEM texts; certificate NULL: without TLS. */
    const char *certificate, *key;
};

struct http_routes;

/* Serve, on a thread of its own; engine_loop is the caller's. What the options point to is borrowed.
 * NULL: error (HTTP_ERROR_MAX) says why, and fd is closed. */
MUST_CHECK struct http_routes *http_routes_start(int fd, uv_loop_t *engine_loop,
                                                 const struct http_routes_options *options,
                                                 char *error);
/* Close all connections, and end the thread. The loop must turn once more before http_routes_destroy. */
void http_routes_stop(struct http_routes *http);
void http_routes_destroy(struct http_routes *http);

#endif
