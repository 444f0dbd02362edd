/* Failover without loss (sync-replicas), as commands and the loop see it: whether this server is open, and
 * up to which group its answers may leave. The quorum keeps it (quorum.h explains the
 * states). */
#ifndef SERVER_SYNC_H
#define SERVER_SYNC_H

#include "server/replication/term.h"

enum sync_state {
    SYNC_OFF,     /* sync-replicas 0, or files are loaded */
    SYNC_REPLICA, /* it follows a master */
    SYNC_CLOSED,  /* a master that waits for votes */
    SYNC_PULLING, /* the same, which takes what it lacks of one that has voted */
    SYNC_OPEN,    /* a master */
    SYNC_STATES,
};
/* "closed" */
const char *sync_state_name(enum sync_state state);

struct sync {
    enum sync_state state;
    bool has_lost_durability;          /* it may lack what it has acknowledged, or has nothing */
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
/* Do answers wait for replicas, those of readers, too? */
static inline bool sync_holds_answers(const struct sync *sync) {
    return sync->state == SYNC_OPEN;
}
/* The last group of which answers may leave now; disk_group: as far as this server's disk goes.
 * Call it after the commands whose answers it lets go have run, with the time as it is then
 * (clock_read_ms): the lease is looked at here. Answers that wait for a term that is over are of another
 * epoch (replication.h), and are not asked for. */
uint64_t sync_safe_group(const struct sync *sync, uint64_t disk_group, int64_t now_ms);

/* OPEN: does no answer leave, as too few replicas were heard? */
bool sync_is_lease_over(const struct sync *sync, int64_t now_ms);

/* OPEN: for how long answers have been held back; else 0. */
int64_t sync_held_ms(const struct sync *sync, int64_t now_ms);

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
    bool has_lost_durability;
};

#endif
