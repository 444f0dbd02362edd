/* HTTP for operators and their programs: libmicrohttpd on a thread of its own, a table of routes, and
 * questions to the engine (ask.h).
 *
 *     HTTP thread (low priority)                         engine's thread
 *
 *     socket, headers, Host, route
 *     login?   ------------------ ask ------------------>  may this user?
 *     wait up to GATHER, for others with the same route
 *              ------------------ ask ------------------>  look(): fill in the route's view
 *     write(): the reply of each that waits, from the view
 *
 * So many requests cost the engine as much as one: a route's view is asked for at most once in
 * HTTP_GATHER_MS, and every reply shows the state after its request came. A request that the engine does
 * not answer in time (it loads a board's worth of memory, or runs a long command) gets a 503.
 *
 * What a stranger may take: HTTP_CONNECTIONS_MAX connections, each with HTTP_CONNECTION_SIZE bytes and a
 * time limit for the request, the reply, and between two of them; where there are many, those who
 * say nothing are closed. Requests have no body, and only GET and
 * HEAD are answered. */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include <uv.h>

#include "protocol/buffer.h"

enum {
    HTTP_CONNECTIONS_MAX = 32,        /* fits the descriptors that process.c keeps from clients */
    HTTP_CONNECTION_SIZE = 16 * 1024, /* of the request's line and headers, and of the reply's */
    HTTP_REPLY_SIZE_MAX = 8 * 1024 * 1024,
    HTTP_ROUTES_MAX = 16,
    HTTP_GATHER_MS = 50,
    HTTP_ASK_LIMIT_MS = 2000,      /* for the engine's answer */
    HTTP_REQUEST_LIMIT_MS = 10000, /* from connecting to the end of the first request's headers */
    HTTP_IDLE_LIMIT_MS = 75000,    /* from a reply to the end of the next request's headers */
    HTTP_SEND_LIMIT_MS = 30000,    /* for sending the reply */
    HTTP_REFUSAL_DELAY_MS = 1000,  /* before a wrong password is answered */
    HTTP_ERROR_MAX = 512,
    HTTP_PEM_SIZE_MAX = 64 * 1024,
    HTTP_ADDRESS_MAX = 64,
    HTTP_USER_MAX = 256,
    HTTP_PASSWORD_MAX = 1024,
};

/* A reply to be filled in: 200, no type and no body at first. */
struct http_reply {
    unsigned status;
    const char *content_type; /* static */
    struct buffer body;
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

/* Who asks for a route with needs_user. */
struct http_login {
    char address[HTTP_ADDRESS_MAX]; /* the peer's, without a port */
    bool is_local;                  /* it is of this machine */
    bool has_password;              /* user and password were given */
    char user[HTTP_USER_MAX], password[HTTP_PASSWORD_MAX];
};
enum http_verdict {
    HTTP_LOGIN_OK,
    HTTP_LOGIN_NEEDED,  /* 401: a password is needed, or the one given is wrong */
    HTTP_LOGIN_REFUSED, /* 403: not from there, or not this user */
};

struct http_options {
    const struct http_route *routes;
    void *context;     /* of look and login; used on the engine's thread */
    const char *hosts; /* names of this server (http_header.h); "" for none */
    /* On the engine's thread. */
    enum http_verdict (*login)(void *context, const struct http_login *login);
    /* PEM texts; certificate NULL: without TLS. */
    const char *certificate, *key;
};

struct http;

/* Listen: "127.0.0.1", "::1", "*" (every IPv4 address), "::*" (every IPv6 address). -1: error
 * (HTTP_ERROR_MAX) says why. */
int http_listen(const char *address, int64_t port, char *error);
/* The text of a PEM file, to be freed with memory_free. NULL: error (HTTP_ERROR_MAX) says why. */
MUST_CHECK char *http_read_pem(const char *path, char *error);
/* Serve, on a thread of its own; engine_loop is the caller's. What the options point to is borrowed.
 * NULL: error (HTTP_ERROR_MAX) says why, and fd is closed. */
MUST_CHECK struct http *http_start(int fd, uv_loop_t *engine_loop,
                                   const struct http_options *options, char *error);
/* Close all connections, and end the thread. The loop must turn once more before http_destroy. */
void http_stop(struct http *http);
void http_destroy(struct http *http);

#endif
