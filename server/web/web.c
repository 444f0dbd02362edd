/* Requests of the page: who asks, and what for. See web.h. */
#include "server/web/web.h"

#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "codec/list.h"
#include "server/http/http.h"
#include "server/web/web_query.h"

/* ---- routes ---- */

#define GROUP "hash data where tags rating"
#define PAGE  "db from count:1-200=25 " GROUP " since"

const struct web_operation web_operations[] = {
    {HTTP_GET, "boards", "listBoards", "Boards, in steps", "match cursor count:1-200=100 rooms db",
     NULL, "Boards", &web_route_list, false},
    {HTTP_GET, "boards/{NAME}", "getBoard", "A board", "db where", NULL, "Board", &web_route_board,
     false},
    {HTTP_GET, "boards/{NAME}/page", "getPage", "Rows by rank", PAGE, NULL, "Page", &web_route_page,
     false},
    {HTTP_GET, "boards/{NAME}/events", "followPage",
     "event: page with a Page whenever it has changed; event: gone with a Problem", PAGE " key",
     NULL, "Page", &web_route_page, true},
    {HTTP_GET, "boards/{NAME}/search", "searchMembers", "Members that begin with q",
     "db q count:1-50=25 cursor by " GROUP, NULL, "Found", &web_route_search, false},
    {HTTP_GET, "boards/{NAME}/histogram", "getHistogram", "Bins and quantiles of the first field",
     "db buckets spacing hash data where", NULL, "Histogram", &web_route_histogram, false},
    {HTTP_GET, "boards/{NAME}/archives", "listArchives", "The last periods",
     "db count:1-50=10 " GROUP, NULL, "Archives", &web_route_archives, false},
    {HTTP_GET, "boards/{NAME}/members/{MEMBER}", "getMember",
     "A member: place, percentile, the ten around", "db " GROUP " since", NULL, "Member",
     &web_route_member, false},
    {HTTP_GET, "boards/{NAME}/members/{MEMBER}/rating", "getRating",
     "A player's rating, also of one who is not ranked: LB.RATING", "db", NULL, "Rated",
     &web_route_rating, false},
    {HTTP_GET, "boards/{NAME}/held", "listHeld",
     "Results that are kept and not ranked yet, the oldest first: LB.HELD. With a player's token: "
     "its "
     "own",
     "db cursor count:1-100=25", NULL, "HeldResults", &web_route_held, false},
    {HTTP_PUT, "boards/{NAME}/held/{MEMBER}", "approveHeld",
     "Rank what is held of a member: LB.APPROVE", "db id", NULL, "Decided", &web_route_approve,
     false},
    {HTTP_DELETE, "boards/{NAME}/held/{MEMBER}", "rejectHeld",
     "Drop what is held of a member: LB.REJECT", "db id", NULL, "Decided", &web_route_reject,
     false},
    {HTTP_GET, "boards/{NAME}/me", "getMyself",
     "The player whose token the header Authorization has, as a member, and what is held of it",
     "db " GROUP " since", NULL, "Myself", &web_route_member, false},
    {HTTP_POST, "boards/{NAME}/results", "writeResults", "Write results: LB.ADD",
     "db hash rank create Idempotency-Key", "Result...", "Written", &web_route_results, false},
    {HTTP_POST, "boards/{NAME}/tickets", "makeTicket",
     "A ticket for a run that begins now, which its result comes with: LB.TICKET", "db",
     "TicketAsked", "Ticket", &web_route_ticket, false},
    {HTTP_POST, "boards/{NAME}/matches", "writeMatches",
     "Rate a match, or several one after the other: LB.MATCH", "db Idempotency-Key", "Match...",
     "Played", &web_route_matches, false},
    {HTTP_POST, "boards/{NAME}/predictions", "predictMatches",
     "Chances in matches to come, which change nothing: LB.PREDICT", "db", "Pairing...",
     "Predicted", &web_route_predictions, false},
    {HTTP_POST, "results", "submitResults",
     "Write results, each on several boards or on none: LB.SUBMIT",
     "db hash create Idempotency-Key", "Submission...", "Submitted", &web_route_submit, false},
    {HTTP_DELETE, "boards/{NAME}/members/{MEMBER}", "removeMember", "Remove a member: ZREM", "db",
     NULL, "Removed", &web_route_remove, false},
    {HTTP_PATCH, "boards/{NAME}/members/{MEMBER}/tags", "setTags",
     "Set some of a member's tags: LB.TAG", "db", "Tags", "Tagged", &web_route_set_tags, false},
    {HTTP_PUT, "boards/{NAME}/members/{MEMBER}/tags", "replaceTags",
     "Set a member's tags, and take away those that are not named", "db", "Tags", "Tagged",
     &web_route_replace_tags, false},
    {HTTP_PUT, "bans/{MEMBER}", "banMember",
     "Keep a member off the boards, from now on, and take it off them, meanwhile: LB.BAN",
     "db shadow seconds match", NULL, "Banned", &web_route_ban, false},
    {HTTP_DELETE, "bans/{MEMBER}", "unbanMember", "Lift all bans of a member: LB.UNBAN", "db", NULL,
     "Unbanned", &web_route_unban, false},
    {HTTP_GET, "leagues/{NAME}", "getLeague", "A league's tiers, the highest first: LB.LEAGUE INFO",
     "db", NULL, "League", &web_route_league, false},
    {HTTP_POST, "leagues/{NAME}/results", "writeLeagueResults",
     "Write results in members' rooms: LB.LEAGUE ADD", "db hash Idempotency-Key", "Result...",
     "LeagueResults", &web_route_league_results, false},
    {HTTP_GET, "leagues/{NAME}/members/{MEMBER}", "getLeagueMember",
     "A member's tier and room: LB.LEAGUE GET", "db", NULL, "LeagueMember",
     &web_route_league_member, false},
    {HTTP_DELETE, "leagues/{NAME}/members/{MEMBER}", "removeLeagueMember",
     "Take a member out: LB.LEAGUE REMOVE", "db", NULL, "Removed", &web_route_leave_league, false},
    {HTTP_GET, "server", "getServer", "Figures of the server", "", NULL, "Server",
     &web_route_server, false},
    {HTTP_GET, "server/events", "followServer", "event: server with Server, every second", "key",
     NULL, "Server", &web_route_server, true},
    {HTTP_GET, "server/history", "getHistory", "The last hour", "", NULL, "History",
     &web_route_history, false},
    {HTTP_GET, "slowlog", "getSlowlog", "The slow log", "count:1-128=128", NULL, "Slowlog",
     &web_route_slowlog, false},
    {HTTP_GET, "me", "getMe", "Who asks, and what the page may show", "", NULL, "Me", &web_route_me,
     false},
    {HTTP_POST, "stream-key", "makeStreamKey",
     "A key with which one stream of events begins, for programs that can send no header there", "",
     NULL, "StreamKey", &web_route_stream_key, false},
    {HTTP_POST, "players", "makeGuest",
     "A player with a random name, and a token for it: web-guests", "", NULL, "Guest", NULL, false},
    {HTTP_POST, "login", "logIn", "Log in: sets a cookie", "", "Login", "Me", NULL, false},
    {HTTP_POST, "logout", "logOut", "End the login", "", NULL, "Me", NULL, false},
    {HTTP_GET, "openapi.json", "getOpenapi", "This document", "", NULL, "Document", NULL, false},
};
const unsigned web_operation_count = sizeof web_operations / sizeof web_operations[0];

static bool web_match(const struct http_target *target, const char *path) {
    unsigned at = 2; /* behind api and v1 */
    for (; *path != '\0' && at < target->segment_count; at++) {
        struct bytes word = {.at = path, .size = strcspn(path, "/")};
        if (word.at[0] != '{' && !bytes_equal(word, target->segments[at])) {
            return false;
        }
        path += word.size + (path[word.size] == '/');
    }
    return *path == '\0' && at == target->segment_count;
}

const struct web_operation *web_find_operation(enum http_method method,
                                               const struct http_target *target) {
    for (unsigned i = 0; i < web_operation_count; i++) {
        const struct web_operation *operation = &web_operations[i];
        if (operation->method == (method == HTTP_HEAD ? HTTP_GET : method) &&
            web_match(target, operation->path)) {
            return operation;
        }
    }
    return NULL;
}

/* Bits of the methods that the path has. */
static unsigned web_find_methods(const struct http_target *target) {
    unsigned methods = 0;
    for (unsigned i = 0; i < web_operation_count; i++) {
        if (web_match(target, web_operations[i].path)) {
            methods |= 1U << web_operations[i].method;
        }
    }
    return (methods >> HTTP_GET & 1) != 0 ? methods | 1U << HTTP_HEAD : methods;
}

/* ---- requests ---- */

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
        web_answer_take_rate(web, &web->result_rates, exchange, (int64_t)WEB_RESULT_UNITS * count);
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

static void web_run_as(struct web_request *request, const struct web_identity *identity) {
    struct web *web = request->web;
    struct http_exchange *exchange = request->exchange;
    char address[HTTP_ADDRESS_MAX];
    struct web_identity who = *identity;
    who.is_exposed = !http_exchange_peer(exchange, address) && !http_server_is_secure(web->http);
    bool may_be_kept =
        !request->is_alone && !request->wants_stream && exchange->method <= HTTP_HEAD;
    if (may_be_kept && web_answer_again(request, &who)) {
        return;
    }
    if (request->wants_login) {
        web_views_check_logins(web); /* one may have ended */
    }
    struct web_query *query = web_query_create(web);
    if (query == NULL) {
        http_exchange_refuse(exchange, 503, "out of memory\n");
        return;
    }
    query->identity = who;
    query->answer = request->answer;
    memcpy(query->address, address, sizeof address);
    if (request->wants_login) { /* the reply says who it is now */
        query->route = &web_route_me;
        web_answer_run(request, query);
        return;
    }
    const struct web_operation *operation = request->operation;
    if (!web_query_parse(query, operation != NULL ? operation->route : NULL, exchange->target) ||
        !web_take_body(request, query)) {
        web_answer(exchange, query);
        web_query_leave(query);
    } else if (request->wants_stream) {
        web_views_add(web, request, query);
    } else if (may_be_kept && query->route->is_kept && query->since.at == NULL) {
        web_answer_run_for_many(request, query);
    } else {
        web_answer_run(request, query);
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
    web_answer_add_headers(exchange);
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

/* The path takes these methods, and not the one that came. */
static void web_refuse_method(struct http_exchange *exchange, unsigned methods) {
    exchange->reply.allowed = methods;
    http_exchange_refuse(exchange, 405, "%s: /api/v1/openapi.json lists what each path takes\n",
                         exchange->method <= HTTP_HEAD ? "this path is only written to"
                         : methods == (1U << HTTP_GET | 1U << HTTP_HEAD)
                             ? "this path is only read"
                             : "this path takes other methods");
}

static void web_handle_api(struct web *web, struct web_request *request,
                           const struct http_target *target) {
    struct http_exchange *exchange = request->exchange;
    bool is_log_in = target->segment_count == 3 && web_is_path(target, 2, "login");
    bool is_log_out = target->segment_count == 3 && web_is_path(target, 2, "logout");
    bool writes = exchange->method > HTTP_HEAD;
    const struct web_operation *operation = web_find_operation(exchange->method, target);
    request->operation = operation;
    request->answer = operation != NULL ? web->answers[operation - web_operations] : NULL;
    unsigned methods = operation == NULL ? web_find_methods(target) : 0;
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
        web_refuse_method(exchange, methods);
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
        web_answer_document(exchange);
    } else if (version > 0) {
        web_handle_api(web, request, &target);
    } else if (exchange->method > HTTP_HEAD) {
        exchange->reply.allowed = 1U << HTTP_GET | 1U << HTTP_HEAD;
        http_exchange_refuse(exchange, 405, "only paths of the API are written to\n");
    } else if (!web_answer_file(exchange, &target)) {
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
    web_answer_leave(request);
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
    web_query_step(web);
    web_views_step(web, now_ms);
    web_answer_step(web);
    web_figures_step_history(web, now_ms);
}

/* ---- beginning and end ---- */

static void web_drop(void *context, struct ask *ask) {
    struct web *web = context;
    if (http_ask_drop_login(ask) || web_answer_drop(web, ask)) {
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
            web_query_take_back(web, query);
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
    return true;
}

static void web_free(struct web *web) {
    web_engine_deinit(&web->engine);
    web_login_deinit_sessions(&web->sessions);
    web_login_deinit_sessions(&web->stream_keys);
    buffer_deinit(&web->openapi);
    web_answer_deinit(web);
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
    web->run_as = web_run_as;
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
    web_openapi_put(&json, web_operations, web_operation_count);
    if (web->openapi.is_broken) {
        snprintf(error, HTTP_ERROR_MAX, "web-port: out of memory");
        web_free(web);
        return NULL;
    }
    web_answer_init(web);
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
        .print_refusal = web_answer_print_refusal,
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
    web_answer_end(web);
}

void web_destroy(struct web *web) {
    http_server_destroy(web->http);
    web_free(web);
}
