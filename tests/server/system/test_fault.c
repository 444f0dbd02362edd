/* The log line of a fatal signal, from processes that cause one. */
#include "tests/support/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/check.h"
#include "server/system/fault.h"
#include "server/system/log.h"
#include "tests/support/directory.h"

static char directory[DIRECTORY_PATH_MAX];

static const char *describe(const void *context) {
    return context;
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
        /* The signals that the test program or a sanitizer turns it into. */
        static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            signal(numbers[i], SIG_DFL);
        }
        if (!log_open(path, LOG_NOTICE) || freopen("/dev/null", "w", stderr) == NULL) {
            _exit(1);
        }
        fault_watch(describe, "ZADD");
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
    char *log = log_of(commit, expected_signal);
    for (size_t i = 0; texts[i] != NULL; i++) {
        if (strstr(log, texts[i]) == NULL) {
            fail_msg("the log does not say \"%s\": %s", texts[i], log);
        }
    }
    free(log);
}

__attribute__((no_sanitize("undefined", "address"))) static void write_to_nowhere(void) {
    volatile uintptr_t place = 0x10;
    *(volatile int *)place = 1; /* NOLINT: the fault is intended */
}

TEST(an_access_to_nowhere_says_where_and_what_ran) {
    assert_logs(write_to_nowhere, SIGSEGV,
                (const char *[]){" warning fatal signal=SIGSEGV code=1 address=0x10 command=ZADD "
                                 "version=1.0.0 build=\"",
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

static int setup(void **state) {
    (void)state;
    directory_make(directory);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    directory_remove(directory);
    return 0;
}

TEST_MAIN(setup, teardown)
