/* The ring between two threads: alone, and with both threads at full speed, asleep in between as the
 * loops are. */
#include "tests/support/test.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/network/batch.h"
#include "server/system/worker.h"
#include "tests/support/random.h"

enum { ITEMS = 100000000, ITEMS_SHORT = 200000 };

static uint64_t item_count(void) {
    return is_short_run() ? ITEMS_SHORT : ITEMS;
}

TEST(a_ring_takes_its_size_and_gives_it_back_in_order) {
    OWNED struct ring *ring = aligned_alloc(RING_CACHE_LINE, sizeof *ring);
    assert_non_null(ring);
    memset(ring, 0, sizeof *ring);
    static char items[RING_SIZE + 1];
    for (int round = 0; round < 3; round++) {
        assert_true(ring_is_empty(ring));
        assert_null(ring_take(ring));
        for (int i = 0; i < RING_SIZE; i++) {
            assert_true(ring_put(ring, &items[i]));
        }
        assert_false(ring_put(ring, &items[RING_SIZE]));
        assert_false(ring_is_empty(ring));
        for (int i = 0; i < RING_SIZE; i++) {
            assert_ptr_equal(ring_take(ring), &items[i]);
        }
    }
    /* The indexes wrap. */
    ring->head = ring->tail = ring->head_seen = ring->tail_seen = UINT32_MAX - 1;
    for (int i = 0; i < RING_SIZE; i++) {
        assert_true(ring_put(ring, &items[i]));
    }
    assert_false(ring_put(ring, &items[0]));
    for (int i = 0; i < RING_SIZE; i++) {
        assert_ptr_equal(ring_take(ring), &items[i]);
    }
    assert_true(ring_is_empty(ring));
}

/* What passes is written by one thread and read by the other without atomics: the ring orders it. */
struct item {
    uint64_t number, check;
};

struct race {
    struct ring forth, back; /* the same items come back to be used again */
    struct wakeup consumer, producer;
    uint64_t count;
    bool is_sleepy; /* both sleep where they can */
    uint64_t sum;
};

/* As a loop does: say that it sleeps, look once more, wait. */
static void rest(struct wakeup *wakeup, struct ring *ring) {
    worker_wakeup_sleep(wakeup);
    if (ring_is_empty(ring)) {
        struct pollfd wait = {.fd = wakeup->fd, .events = POLLIN};
        uint64_t value;
        assert_int_equal(poll(&wait, 1, 60000), 1); /* nobody woke it */
        assert_int_equal(read(wakeup->fd, &value, sizeof value), sizeof value);
    } else {
        worker_wakeup_wake(wakeup);
    }
}

static void *consume(void *context) {
    struct race *race = context;
    for (uint64_t seen = 0; seen < race->count;) {
        struct item *item = ring_take(&race->forth);
        if (item == NULL) {
            if (race->is_sleepy) {
                rest(&race->consumer, &race->forth);
            }
            continue;
        }
        CHECK(item->number == seen && item->check == ~seen);
        race->sum += item->number;
        seen++;
        CHECK(ring_put(&race->back, item));
        worker_wakeup_send(&race->producer);
    }
    return NULL;
}

static void run_race(bool is_sleepy, uint64_t count) {
    static struct item items[RING_SIZE / 2];
    OWNED struct race *race = aligned_alloc(RING_CACHE_LINE, (sizeof *race + 63) / 64 * 64);
    uv_loop_t loop;
    pthread_t thread;
    assert_non_null(race);
    memset(race, 0, sizeof *race);
    race->count = count;
    race->is_sleepy = is_sleepy;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_true(worker_wakeup_init(&race->consumer, &loop) &&
                worker_wakeup_init(&race->producer, &loop));
    for (size_t i = 0; i < RING_SIZE / 2; i++) {
        assert_true(ring_put(&race->back, &items[i]));
    }
    assert_int_equal(pthread_create(&thread, NULL, consume, race), 0);
    for (uint64_t number = 0; number < count;) {
        struct item *item = ring_take(&race->back);
        if (item == NULL) {
            if (is_sleepy) {
                rest(&race->producer, &race->back);
            }
            continue;
        }
        item->number = number;
        item->check = ~number;
        number++;
        assert_true(ring_put(&race->forth, item));
        worker_wakeup_send(&race->consumer);
    }
    pthread_join(thread, NULL);
    assert_int_equal(race->sum, count * (count - 1) / 2);
    worker_wakeup_close(&race->consumer);
    worker_wakeup_close(&race->producer);
    uv_run(&loop, UV_RUN_DEFAULT);
    worker_wakeup_deinit(&race->consumer);
    worker_wakeup_deinit(&race->producer);
    assert_int_equal(uv_loop_close(&loop), 0);
}

TEST(nothing_is_lost_torn_or_out_of_order_at_full_speed) {
    run_race(false, item_count());
}

TEST(nobody_sleeps_while_there_is_something_to_take) {
    run_race(true, item_count());
}
