/* One number for the format of everything that one server or module writes and another one reads: journals and
 * snapshots, which begin with "LBJOUR01" and "LBBASE01"; backups; the stream to replicas (server/replication/wire.h);
 * boards of DUMP; and the values and changes of the module (server/rdb/rdb_board.h, effect_bytes.h).
 *
 * Number 1 is frozen with the release of 1.0.0: tests/server/durability/format_1 has files of it, and
 * test_format.c how they are written. What builds before the release wrote is named and refused.
 *
 * From the release on, one format back is carried. Whoever changes what the bytes mean makes number n + 1:
 *
 *   - file_format_is_read takes n, too, by which readers decode; what reads n - 1 goes, and its sample;
 *   - a sample directory of n + 1 comes;
 *   - a server goes on behind files of n in files of its own: an older program would not understand what is added;
 *   - a replica whose n + 1 is refused says n, and reads the stream of n. So replicas are upgraded first. A master
 *     refuses replicas of n. */
#ifndef SERVER_FILE_FORMAT_H
#define SERVER_FILE_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FILE_FORMAT = 1,
    FILE_FORMAT_BEFORE = 100, /* of a build before 1.0.0 */
    FILE_FORMAT_MAGIC = 8,    /* bytes */
    FILE_FORMAT_ERROR_MAX = 160,
};

static inline bool file_format_is_read(uint64_t format) {
    return format == FILE_FORMAT;
}

enum file_format_kind { FILE_FORMAT_JOURNAL, FILE_FORMAT_BASE };
/* The first FILE_FORMAT_MAGIC bytes of a file of this format. */
void file_format_put(char *head, enum file_format_kind kind);
/* The format of a file that begins so: 1 to 99, or FILE_FORMAT_BEFORE. 0: it is no such file. */
unsigned file_format_of(const char *head, enum file_format_kind kind);
/* Why this format is not read. error: FILE_FORMAT_ERROR_MAX bytes, which are returned. */
const char *file_format_explain(unsigned format, char *error);

/* How a master's refusal begins, by which a replica knows a server of another format from a Redis; and what to do. */
#define FILE_FORMAT_REFUSAL "ERR the replica's format is "
#define FILE_FORMAT_ADVICE  "they must be equal. Upgrade the older server"

#endif
