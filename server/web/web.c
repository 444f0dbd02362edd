/* Requests of the page: who asks, and what for. See web.h. */
#include "server/web/web.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "server/web/web_parts.h"

#define JSON_TYPE "application/json; charset=utf-8"

/* ---- replies ---- */

/* Browsers that know it refuse to make elements of text, whatever a script does. */
#define NO_HTML "require-trusted-types-for 'script'; trusted-types 'none'"

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; " NO_HTML;
static const char policy_of_frames[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors *; " NO_HTML;

void web_add_headers(struct http_reply *reply, bool may_frame) {
    http_reply_header(reply, "Content-Security-Policy", may_frame ? policy_of_frames : policy);
    http_reply_header(reply, "Referrer-Policy", "no-referrer");
    http_reply_header(reply, "Cross-Origin-Resource-Policy", "same-origin");
    http_reply_header(reply, "Permissions-Policy",
                      "camera=(), microphone=(), geolocation=(), payment=()");
    if (!may_frame) {
        http_reply_header(reply, "X-Frame-Options", "DENY");
        http_reply_header(reply, "Cross-Origin-Opener-Policy", "same-origin");
    }
}

static const char *code_of(unsigned status) {
    return status == 401   ? "login_needed"
           : status == 403 ? "forbidden"
           : status == 404 ? "not_found"
           : status == 413 ? "too_large"
           : status == 429 ? "too_many"
           : status >= 500 ? "busy"
                           : "bad_request";
}

/* Errors of the listener are JSON here, too. text ends with a newline. */
static void print_refusal(struct http_reply *reply, const char *text) {
    struct json json = {.out = &reply->body};
    size_t size = strlen(text);
    json_open(&json, NULL, '{');
    json_text(&json, "error", (struct bytes){.at = text, .size = size > 0 ? size - 1 : 0});
    json_text(&json, "code", bytes_from_text(code_of(reply->status)));
    json_close(&json, '}');
    reply->content_type = JSON_TYPE;
    reply->header_count = 0;
    reply->is_kept = false;
    web_add_headers(reply, false);
}

void web_refuse(struct http_exchange *exchange, unsigned status, const char *format, ...) {
    char text[HTTP_ERROR_MAX];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)size;
    http_exchange_refuse(exchange, status, "%s\n", text);
}

void web_answer(struct http_exchange *exchange, struct web_query *query) {
    struct http_reply *reply = &exchange->reply;
    struct buffer body = reply->body;
    reply->status = query->status;
    reply->content_type = JSON_TYPE;
    reply->header_count = 0;
    web_add_headers(reply, false);
    const struct web_request *request = exchange->own;
    if (request->cookie[0] != '\0') {
        http_reply_header(reply, "Set-Cookie", request->cookie);
    }
    reply->body = query->out;
    query->out = body;
    http_exchange_ready(exchange);
}

/* ---- requests ---- */

static void request_is_answered(struct web_query *query) {
    struct web_request *request = query->owner;
    request->query = NULL;
    if (request->exchange->stage == HTTP_WAITS) {
        web_answer(request->exchange, query);
    }
    web_query_leave(query);
}

void web_run(struct web_request *request, struct web_query *query) {
    struct web *web = request->web;
    if (web->pending_count >= WEB_PENDING_MAX) {
        web_query_leave(query);
        web_refuse(request->exchange, 503, "too many requests wait for the server");
        return;
    }
    request->query = query;
    query->owner = request;
    query->done = request_is_answered;
    http_exchange_wait(request->exchange, WEB_LIMIT_MS);
    web_query_run(query);
}

/* It is known who asks. */
static void run_as(struct web_request *request, const struct web_identity *identity) {
    struct web *web = request->web;
    struct http_exchange *exchange = request->exchange;
    struct web_query *query = web_query_create(web);
    if (query == NULL) {
        web_refuse(exchange, 503, "out of memory");
        return;
    }
    query->identity = *identity;
    (void)http_exchange_peer(exchange, query->address);
    if (!web_query_parse(query, exchange->target)) {
        web_answer(exchange, query);
        web_query_leave(query);
    } else if (request->wants_stream) {
        web_views_add(web, request, query);
    } else {
        web_run(request, query);
    }
}

static void login_is_answered(void *context, struct http_login_ask *login) {
    struct http_exchange *exchange = login->exchange;
    struct web_request *request = exchange->own;
    struct web_identity identity = {.is_local = login->given.is_local};
    (void)context;
    request->login = NULL;
    if (exchange->stage != HTTP_WAITS) {
        return; /* it has waited too long */
    }
    if (login->verdict == HTTP_LOGIN_OK) {
        web_identity_set(&identity, &login->given);
        run_as(request, &identity);
    } else {
        exchange->reply.is_login_wanted = login->verdict == HTTP_LOGIN_NEEDED;
        web_refuse_login(exchange, login);
    }
}

/* HTTP Basic. */
static void log_in_and_run(struct web_request *request) {
    struct http_exchange *exchange = request->exchange;
    struct http_login_ask *login = http_login_create(exchange);
    if (login == NULL) {
        web_refuse(exchange, 503, "out of memory");
        return;
    }
    if (!http_login_take_basic(exchange, &login->given) || !login->given.has_password) {
        http_login_destroy(login);
        exchange->reply.is_login_wanted = true;
        web_refuse(exchange, 401, "no user has this name and password");
        return;
    }
    login->check = web_engine_check_login;
    login->done = login_is_answered;
    request->login = login;
    http_login_ask(login, exchange);
}

static bool is_path(const struct http_target *target, unsigned from, const char *word) {
    return target->segment_count > from &&
           bytes_equal(target->segments[from], bytes_from_text(word));
}

/* A page of another site, or of another port or name of this one, may neither read nor hold connections. */
static bool is_of_other_site(const struct http_exchange *exchange) {
    const char *site = http_exchange_header(exchange, "Sec-Fetch-Site");
    const char *mode = http_exchange_header(exchange, "Sec-Fetch-Mode");
    const char *origin = http_exchange_header(exchange, "Origin");
    const char *host = http_exchange_header(exchange, "Host");
    bool is_navigation =
        exchange->method != HTTP_POST && mode != NULL && strcmp(mode, "navigate") == 0;
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

static void handle_api(struct web *web, struct web_request *request,
                       const struct http_target *target) {
    struct http_exchange *exchange = request->exchange;
    struct web_identity identity = {.kind = WEB_ANYBODY};
    if (is_of_other_site(exchange)) {
        web_refuse(exchange, 403, "not for pages of other sites");
        return;
    }
    if (exchange->method == HTTP_POST) {
        if (target->segment_count == 3 && is_path(target, 2, "login")) {
            web_log_in(web, request);
        } else if (target->segment_count == 3 && is_path(target, 2, "logout")) {
            web_log_out(web, request);
        } else {
            web_refuse(exchange, 405, "only login and logout are posted");
        }
        return;
    }
    request->wants_stream =
        bytes_equal(target->segments[target->segment_count - 1], BYTES("events"));
    if (http_exchange_header(exchange, "Authorization") != NULL) {
        log_in_and_run(request);
        return;
    }
    web_identify(web, request, &identity);
    run_as(request, &identity);
}

static void handle(void *context, struct http_exchange *exchange) {
    struct web *web = context;
    struct http_target target;
    struct web_request *request = memory_allocate_zeroed(sizeof *request);
    size_t size = strlen(exchange->target);
    char *text = memory_allocate(size + 1);
    if (request == NULL || text == NULL) {
        memory_free(request);
        memory_free(text);
        web_refuse(exchange, 503, "out of memory");
        return;
    }
    *request = (struct web_request){.web = web, .exchange = exchange};
    exchange->own = request;
    memcpy(text, exchange->target, size + 1);
    const char *wrong = http_target_parse(text, &target);
    if (wrong != NULL) {
        web_refuse(exchange, 400, "%s", wrong);
    } else if (is_path(&target, 0, "api") && is_path(&target, 1, "v1") &&
               !is_path(&target, 2, "openapi.json")) {
        handle_api(web, request, &target);
    } else if (exchange->method == HTTP_POST) {
        web_refuse(exchange, 405, "only login and logout are posted");
    } else if (!web_files_answer(exchange, &target)) {
        web_refuse(exchange, 404, "there is no such page");
    }
    memory_free(text);
}

static void leave(void *context, struct http_exchange *exchange) {
    struct web *web = context;
    struct web_request *request = exchange->own;
    if (request == NULL) {
        return;
    }
    http_login_leave(request->login);
    if (request->query != NULL) {
        web_query_leave(request->query);
    }
    web_views_leave(web, request);
    memory_free(request);
}

static void step(void *context, int64_t now_ms) {
    struct web *web = context;
    web_pace_step(web);
    web_views_step(web, now_ms);
    web_history_step(web, now_ms);
}

/* ---- beginning and end ---- */

static void drop(void *context, struct ask *ask) {
    struct web *web = context;
    if (http_login_drop(ask)) {
        return;
    }
    struct web_query *query = (struct web_query *)ask;
    if (query == web->history.query) {
        return;
    }
    web_query_destroy(query);
}

/* On the HTTP thread: every exchange is gone. */
static void end(void *context) {
    struct web *web = context;
    web_views_end(web);
    while (web->pending_first != NULL) {
        struct web_query *query = web->pending_first;
        web_take_back(web, query);
        if (query != web->history.query) {
            web_query_destroy(query);
        }
    }
}

/* "user:* name country" */
static bool read_data(struct web *web, const char *text, char *error) {
    while (text != NULL && *(text += strspn(text, " ")) != '\0') {
        struct bytes word = {.at = text, .size = strcspn(text, " ")};
        text += word.size;
        if (web->data_pattern.at == NULL) {
            web->data_pattern = word;
        } else if (web->data_field_count == WEB_FIELDS_MAX) {
            snprintf(error, HTTP_ERROR_MAX, "web-data: at most %d fields", WEB_FIELDS_MAX);
            return false;
        } else {
            web->data_fields[web->data_field_count++] = word;
        }
    }
    if (web->data_pattern.at != NULL &&
        (memchr(web->data_pattern.at, '*', web->data_pattern.size) == NULL ||
         web->data_field_count == 0)) {
        snprintf(error, HTTP_ERROR_MAX,
                 "web-data: a pattern with a * for the member, and at least one field, like "
                 "\"user:* name\"");
        return false;
    }
    return true;
}

static void destroy(struct web *web) {
    web_engine_deinit(&web->engine);
    web_sessions_deinit(&web->sessions);
    if (web->history.query != NULL) {
        web_query_destroy(web->history.query);
    }
    memory_free(web);
}

static struct web *create(struct server *server, char *error) {
    const struct settings *settings = &server->settings;
    struct web *web = memory_allocate_zeroed(sizeof *web);
    if (web == NULL) {
        snprintf(error, HTTP_ERROR_MAX, "web-port: out of memory");
        return NULL;
    }
    web->settings = settings;
    snprintf(error, HTTP_ERROR_MAX, "web-port: out of memory");
    if (!web_sessions_init(&web->sessions, settings->web_session_timeout_s * 1000) ||
        !read_data(web, settings->web_data, error) ||
        !web_engine_init(&web->engine, server, error)) {
        destroy(web);
        return NULL;
    }
    web->handler = (struct http_handler){
        .context = web,
        .engine_context = &web->engine,
        .handle = handle,
        .leave = leave,
        .step = step,
        .step_ms = WEB_SAMPLE_MS / 10,
        .drop = drop,
        .end = end,
        .print_refusal = print_refusal,
    };
    return web;
}

struct web *web_start(int fd, uv_loop_t *engine_loop, struct server *server,
                      const char *certificate, const char *key, char *error) {
    const struct settings *settings = &server->settings;
    struct web *web = create(server, error);
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
        .takes_posts = true,
        .certificate = certificate,
        .key = key,
    };
    if (http_server_start(fd, engine_loop, &options, error) == NULL) {
        destroy(web);
        return NULL;
    }
    web->engine.asks = http_server_asks(web->http);
    return web;
}

void web_open_gates(void *context) {
    struct web *web = context;
    web_engine_open_gates(&web->engine);
}

void web_stop(struct web *web) {
    http_server_stop(web->http);
    struct web_query *held = web->engine.held_first;
    while (held != NULL) {
        struct web_query *next = held->next;
        drop(web, &held->ask);
        held = next;
    }
    web->engine.held_first = NULL;
}

void web_destroy(struct web *web) {
    http_server_destroy(web->http);
    destroy(web);
}
