/* What a master sends a replica behind its answer to LB.SYNC: messages.
 *
 *     +CONTINUE <id>     then groups and pings
 *     +FULL <id>         then pieces of a copy (the bytes of a base: server/durability/snapshot_file.h),
 *                        pings between them, the copy's end, then groups and pings
 *
 *     message   u32 size of the body   u8 kind   3 zero bytes   body
 *     GROUP     a group as in a journal (server/durability/journal_file.h), sealed with WIRE_SEED
 *     PING      u64 time of the master, unix microseconds   u64 its last group
 *     PIECE     bytes of the copy
 *     END       u64 the last group that the copy holds   u64 time
 *     PROBE     u64 the last group of the master   u64 its number (0: none to be echoed)
 *               u64 milliseconds of the lease that leans on it: to those that take part in sync-replicas
 *     GIVEN_UP  why the copy does not go on: text for the log
 *
 * Integers are little endian. The replica answers with REPLCONF ACK. Nothing here is trusted: a
 * message that is not valid ends the link.
 *
 * Before it, REPLCONF leaderboard says the replica's format, and the answer the master's (file_format.h): they must be
 * equal, else both refuse, and say why. */
#ifndef SERVER_WIRE_H
#define SERVER_WIRE_H

#include "codec/buffer.h"
#include "server/durability/journal_file.h"

enum {
    WIRE_HEAD = 8,
    WIRE_PING_SIZE = 16,
    WIRE_END_SIZE = 16,
    WIRE_PROBE_SIZE = 24,
    WIRE_PIECE_MAX = 256 * 1024,
    WIRE_TEXT_MAX = 512,
};
#define WIRE_TIME_MAX (UINT64_C(1) << 58) /* unix microseconds, some thousand years from now */
#define WIRE_SEED     UINT64_C(0x6c656164657262)

enum wire_kind {
    WIRE_GROUP = 1,
    WIRE_PING = 2,
    WIRE_PIECE = 3,
    WIRE_END = 4,
    WIRE_GIVEN_UP = 5,
    WIRE_PROBE = 6,
};

/* See server/replication/quorum.h. */
struct wire_probe {
    uint64_t last_group;
    uint64_t number;
    uint64_t lease_ms;
};

/* ---- writing: what finds no memory breaks the buffer ---- */

/* The bytes of a group's message. */
static inline size_t wire_group_size(const struct journal_group_head *head) {
    return WIRE_HEAD + JOURNAL_GROUP_HEAD + (size_t)head->size;
}
/* at: room for wire_group_size. */
void wire_put_group(char *at, const struct journal_group_head *head, const char *payload);
void wire_put_ping(struct buffer *out, int64_t time_us, uint64_t group);
void wire_put_probe(struct buffer *out, const struct wire_probe *probe);
void wire_put_piece(struct buffer *out, const char *at, size_t size);
void wire_put_end(struct buffer *out, uint64_t group, int64_t time_us);
void wire_put_given_up(struct buffer *out, const char *reason);

/* ---- reading ---- */

enum wire_status {
    WIRE_MESSAGE,
    WIRE_PART, /* more bytes are needed: message->whole_size in all, 0: not known yet */
    WIRE_BAD,  /* it is no message: *reason says why */
};

struct wire_message {
    enum wire_kind kind;
    size_t whole_size; /* with its head */
    const char *at;    /* the body; borrowed */
    size_t size;
    struct journal_group_head head; /* WIRE_GROUP; the payload is behind it in the body */
    uint64_t group;                 /* WIRE_PING, WIRE_END */
    int64_t time_us;
    struct wire_probe probe; /* WIRE_PROBE */
};

/* Read the message at the beginning of size bytes. A group's checksum is verified. */
MUST_CHECK enum wire_status wire_read(const char *at, size_t size, struct wire_message *message,
                                      const char **reason);
/* The same for a message that was read before: it is known to be valid, and its whole_size. */
void wire_read_again(const char *at, struct wire_message *message);
/* The payload of a group. */
static inline const char *wire_payload(const struct wire_message *message) {
    return message->at + JOURNAL_GROUP_HEAD;
}

#endif
