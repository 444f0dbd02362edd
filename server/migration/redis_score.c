/* See redis_score.h. */
#include "server/migration/redis_score.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { TEXT_MAX = 256 }; /* Redis reads no longer ones */

bool redis_score_parse(struct bytes text, double *score) {
    char copy[TEXT_MAX];
    if (text.size == 0 || text.size >= sizeof copy || isspace((unsigned char)text.at[0])) {
        return false;
    }
    memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    char *end;
    double value = strtod(copy, &end);
    if (end != copy + text.size || isnan(value)) {
        return false;
    }
    *score = value;
    return true;
}

bool redis_score_parse_bound(struct bytes text, struct redis_score_bound *bound) {
    bound->is_excluded = text.size > 0 && text.at[0] == '(';
    if (bound->is_excluded) {
        text.at++;
        text.size--;
    }
    return redis_score_parse(text, &bound->score);
}

bool redis_lex_parse_bound(struct bytes text, struct redis_lex_bound *bound) {
    *bound = (struct redis_lex_bound){.kind = REDIS_LEX_TEXT};
    if (text.size == 1 && (text.at[0] == '-' || text.at[0] == '+')) {
        bound->kind = text.at[0] == '-' ? REDIS_LEX_LOWEST : REDIS_LEX_HIGHEST;
        return true;
    }
    if (text.size == 0 || (text.at[0] != '(' && text.at[0] != '[')) {
        return false;
    }
    bound->is_excluded = text.at[0] == '(';
    bound->text = (struct bytes){.at = text.at + 1, .size = text.size - 1};
    return true;
}

bool redis_lex_is_from(const struct redis_lex_bound *lower, struct bytes member) {
    if (lower->kind != REDIS_LEX_TEXT) {
        return lower->kind == REDIS_LEX_LOWEST;
    }
    int order = bytes_compare(member, lower->text);
    return lower->is_excluded ? order > 0 : order >= 0;
}

bool redis_lex_is_until(const struct redis_lex_bound *upper, struct bytes member) {
    if (upper->kind != REDIS_LEX_TEXT) {
        return upper->kind == REDIS_LEX_HIGHEST;
    }
    int order = bytes_compare(member, upper->text);
    return upper->is_excluded ? order < 0 : order <= 0;
}
