/* Points in time, the earliest first: a binary heap of (time, place), for the keys that expire.
 *
 * place points at a number that the owner keeps; the heap writes there where the entry lies, so
 * that it can be changed or removed without a search. EXPIRY_NOWHERE says that there is none. */
#ifndef SKIPLIST_EXPIRY_H
#define SKIPLIST_EXPIRY_H

#include "skiplist/pages.h"

#define EXPIRY_NOWHERE UINT32_MAX

__extension__ typedef __int128 expiry_sum;

/* Zeroed is empty. */
struct expiry {
    struct pages entries;
    uint32_t count;
    expiry_sum sum_ms; /* of all times, which 64 bits would not hold */
};

struct expiry_entry {
    int64_t time_ms;
    uint32_t *place;
};

/* Make room for one more. false: no memory; nothing changed. */
MUST_CHECK bool expiry_reserve(struct expiry *expiry);
/* Add an entry; expiry_reserve has made room. *place is EXPIRY_NOWHERE before. */
void expiry_put(struct expiry *expiry, int64_t time_ms, uint32_t *place);
/* Another time for the entry at *place. */
void expiry_change(struct expiry *expiry, uint32_t *place, int64_t time_ms);
/* Take the entry at *place away; room for it stays until expiry_trim. */
void expiry_remove(struct expiry *expiry, uint32_t *place);
/* Give back what is no longer needed. */
void expiry_trim(struct expiry *expiry);

/* The time of the entry at place. */
int64_t expiry_time_ms(const struct expiry *expiry, uint32_t place);
/* The entry with the earliest time; count is 1 at least. */
struct expiry_entry expiry_first(const struct expiry *expiry);

/* Check the order, the places and the sum. reason: the first claim that does not hold. */
MUST_CHECK bool expiry_validate(const struct expiry *expiry, const char **reason);

#endif
