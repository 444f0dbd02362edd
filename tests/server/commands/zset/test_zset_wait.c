/* BZPOPMIN, BZPOPMAX, BZMPOP and CLIENT UNBLOCK by bytes, with the clock of the test; and waits
 * against a list of who waits for what. */
#include "codec/memory.h"
#include "server/dispatch/waiting.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"

static void assert_valid(const struct harness *h) {
    const char *reason = "";
    if (!wait_validate(&h->server.waits, &reason)) {
        fail_msg("%s", reason);
    }
}

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

TEST(many_whose_time_is_over_at_once_are_answered_in_steps) {
    enum { MANY = 10000, STEP = 256 };
    struct harness *h = harness_create(NULL);
    static struct session *sessions[MANY];
    for (int i = 0; i < MANY; i++) {
        sessions[i] = harness_connect(h);
        harness_expect(h, sessions[i], "BZPOPMIN q 1000", "");
    }
    assert_valid(h);
    int steps = 1;
    for (bool has_more = give_up(h, 1000000000, STEP); has_more; steps++) {
        assert_int_equal(h->server.waits.client_count, MANY - STEP * steps);
        has_more = give_up(h, 0, STEP);
    }
    assert_int_equal(steps, (MANY + STEP - 1) / STEP);
    for (int i = 0; i < MANY; i++) {
        assert_string_equal(harness_output(sessions[i]), "*-1\r\n");
    }
    harness_destroy(h);
}

TEST(whoever_came_first_is_served_first) {
    struct harness *h = harness_create(NULL);
    struct session *first = harness_connect(h);
    struct session *second = harness_connect(h);
    struct session *other = harness_connect(h);
    second->protocol = 3;
    harness_expect(h, first, "BZPOPMAX a q 0", "");
    harness_expect(h, second, "BZMPOP 0 2 q a MIN COUNT 5", "");
    const char *list = harness_run(h, other, "CLIENT LIST");
    assert_non_null(strstr(list, " flags=b "));
    assert_non_null(strstr(harness_run(h, other, "INFO clients"), "blocked_clients:2\r\n"));
    harness_expect(h, other, "ZADD q 1 x 2 y 3 z", ":3\r\n");
    assert_string_equal(harness_output(first), "*3\r\n$1\r\nq\r\n$1\r\nz\r\n$1\r\n3\r\n");
    assert_string_equal(harness_output(second), "*2\r\n$1\r\nq\r\n*2\r\n*2\r\n$1\r\nx\r\n,1\r\n"
                                                "*2\r\n$1\r\ny\r\n,2\r\n");
    harness_expect(h, other, "EXISTS q", ":0\r\n");
    harness_destroy(h);
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

TEST(each_allocation_of_a_wait_fails_in_turn) {
    const struct bytes args[] = {BYTES("BZPOPMIN"), BYTES("a"), BYTES("b"), BYTES("c"), BYTES("5")};
    const struct request request = {.count = 5, .args = args};
    struct harness *h = harness_create(NULL);
    struct session *other = harness_connect(h);
    struct session *s = harness_connect(h);
    harness_expect(h, other, "BZPOPMIN b 0", "");
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        assert_true(nth < 100);
        struct reply reply;
        buffer_clear(&h->reply);
        assert_non_null(buffer_reserve(&h->reply, 1024));
        reply_init(&reply, &h->reply, 2);
        memory_fail_at(nth);
        harness_execute(&h->server, s, &request, &reply);
        memory_fail_at(0);
        h->reply.at[h->reply.size] = '\0';
        is_done = h->reply.size == 0;
        assert_string_equal(h->reply.at, is_done ? "" : "-OOM out of memory\r\n");
        assert_int_equal(s->wait.state, is_done ? WAIT_FOR_KEY : WAIT_NONE);
        assert_int_equal(h->server.waits.client_count, 1 + is_done);
        assert_int_equal(s->wait.keys.memory_size > 0, is_done);
        assert_valid(h);
    }
    harness_destroy(h);
}

/* Nobody who gets no memory for the reply takes a member. */
TEST(a_reply_without_memory_takes_no_member) {
    const struct bytes args[] = {BYTES("ZADD"), BYTES("q"), BYTES("1"), BYTES("m")};
    const struct request request = {.count = 4, .args = args};
    uint64_t broken_count = 0;
    bool is_over = false;
    for (uint64_t nth = 1; !is_over; nth++) {
        struct harness *h = harness_create(NULL);
        struct session *s = harness_connect(h);
        struct session *other = harness_connect(h);
        harness_expect(h, s, "BZPOPMIN q 0", "");
        struct reply reply;
        buffer_clear(&h->reply);
        assert_non_null(buffer_reserve(&h->reply, 1024));
        reply_init(&reply, &h->reply, 2);
        uint64_t requests_before = memory_requests();
        memory_fail_at(nth);
        harness_execute(&h->server, other, &request, &reply);
        is_over = memory_requests() - requests_before < nth;
        memory_fail_at(0);
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

/* ---- against a list ---- */

enum { CLIENTS = 12, KEYS = 5, WAITING_MAX = CLIENTS };

struct twin {
    struct harness *h;
    struct session *sessions[CLIENTS];
    struct {
        unsigned client;
        bool keys[KEYS];
    } waiting[WAITING_MAX]; /* in order of arrival */
    unsigned waiting_count;
};

static void take(struct twin *twin, unsigned index) {
    twin->waiting_count--;
    memmove(&twin->waiting[index], &twin->waiting[index + 1],
            (twin->waiting_count - index) * sizeof twin->waiting[0]);
}

static void add_members(struct twin *twin, struct random *random) {
    unsigned key = (unsigned)random_below(random, KEYS);
    unsigned count = 1 + (unsigned)random_below(random, 4);
    char line[256];
    int size = snprintf(line, sizeof line, "ZADD %u", key);
    for (unsigned i = 0; i < count; i++) {
        size += snprintf(line + size, sizeof line - (size_t)size, " %u m%u", i, i);
    }
    struct session *adder = harness_connect(twin->h);
    harness_run(twin->h, adder, line);
    unsigned next = 0;
    for (unsigned i = 0; i < twin->waiting_count && next < count;) {
        if (!twin->waiting[i].keys[key]) {
            i++;
            continue;
        }
        char expected[128];
        sprintf(expected, "*3\r\n$1\r\n%u\r\n$2\r\nm%u\r\n$1\r\n%u\r\n", key, next, next);
        assert_string_equal(harness_output(twin->sessions[twin->waiting[i].client]), expected);
        take(twin, i);
        next++;
    }
    assert_int_equal(harness_run_integer(twin->h, adder, formatted("ZCARD %u", key)), count - next);
    harness_run(twin->h, adder, formatted("DEL %u", key));
    harness_disconnect(twin->h, adder);
}

static void begin_wait(struct twin *twin, struct random *random, unsigned client) {
    char line[256] = "BZPOPMIN";
    unsigned index = twin->waiting_count++;
    twin->waiting[index].client = client;
    for (unsigned key = 0; key < KEYS; key++) {
        twin->waiting[index].keys[key] = random_below(random, 3) == 0;
        if (twin->waiting[index].keys[key]) {
            sprintf(line + strlen(line), " %u %u", key, key);
        }
    }
    strcat(line, " none 0");
    harness_expect(twin->h, twin->sessions[client], line, "");
}

TEST(random_waiting_is_as_the_list_says) {
    struct random random = random_begin(__func__);
    struct twin twin = {.h = harness_create(NULL)};
    for (unsigned i = 0; i < CLIENTS; i++) {
        twin.sessions[i] = harness_connect(twin.h);
    }
    for (int i = 0; i < 5000; i++) {
        unsigned client = (unsigned)random_below(&random, CLIENTS);
        unsigned index = 0;
        while (index < twin.waiting_count && twin.waiting[index].client != client) {
            index++;
        }
        uint64_t pick = random_below(&random, 4);
        if (pick == 0) {
            add_members(&twin, &random);
        } else if (index == twin.waiting_count) {
            begin_wait(&twin, &random, client);
        } else if (pick == 1) {
            harness_disconnect(twin.h, twin.sessions[client]);
            twin.sessions[client] = harness_connect(twin.h);
            take(&twin, index);
        }
        assert_int_equal(twin.h->server.waits.client_count, twin.waiting_count);
        assert_valid(twin.h);
    }
    harness_destroy(twin.h);
}
