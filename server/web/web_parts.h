/* Shared by the files of server/web/ alone. */
#ifndef SERVER_WEB_PARTS_H
#define SERVER_WEB_PARTS_H

#include <stdatomic.h>

#include "server/acl/auth_guard.h"
#include "server/dispatch/shape.h"
#include "server/web/web.h"
#include "server/web/web_query.h"

enum {
    WEB_PENDING_MAX = 1000,     /* queries that wait for their turn */
    WEB_KNOWN_MAX = 64,         /* logins by header that were right */
    WEB_RATES_MAX = 4096,       /* addresses that write; a power of two */
    WEB_RATE_WAYS = 4,          /* places that one may be in */
    WEB_BODIES_MAX = 32 << 20,  /* bytes of the bodies of all requests */
    WEB_SESSIONS_MAX = 1024,    /* logins */
    WEB_USER_SESSIONS_MAX = 64, /* of one user */
    WEB_TOKEN_SIZE = 48,        /* hexadecimal digits */
    WEB_STREAM_KEY_S = 30,      /* how long one is good */
    WEB_METHODS_MAX = 64,       /* bytes of their names */
    WEB_TAG_MAX = 32,
    WEB_COOKIE_MAX = 256,
    WEB_COOKIE_NAME_MAX = 40,
    WEB_LIMIT_MS = 5000, /* for a request's answer */
    WEB_VIEWS_MAX = 10000,
    WEB_MEMORY_MAX =
        64 << 20, /* bytes: replies of the engine beyond the first 16 kB of each, and views */
    WEB_SENDING_MAX = 64 << 20,  /* bytes of replies that are being sent */
    WEB_VIEW_SIZE_MAX = 1 << 20, /* bytes of a page that is viewed */
    WEB_VIEW_MS = 250,           /* between two looks at a page that somebody views */
    WEB_VIEW_CHECK_MS = 5000,    /* between two that run the commands in any case */
    WEB_SERVER_VIEW_MS = 1000,
    WEB_PING_MS = 15000,
    WEB_SAMPLE_MS = 10000,
    WEB_SAMPLES_MAX = 360, /* an hour */
    WEB_SAMPLE_COMMANDS_MAX = 512,
};

struct web_view;

/* An exchange's own part. */
struct web_request {
    struct web *web;
    struct http_exchange *exchange;
    struct http_login_ask *login; /* that the engine has */
    struct web_query *query;      /* that is being answered */
    bool wants_stream, wants_login;
    const char *origin; /* of another site that may ask (web-allow-origin), or "*"; NULL: of none */
    struct web_session *session; /* that its cookie names; NULL: none, or it is of another kind */
    char token_digest[DIGEST_TEXT_SIZE]; /* of that session: another one may take its place */
    /* a viewer */
    struct web_view *view;
    struct web_request *next, *previous; /* of the same view */
    int64_t due_ms;                      /* a viewer gets nothing before */
    uint64_t version;                    /* of what it was sent last */
    char cookie[WEB_COOKIE_MAX];         /* for the reply */
    char methods[WEB_METHODS_MAX], tag[WEB_TAG_MAX];
};

/* ---- the engine's side, users and their commands: web_engine.c ---- */

struct web_engine {
    struct server *server;
    struct acl_user *public_user; /* NULL: nothing is public */
    uint32_t info, slowlog_get;   /* command_index of these */
    struct asks *asks;
    struct web_query *held_first; /* whose answers wait (dispatch/commit_wait.h); next */
};

/* false: error (HTTP_ERROR_MAX) says what of web-public is wrong. */
MUST_CHECK bool web_engine_init(struct web_engine *engine, struct server *server, char *error);
void web_engine_deinit(struct web_engine *engine);
/* Answer a struct web_query (ask.h). */
bool web_engine_answer(void *engine, struct ask *ask);
/* Give back the answers that wait no more, and those that are never to be sent, as WEB_LOADING. */
void web_engine_release_answers(struct web_engine *engine);
/* A password or token. */
enum http_verdict web_engine_check_login(void *engine, struct http_login *login);

/* ---- logins: web_login.c ---- */

struct web_session {
    char token_digest[DIGEST_TEXT_SIZE]; /* all zeros: free */
    bool is_used, is_token;
    char user[HTTP_USER_MAX];
    char digest[DIGEST_TEXT_SIZE]; /* of the password, or the token */
    int64_t used_at_ms;
};
struct web_sessions {
    struct web_session *at; /* WEB_SESSIONS_MAX */
    int64_t timeout_ms;
};
MUST_CHECK bool web_sessions_init(struct web_sessions *sessions, int64_t timeout_ms);
void web_sessions_deinit(struct web_sessions *sessions);
/* A new one, for a user with a password, or a token; token: room for WEB_TOKEN_SIZE. */
void web_sessions_add(struct web_sessions *sessions, const char *user, const char *digest,
                      bool is_token, int64_t now_ms, char *token);
/* NULL: there is none, or it has ended. */
struct web_session *web_sessions_find(struct web_sessions *sessions, struct bytes token,
                                      int64_t now_ms);
void web_sessions_end(struct web_session *session);

/* 403, with the client's address. */
#define WEB_TLS_NEEDED                                                                             \
    "no password or token is taken from %s without TLS while protected-mode is on"

/* {"user": "...", "password": "..."}, in any order; text is terminated. false: it is not that. */
MUST_CHECK bool web_read_login(const char *text, struct http_login *login);
/* POST /login and /logout. */
void web_log_in(struct web_request *request);
void web_log_out(struct web *web, struct web_request *request);
/* Who asks, by the cookie. */
void web_identify(struct web *web, struct web_request *request, struct web_identity *identity);
/* Is the login still there that the request came with? That is use of it. */
MUST_CHECK bool web_keep_login(struct web *web, const struct web_request *request);
/* Look at the password or token of the header Authorization, and go on by web_run_as. */
void web_log_in_by_header(struct web_request *request);
/* The same by a key of POST /stream-key, which is void from then on, and taken out of the target. */
void web_log_in_by_key(struct web_request *request, struct bytes key);

/* A login by header that was right: it is not looked at again while the user has this password or token. Any that
 * is wrong, from the same address, ends that, so that it makes guessing no faster. */
struct web_known {
    char address[HTTP_ADDRESS_MAX]; /* empty: free */
    bool is_token;
    char given[HTTP_USER_MAX]; /* the name that was given */
    struct web_identity identity;
};
void web_forget_known(struct web *web, const char *address);

/* ---- views: web_views.c ---- */

struct web_views {
    struct web_view *first;
    unsigned count;
    int64_t pinged_ms;
    struct http_text *ping; /* ": ping" */
};
/* Stream what the query asks for, together with others who ask the same; it is taken. */
void web_views_add(struct web *web, struct web_request *request, struct web_query *query);
void web_views_step(struct web *web, int64_t now_ms);
void web_views_leave(struct web *web, struct web_request *request);
void web_views_end(struct web *web);
/* Logins have ended: end their streams. */
void web_views_check_logins(struct web *web);

/* ---- figures and the last hour: web_figures.c ---- */

struct web_sample {
    int64_t at_ms;                    /* unix */
    double operations, input, output; /* a second */
    uint64_t p50_us, p99_us, tick_us;
    uint64_t memory, clients, members;
};
struct web_totals {
    int64_t uptime_ms;
    uint64_t commands, input, output;
    struct durations calls, ticks;
};
struct web_history {
    struct web_query *query; /* asks for the next sample; borrowed while it is asked */
    bool is_asked;
    int64_t asked_ms;
    struct web_totals last; /* of the sample before; all zeros: there was none */
    struct web_sample samples[WEB_SAMPLES_MAX];
    unsigned count, first;
};
void web_history_step(struct web *web, int64_t now_ms);

/* ---- the pace: web_pace.c ---- */

/* Ask the engine, now or when the pace allows it. */
void web_put(struct web *web, struct web_query *query);
/* The engine wants to be asked again, later. */
void web_put_again(struct web *web, struct web_query *query);
/* May the client write so many results now? 0: yes; else in so many seconds (web-write-rate). */
MUST_CHECK unsigned web_take_rate(struct web *web, const struct http_exchange *exchange,
                                  unsigned results);
/* Count so many bytes for all that the page holds. false: that would be too much. */
MUST_CHECK bool web_take_memory(struct web *web, size_t size);
void web_give_memory(struct web *web, size_t size);
/* It waits no more. */
void web_take_back(struct web *web, struct web_query *query);
/* The engine has answered. */
void web_note_answer(struct web *web, const struct web_query *query);
/* Ask what waits, as far as it may be asked now. */
void web_pace_step(struct web *web);

/* ---- the document of the API: web_openapi.c ---- */

/* The members of a schema, and of what shape the reply is that they come from; within: of the elements of this array
 * in it, or NULL. */
const char *web_schema(const char *name, const char *within, struct shape *source);

/* Write the routes as OpenAPI 3.1. */
void web_put_openapi(struct json *json);

/* ---- fewer bytes: web_gzip.c ---- */

struct web_gzip;
void web_gzip_destroy(struct web_gzip *gzip); /* NULL: nothing */
/* Does who asks take gzip? */
MUST_CHECK bool web_gzip_is_taken(const struct http_exchange *exchange);
/* Compress the body of the reply, if that is taken and worth it. */
void web_gzip_answer(struct web *web, struct http_exchange *exchange);
/* A file that never changes, compressed; empty where it would be no shorter, or without memory. */
void web_gzip_file(struct bytes file, struct buffer *out);

/* ---- files: web_files.c ---- */

/* What the files are when they are compressed; web_files_deinit also where it was not called. */
void web_files_init(struct web *web);
void web_files_deinit(struct web *web);

/* Answer from the files of the page; a browser that asks for a page gets one, which says that there is none. false:
 * there is no such file. */
MUST_CHECK bool web_files_answer(struct http_exchange *exchange, const struct http_target *target);

/* ---- all ---- */

enum { WEB_ORIGINS_MAX = 8, WEB_POLICY_MAX = 2048, WEB_FILES_MAX = 64 };

/* web-avatars: which field of the data is a picture's address, and where pictures may be. */
struct web_avatars {
    struct bytes field; /* NULL: there are none */
    struct bytes origins[WEB_ORIGINS_MAX];
    unsigned origin_count;
};

/* What an address may still write. */
struct web_rate {
    struct auth_guard_address address;
    int64_t at_ms; /* when left was that; 0: the place is free */
    int64_t left;  /* thousandths of results; below 0: written ahead */
};

struct web {
    struct http_server *http;
    struct http_handler handler;
    struct web_engine engine;        /* the engine's thread's */
    const struct settings *settings; /* those of web- are fixed */
    struct web_pending {
        struct web_query *first, *last;
    } pending[2]; /* waiting for the pace: for requests, for views */
    unsigned pending_count;
    int64_t budgets_ns[2]; /* for requests, for views: what may be asked now, negative: overdrawn */
    int64_t budgets_at_ms;
    struct web_sessions sessions, stream_keys;
    struct web_views views;
    struct web_history history;
    uint64_t answered_ns; /* of the engine's time, since the start */
    size_t memory_size;   /* see WEB_MEMORY_MAX */
    struct web_data data; /* web-data */
    struct web_avatars avatars;
    /* Content-Security-Policy of the page, and of what other sites may show in a frame */
    char policy[WEB_POLICY_MAX], policy_of_frames[WEB_POLICY_MAX];
    struct bytes origins[WEB_ORIGINS_MAX]; /* web-allow-origin */
    unsigned origin_count;
    bool is_open; /* pages of all others may read what anybody may */
    struct web_known known[WEB_KNOWN_MAX];
    unsigned known_next; /* to be replaced */
    struct web_rate rates[WEB_RATES_MAX];
    uint64_t rate_seed;
    struct buffer openapi, openapi_packed; /* the document */
    struct buffer files_packed[WEB_FILES_MAX];
    struct web_gzip *gzip; /* NULL: not needed yet */
    /* Queries that write: each is counted before it looks at is_draining, which the engine's thread sets before it
     * looks at the count. */
    _Atomic unsigned write_count;
    _Atomic bool is_draining;
};

/* The routes of boards and of the server. */
extern const struct web_route web_route_list, web_route_board, web_route_page, web_route_member,
    web_route_search, web_route_histogram, web_route_archives, web_route_server, web_route_history,
    web_route_slowlog, web_route_me, web_route_results, web_route_submit, web_route_remove,
    web_route_set_tags, web_route_replace_tags, web_route_league_results, web_route_league_member,
    web_route_leave_league, web_route_stream_key, web_route_league;

/* NULL: there is none of this method. */
const struct web_operation *web_find_operation(enum http_method method,
                                               const struct http_target *target);
/* Bits of the methods that the path has. */
unsigned web_find_methods(const struct http_target *target);
/* What every reply of the page says to browsers. */
void web_add_headers(struct http_exchange *exchange);
/* The same for the page's files, which may show pictures. may_frame: other sites may show it in a frame. */
void web_add_file_headers(const struct web *web, struct http_reply *reply, bool may_frame);
/* Reply a problem document; reply.status is set. */
void web_answer_error(struct http_exchange *exchange, struct bytes problem);
/* Reply what the query has written. */
void web_answer(struct http_exchange *exchange, struct web_query *query);
/* It is known who asks: run what the request asks for, and reply. */
void web_run_as(struct web_request *request, const struct web_identity *identity);
/* Run the query for this request, and reply; it is taken. */
void web_run(struct web_request *request, struct web_query *query);

#endif
