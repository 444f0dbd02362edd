/* Bans: members that are kept off boards (LB.BAN), whatever command writes.
 *
 *     ban of a member = a hash in a database of the server's own
 *       its key     the database (1 byte), the member
 *       a field     a pattern of boards' names; its value: until when, 8 bytes, unix milliseconds; SHADOW: one byte more
 *
 * So bans are in the journal and in snapshots as any hash. One whose time is over counts no more;
 * the key expires with the last. A server without bans tests one number for each command that
 * writes. */
#ifndef SERVER_BAN_H
#define SERVER_BAN_H

#include "skiplist/keyspace/registry.h"

enum {
    BAN_DATABASE = REGISTRY_BANS,
    BAN_PATTERNS_MAX = 16,      /* of a member */
    BAN_NUMBER_MAX = UINT8_MAX, /* of a database (keyspace_number); those above have no bans */
};
#define BAN_FOREVER INT64_MAX

enum ban_status {
    BAN_OK,
    BAN_OUT_OF_MEMORY,
    BAN_NO_DATABASE, /* BAN_NUMBER_MAX */
    BAN_TOO_MANY,    /* the member has BAN_PATTERNS_MAX others */
};

/* Is anybody banned from anything? */
static inline bool ban_exists(const struct registry *registry) {
    return registry_count(registry, BAN_DATABASE) > 0;
}
enum ban_kind {
    BAN_NONE,
    BAN_SHADOW, /* it goes on, and sees its entry alone (server/commands/shadow.h) */
    BAN_FULL,   /* also where others of its bans are SHADOW */
};
/* The member's ban from a board of this name. until_ms, if it is SHADOW: when that ends. */
enum ban_kind ban_find(struct registry *registry, uint32_t database, struct bytes board,
                       struct bytes member, int64_t now_ms, int64_t *until_ms);
/* Is the member banned from a board of this name, in either way? */
bool ban_holds(struct registry *registry, uint32_t database, struct bytes board,
               struct bytes member, int64_t now_ms);
/* Ban the member from boards that match, "*": all. A ban with this pattern is replaced. An error
 * changes nothing. */
MUST_CHECK enum ban_status ban_put(struct registry *registry, uint32_t database,
                                   struct bytes member, struct bytes pattern, int64_t until_ms,
                                   bool is_shadow, int64_t now_ms);
/* Lift all bans of the member. false: there was none. */
bool ban_lift(struct registry *registry, uint32_t database, struct bytes member, int64_t now_ms);
/* Until when a field's value says, and whether the ban is SHADOW. */
int64_t ban_until(struct bytes value);
bool ban_is_shadow(struct bytes value);

#endif
