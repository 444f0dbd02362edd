/* What periods do to ratings (RESET, EVERY-HOURS) is written in steps, a job (server/clients/job.h) that is there as long as
 * this server may change the keys.
 *
 *     a board's period has ended (RESET), an hour has (EVERY-HOURS),    a pass over all keys finds the boards whose
 *     a restart, a change of roles                                      records follow from periods
 *     a step                                                            some records of the first of them, from the last
 *                                                                       to the first
 *
 * Whoever reads or changes a record before the job has come to it computes the same (lb_rating.h): what is late is the
 * place on the board alone. Records say of which periods they are, so a job that begins again changes nothing twice. */
#ifndef SERVER_RATING_JOB_H
#define SERVER_RATING_JOB_H

#include "server/clients/server.h"

/* For jobs.resume. Out of memory, it is tried again with the next resume. */
void rating_job_begin(struct server *server);

#endif
