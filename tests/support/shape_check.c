/* See shape_check.h. Parts of a tuple that may be missing are tried both ways. */
#include "tests/support/shape_check.h"

#include <stdlib.h>

#include "server/dispatch/command.h"
#include "server/web/value.h"

enum { OPTIONS_MAX = 16 };
struct checking {
    unsigned version;
    const struct request *request;
    /* Of options: are they in the request? A long one is looked through once. */
    const char *options[OPTIONS_MAX];
    bool is_given[OPTIONS_MAX];
    unsigned option_count;
};

/* ---- one value ---- */

static bool matches(struct checking *checking, const char *at, struct value_reader *reader);

static bool is_number(struct bytes text) {
    char copy[64];
    char *end = copy;
    if (text.size == 0 || text.size >= sizeof copy) {
        return false;
    }
    memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    (void)strtod(copy, &end);
    return end == copy + text.size;
}

static bool may_be(struct checking *checking, struct bytes option) {
    unsigned nth = 0;
    if (option.at == NULL) {
        return true;
    }
    while (nth < checking->option_count && checking->options[nth] != option.at) {
        nth++;
    }
    if (nth == checking->option_count) {
        bool is_given = false;
        for (uint32_t i = 1; i < checking->request->count && !is_given; i++) {
            is_given = bytes_equal_ignoring_case(checking->request->args[i], option);
        }
        CHECK(nth < OPTIONS_MAX);
        checking->options[nth] = option.at;
        checking->is_given[nth] = is_given;
        checking->option_count++;
    }
    return checking->is_given[nth];
}

static bool is_null(struct value_reader reader) {
    return value_next(&reader).kind == VALUE_NULL;
}

static bool is_choice(const char *at, struct bytes text) {
    struct bytes choice;
    while (shape_next_choice(&at, &choice)) {
        if (bytes_equal(choice, text)) {
            return true;
        }
    }
    return false;
}

/* left: of the tuple's values. first: of its members, where they begin again. */
static bool matches_members(struct checking *checking, const char *first, const char *at,
                            uint64_t left, struct value_reader *reader) {
    struct shape_member member;
    for (;;) {
        const char *before = at;
        if (!shape_next(&at, &member)) {
            if (left == 0 || strncmp(at, "...", 3) != 0) {
                return left == 0;
            }
            at = first;
            continue;
        }
        if (before == first && left == 0 && member.option.at == NULL && !member.is_optional &&
            !member.type.is_repeated) {
            while (shape_next(&at, &member)) {}
            return strncmp(at, "...", 3) == 0; /* they are there no time */
        }
        bool may_skip = member.is_optional || member.option.at != NULL || member.type.is_repeated;
        if (member.option.at != NULL && !may_be(checking, member.option)) {
            continue;
        }
        struct value_reader here = *reader;
        if (may_skip && matches_members(checking, first, at, left, &here)) {
            *reader = here;
            return true;
        }
        if (left == 0 || !matches(checking, member.at, reader)) {
            return false;
        }
        left--;
        at = member.type.is_repeated ? before : at;
    }
}

static bool matches_map(struct checking *checking, const char *members, uint64_t pairs,
                        struct value_reader *reader) {
    struct shape_member member;
    uint64_t found = 0;
    uint64_t wanted = 0;
    for (uint64_t i = 0; i < pairs; i++) {
        struct value name = value_next(reader);
        const char *at = members;
        uint64_t bit = 1;
        bool is_found = false;
        for (; !is_found && shape_next(&at, &member); bit <<= !is_found) {
            is_found = name.kind == VALUE_TEXT && bytes_equal(name.text, member.name);
        }
        if (!is_found || (found & bit) != 0 || !matches(checking, member.at, reader)) {
            return false;
        }
        found |= bit;
    }
    uint64_t bit = 1;
    for (const char *at = members; shape_next(&at, &member); bit <<= 1) {
        wanted |= member.is_optional ? 0 : bit;
    }
    return (found & wanted) == wanted;
}

static bool matches_values(struct checking *checking, struct shape shape,
                           struct value_reader *reader) {
    char type = *reader->at;
    struct value value = value_next(reader);
    bool is_map = checking->version == 3 ? type == '%' : type == '*' && value.count % 2 == 0;
    uint64_t pairs = type == '%' ? value.count : value.count / 2;
    if (shape.kind == SHAPE_MAP) {
        return is_map && matches_map(checking, shape.inner, pairs, reader);
    }
    if (shape.kind == SHAPE_TABLE) {
        for (uint64_t i = 0; is_map && i < pairs; i++) {
            enum value_kind kind = value_next(reader).kind;
            is_map = (kind == VALUE_TEXT || kind == VALUE_INTEGER) &&
                     matches(checking, shape.inner, reader);
        }
        return is_map;
    }
    if (type != '*' && (checking->version == 2 || (type != '~' && type != '>'))) {
        return false;
    }
    if (shape.kind == SHAPE_TUPLE) {
        return matches_members(checking, shape.inner, shape.inner, value.count, reader);
    }
    struct shape inner = shape_read(shape.inner);
    if (inner.is_repeated && checking->version == 2) { /* laid end to end */
        struct shape_member member;
        const char *at = inner.inner;
        unsigned size = 0;
        while (shape_next(&at, &member)) {
            size++;
        }
        bool is_fine = value.count % size == 0;
        for (uint64_t i = 0; i < value.count / size && is_fine; i++) {
            is_fine = matches_members(checking, inner.inner, inner.inner, size, reader);
        }
        return is_fine;
    }
    for (uint64_t i = 0; i < value.count; i++) {
        if (inner.kind == SHAPE_ANY && reader->at == reader->end) {
            break; /* EXEC: replies were switched off */
        }
        if (!matches(checking, shape.inner, reader)) {
            return false;
        }
    }
    return true;
}

static bool matches_one(struct checking *checking, struct shape shape,
                        struct value_reader *reader) {
    if (!may_be(checking, shape.option)) {
        return false;
    }
    if (shape.kind != SHAPE_ANY && is_null(*reader)) {
        value_skip(reader);
        return shape.is_nullable;
    }
    if (strchr("T[({", (int)shape.kind) != NULL) {
        return matches_values(checking, shape, reader);
    }
    if (shape.kind == SHAPE_NAMED) {
        return matches(checking, shape_find(shape.name), reader);
    }
    char type = *reader->at;
    struct value_reader before = *reader;
    value_skip(reader);
    struct value value = value_next(&before);
    bool is_text = strchr("$+=", type) != NULL;
    switch (shape.kind) {
    case SHAPE_INTEGER:
    case SHAPE_SECONDS:
        return type == ':';
    case SHAPE_TIME: /* a text beyond 2^53 with STRINGS */
        return type == ':' || (type == '$' && is_number(value.text));
    case SHAPE_TEXT:
        return is_text;
    case SHAPE_BOOLEAN:
        return type == '#' || (type == ':' && (value.number == 0 || value.number == 1));
    case SHAPE_DECIMAL:
        return type == ',' || (type == '$' && is_number(value.text));
    case SHAPE_NUMBER:
        return strchr(":,(", type) != NULL || (type == '$' && is_number(value.text));
    case SHAPE_CHOICE:
        return is_text && is_choice(shape.inner, value.text);
    case SHAPE_ANY:
        return true;
    case SHAPE_UNSAID:
    case SHAPE_BASE64:
    case SHAPE_ERROR:
    case SHAPE_ARRAY:
    case SHAPE_TUPLE:
    case SHAPE_MAP:
    case SHAPE_TABLE:
    case SHAPE_NAMED:
        break;
    }
    return false;
}

/* Alternatives within shapes that have matched; in any order, as there are few. */
enum { PARTS_MAX = 64 };
static const char *parts[PARTS_MAX];

bool shape_check_has_seen_part(const char *alternative) {
    unsigned i = 0;
    while (i < PARTS_MAX && parts[i] != NULL && parts[i] != alternative) {
        i++;
    }
    return i < PARTS_MAX && parts[i] == alternative;
}

static void note_part(const char *alternative) {
    unsigned i = 0;
    while (parts[i] != NULL && parts[i] != alternative) {
        CHECK(++i < PARTS_MAX);
    }
    parts[i] = alternative;
}

static bool matches(struct checking *checking, const char *at, struct value_reader *reader) {
    for (const char *first = at;;) {
        struct value_reader here = *reader;
        struct shape shape = shape_read(at);
        if (matches_one(checking, shape, &here)) {
            if (at != first || *shape.end == '|') {
                note_part(at);
            }
            *reader = here;
            return true;
        }
        if (*shape.end != '|') {
            return false;
        }
        at = shape.end + 1;
    }
}

bool shape_fits(struct bytes value, const char *shape, unsigned version,
                const struct request *request) {
    struct checking checking = {.version = version, .request = request};
    struct value_reader reader = {.at = value.at, .end = value.at + value.size};
    return matches(&checking, shape, &reader) && reader.at == reader.end;
}

enum { COMMANDS_MAX = 256 };
static uint32_t seen[COMMANDS_MAX]; /* a bit for each alternative */

static bool matches_command(struct checking *checking, uint32_t number,
                            struct value_reader *reader) {
    bool is_error = *reader->at == '-';
    const char *at = command_by_index(number)->reply;
    for (unsigned nth = 0;; nth++) {
        struct value_reader here = *reader;
        struct shape shape = shape_read(at);
        if (is_error) {
            value_skip(&here);
        }
        if (is_error ? shape.kind == SHAPE_ERROR : matches_one(checking, shape, &here)) {
            seen[number] |= UINT32_C(1) << nth;
            *reader = here;
            return true;
        }
        if (*shape.end != '|') {
            *reader = here;
            return is_error;
        }
        at = shape.end + 1;
    }
}

bool shape_check(struct bytes reply, uint32_t number, unsigned version,
                 const struct request *request) {
    struct checking checking = {.version = version, .request = request};
    struct value_reader reader = {.at = reply.at, .end = reply.at + reply.size};
    while (reader.at < reader.end) {
        if (!matches_command(&checking, number, &reader)) {
            return false;
        }
    }
    return true;
}

bool shape_check_has_seen(uint32_t number, unsigned alternative) {
    return (seen[number] >> alternative & 1) != 0;
}
