/* Lines of leaderboard.conf and their words, split as Redis does.
 *
 *     board  "weekly:\"eu\":*"  'o\'clock'      ->  [board] [weekly:"eu":*] [o'clock]
 *
 * Quotes may begin inside a word (a"b c"d is one word), and a closing quote must be followed by a
 * blank or the end of the line. */
#include "server/settings/setting_private.h"

#include <stdarg.h>

bool setting_fail(char *reason, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, SETTING_REASON_MAX, format, arguments);
    va_end(arguments);
    return false;
}

bool setting_fail_error(char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, SETTING_ERROR_MAX, format, arguments);
    va_end(arguments);
    return false;
}

struct setting_shown setting_show(struct bytes text) {
    struct setting_shown shown;
    size_t size = text.size <= SETTING_SHOWN_MAX ? text.size : SETTING_SHOWN_MAX - 3;
    for (size_t i = 0; i < size; i++) {
        char byte = text.at[i];
        shown.text[i] = byte >= ' ' && byte <= '~' ? byte : '?';
    }
    if (size < text.size) {
        memcpy(shown.text + size, "...", 3);
        size += 3;
    }
    shown.text[size] = '\0';
    return shown;
}

struct setting_shown setting_show_path(const char *path) {
    struct bytes text = bytes_from_text(path);
    if (text.size <= SETTING_SHOWN_MAX) {
        return setting_show(text);
    }
    size_t skipped = text.size - (SETTING_SHOWN_MAX - 3);
    struct setting_shown tail =
        setting_show((struct bytes){.at = text.at + skipped, .size = text.size - skipped});
    struct setting_shown shown;
    snprintf(shown.text, sizeof shown.text, "...%.*s", SETTING_SHOWN_MAX - 3, tail.text);
    return shown;
}

/* ---- Splitting ---- */

static bool is_blank(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool setting_words_is_silent(struct bytes line) {
    size_t i = 0;
    while (i < line.size && is_blank(line.at[i])) {
        i++;
    }
    return i == line.size || line.at[i] == '#';
}

bool setting_words_next_line(struct bytes *text, struct bytes *line) {
    if (text->size == 0) {
        return false;
    }
    const char *end = memchr(text->at, '\n', text->size);
    size_t size = end != NULL ? (size_t)(end - text->at) : text->size;
    size_t taken = end != NULL ? size + 1 : size;
    *line = (struct bytes){.at = text->at, .size = size};
    *text = (struct bytes){.at = text->at + taken, .size = text->size - taken};
    return true;
}

struct cutter {
    struct bytes line;
    size_t next;
    char *out; /* never ahead of the input: a word is at most as long as its text */
};

static bool has_next(const struct cutter *cutter) {
    return cutter->next < cutter->line.size;
}

static char peek(const struct cutter *cutter) {
    return cutter->line.at[cutter->next];
}

static int hex_digit(char byte) {
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

/* The character after a backslash in double quotes. */
static char take_escape(struct cutter *cutter) {
    char byte = cutter->line.at[cutter->next++];
    size_t left = cutter->line.size - cutter->next;
    if (byte == 'x' && left >= 2) {
        int high = hex_digit(cutter->line.at[cutter->next]);
        int low = hex_digit(cutter->line.at[cutter->next + 1]);
        if (high >= 0 && low >= 0) {
            cutter->next += 2;
            return (char)(unsigned char)(high << 4 | low);
        }
    }
    static const char letters[] = "nrtab";
    static const char meanings[] = "\n\r\t\a\b";
    const char *letter = byte != '\0' ? strchr(letters, byte) : NULL;
    return letter != NULL ? meanings[letter - letters] : byte;
}

/* The rest of a quoted part with its closing quote, which a blank or the end must follow. */
static bool take_quoted(struct cutter *cutter, char quote) {
    while (has_next(cutter)) {
        char byte = cutter->line.at[cutter->next++];
        if (byte == quote) {
            return !has_next(cutter) || is_blank(peek(cutter));
        }
        if (byte == '\\' && has_next(cutter) && quote == '"') {
            byte = take_escape(cutter);
        } else if (byte == '\\' && has_next(cutter) && peek(cutter) == '\'') {
            cutter->next++;
            byte = '\'';
        }
        *cutter->out++ = byte;
    }
    return false;
}

static bool take_word(struct cutter *cutter) {
    while (has_next(cutter) && !is_blank(peek(cutter))) {
        char byte = cutter->line.at[cutter->next++];
        if (byte == '"' || byte == '\'') {
            return take_quoted(cutter, byte);
        }
        *cutter->out++ = byte;
    }
    return true;
}

bool setting_words_split(struct bytes line, struct setting_words *words, char *reason) {
    words->count = 0;
    if (line.size > sizeof words->room) {
        return setting_fail(reason, "a line may have at most %d bytes", SETTING_LINE_MAX);
    }
    struct cutter cutter = {.line = line, .out = words->room};
    for (;;) {
        while (has_next(&cutter) && is_blank(peek(&cutter))) {
            cutter.next++;
        }
        if (!has_next(&cutter)) {
            return true;
        }
        if (words->count == SETTING_WORDS_MAX) {
            return setting_fail(reason, "a line may have at most %d words", SETTING_WORDS_MAX);
        }
        const char *begin = cutter.out;
        if (!take_word(&cutter)) {
            return setting_fail(reason,
                                "unbalanced quotes: a closing quote is missing, or is not followed "
                                "by a blank or the end of the line");
        }
        words->words[words->count++] =
            (struct bytes){.at = begin, .size = (size_t)(cutter.out - begin)};
    }
}

/* ---- Quoting ---- */

bool setting_words_is_of(struct bytes word, const char *others) {
    for (size_t i = 0; i < word.size; i++) {
        char byte = word.at[i];
        if (!(byte >= 'a' && byte <= 'z') && !(byte >= 'A' && byte <= 'Z') &&
            !(byte >= '0' && byte <= '9') && (byte == '\0' || strchr(others, byte) == NULL)) {
            return false;
        }
    }
    return true;
}

static size_t put_escaped(char *out, char byte) {
    static const char letters[] = "nrtab\"\\";
    static const char meanings[] = "\n\r\t\a\b\"\\";
    const char *meaning = byte != '\0' ? strchr(meanings, byte) : NULL;
    if (meaning != NULL) {
        out[0] = '\\';
        out[1] = letters[meaning - meanings];
        return 2;
    }
    if (byte >= ' ' && byte <= '~') {
        out[0] = byte;
        return 1;
    }
    static const char digits[] = "0123456789abcdef";
    out[0] = '\\';
    out[1] = 'x';
    out[2] = digits[(unsigned char)byte >> 4];
    out[3] = digits[(unsigned char)byte & 15];
    return 4;
}

size_t setting_words_quote(char *out, struct bytes word) {
    if (word.size > 0 && setting_words_is_of(word, "_-./:*?[]^,@%+=~")) {
        memcpy(out, word.at, word.size);
        return word.size;
    }
    size_t size = 0;
    out[size++] = '"';
    for (size_t i = 0; i < word.size; i++) {
        size += put_escaped(out + size, word.at[i]);
    }
    out[size++] = '"';
    return size;
}

/* ---- Did you mean ---- */

static unsigned min_of(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* Edit distance: letters to insert, delete, change or swap with their neighbour (optimal string
 * alignment). Both texts have at most SETTING_SHOWN_MAX bytes. */
static unsigned slips_between(struct bytes a, struct bytes b) {
    unsigned rows[3][SETTING_SHOWN_MAX + 1];
    for (unsigned j = 0; j <= b.size; j++) {
        rows[0][j] = j;
    }
    for (unsigned i = 1; i <= a.size; i++) {
        const unsigned *before = rows[(i - 1) % 3];
        unsigned *row = rows[i % 3];
        row[0] = i;
        for (unsigned j = 1; j <= b.size; j++) {
            unsigned change = before[j - 1] + (a.at[i - 1] != b.at[j - 1]);
            row[j] = min_of(change, 1 + min_of(before[j], row[j - 1]));
            if (i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1]) {
                row[j] = min_of(row[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    return rows[a.size % 3][b.size];
}

/* The word that this one is probably a typing error of; NULL: none is close. */
static const char *find_nearest(struct bytes word, setting_words_next *next, const void *context) {
    if (word.size > SETTING_SHOWN_MAX) {
        return NULL;
    }
    const char *nearest = NULL;
    /* Up to one error in four letters counts as a typing error; more is another word. */
    unsigned fewest = (unsigned)word.size / 4 + 1;
    const char *candidate;
    for (uint32_t i = 0; (candidate = next(context, i)) != NULL; i++) {
        struct bytes text = bytes_from_text(candidate);
        if (text.size > SETTING_SHOWN_MAX) {
            continue;
        }
        unsigned slips = slips_between(word, text);
        if (slips < fewest || (slips == fewest && nearest == NULL && slips < text.size)) {
            fewest = slips;
            nearest = candidate;
        }
    }
    return nearest;
}

bool setting_words_fail_unknown(char *reason, const char *what, struct bytes word,
                                setting_words_next *next, const void *context) {
    const char *nearest = find_nearest(word, next, context);
    return nearest == NULL ? setting_fail(reason, "%s '%s'", what, setting_show(word).text)
                           : setting_fail(reason, "%s '%s'; did you mean '%s'?", what,
                                          setting_show(word).text, nearest);
}
