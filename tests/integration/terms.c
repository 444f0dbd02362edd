/* Masters that close and open again (sync-replicas), as real servers: what clients that wait are told, how much
 * a promoted one pulls, and what HTTP shows meanwhile. tests/server/replication/test_terms.c has what needs no
 * second server. */
#include "tests/support/test.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/nodes.h"
#include "tests/support/random.h"

enum {
    WAIT_LIMIT_MS = 60000,
    NOBODY = 1, /* a port that nobody listens on */
    COPIED = 200000,
    SLOWLY_COPIED = 80000,
    PULL_MS = 5000, /* of server/replication/quorum.c */
    RELAY_PIECE = 8192,
    RELAY_REST_MS = 50,
};

static pid_t relay;

#define SECOND REPLICA

static int tear_down(void **state) {
    if (relay > 0) {
        kill(relay, SIGKILL);
        waitpid(relay, NULL, 0);
    }
    relay = 0;
    return nodes_tear_down(state);
}

#define IN_FIXTURE(name) TEST_WITH(name, nodes_set_up, tear_down)

/* ---- three servers ---- */

/* It begins as a replica of nobody. further: words, ended by NULL. */
static void start(struct node *node, const char *const *further) {
    const char *words[20] = {"--appendonly",        "yes",        "--sync-replicas",       "1",
                             "--replication-nodes", "3",          "--sync-replicas-lease", "300",
                             "--replicaof",         "127.0.0.1 1"};
    for (size_t count = 10; *further != NULL; further++) {
        words[count++] = *further;
    }
    node_start(node, words);
}

static const char *const nothing_further[] = {NULL};

static void wait_open(struct node *node) {
    WAIT_UNTIL(strstr(wire_ask(&node->wire, "INFO replication"), "sync_state:open") != NULL);
}

static void promote(struct node *node) {
    wire_check(&node->wire, "SLAVEOF NO ONE", "OK");
}

static void begin_three(const char *const *of_master, const char *const *of_second) {
    start(MASTER, of_master);
    start(SECOND, of_second);
    start(THIRD, nothing_further);
    promote(MASTER);
    node_follow(SECOND, MASTER);
    node_follow(THIRD, MASTER);
    wait_open(MASTER);
    node_wait_up(SECOND);
    node_wait_up(THIRD);
    wire_check(&MASTER->wire, "ZADD first 1 m", ":1");
    node_wait_synced(SECOND, MASTER);
    /* Until they have acknowledged what they were filled with, their votes do not count, and a promoted one would
     * wait for ever. */
    wire_wait_info(&SECOND->wire, "sync_lost_durability", 0);
    wire_wait_info(&THIRD->wire, "sync_lost_durability", 0);
}

/* ---- clients that wait ---- */

/* Another server was open meanwhile, and comes back with what it has written. */
IN_FIXTURE(nobody_is_served_out_of_what_a_closed_master_pulls) {
    begin_three(nothing_further, nothing_further);
    WIRE(waiter, process_connect_tcp(&MASTER->server));
    wire_send_text(&waiter, "BZPOPMIN k 0\r\n");
    wire_wait_info(&MASTER->wire, "blocked_clients", 1);
    promote(SECOND);
    node_follow(THIRD, SECOND);
    wait_open(SECOND);
    wire_check(&SECOND->wire, "ZADD k 1 m", ":1");
    node_follow(SECOND, MASTER);
    assert_memory_equal(wire_reply(&waiter), "-UNBLOCKED ", 11);
    assert_true(wire_is_closed(&waiter, WAIT_LIMIT_MS));
    wait_open(MASTER);
    wire_check(&MASTER->wire, "ZRANGE k 0 -1", "[m]");
}

/* ---- a hand-over that is given up ---- */

/* Its replicas have never lost their links: they are to vote for its new term all the same. */
IN_FIXTURE(a_master_opens_again_when_its_failover_is_given_up) {
    begin_three(nothing_further, nothing_further);
    process_signal(&SECOND->server, SIGSTOP);
    wire_check(&MASTER->wire, formatted("FAILOVER TO 127.0.0.1 %u FORCE TIMEOUT 1", SECOND->port),
               "OK");
    WAIT_UNTIL(strstr(wire_ask(&MASTER->wire, "INFO replication"), ":failover-in-progress") !=
               NULL);
    wire_check(&MASTER->wire, "FAILOVER ABORT", "OK");
    wait_open(MASTER); /* the third votes */
    process_signal(&SECOND->server, SIGCONT);
    wire_check(&MASTER->wire, "ZADD first 2 m", ":0");
    node_wait_up(SECOND);
    node_wait_up(THIRD);
}

/* ---- pulling ---- */

/* Carries connections to this port, a piece at a time. */
static void run_relay(int listener, uint16_t port) {
    char piece[RELAY_PIECE];
    for (;;) {
        int near = accept(listener, NULL, NULL);
        int far = process_connect_address("127.0.0.1", port);
        struct pollfd ends[] = {{.fd = near, .events = POLLIN}, {.fd = far, .events = POLLIN}};
        bool is_open = near >= 0 && far >= 0;
        while (is_open && poll(ends, 2, -1) > 0) {
            for (int i = 0; i < 2; i++) {
                ssize_t size = ends[i].revents != 0 ? recv(ends[i].fd, piece, sizeof piece, 0) : -1;
                is_open &= ends[i].revents == 0 ||
                           (size > 0 && send(ends[1 - i].fd, piece, (size_t)size, 0) == size);
                if (i == 1 && size > 0) {
                    process_sleep_ms(RELAY_REST_MS);
                }
            }
        }
        close(near);
        close(far);
    }
}

/* What no compression makes shorter. */
static void fill_with_noise(struct node *node, int count) {
    struct random numbers = random_begin("terms");
    TEXT(text);
    for (int i = 0; i < count; i++) {
        text_format(&text, "ZADD all %d %016llx%016llx\r\n", i,
                    (unsigned long long)random_next(&numbers),
                    (unsigned long long)random_next(&numbers));
    }
    wire_send(&node->wire, text.at, text.size);
    for (int i = 0; i < count; i++) {
        wire_expect(&node->wire, ":1\r\n");
    }
}

/* The second server comes back, is promoted, and has to pull of the old master what it has missed. */
static void promote_who_was_away(const char *const *of_second) {
    start(SECOND, of_second);
    promote(SECOND);
    node_follow(MASTER, SECOND);
    wait_open(SECOND);
}

IN_FIXTURE(a_pull_goes_on_for_as_long_as_it_advances) {
    uint16_t port;
    int listener = node_listen(&port);
    const char *port_text = formatted("%u", port);
    const char *const announced[] = {"--replica-announce-port", port_text, "--repl-backlog-size",
                                     "16kb", NULL};
    begin_three(announced, nothing_further);
    relay = fork();
    assert_true(relay >= 0);
    if (relay == 0) {
        run_relay(listener, MASTER->port);
    }
    close(listener);
    node_end(SECOND, SIGTERM);
    fill_with_noise(MASTER, SLOWLY_COPIED);
    wire_check(&MASTER->wire, "SAVE", "OK"); /* what was missed is not in the journal any more */
    int64_t began_ms = process_now_ms();
    promote_who_was_away(nothing_further);
    assert_true(process_now_ms() - began_ms > PULL_MS);
    assert_int_equal(wire_ask_integer(&SECOND->wire, "ZCARD all"), SLOWLY_COPIED);
}

IN_FIXTURE(what_is_too_long_to_be_pulled_comes_as_a_copy) {
    const char *const limited[] = {"--client-query-buffer-limit", "1mb", NULL};
    begin_three(nothing_further, limited);
    node_fill(MASTER, "all", COPIED);
    node_wait_synced(SECOND, MASTER);
    node_end(SECOND, SIGTERM);
    assert_int_equal(wire_ask_integer(&MASTER->wire, "ZUNIONSTORE sum 1 all"), COPIED);
    promote_who_was_away(limited);
    assert_int_equal(wire_ask_integer(&SECOND->wire, "ZCARD sum"), COPIED);
}

/* ---- HTTP ---- */

IN_FIXTURE(http_shows_nothing_that_no_replica_has) {
    uint16_t port;
    int listener = node_listen(&port);
    close(listener);
    const char *port_text = formatted("%u", port);
    const char *const with_page[] = {"--web-port", port_text, NULL};
    begin_three(with_page, nothing_further);
    process_signal(&SECOND->server, SIGSTOP);
    process_signal(&THIRD->server, SIGSTOP);
    WIRE(writer, process_connect_tcp(&MASTER->server));
    int64_t group = wire_info(&MASTER->wire, "master_repl_offset");
    wire_send_text(&writer, "ZADD k 1 unseen\r\n");
    wire_wait_info_range(&MASTER->wire, "master_repl_offset", group + 1, INT64_MAX);
    WIRE(page, process_connect_address("127.0.0.1", port));
    wire_send_text(&page, "GET /api/v1/boards/k/page HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    assert_true(wire_is_silent(&page, 500));
    assert_true(wire_is_silent(&writer, 1));
    process_signal(&SECOND->server, SIGCONT);
    process_signal(&THIRD->server, SIGCONT);
    wire_expect(&writer, ":1\r\n");
    wire_expect(&page, "HTTP/1.1 200 OK\r\n");
}
