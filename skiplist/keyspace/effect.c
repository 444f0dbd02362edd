/* Applying effects: each is checked against the current state, then carried out as the registry
 * does it.
 *
 * Invariant: an effect that cannot be applied has changed nothing. */
#include "skiplist/keyspace/effect.h"

#include "codec/memory.h"
#include "skiplist/keyspace/registry_private.h"
#include "skiplist/lookup.h"

/* ---- reporting ---- */

static inline void effect_report(const struct registry *registry, const struct effect *effect) {
    for (const struct effect_listener *listener = registry->listeners; listener != NULL;
         listener = listener->next) {
        if ((listener->skips >> effect->kind & 1) == 0) {
            listener->receive(listener->context, effect);
        }
    }
}

/* Complete an effect on this key, and report it. */
static inline __attribute__((always_inline)) void effect_report_of(const struct registry *registry,
                                                                   const struct registry_key *key,
                                                                   struct effect *effect) {
    effect->key_kind = registry->kinds[key->kind];
    effect->database = key->database;
    effect->name = registry_name(key);
    effect->key = key;
    effect_report(registry, effect);
}

/* The same with its options and its state. */
static void effect_report_whole(const struct registry *registry, const struct registry_key *key,
                                struct effect effect) {
    effect.options = key->kind == REGISTRY_BOARD ? registry_options(key) : NULL;
    effect.state = registry_state(key);
    effect_report_of(registry, key, &effect);
}

/* Report the creation of a key created by a write. */
__attribute__((noinline)) static void effect_report_new(const struct registry *registry,
                                                        struct registry_key *key) {
    key->is_unreported = false;
    effect_report_whole(registry, key, (struct effect){.kind = EFFECT_CREATE});
}

void effect_emit_to_listeners(const struct registry *registry, struct registry_key *key,
                              struct effect *effect) {
    if (key->is_unreported) {
        effect_report_new(registry, key);
    }
    effect_report_of(registry, key, effect);
}

void effect_emit_key(const struct registry *registry, enum effect_kind kind,
                     struct registry_key *key) {
    if (registry->listeners == NULL) {
        return;
    }
    if (key->is_unreported) {
        effect_report_new(registry, key);
    }
    effect_report_whole(
        registry, key,
        (struct effect){.kind = kind, .expire_at_ms = registry_expiry(registry, key)});
}

void effect_emit_move(const struct registry *registry, enum effect_kind kind,
                      const struct registry_key *from, const struct registry_key *key) {
    const struct database *database = registry_read(registry, key->database);
    effect_report(
        registry,
        &(struct effect){.kind = kind,
                         .key_kind = registry->kinds[key->kind],
                         .database = from->database,
                         .name = registry_name(from),
                         .to_database = key->database,
                         .to_name = registry_name(key),
                         .options = key->kind == REGISTRY_BOARD ? registry_options(key) : NULL,
                         .state = registry_state(key),
                         .expire_at_ms = registry_expiry_in(database, key),
                         .key = key});
}

void effect_emit_flush(const struct registry *registry, uint32_t database) {
    effect_report(registry, &(struct effect){.kind = EFFECT_FLUSH, .database = database});
}

void effect_emit_member(const struct registry *registry, enum effect_kind kind,
                        struct registry_key *key, struct bytes member, struct bytes value) {
    CHECK(key->kind != REGISTRY_BOARD);
    effect_emit(registry, key, (struct effect){.kind = kind, .member = member, .value = value});
}

/* ---- receiving ---- */

/* The pointer to this listener in the list, or the one at the list's end. */
static struct effect_listener **effect_listener_find(struct registry *registry,
                                                     const struct effect_listener *listener) {
    struct effect_listener **link = &registry->listeners;
    while (*link != NULL && *link != listener) {
        link = &(*link)->next;
    }
    return link;
}

void effect_listener_add(struct registry *registry, struct effect_listener *listener) {
    struct effect_listener **link = effect_listener_find(registry, listener);
    if (*link == NULL) {
        *link = listener;
        listener->next = NULL;
    }
    registry_observe(registry);
}

void effect_listener_remove(struct registry *registry, struct effect_listener *listener) {
    struct effect_listener **link = effect_listener_find(registry, listener);
    if (*link != NULL) {
        *link = listener->next;
    }
    registry_observe(registry);
}

/* ---- FILL: a key with all its members ---- */

bool effect_fill_next(struct effect_fill *fill, struct effect *effect) {
    *effect = fill->whole;
    if (fill->next == EFFECT_FILL_CREATE) {
        effect->kind = EFFECT_CREATE;
        fill->next = EFFECT_FILL_EXPIRE;
        return true;
    }
    if (fill->next == EFFECT_FILL_EXPIRE) {
        effect->kind = EFFECT_EXPIRE;
        fill->next = EFFECT_FILL_MEMBERS;
        if (effect->expire_at_ms != REGISTRY_NO_EXPIRY) {
            return true;
        }
    }
    effect->kind = EFFECT_PUT;
    return effect->key_kind->fill(fill, effect);
}

/* ---- applying ---- */

enum {
    IN_FLIGHT = 16, /* effects; more than STAGES, a power of two */
/* From so many effects on one key on, they are applied by themselves: what that saves is more than
     * what it costs to have nothing in flight before and behind them. */
#ifdef SKIPLIST_TINY
    RUN_MIN = 3,
#else
    RUN_MIN = 32,
#endif
};

/* A time at which nothing has expired and no period is over. */
#define BEFORE_ALL INT64_MIN

/* ---- validity ---- */

static bool effect_is_name(struct bytes name) {
    return name.size >= 1 && name.size <= REGISTRY_NAME_MAX;
}

static bool effect_is_member(struct bytes member) {
    return member.size >= 1 && member.size <= BOARD_MEMBER_MAX;
}

static uint32_t effect_kind_of(const struct effect *effect) {
    return effect->key_kind != NULL ? effect->key_kind->number : REGISTRY_BOARD;
}

/* The key an effect refers to, or NULL. */
static struct registry_key *effect_find(struct registry *registry, const struct effect *effect) {
    return effect->database < REGISTRY_ALL_DATABASES && effect_is_name(effect->name)
               ? registry_find_again(&registry->databases[effect->database], effect->name)
               : NULL;
}

/* May a key of this kind be put under this name? Rules are given for boards, and only for them. */
static bool effect_may_put(const struct registry *registry, uint32_t database, struct bytes name,
                           uint32_t kind, const struct board_options *options) {
    return registry->kinds[kind] != NULL && (options != NULL) == (kind == REGISTRY_BOARD) &&
           registry_may_put(registry, database, name, options);
}

/* ---- members ---- */

/* PUT, TAKE and TAGS. key: NULL if there is none. ahead: as for board_look_up. */
static enum effect_status effect_apply_member(struct registry *registry, struct registry_key *key,
                                              const struct effect *effect,
                                              const struct lookup *ahead) {
    struct board_member member;
    if (key == NULL) {
        return EFFECT_IMPOSSIBLE;
    }
    board_look_up(&key->board, effect->member, ahead, &member);
    if (effect->kind == EFFECT_PUT) {
        enum board_status status =
            layout_has_room(board_layout(&key->board), effect->member_key)
                ? registry_board_put(registry, key, &member, effect->member_key)
                : BOARD_FULL;
        return status == BOARD_OK     ? EFFECT_OK
               : status == BOARD_FULL ? EFFECT_IMPOSSIBLE
                                      : EFFECT_OUT_OF_MEMORY;
    }
    if (!member.is_there) {
        return EFFECT_IMPOSSIBLE;
    }
    if (effect->kind == EFFECT_TAKE) {
        registry_board_take(registry, key, &member);
        return EFFECT_OK;
    }
    struct tag_values values;
    unsigned full;
    if (!tag_values_unpack(effect->value, board_layout(&key->board)->tags.count, &values)) {
        return EFFECT_IMPOSSIBLE;
    }
    switch (registry_board_tag(registry, key, &member, &values, &full)) {
    case TAGS_OK:
    case TAGS_SAME:
        return EFFECT_OK;
    case TAGS_FULL:
        return EFFECT_IMPOSSIBLE;
    case TAGS_OUT_OF_MEMORY:
        break;
    }
    return EFFECT_OUT_OF_MEMORY;
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

static bool effect_is_of_member(const struct effect *effect) {
    return (effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE ||
            effect->kind == EFFECT_TAGS) &&
           effect->database < REGISTRY_ALL_DATABASES && effect_is_name(effect->name) &&
           effect_is_member(effect->member);
}

static bool effect_have_same_key(const struct effect *a, const struct effect *b) {
    bool is_same_text = a->name.at == b->name.at && a->name.size == b->name.size;
    return a->database == b->database && (is_same_text || bytes_equal(a->name, b->name));
}

static void effect_begin_lookup(struct lookup *ahead, const struct board *board,
                                const struct effect *effect) {
    lookup_begin(ahead, board, effect->member, true);
    if (effect->kind == EFFECT_PUT) {
        lookup_begin_place(ahead, effect->member_key);
    }
}

/* Prefetching is useless for a single small board: it is in the cache after its first member. */
static void effect_begin_member(struct registry *registry, struct flight *flight,
                                const struct flight *before) {
    const struct effect *effect = flight->effect;
    if (flight->is_key_known) {
        flight->key = before->key;
    } else {
        struct registry_prefetch *name = &flight->name;
        const struct registry_key *key = registry_prefetch_end(registry, BEFORE_ALL, name);
        flight->key = key != NULL && key->kind == REGISTRY_BOARD ? name->key : NULL;
        registry_prefetch_recall(registry, name);
    }
    const struct board *board = flight->key != NULL ? &flight->key->board : NULL;
    flight->is_fetched =
        board != NULL && (!flight->is_key_known || board_count(board) >= LOOKUP_BOARD_MIN);
    if (flight->is_fetched) {
        effect_begin_lookup(&flight->ahead, board, effect);
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

static inline __attribute__((always_inline)) void effect_fetch(struct registry *registry,
                                                               uint32_t stage,
                                                               struct flight *flight,
                                                               const struct flight *before) {
    switch (stage) {
    case STAGE_KEY_SLOTS:
        flight->is_key_known =
            before != NULL && effect_have_same_key(before->effect, flight->effect);
        if (!flight->is_key_known) {
            registry_prefetch_slots(registry, flight->effect->database, flight->effect->name,
                                    &flight->name);
        }
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
        effect_begin_member(registry, flight, before);
        break;
    default:
        break;
    }
}

/* Apply effects that all concern members. While one is applied, the following ones
 * are prefetched, each one stage behind the one before it. So memory latencies overlap with each
 * other and with work, and the prefetched lines fit in the L1 cache. The state may have changed in
 * between: the stages and board_look_up treat the results as hints. */
static enum effect_status effect_apply_members(struct registry *registry,
                                               const struct effect *effects, uint32_t members,
                                               uint32_t *applied) {
    struct flight flights[IN_FLIGHT];
    for (uint32_t now = 0; now < members + STAGES; now++) {
        if (now < members) {
            flights[now % IN_FLIGHT].effect = &effects[now];
        }
#pragma GCC unroll 16
        for (uint32_t stage = 0; stage < STAGE_LOOKUP; stage++) {
            uint32_t i = now - stage; /* before the first effect: wraps to a huge number */
            if (i < members) {
                effect_fetch(registry, stage, &flights[i % IN_FLIGHT],
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
            enum effect_status status = effect_apply_member(
                registry, flight->key, flight->effect, flight->is_fetched ? &flight->ahead : NULL);
            if (i > 0 && (!flight->is_key_known || status != EFFECT_OK)) {
                registry_tell(registry, effects[i - 1].database, effects[i - 1].name);
            }
            if (status != EFFECT_OK) {
                *applied = i;
                return status;
            }
        }
    }
    *applied = members;
    /* The last of several members of one key has changed. */
    registry_tell(registry, effects[members - 1].database, effects[members - 1].name);
    return EFFECT_OK;
}

/* The same where all members are of one board, which is then found once. */
static enum effect_status apply_run(struct registry *registry, const struct effect *effects,
                                    uint32_t members, uint32_t *applied) {
    struct registry_key *key = effect_find(registry, effects);
    if (key == NULL || key->kind != REGISTRY_BOARD) {
        *applied = 0;
        return EFFECT_IMPOSSIBLE;
    }
    struct lookup ring[LOOKUP_RING];
    enum effect_status status = EFFECT_OK;
    /* A small board is in the cache after its first members. */
    bool is_staged = board_count(&key->board) >= LOOKUP_BOARD_MIN;
    uint32_t behind = is_staged ? LOOKUP_STAGES + 1 : 0;
    uint32_t done = 0;
    for (uint32_t now = 0; done < members && status == EFFECT_OK; now++) {
        if (is_staged && now < members) {
            effect_begin_lookup(&ring[now % LOOKUP_RING], &key->board, &effects[now]);
        }
        if (is_staged) {
            lookup_advance_ring(ring, now, members);
        }
        if (now >= behind) {
            const struct lookup *ahead = is_staged ? &ring[done % LOOKUP_RING] : NULL;
            status = effect_apply_member(registry, key, &effects[done], ahead);
            done += status == EFFECT_OK;
        }
    }
    *applied = done;
    if (done > 0) {
        registry_tell(registry, effects->database, effects->name);
    }
    return status;
}

/* How many of the leading effects are about members of the same key. */
static uint32_t count_run(const struct effect *effects, uint32_t count) {
    uint32_t run = 1;
    while (run < count && effect_is_of_member(&effects[run]) &&
           effect_have_same_key(&effects[0], &effects[run])) {
        run++;
    }
    return run;
}

/* Apply leading effects, the first of which is about a member. */
static enum effect_status effect_apply_leading_members(struct registry *registry,
                                                       const struct effect *effects, uint32_t count,
                                                       uint32_t *applied) {
    uint32_t run = count_run(effects, count);
    if (run >= RUN_MIN) {
        return apply_run(registry, effects, run, applied);
    }
    uint32_t members = 0;
    while (run < RUN_MIN) {
        members += run;
        if (members == count || !effect_is_of_member(&effects[members])) {
            break;
        }
        run = count_run(&effects[members], count - members);
    }
    return effect_apply_members(registry, effects, members, applied);
}

/* ---- keys ---- */

enum effect_status effect_apply_to_board(struct registry *registry, struct registry_key *key,
                                         const struct effect *effect) {
    if (effect->kind == EFFECT_CUT) {
        if (effect->rank > board_count(&key->board) ||
            effect->count > board_count(&key->board) - effect->rank) {
            return EFFECT_IMPOSSIBLE;
        }
        registry_board_cut(registry, key, effect->rank, effect->count);
        return EFFECT_OK;
    }
    return effect_is_member(effect->member) ? effect_apply_member(registry, key, effect, NULL)
                                            : EFFECT_IMPOSSIBLE;
}

static enum effect_status effect_apply_create(struct registry *registry,
                                              const struct effect *effect) {
    uint32_t kind = effect_kind_of(effect);
    if (!effect_may_put(registry, effect->database, effect->name, kind, effect->options)) {
        return EFFECT_IMPOSSIBLE;
    }
    struct registry_key *key = registry_make_key(registry, effect->database, effect->name, kind,
                                                 effect->options, effect->state);
    if (key == NULL) {
        return EFFECT_OUT_OF_MEMORY;
    }
    registry_remember(&registry->databases[effect->database], key); /* its members come next */
    effect_emit_key(registry, EFFECT_CREATE, key);
    registry_tell(registry, effect->database, effect->name);
    return EFFECT_OK;
}

static enum effect_status effect_apply_options(struct registry *registry, struct registry_key *key,
                                               const struct effect *effect) {
    if (key->kind != REGISTRY_BOARD || effect->options == NULL) {
        return EFFECT_IMPOSSIBLE;
    }
    bool is_fit = board_count(&key->board) > 0
                      ? layout_keys_equal(board_layout(&key->board), &effect->options->layout)
                      : board_options_keys_are_akin(registry_options(key), effect->options);
    unsigned full;
    if (!is_fit || effect->options->has_rating != registry_options(key)->has_rating ||
        !registry_board_tags_fit(key, &effect->options->layout, &full) ||
        (effect->options->period.unit != PERIOD_NONE && key->name_size > REGISTRY_KEY_MAX)) {
        return EFFECT_IMPOSSIBLE;
    }
    const struct board_state none = {.from_ms = 0};
    const struct board_state *state = effect->state != NULL ? effect->state : &none;
    return registry_board_alter(registry, key, effect->options, state) != NULL
               ? EFFECT_OK
               : EFFECT_OUT_OF_MEMORY;
}

/* ---- renames and copies ---- */

static enum effect_status effect_apply_move(struct registry *registry, struct registry_key *key,
                                            const struct effect *effect) {
    const struct board_options *options = NULL;
    if (!effect_may_put(registry, effect->to_database, effect->to_name, key->kind,
                        effect->options) ||
        (effect->options != NULL &&
         (!board_options_are_akin(registry_options(key), effect->options) ||
          effect->options->is_dense != registry_options(key)->is_dense ||
          effect->options->has_rating != registry_options(key)->has_rating ||
          (board_options_have_notes(effect->options) != key->has_notes &&
           (key->has_notes || effect->kind != EFFECT_RENAME))))) {
        return EFFECT_IMPOSSIBLE;
    }
    if (effect->options != NULL) {
        options = board_options_hold(&registry->options, effect->options);
        if (options == NULL) {
            return EFFECT_OUT_OF_MEMORY;
        }
    }
    struct registry_key *successor = registry_reserve_key(
        registry, effect->to_database, (struct registry_new_name){.first = effect->to_name},
        key->kind, effect->expire_at_ms != REGISTRY_NO_EXPIRY,
        key->kind == REGISTRY_HASH ? registry_tail_of_hash(registry_hash(key))
                                   : registry_tail_for(options));
    bool is_renamed = effect->kind == EFFECT_RENAME;
    if (successor != NULL && is_renamed) {
        registry_move_value(registry, key, successor);
    } else if (successor == NULL || (!registry_roll_archive_give(registry, key, successor) &&
                                     !registry->kinds[key->kind]->copy(registry, key, successor))) {
        registry_free_key(successor);
        board_options_release(&registry->options, options);
        return EFFECT_OUT_OF_MEMORY;
    }
    if (options != NULL) {
        registry_set_options(registry, successor, options);
        registry_give_state(successor, effect->state);
    }
    enum registry_walk_state state = registry_walk_state(registry, key);
    if (is_renamed) {
        registry_take(registry, key);
        registry_tell(registry, key->database, registry_name(key));
    } else if (state != REGISTRY_WALK_DONE) {
        state = REGISTRY_WALK_AHEAD;
    }
    registry_put_reserved(registry, successor, state, effect->expire_at_ms, BEFORE_ALL);
    effect_emit_move(registry, effect->kind, key, successor);
    if (is_renamed) {
        registry_trim(registry_database(registry, key->database));
        registry_free_shell(registry, key);
    }
    return EFFECT_OK;
}

static enum effect_status effect_apply_note(struct registry *registry, struct registry_key *key,
                                            const struct effect *effect) {
    if (key->kind != REGISTRY_BOARD || !key->has_notes || !effect_is_member(effect->member) ||
        effect->value.size > REGISTRY_NOTE_MAX) {
        return EFFECT_IMPOSSIBLE;
    }
    if (effect->value.size == 0) {
        (void)registry_note_remove(registry, key, effect->member);
    } else if (!registry_note_put(registry, key, effect->member, effect->value)) {
        return EFFECT_OUT_OF_MEMORY;
    }
    registry_tell(registry, effect->database, effect->name);
    return EFFECT_OK;
}

/* ---- all effects ---- */

static enum effect_status effect_apply_one(struct registry *registry, const struct effect *effect) {
    if (effect->kind == EFFECT_CREATE) {
        return effect_apply_create(registry, effect);
    }
    if (effect->kind == EFFECT_FLUSH && effect->database < REGISTRY_DATABASES) {
        (void)registry_flush(registry, effect->database);
        return EFFECT_OK;
    }
    struct registry_key *key = effect_find(registry, effect);
    if (key == NULL) {
        return EFFECT_IMPOSSIBLE;
    }
    switch (effect->kind) {
    case EFFECT_PUT:
    case EFFECT_TAKE:
    case EFFECT_CUT:
    case EFFECT_TAGS:
        if (key->kind != effect_kind_of(effect)) {
            return EFFECT_IMPOSSIBLE;
        }
        enum effect_status status = registry->kinds[key->kind]->change(registry, key, effect);
        if (status == EFFECT_OK && effect->kind != EFFECT_CUT) {
            registry_tell(registry, effect->database, effect->name);
        }
        return status;
    case EFFECT_REMOVE:
        registry_remove(registry, key);
        return EFFECT_OK;
    case EFFECT_RENAME:
    case EFFECT_COPY:
        return effect_apply_move(registry, key, effect);
    case EFFECT_EXPIRE:
        return registry_expiry_set(registry, key, effect->expire_at_ms, false) == REGISTRY_OK
                   ? EFFECT_OK
                   : EFFECT_OUT_OF_MEMORY;
    case EFFECT_OPTIONS:
        return effect_apply_options(registry, key, effect);
    case EFFECT_STATE:
        if (key->kind != REGISTRY_BOARD || effect->state == NULL ||
            !board_options_have_state(registry_options(key)) ||
            !board_options_take_state(registry_options(key), effect->state)) {
            return EFFECT_IMPOSSIBLE;
        }
        registry_set_state(registry, key, effect->state);
        return EFFECT_OK;
    case EFFECT_NOTE:
        return effect_apply_note(registry, key, effect);
    case EFFECT_CREATE:
    case EFFECT_FLUSH:
    case EFFECT_FILL:
        break;
    }
    return EFFECT_IMPOSSIBLE;
}

enum effect_status effect_apply(struct registry *registry, const struct effect *effects,
                                uint32_t count, uint32_t *applied) {
    enum effect_status status = EFFECT_OK;
    uint32_t boards_end = 0;
    *applied = 0;
    registry->is_applying = true;
    while (*applied < count && status == EFFECT_OK) {
        const struct effect *next = &effects[*applied];
        uint32_t done;
        if (boards_end <= *applied) { /* where the leading effects about boards end */
            boards_end = *applied;
            while (boards_end < count && effect_kind_of(&effects[boards_end]) == REGISTRY_BOARD) {
                boards_end++;
            }
        }
        if (*applied < boards_end && effect_is_of_member(next)) {
            status = effect_apply_leading_members(registry, next, boards_end - *applied, &done);
        } else {
            /* A snapshot with many hashes creates many keys: prefetch where the map will put them. */
            const struct effect *later = count - *applied > IN_FLIGHT ? next + IN_FLIGHT : next;
            struct registry_prefetch unused;
            if (later != next && later->kind == EFFECT_CREATE &&
                later->database < REGISTRY_DATABASES && effect_is_name(later->name)) {
                registry_prefetch_slots(registry, later->database, later->name, &unused);
            }
            status = effect_apply_one(registry, next);
            registry_free_after_command(registry);
            done = status == EFFECT_OK;
        }
        *applied += done;
    }
    registry->is_applying = false;
    return status;
}
