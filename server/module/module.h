/* The module: the server's handlers inside Redis or Valkey.
 *
 *     host's thread: command --host_run--> keys into the working set --handler--> effects, reply
 *                                      --> keys back, LB.APPLY, reply to the host
 *
 * The handlers are the server's own, with a registry that is empty between two commands. A command's keys are
 * taken from the host's keyspace into the registry for as long as it runs; what it has changed goes back, and to
 * replicas and the AOF as effects. Everything here runs in the host's main thread, except freeing of values
 * (host_type.c).
 *
 * Layers, each of which includes only those above it (.ci/check-layers):
 *
 *     host        host.h: functions of the host
 *     module      module.h: what all share, a key's value, and when something is due
 *     set         working_set.h: the keys of one command
 *     effects     host_effects.h: LB.APPLY, and what is kept beside the keys
 *     commands    host_run.h: commands, jobs, passes, the filter; host_type.c: the data type; module_load.c */
#ifndef SERVER_MODULE_MODULE_H
#define SERVER_MODULE_MODULE_H

#include <stdatomic.h>

#include "server/module/host.h"
#include "server/sessions/server.h"

struct module {
    struct server server; /* settings, clock, statistics, registry; no clients */
    struct session session;
    struct host_context *context;       /* of the command that runs; NULL: none */
    struct host_context *timer_context; /* for what has no command; lives as long as the module */
    struct host_type *type;
    uint32_t database_count; /* of the host */
    uint32_t database;       /* of the host, whose keys are in the working set */
    bool is_cluster;
    bool is_freeing; /* a timer goes on with it */
    /* What the command that runs wants to wait for (BZPOPMIN): see host_run.c. */
    struct {
        bool is_asked;
        const struct bytes *names; /* arguments of the request */
        uint32_t first_key, key_count;
        int64_t due_ms; /* monotonic, or REGISTRY_NO_EXPIRY */
    } wait;
    uint64_t waiting_count; /* clients that may wait */
};
extern struct module module;

/* Later times are damage: the end of the year 9999. */
#define MODULE_TIME_MAX_US (INT64_C(253402300800) * 1000000)

/* More than a day ahead of the server's time: clients may bring no such time. It would move the clock, and an id of
 * that time would not be forgotten for long. */
static inline bool module_is_too_far_ahead(uint64_t time_ms) {
    return time_ms > (uint64_t)module.server.clock.now_ms + 24 * 60 * 60 * 1000;
}

/* Time that came with a board or with effects: the clock never shows less. What does not come from the
 * master or from the host's own files is believed only near the machine's clock. */
void module_raise_clock(struct host_context *ctx, int64_t time_us);
/* Read the clock. Before each command. */
void module_update_time(void);
#ifdef MODULE_TEST
/* From now on this is the time. */
void module_set_test_time(int64_t now_us, int64_t monotonic_ms);
#endif

/* ---- what a key of the host holds ----
 *
 * A board, ids of results (ONCE), or both.
 *
 * Ids are a board of their own in the same value, so they go wherever it goes: with DUMP, RESTORE and MIGRATE, with
 * RENAME and MOVE, into files and to replicas; and they are deleted, evicted and expire with it. To clients they are no
 * board. A value that has only ids is what is left of a board that has gone: for commands of ours there is no key. */

/* The host moves values to other names without a word (RENAME, MOVE, SWAPDB), so the names in the
 * keys are only those they were found by last. */
struct host_value {
    /* Owned; in no database, but while they are in a working set. Of an emptied one the options that they had. */
    union {
        struct registry_key *key; /* the board; NULL: none */
        const struct board_options *options;
    };
    union {
        struct registry_key *ids; /* in REGISTRY_ONCE; NULL: none */
        const struct board_options *ids_options;
    };
    union {
        /* Of the notes by which its passes of STALE go on, and its ids are forgotten; 0: none. */
        struct {
            uint32_t stale_number, ids_number;
        };
        struct host_value *next_freed;
    };
    atomic_bool has_remains; /* the main thread is at work on it; set and cleared there */
    bool is_emptied;         /* freed, and its members with it: the options are to be released */
    bool is_freed;           /* freed, and goes with the last of its remains */
    bool is_in_set;          /* without a board, and in a working set */
};
_Static_assert(sizeof(struct host_value) <= 32, "every key of the host has one");

/* Takes ownership of the board, which may be NULL. NULL: no memory. */
struct host_value *module_value_create(struct registry_key *key);
/* Free it with what it holds; any thread. */
void module_value_free(struct host_value *value);
/* What it holds may have remains of a removal (board_has_remains): module_value_free_step frees them, and until then the
 * value stays where it is in memory. */
void module_value_note_remains(struct host_value *value);
/* Free some of what was removed, and go on later if there is more. After each command. */
void module_value_free_step(void);

/* The value of an open key of the host; NULL: it has none of ours. */
struct host_value *module_value_of(struct host_key *opened);
/* The same, if it has a board. */
struct host_value *module_value_of_board(struct host_key *opened);

/* ---- what is due when ---- */

enum host_work { HOST_WORK_ROLL, HOST_WORK_STALE, HOST_WORK_IDS, HOST_WORKS };

/* A key with a note of what is due. */
struct host_due {
    struct bytes name;
    uint32_t number;   /* of the note; one that the value does not have leaves it alone */
    uint64_t from_key; /* where a pass over a board with STALE goes on */
    int64_t again_ms;  /* when something is due again, once the pass is done */
    enum {
        HOST_STALE_GONE, /* there is no such board, or it has another note */
        HOST_STALE_MORE,
        HOST_STALE_DONE,
    } left;
};

struct host_value_work {
    bool (*run_on)(struct host_context *ctx, struct host_string *name, bool writes,
                   void (*step)(void *due), void *due); /* host_run_on */
    void (*steps[HOST_WORKS])(void *due);
};
void module_init_timer(const struct host_value_work *work);
/* Note what is to be done with the value, which is found under this name from now on. Without memory for it nothing
 * is noted. */
void module_note_due(struct host_value *value, struct bytes name, int database);
/* Note that it has ids, unless that was done. */
void module_note_ids(struct host_value *value, struct bytes name, int database);

/* Register the data type. false: the host refused. */
bool host_type_register(struct host_context *ctx);

#endif
