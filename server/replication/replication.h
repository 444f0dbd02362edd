/* How this room works: the journal's groups of effects are the stream. A master's feed (feed.h)
 * keeps the latest of them in a backlog and sends each replica what follows its position, or first
 * a full copy. A replica's link (master_link.h) receives them, apply.h applies them to the keys,
 * and the same groups go into its own journal. An id in the keys (history.h) says which history the
 * numbers are of; an id is a term (term.h), so ids also say which is the newer one. With
 * sync-replicas the quorum (quorum.h, its decisions: election.h) lets a master open only with
 * enough votes, and answer only what enough replicas have. replicator.h holds these parts, and is
 * called by the tick and by commands; failover.h hands the master's place over.
 *
 * This header is replication as commands see it: the role, the link to the master, the replicas,
 * and what INFO, ROLE, WAIT and the refusals need of them. The replicator (replicator.h) opens
 * connections, copies and applies, and keeps this struct up to date; commands read it, and tell the
 * replicator what is asked for. Without one (tests of handlers, the module) both ends work, and
 * nothing is connected.
 *
 *     MASTER --replication_follow--> REPLICA --replication_promote--> MASTER
 *                                    | replication_follow: another master
 *
 * A position is a group of effects: persistence numbers them from 1 without gaps
 * (persistence_last_group). A replica has its master's numbers. What Redis calls an offset (of
 * master_repl_offset, slave_repl_offset, ROLE, WAIT, REPLCONF ACK) is the number of the last group
 * here.
 *
 * A history is a replication id: 40 hex digits that a server makes when it first opens as a master,
 * and anew at each promotion. Groups up to second_until also belong to second_id, the id before. */
#ifndef SERVER_REPLICATION_H
#define SERVER_REPLICATION_H

#include "codec/buffer.h"
#include "codec/bytes.h"
#include "codec/memory.h"
#include "server/replication/sync.h"

struct feed_place;
struct replicator;
struct reply;
struct server;
struct session;
struct settings;

enum {
    REPLICATION_ID_SIZE = 40,
    REPLICATION_HOST_MAX = 255, /* bytes of a host's name or address */
    REPLICATION_PRIORITY_DEFAULT = 100,
    REPLICATION_ERROR_MAX = 512,
};

enum replication_role { REPLICATION_MASTER, REPLICATION_REPLICA };

/* How far the link to the master is; ROLE's words. */
enum replication_link {
    REPLICATION_LINK_NONE,       /* a master has none */
    REPLICATION_LINK_CONNECT,    /* "connect": the next attempt is due soon */
    REPLICATION_LINK_CONNECTING, /* "connecting": the socket is being connected */
    REPLICATION_LINK_HANDSHAKE,  /* "handshake": TLS, AUTH, REPLCONF */
    REPLICATION_LINK_SYNC,       /* "sync": a full copy is being received or loaded */
    REPLICATION_LINK_CONNECTED,  /* "connected": groups arrive; INFO's up */
    REPLICATION_LINK_STOPPED, /* "stopped": for good, until REPLICAOF is given again; error says why */
    REPLICATION_LINKS,
};
/* "connect"; of NONE "none". */
const char *replication_link_name(enum replication_link link);

/* How far a replica of this server is; INFO's words. */
enum replica_state {
    REPLICA_HANDSHAKE, /* has sent REPLCONF, not LB.SYNC: in no list, and an ordinary client */
    REPLICA_WAITS,     /* "wait_bgsave": for a full copy to begin */
    REPLICA_COPIES,    /* "send_bulk": a full copy is being sent */
    REPLICA_ONLINE,    /* "online": groups are sent as they come */
    REPLICA_STATES,
};
const char *replica_state_name(enum replica_state state);

/* A replica of this server: belongs to its session, which REPLCONF makes one of. */
struct replica {
    struct replica *next, *previous; /* server.replication.replicas, oldest first */
    struct session *session;
    enum replica_state state;
    char ip[REPLICATION_HOST_MAX + 1]; /* REPLCONF ip-address; "": that of the connection */
    uint16_t port;                     /* REPLCONF listening-port; 0: not said */
    bool is_redis;       /* it sent PSYNC or SYNC, and acknowledges bytes of its own stream */
    bool is_copy_enough; /* REPLCONF rdb-only 1: it wants the copy, and nothing behind it */
    uint64_t ack_group;  /* in its memory */
    int64_t ack_at_ms;   /* monotonic, of the last REPLCONF ACK; of LB.SYNC at first */
    uint64_t sent_group; /* the last group handed to its connection */
    size_t fed_size;     /* of its output, what the feed put there: no limit counts it */
    bool is_failed;      /* the machinery has given it up: its session is being closed */
    /* sync-replicas: its node; 0: it has not registered, and does not count. */
    uint64_t node;
    bool is_counted;         /* it follows in this master's own term: its acknowledgements count */
    uint64_t sync_group;     /* the last one that it has acknowledged for the quorum */
    bool is_probed;          /* it was sent a probe */
    int64_t answered_ms;     /* when the newest probe that it has answered was sent; 0: none */
    struct feed_place *feed; /* the feed's; see replicator_leave */
};

/* FAILOVER, as master_failover_state names it. */
enum replication_failover {
    REPLICATION_FAILOVER_NONE,   /* "no-failover" */
    REPLICATION_FAILOVER_WAITS,  /* "waiting-for-sync": writes are paused, the target catches up */
    REPLICATION_FAILOVER_SHIFTS, /* "failover-in-progress": this server connects to the target */
    REPLICATION_FAILOVERS,
};
const char *replication_failover_name(enum replication_failover state);

/* LB.SYNC; PSYNC and SYNC. */
struct replication_wish {
    struct bytes id;
    uint64_t group; /* the first that is wanted; PSYNC: the first byte of the stream, 0: none */
    bool wants_failover;
    bool is_redis;    /* PSYNC, SYNC */
    bool is_old;      /* SYNC: nothing is answered before the copy */
    bool is_pulling;  /* sync-replicas: a closed master, whose term this server has voted for */
    struct term term; /* that term */
};

struct replication {
    enum replication_role role;
    enum replication_link link;
    struct replicator *replicator; /* NULL: there is none */

    /* ---- history ---- */
    char id[REPLICATION_ID_SIZE + 1];
    char second_id[REPLICATION_ID_SIZE + 1]; /* all 0: none */
    uint64_t second_until;                   /* the last group that belongs to second_id, too */
    /* A master that still applies what it received as a replica: until then its boards are not its
     * own to change, and who asks for them waits. */
    bool is_promoting;
    uint64_t group; /* the last group in memory: persistence_last_group, kept here
                                              * by the machinery for INFO; of a replica: applied */
    /* How often the history under this server's clients has changed: see
     * replication_begin_epoch. */
    uint64_t epoch;
    uint64_t copies; /* of these, by a full copy that has replaced the keys */

    /* ---- of a replica ---- */
    char master_host[REPLICATION_HOST_MAX + 1]; /* as given; "" for a master */
    uint16_t master_port;
    /* There are boards to serve. The machinery clears it where a replica starts without files of
     * its own, until its first full copy is there. */
    bool is_whole;
    bool is_priority_zero;   /* not to be elected, whatever replica-priority says */
    int64_t link_down_at_ms; /* monotonic, when the link was lost, or following began */
    int64_t heard_at_ms;     /* monotonic, of the last byte of the master */
    uint64_t read_group;     /* the last group received (slave_read_repl_offset) */
    uint64_t copy_size;      /* the full copy that is being received; 0: not known */
    uint64_t copy_read_size;
    int64_t copy_at_ms;                /* monotonic, of its last byte */
    char error[REPLICATION_ERROR_MAX]; /* why the link was lost; "": it was not */

    /* ---- of a master, or a replica that has replicas ---- */
    struct replica *replicas, *replicas_last;
    uint32_t replica_count; /* of all in the list */
    bool has_acks;          /* since clients in WAIT, and FAILOVER, were looked at */
    /* The ring of encoded groups; 0: it does not exist. */
    uint64_t backlog_size, backlog_first_group, backlog_used_size;

    struct sync sync;

    /* ---- FAILOVER ---- */
    struct {
        enum replication_failover state;
        char host[REPLICATION_HOST_MAX + 1]; /* the target; "": whichever catches up first */
        uint16_t port;
        bool is_forced;
        int64_t until_ms; /* monotonic; INT64_MAX: no timeout */
        bool is_ordered;  /* by a Sentinel, through the target */
        /* Of a replica that is to be master: so long it waits for its master to hand over,
         * monotonic. 0: it does not. */
        int64_t asked_until_ms;
    } failover;

    /* Since the start, or CONFIG RESETSTAT. */
    struct replication_counters {
        uint64_t full_syncs;    /* copies sent to replicas (INFO's sync_full) */
        uint64_t partial_syncs; /* replicas that went on where they were (sync_partial_ok) */
        uint64_t partial_sync_failures;      /* that asked to, and could not (sync_partial_err) */
        uint64_t copied_size, streamed_size; /* bytes sent to replicas: of copies, of groups */
        uint64_t received_copy_size, received_size; /* bytes received from a master: the same */
        uint64_t link_losses;
    } counters;
};

/* Is this the master that is followed, by a link that goes on? */
bool replication_is_following(const struct replication *replication, struct bytes host,
                              uint16_t port);
/* A master with a new id; or what `replicaof` says: the machinery, once it is there, begins as if
 * `follow` had been called. */
void replication_init(struct server *server);
/* A new id, of 40 hex digits. */
void replication_make_id(struct server *server, char id[REPLICATION_ID_SIZE + 1]);

static inline bool replication_is_replica(const struct replication *replication) {
    return replication->role == REPLICATION_REPLICA;
}
/* Whose the keys are. */
enum replication_keys {
    REPLICATION_KEYS_OWN,       /* this server changes them, and answers for them */
    REPLICATION_KEYS_HELD,      /* its own, but a FAILOVER is about to hand them over */
    REPLICATION_KEYS_FOLLOWED,  /* its master's */
    REPLICATION_KEYS_PROMOTING, /* a new master's that still applies what it received */
    REPLICATION_KEYS_CLOSED,    /* of a master that is not open (sync-replicas) */
};
static inline enum replication_keys replication_keys(const struct replication *replication) {
    return replication_is_replica(replication)                        ? REPLICATION_KEYS_FOLLOWED
           : replication->is_promoting                                ? REPLICATION_KEYS_PROMOTING
           : sync_is_closed(&replication->sync)                       ? REPLICATION_KEYS_CLOSED
           : replication->failover.state != REPLICATION_FAILOVER_NONE ? REPLICATION_KEYS_HELD
                                                                      : REPLICATION_KEYS_OWN;
}
/* May this server change the keys, now? Asked before anything changes them: a command, the end of a
 * time to live or of a period, a client that is served what it waited for, a job, the name of the
 * history. */
static inline bool replication_may_change(const struct replication *replication) {
    return replication_keys(replication) == REPLICATION_KEYS_OWN;
}
/* What an answer that waits depends on: it may leave only if this is still the same. With
 * sync-replicas it is the term that answers; without, an answer depends on this server's disk
 * alone, until other keys are there. */
static inline uint64_t replication_answer_epoch(const struct replication *replication) {
    return replication->sync.state == SYNC_OFF ? replication->copies : replication->epoch;
}
/* INFO's master_link_status:up */
static inline bool replication_is_up(const struct replication *replication) {
    return replication->link == REPLICATION_LINK_CONNECTED;
}

/* Become a replica of that master, or of another one; settings->replicaof says so, too (CONFIG
 * REWRITE). Clients that wait for a key are answered -UNBLOCKED. No-op if it is that one's already.
 * false: out of memory, nothing changed. */
MUST_CHECK bool replication_follow(struct server *server, struct bytes host, uint16_t port);
/* Become a master: replicator_promote, then a new id; the old one stays as the second. No-op for a
 * master. Where much was received and not applied, that goes on in steps:
 * replication.is_promoting. */
void replication_promote(struct server *server);
/* The machinery has applied what was received. */
void replication_open(struct server *server);
/* The process is about to end: what was received is to be there. */
void replication_finish_promotion(struct server *server);
/* The history under this server's clients has changed, or is not this server's to decide any more:
 * it follows another server, a greater term begins, a closed master takes over the history of
 * another, or a full copy has replaced the keys. Numbers of groups that are known from before mean
 * nothing now.
 *
 *     answers that wait (RESP, HTTP)  are never sent: replication_answer_epoch
 *     BZPOPMIN, WAIT and their kin    end with an error: waiting_disconnect
 *     orders                          the same, and resume where the keys that have them are changed next
 *     replicas, and what is kept for them  begin anew, if the keys were replaced: `copies` */
void replication_begin_epoch(struct server *server);
/* The same: a full copy is in place of the keys. */
void replication_note_copy(struct server *server);
/* The history goes on under a new id; `group` must be right. */
void replication_change_id(struct server *server);

/* ---- replicas ---- */

/* The session's replica, made if it has none (REPLCONF). NULL: out of memory. */
MUST_CHECK struct replica *replication_get_replica(struct session *session);
/* LB.SYNC: put it into the list, in that state. */
void replication_add_replica(struct server *server, struct replica *replica,
                             enum replica_state state);
/* The session ends, or is no replica any more: out of the list, replicator_leave, freed. No-op
 * without one. */
void replication_remove_replica(struct server *server, struct session *session);
/* REPLCONF ACK. Never goes back. */
void replication_take_ack(struct server *server, struct replica *replica, uint64_t group);
/* Where it can be reached: what it has announced, or where its connection comes from. */
void replication_print_address(const struct replica *replica, char out[REPLICATION_HOST_MAX + 1]);
/* The replica in the list that is reached there; NULL: there is none. */
struct replica *replication_find_replica(const struct replication *replication, struct bytes host,
                                         int64_t port);
/* How many replicas that are online have acknowledged this group. */
uint32_t replication_count_acked(const struct replication *replication, uint64_t group);
/* How many were heard within min-replicas-max-lag; min-replicas-to-write wants that many. */
uint32_t replication_count_good(const struct server *server);

/* CONFIG RESETSTAT */
void replication_reset_counters(struct replication *replication);

/* ---- what is refused ---- */

/* May a command of these needs be refused here? The functions below say so for certain. */
static inline bool replication_may_refuse(const struct replication *replication, bool is_write,
                                          bool serves_stale_data, int64_t replicas_to_write) {
    switch (replication_keys(replication)) {
    case REPLICATION_KEYS_OWN:
    case REPLICATION_KEYS_HELD:
        return is_write && replicas_to_write > 0;
    case REPLICATION_KEYS_FOLLOWED:
        return is_write || (!serves_stale_data && !replication_is_up(replication));
    case REPLICATION_KEYS_PROMOTING:
    case REPLICATION_KEYS_CLOSED:
        break;
    }
    return true;
}

/* The error for a write here and now: "READONLY ...", "NOREPLICAS ..."; NULL: none. */
const char *replication_write_refusal(const struct server *server);
/* The error for a command that needs the boards: "LOADING ...", "MASTERDOWN ..."; NULL: none. */
const char *replication_read_refusal(const struct server *server);
/* Is it a master whose answers to writers, and to readers who must see every write, leave now? Not
 * while files are loaded or the server retires, nor when it is closed or without its lease
 * (sync-replicas), nor without the replicas that min-replicas-to-write wants: then another master
 * may have been made. INFO tells balancers so as serves_as_master. */
bool replication_serves_as_master(const struct server *server);
/* What INFO says, and Sentinel reads, as slave_priority. */
int64_t replication_priority(const struct server *server);

#endif
