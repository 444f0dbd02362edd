/* A scan in hash order, in steps, shared by SCAN of keys and ZSCAN of members.
 *
 *     gather    the ids of the entries of one or more buckets   skiplist/map.h
 *     find      their names whose hashes are in those buckets   the owner; many at a time, so that
 *                                                               cache misses overlap
 *     visit     in order of the upper halves of the hashes,     the owner
 *               until the count or the work is used up
 *
 * The cursor is an upper half of a hash, and a step may end before any of them. So every step is
 * bounded, whatever a bucket holds, and a name that exists during all steps is visited at least
 * once: its hash does not change when blocks, ids and tables do.
 *
 * Work is counted, not measured, in units of about a nanosecond on an idle machine, so steps are
 * the same in every run. */
#ifndef SKIPLIST_SCAN_H
#define SKIPLIST_SCAN_H

#include "skiplist/map.h"

/* The end of a scan. Cursors are below. */
#define SCAN_END (UINT64_C(1) << 32)

enum {
    SCAN_CANDIDATES_MAX = 64,
    SCAN_ITEMS_MAX = 128,
};

/* Limits of one step. At least one name is visited, or some buckets are passed. */
struct scan_limits {
    uint32_t count;     /* names to visit, approximately */
    uint64_t work_max;  /* units */
    uint64_t byte_work; /* units per byte of a name for visiting it, in addition to copying it */
};

/* An id that may have names in the range from .. last (upper halves of hashes). */
struct scan_candidate {
    uint32_t id;
    uint32_t from;
    uint32_t last;
};

/* A name in the range. */
struct scan_item {
    uint32_t prefix; /* the upper half of its hash */
    uint32_t index;  /* this and the following fields are for the owner's visit */
    uint32_t offset;
    uint32_t name_size; /* bytes */
    const void *at;
};

struct scan;
/* Prefetch what find will read first. */
typedef void scan_fetch(const void *owner, uint32_t id);
/* Pass every name that is in the range of its candidate to scan_add. */
typedef void scan_find(const void *owner, const struct scan_candidate *candidates, uint32_t count,
                       struct scan *scan);
typedef void scan_visit(void *context, const struct scan_item *item);

struct scan {
    const void *owner; /* the first three are set by the caller, for scan_map */
    scan_fetch *fetch;
    scan_find *find;
    scan_visit *visit; /* this and the following fields are private to scan.c */
    void *context;
    const struct scan_limits *limits;
    uint64_t next; /* everything before has been visited or is among the items, */
    uint64_t cut;  /* but for what begins here, for which there was no room */
    uint64_t work;
    uint32_t visited;
    uint32_t last_prefix; /* of the last name visited */
    uint32_t candidate_count;
    uint32_t gathered_count; /* candidates since items were last visited */
    uint32_t item_count;
    struct scan_candidate candidates[SCAN_CANDIDATES_MAX];
    struct scan_item items[SCAN_ITEMS_MAX];
    uint32_t step_from; /* start of the map step that has been gathered */
    uint64_t step_end;
};

/* Begin a step. */
void scan_init(struct scan *scan, const struct scan_limits *limits, scan_visit *visit,
               void *context);
void scan_add(struct scan *scan, const struct scan_item *item);

/* One step of a scan over the map. Returns the next cursor, 0 at the end. */
uint64_t scan_map(struct scan *scan, const struct map *map, uint64_t cursor);
/* The same when all items have been added already. */
uint64_t scan_items(struct scan *scan);
/* After scan_items, which had no room for more: may they be added now, and visited in this step? */
bool scan_has_room(const struct scan *scan);
/* The total work of visiting names of these sizes. */
uint64_t scan_visit_work(const struct scan_limits *limits, uint64_t count, uint64_t name_bytes);

#endif
