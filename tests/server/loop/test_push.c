/* Output that a client did not ask for: on the loop, where it meets limits, the disk and clients that
 * close. */
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/loop/connection.h"
#include "tests/support/loop_server.h"
#include "tests/support/wire.h"

#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
#define MESSAGE    "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"

LOOP_SERVER_TEST(a_message_arrives_without_a_request, NULL) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_ask(f, ann, "SUBSCRIBE a\r\n", SUBSCRIBED);
    loop_ask(f, bob, "PUBLISH a x\r\nPUBLISH a x\r\nPUBLISH b x\r\n", ":1\r\n:1\r\n:0\r\n");
    loop_expect(f, ann, MESSAGE MESSAGE);
}

LOOP_SERVER_TEST(more_clients_than_are_sent_to_in_one_tick_all_get_it, NULL) {
    enum { CLIENTS = LOOP_CLIENTS_MAX - 1, MESSAGES = 5 };
    int clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = loop_connect(f);
        loop_ask(f, clients[i], "SUBSCRIBE a\r\n", SUBSCRIBED);
    }
    int bob = loop_connect(f);
    for (int i = 0; i < MESSAGES; i++) {
        loop_ask(f, bob, "PUBLISH a x\r\n", ":63\r\n");
    }
    for (int i = 0; i < CLIENTS; i++) {
        loop_expect(f, clients[i], MESSAGE MESSAGE MESSAGE MESSAGE MESSAGE);
    }
}

LOOP_SERVER_TEST(a_subscriber_is_not_idle, "timeout 2\n") {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_ask(f, ann, "SUBSCRIBE a\r\n", SUBSCRIBED);
    loop_ask(f, bob, "PING\r\n", "+PONG\r\n");
    for (int second = 0; second < 5; second++) {
        loop_second(f);
    }
    loop_wait_clients(f, 1);
    loop_expect_end(f, bob);
    loop_send(ann, "UNSUBSCRIBE a\r\n");
    loop_expect_prefix(f, ann, "*3\r\n$11\r\nunsubscribe\r\n");
    for (int second = 0; second < 5; second++) {
        loop_second(f);
    }
    loop_wait_clients(f, 0);
}

LOOP_SERVER_TEST(a_subscriber_that_does_not_read_is_closed_by_the_limits_of_its_class,
                 "client-output-buffer-limit pubsub 100000 0 0\n") {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_ask(f, ann, "SUBSCRIBE a\r\n", SUBSCRIBED);
    TEXT(request);
    text_format(&request, "*3\r\n$7\r\nPUBLISH\r\n$1\r\na\r\n$50000\r\n%050000d\r\n", 0);
    for (int i = 0; i < 1000 && f->server->sessions.count == 2; i++) {
        loop_send_all(f, bob, request.at, request.size);
        loop_expect_prefix(f, bob, ":");
    }
    loop_wait_clients(f, 1);
    assert_int_equal(f->server->stats.unexpected_closed_output, 1);
    loop_ask(f, bob, "PUBLISH a x\r\n", ":0\r\n");
}

LOOP_SERVER_TEST(a_subscriber_may_close_between_a_message_and_its_write, NULL) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_ask(f, ann, "SUBSCRIBE a\r\n", SUBSCRIBED);
    loop_close(f, ann);
    loop_send(bob, "PUBLISH a x\r\nCLIENT KILL TYPE pubsub\r\nPUBLISH a x\r\n");
    loop_wait_clients(f, 1);
    loop_expect_prefix(f, bob, ":");
}

/* ---- never inside a reply (RESP3, where a subscriber may send anything) ---- */

#define SUBSCRIBED_3 ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
#define PUSH         ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"
#define QUEUED       "+QUEUED\r\n"

static int connect_3(struct loop_server *f) {
    int client = loop_connect(f);
    loop_send(client, "HELLO 3\r\n");
    loop_expect_prefix(f, client, "%");
    return client;
}

LOOP_SERVER_TEST(messages_to_oneself_follow_the_reply_of_exec, NULL) {
    int ann = connect_3(f);
    int bob = loop_connect(f);
    loop_ask(f, bob, "SUBSCRIBE a\r\n", SUBSCRIBED);
    loop_send(
        ann,
        "SUBSCRIBE a\r\nMULTI\r\nPUBLISH a x\r\nZADD b 1 m\r\nPUBLISH a x\r\nEXEC\r\nPING\r\n");
    loop_expect(f, ann,
                SUBSCRIBED_3 "+OK\r\n" QUEUED QUEUED QUEUED "*3\r\n:2\r\n:1\r\n:2\r\n" PUSH PUSH
                             "+PONG\r\n");
    loop_expect(f, bob, MESSAGE MESSAGE);
    loop_ask(f, ann, "PUBLISH a x\r\n", ":2\r\n" PUSH);
}

LOOP_SERVER_TEST(a_subscription_inside_multi_is_a_reply_and_its_messages_are_not, NULL) {
    int ann = loop_connect(f);
    loop_send(ann, "MULTI\r\nSUBSCRIBE a\r\nPUBLISH a x\r\nUNSUBSCRIBE a\r\nEXEC\r\n");
    loop_expect(f, ann,
                "+OK\r\n" QUEUED QUEUED QUEUED "*3\r\n" SUBSCRIBED
                ":1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n" MESSAGE);
}

LOOP_SERVER_TEST(events_of_ones_own_changes_follow_their_reply, "notify-keyspace-events KEA\n") {
    int ann = connect_3(f);
    loop_send(ann, "PSUBSCRIBE __keyevent*\r\n");
    loop_expect_prefix(f, ann, ">3\r\n");
    loop_send(ann, "ZADD b 1 m 2 n\r\n");
    loop_expect_prefix(f, ann, ":2\r\n>4\r\n");
    loop_send(ann, "ZMPOP 1 b MIN COUNT 2\r\n");
    loop_expect_prefix(
        f, ann, "*2\r\n$1\r\nb\r\n*2\r\n*2\r\n$1\r\nm\r\n,1\r\n*2\r\n$1\r\nn\r\n,2\r\n>4\r\n");
    /* Who waits gets a reply, too. */
    int bob = loop_connect(f);
    loop_send(ann, "BZMPOP 0 1 b MIN\r\n");
    loop_turn_some(f);
    loop_ask(f, bob, "ZADD b 1 m\r\n", ":1\r\n");
    loop_turn_some(f);
    char got[1024];
    ssize_t size = read(ann, got, sizeof got - 1);
    assert_true(size > 0);
    got[size] = '\0';
    const char *reply = strstr(got, "*2\r\n$1\r\nb\r\n*1\r\n*2\r\n$1\r\nm\r\n,1\r\n");
    assert_non_null(reply);
    const char *event = strstr(got, "zpopmin");
    assert_true(event != NULL && event > reply);
}

LOOP_SERVER_TEST(lines_of_monitor_follow_the_reply_of_exec, NULL) {
    int ann = loop_connect(f);
    loop_ask(f, ann, "MONITOR\r\n", "+OK\r\n");
    loop_send(ann, "MULTI\r\nZCARD b\r\nZCARD c\r\nEXEC\r\n");
    loop_turn_some(f);
    char got[1024];
    ssize_t size = read(ann, got, sizeof got - 1);
    assert_true(size > 0);
    got[size] = '\0';
    assert_non_null(strstr(got, "*2\r\n:0\r\n:0\r\n+"));
}

TEST(nothing_is_sent_between_the_pieces_of_a_backup) {
    ENDED_BY(loop_end) struct loop_server f;
    loop_begin_kept(&f, "appendonly yes\n");
    int ann = connect_3(&f);
    int bob = loop_connect(&f);
    loop_ask(&f, ann, "SUBSCRIBE a\r\n", SUBSCRIBED_3);
    loop_ask(&f, bob, "ZADD b 1 m\r\n", ":1\r\n");
    loop_send(ann, "LB.SNAPSHOT\r\nPING\r\n");
    static char got[LOOP_REPLY_MAX];
    size_t size = 0;
    struct loop_wait wait = {0};
    while (memmem(got, size, "+PONG\r\n", 7) == NULL) {
        loop_send(bob, "PUBLISH a x\r\n"); /* in every tick */
        assert_true(loop_turn_and_wait(&f, &wait));
        ssize_t part = read(ann, got + size, sizeof got - 1 - size);
        size += part > 0 ? (size_t)part : 0;
    }
    got[size] = '\0';
    const char *at = got;
    while (strncmp(at, PUSH, strlen(PUSH)) == 0) { /* published before the command */
        at += strlen(PUSH);
    }
    while (*at == '$') {
        char *end;
        unsigned long piece = strtoul(at + 1, &end, 10);
        at = end + 2 + piece + 2;
    }
    assert_memory_equal(at, "+END group=", 11);
    assert_memory_equal(strchr(at, '\n') + 1, PUSH, strlen(PUSH));
}
