/* Boards with LIMITS: what commands make of them. The rules themselves: tests/skiplist/keyspace/test_limits.c; players:
 * tests/server/acl/test_player_limits.c. */
#include "server/commands/guarding.h"
#include "tests/server/zset_fixture.h"

enum { SECOND_US = 1000000 };

ZSET_TEST(every_result_counts_once_also_one_that_is_not_the_best) {
    zset_expect(h, "LB.CREATE b FIELD score 32 KEEP BEST LIMITS ALL RESULTS 2 PER DAY", "+OK");
    zset_expect(h, "LB.ADD b NX 5 ann", ":1");
    zset_expect(h, "LB.ADD b NX 9 ann", ":0");
    zset_expect(h, "ZADD b NX 9 ann", ":0");
    zset_expect(h, "LB.ADD b XX 9 bob", ":0");
    zset_expect(h, "ZADD b XX 9 bob", ":0");
    zset_expect(h, "ZADD b LT 9 ann", ":0");
    zset_expect(h, "LB.ADD b ONCE 7 4 ann", ":0");
    zset_expect(h, "LB.ADD b ONCE 7 4 ann", ":0");
    zset_expect(h, "LB.ADD b 4 ann", "-TOOSOON RESULTS 2 PER DAY: wait 86400 s");
    zset_expect(h, "ZADD b 6 ann", "-TOOSOON RESULTS 2 PER DAY: wait 86400 s");
    zset_expect(h, "LB.ADD b ONCE 7 4 ann", ":0");
    zset_expect(h, "LB.ADD b ONCE 8 6 ann", "-TOOSOON RESULTS 2 PER DAY: wait 86400 s");
    zset_expect(h, "LB.ADD b ONCE 8 6 bob", ":1");
}

ZSET_TEST(what_stays_as_it_is_is_not_judged) {
    zset_expect(h, "LB.CREATE b FIELD score 20 FIELD level 11 TIME 31 S", "+OK");
    zset_expect(h, "LB.ADD b 200 1 ann", ":1");
    zset_expect(h, "LB.ALTER b LIMITS ALL MAX 100", "+OK");
    zset_expect(h, "LB.ADD b BEST TOUCH 50 1 ann", ":1");
    zset_expect(h, "LB.ADD b * 7 ann", ":1");
    zset_expect(h, "LB.ADD b 201 7 ann", "-LIMIT MAX 100: 201 is above");
}

ZSET_TEST(records_that_no_limit_asks_for_any_more_go_with_the_results) {
    zset_expect(h, "LB.CREATE b FIELD score 32 LIMITS ALL EVERY 1 D", "+OK");
    zset_expect(h, "LB.ADD b 5 ann 6 bob", ":2");
    zset_expect(h, "LB.ALTER b LIMITS ALL MAX 100", "+OK");
    zset_expect(h, "LB.ADD b 7 kim", ":1");
    zset_expect(h, "LB.ADD b 8 kim", ":1");
    zset_expect(h, "LB.ALTER b LIMITS ALL EVERY 1 D", "+OK");
    zset_expect(h, "LB.ADD b 8 ann 9 bob", ":2");
}

ZSET_TEST(results_of_many_are_all_taken_or_none) {
    zset_expect(h, "LB.CREATE b FIELD score 32 LIMITS ALL MAX 100 RESULTS 2 PER HOUR", "+OK");
    zset_expect(h, "LB.ADD b 1 ann 101 bob", "-LIMIT MAX 100: 101 is above");
    zset_expect(h, "ZADD b 1 ann 101 bob", "-LIMIT MAX 100: 101 is above");
    zset_expect(h, "LB.ADD b 1 ann 2 bob 3 ann",
                "-ERR member 'ann' is given twice: a board with LIMITS or HOLD "
                "takes one result of a member at a time");
    zset_expect(h, "ZADD b 1 ann 2 bob 3 ann",
                "-ERR member 'ann' is given twice: a board with LIMITS or HOLD "
                "takes one result of a member at a time");
    zset_expect(h, "ZCARD b", ":0");
    zset_expect(h, "LB.ADD b 1 ann 2 bob", ":2");
    zset_expect(h, "ZADD b 5 ann 6 kim", ":1");
    zset_expect(h, "ZADD b 7 kim 8 ann", "-TOOSOON RESULTS 2 PER HOUR: wait 3600 s");
    zset_expect(h, "ZADD b 7 kim 8 bob", ":0");
    zset_expect(h, "ZREM b ann", ":1");
    zset_expect(h, "ZADD b 1 ann", "-TOOSOON RESULTS 2 PER HOUR: wait 3600 s");
    zset_expect(h, "ZINCRBY b 101 zoe", "-LIMIT MAX 100: 101 is above");
}

/* ---- options ---- */

ZSET_TEST(what_limits_cannot_be_is_said_and_changes_nothing) {
    static const char *const wrong[][2] = {
        {"", "LIMITS needs PLAYERS or ALL"},
        {"SOME MAX 1", "LIMITS 'SOME' is unknown: use PLAYERS or ALL"},
        {"ALL",
         "LIMITS ALL needs limits behind it: MAX, MIN, STEP, EVERY, RESULTS, GAIN or MINTIME"},
        {"ALL CAP 5",
         "LIMITS ALL needs limits behind it: MAX, MIN, STEP, EVERY, RESULTS, GAIN or MINTIME"},
        {"ALL MAX", "LIMITS MAX is not valid: use MAX value"},
        {"ALL MAX x", "LIMITS MAX x is not valid: use MAX value"},
        {"ALL MAX 1.5", "LIMITS has a value with more decimals than the board's first field keeps"},
        {"ALL MAX 1 MAX 2", "LIMITS MAX may be given only once"},
        {"ALL MAX 1 MIN 2", "LIMITS has a MAX below its MIN: no result would do"},
        {"ALL STEP 0", "LIMITS STEP 0 is not valid: use STEP value"},
        {"ALL EVERY 0 S", "LIMITS EVERY 0 is not valid: use EVERY n S|M|H|D"},
        {"ALL EVERY 5", "LIMITS EVERY 5 is not valid: use EVERY n S|M|H|D"},
        {"ALL EVERY 5 HOUR", "LIMITS EVERY 5 is not valid: use EVERY n S|M|H|D"},
        {"ALL EVERY 1.5 S", "LIMITS EVERY 1.5 is not valid: use EVERY n S|M|H|D"},
        {"ALL EVERY 4294967295 D", "LIMITS EVERY 4294967295 is not valid: use EVERY n S|M|H|D"},
        {"ALL RESULTS 5 DAY", "LIMITS RESULTS 5 is not valid: use RESULTS n PER MINUTE|HOUR|DAY"},
        {"ALL RESULTS 5 PER S", "LIMITS RESULTS 5 is not valid: use RESULTS n PER MINUTE|HOUR|DAY"},
        {"ALL GAIN -5 PER DAY", "LIMITS GAIN -5 is not valid: use GAIN value PER MINUTE|HOUR|DAY"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        zset_expect(h, formatted("LB.CREATE b FIELD score 32 LIMITS %s", wrong[i][0]),
                    formatted("-ERR %s", wrong[i][1]));
    }
    zset_expect(
        h, "LB.CREATE b FIELD score 53 DOUBLE LIMITS ALL MAX 1",
        "-ERR LIMITS needs a first field without DOUBLE and DECAY: limits are exact numbers");
    zset_expect(
        h, "LB.CREATE b RATING ELO LIMITS ALL MAX 1",
        "-ERR LIMITS and RATING exclude each other: matches rate players, who send no results");
    zset_expect(h, "EXISTS b", ":0");
}

ZSET_TEST(every_without_a_unit_is_that_of_the_period) {
    zset_expect(h, "LB.CREATE a FIELD score 32 PERIOD DAY LIMITS ALL MAX 5 EVERY 2", "+OK");
    zset_expect(h, "LB.CREATE b FIELD score 32 LIMITS ALL MAX 5 EVERY 2 PERIOD DAY", "+OK");
    zset_expect(h, "LB.CREATE c FIELD score 32 LIMITS ALL EVERY 2 S PERIOD DAY EVERY 3", "+OK");
    zset_expect_part(h, "LB.INFO a", "every :2");
    zset_expect_part(h, "LB.INFO b", "every :2");
    zset_expect_part(h, "LB.INFO b", "limits ALL MAX 5 tickets :0 hold nil held nil window");
    zset_expect_part(h, "LB.INFO c", "limits ALL EVERY 2 S tickets :0 hold nil held nil window");
}

ZSET_TEST(limits_come_go_and_change_on_a_board_with_members) {
    zset_expect(h, "LB.CREATE b FIELD score 32 SCALE 2 TIME 24 M", "+OK");
    zset_expect(h, "LB.ADD b 5 ann 6 bob", ":2");
    zset_expect(h, "LB.ALTER b LIMITS PLAYERS MAX 12.50 EVERY 120 S GAIN 3 PER DAY", "+OK");
    zset_expect_part(h, "LB.INFO b", "limits PLAYERS MAX 12.5 EVERY 2 M GAIN 3 PER DAY");
    zset_expect(h, "LB.ALTER b LIMITS ALL EVERY 1 H", "+OK");
    zset_expect(h, "LB.ADD b 7 ann", ":1");
    zset_expect(h, "LB.ADD b 8 ann", "-TOOSOON EVERY 1 H: wait 3600 s");
    zset_expect(h, "LB.ALTER b LIMITS ALL EVERY 30 S", "+OK");
    zset_expect(h, "LB.ADD b 8 ann", "-TOOSOON EVERY 30 S: wait 30 s");
    zset_expect(h, "LB.ALTER b CAP 10", "+OK");
    zset_expect(h, "LB.ADD b 8 ann", "-TOOSOON EVERY 30 S: wait 30 s");
    zset_expect(h, "LB.ALTER b LIMITS NONE", "+OK");
    zset_expect_part(h, "LB.INFO b", "limits nil");
    zset_expect(h, "LB.ADD b 8 ann 9 ann", ":2");
    zset_expect(h, "LB.ALTER b LIMITS ALL EVERY 30 S", "+OK");
    zset_expect(h, "LB.ADD b 8 ann", ":1");
    zset_expect(h, "LB.RANGE b 0 -1", "[[ann :0 :1767225600000 8] [bob :1 :1767225600000 6]]");
}

ZSET_TEST(records_of_thousands_go_with_their_limits) {
    zset_expect(h, "LB.CREATE b FIELD score 32 LIMITS ALL RESULTS 1 PER DAY", "+OK");
    for (int i = 0; i < 3000; i++) {
        zset_expect(h, formatted("LB.ADD b %d m%d", i, i), ":1");
    }
    zset_expect(h, "LB.ALTER b LIMITS NONE", "+OK");
    zset_expect(h, "LB.ADD b 5 m7", ":1");
    zset_expect(h, "LB.ALTER b LIMITS ALL RESULTS 1 PER DAY", "+OK");
    zset_expect(h, "LB.ADD b 6 m7", ":1");
    zset_expect(h, "LB.ADD b 7 m7", "-TOOSOON RESULTS 1 PER DAY: wait 86400 s");
}

/* ---- with other features ---- */

ZSET_TEST(records_are_where_their_board_is) {
    zset_expect(h, "LB.CREATE b FIELD score 32 LIMITS ALL EVERY 1 H", "+OK");
    zset_expect(h, "ZADD b 5 ann", ":1");
    zset_expect(h, "COPY b c", ":1");
    zset_expect(h, "RENAME b d", "+OK");
    zset_expect(h, "ZADD c 6 ann", "-TOOSOON EVERY 1 H: wait 3600 s");
    zset_expect(h, "ZADD d 6 ann", "-TOOSOON EVERY 1 H: wait 3600 s");
    zset_expect(h, "LB.MOVE ann eve", "[:2 :0]");
    zset_expect(h, "ZADD c 6 ann", ":1");
    zset_expect(h, "LB.FORGET ann", ":1");
    zset_expect(h, "ZADD c 6 ann", ":1");
    zset_expect(h, "ZREM c ann", ":1");
    zset_expect(h, "LB.MOVE ann kim", "[:0 :0]");
    zset_expect(h, "ZADD c 7 ann", ":1");
    zset_expect(h, "ZREM c ann", ":1");
    zset_expect(h, "LB.FORGET ann", ":1");
    zset_expect(h, "ZADD c 8 ann", ":1");
    zset_expect(h, "DEL c", ":1");
    zset_expect(h, "ZADD c 6 ann", ":1");
    zset_expect(h, "ZADD c 7 ann", ":0");
}

ZSET_TEST(a_period_begins_with_new_records_and_an_archive_keeps_its_own) {
    zset_expect(h,
                "LB.CREATE b FIELD score 32 TIME 20 S PERIOD DAY ARCHIVED WRITABLE "
                "LIMITS ALL RESULTS 1 PER DAY",
                "+OK");
    harness_pass_seconds(h, 3600);
    zset_expect(h, "ZADD b 5 ann", ":1");
    harness_pass_seconds(h, 23 * 3600);
    zset_expect(h, "ZADD b 6 ann", ":1");
    zset_expect(h, "ZADD b 7 ann", "-TOOSOON RESULTS 1 PER DAY: wait 86400 s");
    zset_expect(h, "ZADD b@2026-01-01 8 ann", "-TOOSOON RESULTS 1 PER DAY: wait 3600 s");
}

ZSET_TEST(records_whose_times_are_over_go_when_others_come) {
    zset_expect(h, "LB.CREATE b FIELD score 32 CAP 10 LIMITS ALL EVERY 1 S", "+OK");
    for (int i = 0; i < 2000; i++) {
        zset_expect_part(h, formatted("LB.ADD b %d m%d", i, i), ":");
        h->wall_us += SECOND_US / 2;
    }
    struct registry_key *key = registry_find(h->server.registry, 0, BYTES("b"), 0);
    assert_non_null(key);
    assert_true(registry_note_count(key) < 200);
}

/* Only with RATING are there notes that are no member's. */
ZSET_TEST(who_is_forgotten_leaves_no_record_by_whatever_name) {
    zset_expect(h, "LB.CREATE b FIELD score 32 LIMITS ALL RESULTS 2 PER HOUR", "+OK");
    zset_expect(h, "LB.ADD b 5 \"\\x00ann\" 6 bob", ":2");
    zset_expect(h, "LB.FORGET \"\\x00ann\"", ":1");
    const struct registry_key *key =
        registry_find(h->server.registry, 0, bytes_from_text("b"), h->wall_us / 1000);
    assert_non_null(key);
    assert_int_equal(registry_note_count(key), 1);
}
