/* One client's state, without its socket. Handlers read and change it; the connection acts on it
 * after the command. */
#ifndef SERVER_SESSION_H
#define SERVER_SESSION_H

#include "codec/buffer.h"
#include "protocol/reply.h"
#include "protocol/resp.h"
#include "server/replication/state.h"
#include "server/sessions/subscription.h"
#include "server/sessions/watch.h"
#include "server/system/digest.h"
#include "server/system/jwt.h"

struct acl_user;
struct command;
struct job;

enum {
    SESSION_NAME_MAX = 256, /* bytes of a client name, library name or version */
    SESSION_ADDRESS_MAX = 128,
};

enum session_reply_mode {
    SESSION_REPLY_ON,
    SESSION_REPLY_OFF,
    SESSION_REPLY_SKIP_NEXT, /* CLIENT REPLY SKIP has just run */
    SESSION_REPLY_SKIP,      /* skip the reply of the current command */
};

/* Lists of sessions. A session is in each list at most once. */
enum session_list {
    SESSION_MONITORS,
    SESSION_KILLED,         /* killed but not yet removed */
    SESSION_WAITERS,        /* that wait, for a key or for replicas */
    SESSION_PUSHED,         /* with output that is not the reply to a request of its own */
    SESSION_BY_SIZE,        /* one size class of struct client_memory */
    SESSION_AUTHENTICATING, /* that wait until their password is looked at */
    SESSION_TRACKERS,       /* CLIENT TRACKING ON */
    SESSION_LISTS,
};
struct session_link {
    struct session *next, *previous;
};

/* What a client queues between MULTI and EXEC: requests with copies of their arguments, because the
 * input buffer is reused before EXEC runs them. */
struct transaction_request {
    struct transaction_request *next; /* the request queued after this one */
    struct request request;           /* its arguments are in args, followed by their bytes */
    uint32_t command;                 /* command number */
    struct bytes args[];
};

/* Zero-initialised: no transaction. */
struct transaction {
    struct transaction_request *first, *last;
    struct transaction_piece *pieces; /* memory blocks that hold the requests, newest first */
    uint32_t count;
    unsigned flags;     /* union of the queued commands' command_flags */
    size_t memory_size; /* total size of the pieces */
    uint64_t bound_ns;  /* at most what the queued commands may cost together */
    bool is_open;       /* after MULTI: requests are queued */
    bool is_refused;    /* a request was refused instead of queued: EXEC will abort */
    bool is_running;    /* EXEC is running: commands must not block or skip writes */
};

enum wait_state { WAIT_NONE, WAIT_FOR_KEY, WAIT_FOR_REPLICAS };

/* What one client waits for (wait.h). Zero-initialised: nothing. */
struct wait {
    enum wait_state state;
    uint64_t epoch; /* in which it began: see wait_begin_epoch */
    struct subscription_list keys;
    uint32_t place;                /* in waits.due_times, or EXPIRY_NOWHERE */
    const struct command *command; /* the one that waits */
    bool is_silent;                /* it gets no reply */
    /* What the command does once it is served: */
    bool is_reverse;
    char *target; /* the key that members are moved to (wait_set_target); NULL: none */
    uint32_t target_size;
    int64_t count;  /* members; or replicas */
    uint64_t group; /* that the replicas are to acknowledge */
};

/* CLIENT TRACKING (tracking.h). Zero-initialised: off. */
struct session_tracking {
    bool is_on;
    bool is_broadcast; /* BCAST: told of all changes of keys that begin with one of prefixes */
    bool is_opt_in, is_opt_out;
    bool is_no_loop;
    bool is_caching;               /* CLIENT CACHING, for the next command or transaction */
    bool is_broken;                /* the client to be told is gone */
    uint64_t redirect;             /* the id of the client to be told; 0: itself */
    uint32_t source_count;         /* clients that redirect to this one */
    struct subscription_list keys; /* that it has read, and not been told of since */
    struct subscription_list prefixes;
};

/* What a request over HTTP says of the ids of its results (ONCE), and is told. */
struct session_once {
    struct bytes route; /* an id belongs to the user and to this, not to a key; at most 64 bytes */
    struct bytes
        fingerprint; /* of all that is written: an id that comes again with another one is refused */
    bool is_repeated; /* the id has come before */
};

/* Records with DATA of whose field the value, or a word of it, begins so, are wanted, and so many at the most: those of
 * others are nil, as of members who are not there. */
struct session_names {
    struct bytes field, prefix; /* letters of ASCII in either case */
    uint32_t left;
};

/* What a thread has found of the token that the next AUTH or HELLO has (server/loop/connection.c). */
struct session_verified {
    unsigned char digest[DIGEST_SIZE]; /* of the token */
    uint64_t key_mark;                 /* of the key that it was checked by */
    enum jwt_status status;
    struct jwt_claims claims;
};

struct session {
    struct link link;     /* first, in the table of all sessions by id */
    struct session *next; /* all sessions, oldest first; maintained by server_add_session */
    struct session *previous;
    struct session_link links[SESSION_LISTS];
    uint64_t id;
    int fd;                                  /* for CLIENT LIST; -1: no socket */
    char address[SESSION_ADDRESS_MAX];       /* "127.0.0.1:50412", "[::1]:50412", "/path:0" */
    char local_address[SESSION_ADDRESS_MAX]; /* the local address of the connection */
    char *name;                              /* CLIENT SETNAME; NULL: none; owned, NUL-terminated */
    char *library_name;                      /* CLIENT SETINFO lib-name */
    char *library_version;                   /* CLIENT SETINFO lib-ver */
    int64_t created_at_ms;                   /* monotonic */
    /* Where this session's line is in the reply of the CLIENT LIST with this number. */
    struct {
        uint64_t list;
        size_t begin, size;
    } line;
    size_t query_buffer_size;    /* bytes of unfinished input */
    struct session_once *once;   /* NULL: ids belong to keys, as with RESP */
    struct session_names *names; /* NULL: records of all */
    struct reads *reads; /* where its commands note hashes; NULL: nobody keeps its answers */
    struct wait wait;
    struct session_tracking tracking;
    /* What every request needs, from here to the end, lies together (see connection_fetch). */
    size_t input_memory_size; /* memory of the connection and of its unfinished input */
    struct subscription_list subscriptions;
    struct watch_list watches;
    struct transaction transaction; /* ended by server_end_transaction, like the watches */
    uint8_t protocol;               /* 2 or 3 */
    uint8_t database;
    bool has_strings;      /* CLIENT NUMBERS STRINGS */
    bool is_authenticated; /* set by server_set_user; see server_is_authenticated */
    bool is_unlimited;     /* may run everything: see server_refresh_rights */
    bool is_unix_socket;
    bool is_no_evict; /* CLIENT NO-EVICT: exempt from maxmemory-clients */
    bool is_no_touch;
    bool leaves_jobs;          /* over HTTP: it does not wait for the end of its jobs */
    bool is_monitor;           /* MONITOR */
    bool is_close_after_reply; /* QUIT, protocol errors */
    bool is_pushed;            /* in SESSION_PUSHED */
    bool is_replying;          /* see server_begin_reply */
    bool is_postponed;         /* its next request waits for the end of a pause */
    bool awaits_end;           /* SHUTDOWN: answered only if the server goes on */
    bool is_killed;            /* CLIENT KILL, limits: close now, drop the output */
    bool is_closed;            /* the server has it no more; it is freed later */
    bool is_brief;             /* LB.INFO: what answers over HTTP show of a board, and no more */
    uint8_t value_count;       /* LB.ADD: the values before each member; 0: as its board has them */
    enum session_reply_mode reply_mode;
    uint64_t changed_group;  /* the last group with a change of its own; 0: none (WAIT) */
    uint64_t changed_epoch;  /* in which that was (replication_begin_epoch) */
    struct replica *replica; /* NULL: it has sent no REPLCONF; owned */
    struct job *job;         /* the command that runs in steps; NULL: none */
    int64_t active_at_ms;    /* last request received, or last output accepted; monotonic */
    const struct command *last_command;
    struct acl_user *user; /* the default user before authentication */
    /* Who the client is, if it has come with a player's token: it then writes of this member alone. Owned; NULL: it
     * has not. */
    struct jwt_player *player;
    struct session_verified *verified; /* owned; NULL: nothing */
    uint64_t command_count;
    uint64_t input_bytes, output_bytes;
    size_t counted_size;  /* its share of client_memory's total */
    uint8_t size_class;   /* its class there; 0: none */
    struct buffer output; /* replies not yet written */
    struct buffer kept;   /* what was pushed while a reply is written; it follows the reply */
    size_t job_size;      /* memory of its job's reply so far */
    size_t pushed_from;   /* is_pushed: the size of output before */
    size_t handed_size;   /* bytes of replies that a network thread has yet to write */
    int64_t soft_limit_since_ms; /* when output exceeded the soft limit; 0: below it */
};

/* Zero-initialise, with the given id and times. protocol 2, database 0. */
void session_init(struct session *session, uint64_t id, int64_t monotonic_ms);
void session_deinit(struct session *session);
/* Take the player, who becomes the session's; NULL: none. */
void session_set_player(struct session *session, struct jwt_player *player);
/* Reset to the state after connecting (RESET), except its user, is_monitor, transaction, watches,
 * subscriptions and tracking: the server resets those. */
void session_reset(struct session *session);

/* Give the reply the form that the client has chosen. */
static inline void session_shape_reply(const struct session *session, struct reply *reply) {
    reply->version = session->protocol;
    reply->numbers = session->has_strings ? REPLY_STRINGS : session->protocol;
}

/* Is the client a subscriber? In RESP2 most of its requests are then refused. */
static inline bool session_is_subscriber(const struct session *session) {
    return subscription_list_is_used(&session->subscriptions);
}
/* Does it follow this server's changes (LB.SYNC)? */
static inline bool session_is_replica(const struct session *session) {
    return session->replica != NULL && session->replica->state != REPLICA_HANDSHAKE;
}
static inline bool session_is_restricted(const struct session *session) {
    return session_is_subscriber(session) && session->protocol == 2;
}

/* Must its queued requests be skipped? */
static inline bool session_is_void(const struct session *session) {
    return session->is_closed || session->is_killed;
}

/* Insert a session at the head of a list, or remove it. */
void session_link(struct session **first, struct session *session, enum session_list list);
void session_unlink(struct session **first, struct session *session, enum session_list list);

/* Is this a valid client or library name? Printable ASCII without spaces, at most SESSION_NAME_MAX
 * bytes, so that it cannot break CLIENT LIST. */
MUST_CHECK bool session_is_name(struct bytes text);
#define SESSION_NAME_ERROR "ERR Client names cannot contain spaces, newlines or special characters."
/* Bytes held until the client proceeds: unfinished input, queued requests, and the names that it
 * watches, subscribes to or waits for. */
static inline size_t session_held_size(const struct session *session) {
    return session->query_buffer_size + session->transaction.memory_size +
           session->watches.keys.memory_size + session->subscriptions.memory_size +
           session->wait.keys.memory_size;
}
/* All memory of the client. Buffers count with their capacity. */
static inline size_t session_memory_size(const struct session *session) {
    return sizeof *session + session->input_memory_size + session_held_size(session) -
           session->query_buffer_size + session->tracking.keys.memory_size +
           session->tracking.prefixes.memory_size + session->output.capacity +
           session->output.dropped + session->kept.capacity + session->handed_size +
           session->job_size + (session->player != NULL ? sizeof *session->player : 0) +
           (session->replica != NULL ? sizeof *session->replica : 0);
}
/* Replace a name with a copy of text. An empty text clears it. false: out of memory; nothing
 * changed. */
MUST_CHECK bool session_set_text(char **name, struct bytes text);

/* Queue a copy of a request. command_flags are the flags of its command. false: out of memory;
 * nothing was queued. */
MUST_CHECK bool session_transaction_queue(struct transaction *transaction,
                                          const struct request *request, uint32_t command,
                                          unsigned command_flags);
/* Discard the queue and end the transaction. */
void session_transaction_clear(struct transaction *transaction);

enum { CLIENT_MEMORY_CLASSES = 64 };

/* Zero-initialised: no session is counted. */
struct client_memory {
    uint64_t total; /* bytes */
    struct session *classes[CLIENT_MEMORY_CLASSES];
    uint64_t filled; /* bit i: classes[i] is not empty */
};

/* Recount the session's memory. A session with is_no_evict is in no class. */
void session_memory_count(struct client_memory *memory, struct session *session);
/* Remove the session from the accounting. */
void session_memory_forget(struct client_memory *memory, struct session *session);
/* A session of the largest non-empty class. NULL: there is none. */
struct session *session_memory_largest(const struct client_memory *memory);

/* Append its line of CLIENT LIST, CLIENT INFO and ACL LOG, with the line end. command: command_last_name. */
void session_print_line(const struct session *session, const char *command, int64_t monotonic_ms,
                        struct buffer *out);

#endif
