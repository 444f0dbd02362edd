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
 * The arity, the positions of the keys, COMMAND DOCS and docs/commands.md all follow from it. The
 * text is parsed once, by execute_init; a mistake in it stops the program there. */
#ifndef SERVER_SYNTAX_H
#define SERVER_SYNTAX_H

#include "server/dispatch/command.h"

/* Forget all arguments parsed so far, before the entries are parsed (again). */
void syntax_reset(void);
/* Parse command->syntax into its arguments, and set its arity, if the entry has none, and the
 * positions of its keys. */
void syntax_apply(struct command *command, bool is_subcommand);
/* "key score member [score member ...]", as in Redis's manual. out has size bytes, terminator
 * included. Returns the length. */
size_t syntax_print(const struct command *command, char *out, size_t size);
/* "integer", "pure-token". */
const char *syntax_type_name(enum argument_type type);

#endif
