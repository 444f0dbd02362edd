/* Logins of the page: a cookie that names one, and the user's digest, by which the engine sees that the
 * password is still the user's.
 *
 * The cookie is not for scripts (HttpOnly), and not sent along from other sites (SameSite=Strict). Of it only
 * the digest is kept. */
#include <stdio.h>

#include "server/acl/player.h"
#include "server/http/http.h"
#include "server/web/web_query.h"

#define COOKIE "leaderboard"
#define SECURE "__Host-" /* browsers take such a cookie from this name alone, over TLS alone */

/* ---- the table ---- */

bool web_login_init_sessions(struct web_sessions *sessions, int64_t timeout_ms) {
    sessions->timeout_ms = timeout_ms;
    sessions->at = memory_allocate_zeroed(WEB_SESSIONS_MAX * sizeof *sessions->at);
    return sessions->at != NULL;
}

void web_login_deinit_sessions(struct web_sessions *sessions) {
    memory_free(sessions->at);
}

static bool web_login_is_over(const struct web_sessions *sessions,
                              const struct web_session *session, int64_t now_ms) {
    return !session->is_used || now_ms - session->used_at_ms >= sessions->timeout_ms;
}

void web_login_add_session(struct web_sessions *sessions, const struct web_identity *identity,
                           int64_t now_ms, char *token) {
    /* A free place; else that of this user's that was used longest ago, if the user has many; else of anybody's. */
    const char *user = identity->is_player ? identity->player.claims.player : identity->user;
    struct web_session *room = NULL;
    struct web_session *oldest = &sessions->at[0];
    struct web_session *own_oldest = NULL;
    unsigned own_count = 0;
    for (unsigned i = 0; i < WEB_SESSIONS_MAX; i++) {
        struct web_session *each = &sessions->at[i];
        if (web_login_is_over(sessions, each, now_ms)) {
            room = each;
            continue;
        }
        oldest = each->used_at_ms < oldest->used_at_ms ? each : oldest;
        if (each->is_player == identity->is_player &&
            strcmp(each->is_player ? each->player.claims.player : each->user, user) == 0) {
            own_count++;
            if (own_oldest == NULL || each->used_at_ms < own_oldest->used_at_ms) {
                own_oldest = each;
            }
        }
    }
    struct web_session *session = own_count >= WEB_USER_SESSIONS_MAX ? own_oldest
                                  : room != NULL                     ? room
                                                                     : oldest;
    *session = (struct web_session){.is_used = true,
                                    .is_token = identity->is_token,
                                    .is_player = identity->is_player,
                                    .player = identity->player,
                                    .used_at_ms = now_ms};
    digest_random(token, WEB_TOKEN_SIZE);
    digest_print((struct bytes){.at = token, .size = WEB_TOKEN_SIZE}, session->token_digest);
    memcpy(session->digest, identity->digest, DIGEST_TEXT_SIZE);
    snprintf(session->user, sizeof session->user, "%s", identity->user);
}

struct web_session *web_login_find_session(struct web_sessions *sessions, struct bytes token,
                                           int64_t now_ms) {
    char digest[DIGEST_TEXT_SIZE];
    if (token.size != WEB_TOKEN_SIZE) {
        return NULL;
    }
    digest_print(token, digest);
    for (unsigned i = 0; i < WEB_SESSIONS_MAX; i++) {
        struct web_session *each = &sessions->at[i];
        if (!web_login_is_over(sessions, each, now_ms) &&
            digest_equal(each->token_digest, digest)) {
            each->used_at_ms = now_ms;
            return each;
        }
    }
    return NULL;
}

void web_login_end_session(struct web_session *session) {
    explicit_bzero(session, sizeof *session);
}

/* ---- who asks ---- */

/* With the port: two servers on one machine have cookies of their own. */
static void web_login_print_name(const struct web *web, bool is_secure,
                                 char name[WEB_COOKIE_NAME_MAX]) {
    snprintf(name, WEB_COOKIE_NAME_MAX, "%s" COOKIE "-%lld", is_secure ? SECURE : "",
             (long long)web->settings->web_port);
}

/* *is_secure: of the cookie's name. */
static struct web_session *
web_login_take_cookie(struct web *web, const struct http_exchange *exchange, bool *is_secure) {
    const char *cookies = http_request_header(exchange, "Cookie");
    char name[WEB_COOKIE_NAME_MAX];
    *is_secure = http_server_is_secure(web->http);
    if (cookies == NULL) {
        return NULL;
    }
    web_login_print_name(web, *is_secure = true, name);
    struct bytes token = http_request_cookie(cookies, name);
    if (token.at == NULL && !http_server_is_secure(web->http)) {
        web_login_print_name(web, *is_secure = false, name);
        token = http_request_cookie(cookies, name);
    }
    return token.at != NULL
               ? web_login_find_session(&web->sessions, token, http_server_now(web->http))
               : NULL;
}

void web_login_identify(struct web *web, struct web_request *request,
                        struct web_identity *identity) {
    bool is_secure;
    struct web_session *session = web_login_take_cookie(web, request->exchange, &is_secure);
    *identity = (struct web_identity){.kind = WEB_ANYBODY};
    identity->is_local = http_exchange_is_local(request->exchange);
    if (session != NULL) {
        identity->kind = WEB_USER;
        memcpy(identity->user, session->user, sizeof identity->user);
        memcpy(identity->digest, session->digest, sizeof identity->digest);
        request->session = session;
        memcpy(request->token_digest, session->token_digest, sizeof request->token_digest);
    }
}

bool web_login_keep(struct web *web, const struct web_request *request) {
    struct web_session *session = request->session;
    int64_t now_ms = http_server_now(web->http);
    if (session == NULL) {
        return true;
    }
    if (web_login_is_over(&web->sessions, session, now_ms) ||
        !digest_equal(session->token_digest, request->token_digest)) {
        return false;
    }
    session->used_at_ms = now_ms;
    return true;
}

/* ---- logging in: POST, or the header Authorization ---- */

/* A string, terminated. */
static bool web_login_take_text(struct json_reader *reader, char *out, size_t size_max) {
    size_t size;
    bool is_taken = json_take_text(reader, out, size_max - 1, &size);
    out[is_taken ? size : 0] = '\0';
    return is_taken && strlen(out) == size;
}

bool web_login_read(const char *text, struct http_login *login) {
    struct json_reader reader = {.at = text, .end = text + strlen(text)};
    char name[16];
    bool has_user = false;
    if (!json_take(&reader, '{')) {
        return false;
    }
    do {
        if (!web_login_take_text(&reader, name, sizeof name) || !json_take(&reader, ':')) {
            return false;
        }
        bool is_user = strcmp(name, "user") == 0;
        if (!is_user && strcmp(name, "password") != 0) {
            return false;
        }
        if (is_user ? !web_login_take_text(&reader, login->user, sizeof login->user)
                    : !web_login_take_text(&reader, login->password, sizeof login->password)) {
            return false;
        }
        has_user |= is_user;
        login->has_password |= !is_user;
    } while (json_take(&reader, ','));
    return json_take(&reader, '}') && json_is_over(&reader) && has_user && login->has_password;
}

#define WEB_NO_SUCH_USER "no user has this name and password, or this token\n"

static void web_login_refuse(struct http_exchange *exchange, const struct http_login_ask *login) {
    switch (login->verdict) {
    case HTTP_LOGIN_TOO_SOON:
        http_ask_refuse_too_soon(exchange, &login->given);
        return;
    case HTTP_LOGIN_REFUSED:
        http_exchange_refuse(exchange, 403, WEB_TLS_NEEDED "\n", login->given.address);
        return;
    case HTTP_LOGIN_OK:
    case HTTP_LOGIN_NEEDED:
        break;
    }
    const char *wrong = login->given.wrong;
    if (wrong != NULL && jwt_is_signed(login->given.player_status)) {
        http_exchange_refuse(exchange, 401, WEB_TOKEN_REFUSED "\n", wrong); /* that is no guess */
        return;
    }
    if (wrong != NULL) {
        http_reply_fill(exchange, 401, WEB_TOKEN_REFUSED "\n", wrong);
    } else {
        http_reply_fill(exchange, 401, WEB_NO_SUCH_USER);
    }
    http_exchange_delay(exchange, HTTP_REFUSAL_DELAY_MS);
}

static void web_login_set_cookie(struct web_request *request, bool is_secure, const char *token,
                                 int size) {
    char name[WEB_COOKIE_NAME_MAX];
    web_login_print_name(request->web, is_secure, name);
    snprintf(request->cookie, sizeof request->cookie,
             "%s=%.*s; Path=/; HttpOnly; SameSite=Strict%s%s", name, size, token,
             is_secure ? "; Secure" : "", size == 0 ? "; Max-Age=0" : "");
}

/* End the login that the request came with, if any. */
static void web_login_end(struct web *web, const struct web_request *request, bool *is_secure) {
    struct web_session *session = web_login_take_cookie(web, request->exchange, is_secure);
    if (session != NULL) {
        web_login_end_session(session);
    }
}

static void web_login_is_answered(void *context, struct http_login_ask *login) {
    struct web *web = context;
    struct http_exchange *exchange = login->exchange;
    struct web_request *request = exchange->own;
    struct web_identity identity = {.is_local = login->given.is_local};
    char token[WEB_TOKEN_SIZE];
    bool was_secure, is_posted = request->wants_login;
    request->login = NULL;
    if (login->verdict != HTTP_LOGIN_OK && !login->given.is_player) {
        web_answer_forget_known(web, login->given.address);
    }
    if (exchange->stage != HTTP_WAITS) {
        return; /* it has waited too long */
    }
    if (login->verdict != HTTP_LOGIN_OK) {
        exchange->reply.is_login_wanted = !is_posted && login->verdict == HTTP_LOGIN_NEEDED;
        web_login_refuse(exchange, login);
        return;
    }
    identity.kind = WEB_USER;
    identity.is_by_header = !is_posted;
    identity.is_token = login->given.is_token;
    identity.is_player = login->given.is_player;
    identity.player = login->given.player;
    snprintf(identity.user, sizeof identity.user, "%s", login->given.user);
    digest_print(bytes_from_text(login->given.password), identity.digest);
    if (!is_posted) {
        struct web_known *known = &web->known[web->known_next++ % WEB_KNOWN_MAX];
        *known = (struct web_known){.is_token = identity.is_token, .identity = identity};
        snprintf(known->address, sizeof known->address, "%s", login->given.address);
        snprintf(known->given, sizeof known->given, "%s",
                 identity.is_token ? "" : login->given.user);
        web->run_as(request, &identity);
        return;
    }
    web_login_end(web, request, &was_secure);
    web_login_add_session(&web->sessions, &identity, http_server_now(web->http), token);
    /* Is it TLS that the browser speaks, with this server or with a proxy before it? */
    const char *origin = http_request_header(exchange, "Origin");
    bool is_secure =
        http_server_is_secure(web->http) || (origin != NULL && strncmp(origin, "https://", 8) == 0);
    web_login_set_cookie(request, is_secure, token, WEB_TOKEN_SIZE);
    web->run_as(request, &identity);
}

void web_login_log_in(struct web_request *request) {
    struct http_exchange *exchange = request->exchange;
    const char *type = http_request_header(exchange, "Content-Type");
    struct http_login_ask *login =
        http_ask_create_login(exchange, web_engine_check_login, web_login_is_answered);
    if (login == NULL) {
        return;
    }
    buffer_append(&exchange->body, "", 1);
    if (type == NULL || strncmp(type, "application/json", 16) != 0 || exchange->body.is_broken ||
        strlen(exchange->body.at) + 1 != exchange->body.size ||
        !web_login_read(exchange->body.at, &login->given)) {
        http_ask_destroy_login(login);
        http_exchange_refuse(
            exchange, 400,
            "a login is {\"user\": \"...\", \"password\": \"...\"}, with Content-Type: "
            "application/json\n");
        return;
    }
    explicit_bzero(exchange->body.at, exchange->body.size);
    request->login = login;
    http_ask_login(login);
}

/* The machine's time: the engine looks at the end of a token once more, by its own. */
static int64_t web_login_now_s(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}

void web_login_by_header(struct web_request *request) {
    struct http_exchange *exchange = request->exchange;
    struct web *web = request->web;
    struct http_login_ask *login =
        http_ask_create_login(exchange, web_engine_check_login, web_login_is_answered);
    if (login == NULL) {
        return;
    }
    struct http_login *given = &login->given;
    if (!http_ask_take_login(login) || !given->has_password) {
        http_ask_destroy_login(login);
        exchange->reply.is_login_wanted = true;
        http_exchange_refuse(exchange, 401, WEB_NO_SUCH_USER);
        return;
    }
    /* Was it right before, and not too long ago? */
    const char *name = given->is_token ? "" : given->user;
    struct bytes password = bytes_from_text(given->password);
    const struct web_known *found = NULL;
    char digest[DIGEST_TEXT_SIZE];
    digest_print(password, digest);
    for (unsigned i = 0; i < WEB_KNOWN_MAX; i++) {
        const struct web_known *known = &web->known[i];
        if (known->is_token == given->is_token && strcmp(known->address, given->address) == 0 &&
            strcmp(known->given, name) == 0 && digest_equal(known->identity.digest, digest)) {
            found = known;
        }
    }
    if (found != NULL) {
        http_ask_destroy_login(login);
        web->run_as(request, &found->identity);
        return;
    }
    /* Players' tokens are looked at here, so that the engine does not wait for their signatures. */
    if (given->is_token && jwt_is_like(password)) {
        struct jwt_key key;
        given->is_player = true;
        given->player_status = JWT_NO_KEY;
        if (player_keys_choose(&web->engine.server->acl.player_keys, password, &key)) {
            snprintf(given->player.kid, sizeof given->player.kid, "%s", key.kid);
            given->player_status =
                jwt_verify(&key, password, web_login_now_s(), &given->player.claims);
            explicit_bzero(&key, sizeof key);
        }
    }
    request->login = login;
    http_ask_login(login);
}

/* ---- keys of streams: an EventSource of a browser sends no header ---- */

/* The engine has let the user in. */
static bool web_login_print_key(struct web_query *query) {
    struct web *web = query->web;
    char key[WEB_TOKEN_SIZE];
    web_login_add_session(&web->stream_keys, &query->identity, http_server_now(web->http), key);
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_put_text(query, "key", (struct bytes){.at = key, .size = sizeof key});
    web_reply_put_integer(query, "expires_in", WEB_STREAM_KEY_S);
    explicit_bzero(key, sizeof key);
    return web_reply_end(query);
}

const struct web_route web_route_stream_key = {.print = web_login_print_key};

void web_login_by_key(struct web_request *request, struct bytes key) {
    struct http_exchange *exchange = request->exchange;
    struct web *web = request->web;
    static const char name[] = "key=";
    struct web_identity identity = {.kind = WEB_USER, .is_by_header = true};
    struct web_session *found =
        web_login_find_session(&web->stream_keys, key, http_server_now(web->http));
    if (found == NULL) {
        http_exchange_refuse(exchange, 401,
                             "this key of a stream is void: POST /api/v1/stream-key makes one, "
                             "which works once, within %d seconds\n",
                             WEB_STREAM_KEY_S);
        return;
    }
    identity.is_token = found->is_token;
    identity.is_player = found->is_player;
    identity.player = found->player;
    memcpy(identity.user, found->user, sizeof identity.user);
    memcpy(identity.digest, found->digest, sizeof identity.digest);
    identity.is_local = http_exchange_is_local(exchange);
    web_login_end_session(found);
    /* Out of the target: so those who look at the same page send the same, and the key is nowhere any more. */
    char *query = exchange->target + strcspn(exchange->target, "?");
    char *out = query;
    for (char *at = out; *at != '\0';) {
        size_t size = 1 + strcspn(at + 1, "&");
        if (strncmp(at + 1, name, sizeof name - 1) != 0) {
            memmove(out, at, size);
            out += size;
        }
        at += size;
    }
    explicit_bzero(out, strlen(out));
    if (*query == '&') {
        *query = '?'; /* the first parameter was the key */
    }
    web->run_as(request, &identity);
}

void web_login_log_out(struct web *web, struct web_request *request) {
    struct web_identity identity = {.kind = WEB_ANYBODY};
    bool is_secure;
    web_login_end(web, request, &is_secure);
    identity.is_local = http_exchange_is_local(request->exchange);
    web_login_set_cookie(request, is_secure, "", 0);
    web->run_as(request, &identity);
}

/* ---- guests ---- */

void web_login_make_guest(struct web_request *request) {
    enum { NAME_DIGITS = 16, SECONDS = WEB_GUEST_DAYS * 86400 };
    static const char prefix[] = "guest:";
    struct http_exchange *exchange = request->exchange;
    struct web *web = request->web;
    char name[sizeof prefix - 1 + NAME_DIGITS];
    char token[JWT_SIZE_MAX];
    struct jwt_key key;
    static const struct web_route route = {.is_for_all = true};
    const char *kid = web->settings->web_guests;
    if (kid == NULL) {
        http_exchange_refuse(exchange, 403, "this server makes no players: see web-guests\n");
        return;
    }
    if (!player_keys_find(&web->engine.server->acl.player_keys, kid, &key)) {
        http_exchange_refuse(
            exchange, 403, "web-guests is '%s': there is no hs256 player-key of this name\n", kid);
        return;
    }
    unsigned retry_s = web_answer_take_rate(web, &web->guest_rates, exchange, WEB_GUEST_UNITS);
    if (retry_s > 0) {
        exchange->reply.retry_s = retry_s;
        http_exchange_refuse(exchange, 429,
                             "this address has made too many players: see web-guests-per-hour\n");
        return;
    }
    memcpy(name, prefix, sizeof prefix - 1);
    digest_random(name + sizeof prefix - 1, NAME_DIGITS);
    const struct bytes player = {.at = name, .size = sizeof name};
    int64_t now_s = web_login_now_s();
    size_t size = jwt_sign(&key, player, now_s, now_s + SECONDS, token);
    explicit_bzero(&key, sizeof key);
    struct web_query *query = web_query_create(web);
    if (query == NULL) {
        explicit_bzero(token, size);
        http_exchange_refuse(exchange, 503, "out of memory\n");
        return;
    }
    query->route = &route;
    query->answer = request->answer;
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_put_text(query, "player", player);
    web_reply_put_text(query, "token", (struct bytes){.at = token, .size = size});
    web_reply_put_integer(query, "expires_in", SECONDS);
    (void)web_reply_end(query);
    explicit_bzero(token, size);
    if (query->out.is_broken) {
        http_exchange_refuse(exchange, 503, "out of memory\n");
    } else {
        web_answer(exchange, query);
    }
    web_query_leave(query);
}
