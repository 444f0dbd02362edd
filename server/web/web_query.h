/* A question of the page: commands that a user's session runs on the engine's thread, and the JSON that is
 * made of their replies on the HTTP thread.
 *
 *     HTTP thread                          engine's thread, between two ticks
 *
 *     route->ask(): commands
 *                  ------ pace ------->    web_engine_answer: the user, then each command
 *                                          held until what it shows is on disk (appendfsync always)
 *     route->print(): JSON,   <--------
 *     or further commands
 *
 *     NEW ---> WAITS ---> ASKED ---> NEW (a further round) ... ---> DONE
 *
 * The pace: what is asked for requests may take 1/WEB_REQUEST_SHARE of the engine's time, and what is asked
 * for viewers 1/WEB_VIEW_SHARE; the rest waits its turn. */
#ifndef SERVER_WEB_QUERY_H
#define SERVER_WEB_QUERY_H

#include <stdatomic.h>

#include "codec/json.h"
#include "server/acl/acl.h"
#include "server/acl/auth_guard.h"
#include "server/dispatch/shape.h"
#include "server/http/http.h"
#include "server/metrics/figures.h"
#include "server/sessions/server.h"
#include "server/sessions/session.h"
#include "server/system/digest.h"
#include "server/web/value.h"
#include "server/web/web.h"

struct web;
struct web_query;

enum {
    WEB_COMMANDS_MAX = 40,     /* of a round */
    WEB_WORDS_MAX = 640,       /* of its commands together */
    WEB_REPLIES_MAX = 4 << 20, /* bytes of RESP of a round */
    WEB_JSON_MAX = 16 << 20,
    WEB_WORDS_SIZE_MAX = 4 << 20, /* bytes of what a request writes, as words */
    WEB_FIELDS_MAX = 8,           /* of a member's hash */
    WEB_ROWS_MAX = 200,
    WEB_WHERES_MAX = 32,
    WEB_REQUEST_SHARE = 10,
    WEB_VIEW_SHARE = 50,
    WEB_BODY_MAX = 256 * 1024, /* bytes of JSON that a request may write */
    WEB_RESULTS_MAX = 1000,    /* of a request; one on several boards counts for each */
    WEB_SLOW_TICKETS_MAX = 8,  /* of a request: whose signatures take long */
};

/* Whose rights a question has. */
struct web_identity {
    enum web_identity_kind {
        WEB_ANYBODY, /* has not logged in: the default user, if it needs no password; else what is public */
        WEB_USER,
        WEB_SELF, /* the page itself: may see the figures */
    } kind;
    bool is_local;
    bool is_token; /* whoever has the token of this digest: user may have changed since */
    bool
        is_by_header; /* the request names the user by itself: it is refused where the user is not let in */
    bool is_exposed; /* it comes from another machine, and without TLS */
    char user[HTTP_USER_MAX];
    /* The player whose token it is; is_player: user is that of the key. */
    bool is_player;
    struct jwt_player player;
    /* Of the password or the token: the login is void when the user has another. */
    char digest[DIGEST_TEXT_SIZE];
};

enum web_verdict {
    WEB_ALLOWED,
    WEB_LOGIN_NEEDED,   /* 401 */
    WEB_NOT_FROM_THERE, /* 403: protected-mode */
    WEB_WITHOUT_TLS,    /* 403: likewise, of a user who has logged in */
    WEB_LOADING,        /* 503; or the boards were replaced meanwhile */
    WEB_LATER, /* writes wait (CLIENT PAUSE, the disk): nothing was run, it is asked again */
};

enum web_query_state { WEB_QUERY_NEW, WEB_QUERY_WAITS, WEB_QUERY_ASKED, WEB_QUERY_DONE };

struct web_route {
    /* The only command, as web_query_command takes it; or add the commands of a round (query->round). false:
     * query->status and its JSON say why not. Both NULL: the engine is asked without a command. */
    const char *command;
    bool (*ask)(struct web_query *query);
    /* Write the JSON, or return true for a further round. */
    bool (*print)(struct web_query *query);
    bool
        takes_errors; /* print is called, too, if a command was refused, which is the reply otherwise */
    /* Of a route that writes: read the query's body, to which words then point. false: as ask. */
    bool (*read)(struct web_query *query);
    enum web_results_kind {
        WEB_RESULTS_OF_BOARD,  /* LB.ADD */
        WEB_RESULTS_OF_BOARDS, /* LB.SUBMIT */
        WEB_RESULTS_OF_LEAGUE, /* LB.LEAGUE ADD */
        WEB_MATCHES,           /* LB.MATCH */
        WEB_PREDICTIONS,       /* LB.PREDICT */
    } results;                 /* of web_write_read: what they become */
    bool needs_figures;
    bool has_no_board; /* the path names a member alone */
    bool is_of_member; /* where the path names none, of the player who asks */
    bool is_for_all;   /* also for those who may see nothing */
    bool writes;       /* the first command that is refused ends the round */
    bool may_create;   /* create=1 */
    bool
        is_kept; /* its answer follows from the keys of its commands, and is given again: web_kept.c */
};

/* A row of the table of routes (web.c), which is also what /api/openapi.json is written from. */
struct web_operation {
    enum http_method method;
    const char *path;    /* behind /api/v1: segments, of which those in braces are any */
    const char *id;      /* a name for programs that are made from the document */
    const char *summary; /* a line */
    /* Names of parameters (web_openapi.c), one blank between each two; behind a colon a number's range and default. */
    const char *parameters;
    const char *body, *answer;     /* names of schemas; NULL: none */
    const struct web_route *route; /* NULL: web.c answers it */
    bool is_stream;
};
extern const struct web_operation web_operations[];
extern const unsigned web_operation_count;

struct web_command {
    uint32_t number;        /* command_index */
    unsigned end;           /* of its words, which begin where those of the command before end */
    size_t reply_end;       /* likewise of its reply */
    enum reply_cause cause; /* of the error in it */
    uint8_t value_count;    /* session.value_count */
    bool has_id;            /* it has an id (ONCE), */
    bool is_repeated;       /* which had come before */
    bool is_brief;          /* session.is_brief */
    unsigned char fingerprint[DIGEST_SIZE]; /* of what it writes, where it has an id */
};

/* The hashes that are shown beside members (DATA). */
struct web_data {
    struct bytes pattern; /* NULL: none */
    struct bytes fields[WEB_FIELDS_MAX];
    unsigned count;
    bool is_default; /* nobody has asked for it: it goes where the user may not read it */
};

/* One of the parameters where=TAG:VALUE; value: empty for members without one. */
struct web_where {
    struct bytes tag, value;
};

/* A scan: the engine repeats the only command with the cursor that it has replied, as long as a round may take;
 * and puts in the part'th pattern of keys that the user may read. */
struct web_scan {
    uint64_t cursor;
    unsigned part;
    bool is_over, has_listed;
    unsigned cursor_word, pattern_word; /* of the round; 0: there is none */
    size_t size_max;                    /* bytes of replies after which a round ends */
    unsigned pattern_count;
};

/* What a request writes (web_write.c). All zeros: nothing. */
struct web_write {
    struct buffer body; /* owned; strings are decoded where they are */
    struct bytes id;    /* Idempotency-Key; NULL: none */
    char id_text[64];
    bool has_ids;                     /* some result has one */
    unsigned char route[DIGEST_SIZE]; /* to which they belong: the path, and its board */
    struct buffer words, commands;    /* struct bytes, and struct web_command */
    struct buffer firsts;             /* unsigned: of each command the index of its first result */
    unsigned result_count, weight;    /* weight: one on several boards counts for each */
    struct bytes slow_tickets[WEB_SLOW_TICKETS_MAX];
    unsigned slow_ticket_count;
    size_t room; /* bytes of all this that web_query_take_memory counts */
};

/* An object or a list that is being written (web_reply.c). */
enum { WEB_OPEN_MAX = 8 };
struct web_open {
    bool is_list;
    struct web_path *at, *end;      /* of an object: the members that are left */
    const struct web_part *element; /* of a list */
    struct value_reader reply;
    const void *figures; /* whose figures are members; NULL: none are */
    enum figure_of of;
    const char *prefix;
};

/* Who asks, as the engine knows it. */
struct web_user {
    bool is_public, is_known, can_login, may_see_server, may_see_slowlog;
    char shown[HTTP_USER_MAX];
};

struct web_query {
    struct ask ask; /* first */
    struct web *web;
    const struct web_route *route;
    const struct web_object *answer;   /* what it replies; NULL: no object */
    struct web_query *next, *previous; /* of those that wait */
    enum web_query_state state;
    bool is_view;
    bool is_left;    /* nobody waits for it: it is freed when the engine has given it back */
    bool is_counted; /* in web.write_count */
    void (*done)(struct web_query *query);
    void *owner;
    /* what is asked */
    struct web_identity identity;
    char address[HTTP_ADDRESS_MAX];
    struct buffer text; /* decoded target */
    uint8_t database;
    struct bytes board, member;
    int64_t from, count;
    struct web_data data;
    unsigned where_count;       /* of the group that is read; none: all members */
    bool has_tags, has_rating;  /* records have the members' tags, and ratings */
    bool is_of_player;          /* the member is the player who asks: with what is held */
    struct session_names names; /* whose records are wanted; field at NULL: everybody's */
    struct bytes
        since; /* another board, on which the members' ranks are asked for, or LAST; NULL: none */
    /* a round */
    unsigned round, more; /* more: the route's own */
    unsigned command_count, word_count;
    struct web_command *commands; /* its own ones, or those of a write */
    struct bytes *words;
    struct buffer texts;     /* words that are made up; does not move while words point to it */
    struct buffer replies;   /* does not grow */
    size_t room;             /* bytes of it that web_query_take_memory counts */
    struct figures *figures; /* of a route that needs them; owned */
    struct buffer kept;      /* the route's own: what earlier rounds have found */
    unsigned reply_count;
    struct web_scan scan;
    struct web_write write;
    /* from the engine */
    enum web_verdict verdict;
    const char *
        fault; /* of WEB_LOGIN_NEEDED: why the player's token counts no more; NULL: nothing else to say */
    struct web_user user;
    uint64_t held_for; /* the group that it waits for, */
    uint64_t epoch;    /* in this epoch (replication_answer_epoch), that of its first round */
    uint64_t elapsed_ns;
    uint64_t change_count;       /* of the engine, when the first round began */
    bool has_seen, is_unchanged; /* nothing has changed since seen_change_count: nothing was run */
    uint64_t seen_change_count;
    struct reads *reads; /* what it was read from; NULL: it is not given again */
    size_t reads_size;   /* bytes of that */
    /* How long it may be given again since the engine read that (0: not at all), and until when by its monotonic clock. */
    int64_t fresh_ms, fresh_until_ms;
    bool was_asked;   /* the engine may have begun */
    bool has_changed; /* a write has */
    uint32_t retry_s; /* how long its refusal holds; 0: not said */
    /* the reply */
    unsigned status;
    struct buffer out;
    struct json json;
    unsigned open_count;
    /* Not zeroed, as all before is. */
    struct http_target target;
    struct web_open open[WEB_OPEN_MAX];
    struct web_where wheres[WEB_WHERES_MAX];
    char cursor_text[BYTES_INTEGER_TEXT_MAX], pattern_text[ACL_TEXT_MAX]; /* of a scan */
    struct web_command own_commands[WEB_COMMANDS_MAX];
    struct bytes own_words[WEB_WORDS_MAX];
};

/* NULL: out of memory. */
MUST_CHECK struct web_query *web_query_create(struct web *web);
/* Take a target apart. route: of its operation; NULL: there is none. false: status and JSON say why not. */
MUST_CHECK bool web_query_parse(struct web_query *query, const struct web_route *route,
                                const char *target);
/* Room for so many bytes of replies, and not one more: the engine's thread neither allocates nor moves what
 * this one frees. false: there is not so much memory; the room is as it was. */
MUST_CHECK bool web_query_make_room(struct web_query *query, size_t size);
/* The round's replies become JSON. true: there is another round. */
MUST_CHECK bool web_query_print(struct web_query *query);
/* Ask the engine, round by round; then done is called, on the HTTP thread. Once more for another time. */
void web_query_run(struct web_query *query);
/* Nobody waits for it any more. */
void web_query_leave(struct web_query *query);
void web_query_destroy(struct web_query *query);
/* Those that are kept to be used again. */
void web_query_free_spare(struct web *web);

/* Ask what waits, as far as the pace allows it now. */
void web_query_step(struct web *web);
/* It waits no more. */
void web_query_take_back(struct web *web, struct web_query *query);
/* Count so many bytes for all that the page holds. false: that would be too much. */
MUST_CHECK bool web_query_take_memory(struct web *web, size_t size);
void web_query_give_memory(struct web *web, size_t size);

/* JSON that is appended to this. */
static inline struct json web_json(struct buffer *out) {
    return (struct json){.append = buffer_put, .out = out, .is_for_page = true};
}

/* ---- for routes ---- */

/* Begin a command with these words, a text that stays, one blank between each two: its name ("SLOWLOG|GET"), texts, and
 *
 *     $board  $member            the query's
 *     $where  $tags  $data       the same, or nothing, if none was asked for
 *     $brief                     no word: of LB.INFO, what answers show beside members
 *     $cursor  $pattern          of a scan, where the engine puts in those of its steps
 *     #  $                       an int64_t, and a struct bytes that lives as long as the round */
void web_query_command(struct web_query *query, const char *words, ...);
/* Add such words to the command, or one. */
void web_query_words(struct web_query *query, const char *words, ...);
void web_query_word(struct web_query *query, struct bytes word);
/* A copy of bytes for a word of this round. Room: 1 KiB in all, names of keys apart. */
struct bytes web_query_word_copy(struct web_query *query, struct bytes bytes);
/* The number of the command ("LB.LEAGUE|ADD") that words begin with, which stay where they are; found once. On the HTTP
 * thread. */
uint32_t web_query_first_number(struct web *web, const char *words);
/* The reply to the nth command of the round. */
static inline struct value_reader web_query_reply(const struct web_query *query, unsigned nth) {
    CHECK(nth < query->reply_count);
    size_t begin = nth > 0 ? query->commands[nth - 1].reply_end : 0;
    return (struct value_reader){.at = query->replies.at + begin,
                                 .end = query->replies.at + query->commands[nth].reply_end};
}
/* If the nth command was refused: the status and the JSON of that. */
MUST_CHECK bool web_query_reply_is_error(struct web_query *query, unsigned nth);
/* The same for the first of all commands of the round that was refused: of routes that take errors. */
MUST_CHECK bool web_query_replies_have_error(struct web_query *query);
/* An error as the whole reply: a problem document (RFC 9457), whose code follows from the status. */
__attribute__((format(printf, 3, 4))) void web_query_error(struct web_query *query, unsigned status,
                                                           const char *format, ...);
/* Append one. redis: the prefix of the command's error; at NULL: none. written: below 0: it is not said. */
void web_query_put_problem(struct json *json, unsigned status, struct bytes detail,
                           struct bytes redis, int64_t written);
/* A parameter that is a number. false: the error was written. */
MUST_CHECK bool web_query_number(struct web_query *query, const char *name, int64_t lowest,
                                 int64_t highest, int64_t otherwise, int64_t *number);

/* The last command of a round whose reply has a count, where a group is asked for: its members are counted. */
void web_query_count(struct web_query *query);
/* How many commands of the round were not by web_query_count. */
unsigned web_query_own_replies(const struct web_query *query);
/* What a route keeps from round to round, to be read. */
static inline struct value_reader web_query_kept(const struct web_query *query) {
    return (struct value_reader){.at = query->kept.at, .end = query->kept.at + query->kept.size};
}
/* The same behind its first count values. */
struct value_reader web_query_kept_behind(const struct web_query *query, unsigned count);
/* Append a text to it, as value_next reads it. */
void web_query_keep(struct web_query *query, struct bytes text);

/* ---- answers, by their schemas: web_reply.c ---- */

#define WEB_NO_REPLY ((struct value_reader){.at = NULL})

/* Read the schemas of these operations' answers, at the start: query->answer is one of web->answers. */
void web_reply_read_schemas(struct web *web, const struct web_operation *operations,
                            unsigned count);

/* Begin the answer, an object of the schema that its operation names (web_openapi.c), whose members are written in that
 * order: those with a source from the reply, those that web_reply_asked lists from what is asked, and others when the route puts them, by their names. Those that may be missing and are not put are left out;
 * another one that is not put, or is not next, is a bug. */
void web_reply_begin(struct web_query *query, struct value_reader reply);
/* Close all that is open. false, as print returns at the end. */
bool web_reply_end(struct web_query *query);
/* A print: all comes from the last reply, or is asked. */
bool web_reply_print(struct web_query *query);

/* Begin an object or a list within what is open: the member of this name; NULL: the next element of a list. */
void web_reply_open(struct web_query *query, const char *name, struct value_reader reply);
void web_reply_close(struct web_query *query);
/* Each element of a reply is an element of the list that is open. */
void web_reply_put_items(struct web_query *query, struct value_reader *list);

/* Members of the object that is open are figures of this object (figures_print_api). */
void web_reply_use_figures(struct web_query *query, enum figure_of of, const void *object,
                           const char *prefix);

/* A member, or (NULL) an element, written as the schema has it: a text, also bytes; at NULL: null. An integer, also
 * 0 or 1 and a time in unix milliseconds. */
void web_reply_put_text(struct web_query *query, const char *name, struct bytes text);
void web_reply_put_integer(struct web_query *query, const char *name, int64_t value);
void web_reply_put_decimal(struct web_query *query, const char *name, double value);
void web_reply_put_texts(struct web_query *query, const char *name, const struct bytes *texts,
                         unsigned count);

/* Of LB.INFO alone: the layout's fields. */
uint64_t web_reply_count_fields(struct web_query *query, struct value_reader board);
/* A record, which is not null: [member, rank, time, fields ..., percentage, tags, data, since, rating]. percent:
 * where its value goes; NULL: it has none. */
void web_reply_put_row(struct web_query *query, const char *name, uint64_t field_count,
                       struct value_reader *reader, struct value *percent);
/* A list of records, without those that are null. */
void web_reply_put_rows(struct web_query *query, const char *name, uint64_t field_count,
                        struct value_reader reader);
/* "data" of a record, of which it is the last value; nothing, if none was asked for. */
void web_reply_put_data(struct web_query *query, struct value_reader *reader);

/* ---- what is written: web_write.c ---- */

/* Read query->write.body: one result or match, or a list of them. false: the error was written. */
MUST_CHECK bool web_write_read(struct web_query *query);
/* {"country": "DE", "clan": null}: names and values go to query->write.words, two by two. */
MUST_CHECK bool web_write_read_tags(struct web_query *query);
/* {"member": "ann", "seconds": 600}: a player's own member needs no name. */
MUST_CHECK bool web_write_read_ticket(struct web_query *query);
/* Look at the signatures that take long, so that the engine need not. */
void web_write_check_tickets(const struct web_query *query);
/* Of the results that were run, those whose id had come before. */
unsigned web_write_count_repeated(const struct web_query *query);

/* The words that were read. */
static inline struct bytes *web_write_words(const struct web_query *query, unsigned *count) {
    *count = (unsigned)(query->write.words.size / sizeof(struct bytes));
    return (struct bytes *)(void *)query->write.words.at;
}

enum {
    WEB_PENDING_MAX = 1000,     /* queries that wait for their turn */
    WEB_SPARE_MAX = 16,         /* queries to be used again */
    WEB_KNOWN_MAX = 64,         /* logins by header that were right */
    WEB_RATES_MAX = 4096,       /* addresses that write; a power of two */
    WEB_RATE_WAYS = 4,          /* places that one may be in */
    WEB_BODIES_MAX = 32 << 20,  /* bytes of the bodies of all requests */
    WEB_SESSIONS_MAX = 1024,    /* logins */
    WEB_USER_SESSIONS_MAX = 64, /* of one user */
    WEB_TOKEN_SIZE = 48,        /* hexadecimal digits */
    WEB_STREAM_KEY_S = 30,      /* how long one is good */
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
    WEB_KEPT_MS = 1000, /* answers are asked for anew behind it, whatever has changed */
    WEB_KEPT_MAX = 1000,
    WEB_KEPT_SLOTS = 512,
    WEB_KEPT_TEXT_MAX = 64 * 1024, /* bytes of one */
    WEB_KEPT_SIZE_MAX = 8 << 20,   /* bytes of all */
    WEB_PING_MS = 15000,
    WEB_SAMPLE_MS = 10000,
    WEB_SAMPLES_MAX = 360, /* an hour */
};

struct web_view;
struct web_kept;
struct web_gzip;
struct web_rates;

/* An exchange's own part. */
struct web_request {
    struct web *web;
    struct http_exchange *exchange;
    struct http_login_ask *login;          /* that the engine has */
    struct web_query *query;               /* that is being answered */
    const struct web_operation *operation; /* NULL: there is none */
    const struct web_object *answer;       /* of that */
    bool wants_stream, wants_login;
    const char *origin; /* of another site that may ask (web-allow-origin), or "*"; NULL: of none */
    struct web_session *session; /* that its cookie names; NULL: none, or it is of another kind */
    char token_digest[DIGEST_TEXT_SIZE]; /* of that session: another one may take its place */
    struct web_kept *kept;               /* that it waits for, with others; NULL: none */
    bool is_late;                        /* it came when the engine may have begun with that */
    bool is_again;                       /* it waits a second time */
    bool is_alone;                       /* it has a query of its own */
    /* a viewer */
    struct web_view *view;
    struct web_request *next, *previous; /* of the same view, or who wait for the same answer */
    int64_t due_ms;                      /* a viewer gets nothing before */
    uint64_t version;                    /* of what it was sent last */
    uint64_t first_look;                 /* of the view, behind this request */
    char cookie[WEB_COOKIE_MAX];         /* for the reply */
    char methods[HTTP_METHODS_TEXT_MAX], tag[WEB_TAG_MAX];
};

/* ---- the engine's side, users and their commands: web_engine.c ---- */

struct web_engine {
    struct server *server;
    struct acl_user *public_user; /* NULL: nothing is public */
    uint32_t info, slowlog_get;   /* command_index of these */
    struct asks *asks;
    struct web_query *held_first; /* whose answers wait (dispatch/waiting.h); next */
};

/* false: error (HTTP_ERROR_MAX) says what of web-public is wrong. */
MUST_CHECK bool web_engine_init(struct web_engine *engine, struct server *server, char *error);
void web_engine_deinit(struct web_engine *engine);
/* Answer a struct web_query (http.h). */
bool web_engine_answer(void *engine, struct ask *ask);
/* Give back the answers that wait no more, and those that are never to be sent, as WEB_LOADING. */
void web_engine_release_answers(struct web_engine *engine);
/* A password or token. */
enum http_verdict web_engine_check_login(void *engine, struct http_login *login);

/* ---- answers, and those that are given again: web_answer.c ---- */

/* The JSON of an answer, for many. */
struct web_text {
    struct buffer body, packed; /* packed: empty until somebody takes gzip, or if that is longer */
    bool is_public;             /* query->user.is_public */
    bool was_packed;
    bool is_for_one; /* its body may be taken away */
};
struct web_kept_answers {
    struct web_kept *slots[WEB_KEPT_SLOTS];
    struct web_kept *first, *last; /* those that are there, the oldest first */
    unsigned count;                /* with those that are asked for */
    size_t size;
};
/* Pack the document and the files, which never change; write the policies that they are sent with. */
void web_answer_init(struct web *web);
void web_answer_deinit(struct web *web);
/* What every reply of the page says to browsers. */
void web_answer_add_headers(struct http_exchange *exchange);
/* An error of the listener as a problem document (http_handler). text ends with a newline. */
void web_answer_print_refusal(struct http_exchange *exchange, const char *text);
/* Reply a problem document; reply.status is set. */
void web_answer_error(struct http_exchange *exchange, struct bytes problem);
/* Reply what the query has written. */
void web_answer(struct http_exchange *exchange, struct web_query *query);
/* Reply the document of the API. */
void web_answer_document(struct http_exchange *exchange);
/* Reply one of web_files: every view has an address of its own, and the page that it loads is the same. false: there is
 * none at this address. */
MUST_CHECK bool web_answer_file(struct http_exchange *exchange, const struct http_target *target);
/* May the client do what costs so many units? 0: yes; else in so many seconds. */
unsigned web_answer_take_rate(struct web *web, struct web_rates *rates,
                              const struct http_exchange *exchange, int64_t units);
/* Logins by header from this address that were right are looked at anew. */
void web_answer_forget_known(struct web *web, const char *address);
/* Run the query for this request, and reply; it is taken. */
void web_answer_run(struct web_request *request, struct web_query *query);
/* The same for those who ask the same meanwhile, too, and keep the answer. */
void web_answer_run_for_many(struct web_request *request, struct web_query *query);
/* Reply what is kept, or wait for the answer that another one waits for. false: there is none. */
MUST_CHECK bool web_answer_again(struct web_request *request, const struct web_identity *identity);
/* Do both have the same rights? */
bool web_answer_is_same_identity(const struct web_identity *a, const struct web_identity *b);
void web_answer_leave(struct web_request *request);
/* Forget those whose time is over. */
void web_answer_step(struct web *web);
/* Is it a question of what is kept? Then it is over. The engine's thread, behind the end of the other one. */
MUST_CHECK bool web_answer_drop(struct web *web, struct ask *ask);
void web_answer_end(struct web *web);

/* ---- logins: web_login.c ---- */

struct web_session {
    char token_digest[DIGEST_TEXT_SIZE]; /* all zeros: free */
    bool is_player;
    struct jwt_player player;
    bool is_used, is_token;
    char user[HTTP_USER_MAX];
    char digest[DIGEST_TEXT_SIZE]; /* of the password, or the token */
    int64_t used_at_ms;
};
struct web_sessions {
    struct web_session *at; /* WEB_SESSIONS_MAX */
    int64_t timeout_ms;
};
MUST_CHECK bool web_login_init_sessions(struct web_sessions *sessions, int64_t timeout_ms);
void web_login_deinit_sessions(struct web_sessions *sessions);
/* A new one, for who asks, whom the engine has let in; token: room for WEB_TOKEN_SIZE. */
void web_login_add_session(struct web_sessions *sessions, const struct web_identity *identity,
                           int64_t now_ms, char *token);
/* NULL: there is none, or it has ended. */
struct web_session *web_login_find_session(struct web_sessions *sessions, struct bytes token,
                                           int64_t now_ms);
void web_login_end_session(struct web_session *session);

/* 401, with the reason. */
#define WEB_TOKEN_REFUSED "the player's token was refused: %s"
/* 403, with the client's address. */
#define WEB_TLS_NEEDED                                                                             \
    "no password or token is taken from %s without TLS while protected-mode is on"

/* {"user": "...", "password": "..."}, in any order; text is terminated. false: it is not that. */
MUST_CHECK bool web_login_read(const char *text, struct http_login *login);
/* POST /login and /logout; then go on by web->run_as, as who it is now. */
void web_login_log_in(struct web_request *request);
void web_login_log_out(struct web *web, struct web_request *request);
/* POST /players: a player with a random name. */
void web_login_make_guest(struct web_request *request);
/* Who asks, by the cookie. */
void web_login_identify(struct web *web, struct web_request *request,
                        struct web_identity *identity);
/* Is the login still there that the request came with? That is use of it. */
MUST_CHECK bool web_login_keep(struct web *web, const struct web_request *request);
/* Look at the password or token of the header Authorization, and go on by web->run_as. */
void web_login_by_header(struct web_request *request);
/* The same by a key of POST /stream-key, which is void from then on, and taken out of the target. */
void web_login_by_key(struct web_request *request, struct bytes key);

/* A login by header that was right: it is not looked at again while the user has this password or token. Any that
 * is wrong, from the same address, ends that, so that it makes guessing no faster. */
struct web_known {
    char address[HTTP_ADDRESS_MAX]; /* empty: free */
    bool is_token;
    char given[HTTP_USER_MAX]; /* the name that was given */
    struct web_identity identity;
};

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
void web_figures_step_history(struct web *web, int64_t now_ms);

/* ---- the document of the API: web_openapi.c ---- */

/* The members of a schema, and of what shape the reply is that they come from. */
const char *web_openapi_schema(struct bytes name, struct shape *source);

/* Write the routes as OpenAPI 3.1. */
void web_openapi_put(struct json *json, const struct web_operation *operations, unsigned count);

/* ---- all ---- */

/* Bounds of what the schemas of all answers hold. They are read at the start, which fails where they do not fit: so a
 * schema that needs more is seen by every test of a server, and these are made larger. */
enum {
    WEB_ANSWERS = 64,  /* operations */
    WEB_OBJECTS = 96,  /* schemas, and objects in them */
    WEB_PATHS = 512,   /* members of all these */
    WEB_ELEMENTS = 64, /* lists among the members, and in lists */
    WEB_PATH_STEPS = 4,
};
enum { WEB_NUMBERS = 64 };
enum { WEB_ORIGINS_MAX = 8, WEB_POLICY_MAX = 2048, WEB_FILES_MAX = 64 };

/* web-avatars: which field of the data is a picture's address, and where pictures may be. */
struct web_avatars {
    struct bytes field; /* NULL: there are none */
    struct bytes origins[WEB_ORIGINS_MAX];
    unsigned origin_count;
};

/* What an address may still do: of things that cost units, which come back with time. */
struct web_rate {
    struct auth_guard_address address;
    int64_t at_ms; /* when left was that; 0: the place is free */
    int64_t left;  /* units; below 0: done ahead */
};
struct web_rates {
    struct web_rate at[WEB_RATES_MAX];
    int64_t per_ms; /* units that come back; 0: no limit */
    int64_t most;   /* that are there at the most */
    int64_t least;  /* that must be left, or who asks has to wait */
};
enum {
    WEB_RESULT_UNITS =
        1000, /* so in a millisecond as many come back as results in a second may be written, */
    WEB_GUEST_UNITS = 3600000, /* and as guests in an hour may come */
    WEB_RESULTS_BURST_S = 2,
    WEB_GUEST_DAYS = 30, /* that a guest's token lives */
};

/* Schemas as they were read: an object and its members, one behind the other. Texts stay where they are. */
struct web_object {
    const char *text, *from; /* its members, and those of the shape that they come from */
    struct web_path *first, *end;
};
/* How a member or an element is shown. */
struct web_part {
    enum shape_kind kind;
    const struct web_object *object; /* of SHAPE_MAP and SHAPE_NAMED */
    const struct web_part *element;  /* of SHAPE_ARRAY */
};
/* A member, and where in a reply it is: of each step the name, in a map, and the place, in a list. */
struct web_path {
    bool has_source, is_bytes, is_optional;
    char key[32];
    const char *known_as; /* the route's text of that */
    enum web_asked {
        WEB_ASKED_NOTHING,
        WEB_ASKED_BOARD,
        WEB_ASKED_DATABASE,
        WEB_ASKED_MEMBER,
        WEB_ASKED_COUNT,
        WEB_ASKED_FIELDS,
        WEB_ASKED_DATA,
        WEB_ASKED_REPEATED,
    } asked; /* without a source: what of the query it is */
    struct web_part part;
    unsigned step_count;
    struct web_path_step {
        struct bytes word;
        unsigned index;
    } steps[WEB_PATH_STEPS];
};

/* The number of the command that a route's words begin with, by the text's place, which stays. */
struct web_number {
    const char *words; /* NULL: the place is free */
    uint32_t number;
};
struct web {
    struct http_server *http;
    struct http_handler handler;
    /* It is known who asks: run what the request asks for, and reply. */
    void (*run_as)(struct web_request *request, const struct web_identity *identity);
    struct web_engine engine;        /* the engine's thread's */
    const struct settings *settings; /* those of web- are fixed */
    struct web_pending {
        struct web_query *first, *last;
    } pending[2]; /* waiting for the pace: for requests, for views */
    unsigned pending_count;
    struct web_query
        *spare_first; /* with their buffers: making them anew is a third of a request */
    unsigned spare_count, spare_max;
    struct web_request *spare_requests; /* likewise; by next */
    unsigned spare_request_count;
    int64_t budgets_ns[2]; /* for requests, for views: what may be asked now, negative: overdrawn */
    int64_t budgets_at_ms;
    struct web_sessions sessions, stream_keys;
    struct web_views views;
    struct web_kept_answers kept;
    const struct web_object *answers[WEB_ANSWERS]; /* of each operation; NULL: it has none */
    const struct web_object *rating;               /* of rows */
    struct web_object objects[WEB_OBJECTS];        /* web_reply.c */
    struct web_path paths[WEB_PATHS];
    struct web_part elements[WEB_ELEMENTS];
    unsigned object_count, path_count, element_count;
    struct value_entries entries;           /* of a map in the replies that are being printed */
    struct web_number numbers[WEB_NUMBERS]; /* web_query.c */
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
    unsigned known_next;                        /* to be replaced */
    struct web_rates result_rates, guest_rates; /* web-write-rate, web-guests-per-hour */
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
    web_route_leave_league, web_route_stream_key, web_route_league, web_route_matches,
    web_route_predictions, web_route_rating, web_route_held, web_route_approve, web_route_reject,
    web_route_ban, web_route_unban, web_route_ticket;

/* NULL: there is none of this method. */
const struct web_operation *web_find_operation(enum http_method method,
                                               const struct http_target *target);

#endif
