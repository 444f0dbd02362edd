/* A server's life: how it refuses to start, what it does when nobody asks (expiry), how it stays
 * awake under big work, and how it ends. */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/wire.h"

enum {
    BIG_BOARD = 1000000,
    BIG_BOARD_SHORT = 100000,
    MEMBERS_PER_COMMAND = 500,
};

static struct process server;
static struct wire wire;

FIXTURE(start_server) {
    if (!process_start(&server, NULL)) {
        return -1;
    }
    wire = wire_open(process_connect_tcp(&server));
    return 0;
}

FIXTURE(stop_server) {
    wire_close(&wire);
    return process_stop(&server);
}

/* ---- starting ---- */

static void check_start_refused(const struct process_options *options, const char *const *told) {
    assert_true(process_start_is_refused(options, told));
}

TEST(a_taken_port_is_said_and_exits_1) {
    char port[8];
    snprintf(port, sizeof port, "%u", server.port);
    const struct process_options options = {.port = server.port};
    check_start_refused(&options, (const char *[]){port, "ddress already in use", NULL});
    wire_check(&wire, "PING", "PONG");
}

TEST(a_taken_unix_socket_is_left_to_its_owner) {
    const char *arguments[] = {"--unixsocket", server.socket_path, NULL};
    const struct process_options options = {.arguments = arguments};
    check_start_refused(&options, (const char *[]){server.socket_path, NULL});
    const char *nowhere[] = {"--unixsocket", "/no-such-directory/socket", NULL};
    const struct process_options elsewhere = {.arguments = nowhere};
    check_start_refused(&elsewhere, (const char *[]){"No such file or directory", NULL});
    WIRE(local, process_connect_unix(&server));
    wire_check(&local, "PING", "PONG");
}

TEST(a_bad_setting_is_named_with_file_and_line) {
    static const struct {
        const char *text, *place, *word;
    } cases[] = {
        {"port 7000\n\n# fine so far\nno-such-setting 1\n", "test.conf:4", "no-such-setting"},
        {"maxclients many\n", "test.conf:1", "maxclients"},
        {"timeout 5\nport 70000\n", "test.conf:2", "port"},
        {"layout wide FIELD score 65\n", "test.conf:1", "65"},
        {"layout a FIELD score 33 TIME 32 S\n", "test.conf:1", "a"},
        {"requirepass \"open\n", "test.conf:1", NULL},
        {"\n\nprotected-mode perhaps\n", "test.conf:3", "protected-mode"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct process_options options = {.config = cases[i].text};
        check_start_refused(&options, (const char *[]){cases[i].place, cases[i].word, NULL});
    }
    const struct process_options several = {.config = "maxclients many\ntimeout 5\nport 70000\n"};
    check_start_refused(&several,
                        (const char *[]){"test.conf:1", "maxclients", "test.conf:3", "port", NULL});
    const struct process_options no_layout = {.config = "board week:* weekly\n"};
    check_start_refused(&no_layout, (const char *[]){"weekly", NULL});
    const char *unknown[] = {"--no-such-setting", "1", NULL};
    const struct process_options by_word = {.arguments = unknown};
    check_start_refused(&by_word, (const char *[]){"no-such-setting", NULL});
    const char *missing[] = {"--bind", "192.0.2.77", NULL};
    const struct process_options elsewhere = {.arguments = missing};
    check_start_refused(&elsewhere, (const char *[]){"192.0.2.77", NULL});
}

TEST(the_configuration_file_counts_and_the_command_line_wins) {
    static const char *const arguments[] = {"--timeout", "99", NULL};
    const struct process_options options = {.config = "timeout 7\nmaxclients 77\n",
                                            .arguments = arguments};
    SERVER(configured, &options);
    WIRE(client, process_connect_tcp(&configured));
    wire_check(&client, "CONFIG GET timeout", "[timeout 99]");
    wire_check(&client, "CONFIG GET maxclients", "[maxclients 77]");
    wire_check(&client, "CONFIG SET maxclients 55", "OK");
    wire_check(&client, "CONFIG REWRITE", "OK");
    char line[256];
    FILE *file = fopen(formatted("%s", configured.config_path), "r");
    assert_non_null(file);
    bool is_written = false;
    while (fgets(line, sizeof line, file)) {
        is_written = is_written || strcmp(line, "maxclients 55\n") == 0;
    }
    fclose(file);
    assert_true(is_written);
}

TEST(help_and_version_print_and_exit_0) {
    for (int i = 0; i < 2; i++) {
        char text[256] = "";
        FILE *output = popen(
            formatted("%s %s 2>&1", process_default_program(), i ? "--version" : "--help"), "r");
        assert_non_null(output);
        size_t got = fread(text, 1, sizeof text - 1, output);
        assert_true(got > 0);
        char rest[4096];
        while (fread(rest, 1, sizeof rest, output) > 0) {}
        assert_int_equal(pclose(output), 0);
        assert_non_null(strstr(text, "leaderboard"));
    }
}

/* What everybody on the machine can read of a process. Blanks between its arguments. */
static char *arguments_of(const struct process *process) {
    static char text[8192];
    FILE *file = fopen(formatted("/proc/%d/cmdline", (int)process->pid), "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    for (size_t i = 0; i < size; i++) {
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    text[size] = '\0';
    return text;
}

TEST(passwords_on_the_command_line_are_read_and_then_hidden) {
    static const char *const arguments[] = {"--requirepass",
                                            "secret-one",
                                            "--masterauth secret-two",
                                            "--tls-key-file-pass",
                                            "secret-three",
                                            "--USER",
                                            "bob",
                                            "on",
                                            ">secret-four",
                                            "+@all",
                                            "--masteruser",
                                            "shown",
                                            NULL};
    const struct process_options options = {.arguments = arguments};
    SERVER(hidden, &options);
    struct wire client = wire_open(process_connect_tcp(&hidden));
    wire_check(&client, "AUTH bob secret-four", "OK");
    wire_check(&client, "AUTH default secret-one", "OK");
    wire_close(&client);
    const char *text = arguments_of(&hidden);
    assert_null(strstr(text, "secret"));
    assert_non_null(strstr(text, "--requirepass *"));
    assert_non_null(strstr(text, "--masteruser shown"));
}

static int connect_ipv6_loopback(uint16_t port) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    address.sin6_addr = in6addr_loopback;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

TEST(several_addresses_are_listened_on) {
    static const char *const arguments[] = {"--bind", "127.0.0.1", "-::1", NULL};
    const struct process_options options = {.arguments = arguments};
    SERVER(both, &options);
    struct wire client = wire_open(process_connect_tcp(&both));
    wire_check(&client, "PING", "PONG");
    wire_close(&client);
    int fd = connect_ipv6_loopback(both.port);
    if (fd >= 0) { /* "-": may be missing on this machine */
        client = wire_open(fd);
        wire_check(&client, "PING", "PONG");
        assert_non_null(strstr(wire_ask(&client, "CLIENT INFO"), " addr=[::1]:"));
        wire_close(&client);
    }
}

/* ---- in the background ---- */

TEST(a_daemon_writes_its_pid_and_takes_it_away) {
    struct process daemon;
    assert_true(process_start_daemon(&daemon));
    struct wire client = wire_open(process_connect_tcp(&daemon));
    assert_int_equal(wire_info(&client, "process_id"), daemon.pid);
    wire_close(&client);
    process_signal(&daemon, SIGTERM);
    assert_true(process_wait(&daemon, PROCESS_STOP_LIMIT_MS));
    assert_false(file_exists(directory_join(daemon.directory, "pid")));
    assert_int_equal(process_stop(&daemon), 0);
}

/* What fills the big board, and the answers to it. */
static void write_big_board(struct text *request, struct text *replies) {
    uint32_t count = is_short_run() ? BIG_BOARD_SHORT : BIG_BOARD;
    for (uint32_t i = 0; i < count; i++) {
        if (i % MEMBERS_PER_COMMAND == 0) {
            text_format(request, "*%d\r\n$4\r\nZADD\r\n$3\r\nbig\r\n", 2 + 2 * MEMBERS_PER_COMMAND);
            text_format(replies, ":%d\r\n", MEMBERS_PER_COMMAND);
        }
        text_format(request, "$6\r\n%06u\r\n$7\r\nm%06u\r\n",
                    (uint32_t)((uint64_t)i * 611953 % 900000) + 100000, i);
    }
}

static int count_threads(const struct process *process) {
    DIR *directory = opendir(formatted("/proc/%d/task", (int)process->pid));
    int count = 0;
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(directory);
    return count;
}

enum { MIB = 1 << 20 };

/* Fill a big board, remove it, and wait until the memory is given back, which is so when no more
 * than this is resident. Sanitizers keep what is freed, and there the size is any. */
static void check_memory_comes_back(struct process *process, uint64_t size_max) {
    WIRE(client, process_connect_tcp(process));
    struct text filling = {.at = NULL}, filled = {.at = NULL};
    /* Each command goes to the slow log, which keeps it when the board is gone. */
    wire_check(&client, "CONFIG SET slowlog-log-slower-than 0", "OK");
    int64_t used_before = wire_info(&client, "used_memory");
    write_big_board(&filling, &filled);
    wire_send(&client, filling.at, filling.size);
    wire_expect_bytes(&client, filled.at, filled.size);
    uint64_t full_size = process_resident_size(process);
    assert_true(wire_info(&client, "used_memory") > used_before + MIB);
    wire_check(&client, "FLUSHALL", "OK");
    wire_wait_info_range(&client, "used_memory", 0, used_before + MIB);
    uint64_t size = process_resident_size(process);
    int64_t give_up_at = process_now_ms() + PROCESS_STOP_LIMIT_MS;
    while (!process_is_sanitized() && size > size_max) {
        if (process_now_ms() > give_up_at) {
            fail_msg("%llu MiB stay resident of %llu", (unsigned long long)size / MIB,
                     (unsigned long long)full_size / MIB);
        }
        process_sleep_ms(50);
        size = process_resident_size(process);
    }
    printf("%llu MiB when full, %llu MiB when empty\n", (unsigned long long)full_size / MIB,
           (unsigned long long)size / MIB);
    text_free(&filling);
    text_free(&filled);
}

/* What is begun before it goes to the background would be lost by that: the threads, and among them
 * the one that gives memory back. */
TEST(a_daemon_has_the_threads_and_the_memory_of_any_other_server) {
    struct process usual, daemon;
    assert_true(process_start(&usual, NULL));
    assert_true(process_start_daemon(&daemon));
    int usual_threads = count_threads(&usual);
    /* TSan begins one of its own behind a fork. */
    assert_in_range(count_threads(&daemon), usual_threads, usual_threads + process_is_sanitized());
    uint64_t size_max = process_resident_size(&usual) + 8 * MIB;
    check_memory_comes_back(&usual, size_max);
    check_memory_comes_back(&daemon, size_max);
    assert_int_equal(process_stop(&daemon), 0);
    assert_int_equal(process_stop(&usual), 0);
}

/* ---- running ---- */

TEST(keys_expire_though_nobody_reads_them) {
    struct text request = {.at = NULL};
    for (int i = 0; i < 1000; i++) {
        text_command(&request, "ZADD expiring:%d 1 a 2 b", i);
        text_command(&request, "PEXPIRE expiring:%d %d", i, 50 + i % 200);
    }
    text_command(&request, "ZADD staying 1 a");
    wire_send(&wire, request.at, request.size);
    text_free(&request);
    for (int i = 0; i < 1000; i++) {
        wire_expect(&wire, ":2\r\n:1\r\n");
    }
    wire_expect(&wire, ":1\r\n");
    WAIT_UNTIL(wire_ask_integer(&wire, "DBSIZE") <= 1);
    wire_check(&wire, "KEYS *", "[staying]");
    assert_non_null(strstr(wire_ask(&wire, "INFO stats"), "expired_keys:1000"));
    wire_check(&wire, "FLUSHALL", "OK");
}

/* Others get their answers while a big board goes; the longest wait is printed. */
TEST(big_removals_do_not_hold_up_the_others) {
    static const char *const removals[] = {
        "FLUSHALL",      "DEL big",        "UNLINK big", "ZREMRANGEBYRANK big 0 -1",
        "PEXPIRE big 1", "FLUSHALL ASYNC",
    };
    WIRE(other, process_connect_unix(&server));
    struct text filling = {.at = NULL}, filled = {.at = NULL};
    write_big_board(&filling, &filled);
    for (size_t i = 0; i < sizeof removals / sizeof removals[0]; i++) {
        wire_send(&wire, filling.at, filling.size);
        wire_expect_bytes(&wire, filled.at, filled.size);
        uint64_t held = process_resident_size(&server);
        struct text request = {.at = NULL};
        text_command(&request, "%s", removals[i]);
        text_command(&request, "ZADD big 1 fresh");
        wire_send(&wire, request.at, request.size);
        text_free(&request);
        int64_t worst_ms = 0;
        for (int64_t until = process_now_ms() + 200; process_now_ms() < until;) {
            int64_t asked_at = process_now_ms();
            wire_check(&other, "PING", "PONG");
            int64_t took_ms = process_now_ms() - asked_at;
            worst_ms = took_ms > worst_ms ? took_ms : worst_ms;
        }
        printf("%s: another client waited %d ms at most; %llu -> %llu MiB\n", removals[i],
               (int)worst_ms, (unsigned long long)(held >> 20),
               (unsigned long long)(process_resident_size(&server) >> 20));
        wire_reply(&wire);
        wire_reply(&wire);
        process_sleep_ms(5);
        wire_check(&wire, "ZRANGE big 0 -1", strstr(removals[i], "EXPIRE") ? "[]" : "[fresh]");
        wire_check(&wire, "FLUSHALL", "OK");
    }
    text_free(&filling);
    text_free(&filled);
}

TEST(a_full_server_refuses_writers_and_serves_readers) {
    SERVER(small, NULL);
    WIRE(client, process_connect_tcp(&small));
    wire_check(&client, "CONFIG SET maxmemory 4mb", "OK");
    const char *reply = ":1";
    int added = 0;
    for (; reply[0] == ':' && added < 1000000; added++) {
        reply =
            wire_ask(&client, formatted("ZADD b:%d %d member-%032d", added % 100, added, added));
    }
    assert_string_equal(reply, "-OOM command not allowed when used memory > 'maxmemory'.");
    wire_check(&client, "ZSCORE b:0 member-00000000000000000000000000000000", "0");
    wire_check_prefix(&client, "ZINCRBY b:0 1 member-00000000000000000000000000000000", "-OOM");
    assert_int_equal(wire_ask_integer(&client, "ZCARD b:1"),
                     wire_ask_integer(&client, "ZCOUNT b:1 -inf +inf"));
    wire_check(&client, "ZREM b:0 member-00000000000000000000000000000000", ":1");
    wire_check_prefix(&client, "ZPOPMAX b:1", "[member-");
    wire_check(&client, "CONFIG SET maxmemory 0", "OK");
    wire_check(&client, "ZADD b:0 1 late", ":1");
}

/* ---- ending ---- */

TEST(sigterm_answers_what_it_has_and_exits_0) {
    enum { COMMANDS = 30, MEMBERS = 500 };
    struct process ending;
    assert_true(process_start(&ending, NULL));
    struct wire client = wire_open(process_connect_tcp(&ending));
    struct wire idle = wire_open(process_connect_tcp(&ending));
    struct wire half = wire_open(process_connect_unix(&ending));
    wire_send_text(&half, "*2\r\n$4\r\nECHO\r\n$100\r\nabc");
    struct text request = {.at = NULL}, replies = {.at = NULL};
    text_format(&request, "*%d\r\n$4\r\nZADD\r\n$1\r\nb\r\n", 2 + 2 * MEMBERS);
    text_format(&replies, ":%d\r\n", MEMBERS);
    for (int i = 0; i < MEMBERS; i++) {
        text_format(&request, "$1\r\n1\r\n$16\r\nmember-%09d\r\n", i);
    }
    for (int i = 0; i < COMMANDS; i++) {
        text_command(&request, "ZRANGE b 0 -1");
    }
    wire_push(&client, request.at, request.size, WIRE_LIMIT_MS);
    while (strcmp(wire_ask(&idle, "ZCARD b"), ":500") != 0) {
    } /* then the requests have been read */
    process_signal(&ending, SIGTERM);
    wire_expect_bytes(&client, replies.at, replies.size);
    for (int i = 0; i < COMMANDS; i++) {
        assert_int_equal(strlen(wire_reply(&client)), MEMBERS * 17 + 1);
    }
    assert_true(wire_is_closed(&client, WIRE_LIMIT_MS));
    assert_true(wire_is_closed(&idle, WIRE_LIMIT_MS));
    assert_true(wire_is_closed(&half, WIRE_LIMIT_MS));
    assert_true(process_wait(&ending, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(ending.exit_status, 0);
    assert_int_equal(process_connect_tcp(&ending), -1);
    text_free(&request);
    text_free(&replies);
    wire_close(&client);
    wire_close(&idle);
    wire_close(&half);
    process_stop(&ending);
}

TEST(a_second_sigterm_waits_for_nobody) {
    struct process ending;
    assert_true(process_start(&ending, NULL));
    struct wire reader = wire_open(process_connect_tcp(&ending));
    struct wire other = wire_open(process_connect_unix(&ending));
    TEXT(request);
    text_command(&request, "ZADD b 1 %060000d", 7);
    wire_send(&other, request.at, request.size);
    wire_expect(&other, ":1\r\n");
    request.size = 0;
    for (int i = 0; i < 400; i++) { /* 24 MB of replies that nobody reads */
        text_command(&request, "ZRANGE b 0 -1");
    }
    wire_push(&reader, request.at, request.size, WIRE_LIMIT_MS);
    wire_check(&other, "ZCARD b", ":1");
    process_signal(&ending, SIGTERM);
    WAIT_UNTIL(process_has_logged(
        &ending, "shutdown: clients=")); /* two that wait to be delivered are one */
    process_signal(&ending, SIGTERM);
    assert_true(process_wait(&ending, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(ending.exit_status, 0);
    assert_false(process_has_logged(&ending, "did not read their replies"));
    wire_close(&reader);
    wire_close(&other);
    process_stop(&ending);
}

TEST(a_layout_that_cannot_hold_today_is_warned_of) {
    const struct process_options options = {
        .config =
            "layout over FIELD s 33 TIME 20 S\nlayout fine FIELD s 33 TIME 31 S\nboard * over\n"};
    struct process warned;
    assert_true(process_start(&warned, &options));
    WAIT_UNTIL(process_has_logged(&warned, "2020-01-01T00:00:00Z..2020-01-13"));
    assert_true(process_has_logged(&warned, "layout=over"));
    assert_false(process_has_logged(&warned, "layout=fine"));
    assert_false(process_has_logged(&warned, "layout=default"));
    process_stop(&warned);
}

/* Ask until some of the replies stay with the server: far less than it would hold a client for. */
static void ask_until_unsent(const struct process *process, struct wire *reader) {
    WIRE(witness, process_connect_unix(process));
    TEXT(request);
    text_command(&request, "ZADD b 1 %060000d", 7);
    wire_send(&witness, request.at, request.size);
    wire_expect(&witness, ":1\r\n");
    request.size = 0;
    text_command(&request, "ZRANGE b 0 -1");
    for (bool is_unsent = false; !is_unsent;) {
        wire_push(reader, request.at, request.size, WIRE_LIMIT_MS);
        wire_check(&witness, "ZCARD b", ":1"); /* the replies before are written */
        const char *list = wire_ask(&witness, "CLIENT LIST");
        for (const char *at = list; (at = strstr(at, " obl=")) != NULL; at++) {
            is_unsent |= at[5] != '0';
        }
    }
}

TEST(who_breaks_off_while_it_ends_is_not_waited_for) {
    struct process ending;
    assert_true(process_start(&ending, NULL));
    struct wire reader = wire_open(process_connect_tcp(&ending));
    ask_until_unsent(&ending, &reader);
    process_signal(&ending, SIGTERM);
    WAIT_UNTIL(process_has_logged(&ending, "shutdown: clients="));
    wire_abort(&reader);
    assert_true(process_wait(&ending, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(ending.exit_status, 0);
    assert_false(process_has_logged(&ending, "did not read their replies"));
    process_stop(&ending);
}

TEST(sigint_and_shutdown_end_it_too) {
    static const char *const commands[] = {"SHUTDOWN NOSAVE\r\n", "SHUTDOWN\r\n",
                                           "SHUTDOWN NOSAVE NOW\r\n", ""};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        struct process ending;
        assert_true(process_start(&ending, NULL));
        struct wire client = wire_open(process_connect_tcp(&ending));
        if (commands[i][0]) {
            wire_send_text(&client, commands[i]);
        } else {
            process_signal(&ending, SIGINT);
        }
        assert_true(wire_is_closed(&client, WIRE_LIMIT_MS));
        assert_true(process_wait(&ending, PROCESS_STOP_LIMIT_MS));
        assert_int_equal(ending.exit_status, 0);
        wire_close(&client);
        process_stop(&ending);
    }
}

TEST(a_killed_server_can_be_started_again_at_once) {
    struct process killed;
    assert_true(process_start(&killed, NULL));
    struct wire client = wire_open(process_connect_tcp(&killed));
    wire_check(&client, "ZADD b 1 m", ":1");
    process_signal(&killed, SIGKILL);
    assert_true(process_wait(&killed, PROCESS_STOP_LIMIT_MS));
    assert_true(wire_is_closed(&client, WIRE_LIMIT_MS));
    wire_close(&client);
    /* The socket's file is still there, the port has connections that linger. */
    const char *arguments[] = {"--unixsocket", killed.socket_path, NULL};
    const struct process_options options = {.port = killed.port, .arguments = arguments};
    struct process again;
    assert_true(process_start(&again, &options));
    client = wire_open(process_connect_unix(&killed));
    wire_check(&client, "PING", "PONG");
    wire_close(&client);
    assert_int_equal(process_stop(&again), 0);
    process_stop(&killed);
}

TEST(sighup_opens_the_log_anew) {
    static const char *const arguments[] = {"--logfile", "server.log", NULL};
    const struct process_options options = {.arguments = arguments};
    struct process logging;
    assert_true(process_start(&logging, &options));
    char path[PROCESS_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/server.log", logging.directory);
    assert_int_equal(rename(path, formatted("%s/server.log.1", logging.directory)), 0);
    process_signal(&logging, SIGHUP);
    WAIT_UNTIL(access(path, F_OK) == 0);
    struct wire client = wire_open(process_connect_tcp(&logging));
    wire_check(&client, "PING", "PONG");
    wire_close(&client);
    process_signal(&logging, SIGTERM);
    assert_true(process_wait(&logging, PROCESS_STOP_LIMIT_MS));
    struct stat written;
    assert_int_equal(stat(path, &written), 0);
    assert_true(written.st_size > 0); /* the end is told in the new file */
    process_stop(&logging);
}

TEST(a_closed_terminal_or_pipe_does_not_end_it) {
    process_signal(&server, SIGPIPE);
    wire_check(&wire, "PING", "PONG");
}

TEST_MAIN(start_server, stop_server)
