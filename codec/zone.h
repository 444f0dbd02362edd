/* A time zone with changes of its offset (summer time), from a compiled file of tzdata: TZif, as
 * RFC 9636 describes it.
 *
 *       local clock   01:59:59 | 03:00:00            a gap: 02:30 does not exist
 *                     02:59:59 | 02:00:00            an overlap: 02:30 exists twice
 *
 * After the last change in the file its last line applies, a rule like CET-1CEST,M3.5.0,M10.5.0/3.
 * Times are seconds since 1970-01-01T00:00:00Z, local times the same without an offset. Reading
 * does no I/O: server/system/tzdata.h finds the files.
 *
 * Why not tzset and localtime: they know one zone at a time for the whole process, so switching is
 * unsafe beside other threads, and takes a lock and a look at the file each time. A look-up here
 * takes half a microsecond, a few after 2037, where the file has a rule instead of a list. */
#ifndef CODEC_ZONE_H
#define CODEC_ZONE_H

#include "codec/bytes.h"

enum {
    ZONE_NAME_MAX = 64,
    ZONE_FILE_MAX = 65536,       /* bytes of a file; tzdata's largest is a twentieth of that */
    ZONE_OFFSET_MAX = 26 * 3600, /* seconds; of either sign */
};

struct zone;

/* Is it a name as tzdata gives them: parts of letters, digits, '_', '-' and '+' that begin with a
 * letter, with '/' between them? So it never leads out of tzdata's directory. */
bool zone_is_name(struct bytes name);

/* Read a file, which may be damaged in any way. NULL: *reason says what is wrong with it, or that
 * there is no memory. zone_is_name(name) must hold. */
MUST_CHECK struct zone *zone_create(struct bytes name, struct bytes file, const char **reason);
/* A zone whose file is missing: its offset is 0. NULL: no memory. */
MUST_CHECK struct zone *zone_create_missing(struct bytes name);
void zone_destroy(struct zone *zone);

const char *zone_name(const struct zone *zone);
bool zone_is_missing(const struct zone *zone);

/* How far local time is ahead of UTC. */
int32_t zone_offset_s(const struct zone *zone, int64_t time_s);
/* When the local clock first shows this time or a later one: the first of two; in a gap, the end of
 * the gap. */
int64_t zone_reach_s(const struct zone *zone, int64_t local_s);
/* By how much the clock is set back at most, since 2000. */
int32_t zone_setback_s(const struct zone *zone);

#endif
