/* Signals that end the process: each writes a crash report to the log, then takes its default
 * action (usually a core dump, as far as RLIMIT_CORE allows).
 *
 *     2026-11-21T10:59:01.250000Z warning fatal signal=SIGSEGV code=1 address=0x10 command=zadd
 *     version=1.0.0-rc1 build="gcc 13.2.0" pid=4711                                     (one line)
 *     ... warning report build_id=62e5... thread="leaderboard-ser" uptime_s=86400
 *     ... warning report command=zadd args=4 sizes=4,5,2,8 client=7 addr=10.0.0.9:50412
 *         user="default" db=0                                                       (one line)
 *     ... warning report frame=0 module=/usr/bin/leaderboard-server offset=0x4e2d1
 *     ... warning report info used_memory:1048576
 *     ... warning report end: docs/operate/log.md says how to read it
 *
 * A signal sent by another process has sender=PID instead of the address. The arguments of the
 * command are not written: they hold members, which may be people's names, and passwords.
 *
 *     SIGSEGV SIGBUS SIGFPE SIGILL SIGABRT SIGSYS SIGTRAP      a bug in the server, or CHECK
 *     SIGQUIT SIGALRM SIGVTALRM SIGPROF SIGXCPU SIGIO SIGPWR   a request to end at once
 *     SIGSTKFLT and the real-time signals
 *     SIGUSR1                                                  the report alone, and it goes on
 *     SIGPIPE SIGXFSZ                                          ignored: write(2) reports it as well
 *
 * main.c handles the others: SIGTERM SIGINT SIGHUP SIGUSR2. All is written with async-signal-safe
 * code: no allocation, no locks, no printf. If writing the report fails in its turn, the rest of it
 * is written; if it hangs, the process ends after some seconds. */
#ifndef SERVER_FAULT_H
#define SERVER_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/bytes.h"

enum { FAULT_SIZES_MAX = 16 };

/* The command that runs. Texts stay valid. */
struct fault_command {
    const char *name;
    uint32_t arg_count; /* its name included */
    size_t sizes[FAULT_SIZES_MAX];
    uint64_t client;
    const char *address;
    struct bytes user;
    unsigned database;
};
/* false: none runs. Called in a signal handler, on the thread that called fault_watch. */
typedef bool fault_describe(const void *context, struct fault_command *command);

/* Install the handlers. A signal that already has a handler (from a sanitizer) is left alone. */
void fault_watch(fault_describe *describe, const void *context);
/* crash-log-enabled: without, there is only the first line. SIGUSR1 writes the report always. */
void fault_set_report(bool is_wanted);
/* Replace the text of INFO for the next report; as much as there is room for is copied. */
void fault_set_info(const char *text, size_t size);

#endif
