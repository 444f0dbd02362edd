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

/* An opcode of a module's value. true: it ends it. */
static bool rdb_reader_pass_module(struct rdb_reader *reader) {
    enum { END, SIGNED, UNSIGNED, FLOAT, DOUBLE, STRING };
    uint64_t opcode = rdb_reader_get_length(reader);
    switch (opcode) {
    case END:
        break;
    case SIGNED:
    case UNSIGNED:
        (void)rdb_reader_get_length(reader);
        break;
    case FLOAT:
        reader->skip = 4;
        break;
    case DOUBLE:
        reader->skip = 8;
        break;
    case STRING:
        reader->skip = rdb_reader_get_head(reader).stored;
        break;
    default:
        rdb_reader_refuse(reader, "a module's value that cannot be passed over");
    }
    return opcode == END;
}

/* A length n, then the part n times. */
static void rdb_reader_pass_parts(struct rdb_reader *reader, struct rdb_form *form) {
    uint64_t count = rdb_reader_get_length(reader);
    if (rdb_reader_is_fine(reader)) {
        const char *part = form->at + 2; /* behind "*(" */
        form->at = rdb_reader_pass_end_of(part) + 1;
        CHECK(reader->depth < RDB_DEPTH_MAX);
        reader->forms[reader->depth++] =
            (struct rdb_form){.begin = part, .at = part, .left = count};
    }
}

static void rdb_reader_pass_one(struct rdb_reader *reader, struct rdb_form *form) {
    bool is_last = true;
    switch (*form->at) {
    case '*':
        rdb_reader_pass_parts(reader, form);
        return;
    case 's':
        reader->skip = rdb_reader_get_head(reader).stored;
        break;
    case 'l':
        (void)rdb_reader_get_length(reader);
        break;
    case 'm':
        is_last = rdb_reader_pass_module(reader);
        break;
    default:
        reader->skip = *form->at == '6' ? 16 : (uint64_t)(*form->at - '0');
    }
    form->at += rdb_reader_is_fine(reader) && is_last;
}

void rdb_reader_pass(struct rdb_reader *reader) {
    while (reader->depth > 0) {
        struct rdb_form *form = &reader->forms[reader->depth - 1];
        if (form->left == 0) {
            reader->depth--;
        } else if (*form->at == '\0' || *form->at == ')') {
            form->left--;
            form->at = form->begin;
        } else {
            rdb_reader_pass_one(reader, form);
            return;
        }
    }
}
