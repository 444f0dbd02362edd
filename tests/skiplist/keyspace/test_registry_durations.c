/* Durations that shift with the clock: what is told of them, in steps, makes a copy that follows by effects equal. */
#include "tests/support/keyspace.h"
#include "tests/support/random.h"

enum { NAMES = 400, NAME_MAX_SIZE = 8 };

struct pair {
    struct registry *registry, *copy;
    struct effect_listener listener;
    uint64_t expire_count; /* effects */
    int64_t now_ms;
};

static void receive(void *context, const struct effect *effect) {
    struct pair *pair = context;
    pair->expire_count += effect->kind == EFFECT_EXPIRE;
    registry_follow(pair->copy, effect);
}

static void tell_all(struct pair *pair) {
    while (registry_expiry_tell_shifted(pair->registry, 16)) {}
}

static void begin(struct pair *pair) {
    *pair = (struct pair){
        .registry = create_usual_registry(), .copy = create_usual_registry(), .now_ms = 1000000};
    pair->listener = (struct effect_listener){.receive = receive, .context = pair};
    effect_listener_add(pair->registry, &pair->listener);
    registry_set_passive(pair->copy, true);
    registry_expiry_set_offset(pair->registry, pair->now_ms);
    tell_all(pair);
}

static void end(struct pair *pair) {
    ASSERT_VALID(registry_validate, pair->registry);
    registry_destroy(pair->registry);
    registry_destroy(pair->copy);
}

/* A test with a registry and its copy. */
#define PAIR_TEST(name)                                                                            \
    static void name##_of(struct pair *pair);                                                      \
    TEST(name) {                                                                                   \
        struct pair pair;                                                                          \
        begin(&pair);                                                                              \
        name##_of(&pair);                                                                          \
        end(&pair);                                                                                \
    }                                                                                              \
    static void name##_of(struct pair *pair)

static struct registry_key *key_of(struct pair *pair, uint32_t database, uint32_t number) {
    bool is_new;
    struct registry_key *key = registry_find_or_create_like(
        pair->registry, database, bytes_from_text(formatted("k%u", (unsigned)number)),
        &usual_options, NULL, pair->now_ms, &is_new);
    assert_non_null(key);
    return key;
}

struct compared {
    struct pair *pair;
    uint64_t different, count;
};

static void compare(void *context, const struct registry_key *key) {
    struct compared *compared = context;
    struct pair *pair = compared->pair;
    const struct registry_key *other =
        registry_peek(pair->copy, key->database, registry_name(key), INT64_MIN);
    assert_non_null(other);
    compared->count++;
    compared->different +=
        registry_expiry(pair->copy, other) != registry_expiry(pair->registry, key);
}

/* The number of keys whose expiries differ. */
static uint64_t differences(struct pair *pair) {
    struct compared compared = {.pair = pair};
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        registry_walk_each(pair->registry, i, INT64_MIN, compare, &compared);
        assert_int_equal(registry_count(pair->registry, i), registry_count(pair->copy, i));
    }
    return compared.different;
}

PAIR_TEST(a_shift_is_told_in_steps) {
    for (uint32_t i = 0; i < NAMES; i++) {
        assert_int_equal(registry_expiry_set(pair->registry, key_of(pair, i % 3, i),
                                             pair->now_ms + 5000000 + i, i % 4 != 0),
                         REGISTRY_OK);
    }
    assert_int_equal(differences(pair), 0);
    pair->expire_count = 0;
    registry_expiry_set_offset(pair->registry, pair->now_ms + 3600000);
    assert_int_equal(differences(pair), NAMES * 3 / 4);
    assert_true(registry_expiry_tell_shifted(pair->registry, 16));
    assert_in_range(pair->expire_count, 1, 100);
    tell_all(pair);
    assert_int_equal(differences(pair), 0);
    assert_int_equal(pair->expire_count, NAMES * 3 / 4);
    assert_false(registry_expiry_tell_shifted(pair->registry, 16));
    assert_int_equal(pair->expire_count, NAMES * 3 / 4);
}

/* The clocks of a machine are never read at the same moment: what they differ by then shifts nothing. */
PAIR_TEST(less_than_a_second_shifts_nothing_until_it_has_gathered) {
    struct registry_key *key = key_of(pair, 0, 1);
    assert_int_equal(registry_expiry_set(pair->registry, key, 9000000, true), REGISTRY_OK);
    pair->expire_count = 0;
    registry_expiry_set_offset(pair->registry, pair->now_ms + 999);
    registry_expiry_set_offset(pair->registry, pair->now_ms - 999);
    tell_all(pair);
    assert_int_equal(registry_expiry(pair->registry, key), 9000000);
    assert_int_equal(pair->expire_count, 0);
    registry_expiry_set_offset(pair->registry, pair->now_ms - 1000);
    assert_int_equal(registry_expiry(pair->registry, key), 8999000);
    registry_expiry_set_offset(pair->registry, pair->now_ms - 1999);
    assert_int_equal(registry_expiry(pair->registry, key), 8999000);
    tell_all(pair);
    assert_int_equal(pair->expire_count, 1);
    assert_int_equal(differences(pair), 0);
}

/* A master that becomes a replica while it tells: its copies hold what it holds. */
PAIR_TEST(who_becomes_passive_tells_the_rest_before) {
    for (uint32_t i = 0; i < NAMES; i++) {
        assert_int_equal(
            registry_expiry_set(pair->registry, key_of(pair, i % 2, i), 5000000 + i, true),
            REGISTRY_OK);
    }
    registry_expiry_set_offset(pair->registry, pair->now_ms - 30000);
    assert_true(registry_expiry_tell_shifted(pair->registry, 16));
    assert_true(differences(pair) > 0);
    registry_set_passive(pair->registry, true);
    assert_int_equal(differences(pair), 0);
    registry_expiry_set_offset(pair->registry, pair->now_ms + 7200000);
    assert_false(registry_expiry_tell_shifted(pair->registry, 16));
    assert_int_equal(differences(pair), 0);
}

static void change_some(struct pair *pair, struct random *random) {
    uint32_t database = (uint32_t)random_below(random, 3);
    struct registry_key *key = key_of(pair, database, (uint32_t)random_below(random, NAMES));
    const char *name = formatted("k%u", (unsigned)random_below(random, NAMES));
    uint32_t to = (uint32_t)random_below(random, 3);
    int64_t at_ms = pair->now_ms + 1000000000 + (int64_t)random_below(random, 1000000);
    switch (random_below(random, 6)) {
    case 0:
        registry_remove(pair->registry, key);
        break;
    case 1:
        assert_int_equal(
            registry_rename(pair->registry, key, to, bytes_from_text(name), pair->now_ms),
            REGISTRY_OK);
        break;
    case 2:
        assert_int_equal(
            registry_copy(pair->registry, key, to, bytes_from_text(name), pair->now_ms),
            REGISTRY_OK);
        break;
    case 3:
        assert_int_equal(registry_expiry_set(pair->registry, key, at_ms, false), REGISTRY_OK);
        break;
    default:
        assert_int_equal(registry_expiry_set(pair->registry, key, at_ms, true), REGISTRY_OK);
        break;
    }
}

PAIR_TEST(changes_during_the_telling_are_not_lost) {
    struct random random = random_begin("changes_during_the_telling_are_not_lost");
    for (uint32_t round = 0; round < 200; round++) {
        for (uint32_t i = 0; i < 50; i++) {
            change_some(pair, &random);
        }
        assert_int_equal(differences(pair), 0);
        registry_expiry_set_offset(
            pair->registry, pair->now_ms + (int64_t)random_below(&random, 20000000) - 10000000);
        bool has_more = true;
        for (uint32_t i = 0; has_more; i++) {
            for (uint32_t j = random_below(&random, 8) != 0 ? 0 : 5; j > 0; j--) {
                change_some(pair, &random);
            }
            if (i == 5 && random_below(&random, 4) == 0) { /* and it shifts again meanwhile */
                registry_expiry_set_offset(pair->registry, pair->now_ms + 40000000);
            }
            has_more = registry_expiry_tell_shifted(pair->registry, 4);
            (void)registry_free_step(pair->registry, 1000);
            (void)registry_free_step(pair->copy, 1000);
        }
        assert_int_equal(differences(pair), 0);
        if (random_below(&random, 20) == 0) {
            (void)registry_flush(pair->registry, (uint32_t)random_below(&random, 3));
        }
    }
}
