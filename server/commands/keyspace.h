/* What commands ask of all keys at once, in steps, or of keys that they do not name.
 *
 * The module has its own keyspace.c (server/module/host_keyspace.c): there all keys are the host's. */
#ifndef SERVER_KEYSPACE_H
#define SERVER_KEYSPACE_H

#include <stddef.h>

#include "codec/glob.h"
#include "server/dispatch/call.h"
#include "server/dispatch/syntax.h"
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

/* ---- scanning.c ----
 *
 * What SCAN, ZSCAN, HSCAN, LB.LIST and LB.BANS share: MATCH and COUNT, the limits of a step, and
 * the reply.
 *
 *     struct scanning scanning;                     or embedded, first, in what its options fill
 *     scanning_begin(&scanning, call, &glob);
 *     syntax_read(call, &scanning)                  with SCANNING_OPTIONS among the bindings
 *     cursor = ...                                  one step; it replies to scanning.found what
 *                                                   scanning_takes, and counts it
 *     scanning_end(&scanning, call, cursor) */

enum { SCANNING_COUNT = 10 }; /* COUNT, if it is not given */

struct scanning {
    struct glob *glob; /* storage for the pattern */
    bool has_pattern;
    struct bytes pattern; /* as given */
    int64_t count;        /* COUNT: approximately so many in a step */
    /* Aside, because the cursor precedes it but is known only afterwards. */
    struct reply found;
    uint64_t found_count; /* values in found */
    struct buffer text;
};

/* Nothing is to be freed until something was found. */
void scanning_begin(struct scanning *scanning, const struct call *call, struct glob *glob);
/* Reply the next cursor and what was found. */
void scanning_end(struct scanning *scanning, const struct call *call, uint64_t cursor);

/* The pattern takes this text, or there is none. */
static inline bool scanning_takes(const struct scanning *scanning, struct bytes text) {
    return !scanning->has_pattern || glob_takes(scanning->glob, text);
}
struct scan_limits scanning_limits(const struct scanning *scanning);

/* keyspace_scan with these limits; count_max: more are not visited, whatever COUNT says. */
uint64_t scanning_keys(const struct scanning *scanning, const struct call *call, uint64_t cursor,
                       uint32_t count_max, registry_visit *visit, void *context);

bool scanning_read_pattern(const struct call *call, uint32_t index, void *target);
bool scanning_check_count(const struct call *call, uint32_t index, void *target);
#define SCANNING_OPTIONS                                                                           \
    {"MATCH", .read = scanning_read_pattern}, {                                                    \
        BIND("COUNT", struct scanning, count), .read = scanning_check_count                        \
    }

#endif
