/* Finding keys in stages, each of which ends with a fetch that the next one needs. */
#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_parts.h"
#include "skiplist/prefetch.h"

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
        prefetch_line(registry_list_at(&in->list, index));
    }
}

void registry_prefetch_key(const struct registry *registry, struct registry_prefetch *state) {
    const struct database *in = registry_read(registry, state->database);
    if (!state->is_recent && state->index != UINT32_MAX) {
        state->key = registry_key_at(in, state->index);
        prefetch_lines(state->key, sizeof(*state->key) + state->name.size);
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
