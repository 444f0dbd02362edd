/* What clients do, and whether what they saw can have been: the judge.
 *
 * Each client counts what is its own, so that its history is cheap to check. An answer gives a lower
 * bound, every request whose outcome is not known raises the upper one:
 *
 *     acknowledged <= value <= acknowledged + in doubt
 *
 * Members have names that are used once; what was put, popped, read and answered is compared with what
 * is there in the end. Ties are judged by when requests were sent and answered. */
#ifndef SIM_LOAD_H
#define SIM_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/* What acknowledged writes are promised. */
enum sim_promise {
    SIM_KEPT,      /* whatever happens: none is lost, no read is stale */
    SIM_KEPT_LATE, /* those answered this long before the last power cut */
    SIM_BOUNDED,   /* asynchronous: they may be lost, but nothing counts twice */
    SIM_WAITED,    /* the same, but not those for which WAIT has counted all replicas */
};

struct sim_load_options {
    int server_count;
    int client_count;
    int machine; /* where the clients are */
    uint64_t seed;
    enum sim_promise promise;
    bool is_planned; /* no write ends without an answer */
    /* Bytes a second of the thin links, or 0. With them there may be some hundred KB from the beginning: a full copy
     * takes its time. */
    int64_t thin_rate;
};

void sim_load_start(const struct sim_load_options *options);
/* Every writing client has had an answer since then. */
bool sim_load_is_answered_since(int64_t at);
/* No more requests; clients end when their last one has been answered or has failed. */
void sim_load_end(void);
bool sim_load_is_over(void);
/* Compare with what the servers hold; `master` is asked for the boards, and all must be equal. Ends
 * the schedule if something is wrong. Starts a fiber; sim_load_is_judged when it is done. */
void sim_load_judge(int master);
bool sim_load_is_judged(void);
/* Answers and requests in doubt, for the figures. */
uint64_t sim_load_answered(void);
uint64_t sim_load_in_doubt(void);
/* A machine has lost its power: for SIM_KEPT_LATE. */
void sim_load_note_freeze(int64_t lasts);
void sim_load_note_power_cut(void);

#endif
