/* What was refused to whom (ACL LOG): logins that failed, and requests beyond a user's rights. What
 * is refused again within a minute is counted. */
#ifndef SERVER_ACL_LOG_H
#define SERVER_ACL_LOG_H

#include "codec/bytes.h"

enum { ACL_LOG_TEXT_MAX = 1024 }; /* bytes kept of a key's, channel's or user's name */

struct acl_log_entry {
    struct acl_log_entry *next; /* the one before it */
    uint64_t count;
    uint64_t id; /* of the first refusal that it counts, ascending */
    int64_t first_time_ms;
    const char *reason;                /* "command", "key", "channel", "auth"; static */
    const char *context;               /* "toplevel", "multi"; static */
    struct bytes object, user, client; /* of client_line.h */
    int64_t time_ms;
    char texts[]; /* object and user */
};
/* Zero-initialised: empty. */
struct acl_log {
    struct acl_log_entry *first; /* the newest */
    uint32_t count;
    uint64_t next_id;
    /* Refusals since the start, whether they are kept or not, by reason. */
    uint64_t denied_auth, denied_command, denied_key, denied_channel;
};

/* Without memory nothing is kept. reason and context are static. */
void acl_log_add(struct acl_log *log, uint32_t length_max, const char *reason, const char *context,
                 struct bytes object, struct bytes user, struct bytes client, int64_t now_ms);
void acl_log_clear(struct acl_log *log);

#endif
