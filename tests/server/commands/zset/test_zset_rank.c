/* ZRANK and ZREVRANK, sentence by sentence. */
#include "tests/server/zset_fixture.h"

ZSET_TEST(zrank_counts_from_the_lowest_score_and_zrevrank_from_the_highest) {
    zset_run(h, "ZADD k 10 a 20 b 30 c");
    zset_expect(h, "ZRANK k a", ":0");
    zset_expect(h, "ZRANK k c", ":2");
    zset_expect(h, "ZREVRANK k c", ":0");
    zset_expect(h, "ZREVRANK k a", ":2");
}

ZSET_TEST(where_less_is_better_zrank_is_the_place_from_the_best) {
    zset_run(h, "ZADD laps:k 10 a 20 b 20 c 30 d");
    zset_expect(h, "ZRANK laps:k a", ":0");
    zset_expect(h, "ZRANK laps:k b", ":1");
    zset_expect(h, "ZRANK laps:k c", ":2");
    zset_expect(h, "ZREVRANK laps:k a", ":3");
    zset_expect(h, "ZREVRANK laps:k b", ":2");
    zset_expect(h, "ZREVRANK laps:k d", ":0");
}

ZSET_TEST(on_equal_scores_zrevrank_gives_the_first_to_come_the_better_place) {
    zset_run(h, "ZADD k 5 first 5 second");
    zset_pass_seconds(h, 5);
    zset_run(h, "ZADD k 5 third");
    zset_expect(h, "ZREVRANK k first", ":0");
    zset_expect(h, "ZREVRANK k second", ":1");
    zset_expect(h, "ZREVRANK k third", ":2");
    zset_expect(h, "ZRANK k first", ":2");
    zset_expect(h, "ZRANK k third", ":0");
}

ZSET_TEST(zrank_and_zrevrank_mirror_each_other_on_every_layout) {
    for (int i = 0; i < ZSET_LAYOUTS; i++) {
        const char *prefix = zset_layout_prefixes[i];
        zset_run(h, "ZADD %sk 1 a 3 b 3 c 2 d 3 e 1 f", prefix);
        bool is_taken[6] = {false};
        for (const char *member = "abcdef"; *member != '\0'; member++) {
            long rank = strtol(zset_run(h, "ZRANK %sk %c", prefix, *member) + 1, NULL, 10);
            long reverse = strtol(zset_run(h, "ZREVRANK %sk %c", prefix, *member) + 1, NULL, 10);
            assert_int_equal(rank + reverse, 5);
            assert_in_range(rank, 0, 5);
            assert_false(is_taken[rank]);
            is_taken[rank] = true;
            char expected[8];
            snprintf(expected, sizeof(expected), "[%c]", *member);
            assert_string_equal(zset_run(h, "ZRANGE %sk %ld %ld", prefix, rank, rank), expected);
        }
    }
}

ZSET_TEST(withscore_adds_the_score) {
    zset_run(h, "ZADD money:k 1.5 a 2.25 b");
    zset_expect(h, "ZRANK money:k b WITHSCORE", "[:1 2.25]");
    zset_expect(h, "ZREVRANK money:k b withscore", "[:0 2.25]");
    zset_use_resp3(h);
    zset_expect(h, "ZRANK money:k a WITHSCORE", "[:0 ,1.5]");
}

ZSET_TEST(a_missing_member_has_no_place) {
    zset_run(h, "ZADD k 1 a");
    zset_expect(h, "ZRANK k x", "nil");
    zset_expect(h, "ZREVRANK none a", "nil");
    zset_expect(h, "ZRANK k x WITHSCORE", "nil*");
    zset_expect(h, "ZREVRANK none a WITHSCORE", "nil*");
    zset_expect(h, "ZRANK k \"\"", "nil");
    zset_use_resp3(h);
    zset_expect(h, "ZRANK k x", "_");
    zset_expect(h, "ZREVRANK k x WITHSCORE", "_");
}

ZSET_TEST(other_arguments_are_errors) {
    zset_run(h, "ZADD k 1 a");
    zset_expect(h, "ZRANK k a WITHSCORES", "-ERR syntax error");
    zset_expect(h, "ZREVRANK none a x", "-ERR syntax error");
    zset_expect(h, "ZRANK k", "-ERR wrong number of arguments for 'zrank' command");
    zset_expect(h, "ZRANK k a WITHSCORE x", "-ERR wrong number of arguments for 'zrank' command");
    zset_expect(h, "ZREVRANK k a b c", "-ERR wrong number of arguments for 'zrevrank' command");
}
