/* HOLD: what commands make of results that are held. Players: tests/server/acl/test_player_limits.c. */
#include "server/commands/guarding.h"
#include "server/commands/lb/lb.h"
#include "server/sessions/job.h"
#include "tests/server/failing_memory.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/random.h"

enum { SECOND_US = 1000000, HOUR_S = 3600 };

ZSET_TEST(a_result_over_v_is_kept_and_not_ranked) {
    zset_expect(h, "LB.CREATE b FIELD score 24 TIME 31 S KEEP BEST HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b WITHHELD 100 ann 101 bob", "[:1 :1]");
    zset_expect(h, "LB.GET b 2 ann bob", "[[ann :0 :1767225600000 :100] nil*]");
    harness_pass_seconds(h, 60);
    zset_expect(h, "LB.ADD b 500 ann", ":0");
    zset_expect(h, "LB.ADD b 70 ann", ":0");
    zset_expect(h, "LB.GET b 1 ann", "[[ann :0 :1767225600000 :100]]");
    zset_expect_part(h, "LB.HELD b", "[0 [[:1 bob [:101] OVER :1767225600000 default ");
    zset_expect_part(h, "LB.HELD b MEMBER ann", "[0 [[:2 ann [:500] OVER :1767225660000 default ");
    harness_pass_seconds(h, 60);
    zset_expect(h, "LB.APPROVE b ann 1", ":0");
    zset_expect(h, "LB.APPROVE b ann 2", ":1");
    zset_expect(h, "LB.APPROVE b ann 2", ":0");
    zset_expect(h, "LB.REJECT b bob", ":1");
    zset_expect(h, "LB.REJECT b bob", ":0");
    zset_expect(h, "LB.APPROVE b bob", ":0");
    zset_expect(h, "LB.HELD b", "[0 []]");
    /* The time when it came. */
    zset_expect(h, "LB.RANGE b 0 -1", "[[ann :0 :1767225660000 :500]]");
    zset_expect(h, "LB.APPROVE nothing ann", ":0");
    zset_expect(h, "ZADD plain 1 ann", ":1");
    zset_expect(h, "LB.APPROVE plain ann", ":0");
    zset_expect(h, "LB.HELD plain", "[0 []]");
}

ZSET_TEST(what_would_be_among_the_first_n_is_held) {
    zset_expect(h, "LB.CREATE b FIELD score 24 HOLD ALL TOP 2", "+OK");
    zset_expect(h, "LB.ADD b 10 ann 20 bob", ":0");
    zset_expect(h, "LB.APPROVE b ann", ":1");
    zset_expect(h, "LB.APPROVE b bob", ":1");
    zset_expect(h, "ZADD b 5 kim 15 zoe", ":1");
    zset_expect(h, "ZRANGE b 0 -1", "[kim ann bob]");
    zset_expect(h, "ZADD b 7 ann", ":0"); /* worse than before */
    zset_expect(h, "ZSCORE b ann", "7");
    zset_expect(h, "ZADD b 8 ann", ":0"); /* still among them, and better */
    zset_expect(h, "ZSCORE b ann", "7");
    zset_expect(h, "ZINCRBY b 1 kim", "6");
    zset_expect(h, "ZINCRBY b 10 kim", "6");
    zset_expect(h, "ZADD b INCR 10 kim", "nil");
    zset_expect_part(h, "LB.HELD b MEMBER kim", "[0 [[:5 kim [:16] TOP ");
}

ZSET_TEST(smaller_is_better_on_a_field_with_asc) {
    zset_expect(h, "LB.CREATE b FIELD lap 24 ASC SCALE 1 HOLD ALL OVER 30.5", "+OK");
    zset_expect(h, "LB.ADD b WITHHELD 30.5 ann 30.4 bob 99 kim", "[:2 :1]");
    zset_expect_part(h, "LB.HELD b", "[0 [[:1 bob [30.4] OVER ");
}

ZSET_TEST(increments_are_added_when_they_are_approved) {
    zset_expect(h, "LB.CREATE b FIELD score 24 FIELD level 8 TIME 31 S HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b 60 1 ann", ":1");
    harness_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD b INCR 50 2 ann", ":0");
    harness_pass_seconds(h, 1);
    zset_expect(h, "ZINCRBY b 20 ann", "80");
    zset_expect(h, "LB.APPROVE b ann", ":1");
    /* The sum was reached with the later one. */
    zset_expect(h, "LB.GET b 1 ann", "[[ann :0 :1767225602000 :130 :3]]");
}

ZSET_TEST(of_two_results_of_which_the_last_counts_it_is_the_one_that_came_last) {
    zset_expect(h, "LB.CREATE b FIELD score 24 TIME 31 S HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b 500 ann", ":0");
    harness_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD b 7 ann", ":1");
    zset_expect(h, "LB.APPROVE b ann", ":1");
    zset_expect(h, "LB.GET b 1 ann", "[[ann :0 :1767225601000 :7]]");
}

ZSET_TEST(a_field_that_no_later_result_has_changed_is_approved) {
    zset_expect(h, "LB.CREATE b FIELD score 24 FIELD level 8 TIME 31 S HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b 9 1 ann", ":1");
    zset_expect(h, "LB.ADD b 20000 * ann 20000 3 bob", ":0");
    harness_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD b * 5 ann 7 * bob", ":2");
    zset_expect(h, "LB.APPROVE b ann", ":1");
    zset_expect(h, "LB.APPROVE b bob", ":1");
    zset_expect(h, "LB.GET b 2 ann bob",
                "[[ann :0 :1767225601000 :20000 :5] [bob :1 :1767225601000 :7 :3]]");
}

ZSET_TEST(NX_and_XX_are_judged_when_a_result_comes) {
    zset_expect(h, "LB.CREATE b FIELD score 24 TIME 31 S HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b 5 ann", ":1");
    zset_expect(h, "LB.ADD b XX 500 ann", ":0");
    zset_expect(h, "LB.ADD b NX WITHHELD 600 ann", "[:0 :0]");
    zset_expect(h, "ZADD b NX 500 bob", ":0");
    zset_expect(h, "ZREM b ann", ":1");
    zset_expect(h, "LB.APPROVE b ann", ":1");
    zset_expect(h, "LB.APPROVE b bob", ":1");
    zset_expect(h, "ZRANGE b 0 -1 WITHSCORES", "[bob 500 ann 500]");
}

ZSET_TEST(TOP_judges_by_the_time_of_the_result) {
    zset_expect(h, "LB.CREATE b FIELD score 24 TIME 31 S HOLD ALL TOP 1", "+OK");
    zset_expect(h, "LB.ADD b 100 lead", ":0");
    zset_expect(h, "LB.APPROVE b lead", ":1");
    zset_expect(h, "ZADD b 50 kim", ":1");
    harness_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD b 100 bob", ":1"); /* as good, and later */
    zset_expect(h, "ZADD b 100 kim 100 zoe", ":1");
    zset_expect(h, "LB.HELD b", "[0 []]");
}

ZSET_TEST(tags_fields_and_ids_are_those_of_the_result) {
    zset_expect(h, "LB.CREATE b FIELD score 24 TAG country 8 HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b TAG country DE ONCE x HSET run:* 2 replay r1 car 9 500 ann", ":0");
    zset_expect(h, "LB.ADD b TAG country DE ONCE x WITHREPEAT 500 ann", ":-1");
    zset_expect(h, "EXISTS run:ann", ":0");
    zset_expect(h, "LB.APPROVE b ann", ":1");
    zset_expect(h, "LB.GET b 1 ann TAGS", "[[ann :0 nil :500 [country DE]]]");
    zset_expect(h, "HGETALL run:ann", "[replay r1 car 9]");
    zset_expect(h, "LB.SUBMIT 1 b TAG country FR 501 ann", "[[[ann :0 nil :500] :0 :0]]");
    zset_expect(h, "LB.GET b 1 ann TAGS", "[[ann :0 nil :500 [country DE]]]");
    zset_expect(h, "LB.APPROVE b ann", ":1");
    zset_expect(h, "LB.GET b 1 ann TAGS", "[[ann :0 nil :501 [country FR]]]");
}

ZSET_TEST(what_breaks_a_limit_is_held_where_HOLD_says_so) {
    zset_expect(h, "LB.CREATE b FIELD score 24 LIMITS ALL MAX 100 EVERY 10 S HOLD ALL LIMITS",
                "+OK");
    zset_expect(h, "LB.ADD b WITHHELD 101 ann", "[:0 :1]");
    zset_expect(h, "LB.ADD b 50 ann", ":1");
    zset_expect(h, "ZADD b 60 ann", ":0");
    zset_expect_part(h, "LB.HELD b", "[0 [[:1 ann [:101] MAX ");
    zset_expect_part(h, "LB.HELD b CURSOR 2", "[0 [[:2 ann [:60] EVERY ");
    harness_pass_seconds(h, 9);
    zset_expect(h, "LB.ADD b WITHHELD 70 ann", "[:0 :1]");
    harness_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD b WITHHELD 70 ann", "[:1 :0]");
    zset_expect(h, "LB.APPROVE b ann", ":3");
    zset_expect(h, "LB.ALTER b HOLD ALL OVER 90", "+OK");
    harness_pass_seconds(h, 10);
    zset_expect(h, "LB.ADD b 101 bob", "-LIMIT MAX 100: 101 is above");
    zset_expect(h, "LB.ADD b WITHHELD 95 bob", "[:0 :1]");
    zset_expect(h, "LB.ADD b 80 bob", "-TOOSOON EVERY 10 S: wait 10 s"); /* it counts */
}

ZSET_TEST(what_would_change_nothing_is_not_held_for_a_limit) {
    zset_expect(h, "LB.CREATE b FIELD score 24 KEEP BEST LIMITS ALL EVERY 10 S HOLD ALL LIMITS",
                "+OK");
    zset_expect(h, "LB.ADD b 50 ann", ":1");
    zset_expect(h, "LB.ADD b WITHHELD 10 ann", "-TOOSOON EVERY 10 S: wait 10 s");
    zset_expect(h, "ZADD b 50 ann", "-TOOSOON EVERY 10 S: wait 10 s");
    zset_expect(h, "LB.ADD b WITHHELD 60 ann", "[:0 :1]");
}

ZSET_TEST(a_held_result_gains_nothing) {
    zset_expect(h, "LB.CREATE b FIELD score 24 LIMITS ALL GAIN 100 PER DAY HOLD ALL OVER 90",
                "+OK");
    zset_expect(h, "LB.ADD b 95 ann", ":0");
    zset_expect(h, "LB.ADD b 60 ann", ":1");
    zset_expect(h, "LB.ADD b 101 bob", "-LIMIT GAIN 100 PER DAY: 101 is better by 101");
}

ZSET_TEST(there_is_room_for_so_many_of_a_member_and_of_a_board) {
    zset_expect(h, "LB.CREATE b FIELD score 32 HOLD ALL OVER 100", "+OK");
    for (int i = 0; i < HELD_MEMBER_MAX; i++) {
        zset_expect(h, "LB.ADD b 101 ann", ":0");
    }
    zset_expect(h, "LB.ADD b 101 ann",
                "-FULL the result would be held, and 16 results of this member are already");
    zset_expect(h, "LB.ADD b 7 ann", ":1");
    zset_expect_part(h, "LB.INFO b", " held :16 ");
    zset_expect(h, "LB.ALTER b HOLD NONE",
                "-ERR HOLD cannot end while results are held: LB.APPROVE or LB.REJECT them first");
    zset_expect(h, "LB.REJECT b ann", ":16");
    zset_expect(h, "LB.ALTER b HOLD NONE", "+OK");
    zset_expect(h, "LB.ADD b 101 ann", ":1");
}

ZSET_TEST(a_command_holds_no_more_than_there_is_room_for) {
    enum { MORE = HELD_BYTES_MAX / HELD_WORDS_MAX };
    static struct bytes args[2 + 2 * MORE];
    static char names[MORE][8];
    args[0] = BYTES("LB.ADD");
    args[1] = BYTES("b");
    for (int i = 0; i < MORE; i++) {
        size_t size = (size_t)snprintf(names[i], sizeof names[i], "m%d", i);
        args[2 + 2 * i] = BYTES("500");
        args[3 + 2 * i] = (struct bytes){names[i], size};
    }
    zset_expect(h, "LB.CREATE b FIELD score 32 HOLD ALL OVER 100", "+OK");
    const char *reply =
        harness_run_args(h, h->server.sessions.first, args, sizeof args / sizeof args[0]);
    assert_non_null(strstr(reply, "-FULL the result would be held, and the command has more such"));
    zset_expect(h, "LB.HELD b", "[0 []]");
}

ZSET_TEST(ids_do_not_come_again_in_the_next_period) {
    zset_expect(h, "LB.CREATE b FIELD score 24 PERIOD DAY HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b 200 ann", ":0");
    zset_expect_part(h, "LB.HELD b", "[0 [[:1767225600000 ann ");
    harness_pass_seconds(h, 86400);
    zset_expect(h, "LB.ADD b 300 ann 400 bob", ":0");
    zset_expect(h, "LB.APPROVE b ann 1767225600000", ":0");
    zset_expect_part(h, "LB.HELD b MEMBER bob", "[0 [[:1767312000001 bob ");
    zset_expect(h, "LB.APPROVE b ann 1767312000000", ":1");
}

ZSET_TEST(a_board_of_many_is_listed_in_steps_oldest_first) {
    enum { MANY = HELD_COUNT_MAX, STRIDE = MANY / 20 };
    char cursor[32] = "0";
    int count = 0;
    zset_expect(h, "LB.CREATE b FIELD score 32 HOLD ALL OVER 0", "+OK");
    for (int i = 0; i < MANY; i++) {
        zset_run(h, "LB.ADD b 1 m%d", i);
    }
    zset_expect(h, "LB.ADD b 1 one-more",
                "-FULL the result would be held, and the board holds as many as it can: LB.APPROVE "
                "or LB.REJECT some");
    int gone = 0;
    for (int i = 0; i < MANY; i += STRIDE) {
        zset_expect(h, formatted("%s b m%d", gone % 2 == 0 ? "LB.APPROVE" : "LB.REJECT", i), ":1");
        gone++;
    }
    do {
        const char *reply = zset_run(h, "LB.HELD b CURSOR %s COUNT 500", cursor);
        assert_int_equal(sscanf(reply, "[%31[0-9]", cursor), 1);
        for (const char *at = reply; (at = strstr(at, " OVER ")) != NULL; at++) {
            count++;
        }
    } while (strcmp(cursor, "0") != 0);
    assert_int_equal(count, MANY - gone);
    zset_expect(h, "ZCARD b", formatted(":%d", (gone + 1) / 2));
}

ZSET_TEST(what_is_held_goes_with_its_member_and_with_its_board) {
    zset_expect(h, "LB.CREATE b FIELD score 32 HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b 200 ann 5 bob 300 bob2 400 kim", ":1");
    zset_expect(h, "LB.FORGET ann", ":1");
    zset_expect(h, "LB.HELD b MEMBER ann", "[0 []]");
    zset_expect(h, "LB.BAN kim", ":1");
    zset_expect(h, "LB.HELD b MEMBER kim", "[0 []]");
    zset_expect(h, "LB.MOVE bob2 bob", "[:1 :0]");
    zset_expect(h, "LB.HELD b MEMBER bob2", "[0 []]");
    zset_expect_part(h, "LB.HELD b", "[0 [[:2 bob [:300] OVER ");
    zset_expect(h, "COPY b c", ":1");
    zset_expect(h, "RENAME b d", "+OK");
    zset_expect(h, "LB.APPROVE c bob", ":1");
    zset_expect(h, "LB.APPROVE d bob", ":1");
    zset_expect(h, "ZSCORE c bob", "300");
    zset_expect(h, "ZSCORE d bob", "300");
    zset_expect(h, "LB.ADD d 400 bob", ":0");
    zset_expect(h, "LB.BAN bob", ":2");
    zset_expect(h, "LB.HELD d", "[0 []]");
}

ZSET_TEST(what_is_held_goes_to_nobody_who_is_banned) {
    zset_expect(h, "LB.CREATE b FIELD score 24 HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b 200 ann", ":0");
    zset_expect(h, "LB.BAN bob", ":0");
    zset_expect(h, "LB.MOVE ann bob", "[:0 :1]");
    zset_expect_part(h, "LB.HELD b", "[0 [[:1 ann ");
    zset_expect(h, "LB.UNBAN bob", ":1");
    zset_expect(h, "LB.MOVE ann bob", "[:1 :0]");
    zset_expect_part(h, "LB.HELD b", "[0 [[:1 bob ");
}

ZSET_TEST(an_archive_takes_approvals_until_it_is_settled) {
    zset_expect(h, "LB.CREATE b FIELD score 24 TIME 31 S PERIOD DAY HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b 200 ann 300 bob", ":0");
    harness_pass_seconds(h, 86400);
    zset_expect(h, "LB.ADD b 5 kim", ":1");
    zset_expect(h, "LB.HELD b", "[0 []]");
    zset_expect(h, "LB.APPROVE b@2026-01-01 ann", ":1");
    zset_expect(h, "LB.RANGE b@2026-01-01 0 -1", "[[ann :0 :1767225600000 :200]]");
    zset_expect(h, "LB.SETTLE b@2026-01-01", ":1");
    zset_expect(h, "LB.APPROVE b@2026-01-01 bob",
                "-ERR the archive was settled: LB.REJECT takes off what it holds");
    zset_expect(h, "LB.REJECT b@2026-01-01 bob", ":1");
    zset_expect(h, "LB.CREATE f FIELD score 24 HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD f 200 ann", ":0");
    zset_expect(h, "LB.ALTER f FREEZE", "+OK");
    zset_expect(h, "LB.APPROVE f ann",
                "-FROZEN board takes no writes: LB.ALTER with THAW ends that");
}

ZSET_TEST(what_cannot_be_written_stays_held) {
    zset_expect(h, "LB.CREATE b FIELD score 24 LIMIT 1 HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b 200 ann 300 bob", ":0");
    zset_expect(h, "LB.APPROVE b ann", ":1");
    zset_expect(h, "LB.APPROVE b bob", "-FULL board is full: at most 1 members");
    zset_expect_part(h, "LB.HELD b", "[0 [[:2 bob ");
}

ZSET_TEST(options_that_do_not_fit_are_refused) {
    zset_expect_part(h, "LB.CREATE b HOLD ALL LIMITS",
                     "-ERR HOLD LIMITS needs a board with LIMITS");
    zset_expect_part(h, "LB.CREATE b FIELD s 9 DOUBLE HOLD ALL TOP 1", "-ERR ");
    zset_expect_part(h, "LB.CREATE b FIELD s 9 HOLD ALL OVER 1.5", "-ERR HOLD OVER has a value");
    zset_expect_part(h, "LB.CREATE b PERIOD DAY WINDOW 3 SUM HOLD ALL TOP 1", "-ERR ");
    zset_expect_part(h, "LB.CREATE b RATING ELO HOLD ALL TOP 1", "-ERR HOLD excludes RATING");
    zset_expect_part(h, "LB.CREATE b HOLD ALL AUTO 1 H", "-ERR HOLD ALL needs OVER, TOP or LIMITS");
    zset_expect_part(h, "LB.CREATE b HOLD ALL TOP 1 AUTO 1 M", "-ERR HOLD AUTO needs a time");
    zset_expect_part(h, "LB.CREATE b HOLD ALL TOP 1 TOP 2", "-ERR HOLD TOP may be given only once");
    zset_expect_part(h,
                     "LB.LEAGUE CREATE l FIELD s 20 PERIOD DAY ROOM 9 TIERS 3 UP 1 DOWN 1 HOLD ALL "
                     "TOP 1",
                     "-ERR ");
    shadow_end(h->shadow); /* the module does not take AUTO */
    zset_expect(h, "LB.CREATE b LIMITS ALL MAX 9 HOLD ALL TOP 1 LIMITS AUTO 36 H", "+OK");
    zset_expect_part(h, "LB.INFO b", " hold ALL TOP 1 LIMITS AUTO 36 H ");
    zset_expect_part(h, "LB.ALTER b LIMITS NONE", "-ERR HOLD LIMITS needs a board with LIMITS");
    zset_expect(h, "LB.CREATE c HOLD PLAYERS TOP 1 LIMITS ALL MAX 9", "+OK");
    zset_expect_part(h, "LB.INFO c", " hold PLAYERS TOP 1 ");
}

/* ---- AUTO ---- */

static void settle(struct harness *h) {
    zset_run(h, "PING"); /* the clock */
    /* The job that waits for its time is not ready then. */
    for (int i = 0; i < 200 && job_list_step(&h->server, 0, true); i++) {}
}

static int job_start(void **state) {
    struct harness *h = zset_start_job(state, zset_settings, &hold_job);
    shadow_end(h->shadow); /* the module has no job, and does not take AUTO */
    return 0;
}

#define JOB_TEST(name) TEST_GIVEN(name, job_start, zset_end_jobs, struct harness *h)

JOB_TEST(after_the_time_of_AUTO_what_is_held_is_approved_by_itself) {
    zset_expect(h, "LB.CREATE b FIELD score 24 TIME 31 S HOLD ALL OVER 100 AUTO 2 H", "+OK");
    for (int i = 0; i < 30; i++) {
        zset_expect(h, formatted("LB.ADD b %d m%d", 200 + i, i), ":0");
    }
    harness_pass_seconds(h, HOUR_S);
    zset_expect(h, "LB.ADD b 900 late", ":0");
    settle(h);
    zset_expect(h, "ZCARD b", ":0");
    harness_pass_seconds(h, HOUR_S);
    settle(h);
    zset_expect(h, "ZCARD b", ":30");
    zset_expect(h, "LB.GET b 1 m0", "[[m0 :29 :1767225600000 :200]]");
    zset_expect_part(h, "LB.HELD b", "[0 [[:31 late ");
    harness_pass_seconds(h, HOUR_S);
    settle(h);
    zset_expect(h, "LB.HELD b", "[0 []]");
    zset_expect(h, "ZCARD b", ":31");
}

/* Not by any of their names, and their league does without; a board that is called like one is none. */
JOB_TEST(rooms_of_leagues_hold_nothing) {
    static const char *const rooms[] = {"{l}:rooms", "{l}:1:1"};
    zset_expect(h, "LB.LEAGUE CREATE l FIELD s 20 PERIOD DAY ROOM 9 TIERS 3 UP 1 DOWN 1", "+OK");
    zset_expect_part(h, "LB.LEAGUE ADD l 5 ann", "ann");
    for (size_t i = 0; i < COUNT_OF(rooms); i++) {
        zset_expect(h, formatted("LB.ALTER %s HOLD ALL TOP 1", rooms[i]),
                    "-ERR HOLD is not possible: who goes up and down in a league follows from the "
                    "results in its rooms");
    }
    zset_expect_part(h, "LB.LEAGUE ADD l 6 ann", "ann");
    zset_expect(h, "LB.CREATE {m}:1:1 FIELD s 20", "+OK");
    zset_expect(h, "LB.ALTER {m}:1:1 HOLD ALL TOP 1", "+OK");
}

JOB_TEST(what_cannot_be_approved_lets_the_others_pass) {
    zset_expect(h, "LB.CREATE b FIELD score 24 LIMIT 1 HOLD ALL OVER 100 AUTO 1 H", "+OK");
    zset_expect(h, "LB.ADD b 200 ann 300 bob 400 kim", ":0");
    harness_pass_seconds(h, HOUR_S);
    settle(h);
    zset_expect(h, "ZRANGE b 0 -1", "[ann]");
    zset_expect(h, "LB.REJECT b kim", ":1");
    zset_expect(h, "DEL b", ":1");
    harness_pass_seconds(h, HOUR_S);
    settle(h);
}

JOB_TEST(a_result_of_a_time_to_come_does_not_keep_the_others) {
    zset_expect(h, "LB.CREATE b FIELD score 24 HOLD ALL OVER 100 AUTO 1 H", "+OK");
    zset_expect(h, "LB.ADD b 200 early", ":0");
    harness_set_clock(h, harness_now_us(h) - (int64_t)10 * HOUR_S * SECOND_US);
    zset_expect(h, "LB.ADD b 300 ann", ":0");
    harness_pass_seconds(h, 2 * HOUR_S);
    settle(h);
    zset_expect(h, "ZRANGE b 0 -1", "[ann]");
    harness_pass_seconds(h, 10 * HOUR_S);
    settle(h);
    zset_expect(h, "ZRANGE b 0 -1", "[early ann]");
}

/* ---- what was restored may be anything ---- */

static struct registry_key *board_of(struct harness *h, const char *name) {
    return registry_find(h->server.registry, 0, bytes_from_text(name), h->server.clock.now_ms);
}

JOB_TEST(an_id_that_a_member_has_twice_is_approved_once) {
    static const char ids[24] = {1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 9};
    zset_expect(h, "LB.CREATE b FIELD score 24 HOLD ALL OVER 100", "+OK");
    zset_expect(h, "LB.ADD b 200 ann 300 bob", ":0");
    assert_true(registry_note_put(h->server.registry, board_of(h, "b"), (struct bytes){"\0mann", 5},
                                  (struct bytes){ids, sizeof ids}));
    zset_expect_part(h, "LB.HELD b MEMBER ann", "[0 [[:1 ann [:200] ");
    zset_expect(h, "LB.REJECT b bob", ":1");
    zset_expect(h, "LB.APPROVE b ann", ":1");
    zset_expect(h, "ZSCORE b ann", "200");
    zset_expect(h, "LB.HELD b", "[0 []]");
}

JOB_TEST(ids_that_lie_far_apart_let_other_boards_pass) {
    static const char head[26] = {1, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, 1};
    zset_expect(h, "LB.CREATE b FIELD score 24 HOLD ALL OVER 100 AUTO 1 H", "+OK");
    zset_expect(h, "LB.ADD b 200 ann", ":0");
    assert_true(registry_note_put(h->server.registry, board_of(h, "b"), (struct bytes){"\0h", 2},
                                  (struct bytes){head, sizeof head}));
    zset_expect(h, "LB.ADD b 300 bob",
                "-FULL the result would be held, and the board holds as many as it can: LB.APPROVE "
                "or LB.REJECT some");
    zset_expect(h, "LB.REJECT b ann", ":1");
    zset_expect(h, "LB.CREATE c FIELD score 24 HOLD ALL OVER 100 AUTO 1 H", "+OK");
    zset_expect(h, "LB.CREATE a FIELD score 24 HOLD ALL OVER 100 AUTO 1 H", "+OK");
    zset_expect(h, "LB.ADD a 200 ann", ":0");
    zset_expect(h, "LB.ADD c 200 ann", ":0");
    harness_pass_seconds(h, 2 * HOUR_S);
    settle(h);
    for (int i = 0; i < 4000; i++) {
        (void)job_list_step(&h->server, 0, true);
    }
    zset_expect(h, "ZCARD a", ":1");
    zset_expect(h, "ZCARD c", ":1");
}

/* A user with these rules. */
static struct session *user(struct harness *h, const char *rules) {
    struct session *session = harness_connect(h);
    zset_expect(h, formatted("ACL SETUSER low reset on nopass %s", rules), "+OK");
    harness_expect(h, session, "AUTH low x", "+OK\r\n");
    return session;
}

JOB_TEST(HSET_of_what_is_held_needs_the_right_to_the_hash) {
    zset_expect(h, "LB.CREATE mine FIELD score 24 HOLD ALL OVER 100 AUTO 1 H", "+OK");
    zset_expect(h, "LB.ADD mine HSET secret:* 1 f v 200 ann", ":0");
    zset_run(h, "DUMP mine");
    OWNED char *payload = malloc(h->reply.size);
    size_t size = strtoul(h->reply.at + 1, NULL, 10);
    memcpy(payload, strchr(h->reply.at, '\n') + 1, size);
    struct session *low = user(h, "~mine* +@all");
    harness_expect_prefix(h, low, "LB.APPROVE mine ann", "-NOPERM ");
    const struct bytes args[] = {BYTES("RESTORE"), BYTES("mine2"), BYTES("0"), {payload, size}};
    assert_int_equal(strncmp(harness_run_args(h, low, args, 4), "-NOPERM ", 8), 0);
    zset_expect(h, "EXISTS secret:ann mine2", ":0");
    low = user(h, "~mine* ~secret:* +@all");
    harness_expect(h, low, "LB.APPROVE mine ann", ":1\r\n");
    zset_expect(h, "HGETALL secret:ann", "[f v]");
    low = user(h, "~* +@all");
    assert_string_equal(harness_run_args(h, low, args, 4), "+OK\r\n");
}

JOB_TEST(a_dump_of_what_is_held_needs_the_right_to_look_at_it) {
    zset_expect(h, "LB.CREATE b FIELD score 24 HOLD ALL OVER 100", "+OK");
    struct session *low = user(h, "~* +@read -@dangerous");
    harness_expect_prefix(h, low, "DUMP b", "$");
    zset_expect(h, "LB.ADD b 200 ann", ":0");
    harness_expect_prefix(h, low, "LB.HELD b", "-NOPERM ");
    harness_expect_prefix(h, low, "DUMP b", "-NOPERM DUMP of a board that holds results");
    harness_expect_prefix(h, user(h, "~* +@read"), "DUMP b", "$");
}

/* ---- a twin that keeps all ---- */

enum { MEMBERS = 8, STEPS = 1500, HELD_MAX = MEMBERS * HELD_MEMBER_MAX };

struct twin {
    int64_t scores[MEMBERS]; /* -1: not on the board */
    struct {
        int64_t value, id;
        int member;
        bool is_sum;
    } held[HELD_MAX];
    int held_count;
    int64_t next;
};

static void twin_write(struct twin *twin, int member, int64_t value, bool is_sum) {
    int64_t *score = &twin->scores[member];
    if (is_sum) {
        *score = (*score < 0 ? 0 : *score) + value;
    } else if (value > *score) {
        *score = value;
    }
}

static int twin_count(const struct twin *twin, int member) {
    int count = 0;
    for (int i = 0; i < twin->held_count; i++) {
        count += twin->held[i].member == member;
    }
    return count;
}

/* "FULL": 2; held: 1. */
static int twin_add(struct twin *twin, int member, int64_t value, bool is_sum) {
    int64_t before = twin->scores[member];
    int64_t after = is_sum ? (before < 0 ? 0 : before) + value : value;
    int better = 0;
    for (int i = 0; i < MEMBERS; i++) {
        better += i != member && twin->scores[i] >= after; /* all came before */
    }
    bool is_written = is_sum ? after != before : after > before;
    if (!is_written || (after <= 700 && better >= 2)) {
        if (is_written) {
            twin_write(twin, member, value, is_sum);
        }
        return 0;
    }
    if (twin_count(twin, member) == HELD_MEMBER_MAX) {
        return 2;
    }
    twin->held[twin->held_count].value = value;
    twin->held[twin->held_count].id = twin->next++;
    twin->held[twin->held_count].member = member;
    twin->held[twin->held_count++].is_sum = is_sum;
    return 1;
}

/* Take a member's off, and write them. Returns how many. id 0: all. */
static int twin_take(struct twin *twin, int member, int64_t id, bool is_approved) {
    int kept = 0;
    int count = twin->held_count;
    for (int i = 0; i < count; i++) {
        if (twin->held[i].member != member || (id != 0 && twin->held[i].id != id)) {
            twin->held[kept++] = twin->held[i];
        } else if (is_approved) {
            twin_write(twin, member, twin->held[i].value, twin->held[i].is_sum);
        }
    }
    twin->held_count = kept;
    return count - kept;
}

static void twin_compare(struct harness *h, const struct twin *twin, const char *board) {
    const char *at = zset_run(h, "LB.HELD %s COUNT 500", board);
    assert_int_equal(strncmp(at, "[0 [", 4), 0);
    for (int i = 0; i < twin->held_count; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "[:%lld m%d [", (long long)twin->held[i].id,
                 twin->held[i].member);
        at = strstr(at, expected);
        if (at == NULL) {
            fail_msg("not held: %s", expected);
        }
    }
    for (int i = 0; i < MEMBERS; i++) {
        zset_expect(h, formatted("ZSCORE %s m%d", board, i),
                    twin->scores[i] < 0 ? "nil" : formatted("%lld", (long long)twin->scores[i]));
    }
    assert_int_equal(guarding_held_count(registry_find(
                         h->server.registry, 0, bytes_from_text(board), h->server.clock.now_ms)),
                     twin->held_count);
}

ZSET_TEST(a_board_holds_what_a_twin_holds) {
    struct random random = random_begin("held");
    struct twin twin = {.next = 1};
    for (int i = 0; i < MEMBERS; i++) {
        twin.scores[i] = -1;
    }
    zset_expect(h,
                "LB.CREATE b FIELD score 40 TIME 24 S START 2026-01-01T00:00:00Z KEEP BEST HOLD "
                "ALL OVER 700 TOP 2",
                "+OK");
    for (int step = 0; step < STEPS; step++) {
        int member = (int)random_below(&random, MEMBERS);
        int64_t value = (int64_t)random_below(&random, 800);
        bool is_sum = random_below(&random, 3) == 0;
        int64_t id = twin.held_count > 0
                         ? twin.held[random_below(&random, (uint64_t)twin.held_count)].id
                         : 1;
        harness_pass_seconds(h, 1);
        switch (random_below(&random, 10)) {
        case 0:
        case 1:
            zset_expect(h, formatted("LB.APPROVE b m%d %lld", member, (long long)id),
                        formatted(":%d", twin_take(&twin, member, id, true)));
            break;
        case 2:
            zset_expect(h, formatted("LB.REJECT b m%d", member),
                        formatted(":%d", twin_take(&twin, member, 0, false)));
            break;
        case 3:
            zset_expect(h, formatted("LB.APPROVE b m%d", member),
                        formatted(":%d", twin_take(&twin, member, 0, true)));
            break;
        case 4:
            if (random_below(&random, 8) == 0) {
                zset_run(h, "LB.FORGET m%d", member);
                twin_take(&twin, member, 0, false);
                twin.scores[member] = -1;
            } else if (random_below(&random, 8) == 0) {
                zset_expect(h, "RENAME b c", "+OK");
                zset_expect(h, "COPY c b", ":1");
                zset_expect(h, "DEL c", ":1");
            }
            break;
        case 5:
            zset_run(h, "ZREM b m%d", member);
            twin.scores[member] = -1;
            break;
        default: {
            const char *reply = zset_run(h, "LB.ADD b WITHHELD %s %lld m%d",
                                         is_sum ? "INCR" : "BEST", (long long)value, member);
            int is_full = strncmp(reply, "-FULL", 5) == 0;
            int is_held = strstr(reply, ":1]") != NULL;
            assert_int_equal(twin_add(&twin, member, value, is_sum), is_full ? 2 : is_held);
        }
        }
        if (step % 8 == 0 || step + 1 == STEPS) {
            twin_compare(h, &twin, "b");
        }
    }
}

/* ---- without memory ---- */

static void fill(struct harness *h) {
    zset_run(h, "LB.CREATE b FIELD score 24 TAG t 8 HOLD ALL OVER 100");
    zset_run(h, "LB.ADD b 200 ann 5 bob 7 kim");
}

ZSET_TEST(without_memory_a_result_is_not_held_and_what_is_held_stays) {
    static const struct world world = {.fill = fill};
    (void)h;
    fail_each_allocation_in(&world, "LB.ADD b TAG t x HSET r:* 1 a b 300 bob 400 new 9 kim", ":1");
    fail_each_allocation_in(&world, "ZADD b 300 bob 400 new 9 kim", ":0");
    fail_each_allocation_in(&world, "LB.APPROVE b ann", ":1");
    fail_each_allocation_in(&world, "ZINCRBY b 900 kim", "$1");
}
