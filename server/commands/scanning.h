/* What SCAN, ZSCAN, HSCAN, LB.LIST and LB.BANS share: MATCH and COUNT, the limits of a step, and
 * the reply.
 *
 *     struct scanning scanning;                     or embedded, first, in what its options fill
 *     scanning_begin(&scanning, call, &glob);
 *     syntax_read(call, &scanning)                  with SCANNING_OPTIONS among the bindings
 *     cursor = ...                                  one step; it replies to scanning.found what
 *                                                   scanning_takes, and counts it
 *     scanning_end(&scanning, call, cursor) */
#ifndef SERVER_SCANNING_H
#define SERVER_SCANNING_H

#include <stddef.h>

#include "codec/glob.h"
#include "server/dispatch/syntax.h"
#include "skiplist/map.h"

enum { SCANNING_COUNT = 10 }; /* COUNT, if it is not given */

struct scanning {
    struct glob *glob; /* storage for the pattern */
    bool has_pattern;
    struct bytes pattern; /* as given */
    int64_t count;        /* COUNT: approximately so many in a step */
    /* Aside, because the cursor precedes it but is known only afterwards. */
    struct reply found;
    uint64_t found_count; /* values in found */
    struct buffer text;
};

/* Nothing is to be freed until something was found. */
void scanning_begin(struct scanning *scanning, const struct call *call, struct glob *glob);
/* Reply the next cursor and what was found. */
void scanning_end(struct scanning *scanning, const struct call *call, uint64_t cursor);

/* The pattern takes this text, or there is none. */
static inline bool scanning_takes(const struct scanning *scanning, struct bytes text) {
    return !scanning->has_pattern || glob_takes(scanning->glob, text);
}
struct scan_limits scanning_limits(const struct scanning *scanning);

/* keyspace_scan with these limits; count_max: more are not visited, whatever COUNT says. */
uint64_t scanning_keys(const struct scanning *scanning, const struct call *call, uint64_t cursor,
                       uint32_t count_max, registry_visit *visit, void *context);

bool scanning_read_pattern(const struct call *call, uint32_t index, void *target);
bool scanning_check_count(const struct call *call, uint32_t index, void *target);
#define SCANNING_OPTIONS                                                                           \
    {"MATCH", .read = scanning_read_pattern}, {                                                    \
        BIND("COUNT", struct scanning, count), .read = scanning_check_count                        \
    }

#endif
