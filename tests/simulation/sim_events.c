/* A binary heap, and a hash. See sim_events.h. */
#include "tests/simulation/sim_events.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct event {
    int64_t at;
    uint64_t sequence;
    sim_event_run *run;
    void *context;
    uint64_t number;
};

static struct {
    struct event *heap;
    size_t count, capacity;
    uint64_t sequence;
    int64_t now;
    uint64_t run_count;
    bool is_shown;
    uint64_t hash;
} events;

void (*sim_on_fail)(const char *reason);

int64_t sim_now(void) {
    return events.now;
}

uint64_t sim_event_count(void) {
    return events.run_count;
}

static bool events_is_before(const struct event *a, const struct event *b) {
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

void sim_at(int64_t at, sim_event_run *run, void *context, uint64_t number) {
    if (events.count == events.capacity) {
        events.capacity = events.capacity == 0 ? 1024 : events.capacity * 2;
        events.heap = realloc(events.heap, events.capacity * sizeof *events.heap);
    }
    struct event event = {at > events.now ? at : events.now, events.sequence++, run, context,
                          number};
    size_t i = events.count++;
    while (i > 0 && events_is_before(&event, &events.heap[(i - 1) / 2])) {
        events.heap[i] = events.heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    events.heap[i] = event;
}

static struct event events_take_first(void) {
    struct event first = events.heap[0];
    struct event last = events.heap[--events.count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < events.count &&
            events_is_before(&events.heap[child + 1], &events.heap[child])) {
            child++;
        }
        if (child >= events.count || !events_is_before(&events.heap[child], &last)) {
            break;
        }
        events.heap[i] = events.heap[child];
        i = child;
    }
    events.heap[i] = last;
    return first;
}

void sim_run_until(int64_t at) {
    while (events.count > 0 && events.heap[0].at <= at) {
        struct event event = events_take_first();
        events.now = event.at;
        events.run_count++;
        event.run(event.context, event.number);
    }
    events.now = events.now < at ? at : events.now;
}

/* ---- the trace ---- */

void sim_trace(const char *format, ...) {
    char line[1024];
    va_list arguments;
    int size = snprintf(line, sizeof line, "%5lld.%06d ", (long long)(events.now / SIM_S),
                        (int)(events.now % SIM_S / SIM_US));
    va_start(arguments, format);
    size += vsnprintf(line + size, sizeof line - (size_t)size, format, arguments);
    va_end(arguments);
    size = size < (int)sizeof line ? size : (int)sizeof line - 1;
    events.hash = XXH3_64bits_withSeed(line, (size_t)size, events.hash);
    if (events.is_shown) {
        printf("%s\n", line);
    }
}

void sim_trace_show(bool is_shown) {
    events.is_shown = is_shown;
}

uint64_t sim_trace_hash(void) {
    return events.hash;
}

void sim_fail(const char *format, ...) {
    char reason[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    sim_trace("FAILED %s", reason);
    sim_on_fail(reason);
    abort();
}
