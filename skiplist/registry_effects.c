/* Telling effects, as skiplist/effect.h has them.
 *
 * Without anybody who observes it a change of a member costs one test more. */
#include "skiplist/registry_parts.h"

void registry_set_effects(struct registry *registry, registry_hear *hear, void *context) {
    registry->hear = hear;
    registry->hear_context = context;
    registry_observe(registry);
}

static void tell(const struct registry *registry, const struct effect *effect) {
    registry->hear(registry->hear_context, effect);
}

static struct effect effect_of(enum effect_kind kind, const struct registry_key *key) {
    return (struct effect){
        .kind = kind,
        .database = key->database,
        .name = registry_name(key),
        .expire_at_ms = REGISTRY_NO_EXPIRY,
        .key = key,
    };
}

/* The same with all that is known of a key that is in its place. */
static struct effect effect_in_full(const struct registry *registry, enum effect_kind kind,
                                    const struct registry_key *key) {
    struct effect effect = effect_of(kind, key);
    effect.rules = registry_rules(key);
    effect.expire_at_ms = registry_expiry(registry, key);
    return effect;
}

/* A board that came to be by a write is told before what is told of it first. */
static void introduce(const struct registry *registry, struct registry_key *key) {
    if (key->is_untold) {
        key->is_untold = false;
        struct effect effect = effect_of(EFFECT_CREATE, key);
        effect.rules = registry_rules(key);
        tell(registry, &effect);
    }
}

void registry_hear_key(const struct registry *registry, enum effect_kind kind,
                       struct registry_key *key) {
    if (registry->hear != NULL) {
        introduce(registry, key);
        struct effect effect = effect_in_full(registry, kind, key);
        tell(registry, &effect);
    }
}

void registry_hear_removal(const struct registry *registry, struct registry_key *key) {
    if (registry->hear != NULL) {
        introduce(registry, key);
        struct effect effect = effect_of(EFFECT_REMOVE, key);
        tell(registry, &effect);
    }
}

void registry_hear_move(const struct registry *registry, enum effect_kind kind,
                        const struct registry_key *from, const struct registry_key *key) {
    if (registry->hear != NULL) {
        struct effect effect = effect_in_full(registry, kind, key);
        effect.database = from->database;
        effect.name = registry_name(from);
        effect.to_database = key->database;
        effect.to_name = registry_name(key);
        tell(registry, &effect);
    }
}

void registry_hear_cut(const struct registry *registry, struct registry_key *key, uint32_t rank,
                       uint32_t count) {
    if (registry->hear != NULL && count > 0) {
        struct effect effect = effect_of(EFFECT_CUT, key);
        effect.rank = rank;
        effect.count = count;
        tell(registry, &effect);
    }
}

void registry_hear_flush(const struct registry *registry, uint32_t database) {
    if (registry->hear != NULL) {
        struct effect effect = {
            .kind = EFFECT_FLUSH, .database = database, .expire_at_ms = REGISTRY_NO_EXPIRY};
        tell(registry, &effect);
    }
}

/* ---- members ---- */

static void hear_member(const struct registry *registry, enum effect_kind kind,
                        struct registry_key *key, struct bytes member, uint64_t packed_key) {
    if (registry->hear != NULL) {
        introduce(registry, key);
        struct effect effect = effect_of(kind, key);
        effect.member = member;
        effect.member_key = packed_key;
        tell(registry, &effect);
    }
}

/* Apart from what follows, so that a change that nobody observes is a test and a jump. */
__attribute__((noinline)) static enum board_status put_observed(struct registry *registry,
                                                                struct registry_key *key,
                                                                const struct board_member *member,
                                                                uint64_t packed_key) {
    bool is_open = registry->walk.open == key;
    uint32_t rank = registry->walk.rank;
    if (is_open) {
        registry_walk_note_put_member(registry, member, packed_key);
    }
    enum board_status status = board_put_member(&key->board, member, packed_key);
    if (status == BOARD_OK) {
        hear_member(registry, EFFECT_PUT, key, member->name, packed_key);
    } else if (is_open) {
        registry->walk.rank = rank;
    }
    return status;
}

enum board_status registry_put_member(struct registry *registry, struct registry_key *key,
                                      const struct board_member *member, uint64_t packed_key) {
    return registry->is_observed ? put_observed(registry, key, member, packed_key)
                                 : board_put_member(&key->board, member, packed_key);
}

__attribute__((noinline)) static void take_observed(struct registry *registry,
                                                    struct registry_key *key,
                                                    const struct board_member *member) {
    if (registry->walk.open == key) {
        registry_walk_note_take_member(registry, member);
    }
    board_remove_member(&key->board, member);
    hear_member(registry, EFFECT_TAKE, key, member->name, 0);
}

void registry_take_member(struct registry *registry, struct registry_key *key,
                          const struct board_member *member) {
    if (registry->is_observed) {
        take_observed(registry, key, member);
    } else {
        board_remove_member(&key->board, member);
    }
}
