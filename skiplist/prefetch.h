/* Fetching cache lines ahead of their use. */
#ifndef SKIPLIST_PREFETCH_H
#define SKIPLIST_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

/* Fetch the line of this byte. A hint: at may point anywhere.
 *
 * To gcc a function that does nothing but prefetch has no effect, and it drops calls of such
 * functions before it inlines them. The empty asm statement counts as an effect. */
static inline void prefetch_line(const void *at) {
    __builtin_prefetch(at);
    __asm__ volatile("");
}

/* Fetch every line that has one of size bytes (1 at least). */
static inline void prefetch_lines(const void *at, size_t size) {
    uintptr_t line = (uintptr_t)at & ~(uintptr_t)63;
    for (; line < (uintptr_t)at + size; line += 64)
        prefetch_line((const void *)line);
}

#endif
