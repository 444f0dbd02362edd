/* Small structs found by a hash: the base of watches and subscriptions.
 *
 * Each begins with a link, and is in at most one table. The links have no gaps, so that all of them
 * can be visited, and a change of their order costs nothing. */
#ifndef SERVER_LINK_TABLE_H
#define SERVER_LINK_TABLE_H

#include "skiplist/map.h"

struct link {
    uint64_t hash;
    uint32_t index; /* in the table's links */
};

/* All zeros: empty, without memory. */
struct link_table {
    struct map map;      /* hash -> index in links */
    struct link **links; /* without gaps */
    uint32_t count, capacity;
};

/* Make room for one more link. false: no memory; call link_table_shrink. */
MUST_CHECK bool link_table_reserve(struct link_table *table);
/* Release memory that is not needed. */
void link_table_shrink(struct link_table *table);
/* Add a link whose hash is set; link_table_reserve must have made room. */
void link_table_put(struct link_table *table, struct link *link);
/* Remove a link, which is in the table. The last link takes its index. */
void link_table_take(struct link_table *table, const struct link *link);

/* Visit the links with this hash, and possibly others:
 *
 *     if (link_table_find(table, hash, &find)) {
 *         while ((link = link_table_next(table, &find)) != NULL) { compare; }
 *     }
 */
static inline bool link_table_find(const struct link_table *table, uint64_t hash,
                                   struct map_find *find) {
    if (table->count > 0) {
        map_find(&table->map, hash, find);
    }
    return table->count > 0;
}
static inline struct link *link_table_next(const struct link_table *table, struct map_find *find) {
    uint32_t index;
    return map_find_next(find, &index) ? table->links[index] : NULL;
}

MUST_CHECK bool link_table_validate(const struct link_table *table, const char **reason);

#endif
