/* A hash map from 64-bit hashes to 32-bit ids. It stores neither keys nor values: a slot holds a
 * part of the hash (the tag) and the id, together 32 bits. A look-up yields candidates, which the
 * owner compares with the actual key.
 *
 * Drawing of one bucket, a cache line:
 *
 *     +--------+--------+-- ... --+---------+----------+
 *     | slot 0 | slot 1 |         | slot 14 | overflow |     slot: tag bits | id bits, 0 = free
 *     +--------+--------+-- ... --+---------+----------+     overflow: number of entries that
 *                                                            probed past this bucket
 *
 * The home bucket is hash32 * bucket_count >> 32, where hash32 is the hash's upper half. So any
 * bucket count works, and buckets are in the order of hashes: scans survive growth. A full bucket
 * overflows into the next one and counts that, so that a look-up stops at the first bucket without
 * overflow and a removal needs no tombstones (as in F14: engineering.fb.com, "Open-sourcing F14",
 * 2019). The tag is taken from the upper bits of the hash's lower half and is never 0.
 *
 * Rehashing is incremental. Meanwhile there are two tables, and ids are moved one by one: entries
 * with id < cursor or id >= id_limit are in the new table, the others in the old one. Each step
 * asks the owner for the hashes of a few ids (map_hashes), so no insert pays for a whole rehash.
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
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define MAP_HAS_NEON
#endif

#include "codec/check.h"
#include "skiplist/prefetch.h"

#ifdef SKIPLIST_TINY
#define MAP_BUCKET_LINES 1 /* of 16 bytes */
#define MAP_SEGMENT_BITS 2
#define MAP_GROUP_BITS   2
#else
#define MAP_BUCKET_LINES 4
#define MAP_SEGMENT_BITS 10
#define MAP_GROUP_BITS   6
#endif

enum {
    MAP_BUCKET_SLOTS = 4 * MAP_BUCKET_LINES - 1,
    MAP_ID_BITS_MIN = 2 * MAP_BUCKET_LINES,
    MAP_ID_BITS_MAX = 28,
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
    uint32_t slots[MAP_BUCKET_SLOTS];
    uint32_t overflow;
};

struct map_table {
    struct map_bucket *
        *segments; /* each aligned to a cache line, preceded by its counts of groups */
    uint32_t bucket_count;
    uint32_t segment_count; /* 0: no table; segments is then one shared empty bucket */
    uint64_t entry_count;
    uint32_t id_mask; /* the slot's id bits; the others are the tag */
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
           map_count(map) * 10 < (uint64_t)table->bucket_count * (3 * MAP_BUCKET_SLOTS);
}
/* May map_step begin a smaller table? */
static inline bool map_may_shrink(const struct map *map) {
    return map_is_too_large(map, &map->table) && map_count(map) < map->crowded_count;
}
/* Does map_step have work left? Called on every removal. */
static inline bool map_is_unfinished(const struct map *map) {
    return map_has_next(map) || map->last.segment_count > 0 || map_may_shrink(map) ||
           (map_count(map) == 0 && map->table.segment_count > 0);
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
    uint32_t matches;            /* slots of the bucket not yet returned, one bit each */
};

static inline struct map_bucket *map_bucket(const struct map_table *table, uint32_t index) {
    return &table->segments[index >> MAP_SEGMENT_BITS][index & (MAP_SEGMENT_BUCKETS - 1)];
}

static inline uint32_t map_home(const struct map_table *table, uint64_t hash) {
    return (uint32_t)(((hash >> 32) * table->bucket_count) >> 32);
}

/* The tag, shifted into place. Tag 0 would make a slot with id 0 look free. */
static inline uint32_t map_tag(const struct map_table *table, uint64_t hash) {
    uint32_t tag = (uint32_t)hash & ~table->id_mask;
    return tag != 0 ? tag : table->id_mask + 1;
}

#ifdef MAP_HAS_NEON
/* Of four slots: a 16-bit lane of ones for each that is equal, otherwise of zeros. */
static inline uint16x4_t map_equal_line(const struct map_bucket *bucket, int line,
                                        uint32x4_t wanted, uint32x4_t mask) {
    if (line >= MAP_BUCKET_LINES) {
        return vdup_n_u16(0);
    }
    const uint32_t *slots = (const uint32_t *)(const void *)bucket + 4 * line;
    return vmovn_u32(vceqq_u32(vandq_u32(vld1q_u32(slots), mask), wanted));
}
#endif

/* The slots that equal wanted under mask: bit i for slot i. */
static inline uint32_t map_bucket_match(const struct map_bucket *bucket, uint32_t wanted,
                                        uint32_t mask) {
#if defined(__SSE2__)
    const __m128i *slots = (const __m128i *)(const void *)bucket;
    __m128i wanted4 = _mm_set1_epi32((int)wanted);
    __m128i mask4 = _mm_set1_epi32((int)mask);
    __m128i low = _mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(slots), mask4), wanted4);
    __m128i high = _mm_setzero_si128();
#if MAP_BUCKET_LINES == 4
    /* Unrolled by hand: at -O2 a loop would go through memory. */
    __m128i second = _mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(slots + 1), mask4), wanted4);
    __m128i third = _mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(slots + 2), mask4), wanted4);
    __m128i fourth = _mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(slots + 3), mask4), wanted4);
    low = _mm_packs_epi32(low, second);
    high = _mm_packs_epi32(third, fourth);
#else
    low = _mm_packs_epi32(low, high);
#endif
    uint32_t matches = (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high));
    /* The overflow counter was compared along with the slots. */
    return matches & ((1U << MAP_BUCKET_SLOTS) - 1);
#elif defined(MAP_HAS_NEON)
    /* One bit of each byte is kept, another one for each of eight neighbours; then neighbours are
     * added three times. */
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint32x4_t wanted4 = vdupq_n_u32(wanted);
    uint32x4_t mask4 = vdupq_n_u32(mask);
    uint16x8_t low = vcombine_u16(map_equal_line(bucket, 0, wanted4, mask4),
                                  map_equal_line(bucket, 1, wanted4, mask4));
    uint16x8_t high = vcombine_u16(map_equal_line(bucket, 2, wanted4, mask4),
                                   map_equal_line(bucket, 3, wanted4, mask4));
    uint8x16_t sum = vandq_u8(vcombine_u8(vmovn_u16(low), vmovn_u16(high)), vld1q_u8(bits));
    sum = vpaddq_u8(sum, sum);
    sum = vpaddq_u8(sum, sum);
    sum = vpaddq_u8(sum, sum);
    uint32_t matches = vgetq_lane_u16(vreinterpretq_u16_u8(sum), 0);
    /* The overflow counter was compared along with the slots. */
    return matches & ((1U << MAP_BUCKET_SLOTS) - 1);
#else
    uint32_t matches = 0;
    for (unsigned i = 0; i < MAP_BUCKET_SLOTS; i++) {
        matches |= (uint32_t)((bucket->slots[i] & mask) == wanted) << i;
    }
    return matches;
#endif
}

static inline void map_find_in(struct map_find *find, const struct map_table *table) {
    find->table = table;
    find->bucket = map_home(table, find->hash);
    find->buckets_left = table->bucket_count;
    find->at = map_bucket(table, find->bucket);
    find->matches = map_bucket_match(find->at, map_tag(table, find->hash), ~table->id_mask);
}

static inline void map_find(const struct map *map, uint64_t hash, struct map_find *find) {
    find->hash = hash;
    find->next_table = map->is_moving ? &map->next : NULL;
    map_find_in(find, &map->table);
}

__attribute__((always_inline)) static inline bool map_find_next(struct map_find *find,
                                                                uint32_t *id) {
    while (find->matches == 0) {
        const struct map_table *table = find->table;
        if (find->at->overflow != 0 && --find->buckets_left != 0) {
            if (++find->bucket == table->bucket_count) {
                find->bucket = 0;
            }
            find->at = map_bucket(table, find->bucket);
            find->matches = map_bucket_match(find->at, map_tag(table, find->hash), ~table->id_mask);
        } else if (find->next_table != NULL) {
            map_find_in(find, find->next_table);
            find->next_table = NULL;
        } else {
            return false;
        }
    }
    unsigned slot = (unsigned)__builtin_ctz(find->matches);
    find->matches &= find->matches - 1;
    *id = find->at->slots[slot] & find->table->id_mask;
    return true;
}

/* Prefetch the lines that looking up, adding or removing this hash will touch. */
static inline void map_prefetch(const struct map *map, uint64_t hash) {
    prefetch_line(map_bucket(&map->table, map_home(&map->table, hash)));
    if (map->is_moving) {
        prefetch_line(map_bucket(&map->next, map_home(&map->next, hash)));
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

#endif
