/* Failover without loss: terms, votes, and what is safe (sync-replicas; docs/internals/replication.md has the
 * protocol and its rules, T G P F R D S B L; tests/model/ explores it). What is decided is in term.h; this
 * is what happens around it: messages, the file of votes, opening.
 *
 *     OFF --begin--> REPLICA or CLOSED                       the files are loaded
 *     REPLICA --promote--> CLOSED                            SLAVEOF NO ONE: takes a term
 *     CLOSED --take_term--> CLOSED                           somebody has voted for a greater one
 *     CLOSED --pull--> PULLING --pulled, or lost--> CLOSED   from who has voted and has most
 *     CLOSED --open--> OPEN                                  the start mark is written: the history in the
 *                                                            keys (replication.h) begins a new id, the term
 *     OPEN --take_term--> CLOSED                             as CLOSED
 *     any --follow--> REPLICA                                SLAVEOF host port
 *
 * Who follows says so before LB.SYNC, and again until it may go on:
 *
 *     REPLCONF PRESENT <node> <voted> <id> <group> <0|1|2: has lost durability; 2: is released>
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
#include "server/replication/term.h"
#include "server/replication/wire.h"
#include "server/sessions/server.h"
#include "server/system/disk.h"
#include "server/system/worker.h"

/* ---- the file of votes ----
 *
 * What a node must not forget of terms: leaderboard.promise, beside the manifest.
 *
 *     leaderboard promise 1
 *     node 5f1c0d2b9a8e7f34
 *     promised 00000000000a5f1c0d2b9a8e7f3491c2d0e4a7b3
 *     left crashed
 *     boot 1f7f5b0a-6c3e-4d2b-9c57-0a1b2c3d4e5f
 *     group 81250
 *     lease 1000
 *     checksum 5f1c0d2b9a8e7f34
 *
 * The node's number is made once. The file is replaced atomically, as the manifest is, and a vote
 * counts only when the file is on disk. Everything blocks; any thread may call it, one at a time. */

/* What is known of a server that is found ended, if this is what its file says. */
enum vote_left {
    VOTE_LEFT_CRASHED, /* it has acknowledged what was written to its journal, and may not be on
                           * its disk: all is there if the machine has not been started anew since */
    VOTE_LEFT_DURABLE, /* it has acknowledged only what was on its disk */
    VOTE_LEFT_CLEAN,   /* it has ended cleanly, with `group` as its last */
    VOTE_LEFT_RELEASED, /* it began with boards and without this file, and has not been filled since */
    VOTE_LEFTS,
};

enum { VOTE_BOOT_SIZE = 36 };

struct vote {
    uint64_t node;     /* never 0 */
    struct term voted; /* the highest that it has voted for */
    enum vote_left left;
    char
        boot[VOTE_BOOT_SIZE + 1]; /* of the machine, while the server runs: quorum_vote_read_boot */
    uint64_t group;
    int64_t lease_ms; /* the longest that it has answered a probe of, or has asked for */
};

enum vote_status {
    VOTE_OK,
    VOTE_MISSING, /* there is no file, or no directory */
    VOTE_DAMAGED,
    VOTE_FAILED, /* a system call failed */
};

/* Read it. Not OK: error (DISK_ERROR_MAX) says why, with the file's name. */
MUST_CHECK enum vote_status quorum_vote_load(const char *directory, struct vote *vote, char *error);
/* Replace it: on disk when this returns true. false: errno says why; the old or the new one is there. */
MUST_CHECK bool quorum_vote_save(const char *directory, const struct vote *vote);

/* What tells one start of the machine from another. Where the system does not say, no two are the
 * same. */
void quorum_vote_read_boot(char boot[VOTE_BOOT_SIZE + 1]);

/* As text. */
enum { VOTE_TEXT_MAX = 384 };
size_t quorum_vote_print(const struct vote *vote, char out[VOTE_TEXT_MAX]);
/* false: it is not what quorum_vote_print writes. */
MUST_CHECK bool quorum_vote_parse(struct bytes text, struct vote *vote);

/* ---- the quorum ---- */

/* A node that has registered in this term. */
struct quorum_peer {
    struct sync_registration said;
    const struct replica *replica; /* over which it was said; NULL: that is gone */
    int64_t said_ms;               /* by clock_read_ms */
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
    struct quorum_peer peers[TERM_NODES_MAX];
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
/* Its connection goes. What it has voted for stays. */
void quorum_leave(struct quorum *quorum, const struct replica *replica);
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
