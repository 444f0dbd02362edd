/* The map, against a model that keeps an array of hashes for every id. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/map.h"
#include "tests/support/random.h"

enum { MODEL_IDS = 400, MODEL_PER_ID = 24 };

struct model {
    uint32_t id_end; /* of those that change at random */
    uint32_t counts[MODEL_IDS];
    uint64_t hashes[MODEL_IDS][MODEL_PER_ID];
    uint32_t entry_count;
};

static uint32_t model_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct model *model = owner;
    memcpy(hashes, model->hashes[id], model->counts[id] * sizeof *hashes);
    return model->counts[id];
}

static void model_add(struct model *model, uint32_t id, uint64_t hash) {
    model->hashes[id][model->counts[id]++] = hash;
    model->entry_count++;
}

static uint64_t model_take(struct model *model, uint32_t id, uint32_t index) {
    uint64_t hash = model->hashes[id][index];
    model->hashes[id][index] = model->hashes[id][--model->counts[id]];
    model->entry_count--;
    return hash;
}

static bool map_finds(const struct map *map, uint64_t hash, uint32_t id) {
    struct map_find find;
    uint32_t found;
    map_find(map, hash, &find);
    while (map_find_next(&find, &found)) {
        if (found == id) {
            return true;
        }
    }
    return false;
}

static void assert_valid(const struct map *map, const struct model *model) {
    ASSERT_VALID(map_validate, map);
    assert_int_equal(map_count(map), model->entry_count);
}

/* A hash whose parts repeat often: few homes, few tags, exact repetitions. */
static uint64_t crowded_hash(struct random *random) {
    uint64_t home = random_below(random, 6) * 0x2aaaaaaaU;
    uint64_t tag = random_below(random, 3) << 29;
    return home << 32 | tag;
}

static uint64_t any_hash(struct random *random, bool is_crowded) {
    return is_crowded ? crowded_hash(random) : random_next(random);
}

static void random_put(struct map *map, struct model *model, struct random *random,
                       bool is_crowded) {
    uint32_t id = (uint32_t)random_below(random, model->id_end);
    if (model->counts[id] == MODEL_PER_ID) {
        return;
    }
    uint64_t hash = any_hash(random, is_crowded);
    assert_true(map_reserve(map, 1, model->id_end));
    map_put(map, hash, id);
    model_add(model, id, hash);
    assert_true(map_finds(map, hash, id));
}

static void random_remove(struct map *map, struct model *model, struct random *random) {
    uint32_t id = (uint32_t)random_below(random, model->id_end);
    if (model->counts[id] == 0) {
        return;
    }
    uint64_t hash = model_take(model, id, (uint32_t)random_below(random, model->counts[id]));
    map_remove(map, hash, id);
    if (random_below(random, 2) == 0) {
        (void)map_step(map, model->id_end);
    }
}

static void random_replace(struct map *map, struct model *model, struct random *random) {
    uint32_t id = (uint32_t)random_below(random, model->id_end);
    uint32_t new_id = (uint32_t)random_below(random, model->id_end);
    if (model->counts[id] == 0 || model->counts[new_id] == MODEL_PER_ID || id >= map->id_end) {
        return;
    }
    uint64_t hash = model_take(model, id, (uint32_t)random_below(random, model->counts[id]));
    map_replace(map, hash, id, new_id);
    model_add(model, new_id, hash);
    assert_true(map_finds(map, hash, new_id));
}

/* A test with an empty map, its empty model and random numbers; no memory may be left. */
#define MAP_TEST(name)                                                                             \
    static void name##_of(struct map *map, struct model *model, struct random *random);            \
    TEST(name) {                                                                                   \
        map_test(#name, name##_of);                                                                \
    }                                                                                              \
    static void name##_of(struct map *map, struct model *model,                                    \
                          __attribute__((unused)) struct random *random)
static void map_test(const char *name,
                     void (*test)(struct map *map, struct model *model, struct random *random)) {
    struct random random = random_begin(name);
    OWNED struct model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    model->id_end = MODEL_IDS;
    uint64_t live_before = memory_live_count();
    struct map map;
    map_init(&map, model_hashes, model);
    test(&map, model, &random);
    map_deinit(&map);
    assert_int_equal(memory_live_count(), live_before);
}

/* Returns how often the table got another size. */
static int change_at_random(struct map *map, struct model *model, struct random *random,
                            bool is_crowded) {
    const uint32_t steps = test_rounds(20000, 20000);
    int sizes_seen = 0;
    uint32_t bucket_count = 0;
    for (uint32_t i = 0; i < steps; i++) {
        /* Growing and shrinking alternate several times. */
        bool is_growing = (i / (steps / 8 + 1)) % 2 == 0;
        uint64_t dice = random_below(random, 10);
        if (dice < (is_growing ? 6U : 2U)) {
            random_put(map, model, random, is_crowded);
        } else if (dice < 8) {
            random_remove(map, model, random);
        } else {
            random_replace(map, model, random);
        }
        sizes_seen += map->table.bucket_count != bucket_count;
        bucket_count = map->table.bucket_count;
        if (i % 7 == 0) {
            assert_valid(map, model);
        }
    }
    assert_valid(map, model);
    return sizes_seen;
}

MAP_TEST(random_changes_keep_every_entry_findable) {
    assert_true(change_at_random(map, model, random, false) > 3);
}

MAP_TEST(crowded_hashes_overflow_and_come_back) {
    (void)change_at_random(map, model, random, true);
}

/* Entries of few ids take two bytes each, and there may be more ids at any time. */
MAP_TEST(few_ids_have_short_fields_and_many_have_longer_ones) {
    model->id_end = 1 << (MAP_FIELD_BITS_FEW - 1);
    assert_true(change_at_random(map, model, random, false) > 1);
    assert_int_equal(map->table.field_bits, MAP_FIELD_BITS_FEW);
    (void)change_at_random(map, model, random, true);
    model->id_end = MODEL_IDS;
    assert_true(change_at_random(map, model, random, false) > 1);
    assert_int_equal(map->table.field_bits, MAP_FIELD_BITS_MIN);
}

TEST(an_empty_map_finds_nothing_and_holds_no_memory) {
    ENDED_BY(map_deinit) struct map map;
    struct map_find find;
    uint32_t id;
    map_init(&map, model_hashes, NULL);
    map_find(&map, 12345, &find);
    assert_false(map_find_next(&find, &id));
    map_prefetch(&map, UINT64_MAX);
    (void)map_step(&map, MODEL_IDS);
    assert_int_equal(map_memory_size(&map), 0);
}

MAP_TEST(churn_leaves_no_overflow_behind) {
    for (int i = 0; i < 2000; i++) {
        random_put(map, model, random, false);
    }
    while (map->is_moving) {
        assert_true(map_reserve(map, 0, MODEL_IDS));
    }
    for (int i = 0; i < 200000; i++) {
        uint32_t id = (uint32_t)random_below(random, MODEL_IDS);
        if (model->counts[id] == 0) {
            continue;
        }
        map_remove(map, model_take(model, id, 0), id);
        uint64_t hash = random_next(random);
        map_put(map, hash, id);
        model_add(model, id, hash);
    }
    assert_valid(map, model);
    for (uint32_t id = 0; id < MODEL_IDS; id++) {
        while (model->counts[id] > 0) {
            map_remove(map, model_take(model, id, 0), id);
        }
    }
    for (uint32_t i = 0; i < map->table.bucket_count; i++) {
        assert_int_equal(map_bucket(&map->table, i)->overflow, 0);
    }
    /* The rest is freed in bounded steps. */
    for (uint64_t left = memory_live_count(); map_memory_size(map) > 0;
         left = memory_live_count()) {
        assert_true(map_is_unfinished(map));
        (void)map_step(map, MODEL_IDS);
        assert_true(memory_live_count() < left);
        assert_true(left - memory_live_count() <= 10);
    }
    assert_false(map_is_unfinished(map));
}

/* Scan while the map changes. Hashes and ids are independent here, with one hash per id. */
enum { SCAN_IDS = 3000, SCAN_LASTING = 500 };

struct scan_model {
    uint64_t hashes[SCAN_IDS];
    bool is_present[SCAN_IDS];
    uint32_t visits[SCAN_IDS];
    uint32_t visits_in_step[SCAN_IDS];
};

static uint32_t scan_model_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct scan_model *model = owner;
    hashes[0] = model->hashes[id];
    return model->is_present[id] ? 1 : 0;
}

static void scan_model_visit(void *context, uint32_t id) {
    struct scan_model *model = context;
    assert_true(id < SCAN_IDS);
    model->visits[id]++;
    assert_int_equal(++model->visits_in_step[id], 1);
}

static void scan_model_put(struct map *map, struct scan_model *model, uint32_t id) {
    if (model->is_present[id]) {
        return;
    }
    assert_true(map_reserve(map, 1, SCAN_IDS));
    map_put(map, model->hashes[id], id);
    model->is_present[id] = true;
}

static void scan_model_remove(struct map *map, struct scan_model *model, uint32_t id) {
    if (!model->is_present[id]) {
        return;
    }
    map_remove(map, model->hashes[id], id);
    model->is_present[id] = false;
    (void)map_step(map, SCAN_IDS);
}

static void run_scan(struct random *random, bool is_growing) {
    OWNED struct scan_model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    ENDED_BY(map_deinit) struct map map;
    map_init(&map, scan_model_hashes, model);
    uint32_t ids_first = is_growing ? SCAN_LASTING : SCAN_IDS;
    for (uint32_t id = 0; id < SCAN_IDS; id++) {
        model->hashes[id] = random_next(random);
    }
    for (uint32_t id = 0; id < ids_first; id++) {
        scan_model_put(&map, model, id);
    }
    uint64_t cursor = 0;
    while (cursor < UINT64_C(1) << 32) {
        memset(model->visits_in_step, 0, sizeof model->visits_in_step);
        uint64_t end = 0;
        (void)map_scan(&map, (uint32_t)cursor, &end, scan_model_visit, model);
        assert_true(end > cursor);
        cursor = end;
        for (int i = 0; i < 30; i++) {
            uint64_t id = SCAN_LASTING + random_below(random, SCAN_IDS - SCAN_LASTING);
            if (is_growing) {
                scan_model_put(&map, model, (uint32_t)id);
            } else {
                scan_model_remove(&map, model, (uint32_t)id);
            }
        }
    }
    for (uint32_t id = 0; id < SCAN_LASTING; id++) {
        assert_true(model->visits[id] > 0);
    }
}

TEST(a_scan_sees_what_is_there_throughout_while_the_map_grows_or_shrinks) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 40; i++) {
        run_scan(&random, i % 2 == 0);
    }
}

/* ---- removing in the order of a scan ---- */

struct listed {
    uint64_t *hashes; /* by id, in order */
    uint32_t first;   /* those before it are removed */
};

static uint32_t listed_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct listed *listed = owner;
    hashes[0] = listed->hashes[id];
    return id >= listed->first;
}

static int by_hash(const void *a, const void *b) {
    const uint64_t *x = a;
    const uint64_t *y = b;
    return (*x > *y) - (*x < *y);
}

static void ignore_id(void *context, uint32_t id) {
    (void)context;
    (void)id;
}

/* What is left then has hashes close together: a smaller table would be crowded, and each scan step
 * and look-up would read thousands of buckets. */
TEST(removing_in_the_order_of_a_scan_crowds_no_table) {
    enum { ENTRIES = 100000, READ_MAX = 1024 + 300 /* buckets; MAP_SCAN_EMPTY_MAX are empty */ };
    struct random random = random_begin(__func__);
    struct listed listed = {.hashes = calloc(ENTRIES, sizeof *listed.hashes)};
    assert_non_null(listed.hashes);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        listed.hashes[i] = random_next(&random);
    }
    qsort(listed.hashes, ENTRIES, sizeof *listed.hashes, by_hash);
    struct map map;
    map_init(&map, listed_hashes, &listed);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        assert_true(map_reserve(&map, 1, ENTRIES));
        map_put(&map, listed.hashes[i], i);
    }
    while (listed.first < ENTRIES) {
        uint64_t end;
        uint32_t cursor = (uint32_t)(listed.hashes[listed.first] >> 32);
        assert_true(map_scan(&map, cursor, &end, ignore_id, NULL) <= READ_MAX);
        for (int i = 0; i < 100; i++) {
            map_remove(&map, listed.hashes[listed.first], listed.first);
            listed.first++;
            (void)map_step(&map, ENTRIES);
        }
    }
    while (map_step(&map, 0)) {}
    assert_int_equal(map_memory_size(&map), 0);
    map_deinit(&map);
    free(listed.hashes);
}

/* Buckets that finding some of the entries takes, on the average. */
static uint32_t read_on_average(const struct map *map, const struct listed *listed,
                                uint32_t count) {
    enum { SAMPLES = 500 };
    uint64_t read = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t id = listed->first + (uint32_t)((uint64_t)(count - listed->first) * i / SAMPLES);
        struct map_find find;
        uint32_t found = UINT32_MAX;
        map_find(map, listed->hashes[id], &find);
        while (found != id) {
            assert_true(map_find_next(&find, &found));
        }
        read += find.table->bucket_count - find.buckets_left + 1;
    }
    return (uint32_t)(read / SAMPLES);
}

/* The same where some were removed at random before, so many that a smaller table is just large enough:
 * its counters become full, and when a quarter is gone it is made anew, but not too small either. */
TEST(a_table_that_is_made_anew_is_not_crowded) {
    enum { ROOM = 40000, STEP = ROOM / 100, READ_MAX = 48 };
    struct random random = random_begin(__func__);
    for (uint32_t count = ROOM * 3 / 5; count < ROOM; count += STEP) {
        struct listed listed = {.hashes = calloc(count, sizeof *listed.hashes)};
        struct map map;
        assert_non_null(listed.hashes);
        for (uint32_t i = 0; i < count; i++) {
            listed.hashes[i] = random_next(&random);
        }
        qsort(listed.hashes, count, sizeof *listed.hashes, by_hash);
        map_init(&map, listed_hashes, &listed);
        assert_true(map_reserve(&map, ROOM, ROOM));
        for (uint32_t i = 0; i < count; i++) {
            map_put(&map, listed.hashes[i], i);
        }
        while (listed.first + ROOM / 8 < count) {
            if (listed.first % 500 == 0) {
                assert_in_range(read_on_average(&map, &listed, count), 1, READ_MAX);
            }
            map_remove(&map, listed.hashes[listed.first], listed.first);
            listed.first++;
            (void)map_step(&map, ROOM);
        }
        map_deinit(&map);
        free(listed.hashes);
    }
}

#ifndef SKIPLIST_TINY
struct counted {
    uint64_t *hashes;
    uint32_t moved; /* ids */
};

static uint32_t counted_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    struct counted *counted = (struct counted *)(uintptr_t)owner;
    counted->moved++;
    hashes[0] = counted->hashes[id];
    return 1;
}

/* The rehash is over before the table is full: else the last reservation would do all that is left. */
TEST(ids_with_one_entry_each_are_moved_step_by_step) {
    enum { ENTRIES = 800000 /* fields become wider */, STEP_IDS_MAX = 32 };
    struct random random = random_begin(__func__);
    struct counted counted = {.hashes = calloc(ENTRIES, sizeof *counted.hashes)};
    struct map map;
    assert_non_null(counted.hashes);
    map_init(&map, counted_hashes, &counted);
    for (uint32_t id = 0; id < ENTRIES; id++) {
        counted.hashes[id] = random_next(&random);
        counted.moved = 0;
        assert_true(map_reserve(&map, 1, id + 1));
        assert_in_range(counted.moved, 0, STEP_IDS_MAX);
        map_put(&map, counted.hashes[id], id);
    }
    map_deinit(&map);
    free(counted.hashes);
}
#endif

/* A map of many entries of which few are left: a step covers no more of the large table than
 * allowed, although the small one has only a bucket or two. */
MAP_TEST(a_step_of_a_scan_is_small_while_the_map_shrinks) {
    enum { ENTRIES = 300000, LEFT = 40, STEP_MAX = 1100 /* buckets */ };
    OWNED uint64_t *hashes = calloc(ENTRIES, sizeof *hashes);
    assert_non_null(hashes);
    assert_true(map_reserve(map, ENTRIES, MODEL_IDS));
    for (uint32_t i = 0; i < ENTRIES; i++) {
        hashes[i] = random_next(random);
        map_put(map, hashes[i], i % MODEL_IDS);
    }
    for (uint32_t i = 0; i < LEFT; i++) {
        model_add(model, i % MODEL_IDS, hashes[i]);
    }
    for (uint32_t i = LEFT; i < ENTRIES; i++) {
        map_remove(map, hashes[i], i % MODEL_IDS);
    }
    while (!map->is_moving) {
        (void)map_step(map, MODEL_IDS);
    }
    assert_true(map->next.bucket_count < map->table.bucket_count / 1000);
    static struct scan_model seen;
    seen = (struct scan_model){0};
    uint64_t end = 0;
    for (uint64_t cursor = 0; cursor < UINT64_C(1) << 32; cursor = end) {
        memset(seen.visits_in_step, 0, sizeof seen.visits_in_step);
        (void)map_scan(map, (uint32_t)cursor, &end, scan_model_visit, &seen);
        assert_true(end > cursor);
        assert_true(((end - cursor) * map->table.bucket_count) >> 32 <= STEP_MAX);
    }
    for (uint32_t id = 0; id < LEFT; id++) {
        assert_true(seen.visits[id] > 0);
    }
}

#ifndef SKIPLIST_TINY
/* The cost of a rehash depends on the ids in use, not on the largest id ever used. */
MAP_TEST(a_move_passes_no_ids_that_are_not_used_any_more) {
    for (uint32_t id = 0; id < MODEL_IDS; id++) {
        assert_true(map_reserve(map, 1, MODEL_IDS));
        model_add(model, id, random_next(random));
        map_put(map, model->hashes[id][0], id);
    }
    while (map_is_unfinished(map)) {
        assert_true(map_reserve(map, 0, MODEL_IDS));
    }
    for (uint32_t id = 2; id < MODEL_IDS; id++) {
        map_remove(map, model_take(model, id, 0), id);
    }
    int steps = 0;
    while (map_step(map, 2)) {
        steps++;
    }
    assert_valid(map, model);
    assert_true(steps <= 6);
}

#endif

MAP_TEST(a_failed_reserve_leaves_the_entries_as_they_were) {
    int failures = 0;
    for (int i = 0; i < 6000; i++) {
        uint32_t id = (uint32_t)random_below(random, MODEL_IDS);
        if (model->counts[id] == MODEL_PER_ID) {
            continue;
        }
        uint64_t hash = random_next(random);
        memory_fail_at(1);
        if (!map_reserve(map, 1, MODEL_IDS)) {
            failures++;
            memory_fail_at(0);
            assert_valid(map, model);
            assert_true(map_reserve(map, 1, MODEL_IDS));
        }
        memory_fail_at(0);
        map_put(map, hash, id);
        model_add(model, id, hash);
    }
    assert_true(failures > 0);
    assert_valid(map, model);
    assert_false(map_reserve(map, 1, MAP_ID_END + 1));
}

MAP_TEST(growing_ids_get_more_bits_in_time) {
    for (uint32_t id = 0; id < MODEL_IDS; id++) {
        uint64_t hash = random_next(random);
        assert_true(map_reserve(map, 1, id + 1));
        map_put(map, hash, id);
        model_add(model, id, hash);
        if (id >= 4) {
            map_remove(map, model_take(model, id - 4, 0), id - 4);
        }
        assert_valid(map, model);
    }
}

/* Ids of every width of a field, the largest ones included. */
TEST(ids_of_any_size_are_found_replaced_and_removed) {
    static const uint32_t ends[] = {
        2,
        4,
        8,
        9,
        128,
        129,
        256,
        257,
        2048,
        4096,
        1U << 19,
        1U << 20,
        (1U << 20) + 1,
        1U << 23,
        (1U << 23) + 1,
        MAP_ID_END,
    };
    enum { ENDS = sizeof ends / sizeof *ends, ENTRIES = 300 };
    struct random random = random_begin(__func__);
    uint64_t hashes[ENTRIES];
    for (int e = 0; e < ENDS; e++) {
        ENDED_BY(map_deinit) struct map map;
        map_init(&map, model_hashes, NULL);
        assert_true(map_reserve(&map, ENTRIES, ends[e]));
        for (uint32_t i = 0; i < ENTRIES; i++) {
            hashes[i] = random_next(&random);
            map_put(&map, hashes[i], ends[e] - 1 - i % 2);
        }
        for (uint32_t i = 0; i < ENTRIES; i++) {
            assert_true(map_finds(&map, hashes[i], ends[e] - 1 - i % 2));
            map_replace(&map, hashes[i], ends[e] - 1 - i % 2, i % 2);
            assert_true(map_finds(&map, hashes[i], i % 2));
        }
        for (uint32_t i = 0; i < ENTRIES; i++) {
            map_remove(&map, hashes[i], i % 2);
        }
        assert_int_equal(map_count(&map), 0);
    }
}

static uint32_t overflowing(const struct map *map) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < map->table.bucket_count; i++) {
        count += map_bucket(&map->table, i)->overflow != 0;
    }
    return count;
}

/* Counters that can count no further say so for good; the table is made anew when it may not be so
 * any more. */
MAP_TEST(counters_that_were_full_do_not_stay) {
    enum { ENTRIES = 4000, REST = 60 };
    assert_true(map_reserve(map, ENTRIES, MODEL_IDS));
    for (uint32_t i = 0; i < ENTRIES; i++) {
        uint64_t hash = i < REST ? random_next(random) : random_below(random, UINT32_MAX);
        map_put(map, hash, i % MODEL_IDS);
        model_add(model, i % MODEL_IDS, hash);
    }
    assert_valid(map, model);
    uint32_t before = overflowing(map);
    assert_true(before > REST);
    for (uint32_t id = 0; id < MODEL_IDS; id++) {
        uint32_t left = id < REST ? 1 : 0;
        while (model->counts[id] > left) {
            map_remove(map, model_take(model, id, left), id);
        }
    }
    assert_true(overflowing(map) > REST);
    while (map_step(map, MODEL_IDS)) {}
    assert_valid(map, model);
    assert_true(overflowing(map) < REST);
}
