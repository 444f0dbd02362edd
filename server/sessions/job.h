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
#include "skiplist/keyspace/effect.h"

enum {
    JOBS_MAX = 64, /* at a time; five of them work on boards (struct board_work) */
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

/* ---- work on boards ----
 *
 * In steps, by jobs that are there as long as this server may change the keys.
 *
 *     a start, a change of roles,          a pass over all keys finds the boards that the work concerns. Each is in hand
 *     a board that the work concerns       until its steps are done. A change of its options, or another board that gets
 *     comes behind the pass,               its name, begins it anew
 *     the time of job_board_await
 *
 * Passes over n keys rest n / 200 ms, so that many times, or boards, in a row share passes.
 * What a step does must be true for whoever looks at the board in between, and a step that comes twice changes nothing. */

/* Embedded, first, in what the work needs. All but the first ones are private to job.c. */
struct board_job {
    struct job job; /* first */
    const struct board_work *work;
    struct server *server;
    uint64_t turn;       /* of the passes */
    int64_t passed_ms;   /* the last pass began */
    uint32_t notes_left; /* job_board_step_notes: those at indexes below it are to be looked at */

    struct effect_listener listener;
    struct registry_pass pass;
    uint32_t passed_count;    /* keys */
    int64_t rests_ms;         /* another pass may begin then, */
    int64_t due_ms;           /* and is awaited then, */
    bool has_missed;          /* or a board came behind it */
    bool has_board, is_begun; /* one is in hand: */
    uint32_t database;
    struct buffer board; /* its name */
    int64_t waits_ms;    /* there was no memory at that time */
};

struct board_work {
    size_t size; /* of the struct that begins with struct board_job, zeroed at first */
    /* Is there something to do on this board? It may call job_board_await, and is asked at each look at the board. */
    bool (*concerns)(struct board_job *job, const struct registry_key *board);
    /* NULL: nothing. Steps of this board are about to begin, or to begin anew. */
    void (*enter)(struct board_job *job, const struct registry_key *board);
    /* Boards that come behind a pass wait for the next one, which concerns() awaits. */
    bool is_patient;
    /* A step of some microseconds, which may remove the key. true: others follow. */
    bool (*step)(struct board_job *job, struct registry_key *board);
    /* NULL: passes are always of use. Otherwise they wait until it is true. */
    bool (*has_any)(const struct registry *registry);
    /* NULL: passes are over the clients' databases. Otherwise it is shown the keys of the server's own, too. */
    void (*see)(struct board_job *job, const struct registry_key *key);
    /* NULL: it needs no effects but those that bring boards. */
    void (*receive)(struct board_job *job, const struct effect *effect);
    /* NULL: there is nothing to free but the struct. */
    void (*deinit)(struct board_job *job);
};

/* Begin it, for jobs.resume. Out of memory, it is tried again with the next resume. */
void job_board_begin(struct server *server, const struct board_work *work);
/* A pass is to begin then, or before. */
void job_board_await(struct board_job *job, int64_t due_ms);
/* There was no memory: the next step is at another time. */
void job_board_wait(struct board_job *job);
/* Has the board in hand this name? */
bool job_board_holds(const struct board_job *job, uint32_t database, struct bytes name);

/* The board in hand; NULL: it is gone. */
struct registry_key *job_board_find(struct board_job *job);

/* ---- steps over a board's notes ---- */

enum job_board_change { JOB_BOARD_SAME, JOB_BOARD_CHANGED, JOB_BOARD_NO_MEMORY };
/* name is the caller's, and stays when notes change. */
typedef enum job_board_change job_board_visit(struct board_job *job, struct registry_key *board,
                                              struct bytes name);
/* Visit the next notes, from the last to the first, until so many have been looked at, or members changed. What others put or
 * remove meanwhile may be passed over. Clients are told of changes. true: some are left. */
bool job_board_step_notes(struct board_job *job, struct registry_key *board, uint32_t looked_max,
                          uint32_t changed_max, job_board_visit *visit);

/* STALE: members whose time is over leave (skiplist/keyspace/registry.h), and a board that is left empty goes, unless
 * LB.CREATE made it. */
extern const struct board_work job_board_stale;

#endif
