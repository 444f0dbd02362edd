/* What the server knows of one client, without its socket: handlers read and change this, the
 * connection acts on it after the command. */
#ifndef SERVER_SESSION_H
#define SERVER_SESSION_H

#include "protocol/buffer.h"
#include "protocol/reply.h"
#include "server/transaction.h"
#include "server/watch.h"

struct command;

enum {
    SESSION_NAME_MAX = 256, /* bytes of a client's name, library name and version */
    SESSION_ADDRESS_MAX = 128,
};

enum session_reply_mode {
    SESSION_REPLY_ON,
    SESSION_REPLY_OFF,
    SESSION_REPLY_SKIP_NEXT, /* CLIENT REPLY SKIP was just run */
    SESSION_REPLY_SKIP,      /* this command's reply is the one to skip */
};

struct session {
    struct session *next; /* all sessions, oldest first; kept by server_add_session */
    struct session *previous;
    uint64_t id;
    int fd;                                  /* for CLIENT LIST; -1 without a socket */
    char address[SESSION_ADDRESS_MAX];       /* "127.0.0.1:50412", "[::1]:50412", "/path:0" */
    char local_address[SESSION_ADDRESS_MAX]; /* where it connected to */
    char *name;            /* CLIENT SETNAME; NULL: none; own memory, terminated */
    char *library_name;    /* CLIENT SETINFO lib-name */
    char *library_version; /* CLIENT SETINFO lib-ver */
    uint8_t protocol;      /* 2 or 3 */
    uint8_t database;
    bool is_authenticated;
    bool is_unix_socket;
    bool is_no_evict;
    bool is_no_touch;
    bool is_monitor;           /* MONITOR */
    bool is_close_after_reply; /* QUIT, protocol errors */
    bool is_killed;            /* CLIENT KILL, limits: close now, drop the output */
    enum session_reply_mode reply_mode;
    struct transaction transaction; /* ended, with the watches, by server_end_transaction */
    struct watch_list watches;
    int64_t created_at_ms;
    int64_t active_at_ms; /* last request, or last bytes that it took */
    const struct command *last_command;
    uint64_t command_count;
    uint64_t input_bytes, output_bytes;
    size_t query_buffer_size;    /* unfinished input held for it */
    struct buffer output;        /* replies not yet written */
    int64_t soft_limit_since_ms; /* over the soft output limit since; 0: not over it */
};

/* Zero it, ids and times given; protocol 2, database 0. */
void session_init(struct session *session, uint64_t id, int64_t now_ms);
void session_deinit(struct session *session);
/* As after connecting (RESET), but for is_monitor, transaction and watches: those are the
 * server's. */
void session_reset(struct session *session, bool is_authenticated);

/* May a client, or its library, be called so? Printable ASCII without blanks, SESSION_NAME_MAX
 * bytes at most, so that it cannot break CLIENT LIST. */
MUST_CHECK bool session_is_name(struct bytes text);
#define SESSION_NAME_ERROR "ERR Client names cannot contain spaces, newlines or special characters."
/* Bytes that are kept for the client until it goes on: unfinished input, queued requests, watches.
 */
static inline size_t session_held_size(const struct session *session) {
    return session->query_buffer_size + session->transaction.memory_size +
           session->watches.memory_size;
}
/* Replace one of the names by a copy of text; an empty text clears it. false: no memory, and
 * nothing changed. */
MUST_CHECK bool session_set_text(char **name, struct bytes text);

#endif
