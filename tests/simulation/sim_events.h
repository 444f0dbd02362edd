/* Simulated time, and what happens in it: one queue of events, ordered by time and then by when they
 * were put in. Nothing else moves the time, and nothing sleeps. Also the trace: every line is hashed,
 * so that two runs of a seed can be compared, and is printed on demand. */
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_US INT64_C(1000)
#define SIM_MS INT64_C(1000000)
#define SIM_S  INT64_C(1000000000)

typedef void sim_event_run(void *context, uint64_t number);

/* Nanoseconds since the schedule began. */
int64_t sim_now(void);
/* Call run(context, number) at this time, or now if it has passed. Events are not taken back: what
 * may have become void compares the number. */
void sim_at(int64_t at, sim_event_run *run, void *context, uint64_t number);
/* Run events until this time. */
void sim_run_until(int64_t at);

/* A line of the trace, with the time in front. */
__attribute__((format(printf, 1, 2))) void sim_trace(const char *format, ...);
void sim_trace_show(bool is_shown);
uint64_t sim_trace_hash(void);
uint64_t sim_event_count(void);

/* The schedule has failed: say why and end it. The first reason counts. Does not return. */
__attribute__((noreturn, format(printf, 1, 2))) void sim_fail(const char *format, ...);
/* What ends the process of the schedule, with the reason. */
extern void (*sim_on_fail)(const char *reason);

#endif
