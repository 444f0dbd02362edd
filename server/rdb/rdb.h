/* The room: rdb_reader.h takes a dump file apart, event by event, from pieces of any size; rdb_bytes.h and
 * rdb_board.h know the forms of what is in it; rdb_value.h makes boards and hashes of it. This file puts them
 * into a registry: for --import, and for a server that follows Redis. The RESTORE of a client makes one key in its own way
 * (server/commands/keys/restore.c). rdb_write is the way back.
 *
 * Sorted sets become boards, boards of the module and hashes stay what they are, all else is counted.
 *
 *     rdb_load_feed(&load, piece) ...   RDB_LOAD_MORE until the file is whole
 *     rdb_load_step                     the same in bounded steps, of what rdb_reader_feed was given
 *     rdb_load_begin_value              then feed: the value of a DUMP payload
 *
 * A sorted set gets the options that the settings have for its name; its members, scores and order are those
 * of Redis, and its times are now (server/rdb/rdb_value.h). CAP keeps the best; FREEZE, OPENS and CLOSES are
 * for clients, and do not hold back an import. A board of the module keeps everything as it was. So do its bans, and the
 * durable jobs that it had not finished, which a server carries out when it starts. Where rdb_load_step has failed, the
 * registry holds a part of the file; each key is whole or not there. */
#ifndef SERVER_RDB_H
#define SERVER_RDB_H

#include "server/rdb/rdb_reader.h"
#include "server/rdb/rdb_value.h"
#include "skiplist/keyspace/registry.h"

enum { RDB_LOAD_ERROR_MAX = 640, RDB_LOAD_NAMES = 3 };

enum rdb_load_status {
    RDB_LOAD_MORE, /* bytes are needed */
    RDB_LOAD_STEP, /* there is more to do; of rdb_load_step alone */
    RDB_LOAD_DONE,
    RDB_LOAD_FAILED, /* error says why; for good */
};

enum rdb_merge {
    RDB_MERGE_REPLACES, /* the board takes its place, as it is */
    RDB_MERGE_GOES_ON,
    RDB_MERGE_DONE,   /* the board is not wanted any more */
    RDB_MERGE_FAILED, /* for good; whoever merges knows why */
};

/* Keys that were passed over, and some of their names. */
struct rdb_skipped {
    uint64_t count;
    struct bytes_shown names[RDB_LOAD_NAMES];
};

struct rdb_load {
    struct registry *registry; /* borrowed */
    int64_t now_us;            /* the time of what is written; it may rise between two steps */
    bool keeps_expired;        /* whoever feeds it says what goes */
    /* Called with each key that was read without an error, before it takes its place, and with those of other types, which
     * are passed over. It may remove what has its name. NULL: what is there already is an error. */
    void (*replace)(void *context, const struct rdb_load *load);
    /* Called with a board that is filled, in steps, before it takes its place: what is here already may be made equal to it
     * instead. NULL: it takes its place. */
    enum rdb_merge (*merge)(void *context, struct rdb_load *load);
    void *context;
    /* Of the key that is read. */
    uint64_t database;
    struct bytes name;
    enum rdb_kind kind;
    int64_t expire_at_ms; /* at its end */
    int64_t latest_us;    /* that, or when the latest board or ban of the module was written */
    struct rdb_reader reader;
    struct rdb_value value;
    struct board board;
    bool has_board;                 /* the key's board */
    bool is_filling;                /* it is being filled */
    bool is_merging;                /* it was, and merge is at work */
    struct effect_decoder *decoder; /* of what is beside the keys; NULL: nothing was */
    uint64_t board_count, hash_count;
    uint64_t member_count, field_count; /* also of the key that is read */
    uint64_t module_board_count;        /* of the boards: those of the module */
    uint64_t ban_count;                 /* members that are banned; at the end */
    uint64_t expired_count;             /* keys that had expired */
    uint64_t expired_field_count;       /* fields of hashes that had */
    uint64_t empty_count;
    uint64_t cut_count; /* members below a CAP */
    struct rdb_skipped skipped[RDB_TYPES];
    char error[RDB_LOAD_ERROR_MAX];
};

/* seed: random, secret. */
void rdb_load_init(struct rdb_load *load, struct registry *registry, uint64_t seed, int64_t now_us);
void rdb_load_deinit(struct rdb_load *load);
/* RDB_LOAD_DONE: rdb_reader_left says how many of the bytes are not part of the file. */
MUST_CHECK enum rdb_load_status rdb_load_feed(struct rdb_load *load, struct bytes piece);
MUST_CHECK enum rdb_load_status rdb_load_step(struct rdb_load *load);
/* What is fed next is the value of a DUMP payload of this version, without its last ten bytes, for this key; the name is
 * borrowed until its end. */
void rdb_load_begin_value(struct rdb_load *load, unsigned version, uint32_t database,
                          struct bytes name);
/* For merge: what load->board does not have leaves the key's board, neighbours together: of so many members from *rank on,
 * which is 0 at first. true: there is more. */
bool rdb_load_cut_missing(const struct rdb_load *load, struct registry_key *key, uint32_t *rank,
                          uint32_t count);
/* Free what was fed. */
void rdb_load_end_value(struct rdb_load *load);

/* ---- writing ----
 *
 * A registry's keys as an RDB file, version 10 (Redis 7.0 and later, Valkey): what a Redis with the module loads, and
 * what is read here.
 *
 *     "REDIS0010"  aux fields  bans and durable jobs (rdb_board.h)
 *     database 0   [expiry] board: a value of the module's type (rdb_board.h)
 *                  [expiry] hash: a hash of Redis
 *     database 1 ...
 *     end, checksum
 *
 * Nothing of the keys is lost: layouts, options, times, order of arrival, expiries, databases. */

/* Takes the next bytes, which are borrowed. false: it cannot, and the rest is not written. */
typedef bool rdb_write_put(void *context, const char *at, size_t size);

/* time_us: the server time that goes with the keys. One at a time in a process. false: put failed, or there is no
 * memory. */
MUST_CHECK bool rdb_write(struct registry *registry, int64_t time_us, rdb_write_put *put,
                          void *context);

/* ---- the value of DUMP ---- */

/* A length, or another number: 6, 14, 32 or 64 bits. */
void rdb_write_length(struct buffer *out, uint64_t length);
void rdb_write_text(struct buffer *out, struct bytes text);
/* Behind a value: 2 bytes version, and the CRC-64 of all before it. */
void rdb_write_footer(struct buffer *out, unsigned version);

#endif
