/* An array that grows without moving: pages of equal size behind a small table. Appending a page
 * costs the same at ten elements as at ten million; a plain array would stall the server while it
 * is copied. Elements are addressed by byte offset, and their size must divide PAGES_SIZE. */
#ifndef SKIPLIST_PAGES_H
#define SKIPLIST_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/check.h"

enum {
#ifdef SKIPLIST_TINY
    PAGES_SIZE = 32,
#else
    PAGES_SIZE = 8192,
#endif
};

/* The zeroed array is empty. */
struct pages {
    void **at;
    uint32_t count;
    uint32_t capacity;
};

/* The bytes at offset, in a page allocated by pages_reserve. */
static inline void *pages_at(const struct pages *pages, uint64_t offset) {
    return (char *)pages->at[offset / PAGES_SIZE] + offset % PAGES_SIZE;
}

/* Allocate pages for offsets below size. false: no memory; the contents are unchanged. */
MUST_CHECK bool pages_reserve(struct pages *pages, uint64_t size);
/* Free at most two pages well beyond size; if size is 0, all pages and the table. One spare page is
 * kept, so that an array at a page boundary does not allocate and free it repeatedly. */
void pages_trim(struct pages *pages, uint64_t size);
void pages_deinit(struct pages *pages);

#endif
