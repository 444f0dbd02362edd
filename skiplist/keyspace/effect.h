/* Effects: the changes of a registry as final values, not as commands.
 *
 *     ZADD daily 700 ann  ---->  CREATE daily, with these options      (if it did not exist)
 *                                PUT daily ann 0x00000341...
 *
 * Listeners receive every change. Applying the same effects in the same order to a registry with
 * the same initial state yields the same keys, boards, members, order, options and expiries. Effects do not depend on a clock: an expiry or a period's end
 * is reported when it is carried out.
 *
 *     PUT      a member was added or moved: it is placed behind its equals (LATEST: before); or a
 *              field of a hash has this value
 *     TAKE     a member, or a field, was removed
 *     CUT      count members from rank on are removed
 *     CREATE   an empty board, or hash, was created
 *     REMOVE   a key was removed, with its board
 *     FLUSH    a database was emptied
 *     RENAME   a key got another name or database, and possibly other options
 *     COPY     the same, and the old key remains
 *     EXPIRE   a key's expiry was set or removed
 *     RULES    the options of a board changed, perhaps with its state; START only if it is empty
 *     STATE    its state alone changed
 *     FILL     a key was created together with all its members
 *     TAGS     a member's tags have these values; those it does not name are as before
 *     NOTE     a member's note is this one, or it has none (any more)
 *
 * A key that is replaced at a destination is reported as REMOVE first. A board created by a write
 * is reported (CREATE) just before its first member, and not at all if it is taken back. A FILL
 * carries only its key, because it may be long. A listener that records it writes CREATE, EXPIRE if
 * it has an expiry, and every member as a PUT, in rank order (LATEST: in reverse), followed by its
 * TAGS if it has values, and behind the members a NOTE each, with effect_fill_next. */
#ifndef SKIPLIST_EFFECT_H
#define SKIPLIST_EFFECT_H

#include "skiplist/keyspace/registry.h"

enum effect_kind {
    EFFECT_PUT,
    EFFECT_TAKE,
    EFFECT_CUT,
    EFFECT_CREATE,
    EFFECT_REMOVE,
    EFFECT_FLUSH,
    EFFECT_RENAME,
    EFFECT_COPY,
    EFFECT_EXPIRE,
    EFFECT_OPTIONS,
    EFFECT_FILL,
    EFFECT_TAGS,
    EFFECT_STATE,
    EFFECT_NOTE,
};

/* All pointers in it are borrowed for the call. */
struct effect {
    enum effect_kind kind;
    /* The key's kind; NULL: a board. Applying CREATE, PUT, TAKE and
     * CUT looks at it (TAGS, NOTE: boards only), all others fit keys of any kind. */
    const struct key_kind *key_kind;
    uint32_t database;
    uint32_t to_database; /* RENAME, COPY */
    uint32_t rank, count; /* CUT */
    struct bytes name;    /* the key's name; RENAME, COPY: the old name */
    struct bytes to_name; /* RENAME, COPY */
    struct bytes member;  /* PUT, TAKE, TAGS, NOTE */
    uint64_t member_key;  /* PUT, of a board */
    struct bytes
        value; /* PUT, of another kind; TAGS: as tag_values_pack writes them; NOTE, may be empty */
    int64_t expire_at_ms; /* EXPIRE, RENAME, COPY, FILL; or REGISTRY_NO_EXPIRY */
    /* CREATE, RULES, RENAME, COPY, FILL: the board's options now; NULL: no board. */
    const struct board_options *options;
    const struct board_state *state; /* likewise, and STATE; NULL: zeroed */
    /* In a listener: the key. RENAME, COPY: the new key; REMOVE: the removed key. NULL for FLUSH
     * and for effects to be applied. */
    const struct registry_key *key;
};

enum effect_status {
    EFFECT_OK = 0,
    EFFECT_OUT_OF_MEMORY,
    EFFECT_IMPOSSIBLE, /* it does not match the state, such as PUT on a missing key */
};

/* Apply effects[0 .. count-1] in order. Nothing expires, rolls over or is dropped by a CAP except as
 * the effects say. FILL cannot be applied. Removed boards are freed later by registry_free_step.
 * Listeners and a walk see these changes as they see those of commands.
 *
 * *applied: the number of effects applied. Errors: EFFECT_OUT_OF_MEMORY, EFFECT_IMPOSSIBLE; the
 * effect after the applied ones has then changed nothing. */
MUST_CHECK enum effect_status effect_apply(struct registry *registry, const struct effect *effects,
                                           uint32_t count, uint32_t *applied);
/* Private to the registry: apply PUT, TAKE, TAGS or CUT to a board. */
enum effect_status effect_apply_to_board(struct registry *registry, struct registry_key *key,
                                         const struct effect *effect);

/* ---- receiving ---- */

/* Owned by the caller, and borrowed while it is added. receive gets every effect: CUT before the
 * members are removed, all others after the change. It must not change the registry or its
 * listeners. */
struct effect_listener {
    void (*receive)(void *context, const struct effect *effect);
    void *context;
    uint32_t skips;               /* bits of kinds that it does not receive */
    struct effect_listener *next; /* private */
};

/* Listeners receive effects in the order in which they were added. Adding one that is there, or
 * removing one that is not, does nothing. Call between commands only. */
void effect_listener_add(struct registry *registry, struct effect_listener *listener);
void effect_listener_remove(struct registry *registry, struct effect_listener *listener);

/* Iterates over the effects of a FILL, inside the listener. Only `whole` is given; the rest is
 * zeroed. */
struct effect_fill {
    struct effect whole; /* the FILL, borrowed as it is */
    enum { EFFECT_FILL_CREATE, EFFECT_FILL_EXPIRE, EFFECT_FILL_MEMBERS } next;
    /* The state of the key's kind, zeroed at first. */
    bool is_reverse;
    uint32_t done;                      /* members, then the notes of a board */
    struct registry_note_room rooms[2]; /* for the names of two in a row */
    struct board_cursor cursor;
    bool has_values, has_tags_left; /* of the board; of the member, which is this one */
    struct bytes member;
    char values[TAG_VALUES_PACKED_MAX];
    const void *at; /* of other kinds: the next member */
};
/* false: no effects left. The member of an effect stays until the one behind the next PUT or NOTE. */
MUST_CHECK bool effect_fill_next(struct effect_fill *fill, struct effect *effect);

/* ---- what a key can hold: a kind of value, as a table of operations ----
 *
 *     registry_key [ value, 24 bytes | ... | kind: a number | name ]
 *                                            registry.kinds[number] -> struct key_kind
 *
 * The registry frees, measures, copies, moves and walks values of every kind through this table.
 * Commands of one kind compare registry_key.kind with their number, once, and then use the value
 * directly: nothing on the path to a board goes through the table.
 *
 * A value of zeros is empty and holds no memory. Numbers of kinds are part of effects. */

/* May an expired key be removed? */
enum key_expiry {
    KEY_EXPIRY_READY,
    KEY_EXPIRY_MORE, /* parts_max were dealt with, and others may be left */
    KEY_EXPIRY_OUT_OF_MEMORY,
};

struct key_kind {
    const char *name; /* as TYPE replies it */
    uint32_t number;  /* below REGISTRY_KINDS_MAX */

    /* Free about *work members of the value; true: all is freed, and *work is what that took.
     * Between calls the key is used for nothing else. */
    bool (*free_step)(struct registry *registry, struct registry_key *key, uint32_t *work);
    /* Heap bytes of the value, without the key. */
    size_t (*size)(const struct registry_key *key);
    /* Fill copy, a key with an empty value that is in no database. false: no memory; the value of
     * copy is then empty. */
    bool (*copy)(struct registry *registry, const struct registry_key *key,
                 struct registry_key *copy);
    /* The same by moving the value, which is then empty. NULL: moving its bytes is enough. */
    void (*move)(struct registry_key *key, struct registry_key *to);
    /* Read at most entries_max entries from the cursor on, and advance it; *is_last: it is at the
     * end. The kind defines the type of an entry (boards: struct board_stored). */
    uint32_t (*walk)(const struct registry_key *key, struct key_cursor *cursor, void *entries,
                     uint32_t entries_max, bool *is_last);
    /* Effects: the next one that helps to fill an empty value with what this one holds (false: none
     * left), and applying PUT, TAKE and CUT. */
    bool (*fill)(struct effect_fill *fill, struct effect *effect);
    enum effect_status (*change)(struct registry *registry, struct registry_key *key,
                                 const struct effect *effect);

    /* What a key of this kind means to others; NULL: nothing. Before it is removed because it has expired: in parts, *work
     * is what that took. When it has been taken out, before that is reported, and after. */
    enum key_expiry (*expire)(struct registry *registry, const struct registry_key *key,
                              uint32_t parts_max, uint32_t *work);
    void (*taken)(struct registry *registry, const struct registry_key *key);
    void (*removed)(struct registry *registry, const struct registry_key *key);

    /* What is wrong with the value, or with the cursor of a walk in it (or NULL); NULL: nothing. */
    const char *(*check)(const struct registry *registry, const struct registry_key *key,
                         const struct key_cursor *cursor);
};

/* Boards, REGISTRY_BOARD: registry_board.c. */
extern const struct key_kind key_kind_board;
/* Hashes, REGISTRY_HASH: registry_hash.c. */
extern const struct key_kind key_kind_hash;

/* As registry_find_or_create, for a key of a kind other than boards: a new one is empty. The key
 * that exists may be of another kind. */
MUST_CHECK struct registry_key *registry_find_or_create_kind(struct registry *registry,
                                                             uint32_t database, struct bytes name,
                                                             const struct key_kind *kind,
                                                             int64_t now_ms, bool *is_new);
/* Report that a member of a key of a kind other than boards was put, with this value, or taken.
 * Call after the change. */
void effect_emit_member(const struct registry *registry, enum effect_kind kind,
                        struct registry_key *key, struct bytes member, struct bytes value);

#endif
