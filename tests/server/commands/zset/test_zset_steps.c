/* ZUNION and its relatives in steps, between which boards change, against the same commands at once. */
#include "server/replication/replication.h"
#include "server/sessions/job.h"
#include "tests/server/player_fixture.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/keyspace.h"
#include "tests/support/loop_server.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

enum { MEMBERS = 3000, PAIRS = 250 };

static void fill(struct harness *h, const char *key, int first, struct random *random) {
    static char line[PAIRS * 32];
    for (int begin = 0; begin < MEMBERS; begin += PAIRS) {
        size_t size = (size_t)snprintf(line, sizeof line, "ZADD %s", key);
        for (int i = begin; i < begin + PAIRS; i++) {
            size += (size_t)snprintf(line + size, sizeof line - size, " %d user:%d",
                                     (int)random_below(random, 500), first + i);
        }
        harness_run(h, h->server.sessions.first, line);
    }
}

static const struct board *board_of(struct harness *h, const char *name) {
    const struct registry_key *key =
        registry_find(h->server.registry, 0, bytes_from_text(name), h->server.clock.now_ms);
    return key != NULL ? &key->board : NULL;
}

/* The same members with the same scores. */
static void expect_same(struct harness *h, const char *one, const char *other) {
    const struct board *a = board_of(h, one), *b = board_of(h, other);
    assert_int_equal(a == NULL, b == NULL);
    for (uint32_t rank = 0; a != NULL && rank < board_count(a); rank++) {
        struct board_member found;
        struct board_stored entry = board_at(a, rank);
        char room[NAME_TEXT_ROOM];
        board_look_up(b, name_text(entry.member, room), NULL, &found);
        assert_true(found.is_there);
        assert_true(found.key == entry.key);
    }
    assert_int_equal(a != NULL ? board_count(a) : 0, b != NULL ? board_count(b) : 0);
}

/* At once, in a transaction, into "y". */
static void store_at_once(struct harness *h, struct session *s, const char *command,
                          const char *rest) {
    harness_run(h, s, "MULTI");
    harness_run(h, s, formatted("%s y %s", command, rest));
    assert_int_equal(harness_run(h, s, "EXEC")[0], '*');
}

/* The client's store is over: is it what the same at once makes? LB.FORGET, LB.BAN and COPY take steps of all jobs, so
 * that it may have ended within one of them, which then went on. */
static void expect_as_at_once(struct harness *h, struct session *client, struct session *other,
                              const char *command, const char *rest) {
    if (client->job == NULL) {
        assert_int_equal(harness_output(client)[0], ':');
        return;
    }
    assert_int_equal(player_end(h, client)[0], ':');
    store_at_once(h, other, command, rest);
    expect_same(h, "x", "y");
}

static void change(struct harness *h, struct session *s, struct random *random) {
    static const char *const keys[] = {"a", "b", "d"};
    const char *key = keys[random_below(random, 3)];
    int member = (int)random_below(random, 2 * MEMBERS), score = (int)random_below(random, 500);
    uint64_t dice = random_below(random, 1000);
    if (dice < 600) {
        harness_run(h, s, formatted("ZADD %s %d user:%d", key, score, member));
    } else if (dice < 850) {
        harness_run(h, s, formatted("ZREM %s user:%d", key, member));
    } else if (dice < 930) {
        harness_run(h, s, formatted("ZINCRBY %s 1 user:%d", key, member));
    } else if (dice < 970) {
        harness_run(h, s, formatted("ZREMRANGEBYRANK %s %d %d", key, score, score + 20));
    } else if (dice < 980) {
        harness_run(h, s, formatted("LB.FORGET user:%d", member));
    } else if (dice < 990) {
        harness_run(h, s, formatted("ZPOPMAX %s 3", key));
    } else if (dice < 993) {
        harness_run(h, s, formatted("LB.BAN user:%d x", member));
        harness_run(h, s, formatted("LB.BAN user:%d y", member));
    } else if (dice < 996) {
        harness_run(h, s, formatted("RENAME %s z", key));
        harness_run(h, s, formatted("RENAME z %s", key));
    } else {
        harness_run(h, s, formatted("COPY %s x REPLACE", key));
        harness_run(h, s, formatted("COPY %s y REPLACE", key)); /* their options are the same */
    }
}

static const char *const stores[][2] = {
    {"ZUNIONSTORE", "2 a b"},
    {"ZUNIONSTORE", "3 a b a WEIGHTS 2 3 1 AGGREGATE MAX"},
    {"ZINTERSTORE", "2 a b AGGREGATE MIN"},
    {"ZINTERSTORE", "3 b a d"},
    {"ZDIFFSTORE", "2 a d"},
    {"ZDIFFSTORE", "3 a none b"},
};

ZSET_TEST(a_long_store_is_that_of_the_moment_when_its_result_appears) {
    struct random random = random_begin("stores");
    struct session *client = h->server.sessions.first, *other = harness_connect(h);
    for (int round = 0; round < 24; round++) {
        const char *const *store = stores[round % (int)COUNT_OF(stores)];
        harness_run(h, other, "FLUSHALL");
        fill(h, "a", 0, &random);
        fill(h, "b", MEMBERS / 2, &random);
        fill(h, "d", MEMBERS / 4, &random);
        player_begin(h, client, formatted("%s x %s", store[0], store[1]));
        uint64_t often = 1 + random_below(&random, 40);
        bool is_done = false;
        while (!is_done) {
            if (random_below(&random, often) == 0) {
                change(h, other, &random);
            }
            is_done = client->job == NULL || player_step(h, client);
        }
        expect_as_at_once(h, client, other, store[0], store[1]);
    }
}

static const char *const spans[] = {
    "a 0 -1",
    "a 500 5000",
    "a 700 5300 REV",
    "a 50 480 BYSCORE",
    "a (450 -inf BYSCORE REV LIMIT 30 4500",
    "a 5 +inf BYSCORE LIMIT 100 4100",
};

ZSET_TEST(a_long_range_is_stored_as_it_is_when_it_appears) {
    struct random random = random_begin("spans");
    struct session *client = h->server.sessions.first, *other = harness_connect(h);
    uint32_t step_count = 0;
    for (int round = 0; round < 24; round++) {
        const char *span = spans[round % (int)COUNT_OF(spans)];
        harness_run(h, other, "FLUSHALL");
        fill(h, "a", 0, &random);
        fill(h, "a", MEMBERS, &random);
        fill(h, "b", MEMBERS / 2, &random);
        if (round % 3 == 2) {
            harness_run(h, other, "LB.CREATE x LAYOUT default CAP 4200");
            harness_run(h, other, "LB.CREATE y LAYOUT default CAP 4200");
        }
        player_begin(h, client, formatted("ZRANGESTORE x %s", span));
        uint64_t often = 1 + random_below(&random, 70);
        for (bool is_done = false; !is_done; step_count++) {
            if (random_below(&random, often) == 0) {
                change(h, other, &random);
            }
            is_done = client->job == NULL || player_step(h, client);
        }
        expect_as_at_once(h, client, other, "ZRANGESTORE", span);
        ASSERT_VALID(registry_validate, h->server.registry);
    }
    assert_true(step_count > 24 * 40);
}

/* Of other layouts the scores are converted at once; and tags stay with their board. */
ZSET_TEST(a_long_range_of_a_board_with_tags_or_of_another_layout_is_stored_as_a_short_one) {
    struct random random = random_begin("layouts");
    struct session *client = h->server.sessions.first, *other = harness_connect(h);
    harness_run(h, other, "LB.CREATE a LAYOUT default TAG land 4");
    harness_run(h, other, "LB.CREATE laps:x FIELD ms 32 ASC");
    fill(h, "a", 0, &random);
    fill(h, "a", MEMBERS, &random);
    harness_run(h, other, "LB.TAG a user:7 land DE");
    zset_expect(h, "ZRANGESTORE laps:x a 0 -1", ":6000");
    player_begin(h, client, "ZRANGESTORE x a 0 -1");
    while (!player_step(h, client)) {}
    assert_string_equal(player_end(h, client), ":6000\r\n");
    assert_false(tags_has_values(board_of(h, "x")));
    zset_expect(h, "LB.TAGS a user:7", "[[land DE]]");
    player_begin(h, client, "ZRANGESTORE a a 0 4999");
    while (!player_step(h, client)) {}
    assert_string_equal(player_end(h, client), ":5000\r\n");
    zset_expect(h, "ZCARD a", ":5000");
    player_begin(h, client, "ZRANGESTORE x a 0 4500");
    (void)player_step(h, client);
    harness_run(h, other, "DEL a");
    while (!player_step(h, client)) {}
    assert_string_equal(player_end(h, client), ":0\r\n");
    zset_expect(h, "EXISTS x", ":0");
}

ZSET_TEST(a_long_reply_is_that_of_one_moment_and_no_error_is_lost) {
    struct random random = random_begin("steps");
    struct session *client = h->server.sessions.first, *other = harness_connect(h);
    fill(h, "a", 0, &random);
    fill(h, "b", MEMBERS / 2, &random);
    player_begin(h, client, "ZINTERCARD 2 a b");
    while (!player_step(h, client)) {}
    assert_string_equal(player_end(h, client), formatted(":%d\r\n", MEMBERS / 2));
    player_begin(h, client, "ZDIFF 2 a b");
    while (!player_step(h, client)) {}
    assert_string_equal(player_end(h, client), "");
    assert_memory_equal(harness_output(client), "*1500\r\n", 7);
    player_begin(h, client, "ZUNION 2 a b");
    (void)player_step(h, client);
    harness_run(h, other, "DEL b");
    harness_run(h, other, "HSET b f v");
    while (!player_step(h, client)) {}
    assert_memory_equal(player_end(h, client), "-WRONGTYPE", 10);
    player_begin(h, client, "ZUNIONSTORE x 3 a a a");
    (void)player_step(h, client);
    harness_run(h, other, "DEL a");
    while (!player_step(h, client)) {}
    assert_string_equal(player_end(h, client), ":0\r\n");
}

/* What journals and replicas are told, as it is applied by one of them; entries of this step. */
struct follower {
    struct effect_listener listener;
    struct registry *registry;
    uint32_t told_count;
};

static void follow(void *context, const struct effect *effect) {
    struct follower *follower = context;
    follower->told_count +=
        effect->kind == EFFECT_FILL ? board_count(&effect->key->board) : (uint32_t)1;
    registry_follow(follower->registry, effect);
}

static const struct board *board_in(struct registry *registry, const char *name) {
    const struct registry_key *key = registry_find(registry, 0, bytes_from_text(name), 0);
    assert_non_null(key);
    return &key->board;
}

/* A crash, or another master, finds the destination as it was or as it is to be, whenever it comes. */
ZSET_TEST(a_long_store_is_told_in_small_parts_and_counts_when_it_is_whole) {
    enum { TOLD_MAX = 128 };
    static const char *const lines[] = {"ZUNIONSTORE x 2 a b",      "ZINTERSTORE x 2 a b",
                                        "ZDIFFSTORE x 2 b none",    "ZRANGESTORE x b 0 -1",
                                        "ZUNIONSTORE latest 2 a b", "ZRANGESTORE latest b 3 -4"};
    struct random random = random_begin("told");
    struct session *client = h->server.sessions.first, *other = harness_connect(h);
    struct follower follower = {.listener = {.receive = follow, .context = &follower},
                                .registry = registry_create_beside(h->server.registry)};
    effect_listener_add(h->server.registry, &follower.listener);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        const char *destination = i < 4 ? "x" : "latest";
        harness_run(h, other, "FLUSHALL");
        harness_run(h, other, "LB.CREATE latest FIELD points 32 TIME 32 S LATEST");
        if (i == 5) { /* its members are copied as they are, the newest of equals first */
            harness_run(h, other, "LB.CREATE b FIELD points 32 TIME 32 S LATEST");
        }
        fill(h, "a", 0, &random);
        fill(h, "b", 0, &random);
        fill(h, "b", MEMBERS, &random);
        harness_run(h, other, formatted("ZADD %s 1 before", destination));
        player_begin(h, client, lines[i]);
        for (bool is_done = false; !is_done;) {
            follower.told_count = 0;
            is_done = player_step(h, client);
            assert_in_range(follower.told_count, 0, TOLD_MAX);
            if (!is_done) {
                assert_int_equal(board_count(board_of(h, destination)), 1);
                assert_int_equal(board_count(board_in(follower.registry, destination)), 1);
            }
        }
        const struct board *board = board_of(h, destination);
        assert_string_equal(player_end(h, client), formatted(":%u\r\n", board_count(board)));
        assert_true(board_count(board) >= MEMBERS);
        for (uint32_t rank = 0; rank < board_count(board); rank++) {
            struct board_stored here = board_at(board, rank);
            struct board_stored there = board_at(board_in(follower.registry, destination), rank);
            assert_true(here.key == there.key && name_equal(here.member, there.member));
        }
    }
    effect_listener_remove(h->server.registry, &follower.listener);
    registry_clear(follower.registry);
    while (registry_free_step(follower.registry, 1000)) {}
    registry_destroy(follower.registry);
}

static uint32_t count_staged(const struct harness *h) {
    return registry_count(h->server.registry, REGISTRY_STAGING);
}

static void step_until_staged(struct harness *h, struct session *client) {
    while (count_staged(h) == 0) {
        assert_false(player_step(h, client));
    }
}

ZSET_TEST(a_store_that_ends_otherwise_leaves_nothing) {
    struct random random = random_begin("ends");
    struct session *client = h->server.sessions.first, *other = harness_connect(h);
    static const char *const lines[] = {"ZUNIONSTORE x 2 a b", "ZRANGESTORE x b 0 -1"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        fill(h, "a", 0, &random);
        fill(h, "b", 0, &random);
        fill(h, "b", MEMBERS, &random);
        harness_run(h, other, "ZADD x 1 before");
        for (int end = 0; end < 3; end++) {
            player_begin(h, client, lines[i]);
            step_until_staged(h, client);
            if (end == 0) { /* it begins anew */
                harness_run(h, other, "RENAME b c");
                harness_run(h, other, "RENAME c b");
            } else if (end == 1) {
                harness_run(h, other, "CONFIG SET maxmemory 1");
            } else {
                harness_run(h, other, "FLUSHALL");
            }
            while (!player_step(h, client)) {}
            const char *reply = player_end(h, client);
            assert_memory_equal(reply, end == 0 ? ":" : end == 1 ? "-OOM" : ":0\r\n", 1);
            assert_int_equal(count_staged(h), 0);
            harness_run(h, other, "CONFIG SET maxmemory 0");
            if (end == 0) {
                assert_int_equal(board_count(board_of(h, "x")), 2 * MEMBERS);
                harness_run(h, other, "DEL x");
                harness_run(h, other, "ZADD x 1 before");
            }
            zset_expect(h, "EXISTS x", end < 2 ? ":1" : ":0");
        }
    }
}

ZSET_TEST(a_store_meets_what_became_of_its_destination_meanwhile) {
    static const struct {
        const char *change, *reply, *shown, *is;
    } rows[] = {
        {"DEL x", ":6000\r\n", "ZCARD x", ":6000"},
        {"RENAME x z", ":6000\r\n", "ZCARD x", ":6000"},
        {"RENAME hash x", ":6000\r\n", "ZCARD x", ":6000"},
        {"EXPIRE x 100", ":6000\r\n", "TTL x", ":-1"},
        {"RENAME capped x", ":4200\r\n", "ZCARD x", ":4200"},
        {"RENAME tagged x", ":6000\r\n", "LB.TAGS x user:7", "[[]]"},
        {"RENAME limited x", "-", "ZCARD x", ":0"},
    };
    struct random random = random_begin("meets");
    struct session *client = h->server.sessions.first, *other = harness_connect(h);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        harness_run(h, other, "FLUSHALL");
        fill(h, "a", 0, &random);
        fill(h, "b", 0, &random);
        fill(h, "b", MEMBERS, &random);
        harness_run(h, other, "ZADD x 1 before");
        harness_run(h, other, "HSET hash f v");
        harness_run(h, other, "LB.CREATE capped LAYOUT default CAP 4200");
        harness_run(h, other, "LB.CREATE tagged LAYOUT default TAG land 4");
        harness_run(h, other, "LB.CREATE limited LAYOUT default LIMIT 100");
        player_begin(h, client, "ZUNIONSTORE x 2 a b");
        step_until_staged(h, client);
        harness_run(h, other, rows[i].change);
        harness_run(h, other, "WATCH x");
        while (!player_step(h, client)) {}
        assert_memory_equal(player_end(h, client), rows[i].reply, strlen(rows[i].reply));
        zset_expect(h, rows[i].shown, rows[i].is);
        assert_int_equal(count_staged(h), 0);
        harness_run(h, other, "MULTI");
        harness_run(h, other, "PING");
        harness_expect(h, other, "EXEC", rows[i].reply[0] == '-' ? "*1\r\n+PONG\r\n" : "*-1\r\n");
    }
}

ZSET_TEST(a_store_of_who_is_master_no_more_is_not_done_and_leaves_nothing_to_the_next_one) {
    struct random random = random_begin("epochs");
    struct session *client = h->server.sessions.first, *other = harness_connect(h);
    fill(h, "a", 0, &random);
    fill(h, "b", MEMBERS, &random);
    harness_run(h, other, "ZADD x 1 before");
    player_begin(h, client, "ZUNIONSTORE x 2 a b");
    step_until_staged(h, client);
    replication_begin_epoch(&h->server);
    assert_null(client->job);
    assert_memory_equal(harness_output(client), "-UNBLOCKED", 10);
    assert_int_equal(count_staged(h), 1); /* its master says what becomes of it */
    while (job_list_step(&h->server, 0, true)) {}
    assert_int_equal(count_staged(h), 0);
    assert_int_equal(board_count(board_of(h, "x")), 1);
    player_begin(h, other, "ZUNIONSTORE x 2 a b");
    while (!player_step(h, other)) {}
    assert_string_equal(player_end(h, other), ":6000\r\n");
}

ZSET_TEST(a_store_that_finds_no_memory_leaves_the_destination_as_it_was) {
    struct random random = random_begin("memory");
    struct session *client = h->server.sessions.first;
    static const char *const lines[] = {"ZUNIONSTORE x 2 a b", "ZRANGESTORE x b 0 -1"};
    fill(h, "a", 0, &random);
    fill(h, "b", 0, &random);
    fill(h, "b", MEMBERS, &random);
    harness_run(h, client, "ZADD x 1 before");
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        bool is_reached = true;
        for (uint64_t nth = 1; is_reached; nth += 1 + nth / 16) {
            player_begin(h, client, lines[i]);
            uint64_t requests_before = memory_requests();
            memory_fail_at(nth);
            while (!player_step(h, client)) {}
            memory_fail_at(0);
            is_reached = memory_requests() - requests_before >= nth;
            bool is_refused = player_end(h, client)[0] == '-';
            assert_int_equal(count_staged(h), 0);
            assert_int_equal(board_count(board_of(h, "x")) == 1, is_refused);
            ASSERT_VALID(registry_validate, h->server.registry);
            harness_run(h, client, "DEL x");
            harness_run(h, client, "ZADD x 1 before");
        }
    }
}

/* ---- restarts ---- */

static void a_restart_finds_the_old_one(const char *settings, bool is_saved) {
    ENDED_BY(loop_end) struct loop_server f;
    struct loop_wait wait = {0};
    loop_begin_kept(&f, settings);
    struct text requests = {.at = NULL}, replies = {.at = NULL};
    int client = loop_connect(&f);
    for (int i = 0; i < MEMBERS * 2; i++) {
        text_format(&requests, "ZADD a %d user:%d\r\n", i, i);
        text_format(&replies, ":1\r\n");
    }
    loop_send_all(&f, client, requests.at, requests.size);
    loop_expect(&f, client, replies.at);
    text_free(&requests);
    text_free(&replies);
    loop_ask_anew(&f, "ZADD x 1 before\r\n", ":1\r\n");
    loop_send(client, "ZUNIONSTORE x 2 a a\r\n");
    while (registry_member_count(f.server->registry, REGISTRY_STAGING) == 0) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
    if (is_saved) {
        f.server->client_pause.kind = SERVER_PAUSE_WRITE; /* what is staged is in the snapshot */
        f.server->client_pause.until_ms = INT64_MAX;
        loop_ask_anew(&f, "SAVE\r\n", "+OK\r\n");
    }
    job_leave(f.server, f.server->jobs.first->session);
    job_list_end(f.server); /* as the server's end does */
    loop_stop(&f);
    loop_start_kept(&f, settings);
    wait = (struct loop_wait){0};
    while (!f.server->jobs.is_resumed) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
    const struct registry_totals *totals = registry_totals(f.server->registry);
    assert_int_equal(totals->unfreed + totals->freed, 1); /* it was there, and has been removed */
    assert_int_equal(registry_count(f.server->registry, REGISTRY_STAGING), 0);
    loop_ask_anew(&f, "ZRANGE x 0 -1\r\n", "*1\r\n$6\r\nbefore\r\n");
}

TEST(a_restart_in_the_middle_finds_the_destination_as_it_was) {
    a_restart_finds_the_old_one("appendonly yes\nsave \"\"\n", false);
}

TEST(a_snapshot_in_the_middle_has_the_destination_as_it_was) {
    a_restart_finds_the_old_one("appendonly no\nsave \"\"\n", true);
}

static uint32_t count_text(const char *text, const char *part) {
    uint32_t count = 0;
    while ((text = strstr(text, part)) != NULL) {
        count++;
        text += strlen(part);
    }
    return count;
}

ZSET_TEST(a_long_reply_is_sent_in_short_pieces_and_what_is_pushed_follows_it) {
    enum { PIECE_MAX = 1024 };
    struct random random = random_begin("pieces");
    struct session *client = h->server.sessions.first, *other = harness_connect(h);
    size_t size = 0;
    fill(h, "a", 0, &random);
    fill(h, "b", MEMBERS / 2, &random);
    harness_run(h, client, "HELLO 3");
    harness_run(h, client, "SUBSCRIBE news");
    (void)harness_output(client);
    player_begin(h, client, "ZUNION 2 a b WITHSCORES");
    for (bool is_told = false, is_done = false; !is_done;) {
        is_done = player_step(h, client);
        assert_in_range(client->output.size - size, 0, PIECE_MAX);
        size = client->output.size;
        if (size > 0 && !is_told) {
            is_told = true;
            harness_expect(h, other, "PUBLISH news now", ":1\r\n");
            assert_int_equal(client->output.size, size);
            harness_run(h, other, "DEL a b"); /* it is that of one moment */
        }
    }
    assert_string_equal(player_end(h, client), "");
    const char *reply = harness_output(client);
    const char *push = strstr(reply, ">3\r\n$7\r\nmessage");
    assert_memory_equal(reply, "*4500\r\n", 7);
    assert_int_equal(count_text(reply, "*2\r\n"), 4500);
    assert_int_equal(count_text(reply, "user:"), 4500);
    assert_non_null(push);
    assert_null(strstr(push, "user:"));
}

ZSET_TEST(a_long_reply_that_nobody_wants_or_that_is_of_another_history_is_not_sent) {
    struct random random = random_begin("unwanted");
    struct session *client = h->server.sessions.first, *other = harness_connect(h);
    fill(h, "a", 0, &random);
    fill(h, "b", MEMBERS / 2, &random);
    harness_run(h, client, "CLIENT REPLY OFF");
    player_begin(h, client, "ZUNION 2 a b");
    while (!player_step(h, client)) {}
    assert_string_equal(player_end(h, client), "");
    assert_int_equal(client->output.size, 0);
    harness_run(h, client, "CLIENT REPLY ON");
    (void)harness_output(client);
    player_begin(h, client, "ZUNION 2 a b");
    while (client->output.size == 0) {
        assert_false(player_step(h, client));
    }
    harness_run(h, other, "CLIENT KILL TYPE normal SKIPME yes");
    while (!player_step(h, client)) {}
    assert_in_range(client->output.size, 1, 4096);
    (void)player_end(h, client);
}

/* One board of 3,000 and one of no members: a LIMIT that is reached at once needs no steps. */
ZSET_TEST(a_count_up_to_a_limit_is_answered_at_once) {
    struct random random = random_begin("steps");
    fill(h, "a", 0, &random);
    fill(h, "b", 0, &random);
    zset_expect(h, "ZINTERCARD 2 a b LIMIT 10", ":10");
    zset_expect(h, "ZINTERCARD 2 a b", ":3000");
}

ZSET_TEST(a_client_that_leaves_has_its_store_done_and_its_reply_dropped) {
    struct random random = random_begin("steps");
    struct session *client = harness_connect(h);
    fill(h, "a", 0, &random);
    fill(h, "b", MEMBERS / 2, &random);
    player_begin(h, client, "ZUNIONSTORE x 2 a b");
    (void)player_step(h, client);
    job_leave(&h->server, client);
    while (h->server.jobs.count > 0) {
        (void)job_list_step(&h->server, 0, true);
    }
    assert_int_equal(board_count(board_of(h, "x")), MEMBERS * 3 / 2);
    player_begin(h, client, "ZUNION 2 a b");
    (void)player_step(h, client);
    job_leave(&h->server, client);
    assert_int_equal(h->server.jobs.count, 0);
}
