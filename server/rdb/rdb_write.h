/* A registry's keys as an RDB file, version 10 (Redis 7.0 and later, Valkey): what a Redis with the module loads, and
 * what rdb_load.h reads.
 *
 *     "REDIS0010"  aux fields  bans and durable jobs (rdb_board.h)
 *     database 0   [expiry] board: a value of the module's type (rdb_board.h)
 *                  [expiry] hash: a hash of Redis
 *     database 1 ...
 *     end, checksum
 *
 * Nothing of the keys is lost: layouts, options, times, order of arrival, expiries, databases. */
#ifndef SERVER_RDB_WRITE_H
#define SERVER_RDB_WRITE_H

#include "codec/buffer.h"
#include "skiplist/keyspace/registry.h"

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
