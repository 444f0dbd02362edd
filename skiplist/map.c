/* Invariants: an entry is in its home bucket or a later one, and every bucket it passed counts it
 * in overflow; no table is filled beyond MAP_FULL of its slots, even if it held all entries of the
 * map.
 *
 * The map does not interpret ids. */
#include "skiplist/map.h"

#include <string.h>

#include "codec/memory.h"

enum {
    MAP_LINE_SIZE = 64,
    /* Ids and entries moved in one step: about one leaf block of a board, or 24 single keys. Enough
     * to finish a rehash before the table is full: from map_slots_grow_at to map_slots_full_at 6
     * entries are added for every 90 that are moved, a fifth of them while segments are. Few enough
     * for about two microseconds a step. */
    MAP_STEP_IDS = 24,
    MAP_STEP_ENTRIES = 48,
/* Reservations and steps per segment of a table being prepared. A segment holds some nine thousand entries,
 * so the new table is complete long before the old one is full. */
#ifdef SKIPLIST_TINY
    MAP_SEGMENT_PAUSE = 1,
#else
    MAP_SEGMENT_PAUSE = 128,
#endif
/* So few ids move at once, in less than 50 us: a board of up to a thousand members does not have two tables. */
#ifdef SKIPLIST_TINY
    MAP_IDS_AT_ONCE = 4,
#else
    MAP_IDS_AT_ONCE = 32,
#endif
    /* This many segments may be freed at once. */
    MAP_SMALL_SEGMENTS = 4,
    /* Empty buckets that one scan step may skip: 64 KiB. */
    MAP_SCAN_EMPTY_MAX = 1024,
    /* So many buckets of a smaller table may have overflowed into each other. */
    MAP_CROWDED_BUCKETS = 32,
    /* Buckets of a run that a scan compares with each other; distinct ids of a longer one. */
    MAP_RUN_SHORT = 3,
    MAP_SEEN_MAX = 2048,
};

/* Entries above which a table of this many slots starts to grow. At 0.9 of 18 slots a bucket about
 * one entry in fourteen is outside its home bucket. */
static uint64_t map_slots_grow_at(uint64_t slots) {
    return slots * 90 / 100;
}

/* The maximum fill of a table, when growing has failed for lack of memory. */
static uint64_t map_slots_full_at(uint64_t slots) {
    return slots * 96 / 100;
}

/* Never written to: it has no free slot anyone would use. */
static struct map_bucket map_no_bucket __attribute__((aligned(MAP_LINE_SIZE)));
static struct map_bucket *map_no_segment = &map_no_bucket;

static const struct map_table map_no_table = {
    .segments = &map_no_segment,
    .bucket_count = 1,
    .id_mask = (1U << MAP_ID_BITS_MIN) - 1,
    .slot_mask = 1,
    .slots = 1,
};

void map_init(struct map *map, map_hashes *hashes, const void *owner) {
    *map = (struct map){
        .table = map_no_table,
        .next = map_no_table,
        .last = map_no_table,
        .crowded_count = UINT64_MAX,
        .hashes = hashes,
        .owner = owner,
    };
}

/* ---- tables ---- */

static uint64_t map_table_slots(const struct map_table *table) {
    return table->segment_count == 0 ? 0 : (uint64_t)table->bucket_count * table->slots;
}

/* Number of segments of a complete table. */
static uint32_t map_segments_for(uint32_t bucket_count) {
    return (bucket_count + MAP_SEGMENT_BUCKETS - 1) / MAP_SEGMENT_BUCKETS;
}

static bool map_table_is_whole(const struct map_table *table) {
    return table->segment_count == map_segments_for(table->bucket_count);
}

/* The allocations that contain the segments; stored in the same array, behind the segments. */
static void **map_table_pieces(const struct map_table *table) {
    return (void **)(table->segments + map_segments_for(table->bucket_count));
}

static uint32_t map_segment_buckets(const struct map_table *table, uint32_t segment) {
    uint32_t buckets = table->bucket_count - segment * MAP_SEGMENT_BUCKETS;
    return buckets < MAP_SEGMENT_BUCKETS ? buckets : MAP_SEGMENT_BUCKETS;
}

/* Bytes of a segment's counts of groups. */
static size_t map_segment_counts_size(const struct map_table *table, uint32_t segment) {
    uint32_t groups = ((map_segment_buckets(table, segment) - 1) >> MAP_GROUP_BITS) + 1;
    return groups * sizeof(uint16_t);
}

static size_t map_segment_buckets_size(const struct map_table *table, uint32_t segment) {
    return map_segment_buckets(table, segment) * sizeof(struct map_bucket);
}

/* What is allocated for it, with what aligning may take. */
static size_t map_segment_size(const struct map_table *table, uint32_t segment) {
    return map_segment_counts_size(table, segment) + MAP_LINE_SIZE +
           map_segment_buckets_size(table, segment);
}

/* How many entries are at home in the group of this bucket. The counts of a segment precede it, the
 * last group's first. */
static uint16_t *map_table_group(const struct map_table *table, uint32_t bucket) {
    uint16_t *counts = (uint16_t *)(void *)table->segments[bucket >> MAP_SEGMENT_BITS];
    return counts - 1 - ((bucket & (MAP_SEGMENT_BUCKETS - 1)) >> MAP_GROUP_BITS);
}

static bool map_table_add_segment(struct map_table *table) {
    uint32_t segment = table->segment_count;
    char *piece = memory_allocate_zeroed(map_segment_size(table, segment));
    if (piece == NULL) {
        return false;
    }
    uintptr_t least = (uintptr_t)piece + map_segment_counts_size(table, segment);
    uintptr_t line = (least + MAP_LINE_SIZE - 1) & ~(uintptr_t)(MAP_LINE_SIZE - 1);
    table->segments[segment] = (struct map_bucket *)line;
    map_table_pieces(table)[segment] = piece;
    table->segment_count++;
    return true;
}

/* Free the last segment; with the only segment, the whole table. */
static void map_table_free_segment(struct map_table *table) {
    table->segment_count--;
    memory_free(map_table_pieces(table)[table->segment_count]);
    if (table->segment_count == 0) {
        memory_free(table->segments);
        *table = map_no_table;
    }
}

/* Start a table of the same form as form, by allocating its first segment. */
static bool map_table_begin(struct map_table *table, uint32_t bucket_count,
                            const struct map_table *form) {
    size_t pointers = 2 * (size_t)map_segments_for(bucket_count);
    struct map_table begun = {
        .segments = memory_allocate(pointers * sizeof(void *)),
        .bucket_count = bucket_count,
        .id_mask = form->id_mask,
        .hash_mask = form->hash_mask,
        .slot_mask = form->slot_mask,
        .slots = form->slots,
        .field_bits = form->field_bits,
        .field_first = form->field_first,
    };
    if (begun.segments == NULL) {
        return false;
    }
    if (!map_table_add_segment(&begun)) {
        memory_free(begun.segments);
        return false;
    }
    *table = begun;
    return true;
}

/* The form of a table for ids below id_end. Ids must not run out before the table does, so they may
 * double; four times as many where the field has bits for that. The others make the tag longer. */
static struct map_table map_form_for(uint32_t id_end) {
    static const uint32_t widths[] = {MAP_FIELD_BITS_FEW, MAP_FIELD_BITS_MIN, MAP_FIELD_BITS_MID,
                                      MAP_ID_BITS_MAX};
    const uint32_t *width = widths;
    while (*width < MAP_ID_BITS_MAX && (UINT64_C(1) << *width) < (uint64_t)id_end * 2) {
        width++;
    }
    uint32_t field_bits = *width;
    unsigned id_bits = MAP_ID_BITS_MIN;
    while (id_bits < field_bits && (UINT64_C(1) << id_bits) < (uint64_t)id_end * 4) {
        id_bits++;
    }
    uint32_t id_mask = (1U << id_bits) - 1;
    uint32_t slots = 8 * (MAP_BUCKET_SIZE - 1) / (8 + field_bits);
    /* Four bytes are read from the one on where a field begins: those of the last one are the bucket's. */
    slots -= (8 * slots + (slots - 1) * field_bits) / 8 + sizeof(uint32_t) > MAP_BUCKET_SIZE;
    return (struct map_table){
        .id_mask = id_mask,
        .hash_mask = ((1U << field_bits) - 1) & ~id_mask,
        .slot_mask = (1U << slots) - 1,
        .slots = (uint8_t)slots,
        .field_bits = (uint8_t)field_bits,
        .field_first = (uint8_t)(8 * slots),
    };
}

static size_t map_table_memory_size(const struct map_table *table) {
    if (table->segment_count == 0) {
        return 0;
    }
    size_t size = memory_size(table->segments);
    for (uint32_t i = 0; i < table->segment_count; i++) {
        size += memory_size(map_table_pieces(table)[i]);
    }
    return size;
}

/* On failure `to` holds what has been copied so far. */
static bool map_table_copy(const struct map_table *table, struct map_table *to) {
    if (table->segment_count == 0) {
        return true;
    }
    if (!map_table_begin(to, table->bucket_count, table)) {
        return false;
    }
    while (!map_table_is_whole(to)) {
        if (!map_table_add_segment(to)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < table->segment_count; i++) {
        size_t counts = map_segment_counts_size(table, i);
        memcpy((char *)to->segments[i] - counts, (const char *)table->segments[i] - counts,
               counts + map_segment_buckets_size(table, i));
    }
    to->entry_count = table->entry_count;
    to->crowd = table->crowd;
    return true;
}

void map_deinit(struct map *map) {
    while (!map_deinit_step(map)) {
        continue;
    }
}

bool map_deinit_step(struct map *map) {
    struct map_table *table = &map->table;
    if (map->next.segment_count > 0) {
        table = &map->next;
    }
    if (map->last.segment_count > 0) {
        table = &map->last;
    }
    if (table->segment_count == 0) {
        map_init(map, map->hashes, map->owner);
        return true;
    }
    map_table_free_segment(table);
    return false;
}

bool map_is_small(const struct map *map) {
    return map->table.segment_count + map->next.segment_count + map->last.segment_count <=
           MAP_SMALL_SEGMENTS;
}

bool map_copy(const struct map *map, struct map *to) {
    if (!map_table_copy(&map->table, &to->table) ||
        (map->is_moving && !map_table_copy(&map->next, &to->next))) {
        map_deinit(to);
        return false;
    }
    to->cursor = map->cursor;
    to->id_limit = map->id_limit;
    to->id_end = map->id_end;
    to->is_moving = map->is_moving;
    return true;
}

static uint32_t map_table_after(const struct map_table *table, uint32_t bucket) {
    return bucket + 1 == table->bucket_count ? 0 : bucket + 1;
}

/* Change these bits of a field. */
static void map_table_flip_field(const struct map_table *table, struct map_bucket *bucket,
                                 uint32_t slot, uint32_t flipped) {
    struct map_place place = map_place(table, slot);
    char *at = (char *)bucket->slots + place.offset;
    bytes_put_u32(at, bytes_get_u32(at) ^ flipped << place.shift);
}

static void map_table_put(struct map_table *table, uint64_t hash, uint32_t id) {
    CHECK(id <= table->id_mask);
    CHECK(table->entry_count < map_table_slots(table));
    uint32_t index = map_home(table, hash);
    struct map_bucket *bucket = map_bucket(table, index);
    uint32_t free_slots;
    ++*map_table_group(table, index);
    while ((free_slots = map_bucket_match(table, bucket, 0)) == 0) {
        /* Count one more entry that passes this bucket. */
        if (bucket->overflow < MAP_OVERFLOW_MANY && ++bucket->overflow == MAP_OVERFLOW_MANY) {
            table->crowd = table->entry_count;
        }
        index = map_table_after(table, index);
        bucket = map_bucket(table, index);
    }
    uint32_t slot = (uint32_t)__builtin_ctz(free_slots);
    bucket->slots[slot] = map_tag(hash);
    uint32_t field = ((uint32_t)hash & table->hash_mask) | id;
    uint32_t before = map_field(table, bucket, slot) & (table->id_mask | table->hash_mask);
    map_table_flip_field(table, bucket, slot, before ^ field);
    table->entry_count++;
}

/* The first slot of a bucket with this entry; the number of slots: none. */
static inline uint32_t map_bucket_slot(const struct map_table *table,
                                       const struct map_bucket *bucket, uint64_t hash,
                                       uint32_t id) {
    const uint32_t mask = table->id_mask | table->hash_mask;
    const uint32_t wanted = ((uint32_t)hash & table->hash_mask) | id;
    uint32_t matches = map_bucket_match(table, bucket, map_tag(hash));
    for (; matches != 0; matches &= matches - 1) {
        uint32_t slot = (uint32_t)__builtin_ctz(matches);
        if (((map_field(table, bucket, slot) ^ wanted) & mask) == 0) {
            return slot;
        }
    }
    return table->slots;
}

/* The bucket and the slot of an existing entry. `removed` (0 or 1) entries leave the buckets that it
 * passes. */
__attribute__((always_inline)) static inline struct map_bucket *
map_table_get(struct map_table *table, uint64_t hash, uint32_t id, uint8_t removed,
              uint32_t *slot) {
    uint32_t index = map_home(table, hash);
    struct map_bucket *bucket = map_bucket(table, index);
    uint32_t buckets_left = table->bucket_count;
    while ((*slot = map_bucket_slot(table, bucket, hash, id)) == table->slots) {
        CHECK(bucket->overflow != 0);
        CHECK(--buckets_left != 0);
        if (bucket->overflow != MAP_OVERFLOW_MANY) {
            bucket->overflow = (uint8_t)(bucket->overflow - removed);
        }
        index = map_table_after(table, index);
        bucket = map_bucket(table, index);
    }
    return bucket;
}

/* Entries that look alike (same tag, same field) are interchangeable: the first one found is removed,
 * and the counters stay correct because they only count passes. */
static void map_table_remove(struct map_table *table, uint64_t hash, uint32_t id) {
    uint32_t slot;
    map_table_get(table, hash, id, 1, &slot)->slots[slot] = 0;
    --*map_table_group(table, map_home(table, hash));
    table->entry_count--;
}

/* The table that holds the entries of id. */
static struct map_table *map_table_of(struct map *map, uint32_t id) {
    bool is_moved = map->is_moving && (id < map->cursor || id >= map->id_limit);
    return is_moved ? &map->next : &map->table;
}

void map_put(struct map *map, uint64_t hash, uint32_t id) {
    map_table_put(map_table_of(map, id), hash, id);
    if (id >= map->id_end) {
        map->id_end = id + 1;
    }
}

void map_remove(struct map *map, uint64_t hash, uint32_t id) {
    map_table_remove(map_table_of(map, id), hash, id);
}

void map_replace(struct map *map, uint64_t hash, uint32_t id, uint32_t new_id) {
    struct map_table *from = map_table_of(map, id);
    struct map_table *to = map_table_of(map, new_id);
    if (from == to) {
        CHECK(new_id <= to->id_mask);
        uint32_t slot;
        struct map_bucket *bucket = map_table_get(to, hash, id, 0, &slot);
        map_table_flip_field(to, bucket, slot, id ^ new_id);
    } else {
        map_table_remove(from, hash, id);
        map_table_put(to, hash, new_id);
    }
    if (new_id >= map->id_end) {
        map->id_end = new_id + 1;
    }
}

/* Number of buckets of this form that hold this many entries and a few more. Each size of a table
 * holds half as many again as the size before. Their sequence is such that the round numbers which
 * boards are made for, 1, 5 and 10 million, come shortly before a table grows; and of few ids, that a board's first
 * table, of 241 entries, is nearly full. */
static uint32_t map_buckets_for(uint64_t entry_count, const struct map_table *form) {
    enum { UNITS = 1 << 16 /* of an entry */, LEAST = 27 * UNITS + 25600, LEAST_FEW = 23 * UNITS };
    uint64_t held = form->field_bits == MAP_FIELD_BITS_FEW ? LEAST_FEW : LEAST;
    while (held < (entry_count + entry_count / 16) * UNITS) {
        held += held / 2;
    }
    uint64_t slots = held / UNITS * 100 / 90 + form->slots;
    return (uint32_t)(slots / form->slots);
}

/* All segments of next are allocated: start to move entries, or make it the first table. */
static void map_use_next(struct map *map) {
    if (map->table.segment_count == 0) {
        map->table = map->next;
        map->next = map_no_table;
        return;
    }
    map->cursor = 0;
    map->id_limit = map->id_end;
    map->is_moving = true;
}

static void map_move_on(struct map *map) {
    uint32_t entries = 0;
    /* Skip ids that are no longer in use. */
    if (map->id_limit > map->id_end) {
        map->id_limit = map->id_end;
    }
    for (int ids = 0; ids < MAP_STEP_IDS && entries < MAP_STEP_ENTRIES; ids++) {
        if (map->cursor >= map->id_limit) {
            break;
        }
        /* Move the entries of one id. */
        uint64_t hashes[MAP_HASHES_MAX];
        uint32_t count = map->hashes(map->owner, map->cursor, hashes);
        /* Each entry touches a random line in each table; prefetched together they cost little more
         * than a single one. */
        for (uint32_t i = 0; i < count; i++) {
            map_prefetch(map, hashes[i]);
        }
        for (uint32_t i = 0; i < count; i++) {
            map_table_remove(&map->table, hashes[i], map->cursor);
            map_table_put(&map->next, hashes[i], map->cursor);
        }
        entries += count;
        map->cursor++;
    }
    if (map->cursor >= map->id_limit) {
        /* All entries have moved: the old table is freed in steps. If the table before it still
         * exists, it is by far the larger one, because every entry added since has freed a part
         * of it. */
        CHECK(map->table.entry_count == 0);
        struct map_table left = map->table;
        if (left.segment_count > map->last.segment_count) {
            left = map->last;
            map->last = map->table;
        }
        while (left.segment_count > 0) {
            map_table_free_segment(&left);
        }
        map->table = map->next;
        map->next = map_no_table;
        map->is_moving = false;
    }
}

/* Start to prepare a table with room for this many entries and more. */
static bool map_begin_next(struct map *map, uint64_t entry_count, uint32_t id_end) {
    map->crowded_count = UINT64_MAX;
    const struct map_table form = map_form_for(id_end);
    if (!map_table_begin(&map->next, map_buckets_for(entry_count, &form), &form)) {
        return false;
    }
    if (map_table_is_whole(&map->next)) {
        map_use_next(map);
    }
    while (map->is_moving && map->id_limit <= MAP_IDS_AT_ONCE) {
        map_move_on(map);
        if (!map->is_moving) {
            map_table_free_segment(&map->last);
        }
    }
    return true;
}

/* One step of any unfinished work. false: no memory. */
static bool map_work(struct map *map) {
    if (map->last.segment_count > 0) {
        map_table_free_segment(&map->last);
    }
    if (map->is_moving) {
        map_move_on(map);
    } else if (map_has_next(map)) {
        if (!map_table_add_segment(&map->next)) {
            return false;
        }
        if (map_table_is_whole(&map->next)) {
            map_use_next(map);
        }
    }
    return true;
}

/* Would this many entries fit into either table, and do ids below id_end have enough bits? */
static bool map_has_room(const struct map *map, uint64_t entry_count, uint32_t id_end) {
    const struct map_table *newest = map->is_moving ? &map->next : &map->table;
    if (entry_count > map_slots_full_at(map_table_slots(&map->table))) {
        return false;
    }
    if (id_end > newest->id_mask + 1) {
        return false;
    }
    return !map->is_moving || entry_count <= map_slots_full_at(map_table_slots(&map->next));
}

/* A table gets its segments one by one, with pauses, so that their memory is ready when it is
 * touched: a new page may take a millisecond. */
static bool map_is_waiting(struct map *map) {
    bool is_preparing = map_has_next(map) && !map->is_moving && map->last.segment_count == 0;
    if (!is_preparing || ++map->waited >= MAP_SEGMENT_PAUSE) {
        map->waited = 0;
        return false;
    }
    return true;
}

/* All ids are below id_end. */
static void map_lower_id_end(struct map *map, uint32_t id_end) {
    if (map->id_end > id_end) {
        map->id_end = id_end;
    }
}

bool map_reserve(struct map *map, uint32_t count, uint32_t id_end) {
    if (id_end > MAP_ID_END) {
        return false;
    }
    uint64_t entry_count = map_count(map) + count;
    map_lower_id_end(map, id_end);
    /* Nearly always there is nothing to do. */
    if (!map_has_next(map) && map->last.segment_count == 0 && id_end <= map->table.id_mask + 1 &&
        entry_count <= map_slots_grow_at(map_table_slots(&map->table))) {
        return true;
    }
    bool has_memory = map_is_waiting(map) || map_work(map);
    if (!map_has_next(map) && entry_count > map_slots_grow_at(map_table_slots(&map->table))) {
        has_memory = map_begin_next(map, entry_count, id_end);
    }
    /* Steps are much faster than insertions. More than one at once is needed only by owners that
     * reserve a lot, when ids run out of bits, or after a long lack of memory. While there is room,
     * lack of memory is harmless: the next reservation retries. */
    while (!map_has_room(map, entry_count, id_end)) {
        if (!has_memory) {
            return false;
        }
        has_memory = map_has_next(map) ? map_work(map) : map_begin_next(map, entry_count, id_end);
    }
    return true;
}

bool map_prepare(struct map *map, uint32_t count, uint32_t id_end, bool *is_ready) {
    CHECK(map_count(map) == 0);
    *is_ready = id_end <= MAP_ID_END && map_has_room(map, count, id_end);
    if (id_end > MAP_ID_END) {
        return false;
    }
    map_lower_id_end(map, id_end);
    if (*is_ready) {
        return true;
    }
    return map_has_next(map) ? map_work(map) : map_begin_next(map, count, id_end);
}

size_t map_growth_size(const struct map *map, uint32_t count, uint32_t id_end) {
    const struct map_table *newest = map_has_next(map) ? &map->next : &map->table;
    uint64_t entry_count = map_count(map) + count;
    size_t size = 0;
    if (id_end <= newest->id_mask + 1 &&
        entry_count <= map_slots_grow_at(map_table_slots(newest))) {
        for (uint32_t i = newest->segment_count; i < map_segments_for(newest->bucket_count); i++) {
            size += map_segment_size(newest, i);
        }
        return size;
    }
    const struct map_table form = map_form_for(id_end);
    uint32_t bucket_count = map_buckets_for(entry_count, &form);
    size = bucket_count * sizeof(struct map_bucket);
    return size + map_segments_for(bucket_count) * (2 * MAP_LINE_SIZE + 2 * sizeof(void *));
}

/* Free the memory of an empty map, one segment at a time. */
static void map_retire(struct map *map) {
    if (map_is_small(map)) {
        map_deinit(map);
        return;
    }
    if (map->last.segment_count == 0) {
        /* The map is empty, so no entry can be in the wrong table when one is freed. */
        struct map_table *gone = map_has_next(map) ? &map->next : &map->table;
        map->last = *gone;
        *gone = map_no_table;
        map->is_moving = false;
    }
    map_table_free_segment(&map->last);
}

/* Would a table for the entries there are be crowded? */
static bool map_is_crowded(const struct map *map, uint32_t id_end) {
    const struct map_table form = map_form_for(id_end);
    /* Would the entries of this table, in the order of their buckets, overflow far in one of so
     * many buckets of a form? */
    enum { GROUP_BUCKETS = 1 << MAP_GROUP_BITS, UNITS = 1 << 16 /* of a slot */ };
    const uint64_t most = (uint64_t)MAP_CROWDED_BUCKETS * form.slots * UNITS;
    const uint64_t room = (uint64_t)(map_buckets_for(map_count(map), &form)) * GROUP_BUCKETS *
                          form.slots * UNITS / map->table.bucket_count;
    uint64_t left = 0; /* what the groups so far could not hold */
    for (uint32_t i = 0; i < map->table.bucket_count && left <= most; i += GROUP_BUCKETS) {
        left += (uint64_t)*map_table_group(&map->table, i) * UNITS;
        left -= left < room ? left : room;
    }
    return left > most;
}

bool map_step(struct map *map, uint32_t id_end) {
    bool has_memory = true;
    map_lower_id_end(map, id_end);
    if (map_count(map) == 0) {
        map_retire(map);
    } else if (map_has_next(map) && !map->is_moving && map_is_too_large(map, &map->next)) {
        /* The entries for which a table was begun have been removed since: it is freed one segment at a time. */
        if (map->last.segment_count > 0) {
            map_table_free_segment(&map->last);
        } else {
            map->last = map->next;
            map->next = map_no_table;
        }
    } else if (map_has_next(map) || map->last.segment_count > 0) {
        has_memory = map_is_waiting(map) || map_work(map);
    } else if (map_may_shrink(map) || map_is_worn(map)) {
        /* Begin a smaller table, or one whose counters are exact, or wait until there are fewer entries. */
        uint64_t count = map_count(map);
        if (!map_is_crowded(map, id_end)) {
            has_memory = map_begin_next(map, count, id_end);
        } else if (map_may_shrink(map)) {
            map->crowded_count = count - count / 8;
        } else {
            map->table.crowd = count;
        }
    } else {
        return false;
    }
    /* Without memory the table keeps its size, and the next change retries. */
    return has_memory && map_is_unfinished(map);
}

/* The buckets of one table that a scan step covers: count of them from first on (including those
 * they overflowed into), each bucket once. */
struct map_run {
    const struct map_table *table;
    uint32_t first;
    uint32_t count;
};

static struct map_run map_run_of(const struct map_table *table, uint32_t first, uint32_t last) {
    struct map_run run = {.table = table, .first = first, .count = last - first + 1};
    while (run.count < table->bucket_count && map_bucket(table, last)->overflow != 0) {
        last = map_table_after(table, last);
        run.count++;
    }
    return run;
}

static const struct map_bucket *map_run_bucket(const struct map_run *run, uint32_t number) {
    uint64_t index = (uint64_t)run->first + number;
    if (index >= run->table->bucket_count) {
        index -= run->table->bucket_count;
    }
    return map_bucket(run->table, (uint32_t)index);
}

/* Is the id in one of the first slots, count of them? */
static bool map_bucket_has_id(const struct map_table *table, const struct map_bucket *bucket,
                              uint32_t count, uint32_t id) {
    for (uint32_t slot = 0; slot < count; slot++) {
        if (bucket->slots[slot] != 0 &&
            ((map_field(table, bucket, slot) ^ id) & table->id_mask) == 0) {
            return true;
        }
    }
    return false;
}

/* Is it in no slot of the run before this one? */
static bool map_run_is_first(const struct map_run *run, uint32_t number, uint32_t slot,
                             uint32_t id) {
    bool is_first = !map_bucket_has_id(run->table, map_run_bucket(run, number), slot, id);
    for (uint32_t earlier = 0; is_first && earlier < number; earlier++) {
        is_first =
            !map_bucket_has_id(run->table, map_run_bucket(run, earlier), run->table->slots, id);
    }
    return is_first;
}

/* Ids of a long run: comparing all with all would take milliseconds. */
struct map_seen {
    uint32_t count;
    uint32_t ids[2 * MAP_SEEN_MAX]; /* each + 1, where its hash says, or behind; 0: none */
};

/* false: it is there, or (is_full) there is no room. */
static bool map_seen_add(struct map_seen *seen, uint32_t id, bool *is_full) {
    uint32_t at = (id * UINT32_C(2654435769)) >> 20;
    while (seen->ids[at] != 0 && seen->ids[at] != id + 1) {
        at = (at + 1) % (2 * MAP_SEEN_MAX);
    }
    *is_full = seen->ids[at] == 0 && seen->count == MAP_SEEN_MAX;
    if (seen->ids[at] != 0 || *is_full) {
        return false;
    }
    seen->ids[at] = id + 1;
    seen->count++;
    return true;
}

static void map_run_visit(const struct map_run *run, map_visit *visit, void *context) {
    const struct map_table *table = run->table;
    bool is_short = run->count <= MAP_RUN_SHORT;
    struct map_seen seen; /* large: written where the run is long */
    if (!is_short) {
        memset(&seen, 0, sizeof seen);
    }
    for (uint32_t number = 0; number < run->count; number++) {
        const struct map_bucket *bucket = map_run_bucket(run, number);
        for (uint32_t slot = 0; slot < table->slots; slot++) {
            uint32_t id = map_field(table, bucket, slot) & table->id_mask;
            bool is_open = is_short; /* whether it is the first must be looked up in the run */
            if (bucket->slots[slot] != 0 &&
                ((!is_short && map_seen_add(&seen, id, &is_open)) ||
                 (is_open && map_run_is_first(run, number, slot, id)))) {
                visit(context, id);
            }
        }
    }
}

/* The smallest upper half of a hash whose home is behind bucket. */
static uint64_t map_table_end_of(const struct map_table *table, uint32_t bucket) {
    uint64_t behind = (uint64_t)bucket + 1;
    return ((behind << 32) + table->bucket_count - 1) / table->bucket_count;
}

uint32_t map_scan(const struct map *map, uint32_t cursor, uint64_t *end, map_visit *visit,
                  void *context) {
    const struct map_table *fine = &map->table;
    const struct map_table *coarse = NULL;
    uint64_t limit = UINT64_C(1) << 32;
    if (map->is_moving) {
        bool grows = map->next.bucket_count > map->table.bucket_count;
        fine = grows ? &map->next : &map->table;
        coarse = grows ? &map->table : &map->next;
        limit = map_table_end_of(coarse, map_home(coarse, (uint64_t)cursor << 32));
    }
    uint32_t first = map_home(fine, (uint64_t)cursor << 32);
    /* The last bucket of a step that begins at first: the first one that may have entries, or
     * the one before the bound or the limit. */
    uint32_t bucket = first;
    while (bucket - first < MAP_SCAN_EMPTY_MAX && map_table_end_of(fine, bucket) < limit &&
           map_bucket(fine, bucket)->overflow == 0 &&
           map_bucket_match(fine, map_bucket(fine, bucket), 0) == fine->slot_mask) {
        bucket++;
    }

    *end = map_table_end_of(fine, bucket);
    struct map_run run = map_run_of(fine, bucket, bucket);
    uint32_t looked_at = bucket - first + run.count;
    map_run_visit(&run, visit, context);
    if (coarse != NULL) {
        /* An id is in only one table, so no id is visited twice. */
        run = map_run_of(coarse, map_home(coarse, (uint64_t)cursor << 32),
                         map_home(coarse, (*end - 1) << 32));
        looked_at += run.count;
        map_run_visit(&run, visit, context);
    }
    return looked_at;
}

size_t map_memory_size(const struct map *map) {
    return map_table_memory_size(&map->table) + map_table_memory_size(&map->next) +
           map_table_memory_size(&map->last);
}

static const char *map_check_entries(const struct map *map, const struct map_table *table,
                                     uint32_t *homes) {
    uint64_t hashes[MAP_HASHES_MAX];
    uint64_t entry_count = 0;
    for (uint32_t id = 0; id < map->id_end; id++) {
        bool is_moved = map->is_moving && (id < map->cursor || id >= map->id_limit);
        if (is_moved != (table == &map->next)) {
            continue;
        }
        uint32_t count = map->hashes(map->owner, id, hashes);
        entry_count += count;
        for (uint32_t i = 0; i < count; i++) {
            homes[map_home(table, hashes[i])]++;
            struct map_find find = {.hash = hashes[i]};
            map_find_in(&find, table);
            uint32_t found = UINT32_MAX;
            while (found != id) {
                if (!map_find_next(&find, &found)) {
                    return "map: an entry is not found";
                }
            }
        }
    }
    return entry_count == table->entry_count ? NULL : "map: entries are not counted right";
}

static const char *map_table_check_groups(const struct map_table *table, const uint32_t *homes) {
    uint32_t grouped = 0;
    for (uint32_t i = 0; i < table->bucket_count && table->segment_count > 0; i++) {
        grouped += homes[i];
        if ((i + 1) % (1 << MAP_GROUP_BITS) == 0 || i + 1 == table->bucket_count) {
            if (*map_table_group(table, i) != grouped) {
                return "map: the entries of a group are not counted right";
            }
            grouped = 0;
        }
    }
    return NULL;
}

/* The flow out of a bucket is the flow in plus the entries at home there, minus those that stay. A
 * counter that says MAP_OVERFLOW_MANY may say too much, so this begins behind one that does not. */
static const char *map_table_check_flow(const struct map_table *table, const uint32_t *homes) {
    uint64_t used = 0;
    uint32_t last = 0;
    while (last + 1 < table->bucket_count &&
           map_bucket(table, last)->overflow == MAP_OVERFLOW_MANY) {
        last++;
    }
    uint64_t flow = map_bucket(table, last)->overflow;
    bool is_known = flow != MAP_OVERFLOW_MANY;
    for (uint32_t n = 0, i = last; n < table->bucket_count; n++) {
        i = map_table_after(table, i);
        const struct map_bucket *bucket = map_bucket(table, i);
        uint32_t free_slots = map_bucket_match(table, bucket, 0);
        uint32_t stay = table->slots - (uint32_t)__builtin_popcount(free_slots);
        used += stay;
        flow += homes[i];
        if (is_known && (flow < stay || (flow - stay != bucket->overflow &&
                                         bucket->overflow != MAP_OVERFLOW_MANY))) {
            return "map: an overflow counter is wrong";
        }
        flow -= stay;
    }
    return used == table->entry_count ? NULL : "map: slots in use are not the entries";
}

static const char *map_check_table(const struct map *map, const struct map_table *table) {
    uint32_t *homes = memory_allocate_zeroed((size_t)table->bucket_count * sizeof *homes);
    if (homes == NULL) {
        return "map: no memory to validate it";
    }
    const char *wrong = map_check_entries(map, table, homes);
    if (wrong == NULL) {
        wrong = map_table_check_flow(table, homes);
    }
    if (wrong == NULL) {
        wrong = map_table_check_groups(table, homes);
    }
    memory_free(homes);
    return wrong;
}

bool map_validate(const struct map *map, const char **reason) {
    const char *wrong = map_check_table(map, &map->table);
    if (wrong == NULL && map->is_moving) {
        wrong = map_check_table(map, &map->next);
    }
    /* Ids need no separate check: an id with too many bits for a table would not be found in it.
     * The largest id ever put may be one. */
    if (wrong == NULL && map_count(map) > 0 && !map_has_room(map, map_count(map), 0)) {
        wrong = "map: a table is too full";
    }
    return check_passed(wrong, reason);
}

/* ---- scans ---- */

enum {
    /* In units of work. A candidate is three or four cache misses, most of which overlap with
     * others. */
    BUCKET_WORK = 4,
    CANDIDATE_WORK = 100,
    VISIT_WORK = 60,
    /* A step ends even if it finds only empty buckets, as in Redis. */
    STEPS_PER_NAME = 10,
};

void map_scan_init(struct scan *scan, const struct scan_limits *limits, scan_visit *visit,
                   void *context) {
    /* The arrays are written before they are read. */
    scan->visit = visit;
    scan->context = context;
    scan->limits = limits;
    scan->next = 0;
    scan->cut = SCAN_END;
    scan->work = 0;
    scan->visited = 0;
    scan->last_prefix = 0;
    scan->candidate_count = 0;
    scan->item_count = 0;
}

uint64_t map_scan_visit_work(const struct scan_limits *limits, uint64_t count,
                             uint64_t name_bytes) {
    return count * VISIT_WORK + name_bytes * (1 + limits->byte_work);
}

static bool map_scan_is_spent(const struct scan *scan) {
    return scan->work >= scan->limits->work_max;
}

static void map_scan_visit_item(struct scan *scan, const struct scan_item *item) {
    scan->visit(scan->context, item);
    scan->visited++;
    scan->work += map_scan_visit_work(scan->limits, 1, item->name_size);
}

/* Visit the items in order. When the work is used up, stop before the next item whose prefix
 * differs from the last: the next step could not tell equal prefixes apart. Stop where there was no room for more. */
static void map_scan_visit_items(struct scan *scan) {
    /* Insertion sort: items arrive bucket by bucket, so few move far. */
    for (uint32_t i = 1; i < scan->item_count; i++) {
        struct scan_item item = scan->items[i];
        uint32_t place = i;
        for (; place > 0 && scan->items[place - 1].prefix > item.prefix; place--) {
            scan->items[place] = scan->items[place - 1];
        }
        scan->items[place] = item;
    }
    for (uint32_t i = 0; i < scan->item_count; i++) {
        const struct scan_item *item = &scan->items[i];
        if (item->prefix >= scan->cut ||
            (map_scan_is_spent(scan) && scan->visited > 0 && item->prefix != scan->last_prefix)) {
            scan->next = item->prefix;
            break;
        }
        map_scan_visit_item(scan, item);
        scan->last_prefix = item->prefix;
    }
    scan->next = scan->cut < scan->next ? scan->cut : scan->next;
    scan->cut = SCAN_END;
    scan->item_count = 0;
}

/* There is no room for this item, too: the step ends before the last of them, whose place it may take (*place). false:
 * it comes in the next step. When all have one prefix they are visited out of turn. */
static bool map_scan_make_room(struct scan *scan, uint32_t prefix, uint32_t *place) {
    uint32_t least = UINT32_MAX;
    *place = 0;
    for (uint32_t i = 0; i < scan->item_count; i++) {
        uint32_t other = scan->items[i].prefix;
        least = other < least ? other : least;
        *place = other > scan->items[*place].prefix ? i : *place;
    }
    uint32_t most = scan->items[*place].prefix;
    if (prefix == most && most == least) {
        for (uint32_t i = 0; i < scan->item_count; i++) {
            map_scan_visit_item(scan, &scan->items[i]);
        }
        scan->last_prefix = most;
        scan->item_count = 1;
        *place = 0;
        return true;
    }
    scan->cut = prefix < most ? most : prefix;
    return prefix < most;
}

/* The array is full where nearly all that came before in the order of the scan was removed: what is left crowds few
 * buckets (skiplist/map.h). */
void map_scan_add(struct scan *scan, const struct scan_item *item) {
    uint32_t place = scan->item_count;
    if (item->prefix >= scan->cut ||
        (place == SCAN_ITEMS_MAX && !map_scan_make_room(scan, item->prefix, &place))) {
        return;
    }
    scan->item_count += place == scan->item_count;
    scan->items[place] = *item;
}

static void map_scan_find(struct scan *scan) {
    scan->find(scan->owner, scan->candidates, scan->candidate_count, scan);
    scan->work += (uint64_t)scan->candidate_count * CANDIDATE_WORK;
    scan->candidate_count = 0;
}

static void map_scan_note_candidate(void *context, uint32_t id) {
    struct scan *scan = context;
    if (scan->candidate_count == SCAN_CANDIDATES_MAX) {
        map_scan_find(scan);
    }
    scan->candidates[scan->candidate_count++] = (struct scan_candidate){
        .id = id, .from = scan->step_from, .last = (uint32_t)(scan->step_end - 1)};
    scan->gathered_count++;
    scan->fetch(scan->owner, id);
}

uint64_t map_scan_items(struct scan *scan) {
    scan->next = SCAN_END;
    map_scan_visit_items(scan);
    return scan->next < SCAN_END ? scan->next : 0;
}

bool map_scan_has_room(const struct scan *scan) {
    return scan->next < SCAN_END && scan->visited < scan->limits->count && !map_scan_is_spent(scan);
}

uint64_t map_scan_names(struct scan *scan, const struct map *map, uint64_t cursor) {
    uint64_t count = scan->limits->count > 0 ? scan->limits->count : 1;
    uint64_t steps_left = (count + 1) * STEPS_PER_NAME;
    scan->next = cursor;
    while (scan->next < SCAN_END && scan->visited < count && steps_left > 0 &&
           (!map_scan_is_spent(scan) || scan->next == cursor)) {
        /* A bucket holds about sixteen: half a batch leaves room for the last one. */
        uint64_t wanted = count - scan->visited;
        if (wanted > SCAN_CANDIDATES_MAX / 2) {
            wanted = SCAN_CANDIDATES_MAX / 2;
        }
        scan->gathered_count = 0;
        do {
            scan->step_from = (uint32_t)scan->next;
            uint32_t buckets =
                map_scan(map, scan->step_from, &scan->step_end, map_scan_note_candidate, scan);
            scan->next = scan->step_end;
            scan->work += (uint64_t)buckets * BUCKET_WORK;
            steps_left--;
        } while (scan->next < SCAN_END && scan->gathered_count < wanted && steps_left > 0 &&
                 !map_scan_is_spent(scan));
        map_scan_find(scan);
        map_scan_visit_items(scan);
    }
    return scan->next < SCAN_END ? scan->next : 0;
}

/* ---- pages ---- */

enum { PAGES_CAPACITY_MIN = 4 };

static bool map_pages_reserve_table(struct map_pages *pages, uint64_t count) {
    if (count <= pages->capacity) {
        return true;
    }
    uint64_t capacity = pages->capacity == 0 ? PAGES_CAPACITY_MIN : (uint64_t)pages->capacity * 2;
    if (capacity < count) {
        capacity = count;
    }
    if (capacity > UINT32_MAX) {
        return false;
    }
    void **at = memory_resize(pages->at, capacity * sizeof(*at));
    if (at == NULL) {
        return false;
    }
    pages->at = at;
    pages->capacity = (uint32_t)capacity;
    return true;
}

bool map_pages_reserve(struct map_pages *pages, uint64_t size) {
    uint64_t count = (size + MAP_PAGES_SIZE - 1) / MAP_PAGES_SIZE;
    if (!map_pages_reserve_table(pages, count)) {
        return false;
    }
    while (pages->count < count) {
        void *page = memory_allocate(MAP_PAGES_SIZE);
        if (page == NULL) {
            return false;
        }
        pages->at[pages->count++] = page;
    }
    return true;
}

void map_pages_trim(struct map_pages *pages, uint64_t size) {
    if (size == 0) {
        map_pages_deinit(pages);
        return;
    }
    uint64_t kept = (size + MAP_PAGES_SIZE - 1) / MAP_PAGES_SIZE + 1;
    for (int freed = 0; freed < 2 && pages->count > kept; freed++) {
        memory_free(pages->at[--pages->count]);
    }
}

void map_pages_deinit(struct map_pages *pages) {
    while (pages->count > 0) {
        memory_free(pages->at[--pages->count]);
    }
    memory_free(pages->at);
    *pages = (struct map_pages){0};
}
