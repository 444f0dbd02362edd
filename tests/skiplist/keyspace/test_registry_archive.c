/* Archives that are copies, made in steps while their boards go on. */
#include "codec/timestamp.h"
#include "skiplist/keyspace/effect.h"
#include "tests/support/keyspace.h"
#include "tests/support/registry_workload.h"

#define DAY_MS  INT64_C(86400000)
#define NOON_MS INT64_C(1794830400000) /* 2026-11-16T12:00:00Z */
#define END_MS  INT64_C(1794873600000) /* the end of that day */

enum { LARGE = 1000 };

static struct registry *create_registry(void) {
    return workload_create_registry(0x5eed);
}

#define REGISTRY_TEST(name) REGISTRY_TEST_OF(name, create_registry)

/* PERIOD DAY COPY, of a layout with the usual times. */
static struct board_options copying_options(void) {
    struct board_options options = *workload_options('p');
    options.period = (struct period){.unit = PERIOD_DAY, .every = 1};
    options.archives_max = BOARD_ARCHIVES_ALL;
    options.copies = true;
    options.is_created = true;
    return options;
}

static struct registry_key *create_key(struct registry *registry, const char *name,
                                       uint32_t count) {
    struct board_options options = copying_options();
    return key_create_like(registry, name, &options, count, NOON_MS);
}

/* Number of members on the board; -1: no such key. */
static int64_t count_of(struct registry *registry, const char *name, int64_t now_ms) {
    const struct registry_key *key = key_find(registry, 0, name, now_ms);
    return key != NULL ? (int64_t)board_count(&key->board) : -1;
}

/* All steps there are at this time. Returns how many. */
static uint32_t run_steps(struct registry *registry, int64_t now_ms) {
    uint32_t steps = 0;
    while (registry_roll_archive_step(registry, now_ms, 50)) {
        steps++;
    }
    return steps;
}

/* ---- sentences ---- */

REGISTRY_TEST(a_small_board_is_copied_in_one_step_and_goes_on) {
    const struct registry_key *key = create_key(registry, "day", 5);
    int64_t start_us = layout_time_first_us(board_layout(&key->board));
    assert_true(registry_expiry_next_due(registry) == END_MS);
    assert_false(registry_roll_archive_step(registry, END_MS - 1, 50));
    assert_int_equal(registry_roll_due(registry, END_MS, 100), 0);
    assert_true(registry_roll_archive_step(registry, END_MS, 50));
    assert_int_equal(count_of(registry, "day", END_MS), 5);
    assert_int_equal(count_of(registry, "day@2026-11-16", END_MS), 5);
    assert_false(registry_roll_archive_step(registry, END_MS, 50));
    assert_int_equal(registry_totals(registry)->rolled, 1);
    const struct board_options *options = registry_options(key_find(registry, 0, "day", END_MS));
    assert_true(options->period_start_ms == END_MS);
    assert_true(registry_expiry_next_due(registry) == END_MS + DAY_MS);
    /* The board's times stay where they are. */
    assert_true(layout_time_first_us(&options->layout) == start_us);
    const struct board_options *archived =
        registry_options(key_find(registry, 0, "day@2026-11-16", END_MS));
    assert_int_equal(archived->period.unit, PERIOD_NONE);
    assert_false(archived->copies);
    assert_false(archived->is_created);
    assert_true((archived->guards & BOARD_FROZEN) != 0);
    assert_true(archived->is_archive);
    assert_true(registry_state(key_find(registry, 0, "day@2026-11-16", END_MS))->ended_ms ==
                END_MS);
}

REGISTRY_TEST(a_large_board_is_copied_in_steps_and_is_never_gone) {
    struct registry_key *key = create_key(registry, "day", LARGE);
    for (uint32_t i = 0; i < LARGE / 50; i++) {
        assert_true(registry_roll_archive_step(registry, END_MS + i, 50));
        assert_int_equal(count_of(registry, "day@2026-11-16", END_MS + i), -1);
        assert_int_equal(count_of(registry, "day", END_MS + i), LARGE + i);
        assert_non_null(registry_peek(registry, 0, BYTES("day"), END_MS + i));
        assert_true(key_put(registry, key, bytes_from_text(formatted("new%u", i)), 3));
    }
    (void)run_steps(registry, END_MS + DAY_MS / 2);
    assert_int_equal(count_of(registry, "day@2026-11-16", END_MS + DAY_MS), LARGE + LARGE / 50);
    assert_true(registry_options(key)->period_start_ms == END_MS);
}

REGISTRY_TEST(an_empty_board_and_one_without_archives_only_enter_the_next_period) {
    struct board_options options = copying_options();
    const struct registry_key *empty = create_key(registry, "empty", 0);
    options.archives_max = 0;
    const struct registry_key *none = key_create_like(registry, "none", &options, LARGE, NOON_MS);
    assert_int_equal(run_steps(registry, END_MS), 2);
    assert_int_equal(registry_count(registry, 0), 2);
    assert_true(registry_options(empty)->period_start_ms == END_MS);
    assert_true(registry_options(none)->period_start_ms == END_MS);
}

REGISTRY_TEST(behind_several_periods_there_is_one_archive) {
    create_key(registry, "day", 5);
    (void)run_steps(registry, END_MS + 3 * DAY_MS);
    assert_int_equal(registry_count(registry, 0), 2);
    assert_int_equal(count_of(registry, "day@2026-11-16", END_MS + 3 * DAY_MS), 5);
    assert_true(registry_expiry_next_due(registry) == END_MS + 4 * DAY_MS);
}

REGISTRY_TEST(a_name_that_is_taken_gets_a_number) {
    create_key(registry, "day", 5);
    key_create_like(registry, "day@2026-11-16", workload_options('p'), 1, NOON_MS);
    (void)run_steps(registry, END_MS);
    assert_int_equal(count_of(registry, "day@2026-11-16", END_MS), 1);
    assert_int_equal(count_of(registry, "day@2026-11-16.2", END_MS), 5);
}

REGISTRY_TEST(old_archives_expire) {
    struct board_options options = copying_options();
    options.archives_max = 2;
    key_create_like(registry, "day", &options, 5, NOON_MS);
    for (int day = 0; day < 4; day++) {
        (void)run_steps(registry, END_MS + day * DAY_MS);
        (void)registry_expiry_remove_due(registry, END_MS + day * DAY_MS, 100);
    }
    assert_int_equal(registry_count(registry, 0), 3);
    assert_int_equal(count_of(registry, "day@2026-11-18", END_MS + 3 * DAY_MS), 5);
    assert_int_equal(count_of(registry, "day@2026-11-19", END_MS + 3 * DAY_MS), 5);
}

/* SETTLE YES: the archive is to be settled, and expires when it is. */
REGISTRY_TEST(an_archive_that_is_a_copy_is_settled_as_others_are) {
    struct board_options options = copying_options();
    options.archives_max = 2;
    options.settles = true;
    key_create_like(registry, "day", &options, LARGE, NOON_MS);
    (void)run_steps(registry, END_MS + 7);
    const struct registry_key *archive = key_find(registry, 0, "day@2026-11-16", END_MS + 7);
    assert_non_null(archive);
    assert_true(board_options_are_unsettled(registry_options(archive), registry_state(archive)));
    assert_true(registry_state(archive)->ended_ms == END_MS);
    assert_true(registry_state(archive)->settled_expire_ms == END_MS + 2 * DAY_MS);
    assert_true(registry_expiry(registry, archive) == REGISTRY_NO_EXPIRY);
}

REGISTRY_TEST(what_is_due_does_not_wait_for_a_long_copy) {
    create_key(registry, "day", LARGE);
    assert_true(registry_roll_archive_step(registry, END_MS, 50));
    struct board_options options = copying_options();
    options.copies = false;
    key_create_like(registry, "other", &options, 3, NOON_MS);
    assert_int_equal(registry_roll_due(registry, END_MS, 100), 1);
    assert_int_equal(count_of(registry, "other@2026-11-16", END_MS), 3);
}

REGISTRY_TEST(a_board_that_goes_or_gets_other_rules_meanwhile_is_begun_again_or_not_at_all) {
    create_key(registry, "day", LARGE);
    for (int i = 0; i < 3; i++) {
        assert_true(registry_roll_archive_step(registry, END_MS, 50));
    }
    struct registry_key *key = key_find(registry, 0, "day", END_MS);
    struct board_options options;
    board_options_copy(registry_options(key), &options);
    options.guards = BOARD_FROZEN;
    key = registry_board_alter(registry, key, &options, NULL);
    assert_non_null(key);
    assert_int_equal(registry_rename(registry, key, 0, BYTES("other"), END_MS), REGISTRY_OK);
    assert_true(registry_roll_archive_step(registry, END_MS, 50));
    (void)run_steps(registry, END_MS);
    assert_int_equal(count_of(registry, "other@2026-11-16", END_MS), LARGE);
    int64_t later_ms = END_MS + DAY_MS;
    assert_true(registry_roll_archive_step(registry, later_ms, 50));
    assert_true(registry_roll_archive_step(registry, later_ms, 50));
    registry_remove(registry, key_find(registry, 0, "other", later_ms));
    (void)run_steps(registry, later_ms);
    assert_int_equal(registry_count(registry, 0), 1);
    assert_true(registry_expiry_next_due(registry) == REGISTRY_NO_EXPIRY);
}

/* Made by LB.CREATE, or by a write: then it goes with its last member. */
REGISTRY_TEST(a_board_that_is_emptied_before_its_copy_is_whole_has_no_archive) {
    for (int i = 0; i < 2; i++) {
        struct board_options options = copying_options();
        options.is_created = i == 0;
        struct registry_key *key = key_create_like(registry, "day", &options, LARGE, NOON_MS);
        assert_true(registry_roll_archive_step(registry, END_MS, 50));
        assert_true(registry_roll_archive_step(registry, END_MS, 50));
        registry_board_cut(registry, key, 0, LARGE);
        if (i == 1) {
            registry_remove(registry, key);
        }
        (void)run_steps(registry, END_MS);
        assert_int_equal(registry_count(registry, 0), i == 0);
        int64_t next_ms = i == 0 ? END_MS + DAY_MS : REGISTRY_NO_EXPIRY;
        assert_true(registry_expiry_next_due(registry) == next_ms);
        if (i == 0) {
            registry_remove(registry, key);
        }
    }
}

/* What goes and comes before the copy is whole is so in the archive. */
REGISTRY_TEST(a_board_that_is_emptied_and_filled_again_has_an_archive_of_what_is_there) {
    struct registry_key *key = create_key(registry, "day", LARGE);
    assert_true(registry_roll_archive_step(registry, END_MS, 50));
    assert_true(registry_roll_archive_step(registry, END_MS, 50));
    registry_board_cut(registry, key, 0, LARGE);
    assert_true(key_put(registry, key, BYTES("new"), 7));
    (void)run_steps(registry, END_MS);
    assert_int_equal(count_of(registry, "day@2026-11-16", END_MS), 1);
}

REGISTRY_TEST(a_board_that_expires_before_its_copy_is_made_becomes_the_archive) {
    struct registry_key *key = create_key(registry, "day", LARGE);
    key_expire(registry, key, END_MS + 10);
    assert_true(registry_roll_archive_step(registry, END_MS + 1, 50));
    assert_true(registry_roll_archive_step(registry, END_MS + 1, 50));
    assert_int_equal(count_of(registry, "day", END_MS + 10), -1);
    assert_int_equal(count_of(registry, "day@2026-11-16", END_MS + 10), LARGE);
    (void)run_steps(registry, END_MS + 10);
    /* And by itself; one that expires earlier has no archive. */
    key_expire(registry, create_key(registry, "late", 3), END_MS + 10);
    key_expire(registry, create_key(registry, "early", 3), END_MS - 1);
    assert_int_equal(registry_expiry_remove_due(registry, END_MS + 10, 100), 2);
    assert_int_equal(count_of(registry, "late@2026-11-16", END_MS + 10), 3);
    assert_int_equal(registry_count(registry, 0), 2);
}

TEST(without_memory_a_board_that_expires_waits_to_become_the_archive) {
    for (int is_created = 0; is_created < 2; is_created++) {
        bool is_done = false;
        for (uint64_t nth = 1; !is_done; nth++) {
            struct registry *registry = create_registry();
            struct board_options options = copying_options();
            bool is_new;
            options.is_created = is_created != 0;
            struct registry_key *key = key_create_like(registry, "day", &options, 5, NOON_MS);
            key_expire(registry, key, END_MS + 10);
            memory_fail_at(nth);
            key = registry_find_or_create(registry, 0, BYTES("day"), END_MS + 10, &is_new);
            memory_fail_at(0);
            is_done = key != NULL;
            ASSERT_VALID(registry_validate, registry);
            (void)registry_expiry_remove_due(registry, END_MS + 10, 100);
            ASSERT_VALID(registry_validate, registry);
            assert_int_equal(count_of(registry, "day@2026-11-16", END_MS + 10), 5);
            registry_destroy(registry);
        }
    }
}

REGISTRY_TEST(after_the_clock_was_set_back_the_board_is_in_the_period_of_now) {
    create_key(registry, "day", 5);
    (void)run_steps(registry, END_MS);
    assert_int_equal(registry_roll_ahead(registry, NOON_MS), 1);
    assert_int_equal(registry_count(registry, 0), 2);
    assert_true(registry_expiry_next_due(registry) == END_MS);
    (void)run_steps(registry, END_MS);
    assert_int_equal(count_of(registry, "day@2026-11-16.2", END_MS), 5);
}

REGISTRY_TEST(while_held_nothing_is_copied_and_what_was_is_given_up) {
    create_key(registry, "day", LARGE);
    assert_true(registry_roll_archive_step(registry, END_MS, 50));
    assert_true(registry_roll_archive_step(registry, END_MS, 50));
    assert_true(registry_roll_archive_limit(registry, 0, END_MS));
    assert_false(registry_roll_archive_step(registry, END_MS, 50));
    assert_true(registry_expiry_next_due(registry) == REGISTRY_NO_EXPIRY);
    registry_free_all(registry);
    assert_false(registry_roll_archive_limit(registry, UINT64_MAX, END_MS));
    assert_false(registry_roll_archive_step(registry, END_MS, 50));
    int64_t due_ms = registry_expiry_next_due(registry);
    assert_in_range(due_ms, END_MS + 1, END_MS + DAY_MS - 1);
    (void)run_steps(registry, due_ms);
    assert_int_equal(count_of(registry, "day@2026-11-16", due_ms), LARGE);
}

REGISTRY_TEST(a_board_that_finds_no_memory_does_not_keep_others_waiting) {
    static const char *const archives[] = {"day@2026-11-16", "end@2026-11-16"};
    create_key(registry, "day", LARGE);
    create_key(registry, "end", LARGE);
    assert_true(registry_roll_archive_step(registry, END_MS, 50));
    memory_fail_at(1);
    while (registry_totals(registry)->rolled == 0) {
        assert_true(registry_roll_archive_step(registry, END_MS, 50));
    }
    memory_fail_at(0);
    (void)run_steps(registry, END_MS);
    assert_int_equal(registry_totals(registry)->rolled, 1);
    assert_int_equal(count_of(registry, archives[0], END_MS) +
                         count_of(registry, archives[1], END_MS),
                     LARGE - 1);
    int64_t due_ms = registry_expiry_next_due(registry);
    assert_in_range(due_ms, END_MS + 1, END_MS + DAY_MS - 1);
    (void)run_steps(registry, due_ms);
    for (size_t i = 0; i < COUNT_OF(archives); i++) {
        assert_int_equal(count_of(registry, archives[i], due_ms), LARGE);
    }
}

REGISTRY_TEST(a_board_for_which_there_is_no_room_is_not_begun_and_others_are) {
    create_key(registry, "large", 2 * LARGE);
    create_key(registry, "day", LARGE);
    create_key(registry, "small", 5);
    uint64_t room = board_memory_size(&key_find(registry, 0, "day", NOON_MS)->board) + 1;
    assert_false(registry_roll_archive_limit(registry, room, END_MS));
    (void)run_steps(registry, END_MS);
    assert_true(registry_roll_archive_limit(registry, room, END_MS));
    assert_false(registry_roll_archive_limit(registry, room, END_MS));
    assert_int_equal(count_of(registry, "day@2026-11-16", END_MS), LARGE);
    assert_int_equal(count_of(registry, "small@2026-11-16", END_MS), 5);
    assert_int_equal(count_of(registry, "large@2026-11-16", END_MS), -1);
    int64_t due_ms = registry_expiry_next_due(registry);
    assert_in_range(due_ms, END_MS + 1, END_MS + DAY_MS - 1);
    assert_false(registry_roll_archive_limit(registry, UINT64_MAX, due_ms));
    (void)run_steps(registry, due_ms);
    assert_int_equal(count_of(registry, "large@2026-11-16", due_ms), 2 * LARGE);
}

REGISTRY_TEST(what_was_given_up_of_a_board_does_not_keep_others_waiting) {
    create_key(registry, "day", LARGE);
    create_key(registry, "end", LARGE);
    assert_true(registry_roll_archive_step(registry, END_MS, 50));
    assert_true(registry_roll_archive_limit(registry, 0, END_MS));
    assert_false(registry_roll_archive_limit(registry, UINT64_MAX, END_MS));
    (void)run_steps(registry, END_MS);
    assert_int_equal(registry_totals(registry)->rolled, 1);
    (void)run_steps(registry, registry_expiry_next_due(registry));
    assert_int_equal(registry_totals(registry)->rolled, 2);
}

REGISTRY_TEST(whether_archives_are_copies_may_be_changed) {
    struct registry_key *key = create_key(registry, "day", 5);
    struct board_options options;
    board_options_copy(registry_options(key), &options);
    options.copies = false;
    key = registry_board_alter(registry, key, &options, NULL);
    ASSERT_VALID(registry_validate, registry);
    options.copies = true;
    key = registry_board_alter(registry, key, &options, NULL);
    ASSERT_VALID(registry_validate, registry);
    options.copies = false;
    assert_non_null(registry_board_alter(registry, key, &options, NULL));
    assert_int_equal(count_of(registry, "day@2026-11-16", END_MS), 5);
    assert_int_equal(count_of(registry, "day", END_MS), 0);
}

TEST(without_memory_the_archive_is_made_later) {
    for (uint32_t count = 5; count <= LARGE; count += LARGE - 5) {
        bool is_done = false;
        for (uint64_t nth = 1; !is_done; nth++) {
            uint64_t live_before = memory_live_count();
            struct registry *registry = create_registry();
            create_key(registry, "day", count);
            memory_fail_at(nth);
            (void)run_steps(registry, END_MS);
            memory_fail_at(0);
            is_done = registry_totals(registry)->rolled == 1;
            ASSERT_VALID(registry_validate, registry);
            assert_int_equal(count_of(registry, "day", END_MS), count);
            assert_int_equal(count_of(registry, "day@2026-11-16", END_MS),
                             is_done ? (int64_t)count : -1);
            if (!is_done) {
                assert_in_range(registry_expiry_next_due(registry), END_MS + 1,
                                END_MS + DAY_MS - 1);
                (void)run_steps(registry, registry_expiry_next_due(registry));
            }
            assert_int_equal(count_of(registry, "day@2026-11-16", END_MS), count);
            registry_destroy(registry);
            assert_int_equal(memory_live_count(), live_before);
        }
    }
}

/* ---- effects ---- */

struct pair {
    struct effect_listener listener;
    struct registry *registry, *follower;
    uint32_t archives; /* compared with their boards at the moment they came */
    uint32_t in_steps;
};

static void pair_receive(void *context, const struct effect *effect) {
    struct pair *pair = context;
    if (effect->kind == EFFECT_COPY && effect->key->kind == REGISTRY_BOARD &&
        memchr(effect->to_name.at, '@', effect->to_name.size)) {
        const struct registry_key *key =
            registry_peek(pair->registry, effect->database, effect->name, INT64_MIN);
        if (key != NULL && registry_options(key)->copies) {
            assert_same_boards(&key->board, &effect->key->board);
            pair->archives++;
            pair->in_steps += board_count(&key->board) > 128;
        }
    }
    registry_follow(pair->follower, effect);
}

static void pair_begin(struct pair *pair, struct registry *registry) {
    *pair = (struct pair){
        .listener = {.receive = pair_receive, .context = pair},
        .registry = registry,
        .follower = create_registry(),
    };
    registry_set_passive(pair->follower, true);
    effect_listener_add(registry, &pair->listener);
}

static void pair_end(struct pair *pair) {
    workload_assert_equal(pair->registry, pair->follower);
    ASSERT_VALID(registry_validate, pair->follower);
    effect_listener_remove(pair->registry, &pair->listener);
    registry_destroy(pair->follower);
}

/* A clock ahead, or behind, only decides how much is prepared when the effect comes. */
REGISTRY_TEST(a_passive_registry_copies_ahead_and_takes_it_when_the_effect_comes) {
    static const struct {
        int64_t clock_ms;
        uint32_t steps;
    } rows[] = {
        {END_MS - 1, 100}, {END_MS, 5}, {END_MS, 19}, {END_MS, 100}, {END_MS + DAY_MS, 100}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pair pair;
        test_row("%zu", i);
        pair_begin(&pair, registry);
        create_key(registry, "day", LARGE);
        for (uint32_t step = 0; step < rows[i].steps; step++) {
            (void)registry_roll_archive_step(pair.follower, rows[i].clock_ms, 50);
        }
        assert_int_equal(count_of(pair.follower, "day@2026-11-16", END_MS), -1);
        assert_int_equal(count_of(pair.follower, "day", END_MS), LARGE);
        (void)run_steps(registry, END_MS);
        assert_int_equal(count_of(pair.follower, "day@2026-11-16", END_MS), LARGE);
        (void)run_steps(pair.follower, END_MS);
        pair_end(&pair);
        (void)registry_flush(registry, 0);
    }
}

/* What was prepared is finished by the passive one itself when it is master now. */
REGISTRY_TEST(one_that_is_passive_no_longer_makes_the_archive) {
    struct pair pair;
    pair_begin(&pair, registry);
    create_key(registry, "day", LARGE);
    (void)run_steps(pair.follower, END_MS);
    effect_listener_remove(registry, &pair.listener);
    registry_set_passive(pair.follower, false);
    (void)run_steps(pair.follower, END_MS);
    assert_int_equal(count_of(pair.follower, "day@2026-11-16", END_MS), LARGE);
    registry_destroy(pair.follower);
}

TEST(each_archive_is_its_board_at_one_moment_and_effects_make_the_same) {
    const uint32_t rounds = test_rounds(60000, 4000);
    struct workload workload;
    struct pair pair;
    workload_begin(&workload, __func__, 300);
    workload.database_count = 2;
    pair_begin(&pair, workload.registry);
    memcpy(workload.favourite, "busy", 4);
    workload.favourite_size = 4;
    /* Until enough of them were large: how many of them are is drawn. */
    for (uint32_t round = 0; round < rounds || pair.in_steps <= 10; round++) {
        bool is_new;
        struct board_options options = copying_options();
        assert_true(round < 20 * rounds);
        options.period.unit = PERIOD_HOUR;
        options.archives_max = 3;
        options.is_created = random_below(&workload.random, 2) == 0;
        struct registry_key *key = registry_find_or_create_like(
            workload.registry, 0, BYTES("busy"), &options, NULL, workload.now_ms, &is_new);
        assert_non_null(key);
        workload_step(&workload);
        for (uint32_t i = (uint32_t)random_below(&workload.random, 4); i > 0; i--) {
            (void)registry_roll_archive_step(workload.registry, workload.now_ms,
                                             1 + (uint32_t)random_below(&workload.random, 100));
            (void)registry_roll_archive_step(pair.follower, workload.now_ms,
                                             1 + (uint32_t)random_below(&workload.random, 100));
        }
    }
    print_message("archives %u, large %u\n", pair.archives, pair.in_steps);
    assert_true(pair.archives > rounds / 100);
    pair_end(&pair);
    workload_end(&workload);
}
