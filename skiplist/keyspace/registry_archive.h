/* Private to the registry: archives of boards with PERIOD ... COPY.
 *
 *     the period ends    its end stays in the board's rules: the archive is due, also after a crash
 *     steps              a mirror of the board grows (registry_mirror.h) while the board goes on
 *     it is whole        COPY to the archive's name and RULES of the next period, both at one moment
 *
 * So the archive is the board as it is at that moment. Small boards are copied at once, and all are where the keys
 * belong to another host (registry_set_elsewhere). A passive registry only prepares the mirror, which the COPY of
 * its master's effects then takes. */
#ifndef SKIPLIST_REGISTRY_ARCHIVE_H
#define SKIPLIST_REGISTRY_ARCHIVE_H

#include "skiplist/keyspace/registry_parts.h"

/* When there is something to begin, REGISTRY_NO_EXPIRY: nothing. */
int64_t registry_archive_next_due(const struct registry *registry);
/* Give up what was copied of an archive. */
void registry_archive_end(struct registry *registry);
/* A key is about to expire: if its archive is due, the members become the archive instead, and *key is NULL
 * where that has removed it. false: no memory, nothing changed. */
MUST_CHECK bool registry_archive_save(struct registry *registry, struct registry_key **key);
/* Move what was copied of the key's board, and the rest of it, to `to`, the copy's key, as the kind's copy does.
 * false: too little was copied, or nothing. */
MUST_CHECK bool registry_archive_give(struct registry *registry, const struct registry_key *key,
                                      struct registry_key *to);

#endif
