/* Replication as everyone sees it: the role, the link to the master, the replicas, whether this server is open
 * (sync-replicas), and what INFO, ROLE, WAIT and the refusals need of them. Handlers read it; what this room keeps up
 * to date here, and what may be asked of it, is in replication.h. */
#ifndef SERVER_REPLICATION_STATE_H
#define SERVER_REPLICATION_STATE_H

#include "codec/bytes.h"
#include "server/replication/term.h"

struct feed_place;
struct replicator;
struct session;

enum {
    REPLICATION_ID_SIZE = 40,
    REPLICATION_HOST_MAX = 255, /* bytes of a host's name or address */
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
const char *replication_replica_state_name(enum replica_state state);

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

/* ---- failover without loss (sync-replicas); the quorum keeps it, and explains the states (quorum.h) ---- */

enum sync_state {
    SYNC_OFF,     /* sync-replicas 0, or files are loaded */
    SYNC_REPLICA, /* it follows a master */
    SYNC_CLOSED,  /* a master that waits for votes */
    SYNC_PULLING, /* the same, which takes what it lacks of one that has voted */
    SYNC_OPEN,    /* a master */
    SYNC_STATES,
};
/* "closed" */
const char *replication_sync_state_name(enum sync_state state);

struct sync {
    enum sync_state state;
    bool has_lost_durability;          /* it may lack what it has acknowledged, or has nothing */
    bool is_released;                  /* that, and its promise was removed: see term_all_count */
    uint64_t node;                     /* its number, made once */
    struct term voted;                 /* the highest, on disk */
    struct term term;                  /* its own: CLOSED, PULLING, OPEN */
    uint32_t votes_needed, vote_count; /* CLOSED: of others */
    uint64_t mark_group;  /* OPEN: the last one of its start mark: nothing is safe before this is */
    uint64_t safe_group;  /* OPEN: acknowledged by sync-replicas others */
    bool has_lease;       /* OPEN: sync-replicas-lease is not 0 */
    int64_t lease_end_ms; /* OPEN: by clock_read_ms, like the next */
    uint32_t counted;     /* OPEN: connected, and their acknowledgements count */
    int64_t held_since_ms; /* OPEN: since when answers wait without progress; 0: none do */
};

/* Is it a master that is not open? Then nothing changes by itself, and commands are refused. */
static inline bool sync_is_closed(const struct sync *sync) {
    return sync->state == SYNC_CLOSED || sync->state == SYNC_PULLING;
}
/* Is it not to be master? Sentinel is to elect another one. */
static inline bool sync_is_unfit(const struct sync *sync) {
    return sync->has_lost_durability && !sync->is_released;
}
/* Do answers wait for replicas, those of readers, too? */
static inline bool sync_holds_answers(const struct sync *sync) {
    return sync->state == SYNC_OPEN;
}
/* OPEN: does no answer leave, as too few replicas were heard? */
static inline bool sync_is_lease_over(const struct sync *sync, int64_t now_ms) {
    return sync->state == SYNC_OPEN && sync->has_lease && now_ms >= sync->lease_end_ms;
}
/* The last group of which answers may leave now; disk_group: as far as this server's disk goes.
 * Call it after the commands whose answers it lets go have run, with the time as it is then
 * (clock_read_ms): the lease is looked at here. Answers that wait for a term that is over are of another
 * epoch (replication.h), and are not asked for. */
uint64_t replication_sync_safe_group(const struct sync *sync, uint64_t disk_group, int64_t now_ms);
/* OPEN: for how long answers have been held back; else 0. */
static inline int64_t sync_held_ms(const struct sync *sync, int64_t now_ms) {
    return sync->state == SYNC_OPEN && sync->held_since_ms != 0 ? now_ms - sync->held_since_ms : 0;
}

/* What a closed master answers to commands that need the boards. */
#define SYNC_CLOSED_ERROR                                                                          \
    "LOADING this server is to be master, and is closed until enough servers have voted for its "  \
    "term (sync-replicas)"
#define SYNC_LOST_ERROR                                                                            \
    "LOADING this server is to be master, but may have lost writes that it acknowledged: make it " \
    "a replica of one that has not (sync-replicas)"
/* And to PING: Sentinel takes LOADING for alive, and is to fail it over. */
#define SYNC_PING_ERROR                                                                            \
    "ERR this server may have lost writes that it acknowledged, and will not open as master "      \
    "(sync-replicas)"

/* What a node that follows says of itself: REPLCONF PRESENT. */
struct sync_registration {
    uint64_t node;
    struct term voted; /* on its disk */
    struct term_position position;
    bool has_lost_durability, is_released; /* as in struct sync */
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

#endif
