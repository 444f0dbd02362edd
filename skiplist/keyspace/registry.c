/* A database is a dense list of keys, and a map from a name's hash to an index in that list:
 *
 *     map: hash("daily") -> 2        list:  [0]        [1]        [2]
 *                                            |          |          |
 *                                           weekly    season     daily   -> board
 *
 * Invariant: key->index is the key's index in the list, and the map holds (hash of the name, index)
 * for every key and nothing else. A key with an expiry has an entry in its database's heap, and a
 * key with a PERIOD one in another heap (registry_roll.c). A board uses its options from its creation
 * until it is freed, because it reads its layout until then. The list has no holes (a removal moves
 * the last key into the hole), so a random key can be drawn, and the map can ask for the hash of
 * any index while it grows. */
#include "skiplist/keyspace/registry.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_private.h"

/* ---- one database ---- */

static uint64_t registry_name_hash(const struct database *database, struct bytes name) {
    return XXH3_64bits_withSeed(name.at, name.size, database->hash_seed);
}

uint64_t registry_key_hash(const struct database *database, const struct registry_key *key) {
    return registry_name_hash(database, registry_name(key));
}

/* Callback of the map: the hash of the key at one index. */
static uint32_t registry_database_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct database *database = owner;
    if (id >= database->count) {
        return 0;
    }
    hashes[0] = registry_key_hash(database, registry_key_at(database, id));
    return 1;
}

struct registry_key *registry_find_name(const struct database *database, struct bytes name) {
    struct map_find find;
    uint32_t id;
    map_find(&database->map, registry_name_hash(database, name), &find);
    while (map_find_next(&find, &id)) {
        if (id < database->count) {
            struct registry_key *key = registry_key_at(database, id);
            if (bytes_equal(registry_name(key), name)) {
                return key;
            }
        }
    }
    return NULL;
}

bool registry_database_reserve(struct database *database, bool is_periodic) {
    uint64_t count = database->count + (uint64_t)1;
    if (database->flushed == NULL) {
        database->flushed = memory_allocate_zeroed(sizeof(*database->flushed));
    }
    return database->flushed != NULL && count < MAP_ID_END &&
           (!is_periodic || registry_roll_reserve_end(database)) &&
           map_pages_reserve(&database->list, count * sizeof(struct registry_key *)) &&
           map_reserve(&database->map, 1, (uint32_t)count);
}

void registry_move_key(struct database *database, uint32_t from, uint32_t to) {
    if (from != to) {
        struct registry_key *key = registry_key_at(database, from);
        map_replace(&database->map, registry_key_hash(database, key), from, to);
        *registry_list_at(&database->list, to) = key;
        key->index = to;
    }
}

void registry_put(struct registry *registry, struct registry_key *key,
                  enum registry_walk_state state) {
    struct database *database = registry_database(registry, key->database);
    registry->used_databases |= UINT32_C(1) << key->database;
    key->index = database->count++;
    if (state == REGISTRY_WALK_AHEAD) {
        uint32_t *left = &registry->walk.pass.left[key->database];
        uint32_t hole = registry_walk_pass_move_hole(registry, key->database, key->index, *left);
        key->index = (*left)++;
        registry_move_key(database, key->index, hole);
    }
    key->expiry_place = EXPIRY_NOWHERE;
    *registry_list_at(&database->list, key->index) = key;
    if (key->kind == REGISTRY_BOARD) {
        database->board_count++;
        database->member_count += board_count(&key->board);
        registry_count_state(registry, key, 1);
    }
    map_put(&database->map, registry_key_hash(database, key), key->index);
    registry_walk_note_put(registry, key, state);
    if (key->is_periodic) {
        registry_roll_await(registry, key);
    }
}

void registry_take(struct registry *registry, struct registry_key *key) {
    struct database *database = registry_database(registry, key->database);
    registry_walk_note_taken(registry, key);
    registry_forget_recent(database);
    database->gone_count++;
    if (key->kind == REGISTRY_BOARD) {
        database->board_count--;
        database->member_count -= board_count(&key->board);
        registry_count_state(registry, key, -1);
    }
    if (key->expiry_place != EXPIRY_NOWHERE) {
        expiry_remove(&database->heaps[key->is_lasting], &key->expiry_place);
    }
    if (key->is_periodic) {
        struct registry_tail *tail = registry_tail(key);
        expiry_remove(&database->heaps[tail->roll_heap], &tail->roll_place);
    }
    map_remove(&database->map, registry_key_hash(database, key), key->index);
    uint32_t hole = registry_walk_pass_move_hole(registry, key->database, key->index, UINT32_MAX);
    registry_move_key(database, --database->count, hole);
}

void registry_replace(struct registry *registry, struct registry_key *key,
                      struct registry_key *successor) {
    struct database *database = registry_database(registry, key->database);
    int64_t expire_at_ms = registry_expiry(registry, key);
    successor->is_lasting = key->is_lasting;
    successor->is_unreported = key->is_unreported;
    registry->kinds[key->kind]->move(key, successor);
    if (expire_at_ms != REGISTRY_NO_EXPIRY) {
        expiry_remove(&database->heaps[key->is_lasting], &key->expiry_place);
        expiry_put(&database->heaps[successor->is_lasting], expire_at_ms, &successor->expiry_place);
    }
    if (key->is_periodic) {
        struct registry_tail *tail = registry_tail(key);
        expiry_remove(&database->heaps[tail->roll_heap], &tail->roll_place);
    }
    successor->index = key->index;
    *registry_list_at(&database->list, key->index) = successor;
    if (successor->is_periodic) {
        registry_roll_await(registry, successor);
    }
    registry_walk_note_put(registry, successor,
                           registry->walk.open == key ? REGISTRY_WALK_OPEN : REGISTRY_WALK_DONE);
    registry_remember_instead(database, key, successor);
    database->gone_count++;
    registry_free_shell(registry, key);
}

void registry_pass_by(struct registry *registry, struct registry_key *key) {
    struct database *database = registry_database(registry, key->database);
    if (registry->walk.open == key) {
        registry->walk.open = NULL;
    }
    uint32_t *left = &registry->walk.pass.left[key->database];
    if (key->index < *left) {
        uint32_t index = key->index;
        uint32_t hole = registry_walk_pass_move_hole(registry, key->database, index, *left - 1);
        registry_move_key(database, --*left, hole);
        if (*left != index) {
            map_replace(&database->map, registry_key_hash(database, key), index, *left);
            *registry_list_at(&database->list, *left) = key;
            key->index = *left;
        }
    }
}

void registry_trim(struct database *database) {
    (void)map_step(&database->map, database->count);
    map_pages_trim(&database->list, database->count * (uint64_t)sizeof(struct registry_key *));
    for (uint32_t i = 0; i < HEAPS; i++) {
        expiry_trim(&database->heaps[i]);
    }
}

/* Without keys; gone_count continues. */
static void registry_init_database(const struct registry *registry, struct database *database) {
    *database = (struct database){
        .heaps[HEAP_LASTING].offset_ms = registry->offset_ms,
        .gone_count = database->gone_count,
        .hash_seed = registry->hash_seed,
    };
    map_init(&database->map, registry_database_hashes, database);
}

/* ---- the registry, and creating keys ---- */

void registry_tell(const struct registry *registry, uint32_t database, struct bytes name) {
    if (registry->outside.key_changed != NULL) {
        registry->outside.key_changed(registry->outside.listener_context, database, name);
    }
}

struct registry *registry_create(uint64_t hash_seed, registry_options_for *options_for,
                                 void *context) {
    struct registry *registry = memory_allocate_zeroed(sizeof(*registry));
    if (registry == NULL) {
        return NULL;
    }
    registry->outside.options_for = options_for;
    registry->outside.context = context;
    registry->hash_seed = hash_seed;
    registry->roll_at_ms = INT64_MAX;
    registry->roll_failed_ms = INT64_MIN;
    registry->archiving.room = UINT64_MAX;
    registry->kinds[REGISTRY_BOARD] = &key_kind_board;
    registry->kinds[REGISTRY_HASH] = &key_kind_hash;
    board_options_set_init(&registry->options, hash_seed);
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
        registry_init_database(registry, &registry->databases[i]);
    }
    return registry;
}

static uint64_t registry_flush_database(struct registry *registry, uint32_t number) {
    struct database *database = registry_database(registry, number);
    uint32_t count = database->count;
    if (count == 0) {
        return 0;
    }
    registry_tell(registry, number, (struct bytes){.at = NULL});
    registry_walk_pass_note_flush(registry, number);
    database->gone_count++;
    registry_free_database_later(registry, database);
    registry_init_database(registry, database);
    effect_emit_flush(registry, number);
    return count;
}

struct registry *registry_create_beside(const struct registry *registry) {
    return registry_create(registry->hash_seed, registry->outside.options_for,
                           registry->outside.context);
}

void registry_clear(struct registry *registry) {
    registry_roll_archive_end(registry);
    registry->listeners = NULL;
    registry->outside.key_changed = NULL;
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
        (void)registry_flush_database(registry, i);
    }
}

void registry_destroy(struct registry *registry) {
    if (registry == NULL) {
        return;
    }
    registry_roll_archive_end(registry);
    /* The flush below is not reported: a record of effects keeps the boards. */
    registry->listeners = NULL;
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
        (void)registry_flush_database(registry, i);
    }
    while (registry_free_step(registry, UINT32_MAX)) {}
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
        struct database *database = &registry->databases[i];
        map_deinit(&database->map);
        map_pages_deinit(&database->list);
        for (uint32_t j = 0; j < HEAPS; j++) {
            map_pages_deinit(&database->heaps[j].entries);
        }
        memory_free(database->flushed);
    }
    board_options_set_deinit(&registry->options);
    memory_free(registry);
}

/* Whoever looks at one of its keys must look again. */
static void registry_tell_of_database(const struct registry *registry, uint32_t number) {
    if (registry->databases[number].count > 0) {
        registry_tell(registry, number, (struct bytes){.at = NULL});
    }
}

void registry_exchange(struct registry *registry, struct registry *other) {
    CHECK(!registry->walk.pass.is_going && !other->walk.pass.is_going);
    registry_roll_archive_end(registry);
    registry_roll_archive_end(other);
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
        registry_tell_of_database(registry, i);
        registry_tell_of_database(other, i);
    }
    registry_walk_pass_end(registry, &registry->telling);
    registry_walk_pass_end(other, &other->telling);
    struct registry both[] = {*registry, *other};
    *registry = both[1];
    *other = both[0];
    for (int i = 0; i < 2; i++) {
        struct registry *here = i == 0 ? registry : other;
        const struct registry *before = &both[i];
        here->outside = before->outside;
        here->passes = before->passes;
        registry_walk_pass_restart_all(here);
        here->listeners = before->listeners;
        here->is_passive = before->is_passive;
        here->is_held = before->is_held;
        here->is_still = before->is_still;
        here->archiving.room = before->archiving.room;
        here->totals.expired = before->totals.expired;
        here->totals.rolled = before->totals.rolled;
        here->totals.stale = before->totals.stale;
        here->totals.settled = before->totals.settled;
        here->totals.league_settled = before->totals.league_settled;
        here->options.map.owner = &here->options;
        board_chain_moved(&here->remains);
        registry_observe(here);
        registry_expiry_shift(here, before->offset_ms);
        here->offset_passed_ms = before->offset_passed_ms;
        here->is_offset_held = before->is_offset_held;
        for (uint32_t j = 0; j < REGISTRY_ALL_DATABASES; j++) {
            struct database *database = &here->databases[j];
            database->map.owner = database;
            database->gone_count += before->databases[j].gone_count + 1;
        }
    }
}

void registry_set_listener(struct registry *registry, registry_key_changed *key_changed,
                           void *context) {
    registry->outside = (struct registry_outside){
        .options_for = registry->outside.options_for,
        .context = registry->outside.context,
        .is_elsewhere = registry->outside.is_elsewhere,
        .key_changed = key_changed,
        .listener_context = context,
    };
}

void registry_set_elsewhere(struct registry *registry, registry_is_elsewhere *is_elsewhere) {
    registry->outside.is_elsewhere = is_elsewhere;
}

bool registry_has_shadows(const struct registry *registry) {
    return registry->options.shadow_count > 0;
}

bool registry_has_hidden(const struct registry *registry) {
    return (registry->options.shadow_count | registry->databases[REGISTRY_BANS].count) > 0;
}

bool registry_is_embedded(const struct registry *registry) {
    return registry->outside.is_elsewhere != NULL;
}

void registry_set_rolled_listener(struct registry *registry, registry_board_rolled *board_rolled) {
    registry->outside.board_rolled = board_rolled;
}

void registry_set_expired_listener(struct registry *registry, registry_key_changed *key_expired) {
    registry->outside.key_expired = key_expired;
}

void registry_set_passive(struct registry *registry, bool is_passive) {
    enum { STEP = 256 };
    while (is_passive && registry_expiry_tell_shifted(registry, STEP)) {}
    registry->is_passive = is_passive;
    registry->is_still = registry->is_passive || registry->is_held;
}

void registry_set_held(struct registry *registry, bool is_held) {
    registry->is_held = is_held;
    registry->is_still = registry->is_passive || registry->is_held;
}

void registry_tell_members(struct registry *registry, const struct registry_key *key) {
    registry_tell(registry, key->database, registry_name(key));
}

int64_t registry_expiry(const struct registry *registry, const struct registry_key *key) {
    return registry_expiry_in(registry_read(registry, key->database), key);
}

size_t registry_memory_size(const struct registry *registry, const struct registry_key *key) {
    return memory_size(registry_piece(key)) + registry->kinds[key->kind]->size(key);
}

const char *registry_kind_name(const struct registry *registry, const struct registry_key *key) {
    return registry->kinds[key->kind]->name;
}

void registry_move_value(struct registry *registry, struct registry_key *key,
                         struct registry_key *to) {
    const struct key_kind *kind = registry->kinds[key->kind];
    if (key->kind == REGISTRY_BOARD) {
        registry_count_members(registry, key, -(int64_t)board_count(&key->board));
    }
    if (kind->move != NULL) {
        kind->move(key, to);
    } else {
        memcpy(to->value, key->value, sizeof to->value);
    }
}

struct registry_key *registry_create_key(uint32_t database, struct registry_new_name name,
                                         uint32_t kind, unsigned tail) {
    size_t size = name.first.size + name.second.size;
    CHECK(size > 0);
    CHECK(size <= REGISTRY_NAME_MAX);
    size_t begin = 0;
    size_t end = offsetof(struct registry_key, name_at) + size;
    if (kind == REGISTRY_HASH) {
        size_t hash_size = tail / TAIL_SIZE;
        begin = offsetof(struct registry_key, index);
        end += hash_size > HASH_SIZE_MIN ? hash_size : (size_t)HASH_SIZE_MIN;
    } else if (tail != 0) {
        end = registry_tail_offset(size) +
              ((tail & TAIL_PERIOD) != 0 ? sizeof(struct registry_tail) : 0) +
              ((tail & TAIL_STATE) != 0 ? sizeof(struct board_state) : 0) +
              ((tail & TAIL_NOTES) != 0 ? sizeof(struct hash) : 0);
    }
    char *piece = memory_allocate_lasting(end - begin);
    if (piece == NULL) {
        return NULL;
    }
    struct registry_key *key = (void *)(piece - begin);
    memcpy(key->name_at, name.first.at, name.first.size);
    if (name.second.size > 0) {
        memcpy(key->name_at + name.first.size, name.second.at, name.second.size);
    }
    key->name_size = (uint32_t)size & 0x3ffff;
    key->has_state = (tail & TAIL_STATE) != 0;
    key->has_notes = (tail & TAIL_NOTES) != 0;
    key->kind = kind & 0xf;
    key->database = database & 0x1f;
    key->is_lasting = false;
    key->is_unreported = false;
    key->is_periodic = (tail & TAIL_PERIOD) != 0;
    key->expiry_place = EXPIRY_NOWHERE;
    if (kind == REGISTRY_HASH) {
        memset(registry_own_hash(key), 0, HASH_HEAD_SIZE);
    } else {
        memset(key->value, 0, sizeof key->value);
    }
    if (key->is_periodic) {
        *registry_tail(key) = (struct registry_tail){.key = key, .roll_place = EXPIRY_NOWHERE};
    }
    if (key->has_state) {
        *registry_state_room(key) = (struct board_state){.from_ms = 0};
    }
    if (key->has_notes) {
        *registry_own_notes(key) = (struct hash){.short_size = 0};
    }
    return key;
}

void registry_free_key(struct registry_key *key) {
    memory_free(key != NULL ? registry_piece(key) : NULL);
}

/* ---- state ---- */

const struct board_state *registry_state(const struct registry_key *key) {
    static const struct board_state none;
    const void *at = (const char *)key + registry_tail_offset(key->name_size) +
                     (key->is_periodic ? sizeof(struct registry_tail) : 0);
    return key->has_state ? at : &none;
}

void registry_count_state(struct registry *registry, const struct registry_key *key, int change) {
    struct database *database = registry_database(registry, key->database);
    uint64_t difference = (uint64_t)(int64_t)change;
    if (key->has_state) {
        const struct board_options *options = registry_options(key);
        const struct board_state *state = registry_state(key);
        database->unsettled_count += board_options_are_unsettled(options, state) ? difference : 0;
        database->behind_count +=
            difference * board_options_window_behind(options, state, BOARD_WINDOW_MAX);
    }
}

void registry_give_state(struct registry_key *key, const struct board_state *state) {
    if (key->has_state) {
        *registry_state_room(key) = state != NULL
                                        ? board_options_keep_state(registry_options(key), state)
                                        : (struct board_state){.from_ms = 0};
    }
}

void registry_set_state(struct registry *registry, struct registry_key *key,
                        const struct board_state *state) {
    CHECK(board_options_have_state(registry_options(key)));
    registry_count_state(registry, key, -1);
    *registry_state_room(key) = *state;
    registry_count_state(registry, key, 1);
    effect_emit_key(registry, EFFECT_STATE, key);
    registry_tell(registry, key->database, registry_name(key));
}

/* ---- removing ---- */

enum key_expiry registry_before_expiry(struct registry *registry, const struct registry_key *key,
                                       uint32_t parts_max, uint32_t *work) {
    const struct key_kind *kind = registry->kinds[key->kind];
    *work = 0;
    return kind->expire != NULL ? kind->expire(registry, key, parts_max, work) : KEY_EXPIRY_READY;
}

static void registry_note_taken(struct registry *registry, const struct registry_key *key) {
    const struct key_kind *kind = registry->kinds[key->kind];
    if (kind->taken != NULL) {
        kind->taken(registry, key);
    }
}

/* What a key's kind does when it has gone; NULL: none has. */
static void registry_note_removed(struct registry *registry, const struct registry_key *key) {
    if (key != NULL && registry->kinds[key->kind]->removed != NULL) {
        registry->kinds[key->kind]->removed(registry, key);
    }
}

bool registry_expire(struct registry *registry, struct registry_key *key) {
    uint32_t work;
    if (!registry_roll_archive_save(registry, &key)) {
        return false;
    }
    if (key == NULL) {
        return true;
    }
    if (registry_before_expiry(registry, key, UINT32_MAX, &work) != KEY_EXPIRY_READY) {
        return false;
    }
    registry->totals.expired++;
    if (registry->outside.key_expired != NULL) {
        registry->outside.key_expired(registry->outside.listener_context, key->database,
                                      registry_name(key));
    }
    registry_remove(registry, key);
    return true;
}

void registry_take_back(struct registry *registry, struct registry_key *key) {
    registry_take(registry, key);
    registry_trim(registry_database(registry, key->database));
    registry_free_later(registry, key);
}

void registry_remove(struct registry *registry, struct registry_key *key) {
    registry_take_back(registry, key);
    registry_note_taken(registry, key);
    effect_emit(registry, key, (struct effect){.kind = EFFECT_REMOVE});
    registry_tell(registry, key->database, registry_name(key));
    registry_note_removed(registry, key);
}

uint64_t registry_flush(struct registry *registry, uint32_t database) {
    if (database != REGISTRY_DATABASES) {
        return registry_flush_database(registry, database);
    }
    uint64_t count = 0;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        count += registry_flush_database(registry, i);
    }
    return count;
}

/* ---- finding and creating ---- */

/* Inlined into every caller: this is on the path of every request. */
__attribute__((always_inline)) static inline struct registry_key *
registry_find_rolled(struct registry *registry, uint32_t database, struct bytes name,
                     bool is_to_be_made, int64_t now_ms) {
    struct registry_key *key = registry_find_again(registry_database(registry, database), name);
    if (key == NULL) {
        return NULL;
    }
    if (registry_has_expired(registry_database(registry, database), key, now_ms)) {
        /* A board that slides takes a share along, which the caller may have found before. */
        bool has_share = key->kind == REGISTRY_BOARD && registry_slides(registry_options(key));
        if (!registry->is_still && (is_to_be_made || !has_share)) {
            (void)!registry_expire(registry, key);
        }
        return NULL;
    }
    return key;
}

struct registry_key *registry_find(struct registry *registry, uint32_t database, struct bytes name,
                                   int64_t now_ms) {
    return registry_roll_name(registry, database, name, now_ms)
               ? registry_find_rolled(registry, database, name, false, now_ms)
               : NULL;
}

const struct registry_key *registry_peek(const struct registry *registry, uint32_t database,
                                         struct bytes name, int64_t now_ms) {
    const struct database *in = registry_read(registry, database);
    const struct registry_key *key = registry_find_name(in, name);
    return registry_is_current(in, key, now_ms) ? key : NULL;
}

uint64_t registry_next_seed(struct registry *registry) {
    uint64_t number = registry->board_count++;
    return XXH3_64bits_withSeed(&number, sizeof(number), registry->hash_seed);
}

void registry_init_board(struct registry *registry, const struct board_options *options,
                         struct board *board) {
    board_init(board, &options->layout, registry_next_seed(registry));
    bool is_set = board_set_dense(board, options->is_dense);
    CHECK(is_set); /* there is nothing to count */
}

bool registry_create_board_like(struct registry *registry, const struct board_options *like,
                                struct board *board) {
    const struct board_options *options = board_options_hold(&registry->options, like);
    if (options == NULL) {
        return false;
    }
    registry_init_board(registry, options, board);
    return true;
}

/* The options `like`, moved to the current period if they have one; room is storage for a copy. */
static const struct board_options *registry_options_from_now(const struct board_options *like,
                                                             int64_t now_ms,
                                                             struct board_options *room) {
    if (like->period.unit == PERIOD_NONE) {
        return like;
    }
    board_options_copy(like, room);
    board_options_begin_period(room, now_ms);
    return room;
}

bool registry_create_board(struct registry *registry, struct bytes name, int64_t now_ms,
                           struct board *board) {
    struct board_options room;
    struct board_options plain;
    const struct board_options *like =
        registry->outside.options_for(registry->outside.context, name, 0);
    if (registry_slides(like)) {
        board_options_without_window(like, &plain);
        like = &plain;
    }
    return registry_create_board_like(registry, registry_options_from_now(like, now_ms, &room),
                                      board);
}

void registry_set_options(struct registry *registry, struct registry_key *key,
                          const struct board_options *options) {
    const struct board_options *before = registry_options(key);
    CHECK(board_is_dense(&key->board) == options->is_dense);
    board_set_layout(&key->board, &options->layout);
    board_options_release(&registry->options, before);
}

enum { DISCARDED_AT_ONCE_MAX = 1024 }; /* members */

void registry_discard_board(struct registry *registry, struct board *board) {
    struct registry_new_name name = {.first = BYTES("discarded")};
    struct registry_key *key = board_count(board) > DISCARDED_AT_ONCE_MAX
                                   ? registry_create_key(0, name, REGISTRY_BOARD, 0)
                                   : NULL;
    if (key != NULL) {
        board_move_to(board, &key->board);
        registry_free_later(registry, key);
        return;
    }
    board_deinit(board);
    board_options_release(&registry->options, board_options_of(board_layout(board)));
}

struct registry_key *registry_make_key(struct registry *registry, uint32_t database,
                                       struct bytes name, uint32_t kind,
                                       const struct board_options *options,
                                       const struct board_state *state) {
    struct registry_key *key =
        registry_reserve_key(registry, database, (struct registry_new_name){.first = name}, kind,
                             false, registry_tail_for(options));
    if (key != NULL && options != NULL &&
        !registry_create_board_like(registry, options, &key->board)) {
        memory_free(key);
        return NULL;
    }
    if (key != NULL) {
        registry_give_state(key, state);
        registry_put(registry, key, REGISTRY_WALK_DONE);
    }
    return key;
}

/* like: the options of a new board; NULL: those of options_for. state NULL: its first. is_in_period: they are those of a board
 * that is in its period, and the new one is not made by LB.CREATE. */
static struct registry_key *registry_find_or_make(struct registry *registry, uint32_t database,
                                                  struct bytes name, uint32_t kind,
                                                  const struct board_options *like,
                                                  const struct board_state *state,
                                                  bool is_in_period, int64_t now_ms, bool *is_new) {
    *is_new = false;
    if (!registry_roll_name(registry, database, name, now_ms)) {
        return NULL;
    }
    struct registry_key *key = registry_find_rolled(registry, database, name, true, now_ms);
    if (key != NULL) {
        return key;
    }
    bool may_be_stuck = registry->options.league_count > 0 ||
                        registry_read(registry, database)->heaps[HEAP_COPIES].count > 0;
    if (may_be_stuck && registry_find_name(registry_read(registry, database), name) != NULL) {
        return NULL; /* it has expired, and there is no memory for what that means */
    }
    struct board_options room;
    if (is_in_period && like != NULL) {
        board_options_copy(like, &room);
        room.is_created = false;
        like = &room;
    } else if (kind == REGISTRY_BOARD) {
        like =
            like != NULL ? like : registry->outside.options_for(registry->outside.context, name, 0);
        like = registry_options_from_now(like, now_ms, &room);
    }
    struct board_state first = {.from_ms = 0};
    if (state == NULL && like != NULL) {
        first = board_options_begin_state(like);
    }
    key = registry_make_key(registry, database, name, kind, like, state != NULL ? state : &first);
    *is_new = key != NULL;
    if (*is_new) {
        key->is_unreported = registry->listeners != NULL;
    }
    return key;
}

struct registry_key *registry_find_or_create(struct registry *registry, uint32_t database,
                                             struct bytes name, int64_t now_ms, bool *is_new) {
    return registry_find_or_make(registry, database, name, REGISTRY_BOARD, NULL, NULL, false,
                                 now_ms, is_new);
}

struct registry_key *registry_find_or_create_in(struct registry *registry, uint32_t database,
                                                struct bytes name,
                                                const struct board_options *options, int64_t now_ms,
                                                bool *is_new) {
    return registry_find_or_make(registry, database, name, REGISTRY_BOARD, options, NULL, true,
                                 now_ms, is_new);
}

struct registry_key *registry_find_or_create_kind(struct registry *registry, uint32_t database,
                                                  struct bytes name, const struct key_kind *kind,
                                                  int64_t now_ms, bool *is_new) {
    CHECK(registry->kinds[kind->number] == kind && kind->number != REGISTRY_BOARD);
    return registry_find_or_make(registry, database, name, kind->number, NULL, NULL, false, now_ms,
                                 is_new);
}

struct registry_key *registry_find_or_create_like(struct registry *registry, uint32_t database,
                                                  struct bytes name,
                                                  const struct board_options *options,
                                                  const struct board_state *state, int64_t now_ms,
                                                  bool *is_new) {
    struct registry_key *key = registry_find_or_make(registry, database, name, REGISTRY_BOARD,
                                                     options, state, false, now_ms, is_new);
    if (*is_new) {
        key->is_unreported = false;
        effect_emit_key(registry, EFFECT_CREATE, key);
        registry_tell(registry, database, name);
    }
    return key;
}

/* Another layout says no more of a value that is none, and of one with too many decimals the layout says most
 * that keeps most. */
const struct board_options *registry_options_taking(const struct registry *registry,
                                                    struct bytes name, registry_judge *judge,
                                                    const void *scores) {
    const struct board_options *found = NULL;
    for (uint32_t choice = 0;; choice++) {
        const struct board_options *options =
            registry->outside.options_for(registry->outside.context, name, choice);
        if (options == NULL) {
            return found;
        }
        enum decimal_status status = judge(scores, &options->layout);
        if (status == DECIMAL_OK) {
            return options;
        }
        if (status == DECIMAL_NOT_A_NUMBER) {
            return found != NULL ? found : options;
        }
        bool keeps_fewer = found != NULL && status == DECIMAL_TOO_PRECISE &&
                           options->layout.fields[0].scale < found->layout.fields[0].scale;
        found = keeps_fewer ? found : options;
    }
}

bool registry_choose(struct registry *registry, struct registry_key *key,
                     const struct board_options *options) {
    CHECK(key->is_unreported || registry->listeners == NULL);
    CHECK(board_count(&key->board) == 0 && options->period.unit == PERIOD_NONE &&
          registry_options(key)->period.unit == PERIOD_NONE);
    const struct board_options *before = registry_options(key);
    struct board board;
    if (!registry_create_board_like(registry, options, &board)) {
        return false;
    }
    board_deinit(&key->board);
    board_move_to(&board, &key->board);
    board_options_release(&registry->options, before);
    return true;
}

/* ---- counts ---- */

const struct registry_totals *registry_totals(const struct registry *registry) {
    return &registry->totals;
}

uint32_t registry_count(const struct registry *registry, uint32_t database) {
    return registry_read(registry, database)->count;
}

struct registry_counts registry_count_all(const struct registry *registry) {
    struct registry_counts all = {.keys = 0};
    for (uint32_t database = 0; database < REGISTRY_DATABASES; database++) {
        all.keys += registry_count(registry, database);
        all.boards += registry_board_count(registry, database);
        all.members += registry_member_count(registry, database);
    }
    return all;
}

uint32_t registry_board_count(const struct registry *registry, uint32_t database) {
    return registry_read(registry, database)->board_count;
}

uint64_t registry_league_count(const struct registry *registry) {
    return registry->options.league_count;
}

uint64_t registry_behind_count(const struct registry *registry) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        count += registry->databases[i].behind_count;
    }
    return count;
}

uint64_t registry_unsettled_count(const struct registry *registry) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        count += registry->databases[i].unsettled_count;
    }
    return count;
}

uint64_t registry_member_count(const struct registry *registry, uint32_t database) {
    return registry_read(registry, database)->member_count;
}

/* ---- putting values that were made beside it ---- */

/* Values that were made beside the database take their name in it, in two steps: reserve, which may fail, and
 * put, which may not. */

struct registry_key *registry_reserve_key(struct registry *registry, uint32_t number,
                                          struct registry_new_name name, uint32_t kind,
                                          bool expires, unsigned tail) {
    struct database *database = registry_database(registry, number);
    if ((expires && (!expiry_reserve(&database->heaps[HEAP_EXPIRY]) ||
                     !expiry_reserve(&database->heaps[HEAP_LASTING]))) ||
        !registry_database_reserve(database, (tail & TAIL_PERIOD) != 0)) {
        return NULL;
    }
    return registry_create_key(number, name, kind, tail);
}

/* As registry_put_reserved, but what goes with a board that slides is still there: registry_note_removed follows with
 * the key that was replaced, which is returned, or NULL. */
static struct registry_key *registry_put_over(struct registry *registry, struct registry_key *key,
                                              enum registry_walk_state state, int64_t expire_at_ms,
                                              int64_t now_ms) {
    struct database *database = registry_database(registry, key->database);
    struct registry_key *old = registry_find_name(database, registry_name(key));
    if (old != NULL) { /* what was reserved stays */
        registry->totals.expired += registry_has_expired(database, old, now_ms);
        registry_take(registry, old);
        registry_free_later(registry, old);
        registry_note_taken(registry, old);
        effect_emit(registry, old, (struct effect){.kind = EFFECT_REMOVE});
    }
    registry_put(registry, key, state);
    if (expire_at_ms != REGISTRY_NO_EXPIRY) {
        expiry_put(&database->heaps[key->is_lasting], expire_at_ms, &key->expiry_place);
    }
    registry_trim(database);
    registry_tell(registry, key->database, registry_name(key));
    return old;
}

void registry_put_reserved(struct registry *registry, struct registry_key *key,
                           enum registry_walk_state state, int64_t expire_at_ms, int64_t now_ms) {
    registry_note_removed(registry, registry_put_over(registry, key, state, expire_at_ms, now_ms));
}

/* Put a board, and its notes if there are any; or, board NULL, a hash. */
static enum registry_status registry_put_owned(struct registry *registry, uint32_t database,
                                               struct bytes name, struct board *board,
                                               const struct board_state *state, struct hash *hash,
                                               int64_t expire_at_ms, bool is_lasting,
                                               int64_t now_ms) {
    if (!registry_roll_name(registry, database, name, now_ms)) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    struct registry_key *key = registry_reserve_key(
        registry, database, (struct registry_new_name){.first = name},
        board != NULL ? REGISTRY_BOARD : REGISTRY_HASH, expire_at_ms != REGISTRY_NO_EXPIRY,
        board != NULL ? registry_tail_for(board_options_of(board_layout(board)))
                      : registry_tail_of_hash(hash));
    if (key == NULL) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    key->is_lasting = is_lasting;
    if (board == NULL) {
        hash_move(hash, registry_own_hash(key), registry_hash_room(key));
    } else {
        board_move_to(board, &key->board);
        registry_give_state(key, state);
    }
    if (board != NULL && hash != NULL && key->has_notes) {
        hash_move(hash, registry_own_notes(key), sizeof *hash);
    }
    registry_put_reserved(registry, key, REGISTRY_WALK_DONE, expire_at_ms, now_ms);
    effect_emit_key(registry, EFFECT_FILL, key);
    return REGISTRY_OK;
}

enum registry_status registry_put_board(struct registry *registry, uint32_t database,
                                        struct bytes name, struct board *board, int64_t now_ms) {
    return registry_put_board_until(registry, database, name, board, NULL, NULL, REGISTRY_NO_EXPIRY,
                                    false, now_ms);
}

enum registry_status registry_put_board_until(struct registry *registry, uint32_t database,
                                              struct bytes name, struct board *board,
                                              const struct board_state *state, struct hash *notes,
                                              int64_t expire_at_ms, bool is_lasting,
                                              int64_t now_ms) {
    const struct board_options *options = board_options_of(board_layout(board));
    CHECK(options->cap == 0 || board_count(board) <= options->cap);
    return registry_put_owned(registry, database, name, board, state, notes, expire_at_ms,
                              is_lasting, now_ms);
}

enum registry_status registry_put_hash(struct registry *registry, uint32_t database,
                                       struct bytes name, struct hash *hash, int64_t expire_at_ms,
                                       bool is_lasting, int64_t now_ms) {
    return registry_put_owned(registry, database, name, NULL, NULL, hash, expire_at_ms, is_lasting,
                              now_ms);
}

bool registry_may_put(const struct registry *registry, uint32_t database, struct bytes name,
                      const struct board_options *options) {
    size_t size_max = options != NULL && options->period.unit != PERIOD_NONE ? REGISTRY_KEY_MAX
                                                                             : REGISTRY_NAME_MAX;
    bool has_kind =
        options != NULL ? registry_holds_boards(database) : registry_holds_hashes(database);
    return has_kind && name.size >= 1 && name.size <= size_max &&
           registry_find_name(registry_read(registry, database), name) == NULL;
}

enum registry_status registry_put_loaded(struct registry *registry, uint32_t database,
                                         struct bytes name, struct board *board,
                                         const struct board_state *state, struct hash *notes,
                                         int64_t expire_at_ms) {
    return registry_put_owned(registry, database, name, board, state, notes, expire_at_ms, false,
                              INT64_MIN);
}

enum board_status registry_append_loaded(struct registry *registry, struct registry_key *key,
                                         const struct board_entry *entries, uint32_t count) {
    enum board_status status = board_append_indexed(&key->board, entries, count);
    registry_count_members(registry, key, status == BOARD_OK ? count : 0);
    return status;
}

/* ---- finding in stages ---- */

/* Finding keys in stages, each of which ends with a fetch that the next one needs. */

void registry_prefetch_slots(const struct registry *registry, uint32_t database, struct bytes name,
                             struct registry_prefetch *state) {
    const struct database *in = registry_read(registry, database);
    *state = (struct registry_prefetch){
        .name = name, .database = database, .index = UINT32_MAX, .gone_count = in->gone_count};
    state->key = registry_recall(in, name);
    state->is_recent = state->key != NULL;
    if (state->is_recent) {
        return;
    }
    state->hash = registry_name_hash(in, name);
    map_prefetch(&in->map, state->hash);
}

void registry_prefetch_place(const struct registry *registry, struct registry_prefetch *state) {
    const struct database *in = registry_read(registry, state->database);
    struct map_find find;
    uint32_t index;
    if (state->is_recent) {
        return;
    }
    map_find(&in->map, state->hash, &find);
    if (map_find_next(&find, &index) && index < in->count) {
        state->index = index;
        memory_prefetch(registry_list_at(&in->list, index));
    }
}

void registry_prefetch_key(const struct registry *registry, struct registry_prefetch *state) {
    const struct database *in = registry_read(registry, state->database);
    if (!state->is_recent && state->index != UINT32_MAX) {
        state->key = registry_key_at(in, state->index);
        memory_prefetch_lines(state->key, sizeof(*state->key) + state->name.size);
    }
}

const struct registry_key *registry_prefetch_end(const struct registry *registry, int64_t now_ms,
                                                 struct registry_prefetch *state) {
    const struct database *in = registry_read(registry, state->database);
    if (!state->is_recent && state->key != NULL &&
        !bytes_equal(registry_name(state->key), state->name)) {
        /* Another name with the same tag: rare enough to do a blocking look-up. */
        state->key = registry_find_name(in, state->name);
    }
    return registry_is_current(in, state->key, now_ms) ? state->key : NULL;
}

void registry_prefetch_recall(struct registry *registry, const struct registry_prefetch *state) {
    struct database *in = registry_database(registry, state->database);
    if (state->key != NULL && state->gone_count == in->gone_count) {
        registry_remember(in, state->key);
    }
}

/* ---- renaming and copying ---- */

/* Everything that may fail is reserved first. */

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
    if (!registry_roll_name(registry, to_database, to_name, now_ms)) {
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

/* The tail of a key that gets the value of another one with these options, or with its own (NULL). */
static unsigned registry_rename_tail(const struct registry_key *key,
                                     const struct board_options *held) {
    return key->kind == REGISTRY_HASH
               ? registry_tail_of_hash(registry_hash(key))
               : registry_tail_for(held != NULL ? held : registry_options(key));
}

enum registry_status registry_rename_to(struct registry *registry, struct registry_key *key,
                                        uint32_t to_database, struct bytes to_name,
                                        const struct board_options *held, enum effect_kind kind,
                                        int64_t now_ms) {
    struct registry_key *successor = registry_rename_reserve_successor(
        registry, key, to_database, to_name, registry_rename_tail(key, held), now_ms);
    if (successor == NULL) {
        board_options_release(&registry->options, held);
        return REGISTRY_OUT_OF_MEMORY;
    }
    int64_t expire_at_ms = registry_expiry(registry, key);
    enum registry_walk_state state = registry_walk_state(registry, key);
    registry_move_value(registry, key, successor);
    if (held != NULL) {
        registry_set_options(registry, successor, held);
    }
    registry_give_state(successor, registry_state(key));
    registry_take(registry, key);
    if (kind == EFFECT_FILL) {
        effect_emit(registry, key, (struct effect){.kind = EFFECT_REMOVE});
        state = REGISTRY_WALK_DONE;
    }
    registry_tell(registry, key->database, registry_name(key));
    registry_put_reserved(registry, successor, state, expire_at_ms, now_ms);
    if (kind == EFFECT_FILL) {
        effect_emit_key(registry, EFFECT_FILL, successor);
    } else {
        effect_emit_move(registry, EFFECT_RENAME, key, successor);
    }
    registry_trim(registry_database(registry, key->database));
    registry_free_shell(registry, key);
    return REGISTRY_OK;
}

enum registry_status registry_rename(struct registry *registry, struct registry_key *key,
                                     uint32_t to_database, struct bytes to_name, int64_t now_ms) {
    if (registry_rename_is_named(key, to_database, to_name)) {
        return REGISTRY_OK;
    }
    const struct board_options *held = NULL;
    if (key->kind == REGISTRY_BOARD && registry_options(key)->window.is_share) {
        /* A share is none under another name. */
        struct board_options options;
        board_options_without_window(registry_options(key), &options);
        held = board_options_hold(&registry->options, &options);
        if (held == NULL) {
            return REGISTRY_OUT_OF_MEMORY;
        }
    }
    return registry_rename_to(registry, key, to_database, to_name, held, EFFECT_RENAME, now_ms);
}

/* What is to be settled is there once, and so is what slides, and its shares. */
bool registry_hold_copied(struct registry *registry, const struct registry_key *key,
                          const struct board_options **held) {
    struct board_options options;
    *held = NULL;
    if (key->kind != REGISTRY_BOARD) {
        return true;
    }
    const struct board_options *own = registry_options(key);
    if (!board_options_have_state(own)) {
        return true;
    }
    board_options_without_window(own, &options);
    options.is_archive = false;
    *held = board_options_hold(&registry->options, &options);
    return *held != NULL;
}

enum registry_status registry_copy_value(struct registry *registry, const struct registry_key *key,
                                         struct registry_key **copy, uint32_t to_database,
                                         struct bytes to_name, int64_t now_ms) {
    if (registry_rename_is_named(key, to_database, to_name)) {
        return REGISTRY_OK;
    }
    const struct board_options *held;
    if (!registry_hold_copied(registry, key, &held)) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    /* A hash that was large when its copy began may be so still, and the copy not. */
    const struct registry_key *moved = *copy != NULL && key->kind == REGISTRY_HASH ? *copy : key;
    struct registry_key *successor = registry_rename_reserve_successor(
        registry, key, to_database, to_name, registry_rename_tail(moved, held), now_ms);
    const struct key_kind *kind = registry->kinds[key->kind];
    if (successor == NULL || (*copy == NULL && !kind->copy(registry, key, successor))) {
        registry_free_key(successor);
        board_options_release(&registry->options, held);
        return REGISTRY_OUT_OF_MEMORY;
    }
    if (*copy != NULL) { /* made before */
        if (kind->move != NULL) {
            kind->move(*copy, successor);
        } else {
            memcpy(successor->value, (*copy)->value, sizeof successor->value);
        }
        registry_free_key(*copy);
    }
    if (held != NULL) {
        registry_set_options(registry, successor, held);
    }
    *copy = NULL;
    bool is_done = registry_walk_state(registry, key) == REGISTRY_WALK_DONE;
    /* What is copied may be the share of the board that is replaced, and go with it. */
    const struct registry_key *old =
        registry_put_over(registry, successor, is_done ? REGISTRY_WALK_DONE : REGISTRY_WALK_AHEAD,
                          registry_expiry(registry, key), now_ms);
    effect_emit_move(registry, EFFECT_COPY, key, successor);
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
