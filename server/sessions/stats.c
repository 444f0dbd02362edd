/* Counters of the running server. The hot path only increments fields (durations_add);
 * everything else here runs once a second, for slow commands, or on request. */
#include "server/sessions/stats.h"

#include <stdio.h>
#include <string.h>

#include "codec/memory.h"

bool stats_init(struct stats *stats, uint32_t command_count) {
    size_t size = (size_t)command_count * sizeof(struct stats_command);
    *stats = (struct stats){
        .commands = memory_allocate_zeroed(size > 0 ? size : 1),
        .command_count = command_count,
    };
    if (stats->commands == NULL) {
        return false;
    }
    stats->startup_memory_size = memory_used();
    return true;
}

void stats_deinit(struct stats *stats) {
    memory_free(stats->commands);
    *stats = (struct stats){0};
}

void stats_reset(struct stats *stats) {
    memset(stats->commands, 0, (size_t)stats->command_count * sizeof(struct stats_command));
    const struct stats before = *stats;
    *stats = (struct stats){
        .commands = before.commands,
        .command_count = before.command_count,
        .startup_memory_size = before.startup_memory_size,
        .sampled_at_ms = before.sampled_at_ms,
        .network_count = before.network_count,
    };
    memcpy(stats->networks, before.networks, sizeof stats->networks);
}

void stats_count_error(struct stats *stats, const char *prefix) {
    for (uint32_t i = 0; i < stats->error_kind_count; i++) {
        if (strcmp(stats->errors[i].prefix, prefix) == 0) {
            stats->errors[i].count++;
            return;
        }
    }
    if (stats->error_kind_count < STATS_ERROR_KINDS_MAX) {
        struct stats_error *error = &stats->errors[stats->error_kind_count++];
        snprintf(error->prefix, sizeof error->prefix, "%s", prefix);
        error->count = 1;
    }
}

static struct stats_limited *stats_find_limited(struct stats *stats, struct bytes board) {
    char name[STATS_BOARD_MAX];
    uint32_t i = 0;
    size_t size = board.size < sizeof name ? board.size : sizeof name - 1;
    for (size_t at = 0; at < size; at++) {
        char byte = board.at[at];
        name[at] = byte > ' ' && byte <= '~' && byte != '"' && byte != '\\' ? byte : '_';
    }
    name[size] = '\0';
    while (i < stats->limited_count && i < STATS_LIMITED_MAX - 1 &&
           strcmp(stats->limited[i].board, name) != 0) {
        i++;
    }
    if (i == stats->limited_count) {
        stats->limited_count++;
        snprintf(stats->limited[i].board, sizeof stats->limited[i].board, "%s",
                 i < STATS_LIMITED_MAX - 1 ? name : "*");
    }
    return &stats->limited[i];
}

void stats_count_limit(struct stats *stats, struct bytes board, enum limit limit) {
    stats_find_limited(stats, board)->refused[limit]++;
}

void stats_count_ticket(struct stats *stats, struct bytes board, enum ticket_refusal refusal) {
    stats_find_limited(stats, board)->tickets[refusal]++;
}

void stats_count_held(struct stats *stats, struct bytes board, enum stats_held why) {
    stats_find_limited(stats, board)->held[why]++;
}

void stats_sample(struct stats *stats, int64_t monotonic_ms) {
    int64_t elapsed_ms = monotonic_ms - stats->sampled_at_ms;
    if (elapsed_ms <= 0) {
        return; /* no time has passed: keep the previous rates */
    }
    if (stats->sampled_at_ms != 0) {
        double seconds = (double)elapsed_ms / 1000;
        uint64_t commands = stats->commands_processed - stats->sampled_commands;
        uint64_t input = stats->input_bytes - stats->sampled_input;
        uint64_t output = stats->output_bytes - stats->sampled_output;
        stats->commands_per_second = (double)commands / seconds;
        stats->input_kbps = (double)input / 1024 / seconds;
        stats->output_kbps = (double)output / 1024 / seconds;
    }
    stats->sampled_at_ms = monotonic_ms;
    stats->sampled_commands = stats->commands_processed;
    stats->sampled_input = stats->input_bytes;
    stats->sampled_output = stats->output_bytes;
}

uint64_t stats_percentile_us(const struct stats_command *command, double share) {
    uint64_t seen = 0;
    for (int i = 0; i < DURATIONS_BUCKETS; i++) {
        seen += command->calls.buckets[i];
        if (seen > 0 && (double)seen >= share * (double)command->calls.count) {
            return (uint64_t)1 << i;
        }
    }
    return 0;
}

/* ---- SLOWLOG ---- */

void stats_slowlog_deinit(struct slowlog *slowlog) {
    stats_slowlog_reset(slowlog);
    memory_free(slowlog->entries);
    *slowlog = (struct slowlog){0};
}

static void stats_slowlog_drop_oldest(struct slowlog *slowlog) {
    memory_free(slowlog->entries[slowlog->first].texts);
    slowlog->first = (slowlog->first + 1) % slowlog->capacity;
    slowlog->count--;
}

void stats_slowlog_reset(struct slowlog *slowlog) {
    while (slowlog->count > 0) {
        stats_slowlog_drop_oldest(slowlog);
    }
}

static bool stats_slowlog_reserve(struct slowlog *slowlog) {
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

static size_t stats_slowlog_print_arg(const struct request *request, bool is_secret, uint32_t index,
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

static char *stats_slowlog_put_text(char **at, const char *text, size_t size) {
    char *begin = *at;
    if (size > 0) {
        memcpy(begin, text, size);
    }
    begin[size] = '\0';
    *at = begin + size + 1;
    return begin;
}

static bool stats_slowlog_fill_texts(struct slowlog_entry *entry, const struct request *request,
                                     bool is_secret, const char *client_address,
                                     const char *client_name) {
    char args[SLOWLOG_ARGS_MAX][ARG_SIZE_MAX];
    size_t size = strlen(client_address) + strlen(client_name) + 2;
    for (uint32_t i = 0; i < entry->arg_count; i++) {
        entry->arg_sizes[i] = stats_slowlog_print_arg(request, is_secret, i, args[i]);
        size += entry->arg_sizes[i] + 1;
    }
    entry->texts = memory_allocate_apart(size);
    if (entry->texts == NULL) {
        return false;
    }
    char *at = entry->texts;
    for (uint32_t i = 0; i < entry->arg_count; i++) {
        entry->args[i] = stats_slowlog_put_text(&at, args[i], entry->arg_sizes[i]);
    }
    entry->client_address = stats_slowlog_put_text(&at, client_address, strlen(client_address));
    entry->client_name = stats_slowlog_put_text(&at, client_name, strlen(client_name));
    return true;
}

void stats_slowlog_add(struct slowlog *slowlog, uint32_t length_max, const struct request *request,
                       bool is_secret, uint64_t elapsed_us, int64_t unix_time_s,
                       const char *client_address, const char *client_name) {
    struct slowlog_entry entry = {
        .id = slowlog->next_id++,
        .unix_time_s = unix_time_s,
        .elapsed_us = elapsed_us,
        .arg_count = request->count < SLOWLOG_ARGS_MAX ? request->count : SLOWLOG_ARGS_MAX,
    };
    while (slowlog->count > 0 && slowlog->count >= length_max) {
        stats_slowlog_drop_oldest(slowlog);
    }
    if (length_max == 0 || !stats_slowlog_reserve(slowlog) ||
        !stats_slowlog_fill_texts(&entry, request, is_secret, client_address, client_name)) {
        return;
    }
    slowlog->entries[(slowlog->first + slowlog->count) % slowlog->capacity] = entry;
    slowlog->count++;
}

const struct slowlog_entry *stats_slowlog_newest(const struct slowlog *slowlog, uint32_t i) {
    CHECK(i < slowlog->count);
    return &slowlog->entries[(slowlog->first + slowlog->count - 1 - i) % slowlog->capacity];
}

/* ---- LATENCY ---- */

/* event_count if there is no such event. */
static uint32_t stats_latency_index(const struct latency *latency, struct bytes name) {
    uint32_t i = 0;
    while (i < latency->event_count &&
           !bytes_equal(bytes_from_text(latency->events[i].name), name)) {
        i++;
    }
    return i;
}

const struct latency_event *stats_latency_find(const struct latency *latency, struct bytes name) {
    uint32_t i = stats_latency_index(latency, name);
    return i < latency->event_count ? &latency->events[i] : NULL;
}

void stats_latency_add(struct latency *latency, const char *name, uint32_t latency_ms,
                       int64_t unix_time_s) {
    uint32_t i = stats_latency_index(latency, bytes_from_text(name));
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

uint32_t stats_latency_reset(struct latency *latency, struct bytes name) {
    uint32_t i = stats_latency_index(latency, name);
    if (i == latency->event_count) {
        return 0;
    }
    latency->event_count--;
    memmove(&latency->events[i], &latency->events[i + 1],
            (latency->event_count - i) * sizeof latency->events[i]);
    return 1;
}

uint32_t stats_latency_reset_all(struct latency *latency) {
    uint32_t forgotten = latency->event_count;
    latency->event_count = 0;
    return forgotten;
}
