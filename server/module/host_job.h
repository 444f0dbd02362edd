/* Commands that run in steps (server/clients/job.h): blocked clients of the host, and a timer.
 *
 *     handler --job_begin--> host_job_run: the first steps --done--> reply
 *                                    | not done
 *                                    v
 *     blocked client <--reply-- the timer: some steps each millisecond
 *
 * Jobs that write run on masters only, and while nothing forbids changes. What a restart or a
 * failover interrupts goes on where the orders are (host_state.h). */
#ifndef SERVER_MODULE_HOST_JOB_H
#define SERVER_MODULE_HOST_JOB_H

#include "server/module/module.h"

/* Memory for another client that waits. Before the handler. false: there is none. */
MUST_CHECK bool host_job_reserve(void);
/* The handler has begun a job of module.session. true: it is done, and to be answered. false: the client
 * is blocked until it is. */
MUST_CHECK bool host_job_run(struct host_context *ctx);
/* Follow changes of roles, and continue what was interrupted. false: the host refused. */
MUST_CHECK bool host_job_init(struct host_context *ctx);
/* Everything was loaded: begin the orders that are there. */
void host_job_resume(void);

#endif
