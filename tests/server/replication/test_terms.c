/* What a new term does to clients: of a server with sync-replicas on a loop that the test turns, whose
 * replicas are connections of the test. They say what replicas say, and acknowledge when the test lets
 * them. */
#include "server/durability/file_format.h"
#include "server/replication/quorum.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/replication/replication.h"
#include "server/replication/wire.h"
#include "tests/support/loop_server.h"
#include "tests/support/test.h"
#include "tests/support/wire.h"

#define SETTINGS "appendonly yes\nsync-replicas 1\n"
#define NOTHING  "0000000000000000000000000000000000000000"

static struct loop_server f;

static struct sync *sync_state(void) {
    return &f.server->replication.sync;
}

static uint64_t last_group(void) {
    return persistence_last_group(f.persistence);
}

/* Turn until the sync state is this. */
static void wait_for_state(enum sync_state state) {
    for (struct loop_wait wait = {0};
         sync_state()->state != state && loop_turn_and_wait(&f, &wait);) {}
    assert_int_equal(sync_state()->state, state);
}

enum lost { KEPT, LOST, RELEASED };

/* What this node says of itself: it has voted for this, and its history goes so far. */
static void present_as(int replica, unsigned node, const char *voted, const char *id,
                       uint64_t group, enum lost lost) {
    char text[256];
    snprintf(text, sizeof text, "REPLCONF PRESENT %016x %s %s %" PRIu64 " %d\r\n", node, voted,
             group == 0 ? NOTHING : id, group, lost);
    loop_send(replica, text);
}

/* Node 1 has what is here, up to this group. */
static void present(int replica, const char *voted, uint64_t group) {
    present_as(replica, 1, voted, f.server->replication.id, group, KEPT);
}

static int connect_replica(void) {
    int replica = loop_connect(&f);
    loop_ask(&f, replica, "REPLCONF listening-port 7001\r\n", "+OK\r\n");
    return replica;
}

/* The closed server's own vote is on disk. */
static void wait_for_own_vote(void) {
    struct loop_wait wait = {0};
    while (term_compare(&sync_state()->voted, &sync_state()->term) != 0) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
}

/* It votes, with a history of this id up to this group. */
static int vote_with(unsigned node, const char *id, uint64_t group, enum lost lost) {
    int replica = connect_replica();
    present_as(replica, node, NOTHING, id, group, lost);
    loop_expect_prefix(&f, replica, "+PREPARE ");
    wait_for_own_vote();
    present_as(replica, node, sync_state()->term.text, id, group, lost);
    loop_expect(&f, replica, "+CLOSED\r\n");
    return replica;
}

/* Nodes that have nothing, as all: they begin together. */
static void vote_as(unsigned node) {
    (void)vote_with(node, NOTHING, 0, LOST);
}

/* It follows the open server, and has all that is there. */
static int follow(void) {
    char text[128];
    int replica = connect_replica();
    present(replica, sync_state()->term.text, last_group());
    loop_expect_prefix(&f, replica, "+OPEN ");
    snprintf(text, sizeof text, "LB.SYNC %s %" PRIu64 "\r\n", f.server->replication.id,
             last_group() + 1);
    loop_send(replica, text);
    loop_expect_prefix(&f, replica, "+CONTINUE ");
    return replica;
}

/* It has this group, and answers a probe that was sent just now. */
static void acknowledge(int replica, uint64_t group) {
    char text[128];
    snprintf(text, sizeof text,
             "REPLCONF ACK %" PRIu64 " FSYNC 0 PROBE %" PRId64 " %" PRIu64 "\r\n", group,
             f.server->clock.monotonic_ms, group);
    loop_send(replica, text);
    loop_turn_some(&f);
}

/* Somebody has voted for a term above this server's. */
static void present_greater(void) {
    struct term greater;
    int other = connect_replica();
    assert_true(term_next(&sync_state()->term, 1, 1, &greater));
    present(other, greater.text, 1);
    loop_expect_prefix(&f, other, "+PREPARE ");
    assert_true(sync_is_closed(sync_state()));
    loop_close(&f, other);
}

static int begin(const char *settings, unsigned nodes) {
    char text[256];
    snprintf(text, sizeof text, SETTINGS "replication-nodes %u\n%s", nodes, settings);
    loop_begin_kept(&f, text);
    loop_replicate(&f);
    wait_for_state(SYNC_CLOSED);
    wait_for_own_vote();
    for (unsigned node = 1; node < nodes; node++) {
        vote_as(node);
    }
    wait_for_state(SYNC_OPEN);
    return 0;
}

FIXTURE(set_up) {
    return begin("sync-replicas-lease 0\n", 2);
}

FIXTURE(set_up_lease) {
    return begin("sync-replicas-lease 1000\n", 2);
}

FIXTURE(set_up_three) {
    return begin("sync-replicas-lease 0\n", 3);
}

/* It has boards, and no file of votes. */
FIXTURE(set_up_released) {
    loop_begin_kept(&f, SETTINGS "replication-nodes 3\nsync-replicas-lease 0\n");
    int ann = loop_connect(&f);
    loop_ask(&f, ann, "ZADD k 1 m\r\n", ":1\r\n");
    loop_close(&f, ann);
    loop_replicate(&f);
    wait_for_state(SYNC_CLOSED);
    wait_for_own_vote();
    return 0;
}

FIXTURE(tear_down) {
    loop_end(&f);
    return 0;
}

#define IN_FIXTURE(name)  TEST_WITH(name, set_up, tear_down)
#define IN_LEASE(name)    TEST_WITH(name, set_up_lease, tear_down)
#define IN_THREE(name)    TEST_WITH(name, set_up_three, tear_down)
#define IN_RELEASED(name) TEST_WITH(name, set_up_released, tear_down)

IN_FIXTURE(an_answer_leaves_when_a_replica_has_the_write) {
    int replica = follow();
    int ann = loop_connect(&f);
    loop_send(ann, "ZADD k 1 m\r\n");
    loop_expect_nothing(&f, ann);
    acknowledge(replica, last_group());
    loop_expect(&f, ann, ":1\r\n");
}

/* The clock of the server is that which goes on while the machine is suspended: the loop does not turn. */
IN_LEASE(a_machine_that_was_suspended_wakes_up_without_a_lease) {
    int replica = follow();
    int ann = loop_connect(&f);
    acknowledge(replica, last_group());
    loop_ask(&f, ann, "ZSCORE k m\r\n", "$-1\r\n");
    f.harness->wall_us += 1000000;
    loop_send(ann, "ZSCORE k m\r\n");
    loop_expect_nothing(&f, ann);
    acknowledge(replica, last_group());
    loop_expect(&f, ann, "$-1\r\n");
}

/* Between the greater term and the order to follow, the server is no open master any more. */
IN_FIXTURE(no_answer_outlives_the_term_it_waits_in) {
    (void)follow();
    int ann = loop_connect(&f);
    int bob = loop_connect(&f);
    loop_send(ann, "ZADD k 1 m\r\n");
    loop_expect_nothing(&f, ann);
    loop_send(bob, "ZSCORE k m\r\n");
    loop_expect_nothing(&f, bob);
    present_greater();
    int kim = loop_connect(&f);
    loop_ask(&f, kim, "SLAVEOF 127.0.0.1 1\r\n", "+OK\r\n");
    loop_expect_end(&f, ann);
    loop_expect_end(&f, bob);
    loop_ask(&f, kim, "PING\r\n", "+PONG\r\n");
}

IN_FIXTURE(nor_does_the_answer_of_the_request_that_ends_the_term) {
    (void)follow();
    int ann = loop_connect(&f);
    loop_ask(&f, ann, "MULTI\r\n", "+OK\r\n");
    loop_send(ann, "ZADD k 1 m\r\nSLAVEOF 127.0.0.1 1\r\nEXEC\r\n");
    loop_expect_end(&f, ann);
}

/* The groups before the start mark may still be replaced by another history, however many have them. */
IN_FIXTURE(what_was_written_before_the_start_mark_is_safe_with_the_mark_alone) {
    (void)follow();
    int ann = loop_connect(&f);
    loop_send(ann, "ZADD k 1 m\r\n");
    loop_expect_nothing(&f, ann);
    uint64_t written = last_group();
    present_greater();
    wait_for_state(SYNC_OPEN); /* of two servers one is enough */
    assert_true(last_group() > written);
    int replica = follow();
    acknowledge(replica, written);
    assert_int_equal(sync_state()->safe_group, 0);
    loop_expect_end(&f, ann);
    acknowledge(replica, last_group());
    assert_int_equal(sync_state()->safe_group, last_group());
}

#define UNBLOCKED                                                                                  \
    "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> "         \
    "replica?)\r\n"

IN_FIXTURE(who_waits_for_a_key_or_replicas_is_told_that_the_term_is_over) {
    (void)follow();
    int ann = loop_connect(&f);
    int bob = loop_connect(&f);
    loop_send(ann, "BZPOPMIN k 0\r\n");
    loop_send(bob, "WAIT 2 0\r\n");
    loop_turn_some(&f);
    assert_int_equal(f.server->waits.client_count, 2);
    present_greater();
    loop_expect(&f, ann, UNBLOCKED);
    loop_expect_end(&f, ann);
    loop_expect(&f, bob, UNBLOCKED);
    loop_expect_end(&f, bob);
}

/* What it has erased may come back with the next term, and so may the order itself. */
IN_FIXTURE(an_order_ends_with_the_term_and_resumes_with_the_next) {
    enum { BOARDS = 20000 }; /* many more than a tick erases from */
    struct loop_wait wait = {0};
    TEXT(request);
    (void)follow();
    int ann = loop_connect(&f);
    int bob = loop_connect(&f);
    int kim = loop_connect(&f);
    for (int i = 0; i < BOARDS; i++) {
        text_format(&request, "ZADD b%d 1 x\r\n", i);
    }
    loop_send_all(&f, bob, request.at, request.size);
    while (registry_count(f.server->registry, 0) < BOARDS) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
    loop_send(ann, "LB.FORGET x\r\n");
    while (registry_count(f.server->registry, 0) == BOARDS) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
    loop_ask(&f, kim, "SLAVEOF 127.0.0.1 1\r\n", "+OK\r\n");
    loop_expect(&f, ann, UNBLOCKED);
    loop_expect_end(&f, ann);
    assert_in_range(registry_count(f.server->registry, 0), 1, BOARDS - 1);
    loop_ask(&f, kim, "SLAVEOF NO ONE\r\n", "+OK\r\n");
    wait_for_state(SYNC_OPEN);
    while (registry_count(f.server->registry, 0) > 0) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
}

/* ---- pulling ---- */

static int listen_anywhere(uint16_t *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return listener;
}

/* The server connects, and is answered as by who has a history that is not known here: a copy begins. */
static int answer_pull(int listener, const struct term *id) {
    char text[1024];
    struct loop_wait wait = {0};
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) < 0) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
    for (;;) {
        assert_true(loop_turn_and_wait(&f, &wait));
        ssize_t size = recv(fd, text, sizeof text - 1, 0);
        assert_true(size > 0 || (size < 0 && errno == EAGAIN));
        text[size > 0 ? size : 0] = '\0';
        if (strstr(text, "LB.SYNC") != NULL) {
            break;
        }
        bool is_version = strstr(text, "leaderboard") != NULL;
        snprintf(text, sizeof text, is_version ? "+LEADERBOARD %d\r\n" : "+OK\r\n", FILE_FORMAT);
        if (size > 0) {
            loop_send(fd, text);
        }
    }
    snprintf(text, sizeof text, "+FULL %s\r\n", id->text);
    loop_send(fd, text);
    return fd;
}

/* Whoever has voted for a greater term has more than is here: the server pulls. */
static int begin_pull(struct term *greater) {
    uint16_t port;
    char text[64];
    int listener = listen_anywhere(&port);
    int other = loop_connect(&f);
    snprintf(text, sizeof text, "REPLCONF listening-port %u ip-address 127.0.0.1\r\n", port);
    loop_ask(&f, other, text, "+OK\r\n");
    assert_true(term_next(&sync_state()->term, 1, 1, greater));
    present_as(other, 1, greater->text, greater->text, 100, KEPT);
    loop_expect_prefix(&f, other, "+PREPARE ");
    wait_for_own_vote();
    present_as(other, 1, sync_state()->term.text, greater->text, 100, KEPT);
    wait_for_state(SYNC_PULLING);
    int fd = answer_pull(listener, greater);
    close(listener);
    return fd;
}

/* What comes is no copy, which shows only at its end. */
static void send_piece(int fd, size_t already) {
    static const char noise[1024];
    struct buffer out;
    struct loop_wait wait = {0};
    buffer_init(&out, 0);
    wire_put_piece(&out, noise, sizeof noise);
    loop_send_bytes(fd, out.at, out.size);
    buffer_deinit(&out);
    while (f.server->replication.copy_read_size < already + sizeof noise) {
        assert_true(loop_turn_and_wait(&f, &wait));
    }
    loop_turn_some(&f);
}

IN_THREE(a_pull_goes_on_while_it_gets_further_and_is_given_up_when_it_does_not) {
    enum { PIECES = 4, PIECE = 1024, SECOND_US = 1000000 };
    struct term greater;
    int fd = begin_pull(&greater);
    for (size_t i = 0; i < PIECES; i++) {
        f.harness->wall_us += 4 * SECOND_US;
        send_piece(fd, i * PIECE);
        assert_int_equal(sync_state()->state, SYNC_PULLING);
    }
    f.harness->wall_us += 4 * SECOND_US;
    loop_turn_some(&f);
    assert_int_equal(sync_state()->state, SYNC_PULLING);
    f.harness->wall_us += SECOND_US;
    wait_for_state(SYNC_CLOSED);
    close(fd);
}

/* ---- without a promise ---- */

IN_RELEASED(who_has_boards_and_no_promise_opens_when_all_have_voted) {
    int ann = loop_connect(&f);
    loop_ask(&f, ann, "PING\r\n", "+PONG\r\n");
    assert_int_equal(sync_state()->votes_needed, 2);
    vote_with(1, NOTHING, last_group(), RELEASED); /* nobody has followed yet: there is no id */
    loop_turn_some(&f);
    assert_int_equal(sync_state()->state, SYNC_CLOSED);
    assert_int_equal(sync_state()->vote_count, 1);
    vote_with(2, NOTHING, 0, LOST);
    wait_for_state(SYNC_OPEN);
    assert_false(sync_state()->has_lost_durability);
    assert_int_equal(sync_state()->votes_needed, 1);
}

/* Its promise was removed once more, or it has an empty directory: another number, and the third one is still to come. */
IN_RELEASED(who_comes_again_as_another_node_does_not_count_for_two) {
    loop_close(&f, vote_with(1, f.server->replication.id, last_group(), RELEASED));
    loop_close(&f, vote_with(2, f.server->replication.id, last_group(), RELEASED));
    vote_with(3, NOTHING, 0, LOST);
    loop_turn_some(&f);
    assert_int_equal(sync_state()->state, SYNC_CLOSED);
    assert_int_equal(sync_state()->vote_count, 1);
    vote_with(4, f.server->replication.id, last_group() + 1, RELEASED);
    wait_for_state(SYNC_PULLING);
}

IN_RELEASED(nor_does_it_then_without_the_longest_history) {
    vote_with(1, f.server->replication.id, last_group(), RELEASED);
    vote_with(2, f.server->replication.id, last_group() + 1, RELEASED);
    wait_for_state(SYNC_PULLING);
}

/* Its term is to be above all that is there, or what it writes counts for less than what others have. */
IN_RELEASED(its_term_is_above_the_histories_of_those_that_forgot_their_votes) {
    struct term greater;
    int other = connect_replica();
    assert_true(term_next(&sync_state()->term, 1, 1, &greater));
    present_as(other, 1, NOTHING, greater.text, 7, RELEASED);
    loop_expect_prefix(&f, other, "+PREPARE ");
    assert_true(term_compare(&sync_state()->term, &greater) > 0);
}

/* Also where it began with its promise. */
IN_THREE(who_was_released_does_not_count_beside_a_promise) {
    struct term greater;
    int other = connect_replica();
    assert_true(term_next(&sync_state()->term, 1, 1, &greater));
    present_as(other, 1, greater.text, greater.text, 100, RELEASED);
    loop_expect_prefix(&f, other, "+PREPARE ");
    wait_for_own_vote();
    present_as(other, 1, sync_state()->term.text, greater.text, 100, RELEASED);
    loop_expect(&f, other, "+CLOSED\r\n");
    loop_turn_some(&f);
    assert_int_equal(sync_state()->state, SYNC_CLOSED);
    vote_with(2, NOTHING, 0, LOST);
    wait_for_state(SYNC_PULLING); /* it may have what nobody else has */
}
