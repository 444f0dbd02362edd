/* Two counted allocators: the pool for allocations of the owner's thread, the host (malloc, unless
 * memory_use_host sets another) for other threads, for large sizes and for programs without
 * memory_init().
 *
 *     used = sum of the usable sizes of the live allocations, including the reserve
 *
 * Usable rather than requested sizes, because rounding also uses memory, and because no header of
 * our own is needed then. The counters are relaxed atomics: they impose no ordering. The owner has
 * separate counters, which need no atomic read-modify-write; that would cost as much as the
 * allocation itself. */
#include "codec/memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec/pool.h"

/* Without malloc the sanitizers would not see allocations. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_POOL false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_POOL false
#endif
#endif
#ifndef HAS_POOL
#define HAS_POOL true
#endif

struct counts {
    _Atomic size_t used;
    _Atomic uint64_t live;
    _Atomic uint64_t requests;
};

/* The function only reads, though its parameter is not const. */
static size_t memory_libc_size(const void *at) {
    return malloc_usable_size((void *)(uintptr_t)at);
}

static void *memory_libc_allocate_zeroed(size_t size) {
    return calloc(1, size);
}

static const struct memory_host libc = {.name = "libc",
                                        .allocate = malloc,
                                        .allocate_zeroed = memory_libc_allocate_zeroed,
                                        .resize = realloc,
                                        .free = free,
                                        .size = memory_libc_size};

static struct {
    struct counts owners;
    struct counts others;
    _Atomic size_t used_peak;
    _Atomic uint64_t fail_at; /* the request that fails, counted from 1; 0: none */
    void *_Atomic reserve;
    _Atomic size_t left; /* of a reserve that a test's failure has released; SIZE_MAX: none was */
    const struct memory_host *host;
    struct pool pool;
    bool is_behind; /* a test says so */
} memory = {.host = &libc, .left = SIZE_MAX};

static _Thread_local bool is_owner;

/* add may be negative, as the difference of two unsigned numbers. */
#define COUNT(counter, add)                                                                        \
    do {                                                                                           \
        if (is_owner) {                                                                            \
            atomic_store_explicit(                                                                 \
                &memory.owners.counter,                                                            \
                atomic_load_explicit(&memory.owners.counter, memory_order_relaxed) + (add),        \
                memory_order_relaxed);                                                             \
        } else {                                                                                   \
            atomic_fetch_add_explicit(&memory.others.counter, (add), memory_order_relaxed);        \
        }                                                                                          \
    } while (false)
#define TOTAL(counter)                                                                             \
    (atomic_load_explicit(&memory.owners.counter, memory_order_relaxed) +                          \
     atomic_load_explicit(&memory.others.counter, memory_order_relaxed))

static void memory_note_peak(void) {
    size_t used = TOTAL(used);
    size_t peak = atomic_load_explicit(&memory.used_peak, memory_order_relaxed);
    while (used > peak &&
           !atomic_compare_exchange_weak_explicit(&memory.used_peak, &peak, used,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
}

/* Free the reserve; false if there was none, or if it is not this thread's to free. */
static bool memory_release_reserve(void) {
    if (!is_owner && memory.pool.chunks.range != NULL) {
        return false;
    }
    void *reserve = atomic_exchange_explicit(&memory.reserve, NULL, memory_order_relaxed);
    memory_free(reserve);
    return reserve != NULL;
}

/* From the failure on there is what the reserve held, and no more: one that is too small is noticed here. */
__attribute__((noinline)) static bool memory_test_failure(size_t size, bool is_one_to_fail) {
    if (is_one_to_fail) {
        void *reserve = atomic_load_explicit(&memory.reserve, memory_order_relaxed);
        size_t held = reserve != NULL ? memory_size(reserve) : SIZE_MAX;
        atomic_store_explicit(&memory.left, held, memory_order_relaxed);
    }
    size_t left = atomic_load_explicit(&memory.left, memory_order_relaxed);
    if (left != SIZE_MAX && (is_owner || memory.pool.chunks.range == NULL)) {
        CHECK(size <= left);
        atomic_store_explicit(&memory.left, left - size, memory_order_relaxed);
    }
    return is_one_to_fail;
}

/* Count a request; true if it is the one a test wants to fail. */
static bool memory_is_request_to_fail(size_t size) {
    COUNT(requests, 1U);
    uint64_t fail_at = atomic_load_explicit(&memory.fail_at, memory_order_relaxed);
    return fail_at != 0 && memory_test_failure(size, fail_at == TOTAL(requests));
}

/* ---- both allocators behind one interface ---- */

static bool memory_is_pooled(const void *at) {
    return pool_owns(&memory.pool, at);
}

static bool memory_fits_pool(size_t size) {
    return is_owner && size <= POOL_PIECE_MAX;
}

static void *memory_get(size_t size) {
    void *at = memory_fits_pool(size) ? pool_allocate(&memory.pool, size) : NULL;
    return at != NULL ? at : memory.host->allocate(size);
}

static void *memory_get_lasting(size_t size) {
    void *at = memory_fits_pool(size) ? pool_allocate_lasting(&memory.pool, size) : NULL;
    return at != NULL ? at : memory.host->allocate(size);
}

static void *memory_get_apart(size_t size) {
    return memory.host->allocate(size);
}

static void *memory_get_zeroed(size_t size) {
    void *at = memory_fits_pool(size) ? pool_allocate(&memory.pool, size) : NULL;
    return at != NULL ? memset(at, 0, size) : memory.host->allocate_zeroed(size);
}

static void memory_give_back(void *at) {
    if (memory_is_pooled(at)) {
        CHECK(is_owner);
        pool_free(&memory.pool, at);
    } else {
        memory.host->free(at);
    }
}

static void *memory_resize_once(void *at, size_t size) {
    if (!memory_is_pooled(at) && !memory_fits_pool(size)) {
        return memory.host->resize(at, size);
    }
    if (memory_is_pooled(at) && memory_fits_pool(size) && pool_resize(&memory.pool, at, size)) {
        return at;
    }
    void *moved = memory_get(size);
    if (moved != NULL) {
        size_t size_before = memory_size(at);
        memcpy(moved, at, size_before < size ? size_before : size);
        memory_give_back(at);
    }
    return moved;
}

void memory_init(void) {
    size_t physical = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    /* Only address space: twice the physical memory, to allow for fragmentation. If it is not
     * available (ulimit -v), malloc serves everything. */
    is_owner = HAS_POOL && memory.host == &libc && memory.pool.chunks.range == NULL &&
               pool_init(&memory.pool, 2 * physical, true);
}

void memory_use_host(const struct memory_host *host) {
    CHECK(memory_requests() == 0);
    CHECK(memory.pool.chunks.range == NULL);
    memory.host = host;
}

/* ---- public functions ---- */

static inline void *memory_allocate_by(size_t size, void *(*get_one)(size_t)) {
    CHECK(size > 0);
    void *at = memory_is_request_to_fail(size) ? NULL : get_one(size);
    if (at == NULL && memory_release_reserve()) {
        at = get_one(size);
    }
    if (at != NULL) {
        COUNT(used, memory_size(at));
        COUNT(live, 1U);
        memory_note_peak();
    }
    return at;
}

void *memory_allocate(size_t size) {
    return memory_allocate_by(size, memory_get);
}

void *memory_allocate_lasting(size_t size) {
    return memory_allocate_by(size, memory_get_lasting);
}

void *memory_allocate_apart(size_t size) {
    return memory_allocate_by(size, memory_get_apart);
}

void *memory_allocate_zeroed(size_t size) {
    return memory_allocate_by(size, memory_get_zeroed);
}

char *memory_copy_text(const char *at, size_t size) {
    char *copy = memory_allocate(size + 1);
    if (copy != NULL) {
        if (size > 0) {
            memcpy(copy, at, size);
        }
        copy[size] = '\0';
    }
    return copy;
}

void *memory_resize(void *at, size_t size) {
    CHECK(size > 0);
    if (at == NULL) {
        return memory_allocate(size);
    }
    size_t size_before = memory_size(at);
    void *moved = memory_is_request_to_fail(size) ? NULL : memory_resize_once(at, size);
    if (moved == NULL && memory_release_reserve()) {
        moved = memory_resize_once(at, size);
    }
    if (moved != NULL) {
        COUNT(used, memory_size(moved) - size_before);
        memory_note_peak();
    }
    return moved;
}

void memory_free(void *at) {
    if (at == NULL) {
        return;
    }
    COUNT(used, (size_t)0 - memory_size(at));
    COUNT(live, UINT64_MAX);
    memory_give_back(at);
}

size_t memory_size(const void *at) {
    return memory_is_pooled(at) ? pool_size(at) : memory.host->size(at);
}

size_t memory_used(void) {
    return TOTAL(used);
}

size_t memory_used_peak(void) {
    return atomic_load_explicit(&memory.used_peak, memory_order_relaxed);
}

void memory_settle(void) {
    if (is_owner) {
        pool_settle(&memory.pool);
    }
}

bool memory_is_ready(void) {
    return !memory.is_behind && (!is_owner || pool_chunks_are_ready(&memory.pool.chunks));
}

void memory_expect(void) {
    if (is_owner && memory.pool.chunks.range != NULL) {
        pool_chunks_expect(&memory.pool.chunks);
    }
}

void memory_pretend_behind(bool is_behind) {
    memory.is_behind = is_behind;
}

const char *memory_allocator(void) {
    return memory.pool.chunks.range != NULL ? "pool" : memory.host->name;
}

bool memory_reserve_begin(size_t size) {
    CHECK(atomic_load_explicit(&memory.reserve, memory_order_relaxed) == NULL);
    void *reserve = memory_allocate(size);
    atomic_store_explicit(&memory.reserve, reserve, memory_order_relaxed);
    return reserve != NULL;
}

void memory_reserve_end(void) {
    atomic_store_explicit(&memory.left, SIZE_MAX, memory_order_relaxed);
    (void)memory_release_reserve();
}

void memory_fail_at(uint64_t nth) {
    uint64_t fail_at = nth == 0 ? 0 : memory_requests() + nth;
    atomic_store_explicit(&memory.fail_at, fail_at, memory_order_relaxed);
}

uint64_t memory_requests(void) {
    return TOTAL(requests);
}

uint64_t memory_live_count(void) {
    return TOTAL(live);
}
