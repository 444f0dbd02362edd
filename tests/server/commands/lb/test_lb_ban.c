/* LB.BAN, LB.UNBAN and LB.BANS, sentence by sentence; beside a naive twin; and after restarts. */
#include "server/commands/ban.h"
#include "tests/server/player_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/loop_server.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

static const char banned[] = ERROR_BANNED;

ZSET_TEST(a_banned_member_is_off_the_boards_and_refused) {
    zset_expect(h, "ZADD k 1 ann 2 bob", ":2");
    zset_expect(h, "ZADD l 1 ann", ":1");
    zset_expect(h, "LB.BAN ann", ":2");
    zset_expect(h, "ZRANGE k 0 -1", "[bob]");
    zset_expect(h, "EXISTS l", ":0");
    static const char *const writes[] = {
        "ZADD k 5 ann",         "ZADD k 5 eve 5 ann",    "ZADD k XX 5 ann",
        "ZADD k INCR 5 ann",    "ZINCRBY k 5 ann",       "LB.ADD k 5 ann",
        "LB.ADD k 5 eve 5 ann", "LB.ADD k PACKED 5 ann", "ZADD new 5 ann",
    };
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        zset_expect(h, writes[i], banned);
    }
    zset_expect(h, "LB.SUBMIT 2 new k 5 ann", ERROR_BANNED " (board 'new')");
    zset_expect(h, "ZRANGE k 0 -1", "[bob]");
    zset_expect(h, "EXISTS new", ":0");
    zset_expect(h, "LB.UNBAN ann", ":1");
    zset_expect(h, "LB.UNBAN ann", ":0");
    zset_expect(h, "ZADD k 5 eve 5 ann", ":2");
    assert_int_equal(player_orders(h), 0);
}

ZSET_TEST(inside_a_transaction_each_write_is_refused) {
    zset_expect(h, "LB.BAN ann", ":0");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "ZADD k 5 ann", "+QUEUED");
    zset_expect(h, "ZADD k 5 bob", "+QUEUED");
    zset_run(h, "EXEC");
    zset_expect(h, "ZRANGE k 0 -1", "[bob]");
}

ZSET_TEST(what_is_stored_leaves_banned_members_out) {
    zset_expect(h, "ZADD a 1 ann 2 bob", ":2");
    zset_expect(h, "ZADD only 1 ann", ":1");
    zset_expect(h, "LB.BAN ann MATCH d*", ":0");
    zset_expect(h, "ZUNIONSTORE d 2 a only", ":1");
    zset_expect(h, "ZRANGE d 0 -1", "[bob]");
    zset_expect(h, "ZRANGESTORE d2 a 0 -1", ":1");
    zset_expect(h, "ZRANGE d2 0 -1", "[bob]");
    zset_expect(h, "ZRANGESTORE money:d a 0 -1", ":2");
    zset_expect(h, "ZRANGESTORE d2 only 0 -1", ":0");
    zset_expect(h, "EXISTS d2", ":0");
    zset_expect(h, "ZINTERSTORE d 1 only", ":0");
    zset_expect(h, "EXISTS d", ":0");
    /* A CAP keeps the best of the others. */
    zset_expect(h, "LB.CREATE d FIELD a 33 SIGNED TIME 31 S CAP 1", "+OK");
    zset_expect(h, "ZADD a 9 ann", ":0");
    zset_expect(h, "ZUNIONSTORE d 1 a", ":1");
    zset_expect(h, "ZRANGE d 0 -1", "[bob]");
    zset_expect(h, "ZRANGESTORE d a 0 -1", ":1");
    zset_expect(h, "ZRANGE d 0 -1", "[bob]");
}

ZSET_TEST(match_and_the_database_say_where) {
    zset_expect(h, "ZADD a1 1 ann", ":1");
    zset_expect(h, "LB.BAN ann MATCH a*", ":1");
    zset_expect(h, "ZADD a1 1 ann", banned);
    zset_expect(h, "ZADD b1 1 ann", ":1");
    zset_expect(h, "LB.BAN ann MATCH b*", ":1");
    zset_expect(h, "ZADD b1 1 ann", banned);
    zset_expect(h, "ZADD a1 1 ann", banned);
    zset_expect(h, "SELECT 1", "+OK");
    zset_expect(h, "ZADD a1 1 ann", ":1");
    zset_expect(h, "LB.BANS", "[0 []]");
    zset_expect(h, "LB.UNBAN ann", ":0");
    zset_expect(h, "FLUSHALL", "+OK");
    zset_expect(h, "SELECT 0", "+OK");
    zset_expect(h, "ZADD a1 1 ann", banned);
    zset_expect(h, "LB.UNBAN ann", ":1");
    zset_expect(h, "ZADD a1 1 ann", ":1");
}

ZSET_TEST(a_ban_ends_with_its_time) {
    zset_expect(h, "LB.BAN ann EX 10", ":0");
    zset_expect(h, "LB.BAN ann EX 20 MATCH a*", ":0");
    zset_expect(h, "LB.BANS", "[0 [[ann * :1767225610000 :0] [ann a* :1767225620000 :0]]]");
    h->wall_us += 9999000;
    zset_expect(h, "ZADD b 1 ann", banned);
    h->wall_us += 1000;
    zset_expect(h, "ZADD b 1 ann", ":1");
    zset_expect(h, "ZADD a 1 ann", banned);
    zset_expect(h, "LB.BANS", "[0 [[ann a* :1767225620000 :0]]]");
    h->wall_us += 10000000;
    zset_expect(h, "ZADD a 1 ann", ":1");
    assert_false(ban_exists(h->server.registry));
    zset_expect(h, "LB.UNBAN ann", ":0");
    /* One for ever has no end. */
    zset_expect(h, "LB.BAN ann EX 10", ":2");
    zset_expect(h, "LB.BAN ann", ":0");
    zset_expect(h, "LB.BANS", "[0 [[ann * nil :0]]]");
    h->wall_us += INT64_C(1000000000000);
    zset_expect(h, "ZADD b 1 ann", banned);
}

ZSET_TEST(the_bans_are_listed_in_steps) {
    for (int i = 0; i < 100; i++) {
        zset_run(h, "LB.BAN cheat%d", i);
    }
    char cursor[32] = "0";
    bool seen[100] = {false};
    int count = 0;
    do {
        char reply[8192], *at = reply;
        snprintf(reply, sizeof reply, "%s", zset_run(h, "LB.BANS CURSOR %s COUNT 7", cursor));
        snprintf(cursor, sizeof cursor, "%.*s", (int)strcspn(reply + 1, " "), reply + 1);
        while ((at = strstr(at, "[cheat")) != NULL) {
            int index = atoi(at + 6);
            assert_false(seen[index]);
            seen[index] = true;
            count++;
            at++;
        }
    } while (strcmp(cursor, "0") != 0);
    assert_int_equal(count, 100);
    zset_expect(h, "LB.BANS MATCH *t77 COUNT 1000", "[0 [[cheat77 * nil :0]]]");
}

ZSET_TEST(errors_leave_no_ban) {
    zset_expect(h, "LB.BAN ann EX 0", "-ERR invalid expire time in 'lb.ban' command");
    zset_expect(h, "LB.BAN ann EX 9223372036854775807",
                "-ERR invalid expire time in 'lb.ban' command");
    zset_expect(h, "LB.BAN ann MATCH \"\"", "-ERR syntax error");
    zset_expect(h, "LB.BANS COUNT 0", "-ERR syntax error");
    zset_expect(h, "LB.BANS CURSOR x", "-ERR invalid cursor");
    assert_false(ban_exists(h->server.registry));
    for (int i = 0; i < BAN_PATTERNS_MAX; i++) {
        zset_run(h, "LB.BAN ann MATCH p%d", i);
    }
    zset_expect(h, "LB.BAN ann MATCH p0 EX 5", ":0");
    zset_expect(h, "LB.BAN ann MATCH more",
                "-ERR member is banned with 16 patterns already: LB.UNBAN");
    zset_expect(h, "ZADD more 1 ann", ":1");
    assert_int_equal(player_orders(h), 0);
    h->wall_us += 5000000;
    zset_expect(h, "LB.BAN ann MATCH more", ":1");
}

ZSET_TEST(results_are_not_moved_to_a_banned_member) {
    zset_expect(h, "ZADD a 1 old", ":1");
    zset_expect(h, "ZADD b 1 old", ":1");
    zset_expect(h, "LB.BAN new MATCH a", ":0");
    zset_expect(h, "LB.MOVE old new", "[:1 :1]");
    zset_expect(h, "ZRANGE a 0 -1", "[old]");
}

/* ---- beside a twin ---- */

enum { MEMBERS = 6, BOARDS = 5, MODEL_STEPS = 20000, MODEL_STEPS_SHORT = 4000 };

struct ban_twin {
    int64_t all_ms[MEMBERS], odd_ms[MEMBERS]; /* until when: from all, from those with "odd" */
    bool is_on[BOARDS][MEMBERS];
};

static bool twin_bans(const struct ban_twin *twin, int board, int member, int64_t now_ms) {
    return twin->all_ms[member] > now_ms || (board % 2 == 1 && twin->odd_ms[member] > now_ms);
}

static void twin_step(struct random *random, struct harness *h, struct ban_twin *twin) {
    int member = (int)random_below(random, MEMBERS), board = (int)random_below(random, BOARDS);
    int other = (int)random_below(random, BOARDS);
    int64_t now_ms = harness_now_us(h) / 1000;
    static const char *const writes[][2] = {
        {"ZADD", "5"}, {"ZINCRBY", "1"}, {"LB.ADD", "7"}, {"LB.SUBMIT 1", "7"}};
    uint64_t kind = random_below(random, 12);
    const char *odd = board % 2 == 1 ? "odd" : "even";
    bool is_held = twin_bans(twin, board, member, now_ms);
    if (kind < 6) {
        const char *const *write = writes[random_below(random, 4)];
        const char *reply =
            zset_run(h, "%s b:%d:%s %s m%d", write[0], board, odd, write[1], member);
        bool is_refused = strncmp(reply, banned, sizeof banned - 1) == 0;
        assert_int_equal(is_refused, is_held);
        twin->is_on[board][member] |= !is_held;
    } else if (kind < 8) {
        zset_run(h, "ZUNIONSTORE b:%d:%s 1 b:%d:%s", board, odd, other,
                 other % 2 == 1 ? "odd" : "even");
        for (int i = 0; i < MEMBERS; i++) {
            twin->is_on[board][i] = twin->is_on[other][i] && !twin_bans(twin, board, i, now_ms);
        }
    } else if (kind == 8) {
        zset_run(h, "LB.UNBAN m%d", member);
        twin->all_ms[member] = twin->odd_ms[member] = 0;
    } else if (kind == 9) {
        h->wall_us += 1000 * (int64_t)random_below(random, 2000);
    } else {
        bool is_odd = random_below(random, 2) == 0;
        int seconds = 1 + (int)random_below(random, 4);
        int64_t taken = 0;
        for (int i = is_odd; i < BOARDS; i += 1 + is_odd) {
            taken += twin->is_on[i][member];
            twin->is_on[i][member] = false;
        }
        const char *reply =
            zset_run(h, "LB.BAN m%d EX %d %s", member, seconds, is_odd ? "MATCH *odd" : "");
        assert_int_equal(atoi(reply + 1), taken);
        *(is_odd ? &twin->odd_ms[member] : &twin->all_ms[member]) = now_ms + 1000 * seconds;
    }
}

TEST(random_bans_hold_as_a_naive_twin_says) {
    struct random random = random_begin(__func__);
    struct ban_twin twin = {.is_on = {{false}}};
    int steps = getenv("LEADERBOARD_TEST_SHORT") != NULL ? MODEL_STEPS_SHORT : MODEL_STEPS;
    void *at;
    zset_start(&at);
    struct harness *h = at;
    for (int step = 0; step < steps; step++) {
        twin_step(&random, h, &twin);
        int board = (int)random_below(&random, BOARDS),
            member = (int)random_below(&random, MEMBERS);
        const char *score =
            zset_run(h, "ZSCORE b:%d:%s m%d", board, board % 2 == 1 ? "odd" : "even", member);
        assert_int_equal(strcmp(score, "nil") != 0, twin.is_on[board][member]);
    }
    harness_tear_down(&at);
}

/* ---- over HTTP ---- */

ZSET_TEST(who_does_not_wait_for_the_passes_has_a_share_of_them_and_others_go_on) {
    struct session *web = harness_connect(h);
    struct session *judge = harness_connect(h);
    zset_expect(h, "ACL SETUSER judge on >p allkeys +@all", "+OK");
    harness_expect(h, judge, "AUTH judge p", "+OK\r\n");
    web->leaves_jobs = true;
    judge->leaves_jobs = true;
    for (int i = 0; i < JOBS_LEFT_MAX; i++) {
        char line[32];
        snprintf(line, sizeof line, "LB.BAN m%d", i);
        player_begin(h, web, line);
        job_leave(&h->server, web);
    }
    harness_expect(h, web, "LB.BAN late",
                   "-TOOSOON 16 commands of this user that take long are running already: wait 1 "
                   "s\r\n");
    assert_int_equal(player_orders(h), JOBS_LEFT_MAX);
    harness_expect(h, web, "LB.UNBAN late", ":0\r\n");
    player_begin(h, judge, "LB.BAN late");
    job_leave(&h->server, judge);
    struct session *waits = harness_connect(h);
    player_begin(h, waits, "LB.BAN other");
    while (h->server.jobs.count > 1 || waits->job->state != JOB_DONE) {
        (void)job_list_step(&h->server, 0, true);
    }
    assert_string_equal(player_end(h, waits), ":0\r\n");
    player_begin(h, web, "LB.BAN late");
    while (!player_step(h, web)) {}
    assert_string_equal(player_end(h, web), ":0\r\n");
}

/* A new user mostly gets the address of the one who has just gone. */
ZSET_TEST(who_comes_when_a_user_goes_has_none_of_its_passes) {
    struct session *first = harness_connect(h);
    zset_expect(h, "ACL SETUSER first on >p allkeys +@all", "+OK");
    harness_expect(h, first, "AUTH first p", "+OK\r\n");
    first->leaves_jobs = true;
    for (int i = 0; i < JOBS_LEFT_MAX; i++) {
        char line[32];
        snprintf(line, sizeof line, "LB.BAN m%d", i);
        player_begin(h, first, line);
        job_leave(&h->server, first);
    }
    harness_expect_part(h, first, "LB.BAN late", "-TOOSOON 16 ");
    zset_expect(h, "ACL DELUSER first", ":1");
    for (int i = 0; i < 8; i++) {
        struct session *next = harness_connect(h);
        zset_run(h, "ACL SETUSER next%d on >p allkeys +@all", i);
        char line[32];
        snprintf(line, sizeof line, "AUTH next%d p", i);
        harness_expect(h, next, line, "+OK\r\n");
        next->leaves_jobs = true;
        snprintf(line, sizeof line, "LB.BAN late%d", i);
        player_begin(h, next, line);
        job_leave(&h->server, next);
    }
    assert_int_equal(player_orders(h), JOBS_LEFT_MAX + 8);
    /* Of the same name it is the same user, whatever has become of it in between. */
    struct session *again = harness_connect(h);
    zset_expect(h, "ACL SETUSER first on >p allkeys +@all", "+OK");
    harness_expect(h, again, "AUTH first p", "+OK\r\n");
    again->leaves_jobs = true;
    harness_expect_part(h, again, "LB.BAN late", "-TOOSOON 16 ");
}

/* ---- restarts ---- */

static void bans_are_there_after_a_restart(const char *settings, const char *save) {
    ENDED_BY(loop_end) struct loop_server f;
    loop_begin_kept(&f, settings);
    loop_ask_anew(&f, "ZADD k 1 ann 2 bob\r\n", ":2\r\n");
    loop_ask_anew(&f, "LB.BAN ann MATCH k*\r\nLB.BAN eve\r\nLB.UNBAN eve\r\nLB.BAN kim EX 100\r\n",
                  ":1\r\n:0\r\n:1\r\n:0\r\n");
    if (save != NULL) {
        loop_ask_anew(&f, save, "+OK\r\n");
    }
    loop_stop(&f);
    loop_start_kept(&f, settings);
    loop_ask_anew(&f, "ZADD k 1 ann\r\n", ERROR_BANNED "\r\n");
    loop_ask_anew(&f, "ZADD l 1 ann 2 eve\r\nZRANGE k 0 -1\r\n", ":2\r\n*1\r\n$3\r\nbob\r\n");
    loop_ask_anew(&f, "ZADD k 1 kim\r\n", ERROR_BANNED "\r\n");
    f.harness->wall_us += 100000000;
    loop_ask_anew(&f, "ZADD k 1 kim\r\n", ":1\r\n");
}

TEST(bans_are_in_the_journal) {
    bans_are_there_after_a_restart("appendonly yes\nsave \"\"\n", NULL);
}

TEST(bans_are_in_snapshots) {
    bans_are_there_after_a_restart("appendonly no\nsave \"\"\n", "SAVE\r\n");
}
