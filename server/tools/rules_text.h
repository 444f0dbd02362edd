/* A board's layout and options as one text, from which they are read back exactly.
 *
 *     FIELD score 33 SIGNED TIME 31 S CAP 100 KEEP BEST CREATED
 *
 * The words are those of LB.CREATE. Behind them: CREATED, for a board that LB.CREATE has made, and
 * STARTED and ENDS with unix milliseconds, for the current period of one with a PERIOD; before them LEAGUE,
 * its room, tiers, up, down and 1 if IDLE DOWN, else 0, and, for an archive, SETTLED or UNSETTLED, ENDED with
 * unix milliseconds, and EXPIRES with those of its expiry when it is settled. With a WINDOW: COUNTS with the
 * start of the first period that counts, LEFT with the members of it that have left, and ANEW; of the board of
 * one of its periods: SHARE with the period's start. */
#ifndef SERVER_RULES_TEXT_H
#define SERVER_RULES_TEXT_H

#include "skiplist/keyspace/rules.h"

enum { RULES_TEXT_MAX = LAYOUT_TEXT_MAX + 512, RULES_TEXT_ERROR_MAX = 1024 };

/* out: RULES_TEXT_MAX; returns the size. */
size_t rules_text_print(const struct rules *rules, char *out);
/* false: error (RULES_TEXT_ERROR_MAX) says what is wrong. */
MUST_CHECK bool rules_text_parse(struct bytes text, struct rules *rules, char *error);

#endif
