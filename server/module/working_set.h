/* The keys of one command, taken out of the host's keyspace and put into the registry, where handlers find
 * them.
 *
 *     working_set_begin --> working_set_put ... --> handler --> working_set_end
 *
 * At the end the host gets what has changed: new keys, removed keys, boards in place of others, and
 * archives of boards that have rolled over. A key of the host's own types is in the set as an empty hash,
 * so that handlers answer WRONGTYPE, and replace it where Redis would. A key that has only ids of results
 * (module.h) is there as none. */
#ifndef SERVER_MODULE_WORKING_SET_H
#define SERVER_MODULE_WORKING_SET_H

#include "server/module/module.h"
#include "skiplist/keyspace/effect.h"

struct working_key {
    struct host_string *name; /* borrowed from the command, or */
    bool is_own_name;         /* freed with the set */
    struct bytes text;        /* of the name */
    struct host_key *opened;
    struct host_value *value; /* NULL: the host has no board there */
    struct registry_key *key; /* in the set when it began; NULL: none */
    bool has_ids;             /* in REGISTRY_ONCE is what it has: working_set_open_ids */
    bool is_changed;
    bool is_outdated; /* what clients have read of it, as a room of it has changed */
    bool is_to_note;  /* its options or its name have changed: module.h */
    bool is_replaced; /* the key that was there is removed, whatever is there now */
    bool is_rolled;   /* and has got another name: what is there now expires as it would have */
};

enum { WORKING_SET_INLINE = 8 };

struct working_set {
    struct host_context *ctx;
    struct working_key *keys;
    uint32_t count, capacity;
    bool writes;
    bool applies;
    bool has_remains;    /* removals have left some on boards, or ids */
    bool has_gone;       /* a key was removed or has got another name meanwhile */
    bool is_lent;        /* the only key, a board that is read: registry_embedded_lend */
    const char *refusal; /* the reply, whatever the handler says; NULL: what it says */
    enum { WORKING_SET_UNKNOWN, WORKING_SET_STAYS, WORKING_SET_MOVES } slot; /* the keys' */
    struct registry_key **boards; /* by key, while copies stand for them; NULL: none do */
    struct working_key keys_inline[WORKING_SET_INLINE];
};

/* applies: the effects of a master, which has rolled boards over itself. */
void working_set_begin(struct working_set *set, struct host_context *ctx, bool writes,
                       bool applies);
/* Put a key into the set, unless it is there; text: of its name. false: no memory. */
MUST_CHECK bool working_set_put(struct working_set *set, struct host_string *name,
                                struct bytes text);
/* The same for a name that is no argument. */
MUST_CHECK bool working_set_put_named(struct working_set *set, struct bytes name);
/* Put the ids of results of a key that is in the set where handlers find them: into REGISTRY_ONCE, under the key's
 * name. They stay with that name, whatever becomes of the board. false: no memory, or the key is not in the set, or of
 * another type. */
MUST_CHECK bool working_set_open_ids(struct working_set *set, struct bytes name);
/* Is a key of this name in the set, or its place? */
bool working_set_has(const struct working_set *set, struct bytes name);
/* A slot moves key by key. For keys that a command names the host answers ASK where they have gone, and TRYAGAIN where
 * some have. The same for a key that the command has come to by itself, and has not found: may it be on the other
 * node? Then the command stops, if it writes before its first change, and its reply becomes TRYAGAIN. */
bool working_set_lacks(struct working_set *set, struct bytes name);
/* registry_is_elsewhere: does the host have a key of this name in the database that is selected? */
bool working_set_is_elsewhere(void *context, uint32_t database, struct bytes name);
/* Close a key that is only lent: a board that nobody changes needs no open key. */
void working_set_close_lent(struct working_set *set);
/* What the host has of this name, which is in the set; NULL: nothing of ours. */
const struct host_value *working_set_value(const struct working_set *set, struct bytes name);
/* The board of the first key; NULL: it has none. */
const struct board *working_set_first_board(const struct working_set *set);
/* Note a change, as effects report it. */
void working_set_note(struct working_set *set, const struct effect *effect);
/* Give everything back to the host. */
void working_set_end(struct working_set *set);

/* ---- copies, for changes that may turn out to be impossible ---- */

/* Put copies in the place of the boards. false: no memory, nothing changed. */
MUST_CHECK bool working_set_copy(struct working_set *set);
/* The copies are the boards from now on; without copies, nothing. */
void working_set_keep_copies(struct working_set *set);
/* Everything is as it was before; without copies, nothing. */
void working_set_drop_copies(struct working_set *set);

#endif
