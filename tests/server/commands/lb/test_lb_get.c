/* LB.GET, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static const char syntax[] = "-ERR syntax error";

ZSET_TEST(records_come_in_the_order_asked_for) {
    zset_expect(h, "LB.ADD k 10 a 20 b", ":2");
    zset_expect(h, "LB.GET k 4 a x b a",
                "[[a :1 :1767225600000 :10] nil* [b :0 :1767225600000 :20] "
                "[a :1 :1767225600000 :10]]");
    zset_use_resp3(h);
    zset_expect(h, "lb.get k 2 x b", "[_ [b :0 :1767225600000 :20]]");
}

ZSET_TEST(a_missing_key_has_no_members) {
    zset_expect(h, "LB.GET none 2 a b", "[nil* nil*]");
    zset_expect(h, "LB.GET none 2 a b SORT COMP PCT WITHKEY", "[nil* nil*]");
    zset_use_resp3(h);
    zset_expect(h, "LB.GET none 1 a", "[_]");
}

ZSET_TEST(what_cannot_be_a_member_is_not_there) {
    static char bytes[65537];
    const struct bytes args[] = {BYTES("LB.GET"),        BYTES("k"), BYTES("3"),
                                 {bytes, sizeof(bytes)}, BYTES(""),  BYTES("a")};
    zset_expect(h, "LB.ADD k 1 a", ":1");
    assert_string_equal(harness_run_args(h, h->server.sessions.first, args, 6),
                        "*3\r\n*-1\r\n*-1\r\n*4\r\n$1\r\na\r\n:0\r\n:1767225600000\r\n:1\r\n");
}

ZSET_TEST(a_record_has_every_field) {
    zset_expect(h, "LB.ADD mixed:k AT 1600000000999 -12.5 3 1 -256 a", ":1");
    zset_expect(h, "LB.GET mixed:k 1 a", "[[a :0 :1600000000000 -12.5 :3 :1 :-256]]");
    zset_expect(h, "LB.ADD bare:k -5 a", ":1");
    zset_expect(h, "LB.GET bare:k 1 a", "[[a :0 nil :-5]]");
    zset_expect(h, "LB.ADD wide:k 9223372036854775807 a 9223372036854775808 b", ":2");
    zset_expect(h, "LB.GET wide:k 2 a b",
                "[[a :1 nil :9223372036854775807] [b :0 nil 9223372036854775808]]");
    zset_use_resp3(h);
    zset_expect(h, "LB.GET mixed:k 1 a", "[[a :0 :1600000000000 ,-12.5 :3 :1 :-256]]");
    zset_expect(h, "LB.GET bare:k 1 a", "[[a :0 _ :-5]]");
    zset_expect(h, "LB.GET wide:k 2 a b",
                "[[a :1 _ :9223372036854775807] [b :0 _ (9223372036854775808]]");
}

ZSET_TEST(times_of_every_kind_are_unix_milliseconds) {
    static const struct {
        const char *key, *at, *shown;
    } times[] = {
        {"old:k", "-2208988800000", "-2208988800000"},
        {"old:k", "-1", "-1"},
        {"old:k", "0", "0"},
        {"old:k", "1767225600001", "1767225600001"},
        {"early:k", "0", "0"},
        {"early:k", "99", "99"},
        {"early:k", "999999999", "999999999"},
        {"early:k", "1000000000", "1000000000"},
        {"early:k", "1099511627775", "1099511627775"},
        {"micro:k", "1577836799001", "1577836799001"},
        {"micro:k", "1577836800000", "1577836800000"},
        {"far:k", "9223372036854775", "9223372022400000"},
        {"daily:k", "1577923199999", "1577836800000"},
        {"paid:k", "1571819021259", "1571819021000"},
    };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        zset_run(h, "LB.ADD %s AT %s%s 1 a", times[i].key, times[i].at,
                 strcmp(times[i].key, "paid:k") == 0 ? " 1" : "");
        const char *answered = zset_run(h, "LB.GET %s 1 a", times[i].key);
        const char *expected = formatted("[[a :0 :%s :1", times[i].shown);
        assert_memory_equal(answered, expected, strlen(expected));
    }
}

ZSET_TEST(replies_are_byte_for_byte) {
    zset_expect(h, "LB.ADD money:k 12.30 a-member-of-more-than-thirty-two-bytes", ":1");
    const char line[] = "LB.GET money:k 1 a-member-of-more-than-thirty-two-bytes PCT WITHKEY";
    assert_string_equal(harness_run(h, h->server.sessions.first, line),
                        "*1\r\n*6\r\n$38\r\na-member-of-more-than-thirty-two-bytes\r\n:0\r\n"
                        ":1767225600000\r\n$4\r\n12.3\r\n$3\r\n100\r\n$11\r\n20649596415\r\n");
    zset_use_resp3(h);
    assert_string_equal(harness_run(h, h->server.sessions.first, line),
                        "*1\r\n*6\r\n$38\r\na-member-of-more-than-thirty-two-bytes\r\n:0\r\n"
                        ":1767225600000\r\n,12.3\r\n,100\r\n$11\r\n20649596415\r\n");
}

ZSET_TEST(comp_gives_equal_fields_the_best_place) {
    zset_expect(h, "LB.ADD k 30 a", ":1");
    zset_expect(h, "LB.ADD k 20 b", ":1");
    zset_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD k 20 c 20 d 10 e", ":3");
    zset_expect(h, "LB.GET k 5 a b c d e COMP",
                "[[a :0 :1767225600000 :30] [b :1 :1767225600000 :20] [c :1 :1767225601000 :20] "
                "[d :1 :1767225601000 :20] [e :4 :1767225601000 :10]]");
    /* All fields count, and equal keys are equal. */
    zset_expect(h, "LB.ADD paid:k 5 1 a 5 1 b 5 0 c 5 0 d", ":4");
    zset_expect(h, "LB.GET paid:k 4 a b c d comp",
                "[[a :0 :1767225601000 :5 :1] [b :0 :1767225601000 :5 :1] "
                "[c :2 :1767225601000 :5 :0] [d :2 :1767225601000 :5 :0]]");
    zset_expect(h, "LB.ADD latest:k AT 1700000000000 5 a 5 b", ":2");
    zset_expect(h, "LB.ADD latest:k AT 1700000000001 5 c 6 d", ":2");
    zset_expect(h, "LB.GET latest:k 4 a b c d COMP",
                "[[a :1 :1700000000000 :5] [b :1 :1700000000000 :5] [c :1 :1700000000001 :5] "
                "[d :0 :1700000000001 :6]]");
    zset_expect(h, "LB.ADD bare:k 5 a 5 b 4 c", ":3");
    zset_expect(h, "LB.GET bare:k 3 a b c COMP", "[[a :0 nil :5] [b :0 nil :5] [c :2 nil :4]]");
    zset_expect(h, "LB.ADD laps:k 5 a 5 b 6 c 4 d", ":4");
    zset_expect(h, "LB.GET laps:k 4 a b c d COMP SORT",
                "[[d :0 :1767225601000 :4] [a :1 :1767225601000 :5] [b :1 :1767225601000 :5] "
                "[c :3 :1767225601000 :6]]");
}

ZSET_TEST(sort_orders_by_rank_with_the_missing_last) {
    zset_expect(h, "LB.ADD k 10 a 20 b 30 c", ":3");
    zset_expect(h, "LB.GET k 6 x a y c b a SORT",
                "[[c :0 :1767225600000 :30] [b :1 :1767225600000 :20] [a :2 :1767225600000 :10] "
                "[a :2 :1767225600000 :10] nil* nil*]");
}

ZSET_TEST(pct_is_the_share_of_those_who_are_not_better) {
    zset_expect(h, "LB.ADD k 30 a 20 b 10 c", ":3");
    zset_expect(h, "LB.GET k 3 a b c PCT",
                "[[a :0 :1767225600000 :30 100] [b :1 :1767225600000 :20 66.66666666] "
                "[c :2 :1767225600000 :10 33.33333333]]");
    zset_expect(h, "LB.ADD k 0 d 20 e", ":2");
    zset_expect(h, "LB.GET k 2 e d PCT",
                "[[e :2 :1767225600000 :20 60] [d :4 :1767225600000 :0 20]]");
    /* The rank that is shown counts. */
    zset_expect(h, "LB.GET k 2 e d COMP PCT",
                "[[e :1 :1767225600000 :20 80] [d :4 :1767225600000 :0 20]]");
    zset_use_resp3(h);
    zset_expect(h, "LB.GET k 1 e WITHKEY PCT", "[[e :2 :1767225600000 :20 ,60 44907767807]]");
}

ZSET_TEST(options_follow_the_members_in_any_order) {
    zset_expect(h, "LB.ADD k 1 SORT 2 COMP", ":2");
    zset_expect(h, "LB.GET k 2 SORT COMP sort WithKey PCT comp SORT",
                "[[COMP :0 :1767225600000 :2 100 6253062143] "
                "[SORT :1 :1767225600000 :1 50 4105578495]]");
}

ZSET_TEST(n_is_the_number_of_members_that_follow) {
    static const char wrong[] = "-ERR n must be the number of members that follow it: 1..2 here";
    zset_expect(h, "LB.GET k 0 a b", wrong);
    zset_expect(h, "LB.GET k 3 a b", wrong);
    zset_expect(h, "LB.GET k -1 a b", wrong);
    zset_expect(h, "LB.GET k 9223372036854775807 a b", wrong);
    zset_expect(h, "LB.GET k -9223372036854775808 a b", wrong);
    zset_expect(h, "LB.GET k 1 a b", syntax);
    zset_expect(h, "LB.GET k x a b", "-ERR value is not an integer or out of range");
    zset_expect(h, "LB.GET k 1 a LIMIT", syntax);
}

ZSET_TEST(many_members_are_found_in_groups) {
    enum { MEMBERS = 6100, ASKED = 100, STEP = 61, TIED = 7 };
    for (int i = 0; i < MEMBERS; i++) {
        zset_run(h, "LB.ADD k %d m%d", i / TIED, i);
    }
    static char line[ASKED * 12 + 64], expected[ASKED * 40];
    for (int with_sort = 0; with_sort < 2; with_sort++) {
        int size = snprintf(line, sizeof(line), "LB.GET k %d", ASKED);
        int expected_size = snprintf(expected, sizeof(expected), "[");
        for (int i = 0; i < ASKED; i++) {
            size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", i * STEP);
            int member = (with_sort ? ASKED - 1 - i : i) * STEP;
            int better = MEMBERS - (member / TIED + 1) * TIED;
            expected_size += snprintf(
                expected + expected_size, sizeof(expected) - (size_t)expected_size,
                "%s[m%d :%d :1767225600000 :%d]", i > 0 ? " " : "", member, better, member / TIED);
        }
        strcat(expected, "]");
        strcat(line, with_sort ? " SORT COMP" : " COMP");
        zset_expect(h, line, expected);
    }
}

ZSET_TEST(without_memory_nothing_is_sorted) {
    zset_expect(h, "LB.ADD k 1 a", ":1");
    assert_string_equal(harness_run_failing(h, s, "LB.GET k 1 a SORT", 1),
                        "-OOM out of memory\r\n");
}
