/* ZUNION, ZINTER, ZDIFF and ZINTERCARD, sentence by sentence. What is stored: test_zset_store.c. */
#include "tests/server/zset_fixture.h"

#define SYNTAX    "-ERR syntax error"
#define NO_INT    "-ERR value is not an integer or out of range"
#define NO_KEYS   "-ERR at least 1 input key is needed for "
#define NO_WEIGHT "-ERR weight value is not a float"

/* Random ones: tests/integration/twin.c and differential.c. */
ZSET_TEST(unions_intersections_and_differences) {
    zset_expect(h, "ZADD k 1 a 2 b 3 c", ":3");
    zset_expect(h, "ZADD l 10 b 20 c 30 d", ":3");
    zset_expect(h, "ZADD m 100 c", ":1");
    zset_expect(h, "ZUNION 2 k l", "[a b c d]");
    zset_expect(h, "ZUNION 3 none l none WITHSCORES", "[b 10 c 20 d 30]");
    zset_expect(h, "ZUNION 2 k l WITHSCORES", "[a 1 b 12 c 23 d 30]");
    zset_expect(h, "ZUNION 2 none none", "[]");
    zset_expect(h, "ZINTER 3 k l m WITHSCORES", "[c 123]");
    zset_expect(h, "ZINTER 2 l k", "[b c]");
    zset_expect(h, "ZINTER 2 none k WITHSCORES", "[]");
    zset_expect(h, "ZDIFF 2 k l WITHSCORES", "[a 1]");
    zset_expect(h, "ZDIFF 3 k none m", "[a b]");
    zset_expect(h, "ZDIFF 2 none k", "[]");
    zset_expect(h, "ZDIFF 3 k m k", "[]");
    /* The same board twice counts twice. */
    zset_expect(h, "ZUNION 3 m m m WITHSCORES", "[c 300]");
    zset_expect(h, "ZINTER 2 m m WEIGHTS 1 10 WITHSCORES", "[c 1100]");
    zset_expect(h, "ZINTERCARD 2 k k", ":3");
    zset_expect(h, "ZUNION 2 k l WEIGHTS 1 -1 AGGREGATE SUM WITHSCORES", "[d -30 c -17 b -8 a 1]");
    zset_expect(h, "ZUNION 2 k l AGGREGATE MIN WITHSCORES", "[a 1 b 2 c 3 d 30]");
    zset_expect(h, "ZUNION 2 k l aggregate max WITHSCORES", "[a 1 b 10 c 20 d 30]");
    zset_expect(h, "ZINTER 2 l k WITHSCORES AGGREGATE MIN AGGREGATE MAX", "[b 10 c 20]");
    zset_expect(h, "ZUNION 3 k l m AGGREGATE COUNT WITHSCORES", "[d 1 a 1 b 2 c 3]");
    zset_expect(h, "ZUNION 3 m m k aggregate count WITHSCORES", "[a 1 b 1 c 3]");
    zset_expect(h, "ZUNION 2 k l AGGREGATE COUNT WEIGHTS 0.5 -2 WITHSCORES",
                "[d -2 b -1.5 c -1.5 a 0.5]");
    zset_expect(h, "ZINTER 2 k l AGGREGATE COUNT WEIGHTS 3 4 WITHSCORES", "[b 7 c 7]");
    zset_use_resp3(h);
    zset_expect(h, "ZUNION 2 k m WITHSCORES", "[[a ,1] [b ,2] [c ,103]]");
    zset_expect(h, "ZINTER 2 k m WITHSCORES", "[[c ,103]]");
    zset_expect(h, "ZDIFF 2 k l WITHSCORES", "[[a ,1]]");
    zset_expect(h, "ZUNION 2 k m", "[a b c]");
}

ZSET_TEST(weights_are_exact_decimals) {
    zset_run(h, "ZADD k 1 a 3 b");
    zset_run(h, "ZADD money:k 0.25 a -7.01 b");
    zset_expect(h, "ZUNION 1 k WEIGHTS 0.1 WITHSCORES", "[a 0.1 b 0.3]");
    zset_expect(h, "ZUNION 1 k WEIGHTS -2.50 WITHSCORES", "[b -7.5 a -2.5]");
    zset_expect(h, "ZUNION 1 k WEIGHTS 1e3 WITHSCORES", "[a 1000 b 3000]");
    zset_expect(h, "ZUNION 1 k WEIGHTS +1 WITHSCORES", "[a 1 b 3]");
    zset_expect(h, "ZUNION 1 k WEIGHTS 01 WITHSCORES", "[a 1 b 3]");
    zset_expect(h, "ZUNION 1 k WEIGHTS 1.0 WITHSCORES", "[a 1 b 3]");
    zset_expect(h, "ZUNION 1 k WEIGHTS -0 WITHSCORES", "[a 0 b 0]");
    zset_expect(h, "ZUNION 1 k WEIGHTS 1e-18 WITHSCORES",
                "[a 0.000000000000000001 b 0.000000000000000003]");
    zset_expect(h, "ZUNION 2 k money:k WITHSCORES", "[b -4.01 a 1.25]");
    zset_expect(h, "ZUNION 2 k money:k WEIGHTS 1 0.001 WITHSCORES", "[a 1.00025 b 2.99299]");
    zset_expect(h, "ZINTER 2 money:k k WEIGHTS .5 +2. WITHSCORES", "[a 2.125 b 2.495]");
    zset_expect(h, "ZUNION 2 k money:k WEIGHTS 0 0 AGGREGATE MAX WITHSCORES", "[a 0 b 0]");
    zset_expect(h, "ZUNION 1 k WEIGHTS 7 WEIGHTS 2 WITHSCORES", "[a 2 b 6]");
}

ZSET_TEST(sums_past_64_bits_are_exact) {
    zset_run(h, "ZADD fine:k 9223372036854775807 a -9223372036854775808 b 9007199254740993 c");
    zset_expect(h, "ZUNION 3 fine:k fine:k fine:k WITHSCORES",
                "[b -27670116110564327424 c 27021597764222979 a 27670116110564327421]");
    zset_expect(
        h, "ZUNION 1 fine:k WEIGHTS 18446744073709551615 WITHSCORES",
        "[b -170141183460469231722463931679029329920 c 166153499473114502550712756989853695 "
        "a 170141183460469231704017187605319778305]");
    zset_use_resp3(h);
    zset_expect(h, "ZUNION 2 fine:k fine:k WEIGHTS 1 0.5 WITHSCORES",
                "[[b ,-13835058055282163712] [c ,13510798882111489.5] "
                "[a ,13835058055282163710.5]]");
}

ZSET_TEST(a_value_past_38_digits_is_an_error_that_names_the_member) {
    static const char too_wide[] =
        "-ERR member 'a': value is out of range: at most 38 digits, decimals included";
    zset_run(h, "ZADD fine:k 9223372036854775807 a");
    zset_run(h, "ZADD k 1 a 5 z");
    zset_expect(h, "ZUNION 2 fine:k fine:k WEIGHTS 18446744073709551615 18446744073709551615",
                too_wide);
    zset_expect(h, "ZINTER 2 fine:k k WEIGHTS 18446744073709551615 0.000000000000000001", too_wide);
    zset_expect_unchanged(
        h, "fine:k", "ZUNIONSTORE fine:k 2 fine:k k WEIGHTS 18446744073709551615 0.1", too_wide);
    /* A member that is not in the result causes no error. */
    zset_run(h, "ZADD l 1 b");
    zset_run(h, "ZADD fine:k 1 b");
    zset_run(h, "ZADD k 1 b");
    zset_expect(h, "ZINTER 3 fine:k k l WEIGHTS 18446744073709551615 0.000000000000000001 1",
                "[b]");
}

ZSET_TEST(equal_scores_stand_as_zrange_shows_them) {
    zset_run(h, "ZADD k 5 first");
    harness_pass_seconds(h, 1);
    zset_run(h, "ZADD k 5 second 5 third");
    harness_pass_seconds(h, 1);
    zset_run(h, "ZADD k 5 last");
    zset_expect(h, "ZRANGE k 0 -1", "[last third second first]");
    zset_expect(h, "ZUNION 1 k", "[last third second first]");
    zset_expect(h, "ZDIFF 2 k none", "[last third second first]");
    zset_expect(h, "ZINTER 2 k k", "[last third second first]");
}

ZSET_TEST(where_less_is_better_the_earlier_comes_first) {
    zset_run(h, "ZADD laps:k 5 first");
    harness_pass_seconds(h, 1);
    zset_run(h, "ZADD laps:k 5 second 4 best");
    zset_run(h, "ZADD k 0 second 0 first 0 best");
    zset_expect(h, "ZRANGE laps:k 0 -1", "[best first second]");
    zset_expect(h, "ZUNION 1 laps:k", "[best first second]");
    zset_expect(h, "ZUNION 3 none laps:k none", "[best first second]");
    /* The first key that exists decides. */
    zset_expect(h, "ZUNION 2 laps:k k WEIGHTS 1 0 WITHSCORES", "[best 4 first 5 second 5]");
    zset_expect(h, "ZUNION 2 k laps:k WEIGHTS 0 1 WITHSCORES", "[best 4 second 5 first 5]");
}

ZSET_TEST(latest_boards_show_the_last_to_come_as_the_best) {
    zset_run(h, "ZADD latest:k 5 first 5 second");
    harness_pass_seconds(h, 1);
    zset_run(h, "ZADD latest:k 5 third");
    zset_expect(h, "ZRANGE latest:k 0 -1", "[first second third]");
    zset_expect(h, "ZUNION 1 latest:k", "[first second third]");
    zset_expect(h, "ZINTER 2 latest:k latest:k", "[first second third]");
    zset_run(h, "ZADD k 0 third 0 second 0 first");
    zset_expect(h, "ZDIFF 2 latest:k none", "[first second third]");
    zset_expect(h, "ZINTER 2 k latest:k WEIGHTS 0 1", "[third first second]");
    /* Also where another board is the smaller one, and where the others' members are looked up. */
    zset_run(h, "ZADD latest:l 5 a 5 b 5 c 5 d");
    zset_run(h, "ZADD few 0 c 0 a 0 b");
    zset_run(h, "ZADD one 0 a");
    zset_expect(h, "ZINTER 2 latest:l few WEIGHTS 1 0", "[a b c]");
    zset_expect(h, "ZDIFF 2 latest:l one", "[b c d]");
}

ZSET_TEST(at_equal_times_the_first_board_that_has_the_member_decides) {
    zset_run(h, "ZADD k 1 b 2 a");
    zset_run(h, "ZADD l 9 e 3 c 2 b 1 a");
    zset_run(h, "ZADD m 0 a 0 b 0 c");
    /* k ranks a before b; c and e come later. All sums are 3, or 9. */
    zset_expect(h, "ZUNION 2 k l WITHSCORES", "[c 3 b 3 a 3 e 9]");
    zset_expect(h, "ZUNION 2 l k WITHSCORES", "[a 3 b 3 c 3 e 9]");
    /* Also when another board is the smallest one. */
    zset_run(h, "ZADD k 0 x 0 y");
    zset_expect(h, "ZINTER 3 l m k WITHSCORES", "[a 3 b 3]");
    zset_expect(h, "ZINTER 3 k m l WITHSCORES", "[b 3 a 3]");
    zset_expect(h, "ZINTER 3 m l k WITHSCORES", "[b 3 a 3]");
}

ZSET_TEST(zintercard_counts_up_to_a_limit) {
    for (int i = 0; i < 100; i++) {
        zset_run(h, "ZADD k %d m%d", i, i);
        zset_run(h, "ZADD l %d m%d", i, i * 2);
    }
    zset_expect(h, "ZINTERCARD 2 k l", ":50");
    zset_expect(h, "ZINTERCARD 2 k l LIMIT 0", ":50");
    zset_expect(h, "ZINTERCARD 2 k l LIMIT 9223372036854775807", ":50");
    zset_expect(h, "ZINTERCARD 1 k", ":100");
    zset_expect(h, "ZINTERCARD 2 k none", ":0");
    zset_expect(h, "ZINTERCARD 2 k l LIMIT 7 LIMIT 20", ":20");
    for (int limit = 1; limit < 60; limit++) {
        assert_int_equal(harness_run_integer(h, h->server.sessions.first,
                                             formatted("ZINTERCARD 2 l k limit %d", limit)),
                         limit < 50 ? limit : 50);
    }
}

ZSET_TEST(wrong_numbers_of_keys_are_refused) {
    static const char *const names[] = {"zunion", "zinter", "zdiff", "zintercard"};
    static const char *const rows[][2] = {
        {"0 k", NULL},
        {"-9223372036854775808 k", NULL},
        {"x k", NO_INT},
        {"1.5 k", NO_INT},
        {"9223372036854775808 k", NO_INT},
        {"2 k", SYNTAX},
        {"4611686018427387904 k", SYNTAX},
        {"9223372036854775807 k", SYNTAX},
        {"1 k k", SYNTAX},
    };
    zset_run(h, "ZADD k 1 a");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        for (size_t j = 0; j < COUNT_OF(rows); j++) {
            zset_expect(h, formatted("%s %s", names[i], rows[j][0]),
                        rows[j][1] != NULL ? rows[j][1]
                                           : formatted(NO_KEYS "'%s' command", names[i]));
        }
    }
}

ZSET_TEST(wrong_options_are_refused) {
    static const char *const rows[][2] = {
        {"ZUNION 2 k l FOO", SYNTAX},
        {"ZUNION 2 k l WEIGHTS", SYNTAX},
        {"ZUNION 2 k l WEIGHTS 1", SYNTAX},
        {"ZUNION 2 k l AGGREGATE", SYNTAX},
        {"ZUNION 2 k l AGGREGATE AVG", SYNTAX},
        {"ZUNION 2 k l WITHSCORE", SYNTAX},
        {"ZUNION 2 k l LIMIT 1", SYNTAX},
        {"ZUNION 2 k l WEIGHTS 1 2 3", SYNTAX},
        {"ZINTER 2 k l LIMIT 1", SYNTAX},
        {"ZDIFF 2 k l WEIGHTS 1 2", SYNTAX},
        {"ZDIFF 2 k l AGGREGATE SUM", SYNTAX},
        {"ZINTERCARD 2 k l WITHSCORES", SYNTAX},
        {"ZINTERCARD 2 k l WEIGHTS 1 1", SYNTAX},
        {"ZINTERCARD 2 k l AGGREGATE SUM", SYNTAX},
        {"ZINTERCARD 2 k l LIMIT", SYNTAX},
        {"ZINTERCARD 2 k l LIMIT -1", "-ERR LIMIT can't be negative"},
        {"ZINTERCARD 2 k l LIMIT x", "-ERR LIMIT can't be negative"},
        {"ZINTERCARD 2 k l LIMIT 1 FOO", SYNTAX},
        {"ZINTER 1 k WEIGHTS \"\"", NO_WEIGHT},
        {"ZINTER 1 k WEIGHTS \" 1\"", NO_WEIGHT},
        {"ZUNION 1 none WEIGHTS \"1\\r\\n+OK\"", NO_WEIGHT},
        {"ZUNION 2 k k WEIGHTS 1 nan FOO", NO_WEIGHT},
        {"ZUNION 2 k k WEIGHTS 1 -inf FOO", NO_WEIGHT},
        {"ZUNION 2 k k WEIGHTS 1 (1 FOO", NO_WEIGHT},
        {"ZUNION 1 none WEIGHTS 1e-19", "-ERR weight 1e-19 has too many decimals: at most 18"},
        {"ZUNION 1 none WEIGHTS 1e20",
         "-ERR weight 1e20 is out of range: its digits, without the point, may be at most "
         "18446744073709551615"},
    };
    zset_run(h, "ZADD k 1 a");
    zset_run(h, "ZADD l 1 a");
    zset_expect_each(h, rows);
}

ZSET_TEST(many_boards_are_combined) {
    enum { BOARDS = 300 };
    static char line[BOARDS * 8 + 64];
    size_t size = (size_t)snprintf(line, sizeof(line), "ZUNION %d", BOARDS);
    for (int i = 0; i < BOARDS; i++) {
        zset_run(h, "ZADD k%d 1 everybody %d m%d", i, 1000 + i, i);
        size += (size_t)snprintf(line + size, sizeof(line) - size, " k%d", i);
    }
    strcpy(line + size, " WITHSCORES");
    const char *answered = zset_run(h, "%s", line);
    assert_memory_equal(answered, "[everybody 300 m0 1000 m1 1001 ", 31);
    memcpy(line, "ZINTER", 6);
    zset_expect(h, line, "[everybody 300]");
}

/* ---- boards of thousands of members, where look-ups are fetched ahead ---- */

enum { LARGE = 6000 };

/* Members whose number is a multiple of step, their scores being factor times that. */
static void fill_large(struct harness *h, const char *key, int step, int factor) {
    char line[4096];
    for (int i = 0; i < LARGE;) {
        size_t size = (size_t)snprintf(line, sizeof(line), "ZADD %s", key);
        for (int pairs = 0; pairs < 100 && i < LARGE; pairs++, i += step) {
            size += (size_t)snprintf(line + size, sizeof(line) - size, " %d m%d", i * factor, i);
        }
        zset_run(h, "%s", line);
    }
}

/* The stored result d: members whose numbers are asked for, with those scores. */
static void expect_large(struct harness *h, const char *line, bool (*is_in)(int),
                         int64_t (*score)(int)) {
    int count = 0;
    for (int i = 0; i < LARGE; i++) {
        count += is_in(i);
    }
    assert_int_equal(harness_run_integer(h, h->server.sessions.first, line), count);
    free(zset_dump(h, "d"));
    for (int i = 0; i < LARGE; i++) {
        const char *answered = zset_run(h, "ZSCORE d m%d", i);
        if (is_in(i)) {
            assert_int_equal(strtoll(answered, NULL, 10), score(i));
        } else {
            assert_string_equal(answered, "nil");
        }
    }
}

static bool is_two_or_three(int i) {
    return i % 2 == 0 || i % 3 == 0;
}
static int64_t sum_of_both(int i) {
    return (i % 2 == 0 ? i : 0) + (i % 3 == 0 ? 10 * i : 0);
}
static bool is_six(int i) {
    return i % 6 == 0;
}
static int64_t eleven_times(int i) {
    return 11 * i;
}
static bool is_two_alone(int i) {
    return i % 2 == 0 && i % 3 != 0;
}
static int64_t once(int i) {
    return i;
}
static bool is_every(int i) {
    return i >= 0;
}
static bool is_no_thousand(int i) {
    return i % 1000 != 0;
}
static bool is_thousand(int i) {
    return i % 1000 == 0;
}
static int64_t five_times(int i) {
    return 5 * i;
}

ZSET_TEST(large_boards_are_combined_as_small_ones_are) {
    fill_large(h, "two", 2, 1);
    fill_large(h, "three", 3, 10);
    fill_large(h, "all", 1, 1);
    fill_large(h, "few", 1000, 4);
    expect_large(h, "ZUNIONSTORE d 2 two three", is_two_or_three, sum_of_both);
    expect_large(h, "ZUNIONSTORE d 2 three two", is_two_or_three, sum_of_both);
    expect_large(h, "ZINTERSTORE d 2 two three", is_six, eleven_times);
    expect_large(h, "ZINTERSTORE d 3 all two three AGGREGATE MIN", is_six, once);
    expect_large(h, "ZINTERSTORE d 2 all few", is_thousand, five_times);
    expect_large(h, "ZDIFFSTORE d 2 two three", is_two_alone, once);
    expect_large(h, "ZDIFFSTORE d 2 all few", is_no_thousand, once);
    expect_large(h, "ZDIFFSTORE d 2 all none", is_every, once);
    expect_large(h, "ZDIFFSTORE d 3 all none few", is_no_thousand, once);
    zset_expect(h, "ZINTERCARD 2 two three", ":1000");
    zset_expect(h, "ZINTERCARD 2 all all", ":6000");
    zset_expect(h, "ZINTERCARD 2 all three LIMIT 33", ":33");
    zset_expect(h, "ZDIFF 2 few all", "[]");
}

ZSET_TEST(nothing_is_made_for_a_client_that_hears_nothing) {
    zset_run(h, "ZADD k 1 a 2 b");
    assert_string_equal(harness_run(h, h->server.sessions.first, "CLIENT REPLY OFF"), "");
    assert_string_equal(harness_run(h, h->server.sessions.first, "ZUNION 2 k k WITHSCORES"), "");
    assert_string_equal(harness_run(h, h->server.sessions.first, "ZUNIONSTORE d 2 k k"), "");
    zset_expect(h, "CLIENT REPLY ON", "+OK");
    zset_expect(h, "ZRANGE d 0 -1 WITHSCORES", "[a 2 b 4]");
}
