/* The databases: 16 maps from a key to a board, with expiry.
 *
 * A board belongs to exactly one key of one database. A key is expired from the millisecond of its
 * expiry on. Expired keys are removed on look-up and by registry_expiry_remove_due. Removed boards are not
 * freed at once: they are queued, and registry_free_step frees them in steps. The registry has no
 * clock: now_ms is an argument (unix milliseconds).
 *
 * A board with a PERIOD (skiplist/keyspace/board_options.h) rolls over at the end of its period, to the
 * millisecond:
 *
 *     daily -> [zoe 900, ann 700]            daily             -> [] (or removed, as below)
 *                                   ---->    daily@2026-11-16  -> [zoe 900, ann 700]
 *
 * With COPY the archive is a copy and daily goes on: see registry_roll_archive_step. Else
 * registry_roll_due does this, and so does every look-up that would otherwise see the old state. A
 * board created by LB.CREATE stays, empty; one created by a write is removed until the next write.
 * The look-ups cover single names only: call registry_roll_some before counting or scanning
 * keys. */
#ifndef SKIPLIST_REGISTRY_H
#define SKIPLIST_REGISTRY_H

#include "skiplist/board.h"
#include "skiplist/keyspace/board_options.h"
#include "skiplist/keyspace/hash.h"
#include "skiplist/tags.h"

enum {
    REGISTRY_DATABASES = 16,
    /* Databases of the server's own, which no client can select or flush: from
     * REGISTRY_SYSTEM on. Files have them by these numbers. What each holds, and where it goes: below. */
    REGISTRY_SYSTEM = REGISTRY_DATABASES,
    REGISTRY_JOBS = REGISTRY_SYSTEM,        /* server/commands/lb/board_task.h */
    REGISTRY_BANS = REGISTRY_SYSTEM + 1,    /* server/commands/ban.h */
    REGISTRY_HISTORY = REGISTRY_SYSTEM + 2, /* server/replication/replication.h */
    REGISTRY_ONCE = REGISTRY_SYSTEM + 3,    /* server/commands/once.h */
    REGISTRY_STAGING =
        REGISTRY_SYSTEM + 4, /* boards that commands make in steps: registry_board_stage */
    REGISTRY_REVOKED = REGISTRY_SYSTEM + 5, /* server/acl/player.h */
    REGISTRY_TICKETS = REGISTRY_SYSTEM + 6, /* server/commands/ticketing.h */
    REGISTRY_ALL_DATABASES = REGISTRY_SYSTEM + 7,
    REGISTRY_KEY_MAX = 65536, /* bytes; at least 1 */
    /* The suffix of an archive's name: '@' and a date; where this name is taken, '.' and a number, too. */
    REGISTRY_SUFFIX_MAX = 1 + PERIOD_NAME_TEXT_MAX + 1 + 10,
    REGISTRY_NAME_MAX = REGISTRY_KEY_MAX + REGISTRY_SUFFIX_MAX,
};

/* Users' databases hold boards and hashes, each of the server's own one of them. */
static inline bool registry_holds_boards(uint32_t database) {
    return database < REGISTRY_DATABASES || database == REGISTRY_ONCE ||
           database == REGISTRY_STAGING;
}
static inline bool registry_holds_hashes(uint32_t database) {
    return database < REGISTRY_DATABASES ||
           (database < REGISTRY_ALL_DATABASES && !registry_holds_boards(database));
}
/* Is it true of one server's files alone? It is in no export, and comes with no import. */
static inline bool registry_is_of_one_server(uint32_t database) {
    return database == REGISTRY_HISTORY || database == REGISTRY_STAGING;
}
/* Does a Redis with the module have it, too, beside its keys (server/rdb/rdb_board.h)? */
static inline bool registry_is_of_hosts(uint32_t database) {
    return database == REGISTRY_JOBS || database == REGISTRY_BANS;
}

/* Kinds of what a key holds (skiplist/keyspace/effect.h). */
enum {
    REGISTRY_BOARD = 0,
    REGISTRY_HASH = 1,
    REGISTRY_KINDS_MAX = 16,
};

struct registry;

/* Callback: the options of a new board of this name; called once per created board, with choice 0. The result
 * is copied. Others that it may have instead are choices 1, 2 ...; NULL: there are no more. These have no
 * PERIOD. */
typedef const struct board_options *registry_options_for(void *context, struct bytes key,
                                                         uint32_t choice);

/* Listener for changes of keys, called after the change: to members or expiry, creation, and
 * removal, including expiry and rollover. Flushing a database is a single change, reported while
 * its keys still exist, with name.at NULL. It must not change the registry. */
typedef void registry_key_changed(void *context, uint32_t database, struct bytes name);

/* Listener for boards that roll over, called before: the archive's name is in two parts, which are
 * empty if there is no archive. It must not change the registry. */
typedef void registry_board_rolled(void *context, uint32_t database, struct bytes name,
                                   const struct bytes archive[2]);

/* A board of several periods is gone, and that of its running period, of this name, with it. */
typedef void registry_share_gone(void *context, uint32_t database, struct bytes name);

/* Is there a key of this name outside of the registry? */
typedef bool registry_is_elsewhere(void *context, uint32_t database, struct bytes name);

/* One key of a database. Borrowed; valid until that key is removed, renamed or expired, or its hash
 * is written to. There may be millions of keys, so a key is a single, compact allocation. Look at
 * kind before the value. A key of a hash has its value behind the name (registry_hash), and none of
 * the bytes before `index`: its allocation begins there. */
struct registry_key {
    union {
        struct board board; /* if kind is REGISTRY_BOARD */
        void *value[3];     /* of another kind, but a hash: the room of its value */
    };
    /* From here on private to the registry. */
    union {
        struct {
            uint32_t index;        /* in the database's list */
            uint32_t expiry_place; /* in its expiry heap, or EXPIRY_NOWHERE */
        };
        struct registry_key *next_unfreed;
    };
    uint32_t name_size : 18;
    uint32_t has_state : 1; /* of a board: behind the name */
    uint32_t has_notes : 1; /* likewise */
    uint32_t kind : 4;
    uint32_t database : 5;
    uint32_t is_lasting : 1;    /* its expiry, if any, was given as a duration */
    uint32_t is_unreported : 1; /* its creation is reported with its first member */
    uint32_t is_periodic : 1;   /* the name has a tail (skiplist/keyspace/registry_private.h) */
    char name_at[];
};
#define REGISTRY_NO_EXPIRY INT64_MIN

static inline struct bytes registry_name(const struct registry_key *key) {
    return (struct bytes){.at = key->name_at, .size = key->name_size};
}
/* The key's hash; kind is REGISTRY_HASH. */
static inline const struct hash *registry_hash(const struct registry_key *key) {
    const void *hash = key->name_at + key->name_size;
    return hash;
}
/* The options of the key's board. */
static inline const struct board_options *registry_options(const struct registry_key *key) {
    return board_options_of(board_layout(&key->board));
}
/* Its state: zeroed where it has none. */
const struct board_state *registry_state(const struct registry_key *key);
/* The same changes, in place; the board's options have a state (board_options_have_state). */
void registry_set_state(struct registry *registry, struct registry_key *key,
                        const struct board_state *state);

/* Notes of members, which a board with RATING has: some bytes under a member's name, whether that is on the board or not.
 * They are part of the value: what copies, moves, saves or removes the board does it with its notes. */
enum { REGISTRY_NOTE_MAX = 160 * 1024 /* bytes; at least 1 */ };
/* Those under names that begin with a zero byte are the board's own, and no member's. */
static inline bool registry_note_is_own(struct bytes name) {
    return name.size > 0 && name.at[0] == '\0';
}
/* As a hash, whose fields are names in short; with RATING, names. NULL: this board can have none. */
const struct hash *registry_note_hash(const struct registry_key *key);
static inline uint32_t registry_note_count(const struct registry_key *key) {
    return key->has_notes ? hash_count(registry_note_hash(key)) : 0;
}
/* The field of a member's note on a board with these options, and as well the member of a field: in room, or the
 * argument. */
struct registry_note_room {
    char form[NAME_LEAD + 1 + NAME_FORM_MAX];
    char text[NAME_TEXT_ROOM];
};
struct bytes registry_note_short(struct bytes name, struct registry_note_room *room);
static inline struct bytes registry_note_field(const struct board_options *options,
                                               struct bytes name, struct registry_note_room *room) {
    return options->has_rating ? name : registry_note_short(name, room);
}
/* The note at an index below the count, as hash_at, but that its field is the member. */
void registry_note_at(const struct registry_key *key, uint32_t index, struct hash_pair *note,
                      struct registry_note_room *room);
/* The member's note, borrowed until the notes change; false: it has none. */
MUST_CHECK bool registry_note_find(const struct registry_key *key, struct bytes member,
                                   struct bytes *note);
/* Report an effect each, but no change of the key: registry_tell_members follows, once a command. put: false: no memory,
 * nothing changed. remove: false: there is none. */
MUST_CHECK bool registry_note_put(struct registry *registry, struct registry_key *key,
                                  struct bytes member, struct bytes note);
bool registry_note_remove(struct registry *registry, struct registry_key *key, struct bytes member);
/* Is there a board with has_shadows? */
bool registry_has_shadows(const struct registry *registry);
/* The same, or is anybody banned? */
bool registry_has_hidden(const struct registry *registry);
/* Has the board neither members nor notes? */
static inline bool registry_board_is_empty(const struct registry_key *key) {
    return board_count(&key->board) == 0 &&
           (registry_note_count(key) == 0 ||
            !(registry_options(key)->has_rating || registry_options(key)->has_hold ||
              registry_options(key)->has_shadows));
}
/* Is it empty, and not one that stays so? Who has taken the last from it removes it then. */
static inline bool registry_board_is_over(const struct registry_key *key) {
    return registry_board_is_empty(key) && !registry_options(key)->is_created;
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
    bool has_notes_begun, are_notes_done;
    uint32_t notes_ahead;
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

enum registry_status {
    REGISTRY_OK = 0,
    REGISTRY_OUT_OF_MEMORY,
};

/* NULL: no memory. hash_seed: random, secret. */
MUST_CHECK struct registry *registry_create(uint64_t hash_seed, registry_options_for *options_for,
                                            void *context);
/* Free every board at once, without reporting effects. May be NULL. */
void registry_destroy(struct registry *registry);
/* Set the listener for changes of keys, or NULL for none. The other listeners are taken away:
 * the context is theirs too. */
void registry_set_listener(struct registry *registry, registry_key_changed *key_changed,
                           void *context);
/* The same for boards that roll over, and for keys that expire, called before the key is removed; the
 * context is that of registry_set_listener, to be called first. */
void registry_set_rolled_listener(struct registry *registry, registry_board_rolled *board_rolled);
void registry_set_expired_listener(struct registry *registry, registry_key_changed *key_expired);
/* And for the boards of running periods, which go with their board. */
void registry_roll_set_share_listener(struct registry *registry, registry_share_gone *share_gone);

/* For a registry that has only some of the keys (registry_embedded.h): an archive takes no name that is
 * taken outside. The context is that of registry_set_listener. */
void registry_set_elsewhere(struct registry *registry, registry_is_elsewhere *is_elsewhere);
/* Was it set? The keys are then another host's, and here only while one command runs. */
bool registry_is_embedded(const struct registry *registry);

/* Passive: nothing expires and no board rolls over but by effects (skiplist/keyspace/effect.h), as on a
 * replica. Until the effect comes, an expired key, and a board whose period is over, are as if
 * missing. */
void registry_set_passive(struct registry *registry, bool is_passive);
/* Held: while writes are paused nothing expires and no board rolls over, and what is due reads as missing, as
 * in a passive registry. Only reads and effects may come. */
void registry_set_held(struct registry *registry, bool is_held);
/* An empty registry whose keys registry_exchange can take: of the same seed, with the same source of
 * options, and without listeners. NULL: no memory. */
MUST_CHECK struct registry *registry_create_beside(const struct registry *registry);
/* Remove all keys, also those of the server's own databases, without reporting anything:
 * registry_free_step frees them, and then registry_destroy has nothing left to do. */
void registry_clear(struct registry *registry);
/* Exchange all keys, with the memory that waits to be freed; listeners and sources of options stay
 * where they are. Changes are told (registry_key_changed) as of flushed databases, before it happens.
 * Neither may be walked. Effects are not reported. */
void registry_exchange(struct registry *registry, struct registry *other);

/* When the key expires; REGISTRY_NO_EXPIRY: never. */
int64_t registry_expiry(const struct registry *registry, const struct registry_key *key);
/* Heap bytes of the key and its value. */
size_t registry_memory_size(const struct registry *registry, const struct registry_key *key);
/* The name of its kind, as TYPE replies it. */
const char *registry_kind_name(const struct registry *registry, const struct registry_key *key);

/* The key, or NULL. An expired key is removed first (counted in registry_totals), and a
 * board whose period is over rolls over. If there is no memory for that, the key is treated as
 * missing until a look-up in a later millisecond succeeds; functions that create keys report out of
 * memory. name is read until the end of the call: listeners must not free it
 * (registry_roll_catch_up). */
struct registry_key *registry_find(struct registry *registry, uint32_t database, struct bytes name,
                                   int64_t now_ms);
/* The same without changing anything: the key, if it exists, has not expired, and is in its
 * period. */
const struct registry_key *registry_peek(const struct registry *registry, uint32_t database,
                                         struct bytes name, int64_t now_ms);

/* Staged prefetch of keys, like that of members (skiplist/board.h): run each stage for all keys of
 * a group before the next. Nothing is changed.
 *
 *     slots   hash the name, fetch its map slots
 *     place   read the slots, fetch the place in the list
 *     key     read the place, fetch the key
 *     end     compare the name: the key, of any kind; NULL if it does not exist or has expired
 */
struct registry_prefetch {
    struct bytes name; /* borrowed */
    uint64_t hash;
    struct registry_key *key; /* NULL: not known (yet) */
    uint64_t gone_count;
    uint32_t database;
    uint32_t index;
    bool is_recent; /* one of the keys found last: nothing needs to be fetched */
};
void registry_prefetch_slots(const struct registry *registry, uint32_t database, struct bytes name,
                             struct registry_prefetch *state);
void registry_prefetch_place(const struct registry *registry, struct registry_prefetch *state);
void registry_prefetch_key(const struct registry *registry, struct registry_prefetch *state);
const struct registry_key *registry_prefetch_end(const struct registry *registry, int64_t now_ms,
                                                 struct registry_prefetch *state);
/* Hint that the next key looked up is probably the one these stages found. Changes since then are
 * harmless. */
void registry_prefetch_recall(struct registry *registry, const struct registry_prefetch *state);
/* Find the key, or create an empty board with the options that options_for returns; is_new says which.
 * NULL: no memory and nothing changed (but a key of this name may have expired or rolled over). A
 * caller that leaves a new board empty must call registry_take_back. The creation is reported with
 * the first members (registry_tell_members). */
MUST_CHECK struct registry_key *registry_find_or_create(struct registry *registry,
                                                        uint32_t database, struct bytes name,
                                                        int64_t now_ms, bool *is_new);
/* The same, but a new board gets these options, in the period they state, and goes with its last member. */
MUST_CHECK struct registry_key *registry_find_or_create_in(struct registry *registry,
                                                           uint32_t database, struct bytes name,
                                                           const struct board_options *options,
                                                           int64_t now_ms, bool *is_new);
/* The same in the period of now, and a new board is reported at once. The options are copied. state NULL: the first
 * of a board. */
MUST_CHECK struct registry_key *registry_find_or_create_like(struct registry *registry,
                                                             uint32_t database, struct bytes name,
                                                             const struct board_options *options,
                                                             const struct board_state *state,
                                                             int64_t now_ms, bool *is_new);

/* Does a layout take these scores? Otherwise why it does not take the first one that it does not. */
typedef enum decimal_status registry_judge(const void *scores, const struct layout *layout);
/* The first options of options_for for this name whose layout takes the scores; where none does, those whose error says
 * most. */
const struct board_options *registry_options_taking(const struct registry *registry,
                                                    struct bytes name, registry_judge *judge,
                                                    const void *scores);
/* Give a board that registry_find_or_create has made, and that is still empty, other options of options_for
 * instead. false: no memory, nothing changed. */
MUST_CHECK bool registry_choose(struct registry *registry, struct registry_key *key,
                                const struct board_options *options);

/* Add or remove members of a key's board, as board_put_member and board_remove_member do, and
 * report effects (skiplist/keyspace/effect.h). Only these functions and registry_board_cut may
 * change a board that belongs to a key. The caller removes a key whose board has become empty. */
MUST_CHECK enum board_status registry_board_put(struct registry *registry, struct registry_key *key,
                                                const struct board_member *member,
                                                uint64_t packed_key);
void registry_board_take(struct registry *registry, struct registry_key *key,
                         const struct board_member *member);
/* Set values of a member that has been looked up and is on the key's board, as tags_set does, and
 * report them if that changed one. */
MUST_CHECK enum tags_status registry_board_tag(struct registry *registry, struct registry_key *key,
                                               const struct board_member *member,
                                               const struct tag_values *values, unsigned *full);
/* Call after a command has put, tagged or removed all its members, to notify the listener. The functions
 * below notify it themselves. */
void registry_tell_members(struct registry *registry, const struct registry_key *key);

/* Remove the key and queue its board for freeing. */
void registry_remove(struct registry *registry, struct registry_key *key);
/* The same for a key that was just created and has stayed empty; nothing is reported. */
void registry_take_back(struct registry *registry, struct registry_key *key);
/* Remove every key of one database, or of all with REGISTRY_DATABASES. O(1) in the number of
 * members. Returns the number of keys. */
uint64_t registry_flush(struct registry *registry, uint32_t database);

/* Rename or move, including the expiry; key is then invalid. A key at the destination is removed
 * first. The destination may be the key itself (no-op). Error: REGISTRY_OUT_OF_MEMORY, nothing
 * changed. */
MUST_CHECK enum registry_status registry_rename(struct registry *registry, struct registry_key *key,
                                                uint32_t to_database, struct bytes to_name,
                                                int64_t now_ms);
/* The same for a copy, with options, times, arrival order and expiry. Error: REGISTRY_OUT_OF_MEMORY,
 * nothing changed. */
MUST_CHECK enum registry_status registry_copy(struct registry *registry,
                                              const struct registry_key *key, uint32_t to_database,
                                              struct bytes to_name, int64_t now_ms);

/* Give a board other options and another state (NULL: what is left of its own). The layout is the same except for START
 * and tags: START may differ only if the board is empty; of tags, see tags_alter and registry_board_tags_fit. Members beyond
 * a CAP stay. The key may get another address, which is returned. NULL: no memory, nothing changed. */
MUST_CHECK struct registry_key *registry_board_alter(struct registry *registry,
                                                     struct registry_key *key,
                                                     const struct board_options *options,
                                                     const struct board_state *state);
/* The same, and another board (NULL: none) gets the options beside, which differ from its own in nothing that its key or its
 * members follow from. NULL: no memory, nothing changed. */
MUST_CHECK struct registry_key *
registry_board_alter_both(struct registry *registry, struct registry_key *key,
                          const struct board_options *options, const struct board_state *state,
                          struct registry_key *other, const struct board_options *beside);

/* Have the values that members have now room in the tags of this layout? Otherwise *full is the index of
 * a tag of it that has too few bits. Frees what removed members have left, if that decides. */
MUST_CHECK bool registry_board_tags_fit(struct registry_key *key, const struct layout *layout,
                                        unsigned *full);

/* Create an empty board, outside the keyspace, with the options that options_for returns for this name,
 * as a copy of such a board has them (board_options_without_window).
 * Fill it, then pass it to registry_put_board or registry_discard_board. false: no memory. */
MUST_CHECK bool registry_create_board(struct registry *registry, struct bytes name, int64_t now_ms,
                                      struct board *board);
/* Free such a board; a large one in steps (registry_free_step), if there is memory for that. */
void registry_discard_board(struct registry *registry, struct board *board);
/* Put such a board, which is within its cap, under its name, without an expiry; an existing key is
 * removed. The registry takes ownership of the board. Error: REGISTRY_OUT_OF_MEMORY, nothing
 * changed. */
MUST_CHECK enum registry_status registry_put_board(struct registry *registry, uint32_t database,
                                                   struct bytes name, struct board *board,
                                                   int64_t now_ms);
/* The same with a state (NULL: zeroed), notes, which are empty afterwards (NULL: none), and an expiry, as
 * registry_expiry_set takes it. */
MUST_CHECK enum registry_status
registry_put_board_until(struct registry *registry, uint32_t database, struct bytes name,
                         struct board *board, const struct board_state *state, struct hash *notes,
                         int64_t expire_at_ms, bool is_lasting, int64_t now_ms);

/* A board that is made in steps. Until it is whole it is a key of REGISTRY_STAGING, whose options are no more than the
 * layout, so that it reaches journals, snapshots and replicas as it grows:
 *
 *     key = registry_board_stage(registry, layout, &number)     layout: that of options; NULL: no memory
 *     registry_board_put(registry, registry_board_find_staged(registry, number), ...) ...
 *     registry_board_append(...)                                sooner: in rank order, behind the last one
 *     registry_board_unstage(registry, key, ...)                it gets its name in one step; or
 *     registry_remove(registry, key)
 *
 * registry_board_unstage: with these options, whose layout is the same, and without an expiry; as registry_rename
 * otherwise. is_told_whole: it is reported as FILL, and not as RENAME, for those who do not know what is staged.
 * After an error of registry_board_append the key may only be removed.
 * registry_board_drop_staged removes what a crash, or a master before this one, has left. */
MUST_CHECK struct registry_key *registry_board_stage(struct registry *registry,
                                                     const struct layout *layout, uint64_t *number);
struct registry_key *registry_board_find_staged(struct registry *registry, uint64_t number);
MUST_CHECK enum registry_status registry_board_unstage(struct registry *registry,
                                                       struct registry_key *key,
                                                       uint32_t to_database, struct bytes to_name,
                                                       const struct board_options *options,
                                                       bool is_told_whole, int64_t now_ms);
MUST_CHECK enum board_status registry_board_append(struct registry *registry,
                                                   struct registry_key *key,
                                                   const struct board_entry *entries,
                                                   uint32_t count);
void registry_board_drop_staged(struct registry *registry);

/* Can a board with these options be created under this name, which was read from a file? The name
 * must be free and not too long; with a PERIOD it must leave room for the dates of archives. */
MUST_CHECK bool registry_may_put(const struct registry *registry, uint32_t database,
                                 struct bytes name, const struct board_options *options);
/* The same for loading boards: create one with exactly these options, in the period they state; put
 * it under a name (registry_may_put) with a state (NULL: zeroed), an expiry or REGISTRY_NO_EXPIRY, regardless of its cap.
 * The end of its period is scheduled. */
MUST_CHECK bool registry_create_board_like(struct registry *registry,
                                           const struct board_options *like, struct board *board);
MUST_CHECK enum registry_status registry_put_loaded(struct registry *registry, uint32_t database,
                                                    struct bytes name, struct board *board,
                                                    const struct board_state *state,
                                                    struct hash *notes, int64_t expire_at_ms);
/* More members behind the last one of such a board, in rank order; nobody is told. Errors: the board may then only be
 * removed. */
MUST_CHECK enum board_status registry_append_loaded(struct registry *registry,
                                                    struct registry_key *key,
                                                    const struct board_entry *entries,
                                                    uint32_t count);

/* Set the key's expiry, or REGISTRY_NO_EXPIRY. is_lasting: it was given as a duration from now, and
 * keeps its distance from now when the clock jumps (registry_expiry_set_offset). Renames and copies
 * preserve that; effects and files contain the time alone, and are told when it shifts. Error: REGISTRY_OUT_OF_MEMORY, nothing
 * changed. */
MUST_CHECK enum registry_status registry_expiry_set(struct registry *registry,
                                                    struct registry_key *key, int64_t expire_at_ms,
                                                    bool is_lasting);
/* now_ms minus the milliseconds of a monotonic clock; initially 0. When it has changed by
 * REGISTRY_SHIFT_MS or more, expiries given as durations shift by the same amount, and are then told as
 * EXPIRE effects in steps (registry_expiry_tell_shifted): a clock that is corrected by less shifts nothing.
 * Not while the registry is passive: then expiries are what the effects said, whatever the clock does
 * that is followed. */
enum { REGISTRY_SHIFT_MS = 1000 };
void registry_expiry_set_offset(struct registry *registry, int64_t offset_ms);
/* Report the expiries of some keys, about names_max, that have shifted. true: more are left. When the registry becomes
 * passive, all are reported at once. */
bool registry_expiry_tell_shifted(struct registry *registry, uint32_t names_max);
/* Remove expired keys, the earliest first, at most keys_max. Returns the number removed; keys_max, too,
 * if the work was that of many: that of what goes before a key (struct key_kind). */
uint32_t registry_expiry_remove_due(struct registry *registry, int64_t now_ms, uint32_t keys_max);

/* Roll over the boards whose periods are over, the earliest first, at most keys_max. Returns the
 * number rolled over; fewer than keys_max means that all that is possible has been done. */
uint32_t registry_roll_due(struct registry *registry, int64_t now_ms, uint32_t keys_max);
/* The same before counting or scanning keys, limited to a fraction of a millisecond. true: all that
 * is possible has been done. */
bool registry_roll_some(struct registry *registry, int64_t now_ms);
/* Go on with the archives that are copies (PERIOD ... COPY) and due: copy entries_max members of one, or all of a
 * small one. A passive registry copies ahead of the effect that makes the archive. true: there is more to do
 * now. */
bool registry_roll_archive_step(struct registry *registry, int64_t now_ms, uint32_t entries_max);
/* Bytes that copies may take. A long board that needs more is put off for a second, and others have their turn. 0: no archive is
 * copied, and what was copied of one is given up, for a minute. They stay due. true: one waits. At first there is no
 * limit. */
bool registry_roll_archive_limit(struct registry *registry, uint64_t room, int64_t now_ms);
/* Carry out and report what is due for this name, as a look-up does. The name may be freed as soon
 * as a change is reported: this is for listeners that keep names of their own. Out of memory, the
 * name is reported as changed anyway. */
void registry_roll_catch_up(struct registry *registry, uint32_t database, struct bytes name,
                            int64_t now_ms);
/* The time of the next expiry or end of a period. REGISTRY_NO_EXPIRY: none. */
int64_t registry_expiry_next_due(const struct registry *registry);
/* Roll over manually: the members of a key's board move to the archive, a new key with an unused
 * name, with the same layout, times and arrival order, which expires at expire_at_ms, a duration
 * from now (or REGISTRY_NO_EXPIRY). An empty board gets no archive. The new board has the options
 * next. NULL: the same options as before; a board created by a write is then removed, and so is key.
 *
 * Error: REGISTRY_OUT_OF_MEMORY, nothing changed. */
MUST_CHECK enum registry_status registry_roll(struct registry *registry, struct registry_key *key,
                                              struct bytes archive,
                                              const struct board_options *next,
                                              int64_t expire_at_ms, int64_t now_ms);
/* Is this key the share, of a board of several periods with such options, of the one that begins then? */
bool registry_roll_is_share(const struct registry_key *key, const struct board_options *options,
                            int64_t start_ms);
/* Settle an archive that is unsettled. It then gets the expiry that has waited for that, unless one was set meanwhile;
 * if that is past, it expires at once, and the key is invalid. Error: REGISTRY_OUT_OF_MEMORY, nothing changed. */
MUST_CHECK enum registry_status
registry_roll_settle_archive(struct registry *registry, struct registry_key *key, int64_t now_ms);
/* Unsettled archives of all databases. */
uint64_t registry_unsettled_count(const struct registry *registry);
/* Likewise, periods that have to leave boards (board_options_window_behind). */
uint64_t registry_behind_count(const struct registry *registry);
/* Boards of all databases that rank in rooms (LB.LEAGUE); those that wait to be freed count, too. */
uint64_t registry_league_count(const struct registry *registry);
/* The key of which the one of this name is a room, an archive of one, or the rooms' template: what changes there changes
 * replies about that one, too. NULL: it is none of them. Costs a comparison where there are no rooms at all. */
const struct registry_key *registry_board_find_whole(const struct registry *registry,
                                                     uint32_t database, struct bytes name);
/* Is it a name of a room, or of an archive of one, whether there is such a key or not? */
MUST_CHECK bool registry_board_names_room(struct bytes name);
/* After the clock was set back: roll over boards whose periods begin later than now, as if their
 * periods were over, and name the archives after the periods they were in. Returns the number
 * rolled over; boards for which there is no memory are unchanged. */
uint32_t registry_roll_ahead(struct registry *registry, int64_t now_ms);
const struct registry_totals *registry_totals(const struct registry *registry);

/* Keys of one database, including expired ones not yet removed, and the number of keys with an
 * expiry. */
uint32_t registry_count(const struct registry *registry, uint32_t database);
uint32_t registry_expiry_count(const struct registry *registry, uint32_t database);
/* Those of the keys that hold boards, and the members of these boards. */
uint32_t registry_board_count(const struct registry *registry, uint32_t database);
uint64_t registry_member_count(const struct registry *registry, uint32_t database);
/* Of all databases that clients can select. */
struct registry_counts {
    uint64_t keys, boards, members;
};
struct registry_counts registry_count_all(const struct registry *registry);
/* Mean remaining milliseconds of the keys with an expiry; expired ones count as negative. At least
 * 0, and 0 without such keys. */
int64_t registry_expiry_average_ttl_ms(const struct registry *registry, uint32_t database,
                                       int64_t now_ms);

/* A uniformly random key, from 64 random bits. If the key drawn has expired it is removed, if its
 * period is over it rolls over, and another key is drawn, up to a limit. Then at most 16,384
 * following keys in the list are tried. NULL: no live key was found. A larger database may still
 * have one, if nearly all its keys have expired but are not removed yet. */
struct registry_key *registry_walk_random(struct registry *registry, uint32_t database,
                                          uint64_t random_bits, int64_t now_ms);

/* SCAN with Redis's guarantee; see board_cursor_scan. Expired keys are not visited. visit must not change
 * the registry. */
typedef void registry_visit(void *context, const struct registry_key *key);
uint64_t registry_walk_scan(const struct registry *registry, uint32_t database, uint64_t cursor,
                            const struct scan_limits *limits, int64_t now_ms, registry_visit *visit,
                            void *context);
/* Visit every key of one database that has not expired, in no particular order. */
void registry_walk_each(const struct registry *registry, uint32_t database, int64_t now_ms,
                        registry_visit *visit, void *context);
/* The same by name, as if every period that is over had ended; nothing is changed. */
typedef void registry_visit_name(void *context, struct bytes name);
void registry_walk_each_name(const struct registry *registry, uint32_t database, int64_t now_ms,
                             registry_visit_name *visit, void *context);

/* Remove count members of a key's board from rank on (board_remove_range); registry_free_step frees
 * the remains. The caller removes a key whose board has become empty. */
void registry_board_cut(struct registry *registry, struct registry_key *key, uint32_t rank,
                        uint32_t count);

/* Call at the end of each command, and of each step of a job: what look-ups returned may be freed from here on, and not
 * before. */
void registry_free_after_command(struct registry *registry);
/* Free about work_max members of removed boards, maps of flushed databases, and remains on boards;
 * false when nothing is left to free. */
bool registry_free_step(struct registry *registry, uint32_t work_max);

/* Check the maps, the expiry heap, the options and every board. reason: the first violated
 * invariant. */
MUST_CHECK bool registry_validate(const struct registry *registry, const char **reason);

/* ---- names of archives: "daily@2026-11-16", and "daily@2026-11-16.2" where that was taken ---- */

/* Write what the name of the archive of the period that contains this time has behind that of its board to
 * out (REGISTRY_SUFFIX_MAX): "@2026-11-16". Returns the size. */
size_t registry_roll_archive_suffix(const struct period *period, int64_t time_ms, char *out);
/* The whole name, in out (REGISTRY_NAME_MAX). */
struct bytes registry_roll_archive_name(struct bytes board, const struct period *period,
                                        int64_t time_ms, char *out);
/* If this may be an archive's name, that of its board: what is before the '@'. false: it is none, such as "{a@2}:1:1". */
MUST_CHECK bool registry_roll_archive_board(struct bytes name, struct bytes *board);

/* ---- STALE ----
 *
 * Members whose time is longer ago than the option of their board says leave it.
 *
 *     STALE 6 HOUR, now 12:00      zoe 900, 11:58   ann 700, 05:59   bob 700, 06:30
 *                                                   ^ leaves
 *
 * A time is over when the unit of the layout that has it is: with TIME in hours, 05:59 counts from 06:00 on. So
 * nobody leaves too early.
 *
 * The stale are anywhere on a board, so a pass goes over all its members, in steps, from the best to the worst. It
 * holds a key, not a rank: what comes and goes meanwhile does not move it. A member that moves past it meanwhile, with
 * a time that is stale already, leaves with the next pass.
 *
 * Boards that take no writes now keep their members. */

/* Where a pass over one board goes on. */
#define REGISTRY_STALE_BEGIN UINT64_MAX

/* Is there anything for a pass to do on the board? */
bool registry_board_may_drop_stale(const struct registry_key *key, int64_t now_ms);
/* One step of a pass over the board of a key that can be stale: look at members from *from_key on, and remove those
 * that are stale, until *work is used up; an empty board stays. *is_done: that was the last. Returns how many were
 * removed. */
uint32_t registry_board_drop_stale(struct registry *registry, struct registry_key *key,
                                   int64_t now_ms, uint64_t *from_key, uint32_t *work,
                                   bool *is_done);

/* ---- passes ---- */

/* A pass over all keys of some databases, in steps between which anything may change.
 *
 *     registry_walk_pass_begin(registry, &pass, 0, REGISTRY_DATABASES);
 *     while (!registry_walk_pass_is_over(&pass)) {
 *         struct registry_key *key = registry_walk_pass_next(registry, &pass, now_ms);
 *         if (key != NULL)
 *             look at it, change or remove it
 *         let commands run
 *     }
 *     registry_walk_pass_end(registry, &pass);
 *
 * It goes along the list of each database, from its end, so that keys come nearly as they lie in memory. The registry
 * knows the passes that are going on, a walk among them, and moves no key from before to behind where
 * one of them is, nor back:
 *
 *     list       a b c d | e f g | h i        c is removed: d takes its place, g that of d, and i that of g
 *     ahead of   <------>  pass 1             a copy that the walk is to meet goes to where e is, e to where h is, and
 *                <-------------->  the walk   h to the end
 *
 * So a key that is there all the time comes once; a board that begins anew, empty, while it is walked may not come. What gets
 * its name meanwhile comes if registry_walk_pass_has_passed is false for it then. Where another registry takes the place of this one
 * (registry_exchange) the pass begins anew. */

/* Zeroed at first. Private. */
struct registry_pass {
    struct registry_pass *next; /* that is going on */
    bool is_going;
    uint32_t first_database, database, end_database; /* database: where it is */
    uint32_t left[REGISTRY_ALL_DATABASES]; /* the first so many keys of each list are ahead */
};

/* All keys that are there are ahead. It may be going on. */
void registry_walk_pass_begin(struct registry *registry, struct registry_pass *pass,
                              uint32_t first_database, uint32_t end_database);
/* May come twice, or without a beginning. */
void registry_walk_pass_end(struct registry *registry, struct registry_pass *pass);
/* No key is left. */
bool registry_walk_pass_is_over(const struct registry_pass *pass);
/* The next key. NULL: it has expired; or the pass is over. */
struct registry_key *registry_walk_pass_next(const struct registry *registry,
                                             struct registry_pass *pass, int64_t now_ms);
/* Is the key in one of the databases, and will not come? */
static inline bool registry_walk_pass_has_passed(const struct registry_pass *pass,
                                                 const struct registry_key *key) {
    return key->database >= pass->first_database && key->database < pass->end_database &&
           key->index >= pass->left[key->database];
}

/* The walk state of a key, also inside an effect listener; for a removed key, the state it had. */
enum registry_walk_state registry_walk_state(const struct registry *registry,
                                             const struct registry_key *key);

/* ---- hashes ---- */

/* Hashes as values of keys: what commands call. Changes are reported to the listeners.
 *
 *     key = registry_find(registry, database, name, now_ms);
 *     if (key != NULL && key->kind != REGISTRY_HASH)  ->  WRONGTYPE
 *     hash_find(registry_hash(key), field, &value)                      reading: hash.h
 *
 *     key = registry_hash_find_or_create(registry, database, name, now_ms, &is_new);
 *     if (key == NULL)                                ->  OOM
 *     if (key->kind != REGISTRY_HASH)                 ->  WRONGTYPE (then is_new is false)
 *     if (registry_hash_put(registry, &key, args, count, &added_count) != HASH_OK)
 *         if (is_new) registry_take_back(registry, key);                 nothing has changed
 *     registry_tell_members(registry, key);                              once a command
 *
 *     registry_hash_remove(registry, key, field) ...                    then, if anything was removed:
 *     if (hash_count(registry_hash(key)) == 0) registry_remove(registry, key);   reports the change itself
 *     else registry_tell_members(registry, key); */

/* As registry_find_or_create: the key that exists may be of another kind; a new one is an empty
 * hash, which the caller fills or takes back. NULL: no memory. */
MUST_CHECK struct registry_key *registry_hash_find_or_create(struct registry *registry,
                                                             uint32_t database, struct bytes name,
                                                             int64_t now_ms, bool *is_new);
/* As hash_put and hash_remove, on the hash of a key. Only these may change it. When it is put to, the
 * key may get another address, also where the hash does not change. */
MUST_CHECK enum hash_status registry_hash_put(struct registry *registry, struct registry_key **key,
                                              const struct bytes *args, uint32_t count,
                                              uint32_t *added_count);
bool registry_hash_remove(struct registry *registry, struct registry_key *key, struct bytes field);
/* All of that for a hash in a database of the server's own. NULL: no memory, or the key is no hash; nothing has changed. */
MUST_CHECK struct registry_key *registry_hash_put_own(struct registry *registry, uint32_t database,
                                                      struct bytes name, const struct bytes *args,
                                                      uint32_t count, int64_t now_ms);
/* As registry_put_board_until: put a hash with fields under its name. hash is then empty. */
MUST_CHECK enum registry_status registry_put_hash(struct registry *registry, uint32_t database,
                                                  struct bytes name, struct hash *hash,
                                                  int64_t expire_at_ms, bool is_lasting,
                                                  int64_t now_ms);

#endif
