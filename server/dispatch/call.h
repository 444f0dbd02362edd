/* One command that runs: what its handler sees, and helpers to read its arguments, to reply with
 * Redis's error texts, and to report events of keys. It brings what nearly every handler needs: its
 * entry (command.h), the server and the events (sessions/notify.h). */
#ifndef SERVER_CALL_H
#define SERVER_CALL_H

#include "protocol/reply.h"
#include "server/dispatch/command.h"
#include "server/sessions/notify.h"
#include "skiplist/keyspace/registry.h"

struct glob;

/* What a handler sees: no socket, no clock, no globals. All writes of one command use now_us. */
struct call {
    const struct request *request; /* borrowed; args[0] is the command name */
    const struct command *command; /* the subcommand's entry if there is one */
    struct reply *reply;
    struct registry *registry;
    struct session *session;
    struct server *server;
    /* Hints for board_look_up of the only member, on the board of each key, before it on what it has them from: a
     * share, or the member's room (lookup_on); or NULL. */
    const struct lookup *ahead;
    int64_t now_us; /* unix microseconds; never decreases */
    int64_t now_ms; /* now_us in milliseconds, rounded down */
};

/* Of this request, at the server's time. ahead is NULL. */
static inline struct call call_begin(struct server *server, struct session *session,
                                     const struct command *command, const struct request *request,
                                     struct reply *reply) {
    return (struct call){
        .request = request,
        .command = command,
        .reply = reply,
        .registry = server->registry,
        .session = session,
        .server = server,
        .now_us = server->clock.now_us,
        .now_ms = server->clock.now_ms,
    };
}
static inline struct bytes call_arg(const struct call *call, uint32_t index) {
    return call->request->args[index];
}
static inline bool call_arg_is(const struct call *call, uint32_t index, const char *word) {
    return bytes_is(call->request->args[index], word);
}
/* A key of any kind in the session's database. NULL: no such key. */
struct registry_key *call_find_key(const struct call *call, struct bytes name);
/* Reply "WRONGTYPE ..."; returns false. */
bool call_refuse_kind(const struct call *call);
/* Is the key, which may be NULL, of this kind (skiplist/keyspace/effect.h)? false: "WRONGTYPE
 * ..." was replied. */
MUST_CHECK static inline bool call_check_kind(const struct call *call,
                                              const struct registry_key *key, uint32_t kind) {
    return __builtin_expect(key == NULL || key->kind == kind, 1) || call_refuse_kind(call);
}
/* Both in one, for a key, a board or a hash; NULL: no such key. false: the error was replied. */
MUST_CHECK static inline bool call_find_kind(const struct call *call, struct bytes name,
                                             uint32_t kind, struct registry_key **key) {
    *key = call_find_key(call, name);
    return call_check_kind(call, *key, kind);
}
/* The same for a board that must be there. */
MUST_CHECK bool call_need_board(const struct call *call, struct bytes name,
                                struct registry_key **key);
MUST_CHECK static inline bool call_find_board(const struct call *call, struct bytes name,
                                              const struct board **board) {
    const struct registry_key *key = call_find_key(call, name);
    *board = key != NULL ? &key->board : NULL;
    return call_check_kind(call, key, REGISTRY_BOARD);
}
MUST_CHECK static inline bool call_find_hash(const struct call *call, struct bytes name,
                                             const struct hash **hash) {
    const struct registry_key *key = call_find_key(call, name);
    *hash = key != NULL ? registry_hash(key) : NULL;
    return call_check_kind(call, key, REGISTRY_HASH);
}
/* The key's board; NULL: there is no key, or it is of another kind. */
static inline const struct board *call_board(const struct registry_key *key) {
    return key != NULL && key->kind == REGISTRY_BOARD ? &key->board : NULL;
}
/* May the client change this member: is it no player (server/acl/player.h), or this one? Asked for every member before
 * the first change. false: the error was replied. */
bool call_refuse_foreign(const struct call *call, struct bytes member);
MUST_CHECK static inline bool call_check_own(const struct call *call, struct bytes member) {
    return __builtin_expect(call->session->player == NULL, 1) || !call_refuse_foreign(call, member);
}
/* Is the name valid for a new key? false: the error was replied. */
MUST_CHECK bool call_check_key(const struct call *call, struct bytes key);
/* These say what is wrong with the words of a request, and return false. The commands of Redis do it in its words: "ERR
 * value is not an integer or out of range", "ERR syntax error". LB. commands name the word, what was expected, and
 * their syntax (explain.h). */
void call_reply_syntax_error(const struct call *call);
static inline bool call_syntax_error(const struct call *call) {
    call_reply_syntax_error(call);
    return false;
}
/* text: of the request, or its end. */
void call_reply_not_integer(const struct call *call, struct bytes text);
static inline bool call_refuse_integer(const struct call *call, struct bytes text) {
    call_reply_not_integer(call, text);
    return false;
}
/* Another syntax error, which lies in this word; field, why: as explain_word has them. redis: the text for commands of
 * Redis; NULL: only LB. commands do this. */
void call_reply_word(const struct call *call, struct bytes word, const char *field, const char *why,
                     const char *redis);
static inline bool call_refuse_word(const struct call *call, struct bytes word, const char *why,
                                    const char *redis) {
    call_reply_word(call, word, NULL, why, redis);
    return false;
}
static inline bool call_refuse_value(const struct call *call, struct bytes word, const char *field,
                                     const char *takes) {
    call_reply_word(call, word, field, takes, NULL);
    return false;
}
/* "ERR reason", of an LB. command with its syntax. */
__attribute__((format(printf, 2, 3))) void call_reply_reason(const struct call *call,
                                                             const char *format, ...);
#define call_refuse_reason(call, ...) (call_reply_reason(call, __VA_ARGS__), false)
/* "ERR wrong number of arguments for 'zadd' command", for what the syntax cannot say. */
bool call_refuse_arity(const struct call *call);
/* Why a request that has a wrong number of arguments is refused. out: EXPLAIN_MAX bytes. */
void call_print_arity(const struct command *command, const struct request *request, char *out);
MUST_CHECK static inline bool call_parse_integer(const struct call *call, struct bytes text,
                                                 int64_t *value) {
    return bytes_parse_i64(text, value) || call_refuse_integer(call, text);
}
/* The number of a database. Redis parses it as a C int, and its error text says so. */
MUST_CHECK bool call_check_database(const struct call *call, int64_t number);
/* A SCAN or ZSCAN cursor, parsed like strtoull: leading zeros and a plus sign are accepted. */
MUST_CHECK bool call_parse_cursor(const struct call *call, struct bytes text, uint64_t *cursor);
/* "ERR pattern is too long: at most 1024 bytes"; codec/glob.h. */
MUST_CHECK bool call_prepare_glob(const struct call *call, struct bytes pattern, struct glob *glob);
MUST_CHECK bool call_prepare_glob_lower(const struct call *call, struct bytes pattern,
                                        struct glob *glob);
/* These reply with an error, and return false. */
static inline bool call_refuse(const struct call *call, const char *error) {
    reply_error(call->reply, error);
    return false;
}
#define call_refuse_format(call, ...) (reply_error_format((call)->reply, __VA_ARGS__), false)
/* As containers that check their number of arguments themselves do in Redis: at most count_max.
 * container: "ACL". false: the error was replied. */
MUST_CHECK bool call_check_count(const struct call *call, uint32_t count_max,
                                 const char *container);
#define CALL_NO_KEY "ERR no such key"
static inline bool call_refuse_no_key(const struct call *call) {
    reply_error(call->reply, CALL_NO_KEY);
    call->reply->error_cause = REPLY_NO_KEY;
    return false;
}
static inline bool call_out_of_memory(const struct call *call) {
    return call_refuse(call, "OOM out of memory");
}
bool call_refuse_time(const struct call *call, const struct layout *layout, int64_t time_us);
/* The name by which the client runs this container, in upper case; room for SETTING_RENAME_SIZE_MAX
 * and a terminator. */
void call_print_name(const struct request *request, char *out);
/* The HELP of a container: Redis's first line, then the syntax and the summary of each of its
 * subcommands, HELP among them. */
extern const struct command call_help_command;
void call_help(struct call *call);
#define CALL_HELP(help_flags)                                                                      \
    {                                                                                              \
        .name = "HELP", .reply = "[s]", .summary = "What the subcommands do", .flags = help_flags, \
        .run = call_help                                                                           \
    }

/* Report an event on a key of the session's database, after the change. */
static inline void call_notify(const struct call *call, enum setting_event class, const char *event,
                               struct bytes name) {
    notify(call->server, class, event, call->session->database, name);
}
/* The event has the command's name. */
static inline void call_notify_command(const struct call *call, enum setting_event class,
                                       struct bytes name) {
    if (notify_is_on(call->server, class)) {
        call_notify(call, class, command_full_name(command_index(call->command)), name);
    }
}

#endif
