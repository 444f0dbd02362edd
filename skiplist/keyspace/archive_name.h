/* Names of archives: "daily@2026-11-16", and "daily@2026-11-16.2" where that was taken. */
#ifndef SKIPLIST_ARCHIVE_NAME_H
#define SKIPLIST_ARCHIVE_NAME_H

#include "codec/period.h"
#include "skiplist/keyspace/registry.h"

/* Write what the name of the archive of the period that contains this time has behind that of its board to
 * out (REGISTRY_SUFFIX_MAX): "@2026-11-16". Returns the size. */
size_t archive_name_print_suffix(const struct period *period, int64_t time_ms, char *out);
/* The whole name, in out (REGISTRY_NAME_MAX). */
struct bytes archive_name_print(struct bytes board, const struct period *period, int64_t time_ms,
                                char *out);
/* If this may be an archive's name, that of its board: what is before the '@'. false: it is none, such as "{a@2}:1:1". */
MUST_CHECK bool archive_name_find_board(struct bytes name, struct bytes *board);

#endif
