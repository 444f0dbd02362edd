/* Private to the registry: its internals.
 *
 *     registry.c          keys: finding, creating, removing, putting, renaming, copying
 *     registry_board.c    boards as values of keys; changes of their members and options
 *     registry_note.c     notes of members of a board
 *     registry_hash.c     hashes as values of keys; changes of their fields
 *     registry_free.c     freeing later
 *     registry_expiry.c   expiring keys; durations
 *     registry_roll.c     rollover of boards with a PERIOD; archives that are copies; shares of boards
 *     registry_walk.c     all keys, while they change: passes, scans, and the walk
 *     registry_mirror.c   a copy of a board that is kept up to date
 *     registry_validate.c checks
 *     registry_embedded.c keys of another host, in the registry while a command runs
 *     league.c            leagues; their members whose period is over
 *     effect.c            reporting every change; applying effects */
#ifndef SKIPLIST_REGISTRY_PRIVATE_H
#define SKIPLIST_REGISTRY_PRIVATE_H

#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/expiry.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/map.h"

/* The heaps of a database; is_lasting is the index of the one that holds a key's expiry. */
enum {
    HEAP_EXPIRY,  /* keys with an absolute expiry */
    HEAP_LASTING, /* keys with a duration; its offset is the registry's */
    HEAP_ROLLS,   /* ends of periods; the places are in the keys' tails */
    HEAP_COPIES,  /* the same, of boards whose archives are copies */
    HEAPS,
};

enum { RECENT_MAX = 32 };

struct database {
    struct map map;
    struct map_pages list; /* struct registry_key * */
    uint32_t count;
    uint32_t board_count;     /* keys that hold a board */
    uint64_t member_count;    /* of all its boards */
    uint64_t unsettled_count; /* archives that are not settled */
    uint64_t behind_count;    /* board_options_window_behind of all boards */
    struct expiry heaps[HEAPS];
    /* Found last, often looked up again; or NULL. */
    struct registry_key *recent[RECENT_MAX];
    struct flushed_keys *flushed; /* reserved for a flush; NULL before the first key */
    uint64_t gone_count;          /* removals so far (a flush is one); detects stale prefetches */
    uint64_t hash_seed;
};

/* A flushed database that waits to be freed. */
struct flushed_keys {
    struct flushed_keys *next;
    struct database database;
};

struct registry_walk {
    struct registry_pass pass;
    struct registry_key *open;        /* the key whose value it is in; or NULL */
    const struct registry_key *taken; /* the key removed last, with its walk state */
    enum registry_walk_state taken_state;
    struct key_cursor cursor; /* in the open key */
    /* The member of the open board that changes: was it before the cursor, and is it now? */
    bool was_before, is_before;
    bool has_begun; /* there was a piece */
};

/* The archive that is being copied (registry_roll.c). A board that finds no memory is put off: its entry in the heap gets
 * a later time. */
struct registry_archiving {
    struct registry_mirror *mirror; /* NULL: none is */
    uint64_t room;                  /* see registry_roll_archive_limit; 0: held */
    bool is_waiting;                /* a board was put off for lack of room */
};

/* Whom it asks and tells: this stays where the keys are exchanged. */
struct registry_outside {
    registry_options_for *options_for;
    void *context;
    registry_key_changed *key_changed; /* or NULL, and so on */
    registry_key_changed *key_expired;
    registry_board_rolled *board_rolled;
    registry_share_gone *share_gone;
    registry_is_elsewhere *is_elsewhere;
    void *listener_context;
};

struct registry {
    struct database databases[REGISTRY_ALL_DATABASES];
    uint32_t
        used_databases; /* a bit for each that has ever had a key: what is due is asked for in every tick */
    struct board_options_set options;
    struct registry_outside outside;
    struct effect_listener *listeners; /* of effects */
    const struct key_kind *kinds[REGISTRY_KINDS_MAX];
    struct registry_pass *passes; /* that are going on */
    struct registry_walk walk;
    /* There is a listener or a walk: the only test that a change of a member makes. */
    bool is_observed;
    bool is_passive;  /* see registry_set_passive */
    bool is_held;     /* see registry_set_held */
    bool is_still;    /* is_passive or is_held: nothing expires and no board rolls over */
    bool is_applying; /* effects: the registry adds nothing to them */
    uint64_t hash_seed;
    uint64_t board_count; /* boards created so far, for their seeds */
    int64_t offset_ms;    /* that of durations */
    /* registry_expiry_set_offset was told so much more than offset_ms; while the registry is passive, and until
     * it is told next, that is not settled. */
    int64_t offset_passed_ms;
    bool is_offset_held;
    struct registry_pass telling; /* what durations have shifted by: registry_expiry_tell_shifted */
    struct registry_key *unfreed;
    struct registry_key *shells; /* keys without a value, see registry_free_shell */
    struct flushed_keys *flushed_first;
    struct registry_key *partly_freed; /* the key that is partly freed */
    struct board_chain remains;
    /* No period ends before this: the only test that a look-up makes. */
    int64_t roll_at_ms;
    /* Time of the last failure for lack of memory. Not retried in the same millisecond, so that a
     * command sees one state. */
    int64_t roll_failed_ms;
    struct registry_archiving archiving;
    struct registry_totals totals;
};

static inline struct database *registry_database(struct registry *registry, uint32_t index) {
    CHECK(index < REGISTRY_ALL_DATABASES);
    return &registry->databases[index];
}
static inline const struct database *registry_read(const struct registry *registry,
                                                   uint32_t index) {
    CHECK(index < REGISTRY_ALL_DATABASES);
    return &registry->databases[index];
}

/* Members came to the board of a key that is in its database; negative: they left. */
static inline void registry_count_members(struct registry *registry, const struct registry_key *key,
                                          int64_t change) {
    registry->databases[key->database].member_count += (uint64_t)change;
}

_Static_assert(REGISTRY_ALL_DATABASES <= 32, "used_databases has a bit for each");

/* The earliest entry of this heap of all databases; place is NULL if there is none. */
static inline struct expiry_entry registry_first(const struct registry *registry, uint32_t heap) {
    struct expiry_entry first = {.place = NULL};
    for (uint32_t left = registry->used_databases; left != 0; left &= left - 1) {
        const struct database *database = &registry->databases[__builtin_ctz(left)];
        first = expiry_earlier(first, expiry_first(&database->heaps[heap]));
    }
    return first;
}

/* ---- keys, registry.c ---- */

/* A name in two parts, not necessarily contiguous; the second may be empty. */
struct registry_new_name {
    struct bytes first, second;
};

static inline struct registry_key **registry_list_at(const struct map_pages *list, uint32_t index) {
    return map_pages_at(list, index * (uint64_t)sizeof(struct registry_key *));
}

static inline struct registry_key *registry_key_at(const struct database *database,
                                                   uint32_t index) {
    return *registry_list_at(&database->list, index);
}

/* The hash under which the map has the key. */
uint64_t registry_key_hash(const struct database *database, const struct registry_key *key);
struct registry_key *registry_find_name(const struct database *database, struct bytes name);
/* The key of this name, if it is one of those found last; NULL: it is not. There are several, for commands that need
 * some keys, and the next that need the same. */
static inline size_t registry_recent_slot(struct bytes name) {
    const unsigned char *at = (const unsigned char *)name.at;
    return name.size > 0 ? (name.size + 3U * at[0] + at[name.size - 1]) % RECENT_MAX : 0;
}
static inline struct registry_key *registry_recall(const struct database *database,
                                                   struct bytes name) {
    struct registry_key *key = database->recent[registry_recent_slot(name)];
    return key != NULL && bytes_equal(registry_name(key), name) ? key : NULL;
}
static inline void registry_remember(struct database *database, struct registry_key *key) {
    database->recent[registry_recent_slot(registry_name(key))] = key;
}
/* Another key of the same name has taken this one's place. */
static inline void registry_remember_instead(struct database *database,
                                             const struct registry_key *key,
                                             struct registry_key *successor) {
    struct registry_key **recent = &database->recent[registry_recent_slot(registry_name(key))];
    *recent = *recent == key ? successor : *recent;
}
static inline void registry_forget_recent(struct database *database) {
    memset(database->recent, 0, sizeof database->recent);
}
/* As registry_find_name, but those found last are found at once. A miss leaves them: one may only be lent
 * (registry_embedded.h). */
static inline struct registry_key *registry_find_again(struct database *database,
                                                       struct bytes name) {
    struct registry_key *key = registry_recall(database, name);
    if (key == NULL) {
        key = registry_find_name(database, name);
        if (key != NULL) {
            registry_remember(database, key);
        }
    }
    return key;
}
/* An empty board with options that are held. */
void registry_init_board(struct registry *registry, const struct board_options *options,
                         struct board *board);
/* Give a key's board these options, which are held, in place of those it has. */
void registry_set_options(struct registry *registry, struct registry_key *key,
                          const struct board_options *options);
/* Create an empty key, without reporting it; options: of a board. NULL: no memory, nothing changed.
 */
MUST_CHECK struct registry_key *registry_make_key(struct registry *registry, uint32_t database,
                                                  struct bytes name, uint32_t kind,
                                                  const struct board_options *options,
                                                  const struct board_state *state);
/* What is behind the name of a key. */
enum {
    TAIL_PERIOD = 1, /* struct registry_tail */
    TAIL_STATE = 2,  /* struct board_state, behind it */
    TAIL_NOTES = 4,  /* struct hash, behind that */
    TAIL_SIZE = 8,   /* times the bytes of a struct hash, if not just HASH_SIZE_MIN */
};
/* That of a key that is to get this key's hash. */
static inline unsigned registry_tail_of_hash(const struct hash *hash) {
    return (unsigned)hash_moved_size(hash) * TAIL_SIZE;
}
/* options: of the board that it is for; NULL: for none. */
static inline unsigned registry_tail_for(const struct board_options *options) {
    return options == NULL ? 0
                           : (options->period.unit != PERIOD_NONE ? TAIL_PERIOD : 0U) |
                                 (board_options_have_state(options) ? TAIL_STATE : 0U) |
                                 (board_options_have_notes(options) ? TAIL_NOTES : 0U);
}
/* Reserve a key without a value, so that registry_put_reserved can insert it, with an expiry and a
 * tail if requested, without allocating. NULL: no memory. */
MUST_CHECK struct registry_key *registry_reserve_key(struct registry *registry, uint32_t database,
                                                     struct registry_new_name name, uint32_t kind,
                                                     bool expires, unsigned tail);
/* Move the value of a key, which is in its database, to another one of its kind, which is not yet. */
void registry_move_value(struct registry *registry, struct registry_key *key,
                         struct registry_key *to);
/* Make room in a database for one more key, and for its PERIOD. false: no memory; no key has changed. */
MUST_CHECK bool registry_database_reserve(struct database *database, bool is_periodic);
/* A key of this name, not yet in a database, with an empty value. NULL: no memory. */
MUST_CHECK struct registry_key *
registry_create_key(uint32_t database, struct registry_new_name name, uint32_t kind, unsigned tail);
/* Where a key's allocation begins: see struct registry_key. */
static inline void *registry_piece(const struct registry_key *key) {
    return (char *)(uintptr_t)key +
           (key->kind == REGISTRY_HASH ? offsetof(struct registry_key, index) : 0);
}
/* Free the allocation of a key without a value, or NULL. */
void registry_free_key(struct registry_key *key);
/* The key's hash, to be changed, and the bytes that it has there. */
static inline struct hash *registry_own_hash(struct registry_key *key) {
    void *hash = key->name_at + key->name_size;
    return hash;
}
size_t registry_hash_room(const struct registry_key *key);
/* Give a key that is in no database what its options leave of a state; NULL: zeroed. */
void registry_give_state(struct registry_key *key, const struct board_state *state);
/* The key's state comes to its database, or leaves it: 1, -1. */
void registry_count_state(struct registry *registry, const struct registry_key *key, int change);
/* Insert a key with its value and without an expiry. There is room, and its name is free. Nothing is
 * reported. */
void registry_put(struct registry *registry, struct registry_key *key,
                  enum registry_walk_state state);
/* Insert it with its value, replacing an existing key of its name, and report it. state: its state
 * in the walk. */
void registry_put_reserved(struct registry *registry, struct registry_key *key,
                           enum registry_walk_state state, int64_t expire_at_ms, int64_t now_ms);
/* What it does before it goes because it has expired, as struct key_kind has it. */
MUST_CHECK enum key_expiry registry_before_expiry(struct registry *registry,
                                                  const struct registry_key *key,
                                                  uint32_t parts_max, uint32_t *work);
/* As registry_rename to a name that is not its own. held: its options then, which are released where there is no memory;
 * NULL: as they are. kind: RENAME or FILL, as which it is reported. */
MUST_CHECK enum registry_status registry_rename_to(struct registry *registry,
                                                   struct registry_key *key, uint32_t to_database,
                                                   struct bytes to_name,
                                                   const struct board_options *held,
                                                   enum effect_kind kind, int64_t now_ms);
/* registry_copy with a copy of the value made before (in no database), which it takes; *copy is then NULL, as
 * it is where the value is copied now. */
MUST_CHECK enum registry_status registry_copy_value(struct registry *registry,
                                                    const struct registry_key *key,
                                                    struct registry_key **copy,
                                                    uint32_t to_database, struct bytes to_name,
                                                    int64_t now_ms);
/* The options that a copy of a key has, held: one of an archive is none. *held NULL: those of the key. false: no
 * memory. */
MUST_CHECK bool registry_hold_copied(struct registry *registry, const struct registry_key *key,
                                     const struct board_options **held);
/* Exclude a key that was ahead or open from the walk. */
void registry_pass_by(struct registry *registry, struct registry_key *key);
/* The offset of all durations is this from now on; nobody is told. */
void registry_expiry_shift(struct registry *registry, int64_t offset_ms);
/* Another key of this name, with another tail, takes its place with its value and its expiry; so where it is in a walk or
 * a pass stays. There is room, and nothing is reported. The shell is freed after the command. */
void registry_replace(struct registry *registry, struct registry_key *key,
                      struct registry_key *successor);
/* Remove a key from the map, the list and the heaps. Their memory is kept until registry_trim. */
void registry_take(struct registry *registry, struct registry_key *key);
/* Free memory after removals, a little at a time. */
void registry_trim(struct database *database);
static inline bool registry_has_expired(const struct database *database,
                                        const struct registry_key *key, int64_t now_ms) {
    return key->expiry_place != EXPIRY_NOWHERE &&
           expiry_time_ms(&database->heaps[key->is_lasting], key->expiry_place) <= now_ms;
}
/* When the key of this database expires; REGISTRY_NO_EXPIRY: never. */
static inline int64_t registry_expiry_in(const struct database *database,
                                         const struct registry_key *key) {
    return key->expiry_place == EXPIRY_NOWHERE
               ? REGISTRY_NO_EXPIRY
               : expiry_time_ms(&database->heaps[key->is_lasting], key->expiry_place);
}
/* Remove an expired key. false: no memory for what goes before it (struct key_kind); the key is still
 * there, and as if missing. */
MUST_CHECK bool registry_expire(struct registry *registry, struct registry_key *key);
void registry_tell(const struct registry *registry, uint32_t database, struct bytes name);
/* Every board has its own seed, so that guessing one reveals nothing about another. */
uint64_t registry_next_seed(struct registry *registry);

/* Move a key in the list to another index, which is free. */
void registry_move_key(struct database *database, uint32_t from, uint32_t to);

/* ---- deferred freeing, registry_free.c ---- */

void registry_free_later(struct registry *registry, struct registry_key *key);
/* The same for a key that is out of its database and has no value any more: it is freed between two commands. */
void registry_free_shell(struct registry *registry, struct registry_key *key);
/* Queue all keys of a database; the caller then reinitialises it. */
void registry_free_database_later(struct registry *registry, struct database *database);

/* ---- passes and the walk, registry_walk.c ---- */

/* Move a hole in the list towards a limit, past where each pass is in between. Towards the list's end, the last key that a pass
 * has ahead takes the place of the hole, which is behind the pass then; towards its beginning, the first one that it has
 * passed, and the hole is ahead of it. Returns where the hole is then. */
uint32_t registry_walk_pass_move_hole(struct registry *registry, uint32_t number, uint32_t hole,
                                      uint32_t limit);
void registry_walk_pass_note_flush(struct registry *registry, uint32_t number);
/* The lists are others. */
void registry_walk_pass_restart_all(struct registry *registry);
static inline void registry_observe(struct registry *registry) {
    registry->is_observed = registry->listeners != NULL || registry->walk.pass.is_going;
}
/* A key has been inserted with this state, or is about to be removed. */
void registry_walk_note_put(struct registry *registry, struct registry_key *key,
                            enum registry_walk_state state);
void registry_walk_note_taken(struct registry *registry, const struct registry_key *key);

/* ---- periods ---- */

/* Follows the name of a key with a PERIOD, and of no other key. */
struct registry_tail {
    struct registry_key *key; /* owner: the heap only knows the place */
    uint32_t roll_place;      /* in the heap of ends of periods, which is */
    uint32_t roll_heap;       /* this one: HEAP_ROLLS, HEAP_COPIES */
};

static inline size_t registry_tail_offset(size_t name_size) {
    const size_t unit = _Alignof(struct registry_tail);
    return (offsetof(struct registry_key, name_at) + name_size + unit - 1) / unit * unit;
}
static inline struct registry_tail *registry_tail(struct registry_key *key) {
    void *tail = (char *)key + registry_tail_offset(key->name_size);
    return tail;
}
/* Where the state is of a key that has one. */
static inline struct board_state *registry_state_room(struct registry_key *key) {
    void *state = (char *)key + registry_tail_offset(key->name_size) +
                  (key->is_periodic ? sizeof(struct registry_tail) : 0);
    return state;
}
/* The notes of a key that has some. */
static inline struct hash *registry_own_notes(struct registry_key *key) {
    void *notes =
        (char *)registry_state_room(key) + (key->has_state ? sizeof(struct board_state) : 0);
    return notes;
}
/* Is the next piece of a walk one of notes? */
bool registry_board_walks_notes(const struct registry_key *key, const struct key_cursor *cursor);
/* A piece of a walk in a hash, registry_hash.c. */
uint32_t registry_hash_walk_on(const struct hash *hash, struct key_cursor *cursor,
                               struct hash_pair *pair, uint32_t entries_max, bool *is_last);
/* Move them to a key that can have some; those that were there are overwritten. */
void registry_note_move_all(struct registry_key *key, struct registry_key *to);
/* As registry_note_put, before the key is in its database, and without a report. */
MUST_CHECK bool registry_note_set(struct registry *registry, struct registry_key *key,
                                  struct bytes member, struct bytes note);

/* Is the period of the key's board over, so that its members go? Not where the archive is a copy. */
static inline bool registry_is_over(const struct registry_key *key, int64_t now_ms) {
    return key->is_periodic && board_options_are_over(registry_options(key), now_ms) &&
           !registry_options(key)->copies;
}
/* Is it over, and the archive, which is a copy, to be made? */
static inline bool registry_is_copy_due(const struct registry_key *key, int64_t now_ms) {
    return key->is_periodic && registry_options(key)->copies &&
           board_options_are_over(registry_options(key), now_ms);
}
/* Does a board keep its members when its period ends, as it is of several? */
static inline bool registry_slides(const struct board_options *options) {
    return options->window.count > 0;
}
/* Is it as if missing until its period has ended? */
static inline bool registry_is_hidden(const struct registry_key *key, int64_t now_ms) {
    return registry_is_over(key, now_ms) && !registry_slides(registry_options(key));
}
/* Is the key usable as it is? Not if there is none, if it has expired or if its period is over. */
static inline bool registry_is_current(const struct database *database,
                                       const struct registry_key *key, int64_t now_ms) {
    return key != NULL && !registry_has_expired(database, key, now_ms) &&
           !registry_is_hidden(key, now_ms);
}

/* ---- reporting effects, effect.c: without a listener or a walk this costs one test for each change ---- */

/* CREATE, EXPIRE, RULES, STATE or FILL of a key. */
void effect_emit_key(const struct registry *registry, enum effect_kind kind,
                     struct registry_key *key);
/* The effect has its kind and its own fields; those of the key are added. Without a listener it is
 * not even built. */
void effect_emit_to_listeners(const struct registry *registry, struct registry_key *key,
                              struct effect *effect);
__attribute__((always_inline)) static inline void
effect_emit(const struct registry *registry, struct registry_key *key, struct effect effect) {
    if (registry->listeners != NULL) {
        effect_emit_to_listeners(registry, key, &effect);
    }
}
/* RENAME or COPY from the key of this name; key is the new one. */
void effect_emit_move(const struct registry *registry, enum effect_kind kind,
                      const struct registry_key *from, const struct registry_key *key);
void effect_emit_flush(const struct registry *registry, uint32_t database);

/* ---- rollover, registry_roll.c ---- */

/* Make room for the end of one more period. false: no memory. */
MUST_CHECK bool registry_roll_reserve_end(struct database *database);
/* Schedule the end of its period, for which there is room. */
void registry_roll_await(struct registry *registry, struct registry_key *key);
/* Roll over a board whose period is over, or remove it if it expired before that. The key may then
 * be invalid. false: no memory, nothing changed. */
MUST_CHECK bool registry_roll_key(struct registry *registry, struct registry_key *key,
                                  int64_t now_ms);
/* The board whose archive may have been due before this key expires, or take its name after. NULL: there is
 * none, or its period is not over. */
struct registry_key *registry_roll_find_due_base(struct registry *registry,
                                                 const struct registry_key *key, int64_t now_ms);
/* The same for all boards that determine what this name refers to: its own board, and the board
 * whose archive it would be. */
MUST_CHECK bool registry_roll_name_due(struct registry *registry, uint32_t database,
                                       struct bytes name, int64_t now_ms);
MUST_CHECK static inline bool registry_roll_name(struct registry *registry, uint32_t database,
                                                 struct bytes name, int64_t now_ms) {
    return now_ms < registry->roll_at_ms ||
           registry_roll_name_due(registry, database, name, now_ms);
}

/* Visit the names that a key has as if every period that is over had ended: none, its own, its
 * archive's, or both. */
void registry_roll_visit_names(const struct registry *registry, const struct registry_key *key,
                               int64_t now_ms, registry_visit_name *visit, void *context);

/* Of boards as a kind of value (effect.h): a key has been taken out. */
void registry_roll_note_taken(struct registry *registry, const struct registry_key *key);
void registry_roll_note_removed(struct registry *registry, const struct registry_key *key);

/* ---- archives that are copies, registry_roll.c ---- */

/* When there is something to begin, REGISTRY_NO_EXPIRY: nothing. */
int64_t registry_roll_archive_next_due(const struct registry *registry);
/* Give up what was copied of an archive. */
void registry_roll_archive_end(struct registry *registry);
/* A key is about to expire: if its archive is due, the members become the archive instead, and *key is NULL
 * where that has removed it. false: no memory, nothing changed. */
MUST_CHECK bool registry_roll_archive_save(struct registry *registry, struct registry_key **key);
/* Move what was copied of the key's board, and the rest of it, to `to`, the copy's key, as the kind's copy does.
 * false: too little was copied, or nothing. */
MUST_CHECK bool registry_roll_archive_give(struct registry *registry,
                                           const struct registry_key *key, struct registry_key *to);

#endif
