/* What was slow. SLOWLOG: the newest slow commands, in a ring buffer of owned copies. LATENCY
 * LATEST, HISTORY, RESET: named events that took at least latency-monitor-threshold. */
#ifndef SERVER_CLIENTS_SLOW_H
#define SERVER_CLIENTS_SLOW_H

#include "codec/bytes.h"
#include "protocol/resp.h"

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
void slow_log_deinit(struct slowlog *slowlog);
/* Keep the newest length_max entries. If out of memory, the entry is not logged. The arguments of a
 * secret request are replaced with "(redacted)". As in Redis, at most 32 arguments and 128 bytes of
 * each are kept, with a note of how much was omitted. */
void slow_log_add(struct slowlog *slowlog, uint32_t length_max, const struct request *request,
                  bool is_secret, uint64_t elapsed_us, int64_t unix_time_s,
                  const char *client_address, const char *client_name);
void slow_log_reset(struct slowlog *slowlog);
/* The i-th newest entry, i < count. */
const struct slowlog_entry *slow_log_newest(const struct slowlog *slowlog, uint32_t i);

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
void slow_latency_add(struct latency *latency, const char *name, uint32_t latency_ms,
                      int64_t unix_time_s);
/* NULL: no such event. */
const struct latency_event *slow_latency_find(const struct latency *latency, struct bytes name);
/* Returns the number of events cleared. */
uint32_t slow_latency_reset(struct latency *latency, struct bytes name);
uint32_t slow_latency_reset_all(struct latency *latency);

#endif
