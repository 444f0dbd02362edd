/* What passes between a network thread and the engine: batches of requests one way, batches of
 * replies the other. Whoever fills a batch owns it until it is handed over; then the receiver owns
 * it, and gives it back when all that it holds has been used.
 *
 *     network thread   accept, read, parse --> struct batch    entries, notes, input --> engine
 *     engine           run                 --> struct replies  messages, bytes       --> network
 *
 * What comes back travels with the next batch of the other direction. So memory is freed by the
 * thread that allocated it, and nothing is written by two threads at a time. */
#ifndef SERVER_BATCH_H
#define SERVER_BATCH_H

#include <netinet/in.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/un.h>

#include "codec/buffer.h"
#include "protocol/resp.h"

struct network;
struct session;
struct transport;

/* Numbers of entries that are not commands. */
#define QUEUE_PROTOCOL_ERROR (UINT32_MAX - 1) /* reply with the error, then close */
#define QUEUE_CLOSE          (UINT32_MAX - 2) /* close without a reply */

/* One request. It points into its batch. */
struct queue_entry {
    struct session *session;
    struct request request;
    const char *error; /* QUEUE_PROTOCOL_ERROR */
    uint32_t command;  /* number, COMMAND_NONE, or one of the above */
};

enum transport_failure {
    TRANSPORT_LOST,
    TRANSPORT_NO_MEMORY_FOR_INPUT,
    TRANSPORT_NO_MEMORY_FOR_REQUESTS,
    TRANSPORT_NO_HANDSHAKE, /* of TLS */
    TRANSPORT_TLS_BROKEN,
};

enum transport_event {
    TRANSPORT_INPUT = 1 << 0,      /* its unfinished input has changed in size */
    TRANSPORT_INPUT_OVER = 1 << 1, /* the client sends no more; all it sent was parsed */
    TRANSPORT_FAILED = 1 << 2,     /* close it; failure says why */
    TRANSPORT_WRITTEN = 1 << 3,    /* output that could not be written at once now was */
    TRANSPORT_CLOSED = 1 << 4,     /* its descriptor is closed: the last that is heard of it */
    TRANSPORT_SHAKEN = 1 << 5,     /* the handshake of TLS is over: transport_peer_name */
};

/* What happened to one connection besides its requests. */
struct transport_note {
    struct session *session;
    unsigned events; /* enum transport_event */
    enum transport_failure failure;
    size_t unfinished_size; /* bytes */
    size_t memory_size;     /* held for input */
    const char *tls_error;  /* static text behind the last two failures; NULL: none */
};

union socket_address {
    struct sockaddr any; /* of a unix socket here, no more than its family */
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local; /* of a balancer's unix socket */
};

/* A client that was accepted: non-blocking, with its options set. */
struct accepted {
    int fd;
    bool is_unix_socket;
    bool is_tls;
    bool is_proxied; /* it sent a PROXY header: peer and local are what that says */
    union socket_address peer, local;
    union socket_address proxy; /* is_proxied: whose connection it is */
};

/* Clients that were closed because the process had no descriptor left. */
struct turned_away {
    unsigned count;
    int error; /* errno; 0: none */
};

/* Clients that were closed on a listener of proxy-protocol. */
struct proxy_refusals {
    unsigned count;
    const char *reason; /* of the last one; a literal */
    union socket_address peer;
};

enum {
    BATCH_NOTES_MAX = 128,
    BATCH_ACCEPTED_MAX = 8,
    /* Batches that wait for replies to go back with. So many may be full of accepted clients before accepting stops:
     * then these go back, and there is room again. */
    BATCHES_DONE_MAX = 4,
};

struct batch {
    struct batch *next;
    struct network *network; /* owns it; NULL: requests that the engine had held back */
    struct queue_entry *entries;
    size_t count, capacity;
    size_t position;              /* the engine: entries before it have run */
    struct transport_note *notes; /* room for BATCH_NOTES_MAX; apply after the entries are queued */
    unsigned note_count;
    struct accepted *accepted; /* room for BATCH_ACCEPTED_MAX; the engine's to open or to close */
    unsigned accepted_count;
    struct turned_away turned_away;
    struct proxy_refusals proxy_refusals;
    struct input_piece *pieces; /* newest first; reads use the first */
    unsigned piece_count;
    struct resp_arena arguments;
    uint64_t read_bytes, written_bytes; /* by the network since its last batch */
    struct outgoing *written;           /* the engine's buffers, to be freed */
    struct replies *used;               /* the engine's batches */
    bool is_drained;                    /* no request will follow: see network_drain */
};

/* Output that takes its buffer along. */
struct outgoing {
    struct outgoing *next;
    struct buffer buffer;
    bool is_engines; /* allocated by the engine, which frees it */
};

/* What the engine tells one transport; or, without one, the network itself: is_closed: close all and
 * end; output: send it to fd, a client that is refused, and close that; otherwise: drain. */
struct transport_message {
    struct transport *transport;
    int fd;
    uint32_t done;             /* so many of its requests have run */
    bool is_authenticated;     /* which limits apply to its next requests */
    bool is_opened;            /* the first message: start to read */
    bool is_stopped;           /* read no more */
    bool is_awaited;           /* read on while the network drains */
    bool is_ending;            /* all output is sent: half-close, and read away what still comes */
    bool is_closed;            /* the last message: close now; nothing else counts */
    bool is_report_wanted;     /* TRANSPORT_WRITTEN is to follow once all output is written */
    size_t begin, size;        /* output: these bytes of the batch */
    struct outgoing *outgoing; /* or this buffer; NULL: none */
};

enum { REPLIES_MESSAGES_MAX = 128, REPLIES_SIZE_MAX = 32 * 1024, REPLIES_COPIED_MAX = 4096 };

struct replies {
    struct replies *next;
    struct batch *used; /* the network's batches: all their entries have run */
    unsigned count;
    size_t size;
    struct transport_message messages[REPLIES_MESSAGES_MAX];
    char bytes[REPLIES_SIZE_MAX];
};

/* ---- a ring of pointers from one thread to one other, without a lock ----
 *
 *     producer   items[tail] = item;  tail + 1  ------------.
 *                                                           v  what was written before is seen
 *     consumer                            sees tail, reads items[head];  head + 1 ----.
 *                                                                                     v
 *     producer                                       sees head: the place is free again
 *
 * Memory order. Each index has one writer. The store of tail publishes the item and everything that
 * the producer wrote before; the consumer's load of tail receives it (release and acquire). The same
 * holds for head and the places that become free.
 *
 * Sleeping. A consumer that wants to sleep first says so and then looks at the ring once more; a
 * producer first puts its item and then looks whether the consumer sleeps. These are a store and a
 * load of different variables on each side, so all four are sequentially consistent: in their one
 * total order at least one side sees the other's store, and no item is left behind a sleeper
 * (network.h). That is why tail is stored so.
 *
 * head and tail run freely and wrap at 2^32; each side keeps the other's index as it last saw it and
 * reads it again only when the ring seems full or empty. */

enum { RING_SIZE = 256, RING_CACHE_LINE = 64 };

/* Zero-initialised: empty. */
struct ring {
    alignas(RING_CACHE_LINE) _Atomic uint32_t tail; /* written by the producer, as is the next */
    uint32_t head_seen;
    alignas(RING_CACHE_LINE) _Atomic uint32_t head; /* written by the consumer, as is the next */
    uint32_t tail_seen;
    alignas(RING_CACHE_LINE) void *items[RING_SIZE];
};

/* The producer: will the next ring_put succeed? */
static inline bool ring_has_room(struct ring *ring) {
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail - ring->head_seen == RING_SIZE) {
        ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
    }
    return tail - ring->head_seen < RING_SIZE;
}

/* The producer: false: the ring is full, and nothing was put. */
MUST_CHECK static inline bool ring_put(struct ring *ring, void *item) {
    if (!ring_has_room(ring)) {
        return false;
    }
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    ring->items[tail % RING_SIZE] = item;
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_seq_cst);
    return true;
}

/* The consumer: the oldest item; NULL: the ring is empty. */
static inline void *ring_take(struct ring *ring) {
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head == ring->tail_seen) {
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (head == ring->tail_seen) {
            return NULL;
        }
    }
    void *item = ring->items[head % RING_SIZE];
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return item;
}

/* The consumer, before it sleeps. */
static inline bool ring_is_empty(struct ring *ring) {
    return atomic_load_explicit(&ring->head, memory_order_relaxed) ==
           atomic_load_explicit(&ring->tail, memory_order_seq_cst);
}

#endif
