/* Groups of effects as commands for a Redis with the module that follows this server: what its own master would
 * send it.
 *
 *     redis_encode_add       whole messages with groups (wire.h)
 *     redis_encode_step      some of them, as bytes of the stream
 *     redis_encode_is_idle   then more may be added
 *
 *     changes of a board            LB.APPLY key blob          one for all that follow each other
 *     a board's name, or a copy     LB.APPLY key blob to ""
 *     bans and durable jobs         LB.APPLYSTATE blob
 *     any key                       UNLINK, PEXPIREAT, PERSIST, FLUSHDB
 *     a hash                        HSET, HDEL, RENAME, COPY
 *
 * A group, with those that it is linked to, is one MULTI ... EXEC, unless it is one command: so a Redis never shows a
 * part of what happened at once. SELECT comes where the database changes. History (history.h) is left out. */
#ifndef SERVER_REDIS_ENCODE_H
#define SERVER_REDIS_ENCODE_H

#include "codec/buffer.h"
#include "server/durability/effect_bytes.h"
#include "server/durability/journal_file.h"

struct redis_encode {
    struct buffer *out; /* borrowed for a step */
    uint64_t offset;    /* bytes of the stream so far */
    uint64_t group;     /* the last one that is in them */
    uint32_t database;  /* that is selected; UINT32_MAX: none yet */
    /* Messages, from input_at on still to be encoded. */
    struct buffer input;
    size_t input_at;
    bool is_decoding; /* one of them */
    struct journal_group_head head;
    struct effect_decoder decoder;
    /* Of the groups that belong together: what is not in out yet. */
    struct buffer commands;
    uint64_t command_count;
    bool has_multi; /* MULTI is in out */
    /* The blob that is being filled. */
    enum { REDIS_ENCODE_NO_BLOB, REDIS_ENCODE_BOARD_BLOB, REDIS_ENCODE_STATE_BLOB } blob_kind;
    struct bytes blob_key; /* in the input */
    struct effect_encoder encoder;
    struct buffer blob;
};

void redis_encode_init(struct redis_encode *encode);
void redis_encode_deinit(struct redis_encode *encode);
/* Is everything encoded that was added? */
static inline bool redis_encode_is_idle(const struct redis_encode *encode) {
    return encode->input_at == encode->input.size;
}
/* Is the stream between two transactions? */
static inline bool redis_encode_is_between(const struct redis_encode *encode) {
    return !encode->has_multi && encode->command_count == 0 && !encode->is_decoding;
}
/* From idle. false: no memory; nothing was added. */
MUST_CHECK bool redis_encode_add(struct redis_encode *encode, const char *at, size_t size);
/* Encode for about budget_ns, until out has size_max bytes more, or up to the end of a transaction. false: no memory, or
 * a group that was not written by this server; the stream is of no use then. */
MUST_CHECK bool redis_encode_step(struct redis_encode *encode, struct buffer *out, size_t size_max,
                                  uint64_t budget_ns);
/* Put a command of these words between two transactions. */
void redis_encode_put(struct redis_encode *encode, struct buffer *out, const char *const *words,
                      uint32_t count);

#endif
