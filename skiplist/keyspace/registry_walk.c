/* All keys, while they change: random ones, scans in hash order, which does not change when keys move, passes, and the
 * walk. */
#include "skiplist/keyspace/registry_walk.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_private.h"

/* ---- random keys ---- */

enum {
    /* RANDOMKEY draws this many keys, then looks at this many consecutive ones before it gives up:
     * about 0.3 ms. */
    RANDOM_DRAWS_MAX = 64,
    RANDOM_WALK_MAX = 16384,
    /* How far ahead a walk along the list prefetches. */
    FETCH_KEY_AHEAD = 8,
    FETCH_PLACE_AHEAD = 16,
    FETCH_PASS_AHEAD = 16,
};

/* Uniform in 0 .. limit - 1: the upper half of a product (Lemire, "Fast random integer generation
 * in an interval", 2019; the bias is below 2^-32). */
static uint32_t registry_walk_scale_random(uint64_t random_bits, uint32_t limit) {
    return (uint32_t)(((random_bits >> 32) * limit) >> 32);
}

/* Prefetch what is_shown and a visit read of the keys ahead of this index. */
static void registry_walk_fetch_ahead(const struct database *database, uint32_t index) {
    if (index + FETCH_PLACE_AHEAD < database->count) {
        memory_prefetch_lines(registry_key_at(database, index + FETCH_PLACE_AHEAD), 64);
    }
    if (index + FETCH_KEY_AHEAD < database->count) {
        const struct registry_key *key = registry_key_at(database, index + FETCH_KEY_AHEAD);
        if (key->expiry_place != EXPIRY_NOWHERE) {
            expiry_prefetch(&database->heaps[key->is_lasting], key->expiry_place);
        }
    }
}

struct registry_key *registry_walk_random(struct registry *registry, uint32_t database,
                                          uint64_t random_bits, int64_t now_ms) {
    struct database *from = registry_database(registry, database);
    for (int draws = 0; draws < RANDOM_DRAWS_MAX && from->count > 0; draws++) {
        struct registry_key *key =
            registry_key_at(from, registry_walk_scale_random(random_bits, from->count));
        if (registry->is_still &&
            (registry_is_over(key, now_ms) || registry_has_expired(from, key, now_ms))) {
            break;
        }
        struct registry_key *due = registry_is_over(key, now_ms)
                                       ? key
                                       : registry_roll_find_due_base(registry, key, now_ms);
        if (due != NULL) {
            /* Whether or not there was memory for it, another key is drawn. */
            (void)!registry_roll_key(registry, due, now_ms);
        } else if (!registry_has_expired(from, key, now_ms)) {
            return key;
        } else {
            (void)!registry_expire(registry, key);
        }
        random_bits = XXH3_64bits_withSeed(&random_bits, sizeof(random_bits), from->hash_seed);
    }
    uint32_t left = from->count < RANDOM_WALK_MAX ? from->count : RANDOM_WALK_MAX;
    uint32_t index = left > 0 ? registry_walk_scale_random(random_bits, from->count) : 0;
    for (; left > 0; left--) {
        struct registry_key *key = registry_key_at(from, index);
        registry_walk_fetch_ahead(from, index);
        if (!registry_has_expired(from, key, now_ms) && !registry_is_hidden(key, now_ms)) {
            return key;
        }
        index = index + 1 < from->count ? index + 1 : 0;
    }
    return NULL;
}

/* ---- scanning ---- */

struct key_scan {
    const struct database *database;
    int64_t now_ms;
    registry_visit *visit;
    void *context;
};

static void registry_walk_fetch_place(const void *owner, uint32_t id) {
    const struct database *database = owner;
    if (id < database->count) {
        memory_prefetch(registry_list_at(&database->list, id));
    }
}

static void registry_walk_find_keys(const void *owner, const struct scan_candidate *candidates,
                                    uint32_t count, struct scan *scan) {
    const struct database *database = owner;
    const struct registry_key *keys[SCAN_CANDIDATES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = candidates[i].id;
        keys[i] = id < database->count ? registry_key_at(database, id) : NULL;
        if (keys[i] != NULL) {
            memory_prefetch_lines(keys[i], 2 * sizeof(*keys[i]));
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (keys[i] == NULL) {
            continue;
        }
        struct scan_item item = {
            .prefix = (uint32_t)(registry_key_hash(database, keys[i]) >> 32),
            .name_size = keys[i]->name_size,
            .at = keys[i],
        };
        if (item.prefix < candidates[i].from || item.prefix > candidates[i].last) {
            continue;
        }
        if (keys[i]->expiry_place != EXPIRY_NOWHERE) {
            expiry_prefetch(&database->heaps[keys[i]->is_lasting], keys[i]->expiry_place);
        }
        map_scan_add(scan, &item);
    }
}

static void registry_walk_visit_item(void *context, const struct scan_item *item) {
    const struct key_scan *scan = context;
    const struct registry_key *key = item->at;
    if (!registry_has_expired(scan->database, key, scan->now_ms)) {
        scan->visit(scan->context, key);
    }
}

uint64_t registry_walk_scan(const struct registry *registry, uint32_t database, uint64_t cursor,
                            const struct scan_limits *limits, int64_t now_ms, registry_visit *visit,
                            void *context) {
    struct key_scan own = {.database = registry_read(registry, database),
                           .now_ms = now_ms,
                           .visit = visit,
                           .context = context};
    struct scan scan;
    map_scan_init(&scan, limits, registry_walk_visit_item, &own);
    scan.owner = own.database;
    scan.fetch = registry_walk_fetch_place;
    scan.find = registry_walk_find_keys;
    return cursor < SCAN_END ? map_scan_names(&scan, &own.database->map, cursor) : 0;
}

/* ---- visiting all ---- */

void registry_walk_each(const struct registry *registry, uint32_t database, int64_t now_ms,
                        registry_visit *visit, void *context) {
    const struct database *from = registry_read(registry, database);
    for (uint32_t i = 0; i < from->count; i++) {
        const struct registry_key *key = registry_key_at(from, i);
        registry_walk_fetch_ahead(from, i);
        if (!registry_has_expired(from, key, now_ms)) {
            visit(context, key);
        }
    }
}

void registry_walk_each_name(const struct registry *registry, uint32_t database, int64_t now_ms,
                             registry_visit_name *visit, void *context) {
    const struct database *from = registry_read(registry, database);
    bool has_due = registry->roll_at_ms <= now_ms;
    for (uint32_t i = 0; i < from->count; i++) {
        const struct registry_key *key = registry_key_at(from, i);
        registry_walk_fetch_ahead(from, i);
        if (has_due) {
            registry_roll_visit_names(registry, key, now_ms, visit, context);
        } else if (!registry_has_expired(from, key, now_ms)) {
            visit(context, registry_name(key));
        }
    }
}

/* ---- passes ---- */

void registry_walk_pass_begin(struct registry *registry, struct registry_pass *pass,
                              uint32_t first_database, uint32_t end_database) {
    registry_walk_pass_end(registry, pass);
    *pass = (struct registry_pass){.next = registry->passes,
                                   .is_going = true,
                                   .first_database = first_database,
                                   .database = first_database,
                                   .end_database = end_database};
    registry->passes = pass;
    for (uint32_t i = first_database; i < end_database; i++) {
        pass->left[i] = registry_read(registry, i)->count;
    }
}

void registry_walk_pass_end(struct registry *registry, struct registry_pass *pass) {
    struct registry_pass **link = &registry->passes;
    if (!pass->is_going) {
        return;
    }
    while (*link != pass) {
        link = &(*link)->next;
    }
    *link = pass->next;
    pass->is_going = false;
    memset(pass->left, 0, sizeof pass->left);
}

bool registry_walk_pass_is_over(const struct registry_pass *pass) {
    for (uint32_t i = pass->database; i < pass->end_database; i++) {
        if (pass->left[i] > 0) {
            return false;
        }
    }
    return true;
}

struct registry_key *registry_walk_pass_next(const struct registry *registry,
                                             struct registry_pass *pass, int64_t now_ms) {
    while (pass->database < pass->end_database && pass->left[pass->database] == 0) {
        pass->database++;
    }
    if (pass->database >= pass->end_database) {
        return NULL;
    }
    const struct database *database = registry_read(registry, pass->database);
    uint32_t index = --pass->left[pass->database];
    if (index >= FETCH_PASS_AHEAD) {
        memory_prefetch_lines(registry_key_at(database, index - FETCH_PASS_AHEAD), 64);
    }
    struct registry_key *key = registry_key_at(database, index);
    return registry_has_expired(database, key, now_ms) ? NULL : key;
}

uint32_t registry_walk_pass_move_hole(struct registry *registry, uint32_t number, uint32_t hole,
                                      uint32_t limit) {
    bool is_up = hole < limit;
    for (;;) {
        /* The pass whose keys ahead end next, between the hole and the limit. */
        struct registry_pass *found = NULL;
        uint32_t above = is_up ? hole : limit, up_to = is_up ? limit : hole;
        for (struct registry_pass *pass = registry->passes; pass != NULL; pass = pass->next) {
            uint32_t left = pass->left[number];
            if (left > above && left <= up_to &&
                (found == NULL || (left < found->left[number]) == is_up)) {
                found = pass;
            }
        }
        if (found == NULL) {
            return hole;
        }
        uint32_t moved = is_up ? --found->left[number] : found->left[number]++;
        registry_move_key(registry_database(registry, number), moved, hole);
        hole = moved;
    }
}

void registry_walk_pass_note_flush(struct registry *registry, uint32_t number) {
    for (struct registry_pass *pass = registry->passes; pass != NULL; pass = pass->next) {
        pass->left[number] = 0;
    }
    if (registry->walk.open != NULL && registry->walk.open->database == number) {
        registry->walk.open = NULL;
    }
}

void registry_walk_pass_restart_all(struct registry *registry) {
    for (struct registry_pass *pass = registry->passes; pass != NULL; pass = pass->next) {
        pass->database = pass->first_database;
        for (uint32_t i = pass->first_database; i < pass->end_database; i++) {
            pass->left[i] = registry_read(registry, i)->count;
        }
    }
}

/* ---- the walk ---- */

/* A walk stores nothing in the keys, and may be abandoned at any time: what is ahead of it is what is ahead of its pass. */

void registry_walk_begin(struct registry *registry) {
    registry_walk_end(registry);
    registry_walk_pass_begin(registry, &registry->walk.pass, 0, REGISTRY_ALL_DATABASES);
    registry_observe(registry);
}

void registry_walk_end(struct registry *registry) {
    registry_walk_pass_end(registry, &registry->walk.pass);
    registry->walk = (struct registry_walk){.taken = NULL};
    registry_observe(registry);
}

enum registry_walk_state registry_walk_state(const struct registry *registry,
                                             const struct registry_key *key) {
    if (key == registry->walk.taken) {
        return registry->walk.taken_state;
    }
    if (key == registry->walk.open) {
        return REGISTRY_WALK_OPEN;
    }
    return key->index < registry->walk.pass.left[key->database] ? REGISTRY_WALK_AHEAD
                                                                : REGISTRY_WALK_DONE;
}

void registry_walk_note_taken(struct registry *registry, const struct registry_key *key) {
    enum registry_walk_state state = registry_walk_state(registry, key);
    registry->walk.taken = key;
    registry->walk.taken_state = state;
    registry->walk.open = state == REGISTRY_WALK_OPEN ? NULL : registry->walk.open;
}

void registry_walk_note_put(struct registry *registry, struct registry_key *key,
                            enum registry_walk_state state) {
    /* A removed key may have had the same address. */
    if (registry->walk.taken == key) {
        registry->walk.taken = NULL;
    }
    if (state == REGISTRY_WALK_OPEN) {
        registry->walk.open = key;
    }
}

bool registry_walk_trim(const struct registry *registry, const struct effect *effect,
                        struct registry_walk_change *change) {
    const struct registry_walk *walk = &registry->walk;
    *change = (struct registry_walk_change){.effect = *effect};
    if (effect->key == NULL) {
        return true;
    }
    enum registry_walk_state state = registry_walk_state(registry, effect->key);
    if (state != REGISTRY_WALK_OPEN || effect->key->kind != REGISTRY_BOARD) {
        return state != REGISTRY_WALK_AHEAD;
    }
    switch (effect->kind) {
    case EFFECT_PUT:
        change->effect.kind = walk->is_before ? EFFECT_PUT : EFFECT_TAKE;
        change->has_come = walk->is_before && !walk->was_before;
        return walk->is_before || walk->was_before;
    case EFFECT_TAKE:
    case EFFECT_TAGS:
        return walk->was_before;
    case EFFECT_CUT:
        if (effect->rank >= walk->cursor.rank) {
            return false;
        }
        if (effect->count > walk->cursor.rank - effect->rank) {
            change->effect.count = walk->cursor.rank - effect->rank;
        }
        return true;
    case EFFECT_CREATE:
    case EFFECT_REMOVE:
    case EFFECT_FLUSH:
    case EFFECT_RENAME:
    case EFFECT_COPY:
    case EFFECT_EXPIRE:
    case EFFECT_OPTIONS:
    case EFFECT_STATE:
    case EFFECT_FILL:
    case EFFECT_NOTE:
        break;
    }
    return true;
}

bool registry_walk_next(struct registry *registry, void *entries, uint32_t entries_max,
                        struct registry_walk_piece *piece) {
    struct registry_walk *walk = &registry->walk;
    CHECK(entries_max > 0);
    if (walk->open == NULL && walk->pass.is_going) {
        walk->pass.database = 0; /* a key that is ahead may have been moved to any database */
        walk->open = registry_walk_pass_next(registry, &walk->pass, INT64_MIN);
        walk->has_begun = false;
        walk->cursor = (struct key_cursor){.rank = 0};
    }
    if (walk->open == NULL) {
        return false;
    }
    *piece = (struct registry_walk_piece){
        .key = walk->open, .rank = walk->cursor.rank, .is_first = !walk->has_begun};
    piece->is_notes =
        piece->key->kind == REGISTRY_BOARD && registry_board_walks_notes(piece->key, &walk->cursor);
    piece->count = registry->kinds[piece->key->kind]->walk(piece->key, &walk->cursor, entries,
                                                           entries_max, &piece->is_last);
    walk->has_begun = true;
    if (piece->is_last) {
        walk->open = NULL;
    }
    return true;
}
