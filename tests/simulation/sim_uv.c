/* libuv for simulated processes: the functions of uv.h that the server uses, with the same meaning.
 * A loop is run by its fiber; mutexes, conditions and threads are fibers that wait for each other. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_process.h"

/* A turn of the loop, and how late a thread notices. */
enum { TURN_NS = 3000, THREAD_NS_MAX = 150000 };

/* u.reserved[0] of a handle. */
struct sim_handle {
    uv_handle_t *handle;
    struct sim_handle *next;
    bool is_active, is_closing, is_unreferenced, is_over;
    union {
        uv_timer_cb timer;
        uv_poll_cb poll;
        uv_idle_cb idle;
        uv_prepare_cb prepare;
        uv_check_cb check;
        uv_async_cb async;
        uv_signal_cb signal;
    } call;
    uint64_t due_ms, repeat_ms, order; /* of a timer */
    int fd, events;                    /* of a poll */
    bool is_sent;                      /* of an async */
    int number;                        /* of a signal */
};

/* loop->data is the program's; this is in loop->active_reqs.unused[0]. */
struct sim_loop {
    struct sim_process *process;
    struct sim_handle *first[UV_HANDLE_TYPE_MAX], **last[UV_HANDLE_TYPE_MAX]; /* of each type */
    unsigned closing_count;
    uint64_t now_ms, order;
};

static struct sim_loop *sim_uv_loop(const uv_loop_t *loop) {
    return loop->active_reqs.unused;
}

static struct sim_handle *sim_uv_handle(const void *handle) {
    return ((const uv_handle_t *)handle)->u.reserved[0];
}

/* ---- the loop ---- */

uint64_t uv_hrtime(void) {
    sim_fiber_spend(200);
    return (uint64_t)sim_machine_monotonic(sim_process_current()->machine);
}

void uv_update_time(uv_loop_t *loop) {
    sim_uv_loop(loop)->now_ms = uv_hrtime() / (uint64_t)SIM_MS;
}

uint64_t uv_now(const uv_loop_t *loop) {
    return sim_uv_loop(loop)->now_ms;
}

int uv_loop_init(uv_loop_t *loop) {
    struct sim_loop *own = calloc(1, sizeof *own);
    memset(loop, 0, sizeof *loop);
    own->process = sim_process_current();
    for (int type = 0; type < UV_HANDLE_TYPE_MAX; type++) {
        own->last[type] = &own->first[type];
    }
    loop->active_reqs.unused = own;
    uv_update_time(loop);
    return 0;
}

int uv_loop_close(uv_loop_t *loop) {
    const struct sim_loop *own = sim_uv_loop(loop);
    for (int type = 0; type < UV_HANDLE_TYPE_MAX; type++) {
        if (own->first[type] != NULL) {
            return UV_EBUSY;
        }
    }
    return 0;
}

static int sim_uv_add(uv_loop_t *loop, void *handle, uv_handle_type type) {
    struct sim_loop *own = sim_uv_loop(loop);
    struct sim_handle *added = calloc(1, sizeof *added);
    uv_handle_t *public = handle;
    public->loop = loop;
    public->type = type;
    public->u.reserved[0] = added;
    added->handle = public;
    *own->last[type] = added;
    own->last[type] = &added->next;
    return 0;
}

static void sim_uv_run_kind(struct sim_loop *own, uv_handle_type type) {
    for (struct sim_handle *each = own->first[type]; each != NULL; each = each->next) {
        if (each->is_active) {
            if (type == UV_IDLE) {
                each->call.idle((uv_idle_t *)each->handle);
            } else if (type == UV_PREPARE) {
                each->call.prepare((uv_prepare_t *)each->handle);
            } else {
                each->call.check((uv_check_t *)each->handle);
            }
        }
    }
}

static struct sim_handle *sim_uv_next_timer(struct sim_loop *own) {
    struct sim_handle *next = NULL;
    for (struct sim_handle *each = own->first[UV_TIMER]; each != NULL; each = each->next) {
        if (each->is_active && (next == NULL || each->due_ms < next->due_ms ||
                                (each->due_ms == next->due_ms && each->order < next->order))) {
            next = each;
        }
    }
    return next;
}

static void sim_uv_run_timers(struct sim_loop *own) {
    struct sim_handle *timer;
    while ((timer = sim_uv_next_timer(own)) != NULL && timer->due_ms <= own->now_ms) {
        uv_timer_t *public = (uv_timer_t *)timer->handle;
        timer->is_active = false;
        if (timer->repeat_ms > 0) {
            (void)uv_timer_start(public, timer->call.timer, timer->repeat_ms, timer->repeat_ms);
        }
        timer->call.timer(public);
    }
}

static int sim_uv_ready(const struct sim_handle *poll) {
    struct sim_file *file = sim_process_file(sim_process_current(), poll->fd);
    int ready = 0;
    if (file == NULL) {
        return 0;
    }
    if (file->kind == SIM_FD_SOCKET) {
        ready |= sim_socket_is_readable(file->socket) ? UV_READABLE : 0;
        ready |= sim_socket_is_writable(file->socket) ? UV_WRITABLE : 0;
    } else if (file->kind == SIM_FD_PIPE_OUT) {
        ready |= file->pipe->size > 0 || !file->pipe->has_writer ? UV_READABLE : 0;
        ready |= !file->pipe->has_writer ? UV_DISCONNECT : 0;
    } else if (file->kind == SIM_FD_EVENT) {
        ready |= file->count > 0 ? UV_READABLE : 0;
    }
    return ready & poll->events;
}

static unsigned sim_uv_signal_bit(const struct sim_handle *each) {
    return 1U << each->number;
}

static bool sim_uv_is_ready(struct sim_loop *own, const struct sim_handle *each) {
    if (!each->is_active) {
        return false;
    }
    switch ((int)each->handle->type) {
    case UV_POLL:
        return sim_uv_ready(each) != 0;
    case UV_ASYNC:
        return each->is_sent;
    case UV_SIGNAL:
        return (own->process->signals & sim_uv_signal_bit(each)) != 0;
    default:
        return false;
    }
}

/* What a loop waits for, besides its timers. */
static const uv_handle_type sim_uv_sources[] = {UV_ASYNC, UV_POLL, UV_SIGNAL};
enum { SOURCES = sizeof sim_uv_sources / sizeof sim_uv_sources[0] };

static bool sim_uv_has_ready(struct sim_loop *own) {
    for (int i = 0; i < SOURCES; i++) {
        for (struct sim_handle *each = own->first[sim_uv_sources[i]]; each != NULL;
             each = each->next) {
            if (sim_uv_is_ready(own, each)) {
                return true;
            }
        }
    }
    return false;
}

static void sim_uv_call(struct sim_loop *own, struct sim_handle *each) {
    switch ((int)each->handle->type) {
    case UV_POLL:
        each->call.poll((uv_poll_t *)each->handle, 0, sim_uv_ready(each));
        break;
    case UV_ASYNC:
        each->is_sent = false;
        each->call.async((uv_async_t *)each->handle);
        break;
    default:
        own->process->signals &= ~sim_uv_signal_bit(each);
        each->call.signal((uv_signal_t *)each->handle, each->number);
    }
}

static void sim_uv_run_ready(struct sim_loop *own) {
    for (int i = 0; i < SOURCES; i++) {
        for (struct sim_handle *each = own->first[sim_uv_sources[i]]; each != NULL;
             each = each->next) {
            if (sim_uv_is_ready(own, each)) {
                sim_uv_call(own, each);
            }
        }
    }
}

static void sim_uv_forget_closed(struct sim_loop *own, int type) {
    struct sim_handle **at = &own->first[type];
    while (*at != NULL) {
        struct sim_handle *each = *at;
        if (each->is_over) {
            *at = each->next;
            free(each);
        } else {
            at = &each->next;
        }
    }
    own->last[type] = at;
}

/* Call back and forget what is closed; both may add and close others. */
static void sim_uv_run_closed(struct sim_loop *own) {
    for (int type = 0; own->closing_count > 0 && type < UV_HANDLE_TYPE_MAX; type++) {
        for (struct sim_handle *each = own->first[type]; each != NULL; each = each->next) {
            if (each->is_closing && !each->is_over) {
                each->is_over = true;
                own->closing_count--;
                if (each->handle->close_cb != NULL) {
                    each->handle->close_cb(each->handle);
                }
            }
        }
        sim_uv_forget_closed(own, type);
    }
}

static bool sim_uv_is_alive(struct sim_loop *own) {
    if (own->closing_count > 0) {
        return true;
    }
    for (int type = 0; type < UV_HANDLE_TYPE_MAX; type++) {
        for (struct sim_handle *each = own->first[type]; each != NULL; each = each->next) {
            if (each->is_active && !each->is_unreferenced) {
                return true;
            }
        }
    }
    return false;
}

static bool sim_uv_may_wait(struct sim_loop *own) {
    for (struct sim_handle *each = own->first[UV_IDLE]; each != NULL; each = each->next) {
        if (each->is_active) {
            return false;
        }
    }
    return own->closing_count == 0;
}

static void sim_uv_poll(struct sim_loop *own, bool is_waiting) {
    if (!is_waiting || sim_uv_has_ready(own)) {
        /* Others' time passes as far as this loop has computed. */
        sim_fiber_sleep(sim_fiber_now());
    }
    while (is_waiting && !sim_uv_has_ready(own)) {
        const struct sim_handle *timer = sim_uv_next_timer(own);
        const struct sim_machine *machine = own->process->machine;
        int64_t now = sim_machine_monotonic(machine);
        int64_t due = timer != NULL ? (int64_t)timer->due_ms * SIM_MS : INT64_MAX;
        if (due <= now) {
            break;
        }
        /* A clock of another rate: look again when it is about time. */
        sim_fiber_wait(timer != NULL ? sim_fiber_now() + (due - now) : INT64_MAX);
    }
    sim_uv_run_ready(own);
}

int uv_run(uv_loop_t *loop, uv_run_mode mode) {
    struct sim_loop *own = sim_uv_loop(loop);
    while (sim_uv_is_alive(own)) {
        sim_fiber_spend(TURN_NS);
        uv_update_time(loop);
        sim_uv_run_timers(own);
        sim_uv_run_kind(own, UV_IDLE);
        sim_uv_run_kind(own, UV_PREPARE);
        sim_uv_poll(own, mode != UV_RUN_NOWAIT && sim_uv_may_wait(own) && sim_uv_is_alive(own));
        uv_update_time(loop);
        sim_uv_run_kind(own, UV_CHECK);
        sim_uv_run_closed(own);
        if (mode != UV_RUN_DEFAULT) {
            break;
        }
    }
    return sim_uv_is_alive(own);
}

/* ---- handles ---- */

void uv_close(uv_handle_t *handle, uv_close_cb call) {
    struct sim_handle *own = sim_uv_handle(handle);
    sim_uv_loop(handle->loop)->closing_count += !own->is_closing;
    own->is_active = false;
    own->is_closing = true;
    handle->close_cb = call;
}

int uv_is_closing(const uv_handle_t *handle) {
    return sim_uv_handle(handle)->is_closing;
}

int uv_is_active(const uv_handle_t *handle) {
    return sim_uv_handle(handle)->is_active;
}

void uv_unref(uv_handle_t *handle) {
    sim_uv_handle(handle)->is_unreferenced = true;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer) {
    return sim_uv_add(loop, timer, UV_TIMER);
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb call, uint64_t ms, uint64_t repeat_ms) {
    struct sim_handle *own = sim_uv_handle(timer);
    struct sim_loop *loop = sim_uv_loop(timer->loop);
    own->is_active = !own->is_closing;
    own->call.timer = call;
    own->due_ms = loop->now_ms + ms;
    own->repeat_ms = repeat_ms;
    own->order = ++loop->order;
    return 0;
}

int uv_timer_stop(uv_timer_t *timer) {
    sim_uv_handle(timer)->is_active = false;
    return 0;
}

uint64_t uv_timer_get_due_in(const uv_timer_t *timer) {
    const struct sim_handle *own = sim_uv_handle(timer);
    int64_t left_ms = (int64_t)(own->due_ms - sim_uv_loop(timer->loop)->now_ms);
    return own->is_active && left_ms > 0 ? (uint64_t)left_ms : 0;
}

int uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd) {
    (void)sim_uv_add(loop, poll, UV_POLL);
    sim_uv_handle(poll)->fd = fd;
    return 0;
}

int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb call) {
    struct sim_handle *own = sim_uv_handle(poll);
    own->is_active = events != 0;
    own->events = events;
    own->call.poll = call;
    return 0;
}

int uv_poll_stop(uv_poll_t *poll) {
    sim_uv_handle(poll)->is_active = false;
    return 0;
}

#define SIM_UV_EACH_TURN(kind, type)                                                               \
    int uv_##kind##_init(uv_loop_t *loop, uv_##kind##_t *handle) {                                 \
        return sim_uv_add(loop, handle, type);                                                     \
    }                                                                                              \
    int uv_##kind##_start(uv_##kind##_t *handle, uv_##kind##_cb call) {                            \
        sim_uv_handle(handle)->is_active = true;                                                   \
        sim_uv_handle(handle)->call.kind = call;                                                   \
        return 0;                                                                                  \
    }                                                                                              \
    int uv_##kind##_stop(uv_##kind##_t *handle) {                                                  \
        sim_uv_handle(handle)->is_active = false;                                                  \
        return 0;                                                                                  \
    }
SIM_UV_EACH_TURN(idle, UV_IDLE)
SIM_UV_EACH_TURN(prepare, UV_PREPARE)
SIM_UV_EACH_TURN(check, UV_CHECK)

int uv_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb call) {
    (void)sim_uv_add(loop, async, UV_ASYNC);
    sim_uv_handle(async)->is_active = true;
    sim_uv_handle(async)->call.async = call;
    return 0;
}

int uv_async_send(uv_async_t *async) {
    sim_uv_handle(async)->is_sent = true;
    sim_process_poke_loop(sim_process_current());
    return 0;
}

int uv_signal_init(uv_loop_t *loop, uv_signal_t *signal) {
    return sim_uv_add(loop, signal, UV_SIGNAL);
}

int uv_signal_start(uv_signal_t *signal, uv_signal_cb call, int number) {
    struct sim_handle *own = sim_uv_handle(signal);
    own->is_active = true;
    own->call.signal = call;
    own->number = number;
    return 0;
}

const char *uv_strerror(int code) {
    return strerror(-code);
}

uv_pid_t uv_os_getpid(void) {
    return (uv_pid_t)sim_process_current()->number;
}

void uv_sleep(unsigned ms) {
    sim_fiber_sleep(sim_fiber_now() + ms * SIM_MS);
}

/* Names are not looked up: all addresses are numbers. */
int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb call,
                   const char *node, const char *service, const struct addrinfo *hints) {
    (void)loop;
    (void)request;
    (void)call;
    (void)service;
    (void)hints;
    sim_fail("the name %s is to be looked up", node);
}

void uv_freeaddrinfo(struct addrinfo *found) {
    (void)found;
}

int uv_cancel(uv_req_t *request) {
    (void)request;
    return UV_EBUSY;
}

/* ---- threads ---- */

/* The first bytes of a uv_mutex_t or a uv_cond_t point at one of these. */
struct sim_lock {
    struct sim_fiber *holder;
    struct sim_fiber *waiting[SIM_FIBERS_MAX];
    size_t waiting_count;
};

static struct sim_lock *sim_uv_lock(void *at) {
    return *(struct sim_lock **)at;
}

static int sim_uv_make_lock(void *at) {
    *(struct sim_lock **)at = calloc(1, sizeof(struct sim_lock));
    return 0;
}

static void sim_uv_wake_late(void *context, uint64_t number) {
    (void)number;
    sim_fiber_wake(context);
}

/* Forget this one; the others stay in order. */
static void sim_uv_forget_waiting(struct sim_lock *lock, size_t index) {
    lock->waiting_count--;
    memmove(&lock->waiting[index], &lock->waiting[index + 1],
            (lock->waiting_count - index) * sizeof lock->waiting[0]);
}

static bool sim_uv_is_waiting(const struct sim_lock *lock, const struct sim_fiber *fiber) {
    for (size_t i = 0; i < lock->waiting_count; i++) {
        if (lock->waiting[i] == fiber) {
            return true;
        }
    }
    return false;
}

static void sim_uv_wait_for(struct sim_lock *lock) {
    struct sim_fiber *current = sim_fiber_current();
    lock->waiting[lock->waiting_count++] = current;
    while (sim_uv_is_waiting(lock, current)) {
        sim_fiber_wait(INT64_MAX);
    }
}

static void sim_uv_wake_first(struct sim_lock *lock) {
    if (lock->waiting_count > 0) {
        struct sim_fiber *fiber = lock->waiting[0];
        struct random *random = &sim_process_current()->machine->random;
        sim_uv_forget_waiting(lock, 0);
        sim_at(sim_fiber_now() + sim_random_between(random, 1000, THREAD_NS_MAX), sim_uv_wake_late,
               fiber, 0);
    }
}

int uv_mutex_init(uv_mutex_t *mutex) {
    return sim_uv_make_lock(mutex);
}

void uv_mutex_destroy(uv_mutex_t *mutex) {
    free(sim_uv_lock(mutex));
}

void uv_mutex_lock(uv_mutex_t *mutex) {
    struct sim_lock *lock = sim_uv_lock(mutex);
    while (lock->holder != NULL) {
        sim_uv_wait_for(lock);
    }
    lock->holder = sim_fiber_current();
}

void uv_mutex_unlock(uv_mutex_t *mutex) {
    struct sim_lock *lock = sim_uv_lock(mutex);
    lock->holder = NULL;
    sim_uv_wake_first(lock);
}

int uv_cond_init(uv_cond_t *condition) {
    return sim_uv_make_lock(condition);
}

void uv_cond_destroy(uv_cond_t *condition) {
    free(sim_uv_lock(condition));
}

void uv_cond_wait(uv_cond_t *condition, uv_mutex_t *mutex) {
    uv_mutex_unlock(mutex);
    sim_uv_wait_for(sim_uv_lock(condition));
    uv_mutex_lock(mutex);
}

int uv_cond_timedwait(uv_cond_t *condition, uv_mutex_t *mutex, uint64_t ns) {
    struct sim_lock *lock = sim_uv_lock(condition);
    struct sim_fiber *current = sim_fiber_current();
    uv_mutex_unlock(mutex);
    lock->waiting[lock->waiting_count++] = current;
    sim_fiber_sleep(sim_fiber_now() + (int64_t)ns);
    bool is_late = sim_uv_is_waiting(lock, current);
    for (size_t i = 0; i < lock->waiting_count; i++) {
        if (lock->waiting[i] == current) {
            sim_uv_forget_waiting(lock, i);
        }
    }
    uv_mutex_lock(mutex);
    return is_late ? UV_ETIMEDOUT : 0;
}

void uv_cond_signal(uv_cond_t *condition) {
    sim_uv_wake_first(sim_uv_lock(condition));
}

void uv_cond_broadcast(uv_cond_t *condition) {
    while (sim_uv_lock(condition)->waiting_count > 0) {
        sim_uv_wake_first(sim_uv_lock(condition));
    }
}

int uv_thread_create(uv_thread_t *thread, uv_thread_cb run, void *argument) {
    struct sim_fiber *fiber =
        sim_process_fiber(sim_process_current(), run, argument, sim_fiber_now() + THREAD_NS_MAX);
    memcpy(thread, &fiber, sizeof fiber);
    return 0;
}

int uv_thread_join(uv_thread_t *thread) {
    struct sim_fiber *fiber;
    memcpy(&fiber, thread, sizeof fiber);
    while (!sim_fiber_is_over(fiber)) {
        sim_fiber_sleep(sim_fiber_now() + SIM_MS);
    }
    return 0;
}
