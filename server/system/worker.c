/* A thread that runs one job at a time. See worker.h. */
#include "server/system/worker.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "codec/thread_signals.h"

enum { BEHIND_NICE = 10 };

/* Both calls affect only this thread on Linux. If they fail, only the loop is slower. */
void worker_step_behind(void) {
    const struct sched_param none = {0};
    (void)!sched_setscheduler(0, SCHED_BATCH, &none);
    (void)!setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + BEHIND_NICE);
}

static void worker_run_jobs(void *argument) {
    struct worker *worker = argument;
    thread_signals_begin();
    if (worker->priority == WORKER_BEHIND) {
        worker_step_behind();
    }
    uv_mutex_lock(&worker->mutex);
    for (;;) {
        while (worker->state != WORKER_ASKED && worker->state != WORKER_ENDING) {
            uv_cond_wait(&worker->changed, &worker->mutex);
        }
        if (worker->state == WORKER_ENDING) {
            break;
        }
        worker_run *run = worker->run;
        uv_mutex_unlock(&worker->mutex);
        run(worker->context);
        uv_mutex_lock(&worker->mutex);
        worker->state = WORKER_DONE;
        uv_cond_broadcast(&worker->changed);
        uv_async_send(&worker->async);
    }
    uv_mutex_unlock(&worker->mutex);
}

/* Call done if the job has ended; false: it has not. */
static bool worker_finish(struct worker *worker) {
    uv_mutex_lock(&worker->mutex);
    bool is_done = worker->state == WORKER_DONE;
    if (is_done) {
        worker->state = WORKER_IDLE;
    }
    uv_mutex_unlock(&worker->mutex);
    if (is_done) {
        worker->is_busy = false;
        worker->done(worker->context);
    }
    return is_done;
}

static void worker_on_async(uv_async_t *async) {
    (void)worker_finish(async->data);
}

bool worker_init(struct worker *worker, uv_loop_t *loop, enum worker_priority priority,
                 worker_run *done, void *context) {
    *worker = (struct worker){.priority = priority, .done = done, .context = context};
    if (uv_mutex_init(&worker->mutex) != 0) {
        return false;
    }
    if (uv_cond_init(&worker->changed) != 0) {
        goto without_condition;
    }
    if (uv_async_init(loop, &worker->async, worker_on_async) != 0) {
        goto without_async;
    }
    worker->async.data = worker;
    uv_unref((uv_handle_t *)&worker->async);
    if (uv_thread_create(&worker->thread, worker_run_jobs, worker) == 0) {
        worker->is_started = true;
        return true;
    }
    uv_close((uv_handle_t *)&worker->async, NULL);
without_async:
    uv_cond_destroy(&worker->changed);
without_condition:
    uv_mutex_destroy(&worker->mutex);
    return false;
}

void worker_start(struct worker *worker, worker_run *run) {
    CHECK(!worker->is_busy);
    worker->is_busy = true;
    uv_mutex_lock(&worker->mutex);
    worker->run = run;
    worker->state = WORKER_ASKED;
    uv_cond_signal(&worker->changed);
    uv_mutex_unlock(&worker->mutex);
}

void worker_wait(struct worker *worker) {
    while (worker->is_busy) {
        uv_mutex_lock(&worker->mutex);
        while (worker->state == WORKER_ASKED) {
            uv_cond_wait(&worker->changed, &worker->mutex);
        }
        uv_mutex_unlock(&worker->mutex);
        (void)worker_finish(worker);
    }
}

static void worker_on_closed(uv_handle_t *handle) {
    struct worker *worker = handle->data;
    worker->is_closed = true;
}

void worker_deinit(struct worker *worker) {
    if (!worker->is_started) {
        return;
    }
    worker_wait(worker);
    uv_mutex_lock(&worker->mutex);
    worker->state = WORKER_ENDING;
    uv_cond_signal(&worker->changed);
    uv_mutex_unlock(&worker->mutex);
    uv_thread_join(&worker->thread);
    uv_close((uv_handle_t *)&worker->async, worker_on_closed);
    uv_cond_destroy(&worker->changed);
    uv_mutex_destroy(&worker->mutex);
    worker->is_started = false;
}

/* ---- waking a loop ---- */

static void worker_wakeup_on_poll(uv_poll_t *poll, int status, int events) {
    const struct wakeup *wakeup = poll->data;
    uint64_t count;
    (void)status;
    (void)events;
    (void)!read(wakeup->fd, &count, sizeof count);
    if (wakeup->on_wake != NULL) {
        wakeup->on_wake(wakeup->context);
    }
}

bool worker_wakeup_init(struct wakeup *wakeup, uv_loop_t *loop) {
    wakeup->is_asleep = false;
    wakeup->on_wake = NULL;
    wakeup->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wakeup->fd < 0) {
        return false;
    }
    if (uv_poll_init(loop, &wakeup->poll, wakeup->fd) != 0) {
        close(wakeup->fd);
        return false;
    }
    wakeup->poll.data = wakeup;
    return uv_poll_start(&wakeup->poll, UV_READABLE, worker_wakeup_on_poll) == 0;
}

void worker_wakeup_close(struct wakeup *wakeup) {
    if (!uv_is_closing((uv_handle_t *)&wakeup->poll)) {
        uv_close((uv_handle_t *)&wakeup->poll, NULL);
    }
}

void worker_wakeup_deinit(struct wakeup *wakeup) {
    close(wakeup->fd);
}

void worker_wakeup_write(struct wakeup *wakeup) {
    uint64_t one = 1;
    (void)!write(wakeup->fd, &one, sizeof one); /* cannot fail: the count stays small */
}

bool worker_wakeup_spin(int64_t spin_ns, bool (*has_work)(void *context), void *context) {
    enum { ROUNDS = 32 }; /* looks between two looks at the clock */
    if (spin_ns == 0) {
        return false;
    }
    uint64_t end_ns = uv_hrtime() + (uint64_t)spin_ns;
    do {
        for (int i = 0; i < ROUNDS; i++) {
            if (has_work(context)) {
                return true;
            }
#if defined(__x86_64__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            __asm__ volatile("yield");
#endif
        }
        sched_yield();
    } while (uv_hrtime() < end_ns);
    return false;
}
