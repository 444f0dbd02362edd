/* The BYLEX forms reply with an error that says why, and change nothing. */
#include "tests/server/zset_fixture.h"

#define NO_LEX(what)                                                                               \
    "-ERR " what " is not supported: equal scores are ordered by time, never by name"

ZSET_TEST(bylex_forms_answer_why) {
    zset_run(h, "ZADD k 0 a 0 b 0 c");
    zset_expect(h, "ZLEXCOUNT k - +", NO_LEX("ZLEXCOUNT"));
    zset_expect(h, "zrangebylex k [a [c LIMIT 0 1", NO_LEX("ZRANGEBYLEX"));
    zset_expect(h, "ZREVRANGEBYLEX k + -", NO_LEX("ZREVRANGEBYLEX"));
    zset_expect_unchanged(h, "k", "ZREMRANGEBYLEX k - +", NO_LEX("ZREMRANGEBYLEX"));
    zset_expect(h, "ZRANGE k - + BYLEX", NO_LEX("BYLEX"));
    zset_expect(h, "ZRANGE k + - BYLEX REV LIMIT 0 -1", NO_LEX("BYLEX"));
    zset_expect(h, "ZRANGE k - + BYLEX WITHSCORES",
                "-ERR syntax error, WITHSCORES not supported in combination with BYLEX");
}

ZSET_TEST(the_number_of_arguments_is_checked) {
    zset_expect(h, "ZLEXCOUNT k -", "-ERR wrong number of arguments for 'zlexcount' command");
    zset_expect(h, "ZRANGEBYLEX k -", "-ERR wrong number of arguments for 'zrangebylex' command");
    zset_expect(h, "ZREVRANGEBYLEX k -",
                "-ERR wrong number of arguments for 'zrevrangebylex' command");
    zset_expect(h, "ZREMRANGEBYLEX k - + -",
                "-ERR wrong number of arguments for 'zremrangebylex' command");
}
