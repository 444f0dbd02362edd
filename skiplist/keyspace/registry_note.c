/* Notes of members: a hash behind the name of a board's key, by the member's name.
 *
 *     key   [ board | ... | name | tail of a PERIOD | state | struct hash ]      board_options_have_notes(options)
 *
 * What they say is the option's that asks for them: ratings (codec/rating.h), or what limits count (limits.h).
 *
 * It is large from a few hundred notes on (hash.h), and then grows in steps. */
#include "skiplist/keyspace/registry_private.h"

const struct hash *registry_note_hash(const struct registry_key *key) {
    return key->has_notes ? registry_own_notes((struct registry_key *)(uintptr_t)key) : NULL;
}

bool registry_note_find(const struct registry_key *key, struct bytes member, struct bytes *note) {
    return key->has_notes && hash_find(registry_note_hash(key), member, note);
}

bool registry_note_set(struct registry *registry, struct registry_key *key, struct bytes member,
                       struct bytes note) {
    struct hash *notes = registry_own_notes(key);
    const struct bytes args[] = {member, note};
    uint32_t added_count;
    uint64_t seed = hash_is_large(notes) ? 0 : registry_next_seed(registry);
    return hash_put_within(notes, sizeof *notes, seed, args, 1, &added_count, NULL) == HASH_OK;
}

bool registry_note_put(struct registry *registry, struct registry_key *key, struct bytes member,
                       struct bytes note) {
    CHECK(key->has_notes && note.size > 0 && note.size <= REGISTRY_NOTE_MAX);
    if (!registry_note_set(registry, key, member, note)) {
        return false;
    }
    effect_emit(registry, key,
                (struct effect){.kind = EFFECT_NOTE, .member = member, .value = note});
    return true;
}

bool registry_note_remove(struct registry *registry, struct registry_key *key,
                          struct bytes member) {
    if (!key->has_notes || !hash_remove(registry_own_notes(key), member)) {
        return false;
    }
    effect_emit(registry, key, (struct effect){.kind = EFFECT_NOTE, .member = member});
    return true;
}

void registry_note_move_all(struct registry_key *key, struct registry_key *to) {
    if (key->has_notes && to->has_notes) {
        hash_move(registry_own_notes(key), registry_own_notes(to), sizeof(struct hash));
    }
}
