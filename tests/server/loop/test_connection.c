/* One client's socket, by what goes in and comes out of it: requests in any pieces, readers that
 * are slow or gone, half-closed sockets, limits, errors. */
#include "tests/support/test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/loop/connection.h"
#include "tests/support/loop_server.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

enum {
    LONG_SIZE = 60000,            /* of a member, and so of a reply about it */
    SOCKET_MAX = 4 * 1024 * 1024, /* more than the kernel holds of one socket */
};

static void add_bytes(struct text *text, char byte, size_t size) {
    OWNED char *at = malloc(size);
    assert_non_null(at);
    memset(at, byte, size);
    text_add(text, at, size);
}

/* A board whose ZRANGE is a reply of LONG_SIZE bytes and some. */
static void make_long_board(struct loop_server *f) {
    TEXT(request);
    int client = loop_connect(f);
    text_format(&request, "*4\r\n$4\r\nZADD\r\n$4\r\nlong\r\n$1\r\n1\r\n$%d\r\n", LONG_SIZE);
    add_bytes(&request, 'x', LONG_SIZE);
    text_add(&request, "\r\n", 2);
    loop_send_all(f, client, request.at, request.size);
    loop_expect(f, client, ":1\r\n");
    loop_close(f, client);
    loop_wait_clients(f, 0);
}

/* Requests for count long replies, and these. */
static void ask_long(struct text *requests, struct text *replies, int count) {
    for (int i = 0; i < count; i++) {
        text_format(requests, "ZRANGE long 0 0\r\nECHO %d\r\n", i);
        text_format(replies, "*1\r\n$%d\r\n", LONG_SIZE);
        add_bytes(replies, 'x', LONG_SIZE);
        text_format(replies, "\r\n$%d\r\n%d\r\n", snprintf(NULL, 0, "%d", i), i);
    }
}

/* Read all of it in pieces of any size up to piece_max. */
static void expect_pieces(struct loop_server *f, int client, const struct text *expected,
                          size_t piece_max, struct random *random) {
    static char piece[65536];
    struct loop_wait wait = {0};
    for (size_t done = 0; done < expected->size;) {
        assert_true(loop_turn_and_wait(f, &wait));
        ssize_t size = read(client, piece, 1 + random_below(random, piece_max));
        assert_true(size > 0 || (size < 0 && errno == EAGAIN));
        size = size > 0 ? size : 0;
        assert_in_range(size, 0, expected->size - done);
        assert_memory_equal(piece, expected->at + done, (size_t)size);
        done += (size_t)size;
    }
}

/* The server still works, for a newcomer and for this client. */
static void check_served(struct loop_server *f, int client) {
    int newcomer = loop_connect(f);
    loop_ask(f, newcomer, "PING\r\n", "+PONG\r\n");
    loop_close(f, newcomer);
    loop_ask(f, client, "PING\r\n", "+PONG\r\n");
}

/* ---- requests ---- */

LOOP_SERVER_TEST(a_request_may_come_in_single_bytes, NULL) {
    static const char requests[] = "*3\r\n$4\r\nECHO\r\n$2\r\nab\r\n$1\r\nc\r\n"
                                   "*2\r\n$4\r\nECHO\r\n$5\r\na\r\nbc\r\nPING\r\n\r\nECHO x\r\n";
    int client = loop_connect(f);
    for (size_t i = 0; i + 1 < sizeof requests; i++) {
        loop_send_bytes(client, &requests[i], 1);
        loop_turn(f);
    }
    loop_expect(f, client,
                "-ERR wrong number of arguments for 'echo' command\r\n"
                "$5\r\na\r\nbc\r\n+PONG\r\n$1\r\nx\r\n");
}

LOOP_SERVER_TEST(a_request_larger_than_one_read_is_whole, NULL) {
    struct random random = random_begin(__func__);
    int client = loop_connect(f);
    struct text request = {.at = NULL}, reply = {.at = NULL};
    text_format(&request, "PING\r\n*2\r\n$4\r\nECHO\r\n$%d\r\n", SOCKET_MAX);
    text_format(&reply, "+PONG\r\n$%d\r\n", SOCKET_MAX);
    for (int i = 0; i < SOCKET_MAX / 8; i++) {
        text_format(&request, "%08d", i);
        text_format(&reply, "%08d", i);
    }
    text_format(&request, "\r\n");
    text_format(&reply, "\r\n");
    loop_send_all(f, client, request.at, request.size);
    expect_pieces(f, client, &reply, 65536, &random);
    text_free(&request);
    text_free(&reply);
    check_served(f, client);
}

LOOP_SERVER_TEST(behind_a_protocol_error_nothing_runs, NULL) {
    int client = loop_connect(f);
    int other = loop_connect(f);
    loop_ask(f, client, "ZADD b 1 m\r\n*1\r\n:4\r\nZADD b 2 n\r\n",
             ":1\r\n-ERR Protocol error: expected '$', got ':'\r\n");
    loop_expect_end(f, client);
    loop_ask(f, other, "ZCARD b\r\n", ":1\r\n");
}

LOOP_SERVER_TEST(behind_quit_nothing_runs, NULL) {
    int client = loop_connect(f);
    int other = loop_connect(f);
    loop_ask(f, client, "PING\r\nQUIT\r\nZADD b 1 m\r\n", "+PONG\r\n+OK\r\n");
    loop_expect_end(f, client);
    loop_ask(f, other, "EXISTS b\r\n", ":0\r\n");
}

/* ---- half-closed sockets ---- */

LOOP_SERVER_TEST(who_sends_no_more_gets_all_replies_and_the_end, NULL) {
    struct random random = random_begin(__func__);
    make_long_board(f);
    int client = loop_connect(f);
    struct text requests = {.at = NULL}, replies = {.at = NULL};
    ask_long(&requests, &replies, SOCKET_MAX / LONG_SIZE);
    loop_send_all(f, client, requests.at, requests.size);
    loop_send(client, "*2\r\n$4\r\nECHO\r\n$9\r\nhalf"); /* never whole */
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    expect_pieces(f, client, &replies, 65536, &random);
    loop_expect_end(f, client);
    loop_wait_clients(f, 0);
    text_free(&requests);
    text_free(&replies);
}

LOOP_SERVER_TEST(who_sends_nothing_and_no_more_is_closed, NULL) {
    int client = loop_connect(f);
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    loop_expect_end(f, client);
    int other = loop_connect(f);
    loop_send(other, "*1\r\n$4\r\nPI"); /* half a request and no more */
    assert_int_equal(shutdown(other, SHUT_WR), 0);
    loop_expect_end(f, other);
    loop_wait_clients(f, 0);
}

LOOP_SERVER_TEST(who_sends_no_more_while_paused_is_answered_after_the_pause, NULL) {
    int client = loop_connect(f);
    int other = loop_connect(f);
    loop_ask(f, other, "CLIENT PAUSE 1000000 WRITE\r\n", "+OK\r\n");
    loop_send(client, "PING\r\nZADD b 1 m\r\nZCARD b\r\n");
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    loop_expect(f, client, "+PONG\r\n");
    loop_expect_nothing(f, client);
    loop_ask(f, other, "ZCARD b\r\nCLIENT UNPAUSE\r\n", ":0\r\n+OK\r\n");
    loop_expect(f, client, ":1\r\n:1\r\n");
    loop_expect_end(f, client);
}

/* ---- slow readers ---- */

LOOP_SERVER_TEST(a_slow_reader_gets_every_byte_in_order, NULL) {
    struct random random = random_begin(__func__);
    make_long_board(f);
    int client = loop_connect(f);
    struct text requests = {.at = NULL}, replies = {.at = NULL};
    ask_long(&requests, &replies, SOCKET_MAX / LONG_SIZE);
    loop_send_all(f, client, requests.at, requests.size);
    expect_pieces(f, client, &replies, 4000, &random);
    text_free(&requests);
    text_free(&replies);
    check_served(f, client);
}

/* Replies that are not yet in the socket, whichever thread has them. */
static size_t unsent_size(struct session *session) {
    return connection_unsent_size(connection_of(session));
}

/* Above CONNECTION_OUTPUT_HIGH it is held, until less than CONNECTION_OUTPUT_LOW is unsent: more than
 * its socket takes from there. */
enum { HELD = CONNECTION_OUTPUT_HIGH };

static bool is_unread(struct session *session, size_t size) {
    return size == HELD ? connection_of(session)->hold == CONNECTION_HELD_BY_OUTPUT
                        : unsent_size(session) >= size;
}

/* Its requests wait, unrun, while others are served; it loses nothing by that. */
LOOP_SERVER_TEST(who_does_not_read_is_not_run_on, NULL) {
    struct random random = random_begin(__func__);
    make_long_board(f);
    int client = loop_connect(f);
    int other = loop_connect(f);
    struct text requests = {.at = NULL}, replies = {.at = NULL};
    ask_long(&requests, &replies, 2 * SOCKET_MAX / LONG_SIZE);
    loop_send_all(f, client, requests.at, requests.size);
    loop_send(client, "ZADD late 1 m\r\n");
    struct loop_wait wait = {0};
    while (!is_unread(f->server->sessions.first, HELD)) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
    loop_turn_some(f);
    assert_in_range(unsent_size(f->server->sessions.first), CONNECTION_OUTPUT_LOW,
                    CONNECTION_OUTPUT_HIGH + 2 * LONG_SIZE);
    loop_ask(f, other, "EXISTS late\r\n", ":0\r\n");
    text_format(&replies, ":1\r\n");
    expect_pieces(f, client, &replies, 65536, &random);
    text_free(&requests);
    text_free(&replies);
    check_served(f, client);
}

/* Fill the client's socket, and some output of the server's; every request sent has run. */
static void leave_unread(struct loop_server *f, int client, size_t size) {
    struct loop_wait wait = {0};
    struct session *session = f->server->sessions.last;
    while (!is_unread(session, size)) {
        uint64_t before = session->command_count;
        loop_send(client, "ZRANGE long 0 0\r\n");
        while (session->command_count == before && !is_unread(session, size)) {
            assert_true(loop_turn_and_wait(f, &wait));
        }
    }
}

LOOP_SERVER_TEST(output_over_the_hard_limit_closes,
                 "client-output-buffer-limit normal 200000 0 0\n") {
    make_long_board(f);
    int other = loop_connect(f);
    int client = loop_connect(f);
    struct loop_wait wait = {0};
    while (f->server->sessions.count == 2) {
        ssize_t size = write(client, "ZRANGE long 0 0\r\n", 17);
        assert_true(size == 17 || (size < 0 && (errno == EPIPE || errno == EAGAIN)));
        assert_true(loop_turn_and_wait(f, &wait));
    }
    assert_int_equal(f->server->stats.unexpected_closed_output, 1);
    check_served(f, other);
}

LOOP_SERVER_TEST(one_reply_over_the_hard_limit_closes,
                 "client-output-buffer-limit normal 20000 0 0\n") {
    make_long_board(f);
    int other = loop_connect(f);
    int client = loop_connect(f);
    loop_send(client, "ZRANGE long 0 0\r\nZADD late 1 m\r\n");
    loop_wait_clients(f, 1);
    assert_int_equal(f->server->stats.unexpected_closed_output, 1);
    loop_ask(f, other, "EXISTS late\r\n", ":0\r\n");
    check_served(f, other);
}

#define SOFT_LIMIT "client-output-buffer-limit normal 0 100000 3\n"

LOOP_SERVER_TEST(output_over_the_soft_limit_for_its_time_closes, SOFT_LIMIT) {
    make_long_board(f);
    int other = loop_connect(f);
    int client = loop_connect(f);
    leave_unread(f, client, 150000);
    for (int second = 0; second < 2; second++) {
        loop_second(f);
        loop_turn_some(f);
        assert_int_equal(f->server->sessions.count, 2);
    }
    loop_second(f);
    loop_second(f);
    loop_wait_clients(f, 1);
    assert_int_equal(f->server->stats.unexpected_closed_output, 1);
    check_served(f, other);
}

LOOP_SERVER_TEST(who_reads_within_the_soft_limits_time_stays, SOFT_LIMIT) {
    make_long_board(f);
    int client = loop_connect(f);
    for (int round = 0; round < 3; round++) {
        static char piece[65536];
        leave_unread(f, client, 150000);
        loop_second(f);
        loop_second(f);
        struct loop_wait wait = {0};
        while (unsent_size(f->server->sessions.first) > 0) {
            assert_true(read(client, piece, sizeof piece) > 0 || errno == EAGAIN);
            assert_true(loop_turn_and_wait(f, &wait));
        }
        while (read(client, piece, sizeof piece) > 0) {}
        loop_second(f);
        loop_turn_some(f);
    }
    assert_int_equal(f->server->stats.unexpected_closed_output, 0);
    check_served(f, client);
}

/* ---- clients that are gone ---- */

LOOP_SERVER_TEST(who_is_gone_while_replies_wait_is_forgotten, NULL) {
    make_long_board(f);
    int other = loop_connect(f);
    for (int i = 0; i < 4; i++) {
        int client = loop_connect(f);
        leave_unread(f, client, i % 2 == 0 ? 1 : HELD);
        if (i < 2) {
            loop_close(f, client);
        } else {
            assert_int_equal(shutdown(client, SHUT_RDWR), 0);
        }
        loop_wait_clients(f, 1);
    }
    check_served(f, other);
}

LOOP_SERVER_TEST(who_is_gone_before_the_reply_is_forgotten, NULL) {
    int other = loop_connect(f);
    for (int i = 0; i < 30; i++) {
        int client = loop_connect(f);
        loop_send(client, "PING\r\nECHO x\r\n*1\r\n$4\r\nPI");
        for (int turns = i % 3; turns > 0; turns--) {
            loop_turn(f);
        }
        loop_close(f, client); /* with replies unread, the server's next read is an error */
        loop_wait_clients(f, 1);
    }
    check_served(f, other);
}

LOOP_SERVER_TEST(who_is_killed_while_replies_wait_gets_no_more, NULL) {
    static char piece[65536];
    make_long_board(f);
    int other = loop_connect(f);
    int client = loop_connect(f);
    leave_unread(f, client, HELD);
    loop_send(client, "ZADD late 1 m\r\n");
    loop_ask(f, other,
             formatted("CLIENT KILL ID %llu\r\n", (unsigned long long)f->server->sessions.last->id),
             ":1\r\n");
    loop_wait_clients(f, 1);
    struct loop_wait wait = {0};
    ssize_t size;
    while ((size = read(client, piece, sizeof piece)) > 0 ||
           (size < 0 && errno == EAGAIN && loop_turn_and_wait(f, &wait))) {}
    assert_true(size == 0 || errno == ECONNRESET);
    loop_ask(f, other, "EXISTS late\r\n", ":0\r\n");
}

LOOP_SERVER_TEST(the_end_closes_everybody_whatever_waits, NULL) {
    make_long_board(f);
    leave_unread(f, loop_connect(f), HELD);
    int half = loop_connect(f);
    loop_send(half, "*2\r\n$4\r\nECHO\r\n$100\r\nabc");
    int ready = loop_connect(f);
    loop_turn_some(f);
    loop_send(ready, "PING\r\n");
    loop_stop(f); /* finds leaks */
    char byte;
    assert_int_equal(read(half, &byte, 1), 0);
}

/* ---- limits of input and of clients ---- */

LOOP_SERVER_TEST(unfinished_input_over_its_limit_closes, "client-query-buffer-limit 1mb\n") {
    int other = loop_connect(f);
    int client = loop_connect(f);
    TEXT(request);
    text_format(&request, "*2\r\n$4\r\nECHO\r\n$3000000\r\n");
    add_bytes(&request, 'x', 2500000);
    struct loop_wait wait = {0};
    for (size_t sent = 0; f->server->sessions.count == 2;) {
        ssize_t size = write(client, request.at + sent, request.size - sent);
        sent += size > 0 ? (size_t)size : 0;
        assert_true(loop_turn_and_wait(f, &wait));
    }
    check_served(f, other);
}

LOOP_SERVER_TEST(before_authentication_little_is_kept, "requirepass secret\n") {
    int client = loop_connect(f);
    TEXT(request);
    text_format(&request, "*10\r\n");
    for (int i = 0; i < 9; i++) {
        text_format(&request, "$10000\r\n");
        add_bytes(&request, 'x', 10000);
        text_add(&request, "\r\n", 2);
    }
    loop_send_bytes(client, request.at, request.size);
    loop_expect(f, client, "-ERR Protocol error: unauthenticated request length\r\n");
    text_free(&request);
    /* What comes behind AUTH is under the limits of a client that is known. */
    int known = loop_connect(f);
    text_format(&request, "AUTH secret\r\n*2\r\n$4\r\nECHO\r\n$40000\r\n");
    add_bytes(&request, 'y', 40000);
    text_add(&request, "\r\n", 2);
    loop_send_bytes(known, request.at, request.size);
    loop_expect_prefix(f, known, "+OK\r\n");
}

LOOP_SERVER_TEST(the_client_over_maxclients_is_told_and_closed, "maxclients 2\n") {
    int first = loop_connect(f);
    int second = loop_connect(f);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    const struct accepted accepted = {.fd = ends[0], .is_unix_socket = true};
    assert_false(connection_open(&f->tick, &accepted));
    loop_expect(f, ends[1], "-ERR max number of clients reached\r\n");
    loop_expect_end(f, ends[1]);
    close(ends[1]);
    loop_close(f, second);
    loop_wait_clients(f, 1);
    check_served(f, first);
}

LOOP_SERVER_TEST(who_is_idle_for_longer_than_timeout_is_closed, "timeout 5\n") {
    int idle = loop_connect(f);
    int busy = loop_connect(f);
    int monitor = loop_connect(f);
    loop_ask(f, monitor, "MONITOR\r\n", "+OK\r\n");
    for (int second = 0; second < 8; second++) {
        loop_ask(f, busy, "PING\r\n", "+PONG\r\n");
        assert_int_equal(f->server->sessions.count, second <= 5 ? 3 : 2);
        loop_second(f);
        loop_turn_some(f);
    }
    loop_expect_end(f, idle);
    loop_expect_prefix(f, monitor, "+"); /* it saw the others */
}

LOOP_SERVER_TEST(without_memory_a_client_is_answered_or_closed, NULL) {
    int other = loop_connect(f);
    TEXT(request);
    for (int i = 0; i < 300; i++) { /* more than the queue's first room */
        text_format(&request, "*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n");
    }
    text_format(&request, "*2\r\n$4\r\nECHO\r\n$4000\r\n"); /* and half a request */
    bool was_closed = false;
    for (uint64_t nth = 1; nth <= 20; nth++) {
        int client = loop_connect(f);
        loop_send_bytes(client, request.at, request.size);
        memory_fail_at(nth);
        loop_turn_some(f);
        memory_fail_at(0);
        was_closed |= f->server->sessions.count == 1;
        loop_close(f, client);
        loop_wait_clients(f, 1);
        check_served(f, other);
    }
    assert_true(was_closed);
}

/* ---- all together ---- */

enum { CHAOS_CLIENTS = 12, CHAOS_STEPS = 20000, CHAOS_STEPS_SHORT = 4000 };

/* What it has yet to send, and to receive. */
struct talker {
    int client;
    struct text requests, replies;
    size_t sent, received;
    uint32_t key; /* its own: what it sent before it was gone may run later than what others send */
    uint32_t number;
    bool sends_no_more;
};

static void add_requests(struct talker *talker, struct random *random) {
    for (uint64_t left = random_below(random, 20); left > 0; left--) {
        uint64_t kind = random_below(random, 8);
        if (kind == 0) {
            ask_long(&talker->requests, &talker->replies, 1);
        } else if (kind == 1) {
            size_t size = 1 + random_below(random, 30000);
            text_format(&talker->requests, "*2\r\n$4\r\nECHO\r\n$%zu\r\n", size);
            text_format(&talker->replies, "$%zu\r\n", size);
            add_bytes(&talker->requests, 'e', size);
            add_bytes(&talker->replies, 'e', size);
            text_format(&talker->requests, "\r\n");
            text_format(&talker->replies, "\r\n");
        } else {
            char number[16];
            int size = snprintf(number, sizeof number, "%u", ++talker->number);
            text_format(&talker->requests, "ZINCRBY k%u 1 m\r\n", talker->key);
            text_format(&talker->replies, "$%d\r\n%s\r\n", size, number);
        }
    }
}

static void talk(struct talker *talker, struct random *random) {
    static char piece[100000];
    size_t left = talker->requests.size - talker->sent;
    if (left == 0 && !talker->sends_no_more) {
        add_requests(talker, random);
        left = talker->requests.size - talker->sent;
    }
    if (left > 0) {
        size_t size = 1 + random_below(random, left < 50000 ? left : 50000);
        ssize_t sent = write(talker->client, talker->requests.at + talker->sent, size);
        assert_true(sent > 0 || errno == EAGAIN);
        talker->sent += sent > 0 ? (size_t)sent : 0;
    }
    if (random_below(random, 3) == 0) {
        ssize_t size = read(talker->client, piece, 1 + random_below(random, sizeof piece));
        assert_true(size > 0 || errno == EAGAIN);
        if (size > 0) {
            assert_in_range(size, 1, talker->replies.size - talker->received);
            assert_memory_equal(piece, talker->replies.at + talker->received, (size_t)size);
            talker->received += (size_t)size;
        }
    }
}

static void begin_talker(struct loop_server *f, struct talker *talker) {
    static uint32_t key;
    *talker = (struct talker){.client = loop_connect(f), .key = ++key};
}

/* Some are gone in the middle; the others get every byte. */
static void end_talker(struct loop_server *f, struct talker *talker, struct random *random) {
    if (random_below(random, 2) == 0) {
        talker->sends_no_more = true;
        struct loop_wait wait = {0};
        while (talker->received < talker->replies.size) {
            talk(talker, random);
            assert_true(loop_turn_and_wait(f, &wait));
        }
        assert_int_equal(shutdown(talker->client, SHUT_WR), 0);
        loop_expect_end(f, talker->client);
    }
    loop_close(f, talker->client);
    text_free(&talker->requests);
    text_free(&talker->replies);
}

LOOP_SERVER_TEST(every_client_gets_its_replies_whatever_the_others_do, NULL) {
    struct random random = random_begin(__func__);
    struct talker talkers[CHAOS_CLIENTS];
    int steps = is_short_run() ? CHAOS_STEPS_SHORT : CHAOS_STEPS;
    make_long_board(f);
    for (int i = 0; i < CHAOS_CLIENTS; i++) {
        begin_talker(f, &talkers[i]);
    }
    for (int step = 0; step < steps; step++) {
        struct talker *talker = &talkers[random_below(&random, CHAOS_CLIENTS)];
        talk(talker, &random);
        if (random_below(&random, 4) == 0) {
            loop_turn(f);
        }
        if (random_below(&random, 200) == 0) {
            end_talker(f, talker, &random);
            begin_talker(f, talker);
        }
    }
    for (int i = 0; i < CHAOS_CLIENTS; i++) {
        end_talker(f, &talkers[i], &random);
    }
    loop_wait_clients(f, 0);
}
