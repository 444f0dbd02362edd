/* Cache line prefetching. */
#ifndef SKIPLIST_PREFETCH_H
#define SKIPLIST_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

/* Prefetch the line of this byte. Only a hint: at may point anywhere.
 *
 * gcc considers a function that only prefetches to have no effects, and drops calls to it before
 * inlining. The empty asm statement counts as an effect. */
static inline void prefetch_line(const void *at) {
    __builtin_prefetch(at);
    __asm__ volatile("");
}

/* Prefetch every line that overlaps the size bytes (at least 1) at `at`. A constant size takes no loop. */
__attribute__((always_inline)) static inline void prefetch_lines(const void *at, size_t size) {
    if (__builtin_constant_p(size)) {
#pragma GCC unroll 16
        for (size_t offset = 0; offset < size; offset += 64) {
            prefetch_line((const char *)at + offset);
        }
        prefetch_line((const char *)at + size - 1);
        return;
    }
    uintptr_t line = (uintptr_t)at & ~(uintptr_t)63;
    for (; line < (uintptr_t)at + size; line += 64) {
        prefetch_line((const void *)line);
    }
}

#endif
