/* See http.h.
 *
 * Each way is a stack that many may push to and one takes as a whole, so that neither side can be held
 * up by the other in the middle of it; what was taken is turned round to be in order. */
#include "server/http/http.h"

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

#include "server/system/clock.h"

/* ---- one way ---- */

/* From first, the newest, to last. Who finds nothing there wakes the other side, which takes all that comes until it
 * wakes. */
static void http_ask_push(struct ask_way *way, struct ask *first, struct ask *last) {
    struct ask *newest = atomic_load_explicit(&way->newest, memory_order_relaxed);
    do {
        last->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&way->newest, &newest, first,
                                                    memory_order_release, memory_order_relaxed));
    if (newest == NULL) { /* the other side may have the question already */
        worker_wakeup_write(&way->wakeup);
    }
}

/* All that is there, the oldest first. */
static struct ask *http_ask_take(struct ask_way *way) {
    struct ask *newest = atomic_exchange_explicit(&way->newest, NULL, memory_order_acquire);
    struct ask *first = NULL;
    while (newest != NULL) {
        struct ask *older = newest->next;
        newest->next = first;
        first = newest;
        newest = older;
    }
    return first;
}

/* The handle keeps no loop alive. */
static bool http_ask_watch(struct ask_way *way, uv_loop_t *loop, void (*on_wake)(void *asks),
                           struct asks *asks) {
    if (!worker_wakeup_init(&way->wakeup, loop)) {
        return false;
    }
    way->wakeup.on_wake = on_wake;
    way->wakeup.context = asks;
    uv_unref((uv_handle_t *)&way->wakeup.poll);
    return true;
}

/* ---- the engine ---- */

static void http_ask_on_question(void *context) {
    struct asks *asks = context;
    struct ask **last = &asks->left_first;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = http_ask_take(&asks->to_engine);
    struct ask *newest = NULL;
    struct ask *oldest = NULL;
    uint64_t begin_ticks = clock_ticks();
    for (int i = 0; i < ASKS_PER_TURN && asks->left_first != NULL &&
                    clock_ticks_to_ns(clock_ticks() - begin_ticks) < ASKS_NS_PER_TURN;
         i++) {
        struct ask *ask = asks->left_first;
        asks->left_first = ask->next;
        if (ask->answer(asks->engine_context, ask)) {
            ask->next = newest;
            oldest = newest == NULL ? ask : oldest;
            newest = ask;
        }
    }
    if (newest != NULL) {
        http_ask_push(&asks->to_asker, newest, oldest);
    }
    if (asks->left_first != NULL) {
        worker_wakeup_write(&asks->to_engine.wakeup); /* in the next turn */
    }
}

bool http_ask_init(struct asks *asks, uv_loop_t *engine_loop, void *engine_context,
                   void *asker_context) {
    asks->engine_context = engine_context;
    asks->asker_context = asker_context;
    return http_ask_watch(&asks->to_engine, engine_loop, http_ask_on_question, asks);
}

static void http_ask_drop_all(struct asks *asks, struct ask *ask,
                              void (*drop)(void *context, struct ask *ask)) {
    while (ask != NULL) {
        struct ask *next = ask->next;
        drop(asks->asker_context, ask);
        ask = next;
    }
}

void http_ask_answer(struct asks *asks, struct ask *ask) {
    http_ask_push(&asks->to_asker, ask, ask);
}

void http_ask_close(struct asks *asks, void (*drop)(void *context, struct ask *ask)) {
    worker_wakeup_close(&asks->to_engine.wakeup);
    http_ask_drop_all(asks, asks->left_first, drop);
    http_ask_drop_all(asks, http_ask_take(&asks->to_engine), drop);
    http_ask_drop_all(asks, http_ask_take(&asks->to_asker), drop);
    asks->left_first = NULL;
}

void http_ask_deinit(struct asks *asks) {
    worker_wakeup_deinit(&asks->to_engine.wakeup);
    worker_wakeup_deinit(&asks->to_asker.wakeup);
}

/* ---- the asker ---- */

static void http_ask_on_answer(void *context) {
    struct asks *asks = context;
    struct ask *ask = http_ask_take(&asks->to_asker);
    while (ask != NULL) {
        struct ask *next = ask->next;
        ask->done(asks->asker_context, ask);
        ask = next;
    }
}

bool http_ask_attach(struct asks *asks, uv_loop_t *asker_loop) {
    return http_ask_watch(&asks->to_asker, asker_loop, http_ask_on_answer, asks);
}

void http_ask_put(struct asks *asks, struct ask *ask) {
    ask->next = asks->put_newest;
    asks->put_oldest = asks->put_newest == NULL ? ask : asks->put_oldest;
    asks->put_newest = ask;
    if (++asks->put_count == ASKS_PER_TURN) {
        http_ask_send(asks);
    }
}

void http_ask_send(struct asks *asks) {
    if (asks->put_newest != NULL) {
        http_ask_push(&asks->to_engine, asks->put_newest, asks->put_oldest);
        asks->put_newest = asks->put_oldest = NULL;
        asks->put_count = 0;
    }
}

void http_ask_wake_asker(struct asks *asks) {
    worker_wakeup_write(&asks->to_asker.wakeup);
}

void http_ask_detach(struct asks *asks) {
    http_ask_send(asks);
    worker_wakeup_close(&asks->to_asker.wakeup);
}

/* ---- logins ---- */

static bool http_ask_answer_login(void *context, struct ask *ask) {
    struct http_login_ask *login = (struct http_login_ask *)ask;
    login->verdict = login->check(context, &login->given);
    return true;
}

static void http_ask_end_login(void *context, struct ask *ask) {
    struct http_login_ask *login = (struct http_login_ask *)ask;
    if (login->exchange != NULL) {
        login->done(context, login);
    }
    http_ask_destroy_login(login);
}

struct http_login_ask *
http_ask_create_login(struct http_exchange *exchange,
                      enum http_verdict (*check)(void *engine_context, struct http_login *login),
                      void (*done)(void *context, struct http_login_ask *login)) {
    struct http_login_ask *login = memory_allocate_zeroed(sizeof *login);
    if (login == NULL) {
        http_exchange_refuse(exchange, 503, "out of memory\n");
        return NULL;
    }
    login->ask = (struct ask){.answer = http_ask_answer_login, .done = http_ask_end_login};
    login->exchange = exchange;
    login->check = check;
    login->done = done;
    login->given.is_local = http_exchange_peer(exchange, login->given.address);
    login->given.is_client_local = http_exchange_is_local(exchange);
    login->given.is_secure = http_server_is_secure(exchange->server);
    return login;
}

bool http_ask_take_login(struct http_login_ask *login) {
    struct http_login *given = &login->given;
    const char *header = http_request_header(login->exchange, "Authorization");
    struct bytes token;
    if (header != NULL && http_request_bearer(header, &token)) {
        given->has_password = given->is_token = true;
        if (token.size == 0 || token.size >= sizeof given->password) {
            return false;
        }
        memcpy(given->password, token.at, token.size);
        given->password[token.size] = '\0';
        return true;
    }
    /* User and password, if anything. */
    char *password = NULL;
    char *user = MHD_basic_auth_get_username_password(login->exchange->connection, &password);
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

void http_ask_login(struct http_login_ask *login) {
    http_exchange_wait(login->exchange, HTTP_ASK_LIMIT_MS);
    http_server_ask(login->exchange->server, &login->ask);
}

void http_ask_refuse_too_soon(struct http_exchange *exchange, const struct http_login *given) {
    http_exchange_refuse(
        exchange, 429,
        "too many wrong passwords or tokens from this address: try again in %lld seconds\n",
        (long long)(given->retry_ms + 999) / 1000);
}

void http_ask_leave_login(struct http_login_ask *login) {
    if (login != NULL) {
        login->exchange = NULL;
    }
}

void http_ask_destroy_login(struct http_login_ask *login) {
    explicit_bzero(&login->given, sizeof login->given);
    memory_free(login);
}

bool http_ask_drop_login(struct ask *ask) {
    if (ask->done != http_ask_end_login) {
        return false;
    }
    http_ask_destroy_login((struct http_login_ask *)ask);
    return true;
}
