/* See asks.h.
 *
 * Each way is a stack that many may push to and one takes as a whole, so that neither side can be held
 * up by the other in the middle of it; what was taken is turned round to be in order. */
#include "server/http/asks.h"

#include "server/system/clock.h"

/* ---- one way ---- */

/* From first, the newest, to last. Who finds nothing there wakes the other side, which takes all that comes until it
 * wakes. */
static void asks_push(struct ask_way *way, struct ask *first, struct ask *last) {
    struct ask *newest = atomic_load_explicit(&way->newest, memory_order_relaxed);
    do {
        last->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&way->newest, &newest, first,
                                                    memory_order_release, memory_order_relaxed));
    if (newest == NULL) { /* the other side may have the question already */
        worker_wakeup_write(&way->wakeup);
    }
}

/* All that is there, the oldest first. */
static struct ask *asks_take(struct ask_way *way) {
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

/* The handle keeps no loop alive. */
static bool asks_watch(struct ask_way *way, uv_loop_t *loop, void (*on_wake)(void *asks),
                       struct asks *asks) {
    if (!worker_wakeup_init(&way->wakeup, loop)) {
        return false;
    }
    way->wakeup.on_wake = on_wake;
    way->wakeup.context = asks;
    uv_unref((uv_handle_t *)&way->wakeup.poll);
    return true;
}

/* ---- the engine ---- */

static void asks_on_question(void *context) {
    struct asks *asks = context;
    struct ask **last = &asks->left_first;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = asks_take(&asks->to_engine);
    struct ask *newest = NULL;
    struct ask *oldest = NULL;
    uint64_t begin_ticks = clock_ticks();
    for (int i = 0; i < ASKS_PER_TURN && asks->left_first != NULL &&
                    clock_ticks_to_ns(clock_ticks() - begin_ticks) < ASKS_NS_PER_TURN;
         i++) {
        struct ask *ask = asks->left_first;
        asks->left_first = ask->next;
        if (ask->answer(asks->engine_context, ask)) {
            ask->next = newest;
            oldest = newest == NULL ? ask : oldest;
            newest = ask;
        }
    }
    if (newest != NULL) {
        asks_push(&asks->to_asker, newest, oldest);
    }
    if (asks->left_first != NULL) {
        worker_wakeup_write(&asks->to_engine.wakeup); /* in the next turn */
    }
}

bool asks_init(struct asks *asks, uv_loop_t *engine_loop, void *engine_context,
               void *asker_context) {
    asks->engine_context = engine_context;
    asks->asker_context = asker_context;
    return asks_watch(&asks->to_engine, engine_loop, asks_on_question, asks);
}

static void asks_drop_all(struct asks *asks, struct ask *ask,
                          void (*drop)(void *context, struct ask *ask)) {
    while (ask != NULL) {
        struct ask *next = ask->next;
        drop(asks->asker_context, ask);
        ask = next;
    }
}

void asks_answer(struct asks *asks, struct ask *ask) {
    asks_push(&asks->to_asker, ask, ask);
}

void asks_close(struct asks *asks, void (*drop)(void *context, struct ask *ask)) {
    worker_wakeup_close(&asks->to_engine.wakeup);
    asks_drop_all(asks, asks->left_first, drop);
    asks_drop_all(asks, asks_take(&asks->to_engine), drop);
    asks_drop_all(asks, asks_take(&asks->to_asker), drop);
    asks->left_first = NULL;
}

void asks_deinit(struct asks *asks) {
    worker_wakeup_deinit(&asks->to_engine.wakeup);
    worker_wakeup_deinit(&asks->to_asker.wakeup);
}

/* ---- the asker ---- */

static void asks_on_answer(void *context) {
    struct asks *asks = context;
    struct ask *ask = asks_take(&asks->to_asker);
    while (ask != NULL) {
        struct ask *next = ask->next;
        ask->done(asks->asker_context, ask);
        ask = next;
    }
}

bool asks_attach(struct asks *asks, uv_loop_t *asker_loop) {
    return asks_watch(&asks->to_asker, asker_loop, asks_on_answer, asks);
}

void asks_put(struct asks *asks, struct ask *ask) {
    ask->next = asks->put_newest;
    asks->put_oldest = asks->put_newest == NULL ? ask : asks->put_oldest;
    asks->put_newest = ask;
    if (++asks->put_count == ASKS_PER_TURN) {
        asks_send(asks);
    }
}

void asks_send(struct asks *asks) {
    if (asks->put_newest != NULL) {
        asks_push(&asks->to_engine, asks->put_newest, asks->put_oldest);
        asks->put_newest = asks->put_oldest = NULL;
        asks->put_count = 0;
    }
}

void asks_wake_asker(struct asks *asks) {
    worker_wakeup_write(&asks->to_asker.wakeup);
}

void asks_detach(struct asks *asks) {
    asks_send(asks);
    worker_wakeup_close(&asks->to_asker.wakeup);
}
