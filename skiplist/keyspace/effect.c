/* Applying effects: each is checked against the current state, then carried out as the registry
 * does it.
 *
 * Invariant: an effect that cannot be applied has changed nothing. */
#include "skiplist/keyspace/effect.h"

#include "codec/memory.h"
#include "skiplist/keyspace/registry_parts.h"
#include "skiplist/lookup.h"

enum {
    IN_FLIGHT = 16, /* effects; more than STAGES, a power of two */
};

/* A time at which nothing has expired and no period is over. */
#define BEFORE_ALL INT64_MIN

/* ---- validity ---- */

static bool is_name(struct bytes name) {
    return name.size >= 1 && name.size <= REGISTRY_NAME_MAX;
}

static bool is_member(struct bytes member) {
    return member.size >= 1 && member.size <= BOARD_MEMBER_MAX;
}

/* The key an effect refers to, or NULL. */
static struct registry_key *find(struct registry *registry, uint32_t database, struct bytes name) {
    return database < REGISTRY_DATABASES && is_name(name)
               ? registry_find_again(&registry->databases[database], name)
               : NULL;
}

static bool are_akin(const struct board *board, const struct rules *rules) {
    return rules_are_akin(rules_of(board_layout(board)), rules);
}

/* ---- members ---- */

static enum effect_status put_member(struct registry_key *key, const struct effect *effect,
                                     const struct board_member *member) {
    if (!layout_has_room(board_layout(&key->board), effect->member_key)) {
        return EFFECT_IMPOSSIBLE;
    }
    switch (board_put_member(&key->board, member, effect->member_key)) {
    case BOARD_OK:
        return EFFECT_OK;
    case BOARD_FULL:
        return EFFECT_IMPOSSIBLE;
    case BOARD_OUT_OF_MEMORY:
        break;
    }
    return EFFECT_OUT_OF_MEMORY;
}

/* PUT and TAKE. key: NULL if there is none. ahead: as for board_look_up. */
static enum effect_status apply_member(struct registry_key *key, const struct effect *effect,
                                       const struct lookup *ahead) {
    struct board_member member;
    if (key == NULL) {
        return EFFECT_IMPOSSIBLE;
    }
    board_look_up(&key->board, effect->member, ahead, &member);
    if (effect->kind == EFFECT_PUT) {
        return put_member(key, effect, &member);
    }
    if (!member.is_there) {
        return EFFECT_IMPOSSIBLE;
    }
    board_remove_member(&key->board, &member);
    return EFFECT_OK;
}

/* ---- members, in batches ---- */

/* An effect in the prefetch pipeline. */
struct flight {
    const struct effect *effect;
    struct registry_prefetch name; /* only for the first of consecutive effects with the same key */
    struct registry_key *key;      /* NULL: none, or not known yet */
    bool is_key_known;             /* taken from the previous effect */
    bool is_fetched;
    struct lookup ahead;
};

static bool is_of_member(const struct effect *effect) {
    return (effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE) &&
           effect->database < REGISTRY_DATABASES && is_name(effect->name) &&
           is_member(effect->member);
}

static void fetch_key_slots(struct registry *registry, struct flight *flight,
                            const struct flight *before) {
    const struct effect *effect = flight->effect;
    flight->is_key_known = before != NULL && before->effect->database == effect->database &&
                           bytes_equal(before->effect->name, effect->name);
    if (!flight->is_key_known) {
        registry_prefetch_slots(registry, effect->database, effect->name, &flight->name);
    }
}

/* Prefetching is useless for a single small board: it is in the cache after its first member. */
static void begin_member(struct registry *registry, struct flight *flight,
                         const struct flight *before) {
    const struct effect *effect = flight->effect;
    if (flight->is_key_known) {
        flight->key = before->key;
    } else {
        struct registry_prefetch *name = &flight->name;
        bool is_there = registry_prefetch_end(registry, BEFORE_ALL, name) != NULL;
        flight->key = is_there ? name->key : NULL;
        registry_prefetch_recall(registry, name);
    }
    const struct board *board = flight->key != NULL ? &flight->key->board : NULL;
    flight->is_fetched =
        board != NULL && (!flight->is_key_known || board_count(board) >= LOOKUP_BOARD_MIN);
    if (flight->is_fetched) {
        lookup_begin(&flight->ahead, board, effect->member, true);
        if (effect->kind == EFFECT_PUT) {
            lookup_begin_place(&flight->ahead, effect->member_key);
        }
    }
}

/* Stages of prefetching what an effect will change. */
enum stage {
    STAGE_KEY_SLOTS,
    STAGE_KEY_PLACE,
    STAGE_KEY,
    STAGE_MEMBER,
    STAGE_LOOKUP, /* the first of LOOKUP_STAGES */
    STAGES = STAGE_LOOKUP + LOOKUP_STAGES
};

static inline __attribute__((always_inline)) void fetch(struct registry *registry, uint32_t stage,
                                                        struct flight *flight,
                                                        const struct flight *before) {
    switch (stage) {
    case STAGE_KEY_SLOTS:
        fetch_key_slots(registry, flight, before);
        break;
    case STAGE_KEY_PLACE:
        if (!flight->is_key_known) {
            registry_prefetch_place(registry, &flight->name);
        }
        break;
    case STAGE_KEY:
        if (!flight->is_key_known) {
            registry_prefetch_key(registry, &flight->name);
        }
        break;
    case STAGE_MEMBER:
        begin_member(registry, flight, before);
        break;
    default:
        break;
    }
}

/* Apply the leading effects, which all concern members. While one is applied, the following ones
 * are prefetched, each one stage behind the one before it. So memory latencies overlap with each
 * other and with work, and the prefetched lines fit in the L1 cache. The state may have changed in
 * between: the stages and board_look_up treat the results as hints. */
static enum effect_status apply_members(struct registry *registry, const struct effect *effects,
                                        uint32_t count, uint32_t *applied) {
    struct flight flights[IN_FLIGHT];
    uint32_t members = 0;
    while (members < count && is_of_member(&effects[members])) {
        members++;
    }
    for (uint32_t now = 0; now < members + STAGES; now++) {
        if (now < members) {
            flights[now % IN_FLIGHT].effect = &effects[now];
        }
#pragma GCC unroll 16
        for (uint32_t stage = 0; stage < STAGE_LOOKUP; stage++) {
            uint32_t i = now - stage; /* before the first effect: wraps to a huge number */
            if (i < members) {
                fetch(registry, stage, &flights[i % IN_FLIGHT],
                      i > 0 ? &flights[(i - 1) % IN_FLIGHT] : NULL);
            }
        }
        struct lookup *due[LOOKUP_STAGES];
        for (uint32_t stage = 0; stage < LOOKUP_STAGES; stage++) {
            uint32_t i = now - STAGE_LOOKUP - stage;
            struct flight *flight = &flights[i % IN_FLIGHT];
            due[stage] = i < members && flight->is_fetched ? &flight->ahead : NULL;
        }
        lookup_advance(due);
        uint32_t i = now - STAGES;
        if (i < members) {
            const struct flight *flight = &flights[i % IN_FLIGHT];
            enum effect_status status = apply_member(flight->key, flight->effect,
                                                     flight->is_fetched ? &flight->ahead : NULL);
            if (status != EFFECT_OK) {
                *applied = i;
                return status;
            }
        }
    }
    *applied = members;
    return EFFECT_OK;
}

/* ---- keys ---- */

static enum effect_status apply_cut(struct registry *registry, const struct effect *effect) {
    struct registry_key *key = find(registry, effect->database, effect->name);
    if (key == NULL || effect->rank > board_count(&key->board) ||
        effect->count > board_count(&key->board) - effect->rank) {
        return EFFECT_IMPOSSIBLE;
    }
    registry_remove_range(registry, key, effect->rank, effect->count);
    return EFFECT_OK;
}

static enum effect_status apply_create(struct registry *registry, const struct effect *effect) {
    if (effect->rules == NULL ||
        !registry_may_put(registry, effect->database, effect->name, effect->rules)) {
        return EFFECT_IMPOSSIBLE;
    }
    return registry_make_key(registry, effect->database, effect->name, effect->rules) != NULL
               ? EFFECT_OK
               : EFFECT_OUT_OF_MEMORY;
}

static enum effect_status apply_remove(struct registry *registry, const struct effect *effect) {
    struct registry_key *key = find(registry, effect->database, effect->name);
    if (key == NULL) {
        return EFFECT_IMPOSSIBLE;
    }
    registry_remove(registry, key);
    return EFFECT_OK;
}

static enum effect_status apply_flush(struct registry *registry, const struct effect *effect) {
    if (effect->database >= REGISTRY_DATABASES) {
        return EFFECT_IMPOSSIBLE;
    }
    (void)registry_flush(registry, effect->database);
    return EFFECT_OK;
}

static enum effect_status apply_expire(struct registry *registry, const struct effect *effect) {
    struct registry_key *key = find(registry, effect->database, effect->name);
    if (key == NULL) {
        return EFFECT_IMPOSSIBLE;
    }
    return registry_set_expiry(registry, key, effect->expire_at_ms) == REGISTRY_OK
               ? EFFECT_OK
               : EFFECT_OUT_OF_MEMORY;
}

static enum effect_status apply_rules(struct registry *registry, const struct effect *effect) {
    struct registry_key *key = find(registry, effect->database, effect->name);
    if (key == NULL || effect->rules == NULL || board_count(&key->board) > 0 ||
        !are_akin(&key->board, effect->rules) ||
        (effect->rules->period != PERIOD_NONE) != key->is_periodic) {
        return EFFECT_IMPOSSIBLE;
    }
    const struct rules *before = registry_rules(key);
    const struct rules *rules = rules_hold(&registry->rules, effect->rules);
    if (rules == NULL) {
        return EFFECT_OUT_OF_MEMORY;
    }
    board_set_layout(&key->board, &rules->layout);
    rules_release(&registry->rules, before);
    if (key->is_periodic) {
        registry_await_roll(registry, key);
    }
    return EFFECT_OK;
}

/* ---- renames and copies ---- */

/* A key for RENAME or COPY without its board yet, and the rules it will have. NULL: no memory,
 * nothing changed. */
static struct registry_key *reserve_successor(struct registry *registry,
                                              const struct effect *effect,
                                              const struct rules **rules) {
    *rules = rules_hold(&registry->rules, effect->rules);
    if (*rules == NULL) {
        return NULL;
    }
    struct registry_key *successor = registry_reserve_key(
        registry, effect->to_database, (struct registry_new_name){.first = effect->to_name},
        effect->expire_at_ms != REGISTRY_NO_EXPIRY, effect->rules->period != PERIOD_NONE);
    if (successor == NULL) {
        rules_release(&registry->rules, *rules);
    }
    return successor;
}

static void rename_to(struct registry *registry, struct registry_key *key,
                      struct registry_key *successor, const struct rules *rules,
                      int64_t expire_at_ms) {
    const struct rules *before = registry_rules(key);
    board_move_to(&key->board, &successor->board);
    board_set_layout(&successor->board, &rules->layout);
    rules_release(&registry->rules, before);
    registry_take(registry, key);
    registry_put_reserved(registry, successor, REGISTRY_WALK_DONE, expire_at_ms, BEFORE_ALL);
    registry_trim(registry_database(registry, key->database));
    memory_free(key);
}

static enum effect_status apply_move(struct registry *registry, const struct effect *effect) {
    struct registry_key *key = find(registry, effect->database, effect->name);
    const struct rules *rules;
    if (key == NULL || effect->rules == NULL || !are_akin(&key->board, effect->rules) ||
        !registry_may_put(registry, effect->to_database, effect->to_name, effect->rules)) {
        return EFFECT_IMPOSSIBLE;
    }
    struct registry_key *successor = reserve_successor(registry, effect, &rules);
    if (successor == NULL) {
        return EFFECT_OUT_OF_MEMORY;
    }
    if (effect->kind == EFFECT_RENAME) {
        rename_to(registry, key, successor, rules, effect->expire_at_ms);
        return EFFECT_OK;
    }
    if (!board_copy(&key->board, &successor->board)) {
        memory_free(successor);
        rules_release(&registry->rules, rules);
        return EFFECT_OUT_OF_MEMORY;
    }
    board_set_layout(&successor->board, &rules->layout);
    registry_put_reserved(registry, successor, REGISTRY_WALK_DONE, effect->expire_at_ms,
                          BEFORE_ALL);
    return EFFECT_OK;
}

/* ---- all effects ---- */

static enum effect_status apply_one(struct registry *registry, const struct effect *effect) {
    switch (effect->kind) {
    case EFFECT_CUT:
        return apply_cut(registry, effect);
    case EFFECT_CREATE:
        return apply_create(registry, effect);
    case EFFECT_REMOVE:
        return apply_remove(registry, effect);
    case EFFECT_FLUSH:
        return apply_flush(registry, effect);
    case EFFECT_RENAME:
    case EFFECT_COPY:
        return apply_move(registry, effect);
    case EFFECT_EXPIRE:
        return apply_expire(registry, effect);
    case EFFECT_RULES:
        return apply_rules(registry, effect);
    case EFFECT_PUT:
    case EFFECT_TAKE: /* with an invalid name or member */
    case EFFECT_FILL:
        break;
    }
    return EFFECT_IMPOSSIBLE;
}

enum effect_status effect_apply(struct registry *registry, const struct effect *effects,
                                uint32_t count, uint32_t *applied) {
    CHECK(registry->on_effect == NULL);
    enum effect_status status = EFFECT_OK;
    *applied = 0;
    while (*applied < count && status == EFFECT_OK) {
        const struct effect *next = &effects[*applied];
        uint32_t done;
        if (is_of_member(next)) {
            status = apply_members(registry, next, count - *applied, &done);
        } else {
            status = apply_one(registry, next);
            done = status == EFFECT_OK;
        }
        *applied += done;
    }
    return status;
}
