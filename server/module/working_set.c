/* See working_set.h.
 *
 * A registry_key belongs to the host_value, also while it is in the set; but what the registry has removed or
 * replaced is the registry's, which frees it. */
#include "server/module/working_set.h"

#include "server/module/module.h"
#include "skiplist/keyspace/league.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_embedded.h"

void working_set_begin(struct working_set *set, struct host_context *ctx, bool writes,
                       bool applies) {
    module.database = (uint32_t)host_GetSelectedDb(ctx);
    set->ctx = ctx;
    set->keys = set->keys_inline;
    set->count = 0;
    set->capacity = WORKING_SET_INLINE;
    set->writes = writes;
    set->applies = applies;
    set->is_lent = false;
    set->has_gone = false;
    set->refusal = NULL;
    set->slot = WORKING_SET_UNKNOWN;
    set->boards = NULL;
    module.context = ctx; /* for working_set_is_elsewhere, also where a timer has begun it */
}

static bool working_set_reserve(struct working_set *set) {
    if (set->count < set->capacity) {
        return true;
    }
    uint32_t capacity = set->capacity * 2;
    bool is_inline = set->keys == set->keys_inline;
    struct working_key *keys = memory_resize(is_inline ? NULL : set->keys, capacity * sizeof *keys);
    if (keys == NULL) {
        return false;
    }
    if (is_inline) {
        memcpy(keys, set->keys_inline, sizeof set->keys_inline);
    }
    set->keys = keys;
    set->capacity = capacity;
    return true;
}

/* A key, of a value, under the name by which it was found. NULL: no memory. */
static struct registry_key *working_set_name_key(struct registry_key **key, struct bytes name,
                                                 bool *is_renamed) {
    if (!bytes_equal(registry_name(*key), name)) {
        struct registry_key *named = registry_embedded_rename(module.server.registry, *key, name);
        if (named == NULL) {
            return NULL;
        }
        *key = named;
        *is_renamed = true;
    }
    return *key;
}

static bool working_set_take(struct working_set *set, struct working_key *entry) {
    if (entry->value != NULL ? entry->value->key == NULL
                             : host_KeyType(entry->opened) == HOST_KEY_EMPTY) {
        return true;
    }
    /* Stands for a key of another type. */
    entry->key = entry->value != NULL
                     ? working_set_name_key(&entry->value->key, entry->text, &entry->is_to_note)
                     : registry_embedded_create(module.server.registry, 0, entry->text,
                                                REGISTRY_HASH, NULL, NULL);
    set->is_lent = set->count == 1 && !set->writes && entry->value != NULL && entry->key != NULL &&
                   !entry->key->is_periodic;
    if (set->is_lent) {
        registry_embedded_lend(module.server.registry, entry->key);
        return true;
    }
    return entry->key != NULL && registry_embedded_admit(module.server.registry, entry->key);
}

static void working_set_release_name(const struct working_set *set, struct host_string *name,
                                     bool is_own_name) {
    if (is_own_name) {
        host_FreeString(set->ctx, name);
    }
}

static bool working_set_put_as(struct working_set *set, struct host_string *name, struct bytes text,
                               bool is_own_name);

static bool working_set_put_own(struct working_set *set, struct bytes text) {
    struct host_string *name = host_CreateString(set->ctx, text.at, text.size);
    return working_set_put_as(set, name, host_bytes(name), true);
}

bool working_set_put(struct working_set *set, struct host_string *name, struct bytes text) {
    struct bytes base;
    if (set->applies || !registry_roll_archive_board(text, &base)) {
        return working_set_put_as(set, name, text, false);
    }
    bool is_put = working_set_put_own(set, base) && working_set_put_as(set, name, text, false);
    if (is_put && registry_embedded_find(module.server.registry, text) == NULL &&
        registry_embedded_find(module.server.registry, base) == NULL) {
        (void)working_set_lacks(set, base);
    }
    return is_put;
}

bool working_set_put_named(struct working_set *set, struct bytes name) {
    struct bytes base; /* an archive may only come to be now, because its board is due */
    bool has_base = !set->applies && registry_roll_archive_board(name, &base);
    return (!has_base || working_set_put_own(set, base)) && working_set_put_own(set, name);
}

/* is_own_name: the name is freed with the set. */
static bool working_set_put_as(struct working_set *set, struct host_string *name, struct bytes text,
                               bool is_own_name) {
    if (text.size == 0 || text.size > REGISTRY_NAME_MAX) {
        working_set_release_name(set, name, is_own_name);
        return true; /* the handler refuses it, or finds nothing */
    }
    /* The host still has what has gone. */
    if (set->count > 0 && (registry_embedded_find(module.server.registry, text) != NULL ||
                           (set->has_gone && working_set_has(set, text)))) {
        working_set_release_name(set, name, is_own_name);
        return true;
    }
    bool is_admitted = true;
    if (set->is_lent) { /* another key comes: the one that was lent is put where both can be */
        set->is_lent = false;
        registry_embedded_take_back(module.server.registry);
        is_admitted = registry_embedded_admit(module.server.registry, set->keys[0].key);
        set->keys[0].key = is_admitted ? set->keys[0].key : NULL;
    }
    if (!is_admitted || !working_set_reserve(set)) {
        working_set_release_name(set, name, is_own_name);
        return false;
    }
    struct working_key *entry = &set->keys[set->count++];
    *entry = (struct working_key){.name = name, .is_own_name = is_own_name, .text = text};
    entry->opened = host_OpenKey(set->ctx, name, set->writes ? HOST_READ | HOST_WRITE : HOST_READ);
    if (entry->opened == NULL) {
        return true; /* reading: there is none */
    }
    struct host_value *value = entry->value = module_value_of(entry->opened);
    if (value != NULL && value->key == NULL) { /* no name in the registry tells that it is there */
        if (value->is_in_set) {
            host_CloseKey(entry->opened);
            working_set_release_name(set, name, is_own_name);
            set->count--;
            return true;
        }
        value->is_in_set = true;
    }
    bool is_put = working_set_take(set, entry);
    if (!is_put) {
        if (entry->value == NULL && entry->key != NULL) {
            (void)registry_embedded_free(entry->key);
        }
        entry->key = NULL;
    }
    if (entry->key != NULL && entry->key->is_periodic &&
        (set->applies || !host_may_change(set->ctx))) {
        registry_embedded_hold_rolls(module.server.registry);
    }
    return is_put;
}

bool working_set_lacks(struct working_set *set, struct bytes name) {
    if (!module.is_cluster || set->count == 0 || !host_is_same_slot(name, set->keys[0].text)) {
        return false;
    }
    if (set->slot == WORKING_SET_UNKNOWN) {
        /* The host refuses our call as it would refuse a client's command with these keys: NULL. Of two it says so
         * on the node that gets the slot, too. */
        uint32_t other = bytes_equal(set->keys[0].text, name) && set->count > 1;
        struct host_string *lacking = host_CreateString(set->ctx, name.at, name.size);
        struct host_call_reply *reply =
            host_Call(set->ctx, "EXISTS", "ss", set->keys[other].name, lacking);
        bool moves = reply == NULL;
        host_free_reply(reply);
        host_FreeString(set->ctx, lacking);
        set->slot = moves ? WORKING_SET_MOVES : WORKING_SET_STAYS;
    }
    if (set->slot == WORKING_SET_MOVES) {
        set->refusal = "TRYAGAIN a key that belongs to this one may be on another node while their "
                       "slot moves: send this again";
    }
    return set->slot == WORKING_SET_MOVES;
}

static struct working_key *working_set_find(const struct working_set *set, struct bytes name) {
    for (uint32_t i = 0; i < set->count; i++) {
        if (bytes_equal(set->keys[i].text, name)) {
            return &set->keys[i];
        }
    }
    return NULL;
}

bool working_set_open_ids(struct working_set *set, struct bytes name) {
    struct working_key *entry = working_set_find(set, name);
    if (entry == NULL || (entry->value == NULL && entry->key != NULL)) {
        return false;
    }
    if (entry->has_ids) {
        return true;
    }
    if (entry->value != NULL && entry->value->ids != NULL) {
        struct registry_key *ids =
            working_set_name_key(&entry->value->ids, name, &entry->is_to_note);
        if (ids == NULL || !registry_embedded_admit(module.server.registry, ids)) {
            return false;
        }
    }
    entry->has_ids = true;
    return true;
}

bool working_set_is_elsewhere(void *context, uint32_t database, struct bytes name) {
    struct host_named named = host_open_named(module.context, name);
    const struct host_value *value = named.key != NULL ? module_value_of(named.key) : NULL;
    bool is_there = value != NULL ? value->key != NULL
                                  : named.key != NULL && host_KeyType(named.key) != HOST_KEY_EMPTY;
    (void)context;
    (void)database;
    host_close_named(module.context, named);
    return is_there;
}

bool working_set_has(const struct working_set *set, struct bytes name) {
    return working_set_find(set, name) != NULL;
}

const struct host_value *working_set_value(const struct working_set *set, struct bytes name) {
    const struct working_key *entry = working_set_find(set, name);
    return entry != NULL ? entry->value : NULL;
}

void working_set_close_lent(struct working_set *set) {
    if (set->is_lent) {
        host_CloseKey(set->keys[0].opened);
        set->keys[0].opened = NULL;
    }
}

const struct board *working_set_first_board(const struct working_set *set) {
    bool has_board = set->count > 0 && set->keys[0].value != NULL && set->keys[0].key != NULL;
    return has_board ? &set->keys[0].key->board : NULL;
}

void working_set_note(struct working_set *set, const struct effect *effect) {
    bool is_of_ids = effect->database == REGISTRY_ONCE;
    bool has_gone = !is_of_ids && (effect->kind == EFFECT_REMOVE || effect->kind == EFFECT_RENAME);
    struct working_key *entry =
        set->count == 1 ? &set->keys[0] : working_set_find(set, effect->name);
    set->has_gone |= has_gone;
    if (entry == NULL) {
        return;
    }
    entry->is_changed = true;
    entry->is_to_note |= effect->kind == EFFECT_OPTIONS || effect->kind == EFFECT_CREATE;
    entry->is_replaced |= has_gone;
    entry->is_rolled |= has_gone && effect->kind == EFFECT_RENAME;
    /* A league is read with its rooms, so the key that clients watch or track is outdated with a room. */
    struct bytes prefix, inner;
    struct league_entry place;
    if (set->count > 1 && league_parse_room(effect->name, &prefix, &inner, &place)) {
        struct working_key *league = working_set_find(set, prefix);
        league = league != NULL ? league : working_set_find(set, inner);
        if (league != NULL) {
            league->is_outdated = true;
        }
    }
}

/* ---- the end ---- */

/* Give the host a new value for an open key. Ids that it had stay; ids: new ones; NULL: none. */
static struct host_value *working_set_give(const struct working_set *set, struct host_key *opened,
                                           struct bytes name, struct registry_key *key,
                                           struct registry_key *ids, int64_t expire_at_ms) {
    struct host_value *before = module_value_of(opened);
    struct host_value *value = module_value_create(key);
    CHECK(value != NULL); /* the host ends the process when it has no memory, and so does this */
    value->ids = ids;
    if (before != NULL && ids == NULL) {
        value->ids = before->ids;
        before->ids = NULL;
    }
    host_ModuleTypeSetValue(opened, module.type, value);
    if (expire_at_ms != REGISTRY_NO_EXPIRY) {
        host_SetAbsExpire(opened, expire_at_ms);
    }
    module_note_due(value, name, host_GetSelectedDb(set->ctx));
    module_value_note_remains(value);
    return value;
}

static struct host_key *working_set_reopen(struct working_set *set, struct working_key *entry) {
    if (entry->opened == NULL || !set->writes) {
        host_close(entry->opened);
        entry->opened = host_OpenKey(set->ctx, entry->name, HOST_READ | HOST_WRITE);
    }
    return entry->opened;
}

/* There is no board now: what was in the set belongs to the registry. With ids the key stays, and does not expire as
 * its board would have. */
static void working_set_leave_none(struct working_set *set, struct working_key *entry,
                                   struct registry_key *ids) {
    bool had_board = entry->key != NULL;
    if (entry->value != NULL) {
        entry->value->key = NULL;
    }
    if (ids == NULL && (had_board || entry->value != NULL)) {
        host_DeleteKey(working_set_reopen(set, entry));
        entry->value = NULL;
    } else if (ids != NULL && entry->value == NULL) {
        entry->value = working_set_give(set, working_set_reopen(set, entry), entry->text, NULL, ids,
                                        REGISTRY_NO_EXPIRY);
    } else if (ids != NULL && had_board) {
        host_SetAbsExpire(working_set_reopen(set, entry), HOST_NO_EXPIRY);
    }
}

/* There is a board now, at another address than before, or none was. */
static void working_set_leave_other(struct working_set *set, struct working_key *entry,
                                    struct registry_key *now, struct registry_key *ids,
                                    int64_t expire_at_ms) {
    if (entry->value == NULL || entry->is_replaced) {
        if (entry->value != NULL) {
            entry->value->key = NULL;
            entry->value->ids = NULL;
        }
        struct host_key *opened = working_set_reopen(set, entry);
        if (entry->is_rolled && host_GetAbsExpire(opened) >= 0) {
            expire_at_ms = host_GetAbsExpire(opened);
        }
        entry->value = working_set_give(set, opened, entry->text, now, ids, expire_at_ms);
        entry->is_changed = true;
        return;
    }
    entry->value->key = now;
    if (entry->key == NULL) { /* a new board does not expire as its ids would have */
        bool expires = expire_at_ms != REGISTRY_NO_EXPIRY;
        host_SetAbsExpire(working_set_reopen(set, entry), expires ? expire_at_ms : HOST_NO_EXPIRY);
    }
    module_note_due(entry->value, entry->text, host_GetSelectedDb(set->ctx));
}

/* The key's ids from now on. NULL: it has none. */
static struct registry_key *working_set_leave_ids(const struct working_key *entry) {
    struct registry *registry = module.server.registry;
    if (!entry->has_ids) {
        return entry->value != NULL ? entry->value->ids : NULL;
    }
    struct registry_key *ids = registry_embedded_find_in(registry, REGISTRY_ONCE, entry->text);
    if (ids != NULL) {
        registry_embedded_dismiss(registry, ids);
    }
    if (entry->value != NULL) {
        entry->value->ids = ids;
    }
    return ids;
}

static void working_set_leave(struct working_set *set, struct working_key *entry) {
    struct registry *registry = module.server.registry;
    if (entry->value != NULL) {
        entry->value->is_in_set = false;
    }
    struct registry_key *now = registry_embedded_find(registry, entry->text);
    struct registry_key *ids = working_set_leave_ids(entry);
    int64_t expire_at_ms = now != NULL ? registry_expiry(registry, now) : REGISTRY_NO_EXPIRY;
    if (now != NULL) {
        registry_embedded_dismiss(registry, now);
    }
    if (now == NULL) {
        working_set_leave_none(set, entry, ids);
    } else if (now != entry->key || entry->is_replaced) { /* it may be where the old one was */
        working_set_leave_other(set, entry, now, ids, expire_at_ms);
    } else if (entry->value == NULL) {
        (void)registry_embedded_free(now); /* the placeholder, which has no ids */
    } else if (entry->is_changed) {
        /* The same key, changed. It gets an expiry if it is an archive that was settled; one that somebody has set
         * stays. */
        bool is_archive = registry_options(entry->key)->is_archive;
        if (entry->is_to_note) {
            module_note_due(entry->value, entry->text, host_GetSelectedDb(set->ctx));
        }
        if (expire_at_ms != REGISTRY_NO_EXPIRY &&
            !(is_archive && host_GetAbsExpire(entry->opened) >= 0)) {
            host_SetAbsExpire(entry->opened, expire_at_ms);
        }
    }
    if (entry->has_ids && entry->value != NULL) {
        module_note_ids(entry->value, entry->text, host_GetSelectedDb(set->ctx));
    }
    if (set->has_remains && entry->value != NULL) {
        module_value_note_remains(entry->value);
    }
}

void working_set_end(struct working_set *set) {
    bool is_lent = set->is_lent;
    if (is_lent) {
        registry_embedded_take_back(module.server.registry);
    }
    set->has_remains = registry_embedded_keep_remains(module.server.registry);
    for (uint32_t i = 0; i < set->count; i++) {
        struct working_key *entry = &set->keys[i];
        if (!is_lent) {
            working_set_leave(set, entry);
        }
        host_close(entry->opened);
        if (entry->is_changed || entry->is_outdated) {
            host_SignalModifiedKey(set->ctx, entry->name);
            if (module.waiting_count > 0) {
                host_SignalKeyAsReady(set->ctx, entry->name);
            }
        }
        working_set_release_name(set, entry->name, entry->is_own_name);
    }
    if (registry_embedded_first(module.server.registry) != NULL) {
        /* Archives. */
        struct registry *registry = module.server.registry;
        struct registry_key *key;
        while ((key = registry_embedded_first(registry)) != NULL) {
            struct bytes text = registry_name(key);
            struct host_string *name = host_CreateString(set->ctx, text.at, text.size);
            struct host_key *opened = host_OpenKey(set->ctx, name, HOST_READ | HOST_WRITE);
            int64_t expire_at_ms = registry_expiry(registry, key);
            registry_embedded_dismiss(registry, key);
            (void)working_set_give(set, opened, host_bytes(name), key, NULL, expire_at_ms);
            host_CloseKey(opened);
            host_SignalModifiedKey(set->ctx, name);
            host_FreeString(set->ctx, name);
        }
    }
    if (set->keys != set->keys_inline) {
        memory_free(set->keys);
    }
    registry_free_after_command(module.server.registry);
}

/* ---- copies ----
 *
 * While they are in the set, entry->key and value->key are the copy, and the board itself is in set->boards alone,
 * outside of the registry. */

static void working_set_discard_key(struct registry_key *key) {
    registry_embedded_release(module.server.registry, registry_embedded_free(key));
}

/* Of this entry from now on, in the registry. */
static void working_set_set_key(struct working_key *entry, struct registry_key *key) {
    CHECK(entry->value != NULL);
    entry->key = key;
    entry->value->key = key;
}

bool working_set_copy(struct working_set *set) {
    struct registry *registry = module.server.registry;
    size_t size = (set->count + (size_t)1) * sizeof(struct registry_key *);
    set->boards = memory_allocate_zeroed(size);
    if (set->boards == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        set->boards[i] = set->keys[i].value != NULL ? set->keys[i].key : NULL;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->boards[i] == NULL) {
            continue;
        }
        struct registry_key *copy =
            registry_embedded_copy(registry, set->boards[i], registry_name(set->boards[i]));
        if (copy == NULL) {
            working_set_drop_copies(set);
            return false;
        }
        registry_embedded_dismiss(registry, set->boards[i]);
        working_set_set_key(&set->keys[i], copy);
        CHECK(registry_embedded_admit(registry, copy)); /* into the place that is free now */
    }
    registry_embedded_hold_rolls(registry);
    return true;
}

void working_set_keep_copies(struct working_set *set) {
    for (uint32_t i = 0; set->boards != NULL && i < set->count; i++) {
        if (set->boards[i] != NULL) {
            working_set_discard_key(set->boards[i]);
        }
    }
    memory_free(set->boards);
    set->boards = NULL;
}

void working_set_drop_copies(struct working_set *set) {
    struct registry *registry = module.server.registry;
    if (set->boards == NULL) {
        return;
    }
    (void)registry_embedded_keep_remains(registry);
    /* All that is in the set, but the boards themselves, if they still are. */
    struct registry_key *key;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->boards[i] != NULL && set->keys[i].key == set->boards[i]) {
            registry_embedded_dismiss(registry, set->boards[i]);
        }
    }
    while ((key = registry_embedded_first(registry)) != NULL) {
        registry_embedded_dismiss(registry, key);
        if (key->kind == REGISTRY_BOARD) {
            working_set_discard_key(key);
        } else {
            (void)registry_embedded_free(key); /* it stands for a key of another type */
        }
    }
    for (uint32_t i = 0; i < set->count; i++) {
        struct working_key *entry = &set->keys[i];
        entry->is_changed = false;
        entry->is_replaced = false;
        entry->key = NULL;
        if (set->boards[i] != NULL) {
            working_set_set_key(entry, set->boards[i]);
            CHECK(registry_embedded_admit(registry, entry->key)); /* there was room for it before */
        }
    }
    registry_embedded_hold_rolls(registry);
    memory_free(set->boards);
    set->boards = NULL;
}
