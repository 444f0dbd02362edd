/* What a key of the host holds: a board, ids of results (ONCE), or both.
 *
 * Ids are a board of their own in the same value, so they go wherever it goes: with DUMP, RESTORE and MIGRATE, with
 * RENAME and MOVE, into files and to replicas; and they are deleted, evicted and expire with it. To clients they are no
 * board. A value that has only ids is what is left of a board that has gone: for commands of ours there is no key. */
#ifndef SERVER_MODULE_HOST_VALUE_H
#define SERVER_MODULE_HOST_VALUE_H

#include <stdatomic.h>

#include "server/module/module.h"

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
struct host_value *host_value_create(struct registry_key *key);
/* Free it with what it holds; any thread. */
void host_value_free(struct host_value *value);
/* What it holds may have remains of a removal (board_has_remains): host_value_free_step frees them, and until then the
 * value stays where it is in memory. */
void host_value_note_remains(struct host_value *value);
/* Free some of what was removed, and go on later if there is more. After each command. */
void host_value_free_step(void);

/* The value of an open key of the host; NULL: it has none of ours. */
struct host_value *host_value_of(struct host_key *opened);
/* The same, if it has a board. */
struct host_value *host_value_of_board(struct host_key *opened);

/* ---- what is due when ---- */

/* What is left of a pass over a board with STALE, or over ids. */
enum host_stale {
    HOST_STALE_GONE, /* there is no such board, or it has another note */
    HOST_STALE_MORE,
    HOST_STALE_DONE,
};

/* In the context's database. */
struct host_value_work {
    /* Look the key up, and so roll it over if it is due. */
    void (*roll)(struct host_context *ctx, struct host_string *name);
    /* One step of a pass over a board with STALE whose note has this number; *from_key: where it goes on. */
    enum host_stale (*drop)(struct host_context *ctx, struct host_string *name, uint32_t number,
                            uint64_t *from_key);
    /* The same over ids; *again_ms: when the oldest of those that are left is to be forgotten. */
    enum host_stale (*forget)(struct host_context *ctx, struct host_string *name, uint32_t number,
                              int64_t *again_ms);
};
void host_value_init_timer(const struct host_value_work *work);
/* Note what is to be done with the value, which is found under this name from now on. Without memory for it nothing
 * is noted. */
void host_value_note_due(struct host_value *value, struct bytes name, int database);
/* Note that it has ids, unless that was done. */
void host_value_note_ids(struct host_value *value, struct bytes name, int database);

/* Register the data type. false: the host refused. */
bool host_type_register(struct host_context *ctx);

#endif
