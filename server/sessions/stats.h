/* What is counted and measured of the running server: for INFO, LATENCY HISTOGRAM, SLOWLOG and LATENCY. Nothing here
 * allocates on the hot path. */
#ifndef SERVER_STATS_H
#define SERVER_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/check.h"
#include "protocol/resp.h"
#include "server/settings/settings.h"
#include "server/system/clock.h"

enum {
    STATS_ERROR_KINDS_MAX = 128,
    STATS_LIMITED_MAX = 32, /* boards */
    STATS_BOARD_MAX = 64,   /* bytes, with a terminator */
};

struct stats_command {
    struct durations calls;
    uint64_t failed_calls;   /* ended in an error */
    uint64_t rejected_calls; /* refused before running: arity, authentication, memory */
};

struct stats_error {
    char prefix[32];
    uint64_t count;
};

/* One thread that reads and writes sockets; with io-threads 1 it is the server's own. */
struct stats_network {
    uint32_t client_count;
    uint64_t reads, writes; /* system calls */
};

/* Why a result was refused on a board with TICKETS. */
enum ticket_refusal {
    TICKET_MISSING,
    TICKET_WRONG, /* no ticket, or its signature is wrong */
    TICKET_OTHER, /* of another board or player */
    TICKET_OVER,  /* it has expired, holds later, or was revoked */
    TICKET_USED,  /* or began before one that was */
    TICKET_FULL,  /* as many are known to be used as there is room for */
    TICKET_REFUSALS,
};

/* Results that LIMITS or TICKETS of a board refused, and those that HOLD kept. */
enum stats_held {
    STATS_HELD_OVER,
    STATS_HELD_TOP,
    STATS_HELD_LIMITS,
    STATS_HELD_FULL,
    STATS_HELDS
};
struct stats_limited {
    char board
        [STATS_BOARD_MAX]; /* its name, as far as it fits and can stand in a label; the last one: all others */
    uint64_t refused[LIMITS];
    uint64_t tickets[TICKET_REFUSALS];
    uint64_t held[STATS_HELDS]; /* FULL: for which there was no room */
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
    uint64_t once_refused;  /* results with an id for which there was no room */
    uint64_t once_repeated; /* that had come before */
    struct stats_limited limited[STATS_LIMITED_MAX];
    uint32_t limited_count;
    uint64_t unexpected_closed_output; /* closed by the output limits */
    uint64_t clients_evicted;          /* evicted by maxmemory-clients */
    /* The largest buffers of any one client at the last scan of all clients, about a second ago. */
    uint64_t input_buffer_max, output_buffer_max;
    struct durations ticks;
    /* Ticks of a millisecond or more: their wall time, and the time that their thread had a processor. */
    uint64_t long_tick_count, long_tick_wall_ns, long_tick_cpu_ns;
    /* Rates per second over the last samples, updated by stats_sample once a second. */
    double commands_per_second, input_kbps, output_kbps;
    uint64_t sampled_commands, sampled_input, sampled_output;
    int64_t sampled_at_ms;
    /* The longest tick since startup or CONFIG RESETSTAT, in microseconds, and the processor time of that
     * one; 0: no tick has taken a millisecond. */
    uint64_t tick_longest_us, tick_longest_cpu_us;
    /* The most processor time of a tick, and how many took a millisecond of it or more. */
    uint64_t tick_busiest_us, tick_busy_count;
    /* As of the last second. */
    struct stats_network networks[SETTING_IO_THREADS_MAX];
    uint32_t network_count;
    uint64_t startup_memory_size; /* heap bytes in use when stats_init was called */
};

/* Zero all counters. false: out of memory. */
MUST_CHECK bool stats_init(struct stats *stats, uint32_t command_count);
void stats_deinit(struct stats *stats);
/* CONFIG RESETSTAT: reset every counter to zero. What the networks say stays. */
void stats_reset(struct stats *stats);
/* Count an error whose text begins with prefix. The caller counts error_replies. Once there are
 * STATS_ERROR_KINDS_MAX prefixes, new ones are not counted. */
void stats_count_error(struct stats *stats, const char *prefix);
/* Count a result that a limit of this board has refused. */
void stats_count_limit(struct stats *stats, struct bytes board, enum limit limit);
void stats_count_ticket(struct stats *stats, struct bytes board, enum ticket_refusal refusal);
void stats_count_held(struct stats *stats, struct bytes board, enum stats_held why);
/* Called once a second: compute the rates since the last call. */
void stats_sample(struct stats *stats, int64_t monotonic_ms);
/* The upper bound, in microseconds, of the bucket that contains the given quantile (0.0 .. 1.0) of
 * a command's calls. 0 if there are no calls. */
uint64_t stats_percentile_us(const struct stats_command *command, double share);

/* ---- SLOWLOG: the newest slow commands, in a ring buffer of owned copies ---- */

enum { SLOWLOG_ARGS_MAX = 32, SLOWLOG_TEXT_MAX = 128 };

struct slowlog_entry {
    uint64_t id;
    int64_t unix_time_s;
    uint64_t elapsed_us;
    uint32_t arg_count; /* texts kept; the last may give the number of arguments omitted */
    char *args[SLOWLOG_ARGS_MAX];
    size_t arg_sizes[SLOWLOG_ARGS_MAX];
    char *client_address, *client_name;
    char *texts; /* one allocation that holds all of the above texts */
};
/* Zero-initialised: empty. */
struct slowlog {
    struct slowlog_entry *entries; /* newest last, in a ring of capacity entries */
    uint32_t count, capacity, first;
    uint64_t next_id;
};
void stats_slowlog_deinit(struct slowlog *slowlog);
/* Keep the newest length_max entries. If out of memory, the entry is not logged. The arguments of a
 * secret request are replaced with "(redacted)". As in Redis, at most 32 arguments and 128 bytes of
 * each are kept, with a note of how much was omitted. */
void stats_slowlog_add(struct slowlog *slowlog, uint32_t length_max, const struct request *request,
                       bool is_secret, uint64_t elapsed_us, int64_t unix_time_s,
                       const char *client_address, const char *client_name);
void stats_slowlog_reset(struct slowlog *slowlog);
/* The i-th newest entry, i < count. */
const struct slowlog_entry *stats_slowlog_newest(const struct slowlog *slowlog, uint32_t i);

/* ---- LATENCY LATEST, HISTORY, RESET: named events that took at least latency-monitor-threshold ---- */

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
void stats_latency_add(struct latency *latency, const char *name, uint32_t latency_ms,
                       int64_t unix_time_s);
/* NULL: no such event. */
const struct latency_event *stats_latency_find(const struct latency *latency, struct bytes name);
/* Returns the number of events cleared. */
uint32_t stats_latency_reset(struct latency *latency, struct bytes name);
uint32_t stats_latency_reset_all(struct latency *latency);

#endif
