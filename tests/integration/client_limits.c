/* What clients may hold: each before it has given the password, and all of them together. */
#include "tests/support/test.h"

#include <sys/socket.h>

#include "tests/support/process.h"
#include "tests/support/wire.h"

enum { MIB = 1024 * 1024, KIB = 1024 };

static struct process server;
static struct wire witness;

static void start(const char *const *arguments) {
    const struct process_options options = {.arguments = arguments};
    assert_true(process_start(&server, &options));
    witness = wire_open(process_connect_unix(&server));
}

static void stop(void) {
    wire_close(&witness);
    assert_int_equal(process_stop(&server), 0);
}

/* After a failed test. */
FIXTURE(clean_up) {
    wire_close(&witness);
    (void)process_stop(&server);
    return 0;
}

/* ---- before authentication ---- */

#define IN_FIXTURE(name) TEST_WITH(name, NULL, clean_up)

/* Ten arguments of the longest kind, and as much of one as is still allowed. */
IN_FIXTURE(strangers_hold_20_kb_each_at_most) {
    enum { STRANGERS = 200, BULK = 16 * KIB };
    start((const char *const[]){"--requirepass", "secret", "--auth-timeout", "0", NULL});
    wire_check(&witness, "AUTH secret", "OK");
    char bulk[BULK + 1];
    memset(bulk, 'a', BULK);
    bulk[BULK] = '\0';
    struct text large = {.at = NULL};
    struct text full = {.at = NULL};
    text_format(&large, "*10\r\n");
    for (int i = 0; i < 9; i++) {
        text_format(&large, "$%d\r\n%s\r\n", BULK, bulk);
    }
    text_format(&full, "*2\r\n$4\r\nAUTH\r\n$%d\r\n%.*s", BULK, BULK - 1, bulk);
    struct wire strangers[STRANGERS];
    for (int i = 0; i < STRANGERS; i++) {
        const struct text *text = i % 2 == 0 ? &large : &full;
        strangers[i] = wire_open(process_connect_unix(&server));
        (void)send(strangers[i].fd, text->at, text->size, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    wire_wait_info_range(&witness, "total_net_input_bytes", STRANGERS / 2 * (BULK - 1 + 17 * KIB),
                         INT64_MAX);
    assert_in_range(wire_info(&witness, "mem_clients_normal"), STRANGERS / 2 * BULK,
                    (STRANGERS + 1) * 20 * KIB);
    wire_expect(&strangers[0], "-ERR Protocol error: unauthenticated request length\r\n");
    assert_true(wire_is_closed(&strangers[0], WIRE_LIMIT_MS));
    /* The other one's request is still whole. */
    wire_send_text(&strangers[1], "a\r\n");
    wire_expect(&strangers[1],
                "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    for (int i = 0; i < STRANGERS; i++) {
        wire_close(&strangers[i]);
    }
    text_free(&large);
    text_free(&full);
    stop();
}

IN_FIXTURE(a_stranger_has_auth_timeout_to_give_the_password) {
    start((const char *const[]){"--requirepass", "secret", "--auth-timeout", "0", NULL});
    wire_check(&witness, "AUTH secret", "OK");
    struct wire friend = wire_open(process_connect_tcp(&server));
    wire_check(&friend, "AUTH secret", "OK");
    wire_check(&friend, "RESET", "RESET");
    struct wire stranger = wire_open(process_connect_tcp(&server));
    wire_check(&stranger, "PING", "-NOAUTH Authentication required.");
    wire_check(&witness, "CONFIG SET auth-timeout 1", "OK");
    assert_true(wire_is_closed(&stranger, WIRE_LIMIT_MS));
    assert_true(wire_is_closed(&friend, WIRE_LIMIT_MS));
    wire_check(&witness, "PING", "PONG");
    wire_check(&witness, "CONFIG SET auth-timeout 0", "OK");
    wire_close(&stranger);
    stranger = wire_open(process_connect_tcp(&server));
    assert_true(wire_is_silent(&stranger, 3000));
    wire_check(&stranger, "AUTH secret", "OK");
    wire_close(&stranger);
    wire_close(&friend);
    stop();
}

/* ---- all clients together ---- */

/* A client that has announced a bulk, and sent some of it. */
static struct wire open_holder(size_t size, const char *first) {
    struct wire holder = wire_open(process_connect_unix(&server));
    if (first != NULL) {
        wire_check(&holder, first, "OK");
    }
    struct text text = {.at = NULL};
    text_format(&text, "*2\r\n$4\r\nECHO\r\n$%zu\r\n", size + 2);
    char *bulk = calloc(1, size);
    assert_non_null(bulk);
    text_add(&text, bulk, size);
    free(bulk);
    (void)wire_push(&holder, text.at, text.size, WIRE_LIMIT_MS);
    text_free(&text);
    return holder;
}

static void end_holder(struct wire *holder) {
    wire_send_text(holder, "xy\r\n");
    (void)wire_reply(holder);
    wire_check(holder, "PING", "PONG");
    wire_close(holder);
}

IN_FIXTURE(the_clients_that_hold_most_are_closed_first) {
    start((const char *const[]){"--maxmemory-clients", "32mb", NULL});
    assert_int_equal(wire_info(&witness, "maxmemory_clients"), 32 * MIB);
    struct wire small[3];
    for (int i = 0; i < 3; i++) {
        small[i] = open_holder(MIB, NULL);
    }
    wire_wait_info_range(&witness, "mem_clients_normal", 3 * MIB, INT64_MAX);
    assert_int_equal(wire_info(&witness, "evicted_clients"), 0);
    struct wire large = open_holder(30 * MIB, NULL);
    assert_true(wire_is_closed(&large, WIRE_LIMIT_MS));
    wire_wait_info(&witness, "evicted_clients", 1);
    wire_close(&large);
    /* NO-EVICT spares a client, and another one goes that holds no more. */
    struct wire spared = open_holder(10 * MIB, "CLIENT NO-EVICT ON");
    wire_wait_info_range(&witness, "mem_clients_normal", 13 * MIB, INT64_MAX);
    large = open_holder(15 * MIB, NULL);
    assert_true(wire_is_closed(&large, WIRE_LIMIT_MS));
    wire_wait_info(&witness, "evicted_clients", 2);
    end_holder(&spared);
    for (int i = 0; i < 3; i++) {
        end_holder(&small[i]);
    }
    wire_close(&large);
    stop();
}

IN_FIXTURE(queued_transactions_and_watches_count) {
    start((const char *const[]){"--maxmemory-clients", "8mb", NULL});
    struct wire queuer = wire_open(process_connect_unix(&server));
    struct wire watcher = wire_open(process_connect_unix(&server));
    struct text text = {.at = NULL};
    text_command(&text, "MULTI");
    for (int i = 0; i < 200000; i++) {
        text_command(&text, "ZADD board %d member:%d", i, i);
    }
    (void)wire_push(&queuer, text.at, text.size, WIRE_LIMIT_MS);
    assert_true(wire_is_closed(&queuer, WIRE_LIMIT_MS));
    text.size = 0;
    for (int i = 0; i < 200000; i++) {
        text_command(&text, "WATCH key:%d", i);
    }
    (void)wire_push(&watcher, text.at, text.size, WIRE_LIMIT_MS);
    assert_true(wire_is_closed(&watcher, WIRE_LIMIT_MS));
    wire_wait_info(&witness, "evicted_clients", 2);
    wire_check(&witness, "EXISTS board", ":0");
    text_free(&text);
    wire_close(&queuer);
    wire_close(&watcher);
    stop();
}

static void fill_board(int members) {
    struct text request = {.at = NULL};
    for (int i = 0; i < members; i += 1000) {
        text_format(&request, "*%d\r\n$4\r\nZADD\r\n$1\r\nb\r\n", 2 + 2 * 1000);
        for (int j = i; j < i + 1000; j++) {
            text_format(&request, "$6\r\n%06d\r\n$7\r\nm%06d\r\n", 100000 + j, j);
        }
    }
    wire_send(&witness, request.at, request.size);
    text_free(&request);
    for (int i = 0; i < members; i += 1000) {
        wire_expect(&witness, ":1000\r\n");
    }
}

IN_FIXTURE(readers_who_do_not_read_leave_memory_to_writers) {
    enum { READERS = 60 };
    start((const char *const[]){"--maxmemory", "64mb", NULL});
    fill_board(50000);
    struct text request = {.at = NULL};
    for (int i = 0; i < 4; i++) {
        text_command(&request, "ZRANGE b 0 -1 WITHSCORES");
    }
    struct wire readers[READERS];
    for (int i = 0; i < READERS; i++) {
        readers[i] = wire_open(process_connect_unix(&server));
        wire_send(&readers[i], request.at, request.size);
        wire_check(&witness, "ZADD b 1 m000000", ":0");
    }
    text_free(&request);
    wire_wait_info_range(&witness, "evicted_clients", READERS / 2, INT64_MAX);
    assert_in_range(wire_info(&witness, "mem_clients_normal"), 1, 16 * MIB);
    for (int i = 0; i < READERS; i++) {
        wire_close(&readers[i]);
    }
    stop();
}

/* ---- clients that are gone ---- */

static long long calls_of(const char *command) {
    const char *wanted = formatted("cmdstat_%s:calls=", command);
    const char *at = strstr(wire_ask(&witness, "INFO commandstats"), wanted);
    return at != NULL ? strtoll(at + strlen(wanted), NULL, 10) : 0;
}

IN_FIXTURE(nothing_runs_behind_a_reply_that_passes_the_limit) {
    start(NULL);
    fill_board(1000);
    wire_send_text(&witness, "CONFIG SET client-output-buffer-limit \"normal 16384 0 0\"\r\n");
    wire_expect(&witness, "+OK\r\n");
    struct wire client = wire_open(process_connect_unix(&server));
    struct text text = {.at = NULL};
    text_command(&text, "ZRANGE b 0 -1 WITHSCORES");
    for (int i = 0; i < 10; i++) {
        text_command(&text, "ZADD after %d m", i);
    }
    wire_send(&client, text.at, text.size);
    assert_true(wire_is_closed(&client, WIRE_LIMIT_MS));
    assert_int_equal(calls_of("zrange"), 1);
    wire_check(&witness, "EXISTS after", ":0");
    text_free(&text);
    wire_close(&client);
    stop();
}

/* Between two turns replies are sent, and who is gone is noticed. */
IN_FIXTURE(a_command_that_takes_long_is_the_last_of_its_turn) {
    enum { COMMANDS = 16 };
    start(NULL);
    fill_board(50000);
    struct wire client = wire_open(process_connect_unix(&server));
    struct text text = {.at = NULL};
    for (int i = 0; i < COMMANDS; i++) {
        text_command(&text, "ZUNIONSTORE d 4 b b b b");
    }
    int64_t before = wire_info(&witness, "eventloop_cycles");
    wire_send(&client, text.at, text.size);
    for (int i = 0; i < COMMANDS; i++) {
        wire_expect(&client, ":50000\r\n");
    }
    assert_true(wire_info(&witness, "eventloop_cycles") - before >= COMMANDS);
    text_free(&text);
    wire_close(&client);
    stop();
}
