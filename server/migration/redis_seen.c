#include "server/migration/redis_seen.h"

void redis_seen_deinit(struct redis_seen *seen) {
    for (uint32_t i = 0; i < REDIS_SEEN_PARTS; i++) {
        redis_names_deinit(&seen->parts[i]);
    }
    seen->used_count = 0;
}

void redis_seen_clear(struct redis_seen *seen) {
    for (uint32_t i = 0; i < seen->used_count; i++) {
        redis_names_forget(&seen->parts[seen->used[i]]);
    }
    seen->used_count = 0;
}

/* Seeds that differ in few bits would give short names of different groups the same fingerprint. */
#define GROUP_FACTOR UINT64_C(0x9e3779b97f4a7c15)

enum redis_names_added redis_seen_add(struct redis_seen *seen, uint64_t group, struct bytes name) {
    uint64_t print = redis_names_print(seen->seed + group * GROUP_FACTOR, name);
    uint32_t part = (uint32_t)(print >> 32) % REDIS_SEEN_PARTS;
    bool is_first = seen->parts[part].count == 0;
    enum redis_names_added added = redis_names_add(&seen->parts[part], print);
    if (is_first && added == REDIS_NAMES_NEW) {
        seen->used[seen->used_count++] = (uint16_t)part;
    }
    return added;
}
