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

#include <stdatomic.h>
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

/* ---- waking a loop that sleeps, from another thread ----
 *
 *     sleeper   worker_wakeup_sleep   says that it is about to sleep; then it looks for work once more
 *     other     puts work; then worker_wakeup_send   writes to the eventfd if the sleeper has said so
 *
 * Only the first of many writes, so a loop that is awake costs the others one load. uv_async would do,
 * but the loop that is woken waits there, spinning, until the sender has returned from its call, which
 * takes long where both have one processor. See network/batch.h for why nothing is missed. */

struct wakeup {
    _Atomic bool is_asleep;
    int fd;
    void (*on_wake)(void *context); /* NULL: the loop's check handle does the work */
    void *context;
    uv_poll_t poll;
};

/* false: no descriptor. on_wake is NULL: set it before the loop turns. */
MUST_CHECK bool worker_wakeup_init(struct wakeup *wakeup, uv_loop_t *loop);
/* Call in the sleeper. The loop must turn once more before the memory may be freed. */
void worker_wakeup_close(struct wakeup *wakeup);
/* Call once neither side uses it any more. */
void worker_wakeup_deinit(struct wakeup *wakeup);

static inline void worker_wakeup_sleep(struct wakeup *wakeup) {
    atomic_store_explicit(&wakeup->is_asleep, true, memory_order_seq_cst);
}
static inline void worker_wakeup_wake(struct wakeup *wakeup) {
    atomic_store_explicit(&wakeup->is_asleep, false, memory_order_relaxed);
}
/* Before sleeping: look for work for up to spin_ns, giving way to others. false: there was none. */
bool worker_wakeup_spin(int64_t spin_ns, bool (*has_work)(void *context), void *context);
/* Wake it in any case. */
void worker_wakeup_write(struct wakeup *wakeup);
static inline void worker_wakeup_send(struct wakeup *wakeup) {
    if (atomic_load_explicit(&wakeup->is_asleep, memory_order_seq_cst) &&
        atomic_exchange_explicit(&wakeup->is_asleep, false, memory_order_seq_cst)) {
        worker_wakeup_write(wakeup);
    }
}

#endif
