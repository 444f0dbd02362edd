/* What replication does to clients on the loop: WAIT, FAILOVER's pause, and clients that wait when their
 * server becomes a replica. Replicas are connections that the tests put into the list. */
#include "codec/memory.h"
#include "server/commands/lb/board_task.h"
#include "server/loop/connection.h"
#include "server/replication/replication.h"
#include "tests/support/loop_server.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

static struct replication *replication_of(struct loop_server *f) {
    return &f->server->replication;
}

/* A connection that has become an online replica. */
static int connect_replica(struct loop_server *f, const char *port) {
    int client = loop_connect(f);
    loop_send(client, "REPLCONF listening-port ");
    loop_send(client, port);
    loop_ask(f, client, "\r\n", "+OK\r\n");
    replication_add_replica(f->server, f->server->sessions.last->replica, REPLICA_ONLINE);
    return client;
}

/* The last connected client's session has written up to this group. */
static void note_written(struct loop_server *f, uint64_t group) {
    f->server->sessions.last->changed_group = group;
    replication_of(f)->group = group;
}

LOOP_SERVER_TEST(wait_is_answered_when_enough_replicas_have_acknowledged, NULL) {
    int first = connect_replica(f, "7001");
    int second = connect_replica(f, "7002");
    int ann = loop_connect(f);
    loop_turn_some(f);
    note_written(f, 5);
    loop_send(ann, "WAIT 2 0\r\nPING\r\n");
    loop_turn_some(f);
    assert_int_equal(f->server->waits.client_count, 1);
    loop_send(first, "REPLCONF ACK 5\r\n");
    loop_expect_nothing(f, ann);
    loop_send(second, "REPLCONF ACK 4\r\n");
    loop_expect_nothing(f, ann);
    loop_send(second, "REPLCONF ACK 6\r\n");
    loop_expect(f, ann, ":2\r\n+PONG\r\n");
    loop_expect_nothing(f, first);
    assert_int_equal(f->server->waits.client_count, 0);
    assert_int_equal(f->server->waits.replica_waiter_count, 0);
}

LOOP_SERVER_TEST(wait_gives_up_with_the_number_it_has, NULL) {
    int first = connect_replica(f, "7001");
    int ann = loop_connect(f);
    loop_turn_some(f);
    note_written(f, 5);
    loop_send(first, "REPLCONF ACK 5\r\n");
    loop_turn_some(f);
    loop_send(ann, "WAIT 2 1500\r\n");
    loop_turn_some(f);
    loop_second(f);
    loop_expect_nothing(f, ann);
    loop_second(f);
    loop_expect(f, ann, ":1\r\n");
}

/* The numbers of groups mean nothing any more. */
LOOP_SERVER_TEST(wait_counts_nobody_for_what_was_written_before_the_role_changed, NULL) {
    int first = connect_replica(f, "7001");
    int ann = loop_connect(f);
    loop_turn_some(f);
    note_written(f, 5);
    loop_send(first, "REPLCONF ACK 7\r\n");
    loop_turn_some(f);
    loop_ask(f, ann, "WAIT 1 0\r\n", ":1\r\n");
    loop_ask(f, ann, "REPLICAOF 127.0.0.1 7001\r\nREPLICAOF NO ONE\r\nWAIT 1 0\r\n",
             "+OK\r\n+OK\r\n:0\r\n");
}

LOOP_SERVER_TEST(client_unblock_ends_a_wait, NULL) {
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    loop_send(ann, "WAIT 1 0\r\n");
    loop_turn_some(f);
    loop_ask(f, bob, "CLIENT UNBLOCK 1\r\n", ":1\r\n");
    loop_expect(f, ann, ":0\r\n");
    loop_send(ann, "WAIT 1 0\r\n");
    loop_turn_some(f);
    loop_ask(f, bob, "CLIENT UNBLOCK 1 ERROR\r\n", ":1\r\n");
    loop_expect(f, ann, "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
}

LOOP_SERVER_TEST(a_client_may_leave_while_it_waits_for_replicas, NULL) {
    int ann = loop_connect(f);
    loop_send(ann, "WAIT 1 0\r\n");
    loop_turn_some(f);
    loop_close(f, ann);
    loop_wait_clients(f, 0);
    assert_int_equal(f->server->waits.replica_waiter_count, 0);
}

#define UNBLOCKED                                                                                  \
    "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> "         \
    "replica?)\r\n"

LOOP_SERVER_TEST(who_waits_when_the_server_becomes_a_replica_is_told_and_closed, NULL) {
    enum { WAITERS = LOOP_CLIENTS_MAX - 2 };
    int waiters[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = loop_connect(f);
        loop_send(waiters[i], i % 2 == 0 ? "BZPOPMIN a 0\r\n" : "WAIT 1 0\r\n");
    }
    int bob = loop_connect(f);
    loop_turn_some(f);
    assert_int_equal(f->server->waits.client_count, WAITERS);
    loop_ask(f, bob, "SLAVEOF 127.0.0.1 7001\r\n", "+OK\r\n");
    for (int i = 0; i < WAITERS; i++) {
        loop_expect(f, waiters[i], UNBLOCKED);
        loop_expect_end(f, waiters[i]);
    }
    assert_int_equal(f->server->waits.client_count, 0);
    loop_ask(f, bob, "PING\r\n", "+PONG\r\n");
}

LOOP_SERVER_TEST(
    an_order_stays_when_its_server_becomes_a_replica_and_resumes_when_it_is_master_again, NULL) {
    enum { BOARDS = 20000 }; /* many more than a tick erases from */
    struct loop_wait wait = {0};
    TEXT(request);
    TEXT(reply);
    f->server->jobs.resume = board_task_resume;
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    for (int i = 0; i < BOARDS; i++) {
        text_format(&request, "ZADD b%d 1 x\r\n", i);
        text_format(&reply, ":1\r\n");
    }
    loop_send_all(f, bob, request.at, request.size);
    loop_expect(f, bob, reply.at);
    loop_send(ann, "LB.FORGET x\r\n");
    while (registry_count(f->server->registry, 0) == BOARDS) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
    loop_ask(f, bob, "SLAVEOF 127.0.0.1 7001\r\n", "+OK\r\n");
    loop_expect(f, ann, UNBLOCKED);
    loop_expect_end(f, ann);
    assert_int_equal(f->server->jobs.count, 0);
    uint32_t left = registry_count(f->server->registry, 0);
    assert_in_range(left, 1, BOARDS - 1);
    loop_turn_some(f);
    assert_int_equal(registry_count(f->server->registry, 0), left); /* a replica erases nothing */
    loop_ask(f, bob, "SLAVEOF NO ONE\r\n", "+OK\r\n");
    while (registry_count(f->server->registry, 0) > 0) {
        assert_true(loop_turn_and_wait(f, &wait));
    }
}

LOOP_SERVER_TEST(writes_wait_during_a_failover_and_reads_do_not, NULL) {
    int replica = connect_replica(f, "7001");
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    replication_of(f)->group = 5;
    loop_ask(f, ann, "FAILOVER TIMEOUT 2500\r\n", "+OK\r\n");
    loop_ask(f, bob, "ZCARD a\r\nZADD a 1 x\r\nZCARD a\r\n", ":0\r\n");
    loop_expect_nothing(f, bob);
    for (int second = 0; second < 3; second++) {
        loop_second(f);
    }
    loop_expect(f, bob, ":1\r\n:1\r\n"); /* nobody caught up: a master still */
    loop_ask(f, ann, "FAILOVER\r\n", "+OK\r\n");
    loop_send(bob, "ZADD a 1 y\r\n");
    loop_expect_nothing(f, bob);
    loop_send(replica, "REPLCONF ACK 5\r\n");
    loop_turn_some(f);
    assert_int_equal(replication_of(f)->failover.state, REPLICATION_FAILOVER_SHIFTS);
    loop_expect_nothing(f, bob); /* until the target has agreed */
    replication_failover_end(f->server, true);
    loop_expect(f, bob, "-READONLY You can't write against a read only replica.\r\n");
}

LOOP_SERVER_TEST(who_waits_for_a_board_that_opens_is_served_behind_the_failover, NULL) {
    (void)connect_replica(f, "7001");
    int ann = loop_connect(f);
    int bob = loop_connect(f);
    replication_of(f)->group = 5;
    loop_send(ann, "ZADD b 1 x\r\nLB.ALTER b OPENS 1767225602000\r\n"); /* in two seconds */
    loop_expect(f, ann, ":1\r\n+OK\r\n");
    loop_send(bob, "BZPOPMIN a 0\r\n");
    loop_turn_some(f);
    loop_ask(f, ann, "RENAME b a\r\n", "+OK\r\n");
    loop_ask(f, ann, "FAILOVER TIMEOUT 5000\r\n", "+OK\r\n");
    for (int second = 0; second < 4; second++) {
        loop_second(f);
        loop_turn_some(f);
    }
    loop_expect_nothing(f, bob);
    loop_ask(f, ann, "FAILOVER ABORT\r\n", "+OK\r\n");
    loop_expect(f, bob, "*3\r\n$1\r\na\r\n$1\r\nx\r\n$1\r\n1\r\n");
}

LOOP_SERVER_TEST(acks_are_taken_while_all_clients_are_paused, "timeout 2\n") {
    int replica = connect_replica(f, "7001");
    int ann = loop_connect(f);
    loop_ask(f, ann, "CLIENT PAUSE 100000 ALL\r\n", "+OK\r\n");
    loop_send(replica, "REPLCONF ACK 7\r\n");
    loop_turn_some(f);
    assert_int_equal(replication_of(f)->replicas->ack_group, 7);
    for (int second = 0; second < 5; second++) {
        loop_second(f);
    }
    loop_expect_nothing(f, replica); /* nor does its silence close it */
}

static bool is_never_drained(void *others) {
    (void)others;
    return false;
}

/* Answers wait for what replicas say. What others send behind the order to stop is not run. */
LOOP_SERVER_TEST(replicas_are_heard_while_the_server_drains_and_others_are_not, NULL) {
    int replica = connect_replica(f, "7001");
    int ann = loop_connect(f);
    loop_ask(f, ann, "ZADD a 1 x\r\n", ":1\r\n");
    f->tick.drain_others = is_never_drained;
    tick_shutdown(&f->tick, false);
    loop_turn_some(f);
    loop_send(ann, "ZADD a 1 y\r\n");
    loop_send(replica, "REPLCONF ACK 7\r\n");
    loop_turn_some(f);
    assert_int_equal(replication_of(f)->replicas->ack_group, 7);
    loop_send(replica, "REPLCONF ACK 8\r\n");
    loop_turn_some(f);
    assert_int_equal(replication_of(f)->replicas->ack_group, 8);
    loop_expect_nothing(f, ann);
    const struct registry_key *board = registry_find(f->server->registry, 0, BYTES("a"), 0);
    assert_int_equal(board_count(&board->board), 1);
}

LOOP_SERVER_TEST(a_replica_waits_for_its_master_to_expire_keys, NULL) {
    int ann = loop_connect(f);
    loop_ask(f, ann, "ZADD a 1 x\r\nPEXPIRE a 1500\r\nREPLICAOF 127.0.0.1 7001\r\n",
             ":1\r\n:1\r\n+OK\r\n");
    for (int second = 0; second < 3; second++) {
        loop_second(f);
        loop_turn_some(f);
    }
    assert_int_equal(registry_totals(f->server->registry)->expired, 0);
    loop_ask(f, ann, "REPLICAOF NO ONE\r\nEXISTS a\r\n", "+OK\r\n:0\r\n");
}

/* What could not be made leaves no handle in the loop, which would still know it when its memory is free. */
TEST(a_replicator_for_which_there_is_no_memory_leaves_nothing_in_the_loop) {
    struct loop_server f;
    uv_loop_t loop;
    struct replicator *replicator = NULL;
    loop_begin_kept(&f, "");
    assert_int_equal(uv_loop_init(&loop), 0);
    uint64_t nth = 1;
    for (; replicator == NULL; nth++) {
        memory_fail_at(nth);
        replicator = replicator_create(f.server, &loop, NULL, NULL);
        memory_fail_at(0);
        assert_true(replicator != NULL || uv_loop_close(&loop) == 0);
        assert_true(replicator != NULL || uv_loop_init(&loop) == 0);
    }
    assert_true(nth > 3);
    replicator_stop(replicator);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    replicator_destroy(replicator);
    loop_end(&f);
}
