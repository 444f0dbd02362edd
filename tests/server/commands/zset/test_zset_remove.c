/* ZREM, ZREMRANGEBYRANK and ZREMRANGEBYSCORE, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static const char no_integer[] = "-ERR value is not an integer or out of range";
static const char no_limit[] = "-ERR min or max is not a float";

ZSET_TEST(zrem_counts_the_members_that_were_there) {
    zset_run(h, "ZADD k 1 a 2 b 3 c");
    zset_expect(h, "ZREM k a x a c", ":2");
    zset_expect(h, "ZRANGE k 0 -1", "[b]");
    zset_expect(h, "ZREM none a", ":0");
    zset_expect_unchanged(h, "k", "ZREM k \"\" y", ":0");
}

ZSET_TEST(a_board_goes_with_its_last_member) {
    static const char *const lines[] = {
        "ZREM k a b x", "ZREMRANGEBYRANK k 0 -1", "ZREMRANGEBYSCORE k -inf inf", "ZPOPMIN k 2",
        "ZPOPMAX k 5",  "ZMPOP 1 k MIN COUNT 2",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect(h, "ZADD k 1 a 2 b", ":2");
        assert_int_equal(registry_count(h->server.registry, 0), 1);
        zset_run(h, "%s", lines[i]);
        assert_null(zset_board(h, "k"));
        assert_int_equal(registry_count(h->server.registry, 0), 0);
    }
}

ZSET_TEST(zremrangebyrank_counts_from_the_lowest_score) {
    static const struct {
        const char *start, *stop, *removed, *left;
    } ranges[] = {
        {"0", "0", ":1", "[b c d]"},
        {"-1", "-1", ":1", "[a b c]"},
        {"1", "2", ":2", "[a d]"},
        {"-100", "1", ":2", "[c d]"},
        {"2", "100", ":2", "[a b]"},
        {"4", "5", ":0", "[a b c d]"},
        {"2", "1", ":0", "[a b c d]"},
        {"-9223372036854775808", "0", ":1", "[b c d]"},
        {"3", "9223372036854775807", ":1", "[a b c]"},
        {"9223372036854775807", "-9223372036854775808", ":0", "[a b c d]"},
        {"4611686018427387903", "4611686018427387903", ":0", "[a b c d]"},
        {"4294967296", "4294967297", ":0", "[a b c d]"},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        zset_run(h, "ZADD k 1 a 2 b 3 c 4 d");
        zset_expect(h, formatted("ZREMRANGEBYRANK k %s %s", ranges[i].start, ranges[i].stop),
                    ranges[i].removed);
        zset_expect(h, "ZRANGE k 0 -1", ranges[i].left);
        zset_expect(h, formatted("ZREMRANGEBYRANK none %s %s", ranges[i].start, ranges[i].stop),
                    ":0");
    }
}

ZSET_TEST(where_less_is_better_rank_0_is_the_best) {
    zset_run(h, "ZADD laps:k 10 a 20 b 20 c 30 d");
    zset_expect(h, "ZREMRANGEBYRANK laps:k 0 1", ":2");
    zset_expect(h, "ZRANGE laps:k 0 -1", "[c d]");
}

ZSET_TEST(among_equals_the_last_to_come_is_the_lowest) {
    zset_run(h, "ZADD k 5 first 5 second 5 third");
    zset_expect(h, "ZREMRANGEBYRANK k 0 0", ":1");
    zset_expect(h, "ZREVRANGE k 0 -1", "[first second]");
}

ZSET_TEST(zremrangebyscore_takes_limits_as_zcount_does) {
    static const struct {
        const char *min, *max, *removed, *left;
    } ranges[] = {
        {"2", "3", ":2", "[a d]"},           {"(2", "3", ":1", "[a b d]"},
        {"-inf", "(4", ":3", "[d]"},         {"3.5", "+inf", ":1", "[a b c]"},
        {"3", "2", ":0", "[a b c d]"},       {"5", "9", ":0", "[a b c d]"},
        {"1e400", "inf", ":0", "[a b c d]"}, {"(1", "(2", ":0", "[a b c d]"},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        zset_run(h, "ZADD k 1 a 2 b 3 c 4 d");
        zset_expect(h, formatted("ZREMRANGEBYSCORE k %s %s", ranges[i].min, ranges[i].max),
                    ranges[i].removed);
        zset_expect(h, "ZRANGE k 0 -1", ranges[i].left);
    }
    zset_run(h, "ZADD laps:k 10 a 20 b 30 c");
    zset_expect(h, "ZREMRANGEBYSCORE laps:k (10 20", ":1");
    zset_expect(h, "ZRANGE laps:k 0 -1", "[a c]");
}

ZSET_TEST(wrong_arguments_remove_nothing) {
    zset_run(h, "ZADD k 1 a 2 b");
    zset_expect_unchanged(h, "k", "ZREMRANGEBYRANK k x 1", no_integer);
    zset_expect_unchanged(h, "k", "ZREMRANGEBYRANK k 0 1.5", no_integer);
    zset_expect_unchanged(h, "k", "ZREMRANGEBYRANK k 0 9223372036854775808", no_integer);
    zset_expect_unchanged(h, "k", "ZREMRANGEBYRANK none 0 x", no_integer);
    zset_expect_unchanged(h, "k", "ZREMRANGEBYSCORE k x 1", no_limit);
    zset_expect_unchanged(h, "k", "ZREMRANGEBYSCORE none 1 nan", no_limit);
    zset_expect_unchanged(h, "k", "ZREM k", "-ERR wrong number of arguments for 'zrem' command");
    zset_expect_unchanged(h, "k", "ZREMRANGEBYRANK k 0 1 2",
                          "-ERR wrong number of arguments for 'zremrangebyrank' command");
    zset_expect_unchanged(h, "k", "ZREMRANGEBYSCORE k 0",
                          "-ERR wrong number of arguments for 'zremrangebyscore' command");
}

ZSET_TEST(removal_needs_no_memory) {
    for (int i = 0; i < 3000; i++) {
        zset_run(h, "ZADD k %d member:%d", i % 97, i);
    }
    struct bytes args[] = {BYTES("ZREM"), BYTES("k"), {0}};
    struct request request = {.args = args, .count = 3};
    for (int i = 0; i < 3000; i++) {
        char member[32];
        args[2] = (struct bytes){.at = member,
                                 .size = (size_t)snprintf(member, sizeof(member), "member:%d", i)};
        buffer_clear(&h->reply);
        struct reply reply;
        reply_init(&reply, &h->reply, 2);
        memory_fail_at(1);
        harness_execute(&h->server, h->server.sessions.first, &request, &reply);
        memory_fail_at(0);
        assert_int_equal(h->reply.size, 4);
        assert_memory_equal(h->reply.at, ":1\r\n", 4);
    }
    assert_null(zset_board(h, "k"));
}
