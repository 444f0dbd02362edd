/* Counters of the running server. The hot path only increments fields (durations_add);
 * everything here runs once a second, for slow commands, or on request. */
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
