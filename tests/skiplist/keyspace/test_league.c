/* Tiers, periods and names of leagues. The tiers against a twin that marks the members of a room one
 * by one. */
#include "tests/support/test.h"

#include "skiplist/keyspace/league.h"
#include "skiplist/keyspace/registry.h"
#include "tests/support/random.h"

enum { MEMBERS = 14 };

/* ---- tiers ---- */

/* The best first: who goes where? +1, 0 or -1 for each. */
static void mark(const struct board_league *league, uint32_t count, int *marks) {
    for (uint32_t i = 0; i < count; i++) {
        marks[i] = 0;
    }
    for (uint32_t i = 0; i < count && i < league->up; i++) {
        marks[i] = 1;
    }
    for (uint32_t i = 0; i < league->down; i++) {
        if (i < count && marks[count - 1 - i] == 0) {
            marks[count - 1 - i] = -1;
        }
    }
}

TEST(the_best_go_up_and_of_the_others_the_last_go_down) {
    int marks[MEMBERS];
    for (unsigned up = 0; up <= MEMBERS; up++) {
        for (unsigned down = 0; down <= MEMBERS; down++) {
            struct board_league league = {
                .room = MEMBERS, .up = (uint16_t)up, .down = (uint16_t)down, .tiers = 4};
            for (uint32_t count = 1; count <= MEMBERS; count++) {
                mark(&league, count, marks);
                for (uint32_t rank = 0; rank < count; rank++) {
                    for (int tier = 1; tier <= 4; tier++) {
                        int after = tier + marks[rank];
                        after = after < 1 ? 1 : after > 4 ? 4 : after;
                        assert_int_equal(league_tier_after(&league, (uint32_t)tier, rank, count),
                                         after);
                    }
                }
            }
        }
    }
}

TEST(a_period_without_a_result_takes_a_member_down_only_where_the_league_says_so) {
    struct board_league stay = {.room = 30, .tiers = 5};
    struct board_league down = {.room = 30, .tiers = 5, .idle_goes_down = true};
    for (uint32_t tier = 1; tier <= 5; tier++) {
        uint32_t one_by_one = tier;
        for (uint32_t periods = 0; periods < 8; periods++) {
            assert_int_equal(league_tier_idle(&stay, tier, periods), tier);
            assert_int_equal(league_tier_idle(&down, tier, periods), one_by_one);
            one_by_one = one_by_one > 1 ? one_by_one - 1 : 1;
        }
    }
}

TEST(a_tier_that_the_league_does_not_have_is_its_highest) {
    struct board_league league = {.room = 3, .tiers = 2, .up = 1, .down = 1};
    assert_int_equal(league_tier_after(&league, 9, 1, 3), 2);
    assert_int_equal(league_tier_after(&league, 9, 2, 3), 1);
    assert_int_equal(league_tier_idle(&league, 0, 3), 1);
}

/* ---- entries ---- */

TEST(an_entry_is_the_packed_key_of_the_layout) {
    struct random random = random_begin(__func__);
    struct layout layout;
    league_init_layout(&layout);
    for (int i = 0; i < 1000; i++) {
        struct league_entry entry = {.tier = (uint32_t)random_below(&random, 256),
                                     .period = (uint32_t)random_below(&random, 1 << 24),
                                     .room = (uint32_t)random_below(&random, UINT32_MAX)};
        uint64_t key = league_key(entry);
        assert_int_equal(layout_ordinal(&layout, key, LEAGUE_TIER), entry.tier);
        assert_int_equal(layout_ordinal(&layout, key, LEAGUE_PERIOD), entry.period);
        assert_int_equal(layout_ordinal(&layout, key, LEAGUE_ROOM), entry.room);
        struct league_entry same = league_entry_of(key);
        assert_memory_equal(&same, &entry, sizeof entry);
    }
}

/* ---- periods ---- */

TEST(a_period_is_known_again_by_the_hour_in_which_it_begins) {
    static const struct period periods[] = {
        {.unit = PERIOD_HOUR, .every = 1, .zone_minutes = 330},
        {.unit = PERIOD_HOUR, .every = 5, .from_day = 3},
        {.unit = PERIOD_DAY, .every = 1, .zone_minutes = -210},
        {.unit = PERIOD_WEEK, .every = 1, .weekday = 2, .hour = 7},
        {.unit = PERIOD_MONTH, .every = 3, .from_day = 31},
        {.unit = PERIOD_YEAR, .every = 1},
    };
    struct random random = random_begin(__func__);
    for (size_t i = 0; i < COUNT_OF(periods); i++) {
        for (int round = 0; round < 200; round++) {
            int64_t time_ms = INT64_C(1600000000000) +
                              (int64_t)random_below(&random, UINT64_C(40) * 365 * 86400 * 1000);
            int64_t start_ms = period_start(&periods[i], time_ms);
            uint32_t number = league_period(start_ms);
            assert_int_equal(league_period_start(&periods[i], number), start_ms);
            uint32_t count = (uint32_t)random_below(&random, 20);
            uint32_t later = league_period(period_start_after(&periods[i], start_ms, count + 1));
            assert_int_equal(league_count_between(&periods[i], number, later, 100), count);
            assert_int_equal(league_count_between(&periods[i], number, later, 7),
                             count < 7 ? count : 7);
            assert_int_equal(league_count_between(&periods[i], later, number, 7), 0);
            assert_int_equal(league_count_between(&periods[i], number, number, 7), 0);
        }
    }
}

TEST(times_that_24_bits_do_not_reach_are_the_first_and_the_last_period) {
    assert_int_equal(league_period(0), 0);
    assert_int_equal(league_period(INT64_MIN), 0);
    assert_int_equal(league_period(PERIOD_TIME_MAX), LEAGUE_PERIOD_MAX);
}

/* ---- names ---- */

static const struct {
    const char *league, *prefix;
} names[] = {
    {"weekly", "{weekly}:"},
    {"a:b", "{a:b}:"},
    {"{eu}:weekly", "{eu}:weekly:"},
    {"x{eu}y", "x{eu}y:"},
    {"{weekly}", "{weekly}:"},
    {"a{b", "{a{b}:"},
    {"a{}{b}", NULL},
    {"a}b", NULL},
    {"a{}b", NULL},
    {"}{b}", "}{b}:"},
    {"", NULL},
};

TEST(rooms_are_in_the_slot_of_their_league) {
    static const struct period days = {.unit = PERIOD_DAY, .every = 1};
    struct league_names out;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct bytes league = bytes_from_text(names[i].league);
        bool is_name = names[i].prefix != NULL;
        assert_int_equal(league_is_name(league), is_name);
        if (is_name) {
            league_names_init(&out, league);
            assert_int_equal(out.prefix_size, strlen(names[i].prefix));
            assert_memory_equal(out.at, names[i].prefix, out.prefix_size);
            struct bytes behind = bytes_behind(league_room(&out, 3, 17), out.prefix_size);
            assert_true(bytes_equal(behind, BYTES("3:17")));
            behind = bytes_behind(league_template(&out), out.prefix_size);
            assert_true(bytes_equal(behind, BYTES("rooms")));
            behind = bytes_behind(league_pattern(&out), out.prefix_size);
            assert_true(bytes_equal(behind, BYTES("*")));
            struct league_entry entry = {.tier = 3, .period = 24, .room = 17};
            struct bytes archive = league_archive(&out, entry, &days);
            behind = bytes_behind(archive, out.prefix_size);
            assert_true(bytes_equal(behind, BYTES("3:17@2020-01-02")));
            assert_true(registry_roll_archive_board(archive, &behind));
            assert_true(bytes_equal(behind, league_room(&out, 3, 17)));
        }
    }
}

TEST(a_room_leads_back_to_its_league) {
    struct league_names out;
    struct bytes prefix;
    struct bytes inner;
    struct league_entry entry;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct bytes league = bytes_from_text(names[i].league);
        if (names[i].prefix != NULL) {
            league_names_init(&out, league);
            struct bytes name = league_room(&out, 255, UINT32_MAX);
            assert_true(league_parse_room(name, &prefix, &inner, &entry));
            assert_true(bytes_equal(prefix, league) || bytes_equal(inner, league));
            assert_int_equal(entry.tier, 255);
            assert_int_equal(entry.room, UINT32_MAX);
        }
    }
    static const char *const none[] = {"weekly",
                                       "{weekly}:rooms",
                                       "{weekly}:3",
                                       "{weekly}:3:",
                                       "{weekly}:0:1",
                                       "{weekly}:1:0",
                                       "{weekly}:256:1",
                                       "{weekly}:1:4294967296",
                                       "weekly:3:17",
                                       "{}:3:17",
                                       ":3:17",
                                       "{weekly}:3:17x",
                                       "{weekly}::17",
                                       "3:17",
                                       ""};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        if (league_parse_room(bytes_from_text(none[i]), &prefix, &inner, &entry)) {
            fail_msg("%s is no room", none[i]);
        }
    }
}

TEST(the_longest_name_leaves_room_for_rooms) {
    static char text[REGISTRY_KEY_MAX];
    struct league_names out;
    memset(text, 'x', sizeof text);
    struct bytes longest = {text, REGISTRY_KEY_MAX - LEAGUE_SUFFIX_MAX};
    assert_true(league_is_name(longest));
    league_names_init(&out, longest);
    assert_int_equal(league_room(&out, 255, UINT32_MAX).size, REGISTRY_KEY_MAX);
    longest.size++;
    assert_false(league_is_name(longest));
}
