/* STALE on the server's loop: who leaves when, and who is told. */
#include "server/sessions/job.h"
#include "tests/support/loop_server.h"

#define MINUTE_US INT64_C(60000000)

/* A test on a server with the job of STALE. */
#define STALE_TEST(name, settings)                                                                 \
    static void name##_with_job(struct loop_server *f);                                            \
    LOOP_SERVER_TEST(name, settings) {                                                             \
        job_board_begin(f->server, &job_board_stale);                                              \
        name##_with_job(f);                                                                        \
    }                                                                                              \
    static void name##_with_job(struct loop_server *f)

/* So much time passes, and then what is due is done. */
static void pass(struct loop_server *f, int64_t us) {
    f->harness->wall_us += us;
    loop_turn_some(f);
}

STALE_TEST(who_is_stale_leaves_within_a_minute, NULL) {
    int ann = loop_connect(f);
    loop_ask(f, ann, "LB.CREATE k STALE 10 MINUTE\r\n", "+OK\r\n");
    loop_ask(f, ann, "ZADD k 5 ann 4 bob\r\n", ":2\r\n");
    pass(f, 5 * MINUTE_US);
    loop_ask(f, ann, "LB.ADD k TOUCH 5 ann\r\n", ":1\r\n");
    loop_ask(f, ann, "ZADD k 3 cid\r\n", ":1\r\n");
    pass(f, 5 * MINUTE_US);
    loop_ask(f, ann, "ZCARD k\r\n", ":3\r\n");
    pass(f, MINUTE_US);
    loop_ask(f, ann, "ZRANGE k 0 -1\r\n", "*2\r\n$3\r\ncid\r\n$3\r\nann\r\n");
    pass(f, 5 * MINUTE_US);
    loop_ask(f, ann, "ZCARD k\r\n", ":0\r\n");
    loop_ask(f, ann, "EXISTS k\r\n", ":1\r\n");
    assert_int_equal(registry_totals(f->server->registry)->stale, 3);
    loop_ask(f, ann, "LB.ALTER k STALE NONE\r\n", "+OK\r\n");
    loop_ask(f, ann, "ZADD k 5 ann\r\n", ":1\r\n");
    pass(f, 500 * MINUTE_US);
    loop_ask(f, ann, "ZCARD k\r\n", ":1\r\n");
    loop_ask(f, ann, "LB.ALTER k STALE 1 DAY\r\n", "+OK\r\n");
    pass(f, MINUTE_US);
    loop_ask(f, ann, "ZCARD k\r\n", ":1\r\n");
    pass(f, 3 * 24 * 60 * MINUTE_US);
    loop_ask(f, ann, "ZCARD k\r\n", ":0\r\n");
}

/* Also where a result is not the best, which changes nothing without STALE. */
STALE_TEST(touch_keeps_a_member_on_a_board_that_keeps_the_best, NULL) {
    int ann = loop_connect(f);
    loop_ask(f, ann, "LB.CREATE k KEEP BEST STALE 10 MINUTE\r\n", "+OK\r\n");
    loop_ask(f, ann, "LB.CREATE best KEEP BEST\r\n", "+OK\r\n");
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"ann", "bob", "cid"};
        loop_ask(f, ann, formatted("ZADD k 5 %s\r\n", names[i]), ":1\r\n");
        loop_ask(f, ann, formatted("ZADD best 5 %s\r\n", names[i]), ":1\r\n");
    }
    pass(f, 9 * MINUTE_US);
    loop_ask(f, ann, "LB.ADD k TOUCH 3 ann\r\n", ":1\r\n");
    loop_ask(f, ann, "LB.ADD k TOUCH * bob 9 dan\r\n", ":2\r\n");
    loop_ask(f, ann, "LB.ADD k 3 cid\r\n", ":0\r\n");
    loop_ask(f, ann, "LB.ADD best TOUCH 3 ann\r\n", ":0\r\n");
    pass(f, 2 * MINUTE_US);
    loop_ask(f, ann, "ZREVRANGE k 0 -1 WITHSCORES\r\n",
             "*6\r\n$3\r\ndan\r\n$1\r\n9\r\n$3\r\nann\r\n$1\r\n5\r\n$3\r\nbob\r\n$1\r\n5\r\n");
}

STALE_TEST(watchers_and_those_who_listen_are_told,
           "notify-keyspace-events KA\nboard * default STALE 10 MINUTE\n") {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_ask(f, ann, "ZADD k 5 ann\r\n", ":1\r\n");
    pass(f, 5 * MINUTE_US);
    loop_ask(f, ann, "ZADD k 4 bob\r\nWATCH k\r\nMULTI\r\n", ":1\r\n+OK\r\n+OK\r\n");
    loop_ask(f, bob, "SUBSCRIBE __keyspace@0__:k\r\n",
             "*3\r\n$9\r\nsubscribe\r\n$16\r\n__keyspace@0__:k\r\n:1\r\n");
    pass(f, 6 * MINUTE_US);
    loop_expect(f, bob, "*3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$8\r\nlb.stale\r\n");
    loop_ask(f, ann, "PING\r\nEXEC\r\n", "+QUEUED\r\n*-1\r\n");
    pass(f, 6 * MINUTE_US);
    loop_expect(f, bob,
                "*3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$8\r\nlb.stale\r\n"
                "*3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$3\r\ndel\r\n");
    loop_ask(f, ann, "EXISTS k\r\n", ":0\r\n");
}

STALE_TEST(many_leave_in_steps_and_while_writes_are_paused_nobody, NULL) {
    enum { MEMBERS = 20000 };
    int ann = loop_connect(f);
    loop_ask(f, ann, "LB.CREATE k STALE 10 MINUTE\r\n", "+OK\r\n");
    for (int i = 0; i < MEMBERS; i++) {
        loop_ask(f, ann, formatted("ZADD k %d m%d\r\n", i, i), ":1\r\n");
        f->harness->wall_us += i == MEMBERS / 2 ? 20 * MINUTE_US : 0;
    }
    struct loop_wait wait = {0};
    while (registry_totals(f->server->registry)->stale < MEMBERS / 2) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
    loop_ask(f, ann, "CLIENT PAUSE 3600000 WRITE\r\n", "+OK\r\n");
    pass(f, 20 * MINUTE_US);
    loop_ask(f, ann, "ZCARD k\r\n", formatted(":%d\r\n", MEMBERS / 2 - 1));
    loop_ask(f, ann, "CLIENT UNPAUSE\r\n", "+OK\r\n");
    pass(f, MINUTE_US);
    loop_turn_some(f);
    while (registry_totals(f->server->registry)->stale < MEMBERS) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
    loop_ask(f, ann, "ZCARD k\r\n", ":0\r\n");
}

/* The clock is set forward and back: only time that has passed on it makes anybody stale, and it never shows less. */
STALE_TEST(a_clock_that_is_set_back_keeps_everybody, NULL) {
    int ann = loop_connect(f);
    loop_ask(f, ann, "LB.CREATE k STALE 10 MINUTE\r\n", "+OK\r\n");
    loop_ask(f, ann, "ZADD k 5 ann\r\n", ":1\r\n");
    f->harness->wall_us -= 60 * MINUTE_US;
    loop_turn_some(f);
    loop_ask(f, ann, "ZADD k 4 bob\r\n", ":1\r\n");
    pass(f, MINUTE_US);
    loop_ask(f, ann, "ZCARD k\r\n", ":2\r\n");
}
