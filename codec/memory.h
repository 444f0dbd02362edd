/* All heap memory of the project. memory.c alone calls malloc and the pool.
 *
 * Every allocation is counted by its usable size, so that memory_used() is what the process holds
 * (INFO used_memory, maxmemory). Tests make the Nth allocation fail.
 *
 * Any thread may allocate and free. The reserve and memory_fail_at belong to one thread, the one
 * that called memory_init. */
#ifndef CODEC_MEMORY_H
#define CODEC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/check.h"

/* size bytes, uninitialised; NULL when there are none. size 0 is a programming error. */
MUST_CHECK void *memory_allocate(size_t size);
/* The same for one of very many small things that will stay long: it lies apart from what comes and
 * goes, which then leaves no holes between. */
MUST_CHECK void *memory_allocate_lasting(size_t size);
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

/* Once, by the thread that owns the boards: its pieces of up to a mebibyte then come from the pool
 * (codec/pool.h), in huge pages, and only it may resize and free them. Without it, or where the
 * system does not give the address space, malloc does everything. */
void memory_init(void);
/* Give back what was freed of late and is kept at hand. By the same thread, about once a second. */
void memory_settle(void);
/* Where most pieces come from: "pool" or "libc". */
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
