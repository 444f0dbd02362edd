/* Work on boards in steps, by jobs (job.h) that are there as long as this server may change the keys.
 *
 *     a start, a change of roles,          a pass over all keys finds the boards that the work concerns. Each is in hand
 *     a board that the work concerns       until its steps are done. A change of its options, or another board that gets
 *     comes behind the pass,               its name, begins it anew
 *     the time of board_job_await
 *
 * Passes over n keys rest n / 200 ms, so that many times, or boards, in a row share passes.
 * What a step does must be true for whoever looks at the board in between, and a step that comes twice changes nothing. */
#ifndef SERVER_BOARD_JOB_H
#define SERVER_BOARD_JOB_H

#include "server/sessions/job.h"
#include "skiplist/keyspace/effect.h"

/* Embedded, first, in what the work needs. All but the first ones are private to board_job.c. */
struct board_job {
    struct job job; /* first */
    const struct board_work *work;
    struct server *server;
    uint64_t turn;       /* of the passes */
    int64_t passed_ms;   /* the last pass began */
    uint32_t notes_left; /* board_job_step_notes: those at indexes below it are to be looked at */

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
    /* Is there something to do on this board? It may call board_job_await, and is asked at each look at the board. */
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
void board_job_begin(struct server *server, const struct board_work *work);
/* A pass is to begin then, or before. */
void board_job_await(struct board_job *job, int64_t due_ms);
/* There was no memory: the next step is at another time. */
void board_job_wait(struct board_job *job);
/* Has the board in hand this name? */
bool board_job_holds(const struct board_job *job, uint32_t database, struct bytes name);

/* The board in hand; NULL: it is gone. */
struct registry_key *board_job_find(struct board_job *job);

/* ---- steps over a board's notes ---- */

enum board_job_change { BOARD_JOB_SAME, BOARD_JOB_CHANGED, BOARD_JOB_NO_MEMORY };
/* name is the caller's, and stays when notes change. */
typedef enum board_job_change board_job_visit(struct board_job *job, struct registry_key *board,
                                              struct bytes name);
/* Visit the next notes, from the last to the first, until so many have been looked at, or members changed. What others put or
 * remove meanwhile may be passed over. Clients are told of changes. true: some are left. */
bool board_job_step_notes(struct board_job *job, struct registry_key *board, uint32_t looked_max,
                          uint32_t changed_max, board_job_visit *visit);

/* STALE: members whose time is over leave (skiplist/keyspace/registry.h), and a board that is left empty goes, unless
 * LB.CREATE made it. */
extern const struct board_work board_job_stale;

#endif
