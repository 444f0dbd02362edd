/* STRINGS and CLIENT NUMBERS: numbers that may exceed 2^53, as strings. */
#include "tests/server/zset_fixture.h"

static const char a_native[] = "[a :1 nil :9007199254740993]";
static const char a_text[] = "[a :1 nil 9007199254740993]";

static void fill(struct harness *h) {
    zset_expect(h, "LB.ADD wide:k 9007199254740993 a 18446744073709551615 b", ":2");
    zset_expect(h, "LB.CREATE cents FIELD amount 63 SIGNED SCALE 2", "+OK");
    zset_expect(h, "LB.ADD cents 9007199254740993.21 a", ":1");
}

ZSET_TEST(every_field_of_a_record_is_a_string_when_asked_for) {
    fill(h);
    zset_expect(h, "LB.GET wide:k 1 a", "[[a :1 nil :9007199254740993]]");
    for (int version = 2; version <= 3; version++) {
        zset_expect(h, "LB.GET wide:k 3 a b c STRINGS",
                    version == 2 ? "[[a :1 nil 9007199254740993] [b :0 nil 18446744073709551615] "
                                   "nil*]"
                                 : "[[a :1 _ 9007199254740993] [b :0 _ 18446744073709551615] _]");
        zset_expect(h, "LB.GET cents 1 a PCT WITHKEY STRINGS",
                    version == 2 ? "[[a :0 nil 9007199254740993.21 100 900719925474099321]]"
                                 : "[[a :0 _ 9007199254740993.21 100 900719925474099321]]");
        zset_use_resp3(h);
    }
    zset_expect(h, "LB.GET cents 1 a", "[[a :0 _ ,9007199254740993.21]]");
}

ZSET_TEST(every_command_with_records_takes_strings) {
    fill(h);
    char records[64];
    snprintf(records, sizeof records, "[%s]", a_text);
    zset_expect(h, "LB.RANGE wide:k 1 1 STRINGS", records);
    zset_expect(h, "LB.RANGE wide:k 9007199254740993 9007199254740993 BYSCORE STRINGS", records);
    zset_expect(h, "LB.QUANTILE wide:k 0 STRINGS", records);
    zset_expect(h, "LB.AROUND wide:k MEMBER a 1 STRINGS", records);
    snprintf(records, sizeof records, "[%s]", a_native);
    zset_expect(h, "LB.RANGE wide:k 1 1", records);
    zset_expect(h, "LB.QUANTILE wide:k 0", records);
    zset_expect(h, "HSET p:a name Ann", ":1");
    zset_expect(h, "LB.QUANTILE wide:k 0 STRINGS DATA p:* FIELDS 1 name",
                "[[a :1 nil 9007199254740993 [Ann]]]");
    zset_expect(h, "LB.QUANTILE wide:k 0 DATA p:* FIELDS 1 name STRINGS",
                "[[a :1 nil 9007199254740993 [Ann]]]");
    zset_expect(h, "LB.QUANTILE wide:k STRINGS", "-ERR syntax error");
    zset_expect(h, "LB.ADD wide:k STRINGS WITHRANK INCR 1 a", "[[[a :1 nil 9007199254740994] :1]]");
    zset_expect(h, "LB.ADD wide:k WITHRANK INCR 1 a", "[[[a :1 nil :9007199254740995] :1]]");
    zset_expect(h, "LB.SUBMIT 1 wide:k INCR STRINGS 1 a", "[[[a :1 nil 9007199254740996] :1 :1]]");
    zset_expect(h, "LB.WHERE a MATCH wide* STRINGS", "[[wide:k [a :1 nil 9007199254740996]]]");
    zset_expect(h, "LB.WHERE a MATCH wide*", "[[wide:k [a :1 nil :9007199254740996]]]");
    zset_expect(h, "LB.SUBMIT 1 wide:k STRINGS 4 a", "[[[a :1 nil 4] :1 :1]]");
    zset_expect(h, "LB.SUBMIT 1 wide:k 5 STRINGS", "[[[STRINGS :1 nil :5] nil :1]]");
}

ZSET_TEST(small_and_negative_fields_are_strings_too_and_times_are_not) {
    zset_expect(h, "LB.ADD mixed:k AT 1600000000999 -12.5 3 1 -256 a", ":1");
    zset_expect(h, "LB.GET mixed:k 1 a STRINGS", "[[a :0 :1600000000000 -12.5 3 1 -256]]");
    zset_expect(h, "LB.ADD old:k AT -2208988800000 7 a", ":1");
    zset_expect(h, "LB.GET old:k 1 a STRINGS", "[[a :0 :-2208988800000 7]]");
}

ZSET_TEST(a_time_beyond_2_to_the_53_is_a_string) {
    zset_expect(h, "LB.ADD far:k AT 9007199308800000 1 a", ":1");
    zset_expect(h, "LB.GET far:k 1 a", "[[a :0 :9007199308800000 :1]]");
    zset_expect(h, "LB.GET far:k 1 a STRINGS", "[[a :0 9007199308800000 1]]");
    zset_expect(h, "LB.ADD far:k AT 9007199222400000 1 a", ":1");
    zset_expect(h, "LB.GET far:k 1 a STRINGS", "[[a :0 :9007199222400000 1]]");
}

ZSET_TEST(a_connection_can_ask_for_strings_until_it_asks_for_numbers) {
    fill(h);
    zset_use_resp3(h);
    zset_expect(h, "CLIENT NUMBERS strings", "+OK");
    zset_expect(h, "LB.RANGE wide:k 1 1", "[[a :1 _ 9007199254740993]]");
    zset_expect(h, "ZSCORE wide:k a", "9007199254740993");
    zset_expect(h, "ZRANGE cents 0 0 WITHSCORES", "[[a 9007199254740993.21]]");
    zset_expect(h, "ZRANGE wide:k 0 -1 WITHSCORES",
                "[[a 9007199254740993] [b 18446744073709551615]]");
    zset_expect(h, "ZINCRBY cents 0.01 a", "9007199254740993.22");
    zset_expect(h, "ZUNION 1 wide:k WITHSCORES", "[[a 9007199254740993] [b 18446744073709551615]]");
    zset_expect(h, "ZREVRANK wide:k a", ":1");
    zset_expect(h, "HINCRBY h f 9007199254740993", "9007199254740993");
    zset_expect(h, "LB.WHERE a MATCH wide*", "[[wide:k [a :1 _ 9007199254740993]]]");
    zset_expect(h, "CLIENT NUMBERS both", "-ERR syntax error");
    zset_expect(h, "ZSCORE wide:k a", "9007199254740993");
    zset_expect(h, "CLIENT NUMBERS NATIVE", "+OK");
    zset_expect(h, "LB.RANGE wide:k 1 1", "[[a :1 _ :9007199254740993]]");
    zset_expect(h, "ZSCORE wide:k a", ",9007199254740993");
    zset_expect(h, "ZRANGE cents 0 0 WITHSCORES", "[[a ,9007199254740993.22]]");
    zset_expect(h, "HINCRBY h f 1", ":9007199254740994");
    zset_expect(h, "LB.RANGE wide:k 0 0", "[[b :0 _ (18446744073709551615]]");
}

ZSET_TEST(small_scores_of_a_range_are_strings_too) {
    zset_use_resp3(h);
    zset_expect(h, "ZADD k 1 a 2 b -3 c", ":3");
    zset_expect(h, "ZREVRANGE k 0 -1 WITHSCORES", "[[b ,2] [a ,1] [c ,-3]]");
    zset_expect(h, "CLIENT NUMBERS STRINGS", "+OK");
    zset_expect(h, "ZREVRANGE k 0 -1 WITHSCORES", "[[b 2] [a 1] [c -3]]");
    zset_expect(h, "ZREVRANGE k 0 -1", "[b a c]");
    zset_expect(h, "ZPOPMAX k", "[b 2]");
}

ZSET_TEST(the_choice_outlives_hello_and_ends_with_reset) {
    fill(h);
    zset_expect(h, "CLIENT NUMBERS STRINGS", "+OK");
    zset_use_resp3(h);
    zset_expect(h, "ZSCORE wide:k a", "9007199254740993");
    zset_expect(h, "RESET", "+RESET");
    zset_expect(h, "LB.RANGE wide:k 1 1", "[[a :1 nil :9007199254740993]]");
    zset_use_resp3(h);
    zset_expect(h, "ZSCORE wide:k a", ",9007199254740993");
}

ZSET_TEST(a_transaction_may_change_it_on_the_way) {
    fill(h);
    zset_use_resp3(h);
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "ZSCORE wide:k a", "+QUEUED");
    zset_expect(h, "CLIENT NUMBERS STRINGS", "+QUEUED");
    zset_expect(h, "ZSCORE wide:k a", "+QUEUED");
    zset_expect(h, "EXEC", "[,9007199254740993 +OK 9007199254740993]");
    zset_expect(h, "ZSCORE wide:k a", "9007199254740993");
}

ZSET_TEST(a_client_that_waited_is_served_as_it_asked) {
    struct session *waiting = h->server.sessions.first;
    zset_use_resp3(h);
    zset_expect(h, "CLIENT NUMBERS STRINGS", "+OK");
    harness_expect(h, waiting, "BZPOPMIN k 0", "");
    struct session *other = harness_connect(h);
    harness_expect(h, other, "ZADD k 7 a", ":1\r\n");
    const char expected[] = "*3\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\n7\r\n";
    assert_int_equal(waiting->output.size, sizeof expected - 1);
    assert_memory_equal(waiting->output.at, expected, sizeof expected - 1);
}
