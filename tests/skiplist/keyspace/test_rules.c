/* The set of rules, against a twin that counts references. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/keyspace/board_options.h"
#include "tests/support/layout_text.h"
#include "tests/support/random.h"

enum { KINDS = 300 };

static struct rules_set set;
static uint64_t live_before;

static int start(void **state) {
    (void)state;
    live_before = memory_live_count();
    rules_set_init(&set, 0x5eed);
    return 0;
}

static int stop(void **state) {
    (void)state;
    rules_set_deinit(&set);
    return memory_live_count() == live_before ? 0 : -1;
}

static void assert_valid(void) {
    const char *reason = "";
    if (!rules_set_validate(&set, &reason)) {
        fail_msg("%s", reason);
    }
}

static struct rules rules_from(const char *layout) {
    struct rules rules = {.cap = 0};
    char error[LAYOUT_ERROR_MAX];
    if (layout_parse(bytes_from_text(layout), &rules.layout, error) != LAYOUT_OK) {
        fail_msg("%s", error);
    }
    return rules;
}

static const struct rules *hold(const struct rules *like) {
    const struct rules *held = rules_hold(&set, like);
    assert_non_null(held);
    assert_true(rules_equal(held, like));
    assert_true(rules_are_in(&set, held));
    return held;
}

#define rules_test(name) TEST_WITH(name, start, stop)

rules_test(equal_rules_are_there_once) {
    struct rules rules = rules_from("FIELD score 33 TIME 20 S");
    const struct rules *held = hold(&rules);
    assert_ptr_not_equal(held, &rules);
    struct rules same = rules_from("field score 33 desc time 20 s");
    assert_ptr_equal(hold(&same), held);
    assert_int_equal(set.count, 1);
    assert_int_equal(held->use_count, 2);
    rules_hold_again(&set, held);
    assert_int_equal(set.use_count, 3);
    assert_valid();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(set.count, 1);
        rules_release(&set, held);
        assert_valid();
    }
    assert_int_equal(set.count, 0);
}

rules_test(every_difference_makes_other_rules) {
    static const char *const layouts[] = {
        "FIELD a 30 TIME 20 S",
        "FIELD b 30 TIME 20 S",
        "FIELD a 31 TIME 20 S",
        "FIELD a 30 ASC TIME 20 S",
        "FIELD a 30 SIGNED TIME 20 S",
        "FIELD a 30 SCALE 1 TIME 20 S",
        "FIELD a 30 TIME 21 S",
        "FIELD a 30 TIME 20 M",
        "FIELD a 30 TIME 20 S LATEST",
        "FIELD a 30 TIME 20 S START 2026-01-01T00:00:00Z",
        "FIELD a 30 TIME 20 S END 2020-01-13T03:16:15Z", /* the default START */
        "FIELD a 30",
        "FIELD a 15 FIELD b 15 TIME 20 S",
        "FIELD a 30 TIME 20 S TAG b 3",
        "FIELD a 30 TIME 20 S TAG b 4",
        "FIELD a 30 TIME 20 S TAG c 3",
        "FIELD a 30 TIME 20 S TAG b 3 TAG c 3",
        "FIELD a 30 TIME 20 S TAG c 3 TAG b 3",
        "FIELD a 60",
        "FIELD a 60 DECAY 6 H",
        "FIELD a 60 DECAY 6 D",
        "FIELD a 60 DECAY 7 H",
    };
    enum { LAYOUTS = COUNT_OF(layouts) };
    enum { OPTIONS = 21, CONTESTS = 8, WINDOWS = 17 };
    const struct rules *held[LAYOUTS + OPTIONS];
    for (size_t i = 0; i < LAYOUTS; i++) {
        struct rules rules = rules_from(layouts[i]);
        held[i] = hold(&rules);
        assert_int_equal(set.count, i + 1);
    }
    struct rules options[OPTIONS];
    for (size_t i = 0; i < OPTIONS; i++) {
        options[i] = rules_from(layouts[0]);
    }
    options[0].cap = 1;
    options[1].keeps_best = true;
    options[2].is_created = true;
    for (size_t i = 3; i < CONTESTS; i++) {
        options[i].period.unit = i == 3 ? PERIOD_WEEK : PERIOD_DAY;
        options[i].period.every = 1;
        options[i].period.zone_minutes = i == 5 ? -60 : 0;
        options[i].archives_max = i == 6 ? 1 : 0;
        rules_begin_period(&options[i], i == 7 ? 86400000 : 0);
    }
    options[8].stale_ms = 60000;
    options[9].settles = true;
    options[10].copies = true;
    options[11].is_archive = true;
    for (size_t i = 12; i < WINDOWS; i++) {
        options[i] = rules_from("FIELD tier 8 FIELD period 24 FIELD room 32");
        options[i].guards = RULES_LEAGUE;
        options[i].league = (struct rules_league){.room = i == 12 ? 31 : 30,
                                                  .tiers = i == 13 ? 2 : 1,
                                                  .up = i == 14,
                                                  .down = i == 15,
                                                  .idle_goes_down = i == 16};
    }
    for (size_t i = WINDOWS; i < OPTIONS; i++) {
        bool is_share = i == WINDOWS;
        options[i].period = (struct period){.unit = is_share ? PERIOD_NONE : PERIOD_HOUR,
                                            .every = is_share ? 0 : 1};
        options[i].archives_max = is_share ? 0 : 3;
        options[i].window = (struct rules_window){.count = is_share ? 0 : 2 + (i == WINDOWS + 1),
                                                  .is_share = is_share,
                                                  .is_best = i == WINDOWS + 2};
        if (!is_share) {
            rules_begin_period(&options[i], 7200000);
        }
    }
    options[10].period = (struct period){.unit = PERIOD_YEAR, .every = 1};
    rules_begin_period(&options[10], 0);
    for (size_t i = 0; i < OPTIONS; i++) {
        held[LAYOUTS + i] = hold(&options[i]);
        assert_int_equal(set.count, LAYOUTS + i + 1);
    }
    assert_valid();
    for (size_t i = 0; i < LAYOUTS + OPTIONS; i++) {
        rules_release(&set, held[i]);
    }
}

rules_test(a_set_keeps_only_the_fields_that_are_there) {
    struct rules rules = rules_from("FIELD score 33 TIME 20 S");
    const struct rules *held = hold(&rules);
    assert_true(memory_size(held) < 600);
    /* Copied out of the set they are complete. */
    struct rules copy;
    rules_copy(held, &copy);
    copy.cap = 7;
    const struct rules *capped = hold(&copy);
    assert_int_equal(capped->cap, 7);
    assert_true(layout_equal(&capped->layout, &rules.layout));
    assert_ptr_equal(rules_of(&capped->layout), capped);
    rules_release(&set, capped);
    rules_release(&set, held);
}

rules_test(keep_best_takes_what_is_strictly_better_and_looks_past_the_time) {
    struct rules rules = rules_from("FIELD score 4 FIELD laps 4 ASC TIME 8 S");
    assert_true(rules_take(&rules, 0x1234, 0x1234));
    assert_true(rules_take(&rules, 0x1234, 0x0034));
    rules.keeps_best = true;
    assert_false(rules_take(&rules, 0x1234, 0x1234));
    assert_false(rules_take(&rules, 0x1234, 0x12ff));
    assert_false(rules_take(&rules, 0x1234, 0x1134));
    assert_true(rules_take(&rules, 0x1234, 0x1300));
    assert_true(rules_take(&rules, 0x1234, 0x2034));
}

rules_test(a_period_moves_the_times_and_leaves_the_rest) {
    struct rules rules = rules_from("FIELD a 30 TIME 30 MS END 2000-01-01T00:00:00Z");
    int64_t now_ms = INT64_C(1794830400000); /* Monday 2026-11-16T12:00:00Z */
    assert_false(rules_are_over(&rules, INT64_MAX));
    rules.period.unit = PERIOD_WEEK;
    rules.period.every = 1;
    rules.period.zone_minutes = 480;
    rules.archives_max = 2;
    rules.cap = 9;
    rules_begin_period(&rules, now_ms);
    assert_true(rules.period_start_ms == INT64_C(1794758400000));
    assert_true(rules.period_end_ms == INT64_C(1795363200000));
    assert_true(rules.layout.time.start_us == INT64_C(1794758400000000));
    assert_false(rules.layout.time.is_given_by_end);
    assert_false(rules_are_over(&rules, rules.period_end_ms - 1));
    assert_true(rules_are_over(&rules, rules.period_end_ms));
    assert_true(rules_archive_end_ms(&rules) == rules.period_end_ms + 2 * INT64_C(604800000));
    struct rules archive;
    rules.stale_ms = 60000;
    rules.settles = true;
    rules.copies = true;
    rules_end_period(&rules, &archive);
    assert_true(rules_ended_ms(&rules, rules.period_end_ms + 5) == rules.period_end_ms);
    assert_true(layout_equal(&archive.layout, &rules.layout));
    assert_int_equal(archive.cap, 9);
    struct rules plain = rules_from("FIELD a 30");
    plain.cap = 9;
    plain.layout = rules.layout;
    plain.guards = RULES_FROZEN;
    plain.is_archive = true;
    assert_true(rules_equal(&archive, &plain));
    rules.archives_are_writable = true;
    rules.guards = RULES_FROZEN | RULES_OPENS;
    rules.opens_ms = 5;
    rules_end_period(&rules, &archive);
    plain.guards = 0;
    assert_true(rules_ended_ms(&rules, rules.period_end_ms - 1) == rules.period_end_ms - 1);
    assert_true(rules_equal(&archive, &plain));
    rules.archives_max = RULES_ARCHIVES_ALL;
    assert_true(rules_archive_end_ms(&rules) == INT64_MAX);
    /* A layout without TIME has nothing to move. */
    struct rules bare = rules_from("FIELD a 30");
    bare.period.unit = PERIOD_MONTH;
    bare.period.every = 1;
    rules_begin_period(&bare, now_ms);
    struct layout layout = rules_from("FIELD a 30").layout;
    assert_true(layout_equal(&bare.layout, &layout));
}

rules_test(a_window_slides_and_its_shares_are_frozen_archives) {
    enum { HOUR_MS = 3600000 };
    struct rules rules = rules_from("FIELD a 30 TIME 31 S");
    struct rules share;
    struct rules plain;
    const char *reason;
    rules.period = (struct period){.unit = PERIOD_HOUR, .every = 1};
    rules.archives_max = 3;
    rules.window.count = 3;
    rules.settles = true;
    int64_t start_us = rules.layout.time.start_us;
    rules_begin_period(&rules, 10 * HOUR_MS + 5);
    assert_true(rules.layout.time.start_us == start_us);
    struct board_state happened = rules_begin_state(&rules);
    assert_true(happened.from_ms == 10 * HOUR_MS);
    assert_true(rules_take_state(&rules, &happened));
    assert_true(rules_validate(&rules, &reason));
    rules_begin_share(&rules, &share);
    assert_true(rules_validate(&share, &reason));
    assert_int_equal(share.guards, RULES_FROZEN);
    assert_false(share.is_archive);
    rules_slide(&rules, &happened, 12 * HOUR_MS);
    assert_true(rules.period_start_ms == 12 * HOUR_MS);
    assert_int_equal(rules_window_behind(&rules, &happened, 100), 0);
    rules_slide(&rules, &happened, 14 * HOUR_MS);
    assert_int_equal(rules_window_behind(&rules, &happened, 100), 2);
    assert_int_equal(rules_window_behind(&rules, &happened, 1), 1);
    happened.left = 5;
    rules_slide(&rules, &happened, 15 * HOUR_MS);
    assert_int_equal(rules_window_behind(&rules, &happened, 100), 1);
    assert_true(happened.is_anew);
    assert_int_equal(happened.left, 0);
    assert_true(happened.from_ms == 13 * HOUR_MS);
    assert_true(rules_validate(&rules, &reason));
    assert_true(rules_take_state(&rules, &happened));
    rules_without_window(&rules, &plain);
    assert_true(rules_validate(&plain, &reason));
    assert_int_equal(plain.period.unit, PERIOD_NONE);
    assert_false(rules_take_state(&plain, &happened));
    happened = rules_keep_state(&plain, &happened);
    assert_true(rules_take_state(&plain, &happened));
    assert_true(happened.from_ms == 0 && !happened.is_anew);
    rules.archives_max = 2;
    assert_false(rules_validate(&rules, &reason));
    rules.archives_max = 3;
    rules.cap = 5;
    assert_false(rules_validate(&rules, &reason));
}

rules_test(no_memory_leaves_the_set_as_it_was) {
    struct rules rules = rules_from("FIELD a 30");
    const struct rules *held = NULL;
    uint64_t failures = 0;
    for (uint64_t nth = 1; held == NULL; nth++) {
        memory_fail_at(nth);
        held = rules_hold(&set, &rules);
        memory_fail_at(0);
        failures += held == NULL;
        assert_int_equal(set.count, held != NULL);
        assert_int_equal(set.use_count, held != NULL);
        assert_valid();
    }
    assert_in_range(failures, 3, 10);
    rules_release(&set, held);
}

/* Kind k has the cap k + 1. */
struct twin {
    const struct rules *held[KINDS];
    uint64_t users[KINDS];
    uint32_t count;
};

static void twin_step(struct twin *twin, struct random *random, struct rules *like) {
    uint32_t kind = (uint32_t)random_below(random, KINDS);
    uint64_t choice = random_below(random, 5);
    if (choice < 2) {
        like->cap = kind + 1;
        if (random_below(random, 8) == 0) {
            memory_fail_at(1 + random_below(random, 3));
        }
        const struct rules *held = rules_hold(&set, like);
        memory_fail_at(0);
        if (held == NULL) {
            assert_int_equal(twin->users[kind], 0);
            return;
        }
        assert_true(twin->users[kind] == 0 || held == twin->held[kind]);
        twin->held[kind] = held;
        twin->count += twin->users[kind]++ == 0;
    } else if (twin->users[kind] > 0 && choice == 2) {
        rules_hold_again(&set, twin->held[kind]);
        twin->users[kind]++;
    } else if (twin->users[kind] > 0) {
        rules_release(&set, twin->held[kind]);
        twin->count -= --twin->users[kind] == 0;
    }
}

rules_test(a_set_is_as_its_naive_twin) {
    struct random random = random_begin(__func__);
    struct rules like = rules_from("FIELD score 33 SIGNED TIME 31 S");
    struct twin twin = {.count = 0};
    for (int step = 0; step < 20000; step++) {
        twin_step(&twin, &random, &like);
        assert_int_equal(set.count, twin.count);
        if (step % 100 == 0) {
            assert_valid();
        }
    }
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        for (; twin.users[kind] > 0; twin.users[kind]--) {
            assert_int_equal(twin.held[kind]->use_count, twin.users[kind]);
            assert_int_equal(twin.held[kind]->cap, kind + 1);
            rules_release(&set, twin.held[kind]);
        }
    }
    assert_int_equal(set.count, 0);
}

/* No operation may take time that grows with the set; here that would take minutes. */
rules_test(many_kinds_are_as_quick_as_a_few) {
    enum { MANY = 200000 };
    static const struct rules *held[MANY];
    struct rules like = rules_from("FIELD a 30");
    for (uint32_t i = 0; i < MANY; i++) {
        like.cap = i;
        held[i] = hold(&like);
    }
    assert_int_equal(set.count, MANY);
    assert_valid();
    for (uint32_t i = 0; i < MANY; i++) {
        rules_release(&set, held[i]);
    }
    assert_int_equal(set.count, 0);
    assert_valid();
}
