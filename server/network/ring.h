/* A ring of pointers from one thread to one other, without a lock.
 *
 *     producer   items[tail] = item;  tail + 1  ------------.
 *                                                           v  what was written before is seen
 *     consumer                            sees tail, reads items[head];  head + 1 ----.
 *                                                                                     v
 *     producer                                       sees head: the place is free again
 *
 * Memory order. Each index has one writer. The store of tail publishes the item and everything that
 * the producer wrote before; the consumer's load of tail receives it (release and acquire). The same
 * holds for head and the places that become free.
 *
 * Sleeping. A consumer that wants to sleep first says so and then looks at the ring once more; a
 * producer first puts its item and then looks whether the consumer sleeps. These are a store and a
 * load of different variables on each side, so all four are sequentially consistent: in their one
 * total order at least one side sees the other's store, and no item is left behind a sleeper
 * (network.h). That is why tail is stored so.
 *
 * head and tail run freely and wrap at 2^32; each side keeps the other's index as it last saw it and
 * reads it again only when the ring seems full or empty. */
#ifndef SERVER_RING_H
#define SERVER_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/check.h"

enum { RING_SIZE = 256, RING_CACHE_LINE = 64 };

/* Zero-initialised: empty. */
struct ring {
    alignas(RING_CACHE_LINE) _Atomic uint32_t tail; /* written by the producer, as is the next */
    uint32_t head_seen;
    alignas(RING_CACHE_LINE) _Atomic uint32_t head; /* written by the consumer, as is the next */
    uint32_t tail_seen;
    alignas(RING_CACHE_LINE) void *items[RING_SIZE];
};

/* The producer: will the next ring_put succeed? */
static inline bool ring_has_room(struct ring *ring) {
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail - ring->head_seen == RING_SIZE) {
        ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
    }
    return tail - ring->head_seen < RING_SIZE;
}

/* The producer: false: the ring is full, and nothing was put. */
MUST_CHECK static inline bool ring_put(struct ring *ring, void *item) {
    if (!ring_has_room(ring)) {
        return false;
    }
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    ring->items[tail % RING_SIZE] = item;
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_seq_cst);
    return true;
}

/* The consumer: the oldest item; NULL: the ring is empty. */
static inline void *ring_take(struct ring *ring) {
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head == ring->tail_seen) {
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (head == ring->tail_seen) {
            return NULL;
        }
    }
    void *item = ring->items[head % RING_SIZE];
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return item;
}

/* The consumer, before it sleeps. */
static inline bool ring_is_empty(struct ring *ring) {
    return atomic_load_explicit(&ring->head, memory_order_relaxed) ==
           atomic_load_explicit(&ring->tail, memory_order_seq_cst);
}

#endif
