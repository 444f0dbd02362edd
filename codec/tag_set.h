/* The tags of a board: up to eight named properties of its members, such as country or class.
 *
 *     TAG name bits        behind the layout; a tag takes 2^bits - 1 different values at a time
 *
 * A value is a byte string of 1 to TAG_VALUE_MAX bytes; a member without a value has none, which is
 * written as the empty string. Tags are no part of the key. skiplist/tags.h holds the values. */
#ifndef CODEC_TAG_SET_H
#define CODEC_TAG_SET_H

#include "codec/bytes.h"

enum {
    TAGS_MAX = 8,
    TAGS_BITS_MAX = 32, /* of all tags together */
    TAG_NAME_MAX = 32,  /* bytes; what a name consists of: see layout_parse_words */
    TAG_VALUE_MAX = 64, /* bytes */
};

struct tag {
    char name[TAG_NAME_MAX + 1];
    uint8_t bits; /* 1..TAGS_BITS_MAX */
};

/* Zeroed: no tags. */
struct tag_set {
    uint8_t count;
    struct tag tags[TAGS_MAX];
};

/* Values of one member, or values to be set: those of the bits in mask, each in the order of the set.
 * Size 0: none. */
struct tag_values {
    unsigned mask;
    struct bytes at[TAGS_MAX];
};

bool tag_set_equal(const struct tag_set *a, const struct tag_set *b);
/* The index of the tag with this name, in any case; -1: there is none. */
int tag_set_find(const struct tag_set *set, struct bytes name);

#endif
