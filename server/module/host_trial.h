/* LB.APPLY of a client: whole, or not at all.
 *
 * What the master or the AOF says fits the boards. What a client says may turn out not to fit when half of
 * it is applied, and then replicas would lack that half. So effects of a client are judged first: writes
 * on boards that are there, and removals of members that are there, cannot fail. Where anything else is
 * among them, they go to copies of the boards, which take their places at the end. */
#ifndef SERVER_MODULE_HOST_TRIAL_H
#define SERVER_MODULE_HOST_TRIAL_H

#include "server/module/host_stage.h"

enum { HOST_TRIAL_TAKES_MAX = 64 };

struct host_trial {
    bool is_doubtful; /* some effect may not fit */
    bool has_put;
    uint32_t take_count;
    struct bytes takes[HOST_TRIAL_TAKES_MAX]; /* members; borrowed from the request */
    struct registry_key **boards; /* by slot, while copies are on stage; NULL: none are */
};

void host_trial_init(struct host_trial *trial);
/* Judge the next effect, with its keys on stage and nothing applied yet. */
void host_trial_judge(struct host_trial *trial, const struct effect *effect);
/* Put copies of the boards on stage. false: no memory, nothing changed. */
MUST_CHECK bool host_trial_begin(struct host_trial *trial, struct host_stage *stage);
/* The copies are the boards from now on. */
void host_trial_keep(struct host_trial *trial, const struct host_stage *stage);
/* Everything is as it was before. */
void host_trial_undo(struct host_trial *trial, struct host_stage *stage);

#endif
