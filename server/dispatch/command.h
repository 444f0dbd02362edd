/* Commands are data: each entry is defined next to its handler, and one list (commands/table.h)
 * names them all. Dispatch, arity checks, authentication, COMMAND DOCS, redis-cli's hints,
 * prefetching and docs/reference/commands.md are driven by the entries. */
#ifndef SERVER_COMMAND_H
#define SERVER_COMMAND_H

#include <stddef.h>

#include "protocol/resp.h"
#include "server/sessions/server.h"
#include "skiplist/keyspace/registry.h"

struct call;
struct command;
struct growth;
struct session;
struct syntax_form;

/* Limit on the work of one step of SCAN or ZSCAN (skiplist/map.h), whatever its COUNT: half a
 * millisecond on an idle machine. */
#define COMMAND_SCAN_WORK_MAX 500000

enum command_flag {
    COMMAND_WRITE = 1 << 0,   /* changes boards; with COMMAND_DENYOOM refused above maxmemory */
    COMMAND_READ = 1 << 1,    /* reads boards */
    COMMAND_DENYOOM = 1 << 2, /* may allocate */
    COMMAND_ADMIN = 1 << 3,   /* for operators */
    COMMAND_FAST = 1 << 4,    /* O(1) or O(log n) */
    COMMAND_NO_AUTH = 1 << 5, /* allowed before authentication */
    COMMAND_LOADING = 1 << 6, /* allowed while boards are loaded */
    COMMAND_NO_PAUSE =
        1 << 7, /* runs during CLIENT PAUSE ALL: what a new client needs to end the pause */
    COMMAND_SECRET = 1 << 8,       /* arguments are not shown in SLOWLOG and logs: AUTH, HELLO */
    COMMAND_MOVABLE_KEYS = 1 << 9, /* keys are preceded by a count: key_count_arg */
    COMMAND_NO_MULTI = 1 << 10,    /* not allowed between MULTI and EXEC */
    COMMAND_NOT_QUEUED = 1 << 11,  /* runs immediately between MULTI and EXEC, too */
    COMMAND_ENDS_MULTI = 1 << 12,  /* allowed there above maxmemory, because it frees memory */
    COMMAND_NO_SLOWLOG = 1 << 13,  /* EXEC: the commands that it runs are logged instead */
    COMMAND_NO_BOARDS = 1 << 14,   /* its reply reveals nothing about the boards: PING */
    COMMAND_RUNS_QUEUE = 1 << 15,  /* EXEC: needs what the queued commands need */
    COMMAND_SECRET_AUTH = 1 << 16, /* HELLO: only the arguments after AUTH are secret */
    COMMAND_PUBSUB = 1 << 17,      /* about channels */
    COMMAND_SUBSCRIBER = 1 << 18,  /* allowed to a subscriber in RESP2 */
    COMMAND_BLOCKING = 1 << 19,    /* may wait */
    COMMAND_SHARD =
        1 << 22, /* told to clients of clusters, which find its channels as they find keys */
    COMMAND_OWN_MEMBER =
        1
        << 23, /* what it writes is of members that it names alone (call_check_own), so that a player may run it; if it
                  * reads, a player sees its shadow (server/commands/ban.h) */
    COMMAND_NAMES = 1 << 21, /* of the boards its reply shows nothing but which keys there are */
    COMMAND_STALE = 1 << 20, /* allowed where reads are refused with MASTERDOWN, as are those
                                    * allowed while boards are loaded */
};

/* Which of its arguments are channels that a user needs a right to. */
enum command_channels {
    COMMAND_CHANNELS_NONE,
    COMMAND_CHANNELS_PUBLISH,   /* the first */
    COMMAND_CHANNELS_SUBSCRIBE, /* all */
    COMMAND_CHANNELS_PATTERNS,  /* all, and they are patterns */
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

/* What of a request a handler's struct gets: names of the entry's syntax bind to its fields, whose
 * types say how words are read (server/dispatch/syntax.h). */
struct option_values {
    const struct bytes *at; /* of the request; NULL: not given */
    uint32_t count;         /* at least 1 */
};
/* Where an option stands, or several that share this: the values are not stored. */
struct option_uses {
    uint32_t first; /* index of the first one's word; syntax_take_use leads to the others */
    uint32_t count; /* 0: not given */
};
enum binding_kind {
    BINDING_NONE,    /* stored by the function alone */
    BINDING_FLAG,    /* a bool: the token is there; of <A | B>: it is B */
    BINDING_INTEGER, /* an int64_t, or as many neighbouring ones as there are words */
    BINDING_TEXT,    /* a struct bytes, likewise */
    BINDING_CHOICE,  /* an enum: of <A | B> 0 or 1, of name=[A | B] 1 or 2, and 0: not given */
    BINDING_VALUES,  /* a struct option_values: what may be repeated */
    BINDING_USES,    /* a struct option_uses: of an option that may come any number of times */
};
enum binding_repeat {
    BINDING_LAST_COUNTS,
    BINDING_ONCE,       /* "ERR syntax error" */
    BINDING_ONCE_NAMED, /* "ERR MATCH may be given once" */
};
/* Called after the words were stored; index is that of the first one. false: the error was replied. */
typedef bool binding_read(const struct call *call, uint32_t index, void *target);
struct binding {
    const char *word; /* a token, or the name of a word or a choice; NULL ends the list */
    enum binding_kind kind;
    enum binding_repeat repeat;
    uint32_t offset;    /* of the field */
    binding_read *read; /* or NULL */
};
#define BIND(name, type, member)                                                                   \
    .word = (name), .offset = offsetof(type, member),                                              \
    .kind = _Generic(((type *)0)->member, bool                                                     \
                     : BINDING_FLAG, int64_t                                                       \
                     : BINDING_INTEGER, struct bytes                                               \
                     : BINDING_TEXT, unsigned                                                      \
                     : BINDING_CHOICE, struct option_values                                        \
                     : BINDING_VALUES, struct option_uses                                          \
                     : BINDING_USES)

typedef void command_run(struct call *call);

/* For a command that waited for this key, which has what it wants: do it, and reply. */
typedef void command_serve(const struct call *call, struct registry_key *key);

/* For prefetching: the key that the request's only member will get on a board with this layout.
 * false: there are several members, the request is malformed, or the key cannot be determined. */
typedef bool command_new_key(const struct command *command, const struct layout *layout,
                             const struct request *request, int64_t now_us, uint64_t *key);

/* The cost of a request (server/dispatch/cost.h). Every command that does more than O(log n) work
 * has one. */
struct cost_view {
    const struct call *call;     /* its reply is silent: errors in the arguments have no cost */
    const struct growth *growth; /* growth of keys within EXEC; or NULL */
};
typedef uint64_t command_work(const struct cost_view *view);
/* How many units a request may have, known without a look at its keys. */
enum command_bound {
    COMMAND_BY_MEMORY,    /* one for each member there is, for each of many arguments */
    COMMAND_BY_ARGUMENTS, /* one for each argument, or pair of arguments: members and fields of DATA */
    COMMAND_BY_RESULTS, /* for each pair of arguments as many as a result may have (cost_of_result) */
    COMMAND_BY_GROUP, /* the same, and codes of all members for each argument, if there are enough for a WHERE */
    COMMAND_BY_PRODUCT,    /* any number: keys times members, or a count that the client names */
    COMMAND_NEVER_REFUSED, /* an operator's order, which must work: not counted alone */
};
struct command_cost {
    enum command_bound bound;
    command_work *count; /* number of units in the request, from the current sizes */
    uint32_t unit_ns; /* measured time of one unit on a board of a million members; 0: nothing, the
                         units only count members that move to another key (RENAME) */
    int grown_key;    /* index of the key whose board may grow by as many members; 0: none */
    const char *unit; /* "member returned" */
    const char
        *instead; /* the non-blocking alternative, as Markdown: "pages of some hundred members" */
};

enum { COMMAND_STEP_OF_VALUES = -1 }; /* member_step */

struct command {
    const char *name;       /* upper case: "ZADD"; for a subcommand its own word: "SETNAME" */
    const char *summary;    /* one sentence, no full stop */
    const char *complexity; /* "O(log n) ..."; NULL: "O(1)" */
    const char *since;      /* first version of leaderboard that has it; NULL: "1.0.0" */
    const char *syntax;     /* its arguments (server/dispatch/syntax.h); NULL: none */
    /* Of options that are read and not shown: what Redis takes without telling; or NULL. */
    const char *hidden_syntax;
    const struct binding *bindings; /* or NULL: the handler reads its words itself */
    const char *reply;              /* its shape (server/dispatch/shape.h); NULL for a container */
    unsigned flags;
    enum audit_class audit; /* AUDIT_NONE: its use is not logged */
    /* What it does with its keys, for each key specification (server/dispatch/syntax.h), '|'
     * between them: "RW access delete|OW update". NULL: what follows from flags and names. */
    const char *key_access;
    const char *key_option; /* whose value is a key, which is read: "SINCE". NULL: there is none */
    enum command_channels channels;
    /* Members are args[member_arg] (negative: from the end) and every member_step-th argument after it (0: only one;
     * COMMAND_STEP_OF_VALUES: the last of many, each behind as many values as the board takes), where no options stand
     * before them. member_arg 0: none.
     * For prefetching, score_arg: index of the score of a single new member (ZADD 2), else 0. new_key: used where
     * score_arg is not enough, or NULL. */
    int member_arg, member_step, score_arg;
    command_new_key *new_key;
    bool reads_hash;                          /* for prefetching, too: the hash of the first key */
    const struct command *const *subcommands; /* NULL-terminated; NULL: none */
    const struct command_cost *cost;          /* NULL: at most O(log n), or incremental */
    command_run *run;                         /* NULL for a container: "CLIENT" */
    command_serve *serve;                     /* of one that may wait */
    const void *variant; /* tells apart commands with the same handler, which knows its type */

    /* Set by command_init. A subcommand's group is its container's. */
    const char *group;
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
    const struct syntax_form *form;   /* how bindings are read; NULL: there are none */
};

/* For subcommands. */
#define COMMAND_LIST(...) ((const struct command *const[]){__VA_ARGS__, NULL})

/* A line of the table of commands. */
struct command_row {
    const char *group; /* "sorted-set", "leaderboard", "generic" ... */
    const struct command *command;
};
/* Sets what follows from an entry's syntax, and checks the entry. */
typedef void command_complete(struct command *command, bool is_subcommand);
/* Copy the table (up to a row without a command) and complete its entries. For execute_init.
 * Everything below takes and returns the complete copies.
 *
 * Commands and subcommands have numbers, used for statistics: 0 .. command_count() - 1. */
void command_init(const struct command_row *table, command_complete *complete);
uint32_t command_count(void);
/* rename-command: clients run the command by another name only, or, with an empty one, not at all.
 * Not for subcommands. Returns NULL, or Redis's error text. Statistics, the audit log and users'
 * rights keep the original name. */
const char *command_set_name(struct bytes name, struct bytes new_name);
uint32_t command_index(const struct command *command);
/* A name's or an option's letters in lower case as two overlapping words: of equal size, they are equal
 * if these are, and one has letters alone. */
enum { COMMAND_NAME_MAX = 16 };
struct command_name_words {
    uint64_t low, high;
};
/* size is 1 .. COMMAND_NAME_MAX. Setting bit 5 folds the case of letters, and conflates other bytes
 * only. */
static inline struct command_name_words command_words_of_name(const char *at, size_t size) {
    const uint64_t fold = 0x2020202020202020U;
    struct command_name_words words;
    uint32_t low, high;
    if (size >= 8) {
        memcpy(&words.low, at, sizeof words.low);
        memcpy(&words.high, at + size - 8, sizeof words.high);
    } else if (size >= 4) {
        memcpy(&low, at, sizeof low);
        memcpy(&high, at + size - 4, sizeof high);
        words = (struct command_name_words){.low = low, .high = high};
    } else {
        words.low = (unsigned char)at[0];
        words.high = (uint64_t)(unsigned char)at[size / 2] << 8 | (unsigned char)at[size - 1];
    }
    words.low |= fold;
    words.high |= fold;
    return words;
}

/* Here only so that this is inline: every request looks up its entry. */
enum { COMMAND_FULL_NAME_MAX = 32 };
/* Aligned, so that finding an entry by its number is a shift. */
struct command_number {
    _Alignas(256) struct command command; /* first: a pointer to it is one to its number */
    char full_name[COMMAND_FULL_NAME_MAX];
    bool is_gone; /* renamed to nothing, or a subcommand of one that is */
};
extern struct command_number command_numbers[];
extern uint32_t command_number_count;
static inline const struct command *command_by_index(uint32_t index) {
    CHECK(index < command_number_count);
    return &command_numbers[index].command;
}
/* Can clients run it? */
static inline bool command_is_reachable(uint32_t index) {
    CHECK(index < command_number_count);
    return !command_numbers[index].is_gone;
}
/* "zadd", "client|setname" (lower case, static storage). */
const char *command_full_name(uint32_t index);
/* The same of the command that a client sent last; "NULL": none. */
const char *command_last_name(const struct session *session);
bool command_is_subcommand(uint32_t index);

/* The command that a request names, or its subcommand if there is one. COMMAND_NONE: not found. */
#define COMMAND_NONE UINT32_MAX
uint32_t command_find_request(const struct request *request);
/* By full name, case-insensitive: "zadd", "config|get". COMMAND_NONE: not found. */
uint32_t command_find_full_name(struct bytes name);
/* The same, whatever it was renamed to: "config|get" is that of its entry. For users' rights, and for
 * what is kept on disk. */
uint32_t command_find_original(struct bytes full_name);
/* By name, case-insensitive. NULL: not found. */
const struct command *command_find(struct bytes name);
/* Also true of a container, which cannot run. */
static inline bool command_has_wrong_arity(const struct command *command,
                                           const struct request *request) {
    return request->count - command->args_min > command->args_more;
}
/* The command's COMMAND_WRITE and COMMAND_DENYOOM flags. EXEC has those of all requests that the
 * session has queued. */
unsigned command_needs(const struct session *session, const struct command *command);

#endif
