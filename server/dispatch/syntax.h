/* The arguments of a command, from one line of text in its entry:
 *
 *     key condition=[NX | XX] offset_count=[LIMIT offset:integer count:integer] member...
 *
 *     word           an argument, a string unless its name is that of a type (key, pattern)
 *     word:type      an argument of this type: string, integer, double, key, pattern, unix-time
 *     TOKEN          a literal word. Other arguments after it in the same brackets are its values
 *     [...]          optional
 *     <... | ...>    one of several; [... | ...]: at most one of several
 *     (...)          a group
 *     ...            after a word or brackets: once or more
 *     name=          before any of these: its name in COMMAND DOCS. Without it a word has its own
 *                    name, and a token or what follows one the token's, in lower case
 *
 * The arity, the positions of the keys, COMMAND DOCS and docs/reference/commands.md all follow from it, and it
 * reads requests: its names bind to fields of the handler's struct, and the rest follows from the text
 * and from the field's type.
 *
 *     {BIND("start", struct range, start)},           a word by its place, as every name of a word
 *     {BIND("REV", struct range, is_reverse)},        a bool: the token is there
 *     {BIND("LIMIT", struct range, offset)},          two integers
 *     {BIND("condition", struct range, condition)},   an enum: 1 NX, 2 XX, 0 neither; both are an error
 *
 * First come the words that stand by their places, then the options in any order. Of an option that is
 * given more than once the last counts, unless its binding says otherwise. An option whose token and
 * choice are both not bound, and a mistake in the text, stop the program in execute_init, which parses
 * each text once. */
#ifndef SERVER_SYNTAX_H
#define SERVER_SYNTAX_H

#include "server/dispatch/call.h"
#include "server/dispatch/command.h"

/* Forget all arguments parsed so far, before the entries are parsed (again). */
void syntax_reset(void);
/* Parse command->syntax into its arguments, and set its arity, if the entry has none, the positions
 * of its keys, and how its bindings are read. */
void syntax_apply(struct command *command, bool is_subcommand);
/* "key score member [score member ...]", as in Redis's manual. out has size bytes, terminator
 * included. Returns the length. */
size_t syntax_print(const struct command *command, char *out, size_t size);
/* The same in few words, for an error: "key start stop [LIMIT offset count] ...". Of what may be left out it has only
 * that one (at whatever depth), which may be NULL. */
size_t syntax_print_short(const struct command *command, const struct argument *shown, char *out,
                          size_t size);
/* "integer", "pure-token". */
const char *syntax_type_name(enum argument_type type);

/* Read a request into the handler's struct. false: the error was replied, "ERR syntax error" if a word
 * is not in the syntax, or some are missing. */
MUST_CHECK bool syntax_read(const struct call *call, void *target);
/* Read the options from *index on, up to the first word that is none or lacks its values. */
MUST_CHECK bool syntax_read_options(const struct call *call, uint32_t *index, void *target);
/* Is it the token of an option? */
bool syntax_is_option(const struct call *call, uint32_t index);
/* Take the first of the uses, in a request that was read: *index is that of its token. Returns the token;
 * NULL: there was none left. */
const char *syntax_take_use(const struct call *call, struct option_uses *uses, uint32_t *index);

/* Where the argument is, in a request that may be wrong, that is at this index where no options stand before it. */
uint32_t syntax_behind_options(const struct command *command, const struct request *request,
                               uint32_t index);
/* Where the options begin at the earliest. */
uint32_t syntax_options_at(const struct command *command);

/* ---- keys ----
 *
 * Where the keys of a command are, and what it does with them: Redis's key specifications. They follow from an entry's
 * syntax, and from its key_access where its flags do not say enough. */

enum key_flag {
    KEY_READ_ONLY = 1 << 0, /* RO: the value is not changed */
    KEY_CHANGED = 1 << 1,   /* RW: it may be */
    KEY_REPLACED = 1 << 2,  /* OW: whatever it was */
    KEY_REMOVED = 1 << 3,   /* RM */
    KEY_ACCESS = 1 << 4,    /* what is in it is shown or copied */
    KEY_UPDATE = 1 << 5,
    KEY_INSERT = 1 << 6, /* adds, and never removes or replaces */
    KEY_DELETE = 1 << 7,
    KEY_NONE = 1 << 8,       /* not_key: it is only found like one */
    KEY_INCOMPLETE = 1 << 9, /* what follows its word need not be a key: COMMAND GETKEYS tells */
};

/* A group of keys that are found in the same way. */
struct key_spec {
    const char
        *word; /* the value of this option of the command, begin being where it may stand at first;
                         NULL: not one of an option */
    bool is_counted;       /* the argument at begin is the number of keys after it */
    int begin, last, step; /* otherwise up to last, relative to begin; negative: from the end */
    const char *name;      /* of the argument; NULL: not documented */
    unsigned flags;        /* enum key_flag */
};
enum { KEY_SPECS_MAX = 4 }; /* COPY has two: source and destination */

/* Set what the functions below return. Call after command_init. */
void syntax_key_init(void);
/* Returns the number of a command's specifications. */
uint32_t syntax_key_of(uint32_t command, const struct key_spec **specs);
/* What a user needs for such keys: ACL_READ, ACL_WRITE, both or neither. */
unsigned syntax_key_needs(unsigned flags);
/* The flags' names as Redis has them: "RW", "access". NULL: nothing has this bit. */
const char *syntax_key_flag_name(unsigned flag);

/* The positions of a specification's keys in a request: next, then one after another, while it is
 * below end. end is 0 if the arguments do not fit; an option that is not given has no keys. */
struct key_walk {
    uint32_t next, end, step;
};
struct key_walk syntax_key_walk(const struct command *command, const struct key_spec *spec,
                                const struct request *request);
/* All keys of a request that has the right number of arguments, specification after specification; one that does not
 * fit has none. */
struct request_keys {
    const struct command *command;
    const struct request *request;
    const struct key_spec *spec, *end; /* spec: of the key that was returned last */
    struct key_walk walk;
};
struct request_keys syntax_key_request_begin(uint32_t command, const struct request *request);
/* The position of the next key; 0: there is no more. */
uint32_t syntax_key_request_next(struct request_keys *keys);
/* Where the key is that the value of the command's key_option is, in a request that may be wrong; 0: none. */
uint32_t syntax_key_option(const struct command *command, const struct request *request);
/* The positions of all the request's keys, fewer than its arguments. Returns their number, or -1 if
 * the arguments do not fit the command. */
int syntax_key_positions(const struct command *command, const struct request *request,
                         uint32_t *positions);

#endif
