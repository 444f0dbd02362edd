/* Prefetching: start the cache misses of a group of queued requests together before the requests
 * run.
 *
 *     boards         of the keys that the requests name; hashes are fetched with their fields;
 *                    where it has shares, the running period's as well
 *     slots          of the member index; the command table says which arguments are members
 *     descriptors    of the members' blocks            and the index on the path to where
 *     blocks                                           a single new score will be inserted
 *     entries        of the members in their blocks
 *     rooms          of members of leagues, which their entries name
 *
 * A cold look-up mostly waits for memory. This way the waits of a group overlap.
 *
 * Invariant: prefetching is only a hint. It changes nothing, and its results are checked before use
 * (board_look_up), so every request has the same result without it. Malformed requests are left to
 * their handlers. */
#ifndef SERVER_LOOKAHEAD_H
#define SERVER_LOOKAHEAD_H

#include "server/dispatch/command.h"
#include "server/network/batch.h"
#include "server/sessions/server.h"
#include "skiplist/lookup.h"

enum {
    LOOKAHEAD_GROUP = 16,       /* requests */
    LOOKAHEAD_MEMBERS_MAX = 64, /* per group; further members are not prefetched */
    LOOKAHEAD_KEYS_MAX = 96,    /* nor further keys: those that requests name, */
    LOOKAHEAD_NAMES_MAX = 32,   /* and so many others of no more than these bytes */
    LOOKAHEAD_NAME_SIZE = 96,
    LOOKAHEAD_NO_KEY = LOOKAHEAD_KEYS_MAX,
};

struct lookahead_key {
    struct registry_prefetch found;
    const struct board *board; /* NULL: nothing to fetch */
    uint8_t share;             /* the running period's, as another key; or LOOKAHEAD_NO_KEY */
    bool is_league;
};

/* A group of entries and what was found for them. */
struct lookahead_group {
    struct lookahead_key
        keys[LOOKAHEAD_KEYS_MAX]; /* adjacent entries with the same keys share them */
    unsigned key_count;
    /* By entry: its keys are some neighbouring ones of keys. Of a board with rooms there is that of the member's. */
    uint8_t key_numbers[LOOKAHEAD_GROUP], key_counts[LOOKAHEAD_GROUP], rooms[LOOKAHEAD_GROUP];
    const struct command *commands[LOOKAHEAD_GROUP]; /* by entry; NULL: nothing to fetch */
    uint32_t positions[LOOKAHEAD_GROUP];             /* by entry: of its first member; or 0 */
    struct lookup *ahead[LOOKAHEAD_GROUP];           /* by entry: of its only member; or NULL */
    struct lookup members[LOOKAHEAD_MEMBERS_MAX];
    unsigned member_count;
    unsigned window_count, league_count; /* of keys */
    bool has_others; /* boards of entries beside the first key's: of further keys, or shares */
    unsigned name_count;
    char names[LOOKAHEAD_NAMES_MAX][LOOKAHEAD_NAME_SIZE];
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
