/* One command of the host, run by its handler. */
#ifndef SERVER_MODULE_HOST_RUN_H
#define SERVER_MODULE_HOST_RUN_H

#include "server/module/host_stage.h"

/* index: of the command's entry (command_by_index). */
int host_run(struct host_context *ctx, struct host_string **argv, int argc, uint32_t index);
/* For a client that has waited for a key: the same, but HOST_ERROR if it has to wait on. */
int host_run_again(struct host_context *ctx, struct host_string **argv, int argc);
/* Run with one key on stage, in the context's database, outside the handler of a command. false: no
 * memory to put it there, and nothing was run. */
MUST_CHECK bool host_run_on(struct host_context *ctx, struct host_string *name, bool writes,
                            void (*run)(void *context), void *context);
/* The stage of the command that runs; NULL: none. */
struct host_stage *host_run_stage(void);

#endif
