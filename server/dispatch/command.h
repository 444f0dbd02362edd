/* Commands are data: each entry is defined next to its handler, and one list (commands/table.h)
 * names them all. Dispatch, arity checks, authentication, COMMAND DOCS, redis-cli's hints,
 * prefetching and docs/commands.md are driven by the entries. */
#ifndef SERVER_COMMAND_H
#define SERVER_COMMAND_H

#include "protocol/reply.h"
#include "protocol/request.h"
#include "skiplist/keyspace/registry.h"

struct glob;
struct option_row;
struct server;
struct session;
struct command;

/* What a handler sees: no socket, no clock, no globals. All writes of one command use now_us. */
struct call {
    const struct request *request; /* borrowed; args[0] is the command name */
    const struct command *command; /* the subcommand's entry if there is one */
    struct reply *reply;
    struct registry *registry;
    struct session *session;
    struct server *server;
    const struct lookup *ahead; /* hint for board_look_up of the only member; or NULL */
    int64_t now_us;             /* unix microseconds; never decreases */
    int64_t now_ms;             /* now_us in milliseconds, rounded down */
};

/* Limit on the work of one step of SCAN or ZSCAN (skiplist/scan.h), whatever its COUNT: half a
 * millisecond on an idle machine. */
#define COMMAND_SCAN_WORK_MAX 500000

enum command_flag {
    COMMAND_WRITE = 1 << 0,    /* changes boards; with COMMAND_DENYOOM refused above maxmemory */
    COMMAND_READ = 1 << 1,     /* reads boards */
    COMMAND_DENYOOM = 1 << 2,  /* may allocate */
    COMMAND_ADMIN = 1 << 3,    /* for operators */
    COMMAND_FAST = 1 << 4,     /* O(1) or O(log n) */
    COMMAND_NO_AUTH = 1 << 5,  /* allowed before authentication */
    COMMAND_LOADING = 1 << 6,  /* allowed while boards are loaded */
    COMMAND_BLOCKING = 1 << 7, /* may block */
    COMMAND_NO_PAUSE =
        1 << 8, /* runs during CLIENT PAUSE ALL: what a new client needs to end the pause */
    COMMAND_SECRET = 1 << 9,        /* arguments are not shown in SLOWLOG and logs: AUTH, HELLO */
    COMMAND_MOVABLE_KEYS = 1 << 10, /* keys are preceded by a count: key_count_arg */
    COMMAND_NO_MULTI = 1 << 11,     /* not allowed between MULTI and EXEC */
    COMMAND_NOT_QUEUED = 1 << 12,   /* runs immediately between MULTI and EXEC, too */
    COMMAND_ENDS_MULTI = 1 << 13,   /* allowed there above maxmemory, because it frees memory */
    COMMAND_NO_SLOWLOG = 1 << 14,   /* EXEC: the commands that it runs are logged instead */
    COMMAND_NO_BOARDS = 1 << 15,    /* its reply reveals nothing about the boards: PING */
    COMMAND_RUNS_QUEUE = 1 << 16,   /* EXEC: needs what the queued commands need */
    COMMAND_SECRET_AUTH = 1 << 17,  /* HELLO: only the arguments after AUTH are secret */
};

/* Argument types of COMMAND DOCS: first those of a word, then the others. */
enum argument_type {
    ARGUMENT_STRING,
    ARGUMENT_INTEGER,
    ARGUMENT_DOUBLE,
    ARGUMENT_KEY,
    ARGUMENT_PATTERN,
    ARGUMENT_UNIX_TIME,
    ARGUMENT_PURE_TOKEN, /* only a token: WITHSCORES */
    ARGUMENT_ONEOF,      /* one of the children */
    ARGUMENT_BLOCK,      /* all children, in order */
};
enum argument_flag {
    ARGUMENT_OPTIONAL = 1 << 0,
    ARGUMENT_MULTIPLE = 1 << 1,
    ARGUMENT_MULTIPLE_TOKEN = 1 << 2,
};
struct argument {
    const char *name; /* NULL terminates a list */
    enum argument_type type;
    const char *token; /* "LIMIT"; NULL: none */
    unsigned flags;
    const struct argument *children; /* ONEOF and BLOCK */
};

typedef void command_run(struct call *call);

/* For prefetching: the key that the request's only member will get on a board with this layout.
 * false: there are several members, the request is malformed, or the key cannot be determined. */
typedef bool command_new_key(const struct layout *layout, const struct request *request,
                             int64_t now_us, uint64_t *key);

/* The cost of a request (server/dispatch/cost.h). Every command that does more than O(log n) work
 * has one. */
struct cost_view;
typedef uint64_t command_work(const struct cost_view *view);
struct command_cost {
    command_work *count; /* number of units in the request, from the current sizes */
    uint32_t unit_ns; /* measured time of one unit on a board of a million members; 0: nothing, the
                         units only count members that move to another key (RENAME) */
    int grown_key;    /* index of the key whose board may grow by as many members; 0: none */
    const char *unit; /* "member returned" */
    const char
        *instead; /* the non-blocking alternative, as Markdown: "pages of some hundred members" */
};

struct command {
    const char *name;       /* upper case: "ZADD"; for a subcommand its own word: "SETNAME" */
    const char *summary;    /* one sentence, no full stop */
    const char *complexity; /* "O(log n) ..." */
    const char *since;      /* first version of leaderboard that has it; NULL: "1.0.0" */
    const char *group;      /* "sorted-set", "leaderboard", "generic" ... */
    const char *syntax;     /* its arguments (server/dispatch/syntax.h); NULL: none */
    const struct option_row *options; /* how they are read (server/dispatch/options.h); or NULL */
    unsigned flags;
    /* For prefetching: members are args[member_arg] (negative: from the end) and every
     * member_step-th argument after it (0: only one). member_arg 0: none. score_arg: index of the
     * score of a single new member (ZADD 2), else 0. new_key: used where score_arg is not enough,
     * or NULL. */
    int member_arg, member_step, score_arg;
    command_new_key *new_key;
    const struct command *const *subcommands; /* NULL-terminated; NULL: none */
    const struct command_cost *cost;          /* NULL: at most O(log n), or incremental */
    command_run *run;                         /* NULL for a container: "CLIENT" */

    /* Set by command_init. An entry gives an arity only if it is not what the syntax says. */
    int arity; /* as in Redis: includes the name; negative: minimum */
    /* The same as a range: args_min .. args_min + args_more. No number fits a container. */
    uint32_t args_min, args_more;
    /* Keys: args[first_key] and every key_step-th argument up to last_key (negative: from the end).
     * first_key 0: none. With COMMAND_MOVABLE_KEYS, args[key_count_arg] is the number of keys that
     * follow it. */
    int first_key, last_key, key_step;
    int key_count_arg;
    const struct argument *arguments; /* NULL: none */
};

/* Copy the table (NULL-terminated) and complete its entries. Call once, first. Everything below
 * takes and returns the complete copies.
 *
 * Commands and subcommands have numbers, used for statistics: 0 .. command_count() - 1. */
void command_init(const struct command *const *table);
uint32_t command_count(void);
uint32_t command_index(const struct command *command);
const struct command *command_by_index(uint32_t index);
/* "zadd", "client|setname" (lower case, static storage). */
const char *command_full_name(uint32_t index);
bool command_is_subcommand(uint32_t index);

/* By name, case-insensitive. COMMAND_NONE: not found. For subcommands use command_find_request. */
#define COMMAND_NONE UINT32_MAX
uint32_t command_find_index(struct bytes name);
/* The command that a request names, or its subcommand if there is one. */
uint32_t command_find_request(const struct request *request);
/* By full name, case-insensitive: "zadd", "config|get". COMMAND_NONE: not found. */
uint32_t command_find_full_name(struct bytes name);
/* By name, case-insensitive. NULL: not found. */
const struct command *command_find(struct bytes name);
const struct command *command_find_subcommand(const struct command *container, struct bytes name);
/* Find the positions of the request's keys. Writes at most positions_max positions and returns the
 * number of keys, or -1 if the arguments do not fit the command. */
int command_key_positions(const struct command *command, const struct request *request,
                          uint32_t *positions, int positions_max);

/* Run one request: look up, check arity, authentication, memory and disk, run, count. Every client
 * request comes through here. Writes exactly one reply, unless the session's replies are off.
 * Afterwards the session says whether to close the connection. */
void command_execute(struct server *server, struct session *session, const struct request *request,
                     struct reply *reply);
/* As command_execute, for the number that command_find_request returned for this request. Its time
 * is measured from server->command_begin_ticks. */
void command_execute_index(struct server *server, struct session *session, uint32_t index,
                           const struct request *request, struct reply *reply);
/* The command's COMMAND_WRITE and COMMAND_DENYOOM flags. EXEC has those of all requests that the
 * session has queued. */
unsigned command_needs(const struct session *session, const struct command *command);
/* For EXEC: run a request queued by command_execute_index. Its reply and its time are counted as if
 * it were run alone; the checks are not repeated. */
void command_execute_queued(struct server *server, struct session *session, uint32_t index,
                            const struct request *request, struct reply *reply);

/* Helpers for handlers, with Redis's error texts. */
static inline struct bytes call_arg(const struct call *call, uint32_t index) {
    return call->request->args[index];
}
static inline bool call_arg_is(const struct call *call, uint32_t index, const char *word) {
    return bytes_is(call->request->args[index], word);
}
/* The board of a key in the session's database. NULL: no such key. */
struct registry_key *call_find_key(const struct call *call, struct bytes name);
const struct board *call_find_board(const struct call *call, struct bytes name);
/* On failure they reply "ERR value is not an integer or out of range", "ERR syntax error", and so
 * on. */
MUST_CHECK bool call_parse_integer(const struct call *call, struct bytes text, int64_t *value);
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
static inline bool call_syntax_error(const struct call *call) {
    return call_refuse(call, "ERR syntax error");
}
static inline bool call_out_of_memory(const struct call *call) {
    return call_refuse(call, "OOM out of memory");
}
bool call_refuse_time(const struct call *call, const struct layout *layout, int64_t time_us);
/* Reply of a HELP subcommand: lines, NULL-terminated, between Redis's first and last lines. */
void call_help(const struct call *call, const char *const *lines);

#endif
