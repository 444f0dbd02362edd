/* Time zones by name, from the compiled files of the system's tzdata: $TZDIR, or
 * /usr/share/zoneinfo.
 *
 * Each file is read once, when its zone is first named, and kept until the process ends: so an
 * update of tzdata is taken at the next start, for all boards at once. What is kept is bounded by
 * what tzdata has, and an unknown name leaves nothing behind, or one of a few places. Any thread may call these. */
#ifndef SERVER_TZDATA_H
#define SERVER_TZDATA_H

#include "codec/zone.h"

enum { TZDATA_ERROR_MAX = 256 };

/* NULL: error (TZDATA_ERROR_MAX) says why. */
MUST_CHECK const struct zone *tzdata_find(struct bytes name, char *error);
/* For names read from files and payloads: a zone that cannot be read is one that zone_is_missing, of this
 * name; behind many such names, of no name. NULL: not a name, or no memory. */
MUST_CHECK const struct zone *tzdata_find_anyway(struct bytes name);
/* Why tzdata_find fails for the name of a missing zone. */
void tzdata_explain(const struct zone *zone, char *error);
/* Free all zones, when nothing refers to them any more: for tests. */
void tzdata_deinit(void);

#endif
