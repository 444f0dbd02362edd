/* What ends a server leaves a line in its log, and what is no reason to end does not end it. */
#include "tests/support/test.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/wire.h"

static void skip_on_redis(void) {
    if (strstr(process_default_program(), "redis-server") != NULL) {
        skip(); /* its words differ */
    }
}

static int setup(void **state) {
    (void)state;
    struct rlimit no_core = {0};
    return setrlimit(RLIMIT_CORE, &no_core);
}

TEST(a_signal_that_ends_it_leaves_a_line_and_is_the_cause_of_death) {
    skip_on_redis();
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
    skip_on_redis();
    SERVER(server, NULL);
    process_signal(&server, SIGUSR2);
    process_signal(&server, SIGWINCH);
    process_signal(&server, SIGURG);
    process_signal(&server, SIGCHLD);
    process_signal(&server, SIGXFSZ);
    process_signal(&server, SIGPIPE);
    WIRE(client, process_connect_tcp(&server));
    int64_t give_up_at = process_now_ms() + PROCESS_START_LIMIT_MS;
    bool is_told = false;
    while (!is_told && process_now_ms() < give_up_at) {
        wire_check(&client, "PING", "PONG");
        is_told = process_has_logged(&server, "signal ignored signal=SIGUSR2");
    }
    assert_true(is_told);
}

TEST(a_daemon_leaves_the_line_in_its_logfile) {
    skip_on_redis();
    struct process daemon;
    assert_true(process_start_daemon(&daemon));
    process_signal(&daemon, SIGQUIT);
    assert_true(process_wait(&daemon, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(daemon.exit_status, 128 + SIGQUIT);
    size_t size = 0;
    char *log = file_read(directory_join(daemon.directory, "daemon.log"), &size);
    char *text = realloc(log, size + 1);
    assert_non_null(text);
    text[size] = '\0';
    assert_non_null(strstr(text, "fatal signal=SIGQUIT"));
    free(text);
    process_stop(&daemon);
}

TEST_MAIN(setup, NULL)
