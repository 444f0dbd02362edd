/* A set of keys, as fingerprints of 64 bits: 16 to 32 bytes of memory a key, whatever its name. Of two keys
 * that are there, one in 2^64 has the other one's fingerprint; it is then taken for it.
 *
 * Memory that is missing loses nothing silently: is_lost says that keys may be missing from then on. */
#ifndef SERVER_REDIS_NAMES_H
#define SERVER_REDIS_NAMES_H

#include "codec/bytes.h"
#include "codec/check.h"

/* Zeroed, but for the seed (random, secret): empty. */
struct redis_names {
    uint64_t seed;
    uint64_t *slots; /* 0: free */
    uint64_t capacity, count;
    bool is_lost;
};
/* It is empty, and holds no memory. */
void redis_names_clear(struct redis_names *names);
void redis_names_put(struct redis_names *names, struct bytes name);
/* true: it was there. */
bool redis_names_remove(struct redis_names *names, struct bytes name);
bool redis_names_hold(const struct redis_names *names, struct bytes name);

#endif
