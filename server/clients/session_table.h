/* Sessions by id. Ids are sequential, so their lowest bits spread them evenly over the slots and
 * chains stay short.
 *
 * The table grows and shrinks with the number of sessions. If growing fails for lack of memory, the
 * chains get longer and nothing else changes. */
#ifndef SERVER_SESSION_TABLE_H
#define SERVER_SESSION_TABLE_H

#include "server/clients/session.h"

struct session_table {
    struct session **slots;
    uint32_t slot_count; /* a power of two */
    uint32_t count;
};

/* false: out of memory. */
MUST_CHECK bool session_table_init(struct session_table *table);
/* The table must be empty. */
void session_table_deinit(struct session_table *table);

/* The id must not be in the table. */
void session_table_put(struct session_table *table, struct session *session);
void session_table_take(struct session_table *table, struct session *session);
/* NULL: not found. */
struct session *session_table_find(const struct session_table *table, uint64_t id);

#endif
