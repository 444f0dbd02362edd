/* Commands of the host, run by their handlers, and what takes longer than one call of the host. */
#ifndef SERVER_MODULE_HOST_RUN_H
#define SERVER_MODULE_HOST_RUN_H

#include "server/module/module.h"
#include "server/module/working_set.h"

struct call;

/* ---- one command ---- */

/* index: of the command's entry (command_by_index), or of that of its container. */
int host_run(struct host_context *ctx, struct host_string **argv, int argc, uint32_t index);
/* Run with one key in the working set, in the context's database, outside the handler of a command. false: no
 * memory to put it there, and nothing was run. */
MUST_CHECK bool host_run_on(struct host_context *ctx, struct host_string *name, bool writes,
                            void (*run)(void *context), void *context);
/* What is due of a key (struct host_due), run by host_run_on. It is looked up, as by a command: what is due rolls
 * over; a step of a pass over a board with STALE; and one over ids. */
void host_run_look_up(void *due);
void host_run_drop_stale(void *due);
void host_keyspace_forget(void *due);
/* That of the command that runs; NULL: none. */
struct working_set *host_run_set(void);

/* Free the copies of hashes that a group of records has needed (DATA). After each command. */
void host_keyspace_clear(void);

/* ---- replies ---- */

#define HOST_RUN_REPLY_COMMAND "lb.reply"
/* Make the pieces of which replies are put together; LB.REPLY is registered, and ctx lives as long as the module.
 * false: the server does not pass on what is written into them. */
MUST_CHECK bool host_run_init_replies(struct host_context *ctx);
/* LB.REPLY. From a client it is an error. */
int host_run_reply_run(struct host_context *ctx, struct host_string **argv, int argc);

/* ---- commands that run in steps (server/sessions/job.h) ----
 *
 *     handler --job_begin--> host_run_job_run: the first steps --done--> reply
 *                                    | not done
 *                                    v
 *     blocked client <--reply-- the timer: some steps each millisecond
 *
 * Jobs that write run on masters only, and while nothing forbids changes. What a restart or a
 * failover interrupts goes on where the durable jobs are (host_effects.h). */

void host_run_job_init(void);
/* Everything was loaded, or this is a master now: begin the durable jobs that are there. */
void host_run_job_resume(void);
/* This is a replica now: durable jobs are its master's. */
void host_run_job_stop(void);

/* ---- the pass of LB.WHERE, LB.FORGET, LB.MOVE and LB.BAN over the host's keys ---- */

/* The host has given a key this name, by a command of its own: what a pass has come past is looked at
 * again. */
void host_run_job_note_name(const struct host_value *value, struct bytes name, uint32_t database);
/* Databases have been exchanged or loaded: every pass begins again. */
void host_run_job_rewind(void);

/* ---- existing clients ---- */

/* Without a `board` line there is no filter. false: the host refused. */
bool host_run_register_filter(struct host_context *ctx);
/* The server is a replica from now on, or a master. */
void host_run_note_role(bool is_now_replica);

#endif
