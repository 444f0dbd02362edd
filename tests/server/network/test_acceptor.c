/* Accepting: what comes with a batch, how much is accepted that nobody has taken, and what is left at
 * the end. The network has no thread, so that the test has its turns; or it has one. */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/network/acceptor.h"
#include "server/network/network.h"

enum { CLIENTS = 100, TURNS = 200 };

static uint32_t find_none(const struct request *request) {
    (void)request;
    return 0;
}

struct fixture {
    struct acceptor acceptor;
    struct network_limits limits;
    struct network_options options;
    struct network *network;
    uv_loop_t loop;
    struct wakeup wake; /* with a thread: the engine's */
    union socket_address address;
};

static int descriptor_count(void) {
    int count = 0;
    DIR *all = opendir("/proc/self/fd");
    assert_non_null(all);
    while (readdir(all) != NULL) {
        count++;
    }
    closedir(all);
    return count;
}

static void begin(struct fixture *f) {
    socklen_t size = sizeof f->address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *f = (struct fixture){.acceptor.spare_fd = -1};
    f->address.v4 =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, &f->address.any, sizeof f->address.v4), 0);
    assert_int_equal(listen(fd, CLIENTS), 0);
    assert_int_equal(getsockname(fd, &f->address.any, &size), 0);
    acceptor_add(&f->acceptor, fd, false);
    f->limits.tcp_keepalive_s = 90;
    f->options = (struct network_options){
        .limits = &f->limits, .find_command = find_none, .acceptor = &f->acceptor};
    f->network = aligned_alloc(RING_CACHE_LINE, (sizeof *f->network + 63) / 64 * 64);
    assert_non_null(f->network);
    memset(f->network, 0, sizeof *f->network);
    assert_int_equal(uv_loop_init(&f->loop), 0);
}

static void begin_on_loop(struct fixture *f) {
    begin(f);
    assert_true(network_init(f->network, &f->loop, &f->options));
}

static void end(struct fixture *f) {
    network_deinit(f->network);
    free(f->network);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&f->loop), 0);
}

static int connect_client(const struct fixture *f) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, &f->address.any, sizeof f->address.v4), 0);
    return fd;
}

static void turn(struct fixture *f) {
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static int option_of(int fd, int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

TEST(a_client_comes_with_its_addresses_and_options) {
    ENDED_BY(end) struct fixture f;
    begin_on_loop(&f);
    int client = connect_client(&f);
    union socket_address own;
    socklen_t size = sizeof own;
    assert_int_equal(getsockname(client, &own.any, &size), 0);
    assert_null(network_take(f.network));
    turn(&f);
    struct batch *batch = network_take(f.network);
    assert_non_null(batch);
    assert_int_equal(batch->accepted_count, 1);
    const struct accepted *accepted = &batch->accepted[0];
    assert_false(accepted->is_unix_socket);
    assert_memory_equal(&accepted->peer.v4, &own.v4, sizeof own.v4);
    assert_memory_equal(&accepted->local.v4, &f.address.v4, sizeof own.v4);
    assert_int_not_equal(option_of(accepted->fd, IPPROTO_TCP, TCP_NODELAY), 0);
    assert_int_not_equal(option_of(accepted->fd, SOL_SOCKET, SO_KEEPALIVE), 0);
    assert_int_equal(option_of(accepted->fd, IPPROTO_TCP, TCP_KEEPIDLE), 90);
    assert_int_equal(option_of(accepted->fd, IPPROTO_TCP, TCP_KEEPINTVL), 30);
    char byte;
    assert_int_equal(read(accepted->fd, &byte, 1), -1); /* it does not block */
    assert_int_equal(errno, EAGAIN);
    close(accepted->fd);
    network_give_back(f.network, batch);
    assert_null(network_take(f.network));
    close(client);
    network_drain(f.network);
}

/* Nobody gives batches back: most clients wait in the backlog. */
TEST(accepting_waits_for_whoever_takes_the_clients) {
    ENDED_BY(end) struct fixture f;
    struct batch *taken[CLIENTS];
    int clients[CLIENTS];
    unsigned batch_count = 0, accepted_count = 0;
    begin_on_loop(&f);
    int before = descriptor_count();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_client(&f);
    }
    for (unsigned given_back = 0; accepted_count < CLIENTS;) {
        unsigned held_count = 0;
        for (int i = 0; i < TURNS; i++) {
            turn(&f);
            struct batch *batch = network_take(f.network);
            if (batch != NULL) {
                assert_in_range(batch->accepted_count, 1, BATCH_ACCEPTED_MAX);
                held_count += batch->accepted_count;
                taken[batch_count++] = batch;
            }
        }
        accepted_count += held_count;
        assert_in_range(held_count, 1, CLIENTS / 2);
        while (given_back < batch_count) {
            struct batch *batch = taken[given_back++];
            for (unsigned i = 0; i < batch->accepted_count; i++) {
                close(batch->accepted[i].fd);
            }
            network_give_back(f.network, batch);
        }
    }
    assert_int_equal(accepted_count, CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        close(clients[i]);
    }
    assert_int_equal(descriptor_count(), before);
    network_drain(f.network);
}

TEST(who_is_refused_is_told_and_closed) {
    static const char text[] = "-ERR no\r\n";
    ENDED_BY(end) struct fixture f;
    char got[sizeof text] = "";
    begin_on_loop(&f);
    int client = connect_client(&f);
    turn(&f);
    struct batch *batch = network_take(f.network);
    assert_non_null(batch);
    network_refuse(f.network, batch->accepted[0].fd, text);
    network_give_back(f.network, batch);
    assert_int_equal(recv(client, got, sizeof text - 1, MSG_WAITALL), sizeof text - 1);
    assert_string_equal(got, text);
    assert_int_equal(read(client, got, 1), 0);
    close(client);
    network_drain(f.network);
}

/* What the thread has accepted and nobody has opened is with the engine at the end. */
TEST(nothing_that_a_thread_accepts_is_lost) {
    static const char text[] = "-ERR no\r\n";
    struct fixture f;
    int clients[CLIENTS];
    char got[sizeof text];
    int before = descriptor_count();
    begin(&f);
    assert_true(worker_wakeup_init(&f.wake, &f.loop));
    f.options.engine_wake = &f.wake;
    f.options.number = 1;
    assert_true(network_start(f.network, &f.options));
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_client(&f);
    }
    /* The first half is refused; nothing else is ever said to the network, and all its batches come
     * back to it. */
    for (unsigned refused = 0; refused < CLIENTS / 2;) {
        struct batch *batch = network_take(f.network);
        if (batch == NULL) {
            sched_yield();
            continue;
        }
        network_reclaim(f.network, batch);
        for (unsigned i = 0; i < batch->accepted_count; i++, refused++) {
            network_refuse(f.network, batch->accepted[i].fd, text);
        }
        network_give_back(f.network, batch);
        while (network_push(f.network)) {}
    }
    for (int i = 0; i < CLIENTS / 2; i++) {
        assert_int_equal(recv(clients[i], got, sizeof text - 1, MSG_WAITALL), sizeof text - 1);
        assert_memory_equal(got, text, sizeof text - 1);
    }
    network_join(f.network);
    struct batch *batch;
    while ((batch = network_take(f.network)) != NULL) {
        network_reclaim(f.network, batch);
        for (unsigned i = 0; i < batch->accepted_count; i++) {
            close(batch->accepted[i].fd);
        }
        network_give_back(f.network, batch);
    }
    for (int i = 0; i < CLIENTS; i++) {
        close(clients[i]);
    }
    worker_wakeup_close(&f.wake);
    worker_wakeup_deinit(&f.wake);
    end(&f);
    assert_int_equal(descriptor_count(), before);
}

/* Clients that the thread takes one at a time, while nobody has a word for it. */
TEST(batches_come_back_without_replies) {
    enum { ROUNDS = 500 };
    ENDED_BY(end) struct fixture f;
    begin(&f);
    assert_true(worker_wakeup_init(&f.wake, &f.loop));
    f.options.engine_wake = &f.wake;
    assert_true(network_start(f.network, &f.options));
    for (int i = 0; i < ROUNDS; i++) {
        int client = connect_client(&f);
        struct batch *batch;
        while ((batch = network_take(f.network)) == NULL) {
            sched_yield();
        }
        network_reclaim(f.network, batch);
        assert_int_equal(batch->accepted_count, 1);
        close(batch->accepted[0].fd);
        close(client);
        network_give_back(f.network, batch);
        while (network_push(f.network)) {}
        assert_true(f.network->done_count < 10);
    }
    network_join(f.network);
    worker_wakeup_close(&f.wake);
    worker_wakeup_deinit(&f.wake);
}

/* ---- through a balancer ---- */

static const char header[] = "PROXY TCP4 198.51.100.7 10.0.0.5 50412 6379\r\n";

static void begin_proxied(struct fixture *f, const char *from) {
    begin(f);
    f->acceptor.sockets[0].is_proxied = true;
    f->acceptor.header_limit_ms = 60000;
    f->acceptor.proxy_count = 1;
    assert_true(subnet_parse(bytes_from_text(from), &f->acceptor.proxies[0]));
    assert_true(network_init(f->network, &f->loop, &f->options));
}

static void send_to(int client, const char *at, size_t size) {
    assert_int_equal(write(client, at, size), size);
}

/* Turn until there is a batch. */
static struct batch *take(struct fixture *f) {
    struct batch *batch;
    while ((batch = network_take(f->network)) == NULL) {
        turn(f);
    }
    return batch;
}

TEST(a_header_is_read_wherever_it_is_cut_and_not_a_byte_more) {
    ENDED_BY(end) struct fixture f;
    begin_proxied(&f, "127.0.0.0/8");
    for (size_t cut = 0; cut < sizeof header; cut++) {
        char rest[16] = "";
        int client = connect_client(&f);
        send_to(client, header, cut);
        for (int i = 0; i < 5; i++) {
            turn(&f);
            if (cut < sizeof header - 1) {
                assert_null(network_take(f.network));
            }
        }
        send_to(client, header + cut, sizeof header - 1 - cut);
        send_to(client, "PING\r\n", 6);
        struct batch *batch = take(&f);
        assert_int_equal(batch->accepted_count, 1);
        const struct accepted *accepted = &batch->accepted[0];
        assert_true(accepted->is_proxied);
        assert_int_equal(accepted->peer.v4.sin_addr.s_addr, inet_addr("198.51.100.7"));
        assert_int_equal(ntohs(accepted->peer.v4.sin_port), 50412);
        assert_int_equal(accepted->local.v4.sin_addr.s_addr, inet_addr("10.0.0.5"));
        assert_int_equal(ntohs(accepted->local.v4.sin_port), 6379);
        assert_int_equal(accepted->proxy.v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
        assert_int_equal(recv(accepted->fd, rest, sizeof rest, 0), 6);
        assert_string_equal(rest, "PING\r\n");
        close(accepted->fd);
        close(client);
        network_give_back(f.network, batch);
    }
    network_drain(f.network);
}

static void expect_refused(struct fixture *f, int client, const char *reason) {
    char byte;
    struct batch *batch = take(f);
    assert_int_equal(batch->accepted_count, 0);
    assert_int_equal(batch->proxy_refusals.count, 1);
    assert_non_null(strstr(batch->proxy_refusals.reason, reason));
    assert_int_equal(batch->proxy_refusals.peer.v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_true(recv(client, &byte, 1, 0) <= 0);
    network_give_back(f->network, batch);
    close(client);
}

TEST(whoever_is_no_balancer_is_refused) {
    ENDED_BY(end) struct fixture f;
    begin_proxied(&f, "192.0.2.0/24");
    int client = connect_client(&f);
    send_to(client, header, sizeof header - 1);
    expect_refused(&f, client, "proxy-protocol-from");
    network_drain(f.network);
}

TEST(without_a_header_or_in_time_nobody_is_let_in) {
    struct fixture f;
    int before = descriptor_count();
    begin_proxied(&f, "127.0.0.1");
    int client = connect_client(&f);
    send_to(client, "PING\r\n", 6);
    expect_refused(&f, client, "no PROXY header");
    client = connect_client(&f);
    send_to(client, header, 20);
    turn(&f);
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    expect_refused(&f, client, "closed before");
    f.acceptor.header_limit_ms = 1;
    client = connect_client(&f);
    send_to(client, header, 20);
    expect_refused(&f, client, "in time");
    network_drain(f.network);
    end(&f);
    assert_int_equal(descriptor_count(), before);
}

/* Those that say nothing are in nobody's way but that of those behind them. */
TEST(no_more_headers_are_waited_for_than_there_is_room) {
    ENDED_BY(end) struct fixture f;
    int clients[CLIENTS];
    unsigned accepted_count = 0;
    begin_proxied(&f, "127.0.0.1");
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_client(&f);
    }
    for (int i = 0; i < TURNS; i++) {
        turn(&f);
    }
    assert_int_equal(f.acceptor.arrival_count, ARRIVALS_MAX);
    assert_null(network_take(f.network));
    for (int i = 0; i < CLIENTS; i++) {
        send_to(clients[i], header, sizeof header - 1);
    }
    while (accepted_count < CLIENTS) {
        struct batch *batch = take(&f);
        for (unsigned i = 0; i < batch->accepted_count; i++) {
            assert_true(batch->accepted[i].is_proxied);
            close(batch->accepted[i].fd);
        }
        accepted_count += batch->accepted_count;
        network_give_back(f.network, batch);
    }
    assert_int_equal(f.acceptor.arrival_count, 0);
    for (int i = 0; i < CLIENTS; i++) {
        close(clients[i]);
    }
    network_drain(f.network);
}

TEST(what_has_not_arrived_at_the_end_is_closed) {
    struct fixture f;
    char byte;
    begin_proxied(&f, "127.0.0.1");
    int client = connect_client(&f);
    send_to(client, header, 20);
    turn(&f);
    turn(&f);
    assert_int_equal(f.acceptor.arrival_count, 1);
    network_drain(f.network);
    end(&f);
    assert_true(recv(client, &byte, 1, 0) <= 0);
    close(client);
}
