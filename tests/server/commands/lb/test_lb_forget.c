/* LB.FORGET, sentence by sentence; beside a naive twin while other commands move its boards, and a
 * snapshot is walked; and across restarts. */
#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_walk.h"
#include "tests/server/player_fixture.h"
#include "tests/support/loop_server.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

ZSET_TEST(a_member_is_taken_off_all_boards) {
    zset_expect(h, "ZADD a 1 ann 2 bob", ":2");
    zset_expect(h, "ZADD b 1 ann", ":1");
    zset_expect(h, "LB.CREATE c", "+OK");
    zset_expect(h, "ZADD c 1 ann", ":1");
    zset_expect(h, "ZADD d 2 bob", ":1");
    zset_expect(h, "LB.FORGET ann", ":3");
    zset_expect(h, "ZRANGE a 0 -1", "[bob]");
    /* As with any removal, what a write made goes with its last member. */
    zset_expect(h, "EXISTS a b c d", ":3");
    zset_expect(h, "ZCARD c", ":0");
    zset_expect(h, "LB.FORGET ann", ":0");
    assert_int_equal(player_orders(h), 0);
}

ZSET_TEST(match_and_all_say_where) {
    zset_expect(h, "ZADD a1 1 ann", ":1");
    zset_expect(h, "ZADD b1 1 ann", ":1");
    zset_expect(h, "SELECT 3", "+OK");
    zset_expect(h, "ZADD a2 1 ann", ":1");
    zset_expect(h, "ZADD b2 1 ann", ":1");
    zset_expect(h, "LB.FORGET ann MATCH a*", ":1");
    zset_expect(h, "EXISTS a2 b2", ":1");
    zset_expect(h, "LB.FORGET ann MATCH b* ALL", ":2");
    zset_expect(h, "DBSIZE", ":0");
    zset_expect(h, "SELECT 0", "+OK");
    zset_expect(h, "KEYS *", "[a1]");
}

ZSET_TEST(archives_are_boards) {
    zset_expect(h, "LB.CREATE d FIELD a 9 PERIOD DAY", "+OK");
    zset_expect(h, "ZADD d 5 ann 6 bob", ":2");
    h->wall_us += INT64_C(86400000000);
    zset_expect(h, "ZADD d 5 ann", ":1");
    zset_expect(h, "LB.FORGET ann", ":2");
    zset_expect(h, "ZRANGE d@2026-01-01 0 -1", "[bob]");
}

ZSET_TEST(its_hash_goes_with_it) {
    zset_expect(h, "ZADD k 1 ann", ":1");
    zset_expect(h, "ZADD data:bob 1 eve", ":1");
    zset_expect(h, "HSET data:ann:x name Ann", ":1");
    zset_expect(h, "SELECT 1", "+OK");
    zset_expect(h, "HSET data:ann:x name Ann", ":1");
    zset_expect(h, "SELECT 0", "+OK");
    zset_expect(h, "LB.FORGET ann DATA data:*:x", ":1");
    zset_expect(h, "DBSIZE", ":1");
    assert_int_equal(registry_count(h->server.registry, 1), 1);
    zset_expect(h, "LB.FORGET ann DATA data:*:x ALL", ":0");
    assert_int_equal(registry_count(h->server.registry, 1), 0);
    /* A board of that name is not a player's data. */
    zset_expect(h, "LB.FORGET bob DATA data:*", ":0");
    zset_expect(h, "EXISTS data:bob", ":1");
}

ZSET_TEST(several_hashes_go_with_it) {
    zset_expect(h, "ZADD k 1 ann", ":1");
    zset_expect(h, "HSET a:ann name Ann", ":1");
    zset_expect(h, "HSET b:ann:x name Ann", ":1");
    zset_expect(h, "HSET ann name Ann", ":1");
    zset_expect(h, "HSET b:bob:x name Bob", ":1");
    zset_expect(h, "LB.FORGET ann DATA a:* MATCH k DATA none:* DATA b:*:x DATA *", ":1");
    zset_expect(h, "KEYS *", "[b:bob:x]");
}

ZSET_TEST(errors_leave_no_order) {
    zset_expect(h, "ZADD k 1 ann", ":1");
    zset_expect(h, "LB.FORGET ann DATA profiles",
                "-ERR DATA needs a key with a * where the member goes");
    zset_expect(h, "LB.FORGET ann DATA a:* DATA a:*:*",
                "-ERR DATA takes one *, which stands for the member: it names one key of each "
                "member, not all keys that match");
    zset_expect(h, "LB.FORGET ann MATCH a* MATCH k*",
                "-ERR ... comes again: MATCH is expected once");
    zset_expect(h, "LB.FORGET ann MATCH", "-ERR syntax error");
    char line[512] = "LB.FORGET ann";
    for (int i = 0; i < 63; i++) {
        strcat(line, " ALL");
    }
    zset_expect(h, line, "-ERR too many arguments: at most 64");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "LB.FORGET ann", "-ERR Command not allowed inside a transaction");
    zset_expect(h, "DISCARD", "+OK");
    assert_int_equal(player_orders(h), 0);
    zset_expect(h, "ZCARD k", ":1");
}

ZSET_TEST(watches_of_its_boards_are_touched) {
    struct session *other = harness_connect(h);
    zset_expect(h, "ZADD k 1 ann 2 bob", ":2");
    zset_expect(h, "WATCH k", "+OK");
    harness_expect(h, other, "LB.FORGET ann", ":1\r\n");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "PING", "+QUEUED");
    zset_expect(h, "EXEC", "nil*");
}

ZSET_TEST(an_order_is_kept_until_it_is_finished) {
    struct session *session = harness_connect(h);
    zset_expect(h, "ZADD k 1 ann 2 bob", ":2");
    player_begin(h, session, "LB.FORGET ann");
    assert_int_equal(player_orders(h), 1);
    /* No client sees or removes it. */
    zset_expect(h, "FLUSHALL", "+OK");
    zset_expect(h, "DBSIZE", ":0");
    zset_expect(h, "SELECT 16", "-ERR DB index is out of range");
    assert_int_equal(player_orders(h), 1);
    while (!player_step(h, session)) {}
    assert_int_equal(player_orders(h), 0);
    assert_string_equal(player_end(h, session), ":0\r\n");
}

ZSET_TEST(a_client_that_leaves_does_not_end_it) {
    struct session *ann = harness_connect(h);
    zset_expect(h, "ZADD k 1 ann 2 bob", ":2");
    player_begin(h, ann, "LB.FORGET ann");
    harness_disconnect(h, ann);
    assert_int_equal(h->server.jobs.count, 1);
    while (h->server.jobs.count > 0) {
        (void)job_list_step(&h->server, 0, true);
    }
    zset_expect(h, "ZRANGE k 0 -1", "[bob]");
    assert_int_equal(player_orders(h), 0);
}

/* ---- beside a twin ---- */

enum { NAMES = 60, ROUNDS = 60 };

/* Commands that spread and move boards, and put no member on one where it was on none. */
static const char *const moves[] = {
    "RENAME b:$60 b:$60",           "RENAME b:$60 b:$60",       "RENAME c:$60 b:$60",
    "COPY b:$60 b:$60 REPLACE",     "COPY c:$60 c:$60 REPLACE", "ZUNIONSTORE b:$60 2 b:$60 c:$60",
    "ZRANGESTORE b:$60 b:$60 0 -1", "LB.ROLL b:$60 b:$60",      "ZADD b:$60 $4096 other$60",
};

static void fill(struct harness *h) {
    for (int i = 0; i < NAMES; i++) {
        zset_run(h, "ZADD b:%d %d ann 3 bob", i, i);
        zset_run(h, "ZADD c:%d %d ann 5 bob", i, i);
    }
    for (int i = 0; i < NAMES / 2; i++) {
        zset_run(h, "LB.CREATE p:%d FIELD a 33 TIME 31 MS PERIOD DAY", i);
        zset_run(h, "ZADD p:%d 5 ann 7 bob", i);
    }
}

/* What ran between the steps; "" is the end of a day. */
struct history {
    char lines[4096][48];
    int count;
};

static void run_line(struct harness *h, const char *line) {
    if (line[0] == '\0') {
        h->wall_us += INT64_C(86400000000);
    } else {
        zset_run(h, "%s", line);
    }
}

static void forget_between(struct random *random, struct harness *h, struct history *history) {
    struct session *other = harness_connect(h);
    bool is_walked = random_below(random, 2) == 0;
    player_begin(h, other, "LB.FORGET ann MATCH [bp]*");
    do {
        if (is_walked) {
            player_walk_some(random, h->server.registry);
        }
        /* A scan takes few steps: most commands come between them. */
        for (uint64_t left = random_below(random, 6); left > 0; left--) {
            char *line = history->lines[history->count++];
            assert_in_range(history->count, 1, 4096);
            line[0] = '\0';
            if (random_below(random, 100) != 0) {
                random_line(random, moves[random_below(random, COUNT_OF(moves))], line,
                            sizeof history->lines[0]);
            }
            run_line(h, line);
        }
    } while (!player_step(h, other));
    registry_walk_end(h->server.registry);
    player_end(h, other);
}

/* Every board as text, but for the member where it is to be forgotten. */
static char *dump_all(struct harness *h) {
    struct text text = {.at = NULL};
    char keys[8192], *names[1024];
    size_t count = 0;
    snprintf(keys, sizeof keys, "%s", zset_run(h, "KEYS *"));
    for (char *name = strtok(keys, " []"); name != NULL; name = strtok(NULL, " []")) {
        names[count++] = name;
    }
    for (size_t i = 1; i < count; i++) {
        for (size_t at = i; at > 0 && strcmp(names[at - 1], names[at]) > 0; at--) {
            char *name = names[at];
            names[at] = names[at - 1];
            names[at - 1] = name;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (names[i][0] != 'c') {
            zset_run(h, "LB.ALTER %s THAW", names[i]);
            zset_run(h, "ZREM %s ann", names[i]);
        }
        OWNED char *dump = zset_dump(h, names[i]);
        text_format(&text, "%s %s\n", names[i], dump);
    }
    return text.at;
}

static void check_gone(struct harness *h) {
    char keys[8192];
    snprintf(keys, sizeof keys, "%s", zset_run(h, "KEYS [bp]*"));
    for (char *name = strtok(keys, " []"); name != NULL; name = strtok(NULL, " []")) {
        assert_string_equal(zset_run(h, "ZSCORE %s ann", name), "nil");
    }
}

TEST(boards_that_move_meanwhile_are_found) {
    static struct history history;
    struct random random = random_begin(__func__);
    for (int round = 0; round < ROUNDS; round++) {
        void *at;
        zset_start(&at);
        history.count = 0;
        fill(at);
        forget_between(&random, at, &history);
        check_gone(at);
        OWNED char *dump = dump_all(at);
        harness_tear_down(&at);
        zset_start(&at);
        fill(at);
        for (int i = 0; i < history.count; i++) {
            run_line(at, history.lines[i]);
        }
        OWNED char *wanted = dump_all(at);
        harness_tear_down(&at);
        assert_string_equal(dump, wanted);
    }
}

/* ---- restarts ---- */

enum { BOARDS = 4000 };

static void add_boards(struct loop_server *f) {
    struct text requests = {.at = NULL}, replies = {.at = NULL};
    int client = loop_connect(f);
    for (int i = 0; i < BOARDS; i++) {
        text_format(&requests, "ZADD b:%d 5 ann\r\n", i);
        text_format(&replies, ":1\r\n");
    }
    loop_send_all(f, client, requests.at, requests.size);
    loop_expect(f, client, replies.at);
    loop_close(f, client);
    text_free(&requests);
    text_free(&replies);
}

static void a_restart_finishes_it(const char *settings, bool is_saved) {
    ENDED_BY(loop_end) struct loop_server f;
    struct loop_wait wait = {0};
    loop_begin_kept(&f, settings);
    add_boards(&f);
    int client = loop_connect(&f);
    loop_send(client, "LB.FORGET ann\r\n");
    while (registry_count(f.server->registry, 0) == BOARDS) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
    if (is_saved) {
        f.server->client_pause.kind =
            SERVER_PAUSE_WRITE; /* the order waits, and is in the snapshot */
        f.server->client_pause.until_ms = INT64_MAX;
        loop_ask_anew(&f, "SAVE\r\n", "+OK\r\n");
    }
    loop_stop(&f);
    loop_start_kept(&f, settings);
    wait = (struct loop_wait){0};
    while (!f.server->jobs.is_resumed || f.server->jobs.count > 0) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
    assert_int_equal(registry_count(f.server->registry, 0), 0);
    assert_int_equal(registry_count(f.server->registry, DURABLE_JOBS), 0);
    if (!is_saved) { /* it is finished for good */
        loop_stop(&f);
        loop_start_kept(&f, settings);
        assert_int_equal(registry_count(f.server->registry, DURABLE_JOBS), 0);
        assert_int_equal(registry_count(f.server->registry, 0), 0);
    }
}

TEST(a_restart_finishes_it_from_the_journal) {
    a_restart_finishes_it("appendonly yes\nsave \"\"\n", false);
}

TEST(a_restart_finishes_it_from_a_snapshot) {
    a_restart_finishes_it("appendonly no\nsave \"\"\n", true);
}

TEST(a_ban_that_a_restart_interrupted_ends_when_it_was_to_end) {
    static const char settings[] = "appendonly yes\nsave \"\"\n";
    ENDED_BY(loop_end) struct loop_server f;
    struct loop_wait wait = {0};
    loop_begin_kept(&f, settings);
    add_boards(&f);
    int client = loop_connect(&f);
    loop_send(client, "LB.BAN ann EX 100\r\n");
    while (registry_count(f.server->registry, 0) == BOARDS) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
    loop_stop(&f);
    loop_start_kept(&f, settings);
    assert_true(registry_count(f.server->registry, 0) > 0);
    f.harness->wall_us += 101 * INT64_C(1000000);
    wait = (struct loop_wait){0};
    while (!f.server->jobs.is_resumed || f.server->jobs.count > 0) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
    /* What it has not come to yet is taken, as without the restart. */
    assert_int_equal(registry_count(f.server->registry, 0), 0);
    loop_ask_anew(&f, "ZADD b:0 5 ann\r\n", ":1\r\n");
}
