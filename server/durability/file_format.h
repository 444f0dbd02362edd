/* The version of journals and snapshots: the two digits at the end of the eight bytes with which
 * both begin, "LBJRNL04" and "LBSNAP04".
 *
 *     1   the first
 *     2   journals have linked groups
 *     3   keys hold hashes, too
 *     4   the history of replication, in a database of the server's own
 *
 * A server reads files of every version up to its own. It writes its own, and appends to no other:
 * the version that wrote a file would not understand what is added. */
#ifndef SERVER_FILE_FORMAT_H
#define SERVER_FILE_FORMAT_H

#include <stdbool.h>
#include <string.h>

enum {
    FILE_FORMAT_LINKED = 2, /* the first one with linked groups */
    FILE_FORMAT = 4,        /* the one that is written */
    FILE_FORMAT_MAGIC = 8,  /* bytes */
};

/* prefix has 6 bytes, such as "LBJRNL". */
static inline void file_format_put(char *head, const char *prefix) {
    memcpy(head, prefix, FILE_FORMAT_MAGIC - 2);
    head[FILE_FORMAT_MAGIC - 2] = (char)('0' + FILE_FORMAT / 10);
    head[FILE_FORMAT_MAGIC - 1] = (char)('0' + FILE_FORMAT % 10);
}

/* The version of a file that begins so. 0: it is no such file, or of a later version. */
static inline unsigned file_format_of(const char *head, const char *prefix) {
    unsigned tens = (unsigned)head[FILE_FORMAT_MAGIC - 2] - '0';
    unsigned ones = (unsigned)head[FILE_FORMAT_MAGIC - 1] - '0';
    bool is_known = memcmp(head, prefix, FILE_FORMAT_MAGIC - 2) == 0 && tens < 10 && ones < 10 &&
                    tens * 10 + ones <= FILE_FORMAT;
    return is_known ? tens * 10 + ones : 0;
}

#endif
