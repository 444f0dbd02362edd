/* Reads a request's options into the handler's struct, by a table beside the entry:
 *
 *     [REV] offset_count=[LIMIT offset:integer count:integer]       the entry's syntax
 *
 *     {"REV", OPTION_FLAG, offsetof(struct range, is_reverse)},
 *     {"LIMIT", OPTION_INTEGERS, offsetof(struct range, offset)},
 *
 * execute_init checks that the table has the options of the syntax with as many values of the same
 * types, so neither can have one that the other lacks. Options may come in any order and more than
 * once: the last one counts, except of OPTION_TEXT_ONCE; of OPTION_EACH and OPTION_EACH_PAIR all count. */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include <stddef.h>

#include "server/dispatch/call.h"

/* Read all arguments from index on. false: the error was replied, "ERR syntax error" if one is not
 * an option or lacks its values. */
MUST_CHECK bool options_read(const struct call *call, uint32_t index, void *target);
/* The same, up to the first argument that is not an option or lacks its values: *index. */
MUST_CHECK bool options_read_to(const struct call *call, uint32_t *index, void *target);

/* Is the argument the word of an option? */
bool options_has_word(const struct call *call, uint32_t index);
/* The index behind the option whose word is at index, once options_read has read it. */
uint32_t options_next(const struct call *call, uint32_t index);

/* Where the value of an option is, whose one value it is, among those from index on, as options_read will
 * read it; 0: it is not given. */
uint32_t options_find(const struct command *command, const struct request *request, uint32_t index,
                      const char *word);

/* For execute_init. */
void options_check(const struct command *command);

#endif
