/* All heap memory of the project: the one file that calls malloc.
 *
 * Every allocation is counted by its usable size, so that memory_used() is what the process holds
 * (INFO used_memory, maxmemory). Tests make the Nth allocation fail.
 *
 * Any thread may allocate and free. The reserve and memory_fail_at belong to the loop's thread. */
#ifndef CODEC_MEMORY_H
#define CODEC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/check.h"

/* size bytes, uninitialised; NULL when there are none. size 0 is a programming error. */
MUST_CHECK void *memory_allocate(size_t size);
/* The same, zeroed. Large sizes come from fresh pages, so that nothing is touched up front. */
MUST_CHECK void *memory_allocate_zeroed(size_t size);
/* Grow or shrink; NULL when there is no memory, and then the old piece is as it was.
 * at may be NULL. */
MUST_CHECK void *memory_resize(void *at, size_t size);
/* at may be NULL. */
void memory_free(void *at);

/* Usable bytes of one allocation: at least what was asked for. */
size_t memory_size(const void *at);
/* Usable bytes of all live allocations, and the most there ever were. */
size_t memory_used(void);
size_t memory_used_peak(void);

/* Once, before the first allocation: have pieces join their free neighbours when they are freed,
 * so that memory_give_back() need not do it for millions of them at once. */
void memory_init(void);
/* Give pages that hold nothing any more back to the system, if 32 MiB have been freed since the
 * last time. It knows what was used from its own calls: call it about once a second. Returns
 * whether it did; that takes about 0.2 ms a MiB. The loop's thread alone. */
bool memory_give_back(void);
/* The allocator below: "libc", or "jemalloc" when the program was linked with it. */
const char *memory_allocator(void);

/* Hold back size bytes for a change of several steps that must not fail half-way. false: there
 * is no memory, nothing is held. An allocation that fails while a reserve is held releases it and
 * tries again. It counts as used and as live while it is held. One reserve at a time;
 * memory_reserve_end() gives it back (no-op without one). */
MUST_CHECK bool memory_reserve_begin(size_t size);
void memory_reserve_end(void);

/* Tests: make the Nth allocation from now fail (1 is the next one); 0 switches it off. Only that
 * one fails, the following ones succeed. While a reserve is held, its release and the second try
 * follow, as in earnest. */
void memory_fail_at(uint64_t nth);
/* Allocations asked for since the program began; a resize is one, a second try is none. */
uint64_t memory_requests(void);
/* Live allocations: a test that ends as it began has leaked nothing. */
uint64_t memory_live_count(void);

#endif
