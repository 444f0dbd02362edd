/* Questions from another thread to the engine's, which answers them between two ticks. So what the
 * engine owns is read without a lock, and the engine never waits for the other side.
 *
 *     asker    asks_put, asks_send ---> to_engine ---> answer()   engine: in its loop's poll, at most ASKS_PER_TURN
 *              done()              <--- to_asker  <---            of them a turn
 *
 * Questions of a turn go together, and so do answers: waking the other side, and going from one to the other where both
 * have one processor, takes longer than many an answer. A question is its asker's memory: the engine uses it from
 * asks_put to done.
 *
 * How many questions there are at a time is the asker's to limit: http.c has one a route, and one a
 * request that gives a password; server/web/ limits the time that they take. */
#ifndef SERVER_ASKS_H
#define SERVER_ASKS_H

#include "server/system/worker.h"

/* The first always, and further ones while these have not taken so long. */
enum { ASKS_PER_TURN = 8, ASKS_NS_PER_TURN = 500000 };

struct ask {
    struct ask *next;
    /* On the engine's thread. It must be short. false: it is answered later, by asks_answer. */
    bool (*answer)(void *context, struct ask *ask);
    /* On the asker's thread, with the answer. */
    void (*done)(void *context, struct ask *ask);
};

/* One direction. */
struct ask_way {
    _Atomic(struct ask *) newest;
    struct wakeup wakeup;
};

struct asks {
    struct ask_way to_engine, to_asker;
    struct ask *left_first; /* the engine has taken them, but not answered yet, oldest first */
    struct ask *put_newest, *put_oldest; /* the asker has put them, but not sent yet */
    unsigned put_count;
    void *engine_context, *asker_context;
};

/* Must be zeroed. engine_context is for answer, asker_context for done. The handles keep no loop alive.
 * false: no descriptor; nothing is left behind. */
MUST_CHECK bool asks_init(struct asks *asks, uv_loop_t *engine_loop, void *engine_context,
                          void *asker_context);
/* On the asker's thread, before anything else there. false: libuv failed. */
MUST_CHECK bool asks_attach(struct asks *asks, uv_loop_t *asker_loop);
/* The asker: put a question; it is sent with others, as soon as there are ASKS_PER_TURN. */
void asks_put(struct asks *asks, struct ask *ask);
/* The asker, at the end of each turn of its loop: send what was put. */
void asks_send(struct asks *asks);
/* The engine: give back what answer has kept. */
void asks_answer(struct asks *asks, struct ask *ask);
/* Wake the asker's loop; any thread. */
void asks_wake_asker(struct asks *asks);
/* The asker, at its end: its loop must turn once more. */
void asks_detach(struct asks *asks);
/* The engine, when the asker's thread has ended: its loop must turn once more, and then asks_deinit. The
 * questions that are left are given to drop, with asker_context; those that answer has kept are the
 * engine's to give back before. */
void asks_close(struct asks *asks, void (*drop)(void *context, struct ask *ask));
void asks_deinit(struct asks *asks);

#endif
