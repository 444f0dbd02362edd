/* A server without memory, now and then, that takes part in sync-replicas: each allocation that it makes
 * from its first turn on fails in turn. It follows a real server, is promoted, and is followed. Whatever
 * could not be done is done later: nothing ends, nothing is lost or leaked, and both are equal at the end. */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/loop/connection.h"
#include "tests/support/board_pair.h"
#include "tests/support/loop_server.h"
#include "tests/support/process.h"
#include "tests/support/random.h"

enum {
    LIMIT_MS = 60000,
    SECOND_MS = 200, /* real time for a second of the server inside */
    REPLY_MAX = 4096,
    STRIDE_SHORT = 6,
    STRIDE = 1,
    MEMBERS = 200, /* more than the small buffers hold */
};

/* One connection of the test, to the server with little memory or to the other. */
struct line {
    int fd; /* -1: to be opened */
    bool is_inside;
};

struct world {
    struct process other;
    struct loop_server inside;
    int listener;
    uint16_t port; /* of `inside` */
    int64_t second_ms;
    struct line to_inside, to_other;
};

/* ---- turning ---- */

static void accept_all(struct world *world) {
    for (;;) {
        struct accepted accepted = {.is_unix_socket = false};
        socklen_t size = sizeof accepted.peer;
        accepted.fd = accept4(world->listener, (struct sockaddr *)&accepted.peer, &size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted.fd < 0) {
            return;
        }
        accepted.local = accepted.peer;
        if (!connection_open(&world->inside.tick, &accepted)) {
            close(accepted.fd);
        }
    }
}

static void turn(struct world *world) {
    accept_all(world);
    loop_turn(&world->inside);
    if (process_now_ms() - world->second_ms >= SECOND_MS) {
        world->second_ms = process_now_ms();
        loop_second(&world->inside);
    }
    usleep(100);
}

/* ---- asking ---- */

static void end_line(struct line *line) {
    if (line->fd >= 0) {
        close(line->fd);
    }
    line->fd = -1;
}

static void begin_line(struct world *world, struct line *line) {
    line->fd = line->is_inside ? process_connect_address("127.0.0.1", world->port)
                               : process_connect_unix(&world->other);
    assert_true(line->fd >= 0);
    assert_int_equal(fcntl(line->fd, F_SETFL, O_NONBLOCK), 0);
}

/* Valid until the next call; "": no answer came, and the connection is closed. end: how the
 * whole of it ends. */
static const char *ask(struct world *world, struct line *line, const char *command,
                       const char *end) {
    static char reply[1 << 16];
    size_t size = 0;
    int64_t give_up_at = process_now_ms() + LIMIT_MS;
    if (line->fd < 0) {
        begin_line(world, line);
    }
    (void)!send(line->fd, command, strlen(command), MSG_NOSIGNAL); /* it may be closed already */
    reply[0] = '\0';
    while (size < strlen(end) || strcmp(reply + size - strlen(end), end) != 0) {
        ssize_t part = recv(line->fd, reply + size, sizeof reply - 1 - size, 0);
        if (part == 0 || (part < 0 && errno != EAGAIN)) {
            end_line(line);
            return "";
        }
        size += part > 0 ? (size_t)part : 0;
        reply[size] = '\0';
        if (size > 0 && reply[0] == '-' && reply[size - 1] == '\n') {
            break;
        }
        if (process_now_ms() > give_up_at) {
            fail_msg("%s: no whole answer: %s", command, reply);
        }
        turn(world);
    }
    return reply;
}

/* What may be answered while something is still to be tried again. */
static bool is_passing(const char *reply) {
    static const char *const beginnings[] = {"-OOM ",      "-ERR out of memory", "-LOADING ",
                                             "-READONLY ", "-UNBLOCKED ",        "-MASTERDOWN ",
                                             "-MISCONF "};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (strncmp(reply, beginnings[i], strlen(beginnings[i])) == 0) {
            return true;
        }
    }
    return reply[0] == '\0';
}

/* Until it is answered so. */
static void insist(struct world *world, struct line *line, const char *command,
                   const char *beginning) {
    int64_t give_up_at = process_now_ms() + LIMIT_MS;
    for (;;) {
        const char *reply = ask(world, line, command, "\r\n");
        if (strncmp(reply, beginning, strlen(beginning)) == 0) {
            return;
        }
        if (!is_passing(reply) || process_now_ms() > give_up_at) {
            fail_msg("%s: %s", command, reply);
        }
        turn(world);
    }
}

static void add_many(struct world *world, struct line *line, const char *key) {
    char command[8192];
    size_t size = (size_t)snprintf(command, sizeof command, "ZADD %s", key);
    for (int i = 0; i < MEMBERS; i++) {
        size += (size_t)snprintf(command + size, sizeof command - size, " %d member:%d", i, i);
    }
    snprintf(command + size, sizeof command - size, "\r\n");
    insist(world, line, command, ":");
}

/* What the board holds there, as a reply. */
static void read_board(struct world *world, struct line *line, char out[1 << 16]) {
    int64_t give_up_at = process_now_ms() + LIMIT_MS;
    do {
        assert_true(process_now_ms() < give_up_at);
        snprintf(out, 1 << 16, "%s",
                 ask(world, line, "ZRANGE all 0 -1 WITHSCORES\r\nPING\r\n", "+PONG\r\n"));
    } while (out[0] != '*');
}

static void expect_equal(struct world *world) {
    static char inside[1 << 16], other[1 << 16];
    int64_t give_up_at = process_now_ms() + LIMIT_MS;
    do {
        read_board(world, &world->to_inside, inside);
        read_board(world, &world->to_other, other);
        assert_true(process_now_ms() < give_up_at);
    } while (strcmp(inside, other) != 0);
}

/* ---- the scene ---- */

static void listen_here(struct world *world) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    world->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(world->listener >= 0);
    assert_int_equal(bind(world->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(world->listener, 16), 0);
    assert_int_equal(getsockname(world->listener, (struct sockaddr *)&address, &size), 0);
    world->port = ntohs(address.sin_port);
}

static void begin(struct world *world, const char *fsync) {
    char settings[512];
    const char *const words[] = {"--appendonly",
                                 "yes",
                                 "--appendfsync",
                                 "always",
                                 "--sync-replicas",
                                 "1",
                                 "--replication-nodes",
                                 "2",
                                 "--sync-replicas-fsync",
                                 fsync,
                                 "--protected-mode",
                                 "no",
                                 "--save",
                                 "",
                                 "--replicaof",
                                 "127.0.0.1 1",
                                 NULL};
    const struct process_options options = {.arguments = words};
    *world = (struct world){.to_inside = {.fd = -1, .is_inside = true}, .to_other = {.fd = -1}};
    listen_here(world);
    assert_true(process_start(&world->other, &options));
    snprintf(settings, sizeof settings,
             "port %u\nprotected-mode no\nappendonly yes\nsync-replicas 1\nreplication-nodes 2\n"
             "sync-replicas-fsync %s\nappendfsync always\nreplicaof 127.0.0.1 %u\n",
             world->port, fsync, world->other.port);
    loop_begin_kept(&world->inside, settings);
    loop_replicate(&world->inside);
    loop_turn(&world->inside); /* without its vote file it would not start */
}

/* How many allocations there were. */
static uint64_t play(struct world *world, uint64_t nth) {
    uint64_t requests_before = memory_requests();
    insist(world, &world->to_other, "REPLICAOF NO ONE\r\n", "+OK");
    memory_fail_at(nth);
    add_many(world, &world->to_other, "all"); /* needs this one's vote, and its acknowledgement */
    insist(world, &world->to_other, "CLIENT KILL TYPE replica\r\n", ":");
    insist(world, &world->to_other, "ZADD all 7 seven\r\n", ":");
    expect_equal(world);
    insist(world, &world->to_inside, "REPLICAOF NO ONE\r\n", "+OK");
    insist(world, &world->to_other, formatted("REPLICAOF 127.0.0.1 %u\r\n", world->port), "+OK");
    insist(world, &world->to_inside, "ZADD all 8 eight\r\n", ":");
    insist(world, &world->to_inside, "ZADD all 9 nine\r\n", ":");
    expect_equal(world);
    uint64_t requests = memory_requests() - requests_before;
    memory_fail_at(0);
    return requests;
}

static void end(struct world *world) {
    end_line(&world->to_inside);
    end_line(&world->to_other);
    loop_end(&world->inside);
    close(world->listener);
    assert_int_equal(process_stop(&world->other), 0);
}

TEST(each_allocation_of_one_that_follows_and_is_promoted_may_fail) {
    struct random random = random_begin("replication_memory");
    struct world world;
    uint64_t stride = is_short_run() ? STRIDE_SHORT : STRIDE;
    uint64_t nth = 1 + random_below(&random, stride), count = 0, requests;
    begin(&world, "no");
    requests = play(&world, 0);
    end(&world);
    for (; nth <= requests; nth += stride, count++) {
        begin(&world, nth % 2 == 0 ? "yes" : "no");
        (void)play(&world, nth);
        end(&world);
    }
    print_message("%d allocations, %d of them failed\n", (int)requests, (int)count);
    assert_true(count > 0);
}
