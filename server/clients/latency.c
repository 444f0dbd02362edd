/* See latency.h. */
#include "server/clients/latency.h"

#include <stdio.h>
#include <string.h>

/* event_count if there is no such event. */
static uint32_t latency_event_index(const struct latency *latency, struct bytes name) {
    uint32_t i = 0;
    while (i < latency->event_count &&
           !bytes_equal(bytes_from_text(latency->events[i].name), name)) {
        i++;
    }
    return i;
}

const struct latency_event *latency_find(const struct latency *latency, struct bytes name) {
    uint32_t i = latency_event_index(latency, name);
    return i < latency->event_count ? &latency->events[i] : NULL;
}

/* NULL: no room for another name. */
static struct latency_event *latency_find_or_create(struct latency *latency, const char *name) {
    uint32_t i = latency_event_index(latency, bytes_from_text(name));
    if (i == LATENCY_EVENTS_MAX) {
        return NULL;
    }
    struct latency_event *event = &latency->events[i];
    if (i == latency->event_count) {
        latency->event_count++;
        *event = (struct latency_event){0};
        snprintf(event->name, sizeof event->name, "%s", name);
    }
    return event;
}

void latency_add(struct latency *latency, const char *name, uint32_t latency_ms,
                 int64_t unix_time_s) {
    struct latency_event *event = latency_find_or_create(latency, name);
    if (event == NULL) {
        return;
    }
    if (latency_ms > event->longest_ms) {
        event->longest_ms = latency_ms;
    }
    uint32_t newest = (event->next + LATENCY_HISTORY_MAX - 1) % LATENCY_HISTORY_MAX;
    if (event->count > 0 && event->history[newest].unix_time_s == (uint32_t)unix_time_s) {
        if (latency_ms > event->history[newest].latency_ms) {
            event->history[newest].latency_ms = latency_ms;
        }
        return;
    }
    event->history[event->next].unix_time_s = (uint32_t)unix_time_s;
    event->history[event->next].latency_ms = latency_ms;
    event->next = (event->next + 1) % LATENCY_HISTORY_MAX;
    event->count += event->count < LATENCY_HISTORY_MAX ? 1 : 0;
}

uint32_t latency_reset(struct latency *latency, struct bytes name) {
    uint32_t i = latency_event_index(latency, name);
    if (i == latency->event_count) {
        return 0;
    }
    latency->event_count--;
    memmove(&latency->events[i], &latency->events[i + 1],
            (latency->event_count - i) * sizeof latency->events[i]);
    return 1;
}

uint32_t latency_reset_all(struct latency *latency) {
    uint32_t forgotten = latency->event_count;
    latency->event_count = 0;
    return forgotten;
}
