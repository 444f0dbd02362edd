/* Lines of leaderboard.conf, their words, and messages about them. */
#include "server/settings/setting_private.h"

#include <stdarg.h>

#include "codec/bytes.h"

bool setting_words_fail(char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, SETTING_ERROR_MAX, format, arguments);
    va_end(arguments);
    return false;
}

struct bytes_shown setting_words_show_path(const char *path) {
    struct bytes text = bytes_from_text(path);
    if (text.size <= BYTES_SHOWN_MAX) {
        return bytes_show(text);
    }
    size_t skipped = text.size - (BYTES_SHOWN_MAX - 3);
    struct bytes_shown tail =
        bytes_show((struct bytes){.at = text.at + skipped, .size = text.size - skipped});
    struct bytes_shown shown;
    snprintf(shown.text, sizeof shown.text, "...%.*s", BYTES_SHOWN_MAX - 3, tail.text);
    return shown;
}

/* ---- Splitting ---- */

bool setting_words_is_silent(struct bytes line) {
    size_t i = 0;
    while (i < line.size && bytes_is_blank(line.at[i])) {
        i++;
    }
    return i == line.size || line.at[i] == '#';
}

bool setting_words_split(struct bytes line, struct setting_words *words, char *reason) {
    struct bytes word;
    char *out = words->room;
    enum bytes_word_status status;
    words->count = 0;
    if (line.size > sizeof words->room) {
        return setting_words_fail(reason, "a line may have at most %d bytes", SETTING_LINE_MAX);
    }
    while ((status = bytes_take_quoted(&line, &out, &word)) == BYTES_WORD_TAKEN) {
        if (words->count == SETTING_WORDS_MAX) {
            return setting_words_fail(reason, "a line may have at most %d words",
                                      SETTING_WORDS_MAX);
        }
        words->words[words->count++] = word;
    }
    return status == BYTES_WORDS_END ||
           setting_words_fail(reason,
                              "unbalanced quotes: a closing quote is missing, or is not followed "
                              "by a blank or the end of the line");
}

bool setting_words_check(const struct bytes *words, size_t count, char *reason) {
    for (size_t i = 0; i < count; i++) {
        if (words[i].size > 0 && memchr(words[i].at, '\0', words[i].size) != NULL) {
            return setting_words_fail(reason, "a zero byte is not allowed");
        }
    }
    return true;
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

static size_t setting_words_put_escaped(char *out, char byte) {
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
    out[0] = '\\';
    out[1] = 'x';
    bytes_print_hex((unsigned char)byte, out + 2);
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
        size += setting_words_put_escaped(out + size, word.at[i]);
    }
    out[size++] = '"';
    return size;
}

/* ---- Did you mean ---- */

static unsigned setting_words_min_of(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* Edit distance: letters to insert, delete, change or swap with their neighbour (optimal string
 * alignment). Both texts have at most BYTES_SHOWN_MAX bytes. */
static unsigned setting_words_slips_between(struct bytes a, struct bytes b) {
    unsigned rows[3][BYTES_SHOWN_MAX + 1];
    for (unsigned j = 0; j <= b.size; j++) {
        rows[0][j] = j;
    }
    for (unsigned i = 1; i <= a.size; i++) {
        const unsigned *before = rows[(i - 1) % 3];
        unsigned *row = rows[i % 3];
        row[0] = i;
        for (unsigned j = 1; j <= b.size; j++) {
            unsigned change = before[j - 1] + (a.at[i - 1] != b.at[j - 1]);
            row[j] = setting_words_min_of(change, 1 + setting_words_min_of(before[j], row[j - 1]));
            if (i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1]) {
                row[j] = setting_words_min_of(row[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    return rows[a.size % 3][b.size];
}

bool setting_words_fail_unknown(char *reason, const char *what, struct bytes word,
                                setting_words_next *next, const void *context) {
    const char *nearest = NULL;
    /* Up to one error in four letters counts as a typing error; more is another word. */
    unsigned fewest = (unsigned)word.size / 4 + 1;
    const char *candidate;
    for (uint32_t i = 0; (candidate = next(context, i)) != NULL; i++) {
        struct bytes text = bytes_from_text(candidate);
        if (word.size > BYTES_SHOWN_MAX || text.size > BYTES_SHOWN_MAX) {
            continue;
        }
        unsigned slips = setting_words_slips_between(word, text);
        if (slips < fewest || (slips == fewest && nearest == NULL && slips < text.size)) {
            fewest = slips;
            nearest = candidate;
        }
    }
    return nearest == NULL ? setting_words_fail(reason, "%s '%s'", what, bytes_show(word).text)
                           : setting_words_fail(reason, "%s '%s'; did you mean '%s'?", what,
                                                bytes_show(word).text, nearest);
}
