/* Renaming and copying keys, and other rules for them. Everything that may fail is reserved first. */
#include "codec/memory.h"
#include "skiplist/keyspace/registry_private.h"

static bool registry_rename_is_named(const struct registry_key *key, uint32_t database,
                                     struct bytes name) {
    return key->database == database && bytes_equal(registry_name(key), name);
}

/* Reserve another key with this key's expiry and PERIOD. NULL: no memory. */
static struct registry_key *registry_rename_reserve_successor(struct registry *registry,
                                                              const struct registry_key *key,
                                                              uint32_t to_database,
                                                              struct bytes to_name, unsigned tail,
                                                              int64_t now_ms) {
    if (!registry_settle(registry, to_database, to_name, now_ms)) {
        return NULL;
    }
    struct registry_key *successor =
        registry_reserve_key(registry, to_database, (struct registry_new_name){.first = to_name},
                             key->kind, key->expiry_place != EXPIRY_NOWHERE, tail);
    if (successor != NULL) {
        successor->is_lasting = key->is_lasting;
    }
    return successor;
}

/* The tail of a key that gets these rules, or those of another key (NULL). */
static unsigned registry_rename_tail(const struct registry_key *key, const struct rules *held) {
    return registry_tail_for(held != NULL                  ? held
                             : key->kind == REGISTRY_BOARD ? registry_rules(key)
                                                           : NULL);
}

/* A share of a WINDOW is none under another name. *held NULL: the key has no such rules. */
static bool registry_rename_hold_renamed(struct registry *registry, const struct registry_key *key,
                                         const struct rules **held) {
    struct rules rules;
    *held = NULL;
    if (key->kind != REGISTRY_BOARD || !registry_rules(key)->window.is_share) {
        return true;
    }
    rules_without_window(registry_rules(key), &rules);
    *held = rules_hold(&registry->rules, &rules);
    return *held != NULL;
}

/* held: its rules then, which are released where there is no memory; NULL: as they are. kind: RENAME or FILL, as which
 * it is reported. */
static enum registry_status registry_rename_to(struct registry *registry, struct registry_key *key,
                                               uint32_t to_database, struct bytes to_name,
                                               const struct rules *held, enum effect_kind kind,
                                               int64_t now_ms) {
    struct registry_key *successor = registry_rename_reserve_successor(
        registry, key, to_database, to_name, registry_rename_tail(key, held), now_ms);
    if (successor == NULL) {
        rules_release(&registry->rules, held);
        return REGISTRY_OUT_OF_MEMORY;
    }
    int64_t expire_at_ms = registry_expiry(registry, key);
    enum registry_walk_state state = registry_walk_state(registry, key);
    registry_move_value(registry, key, successor);
    if (held != NULL) {
        registry_set_rules(registry, successor, held);
    }
    registry_give_state(successor, registry_state(key));
    registry_take(registry, key);
    if (kind == EFFECT_FILL) {
        registry_emit(registry, key, (struct effect){.kind = EFFECT_REMOVE});
        state = REGISTRY_WALK_DONE;
    }
    registry_tell(registry, key->database, registry_name(key));
    registry_put_reserved(registry, successor, state, expire_at_ms, now_ms);
    if (kind == EFFECT_FILL) {
        registry_emit_key(registry, EFFECT_FILL, successor);
    } else {
        registry_emit_move(registry, EFFECT_RENAME, key, successor);
    }
    registry_trim(registry_database(registry, key->database));
    registry_let_go(registry, key);
    return REGISTRY_OK;
}

enum registry_status registry_rename(struct registry *registry, struct registry_key *key,
                                     uint32_t to_database, struct bytes to_name, int64_t now_ms) {
    if (registry_rename_is_named(key, to_database, to_name)) {
        return REGISTRY_OK;
    }
    const struct rules *held;
    return registry_rename_hold_renamed(registry, key, &held)
               ? registry_rename_to(registry, key, to_database, to_name, held, EFFECT_RENAME,
                                    now_ms)
               : REGISTRY_OUT_OF_MEMORY;
}

/* ---- boards that are made in steps ---- */

static struct bytes registry_rename_name_staged(const uint64_t *number) {
    return (struct bytes){.at = (const char *)number, .size = sizeof *number};
}

struct registry_key *registry_stage(struct registry *registry, const struct layout *layout,
                                    uint64_t *number) {
    struct rules whole;
    rules_copy(rules_of(layout), &whole);
    const struct rules rules = {.layout = whole.layout};
    *number = registry->board_count;
    while (registry_find_staged(registry, *number) != NULL) {
        (*number)++;
    }
    struct registry_key *key =
        registry_make_key(registry, REGISTRY_STAGING, registry_rename_name_staged(number),
                          REGISTRY_BOARD, &rules, NULL);
    if (key != NULL) {
        registry_emit_key(registry, EFFECT_CREATE, key);
    }
    return key;
}

struct registry_key *registry_find_staged(struct registry *registry, uint64_t number) {
    return registry_find_again(registry_database(registry, REGISTRY_STAGING),
                               registry_rename_name_staged(&number));
}

enum registry_status registry_unstage(struct registry *registry, struct registry_key *key,
                                      uint32_t to_database, struct bytes to_name,
                                      const struct rules *rules, bool is_told_whole,
                                      int64_t now_ms) {
    CHECK(layout_equal(&rules->layout, board_layout(&key->board)));
    const struct rules *held = rules_hold(&registry->rules, rules);
    return held != NULL ? registry_rename_to(registry, key, to_database, to_name, held,
                                             is_told_whole ? EFFECT_FILL : EFFECT_RENAME, now_ms)
                        : REGISTRY_OUT_OF_MEMORY;
}

void registry_drop_staged(struct registry *registry) {
    struct database *staging = registry_database(registry, REGISTRY_STAGING);
    while (staging->count > 0) {
        registry_remove(registry, registry_key_at(staging, staging->count - 1));
    }
}

/* The value that the successor gets: a copy made before, which is moved, or one that is made now. */
static bool registry_rename_take_value(struct registry *registry, const struct registry_key *key,
                                       struct registry_key *copy, struct registry_key *successor) {
    const struct key_kind *kind = registry->kinds[key->kind];
    if (copy == NULL) {
        return kind->copy(registry, key, successor);
    }
    if (kind->move != NULL) {
        kind->move(copy, successor);
    } else {
        memcpy(successor->value, copy->value, sizeof successor->value);
    }
    memory_free(copy);
    return true;
}

/* What is to be settled is there once, and so is a WINDOW, and the share of one. */
bool registry_hold_copied(struct registry *registry, const struct registry_key *key,
                          const struct rules **held) {
    struct rules rules;
    *held = NULL;
    if (key->kind != REGISTRY_BOARD) {
        return true;
    }
    const struct rules *own = registry_rules(key);
    if (!rules_have_state(own)) {
        return true;
    }
    rules_without_window(own, &rules);
    rules.is_archive = false;
    *held = rules_hold(&registry->rules, &rules);
    return *held != NULL;
}

enum registry_status registry_copy_value(struct registry *registry, const struct registry_key *key,
                                         struct registry_key **copy, uint32_t to_database,
                                         struct bytes to_name, int64_t now_ms) {
    if (registry_rename_is_named(key, to_database, to_name)) {
        return REGISTRY_OK;
    }
    const struct rules *held;
    if (!registry_hold_copied(registry, key, &held)) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    struct registry_key *successor = registry_rename_reserve_successor(
        registry, key, to_database, to_name, registry_rename_tail(key, held), now_ms);
    if (successor == NULL || !registry_rename_take_value(registry, key, *copy, successor)) {
        memory_free(successor);
        rules_release(&registry->rules, held);
        return REGISTRY_OUT_OF_MEMORY;
    }
    if (held != NULL) {
        registry_set_rules(registry, successor, held);
    }
    *copy = NULL;
    bool is_done = registry_walk_state(registry, key) == REGISTRY_WALK_DONE;
    /* What is copied may be the share of the board that is replaced, and go with it. */
    const struct registry_key *old =
        registry_put_over(registry, successor, is_done ? REGISTRY_WALK_DONE : REGISTRY_WALK_AHEAD,
                          registry_expiry(registry, key), now_ms);
    registry_emit_move(registry, EFFECT_COPY, key, successor);
    registry_note_removed(registry, old);
    if (successor->kind == REGISTRY_BOARD) {
        board_chain_put(&registry->remains, &successor->board);
    }
    return REGISTRY_OK;
}

enum registry_status registry_copy(struct registry *registry, const struct registry_key *key,
                                   uint32_t to_database, struct bytes to_name, int64_t now_ms) {
    struct registry_key *copy = NULL;
    return registry_copy_value(registry, key, &copy, to_database, to_name, now_ms);
}

/* ---- other rules ---- */

static bool registry_rename_fits(const struct board *board, const struct tag_set *tags,
                                 unsigned *full) {
    for (unsigned i = 0; i < tags->count; i++) {
        const struct tag *tag = &tags->tags[i];
        int index = tag_set_find(&board_layout(board)->tags, bytes_from_text(tag->name));
        if (index >= 0 && tags_count_values(board, (unsigned)index) > tag_values_max(tag)) {
            *full = i;
            return false;
        }
    }
    return true;
}

bool registry_tags_fit(struct registry_key *key, const struct layout *layout, unsigned *full) {
    bool fits = registry_rename_fits(&key->board, &layout->tags, full);
    while (!fits && board_free_remains(&key->board)) {
        fits = registry_rename_fits(&key->board, &layout->tags, full);
    }
    return fits;
}

/* Give the board rules that are held, in whose tags its values have room. false: no memory. */
static bool registry_rename_set_rules(struct registry *registry, struct registry_key *key,
                                      const struct rules *rules) {
    const struct rules *before = registry_rules(key);
    unsigned full;
    if (tag_set_equal(&before->layout.tags, &rules->layout.tags)) {
        registry_set_rules(registry, key, rules);
        return true;
    }
    switch (tags_alter(&key->board, &rules->layout, &full)) {
    case TAGS_OK:
    case TAGS_SAME:
        board_chain_put(&registry->remains, &key->board);
        rules_release(&registry->rules, before);
        return true;
    case TAGS_FULL: /* registry_tags_fit has been asked */
    case TAGS_OUT_OF_MEMORY:
        break;
    }
    return false;
}

/* Move the board to a key of the same name with another tail. NULL: no memory. */
static struct registry_key *registry_rename_replace_key(struct registry *registry,
                                                        struct registry_key *key,
                                                        const struct rules *rules) {
    int64_t expire_at_ms = registry_expiry(registry, key);
    struct registry_key *successor = registry_reserve_key(
        registry, key->database, (struct registry_new_name){.first = registry_name(key)},
        REGISTRY_BOARD, expire_at_ms != REGISTRY_NO_EXPIRY, registry_tail_for(rules));
    if (successor == NULL || !registry_rename_set_rules(registry, key, rules)) {
        memory_free(successor);
        return NULL;
    }
    successor->is_lasting = key->is_lasting;
    successor->is_unreported = key->is_unreported;
    registry_replace(registry, key, successor);
    registry_let_go(registry, key);
    return successor;
}

struct registry_key *registry_alter(struct registry *registry, struct registry_key *key,
                                    const struct rules *rules, const struct board_state *state) {
    const struct rules *held = rules_hold(&registry->rules, rules);
    if (held == NULL) {
        return NULL;
    }
    struct board_state given = *(state != NULL ? state : registry_state(key));
    registry_count_state(registry, key, -1);
    if ((held->period.unit != PERIOD_NONE) != key->is_periodic ||
        (rules_have_state(held) && !key->has_state)) {
        struct registry_key *successor = registry_rename_replace_key(registry, key, held);
        if (successor == NULL) {
            registry_count_state(registry, key, 1);
            rules_release(&registry->rules, held);
            return NULL;
        }
        key = successor;
    } else if ((!key->is_periodic ||
                registry_roll_reserve_end(registry_database(registry, key->database))) &&
               registry_rename_set_rules(registry, key, held)) {
        if (key->is_periodic) {
            registry_await_roll(registry, key);
        }
    } else {
        registry_count_state(registry, key, 1);
        rules_release(&registry->rules, held);
        return NULL;
    }
    registry_give_state(key, &given);
    registry_count_state(registry, key, 1);
    registry_emit_key(registry, EFFECT_RULES, key);
    registry_tell(registry, key->database, registry_name(key));
    return key;
}
