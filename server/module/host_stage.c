/* A command's keys on stage. See host_stage.h.
 *
 * Who owns a registry_key: the host_value, also while the key is on stage; but what the registry has
 * removed or replaced is the registry's, which frees it. */
#include "server/module/host_stage.h"

#include "server/module/host_period.h"
#include "skiplist/keyspace/registry_guest.h"

struct bytes host_bytes(const struct host_string *string) {
    size_t size;
    const char *at = host_StringPtrLen(string, &size);
    return (struct bytes){.at = at, .size = size};
}

void host_stage_begin(struct host_stage *stage, struct host_context *ctx, bool writes,
                      bool applies) {
    module.database = (uint32_t)host_GetSelectedDb(ctx);
    stage->ctx = ctx;
    stage->slots = stage->slots_inline;
    stage->count = 0;
    stage->capacity = HOST_SLOTS_INLINE;
    stage->writes = writes;
    stage->applies = applies;
    stage->is_lent = false;
    module.context = ctx; /* for host_stage_is_elsewhere, also where a timer has begun it */
}

static bool host_stage_reserve_slot(struct host_stage *stage) {
    if (stage->count < stage->capacity) {
        return true;
    }
    uint32_t capacity = stage->capacity * 2;
    bool is_inline = stage->slots == stage->slots_inline;
    struct host_slot *slots =
        memory_resize(is_inline ? NULL : stage->slots, capacity * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    if (is_inline) {
        memcpy(slots, stage->slots_inline, sizeof stage->slots_inline);
    }
    stage->slots = slots;
    stage->capacity = capacity;
    return true;
}

/* The board's key under the name by which it was found. NULL: no memory. */
static struct registry_key *host_stage_name_board(struct host_value *value, struct bytes name) {
    if (!bytes_equal(registry_name(value->key), name)) {
        struct registry_key *named =
            registry_guest_rename(module.server.registry, value->key, name);
        if (named == NULL) {
            return NULL;
        }
        value->key = named;
    }
    return value->key;
}

/* Stands for a key of another type. */
static struct registry_key *host_stage_create_stranger(struct bytes name) {
    return registry_guest_create(module.server.registry, name, REGISTRY_HASH, NULL);
}

/* Masters roll boards over, and replicas follow; but while a failover waits for the replicas, nothing
 * may change. */
static bool host_stage_may_roll(const struct host_stage *stage) {
    return !stage->applies && (host_GetContextFlags(stage->ctx) & HOST_IS_MASTER) != 0 &&
           !host_AvoidReplicaTraffic();
}

/* Another key comes: the one that was lent is put where both can be. */
static bool host_stage_admit_lent(struct host_stage *stage) {
    if (!stage->is_lent) {
        return true;
    }
    stage->is_lent = false;
    registry_guest_take_back(module.server.registry);
    bool is_admitted = registry_admit(module.server.registry, stage->slots[0].key);
    if (!is_admitted) {
        stage->slots[0].key = NULL;
    }
    return is_admitted;
}

static bool host_stage_put_on(struct host_stage *stage, struct host_slot *slot) {
    slot->value = host_value_of(slot->opened);
    if (slot->value == NULL && host_KeyType(slot->opened) == HOST_KEY_EMPTY) {
        return true;
    }
    slot->key = slot->value != NULL ? host_stage_name_board(slot->value, slot->text)
                                    : host_stage_create_stranger(slot->text);
    stage->is_lent = stage->count == 1 && !stage->writes && slot->value != NULL &&
                     slot->key != NULL && !slot->key->is_periodic;
    if (stage->is_lent) {
        registry_guest_lend(module.server.registry, slot->key);
        return true;
    }
    return slot->key != NULL && registry_admit(module.server.registry, slot->key);
}

/* If this is an archive's name, the name of its board (the same as registry_roll.c finds). */
static bool host_stage_find_base(struct bytes name, struct bytes *base) {
    size_t size_max = name.size < REGISTRY_SUFFIX_MAX ? name.size : REGISTRY_SUFFIX_MAX;
    for (size_t size = 1; size <= size_max; size++) {
        if (name.at[name.size - size] == '@') {
            *base = (struct bytes){.at = name.at, .size = name.size - size};
            return base->size > 0;
        }
    }
    return false;
}

static void host_stage_release_name(const struct host_stage *stage, struct host_string *name,
                                    bool is_own_name) {
    if (is_own_name) {
        host_FreeString(stage->ctx, name);
    }
}

static bool host_stage_stage_key(struct host_stage *stage, struct host_string *name,
                                 struct bytes text, bool is_own_name);

static bool host_stage_own_key(struct host_stage *stage, struct bytes text) {
    struct host_string *name = host_CreateString(stage->ctx, text.at, text.size);
    return host_stage_stage_key(stage, name, host_bytes(name), true);
}

/* An archive may only come to be now, because its board is due. */
static bool host_stage_base(struct host_stage *stage, struct bytes name) {
    struct bytes base;
    return stage->applies || !host_stage_find_base(name, &base) || host_stage_own_key(stage, base);
}

bool host_stage_key(struct host_stage *stage, struct host_string *name, struct bytes text) {
    return host_stage_base(stage, text) && host_stage_stage_key(stage, name, text, false);
}

bool host_stage_key_of(struct host_stage *stage, struct bytes name) {
    return host_stage_base(stage, name) && host_stage_own_key(stage, name);
}

/* is_own_name: the name is freed with the stage. */
static bool host_stage_stage_key(struct host_stage *stage, struct host_string *name,
                                 struct bytes text, bool is_own_name) {
    if (text.size == 0 || text.size > REGISTRY_NAME_MAX) {
        host_stage_release_name(stage, name, is_own_name);
        return true; /* the handler refuses it, or finds nothing */
    }
    if (stage->count > 0 && registry_guest_find(module.server.registry, text) != NULL) {
        host_stage_release_name(stage, name, is_own_name);
        return true;
    }
    if (!host_stage_admit_lent(stage) || !host_stage_reserve_slot(stage)) {
        host_stage_release_name(stage, name, is_own_name);
        return false;
    }
    struct host_slot *slot = &stage->slots[stage->count++];
    *slot = (struct host_slot){.name = name, .is_own_name = is_own_name, .text = text};
    slot->opened =
        host_OpenKey(stage->ctx, name, stage->writes ? HOST_READ | HOST_WRITE : HOST_READ);
    if (slot->opened == NULL) {
        return true; /* reading: there is none */
    }
    bool is_staged = host_stage_put_on(stage, slot);
    if (!is_staged) {
        if (slot->value == NULL && slot->key != NULL) {
            memory_free(slot->key);
        }
        slot->key = NULL;
    }
    if (slot->key != NULL && slot->key->is_periodic && !host_stage_may_roll(stage)) {
        registry_guest_hold_rolls(module.server.registry);
    }
    return is_staged;
}

bool host_stage_is_elsewhere(void *context, uint32_t database, struct bytes name) {
    struct host_string *text = host_CreateString(module.context, name.at, name.size);
    struct host_key *key = host_OpenKey(module.context, text, HOST_READ);
    bool is_there = key != NULL && host_KeyType(key) != HOST_KEY_EMPTY;
    (void)context;
    (void)database;
    if (key != NULL) {
        host_CloseKey(key);
    }
    host_FreeString(module.context, text);
    return is_there;
}

bool host_stage_has(const struct host_stage *stage, struct bytes name) {
    for (uint32_t i = 0; i < stage->count; i++) {
        if (bytes_equal(stage->slots[i].text, name)) {
            return true;
        }
    }
    return false;
}

void host_stage_close_lent(struct host_stage *stage) {
    if (stage->is_lent) {
        host_CloseKey(stage->slots[0].opened);
        stage->slots[0].opened = NULL;
    }
}

const struct board *host_stage_first_board(const struct host_stage *stage) {
    bool has_board =
        stage->count > 0 && stage->slots[0].value != NULL && stage->slots[0].key != NULL;
    return has_board ? &stage->slots[0].key->board : NULL;
}

void host_stage_note(struct host_stage *stage, const struct effect *effect) {
    for (uint32_t i = 0; i < stage->count; i++) {
        struct host_slot *slot = &stage->slots[i];
        if (stage->count == 1 || bytes_equal(slot->text, effect->name)) {
            slot->is_changed = true;
            slot->is_replaced |= effect->kind == EFFECT_REMOVE || effect->kind == EFFECT_RENAME;
            return;
        }
    }
}

/* ---- the end ---- */

/* Give the host a new value for an open key. */
static void host_stage_give(const struct host_stage *stage, struct host_key *opened,
                            struct registry_key *key, int64_t expire_at_ms) {
    struct host_value *value = host_value_create(key);
    CHECK(value != NULL); /* the host ends the process when it has no memory, and so does this */
    host_ModuleTypeSetValue(opened, module.type, value);
    if (expire_at_ms != REGISTRY_NO_EXPIRY) {
        host_SetAbsExpire(opened, expire_at_ms);
    }
    if (key->is_periodic) {
        host_period_note(key, host_GetSelectedDb(stage->ctx));
    }
}

static struct host_key *host_stage_reopen(struct host_stage *stage, struct host_slot *slot) {
    if (slot->opened == NULL || !stage->writes) {
        if (slot->opened != NULL) {
            host_CloseKey(slot->opened);
        }
        slot->opened = host_OpenKey(stage->ctx, slot->name, HOST_READ | HOST_WRITE);
    }
    return slot->opened;
}

/* The key that the host has no longer: what was on stage belongs to the registry. */
static void host_stage_remove_key(struct host_stage *stage, struct host_slot *slot) {
    if (slot->value != NULL) {
        slot->value->key = NULL;
    }
    host_DeleteKey(host_stage_reopen(stage, slot));
}

static void host_stage_leave(struct host_stage *stage, struct host_slot *slot) {
    struct registry *registry = module.server.registry;
    struct registry_key *now = registry_guest_find(registry, slot->text);
    int64_t expire_at_ms = now != NULL ? registry_expiry(registry, now) : REGISTRY_NO_EXPIRY;
    if (now != NULL) {
        registry_dismiss(registry, now);
    }
    if (now == slot->key) {
        if (now != NULL && slot->value == NULL) {
            memory_free(now); /* the stranger */
        } else if (now != NULL && slot->is_changed && now->is_periodic) {
            host_period_note(now, host_GetSelectedDb(stage->ctx));
        }
    } else if (now == NULL) {
        if (slot->key != NULL) {
            host_stage_remove_key(stage, slot);
        }
    } else if (slot->value != NULL && !slot->is_replaced) {
        slot->value->key = now; /* the same board at another address */
        if (now->is_periodic) {
            host_period_note(now, host_GetSelectedDb(stage->ctx));
        }
    } else {
        if (slot->value != NULL) {
            slot->value->key = NULL;
        }
        host_stage_give(stage, host_stage_reopen(stage, slot), now, expire_at_ms);
        slot->is_changed = true;
    }
}

/* Archives. */
static void host_stage_give_new_keys(struct host_stage *stage) {
    struct registry *registry = module.server.registry;
    struct registry_key *key;
    while ((key = registry_guest_first(registry)) != NULL) {
        struct bytes text = registry_name(key);
        struct host_string *name = host_CreateString(stage->ctx, text.at, text.size);
        struct host_key *opened = host_OpenKey(stage->ctx, name, HOST_READ | HOST_WRITE);
        int64_t expire_at_ms = registry_expiry(registry, key);
        registry_dismiss(registry, key);
        host_stage_give(stage, opened, key, expire_at_ms);
        host_CloseKey(opened);
        host_SignalModifiedKey(stage->ctx, name);
        host_FreeString(stage->ctx, name);
    }
}

void host_stage_end(struct host_stage *stage) {
    bool is_lent = stage->is_lent;
    if (is_lent) {
        registry_guest_take_back(module.server.registry);
    }
    registry_guest_settle(module.server.registry);
    for (uint32_t i = 0; i < stage->count; i++) {
        struct host_slot *slot = &stage->slots[i];
        if (!is_lent) {
            host_stage_leave(stage, slot);
        }
        if (slot->opened != NULL) {
            host_CloseKey(slot->opened);
        }
        if (slot->is_changed) {
            host_SignalModifiedKey(stage->ctx, slot->name);
            if (module.waiting_count > 0) {
                host_SignalKeyAsReady(stage->ctx, slot->name);
            }
        }
        host_stage_release_name(stage, slot->name, slot->is_own_name);
    }
    if (registry_guest_first(module.server.registry) != NULL) {
        host_stage_give_new_keys(stage);
    }
    if (stage->slots != stage->slots_inline) {
        memory_free(stage->slots);
    }
}
