/* Reads an RDB file, or the value in a DUMP payload, from pieces of any size.
 *
 *     rdb_reader_feed(&reader, piece);
 *     while ((event = rdb_reader_next(&reader)) > RDB_MORE)
 *         RDB_KEY      database, name, kind, type, expire_at_ms; of a board its options, too
 *         RDB_ENTRY    text and score of a zset, text and value of a hash; none of other kinds
 *         RDB_ENTRIES  some entries of a board, best first
 *         RDB_NOTE     text and value: a note of a board's member
 *         RDB_KEY_END
 *         RDB_STATE    text: a blob of what the module keeps beside the keys (server/rdb/rdb_board.h)
 *
 * Files of Redis 2.4 to 8.12 (RDB 1 to 16) and Valkey 7.2 to 9. The head is checked first. Sorted sets
 * and hashes of every encoding are read, and the boards of the module (server/rdb/rdb_board.h); all else
 * is passed over by its form, and values of other modules, too. What cannot be passed over is an error.
 *
 * Memory: a string that is kept, a packed value, and a chunk of a board are held as far as they have
 * arrived, at most RDB_TEXT_MAX; everything else in a few bytes. Each byte is read once. The bytes may be damaged in any
 * way. */
#ifndef SERVER_RDB_READER_H
#define SERVER_RDB_READER_H

#include "codec/buffer.h"
#include "server/rdb/rdb_board.h"
#include "server/rdb/rdb_bytes.h"

enum {
    RDB_VERSION_MAX = 16,        /* of Redis */
    RDB_VERSION_VALKEY_MIN = 80, /* of Valkey 9 */
    RDB_VERSION_VALKEY_MAX = 81,
    RDB_ERROR_MAX = 160,
    RDB_TEXT_MAX = 1 << 29, /* bytes of a string, as in Redis */
    RDB_TYPES = 34,
    RDB_DEPTH_MAX = 4,
};
#define RDB_NO_EXPIRY INT64_MIN

/* The first three end a loop over events. */
enum rdb_event {
    RDB_BAD,           /* error says what and where; for good */
    RDB_OUT_OF_MEMORY, /* for good */
    RDB_MORE,          /* feed the next piece */
    RDB_END,           /* the file is whole; rdb_reader_left says how many bytes are behind it */
    RDB_KEY,
    RDB_ENTRY,
    RDB_ENTRIES,
    RDB_NOTE,
    RDB_KEY_END,
    RDB_STATE, /* not checked; not in a DUMP payload */
};

enum rdb_kind { RDB_ZSET, RDB_HASH, RDB_BOARD, RDB_OTHER };

struct rdb_reader {
    /* For the caller. Bytes are borrowed until the next call. */
    unsigned version;
    bool is_valkey;
    uint64_t database;
    struct buffer name; /* of the key, until the next RDB_KEY */
    enum rdb_kind kind;
    unsigned type;
    int64_t expire_at_ms; /* or RDB_NO_EXPIRY */
    struct bytes text, value;
    double score;            /* not nan */
    struct rdb_board *board; /* RDB_BOARD: options, time_us, member_count; RDB_ENTRIES: entries */
    int64_t field_expire_at_ms;  /* RDB_ENTRY of a hash: the field's; or RDB_NO_EXPIRY */
    uint64_t field_expiry_count; /* fields that had one */
    uint64_t function_count;     /* libraries of functions, which are passed over */
    uint64_t offset;             /* bytes consumed */
    char error[RDB_ERROR_MAX];
    /* Private. */
    enum rdb_reader_state {
        RDB_AT_HEAD,
        RDB_AT_OPCODE,
        RDB_AT_NAME,
        RDB_AT_VALUE, /* its head */
        RDB_AT_ENTRY,
        RDB_AT_PACKED,
        RDB_AT_TEMPLATE, /* of a hash's field names; or, in the hash, its names */
        RDB_AT_FIELD,    /* one of them */
        RDB_AT_MODULE,   /* a module's value */
        RDB_AT_CHUNK,    /* of a board; or its end */
        RDB_AT_RECORD,   /* in a chunk */
        RDB_AT_AUX,      /* a module's auxiliary data */
        RDB_AT_STATE,    /* a blob of the module's, or the empty one, which is the last */
        RDB_AT_STATE_END,
        RDB_AT_PASSED, /* forms[] say what is passed over */
        RDB_AT_CHECKSUM,
        RDB_AT_END,
    } state;
    enum { RDB_FOUND, RDB_FOUND_TOO_FEW, RDB_FOUND_BAD } found; /* by this step; BAD is for good */
    size_t ahead;                                               /* bytes that it has read */
    bool is_single; /* a DUMP payload's value: no head, no opcodes */
    bool is_in_key;
    bool is_passing_key;
    bool is_key_over; /* the last event was RDB_KEY_END */
    bool is_out_of_memory;
    struct buffer input, text_room, value_room;
    size_t at;     /* in input: consumed */
    size_t crc_at; /* in input: in crc */
    uint64_t crc;
    uint64_t skip; /* bytes still to be consumed unread */
    uint64_t entries_left;
    uint64_t expiry_base; /* of a hash's fields: 0 as an expiry is none, 1 is this */
    struct rdb_packed packed;
    struct rdb_templates {
        struct rdb_template {
            uint64_t id;
            size_t begin; /* in names: a size of four bytes and a name, one behind the other */
            uint64_t count;
        } * at;
        size_t count, capacity;
        bool is_sorted; /* by id: a key has been sought by it, and no more come */
        struct buffer names;
        struct rdb_template own; /* that is being read, or whose names a key has */
        size_t name_at;          /* in names: the next value's */
    } templates;
    char text_number[BYTES_INTEGER_TEXT_MAX], value_number[BYTES_INTEGER_TEXT_MAX];
    /* What is passed over, as text, and how often the innermost part still comes. */
    uint32_t depth;
    struct rdb_form {
        const char *begin, *at;
        uint64_t left;
    } forms[RDB_DEPTH_MAX];
};

void rdb_reader_init(struct rdb_reader *reader);
/* For the value of a DUMP payload, without its last ten bytes: RDB_KEY comes first, without a name.
 * After RDB_KEY_END there is RDB_END. version: of the payload. */
void rdb_reader_init_value(struct rdb_reader *reader, unsigned version);
void rdb_reader_deinit(struct rdb_reader *reader);

/* Can this be read: an RDB version of Redis or Valkey? */
static inline bool rdb_knows_version(uint64_t version) {
    return (version >= 1 && version <= RDB_VERSION_MAX) ||
           (version >= RDB_VERSION_VALKEY_MIN && version <= RDB_VERSION_VALKEY_MAX);
}

/* Add bytes, which are copied, after RDB_MORE or at first. No memory: the next event says so. */
void rdb_reader_feed(struct rdb_reader *reader, struct bytes piece);
MUST_CHECK enum rdb_event rdb_reader_next(struct rdb_reader *reader);
/* After RDB_END: bytes that were fed and do not belong to it. */
size_t rdb_reader_left(const struct rdb_reader *reader);
/* These bytes, until the next call. */
struct bytes rdb_reader_rest(const struct rdb_reader *reader);
/* What a key of this type holds, in the plural: "strings". */
const char *rdb_reader_type_name(unsigned type);

#endif
