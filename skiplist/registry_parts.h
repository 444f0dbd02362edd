/* Private to the registry: what it is made of.
 *
 *     registry.c          keys: found, made, removed, expired
 *     registry_burial.c   what is removed, until it is freed
 *     registry_effects.c  telling every change, member by member
 *     registry_rename.c   keys that go by another name, and copies
 *     registry_roll.c     boards with a PERIOD, which begin anew at its end
 *     registry_scan.c     keys drawn at random, scanned, visited
 *     registry_walk.c     a walk over all boards while they change
 *     effect.c            the reverse of telling: changes, applied */
#ifndef SKIPLIST_REGISTRY_PARTS_H
#define SKIPLIST_REGISTRY_PARTS_H

#include "skiplist/effect.h"
#include "skiplist/expiry.h"
#include "skiplist/map.h"
#include "skiplist/pages.h"
#include "skiplist/registry.h"
#include "skiplist/registry_walk.h"

enum {
    /* What a period's end puts behind a name: '@' and a date. */
    PERIOD_NAME_MAX = 1 + PERIOD_DATE_TEXT_MAX,
};

/* A flushed database that waits to be freed. */
struct grave {
    struct grave *next;
    struct map map;
    struct pages list;
    struct pages expiry_entries;
    struct pages roll_entries;
    uint32_t count;
};

struct database {
    struct map map;
    struct pages list; /* struct registry_key * */
    uint32_t count;
    uint32_t ahead_count; /* so many, the first ones of the list, the walk has not come to yet */
    struct expiry expiry;
    struct expiry rolls;         /* ends of periods; the places are in the keys' tails */
    struct registry_key *recent; /* found last: the same key is often asked for again; or NULL */
    struct grave *grave;         /* for its burial; NULL before the first key */
    uint64_t
        gone_count; /* keys, and all at once, that have gone: what was found may be among them */
    uint64_t hash_seed;
};

struct registry_walk {
    const struct registry_key *open;  /* whose board is being walked; or NULL */
    const struct registry_key *taken; /* the last key that went, and where the walk was with it */
    enum registry_walk_state taken_state;
    uint32_t rank;     /* of the open board's next entry */
    uint64_t last_key; /* of the last entry that was given */
    bool has_last;     /* one was */
    bool has_begun;    /* a piece was */
    bool is_going;
};

struct registry {
    struct database databases[REGISTRY_DATABASES];
    struct rules_set rules;
    registry_rules_for *rules_for;
    void *context;
    registry_key_changed *key_changed; /* or NULL */
    void *listener_context;
    registry_hear *hear; /* effects; or NULL */
    void *hear_context;
    struct registry_walk walk;
    bool is_observed; /* somebody hears effects, or walks: the one thing that every change of a
                       * member asks */
    uint64_t hash_seed;
    uint64_t board_count; /* boards made so far, for their seeds */
    uint64_t expired_count;
    struct registry_key *buried;
    struct grave *graves;
    struct registry_key *dying; /* the one that is partly freed */
    uint64_t dying_count;       /* members it has left */
    struct board_chain remains;
    uint64_t buried_count;
    uint64_t freed_count;
    /* Before this no period ends: the one thing that every look-up asks. */
    int64_t roll_at_ms;
    int64_t roll_failed_ms; /* when there was no memory: it is not tried again in the same
                             * millisecond, so that a command sees one state */
    uint64_t rolled_count;
};

static inline struct database *registry_database(struct registry *registry, uint32_t index) {
    CHECK(index < REGISTRY_DATABASES);
    return &registry->databases[index];
}
static inline const struct database *registry_read(const struct registry *registry,
                                                   uint32_t index) {
    CHECK(index < REGISTRY_DATABASES);
    return &registry->databases[index];
}

/* What comes first of the heaps (struct expiry) that lie at this offset in each database; place is
 * NULL when they are empty. */
static inline struct expiry_entry registry_first(const struct registry *registry, size_t offset) {
    struct expiry_entry first = {.place = NULL};
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        const void *heap = (const char *)&registry->databases[i] + offset;
        const struct expiry *expiry = heap;
        if (expiry->count > 0) {
            struct expiry_entry entry = expiry_first(expiry);
            if (first.place == NULL || entry.time_ms < first.time_ms) {
                first = entry;
            }
        }
    }
    return first;
}

/* ---- keys, registry.c ---- */

/* A name in two parts, which may not lie together; the second may be empty. */
struct registry_new_name {
    struct bytes first, second;
};

static inline struct registry_key **registry_list_at(const struct pages *list, uint32_t index) {
    return pages_at(list, index * (uint64_t)sizeof(struct registry_key *));
}

static inline struct registry_key *registry_key_at(const struct database *database,
                                                   uint32_t index) {
    return *registry_list_at(&database->list, index);
}

/* By which the map has the key. */
uint64_t registry_hash(const struct database *database, const struct registry_key *key);
struct registry_key *registry_find_name(const struct database *database, struct bytes name);
/* The same, at once if it is the key that was found last. */
struct registry_key *registry_find_again(struct database *database, struct bytes name);
/* Make a key with an empty board that behaves like this, and tell nobody. NULL: no memory, and
 * nothing changed. */
MUST_CHECK struct registry_key *registry_make_key(struct registry *registry, uint32_t database,
                                                  struct bytes name, const struct rules *rules);
/* A key without a board that registry_put_reserved can put where it shall stand, with an expiry and
 * a PERIOD if it shall have one, without another allocation. NULL: no memory. */
MUST_CHECK struct registry_key *registry_reserve_key(struct registry *registry, uint32_t database,
                                                     struct registry_new_name name, bool expires,
                                                     bool is_periodic);
/* Put it there with its board, in the place of what bears its name, and tell it. state: what the
 * walk shall make of it. */
void registry_put_reserved(struct registry *registry, struct registry_key *key,
                           enum registry_walk_state state, int64_t expire_at_ms, int64_t now_ms);
/* The walk shall make no more of a key that was ahead, or open. */
void registry_pass_by(struct registry *registry, struct registry_key *key);
/* Take a key out. What was reserved before stays, until registry_trim. */
void registry_take(struct registry *registry, struct registry_key *key);
/* Give back memory after removals, a little at a time. */
void registry_trim(struct database *database);
static inline bool registry_has_expired(const struct database *database,
                                        const struct registry_key *key, int64_t now_ms) {
    return key->expiry_place != EXPIRY_NOWHERE &&
           expiry_time_ms(&database->expiry, key->expiry_place) <= now_ms;
}
/* Remove a key whose time has come. */
void registry_expire(struct registry *registry, struct registry_key *key);
void registry_tell(const struct registry *registry, uint32_t database, struct bytes name);
/* Every board has a seed of its own: what can be guessed of one says nothing of another. */
uint64_t registry_next_seed(struct registry *registry);

/* ---- burial, registry_burial.c ---- */

void registry_bury(struct registry *registry, struct registry_key *key);
/* All keys of a database, which is then to be made anew. */
void registry_bury_database(struct registry *registry, struct database *database);

/* ---- effects, registry_effects.c ---- */

/* CREATE, EXPIRE, RULES, FILL: of a key. */
void registry_hear_key(const struct registry *registry, enum effect_kind kind,
                       struct registry_key *key);
void registry_hear_removal(const struct registry *registry, struct registry_key *key);
/* RENAME, COPY: from the key of this name; key is the new one. */
void registry_hear_move(const struct registry *registry, enum effect_kind kind,
                        const struct registry_key *from, const struct registry_key *key);
/* Before the members go. */
void registry_hear_cut(const struct registry *registry, struct registry_key *key, uint32_t rank,
                       uint32_t count);
void registry_hear_flush(const struct registry *registry, uint32_t database);

/* ---- the walk, registry_walk.c ---- */

static inline void registry_observe(struct registry *registry) {
    registry->is_observed = registry->hear != NULL || registry->walk.is_going;
}
/* A key has been put where this state belongs; is about to be taken; or all of a database's are. */
void registry_walk_note_put(struct registry *registry, const struct registry_key *key,
                            enum registry_walk_state state);
void registry_walk_note_taken(struct registry *registry, const struct registry_key *key);
void registry_walk_note_flush(struct registry *registry, struct database *database);
/* The open board is about to change. */
void registry_walk_note_put_member(struct registry *registry, const struct board_member *member,
                                   uint64_t packed_key);
void registry_walk_note_take_member(struct registry *registry, const struct board_member *member);
void registry_walk_note_cut(struct registry *registry, uint32_t rank, uint32_t count);
/* What is wrong with the walk; NULL: nothing. */
const char *registry_check_walk(const struct registry *registry);

/* ---- periods, registry_roll.c ---- */

/* Behind the name of a key with a PERIOD, and of no other. */
struct registry_tail {
    struct registry_key *key; /* whose it is: the heap knows the place alone */
    uint32_t roll_place;      /* in the heap of rolls */
};

static inline size_t registry_tail_offset(size_t name_size) {
    const size_t unit = _Alignof(struct registry_tail);
    return (offsetof(struct registry_key, name_at) + name_size + unit - 1) / unit * unit;
}
static inline struct registry_tail *registry_tail(struct registry_key *key) {
    void *tail = (char *)key + registry_tail_offset(key->name_size);
    return tail;
}

/* Is the period of the key's board over? */
static inline bool registry_is_over(const struct registry_key *key, int64_t now_ms) {
    return key->is_periodic && rules_are_over(registry_rules(key), now_ms);
}

/* Have the end of its period waited for; there is room for it. */
void registry_await_roll(struct registry *registry, struct registry_key *key);
/* Let a board whose period is over begin anew, or go if it has expired before that. The key may be
 * gone then. false: no memory, and nothing changed. */
MUST_CHECK bool registry_roll_key(struct registry *registry, struct registry_key *key,
                                  int64_t now_ms);
/* The same for whatever can change what a name stands for: its own board, and the one that it is an
 * archive of. */
MUST_CHECK bool registry_settle_name(struct registry *registry, uint32_t database,
                                     struct bytes name, int64_t now_ms);
MUST_CHECK static inline bool registry_settle(struct registry *registry, uint32_t database,
                                              struct bytes name, int64_t now_ms) {
    return now_ms < registry->roll_at_ms || registry_settle_name(registry, database, name, now_ms);
}

/* What is wrong with how a key waits for the end of its period; NULL: nothing. */
const char *registry_check_roll(const struct database *database, const struct registry_key *key);

#endif
