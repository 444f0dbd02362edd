/* What commands ask of all keys at once, or of keys that they do not name.
 *
 * The module has its own keyspace.c (server/module/host_keyspace.c): there all keys are the host's. */
#ifndef SERVER_KEYSPACE_H
#define SERVER_KEYSPACE_H

#include "server/dispatch/call.h"
#include "skiplist/map.h"

/* One step of a scan over the keys of the session's database: 0 at first, returns the next cursor, 0 at
 * the end. visit must not change anything. An archive exists from the exact millisecond at which its
 * period ends, so a scan that continued before all due boards have rolled over could skip the
 * archive's position. Until they have, a step rolls over some of them and visits nothing. */
uint64_t keyspace_scan(const struct call *call, uint64_t cursor, const struct scan_limits *limits,
                       registry_visit *visit, void *context);
/* Before a key is looked up whose name is no argument of the command. false: no memory, or in a cluster it may be on
 * another node; the error was replied. */
MUST_CHECK bool keyspace_open(const struct call *call, struct bytes name);
/* The options of the board of this name beside the key, in the same database; NULL: there is none. */
const struct board_options *
keyspace_peek_options(const struct call *call, const struct registry_key *key, struct bytes name);
/* The board of this name in the session's database; NULL: there is none. Boards that were found before
 * stay, if they are in their periods. */
const struct board *keyspace_find_board(const struct call *call, struct bytes name);
/* Remove a hash, if there is one of this name in the database of this number. */
void keyspace_remove_hash(struct server *server, uint32_t database, struct bytes name);
/* The number by which clients know a database of the registry. */
uint32_t keyspace_number(uint32_t database);
/* How many databases clients have. */
uint32_t keyspace_database_count(void);

#endif
