/* A listener for HTTP: libmicrohttpd on a thread of its own, of low priority. What is answered is up to
 * its handler; server/metrics/ has a table of routes, server/web/ a page.
 *
 *     HTTP thread                                               engine's thread
 *
 *     socket, headers, Host, body
 *     handle(): reply at once, or wait   --- struct ask    --->   answer
 *     done: http_exchange_ready          <-------------------
 *     or stream: one text after another, the newest replaces those not begun
 *
 *     NEW ---> WAITS ---> READY            busy, if it waits too long
 *      |  \---> DELAYED ---> READY         a refusal that waits
 *      \-----> STREAMS ---> (end)
 *
 * What anybody may take, authenticated or not: connections_max connections, each with HTTP_CONNECTION_SIZE
 * bytes and a time limit for the request, the reply, and between two of them. Where there are many, silent
 * ones are closed. */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include <stdarg.h>
#include <uv.h>

#include "codec/buffer.h"
#include "codec/check.h"
#include "codec/subnet.h"
#include "server/system/jwt.h"
#include "server/system/worker.h"

#define HTTP_PLAIN_TEXT "text/plain; charset=utf-8"

enum {
    HTTP_CONNECTION_SIZE = 16 * 1024, /* of the request's line and headers, and of the reply's */
    HTTP_HEAD_SIZE_MAX = 13 * 1024,   /* of the request's alone */
    HTTP_REPLY_SIZE_MAX = 8 * 1024 * 1024,
    HTTP_BODY_MAX = 4096,          /* of a request, where the options say nothing else */
    HTTP_HEADERS_MAX = 16,         /* of a reply, beside those of every reply */
    HTTP_SEEN_MAX = 24,            /* of a request, that are found at once */
    HTTP_REQUEST_LIMIT_MS = 10000, /* from connecting to the end of the first request's headers */
    HTTP_IDLE_LIMIT_MS = 75000,    /* from a reply to the end of the next request's headers */
    HTTP_SEND_LIMIT_MS = 30000,    /* for sending the reply, or one text of a stream */
    HTTP_ADDRESS_MAX = 64,
    HTTP_USER_MAX = 256,
    HTTP_PASSWORD_MAX = JWT_SIZE_MAX + 1, /* or of a token */
    HTTP_ERROR_MAX = 512,
    HTTP_PEM_SIZE_MAX = 64 * 1024,
};

/* ---- what can fail while the operator still sees the terminal: the listening socket, certificates ---- */

/* Listen: "127.0.0.1", "::1", "*" (every IPv4 address), "::*" (every IPv6 address). -1: error
 * (HTTP_ERROR_MAX) says why. family: of settings, "metrics" of metrics-port and metrics-bind. */
int http_listen(const char *family, const char *address, int64_t port, char *error);
/* The text of a PEM file, to be freed with memory_free. NULL: error (HTTP_ERROR_MAX) says why. */
MUST_CHECK char *http_read_pem(const char *path, char *error);

/* ---- questions to the engine: http_ask.c ----
 *
 * Questions from another thread to the engine's, which answers them between two ticks. So what the
 * engine owns is read without a lock, and the engine never waits for the other side.
 *
 *     asker    http_ask_put, http_ask_send ---> to_engine ---> answer()   engine: in its loop's poll, at most ASKS_PER_TURN
 *              done()              <--- to_asker  <---            of them a turn
 *
 * Questions of a turn go together, and so do answers: waking the other side, and going from one to the other where both
 * have one processor, takes longer than many an answer. A question is its asker's memory: the engine uses it from
 * http_ask_put to done.
 *
 * How many questions there are at a time is the asker's to limit: the listener has one a route, and one a
 * request that gives a password; server/web/ limits the time that they take. */

/* The first always, and further ones while these have not taken so long. */
enum { ASKS_PER_TURN = 8, ASKS_NS_PER_TURN = 500000 };

struct ask {
    struct ask *next;
    /* On the engine's thread. It must be short. false: it is answered later, by http_ask_answer. */
    bool (*answer)(void *context, struct ask *ask);
    /* On the asker's thread, with the answer. */
    void (*done)(void *context, struct ask *ask);
};

/* One direction. */
struct ask_way {
    _Atomic(struct ask *) newest;
    struct wakeup wakeup;
};

struct asks {
    struct ask_way to_engine, to_asker;
    struct ask *left_first; /* the engine has taken them, but not answered yet, oldest first */
    struct ask *put_newest, *put_oldest; /* the asker has put them, but not sent yet */
    unsigned put_count;
    void *engine_context, *asker_context;
};

/* Must be zeroed. engine_context is for answer, asker_context for done. The handles keep no loop alive.
 * false: no descriptor; nothing is left behind. */
MUST_CHECK bool http_ask_init(struct asks *asks, uv_loop_t *engine_loop, void *engine_context,
                              void *asker_context);
/* On the asker's thread, before anything else there. false: libuv failed. */
MUST_CHECK bool http_ask_attach(struct asks *asks, uv_loop_t *asker_loop);
/* The asker: put a question; it is sent with others, as soon as there are ASKS_PER_TURN. */
void http_ask_put(struct asks *asks, struct ask *ask);
/* The asker, at the end of each turn of its loop: send what was put. */
void http_ask_send(struct asks *asks);
/* The engine: give back what answer has kept. */
void http_ask_answer(struct asks *asks, struct ask *ask);
/* Wake the asker's loop; any thread. */
void http_ask_wake_asker(struct asks *asks);
/* The asker, at its end: its loop must turn once more. */
void http_ask_detach(struct asks *asks);
/* The engine, when the asker's thread has ended: its loop must turn once more, and then http_ask_deinit. The
 * questions that are left are given to drop, with asker_context; those that answer has kept are the
 * engine's to give back before. */
void http_ask_close(struct asks *asks, void (*drop)(void *context, struct ask *ask));
void http_ask_deinit(struct asks *asks);

/* ---- the listener ---- */

struct http_server;
struct MHD_Connection;
struct http_peer;

/* A text that several streams send. Counted; the HTTP thread's alone. */
struct http_text {
    uint32_t uses;
    struct buffer bytes;
};
/* Empty, in use once. NULL: out of memory. */
MUST_CHECK struct http_text *http_text_create(size_t size_max);
void http_text_release(struct http_text *text); /* NULL: nothing */

struct http_header {
    const char *name, *value; /* static, or as long as the exchange */
};

/* A reply to be filled in: 200, no body at first. */
struct http_reply {
    unsigned status;
    const char *content_type; /* static */
    struct buffer body;
    struct bytes fixed;               /* static, in place of body; at NULL: none */
    const struct http_header *common; /* static, the last one's name is NULL; NULL: none */
    struct http_header headers[HTTP_HEADERS_MAX]; /* beside those */
    unsigned header_count;
    bool is_kept;         /* no "Cache-Control: no-store": a header of its own says so */
    bool is_last;         /* the connection ends with it */
    bool is_login_wanted; /* the browser is to ask for user and password (401) */
    unsigned retry_s;     /* Retry-After, in seconds; 0: none but that of every 503 */
    unsigned allowed;     /* of a 405, as options.methods; 0: those */
};
void http_reply_header(struct http_reply *reply, const char *name, const char *value);

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_METHODS,
    HTTP_OTHER = HTTP_METHODS, /* none of these: for handlers that take others than GET and HEAD */
};
extern const char *const http_method_names[HTTP_METHODS];
enum { HTTP_METHODS_TEXT_MAX = 64 };
/* Bits 1 << HTTP_GET and so on as "GET, HEAD". */
void http_reply_print_methods(unsigned methods, char out[HTTP_METHODS_TEXT_MAX]);

enum http_stage {
    HTTP_NEW,
    HTTP_WAITS,
    HTTP_DELAYED, /* its reply is there, and waits */
    HTTP_STREAMS,
    HTTP_READY,
};

/* A request, until its reply is sent. */
struct http_exchange {
    struct http_server *server;
    const struct http_server_options *options; /* its */
    enum http_method method;
    const char *path;   /* decoded; without a query */
    char *target;       /* as sent, with the query; owned; NULL: out of memory */
    struct buffer body; /* of a request that has one */
    struct http_reply reply;
    void *own; /* the handler's */
    /* private */
    struct MHD_Connection *connection;
    struct http_peer *peer;
    struct http_exchange *next, *previous; /* of those that wait, or stream */
    enum http_stage stage;
    const char *line; /* where the target was in the request's line */
    size_t head_size; /* of line and headers, once http_request_is_ambiguous has seen them */
    bool is_begun, has_lingered, is_suspended, is_stream_over;
    bool is_too_long; /* its body, which came in chunks, or of which nothing is wanted */
    bool is_answered; /* past the library */
    int64_t due_ms;
    struct http_text *sending, *pending;
    size_t sent;
    struct http_spare *spare; /* with which its reply is sent */
    size_t counted;           /* bytes of its reply among those that are being sent */
    size_t received;          /* bytes of its body among those of all */
    size_t dropped;           /* bytes of a body that is too long */
    /* Its headers, as the library keeps them, once they are there: handlers ask for twenty, most of which it has not. */
    unsigned seen_count;
    uint32_t seen_letters; /* bits: with which of 32 letters some of them begin */
    bool has_seen_all;
    /* Not zeroed, as all before is. */
    struct http_header seen[HTTP_SEEN_MAX];
    char target_room[256]; /* where target mostly stands */
};

struct http_handler {
    void *context;
    void *engine_context; /* for answer of what is asked */
    /* The request is there: fill in the reply and call http_exchange_ready, or wait, or stream. */
    void (*handle)(void *context, struct http_exchange *exchange);
    /* It is over: replied to, or gone. NULL: nothing to do. */
    void (*leave)(void *context, struct http_exchange *exchange);
    /* Every few milliseconds while a request waits or a stream is open, every step_ms otherwise (0: as long
     * as somebody is connected, every now and then). */
    void (*step)(void *context, int64_t now_ms);
    uint64_t step_ms;
    /* A question that the thread's end has left without an answer. NULL: nothing to do. */
    void (*drop)(void *context, struct ask *ask);
    /* The first of them runs on the HTTP thread, at its end. NULL: nothing to do. */
    void (*end)(void *context);
    /* A refusal, made fit for this handler's clients. text ends with a newline. */
    void (*print_refusal)(struct http_exchange *exchange, const char *text);
};

struct http_server_options {
    const struct http_handler *handler;
    struct http_server *
        *place; /* set before the thread begins, so that the handler finds the server */
    unsigned connections_max, streams_max;
    size_t sending_max; /* bytes of replies that are being sent, of all connections; 0: no limit */
    /* Connections of one address, and where that is set; 0: no limit. There is none for this machine and
     * for proxies: of those it holds for each client that they name, and what it asks at the same time. */
    unsigned address_connections_max;
    const char *address_setting;
    const struct subnet *proxies; /* whose X-Forwarded-For is believed */
    unsigned proxy_count;
    const char *hosts;         /* names of this server (http.h); "" for none */
    const char *hosts_setting; /* where they are set */
    unsigned methods;  /* bits 1 << HTTP_POST and so on that it takes besides GET and HEAD */
    size_t body_max;   /* bytes of a request's body; 0: HTTP_BODY_MAX */
    size_t bodies_max; /* bytes of those of all connections; 0: no limit */
    /* PEM texts; certificate NULL: without TLS. */
    const char *certificate, *key;
};

/* Serve, on a thread of its own; engine_loop is the caller's. What the options point to is borrowed.
 * NULL: error (HTTP_ERROR_MAX) says why, and fd is closed. */
MUST_CHECK struct http_server *http_server_start(int fd, uv_loop_t *engine_loop,
                                                 const struct http_server_options *options,
                                                 char *error);
/* Close all connections, and end the thread. The loop must turn once more before http_server_destroy. */
void http_server_stop(struct http_server *server);
void http_server_destroy(struct http_server *server);

/* ---- for handlers, on the HTTP thread ---- */

/* Of the thread's clock, in milliseconds. */
int64_t http_server_now(const struct http_server *server);
void http_server_ask(struct http_server *server, struct ask *ask);
/* The engine's side of a question whose answer returned false. */
struct asks *http_server_asks(struct http_server *server);
unsigned http_server_connections(const struct http_server *server);
/* Does it speak TLS? */
bool http_server_is_secure(const struct http_server *server);

/* Wait for http_exchange_ready, but not for longer than wait_ms: then "busy" is replied. */
void http_exchange_wait(struct http_exchange *exchange, int64_t wait_ms);
/* The reply is filled in; send it after delay_ms. */
void http_exchange_delay(struct http_exchange *exchange, int64_t delay_ms);
/* The reply is filled in. */
void http_exchange_ready(struct http_exchange *exchange);
/* Fill in an error, and get ready. */
__attribute__((format(printf, 3, 4))) void
http_exchange_refuse(struct http_exchange *exchange, unsigned status, const char *format, ...);

/* Reply 200 with a stream of texts. false: there are too many streams. */
MUST_CHECK bool http_exchange_stream(struct http_exchange *exchange);
/* Send this text next, in place of one that has not begun. It takes a use of its own. */
void http_stream_put(struct http_exchange *exchange, struct http_text *text);
/* End the stream when what was put is sent. */
void http_stream_end(struct http_exchange *exchange);

/* The client's address without a port (HTTP_ADDRESS_MAX): the peer's, or whom a proxy of the options names.
 * Returns whether the connection comes from this machine. */
bool http_exchange_peer(const struct http_exchange *exchange, char *address);
/* Is the client on this machine, too? Not if a program on this machine passes on what others ask: if the
 * request has a header that proxies add. Such a header gives nobody more than without it. */
bool http_exchange_is_local(const struct http_exchange *exchange);

/* ---- who asks: http_ask.c ----
 *
 * A user's password or token, looked at by the engine before a request is handled. It outlives its request. */

enum {
    HTTP_ASK_LIMIT_MS = 2000,     /* for the engine's answer */
    HTTP_REFUSAL_DELAY_MS = 1000, /* before a wrong password is answered */
};

enum http_verdict {
    HTTP_LOGIN_OK,
    HTTP_LOGIN_NEEDED,   /* 401: a password is needed, or the one given is wrong */
    HTTP_LOGIN_REFUSED,  /* 403: not from there, or not this user */
    HTTP_LOGIN_TOO_SOON, /* 429: too many wrong passwords: it was not looked at */
};

/* Who asks. */
struct http_login {
    char address[HTTP_ADDRESS_MAX]; /* the peer's, without a port */
    bool is_local;                  /* the connection is of this machine */
    bool is_client_local;           /* so is the client: no proxy passes it on */
    bool is_secure;                 /* over TLS */
    bool has_password;              /* user and password were given, or a token */
    bool is_token;                  /* the password is a token; whose, the engine says in user */
    char user[HTTP_USER_MAX], password[HTTP_PASSWORD_MAX];
    int64_t retry_ms; /* set with TOO_SOON */
    /* A player's token, which was looked at before the engine is asked: what it says, and whether that is right. */
    bool is_player;
    enum jwt_status player_status;
    struct jwt_player player;
    const char *wrong; /* set by the engine; NULL: not said */
};

struct http_login_ask {
    struct ask ask; /* first */
    struct http_login given;
    enum http_verdict (*check)(void *engine_context, struct http_login *login);
    enum http_verdict verdict;
    struct http_exchange *exchange; /* NULL: it has been given up */
    void (*done)(void *context, struct http_login_ask *login);
};

/* One that has the client filled in; check and done as in the struct. NULL: out of memory, which is replied. */
struct http_login_ask *
http_ask_create_login(struct http_exchange *exchange,
                      enum http_verdict (*check)(void *engine_context, struct http_login *login),
                      void (*done)(void *context, struct http_login_ask *login));
/* Take what the header Authorization has: user and password (Basic), or a token (Bearer, RFC 6750), if anything.
 * false: what was given fits no user. */
MUST_CHECK bool http_ask_take_login(struct http_login_ask *login);
/* Ask the engine. done is called on the HTTP thread, unless the request was given up meanwhile; then the
 * login is freed. */
void http_ask_login(struct http_login_ask *login);
/* Answer HTTP_LOGIN_TOO_SOON. */
void http_ask_refuse_too_soon(struct http_exchange *exchange, const struct http_login *given);
/* 403, with the client's address; more may follow. */
#define HTTP_LOCAL_ALONE                                                                           \
    "not from %s: without a password (requirepass) only this machine is let in, and nobody "       \
    "through a proxy, while protected-mode is on"
/* The request is over. login: NULL: none. */
void http_ask_leave_login(struct http_login_ask *login);
/* Forgets the password, and frees. */
void http_ask_destroy_login(struct http_login_ask *login);
/* A question that was dropped: free it, if it is a login. */
bool http_ask_drop_login(struct ask *ask);

/* ---- errors, and what is sent of replies: http_reply.c ---- */

/* Fill in an error, as the handler's clients have them, without getting ready. */
__attribute__((format(printf, 3, 4))) void
http_reply_fill(struct http_exchange *exchange, unsigned status, const char *format, ...);
__attribute__((format(printf, 3, 0))) void http_reply_fill_block(struct http_exchange *exchange,
                                                                 unsigned status,
                                                                 const char *format,
                                                                 va_list arguments);

/* For the listener: the headers of the reply, and replies of the library that are used again. */
struct MHD_Response;
struct http_spare;
enum { HTTP_SPARE_SLOTS = 64 };
struct http_spares {
    struct http_spare *slots[HTTP_SPARE_SLOTS];
    unsigned count, next;
};
void http_reply_add_headers(const struct http_exchange *exchange, struct MHD_Response *response);
/* One for this exchange, with its body; give it back behind the last byte. NULL: none fits. */
struct MHD_Response *http_reply_take_spare(struct http_spares *spares,
                                           struct http_exchange *exchange);
void http_reply_give_spare(struct http_spares *spares, struct http_spare *spare);
void http_reply_destroy_spares(struct http_spares *spares);

/* ---- what headers of a request mean: http_request.c ---- */

/* A header; NULL: it has none. */
const char *http_request_header(const struct http_exchange *exchange, const char *name);

/* For the listener. Each fills in why it refuses the head; false: it does not.
 * What another program on the way may read otherwise: where the request ends, whom it is for, or from whom it is
 * (RFC 9110, 5.3; RFC 9112, 3.2). */
bool http_request_is_ambiguous(struct http_exchange *exchange, const char *method,
                               const char *version);
/* How the body is coded: in chunks or not at all. */
bool http_request_refuse_coding(struct http_exchange *exchange);
/* Is there too little room for the reply's? Nothing is filled in. */
bool http_request_head_is_too_long(const struct http_exchange *exchange);
enum {
    HTTP_RECORD_SIZE = 64
}; /* of what the library has of a header or parameter, at most, beside its text */

#define HTTP_FORWARDED_FOR "X-Forwarded-For"

/* Does the Host header name this server? An address does, "localhost", any other name without a dot
 * (such names are nobody's to register), and a name that is listed. names: words separated by blanks; "*" allows
 * all. Without a header (NULL) the request comes from no browser, and is fine.
 *
 * A page that a browser has loaded from evil.example may give that name this server's address, and then
 * read from it (DNS rebinding). Its requests name evil.example. */
bool http_request_allows_host(const char *host, const char *names);

/* How welcome a media type, "text/plain", is by an Accept header, or "gzip" by Accept-Encoding: 0 (not at all) .. 1000. Parameters
 * beside q are ignored. NULL: everything is welcome. */
unsigned http_request_quality(const char *accept, const char *type);

/* Take the last of the addresses, which commas separate, from the first *size bytes of an X-Forwarded-For
 * header, and shorten *size to what is before it. A port behind it is no part of it. false: there is none, or it
 * is no address. header may be NULL if *size is 0. */
MUST_CHECK bool http_request_take_forwarded(const char *header, size_t *size,
                                            uint8_t address[SUBNET_ADDRESS_SIZE]);

/* Is it an Authorization header with a token, "Bearer lbt_8f3e" (RFC 6750)? token: empty, if what follows is none;
 * else of the characters that it may have. */
MUST_CHECK bool http_request_bearer(const char *header, struct bytes *token);

/* The value of a cookie in the Cookie header; at NULL: there is none. header may be NULL. */
struct bytes http_request_cookie(const char *header, const char *name);

/* ---- the target: http_request.c ----
 *
 * What stands behind GET: the path and the query, taken apart. All of it may come from anybody.
 *
 *     /api/v1/boards/week%2F47/page?from=0&count=25
 *     segments "api" "v1" "boards" "week/47" "page", parameters from=0 count=25 */

enum { HTTP_SEGMENTS_MAX = 8, HTTP_PARAMETERS_MAX = 48 };

struct http_parameter {
    struct bytes name, value;
};
struct http_target {
    struct bytes segments[HTTP_SEGMENTS_MAX]; /* at least one; "/" is one that is empty */
    unsigned segment_count;
    struct http_parameter parameters[HTTP_PARAMETERS_MAX];
    unsigned parameter_count;
};

/* Take it apart in place: text is terminated, and decoded where it is; the target borrows it. Percent signs
 * must be followed by two hexadecimal digits; a plus in the query is a blank. NULL, or why it is refused. */
MUST_CHECK const char *http_request_parse_target(char *text, struct http_target *target);
/* A parameter's value, the first of that name; at NULL: there is none. */
struct bytes http_request_parameter(const struct http_target *target, const char *name);

#endif
