/* Process-wide operations: descriptor limit, daemonizing, pidfile, what the system around should be like, and child
 * processes. */
#ifndef SERVER_PROCESS_H
#define SERVER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "codec/check.h"

/* Raise the descriptor limit so that it covers this many clients, served by io_threads, and viewers
 * of the page. false: the system does not allow it, and nothing changed; *clients_max is the number that it allows. */
MUST_CHECK bool process_reserve_descriptors(int64_t clients, int64_t io_threads, int64_t viewers,
                                            int64_t *clients_max);
/* The same at start, where fewer clients are acceptable: logs and returns the number that is
 * possible. */
int64_t process_raise_descriptor_limit(int64_t clients, int64_t io_threads, int64_t viewers);

/* Continue in a child without a terminal. */
enum process_side {
    PROCESS_FAILED, /* errno says why */
    PROCESS_PARENT, /* is to end at once, without cleaning up what it shares with the daemon */
    PROCESS_DAEMON,
};
MUST_CHECK enum process_side process_daemonize(void);

/* As process 1, the init of a container, the process inherits others whose parents have ended: let
 * the system bury them. Otherwise nothing. */
void process_leave_orphans(void);

/* Write and remove the pidfile. It is removed only if it still holds our process id. */
void process_write_pidfile(const char *path);
void process_remove_pidfile(const char *path);

/* Resident memory of the process, in bytes; 0: unknown. Any thread may ask. */
uint64_t process_memory_size(void);

/* What of the system around costs speed, memory or clients is logged, each with what to do. */
struct surroundings {
    int64_t tcp_backlog; /* the settings of these names */
    uint64_t maxmemory;
    const char *root; /* what is in front of /proc and /sys; NULL: nothing */
};
/* At start, after memory_init. */
void process_warn(const struct surroundings *wanted);

/* ---- children ----
 *
 * This program once more as a child process, for work that takes as much memory as the keys: it does not stop the loop,
 * its memory is returned to the system at its end, and where memory gets scarce the kernel ends it first.
 *
 *     NONE --process_start_child--> RUNS --it ends--> NONE, by process_look_at_child
 *                             |                ^
 *                             +--process_kill_child--> KILLED
 *
 * Nothing waits: process_look_at_child is called until it is over. All on one thread. */

enum child_state { CHILD_NONE, CHILD_RUNS, CHILD_KILLED };

struct child {
    enum child_state state;
    pid_t id;
    bool was_ignored; /* SIGCHLD: as process 1 of a container (process_leave_orphans) */
};

enum child_end {
    CHILD_GOES_ON,
    CHILD_IS_DONE, /* exit status 0 */
    CHILD_FAILED,  /* another one, or a signal */
};

/* From NONE: run it in that directory, with these as standard input and output, which stay the caller's. arguments: as
 * of main, ended by NULL. It gets less of the processor than this process. false: errno says why. */
MUST_CHECK bool process_start_child(struct child *child, const char *const *arguments,
                                    const char *directory, int input, int output);
/* How it is; at its end the state is NONE. Of one that is NONE: CHILD_FAILED. */
enum child_end process_look_at_child(struct child *child);
/* Time of a processor that it has taken: one that works takes more and more. */
uint64_t process_child_time_ns(const struct child *child);
/* End it, if it runs. */
void process_kill_child(struct child *child);

#endif
