/* Connections as their owners govern them: AUTH, CLIENT, maxclients, timeout, protected mode, the
 * unix socket. */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include "tests/support/process.h"
#include "tests/support/wire.h"

static struct process server, guarded; /* guarded: with a password */
static struct wire wire, witness;

FIXTURE(start_servers) {
    static const char *const arguments[] = {"--requirepass", "open sesame", "--auth-timeout", "0",
                                            NULL};
    const struct process_options options = {.arguments = arguments};
    return process_start(&server, NULL) && process_start(&guarded, &options) ? 0 : -1;
}

FIXTURE(stop_servers) {
    int failed = process_stop(&server);
    return process_stop(&guarded) | failed;
}

FIXTURE(connect_both) {
    wire = wire_open(process_connect_tcp(&server));
    witness = wire_open(process_connect_unix(&server));
    wire_check(&witness, "FLUSHALL", "OK");
    return 0;
}

FIXTURE(disconnect_both) {
    wire_close(&wire);
    wire_close(&witness);
    return 0;
}

/* ---- AUTH ---- */

static const char no_auth[] = "-NOAUTH Authentication required.";
static const char wrong_pass[] = "-WRONGPASS invalid username-password pair or user is disabled.";

TEST(nothing_runs_before_authentication) {
    WIRE(stranger, process_connect_tcp(&guarded));
    static const char *const refused[] = {
        "PING",
        "ZADD b 1 m",
        "ZRANGE b 0 -1",
        "INFO",
        "CONFIG GET requirepass",
        "CLIENT LIST",
        "CLIENT ID",
        "FLUSHALL",
        "KEYS *",
        "SHUTDOWN NOSAVE",
        "SLOWLOG GET",
        "MONITOR",
        "COMMAND",
        "DBSIZE",
        "SELECT 1",
        "CONFIG SET requirepass x",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        wire_check(&stranger, refused[i], no_auth);
    }
    /* What follows differs between Redis 7.0 and 7.2. */
    wire_check_prefix(&stranger, "HELLO 3",
                      "-NOAUTH HELLO must be called with the client already authenticated, "
                      "otherwise the HELLO ");
    wire_check(&stranger, "AUTH wrong", wrong_pass);
    wire_check(&stranger, "AUTH default wrong", wrong_pass);
    wire_check(&stranger, "AUTH nobody wrong", wrong_pass);
    wire_check(&stranger, "HELLO 2 AUTH default wrong", wrong_pass);
    wire_check(&stranger, "PING", no_auth);
    wire_check(&stranger, "RESET", "RESET");
    wire_send_text(&stranger, "QUIT\r\n");
    wire_expect(&stranger, "+OK\r\n");
}

#define IN_TURN(name) TEST_WITH(name, connect_both, disconnect_both)

IN_TURN(a_password_set_while_running_counts_for_newcomers) {
    wire_check(&witness, "CONFIG SET requirepass late", "OK");
    WIRE(newcomer, process_connect_tcp(&server));
    wire_check(&newcomer, "PING", no_auth);
    wire_check(&wire, "PING", "PONG");
    wire_check(&newcomer, "AUTH late", "OK");
    wire_check(&newcomer, "PING", "PONG");
    wire_send_text(&witness, "CONFIG SET requirepass \"\"\r\n");
    wire_expect(&witness, "+OK\r\n");
    wire_close(&newcomer);
    newcomer = wire_open(process_connect_tcp(&server));
    wire_check(&newcomer, "PING", "PONG");
}

IN_TURN(a_password_taken_away_lets_everybody_work) {
    wire_check(&witness, "CONFIG SET requirepass soon-gone", "OK");
    WIRE(stranger, process_connect_tcp(&server));
    wire_check(&stranger, "PING", no_auth);
    wire_send_text(&witness, "CONFIG SET requirepass \"\"\r\n");
    wire_expect(&witness, "+OK\r\n");
    wire_check(&stranger, "PING", "PONG");
    wire_check(&stranger, "ZADD b 1 m", ":1");
    /* Requests are read as those of a client that is known. */
    wire_check(&stranger, "DEL 1 2 3 4 5 6 7 8 9 10 11 12", ":0");
    wire_check_prefix(&stranger, "HELLO 2", "[server ");
    /* Who never gave a password has to give the next one; who needed none stays. */
    wire_check(&witness, "CONFIG SET requirepass another", "OK");
    wire_check(&stranger, "PING", no_auth);
    wire_check(&wire, "PING", "PONG");
    wire_check(&stranger, "AUTH another", "OK");
    wire_send_text(&witness, "CONFIG SET requirepass \"\"\r\n");
    wire_expect(&witness, "+OK\r\n");
}

TEST(more_clients_than_descriptors_are_refused) {
    static const char refusal[] =
        "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system "
        "is not able to handle the specified number of clients, try with ";
    const struct process_options options = {.files_max = 1024};
    SERVER(small, &options);
    WIRE(client, process_connect_unix(&small));
    const char *held = wire_ask(&client, "CONFIG GET maxclients");
    const char *before = formatted("%s", held);
    assert_true(process_has_logged(&small, " maxclients="));
    /* No system has so many. */
    const char *reply = wire_ask(&client, "CONFIG SET timeout 7 maxclients 4294967295");
    assert_int_equal(strncmp(reply, refusal, strlen(refusal)), 0);
    int clients = atoi(reply + strlen(refusal));
    assert_true(clients > 0);
    wire_check(&client, "CONFIG GET maxclients", before);
    wire_check(&client, "CONFIG GET timeout", "[timeout 0]");
    wire_check(&client, formatted("CONFIG SET maxclients %d", clients), "OK");
}

TEST(secrets_are_in_no_log) {
    WIRE(friend, process_connect_tcp(&guarded));
    WIRE(watcher, process_connect_tcp(&guarded));
    wire_send_text(&watcher, "AUTH \"open sesame\"\r\nMONITOR\r\n");
    wire_expect(&watcher, "+OK\r\n+OK\r\n");
    wire_send_text(&friend, "AUTH \"open sesame\"\r\nHELLO 2 AUTH default \"open sesame\"\r\n"
                            "AUTH \"sesame wrong\"\r\nCONFIG SET slowlog-log-slower-than 0\r\n"
                            "AUTH default \"open sesame\"\r\n"
                            "HELLO 2 AUTH default \"open sesame\"\r\n"
                            "CONFIG SET requirepass \"open sesame\"\r\nECHO finished\r\n"
                            "CONFIG SET slowlog-log-slower-than 10000\r\n");
    for (int i = 0; i < 9; i++) {
        wire_reply(&friend);
    }
    assert_null(strstr(wire_ask(&friend, "SLOWLOG GET -1"), "sesame"));
    assert_null(strstr(wire_ask(&friend, "CLIENT LIST"), "sesame"));
    const char *seen;
    do {
        seen = wire_reply(&watcher);
        assert_null(strstr(seen, "sesame"));
    } while (!strstr(seen, "finished"));
    assert_false(process_has_logged(&guarded, "sesame"));
}

/* ---- CLIENT ---- */

IN_TURN(a_pause_holds_writes_and_keeps_their_order) {
    wire_check(&witness, "CLIENT PAUSE 60000 WRITE", "OK");
    wire_send_text(&wire, "ZCARD b\r\nZADD b 1 m\r\nZCARD b\r\nPING\r\n");
    wire_expect(&wire, ":0\r\n");
    assert_true(wire_is_silent(&wire, 200));
    wire_check(&witness, "ZCARD b", ":0");
    wire_check(&witness, "PING", "PONG");
    wire_check(&witness, "CLIENT UNPAUSE", "OK");
    wire_expect(&wire, ":1\r\n:1\r\n+PONG\r\n");
    wire_check(&witness, "ZCARD b", ":1");
    wire_check_prefix(&witness, "CLIENT PAUSE -1", "-ERR timeout is negative");
    wire_check_prefix(&witness, "CLIENT PAUSE x", "-ERR timeout is not an integer or out of range");
}

IN_TURN(a_pause_of_all_ends_by_itself) {
    int64_t begun_at = process_now_ms(); /* before the pause, however late its answer comes */
    wire_check(&witness, "CLIENT PAUSE 300 ALL", "OK");
    wire_check(&wire, "PING", "PONG");
    assert_true(process_now_ms() - begun_at >= 250);
    wire_check(&witness, "PING", "PONG");
}

/* Whoever has paused may be gone: a newcomer can say who it is, and end the pause. */
TEST(a_newcomer_can_end_a_pause_of_all) {
    static const char *const arguments[] = {"--requirepass", "open sesame", "--auth-timeout", "0",
                                            NULL};
    const struct process_options options = {.arguments = arguments};
    SERVER(closed, &options);
    WIRE(pausing, process_connect_tcp(&closed));
    wire_send_text(&pausing, "AUTH \"open sesame\"\r\nCLIENT PAUSE 3600000 ALL\r\n");
    wire_expect(&pausing, "+OK\r\n+OK\r\n");
    wire_send_text(&pausing, "PING\r\n");
    assert_true(wire_is_silent(&pausing, 200));
    WIRE(newcomer, process_connect_tcp(&closed));
    wire_send_text(&newcomer, "AUTH \"open sesame\"\r\nSELECT 1\r\nCLIENT SETNAME rescue\r\n"
                              "RESET\r\nHELLO 2 AUTH default \"open sesame\" SETNAME again\r\n");
    wire_expect(&newcomer, "+OK\r\n+OK\r\n+OK\r\n+RESET\r\n");
    assert_non_null(strstr(wire_reply(&newcomer), "leaderboard"));
    assert_non_null(strstr(wire_ask(&newcomer, "CLIENT LIST"), "name=again"));
    wire_check(&newcomer, "CLIENT UNPAUSE", "OK");
    wire_expect(&pausing, "+PONG\r\n");
    wire_check(&newcomer, "PING", "PONG");
}

IN_TURN(paused_clients_may_be_killed_or_leave) {
    enum { CLIENTS = 20 };
    struct wire clients[CLIENTS];
    wire_check(&witness, "CLIENT PAUSE 60000 WRITE", "OK");
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = wire_open(process_connect_tcp(&server));
        wire_check(&clients[i], "PING", "PONG"); /* the server has it, so it can be killed */
        wire_send_text(&clients[i], "ZADD b 1 m\r\nPING\r\nZADD b 1 n\r\n");
        if (i % 3 == 0) {
            wire_abort(&clients[i]);
        }
    }
    wire_check(&witness, "PING", "PONG");
    wire_check_prefix(&witness, "CLIENT KILL TYPE normal", ":");
    for (int i = 0; i < CLIENTS; i++) {
        if (i % 3) {
            assert_true(wire_is_closed(&clients[i], WIRE_LIMIT_MS));
        }
        wire_close(&clients[i]);
    }
    wire_check(&witness, "CLIENT UNPAUSE", "OK");
    wire_check(&witness, "EXISTS b", ":0");
}

IN_TURN(monitor_shows_what_runs) {
    wire_check(&wire, "MONITOR", "OK");
    wire_check(&witness, "ZADD b 1 zoe", ":1");
    const char *line = wire_reply(&wire);
    assert_non_null(strstr(line, "\"ZADD\" \"b\" \"1\" \"zoe\""));
    assert_non_null(strstr(line, " [0 unix:"));
    wire_close(&wire);
    wire_check(&witness, "ZADD b 2 adam", ":1");
}

/* ---- network threads ---- */

struct thread_figures {
    unsigned clients;
    unsigned long long reads, writes;
};

/* One line of INFO; *at moves behind it. */
static struct thread_figures read_figures(const char **at, unsigned thread) {
    struct thread_figures figures;
    unsigned number;
    *at = strstr(*at, "io_thread_");
    assert_non_null(*at);
    assert_int_equal(sscanf(*at, "io_thread_%u:clients=%u,reads=%llu,writes=%llu\r\n", &number,
                            &figures.clients, &figures.reads, &figures.writes),
                     4);
    assert_int_equal(number, thread);
    *at += strlen("io_thread_");
    return figures;
}

/* Until every thread has so many clients, and has read and written at least so often. The lines are as
 * of the last second. */
static void wait_for_threads(struct wire *client, unsigned threads, unsigned clients,
                             unsigned calls) {
    int64_t give_up_at = process_now_ms() + WIRE_LIMIT_MS;
    for (unsigned ready = 0; ready < threads;) {
        assert_true(process_now_ms() < give_up_at);
        const char *info = wire_ask(client, "INFO server");
        assert_non_null(strstr(info, "\nio_threads_active:1\r\n"));
        ready = 0;
        for (unsigned i = 0; i < threads; i++) {
            const struct thread_figures seen = read_figures(&info, i);
            ready += seen.clients == clients && seen.reads >= calls && seen.writes >= calls;
        }
        assert_null(strstr(info, "io_thread_")); /* there are no more */
    }
}

TEST(clients_are_spread_evenly_over_the_network_threads) {
    enum { THREADS = 4, CLIENTS = 40, PINGS = 5 };
    static const char *const arguments[] = {"--io-threads", "4", NULL};
    const struct process_options options = {.arguments = arguments};
    SERVER(many, &options);
    struct wire clients[CLIENTS];
    clients[0] = wire_open(process_connect_unix(&many));
    wire_wait_info(&clients[0], "connected_clients", 1); /* the probe of process_start has left */
    for (int i = 1; i < CLIENTS; i++) {
        clients[i] = wire_open(i % 2 ? process_connect_tcp(&many) : process_connect_unix(&many));
    }
    for (int i = 0; i < CLIENTS; i++) {
        for (int ping = 0; ping < PINGS; ping++) {
            wire_check(&clients[i], "PING", "PONG");
        }
    }
    wait_for_threads(&clients[0], THREADS, CLIENTS / THREADS, CLIENTS / THREADS * PINGS);
    wire_check(&clients[0], "CONFIG RESETSTAT", "OK");
    assert_non_null(strstr(wire_ask(&clients[0], "INFO server"), "\nio_threads_active:1\r\n"));
    wire_check(&clients[0], "CONFIG GET io-threads", "[io-threads 4]");
    wire_check(&clients[0], "CONFIG SET io-threads 2",
               "-ERR CONFIG SET failed (possibly related to argument 'io-threads') - can't set "
               "immutable config");
    wire_check(&clients[0], "CONFIG GET io-threads", "[io-threads 4]");
    for (int i = 0; i < CLIENTS; i++) {
        wire_close(&clients[i]);
    }
}

TEST(one_thread_has_a_line_as_well) {
    static const char *const arguments[] = {"--io-threads", "1", NULL};
    const struct process_options options = {.arguments = arguments};
    SERVER(one, &options);
    WIRE(client, process_connect_unix(&one));
    const char *info = wire_ask(&client, "INFO server");
    assert_non_null(strstr(info, "\nio_threads_active:0\r\n"));
    (void)read_figures(&info, 0);
    assert_null(strstr(info, "io_thread_"));
}

/* ---- limits of connections ---- */

TEST(the_client_past_maxclients_is_turned_away) {
    static const char *const arguments[] = {"--maxclients", "10", NULL};
    const struct process_options options = {.arguments = arguments};
    SERVER(small, &options);
    struct wire clients[10];
    for (int i = 0; i < 10; i++) {
        clients[i] = wire_open(i % 2 ? process_connect_tcp(&small) : process_connect_unix(&small));
        /* The probe of process_start may have been counted still. */
        const char *reply = wire_ask(&clients[i], "PING");
        assert_string_equal(reply, "PONG");
    }
    for (int i = 0; i < 3; i++) {
        WIRE(late, i % 2 ? process_connect_tcp(&small) : process_connect_unix(&small));
        wire_expect(&late, "-ERR max number of clients reached\r\n");
        assert_true(wire_is_closed(&late, WIRE_LIMIT_MS));
    }
    assert_true(process_has_logged(&small, "warning maxclients reached, rejecting new clients"));
    wire_close(&clients[9]);
    const char *reply = NULL;
    for (int tries = 0; tries < 200; tries++) {
        struct wire late = wire_open(process_connect_tcp(&small));
        wire_push(&late, "PING\r\n", 6, WIRE_LIMIT_MS);
        reply = wire_try_reply(&late);
        bool is_in = reply && strcmp(reply, "PONG") == 0;
        wire_close(&late);
        if (is_in) {
            break;
        }
        reply = NULL;
        process_sleep_ms(10);
    }
    assert_non_null(reply);
    wire_check(&clients[0], "CONFIG SET maxclients 50", "OK");
    for (int i = 0; i < 20; i++) {
        WIRE(more, process_connect_tcp(&small));
        wire_check(&more, "PING", "PONG");
    }
    for (int i = 0; i < 9; i++) {
        wire_close(&clients[i]);
    }
}

/* Network threads have descriptors of their own. With those the server lowers maxclients, or raises its
 * limit of descriptors where it may. */
TEST(every_client_up_to_maxclients_is_served_however_many_threads_there_are) {
    enum { CLIENTS = 600, FILES = CLIENTS + 100 };
    static const char *const arguments[] = {"--maxclients", "600", "--io-threads", "64", NULL};
    const struct process_options options = {.arguments = arguments, .files_max = FILES};
    SERVER(full, &options);
    struct wire clients[CLIENTS];
    clients[0] = wire_open(process_connect_unix(&full));
    wire_wait_info(&clients[0], "connected_clients", 1);
    int count = 0;
    assert_int_equal(
        sscanf(wire_ask(&clients[0], "CONFIG GET maxclients"), "[maxclients %d]", &count), 1);
    assert_in_range(count, 100, CLIENTS);
    for (int i = 1; i < count; i++) {
        clients[i] = wire_open(process_connect_unix(&full));
        wire_check(&clients[i], "PING", "PONG");
    }
    struct wire late = wire_open(process_connect_unix(&full));
    wire_expect(&late, "-ERR max number of clients reached\r\n");
    assert_true(wire_is_closed(&late, WIRE_LIMIT_MS));
    wire_close(&late);
    for (int i = 0; i < count; i++) {
        wire_close(&clients[i]);
    }
}

TEST(idle_clients_are_closed_after_the_timeout) {
    /* tests/server/loop/test_connection.c shows, on a clock of its own, that a busy one stays. */
    const struct process_options options = {.arguments = (const char *[]){"--timeout", "1", NULL}};
    SERVER(closing, &options);
    WIRE(idle, process_connect_tcp(&closing));
    assert_true(wire_is_closed(&idle, WIRE_LIMIT_MS));
}

/* An IPv4 address of this machine that is not its loopback. */
static bool find_outer_address(char *out, size_t size) {
    struct ifaddrs *all = NULL;
    bool is_found = false;
    if (getifaddrs(&all) != 0) {
        return false;
    }
    for (const struct ifaddrs *one = all; one && !is_found; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) {
            continue;
        }
        struct sockaddr_in address;
        memcpy(&address, one->ifa_addr, sizeof address);
        is_found = (ntohl(address.sin_addr.s_addr) >> 24) != 127 &&
                   inet_ntop(AF_INET, &address.sin_addr, out, (socklen_t)size) != NULL;
    }
    freeifaddrs(all);
    return is_found;
}

TEST(protected_mode_turns_strangers_away) {
    char address[64];
    if (!find_outer_address(address, sizeof address)) {
        skip();
    }
    static const char *const arguments[] = {"--bind", "0.0.0.0", "--protected-mode", "yes", NULL};
    const struct process_options options = {.arguments = arguments};
    SERVER(open, &options);
    WIRE(stranger, process_connect_address(address, open.port));
    const char *reply = wire_try_reply(&stranger);
    assert_non_null(reply);
    assert_int_equal(strncmp(reply, "-DENIED ", 8), 0);
    assert_true(wire_is_closed(&stranger, WIRE_LIMIT_MS));
    wire_close(&stranger);

    WIRE(local, process_connect_tcp(&open));
    wire_check(&local, "CONFIG SET requirepass secret", "OK");
    stranger = wire_open(process_connect_address(address, open.port));
    wire_check(&stranger, "PING", no_auth);
    wire_check(&stranger, "AUTH secret", "OK");
    wire_close(&stranger);
    wire_send_text(&local, "CONFIG SET requirepass \"\"\r\nCONFIG SET protected-mode no\r\n");
    wire_expect(&local, "+OK\r\n+OK\r\n");
    stranger = wire_open(process_connect_address(address, open.port));
    wire_check(&stranger, "PING", "PONG");
}

TEST(the_unix_socket_has_its_mode_from_the_first_moment) {
    static const char *const modes[] = {"700", "770", "777"};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        const char *arguments[] = {"--unixsocketperm", modes[i], NULL};
        const struct process_options options = {.arguments = arguments, .has_no_tcp = true};
        struct process local;
        assert_true(process_start(&local, &options));
        struct stat seen;
        assert_int_equal(stat(local.socket_path, &seen), 0);
        assert_int_equal(seen.st_mode & 07777, strtol(modes[i], NULL, 8));
        struct wire client = wire_open(process_connect_unix(&local));
        wire_check(&client, "CONFIG GET port", "[port 0]");
        wire_close(&client);
        const char *path = formatted("%s", local.socket_path);
        process_signal(&local, 15);
        assert_true(process_wait(&local, PROCESS_STOP_LIMIT_MS));
        assert_int_equal(local.exit_status, 0);
        assert_int_not_equal(stat(path, &seen), 0); /* it goes with the server */
        process_stop(&local);
    }
}

TEST_MAIN(start_servers, stop_servers)
