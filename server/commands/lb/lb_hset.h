/* HSET pattern n field value ...: what belongs to a result is set in its member's hash, if the result counts.
 *
 *     LB.ADD laps BEST HSET run:%:* 2 replay r/77 car 9ff 81.046 ann
 *       -> run:laps:ann -> replay r/77, car 9ff, if 81.046 is better than what ann had
 *
 * The * of the pattern stands for the member, of which there is one, and %, of which there is at most one, for the
 * board's name; %@ for the name that the archive of its running period has, so that each period has its own hash.
 *
 *     lb_hset_check                        once the request is parsed
 *     lb_hset_begin                        of each result, without a place: the right to the hash
 *     lb_hset_begin                        for each hash, before the first change
 *     memory_reserve_begin of lb_hset_growth_size of all
 *     change the boards
 *     lb_hset_put                          of those whose result counts
 *     lb_hset_end                          for each hash, also behind an error
 *
 * In Redis and Valkey the hashes are the host's, and server/module/host_keyspace.c takes the place of
 * lb_hset_keys.c. */
#ifndef SERVER_COMMAND_LB_HSET_H
#define SERVER_COMMAND_LB_HSET_H

#include "server/dispatch/call.h"

enum {
    LB_HSET_FIELDS_MAX = 1024,           /* of all members together */
    LB_HSET_SIZE_MAX = 64 * 1024 * 1024, /* bytes of these */
};

/* The option as given; zeroed: not. */
struct lb_hset {
    struct bytes pattern;
    const struct bytes *args; /* field, value, field, value, ... */
    uint32_t count;           /* fields */
};

/* One member's hash. Zeroed: none. */
struct lb_hset_place {
    void *key;
    bool is_new;
    int64_t expire_at_ms; /* %@: of a new one, when the archive of its period goes; 0: never */
};

#define LB_HSET_SYNTAX "[HSET pattern n:integer field_value=(field value)...]"

static inline bool lb_hset_is_asked(const struct lb_hset *hset) {
    return hset->pattern.at != NULL;
}
/* Read the option's arguments from *index on, and move past them. Returns the error; NULL: none. */
const char *lb_hset_read(const struct request *request, uint32_t *index, struct lb_hset *hset);
/* Is the pattern one, and are that not too many fields for so many members, or boards? false: the error
 * was replied. */
MUST_CHECK bool lb_hset_check(const struct call *call, const struct lb_hset *hset, uint64_t times);
/* Is it another key for each board? */
bool lb_hset_names_board(const struct lb_hset *hset);
/* And for each of its periods? */
bool lb_hset_names_period(const struct lb_hset *hset);

/* Find or make the hash of a member of this board. place NULL: only say whether its name can be a key, and the user may write to
 * that. false: the error was replied. */
MUST_CHECK bool lb_hset_begin(const struct call *call, const struct lb_hset *hset,
                              const struct registry_key *board, struct bytes member,
                              struct lb_hset_place *place);

/* ---- of lb_hset_keys.c ---- */

/* The same for a name that is given, and allowed. */
MUST_CHECK bool lb_hset_open(const struct call *call, const struct lb_hset *hset, struct bytes name,
                             struct lb_hset_place *place);
/* Bytes that lb_hset_put may allocate. */
size_t lb_hset_growth_size(const struct lb_hset *hset, const struct lb_hset_place *place);
void lb_hset_put(const struct call *call, const struct lb_hset *hset,
                 const struct lb_hset_place *place);
/* A hash that was made and got no fields is removed. */
void lb_hset_end(const struct call *call, const struct lb_hset_place *place);

#endif
