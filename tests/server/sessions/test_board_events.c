/* Followed boards beside a naive twin, which asks for the first n after every command: what was told
 * is always what there is, no more often than every 100 ms, and nothing is missed. */
#include "server/sessions/board_events.h"
#include "server/sessions/session.h"
#include "tests/server/sessions/listener.h"
#include "tests/support/random.h"

#define SETTINGS "notify-board-events yes\n"

static void check(const struct harness *h) {
    ASSERT_VALID(board_events_validate, &h->server.follows);
    ASSERT_VALID(subscription_validate, &h->server.subscriptions);
}

/* What the tick does after its commands. */
static void step(struct harness *h) {
    server_update_time(&h->server);
    (void)registry_roll_due(h->server.registry, h->server.clock.now_ms, 100);
    (void)registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 100);
    while (board_events_step(&h->server)) {}
    check(h);
}

static void pass(struct harness *h, int64_t ms) {
    h->wall_us += ms * 1000;
    step(h);
}

/* Messages as "channel text" lines. */
static const char *received(struct session *session) {
    static char text[1 << 17];
    size_t size = 0;
    unsigned token = 0;
    buffer_append(&session->output, "", 1);
    assert_false(session->output.is_broken);
    char *save = NULL;
    for (char *at = strtok_r(session->output.at, "\r\n", &save); at != NULL;
         at = strtok_r(NULL, "\r\n", &save), token = (token + 1) % 7) {
        if (token == 4 || token == 6) {
            size +=
                (size_t)snprintf(text + size, sizeof text - size, token == 4 ? "%s " : "%s\n", at);
            assert_true(size < sizeof text);
        }
    }
    assert_int_equal(token, 0);
    text[size] = '\0';
    buffer_clear(&session->output);
    return text;
}

#define BOARD_EVENTS_TEST(name, channels) LISTENER_TEST(name, SETTINGS, channels)

/* ---- sentences ---- */

/* A pattern matches the channels of boards that the user may not read. */
BOARD_EVENTS_TEST(messages_reach_only_those_who_may_read_the_board,
                  "__toplist@0__:1:a __toplist@0__:1:b") {
    struct session *dash = harness_connect(h);
    harness_run(h, s, "ACL SETUSER dash on nopass %R~a %W~b &__toplist* +@all");
    harness_run(h, dash, "AUTH dash x");
    harness_run(h, dash, "PSUBSCRIBE __toplist*");
    buffer_clear(&dash->output);
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "ZADD b 1 m");
    pass(h, 200);
    assert_string_equal(received(listener), "__toplist@0__:1:a [[\"m\",\"1\"]]\n"
                                            "__toplist@0__:1:b [[\"m\",\"1\"]]\n");
    buffer_append(&dash->output, "", 1);
    assert_non_null(strstr(dash->output.at, "__toplist@0__:1:a\r\n"));
    assert_null(strstr(dash->output.at, "__toplist@0__:1:b\r\n"));
    buffer_clear(&dash->output);
    /* The pattern is still the user's; the right to read is not. */
    harness_run(h, s, "ACL SETUSER dash resetkeys");
    assert_false(dash->is_killed);
    harness_run(h, s, "ZADD a 2 m");
    pass(h, 200);
    assert_int_equal(dash->output.size, 0);
    assert_string_equal(received(listener), "__toplist@0__:1:a [[\"m\",\"2\"]]\n");
}

BOARD_EVENTS_TEST(the_first_n_are_told_when_they_change_and_only_then,
                  "__top@0__:2:k __toplist@0__:2:k __topmembers@0__:2:k") {
    harness_run(h, s, "ZADD k 10 a 20 b 30 c");
    step(h);
    assert_string_equal(received(listener), "__top@0__:2:k changed\n"
                                            "__toplist@0__:2:k [[\"c\",\"30\"],[\"b\",\"20\"]]\n"
                                            "__topmembers@0__:2:k entered c\n"
                                            "__topmembers@0__:2:k entered b\n");
    pass(h, 100);
    harness_run(h, s, "ZADD k 15 a");
    step(h);
    assert_string_equal(received(listener), "");
    pass(h, 100);
    harness_run(h, s, "ZADD k 25 a");
    step(h);
    assert_string_equal(received(listener), "__top@0__:2:k changed\n"
                                            "__toplist@0__:2:k [[\"c\",\"30\"],[\"a\",\"25\"]]\n"
                                            "__topmembers@0__:2:k left b\n"
                                            "__topmembers@0__:2:k entered a\n");
    pass(h, 100);
    harness_run(h, s, "ZADD k 26 a");
    step(h);
    assert_string_equal(received(listener), "__top@0__:2:k changed\n"
                                            "__toplist@0__:2:k [[\"c\",\"30\"],[\"a\",\"26\"]]\n");
}

BOARD_EVENTS_TEST(changes_within_100_ms_are_told_together, "__toplist@0__:1:k") {
    harness_run(h, s, "ZADD k 1 a");
    step(h);
    assert_string_equal(received(listener), "__toplist@0__:1:k [[\"a\",\"1\"]]\n");
    for (int i = 2; i < 101; i++) {
        harness_run_format(h, s, "ZADD k %d a", i);
        pass(h, 1);
        assert_string_equal(received(listener), "");
    }
    assert_int_equal(board_events_wait_ms(&h->server), 1);
    pass(h, 1);
    assert_string_equal(received(listener), "__toplist@0__:1:k [[\"a\",\"100\"]]\n");
    pass(h, 100);
    assert_true(board_events_wait_ms(&h->server) == INT64_MAX);
}

BOARD_EVENTS_TEST(names_in_a_list_are_escaped, "__toplist@0__:1:k") {
    harness_run(h, s, "ZADD k 1 \"a\\\"\\\\\\n\"");
    step(h);
    assert_string_equal(received(listener),
                        "__toplist@0__:1:k [[\"a\\u0022\\u005c\\u000a\",\"1\"]]\n");
}

BOARD_EVENTS_TEST(a_list_that_does_not_fit_in_a_message_is_told_without_it,
                  "__toplist@0__:100:k __topmembers@0__:100:k") {
    static char name[BOARD_MEMBER_MAX];
    memset(name, 'x', sizeof name);
    for (int i = 0; i < 20; i++) {
        name[0] = (char)('a' + i);
        struct bytes add[] = {
            BYTES("ZADD"), BYTES("k"), BYTES("1"), {.at = name, .size = sizeof name}};
        assert_string_equal(harness_run_args(h, s, add, 4), ":1\r\n");
    }
    harness_run(h, listener, "UNSUBSCRIBE __topmembers@0__:100:k");
    step(h);
    assert_string_equal(received(listener), "__toplist@0__:100:k changed\n");
    assert_int_equal(h->server.follows.roster_size, 0);
}

BOARD_EVENTS_TEST(a_board_opens_and_closes_by_the_clock, "__board@0__:k") {
    harness_expect(h, s, "LB.CREATE k OPENS 2026-01-01T00:00:10Z CLOSES 2026-01-01T00:00:20Z",
                   "+OK\r\n");
    step(h);
    pass(h, 1000);
    assert_string_equal(received(listener), "");
    assert_in_range(board_events_wait_ms(&h->server), 8000, 9000);
    pass(h, 8998);
    assert_string_equal(received(listener), "");
    pass(h, 1000);
    assert_string_equal(received(listener), "__board@0__:k opened\n");
    pass(h, 10000);
    assert_string_equal(received(listener), "__board@0__:k closed\n");
    pass(h, 1000);
    harness_expect(h, s, "LB.ALTER k CLOSES NONE", "+OK\r\n");
    step(h);
    assert_string_equal(received(listener), "__board@0__:k opened\n");
    pass(h, 1000);
    harness_expect(h, s, "LB.ALTER k CLOSES 2026-01-01T00:01:00Z", "+OK\r\n");
    step(h);
    assert_string_equal(received(listener), "");
    harness_expect(h, s, "DEL k", ":1\r\n");
    pass(h, 100000);
    assert_string_equal(received(listener), "");
    assert_true(board_events_wait_ms(&h->server) < 200);
    pass(h, 200);
    assert_true(board_events_wait_ms(&h->server) == INT64_MAX);
}

BOARD_EVENTS_TEST(a_member_that_is_placed_lower_by_others_was_overtaken,
                  "__overtaken@0__:3:a:b:zoe") {
    harness_run(h, s, "ZADD a:b 30 ann 20 zoe 10 kim");
    pass(h, 100);
    harness_run(h, s, "ZADD a:b 25 kim");
    pass(h, 100);
    assert_string_equal(received(listener), "__overtaken@0__:3:a:b:zoe overtaken 1 2 kim\n");
    harness_run(h, s, "ZADD a:b 26 zoe");
    pass(h, 100);
    harness_run(h, s, "ZADD a:b 5 zoe"); /* its own doing */
    pass(h, 100);
    harness_run(h, s, "ZREM a:b ann");
    pass(h, 100);
    harness_run(h, s, "ZREM a:b zoe");
    pass(h, 100);
    harness_run(h, s, "ZADD a:b 5 zoe 100 leo");
    pass(h, 100);
    assert_string_equal(received(listener), "");
}

BOARD_EVENTS_TEST(nothing_is_told_while_the_setting_is_off_nor_later,
                  "__top@0__:2:k __board@0__:k") {
    harness_run(h, s, "CONFIG SET notify-board-events no");
    harness_run(h, s, "ZADD k 1 a");
    pass(h, 100);
    harness_run(h, s, "CONFIG SET notify-board-events yes");
    pass(h, 100);
    assert_string_equal(received(listener), "");
}

BOARD_EVENTS_TEST(patterns_receive_but_only_channels_follow, "__top@0__:2:k") {
    harness_run(h, s, "PSUBSCRIBE __top@*");
    buffer_clear(&s->output);
    assert_int_equal(h->server.follows.boards.count, 1);
    harness_run(h, listener, "UNSUBSCRIBE");
    while (subscription_free_step(&h->server.subscriptions, 1)) {}
    assert_int_equal(h->server.follows.boards.count, 0);
    harness_disconnect(h, listener);
    check(h);
}

BOARD_EVENTS_TEST(channels_that_no_board_can_have_are_refused, "x") {
    static const char *const wrong[] = {
        "__top@0__:0:k",         "__top@0__:101:k",       "__top@0__:k",
        "__top@16__:1:k",        "__toplist@0__:1:",      "__topmembers@:1:k",
        "__overtaken@0__:k:zoe", "__overtaken@0__:2:k:z", "__overtaken@0__:1:k:",
        "__board@0__:",          "__board@0:k",           "__overtaken@0__:9:k",
        "__overtaken@0__:0::z",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char line[100];
        snprintf(line, sizeof line, "SUBSCRIBE fine %s", wrong[i]);
        harness_expect_prefix(h, s, line, "-ERR channels of ");
        assert_false(subscription_list_is_used(&s->subscriptions));
    }
}

BOARD_EVENTS_TEST(one_client_follows_no_more_than_so_many, "x") {
    for (int i = 0; i < BOARD_EVENTS_PER_CLIENT_MAX; i++) {
        harness_run_format(h, s, "SUBSCRIBE __overtaken@0__:1:k:m%d", i);
    }
    harness_expect_prefix(h, s, "SUBSCRIBE __top@0__:1:k", "-ERR too many channels of boards");
    harness_run(h, s, "UNSUBSCRIBE __overtaken@0__:1:k:m7");
    harness_expect_prefix(h, s, "SUBSCRIBE __top@0__:1:k", "*3\r\n");
    harness_run(h, listener, "RESET");
    harness_expect(h, listener, "ZADD k 1 a", ":1\r\n");
    server_update_time(&h->server);
    assert_true(board_events_step(&h->server)); /* more than one step */
    check(h);
    harness_run(h, s, "RESET");
    while (board_events_step(&h->server)) {
        check(h);
    }
}

/* ---- beside the twin ---- */

enum { N = 5 };

struct twin {
    struct harness *h;
    struct session *writer, *listener, *asker;
    struct random random;
    char told[1024];    /* the first n, as a list */
    char members[N][8]; /* the same, by messages entered and left */
    unsigned member_count;
    int64_t told_at_us;
    int64_t rank; /* of m0; -1: not there */
    int64_t score;
    bool is_by_others; /* the last change adds others to the board */
};

/* [["m1","5"],...] from the reply of a plain command. */
static void ask_list(struct twin *twin, char *list, size_t room) {
    char reply[1024];
    snprintf(reply, sizeof reply, "%s",
             harness_run_format(twin->h, twin->asker, "ZREVRANGE k 0 %d WITHSCORES", N - 1));
    size_t size = (size_t)snprintf(list, room, "[");
    unsigned token = 0;
    char *save = NULL;
    for (char *at = strtok_r(reply, "\r\n", &save); at != NULL;
         at = strtok_r(NULL, "\r\n", &save)) {
        if (at[0] != '*' && at[0] != '$' && at[0] != '-') {
            const char *before = token % 2 == 1 ? "\"" : token == 0 ? "[\"" : ",[\"";
            size += (size_t)snprintf(list + size, room - size, "%s%s%s", before, at,
                                     token % 2 == 1 ? "\"]" : "\",");
            token++;
        }
    }
    snprintf(list + size, room - size, "]");
}

static int64_t ask_number(struct twin *twin, const char *line) {
    const char *reply = harness_run(twin->h, twin->asker, line);
    if (reply[0] == ':') {
        return strtoll(reply + 1, NULL, 10);
    }
    return reply[1] == '-' || reply[0] == '-' ? -1 : strtoll(strchr(reply, '\n') + 1, NULL, 10);
}

static void change(struct twin *twin) {
    static const char *const changes[] = {
        "ZREM k m$12",
        "ZREMRANGEBYRANK k $6 $8",
        "DEL k",
        "RENAME k j",
        "RENAME j k",
        "ZUNIONSTORE k 2 j k",
        "FLUSHDB",
        "ZPOPMAX k",
        "COPY j k REPLACE",
        "PEXPIRE k $50",
        "LB.ALTER k CAP 2",
        "LB.ALTER k CAP 6",
        "LB.CREATE k CAP 7 PERIOD HOUR",
        "ZREMRANGEBYSCORE k $50 +inf",
        "HSET k f v",
        "MOVE k 1",
        "ZADD j $50 m$12",
    };
    struct random *random = &twin->random;
    bool is_other = random_below(random, 3) > 0;
    char line[128];
    random_line(random,
                is_other ? changes[random_below(random, COUNT_OF(changes))]
                         : "ZADD k $50 m$12 $50 m$12",
                line, sizeof line);
    twin->is_by_others = strncmp(line, "ZADD k", 6) == 0 && strstr(line, "m0") == NULL;
    harness_run(twin->h, twin->writer, line);
}

static void enter(struct twin *twin, const char *name) {
    assert_true(twin->member_count < N);
    snprintf(twin->members[twin->member_count++], sizeof twin->members[0], "%s", name);
}

static void leave(struct twin *twin, const char *name) {
    for (unsigned i = 0; i < twin->member_count; i++) {
        if (strcmp(twin->members[i], name) == 0) {
            memcpy(twin->members[i], twin->members[--twin->member_count], sizeof twin->members[0]);
            return;
        }
    }
    fail_msg("%s left without having entered", name);
}

/* Returns the text of what m0 was told. */
static const char *hear(struct twin *twin, const char *now) {
    static char overtaken[64];
    char text[4096];
    char told[1024];
    bool is_list_told = false, is_change_told = false;
    overtaken[0] = '\0';
    snprintf(told, sizeof told, "%s", twin->told);
    snprintf(text, sizeof text, "%s", received(twin->listener));
    char *save = NULL;
    for (char *at = strtok_r(text, "\n", &save); at != NULL; at = strtok_r(NULL, "\n", &save)) {
        char *message = strchr(at, ' ') + 1;
        if (strncmp(at, "__overtaken", 11) == 0) {
            snprintf(overtaken, sizeof overtaken, "%s", message);
        } else if (strncmp(at, "__topmembers", 12) == 0) {
            bool is_entered = strncmp(message, "entered ", 8) == 0;
            (is_entered ? enter : leave)(twin, strchr(message, ' ') + 1);
        } else if (strncmp(at, "__toplist", 9) == 0) {
            assert_false(is_list_told);
            is_list_told = true;
            assert_string_equal(message, now);
            assert_string_not_equal(message, told);
            assert_true(twin->h->wall_us - twin->told_at_us >= 100000);
            twin->told_at_us = twin->h->wall_us;
            snprintf(twin->told, sizeof twin->told, "%s", now);
        } else {
            assert_string_equal(at, "__top@0__:5:k changed");
            assert_false(is_change_told);
            is_change_told = true;
        }
    }
    assert_int_equal(is_list_told, is_change_told);
    return overtaken;
}

/* All that has changed was told. */
static void settle(struct twin *twin, const char *now) {
    assert_string_equal(twin->told, now);
    unsigned count = 0;
    for (const char *at = now; (at = strstr(at, "[\"")) != NULL; at++) {
        count++;
    }
    assert_int_equal(count, twin->member_count);
    for (unsigned i = 0; i < count; i++) {
        char quoted[16];
        snprintf(quoted, sizeof quoted, "[\"%s\",", twin->members[i]);
        assert_non_null(strstr(now, quoted));
    }
}

/* One change at a time: exactly this was told about m0. */
static void check_overtaken(struct twin *twin, const char *told) {
    char expected[64] = "";
    char ahead[64] = "";
    int64_t rank = ask_number(twin, "ZREVRANK k m0"), score = ask_number(twin, "ZSCORE k m0");
    if (rank > twin->rank && twin->rank >= 0 && score > twin->score) {
        snprintf(expected, sizeof expected, "overtaken %d %d ", (int)twin->rank, (int)rank);
    } else if (rank > twin->rank && twin->rank >= 0 && score == twin->score &&
               (twin->is_by_others || told[0] != '\0')) {
        /* The same score may be set anew, with a later time, by the change itself. */
        snprintf(expected, sizeof expected, "overtaken %d %d ", (int)twin->rank, (int)rank);
    }
    if (expected[0] != '\0') {
        snprintf(ahead, sizeof ahead, "%s",
                 harness_run_format(twin->h, twin->asker, "ZREVRANGE k %d %d", (int)rank - 1,
                                    (int)rank - 1));
        strtok(ahead, "\n");
        strtok(NULL, "\n");
        size_t size = strlen(expected);
        snprintf(expected + size, sizeof expected - size, "%s", strtok(NULL, "\r"));
    }
    assert_string_equal(told, expected);
}

static void random_round(struct twin *twin) {
    char now[1024] = "";
    struct random *random = &twin->random;
    bool is_single = random_below(random, 2) == 0;
    unsigned change_count = is_single ? 1 : 1 + (unsigned)random_below(random, 8);
    for (unsigned i = 0; i < change_count; i++) {
        change(twin);
        if (!is_single) {
            twin->h->wall_us += (int64_t)random_below(random, 60) * 1000;
        }
        step(twin->h);
        ask_list(twin, now, sizeof now);
        const char *told = hear(twin, now);
        if (is_single) {
            check_overtaken(twin, told);
        }
    }
    bool is_long = random_below(random, 50) == 0;
    pass(twin->h, is_long ? 3600000 : 100);
    ask_list(twin, now, sizeof now);
    (void)hear(twin, now);
    pass(twin->h, 100);
    ask_list(twin, now, sizeof now);
    (void)hear(twin, now);
    settle(twin, now);
    twin->rank = ask_number(twin, "ZREVRANK k m0");
    twin->score = ask_number(twin, "ZSCORE k m0");
}

TEST(whatever_changes_a_board_what_was_told_is_what_there_is) {
    int rounds = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 400 : 4000;
    struct twin twin = {.random = random_begin("follow"), .told = "[]", .rank = -1, .score = -1};
    twin.h = listener_begin(
        SETTINGS, "__top@0__:5:k __toplist@0__:5:k __topmembers@0__:5:k __overtaken@0__:1:k:m0",
        &twin.writer, &twin.listener);
    twin.asker = harness_connect(twin.h);
    for (int i = 0; i < rounds; i++) {
        random_round(&twin);
    }
    harness_destroy(twin.h);
}

/* ---- memory ---- */

BOARD_EVENTS_TEST(without_memory_nobody_is_subscribed_and_nothing_is_lost, "x") {
    static const char line[] = "SUBSCRIBE __board@0__:k __topmembers@0__:2:k __overtaken@0__:1:k:a";
    harness_run(h, listener, "ZADD k 1 a 2 b");
    harness_run(h, listener, "RESET");
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        const char *reply = harness_run_failing(h, listener, line, nth);
        is_done = reply[0] == '*';
        check(h);
        if (!is_done) {
            while (subscription_free_step(&h->server.subscriptions, 1)) {}
            assert_int_equal(h->server.follows.channel_count, 0);
        }
    }
    assert_int_equal(h->server.follows.channel_count, 3);
}
