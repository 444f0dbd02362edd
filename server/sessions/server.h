/* The state of one server, without its sockets: everything besides the boards that handlers may
 * access. The event loop (server/loop) and main.c keep their own state around it.
 *
 * How this room works: a session is one client's state (session.h). What it has queued since MULTI is
 * its transaction; the channels it listens to, the keys it watches and those it waits for are
 * subscriptions (subscription.h, watch.h, wait.h), and so are the keys that it has read and keeps a copy
 * of (tracking.h); a command of its own that takes long is a job (job.h). The registry reports each
 * change of a key to server_life.c, which marks the watches, the waits and the boards that somebody
 * follows (board_events.h), and tells those who keep a copy. What a client is to get without having
 * asked for it goes to server_push, and the loop sends it. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/acl/acl.h"
#include "server/acl/auth_guard.h"
#include "server/durability/state.h"
#include "server/replication/state.h"
#include "server/sessions/session.h"
#include "server/sessions/stats.h"
#include "server/sessions/wait.h"
#include "server/settings/settings.h"
#include "server/system/clock.h"
#include "server/system/version.h"
#include "skiplist/keyspace/expiry.h"
#include "skiplist/keyspace/registry.h"

/* Each holds back what those before it do. BOARDS: all whose replies can depend on the boards. */
enum server_pause { SERVER_PAUSE_NONE, SERVER_PAUSE_WRITE, SERVER_PAUSE_BOARDS, SERVER_PAUSE_ALL };

struct followed_board;
struct job;
struct persistence;

/* Commands that run in steps (job.h). */
struct jobs {
    struct job *first, *last;
    uint32_t count;
    /* Begins the jobs that a restart or a change of roles interrupted; called once, after loading and where
     * this server may change the keys. NULL: none. */
    void (*resume)(struct server *server);
    bool is_resumed; /* cleared by replication_begin_epoch */
};

struct call;
/* Entries that the running command sees, and others do not (server/commands/ban.h). */
struct server_shadows {
    /* Run a command with them. NULL: there are none, and SHADOW is refused. */
    void (*run)(struct call *call);
    struct buffer pairs;
    const struct request
        *shown; /* of the command that runs with those of pairs; NULL: there are none */
};

/* Boards that somebody follows (board_events.h). */
enum board_events_queue { BOARD_EVENTS_DUE, BOARD_EVENTS_RESTS, BOARD_EVENTS_QUEUES };
/* All that is followed. Zero-initialised except hash_seed. */
struct board_events {
    struct link_table boards; /* by database and name */
    uint64_t hash_seed;
    struct followed_board *first[BOARD_EVENTS_QUEUES], *last[BOARD_EVENTS_QUEUES];
    struct expiry guards; /* when boards open and close: one entry for each board */
    uint32_t channel_count;
    size_t roster_size; /* memory of the lists of members that were told last */
};

/* Clients that are told when a key changes (tracking.h). Zero-initialised except the two hash seeds. */
struct tracking {
    struct subscriptions keys;     /* who has read which */
    struct subscriptions prefixes; /* of clients with BCAST */
    struct session *first;         /* SESSION_TRACKERS, newest first */
    uint32_t client_count;         /* length of that list */
    /* Whose command changes keys now; NULL: none, or it is not known. Set only while client_count is
     * positive. */
    const struct session *writer;
    struct link_table notes; /* changed keys that clients with BCAST are to be told of */
    bool owes_null;          /* a database was flushed: all clients are to be told */
    /* Sizes that prefixes have, a bit each, the last bit for all that are longer; known: nobody with prefixes
     * has come or gone since. */
    bool are_sizes_known;
    uint64_t prefix_sizes[4];
};

/* ---- the audit log ----
 *
 * Who did what an operator may have to account for, a line each.
 *
 *     ... audit command=flushall user="default" addr=10.0.0.9:50412 id=7 db=0 result=ok
 *     ... audit command=config|set user="default" ... result=ok settings="maxmemory requirepass"
 *     ... audit auth failed user="default" addr=10.0.0.9:50413 id=8 failures=6 delay_ms=200
 *     ... audit maxmemory reached user="default" addr=... id=7 command=zadd used=1048640 maxmemory=1048576
 *
 * A command's entry names its class; server/dispatch/execute.c writes the line when the command has
 * run. What was carried out is always written. Of what was refused (result=error, a wrong password,
 * maxmemory) only a limited number of lines of each class is written within a window of time; the
 * rest is counted, and the count is logged when the window ends:
 *
 *     ... audit lines left out class=auth count=3021
 *
 * Arguments are not written but for names of settings and users: others hold passwords, and members,
 * which may be people's names. */
enum audit_class {
    AUDIT_NONE,
    AUDIT_FLUSH,
    AUDIT_SHUTDOWN,
    AUDIT_CONFIG, /* of CONFIG SET the names of the settings are logged */
    AUDIT_USERS,  /* of ACL: the name of the user that is changed is logged */
    AUDIT_PLAYERS,
    AUDIT_ROLE,     /* who is to be the master */
    AUDIT_SNAPSHOT, /* all boards leave the server */
    AUDIT_AUTH,
    AUDIT_MAXMEMORY,
    AUDIT_CLASSES,
};
struct audit_window {
    int64_t end_ms;   /* monotonic; 0: none */
    uint32_t written; /* lines in this window, of what was refused */
    uint64_t left_out;
};
struct audit {
    struct audit_window windows[AUDIT_CLASSES];
};

/* The time between SHUTDOWN and the end in which balancers are to notice (shutdown-drain-timeout). */
struct server_retiring {
    bool is_begun;    /* and stays so until the process ends, or SHUTDOWN ABORT */
    bool is_over;     /* the time is over */
    bool is_forced;   /* FORCE */
    int64_t until_ms; /* monotonic */
    uint64_t from_id; /* sessions from this id on have connected since it began */
};

/* Everybody who is connected. */
struct server_sessions {
    struct session *first, *last; /* all, oldest first */
    uint32_t count;
    uint64_t next_id;
    struct link_table by_id;
    struct session *monitors; /* SESSION_MONITORS, newest first */
    struct session *killed;   /* SESSION_KILLED */
    struct session *pushed;   /* SESSION_PUSHED */
    uint32_t monitor_count, killed_count;
    uint32_t postponed_count; /* clients whose requests wait for the end of a pause */
    struct client_memory memory;
    uint64_t list_count; /* number of CLIENT LIST commands run so far */
};

enum { PLAYER_SIGNATURES = 2048 };

/* The keys of players' tokens, as the settings have them, for threads that look at signatures. */
struct player_keys {
    pthread_mutex_t mutex;
    struct jwt_key at[JWT_KEYS_MAX]; /* under the mutex, like the next */
    uint32_t count;
    /* Tickets whose signature was looked at: by the first bytes of their SHA-256, where the last one stays. */
    struct player_signature {
        unsigned char digest[DIGEST_SIZE];
        uint64_t key_mark; /* 0: none */
        bool is_right;
    } signatures[PLAYER_SIGNATURES];
};

/* Who may log in, and who was refused. */
struct server_acl {
    struct acl_users users;
    struct acl_log log;
    struct auth_guard guard; /* failed passwords by address */
    char *path;              /* of the aclfile, absolute; NULL: none */
    struct player_keys player_keys;
    bool
        has_verifier; /* signatures that take long are looked at by a thread (server/loop/connection.c) */
};

/* What INFO and logs say of the process. */
struct server_about {
    int64_t started_at_ms; /* monotonic */
    int64_t started_at_s;  /* unix */
    char run_id[41];       /* 40 hex digits */
    char executable_path[4096];
    uint64_t machine_memory_size; /* 0: unknown */
    int64_t tcp_port;
};

/* SHUTDOWN: see server/dispatch/shutdown.h. */
struct server_ending {
    struct server_retiring retiring;
    bool is_asked;   /* the loop stops after this command */
    bool is_now;     /* NOW: do not wait for clients */
    bool is_over;    /* what is kept is saved now: nothing changes any more */
    unsigned how;    /* enum persistence_ending: SAVE, NOSAVE or neither */
    bool has_failed; /* the final save failed: the last changes are not on disk */
};

/* The file of settings says another role: server/dispatch/settings_file.h. All 0: it does not. */
struct server_rewrite {
    bool is_owed;
    unsigned try_count;                          /* that failed */
    int64_t since_ms, again_at_ms, logged_at_ms; /* monotonic */
    int64_t pause_ms;
};

/* The time of ids (once_ids.h). */
struct server_once {
    bool has_begun;                         /* cleared by replication_begin_epoch */
    int64_t offset_ms;                      /* that time minus the monotonic clock's */
    int64_t forget_at_ms;                   /* monotonic */
    uint32_t forget_database, forget_owner; /* where the next tick goes on */
};

struct server {
    struct settings settings;
    struct registry *registry;
    struct persistence *persistence; /* NULL: no persistence, as in handler tests */
    struct clock clock;              /* read once per tick: all commands of a tick share one time */
    /* When the previous command ended and this one began, so that one counter reading serves both.
     * Refreshed after a break. */
    uint64_t command_begin_ticks;
    /* What prefetching found for the member of the next command. NULL: nothing. */
    const struct lookup *ahead;
    uint64_t hash_seed;    /* of keys, members and watches */
    uint64_t random_state; /* for ZRANDMEMBER, RANDOMKEY */
    /* A client was pushed to or begins to wait, or a key has changed for which one waits. */
    bool has_news;
    /* answers wait for no more than what replicas are sent in this tick: dispatch/waiting.h */
    bool owes_release;
    bool is_embedded; /* in another host, which keeps hashes of its own: here are only boards */
    struct durability_state durability;
    struct replication replication;
    /* Clients, and what they wait for: */
    struct server_sessions sessions;
    struct watches watches;        /* watched keys */
    struct watches reads;          /* keys of answers that are kept: struct reads */
    uint64_t reads_outdated_count; /* changes of what is no key */
    struct tracking tracking;
    struct subscriptions subscriptions;
    struct waits waits;
    struct board_events follows; /* boards that somebody follows */
    struct jobs jobs;            /* commands that run in steps */
    struct {
        enum server_pause kind;
        int64_t until_ms; /* monotonic */
    } client_pause;       /* CLIENT PAUSE */
    struct server_ending ending;
    struct server_rewrite rewrite;
    struct server_once once;
    struct server_shadows shadows;
    /* Figures: */
    struct stats stats;
    struct slowlog slowlog;
    struct latency latency;
    struct audit audit;
    /* CONFIG SET of a tls- setting: prepare is a settings_check, then end. NULL: no TLS. */
    struct {
        settings_check *prepare;
        void (*end)(void *context, bool is_set);
        void *context;
    } tls;
    struct server_about about;
    struct server_acl acl;
};

/* settings and the clock's sources must be set, and everything else zero, but for users, which may be
 * there already. Call execute_init first.
 * A non-zero hash_seed is used as given, for reproducible measurements. false: out of memory. */
MUST_CHECK bool server_life_init(struct server *server, uint32_t command_count);
void server_life_deinit(struct server *server);

/* Keys that change from here on, until it is said again, change by a command of this client; NULL: of none. Those who
 * track keys are told of it (tracking.h). */
static inline void server_set_writer(struct server *server, const struct session *writer) {
    server->tracking.writer = writer;
}

/* Link a session set up by session_init. It is the default user's. If that needs no password, the
 * session counts as authenticated, and stays so if one is set later. false: no memory; nothing is linked. */
MUST_CHECK bool server_add_session(struct server *server, struct session *session);
void server_life_remove_session(struct server *server, struct session *session);
struct session *server_find_session(const struct server *server, uint64_t id);
/* Must clients authenticate? Not while the default user is on and needs no password. */
static inline bool server_has_password(const struct server *server) {
    return acl_users_need_password(&server->acl.users);
}
/* Has the session authenticated, or need it not? As in Redis, an unauthenticated client
 * may run anything while there is no password, and must authenticate if one is set later. */
static inline bool server_is_authenticated(const struct server *server,
                                           const struct session *session) {
    return session->is_authenticated || !server_has_password(server);
}
/* The client has shown a certificate with this common name, and the certificate is right: with
 * tls-auth-clients-user CN it is then the user of that name, if there is one. */
void server_take_certificate(struct server *server, struct session *session, struct bytes name);
/* For clients that wait when their server becomes a replica. */
#define SERVER_UNBLOCKED_ERROR                                                                     \
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
/* Which commands wait: for CLIENT PAUSE, for a FAILOVER, or for what is received to be applied. */
static inline enum server_pause server_pause(const struct server *server) {
    const struct replication *replication = &server->replication;
    if (replication->is_promoting && server->client_pause.kind < SERVER_PAUSE_BOARDS) {
        return SERVER_PAUSE_BOARDS;
    }
    return server->client_pause.kind == SERVER_PAUSE_NONE &&
                   replication->failover.state != REPLICATION_FAILOVER_NONE
               ? SERVER_PAUSE_WRITE
               : server->client_pause.kind;
}
/* May the keys be changed now: are they this server's to change (replication_may_change), and are writes not
 * paused? Asked before anything changes them that is not a client's command. */
static inline bool server_may_change(const struct server *server) {
    return server_pause(server) == SERVER_PAUSE_NONE &&
           replication_may_change(&server->replication);
}
/* End CLIENT PAUSE. */
static inline void server_end_pause(struct server *server) {
    server->client_pause.kind = SERVER_PAUSE_NONE;
    server->client_pause.until_ms = 0;
    server->has_news = true; /* clients that wait for keys are served again */
}
/* Its next request waits for the end of a pause, or waits no more. */
static inline void server_postpone(struct server *server, struct session *session,
                                   bool is_postponed) {
    if (session->is_postponed != is_postponed) {
        session->is_postponed = is_postponed;
        server->sessions.postponed_count += is_postponed ? 1U : UINT32_MAX;
    }
}
/* Make it that user's session. */
void server_set_user(struct server *server, struct session *session, struct acl_user *user,
                     bool is_authenticated);
/* The default user's, as after connecting. */
void server_reset_user(struct server *server, struct session *session);
/* Set is_unlimited anew: after a change of the session's user, of that user's rights, or of the
 * default user. */
void server_refresh_rights(const struct server *server, struct session *session);
/* Whose session it is; borrowed. */
static inline struct bytes session_user_name(const struct session *session) {
    return session->user->name;
}
/* Discard the session's queued requests and its watches. */
void server_end_transaction(struct server *server, struct session *session);
/* Start or stop sending every command to this session (MONITOR). */
void server_set_monitor(struct server *server, struct session *session, bool is_monitor);
/* The output of a client, for the reply to an earlier request of its own. The loop sends it after
 * the command that runs, once that command's changes are on disk. NULL: the client is killed. */
struct buffer *server_output(struct server *server, struct session *session);
/* The same for what is not the reply to a request: messages, lines of MONITOR. While a reply is written
 * (server_begin_reply), it is kept, and follows that reply. */
struct buffer *server_push(struct server *server, struct session *session);
/* A reply begins, and is complete: between the two, what is pushed to the client is kept. */
static inline void server_begin_reply(struct session *session) {
    session->is_replying = true;
}
void server_send_kept(struct server *server,
                      struct session *session); /* part of server_end_reply */
static inline void server_end_reply(struct server *server, struct session *session) {
    session->is_replying = false;
    if (session->kept.size > 0 || session->kept.is_broken) {
        server_send_kept(server, session);
    }
}
/* The loop has taken note of its output. */
void server_end_push(struct server *server, struct session *session);
/* The limits on the unread output of this client. */
static inline const struct setting_output_limit *
server_output_limit(const struct server *server, const struct session *session) {
    /* Who is told of all changes gets more than it has asked for, as a subscriber does. */
    bool is_told = session_is_subscriber(session) || session->tracking.is_broadcast ||
                   session->tracking.source_count > 0;
    enum setting_output_class class = session_is_replica(session) ? SETTING_OUTPUT_REPLICA
                                      : is_told                   ? SETTING_OUTPUT_PUBSUB
                                                                  : SETTING_OUTPUT_NORMAL;
    return &server->settings.output_limits[class];
}
/* Of its output, what its limits do not count: a replica's copy and groups. They are put there as
 * it reads, and what it leaves unread of them is counted where it is kept (feed.h). */
static inline size_t server_output_fed(const struct session *session) {
    return session_is_replica(session) ? session->replica->fed_size : 0;
}
/* How large its output buffer may become: its limit, but never so little that a short reply, which can
 * be sent at once, does not fit. 0: no limit. */
static inline size_t server_output_room(const struct server *server,
                                        const struct session *session) {
    enum { ROOM_MIN = 16 * 1024 };
    uint64_t size_max = server_output_limit(server, session)->hard_bytes;
    return size_max == 0 ? 0
                         : (size_max < ROOM_MIN ? ROOM_MIN : size_max) + server_output_fed(session);
}
/* Remove all subscriptions of a client. */
void server_end_subscriptions(struct server *server, struct session *session);
/* Close this client as soon as the loop reaches it. Its remaining requests do not run, and its
 * remaining output is not sent. */
void server_kill_session(struct server *server, struct session *session);
/* Is more used than maxmemory? Then what may allocate is refused, with the error. */
#define SERVER_OVER_MEMORY_ERROR "OOM command not allowed when used memory > 'maxmemory'."
static inline bool server_is_over_memory(const struct server *server) {
    return server->settings.maxmemory > 0 && memory_used() > server->settings.maxmemory;
}
/* Limit on the total memory of all clients (maxmemory-clients). 0: no limit. */
uint64_t server_client_memory_limit(const struct server *server);
/* 64 random bits; not for secrets. */
uint64_t server_random(struct server *server);
/* Read the clock, and give the registry the offset of server time from the monotonic clock. Called
 * before the first command of every tick. */
void server_update_time(struct server *server);

/* ---- the audit log ---- */

/* Who did it. */
struct audit_who {
    struct bytes user;
    const char *address;
    uint64_t client; /* 0: none, but HTTP */
};
struct audit_who server_audit_who(const struct session *session);

/* Write "event user=... addr=... id=... details", unless audit-log is no. */
void server_audit_write(struct server *server, struct audit_who who, const char *event,
                        const char *details);
/* The same of what was refused, unless the window is full. */
void server_audit_write_refused(struct server *server, enum audit_class class, struct audit_who who,
                                const char *event, const char *details);
/* Called once a second: end windows, and log what was left out. */
void server_audit_second(struct server *server);

/* ---- what an answer was read from ----
 *
 * So that it can be given again, and by another thread, until that changes.
 *
 *     engine           server_reads_note: key after key       watched, as by WATCH
 *     engine           a key changes, a user, a setting, the server's role      is_outdated
 *     another thread   server_reads_are_outdated: one load
 *
 * Of the watches it has those apart from the clients', which INFO counts. What changes by time alone, and tells nobody,
 * is in due_ms. A write is answered behind what it outdates, so whoever was told of it never gets the old answer. */

struct reads {
    struct watch_list list; /* first */
    int64_t due_ms;         /* of the server's clock: from then on the answer may be another one */
    _Atomic bool is_outdated;
};

/* Nothing is read yet. */
void server_reads_init(struct reads *reads);
/* This key, which need not exist, is read now. Out of memory: the answer is outdated at once. */
void server_reads_note(struct server *server, struct reads *reads, uint32_t database,
                       struct bytes name);
/* What is read cannot be watched. */
static inline void server_reads_outdate(struct reads *reads) {
    atomic_store_explicit(&reads->is_outdated, true, memory_order_release);
}
/* Watch nothing any more; before it is freed. */
void server_reads_end(struct server *server, struct reads *reads);

/* By a change of what is no key. */
void server_reads_outdate_all(struct server *server);
static inline bool server_reads_are_outdated(const struct reads *reads) {
    return atomic_load_explicit(&reads->is_outdated, memory_order_acquire);
}

/* For server_life_init. */
void server_reads_begin(struct server *server);

#endif
