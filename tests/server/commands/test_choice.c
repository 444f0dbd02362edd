/* Which of the default layouts a new board gets: the first that takes what makes the board. */
#include "tests/server/zset_fixture.h"

#define DEFAULT  "FIELD score 33 SIGNED TIME 31 S"
#define DECIMALS "FIELD score 64 SIGNED SCALE 7 DOUBLE"
#define INT64    "FIELD score 64 SIGNED"
#define TOO_FINE                                                                                   \
    " has too many decimals: field 'score' keeps 0 (round it, or more by SCALE in the layout); "   \
    "LB.CREATE key "                                                                               \
    "LAYOUT decimals takes it"

/* A server whose settings say nothing of layouts. */
#define CHOICE_TEST(name)                                                                          \
    HARNESS_TEST(name, "layout money FIELD balance 40 SCALE 2\nboard money:* money\n"              \
                       "board open:* default CAP 2\nboard hourly:* default PERIOD HOUR\n")

static void expect_layout(struct harness *h, const char *name, const char *layout) {
    char text[LAYOUT_TEXT_MAX];
    text[layout_print(board_layout(zset_board(h, name)), text)] = '\0';
    assert_string_equal(text, layout);
}

/* command makes a board k, whose layout this is. */
static void expect_chosen(struct harness *h, const char *command, const char *layout) {
    zset_expect(h, "DEL k", zset_board(h, "k") != NULL ? ":1" : ":0");
    zset_run(h, "%s", command);
    expect_layout(h, "k", layout);
}

CHOICE_TEST(a_board_gets_the_first_default_layout_that_takes_its_first_score) {
    static const char *const rows[][2] = {
        {"ZADD k 5 a", DEFAULT},
        {"ZADD k 4294967295 a", DEFAULT},
        {"ZADD k -4294967296 a", DEFAULT},
        {"ZADD k 5.0 a", DEFAULT},
        {"ZADD k 50.5 a", DECIMALS},
        {"ZADD k 1767225600.1234567 a", DECIMALS},
        {"ZADD k 4294967296 a", DECIMALS},
        {"ZADD k 1767225600123 a", INT64},
        {"ZADD k 1.767225600123E12 a", INT64},
        {"ZADD k 9223372036854775807 a", INT64},
        {"ZADD k NX CH 50.5 a", DECIMALS},
        {"ZADD k INCR 50.5 a", DECIMALS},
        {"ZINCRBY k 1767225600123 a", INT64},
        {"LB.ADD k 50.5 a", DECIMALS},
        {"LB.ADD k INCR =50.5 a", DECIMALS},
        {"LB.ADD k WITHRANK * a 1767225600123 b", INT64},
        {"LB.SUBMIT 1 k 50.5 a", DECIMALS},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        expect_chosen(h, rows[i][0], rows[i][1]);
    }
}

CHOICE_TEST(all_scores_of_the_command_that_makes_a_board_fit_its_layout) {
    expect_chosen(h, "ZADD k 5 a 50.5 b 7 c", DECIMALS);
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", "[a 5 c 7 b 50.5]");
    expect_chosen(h, "ZADD k 5 a 1767225600123 b", INT64);
    zset_expect(h, "DEL k", ":1");
    zset_expect(h, "ZADD k 0.5 a 1767225600123 b",
                "-ERR value 1767225600123 is out of range: field 'score' takes "
                "-922337203685.4775808..922337203685.4775807; LB.CREATE key LAYOUT int64 takes it");
    zset_expect(h, "EXISTS k", ":0");
}

CHOICE_TEST(what_fits_none_is_refused_in_the_words_of_the_layout_that_says_most) {
    static const char *const rows[][2] = {
        {"ZADD k 0.30000000000000004 a",
         "-ERR value 0.30000000000000004 has too many decimals: "
         "field 'score' keeps 7 (round it, or more by SCALE in the layout)"},
        {"ZADD k 1e19 a", "-ERR value 1e19 is out of range: field 'score' takes "
                          "-9223372036854775808..9223372036854775807"},
        {"ZADD k inf a", "-ERR value inf is out of range: field 'score' takes "
                         "-9223372036854775808..9223372036854775807"},
        {"ZADD k 1767225600123.5 a",
         "-ERR value 1767225600123.5 is out of range: field 'score' takes "
         "-922337203685.4775808..922337203685.4775807; LB.CREATE key LAYOUT milliseconds takes it"},
        {"ZADD k 1 a x b", "-ERR value is not a valid float"},
        {"ZADD k x b", "-ERR value is not a valid float"},
    };
    zset_expect_each(h, rows);
    zset_expect(h, "DBSIZE", ":0");
}

CHOICE_TEST(a_later_score_that_does_not_fit_is_refused_and_the_error_names_a_layout_that_takes_it) {
    zset_expect(h, "ZADD k 50 a", ":1");
    zset_expect_unchanged(h, "k", "ZADD k 50.5 b", "-ERR value 50.5" TOO_FINE);
    zset_expect_unchanged(h, "k", "ZADD k 1767225600123 b",
                          "-ERR value 1767225600123 is out of range: field 'score' takes "
                          "-4294967296..4294967295; LB.CREATE key LAYOUT int64 takes it");
    zset_expect(h, "LB.CREATE new LAYOUT decimals", "+OK");
    zset_expect(h, "ZADD new 50.5 b", ":1");
    /* Of a layout that a line gave there is no more to say. */
    zset_expect(h, "ZADD money:k 1.234 a",
                "-ERR value 1.234 has too many decimals: field 'balance' keeps 2 (round it, or "
                "more by SCALE in "
                "the layout)");
}

CHOICE_TEST(a_board_line_leaves_no_choice) {
    zset_expect(h, "ZADD money:k 1.25 a", ":1");
    expect_layout(h, "money:k", "FIELD balance 40 SCALE 2");
    zset_expect(h, "ZADD open:k 1.25 a", "-ERR value 1.25" TOO_FINE);
    zset_expect(h, "ZADD open:k 3 a 2 b 1 c", ":2");
}

CHOICE_TEST(what_makes_a_board_without_a_score_gives_it_the_first_layout) {
    zset_expect(h, "LB.CREATE k", "+OK");
    expect_layout(h, "k", DEFAULT);
    zset_expect(h, "ZADD k 50.5 a", "-ERR value 50.5" TOO_FINE);
    zset_expect(h, "LB.ADD packed PACKED 12345678901 a", ":1");
    expect_layout(h, "packed", DEFAULT);
    zset_expect(h, "LB.ADD at AT 1767225600000 50.5 a", "-ERR value 50.5" TOO_FINE);
    zset_expect(h, "CONFIG SET default-layout \"decimals default\"", "+OK");
    zset_expect(h, "LB.ADD at AT 1767225600000 50 a",
                "-ERR AT is not allowed: this layout has no TIME");
    zset_expect(h, "EXISTS at", ":0");
}

CHOICE_TEST(a_board_that_is_stored_gets_the_first_layout_that_takes_all_of_it) {
    zset_run(h, "ZADD a 1 x 2 y");
    zset_run(h, "ZADD b 0.5 x");
    zset_run(h, "ZADD ms 1767225600123 x");
    zset_expect(h, "ZUNIONSTORE k 1 a", ":2");
    expect_layout(h, "k", DEFAULT);
    zset_expect(h, "ZUNIONSTORE k 2 a b", ":2");
    expect_layout(h, "k", DECIMALS);
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", "[x 1.5 y 2]");
    zset_expect(h, "ZUNIONSTORE k 2 b b", ":1");
    expect_layout(h, "k", DEFAULT);
    zset_expect(h, "ZINTERSTORE k 2 a ms", ":1");
    expect_layout(h, "k", INT64);
    zset_expect(h, "ZDIFFSTORE k 2 b ms", ":0");
    zset_expect(h, "ZRANGESTORE k b 0 -1", ":1");
    expect_layout(h, "k", DECIMALS);
    zset_expect(h, "ZUNIONSTORE k 2 b ms",
                "-ERR member 'x': value 1767225600123.5 is out of range: field 'score' takes "
                "-922337203685.4775808..922337203685.4775807");
    zset_expect(h, "ZSCORE k x", "0.5");
    zset_expect(h, "ZUNIONSTORE money:k 1 b", ":1");
    expect_layout(h, "money:k", "FIELD balance 40 SCALE 2");
    /* A board of LB.CREATE keeps its layout. */
    zset_expect(h, "LB.CREATE kept", "+OK");
    zset_expect(h, "ZUNIONSTORE kept 1 b",
                "-ERR member 'x': value 0.5 has too many decimals: field 'score' keeps 0 (round "
                "it, or more by "
                "SCALE in the layout)");
}

/* What npm's limiters with sliding windows send, in a transaction: the layout is chosen, and no error is
 * overlooked. */
CHOICE_TEST(a_limiter_that_sends_milliseconds_in_a_transaction_counts_and_refuses) {
    int64_t now_ms = INT64_C(1767225600123);
    for (int i = 1; i <= 8; i++, now_ms += 250) {
        zset_expect(h, "MULTI", "+OK");
        zset_expect(h, formatted("ZREMRANGEBYSCORE limit:ann 0 %lld", (long long)now_ms - 1000),
                    "+QUEUED");
        zset_expect(h, formatted("ZADD limit:ann %lld %lld", (long long)now_ms, (long long)now_ms),
                    "+QUEUED");
        zset_expect(h, "ZCARD limit:ann", "+QUEUED");
        zset_expect(h, "PEXPIRE limit:ann 1000", "+QUEUED");
        /* The requests of the last second count, the one a second ago no more. */
        zset_expect(h, "EXEC", formatted("[:%d :1 :%d :1]", i > 4 ? 1 : 0, i < 4 ? i : 4));
    }
    zset_expect(h, formatted("ZRANGEBYSCORE limit:ann (%lld +inf", (long long)now_ms - 500),
                formatted("[%lld]", (long long)now_ms - 250));
    expect_layout(h, "limit:ann", INT64);
}

CHOICE_TEST(one_default_layout_leaves_no_choice_and_many_are_tried_in_order) {
    zset_expect(h, "CONFIG SET default-layout default", "+OK");
    zset_expect(h, "ZADD k 50.5 a",
                "-ERR value 50.5 has too many decimals: field 'score' keeps 0 (round it, or more "
                "by SCALE in "
                "the layout)");
    shadow_end(h->shadow); /* its settings are given when it is loaded */
    zset_expect(h, "CONFIG SET default-layout \"money milliseconds\"", "+OK");
    expect_chosen(h, "ZADD k 50.5 a", "FIELD balance 40 SCALE 2");
    expect_chosen(h, "ZADD k -50.5 a", "FIELD score 64 ASC SIGNED SCALE 4 DOUBLE");
    zset_expect(h, "CONFIG GET default-layout", "[default-layout money milliseconds]");
}

CHOICE_TEST(a_board_whose_line_has_a_period_has_no_choice) {
    zset_expect(h, "ZADD hourly:1 50.5 a", "-ERR value 50.5" TOO_FINE);
    zset_expect(h, "EXISTS hourly:1", ":0");
}

/* Its options are the league's, not the configuration's. */
HARNESS_TEST(a_room_of_a_league_has_no_choice, NULL) {
    zset_expect(h,
                "LB.LEAGUE CREATE lg FIELD a 8 TIME 40 MS PERIOD WEEK ROOM 9 TIERS 3 UP 1 DOWN 1",
                "+OK");
    zset_expect(h, "LB.LEAGUE ADD lg 300 ann",
                "-ERR value 300 is out of range: field 'a' takes 0..255");
    zset_expect(h, "ZCARD lg", ":0");
}
