/* The state of one server, without its sockets: what handlers may see beside the boards. The
 * event loop (connection.c, tick.c, main.c) keeps its own state around it. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "server/clock.h"
#include "server/session.h"
#include "server/setting.h"
#include "server/stats.h"
#include "skiplist/registry.h"

#define SERVER_NAME    "leaderboard"
#define SERVER_VERSION "1.0.0"
/* The Redis whose commands and replies are followed: clients choose features by it. */
#define SERVER_REDIS_VERSION "7.4.0"

enum server_pause { SERVER_PAUSE_NONE, SERVER_PAUSE_WRITE, SERVER_PAUSE_ALL };

struct persistence;

struct server {
    struct settings settings;
    struct registry *registry;
    struct persistence *persistence; /* NULL: none, as in tests of handlers */
    struct clock clock;
    struct stats stats;
    struct slowlog slowlog;
    struct latency latency;
    /* all sessions, oldest first */
    struct session *session_first, *session_last;
    uint32_t session_count;
    uint64_t session_next_id;
    uint32_t monitor_count; /* sessions that are monitors */
    uint32_t killed_count;  /* sessions that are killed and not yet removed */
    struct watches watches; /* keys that sessions watch */
    int64_t started_at_ms;
    /* The time of this tick, unix: every command of a tick shares it, arrival order breaks ties. */
    int64_t now_us, now_ms;
    /* When the command before ended and this one begins, so that one reading of the counter does
     * for both. Set anew after a break. */
    uint64_t command_begin_ticks;
    /* What prefetching has found for the member of the command that runs next; NULL: nothing. */
    const struct board_prefetch *ahead;
    char run_id[41]; /* 40 hex digits */
    char executable_path[4096];
    int64_t tcp_port;
    /* Changes of keys, for `save` points; and effects heard of by whoever keeps them, by which a
     * session's own changes are told from others'. */
    uint64_t change_count;
    uint64_t effect_count;
    /* What is on disk is being loaded: only COMMAND_LOADING commands run, and what has come due
     * waits. */
    bool is_loading;
    /* Why nothing may be changed now, "MISCONF ..."; borrowed; NULL: it may. */
    const char *write_refusal;
    /* CLIENT PAUSE */
    enum server_pause pause;
    int64_t pause_until_ms;
    /* SHUTDOWN: the loop stops after this command */
    bool is_shutdown_asked;
    bool is_shutdown_now;     /* NOW: waits for nobody */
    unsigned shutdown_ending; /* enum persistence_ending: SAVE, NOSAVE or neither */
    bool is_end_failed;       /* what changed last is not on disk, and the server has ended */
    uint64_t hash_seed;       /* of keys, members and watches */
    uint64_t random_state;    /* for ZRANDMEMBER, RANDOMKEY */
};

/* settings (and clock.wall_us) are filled in already, the rest is zero; command_init was called. A
 * hash_seed that is not zero is taken, for measurements that can be repeated. false: no memory. */
MUST_CHECK bool server_init(struct server *server);
void server_deinit(struct server *server);

/* Link a session that session_init has filled in; without a password it is authenticated. */
void server_add_session(struct server *server, struct session *session);
void server_remove_session(struct server *server, struct session *session);
struct session *server_find_session(const struct server *server, uint64_t id);
/* Read the clock: now_us and now_ms. Before the first command of every tick. */
void server_update_time(struct server *server);
/* Must clients give a password? */
bool server_has_password(const struct server *server);
/* Forget what a session has queued since MULTI, and all that it watches. */
void server_end_transaction(struct server *server, struct session *session);
/* Let a session see every command from now on (MONITOR), or no longer. */
void server_set_monitor(struct server *server, struct session *session, bool is_monitor);
/* Close this client as soon as the loop gets to it; nothing of it is run or sent any more. */
void server_kill_session(struct server *server, struct session *session);
/* 64 random bits; not for secrets. */
uint64_t server_random(struct server *server);
/* INFO's text. sections: as given to INFO; none: the default ones. */
void server_print_info(struct server *server, int64_t now_ms, const struct bytes *sections,
                       uint32_t section_count, struct buffer *out);

#endif
