/* What is passed over has a form:
 *
 *     s  a string     l  a length     1 4 8 6  so many bytes (6: sixteen)     m  a module's value
 *     *(...)          a length n, then the part in parentheses n times */
#include "server/rdb/rdb_reader_parts.h"

void rdb_reader_begin_passing(struct rdb_reader *reader, const char *form, bool is_key) {
    reader->depth = 1;
    reader->forms[0] = (struct rdb_form){.begin = form, .at = form, .left = 1};
    reader->is_passing_key = is_key;
    reader->state = RDB_AT_PASSED;
}

/* Where the part that begins here ends. */
static const char *rdb_reader_pass_end_of(const char *at) {
    for (int open = 1;; at++) {
        open += (*at == '(') - (*at == ')');
        if (open == 0) {
            return at;
        }
    }
}

static enum found rdb_reader_pass_bytes(struct rdb_reader *reader, size_t head, uint64_t size) {
    rdb_reader_consume(reader, head);
    reader->skip = size;
    return FOUND;
}

/* An opcode of a module's value; *is_last: it ends it. */
static enum found rdb_reader_pass_module(struct rdb_reader *reader, bool *is_last) {
    uint64_t opcode;
    size_t head;
    enum found found = rdb_reader_find_plain_length(reader, 0, &opcode, &head);
    if (found != FOUND) {
        return found;
    }
    *is_last = opcode == 0;
    uint64_t length;
    size_t size = 0;
    struct text text;
    switch (opcode) {
    case 0:
        return rdb_reader_pass_bytes(reader, head, 0);
    case 1:
    case 2:
        found = rdb_reader_find_plain_length(reader, head, &length, &size);
        return found == FOUND ? rdb_reader_pass_bytes(reader, head + size, 0) : found;
    case 3:
        return rdb_reader_pass_bytes(reader, head, 4);
    case 4:
        return rdb_reader_pass_bytes(reader, head, 8);
    case 5:
        found = rdb_reader_find_text(reader, head, &text);
        return found == FOUND ? rdb_reader_pass_bytes(reader, head + text.head, text.stored)
                              : found;
    default:
        return rdb_reader_refuse(reader, "a module's value that cannot be passed over");
    }
}

/* A length n, then the part n times. */
static enum found rdb_reader_pass_parts(struct rdb_reader *reader, struct rdb_form *form) {
    uint64_t count;
    size_t size;
    enum found found = rdb_reader_find_plain_length(reader, 0, &count, &size);
    if (found != FOUND) {
        return found;
    }
    rdb_reader_consume(reader, size);
    const char *part = form->at + 2; /* behind "*(" */
    form->at = rdb_reader_pass_end_of(part) + 1;
    CHECK(reader->depth < RDB_DEPTH_MAX);
    reader->forms[reader->depth++] = (struct rdb_form){.begin = part, .at = part, .left = count};
    return FOUND;
}

static enum found rdb_reader_pass_one(struct rdb_reader *reader, struct rdb_form *form) {
    uint64_t length;
    size_t size;
    struct text text;
    bool is_last = true;
    enum found found;
    switch (*form->at) {
    case '*':
        return rdb_reader_pass_parts(reader, form);
    case 's':
        found = rdb_reader_find_text(reader, 0, &text);
        found = found == FOUND ? rdb_reader_pass_bytes(reader, text.head, text.stored) : found;
        break;
    case 'l':
        found = rdb_reader_find_plain_length(reader, 0, &length, &size);
        found = found == FOUND ? rdb_reader_pass_bytes(reader, size, 0) : found;
        break;
    case 'm':
        found = rdb_reader_pass_module(reader, &is_last);
        break;
    default:
        found =
            rdb_reader_pass_bytes(reader, 0, *form->at == '6' ? 16 : (uint64_t)(*form->at - '0'));
    }
    form->at += found == FOUND && is_last;
    return found;
}

enum found rdb_reader_pass(struct rdb_reader *reader) {
    while (reader->depth > 0) {
        struct rdb_form *form = &reader->forms[reader->depth - 1];
        if (form->left == 0) {
            reader->depth--;
        } else if (*form->at == '\0' || *form->at == ')') {
            form->left--;
            form->at = form->begin;
        } else {
            return rdb_reader_pass_one(reader, form);
        }
    }
    return FOUND;
}
