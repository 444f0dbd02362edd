/* Answers: JSON, files, refusals; compressed for those who take that; and JSON that many get. See web_query.h.
 *
 * Those who ask the same with the same rights get the same text, until it is outdated.
 *
 *     1st request ---> engine ---> text, and what it was read from (struct reads)
 *     2nd, meanwhile, waits for it -------> the text, unless it is outdated and the engine had begun before
 *     3rd, behind it: not outdated, its time not over -------> the text, and nobody is asked
 *
 * What outdates a text is seen by its flag alone, with one load; the time limit is for what no flag tells. Where a
 * text was outdated while it was made, those who came late ask once more, together: so a board that changes faster
 * than it is read costs as many answers as the engine gives, and nobody waits for more than two of them.
 *
 * They are bounded in number and bytes, and none is kept for longer than WEB_KEPT_MS. */
#include <stddef.h>
#include <stdio.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#define ZLIB_CONST
#include <zlib.h>

#include "codec/list.h"
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

static void *web_answer_allocate(void *context, unsigned count, unsigned size) {
    (void)context;
    return memory_allocate((size_t)count * size);
}

static void web_answer_free_gzip(void *context, void *at) {
    (void)context;
    memory_free(at);
}

static struct web_gzip *web_answer_create_gzip(int level) {
    struct web_gzip *gzip = memory_allocate_zeroed(sizeof *gzip);
    if (gzip == NULL) {
        return NULL;
    }
    gzip->stream = (z_stream){.zalloc = web_answer_allocate, .zfree = web_answer_free_gzip};
    if (deflateInit2(&gzip->stream, level, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        memory_free(gzip);
        return NULL;
    }
    return gzip;
}

static void web_answer_destroy_gzip(struct web_gzip *gzip) {
    if (gzip != NULL) {
        (void)deflateEnd(&gzip->stream);
        memory_free(gzip);
    }
}

/* Only what gets shorter is put. false: it did not, or there is no memory. */
static bool web_answer_put_gzip(struct web_gzip *gzip, struct bytes text, struct buffer *out) {
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

static bool web_answer_takes_gzip(const struct http_exchange *exchange) {
    const char *accepted = http_request_header(exchange, "Accept-Encoding");
    return accepted != NULL && http_request_quality(accepted, "gzip") > 0;
}

/* The text compressed, which stays there for the next one; empty: it is not compressed. */
static struct bytes web_answer_gzip_text(struct web *web, const struct http_exchange *exchange,
                                         struct web_text *text) {
    struct bytes none = {.at = NULL};
    if (text->body.size < SIZE_MIN || text->body.size > SIZE_MAX_AT_ONCE || text->body.is_broken ||
        !web_answer_takes_gzip(exchange)) {
        return none;
    }
    if (!text->was_packed) {
        web->gzip = web->gzip != NULL ? web->gzip : web_answer_create_gzip(LEVEL_AT_ONCE);
        text->was_packed = true;
        if (web->gzip != NULL &&
            !web_answer_put_gzip(web->gzip, buffer_bytes(&text->body), &text->packed)) {
            buffer_deinit(&text->packed);
        }
    }
    return buffer_bytes(&text->packed);
}

static void web_answer_gzip_file(struct bytes file, struct buffer *out) {
    struct web_gzip *gzip = web_answer_create_gzip(LEVEL_AT_START);
    buffer_init(out, 0);
    if (gzip != NULL && file.size >= SIZE_MIN && !web_answer_put_gzip(gzip, file, out)) {
        buffer_deinit(out);
        buffer_init(out, 0);
    }
    web_answer_destroy_gzip(gzip);
}

/* ---- replies ---- */

#define JSON_TYPE    "application/json; charset=utf-8"
#define PROBLEM_TYPE "application/problem+json"

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

void web_answer_add_headers(struct http_exchange *exchange) {
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

void web_answer_print_refusal(struct http_exchange *exchange, const char *text) {
    struct http_reply *reply = &exchange->reply;
    struct json json = web_json(&reply->body);
    size_t size = strlen(text);
    const struct bytes detail = {.at = text, .size = size > 0 ? size - 1 : 0};
    const struct bytes none = {.at = NULL};
    web_query_put_problem(&json, reply->status, detail, none, -1);
    reply->content_type = PROBLEM_TYPE;
    reply->header_count = 0;
    reply->is_kept = false;
    web_answer_add_headers(exchange);
}

void web_answer_error(struct http_exchange *exchange, struct bytes problem) {
    struct http_reply *reply = &exchange->reply;
    buffer_clear(&reply->body);
    buffer_append(&reply->body, problem.at, problem.size);
    reply->content_type = PROBLEM_TYPE;
    reply->header_count = 0;
    web_answer_add_headers(exchange);
    http_exchange_ready(exchange);
}

static void web_answer_begin(struct http_exchange *exchange, unsigned status) {
    struct http_reply *reply = &exchange->reply;
    const struct web_request *request = exchange->own;
    reply->status = status;
    reply->content_type = status < 400 ? JSON_TYPE : PROBLEM_TYPE;
    reply->header_count = 0;
    web_answer_add_headers(exchange);
    if (request->cookie[0] != '\0') {
        http_reply_header(reply, "Set-Cookie", request->cookie);
    }
}

/* Reply a text of status 200. */
static void web_answer_text(struct web_request *request, struct web_text *text) {
    struct http_exchange *exchange = request->exchange;
    struct http_reply *reply = &exchange->reply;
    web_answer_begin(exchange, 200);
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
    struct bytes packed = web_answer_gzip_text(request->web, exchange, text);
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
    web_answer_begin(exchange, query->status);
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

/* ---- what never changes ---- */

static void web_answer_put_fixed(struct http_exchange *exchange, struct bytes text,
                                 const struct buffer *packed) {
    exchange->reply.fixed = text;
    if (packed->size > 0 && web_answer_takes_gzip(exchange)) {
        exchange->reply.fixed = buffer_bytes(packed);
        http_reply_header(&exchange->reply, "Content-Encoding", "gzip");
    }
}

void web_answer_document(struct http_exchange *exchange) {
    const struct web *web = ((const struct web_request *)exchange->own)->web;
    exchange->reply.content_type = JSON_TYPE;
    web_answer_add_headers(exchange);
    web_answer_put_fixed(exchange, buffer_bytes(&web->openapi), &web->openapi_packed);
    http_exchange_ready(exchange);
}

static const struct web_file *web_answer_find_file(struct bytes name) {
    for (const struct web_file *file = web_files; file->name != NULL; file++) {
        if (bytes_equal(name, bytes_from_text(file->name))) {
            return file;
        }
    }
    return NULL;
}

static bool web_answer_begins_with(const struct http_target *target, const char *word) {
    return bytes_equal(target->segments[0], bytes_from_text(word));
}

bool web_answer_file(struct http_exchange *exchange, const struct http_target *target) {
    static const char *const views[] = {"", "boards", "server", "login", "embed"};
    struct http_reply *reply = &exchange->reply;
    const char *accept = http_request_header(exchange, "Accept");
    bool is_view = false;
    if (web_answer_begins_with(target, "api")) {
        return false;
    }
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        is_view |= web_answer_begins_with(target, views[i]);
    }
    bool is_name = target->segment_count == 1 && target->segments[0].size > 0;
    const struct web_file *file = is_name ? web_answer_find_file(target->segments[0]) : NULL;
    if (file == NULL && !is_view && (accept == NULL || strstr(accept, "text/html") == NULL)) {
        return false;
    }
    if (file == NULL) {
        file = web_answer_find_file(BYTES("index.html"));
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
    bool may_frame = web_answer_begins_with(target, "embed");
    reply->common = may_frame ? of_frames : of_page;
    http_reply_header(reply, "Content-Security-Policy",
                      may_frame ? web->policy_of_frames : web->policy);
    if (reply->status == 200 && known != NULL && strstr(known, file->tag) != NULL) {
        reply->status = 304;
        reply->fixed = BYTES("");
    } else {
        web_answer_put_fixed(exchange,
                             (struct bytes){.at = (const char *)file->at, .size = file->size},
                             &web->files_packed[file - web_files]);
    }
    http_exchange_ready(exchange);
    return true;
}

/* ---- beginning and end ---- */

static void web_answer_print_policy(const struct web *web, const char *rest, char *out) {
    int size = snprintf(out, WEB_POLICY_MAX, POLICY_BEGIN);
    for (unsigned i = 0; i < web->avatars.origin_count; i++) {
        struct bytes origin = web->avatars.origins[i];
        size += snprintf(out + size, WEB_POLICY_MAX - (size_t)size, " %.*s", (int)origin.size,
                         origin.at);
    }
    snprintf(out + size, WEB_POLICY_MAX - (size_t)size, POLICY_END "%s", rest);
}

void web_answer_init(struct web *web) {
    web_answer_print_policy(web, POLICY_OF_PAGE, web->policy);
    web_answer_print_policy(web, POLICY_OF_FRAMES, web->policy_of_frames);
    web_answer_gzip_file(buffer_bytes(&web->openapi), &web->openapi_packed);
    for (unsigned i = 0; web_files[i].name != NULL; i++) {
        CHECK(i < WEB_FILES_MAX);
        web_answer_gzip_file(
            (struct bytes){.at = (const char *)web_files[i].at, .size = web_files[i].size},
            &web->files_packed[i]);
    }
}

void web_answer_deinit(struct web *web) {
    buffer_deinit(&web->openapi_packed);
    for (unsigned i = 0; i < WEB_FILES_MAX; i++) {
        buffer_deinit(&web->files_packed[i]);
    }
    web_answer_destroy_gzip(web->gzip);
}

/* ---- what an address may do ---- */

static int64_t web_answer_refill_rate(const struct web_rates *rates, const struct web_rate *rate,
                                      int64_t now_ms) {
    int64_t passed_ms = now_ms - rate->at_ms;
    bool is_full = passed_ms > (rates->most - rate->left) / rates->per_ms;
    return is_full ? rates->most : rate->left + passed_ms * rates->per_ms;
}

/* Its place; one of those that has most left, where all are taken. */
static struct web_rate *web_answer_find_rate(struct web_rates *rates, uint64_t seed,
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
            ways[i].at_ms == 0 ? INT64_MAX : web_answer_refill_rate(rates, &ways[i], now_ms);
        if (left > most) {
            fullest = &ways[i];
            most = left;
        }
    }
    *fullest = (struct web_rate){.address = address, .at_ms = now_ms, .left = rates->most};
    return fullest;
}

unsigned web_answer_take_rate(struct web *web, struct web_rates *rates,
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
        web_answer_find_rate(rates, web->rate_seed, auth_guard_address(address), now_ms);
    rate->left = web_answer_refill_rate(rates, rate, now_ms);
    rate->at_ms = now_ms;
    if (rate->left < rates->least) {
        return (unsigned)((rates->least - rate->left - 1) / (MS_PER_S * rates->per_ms) + 1);
    }
    rate->left -= units; /* below 0: a request is taken as a whole, and the next ones wait */
    return 0;
}

/* ---- requests ---- */

void web_answer_forget_known(struct web *web, const char *address) {
    for (unsigned i = 0; i < WEB_KNOWN_MAX; i++) {
        if (strcmp(web->known[i].address, address) == 0) {
            explicit_bzero(&web->known[i], sizeof web->known[i]);
        }
    }
}

/* The identity's rights are void; its logins by header are looked at anew. */
static void web_answer_note_verdict(const struct web_query *query) {
    if (query->verdict == WEB_LOGIN_NEEDED && query->identity.kind == WEB_USER) {
        web_answer_forget_known(query->web, query->address);
    }
}

static void web_answer_on_query(struct web_query *query) {
    struct web_request *request = query->owner;
    request->query = NULL;
    web_answer_note_verdict(query);
    if (request->exchange->stage == HTTP_WAITS) {
        web_answer(request->exchange, query);
    }
    web_query_leave(query);
}

/* false: too many wait, which was replied. */
static bool web_answer_may_put(struct web_request *request) {
    if (request->web->pending_count >= WEB_PENDING_MAX) {
        http_exchange_refuse(request->exchange, 503, "too many requests wait for the server\n");
        return false;
    }
    return true;
}

void web_answer_run(struct web_request *request, struct web_query *query) {
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
    if (!web_answer_may_put(request)) {
        web_query_leave(query);
        return;
    }
    request->query = query;
    query->owner = request;
    query->done = web_answer_on_query;
    http_exchange_wait(request->exchange, WEB_LIMIT_MS);
    web_query_run(query);
}

/* ---- texts that are kept ---- */

struct web_kept {
    struct ask ask; /* first: to end its reads */
    struct web *web;
    struct reads reads;               /* the engine's, but for the flag */
    struct web_kept *next, *previous; /* of those that are there */
    struct web_kept *same_slot;
    uint64_t hash;
    char *target;
    struct web_identity identity;
    struct web_query *query;           /* that is answered for it; NULL: it is there */
    struct web_request *first;         /* who wait for that */
    const struct web_request *creator; /* of them the one whose query it is; NULL: gone */
    struct web_text text;
    int64_t until_ms; /* of web_answer_now */
    size_t size;      /* bytes that web_query_take_memory counts */
};

bool web_answer_is_same_identity(const struct web_identity *a, const struct web_identity *b) {
    return a->kind == b->kind && a->is_local == b->is_local && a->is_token == b->is_token &&
           a->is_by_header == b->is_by_header && a->is_exposed == b->is_exposed &&
           strcmp(a->user, b->user) == 0 && memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

/* By the engine's clock, and as it is now: not since the answer was received, nor at the beginning of the loop's turn. */
static int64_t web_answer_now(const struct web *web) {
    return clock_read_ms(&web->engine.server->clock);
}

/* ---- coming and going ---- */

static struct web_kept **web_answer_slot(struct web *web, uint64_t hash) {
    return &web->kept.slots[hash % WEB_KEPT_SLOTS];
}

static void web_answer_free(struct web_kept *kept) {
    buffer_deinit(&kept->text.body);
    buffer_deinit(&kept->text.packed);
    memory_free(kept->target);
    memory_free(kept);
}

static void web_answer_on_reads_ended(void *context, struct ask *ask) {
    (void)context;
    web_answer_free((struct web_kept *)ask);
}

/* On the engine's thread (http.h). */
static bool web_answer_end_reads(void *context, struct ask *ask) {
    const struct web_engine *engine = context;
    server_reads_end(engine->server, &((struct web_kept *)ask)->reads);
    return true;
}

/* It is found no more; the engine is told, which may still watch for it. */
static void web_answer_forget(struct web *web, struct web_kept *kept) {
    struct web_kept_answers *all = &web->kept;
    struct web_kept **at = web_answer_slot(web, kept->hash);
    while (*at != kept) {
        at = &(*at)->same_slot;
    }
    *at = kept->same_slot;
    if (all->last == kept) {
        all->last = kept->previous;
    }
    if (all->first == kept || kept->previous != NULL) {
        LIST_PART(all->first, kept);
    }
    all->count--;
    all->size -= kept->size;
    web_query_give_memory(web, kept->size);
    kept->ask = (struct ask){.answer = web_answer_end_reads, .done = web_answer_on_reads_ended};
    http_server_ask(web->http, &kept->ask);
}

/* The text is there, and right now: for those who ask from now on. */
static void web_answer_keep(struct web *web, struct web_kept *kept, const struct web_query *query) {
    struct web_kept_answers *all = &web->kept;
    size_t size =
        sizeof *kept + strlen(kept->target) + 2 * kept->text.body.size + query->reads_size;
    if (kept->text.body.size > WEB_KEPT_TEXT_MAX || !web_query_take_memory(web, size)) {
        web_answer_forget(web, kept);
        return;
    }
    kept->size = size;
    kept->until_ms = query->fresh_until_ms;
    all->size += size;
    kept->previous = all->last;
    LIST_APPEND(all->first, all->last, kept);
    while (all->size > WEB_KEPT_SIZE_MAX) {
        web_answer_forget(web, all->first);
    }
}

void web_answer_step(struct web *web) {
    int64_t now_ms = web_answer_now(web);
    while (web->kept.first != NULL && web->kept.first->until_ms <= now_ms) {
        web_answer_forget(web, web->kept.first);
    }
}

bool web_answer_drop(struct web *web, struct ask *ask) {
    if (ask->answer != web_answer_end_reads) {
        return false;
    }
    (void)web_answer_end_reads(&web->engine, ask);
    web_answer_free((struct web_kept *)ask);
    return true;
}

void web_answer_end(struct web *web) {
    for (unsigned i = 0; i < WEB_KEPT_SLOTS; i++) {
        struct web_kept *kept;
        while ((kept = web->kept.slots[i]) != NULL) {
            web->kept.slots[i] = kept->same_slot;
            server_reads_end(web->engine.server, &kept->reads);
            web_answer_free(kept);
        }
    }
}

/* ---- those who want them ---- */

static uint64_t web_answer_hash(const struct web *web, const struct web_identity *identity,
                                const char *target) {
    /* Players share a user. */
    struct bytes name = identity->is_player ? (struct bytes){.at = identity->digest,
                                                             .size = sizeof identity->digest}
                                            : bytes_from_text(identity->user);
    uint64_t who = XXH3_64bits_withSeed(name.at, name.size, web->rate_seed);
    return XXH3_64bits_withSeed(target, strlen(target), who ^ (uint64_t)identity->kind);
}

/* Those who ask again, together, are not late, and go on with the time that they have. */
static void web_answer_wait(struct web_kept *kept, struct web_request *request) {
    request->kept = kept;
    request->is_late = kept->query->was_asked && !request->is_again;
    LIST_JOIN(kept->first, request);
    if (!request->is_again) {
        http_exchange_wait(request->exchange, WEB_LIMIT_MS);
    }
}

bool web_answer_again(struct web_request *request, const struct web_identity *identity) {
    struct web *web = request->web;
    const char *target = request->exchange->target;
    uint64_t hash = web_answer_hash(web, identity, target);
    struct web_kept *kept = *web_answer_slot(web, hash);
    while (kept != NULL && !(kept->hash == hash && strcmp(kept->target, target) == 0 &&
                             web_answer_is_same_identity(&kept->identity, identity))) {
        kept = kept->same_slot;
    }
    if (kept == NULL) {
        return false;
    }
    if (kept->query != NULL) {
        web_answer_wait(kept, request);
        return true;
    }
    if (server_reads_are_outdated(&kept->reads) || kept->until_ms <= web_answer_now(web)) {
        web_answer_forget(web, kept);
        return false;
    }
    web_answer_text(request, &kept->text);
    return true;
}

static void web_answer_on_text(struct web_query *query) {
    struct web_kept *kept = query->owner;
    struct web *web = query->web;
    bool is_right = query->status == 200;
    bool is_current = is_right && query->fresh_ms > 0 && !server_reads_are_outdated(&kept->reads);
    bool is_for_one =
        !is_right || query->out.size > WEB_KEPT_TEXT_MAX; /* errors may name who asks */
    bool is_taken = false;
    const struct web_identity identity = kept->identity;
    struct web_request *waiting = kept->first;
    struct web_request *again = NULL;
    kept->query = NULL;
    kept->first = NULL;
    web_answer_note_verdict(query);
    if (is_right) {
        kept->text = (struct web_text){.body = query->out, .is_public = query->user.is_public};
        buffer_init(&query->out, WEB_JSON_MAX);
    }
    while (waiting != NULL) {
        struct web_request *request = waiting;
        LIST_PART(waiting, request);
        request->kept = NULL;
        if (request->exchange->stage != HTTP_WAITS) {
            continue; /* it was told that the server is busy */
        }
        if (is_right && (is_current || !request->is_late) && !(is_for_one && is_taken)) {
            is_taken = true;
            web_answer_text(request, &kept->text);
        } else if (!is_right && request == kept->creator) {
            web_answer(request->exchange, query);
        } else {
            request->is_again = true;
            request->is_alone = is_for_one;
            LIST_JOIN(again, request);
        }
    }
    if (is_current) {
        web_answer_keep(web, kept, query);
    } else {
        web_answer_forget(web, kept);
    }
    web_query_leave(query);
    while (again != NULL) {
        struct web_request *request = again;
        LIST_PART(again, request);
        web->run_as(request, &identity);
    }
}

void web_answer_run_for_many(struct web_request *request, struct web_query *query) {
    struct web *web = request->web;
    const char *target = request->exchange->target;
    if (web->kept.count >= WEB_KEPT_MAX && web->kept.first != NULL) {
        web_answer_forget(web, web->kept.first);
    }
    struct web_kept *kept =
        web->kept.count < WEB_KEPT_MAX ? memory_allocate_zeroed(sizeof *kept) : NULL;
    char *copy = kept != NULL ? memory_allocate(strlen(target) + 1) : NULL;
    if (copy == NULL) {
        memory_free(kept);
        web_answer_run(request, query);
        return;
    }
    if (!web_answer_may_put(request)) {
        memory_free(kept);
        memory_free(copy);
        web_query_leave(query);
        return;
    }
    memcpy(copy, target, strlen(target) + 1);
    *kept = (struct web_kept){.web = web, .target = copy, .query = query, .creator = request};
    kept->identity = query->identity;
    kept->hash = web_answer_hash(web, &kept->identity, target);
    server_reads_init(&kept->reads);
    struct web_kept **slot = web_answer_slot(web, kept->hash);
    kept->same_slot = *slot;
    *slot = kept;
    web->kept.count++;
    query->reads = &kept->reads;
    query->owner = kept;
    query->done = web_answer_on_text;
    web_answer_wait(kept, request);
    web_query_run(query);
}

void web_answer_leave(struct web_request *request) {
    struct web_kept *kept = request->kept;
    if (kept == NULL) {
        return;
    }
    request->kept = NULL;
    LIST_PART(kept->first, request);
    kept->creator = kept->creator == request ? NULL : kept->creator;
    if (kept->first == NULL && kept->query->state == WEB_QUERY_WAITS) {
        web_query_leave(kept->query); /* what the engine has is kept, though nobody waits for it */
        web_answer_forget(kept->web, kept);
    }
}
