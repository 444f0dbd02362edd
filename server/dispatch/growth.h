/* The members that earlier commands of a transaction may add to each key, while its cost is
 * estimated (cost.h). */
#ifndef SERVER_GROWTH_H
#define SERVER_GROWTH_H

#include "protocol/request.h"

/* Open addressing, at most half full. */
struct growth {
    struct growth_slot *slots;
    uint64_t mask;
    uint64_t seed;
};

/* false: out of memory; growth_end does no harm. */
MUST_CHECK bool growth_begin(struct growth *growth, uint64_t seed, uint32_t key_count);
void growth_end(struct growth *growth);
/* The count of members of this key, at first 0. */
uint64_t *growth_of(const struct growth *growth, uint32_t database, struct bytes name);

#endif
