/* See wakeup.h. */
#include "server/system/wakeup.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void wakeup_on_poll(uv_poll_t *poll, int status, int events) {
    const struct wakeup *wakeup = poll->data;
    uint64_t count;
    (void)status;
    (void)events;
    (void)!read(wakeup->fd, &count, sizeof count);
    if (wakeup->on_wake != NULL) {
        wakeup->on_wake(wakeup->context);
    }
}

bool wakeup_init(struct wakeup *wakeup, uv_loop_t *loop) {
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
    return uv_poll_start(&wakeup->poll, UV_READABLE, wakeup_on_poll) == 0;
}

void wakeup_close(struct wakeup *wakeup) {
    if (!uv_is_closing((uv_handle_t *)&wakeup->poll)) {
        uv_close((uv_handle_t *)&wakeup->poll, NULL);
    }
}

void wakeup_deinit(struct wakeup *wakeup) {
    close(wakeup->fd);
}

void wakeup_write(struct wakeup *wakeup) {
    uint64_t one = 1;
    (void)!write(wakeup->fd, &one, sizeof one); /* cannot fail: the count stays small */
}

bool wakeup_spin(int64_t spin_ns, bool (*has_work)(void *context), void *context) {
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
