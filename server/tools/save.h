/* A registry that no server serves, written as a snapshot. */
#ifndef SERVER_TOOLS_SAVE_H
#define SERVER_TOOLS_SAVE_H

#include "server/durability/store.h"
#include "skiplist/keyspace/registry.h"

/* Write all of it into the store, which is claimed, as its base; returns when that is on disk. false: the
 * reason is in the log. */
MUST_CHECK bool save_registry(struct registry *registry, struct store *store, int64_t now_us);

#endif
