/* Binary encoding of effects, used for groups of the journal and blocks of a snapshot.
 *
 *     chunk   = record*                  a group or a block; each chunk can be decoded on its own
 *     record  = varint(n << 2 | kind) ...
 *
 *     kind 0  PUT    n = member's size   key, member
 *     kind 1  TAKE   n = member's size   member
 *     kind 2  BOARD  n = name's size     database (1 byte), name: the board of the next records
 *     kind 3  n is the subkind:
 *       0 CREATE   options                 5 EXPIRE  time
 *       1 REMOVE                         6 RULES   options
 *       2 FLUSH    database              7 CUT     varint rank, varint count
 *       3 RENAME, 4 COPY                 database, varint size, name, options, time
 *     in snapshots only:
 *       8 OPEN     options, time           9 PIECE   varint count, count * (varint size, key, member)
 *       10 CLOSE                         11 PIECE  varint count, count * (varint size, key, member, values)
 *     of keys with hashes:
 *       12 CREATE  kind (1 byte)         13 PUT    varint size, varint size, field, value
 *       14 TAKE    varint size, field    15 RENAME, 16 COPY  database, varint size, name, time
 *     of boards with a state:
 *       18 STATE   state
 *     of boards with tags:
 *       17 TAGS    varint size, member, values; size 0: the member of the last PUT or TAGS
 *     of boards with notes:
 *       19 NOTE    varint size, member, size 0: likewise; varint size, note
 *
 *     A key of kind 2 may be in a database of the server's own (REGISTRY_SYSTEM): orders and bans are
 *     hashes there, and ids of results are members of boards (REGISTRY_ONCE).
 *
 *     A hash in a snapshot is a CREATE, an EXPIRE if it has an expiry, and PUTs: the order of its
 *     fields does not matter. A TAKE there may be of a field that is not there yet.
 *
 *     key     XOR with the previous key in the chunk, without leading and trailing zero bytes:
 *             (zero bytes below << 4 | bytes that follow), bytes. Keys from the same moment differ
 *             in few bits.
 *     options   slot (1 byte); with 0x80 set, the slot's new content follows: a code and a value for each row of
 *             skiplist/keyspace/board_options.h that is not as usual (a varint of both signs, a zone's
 *             name, a rating), 0, tags, TIME and the fields, whose flags are 1 SIGNED, 2 ASC, 4 DOUBLE, 8 DECAY. When it is
 *             read, the end of a period in a named zone is that of today's tzdata. Behind it the state, if boards
 *             with these options have one
 *     rating  system (1 byte), a number and a value for each parameter that is not as usual in it (codec/rating.h), and 0
 *     limits  for all (1 byte), which (1 byte, a bit for each limit of skiplist/keyspace/limits.h), and of each its value or
 *             count, its time in milliseconds, and the decimals of the value (1 byte)
 *     state   a code and a value for each of its rows that is not 0, likewise, and 0
 *     values  of a member's tags, as tag_values_pack writes them (codec/tag.h)
 *     time    8 bytes, unix milliseconds; REGISTRY_NO_EXPIRY: none
 *
 * All integers are little endian. A put of a 20-byte member takes 25 to 29 bytes.
 *
 * The input may be damaged in any way: the decoder reports it and never reads out of bounds. */
#ifndef SERVER_EFFECT_BYTES_H
#define SERVER_EFFECT_BYTES_H

#include "codec/buffer.h"
#include "skiplist/keyspace/board_options.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_walk.h"

enum {
    EFFECT_RULES_SLOTS = 16,
    /* Codes and values of options and state, layout, tags. */
    EFFECT_RULES_SIZE_MAX = BOARD_OPTION_COUNT * 11 + ZONE_NAME_MAX + 16 +
                            LAYOUT_FIELDS_MAX * (LAYOUT_NAME_MAX + 16) +
                            TAGS_MAX * (TAG_NAME_MAX + 2) + (RATING_PARAMETERS + 1) * 11 +
                            LIMITS * 21 + 2 + 3 * 11 + 3 /* of HOLD */,
};

/* ---- writing ---- */

struct effect_encoder {
    struct buffer *out; /* borrowed; if it cannot grow, its is_broken is set */
    size_t name_at;     /* offset in out of the current key's name */
    size_t member_at;   /* the same of the last PUT or TAGS on that board */
    uint32_t name_size; /* 0: none yet */
    uint32_t member_size;
    uint32_t database;
    uint64_t last_key;
    uint32_t slots_used;
    uint32_t slot_next;
    struct effect_rules_text {
        uint32_t size;
        char at[EFFECT_RULES_SIZE_MAX];
    } slots[EFFECT_RULES_SLOTS];
};

/* Begin a new chunk at the end of out. */
void effect_bytes_encode_begin(struct effect_encoder *encoder, struct buffer *out);
/* A FILL is encoded as its parts (effect_fill_next), because it may not fit into one chunk. */
void effect_bytes_encode(struct effect_encoder *encoder, const struct effect *effect);

/* Boards of a snapshot. */
void effect_bytes_encode_open(struct effect_encoder *encoder, const struct registry_key *key,
                              int64_t expire_at_ms);
/* The entries of a board from this rank on, with the values of their tags. board NULL: they have none. */
void effect_bytes_encode_piece(struct effect_encoder *encoder, const struct board *board,
                               uint32_t rank, const struct board_stored *entries, uint32_t count);
/* The next entries of a board from *rank on, EFFECT_PIECE_ENTRIES at most, as one piece, with their
 * values; *rank moves on. false: none are left. */
enum { EFFECT_PIECE_ENTRIES = 512 };
bool effect_bytes_encode_next_piece(struct effect_encoder *encoder, const struct board *board,
                                    uint32_t *rank);
/* The same for the note at an index, as a NOTE effect. */
MUST_CHECK bool effect_bytes_encode_next_note(struct effect_encoder *encoder,
                                              const struct registry_key *key, uint32_t *index);
void effect_bytes_encode_close(struct effect_encoder *encoder);

/* ---- reading ---- */

enum effect_record {
    EFFECT_RECORD_END,     /* end of the chunk */
    EFFECT_RECORD_BAD,     /* not a valid record */
    EFFECT_RECORD_EFFECT,  /* effect is filled in */
    EFFECT_RECORD_OPEN,    /* effect's database, name, options and expire_at_ms */
    EFFECT_RECORD_ENTRIES, /* entry_count entries of a piece */
    EFFECT_RECORD_CLOSE,
};

/* Entries of a piece that are returned at a time. */
#ifdef SERVER_TINY
enum { EFFECT_ENTRIES_MAX = 3 };
#else
enum { EFFECT_ENTRIES_MAX = 512 };
#endif

struct effect_decoder {
    const char *begin, *at, *end; /* the chunk; borrowed */
    struct bytes name;
    struct bytes member; /* of the last PUT or TAGS on that board; size 0: none */
    uint32_t database;
    uint64_t last_key;
    uint64_t piece_left;
    uint32_t entry_count;
    struct effect effect; /* pointers in it are valid until the next record; names and members as
                           * long as the chunk */
    struct board_entry entries[EFFECT_ENTRIES_MAX];
    bool has_values;                               /* the piece has them: */
    struct bytes entry_values[EFFECT_ENTRIES_MAX]; /* packed, of any tags */
    const struct zone *missing_zone; /* that a PERIOD in this chunk needs; NULL: none */
    bool has_slot[EFFECT_RULES_SLOTS];
    struct board_options slots[EFFECT_RULES_SLOTS];
    struct board_state state; /* of the effect */
};

void effect_bytes_decode_begin(struct effect_decoder *decoder, struct bytes chunk);
MUST_CHECK enum effect_record effect_bytes_decode(struct effect_decoder *decoder);

/* ---- applying: several at a time, so that their memory accesses overlap ----
 *
 *     while an effect is decoded:  if (effect_batch_add(...)) effect_batch_apply(...)
 *     behind the last one:         effect_batch_apply(...)
 *
 * Names and members point into what was decoded, which stays until they are applied. */

#ifdef SERVER_TINY
enum { EFFECT_BATCH = 3 };
#else
enum { EFFECT_BATCH = 128 };
#endif

struct effect_batch {
    uint32_t done, count; /* effects[done .. count - 1] wait */
    struct effect effects[EFFECT_BATCH];
};

static inline bool effect_batch_is_done(const struct effect_batch *batch) {
    return batch->done == batch->count;
}

static inline void effect_batch_clear(struct effect_batch *batch) {
    batch->done = 0;
    batch->count = 0;
}

/* true: apply before anything more is decoded. It is full, or the effect has options, which are valid
 * only until the decoder's next record. */
MUST_CHECK static inline bool effect_batch_add(struct effect_batch *batch,
                                               const struct effect *effect) {
    bool may_wait = effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE ||
                    effect->kind == EFFECT_TAGS || effect->kind == EFFECT_NOTE ||
                    (effect->kind == EFFECT_CREATE && effect->key_kind != NULL);
    if (effect_batch_is_done(batch)) {
        effect_batch_clear(batch);
    }
    CHECK(batch->count < EFFECT_BATCH);
    batch->effects[batch->count++] = *effect;
    return !may_wait || batch->count == EFFECT_BATCH;
}

/* Apply what waits. Not EFFECT_OK: effects[done] is the one that was not applied;
 * those before it are, and the same can be tried again. */
MUST_CHECK static inline enum effect_status effect_batch_apply(struct effect_batch *batch,
                                                               struct registry *registry) {
    uint32_t applied = 0;
    enum effect_status status = EFFECT_OK;
    if (!effect_batch_is_done(batch)) {
        status = effect_apply(registry, batch->effects + batch->done, batch->count - batch->done,
                              &applied);
    }
    batch->done += applied;
    return status;
}

/* ---- blobs: effects of one command, as the module replicates them ----
 *
 *     LB.APPLY key blob [key blob] ...
 *     blob     FILE_FORMAT (1 byte), server time in microseconds (8 bytes), and a chunk of effects, all in database 0:
 *              that of the command
 *
 * A blob may be empty, but not the first one. The module writes and applies them; a server that follows a Redis
 * with the module applies them, too. */

enum { EFFECT_BLOB_HEAD_SIZE = 1 + 8 };

/* Begin a blob in out, which is cleared. What is encoded next, never a FILL, is in it. */
void effect_bytes_begin_blob(struct effect_encoder *encoder, struct buffer *out, int64_t now_us);
/* Its time and its chunk. false: it is none, or of another format. */
MUST_CHECK bool effect_bytes_open_blob(struct bytes blob, int64_t *time_us, struct bytes *chunk);
bool effect_bytes_is_blob_of_another_format(struct bytes blob);

/* Decode the whole chunk, before anything changes. false: it is damaged, or not every effect is allowed. */
typedef bool effect_bytes_allow(void *context, const struct effect *effect);
MUST_CHECK bool effect_bytes_check_blob(struct effect_decoder *decoder, struct bytes chunk,
                                        effect_bytes_allow *allow, void *context);

/* Apply a chunk that was checked. Each effect is shown just before it is applied, to be noted, or to get other
 * databases; false: it is passed over. The effects before it are applied by then, except that PUTs wait for each
 * other. Errors: the effects before are applied. */
typedef bool effect_bytes_visit(void *context, struct effect *effect);
MUST_CHECK enum effect_status effect_bytes_apply_blob(struct registry *registry,
                                                      struct effect_decoder *decoder,
                                                      struct bytes chunk, effect_bytes_visit *visit,
                                                      void *context);

#endif
