/* Boards with a PERIOD, sentence by sentence. Random ones: the naive twin of a registry in
 * tests/skiplist/keyspace/test_registry_twin.c. */
#include "tests/server/zset_fixture.h"

#define DAY_US INT64_C(86400000000)

static const char period_settings[] = "layout week FIELD score 34 TIME 30 MS\n"
                                      "layout fine FIELD score 20 TIME 42 US\n"
                                      "layout bare FIELD score 30\n"
                                      "board week:* week PERIOD WEEK TZ +08:00 ARCHIVE 2\n"
                                      "board day:* fine PERIOD DAY\n"
                                      "board bare:* bare PERIOD DAY CAP 2 KEEP BEST\n";

static int start(void **state) {
    struct harness *h = harness_create(period_settings);
    harness_connect(h);
    h->wall_us = zset_us("2026-11-16T12:00:00Z");
    *state = h;
    return 0;
}

/* ---- the end of a period ---- */

#define PERIOD_TEST(name) TEST_GIVEN(name, start, harness_tear_down, struct harness *h)

PERIOD_TEST(a_period_ends_to_the_microsecond) {
    zset_expect(h, "ZADD day:a 1 ann", ":1");
    h->wall_us = zset_us("2026-11-17T00:00:00Z") - 1;
    zset_expect(h, "ZADD day:a 2 bob", ":1");
    zset_expect(h, "ZCARD day:a", ":2");
    h->wall_us += 1;
    zset_expect(h, "ZADD day:a 3 cid", ":1");
    zset_expect(h, "ZREVRANGE day:a 0 -1 WITHSCORES", "[cid 3]");
    zset_expect(h, "ZREVRANGE day:a@2026-11-16 0 -1 WITHSCORES", "[bob 2 ann 1]");
    zset_expect(h, "LB.GET day:a@2026-11-16 1 bob", "[[bob :0 :1794873599999 :2]]");
    zset_expect(h, "LB.GET day:a 1 cid", "[[cid :0 :1794873600000 :3]]");
    zset_expect(h, "DBSIZE", ":2");
}

PERIOD_TEST(a_week_in_a_zone_ends_at_the_wall_clocks_hour) {
    zset_expect(h, "LB.CREATE raid FIELD a 20 PERIOD WEEK ON SUN AT 18 TZ Europe/Berlin", "+OK");
    static const char *const ends[] = {"2027-03-21T18:00:00+01:00", "2027-03-28T18:00:00+02:00",
                                       "2027-04-04T18:00:00+02:00", "2027-10-31T18:00:00+01:00",
                                       "2027-11-07T18:00:00+01:00"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        h->wall_us = zset_us(ends[i]) - 1;
        zset_expect(h, "ZADD raid 1 old", ":1");
        h->wall_us += 1;
        zset_expect(h, "ZCARD raid", ":0");
    }
    zset_expect(h, "KEYS *",
                "[raid raid@2027-03-14 raid@2027-03-21 raid@2027-03-28 raid@2027-10-24 "
                "raid@2027-10-31]");
}

PERIOD_TEST(an_hour_becomes_an_archive_with_its_hour) {
    zset_expect(h, "LB.CREATE heat FIELD a 20 TIME 12 S PERIOD HOUR ARCHIVE 2", "+OK");
    zset_expect(h, "ZADD heat 5 ann", ":1");
    h->wall_us = zset_us("2026-11-16T13:00:00Z");
    zset_expect(h, "ZCARD heat", ":0");
    zset_expect(h, "LB.GET heat@2026-11-16T12 1 ann", "[[ann :0 :1794830400000 :5]]");
    h->wall_us = zset_us("2026-11-16T15:00:00Z") - 1;
    zset_expect(h, "EXISTS heat@2026-11-16T12", ":1");
    h->wall_us += 1;
    zset_expect(h, "EXISTS heat@2026-11-16T12", ":0");
}

/* In the last millisecond of the period the board is still the old one; in the next it is not,
 * whichever command runs first. */
PERIOD_TEST(a_writer_in_the_first_millisecond_lands_in_the_new_period) {
    static const char *const writes[] = {"ZADD week:a 5 new", "ZINCRBY week:a 5 new",
                                         "LB.ADD week:a 5 new", "ZADD week:a INCR 5 new"};
    int64_t end_us = zset_us("2026-11-23T00:00:00+08:00");
    h->wall_us = end_us - 7 * DAY_US;
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        zset_expect(h, "ZADD week:a 1 old", ":1");
        h->wall_us = end_us - 1000 + (int64_t)(i * 300);
        zset_expect(h, "ZSCORE week:a old", "1");
        h->wall_us = end_us + (int64_t)(i * 300);
        zset_run(h, "%s", writes[i]);
        zset_expect(h, "ZREVRANGE week:a 0 -1 WITHSCORES", "[new 5]");
        h->wall_us += 1000000;
        zset_expect(h, "DEL week:a", ":1");
        end_us += 7 * DAY_US;
    }
    zset_expect(h, "KEYS *", "[week:a@2026-11-30 week:a@2026-12-07]");
}

/* The first command after the end of the period already sees the rollover. ! is the archive, $ the
 * board. */
TEST(whatever_is_asked_first_the_period_is_over) {
    static const char *const samples[][2] = {
        {"EXISTS day:a", ":0"},
        {"EXISTS day:a@2026-11-16", ":1"},
        {"EXISTS day:a@2026-11-16 day:a", ":1"},
        {"EXISTS day:a day:a@2026-11-16", ":1"},
        {"TYPE day:a", "+none"},
        {"TYPE day:a@2026-11-16", "+zset"},
        {"ZCARD day:a@2026-11-16", ":1"},
        {"ZSCORE day:a@2026-11-16 ann", "7"},
        {"ZSCORE day:a ann", "nil"},
        {"LB.GET day:a@2026-11-16 1 ann", "[[ann :0 :1794830400000 :7]]"},
        {"LB.INFO day:a", "-ERR no such key"},
        {"KEYS *", "[day:a@2026-11-16]"},
        {"SCAN 0", "[0 [day:a@2026-11-16]]"},
        {"RANDOMKEY", "day:a@2026-11-16"},
        {"DBSIZE", ":1"},
        {"DEL day:a", ":0"},
        {"DEL day:a@2026-11-16", ":1"},
        {"UNLINK day:a day:a@2026-11-16", ":1"},
        {"TOUCH day:a", ":0"},
        {"EXPIRE day:a 100", ":0"},
        {"EXPIRE day:a@2026-11-16 100", ":1"},
        {"TTL day:a", ":-2"},
        {"PERSIST day:a@2026-11-16", ":0"},
        {"RENAME day:a x", "-ERR no such key"},
        {"RENAME day:a@2026-11-16 x", "+OK"},
        {"RENAMENX other day:a@2026-11-16", "-ERR no such key"},
        {"COPY day:a x", ":0"},
        {"COPY day:a@2026-11-16 x", ":1"},
        {"OBJECT ENCODING day:a@2026-11-16", "skiplist"},
        {"ZPOPMIN day:a", "[]"},
        {"ZPOPMIN day:a@2026-11-16", "-FROZEN "},
        {"ZMPOP 2 day:a day:a@2026-11-16 MAX", "-FROZEN "},
        {"ZREM day:a ann", ":0"},
        {"ZUNION 2 day:a day:a@2026-11-16 WITHSCORES", "[ann 7]"},
        {"ZINTERCARD 2 day:a@2026-11-16 day:a", ":0"},
        {"ZDIFF 2 day:a@2026-11-16 day:a", "[ann]"},
        {"ZUNIONSTORE x 1 day:a@2026-11-16", ":1"},
        {"ZUNIONSTORE day:a 1 day:a@2026-11-16", "-ERR member 'ann': time "},
        {"ZRANGESTORE x day:a@2026-11-16 0 -1", ":1"},
        {"ZADD day:a XX 5 ann", ":0"},
        {"ZADD day:a@2026-11-16 XX CH 9 ann", "-FROZEN "},
        {"ZINCRBY day:a 5 ann", "5"},
        {"LB.CREATE day:a", "+OK"},
        {"LB.CREATE day:a@2026-11-16", "-BUSYKEY Target key name already exists."},
        {"LB.ROLL day:a x", "-ERR no such key"},
        {"LB.ROLL day:a@2026-11-16 x", "-FROZEN "},
        {"FLUSHALL", "+OK"},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        void *made;
        start(&made);
        struct harness *h = made;
        zset_expect(h, "ZADD day:a 7 ann", ":1");
        h->wall_us = zset_us("2026-11-17T00:00:00Z");
        const char *answered = zset_run(h, "%s", samples[i][0]);
        if (strncmp(answered, samples[i][1], strlen(samples[i][1])) != 0) {
            fail_msg("%s: expected %s answered %s", samples[i][0], samples[i][1], answered);
        }
        harness_destroy(h);
    }
    void *made;
    start(&made);
    zset_expect(made, "ZADD day:a 7 ann", ":1");
    ((struct harness *)made)->wall_us += DAY_US;
    zset_expect_part(made, "INFO keyspace", "db0:keys=1,");
    zset_expect_part(made, "INFO stats", "rolled_boards:1\r\n");
    harness_destroy(made);
}

PERIOD_TEST(a_created_board_stays_and_begins_anew) {
    zset_expect(h, "LB.CREATE k FIELD score 34 TIME 30 MS PERIOD WEEK TZ +08:00 ARCHIVE 1", "+OK");
    zset_expect(h, "EXPIRE k 100000000", ":1");
    for (int week = 0; week < 5; week++) {
        zset_expect(h, "ZADD k 3 ann", ":1");
        zset_expect(h, "ZADD k 4 bob", ":1");
        h->wall_us += 7 * DAY_US;
        zset_expect(h, "EXISTS k", ":1");
        zset_expect(h, "ZCARD k", ":0");
    }
    zset_expect(h, "ZRANGE k@2026-12-14 0 -1", "[ann bob]");
    zset_expect(h, "EXISTS k@2026-12-07 k@2026-11-30 k@2026-11-23 k@2026-11-16", ":0");
    assert_int_equal(strtoll(zset_run(h, "TTL k") + 1, NULL, 10), 100000000 - 35 * 86400);
    zset_expect(h, "LB.ALTER k@2026-12-14 THAW", "+OK");
    zset_expect(h, "ZREM k@2026-12-14 ann bob", ":2");
    zset_expect(h, "EXISTS k@2026-12-14", ":0");
    zset_expect(h, "DEL k", ":1");
    zset_expect(h, "DBSIZE", ":0");
}

PERIOD_TEST(info_tells_the_period_and_the_times_move_with_it) {
    zset_expect(h, "ZADD week:a 3 ann", ":1");
    zset_expect_part(h, "LB.INFO week:a",
                     "layout FIELD score 34 TIME 30 MS START 2026-11-15T16:00:00Z bits");
    zset_expect_part(
        h, "LB.INFO week:a",
        "period [unit WEEK tz +08:00 start :1794758400000 end :1795363200000 archive :2 "
        "every :1 on MON at :0 from nil archived frozen copy :0] limit nil frozen :0 opens nil "
        "closes nil stale nil settle :0 settled nil ended nil dense :0 rating nil limits nil "
        "tickets :0 hold "
        "nil held nil "
        "window nil "
        "archives [] tags "
        "[]]");
    zset_expect_part(h, "LB.INFO week:a", "first :1794758400000 ");
    zset_expect_part(h, "LB.ADD week:a AT 1794758399999 5 bob",
                     "-ERR time 2026-11-15T15:59:59.999Z is "
                     "out of range");
    zset_expect(h, "LB.ADD week:a AT 1794758400000 5 bob", ":1");
    h->wall_us += 7 * DAY_US;
    zset_expect(h, "ZADD week:a 3 ann", ":1");
    zset_expect_part(
        h, "LB.INFO week:a",
        "start :1795363200000 end :1795968000000 archive :2 every :1 on MON at :0 from nil "
        "archived frozen copy :0] limit nil frozen :0 opens nil closes nil stale nil settle :0 "
        "settled nil ended nil dense :0 rating nil limits nil tickets :0 hold nil held nil window "
        "nil "
        "archives "
        "[week:a@2026-11-16] tags []]");
    zset_expect_part(h, "LB.INFO week:a@2026-11-16", "START 2026-11-15T16:00:00Z bits");
    zset_expect_part(
        h, "LB.INFO week:a@2026-11-16",
        "cap nil keep last created :0 period nil "
        "limit nil frozen :1 opens nil closes nil stale nil settle :0 settled :0 "
        "ended :1795363200000 dense :0 rating nil limits nil tickets :0 hold nil held nil window "
        "nil archives [] tags []]");
    zset_use_resp3(h);
    zset_expect(h, "ZADD day:a 3 ann", ":1");
    zset_expect_part(
        h, "LB.INFO day:a",
        "period {unit DAY tz +00:00 start :1795392000000 end :1795478400000 archive _ "
        "every :1 on _ at :0 from _ archived frozen copy #f} limit _ frozen #f opens _ closes _ "
        "stale _ settle #f settled _ ended _ dense #f rating _ limits _ tickets #f hold _ held _ "
        "window _ "
        "archives [] tags "
        "[]}");
}

PERIOD_TEST(caps_and_bests_are_those_of_the_period) {
    zset_expect(h, "ZADD bare:a 5 ann 7 bob 6 cid", ":2");
    h->wall_us += DAY_US;
    zset_expect(h, "ZADD bare:a 1 ann 2 bob 3 cid", ":2");
    zset_expect(h, "ZREVRANGE bare:a 0 -1 WITHSCORES", "[cid 3 bob 2]");
    zset_expect(h, "ZREVRANGE bare:a@2026-11-16 0 -1 WITHSCORES", "[bob 7 cid 6]");
    zset_expect(h, "LB.ALTER bare:a@2026-11-16 THAW", "+OK");
    /* An archive keeps the board's options: late results must be better, and within the cap. */
    zset_expect(h, "ZADD bare:a@2026-11-16 4 cid 1 dan", ":0");
    zset_expect(h, "ZREVRANGE bare:a@2026-11-16 0 -1 WITHSCORES", "[bob 7 cid 6]");
}

PERIOD_TEST(archives_come_and_go_without_anybody_writing) {
    zset_expect(h, "ZADD week:a 3 ann", ":1");
    h->wall_us = zset_us("2026-11-23T00:00:00+08:00");
    zset_expect(h, "PTTL week:a@2026-11-16", ":1209600000");
    h->wall_us = zset_us("2026-12-07T00:00:00+08:00") - 1000;
    zset_expect(h, "EXISTS week:a@2026-11-16", ":1");
    h->wall_us += 1000;
    zset_expect(h, "EXISTS week:a@2026-11-16", ":0");
    zset_expect(h, "DBSIZE", ":0");
}

PERIOD_TEST(a_clock_that_is_set_back_stands_still) {
    zset_expect(h, "ZADD day:a 3 ann", ":1");
    h->wall_us = zset_us("2026-11-17T00:00:00Z");
    zset_expect(h, "ZADD day:a 4 bob", ":1");
    h->wall_us -= DAY_US / 2;
    zset_expect(h, "ZADD day:a 5 cid", ":1");
    zset_expect(h, "ZADD day:b 5 cid", ":1");
    zset_expect(h, "ZCARD day:a", ":2");
    zset_expect_part(h, "LB.INFO day:b", "period [unit DAY tz +00:00 start :1794873600000");
    zset_expect(h, "ZCARD day:a@2026-11-16", ":1");
}

/* No command rolls over all boards: commands that count or walk keys roll over some, or none. */
PERIOD_TEST(a_command_lets_few_of_many_boards_begin_anew) {
    enum { BOARDS = 3000, ROLLED_MAX = 200 };
    for (int i = 0; i < BOARDS; i++) {
        zset_run(h, "ZADD day:%d %d ann", i, i);
    }
    h->wall_us += DAY_US;
    static const char *const commands[] = {"DBSIZE",       "INFO keyspace", "SCAN 0 COUNT 1000000",
                                           "MEMORY STATS", "RANDOMKEY",     "KEYS *"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        uint64_t before = registry_totals(h->server.registry)->rolled;
        (void)harness_run(h, h->server.sessions.first, commands[i]);
        assert_in_range(registry_totals(h->server.registry)->rolled - before, 0, ROLLED_MAX);
    }
}

/* A scan that begins after the end of the periods returns every archive, and no removed board. */
PERIOD_TEST(a_scan_waits_for_boards_that_are_over) {
    enum { BOARDS = 1000 };
    for (int i = 0; i < BOARDS; i++) {
        zset_run(h, "ZADD day:%d %d ann", i, i);
    }
    h->wall_us += DAY_US;
    static int seen[BOARDS];
    memset(seen, 0, sizeof(seen));
    uint64_t cursor = 0;
    int steps = 0;
    do {
        uint64_t before = registry_totals(h->server.registry)->rolled;
        const char *at = zset_run(h, "SCAN %" PRIu64 " COUNT 50", cursor);
        cursor = strtoull(at + 1, NULL, 10);
        for (at = strstr(at, "day:"); at != NULL; at = strstr(at + 1, "day:")) {
            char *end;
            long number = strtol(at + 4, &end, 10);
            assert_in_range(number, 0, BOARDS - 1);
            assert_memory_equal(end, "@2026-11-16", 11);
            seen[number]++;
        }
        assert_in_range(registry_totals(h->server.registry)->rolled - before, 0, 200);
        assert_true(++steps < 10 * BOARDS);
    } while (cursor != 0);
    for (int i = 0; i < BOARDS; i++) {
        assert_int_equal(seen[i], 1);
    }
}

/* KEYS replies immediately with what it replies after all rollovers. */
PERIOD_TEST(keys_names_what_boards_that_are_over_will_leave) {
    for (int i = 0; i < 300; i++) {
        zset_run(h, "ZADD day:%d 1 ann", i);
        zset_run(h, "ZADD plain:%d 1 ann", i);
    }
    zset_run(h, "LB.CREATE made FIELD score 34 TIME 30 MS PERIOD DAY");
    zset_run(h, "ZADD made 1 ann");
    zset_run(h, "LB.CREATE empty FIELD score 34 TIME 30 MS PERIOD DAY");
    zset_run(h, "LB.CREATE none FIELD score 34 TIME 30 MS PERIOD DAY ARCHIVE 0");
    zset_run(h, "ZADD none 1 ann");
    zset_run(h, "ZADD day:gone 1 ann");
    zset_run(h, "PEXPIRE day:gone 1000");
    zset_run(h, "ZADD made@2026-11-16 1 bob"); /* it stays, and the archive gets a number */
    h->wall_us += DAY_US;
    static const struct {
        const char *pattern, *expected;
    } samples[] = {
        {"made", "[made]"},
        {"made@*6", "[made@2026-11-16]"},
        {"made@*.*", "[made@2026-11-16.2]"},
        {"empty*", "[empty]"},
        {"none*", "[none]"},
        {"day:gone*", "[]"},
        {"day:7", "[]"},
        {"day:7@*", "[day:7@2026-11-16]"},
    };
    for (int is_done = 0; is_done < 2; is_done++) {
        for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
            zset_expect(h, formatted("KEYS %s", samples[i].pattern), samples[i].expected);
        }
        harness_expect_prefix(h, h->server.sessions.first, "KEYS *", "*605\r\n");
        if (is_done == 0) {
            assert_int_equal(registry_totals(h->server.registry)->rolled, 0);
        }
        while (registry_roll_due(h->server.registry, h->wall_us / 1000, 1000) > 0) {}
    }
}

/* ---- others ---- */

PERIOD_TEST(whoever_watches_hears_of_the_end) {
    static const struct {
        const char *key;
        bool has_changed;
    } samples[] = {{"day:a", true}, {"day:a@2026-11-16", true}, {"day:a@2026-11-15", false}};
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        harness_set_clock(h, zset_us("2026-11-16T12:00:00Z"));
        zset_run(h, "FLUSHALL");
        zset_expect(h, "ZADD day:a 3 ann", ":1");
        zset_run(h, "WATCH %s", samples[i].key);
        zset_expect(h, "MULTI", "+OK");
        zset_expect(h, "PING", "+QUEUED");
        h->wall_us += DAY_US;
        zset_expect(h, "EXEC", samples[i].has_changed ? "nil*" : "[+PONG]");
    }
}

PERIOD_TEST(a_transaction_sees_one_time) {
    zset_expect(h, "ZADD day:a 3 ann", ":1");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "ZCARD day:a@2026-11-16", "+QUEUED");
    zset_expect(h, "ZADD day:a 4 bob", "+QUEUED");
    zset_expect(h, "ZCARD day:a", "+QUEUED");
    zset_expect(h, "ZCARD day:a@2026-11-16", "+QUEUED");
    h->wall_us += DAY_US;
    zset_expect(h, "EXEC", "[:1 :1 :1 :1]");
}

PERIOD_TEST(stored_boards_are_in_the_period_of_their_time) {
    zset_expect(h, "ZADD x 3 ann 4 bob", ":2");
    zset_expect(h, "ZUNIONSTORE day:a 1 x WEIGHTS 2", ":2");
    zset_expect_part(h, "LB.INFO day:a", "period [unit DAY tz +00:00 start :1794787200000");
    h->wall_us += DAY_US;
    zset_expect(h, "ZREVRANGE day:a@2026-11-16 0 -1 WITHSCORES", "[bob 8 ann 6]");
    /* Results reached before the period began are refused. */
    zset_expect_part(h, "ZUNIONSTORE day:a 1 x",
                     "-ERR member 'bob': time 2026-11-16T12:00:00Z is out");
    zset_expect(h, "EXISTS day:a", ":0");
}

PERIOD_TEST(a_layout_that_the_period_moves_needs_no_today) {
    h->wall_us = zset_us("2099-05-05T12:00:00Z");
    zset_expect(h, "ZADD week:a 3 ann", ":1");
    zset_expect(h, "LB.CREATE c FIELD a 3 TIME 27 MS END 2020-01-01T00:00:00Z PERIOD DAY", "+OK");
    zset_expect(h, "ZADD c 3 ann", ":1");
    zset_expect_part(h, "LB.INFO c", "TIME 27 MS START 2099-05-05T00:00:00Z bits");
}

/* ---- PERIOD ... COPY ---- */

/* Until the copy is made everything goes on, but the period cannot be another one. */
PERIOD_TEST(while_an_archive_is_copied_the_board_is_there) {
    zset_expect(h, "LB.CREATE k FIELD score 32 PERIOD DAY COPY", "+OK");
    for (int i = 0; i < 1000; i++) {
        zset_run(h, "ZADD k %d m%d", i, i);
    }
    harness_pass_seconds(h, 24 * 60 * 60);
    zset_expect(h, "EXISTS k", ":1");
    zset_expect(h, "ZCARD k", ":1000");
    zset_expect(h, "KEYS *", "[k]");
    zset_expect(h, "DBSIZE", ":1");
    zset_expect(h, "RANDOMKEY", "k");
    zset_expect(h, "SCAN 0", "[0 [k]]");
    zset_expect(h, "ZADD k 2000 new", ":1");
    assert_true(registry_roll_archive_step(h->server.registry, h->wall_us / 1000, 64));
    assert_true(registry_roll_archive_step(h->server.registry, h->wall_us / 1000, 64));
    static const char *const refused[] = {"LB.ROLL k x", "LB.ALTER k PERIOD DAY",
                                          "LB.ALTER k PERIOD NONE", "LB.ALTER k TZ +08:00"};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        zset_expect_unchanged(h, "k", refused[i],
                              "-TRYAGAIN the archive of the period that has ended is still being "
                              "copied");
    }
    zset_expect(h, "LB.ALTER k FREEZE", "+OK");
    zset_expect(h, "LB.ALTER k THAW", "+OK");
    zset_copy_archives(h);
    zset_expect(h, "ZCARD k@2026-11-16", ":1001");
    zset_expect(h, "ZCARD k", ":1001");
    zset_expect(h, "LB.ALTER k PERIOD DAY", "+OK");
    zset_expect(h, "LB.ROLL k x", ":1001");
}
