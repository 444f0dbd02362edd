/* Waking a loop that sleeps, from another thread.
 *
 *     sleeper   wakeup_sleep   says that it is about to sleep; then it looks for work once more
 *     other     puts work; then wakeup_send   writes to the eventfd if the sleeper has said so
 *
 * Only the first of many writes, so a loop that is awake costs the others one load. uv_async would do,
 * but the loop that is woken waits there, spinning, until the sender has returned from its call, which
 * takes long where both have one processor. See network/batch.h for why nothing is missed. */
#ifndef SERVER_WAKEUP_H
#define SERVER_WAKEUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "codec/check.h"

struct wakeup {
    _Atomic bool is_asleep;
    int fd;
    void (*on_wake)(void *context); /* NULL: the loop's check handle does the work */
    void *context;
    uv_poll_t poll;
};

/* false: no descriptor. on_wake is NULL: set it before the loop turns. */
MUST_CHECK bool wakeup_init(struct wakeup *wakeup, uv_loop_t *loop);
/* Call in the sleeper. The loop must turn once more before the memory may be freed. */
void wakeup_close(struct wakeup *wakeup);
/* Call once neither side uses it any more. */
void wakeup_deinit(struct wakeup *wakeup);

static inline void wakeup_sleep(struct wakeup *wakeup) {
    atomic_store_explicit(&wakeup->is_asleep, true, memory_order_seq_cst);
}
static inline void wakeup_wake(struct wakeup *wakeup) {
    atomic_store_explicit(&wakeup->is_asleep, false, memory_order_relaxed);
}
/* Before sleeping: look for work for up to spin_ns, giving way to others. false: there was none. */
bool wakeup_spin(int64_t spin_ns, bool (*has_work)(void *context), void *context);
/* Wake it in any case. */
void wakeup_write(struct wakeup *wakeup);
static inline void wakeup_send(struct wakeup *wakeup) {
    if (atomic_load_explicit(&wakeup->is_asleep, memory_order_seq_cst) &&
        atomic_exchange_explicit(&wakeup->is_asleep, false, memory_order_seq_cst)) {
        wakeup_write(wakeup);
    }
}

#endif
