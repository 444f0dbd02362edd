/* See slow.h. */
#include "server/sessions/slow.h"

#include <stdio.h>
#include <string.h>

#include "codec/memory.h"

void slow_log_deinit(struct slowlog *slowlog) {
    slow_log_reset(slowlog);
    memory_free(slowlog->entries);
    *slowlog = (struct slowlog){0};
}

static void slow_drop_oldest(struct slowlog *slowlog) {
    memory_free(slowlog->entries[slowlog->first].texts);
    slowlog->first = (slowlog->first + 1) % slowlog->capacity;
    slowlog->count--;
}

void slow_log_reset(struct slowlog *slowlog) {
    while (slowlog->count > 0) {
        slow_drop_oldest(slowlog);
    }
}

static bool slow_reserve_entry(struct slowlog *slowlog) {
    if (slowlog->count < slowlog->capacity) {
        return true;
    }
    uint32_t capacity = slowlog->capacity < 16 ? 16 : slowlog->capacity * 2;
    struct slowlog_entry *entries = memory_allocate_apart((size_t)capacity * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < slowlog->count; i++) {
        entries[i] = slowlog->entries[(slowlog->first + i) % slowlog->capacity];
    }
    memory_free(slowlog->entries);
    slowlog->entries = entries;
    slowlog->capacity = capacity;
    slowlog->first = 0;
    return true;
}

/* The text kept of one argument. out has room for SLOWLOG_TEXT_MAX bytes and the note after it. */
enum { ARG_SIZE_MAX = SLOWLOG_TEXT_MAX + 48 };

static size_t slow_print_arg(const struct request *request, bool is_secret, uint32_t index,
                             char *out) {
    uint32_t last = SLOWLOG_ARGS_MAX - 1;
    if (index == last && request->count > SLOWLOG_ARGS_MAX) {
        return (size_t)snprintf(out, ARG_SIZE_MAX, "... (%u more arguments)",
                                request->count - last);
    }
    struct bytes arg = is_secret && index > 0 ? BYTES("(redacted)") : request->args[index];
    if (arg.size <= SLOWLOG_TEXT_MAX) {
        if (arg.size > 0) {
            memcpy(out, arg.at, arg.size);
        }
        return arg.size;
    }
    memcpy(out, arg.at, SLOWLOG_TEXT_MAX);
    return SLOWLOG_TEXT_MAX + (size_t)snprintf(out + SLOWLOG_TEXT_MAX, 48, "... (%zu more bytes)",
                                               arg.size - SLOWLOG_TEXT_MAX);
}

static char *slow_put_text(char **at, const char *text, size_t size) {
    char *begin = *at;
    if (size > 0) {
        memcpy(begin, text, size);
    }
    begin[size] = '\0';
    *at = begin + size + 1;
    return begin;
}

static bool slow_fill_texts(struct slowlog_entry *entry, const struct request *request,
                            bool is_secret, const char *client_address, const char *client_name) {
    char args[SLOWLOG_ARGS_MAX][ARG_SIZE_MAX];
    size_t size = strlen(client_address) + strlen(client_name) + 2;
    for (uint32_t i = 0; i < entry->arg_count; i++) {
        entry->arg_sizes[i] = slow_print_arg(request, is_secret, i, args[i]);
        size += entry->arg_sizes[i] + 1;
    }
    entry->texts = memory_allocate_apart(size);
    if (entry->texts == NULL) {
        return false;
    }
    char *at = entry->texts;
    for (uint32_t i = 0; i < entry->arg_count; i++) {
        entry->args[i] = slow_put_text(&at, args[i], entry->arg_sizes[i]);
    }
    entry->client_address = slow_put_text(&at, client_address, strlen(client_address));
    entry->client_name = slow_put_text(&at, client_name, strlen(client_name));
    return true;
}

void slow_log_add(struct slowlog *slowlog, uint32_t length_max, const struct request *request,
                  bool is_secret, uint64_t elapsed_us, int64_t unix_time_s,
                  const char *client_address, const char *client_name) {
    struct slowlog_entry entry = {
        .id = slowlog->next_id++,
        .unix_time_s = unix_time_s,
        .elapsed_us = elapsed_us,
        .arg_count = request->count < SLOWLOG_ARGS_MAX ? request->count : SLOWLOG_ARGS_MAX,
    };
    while (slowlog->count > 0 && slowlog->count >= length_max) {
        slow_drop_oldest(slowlog);
    }
    if (length_max == 0 || !slow_reserve_entry(slowlog) ||
        !slow_fill_texts(&entry, request, is_secret, client_address, client_name)) {
        return;
    }
    slowlog->entries[(slowlog->first + slowlog->count) % slowlog->capacity] = entry;
    slowlog->count++;
}

const struct slowlog_entry *slow_log_newest(const struct slowlog *slowlog, uint32_t i) {
    CHECK(i < slowlog->count);
    return &slowlog->entries[(slowlog->first + slowlog->count - 1 - i) % slowlog->capacity];
}

/* event_count if there is no such event. */
static uint32_t slow_event_index(const struct latency *latency, struct bytes name) {
    uint32_t i = 0;
    while (i < latency->event_count &&
           !bytes_equal(bytes_from_text(latency->events[i].name), name)) {
        i++;
    }
    return i;
}

const struct latency_event *slow_latency_find(const struct latency *latency, struct bytes name) {
    uint32_t i = slow_event_index(latency, name);
    return i < latency->event_count ? &latency->events[i] : NULL;
}

void slow_latency_add(struct latency *latency, const char *name, uint32_t latency_ms,
                      int64_t unix_time_s) {
    uint32_t i = slow_event_index(latency, bytes_from_text(name));
    if (i == LATENCY_EVENTS_MAX) { /* no room for another name */
        return;
    }
    struct latency_event *event = &latency->events[i];
    if (i == latency->event_count) {
        latency->event_count++;
        *event = (struct latency_event){0};
        snprintf(event->name, sizeof event->name, "%s", name);
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

uint32_t slow_latency_reset(struct latency *latency, struct bytes name) {
    uint32_t i = slow_event_index(latency, name);
    if (i == latency->event_count) {
        return 0;
    }
    latency->event_count--;
    memmove(&latency->events[i], &latency->events[i + 1],
            (latency->event_count - i) * sizeof latency->events[i]);
    return 1;
}

uint32_t slow_latency_reset_all(struct latency *latency) {
    uint32_t forgotten = latency->event_count;
    latency->event_count = 0;
    return forgotten;
}
