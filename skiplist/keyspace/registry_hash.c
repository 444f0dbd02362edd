/* Hashes as values of keys: changes of their fields, which are reported; and their table of
 * operations.
 *
 * A walk goes from the last field to the first, and the cursor's rank is the number of fields
 * ahead. A removal moves a field to a lower index only, and a new field comes last. So a walk
 * misses no field, and may return one twice. */
#include "codec/memory.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_private.h"

enum {
    KEY_WORK = 1, /* of freeing the key, in fields */
/* A piece of a walk ends behind so many bytes. */
#ifdef SKIPLIST_TINY
    PIECE_BYTES = 100,
#else
    PIECE_BYTES = 32 * 1024,
#endif
};

enum { ROOM_SPARE_MAX = 64 /* bytes behind a hash that its key may keep */ };

size_t registry_hash_room(const struct registry_key *key) {
    const char *piece = registry_piece(key);
    return memory_size(piece) - (size_t)(key->name_at + key->name_size - piece);
}

/* Move the key, which is in its database, to where its hash has this room. NULL: no memory. */
static struct registry_key *registry_hash_move_key(struct registry *registry,
                                                   struct registry_key *key, size_t room) {
    struct registry_key *successor =
        registry_create_key(key->database, (struct registry_new_name){.first = registry_name(key)},
                            REGISTRY_HASH, (unsigned)room * TAIL_SIZE);
    if (successor == NULL) {
        return NULL;
    }
    registry_replace(registry, key, successor);
    return successor;
}

/* Put into the hash of a key, and let it have the room that it needs and little more. */
static enum hash_status registry_hash_put_unreported(struct registry *registry,
                                                     struct registry_key **key,
                                                     const struct bytes *args, uint32_t count,
                                                     uint32_t *added_count) {
    struct hash *hash = registry_own_hash(*key);
    uint64_t seed = hash_is_large(hash) ? 0 : registry_next_seed(registry);
    size_t room = registry_hash_room(*key);
    size_t wanted;
    struct registry_key *moved = NULL;
    enum hash_status status = hash_put_within(hash, room, seed, args, count, added_count, &wanted);
    if (status == HASH_NO_ROOM) {
        moved = registry_hash_move_key(registry, *key, wanted);
        if (moved == NULL) {
            return HASH_OUT_OF_MEMORY;
        }
        hash = registry_own_hash(moved);
        status = hash_put_within(hash, registry_hash_room(moved), seed, args, count, added_count,
                                 &wanted);
        CHECK(status == HASH_OK);
    } else if (status == HASH_OK && room > hash_moved_size(hash) + ROOM_SPARE_MAX &&
               room > HASH_SIZE_MIN + ROOM_SPARE_MAX) {
        /* Without memory for that it keeps what it has. */
        moved = registry_hash_move_key(registry, *key, hash_moved_size(hash));
    }
    *key = moved != NULL ? moved : *key;
    return status;
}

/* ---- changes ---- */

struct registry_key *registry_hash_find_or_create(struct registry *registry, uint32_t database,
                                                  struct bytes name, int64_t now_ms, bool *is_new) {
    return registry_find_or_create_kind(registry, database, name, &key_kind_hash, now_ms, is_new);
}

enum hash_status registry_hash_put(struct registry *registry, struct registry_key **key,
                                   const struct bytes *args, uint32_t count,
                                   uint32_t *added_count) {
    enum hash_status status = registry_hash_put_unreported(registry, key, args, count, added_count);
    if (status == HASH_OK && registry->listeners != NULL) {
        for (uint64_t i = 0; i < (uint64_t)count * 2; i += 2) {
            effect_emit_member(registry, EFFECT_PUT, *key, args[i], args[i + 1]);
        }
    }
    return status;
}

bool registry_hash_remove(struct registry *registry, struct registry_key *key, struct bytes field) {
    if (!hash_remove(registry_own_hash(key), field)) {
        return false;
    }
    effect_emit_member(registry, EFFECT_TAKE, key, field, (struct bytes){.at = NULL});
    return true;
}

struct registry_key *registry_hash_put_own(struct registry *registry, uint32_t database,
                                           struct bytes name, const struct bytes *args,
                                           uint32_t count, int64_t now_ms) {
    uint32_t added_count;
    bool is_new;
    struct registry_key *key =
        registry_hash_find_or_create(registry, database, name, now_ms, &is_new);
    if (key == NULL || (key->kind == REGISTRY_HASH &&
                        registry_hash_put(registry, &key, args, count, &added_count) == HASH_OK)) {
        return key;
    }
    if (is_new) {
        registry_take_back(registry, key);
    }
    return NULL;
}

/* ---- operations ---- */

static bool registry_hash_free_step(struct registry *registry, struct registry_key *key,
                                    uint32_t *work) {
    (void)registry;
    bool is_done = hash_free_step(registry_own_hash(key), work);
    *work += is_done ? KEY_WORK : 0;
    return is_done;
}

static size_t registry_hash_size(const struct registry_key *key) {
    return hash_memory_size(registry_hash(key));
}

static bool registry_hash_copy(struct registry *registry, const struct registry_key *key,
                               struct registry_key *to) {
    (void)registry;
    return hash_copy(registry_hash(key), registry_own_hash(to));
}

static void registry_hash_move(struct registry_key *key, struct registry_key *to) {
    hash_move(registry_own_hash(key), registry_own_hash(to), registry_hash_room(to));
}

uint32_t registry_hash_walk_on(const struct hash *hash, struct key_cursor *cursor,
                               struct hash_pair *pair, uint32_t entries_max, bool *is_last) {
    uint32_t ahead =
        cursor->has_last && cursor->rank < hash_count(hash) ? cursor->rank : hash_count(hash);
    uint32_t count = 0;
    size_t bytes = 0;
    if (hash_is_large(hash)) {
        for (; ahead > 0 && count < entries_max && bytes < PIECE_BYTES; count++) {
            hash_at(hash, --ahead, &pair[count]);
            bytes += pair[count].field.size + pair[count].value.size;
        }
    } else {
        struct hash_cursor place = hash_begin(hash);
        uint32_t end = ahead;
        ahead = end > entries_max ? end - entries_max : 0;
        while (place.index < end && hash_next(&place, &pair[count])) {
            count += place.index > ahead;
        }
    }
    *cursor = (struct key_cursor){.rank = ahead, .has_last = true};
    *is_last = ahead == 0;
    return count;
}

static uint32_t registry_hash_walk(const struct registry_key *key, struct key_cursor *cursor,
                                   void *entries, uint32_t entries_max, bool *is_last) {
    return registry_hash_walk_on(registry_hash(key), cursor, entries, entries_max, is_last);
}

static bool registry_hash_fill(struct effect_fill *fill, struct effect *effect) {
    struct hash_pair pair;
    const struct hash *hash = registry_hash(effect->key);
    if (fill->done == hash_count(hash)) {
        return false;
    }
    hash_at(hash, fill->done++, &pair);
    effect->member = pair.field;
    effect->value = pair.value;
    return true;
}

static enum effect_status registry_hash_change(struct registry *registry, struct registry_key *key,
                                               const struct effect *effect) {
    if (effect->kind == EFFECT_PUT) {
        const struct bytes args[] = {effect->member, effect->value};
        uint32_t added_count;
        switch (registry_hash_put(registry, &key, args, 1, &added_count)) {
        case HASH_OK:
            return EFFECT_OK;
        case HASH_OUT_OF_MEMORY:
            return EFFECT_OUT_OF_MEMORY;
        case HASH_FULL:
        case HASH_NO_ROOM:
            break;
        }
        return EFFECT_IMPOSSIBLE;
    }
    if (effect->kind != EFFECT_TAKE || !hash_remove(registry_own_hash(key), effect->member)) {
        return EFFECT_IMPOSSIBLE;
    }
    effect_emit_member(registry, EFFECT_TAKE, key, effect->member, effect->value);
    return EFFECT_OK;
}

static const char *registry_hash_check(const struct registry *registry,
                                       const struct registry_key *key,
                                       const struct key_cursor *cursor) {
    (void)registry;
    return cursor == NULL ? hash_check(registry_hash(key)) : NULL;
}

const struct key_kind key_kind_hash = {
    .name = "hash",
    .number = REGISTRY_HASH,
    .free_step = registry_hash_free_step,
    .size = registry_hash_size,
    .copy = registry_hash_copy,
    .move = registry_hash_move,
    .walk = registry_hash_walk,
    .fill = registry_hash_fill,
    .change = registry_hash_change,
    .check = registry_hash_check,
};
