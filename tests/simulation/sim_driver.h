/* Who looks after the servers: a supervisor that starts what has ended, and a Sentinel that asks each
 * server how it is, promotes a replica when the master is silent and points the others at it; and the
 * faults of a schedule, which the seed draws before it begins, so that each can be left out. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_FAULTS_MAX = 24 };

/* Which faults there are, besides those that all have. */
struct sim_driver_kinds {
    bool has_sentinel; /* it acts, and makes mistakes */
    int power_cuts;    /* so many at most */
    bool has_disk_faults;
    bool loses_pages;    /* a sync that fails does */
    bool may_have_chain; /* a replica of a replica */
    bool is_planned;     /* only FAILOVER, and what makes servers slow */
    bool
        is_released; /* all are stopped once, lose their promises, and come back one after another */
};

struct sim_driver_options {
    int server_count;
    int machine; /* where Sentinel is */
    uint64_t seed;
    int64_t until;     /* all faults have ended by then */
    uint64_t left_out; /* bit i: without fault i */
    struct sim_driver_kinds kinds;
};

/* The arguments of the servers are set. */
void sim_driver_start(const struct sim_driver_options *options);
/* One machine is far away: so many bytes a second reach it. 0: none is. */
int64_t sim_driver_far_rate(void);
/* No machine is far away any more. */
void sim_driver_bring_near(void);
/* The number of faults drawn, and what they are, a line each. */
int sim_driver_fault_count(void);
const char *sim_driver_fault(int index);
/* Whom Sentinel takes for the master. */
int sim_driver_master(void);

#endif
