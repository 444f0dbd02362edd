/* The log of real servers: reports of every thread, of a command that runs and of a daemon, what signals leave, cores,
 * JSON as Python reads it, a syslog that hangs and one that is restarted, renamed commands beside
 * Redis's, guesses that wait. */
#include "tests/support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/wire.h"

/* A sanitizer reports faults in words of its own. */
static void skip_under_sanitizers(void) {
    if (process_is_sanitized()) {
        skip();
    }
}

FIXTURE(setup) {
    struct rlimit core;
    if (getrlimit(RLIMIT_CORE, &core) != 0) {
        return -1;
    }
    core.rlim_cur = 0;
    return setrlimit(RLIMIT_CORE, &core);
}

static void start(struct process *server, const char *const *arguments) {
    const struct process_options options = {.arguments = arguments};
    assert_true(process_start(server, &options));
}

/* ---- threads ---- */

enum { THREADS_MAX = 32, THREAD_NAME_SIZE = 32 };

/* The server's threads, by their numbers, which rise as they are started. */
static int find_threads(const struct process *server, pid_t *threads) {
    int count = 0;
    DIR *directory = opendir(formatted("/proc/%d/task", (int)server->pid));
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] != '.' && count < THREADS_MAX) {
            threads[count++] = atoi(entry->d_name);
        }
    }
    closedir(directory);
    return count;
}

static void name_of_thread(const struct process *server, pid_t thread, char *name) {
    FILE *file = fopen(formatted("/proc/%d/task/%d/comm", (int)server->pid, (int)thread), "r");
    assert_non_null(file);
    assert_non_null(fgets(name, THREAD_NAME_SIZE, file));
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
}

TEST(every_thread_writes_a_whole_report) {
    static const char *const arguments[] = {"--io-threads", "3", "--appendonly", "yes", NULL};
    int network_count = 0;
    int count = 1;
    skip_under_sanitizers();
    for (int i = 0; i < count; i++) {
        struct process server;
        pid_t threads[THREADS_MAX];
        char name[THREAD_NAME_SIZE];
        start(&server, arguments);
        WAIT_UNTIL(process_has_logged(&server, " ready "));
        count = find_threads(&server, threads);
        assert_in_range(count, 5, THREADS_MAX - 1);
        name_of_thread(&server, threads[i], name);
        network_count += strstr(name, "leaderboard-io") != NULL;
        assert_int_equal(syscall(SYS_tgkill, server.pid, threads[i], SIGSEGV), 0);
        assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
        assert_int_equal(server.exit_status, 128 + SIGSEGV);
        assert_true(process_has_logged(&server, formatted(" thread=\"%s\"", name)));
        assert_true(process_has_logged(&server, "report frame=1 "));
        assert_true(process_has_logged(&server, "report info used_memory:"));
        assert_true(process_has_logged(&server, "report end"));
        process_stop(&server);
    }
    assert_int_equal(network_count, 3);
}

/* ---- what runs ---- */

/* Requests that take a while, all in one EXEC. */
static void send_long_command(struct wire *wire) {
    wire_check(wire, "ZADD b 1 a 2 b 3 c", ":3");
    wire_check(wire, "MULTI", "OK");
    for (int i = 0; i < 30000; i++) {
        wire_send_text(wire, "ZUNIONSTORE u 3 b b b\r\n");
    }
    wire_send_text(wire, "EXEC\r\n");
}

TEST(asked_by_a_signal_it_says_what_runs_and_goes_on) {
    struct process server;
    bool is_seen = false;
    skip_under_sanitizers();
    start(&server, NULL);
    for (int round = 0; round < 100 && !is_seen; round++) {
        WIRE(wire, process_connect_unix(&server));
        wire_ask(&wire, "DEL b u");
        send_long_command(&wire);
        for (int i = 0; i < 50 && !is_seen; i++) {
            process_signal(&server, SIGUSR1);
            process_sleep_ms(2);
            OWNED char *log = process_log(&server);
            const char *at = strstr(log, "report command=exec args=1 sizes=4 client=");
            is_seen = at != NULL && strstr(at, "/socket:0 user=\"default\" db=0") != NULL;
        }
    }
    assert_true(is_seen);
    struct wire witness = wire_open(process_connect_unix(&server));
    wire_check(&witness, "PING", "PONG");
    wire_close(&witness);
    assert_int_equal(process_stop(&server), 0);
}

/* The functions that addr2line finds for the frames in the program itself, one a line. */
static void resolve_frames(const char *log, char *functions, size_t size) {
    char command[8192];
    const char *program = process_default_program();
    int used = snprintf(command, sizeof command, "addr2line -f -i -e '%s'", program);
    for (const char *at = log; (at = strstr(at, "report frame=")) != NULL; at++) {
        unsigned long offset;
        char module[512];
        if (sscanf(at, "report frame=%*d module=%511s offset=0x%lx", module, &offset) == 2 &&
            strstr(module, "leaderboard-server") != NULL) {
            used += snprintf(command + used, sizeof command - (size_t)used, " 0x%lx", offset);
            assert_in_range(used, 1, sizeof command - 1);
        }
    }
    FILE *output = popen(command, "r");
    assert_non_null(output);
    size_t got = fread(functions, 1, size - 1, output);
    functions[got] = '\0';
    assert_int_equal(pclose(output), 0);
}

TEST(the_frames_are_functions_of_the_program) {
    struct process server;
    char functions[8192];
    skip_under_sanitizers();
    if (system("command -v addr2line >/dev/null") != 0) {
        skip();
    }
    /* The kernel may hand the signal to a thread that begins just then, and whose frames are not yet of the
     * program. */
    enum { ATTEMPTS = 3 };
    bool has_main = false;
    for (int i = 0; i < ATTEMPTS && !has_main; i++) {
        start(&server, NULL);
        process_signal(&server, SIGABRT);
        assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
        char *log = process_log(&server);
        resolve_frames(log, functions, sizeof functions);
        has_main = strstr(functions, "\nmain\n") != NULL;
        if (!has_main) {
            print_message("no main in: %s\nof: %s\n", functions, log);
        }
        free(log);
        process_stop(&server);
    }
    assert_true(has_main);
}

TEST(a_daemon_leaves_its_report_in_its_logfile) {
    struct process daemon;
    int number = process_is_sanitized() ? SIGQUIT : SIGSEGV;
    assert_true(process_start_daemon(&daemon));
    process_signal(&daemon, number);
    assert_true(process_wait(&daemon, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(daemon.exit_status, 128 + number);
    size_t size;
    char *log = file_read(directory_join(daemon.directory, "daemon.log"), &size);
    assert_non_null(
        strstr(log, formatted("fatal signal=%s", process_is_sanitized() ? "SIGQUIT" : "SIGSEGV")));
    if (number == SIGSEGV) {
        assert_non_null(strstr(log, "report frame=1 "));
        assert_non_null(strstr(log, "report end"));
    }
    free(log);
    process_stop(&daemon);
}

/* ---- signals ---- */

TEST(a_signal_that_ends_it_leaves_a_line_and_is_the_cause_of_death) {
    const struct {
        int number;
        const char *name;
        bool is_a_sanitizers; /* which reports it in words of its own */
    } samples[] = {
        {SIGSEGV, "SIGSEGV", true},       {SIGBUS, "SIGBUS", true},
        {SIGFPE, "SIGFPE", true},         {SIGILL, "SIGILL", true},
        {SIGABRT, "SIGABRT", true},       {SIGQUIT, "SIGQUIT", false},
        {SIGSYS, "SIGSYS", false},        {SIGTRAP, "SIGTRAP", true},
        {SIGALRM, "SIGALRM", false},      {SIGXCPU, "SIGXCPU", false},
        {SIGPROF, "SIGPROF", false},      {SIGVTALRM, "SIGVTALRM", false},
        {SIGIO, "SIGIO", false},          {SIGPWR, "SIGPWR", false},
        {SIGSTKFLT, "SIGSTKFLT", false},  {SIGRTMIN, "SIGRTMIN+0", false},
        {SIGRTMAX, "SIGRTMIN+30", false},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        if (samples[i].is_a_sanitizers && process_is_sanitized()) {
            continue;
        }
        struct process server;
        assert_true(process_start(&server, NULL));
        process_signal(&server, samples[i].number);
        assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
        assert_int_equal(server.exit_status, 128 + samples[i].number);
        char expected[128];
        snprintf(expected, sizeof expected,
                 " warning fatal signal=%s sender=%d command=none version=", samples[i].name,
                 (int)getpid());
        assert_true(process_has_logged(&server, expected));
        process_stop(&server);
    }
}

TEST(signals_that_mean_nothing_are_told_and_do_not_end_it) {
    SERVER(server, NULL);
    process_signal(&server, SIGUSR2);
    process_signal(&server, SIGWINCH);
    process_signal(&server, SIGURG);
    process_signal(&server, SIGCHLD);
    process_signal(&server, SIGXFSZ);
    process_signal(&server, SIGPIPE);
    WIRE(client, process_connect_tcp(&server));
    WAIT_UNTIL(process_has_logged(&server, "signal ignored signal=SIGUSR2"));
    wire_check(&client, "PING", "PONG");
}

/* A core in this directory holds what the server uses, not the memory that it has reserved. */
static void check_core_size(const char *directory) {
    DIR *files = opendir(directory);
    assert_non_null(files);
    for (const struct dirent *entry; (entry = readdir(files)) != NULL;) {
        struct stat status;
        if (strncmp(entry->d_name, "core", 4) == 0) {
            assert_int_equal(stat(directory_join(directory, entry->d_name), &status), 0);
            assert_in_range(status.st_size, 1, 512 * 1024 * 1024);
        }
    }
    closedir(files);
}

/* Does this program dump core when it gets SIGSEGV? The log is a pipe that tells when it is ready. */
static bool dumps_core(const char *const *words) {
    char directory[DIRECTORY_PATH_MAX];
    int ends[2];
    char first;
    int status;
    directory_make(directory);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit core;
        (void)getrlimit(RLIMIT_CORE, &core);
        core.rlim_cur = core.rlim_max;
        if (setrlimit(RLIMIT_CORE, &core) != 0 || chdir(directory) != 0 || dup2(ends[1], 1) < 0) {
            _exit(126);
        }
        execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &first, 1), 1);
    kill(child, SIGSEGV);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ends[0]);
    check_core_size(directory);
    directory_remove(directory);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    return WCOREDUMP(status);
}

TEST(it_dumps_core_where_another_program_does) {
    skip_under_sanitizers();
    char program[PATH_MAX];
    assert_non_null(realpath(process_default_program(), program));
    const char *const ours[] = {program,  "--port", "0", "--unixsocket",
                                "socket", "--save", "",  NULL};
    const char *const other[] = {"sh", "-c", "echo; exec sleep 60", NULL};
    bool is_possible = dumps_core(other);
    assert_int_equal(dumps_core(ours), is_possible);
    print_message("cores are %s here\n", is_possible ? "dumped" : "not dumped");
}

/* ---- JSON ---- */

TEST(python_reads_every_line_of_json) {
    static const char *const arguments[] = {"--log-format", "json", "--loglevel", "debug",
                                            "--appendonly", "yes",  NULL};
    struct process server;
    skip_under_sanitizers();
    start(&server, arguments);
    struct wire wire = wire_open(process_connect_unix(&server));
    wire_check(&wire, "FLUSHALL", "OK");
    wire_check_prefix(&wire, "AUTH \"gr\\xc3\\xbc\\xff\\\"\" x", "-WRONGPASS");
    wire_check_prefix(&wire, "CONFIG SET timeout \"\\xff\"", "-ERR");
    wire_close(&wire);
    process_signal(&server, SIGUSR1);
    WAIT_UNTIL(process_has_logged(&server, "report end"));
    process_signal(&server, SIGQUIT);
    assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
    char command[1024];
    snprintf(
        command, sizeof command,
        "python3 -c '\n"
        "import datetime, json\n"
        "lines = [json.loads(line) for line in open(\"%s\", encoding=\"utf-8\")]\n"
        "for line in lines:\n"
        "    assert list(line)[:3] == [\"time\", \"level\", \"message\"], line\n"
        "    datetime.datetime.strptime(line[\"time\"], \"%%Y-%%m-%%dT%%H:%%M:%%S.%%fZ\")\n"
        "assert any(l.get(\"command\") == \"flushall\" and l[\"level\"] == \"audit\" for l in "
        "lines)\n"
        "assert any(l.get(\"failures\") == 1 and l[\"user\"] == \"(unknown)\" for l in lines)\n"
        "assert any(l.get(\"signal\") == \"SIGQUIT\" and l[\"message\"] == \"fatal\" for l in "
        "lines)\n"
        "assert sum(l[\"message\"].startswith(\"report end\") for l in lines) == 2\n'",
        server.log_path);
    assert_int_equal(system(command), 0);
    process_stop(&server);
}

/* ---- syslog ---- */

/* A mount namespace of this process, with a /dev of its own. false: that is not allowed here. */
static bool make_own_dev(const char *dev) {
    static const char *const names[] = {"null", "zero", "full", "random", "urandom"};
    char path[512], source[64];
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mkdir(dev, 0755) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", dev, names[i]);
        snprintf(source, sizeof source, "/dev/%s", names[i]);
        file_write(path, "", 0);
        if (mount(source, path, NULL, MS_BIND, NULL) != 0) {
            return false;
        }
    }
    return mount(dev, "/dev", NULL, MS_BIND | MS_REC, NULL) == 0;
}

static int open_syslog(void) {
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    unlink("/dev/log");
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = PROCESS_START_LIMIT_MS / 1000};
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    return fd;
}

/* Read lines until one holds the text; returns how many came. */
static int read_syslog(int fd, const char *text, char *line, size_t size) {
    for (int count = 1;; count++) {
        ssize_t got = recv(fd, line, size - 1, 0);
        if (got < 0) {
            fail_msg("syslog did not get \"%s\": %s", text, strerror(errno));
        }
        line[got] = '\0';
        if (strstr(line, text) != NULL) {
            return count;
        }
    }
}

/* Runs in a child, whose mounts go with it. */
static void talk_to_syslog(const char *dev) {
    static const char *const arguments[] = {
        "--syslog-enabled", "yes", "--syslog-ident", "scores", "--syslog-facility", "local3", NULL};
    char line[4096], expected[128];
    struct process server;
    if (!make_own_dev(dev)) {
        _exit(77);
    }
    int fd = open_syslog();
    start(&server, arguments);
    snprintf(expected, sizeof expected, "<157>scores[%d]: ready version=", (int)server.pid);
    read_syslog(fd, "ready", line, sizeof line);
    assert_ptr_equal(strstr(line, expected), line);
    /* A daemon that hangs: its queue is soon full, and nobody waits for it. */
    struct wire wire = wire_open(process_connect_unix(&server));
    for (int i = 0; i < 2000; i++) {
        wire_check(&wire, "CONFIG SET audit-log no", "OK");
        wire_check(&wire, "CONFIG SET audit-log yes", "OK");
        wire_check_prefix(&wire, "CONFIG REWRITE", "-ERR");
    }
    read_syslog(fd, "settings not written", line, sizeof line);
    assert_ptr_equal(strstr(line, "<156>scores["), line);
    /* A daemon that is restarted. */
    close(fd);
    wire_check_prefix(&wire, "CONFIG REWRITE", "-ERR");
    fd = open_syslog();
    wire_check_prefix(&wire, "CONFIG REWRITE", "-ERR");
    read_syslog(fd, "settings not written", line, sizeof line);
    /* A report. */
    process_signal(&server, SIGUSR1);
    read_syslog(fd, "report asked for", line, sizeof line);
    wire_check(&wire, "PING", "PONG");
    wire_close(&wire);
    close(fd);
    assert_int_equal(process_stop(&server), 0);
}

TEST(syslog_gets_each_line_and_holds_up_nobody) {
    char directory[DIRECTORY_PATH_MAX], dev[DIRECTORY_PATH_MAX];
    int status;
    directory_make(directory);
    snprintf(dev, sizeof dev, "%s", directory_join(directory, "dev"));
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        talk_to_syslog(dev);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    directory_remove(directory);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("no mount namespaces here: not tested\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- renamed commands ---- */

TEST(renamed_commands_answer_as_in_redis) {
    static const char *const arguments[] = {"--rename-command",
                                            "CONFIG",
                                            "Secret-Name",
                                            "--rename-command",
                                            "FLUSHDB",
                                            "",
                                            "--rename-command",
                                            "ZADD",
                                            "put",
                                            NULL};
    static const char *const requests[] = {
        "CONFIG GET port",
        "secret-name",
        "secret-name get nothing",
        "SECRET-NAME get",
        "secret-name foo",
        "FLUSHDB",
        "put b 1 m",
        "put b",
        "ZADD b 1 m",
        "COMMAND INFO flushdb",
        "COMMAND INFO config",
        "COMMAND GETKEYS put b 1 m",
        "COMMAND GETKEYS zadd b 1 m",
        "COMMAND LIST FILTERBY PATTERN flush*",
        "COMMAND LIST FILTERBY PATTERN put",
        "COMMAND LIST FILTERBY PATTERN zadd",
        "COMMAND LIST FILTERBY PATTERN *ecret*",
        "FLUSHALL",
    };
    const struct process_options options = {.arguments = arguments};
    const struct process_options redis_options = {.program = process_redis_program(),
                                                  .arguments = arguments};
    struct process server, redis;
    assert_true(process_start(&server, &options));
    assert_true(process_start(&redis, &redis_options));
    struct wire ours = wire_open(process_connect_unix(&server));
    struct wire theirs = wire_open(process_connect_unix(&redis));
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        const char *expected = formatted("%s", wire_ask(&theirs, requests[i]));
        const char *answer = wire_ask(&ours, requests[i]);
        if (strcmp(answer, expected) != 0) {
            fail_msg("%s: redis %s, here %s", requests[i], expected, answer);
        }
    }
    wire_close(&ours);
    wire_close(&theirs);
    assert_int_equal(process_stop(&server), 0);
    assert_int_equal(process_stop(&redis), 0);
}

TEST(wrong_lines_are_refused_at_start) {
    static const struct {
        const char *config, *told;
    } samples[] = {
        {"rename-command NOTHING x\n", "No such command in rename-command"},
        {"rename-command ZADD zrem\n", "Target command name already exists"},
        {"rename-command ZADD \"\"\nrename-command ZADD x\n", "No such command in rename-command"},
        {"rename-command ZADD\n", "test.conf:1: rename-command: wrong number of arguments"},
        {"syslog-facility mail\n", "test.conf:1: syslog-facility: argument(s) must be one of"},
        {"log-format xml\n", "test.conf:1: log-format: argument(s) must be one of"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const struct process_options options = {.config = samples[i].config,
                                                .is_start_failure_expected = true};
        const char *const told[] = {samples[i].told, NULL};
        assert_true(process_start_is_refused(&options, told));
    }
}

/* ---- guesses ---- */

TEST(guesses_wait_and_others_do_not) {
    static const char *const arguments[] = {"--requirepass", "right", "--auth-delay", "200", NULL};
    struct process server;
    start(&server, arguments);
    struct wire guesser = wire_open(process_connect_tcp(&server));
    struct wire owner = wire_open(process_connect_unix(&server));
    for (int i = 0; i < 5; i++) {
        wire_check_prefix(&guesser, "AUTH wrong", "-WRONGPASS");
    }
    for (int delay_ms = 200; delay_ms <= 400; delay_ms *= 2) {
        int64_t begin_ms = process_now_ms();
        wire_send_text(&guesser, "AUTH wrong\r\n");
        wire_check(&owner, "AUTH right", "OK");
        wire_check(&owner, "PING", "PONG");
        assert_int_equal(strncmp(wire_reply(&guesser), "-WRONGPASS", 10), 0);
        /* The server's clock of milliseconds may be one behind ours. */
        assert_true(process_now_ms() - begin_ms >= delay_ms - 1);
    }
    assert_true(process_has_logged(&server, "audit auth failed user=\"default\" addr=127.0.0.1:"));
    wire_close(&guesser);
    wire_close(&owner);
    assert_int_equal(process_stop(&server), 0);
}

TEST_MAIN(setup, NULL)
