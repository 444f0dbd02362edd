/* ZRANDMEMBER, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static void add_members(struct harness *h, int count) {
    for (int i = 0; i < count; i++) {
        zset_run(h, "ZADD k %d %d", i, i);
    }
}

/* How often each of 0 .. limit - 1 stands in a reply "[7 3 7]"; how many there are. */
static int tally(const char *answered, int *counts, int limit) {
    assert_int_equal(answered[0], '[');
    int total = 0;
    for (const char *at = answered + 1; *at != ']';) {
        char *end;
        long member = strtol(at, &end, 10);
        assert_ptr_not_equal(at, end);
        assert_in_range(member, 0, limit - 1);
        counts[member]++;
        total++;
        at = *end == ' ' ? end + 1 : end;
    }
    return total;
}

ZSET_TEST(without_a_count_one_member_comes) {
    struct harness *h = *state;
    zset_expect(h, "ZRANDMEMBER none", "nil");
    zset_run(h, "ZADD k 1 a");
    zset_expect(h, "ZRANDMEMBER k", "a");
    zset_use_resp3(h);
    zset_expect(h, "ZRANDMEMBER none", "_");
}

ZSET_TEST(a_positive_count_draws_different_members) {
    struct harness *h = *state;
    add_members(h, 500);
    static const int counts[] = {0, 1, 2, 10, 30, 31, 32, 100, 250, 499, 500, 501, 100000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        int seen[500] = {0};
        int total = tally(zset_run(h, "ZRANDMEMBER k %d", counts[i]), seen, 500);
        assert_int_equal(total, counts[i] < 500 ? counts[i] : 500);
        for (int member = 0; member < 500; member++) {
            assert_in_range(seen[member], 0, 1);
        }
    }
    zset_expect(h, "ZRANDMEMBER none 5", "[]");
}

ZSET_TEST(a_negative_count_draws_with_repeats) {
    struct harness *h = *state;
    add_members(h, 10);
    int seen[10] = {0};
    assert_int_equal(tally(zset_run(h, "ZRANDMEMBER k -10000"), seen, 10), 10000);
    for (int member = 0; member < 10; member++) {
        /* 1000 expected, standard deviation 30. */
        assert_in_range(seen[member], 800, 1200);
    }
    zset_expect(h, "ZRANDMEMBER none -5", "[]");
}

ZSET_TEST(every_member_is_drawn_equally_often) {
    struct harness *h = *state;
    add_members(h, 100);
    /* 3 of 100: places are drawn and sorted; 40 of 100: the board is walked; none: one place. */
    static const struct {
        const char *line;
        int rounds, drawn;
    } draws[] = {{"ZRANDMEMBER k 3", 10000, 3}, {"ZRANDMEMBER k 40", 750, 40}};
    for (size_t i = 0; i < sizeof(draws) / sizeof(draws[0]); i++) {
        int seen[100] = {0};
        for (int round = 0; round < draws[i].rounds; round++) {
            assert_int_equal(tally(zset_run(h, "%s", draws[i].line), seen, 100), draws[i].drawn);
        }
        for (int member = 0; member < 100; member++) {
            /* 300 expected, standard deviation at most 17. */
            assert_in_range(seen[member], 200, 400);
        }
    }
    int seen[100] = {0};
    for (int round = 0; round < 30000; round++) {
        seen[strtol(zset_run(h, "ZRANDMEMBER k"), NULL, 10)]++;
    }
    for (int member = 0; member < 100; member++) {
        assert_in_range(seen[member], 200, 400);
    }
}

ZSET_TEST(withscores_is_flat_in_resp2_and_pairs_in_resp3) {
    struct harness *h = *state;
    zset_run(h, "ZADD money:k 1.5 a");
    zset_expect(h, "ZRANDMEMBER money:k 3 WITHSCORES", "[a 1.5]");
    zset_expect(h, "ZRANDMEMBER money:k -2 withscores", "[a 1.5 a 1.5]");
    zset_expect(h, "ZRANDMEMBER money:k 0 WITHSCORES", "[]");
    zset_use_resp3(h);
    zset_expect(h, "ZRANDMEMBER money:k 3 WITHSCORES", "[[a ,1.5]]");
    zset_expect(h, "ZRANDMEMBER money:k -2 WITHSCORES", "[[a ,1.5] [a ,1.5]]");
    zset_expect(h, "ZRANDMEMBER money:k -2", "[a a]");
    zset_expect(h, "ZRANDMEMBER none 3 WITHSCORES", "[]");
}

ZSET_TEST(absurd_counts_are_refused_or_give_all) {
    struct harness *h = *state;
    static const char out[] = "-ERR value is out of range";
    static const char no_integer[] = "-ERR value is not an integer or out of range";
    static const char lowest[] = "-ERR value is out of range, value must between "
                                 "-9223372036854775807 and 9223372036854775807";
    zset_run(h, "ZADD k 1 a");
    zset_expect(h, "ZRANDMEMBER k 9223372036854775807", "[a]");
    zset_expect(h, "ZRANDMEMBER k 4611686018427387903", "[a]");
    zset_expect(h, "ZRANDMEMBER k 4294967297", "[a]");
    zset_expect(h, "ZRANDMEMBER k 4611686018427387903 WITHSCORES", "[a 1]");
    zset_expect(h, "ZRANDMEMBER k 4611686018427387904 WITHSCORES", out);
    zset_expect(h, "ZRANDMEMBER k 9223372036854775807 WITHSCORES", out);
    zset_expect(h, "ZRANDMEMBER none 9223372036854775807 WITHSCORES", out);
    zset_expect(h, "ZRANDMEMBER k -9223372036854775807 WITHSCORES", out);
    zset_expect(h, "ZRANDMEMBER k -9223372036854775807", out);
    zset_expect(h, "ZRANDMEMBER k -4611686018427387904", out);
    zset_expect(h, "ZRANDMEMBER k -9223372036854775808", lowest);
    zset_expect(h, "ZRANDMEMBER k -9223372036854775808 WITHSCORES", lowest);
    zset_expect(h, "ZRANDMEMBER k 9223372036854775808", no_integer);
    zset_expect(h, "ZRANDMEMBER none x", no_integer);
    zset_expect(h, "ZRANDMEMBER k x FOO", no_integer);
}

ZSET_TEST(other_words_are_a_syntax_error) {
    struct harness *h = *state;
    zset_run(h, "ZADD k 1 a");
    zset_expect(h, "ZRANDMEMBER k 1 FOO", "-ERR syntax error");
    zset_expect(h, "ZRANDMEMBER none 1 WITHSCORE", "-ERR syntax error");
    zset_expect(h, "ZRANDMEMBER k 1 WITHSCORES WITHSCORES", "-ERR syntax error");
    zset_expect(h, "ZRANDMEMBER", "-ERR wrong number of arguments for 'zrandmember' command");
}

ZSET_TEST(a_reply_that_nobody_can_read_ends_early) {
    struct harness *h = *state;
    zset_run(h, "ZADD k 1 a");
    struct bytes args[] = {BYTES("ZRANDMEMBER"), BYTES("k"), BYTES("-4294967295")};
    struct request request = {.args = args, .count = 3};
    struct buffer small;
    struct reply reply;
    buffer_init(&small, 10000);
    reply_init(&reply, &small, 2);
    command_execute(&h->server, h->server.session_first, &request, &reply);
    assert_true(small.is_broken);
    buffer_deinit(&small);
}

ZSET_TEST(without_memory_for_the_draw_an_error_comes) {
    struct harness *h = *state;
    add_members(h, 500);
    struct bytes args[] = {BYTES("ZRANDMEMBER"), BYTES("k"), BYTES("5")};
    zset_expect_no_memory(h, args, 3);
}

TEST_MAIN(NULL, NULL)
