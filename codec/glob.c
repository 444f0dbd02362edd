/* A pattern becomes an automaton with one state per element; a state is one bit:
 *
 *     a*[0-9]?     elements: a, [0-9], ?     a star after the first
 *
 * Bit i is set while elements 0 .. i can match all of the text so far. The next byte shifts every
 * bit by one if the next element matches that byte; a bit whose element is followed by a star also
 * stays. So all possible matches are tracked at once, 64 states per operation (shift-and:
 * Baeza-Yates and Gonnet, "A new approach to text searching", 1992). Consecutive stars count as
 * one.
 *
 * As in Redis: the ends of a range may be in either order; an unclosed class ends with the pattern;
 * a trailing backslash is literal. */
#include "codec/glob.h"

#include "codec/check.h"

/* ---- reading a pattern ---- */

/* Set whether the last element of the pattern matches the bytes low .. high. */
static void glob_set_range(struct glob *glob, unsigned low, unsigned high, bool is_taken) {
    uint32_t element = glob->size_min - 1;
    uint64_t bit = UINT64_C(1) << (element % 64);
    for (unsigned byte = low; byte <= high; byte++) {
        uint64_t *word = &glob->takes[byte * glob->word_count + element / 64];
        *word = is_taken ? *word | bit : *word & ~bit;
    }
}

/* Parse the class whose '[' is before at; returns the index behind it. */
static size_t glob_read_class(struct glob *glob, struct bytes pattern, size_t at) {
    const unsigned char *bytes = (const unsigned char *)pattern.at;
    bool is_negated = at < pattern.size && bytes[at] == '^';
    at += is_negated;
    if (is_negated) {
        glob_set_range(glob, 0, 255, true);
    }
    for (; at < pattern.size && bytes[at] != ']'; at++) {
        size_t left = pattern.size - at;
        unsigned low = bytes[at];
        unsigned high = low;
        if (low == '\\' && left >= 2) {
            low = high = bytes[++at];
        } else if (left >= 3 && bytes[at + 1] == '-') {
            high = bytes[at += 2];
        }
        glob_set_range(glob, low < high ? low : high, low < high ? high : low, !is_negated);
    }
    return at < pattern.size ? at + 1 : at;
}

bool glob_prepare(struct glob *glob, struct bytes pattern) {
    if (pattern.size > GLOB_PATTERN_MAX) {
        return false;
    }
    glob->size_min = 0;
    glob->word_count = (uint32_t)(pattern.size + 63) / 64;
    glob->has_star = false;
    glob->begins_with_star = false;
    memset(glob->stars, 0, glob->word_count * sizeof glob->stars[0]);
    memset(glob->takes, 0, 256 * glob->word_count * sizeof glob->takes[0]);
    for (size_t at = 0; at < pattern.size;) {
        unsigned char byte = (unsigned char)pattern.at[at++];
        if (byte == '*') {
            glob->has_star = true;
            if (glob->size_min == 0) {
                glob->begins_with_star = true;
            } else {
                uint32_t element = glob->size_min - 1;
                glob->stars[element / 64] |= UINT64_C(1) << (element % 64);
            }
            continue;
        }
        glob->size_min++;
        if (byte == '[') {
            at = glob_read_class(glob, pattern, at);
        } else if (byte == '?') {
            glob_set_range(glob, 0, 255, true);
        } else {
            if (byte == '\\' && at < pattern.size) {
                byte = (unsigned char)pattern.at[at++];
            }
            glob_set_range(glob, byte, byte, true);
        }
    }
    return true;
}

bool glob_prepare_lower(struct glob *glob, struct bytes pattern) {
    char lower[GLOB_PATTERN_MAX];
    if (pattern.size > GLOB_PATTERN_MAX) {
        return false;
    }
    for (size_t i = 0; i < pattern.size; i++) {
        lower[i] = bytes_lower(pattern.at[i]);
    }
    return glob_prepare(glob, (struct bytes){.at = lower, .size = pattern.size});
}

/* ---- matching ---- */

/* Advance the states by one byte. carry: the bit that enters at the first element. Returns whether
 * any bit is left. */
static inline bool glob_step(const struct glob *glob, uint64_t *states, unsigned char byte,
                             uint64_t carry) {
    const uint64_t *takes = &glob->takes[byte * glob->word_count];
    uint64_t any = 0;
    for (uint32_t i = 0; i < glob->word_count; i++) {
        uint64_t state = states[i];
        states[i] = ((state << 1 | carry) & takes[i]) | (state & glob->stars[i]);
        carry = state >> 63;
        any |= states[i];
    }
    return any != 0;
}

bool glob_takes(const struct glob *glob, struct bytes text) {
    uint64_t states[GLOB_WORDS_MAX];
    if (text.size < glob->size_min || (!glob->has_star && text.size > glob->size_min)) {
        return false;
    }
    if (glob->size_min == 0) {
        return true; /* the pattern is empty or only stars */
    }
    uint32_t word = (glob->size_min - 1) / 64;
    uint64_t last = UINT64_C(1) << ((glob->size_min - 1) % 64);
    uint64_t last_star = glob->stars[word] & last;
    memset(states, 0, glob->word_count * sizeof states[0]);
    for (size_t i = 0; i < text.size; i++) {
        bool enters = i == 0 || glob->begins_with_star;
        if (!glob_step(glob, states, (unsigned char)text.at[i], enters) &&
            !glob->begins_with_star) {
            return false;
        }
        if ((states[word] & last_star) != 0) {
            return true; /* a trailing star matches the rest */
        }
    }
    return (states[word] & last) != 0;
}

size_t glob_plain_size(struct bytes pattern) {
    size_t size = 0;
    while (size < pattern.size && memchr("*?[\\", pattern.at[size], 4) == NULL) {
        size++;
    }
    return size;
}

bool glob_matches(struct bytes pattern, struct bytes text) {
    struct glob glob;
    bool is_read = glob_prepare(&glob, pattern);
    CHECK(is_read);
    return glob_takes(&glob, text);
}
