/* See fault.h. Everything below on_fault is async-signal-safe (signal-safety(7)). */
#include "server/system/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "codec/check.h"
#include "codec/timestamp.h"
#include "server/system/log.h"
#include "server/system/version.h"

enum {
    LINE_MAX_SIZE = 512,
    STACK_SIZE = 64 * 1024, /* the handler needs its own stack when the thread's has overflowed */
};

static const struct {
    int number;
    const char *name;
} fatal_signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},       {SIGILL, "SIGILL"},
    {SIGABRT, "SIGABRT"}, {SIGSYS, "SIGSYS"},   {SIGTRAP, "SIGTRAP"},     {SIGQUIT, "SIGQUIT"},
    {SIGALRM, "SIGALRM"}, {SIGXCPU, "SIGXCPU"}, {SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"},
};
enum { FATAL_SIGNALS = sizeof fatal_signals / sizeof fatal_signals[0] };

static struct {
    fault_describe *describe;
    const void *context;
    pthread_t thread;
    char stack[STACK_SIZE];
} watched;

/* ---- the line ---- */

struct line {
    char text[LINE_MAX_SIZE];
    size_t size;
};

static void put(struct line *line, const char *text) {
    for (; *text != '\0' && line->size < LINE_MAX_SIZE - 1; text++) {
        line->text[line->size++] = *text;
    }
}

static void put_number(struct line *line, uint64_t number, unsigned base) {
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    put(line, digits + at);
}

static const char *name_of(int number) {
    for (size_t i = 0; i < FATAL_SIGNALS; i++) {
        if (fatal_signals[i].number == number) {
            return fatal_signals[i].name;
        }
    }
    return "unknown";
}

static void put_time(struct line *line) {
    struct timespec now;
    char text[TIMESTAMP_TEXT_MAX + 1];
    clock_gettime(CLOCK_REALTIME, &now);
    size_t size = timestamp_print(text, (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    text[size] = '\0';
    put(line, text);
}

static void put_origin(struct line *line, const siginfo_t *signal) {
    if (signal->si_code <= 0) {
        put(line, " sender=");
        put_number(line, (uint64_t)signal->si_pid, 10);
        return;
    }
    put(line, " code=");
    put_number(line, (uint64_t)signal->si_code, 10);
    put(line, " address=0x");
    put_number(line, (uint64_t)(uintptr_t)signal->si_addr, 16);
}

static const char *find_command(void) {
    bool is_ours = pthread_equal(pthread_self(), watched.thread) != 0;
    const char *name = is_ours ? watched.describe(watched.context) : NULL;
    return name != NULL ? name : "none";
}

/* Will returning from the handler trigger the same fault again? */
static bool is_repeated(int number, const siginfo_t *signal) {
    return signal->si_code > 0 &&
           (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL);
}

/* The signal's default action is restored (SA_RESETHAND) and taken right after the return. */
static void on_fault(int number, siginfo_t *signal, void *context) {
    (void)context;
    struct line line = {.size = 0};
    put_time(&line);
    put(&line, " warning fatal signal=");
    put(&line, name_of(number));
    put_origin(&line, signal);
    put(&line, " command=");
    put(&line, find_command());
    put(&line, " version=" SERVER_VERSION " build=\"" __VERSION__ "\" pid=");
    put_number(&line, (uint64_t)getpid(), 10);
    put(&line, "\n");
    log_write_line(line.text, line.size);
    if (!is_repeated(number, signal)) {
        raise(number);
    }
}

/* ---- watching ---- */

static bool is_default(int number) {
    struct sigaction before;
    return sigaction(number, NULL, &before) == 0 && (before.sa_flags & SA_SIGINFO) == 0 &&
           before.sa_handler == SIG_DFL;
}

static void on_claim(const char *claim, const char *file, int line) {
    log_write(LOG_WARNING, "%s:%d: claim does not hold: %s", file, line, claim);
}

void fault_watch(fault_describe *describe, const void *context) {
    watched.describe = describe;
    watched.context = context;
    watched.thread = pthread_self();
    check_set_handler(on_claim);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    stack_t stack = {.ss_sp = watched.stack, .ss_size = STACK_SIZE};
    struct sigaction action = {.sa_sigaction = on_fault};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO | (int)SA_RESETHAND;
    if (sigaltstack(&stack, NULL) == 0) {
        action.sa_flags |= SA_ONSTACK;
    }
    for (size_t i = 0; i < FATAL_SIGNALS; i++) {
        if (is_default(fatal_signals[i].number)) {
            sigaction(fatal_signals[i].number, &action, NULL);
        }
    }
}
