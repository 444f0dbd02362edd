/* See words.h. */
#include "codec/words.h"

/* Decode the backslash sequence at *at, inside double quotes. */
static char words_read_escape(const char **at, const char *end) {
    static const char letters[] = "nrtab";
    static const char meanings[] = "\n\r\t\a\b";
    const char *p = *at + 1;
    if (end - p >= 3 && p[0] == 'x' && bytes_hex_value(p[1]) >= 0 && bytes_hex_value(p[2]) >= 0) {
        *at = p + 3;
        return (char)(bytes_hex_value(p[1]) * 16 + bytes_hex_value(p[2]));
    }
    *at = p + 1;
    const char *letter = *p != '\0' ? strchr(letters, *p) : NULL;
    return letter != NULL ? meanings[letter - letters] : *p;
}

/* Decode from the quote at *at to the closing quote. false: unbalanced quotes. */
static bool words_read_quoted(const char **at, const char *end, char **out) {
    char quote = *(*at)++;
    while (*at < end) {
        const char *p = *at;
        bool has_next = p + 1 < end;
        if (*p == quote) {
            (*at)++;
            return !has_next || words_is_blank(p[1]);
        }
        if (*p == '\\' && has_next && quote == '"') {
            *(*out)++ = words_read_escape(at, end);
        } else if (*p == '\\' && has_next && p[1] == '\'') {
            *(*out)++ = '\'';
            *at += 2;
        } else {
            *(*out)++ = *p;
            (*at)++;
        }
    }
    return false;
}

enum words_status words_take(struct bytes *line, char **out, struct bytes *word) {
    const char *at = line->at;
    const char *end = line->at + line->size;
    while (at < end && words_is_blank(*at)) {
        at++;
    }
    if (at == end) {
        return WORDS_END;
    }
    const char *begin = at;
    while (at < end && (*at == '\0' || strchr(" \t\r\n\"'", *at) == NULL)) {
        at++;
    }
    *word = (struct bytes){.at = begin, .size = (size_t)(at - begin)};
    if (at < end && (*at == '"' || *at == '\'')) {
        char *decoded = *out;
        memcpy(decoded, begin, word->size);
        *out += word->size;
        if (!words_read_quoted(&at, end, out)) {
            return WORDS_UNBALANCED;
        }
        *word = (struct bytes){.at = decoded, .size = (size_t)(*out - decoded)};
    }
    *line = (struct bytes){.at = at, .size = (size_t)(end - at)};
    return WORDS_TAKEN;
}
