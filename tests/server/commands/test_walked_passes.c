/* Passes over all boards while a snapshot is walked, which puts keys where it has not been, and boards are copied,
 * renamed and stored beside them: no board is passed by. LB.FORGET: lb/test_lb_forget.c. */
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_rating.h"
#include "server/commands/window.h"
#include "server/sessions/job.h"
#include "skiplist/keyspace/registry_walk.h"
#include "tests/server/player_fixture.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/keyspace.h"
#include "tests/support/random.h"

#define HOUR_US INT64_C(3600000000)
enum { NAMES = 60, ROUNDS = 30 };

static void go_on(struct harness *h, struct random *random, const char *const *lines,
                  size_t line_count) {
    char line[64];
    player_walk_some(random, h->server.registry);
    for (uint64_t left = random_below(random, 6); left > 0; left--) {
        random_line(random, lines[random_below(random, line_count)], line, sizeof line);
        zset_run(h, "%s", line);
    }
}

/* Is it on a board of this pattern? And is somebody else on all others? other NULL: need not be. */
static void expect_nowhere(struct harness *h, const char *pattern, const char *member,
                           const char *other) {
    char keys[8192];
    snprintf(keys, sizeof keys, "%s", zset_run(h, "KEYS %s", pattern));
    for (char *name = strtok(keys, " []"); name != NULL; name = strtok(NULL, " []")) {
        if (strcmp(zset_run(h, "ZSCORE %s %s", name, member), "nil") != 0) {
            fail_msg("%s is on %s", member, name);
        }
        bool has_bob = other != NULL && strcmp(zset_run(h, "ZSCORE %s bob", name), "nil") != 0;
        if (has_bob && strcmp(zset_run(h, "ZSCORE %s %s", name, other), "nil") == 0) {
            fail_msg("%s is not on %s", other, name);
        }
    }
    ASSERT_VALID(registry_validate, h->server.registry);
}

static const char *const moves[] = {
    "RENAME b:$60 b:$60",
    "RENAME b:$60 b:$60",
    "COPY b:$60 b:$60 REPLACE",
    "COPY b:$60 b:$60 REPLACE",
    "ZUNIONSTORE b:$60 2 b:$60 b:$60",
    "ZRANGESTORE b:$60 b:$60 0 -1",
    "ZADD b:$60 $4096 other$60",
};

/* Members that go from board to board themselves. */
static const char *const member_moves[] = {
    "ZMOVEMEMBER b:$60 b:$60 MEMBERS 1 ann",
    "ZMOVE b:$60 b:$60 MIN",
    "ZMOVE b:$60 b:$60 MAX",
    "RENAME b:$60 b:$60",
};

static void expect_player_gone(const char *test_name, const char *line, const char *const *lines,
                               size_t line_count, const char *other) {
    struct random random = random_begin(test_name);
    for (int round = 0; round < ROUNDS; round++) {
        void *at;
        zset_start(&at);
        struct harness *h = at;
        struct session *client = harness_connect(h);
        for (int i = 0; i < NAMES; i++) {
            zset_run(h, "ZADD b:%d %d ann 3 bob", i, i);
        }
        player_begin(h, client, line);
        do {
            go_on(h, &random, lines, line_count);
        } while (!player_step(h, client));
        registry_walk_end(h->server.registry);
        (void)player_end(h, client);
        expect_nowhere(h, "b:*", "ann", other);
        harness_tear_down(&at);
    }
}

TEST(a_ban_takes_the_member_off_all_boards) {
    expect_player_gone(__func__, "LB.BAN ann", moves, COUNT_OF(moves), NULL);
}

TEST(a_move_is_on_all_boards) {
    expect_player_gone(__func__, "LB.MOVE ann zoe BEST", moves, COUNT_OF(moves), "zoe");
}

TEST(a_member_that_moves_while_it_is_forgotten_is_nowhere) {
    expect_player_gone(__func__, "LB.FORGET ann", member_moves, COUNT_OF(member_moves), NULL);
}

/* Boards that stay where they are, and of which copies come and go. */
TEST(the_stale_leave_every_board_with_one_pass) {
    static const char *const lines[] = {"COPY s:$60 b:$60 REPLACE", "RENAME b:$60 b:$60",
                                        "DEL b:$60", "ZADD s:$60 $4096 other$60"};
    struct random random = random_begin(__func__);
    for (int round = 0; round < ROUNDS; round++) {
        void *at;
        zset_start(&at);
        struct harness *h = at;
        for (int i = 0; i < NAMES; i++) {
            zset_run(h, "LB.CREATE s:%d FIELD a 33 TIME 31 S STALE 1 HOUR", i);
            zset_run(h, "ZADD s:%d %d ann 3 bob", i, i);
        }
        h->wall_us += 2 * HOUR_US;
        server_update_time(&h->server);
        job_board_begin(&h->server, &job_board_stale);
        do {
            go_on(h, &random, lines, COUNT_OF(lines));
        } while (job_list_step(&h->server, 0, true));
        registry_walk_end(h->server.registry);
        expect_nowhere(h, "s:*", "ann", NULL);
        harness_tear_down(&at);
    }
}

/* In the middle of a board its key goes, or another takes its place. */
ZSET_TEST(what_becomes_of_a_board_with_STALE_meanwhile_does_not_matter) {
    static const struct {
        const char *lines[2];
        const char *key, *count;
    } rows[] = {
        {{"DEL k", NULL}, "k", ":0"},
        {{"FLUSHALL", NULL}, "k", ":0"},
        {{"RENAME k new", NULL}, "new", ":250"},
        {{"LB.ALTER k STALE NONE", NULL}, "k", ":492"},
        {{"LB.ALTER k FREEZE", NULL}, "k", ":492"},
        {{"DEL k", "LB.CREATE k STALE 1 HOUR"}, "k", ":0"},
        {{"COPY k k2", "ZREMRANGEBYRANK k 0 -1"}, "k2", ":250"},
    };
    shadow_end(h->shadow); /* there members leave by a timer */
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_row("%zu", i);
        zset_run(h, "FLUSHALL");
        zset_expect(h, "LB.CREATE k FIELD score 20 TIME 40 MS STALE 1 HOUR", "+OK");
        for (int half = 0; half < 2; half++) {
            for (int member = half; member < 500; member += 2) {
                zset_run(h, "ZADD k %d m%d", member, member);
            }
            h->wall_us += half == 0 ? 2 * HOUR_US : 0;
        }
        server_update_time(&h->server);
        job_board_begin(&h->server, &job_board_stale);
        for (int step = 0; step < 2; step++) { /* the first one is that of the pass */
            assert_true(job_list_step(&h->server, 0, true));
        }
        zset_expect(h, "ZCARD k", ":492");
        for (size_t line = 0; line < COUNT_OF(rows[i].lines) && rows[i].lines[line] != NULL;
             line++) {
            zset_run(h, "%s", rows[i].lines[line]);
        }
        for (int pass = 0; pass < 2; pass++) {
            while (job_list_step(&h->server, 0, true)) {}
            h->wall_us += INT64_C(31000000);
            server_update_time(&h->server);
        }
        zset_expect(h, formatted("ZCARD %s", rows[i].key), rows[i].count);
        ASSERT_VALID(registry_validate, h->server.registry);
        job_list_end(&h->server);
    }
}

TEST(what_is_over_leaves_every_window) {
    static const char *const lines[] = {"COPY b:$60 b:$60 REPLACE", "RENAME b:$60 b:$60",
                                        "DEL b:$60", "ZADD b:$60 $4096 other$60",
                                        "ZADD w:$60 $4096 other$60"};
    struct random random = random_begin(__func__);
    for (int round = 0; round < ROUNDS; round++) {
        void *at;
        zset_start(&at);
        struct harness *h = at;
        job_board_begin(&h->server, &window_job);
        job_board_begin(&h->server, &rating_job);
        job_board_begin(&h->server, &hold_job);
        for (int i = 0; i < NAMES; i++) {
            zset_run(h, "LB.CREATE w:%d FIELD a 33 TIME 31 S PERIOD HOUR WINDOW 2 %s", i,
                     i % 2 == 0 ? "SUM" : "BEST");
            zset_run(h, "ZADD w:%d %d ann 3 bob", i, i + 1);
        }
        for (int hour = 0; hour < 2; hour++) {
            h->wall_us += HOUR_US;
            server_update_time(&h->server);
            /* Keys that are there are found at their ends of periods, by whoever looks at them or by this. */
            (void)registry_roll_due(h->server.registry, h->server.clock.now_ms, 1000);
        }
        do {
            go_on(h, &random, lines, COUNT_OF(lines));
            server_update_time(&h->server);
        } while (job_list_step(&h->server, 0, true));
        registry_walk_end(h->server.registry);
        assert_int_equal(registry_behind_count(h->server.registry), 0);
        expect_nowhere(h, "w:?", "ann", NULL);
        expect_nowhere(h, "w:??", "ann", NULL);
        job_list_end(&h->server);
        harness_tear_down(&at);
    }
}
