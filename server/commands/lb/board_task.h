/* Tasks over all boards, for one member: LB.WHERE LB.FORGET LB.MOVE LB.BAN.
 *
 * They look at every board of a database, so they run in steps (server/sessions/job.h):
 *
 *     pass     over some boards; the names of those that have the member are kept aside (found)
 *     act      on the boards found, one by one: this is the command's own part
 *     finish   when the pass is over and nothing is left
 *
 * The pass (skiplist/keyspace/registry_walk.h) may have been where a board gets a name meanwhile, by a
 * rename, a copy, a store or the end of a period. So the task listens to effects, and such boards are
 * found, too, as is one that the member comes to by ZMOVE. A result that is written on a board after the pass was
 * there is a later one, and stays.
 *
 * The commands that write are durable jobs: they are kept in a database of the server's own until they
 * are finished, and so in the journal and in snapshots. After a restart they begin again: what was
 * done is whole boards, and is not found again. */
#ifndef SERVER_COMMAND_BOARD_TASK_H
#define SERVER_COMMAND_BOARD_TASK_H

#include "codec/glob.h"
#include "server/commands/ban.h"
#include "server/commands/guarding.h"
#include "server/commands/lb/lb.h"
#include "server/sessions/job.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_walk.h"

/* Hashes: by a durable job's name, its database and the arguments of its request. */
enum { DURABLE_JOBS = REGISTRY_JOBS, DURABLE_JOB_NAME_SIZE = 16 };

struct board_task;

/* The part of a command. Its entry's variant. */
struct board_task_kind {
    bool writes;
    bool takes_shadows; /* or a shadow (server/commands/ban.h) */
    bool takes_notes;   /* a board counts where the member has a note and is not on it, too */
    /* What happens at once, before the first step, when a client asks; false: the error was
     * replied. Or NULL. */
    bool (*begin)(const struct call *call, struct board_task *task);
    /* The board has the member, or a note of it. */
    void (*act)(struct server *server, struct board_task *task, struct registry_key *key);
    /* After the last board; or NULL. */
    void (*finish)(struct server *server, struct board_task *task);
    void (*answer)(struct board_task *task, struct reply *reply);
};

struct board_task {
    struct job job; /* first */
    const struct board_task_kind *action;
    struct transaction request; /* the copy that all texts below point into */
    struct bytes member;
    struct bytes pattern; /* MATCH */
    struct glob *glob;    /* NULL: all boards */
    bool is_all;          /* ALL databases */
    /* Of single commands: */
    struct bytes to;       /* LB.MOVE */
    struct buffer data;    /* DATA: names of the member's hashes, each a size and so many bytes */
    bool is_best, is_sum;  /* BEST, SUM */
    int64_t until_ms;      /* LB.BAN */
    bool is_shadow;        /* SHADOW */
    struct buffer records; /* LB.WHERE */
    uint8_t protocol;
    uint8_t numbers;   /* of records: as in struct reply */
    bool with_strings; /* STRINGS */
    /* Where the pass is: */
    uint32_t first_database, end_database;
    struct registry_pass pass; /* in the server */
    bool has_missed;           /* out of memory: everything is passed again */
    struct buffer found;       /* database, size, name; from found_at on */
    size_t found_at;
    struct registry *registry; /* NULL: it has not begun, or has ended */
    struct effect_listener listener;
    struct board_task_place *place;           /* the module's; NULL: none */
    char durable_name[DURABLE_JOB_NAME_SIZE]; /* if it writes */
    uint64_t done_count, left_count;          /* boards */
};

/* Is the member on the board, or, where that counts, has it a note there? */
static inline bool board_task_has(const struct board_task *task, const struct registry_key *key) {
    uint64_t packed_key;
    struct bytes note;
    return board_find(&key->board, task->member, &packed_key) ||
           (task->action->takes_shadows && ban_shadow_is_there(key, task->member)) ||
           (task->action->takes_notes &&
            !((registry_options(key)->has_rating || registry_options(key)->has_hold ||
               registry_options(key)->has_shadows) &&
              registry_note_is_own(task->member)) &&
            registry_note_find(key, task->member, &note)) ||
           (task->action->writes && guarding_has_held(key, task->member));
}

/* The handler of these commands. */
void board_task_run(struct call *call);
/* Begin the durable jobs that a restart interrupted: jobs.resume. */
void board_task_resume(struct server *server);

/* The pass: server/commands/lb/board_task_pass.c, and in the module server/module/host_run.c. */
/* false: no memory. */
MUST_CHECK bool board_task_pass_begin(struct server *server, struct board_task *task);
/* Look at some keys, or act on one board. false: nothing is left. */
MUST_CHECK bool board_task_pass_step(struct server *server, struct board_task *task);
/* May come twice, or without a beginning. */
void board_task_pass_end(struct board_task *task);
/* A member has come to this board from another one, which a pass that looks for it may not have been at. Only in
 * the server, which alone has ZMOVE. */
void board_task_pass_note_moved(struct server *server, const struct registry_key *key,
                                struct bytes member);
extern const struct job_kind board_task_reading, board_task_writing;

/* MATCH in their option tables: one alone, because of two the last would count. */
#define BOARD_TASK_MATCH_OPTION                                                                    \
    {                                                                                              \
        BIND("MATCH", struct board_task, pattern), .repeat = BINDING_ONCE_NAMED,                   \
                                                   .read = board_task_read_match                   \
    }
binding_read board_task_read_match;
/* Before the board, which has the member, is changed: if it is the archive of a room, the members
 * who have not come since get the tiers that follow from it as it is. false: no memory; the task comes again. */
MUST_CHECK bool board_task_settle(struct server *server, struct board_task *task,
                                  const struct registry_key *key);
/* An act: take the member off the board, and count it. */
void board_task_take(struct server *server, struct board_task *task, struct registry_key *key);
/* An answer: the number of boards done. */
void board_task_answer_count(struct board_task *task, struct reply *reply);

#endif
