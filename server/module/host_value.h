/* What a key of the host holds: a board. */
#ifndef SERVER_MODULE_HOST_VALUE_H
#define SERVER_MODULE_HOST_VALUE_H

#include <stdatomic.h>

#include "server/module/module.h"

/* The host moves values to other names without a word (RENAME, MOVE, SWAPDB), so the name in the
 * key is only the one it was found by last. */
struct host_value {
    struct registry_key *key; /* owned; in no database, but while it is in a working set */
    union {
        uint64_t stale_number; /* of the note by which its passes of STALE go on; 0: none */
        struct host_value *next_freed;
    };
    const struct rules *rules; /* of a freed one: to be released */
    atomic_bool has_remains;   /* the main thread is at work on its board; set and cleared there */
    bool is_freed;             /* and it is freed with the last of them */
};

/* Takes ownership of the key. NULL: no memory. */
struct host_value *host_value_create(struct registry_key *key);
/* Free it with its board; any thread. */
void host_value_free(struct host_value *value);
/* Its board may have remains of a removal (board_has_remains): host_value_step frees them. */
void host_value_note_remains(struct host_value *value);
/* Has host_value_step anything to do? */
bool host_value_has_work(void);
/* Release what freed values have held, and free remains: about as much as work members. true: there is more. */
bool host_value_step(uint32_t work);

/* The board of an open key of the host; NULL: it holds none. */
struct host_value *host_value_of(struct host_key *opened);

/* Register the data type. false: the host refused. */
bool host_type_register(struct host_context *ctx);

#endif
