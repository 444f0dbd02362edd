/* Prefetching: start the cache misses of a group of queued requests together before the requests
 * run.
 *
 *     boards         of the keys that the requests name; hashes are fetched with their fields
 *     slots          of the member index; the command table says which arguments are members
 *     descriptors    of the members' blocks            and the index on the path to where
 *     blocks                                           a single new score will be inserted
 *     entries        of the members in their blocks
 *
 * A cold look-up mostly waits for memory. This way the waits of a group overlap.
 *
 * Invariant: prefetching is only a hint. It changes nothing, and its results are checked before use
 * (board_look_up), so every request has the same result without it. Malformed requests are left to
 * their handlers. */
#ifndef SERVER_LOOKAHEAD_H
#define SERVER_LOOKAHEAD_H

#include "server/clients/server.h"
#include "server/dispatch/command.h"
#include "server/network/batch.h"
#include "skiplist/lookup.h"

enum {
    LOOKAHEAD_GROUP = 16,       /* requests */
    LOOKAHEAD_MEMBERS_MAX = 64, /* per group; further members are not prefetched */
    LOOKAHEAD_NO_KEY = LOOKAHEAD_GROUP,
};

/* A group of entries and what was found for them. */
struct lookahead_group {
    struct registry_prefetch keys[LOOKAHEAD_GROUP]; /* adjacent entries with one key share it */
    unsigned key_count;
    uint8_t key_numbers[LOOKAHEAD_GROUP];        /* by entry: index in keys, or LOOKAHEAD_NO_KEY */
    const struct board *boards[LOOKAHEAD_GROUP]; /* by entry; NULL: nothing to fetch */
    const struct command *commands[LOOKAHEAD_GROUP]; /* by entry; NULL: nothing to fetch */
    struct lookup *ahead[LOOKAHEAD_GROUP];           /* by entry: of its only member; or NULL */
    struct lookup members[LOOKAHEAD_MEMBERS_MAX];
    unsigned member_count;
};

/* entries[0 .. count-1], at most LOOKAHEAD_GROUP, will run next; void entries are skipped. The
 * results are stored in group, which borrows from the entries. */
void lookahead_entries(const struct server *server, const struct queue_entry *entries,
                       unsigned count, struct lookahead_group *group);

/* The same for one request alone, whose board is known, in two parts: what is done between them takes place while
 * memory is waited for.
 *
 * begin: fetch the slots of its members; returns how many, 0: none. members has room for LOOKUP_OWN_MIN.
 * finish: fetch the rest. */
unsigned lookahead_begin(const struct command *command, const struct request *request,
                         const struct board *board, struct lookup *members);
void lookahead_finish(const struct server *server, const struct command *command,
                      const struct request *request, struct lookup *members, unsigned count);

/* Entry i of the group runs next: pass on what was found for its key. */
void lookahead_recall(const struct server *server, const struct lookahead_group *group, unsigned i);

#endif
