/* A board's layout and options as one text, from which they are read back exactly.
 *
 *     FIELD score 33 SIGNED TIME 31 S CAP 100 KEEP BEST CREATED
 *
 * The words are those of LB.CREATE, and those of rows that are states (skiplist/keyspace/board_options.h), in any
 * order behind the layout: CREATED, STARTED and ENDS with unix milliseconds, and so on. */
#ifndef SERVER_RULES_TEXT_H
#define SERVER_RULES_TEXT_H

#include "server/settings/setting.h"

enum { RULES_TEXT_MAX = LAYOUT_TEXT_MAX + SETTING_RULES_TEXT_MAX, RULES_TEXT_ERROR_MAX = 1024 };

/* out: RULES_TEXT_MAX; returns the size. */
size_t rules_text_print(const struct rules *rules, const struct board_state *state, char *out);
/* false: error (RULES_TEXT_ERROR_MAX) says what is wrong. */
MUST_CHECK bool rules_text_parse(struct bytes text, struct rules *rules, struct board_state *state,
                                 char *error);

#endif
