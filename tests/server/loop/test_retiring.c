/* The end of a server: it retires, drains, and waits until its clients have closed. */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/loop/connection.h"
#include "tests/support/loop_server.h"

#define RETIRES "shutdown-drain-timeout 3600\n"
#define FAILED  "-ERR Errors trying to SHUTDOWN. Check logs.\r\n"

static void wait_for_end(struct loop_server *f) {
    struct loop_wait wait = {.turns = 0};
    while (!f->tick.is_stopping) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
}

LOOP_SERVER_TEST(while_a_server_retires_only_the_ping_of_new_clients_fails, RETIRES) {
    int operator= loop_connect(f);
    int ann = loop_connect(f);
    assert_false(f->server->ending.retiring.is_begun);
    loop_send(operator, "SHUTDOWN\r\n");
    loop_turn_some(f);
    assert_true(f->server->ending.retiring.is_begun);
    loop_ask(f, ann, "PING\r\nZADD b 1 ann\r\n", "+PONG\r\n:1\r\n");
    int late = loop_connect(f);
    loop_ask(f, late, "ZSCORE b ann\r\n", "$1\r\n1\r\n");
    loop_send(late, "INFO server\r\n");
    loop_turn_some(f);
    char info[4096] = "";
    assert_true(recv(late, info, sizeof info - 1, 0) > 0);
    assert_non_null(strstr(info, "\r\nshutdown_in_milliseconds:3600000\r\n"));
    loop_ask(f, late, "PING\r\n", "-LOADING the server is shutting down\r\n");
    loop_expect_end(f, late);
    loop_expect_nothing(f, operator);
    assert_false(f->tick.is_draining);
}

LOOP_SERVER_TEST(shutdown_is_called_off_and_who_asked_for_it_is_told, RETIRES) {
    int operator= loop_connect(f);
    int ann = loop_connect(f);
    loop_ask(f, ann, "SHUTDOWN ABORT\r\n", "-ERR No shutdown in progress.\r\n");
    for (int round = 0; round < 2; round++) {
        loop_send(operator, "SHUTDOWN NOSAVE\r\nZADD b 1 x\r\n");
        loop_expect_nothing(f, operator);
        loop_ask(f, ann, "EXISTS b\r\nSHUTDOWN ABORT\r\n",
                 round == 0 ? ":0\r\n+OK\r\n" : ":1\r\n+OK\r\n");
        loop_expect(f, operator, round == 0 ? FAILED ":1\r\n" : FAILED ":0\r\n");
        assert_false(f->server->ending.retiring.is_begun);
        int late = loop_connect(f);
        loop_ask(f, late, "PING\r\n", "+PONG\r\n");
        loop_close(f, late);
        loop_turn_some(f);
    }
}

LOOP_SERVER_TEST(a_server_that_nobody_uses_ends_at_once, RETIRES) {
    int operator= loop_connect(f);
    int other = loop_connect(f);
    int ann = loop_connect(f);
    loop_send(operator, "SHUTDOWN\r\n");
    loop_send(other, "SHUTDOWN\r\n");
    loop_turn_some(f);
    loop_expect_nothing(f, operator);
    loop_close(f, ann);
    wait_for_end(f);
    loop_expect_end(f, operator);
    loop_expect_end(f, other);
}

LOOP_SERVER_TEST(now_ends_the_wait, RETIRES) {
    int operator= loop_connect(f);
    int ann = loop_connect(f);
    loop_send(operator, "SHUTDOWN\r\n");
    loop_expect_nothing(f, operator);
    loop_send(ann, "SHUTDOWN NOW\r\n");
    wait_for_end(f);
    loop_expect_end(f, operator);
}

LOOP_SERVER_TEST(without_a_drain_timeout_nothing_is_waited_for, NULL) {
    int operator= loop_connect(f);
    int ann = loop_connect(f);
    loop_turn_some(f);
    loop_send(operator, "SHUTDOWN\r\n");
    loop_turn_some(f);
    assert_true(f->server->ending.retiring.is_begun);
    assert_true(f->tick.is_draining);
    wait_for_end(f);
    loop_expect_end(f, ann);
}

LOOP_SERVER_TEST(a_wait_that_is_over_ends_the_server, "shutdown-drain-timeout 1\n") {
    int ann = loop_connect(f);
    int operator= loop_connect(f);
    loop_send(operator, "SHUTDOWN\r\n");
    loop_turn_some(f);
    loop_send(ann, "ZADD b 1 ann\r\n");
    wait_for_end(f);
    loop_expect(f, ann, ":1\r\n");
    loop_expect_end(f, ann);
}

/* What a client sends behind the last reply is read, not run, and no reset destroys the reply. */
LOOP_SERVER_TEST(a_busy_client_gets_its_reply_and_the_end_and_closes_first, NULL) {
    int ann = loop_connect(f);
    loop_send(ann, "ZADD b 1 ann\r\n");
    loop_turn_some(f);
    tick_shutdown(&f->tick, false);
    for (int i = 0; i < 3; i++) {
        loop_turn(f);
    }
    assert_true(f->tick.is_lingering);
    loop_ask(f, ann, "ZADD b 1 bob\r\n", ":1\r\n");
    loop_expect_end(f, ann);
    assert_int_equal(f->server->sessions.count + f->tick.is_stopping, 1);
    loop_close(f, ann);
    wait_for_end(f);
    assert_int_equal(registry_count(f->server->registry, 0), 1);
}

/* The client's end of a connection that takes little before it is read from. */
static int connect_narrow(struct loop_server *f) {
    union socket_address address = {
        .v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int room = 4096;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, &address.any, sizeof address.v4), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, &address.any, &size), 0);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    assert_int_equal(connect(client, &address.any, sizeof address.v4), 0);
    const struct accepted accepted = {
        .fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK),
        .peer = address,
        .local = address,
    };
    assert_true(connection_open(&f->tick, &accepted));
    close(listener);
    return client;
}

/* Most of the reply is still in the server's socket when the next request arrives: if that were closed by
 * then, TCP would drop it. */
LOOP_SERVER_TEST(a_request_that_comes_too_late_does_not_destroy_the_reply_before_it, NULL) {
    enum { REPLY_SIZE = 40000 };
    static char request[REPLY_SIZE + 64], reply[REPLY_SIZE + 64];
    int client = connect_narrow(f);
    int head = snprintf(request, sizeof request, "*2\r\n$4\r\nECHO\r\n$%d\r\n", REPLY_SIZE);
    memset(request + head, 'x', REPLY_SIZE);
    memcpy(request + head + REPLY_SIZE, "\r\n", 2);
    size_t size = (size_t)head + REPLY_SIZE + 2;
    loop_send_all(f, client, request, size);
    loop_turn_some(f);
    assert_int_equal(f->server->stats.commands_processed, 1);
    tick_shutdown(&f->tick, false);
    for (int i = 0; i < 3; i++) {
        loop_turn(f);
    }
    assert_true(f->tick.is_lingering && !f->tick.is_stopping);
    uv_timer_stop(&f->tick.drain); /* time is the test's */
    loop_send(client, "PING\r\n");
    loop_turn_some(f);
    size_t received = 0;
    ssize_t count;
    while ((count = recv(client, reply + received, sizeof reply - received, 0)) > 0) {
        received += (size_t)count;
    }
    assert_int_equal(count, 0); /* no reset */
    assert_int_equal(received, strlen("$40000\r\n") + REPLY_SIZE + 2);
    close(client);
    wait_for_end(f);
}
