/* ZPOPMIN, ZPOPMAX and ZMPOP, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static const char not_positive[] = "-ERR value is out of range, must be positive";
static const char syntax[] = "-ERR syntax error";
static const char no_keys[] = "-ERR numkeys should be greater than 0";
static const char no_count[] = "-ERR count should be greater than 0";

ZSET_TEST(zpopmin_takes_the_lowest_and_zpopmax_the_highest) {
    zset_run(h, "ZADD money:k 1 a 2.5 b 3 c 4 d 5 e");
    zset_expect(h, "ZPOPMIN money:k", "[a 1]");
    zset_expect(h, "ZPOPMAX money:k", "[e 5]");
    zset_expect(h, "ZPOPMIN money:k 2", "[b 2.5 c 3]");
    zset_expect(h, "ZRANGE money:k 0 -1", "[d]");
}

ZSET_TEST(where_less_is_better_zpopmin_takes_the_best) {
    zset_run(h, "ZADD laps:k 10 a 10 b 20 c 20 d");
    zset_expect(h, "ZPOPMIN laps:k", "[a 10]");
    zset_expect(h, "ZPOPMAX laps:k", "[d 20]");
    zset_expect(h, "ZMPOP 1 laps:k MAX COUNT 5", "[laps:k [[c 20] [b 10]]]");
}

ZSET_TEST(among_equals_zpopmax_takes_the_first_to_come) {
    zset_run(h, "ZADD k 5 first 5 second 5 third");
    zset_expect(h, "ZPOPMAX k", "[first 5]");
    zset_expect(h, "ZPOPMIN k", "[third 5]");
}

ZSET_TEST(without_a_count_resp3_is_flat_with_one_it_is_pairs) {
    zset_use_resp3(h);
    zset_run(h, "ZADD k 1 a 2 b 3 c 4 d");
    zset_expect(h, "ZPOPMIN k", "[a ,1]");
    zset_expect(h, "ZPOPMIN k 1", "[[b ,2]]");
    zset_expect(h, "ZPOPMAX k 0", "[]");
    zset_expect(h, "ZPOPMAX k 9", "[[d ,4] [c ,3]]");
    zset_expect(h, "ZPOPMAX k", "[]");
    zset_expect(h, "ZPOPMAX k 9", "[]");
}

ZSET_TEST(the_count_of_zpopmin_is_not_negative) {
    zset_run(h, "ZADD k 1 a 2 b");
    static const char *const bad[] = {
        "-1", "-9223372036854775808", "x", "1.5", "9223372036854775808", "\"\"", "+1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        static const char *const commands[] = {"ZPOPMIN k", "ZPOPMAX k", "ZPOPMIN none"};
        for (int j = 0; j < 3; j++) {
            zset_expect_unchanged(h, "k", formatted("%s %s", commands[j], bad[i]), not_positive);
        }
    }
    zset_expect_unchanged(h, "k", "ZPOPMIN k 0", "[]");
    zset_expect_unchanged(h, "k", "ZPOPMIN none 0", "[]");
    zset_expect_unchanged(h, "k", "ZPOPMIN none 9223372036854775807", "[]");
    zset_expect_unchanged(h, "k", "ZPOPMIN k 1 2", syntax);
    zset_expect_unchanged(h, "k", "ZPOPMAX k x 2", syntax);
    zset_expect(h, "ZPOPMIN", "-ERR wrong number of arguments for 'zpopmin' command");
    zset_expect(h, "ZPOPMAX", "-ERR wrong number of arguments for 'zpopmax' command");
}

ZSET_TEST(absurd_counts_take_all) {
    static const char *const counts[] = {"9223372036854775807", "4611686018427387903", "4294967296",
                                         "4294967298"};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        zset_run(h, "ZADD k 1 a 2 b 3 c");
        zset_expect(h, formatted("ZPOPMAX k %s", counts[i]), "[c 3 b 2 a 1]");
        zset_run(h, "ZADD k 1 a 2 b 3 c");
        zset_expect(h, formatted("ZMPOP 1 k MIN COUNT %s", counts[i]), "[k [[a 1] [b 2] [c 3]]]");
    }
}

ZSET_TEST(zmpop_takes_from_the_first_board_that_has_members) {
    zset_run(h, "ZADD k 1 a 2 b 3 c");
    zset_run(h, "ZADD l 1 x");
    zset_expect(h, "ZMPOP 3 none k l MIN", "[k [[a 1]]]");
    zset_expect(h, "ZMPOP 3 none k l max count 5", "[k [[c 3] [b 2]]]");
    zset_expect(h, "ZMPOP 3 none k l MIN", "[l [[x 1]]]");
    zset_expect(h, "ZMPOP 3 none k l MIN", "nil*");
    zset_run(h, "ZADD l 1 x");
    zset_use_resp3(h);
    zset_expect(h, "ZMPOP 2 k l MAX", "[l [[x ,1]]]");
    zset_expect(h, "ZMPOP 2 k l MAX", "_");
}

ZSET_TEST(one_key_twice_in_zmpop_is_one_board) {
    zset_run(h, "ZADD k 1 a 2 b");
    zset_expect(h, "ZMPOP 2 k k MIN COUNT 9", "[k [[a 1] [b 2]]]");
    zset_expect(h, "ZMPOP 2 k k MIN COUNT 9", "nil*");
}

ZSET_TEST(zmpop_counts_its_keys_and_members_from_1) {
    zset_run(h, "ZADD k 1 a 2 b");
    static const char *const bad[] = {
        "0", "-1", "-9223372036854775808", "9223372036854775808", "x", "\"\"", "1.0"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        zset_expect_unchanged(h, "k", formatted("ZMPOP %s k MIN", bad[i]), no_keys);
        zset_expect_unchanged(h, "k", formatted("ZMPOP 1 k MIN COUNT %s", bad[i]), no_count);
        zset_expect_unchanged(h, "k", formatted("ZMPOP 1 none MAX COUNT %s", bad[i]), no_count);
    }
}

ZSET_TEST(zmpop_with_other_words_is_a_syntax_error) {
    zset_run(h, "ZADD k 1 a 2 b");
    static const char *const lines[] = {
        "ZMPOP 2 k MIN",
        "ZMPOP 3 k k MIN",
        "ZMPOP 1 k k MIN",
        "ZMPOP 9223372036854775807 k MIN",
        "ZMPOP 4611686018427387903 k MIN",
        "ZMPOP 4294967297 k MIN",
        "ZMPOP 2147483647 k MIN",
        "ZMPOP 1 k FOO",
        "ZMPOP 1 k MIN FOO 1",
        "ZMPOP 1 k MIN MIN",
        "ZMPOP 1 k MIN COUNT",
        "ZMPOP 1 k MIN COUNT 1 COUNT 2",
        "ZMPOP 1 k MIN COUNT 1 FOO",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect_unchanged(h, "k", lines[i], syntax);
    }
    zset_expect(h, "ZMPOP 1 k", "-ERR wrong number of arguments for 'zmpop' command");
}

ZSET_TEST(a_pop_whose_reply_cannot_be_kept_takes_nothing) {
    for (int i = 0; i < 1000; i++) {
        zset_run(h, "ZADD k %d member:%d", i, i);
    }
    char *before = zset_dump(h, "k");
    struct bytes args[] = {BYTES("ZPOPMIN"), BYTES("k"), BYTES("900")};
    struct request request = {.args = args, .count = 3};
    struct buffer small;
    struct reply reply;
    buffer_init(&small, 1000);
    reply_init(&reply, &small, 2);
    harness_execute(&h->server, h->server.sessions.first, &request, &reply);
    assert_true(small.is_broken);
    buffer_deinit(&small);
    char *after = zset_dump(h, "k");
    assert_string_equal(before, after);
    free(before);
    free(after);
}
