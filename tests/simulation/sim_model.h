/* The invariants of tests/model/protocol.py, looked at in each tick of each simulated server with
 * sync-replicas: the functions that steps.txt lists are the product's, and are called by way of here.
 *
 *     votes      what a node has voted for never goes back, whatever happens to it; and who opens has
 *                enough votes
 *     masters    at most one server opens in a term
 *     log        a group of a term is the same on all
 *     mark       nothing is safe in a term before its start mark is
 *     held       what becomes safe is held by sync-replicas others
 *     unique     no two groups of one number become safe
 *     kept       who opens has all that was safe in older terms and its own
 *     fresh      who may answer readers has all that was ever safe
 *     durable    who has acknowledged a group has it after a restart, or knows that it may not
 *
 * A schedule ends with the name of the invariant that does not hold. Also the figures of which rows of
 * the product's tables of states were taken, over all schedules. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Before the first schedule: figures are kept in memory that its process shares. */
void sim_model_init(void);
/* A line of a server's log, which may name a row. */
void sim_model_note(const char *line);
/* How many rows were taken; is_listed: each, and how often. */
void sim_model_print(bool is_listed);
/* Print the quorum's steps, for tests/model/steps.py. */
void sim_model_show_steps(bool is_shown);
/* A schedule begins. */
void sim_model_begin(void);
/* A server's promise is removed: it may have voted for anything. */
void sim_model_release(int index);

#endif
