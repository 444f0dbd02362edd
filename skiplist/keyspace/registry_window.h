/* Boards with a WINDOW, and the boards of what single periods brought, their shares, in the registry:
 * what becomes of one when the other goes. What shares are for: server/commands/window.h.
 *
 *     the board goes, in any way       the share of the running period goes with it
 *     a share that counts goes         the board is to be made anew: is_anew
 *     the running period ends          its share is an archive to be settled from then on
 *     a share is renamed               it is a share no more
 *
 * A registry that applies effects, or is passive, does none of it: there are effects that say so. */
#ifndef SKIPLIST_REGISTRY_WINDOW_H
#define SKIPLIST_REGISTRY_WINDOW_H

#include "skiplist/keyspace/registry.h"

void registry_window_set_listener(struct registry *registry, registry_share_gone *share_gone);

/* Of boards as a kind of value (skiplist/keyspace/key_kind.h): a key has been taken out. */
void registry_window_note_taken(struct registry *registry, const struct registry_key *key);
void registry_window_note_removed(struct registry *registry, const struct registry_key *key);
/* Is this key the share, of a board with such options, of the period that begins then? */
bool registry_window_is_share(const struct registry_key *key, const struct board_options *options,
                              int64_t start_ms);
/* The board's running period is over. false: no memory. */
MUST_CHECK bool registry_window_end_share(struct registry *registry,
                                          const struct registry_key *key);

#endif
