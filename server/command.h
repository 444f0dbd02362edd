/* Commands are data: an entry stands beside its handler, and one list (command_table.c) names
 * them all. Dispatch, arity, authentication, COMMAND DOCS, redis-cli's hints, prefetching and
 * docs/commands.md come from the entries. */
#ifndef SERVER_COMMAND_H
#define SERVER_COMMAND_H

#include "protocol/reply.h"
#include "protocol/request.h"
#include "skiplist/registry.h"

struct server;
struct session;
struct command;

/* What a handler sees: no socket, no clock, no global. All writes of one command carry now_us. */
struct call {
    const struct request *request; /* borrowed; args[0] is the command's name */
    const struct command *command; /* the subcommand's entry where there is one */
    struct reply *reply;
    struct registry *registry;
    struct session *session;
    struct server *server;
    const struct board_prefetch *ahead; /* for board_look_up of the only member; or NULL */
    int64_t now_us;                     /* unix microseconds; never runs backwards */
    int64_t now_ms;                     /* the same, floored */
};

enum command_flag {
    COMMAND_WRITE = 1 << 0,    /* changes boards; refused past maxmemory with COMMAND_DENYOOM */
    COMMAND_READ = 1 << 1,     /* reads boards */
    COMMAND_DENYOOM = 1 << 2,  /* may need memory */
    COMMAND_ADMIN = 1 << 3,    /* for operators */
    COMMAND_FAST = 1 << 4,     /* O(1) or O(log n) */
    COMMAND_NO_AUTH = 1 << 5,  /* allowed before authentication */
    COMMAND_LOADING = 1 << 6,  /* allowed while boards are loaded */
    COMMAND_BLOCKING = 1 << 7, /* may wait */
    COMMAND_NO_PAUSE = 1 << 8, /* runs during CLIENT PAUSE ALL */
    COMMAND_SECRET = 1 << 9,   /* arguments are kept out of SLOWLOG and logs: AUTH, HELLO */
    COMMAND_MOVABLE_KEYS = 1 << 10, /* keys are found by a count argument: key_count_arg */
    COMMAND_NO_MULTI = 1 << 11,     /* not allowed between MULTI and EXEC */
    COMMAND_NOT_QUEUED = 1 << 12,   /* runs between MULTI and EXEC, too, at once */
    COMMAND_ENDS_MULTI = 1 << 13,   /* and allowed there past maxmemory: it gives memory back */
    COMMAND_NO_SLOWLOG = 1 << 14,   /* EXEC: what it runs is logged */
};

/* COMMAND DOCS' argument types. */
enum argument_type {
    ARGUMENT_STRING,
    ARGUMENT_INTEGER,
    ARGUMENT_DOUBLE,
    ARGUMENT_KEY,
    ARGUMENT_PATTERN,
    ARGUMENT_UNIX_TIME,
    ARGUMENT_PURE_TOKEN, /* the token alone: WITHSCORES */
    ARGUMENT_ONEOF,      /* one of children */
    ARGUMENT_BLOCK,      /* all of children, in order */
};
enum argument_flag {
    ARGUMENT_OPTIONAL = 1 << 0,
    ARGUMENT_MULTIPLE = 1 << 1,
    ARGUMENT_MULTIPLE_TOKEN = 1 << 2,
};
struct argument {
    const char *name; /* NULL ends a list */
    enum argument_type type;
    const char *token; /* "LIMIT"; NULL: none */
    const char *since; /* NULL: as the command */
    unsigned flags;
    const struct argument *children; /* ONEOF and BLOCK */
};

typedef void command_run(struct call *call);

/* For prefetching: the key that the request's only member will have on a board with this layout.
 * false: it has more members or is malformed, or what it asks for does not tell. */
typedef bool command_new_key(const struct layout *layout, const struct request *request,
                             int64_t now_us, uint64_t *key);

struct command {
    const char *name;       /* upper case: "ZADD"; a subcommand's own word: "SETNAME" */
    const char *summary;    /* one sentence, no full stop */
    const char *complexity; /* "O(log n) ..." */
    const char *since;      /* of leaderboard: "1.0.0" */
    const char *group;      /* "sorted-set", "leaderboard", "generic" ... */
    int arity;              /* as Redis: the name counts; negative: at least */
    unsigned flags;
    /* Keys: args[first_key], then every key_step up to last_key (negative: from the end);
     * first_key 0: none. With COMMAND_MOVABLE_KEYS: args[key_count_arg] says how many follow it. */
    int first_key, last_key, key_step;
    int key_count_arg;
    /* For prefetching: members stand at args[member_arg] (negative: from the end), then every
     * member_step to the end (0: only one). member_arg 0: none. score_arg: where a lone new score
     * stands (ZADD 2), else 0; new_key, not NULL, does where that is not enough. */
    int member_arg, member_step, score_arg;
    command_new_key *new_key;
    const struct argument *arguments;         /* NULL: none */
    const struct command *const *subcommands; /* NULL-ended; NULL: none */
    command_run *run;                         /* NULL for a container: "CLIENT" */
};

/* Every command, NULL-ended, by group and name (command_table.c). */
extern const struct command *const command_table[];
extern const struct command command_exec;

/* Commands and subcommands are numbered for statistics: 0 .. command_count() - 1. */
void command_init(void); /* builds the lookup table; once, before anything else */
uint32_t command_count(void);
uint32_t command_index(const struct command *command);
const struct command *command_by_index(uint32_t index);
/* "zadd", "client|setname" (lower case, borrowed for ever). */
const char *command_full_name(uint32_t index);

/* By name, any case; COMMAND_NONE: there is none. A subcommand's number is found in two steps, by
 * command_find_request. */
#define COMMAND_NONE UINT32_MAX
uint32_t command_find_index(struct bytes name);
/* What a request asks for: the subcommand's number where there is one. */
uint32_t command_find_request(const struct request *request);
/* By full name, any case: "zadd", "config|get"; COMMAND_NONE: there is none. */
uint32_t command_find_full_name(struct bytes name);
/* By name, any case; NULL: there is none. */
const struct command *command_find(struct bytes name);
const struct command *command_find_subcommand(const struct command *container, struct bytes name);
/* Positions of the request's keys. Writes up to positions_max, returns how many there are; -1 when
 * the arguments do not fit the command. */
int command_key_positions(const struct command *command, const struct request *request,
                          uint32_t *positions, int positions_max);
/* "key score member [score member ...]", made from arguments; out has room for size bytes with the
 * terminator; returns the length. */
size_t command_print_syntax(const struct command *command, char *out, size_t size);

/* Run one request: look up, check arity, authentication, memory and disk, run, count. Everything a
 * client sends comes through here. Exactly one reply is written, unless the session's replies are
 * off. The session says afterwards whether to close. */
void command_execute(struct server *server, struct session *session, const struct request *request,
                     struct reply *reply);
/* The same for a number that command_find_request has given for this request; its time counts from
 * server->command_begin_ticks. */
void command_execute_index(struct server *server, struct session *session, uint32_t index,
                           const struct request *request, struct reply *reply);
/* COMMAND_WRITE and COMMAND_DENYOOM, as far as they are the command's; EXEC has those of all that
 * the session has queued. */
unsigned command_needs(const struct session *session, const struct command *command);
/* Run a request that command_execute_index has queued: EXEC does. What it answers and how long it
 * takes counts as when it comes alone; nothing is refused any more. */
void command_execute_queued(struct server *server, struct session *session, uint32_t index,
                            const struct request *request, struct reply *reply);
/* Show a request that was run to every monitor (command_monitor.c). Secrets are left out. */
void command_feed_monitors(struct server *server, const struct session *session,
                           const struct command *command, const struct request *request);

/* Helpers for handlers, in the words of Redis. */
static inline struct bytes call_arg(const struct call *call, uint32_t index) {
    return call->request->args[index];
}
static inline bool call_arg_is(const struct call *call, uint32_t index, const char *word) {
    return bytes_is(call->request->args[index], word);
}
/* The board of a key in the session's database; NULL: no such key. */
struct registry_key *call_find_key(const struct call *call, struct bytes name);
const struct board *call_find_board(const struct call *call, struct bytes name);
/* "ERR value is not an integer or out of range", "ERR syntax error", and so on. */
MUST_CHECK bool call_parse_integer(const struct call *call, struct bytes text, int64_t *value);
/* A SCAN or ZSCAN cursor as strtoull reads it: leading zeros and a plus are taken. */
MUST_CHECK bool call_parse_cursor(const struct call *call, struct bytes text, uint64_t *cursor);
void call_syntax_error(const struct call *call);
void call_out_of_memory(const struct call *call);
/* The lines of a HELP subcommand, NULL-ended, between Redis's first and last lines. */
void call_help(const struct call *call, const char *const *lines);

#endif
