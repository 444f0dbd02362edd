/* A hash: fields with values, as the value of a key.
 *
 *     short    | size, count | sizes field value | sizes field value | ...     up to 254 bytes
 *     packed   far.packed -> | sizes field value | sizes field value | ...     up to 256 fields, 16 KiB
 *     large    far.large  -> struct hash_large:
 *                            map: hash(field) -> index     list: [0]     [1]     [2]
 *                                                                 |       |       |
 *                            slots of one size, side by side:   slot    slot    slot: a size field value
 *
 * Field and value have a slot together with others of their size if they are short (62 bytes with that byte), else a piece
 * of memory to which a slot points. So a short field of a large hash takes about 12 bytes beside its own.
 *
 * A short or packed hash has no gaps and is searched from its beginning: three short fields take
 * fewer bytes than one entry of a table. A short one is where its owner has put it, at any address:
 * a key has its hash behind its name, in one piece of memory with it. Its owner gives it more room,
 * or lets it become packed. What got too long becomes large, and stays so until it is empty. A large
 * hash takes O(1) a field; its map, its list and its slots grow in steps.
 *
 * Fields are in the order in which they were added. In a large hash a removal moves the last field
 * into the hole.
 *
 * Fields and values are any bytes, also none, up to HASH_TEXT_MAX. Bytes that are returned are
 * borrowed until the hash changes. Nothing here knows keys, databases or effects
 * (skiplist/keyspace/registry.h does). */
#ifndef SKIPLIST_HASH_H
#define SKIPLIST_HASH_H

#include <stddef.h>

#include "codec/bytes.h"
#include "skiplist/map.h"

enum {
#ifdef SKIPLIST_TINY
    HASH_PACKED_FIELDS_MAX = 4,
    HASH_PACKED_SIZE_MAX = 200,
    HASH_SHORT_SIZE_MAX = 40,
#else
    HASH_PACKED_FIELDS_MAX = 256,
    HASH_PACKED_SIZE_MAX = 16 * 1024, /* bytes */
    HASH_SHORT_SIZE_MAX = 254,        /* bytes */
#endif
    HASH_FAR = 255,          /* as a size: the fields are elsewhere */
    HASH_TEXT_MAX = 1 << 29, /* bytes */
    /* Up to these sizes Redis calls it a listpack (hash-max-listpack-entries and -value). */
    HASH_LISTPACK_FIELDS_MAX = 512,
    HASH_LISTPACK_TEXT_MAX = 64,
};
/* A hash has fewer fields. */
#define HASH_FIELDS_END MAP_ID_END

struct hash_large;

/* Of a hash that is not short. */
struct hash_far {
    union {
        char *packed;
        struct hash_large *large;
    };
    uint32_t count;
    uint32_t packed_size; /* bytes in use */
    bool is_large;
} __attribute__((packed));

/* Zeroed: without fields. Private but for its size: a short one may be longer or shorter. */
struct hash {
    uint8_t short_size; /* bytes in use behind these two; HASH_FAR: there is struct hash_far */
    uint8_t short_count : 7;
    uint8_t is_hashtable : 1; /* as Redis reports it */
    union {
        char short_at[22];
        struct hash_far far;
    };
} __attribute__((packed));
enum {
    HASH_HEAD_SIZE = offsetof(struct hash, short_at),
    HASH_SIZE_MIN = HASH_HEAD_SIZE + sizeof(struct hash_far), /* that one of any size takes */
};

struct hash_pair {
    struct bytes field, value;
};

enum hash_status {
    HASH_OK = 0,
    HASH_OUT_OF_MEMORY,
    HASH_FULL,    /* too many fields, or one too long */
    HASH_NO_ROOM, /* hash_put_within */
};

static inline bool hash_is_large(const struct hash *hash) {
    return hash->short_size == HASH_FAR && hash->far.is_large;
}
static inline uint32_t hash_count(const struct hash *hash) {
    return hash->short_size == HASH_FAR ? hash->far.count : hash->short_count;
}
/* Bytes from its address on that it takes. */
static inline size_t hash_size(const struct hash *hash) {
    return hash->short_size == HASH_FAR ? (size_t)HASH_SIZE_MIN
                                        : (size_t)HASH_HEAD_SIZE + hash->short_size;
}
/* "listpack" or "hashtable", as OBJECT ENCODING replies it. */
static inline const char *hash_encoding(const struct hash *hash) {
    return hash->is_hashtable ? "hashtable" : "listpack";
}

/* The value of a field. false: there is no such field. */
MUST_CHECK bool hash_find(const struct hash *hash, struct bytes field, struct bytes *value);

/* Every field, in order:
 *
 *     struct hash_cursor cursor = hash_begin(hash);
 *     while (hash_next(&cursor, &pair)) { ... } */
struct hash_cursor {
    const struct hash *hash;
    uint32_t index;  /* of the next field */
    uint32_t offset; /* packed: its offset */
};
static inline struct hash_cursor hash_begin(const struct hash *hash) {
    return (struct hash_cursor){.hash = hash};
}
MUST_CHECK bool hash_next(struct hash_cursor *cursor, struct hash_pair *pair);
/* The field at an index below hash_count, for random draws. O(1); in a packed hash as long as a
 * search. */
void hash_at(const struct hash *hash, uint32_t index, struct hash_pair *pair);

/* HSCAN with Redis's guarantee, see skiplist/map.h: cursor is 0 at first, returns the next one, 0
 * at the end. A packed hash is visited as a whole. visit must not change the hash. */
typedef void hash_visit(void *context, const struct hash_pair *pair);
uint64_t hash_scan(const struct hash *hash, uint64_t cursor, const struct scan_limits *limits,
                   hash_visit *visit, void *context);

/* Set count fields: args are field, value, field, value, ... The last one of equal fields wins.
 * *added_count: fields that did not exist. Errors: HASH_OUT_OF_MEMORY, HASH_FULL; nothing has then
 * changed. The arguments must not be bytes of this hash. seed: random, secret; used if it becomes
 * large. */
MUST_CHECK enum hash_status hash_put(struct hash *hash, uint64_t seed, const struct bytes *args,
                                     uint32_t count, uint32_t *added_count);
/* The same of a hash that has so many bytes where it is. HASH_NO_ROOM: nothing has changed, and it
 * wants as many as *wanted. wanted NULL: it then becomes packed or large instead. */
MUST_CHECK enum hash_status hash_put_within(struct hash *hash, size_t room, uint64_t seed,
                                            const struct bytes *args, uint32_t count,
                                            uint32_t *added_count, size_t *wanted);
/* Can these be put, but for lack of memory? */
bool hash_has_room(const struct hash *hash, const struct bytes *args, uint32_t count);
/* Estimated bytes that hash_put of these may allocate, rather too high than too low; for memory_reserve_begin. */
size_t hash_growth_size(const struct hash *hash, const struct bytes *args, uint32_t count);
/* The same of so many fields, whose names and values have so many bytes. */
size_t hash_growth_size_for(const struct hash *hash, uint32_t count, size_t text_size);
/* Remove a field; false: there is none. Never fails for lack of memory. */
bool hash_remove(struct hash *hash, struct bytes field);

/* Prefetch what a look-up reads first. */
void hash_prefetch(const struct hash *hash);
/* The same for what hash_find of these fields reads, of which the memory is waited for together: some, up to
 * HASH_PREFETCH_MAX. */
enum { HASH_PREFETCH_MAX = 16 };
void hash_prefetch_fields(const struct hash *hash, const struct bytes *fields, uint32_t count);
/* The same in three stages, between which the caller does something else until memory has answered. */
struct hash_prefetch {
    const struct hash *hash;
    uint32_t count;
    uint64_t hashes[HASH_PREFETCH_MAX];
    uint32_t indexes[HASH_PREFETCH_MAX]; /* in the list, or UINT32_MAX */
};
void hash_prefetch_begin(struct hash_prefetch *prefetch, const struct hash *hash,
                         const struct bytes *fields, uint32_t count);
void hash_prefetch_places(struct hash_prefetch *prefetch);
void hash_prefetch_entries(const struct hash_prefetch *prefetch);
/* Heap bytes, without those where it is. */
size_t hash_memory_size(const struct hash *hash);
/* Bytes that hash_move wants for it. */
size_t hash_moved_size(const struct hash *hash);
/* Move it to another place with so much room, which is overwritten; the hash is then without fields.
 * There it is short, if it can be. */
void hash_move(struct hash *hash, struct hash *to, size_t room);
/* Fill copy, which is without fields and has hash_size bytes. false: no memory; copy is as it was. */
MUST_CHECK bool hash_copy(const struct hash *hash, struct hash *copy);
/* Free about *work fields; true: all is freed, the hash is empty, and *work is what that took. In
 * between the hash is used for nothing else. */
MUST_CHECK bool hash_free_step(struct hash *hash, uint32_t *work);
/* The first violated invariant; NULL: none. */
const char *hash_check(const struct hash *hash);

#endif
