/* An array that grows without moving: pages of equal size behind a small table. Appending a page
 * costs the same at ten elements as at ten million, where a plain array would stop the server to
 * copy itself. Elements are addressed by their byte offset and must divide PAGES_SIZE. */
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

/* Zeroed is empty. */
struct pages {
    void **at;
    uint32_t count;
    uint32_t capacity;
};

/* The bytes at offset, in a page that pages_reserve has made. */
static inline void *pages_at(const struct pages *pages, uint64_t offset) {
    return (char *)pages->at[offset / PAGES_SIZE] + offset % PAGES_SIZE;
}

/* Make pages for offsets below size. false: no memory; what was there stays. */
MUST_CHECK bool pages_reserve(struct pages *pages, uint64_t size);
/* Free pages far behind size, at most two of them; all of them and the table when size is 0. One
 * page is kept in reserve, so that an array on the edge does not take and give it in turns. */
void pages_trim(struct pages *pages, uint64_t size);
void pages_deinit(struct pages *pages);

#endif
