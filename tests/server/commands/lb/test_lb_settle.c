/* LB.SETTLE, LB.LIST UNSETTLED and SETTLE YES, sentence by sentence. */
#include "tests/server/failing_memory.h"

#define DAY_US INT64_C(86400000000)
#define DAY_MS (DAY_US / 1000)

static const char settings[] = "layout daily FIELD score 34 TIME 30 MS\n"
                               "board day:* daily PERIOD DAY ARCHIVE 2 SETTLE YES\n"
                               "board short:* daily PERIOD DAY ARCHIVE 2\n"
                               "board roll:* default SETTLE YES\n";

static void begin_settle(struct harness *h) {
    h->wall_us = INT64_C(1794830400000000); /* 2026-11-16T12:00:00Z */
}

#define SETTLE_TEST(name)                                                                          \
    static void name##_settle(struct harness *h);                                                  \
    HARNESS_TEST(name, settings) {                                                                 \
        begin_settle(h);                                                                           \
        name##_settle(h);                                                                          \
    }                                                                                              \
    static void name##_settle(struct harness *h)

/* The names in a reply of LB.LIST, in their order. */
static const char *names_of(const char *list) {
    static char names[1024];
    names[0] = '\0';
    for (const char *at = list; (at = strstr(at, "[name ")) != NULL;) {
        size_t size = strlen(names);
        at += strlen("[name ");
        snprintf(names + size, sizeof names - size, "%s%.*s", size > 0 ? " " : "",
                 (int)strcspn(at, " "), at);
    }
    return names;
}

#define expect_unsettled(h, expected)                                                              \
    assert_string_equal(names_of(zset_run(h, "LB.LIST UNSETTLED")), (expected))

SETTLE_TEST(an_archive_is_settled_once) {
    zset_expect(h, "ZADD short:a 5 ann", ":1");
    zset_expect(h, "LB.SETTLE short:a",
                "-ERR board is no archive: it has nothing to settle until its PERIOD ends, or "
                "LB.ROLL ends it");
    h->wall_us += DAY_US;
    shadow_end(h->shadow); /* archives expire there by the machine's clock */
    zset_expect_part(h, "LB.INFO short:a@2026-11-16", "settle :0 settled :0 ended :1794873600000");
    zset_expect(h, "LB.SETTLE short:a@2026-11-16", ":1");
    zset_expect(h, "LB.SETTLE short:a@2026-11-16", ":0");
    zset_expect_part(h, "LB.INFO short:a@2026-11-16", "settle :0 settled :1 ended :1794873600000");
    assert_int_equal(registry_totals(h->server.registry)->settled, 1);
    zset_expect(h, "LB.SETTLE nobody", ":0");
    zset_expect(h, "HSET h f v", ":1");
    zset_expect(h, "LB.SETTLE h",
                "-WRONGTYPE Operation against a key holding the wrong kind of value");
    zset_expect(h, "LB.SETTLE", "-ERR wrong number of arguments for 'lb.settle' command");
}

SETTLE_TEST(what_lb_roll_makes_is_to_be_settled_too) {
    zset_expect(h, "ZADD roll:a 5 ann", ":1");
    shadow_end(h->shadow); /* archives expire there by the machine's clock */
    zset_expect(h, "LB.ROLL roll:a old EX 100", ":1");
    zset_expect_part(h, "LB.INFO old", "settled :0 ended :1794830400000");
    zset_expect(h, "TTL old", ":-1");
    harness_pass_seconds(h, 60);
    zset_expect(h, "LB.SETTLE old", ":1");
    zset_expect(h, "TTL old", ":40");
    zset_expect(h, "ZADD k 5 ann", ":1");
    zset_expect(h, "LB.ROLL k older EX 100", ":1");
    zset_expect(h, "TTL older", ":100");
    zset_expect(h, "LB.SETTLE older", ":1");
    zset_expect(h, "TTL older", ":100");
}

/* A file that has it must be one that is loaded. */
SETTLE_TEST(an_expiry_that_waits_may_be_as_far_as_any) {
    const char *reason;
    shadow_end(h->shadow);
    zset_expect(h, "ZADD roll:a 5 ann", ":1");
    zset_expect(h, "LB.ROLL roll:a far EX 9000000000000000", ":1");
    assert_true(
        board_options_validate(board_options_of(board_layout(zset_board(h, "far"))), &reason));
}

SETTLE_TEST(with_settle_yes_nothing_unsettled_is_deleted) {
    zset_expect(h, "ZADD day:a 5 ann", ":1");
    zset_expect(h, "ZADD short:a 5 ann", ":1");
    h->wall_us += DAY_US;
    zset_expect(h, "ZADD day:a 6 ann", ":1");
    zset_expect(h, "PTTL day:a@2026-11-16", ":-1");
    zset_expect(h, "LB.SETTLE day:a@2026-11-16", ":1");
    assert_int_equal(strtoll(zset_run(h, "PTTL day:a@2026-11-16") + 1, NULL, 10),
                     2 * DAY_MS - DAY_MS / 2);
    h->wall_us += 10 * DAY_US;
    shadow_end(h->shadow); /* archives expire there by the machine's clock */
    zset_expect(h, "EXISTS short:a@2026-11-16 day:a@2026-11-16", ":0");
    zset_expect(h, "EXISTS day:a@2026-11-17", ":1");
    /* It would have gone on the 20th. */
    zset_expect(h, "LB.SETTLE day:a@2026-11-17", ":1");
    zset_expect(h, "EXISTS day:a@2026-11-17", ":0");
    zset_expect(h, "LB.SETTLE day:a@2026-11-17", ":0");
}

/* ARCHIVE 2: but nobody has settled them. */
SETTLE_TEST(what_is_kept_beyond_archive_n_is_found_as_any_archive) {
    shadow_end(h->shadow);
    zset_expect(h, "LB.CREATE kept FIELD points 20 PERIOD DAY ARCHIVE 2 SETTLE YES", "+OK");
    zset_expect(h, "ZADD kept 5 ann 9 bob", ":2");
    h->wall_us += DAY_US;
    zset_expect(h, "ZADD kept 7 ann 6 bob", ":2");
    h->wall_us += 5 * DAY_US;
    zset_expect(h, "ZADD kept 1 ann", ":1");
    zset_expect_part(h, "LB.INFO kept", "archives [kept@2026-11-17 kept@2026-11-16]");
    zset_expect_part(h, "LB.LIST MATCH kept", "archives [kept@2026-11-17 kept@2026-11-16]");
    zset_expect(h, "LB.GET kept 1 ann SINCE LAST", "[[ann :0 nil :1 :0]]");
    zset_expect(h, "LB.SETTLE kept@2026-11-17", ":1");
    zset_expect_part(h, "LB.INFO kept", "archives [kept@2026-11-16]");
    zset_expect(h, "LB.GET kept 1 ann SINCE LAST", "[[ann :0 nil :1 :1]]");
}

SETTLE_TEST(an_expiry_that_was_set_by_hand_stays) {
    zset_expect(h, "ZADD day:a 5 ann", ":1");
    h->wall_us += DAY_US;
    zset_expect(h, "EXPIRE day:a@2026-11-16 1000", ":1");
    zset_expect(h, "LB.SETTLE day:a@2026-11-16", ":1");
    zset_expect(h, "TTL day:a@2026-11-16", ":1000");
}

SETTLE_TEST(the_unsettled_are_listed_oldest_first) {
    zset_expect(h, "LB.LIST UNSETTLED", "[0 []]");
    for (int day = 0; day < 3; day++) {
        zset_expect(h, "ZADD day:a 5 ann", ":1");
        zset_expect(h, "ZADD day:b 5 ann", ":1");
        zset_expect(h, "ZADD plain 5 ann", day == 0 ? ":1" : ":0");
        harness_pass_seconds(h, 3600);
        zset_expect(h, "ZADD roll:x 5 ann", ":1");
        zset_expect(h, formatted("LB.ROLL roll:x rolled:%d", day), ":1");
        zset_expect(h, formatted("LB.SETTLE rolled:%d", day), ":1");
        zset_expect(h, "ZADD roll:x 5 ann", ":1");
        zset_expect(h, formatted("LB.ROLL roll:x again:%d", day), ":1");
        h->wall_us += DAY_US - INT64_C(3600000000);
    }
    zset_expect(h, "ZCARD day:a", ":0");
    zset_expect(h, "ZCARD day:b", ":0");
    const char *names = names_of(zset_run(h, "LB.LIST UNSETTLED"));
    static const char *const order[] = {"again:0",     "@2026-11-16", "again:1",
                                        "@2026-11-17", "again:2",     "@2026-11-18"};
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        names = strstr(names, order[i]);
        assert_non_null(names);
    }
    assert_string_equal(names_of(zset_run(h, "LB.LIST UNSETTLED MATCH day:a*")),
                        "day:a@2026-11-16 day:a@2026-11-17 day:a@2026-11-18");
    zset_expect(h, "LB.SETTLE day:a@2026-11-17", ":1");
    assert_string_equal(names_of(zset_run(h, "LB.LIST MATCH day:a* UNSETTLED COUNT 500")),
                        "day:a@2026-11-16 day:a@2026-11-18");
    assert_int_equal(registry_unsettled_count(h->server.registry), 8);
    zset_expect(h, "FLUSHDB", "+OK");
    expect_unsettled(h, "");
}

SETTLE_TEST(a_renamed_archive_is_one_and_a_copied_one_is_not) {
    zset_expect(h, "ZADD day:a 5 ann", ":1");
    h->wall_us += DAY_US;
    zset_expect(h, "ZCARD day:a@2026-11-16", ":1");
    zset_expect(h, "COPY day:a@2026-11-16 copy", ":1");
    zset_expect(h, "RENAME day:a@2026-11-16 moved", "+OK");
    expect_unsettled(h, "moved");
    zset_expect_part(h, "LB.INFO copy", "settled nil ended nil");
    zset_expect(h, "LB.SETTLE moved", ":1");
    expect_unsettled(h, "");
}

SETTLE_TEST(it_is_part_of_a_transaction) {
    zset_expect(h, "ZADD day:a 5 ann", ":1");
    h->wall_us += DAY_US;
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "LB.SETTLE day:a@2026-11-16", "+QUEUED");
    zset_expect(h, "LB.SETTLE day:a@2026-11-16", "+QUEUED");
    zset_expect(h, "LB.LIST UNSETTLED", "+QUEUED");
    zset_expect(h, "EXEC", "[:1 :0 [0 []]]");
}

SETTLE_TEST(options_that_leave_nothing_to_settle_are_refused) {
    static const char *const rows[][2] = {
        {"LB.CREATE k PERIOD DAY ARCHIVE 0 SETTLE YES",
         "-ERR SETTLE YES requires ARCHIVE 1 or more: without an archive there is nothing to "
         "settle"},
        {"LB.CREATE k SETTLE MAYBE", "-ERR SETTLE 'MAYBE' is unknown: use YES or NO"},
        {"LB.CREATE k SETTLE", "-ERR SETTLE needs YES or NO"},
        {"LB.CREATE k SETTLE YES SETTLE NO", "-ERR SETTLE may be given only once"},
        {"LB.CREATE k SETTLE YES", "+OK"},
        {"LB.ALTER k PERIOD DAY ARCHIVE 0", "-ERR SETTLE YES requires ARCHIVE 1 or more: without "
                                            "an archive there is nothing to settle"},
        {"LB.ALTER k PERIOD DAY ARCHIVE 0 SETTLE NO", "+OK"},
        {"LB.ALTER k ARCHIVE 1 SETTLE YES", "+OK"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_row("%s", rows[i][0]);
        zset_expect(h, rows[i][0], rows[i][1]);
    }
    zset_expect_part(h, "LB.INFO k", "settle :1 settled nil");
}

SETTLE_TEST(stale_options_say_what_is_wrong) {
    static const char *const rows[][2] = {
        {"LB.CREATE k STALE 6", "-ERR STALE needs a number and a unit: STALE n MINUTE|HOUR|DAY"},
        {"LB.CREATE k STALE 0 HOUR", "-ERR STALE '0' is not a valid number of units: 1..1000000"},
        {"LB.CREATE k STALE 1000001 HOUR",
         "-ERR STALE '1000001' is not a valid number of units: 1..1000000"},
        {"LB.CREATE k STALE 6 WEEK", "-ERR STALE 6 'WEEK' is unknown: use MINUTE, HOUR or DAY"},
        {"LB.CREATE k STALE 6 HOUR STALE 7 HOUR", "-ERR STALE may be given only once"},
        {"LB.CREATE k FIELD a 30 STALE 6 HOUR", "-ERR STALE requires a layout with a TIME"},
        {"LB.CREATE k COPY", "-ERR COPY requires PERIOD HOUR|DAY|WEEK|MONTH|YEAR"},
        {"LB.CREATE k STALE 6 hour", "+OK"},
        {"LB.ALTER k STALE 1000000 DAY", "+OK"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_row("%s", rows[i][0]);
        zset_expect_part(h, rows[i][0], rows[i][1]);
    }
    zset_expect_part(h, "LB.INFO k", "stale :86400000000000 settle");
    zset_expect(h, "LB.ALTER k STALE NONE", "+OK");
    zset_expect_part(h, "LB.INFO k", "stale nil settle");
}

/* The period's end is the calendar's, and when it was noticed does not matter; nor a clock that is set back. */
SETTLE_TEST(a_clock_that_is_set_changes_nothing_that_is_noted) {
    zset_expect(h, "ZADD day:a 5 ann", ":1");
    h->wall_us += 40 * DAY_US;
    zset_expect(h, "ZADD day:a 5 ann", ":1");
    zset_expect_part(h, "LB.INFO day:a@2026-11-16", "settled :0 ended :1794873600000");
    h->wall_us -= 41 * DAY_US;
    shadow_end(h->shadow);
    expect_unsettled(h, "day:a@2026-11-16");
    zset_expect(h, "LB.SETTLE day:a@2026-11-16", ":1");
    expect_unsettled(h, "");
}
