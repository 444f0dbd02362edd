/* Terms as text. See term.h. */
#include "server/replication/term.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int term_compare(const struct term *a, const struct term *b) {
    return memcmp(a->text, b->text, TERM_SIZE);
}

int term_position_compare(const struct term_position *a, const struct term_position *b) {
    int by_term = term_compare(&a->term, &b->term);
    return by_term != 0 ? by_term : (a->group > b->group) - (a->group < b->group);
}

/* The digits are valid: term_parse and term_next see to it. */
static uint64_t term_read_digits(const char *at, int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; i++) {
        value = value << 4 | (uint64_t)bytes_hex_value(at[i]);
    }
    return value;
}

uint64_t term_counter(const struct term *term) {
    return term_read_digits(term->text, TERM_COUNTER_SIZE);
}

bool term_next(const struct term *highest, uint64_t node, uint64_t random, struct term *next) {
    uint64_t counter = term_counter(highest);
    if (counter == TERM_COUNTER_MAX) {
        return false;
    }
    random &= (UINT64_C(1) << (4 * TERM_RANDOM_SIZE)) - 1;
    snprintf(next->text, sizeof next->text, "%012" PRIx64 "%016" PRIx64 "%012" PRIx64, counter + 1,
             node, random);
    return true;
}

static bool term_is_hex(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        char digit = text.at[i];
        if ((digit < '0' || digit > '9') && (digit < 'a' || digit > 'f')) {
            return false;
        }
    }
    return true;
}

bool term_parse_node(struct bytes text, uint64_t *node) {
    if (text.size != TERM_NODE_SIZE || !term_is_hex(text)) {
        return false;
    }
    *node = term_read_digits(text.at, TERM_NODE_SIZE);
    return true;
}

bool term_parse(struct bytes text, struct term *term) {
    if (text.size != TERM_SIZE || !term_is_hex(text)) {
        return false;
    }
    memcpy(term->text, text.at, TERM_SIZE);
    term->text[TERM_SIZE] = '\0';
    return true;
}
