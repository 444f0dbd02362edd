/* Words of a line -> members of an object. See log_json.h.
 *
 * No allocation, no locks, no printf: a crash report is written with it. */
#include "server/system/log_json.h"

#include "codec/json.h"

struct output {
    char *at;
    size_t size;
};

static void log_json_append(void *context, const char *at, size_t size) {
    struct output *out = context;
    memcpy(out->at + out->size, at, size);
    out->size += size;
}

static size_t log_json_count_digits(struct bytes text, size_t from) {
    size_t at = from;
    while (at < text.size && text.at[at] >= '0' && text.at[at] <= '9') {
        at++;
    }
    return at - from;
}

/* "12", "-3", "0.25": what JSON takes as it is. */
static bool log_json_is_number(struct bytes text) {
    enum { DIGITS_MAX = 15 }; /* a double holds them exactly */
    size_t at = text.size > 0 && text.at[0] == '-';
    size_t begin = at;
    at += log_json_count_digits(text, at);
    bool is_whole = at > begin && (at == begin + 1 || text.at[begin] != '0');
    if (at < text.size && text.at[at] == '.') {
        size_t digits = log_json_count_digits(text, ++at);
        at += digits;
        is_whole = is_whole && digits > 0;
    }
    return is_whole && at == text.size && text.size <= DIGITS_MAX;
}

static bool log_json_is_name_byte(char byte) {
    char lower = bytes_lower(byte);
    return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9') ||
           strchr("_-./", byte) != NULL;
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

static void log_json_put_message(struct json *json, struct bytes text) {
    bool is_first = true;
    json_begin_text(json, "message");
    while (text.size > 0) {
        struct word word = log_json_read_word(text);
        if (word.name.size == 0) {
            json_add_text(json, is_first ? BYTES("") : BYTES(" "));
            json_add_text(json, word.value);
            is_first = false;
        }
        text = (struct bytes){.at = text.at + word.size, .size = text.size - word.size};
    }
    json_end_text(json);
}

static bool log_json_is_taken(struct bytes name) {
    return bytes_equal(name, BYTES("time")) || bytes_equal(name, BYTES("level")) ||
           bytes_equal(name, BYTES("message"));
}

static void log_json_put_field(struct json *json, const struct word *word) {
    json_begin_text(json, NULL);
    json_add_text(json, word->name);
    json_add_text(json, log_json_is_taken(word->name) ? BYTES("_") : BYTES(""));
    json_end_key(json);
    if (!word->is_quoted && log_json_is_number(word->value)) {
        json_verbatim(json, NULL, word->value);
    } else {
        json_text(json, NULL, word->value);
    }
}

size_t log_json_print(char *out, struct bytes time, const char *level, struct bytes text) {
    struct output output = {.at = out};
    struct json json = {.append = log_json_append, .out = &output};
    json_open(&json, NULL, '{');
    json_text(&json, "time", time);
    json_text(&json, "level", bytes_from_text(level));
    log_json_put_message(&json, text);
    while (text.size > 0) {
        struct word word = log_json_read_word(text);
        if (word.name.size > 0) {
            log_json_put_field(&json, &word);
        }
        text = (struct bytes){.at = text.at + word.size, .size = text.size - word.size};
    }
    json_close(&json, '}');
    return output.size;
}
