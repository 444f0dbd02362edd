/* What strangers and broken clients do to a server: announce much and send little, never read,
 * vanish, connect by the thousand, kill each other, send patterns that explode. The others are
 * served meanwhile, and nothing is left behind. */
#include "tests/support/test.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/glob.h"
#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/wire.h"

enum {
    MIB = 1024 * 1024,
    BOARD_SIZE = 1000,
    IDLE_CLIENTS = 9900,
    IDLE_CLIENTS_SHORT = 1000,
};

static struct process server, guarded; /* guarded: with a password */
static struct wire witness;

FIXTURE(start_servers) {
    static const char *const arguments[] = {"--requirepass", "secret", "--auth-timeout", "0", NULL};
    const struct process_options options = {.arguments = arguments};
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    return process_start(&server, NULL) && process_start(&guarded, &options) ? 0 : -1;
}

FIXTURE(stop_servers) {
    int failed = process_stop(&server);
    return process_stop(&guarded) | failed;
}

FIXTURE(connect_witness) {
    witness = wire_open(process_connect_unix(&server));
    wire_check(&witness, "FLUSHALL", "OK");
    wire_wait_info(&witness, "connected_clients", 1); /* nobody is left of the test before */
    return 0;
}

FIXTURE(disconnect_witness) {
    wire_check(&witness, "PING", "PONG");
    wire_close(&witness);
    return 0;
}

static void fill_board(void) {
    struct text request = {.at = NULL};
    text_format(&request, "*%d\r\n$4\r\nZADD\r\n$1\r\nb\r\n", 2 + 2 * BOARD_SIZE);
    for (int i = 0; i < BOARD_SIZE; i++) {
        text_format(&request, "$4\r\n%d\r\n$7\r\nm%06d\r\n", 1000 + i, i);
    }
    wire_send(&witness, request.at, request.size);
    text_free(&request);
    wire_expect(&witness, ":1000\r\n");
}

static void wait_for_clients(int64_t count) {
    wire_wait_info(&witness, "connected_clients", count);
}

/* ---- before authentication ---- */

static void check_refused(const char *request, const char *reply) {
    WIRE(stranger, process_connect_tcp(&guarded));
    wire_push(&stranger, request, strlen(request), WIRE_LIMIT_MS);
    wire_expect(&stranger, reply);
    assert_true(wire_is_closed(&stranger, WIRE_LIMIT_MS));
}

#define IN_TURN(name) TEST_WITH(name, connect_witness, disconnect_witness)

IN_TURN(announcements_before_authentication_are_bounded) {
    check_refused("*11\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n");
    check_refused("*1000000000\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n");
    check_refused("*1\r\n$16385\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n");
    check_refused("*2\r\n$4\r\nAUTH\r\n$60000000\r\n",
                  "-ERR Protocol error: unauthenticated bulk length\r\n");
    WIRE(friend, process_connect_tcp(&guarded));
    wire_check(&friend, "AUTH secret", "OK");
    wire_check(&friend, "ZADD b 1 a 2 b 3 c 4 d 5 e 6 f", ":6");
    wire_check(&friend, "FLUSHALL", "OK");
}

IN_TURN(announcements_reserve_nothing) {
    enum { CLIENTS = 200 };
    static const char request[] = "*1000000\r\n$4\r\nZADD\r\n$67108864\r\nabcdefghij";
    struct wire clients[CLIENTS];
    int64_t before = wire_info(&witness, "used_memory");
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = wire_open(process_connect_unix(&server));
        wire_push(&clients[i], request, sizeof request - 1, WIRE_LIMIT_MS);
    }
    wait_for_clients(CLIENTS + 1);
    int64_t after = wire_info(&witness, "used_memory");
    printf("%d announcements of 64 MiB: %lld KiB\n", CLIENTS, (long long)(after - before) / 1024);
    assert_true(after < before + CLIENTS * 128 * 1024);
    for (int i = 0; i < CLIENTS; i++) {
        wire_close(&clients[i]);
    }
    wait_for_clients(1);
}

IN_TURN(noauth_replies_never_pile_up) {
    enum { SIZE = 64 * MIB };
    char *request = malloc(SIZE);
    assert_non_null(request);
    for (size_t i = 0; i < SIZE; i++) {
        request[i] = "X\r\n"[i % 3];
    }
    struct wire stranger = wire_open(process_connect_tcp(&guarded));
    WIRE(friend, process_connect_tcp(&guarded));
    wire_check(&friend, "AUTH secret", "OK");
    int64_t before = wire_info(&friend, "used_memory");
    size_t pushed = wire_push(&stranger, request, SIZE, WIRE_LIMIT_MS);
    int64_t after = wire_info(&friend, "used_memory");
    free(request);
    wire_close(&friend);
    assert_true(pushed < SIZE);
    assert_true(after < before + 16 * MIB);
    assert_true(wire_is_closed(&stranger, WIRE_LIMIT_MS));
    wire_close(&stranger);
    friend = wire_open(process_connect_tcp(&guarded));
    wire_check(&friend, "PING", "-NOAUTH Authentication required.");
    wire_check(&friend, "AUTH secret", "OK");
}

/* ---- clients that do not read ---- */

static void set_output_limit(const char *limit) {
    TEXT(request);
    text_format(&request, "CONFIG SET client-output-buffer-limit \"normal %s\"\r\n", limit);
    wire_send(&witness, request.at, request.size);
    wire_expect(&witness, "+OK\r\n");
}

/* Ask for size bytes of replies at least, read none, and look after the others meanwhile. */
static void ask_without_reading(struct wire *reader, size_t size) {
    TEXT(request);
    for (size_t asked = 0; asked < size; asked += BOARD_SIZE * 13) {
        request.size = 0;
        text_command(&request, "ZRANGE b 0 -1");
        if (wire_push(reader, request.at, request.size, 150) < request.size) {
            break;
        }
        wire_check(&witness, "ZSCORE b m000007", "1007");
    }
}

IN_TURN(a_reader_past_the_hard_limit_is_closed_and_the_others_go_on) {
    fill_board();
    set_output_limit("512kb 0 0");
    struct wire reader = wire_open(process_connect_tcp(&server));
    int64_t before = wire_info(&witness, "used_memory");
    ask_without_reading(&reader, 64 * MIB);
    assert_true(wire_info(&witness, "used_memory") < before + 16 * MIB);
    assert_true(wire_is_closed(&reader, WIRE_LIMIT_MS));
    wire_close(&reader);
    set_output_limit("256mb 64mb 60");
}

IN_TURN(clients_that_never_read_cost_bounded_memory) {
    enum { READERS = 20 };
    fill_board();
    set_output_limit("4mb 0 0");
    struct wire readers[READERS];
    int64_t before = wire_info(&witness, "used_memory");
    for (int i = 0; i < READERS; i++) {
        readers[i] = wire_open(process_connect_unix(&server));
        ask_without_reading(&readers[i], 8 * MIB);
    }
    assert_true(wire_info(&witness, "used_memory") < before + READERS * 6 * MIB);
    for (int i = 0; i < READERS; i++) {
        wire_close(&readers[i]);
    }
    wait_for_clients(1);
    set_output_limit("256mb 64mb 60");
}

IN_TURN(a_reader_over_the_soft_limit_for_its_time_is_closed) {
    fill_board();
    set_output_limit("0 256kb 1");
    struct wire reader = wire_open(process_connect_unix(&server));
    struct text request = {.at = NULL};
    for (int i = 0; i < 2000; i++) {
        text_command(&request, "ZRANGE b 0 -1");
    }
    wire_push(&reader, request.at, request.size, WIRE_LIMIT_MS);
    text_free(&request);
    int64_t give_up_at = process_now_ms() + WIRE_LIMIT_MS;
    while (wire_info(&witness, "connected_clients") > 1) {
        assert_true(process_now_ms() < give_up_at);
        wire_check(&witness, "ZCARD b", ":1000");
        process_sleep_ms(20);
    }
    wire_close(&reader);
    set_output_limit("256mb 64mb 60");
}

IN_TURN(one_reply_past_the_hard_limit_closes) {
    fill_board();
    set_output_limit("16384 0 0");
    struct wire reader = wire_open(process_connect_unix(&server));
    struct text request = {.at = NULL};
    for (int i = 0; i < 100; i++) {
        text_command(&request, "ZRANGE b 0 -1 WITHSCORES");
    }
    wire_push(&reader, request.at, request.size, WIRE_LIMIT_MS);
    text_free(&request);
    assert_true(wire_is_closed(&reader, WIRE_LIMIT_MS));
    wire_close(&reader);
    set_output_limit("256mb 64mb 60");
}

/* Otherwise a limit set too low by mistake could never be taken back. */
IN_TURN(the_smallest_limit_leaves_short_replies_that_are_read) {
    set_output_limit("1 1 1");
    struct wire reader = wire_open(process_connect_unix(&server));
    wire_check(&reader, "PING", "PONG");
    wire_check(&witness, "CONFIG GET timeout", "[timeout 0]");
    wire_close(&reader);
    set_output_limit("256mb 64mb 60");
}

IN_TURN(input_past_the_query_buffer_limit_closes) {
    wire_check(&witness, "CONFIG SET client-query-buffer-limit 2097152", "OK");
    struct wire writer = wire_open(process_connect_unix(&server));
    char *request = malloc(8 * MIB);
    assert_non_null(request);
    int head = snprintf(request, 64, "*2\r\n$4\r\nECHO\r\n$%d\r\n", 7 * MIB);
    memset(request + head, 'x', (size_t)(8 * MIB - head));
    size_t pushed = wire_push(&writer, request, 6 * MIB, WIRE_LIMIT_MS);
    free(request);
    assert_true(pushed < 6 * MIB || wire_is_closed(&writer, WIRE_LIMIT_MS));
    wire_close(&writer);
    wait_for_clients(1);
    wire_check(&witness, "CONFIG SET client-query-buffer-limit 268435456", "OK");
}

/* ---- clients that vanish ---- */

IN_TURN(half_requests_and_resets_leave_nothing_behind) {
    static const char request[] = "*4\r\n$4\r\nZADD\r\n$4\r\nhalf\r\n$1\r\n1\r\n$5\r\nabcde\r\n";
    int before = process_descriptor_count(&server);
    for (size_t cut = 0; cut < 2 * (sizeof request - 1); cut++) {
        struct wire client =
            wire_open(cut % 3 ? process_connect_tcp(&server) : process_connect_unix(&server));
        wire_push(&client, request, cut / 2, WIRE_LIMIT_MS);
        if (cut % 2) {
            wire_abort(&client);
        } else {
            wire_close(&client);
        }
    }
    wait_for_clients(1);
    wire_check(&witness, "EXISTS half", ":0");
    assert_int_equal(process_wait_descriptors(&server, before, WIRE_LIMIT_MS), before);
}

/* A crowd that breaks off in the middle of a request, each one differently, over several network
 * threads. A tenth at a time; between two tenths everybody is gone. The long form takes minutes. */
enum {
    KILLED = 1000000,
    KILLED_SHORT = 4000,
    KILLERS = 4, /* threads that are clients */
    TENTHS = 10,
    HALF_MAX = 96 * 1024,
    OWN_OUTPUT_MAX = 4096, /* of the one client that asks, which has had the text of INFO */
    /* Each network keeps 16 pieces of input (64 KiB), and a few batches, to use them again: so memory is
     * not to the byte what it was, but after the first tenth it grows no more. Five bytes a client
     * would show in the long form. */
    KEPT_MAX = 4 * MIB,
};

struct killer {
    const struct process *process;
    struct random random;
    unsigned count;
    bool has_failed;
};

/* What goes before the half of a request: it holds memory until the client is gone. */
static const char *const before_half[] = {
    "",
    "",
    "",
    "PING\r\n",
    "*2\r\n$4\r\nECHO\r\n$3\r\nabc\r\n",
    "WATCH b c d\r\n",
    "MULTI\r\nZADD b 1 m\r\nZADD b 2 n\r\n",
    "CLIENT SETNAME somebody\r\n",
    "HELLO 3\r\nCLIENT NO-TOUCH ON\r\n",
};
static const char *const whole[] = {
    "*4\r\n$4\r\nZADD\r\n$1\r\nb\r\n$1\r\n1\r\n$5\r\nabcde\r\n",
    "*1000000\r\n$4\r\nZADD\r\n$1\r\nb\r\n$1\r\n1\r\n",
    "*3\r\n$6\r\nZSCORE\r\n$1\r\nb\r\n$512\r\nabcdefghij",
    "ZADD b 1 \"abcde\r\n",
    "ECHO inline\r\n",
};

/* Returns its size. */
static size_t write_half(struct random *random, char *at) {
    const char *before =
        before_half[random_below(random, sizeof before_half / sizeof *before_half)];
    size_t size = strlen(before);
    memcpy(at, before, size);
    if (random_below(random, 32) == 0) { /* a large bulk: none or some of it, many reads at times */
        uint64_t bulk = random_below(random, 8) == 0 ? HALF_MAX - 256 : 2000;
        size += (size_t)snprintf(at + size, 64, "*2\r\n$4\r\nECHO\r\n$%d\r\n", HALF_MAX);
        size_t part = (size_t)random_below(random, bulk);
        memset(at + size, 'x', part);
        return size + part;
    }
    const char *request = whole[random_below(random, sizeof whole / sizeof *whole)];
    size_t part = (size_t)random_below(random, strlen(request));
    memcpy(at + size, request, part);
    return size + part;
}

static bool push(int fd, const char *at, size_t size) {
    while (size > 0) {
        ssize_t part = send(fd, at, size, MSG_NOSIGNAL);
        if (part <= 0) {
            return false;
        }
        at += part;
        size -= (size_t)part;
    }
    return true;
}

/* Everybody who ends with a FIN over TCP keeps a port for a minute: they are few. */
static bool live_and_die(struct killer *killer) {
    static _Thread_local char half[HALF_MAX + 1024];
    struct random *random = &killer->random;
    bool is_tcp = random_below(random, 4) == 0;
    int fd = is_tcp ? process_connect_tcp(killer->process) : process_connect_unix(killer->process);
    if (fd < 0) {
        return false;
    }
    bool is_fine = push(fd, half, write_half(random, half));
    if (is_fine && random_below(random, 4) == 0) {
        char reply[4096];
        ssize_t size = 1;
        is_fine = shutdown(fd, SHUT_WR) == 0;
        while (is_fine && size > 0 && random_below(random, 8) != 0) {
            size = recv(fd, reply, sizeof reply, 0);
            is_fine = size >= 0; /* until the server has closed it */
        }
    }
    if (is_tcp && random_below(random, 64) != 0) {
        struct linger at_once = {.l_onoff = 1, .l_linger = 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    close(fd);
    return is_fine;
}

static void *kill_many(void *context) {
    struct killer *killer = context;
    for (unsigned i = 0; i < killer->count && !killer->has_failed; i++) {
        killer->has_failed = !live_and_die(killer);
    }
    return NULL;
}

static void kill_a_tenth(struct killer *killers) {
    pthread_t threads[KILLERS];
    for (int i = 0; i < KILLERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, kill_many, &killers[i]), 0);
    }
    for (int i = 0; i < KILLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(killers[i].has_failed);
    }
}

struct figures {
    int64_t used_memory, client_memory;
    int descriptors;
    uint64_t resident_size;
};

/* Once everybody is gone. The last of each socket are accepted after all others. */
static struct figures figures_of(const struct process *process, struct wire *client,
                                 int descriptors) {
    struct wire last = wire_open(process_connect_unix(process));
    wire_check(&last, "PING", "PONG");
    wire_close(&last);
    last = wire_open(process_connect_tcp(process));
    wire_check(&last, "PING", "PONG");
    wire_close(&last);
    wire_wait_info(client, "connected_clients", 1);
    return (struct figures){
        .used_memory = wire_info(client, "used_memory"),
        .client_memory = wire_info(client, "mem_clients_normal"),
        .descriptors = process_wait_descriptors(process, descriptors, WIRE_LIMIT_MS),
        .resident_size = process_resident_size(process),
    };
}

TEST(a_crowd_that_is_killed_in_the_middle_of_requests_leaves_nothing_behind) {
    enum { THREADS = 4 };
    static const char *const arguments[] = {"--io-threads", "4", NULL};
    const struct process_options options = {.arguments = arguments};
    struct killer killers[KILLERS];
    struct figures figures[TENTHS + 1];
    uint64_t seed = random_begin("crowd").state;
    unsigned count = is_short_run() ? KILLED_SHORT : KILLED;
    SERVER(crowded, &options);
    WIRE(client, process_connect_unix(&crowded));
    wire_wait_info(&client, "connected_clients", 1);
    for (unsigned i = 0; i < KILLERS; i++) {
        killers[i] = (struct killer){
            .process = &crowded, .random.state = seed + i, .count = count / TENTHS / KILLERS};
    }
    int descriptors = process_descriptor_count(&crowded);
    figures[0] = figures_of(&crowded, &client, descriptors);
    for (int tenth = 1; tenth <= TENTHS; tenth++) {
        kill_a_tenth(killers);
        figures[tenth] = figures_of(&crowded, &client, descriptors);
        printf("killed=%u used=%lld clients=%lld resident=%llu\n", count / TENTHS * (unsigned)tenth,
               (long long)figures[tenth].used_memory, (long long)figures[tenth].client_memory,
               (unsigned long long)figures[tenth].resident_size);
        assert_int_equal(figures[tenth].descriptors, descriptors);
        assert_in_range(figures[tenth].client_memory, 1, figures[0].client_memory + OWN_OUTPUT_MAX);
    }
    assert_in_range(figures[TENTHS].used_memory, 1, figures[1].used_memory + KEPT_MAX);
    if (!process_is_sanitized()) {
        assert_in_range(figures[TENTHS].resident_size, 1, figures[1].resident_size + KEPT_MAX);
    }
    wire_check(&client, "EXISTS b", ":0");
}

IN_TURN(clients_that_die_while_answered_leave_nothing_behind) {
    enum { ROUNDS = 100, COMMANDS = 200 };
    fill_board();
    int before = process_descriptor_count(&server);
    struct text request = {.at = NULL};
    for (int i = 0; i < COMMANDS; i++) {
        text_command(&request, "ZINCRBY b 1 m000000");
        text_command(&request, "ZRANGE b 0 -1 WITHSCORES");
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct wire client = wire_open(process_connect_tcp(&server));
        wire_push(&client, request.at, request.size, 100);
        if (round % 4 == 0) {
            wire_reply(&client);
        }
        wire_abort(&client);
    }
    text_free(&request);
    wait_for_clients(1);
    wire_check(&witness, "ZCARD b", ":1000");
    int64_t score = strtoll(wire_ask(&witness, "ZSCORE b m000000"), NULL, 10);
    assert_in_range(score, 1000 + ROUNDS / 4, 1000 + ROUNDS * COMMANDS);
    assert_int_equal(process_wait_descriptors(&server, before, WIRE_LIMIT_MS), before);
}

/* ---- many clients ---- */

IN_TURN(thousands_of_idle_clients_leave_the_others_alone) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    size_t count = is_short_run() ? IDLE_CLIENTS_SHORT : IDLE_CLIENTS;
    if (files.rlim_cur != RLIM_INFINITY && files.rlim_cur < count + 200) {
        count = (size_t)files.rlim_cur - 200;
    }
    struct wire *idle = calloc(count, sizeof *idle);
    assert_non_null(idle);
    int before = process_descriptor_count(&server);
    uint64_t resident = process_resident_size(&server);
    for (size_t i = 0; i < count; i++) {
        idle[i] = wire_open(i % 2 ? process_connect_tcp(&server) : process_connect_unix(&server));
        if (i % 10 == 0) { /* some have spoken, some are in the middle of a word */
            wire_send_text(&idle[i], i % 20 ? "PING\r\n" : "PIN");
        }
    }
    wait_for_clients((int64_t)count + 1);
    uint64_t grown = process_resident_size(&server) - resident;
    printf("%zu idle clients: %llu bytes resident each\n", count,
           (unsigned long long)(grown / count));
    fill_board();
    for (int i = 0; i < 1000; i++) {
        wire_check(&witness, "ZINCRBY b 0 m000999", "1999");
    }
    for (size_t i = 0; i < count; i += 997) { /* they are alive */
        wire_send_text(&idle[i], i % 10 == 0 && i % 20 == 0 ? "G\r\n" : "ECHO me\r\n");
    }
    wire_check(&witness, "ZCARD b", ":1000");
    for (size_t i = 0; i < count; i++) {
        wire_close(&idle[i]);
    }
    free(idle);
    wait_for_clients(1);
    assert_int_equal(process_wait_descriptors(&server, before, WIRE_LIMIT_MS), before);
}

IN_TURN(accepting_goes_on_after_descriptors_ran_out) {
    enum { CLIENTS = 30 };
    struct rlimit old, low;
    assert_int_equal(prlimit(server.pid, RLIMIT_NOFILE, NULL, &old), 0);
    low = old;
    low.rlim_cur = (rlim_t)process_descriptor_count(&server) + 3;
    assert_int_equal(prlimit(server.pid, RLIMIT_NOFILE, &low, NULL), 0);
    struct wire clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] =
            wire_open(i % 2 ? process_connect_tcp(&server) : process_connect_unix(&server));
        wire_push(&clients[i], "PING\r\n", 6, 100);
    }
    process_sleep_ms(200);
    wire_check(&witness, "ZADD b 1 still-served", ":1");
    assert_int_equal(prlimit(server.pid, RLIMIT_NOFILE, &old, NULL), 0);
    for (int i = 0; i < CLIENTS; i++) {
        wire_close(&clients[i]);
    }
    struct wire late = wire_open(process_connect_tcp(&server));
    wire_check(&late, "PING", "PONG");
    wire_close(&late);
    late = wire_open(process_connect_unix(&server));
    wire_check(&late, "PING", "PONG");
    wire_close(&late);
    wait_for_clients(1);
}

IN_TURN(a_low_limit_of_files_is_lived_with) {
    enum { CLIENTS = 150, FILES = 128 };
    const struct process_options options = {.files_max = FILES};
    SERVER(small, &options);
    struct wire clients[CLIENTS];
    int served = 0;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = wire_open(process_connect_unix(&small));
        wire_push(&clients[i], "PING\r\n", 6, WIRE_LIMIT_MS);
        const char *reply = wire_try_reply(&clients[i]);
        served += reply && strcmp(reply, "PONG") == 0;
    }
    assert_in_range(served, 10, FILES);
    wire_check(&clients[0], "PING", "PONG");
    for (int i = 0; i < CLIENTS; i++) {
        wire_close(&clients[i]);
    }
    WIRE(late, process_connect_unix(&small));
    int64_t give_up_at = process_now_ms() + WIRE_LIMIT_MS;
    for (;;) {
        wire_push(&late, "PING\r\n", 6, WIRE_LIMIT_MS);
        const char *reply = wire_try_reply(&late);
        if (reply && strcmp(reply, "PONG") == 0) {
            break;
        }
        assert_true(process_now_ms() < give_up_at);
        wire_close(&late);
        late = wire_open(process_connect_unix(&small));
    }
}

/* ---- many are killed ---- */

struct counter {
    struct wire wire;
    long long seen; /* the last value it was answered */
    long long sent; /* increments sent at most */
    int number;
};

static void open_counter(struct counter *counter) {
    wire_close(&counter->wire);
    counter->wire = wire_open(counter->number % 2 ? process_connect_tcp(&server)
                                                  : process_connect_unix(&server));
    counter->seen = -1; /* unknown: increments of the killed connection may have been run */
}

/* Values come one after the other, without a gap, for as long as a connection lives. */
static void read_counter(struct counter *counter) {
    while (!wire_is_silent(&counter->wire, 0)) {
        const char *reply = wire_try_reply(&counter->wire);
        if (!reply) {
            open_counter(counter);
            return;
        }
        long long value = strtoll(reply, NULL, 10);
        if (counter->seen >= 0) {
            assert_int_equal(value, counter->seen + 1);
        }
        counter->seen = value;
        assert_true(value <= counter->sent);
    }
}

IN_TURN(clients_killed_while_pipelining_lose_no_step) {
    enum { CLIENTS = 16, ROUNDS = 400, COMMANDS = 50 };
    struct random random = random_begin(__func__);
    struct counter counters[CLIENTS];
    memset(counters, 0, sizeof counters);
    TEXT(request);
    for (int i = 0; i < CLIENTS; i++) {
        counters[i].wire.fd = -1;
        counters[i].number = i;
        open_counter(&counters[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            request.size = 0;
            for (int c = 0; c < COMMANDS; c++) {
                text_command(&request, "ZINCRBY b 1 m%d", i);
            }
            counters[i].sent += COMMANDS;
            wire_push(&counters[i].wire, request.at, request.size, WIRE_LIMIT_MS);
        }
        switch (random_below(&random, 6)) {
        case 0:
            wire_check_prefix(&witness, "CLIENT KILL TYPE normal", ":");
            break;
        case 1:
            wire_check_prefix(&witness, "CLIENT LIST", "id=");
            wire_check_prefix(&witness, "CLIENT KILL SKIPME yes USER default", ":");
            break;
        case 2:
            request.size = 0;
            text_format(&request, "CLIENT KILL ID %llu",
                        1 + (unsigned long long)random_below(&random, 10000));
            wire_check_prefix(&witness, request.at, ":");
            break;
        default:
            break;
        }
        for (int i = 0; i < CLIENTS; i++) {
            read_counter(&counters[i]);
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        const char *command = formatted("ZSCORE b m%d", i);
        wire_close(&counters[i].wire);
        /* The witness and the counters behind this one, if the last round did not kill them. */
        wire_wait_info_range(&witness, "connected_clients", 1, CLIENTS - i);
        long long value = strtoll(wire_ask(&witness, command), NULL, 10);
        assert_true(value <= counters[i].sent && value >= counters[i].seen);
    }
}

IN_TURN(clients_kill_each_other_and_themselves) {
    enum { ROUNDS = 200 };
    for (int round = 0; round < ROUNDS; round++) {
        WIRE(a, process_connect_tcp(&server));
        WIRE(b, process_connect_unix(&server));
        int64_t a_id = wire_ask_integer(&a, "CLIENT ID");
        int64_t b_id = wire_ask_integer(&b, "CLIENT ID");
        TEXT(request);
        text_command(&request, "PING");
        text_command(&request, "CLIENT KILL ID %lld", (long long)b_id);
        text_command(&request, "CLIENT KILL ID %lld SKIPME no", (long long)a_id);
        text_command(&request, "ZADD b 1 never");
        /* Both try at once; whoever is first kills the other and then itself. */
        TEXT(other);
        text_command(&other, "CLIENT KILL ID %lld", (long long)a_id);
        text_command(&other, "CLIENT KILL ID %lld SKIPME no", (long long)b_id);
        text_command(&other, "ZADD b 1 never");
        wire_push(&a, request.at, request.size, WIRE_LIMIT_MS);
        wire_push(&b, other.at, other.size, WIRE_LIMIT_MS);
        assert_true(wire_is_closed(&a, WIRE_LIMIT_MS));
        assert_true(wire_is_closed(&b, WIRE_LIMIT_MS));
    }
    wire_check(&witness, "EXISTS b", ":0");
    wait_for_clients(1);
}

IN_TURN(one_that_kills_itself_gets_the_answer) {
    WIRE(client, process_connect_tcp(&server));
    wire_send_text(&client, formatted("PING\r\nCLIENT KILL ID %lld SKIPME no\r\nPING\r\n",
                                      (long long)wire_ask_integer(&client, "CLIENT ID")));
    wire_expect(&client, "+PONG\r\n:1\r\n");
    assert_true(wire_is_closed(&client, WIRE_LIMIT_MS));
}

/* ---- patterns ---- */

/* Five commands that take a pattern; returns how long their answers take together. */
static int64_t ask_with_pattern(const char *key, const char *pattern, size_t pattern_size) {
    const char *keys[] = {"KEYS", pattern};
    const char *scan[] = {"SCAN", "0", "MATCH", pattern, "COUNT", "100"};
    const char *zscan[] = {"ZSCAN", key, "0", "MATCH", pattern};
    const char *config[] = {"CONFIG", "GET", pattern};
    const char *list[] = {"COMMAND", "LIST", "FILTERBY", "PATTERN", pattern};
    size_t keys_sizes[] = {4, pattern_size}, scan_sizes[] = {4, 1, 5, pattern_size, 5, 3};
    size_t zscan_sizes[] = {5, 1000, 1, 5, pattern_size};
    size_t config_sizes[] = {6, 3, pattern_size}, list_sizes[] = {7, 4, 8, 7, pattern_size};
    struct text request = {.at = NULL};
    text_command_words(&request, keys, keys_sizes, 2);
    text_command_words(&request, scan, scan_sizes, 6);
    text_command_words(&request, zscan, zscan_sizes, 5);
    text_command_words(&request, config, config_sizes, 3);
    text_command_words(&request, list, list_sizes, 5);
    int64_t begun_at = process_now_ms();
    wire_send(&witness, request.at, request.size);
    for (int i = 0; i < 5; i++) {
        const char *reply = wire_reply(&witness);
        if (pattern_size <= GLOB_PATTERN_MAX) {
            assert_int_equal(reply[0], '[');
        } else {
            assert_string_equal(reply, "-ERR pattern is too long: at most 1024 bytes");
        }
    }
    text_free(&request);
    return process_now_ms() - begun_at;
}

IN_TURN(long_patterns_end_soon) {
    static const char *const pieces[] = {"a*", "*",   "*a",  "?*", "[",     "[a", "[^",
                                         "\\", "[a-", "*?a", "a",  "[^a]*", "*b", "a*b*"};
    static const size_t sizes[] = {GLOB_PATTERN_MAX, GLOB_PATTERN_MAX + 1, 1000 * 1000};
    static char key[1001], pattern[1000 * 1000];
    memset(key, 'a', 1000);
    for (int i = 0; i < 10; i++) {
        TEXT(request);
        key[999] = (char)('0' + i);
        text_command(&request, "ZADD %s 1 %s", key, key);
        wire_send(&witness, request.at, request.size);
        wire_expect(&witness, ":1\r\n");
    }
    int64_t worst_ms = 0;
    for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
        size_t piece_size = strlen(pieces[p]);
        for (size_t i = 0; i < sizeof pattern; i++) {
            pattern[i] = pieces[p][i % piece_size];
        }
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            int64_t took_ms = ask_with_pattern(key, pattern, sizes[i]);
            worst_ms = took_ms > worst_ms ? took_ms : worst_ms;
        }
    }
    printf("five commands with a long pattern: %d ms at worst\n", (int)worst_ms);
}

TEST_MAIN(start_servers, stop_servers)
