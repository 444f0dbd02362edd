/* Output that a client did not ask for: on the loop, where it meets limits, the disk and clients that
 * close. */
#include "tests/support/test.h"

#include <errno.h>
#include <unistd.h>

#include "server/loop/connection.h"
#include "tests/support/loop_server.h"
#include "tests/support/wire.h"

static void wait_for_clients(struct loop_server *f, uint32_t count) {
    struct loop_wait wait = {0};
    while (f->server->session_count != count) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
}

#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
#define MESSAGE    "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"

TEST(a_message_arrives_without_a_request) {
    struct loop_server f;
    loop_begin(&f, NULL);
    int ann = loop_connect(&f);
    int bob = loop_connect(&f);
    loop_send(ann, "SUBSCRIBE a\r\n");
    loop_expect(&f, ann, SUBSCRIBED);
    loop_send(bob, "PUBLISH a x\r\nPUBLISH a x\r\nPUBLISH b x\r\n");
    loop_expect(&f, bob, ":1\r\n:1\r\n:0\r\n");
    loop_expect(&f, ann, MESSAGE MESSAGE);
    loop_end(&f);
}

TEST(more_clients_than_are_sent_to_in_one_tick_all_get_it) {
    enum { CLIENTS = LOOP_CLIENTS_MAX - 1, MESSAGES = 5 };
    struct loop_server f;
    loop_begin(&f, NULL);
    int clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = loop_connect(&f);
        loop_send(clients[i], "SUBSCRIBE a\r\n");
        loop_expect(&f, clients[i], SUBSCRIBED);
    }
    int bob = loop_connect(&f);
    for (int i = 0; i < MESSAGES; i++) {
        loop_send(bob, "PUBLISH a x\r\n");
        loop_expect(&f, bob, ":63\r\n");
    }
    for (int i = 0; i < CLIENTS; i++) {
        loop_expect(&f, clients[i], MESSAGE MESSAGE MESSAGE MESSAGE MESSAGE);
    }
    loop_end(&f);
}

TEST(a_subscriber_is_not_idle) {
    struct loop_server f;
    loop_begin(&f, "timeout 2\n");
    int ann = loop_connect(&f);
    int bob = loop_connect(&f);
    loop_send(ann, "SUBSCRIBE a\r\n");
    loop_expect(&f, ann, SUBSCRIBED);
    loop_send(bob, "PING\r\n");
    loop_expect(&f, bob, "+PONG\r\n");
    for (int second = 0; second < 5; second++) {
        loop_second(&f);
    }
    wait_for_clients(&f, 1);
    loop_expect_end(&f, bob);
    loop_send(ann, "UNSUBSCRIBE a\r\n");
    loop_expect_prefix(&f, ann, "*3\r\n$11\r\nunsubscribe\r\n");
    for (int second = 0; second < 5; second++) {
        loop_second(&f);
    }
    wait_for_clients(&f, 0);
    loop_end(&f);
}

TEST(a_subscriber_that_does_not_read_is_closed_by_the_limits_of_its_class) {
    struct loop_server f;
    loop_begin(&f, "client-output-buffer-limit pubsub 100000 0 0\n");
    int ann = loop_connect(&f);
    int bob = loop_connect(&f);
    loop_send(ann, "SUBSCRIBE a\r\n");
    loop_expect(&f, ann, SUBSCRIBED);
    struct text request = {.at = NULL};
    text_format(&request, "*3\r\n$7\r\nPUBLISH\r\n$1\r\na\r\n$50000\r\n%050000d\r\n", 0);
    for (int i = 0; i < 1000 && f.server->session_count == 2; i++) {
        loop_send_all(&f, bob, request.at, request.size);
        loop_expect_prefix(&f, bob, ":");
    }
    wait_for_clients(&f, 1);
    assert_int_equal(f.server->stats.unexpected_closed_output, 1);
    loop_send(bob, "PUBLISH a x\r\n");
    loop_expect(&f, bob, ":0\r\n");
    text_free(&request);
    loop_end(&f);
}

TEST(a_subscriber_may_close_between_a_message_and_its_write) {
    struct loop_server f;
    loop_begin(&f, NULL);
    int ann = loop_connect(&f);
    int bob = loop_connect(&f);
    loop_send(ann, "SUBSCRIBE a\r\n");
    loop_expect(&f, ann, SUBSCRIBED);
    loop_close(&f, ann);
    loop_send(bob, "PUBLISH a x\r\nCLIENT KILL TYPE pubsub\r\nPUBLISH a x\r\n");
    wait_for_clients(&f, 1);
    loop_expect_prefix(&f, bob, ":");
    loop_end(&f);
}

TEST_MAIN(NULL, NULL)
