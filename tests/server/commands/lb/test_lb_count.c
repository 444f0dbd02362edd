/* LB.COUNT, sentence by sentence. Random ones: test_lb_filter.c. */
#include "tests/server/zset_fixture.h"

ZSET_TEST(without_by_it_is_the_number_of_members) {
    static const char *const rows[][2] = {
        {"LB.COUNT k", ":6"},
        {"LB.COUNT k 0 -1", ":6"},
        {"LB.COUNT k 1 2", ":2"},
        {"LB.COUNT k -2 100", ":2"},
        {"LB.COUNT k 5 1", ":0"},
        {"LB.COUNT k 50 80 BYSCORE", ":4"},
        {"LB.COUNT k (80 50 BYSCORE", ":3"},
        {"LB.COUNT k -inf +inf byscore", ":6"},
        {"LB.COUNT k inf (90 BYSCORE", ":0"},
        {"LB.COUNT k WHERE country DE", ":3"},
        {"LB.COUNT k WHERE country DE WHERENOT class rogue", ":2"},
        {"LB.COUNT k 0 1 WHERE country DE", ":2"},
        {"LB.COUNT k 2 -1 WHERE country DE", ":1"},
        {"LB.COUNT k 65 85 BYSCORE WHERE country DE WHERE country CH", ":1"},
        {"LB.COUNT k WHERE country \"\"", ":1"},
        {"LB.COUNT k WHERE country US", ":0"},
        {"LB.COUNT none", ":0"},
        {"LB.COUNT none 0 9 WHERE x y", ":0"},
    };
    zset_make_tagged(h);
    zset_expect_each(h, rows);
}

ZSET_TEST(by_counts_each_value_most_first_and_ties_by_their_bytes) {
    static const char *const rows[][2] = {
        {"LB.COUNT k BY country", "[[DE :3] [nil :1] [CH :1] [FR :1]]"},
        {"LB.COUNT k BY class", "[[mage :3] [rogue :2] [nil :1]]"},
        {"LB.COUNT k BY class BY country",
         "[[mage DE :2] [nil CH :1] [mage FR :1] [rogue nil :1] [rogue DE :1]]"},
        {"LB.COUNT k by COUNTRY BY class WHERE class rogue", "[[nil rogue :1] [DE rogue :1]]"},
        {"LB.COUNT k 0 2 BY country", "[[DE :2] [FR :1]]"},
        {"LB.COUNT k 0 3 WHERENOT class mage BY country", "[[DE :1]]"},
        {"LB.COUNT k 60 70 BYSCORE BY class", "[[mage :1] [rogue :1]]"},
        {"LB.COUNT k BY class 0 2", "-ERR syntax error"},
        {"LB.COUNT k 3 2 BY class", "[]"},
        {"LB.COUNT k BY class WHERE country US", "[]"},
        {"LB.COUNT none BY class", "[]"},
    };
    zset_make_tagged(h);
    zset_expect_each(h, rows);
    zset_use_resp3(h);
    zset_expect(h, "LB.COUNT k BY country", "[[DE :3] [_ :1] [CH :1] [FR :1]]");
}

ZSET_TEST(a_board_on_which_nobody_has_a_value_is_all_nil) {
    zset_expect(h, "LB.CREATE k FIELD score 33 TAG country 8", "+OK");
    zset_expect(h, "LB.COUNT k BY country", "[]");
    zset_expect(h, "ZADD k 1 a 2 b", ":2");
    zset_expect(h, "LB.COUNT k BY country", "[[nil :2]]");
    zset_expect(h, "LB.COUNT k WHERE country DE", ":0");
    zset_expect(h, "LB.COUNT k WHERENOT country DE BY country", "[[nil :2]]");
}

ZSET_TEST(what_makes_no_sense_is_refused) {
    static const char syntax[] = "-ERR syntax error";
    static const char unknown[] = "-ERR no tag 'x': this board has country, class";
    static const char *const rows[][2] = {
        {"LB.COUNT", "-ERR wrong number of arguments for 'lb.count' command"},
        {"LB.COUNT k 0", syntax},
        {"LB.COUNT k BYSCORE", syntax},
        {"LB.COUNT k 0 1 2", syntax},
        {"LB.COUNT k BY", syntax},
        {"LB.COUNT k WHERE country", syntax},
        {"LB.COUNT k 0 -1 WITHIN country", syntax},
        {"LB.COUNT k a 1", "-ERR value is not an integer or out of range"},
        {"LB.COUNT k a 1 BYSCORE", "-ERR min or max is not a float"},
        {"LB.COUNT k BY x", unknown},
        {"LB.COUNT k BY class WHERE x 1", unknown},
        {"LB.COUNT k BY class BY x", unknown},
        {"LB.COUNT k BY class BY CLASS", "-ERR BY 'class' is given twice"},
        {"LB.COUNT k BY class BY country BY class", "-ERR LB.COUNT takes at most 2 BY"},
        {"LB.COUNT hash", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
    };
    zset_make_tagged(h);
    zset_expect(h, "HSET hash a 1", ":1");
    zset_expect_each(h, rows);
}

ZSET_TEST(many_values_are_counted) {
    zset_expect(h, "LB.CREATE k FIELD score 33 TAG clan 12 TAG country 4", "+OK");
    for (int i = 0; i < 2000; i++) {
        zset_run(h, "LB.ADD k TAG clan c%d TAG country %d %d m%d", i % 700, i % 3, i, i);
    }
    const char *reply = zset_run(h, "LB.COUNT k BY clan");
    assert_memory_equal(reply, "[[c0 :3] [c1 :3] [c10 :3]", 25);
    zset_expect(h, "LB.COUNT k 0 99 BY country", "[[1 :34] [0 :33] [2 :33]]");
}

/* The first eight bytes of a value decide most comparisons; here all of them are the same. */
ZSET_TEST(rows_of_two_tags_are_in_order_whatever_their_values_begin_with) {
    enum { CLANS = 90, COUNTRIES = 2, MOST = 3 };
    static char expected[CLANS * COUNTRIES * 64];
    size_t size = 0;
    int member = 0;
    zset_expect(h, "LB.CREATE k FIELD score 33 TAG clan 12 TAG country 4", "+OK");
    for (int i = 0; i < CLANS * COUNTRIES; i++) {
        for (int k = 0; k <= i * 7 % MOST; k++) {
            zset_run(h, "LB.ADD k TAG clan the-clan-%02d TAG country in-country-%d 1 m%d",
                     i / COUNTRIES, i % COUNTRIES, member++);
        }
    }
    expected[size++] = '[';
    for (int count = MOST; count > 0; count--) {
        for (int i = 0; i < CLANS * COUNTRIES; i++) {
            if (i * 7 % MOST + 1 == count) {
                size += (size_t)snprintf(expected + size, sizeof expected - size,
                                         "%s[the-clan-%02d in-country-%d :%d]", size > 1 ? " " : "",
                                         i / COUNTRIES, i % COUNTRIES, count);
            }
        }
    }
    snprintf(expected + size, sizeof expected - size, "]");
    zset_expect(h, "LB.COUNT k BY clan BY country", expected);
}
