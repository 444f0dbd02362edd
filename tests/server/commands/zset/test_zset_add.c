/* ZADD and ZINCRBY, sentence by sentence. */
#include "tests/server/zset_fixture.h"

#define START_MS (HARNESS_START_US / 1000)

static const char nx_xx[] = "-ERR XX and NX options at the same time are not compatible";
static const char gt_lt_nx[] = "-ERR GT, LT, and/or NX options at the same time are not compatible";
static const char one_pair[] = "-ERR INCR option supports a single increment-element pair";
static const char no_float[] = "-ERR value is not a valid float";
static const char syntax[] = "-ERR syntax error";

/* Random ones: tests/integration/twin.c and differential.c. */
ZSET_TEST(options_say_who_is_changed_and_what_is_counted) {
    zset_expect(h, "ZADD k 1 a 2 b", ":2");
    zset_expect(h, "ZADD k 3 a 4 c", ":1");
    /* NX leaves members that are there, XX adds nobody. */
    zset_expect(h, "ZADD k NX 5 a 6 d", ":1");
    zset_expect(h, "ZADD k nx CH 5 a 6 d", ":0");
    zset_expect(h, "ZADD k XX 5 a 6 e", ":0");
    zset_expect(h, "ZADD k Xx cH 7 a 6 e", ":1");
    /* GT and LT change in one direction and add anyway. */
    zset_expect(h, "ZADD k GT CH 6 a 7 a", ":0");
    zset_expect(h, "ZADD k GT CH 8 a 1 f", ":2");
    zset_expect(h, "ZADD k LT CH 9 a 8 a", ":0");
    zset_expect(h, "ZADD k LT CH 0 a 9 g", ":2");
    zset_expect(h, "ZADD k XX GT CH 3 a 9 h", ":1");
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", "[f 1 b 2 a 3 c 4 d 6 g 9]");
    /* They compare scores where less is better, too. */
    zset_expect(h, "ZADD laps:k 5 a", ":1");
    zset_expect(h, "ZADD laps:k GT CH 4 a", ":0");
    zset_expect(h, "ZADD laps:k GT CH 6 a", ":1");
    zset_expect(h, "ZADD laps:k LT CH 7 a", ":0");
    /* One member named again goes on from there. */
    zset_expect(h, "ZADD k CH 1 i 2 i 2 i 3 i", ":3");
    zset_expect(h, "ZADD k NX 8 j 9 j", ":1");
    zset_expect(h, "ZADD k GT CH 4 j 9 j 5 j", ":1");
    zset_expect(h, "ZSCORE k j", "9");
    zset_expect(h, "ZADD n INCR 5 a", "5");
    zset_expect(h, "ZADD n incr ch -7 a", "-2");
    /* Options may be members. */
    zset_expect(h, "ZADD names 1 NX 2 INCR", ":2");
    zset_expect(h, "ZRANGE names 0 -1", "[NX INCR]");
    zset_use_resp3(h);
    zset_expect(h, "ZADD n XX INCR 2 a", ",0");
    zset_expect(h, "ZADD n NX INCR 5 a", "_");
}

ZSET_TEST(what_an_option_stops_and_what_contradicts_changes_nothing) {
    static const char *const rows[][2] = {
        {"ZADD k NX INCR 5 a", "nil"},
        {"ZADD k XX INCR 5 b", "nil"},
        {"ZADD k GT INCR -1 a", "nil"},
        {"ZADD k GT INCR 0 a", "nil"},
        {"ZADD k LT INCR 1 a", "nil"},
        {"ZADD k INCR 0 a", "5"},
        {"ZADD none XX INCR 1 a", "nil"},
        {"ZADD k NX XX 1 a", nx_xx},
        {"ZADD k NX XX GT INCR 1 a 2 b", nx_xx},
        {"ZADD k NX GT 1 a", gt_lt_nx},
        {"ZADD k NX LT 1 a", gt_lt_nx},
        {"ZADD k XX GT LT INCR 1 a 2 b", gt_lt_nx},
        {"ZADD k INCR 1 a 2 b", one_pair},
        {"ZADD k INCR x a 2 b", one_pair},
        {"ZADD k 1 a 2", syntax},
        {"ZADD k x a 2", syntax},
        {"ZADD k NX XX 1 a 2", syntax},
        {"ZADD k NX CH", syntax},
        {"ZADD k 1 a NX", syntax},
        {"ZADD k 1 NX a 1", no_float},
    };
    zset_run(h, "ZADD k 5 a");
    zset_expect_each_unchanged(h, "k", rows);
    zset_expect(h, "DBSIZE", ":1");
}

ZSET_TEST(what_is_no_number_is_no_score) {
    static const char *const texts[] = {
        "x", "\"\"", "nan", "-nan", "\" 1\"", "\"1 \"", "0x10",      "1e", "--1",  "1,5",
        "+", ".",    "(1",  "(inf", "1e1e1",  "1_0",    "\"\\x00\"", "1x", "infx", "\"1\\x00\""};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        zset_expect_unchanged(h, "k", formatted("ZADD k %s a", texts[i]), no_float);
        zset_expect_unchanged(h, "k", formatted("ZADD k 1 b %s a", texts[i]), no_float);
        zset_expect_unchanged(h, "k", formatted("ZADD k INCR %s a", texts[i]), no_float);
        zset_expect_unchanged(h, "none", formatted("ZADD none XX %s a", texts[i]), no_float);
        zset_expect_unchanged(h, "k", formatted("ZINCRBY k %s a", texts[i]), no_float);
    }
}

ZSET_TEST(scores_are_exact_decimals) {
    static const char *const scores[][2] = {
        {"+3", "3"},
        {"3.0", "3"},
        {"1e6", "1000000"},
        {"-12e-1", "-1.2"},
        {".5", "0.5"},
        {"5.", "5"},
        {"-0", "0"},
        {"0.10", "0.1"},
        {"1E+2", "100"},
        {"0e999", "0"},
        {"100e-2", "1"},
        {"0000007", "7"},
        {"5497558138.87", "5497558138.87"},
        {"-5497558138.88", "-5497558138.88"},
    };
    for (size_t i = 0; i < COUNT_OF(scores); i++) {
        zset_run(h, "ZADD money:k %s a", scores[i][0]);
        zset_expect(h, "ZSCORE money:k a", scores[i][1]);
    }
    zset_expect(h, "ZADD fine:k 9223372036854775807 a -9223372036854775808 b 4.6E18 c", ":3");
    zset_expect(h, "ZRANGE fine:k 0 -1 WITHSCORES",
                "[b -9223372036854775808 c 4600000000000000000 a 9223372036854775807]");
    zset_expect(h, "ZADD wide:k 18446744073709551615 a", ":1");
    zset_expect(h, "ZSCORE wide:k a", "18446744073709551615");
}

#define MORE        " (round it, or more by SCALE in the layout)"
#define SCORE_RANGE " is out of range: field 'score' takes -4294967296..4294967295"

ZSET_TEST(values_outside_the_field_name_field_value_and_range) {
    static const char *const texts[] = {"4294967296", "-4294967297", "1e10",  "inf",
                                        "-inf",       "+Infinity",   "1e400", "-1e400"};
    static const char *const rows[][2] = {
        {"ZADD none INCR inf c", "-ERR value inf" SCORE_RANGE},
        {"ZADD laps:k -1 a", "-ERR value -1 is out of range: field 'ms' takes 0..4294967295"},
        {"ZADD money:k 5497558138.88 a",
         "-ERR value 5497558138.88 is out of range: field 'amount' takes "
         "-5497558138.88..5497558138.87"},
        {"ZADD fine:k 9223372036854775808 a",
         "-ERR value 9223372036854775808 is out of range: field 'score' takes "
         "-9223372036854775808..9223372036854775807"},
        {"ZADD k 1.5 a", "-ERR value 1.5 has too many decimals: field 'score' keeps 0" MORE},
        {"ZADD money:k 1 a 0.001 b",
         "-ERR value 0.001 has too many decimals: field 'amount' keeps 2" MORE},
        {"ZINCRBY money:k 1e-3 b",
         "-ERR value 1e-3 has too many decimals: field 'amount' keeps 2" MORE},
    };
    zset_expect(h, "ZADD k 1 a", ":1");
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char error[128];
        snprintf(error, sizeof(error), "-ERR value %s" SCORE_RANGE, texts[i]);
        zset_expect_unchanged(h, "k", formatted("ZADD k 9 a 9 b %s c", texts[i]), error);
        zset_expect_unchanged(h, "none", formatted("ZADD none %s c", texts[i]), error);
    }
    zset_expect_each_unchanged(h, "k", rows);
    assert_int_equal(registry_count(h->server.registry, 0), 1);
}

ZSET_TEST(zincrby_answers_the_exact_sum) {
    zset_expect(h, "ZINCRBY money:k 0.1 a", "0.1");
    zset_expect(h, "ZINCRBY money:k 0.2 a", "0.3");
    zset_expect(h, "ZINCRBY money:k -0.35 a", "-0.05");
    zset_expect(h, "ZADD fine:k 9007199254740992 a", ":1");
    zset_expect(h, "ZINCRBY fine:k 1 a", "9007199254740993");
    zset_expect(h, "ZINCRBY fine:k 9214364837600034814 a", "9223372036854775807");
    zset_expect(h, "ZINCRBY fine:k -18446744073709551615 a", "-9223372036854775808");
    zset_use_resp3(h);
    zset_expect(h, "ZINCRBY money:k 1 a", ",0.95");
}

ZSET_TEST(increments_past_the_range_name_field_value_and_range) {
    static const char *const rows[][2] = {
        {"ZINCRBY k 6 a", "-ERR value 4294967290 + 6" SCORE_RANGE},
        {"ZADD k INCR -8589934587 a", "-ERR value 4294967290 + -8589934587" SCORE_RANGE},
        {"ZINCRBY k 18446744073709551615 a",
         "-ERR value 4294967290 + 18446744073709551615" SCORE_RANGE},
        {"ZINCRBY k 1e20 a", "-ERR value 1e20" SCORE_RANGE},
        {"ZINCRBY laps:k -1 a",
         "-ERR value 0 + -1 is out of range: field 'ms' takes 0..4294967295"},
    };
    zset_expect(h, "ZADD k 4294967290 a", ":1");
    zset_expect_each_unchanged(h, "k", rows);
    zset_expect(h, "ZINCRBY k 5 a", "4294967295");
    zset_expect(h, "ZINCRBY k -8589934591 a", "-4294967296");
}

ZSET_TEST(a_write_by_score_leaves_the_other_fields) {
    zset_expect(h, "ZADD three:k 100 a 100 b", ":2");
    const struct layout *layout = board_layout(zset_board(h, "three:k"));
    assert_int_equal(layout_ordinal(layout, zset_packed(h, "three:k", "a"), 1), 0);
    /* 0 of a SIGNED field of 11 bits. */
    assert_int_equal(layout_ordinal(layout, zset_packed(h, "three:k", "a"), 2), 1024);
    zset_set_field(h, "three:k", "a", 1, 1);
    zset_set_field(h, "three:k", "a", 2, 7);
    zset_expect(h, "ZADD three:k 50 a", ":0");
    zset_expect(h, "ZINCRBY three:k 3 a", "53");
    assert_int_equal(layout_ordinal(layout, zset_packed(h, "three:k", "a"), 1), 1);
    assert_int_equal(layout_ordinal(layout, zset_packed(h, "three:k", "a"), 2), 7);
    assert_int_equal(layout_ordinal(layout, zset_packed(h, "three:k", "a"), 0), 53);
}

ZSET_TEST(the_reach_time_is_that_of_the_last_change) {
    zset_expect(h, "ZADD k 5 a", ":1");
    assert_int_equal(zset_time_ms(h, "k", "a"), START_MS);
    harness_pass_seconds(h, 10);
    zset_expect(h, "ZADD k 6 a", ":0");
    assert_int_equal(zset_time_ms(h, "k", "a"), START_MS + 10000);
    harness_pass_seconds(h, 10);
    zset_expect(h, "ZINCRBY k 1 a", "7");
    assert_int_equal(zset_time_ms(h, "k", "a"), START_MS + 20000);
}

ZSET_TEST(an_unchanged_score_keeps_its_time) {
    for (int i = 0; i < ZSET_LAYOUTS; i++) {
        const char *key = formatted("%sk", zset_layout_prefixes[i]);
        zset_run(h, "ZADD %s 5 a 5 b 4 c", key);
        harness_pass_seconds(h, 86400);
        zset_expect_unchanged(h, key, formatted("ZADD %s 5 a", key), ":0");
        zset_expect_unchanged(h, key, formatted("ZINCRBY %s 0 a", key), "5");
        zset_expect_unchanged(h, key, formatted("ZADD %s GT CH 4 a 5 b", key), ":0");
        zset_expect_unchanged(h, key, formatted("ZADD %s LT CH 6 a 5 b", key), ":0");
        zset_expect_unchanged(h, key, formatted("ZADD %s NX 9 a 9 b", key), ":0");
    }
}

ZSET_TEST(equal_scores_rank_by_arrival_inside_one_tick) {
    for (int i = 0; i < ZSET_LAYOUTS; i++) {
        bool is_latest = strcmp(zset_layout_prefixes[i], "latest:") == 0;
        bool is_ascending = strcmp(zset_layout_prefixes[i], "laps:") == 0;
        zset_run(h, "ZADD %sk 5 m 5 z 5 a", zset_layout_prefixes[i]);
        zset_run(h, "ZADD %sk 5 k", zset_layout_prefixes[i]);
        const char *best_first = is_latest ? "[k a z m]" : "[m z a k]";
        const char *worst_first = is_latest ? "[m z a k]" : "[k a z m]";
        zset_expect(h, formatted("ZREVRANGE %sk 0 -1", zset_layout_prefixes[i]),
                    is_ascending ? worst_first : best_first);
        zset_expect(h, formatted("ZRANGE %sk 0 -1", zset_layout_prefixes[i]),
                    is_ascending ? best_first : worst_first);
    }
}

ZSET_TEST(the_first_to_reach_a_score_ranks_first) {
    zset_expect(h, "ZADD k 5 late 7 early", ":2");
    harness_pass_seconds(h, 1);
    zset_expect(h, "ZADD k 9 early", ":0");
    harness_pass_seconds(h, 1);
    zset_expect(h, "ZINCRBY k 4 late", "9");
    zset_expect(h, "ZREVRANGE k 0 -1", "[early late]");
    zset_expect(h, "ZADD latest:k 9 early", ":1");
    harness_pass_seconds(h, 1);
    zset_expect(h, "ZADD latest:k 9 late", ":1");
    zset_expect(h, "ZREVRANGE latest:k 0 -1", "[late early]");
}

ZSET_TEST(a_clock_set_back_keeps_the_order_of_arrival) {
    zset_expect(h, "ZADD k 5 first", ":1");
    harness_pass_seconds(h, -3600);
    zset_expect(h, "ZADD k 5 second", ":1");
    harness_pass_seconds(h, -3600);
    zset_expect(h, "ZADD k 4 third", ":1");
    zset_expect(h, "ZADD k 5 third", ":0");
    zset_expect(h, "ZREVRANGE k 0 -1", "[first second third]");
    assert_int_equal(zset_time_ms(h, "k", "third"), START_MS);
}

ZSET_TEST(all_writes_of_one_command_carry_one_time) {
    h->wall_us += 123456;
    zset_expect(h, "ZADD latest:k 1 a 2 b 3 c 4 d 9 a", ":4");
    for (const char *member = "abcd"; *member != '\0'; member++) {
        char name[2] = {*member, '\0'};
        assert_int_equal(zset_time_ms(h, "latest:k", name), START_MS + 123);
    }
}

ZSET_TEST(a_time_outside_the_layout_is_an_error) {
    zset_expect_unchanged(h, "over:k", "ZADD over:k 1 a 2 b",
                          "-ERR time 2026-01-01T00:00:00Z is out of range: this layout's TIME "
                          "takes 2020-01-01T00:00:00Z..2020-01-01T00:17:03.999999Z");
    zset_expect_unchanged(h, "future:k", "ZINCRBY future:k 1 a",
                          "-ERR time 2026-01-01T00:00:00Z is out of range: this layout's TIME "
                          "takes 2030-01-01T00:00:00Z..2098-01-19T03:14:07.999999Z");
    /* Nothing is written: no time is needed. */
    zset_expect_unchanged(h, "over:k", "ZADD over:k XX 1 a", ":0");
}

ZSET_TEST(a_board_that_outlives_its_time_takes_no_change) {
    harness_set_clock(h, INT64_C(1577836800000000)); /* 2020-01-01 */
    zset_expect(h, "ZADD over:k 1 a 2 b", ":2");
    harness_pass_seconds(h, 1024);
    zset_expect_unchanged(h, "over:k", "ZADD over:k 1 a 3 b 4 c",
                          "-ERR time 2020-01-01T00:17:04Z is out of range: this layout's TIME "
                          "takes 2020-01-01T00:00:00Z..2020-01-01T00:17:03.999999Z");
    zset_expect_unchanged(h, "over:k", "ZADD over:k 1 a 2 b", ":0");
    zset_expect_unchanged(h, "over:k", "ZINCRBY over:k 0 b", "2");
    zset_expect(h, "ZREM over:k a", ":1");
}

ZSET_TEST(an_error_leaves_no_key_behind) {
    zset_expect(h, "ZADD k 1 a x b", no_float);
    zset_expect(h, "ZADD k XX 1 a", ":0");
    zset_expect(h, "ZADD k 1 a 99999999999 b", "-ERR value 99999999999" SCORE_RANGE);
    zset_expect(h, "ZINCRBY k 99999999999 b", "-ERR value 0 + 99999999999" SCORE_RANGE);
    assert_int_equal(registry_count(h->server.registry, 0), 0);
}

static const char *run_sized(struct harness *h, const char *command, size_t key_size,
                             size_t member_size) {
    static char bytes[65537];
    memset(bytes, 'x', sizeof(bytes));
    const struct bytes args[] = {bytes_from_text(command),
                                 {.at = bytes, .size = key_size},
                                 BYTES("1"),
                                 {.at = bytes, .size = member_size}};
    return harness_run_args(h, h->server.sessions.first, args, 4);
}

ZSET_TEST(keys_and_members_have_1_to_65536_bytes) {
    static const char *const commands[] = {"ZADD", "ZINCRBY", "LB.ADD"};
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        for (size_t size = 0; size <= 65537; size += 65537) {
            static const char wrong[] = "-ERR %s is %zu bytes long: 1..65536 are allowed\r\n";
            assert_string_equal(run_sized(h, commands[i], 1, size),
                                formatted(wrong, "member", size));
            assert_string_equal(run_sized(h, commands[i], size, 1), formatted(wrong, "key", size));
        }
    }
    assert_int_equal(registry_count(h->server.registry, 0), 0);
    assert_string_equal(run_sized(h, "ZADD", 65536, 65536), ":1\r\n");
    assert_string_equal(run_sized(h, "ZINCRBY", 65536, 65536), "$1\r\n2\r\n");
    assert_string_equal(run_sized(h, "LB.ADD", 65536, 1), ":1\r\n");
    zset_expect_unchanged(h, "k", "ZADD k 1 a 2 \"\"",
                          "-ERR member is 0 bytes long: 1..65536 are allowed");
}

ZSET_TEST(members_and_keys_are_any_bytes) {
    zset_expect(h, "ZADD \"k\\x00\\r\\n\" 1 \"a\\x00b\" 2 \"\\r\\n\" 3 \"\\xff\"", ":3");
    zset_expect(h, "ZSCORE \"k\\x00\\r\\n\" \"a\\x00b\"", "1");
    zset_expect(h, "ZSCORE \"k\\x00\\r\\n\" a", "nil");
    assert_string_equal(
        harness_run(h, h->server.sessions.first, "ZRANGE \"k\\x00\\r\\n\" 1 -1 WITHSCORES"),
        "*4\r\n$2\r\n\r\n\r\n$1\r\n2\r\n$1\r\n\xff\r\n$1\r\n3\r\n");
}

ZSET_TEST(errors_show_a_clients_text_without_line_ends) {
    zset_expect(h, "ZADD k 1e99 a", "-ERR value 1e99" SCORE_RANGE);
    char digits[401];
    memset(digits, '9', 400);
    digits[400] = '\0';
    const char *answered = zset_run(h, "ZADD k %s a", digits);
    assert_non_null(strstr(answered, "9... is out of range: field 'score' takes"));
    assert_in_range(strlen(answered), 100, 200);
    assert_string_equal(zset_run(h, "ZADD k 1\\r\\n a"), "-ERR value is not a valid float");
    assert_string_equal(zset_run(h, "ZADD k \"1\\r\\n\" a"), "-ERR value is not a valid float");
}

ZSET_TEST(many_pairs_are_one_change) {
    enum { PAIRS = 500 };
    static char line[PAIRS * 16];
    size_t size = (size_t)snprintf(line, sizeof(line), "ZADD k");
    for (int i = 0; i < PAIRS; i++) {
        size += (size_t)snprintf(line + size, sizeof(line) - size, " %d m%d", i, i);
    }
    zset_expect_unchanged(h, "k", strcat(line, " x last"), no_float);
    line[size] = '\0';
    zset_expect(h, line, ":500");
    zset_expect(h, "ZRANGE k 498 -1 WITHSCORES", "[m498 498 m499 499]");
    zset_expect_unchanged(h, "k", line, ":0");
}
