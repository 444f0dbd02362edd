/* Matching with one point of return: when a byte does not match, only the last star can take one
 * more byte. Taking more with an earlier star cannot help, because the last star may already take
 * whatever the earlier one would have left to it.
 *
 * As Redis reads it: a range works in either direction; a class that is not closed ends with the
 * pattern; a backslash that ends the pattern is itself. */
#include "codec/glob.h"

/* Does byte belong to the class whose '[' is at index? *next is then the index behind it. */
static bool class_matches(struct bytes pattern, size_t index, unsigned char byte, size_t *next) {
    const unsigned char *at = (const unsigned char *)pattern.at;
    size_t i = index + 1;
    bool is_negated = i < pattern.size && at[i] == '^';
    if (is_negated) {
        i++;
    }
    bool is_member = false;
    while (i < pattern.size && at[i] != ']') {
        size_t left = pattern.size - i;
        if (at[i] == '\\' && left >= 2) {
            is_member |= at[i + 1] == byte;
            i += 2;
        } else if (left >= 3 && at[i + 1] == '-') {
            unsigned char low = at[i] < at[i + 2] ? at[i] : at[i + 2];
            unsigned char high = at[i] < at[i + 2] ? at[i + 2] : at[i];
            is_member |= low <= byte && byte <= high;
            i += 3;
        } else {
            is_member |= at[i] == byte;
            i++;
        }
    }
    *next = i < pattern.size ? i + 1 : i;
    return is_member != is_negated;
}

/* Does byte match the element at index, which is no star? *next is then the index behind it. */
static bool element_matches(struct bytes pattern, size_t index, char byte, size_t *next) {
    char first = pattern.at[index];
    *next = index + 1;
    if (first == '?') {
        return true;
    }
    if (first == '[') {
        return class_matches(pattern, index, (unsigned char)byte, next);
    }
    if (first == '\\' && index + 1 < pattern.size) {
        *next = index + 2;
        return pattern.at[index + 1] == byte;
    }
    return first == byte;
}

bool glob_matches(struct bytes pattern, struct bytes text) {
    size_t pattern_index = 0;
    size_t text_index = 0;
    bool has_star = false;
    size_t after_star = 0;
    size_t star_end = 0; /* where in text the last star's bytes end */
    while (text_index < text.size) {
        if (pattern_index < pattern.size && pattern.at[pattern_index] == '*') {
            has_star = true;
            after_star = ++pattern_index;
            star_end = text_index;
            continue;
        }
        size_t next;
        if (pattern_index < pattern.size &&
            element_matches(pattern, pattern_index, text.at[text_index], &next)) {
            pattern_index = next;
            text_index++;
            continue;
        }
        if (!has_star) {
            return false;
        }
        pattern_index = after_star;
        text_index = ++star_end;
    }
    while (pattern_index < pattern.size && pattern.at[pattern_index] == '*') {
        pattern_index++;
    }
    return pattern_index == pattern.size;
}
