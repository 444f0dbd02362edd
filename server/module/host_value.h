/* What a key of the host holds: a board, ids of results (ONCE), or both.
 *
 * Ids are a board of their own in the same value, so they go wherever it goes: with DUMP, RESTORE and MIGRATE, with
 * RENAME and MOVE, into files and to replicas; and they are deleted, evicted and expire with it. To clients they are no
 * board. A value that has only ids is what is left of a board that has gone: for commands of ours there is no key. */
#ifndef SERVER_MODULE_HOST_VALUE_H
#define SERVER_MODULE_HOST_VALUE_H

#include "server/module/module.h"

/* The host moves values to other names without a word (RENAME, MOVE, SWAPDB), so the names in the
 * keys are only those they were found by last. */
struct host_value {
    union {
        struct {
            /* Owned; in no database, but while they are in a working set. */
            struct registry_key *key; /* the board; NULL: none */
            struct registry_key *ids; /* in REGISTRY_ONCE; NULL: none */
            /* Of the notes by which its passes of STALE go on, and its ids are forgotten; 0: none. */
            uint64_t stale_number, ids_number;
        };
        struct { /* of a freed one: what is to be released */
            struct host_value *next;
            const struct rules *rules, *ids_rules;
        } freed;
    };
};

/* Takes ownership of the board, which may be NULL. NULL: no memory. */
struct host_value *host_value_create(struct registry_key *key);
/* Free it with what it holds; any thread. */
void host_value_free(struct host_value *value);
/* Release what values freed in other threads have held. */
void host_value_settle(void);

/* The value of an open key of the host; NULL: it has none of ours. */
struct host_value *host_value_of(struct host_key *opened);
/* The same, if it has a board. */
struct host_value *host_value_of_board(struct host_key *opened);

/* Register the data type. false: the host refused. */
bool host_type_register(struct host_context *ctx);

#endif
