/* malloc, counted.
 *
 *     used = sum of malloc_usable_size over the live pieces, the reserve among them
 *
 * Usable sizes, not asked-for ones, because rounding up is memory that the process holds too, and
 * because no header of ours is then needed. The counters are relaxed atomics: they order nothing,
 * and beside malloc and free they cost nothing that could be measured. */
#include "codec/memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { GIVE_BACK_MIN = 32 * 1024 * 1024 };

static struct {
    _Atomic size_t used;
    _Atomic size_t used_peak;
    _Atomic uint64_t live_count;
    _Atomic uint64_t request_count;
    _Atomic uint64_t fail_at; /* the request that fails, counted from 1; 0: none */
    void *_Atomic reserve;
    size_t used_high; /* the most that memory_give_back has seen since it last gave back */
} memory;

static void count_bytes(size_t size) {
    size_t used = atomic_fetch_add_explicit(&memory.used, size, memory_order_relaxed) + size;
    size_t peak = atomic_load_explicit(&memory.used_peak, memory_order_relaxed);
    while (used > peak &&
           !atomic_compare_exchange_weak_explicit(&memory.used_peak, &peak, used,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
}

static void uncount_bytes(size_t size) {
    atomic_fetch_sub_explicit(&memory.used, size, memory_order_relaxed);
}

static void count_piece(const void *at) {
    count_bytes(memory_size(at));
    atomic_fetch_add_explicit(&memory.live_count, 1, memory_order_relaxed);
}

/* Count a request; true when it is the one that a test wants to fail. */
static bool is_request_to_fail(void) {
    uint64_t request =
        atomic_fetch_add_explicit(&memory.request_count, 1, memory_order_relaxed) + 1;
    return request == atomic_load_explicit(&memory.fail_at, memory_order_relaxed);
}

/* Give the reserve back; false when there was none. */
static bool release_reserve(void) {
    void *reserve = atomic_exchange_explicit(&memory.reserve, NULL, memory_order_relaxed);
    memory_free(reserve);
    return reserve != NULL;
}

void *memory_allocate(size_t size) {
    CHECK(size > 0);
    void *at = is_request_to_fail() ? NULL : malloc(size);
    if (at == NULL && release_reserve()) {
        at = malloc(size);
    }
    if (at != NULL) {
        count_piece(at);
    }
    return at;
}

void *memory_allocate_zeroed(size_t size) {
    CHECK(size > 0);
    void *at = is_request_to_fail() ? NULL : calloc(1, size);
    if (at == NULL && release_reserve()) {
        at = calloc(1, size);
    }
    if (at != NULL) {
        count_piece(at);
    }
    return at;
}

void *memory_resize(void *at, size_t size) {
    CHECK(size > 0);
    if (at == NULL) {
        return memory_allocate(size);
    }
    size_t size_before = memory_size(at);
    void *moved = is_request_to_fail() ? NULL : realloc(at, size);
    if (moved == NULL && release_reserve()) {
        moved = realloc(at, size);
    }
    if (moved != NULL) {
        uncount_bytes(size_before);
        count_bytes(memory_size(moved));
    }
    return moved;
}

void memory_free(void *at) {
    if (at == NULL) {
        return;
    }
    uncount_bytes(memory_size(at));
    atomic_fetch_sub_explicit(&memory.live_count, 1, memory_order_relaxed);
    free(at);
}

size_t memory_size(const void *at) {
    /* The function only reads, though its parameter is not const. */
    return malloc_usable_size((void *)(uintptr_t)at);
}

size_t memory_used(void) {
    return atomic_load_explicit(&memory.used, memory_order_relaxed);
}

size_t memory_used_peak(void) {
    return atomic_load_explicit(&memory.used_peak, memory_order_relaxed);
}

void memory_init(void) {
#ifdef M_MXFAST
    (void)mallopt(M_MXFAST, 0);
#endif
}

bool memory_give_back(void) {
    size_t used = memory_used();
    if (used > memory.used_high) {
        memory.used_high = used;
    }
    size_t freed = memory.used_high - used;
    if (freed < GIVE_BACK_MIN) {
        return false;
    }
    memory.used_high = used;
#ifdef __GLIBC__
    /* free() by itself gives back only what lies at the heap's end. */
    (void)malloc_trim(0);
#endif
    return true;
}

/* A program without jemalloc has no such function. */
extern int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
    __attribute__((weak));

const char *memory_allocator(void) {
    return mallctl != NULL ? "jemalloc" : "libc";
}

bool memory_reserve_begin(size_t size) {
    CHECK(atomic_load_explicit(&memory.reserve, memory_order_relaxed) == NULL);
    void *reserve = memory_allocate(size);
    atomic_store_explicit(&memory.reserve, reserve, memory_order_relaxed);
    return reserve != NULL;
}

void memory_reserve_end(void) {
    (void)release_reserve();
}

void memory_fail_at(uint64_t nth) {
    uint64_t fail_at = nth == 0 ? 0 : memory_requests() + nth;
    atomic_store_explicit(&memory.fail_at, fail_at, memory_order_relaxed);
}

uint64_t memory_requests(void) {
    return atomic_load_explicit(&memory.request_count, memory_order_relaxed);
}

uint64_t memory_live_count(void) {
    return atomic_load_explicit(&memory.live_count, memory_order_relaxed);
}
