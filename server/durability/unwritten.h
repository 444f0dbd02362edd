/* Which keys have changes that are not on disk, while that is full: so with appendfsync always only replies that may show
 * them wait. Built of the groups that the journal holds when it is asked for first, and kept up with what follows; no
 * command pays for it while the disk takes what is written.
 *
 * Keys are known by a hash: of two with the same one, both count as changed. */
#ifndef SERVER_UNWRITTEN_H
#define SERVER_UNWRITTEN_H

#include "codec/bytes.h"
#include "skiplist/keyspace/effect.h"

enum { UNWRITTEN_KEYS_MAX = 65536 }; /* with more, all keys count as changed */

/* All zero: nothing. */
struct unwritten {
    uint64_t *slots; /* open addressing; 0: free */
    uint32_t room, count;
    /* Keys were made, removed or renamed, their expiry was set, or a database of the server's own
     * changed. */
    bool has_names;
    bool has_all;
};

/* Of this key; never 0. */
uint64_t unwritten_key(uint32_t database, struct bytes name);
void unwritten_clear(struct unwritten *unwritten);
void unwritten_add_effect(struct unwritten *unwritten, const struct effect *effect);
/* The effects of a group. */
void unwritten_add_group(struct unwritten *unwritten, struct bytes payload);
bool unwritten_has(const struct unwritten *unwritten, uint64_t key);

#endif
