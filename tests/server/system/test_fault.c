/* The log line of a fatal signal, from processes that cause one. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/check.h"
#include "codec/thread_signals.h"
#include "server/system/fault.h"
#include "server/system/log.h"
#include "server/system/version.h"
#include "tests/support/directory_test.h"

static bool describe(const void *context, struct fault_command *command) {
    *command = (struct fault_command){.name = context,
                                      .arg_count = 4,
                                      .sizes = {4, 6, 2, 8},
                                      .client = 7,
                                      .address = "10.0.0.9:50412",
                                      .user = BYTES("ann"),
                                      .database = 3};
    return true;
}

/* Cause the fault in a child; returns the child's log, which the caller frees. */
static char *log_of(void (*commit)(void), int expected_signal) {
    const char *path = directory_join(directory, "log");
    unlink(path);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0};
        setrlimit(RLIMIT_CORE, &no_core);
        struct rlimit small = {.rlim_cur = 1024 * 1024, .rlim_max = 1024 * 1024};
        setrlimit(RLIMIT_STACK, &small);
        /* The signals that the test program or a sanitizer turns it into, or that a shell ignores in
         * the background. */
        static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT};
        for (size_t i = 0; i < COUNT_OF(numbers); i++) {
            signal(numbers[i], SIG_DFL);
        }
        if (!log_open(path, LOG_NOTICE) || freopen("/dev/null", "w", stderr) == NULL) {
            _exit(1);
        }
        fault_watch(describe, "ZADD");
        static const char before[] = "# Stats\r\nused_memory:1\r\n";
        static const char last[] = "# Stats\r\nused_memory:2\r\n";
        fault_set_info(before, sizeof before - 1);
        fault_set_info(last, sizeof last - 1);
        commit();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), expected_signal);
    size_t size = 0;
    char *log = file_read(path, &size);
    char *text = realloc(log, size + 1);
    assert_non_null(text);
    text[size] = '\0';
    return text;
}

static void assert_logs(void (*commit)(void), int expected_signal, const char *const *texts) {
    OWNED char *log = log_of(commit, expected_signal);
    for (size_t i = 0; texts[i] != NULL; i++) {
        if (strstr(log, texts[i]) == NULL) {
            fail_msg("the log does not say \"%s\": %s", texts[i], log);
        }
    }
}

__attribute__((no_sanitize("undefined", "address"))) static void write_to_nowhere(void) {
    volatile uintptr_t place = 0x10;
    *(volatile int *)place = 1; /* NOLINT: the fault is intended */
}

TEST(an_access_to_nowhere_says_where_and_what_ran) {
    assert_logs(write_to_nowhere, SIGSEGV,
                (const char *[]){" warning fatal signal=SIGSEGV code=1 address=0x10 command=ZADD "
                                 "version=" SERVER_VERSION " build=\"",
                                 "\" pid=", NULL});
}

static void claim_wrongly(void) {
    int members = 3;
    CHECK(members == 4);
}

TEST(a_claim_that_does_not_hold_is_in_the_log) {
    assert_logs(claim_wrongly, SIGABRT,
                (const char *[]){"test_fault.c:", "claim does not hold: members == 4",
                                 "fatal signal=SIGABRT", "command=ZADD", NULL});
}

static volatile int depth;

__attribute__((noinline, no_sanitize("address"))) static int descend(int level) {
    volatile char room[4096];
    room[level % 4096] = 1;
    depth = level;
    return room[0] == 2 ? 0 : descend(level + 1) + room[0];
}

static void overflow_the_stack(void) {
    (void)descend(0);
}

/* A small stack, so that it is soon full. */
static void *descend_in_thread(void *context) {
    (void)context;
    thread_signals_begin();
    (void)descend(0);
    return NULL;
}

static void overflow_elsewhere(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, descend_in_thread, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

TEST(a_thread_whose_stack_overflows_has_its_report) {
    assert_logs(overflow_elsewhere, SIGSEGV,
                (const char *[]){"fatal signal=SIGSEGV code=", "command=none", "report frame=20 ",
                                 "report end", NULL});
}

TEST(the_report_says_what_ran_and_what_info_said_last) {
    OWNED char *log = log_of(write_to_nowhere, SIGSEGV);
    static const char *const texts[] = {
        "report build_id=",
        " thread=\"",
        " uptime_s=",
        "report command=ZADD args=4 sizes=4,6,2,8 client=7 addr=10.0.0.9:50412 user=\"ann\" db=3\n",
        "report frame=0 module=",
        "report info # Stats\n",
        "report info used_memory:2\n",
        "report end"};
    const char *at = log;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const char *found = strstr(at, texts[i]);
        if (found == NULL) {
            fail_msg("the log does not say \"%s\" in its place: %s", texts[i], log);
        }
        at = found;
    }
    assert_null(strstr(log, "used_memory:1"));
}

static void write_without_report(void) {
    fault_set_report(false);
    write_to_nowhere();
}

TEST(without_crash_log_enabled_there_is_one_line) {
    OWNED char *log = log_of(write_without_report, SIGSEGV);
    assert_non_null(strstr(log, "fatal signal=SIGSEGV"));
    assert_ptr_equal(strchr(log, '\n'), log + strlen(log) - 1);
}

static void end_in_real_time(void) {
    raise(SIGRTMIN + 3);
}

TEST(a_real_time_signal_ends_it_not_without_a_word) {
    assert_logs(end_in_real_time, SIGRTMIN + 3,
                (const char *[]){"fatal signal=SIGRTMIN+3 sender=", "report end", NULL});
}

static void ask_twice(void) {
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    raise(SIGQUIT);
}

TEST(asked_for_the_report_is_written_and_it_goes_on) {
    OWNED char *log = log_of(ask_twice, SIGQUIT);
    const char *at = log;
    for (int i = 0; i < 2; i++) {
        at = strstr(at, "report asked for signal=SIGUSR1 sender=");
        assert_non_null(at);
        at = strstr(at, "report end");
        assert_non_null(at);
    }
    assert_non_null(strstr(at, "fatal signal=SIGQUIT"));
}

static void *fail_at_once(void *context) {
    write_to_nowhere();
    return context;
}

static void fail_in_many_threads(void) {
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, fail_at_once, NULL) != 0) {
            return;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

TEST(of_threads_that_fail_together_one_writes_a_whole_report) {
    for (int round = 0; round < 20; round++) {
        OWNED char *log = log_of(fail_in_many_threads, SIGSEGV);
        const char *first = strstr(log, "fatal signal=");
        assert_non_null(first);
        assert_null(strstr(first + 1, "fatal signal="));
        assert_non_null(strstr(first, "report end"));
    }
}

TEST(a_stack_that_overflows_has_its_line_too) {
    assert_logs(overflow_the_stack, SIGSEGV,
                (const char *[]){"fatal signal=SIGSEGV code=", "command=ZADD", NULL});
}

static void *fail_in_thread(void *context) {
    (void)context;
    write_to_nowhere();
    return NULL;
}

static void fail_elsewhere(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fail_in_thread, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

TEST(in_another_thread_no_command_is_blamed) {
    assert_logs(fail_elsewhere, SIGSEGV,
                (const char *[]){"signal=SIGSEGV code=1 address=0x10 command=none", NULL});
}

TEST_MAIN(directory_set_up, directory_tear_down)
