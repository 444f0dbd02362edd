/* The connection to a Redis that is followed, on a thread of its own: it connects, says that it is a replica,
 * receives at wire speed into a spool (redis_spool.h), and acknowledges once a second what has come. When the
 * connection breaks, it connects again and goes on where it was, as long as the source still has that.
 *
 *     CONNECT -> CONNECTING -> HANDSHAKE -> SYNC -> CONNECTED
 *        ^                                              |
 *        +------- any of them, when it breaks ----------+
 *
 * It says what Redis 5 to 8 and Valkey 7.2 to 9 expect: PING, AUTH, REPLCONF listening-port and
 * ip-address, REPLCONF capa eof capa psync2, PSYNC. Before that each connection asks REPLCONF
 * leaderboard: a leaderboard server may have taken the source's place, and has its own way to be
 * followed (master_link.h). */
#ifndef SERVER_REDIS_LINK_H
#define SERVER_REDIS_LINK_H

#include <openssl/ssl.h>

#include "server/migration/redis_spool.h"
#include "server/replication/replication.h"

enum { REDIS_LINK_WORD_MAX = 512, REDIS_LINK_ERROR_MAX = 256, REDIS_LINK_VERSION_MAX = 40 };

struct redis_link_options {
    char host[REPLICATION_HOST_MAX + 1];
    uint16_t port;
    char user[REDIS_LINK_WORD_MAX], password[REDIS_LINK_WORD_MAX]; /* "": none */
    char announced_ip[REPLICATION_HOST_MAX + 1];                   /* "": none */
    uint16_t announced_port;
    int64_t timeout_ms;
    /* Go on from here; id "": from the beginning. */
    char id[REPLICATION_ID_SIZE + 1];
    uint64_t offset;
    SSL_CTX *tls; /* owned from redis_link_start on; NULL: plain */
};

/* What the loop may know of it; a copy. */
struct redis_link_view {
    enum replication_link state;
    char id[REPLICATION_ID_SIZE + 1];   /* of the source's history; "": none yet */
    uint64_t begin_offset;              /* where the copy's commands begin */
    uint64_t received_offset;           /* the last byte of commands that has come */
    uint64_t copy_size, copy_read_size; /* 0: not known */
    uint64_t received_size;
    uint64_t full_syncs, partial_syncs, losses;
    int64_t heard_at_ms, copy_at_ms; /* monotonic */
    bool is_full;                    /* the spool takes no more */
    bool is_leaderboard;             /* the other end is no Redis any more */
    char error
        [REDIS_LINK_ERROR_MAX]; /* why it is not connected, or the spool is full; "": nothing */
};

struct redis_link;

/* Is this what a Redis answers to REPLCONF leaderboard, an option that it does not know? Any other
 * error may be that of a leaderboard server, too: one that is loading, or has too many clients. */
bool redis_link_is_redis(struct bytes answer);

/* wake: called on its thread when there is something to be read. NULL: no memory or threads, error
 * (REDIS_LINK_ERROR_MAX). */
MUST_CHECK struct redis_link *redis_link_start(const struct redis_link_options *options,
                                               struct redis_spool *spool,
                                               void (*wake)(void *context), void *context,
                                               char *error);
/* Receive no more. What is in the spool's file still gets into its ring. */
void redis_link_close(struct redis_link *link);
/* After redis_link_close: will nothing more be put into the spool? */
bool redis_link_is_quiet(struct redis_link *link);
/* Connect again. */
void redis_link_drop(struct redis_link *link);
/* Let the thread end; is it over? */
void redis_link_end(struct redis_link *link);
bool redis_link_is_over(const struct redis_link *link);
/* The same, wait for it, and free it. */
void redis_link_destroy(struct redis_link *link);
void redis_link_look(struct redis_link *link, struct redis_link_view *view);

#endif
