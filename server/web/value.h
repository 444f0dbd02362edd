/* Replies in RESP3, read value by value. They come from this process: a malformed one is a bug. */
#ifndef SERVER_WEB_VALUE_H
#define SERVER_WEB_VALUE_H

#include "codec/bytes.h"
#include "codec/check.h"

enum value_kind {
    VALUE_TEXT, /* of any kind that is a text: bulk, simple, verbatim, double, big number */
    VALUE_INTEGER,
    VALUE_BOOLEAN,
    VALUE_NULL,
    VALUE_ERROR,
    VALUE_LIST, /* array, set or push: count values follow */
    VALUE_MAP,  /* count pairs follow */
};
struct value {
    enum value_kind kind;
    struct bytes text; /* TEXT, ERROR; INTEGER: its digits */
    int64_t number;    /* INTEGER; BOOLEAN: 0 or 1 */
    uint64_t count;    /* LIST, MAP */
};

/* What is left to read. */
struct value_reader {
    const char *at, *end;
};

struct value value_next(struct value_reader *reader);
/* value_next(reader).text, of which most of a long reply are: bulk texts, and the digits of integers. */
static inline struct bytes value_next_text(struct value_reader *reader) {
    enum { LINE_END = 2 };
    CHECK(reader->at < reader->end && reader->end[-1] == '\n'); /* so there is a line's end */
    const char *at = reader->at + 1;
    bool is_integer = *reader->at == ':';
    if (!is_integer && !(*reader->at == '$' && *at != '-')) {
        return value_next(reader).text;
    }
    size_t size = 0;
    while (*at != '\r') {
        size = size * 10 + (size_t)(*at++ - '0');
    }
    if (is_integer) {
        struct bytes digits = {.at = reader->at + 1, .size = (size_t)(at - reader->at) - 1};
        reader->at = at + LINE_END;
        return digits;
    }
    struct bytes text = {.at = at + LINE_END, .size = size};
    CHECK((size_t)(reader->end - text.at) >= size + LINE_END);
    reader->at = text.at + size + LINE_END;
    return text;
}
/* Pass over one value, whatever it holds. */
void value_skip(struct value_reader *reader);
/* Within a map that begins here: the value of this name. false: there is none. The reader stays. */
MUST_CHECK bool value_find(struct value_reader reader, struct bytes name,
                           struct value_reader *found);
/* The same, read: an integer or a text. otherwise, if it is missing or null. */
int64_t value_find_integer(struct value_reader reader, const char *name, int64_t otherwise);
struct bytes value_find_text(struct value_reader reader, const char *name);
/* The same of a list: how many items it has, which *items then reads; 0: there is none. */
uint64_t value_find_list(struct value_reader reader, const char *name, struct value_reader *items);

/* The entries of a map in which several names are looked for: it is read once. */
enum { VALUE_ENTRIES_MAX = 96 };
struct value_entries {
    struct value_reader map;
    unsigned count; /* 0: there are more, or it is no map; then the map itself is gone through */
    struct bytes names[VALUE_ENTRIES_MAX];
    const char *values[VALUE_ENTRIES_MAX];
};
void value_entries_read(struct value_entries *entries, struct value_reader map);
/* As value_find. */
MUST_CHECK bool value_entries_find(const struct value_entries *entries, struct bytes name,
                                   struct value_reader *found);

#endif
