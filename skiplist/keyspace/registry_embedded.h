/* Keys of another host, which has a keyspace of its own: a key is in the registry only while a
 * command runs, and otherwise belongs to the host (server/module/working_set.h).
 *
 *     host's value --> key --registry_embedded_admit--> in a database --registry_embedded_dismiss--> key
 *
 * Neither is reported as an effect. */
#ifndef SKIPLIST_REGISTRY_EMBEDDED_H
#define SKIPLIST_REGISTRY_EMBEDDED_H

#include "skiplist/keyspace/registry.h"

/* A key for this database, and not in it yet, with an empty value of this kind.
 * options: of the board that it will hold, which has the state then; NULL: not a board. NULL: no memory. */
MUST_CHECK struct registry_key *registry_embedded_create(struct registry *registry,
                                                         uint32_t database, struct bytes name,
                                                         uint32_t kind,
                                                         const struct board_options *options,
                                                         const struct board_state *state);
/* Give it notes, which are empty then; where it can have none they stay. */
void registry_embedded_give_notes(struct registry_key *key, struct hash *notes);
/* The same key and value with another name. The old key is freed. NULL: no memory, nothing
 * changed. */
MUST_CHECK struct registry_key *
registry_embedded_rename(struct registry *registry, struct registry_key *key, struct bytes name);
/* A copy of a board's key under another name, in no database. NULL: no memory. */
MUST_CHECK struct registry_key *registry_embedded_copy(struct registry *registry,
                                                       const struct registry_key *key,
                                                       struct bytes name);
/* A copy that goes to another name: of an archive it is none (registry_copy). false: no memory, nothing changed. */
MUST_CHECK bool registry_embedded_part(struct registry *registry, struct registry_key *copy);
/* Free a key with its value at once. The options of its board are still held, and returned: release
 * them in the registry's thread with registry_embedded_release. Any thread. NULL: it had none. */
const struct board_options *registry_embedded_free(struct registry_key *key);
void registry_embedded_release(struct registry *registry, const struct board_options *options);
/* Free a key with its value and what it holds in steps (registry_free_step), in the registry's thread. */
void registry_embedded_free_later(struct registry *registry, struct registry_key *key);

/* Put the key into its database, where its name is free. false: no memory, nothing changed. */
MUST_CHECK bool registry_embedded_admit(struct registry *registry, struct registry_key *key);
/* Take it out again. */
void registry_embedded_dismiss(struct registry *registry, struct registry_key *key);
/* Let a board be found in database 0 by its name without being put there, which takes a third of the time: for
 * a command that reads one key. Nothing else is in the database, and the board is not periodic. Until it is taken
 * back, nothing may be put into the database or change the key. */
void registry_embedded_lend(struct registry *registry, struct registry_key *key);
void registry_embedded_take_back(struct registry *registry);
/* A key that is in database 0; NULL: there is none. */
struct registry_key *registry_embedded_first(const struct registry *registry);
/* The same of any database. */
struct registry_key *registry_embedded_first_of(const struct registry *registry, uint32_t number);
/* Without carrying out what is due; the first in database 0. */
struct registry_key *registry_embedded_find(const struct registry *registry, struct bytes name);
struct registry_key *registry_embedded_find_in(const struct registry *registry, uint32_t database,
                                               struct bytes name);
/* What removals have left on boards that are in the registry stays with them: who has them frees it by
 * board_free_step. Before they leave the registry. true: there is some. */
bool registry_embedded_keep_remains(struct registry *registry);
/* Until the next admission, no period ends: on a replica its master rolls boards over. */
void registry_embedded_hold_rolls(struct registry *registry);

#endif
