/* malloc, counted.
 *
 *     memory_used = sum of malloc_usable_size over the live pieces, the reserve among them
 *
 * The invariant holds between any two calls. Usable sizes, not asked-for ones, because rounding
 * up is memory that the process holds too, and because no header of ours is then needed. */
#include "codec/memory.h"

#include <malloc.h>
#include <stdlib.h>

static struct {
    size_t used;
    size_t used_peak;
    uint64_t live_count;
    uint64_t request_count;
    uint64_t fail_at; /* the value of request_count that fails; 0: none */
    void *reserve;
} memory;

static void count_piece(const void *at) {
    memory.used += memory_size(at);
    memory.live_count++;
    if (memory.used > memory.used_peak) {
        memory.used_peak = memory.used;
    }
}

static void uncount_piece(const void *at) {
    CHECK(memory.live_count > 0);
    memory.used -= memory_size(at);
    memory.live_count--;
}

/* Count a request; true when it is the one that a test wants to fail. */
static bool is_request_to_fail(void) {
    memory.request_count++;
    return memory.request_count == memory.fail_at;
}

static bool release_reserve(void) {
    if (memory.reserve == NULL) {
        return false;
    }
    memory_reserve_end();
    return true;
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
        memory.used -= size_before;
        memory.live_count--;
        count_piece(moved);
    }
    return moved;
}

void memory_free(void *at) {
    if (at == NULL) {
        return;
    }
    uncount_piece(at);
    free(at);
}

size_t memory_size(const void *at) {
    /* The function only reads, though its parameter is not const. */
    return malloc_usable_size((void *)(uintptr_t)at);
}

size_t memory_used(void) {
    return memory.used;
}

size_t memory_used_peak(void) {
    return memory.used_peak;
}

bool memory_reserve_begin(size_t size) {
    CHECK(memory.reserve == NULL);
    memory.reserve = memory_allocate(size);
    return memory.reserve != NULL;
}

void memory_reserve_end(void) {
    void *reserve = memory.reserve;
    memory.reserve = NULL;
    memory_free(reserve);
}

void memory_fail_at(uint64_t nth) {
    memory.fail_at = nth == 0 ? 0 : memory.request_count + nth;
}

uint64_t memory_requests(void) {
    return memory.request_count;
}

uint64_t memory_live_count(void) {
    return memory.live_count;
}
