/* Replies in envelopes. See host_raw.h. */
#include "server/module/host_raw.h"

#include <string.h>

#include "server/module/module.h"

enum {
    SMALL_MIN = HOST_RAW_MIN, /* every size from here to LARGE_MIN - 1, but SMALL_NONE ... */
    SMALL_NONE = 16,          /* the echo of 9 bytes takes 15, of 10 bytes 17 */
    LARGE_MIN = 64,           /* ... and every power of two from here */
    LARGE_LOG_MAX = 16,
    FRAME_SIZE = 5, /* '$', and two line ends */
};

struct envelope {
    struct host_call_reply *reply; /* NULL: not made yet */
    char *at;
};

static struct envelope small[LARGE_MIN - SMALL_MIN];
static struct envelope large[LARGE_LOG_MAX + 1];
static enum { RAW_UNKNOWN, RAW_PROBING, RAW_POSSIBLE, RAW_IMPOSSIBLE } state;

/* The bytes to be echoed so that the reply has this size. */
static size_t echo_size(size_t size) {
    size_t digits = 1;
    for (size_t ten = 10; size - FRAME_SIZE - digits >= ten; ten *= 10) {
        digits++;
    }
    return size - FRAME_SIZE - digits;
}

/* The bytes belong to the host's reply, and nothing reads them but ReplyWithCallReply. */
static bool make(struct envelope *envelope, size_t size) {
    static const char filling[1 << LARGE_LOG_MAX];
    size_t got = 0;
    envelope->reply = host_Call(module.timer_context, "ECHO", "b", filling, echo_size(size));
    const char *at = envelope->reply != NULL ? host_CallReplyProto(envelope->reply, &got) : NULL;
    envelope->at = (char *)(uintptr_t)at;
    return at != NULL && got == size;
}

static unsigned log_of(size_t size) {
    unsigned log = (unsigned)(63 - __builtin_clzll(size));
    return log < LARGE_LOG_MAX ? log : LARGE_LOG_MAX;
}

/* The size of the next envelope, so that what is left after it fills one, too. */
static size_t next_size(size_t left) {
    if (left < LARGE_MIN) {
        return left == SMALL_NONE ? SMALL_NONE / 2 : left;
    }
    size_t size = (size_t)1 << log_of(left);
    if (left - size > 0 && left - size < SMALL_MIN) {
        size /= 2;
    }
    return size;
}

static struct envelope *envelope_of(size_t size) {
    struct envelope *envelope = size < LARGE_MIN ? &small[size - SMALL_MIN] : &large[log_of(size)];
    return envelope->reply != NULL || make(envelope, size) ? envelope : NULL;
}

/* Everything that can fail comes before the first byte is sent. */
static bool has_envelopes(size_t left) {
    while (left > 0) {
        size_t size = next_size(left);
        if (envelope_of(size) == NULL) {
            return false;
        }
        left -= size;
    }
    return true;
}

static void send(struct host_context *ctx, struct bytes reply) {
    while (reply.size > 0) {
        size_t size = next_size(reply.size);
        struct envelope *envelope = envelope_of(size);
        memcpy(envelope->at, reply.at, size);
        host_ReplyWithCallReply(ctx, envelope->reply);
        reply = (struct bytes){.at = reply.at + size, .size = reply.size - size};
    }
}

bool host_raw_reply(struct host_context *ctx, struct bytes reply) {
    if (state == RAW_IMPOSSIBLE || state == RAW_UNKNOWN || reply.size < HOST_RAW_MIN) {
        return false;
    }
    if (!has_envelopes(reply.size)) {
        state = RAW_IMPOSSIBLE;
        return false;
    }
    send(ctx, reply);
    return true;
}

/* ---- the probe ---- */

/* Two envelopes. */
static const char probe[] = "*3\r\n:7\r\n$-1\r\n$72\r\n"
                            "012345678901234567890123456789012345"
                            "678901234567890123456789012345678901\r\n";

bool host_raw_answer_probe(struct host_context *ctx) {
    if (state != RAW_PROBING) {
        return false;
    }
    if (!host_raw_reply(ctx, (struct bytes){.at = probe, .size = sizeof probe - 1})) {
        host_ReplyWithNull(ctx);
    }
    return true;
}

void host_raw_probe(struct host_context *ctx, const char *command) {
    size_t size = 0;
    state = RAW_PROBING;
    struct host_call_reply *reply = host_Call(ctx, command, "c", "");
    const char *at = reply != NULL ? host_CallReplyProto(reply, &size) : NULL;
    bool is_possible = at != NULL && size == sizeof probe - 1 && memcmp(at, probe, size) == 0;
    state = is_possible ? RAW_POSSIBLE : RAW_IMPOSSIBLE;
    if (reply != NULL) {
        host_FreeCallReply(reply);
    }
}

static void discard(struct envelope *envelope) {
    if (envelope->reply != NULL) {
        host_FreeCallReply(envelope->reply);
    }
}

void host_raw_deinit(void) {
    for (unsigned i = 0; i < LARGE_MIN - SMALL_MIN; i++) {
        discard(&small[i]);
    }
    for (unsigned i = 0; i <= LARGE_LOG_MAX; i++) {
        discard(&large[i]);
    }
}
