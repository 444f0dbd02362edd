/* Words of a line -> members of an object. See log_json.h.
 *
 * No allocation, no locks, no printf: a crash report is written with it. */
#include "server/system/log_json.h"

struct output {
    char *at;
    size_t size;
};

static void log_json_put(struct output *out, const char *text, size_t size) {
    memcpy(out->at + out->size, text, size);
    out->size += size;
}

static void log_json_put_text(struct output *out, const char *text) {
    log_json_put(out, text, strlen(text));
}

/* ---- strings ---- */

static bool log_json_is_between(char byte, unsigned low, unsigned high) {
    return (unsigned char)byte >= low && (unsigned char)byte <= high;
}

/* Bytes of the UTF-8 sequence at the front, by table 3-7 of the Unicode Standard; 0: none. */
static size_t log_json_utf8_size(struct bytes text) {
    unsigned first = (unsigned char)text.at[0];
    if (first < 0x80) {
        return 1;
    }
    size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size < size) {
        return 0;
    }
    unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (!log_json_is_between(text.at[1], low, high)) {
        return 0;
    }
    for (size_t i = 2; i < size; i++) {
        if (!log_json_is_between(text.at[i], 0x80, 0xbf)) {
            return 0;
        }
    }
    return size;
}

static void log_json_put_character(struct output *out, struct bytes text, size_t size) {
    if (size == 0) {
        log_json_put_text(out, "\xef\xbf\xbd");
        return;
    }
    if ((unsigned char)text.at[0] < ' ') {
        log_json_put_text(out, "?"); /* as in the text form */
        return;
    }
    if (text.at[0] == '"' || text.at[0] == '\\') {
        log_json_put_text(out, "\\");
    }
    log_json_put(out, text.at, size);
}

static void log_json_put_content(struct output *out, struct bytes text) {
    while (text.size > 0) {
        size_t size = log_json_utf8_size(text);
        log_json_put_character(out, text, size);
        size += size == 0;
        text = (struct bytes){.at = text.at + size, .size = text.size - size};
    }
}

static void log_json_put_string(struct output *out, struct bytes text) {
    log_json_put_text(out, "\"");
    log_json_put_content(out, text);
    log_json_put_text(out, "\"");
}

/* ---- fields ---- */

/* "12", "-3", "0.25": what JSON takes as it is. */
static bool log_json_is_number(struct bytes text) {
    enum { DIGITS_MAX = 15 }; /* a double holds them exactly */
    size_t at = text.size > 0 && text.at[0] == '-';
    size_t begin = at;
    while (at < text.size && log_json_is_between(text.at[at], '0', '9')) {
        at++;
    }
    bool is_whole = at > begin && (at == begin + 1 || text.at[begin] != '0');
    if (at < text.size && text.at[at] == '.') {
        size_t point = at++;
        while (at < text.size && log_json_is_between(text.at[at], '0', '9')) {
            at++;
        }
        is_whole = is_whole && at > point + 1;
    }
    return is_whole && at == text.size && text.size <= DIGITS_MAX;
}

static bool log_json_is_name_byte(char byte) {
    return log_json_is_between(byte, 'a', 'z') || log_json_is_between(byte, 'A', 'Z') ||
           log_json_is_between(byte, '0', '9') || strchr("_-./", byte) != NULL;
}

/* One word at the front of a line. */
struct word {
    struct bytes name, value; /* name.size 0: no field, value is the word */
    bool is_quoted;
    size_t size; /* with what follows it: a blank */
};

static size_t log_json_find(struct bytes text, size_t from, char byte) {
    const char *found = from < text.size ? memchr(text.at + from, byte, text.size - from) : NULL;
    return found != NULL ? (size_t)(found - text.at) : text.size;
}

static struct word log_json_read_word(struct bytes text) {
    size_t end = log_json_find(text, 0, ' ');
    size_t name_size = 0;
    while (name_size < end && text.at[name_size] != '\0' &&
           log_json_is_name_byte(text.at[name_size])) {
        name_size++;
    }
    struct word word = {.value = {.at = text.at, .size = end}};
    if (name_size > 0 && name_size < end && text.at[name_size] == '=') {
        size_t begin = name_size + 1;
        word.name = (struct bytes){.at = text.at, .size = name_size};
        word.is_quoted = begin < text.size && text.at[begin] == '"';
        if (word.is_quoted) {
            end = log_json_find(text, ++begin, '"');
        }
        word.value = (struct bytes){.at = text.at + begin, .size = end - begin};
        end = word.is_quoted ? log_json_find(text, end, ' ') : end;
    }
    word.size = end < text.size ? end + 1 : end;
    return word;
}

static void log_json_put_message(struct output *out, struct bytes text) {
    bool is_first = true;
    while (text.size > 0) {
        struct word word = log_json_read_word(text);
        if (word.name.size == 0) {
            log_json_put_text(out, is_first ? "" : " ");
            log_json_put_content(out, word.value);
            is_first = false;
        }
        text = (struct bytes){.at = text.at + word.size, .size = text.size - word.size};
    }
}

static bool log_json_is_taken(struct bytes name) {
    return bytes_equal(name, BYTES("time")) || bytes_equal(name, BYTES("level")) ||
           bytes_equal(name, BYTES("message"));
}

static void log_json_put_fields(struct output *out, struct bytes text) {
    while (text.size > 0) {
        struct word word = log_json_read_word(text);
        if (word.name.size > 0) {
            log_json_put_text(out, ",\"");
            log_json_put_content(out, word.name);
            log_json_put_text(out, log_json_is_taken(word.name) ? "_\":" : "\":");
            if (!word.is_quoted && log_json_is_number(word.value)) {
                log_json_put(out, word.value.at, word.value.size);
            } else {
                log_json_put_string(out, word.value);
            }
        }
        text = (struct bytes){.at = text.at + word.size, .size = text.size - word.size};
    }
}

size_t log_json_print(char *out, struct bytes time, const char *level, struct bytes text) {
    struct output output = {.at = out};
    log_json_put_text(&output, "{\"time\":");
    log_json_put_string(&output, time);
    log_json_put_text(&output, ",\"level\":");
    log_json_put_string(&output, bytes_from_text(level));
    log_json_put_text(&output, ",\"message\":\"");
    log_json_put_message(&output, text);
    log_json_put_text(&output, "\"");
    log_json_put_fields(&output, text);
    log_json_put_text(&output, "}");
    return output.size;
}
