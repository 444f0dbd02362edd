/* Boards with WINDOW and the other parts of contests: what goes together, and what is refused. */
#include "server/commands/window.h"
#include "server/sessions/job.h"
#include "tests/server/zset_fixture.h"

#define HOUR_US INT64_C(3600000000)

static int contests_start(void **state) {
    struct harness *h = zset_start_job(state,
                                       "layout one FIELD score 33 SIGNED TIME 31 S\n"
                                       "board auto:* one PERIOD HOUR WINDOW 3 SUM\n",
                                       &window_job);
    h->wall_us = zset_us("2026-11-26T05:10:00Z");
    return 0;
}

#define CONTESTS_TEST(name) TEST_GIVEN(name, contests_start, zset_end_jobs, struct harness *h)

static void pass_hours(struct harness *h, int64_t hours) {
    h->wall_us += hours * HOUR_US;
    server_update_time(&h->server);
    (void)registry_roll_due(h->server.registry, h->server.clock.now_ms, 1000);
    while (job_list_step(&h->server, 0, true)) {}
}

/* ---- ONCE ---- */

CONTESTS_TEST(a_result_that_comes_again_changes_neither_the_board_nor_its_period) {
    zset_expect(h, "LB.ADD auto:a ONCE x WITHRANK INCR 5 ann",
                "[[[ann :0 :1795669800000 :5] nil]]");
    zset_expect(h, "LB.ADD auto:a ONCE x WITHRANK INCR 5 ann", "[[[ann :0 :1795669800000 :5] :0]]");
    zset_expect(h, "LB.ADD auto:a ONCE x INCR 5 ann", ":0");
    zset_expect(h, "LB.SUBMIT 2 auto:a auto:b ONCE y INCR 5 ann",
                "[[[ann :0 :1795669800000 :10] :0 :1] [[ann :0 :1795669800000 :5] nil :1]]");
    zset_expect(h, "LB.SUBMIT 2 auto:a auto:b ONCE y INCR 5 ann",
                "[[[ann :0 :1795669800000 :10] :0 :0] [[ann :0 :1795669800000 :5] :0 :0]]");
    zset_expect(h, "ZSCORE auto:a@2026-11-26T05 ann", "10");
    zset_expect(h, "ZSCORE auto:b@2026-11-26T05 ann", "5");
    /* Refused: it leaves no id. */
    zset_expect(
        h, "LB.ADD auto:a ONCE z INCR 4294967290 ann",
        "-ERR value 10 + 4294967290 is out of range: field 'score' takes -4294967296..4294967295");
    zset_expect(h, "LB.ADD auto:a ONCE z INCR 1 ann", ":1");
    /* A board that is gone is answered as one that is none. */
    zset_expect(h, "DEL auto:a", ":1");
    zset_expect(h, "LB.ADD auto:a ONCE z WITHRANK INCR 1 ann", "[[nil* nil]]");
    zset_expect(h, "LB.SUBMIT 2 auto:a auto:b ONCE y INCR 5 ann",
                "[[nil* nil :0] [[ann :0 :1795669800000 :5] :0 :0]]");
    zset_expect(h, "KEYS auto:a*", "[]");
}

CONTESTS_TEST(an_id_is_known_in_the_next_period_too) {
    h->wall_us = zset_us("2026-11-26T05:58:00Z");
    zset_expect(h, "LB.ADD auto:a ONCE x INCR 5 ann", ":1");
    h->wall_us = zset_us("2026-11-26T06:02:00Z");
    pass_hours(h, 0);
    zset_expect(h, "LB.ADD auto:a ONCE x INCR 5 ann", ":0");
    zset_expect(h, "EXISTS auto:a@2026-11-26T06", ":0");
    zset_expect(h, "LB.ADD auto:a ONCE y INCR 1 ann", ":1");
    zset_expect(h, "ZREVRANGE auto:a 0 -1 WITHSCORES", "[ann 6]");
}

/* ---- HSET ---- */

CONTESTS_TEST(a_hash_is_of_the_board_and_not_of_its_period) {
    zset_expect(h, "LB.CREATE best FIELD a 20 PERIOD HOUR WINDOW 2 BEST", "+OK");
    zset_expect(h, "LB.ADD best BEST HSET run:%:* 1 replay r1 50 ann", ":1");
    zset_expect(h, "HGETALL run:best:ann", "[replay r1]");
    pass_hours(h, 1);
    /* The best of its hour, which is none of the board. */
    zset_expect(h, "LB.ADD best BEST HSET run:%:* 1 replay r2 40 ann", ":0");
    zset_expect(h, "ZSCORE best@2026-11-26T06 ann", "40");
    zset_expect(h, "ZSCORE best ann", "50");
    zset_expect(h, "HGETALL run:best:ann", "[replay r1]");
    zset_expect(h, "LB.SUBMIT 1 best BEST HSET run:%:* 1 replay r3 45 ann",
                "[[[ann :0 nil :50] :0 :0]]");
    zset_expect(h, "HGETALL run:best:ann", "[replay r1]");
    zset_expect(h, "LB.SUBMIT 1 best BEST HSET run:%:* 1 replay r4 60 ann",
                "[[[ann :0 nil :60] :0 :1]]");
    zset_expect(h, "HGETALL run:best:ann", "[replay r4]");
    zset_expect(h, "LB.ADD best BEST HSET run:%:* 1 replay r5 61 ann 1 bob", ":2");
    zset_expect(h, "HGETALL run:best:ann", "[replay r5]");
    zset_expect(h, "HGETALL run:best:bob", "[replay r5]");
    zset_expect(h, "LB.ADD auto:s INCR HSET sum:* 1 f 1 3 ann", ":1");
    zset_expect(h, "LB.ADD auto:s INCR HSET sum:* 1 f 2 4 ann", ":1");
    zset_expect(h, "HGETALL sum:ann", "[f 2]");
    zset_expect(h, "LB.ADD auto:s INCR HSET sum:* 1 f 3 0 ann", ":0");
    zset_expect(h, "HGETALL sum:ann", "[f 2]");
    /* Neither the board nor its period may be the hash. */
    zset_expect(h, "LB.ADD auto:s HSET auto:* 1 f 1 3 s",
                "-WRONGTYPE Operation against a key holding the wrong kind of value");
    zset_expect(h, "LB.ADD auto:s HSET auto:s@2026-11-26T* 1 f 1 3 06",
                "-WRONGTYPE Operation against a key holding the wrong kind of value");
    zset_expect(h, "ZCARD auto:s", ":1");
}

/* %@: the results of each period have their hashes, and the board shows that of the result that counts. */
CONTESTS_TEST(each_period_has_a_hash_of_its_own) {
    zset_expect(h, "LB.CREATE best FIELD a 20 PERIOD HOUR WINDOW 2 BEST ARCHIVE 2", "+OK");
    zset_expect(h, "LB.ADD best BEST HSET run:%@:* 1 replay r1 50 ann", ":1");
    zset_expect(h, "LB.ADD best BEST HSET run:%@:* 1 replay r2 40 ann", ":0");
    zset_expect(h, "LB.ADD best BEST HSET run:%@:* 1 replay r3 30 bob", ":1");
    zset_expect(h, "HGETALL run:best@2026-11-26T05:ann", "[replay r1]");
    zset_expect(h, "LB.RANGE best 0 -1 DATA run:%@:*",
                "[[ann :0 nil :50 [replay r1]] [bob :1 nil :30 [replay r3]]]");
    zset_expect(h, "LB.RANGE best@2026-11-26T05 0 0 DATA run:%@:*",
                "[[ann :0 nil :50 [replay r1]]]");
    pass_hours(h, 1);
    static const char *const second[][2] = {
        {"LB.ADD best BEST HSET run:%@:* 1 replay r4 45 ann", ":0"}, /* the best of its hour */
        {"HGETALL run:best@2026-11-26T06:ann", "[replay r4]"},
        {"LB.SUBMIT 1 best BEST HSET run:%@:* 1 replay r5 44 ann", "[[[ann :0 nil :50] :0 :0]]"},
        {"HGETALL run:best@2026-11-26T06:ann", "[replay r4]"},
        {"LB.ADD best BEST HSET run:%@:* 1 replay r6 60 bob", ":1"},
        {"LB.RANGE best 0 -1 DATA run:%@:* FIELDS 1 replay",
         "[[bob :0 nil :60 [r6]] [ann :1 nil :50 [r1]]]"},
        {"LB.GET best 2 ann bob DATA %@*", "[[ann :1 nil :50 nil*] [bob :0 nil :60 nil*]]"},
        /* Of equal results the older one counts. */
        {"LB.ADD best BEST HSET run:%@:* 1 replay r7 50 ann", ":0"},
        {"LB.GET best 1 ann DATA run:%@:* FIELDS 1 replay", "[[ann :1 nil :50 [r1]]]"},
    };
    zset_expect_each(h, second);
    pass_hours(h, 1);
    /* The 50 has left, and what the hour after it brought is shown with its own. */
    zset_expect(h, "LB.RANGE best 0 -1 DATA run:%@:* FIELDS 1 replay",
                "[[bob :0 nil :60 [r6]] [ann :1 nil :50 [r7]]]");
    /* Hashes go as the archives of their periods do. */
    zset_expect(h, "PEXPIRETIME best@2026-11-26T05", ":1795680000000");
    zset_expect(h, "PEXPIRETIME run:best@2026-11-26T05:ann", ":1795680000000");
    pass_hours(h, 1);
    zset_expect(h, "EXISTS run:best@2026-11-26T05:ann run:best@2026-11-26T06:ann", ":1");
}

/* Of a sum it is the period of the last result. */
CONTESTS_TEST(the_hash_of_a_sum_is_that_of_the_last_result) {
    zset_expect(h, "LB.ADD auto:s INCR HSET run:%@:* 1 replay r1 50 ann", ":1");
    zset_expect(h, "LB.ADD auto:s INCR HSET run:%@:* 1 replay r2 9 bob", ":1");
    pass_hours(h, 1);
    zset_expect(h, "LB.ADD auto:s INCR HSET run:%@:* 1 replay r3 1 ann", ":1");
    zset_expect(h, "LB.RANGE auto:s 0 -1 DATA run:%@:* FIELDS 1 replay STRINGS",
                "[[ann :0 :1795673400000 51 [r3]] [bob :1 :1795669800000 9 [r2]]]");
}

/* On a board with a PERIOD alone it is the running one; without any, the name alone. */
CONTESTS_TEST(a_board_without_a_window_has_a_hash_for_each_period_too) {
    shadow_end(h->shadow); /* hashes of archives expire there by the machine's clock */
    zset_expect(h, "LB.CREATE day FIELD a 20 PERIOD DAY ARCHIVE 2", "+OK");
    zset_expect(h, "LB.CREATE kept FIELD a 20 PERIOD DAY ARCHIVE 2 SETTLE YES", "+OK");
    zset_expect(h, "LB.SUBMIT 3 day kept plain BEST HSET run:%@:* 1 replay r1 50 ann",
                "[[[ann :0 nil :50] nil :1] [[ann :0 nil :50] nil :1] "
                "[[ann :0 :1795669800000 :50] nil :1]]");
    zset_expect(h, "KEYS run:*", "[run:day@2026-11-26:ann run:kept@2026-11-26:ann run:plain:ann]");
    zset_expect(h, "LB.GET day 1 ann DATA run:%@:*", "[[ann :0 nil :50 [replay r1]]]");
    zset_expect(h, "LB.AROUND day MEMBER ann 1 DATA run:%@:*", "[[ann :0 nil :50 [replay r1]]]");
    zset_expect(h, "LB.GET plain 1 ann DATA run:%@:*", "[[ann :0 :1795669800000 :50 [replay r1]]]");
    zset_expect(h, "PTTL run:plain:ann", ":-1");
    zset_expect(h, "PTTL run:kept@2026-11-26:ann",
                ":-1"); /* as the archive, which is kept until it is settled */
    zset_expect(h, "PEXPIRETIME run:day@2026-11-26:ann", ":1795910400000");
    pass_hours(h, 24);
    zset_expect(h, "LB.ADD day BEST HSET run:%@:* 1 replay r2 40 ann", ":1");
    zset_expect(h, "LB.GET day 1 ann DATA run:%@:*", "[[ann :0 nil :40 [replay r2]]]");
    zset_expect(h, "LB.GET day@2026-11-26 1 ann DATA run:%@:*", "[[ann :0 nil :50 [replay r1]]]");
}

CONTESTS_TEST(what_a_pattern_with_a_period_cannot_be_is_refused) {
    shadow_end(h->shadow); /* users are the host's */
    static const char *const rows[][2] = {
        {"LB.ADD p HSET run:%:%@:* 1 f v 1 ann",
         "-ERR HSET needs a key with one * where the member goes, and at most one % where "
         "the board's name goes"},
        {"LB.RANGE p 0 -1 DATA %@:%@:*",
         "-ERR DATA takes one %@, which stands for the board's period"},
        {"LB.FORGET ann DATA run:%@:*",
         "-ERR DATA of LB.FORGET takes no %@: name the hashes of each period"},
        {"ACL SETUSER u on nopass +@all ~p ~run:p@*", "+OK"},
        {"AUTH u x", "+OK"},
        {"LB.RANGE p 0 -1 DATA run:%@:*", /* without a PERIOD it is run:p:* */
         "-NOPERM this user has no permissions to access one of the keys used as arguments"},
    };
    zset_expect_each(h, rows);
}

/* ---- SINCE, SETTLE ---- */

CONTESTS_TEST(since_last_is_the_last_period_alone) {
    zset_expect(h, "LB.ADD auto:a 9 ann 8 bob", ":2");
    zset_expect(h, "LB.RANGE auto:a 0 0 SINCE LAST", "[[ann :0 :1795669800000 :9 nil]]");
    pass_hours(h, 1);
    zset_expect(h, "LB.ADD auto:a 5 bob 4 cid", ":2");
    zset_expect(h, "LB.RANGE auto:a 0 -1 SINCE LAST",
                "[[bob :0 :1795673400000 :13 :1] [ann :1 :1795669800000 :9 :0] "
                "[cid :2 :1795673400000 :4 nil]]");
    pass_hours(h, 1);
    zset_expect(h, "LB.GET auto:a 3 ann bob cid SINCE LAST",
                "[[ann :1 :1795669800000 :9 nil] [bob :0 :1795673400000 :13 :0] "
                "[cid :2 :1795673400000 :4 :1]]");
    zset_expect(h, "LB.GET auto:a 1 ann SINCE auto:a@2026-11-26T05",
                "[[ann :1 :1795669800000 :9 :0]]");
}

CONTESTS_TEST(what_a_period_brought_is_settled_once_it_is_over) {
    zset_expect(h, "LB.CREATE w FIELD a 20 SETTLE YES PERIOD HOUR ARCHIVE 2 WINDOW 2 SUM", "+OK");
    zset_expect(h, "LB.ADD w 5 ann", ":1");
    zset_expect(h, "LB.LIST UNSETTLED", "[0 []]");
    zset_expect_begin(h, "LB.SETTLE w@2026-11-26T05", "-ERR board is no archive");
    pass_hours(h, 1);
    zset_expect_part(h, "LB.LIST UNSETTLED", "name w@2026-11-26T05");
    zset_expect_begin(h, "LB.SETTLE w", "-ERR board is no archive");
    pass_hours(h, 9);
    zset_expect(h, "ZCARD w", ":0");
    zset_expect(h, "ZSCORE w@2026-11-26T05 ann", "5");
    zset_expect(h, "LB.SETTLE w@2026-11-26T05", ":1");
    zset_expect(h, "EXISTS w@2026-11-26T05", ":0");
}

/* ---- what is refused ---- */

CONTESTS_TEST(what_does_not_go_with_a_window_is_refused) {
    static const char decay[] = "-ERR WINDOW and DECAY exclude each other: what members got either "
                                "leaves with its period, or fades";
    static const char copy[] = "-ERR WINDOW and COPY exclude each other";
    static const char stale[] = "-ERR WINDOW and STALE exclude each other";
    static const char no_rooms[] = "-ERR board '{l}:rooms': WINDOW is not possible: rooms begin "
                                   "anew";
    const char *const rows[][2] = {
        {"LB.CREATE d FIELD a 60 DECAY 6 H PERIOD HOUR WINDOW 2 SUM", decay},
        {"LB.CREATE d FIELD a 60 DECAY 6 H PERIOD HOUR WINDOW 2 BEST", decay},
        {"LB.CREATE d FIELD a 60 DECAY 6 H PERIOD HOUR", "+OK"},
        {"LB.ALTER d WINDOW 2 SUM", decay},
        {"LB.CREATE w FIELD a 20 PERIOD HOUR COPY WINDOW 2 SUM", copy},
        {"LB.CREATE w FIELD a 20 PERIOD HOUR WINDOW 2 SUM COPY", copy},
        {"LB.CREATE c FIELD a 20 PERIOD HOUR COPY", "+OK"},
        {"LB.ALTER c WINDOW 2 SUM", copy},
        {"LB.CREATE w FIELD a 20 TIME 31 S PERIOD HOUR WINDOW 2 SUM", "+OK"},
        {"LB.ALTER w COPY", copy},
        {"LB.ALTER w STALE 1 HOUR", stale},
        {"LB.LEAGUE CREATE l FIELD a 22 PERIOD WEEK WINDOW 2 SUM ROOM 3 TIERS 2 UP 1 DOWN 1",
         "-ERR WINDOW is not possible: rooms begin anew"},
        {"LB.LEAGUE CREATE l FIELD a 22 PERIOD WEEK ROOM 3 TIERS 2 UP 1 DOWN 1", "+OK"},
        {"LB.ALTER {l}:rooms WINDOW 2 SUM", "+OK"},
        {"LB.LEAGUE ADD l 5 ann", no_rooms},
        {"LB.ALTER {l}:rooms WINDOW NONE", "+OK"},
        {"LB.LEAGUE ADD l 5 ann", "[:1 :1 [ann :0 nil :5] nil]"},
        {"DEL {l}:1:1", ":1"},
        {"LB.CREATE {l}:1:1 FIELD a 22 PERIOD WEEK WINDOW 2 SUM", "+OK"},
        {"ZADD {l}:1:1 1 bob", ":1"},
    };
    zset_expect_each(h, rows);
    zset_expect_begin(h, "LB.LEAGUE ADD l 5 ann", "-ERR board has a WINDOW");
    zset_expect(h, "ZREVRANGE {l}:1:1 0 -1 WITHSCORES", "[bob 1]");
}

/* The other way about: a board that had a window goes on as one whose archives are copies. */
CONTESTS_TEST(a_board_whose_window_is_taken_away_may_be_copied) {
    zset_expect(h, "LB.ADD auto:a 5 ann", ":1");
    zset_expect(h, "LB.ALTER auto:a WINDOW NONE COPY", "+OK");
    zset_expect(h, "LB.ADD auto:a INCR 2 ann", ":1");
    pass_hours(h, 1);
    while (registry_roll_archive_step(h->server.registry, h->server.clock.now_ms, 64)) {}
    zset_expect(h, "KEYS *", "[auto:a auto:a@2026-11-26T05]");
    zset_expect(h, "ZSCORE auto:a ann", "7");
    zset_expect(h, "ZSCORE auto:a@2026-11-26T05 ann", "7");
}
