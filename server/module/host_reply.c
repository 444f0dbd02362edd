/* Replies, in pieces. See host_reply.h.
 *
 * Invariant: between two replies a piece holds any text of its size. The host never reads it but to pass it on:
 * a reply is parsed only when its type or a value is asked for, or when it is freed, and neither is ever done. */
#include "server/module/host_reply.h"

#include <string.h>

#include "codec/check.h"

enum {
    /* "+\r\n"; every reply is longer. There is a small piece for each size from here on ... */
    SMALL_MIN = 3,
    SMALL_COUNT = 16,
    /* ... and large ones of 16, 32 ... bytes, to the size of the buffer of the host's clients. */
    LARGE_COUNT = 11,
    LARGE_MAX = SMALL_COUNT << (LARGE_COUNT - 1),
};

struct piece {
    struct host_call_reply *reply;
    char *text; /* of the reply, which is the host's, and nobody else's */
};
static struct piece small[SMALL_COUNT], large[LARGE_COUNT];

/* What LB.REPLY replies while the module calls it: a simple string, or text in pieces. */
static const char *called_string;
static const struct buffer *called_output;

int host_reply_run(struct host_context *ctx, struct host_string **argv, int argc) {
    (void)argv;
    (void)argc;
    if (called_string != NULL) {
        return host_ReplyWithSimpleString(ctx, called_string);
    }
    if (called_output == NULL) {
        return host_ReplyWithError(ctx, "ERR LB.REPLY is for the module itself");
    }
    host_reply(ctx, called_output);
    return HOST_OK;
}

static bool host_reply_make_piece(struct host_context *ctx, size_t size, struct piece *piece) {
    char string[LARGE_MAX];
    size_t text_size = 0;
    memset(string, '-', size - SMALL_MIN);
    string[size - SMALL_MIN] = '\0';
    called_string = string;
    piece->reply = host_Call(ctx, HOST_REPLY_COMMAND, "");
    called_string = NULL;
    if (piece->reply == NULL) {
        return false;
    }
    /* The host's function says const, for modules that only read. */
    piece->text = (char *)(uintptr_t)host_CallReplyProto(piece->reply, &text_size);
    return piece->text != NULL && text_size == size;
}

/* Does a reply in pieces arrive as it was written? */
static bool host_reply_try_pieces(struct host_context *ctx) {
    enum { NULLS = 4 * LARGE_MAX / 5 /* all large pieces, and one twice */ };
    struct buffer output;
    size_t text_size = 0;
    buffer_init(&output, 0);
    for (int i = 0; i < NULLS; i++) {
        buffer_append(&output, "$-1\r\n", 5);
    }
    called_output = &output;
    struct host_call_reply *reply = host_Call(ctx, HOST_REPLY_COMMAND, "");
    called_output = NULL;
    const char *text = reply != NULL ? host_CallReplyProto(reply, &text_size) : NULL;
    bool is_same = text != NULL && !output.is_broken && text_size == output.size &&
                   memcmp(text, output.at, text_size) == 0;
    if (reply != NULL) {
        host_FreeCallReply(reply);
    }
    buffer_deinit(&output);
    return is_same;
}

bool host_reply_init(struct host_context *ctx) {
    bool is_made = true;
    for (size_t i = 0; i < SMALL_COUNT && is_made; i++) {
        is_made = host_reply_make_piece(ctx, SMALL_MIN + i, &small[i]);
    }
    for (size_t i = 0; i < LARGE_COUNT && is_made; i++) {
        is_made = host_reply_make_piece(ctx, (size_t)SMALL_COUNT << i, &large[i]);
    }
    return is_made && host_reply_try_pieces(ctx);
}

/* Returns where the rest begins. */
static const char *host_reply_pass_on(struct host_context *ctx, const struct piece *piece,
                                      const char *at, size_t size) {
    memcpy(piece->text, at, size);
    host_ReplyWithCallReply(ctx, piece->reply);
    return at + size;
}

static void host_reply_text(struct host_context *ctx, const char *at, size_t size) {
    CHECK(size >= SMALL_MIN);
    size_t extra = (size - SMALL_MIN) % SMALL_COUNT;
    const char *end = at + size;
    at = host_reply_pass_on(ctx, &small[extra], at, SMALL_MIN + extra);
    for (size_t i = LARGE_COUNT; i-- > 0 && at < end;) {
        size_t piece_size = (size_t)SMALL_COUNT << i;
        while ((size_t)(end - at) >= piece_size) {
            at = host_reply_pass_on(ctx, &large[i], at, piece_size);
        }
    }
}

/* The host counts errors, so it must know of them. */
static void host_reply_error_line(struct host_context *ctx, const struct buffer *output) {
    enum { LINE_MAX = 1024 };
    char line[LINE_MAX];
    size_t size = output->size - 2 < LINE_MAX - 1 ? output->size - 2 : LINE_MAX - 1;
    memcpy(line, output->at, size);
    line[size] = '\0';
    host_ReplyWithError(ctx, line + 1);
}

void host_reply(struct host_context *ctx, const struct buffer *output) {
    if (output->is_broken) {
        host_ReplyWithError(ctx, "OOM out of memory");
    } else if (*output->at == '-') {
        host_reply_error_line(ctx, output);
    } else {
        host_reply_text(ctx, output->at, output->size);
    }
}
