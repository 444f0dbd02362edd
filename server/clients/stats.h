/* Counters of the running server, for INFO, LATENCY HISTOGRAM and SLOWLOG. Nothing here allocates
 * on the hot path. */
#ifndef SERVER_STATS_H
#define SERVER_STATS_H

#include "protocol/request.h"

enum {
    STATS_HISTOGRAM_BUCKETS = 32, /* bucket i counts calls of up to 2^i microseconds */
    STATS_ERROR_KINDS_MAX = 128,
    STATS_SLOWLOG_ARGS_MAX = 32,
    STATS_SLOWLOG_TEXT_MAX = 128,
};

struct stats_command {
    uint64_t calls;
    uint64_t failed_calls;   /* ended in an error */
    uint64_t rejected_calls; /* refused before running: arity, authentication, memory */
    uint64_t elapsed_ns;
    uint64_t histogram[STATS_HISTOGRAM_BUCKETS];
};

struct stats_error {
    char prefix[32];
    uint64_t count;
};

struct stats {
    struct stats_command *commands; /* by command_index */
    uint32_t command_count;
    struct stats_error errors[STATS_ERROR_KINDS_MAX];
    uint32_t error_kind_count;
    uint64_t connections_received, connections_rejected, connections_closed;
    uint64_t commands_processed;
    uint64_t input_bytes, output_bytes;
    uint64_t keyspace_hits, keyspace_misses;
    uint64_t error_replies;
    uint64_t unexpected_closed_output; /* closed by the output limits */
    uint64_t clients_evicted;          /* evicted by maxmemory-clients */
    /* The largest buffers of any one client at the last scan of all clients, about a second ago. */
    uint64_t input_buffer_max, output_buffer_max;
    uint64_t ticks;
    /* Rates per second over the last samples, updated by stats_sample once a second. */
    double commands_per_second, input_kbps, output_kbps;
    uint64_t sampled_commands, sampled_input, sampled_output;
    int64_t sampled_at_ms;
    /* The longest tick since startup or CONFIG RESETSTAT, in microseconds. */
    uint64_t tick_longest_us;
    uint64_t startup_memory_size; /* heap bytes in use when stats_init was called */
};

/* Zero all counters. false: out of memory. */
MUST_CHECK bool stats_init(struct stats *stats, uint32_t command_count);
void stats_deinit(struct stats *stats);
/* CONFIG RESETSTAT: reset every counter to zero. */
void stats_reset(struct stats *stats);
/* Clear the histogram of one command. */
void stats_reset_latency(struct stats *stats, uint32_t index);
/* Count an error whose text begins with prefix. The caller counts error_replies. Once there are
 * STATS_ERROR_KINDS_MAX prefixes, new ones are not counted. */
void stats_count_error(struct stats *stats, const char *prefix);
/* Called once a second: compute the rates since the last call. */
void stats_sample(struct stats *stats, int64_t monotonic_ms);
/* The upper bound, in microseconds, of the bucket that contains the given quantile (0.0 .. 1.0) of
 * a command's calls. 0 if there are no calls. */
uint64_t stats_percentile_us(const struct stats_command *command, double share);
static inline void stats_count_call(struct stats_command *command, uint64_t elapsed_ns) {
    uint64_t us = elapsed_ns / 1000;
    unsigned bucket = us <= 1 ? 0 : 64U - (unsigned)__builtin_clzll(us - 1);
    command->calls++;
    command->elapsed_ns += elapsed_ns;
    command->histogram[bucket < STATS_HISTOGRAM_BUCKETS ? bucket : STATS_HISTOGRAM_BUCKETS - 1]++;
}

/* SLOWLOG: the newest entries, in a ring buffer of owned copies. */
struct slowlog_entry {
    uint64_t id;
    int64_t unix_time_s;
    uint64_t elapsed_us;
    uint32_t arg_count; /* texts kept; the last may give the number of arguments omitted */
    char *args[STATS_SLOWLOG_ARGS_MAX];
    size_t arg_sizes[STATS_SLOWLOG_ARGS_MAX];
    char *client_address, *client_name;
    char *texts; /* one allocation that holds all of the above texts */
};
struct slowlog {
    struct slowlog_entry *entries; /* newest last, in a ring of capacity entries */
    uint32_t count, capacity, first;
    uint64_t next_id;
};
void slowlog_init(struct slowlog *slowlog);
void slowlog_deinit(struct slowlog *slowlog);
/* Keep the newest length_max entries. If out of memory, the entry is not logged. The arguments of a
 * secret request are replaced with "(redacted)". As in Redis, at most 32 arguments and 128 bytes of
 * each are kept, with a note of how much was omitted. */
void slowlog_add(struct slowlog *slowlog, uint32_t length_max, const struct request *request,
                 bool is_secret, uint64_t elapsed_us, int64_t unix_time_s,
                 const char *client_address, const char *client_name);
void slowlog_reset(struct slowlog *slowlog);
/* The i-th newest entry, i < count. */
const struct slowlog_entry *slowlog_newest(const struct slowlog *slowlog, uint32_t i);

/* LATENCY LATEST, HISTORY, RESET: named events that took at least latency-monitor-threshold. */
enum { LATENCY_EVENTS_MAX = 8, LATENCY_HISTORY_MAX = 160 };
struct latency_event {
    /* "command", "fast-command", "expire-cycle", "tick", "memory-give-back" */
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
