/* See value.h. */
#include "server/web/value.h"

static struct bytes value_take_line(struct value_reader *reader) {
    const char *end = memchr(reader->at, '\r', (size_t)(reader->end - reader->at));
    CHECK(end != NULL);
    CHECK(reader->end - end >= 2);
    struct bytes line = {.at = reader->at, .size = (size_t)(end - reader->at)};
    reader->at = end + 2;
    return line;
}

/* A line that is a number of 64 bits, as most are. */
static inline int64_t value_take_number(struct value_reader *reader) {
    CHECK(reader->at < reader->end && reader->end[-1] == '\n'); /* so the digits end */
    const char *at = reader->at;
    bool is_negative = *at == '-';
    at += is_negative;
    const char *begin = at;
    uint64_t number = 0;
    for (unsigned digit; (digit = (unsigned char)*at - (unsigned)'0') <= 9; at++) {
        number = number * 10 + digit;
    }
    CHECK(at > begin && reader->end - at >= 2 && *at == '\r');
    reader->at = at + 2;
    return (int64_t)(is_negative ? 0 - number : number);
}

static struct bytes value_take_bulk(struct value_reader *reader, int64_t size) {
    CHECK(size >= 0);
    CHECK(reader->end - reader->at >= size + 2);
    struct bytes text = {.at = reader->at, .size = (size_t)size};
    reader->at += size + 2;
    return text;
}

struct value value_next(struct value_reader *reader) {
    struct value value = {.kind = VALUE_TEXT};
    CHECK(reader->at < reader->end);
    char type = *reader->at++;
    int64_t number;
    switch (type) {
    case '$':
        number = value_take_number(reader);
        if (number < 0) {
            value.kind = VALUE_NULL;
            break;
        }
        value.text = value_take_bulk(reader, number);
        break;
    case '=':
        value.text = value_take_bulk(reader, value_take_number(reader));
        CHECK(value.text.size >= 4);
        value.text.at += 4; /* "txt:" */
        value.text.size -= 4;
        break;
    case ':':
        value.kind = VALUE_INTEGER;
        value.text.at = reader->at;
        value.number = value_take_number(reader);
        value.text.size = (size_t)(reader->at - value.text.at) - 2;
        break;
    case '#':
        value.kind = VALUE_BOOLEAN;
        value.number = value_take_line(reader).at[0] == 't';
        break;
    case '_':
        value.kind = VALUE_NULL;
        (void)value_take_line(reader);
        break;
    case '*':
    case '~':
    case '>':
    case '%':
        number = value_take_number(reader);
        value.kind = number < 0 ? VALUE_NULL : type == '%' ? VALUE_MAP : VALUE_LIST;
        value.count = number < 0 ? 0 : (uint64_t)number;
        break;
    default: /* + , ( - */
        value.kind = type == '-' ? VALUE_ERROR : VALUE_TEXT;
        value.text = value_take_line(reader);
        break;
    }
    return value;
}

void value_skip(struct value_reader *reader) {
    for (uint64_t left = 1; left > 0; left--) {
        if (reader->at < reader->end && (*reader->at == '$' || *reader->at == ':')) {
            (void)value_next_text(reader);
            continue;
        }
        struct value value = value_next(reader);
        left += value.kind == VALUE_LIST ? value.count : 0;
        left += value.kind == VALUE_MAP ? 2 * value.count : 0;
    }
}

bool value_find(struct value_reader reader, struct bytes name, struct value_reader *found) {
    struct value map = value_next(&reader);
    for (uint64_t i = 0; map.kind == VALUE_MAP && i < map.count; i++) {
        if (bytes_equal(value_next_text(&reader), name)) {
            *found = reader;
            return true;
        }
        value_skip(&reader);
    }
    return false;
}

int64_t value_find_integer(struct value_reader reader, const char *name, int64_t otherwise) {
    struct value_reader at;
    if (!value_find(reader, bytes_from_text(name), &at)) {
        return otherwise;
    }
    struct value value = value_next(&at);
    int64_t number;
    if (value.kind == VALUE_TEXT && bytes_parse_i64(value.text, &number)) {
        return number;
    }
    return value.kind == VALUE_INTEGER || value.kind == VALUE_BOOLEAN ? value.number : otherwise;
}

struct bytes value_find_text(struct value_reader reader, const char *name) {
    struct value_reader at;
    struct value value = {.kind = VALUE_NULL};
    if (value_find(reader, bytes_from_text(name), &at)) {
        value = value_next(&at);
    }
    return value.kind == VALUE_TEXT ? value.text : (struct bytes){.at = NULL};
}

uint64_t value_find_list(struct value_reader reader, const char *name, struct value_reader *items) {
    struct value list = {.kind = VALUE_NULL};
    if (value_find(reader, bytes_from_text(name), items)) {
        list = value_next(items);
    }
    return list.kind == VALUE_LIST ? list.count : 0;
}

void value_entries_read(struct value_entries *entries, struct value_reader map) {
    struct value_reader reader = map;
    struct value first = value_next(&reader);
    bool is_fit = first.kind == VALUE_MAP && first.count <= VALUE_ENTRIES_MAX;
    entries->map = map;
    entries->count = 0;
    for (uint64_t left = is_fit ? first.count : 0; left > 0; left--) {
        entries->names[entries->count] = value_next_text(&reader);
        entries->values[entries->count++] = reader.at;
        value_skip(&reader);
    }
}

bool value_entries_find(const struct value_entries *entries, struct bytes name,
                        struct value_reader *found) {
    if (entries->count == 0) {
        return value_find(entries->map, name, found);
    }
    for (unsigned i = 0; i < entries->count; i++) {
        if (bytes_equal(entries->names[i], name)) {
            *found = (struct value_reader){.at = entries->values[i], .end = entries->map.end};
            return true;
        }
    }
    return false;
}
