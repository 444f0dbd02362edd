/* See ask.h.
 *
 * Each way is a stack that many may push to and one takes as a whole, so that neither side can be held
 * up by the other in the middle of it; what was taken is turned round to be in order. */
#include "server/http/ask.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* ---- one way ---- */

static void ask_wake(const struct ask_way *way) {
    const uint64_t one = 1;
    (void)!write(way->fd, &one, sizeof one);
}

static void ask_push(struct ask_way *way, struct ask *ask) {
    ask->next = atomic_load_explicit(&way->newest, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&way->newest, &ask->next, ask,
                                                  memory_order_release, memory_order_relaxed)) {}
    ask_wake(way);
}

/* All that is there, the oldest first. */
static struct ask *ask_take(struct ask_way *way) {
    struct ask *newest = atomic_exchange_explicit(&way->newest, NULL, memory_order_acquire);
    struct ask *first = NULL;
    while (newest != NULL) {
        struct ask *older = newest->next;
        newest->next = first;
        first = newest;
        newest = older;
    }
    return first;
}

static bool ask_open_way(struct ask_way *way) {
    way->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return way->fd >= 0;
}

static bool ask_watch(struct ask_way *way, uv_loop_t *loop, uv_poll_cb call, struct asks *asks) {
    way->poll.data = asks;
    if (uv_poll_init(loop, &way->poll, way->fd) != 0) {
        return false;
    }
    uv_unref((uv_handle_t *)&way->poll);
    return uv_poll_start(&way->poll, UV_READABLE, call) == 0;
}

static void ask_calm(const struct ask_way *way) {
    uint64_t count;
    (void)!read(way->fd, &count, sizeof count);
}

/* ---- the engine ---- */

static void ask_on_question(uv_poll_t *poll, int status, int events) {
    struct asks *asks = poll->data;
    (void)status;
    (void)events;
    ask_calm(&asks->to_engine);
    struct ask **last = &asks->left_first;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = ask_take(&asks->to_engine);
    for (int i = 0; i < ASKS_PER_TURN && asks->left_first != NULL; i++) {
        struct ask *ask = asks->left_first;
        asks->left_first = ask->next;
        if (ask->answer(asks->engine_context, ask)) {
            ask_push(&asks->to_asker, ask);
        }
    }
    if (asks->left_first != NULL) {
        ask_wake(&asks->to_engine); /* in the next turn */
    }
}

bool asks_init(struct asks *asks, uv_loop_t *engine_loop, void *engine_context,
               void *asker_context) {
    asks->engine_context = engine_context;
    asks->asker_context = asker_context;
    if (!ask_open_way(&asks->to_engine)) {
        return false;
    }
    if (!ask_open_way(&asks->to_asker)) {
        close(asks->to_engine.fd);
        return false;
    }
    if (!ask_watch(&asks->to_engine, engine_loop, ask_on_question, asks)) {
        asks_deinit(asks);
        return false;
    }
    return true;
}

static void ask_drop_all(struct asks *asks, struct ask *ask,
                         void (*drop)(void *context, struct ask *ask)) {
    while (ask != NULL) {
        struct ask *next = ask->next;
        drop(asks->asker_context, ask);
        ask = next;
    }
}

void asks_answer(struct asks *asks, struct ask *ask) {
    ask_push(&asks->to_asker, ask);
}

void asks_close(struct asks *asks, void (*drop)(void *context, struct ask *ask)) {
    uv_close((uv_handle_t *)&asks->to_engine.poll, NULL);
    ask_drop_all(asks, asks->left_first, drop);
    ask_drop_all(asks, ask_take(&asks->to_engine), drop);
    ask_drop_all(asks, ask_take(&asks->to_asker), drop);
    asks->left_first = NULL;
}

void asks_deinit(struct asks *asks) {
    close(asks->to_engine.fd);
    close(asks->to_asker.fd);
}

/* ---- the asker ---- */

static void ask_on_answer(uv_poll_t *poll, int status, int events) {
    struct asks *asks = poll->data;
    (void)status;
    (void)events;
    ask_calm(&asks->to_asker);
    struct ask *ask = ask_take(&asks->to_asker);
    while (ask != NULL) {
        struct ask *next = ask->next;
        ask->done(asks->asker_context, ask);
        ask = next;
    }
}

bool asks_attach(struct asks *asks, uv_loop_t *asker_loop) {
    return ask_watch(&asks->to_asker, asker_loop, ask_on_answer, asks);
}

void asks_put(struct asks *asks, struct ask *ask) {
    ask_push(&asks->to_engine, ask);
}

void asks_wake_asker(struct asks *asks) {
    ask_wake(&asks->to_asker);
}

void asks_detach(struct asks *asks) {
    uv_close((uv_handle_t *)&asks->to_asker.poll, NULL);
}
