/* This program once more as a child process, for work that takes as much memory as the keys: it does not stop the loop,
 * its memory is returned to the system at its end, and where memory gets scarce the kernel ends it first.
 *
 *     NONE --child_start--> RUNS --it ends--> NONE, by child_look
 *                             |                ^
 *                             +--child_kill--> KILLED
 *
 * Nothing waits: child_look is called until it is over. All on one thread. */
#ifndef SERVER_CHILD_H
#define SERVER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "codec/check.h"

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
MUST_CHECK bool child_start(struct child *child, const char *const *arguments,
                            const char *directory, int input, int output);
/* How it is; at its end the state is NONE. Of one that is NONE: CHILD_FAILED. */
enum child_end child_look(struct child *child);
/* Time of a processor that it has taken: one that works takes more and more. */
uint64_t child_time_ns(const struct child *child);
/* End it, if it runs. */
void child_kill(struct child *child);

#endif
