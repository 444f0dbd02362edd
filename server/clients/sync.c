/* See sync.h. */
#include "server/clients/sync.h"

#include "server/system/clock.h"

const char *sync_state_name(enum sync_state state) {
    static const char *const names[SYNC_STATES] = {"off", "replica", "closed", "pulling", "open"};
    CHECK(state < SYNC_STATES);
    return names[state];
}

bool sync_is_lease_over(const struct sync *sync) {
    return sync->state == SYNC_OPEN && sync->has_lease &&
           (int64_t)(clock_monotonic_us() / 1000) >= sync->lease_end_ms;
}

uint64_t sync_safe_group(const struct sync *sync, uint64_t disk_group) {
    if (sync->state == SYNC_OFF || sync->state == SYNC_REPLICA) {
        return disk_group;
    }
    if (sync->state != SYNC_OPEN) {
        return 0; /* what waits goes on waiting: it may open again */
    }
    if (sync_is_lease_over(sync)) {
        return 0;
    }
    return sync->safe_group < disk_group ? sync->safe_group : disk_group;
}

int64_t sync_held_ms(const struct sync *sync) {
    int64_t now_ms = (int64_t)(clock_monotonic_us() / 1000);
    return sync->state == SYNC_OPEN && sync->held_since_ms != 0 ? now_ms - sync->held_since_ms : 0;
}
