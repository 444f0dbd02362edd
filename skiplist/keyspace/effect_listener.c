/* Reporting effects, as described in skiplist/keyspace/effect.h.
 *
 * Without a listener or a walk this costs one test for each change of a member. */
#include "skiplist/keyspace/registry_parts.h"

void registry_set_effects(struct registry *registry, effect_listener *listener, void *context) {
    registry->on_effect = listener;
    registry->effect_context = context;
    registry_observe(registry);
}

static void tell(const struct registry *registry, const struct effect *effect) {
    registry->on_effect(registry->effect_context, effect);
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

/* The same with the rules and the expiry of a key in the keyspace. */
static struct effect effect_in_full(const struct registry *registry, enum effect_kind kind,
                                    const struct registry_key *key) {
    struct effect effect = effect_of(kind, key);
    effect.rules = registry_rules(key);
    effect.expire_at_ms = registry_expiry(registry, key);
    return effect;
}

/* Report the creation of a board created by a write, before its first effect. */
static void introduce(const struct registry *registry, struct registry_key *key) {
    if (key->is_unreported) {
        key->is_unreported = false;
        struct effect effect = effect_of(EFFECT_CREATE, key);
        effect.rules = registry_rules(key);
        tell(registry, &effect);
    }
}

void registry_emit_key(const struct registry *registry, enum effect_kind kind,
                       struct registry_key *key) {
    if (registry->on_effect != NULL) {
        introduce(registry, key);
        struct effect effect = effect_in_full(registry, kind, key);
        tell(registry, &effect);
    }
}

void registry_emit_removal(const struct registry *registry, struct registry_key *key) {
    if (registry->on_effect != NULL) {
        introduce(registry, key);
        struct effect effect = effect_of(EFFECT_REMOVE, key);
        tell(registry, &effect);
    }
}

void registry_emit_move(const struct registry *registry, enum effect_kind kind,
                        const struct registry_key *from, const struct registry_key *key) {
    if (registry->on_effect != NULL) {
        struct effect effect = effect_in_full(registry, kind, key);
        effect.database = from->database;
        effect.name = registry_name(from);
        effect.to_database = key->database;
        effect.to_name = registry_name(key);
        tell(registry, &effect);
    }
}

void registry_emit_cut(const struct registry *registry, struct registry_key *key, uint32_t rank,
                       uint32_t count) {
    if (registry->on_effect != NULL && count > 0) {
        struct effect effect = effect_of(EFFECT_CUT, key);
        effect.rank = rank;
        effect.count = count;
        tell(registry, &effect);
    }
}

void registry_emit_flush(const struct registry *registry, uint32_t database) {
    if (registry->on_effect != NULL) {
        struct effect effect = {
            .kind = EFFECT_FLUSH, .database = database, .expire_at_ms = REGISTRY_NO_EXPIRY};
        tell(registry, &effect);
    }
}

/* ---- members ---- */

static void emit_member(const struct registry *registry, enum effect_kind kind,
                        struct registry_key *key, struct bytes member, uint64_t packed_key) {
    if (registry->on_effect != NULL) {
        introduce(registry, key);
        struct effect effect = effect_of(kind, key);
        effect.member = member;
        effect.member_key = packed_key;
        tell(registry, &effect);
    }
}

/* Separate from the callers, so that an unobserved change costs only a test and a jump. */
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
        emit_member(registry, EFFECT_PUT, key, member->name, packed_key);
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
    emit_member(registry, EFFECT_TAKE, key, member->name, 0);
}

void registry_take_member(struct registry *registry, struct registry_key *key,
                          const struct board_member *member) {
    if (registry->is_observed) {
        take_observed(registry, key, member);
    } else {
        board_remove_member(&key->board, member);
    }
}

/* ---- FILL: a key with all its members ---- */

void effect_fill_begin(struct effect_fill *fill, const struct effect *effect) {
    const struct board *board = &effect->key->board;
    const struct layout_time *time = &board_layout(board)->time;
    *fill = (struct effect_fill){
        .whole = *effect,
        .left = board_count(board),
        .is_reverse = time->bits > 0 && time->is_latest,
        .next = EFFECT_FILL_CREATE,
    };
    if (fill->left > 0) {
        board_seek(board, fill->is_reverse ? fill->left - 1 : 0, &fill->cursor);
    }
}

static bool next_member(struct effect_fill *fill, struct effect *effect) {
    struct board_entry entry;
    if (fill->left == 0 || !board_cursor_read(&fill->cursor, &entry)) {
        return false;
    }
    effect->kind = EFFECT_PUT;
    effect->member = entry.member;
    effect->member_key = entry.key;
    fill->left--;
    if (fill->is_reverse) {
        board_cursor_previous(&fill->cursor);
    } else {
        board_cursor_next(&fill->cursor);
    }
    return true;
}

bool effect_fill_next(struct effect_fill *fill, struct effect *effect) {
    *effect = fill->whole;
    switch (fill->next) {
    case EFFECT_FILL_CREATE:
        effect->kind = EFFECT_CREATE;
        fill->next = EFFECT_FILL_EXPIRE;
        return true;
    case EFFECT_FILL_EXPIRE:
        effect->kind = EFFECT_EXPIRE;
        fill->next = EFFECT_FILL_MEMBERS;
        if (effect->expire_at_ms != REGISTRY_NO_EXPIRY) {
            return true;
        }
        break;
    case EFFECT_FILL_MEMBERS:
        break;
    }
    return next_member(fill, effect);
}
