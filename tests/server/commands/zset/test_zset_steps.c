/* ZUNION and its relatives in steps, between which boards change, against the same commands at once. */
#include "server/clients/job.h"
#include "tests/server/player_fixture.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/keyspace.h"
#include "tests/support/random.h"

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
            /* LB.FORGET and LB.BAN take steps of all jobs, and the harness answers each. */
            is_done = client->job == NULL || player_step(h, client);
        }
        if (client->job != NULL) {
            assert_int_equal(player_end(h, client)[0], ':');
        }
        store_at_once(h, other, store[0], store[1]);
        expect_same(h, "x", "y");
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
        uint64_t often = 1 + random_below(&random, 400);
        for (bool is_done = false; !is_done; step_count++) {
            if (random_below(&random, often) == 0) {
                change(h, other, &random);
            }
            is_done = client->job == NULL || player_step(h, client);
        }
        if (client->job != NULL) {
            assert_int_equal(player_end(h, client)[0], ':');
        }
        store_at_once(h, other, "ZRANGESTORE", span);
        expect_same(h, "x", "y");
        assert_registry_valid(h->server.registry);
    }
    assert_true(step_count > 24 * 200);
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
        (void)jobs_step(&h->server, 0, true);
    }
    assert_int_equal(board_count(board_of(h, "x")), MEMBERS * 3 / 2);
    player_begin(h, client, "ZUNION 2 a b");
    (void)player_step(h, client);
    job_leave(&h->server, client);
    assert_int_equal(h->server.jobs.count, 0);
}
