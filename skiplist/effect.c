/* Applying effects: each is checked against what is there, then done as the registry does it.
 *
 * Invariant: an effect that cannot be applied has changed nothing. */
#include "skiplist/effect.h"

#include "codec/memory.h"
#include "skiplist/registry_parts.h"

enum {
    GROUP = 32, /* effects whose waits for memory overlap */
/* Members; a board with fewer stays in the cache while it is written. */
#ifdef SKIPLIST_TINY
    FETCH_BOARD_MIN = 8,
#else
    FETCH_BOARD_MIN = 4096,
#endif
};

/* A time at which nothing has expired and no period is over. */
#define BEFORE_ALL INT64_MIN

/* ---- what fits ---- */

static bool is_name(struct bytes name) {
    return name.size >= 1 && name.size <= REGISTRY_NAME_MAX;
}

static bool is_member(struct bytes member) {
    return member.size >= 1 && member.size <= BOARD_MEMBER_MAX;
}

static bool is_packed_by(const struct layout *layout, uint64_t key) {
    return layout->bits_total == 64 || key >> layout->bits_total == 0;
}

/* The key that an effect is about, or NULL. */
static struct registry_key *find(struct registry *registry, uint32_t database, struct bytes name) {
    return database < REGISTRY_DATABASES && is_name(name)
               ? registry_find_again(&registry->databases[database], name)
               : NULL;
}

/* Can a key of this name come to be? */
static bool is_free(struct registry *registry, uint32_t database, struct bytes name) {
    return database < REGISTRY_DATABASES && is_name(name) &&
           registry_find_name(&registry->databases[database], name) == NULL;
}

/* Do these rules cut keys as the board's own do? Only when a time begins may differ. */
static bool are_akin(const struct board *board, const struct rules *rules) {
    struct rules akin;
    rules_copy(rules_of(board_layout(board)), &akin);
    akin.layout.time.start_us = rules->layout.time.start_us;
    akin.layout.time.is_given_by_end = rules->layout.time.is_given_by_end;
    return layout_equal(&akin.layout, &rules->layout);
}

/* ---- members ---- */

static enum effect_status put_member(struct registry_key *key, const struct effect *effect,
                                     const struct board_member *member) {
    if (!is_packed_by(board_layout(&key->board), effect->member_key)) {
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

/* PUT and TAKE. key: NULL, there is none. ahead: as for board_look_up. */
static enum effect_status apply_member(struct registry_key *key, const struct effect *effect,
                                       const struct board_prefetch *ahead) {
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

/* ---- members, many at once ---- */

/* Neighbours that put or take members, whose waits for memory overlap: stage by stage for all of
 * them, as the server does with requests. */
struct group {
    uint32_t count;
    uint32_t key_count; /* neighbours often name the same key */
    uint32_t way_count;
    uint32_t key_numbers[GROUP];
    uint32_t way_members[GROUP];
    struct registry_key *keys[GROUP];
    struct registry_prefetch names[GROUP];
    struct board_prefetch ahead[GROUP];
    struct board_way ways[GROUP];
};

static bool is_of_member(const struct effect *effect) {
    return (effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE) &&
           effect->database < REGISTRY_DATABASES && is_name(effect->name) &&
           is_member(effect->member);
}

static void find_keys(struct registry *registry, const struct effect *effects,
                      struct group *group) {
    const struct registry_prefetch *last = NULL;
    group->key_count = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct effect *effect = &effects[i];
        if (last == NULL || effect->database != last->database ||
            !bytes_equal(effect->name, last->name)) {
            struct registry_prefetch *name = &group->names[group->key_count++];
            registry_prefetch_slots(registry, effect->database, effect->name, name);
            last = name;
        }
        group->key_numbers[i] = group->key_count - 1;
    }
    for (uint32_t i = 0; i < group->key_count; i++) {
        registry_prefetch_place(registry, &group->names[i]);
    }
    for (uint32_t i = 0; i < group->key_count; i++) {
        registry_prefetch_key(registry, &group->names[i]);
    }
    for (uint32_t i = 0; i < group->key_count; i++) {
        struct registry_prefetch *name = &group->names[i];
        bool is_there = registry_prefetch_end(registry, BEFORE_ALL, name) != NULL;
        group->keys[i] = is_there ? name->key : NULL;
        registry_prefetch_recall(registry, name);
    }
}

static void begin_members(const struct effect *effects, struct group *group) {
    group->way_count = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct board *board = &group->keys[group->key_numbers[i]]->board;
        board_prefetch_slots(board, effects[i].member, &group->ahead[i]);
        if (effects[i].kind == EFFECT_PUT) {
            group->way_members[group->way_count] = i;
            board_prefetch_way(board, effects[i].member_key, &group->ways[group->way_count++]);
        }
    }
}

static void fetch_members(const struct effect *effects, struct group *group) {
    begin_members(effects, group);
    for (uint32_t i = 0; i < group->count; i++) {
        board_prefetch_descriptor(&group->ahead[i]);
    }
    for (uint32_t i = 0; i < group->way_count; i++) {
        board_prefetch_way_index(&group->ways[i]);
    }
    for (uint32_t i = 0; i < group->count; i++) {
        board_prefetch_block(&group->ahead[i]);
    }
    for (uint32_t i = 0; i < group->way_count; i++) {
        board_prefetch_way_fences(&group->ways[i]);
    }
    for (uint32_t i = 0; i < group->way_count; i++) {
        board_prefetch_way_child(&group->ways[i]);
        group->ahead[group->way_members[i]].target = group->ways[i].block;
    }
    for (uint32_t i = 0; i < group->way_count; i++) {
        board_prefetch_way_line(&group->ways[i]);
    }
    for (uint32_t i = 0; i < group->count; i++) {
        board_prefetch_entry(&group->ahead[i], true);
    }
    for (uint32_t i = 0; i < group->way_count; i++) {
        board_prefetch_way_keys(&group->ways[i]);
    }
    for (uint32_t i = 0; i < group->way_count; i++) {
        board_prefetch_way_end(&group->ways[i]);
    }
}

/* Fetching ahead is of no use for one small board, which is in the cache after its first member.
 * What follows a key that is not there waits until that has been refused. */
static bool is_worth_fetching(struct group *group) {
    if (group->key_count == 1) {
        return group->keys[0] != NULL && board_count(&group->keys[0]->board) >= FETCH_BOARD_MIN;
    }
    for (uint32_t i = 0; i < group->key_count; i++) {
        if (group->keys[i] == NULL) {
            return false;
        }
    }
    return true;
}

/* Apply the first effects, which are all of members. */
static enum effect_status apply_group(struct registry *registry, const struct effect *effects,
                                      uint32_t count, uint32_t *applied) {
    struct group group;
    group.count = 0;
    while (group.count < count && group.count < GROUP && is_of_member(&effects[group.count])) {
        group.count++;
    }
    find_keys(registry, effects, &group);
    bool is_ahead = is_worth_fetching(&group);
    if (is_ahead) {
        fetch_members(effects, &group);
    }
    enum effect_status status = EFFECT_OK;
    uint32_t done = 0;
    while (done < group.count && status == EFFECT_OK) {
        status = apply_member(group.keys[group.key_numbers[done]], &effects[done],
                              is_ahead ? &group.ahead[done] : NULL);
        done += status == EFFECT_OK;
    }
    *applied = done;
    return status;
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
    if (effect->rules == NULL || !is_free(registry, effect->database, effect->name)) {
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

/* ---- keys that go elsewhere ---- */

/* A key for RENAME and COPY, whose board is not made yet, and the rules that it will have. NULL: no
 * memory, and nothing changed. */
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
        !is_free(registry, effect->to_database, effect->to_name)) {
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

/* ---- all of them ---- */

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
    case EFFECT_TAKE: /* of an impossible name or member */
    case EFFECT_FILL:
        break;
    }
    return EFFECT_IMPOSSIBLE;
}

enum effect_status effect_apply(struct registry *registry, const struct effect *effects,
                                uint32_t count, uint32_t *applied) {
    CHECK(registry->hear == NULL);
    enum effect_status status = EFFECT_OK;
    *applied = 0;
    while (*applied < count && status == EFFECT_OK) {
        const struct effect *next = &effects[*applied];
        uint32_t done;
        if (is_of_member(next)) {
            status = apply_group(registry, next, count - *applied, &done);
        } else {
            status = apply_one(registry, next);
            done = status == EFFECT_OK;
        }
        *applied += done;
    }
    return status;
}
