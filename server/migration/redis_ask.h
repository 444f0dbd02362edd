/* Asks the source, on a connection of its own, for what its stream does not say: keys that it has changed in a way that
 * is not followed command by command, and which keys an unknown command changes (redis_stream.h).
 *
 *     CLOSED --> CONNECTING [--> SHAKING] --> GREETS --> READY <--> KEYS, COMMAND
 *        ^____________________________________any_______________________________|
 *
 *     SELECT 0   MULTI   INFO replication   PEXPIRETIME key   DUMP key   TYPE key ...   EXEC
 *
 * As it is a transaction, INFO's master_repl_offset is the offset of the stream, of which the values are. When it is sent,
 * bytes up to an offset have been received: the answer is of that or a later one. So the stream is applied up
 * to there until the answer's offset is known, and up to that one until all values are in place. What commands do up to
 * there to keys that were asked for, is in the answer already.
 *
 * All keys that wait are asked for at once, as far as they are small, and again by the next transaction, if more
 * commands come behind it; those that are large and were answered just now, after a pause. A value comes in pieces, and
 * is read as it comes, as a full copy is.
 *
 * GREETS tries every command that may be needed, so that a right that is missing is known before anything changes. When the
 * connection is lost, what it was asked is asked again. */
#ifndef SERVER_REDIS_ASK_H
#define SERVER_REDIS_ASK_H

#include <uv.h>

#include "server/migration/redis_stream.h"
#include "server/network/tls.h"

enum { REDIS_ASK_RECENT = 256 };

enum redis_ask_state {
    REDIS_ASK_CLOSED,
    REDIS_ASK_CONNECTING,
    REDIS_ASK_SHAKING, /* TLS */
    REDIS_ASK_GREETS,
    REDIS_ASK_READY,
    REDIS_ASK_KEYS,    /* a transaction */
    REDIS_ASK_COMMAND, /* redis_apply.question */
};

struct redis_ask {
    struct redis_stream *stream; /* borrowed */
    uv_loop_t *loop;
    void (*changed)(void *context); /* called when there is something to do */
    void *context;
    const char
        *id; /* of the source's history, borrowed: another one's answers are not taken. NULL: any */
    enum redis_ask_state state;
    bool has_greeted;                  /* the source allows it all; since redis_ask_init */
    bool is_denied;                    /* it does not, for good: error */
    char error[REDIS_APPLY_ERROR_MAX]; /* why it is closed; "": nothing has failed */
    int64_t retry_at_ms;               /* monotonic */
    bool has_work;                     /* the last step has left something to do at once */
    /* Private. */
    int fd;
    uv_poll_t *poll;
    int polled;
    struct tls *tls;
    int64_t heard_at_ms;
    struct buffer input, output;
    uint32_t greeting; /* the answer that comes next */
    bool has_auth;
    bool has_expire_times; /* PEXPIRETIME; else PTTL */
    unsigned version;      /* of RDB, as far as it has to be known before a value's end */
    /* Of the transaction. */
    enum {
        REDIS_ASK_QUEUED,
        REDIS_ASK_EXEC,
        REDIS_ASK_OFFSET,
        REDIS_ASK_EXPIRY,
        REDIS_ASK_VALUE,
        REDIS_ASK_TYPE,
        REDIS_ASK_BODY
    } next;
    uint32_t queued_left;
    uint64_t offset; /* of the values */
    struct redis_asked *asked;
    int64_t expire_at_ms;
    uint64_t body_size, body_left;
    uint64_t crc;
    bool is_body_hungry;
    /* Keys whose large values were answered lately, and when such a one is asked for again. */
    struct redis_ask_recent {
        uint64_t hash;
        int64_t at_ms;
    } recent[REDIS_ASK_RECENT];
    uint32_t recent_next;
    int64_t again_at_ms;
};

void redis_ask_init(struct redis_ask *ask, struct redis_stream *stream, uv_loop_t *loop,
                    void (*changed)(void *context), void *context);
/* Connect to the other end of the socket fd, with TLS if context is not NULL; both are borrowed for the call. user NULL or
 * "": the default one; password NULL or "": none is given. */
void redis_ask_open(struct redis_ask *ask, int fd, struct ssl_ctx_st *context, const char *user,
                    const char *password, int64_t now_ms);
/* What was asked waits to be asked again. */
void redis_ask_close(struct redis_ask *ask);
/* Ask, and take answers, for about budget_ns. received: the offset up to which the stream has come. false: what was
 * answered cannot be held; stream->apply.error says why. true, and CLOSED: error. */
MUST_CHECK bool redis_ask_step(struct redis_ask *ask, uint64_t received, int64_t now_ms,
                               int64_t timeout_ms, uint64_t budget_ns);
/* Ask for what has come up since then. */
void redis_ask_flush(struct redis_ask *ask, uint64_t received);

/* ---- for tests: without a socket ---- */

void redis_ask_greet(struct redis_ask *ask, const char *user, const char *password);
/* Send what is to be asked, if nothing is. */
void redis_ask_send(struct redis_ask *ask, uint64_t received);
/* Read what is in ask->input. As redis_ask_step. */
MUST_CHECK bool redis_ask_take(struct redis_ask *ask, uint64_t budget_ns);

#endif
