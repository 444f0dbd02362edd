/* Writing a board as a value of the module's type: the counterpart of rdb_board.h, which describes the bytes. The
 * host writes them into its own files (server/module/host_type.c), and the server into a file for a Redis with the
 * module (rdb_write.h). */
#ifndef SERVER_RDB_BOARD_WRITE_H
#define SERVER_RDB_BOARD_WRITE_H

#include "codec/check.h"
#include "skiplist/keyspace/registry.h"

/* Where the parts of the value go. */
struct rdb_board_sink {
    void (*put_number)(void *context, uint64_t number);
    void (*put_text)(void *context, struct bytes text);
    void *context;
};

/* time_us: the server time that the value carries. One at a time in a process. false: no memory, and what was
 * written is of no use. */
MUST_CHECK bool rdb_board_write(const struct registry_key *key, int64_t time_us,
                                const struct rdb_board_sink *sink);

#endif
