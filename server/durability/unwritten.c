/* See unwritten.h. */
#include "server/durability/unwritten.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "server/durability/effect_bytes.h"

enum { ROOM_MIN = 64 };

uint64_t unwritten_key(uint32_t database, struct bytes name) {
    uint64_t hash = XXH3_64bits_withSeed(name.at, name.size, database);
    return hash != 0 ? hash : 1;
}

void unwritten_clear(struct unwritten *unwritten) {
    memory_free(unwritten->slots);
    *unwritten = (struct unwritten){.slots = NULL};
}

/* The key's slot, or the free one that it would take. */
static uint64_t *unwritten_find_slot(const struct unwritten *unwritten, uint64_t key) {
    uint32_t at = (uint32_t)key & (unwritten->room - 1);
    while (unwritten->slots[at] != 0 && unwritten->slots[at] != key) {
        at = (at + 1) & (unwritten->room - 1);
    }
    return &unwritten->slots[at];
}

/* false: no memory, or too many. */
static bool unwritten_make_room(struct unwritten *unwritten) {
    struct unwritten larger = *unwritten;
    if (2 * unwritten->count < unwritten->room) {
        return true;
    }
    larger.room = unwritten->room > 0 ? 2 * unwritten->room : ROOM_MIN;
    larger.slots = unwritten->count < UNWRITTEN_KEYS_MAX
                       ? memory_allocate_zeroed(larger.room * sizeof *larger.slots)
                       : NULL;
    if (larger.slots == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < unwritten->room; i++) {
        if (unwritten->slots[i] != 0) {
            *unwritten_find_slot(&larger, unwritten->slots[i]) = unwritten->slots[i];
        }
    }
    memory_free(unwritten->slots);
    *unwritten = larger;
    return true;
}

static void unwritten_add_key(struct unwritten *unwritten, uint32_t database, struct bytes name) {
    if (unwritten->has_all || !unwritten_make_room(unwritten)) {
        unwritten->has_all = true;
        return;
    }
    uint64_t key = unwritten_key(database, name);
    uint64_t *slot = unwritten_find_slot(unwritten, key);
    unwritten->count += *slot == 0;
    *slot = key;
}

void unwritten_add_effect(struct unwritten *unwritten, const struct effect *effect) {
    bool is_staged = effect->database == REGISTRY_STAGING;
    if (effect->database == REGISTRY_HISTORY || effect->database == REGISTRY_ONCE ||
        effect->database == REGISTRY_TICKETS || (is_staged && effect->kind != EFFECT_RENAME)) {
        return; /* no command that only reads shows it */
    }
    switch (effect->kind) {
    case EFFECT_PUT:
    case EFFECT_TAKE:
    case EFFECT_CUT:
    case EFFECT_OPTIONS:
    case EFFECT_TAGS:
    case EFFECT_STATE:
    case EFFECT_NOTE:
        break;
    case EFFECT_RENAME:
    case EFFECT_COPY:
        unwritten_add_key(unwritten, effect->to_database, effect->to_name);
        unwritten->has_names = true;
        if (is_staged) {
            return;
        }
        break;
    case EFFECT_FLUSH:
        unwritten->has_all = true;
        unwritten->has_names = true;
        return;
    case EFFECT_CREATE:
    case EFFECT_REMOVE:
    case EFFECT_EXPIRE:
    case EFFECT_FILL:
        unwritten->has_names = true;
    }
    unwritten->has_names |= effect->database >= REGISTRY_SYSTEM;
    unwritten_add_key(unwritten, effect->database, effect->name);
}

void unwritten_add_group(struct unwritten *unwritten, struct bytes payload) {
    struct effect_decoder *decoder = memory_allocate(sizeof *decoder);
    enum effect_record record = EFFECT_RECORD_BAD;
    if (decoder != NULL) {
        effect_bytes_decode_begin(decoder, payload);
        while ((record = effect_bytes_decode(decoder)) == EFFECT_RECORD_EFFECT) {
            unwritten_add_effect(unwritten, &decoder->effect);
        }
    }
    if (record != EFFECT_RECORD_END) {
        unwritten->has_all = true;
        unwritten->has_names = true;
    }
    memory_free(decoder);
}

bool unwritten_has(const struct unwritten *unwritten, uint64_t key) {
    return unwritten->has_all ||
           (unwritten->count > 0 && *unwritten_find_slot(unwritten, key) == key);
}
