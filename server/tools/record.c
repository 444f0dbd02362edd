/* Records as CSV and JSON lines. See record.h. */
#include "server/tools/record.h"

#include <inttypes.h>
#include <string.h>

static const char *const names[RECORD_FIELDS] = {"database", "key",   "kind",  "member", "score",
                                                 "time",     "value", "rules", "expires"};

/* ---- bytes as text ---- */

/* The size of the UTF-8 character at the front; 0: there is none, or it is a control character. */
static size_t record_character_size(const unsigned char *at, size_t left) {
    unsigned char lead = at[0];
    if (lead < 0x80) {
        return lead >= 0x20 && lead != 0x7f;
    }
    size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || size > left) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool is_overlong = (lead == 0xe0 && at[1] < 0xa0) || (lead == 0xf0 && at[1] < 0x90);
    bool is_surrogate = lead == 0xed && at[1] >= 0xa0;
    bool is_beyond = lead == 0xf4 && at[1] >= 0x90;
    bool is_control = lead == 0xc2 && at[1] < 0xa0;
    return is_overlong || is_surrogate || is_beyond || is_control ? 0 : size;
}

static char *record_put_escape(char *to, unsigned char byte) {
    static const char digits[] = "0123456789abcdef";
    *to++ = 'x';
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 15];
    return to;
}

/* Append the bytes as text, in which JSON doubles backslashes and both escape their quote. */
static void record_print_text(struct buffer *out, enum record_format format, struct bytes from) {
    const unsigned char *at = (const unsigned char *)from.at;
    bool is_json = format == RECORD_JSONL;
    char *to = buffer_reserve(out, 5 * from.size + 1); /* "\\xff" in JSON */
    if (to == NULL) {
        return;
    }
    char *begin = to;
    for (size_t i = 0; i < from.size;) {
        size_t size = record_character_size(at + i, from.size - i);
        if (size == 0 || at[i] == '\\') {
            *to++ = '\\';
            if (is_json) {
                *to++ = '\\';
            }
        }
        if (size == 0) {
            to = record_put_escape(to, at[i++]);
        } else if (at[i] == '\\') {
            *to++ = '\\';
            if (is_json) {
                *to++ = '\\';
            }
            i++;
        } else {
            if (at[i] == '"') {
                *to++ = is_json ? '\\' : '"';
            }
            memcpy(to, at + i, size);
            to += size;
            i += size;
        }
    }
    buffer_commit(out, (size_t)(to - begin));
}

static void record_put(struct buffer *out, const char *text) {
    buffer_append(out, text, strlen(text));
}

/* ---- writing ---- */

static bool record_needs_quotes(struct bytes field) {
    for (size_t i = 0; i < field.size; i++) {
        if (field.at[i] == ',' || field.at[i] == '"') {
            return true;
        }
    }
    return field.size > 0 && (field.at[0] == ' ' || field.at[field.size - 1] == ' ');
}

static void record_print_csv(struct buffer *out, const struct record *record) {
    for (int i = 0; i < RECORD_FIELDS; i++) {
        bool is_quoted = record_needs_quotes(record->at[i]);
        record_put(out, i > 0 ? "," : "");
        record_put(out, is_quoted ? "\"" : "");
        record_print_text(out, RECORD_CSV, record->at[i]);
        record_put(out, is_quoted ? "\"" : "");
    }
}

/* Empty fields are left out. */
static void record_print_json(struct buffer *out, const struct record *record) {
    const char *before = "{";
    for (int i = 0; i < RECORD_FIELDS; i++) {
        if (record->at[i].size > 0) {
            record_put(out, before);
            record_put(out, "\"");
            record_put(out, names[i]);
            record_put(out, "\":\"");
            record_print_text(out, RECORD_JSONL, record->at[i]);
            record_put(out, "\"");
            before = ",";
        }
    }
    record_put(out, "}");
}

bool record_print_head(struct buffer *out, enum record_format format) {
    for (int i = 0; format == RECORD_CSV && i < RECORD_FIELDS; i++) {
        record_put(out, names[i]);
        record_put(out, i + 1 < RECORD_FIELDS ? "," : "\n");
    }
    return !out->is_broken;
}

bool record_print(struct buffer *out, enum record_format format, const struct record *record) {
    if (format == RECORD_CSV) {
        record_print_csv(out, record);
    } else {
        record_print_json(out, record);
    }
    record_put(out, "\n");
    return !out->is_broken;
}

/* ---- reading ---- */

void record_reader_init(struct record_reader *reader, FILE *in, enum record_format format) {
    *reader = (struct record_reader){.in = in, .format = format};
    buffer_init(&reader->line, 0);
    buffer_init(&reader->text, 0);
}

void record_reader_deinit(struct record_reader *reader) {
    buffer_deinit(&reader->line);
    buffer_deinit(&reader->text);
}

enum record_status record_refuse(struct record_reader *reader, const char *reason) {
    char text[RECORD_ERROR_MAX];
    snprintf(text, sizeof text, "%s", reason); /* it may be the error itself */
    snprintf(reader->error, sizeof reader->error, "line %" PRIu64 " at offset %" PRIu64 ": %.180s",
             reader->line_number, reader->offset, text);
    return RECORD_BAD;
}

/* Read a line without its end. false: the end of the file, or no memory (is_broken). */
static bool record_read_line(struct record_reader *reader) {
    struct buffer *line = &reader->line;
    int byte;
    reader->offset = reader->end;
    reader->line_number++;
    buffer_clear(line);
    while ((byte = getc_unlocked(reader->in)) != EOF && byte != '\n') {
        char *at = buffer_reserve(line, 1);
        if (at == NULL) {
            return false;
        }
        *at = (char)byte;
        buffer_commit(line, 1);
    }
    reader->end = reader->offset + line->size + 1;
    return byte == '\n' || line->size > 0;
}

struct cursor {
    const char *at, *end;
};

enum { NO_DIGIT = 16 };

static unsigned record_digit_of(char c) {
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
           : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                  : NO_DIGIT;
}

/* Take back what record_print_text has done for both forms: the text of a field becomes its bytes, in
 * place. */
static bool record_unescape(struct buffer *text, size_t begin) {
    char *to = text->at + begin;
    const char *at = to;
    const char *end = text->at + text->size;
    while (at < end) {
        if (*at != '\\') {
            *to++ = *at++;
        } else if (end - at >= 2 && at[1] == '\\') {
            *to++ = '\\';
            at += 2;
        } else if (end - at >= 4 && at[1] == 'x' && record_digit_of(at[2]) < NO_DIGIT &&
                   record_digit_of(at[3]) < NO_DIGIT) {
            *to++ = (char)(record_digit_of(at[2]) << 4 | record_digit_of(at[3]));
            at += 4;
        } else {
            return false;
        }
    }
    text->size = (size_t)(to - text->at);
    return true;
}

static void record_put_byte(struct buffer *text, char byte) {
    buffer_append(text, &byte, 1);
}

/* ---- CSV ---- */

/* Append a field to text. false: its quotes are wrong. */
static bool record_take_csv(struct cursor *cursor, struct buffer *text) {
    if (cursor->at == cursor->end || *cursor->at != '"') {
        const char *begin = cursor->at;
        while (cursor->at < cursor->end && *cursor->at != ',') {
            if (*cursor->at++ == '"') {
                return false;
            }
        }
        buffer_append(text, begin, (size_t)(cursor->at - begin));
        return true;
    }
    for (cursor->at++; cursor->at < cursor->end; cursor->at++) {
        if (*cursor->at == '"') {
            cursor->at++;
            if (cursor->at == cursor->end || *cursor->at != '"') {
                return cursor->at == cursor->end || *cursor->at == ',';
            }
        }
        record_put_byte(text, *cursor->at);
    }
    return false;
}

/* The fields end where ends say, in text. NULL, or what is wrong. */
static const char *record_parse_csv(struct cursor cursor, struct buffer *text, size_t *ends) {
    for (int i = 0; i < RECORD_FIELDS; i++) {
        size_t begin = text->size;
        if (i > 0 && (cursor.at == cursor.end || *cursor.at++ != ',')) {
            return "there are fewer than 9 fields";
        }
        if (!record_take_csv(&cursor, text)) {
            return "the quotes of a field are wrong";
        }
        if (!text->is_broken && !record_unescape(text, begin)) {
            return "a backslash is followed by neither another one nor x and two digits";
        }
        ends[i] = text->size;
    }
    return cursor.at == cursor.end ? NULL : "there are more than 9 fields";
}

/* ---- JSON ---- */

static void record_skip_blanks(struct cursor *cursor) {
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\t')) {
        cursor->at++;
    }
}

static bool record_take_mark(struct cursor *cursor, char mark) {
    record_skip_blanks(cursor);
    if (cursor->at == cursor->end || *cursor->at != mark) {
        return false;
    }
    cursor->at++;
    return true;
}

static bool record_take_hex(struct cursor *cursor, uint32_t *unit) {
    *unit = 0;
    for (int i = 0; i < 4; i++, cursor->at++) {
        if (cursor->at == cursor->end || record_digit_of(*cursor->at) == NO_DIGIT) {
            return false;
        }
        *unit = *unit << 4 | record_digit_of(*cursor->at);
    }
    return true;
}

static void record_put_character(struct buffer *text, uint32_t code) {
    if (code < 0x80) {
        record_put_byte(text, (char)code);
        return;
    }
    if (code < 0x800) {
        record_put_byte(text, (char)(0xc0 | code >> 6));
    } else if (code < 0x10000) {
        record_put_byte(text, (char)(0xe0 | code >> 12));
        record_put_byte(text, (char)(0x80 | (code >> 6 & 0x3f)));
    } else {
        record_put_byte(text, (char)(0xf0 | code >> 18));
        record_put_byte(text, (char)(0x80 | (code >> 12 & 0x3f)));
        record_put_byte(text, (char)(0x80 | (code >> 6 & 0x3f)));
    }
    record_put_byte(text, (char)(0x80 | (code & 0x3f)));
}

/* After \u. */
static bool record_take_unicode(struct cursor *cursor, struct buffer *text) {
    uint32_t code;
    uint32_t low;
    if (!record_take_hex(cursor, &code)) {
        return false;
    }
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || cursor->end - cursor->at < 2 || cursor->at[0] != '\\' ||
            cursor->at[1] != 'u') {
            return false;
        }
        cursor->at += 2;
        if (!record_take_hex(cursor, &low) || low < 0xdc00 || low >= 0xe000) {
            return false;
        }
        code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    }
    record_put_character(text, code);
    return true;
}

/* A string's rest, after its first quote. */
static bool record_take_string(struct cursor *cursor, struct buffer *text) {
    static const char marks[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    while (cursor->at < cursor->end) {
        char c = *cursor->at++;
        if (c == '"') {
            return true;
        }
        if (c != '\\') {
            record_put_byte(text, c);
            continue;
        }
        if (cursor->at == cursor->end) {
            return false;
        }
        c = *cursor->at++;
        const char *mark = c != '\0' ? strchr(marks, c) : NULL;
        if (mark != NULL) {
            record_put_byte(text, meant[mark - marks]);
        } else if (c != 'u' || !record_take_unicode(cursor, text)) {
            return false;
        }
    }
    return false;
}

/* A string or a number. */
static bool record_take_value(struct cursor *cursor, struct buffer *text) {
    record_skip_blanks(cursor);
    if (record_take_mark(cursor, '"')) {
        return record_take_string(cursor, text);
    }
    const char *begin = cursor->at;
    while (cursor->at < cursor->end && *cursor->at != '\0' &&
           strchr("0123456789+-.eE", *cursor->at) != NULL) {
        cursor->at++;
    }
    buffer_append(text, begin, (size_t)(cursor->at - begin));
    return cursor->at > begin;
}

static int record_find_name(struct bytes name) {
    for (int i = 0; i < RECORD_FIELDS; i++) {
        if (bytes_equal(name, bytes_from_text(names[i]))) {
            return i;
        }
    }
    return -1;
}

/* Take the name of a field, leaving nothing of it in text. -1: it is none. */
static int record_take_name(struct cursor *cursor, struct buffer *text) {
    size_t begin = text->size;
    if (!record_take_mark(cursor, '"') || !record_take_string(cursor, text) || text->is_broken) {
        return -1;
    }
    int field =
        record_find_name((struct bytes){.at = text->at + begin, .size = text->size - begin});
    buffer_cut(text, begin);
    return field;
}

static const char *record_parse_json(struct cursor cursor, struct buffer *text, size_t *begins,
                                     size_t *ends) {
    bool has[RECORD_FIELDS] = {false};
    if (!record_take_mark(&cursor, '{')) {
        return "it does not begin with {";
    }
    do {
        int field = record_take_name(&cursor, text);
        if (field < 0 || has[field] || !record_take_mark(&cursor, ':')) {
            return "the name of a field is unknown, or there twice";
        }
        has[field] = true;
        begins[field] = text->size;
        if (!record_take_value(&cursor, text)) {
            return "a value is neither a string nor a number";
        }
        if (!text->is_broken && !record_unescape(text, begins[field])) {
            return "a backslash is followed by neither another one nor x and two digits";
        }
        ends[field] = text->size;
    } while (record_take_mark(&cursor, ','));
    if (!record_take_mark(&cursor, '}')) {
        return "it does not end with }";
    }
    record_skip_blanks(&cursor);
    return cursor.at == cursor.end ? NULL : "something follows the }";
}

static const char *record_parse(struct record_reader *reader, struct record *record) {
    struct buffer *text = &reader->text;
    size_t begins[RECORD_FIELDS] = {0};
    size_t ends[RECORD_FIELDS] = {0};
    struct cursor cursor = {.at = reader->line.at, .end = reader->line.at + reader->line.size};
    const char *wrong;
    buffer_clear(text);
    if (buffer_reserve(text, 1) == NULL) { /* so that it is somewhere */
        return "out of memory";
    }
    if (reader->format == RECORD_CSV) {
        wrong = record_parse_csv(cursor, text, ends);
        memcpy(begins + 1, ends, sizeof ends - sizeof *ends);
    } else {
        wrong = record_parse_json(cursor, text, begins, ends);
    }
    if (text->is_broken) {
        return "out of memory";
    }
    for (int i = 0; i < RECORD_FIELDS; i++) {
        record->at[i] = (struct bytes){.at = text->at + begins[i], .size = ends[i] - begins[i]};
    }
    return wrong;
}

static bool record_is_head(const struct record *record) {
    for (int i = 0; i < RECORD_FIELDS; i++) {
        if (!bytes_equal(record->at[i], bytes_from_text(names[i]))) {
            return false;
        }
    }
    return true;
}

enum record_status record_read(struct record_reader *reader, struct record *record) {
    do {
        if (!record_read_line(reader)) {
            return reader->line.is_broken ? record_refuse(reader, "out of memory")
                   : ferror(reader->in)   ? record_refuse(reader, "the file cannot be read")
                                          : RECORD_END;
        }
        if (reader->line.size > 0 && reader->line.at[reader->line.size - 1] == '\r') {
            reader->line.size--;
        }
    } while (reader->line.size == 0);
    const char *wrong = record_parse(reader, record);
    if (wrong == NULL && reader->format == RECORD_CSV && !reader->has_head) {
        reader->has_head = true;
        return record_is_head(record)
                   ? record_read(reader, record)
                   : record_refuse(reader, "the first line does not name the fields");
    }
    return wrong == NULL ? RECORD_READ : record_refuse(reader, wrong);
}
