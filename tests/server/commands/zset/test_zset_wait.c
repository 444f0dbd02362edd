/* BZPOPMIN, BZPOPMAX, BZMPOP and CLIENT UNBLOCK by bytes, with the clock of the test. Random ones,
 * beside Redis: tests/integration/waiting.c. */
#include "codec/memory.h"
#include "server/dispatch/waiting.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"

static bool give_up(struct harness *h, int64_t us, uint32_t clients_max) {
    h->wall_us += us;
    server_update_time(&h->server);
    return waiting_give_up(&h->server, clients_max);
}

SERVER_TEST(a_client_waits_until_its_time_is_over) {
    harness_expect(h, s, "BZPOPMIN q 0.0015", "");
    assert_int_equal(s->wait.state, WAIT_FOR_KEY);
    assert_false(give_up(h, 1000, 10));
    assert_int_equal(s->wait.state, WAIT_FOR_KEY);
    assert_false(give_up(h, 1000, 10));
    assert_int_equal(s->wait.state, WAIT_NONE);
    assert_string_equal(harness_output(s), "*-1\r\n");
    s->protocol = 3;
    harness_expect(h, s, "BZMPOP 1 1 q MIN", "");
    assert_false(give_up(h, 1000000, 10));
    assert_string_equal(harness_output(s), "_\r\n");
    harness_expect(h, s, "BZPOPMAX q 9223372036854775.8", "");
    assert_int_equal(wait_next_due_ms(&h->server.waits), INT64_MAX);
}

SERVER_TEST(many_whose_time_is_over_at_once_are_answered_in_steps) {
    enum { MANY = 10000, STEP = 256 };
    static struct session *sessions[MANY];
    for (int i = 0; i < MANY; i++) {
        sessions[i] = harness_connect(h);
        harness_expect(h, sessions[i], "BZPOPMIN q 1000", "");
    }
    ASSERT_VALID(wait_validate, &h->server.waits);
    int steps = 1;
    for (bool has_more = give_up(h, 1000000000, STEP); has_more; steps++) {
        assert_int_equal(h->server.waits.client_count, MANY - STEP * steps);
        has_more = give_up(h, 0, STEP);
    }
    assert_int_equal(steps, (MANY + STEP - 1) / STEP);
    for (int i = 0; i < MANY; i++) {
        assert_string_equal(harness_output(sessions[i]), "*-1\r\n");
    }
}

SERVER_TEST(whoever_came_first_is_served_first) {
    struct session *first = s;
    struct session *second = harness_connect(h);
    struct session *other = harness_connect(h);
    second->protocol = 3;
    harness_expect(h, first, "BZPOPMAX a q 0", "");
    harness_expect(h, second, "BZMPOP 0 2 q a MIN COUNT 5", "");
    harness_expect_part(h, other, "CLIENT LIST", " flags=b ");
    harness_expect_part(h, other, "INFO clients", "blocked_clients:2\r\n");
    harness_expect(h, other, "ZADD q 1 x 2 y 3 z", ":3\r\n");
    assert_string_equal(harness_output(first), "*3\r\n$1\r\nq\r\n$1\r\nz\r\n$1\r\n3\r\n");
    assert_string_equal(harness_output(second), "*2\r\n$1\r\nq\r\n*2\r\n*2\r\n$1\r\nx\r\n,1\r\n"
                                                "*2\r\n$1\r\ny\r\n,2\r\n");
    harness_expect(h, other, "EXISTS q", ":0\r\n");
}

/* Twenty newcomers, a pop after each: who is answered, by its number. */
static void serve_newcomers(struct harness *h, struct session *s, const char *layout,
                            const char *score, const char *pop, bool is_oldest) {
    harness_run_format(h, s, "DEL lobby");
    harness_run_format(h, s, "LB.CREATE lobby LAYOUT %s", layout);
    harness_run_format(h, s, "ZADD lobby %s p0", score);
    for (int i = 1; i <= 20; i++) {
        char expected[80];
        h->wall_us += i % 2 * 1000000; /* some come in the same second */
        harness_run_format(h, s, "ZADD lobby %s p%d", score, i);
        int served = is_oldest ? i - 1 : i;
        snprintf(expected, sizeof expected, "*3\r\n$5\r\nlobby\r\n$%d\r\np%d\r\n",
                 served < 10 ? 2 : 3, served);
        harness_expect_prefix(h, s, pop, expected);
    }
    harness_expect(h, s, "ZCARD lobby", ":1\r\n");
}

SERVER_TEST(of_equal_scores_of_a_schedule_the_first_to_come_is_the_first_to_go) {
    serve_newcomers(h, s, "seconds", "1500", "BZPOPMIN lobby 0", true);
    serve_newcomers(h, s, "seconds", "1767225600.1234567", "BZPOPMIN lobby 0", true);
    serve_newcomers(h, s, "milliseconds", "1767225600123", "BZPOPMIN lobby 0", true);
    /* In rankings the first is the best, and so the last that ZPOPMIN takes. */
    serve_newcomers(h, s, "int64", "1500", "BZPOPMAX lobby 0", true);
    serve_newcomers(h, s, "decimals", "1500.5", "BZPOPMAX lobby 0", true);
    serve_newcomers(h, s, "default", "1500", "BZPOPMIN lobby 0", false);
}

/* A board that LB.CREATE made stays when it is empty. */
SERVER_TEST(an_empty_board_is_waited_for) {
    struct session *other = harness_connect(h);
    harness_expect(h, other, "LB.CREATE q LAYOUT default", "+OK\r\n");
    harness_expect(h, s, "BZPOPMIN q 0", "");
    harness_expect(h, other, "EXPIRE q 100", ":1\r\n");
    assert_int_equal(s->wait.state, WAIT_FOR_KEY);
    harness_run(h, other, "LB.ADD q 5 m");
    assert_string_equal(harness_output(s), "*3\r\n$1\r\nq\r\n$1\r\nm\r\n$1\r\n5\r\n");
    harness_expect(h, other, "EXISTS q", ":1\r\n");
}

static void rename_to_q(struct harness *h, struct session *other) {
    harness_expect(h, other, "RENAME before q", "+OK\r\n");
    waiting_serve(&h->server);
}

SERVER_TEST(a_board_that_takes_no_writes_is_waited_for) {
    struct session *other = harness_connect(h);
    harness_run(h, other, "ZADD before 5 m");
    harness_expect(h, other, "LB.ALTER before FREEZE", "+OK\r\n");
    harness_expect(h, s, "BZPOPMIN q 0", "");
    rename_to_q(h, other);
    assert_int_equal(s->wait.state, WAIT_FOR_KEY);
    harness_expect(h, other, "LB.ALTER q THAW", "+OK\r\n");
    waiting_serve(&h->server);
    assert_string_equal(harness_output(s), "*3\r\n$1\r\nq\r\n$1\r\nm\r\n$1\r\n5\r\n");
}

SERVER_TEST(a_board_that_opens_later_is_waited_for) {
    struct session *other = harness_connect(h);
    long long opens_ms = (long long)h->server.clock.now_ms + 2000;
    const char *alter = formatted("LB.ALTER before OPENS %lld", opens_ms);
    harness_run(h, other, "ZADD before 5 m");
    harness_expect(h, other, alter, "+OK\r\n");
    harness_expect(h, s, "BZPOPMIN none q 0", "");
    rename_to_q(h, other);
    assert_int_equal(h->server.waits.opens_ms, opens_ms);
    assert_false(give_up(h, 1999 * 1000, 10));
    waiting_serve_opened(&h->server);
    assert_int_equal(s->wait.state, WAIT_FOR_KEY);
    assert_false(give_up(h, 1000, 10));
    waiting_serve_opened(&h->server);
    assert_string_equal(harness_output(s), "*3\r\n$1\r\nq\r\n$1\r\nm\r\n$1\r\n5\r\n");
    assert_int_equal(h->server.waits.opens_ms, 0);
}

SERVER_TEST(keys_with_names_that_no_board_has_are_waited_for) {
    static char name[REGISTRY_NAME_MAX + 1];
    struct bytes args[] = {
        BYTES("BZPOPMIN"), {.at = name, .size = sizeof name}, BYTES(""), BYTES("0.001")};
    assert_string_equal(harness_run_args(h, s, args, 4), "");
    assert_int_equal(s->wait.keys.counts[SUBSCRIPTION_KEY], 1);
    assert_false(give_up(h, 1000, 10));
    assert_string_equal(harness_output(s), "*-1\r\n");
}

/* Clients come, are served, give up and go; which member each gets is compared with Redis. */
SERVER_TEST(after_every_step_of_many_clients_the_waits_hold_together) {
    enum { CLIENTS = 12, STEPS = 5000 };
    struct random random = random_begin(__func__);
    struct session *clients[CLIENTS];
    bool is_waiting[CLIENTS] = {false};
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = harness_connect(h);
    }
    for (int step = 0; step < STEPS; step++) {
        uint64_t one = random_below(&random, CLIENTS);
        unsigned key = (unsigned)random_below(&random, 5);
        uint64_t kind = random_below(&random, 8);
        if (kind == 0) {
            harness_disconnect(h, clients[one]);
            clients[one] = harness_connect(h);
            is_waiting[one] = false;
        } else if (kind == 1) {
            (void)give_up(h, (int64_t)random_below(&random, 2000000), 3);
        } else if (kind < 4) {
            harness_run(h, s, formatted("ZADD %u 1 a 2 b", key));
            harness_run(h, s, formatted("DEL %u", key));
        } else if (!is_waiting[one]) {
            harness_expect(h, clients[one],
                           formatted("BZPOPMIN %u %u %u none %d", key, key, (key + 2) % 5,
                                     (int)random_below(&random, 4)),
                           "");
            is_waiting[one] = true;
        }
        uint32_t count = 0;
        for (int i = 0; i < CLIENTS; i++) {
            is_waiting[i] = is_waiting[i] && harness_output(clients[i])[0] == '\0';
            count += is_waiting[i];
        }
        assert_int_equal(h->server.waits.client_count, count);
        ASSERT_VALID(wait_validate, &h->server.waits);
    }
}

SERVER_TEST(each_allocation_of_a_wait_fails_in_turn) {
    struct session *other = harness_connect(h);
    harness_expect(h, other, "BZPOPMIN b 0", "");
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        assert_true(nth < 100);
        const char *reply = harness_run_failing(h, s, "BZPOPMIN a b c 5", nth);
        is_done = reply[0] == '\0';
        assert_string_equal(reply, is_done ? "" : "-OOM out of memory\r\n");
        assert_int_equal(s->wait.state, is_done ? WAIT_FOR_KEY : WAIT_NONE);
        assert_int_equal(h->server.waits.client_count, 1 + is_done);
        assert_int_equal(s->wait.keys.memory_size > 0, is_done);
        ASSERT_VALID(wait_validate, &h->server.waits);
    }
}

/* Nobody who gets no memory for the reply takes a member. */
TEST(a_reply_without_memory_takes_no_member) {
    uint64_t broken_count = 0;
    bool is_over = false;
    for (uint64_t nth = 1; !is_over; nth++) {
        struct harness *h = harness_create(NULL);
        struct session *s = harness_connect(h);
        struct session *other = harness_connect(h);
        harness_expect(h, s, "BZPOPMIN q 0", "");
        uint64_t requests_before = memory_requests();
        (void)harness_run_failing(h, other, "ZADD q 1 m", nth);
        is_over = memory_requests() - requests_before < nth;
        if (s->output.is_broken) {
            broken_count++;
            harness_expect(h, other, "ZCARD q", ":1\r\n");
        } else if (s->output.size > 0) {
            harness_expect(h, other, "ZCARD q", ":0\r\n");
        }
        harness_destroy(h);
    }
    assert_in_range(broken_count, 1, 10);
}
