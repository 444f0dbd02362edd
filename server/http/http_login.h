/* A user's password or token, looked at by the engine before a request is handled. It outlives its request. */
#ifndef SERVER_HTTP_LOGIN_H
#define SERVER_HTTP_LOGIN_H

#include "server/http/http.h"

enum {
    HTTP_ASK_LIMIT_MS = 2000,     /* for the engine's answer */
    HTTP_REFUSAL_DELAY_MS = 1000, /* before a wrong password is answered */
};

enum http_verdict {
    HTTP_LOGIN_OK,
    HTTP_LOGIN_NEEDED,   /* 401: a password is needed, or the one given is wrong */
    HTTP_LOGIN_REFUSED,  /* 403: not from there, or not this user */
    HTTP_LOGIN_TOO_SOON, /* 429: too many wrong passwords: it was not looked at */
};

/* Who asks. */
struct http_login {
    char address[HTTP_ADDRESS_MAX]; /* the peer's, without a port */
    bool is_local;                  /* the connection is of this machine */
    bool is_client_local;           /* so is the client: no proxy passes it on */
    bool is_secure;                 /* over TLS */
    bool has_password;              /* user and password were given, or a token */
    bool is_token;                  /* the password is a token; whose, the engine says in user */
    char user[HTTP_USER_MAX], password[HTTP_PASSWORD_MAX];
    int64_t retry_ms; /* set with TOO_SOON */
    /* A player's token, which was looked at before the engine is asked: what it says, and whether that is right. */
    bool is_player;
    enum jwt_status player_status;
    struct jwt_player player;
    const char *wrong; /* set by the engine; NULL: not said */
};

struct http_login_ask {
    struct ask ask; /* first */
    struct http_login given;
    enum http_verdict (*check)(void *engine_context, struct http_login *login);
    enum http_verdict verdict;
    struct http_exchange *exchange; /* NULL: it has been given up */
    void (*done)(void *context, struct http_login_ask *login);
};

/* One that has the client filled in; check and done as in the struct. NULL: out of memory, which is replied. */
struct http_login_ask *http_login_create(struct http_exchange *exchange,
                                         enum http_verdict (*check)(void *engine_context,
                                                                    struct http_login *login),
                                         void (*done)(void *context, struct http_login_ask *login));
/* Take what the header Authorization has: user and password (Basic), or a token (Bearer, RFC 6750), if anything.
 * false: what was given fits no user. */
MUST_CHECK bool http_login_take_header(struct http_login_ask *login);
/* Ask the engine. done is called on the HTTP thread, unless the request was given up meanwhile; then the
 * login is freed. */
void http_login_ask(struct http_login_ask *login);
/* The request is over. login: NULL: none. */
void http_login_leave(struct http_login_ask *login);
/* Forgets the password, and frees. */
void http_login_destroy(struct http_login_ask *login);
/* A question that was dropped: free it, if it is a login. */
bool http_login_drop(struct ask *ask);

#endif
