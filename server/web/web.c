/* Requests of the page: who asks, and what for. See web.h. */
#include "server/web/web.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#define ZLIB_CONST
#include <zlib.h>

#include "codec/list.h"
#include "server/http/http.h"
#include "server/web/web_query.h"

/* ---- fewer bytes, for those who take gzip: JSON while it is answered, and what never changes at the start ---- */

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

static void web_gzip_destroy(struct web_gzip *gzip) {
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

static bool web_gzip_is_taken(const struct http_exchange *exchange) {
    const char *accepted = http_request_header(exchange, "Accept-Encoding");
    return accepted != NULL && http_request_quality(accepted, "gzip") > 0;
}

/* The text compressed, which stays there for the next one; empty: it is not compressed. */
static struct bytes web_gzip_text(struct web *web, const struct http_exchange *exchange,
                                  struct web_text *text) {
    struct bytes none = {.at = NULL};
    if (text->body.size < SIZE_MIN || text->body.size > SIZE_MAX_AT_ONCE || text->body.is_broken ||
        !web_gzip_is_taken(exchange)) {
        return none;
    }
    if (!text->was_packed) {
        web->gzip = web->gzip != NULL ? web->gzip : web_gzip_create(LEVEL_AT_ONCE);
        text->was_packed = true;
        if (web->gzip != NULL &&
            !web_gzip_put(web->gzip, buffer_bytes(&text->body), &text->packed)) {
            buffer_deinit(&text->packed);
        }
    }
    return buffer_bytes(&text->packed);
}

static void web_gzip_file(struct bytes file, struct buffer *out) {
    struct web_gzip *gzip = web_gzip_create(LEVEL_AT_START);
    buffer_init(out, 0);
    if (gzip != NULL && file.size >= SIZE_MIN && !web_gzip_put(gzip, file, out)) {
        buffer_deinit(out);
        buffer_init(out, 0);
    }
    web_gzip_destroy(gzip);
}

#define JSON_TYPE    "application/json; charset=utf-8"
#define PROBLEM_TYPE "application/problem+json"

/* ---- replies ---- */

/* Browsers that know it refuse to make elements of text, whatever a script does. */
#define NO_HTML "require-trusted-types-for 'script'; trusted-types 'none'"

#define POLICY_BEGIN     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
#define POLICY_END       "; connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
#define POLICY_OF_PAGE   "form-action 'self'; frame-ancestors 'none'; " NO_HTML
#define POLICY_OF_FRAMES "form-action 'none'; frame-ancestors *; " NO_HTML

#define HEADERS_OF_ALL                                                                             \
    {"Referrer-Policy", "no-referrer"}, {"Cross-Origin-Resource-Policy", "same-origin"}, {         \
        "Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=()"               \
    }
#define HEADERS_WITHOUT_FRAMES                                                                     \
    {"X-Frame-Options", "DENY"}, {                                                                 \
        "Cross-Origin-Opener-Policy", "same-origin"                                                \
    }

void web_add_headers(struct http_exchange *exchange) {
    static const struct http_header common[] = {
        {"Content-Security-Policy", POLICY_BEGIN POLICY_END POLICY_OF_PAGE},
        HEADERS_OF_ALL,
        HEADERS_WITHOUT_FRAMES,
        {.name = NULL},
    };
    struct http_reply *reply = &exchange->reply;
    const struct web_request *request = exchange->own;
    reply->common = common;
    if (request != NULL && (request->web->origin_count > 0 || request->web->is_open)) {
        http_reply_header(reply, "Vary", "Origin");
    }
    if (request != NULL && request->origin != NULL) {
        http_reply_header(reply, "Access-Control-Allow-Origin", request->origin);
        http_reply_header(reply, "Access-Control-Expose-Headers",
                          "Retry-After, Idempotent-Replayed");
    }
}

/* Errors of the listener are problem documents here, too. text ends with a newline. */
static void web_print_refusal(struct http_exchange *exchange, const char *text) {
    struct http_reply *reply = &exchange->reply;
    struct json json = web_json(&reply->body);
    size_t size = strlen(text);
    const struct bytes detail = {.at = text, .size = size > 0 ? size - 1 : 0};
    const struct bytes none = {.at = NULL};
    web_query_put_problem(&json, reply->status, detail, none, -1);
    reply->content_type = PROBLEM_TYPE;
    reply->header_count = 0;
    reply->is_kept = false;
    web_add_headers(exchange);
}

void web_answer_error(struct http_exchange *exchange, struct bytes problem) {
    struct http_reply *reply = &exchange->reply;
    buffer_clear(&reply->body);
    buffer_append(&reply->body, problem.at, problem.size);
    reply->content_type = PROBLEM_TYPE;
    reply->header_count = 0;
    web_add_headers(exchange);
    http_exchange_ready(exchange);
}

static void web_begin_answer(struct http_exchange *exchange, unsigned status) {
    struct http_reply *reply = &exchange->reply;
    const struct web_request *request = exchange->own;
    reply->status = status;
    reply->content_type = status < 400 ? JSON_TYPE : PROBLEM_TYPE;
    reply->header_count = 0;
    web_add_headers(exchange);
    if (request->cookie[0] != '\0') {
        http_reply_header(reply, "Set-Cookie", request->cookie);
    }
}

void web_answer_text(struct web_request *request, struct web_text *text) {
    struct http_exchange *exchange = request->exchange;
    struct http_reply *reply = &exchange->reply;
    web_begin_answer(exchange, 200);
    if (text->is_public) {
        /* What anybody may read, caches between may keep for a moment, and ask then whether it is another one. */
        const char *known = http_request_header(exchange, "If-None-Match");
        snprintf(request->tag, sizeof request->tag, "W/\"%016llx\"",
                 (unsigned long long)XXH3_64bits(text->body.at, text->body.size));
        reply->is_kept = true;
        http_reply_header(reply, "Cache-Control", "public, max-age=1");
        http_reply_header(reply, "Vary", "Authorization, Cookie, Accept-Encoding");
        http_reply_header(reply, "ETag", request->tag);
        if (known != NULL && strstr(known, request->tag) != NULL) {
            reply->status = 304;
            reply->fixed = BYTES("");
        }
    }
    struct bytes packed = web_gzip_text(request->web, exchange, text);
    struct bytes body = packed.size > 0 ? packed : buffer_bytes(&text->body);
    if (packed.size > 0) {
        http_reply_header(reply, "Content-Encoding", "gzip");
    }
    if (text->is_for_one && packed.size == 0) {
        struct buffer empty = reply->body;
        reply->body = text->body;
        text->body = empty;
    } else if (reply->fixed.at == NULL) {
        buffer_append(&reply->body, body.at, body.size);
    }
    http_exchange_ready(exchange);
}

void web_answer(struct http_exchange *exchange, struct web_query *query) {
    struct http_reply *reply = &exchange->reply;
    struct web_request *request = exchange->own;
    bool is_read = query->route != NULL && !query->route->writes;
    if (is_read && query->status == 200 && !query->out.is_broken) {
        struct web_text text = {.body = query->out, .is_for_one = true};
        text.is_public = query->user.is_public && !query->route->is_for_all;
        web_answer_text(request, &text);
        query->out = text.body;
        buffer_deinit(&text.packed);
        return;
    }
    struct buffer body = reply->body;
    web_begin_answer(exchange, query->status);
    unsigned repeated = query->write.has_ids ? web_write_count_repeated(query) : 0;
    if (repeated > 0 && repeated == query->write.result_count) {
        http_reply_header(reply, "Idempotent-Replayed", "true");
    }
    reply->retry_s = (query->status == 503 || query->status == 429) && query->retry_s > 0
                         ? query->retry_s
                         : reply->retry_s;
    reply->body = query->out;
    query->out = body;
    if (exchange->body.at == NULL) { /* whose room is used again */
        struct buffer empty = exchange->body;
        exchange->body = query->write.body;
        query->write.body = empty;
    }
    http_exchange_ready(exchange);
}

/* ---- files: every view has an address of its own, and the page that it loads is the same ---- */

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

/* false: there is none at this address. */
static bool web_files_answer(struct http_exchange *exchange, const struct http_target *target) {
    static const char *const views[] = {"", "boards", "server", "login", "embed"};
    struct http_reply *reply = &exchange->reply;
    const char *accept = http_request_header(exchange, "Accept");
    bool is_view = false;
    if (web_files_begins_with(target, "api")) {
        return false;
    }
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        is_view |= web_files_begins_with(target, views[i]);
    }
    bool is_name = target->segment_count == 1 && target->segments[0].size > 0;
    const struct web_file *file = is_name ? web_files_find(target->segments[0]) : NULL;
    if (file == NULL && !is_view && (accept == NULL || strstr(accept, "text/html") == NULL)) {
        return false;
    }
    if (file == NULL) {
        file = web_files_find(BYTES("index.html"));
        /* Somebody has typed an address that does not exist: the page says so, with a way on. */
        reply->status = is_view ? reply->status : 404;
    }
    const char *known = http_request_header(exchange, "If-None-Match");
    reply->content_type = file->type;
    reply->is_kept = true;
    http_reply_header(reply, "Cache-Control", "no-cache");
    http_reply_header(reply, "ETag", file->tag);
    http_reply_header(reply, "Vary", "Accept-Encoding");
    /* They may show pictures, where the page itself may not; and other sites may show some of them in a frame. */
    const struct web *web = ((const struct web_request *)exchange->own)->web;
    static const struct http_header of_frames[] = {HEADERS_OF_ALL, {.name = NULL}};
    static const struct http_header of_page[] = {
        HEADERS_OF_ALL, HEADERS_WITHOUT_FRAMES, {.name = NULL}};
    bool may_frame = web_files_begins_with(target, "embed");
    reply->common = may_frame ? of_frames : of_page;
    http_reply_header(reply, "Content-Security-Policy",
                      may_frame ? web->policy_of_frames : web->policy);
    if (reply->status == 200 && known != NULL && strstr(known, file->tag) != NULL) {
        reply->status = 304;
        reply->fixed = BYTES("");
    } else {
        const struct buffer *packed = &web->files_packed[file - web_files];
        reply->fixed = (struct bytes){.at = (const char *)file->at, .size = file->size};
        if (packed->size > 0 && web_gzip_is_taken(exchange)) {
            reply->fixed = buffer_bytes(packed);
            http_reply_header(reply, "Content-Encoding", "gzip");
        }
    }
    http_exchange_ready(exchange);
    return true;
}

/* ---- the pace: see web_query.h ---- */

enum { EXPECTED_NS = 20000 }; /* until the answer says how long it took */

static void web_pace_refill(struct web *web) {
    enum { SECOND_MS = 1000, NS_PER_MS = 1000000, BURST_MS = 500 };
    static const int64_t shares[2] = {WEB_REQUEST_SHARE, WEB_VIEW_SHARE};
    int64_t now_ms = http_server_now(web->http);
    int64_t passed_ms = now_ms - web->budgets_at_ms;
    web->budgets_at_ms = now_ms;
    for (int i = 0; i < 2; i++) {
        int64_t most = (int64_t)BURST_MS * NS_PER_MS / shares[i];
        passed_ms = passed_ms < SECOND_MS ? passed_ms : SECOND_MS;
        web->budgets_ns[i] += passed_ms * NS_PER_MS / shares[i];
        web->budgets_ns[i] = web->budgets_ns[i] < most ? web->budgets_ns[i] : most;
    }
}

static void web_pace_ask(struct web *web, struct web_query *query) {
    web->budgets_ns[query->is_view] -= EXPECTED_NS;
    query->state = WEB_QUERY_ASKED;
    query->was_asked = true;
    http_server_ask(web->http, &query->ask);
}

void web_note_answer(struct web *web, const struct web_query *query) {
    web->budgets_ns[query->is_view] += EXPECTED_NS - (int64_t)query->elapsed_ns;
    web->answered_ns += query->elapsed_ns;
}

void web_put_again(struct web *web, struct web_query *query) {
    struct web_pending *pending = &web->pending[query->is_view];
    query->state = WEB_QUERY_WAITS;
    web->pending_count++;
    query->previous = pending->last;
    LIST_APPEND(pending->first, pending->last, query);
}

/* It waits no more. */
static void web_pace_leave(struct web *web, struct web_query *query) {
    struct web_pending *pending = &web->pending[query->is_view];
    if (pending->last == query) {
        pending->last = query->previous;
    }
    LIST_PART(pending->first, query);
    web->pending_count--;
}

void web_put(struct web *web, struct web_query *query) {
    struct web_pending *pending = &web->pending[query->is_view];
    web_pace_refill(web);
    if (pending->first == NULL && web->budgets_ns[query->is_view] > 0) {
        web_pace_ask(web, query);
        return;
    }
    /* What is begun is finished first: so under load some are, and not none. */
    if (query->round > 0 || pending->first == NULL) {
        query->state = WEB_QUERY_WAITS;
        web->pending_count++;
        LIST_JOIN(pending->first, query);
        pending->last = pending->last != NULL ? pending->last : query;
    } else {
        web_put_again(web, query);
    }
}

/* ---- what an address may do ---- */

static int64_t web_pace_refill_rate(const struct web_rates *rates, const struct web_rate *rate,
                                    int64_t now_ms) {
    int64_t passed_ms = now_ms - rate->at_ms;
    bool is_full = passed_ms > (rates->most - rate->left) / rates->per_ms;
    return is_full ? rates->most : rate->left + passed_ms * rates->per_ms;
}

/* Its place; one of those that has most left, where all are taken. */
static struct web_rate *web_pace_find_rate(struct web_rates *rates, uint64_t seed,
                                           struct auth_guard_address address, int64_t now_ms) {
    uint64_t mixed = (address.high ^ seed) * UINT64_C(0x9e3779b97f4a7c15) ^ address.low;
    mixed = (mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    struct web_rate *ways =
        &rates->at[(mixed >> 32) % (WEB_RATES_MAX / WEB_RATE_WAYS) * WEB_RATE_WAYS];
    struct web_rate *fullest = &ways[0];
    int64_t most = INT64_MIN;
    for (unsigned i = 0; i < WEB_RATE_WAYS; i++) {
        if (ways[i].at_ms != 0 && ways[i].address.high == address.high &&
            ways[i].address.low == address.low) {
            return &ways[i];
        }
        int64_t left =
            ways[i].at_ms == 0 ? INT64_MAX : web_pace_refill_rate(rates, &ways[i], now_ms);
        if (left > most) {
            fullest = &ways[i];
            most = left;
        }
    }
    *fullest = (struct web_rate){.address = address, .at_ms = now_ms, .left = rates->most};
    return fullest;
}

unsigned web_take_rate(struct web *web, struct web_rates *rates,
                       const struct http_exchange *exchange, int64_t units) {
    enum { MS_PER_S = 1000 };
    char text[HTTP_ADDRESS_MAX];
    char address[HTTP_ADDRESS_MAX + 4];
    if (rates->per_ms == 0 || http_exchange_is_local(exchange)) {
        return 0;
    }
    (void)http_exchange_peer(exchange, text);
    snprintf(address, sizeof address, strchr(text, ':') != NULL ? "[%s]:0" : "%s:0", text);
    int64_t now_ms = http_server_now(web->http) + 1; /* 0: a free place */
    struct web_rate *rate =
        web_pace_find_rate(rates, web->rate_seed, auth_guard_address(address), now_ms);
    rate->left = web_pace_refill_rate(rates, rate, now_ms);
    rate->at_ms = now_ms;
    if (rate->left < rates->least) {
        return (unsigned)((rates->least - rate->left - 1) / (MS_PER_S * rates->per_ms) + 1);
    }
    rate->left -= units; /* below 0: a request is taken as a whole, and the next ones wait */
    return 0;
}

bool web_take_memory(struct web *web, size_t size) {
    if (web->memory_size + size > WEB_MEMORY_MAX) {
        return false;
    }
    web->memory_size += size;
    return true;
}

void web_give_memory(struct web *web, size_t size) {
    CHECK(web->memory_size >= size);
    web->memory_size -= size;
}

void web_take_back(struct web *web, struct web_query *query) {
    web_pace_leave(web, query);
    query->state = WEB_QUERY_NEW;
}

/* ---- requests ---- */

void web_note_verdict(const struct web_query *query) {
    if (query->verdict == WEB_LOGIN_NEEDED && query->identity.kind == WEB_USER) {
        web_login_forget_known(query->web, query->address);
    }
}

static void web_request_is_answered(struct web_query *query) {
    struct web_request *request = query->owner;
    request->query = NULL;
    web_note_verdict(query);
    if (request->exchange->stage == HTTP_WAITS) {
        web_answer(request->exchange, query);
    }
    web_query_leave(query);
}

bool web_may_put(struct web_request *request) {
    if (request->web->pending_count >= WEB_PENDING_MAX) {
        http_exchange_refuse(request->exchange, 503, "too many requests wait for the server\n");
        return false;
    }
    return true;
}

void web_run(struct web_request *request, struct web_query *query) {
    struct web *web = request->web;
    if (query->route->writes) {
        query->is_counted = true;
        atomic_fetch_add(&web->write_count, 1);
        if (atomic_load(&web->is_draining)) {
            web_query_leave(query);
            http_exchange_refuse(request->exchange, 503, "the server ends: this was not done\n");
            return;
        }
    }
    if (!web_may_put(request)) {
        web_query_leave(query);
        return;
    }
    request->query = query;
    query->owner = request;
    query->done = web_request_is_answered;
    http_exchange_wait(request->exchange, WEB_LIMIT_MS);
    web_query_run(query);
}

/* "abc", or abc: an id of a result. The exchange has the header as long as it lives, which is long enough: words are
 * read by the engine also behind that, so the query has a copy. */
static bool web_take_key(const struct http_exchange *exchange, struct web_query *query) {
    const char *header = http_request_header(exchange, "Idempotency-Key");
    if (header == NULL) {
        return true;
    }
    struct bytes key = bytes_from_text(header);
    if (key.size >= 2 && key.at[0] == '"' && key.at[key.size - 1] == '"') {
        key = (struct bytes){.at = key.at + 1, .size = key.size - 2};
    }
    if (key.size == 0 || key.size > sizeof query->write.id_text) {
        web_query_error(query, 422, "Idempotency-Key has 1 to %zu bytes",
                        sizeof query->write.id_text);
        return false;
    }
    memcpy(query->write.id_text, key.at, key.size);
    query->write.id = (struct bytes){.at = query->write.id_text, .size = key.size};
    return true;
}

/* What the request writes becomes the query's. false: the error was written. */
static bool web_take_body(struct web_request *request, struct web_query *query) {
    struct http_exchange *exchange = request->exchange;
    if (!query->route->writes) {
        return true;
    }
    if (query->route->read != NULL) {
        query->write.body = exchange->body;
        buffer_init(&exchange->body, exchange->body.size_max);
        if (!web_take_key(exchange, query) || !query->route->read(query)) {
            return false;
        }
    }
    unsigned count = query->write.weight > 0 ? query->write.weight : 1;
    struct web *web = request->web;
    unsigned retry_s =
        web_take_rate(web, &web->result_rates, exchange, (int64_t)WEB_RESULT_UNITS * count);
    if (retry_s > 0) {
        web_query_error(query, 429,
                        "this address has written too many results: see web-write-rate");
        exchange->reply.retry_s = retry_s;
        return false;
    }
    if (query->identity.kind == WEB_USER) {
        web_write_check_tickets(query);
    }
    return true;
}

void web_run_as(struct web_request *request, const struct web_identity *identity) {
    struct web *web = request->web;
    struct http_exchange *exchange = request->exchange;
    char address[HTTP_ADDRESS_MAX];
    struct web_identity who = *identity;
    who.is_exposed = !http_exchange_peer(exchange, address) && !http_server_is_secure(web->http);
    bool may_be_kept =
        !request->is_alone && !request->wants_stream && exchange->method <= HTTP_HEAD;
    if (may_be_kept && web_kept_answer(request, &who)) {
        return;
    }
    struct web_query *query = web_query_create(web);
    if (query == NULL) {
        http_exchange_refuse(exchange, 503, "out of memory\n");
        return;
    }
    query->identity = who;
    query->route = request->operation != NULL ? request->operation->route : NULL;
    query->answer = request->answer;
    memcpy(query->address, address, sizeof address);
    if (!web_query_parse(query, exchange->method, exchange->target) ||
        !web_take_body(request, query)) {
        web_answer(exchange, query);
        web_query_leave(query);
    } else if (request->wants_stream) {
        web_views_add(web, request, query);
    } else if (may_be_kept && query->route->is_kept && query->since.at == NULL) {
        web_kept_run(request, query);
    } else {
        web_run(request, query);
    }
}

static bool web_is_path(const struct http_target *target, unsigned from, const char *word) {
    return target->segment_count > from &&
           bytes_equal(target->segments[from], bytes_from_text(word));
}

/* Pages of these sites may ask. NULL: it is of none of them. */
static const char *web_find_origin(const struct web *web, const struct http_exchange *exchange) {
    const char *origin = http_request_header(exchange, "Origin");
    for (unsigned i = 0; origin != NULL && i < web->origin_count; i++) {
        if (bytes_equal_ignoring_case(bytes_from_text(origin), web->origins[i])) {
            return origin;
        }
    }
    bool asks_for_all =
        exchange->method <= HTTP_HEAD && http_request_header(exchange, "Authorization") == NULL;
    /* A browser may ask first whether a page may read, without a header of its own. */
    const char *method = http_request_header(exchange, "Access-Control-Request-Method");
    bool asks_to_read = exchange->method == HTTP_OPTIONS && method != NULL &&
                        (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0);
    return web->is_open && origin != NULL && (asks_for_all || asks_to_read) ? "*" : NULL;
}

/* A page of another site, or of another port or name of this one, may neither read nor hold connections. */
static bool web_is_of_other_site(const struct http_exchange *exchange) {
    const char *site = http_request_header(exchange, "Sec-Fetch-Site");
    const char *mode = http_request_header(exchange, "Sec-Fetch-Mode");
    const char *origin = http_request_header(exchange, "Origin");
    const char *host = http_request_header(exchange, "Host");
    bool is_navigation =
        exchange->method <= HTTP_HEAD && mode != NULL && strcmp(mode, "navigate") == 0;
    bool is_own = site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
    if (!is_own && !is_navigation) {
        return true;
    }
    if (origin == NULL) {
        return false;
    }
    const char *at = strstr(origin, "://");
    return at == NULL || host == NULL || strcasecmp(at + 3, host) != 0;
}

/* What a browser asks first, before a page of another site may write. */
static void web_answer_preflight(struct web_request *request, unsigned methods) {
    struct http_exchange *exchange = request->exchange;
    struct http_reply *reply = &exchange->reply;
    bool is_for_all = request->origin != NULL && strcmp(request->origin, "*") == 0;
    if (request->origin == NULL ||
        http_request_header(exchange, "Access-Control-Request-Method") == NULL) {
        reply->allowed = methods;
        http_exchange_refuse(exchange, 405, "only pages of other sites ask for OPTIONS\n");
        return;
    }
    reply->status = 204;
    reply->content_type = NULL;
    web_add_headers(exchange);
    if (is_for_all) {
        methods &= 1U << HTTP_GET | 1U << HTTP_HEAD;
    }
    http_reply_print_methods(methods, request->methods);
    http_reply_header(reply, "Access-Control-Allow-Methods", request->methods);
    if (!is_for_all) {
        http_reply_header(reply, "Access-Control-Allow-Headers",
                          "Authorization, Content-Type, Idempotency-Key");
    }
    http_reply_header(reply, "Access-Control-Max-Age", "600");
    http_exchange_ready(exchange);
}

/* Does a row of the table name it? Behind a colon a word has a range. */
static bool web_takes_parameter(const struct web_operation *operation, struct bytes name) {
    struct bytes words = bytes_from_text(operation->parameters);
    for (struct bytes word = bytes_take_word(&words); word.size > 0;
         word = bytes_take_word(&words)) {
        const char *colon = memchr(word.at, ':', word.size);
        word.size = colon != NULL ? (size_t)(colon - word.at) : word.size;
        if (bytes_equal(word, name)) {
            return true;
        }
    }
    return false;
}

/* Where all that a write says is in its address, refuse what else it says: a ban whose SHADOW nobody reads is another
 * one. false: it says nothing else. */
static bool web_refuse_unread(struct http_exchange *exchange, const struct http_target *target,
                              const struct web_operation *operation) {
    if (operation->body != NULL || exchange->method == HTTP_POST) {
        return false;
    }
    if (exchange->body.size > 0) {
        http_exchange_refuse(exchange, 400,
                             "this path takes no body: its words are in the address\n");
        return true;
    }
    for (unsigned i = 0; i < target->parameter_count; i++) {
        struct bytes name = target->parameters[i].name;
        if (!web_takes_parameter(operation, name)) {
            http_exchange_refuse(exchange, 400, "%.*s: there is no such word of this path\n",
                                 bytes_shown_size(name, 64), name.at);
            return true;
        }
    }
    return false;
}

/* Refuse a write that may not be. false: it may. Whoever writes names a user in this request. Without one it is the
 * default user, if that needs no password, as with RESP; but no browser writes as it, whatever page it shows: browsers
 * send these headers by themselves. */
static bool web_refuse_write(struct web_request *request, const struct http_target *target,
                             const struct web_operation *operation) {
    static const char *const names[] = {"Origin", "Cookie", "Referer", "Sec-Fetch-Site"};
    struct http_exchange *exchange = request->exchange;
    bool is_by_browser = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        is_by_browser |= http_request_header(exchange, names[i]) != NULL;
    }
    const char *type = http_request_header(exchange, "Content-Type");
    size_t size = type != NULL ? strcspn(type, "; ") : 0;
    bool is_json = type != NULL && size == strlen("application/json") &&
                   strncasecmp(type, "application/json", size) == 0;
    if (!request->web->settings->web_write) {
        http_exchange_refuse(exchange, 403, "this server takes no writes here: see web-write\n");
    } else if (!is_json && (exchange->method == HTTP_POST || operation->body != NULL)) {
        http_exchange_refuse(exchange, 415, "a body has the Content-Type application/json\n");
    } else if (is_by_browser && http_request_header(exchange, "Authorization") == NULL) {
        exchange->reply.is_login_wanted = request->origin == NULL;
        http_exchange_refuse(exchange, 401,
                             "a browser writes as a user that the header Authorization names\n");
    } else {
        return web_refuse_unread(exchange, target, operation);
    }
    return true;
}

/* Whose request is it? Run it as that user's: by a stream's key, a header, or a login, which does not write. */
static void web_find_user(struct web *web, struct web_request *request,
                          const struct http_target *target) {
    struct http_exchange *exchange = request->exchange;
    struct web_identity identity = {.kind = WEB_ANYBODY};
    struct bytes key = http_request_parameter(target, "key");
    if (request->wants_stream && key.at != NULL) {
        web_login_by_key(request, key);
        return;
    }
    if (http_request_header(exchange, "Authorization") != NULL) {
        web_login_by_header(request);
        return;
    }
    if (exchange->method > HTTP_HEAD || request->origin != NULL) {
        identity.is_local = request->origin == NULL && http_exchange_is_local(exchange);
    } else {
        web_login_identify(web, request, &identity);
    }
    web_run_as(request, &identity);
}

static void web_handle_api(struct web *web, struct web_request *request,
                           const struct http_target *target) {
    struct http_exchange *exchange = request->exchange;
    bool is_log_in = target->segment_count == 3 && web_is_path(target, 2, "login");
    bool is_log_out = target->segment_count == 3 && web_is_path(target, 2, "logout");
    bool writes = exchange->method > HTTP_HEAD;
    const struct web_operation *operation = web_openapi_find(exchange->method, target);
    request->operation = operation;
    request->answer = operation != NULL ? web->answers[operation - web_operations] : NULL;
    unsigned methods = operation == NULL ? web_openapi_find_methods(target) : 0;
    if (web_is_of_other_site(exchange)) {
        request->origin = web_find_origin(web, exchange);
        if (request->origin == NULL) {
            http_exchange_refuse(exchange, 403, "not for pages of other sites\n");
            return;
        }
    }
    if (exchange->method == HTTP_OPTIONS && methods > 0) {
        web_answer_preflight(request, methods);
        return;
    }
    if (methods > 0) {
        exchange->reply.allowed = methods;
        http_exchange_refuse(exchange, 405, "%s: docs/web.md lists what each path takes\n",
                             !writes ? "this path is only written to"
                             : methods == (1U << HTTP_GET | 1U << HTTP_HEAD)
                                 ? "this path is only read"
                                 : "this path takes other methods");
        return;
    }
    if (exchange->method == HTTP_POST && (is_log_in || is_log_out)) {
        request->wants_login = true;
        if (request->origin != NULL) {
            http_exchange_refuse(exchange, 403, "not for pages of other sites\n");
        } else if (is_log_in) {
            web_login_log_in(request);
        } else {
            web_login_log_out(web, request);
        }
        return;
    }
    if (writes && target->segment_count == 3 && web_is_path(target, 2, "players")) {
        web_login_make_guest(request);
        return;
    }
    if (writes && operation == NULL) {
        http_exchange_refuse(exchange, 404,
                             "there is no such path: /api/v1/openapi.json lists all\n");
        return;
    }
    bool makes_key = operation != NULL && operation->route == &web_route_stream_key;
    if (makes_key && http_request_header(exchange, "Authorization") == NULL) {
        exchange->reply.is_login_wanted = request->origin == NULL;
        http_exchange_refuse(exchange, 401,
                             "a key of a stream is for the user whom the header Authorization "
                             "names\n");
        return;
    }
    if (writes && !makes_key && web_refuse_write(request, target, operation)) {
        return;
    }
    request->wants_stream = operation != NULL && operation->is_stream;
    web_find_user(web, request, target);
}

static void web_handle(void *context, struct http_exchange *exchange) {
    struct web *web = context;
    struct http_target target;
    char text[HTTP_CONNECTION_SIZE]; /* no line of a request is as long */
    struct web_request *request = web->spare_requests;
    size_t size = strlen(exchange->target);
    CHECK(size < sizeof text);
    if (request != NULL) {
        web->spare_requests = request->next;
        web->spare_request_count--;
    } else if ((request = memory_allocate(sizeof *request)) == NULL) {
        http_exchange_refuse(exchange, 503, "out of memory\n");
        return;
    }
    *request = (struct web_request){.web = web, .exchange = exchange};
    exchange->own = request;
    memcpy(text, exchange->target, size + 1);
    const char *wrong = http_request_parse_target(text, &target);
    bool is_of_api = wrong == NULL && web_is_path(&target, 0, "api");
    unsigned version = is_of_api && web_is_path(&target, 1, "v1"); /* /api/openapi.json, too */
    if (wrong != NULL) {
        http_exchange_refuse(exchange, 400, "%s\n", wrong);
    } else if (is_of_api && target.segment_count == version + 2 && exchange->method <= HTTP_HEAD &&
               web_is_path(&target, version + 1, "openapi.json")) {
        exchange->reply.content_type = JSON_TYPE;
        web_add_headers(exchange);
        exchange->reply.fixed = buffer_bytes(&web->openapi);
        if (web->openapi_packed.size > 0 && web_gzip_is_taken(exchange)) {
            exchange->reply.fixed = buffer_bytes(&web->openapi_packed);
            http_reply_header(&exchange->reply, "Content-Encoding", "gzip");
        }
        http_exchange_ready(exchange);
    } else if (version > 0) {
        web_handle_api(web, request, &target);
    } else if (exchange->method > HTTP_HEAD) {
        exchange->reply.allowed = 1U << HTTP_GET | 1U << HTTP_HEAD;
        http_exchange_refuse(exchange, 405, "only paths of the API are written to\n");
    } else if (!web_files_answer(exchange, &target)) {
        http_exchange_refuse(exchange, 404, "there is no such page\n");
    }
}

static void web_leave(void *context, struct http_exchange *exchange) {
    struct web *web = context;
    struct web_request *request = exchange->own;
    if (request == NULL) {
        return;
    }
    http_ask_leave_login(request->login);
    if (request->query != NULL) {
        web_query_leave(request->query);
    }
    web_views_leave(web, request);
    web_kept_leave(request);
    if (web->spare_request_count < WEB_SPARE_MAX) {
        request->next = web->spare_requests;
        web->spare_requests = request;
        web->spare_request_count++;
    } else {
        memory_free(request);
    }
}

static void web_step(void *context, int64_t now_ms) {
    struct web *web = context;
    /* Ask what waits, as far as it may be asked now. */
    web_pace_refill(web);
    for (int i = 0; i < 2; i++) {
        while (web->pending[i].first != NULL && web->budgets_ns[i] > 0) {
            struct web_query *query = web->pending[i].first;
            web_pace_leave(web, query);
            web_pace_ask(web, query);
        }
    }
    web_views_step(web, now_ms);
    web_kept_step(web);
    web_figures_step_history(web, now_ms);
}

/* ---- beginning and end ---- */

static void web_drop(void *context, struct ask *ask) {
    struct web *web = context;
    if (http_ask_drop_login(ask) || web_kept_drop(web, ask)) {
        return;
    }
    struct web_query *query = (struct web_query *)ask;
    if (query == web->history.query) {
        return;
    }
    web_query_destroy(query);
}

/* On the HTTP thread: every exchange is gone. */
static void web_end(void *context) {
    struct web *web = context;
    web_views_end(web);
    for (int i = 0; i < 2; i++) {
        while (web->pending[i].first != NULL) {
            struct web_query *query = web->pending[i].first;
            web_take_back(web, query);
            if (query != web->history.query) {
                web_query_destroy(query);
            }
        }
    }
}

/* "user:* name country" */
static bool web_read_data(struct web *web, const char *text, char *error) {
    while (text != NULL && *(text += strspn(text, " ")) != '\0') {
        struct bytes word = {.at = text, .size = strcspn(text, " ")};
        text += word.size;
        if (web->data.pattern.at == NULL) {
            web->data.pattern = word;
        } else if (web->data.count == WEB_FIELDS_MAX) {
            snprintf(error, HTTP_ERROR_MAX, "web-data: at most %d fields", WEB_FIELDS_MAX);
            return false;
        } else {
            web->data.fields[web->data.count++] = word;
        }
    }
    unsigned stars = 0;
    for (size_t i = 0; i < web->data.pattern.size; i++) {
        stars += web->data.pattern.at[i] == '*';
    }
    if (web->data.pattern.at != NULL && (stars != 1 || web->data.count == 0)) {
        snprintf(error, HTTP_ERROR_MAX,
                 "web-data: a pattern with one * for the member, and at least one field, like "
                 "\"user:* name\"");
        return false;
    }
    return true;
}

static void web_print_policy(const struct web *web, const char *rest, char *out) {
    int size = snprintf(out, WEB_POLICY_MAX, POLICY_BEGIN);
    for (unsigned i = 0; i < web->avatars.origin_count; i++) {
        struct bytes origin = web->avatars.origins[i];
        size += snprintf(out + size, WEB_POLICY_MAX - (size_t)size, " %.*s", (int)origin.size,
                         origin.at);
    }
    snprintf(out + size, WEB_POLICY_MAX - (size_t)size, POLICY_END "%s", rest);
}

/* "https://cdn.example.com:8443": nothing that ends a part of the policy. */
static bool web_is_origin(struct bytes word) {
    enum { ORIGIN_SIZE_MAX = 150 };
    struct bytes host = word;
    size_t scheme = word.size > 8 && memcmp(word.at, "https://", 8) == 0  ? 8
                    : word.size > 7 && memcmp(word.at, "http://", 7) == 0 ? 7
                                                                          : 0;
    host.at += scheme;
    host.size -= scheme;
    bool is_right = scheme > 0 && word.size <= ORIGIN_SIZE_MAX;
    for (size_t i = 0; i < host.size; i++) {
        char byte = bytes_lower(host.at[i]);
        is_right &= (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
                    strchr(".-:", byte) != NULL;
    }
    return is_right;
}

static bool web_read_origins(struct web *web, const char *text, char *error) {
    while (text != NULL && *(text += strspn(text, " ")) != '\0') {
        struct bytes word = {.at = text, .size = strcspn(text, " ")};
        text += word.size;
        if (bytes_equal(word, BYTES("*"))) {
            web->is_open = true;
            continue;
        }
        if (web->origin_count == WEB_ORIGINS_MAX || !web_is_origin(word)) {
            snprintf(error, HTTP_ERROR_MAX,
                     "web-allow-origin: at most %d origins, like \"https://game.example.com\"; * "
                     "for reading alone",
                     WEB_ORIGINS_MAX);
            return false;
        }
        web->origins[web->origin_count++] = word;
    }
    return true;
}

/* "avatar https://cdn.example.com", behind web-data. */
static bool web_read_avatars(struct web *web, const char *text, char *error) {
    struct web_avatars *avatars = &web->avatars;
    bool is_fine = true;
    while (text != NULL && is_fine && *(text += strspn(text, " ")) != '\0') {
        struct bytes word = {.at = text, .size = strcspn(text, " ")};
        text += word.size;
        if (avatars->field.at == NULL) {
            avatars->field = word;
            is_fine = false;
            for (unsigned i = 0; i < web->data.count; i++) {
                is_fine |= bytes_equal(web->data.fields[i], word);
            }
        } else {
            is_fine = avatars->origin_count < WEB_ORIGINS_MAX && web_is_origin(word);
            avatars->origins[is_fine ? avatars->origin_count++ : 0] = word;
        }
    }
    if (!is_fine) {
        snprintf(error, HTTP_ERROR_MAX,
                 "web-avatars: a field of web-data, then at most %d origins, like \"avatar "
                 "https://cdn.example.com\"",
                 WEB_ORIGINS_MAX);
        return false;
    }
    web_print_policy(web, POLICY_OF_PAGE, web->policy);
    web_print_policy(web, POLICY_OF_FRAMES, web->policy_of_frames);
    return true;
}

static void web_free(struct web *web) {
    web_engine_deinit(&web->engine);
    web_login_deinit_sessions(&web->sessions);
    web_login_deinit_sessions(&web->stream_keys);
    buffer_deinit(&web->openapi);
    buffer_deinit(&web->openapi_packed);
    for (unsigned i = 0; i < WEB_FILES_MAX; i++) {
        buffer_deinit(&web->files_packed[i]);
    }
    web_gzip_destroy(web->gzip);
    web->spare_max = 0;
    web_query_free_spare(web);
    struct web_request *request;
    LIST_TAKE_EACH(web->spare_requests, request) {
        memory_free(request);
    }
    if (web->history.query != NULL) {
        web_query_destroy(web->history.query);
    }
    memory_free(web);
}

static struct web *web_create(struct server *server, char *error) {
    const struct settings *settings = &server->settings;
    struct web *web = memory_allocate_zeroed(sizeof *web);
    if (web == NULL) {
        snprintf(error, HTTP_ERROR_MAX, "web-port: out of memory");
        return NULL;
    }
    web->settings = settings;
    web->spare_max = WEB_SPARE_MAX;
    snprintf(error, HTTP_ERROR_MAX, "web-port: out of memory");
    if (!web_login_init_sessions(&web->sessions, settings->web_session_timeout_s * 1000) ||
        !web_login_init_sessions(&web->stream_keys, WEB_STREAM_KEY_S * 1000) ||
        !web_read_data(web, settings->web_data, error) ||
        !web_read_avatars(web, settings->web_avatars, error) ||
        !web_read_origins(web, settings->web_allow_origin, error) ||
        !web_engine_init(&web->engine, server, error)) {
        web_free(web);
        return NULL;
    }
    web_reply_read_schemas(web, web_operations, web_operation_count);
    struct json json = web_json(&web->openapi);
    web_openapi_put(&json);
    if (web->openapi.is_broken) {
        snprintf(error, HTTP_ERROR_MAX, "web-port: out of memory");
        web_free(web);
        return NULL;
    }
    web_gzip_file(buffer_bytes(&web->openapi), &web->openapi_packed);
    for (unsigned i = 0; web_files[i].name != NULL; i++) {
        CHECK(i < WEB_FILES_MAX);
        web_gzip_file(
            (struct bytes){.at = (const char *)web_files[i].at, .size = web_files[i].size},
            &web->files_packed[i]);
    }
    digest_random((char *)&web->rate_seed, sizeof web->rate_seed);
    web->result_rates.per_ms = settings->web_write_rate;
    web->result_rates.most = WEB_RESULTS_BURST_S * WEB_RESULT_UNITS * settings->web_write_rate;
    web->result_rates.least = 1;
    web->guest_rates.per_ms = settings->web_guests_per_hour;
    web->guest_rates.most = WEB_GUEST_UNITS * settings->web_guests_per_hour;
    web->guest_rates.least = WEB_GUEST_UNITS;
    web->handler = (struct http_handler){
        .context = web,
        .engine_context = &web->engine,
        .handle = web_handle,
        .leave = web_leave,
        .step = web_step,
        .step_ms = WEB_SAMPLE_MS / 10,
        .drop = web_drop,
        .end = web_end,
        .print_refusal = web_print_refusal,
    };
    return web;
}

struct web *web_start(int fd, uv_loop_t *engine_loop, struct server *server,
                      const char *certificate, const char *key, char *error) {
    const struct settings *settings = &server->settings;
    struct web *web = web_create(server, error);
    if (web == NULL) {
        close(fd);
        return NULL;
    }
    unsigned connections_max = (unsigned)settings->web_max_connections;
    const struct http_server_options options = {
        .handler = &web->handler,
        .place = &web->http,
        .connections_max = connections_max,
        .streams_max = connections_max * 3 / 4,
        .sending_max = WEB_SENDING_MAX,
        .address_connections_max = (unsigned)settings->web_max_connections_per_address,
        .address_setting = "web-max-connections-per-address",
        .proxies = settings->web_proxies.at,
        .proxy_count = settings->web_proxies.count,
        .hosts = settings->web_hosts != NULL ? settings->web_hosts : "",
        .hosts_setting = "web-hosts",
        .methods = 1U << HTTP_POST | 1U << HTTP_PUT | 1U << HTTP_PATCH | 1U << HTTP_DELETE |
                   1U << HTTP_OPTIONS,
        .body_max = settings->web_write ? WEB_BODY_MAX : 0,
        .bodies_max = WEB_BODIES_MAX,
        .certificate = certificate,
        .key = key,
    };
    if (http_server_start(fd, engine_loop, &options, error) == NULL) {
        web_free(web);
        return NULL;
    }
    web->engine.asks = http_server_asks(web->http);
    return web;
}

void web_release_answers(void *context) {
    struct web *web = context;
    web_engine_release_answers(&web->engine);
}

bool web_drain(void *context) {
    struct web *web = context;
    atomic_store(&web->is_draining, true);
    return atomic_load(&web->write_count) == 0;
}

void web_stop(struct web *web) {
    http_server_stop(web->http);
    struct web_query *held = web->engine.held_first;
    while (held != NULL) {
        struct web_query *next = held->next;
        web_drop(web, &held->ask);
        held = next;
    }
    web->engine.held_first = NULL;
    web_kept_end(web);
}

void web_destroy(struct web *web) {
    http_server_destroy(web->http);
    web_free(web);
}
