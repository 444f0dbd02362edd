/* Hashes as values of keys: what commands call. Changes are reported to the listeners.
 *
 *     key = registry_find(registry, database, name, now_ms);
 *     if (key != NULL && key->kind != REGISTRY_HASH)  ->  WRONGTYPE
 *     hash_find(&key->hash, field, &value)                              reading: hash.h
 *
 *     key = registry_find_or_create_hash(registry, database, name, now_ms, &is_new);
 *     if (key == NULL)                                ->  OOM
 *     if (key->kind != REGISTRY_HASH)                 ->  WRONGTYPE (then is_new is false)
 *     if (registry_put_fields(registry, key, args, count, &added_count) != HASH_OK)
 *         if (is_new) registry_take_back(registry, key);                 nothing has changed
 *     registry_tell_members(registry, key);                              once a command
 *
 *     registry_remove_field(registry, key, field) ...                    then, if anything was removed:
 *     if (hash_count(&key->hash) == 0) registry_remove(registry, key);   reports the change itself
 *     else registry_tell_members(registry, key); */
#ifndef SKIPLIST_REGISTRY_HASH_H
#define SKIPLIST_REGISTRY_HASH_H

#include "skiplist/keyspace/registry.h"

/* As registry_find_or_create: the key that exists may be of another kind; a new one is an empty
 * hash, which the caller fills or takes back. NULL: no memory. */
MUST_CHECK struct registry_key *registry_find_or_create_hash(struct registry *registry,
                                                             uint32_t database, struct bytes name,
                                                             int64_t now_ms, bool *is_new);
/* As hash_put and hash_remove, on the hash of a key. Only these may change it. */
MUST_CHECK enum hash_status registry_put_fields(struct registry *registry, struct registry_key *key,
                                                const struct bytes *args, uint32_t count,
                                                uint32_t *added_count);
bool registry_remove_field(struct registry *registry, struct registry_key *key, struct bytes field);
/* As registry_put_board_until: put a hash with fields under its name. hash is then empty. */
MUST_CHECK enum registry_status registry_put_hash(struct registry *registry, uint32_t database,
                                                  struct bytes name, struct hash *hash,
                                                  int64_t expire_at_ms, bool is_lasting,
                                                  int64_t now_ms);

#endif
