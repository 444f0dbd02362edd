/* Answers from the page's files. Every view has an address of its own, and the page that it loads is the same:
 * the browser's part reads the address. */
#include "server/web/web_files.h"

#include "server/web/web_parts.h"

void web_files_init(struct web *web) {
    for (unsigned i = 0; web_files[i].name != NULL; i++) {
        CHECK(i < WEB_FILES_MAX);
        web_gzip_file(
            (struct bytes){.at = (const char *)web_files[i].at, .size = web_files[i].size},
            &web->files_packed[i]);
    }
}

void web_files_deinit(struct web *web) {
    for (unsigned i = 0; i < WEB_FILES_MAX; i++) {
        buffer_deinit(&web->files_packed[i]);
    }
}

static const struct web_file *web_files_find(struct bytes name) {
    for (const struct web_file *file = web_files; file->name != NULL; file++) {
        if (bytes_equal(name, bytes_from_text(file->name))) {
            return file;
        }
    }
    return NULL;
}

static bool web_files_begins_with(const struct http_target *target, const char *word) {
    return bytes_equal(target->segments[0], bytes_from_text(word));
}

static bool web_files_is_view(const struct http_target *target) {
    return web_files_begins_with(target, "") || web_files_begins_with(target, "boards") ||
           web_files_begins_with(target, "server") || web_files_begins_with(target, "login") ||
           web_files_begins_with(target, "embed");
}

static const struct web_file *web_files_choose(const struct http_target *target) {
    if (web_files_begins_with(target, "api")) {
        return NULL;
    }
    if (target->segment_count == 1 && target->segments[0].size > 0) {
        const struct web_file *file = web_files_find(target->segments[0]);
        if (file != NULL) {
            return file;
        }
    }
    return web_files_is_view(target) ? web_files_find(BYTES("index.html")) : NULL;
}

/* Somebody has typed an address that does not exist: the page says so, with a way on. */
static bool web_files_is_typed(const struct http_exchange *exchange,
                               const struct http_target *target) {
    const char *accept = http_exchange_header(exchange, "Accept");
    return accept != NULL && strstr(accept, "text/html") != NULL &&
           !web_files_begins_with(target, "api");
}

bool web_files_answer(struct http_exchange *exchange, const struct http_target *target) {
    const struct web_file *file = web_files_choose(target);
    struct http_reply *reply = &exchange->reply;
    if (file == NULL && web_files_is_typed(exchange, target)) {
        file = web_files_find(BYTES("index.html"));
        reply->status = 404;
    }
    if (file == NULL) {
        return false;
    }
    const char *known = http_exchange_header(exchange, "If-None-Match");
    reply->content_type = file->type;
    reply->is_kept = true;
    http_reply_header(reply, "Cache-Control", "no-cache");
    http_reply_header(reply, "ETag", file->tag);
    http_reply_header(reply, "Vary", "Accept-Encoding");
    const struct web_request *request = exchange->own;
    web_add_file_headers(request->web, reply, web_files_begins_with(target, "embed"));
    if (reply->status == 200 && known != NULL && strstr(known, file->tag) != NULL) {
        reply->status = 304;
        reply->fixed = BYTES("");
    } else {
        const struct buffer *packed = &request->web->files_packed[file - web_files];
        reply->fixed = (struct bytes){.at = (const char *)file->at, .size = file->size};
        if (packed->size > 0 && web_gzip_is_taken(exchange)) {
            reply->fixed = buffer_bytes(packed);
            http_reply_header(reply, "Content-Encoding", "gzip");
        }
    }
    http_exchange_ready(exchange);
    return true;
}
