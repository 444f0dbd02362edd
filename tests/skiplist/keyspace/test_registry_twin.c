/* A registry of boards and hashes against its naive twin: a list of keys that carries out everything at its time. Once with
 * periods, and once without them, where allocations fail as well. */
#include "skiplist/keyspace/registry.h"
#include "tests/support/keyspace.h"
#include "tests/support/random.h"
#include "tests/support/registry_workload.h"

enum { TWIN_KEYS = 200, TWIN_NAME = 96, TWIN_DATABASES = 2, TWIN_NAMES = 40 };

struct twin_key {
    bool is_there;
    uint32_t database;
    char name[TWIN_NAME];
    uint32_t kind;
    struct board_options options; /* of boards */
    uint64_t mark;
    uint32_t count; /* of members or fields */
    int64_t expire_at_ms;
};

struct twin {
    struct registry *registry;
    struct random random;
    bool has_periods; /* otherwise allocations fail */
    int64_t now_ms;
    uint64_t marks;
    uint64_t expired_count, removed_count; /* without periods; removed: boards to be freed */
    uint64_t failures;
    struct twin_key keys[TWIN_KEYS];
};

static uint32_t below(struct twin *twin, uint64_t limit) {
    return (uint32_t)random_below(&twin->random, limit);
}

/* ---- keys ---- */

static struct twin_key *twin_find(struct twin *twin, uint32_t database, const char *name) {
    for (int i = 0; i < TWIN_KEYS; i++) {
        struct twin_key *key = &twin->keys[i];
        if (key->is_there && key->database == database && strcmp(key->name, name) == 0) {
            return key;
        }
    }
    return NULL;
}

static void twin_remove(struct twin *twin, struct twin_key *key) {
    twin->removed_count += key->is_there;
    key->is_there = false;
}

/* A slot for a key of this name; an existing key is removed. */
static struct twin_key *twin_make(struct twin *twin, uint32_t database, const char *name) {
    struct twin_key *key = twin_find(twin, database, name);
    if (key != NULL) {
        twin_remove(twin, key);
    }
    for (int i = 0; key == NULL; i++) {
        assert_true(i < TWIN_KEYS);
        key = twin->keys[i].is_there ? NULL : &twin->keys[i];
    }
    key->is_there = true;
    key->database = database;
    strcpy(key->name, name);
    key->expire_at_ms = REGISTRY_NO_EXPIRY;
    return key;
}

static void twin_begin_period(struct twin_key *key, int64_t now_ms) {
    if (key->options.period.unit != PERIOD_NONE) {
        board_options_begin_period(&key->options, now_ms);
    }
}

/* The same of a new board, in the period of now. */
static struct twin_key *twin_make_board(struct twin *twin, uint32_t database, const char *name,
                                        const struct board_options *options) {
    struct twin_key *key = twin_make(twin, database, name);
    key->kind = REGISTRY_BOARD;
    key->options = *options;
    key->count = 0;
    twin_begin_period(key, twin->now_ms);
    return key;
}

/* ---- what comes of its own time ---- */

static void twin_archive(struct twin *twin, const struct twin_key *key, const char *name,
                         int64_t expire_at_ms) {
    struct twin_key copy = *key;
    struct twin_key *archive = twin_make(twin, key->database, name);
    archive->kind = REGISTRY_BOARD;
    archive->options = copy.options;
    archive->options.is_created = false;
    archive->options.period = (struct period){.unit = PERIOD_NONE};
    archive->mark = copy.mark;
    archive->count = copy.count;
    archive->expire_at_ms = expire_at_ms;
}

static void twin_roll(struct twin *twin, struct twin_key *key) {
    const struct board_options *options = &key->options;
    char date[PERIOD_NAME_TEXT_MAX];
    char name[TWIN_NAME];
    size_t size = period_print_name(date, &options->period, options->period_start_ms);
    snprintf(name, sizeof name, "%.60s@%.*s", key->name, (int)size, date);
    const struct twin_key *taken = twin_find(twin, key->database, name);
    for (int i = 2; taken != NULL && (taken->expire_at_ms == REGISTRY_NO_EXPIRY ||
                                      taken->expire_at_ms > options->period_end_ms);
         i++) {
        snprintf(name, sizeof name, "%.60s@%.*s.%d", key->name, (int)size, date, i);
        taken = twin_find(twin, key->database, name);
    }
    if (key->count > 0 && options->archives_max > 0) {
        int64_t end_ms = options->period_end_ms;
        for (uint32_t i = 0;
             options->archives_max != BOARD_ARCHIVES_ALL && i < options->archives_max; i++) {
            end_ms = period_start_after(&options->period, end_ms, 1);
        }
        twin_archive(twin, key, name,
                     options->archives_max == BOARD_ARCHIVES_ALL ? REGISTRY_NO_EXPIRY : end_ms);
    }
    key->count = 0;
    key->is_there = options->is_created;
    twin_begin_period(key, options->period_end_ms);
}

/* The first key for which something is due; at the same time the end of a period precedes the expiry of
 * its key. NULL: none has a period or an expiry. */
static struct twin_key *twin_first_due(struct twin *twin, int64_t *due_ms, bool *is_roll) {
    struct twin_key *first = NULL;
    *due_ms = REGISTRY_NO_EXPIRY;
    for (int i = 0; i < TWIN_KEYS; i++) {
        struct twin_key *key = &twin->keys[i];
        if (!key->is_there) {
            continue;
        }
        for (int is_expiry = 0; is_expiry < 2; is_expiry++) {
            bool has_time = is_expiry ? key->expire_at_ms != REGISTRY_NO_EXPIRY
                                      : key->options.period.unit != PERIOD_NONE;
            int64_t time_ms = is_expiry ? key->expire_at_ms : key->options.period_end_ms;
            if (has_time && (first == NULL || time_ms < *due_ms)) {
                first = key;
                *due_ms = time_ms;
                *is_roll = !is_expiry;
            }
        }
    }
    return first;
}

/* Carry out everything that is due, in order. */
static void twin_catch_up(struct twin *twin) {
    int64_t due_ms;
    bool is_roll;
    struct twin_key *first;
    while ((first = twin_first_due(twin, &due_ms, &is_roll)) != NULL && due_ms <= twin->now_ms) {
        if (is_roll) {
            twin_roll(twin, first);
        } else {
            twin_remove(twin, first);
            twin->expired_count++;
        }
    }
}

/* ---- steps, on both ---- */

/* The name of a board, or now and then that of an existing or possible archive. */
static const char *twin_name(struct twin *twin, bool may_be_archive) {
    static const char *const names[] = {"day", "day2", "week", "week2", "month", "plain", "other"};
    static char picked[TWIN_NAME];
    if (!twin->has_periods) {
        /* Some share long beginnings. */
        uint32_t number = below(twin, TWIN_NAMES);
        snprintf(picked, sizeof picked, "p%s%u",
                 number % 3 == 0 ? " is a long name that many boards share, season " : "", number);
        return picked;
    }
    snprintf(picked, sizeof picked, "%s", names[below(twin, COUNT_OF(names))]);
    if (may_be_archive && below(twin, 3) == 0) {
        uint32_t index = below(twin, TWIN_KEYS);
        for (uint32_t i = 0; i < TWIN_KEYS; i++) {
            const struct twin_key *key = &twin->keys[(index + i) % TWIN_KEYS];
            if (key->is_there && strchr(key->name, '@') != NULL) {
                return strcpy(picked, key->name);
            }
        }
    }
    return picked;
}

static uint32_t twin_database(struct twin *twin) {
    return below(twin, TWIN_DATABASES);
}

static struct registry_key *twin_check(struct twin *twin, uint32_t database, const char *name) {
    struct registry_key *found = key_find(twin->registry, database, name, twin->now_ms);
    const struct twin_key *key = twin_find(twin, database, name);
    if ((found != NULL) != (key != NULL)) {
        fail_msg("%s is %sthere", name, found != NULL ? "" : "not ");
    }
    if (found == NULL) {
        return NULL;
    }
    assert_true(bytes_is(registry_name(found), name));
    assert_int_equal(found->database, database);
    assert_true(registry_expiry(twin->registry, found) == key->expire_at_ms);
    assert_int_equal(found->kind, key->kind);
    if (key->kind == REGISTRY_HASH) {
        struct bytes value;
        assert_string_equal(registry_kind_name(twin->registry, found), "hash");
        assert_int_equal(hash_count(registry_hash(found)), key->count);
        assert_true(hash_find(registry_hash(found), BYTES("f0"), &value));
        assert_true(bytes_is(value, formatted("v%" PRIu64, key->mark)));
        return found;
    }
    const struct board_options *options = registry_options(found);
    assert_string_equal(registry_kind_name(twin->registry, found), "zset");
    assert_int_equal(board_count(&found->board), key->count);
    assert_true(key->count == 0 || board_mark(&found->board) == key->mark);
    assert_true(period_equal(&options->period, &key->options.period));
    assert_int_equal(options->is_created, key->options.is_created);
    if (options->period.unit != PERIOD_NONE) {
        assert_true(options->period_start_ms == key->options.period_start_ms);
        assert_true(options->period_end_ms == key->options.period_end_ms);
    }
    return found;
}

/* What was tried has failed for lack of memory: nothing has changed. */
static bool twin_has_failed(struct twin *twin, bool is_done) {
    memory_fail_at(0);
    assert_true(is_done || !twin->has_periods);
    twin->failures += !is_done;
    return !is_done;
}

static void step_write(struct twin *twin) {
    static const char letters[] = "pdwm";
    const char *name = twin_name(twin, false);
    uint32_t database = twin_database(twin);
    bool is_created = below(twin, 2) == 0;
    struct board_options options =
        *workload_options(twin->has_periods ? letters[below(twin, 4)] : 'p');
    bool is_new;
    options.is_created = true;
    struct bytes bytes = bytes_from_text(name);
    struct registry_key *found =
        is_created
            ? registry_find_or_create_like(twin->registry, database, bytes, &options, NULL,
                                           twin->now_ms, &is_new)
            : registry_find_or_create(twin->registry, database, bytes, twin->now_ms, &is_new);
    struct twin_key *key = twin_find(twin, database, name);
    if (twin_has_failed(twin, found != NULL)) {
        assert_null(key);
        return;
    }
    assert_int_equal(is_new, key == NULL);
    if (is_new) {
        key = twin_make_board(twin, database, name,
                              is_created ? &options : workload_options(name[0]));
    }
    if (key->kind == REGISTRY_BOARD && key->count == 0) {
        key->mark = 1000 * ++twin->marks;
        key->count = is_created && is_new ? 0 : 1 + below(twin, 30);
        assert_true(key_fill(twin->registry, found, key->mark, key->count));
    }
}

static void step_write_hash(struct twin *twin) {
    const char *name = twin_name(twin, false);
    uint32_t database = twin_database(twin);
    bool is_new;
    struct registry_key *found = registry_hash_find_or_create(
        twin->registry, database, bytes_from_text(name), twin->now_ms, &is_new);
    struct twin_key *key = twin_find(twin, database, name);
    if (twin_has_failed(twin, found != NULL)) {
        assert_null(key);
        return;
    }
    assert_int_equal(is_new, key == NULL);
    if (is_new) {
        key = twin_make(twin, database, name);
        key->kind = REGISTRY_HASH;
        memset(&key->options, 0, sizeof key->options);
        key->mark = ++twin->marks;
        key->count = 1 + below(twin, 12);
        for (uint32_t i = 0; i < key->count; i++) {
            const struct bytes pair[] = {bytes_from_text(formatted("f%u", i)),
                                         bytes_from_text(formatted("v%" PRIu64, key->mark))};
            uint32_t added_count;
            assert_int_equal(registry_hash_put(twin->registry, &found, pair, 1, &added_count),
                             HASH_OK);
        }
    }
}

static void step_put_board(struct twin *twin) {
    const char *name = twin_name(twin, false);
    uint32_t database = twin_database(twin);
    uint64_t mark = 1000 * ++twin->marks;
    uint32_t count = 1 + below(twin, 12);
    struct board board;
    bool is_made =
        registry_create_board(twin->registry, bytes_from_text(name), twin->now_ms, &board);
    bool is_put = is_made && board_fill(&board, mark, count) &&
                  registry_put_board(twin->registry, database, bytes_from_text(name), &board,
                                     twin->now_ms) == REGISTRY_OK;
    if (twin_has_failed(twin, is_put)) {
        if (is_made) {
            registry_discard_board(twin->registry, &board);
        }
        return;
    }
    struct twin_key *key = twin_make_board(twin, database, name, workload_options(name[0]));
    key->mark = mark;
    key->count = count;
}

static void step_remove(struct twin *twin) {
    const char *name = twin_name(twin, true);
    uint32_t database = twin_database(twin);
    struct registry_key *found = twin_check(twin, database, name);
    if (found != NULL) {
        registry_remove(twin->registry, found);
        twin_remove(twin, twin_find(twin, database, name));
    }
}

/* No board with a period gets the name of an archive: the order of two periods that end at the same
 * time is undefined. */
static void step_rename_or_copy(struct twin *twin) {
    char from[TWIN_NAME];
    char to[TWIN_NAME];
    uint32_t database = twin_database(twin);
    uint32_t to_database = twin_database(twin);
    strcpy(from, twin_name(twin, true));
    struct registry_key *found = twin_check(twin, database, from);
    const struct twin_key *key_from = twin_find(twin, database, from);
    strcpy(to, twin_name(twin, found != NULL && key_from->options.period.unit == PERIOD_NONE));
    if (found == NULL) {
        return;
    }
    bool is_copy = below(twin, 2) == 0;
    struct bytes to_name = bytes_from_text(to);
    enum registry_status status =
        is_copy ? registry_copy(twin->registry, found, to_database, to_name, twin->now_ms)
                : registry_rename(twin->registry, found, to_database, to_name, twin->now_ms);
    if (twin_has_failed(twin, status == REGISTRY_OK) ||
        (database == to_database && strcmp(from, to) == 0)) {
        return;
    }
    struct twin_key copy = *key_from;
    twin_find(twin, database, from)->is_there = is_copy;
    struct twin_key *key = twin_make(twin, to_database, to);
    copy.database = to_database;
    strcpy(copy.name, to);
    *key = copy;
}

static void step_expire(struct twin *twin) {
    static const int64_t spans_ms[] = {1, 3600000, 86400000, 14 * INT64_C(86400000)};
    const char *name = twin_name(twin, true);
    uint32_t database = twin_database(twin);
    struct registry_key *found = twin_check(twin, database, name);
    if (found == NULL) {
        return;
    }
    struct twin_key *key = twin_find(twin, database, name);
    int64_t expire_at_ms = twin->now_ms + spans_ms[below(twin, 4)];
    if (below(twin, 4) == 0) {
        expire_at_ms = REGISTRY_NO_EXPIRY;
    } else if (below(twin, 4) == 0 && key->options.period.unit != PERIOD_NONE) {
        expire_at_ms = key->options.period_end_ms;
    }
    bool is_set = registry_expiry_set(twin->registry, found, expire_at_ms, false) == REGISTRY_OK;
    if (!twin_has_failed(twin, is_set)) {
        key->expire_at_ms = expire_at_ms;
    }
}

static void step_roll_by_hand(struct twin *twin) {
    char name[TWIN_NAME];
    char archive[TWIN_NAME];
    uint32_t database = twin_database(twin);
    strcpy(name, twin_name(twin, true));
    strcpy(archive, twin_name(twin, true));
    struct registry_key *found = twin_check(twin, database, name);
    struct twin_key *key = twin_find(twin, database, name);
    if (!twin->has_periods || found == NULL || key->kind != REGISTRY_BOARD ||
        twin_check(twin, database, archive) != NULL) {
        return;
    }
    bool is_kept = key->options.is_created || below(twin, 2) == 0;
    struct board_options next;
    board_options_copy(registry_options(found), &next);
    next.is_created = true;
    assert_int_equal(registry_roll(twin->registry, found, bytes_from_text(archive),
                                   is_kept && !key->options.is_created ? &next : NULL,
                                   twin->now_ms + 5000, twin->now_ms),
                     REGISTRY_OK);
    if (key->count > 0) {
        twin_archive(twin, key, archive, twin->now_ms + 5000);
    }
    key->count = 0;
    key->is_there = is_kept;
    key->options.is_created = true;
}

/* To the next event, close to it, or any time. */
static void step_clock(struct twin *twin) {
    static const int64_t spans_ms[] = {
        1, 1000, 3600000, 86400000, 5 * INT64_C(86400000), 40 * INT64_C(86400000)};
    int64_t due_ms = registry_expiry_next_due(twin->registry);
    int64_t to_ms = twin->now_ms + spans_ms[below(twin, 6)];
    if (due_ms != REGISTRY_NO_EXPIRY && below(twin, 2) == 0) {
        to_ms = due_ms + (int64_t)below(twin, 3) - 1;
    }
    twin->now_ms = to_ms > twin->now_ms ? to_ms : twin->now_ms;
    twin_catch_up(twin);
}

static void step_tick(struct twin *twin) {
    registry_roll_due(twin->registry, twin->now_ms, below(twin, 4));
    registry_expiry_remove_due(twin->registry, twin->now_ms, below(twin, 4));
    uint64_t freed_before = registry_totals(twin->registry)->freed;
    uint32_t work = below(twin, 100);
    bool has_more = registry_free_step(twin->registry, work);
    assert_int_equal(has_more, registry_totals(twin->registry)->unfreed > 0);
    assert_true(registry_totals(twin->registry)->freed - freed_before <= work);
}

static void step_look(struct twin *twin) {
    twin_check(twin, twin_database(twin), twin_name(twin, true));
}

/* Number of keys. */
static uint32_t twin_count(const struct twin *twin, uint32_t database) {
    uint32_t count = 0;
    for (int i = 0; i < TWIN_KEYS; i++) {
        count += twin->keys[i].is_there && twin->keys[i].database == database;
    }
    return count;
}

static void step_draw(struct twin *twin) {
    uint32_t database = twin_database(twin);
    char name[TWIN_NAME];
    const struct registry_key *drawn =
        registry_walk_random(twin->registry, database, random_next(&twin->random), twin->now_ms);
    assert_int_equal(drawn != NULL, twin_count(twin, database) > 0);
    if (drawn != NULL) {
        snprintf(name, sizeof name, "%.*s", (int)registry_name(drawn).size,
                 registry_name(drawn).at);
        assert_ptr_equal(twin_check(twin, database, name), drawn);
    }
}

/* Now and then, and before the twin runs out of slots for archives that are kept for ever. */
static void step_flush(struct twin *twin) {
    uint32_t count = twin_count(twin, 0) + twin_count(twin, 1);
    if (count < TWIN_KEYS / 2 && below(twin, 100) > 0) {
        return;
    }
    registry_roll_due(twin->registry, twin->now_ms, UINT32_MAX);
    registry_expiry_remove_due(twin->registry, twin->now_ms, UINT32_MAX);
    uint32_t database = below(twin, TWIN_DATABASES + 1);
    bool is_all = database == TWIN_DATABASES;
    uint64_t expected = is_all ? count : twin_count(twin, database);
    assert_int_equal(registry_flush(twin->registry, is_all ? REGISTRY_DATABASES : database),
                     expected);
    for (int i = 0; i < TWIN_KEYS; i++) {
        if (is_all || twin->keys[i].database == database) {
            twin_remove(twin, &twin->keys[i]);
        }
    }
}

/* ---- comparing ---- */

struct counting {
    struct twin *twin;
    uint32_t database;
    uint32_t count;
};

static void count_key(void *context, const struct registry_key *key) {
    struct counting *counting = context;
    char name[TWIN_NAME];
    snprintf(name, sizeof name, "%.*s", (int)registry_name(key).size, registry_name(key).at);
    if (twin_find(counting->twin, counting->database, name) == NULL) {
        fail_msg("%s is there", name);
    }
    counting->count++;
}

/* What has expired is not there, removed or not. */
static void compare_all(struct twin *twin) {
    registry_roll_due(twin->registry, twin->now_ms, UINT32_MAX);
    for (uint32_t database = 0; database < TWIN_DATABASES; database++) {
        struct counting counting = {.twin = twin, .database = database};
        registry_walk_each(twin->registry, database, twin->now_ms, count_key, &counting);
        assert_int_equal(counting.count, twin_count(twin, database));
    }
    for (int i = 0; i < TWIN_KEYS; i++) {
        const struct twin_key *key = &twin->keys[i];
        if (key->is_there) {
            assert_non_null(registry_peek(twin->registry, key->database, bytes_from_text(key->name),
                                          twin->now_ms));
            twin_check(twin, key->database, key->name);
        }
    }
}

/* When all that has expired is removed, the registry counts what the twin counts. */
static void compare_counts(struct twin *twin) {
    const struct registry_totals *totals = registry_totals(twin->registry);
    registry_expiry_remove_due(twin->registry, twin->now_ms, UINT32_MAX);
    for (uint32_t database = 0; database < TWIN_DATABASES; database++) {
        uint32_t expiring_count = 0;
        int64_t left_ms = 0;
        for (int i = 0; i < TWIN_KEYS; i++) {
            const struct twin_key *key = &twin->keys[i];
            if (key->is_there && key->database == database &&
                key->expire_at_ms != REGISTRY_NO_EXPIRY) {
                expiring_count++;
                left_ms += key->expire_at_ms - twin->now_ms;
            }
        }
        assert_int_equal(registry_count(twin->registry, database), twin_count(twin, database));
        assert_int_equal(registry_expiry_count(twin->registry, database), expiring_count);
        assert_int_equal(registry_expiry_average_ttl_ms(twin->registry, database, twin->now_ms),
                         left_ms > 0 ? left_ms / (int64_t)expiring_count : 0);
    }
    int64_t due_ms;
    bool is_roll;
    (void)twin_first_due(twin, &due_ms, &is_roll);
    assert_int_equal(registry_expiry_next_due(twin->registry), due_ms);
    if (!twin->has_periods) {
        assert_int_equal(totals->expired, twin->expired_count);
        assert_int_equal(totals->unfreed + totals->freed, twin->removed_count);
    }
}

static void run_twins(const char *name, bool has_periods, int step_count, int compare_every) {
    static void (*const steps[])(struct twin *) = {
        step_write,      step_write,  step_write,          step_write, step_put_board,
        step_remove,     step_expire, step_rename_or_copy, step_clock, step_roll_by_hand,
        step_clock,      step_tick,   step_look,           step_look,  step_draw,
        step_write_hash, step_flush};
    static struct twin twin;
    uint64_t live_before = memory_live_count();
    twin = (struct twin){.registry = workload_create_registry(0x5eed),
                         .random = random_begin(name),
                         .has_periods = has_periods,
                         .now_ms = INT64_C(1772150340000)}; /* 2026-02-26T23:59:00Z */
    for (int step = 0; step < step_count; step++) {
        if (!has_periods && below(&twin, 4) == 0) {
            memory_fail_at(1 + below(&twin, 12));
        }
        steps[below(&twin, COUNT_OF(steps))](&twin);
        memory_fail_at(0);
        if (step % compare_every == 0) {
            ASSERT_VALID(registry_validate, twin.registry);
            compare_all(&twin);
            if (below(&twin, 4) == 0) {
                compare_counts(&twin);
            }
        }
    }
    assert_true(has_periods ? registry_totals(twin.registry)->rolled > (uint64_t)step_count / 100
                            : twin.failures > 10);
    registry_destroy(twin.registry);
    assert_int_equal(memory_live_count(), live_before);
}

TEST(it_behaves_as_a_list_of_keys_does_whatever_allocation_fails) {
    run_twins(__func__, false, (int)test_rounds(80000, 8000), 4);
}

TEST(a_registry_of_periods_is_as_its_naive_twin) {
    run_twins(__func__, true, (int)test_rounds(100000, 20000), 50);
}
