/* Records as CSV and JSON lines. See tools.h. */
#include "server/tools/tools.h"

#include <inttypes.h>
#include <string.h>

#include "codec/json.h"

static const char *const names[RECORD_FIELDS] = {"database", "key",   "kind",  "member", "score",
                                                 "time",     "value", "rules", "expires"};

/* ---- bytes as text ---- */

/* The bytes as text; CSV doubles quotes. */
static void record_escape(struct buffer *out, struct bytes from, bool is_csv) {
    char *to = buffer_reserve(out, 4 * from.size + 1); /* "\xff" */
    char *begin = to;
    while (to != NULL && from.size > 0) {
        size_t size = json_utf8_size(from);
        unsigned char byte = (unsigned char)from.at[0];
        bool is_control = byte < 0x20 || byte == 0x7f ||
                          (byte == 0xc2 && size == 2 && (unsigned char)from.at[1] < 0xa0);
        if (size == 0 || is_control) {
            *to++ = '\\';
            *to++ = 'x';
            bytes_print_hex(byte, to);
            to += 2;
            size = 1;
        } else {
            if (byte == '\\' || (byte == '"' && is_csv)) {
                *to++ = (char)byte;
            }
            memcpy(to, from.at, size);
            to += size;
        }
        from = (struct bytes){.at = from.at + size, .size = from.size - size};
    }
    if (to != NULL) {
        buffer_commit(out, (size_t)(to - begin));
    }
}

static void record_put(struct buffer *out, const char *text) {
    buffer_append(out, text, strlen(text));
}

/* ---- writing ---- */

bool record_print_head(struct buffer *out, enum record_format format) {
    for (int i = 0; format == RECORD_CSV && i < RECORD_FIELDS; i++) {
        record_put(out, names[i]);
        record_put(out, i + 1 < RECORD_FIELDS ? "," : "\n");
    }
    return !out->is_broken;
}

bool record_print(struct buffer *out, enum record_format format, const struct record *record) {
    if (format == RECORD_CSV) {
        for (int i = 0; i < RECORD_FIELDS; i++) {
            struct bytes field = record->at[i];
            bool is_quoted =
                field.size > 0 && (field.at[0] == ' ' || field.at[field.size - 1] == ' ' ||
                                   memchr(field.at, ',', field.size) != NULL ||
                                   memchr(field.at, '"', field.size) != NULL);
            record_put(out, i > 0 ? "," : "");
            record_put(out, is_quoted ? "\"" : "");
            record_escape(out, field, true);
            record_put(out, is_quoted ? "\"" : "");
        }
    } else {
        /* Empty fields are left out. */
        struct json json = {.append = buffer_put, .out = out};
        struct buffer text;
        buffer_init(&text, 0);
        json_open(&json, NULL, '{');
        for (int i = 0; i < RECORD_FIELDS; i++) {
            if (record->at[i].size > 0) {
                buffer_clear(&text);
                record_escape(&text, record->at[i], false);
                out->is_broken |= text.is_broken;
                json_text(&json, names[i], buffer_bytes(&text));
            }
        }
        json_close(&json, '}');
        buffer_deinit(&text);
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

/* The value of a hexadecimal digit; 16: it is none. */
static unsigned record_digit_of(char c) {
    char lower = bytes_lower(c);
    return lower >= '0' && lower <= '9'   ? (unsigned)(lower - '0')
           : lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a') + 10
                                          : 16;
}

/* Take back what record_escape has done for both forms: the text of a field becomes its bytes, in place. */
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
        } else if (end - at >= 4 && at[1] == 'x' && record_digit_of(at[2]) < 16 &&
                   record_digit_of(at[3]) < 16) {
            *to++ = (char)(record_digit_of(at[2]) << 4 | record_digit_of(at[3]));
            at += 4;
        } else {
            return false;
        }
    }
    text->size = (size_t)(to - text->at);
    return true;
}

/* ---- CSV ---- */

/* Append a field to text. false: its quotes are wrong. */
static bool record_take_csv(struct json_reader *cursor, struct buffer *text) {
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
        buffer_append(text, cursor->at, 1);
    }
    return false;
}

/* The fields end where ends say, in text. NULL, or what is wrong. */
static const char *record_parse_csv(struct json_reader cursor, struct buffer *text, size_t *ends) {
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

/* A string, whose content is appended to text. */
static bool record_take_string(struct json_reader *cursor, struct buffer *text) {
    size_t size_max = (size_t)(cursor->end - cursor->at) + 1;
    char *out = buffer_reserve(text, size_max);
    size_t size;
    if (out == NULL || !json_take_text(cursor, out, size_max, &size)) {
        return false;
    }
    buffer_commit(text, size);
    return true;
}

/* Take the name of a field, leaving nothing of it in text. -1: it is none. */
static int record_take_name(struct json_reader *cursor, struct buffer *text) {
    size_t begin = text->size;
    if (!record_take_string(cursor, text)) {
        return -1;
    }
    const struct bytes name = {.at = text->at + begin, .size = text->size - begin};
    int field = RECORD_FIELDS - 1;
    while (field >= 0 && !bytes_equal(name, bytes_from_text(names[field]))) {
        field--;
    }
    buffer_cut(text, begin);
    return field;
}

static const char *record_parse_json(struct json_reader cursor, struct buffer *text, size_t *begins,
                                     size_t *ends) {
    bool has[RECORD_FIELDS] = {false};
    if (!json_take(&cursor, '{')) {
        return "it does not begin with {";
    }
    do {
        int field = record_take_name(&cursor, text);
        if (field < 0 || has[field] || !json_take(&cursor, ':')) {
            return "the name of a field is unknown, or there twice";
        }
        has[field] = true;
        begins[field] = text->size;
        struct bytes number;
        if (json_take_number(&cursor, &number)) {
            buffer_append(text, number.at, number.size);
        } else if (!record_take_string(&cursor, text)) {
            return "a value is neither a string nor a number";
        }
        if (!text->is_broken && !record_unescape(text, begins[field])) {
            return "a backslash is followed by neither another one nor x and two digits";
        }
        ends[field] = text->size;
    } while (json_take(&cursor, ','));
    if (!json_take(&cursor, '}')) {
        return "it does not end with }";
    }
    return json_is_over(&cursor) ? NULL : "something follows the }";
}

static const char *record_parse(struct record_reader *reader, struct record *record) {
    struct buffer *text = &reader->text;
    size_t begins[RECORD_FIELDS] = {0};
    size_t ends[RECORD_FIELDS] = {0};
    struct json_reader cursor = {
        .at = reader->line.at, .end = reader->line.at + reader->line.size, .takes_controls = true};
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
        for (int i = 0; i < RECORD_FIELDS; i++) {
            if (!bytes_equal(record->at[i], bytes_from_text(names[i]))) {
                return record_refuse(reader, "the first line does not name the fields");
            }
        }
        return record_read(reader, record);
    }
    return wrong == NULL ? RECORD_READ : record_refuse(reader, wrong);
}

/* ---- layout and options ---- */

size_t record_print_options(const struct board_options *options, const struct board_state *state,
                            char *out) {
    size_t size = layout_print(&options->layout, out);
    return size + setting_options_print(options, state, out + size);
}

bool record_parse_options(struct bytes text, struct board_options *options,
                          struct board_state *state, char *error) {
    enum { WORDS_MAX = 1024 };
    struct bytes words[WORDS_MAX];
    size_t count = 0;
    const char *reason = NULL;
    char why[SETTING_ERROR_MAX] = ""; /* more than LAYOUT_ERROR_MAX */
    while (text.size > 0 && count < WORDS_MAX) {
        words[count] = bytes_take_word(&text);
        count += words[count].size > 0;
    }
    memset(options, 0, sizeof *options);
    *state = (struct board_state){.from_ms = 0};
    size_t layout_count = layout_count_words(words, count);
    if (layout_parse_words(words, layout_count, &options->layout, why) != LAYOUT_OK ||
        !setting_options_parse(SETTING_TAKES_STATE, words + layout_count, count - layout_count,
                               options, state, why)) {
        snprintf(error, RECORD_RULES_ERROR_MAX, "%.900s", why);
        return false;
    }
    if (!board_options_validate(options, &reason)) {
        snprintf(error, RECORD_RULES_ERROR_MAX, "%s", reason);
        return false;
    }
    if (!board_options_take_state(options, state)) {
        snprintf(error, RECORD_RULES_ERROR_MAX, "rules: their options contradict each other");
        return false;
    }
    return true;
}
