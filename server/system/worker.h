/* A thread that runs one job at a time for the loop: work that may wait for the disk.
 *
 *     loop     worker_start --> .......................... done() --> worker_start --> ...
 *     thread                    run(): no allocation, no log,
 *                               no data that the loop uses meanwhile
 *
 * The thread owns a job's data from worker_start to done. So the two share nothing, and only the
 * hand-over takes a lock. */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <stdbool.h>
#include <uv.h>

#include "codec/check.h"

typedef void worker_run(void *context);

enum worker_priority {
    WORKER_AS_THE_LOOP, /* somebody waits for the result */
    WORKER_BEHIND,      /* lower priority: uses the processor time that the loop leaves */
};

struct worker {
    uv_thread_t thread;
    uv_mutex_t mutex;
    uv_cond_t changed;
    uv_async_t async;
    enum { WORKER_IDLE, WORKER_ASKED, WORKER_DONE, WORKER_ENDING } state; /* under the mutex */
    enum worker_priority priority;
    worker_run *run;
    worker_run *done;
    void *context;
    bool is_busy; /* the loop's own view: from worker_start to done */
    bool is_started;
    bool is_closed; /* after worker_deinit: the loop has closed the handle, and the memory may be
                     * freed */
};

/* done: called on the loop after each job. The worker does not keep the loop alive. false: no
 * memory or threads. */
MUST_CHECK bool worker_init(struct worker *worker, uv_loop_t *loop, enum worker_priority priority,
                            worker_run *done, void *context);
/* Start a job; the worker must not be busy. */
void worker_start(struct worker *worker, worker_run *run);
/* Wait for the current job, if any, and call done. */
void worker_wait(struct worker *worker);
/* Wait for the job, stop the thread, and close the handle. The loop must turn once more before the
 * memory may be freed: is_closed is then set. */
void worker_deinit(struct worker *worker);

/* The calling thread takes WORKER_BEHIND from now on. */
void worker_step_behind(void);

#endif
