/* ZMOVE, BZMOVE and ZMOVEMEMBER. */
#include "server/dispatch/waiting.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"

#define SYNTAX     "-ERR syntax error"
#define WRONG_TYPE "-WRONGTYPE Operation against a key holding the wrong kind of value"
#define BAD_COUNT  "-ERR count should be greater than 0"

ZSET_TEST(members_of_either_end_or_of_scores_go_to_another_board) {
    static const char *const rows[][2] = {
        {"ZMOVE a b MIN", "[u]"},
        {"ZMOVE a b max COUNT 2", "[z y]"},
        {"ZRANGE b 0 -1 WITHSCORES", "[u 1 y 5 z 6]"},
        {"ZMOVE a b BYSCORE (2 4 COUNT 1", "[w]"},
        {"ZMOVE a b BYSCORE 7 9", "nil*"},
        {"ZMOVE a b BYSCORE -inf +inf", "[v x]"},
        {"EXISTS a", ":0"},
        {"ZMOVE a b MIN", "nil*"},
        {"ZRANGE b 0 -1 WITHSCORES", "[u 1 v 2 w 3 x 4 y 5 z 6]"},
        {"ZMOVE b a MAX COUNT 99", "[z y x w v u]"},
        {"EXISTS b", ":0"},
        {"ZMOVE a a MIN COUNT 3", "nil*"},
        {"ZCARD a", ":6"},
    };
    zset_run(h, "ZADD a 1 u 2 v 3 w 4 x 5 y 6 z");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i][0], rows[i][1]);
    }
}

ZSET_TEST(members_named_go_in_the_order_of_their_names) {
    static const char *const rows[][2] = {
        {"ZMOVEMEMBER a b MEMBERS 4 w none u w", "[w u]"},
        {"ZMOVEMEMBER a b NX MEMBERS 2 x v", "[x]"},
        {"ZRANGE a 0 -1 WITHSCORES", "[v 2 y 5]"},
        {"ZMOVEMEMBER a b XX MEMBERS 2 y v", "[v]"},
        {"ZRANGE b 0 -1 WITHSCORES", "[u 1 v 2 w 3 x 4]"},
        {"ZMOVEMEMBER a b XX MEMBERS 1 y", "nil*"},
        {"ZMOVEMEMBER a a MEMBERS 1 y", "nil*"},
        {"ZMOVEMEMBER a none XX MEMBERS 1 y", "nil*"},
        {"EXISTS none", ":0"},
        {"ZMOVEMEMBER none b MEMBERS 1 y", "nil*"},
        {"ZMOVEMEMBER a b members 1 y", "[y]"},
        {"EXISTS a", ":0"},
    };
    zset_run(h, "ZADD a 1 u 2 v 3 w 4 x 5 y");
    zset_run(h, "ZADD b 100 v");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i][0], rows[i][1]);
    }
}

ZSET_TEST(what_is_not_understood_changes_nothing) {
    static const char *const rows[][2] = {
        {"ZMOVE a b MID", SYNTAX},
        {"ZMOVE a b MIN COUNT", SYNTAX},
        {"ZMOVE a b MIN 2", SYNTAX},
        {"ZMOVE a b MIN COUNT 0", BAD_COUNT},
        {"ZMOVE a b MIN COUNT -1", BAD_COUNT},
        {"ZMOVE a b MIN COUNT 1.5", BAD_COUNT},
        {"ZMOVE a b MIN COUNT 1 COUNT 1", SYNTAX},
        {"ZMOVE a b BYSCORE 1", SYNTAX},
        {"ZMOVE a b BYSCORE x 3", "-ERR min or max is not a float"},
        {"ZMOVE a b BYSCORE 1 3 COUNT 0", BAD_COUNT},
        {"ZMOVE a b", "-ERR wrong number of arguments for 'zmove' command"},
        {"ZMOVE hash b MIN", WRONG_TYPE},
        {"ZMOVE a hash MIN", WRONG_TYPE},
        {"ZMOVE none hash MIN", "nil*"},
        {"BZMOVE a b BYSCORE 1 2 0", SYNTAX},
        {"BZMOVE a b MIN x", "-ERR timeout is not a float or out of range"},
        {"BZMOVE a b MIN -1", "-ERR timeout is negative"},
        {"BZMOVE a b MIN 0 COUNT 0", BAD_COUNT},
        {"BZMOVE hash b MIN 0", WRONG_TYPE},
        {"BZMOVE a hash MIN 0", WRONG_TYPE},
        {"ZMOVEMEMBER a b MEMBERS 2 u", SYNTAX},
        {"ZMOVEMEMBER a b MEMBERS 1 u v", SYNTAX},
        {"ZMOVEMEMBER a b NX XX MEMBERS 1 u", SYNTAX},
        {"ZMOVEMEMBER a b NAMES 1 u", SYNTAX},
        {"ZMOVEMEMBER a b MEMBERS 0 u", "-ERR num-members should be greater than 0"},
        {"ZMOVEMEMBER a b MEMBERS x u", "-ERR num-members should be greater than 0"},
        {"ZMOVEMEMBER hash b MEMBERS 1 u", WRONG_TYPE},
    };
    zset_run(h, "ZADD a 1 u 2 v");
    zset_run(h, "HSET hash f v");
    zset_expect_each_unchanged(h, "a", rows);
    zset_expect(h, "EXISTS b none", ":0");
}

ZSET_TEST(in_resp3_nothing_is_null) {
    harness_run(h, h->server.sessions.first, "HELLO 3");
    zset_run(h, "ZADD a 1 u");
    zset_expect(h, "ZMOVE a b MIN", "[u]");
    zset_expect(h, "ZMOVE a b MIN", "_");
    zset_expect(h, "BZMOVE b b MIN 0", "_");
}

ZSET_TEST(in_the_same_layout_a_member_keeps_its_whole_key_and_equals_their_order) {
    static const char *const words[] = {"MIN COUNT 500", "MAX COUNT 500", "BYSCORE -inf +inf"};
    for (size_t i = 0; i < ZSET_LAYOUTS * COUNT_OF(words); i++) {
        const char *prefix = zset_layout_prefixes[i / COUNT_OF(words)];
        char key[32];
        snprintf(key, sizeof key, "%sk", prefix);
        for (int n = 0; n < 200; n++) {
            zset_run(h, "ZADD %s %d m%d", key, n % 9, n);
            h->wall_us += 300000;
        }
        for (int n = 0; n < 200 && strcmp(prefix, "three:") == 0; n += 3) {
            zset_set_field(h, key, formatted("m%d", n), 1, (uint64_t)n % 2);
        }
        harness_pass_seconds(h, 100);
        char *before = zset_dump(h, key);
        zset_run(h, "ZMOVE %s %sd %s", key, prefix, words[i % COUNT_OF(words)]);
        char *after = zset_dump(h, formatted("%sd", prefix));
        assert_string_equal(before, after);
        free(before);
        free(after);
        zset_expect(h, formatted("EXISTS %s", key), ":0");
        zset_run(h, "DEL %sd", prefix);
    }
}

ZSET_TEST(in_another_layout_score_and_time_are_kept_or_nothing_is_moved) {
    static const char *const rows[][2] = {
        {"ZMOVE money:k d MAX COUNT 2", "-ERR value 0.5 has too many decimals: field 'score' keeps "
                                        "0 (round it, or more by SCALE in the layout)"},
        {"ZMOVE money:k laps:d MIN", "-ERR value -3 is out of range: field 'ms' takes "
                                     "0..4294967295"},
    };
    zset_run(h, "ZADD money:k 0.5 half 7 seven -3 low");
    int64_t time_ms = zset_time_ms(h, "money:k", "seven");
    zset_expect_each_unchanged(h, "money:k", rows);
    zset_expect(h, "EXISTS d laps:d", ":0");
    harness_pass_seconds(h, 100);
    zset_expect(h, "ZMOVE money:k d MAX", "[seven]");
    zset_expect(h, "ZRANGE d 0 -1 WITHSCORES", "[seven 7]");
    assert_int_equal(zset_time_ms(h, "d", "seven"), time_ms);
}

/* Five decimals of a double's four: a number of the same double is one of the board's scores. */
ZSET_TEST(a_board_of_doubles_takes_what_it_takes_of_a_union) {
    static const char *const rows[][2] = {
        {"ZUNIONSTORE union 1 exact", ":3"},
        {"ZRANGE union 0 -1 WITHSCORES", "[a 0.5 b 1318516439857.131 c 1318516439857.1313]"},
        {"ZMOVE exact moved MIN COUNT 2", "[a b]"},
        {"ZMOVEMEMBER exact moved MEMBERS 1 c", "[c]"},
        {"ZRANGE moved 0 -1 WITHSCORES", "[a 0.5 b 1318516439857.131 c 1318516439857.1313]"},
        {"ZADD exact 0.12345 a", ":1"},
        {"ZUNIONSTORE union 1 exact", "-ERR member 'a': value 0.12345 has too many decimals: field "
                                      "'score' keeps 4 (round it, or more by SCALE in the layout)"},
        {"ZMOVE exact moved MIN", "-ERR value 0.12345 has too many decimals: field 'score' keeps 4 "
                                  "(round it, or more by SCALE in the layout)"},
    };
    zset_run(h, "LB.CREATE exact FIELD score 64 ASC SIGNED SCALE 5");
    zset_run(h, "LB.CREATE union LAYOUT milliseconds");
    zset_run(h, "LB.CREATE moved LAYOUT milliseconds");
    zset_run(h, "ZADD exact 0.5 a 1318516439857.13109 b 1318516439857.13124 c");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i][0], rows[i][1]);
    }
}

ZSET_TEST(what_would_be_lost_of_a_member_stays) {
    zset_run(h, "LB.CREATE tagged FIELD score 20 TAG land 4");
    zset_run(h, "ZADD tagged 5 m");
    zset_expect(h, "LB.TAG tagged m land DE", ":1");
    zset_expect(h, "ZMOVE tagged d MIN",
                "-ERR the source's members have tags, which would be lost");
    zset_run(h, "ZADD three:k 1 a");
    zset_expect(h, "ZMOVE three:k d MIN",
                "-ERR the boards have different layouts: of the source's members, all fields but "
                "the first would be lost");
    zset_expect(h, "ZCARD tagged", ":1");
    zset_expect(h, "ZCARD three:k", ":1");
    zset_expect(h, "EXISTS d", ":0");
}

ZSET_TEST(the_rules_of_both_boards_hold) {
    static const char *const rows[][2] = {
        {"LB.ALTER a FREEZE", "+OK"},
        {"ZMOVE a best MIN", ERROR_FROZEN},
        {"LB.ALTER a THAW", "+OK"},
        {"LB.ALTER best FREEZE", "+OK"},
        {"ZMOVEMEMBER a best MEMBERS 1 u", ERROR_FROZEN},
        {"LB.ALTER best THAW", "+OK"},
        /* The better score stays, and with it the member at the source. */
        {"ZMOVE a best MIN COUNT 2", "[v]"},
        {"ZRANGE best 0 -1 WITHSCORES", "[v 2 u 50]"},
        {"ZMOVE a best MIN", "nil*"},
        {"ZRANGE a 0 -1 WITHSCORES", "[u 1 w 3 x 4 y 5]"},
        {"ZMOVE a two MAX COUNT 3", "-FULL board is full: at most 2 members"},
        {"ZMOVE a two MAX COUNT 2", "[y x]"},
        {"ZMOVE a two MIN", "-FULL board is full: at most 2 members"},
        /* A cap drops who ranks below: those stay. */
        {"ZADD capped 2 old 1 older", ":2"},
        {"ZMOVE a capped MIN", "nil*"},
        {"ZMOVE a capped MIN COUNT 2", "[w]"},
        {"ZRANGE capped 0 -1 WITHSCORES", "[old 2 w 3]"},
        {"ZRANGE a 0 -1 WITHSCORES", "[u 1]"},
        {"LB.BAN u MATCH fr*", ":0"},
        {"ZMOVE a free MIN", ERROR_BANNED},
        {"EXISTS free", ":0"},
        {"LB.CREATE kept LAYOUT default", "+OK"},
        {"ZMOVE two kept MIN COUNT 5", "[x y]"},
        {"ZMOVE kept two MIN COUNT 5", "[x y]"},
        {"EXISTS kept", ":1"},
    };
    zset_run(h, "ZADD a 1 u 2 v 3 w 4 x 5 y");
    zset_run(h, "LB.CREATE best LAYOUT default KEEP BEST");
    zset_run(h, "LB.CREATE two LAYOUT default LIMIT 2");
    zset_run(h, "LB.CREATE capped LAYOUT default CAP 2");
    zset_run(h, "ZADD best 50 u");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i][0], rows[i][1]);
    }
}

ZSET_TEST(expiries_stay_with_their_keys) {
    zset_run(h, "ZADD a 1 u 2 v");
    zset_run(h, "ZADD b 9 w");
    zset_run(h, "EXPIRE a 100");
    zset_run(h, "EXPIRE b 200");
    zset_expect(h, "ZMOVE a b MIN", "[u]");
    zset_expect(h, "TTL a", ":100");
    zset_expect(h, "TTL b", ":200");
    zset_expect(h, "ZMOVE a c MIN", "[v]");
    zset_expect(h, "TTL c", ":-1");
}

SERVER_TEST(a_client_waits_for_members_to_move) {
    struct session *other = harness_connect(h);
    harness_expect(h, s, "BZMOVE q to MAX 0 COUNT 2", "");
    assert_int_equal(s->wait.state, WAIT_FOR_KEY);
    harness_run(h, other, "ZADD q 1 a 2 b 3 c");
    assert_string_equal(harness_output(s), "*2\r\n$1\r\nc\r\n$1\r\nb\r\n");
    assert_null(s->wait.target);
    harness_expect(h, other, "ZRANGE to 0 -1", "*2\r\n$1\r\nb\r\n$1\r\nc\r\n");
    harness_expect(h, s, "BZMOVE q to MIN 0", "*1\r\n$1\r\na\r\n");
    harness_expect(h, s, "BZMOVE q q MIN 0", "*-1\r\n");
}

SERVER_TEST(who_waits_to_move_is_told_what_is_in_the_way) {
    struct session *other = harness_connect(h);
    harness_expect(h, s, "BZMOVE q to MIN 0", "");
    harness_run(h, other, "HSET to f v");
    harness_run(h, other, "ZADD q 1 a");
    assert_string_equal(harness_output(s), "-WRONGTYPE Operation against a key holding the wrong "
                                           "kind of value\r\n");
    harness_expect(h, other, "ZCARD q", ":1\r\n");
}

SERVER_TEST(a_wait_to_move_ends_with_its_time_in_a_transaction_and_with_its_client) {
    struct session *other = harness_connect(h);
    harness_expect(h, s, "BZMOVE q to MIN 1", "");
    h->wall_us += 2000000;
    server_update_time(&h->server);
    (void)waiting_give_up(&h->server, 10);
    assert_string_equal(harness_output(s), "*-1\r\n");
    assert_null(s->wait.target);
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "BZMOVE q to MIN 0", "+QUEUED\r\n");
    harness_expect(h, s, "EXEC", "*1\r\n*-1\r\n");
    harness_expect(h, other, "BZMOVE q to MIN 0", "");
    harness_disconnect(h, other);
    harness_run(h, s, "ZADD q 1 a");
    harness_expect(h, s, "EXISTS q to", ":1\r\n");
}

SERVER_TEST(rights_are_looked_at_again_when_members_come) {
    struct session *other = harness_connect(h);
    struct session *admin = harness_connect(h);
    harness_run(h, admin, "ACL SETUSER mover on nopass ~q %W~to +bzmove");
    harness_run(h, s, "AUTH mover any");
    harness_expect(h, s, "BZMOVE q to MIN 0", "");
    harness_run(h, other, "ZADD q 1 a");
    assert_string_equal(harness_output(s), "*1\r\n$1\r\na\r\n");
    harness_expect(h, s, "BZMOVE q to MIN 0", "");
    harness_run(h, admin, "ACL SETUSER mover resetkeys ~q");
    harness_run(h, other, "ZADD q 1 b");
    harness_run(h, other, "ZADD q 1 c");
    assert_int_not_equal(s->wait.state, WAIT_FOR_KEY);
    harness_expect(h, other, "ZCARD q", ":2\r\n");
}
