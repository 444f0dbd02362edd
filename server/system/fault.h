/* Signals that end the process: each writes one line to the log, then takes its default action
 * (usually a core dump).
 *
 *     2026-11-21T10:59:01.250000Z warning fatal signal=SIGSEGV code=1 address=0x10 command=ZADD
 *     version=1.0.0 build="gcc 13.2.0" pid=4711
 *
 * A signal sent by another process has sender=PID instead of the address. The line is built and
 * written with async-signal-safe code only: no allocation, no locks, no printf.
 *
 *     SIGSEGV SIGBUS SIGFPE SIGILL SIGABRT SIGSYS SIGTRAP      a bug in the server
 *     SIGQUIT SIGALRM SIGVTALRM SIGPROF SIGXCPU                a request to end at once
 *     SIGPIPE SIGXFSZ                                          ignored: write(2) reports it as well
 *
 * main.c handles the others: SIGTERM SIGINT SIGHUP SIGUSR1 SIGUSR2. */
#ifndef SERVER_FAULT_H
#define SERVER_FAULT_H

/* The running command's name, for the log line; a string that stays valid, or NULL. Called in a
 * signal handler, on the thread that called fault_watch. */
typedef const char *fault_describe(const void *context);

/* Install the handlers. A signal that already has a handler (from a sanitizer) is left alone. */
void fault_watch(fault_describe *describe, const void *context);

#endif
