/* ZRANGE, ZREVRANGE, ZRANGEBYSCORE and ZREVRANGEBYSCORE, sentence by sentence; and what is not
 * there, the BYLEX forms. Random indexes and limits: tests/integration/twin.c and differential.c. */
#include "tests/server/zset_fixture.h"

static const char syntax[] = "-ERR syntax error";
static const char no_integer[] = "-ERR value is not an integer or out of range";
static const char no_limit[] = "-ERR min or max is not a float";
static const char limit_alone[] = "-ERR syntax error, LIMIT is only supported in combination with "
                                  "either BYSCORE or BYLEX";

/* As Redis 7 reads them, by strtod. */
ZSET_TEST(limits_may_be_empty_hexadecimal_or_have_spaces_in_front) {
    zset_run(h, "ZADD k -1 m 0 zero 1 one 2 two 16 sixteen");
    zset_expect(h, "ZCOUNT k \"\" +inf", ":4");
    zset_expect(h, "ZCOUNT k ( +inf", ":3");
    zset_expect(h, "ZRANGEBYSCORE k \" 1\" 0x10", "[one two sixteen]");
    zset_expect(h, "ZREVRANGEBYSCORE k 0xf \"( 0x1\"", "[two]");
    zset_expect(h, "ZRANGE k -0x1 (0x0p3 BYSCORE", "[m]");
    zset_expect(h, "LB.RANGE k \"\" ( BYSCORE", "[]");
    static const char *const refused[] = {"\" \"", "\"1 \"", "0x", "\" (1\"", "-", "0x1p"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        zset_expect(h, formatted("ZCOUNT k %s 5", refused[i]), no_limit);
    }
}

/* PHP's clients send doubles so. */
ZSET_TEST(doubles_of_seventeen_digits_are_their_shortest_decimals) {
    zset_expect(h, "LB.CREATE money FIELD score 40 SIGNED SCALE 2", "+OK");
    zset_expect(h, "ZADD money 0.10000000000000001 a -8.1400000000000006 b", ":2");
    zset_expect(h, "ZINCRBY money 0.20000000000000001 a", "0.3");
    zset_expect(h, "LB.ADD money INCR -0.10000000000000001 b", ":1");
    zset_expect(h, "ZSCORE money b", "-8.24");
    zset_expect(h, "ZCOUNT money 0.29999999999999999 0.29999999999999999", ":1");
    zset_expect(h, "ZRANGEBYSCORE money (0.29999999999999999 +inf", "[]");
    zset_expect(h, "ZUNION 1 money WEIGHTS 0.10000000000000001 WITHSCORES", "[b -0.824 a 0.03]");
    zset_expect(h, "ZADD money 0.10000000000000002 a",
                "-ERR value 0.10000000000000002 has too many decimals: field 'score' keeps 2 "
                "(round it, or more "
                "by SCALE in the layout)");
}

ZSET_TEST(zrange_goes_up_and_zrevrange_down_and_the_best_may_be_at_either_end) {
    static const char *const rows[][2] = {
        {"ZREVRANGE k 0 -1", "[best first second third]"},
        {"ZRANGE k 0 -1", "[third second first best]"},
        {"ZRANGE k 0 -1 REV", "[best first second third]"},
        {"ZRANGEBYSCORE k -inf +inf", "[third second first best]"},
        {"ZREVRANGEBYSCORE k (9 5", "[first second third]"},
        {"ZRANGE k 9 (5 BYSCORE REV", "[best]"},
        {"ZRANGE laps:k 0 -1", "[best first second third]"},
        {"ZREVRANGE laps:k 0 -1", "[third second first best]"},
        {"ZRANGEBYSCORE laps:k 5 5 LIMIT 0 2", "[first second]"},
        {"ZREVRANGEBYSCORE laps:k 5 5 LIMIT 0 2", "[third second]"},
        {"ZRANGE laps:k 9 5 BYSCORE REV LIMIT 1 1", "[second]"},
        {"ZRANGE k x 3 BYSCORE", no_limit},
        {"ZREVRANGEBYSCORE none 3 x", no_limit},
        {"ZRANGE k 0 x", no_integer},
        {"ZRANGEBYSCORE none 0 1 LIMIT x 1", no_integer},
    };
    zset_run(h, "ZADD k 5 first 5 second 9 best 5 third");
    zset_run(h, "ZADD laps:k 5 first 5 second 2 best 5 third");
    zset_expect_each(h, rows);
}

ZSET_TEST(indexes_and_limits_of_any_size_are_cut_to_the_board) {
    static const char *const rows[][2] = {
        {"ZRANGE k -100 1", "[a b]"},
        {"ZRANGE k -9223372036854775808 9223372036854775807", "[a b c d e]"},
        {"ZRANGE k 9223372036854775807 -9223372036854775808", "[]"},
        {"ZRANGE k 4611686018427387903 -1", "[]"},
        {"ZRANGE k -1 4611686018427387903", "[e]"},
        {"ZRANGE k 0 4294967296", "[a b c d e]"},
        {"ZRANGE k 4294967295 4294967296", "[]"},
        {"ZRANGE k -4294967296 0", "[a]"},
        {"ZREVRANGE none -9223372036854775808 9223372036854775807", "[]"},
        {"ZRANGEBYSCORE k 1 3 LIMIT 0 -9223372036854775808", "[b c d]"},
        {"ZREVRANGEBYSCORE k 3 1 LIMIT 2 9223372036854775807", "[b]"},
        {"ZRANGEBYSCORE k 1 3 LIMIT -9223372036854775808 -1", "[]"},
        {"ZRANGE k 3 1 REV LIMIT 4611686018427387903 1 BYSCORE", "[]"},
        {"ZRANGEBYSCORE k 1 3 LIMIT 4294967296 1", "[]"},
        {"ZRANGEBYSCORE k 1 3 LIMIT 0 4294967296", "[b c d]"},
        {"ZRANGEBYSCORE k 0 4 LIMIT 0 1 LIMIT 1 2", "[b c]"},
    };
    zset_run(h, "ZADD k 0 a 1 b 2 c 3 d 4 e");
    zset_expect_each(h, rows);
}

ZSET_TEST(what_is_no_integer_is_no_index) {
    static const char *const lines[][2] = {
        {"ZRANGE k ", " 1"},
        {"ZREVRANGE none 0 ", ""},
        {"ZRANGEBYSCORE k 0 1 LIMIT ", " 1"},
        {"ZRANGE k 0 1 BYSCORE LIMIT 0 ", ""},
    };
    static const char *const texts[] = {
        "\"\"", "+1", "01", "-0", "\" 1\"", "1.0", "1e3", "inf", "9223372036854775808"};
    zset_run(h, "ZADD k 0 a");
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        for (size_t j = 0; j < COUNT_OF(lines); j++) {
            zset_expect(h, formatted("%s%s%s", lines[j][0], texts[i], lines[j][1]), no_integer);
        }
    }
}

ZSET_TEST(withscores_is_flat_in_resp2_and_pairs_in_resp3) {
    zset_run(h, "ZADD money:k 1.5 a -2 b");
    static const char *const lines[] = {
        "ZRANGE money:k 0 -1 WITHSCORES", "ZRANGE money:k -inf inf BYSCORE withscores",
        "ZRANGEBYSCORE money:k -5 5 WITHSCORES", "ZRANGEBYSCORE money:k -5 5 LIMIT 0 9 WITHSCORES",
        "ZRANGEBYSCORE money:k -5 5 WITHSCORES LIMIT 0 9"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect(h, lines[i], "[b -2 a 1.5]");
    }
    zset_expect(h, "ZREVRANGE money:k 0 -1 WITHSCORES", "[a 1.5 b -2]");
    zset_use_resp3(h);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect(h, lines[i], "[[b ,-2] [a ,1.5]]");
    }
    zset_expect(h, "ZREVRANGEBYSCORE money:k 9 -9 WITHSCORES", "[[a ,1.5] [b ,-2]]");
    zset_expect(h, "ZREVRANGE none 0 -1 WITHSCORES", "[]");
}

ZSET_TEST(limit_needs_byscore_unless_its_count_is_minus_one) {
    zset_run(h, "ZADD k 1 a 2 b");
    zset_expect(h, "ZRANGE k 0 -1 LIMIT 0 1", limit_alone);
    zset_expect(h, "ZREVRANGE k 0 -1 LIMIT 0 1", limit_alone);
    zset_expect(h, "ZRANGE none x y LIMIT 0 1", limit_alone);
    zset_expect(h, "ZRANGE k 0 -1 LIMIT 0 -2", limit_alone);
    zset_expect(h, "ZRANGE k 0 -1 LIMIT 5 -1", "[a b]");
    zset_expect(h, "ZREVRANGE k 0 -1 LIMIT 0 -1", "[b a]");
}

ZSET_TEST(other_words_are_a_syntax_error) {
    zset_run(h, "ZADD k 1 a 2 b");
    static const char *const lines[] = {
        "ZRANGE k 0 -1 FOO",
        "ZRANGE k 0 -1 \"\"",
        "ZRANGE k 0 -1 REV REV",
        "ZRANGE k 0 -1 BYSCORE BYSCORE",
        "ZRANGE k 0 -1 BYLEX BYSCORE",
        "ZRANGE k 0 -1 BYSCORE BYLEX",
        "ZRANGE k 0 -1 BYSCORE LIMIT",
        "ZRANGE k 0 -1 BYSCORE LIMIT 0",
        "ZRANGE k x y FOO",
        "ZREVRANGE k 0 -1 REV",
        "ZREVRANGE k 0 -1 BYSCORE",
        "ZREVRANGE k 0 -1 BYLEX",
        "ZRANGEBYSCORE k 0 1 REV",
        "ZRANGEBYSCORE k 0 1 BYSCORE",
        "ZRANGEBYSCORE k 0 1 LIMIT 1",
        "ZREVRANGEBYSCORE k 1 0 BYLEX",
        "ZREVRANGEBYSCORE k 1 0 WITHSCORE",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect(h, lines[i], syntax);
    }
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES WITHSCORES", "[a 1 b 2]");
    zset_expect(h, "ZRANGE k 0 1 LIMIT 0 x FOO", no_integer);
}

#define NO_LEX(what)                                                                               \
    "-ERR " what " is not supported: equal scores are ordered by time, never by name"

ZSET_TEST(bylex_forms_answer_why) {
    static const char *const rows[][2] = {
        {"ZLEXCOUNT k - +", NO_LEX("ZLEXCOUNT")},
        {"zrangebylex k [a [c LIMIT 0 1", NO_LEX("ZRANGEBYLEX")},
        {"ZREVRANGEBYLEX k + -", NO_LEX("ZREVRANGEBYLEX")},
        {"ZREMRANGEBYLEX k - +", NO_LEX("ZREMRANGEBYLEX")},
        {"ZRANGE k - + BYLEX", NO_LEX("BYLEX")},
        {"ZRANGE k + - BYLEX REV LIMIT 0 -1", NO_LEX("BYLEX")},
        {"ZRANGE k - + BYLEX WITHSCORES",
         "-ERR syntax error, WITHSCORES not supported in combination with BYLEX"},
    };
    zset_run(h, "ZADD k 0 a 0 b 0 c");
    zset_expect_each_unchanged(h, "k", rows);
}

ZSET_TEST(a_long_range_comes_whole) {
    enum { MEMBERS = 5000 };
    for (int i = 0; i < MEMBERS; i++) {
        zset_run(h, "ZADD k %d member:%04d", i * 7919 % MEMBERS, i * 7919 % MEMBERS);
    }
    struct zset_line expected = {0};
    zset_line_add(&expected, "[", 1);
    for (int i = 0; i < MEMBERS; i++) {
        char text[64];
        int size = snprintf(text, sizeof(text), "%smember:%04d %d", i > 0 ? " " : "", i, i);
        zset_line_add(&expected, text, (size_t)size);
    }
    zset_line_add(&expected, "]", 1);
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", expected.text);
    zset_expect(h, "ZRANGE k -inf inf BYSCORE WITHSCORES", expected.text);
    zset_expect(h, "ZREVRANGEBYSCORE k 2502 2500 LIMIT 1 2", "[member:2501 member:2500]");
    zset_expect(h, "ZREVRANGE k 4998 -1", "[member:0001 member:0000]");
    free(expected.text);
}

/* Those that members and scores of every size are written with differ. */
enum { EDGE_SCORES = 33 };

static int64_t edge_score(int number) {
    static const int64_t powers[] = {0,       10,       100,       1000,       10000,     100000,
                                     1000000, 10000000, 100000000, 1000000000, 4000000000};
    return powers[number / 3] + number % 3 - (number < 3 ? 0 : 1);
}

static const char *edge_name(int number) {
    static const int sizes[] = {2,  3,  4,  7,  8,  9,  15,  16,  17,  31, 32,
                                33, 48, 63, 64, 65, 99, 100, 254, 255, 300};
    return formatted("%0*d", sizes[number % (int)(sizeof sizes / sizeof *sizes)], number);
}

static void add_edge(struct buffer *out, int number, bool is_resp3) {
    char score[24];
    const char *name = edge_name(number);
    snprintf(score, sizeof score, "%" PRId64, edge_score(number));
    buffer_append_text(out, is_resp3 ? "*2\r\n" : "");
    buffer_append_text(out, formatted("$%zu\r\n", strlen(name)));
    buffer_append_text(out, edge_name(number));
    buffer_append_text(out, is_resp3 ? "\r\n," : formatted("\r\n$%zu\r\n", strlen(score)));
    buffer_append_text(out, score);
    buffer_append_text(out, "\r\n");
}

ZSET_TEST(members_and_scores_of_every_size_come_in_either_direction) {
    static const char *const keys[] = {"k", "laps:k", "wide:k", "fine:k"};
    struct session *session = h->server.sessions.first;
    for (int number = 0; number < EDGE_SCORES; number++) {
        for (int key = 0; key < 4; key++) {
            const char *name = edge_name(number);
            zset_run(h, "ZADD %s %" PRId64 " %s", keys[key], edge_score(number), name);
        }
    }
    for (int version = 2; version <= 3; version++) {
        harness_run(h, session, version == 3 ? "HELLO 3" : "HELLO 2");
        for (int is_reverse = 0; is_reverse < 2; is_reverse++) {
            BUFFER(expected, 0);
            buffer_append_text(&expected, formatted("*%d\r\n", EDGE_SCORES * (4 - version)));
            for (int i = 0; i < EDGE_SCORES; i++) {
                add_edge(&expected, is_reverse ? EDGE_SCORES - 1 - i : i, version == 3);
            }
            buffer_append(&expected, "", 1);
            for (int key = 0; key < 4; key++) {
                const char *line = formatted("%s %s 0 -1 WITHSCORES",
                                             is_reverse ? "ZREVRANGE" : "ZRANGE", keys[key]);
                assert_string_equal(harness_run(h, session, line), expected.at);
            }
        }
    }
}

enum { MIXED_NAMES = 400, MIXED_PACKED = 300 };

/* In runs of one kind and in none; every eleventh is not packed, and none of the last: runs of one size. Some are letters. */
static const char *mixed_name(int i, char text[NAME_TEXT_ROOM]) {
    unsigned kind = (unsigned)(i / 60 * 7 + (i % 60 < 30 ? i / 5 : i)) % PACKED_KINDS;
    if (i >= MIXED_PACKED) {
        return formatted("%0*d~", 15 + i / 6 % 18, i);
    }
    if (i % 11 == 10) {
        return formatted("%.*s%d", i % 80,
                         "not packed: whatever it is, it is longer than most, "
                         "and some are not short at all",
                         i);
    }
    if (i % 11 == 3 || (i >= 200 && i < 260)) { /* of 3 to 40 letters before an ending, or an end */
        return formatted("%.*s%d%s", 2 + i * 5 % 36, "letters.of.any.count+before:an(ending)", i,
                         i % 7 == 0 ? "" : "@gmail.com");
    }
    struct bytes name = packed_kind_text(kind, (uint32_t)i * 7, text);
    return formatted("%.*s", (int)name.size, name.at);
}

/* Whatever their neighbours are, with scores of one digit to nine. */
ZSET_TEST(names_of_any_kinds_beside_each_other_are_written_in_both_directions) {
    struct session *session = h->server.sessions.first;
    char text[NAME_TEXT_ROOM];
    for (int i = 0; i < MIXED_NAMES; i++) {
        zset_expect(h, formatted("ZADD k1 %d \"%s\"", i, mixed_name(i, text)), ":1");
        zset_expect(h, formatted("ZADD k2000017 %d \"%s\"", i * 2000017, mixed_name(i, text)),
                    ":1");
    }
    for (int form = 0; form < 16; form++) {
        bool is_reverse = form % 2 == 1;
        bool with_scores = form / 2 % 2 == 1;
        int version = 2 + form / 4 % 2;
        int factor = form / 8 == 0 ? 1 : 2000017;
        BUFFER(expected, 0);
        harness_run(h, session, version == 3 ? "HELLO 3" : "HELLO 2");
        buffer_append_text(
            &expected, formatted("*%d\r\n", MIXED_NAMES * (with_scores && version == 2 ? 2 : 1)));
        for (int n = 0; n < MIXED_NAMES; n++) {
            int i = is_reverse ? MIXED_NAMES - 1 - n : n;
            const char *name = mixed_name(i, text);
            buffer_append_text(&expected, with_scores && version == 3 ? "*2\r\n" : "");
            buffer_append_text(&expected, formatted("$%zu\r\n%s\r\n", strlen(name), name));
            if (with_scores) {
                const char *score = formatted("%d", i * factor);
                buffer_append_text(
                    &expected, version == 3 ? formatted(",%s\r\n", score)
                                            : formatted("$%zu\r\n%s\r\n", strlen(score), score));
            }
        }
        buffer_append(&expected, "", 1);
        const char *line = formatted("%s k%d 0 -1%s", is_reverse ? "ZREVRANGE" : "ZRANGE", factor,
                                     with_scores ? " WITHSCORES" : "");
        assert_string_equal(harness_run(h, session, line), expected.at);
    }
}

ZSET_TEST(a_silent_client_gets_nothing) {
    zset_run(h, "ZADD k 1 a 2 b");
    h->server.sessions.first->reply_mode = SESSION_REPLY_OFF;
    assert_string_equal(harness_run(h, h->server.sessions.first, "ZRANGE k 0 -1 WITHSCORES"), "");
    assert_string_equal(harness_run(h, h->server.sessions.first, "ZRANDMEMBER k -4000000000"), "");
    assert_string_equal(harness_run(h, h->server.sessions.first, "ZSCAN k 0"), "");
    assert_string_equal(harness_run(h, h->server.sessions.first, "ZPOPMIN k"), "");
    h->server.sessions.first->reply_mode = SESSION_REPLY_ON;
    zset_expect(h, "ZRANGE k 0 -1", "[b]");
}
