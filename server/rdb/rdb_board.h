/* A board as dump files and payloads of Redis have it: a value of the data type "LB-board1", which the
 * module writes (server/module/host_type.c).
 *
 *     value   format, server time in microseconds, count of members, chunk ...
 *     chunk   effects as a snapshot has them (server/durability/effect_bytes.h): the first begins with
 *             OPEN, all else are pieces, best members first, and behind them NOTEs, which count as members, too
 *     format  FILE_FORMAT. With a flag: RDB_BOARD_HAS_IDS, the key's ids of results (ONCE) follow, as another
 *             such value; RDB_BOARD_IS_IDS, these are ids, of the board before or of none
 *
 *     rdb_board_begin(board, version, format, time_us, member_count)
 *     rdb_board_take(board, chunk)
 *     while ((event = rdb_board_next(board)) > RDB_BOARD_CHUNK_END)
 *         RDB_BOARD_OPENED     options
 *         RDB_BOARD_ENTRIES    entry_count entries
 *         RDB_BOARD_NOTE       decoder.effect: member and value
 *     the next chunk, until rdb_board_is_whole
 *
 * It may come from anybody: what it says is checked, each entry by itself and against the one before.
 * Not whether a member is there twice: who fills a board sees that. */
#ifndef SERVER_RDB_BOARD_H
#define SERVER_RDB_BOARD_H

#include "codec/check.h"
#include "server/durability/effect_bytes.h"
#include "skiplist/keyspace/registry.h"

enum { RDB_BOARD_TYPE_VERSION = 1, RDB_BOARD_HAS_IDS = 1 << 8, RDB_BOARD_IS_IDS = 1 << 9 };
#define RDB_BOARD_TYPE_NAME "LB-board1"

enum rdb_board_event {
    RDB_BOARD_BAD, /* error says why; for good */
    RDB_BOARD_CHUNK_END,
    RDB_BOARD_OPENED,
    RDB_BOARD_ENTRIES,
    RDB_BOARD_NOTE,
};

struct rdb_board {
    struct board_options options; /* from RDB_BOARD_OPENED on */
    struct board_state state;
    int64_t time_us; /* when it was written */
    uint64_t member_count, read_count;
    const char *error; /* NULL: none */
    bool has_options;
    bool has_ids, is_ids;
    /* Private. */
    bool is_chunk_used; /* something was in it */
    uint64_t last_key;
    struct effect_decoder decoder;
};

/* The type's number in a file: nine characters of six bits, and ten bits of version. */
uint64_t rdb_board_type_id(void);
static inline bool rdb_board_is_type(uint64_t id) {
    return id >> 10 == rdb_board_type_id() >> 10;
}

/* version: of the type. false: error. */
MUST_CHECK bool rdb_board_begin(struct rdb_board *board, uint64_t version, uint64_t format,
                                uint64_t time_us, uint64_t member_count);
/* The next chunk, borrowed until RDB_BOARD_CHUNK_END. */
void rdb_board_take(struct rdb_board *board, struct bytes chunk);
MUST_CHECK enum rdb_board_event rdb_board_next(struct rdb_board *board);
/* Of RDB_BOARD_ENTRIES, until the next call; members as long as the chunk. *count is at most
 * EFFECT_ENTRIES_MAX. */
static inline const struct board_entry *rdb_board_entries(const struct rdb_board *board,
                                                          uint32_t *count) {
    *count = board->decoder.entry_count;
    return board->decoder.entries;
}
/* Of the same entries: the values of their tags, as tag_values_pack writes them; NULL: none has any. */
static inline const struct bytes *rdb_board_values(const struct rdb_board *board) {
    return board->decoder.has_values ? board->decoder.entry_values : NULL;
}
static inline bool rdb_board_is_whole(const struct rdb_board *board) {
    return board->has_options && board->read_count == board->member_count;
}

/* ---- writing ---- */

/* Where the parts of the value go: the host's own files (server/module/host_type.c), or a file for a Redis with the
 * module (rdb.h). */
struct rdb_board_sink {
    void (*put_number)(void *context, uint64_t number);
    void (*put_text)(void *context, struct bytes text);
    void *context;
};

/* flags: RDB_BOARD_HAS_IDS or RDB_BOARD_IS_IDS, or 0; time_us: the server time that the value carries. One at a time
 * in a process. false: no memory, and what was written is of no use. */
MUST_CHECK bool rdb_board_write(const struct registry_key *key, unsigned flags, int64_t time_us,
                                const struct rdb_board_sink *sink);

/* ---- what is kept beside the keys ----
 *
 * Bans and durable jobs that are not finished, as blobs of effects (server/durability/effect_bytes.h): the type's auxiliary
 * data in dump files, and LB.APPLYSTATE.
 *
 *     rdb_board_state_write                           all of it, key by key
 *     rdb_board_state_check, then rdb_board_state_apply     a blob, which may come from anybody */

enum {
    RDB_STATE_VERSION = 1, /* of the auxiliary data */
    RDB_STATE_ERROR_MAX = 96,
};

/* Is there none? */
bool rdb_board_state_is_empty(const struct registry *registry);
/* All of it in blobs of about 8 KiB, which replace what there is. One at a time in a process. false: no memory, and
 * what was written is of no use. */
MUST_CHECK bool rdb_board_state_write(struct registry *registry, int64_t time_us,
                                      void (*take)(void *context, struct bytes blob),
                                      void *context);

enum rdb_state_form {
    RDB_STATE_WHOLE, /* as rdb_board_state_write makes it: each key in the place of what there is, with all its fields */
    RDB_STATE_CHANGES, /* also parts of keys that are there */
};

/* Is this a blob of this form, with bans of the databases below database_end alone? Nothing changes. *time_us: when
 * it was written, at least 0; *chunk: for rdb_board_state_apply, as long as the blob. false: why says what is wrong with
 * "the bans". */
MUST_CHECK bool rdb_board_state_check(struct effect_decoder *decoder, struct bytes blob,
                                      enum rdb_state_form form, uint32_t database_end,
                                      int64_t *time_us, struct bytes *chunk,
                                      char why[static RDB_STATE_ERROR_MAX]);
/* Apply what was checked. What it removes may be gone already. Of RDB_STATE_WHOLE it is never EFFECT_IMPOSSIBLE.
 * Errors: a part is applied. */
MUST_CHECK enum effect_status rdb_board_state_apply(struct registry *registry,
                                                    struct effect_decoder *decoder,
                                                    struct bytes chunk);
/* Remove at most keys_max of what is kept. true: nothing is left. */
MUST_CHECK bool rdb_board_state_clear(struct registry *registry, uint32_t keys_max);

#endif
