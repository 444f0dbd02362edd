/* Expiry: points in time, and durations.
 *
 * Durations shift all at once when the clock is corrected, by the offset of their heaps. Whoever records effects knows
 * them as points in time, so each is told then: in steps, by a scan in hash order, since the order of keys in lists
 * changes meanwhile. What is set, renamed or copied during the scan tells its expiry itself. */
#include "skiplist/keyspace/registry_private.h"

enum registry_status registry_expiry_set(struct registry *registry, struct registry_key *key,
                                         int64_t expire_at_ms, bool is_lasting) {
    struct expiry *heaps = registry_database(registry, key->database)->heaps;
    struct expiry *before = &heaps[key->is_lasting];
    struct expiry *after = &heaps[is_lasting];
    bool is_set = expire_at_ms != REGISTRY_NO_EXPIRY;
    if (is_set && !expiry_reserve(after)) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    if (key->expiry_place != EXPIRY_NOWHERE) {
        expiry_remove(before, &key->expiry_place);
    }
    if (is_set) {
        expiry_put(after, expire_at_ms, &key->expiry_place);
    }
    expiry_trim(before);
    key->is_lasting = is_lasting;
    effect_emit_key(registry, EFFECT_EXPIRE, key);
    registry_tell(registry, key->database, registry_name(key));
    return REGISTRY_OK;
}

static struct expiry_entry registry_expiry_first(const struct registry *registry) {
    return expiry_earlier(registry_first(registry, HEAP_EXPIRY),
                          registry_first(registry, HEAP_LASTING));
}

/* At most so many parts of what a key means to others at a time. */
enum { SETTLED_MAX = 64 };

uint32_t registry_expiry_remove_due(struct registry *registry, int64_t now_ms, uint32_t keys_max) {
    uint32_t count = 0;
    while (count < keys_max && !registry->is_still) {
        struct expiry_entry first = registry_expiry_first(registry);
        if (first.place == NULL || first.time_ms > now_ms) {
            break;
        }
        void *at = (char *)first.place - offsetof(struct registry_key, expiry_place);
        struct registry_key *key = at;
        struct registry_key *due = registry_is_over(key, first.time_ms)
                                       ? key
                                       : registry_roll_find_due_base(registry, key, now_ms);
        if (due != NULL) {
            if (!registry_roll_key(registry, due, now_ms)) {
                break;
            }
            count++;
            continue;
        }
        /* Remove the key, or take a step towards that, which is as much work as many keys. */
        uint32_t work;
        enum key_expiry status = registry_before_expiry(registry, key, SETTLED_MAX, &work);
        if (status == KEY_EXPIRY_OUT_OF_MEMORY ||
            (status == KEY_EXPIRY_READY && !registry_expire(registry, key))) {
            break;
        }
        count = work > 0 ? keys_max : count + 1;
    }
    return count;
}

int64_t registry_expiry_next_due(const struct registry *registry) {
    struct expiry_entry first =
        expiry_earlier(registry_first(registry, HEAP_ROLLS), registry_expiry_first(registry));
    int64_t copy_ms = registry_roll_archive_next_due(registry);
    if (registry->is_still || first.place == NULL) {
        return registry->is_still ? REGISTRY_NO_EXPIRY : copy_ms;
    }
    return copy_ms == REGISTRY_NO_EXPIRY || first.time_ms < copy_ms ? first.time_ms : copy_ms;
}

uint32_t registry_expiry_count(const struct registry *registry, uint32_t database) {
    const struct expiry *heaps = registry_read(registry, database)->heaps;
    return heaps[HEAP_EXPIRY].count + heaps[HEAP_LASTING].count;
}

int64_t registry_expiry_average_ttl_ms(const struct registry *registry, uint32_t database,
                                       int64_t now_ms) {
    const struct expiry *heaps = registry_read(registry, database)->heaps;
    uint32_t count = registry_expiry_count(registry, database);
    if (count == 0) {
        return 0;
    }
    expiry_sum sum_ms = expiry_sum_ms(&heaps[HEAP_EXPIRY]) + expiry_sum_ms(&heaps[HEAP_LASTING]);
    expiry_sum average = (sum_ms - (expiry_sum)now_ms * count) / count;
    if (average <= 0) {
        return 0;
    }
    return average < INT64_MAX ? (int64_t)average : INT64_MAX;
}

/* ---- durations ---- */

void registry_expiry_shift(struct registry *registry, int64_t offset_ms) {
    registry->offset_ms = offset_ms;
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
        registry->databases[i].heaps[HEAP_LASTING].offset_ms = offset_ms;
    }
}

void registry_expiry_set_offset(struct registry *registry, int64_t offset_ms) {
    if (registry->is_passive || registry->is_offset_held) {
        registry->is_offset_held = registry->is_passive;
        registry->offset_passed_ms = offset_ms - registry->offset_ms;
        return;
    }
    int64_t shift_ms = offset_ms - registry->offset_passed_ms - registry->offset_ms;
    if (shift_ms > -REGISTRY_SHIFT_MS && shift_ms < REGISTRY_SHIFT_MS) {
        return;
    }
    registry_expiry_shift(registry, registry->offset_ms + shift_ms);
    registry_walk_pass_begin(registry, &registry->telling, 0, REGISTRY_ALL_DATABASES);
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
        if (registry->databases[i].heaps[HEAP_LASTING].count == 0) {
            registry->telling.left[i] = 0;
        }
    }
}

bool registry_expiry_tell_shifted(struct registry *registry, uint32_t names_max) {
    struct registry_pass *pass = &registry->telling;
    for (uint32_t i = 0; i < names_max && !registry_walk_pass_is_over(pass); i++) {
        struct registry_key *key = registry_walk_pass_next(registry, pass, INT64_MIN);
        if (key != NULL && key->is_lasting && key->expiry_place != EXPIRY_NOWHERE) {
            effect_emit_key(registry, EFFECT_EXPIRE, key);
        }
    }
    if (registry_walk_pass_is_over(pass) || registry->listeners == NULL) {
        registry_walk_pass_end(registry, pass);
    }
    return pass->is_going;
}
