/* Jobs: commands that take long, and run in steps between other commands.
 *
 *     handler     job_begin: the client waits, and so do its later requests
 *     each tick   job_list_step: the jobs take turns, each for one short step
 *     at the end  job_answer: the reply
 *
 *                 finished      answered
 *       ASKED ------------> DONE ------------> ended
 *         |                  |
 *         | client gone      | client gone       a job that writes: ALONE -- finished --> ended
 *         +-> ended, or ALONE +-> ended          any other: ended at once
 *
 * A job that writes is durable: it is finished even if its client is gone. Its owner keeps it on disk
 * (commands/lb/board_task.h), so that it is finished after a restart, too; it then begins as ALONE. */
#ifndef SERVER_JOB_H
#define SERVER_JOB_H

#include "server/sessions/server.h"

enum {
    JOBS_MAX = 64, /* at a time; five of them work on boards (board_job.h) */
    /* A user's, over HTTP, where nobody waits for them: so that others have room. */
    JOBS_LEFT_MAX = 16,
};

struct job_kind {
    bool writes;
    /* Can a step do anything? Asked in every tick; what makes it so must wake the loop (for memory_is_ready, the
     * loop wakes by itself). NULL: always. */
    bool (*is_ready)(const struct server *server, const struct job *job);
    /* A step of some microseconds. true: that was the last. */
    bool (*step)(struct server *server, struct job *job);
    void (*answer)(struct server *server, struct job *job, struct reply *reply);
    /* Free it. */
    void (*destroy)(struct server *server, struct job *job);
};

enum job_state {
    JOB_ASKED, /* it runs, and its client waits */
    JOB_ALONE, /* it runs, and nobody waits */
    JOB_DONE,  /* its client is to be answered */
    JOB_ENDED,
};

/* Embedded in what the job needs; zeroed at first. */
struct job {
    const struct job_kind *kind;
    struct job *previous, *next;
    struct session *session; /* the client that waits; NULL: nobody */
    /* Of a session that leaves its jobs: the hash of its user's name, as the user may be gone. 0: of any other. */
    uint64_t left_by;
    enum job_state state;
    uint64_t epoch; /* in which it began: replication_answer_epoch */
    bool is_silent; /* CLIENT REPLY OFF or SKIP */
    bool streams;   /* its reply is sent in pieces from its beginning on */
};

/* May a client begin a job? false: the error was replied. */
MUST_CHECK bool job_list_has_room(const struct server *server, const struct session *session,
                                  struct reply *reply);
/* session: who waits, NULL: nobody; it has no job yet. */
void job_begin(struct server *server, struct session *session, const struct job_kind *kind,
               bool is_silent, struct job *job);
/* Run steps for about budget_ns, at least one. true: there is more to do. */
bool job_list_step(struct server *server, uint64_t budget_ns, bool may_write);
/* Has one a step to do, now that output was sent? */
bool job_list_has_steps(const struct server *server);
/* The first job that is to be answered; NULL: none. */
struct job *job_list_find_done(const struct server *server);
/* Answer it and end it; its session waits no more. */
void job_answer(struct server *server, struct job *job, struct reply *reply);
/* The client is gone. */
void job_leave(struct server *server, struct session *session);
/* The history has changed (replication_begin_epoch): end the jobs that write where they are. Their clients
 * get an error and are closed, as clients that wait for a key are. Durable jobs stay in the keys, and resume
 * where those are changed next: here, or by another master. */
void job_list_end_durable(struct server *server);
/* End all jobs where they are. */
void job_list_end(struct server *server);

#endif
