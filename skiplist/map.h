/* A hash map from 64-bit hashes to 32-bit ids. It stores neither keys nor values: a slot holds a
 * byte of the hash (the tag) and a field with the id and as many more bits of the hash as fit beside
 * it. A look-up yields candidates, which the owner compares with the actual key.
 *
 * Drawing of one bucket, a cache line, of a table whose fields have 20 bits:
 *
 *     +-------------+----------------------+----------+
 *     | 18 tags     | 18 fields            | overflow |     tag 0: the slot is free
 *     | 1 byte each | 20 bits each         | 1 byte   |     overflow: number of entries that probed
 *     +-------------+----------------------+----------+     past this bucket, or MAP_OVERFLOW_MANY
 *
 * Tables with few ids, those of boards of up to some thousand members, have fields of 8 bits (30 slots a bucket); tables
 * with more ids than that drawing's of 24 bits (15 slots), then of 28 bits (14 slots).
 *
 * The home bucket is hash32 * bucket_count >> 32, where hash32 is the hash's upper half. So any
 * bucket count works, and buckets are in the order of hashes: scans survive growth. A full bucket
 * overflows into the next one and counts that, so that a look-up stops at the first bucket without
 * overflow and a removal needs no tombstones (as in F14: engineering.fb.com, "Open-sourcing F14",
 * 2019). A counter that has reached MAP_OVERFLOW_MANY stays there; map_step makes another table when
 * many of the entries that were there then are gone. Tag and field have bits of the hash's lower half.
 *
 * Rehashing is incremental. Meanwhile there are two tables, and ids are moved one by one: entries
 * with id < cursor or id >= id_limit are in the new table, the others in the old one. Each step
 * asks the owner for the hashes of a few ids (map_hashes), so no insert pays for a whole rehash; only few ids
 * move at once.
 * Either table could hold every entry, so an entry may change its id at any time without
 * allocating. Tables consist of 64 KiB segments, which are also allocated and freed one by one,
 * because clearing a large table would take longer than everything else in a step.
 *
 * Whoever removes what a scan returns removes in the order of hashes. What is left then lies close
 * together, and would overflow every bucket of a table made for its number alone: a look-up would
 * read all of them. So entries are counted by groups of neighbouring buckets, and a table shrinks
 * only when the counts say that the smaller one overflows a little at most.
 *
 * Entries (hash, id) may repeat; the map is a multiset of pairs. Not thread-safe. */
#ifndef SKIPLIST_MAP_H
#define SKIPLIST_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define MAP_HAS_NEON
#endif

#include "codec/bytes.h"
#include "codec/check.h"
#include "codec/memory.h"

#ifdef SKIPLIST_TINY
#define MAP_BUCKET_SIZE  32
#define MAP_SEGMENT_BITS 2
#define MAP_GROUP_BITS   2
#else
#define MAP_BUCKET_SIZE  64
#define MAP_SEGMENT_BITS 10
#define MAP_GROUP_BITS   6
#endif

enum {
#ifdef SKIPLIST_TINY
    MAP_ID_BITS_MIN = 2,
    MAP_FIELD_BITS_FEW = 4,  /* of a field: these, and if ids need more, */
    MAP_FIELD_BITS_MIN = 12, /* these, and so on */
    MAP_FIELD_BITS_MID = 20,
#else
    MAP_ID_BITS_MIN = 8,
    MAP_FIELD_BITS_FEW = 8,
    MAP_FIELD_BITS_MIN = 20,
    MAP_FIELD_BITS_MID = 24,
#endif
    MAP_ID_BITS_MAX = 28, /* the widest field */
    MAP_OVERFLOW_MANY = UINT8_MAX,
    MAP_SEGMENT_BUCKETS = 1 << MAP_SEGMENT_BITS,
    MAP_HASHES_MAX = 256, /* most entries of one id */
    /* Tables with fewer buckets are not shrunk. */
    MAP_SHRINK_BUCKETS_MIN = 8,
};
/* Ids are below this. */
#define MAP_ID_END (UINT32_C(1) << MAP_ID_BITS_MAX)

/* Write the hashes of all current entries of id to hashes (room for MAP_HASHES_MAX) and return
 * their number; 0 for an id that is not in use. Called only from map_reserve, map_step and
 * map_validate. */
typedef uint32_t map_hashes(const void *owner, uint32_t id, uint64_t *hashes);

struct map_bucket {
    uint8_t slots[MAP_BUCKET_SIZE - 1]; /* all tags, then all fields */
    uint8_t overflow;
};

struct map_table {
    struct map_bucket *
        *segments; /* each aligned to a cache line, preceded by its counts of groups */
    uint32_t bucket_count;
    uint32_t segment_count; /* 0: no table; segments is then one shared empty bucket */
    uint64_t entry_count;
    uint64_t crowd;     /* entries when a counter last reached MAP_OVERFLOW_MANY; 0: none has */
    uint32_t id_mask;   /* the field's id bits */
    uint32_t hash_mask; /* its other bits, which are of the hash */
    uint32_t slot_mask; /* a bit for each slot of a bucket */
    uint8_t slots;      /* of a bucket */
    uint8_t field_bits;
    uint8_t field_first; /* the first field's first bit: behind the tags */
};

struct map {
    struct map_table table;
    struct map_table next; /* the table being moved to, or being prepared for that */
    struct map_table last; /* the table moved from, being freed */
    uint32_t cursor;       /* while moving: ids below are in next */
    uint32_t id_limit;     /* while moving: ids from here on are in next too */
    uint32_t id_end; /* every id is below: beyond the largest one put, or as given by the owner */
    uint32_t waited; /* reservations since a segment was added to next */
    /* No smaller table until there are fewer entries: they lay too close together. */
    uint64_t crowded_count;
    bool is_moving; /* the entries are in two tables */
    map_hashes *hashes;
    const void *owner;
};

/* An empty map without heap memory. owner is borrowed and is the argument of hashes. */
void map_init(struct map *map, map_hashes *hashes, const void *owner);
/* Free the tables; the map is then in the state after map_init. */
void map_deinit(struct map *map);
/* The same one segment at a time; true when done. In between the map may not be used otherwise. */
MUST_CHECK bool map_deinit_step(struct map *map);

/* Copy the entries to `to`, which has just been initialised with an owner that is also a copy.
 * false: no memory; to is then empty. */
MUST_CHECK bool map_copy(const struct map *map, struct map *to);

static inline uint64_t map_count(const struct map *map) {
    return map->table.entry_count + map->next.entry_count;
}

/* Make room for count more entries, and advance an unfinished rehash by one step. Every id,
 * including those in the map, is below id_end. Call before a change, while map and owner are
 * consistent.
 *
 * false: no memory, or id_end is past MAP_ID_END; the entries are then unchanged. */
MUST_CHECK bool map_reserve(struct map *map, uint32_t count, uint32_t id_end);

/* One step of map_reserve for an empty map, which takes many steps for a large count. A step takes
 * about as long as clearing one segment. *is_ready: done. false: as in map_reserve. */
MUST_CHECK bool map_prepare(struct map *map, uint32_t count, uint32_t id_end, bool *is_ready);

/* Upper bound of the bytes that such a map_reserve allocates; 0 while there is room. */
size_t map_growth_size(const struct map *map, uint32_t count, uint32_t id_end);

/* Add an entry, for which map_reserve has made room. */
void map_put(struct map *map, uint64_t hash, uint32_t id);
/* Remove one entry (hash, id), which is in the map. */
void map_remove(struct map *map, uint64_t hash, uint32_t id);
/* Change the id of the entry (hash, id), which is in the map, to new_id, which is below the
 * reserved id_end. Does not allocate. */
void map_replace(struct map *map, uint64_t hash, uint32_t id, uint32_t new_id);

/* Advance an unfinished rehash by one step, or abandon it when the entries it was meant for have
 * been removed; start to shrink when the table is mostly empty. Never fails. Call after removals,
 * when map and owner are consistent again; every id is below id_end.
 *
 * true: another step will make progress. Once it returns false, the table sizes are in proportion
 * to the number of entries (or there was no memory for a smaller table, or the entries' hashes are
 * close together). */
bool map_step(struct map *map, uint32_t id_end);
/* Is a table being prepared or moved to? */
static inline bool map_has_next(const struct map *map) {
    return map->next.segment_count > 0;
}
/* Is this table so large that a smaller one would do for the entries? */
static inline bool map_is_too_large(const struct map *map, const struct map_table *table) {
    return table->bucket_count >= MAP_SHRINK_BUCKETS_MIN &&
           map_count(map) * 10 < (uint64_t)table->bucket_count * (3 * table->slots);
}
/* May map_step begin a smaller table? */
static inline bool map_may_shrink(const struct map *map) {
    return map_is_too_large(map, &map->table) && map_count(map) < map->crowded_count;
}
/* May most of the buckets whose counters say MAP_OVERFLOW_MANY overflow no more? */
static inline bool map_is_worn(const struct map *map) {
    return map_count(map) * 4 < map->table.crowd * 3;
}
/* Does map_step have work left? Called on every removal. */
static inline bool map_is_unfinished(const struct map *map) {
    return map_has_next(map) || map->last.segment_count > 0 || map_may_shrink(map) ||
           map_is_worn(map) || (map_count(map) == 0 && map->table.segment_count > 0);
}
/* Does the map hold so little memory that map_deinit need not run in steps? */
bool map_is_small(const struct map *map);

/* Visit the id of every entry with this hash, and possibly ids with other hashes:
 *
 *     map_find(map, hash, &find);
 *     while (map_find_next(&find, &id)) { compare; }
 *
 * Valid until the next change. An id may be returned more than once. */
struct map_find {
    const struct map_table *table;
    const struct map_table *next_table; /* NULL: table is the last */
    uint64_t hash;
    const struct map_bucket *at; /* the current bucket */
    uint32_t bucket;             /* its index */
    uint32_t buckets_left;       /* bounds the search when every bucket overflows */
    uint32_t matches;            /* slots of the bucket not yet compared, one bit each */
};

static inline struct map_bucket *map_bucket(const struct map_table *table, uint32_t index) {
    return &table->segments[index >> MAP_SEGMENT_BITS][index & (MAP_SEGMENT_BUCKETS - 1)];
}

static inline uint32_t map_home(const struct map_table *table, uint64_t hash) {
    return (uint32_t)(((hash >> 32) * table->bucket_count) >> 32);
}

static inline uint8_t map_tag(uint64_t hash) {
    uint8_t tag = (uint8_t)(hash >> 24);
    return tag != 0 ? tag : 1;
}

/* Where the field of a slot is: shifted so far in four bytes. */
struct map_place {
    uint32_t offset;
    uint32_t shift;
};

static inline struct map_place map_place(const struct map_table *table, uint32_t slot) {
    uint32_t first = table->field_first + slot * table->field_bits;
    return (struct map_place){.offset = first >> 3, .shift = first & 7};
}

/* The field of a slot, with what is beside it in higher bits. */
static inline uint32_t map_field(const struct map_table *table, const struct map_bucket *bucket,
                                 uint32_t slot) {
    struct map_place place = map_place(table, slot);
    return bytes_get_u32((const char *)bucket->slots + place.offset) >> place.shift;
}

#ifdef MAP_HAS_NEON
/* The bytes that are equal, a bit each. One bit of each is kept, another one for each of eight
 * neighbours; then neighbours are added three times. */
static inline uint32_t map_equal_bytes(const uint8_t *bytes, uint8_t wanted) {
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t sum = vandq_u8(vceqq_u8(vld1q_u8(bytes), vdupq_n_u8(wanted)), vld1q_u8(bits));
    sum = vpaddq_u8(sum, sum);
    sum = vpaddq_u8(sum, sum);
    sum = vpaddq_u8(sum, sum);
    return vgetq_lane_u16(vreinterpretq_u16_u8(sum), 0);
}
#elif defined(__SSE2__)
static inline uint32_t map_equal_bytes(const uint8_t *bytes, uint8_t wanted) {
    __m128i equal = _mm_cmpeq_epi8(_mm_load_si128((const __m128i *)(const void *)bytes),
                                   _mm_set1_epi8((char)wanted));
    return (uint32_t)_mm_movemask_epi8(equal);
}
#else
static inline uint32_t map_equal_bytes(const uint8_t *bytes, uint8_t wanted) {
    uint32_t matches = 0;
    for (unsigned i = 0; i < 16; i++) {
        matches |= (uint32_t)(bytes[i] == wanted) << i;
    }
    return matches;
}
#endif

/* The slots with this tag (0: the free ones): bit i for slot i. */
static inline uint32_t map_bucket_match(const struct map_table *table,
                                        const struct map_bucket *bucket, uint8_t tag) {
    const uint8_t *bytes = (const uint8_t *)bucket;
    uint32_t matches = map_equal_bytes(bytes, tag);
    matches |= map_equal_bytes(bytes + 16, tag) << 16;
    /* Other bytes were compared along with the tags. */
    return matches & table->slot_mask;
}

static inline void map_find_in(struct map_find *find, const struct map_table *table) {
    find->table = table;
    find->bucket = map_home(table, find->hash);
    find->buckets_left = table->bucket_count;
    find->at = map_bucket(table, find->bucket);
    find->matches = map_bucket_match(table, find->at, map_tag(find->hash));
}

static inline void map_find(const struct map *map, uint64_t hash, struct map_find *find) {
    find->hash = hash;
    find->next_table = map->is_moving ? &map->next : NULL;
    map_find_in(find, &map->table);
}

__attribute__((always_inline)) static inline bool map_find_next(struct map_find *find,
                                                                uint32_t *id) {
    for (;;) {
        const struct map_table *table = find->table;
        if (find->matches != 0) {
            uint32_t field = map_field(table, find->at, (uint32_t)__builtin_ctz(find->matches));
            find->matches &= find->matches - 1;
            if (((field ^ (uint32_t)find->hash) & table->hash_mask) == 0) {
                *id = field & table->id_mask;
                return true;
            }
        } else if (find->at->overflow != 0 && --find->buckets_left != 0) {
            if (++find->bucket == table->bucket_count) {
                find->bucket = 0;
            }
            find->at = map_bucket(table, find->bucket);
            find->matches = map_bucket_match(table, find->at, map_tag(find->hash));
        } else if (find->next_table != NULL) {
            map_find_in(find, find->next_table);
            find->next_table = NULL;
        } else {
            return false;
        }
    }
}

/* Prefetch the lines that looking up, adding or removing this hash will touch. */
static inline void map_prefetch(const struct map *map, uint64_t hash) {
    memory_prefetch(map_bucket(&map->table, map_home(&map->table, hash)));
    if (map->is_moving) {
        memory_prefetch(map_bucket(&map->next, map_home(&map->next, hash)));
    }
}

/* One step of a scan in hash order. cursor is an upper half of a hash, initially 0. Visits the id
 * of every entry whose hash's upper half is in cursor .. *end - 1, each id once (and possibly ids
 * without such an entry). *end is set before the first visit. It is the cursor of the next step;
 * the scan is complete when it is 2^32. Growth and shrinking between steps lose nothing. visit must
 * not change the map.
 *
 * A step covers the entries of one bucket (of the larger table, if there are two), wherever they
 * are stored, and at most MAP_SCAN_EMPTY_MAX empty buckets before it. Returns the number of buckets
 * read. */
typedef void map_visit(void *context, uint32_t id);
uint32_t map_scan(const struct map *map, uint32_t cursor, uint64_t *end, map_visit *visit,
                  void *context);

/* Heap bytes of the tables. */
size_t map_memory_size(const struct map *map);

/* Check counts, overflow counters and that every entry of every id can be found. reason: the first
 * violated invariant. */
MUST_CHECK bool map_validate(const struct map *map, const char **reason);

/* ---- scans: SCAN of keys, ZSCAN of members, HSCAN of fields ----
 *
 *     gather    the ids of the entries of one or more buckets   map_scan
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
/* Pass every name that is in the range of its candidate to map_scan_add. */
typedef void scan_find(const void *owner, const struct scan_candidate *candidates, uint32_t count,
                       struct scan *scan);
typedef void scan_visit(void *context, const struct scan_item *item);

struct scan {
    const void *owner; /* the first three are set by the caller, for map_scan_names */
    scan_fetch *fetch;
    scan_find *find;
    scan_visit *visit; /* this and the following fields are private to map.c */
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
void map_scan_init(struct scan *scan, const struct scan_limits *limits, scan_visit *visit,
                   void *context);
void map_scan_add(struct scan *scan, const struct scan_item *item);

/* One step of a scan over the map. Returns the next cursor, 0 at the end. */
uint64_t map_scan_names(struct scan *scan, const struct map *map, uint64_t cursor);
/* The same when all items have been added already. */
uint64_t map_scan_items(struct scan *scan);
/* After map_scan_items, which had no room for more: may they be added now, and visited in this step? */
bool map_scan_has_room(const struct scan *scan);
/* The total work of visiting names of these sizes. */
uint64_t map_scan_visit_work(const struct scan_limits *limits, uint64_t count, uint64_t name_bytes);

/* ---- pages: what ids are of ----
 *
 * An array that grows without moving: pages of equal size behind a small table. Appending a page
 * costs the same at ten elements as at ten million; a plain array would stall the server while it
 * is copied. Elements are addressed by byte offset, and their size must divide MAP_PAGES_SIZE. */

enum {
#ifdef SKIPLIST_TINY
    MAP_PAGES_SIZE = 32,
#else
    MAP_PAGES_SIZE = 8192,
#endif
};

/* The zeroed array is empty. */
struct map_pages {
    void **at;
    uint32_t count;
    uint32_t capacity;
};

/* The bytes at offset, in a page allocated by map_pages_reserve. */
static inline void *map_pages_at(const struct map_pages *pages, uint64_t offset) {
    return (char *)pages->at[offset / MAP_PAGES_SIZE] + offset % MAP_PAGES_SIZE;
}

/* Allocate pages for offsets below size. false: no memory; the contents are unchanged. */
MUST_CHECK bool map_pages_reserve(struct map_pages *pages, uint64_t size);
/* Free at most two pages well beyond size; if size is 0, all pages and the table. One spare page is
 * kept, so that an array at a page boundary does not allocate and free it repeatedly. */
void map_pages_trim(struct map_pages *pages, uint64_t size);
void map_pages_deinit(struct map_pages *pages);

#endif
