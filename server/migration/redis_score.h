/* Scores as Redis has them, doubles, and what a board has of them: the ordinals of its first field.
 *
 * A score comes as the shortest decimal that is its double (server/rdb/rdb_value.h), so both directions
 * are exact: redis_score_of gives the very double that was put. */
#ifndef SERVER_REDIS_SCORE_H
#define SERVER_REDIS_SCORE_H

#include "codec/layout.h"

/* As Redis reads a score: strtod of the whole text, no blanks in front, not nan. */
MUST_CHECK bool redis_score_parse(struct bytes text, double *score);

/* "5", "(5", "-inf": an end of a range of scores. */
struct redis_score_bound {
    double score;
    bool is_excluded;
};
MUST_CHECK bool redis_score_parse_bound(struct bytes text, struct redis_score_bound *bound);

/* "[text", "(text", "-", "+": an end of a range of members. */
struct redis_lex_bound {
    struct bytes text;
    enum { REDIS_LEX_LOWEST, REDIS_LEX_HIGHEST, REDIS_LEX_TEXT } kind;
    bool is_excluded;
};
MUST_CHECK bool redis_lex_parse_bound(struct bytes text, struct redis_lex_bound *bound);
/* Is the member not below the lower bound, not above the upper one? */
bool redis_lex_is_from(const struct redis_lex_bound *lower, struct bytes member);
bool redis_lex_is_until(const struct redis_lex_bound *upper, struct bytes member);

#endif
