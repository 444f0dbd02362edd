/* The keys of one command, taken out of the host's keyspace and put on stage: into the registry, where
 * handlers find them.
 *
 *     host_stage_begin --> host_stage_key ... --> handler --> host_stage_end
 *
 * At the end the host gets what has changed: new keys, removed keys, boards in place of others, and
 * archives of boards that have rolled over. A key of the host's own types is on stage as an empty hash,
 * so that handlers answer WRONGTYPE, and replace it where Redis would. */
#ifndef SERVER_MODULE_HOST_STAGE_H
#define SERVER_MODULE_HOST_STAGE_H

#include "server/module/host_value.h"
#include "skiplist/keyspace/effect.h"

struct host_slot {
    struct host_string *name; /* borrowed from the command, or */
    bool is_own_name;         /* freed with the stage */
    struct bytes text;        /* of the name */
    struct host_key *opened;
    struct host_value *value; /* NULL: the host has no board there */
    struct registry_key *key; /* on stage when it began; NULL: none */
    bool is_changed;
    bool is_replaced; /* the key that was there is removed, whatever is there now */
};

enum { HOST_SLOTS_INLINE = 8 };

struct host_stage {
    struct host_context *ctx;
    struct host_slot *slots;
    uint32_t count, capacity;
    bool writes;
    bool applies;
    bool is_lent; /* the only key, a board that is read: registry_guest_lend */
    struct host_slot slots_inline[HOST_SLOTS_INLINE];
};

/* applies: the effects of a master, which has rolled boards over itself. */
void host_stage_begin(struct host_stage *stage, struct host_context *ctx, bool writes,
                      bool applies);
/* Put a key on stage, unless it is there; text: of its name. false: no memory. */
MUST_CHECK bool host_stage_key(struct host_stage *stage, struct host_string *name,
                               struct bytes text);
/* The same for a name that is no argument. */
MUST_CHECK bool host_stage_key_of(struct host_stage *stage, struct bytes name);
/* Is a key of this name on stage, or its place? */
/* registry_is_elsewhere: does the host have a key of this name in the database that is selected? */
bool host_stage_is_elsewhere(void *context, uint32_t database, struct bytes name);
bool host_stage_has(const struct host_stage *stage, struct bytes name);
/* Close a key that is only lent: a board that nobody changes needs no open key. */
void host_stage_close_lent(struct host_stage *stage);
/* The board of the first key; NULL: it has none. */
const struct board *host_stage_first_board(const struct host_stage *stage);
/* Note a change, as effects report it. */
void host_stage_note(struct host_stage *stage, const struct effect *effect);
/* Leave the stage. */
void host_stage_end(struct host_stage *stage);

struct bytes host_bytes(const struct host_string *string);

#endif
