/* Tags: their declaration, and values as bytes. See tag.h. */
#include "codec/tag.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 2, 3))) static bool tag_set_reject(char *error, const char *format,
                                                                 ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, TAG_ERROR_MAX, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- the set ---- */

bool tag_set_equal(const struct tag_set *a, const struct tag_set *b) {
    if (a->count != b->count) {
        return false;
    }
    for (unsigned i = 0; i < a->count; i++) {
        if (a->tags[i].bits != b->tags[i].bits || strcmp(a->tags[i].name, b->tags[i].name) != 0) {
            return false;
        }
    }
    return true;
}

int tag_set_find(const struct tag_set *set, struct bytes name) {
    for (unsigned i = 0; i < set->count; i++) {
        if (bytes_is(name, set->tags[i].name)) {
            return (int)i;
        }
    }
    return -1;
}

static bool tag_set_is_name(struct bytes name) {
    return bytes_are_name(name, TAG_NAME_MAX) && !bytes_is(name, "FIELD") &&
           !bytes_is(name, "TIME") && !bytes_is(name, "TAG");
}

/* The bits of all tags but one, which may be none. */
static unsigned tag_set_bits_beside(const struct tag_set *set, unsigned index) {
    unsigned bits = 0;
    for (unsigned i = 0; i < set->count; i++) {
        bits += i != index ? set->tags[i].bits : 0;
    }
    return bits;
}

/* The bits of the tag with this index, which may be new. */
static bool tag_set_parse_bits(const struct tag_set *set, unsigned index, const char *name,
                               struct bytes text, uint8_t *bits, char *error) {
    unsigned left = TAGS_BITS_MAX - tag_set_bits_beside(set, index);
    uint64_t number;
    if (!bytes_parse_u64(text, &number) || number < 1 || number > TAGS_BITS_MAX) {
        return tag_set_reject(error, "tag '%s': '%s' bits is out of range: 1..%d are allowed", name,
                              bytes_show(text).text, TAGS_BITS_MAX);
    }
    if (number > left) {
        return tag_set_reject(error,
                              "tag '%s': %u bits are too many: %u of the %d of all tags are left",
                              name, (unsigned)number, left, TAGS_BITS_MAX);
    }
    *bits = (uint8_t)number;
    return true;
}

bool tag_set_add(struct tag_set *set, struct bytes name, struct bytes bits, char *error) {
    if (!tag_set_is_name(name)) {
        return tag_set_reject(
            error,
            "tag name '%s' is not allowed: 1..%d letters, digits, '_' and '-', with a "
            "letter among them, and not FIELD, TIME or TAG",
            bytes_show(name).text, TAG_NAME_MAX);
    }
    if (tag_set_find(set, name) >= 0) {
        return tag_set_reject(error, "duplicate tag name '%s'", bytes_show(name).text);
    }
    if (set->count == TAGS_MAX) {
        return tag_set_reject(error, "tag '%s': there are too many: %d are allowed",
                              bytes_show(name).text, TAGS_MAX);
    }
    struct tag tag = {.bits = 0};
    memcpy(tag.name, name.at, name.size);
    if (!tag_set_parse_bits(set, set->count, tag.name, bits, &tag.bits, error)) {
        return false;
    }
    set->tags[set->count++] = tag;
    return true;
}

bool tag_set_resize(struct tag_set *set, unsigned index, struct bytes bits, char *error) {
    CHECK(index < set->count);
    return tag_set_parse_bits(set, index, set->tags[index].name, bits, &set->tags[index].bits,
                              error);
}

void tag_set_remove(struct tag_set *set, unsigned index) {
    CHECK(index < set->count);
    set->count--;
    for (unsigned i = index; i < set->count; i++) {
        set->tags[i] = set->tags[i + 1];
    }
    set->tags[set->count] = (struct tag){.bits = 0};
}

static const char *tag_set_fault_of(const struct tag_set *set, unsigned index) {
    static const struct tag unused;
    const struct tag *tag = &set->tags[index];
    size_t name_size = strnlen(tag->name, sizeof tag->name);
    struct bytes name = {.at = tag->name, .size = name_size};
    if (index >= set->count) {
        return memcmp(tag, &unused, sizeof unused) == 0
                   ? NULL
                   : "a tag that is not there has a name or bits";
    }
    if (name_size == sizeof tag->name || !tag_set_is_name(name)) {
        return "a tag's name is not allowed";
    }
    if (tag_set_find(set, name) != (int)index) {
        return "two tags have one name";
    }
    return tag->bits >= 1 && tag->bits <= TAGS_BITS_MAX ? NULL : "a tag's width is not 1..32";
}

const char *tag_set_fault(const struct tag_set *set) {
    const char *fault = set->count <= TAGS_MAX ? NULL : "there are more than 8 tags";
    for (unsigned i = 0; i < TAGS_MAX && fault == NULL; i++) {
        fault = tag_set_fault_of(set, i);
    }
    if (fault == NULL && tag_set_bits_beside(set, TAGS_MAX) > TAGS_BITS_MAX) {
        fault = "all tags together have more than 32 bits";
    }
    return fault;
}

/* ---- values as bytes ---- */

size_t tag_values_pack(const struct tag_values *values, char *out) {
    char *at = out;
    *at++ = (char)values->mask;
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        if ((values->mask >> i & 1) != 0) {
            struct bytes value = values->at[i];
            CHECK(value.size <= TAG_VALUE_MAX);
            *at++ = (char)value.size;
            if (value.size > 0) {
                memcpy(at, value.at, value.size);
            }
            at += value.size;
        }
    }
    return (size_t)(at - out);
}

bool tag_values_take(struct bytes *text, unsigned tag_count, struct tag_values *values) {
    struct bytes left = *text;
    *values = (struct tag_values){.mask = 0};
    if (left.size == 0) {
        return false;
    }
    values->mask = (uint8_t)*left.at;
    left = bytes_behind(left, 1);
    for (unsigned i = 0; values->mask >> i != 0; i++) {
        if ((values->mask >> i & 1) == 0) {
            continue;
        }
        size_t size = left.size > 0 ? (uint8_t)*left.at : 0;
        if (i >= tag_count || left.size < 1 + size || size > TAG_VALUE_MAX) {
            return false;
        }
        values->at[i] = (struct bytes){.at = left.at + 1, .size = size};
        left = bytes_behind(left, 1 + size);
    }
    *text = left;
    return true;
}

bool tag_values_unpack(struct bytes text, unsigned tag_count, struct tag_values *values) {
    return tag_values_take(&text, tag_count, values) && text.size == 0;
}
