/* Shared by the files of the listener alone, each of which calls only those before it:
 *
 *     http_peer.c       connections
 *     http_exchange.c   replies
 *     http_stream.c     streams
 *     http_request.c    what comes
 *     http_server.c     the thread, whose loop drives the others
 *
 * All of it is used on the HTTP thread alone. */
#ifndef SERVER_HTTP_SERVER_PARTS_H
#define SERVER_HTTP_SERVER_PARTS_H

#include <microhttpd.h>
#include <stdarg.h>

#include "codec/list.h"
#include "server/http/http_server.h"

#define HTTP_PLAIN_TEXT "text/plain; charset=utf-8"

enum { HTTP_EXCESS_MAX = 16 }; /* connections of an address beyond its limit, which are told so */

/* A connection, and since when it is in its phase. */
struct http_peer {
    struct http_peer *next, *previous;
    int fd;
    struct http_exchange *exchange;       /* of the request that it is at; NULL: none */
    uint8_t address[SUBNET_ADDRESS_SIZE]; /* of the connection */
    uint8_t client[SUBNET_ADDRESS_SIZE];  /* who asks: the same, or whom a proxy names */
    bool is_proxy;                        /* it is one of options.proxies */
    bool is_counted;                      /* among the connections of the client's address */
    bool is_excess;                       /* the address had enough of them when it came */
    bool is_cut;
    int64_t since_ms, limit_ms; /* limit_ms 0: none */
};

struct http_server {
    struct MHD_Daemon *daemon;
    struct asks asks;
    uv_loop_t loop;
    uv_thread_t thread;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_idle_t idle;
    uv_check_t check;
    struct http_server_options options;
    struct http_peer *peer_first;
    unsigned peer_count;
    struct http_exchange *waiting_first, *stream_first;
    unsigned stream_count;
    size_t sending_size;    /* of replies that are being sent */
    size_t bodies_size;     /* of requests */
    struct pollfd *streams; /* streams_max of them */
    int64_t streams_swept_ms;
    uint64_t timer_ms; /* 0: it does not run */
    _Atomic bool is_stopping;
    bool is_ended;
};

/* ---- connections ---- */

/* The library asks whether an address may connect, and tells of connections. */
enum MHD_Result http_peer_accept(void *server, const struct sockaddr *address, socklen_t size);
void http_peer_notify(void *server, struct MHD_Connection *connection, void **peer,
                      enum MHD_ConnectionNotificationCode code);
/* From now on it has so much time; 0: no limit. peer NULL: nothing. */
void http_peer_begin_phase(struct http_server *server, struct http_peer *peer, int64_t limit_ms);
/* Its request's headers are there: take the client that a proxy names. false: the client's address has too many
 * connections. */
MUST_CHECK bool http_peer_begin_request(struct http_exchange *exchange);
void http_peer_end_request(struct http_exchange *exchange);
/* Shut it down: the library then sees its end. */
void http_peer_cut(struct http_peer *peer);
/* Cut those whose time is over, and where there are many those who say nothing. */
void http_peer_sweep(struct http_server *server, int64_t now_ms);

/* ---- requests ---- */

/* What the library calls. */
void *http_request_begin(void *server, const char *target, struct MHD_Connection *connection);
enum MHD_Result http_request_take(void *server, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **exchange);
void http_request_end(void *server, struct MHD_Connection *connection, void **exchange,
                      enum MHD_RequestTerminationCode code);
__attribute__((format(printf, 2, 0))) void http_request_log(void *server, const char *format,
                                                            va_list arguments);

/* ---- replies ---- */

bool http_exchange_is_waiting(const struct http_exchange *exchange);
void http_exchange_resume(struct http_exchange *exchange);
void http_exchange_add_headers(const struct http_exchange *exchange, struct MHD_Response *response);
enum MHD_Result http_exchange_send(struct http_exchange *exchange);
/* Those that have waited for too long are replied to. */
void http_exchange_sweep(struct http_server *server, int64_t now_ms);

/* ---- streams ---- */

enum MHD_Result http_stream_send(struct http_exchange *exchange);
/* Nobody listens to a suspended connection: those whose other end is closed are looked for. */
void http_stream_sweep(struct http_server *server, int64_t now_ms);

#endif
