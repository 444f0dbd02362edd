/* The stack is thread-local memory: it costs address space, and pages only when it is used. */
#include "codec/thread_signals.h"

#include <signal.h>
#include <stddef.h>

enum { STACK_SIZE = 64 * 1024 };

void thread_signals_use_stack(void) {
    static _Thread_local char stack[STACK_SIZE];
    stack_t present;
    if (sigaltstack(NULL, &present) == 0 && (present.ss_flags & SS_DISABLE) != 0) {
        const stack_t wanted = {.ss_sp = stack, .ss_size = STACK_SIZE};
        (void)sigaltstack(&wanted, NULL);
    }
}

void thread_signals_begin(void) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    sigset_t others;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        sigdelset(&others, own[i]);
    }
    pthread_sigmask(SIG_SETMASK, &others, NULL);
    thread_signals_use_stack();
}
