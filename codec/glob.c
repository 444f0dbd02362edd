/* A pattern is a chain of segments with stars between them:
 *
 *     week:*[0-9]?:*       segments: week: , [0-9]?: , nothing
 *
 * The first segment stands where the text begins, the last where it ends, and each one between
 * them at the first place behind the one before: standing earlier leaves more to those that
 * follow. A segment takes a fixed count of bytes, so the bytes left for all stars together are
 * known from the start: a segment is looked for no farther than that.
 *
 * As Redis reads it: a range works in either direction; a class that is not closed ends with the
 * pattern; a backslash that ends the pattern is itself. */
#include "codec/glob.h"

enum {
    SHORT_SIZE = 16, /* pattern bytes of a segment that is just tried everywhere */
    LANES = 4,       /* words of 64 elements that are looked for at once */
    CHUNK = LANES * 64,
    WINDOW_FIRST = 512, /* places; small, because most segments are found soon */
    WINDOW_MAX = 65536,
};

/* ---- Reading patterns ---- */

/* The next range of the class that *index is in. false: the class has ended, and *index is behind
 * it. */
static bool next_range(struct bytes pattern, size_t *index, unsigned *low, unsigned *high) {
    const unsigned char *at = (const unsigned char *)pattern.at;
    size_t i = *index;
    if (i >= pattern.size || at[i] == ']') {
        *index = i < pattern.size ? i + 1 : i;
        return false;
    }
    size_t left = pattern.size - i;
    unsigned first = at[i];
    unsigned last = first;
    if (first == '\\' && left >= 2) {
        first = last = at[i + 1];
        i += 2;
    } else if (left >= 3 && at[i + 1] == '-') {
        last = at[i + 2];
        i += 3;
    } else {
        i++;
    }
    *low = first < last ? first : last;
    *high = first < last ? last : first;
    *index = i;
    return true;
}

/* Step from a class's '[' to its first range. true: it names the bytes that it does not take. */
static bool enter_class(struct bytes pattern, size_t *index) {
    size_t i = *index + 1;
    bool is_negated = i < pattern.size && pattern.at[i] == '^';
    *index = is_negated ? i + 1 : i;
    return is_negated;
}

static bool class_takes(struct bytes pattern, size_t *index, char byte) {
    bool is_negated = enter_class(pattern, index);
    bool is_member = false;
    unsigned low;
    unsigned high;
    while (next_range(pattern, index, &low, &high)) {
        is_member |= low <= (unsigned char)byte && (unsigned char)byte <= high;
    }
    return is_member != is_negated;
}

/* The byte that a plain element stands for. */
static char next_plain(struct bytes pattern, size_t *index) {
    if (pattern.at[*index] == '\\' && *index + 1 < pattern.size) {
        (*index)++;
    }
    return pattern.at[(*index)++];
}

/* Does the element at *index, which is no star, take this byte? *index is then behind it. */
static bool element_takes(struct bytes pattern, size_t *index, char byte) {
    switch (pattern.at[*index]) {
    case '?':
        (*index)++;
        return true;
    case '[':
        return class_takes(pattern, index, byte);
    default:
        return next_plain(pattern, index) == byte;
    }
}

static void skip_element(struct bytes pattern, size_t *index) {
    if (pattern.at[*index] != '[') {
        (void)next_plain(pattern, index);
        return;
    }
    unsigned low;
    unsigned high;
    (void)enter_class(pattern, index);
    while (next_range(pattern, index, &low, &high)) {}
}

/* What stands between two stars. */
struct segment {
    struct bytes pattern;
    size_t size;     /* bytes of text that it takes, one for each of its elements */
    bool is_literal; /* the pattern's bytes are the text's */
};

/* The segment at *index, which is then at the star behind it or at the pattern's end. */
static struct segment next_segment(struct bytes pattern, size_t *index) {
    struct segment segment = {.is_literal = true};
    size_t begin = *index;
    while (*index < pattern.size && pattern.at[*index] != '*') {
        char first = pattern.at[*index];
        segment.is_literal &= first != '?' && first != '[' && first != '\\';
        skip_element(pattern, index);
        segment.size++;
    }
    segment.pattern = pattern;
    if (*index > begin) {
        segment.pattern.at += begin;
    }
    segment.pattern.size = *index - begin;
    return segment;
}

/* ---- Finding a segment that is long and no literal ----
 *
 * All places of a window are tried together. A bit of alive for each place says that the elements
 * so far match there. The next CHUNK elements are then looked for by shift-and (Baeza-Yates and
 * Gonnet, "A new approach to text searching", 1992): bit i of the lanes says that elements 0 .. i
 * match the bytes that end here. A chunk that is not full has elements in front that take every
 * byte, so that the top bit always is the whole chunk's. */

struct window {
    uint64_t alive[WINDOW_MAX / 64];
    uint64_t masks[LANES][256]; /* by byte: the elements that take it */
};

static void mask_element(struct bytes pattern, size_t *index, uint64_t *masks, uint64_t bit) {
    char first = pattern.at[*index];
    if (first != '?' && first != '[') {
        masks[(unsigned char)next_plain(pattern, index)] |= bit;
        return;
    }
    unsigned low = 0;
    unsigned high = 0;
    bool is_negated = false;
    if (first == '[') {
        is_negated = enter_class(pattern, index);
    } else {
        (*index)++;
    }
    if (first == '?' || is_negated) {
        for (unsigned byte = 0; byte < 256; byte++) {
            masks[byte] |= bit;
        }
    }
    while (first == '[' && next_range(pattern, index, &low, &high)) {
        for (unsigned byte = low; byte <= high; byte++) {
            masks[byte] = is_negated ? masks[byte] & ~bit : masks[byte] | bit;
        }
    }
}

/* Masks of the next count elements, 1 .. CHUNK. */
static void mask_chunk(struct window *window, struct bytes pattern, size_t *index, size_t count) {
    size_t free_count = CHUNK - count;
    for (size_t lane = 0; lane < LANES; lane++) {
        size_t lane_free = free_count > lane * 64 ? free_count - lane * 64 : 0;
        uint64_t mask = lane_free >= 64 ? UINT64_MAX : (UINT64_C(1) << lane_free) - 1;
        for (unsigned byte = 0; byte < 256; byte++) {
            window->masks[lane][byte] = mask;
        }
    }
    for (size_t i = free_count; i < CHUNK; i++) {
        mask_element(pattern, index, window->masks[i / 64], UINT64_C(1) << (i % 64));
    }
}

/* Keep the places alive where the chunk of count elements stands as well; text is where the first
 * place has it. Returns whether one is left. The lanes are no array, so that they stay in
 * registers. */
static bool keep_places(struct window *window, const char *text, size_t count, size_t place_count) {
    uint64_t a = UINT64_MAX;
    uint64_t b = UINT64_MAX;
    uint64_t c = UINT64_MAX;
    uint64_t d = UINT64_MAX;
    uint64_t any = 0;
    uint64_t hits = 0;
    size_t lead = count - 1; /* bytes before the first place's chunk is whole */
    for (size_t i = 0; i < lead + place_count; i++) {
        unsigned char byte = (unsigned char)text[i];
        d = (d << 1 | c >> 63) & window->masks[3][byte];
        c = (c << 1 | b >> 63) & window->masks[2][byte];
        b = (b << 1 | a >> 63) & window->masks[1][byte];
        a = (a << 1 | 1) & window->masks[0][byte];
        if (i < lead) {
            continue;
        }
        size_t place = i - lead;
        hits |= (d >> 63) << (place % 64);
        if (place % 64 == 63 || place == place_count - 1) {
            any |= window->alive[place / 64] &= hits;
            hits = 0;
        }
    }
    return any != 0;
}

/* The first of place_count places of the text where the segment stands, or place_count. */
static size_t find_in_window(const struct segment *segment, const char *text, size_t place_count) {
    struct window window;
    size_t word_count = (place_count + 63) / 64;
    size_t index = 0;
    memset(window.alive, 0xff, word_count * sizeof window.alive[0]);
    for (size_t done = 0; done < segment->size; done += CHUNK) {
        size_t left = segment->size - done;
        size_t count = left < CHUNK ? left : CHUNK;
        mask_chunk(&window, segment->pattern, &index, count);
        if (!keep_places(&window, text + done, count, place_count)) {
            return place_count;
        }
    }
    size_t place = 0;
    while ((window.alive[place / 64] >> (place % 64) & 1) == 0) {
        place++;
    }
    return place;
}

static size_t find_long(const struct segment *segment, const char *text, size_t place_count) {
    size_t begin = 0;
    size_t window_size = WINDOW_FIRST;
    while (begin < place_count) {
        size_t left = place_count - begin;
        size_t count = left < window_size ? left : window_size;
        size_t place = find_in_window(segment, text + begin, count);
        if (place < count) {
            return begin + place;
        }
        begin += count;
        window_size = WINDOW_MAX;
    }
    return place_count;
}

/* ---- Matching ---- */

static bool stands_at(const struct segment *segment, const char *text) {
    if (segment->is_literal) {
        return segment->size == 0 || memcmp(segment->pattern.at, text, segment->size) == 0;
    }
    size_t index = 0;
    for (size_t i = 0; i < segment->size; i++) {
        if (!element_takes(segment->pattern, &index, text[i])) {
            return false;
        }
    }
    return true;
}

/* The first of place_count places of the text where the segment stands, or place_count. */
static size_t find_segment(const struct segment *segment, const char *text, size_t place_count) {
    if (segment->is_literal) {
        const char *found =
            memmem(text, place_count - 1 + segment->size, segment->pattern.at, segment->size);
        return found != NULL ? (size_t)(found - text) : place_count;
    }
    if (segment->pattern.size > SHORT_SIZE) {
        return find_long(segment, text, place_count);
    }
    size_t place = 0;
    while (place < place_count && !stands_at(segment, text + place)) {
        place++;
    }
    return place;
}

struct glob glob_prepare(struct bytes pattern) {
    struct glob glob = {.pattern = pattern};
    size_t index = 0;
    while (index < pattern.size) {
        glob.size_min += next_segment(pattern, &index).size;
        if (index < pattern.size) {
            glob.has_star = true;
            index++;
        }
    }
    return glob;
}

bool glob_takes(const struct glob *glob, struct bytes text) {
    if (text.size < glob->size_min || (!glob->has_star && text.size > glob->size_min)) {
        return false;
    }
    if (text.size == 0) {
        return true; /* the pattern is nothing, or stars alone */
    }
    struct bytes pattern = glob->pattern;
    size_t spare = text.size - glob->size_min; /* bytes left for the stars */
    size_t index = 0;
    struct segment segment = next_segment(pattern, &index);
    if (!stands_at(&segment, text.at)) {
        return false;
    }
    const char *at = text.at + segment.size;
    while (index < pattern.size) {
        index++;
        segment = next_segment(pattern, &index);
        if (index == pattern.size) {
            return stands_at(&segment, at + spare);
        }
        if (segment.size > 0) {
            size_t place = find_segment(&segment, at, spare + 1);
            if (place > spare) {
                return false;
            }
            at += place + segment.size;
            spare -= place;
        }
    }
    return true;
}

bool glob_matches(struct bytes pattern, struct bytes text) {
    struct glob glob = glob_prepare(pattern);
    return glob_takes(&glob, text);
}
