/* See redis_score.h. */
#include "server/migration/redis_score.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { TEXT_MAX = 256 }; /* Redis reads no longer ones */
#define EXACT_MAGNITUDE (UINT64_C(1) << 53)

static const double powers[DECIMAL_SCALE_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
                                                     1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
                                                     1e14, 1e15, 1e16, 1e17, 1e18};
_Static_assert((int)DECIMAL_SCALE_MAX <= 22, "10^22 is the largest power of ten that is a double");

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

int redis_compare(struct bytes a, struct bytes b) {
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.at, b.at, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

bool redis_lex_is_from(const struct redis_lex_bound *lower, struct bytes member) {
    if (lower->kind != REDIS_LEX_TEXT) {
        return lower->kind == REDIS_LEX_LOWEST;
    }
    int order = redis_compare(member, lower->text);
    return lower->is_excluded ? order > 0 : order >= 0;
}

bool redis_lex_is_until(const struct redis_lex_bound *upper, struct bytes member) {
    if (upper->kind != REDIS_LEX_TEXT) {
        return upper->kind == REDIS_LEX_HIGHEST;
    }
    int order = redis_compare(member, upper->text);
    return upper->is_excluded ? order < 0 : order <= 0;
}

/* A quotient of two exact doubles is rounded once, as strtod rounds the text. */
double redis_score_of(const struct layout *layout, uint64_t key) {
    const struct layout_field *field = &layout->fields[0];
    struct decimal decimal = layout_field_decimal(field, layout_ordinal(layout, key, 0));
    double score;
    if (decimal.magnitude <= EXACT_MAGNITUDE || field->scale == 0) {
        score = (double)decimal.magnitude / powers[field->scale];
    } else {
        char text[DECIMAL_TEXT_MAX + 1];
        text[decimal_print(text, (struct decimal){.magnitude = decimal.magnitude}, field->scale)] =
            '\0';
        score = strtod(text, NULL);
    }
    return decimal.is_negative ? -score : score;
}
