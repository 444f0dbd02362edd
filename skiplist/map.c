/* Invariants: an entry lies in its home bucket or behind it, and every bucket between the two
 * counts it in overflow; no table holds more than MAP_FULL of its slots, also if all entries of
 * the map came to lie in that table.
 *
 * It does not know what the ids stand for. */
#include "skiplist/map.h"

#include <string.h>

#include "codec/memory.h"

enum {
    MAP_LINE_SIZE = 64,
    /* Ids and entries moved in one step: about one leaf block of a board, or 16 single keys. Many
     * enough that a table is left long before it is full, few enough that a step takes about two
     * microseconds. */
    MAP_STEP_IDS = 16,
    MAP_STEP_ENTRIES = 48,
    /* Tables below this many buckets are not worth shrinking. */
    MAP_SHRINK_BUCKETS_MIN = 8,
};

/* Entries for which a table of this many slots is too small: growth begins. With 15 slots a
 * bucket, 0.88 leaves about one entry in twenty outside its home. */
static uint64_t map_slots_grow_at(uint64_t slots) {
    return slots * 88 / 100;
}

/* And the most a table is ever filled, when growing has failed for want of memory. */
static uint64_t map_slots_full_at(uint64_t slots) {
    return slots * 96 / 100;
}

/* Never written to: there is no free slot that anybody would ask it for. */
static struct map_bucket map_no_bucket __attribute__((aligned(MAP_LINE_SIZE)));

static const struct map_table map_no_table = {
    .buckets = &map_no_bucket,
    .bucket_count = 1,
    .id_mask = (1U << MAP_ID_BITS_MIN) - 1,
};

void map_init(struct map *map, map_hashes *hashes, const void *owner) {
    *map = (struct map){
        .table = map_no_table,
        .next = map_no_table,
        .hashes = hashes,
        .owner = owner,
    };
}

void map_deinit(struct map *map) {
    memory_free(map->table.memory);
    memory_free(map->next.memory);
    map_init(map, map->hashes, map->owner);
}

static uint64_t table_slots(const struct map_table *table) {
    return table->memory == NULL ? 0 : (uint64_t)table->bucket_count * MAP_BUCKET_SLOTS;
}

static bool table_create(struct map_table *table, uint32_t bucket_count, uint32_t id_end) {
    size_t size = (size_t)bucket_count * sizeof(struct map_bucket) + MAP_LINE_SIZE;
    void *memory = memory_allocate_zeroed(size);
    if (memory == NULL)
        return false;
    uintptr_t line = ((uintptr_t)memory + MAP_LINE_SIZE - 1) & ~(uintptr_t)(MAP_LINE_SIZE - 1);
    unsigned id_bits = MAP_ID_BITS_MIN;
    /* Four times the ids of today: the ids must not run out before the table does, and every bit
     * left over makes the tag longer. */
    while (id_bits < MAP_ID_BITS_MAX && (UINT64_C(1) << id_bits) < (uint64_t)id_end * 4)
        id_bits++;
    *table = (struct map_table){
        .buckets = (struct map_bucket *)line,
        .memory = memory,
        .bucket_count = bucket_count,
        .id_mask = (1U << id_bits) - 1,
    };
    return true;
}

static bool table_copy(const struct map_table *table, struct map_table *to) {
    if (table->memory == NULL)
        return true;
    if (!table_create(to, table->bucket_count, 0))
        return false;
    to->id_mask = table->id_mask;
    to->entry_count = table->entry_count;
    memcpy(to->buckets, table->buckets, table->bucket_count * sizeof *table->buckets);
    return true;
}

bool map_copy(const struct map *map, struct map *to) {
    if (!table_copy(&map->table, &to->table) || !table_copy(&map->next, &to->next)) {
        map_deinit(to);
        return false;
    }
    to->cursor = map->cursor;
    to->id_limit = map->id_limit;
    to->id_end = map->id_end;
    return true;
}

static uint32_t table_after(const struct map_table *table, uint32_t bucket) {
    return bucket + 1 == table->bucket_count ? 0 : bucket + 1;
}

static void table_put(struct map_table *table, uint64_t hash, uint32_t id) {
    CHECK(id <= table->id_mask);
    CHECK(table->entry_count < table_slots(table));
    uint32_t index = map_home(table, hash);
    uint32_t free_slots;
    while ((free_slots = map_bucket_match(&table->buckets[index], 0, UINT32_MAX)) == 0) {
        table->buckets[index].overflow++;
        index = table_after(table, index);
    }
    unsigned slot = (unsigned)__builtin_ctz(free_slots);
    table->buckets[index].slots[slot] = map_tag(table, hash) | id;
    table->entry_count++;
}

/* The slot of an entry that is there; *bucket is where. */
static uint32_t *table_get(struct map_table *table, uint64_t hash, uint32_t id, uint32_t *bucket) {
    uint32_t index = map_home(table, hash);
    uint32_t wanted = map_tag(table, hash) | id;
    uint32_t matches;
    uint32_t buckets_left = table->bucket_count;
    while ((matches = map_bucket_match(&table->buckets[index], wanted, UINT32_MAX)) == 0) {
        CHECK(table->buckets[index].overflow != 0);
        CHECK(--buckets_left != 0);
        index = table_after(table, index);
    }
    *bucket = index;
    return &table->buckets[index].slots[__builtin_ctz(matches)];
}

/* Entries that look alike (same tag, same id) are interchangeable: whichever of them is found
 * first goes, and the counters come out right because they only say how many passed. */
static void table_remove(struct map_table *table, uint64_t hash, uint32_t id) {
    uint32_t last;
    *table_get(table, hash, id, &last) = 0;
    for (uint32_t i = map_home(table, hash); i != last; i = table_after(table, i))
        table->buckets[i].overflow--;
    table->entry_count--;
}

/* The table in which the entries of id are. */
static struct map_table *map_table_of(struct map *map, uint32_t id) {
    bool is_moved = map_is_moving(map) && (id < map->cursor || id >= map->id_limit);
    return is_moved ? &map->next : &map->table;
}

void map_put(struct map *map, uint64_t hash, uint32_t id) {
    table_put(map_table_of(map, id), hash, id);
    if (id >= map->id_end)
        map->id_end = id + 1;
}

void map_remove(struct map *map, uint64_t hash, uint32_t id) {
    table_remove(map_table_of(map, id), hash, id);
}

void map_replace(struct map *map, uint64_t hash, uint32_t id, uint32_t new_id) {
    struct map_table *from = map_table_of(map, id);
    struct map_table *to = map_table_of(map, new_id);
    if (from == to) {
        uint32_t bucket;
        CHECK(new_id <= to->id_mask);
        *table_get(to, hash, id, &bucket) = map_tag(to, hash) | new_id;
    } else {
        table_remove(from, hash, id);
        table_put(to, hash, new_id);
    }
    if (new_id >= map->id_end)
        map->id_end = new_id + 1;
}

/* Buckets in which this many entries leave room for half as many again. */
static uint32_t map_buckets_for(uint64_t entry_count) {
    uint64_t slots = (entry_count + entry_count / 2) * 100 / 88 + MAP_BUCKET_SLOTS;
    return (uint32_t)(slots / MAP_BUCKET_SLOTS);
}

/* Begin to move to a table with room for this many entries and more. */
static bool map_begin(struct map *map, uint64_t entry_count, uint32_t id_end) {
    uint32_t bucket_count = map_buckets_for(entry_count);
    struct map_table table;
    if (!table_create(&table, bucket_count, id_end))
        return false;
    if (map->table.memory == NULL) {
        map->table = table;
        return true;
    }
    map->next = table;
    map->cursor = 0;
    map->id_limit = map->id_end;
    return true;
}

/* Move the entries of one id. Returns how many. */
static uint32_t map_move_id(struct map *map, uint32_t id) {
    uint64_t hashes[MAP_HASHES_MAX];
    uint32_t count = map->hashes(map->owner, id, hashes);
    /* Each entry touches a random line in either table: fetched together they cost little more
     * than one of them. */
    for (uint32_t i = 0; i < count; i++)
        map_prefetch(map, hashes[i]);
    for (uint32_t i = 0; i < count; i++) {
        table_remove(&map->table, hashes[i], id);
        table_put(&map->next, hashes[i], id);
    }
    return count;
}

static void map_move_on(struct map *map) {
    uint32_t entries = 0;
    for (int ids = 0; ids < MAP_STEP_IDS && entries < MAP_STEP_ENTRIES; ids++) {
        if (map->cursor >= map->id_limit)
            break;
        entries += map_move_id(map, map->cursor);
        map->cursor++;
    }
    if (map->cursor < map->id_limit)
        return;
    CHECK(map->table.entry_count == 0);
    memory_free(map->table.memory);
    map->table = map->next;
    map->next = map_no_table;
}

/* Would this many entries fit, in whichever table, and ids below id_end have enough bits? */
static bool map_has_room(const struct map *map, uint64_t entry_count, uint32_t id_end) {
    const struct map_table *newest = map_is_moving(map) ? &map->next : &map->table;
    if (entry_count > map_slots_full_at(table_slots(&map->table)))
        return false;
    if (id_end > newest->id_mask + 1)
        return false;
    return !map_is_moving(map) || entry_count <= map_slots_full_at(table_slots(&map->next));
}

bool map_reserve(struct map *map, uint32_t count, uint32_t id_end) {
    if (id_end > MAP_ID_END)
        return false;
    uint64_t entry_count = map_count(map) + count;
    if (map_is_moving(map)) {
        map_move_on(map);
        /* Steps outrun insertions by far, so this loop is for owners that reserve a lot at once. */
        while (map_is_moving(map) && !map_has_room(map, entry_count, id_end))
            map_move_on(map);
    }
    if (map_is_moving(map))
        return true;
    bool has_room = map_has_room(map, entry_count, id_end);
    if (has_room && entry_count <= map_slots_grow_at(table_slots(&map->table)))
        return true;
    if (!map_begin(map, entry_count, id_end))
        return has_room;
    while (map_is_moving(map) && !map_has_room(map, entry_count, id_end))
        map_move_on(map);
    return true;
}

size_t map_growth_size(const struct map *map, uint32_t count, uint32_t id_end) {
    const struct map_table *newest = map_is_moving(map) ? &map->next : &map->table;
    uint64_t entry_count = map_count(map) + count;
    if (id_end <= newest->id_mask + 1 && entry_count <= map_slots_grow_at(table_slots(newest)))
        return 0;
    return (size_t)map_buckets_for(entry_count) * sizeof(struct map_bucket) + MAP_LINE_SIZE;
}

void map_step(struct map *map) {
    if (map_is_moving(map)) {
        map_move_on(map);
    } else if (map_count(map) == 0) {
        map_deinit(map);
    } else if (map->table.bucket_count >= MAP_SHRINK_BUCKETS_MIN &&
               map_count(map) < table_slots(&map->table) * 3 / 10) {
        /* Without memory it stays as large as it is. */
        (void)map_begin(map, map_count(map), map->id_end);
    }
}

/* The buckets of one table that a scan step covers: from first on, count of them (with the ones
 * they overflowed into), each bucket once. */
struct map_run {
    const struct map_table *table;
    uint32_t first;
    uint32_t count;
};

static struct map_run map_run_of(const struct map_table *table, uint32_t from, uint64_t end) {
    struct map_run run = {.table = table, .first = map_home(table, (uint64_t)from << 32)};
    uint32_t last = map_home(table, (end - 1) << 32);
    run.count = last - run.first + 1;
    while (run.count < table->bucket_count && table->buckets[last].overflow != 0) {
        last = table_after(table, last);
        run.count++;
    }
    return run;
}

static uint32_t map_run_slot(const struct map_run *run, uint64_t position) {
    uint64_t bucket = run->first + position / MAP_BUCKET_SLOTS;
    if (bucket >= run->table->bucket_count)
        bucket -= run->table->bucket_count;
    return run->table->buckets[bucket].slots[position % MAP_BUCKET_SLOTS];
}

static void map_run_visit(const struct map_run *run, map_visit *visit, void *context) {
    uint32_t id_mask = run->table->id_mask;
    uint64_t slots = (uint64_t)run->count * MAP_BUCKET_SLOTS;
    for (uint64_t i = 0; i < slots; i++) {
        uint32_t slot = map_run_slot(run, i);
        bool is_first = slot != 0;
        for (uint64_t j = 0; is_first && j < i; j++) {
            uint32_t earlier = map_run_slot(run, j);
            is_first = earlier == 0 || (earlier & id_mask) != (slot & id_mask);
        }
        if (is_first)
            visit(context, slot & id_mask);
    }
}

/* First upper half of a hash whose home is behind bucket. */
static uint64_t table_end_of(const struct map_table *table, uint32_t bucket) {
    uint64_t behind = (uint64_t)bucket + 1;
    return ((behind << 32) + table->bucket_count - 1) / table->bucket_count;
}

void map_scan(const struct map *map, uint32_t cursor, uint64_t *end, map_visit *visit,
              void *context) {
    const struct map_table *coarse = &map->table;
    if (map_is_moving(map) && map->next.bucket_count < coarse->bucket_count)
        coarse = &map->next;
    *end = table_end_of(coarse, map_home(coarse, (uint64_t)cursor << 32));
    /* An id is in one table only, so no id is visited twice. */
    struct map_run run = map_run_of(&map->table, cursor, *end);
    map_run_visit(&run, visit, context);
    if (map_is_moving(map)) {
        run = map_run_of(&map->next, cursor, *end);
        map_run_visit(&run, visit, context);
    }
}

size_t map_memory_size(const struct map *map) {
    size_t size = 0;
    if (map->table.memory != NULL)
        size += memory_size(map->table.memory);
    if (map_is_moving(map))
        size += memory_size(map->next.memory);
    return size;
}

static const char *map_check_entries(const struct map *map, const struct map_table *table,
                                     uint32_t *homes) {
    uint64_t hashes[MAP_HASHES_MAX];
    uint64_t entry_count = 0;
    for (uint32_t id = 0; id < map->id_end; id++) {
        bool is_moved = map_is_moving(map) && (id < map->cursor || id >= map->id_limit);
        if (is_moved != (table == &map->next))
            continue;
        uint32_t count = map->hashes(map->owner, id, hashes);
        entry_count += count;
        for (uint32_t i = 0; i < count; i++) {
            homes[map_home(table, hashes[i])]++;
            struct map_find find = {.hash = hashes[i]};
            map_find_in(&find, table);
            uint32_t found = UINT32_MAX;
            while (found != id)
                if (!map_find_next(&find, &found))
                    return "map: an entry is not found";
        }
    }
    return entry_count == table->entry_count ? NULL : "map: entries are not counted right";
}

/* What flows out of a bucket is what flows in and is at home there, less what stays. */
static const char *table_check_flow(const struct map_table *table, const uint32_t *homes) {
    uint64_t used = 0;
    uint32_t flow = table->buckets[table->bucket_count - 1].overflow;
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        const struct map_bucket *bucket = &table->buckets[i];
        uint32_t free_slots = map_bucket_match(bucket, 0, UINT32_MAX);
        uint32_t stay = MAP_BUCKET_SLOTS - (uint32_t)__builtin_popcount(free_slots);
        used += stay;
        flow += homes[i];
        if (flow < stay || flow - stay != bucket->overflow)
            return "map: an overflow counter is wrong";
        flow = bucket->overflow;
    }
    return used == table->entry_count ? NULL : "map: slots in use are not the entries";
}

static const char *map_check_table(const struct map *map, const struct map_table *table) {
    uint32_t *homes = memory_allocate_zeroed((size_t)table->bucket_count * sizeof *homes);
    if (homes == NULL)
        return "map: no memory to validate it";
    const char *wrong = map_check_entries(map, table, homes);
    if (wrong == NULL)
        wrong = table_check_flow(table, homes);
    memory_free(homes);
    return wrong;
}

bool map_validate(const struct map *map, const char **reason) {
    const char *wrong = map_check_table(map, &map->table);
    if (wrong == NULL && map_is_moving(map))
        wrong = map_check_table(map, &map->next);
    if (wrong == NULL && map_count(map) > 0 && !map_has_room(map, map_count(map), map->id_end))
        wrong = "map: a table is too full";
    if (wrong != NULL)
        *reason = wrong;
    return wrong == NULL;
}
