/* Private to the registry: rollover of boards with a PERIOD. */
#ifndef SKIPLIST_REGISTRY_ROLL_H
#define SKIPLIST_REGISTRY_ROLL_H

#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_parts.h"

/* Make room for the end of one more period. false: no memory. */
MUST_CHECK bool registry_roll_reserve_end(struct database *database);
/* Schedule the end of its period, for which there is room. */
void registry_await_roll(struct registry *registry, struct registry_key *key);
/* The key whose end of a period has this place in its heap. */
struct registry_key *registry_roll_key_of_place(uint32_t *place);
/* Make the archive of a board whose period is over and whose archives are copies, of a mirror that is whole or of
 * the board itself (NULL), and let the board enter its next period. false: no memory, nothing changed. */
MUST_CHECK bool registry_roll_copy(struct registry *registry, struct registry_key *key,
                                   struct registry_mirror *mirror, int64_t now_ms);
/* Move the members of such a board to the archive, as those of others: the key is about to expire. It may then be
 * gone. false: no memory, nothing changed. */
MUST_CHECK bool registry_roll_move(struct registry *registry, struct registry_key *key,
                                   int64_t now_ms);
/* Roll over a board whose period is over, or remove it if it expired before that. The key may then
 * be invalid. false: no memory, nothing changed. */
MUST_CHECK bool registry_roll_key(struct registry *registry, struct registry_key *key,
                                  int64_t now_ms);
/* The board whose archive may have been due before this key expires, or take its name after. NULL: there is
 * none, or its period is not over. */
struct registry_key *registry_find_due_base(struct registry *registry,
                                            const struct registry_key *key, int64_t now_ms);
/* The same for all boards that determine what this name refers to: its own board, and the board
 * whose archive it would be. */
MUST_CHECK bool registry_settle_name(struct registry *registry, uint32_t database,
                                     struct bytes name, int64_t now_ms);
MUST_CHECK static inline bool registry_settle(struct registry *registry, uint32_t database,
                                              struct bytes name, int64_t now_ms) {
    return now_ms < registry->roll_at_ms || registry_settle_name(registry, database, name, now_ms);
}

/* Visit the names that a key has as if every period that is over had ended: none, its own, its
 * archive's, or both. */
void registry_visit_settled(const struct registry *registry, const struct registry_key *key,
                            int64_t now_ms, registry_visit_name *visit, void *context);
/* What is wrong with the scheduled end of a key's period; NULL: nothing. */
const char *registry_check_roll(const struct database *database, const struct registry_key *key);

#endif
