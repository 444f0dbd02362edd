/* What a key can hold: a kind of value, as a table of operations.
 *
 *     registry_key [ value, 24 bytes | ... | kind: a number | name ]
 *                                            registry.kinds[number] -> struct key_kind
 *
 * The registry frees, measures, copies, moves and walks values of every kind through this table.
 * Commands of one kind compare registry_key.kind with their number, once, and then use the value
 * directly: nothing on the path to a board goes through the table.
 *
 * A value of zeros is empty and holds no memory. Numbers of kinds are part of effects. */
#ifndef SKIPLIST_KEY_KIND_H
#define SKIPLIST_KEY_KIND_H

#include "skiplist/keyspace/effect.h"

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
