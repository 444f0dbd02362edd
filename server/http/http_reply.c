/* Replies: how they are filled in, and what the library sends of them. See http.h. */
#include "server/http/http.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec/list.h"
#include "codec/memory.h"

/* ---- filled in ---- */

const char *const http_method_names[HTTP_METHODS] = {"GET",   "HEAD",   "POST",   "PUT",
                                                     "PATCH", "DELETE", "OPTIONS"};

void http_reply_fill_block(struct http_exchange *exchange, unsigned status, const char *format,
                           va_list arguments) {
    char text[HTTP_ERROR_MAX];
    struct http_reply *reply = &exchange->reply;
    int size = vsnprintf(text, sizeof text, format, arguments);
    (void)size;
    buffer_clear(&reply->body);
    reply->fixed = (struct bytes){.at = NULL};
    reply->status = status;
    reply->content_type = HTTP_PLAIN_TEXT;
    const struct http_handler *handler = exchange->options->handler;
    if (handler->print_refusal != NULL) {
        handler->print_refusal(exchange, text);
    } else {
        buffer_append(&reply->body, text, strlen(text));
    }
}

void http_reply_fill(struct http_exchange *exchange, unsigned status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    http_reply_fill_block(exchange, status, format, arguments);
    va_end(arguments);
}

void http_reply_header(struct http_reply *reply, const char *name, const char *value) {
    CHECK(reply->header_count < HTTP_HEADERS_MAX);
    reply->headers[reply->header_count++] = (struct http_header){.name = name, .value = value};
}

void http_reply_print_methods(unsigned methods, char out[HTTP_METHODS_TEXT_MAX]) {
    size_t size = 0;
    out[0] = '\0';
    for (size_t i = 0; i < HTTP_METHODS; i++) {
        if ((methods >> i & 1) != 0) {
            size += (size_t)snprintf(out + size, HTTP_METHODS_TEXT_MAX - size, "%s%s",
                                     size > 0 ? ", " : "", http_method_names[i]);
        }
    }
}

/* ---- sent ---- */

void http_reply_add_headers(const struct http_exchange *exchange, struct MHD_Response *response) {
    const struct http_reply *reply = &exchange->reply;
    if (reply->content_type != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    }
    if (!reply->is_kept) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    }
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (reply->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        unsigned taken = exchange->options->methods | 1U << HTTP_GET | 1U << HTTP_HEAD;
        char allowed[HTTP_METHODS_TEXT_MAX];
        http_reply_print_methods(reply->allowed != 0 ? reply->allowed : taken, allowed);
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allowed);
    }
    if (reply->is_last) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    if (reply->status == MHD_HTTP_SERVICE_UNAVAILABLE || reply->retry_s > 0) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%u", reply->retry_s > 0 ? reply->retry_s : 1);
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    for (const struct http_header *each = reply->common; each != NULL && each->name != NULL;
         each++) {
        MHD_add_response_header(response, each->name, each->value);
    }
    for (unsigned i = 0; i < reply->header_count; i++) {
        MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    }
}

/* A reply of the library that is used again: copying its headers takes longer than all else that the library does for a
 * short one. Its headers are static, and its size fixed. */
enum { HTTP_SPARES_MAX = 256, HTTP_SPARE_SIZE_MAX = 4096 };
struct http_spare {
    struct http_spare *next; /* of the same slot */
    struct MHD_Response *response;
    const struct http_header *common;
    const char *content_type;
    bool is_kept;
    size_t size;
    char body[];
};

static void http_reply_destroy_spare(struct http_spare *spare) {
    MHD_destroy_response(spare->response);
    memory_free(spare);
}

/* One that fits, or a new one. NULL: this reply has headers of its own, or is long, or there is no memory. */
static struct http_spare *http_reply_find_spare(struct http_spares *spares,
                                                const struct http_exchange *exchange) {
    const struct http_reply *reply = &exchange->reply;
    size_t size = reply->body.size;
    bool is_plain = reply->header_count == 0 && reply->fixed.at == NULL && !reply->is_last &&
                    !reply->is_login_wanted && reply->retry_s == 0 &&
                    reply->status != MHD_HTTP_METHOD_NOT_ALLOWED &&
                    reply->status != MHD_HTTP_SERVICE_UNAVAILABLE;
    if (!is_plain || size == 0 || size > HTTP_SPARE_SIZE_MAX) {
        return NULL;
    }
    struct http_spare **at = &spares->slots[size % HTTP_SPARE_SLOTS];
    struct http_spare *spare;
    while ((spare = *at) != NULL) {
        if (spare->size == size && spare->common == reply->common &&
            spare->content_type == reply->content_type && spare->is_kept == reply->is_kept) {
            *at = spare->next;
            spares->count--;
            return spare;
        }
        at = &spare->next;
    }
    spare = memory_allocate(sizeof *spare + size);
    if (spare == NULL) {
        return NULL;
    }
    *spare = (struct http_spare){.common = reply->common,
                                 .content_type = reply->content_type,
                                 .is_kept = reply->is_kept,
                                 .size = size};
    spare->response = MHD_create_response_from_buffer(size, spare->body, MHD_RESPMEM_PERSISTENT);
    if (spare->response == NULL) {
        memory_free(spare);
        return NULL;
    }
    http_reply_add_headers(exchange, spare->response);
    return spare;
}

struct MHD_Response *http_reply_take_spare(struct http_spares *spares,
                                           struct http_exchange *exchange) {
    exchange->spare = http_reply_find_spare(spares, exchange);
    if (exchange->spare == NULL) {
        return NULL;
    }
    memcpy(exchange->spare->body, exchange->reply.body.at, exchange->reply.body.size);
    return exchange->spare->response;
}

/* Where there are enough, one of another slot goes, slot by slot. */
void http_reply_give_spare(struct http_spares *spares, struct http_spare *spare) {
    struct http_spare **slot = &spares->slots[spare->size % HTTP_SPARE_SLOTS];
    spare->next = *slot;
    *slot = spare;
    spares->count++;
    while (spares->count > HTTP_SPARES_MAX) {
        struct http_spare **from = &spares->slots[spares->next++ % HTTP_SPARE_SLOTS];
        struct http_spare *old = *from;
        if (old != NULL) {
            *from = old->next;
            spares->count--;
            http_reply_destroy_spare(old);
        }
    }
}

void http_reply_destroy_spares(struct http_spares *spares) {
    for (unsigned i = 0; i < HTTP_SPARE_SLOTS; i++) {
        struct http_spare *spare;
        LIST_TAKE_EACH(spares->slots[i], spare) {
            http_reply_destroy_spare(spare);
        }
    }
}
