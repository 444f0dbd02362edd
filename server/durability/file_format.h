/* The version of journals and snapshots: the two digits at the end of the eight bytes with which
 * both begin, "LBJRNL06" and "LBSNAP06".
 *
 *     1   the first
 *     2   journals have linked groups
 *     3   keys hold hashes, too
 *     4   the history of replication, in a database of the server's own
 *     5   boards with tags
 *     6   boards with STALE, SETTLE, COPY, DECAY, DOUBLE or a league, and archives that are to be settled; ids
 *         of results, in a database of the server's own
 *
 * A server reads files of every version up to its own. It writes its own, and appends to no other:
 * the version that wrote a file would not understand what is added.
 *
 * A replica and its master may differ by one version (server/replication/wire.h): so version n can
 * still write a base of version n - 1, as long as no key holds what n has brought. */
#ifndef SERVER_FILE_FORMAT_H
#define SERVER_FILE_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    FILE_FORMAT_LINKED = 2, /* the first one with linked groups */
#ifdef TEST_FILE_FORMAT     /* a build of another version: make B/leaderboard-server-next */
    FILE_FORMAT = TEST_FILE_FORMAT,
#else
    FILE_FORMAT = 6, /* the one that is written */
#endif
    FILE_FORMAT_TAGS = 5, /* the first one with boards that have tags */
    FILE_FORMAT_CONTESTS =
        6, /* the first one with rules of contests, and DOUBLE: rules_need_contests_format */
    FILE_FORMAT_STREAMED = 4, /* the first one of which servers send each other groups and copies */
    FILE_FORMAT_MAGIC = 8,    /* bytes */
};

/* prefix has 6 bytes, such as "LBJRNL". */
static inline void file_format_put(char *head, const char *prefix, unsigned format) {
    memcpy(head, prefix, FILE_FORMAT_MAGIC - 2);
    head[FILE_FORMAT_MAGIC - 2] = (char)('0' + format / 10);
    head[FILE_FORMAT_MAGIC - 1] = (char)('0' + format % 10);
}

/* How a master's refusal begins: by it a replica knows a server of another version from a Redis. */
#define FILE_FORMAT_REFUSAL "ERR the replica's format is "

/* May a server of this version follow, or be followed? */
static inline bool file_format_is_near(uint64_t version) {
    return version >= FILE_FORMAT_STREAMED && version + 1 >= FILE_FORMAT &&
           version <= FILE_FORMAT + 1;
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
