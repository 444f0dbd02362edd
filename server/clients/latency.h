/* LATENCY LATEST, HISTORY, RESET: named events that took at least latency-monitor-threshold. */
#ifndef SERVER_LATENCY_H
#define SERVER_LATENCY_H

#include "codec/bytes.h"

enum { LATENCY_EVENTS_MAX = 8, LATENCY_HISTORY_MAX = 160 };
struct latency_event {
    /* "command", "fast-command", "expire-cycle", "roll-cycle", "tick", "tick-cpu" */
    char name[32];
    uint32_t longest_ms;
    uint32_t count, next; /* ring buffer */
    struct {
        uint32_t unix_time_s;
        uint32_t latency_ms;
    } history[LATENCY_HISTORY_MAX];
};
struct latency {
    struct latency_event events[LATENCY_EVENTS_MAX];
    uint32_t event_count;
};
/* Keeps one sample per second, the longest. Once there are LATENCY_EVENTS_MAX events, samples with
 * new names are ignored. */
void latency_add(struct latency *latency, const char *name, uint32_t latency_ms,
                 int64_t unix_time_s);
/* NULL: no such event. */
const struct latency_event *latency_find(const struct latency *latency, struct bytes name);
/* Returns the number of events cleared. */
uint32_t latency_reset(struct latency *latency, struct bytes name);
uint32_t latency_reset_all(struct latency *latency);

#endif
