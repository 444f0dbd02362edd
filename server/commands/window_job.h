/* What leaves the boards with a WINDOW (window.h) does so in steps, a job (server/clients/job.h) that
 * is there as long as this server may change the keys.
 *
 *     a period ends, a share is removed,   a pass over all keys finds the boards that have to do;
 *     a restart, a change of roles         the effects tell that another one is needed
 *     a step                               of the first board found: one after another
 *         ANEW     some members, in the order of their hashes, get what follows from the shares
 *         LEAVING  the next members of the first share leave, by rank; behind the last one the next
 *                  period is the first
 *
 * How far it has come is in the board's options and changes with the members, so a job that begins
 * again goes on from there; only ANEW begins from the front, which changes nothing twice. */
#ifndef SERVER_WINDOW_JOB_H
#define SERVER_WINDOW_JOB_H

#include "server/clients/server.h"

/* For jobs.resume. Out of memory, it is tried again with the next resume. */
void window_job_begin(struct server *server);

#endif
