/* See heartbeat.h. */
#include "server/loop/heartbeat.h"

#include "server/system/service.h"

/* The manager's time for a start is extended, because loading may take longer. */
enum { PERIOD_MS = 1000, START_EXTENSION_S = 60 };

static void heartbeat_tell_loading(const struct heartbeat *heartbeat) {
    struct persistence_info info;
    persistence_describe(heartbeat->persistence, &info);
    service_tell("STATUS=Loading boards: %.0f%%, %llu members\nEXTEND_TIMEOUT_USEC=%lld",
                 info.loading_percent, (unsigned long long)info.loading_members,
                 START_EXTENSION_S * 1000000LL);
}

static void heartbeat_on_time(uv_timer_t *timer) {
    const struct heartbeat *heartbeat = timer->data;
    if (heartbeat->is_loading) {
        heartbeat_tell_loading(heartbeat);
    }
    service_ping();
}

/* Twice in the time in which a ping is expected, as sd_watchdog_enabled(3) advises. */
static uint64_t heartbeat_period_ms(void) {
    uint64_t half_ms = service_ping_interval_us() / 2000;
    if (half_ms == 0 || half_ms > PERIOD_MS) {
        return PERIOD_MS;
    }
    return half_ms;
}

bool heartbeat_start(struct heartbeat *heartbeat, uv_loop_t *loop,
                     const struct persistence *persistence) {
    if (!service_is_watched()) {
        return true;
    }
    heartbeat->persistence = persistence;
    heartbeat->is_loading = true;
    heartbeat->timer.data = heartbeat;
    if (uv_timer_init(loop, &heartbeat->timer) != 0) {
        return false;
    }
    heartbeat->is_running = true;
    uv_unref((uv_handle_t *)&heartbeat->timer);
    heartbeat_tell_loading(heartbeat);
    return uv_timer_start(&heartbeat->timer, heartbeat_on_time, heartbeat_period_ms(),
                          heartbeat_period_ms()) == 0;
}

void heartbeat_ready(struct heartbeat *heartbeat) {
    if (heartbeat->is_loading) {
        heartbeat->is_loading = false;
        service_tell("READY=1\nSTATUS=Serving");
    }
}

void heartbeat_stop(struct heartbeat *heartbeat) {
    if (heartbeat->is_running) {
        heartbeat->is_running = false;
        uv_close((uv_handle_t *)&heartbeat->timer, NULL);
    }
}
