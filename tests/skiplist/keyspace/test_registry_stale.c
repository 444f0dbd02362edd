/* STALE, sentence by sentence, and against a naive twin. */
#include "skiplist/keyspace/registry.h"
#include "tests/support/keyspace.h"
#include "tests/support/layout_text.h"
#include "tests/support/random.h"
#include "tests/support/stored_text.h"

#define HOUR_MS  INT64_C(3600000)
#define START_MS INT64_C(1793491200000) /* 2026-11-01T00:00:00Z */
#define NOON_MS  INT64_C(1794830400000) /* 2026-11-16T12:00:00Z */

#define REGISTRY_TEST(name) REGISTRY_TEST_OF(name, create_usual_registry)

static struct board_options rules_from(const char *layout, int64_t stale_ms) {
    struct board_options options = {.stale_ms = stale_ms};
    char error[LAYOUT_ERROR_MAX];
    if (layout_parse(bytes_from_text(layout), &options.layout, error) != LAYOUT_OK) {
        fail_msg("%s", error);
    }
    return options;
}

#define LAYOUT "FIELD score 20 TIME 40 MS START 2026-11-01T00:00:00Z"

static struct registry_key *create(struct registry *registry, const char *name,
                                   const struct board_options *options) {
    return key_create_like(registry, name, options, 0, NOON_MS);
}

/* score is the first field's ordinal. */
static void put(struct registry *registry, struct registry_key *key, const char *member,
                uint64_t score, int64_t time_ms) {
    const struct layout *layout = board_layout(&key->board);
    uint64_t packed = layout_with_ordinal(layout, layout_zero_key(layout), 0, score);
    assert_int_equal(layout_stamp(layout, packed, time_ms * 1000, &packed), LAYOUT_OK);
    assert_true(key_put(registry, key, bytes_from_text(member), packed));
}

static const char *members_of(struct registry *registry, const char *name) {
    static char text[1024];
    const struct registry_key *key = registry_peek(registry, 0, bytes_from_text(name), INT64_MIN);
    text[0] = '\0';
    if (key == NULL) {
        return "gone";
    }
    for (uint32_t i = 0; i < board_count(&key->board); i++) {
        struct bytes member = stored_text(board_at(&key->board, i).member);
        size_t size = strlen(text);
        snprintf(text + size, sizeof text - size, "%s%.*s", i > 0 ? " " : "", (int)member.size,
                 member.at);
    }
    return text;
}

/* All boards, in steps of this size. */
static void pass(struct registry *registry, int64_t now_ms, uint32_t work_max) {
    struct registry_pass all = {.is_going = false};
    registry_walk_pass_begin(registry, &all, 0, REGISTRY_DATABASES);
    while (!registry_walk_pass_is_over(&all)) {
        struct registry_key *key = registry_walk_pass_next(registry, &all, now_ms);
        bool is_done = key == NULL || !registry_board_may_drop_stale(key, now_ms);
        uint64_t from_key = REGISTRY_STALE_BEGIN;
        uint32_t removed_count = 0;
        while (!is_done) {
            uint32_t work = work_max;
            removed_count +=
                registry_board_drop_stale(registry, key, now_ms, &from_key, &work, &is_done);
        }
        if (removed_count > 0 && registry_board_is_over(key)) {
            registry_remove(registry, key);
        }
    }
    registry_walk_pass_end(registry, &all);
    ASSERT_VALID(registry_validate, registry);
}

REGISTRY_TEST(who_is_stale_leaves_and_the_others_stay_in_order) {
    struct board_options options = rules_from(LAYOUT, 6 * HOUR_MS);
    struct registry_key *key = create(registry, "k", &options);
    put(registry, key, "zoe", 900, NOON_MS);
    put(registry, key, "ann", 700, NOON_MS - 6 * HOUR_MS - 1);
    put(registry, key, "bob", 700, NOON_MS - 6 * HOUR_MS);
    put(registry, key, "cid", 500, NOON_MS - 7 * HOUR_MS);
    put(registry, key, "dan", 100, NOON_MS - 1);
    pass(registry, NOON_MS, 100);
    assert_string_equal(members_of(registry, "k"), "zoe bob dan");
    assert_int_equal(registry_totals(registry)->stale, 2);
    assert_int_equal(registry_member_count(registry, 0), 3);
    pass(registry, NOON_MS + 1, 100);
    assert_string_equal(members_of(registry, "k"), "zoe dan");
    pass(registry, NOON_MS + 1, 1);
    assert_string_equal(members_of(registry, "k"), "zoe dan");
}

/* Of any layout: what a time of so many ms before now means, and whether it is stale after an hour. */
REGISTRY_TEST(a_time_is_over_when_its_unit_is) {
    static const struct {
        const char *layout;
        int64_t before_ms;
        bool leaves;
    } rows[] = {
        {"FIELD s 9 TIME 40 MS START 2026-11-01T00:00:00Z", HOUR_MS, false},
        {"FIELD s 9 TIME 40 MS START 2026-11-01T00:00:00Z", HOUR_MS + 1, true},
        {"FIELD s 9 TIME 40 MS START 2026-11-01T00:00:00Z LATEST", HOUR_MS, false},
        {"FIELD s 9 TIME 40 MS START 2026-11-01T00:00:00Z LATEST", HOUR_MS + 1, true},
        {"FIELD s 9 ASC TIME 40 MS END 2027-01-01T00:00:00Z", HOUR_MS, false},
        {"FIELD s 9 ASC TIME 40 MS END 2027-01-01T00:00:00Z", HOUR_MS + 1, true},
        {"FIELD s 9 TIME 44 US START 2026-11-01T00:00:00Z", HOUR_MS, false},
        {"FIELD s 9 TIME 44 US START 2026-11-01T00:00:00Z", HOUR_MS + 1, true},
        {"FIELD s 9 TIME 40 S START 2026-11-01T00:00:00Z", HOUR_MS, false},
        {"FIELD s 9 TIME 40 S START 2026-11-01T00:00:00Z", HOUR_MS + 1, true},
        /* 11:00 ends at 12:00, and is an hour ago at 13:00. */
        {"FIELD s 9 TIME 20 H START 2026-11-01T00:00:00Z", HOUR_MS, false},
        {"FIELD s 9 TIME 20 H START 2026-11-01T00:00:00Z", HOUR_MS + 1, true},
        {"FIELD s 9 TIME 20 D START 2026-11-01T00:00:00Z", 12 * HOUR_MS, false},
        {"FIELD s 9 TIME 20 D START 2026-11-01T00:00:00Z", 12 * HOUR_MS + 1, true},
        {"FIELD s 9 TIME 40 MS LATEST", 0, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_row("%zu", i);
        struct board_options options = rules_from(rows[i].layout, HOUR_MS);
        struct registry_key *key = create(registry, "k", &options);
        put(registry, key, "ann", 5, NOON_MS - rows[i].before_ms);
        put(registry, key, "now", 4, NOON_MS);
        pass(registry, NOON_MS, 100);
        assert_int_equal(strstr(members_of(registry, "k"), "ann") == NULL, rows[i].leaves);
        registry_remove(registry, key_find(registry, 0, "k", NOON_MS));
    }
}

/* A clock that goes back makes nobody older, and before START nobody has a time. */
REGISTRY_TEST(a_clock_that_is_set_takes_nobody_too_early) {
    struct board_options options = rules_from(LAYOUT, HOUR_MS);
    struct registry_key *key = create(registry, "k", &options);
    put(registry, key, "ann", 5, NOON_MS);
    put(registry, key, "bob", 4, START_MS);
    pass(registry, START_MS - 1, 100);
    pass(registry, 0, 100);
    pass(registry, START_MS + HOUR_MS, 100);
    assert_string_equal(members_of(registry, "k"), "ann bob");
    pass(registry, NOON_MS + HOUR_MS, 100);
    assert_string_equal(members_of(registry, "k"), "ann");
    pass(registry, NOON_MS - 24 * HOUR_MS, 100);
    assert_string_equal(members_of(registry, "k"), "ann");
    pass(registry, INT64_MAX / 2000, 100);
    assert_string_equal(members_of(registry, "k"), "gone");
}

/* ---- whole boards ---- */

TOLD_TEST_OF(an_empty_board_goes_unless_it_was_created, create_usual_registry) {
    struct board_options options = rules_from(LAYOUT, HOUR_MS);
    struct registry_key *key = create(registry, "made", &options);
    put(registry, key, "ann", 5, START_MS);
    options.is_created = true;
    key = create(registry, "stays", &options);
    put(registry, key, "ann", 5, START_MS);
    put(registry, key, "bob", 4, START_MS);
    options.stale_ms = 0;
    key = create(registry, "other", &options);
    put(registry, key, "ann", 5, START_MS);
    told->text[0] = '\0';
    pass(registry, NOON_MS, 100);
    expect_told(told, "cut stays; cut made; remove made; ");
    assert_string_equal(members_of(registry, "made"), "gone");
    assert_string_equal(members_of(registry, "stays"), "");
    assert_string_equal(members_of(registry, "other"), "ann");
    pass(registry, NOON_MS, 100);
    expect_told(told, "");
}

REGISTRY_TEST(boards_that_take_no_writes_or_are_over_keep_their_members) {
    struct board_options options = rules_from(LAYOUT, HOUR_MS);
    static const char *const names[] = {"frozen", "closed", "unopened", "over", "expired"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct board_options each = options;
        each.guards = i == 0 ? BOARD_FROZEN : i == 1 ? BOARD_CLOSES : i == 2 ? BOARD_OPENS : 0;
        each.closes_ms = i == 1 ? NOON_MS : 0;
        each.opens_ms = i == 2 ? NOON_MS + 1 : 0;
        if (i == 3) {
            each.period = (struct period){.unit = PERIOD_DAY, .every = 1};
        }
        struct registry_key *key = create(registry, names[i], &each);
        put(registry, key, "ann", 5, i == 3 ? NOON_MS - 2 * HOUR_MS : START_MS);
    }
    key_expire(registry, key_find(registry, 0, "expired", NOON_MS - 1), NOON_MS);
    pass(registry, NOON_MS, 100);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_string_equal(members_of(registry, names[i]), i == 3 ? "gone" : "ann");
    }
    pass(registry, NOON_MS + 1, 100);
    assert_string_equal(members_of(registry, "unopened"), "gone");
}

/* ---- the twin ---- */

enum { MEMBERS = 400 };

struct twin {
    bool is_there[MEMBERS];
    int64_t time_ms[MEMBERS];
    bool is_old[MEMBERS]; /* stale since before the pass began, and not written since */
};

static void twin_write(struct registry *registry, struct registry_key *key, struct random *random,
                       struct twin *twin, int64_t now_ms) {
    uint32_t index = (uint32_t)random_below(random, MEMBERS);
    const char *name = formatted("m%u", index);
    struct board_member member;
    twin->is_old[index] = false;
    if (random_below(random, 8) == 0) {
        board_look_up(&key->board, bytes_from_text(name), NULL, &member);
        if (member.is_there) {
            registry_board_take(registry, key, &member);
        }
        twin->is_there[index] = false;
        return;
    }
    /* Also late results, and those of one moment with one score. */
    int64_t age_ms = random_below(random, 2) == 0 ? 0 : (int64_t)random_below(random, 130) * 60000;
    twin->time_ms[index] = now_ms - age_ms;
    twin->is_there[index] = true;
    put(registry, key, name, random_below(random, 6), twin->time_ms[index]);
}

/* Nobody has left who was not stale; if a pass is over, all have left that it has found stale. */
static void twin_check(const struct registry_key *key, struct twin *twin, int64_t now_ms,
                       bool is_over) {
    uint64_t packed;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        bool is_stale = twin->is_there[i] && now_ms - twin->time_ms[i] > HOUR_MS;
        bool is_there = board_find(&key->board, bytes_from_text(formatted("m%u", i)), &packed);
        assert_true(is_there == twin->is_there[i] || (is_stale && !is_there));
        assert_false(is_over && twin->is_old[i] && is_there);
        twin->is_there[i] = is_there;
    }
}

REGISTRY_TEST(a_board_that_is_written_to_is_as_its_naive_twin) {
    struct random random = random_begin(__func__);
    struct board_options options = rules_from(LAYOUT, HOUR_MS);
    struct registry_key *key;
    struct twin twin = {.is_there = {false}};
    int64_t now_ms = NOON_MS;
    options.is_created = true;
    key = create(registry, "k", &options);
    for (int round = 0; round < 300; round++) {
        now_ms += (int64_t)random_below(&random, 20 * 60000);
        for (uint32_t i = 0; i < MEMBERS; i++) {
            twin.is_old[i] = twin.is_there[i] && now_ms - twin.time_ms[i] > HOUR_MS;
        }
        uint32_t work_max = 1 + (uint32_t)random_below(&random, 200);
        uint64_t from_key = REGISTRY_STALE_BEGIN;
        bool is_done = false;
        while (!is_done) {
            uint32_t work = work_max;
            (void)registry_board_drop_stale(registry, key, now_ms, &from_key, &work, &is_done);
            twin_check(key, &twin, now_ms, is_done);
            for (uint64_t writes = random_below(&random, 4); writes > 0 && !is_done; writes--) {
                twin_write(registry, key, &random, &twin, now_ms);
            }
        }
        for (uint64_t writes = random_below(&random, 200); writes > 0; writes--) {
            twin_write(registry, key, &random, &twin, now_ms);
        }
        ASSERT_VALID(registry_validate, registry);
    }
    assert_true(registry_totals(registry)->stale > 1000);
}
