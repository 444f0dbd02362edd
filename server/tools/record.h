/* The text form of boards and hashes: one line for each key, each member and each field.
 *
 *     CSV     database,key,kind,member,score,time,value,options,expires
 *             0,daily,board,,,,,FIELD score 33 SIGNED TIME 31 S,
 *             0,daily,member,ann,700,1763890000000000,,,
 *     JSONL   {"database":"0","key":"daily","kind":"member","member":"ann","score":"700", ...}
 *
 * A key's line comes before those of its members. Bytes that are no UTF-8, and control characters, are
 * written as \xff (the two digits of the byte), and a backslash as \\, in both forms; CSV then quotes as
 * RFC 4180 has it, JSONL as JSON does. No line end is inside a field, so a line is a record.
 *
 * The input may be damaged in any way: the reader says in which line, and never reads out of bounds. */
#ifndef SERVER_RECORD_H
#define SERVER_RECORD_H

#include <stdio.h>

#include "codec/buffer.h"
#include "server/settings/settings.h"

enum record_field {
    RECORD_DATABASE,
    RECORD_KEY,
    RECORD_KIND,
    RECORD_MEMBER, /* or a field of a hash */
    RECORD_SCORE,  /* exact decimals, one for each field of the layout, a blank between them */
    RECORD_TIME,   /* unix microseconds; empty: the layout has no time */
    RECORD_VALUE, /* of a field of a hash; a member's note; of a member: its tags, "country DE class mage", values
                     * with other than plain characters in double quotes (codec/words.h) */
    RECORD_RULES,   /* layout and options, see below */
    RECORD_EXPIRES, /* unix milliseconds; empty: never */
    RECORD_FIELDS
};
struct record {
    struct bytes at[RECORD_FIELDS];
};

enum record_format { RECORD_CSV, RECORD_JSONL };

/* ---- writing ---- */

/* CSV's first line. false: no memory. */
MUST_CHECK bool record_print_head(struct buffer *out, enum record_format format);
/* Append a line. false: no memory. */
MUST_CHECK bool record_print(struct buffer *out, enum record_format format,
                             const struct record *record);

/* ---- reading ---- */

enum record_status { RECORD_READ, RECORD_END, RECORD_BAD };
enum { RECORD_ERROR_MAX = 256 };

struct record_reader {
    FILE *in; /* borrowed */
    enum record_format format;
    bool has_head;
    uint64_t line_number;
    uint64_t offset;    /* of the line in the file */
    uint64_t end;       /* of the line */
    struct buffer line; /* without its end */
    struct buffer text; /* the record's fields, as bytes */
    char error[RECORD_ERROR_MAX];
};

void record_reader_init(struct record_reader *reader, FILE *in, enum record_format format);
void record_reader_deinit(struct record_reader *reader);
/* Read the next record, which is valid until the next call. RECORD_BAD: error says what is wrong. */
MUST_CHECK enum record_status record_read(struct record_reader *reader, struct record *record);
/* Make reader->error "line 7 at offset 312: <reason>"; returns RECORD_BAD. */
enum record_status record_refuse(struct record_reader *reader, const char *reason);

/* ---- layout and options ----
 *
 * As one text, from which they are read back exactly:
 *
 *     FIELD score 33 SIGNED TIME 31 S CAP 100 KEEP BEST CREATED
 *
 * The words are those of LB.CREATE, and those of rows that are states (skiplist/keyspace/board_options.h), in any
 * order behind the layout: CREATED, STARTED and ENDS with unix milliseconds, and so on. */

enum { RECORD_RULES_MAX = LAYOUT_TEXT_MAX + SETTING_RULES_TEXT_MAX, RECORD_RULES_ERROR_MAX = 1024 };

/* out: RECORD_RULES_MAX; returns the size. */
size_t record_print_options(const struct board_options *options, const struct board_state *state,
                            char *out);
/* false: error (RECORD_RULES_ERROR_MAX) says what is wrong. */
MUST_CHECK bool record_parse_options(struct bytes text, struct board_options *options,
                                     struct board_state *state, char *error);

#endif
