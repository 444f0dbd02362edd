/* See sync.h. */
#include "server/replication/sync.h"

const char *sync_state_name(enum sync_state state) {
    static const char *const names[SYNC_STATES] = {"off", "replica", "closed", "pulling", "open"};
    CHECK(state < SYNC_STATES);
    return names[state];
}

bool sync_is_lease_over(const struct sync *sync, int64_t now_ms) {
    return sync->state == SYNC_OPEN && sync->has_lease && now_ms >= sync->lease_end_ms;
}

uint64_t sync_safe_group(const struct sync *sync, uint64_t disk_group, int64_t now_ms) {
    if (sync->state != SYNC_OPEN) {
        return disk_group;
    }
    if (sync_is_lease_over(sync, now_ms)) {
        return 0;
    }
    return sync->safe_group < disk_group ? sync->safe_group : disk_group;
}

int64_t sync_held_ms(const struct sync *sync, int64_t now_ms) {
    return sync->state == SYNC_OPEN && sync->held_since_ms != 0 ? now_ms - sync->held_since_ms : 0;
}
