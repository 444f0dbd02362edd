/* ZUNIONSTORE, ZINTERSTORE, ZDIFFSTORE and ZRANGESTORE at their destination: layouts, times, ties,
 * errors. Random ones: tests/integration/twin.c. */
#include "server/commands/zset/zset.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/random.h"

#define SYNTAX   "-ERR syntax error"
#define NO_INT   "-ERR value is not an integer or out of range"
#define START_MS (HARNESS_START_US / 1000)

ZSET_TEST(the_destination_may_be_a_source) {
    static const struct {
        const char *line, *count, *key, *members;
    } rows[] = {
        {"ZUNIONSTORE k 2 k l", ":2", "k", "[a 1 b 12]"},
        {"ZUNIONSTORE k 3 k k k WEIGHTS 1 1 2", ":2", "k", "[a 4 b 48]"},
        {"ZINTERSTORE l 2 k l", ":1", "l", "[b 58]"},
        {"ZRANGESTORE k k 0 0", ":1", "k", "[a 4]"},
        {"ZDIFFSTORE l 2 l k", ":1", "l", "[b 58]"},
        {"ZDIFFSTORE l 2 l l", ":0", "l", "[]"},
    };
    zset_run(h, "ZADD k 1 a 2 b");
    zset_run(h, "ZADD l 10 b");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i].line, rows[i].count);
        zset_expect(h, formatted("ZRANGE %s 0 -1 WITHSCORES", rows[i].key), rows[i].members);
    }
    assert_null(zset_board(h, "l"));
}

ZSET_TEST(an_empty_result_removes_the_destination) {
    static const char *const lines[] = {
        "ZUNIONSTORE d 2 none none",   "ZINTERSTORE d 2 k none",
        "ZDIFFSTORE d 2 k k",          "ZDIFFSTORE d 1 none",
        "ZRANGESTORE d k 5 9",         "ZRANGESTORE d none 0 -1",
        "ZRANGESTORE d k 5 9 BYSCORE", "ZRANGESTORE d none 5 9 BYSCORE REV",
    };
    zset_run(h, "ZADD k 1 a");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_run(h, "ZADD d 7 old");
        zset_expect(h, lines[i], ":0");
        zset_expect(h, "EXISTS d", ":0");
        zset_expect(h, lines[i], ":0");
        zset_expect(h, "EXISTS d", ":0");
    }
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", "[a 1]");
}

ZSET_TEST(a_replaced_destination_loses_its_expiry) {
    static const char *const lines[] = {"ZUNIONSTORE d 1 k", "ZINTERSTORE d 1 k",
                                        "ZDIFFSTORE d 1 k", "ZRANGESTORE d k 0 -1"};
    zset_run(h, "ZADD k 1 a");
    zset_run(h, "EXPIRE k 50");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_run(h, "ZADD d 7 old");
        zset_run(h, "EXPIRE d 100");
        zset_expect(h, lines[i], ":1");
        zset_expect(h, "TTL d", ":-1");
        zset_expect(h, "ZRANGE d 0 -1", "[a]");
    }
    zset_expect(h, "TTL k", ":50");
}

ZSET_TEST(the_destination_has_the_layout_that_its_name_is_given) {
    zset_run(h, "ZADD k 1 a 2 b 3 c");
    /* Also where another layout stands there now. */
    zset_run(h, "ZADD three:k 7 old");
    zset_expect(h, "RENAME three:k laps:d", "+OK");
    zset_expect(h, "ZUNIONSTORE laps:d 1 k", ":3");
    assert_true(zset_lead(zset_board(h, "laps:d"))->is_ascending);
    zset_expect(h, "ZRANGE laps:d 0 -1", "[a b c]");
    assert_int_equal(board_layout(zset_board(h, "laps:d"))->field_count, 1);
    zset_expect(h, "ZUNIONSTORE money:d 1 k WEIGHTS 0.25", ":3");
    zset_expect(h, "ZRANGE money:d 0 -1 WITHSCORES", "[a 0.25 b 0.5 c 0.75]");
    zset_expect(h, "ZINTERSTORE d 2 laps:d money:d WEIGHTS 1 4", ":3");
    zset_expect(h, "ZRANGE d 0 -1 WITHSCORES", "[a 2 b 4 c 6]");
    zset_expect(h, "ZRANGESTORE money:d laps:d 0 1", ":2");
    zset_expect(h, "ZRANGE money:d 0 -1 WITHSCORES", "[a 1 b 2]");
}

#define SCORE_RANGE " is out of range: field 'score' takes -4294967296..4294967295"
#define TOO_FINE                                                                                   \
    " has too many decimals: field 'score' keeps 0 (round it, or more by SCALE in the layout)"

ZSET_TEST(a_value_that_the_field_cannot_hold_is_named_and_changes_nothing) {
    static const char *const rows[][2] = {
        {"ZUNIONSTORE d 2 k k", "-ERR member 'b': value 8589934590" SCORE_RANGE},
        {"ZUNIONSTORE d 2 k k WEIGHTS -1 -1", "-ERR member 'b': value -8589934590" SCORE_RANGE},
        {"ZUNIONSTORE d 1 k WEIGHTS 18446744073709551615",
         "-ERR member 'b': value 79228162495817593515539431425" SCORE_RANGE},
        {"ZUNIONSTORE d 1 money:k", "-ERR member 'a': value 0.5" TOO_FINE},
        {"ZRANGESTORE d money:k 0 -1", "-ERR member 'a': value 0.5" TOO_FINE},
        {"ZINTERSTORE d 2 k money:k WEIGHTS 0.125 1", "-ERR member 'a': value 0.625" TOO_FINE},
        {"ZUNIONSTORE laps:d 1 k WEIGHTS -1",
         "-ERR member 'b': value -4294967295 is out of range: field 'ms' takes 0..4294967295"},
    };
    zset_run(h, "ZADD d 1 old");
    zset_run(h, "ZADD k 1 a 4294967295 b");
    zset_run(h, "ZADD money:k 0.5 a");
    zset_expect_each_unchanged(h, "d", rows);
    zset_expect(h, "EXISTS laps:d", ":0");
    /* Two halves are a whole. */
    zset_expect(h, "ZUNIONSTORE d 2 money:k money:k", ":1");
    zset_expect(h, "ZRANGE d 0 -1 WITHSCORES", "[a 1]");
}

ZSET_TEST(a_time_outside_the_destinations_window_is_named_and_changes_nothing) {
    zset_run(h, "ZADD k 1 a 2 b");
    zset_expect(h, "ZUNIONSTORE future:d 1 k",
                "-ERR member 'b': time 2026-01-01T00:00:00Z is out of range: this layout's TIME "
                "takes 2030-01-01T00:00:00Z..2098-01-19T03:14:07.999999Z");
    zset_expect(h, "ZRANGESTORE over:d k 0 0",
                "-ERR member 'a': time 2026-01-01T00:00:00Z is out of range: this layout's TIME "
                "takes 2020-01-01T00:00:00Z..2020-01-01T00:17:03.999999Z");
    zset_expect(h, "EXISTS over:d future:d", ":0");
}

ZSET_TEST(an_error_shows_a_member_without_line_ends_and_cut) {
    zset_run(h, "ZADD money:k 0.5 \"a\\r\\nb\"");
    zset_expect(h, "ZUNIONSTORE d 1 money:k", "-ERR member 'a  b': value 0.5" TOO_FINE);
    zset_run(h, "ZADD money:k 0.5 %0100d", 7);
    zset_run(h, "ZREM money:k \"a\\r\\nb\"");
    zset_expect(h, "ZUNIONSTORE d 1 money:k",
                "-ERR member '0000000000000000000000000000000000000000000000000000000000000000': "
                "value 0.5" TOO_FINE);
}

/* ---- times ---- */

/* a is on k at 1 s with 5 and on l at 3 s with 2, b the other way round. */
static void set_two_boards(struct harness *h) {
    harness_pass_seconds(h, 1);
    zset_run(h, "ZADD k 5 a");
    zset_run(h, "ZADD l 2 b");
    harness_pass_seconds(h, 2);
    zset_run(h, "ZADD l 2 a");
    zset_run(h, "ZADD k 5 b");
    harness_pass_seconds(h, 10);
}

static void expect_times(struct harness *h, const char *line, int64_t a_seconds,
                         int64_t b_seconds) {
    zset_expect(h, line, ":2");
    assert_int_equal(zset_time_ms(h, "d", "a"), START_MS + a_seconds * 1000);
    assert_int_equal(zset_time_ms(h, "d", "b"), START_MS + b_seconds * 1000);
}

ZSET_TEST(a_sum_was_reached_with_its_latest_part) {
    set_two_boards(h);
    expect_times(h, "ZUNIONSTORE d 2 k l", 3, 3);
    expect_times(h, "ZINTERSTORE d 2 l k", 3, 3);
    expect_times(h, "ZUNIONSTORE d 1 k", 1, 3);
}

ZSET_TEST(the_chosen_parts_time_is_that_of_min_and_max) {
    set_two_boards(h);
    expect_times(h, "ZUNIONSTORE d 2 k l AGGREGATE MAX", 1, 3);
    expect_times(h, "ZUNIONSTORE d 2 k l AGGREGATE MIN", 3, 1);
    expect_times(h, "ZINTERSTORE d 2 k l WEIGHTS 1 10 AGGREGATE MAX", 3, 1);
}

ZSET_TEST(of_equal_parts_the_earliest_is_chosen) {
    set_two_boards(h);
    expect_times(h, "ZUNIONSTORE d 2 k l WEIGHTS 2 5 AGGREGATE MAX", 1, 1);
    expect_times(h, "ZUNIONSTORE d 2 l k WEIGHTS 5 2 AGGREGATE MIN", 1, 1);
    expect_times(h, "ZINTERSTORE d 2 l k WEIGHTS 0 0 AGGREGATE MAX", 1, 1);
}

ZSET_TEST(a_difference_keeps_the_first_boards_times) {
    set_two_boards(h);
    zset_run(h, "ZADD m 1 a");
    expect_times(h, "ZDIFFSTORE d 1 k", 1, 3);
    zset_expect(h, "ZDIFFSTORE d 2 l m", ":1");
    assert_int_equal(zset_time_ms(h, "d", "b"), START_MS + 1000);
}

ZSET_TEST(a_part_of_weight_0_has_no_say_in_a_sums_time) {
    set_two_boards(h);
    zset_run(h, "ZADD friends 0 a 0 b 0 x");
    zset_run(h, "ZADD bare:friends 0 a 0 b");
    expect_times(h, "ZINTERSTORE d 2 k friends WEIGHTS 1 0", 1, 3);
    expect_times(h, "ZINTERSTORE d 2 friends k WEIGHTS 0 1", 1, 3);
    expect_times(h, "ZINTERSTORE d 3 bare:friends k friends WEIGHTS 0 1 0", 1, 3);
    expect_times(h, "ZINTERSTORE d 2 k l WEIGHTS 1 0", 1, 3);
    /* Unless all parts are such. */
    zset_expect(h, "ZUNIONSTORE d 2 friends k WEIGHTS 0 1", ":3");
    assert_int_equal(zset_time_ms(h, "d", "x"), START_MS + 13000);
    expect_times(h, "ZINTERSTORE d 2 k l WEIGHTS 0 0", 3, 3);
}

ZSET_TEST(a_score_without_a_time_counts_as_reached_now) {
    set_two_boards(h);
    zset_run(h, "ZADD bare:k 1 a");
    harness_pass_seconds(h, 7);
    expect_times(h, "ZUNIONSTORE d 2 k bare:k", 20, 3);
    expect_times(h, "ZUNIONSTORE d 2 k bare:k AGGREGATE MAX", 1, 3);
    zset_expect(h, "ZRANGESTORE d bare:k 0 -1", ":1");
    assert_int_equal(zset_time_ms(h, "d", "a"), START_MS + 20000);
}

ZSET_TEST(equal_results_rank_by_who_reached_them_first) {
    zset_run(h, "ZADD mon 3 late 4 early");
    harness_pass_seconds(h, 10);
    zset_run(h, "ZADD tue 6 early");
    harness_pass_seconds(h, 10);
    zset_run(h, "ZADD tue 7 late 10 last");
    zset_expect(h, "ZUNIONSTORE week 2 mon tue", ":3");
    zset_expect(h, "ZREVRANGE week 0 -1 WITHSCORES", "[early 10 late 10 last 10]");
    zset_expect(h, "ZUNIONSTORE laps:week 2 tue mon", ":3");
    zset_expect(h, "ZRANGE laps:week 0 -1", "[early last late]");
    /* LATEST: the other way round, arrival too. */
    zset_expect(h, "ZUNIONSTORE latest:week 2 mon tue", ":3");
    zset_expect(h, "ZREVRANGE latest:week 0 -1", "[last late early]");
    /* A day is one unit there: the exact times decide, but are not kept. */
    zset_expect(h, "ZUNIONSTORE daily:week 2 mon tue", ":3");
    zset_expect(h, "ZREVRANGE daily:week 0 -1", "[early late last]");
    /* No time at all there. */
    zset_expect(h, "ZUNIONSTORE bare:week 2 mon tue", ":3");
    zset_expect(h, "ZREVRANGE bare:week 0 -1", "[early late last]");
    zset_run(h, "ZADD bare:week 10 newcomer");
    zset_expect(h, "ZREVRANGE bare:week 0 -1", "[early late last newcomer]");
}

ZSET_TEST(at_equal_times_arrival_on_the_first_board_decides) {
    zset_run(h, "ZADD bare:k 5 first 5 second 5 third");
    zset_run(h, "ZADD bare:l 0 third 0 first 0 second 5 fourth");
    static const char *const destinations[] = {"d", "bare:d", "daily:d"};
    for (size_t i = 0; i < sizeof(destinations) / sizeof(destinations[0]); i++) {
        zset_expect(h, formatted("ZUNIONSTORE %s 2 bare:k bare:l", destinations[i]), ":4");
        zset_expect(h, formatted("ZREVRANGE %s 0 -1", destinations[i]),
                    "[first second third fourth]");
        zset_expect(h, formatted("ZINTERSTORE %s 2 bare:l bare:k", destinations[i]), ":3");
        zset_expect(h, formatted("ZREVRANGE %s 0 -1", destinations[i]), "[third first second]");
    }
}

ZSET_TEST(a_board_with_a_cap_keeps_the_best_results) {
    shadow_end(h->shadow); /* the cap is set past the commands */
    struct board_options capped;
    board_options_copy(h->server.settings.default_options[0], &capped);
    capped.cap = 3;
    zset_run(h, "ZADD laps:k 1 a 2 b 3 c 4 d 5 e");
    h->server.settings.default_options[0] = &capped;
    zset_expect(h, "ZUNIONSTORE d 1 laps:k", ":3");
    zset_expect(h, "ZRANGE d 0 -1", "[c d e]");
    zset_expect(h, "ZRANGESTORE d laps:k 0 -2", ":3");
    zset_expect(h, "ZRANGE d 0 -1", "[b c d]");
    zset_expect(h, "ZRANGESTORE d laps:k 0 1", ":2");
    zset_expect(h, "RENAME laps:k k", "+OK");
    zset_run(h, "ZADD few 1 a 2 b 3 c");
    zset_expect(h, "ZUNIONSTORE d 2 few few", ":3");
}

ZSET_TEST(members_of_every_length_are_stored) {
    static const int sizes[] = {1, 31, 40, 253, 254, 255, 256, 3000};
    for (int i = 0; i < 64; i++) {
        zset_run(h, "ZADD k %d %0*d", i % 5, sizes[i % 8], i % 8 == 0 ? i / 8 : i);
    }
    OWNED char *before = zset_dump(h, "k");
    zset_expect(h, "ZRANGESTORE d k 0 -1", ":64");
    OWNED char *after = zset_dump(h, "d");
    assert_string_equal(before, after);
    free(after);
    zset_expect(h, "ZUNIONSTORE d 1 k", ":64");
    after = zset_dump(h, "d");
    assert_string_equal(before, after);
}

/* ---- other fields, and ZRANGESTORE ---- */

ZSET_TEST(results_have_other_fields_0) {
    zset_run(h, "ZADD three:k 5 a 7 b");
    zset_set_field(h, "three:k", "a", 1, 1);
    zset_set_field(h, "three:k", "a", 2, 1024 + 9);
    zset_expect(h, "ZUNIONSTORE three:d 1 three:k", ":2");
    const struct layout *layout = board_layout(zset_board(h, "three:d"));
    uint64_t key = zset_packed(h, "three:d", "a");
    assert_int_equal(layout_ordinal(layout, key, 0), 5);
    assert_int_equal(layout_ordinal(layout, key, 1), 0);
    assert_int_equal(layout_ordinal(layout, key, 2), 1024);
    zset_expect(h, "ZRANGESTORE d three:k 0 -1", ":2");
    zset_expect(h, "ZRANGESTORE three:d d 0 -1", ":2");
    key = zset_packed(h, "three:d", "a");
    assert_int_equal(layout_ordinal(layout, key, 1), 0);
}

ZSET_TEST(zrangestore_keeps_the_whole_key_in_the_same_layout) {
    for (size_t i = 0; i < ZSET_LAYOUTS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%sk", zset_layout_prefixes[i]);
        for (int n = 0; n < 200; n++) {
            zset_run(h, "ZADD %s %d m%d", key, n % 9, n);
            h->wall_us += 300000;
        }
        if (strcmp(zset_layout_prefixes[i], "three:") == 0) {
            for (int n = 0; n < 200; n += 3) {
                const char *member = formatted("m%d", n);
                zset_set_field(h, key, member, 1, (uint64_t)n % 2);
                zset_set_field(h, key, member, 2, (uint64_t)n % 5);
            }
        }
        harness_pass_seconds(h, 1000);
        OWNED char *before = zset_dump(h, key);
        assert_string_equal(zset_run(h, "ZRANGESTORE %sd %s 0 -1", zset_layout_prefixes[i], key),
                            ":200");
        OWNED char *after = zset_dump(h, formatted("%sd", zset_layout_prefixes[i]));
        assert_string_equal(before, after);
    }
}

ZSET_TEST(zrangestore_keeps_scores_times_and_order_in_another_layout) {
    zset_run(h, "ZADD k 5 first");
    harness_pass_seconds(h, 100);
    zset_run(h, "ZADD k 5 second 5 third 9 best");
    harness_pass_seconds(h, 100);
    zset_expect(h, "ZRANGESTORE laps:d k 0 -1", ":4");
    zset_expect(h, "ZRANGE laps:d 0 -1 WITHSCORES", "[first 5 second 5 third 5 best 9]");
    assert_int_equal(zset_time_ms(h, "laps:d", "first"), START_MS);
    assert_int_equal(zset_time_ms(h, "laps:d", "third"), START_MS + 100000);
    zset_expect(h, "ZRANGESTORE money:d laps:d 0 -1", ":4");
    zset_expect(h, "ZREVRANGE money:d 0 -1 WITHSCORES", "[best 9 first 5 second 5 third 5]");
    assert_int_equal(zset_time_ms(h, "money:d", "best"), START_MS + 60000);
    zset_expect(h, "ZRANGESTORE bare:d laps:d 0 2", ":3");
    zset_expect(h, "ZREVRANGE bare:d 0 -1", "[first second third]");
    zset_expect(h, "ZRANGESTORE latest:d bare:d 0 -1", ":3");
    zset_expect(h, "ZREVRANGE latest:d 0 -1", "[third second first]");
}

ZSET_TEST(wrong_arguments_change_nothing) {
    static const char *const lines[][2] = {
        {"ZUNIONSTORE d 0 k", "-ERR at least 1 input key is needed for 'zunionstore' command"},
        {"ZDIFFSTORE d 0 k", "-ERR at least 1 input key is needed for 'zdiffstore' command"},
        {"ZUNIONSTORE d x k", NO_INT},
        {"ZUNIONSTORE d 3 k k", SYNTAX},
        {"ZUNIONSTORE d 1 k WITHSCORES", SYNTAX},
        {"ZDIFFSTORE d 1 k WITHSCORES", SYNTAX},
        {"ZDIFFSTORE d 1 k WEIGHTS 1", SYNTAX},
        {"ZUNIONSTORE d 1 k WEIGHTS x", "-ERR weight value is not a float"},
        {"ZUNIONSTORE d 1 none WEIGHTS inf", "-ERR weight value is not a float"},
        {"ZRANGESTORE d k 0 x", NO_INT},
        {"ZRANGESTORE d k 0 1 WITHSCORES", SYNTAX},
        {"ZRANGESTORE d k 0 1 FOO", SYNTAX},
        {"ZRANGESTORE d k 0 1 BYSCORE LIMIT 1", SYNTAX},
        {"ZRANGESTORE d k 0 1 LIMIT 0 1",
         "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"},
        {"ZRANGESTORE d k x 1 BYSCORE", "-ERR min or max is not a float"},
        {"ZRANGESTORE d k - + BYLEX",
         "-ERR BYLEX is not supported: equal scores are ordered by time, never by name"},
        {"ZRANGESTORE d k [a [c BYLEX LIMIT 0 1",
         "-ERR BYLEX is not supported: equal scores are ordered by time, never by name"},
    };
    zset_run(h, "ZADD k 1 a 2 b");
    zset_run(h, "ZADD d 7 old");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect_unchanged(h, "d", lines[i][0], lines[i][1]);
    }
}

ZSET_TEST(the_destinations_name_has_1_to_65536_bytes) {
    static const char empty[] = "-ERR key is 0 bytes long: 1..65536 are allowed";
    zset_run(h, "ZADD k 1 a");
    zset_expect(h, "ZUNIONSTORE \"\" 1 k", empty);
    zset_expect(h, "ZINTERSTORE \"\" 1 k", empty);
    zset_expect(h, "ZDIFFSTORE \"\" 1 k", empty);
    zset_expect(h, "ZRANGESTORE \"\" k 0 -1", empty);
    static char name[65537];
    memset(name, 'n', sizeof(name));
    struct bytes args[] = {
        BYTES("ZUNIONSTORE"), {.at = name, .size = 65537}, BYTES("1"), BYTES("k")};
    assert_string_equal(harness_run_args(h, h->server.sessions.first, args, 4),
                        "-ERR key is 65537 bytes long: 1..65536 are allowed\r\n");
    args[1].size = 65536;
    assert_string_equal(harness_run_args(h, h->server.sessions.first, args, 4), ":1\r\n");
}

/* ---- a week is the sum of its days ---- */

enum { PLAYERS = 60, DAYS = 7 };

/* Plays everything again: who has which total, and since when. */
struct replay {
    int64_t totals[PLAYERS];
    int64_t reached_us[PLAYERS];
    bool is_there[PLAYERS];
};

static const struct replay *comparing; /* qsort has no context */

static int compare_players(const void *left, const void *right) {
    int a = *(const int *)left;
    int b = *(const int *)right;
    if (comparing->totals[a] != comparing->totals[b]) {
        return comparing->totals[a] > comparing->totals[b] ? -1 : 1;
    }
    return comparing->reached_us[a] < comparing->reached_us[b] ? -1 : 1;
}

/* Returns how many players share their total with the one before. */
static int expect_week(struct harness *h, const struct replay *replay, int day_count) {
    char line[256] = "";
    char expected[PLAYERS * 32] = "[";
    int players[PLAYERS];
    int count = 0;
    int ties = 0;
    size_t size = (size_t)snprintf(line, sizeof(line), "ZUNIONSTORE week %d", day_count);
    for (int day = 0; day < day_count; day++) {
        size += (size_t)snprintf(line + size, sizeof(line) - size, " day:%d", day);
    }
    for (int player = 0; player < PLAYERS; player++) {
        if (replay->is_there[player]) {
            players[count++] = player;
        }
    }
    comparing = replay;
    qsort(players, (size_t)count, sizeof(players[0]), compare_players);
    assert_int_equal(harness_run_integer(h, h->server.sessions.first, line), count);
    size = 1;
    for (int i = 0; i < count; i++) {
        int player = players[i];
        size += (size_t)snprintf(expected + size, sizeof(expected) - size, "%sp%d %lld",
                                 i > 0 ? " " : "", player, (long long)replay->totals[player]);
        ties += i > 0 && replay->totals[player] == replay->totals[players[i - 1]];
        assert_int_equal(zset_time_ms(h, "week", formatted("p%d", player)),
                         replay->reached_us[player] / 1000);
    }
    strcpy(expected + size, "]");
    zset_expect(h, "ZREVRANGE week 0 -1 WITHSCORES", expected);
    return ties;
}

TEST(this_week_is_the_sum_of_its_days_and_ties_go_to_who_reached_the_sum_first) {
    struct random random = random_begin(__func__);
    int ties = 0;
    for (int week = 0; week < 12; week++) {
        struct harness *h = harness_create("layout points FIELD points 20 SIGNED TIME 40 MS\n"
                                           "default-layout points\n");
        struct replay replay = {{0}, {0}, {false}};
        harness_connect(h);
        for (int day = 0; day < DAYS; day++) {
            for (int left = (int)random_below(&random, 150); left > 0; left--) {
                int player = (int)random_below(&random, PLAYERS);
                int64_t points =
                    (int64_t)random_below(&random, 4) - (int64_t)random_below(&random, 2);
                points = points == 0 ? 1 : points;
                /* Some in one second, but no two in one millisecond. */
                h->wall_us += 1000 * (int64_t)(1 + random_below(&random, 900));
                zset_run(h, "ZINCRBY day:%d %lld p%d", day, (long long)points, player);
                replay.totals[player] += points;
                replay.reached_us[player] = h->wall_us;
                replay.is_there[player] = true;
            }
            ties += expect_week(h, &replay, day + 1);
            harness_pass_seconds(h, 86400);
        }
        harness_destroy(h);
    }
    assert_true(ties > 1000);
}
