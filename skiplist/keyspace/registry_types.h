/* The types of the registry (skiplist/keyspace/registry.h): keys, positions in a walk
 * over them, totals and callbacks. */
#ifndef SKIPLIST_REGISTRY_TYPES_H
#define SKIPLIST_REGISTRY_TYPES_H

#include "skiplist/board.h"
#include "skiplist/keyspace/hash.h"
#include "skiplist/keyspace/rules.h"

enum {
    REGISTRY_DATABASES = 16,
    /* Databases of the server's own, which no client can select or flush: from
     * REGISTRY_SYSTEM on. They have hashes only, the last one boards only. */
    REGISTRY_SYSTEM = REGISTRY_DATABASES,
    REGISTRY_HISTORY = REGISTRY_SYSTEM + 2, /* server/replication/history.h */
    REGISTRY_ONCE = REGISTRY_SYSTEM + 3,    /* server/commands/once.h */
    REGISTRY_ALL_DATABASES = REGISTRY_SYSTEM + 4,
    REGISTRY_KEY_MAX = 65536, /* bytes; at least 1 */
    /* The suffix of an archive's name: '@' and a date; where this name is taken, '.' and a number, too. */
    REGISTRY_SUFFIX_MAX = 1 + PERIOD_NAME_TEXT_MAX + 1 + 10,
    REGISTRY_NAME_MAX = REGISTRY_KEY_MAX + REGISTRY_SUFFIX_MAX,
};

/* Kinds of what a key holds (skiplist/keyspace/key_kind.h). */
enum {
    REGISTRY_BOARD = 0,
    REGISTRY_HASH = 1,
    REGISTRY_KINDS_MAX = 16,
};

struct registry;

/* Callback: the rules of a new board of this name; called once per created board, with choice 0. The result
 * is copied. Others that it may have instead are choices 1, 2 ...; NULL: there are no more. These have no
 * PERIOD. */
typedef const struct rules *registry_rules_for(void *context, struct bytes key, uint32_t choice);

/* Listener for changes of keys, called after the change: to members or expiry, creation, and
 * removal, including expiry and rollover. Flushing a database is a single change, reported while
 * its keys still exist, with name.at NULL. It must not change the registry. */
typedef void registry_key_changed(void *context, uint32_t database, struct bytes name);

/* Listener for boards that roll over, called before: the archive's name is in two parts, which are
 * empty if there is no archive. It must not change the registry. */
typedef void registry_board_rolled(void *context, uint32_t database, struct bytes name,
                                   const struct bytes archive[2]);

/* Listener for members that leave because of STALE: skiplist/keyspace/registry_stale.h. */
/* A board with a WINDOW is gone, and the board of its running period, of this name, with it. */
typedef void registry_share_gone(void *context, uint32_t database, struct bytes name);
typedef void registry_board_stale(void *context, uint32_t database, struct bytes name,
                                  bool is_removed);

/* Is there a key of this name outside of the registry? */
typedef bool registry_is_elsewhere(void *context, uint32_t database, struct bytes name);

/* One key of a database. Borrowed; valid until that key is removed, renamed or expired. There may
 * be millions of keys, so a key is a single, compact allocation. Look at kind before the value. */
struct registry_key {
    union {
        struct board board; /* if kind is REGISTRY_BOARD */
        struct hash hash;   /* if kind is REGISTRY_HASH: skiplist/keyspace/registry_hash.h */
        void *value[3];     /* of another kind: the room of its value */
    };
    /* From here on private to the registry. */
    union {
        struct {
            uint32_t index;        /* in the database's list */
            uint32_t expiry_place; /* in its expiry heap, or EXPIRY_NOWHERE */
        };
        struct registry_key *next_unfreed;
    };
    uint32_t name_size : 20;
    uint32_t kind : 4;
    uint32_t database : 5;
    uint32_t is_lasting : 1;    /* its expiry, if any, was given as a duration */
    uint32_t is_unreported : 1; /* its creation is reported with its first member */
    uint32_t is_periodic : 1;   /* the name has a tail (skiplist/keyspace/registry_parts.h) */
    char name_at[];
};
#define REGISTRY_NO_EXPIRY INT64_MIN

static inline struct bytes registry_name(const struct registry_key *key) {
    return (struct bytes){.at = key->name_at, .size = key->name_size};
}
/* The rules of the key's board. */
static inline const struct rules *registry_rules(const struct registry_key *key) {
    return rules_of(board_layout(&key->board));
}

/* Where a key is in a walk over all keys (skiplist/keyspace/registry_walk.h). */
enum registry_walk_state {
    REGISTRY_WALK_AHEAD,
    REGISTRY_WALK_OPEN,
    REGISTRY_WALK_DONE, /* or there is no walk */
};

/* A position in a value that is walked in steps; zeroed: its beginning. Beyond that, a kind defines
 * what it means, and keeps it right when the value changes between two steps. */
struct key_cursor {
    uint64_t last;
    uint32_t rank;
    bool has_last;
};

/* Counts since the start, and of what waits to be freed. */
struct registry_totals {
    uint64_t expired;        /* keys removed by expiry */
    uint64_t rolled;         /* boards rolled over at the end of their period */
    uint64_t league_settled; /* members of leagues, before the archive of their room went */
    uint64_t stale;          /* members that have left because of STALE */
    uint64_t settled;        /* archives that were settled */
    uint64_t unfreed;        /* removed boards not yet freed (INFO lazyfree_pending_objects) */
    uint64_t freed;          /* removed boards that were */
};

#endif
