/* LB.ROLL, sentence by sentence. */
#include "tests/server/zset_fixture.h"

ZSET_TEST(the_members_are_archived_and_an_empty_board_begins) {
    zset_expect(h, "LB.CREATE season FIELD points 22 TIME 41 MS CAP 3 KEEP BEST", "+OK");
    zset_expect(h, "ZADD season 5 ann 5 bob 7 cid", ":3");
    harness_pass_seconds(h, 60);
    zset_expect(h, "LB.ROLL season season:1", ":3");
    zset_expect(h, "ZCARD season", ":0");
    zset_expect(h, "EXISTS season", ":1");
    zset_expect(h, "LB.RANGE season:1 0 -1",
                "[[cid :0 :1767225600000 :7] [ann :1 :1767225600000 :5] [bob :2 :1767225600000 "
                ":5]]");
    zset_expect(h, "TTL season:1", ":-1");
    /* Layout and options are those of before, on both. */
    zset_expect(h, "ZADD season 1 a 2 b 3 c 4 d 1 d", ":3");
    zset_expect(h, "ZREVRANGE season 0 -1", "[d c b]");
    zset_expect(h, "ZADD season:1 6 dan 4 ann", ":1");
    zset_expect(h, "ZREVRANGE season:1 0 -1 WITHSCORES", "[cid 7 dan 6 ann 5]");
    zset_expect(h, "LB.ROLL season season:2", ":3");
    zset_expect(h, "DBSIZE", ":3");
    /* An archive is removed with its last member. */
    zset_expect(h, "ZREM season:1 cid dan ann", ":3");
    zset_expect(h, "EXISTS season:1", ":0");
}

ZSET_TEST(a_board_that_came_to_be_by_a_write_comes_again_with_the_next_one) {
    zset_expect(h, "ZADD laps:a 5 ann", ":1");
    zset_expect(h, "LB.ROLL laps:a laps:old", ":1");
    zset_expect(h, "EXISTS laps:a", ":0");
    zset_expect(h, "ZADD laps:a 7 bob", ":1");
    zset_expect_part(h, "LB.INFO laps:a", "layout FIELD ms 32 ASC TIME 31 S bits");
    zset_expect(h, "ZRANGE laps:old 0 -1 WITHSCORES", "[ann 5]");
}

ZSET_TEST(an_empty_board_leaves_no_archive) {
    zset_expect(h, "LB.CREATE k", "+OK");
    zset_expect(h, "LB.ROLL k old", ":0");
    zset_expect(h, "EXISTS k old", ":1");
}

static const char *info_of(struct harness *h, const char *key) {
    return zset_run(h, "LB.INFO %s", key);
}

ZSET_TEST(the_new_boards_window_can_be_moved) {
    static const char begin[] = "TIME 30 MS START 2026-01-01T00:00:00Z bits";
    zset_expect(h, "LB.CREATE k FIELD a 20 TIME 30 MS START 2026-01-01T00:00:00Z", "+OK");
    zset_expect(h, "ZADD k 5 ann", ":1");
    zset_expect(h, "LB.ROLL k old START 2026-01-08T00:00:00+08:00", ":1");
    assert_non_null(strstr(info_of(h, "old"), begin));
    assert_non_null(strstr(info_of(h, "k"), "TIME 30 MS START 2026-01-07T16:00:00Z bits"));
    assert_memory_equal(zset_run(h, "ZADD k 5 ann"), "-ERR time ", 10);
    harness_pass_seconds(h, 7 * 86400);
    zset_expect(h, "ZADD k 5 ann", ":1");
    zset_expect(h, "LB.ROLL k older END 1768500000000", ":1");
    assert_non_null(strstr(info_of(h, "k"), "TIME 30 MS END 2026-01-15T18:00:00Z bits"));
    zset_expect(h, "ZADD k 5 ann", ":1");
    /* Without members it moves as well. */
    zset_expect(h, "ZREM k ann", ":1");
    zset_expect(h, "LB.ROLL k oldest START 0", ":0");
    assert_non_null(strstr(info_of(h, "k"), "TIME 30 MS START 1970-01-01T00:00:00Z bits"));
}

/* Its window is stored nowhere else. */
ZSET_TEST(a_board_with_a_window_of_its_own_stays) {
    zset_expect(h, "ZADD k 5 ann", ":1");
    zset_expect(h, "LB.ROLL k old START 2025-01-01T00:00:00Z", ":1");
    zset_expect(h, "EXISTS k", ":1");
    zset_expect(h, "ZADD k 5 ann", ":1");
    zset_expect(h, "ZREM k ann", ":1");
    assert_non_null(strstr(info_of(h, "k"), "START 2025-01-01T00:00:00Z bits"));
}

ZSET_TEST(an_archive_may_have_an_end) {
    zset_expect(h, "LB.CREATE k", "+OK");
    zset_expect(h, "ZADD k 5 ann", ":1");
    zset_expect(h, "EXPIRE k 5000", ":1");
    zset_expect(h, "LB.ROLL k old EX 100 START 2025-01-01T00:00:00Z", ":1");
    zset_expect(h, "TTL old", ":100");
    zset_expect(h, "TTL k", ":5000");
    harness_pass_seconds(h, 100);
    zset_expect(h, "EXISTS old k", ":1");
}

ZSET_TEST(a_board_with_a_period_goes_on_in_it) {
    zset_expect(h, "LB.CREATE k PERIOD DAY", "+OK");
    zset_expect(h, "ZADD k 5 ann", ":1");
    zset_expect(h, "LB.ROLL k noon", ":1");
    zset_expect(h, "ZADD k 6 bob", ":1");
    harness_pass_seconds(h, 86400);
    zset_expect(h, "ZRANGE k@2026-01-01 0 -1", "[bob]");
    zset_expect(h, "ZRANGE noon 0 -1", "[ann]");
    assert_non_null(strstr(info_of(h, "noon"), "period nil"));
    zset_expect(h, "ZADD k 7 cid", ":1");
    zset_expect(h, "LB.ROLL k x START 0", "-ERR START is not allowed: PERIOD moves the times");
    zset_expect(h, "LB.ROLL k x END 0", "-ERR END is not allowed: PERIOD moves the times");
    zset_expect(h, "ZRANGE k 0 -1", "[cid]");
}

ZSET_TEST(what_is_wrong_is_named_and_changes_nothing) {
    static const char *const samples[][2] = {
        {"LB.ROLL none old", "-ERR no such key"},
        {"LB.ROLL none k", "-ERR no such key"},
        {"LB.ROLL k k", "-BUSYKEY Target key name already exists."},
        {"LB.ROLL k there", "-BUSYKEY Target key name already exists."},
        {"LB.ROLL k \"\"", "-ERR key is 0 bytes long: 1..65536 are allowed"},
        {"LB.ROLL k old START", "-ERR syntax error"},
        {"LB.ROLL k old AT 5", "-ERR syntax error"},
        {"LB.ROLL k old START 5 END 5", "-ERR START or END may be given only once"},
        {"LB.ROLL k old START 5 START 5", "-ERR START or END may be given only once"},
        {"LB.ROLL k old START \"20\\r\\n26\"",
         "-ERR START '20??26' is not a time: use ISO 8601 with an offset, or unix milliseconds"},
        {"LB.ROLL k old END 2026-13-01T00:00:00Z",
         "-ERR END '2026-13-01T00:00:00Z' is not a time: use ISO 8601 with an offset, or unix "
         "milliseconds"},
        {"LB.ROLL k old END -9223372036854775",
         "-ERR END is too early: this layout's START would be out of range"},
        {"LB.ROLL bare:k old START 5", "-ERR START is not allowed: this layout has no TIME"},
        {"LB.ROLL k old EX", "-ERR syntax error"},
        {"LB.ROLL k old EX 5 EX 5", "-ERR syntax error"},
        {"LB.ROLL k old EX 1.5", "-ERR value is not an integer or out of range"},
        {"LB.ROLL k old EX 0", "-ERR invalid expire time in 'lb.roll' command"},
        {"LB.ROLL k old EX -1", "-ERR invalid expire time in 'lb.roll' command"},
        {"LB.ROLL k old EX 9223372036854775807", "-ERR invalid expire time in 'lb.roll' command"},
        {"LB.ROLL k old EX 9223372036854775", "-ERR invalid expire time in 'lb.roll' command"},
    };
    zset_expect(h, "ZADD k 5 ann", ":1");
    zset_expect(h, "ZADD bare:k 5 ann", ":1");
    zset_expect(h, "ZADD there 5 ann", ":1");
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        zset_expect_unchanged(h, "k", samples[i][0], samples[i][1]);
        zset_expect(h, "DBSIZE", ":3");
    }
}

ZSET_TEST(whoever_watches_either_name_hears_of_it) {
    struct session *other = harness_connect(h);
    static const char *const watched[] = {"k", "old"};
    for (size_t i = 0; i < 2; i++) {
        zset_run(h, "FLUSHALL");
        zset_expect(h, "LB.CREATE k", "+OK");
        zset_expect(h, "ZADD k 5 ann", ":1");
        zset_run(h, "WATCH %s", watched[i]);
        harness_expect(h, other, "LB.ROLL k old", ":1\r\n");
        zset_expect(h, "MULTI", "+OK");
        zset_expect(h, "PING", "+QUEUED");
        zset_expect(h, "EXEC", "nil*");
    }
}
