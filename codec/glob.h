/* Redis's glob patterns, over bytes: * ? [abc] [^a-z] and \x.
 *
 * A pattern is compiled once and matched against many texts. Matching costs time proportional to
 * the text's size times a 64th of the pattern's size, whatever their contents: there is no
 * backtracking, so no pattern is hostile. No recursion, no heap memory. */
#ifndef CODEC_GLOB_H
#define CODEC_GLOB_H

#include "codec/bytes.h"

enum { GLOB_PATTERN_MAX = 1024 /* bytes */, GLOB_WORDS_MAX = GLOB_PATTERN_MAX / 64 };

/* A compiled pattern, about 33 KiB. A pattern of fewer than 64 elements uses only 2 KiB. */
struct glob {
    uint32_t size_min; /* minimum bytes of a matching text: the pattern's elements without stars */
    uint32_t word_count;
    bool has_star;
    bool begins_with_star;
    uint64_t stars[GLOB_WORDS_MAX];       /* bit i: a star follows element i */
    uint64_t takes[256 * GLOB_WORDS_MAX]; /* per byte, word_count each: elements that match it */
};

/* false: the pattern is longer than GLOB_PATTERN_MAX bytes. */
MUST_CHECK bool glob_prepare(struct glob *glob, struct bytes pattern);
/* Lower-case the pattern, for case-insensitive matching against lower-case texts. */
MUST_CHECK bool glob_prepare_lower(struct glob *glob, struct bytes pattern);
MUST_CHECK bool glob_takes(const struct glob *glob, struct bytes text);

/* Approximate nanoseconds that glob_takes spends per byte of text. */
static inline uint32_t glob_byte_work(const struct glob *glob) {
    return 2 + glob->word_count + glob->word_count / 4;
}

/* Bytes before the first that is special: the whole of what has none. */
size_t glob_plain_size(struct bytes pattern);
/* Prepare and match in one call, for a single text. The pattern has at most GLOB_PATTERN_MAX
 * bytes. */
MUST_CHECK bool glob_matches(struct bytes pattern, struct bytes text);

#endif
