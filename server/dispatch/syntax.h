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

/* The index of the first value of an option in a request that may be wrong; 0: it is not there. */
uint32_t syntax_find(const struct command *command, const struct request *request,
                     const char *word);
/* Where the argument is, in a request that may be wrong, that is at this index where no options stand before it. */
uint32_t syntax_behind_options(const struct command *command, const struct request *request,
                               uint32_t index);
/* Where the options begin at the earliest. */
uint32_t syntax_options_at(const struct command *command);

#endif
