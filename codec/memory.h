/* All heap memory of the project. Only memory.c calls malloc, the pool, or a host's allocator.
 *
 * Every allocation is counted by its usable size, so memory_used() is what the process holds (INFO
 * used_memory, maxmemory). Tests can make the Nth allocation fail.
 *
 * In the server the loop's thread takes allocations of up to a mebibyte from a pool in huge pages
 * (codec/pool.h); other threads and larger allocations use libc. The address space that the pool
 * reserves is twice the machine's memory: it shows as VIRT and costs nothing. Where it cannot be
 * reserved (ulimit -v), and under sanitizers, libc serves everything.
 *
 * Any thread may allocate and free. The reserve and memory_fail_at belong to the thread that called
 * memory_init. */
#ifndef CODEC_MEMORY_H
#define CODEC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/check.h"

/* size bytes, uninitialised; NULL: out of memory. size 0 is a programming error. */
MUST_CHECK void *memory_allocate(size_t size);
/* The same for small, numerous, long-lived objects. They are placed apart from short-lived ones,
 * which reduces fragmentation. */
MUST_CHECK void *memory_allocate_lasting(size_t size);
/* The same for texts that outlive the boards among which they were allocated, as a log's: never from the pool, where
 * each would keep a chunk of 2 MiB from being given back. */
MUST_CHECK void *memory_allocate_apart(size_t size);
/* memory_allocate, zeroed. Large sizes come from fresh pages, so nothing is touched up front. */
MUST_CHECK void *memory_allocate_zeroed(size_t size);
/* A copy of a text, with a terminator behind it. */
MUST_CHECK char *memory_copy_text(const char *at, size_t size);
/* Grow or shrink. NULL: out of memory, and the old allocation is unchanged. at may be NULL. */
MUST_CHECK void *memory_resize(void *at, size_t size);
/* at may be NULL. */
void memory_free(void *at);

/* Usable bytes of one allocation: at least the requested size. */
size_t memory_size(const void *at);
/* Usable bytes of all live allocations, now and at the peak. */
size_t memory_used(void);
size_t memory_used_peak(void);

/* Call once, from the thread that owns the boards. Its allocations of up to 1 MiB then come from
 * the pool (codec/pool.h), in huge pages, and only that thread may resize and free them. Earlier
 * allocations stay where they are. Starts a thread: the process must not fork afterwards. Without
 * this call, or if the system refuses the address space, malloc serves everything. */
void memory_init(void);

/* The allocator of a program that embeds the engine, in place of the pool and malloc. The functions
 * are those of malloc.h, for sizes and addresses that are not 0: thread-safe, results aligned to 16
 * bytes, NULL if there is no memory. */
struct memory_host {
    const char *name; /* memory_allocator() */
    void *(*allocate)(size_t size);
    void *(*allocate_zeroed)(size_t size);
    void *(*resize)(void *at, size_t size);
    void (*free)(void *at);
    size_t (*size)(const void *at); /* usable bytes */
};
/* Call before the first allocation; memory_init then does nothing. host is borrowed for good. */
void memory_use_host(const struct memory_host *host);

/* Free recently freed pieces that are still cached. Call from the same thread, about once a
 * second. */
void memory_settle(void);
/* Is memory at hand for a step of work that can wait, from the thread that called memory_init? A step that finds none
 * may take milliseconds, in which the system provides it; so ask again a moment later. */
bool memory_is_ready(void);
/* Such work is about to begin. */
void memory_expect(void);
/* Source of most allocations: "pool", "libc" or the host's name. */
const char *memory_allocator(void);

/* Hold size bytes in reserve for a multi-step change that must not fail half-way. false: out of
 * memory, nothing is held. An allocation that fails while a reserve is held releases the reserve
 * and retries. The reserve counts as used and as live while held. One reserve at a time;
 * memory_reserve_end() frees it (no-op without one). */
MUST_CHECK bool memory_reserve_begin(size_t size);
void memory_reserve_end(void);

/* For tests: make the Nth allocation from now fail (1 is the next one); 0 disables this. Only that
 * one fails; later ones succeed. While a reserve is held, it is released and the allocation
 * retried, as in a real failure; until its end there is then no more than it held (CHECK). */
void memory_fail_at(uint64_t nth);
/* For tests: memory_is_ready() says no, until this is ended. */
void memory_pretend_behind(bool is_behind);
/* Allocation requests since the program began. A resize counts as one; a retry does not count. */
uint64_t memory_requests(void);
/* Live allocations, for leak checks in tests. */
uint64_t memory_live_count(void);

/* Prefetch the line of this byte. Only a hint: at may point anywhere.
 *
 * gcc considers a function that only prefetches to have no effects, and drops calls to it before
 * inlining. The empty asm statement counts as an effect. */
static inline void memory_prefetch(const void *at) {
    __builtin_prefetch(at);
    __asm__ volatile("");
}

/* Prefetch every line that overlaps the size bytes (at least 1) at `at`. A constant size takes no loop. */
__attribute__((always_inline)) static inline void memory_prefetch_lines(const void *at,
                                                                        size_t size) {
    if (__builtin_constant_p(size)) {
#pragma GCC unroll 16
        for (size_t offset = 0; offset < size; offset += 64) {
            memory_prefetch((const char *)at + offset);
        }
        memory_prefetch((const char *)at + size - 1);
        return;
    }
    uintptr_t line = (uintptr_t)at & ~(uintptr_t)63;
    for (; line < (uintptr_t)at + size; line += 64) {
        memory_prefetch((const void *)line);
    }
}

#endif
