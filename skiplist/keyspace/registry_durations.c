/* Expiries that were given as durations, when the clock is corrected.
 *
 * They shift all at once, by the offset of their heaps. Whoever records effects knows them as points in time, so
 * each is told then: in steps, by a scan in hash order, since the order of keys in lists changes meanwhile. What is
 * set, renamed or copied during the scan tells its expiry itself. */
#include "skiplist/keyspace/registry_emit.h"

void registry_shift_durations(struct registry *registry, int64_t offset_ms) {
    registry->offset_ms = offset_ms;
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
        registry->databases[i].heaps[HEAP_LASTING].offset_ms = offset_ms;
    }
}

void registry_set_offset(struct registry *registry, int64_t offset_ms) {
    if (registry->is_passive || registry->is_offset_held) {
        registry->is_offset_held = registry->is_passive;
        registry->offset_passed_ms = offset_ms - registry->offset_ms;
        return;
    }
    int64_t shift_ms = offset_ms - registry->offset_passed_ms - registry->offset_ms;
    if (shift_ms > -REGISTRY_SHIFT_MS && shift_ms < REGISTRY_SHIFT_MS) {
        return;
    }
    registry_shift_durations(registry, registry->offset_ms + shift_ms);
    registry->telling = (struct registry_telling){.is_going = true};
}

static void registry_durations_tell_expiry(void *context, const struct registry_key *key) {
    struct registry *registry = context;
    if (key->is_lasting && key->expiry_place != EXPIRY_NOWHERE) {
        registry_emit_key(registry, EFFECT_EXPIRE,
                          registry_key_at(registry_database(registry, key->database), key->index));
    }
}

/* One step in a database that has durations. */
static void registry_durations_tell_some(struct registry *registry, uint32_t names_max) {
    enum { NAME_WORK = 1000 };
    struct registry_telling *telling = &registry->telling;
    const struct scan_limits limits = {.count = names_max, .work_max = names_max * NAME_WORK};
    telling->cursor = registry_scan(registry, telling->database, telling->cursor, &limits,
                                    INT64_MIN, registry_durations_tell_expiry, registry);
    telling->database += telling->cursor == 0;
}

bool registry_tell_durations(struct registry *registry, uint32_t names_max) {
    struct registry_telling *telling = &registry->telling;
    while (telling->is_going) {
        if (telling->database == REGISTRY_ALL_DATABASES || registry->listeners == NULL) {
            telling->is_going = false;
        } else if (registry->databases[telling->database].heaps[HEAP_LASTING].count == 0) {
            telling->cursor = 0;
            telling->database++;
        } else {
            registry_durations_tell_some(registry, names_max);
            break;
        }
    }
    return telling->is_going;
}

void registry_set_passive(struct registry *registry, bool is_passive) {
    enum { STEP = 256 };
    while (is_passive && registry_tell_durations(registry, STEP)) {}
    registry->is_passive = is_passive;
    registry->is_still = registry->is_passive || registry->is_held;
}

void registry_set_held(struct registry *registry, bool is_held) {
    registry->is_held = is_held;
    registry->is_still = registry->is_passive || registry->is_held;
}
