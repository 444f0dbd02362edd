/* The tags of a board: up to eight named properties of its members, such as country or class.
 *
 *     TAG name bits        behind the layout; a tag takes 2^bits - 1 different values at a time
 *
 * A value is a byte string of 1 to TAG_VALUE_MAX bytes; a member without a value has none, which is
 * written as the empty string. Tags are no part of the key. skiplist/tags.h holds the values. */
#ifndef CODEC_TAG_H
#define CODEC_TAG_H

#include "codec/bytes.h"

enum {
    TAGS_MAX = 8,
    TAGS_BITS_MAX = 32,  /* of all tags together */
    TAG_NAME_MAX = 32,   /* bytes; what a name consists of: see layout_parse_words */
    TAG_VALUE_MAX = 64,  /* bytes */
    TAG_ERROR_MAX = 256, /* room for a message of tag_set_add, with its terminator */
    /* Room for tag_values_pack of any values. */
    TAG_VALUES_PACKED_MAX = 1 + TAGS_MAX * (1 + TAG_VALUE_MAX),
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

/* Add a tag, which is named as a field is (layout_parse_words), and not FIELD, TIME or TAG; names
 * of two tags must differ in more than case. false: *set is unchanged, and error (TAG_ERROR_MAX
 * bytes) says what is wrong and what is allowed, in one line. */
MUST_CHECK bool tag_set_add(struct tag_set *set, struct bytes name, struct bytes bits, char *error);
/* Give the tag with this index other bits. Same errors. */
MUST_CHECK bool tag_set_resize(struct tag_set *set, unsigned index, struct bytes bits, char *error);
/* Take the tag with this index out; those behind it move up. */
void tag_set_remove(struct tag_set *set, unsigned index);

/* How many different values the tag takes at a time. */
static inline uint32_t tag_values_max(const struct tag *tag) {
    return UINT32_MAX >> (TAGS_BITS_MAX - tag->bits);
}

/* What is wrong with the set; NULL: nothing. Unused tags must be zeroed. */
const char *tag_set_fault(const struct tag_set *set);

/* Values as bytes: the mask (1 byte), then for each of its bits a size (1 byte) and so many bytes.
 * out has room for TAG_VALUES_PACKED_MAX; returns the size. */
size_t tag_values_pack(const struct tag_values *values, char *out);
/* Read them from the front of *text, which then begins behind them. The values are borrowed from it.
 * false: it does not begin with values of a set of so many tags; *text is left as it was. */
MUST_CHECK bool tag_values_take(struct bytes *text, unsigned tag_count, struct tag_values *values);
/* The same where *text is nothing else. */
MUST_CHECK bool tag_values_unpack(struct bytes text, unsigned tag_count, struct tag_values *values);

#endif
