/* Is a name there twice? For a copy that is checked before anything is changed: its keys, and the members of each.
 *
 * A set of fingerprints of 64 bits (redis_names.h) in parts, so that no step grows more than one part. It takes 11 to 22
 * bytes a name. Of two different names one in 2^64 counts as the same one. */
#ifndef SERVER_REDIS_SEEN_H
#define SERVER_REDIS_SEEN_H

#include "server/migration/redis_names.h"

enum { REDIS_SEEN_PARTS = 1024 };

/* Zeroed, but for the seed (random, secret): empty. */
struct redis_seen {
    uint64_t seed;
    struct redis_names parts[REDIS_SEEN_PARTS];
    uint16_t used[REDIS_SEEN_PARTS]; /* the parts that hold something */
    uint32_t used_count;
};
void redis_seen_deinit(struct redis_seen *seen);
void redis_seen_clear(struct redis_seen *seen);
/* group: names of different groups are different. */
MUST_CHECK enum redis_names_added redis_seen_add(struct redis_seen *seen, uint64_t group,
                                                 struct bytes name);

#endif
