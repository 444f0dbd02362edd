/* Boards with WINDOW, sentence by sentence; and beside a naive twin, which keeps what each period
 * brought and adds it up. */
#include "server/commands/window.h"
#include "server/sessions/job.h"
#include "tests/server/player_fixture.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/random.h"

#define HOUR_US INT64_C(3600000000)

static const char window_settings[] = "layout one FIELD score 33 SIGNED TIME 31 S\n"
                                      "board auto:* one PERIOD HOUR WINDOW 3 SUM\n"
                                      "board plain:* one PERIOD HOUR\n";

static int window_start(void **state) {
    struct harness *h = zset_start_job(state, window_settings, &window_job);
    h->wall_us = zset_us("2026-11-26T05:10:00Z");
    return 0;
}

#define WINDOW_TEST(name) TEST_GIVEN(name, window_start, zset_end_jobs, struct harness *h)

/* All that is to do. */
static void settle(struct harness *h) {
    server_update_time(&h->server);
    (void)registry_roll_due(h->server.registry, h->server.clock.now_ms, 1000);
    while (job_list_step(&h->server, 0, true)) {}
    while (registry_free_step(h->server.registry, UINT32_MAX)) {}
    assert_int_equal(registry_behind_count(h->server.registry), 0);
}

static void pass_hours(struct harness *h, int64_t hours) {
    h->wall_us += hours * HOUR_US;
    settle(h);
}

/* ---- sums ---- */

WINDOW_TEST(a_sum_is_of_the_running_period_and_those_before) {
    zset_expect(h, "LB.CREATE w FIELD score 33 SIGNED TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
    zset_expect(h, "ZINCRBY w 5 ann", "5");
    zset_expect(h, "ZRANGE w@2026-11-26T05 0 -1 WITHSCORES", "[ann 5]");
    pass_hours(h, 1);
    zset_expect(h, "ZINCRBY w 2 ann", "7");
    zset_expect(h, "ZADD w 4 bob", ":1");
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[ann 7 bob 4]");
    zset_expect(h, "ZREVRANGE w@2026-11-26T06 0 -1 WITHSCORES", "[bob 4 ann 2]");
    pass_hours(h, 1);
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[ann 7 bob 4]");
    zset_expect(h, "EXISTS w@2026-11-26T07", ":0");
    pass_hours(h, 1);
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[bob 4 ann 2]");
    pass_hours(h, 1);
    zset_expect(h, "ZCARD w", ":0");
    zset_expect(h, "EXISTS w", ":1");
    zset_expect(h, "KEYS *", "[w w@2026-11-26T05 w@2026-11-26T06]");
}

WINDOW_TEST(what_is_set_is_set_in_the_running_period) {
    zset_expect(h, "LB.CREATE w FIELD score 33 SIGNED TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
    zset_expect(h, "ZADD w 5 ann", ":1");
    zset_expect(h, "ZADD w 8 ann", ":0");
    zset_expect(h, "ZSCORE w ann", "8");
    h->wall_us = zset_us("2026-11-26T06:20:00Z");
    settle(h);
    zset_expect(h, "ZADD w 3 ann", ":0");
    zset_expect(h, "ZSCORE w ann", "11");
    zset_expect(h, "ZADD w 1 ann 2 bob", ":1");
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[ann 9 bob 2]");
    zset_expect(h, "ZADD w NX 7 ann", ":0");
    zset_expect(h, "ZADD w GT CH 7 ann", ":1");
    zset_expect(h, "ZADD w LT CH 8 ann", ":0");
    zset_expect(h, "ZSCORE w ann", "15");
    zset_expect(h, "ZADD w INCR 1 ann", "16");
    zset_expect(h, "LB.ADD w BEST 3 ann", ":0");
    zset_expect(h, "LB.ADD w INCR WITHRANK 4 bob 1 cid",
                "[[[bob :1 :1795674000000 :6] :1] [[cid :2 :1795674000000 :1] nil]]");
    zset_expect(h, "LB.SUBMIT 2 w other INCR 10 bob",
                "[[[bob :1 :1795674000000 :16] :1 :1] [[bob :0 :1795674000000 :10] nil :1]]");
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[ann 16 bob 16 cid 1]");
    zset_expect(h, "ZREVRANGE w@2026-11-26T06 0 -1 WITHSCORES", "[bob 16 ann 8 cid 1]");
}

/* ---- the best ---- */

WINDOW_TEST(the_best_result_inside_the_window_counts) {
    zset_expect(h, "LB.CREATE w FIELD score 33 SIGNED TIME 31 S PERIOD HOUR WINDOW 2 BEST", "+OK");
    zset_expect(h, "ZADD w 9 ann 5 bob", ":2");
    zset_expect(h, "ZADD w 7 ann", ":0");
    int64_t first = zset_time_ms(h, "w", "ann");
    pass_hours(h, 1);
    zset_expect(h, "ZADD w 9 ann 6 bob 1 cid", ":1");
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[ann 9 bob 6 cid 1]");
    assert_int_equal(zset_time_ms(h, "w", "ann"), first);
    pass_hours(h, 1);
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[ann 9 bob 6 cid 1]");
    assert_int_equal(zset_time_ms(h, "w", "ann"), first + HOUR_US / 1000);
    zset_expect(h, "LB.ADD w 2 cid", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[cid 2]");
    pass_hours(h, 2);
    zset_expect(h, "ZCARD w", ":0");
}

WINDOW_TEST(a_worse_result_of_the_running_period_makes_room_for_the_others) {
    zset_expect(h, "LB.CREATE w FIELD score 33 SIGNED TIME 31 S PERIOD HOUR WINDOW 3 BEST", "+OK");
    zset_expect(h, "ZADD w 6 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD w 9 ann", ":0");
    zset_expect(h, "ZINCRBY w -1 ann", "8");
    zset_expect(h, "ZINCRBY w -4 ann", "6");
    zset_expect(h, "ZSCORE w@2026-11-26T06 ann", "4");
}

/* ---- boards that come and go ---- */

WINDOW_TEST(a_board_of_a_board_line_goes_with_its_last_member) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:b ann 5", "-ERR value is not a valid float");
    zset_expect(h, "KEYS auto:*", "[auto:a auto:a@2026-11-26T05]");
    zset_expect(h, "ZADD auto:a XX 5 ann", ":0");
    zset_expect(h, "KEYS auto:*", "[auto:a auto:a@2026-11-26T05]");
    pass_hours(h, 2);
    zset_expect(h, "KEYS auto:*", "[auto:a@2026-11-26T05]");
}

WINDOW_TEST(what_another_key_has_the_name_of_is_refused) {
    zset_expect(h, "ZADD auto:a@2026-11-26T05 1 x", ":1");
    zset_expect_begin(h, "ZADD auto:a 5 ann", "-BUSYKEY 'auto:a@2026-11-26T05' is the board of");
    zset_expect(h, "EXISTS auto:a", ":0");
    zset_expect_begin(h, "LB.CREATE auto:a", "-BUSYKEY 'auto:a@2026-11-26T05' is the board of");
    zset_expect(h, "DEL auto:a@2026-11-26T05", ":1");
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
}

WINDOW_TEST(a_deleted_board_begins_anew) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:a 6 ann", ":0");
    zset_expect(h, "DEL auto:a", ":1");
    zset_expect(h, "KEYS auto:*", "[auto:a@2026-11-26T05]");
    zset_expect(h, "ZADD auto:a 1 ann", ":1");
    zset_expect(h, "ZSCORE auto:a ann", "1");
    pass_hours(h, 3);
    zset_expect(h, "ZCARD auto:a", ":0");
}

/* Otherwise a later board of its name could not begin. */
WINDOW_TEST(a_board_that_goes_in_any_way_takes_the_running_periods_along) {
    static const char *const ways[] = {
        "DEL auto:a",
        "EXPIREAT auto:a 1",
        "PEXPIRE auto:a 5",
        "RENAME other auto:a",
        "COPY other auto:a REPLACE",
        "HSET h f v | RENAME h auto:a",
        "LB.ALTER auto:a WINDOW NONE | DEL auto:a",
        "ZREM auto:a ann",
        "PEXPIRE auto:a 5 | wait | ZADD auto:a 9 eve | ZREM auto:a eve",
        "PEXPIRE auto:a 5 | wait | COPY other auto:a",
        "PEXPIRE auto:a 5 | wait | RENAME auto:a@2026-11-26T06 renamed | DEL renamed",
    };
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        char words[128];
        h->wall_us = zset_us("2026-11-26T05:10:00Z") + (int64_t)i * 24 * HOUR_US;
        zset_run(h, "FLUSHALL");
        settle(h);
        zset_expect(h, "ZADD auto:a 5 ann", ":1");
        pass_hours(h, 1);
        zset_expect(h, "ZADD auto:a 6 ann", ":0");
        zset_expect(h, "ZADD other 1 x", ":1");
        snprintf(words, sizeof words, "%s", ways[i]);
        for (char *word = words; word != NULL;) {
            char *end = strstr(word, " | ");
            if (end != NULL) {
                *end = '\0';
            }
            if (strcmp(word, "wait") == 0) {
                h->wall_us += 6000;
                server_update_time(&h->server);
            } else {
                zset_run(h, "%s", word);
            }
            word = end != NULL ? end + 3 : NULL;
        }
        h->wall_us += 6000;
        server_update_time(&h->server);
        (void)registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 100);
        settle(h);
        zset_run(h, "DEL auto:a other");
        const char *keys = zset_run(h, "KEYS *");
        assert_null(strstr(keys, "T06"));
        zset_expect(h, "ZADD auto:a 1 ann", ":1");
        zset_expect(h, "ZSCORE auto:a ann", "1");
    }
}

WINDOW_TEST(a_period_that_is_changed_with_the_window_taken_away_ends_the_running_one) {
    static const char *const changes[] = {"PERIOD NONE", "WINDOW NONE PERIOD DAY"};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        zset_run(h, "FLUSHALL");
        zset_expect(h, "ZADD auto:a 5 ann", ":1");
        zset_expect(h, formatted("LB.ALTER auto:a %s", changes[i]), "+OK");
        zset_expect(h, "KEYS *", "[auto:a]");
        zset_expect(h, "ZSCORE auto:a ann", "5");
    }
}

struct window_watch {
    struct effect_listener listener;
    struct registry *registry;
    unsigned copy_count;
};

/* Whoever applies effects finds what is copied. */
static void window_watch_receive(void *context, const struct effect *effect) {
    struct window_watch *watch = context;
    if (effect->kind == EFFECT_COPY) {
        watch->copy_count++;
        assert_non_null(registry_peek(watch->registry, effect->database, effect->name, INT64_MIN));
    }
}

WINDOW_TEST(the_running_period_is_copied_over_its_board) {
    struct window_watch watch = {.registry = h->server.registry};
    watch.listener = (struct effect_listener){.receive = window_watch_receive, .context = &watch};
    effect_listener_add(h->server.registry, &watch.listener);
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    zset_expect(h, "COPY auto:a@2026-11-26T05 auto:a REPLACE", ":1");
    zset_expect(h, "KEYS *", "[auto:a]");
    zset_expect(h, "ZSCORE auto:a ann", "5");
    assert_int_equal(watch.copy_count, 1);
    effect_listener_remove(h->server.registry, &watch.listener);
}

/* What looks for a period's board may find that it has expired before the tick does: the running one, and one that
 * leaves. */
WINDOW_TEST(a_period_that_has_expired_is_noted_by_what_looks_for_it) {
    static const char *const rows[][3] = {
        {"ZREM w eve", "nil", "6"},
        {"ZADD w 1 ann", "1", "7"},
        {"LB.ALTER w ARCHIVE 9", "nil", "6"},
        {"LB.TAG w ann clan red", "nil", "6"},
        {"PING", "nil", "6"},
    };
    for (int i = 0; i < (int)COUNT_OF(rows); i++) {
        for (int is_leaving = 0; is_leaving < 2; is_leaving++) {
            h->wall_us =
                zset_us(formatted("2026-11-%02dT%02d:10:00Z", 26 + i, is_leaving ? 15 : 5));
            settle(h);
            zset_run(h, "FLUSHALL");
            zset_expect(h,
                        "LB.CREATE w FIELD score 33 SIGNED TIME 31 S TAG clan 8 PERIOD HOUR "
                        "ARCHIVE 4 WINDOW 2 SUM",
                        "+OK");
            zset_expect(h, "ZADD w 5 ann 1 bob 1 eve", ":3");
            zset_expect(h,
                        formatted("PEXPIREAT w@2026-11-%02dT%02d %" PRId64, 26 + i,
                                  is_leaving ? 15 : 5,
                                  h->wall_us / 1000 + (is_leaving ? 2 * HOUR_US / 1000 : 5)),
                        ":1");
            if (is_leaving) {
                pass_hours(h, 1);
                zset_expect(h, "ZADD w 6 ann", ":0");
            }
            h->wall_us += is_leaving ? HOUR_US : 6000;
            server_update_time(&h->server);
            zset_run(h, "%s", rows[i][0]);
            settle(h);
            (void)registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 100);
            settle(h);
            zset_expect(h, "ZSCORE w ann", rows[i][1 + is_leaving]);
            zset_expect(h, "ZSCORE w bob", "nil");
        }
    }
}

/* ---- what is refused ---- */

WINDOW_TEST(declarations_that_contradict_themselves_are_refused) {
    zset_expect(h, "LB.CREATE w FIELD a 20 WINDOW 3 SUM",
                "-ERR WINDOW requires PERIOD HOUR|DAY|WEEK|MONTH|YEAR");
    zset_expect(h, "LB.CREATE w FIELD a 20 PERIOD HOUR WINDOW",
                "-ERR WINDOW needs a number of periods and what they are to it: WINDOW n SUM|BEST");
    zset_expect(h, "LB.CREATE w FIELD a 20 PERIOD HOUR WINDOW 3 MEAN",
                "-ERR WINDOW 3 'MEAN' is unknown: use SUM or BEST");
    zset_expect(h, "LB.CREATE w FIELD a 20 PERIOD HOUR WINDOW 1 SUM",
                "-ERR WINDOW '1' is not a valid number of periods: 2..1000");
    zset_expect(h, "LB.CREATE w FIELD a 20 PERIOD HOUR WINDOW 1001 SUM",
                "-ERR WINDOW '1001' is not a valid number of periods: 2..1000");
    zset_expect(h, "LB.CREATE w FIELD a 20 PERIOD HOUR ARCHIVE 2 WINDOW 3 SUM",
                "-ERR WINDOW 3 requires ARCHIVE 3 or more: it ranks what they hold");
    zset_expect(h, "LB.CREATE w FIELD a 20 PERIOD HOUR WINDOW 3 SUM CAP 5",
                "-ERR WINDOW and CAP exclude each other");
    zset_expect(h, "LB.CREATE w FIELD a 20 PERIOD HOUR WINDOW 3 SUM LIMIT 5",
                "-ERR WINDOW and LIMIT exclude each other");
    zset_expect(h, "LB.CREATE w FIELD a 20 PERIOD HOUR WINDOW 3 SUM ARCHIVED WRITABLE",
                "-ERR WINDOW and ARCHIVED WRITABLE exclude each other");
    zset_expect(h, "LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR WINDOW 3 SUM STALE 1 HOUR",
                "-ERR WINDOW and STALE exclude each other");
    zset_expect(
        h, "LB.CREATE w FIELD a 20 TIME 12 S PERIOD HOUR WINDOW 3 SUM",
        "-ERR WINDOW is not possible: the times of its board do not begin anew with each period, "
        "and this TIME does not last: give it more bits, a larger unit or a START");
    zset_expect(h, "EXISTS w", ":0");
}

WINDOW_TEST(only_single_members_are_written_and_removed) {
    zset_expect(h, "ZADD auto:a 5 ann 6 bob", ":2");
    static const char *const refused[] = {
        "ZPOPMIN auto:a",
        "ZREMRANGEBYRANK auto:a 0 0",
        "ZREMRANGEBYSCORE auto:a 0 9",
        "ZUNIONSTORE auto:a 1 auto:a",
        "ZUNIONSTORE auto:new 1 auto:a",
        "LB.ROLL auto:a old",
        "ZRANGESTORE auto:a auto:a 0 -1",
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        zset_expect_begin(h, refused[i], "-ERR board has a WINDOW");
    }
    static const char *const frozen[] = {
        "ZADD auto:a@2026-11-26T05 5 ann", "ZREM auto:a@2026-11-26T05 ann",
        "LB.ADD auto:a@2026-11-26T05 INCR 5 ann", "ZPOPMAX auto:a@2026-11-26T05"};
    for (size_t i = 0; i < COUNT_OF(frozen); i++) {
        zset_expect_begin(h, frozen[i], "-FROZEN board has the results of one period");
    }
    zset_expect_begin(h, "LB.ALTER auto:a@2026-11-26T05 THAW", "-ERR board has the results of one");
    zset_expect_begin(h, "RENAME auto:a b", "-ERR a board with a WINDOW cannot be renamed");
    zset_expect_begin(h, "RENAME auto:a@2026-11-26T05 b", "-ERR a board with a WINDOW cannot be");
    zset_expect_begin(h, "LB.ALTER auto:a PERIOD DAY", "-ERR PERIOD of a board with a WINDOW");
    zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[bob 6 ann 5]");
    pass_hours(h, 3);
    zset_expect(h, "LB.ALTER auto:a@2026-11-26T05 THAW", "+OK");
    zset_expect(h, "RENAME auto:a@2026-11-26T05 b", "+OK");
}

WINDOW_TEST(a_sum_that_is_out_of_range_is_refused) {
    zset_expect(h, "LB.CREATE w FIELD a 8 SIGNED TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
    zset_expect(h, "ZADD w 100 ann -100 bob 1 cid", ":3");
    pass_hours(h, 1);
    static const char refused[] =
        "-ERR the sum over the WINDOW is out of range: a field has too few bits for it";
    static const char *const rows[][2] = {
        {"ZADD w 28 ann", refused},         {"ZINCRBY w 28 ann", refused},
        {"ZADD w 5 cid 28 ann", refused},   {"LB.ADD w 28 ann", refused},
        {"LB.ADD w 5 cid 28 ann", refused}, {"ZADD w -29 bob", refused},
    };
    zset_expect_each_unchanged(h, "w", rows);
    zset_expect(h, "EXISTS w@2026-11-26T06", ":0");
    zset_expect(h, "ZADD w 27 ann -28 bob", ":0");
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[ann 127 cid 1 bob -128]");
    zset_expect(h, "ZADD w 26 ann", ":0");
    zset_expect(h, "ZSCORE w ann", "126");
}

/* -100 leaves: what is left is more than the field can say, until 100 leaves, too. */
WINDOW_TEST(a_sum_that_comes_out_of_range_by_leaving_shows_the_end_of_the_range) {
    zset_expect(h, "LB.CREATE w FIELD a 8 SIGNED TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
    zset_expect(h, "ZADD w -100 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD w 100 ann", ":0");
    pass_hours(h, 1);
    zset_expect(h, "ZADD w 90 ann", ":0");
    zset_expect(h, "ZSCORE w ann", "90");
    pass_hours(h, 1);
    zset_expect(h, "ZSCORE w ann", "127");
    zset_expect(h, "ZINCRBY w -100 ann", "90");
    pass_hours(h, 1);
    zset_expect(h, "ZSCORE w ann", "-10");
}

/* ---- removals ---- */

WINDOW_TEST(a_removed_member_is_off_all_periods_of_the_window) {
    zset_expect(h, "ZADD auto:a 5 ann 1 bob", ":2");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:a 2 ann 2 bob", ":0");
    zset_expect(h, "ZREM auto:a ann eve ann", ":1");
    zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[bob 3]");
    zset_expect(h, "ZRANGE auto:a@2026-11-26T05 0 -1", "[bob]");
    zset_expect(h, "ZRANGE auto:a@2026-11-26T06 0 -1", "[bob]");
    zset_expect(h, "ZADD auto:a 4 ann", ":1");
    zset_expect(h, "ZSCORE auto:a ann", "4");
    zset_expect(h, "ZREM auto:a ann bob", ":2");
    zset_expect(h, "KEYS *", "[]");
}

/* A member is looked for in each period. */
WINDOW_TEST(so_many_are_removed_at_a_time) {
    char line[2048] = "ZREM w";
    zset_expect(h, "LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR WINDOW 40 SUM", "+OK");
    for (int hour = 0; hour < 40; hour++) {
        zset_run(h, "ZADD w 1 ann");
        pass_hours(h, hour < 39);
    }
    for (unsigned i = 0; i < 609; i++) {
        memcpy(line + 6 + 2 * (size_t)i, " a", 3);
    }
    zset_expect(h, line, ":0");
    memcpy(line + 6 + 2 * 609, " ann", 5);
    zset_expect(h, line,
                "-ERR too many members: at most 609 at a time are removed from a board with a "
                "WINDOW and the boards of its 40 periods");
    zset_expect(h, "ZSCORE w ann", "40");
}

WINDOW_TEST(what_is_written_at_a_time_counts_with_the_periods) {
    static const struct {
        const char *command;
        int taken;
    } rows[] = {{"ZADD", 66}, {"LB.ADD", 66}};
    char line[1024];
    zset_expect(h, "CONFIG SET busy-command-limit 20", "+OK");
    zset_expect(h, "LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR WINDOW 1000 BEST", "+OK");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        size_t size = (size_t)snprintf(line, sizeof line, "%s %s", rows[i].command, "w");
        for (int pair = 0; pair < rows[i].taken; pair++) {
            memcpy(line + size, " 1 a", 5);
            size += 4;
        }
        const char *reply = zset_run(h, "%s", line);
        assert_int_equal(reply[0], ':');
        memcpy(line + size, " 1 a", 5);
        assert_non_null(strstr(zset_run(h, "%s", line), "busy-command-limit is 20 ms"));
        line[strlen(rows[i].command) + 1] = 'x';
        assert_int_equal(zset_run(h, "%s", line)[0], ':');
    }
}

WINDOW_TEST(a_forgotten_member_is_off_them_too) {
    zset_expect(h, "ZADD auto:a 5 ann 1 bob", ":2");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:a 2 ann 2 bob", ":0");
    struct session *s = harness_connect(h);
    player_begin(h, s, "LB.FORGET ann MATCH *T05");
    while (!player_step(h, s)) {}
    assert_string_equal(player_end(h, s), ":3\r\n");
    zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[bob 3]");
    zset_expect(h, "ZCARD auto:a@2026-11-26T06", ":1");
}

WINDOW_TEST(a_moved_member_takes_the_results_of_all_periods) {
    zset_expect(h, "ZADD auto:a 5 ann 1 bob", ":2");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:a 2 ann", ":0");
    struct session *s = harness_connect(h);
    player_begin(h, s, "LB.MOVE ann bob SUM");
    while (!player_step(h, s)) {}
    (void)player_end(h, s);
    zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[bob 8]");
    zset_expect(h, "ZREVRANGE auto:a@2026-11-26T05 0 -1 WITHSCORES", "[bob 6]");
    pass_hours(h, 2);
    zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[bob 2]");
}

WINDOW_TEST(without_a_periods_board_the_window_is_made_anew) {
    zset_expect(h, "ZADD auto:a 5 ann 1 bob", ":2");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:a 2 ann", ":0");
    zset_expect(h, "DEL auto:a@2026-11-26T05", ":1");
    settle(h);
    zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[ann 2]");
    zset_expect(h, "DEL auto:a@2026-11-26T06", ":1");
    settle(h);
    zset_expect(h, "KEYS *", "[]");
}

static const struct board_state *state_of(struct harness *h, const char *name) {
    return registry_state(
        registry_find(h->server.registry, 0, bytes_from_text(name), h->server.clock.now_ms));
}

/* So one group of the journal has both. */
WINDOW_TEST(the_board_of_a_period_goes_together_with_the_mark_that_it_is_missing) {
    static const char *const ways[] = {"DEL auto:a@2026-11-27T05",
                                       "EXPIREAT auto:a@2026-11-28T05 1",
                                       "COPY other auto:a@2026-11-29T05 REPLACE"};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        h->wall_us = zset_us("2026-11-27T05:10:00Z") + (int64_t)i * 24 * HOUR_US;
        zset_run(h, "FLUSHALL");
        settle(h);
        zset_expect(h, "ZADD other 1 x", ":1");
        zset_expect(h, "ZADD auto:a 5 ann 1 bob", ":2");
        pass_hours(h, 1);
        zset_expect(h, "ZADD auto:a 2 ann", ":0");
        zset_run(h, "%s", ways[i]);
        assert_true(state_of(h, "auto:a")->is_anew);
        zset_expect_part(h, "INFO stats", "windows_behind:1");
        zset_expect_part(h, "LB.INFO auto:a", "behind :1");
        settle(h);
        zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[ann 2]");
    }
}

WINDOW_TEST(removing_a_member_needs_no_memory) {
    struct window_shares shares;
    zset_expect(h, "ZADD auto:a 5 ann 1 bob", ":2");
    pass_hours(h, 1);
    struct registry_key *key =
        registry_find(h->server.registry, 0, BYTES("auto:a"), h->server.clock.now_ms);
    window_find_shares(h->server.registry, key, h->server.clock.now_ms, &shares);
    memory_fail_at(1);
    assert_int_equal(window_take(h->server.registry, key, &shares, BYTES("ann")), 2);
    memory_fail_at(0);
    zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[bob 1]");
}

WINDOW_TEST(the_mark_needs_no_memory) {
    zset_expect(h, "ZADD auto:a 5 ann 1 bob", ":2");
    zset_expect(h, "ZADD auto:b 5 ann 1 bob", ":2");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:a 2 ann", ":0");
    struct registry_key *share =
        registry_find(h->server.registry, 0, BYTES("auto:a@2026-11-26T05"), h->server.clock.now_ms);
    memory_fail_at(1);
    registry_remove(h->server.registry, share);
    memory_fail_at(0);
    assert_true(state_of(h, "auto:a")->is_anew);
    assert_false(state_of(h, "auto:b")->is_anew);
    settle(h);
    zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[ann 2]");
    zset_expect(h, "ZREVRANGE auto:b 0 -1 WITHSCORES", "[ann 5 bob 1]");
}

WINDOW_TEST(the_board_of_a_period_is_none_under_another_name) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:b 1 ann", ":1");
    zset_expect(h, "DEL auto:a", ":1");
    pass_hours(h, 1);
    zset_expect(h, "RENAME auto:a@2026-11-26T05 auto:b@2026-11-26T07", "+OK");
    zset_expect_begin(h, "ZADD auto:b 2 ann", "-BUSYKEY");
    zset_expect(h, "RENAME auto:b@2026-11-26T07 auto:b@2026-11-26T05", "+OK");
    zset_expect(h, "LB.ALTER auto:b WINDOW 2 BEST", "+OK");
    settle(h);
    zset_expect(h, "ZSCORE auto:b ann", "1");
}

WINDOW_TEST(what_the_running_period_brings_is_to_be_settled_when_it_is_over) {
    static const char *const settles[] = {"NO", "YES"};
    for (size_t i = 0; i < COUNT_OF(settles); i++) {
        const char *archive = i == 0 ? "w@2026-11-27T05" : "w@2026-11-28T05";
        h->wall_us = zset_us("2026-11-27T05:10:00Z") + (int64_t)i * 24 * HOUR_US;
        zset_run(h, "FLUSHALL");
        settle(h);
        zset_run(h, "LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR ARCHIVE 2 WINDOW 2 SUM SETTLE %s",
                 settles[i]);
        zset_expect(h, "ZADD w 5 ann", ":1");
        zset_expect_part(h, "INFO stats", "unsettled_archives:0");
        zset_expect_begin(h, formatted("LB.SETTLE %s", archive), "-ERR board is no archive");
        zset_expect_part(h, formatted("LB.INFO %s", archive), "ended nil");
        pass_hours(h, 1);
        zset_expect_part(h, "INFO stats", "unsettled_archives:1");
        zset_expect_part(h, formatted("LB.INFO %s", archive), "ended :179");
        pass_hours(h, 4);
        (void)registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 100);
        zset_expect(h, formatted("EXISTS %s", archive), i == 0 ? ":0" : ":1");
        zset_expect(h, formatted("LB.SETTLE %s", archive), i == 0 ? ":0" : ":1");
        zset_expect(h, formatted("EXISTS %s", archive), ":0");
    }
}

/* -100 has gone with its period's board, and the board is not made anew yet. */
WINDOW_TEST(a_write_is_exact_before_the_window_is_made_anew) {
    static const char *const rows[][2] = {{"LB.ADD w 100 ann 99 ann", "[:1 -ERR the sum"},
                                          {"ZADD w 100 ann 99 ann", "[:1 -ERR the sum"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        h->wall_us = zset_us("2026-11-27T05:10:00Z") + (int64_t)i * 24 * HOUR_US;
        zset_run(h, "FLUSHALL");
        zset_expect(h, "LB.CREATE w FIELD a 8 SIGNED TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
        zset_expect(h, "ZADD w -100 ann", ":1");
        pass_hours(h, 1);
        zset_expect(h, "ZADD w 127 ann", ":0");
        pass_hours(h, 1);
        zset_expect(h, "MULTI", "+OK");
        zset_expect(h, i == 0 ? "DEL w@2026-11-27T05" : "DEL w@2026-11-28T05", "+QUEUED");
        zset_expect(h, rows[i][0], "+QUEUED");
        zset_expect_begin(h, "EXEC", rows[i][1]);
        settle(h);
        zset_expect(h, "ZSCORE w ann", "127");
        zset_expect(h, "ZINCRBY w -100 ann", "27");
    }
}

WINDOW_TEST(a_member_that_comes_by_a_move_has_time_and_tags_of_the_other) {
    zset_expect(h, "LB.CREATE w FIELD a 20 TIME 31 S TAG c 4 PERIOD HOUR WINDOW 3 SUM", "+OK");
    zset_expect(h, "LB.ADD w TAG c DE 5 ann", ":1");
    int64_t time_ms = zset_time_ms(h, "w", "ann");
    struct session *s = harness_connect(h);
    player_begin(h, s, "LB.MOVE ann bob");
    while (!player_step(h, s)) {}
    (void)player_end(h, s);
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[bob 5]");
    assert_int_equal(zset_time_ms(h, "w", "bob"), time_ms);
    zset_expect(h, "LB.TAGS w bob", "[[c DE]]");
}

WINDOW_TEST(nothing_is_moved_to_a_member_who_is_banned_from_the_board) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    struct session *s = harness_connect(h);
    player_begin(h, s, "LB.BAN bob MATCH auto:a");
    while (!player_step(h, s)) {}
    (void)player_end(h, s);
    player_begin(h, s, "LB.MOVE ann bob");
    while (!player_step(h, s)) {}
    (void)player_end(h, s);
    zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[ann 5]");
    zset_expect(h, "ZREVRANGE auto:a@2026-11-26T05 0 -1 WITHSCORES", "[ann 5]");
}

/* ---- other declarations ---- */

/* The board of the running period is there already. */
WINDOW_TEST(an_alter_holds_from_the_next_result_on) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    zset_expect(h, "LB.ALTER auto:a WINDOW 3 BEST", "+OK");
    settle(h);
    zset_expect(h, "ZADD auto:a 4 ann", ":0");
    zset_expect(h, "ZSCORE auto:a ann", "5");
    zset_expect(h, "LB.ALTER auto:a WINDOW 3 SUM", "+OK");
    settle(h);
    zset_expect(h, "ZADD auto:a 3 ann", ":0");
    zset_expect(h, "ZSCORE auto:a ann", "3");
    zset_expect(h, "LB.ALTER auto:a KEEP BEST", "+OK");
    zset_expect(h, "ZADD auto:a 2 ann", ":0");
    zset_expect(h, "ZSCORE auto:a ann", "3");
}

/* The board of the running period has it at once: a result that is refused later changes nothing. */
WINDOW_TEST(an_alter_holds_for_the_running_period_before_a_result_comes) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    zset_expect_part(h, "LB.INFO auto:a@2026-11-26T05", "keep last");
    zset_expect(h, "LB.ALTER auto:a WINDOW 3 BEST", "+OK");
    zset_expect_part(h, "LB.INFO auto:a@2026-11-26T05", "keep best");
    zset_expect(h, "LB.ALTER auto:a WINDOW 3 SUM", "+OK");
    zset_expect_part(h, "LB.INFO auto:a@2026-11-26T05", "keep last");
    zset_expect(h, "LB.ALTER auto:a KEEP BEST", "+OK");
    zset_expect_part(h, "LB.INFO auto:a@2026-11-26T05", "keep best");
}

/* Their expiry is that of the old number. */
WINDOW_TEST(a_longer_window_keeps_the_archives_that_are_there) {
    static const char *const settles[] = {"NO", "YES"};
    for (size_t i = 0; i < COUNT_OF(settles); i++) {
        h->wall_us = zset_us("2026-11-27T05:10:00Z") + (int64_t)i * 24 * HOUR_US;
        zset_run(h, "FLUSHALL");
        zset_run(h, "LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR ARCHIVE 2 WINDOW 2 SUM SETTLE %s",
                 settles[i]);
        zset_expect(h, "ZADD w 5 ann 6 bob", ":2");
        zset_expect(h, "LB.ALTER w ARCHIVE 5 WINDOW 5 SUM", "+OK");
        pass_hours(h, 3);
        zset_run(h, i == 0 ? "LB.SETTLE none" : "LB.SETTLE w@2026-11-28T05");
        zset_expect(h, "ZADD w 1 ann", ":0");
        (void)registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 100);
        settle(h);
        zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[bob 6 ann 6]");
        pass_hours(h, 2);
        (void)registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 100);
        settle(h);
        zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[ann 1]");
        zset_expect(h, i == 0 ? "EXISTS w@2026-11-27T05" : "EXISTS w@2026-11-28T05", ":1");
        pass_hours(h, 1);
        (void)registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 100);
        zset_expect(h, i == 0 ? "EXISTS w@2026-11-27T05" : "EXISTS w@2026-11-28T05", ":0");
    }
}

WINDOW_TEST(a_period_is_kept_as_long_as_archives_are_when_it_ends) {
    zset_expect(h, "LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR ARCHIVE 2 WINDOW 2 SUM", "+OK");
    zset_expect(h, "ZADD w 5 ann", ":1");
    zset_expect(h, "LB.ALTER w ARCHIVE ALL", "+OK");
    zset_expect(h, "LB.ALTER w ARCHIVE 2", "+OK");
    pass_hours(h, 1);
    zset_expect(h, "ZSCORE w@2026-11-26T05 ann", "5");
    zset_expect_begin(h, "PTTL w@2026-11-26T05", ":");
    assert_true(registry_expiry_count(h->server.registry, 0) == 1);
}

WINDOW_TEST(a_window_can_be_altered) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:a 2 ann", ":0");
    zset_expect(h, "LB.ALTER auto:a WINDOW 3 BEST", "+OK");
    settle(h);
    zset_expect(h, "ZSCORE auto:a ann", "5");
    zset_expect(h, "LB.ALTER auto:a WINDOW 3 SUM", "+OK");
    settle(h);
    zset_expect(h, "ZSCORE auto:a ann", "7");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:a 1 ann", ":0");
    zset_expect(h, "LB.ALTER auto:a WINDOW 2 SUM", "+OK");
    settle(h);
    zset_expect(h, "ZSCORE auto:a ann", "3");
    zset_expect(h, "LB.ALTER auto:a WINDOW NONE", "+OK");
    zset_expect(h, "ZADD auto:a 4 ann", ":0");
    zset_expect_begin(h, "LB.ALTER auto:a WINDOW 2 SUM", "-ERR WINDOW is not possible: the board");
    h->wall_us += HOUR_US;
    zset_expect(h, "EXISTS auto:a auto:a@2026-11-26T07 auto:a@2026-11-26T07.2", ":1");
}

WINDOW_TEST(a_longer_window_may_be_told_by_its_number_alone) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:a 2 ann", ":0");
    zset_expect(h, "LB.ALTER auto:a WINDOW 4", "+OK");
    zset_expect_part(h, "LB.INFO auto:a", "window [periods :4 of sum");
    zset_expect(h, "LB.ALTER auto:a WINDOW 5 BEST", "+OK");
    zset_expect(h, "LB.ALTER auto:a WINDOW 2 KEEP BEST", "+OK");
    zset_expect_part(h, "LB.INFO auto:a", "window [periods :2 of best");
    zset_expect(h, "LB.ALTER auto:a WINDOW 2 AVG",
                "-ERR WINDOW 2 'AVG' is unknown: use SUM or BEST");
    static const char *const first[] = {"LB.CREATE w FIELD a 20 PERIOD HOUR WINDOW 4",
                                        "LB.CREATE w FIELD a 20 PERIOD HOUR WINDOW 4 KEEP BEST",
                                        "LB.ALTER plain:a WINDOW 4", "LB.ALTER auto:a WINDOW"};
    zset_expect(h, "ZADD plain:a 1 ann", ":1");
    for (size_t i = 0; i < COUNT_OF(first); i++) {
        zset_expect(h, first[i],
                    "-ERR WINDOW needs a number of periods and what they are to it: "
                    "WINDOW n SUM|BEST");
    }
}

/* The time of a SUM is that of the last result, which was not the best. */
WINDOW_TEST(what_was_the_best_and_becomes_a_sum_has_the_time_of_the_last_result) {
    zset_expect(h, "LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR WINDOW 3 BEST", "+OK");
    zset_expect(h, "LB.CREATE last FIELD a 20 TIME 31 S LATEST PERIOD HOUR WINDOW 3 BEST", "+OK");
    zset_expect(h, "ZADD w 50 ann 10 bob", ":2");
    zset_expect(h, "ZADD last 50 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD w 5 ann", ":0");
    zset_expect(h, "ZADD last 5 ann", ":0");
    zset_expect(h, "LB.RANGE w 0 -1", "[[ann :0 :1795669800000 :50] [bob :1 :1795669800000 :10]]");
    zset_expect(h, "LB.ALTER w WINDOW 3 SUM", "+OK");
    zset_expect(h, "LB.ALTER last WINDOW 3 SUM", "+OK");
    settle(h);
    zset_expect(h, "LB.RANGE w 0 -1", "[[ann :0 :1795673400000 :55] [bob :1 :1795669800000 :10]]");
    zset_expect(h, "LB.RANGE last 0 -1", "[[ann :0 :1795673400000 :55]]");
    zset_expect(h, "LB.ALTER w WINDOW 3 BEST", "+OK");
    settle(h);
    zset_expect(h, "LB.RANGE w 0 0", "[[ann :0 :1795669800000 :50]]");
}

/* What the replies count is the board: a result of the running period alone is no change of it. */
WINDOW_TEST(what_leaves_the_board_as_it_was_does_not_count) {
    zset_expect(h, "LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR WINDOW 3 BEST TAG t 8", "+OK");
    zset_expect(h, "ZADD w 50 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD w CH 5 ann", ":0");
    zset_expect(h, "ZADD w CH 6 ann", ":0");
    zset_expect(h, "LB.ADD w 7 ann", ":0");
    zset_expect(h, "LB.ADD w WITHRANK 8 ann", "[[[ann :0 :1795669800000 :50] :0]]");
    zset_expect(h, "LB.ADD w 9 ann 10 bob", ":1");
    zset_expect(h, "LB.ADD w TAG t x 10 ann 10 bob", ":0");
    zset_expect(h, "LB.SUBMIT 1 w 11 ann", "[[[ann :0 :1795669800000 :50] :0 :0]]");
    zset_expect(h, "LB.SUBMIT 1 w INCR 1 bob", "[[[bob :1 :1795673400000 :11] :1 :1]]");
    zset_expect(h, "ZREM w bob", ":1");
    zset_expect(h, "ZSCORE w@2026-11-26T06 ann", "11");
    zset_expect(h, "LB.SUBMIT 1 w 60 ann", "[[[ann :0 :1795673400000 :60] :0 :1]]");
    zset_expect(h, "LB.SUBMIT 1 w 40 ann", "[[[ann :0 :1795673400000 :60] :0 :0]]");
    pass_hours(h, 1);
    zset_expect(h, "ZADD w NX CH 5 ann 6 bob", ":1");
    zset_expect(h, "ZADD w NX CH 5 ann 6 bob", ":0");
    zset_expect(h, "ZADD w GT CH 59 ann 7 bob", ":1");
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD auto:a NX 5 ann", ":0"); /* it is on the board */
    zset_expect(h, "ZADD auto:a NX CH 5 bob 6 ann", ":1");
    zset_expect(h, "ZSCORE auto:a ann", "10");
}

/* More members than are made anew in a step. */
WINDOW_TEST(a_window_that_is_altered_while_it_is_made_anew_begins_once_more) {
    for (unsigned hour = 0; hour < 2; hour++) {
        for (unsigned i = 0; i < 1000; i++) {
            zset_expect(h, formatted("ZADD auto:a %u m%u", 5 - hour, i), hour == 0 ? ":1" : ":0");
        }
        pass_hours(h, 1 - (int64_t)hour);
    }
    zset_expect(h, "ZCOUNT auto:a 9 9", ":1000");
    zset_expect(h, "LB.ALTER auto:a WINDOW 3 BEST", "+OK");
    assert_true(job_list_step(&h->server, 0, true));
    zset_expect(h, "LB.ALTER auto:a WINDOW 3 SUM", "+OK");
    settle(h);
    zset_expect(h, "ZCOUNT auto:a 9 9", ":1000");
}

WINDOW_TEST(an_empty_board_can_get_a_window) {
    zset_expect(h, "LB.CREATE w FIELD a 20 TIME 31 S", "+OK");
    zset_expect(h, "LB.ALTER w PERIOD HOUR WINDOW 2 SUM", "+OK");
    zset_expect(h, "ZADD w 3 ann", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZADD w 3 ann", ":0");
    zset_expect(h, "ZSCORE w ann", "6");
}

WINDOW_TEST(a_copy_has_no_window) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    zset_expect(h, "COPY auto:a c", ":1");
    zset_expect(h, "COPY auto:a@2026-11-26T05 d", ":1");
    pass_hours(h, 4);
    zset_expect(h, "ZADD c 6 ann", ":0");
    zset_expect(h, "ZSCORE c ann", "6");
    zset_expect(h, "ZSCORE d ann", "5");
    zset_expect(h, "LB.ALTER d THAW", "+OK");
    zset_expect(h, "ZADD d 6 ann", ":0");
}

WINDOW_TEST(info_tells_where_it_is) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    zset_expect_part(h, "LB.INFO auto:a",
                     "window [periods :3 of sum from :1795669200000 behind :0 left :0]");
    zset_expect_part(h, "LB.INFO auto:a@2026-11-26T05", "window nil");
    h->wall_us += 4 * HOUR_US;
    zset_expect_part(h, "LB.INFO auto:a",
                     "window [periods :3 of sum from :1795669200000 behind :2 left :0]");
    zset_expect_part(h, "INFO stats", "windows_behind:2");
}

WINDOW_TEST(archives_go_when_they_have_left_the_window) {
    zset_expect(h, "LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR ARCHIVE 3 WINDOW 3 SUM", "+OK");
    zset_expect(h, "ZADD w 5 ann", ":1");
    pass_hours(h, 3);
    zset_expect(h, "EXISTS w@2026-11-26T05", ":1");
    zset_expect(h, "ZCARD w", ":0");
    pass_hours(h, 1);
    zset_expect(h, "EXISTS w@2026-11-26T05", ":0");
}

WINDOW_TEST(tags_are_on_the_board_and_on_the_running_periods) {
    zset_expect(h, "LB.CREATE w FIELD a 20 TIME 31 S TAG land 4 PERIOD HOUR WINDOW 2 SUM", "+OK");
    zset_expect(h, "LB.ADD w TAG land DE 5 ann", ":1");
    zset_expect(h, "LB.TAGS w@2026-11-26T05 ann", "[[land DE]]");
    pass_hours(h, 1);
    zset_expect(h, "LB.ADD w INCR 1 ann", ":1");
    zset_expect(h, "LB.TAGS w@2026-11-26T06 ann", "[[land DE]]");
    zset_expect(h, "LB.TAG w ann land FR", ":1");
    zset_expect(h, "LB.TAGS w@2026-11-26T06 ann", "[[land FR]]");
    zset_expect(h, "LB.TAGS w@2026-11-26T05 ann", "[[land DE]]");
    zset_expect(h, "LB.TAGS w ann", "[[land FR]]");
}

/* ---- the clock ---- */

WINDOW_TEST(a_clock_that_is_set_back_changes_nothing) {
    zset_expect(h, "ZADD auto:a 5 ann", ":1");
    pass_hours(h, 2);
    zset_expect(h, "ZADD auto:a 2 ann", ":0");
    pass_hours(h, 1);
    zset_expect(h, "ZSCORE auto:a ann", "2");
    h->step_us -= 2 * HOUR_US;
    server_update_time(&h->server);
    (void)registry_roll_ahead(h->server.registry, h->server.clock.now_ms - 2 * 3600000);
    settle(h);
    zset_expect(h, "ZSCORE auto:a ann", "2");
    zset_expect(h, "KEYS *", "[auto:a auto:a@2026-11-26T05 auto:a@2026-11-26T07]");
}

/* ---- without memory, and in Redis ---- */

static bool is_on(struct harness *h, const char *board, const char *member) {
    uint64_t packed;
    const struct registry_key *key =
        registry_find(h->server.registry, 0, bytes_from_text(board), h->server.clock.now_ms);
    return board_find(&key->board, bytes_from_text(member), &packed);
}

/* With each allocation of the steps failing once: after each step it is all of the window, or nothing. */
TEST(without_memory_a_member_is_moved_from_all_periods_or_from_none) {
    static const char *const boards[] = {"w", "w@2026-11-26T05", "w@2026-11-26T06",
                                         "w@2026-11-26T07"};
    static const char ann[] = "ann-with-a-name-of-some-length";
    static const char bob[] = "bob-with-another-long-name";
    for (uint64_t nth = 1; nth < 40; nth++) {
        void *started;
        assert_int_equal(window_start(&started), 0);
        struct harness *h = started;
        zset_expect(h,
                    "LB.CREATE w FIELD a 20 TIME 31 S TAG c 4 PERIOD HOUR ARCHIVE 5 WINDOW 3 SUM",
                    "+OK");
        for (int hour = 0; hour < 3; hour++) {
            zset_run(h, "LB.ADD w TAG c DE %d %s", 1 << hour, ann);
            pass_hours(h, hour < 2);
        }
        struct session *s = harness_connect(h);
        player_begin(h, s, formatted("LB.MOVE %s %s", ann, bob));
        memory_fail_at(nth);
        for (bool is_done = false; !is_done;) {
            is_done = player_step(h, s);
            for (size_t i = 0; i < COUNT_OF(boards); i++) {
                assert_int_equal(is_on(h, boards[i], ann), is_on(h, "w", ann));
                assert_int_equal(is_on(h, boards[i], bob), is_on(h, "w", bob));
            }
            assert_true(is_on(h, "w", ann) != is_on(h, "w", bob));
        }
        memory_fail_at(0);
        (void)player_end(h, s);
        zset_expect(h, formatted("ZSCORE w %s", bob), "7");
        zset_expect(h, formatted("LB.TAGS w %s", bob), "[[c DE]]");
        zset_end_jobs(&started);
    }
}

/* LB.FORGET: it is tried again. */
WINDOW_TEST(without_memory_a_member_is_forgotten_a_little_later) {
    for (uint64_t nth = 1; nth < 20; nth++) {
        zset_run(h, "FLUSHALL");
        settle(h);
        zset_expect(h, "ZADD auto:a 5 ann 1 bob", ":2");
        struct session *s = harness_connect(h);
        player_begin(h, s, "LB.FORGET ann");
        memory_fail_at(nth);
        (void)player_step(h, s);
        (void)player_step(h, s);
        memory_fail_at(0);
        while (!player_step(h, s)) {}
        (void)player_end(h, s);
        harness_disconnect(h, s);
        const struct registry_key *share =
            registry_find(h->server.registry, 0, BYTES("auto:a"), h->server.clock.now_ms);
        assert_int_equal(board_count(&share->board), 1);
        zset_expect(h, "ZRANGE auto:a 0 -1", "[bob]");
    }
}

WINDOW_TEST(where_another_host_has_the_keys_it_is_refused) {
    zset_expect(h, "ZADD auto:came 5 ann", ":1"); /* before it came there */
    h->server.is_embedded = true;
    static const char *const refused[] = {
        "LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR WINDOW 3 SUM",
        "LB.CREATE auto:a",
        "ZADD auto:a 5 ann",
        "LB.ADD auto:a 5 ann",
        "LB.ALTER there PERIOD HOUR WINDOW 3 SUM",
        "ZADD auto:came 6 ann",
        "LB.SUBMIT 1 auto:came 6 ann",
        "ZREM auto:came ann"};
    zset_expect(h, "LB.CREATE there FIELD a 20 TIME 31 S", "+OK");
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        zset_expect_begin(h, refused[i], "-ERR WINDOW is not possible here: in Redis and Valkey");
    }
    h->server.is_embedded = false;
    zset_expect(h, "KEYS *", "[auto:came auto:came@2026-11-26T05 there]");
}

/* ---- beside a twin ---- */

/* More members than leave in a step. */
enum { TWIN_MEMBERS = 150, TWIN_PERIODS = 200, TWIN_WINDOW = 4, TWIN_WRITES = 40 };

struct twin {
    struct harness *h;
    struct random random;
    bool is_best;
    int lowest, highest;
    int64_t begin_us; /* of the period 0 */
    int period;       /* that is running for the board */
    int first;        /* that counts */
    bool has[TWIN_PERIODS][TWIN_MEMBERS];
    int value[TWIN_PERIODS][TWIN_MEMBERS];
};

static struct registry_key *twin_key(const struct twin *twin, int period) {
    char name[64];
    if (period < 0) {
        return registry_find(twin->h->server.registry, 0, BYTES("w"), twin->h->server.clock.now_ms);
    }
    struct period hours = {.unit = PERIOD_HOUR, .every = 1};
    memcpy(name, "w@", 2);
    size_t size =
        2 + period_print_name(name + 2, &hours, twin->begin_us / 1000 + period * 3600000LL);
    return registry_find(twin->h->server.registry, 0, (struct bytes){.at = name, .size = size},
                         twin->h->server.clock.now_ms);
}

static struct bytes twin_name(int member) {
    static char name[8];
    return (struct bytes){.at = name, .size = (size_t)snprintf(name, sizeof name, "m%d", member)};
}

/* Does the member's result of the period count? Of the first period so many have left, by rank. */
static bool twin_counts(const struct twin *twin, int period, int member) {
    const struct registry_key *key = twin_key(twin, -1);
    uint32_t left = key != NULL ? registry_state(key)->left : 0;
    if (!twin->has[period][member] || period < twin->first) {
        return false;
    }
    if (period > twin->first || left == 0) {
        return true;
    }
    const struct registry_key *share = twin_key(twin, period);
    struct board_member there;
    assert_non_null(share);
    board_look_up(&share->board, twin_name(member), NULL, &there);
    assert_true(there.is_there);
    return board_rank_of(&share->board, &there) >= left;
}

/* Without the running period. */
static bool twin_before(const struct twin *twin, int member, int *value) {
    bool is_there = false;
    *value = twin->is_best ? INT32_MIN : 0;
    for (int period = twin->first; period < twin->period; period++) {
        if (twin_counts(twin, period, member)) {
            int result = twin->value[period][member];
            *value = !twin->is_best ? *value + result : result > *value ? result : *value;
            is_there = true;
        }
    }
    return is_there;
}

static bool twin_value(const struct twin *twin, int member, int *value) {
    bool is_there = twin_before(twin, member, value);
    if (twin->has[twin->period][member]) {
        int result = twin->value[twin->period][member];
        *value = !twin->is_best ? *value + result : result > *value ? result : *value;
        is_there = true;
    }
    *value = *value < twin->lowest ? twin->lowest : *value;
    *value = *value > twin->highest ? twin->highest : *value;
    return is_there;
}

static void twin_compare_board(const struct registry_key *key, int member, bool is_there,
                               int value) {
    uint64_t packed = 0;
    bool is_found = key != NULL && board_find(&key->board, twin_name(member), &packed);
    assert_int_equal(is_found, is_there);
    if (is_found) {
        struct decimal shown =
            layout_field_decimal(&board_layout(&key->board)->fields[0],
                                 layout_ordinal(board_layout(&key->board), packed, 0));
        assert_int_equal(shown.is_negative ? -(int)shown.magnitude : (int)shown.magnitude, value);
    }
}

static void twin_compare(struct twin *twin) {
    const struct registry_key *key = twin_key(twin, -1);
    bool is_anew = false;
    if (key != NULL) {
        const struct board_options *options = registry_options(key);
        twin->first = (int)((registry_state(key)->from_ms - twin->begin_us / 1000) / 3600000);
        is_anew = registry_state(key)->is_anew;
        assert_int_equal((options->period_start_ms - twin->begin_us / 1000) / 3600000,
                         twin->period);
    }
    for (int member = 0; member < TWIN_MEMBERS; member++) {
        int value;
        bool is_there = twin_value(twin, member, &value);
        if (!is_anew) {
            twin_compare_board(key, member, is_there, value);
        }
        twin_compare_board(twin_key(twin, twin->period), member, twin->has[twin->period][member],
                           twin->value[twin->period][member]);
    }
    ASSERT_VALID(registry_validate, twin->h->server.registry);
}

/* What a write makes of the result of the running period. false: it leaves it alone. */
static bool twin_write(struct twin *twin, const char *how, int member, int number) {
    bool has = twin->has[twin->period][member];
    int before = has ? twin->value[twin->period][member] : 0;
    int after = strcmp(how, "INCR") == 0 ? before + number : number;
    bool is_better = !has || after > before;
    int others;
    if ((strcmp(how, "NX") == 0 && has) || (strcmp(how, "XX") == 0 && !has) ||
        ((strcmp(how, "BEST") == 0 || strcmp(how, "GT") == 0) && !is_better) ||
        (strcmp(how, "LT") == 0 && has && after >= before) ||
        (twin->is_best && strcmp(how, "INCR") != 0 && !is_better)) {
        return false;
    }
    (void)twin_before(twin, member, &others);
    int sum = twin->is_best ? after : others + after;
    if (after < twin->lowest || after > twin->highest || sum < twin->lowest ||
        sum > twin->highest) {
        return false;
    }
    twin->has[twin->period][member] = true;
    twin->value[twin->period][member] = after;
    return true;
}

static void twin_forget(struct twin *twin, int member) {
    for (int period = twin->first; period <= twin->period; period++) {
        /* One that has left is taken off, too. */
        twin->has[period][member] = false;
    }
}

static void twin_step_write(struct twin *twin) {
    static const char *const ways[][2] = {
        {"ZADD w", ""},
        {"ZADD w NX", "NX"},
        {"ZADD w XX", "XX"},
        {"ZADD w GT", "GT"},
        {"ZADD w LT", "LT"},
        {"ZINCRBY w", "INCR"},
        {"LB.ADD w", ""},
        {"LB.ADD w INCR", "INCR"},
        {"LB.ADD w BEST", "BEST"},
        {"LB.SUBMIT 2 w other INCR", "INCR"},
    };
    for (int i = 0; i < TWIN_WRITES; i++) {
        size_t way = random_below(&twin->random, COUNT_OF(ways));
        int member = (int)random_below(&twin->random, TWIN_MEMBERS);
        int number = (int)random_below(&twin->random, 60) - 20;
        (void)twin_write(twin, ways[way][1], member, number);
        zset_run(twin->h, "%s %d m%d", ways[way][0], number, member);
    }
}

/* LB.MOVE: on each period's board, the better result. */
static void twin_move(struct twin *twin, int from, int to) {
    struct harness *h = twin->h;
    char line[64];
    if (from == to) {
        return;
    }
    struct session *s = harness_connect(h);
    for (int period = twin->first; period <= twin->period; period++) {
        if (twin->has[period][from]) {
            int value = twin->value[period][from];
            bool is_better = !twin->has[period][to] || value > twin->value[period][to];
            twin->value[period][to] = is_better ? value : twin->value[period][to];
            twin->has[period][to] = true;
            twin->has[period][from] = false;
        }
    }
    snprintf(line, sizeof line, "LB.MOVE m%d m%d MATCH w*", from, to);
    player_begin(h, s, line);
    while (!player_step(h, s)) {}
    (void)player_end(h, s);
    harness_disconnect(h, s);
}

static void twin_step(struct twin *twin) {
    struct harness *h = twin->h;
    int member = (int)random_below(&twin->random, TWIN_MEMBERS);
    switch (random_below(&twin->random, 24)) {
    case 0: {
        int hours =
            random_below(&twin->random, 8) == 0 ? 7 : 1 + (int)random_below(&twin->random, 2);
        h->wall_us += hours * HOUR_US;
        twin->period += hours;
        server_update_time(&h->server);
        (void)registry_roll_due(h->server.registry, h->server.clock.now_ms, 1000);
        break;
    }
    case 1:
        twin_forget(twin, member);
        zset_run(h, "ZREM w m%d", member);
        break;
    case 2:
        twin_move(twin, member, (int)random_below(&twin->random, TWIN_MEMBERS));
        break;
    case 3:
        job_list_end(&h->server);
        job_board_begin(&h->server, &window_job);
        break;
    case 4:
        if (random_below(&twin->random, 4) == 0) {
            int period = twin->period - (int)random_below(&twin->random, TWIN_WINDOW);
            struct registry_key *share = period >= twin->first ? twin_key(twin, period) : NULL;
            if (share != NULL) {
                memset(twin->has[period], 0, sizeof twin->has[period]);
                zset_run(h, "DEL %.*s", (int)share->name_size, share->name_at);
                settle(h);
            }
        }
        break;
    case 5:
        settle(h);
        break;
    case 6:
    case 7:
    case 8:
        server_update_time(&h->server);
        memory_fail_at(random_below(&twin->random, 3) == 0 ? 1 + random_below(&twin->random, 20)
                                                           : 0);
        (void)job_list_step(&h->server, 0, true);
        memory_fail_at(0);
        h->wall_us += 1000; /* what had no memory is tried again in another millisecond */
        break;
    default:
        twin_step_write(twin);
    }
}

static void twin_run(bool is_best, unsigned bits) {
    struct harness *h = harness_create(NULL);
    OWNED struct twin *twin = calloc(1, sizeof *twin);
    harness_connect(h);
    *twin = (struct twin){.h = h, .random = random_begin("test_window"), .is_best = is_best};
    twin->lowest = -(1 << (bits - 1));
    twin->highest = (1 << (bits - 1)) - 1;
    h->wall_us = zset_us("2026-11-26T05:10:00Z");
    twin->begin_us = zset_us("2026-11-26T05:00:00Z");
    job_board_begin(&h->server, &window_job);
    char line[200];
    snprintf(line, sizeof line,
             "LB.CREATE w FIELD a %u SIGNED TIME 42 MS PERIOD HOUR ARCHIVE 50 WINDOW %d %s", bits,
             (int)TWIN_WINDOW, is_best ? "BEST" : "SUM");
    zset_expect(h, line, "+OK");
    const int end = (int)test_rounds(TWIN_PERIODS, TWIN_PERIODS) - 8;
    while (twin->period < end) {
        twin_step(twin);
        twin_compare(twin);
    }
    settle(h);
    twin_compare(twin);
    job_list_end(&h->server);
    harness_destroy(h);
}

TEST(sums_are_those_of_the_twin) {
    twin_run(false, 20);
}

TEST(sums_that_leave_the_range_are_those_of_the_twin) {
    twin_run(false, 7);
}

TEST(the_best_are_those_of_the_twin) {
    twin_run(true, 20);
}

/* ---- leaving in steps ---- */

static void fill(struct harness *h, const char *board, int count) {
    char request[64];
    for (int i = 0; i < count; i++) {
        (void)snprintf(request, sizeof request, "ZINCRBY %s 5 m%d", board, i);
        zset_run(h, "%s", request);
    }
}

/* An hour later, but nothing has left yet. */
static void pass_an_hour_only(struct harness *h) {
    h->wall_us += HOUR_US;
    server_update_time(&h->server);
    (void)registry_roll_due(h->server.registry, h->server.clock.now_ms, 1000);
}

static unsigned count_steps(struct harness *h) {
    unsigned count = 1;
    while (job_list_step(&h->server, 0, true)) {
        count++;
    }
    return count;
}

/* Where every member would have to be looked for in every period, a step would have room for seven. */
WINDOW_TEST(members_of_whom_nothing_stays_leave_many_at_a_time) {
    zset_expect(h, "LB.CREATE w FIELD score 33 TIME 31 S PERIOD HOUR WINDOW 200 SUM", "+OK");
    fill(h, "w", 640);
    for (int i = 0; i < 200; i++) {
        zset_run(h, "ZINCRBY w 1 first");
        i < 199 ? pass_hours(h, 1) : pass_an_hour_only(h);
    }
    assert_in_range(count_steps(h), 10, 50);
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[first 199]");
}

WINDOW_TEST(members_whose_best_came_again_leave_many_at_a_time) {
    zset_expect(h, "LB.CREATE w FIELD score 33 TIME 31 S PERIOD HOUR WINDOW 200 BEST", "+OK");
    for (int i = 0; i < 200; i++) {
        if (i < 2) {
            fill(h, "w", 640);
        }
        zset_run(h, "ZADD w 1 first");
        i < 199 ? pass_hours(h, 1) : pass_an_hour_only(h);
    }
    assert_in_range(count_steps(h), 10, 50);
    zset_expect(h, "ZCARD w", ":641");
}

/* 300 periods with a result each, and one more has begun. */
static void fill_many_periods(struct harness *h, const char *how) {
    zset_run(h, "LB.CREATE w FIELD score 33 TIME 31 S PERIOD HOUR WINDOW 300 %s", how);
    fill(h, "w", 10);
    for (int i = 0; i < 300; i++) {
        zset_run(h, "LB.ADD w INCR 1 first");
        i < 299 ? pass_hours(h, 1) : pass_an_hour_only(h);
    }
}

/* Their boards are found in steps, which begin anew where a key comes or goes that may be one of them. */
WINDOW_TEST(members_leave_while_keys_with_names_of_periods_come_and_go_all_the_time) {
    fill_many_periods(h, "SUM");
    unsigned steps = 0;
    while (job_list_step(&h->server, 0, true)) {
        zset_run(h, "HSET w@x f v");
        zset_run(h, "DEL w@x");
        assert_in_range(++steps, 1, 100);
    }
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[first 299]");
}

WINDOW_TEST(a_period_that_is_deleted_while_the_others_are_found_counts_no_more) {
    fill_many_periods(h, "SUM");
    settle(h);
    for (int i = 0; i < 7; i++) {
        zset_run(h, "ZINCRBY w 1 first");
        pass_an_hour_only(h);
        for (int j = 0; j < i; j++) {
            (void)job_list_step(&h->server, 0, true);
        }
        zset_run(h, "DEL w@2026-11-30T%02d", 9 + 2 * i);
        settle(h);
        char expected[32]; /* one has come, one has left, one was deleted */
        (void)snprintf(expected, sizeof expected, "[first %d]", 298 - i);
        zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", expected);
    }
}

WINDOW_TEST(who_has_nothing_but_0_left_stays) {
    zset_expect(h, "LB.CREATE w FIELD a 16 FIELD b 16 TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
    zset_expect(h, "LB.ADD w 5 0 ann 5 0 bob 5 0 eve 5 0 zoe", ":4");
    pass_hours(h, 1);
    zset_expect(h, "LB.ADD w 0 0 ann 0 7 bob 1 0 dan", ":3");
    pass_hours(h, 1);
    zset_expect(h, "LB.ADD w 0 0 zoe", ":1");
    pass_hours(h, 1);
    zset_expect(h, "ZREVRANGE w 0 -1", "[dan bob ann zoe]");
}

/* The board is looked at in steps; a period's board comes, goes or changes between them. */
static void leave_with(struct harness *h, const char *board, const char *between) {
    fill(h, board, 200);
    pass_hours(h, 1);
    char request[64];
    (void)snprintf(request, sizeof request, "ZINCRBY %s 3 m150", board);
    zset_run(h, "%s", request);
    (void)snprintf(request, sizeof request, "ZINCRBY %s 1 other", board);
    zset_run(h, "%s", request);
    pass_hours(h, 1);
    pass_an_hour_only(h);
    for (int i = 0; i < 2; i++) {
        assert_true(job_list_step(&h->server, 0, true));
    }
    zset_run(h, "%s", between);
    settle(h);
}

WINDOW_TEST(a_period_that_is_deleted_between_two_steps_counts_no_more) {
    zset_expect(h, "LB.CREATE w FIELD score 33 TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
    leave_with(h, "w", "DEL w@2026-11-26T06");
    zset_expect(h, "ZCARD w", ":0");
}

WINDOW_TEST(a_result_that_is_moved_between_two_steps_counts) {
    zset_expect(h, "LB.CREATE w FIELD score 33 TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
    leave_with(h, "w", "LB.MOVE other m199 SUM");
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[m150 3 m199 1]");
}

WINDOW_TEST(a_period_that_begins_between_two_steps_counts) {
    zset_expect(h, "LB.CREATE w FIELD score 33 TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
    leave_with(h, "w", "ZADD w 9 m199");
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[m199 9 m150 3 other 1]");
}

WINDOW_TEST(a_period_that_begins_with_0_between_two_steps_counts) {
    zset_expect(h, "LB.CREATE w FIELD score 33 TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
    leave_with(h, "w", "ZADD w 0 m199");
    zset_expect(h, "ZREVRANGE w 0 -1 WITHSCORES", "[m150 3 other 1 m199 0]");
}

/* ---- look-ups that change another board ---- */

/* A period's board that expires makes the whole board anew, with other options: who looks it up still has those of before. */
WINDOW_TEST(a_period_may_expire_while_ranks_since_the_last_are_asked) {
    zset_expect(h, "LB.CREATE w FIELD score 33 SIGNED TIME 31 S PERIOD HOUR WINDOW 3 SUM", "+OK");
    for (int i = 0; i < 3; i++) {
        zset_expect(h, "ZINCRBY w 5 ann", i == 0 ? "5" : i == 1 ? "10" : "15");
        pass_hours(h, 1);
    }
    zset_expect(h, "EXPIRE w@2026-11-26T07 60", ":1");
    zset_expect(h, "EXPIRE w@2026-11-26T06 60", ":1");
    h->wall_us += HOUR_US / 30;
    zset_run(h, "LB.RANGE w 0 0 SINCE LAST");
    zset_expect(h, "EXISTS w@2026-11-26T07", ":0");
    settle(h);
    zset_run(h, "LB.INFO w");
    zset_run(h, "LB.GET w ann SINCE LAST");
}

/* A pass comes to the board of the running period first; its board is looked up next, and has expired. */
WINDOW_TEST(a_pass_finds_periods_of_boards_that_have_just_expired) {
    static const char *const passes[] = {"LB.FORGET ann", "LB.BAN ann", "LB.MOVE ann eve",
                                         "LB.MOVE ann eve SUM"};
    for (size_t pass = 0; pass < COUNT_OF(passes); pass++) {
        for (int i = 0; i < 20; i++) {
            zset_run(h, "LB.CREATE w%d FIELD score 33 TIME 31 S PERIOD HOUR WINDOW 3 SUM", i);
            zset_run(h, "ZINCRBY w%d 5 ann", i);
            zset_run(h, "EXPIRE w%d 60", i);
        }
        h->wall_us += HOUR_US / 30;
        struct session *s = harness_connect(h);
        player_begin(h, s, passes[pass]);
        while (!player_step(h, s)) {}
        (void)player_end(h, s);
        settle(h);
        zset_expect(h, "KEYS *", "[]");
        ASSERT_VALID(registry_validate, h->server.registry);
    }
}

/* ---- watches ---- */

/* The end of the period tells of the running period's board, which ends the watch that asked for it, and has then no
 * memory for the rest. */
WINDOW_TEST(a_watched_period_may_end_without_memory) {
    enum { HOURS = 9 };
    struct session *session = h->server.sessions.first;
    for (uint64_t nth = 1; nth <= HOURS; nth++) {
        pass_hours(h, 1);
        zset_run(h, "FLUSHALL");
        zset_run(h,
                 "LB.CREATE w FIELD score 33 SIGNED TIME 31 S PERIOD HOUR WINDOW 3 SUM ARCHIVE 5");
        zset_run(h, "ZINCRBY w 5 ann");
        zset_expect(h, "LB.ALTER w ARCHIVE 9", "+OK");
        char share[] = "w@2026-11-26T00";
        snprintf(share + sizeof share - 3, 3, "%02u", (unsigned)(4 + 2 * nth));
        zset_expect(h, formatted("EXISTS %s", share), ":1");
        zset_expect(h, formatted("WATCH %s", share), "+OK");
        zset_expect(h, "MULTI", "+OK");
        zset_expect(h, "ZCARD w", "+QUEUED");
        h->wall_us += HOUR_US;
        assert_string_equal(harness_run_failing(h, session, "EXEC", nth), "*-1\r\n");
    }
}
