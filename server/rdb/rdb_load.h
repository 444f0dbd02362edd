/* The room: rdb_reader.h takes a dump file apart, event by event, from pieces of any size; rdb_packed.h, rdb_board.h
 * and rdb_state.h know the forms of what is in it; rdb_value.h makes boards and hashes of it. This file puts them
 * into a registry for --import, migration/ for a server that follows Redis, RESTORE for one key. rdb_write.h is the
 * way back.
 *
 * An RDB file into an empty registry: sorted sets become boards, boards of the module and hashes stay what
 * they are, all else is counted.
 *
 *     rdb_load_feed(&load, piece) ...   RDB_LOAD_MORE until the file is whole
 *
 * A sorted set gets the rules that the settings have for its name; its members, scores and order are those
 * of Redis, and its times are now (server/rdb/rdb_value.h). CAP keeps the best; FREEZE, OPENS and CLOSES are
 * for clients, and do not hold back an import. A board of the module keeps everything as it was. So do its bans, and the
 * durable jobs that it had not finished, which a server carries out when it starts. An error ends it; the registry then
 * holds a part, and is of no use. */
#ifndef SERVER_RDB_LOAD_H
#define SERVER_RDB_LOAD_H

#include "server/rdb/rdb_reader.h"
#include "server/rdb/rdb_value.h"
#include "skiplist/keyspace/registry.h"

enum { RDB_LOAD_ERROR_MAX = 640, RDB_LOAD_NAMES = 3 };

enum rdb_load_status { RDB_LOAD_MORE, RDB_LOAD_DONE, RDB_LOAD_FAILED };

/* Keys that were passed over, and some of their names. */
struct rdb_skipped {
    uint64_t count;
    struct bytes_shown names[RDB_LOAD_NAMES];
};

struct rdb_load {
    struct registry *registry; /* borrowed */
    int64_t now_us;            /* the time of everything */
    int64_t latest_us;         /* that, or when the latest board or ban of the module was written */
    struct rdb_reader reader;
    struct rdb_value value;
    struct board board;
    bool has_board;                 /* the key's board is being filled */
    struct effect_decoder *decoder; /* of what is beside the keys; NULL: nothing was */
    uint64_t board_count, member_count, hash_count, field_count;
    uint64_t module_board_count;  /* of the boards: those of the module */
    uint64_t ban_count;           /* members that are banned; at the end */
    uint64_t expired_count;       /* keys that had expired */
    uint64_t expired_field_count; /* fields of hashes that had */
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

#endif
