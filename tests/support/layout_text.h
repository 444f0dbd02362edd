/* Layouts from text, and whole keys from and to ordinals, as tests write them. */
#ifndef TESTS_SUPPORT_LAYOUT_TEXT_H
#define TESTS_SUPPORT_LAYOUT_TEXT_H

#include <stdio.h>

#include "codec/layout.h"

enum { WORDS_MAX = 512 }; /* more than 64 fields with all options and a TIME need */

static inline bool layout_is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

static inline enum layout_status layout_parse(struct bytes text, struct layout *layout,
                                              char *error) {
    struct bytes words[WORDS_MAX];
    size_t word_count = 0;
    size_t i = 0;
    for (;;) {
        while (i < text.size && layout_is_blank(text.at[i])) {
            i++;
        }
        if (i == text.size) {
            return layout_parse_words(words, word_count, layout, error);
        }
        if (word_count == WORDS_MAX) {
            snprintf(error, LAYOUT_ERROR_MAX, "a layout has at most %d words", WORDS_MAX);
            return LAYOUT_BAD_TEXT;
        }
        size_t begin = i;
        while (i < text.size && !layout_is_blank(text.at[i])) {
            i++;
        }
        words[word_count++] = (struct bytes){.at = text.at + begin, .size = i - begin};
    }
}

/* Pack ordinals[0 .. field_count-1] and a time (ignored without TIME) into *key. On an error *key
 * is left unchanged. */
static inline enum layout_status layout_pack(const struct layout *layout, const uint64_t *ordinals,
                                             int64_t time_us, uint64_t *key) {
    uint64_t packed = 0;
    for (unsigned i = 0; i < layout->field_count; i++) {
        if (ordinals[i] > layout->fields[i].mask) {
            return LAYOUT_VALUE_OUT_OF_RANGE;
        }
        packed = layout_with_ordinal(layout, packed, i, ordinals[i]);
    }
    return layout_stamp(layout, packed, time_us, key);
}

/* The inverse; the time is 0 without TIME. */
static inline void layout_unpack(const struct layout *layout, uint64_t key, uint64_t *ordinals,
                                 int64_t *time_us) {
    for (unsigned i = 0; i < layout->field_count; i++) {
        ordinals[i] = layout_ordinal(layout, key, i);
    }
    if (!layout_time_us(layout, key, time_us)) {
        *time_us = 0;
    }
}

#endif
