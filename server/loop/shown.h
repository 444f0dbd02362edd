/* What a reply can show, told by its request: where replies wait for a disk that stays full, only those wait that may
 * show what is not on it. */
#ifndef SERVER_SHOWN_H
#define SERVER_SHOWN_H

#include "server/clients/session.h"
#include "server/durability/persistence.h"
#include "server/network/batch.h"

/* persistence_is_stuck: may the reply, which has changed nothing, show what is not on disk? */
bool shown_is_unwritten(const struct persistence *persistence, const struct session *session,
                        const struct queue_entry *entry);
/* The one key that the reply shows, as unwritten_key has it; 0: there are others, or that is not certain. */
uint64_t shown_key(const struct session *session, const struct queue_entry *entry);

#endif
