/* What clients receive without asking for it: messages to the subscribers of a channel, and for MONITOR every command.
 *
 * Keyspace notifications (notify-keyspace-events) are messages to channels with Redis's names:
 *
 *     __keyspace@0__:daily   zadd      class K: the key's channel gets the event
 *     __keyevent@0__:zadd    daily     class E: the event's channel gets the key
 *
 * Handlers report an event after their change, in Redis's order. While the setting is empty that
 * costs one test. */
#ifndef SERVER_NOTIFY_H
#define SERVER_NOTIFY_H

#include "protocol/resp.h"
#include "server/sessions/server.h"
#include "server/system/log.h"

/* ---- events ---- */

/* Send it; name is borrowed for the call. */
void notify_send(struct server *server, const char *event, uint32_t database, struct bytes name);

/* Does anybody want events of these classes? */
static inline bool notify_is_on(const struct server *server, unsigned classes) {
    return (server->settings.notify_keyspace_events & classes) != 0;
}

/* Report an event of a class (enum setting_event). */
static inline void notify(struct server *server, unsigned class, const char *event,
                          uint32_t database, struct bytes name) {
    if (__builtin_expect(notify_is_on(server, class), 0)) {
        notify_send(server, event, database, name);
    }
}

/* Log it if an archive got a number because another key has its name. */
static inline void notify_taken_name(struct bytes name, const struct bytes archive[2]) {
    if (archive[1].size > 0 && memchr(archive[1].at, '.', archive[1].size) != NULL) {
        log_write(LOG_WARNING, "another key has the name of an archive board=\"%s\" suffix=\"%s\"",
                  bytes_show(name).text, bytes_show(archive[1]).text);
    }
}

/* With notify-board-events: a message to __board@0__:daily about this board. */
void notify_board(struct server *server, uint32_t database, struct bytes name,
                  struct bytes message);
/* With notify-board-events: "held 17" to __held@0__:daily: a result that waits for LB.APPROVE. No name, because whoever may
 * hear all channels hears this one. */
void notify_board_held(struct server *server, uint32_t database, struct bytes name, uint64_t id);
/* A board rolled over: "rolled daily@2026-11-16" to __board@0__:daily, or "rolled" if there is no
 * archive. */
void notify_board_rolled(struct server *server, uint32_t database, struct bytes name,
                         const struct bytes archive[2]);

/* An archive was settled: "settled" to __board@0__:daily@2026-11-16. */
void notify_board_settled(struct server *server, uint32_t database, struct bytes name);

/* ---- messages and lines ---- */

/* Send a message to everyone who subscribes to the channel (kind SUBSCRIPTION_CHANNEL or _SHARD),
 * or to a pattern that matches it; if the channel tells of a board (board_events.h), to those of them who
 * may read the board. Returns the number of messages sent. */
uint64_t notify_publish(struct server *server, enum subscription_kind kind, struct bytes channel,
                        struct bytes message);

/* Which arguments of a request are replaced by "(redacted)". */
enum monitor_secrets {
    MONITOR_SECRETS_NONE,
    MONITOR_SECRETS_ALL,         /* AUTH: all but the command name */
    MONITOR_SECRETS_BEHIND_AUTH, /* HELLO: the two arguments after each AUTH option, as in Redis */
};

/* Send an executed request to every monitor, in Redis's line format:
 *
 *     +1339518083.107412 [0 127.0.0.1:60866] "ZADD" "board" "1" "ann" */
void notify_monitor(struct server *server, const struct session *session,
                    const struct request *request, enum monitor_secrets secrets);

#endif
