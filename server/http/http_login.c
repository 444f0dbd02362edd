/* See http.h. */
#include "server/http/http.h"

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

static bool http_login_answer(void *context, struct ask *ask) {
    struct http_login_ask *login = (struct http_login_ask *)ask;
    login->verdict = login->check(context, &login->given);
    return true;
}

static void http_login_done(void *context, struct ask *ask) {
    struct http_login_ask *login = (struct http_login_ask *)ask;
    if (login->exchange != NULL) {
        login->done(context, login);
    }
    http_login_destroy(login);
}

struct http_login_ask *
http_login_create(struct http_exchange *exchange,
                  enum http_verdict (*check)(void *engine_context, struct http_login *login),
                  void (*done)(void *context, struct http_login_ask *login)) {
    struct http_login_ask *login = memory_allocate_zeroed(sizeof *login);
    if (login == NULL) {
        http_exchange_refuse(exchange, 503, "out of memory\n");
        return NULL;
    }
    login->ask = (struct ask){.answer = http_login_answer, .done = http_login_done};
    login->exchange = exchange;
    login->check = check;
    login->done = done;
    login->given.is_local = http_exchange_peer(exchange, login->given.address);
    login->given.is_client_local = http_exchange_is_local(exchange);
    login->given.is_secure = http_server_is_secure(exchange->server);
    return login;
}

/* User and password. false: what was given fits no user. */
static bool http_login_take_basic(const struct http_exchange *exchange, struct http_login *given) {
    char *password = NULL;
    char *user = MHD_basic_auth_get_username_password(exchange->connection, &password);
    bool is_fit = user == NULL || (strlen(user) < HTTP_USER_MAX && password != NULL &&
                                   strlen(password) < HTTP_PASSWORD_MAX);
    given->has_password = user != NULL;
    given->user[0] = given->password[0] = '\0';
    if (user != NULL && is_fit) {
        snprintf(given->user, sizeof given->user, "%s", user);
        snprintf(given->password, sizeof given->password, "%s", password);
    }
    MHD_free(user);
    MHD_free(password);
    return is_fit;
}

bool http_login_take_header(struct http_login_ask *login) {
    struct http_login *given = &login->given;
    const char *header = http_header_find(login->exchange, "Authorization");
    struct bytes token;
    if (header != NULL && http_header_bearer(header, &token)) {
        given->has_password = given->is_token = true;
        if (token.size == 0 || token.size >= sizeof given->password) {
            return false;
        }
        memcpy(given->password, token.at, token.size);
        given->password[token.size] = '\0';
        return true;
    }
    return http_login_take_basic(login->exchange, given);
}

void http_login_ask(struct http_login_ask *login) {
    http_exchange_wait(login->exchange, HTTP_ASK_LIMIT_MS);
    http_server_ask(login->exchange->server, &login->ask);
}

void http_login_refuse_too_soon(struct http_exchange *exchange, const struct http_login *given) {
    http_exchange_refuse(
        exchange, 429,
        "too many wrong passwords or tokens from this address: try again in %lld seconds\n",
        (long long)(given->retry_ms + 999) / 1000);
}

void http_login_leave(struct http_login_ask *login) {
    if (login != NULL) {
        login->exchange = NULL;
    }
}

void http_login_destroy(struct http_login_ask *login) {
    explicit_bzero(&login->given, sizeof login->given);
    memory_free(login);
}

bool http_login_drop(struct ask *ask) {
    if (ask->done != http_login_done) {
        return false;
    }
    http_login_destroy((struct http_login_ask *)ask);
    return true;
}
