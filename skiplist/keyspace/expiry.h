/* A binary heap of (time, place), earliest first, for the keys that expire.
 *
 * place points to an index owned by the caller. The heap keeps the position of the entry there, so
 * that it can be changed or removed without a search. EXPIRY_NOWHERE means that there is no entry.
 *
 * All times can be shifted at once: they are stored minus the offset and returned with it. */
#ifndef SKIPLIST_EXPIRY_H
#define SKIPLIST_EXPIRY_H

#include "skiplist/map.h"

#define EXPIRY_NOWHERE UINT32_MAX

__extension__ typedef __int128 expiry_sum;

/* The zeroed heap is empty. */
struct expiry {
    struct map_pages entries;
    uint32_t count;
    expiry_sum sum_ms; /* of all times as stored; would overflow 64 bits */
    int64_t offset_ms; /* may be changed at any time */
};

struct expiry_entry {
    int64_t time_ms; /* minus the offset while in the heap */
    uint32_t *place;
};

/* Make room for one more entry. false: no memory, nothing changed. */
MUST_CHECK bool expiry_reserve(struct expiry *expiry);
/* Add an entry, for which expiry_reserve has made room. *place must be EXPIRY_NOWHERE. */
void expiry_put(struct expiry *expiry, int64_t time_ms, uint32_t *place);
/* Change the time of the entry at *place. */
void expiry_change(struct expiry *expiry, uint32_t *place, int64_t time_ms);
/* Remove the entry at *place; its room is kept until expiry_trim. */
void expiry_remove(struct expiry *expiry, uint32_t *place);
/* Free memory that is no longer needed. */
void expiry_trim(struct expiry *expiry);

/* Is this the place of an entry? */
bool expiry_has(const struct expiry *expiry, const uint32_t *place);
/* The time of the entry at place. */
int64_t expiry_time_ms(const struct expiry *expiry, uint32_t place);
/* Prefetch the entry at place. */
void expiry_prefetch(const struct expiry *expiry, uint32_t place);
/* Sum of all times, for their average. */
expiry_sum expiry_sum_ms(const struct expiry *expiry);
/* The entry with the earliest time; its place is NULL if there is none. */
struct expiry_entry expiry_first(const struct expiry *expiry);
/* The earlier of two such entries, the first if they are equal. */
static inline struct expiry_entry expiry_earlier(struct expiry_entry a, struct expiry_entry b) {
    return a.place == NULL || (b.place != NULL && b.time_ms < a.time_ms) ? b : a;
}

/* Check the order, the places and the sum. reason: the first violated invariant. */
MUST_CHECK bool expiry_validate(const struct expiry *expiry, const char **reason);

#endif
