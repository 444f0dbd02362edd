/* The set of options, against a twin that counts references. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/keyspace/board_options.h"
#include "tests/support/layout_text.h"
#include "tests/support/random.h"

enum { KINDS = 300 };

static struct board_options_set set;
static uint64_t live_before;

FIXTURE(start) {
    live_before = memory_live_count();
    board_options_set_init(&set, 0x5eed);
    return 0;
}

FIXTURE(stop) {
    board_options_set_deinit(&set);
    return memory_live_count() == live_before ? 0 : -1;
}

static void assert_valid(void) {
    ASSERT_VALID(board_options_set_validate, &set);
}

static struct board_options rules_from(const char *layout) {
    struct board_options options = {.cap = 0};
    char error[LAYOUT_ERROR_MAX];
    if (layout_parse(bytes_from_text(layout), &options.layout, error) != LAYOUT_OK) {
        fail_msg("%s", error);
    }
    return options;
}

static const struct board_options *hold(const struct board_options *like) {
    const struct board_options *held = board_options_hold(&set, like);
    assert_non_null(held);
    assert_true(board_options_equal(held, like));
    assert_true(board_options_are_in(&set, held));
    return held;
}

#define rules_test(name) TEST_WITH(name, start, stop)

rules_test(equal_rules_are_there_once) {
    struct board_options options = rules_from("FIELD score 33 TIME 20 S");
    const struct board_options *held = hold(&options);
    assert_ptr_not_equal(held, &options);
    struct board_options same = rules_from("field score 33 desc time 20 s");
    assert_ptr_equal(hold(&same), held);
    assert_int_equal(set.count, 1);
    assert_int_equal(held->use_count, 2);
    board_options_hold_again(&set, held);
    assert_int_equal(set.use_count, 3);
    assert_valid();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(set.count, 1);
        board_options_release(&set, held);
        assert_valid();
    }
    assert_int_equal(set.count, 0);
}

rules_test(every_difference_makes_other_options) {
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
    const struct board_options *held[LAYOUTS + OPTIONS];
    for (size_t i = 0; i < LAYOUTS; i++) {
        struct board_options options = rules_from(layouts[i]);
        held[i] = hold(&options);
        assert_int_equal(set.count, i + 1);
    }
    struct board_options options[OPTIONS];
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
        board_options_begin_period(&options[i], i == 7 ? 86400000 : 0);
    }
    options[8].stale_ms = 60000;
    options[9].settles = true;
    options[10].copies = true;
    options[11].is_archive = true;
    for (size_t i = 12; i < WINDOWS; i++) {
        options[i] = rules_from("FIELD tier 8 FIELD period 24 FIELD room 32");
        options[i].guards = BOARD_LEAGUE;
        options[i].league = (struct board_league){.room = i == 12 ? 31 : 30,
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
        options[i].window = (struct board_window){.count = is_share ? 0 : 2 + (i == WINDOWS + 1),
                                                  .is_share = is_share,
                                                  .is_best = i == WINDOWS + 2};
        if (!is_share) {
            options[i].guards = BOARD_WINDOW;
            board_options_begin_period(&options[i], 7200000);
        }
    }
    options[10].period = (struct period){.unit = PERIOD_YEAR, .every = 1};
    board_options_begin_period(&options[10], 0);
    for (size_t i = 0; i < OPTIONS; i++) {
        held[LAYOUTS + i] = hold(&options[i]);
        assert_int_equal(set.count, LAYOUTS + i + 1);
    }
    assert_valid();
    for (size_t i = 0; i < LAYOUTS + OPTIONS; i++) {
        board_options_release(&set, held[i]);
    }
}

rules_test(a_set_keeps_only_the_fields_that_are_there) {
    struct board_options options = rules_from("FIELD score 33 TIME 20 S");
    const struct board_options *held = hold(&options);
    assert_true(memory_size(held) < 1000);
    /* Copied out of the set they are complete. */
    struct board_options copy;
    board_options_copy(held, &copy);
    copy.cap = 7;
    const struct board_options *capped = hold(&copy);
    assert_int_equal(capped->cap, 7);
    assert_true(layout_equal(&capped->layout, &options.layout));
    assert_ptr_equal(board_options_of(&capped->layout), capped);
    board_options_release(&set, capped);
    board_options_release(&set, held);
}

rules_test(keep_best_takes_what_is_strictly_better_and_looks_past_the_time) {
    struct board_options options = rules_from("FIELD score 4 FIELD laps 4 ASC TIME 8 S");
    assert_true(board_options_take(&options, 0x1234, 0x1234));
    assert_true(board_options_take(&options, 0x1234, 0x0034));
    options.keeps_best = true;
    assert_false(board_options_take(&options, 0x1234, 0x1234));
    assert_false(board_options_take(&options, 0x1234, 0x12ff));
    assert_false(board_options_take(&options, 0x1234, 0x1134));
    assert_true(board_options_take(&options, 0x1234, 0x1300));
    assert_true(board_options_take(&options, 0x1234, 0x2034));
}

rules_test(a_period_moves_the_times_and_leaves_the_rest) {
    struct board_options options = rules_from("FIELD a 30 TIME 30 MS END 2000-01-01T00:00:00Z");
    int64_t now_ms = INT64_C(1794830400000); /* Monday 2026-11-16T12:00:00Z */
    assert_false(board_options_are_over(&options, INT64_MAX));
    options.period.unit = PERIOD_WEEK;
    options.period.every = 1;
    options.period.zone_minutes = 480;
    options.archives_max = 2;
    options.cap = 9;
    board_options_begin_period(&options, now_ms);
    assert_true(options.period_start_ms == INT64_C(1794758400000));
    assert_true(options.period_end_ms == INT64_C(1795363200000));
    assert_true(options.layout.time.start_us == INT64_C(1794758400000000));
    assert_false(options.layout.time.is_given_by_end);
    assert_false(board_options_are_over(&options, options.period_end_ms - 1));
    assert_true(board_options_are_over(&options, options.period_end_ms));
    assert_true(board_options_archive_end_ms(&options) ==
                options.period_end_ms + 2 * INT64_C(604800000));
    struct board_options archive;
    options.stale_ms = 60000;
    options.settles = true;
    options.copies = true;
    board_options_end_period(&options, &archive);
    assert_true(board_options_ended_ms(&options, options.period_end_ms + 5) ==
                options.period_end_ms);
    assert_true(layout_equal(&archive.layout, &options.layout));
    assert_int_equal(archive.cap, 9);
    struct board_options plain = rules_from("FIELD a 30");
    plain.cap = 9;
    plain.layout = options.layout;
    plain.guards = BOARD_FROZEN;
    plain.is_archive = true;
    assert_true(board_options_equal(&archive, &plain));
    options.archives_are_writable = true;
    options.guards = BOARD_FROZEN | BOARD_OPENS;
    options.opens_ms = 5;
    board_options_end_period(&options, &archive);
    plain.guards = 0;
    assert_true(board_options_ended_ms(&options, options.period_end_ms - 1) ==
                options.period_end_ms - 1);
    assert_true(board_options_equal(&archive, &plain));
    options.archives_max = BOARD_ARCHIVES_ALL;
    assert_true(board_options_archive_end_ms(&options) == INT64_MAX);
    /* A layout without TIME has nothing to move. */
    struct board_options bare = rules_from("FIELD a 30");
    bare.period.unit = PERIOD_MONTH;
    bare.period.every = 1;
    board_options_begin_period(&bare, now_ms);
    struct layout layout = rules_from("FIELD a 30").layout;
    assert_true(layout_equal(&bare.layout, &layout));
}

rules_test(a_window_slides_and_its_shares_are_frozen_archives) {
    enum { HOUR_MS = 3600000 };
    struct board_options options = rules_from("FIELD a 30 TIME 31 S");
    struct board_options share;
    struct board_options plain;
    const char *reason;
    options.period = (struct period){.unit = PERIOD_HOUR, .every = 1};
    options.archives_max = 3;
    options.window.count = 3;
    options.guards = BOARD_WINDOW;
    options.settles = true;
    int64_t start_us = options.layout.time.start_us;
    board_options_begin_period(&options, 10 * HOUR_MS + 5);
    assert_true(options.layout.time.start_us == start_us);
    struct board_state happened = board_options_begin_state(&options);
    assert_true(happened.from_ms == 10 * HOUR_MS);
    assert_true(board_options_take_state(&options, &happened));
    ASSERT_VALID(board_options_validate, &options);
    board_options_begin_share(&options, &share);
    ASSERT_VALID(board_options_validate, &share);
    assert_int_equal(share.guards, BOARD_FROZEN);
    assert_false(share.is_archive);
    board_options_slide(&options, &happened, 12 * HOUR_MS);
    assert_true(options.period_start_ms == 12 * HOUR_MS);
    assert_int_equal(board_options_window_behind(&options, &happened, 100), 0);
    board_options_slide(&options, &happened, 14 * HOUR_MS);
    assert_int_equal(board_options_window_behind(&options, &happened, 100), 2);
    assert_int_equal(board_options_window_behind(&options, &happened, 1), 1);
    happened.left = 5;
    board_options_slide(&options, &happened, 15 * HOUR_MS);
    assert_int_equal(board_options_window_behind(&options, &happened, 100), 1);
    assert_true(happened.is_anew);
    assert_int_equal(happened.left, 0);
    assert_true(happened.from_ms == 13 * HOUR_MS);
    ASSERT_VALID(board_options_validate, &options);
    assert_true(board_options_take_state(&options, &happened));
    board_options_without_window(&options, &plain);
    ASSERT_VALID(board_options_validate, &plain);
    assert_int_equal(plain.period.unit, PERIOD_NONE);
    assert_false(board_options_take_state(&plain, &happened));
    happened = board_options_keep_state(&plain, &happened);
    assert_true(board_options_take_state(&plain, &happened));
    assert_true(happened.from_ms == 0 && !happened.is_anew);
    options.archives_max = 2;
    assert_false(board_options_validate(&options, &reason));
    options.archives_max = 3;
    options.cap = 5;
    assert_false(board_options_validate(&options, &reason));
}

/* Nobody can say these in words, so no payload, no file and no replica brings them. */
rules_test(what_its_words_would_refuse_is_not_valid) {
    const char *reason;
    struct board_options options = rules_from("FIELD a 30");
    options.opens_ms = 1000;
    options.closes_ms = 1001;
    options.guards = BOARD_OPENS | BOARD_CLOSES;
    ASSERT_VALID(board_options_validate, &options);
    options.closes_ms = 1000;
    assert_false(board_options_validate(&options, &reason));
    options = rules_from("FIELD a 30");
    options.period = (struct period){.unit = PERIOD_HOUR, .every = 1};
    board_options_begin_period(&options, 0);
    options.archives_max = 1;
    options.settles = true;
    ASSERT_VALID(board_options_validate, &options);
    options.archives_max = 0;
    assert_false(board_options_validate(&options, &reason));
}

rules_test(no_memory_leaves_the_set_as_it_was) {
    struct board_options options = rules_from("FIELD a 30");
    const struct board_options *held = NULL;
    uint64_t failures = 0;
    for (uint64_t nth = 1; held == NULL; nth++) {
        memory_fail_at(nth);
        held = board_options_hold(&set, &options);
        memory_fail_at(0);
        failures += held == NULL;
        assert_int_equal(set.count, held != NULL);
        assert_int_equal(set.use_count, held != NULL);
        assert_valid();
    }
    assert_in_range(failures, 3, 10);
    board_options_release(&set, held);
}

/* Kind k has the cap k + 1. */
struct twin {
    const struct board_options *held[KINDS];
    uint64_t users[KINDS];
    uint32_t count;
};

static void twin_step(struct twin *twin, struct random *random, struct board_options *like) {
    uint32_t kind = (uint32_t)random_below(random, KINDS);
    uint64_t choice = random_below(random, 5);
    if (choice < 2) {
        like->cap = kind + 1;
        if (random_below(random, 8) == 0) {
            memory_fail_at(1 + random_below(random, 3));
        }
        const struct board_options *held = board_options_hold(&set, like);
        memory_fail_at(0);
        if (held == NULL) {
            assert_int_equal(twin->users[kind], 0);
            return;
        }
        assert_true(twin->users[kind] == 0 || held == twin->held[kind]);
        twin->held[kind] = held;
        twin->count += twin->users[kind]++ == 0;
    } else if (twin->users[kind] > 0 && choice == 2) {
        board_options_hold_again(&set, twin->held[kind]);
        twin->users[kind]++;
    } else if (twin->users[kind] > 0) {
        board_options_release(&set, twin->held[kind]);
        twin->count -= --twin->users[kind] == 0;
    }
}

rules_test(a_set_is_as_its_naive_twin) {
    struct random random = random_begin(__func__);
    struct board_options like = rules_from("FIELD score 33 SIGNED TIME 31 S");
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
            board_options_release(&set, twin.held[kind]);
        }
    }
    assert_int_equal(set.count, 0);
}

/* No operation may take time that grows with the set; here that would take minutes. */
rules_test(many_kinds_are_as_quick_as_a_few) {
    enum { MANY = 200000 };
    static const struct board_options *held[MANY];
    struct board_options like = rules_from("FIELD a 30");
    for (uint32_t i = 0; i < MANY; i++) {
        like.cap = i;
        held[i] = hold(&like);
    }
    assert_int_equal(set.count, MANY);
    assert_valid();
    for (uint32_t i = 0; i < MANY; i++) {
        board_options_release(&set, held[i]);
    }
    assert_int_equal(set.count, 0);
    assert_valid();
}
