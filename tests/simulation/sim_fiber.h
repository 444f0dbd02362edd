/* Fibers: a stack each, and one runs at a time. A server's loop, its threads, clients and Sentinels
 * are fibers, so that what waits in them reads as it would with threads, and nothing is decided by a
 * scheduler but the seed.
 *
 * What a fiber computes takes time of its own (sim_fiber_spend): its clock is ahead of sim_now until
 * it waits, and it is not woken before its clock has been reached. */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>
#include <stdint.h>

struct sim_fiber;
typedef void sim_fiber_run(void *context);

/* Starts at this time. not_before: it is not run before *not_before either (its machine stands
 * still); NULL: it always may. owner: whatever the creator wants, for sim_fiber_owner. */
struct sim_fiber *sim_fiber_create(sim_fiber_run *run, void *context, void *owner,
                                   const int64_t *not_before, int64_t at);
/* It never runs again. May be called for the current one, which then must wait. */
void sim_fiber_kill(struct sim_fiber *fiber);
bool sim_fiber_is_over(const struct sim_fiber *fiber);

/* NULL: none runs. */
struct sim_fiber *sim_fiber_current(void);
void *sim_fiber_owner(const struct sim_fiber *fiber);
/* The current fiber's clock; sim_now if none runs. */
int64_t sim_fiber_now(void);
void sim_fiber_spend(int64_t ns);
/* Wait until woken or until this time (INT64_MAX: for ever). */
void sim_fiber_wait(int64_t until);
/* Wait until this time, whoever wakes. */
void sim_fiber_sleep(int64_t until);
/* Let it run, if it waits; a wake of one that does not wait is kept. */
void sim_fiber_wake(struct sim_fiber *fiber);

#endif
