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

#include "codec/json.h"
#include "server/acl/acl.h"
#include "server/http/http_login.h"
#include "server/http/http_target.h"
#include "server/metrics/figures.h"
#include "server/system/digest.h"
#include "server/web/value.h"

struct web;
struct web_query;

enum {
    WEB_COMMANDS_MAX = 40,     /* of a round */
    WEB_WORDS_MAX = 640,       /* of its commands together */
    WEB_REPLIES_MAX = 4 << 20, /* bytes of RESP of a round */
    WEB_JSON_MAX = 16 << 20,
    WEB_FIELDS_MAX = 8, /* of a member's hash */
    WEB_ROWS_MAX = 200,
    WEB_WHERES_MAX = 32,
    WEB_REQUEST_SHARE = 10,
    WEB_VIEW_SHARE = 50,
    WEB_BODY_MAX = 256 * 1024, /* bytes of JSON that a request may write */
    WEB_RESULTS_MAX = 1000,    /* of a request; one on several boards counts for each */
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
    /* Add the commands of a round (query->round). false: query->status and its JSON say why not. */
    bool (*ask)(struct web_query *query);
    /* Write the JSON, or return true for a further round. */
    bool (*print)(struct web_query *query);
    /* Of a route that writes: read the query's body, to which words then point. false: as ask. */
    bool (*read)(struct web_query *query);
    bool needs_figures;
    bool is_for_all; /* also for those who may see nothing */
    bool writes;     /* the first command that is refused ends the round */
};

/* A row of the table of routes (web_routes.c), which is also what /api/openapi.json is written from. */
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
    uint32_t number;     /* command_index */
    unsigned end;        /* of its words, which begin where those of the command before end */
    size_t reply_end;    /* likewise of its reply */
    uint8_t value_count; /* session.value_count */
    bool has_id;         /* it has an id (ONCE), */
    bool is_repeated;    /* which had come before */
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
    char cursor_text[BYTES_INTEGER_TEXT_MAX];
    char pattern_text[ACL_TEXT_MAX];
    unsigned pattern_count;
};

/* What a request writes (web_results.h). All zeros: nothing. */
struct web_write {
    struct buffer body; /* owned; strings are decoded where they are */
    struct bytes id;    /* Idempotency-Key; NULL: none */
    char id_text[64];
    bool has_ids;                     /* some result has one */
    unsigned char route[DIGEST_SIZE]; /* to which they belong: the path, and its board or league */
    struct buffer words, commands;    /* struct bytes, and struct web_command */
    struct buffer firsts;             /* unsigned: of each command the index of its first result */
    unsigned result_count, weight;    /* weight: one on several boards counts for each */
    size_t room;                      /* bytes of all this that web_take_memory counts */
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
    char *text; /* decoded target; owned */
    struct http_target target;
    uint8_t database;
    struct bytes board, member;
    int64_t from, count;
    struct web_data data;
    struct web_where wheres[WEB_WHERES_MAX]; /* the group that is read; none: all members */
    unsigned where_count;
    bool has_tags; /* records have the members' tags */
    struct bytes
        since; /* another board, on which the members' ranks are asked for, or LAST; NULL: none */
    /* a round */
    unsigned round, more; /* more: the route's own */
    unsigned command_count, word_count;
    struct web_command *commands; /* its own ones, or those of a write */
    struct bytes *words;
    struct web_command own_commands[WEB_COMMANDS_MAX];
    struct bytes own_words[WEB_WORDS_MAX];
    struct buffer texts;     /* words that are made up; does not move while words point to it */
    struct buffer replies;   /* does not grow */
    size_t room;             /* bytes of it that web_take_memory counts */
    struct figures *figures; /* of a route that needs them; owned */
    struct buffer kept;      /* the route's own: what earlier rounds have found */
    unsigned reply_count;
    struct web_scan scan;
    struct web_write write;
    /* from the engine */
    enum web_verdict verdict;
    struct web_user user;
    uint64_t held_for; /* the group that it waits for, */
    uint64_t epoch;    /* in this epoch (replication_answer_epoch), that of its first round */
    uint64_t elapsed_ns;
    uint64_t change_count;       /* of the engine, when the first round began */
    bool has_seen, is_unchanged; /* nothing has changed since seen_change_count: nothing was run */
    uint64_t seen_change_count;
    bool has_changed; /* a write has */
    uint32_t retry_s; /* how long its refusal holds; 0: not said */
    /* the reply */
    unsigned status;
    struct buffer out;
    struct json json;
};

/* NULL: out of memory. */
MUST_CHECK struct web_query *web_query_create(struct web *web);
/* Take a target apart and choose its route. false: status and JSON say why not. */
MUST_CHECK bool web_query_parse(struct web_query *query, enum http_method method,
                                const char *target);
/* Room for so many bytes of replies, and not one more: the engine's thread neither allocates nor moves what
 * this one frees. false: there is not so much memory; the room is as it was. */
MUST_CHECK bool web_query_make_room(struct web_query *query, size_t size);
/* Ask the engine, round by round; then done is called, on the HTTP thread. Once more for another time. */
void web_query_run(struct web_query *query);
/* Nobody waits for it any more. */
void web_query_leave(struct web_query *query);
void web_query_destroy(struct web_query *query);

/* JSON that is appended to this. */
static inline struct json web_json(struct buffer *out) {
    return (struct json){.append = buffer_put, .out = out, .is_for_page = true};
}

/* ---- for routes ---- */

/* Begin a command with these words, one blank between each two: its name ("SLOWLOG|GET"), texts, and
 *
 *     $board  $member            the query's
 *     $where  $tags  $data       the same, or nothing, if none was asked for
 *     $cursor  $pattern          of a scan, where the engine puts in those of its steps
 *     #  $                       an int64_t, and a struct bytes that lives as long as the round */
void web_command(struct web_query *query, const char *words, ...);
/* Add such words to the command, or one. */
void web_words(struct web_query *query, const char *words, ...);
void web_word(struct web_query *query, struct bytes word);
/* A copy of bytes for a word of this round. Room: 1 KiB in all, names of keys apart. */
struct bytes web_word_copy(struct web_query *query, struct bytes bytes);
/* The number of a command ("LB.LEAGUE|ADD"), which exists. */
uint32_t web_command_number(struct bytes full_name);
/* The reply to the nth command of the round. */
struct value_reader web_reply(const struct web_query *query, unsigned nth);
/* If the nth command was refused: the status and the JSON of that. */
MUST_CHECK bool web_reply_is_error(struct web_query *query, unsigned nth);
/* The same for the first of all commands of the round that was refused. */
MUST_CHECK bool web_replies_have_error(struct web_query *query);
/* An error as the whole reply: a problem document (RFC 9457), whose code follows from the status. */
__attribute__((format(printf, 3, 4))) void web_error(struct web_query *query, unsigned status,
                                                     const char *format, ...);
/* Append one. redis: the prefix of the command's error; at NULL: none. Open: members of
 * its own may follow. */
void web_put_problem(struct json *json, unsigned status, struct bytes detail, struct bytes redis);
/* A parameter that is a number. false: the error was written. */
MUST_CHECK bool web_number(struct web_query *query, const char *name, int64_t lowest,
                           int64_t highest, int64_t otherwise, int64_t *number);

#endif
