/* A pass over all keys beside a naive twin, which keeps a list of the names that must come: while a snapshot is walked,
 * and keys come and go, are renamed, copied, archived, flushed and exchanged. */
#include "skiplist/keyspace/registry_walk.h"

#include <stdlib.h>

#include "skiplist/keyspace/registry.h"
#include "tests/support/keyspace.h"
#include "tests/support/registry_workload.h"

/* ---- the twin ---- */

enum { NAMES_MAX = 8192 };

struct name_due {
    uint32_t database;
    size_t size;
    char at[WORKLOAD_NAME_MAX + REGISTRY_SUFFIX_MAX];
    bool is_due; /* it has been there since the pass began, or came in front of it */
    uint32_t times;
};

struct twin {
    struct registry *registry;
    struct registry_pass pass;
    struct effect_listener listener;
    struct name_due names[NAMES_MAX];
    uint32_t count;
};

static void note_due(struct twin *twin, const struct registry_key *key) {
    if (key->database < twin->pass.first_database || key->database >= twin->pass.end_database) {
        return;
    }
    struct name_due *name = &twin->names[twin->count++];
    assert_in_range(twin->count, 1, NAMES_MAX);
    *name = (struct name_due){
        .database = key->database, .size = registry_name(key).size, .is_due = true};
    assert_in_range(name->size, 1, sizeof name->at);
    memcpy(name->at, registry_name(key).at, name->size);
}

/* The name that is due; NULL: none. */
static struct name_due *find_due(struct twin *twin, uint32_t database, struct bytes name) {
    for (uint32_t i = 0; i < twin->count; i++) {
        struct name_due *due = &twin->names[i];
        if (due->is_due && due->database == database &&
            bytes_equal((struct bytes){due->at, due->size}, name)) {
            return due;
        }
    }
    return NULL;
}

static void note_gone(struct twin *twin, uint32_t database, struct bytes name) {
    struct name_due *due = find_due(twin, database, name);
    if (due != NULL) {
        due->is_due = false;
    }
}

static void note_flushed(struct twin *twin, uint32_t database) {
    for (uint32_t i = 0; i < twin->count; i++) {
        twin->names[i].is_due &= twin->names[i].database != database;
    }
}

static void note_come(struct twin *twin, const struct registry_key *key) {
    if (key->database >= twin->pass.first_database && key->database < twin->pass.end_database &&
        !registry_walk_pass_has_passed(&twin->pass, key) &&
        find_due(twin, key->database, registry_name(key)) == NULL) {
        note_due(twin, key);
    }
}

static void receive(void *context, const struct effect *effect) {
    struct twin *twin = context;
    switch (effect->kind) {
    case EFFECT_REMOVE:
        note_gone(twin, effect->database, effect->name);
        break;
    case EFFECT_RENAME:
        note_gone(twin, effect->database, effect->name);
        note_come(twin, effect->key);
        break;
    case EFFECT_COPY:
    case EFFECT_CREATE:
    case EFFECT_FILL:
        note_come(twin, effect->key);
        break;
    case EFFECT_FLUSH:
        note_flushed(twin, effect->database);
        break;
    case EFFECT_PUT:
    case EFFECT_TAKE:
    case EFFECT_CUT:
    case EFFECT_TAGS:
    case EFFECT_STATE:
    case EFFECT_NOTE:
    case EFFECT_OPTIONS:
    case EFFECT_EXPIRE:
        break;
    }
}

static void note_there(void *context, const struct registry_key *key) {
    note_due(context, key);
}

static void note_all(struct twin *twin) {
    twin->count = 0;
    for (uint32_t i = twin->pass.first_database; i < twin->pass.end_database; i++) {
        registry_walk_each(twin->registry, i, INT64_MIN, note_there, twin);
    }
}

static void begin_pass(struct twin *twin, struct random *random) {
    uint32_t first = (uint32_t)random_below(random, 4);
    registry_walk_pass_begin(twin->registry, &twin->pass, first,
                             first + 1 + (uint32_t)random_below(random, 3));
    note_all(twin);
}

/* Some keys come; a few are removed by whoever passes. true: that was the last. */
static bool pass_some(struct twin *twin, struct random *random) {
    for (uint64_t left = random_below(random, 12); left > 0; left--) {
        struct registry_key *key = registry_walk_pass_next(twin->registry, &twin->pass, INT64_MIN);
        if (key == NULL) {
            continue;
        }
        struct name_due *due = find_due(twin, key->database, registry_name(key));
        if (due != NULL) {
            assert_int_equal(due->times++, 0);
        }
        if (random_below(random, 10) == 0) {
            registry_remove(twin->registry, key);
        }
    }
    return registry_walk_pass_is_over(&twin->pass);
}

static void expect_all_came(const struct twin *twin) {
    for (uint32_t i = 0; i < twin->count; i++) {
        const struct name_due *due = &twin->names[i];
        if (due->is_due && due->times == 0) {
            fail_msg("%.*s of database %u did not come", (int)due->size, due->at, due->database);
        }
    }
}

/* ---- what goes on meanwhile ---- */

static void walk_some(struct registry *registry, struct random *random) {
    union {
        struct board_stored of_board;
        struct hash_pair of_hash;
    } entries[5];
    struct registry_walk_piece piece;
    for (uint64_t left = random_below(random, 6); left > 0; left--) {
        if (!registry_walk_next(registry, entries, COUNT_OF(entries), &piece)) {
            registry_walk_begin(registry);
        }
    }
}

struct replacing {
    struct registry *other;
    struct random *random;
};

/* Most of the keys are in the copy as well. */
static void put_in_other(void *context, const struct registry_key *key) {
    const struct replacing *replacing = context;
    bool is_new;
    if (random_below(replacing->random, 4) != 0) {
        struct registry_key *put = registry_find_or_create_in(
            replacing->other, key->database, registry_name(key), workload_options('p'), 0, &is_new);
        assert_non_null(put);
    }
}

/* A full copy takes the place of all keys. */
static void exchange(struct twin *twin, struct random *random) {
    struct replacing replacing = {.other = registry_create_beside(twin->registry),
                                  .random = random};
    assert_non_null(replacing.other);
    registry_walk_end(twin->registry);
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        registry_walk_each(twin->registry, i, INT64_MIN, put_in_other, &replacing);
    }
    registry_exchange(twin->registry, replacing.other);
    registry_destroy(replacing.other);
    note_all(twin); /* the pass begins anew */
}

/* The workload's names are few: others move in the map as it grows and shrinks. */
static void add_or_remove(struct workload *workload, struct random *random) {
    char text[WORKLOAD_NAME_MAX];
    bool is_new;
    uint64_t of = random_below(random, 400);
    for (uint64_t i = random_below(random, 2) == 0 ? random_below(random, 300) : 0; i > 0; i--) {
        snprintf(text, sizeof text, "p%u", (unsigned)(of + i));
        struct registry_key *key =
            registry_find(workload->registry, 1, bytes_from_text(text), workload->now_ms);
        if (key != NULL && random_below(random, 2) == 0) {
            registry_remove(workload->registry, key);
        } else if (key == NULL) {
            assert_non_null(registry_find_or_create_like(
                workload->registry, 1, bytes_from_text(text), workload_options('p'), NULL,
                workload->now_ms, &is_new));
        }
    }
}

TEST(a_key_that_is_there_all_the_time_comes_once_whatever_changes) {
    static struct twin twin;
    ENDED_BY(workload_end) struct workload workload;
    workload_begin(&workload, __func__, 10);
    workload.database_count = 4;
    twin.registry = workload.registry;
    twin.listener = (struct effect_listener){.receive = receive, .context = &twin};
    twin.count = 0;
    effect_listener_add(workload.registry, &twin.listener);
    for (int i = 0; i < (is_short_run() ? 400 : 4000); i++) {
        begin_pass(&twin, &workload.random);
        bool is_walked = random_below(&workload.random, 4) != 0;
        do {
            for (uint64_t left = random_below(&workload.random, 8); left > 0; left--) {
                workload_step(&workload);
            }
            if (is_walked) {
                walk_some(workload.registry, &workload.random);
            }
            if (random_below(&workload.random, 20) == 0) {
                add_or_remove(&workload, &workload.random);
            } else if (random_below(&workload.random, 50) == 0) {
                exchange(&twin, &workload.random);
            }
        } while (!pass_some(&twin, &workload.random));
        expect_all_came(&twin);
    }
    registry_walk_pass_end(workload.registry, &twin.pass);
    registry_walk_end(workload.registry);
    effect_listener_remove(workload.registry, &twin.listener);
    ASSERT_VALID(registry_validate, workload.registry);
}

REGISTRY_TEST_OF(a_pass_that_removes_all_it_meets_ends_with_none_left, create_usual_registry) {
    enum { KEYS = 5000 };
    struct registry_pass pass = {.is_going = false};
    uint32_t steps = 0;
    char name[16];
    for (int i = 0; i < KEYS; i++) {
        snprintf(name, sizeof name, "k%d", i);
        key_create(registry, 0, name, 1, 0);
    }
    registry_walk_pass_begin(registry, &pass, 0, 1);
    while (!registry_walk_pass_is_over(&pass)) {
        struct registry_key *key = registry_walk_pass_next(registry, &pass, INT64_MIN);
        if (key != NULL) {
            registry_remove(registry, key);
        }
        assert_in_range(++steps, 1, 4 * KEYS);
    }
    assert_int_equal(registry_count(registry, 0), 0);
    registry_walk_pass_end(registry, &pass);
}

REGISTRY_TEST_OF(an_expired_key_does_not_come, create_usual_registry) {
    struct registry_pass pass = {.is_going = false};
    uint32_t count = 0;
    struct registry_key *key = key_create(registry, 0, "gone", 1, 0);
    key_create(registry, 0, "there", 1, 0);
    key_expire(registry, key, 100);
    registry_walk_pass_begin(registry, &pass, 0, REGISTRY_DATABASES);
    while (!registry_walk_pass_is_over(&pass)) {
        key = registry_walk_pass_next(registry, &pass, 100);
        if (key != NULL) {
            assert_true(bytes_equal(registry_name(key), BYTES("there")));
            count++;
        }
    }
    assert_int_equal(count, 1);
    assert_null(registry_walk_pass_next(registry, &pass, 100));
    key = registry_find(registry, 0, BYTES("there"), 100);
    assert_true(registry_walk_pass_has_passed(&pass, key));
    registry_walk_pass_begin(registry, &pass, 1, 2);
    assert_false(registry_walk_pass_has_passed(&pass, key));
    registry_walk_pass_end(registry, &pass);
    registry_walk_pass_end(registry, &pass);
}
