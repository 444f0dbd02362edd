/* The state of one server, without its sockets: everything besides the boards that handlers may
 * access. The event loop (connection.c, tick.c, main.c) keeps its own state around it. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "server/clients/client_memory.h"
#include "server/clients/latency.h"
#include "server/clients/session_table.h"
#include "server/clients/slowlog.h"
#include "server/clients/stats.h"
#include "server/durability/state.h"
#include "server/settings/setting.h"
#include "server/system/clock.h"
#include "server/system/version.h"
#include "skiplist/keyspace/registry.h"

enum server_pause { SERVER_PAUSE_NONE, SERVER_PAUSE_WRITE, SERVER_PAUSE_ALL };

struct persistence;

struct server {
    struct settings settings;
    struct registry *registry;
    struct persistence *persistence; /* NULL: no persistence, as in handler tests */
    struct clock clock;              /* read once per tick: all commands of a tick share one time */
    struct stats stats;
    struct slowlog slowlog;
    struct latency latency;
    /* all sessions, oldest first */
    struct session *session_first, *session_last;
    uint32_t session_count;
    uint64_t session_next_id;
    struct session_table sessions_by_id;
    struct session *monitor_first; /* SESSION_MONITORS, newest first */
    struct session *killed_first;  /* SESSION_KILLED */
    uint32_t monitor_count, killed_count;
    struct client_memory client_memory;
    uint64_t client_list_count; /* number of CLIENT LIST commands run so far */
    struct watches watches;     /* watched keys */
    int64_t started_at_ms;      /* monotonic */
    int64_t started_at_s;       /* unix */
    /* When the previous command ended and this one began, so that one counter reading serves both.
     * Refreshed after a break. */
    uint64_t command_begin_ticks;
    /* What prefetching found for the member of the next command. NULL: nothing. */
    const struct lookup *ahead;
    char run_id[41]; /* 40 hex digits */
    char executable_path[4096];
    uint64_t machine_memory_size; /* 0: unknown */
    int64_t tcp_port;
    struct durability_state durability;
    /* CLIENT PAUSE */
    enum server_pause pause;
    int64_t pause_until_ms; /* monotonic */
    /* SHUTDOWN: the loop stops after this command */
    bool is_shutdown_asked;
    bool is_shutdown_now;     /* NOW: do not wait for clients */
    unsigned shutdown_ending; /* enum persistence_ending: SAVE, NOSAVE or neither */
    bool is_end_failed;       /* the final save failed: the last changes are not on disk */
    uint64_t hash_seed;       /* of keys, members and watches */
    uint64_t random_state;    /* for ZRANDMEMBER, RANDOMKEY */
};

/* settings and the clock's sources must be set, and everything else zero. Call execute_init first.
 * A non-zero hash_seed is used as given, for reproducible measurements. false: out of memory. */
MUST_CHECK bool server_init(struct server *server, uint32_t command_count);
void server_deinit(struct server *server);

/* Link a session set up by session_init. If no password is set, the session counts as
 * authenticated, and stays so if one is set later. */
void server_add_session(struct server *server, struct session *session);
void server_remove_session(struct server *server, struct session *session);
struct session *server_find_session(const struct server *server, uint64_t id);
/* Is a password configured? */
bool server_has_password(const struct server *server);
/* Has the session given the password, or is none configured? As in Redis, an unauthenticated client
 * may run anything while there is no password, and must authenticate if one is set later. */
static inline bool server_is_authenticated(const struct server *server,
                                           const struct session *session) {
    return session->is_authenticated || !server_has_password(server);
}
/* Discard the session's queued requests and its watches. */
void server_end_transaction(struct server *server, struct session *session);
/* Start or stop sending every command to this session (MONITOR). */
void server_set_monitor(struct server *server, struct session *session, bool is_monitor);
/* Close this client as soon as the loop reaches it. Its remaining requests do not run, and its
 * remaining output is not sent. */
void server_kill_session(struct server *server, struct session *session);
/* Limit on the total memory of all clients (maxmemory-clients). 0: no limit. */
uint64_t server_client_memory_limit(const struct server *server);
/* 64 random bits; not for secrets. */
uint64_t server_random(struct server *server);
/* Read the clock, and give the registry the offset of server time from the monotonic clock. Called
 * before the first command of every tick. */
void server_update_time(struct server *server);

#endif
