/* Logins of the page: a cookie that names one, and the user's digest, by which the engine sees that the
 * password is still the user's.
 *
 * The cookie is not for scripts (HttpOnly), and not sent along from other sites (SameSite=Strict). Of it only
 * the digest is kept. */
#include <stdio.h>

#include "server/web/web_parts.h"

#define COOKIE "leaderboard"
#define SECURE "__Host-" /* browsers take such a cookie from this name alone, over TLS alone */

/* ---- the table ---- */

bool web_sessions_init(struct web_sessions *sessions, int64_t timeout_ms) {
    sessions->timeout_ms = timeout_ms;
    sessions->at = memory_allocate_zeroed(WEB_SESSIONS_MAX * sizeof *sessions->at);
    return sessions->at != NULL;
}

void web_sessions_deinit(struct web_sessions *sessions) {
    memory_free(sessions->at);
}

static bool web_login_is_over(const struct web_sessions *sessions,
                              const struct web_session *session, int64_t now_ms) {
    return !session->is_used || now_ms - session->used_at_ms >= sessions->timeout_ms;
}

/* A free place; else that of this user's that was used longest ago, if the user has many; else of anybody's. */
static struct web_session *web_login_make_room(struct web_sessions *sessions, const char *user,
                                               int64_t now_ms) {
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
        if (strcmp(each->user, user) == 0) {
            own_count++;
            if (own_oldest == NULL || each->used_at_ms < own_oldest->used_at_ms) {
                own_oldest = each;
            }
        }
    }
    if (own_count >= WEB_USER_SESSIONS_MAX) {
        return own_oldest;
    }
    return room != NULL ? room : oldest;
}

void web_sessions_add(struct web_sessions *sessions, const char *user, const char *digest,
                      int64_t now_ms, char *token) {
    struct web_session *session = web_login_make_room(sessions, user, now_ms);
    *session = (struct web_session){.is_used = true, .used_at_ms = now_ms};
    digest_random(token, WEB_TOKEN_SIZE);
    digest_print((struct bytes){.at = token, .size = WEB_TOKEN_SIZE}, session->token_digest);
    memcpy(session->digest, digest, DIGEST_TEXT_SIZE);
    snprintf(session->user, sizeof session->user, "%s", user);
}

struct web_session *web_sessions_find(struct web_sessions *sessions, struct bytes token,
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

void web_sessions_end(struct web_session *session) {
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
web_login_find_session(struct web *web, const struct http_exchange *exchange, bool *is_secure) {
    const char *cookies = http_exchange_header(exchange, "Cookie");
    char name[WEB_COOKIE_NAME_MAX];
    web_login_print_name(web, *is_secure = true, name);
    struct bytes token = http_cookie_find(cookies, name);
    if (token.at == NULL && !http_server_is_secure(web->http)) {
        web_login_print_name(web, *is_secure = false, name);
        token = http_cookie_find(cookies, name);
    }
    return token.at != NULL ? web_sessions_find(&web->sessions, token, http_server_now(web->http))
                            : NULL;
}

void web_identify(struct web *web, struct web_request *request, struct web_identity *identity) {
    bool is_secure;
    struct web_session *session = web_login_find_session(web, request->exchange, &is_secure);
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

bool web_keep_login(struct web *web, const struct web_request *request) {
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

void web_identity_set(struct web_identity *identity, const struct http_login *login) {
    identity->kind = WEB_USER;
    snprintf(identity->user, sizeof identity->user, "%s", login->user);
    digest_print(bytes_from_text(login->password), identity->digest);
}

/* ---- POST ---- */

/* Four hexadecimal digits; -1: they are not there. */
static int web_login_take_four(const char *at) {
    unsigned code = 0;
    if (strspn(at, "0123456789abcdefABCDEF") < 4 || sscanf(at, "%4x", &code) != 1) {
        return -1;
    }
    return (int)code;
}

/* A character given by \\u and its code, or by two of them; *at is behind the first u. Bytes written; 0: it is
 * none that a name or a password may have. */
static size_t web_login_take_code(const char **at, char *out) {
    enum { HIGH = 0xd800, LOW = 0xdc00, END = 0xe000 };
    int code = web_login_take_four(*at);
    *at += 4;
    if (code <= 0 || (code >= LOW && code < END)) {
        return 0;
    }
    if (code >= HIGH && code < END) {
        int low = (*at)[0] == '\\' && (*at)[1] == 'u' ? web_login_take_four(*at + 2) : -1;
        if (low < LOW || low >= END) {
            return 0;
        }
        *at += 6;
        code = 0x10000 + ((code - HIGH) << 10) + (low - LOW);
    }
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (size_t i = size; i-- > 1; code >>= 6) {
        out[i] = (char)(0x80 | (code & 0x3f));
    }
    out[0] = (char)(marks[size] | code);
    return size;
}

/* What stands behind a backslash. Bytes written; 0: nothing that may. */
static size_t web_login_take_escaped(const char **at, char *out) {
    static const char escaped[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    char byte = *(*at)++;
    if (byte == 'u') {
        return strlen(*at) >= 4 ? web_login_take_code(at, out) : 0;
    }
    const char *found = byte != '\0' ? strchr(escaped, byte) : NULL;
    if (found == NULL) {
        return 0;
    }
    out[0] = meant[found - escaped];
    return 1;
}

/* A string of JSON at *at, into out (room for size_max with its terminator). false: it is none, or too long. */
static bool web_login_take_string(const char **at, char *out, size_t size_max) {
    size_t size = 0;
    if (*(*at)++ != '"') {
        return false;
    }
    while (**at != '"') {
        char taken[4] = {**at};
        size_t count = 1;
        if ((unsigned char)**at < 0x20) {
            return false; /* also the end of the text */
        }
        (*at)++;
        if (taken[0] == '\\') {
            count = web_login_take_escaped(at, taken);
        }
        if (count == 0 || size + count >= size_max) {
            return false;
        }
        memcpy(out + size, taken, count);
        size += count;
    }
    out[size] = '\0';
    (*at)++;
    return true;
}

static void web_login_skip_blanks(const char **at) {
    *at += strspn(*at, " \t\r\n");
}

bool web_read_login(const char *at, struct http_login *login) {
    char name[16];
    bool has_user = false;
    web_login_skip_blanks(&at);
    if (*at != '{') {
        return false;
    }
    do {
        at++;
        web_login_skip_blanks(&at);
        if (!web_login_take_string(&at, name, sizeof name)) {
            return false;
        }
        web_login_skip_blanks(&at);
        if (*at++ != ':') {
            return false;
        }
        web_login_skip_blanks(&at);
        bool is_user = strcmp(name, "user") == 0;
        if (!is_user && strcmp(name, "password") != 0) {
            return false;
        }
        if (is_user ? !web_login_take_string(&at, login->user, sizeof login->user)
                    : !web_login_take_string(&at, login->password, sizeof login->password)) {
            return false;
        }
        has_user |= is_user;
        login->has_password |= !is_user;
        web_login_skip_blanks(&at);
    } while (*at == ',');
    if (*at++ != '}') {
        return false;
    }
    web_login_skip_blanks(&at);
    return *at == '\0' && has_user && login->has_password;
}

void web_refuse_login(struct http_exchange *exchange, const struct http_login_ask *login) {
    switch (login->verdict) {
    case HTTP_LOGIN_TOO_SOON:
        web_refuse(exchange, 429,
                   "too many wrong passwords from this address: try again in %lld seconds",
                   (long long)(login->given.retry_ms + 999) / 1000);
        return;
    case HTTP_LOGIN_REFUSED:
        web_refuse(exchange, 403,
                   "no password is taken from %s without TLS while protected-mode is on",
                   login->given.address);
        return;
    case HTTP_LOGIN_OK:
    case HTTP_LOGIN_NEEDED:
        break;
    }
    http_exchange_fill(exchange, 401, "no user has this name and password\n");
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

/* Is it TLS that the browser speaks, with this server or with a proxy before it? */
static bool web_login_is_browser_secure(const struct web *web,
                                        const struct http_exchange *exchange) {
    const char *origin = http_exchange_header(exchange, "Origin");
    return http_server_is_secure(web->http) ||
           (origin != NULL && strncmp(origin, "https://", 8) == 0);
}

/* The login that the request came with, if any. */
static void web_login_end(struct web *web, struct web_request *request, bool *is_secure) {
    struct web_session *session = web_login_find_session(web, request->exchange, is_secure);
    if (session != NULL) {
        web_sessions_end(session);
        web_views_check_logins(web);
    }
}

static void web_login_reply_me(struct web *web, struct web_request *request,
                               const struct web_identity *identity) {
    struct web_query *query = web_query_create(web);
    if (query == NULL) {
        web_refuse(request->exchange, 503, "out of memory");
        return;
    }
    query->identity = *identity;
    query->route = &web_route_me;
    web_run(request, query);
}

static void web_login_is_answered(void *context, struct http_login_ask *login) {
    struct web *web = context;
    struct http_exchange *exchange = login->exchange;
    struct web_request *request = exchange->own;
    struct web_identity identity = {.is_local = login->given.is_local};
    char token[WEB_TOKEN_SIZE];
    bool was_secure;
    request->login = NULL;
    if (exchange->stage != HTTP_WAITS) {
        return; /* it has waited too long */
    }
    if (login->verdict != HTTP_LOGIN_OK) {
        web_refuse_login(exchange, login);
        return;
    }
    web_login_end(web, request, &was_secure);
    web_identity_set(&identity, &login->given);
    web_sessions_add(&web->sessions, identity.user, identity.digest, http_server_now(web->http),
                     token);
    web_login_set_cookie(request, web_login_is_browser_secure(web, exchange), token,
                         WEB_TOKEN_SIZE);
    web_login_reply_me(web, request, &identity);
}

void web_log_in(struct web *web, struct web_request *request) {
    struct http_exchange *exchange = request->exchange;
    const char *type = http_exchange_header(exchange, "Content-Type");
    struct http_login_ask *login = http_login_create(exchange);
    (void)web;
    if (login == NULL) {
        web_refuse(exchange, 503, "out of memory");
        return;
    }
    buffer_append(&exchange->body, "", 1);
    if (type == NULL || strncmp(type, "application/json", 16) != 0 || exchange->body.is_broken ||
        strlen(exchange->body.at) + 1 != exchange->body.size ||
        !web_read_login(exchange->body.at, &login->given)) {
        http_login_destroy(login);
        web_refuse(exchange, 400,
                   "a login is {\"user\": \"...\", \"password\": \"...\"}, with Content-Type: "
                   "application/json");
        return;
    }
    explicit_bzero(exchange->body.at, exchange->body.size);
    login->check = web_engine_check_login;
    login->done = web_login_is_answered;
    request->login = login;
    http_login_ask(login, exchange);
}

void web_log_out(struct web *web, struct web_request *request) {
    struct web_identity identity = {.kind = WEB_ANYBODY};
    bool is_secure;
    web_login_end(web, request, &is_secure);
    identity.is_local = http_exchange_is_local(request->exchange);
    web_login_set_cookie(request, is_secure, "", 0);
    web_login_reply_me(web, request, &identity);
}
