/* Failover without loss: terms, votes, and what is safe (sync-replicas; docs/internals/replication.md has the
 * protocol and its options, T G P F D S B L; tests/model/ explores it). What is decided is in election.h; this
 * is what happens around it: messages, the file of votes, opening.
 *
 *     OFF --begin--> REPLICA or CLOSED                       the files are loaded
 *     REPLICA --promote--> CLOSED                            SLAVEOF NO ONE: takes a term
 *     CLOSED --take_term--> CLOSED                           somebody has voted for a greater one
 *     CLOSED --pull--> PULLING --pulled, or lost--> CLOSED   from who has voted and has most
 *     CLOSED --open--> OPEN                                  the start mark is written: the history in the
 *                                                            keys (history.h) begins a new id, the term
 *     OPEN --take_term--> CLOSED                             as CLOSED
 *     any --follow--> REPLICA                                SLAVEOF host port
 *
 * Who follows says so before LB.SYNC, and again until it may go on:
 *
 *     REPLCONF PRESENT <node> <voted> <id> <group> <0|1: has lost durability>
 *     +OPEN <term>       the master is open in it: vote for it, then LB.SYNC
 *     +PREPARE <term>    vote for it (on disk), then say so
 *     +CLOSED            said: wait
 *     +OFF               the master has sync-replicas 0
 *
 * A vote is a PRESENT with that term. Behind LB.SYNC the master's pings carry probes, and REPLCONF ACK
 * <group> FSYNC <group> PROBE <probe> <acked> acknowledges for the quorum, up to the group that is written
 * to the journal, or with sync-replicas-fsync on disk; without PROBE it does not. */
#ifndef SERVER_QUORUM_H
#define SERVER_QUORUM_H

#include <uv.h>

#include "protocol/reply.h"
#include "server/replication/election.h"
#include "server/replication/vote.h"
#include "server/replication/wire.h"
#include "server/sessions/server.h"
#include "server/system/worker.h"

/* A node that has registered in this term. */
struct quorum_peer {
    struct sync_registration said;
    char host[REPLICATION_HOST_MAX + 1];
    uint16_t port;
};

struct quorum {
    struct server *server;
    struct worker worker; /* saves `saving` */
    bool has_worker;
    uv_timer_t timer;                  /* wakes the loop */
    int64_t timer_ms;                  /* when; like all times here by clock_read_ms */
    char *directory;                   /* absolute */
    char boot[VOTE_BOOT_SIZE + 1];     /* of the machine, now */
    struct vote wanted, saving, saved; /* of the file: saved is on disk */
    bool is_save_failed;
    int64_t retry_ms;       /* when it is tried again */
    unsigned failure_count; /* of the saves since the last that went well */
    struct quorum_peer peers[ELECTION_NODES_MAX];
    uint32_t peer_count;
    int64_t held_until_ms; /* before that it votes and opens nothing */
    /* PULLING */
    struct term_position target;
    uint64_t pulled_node;
    int64_t pull_until_ms; /* until when it is to have got further */
    /* OPEN */
    int64_t probed_ms;
    /* REPLICA */
    struct term master_term; /* of the master that the link is to; TERM_NONE: not known */
    uint64_t fill_group;     /* filled when this is kept; 0: not known */
    uint64_t probe;          /* the last one that came on this link */
    int64_t probe_lease_ms;
    bool owes_probe; /* it is not echoed before its lease is on disk */
};

/* sync-replicas is not 0, and the data directory is there. NULL: error (DISK_ERROR_MAX) says why. */
MUST_CHECK struct quorum *quorum_create(struct server *server, uv_loop_t *loop, char *error);
/* The loop turns once more before quorum_destroy. */
void quorum_stop(struct quorum *quorum);
/* Persistence has stopped, and everything is on disk: the next start has lost nothing. */
void quorum_end_cleanly(struct quorum *quorum, uint64_t last_group);
void quorum_destroy(struct quorum *quorum);

/* The files are loaded: the role is that of the settings. false: error (DISK_ERROR_MAX) says why the
 * server must not go on. Waits for the disk. */
MUST_CHECK bool quorum_begin(struct quorum *quorum, char *error);
/* The role is now MASTER, or REPLICA of another master. */
void quorum_promote(struct quorum *quorum);
void quorum_follow(struct quorum *quorum);
/* Before a tick's commands: votes, pulling, opening. */
void quorum_begin_tick(struct quorum *quorum);
/* Behind them, when the tick's group is complete: what is safe, and probes. */
void quorum_end_tick(struct quorum *quorum);

/* ---- of a master ---- */

/* REPLCONF PRESENT: answer it. */
void quorum_register(struct quorum *quorum, struct replica *replica,
                     const struct sync_registration *said, struct reply *reply);
/* May it be sent groups? NULL: yes, else the error. */
MUST_CHECK const char *quorum_find_sync_refusal(const struct quorum *quorum, bool is_pulling,
                                                const struct term *term);
/* REPLCONF ACK ... PROBE probe acked */
void quorum_take_ack(struct quorum *quorum, struct replica *replica, uint64_t acked,
                     uint64_t probe);

/* ---- of a replica ---- */

/* The link is new. */
void quorum_begin_link(struct quorum *quorum);
void quorum_describe(const struct quorum *quorum, struct sync_registration *said);
enum quorum_advice {
    QUORUM_GO_ON,   /* LB.SYNC */
    QUORUM_WAIT,    /* PRESENT again, soon */
    QUORUM_REFUSES, /* this master is not to be followed: reason */
};
/* The answer to PRESENT. reason: REPLICATION_ERROR_MAX bytes. */
MUST_CHECK enum quorum_advice quorum_take_answer(struct quorum *quorum, struct bytes answer,
                                                 char *reason);
/* The id that the answer to LB.SYNC names. false: it is of an older term than what was voted for. */
MUST_CHECK bool quorum_may_take(const struct quorum *quorum, struct bytes id);
void quorum_take_ping(struct quorum *quorum, const struct wire_probe *probe);
/* Its keys are not those of the master's history: as if it had lost durability, until it is filled. */
void quorum_doubt(struct quorum *quorum);
/* May groups be acknowledged for the quorum? Then up to *kept. *probe: to be echoed. Call it when the
 * acknowledgement is made. */
MUST_CHECK bool quorum_acknowledge(struct quorum *quorum, uint64_t *kept, uint64_t *probe);
/* Is there more to be acknowledged than up to this group? The master waits for it. */
bool quorum_owes_ack(const struct quorum *quorum, uint64_t acked);
/* Can a probe be echoed now that could not be when it came? */
bool quorum_owes_probe(const struct quorum *quorum);
/* A master of this term hands over to this server, and answers no reader by its lease any more. If it is the one that
 * this server follows, what that was acknowledged does not keep this server from opening. */
void quorum_end_hold(struct quorum *quorum, struct bytes id);

#endif
