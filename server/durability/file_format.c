/* How files begin. See file_format.h. */
#include "server/durability/file_format.h"

#include <stdio.h>
#include <string.h>

enum { LETTERS = FILE_FORMAT_MAGIC - 2 };

static const char letters[][LETTERS + 1] = {
    [FILE_FORMAT_JOURNAL] = "LBJOUR", [FILE_FORMAT_BASE] = "LBBASE"};
static const char letters_before[][LETTERS + 1] = {
    [FILE_FORMAT_JOURNAL] = "LBJRNL", [FILE_FORMAT_BASE] = "LBSNAP"};

void file_format_put(char *head, enum file_format_kind kind) {
    memcpy(head, letters[kind], LETTERS);
    head[LETTERS] = '0' + FILE_FORMAT / 10;
    head[LETTERS + 1] = '0' + FILE_FORMAT % 10;
}

unsigned file_format_of(const char *head, enum file_format_kind kind) {
    unsigned tens = (unsigned)head[LETTERS] - '0';
    unsigned ones = (unsigned)head[LETTERS + 1] - '0';
    if (tens > 9 || ones > 9) {
        return 0;
    }
    return memcmp(head, letters[kind], LETTERS) == 0          ? tens * 10 + ones
           : memcmp(head, letters_before[kind], LETTERS) == 0 ? FILE_FORMAT_BEFORE
                                                              : 0;
}

const char *file_format_explain(unsigned format, char *error) {
    if (format == FILE_FORMAT_BEFORE) {
        snprintf(error, FILE_FORMAT_ERROR_MAX,
                 "a version before 1.0 wrote it. Export it with that one "
                 "(leaderboard-server --export), and --import it with this one");
    } else {
        snprintf(error, FILE_FORMAT_ERROR_MAX,
                 "a newer version wrote it, in format %u: this one reads format %d", format,
                 FILE_FORMAT);
    }
    return error;
}
