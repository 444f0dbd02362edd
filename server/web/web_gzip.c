/* Answers in fewer bytes, for those who take gzip: JSON while it is answered, and what never changes at the start. */
#define ZLIB_CONST
#include <zlib.h>

#include "server/http/http_header.h"
#include "server/web/web_parts.h"

enum {
    SIZE_MIN = 1024,            /* bytes: shorter ones fit into a packet or two as they are */
    SIZE_MAX_AT_ONCE = 1 << 20, /* longer ones would hold up the thread */
    LEVEL_AT_ONCE = 1,
    LEVEL_AT_START = 9,
    WINDOW_BITS = 15 + 16, /* + 16: with the head and the end of a gzip file */
    MEMORY_LEVEL = 8,
};

/* Kept, as it is a quarter of a megabyte to make anew. */
struct web_gzip {
    z_stream stream;
};

static void *web_gzip_allocate(void *context, unsigned count, unsigned size) {
    (void)context;
    return memory_allocate((size_t)count * size);
}

static void web_gzip_free(void *context, void *at) {
    (void)context;
    memory_free(at);
}

static struct web_gzip *web_gzip_create(int level) {
    struct web_gzip *gzip = memory_allocate_zeroed(sizeof *gzip);
    if (gzip == NULL) {
        return NULL;
    }
    gzip->stream = (z_stream){.zalloc = web_gzip_allocate, .zfree = web_gzip_free};
    if (deflateInit2(&gzip->stream, level, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        memory_free(gzip);
        return NULL;
    }
    return gzip;
}

void web_gzip_destroy(struct web_gzip *gzip) {
    if (gzip != NULL) {
        (void)deflateEnd(&gzip->stream);
        memory_free(gzip);
    }
}

/* Only what gets shorter is put. false: it did not, or there is no memory. */
static bool web_gzip_put(struct web_gzip *gzip, struct bytes text, struct buffer *out) {
    z_stream *stream = &gzip->stream;
    buffer_init(out, text.size);
    char *at = buffer_reserve(out, text.size);
    if (at == NULL || deflateReset(stream) != Z_OK) {
        return false;
    }
    stream->next_in = (const Bytef *)text.at;
    stream->avail_in = (unsigned)text.size;
    stream->next_out = (Bytef *)at;
    stream->avail_out = (unsigned)text.size;
    if (deflate(stream, Z_FINISH) != Z_STREAM_END) {
        return false;
    }
    buffer_commit(out, text.size - stream->avail_out);
    return true;
}

bool web_gzip_is_taken(const struct http_exchange *exchange) {
    const char *accepted = http_exchange_header(exchange, "Accept-Encoding");
    return accepted != NULL && http_header_quality(accepted, "gzip") > 0;
}

void web_gzip_answer(struct web *web, struct http_exchange *exchange) {
    struct http_reply *reply = &exchange->reply;
    struct buffer out;
    if (reply->body.size < SIZE_MIN || reply->body.size > SIZE_MAX_AT_ONCE ||
        reply->body.is_broken || !web_gzip_is_taken(exchange)) {
        return;
    }
    web->gzip = web->gzip != NULL ? web->gzip : web_gzip_create(LEVEL_AT_ONCE);
    if (web->gzip != NULL && web_gzip_put(web->gzip, buffer_bytes(&reply->body), &out)) {
        struct buffer body = reply->body;
        reply->body = out;
        out = body;
        http_reply_header(reply, "Content-Encoding", "gzip");
    }
    if (web->gzip != NULL) {
        buffer_deinit(&out);
    }
}

void web_gzip_file(struct bytes file, struct buffer *out) {
    struct web_gzip *gzip = web_gzip_create(LEVEL_AT_START);
    buffer_init(out, 0);
    if (gzip != NULL && file.size >= SIZE_MIN && !web_gzip_put(gzip, file, out)) {
        buffer_deinit(out);
        buffer_init(out, 0);
    }
    web_gzip_destroy(gzip);
}
