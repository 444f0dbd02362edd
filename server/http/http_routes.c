/* See http_routes.h. */
#include "server/http/http_routes.h"

#include <stdio.h>
#include <unistd.h>

#include "codec/list.h"

struct route {
    struct ask ask; /* first */
    const struct http_route *is;
    bool is_asked;
    int64_t asked_ms;
    struct request *first; /* those that wait for it */
};

/* A request's own part. */
struct request {
    struct http_exchange *exchange;
    struct route *route;
    struct http_login_ask *login;    /* that the engine has */
    struct request *next, *previous; /* of those that wait for the same route */
    bool is_gathered;                /* it is in the route's list */
    bool is_asked;                   /* the engine has its route's question */
};

struct http_routes {
    struct http_server *server;
    struct http_routes_options options;
    struct http_handler handler;
    struct route routes[HTTP_ROUTES_MAX];
    unsigned route_count;
};

/* ---- routes ---- */

static void http_routes_ask(struct http_routes *http, struct route *route) {
    int64_t now_ms = http_server_now(http->server);
    if (route->is_asked || now_ms - route->asked_ms < HTTP_GATHER_MS) {
        return;
    }
    for (struct request *request = route->first; request != NULL; request = request->next) {
        request->is_asked = true;
        route->is_asked = true;
    }
    if (route->is_asked) {
        route->asked_ms = now_ms;
        http_server_ask(http->server, &route->ask);
    }
}

static bool http_routes_answer(void *context, struct ask *ask) {
    const struct http_routes *http = context;
    const struct route *route = (struct route *)ask;
    route->is->look(http->options.context, route->is->view);
    return true;
}

static void http_routes_part(struct request *request) {
    if (!request->is_gathered) {
        return;
    }
    LIST_PART(request->route->first, request);
    request->is_gathered = false;
}

static void http_routes_on_answer(void *context, struct ask *ask) {
    struct http_routes *http = context;
    struct route *route = (struct route *)ask;
    struct request *next;
    route->is_asked = false;
    for (struct request *request = route->first; request != NULL; request = next) {
        next = request->next;
        if (request->is_asked) {
            http_routes_part(request);
            if (request->exchange->stage == HTTP_WAITS) {
                route->is->write(route->is->view, http_header_find(request->exchange, "Accept"),
                                 &request->exchange->reply);
                http_exchange_ready(request->exchange);
            }
        }
    }
    http_routes_ask(http, route);
}

/* The user may. */
static void http_routes_run(struct http_routes *http, struct request *request) {
    struct route *route = request->route;
    if (route->is->look == NULL) {
        route->is->write(route->is->view, NULL, &request->exchange->reply);
        http_exchange_ready(request->exchange);
        return;
    }
    request->is_gathered = true;
    LIST_JOIN(route->first, request);
    http_exchange_wait(request->exchange, HTTP_ASK_LIMIT_MS);
    http_routes_ask(http, route);
}

/* ---- logging in ---- */

static void http_routes_refuse_login(struct http_exchange *exchange,
                                     const struct http_login_ask *login) {
    if (login->verdict == HTTP_LOGIN_TOO_SOON) {
        http_login_refuse_too_soon(exchange, &login->given);
        return;
    }
    if (login->verdict == HTTP_LOGIN_REFUSED) {
        http_reply_fill(exchange, 403,
                        HTTP_LOCAL_ALONE "; with one, the user must be allowed to run INFO\n",
                        login->given.address);
    } else {
        http_reply_fill(exchange, 401, "a user and a password, or a token, are needed\n");
        exchange->reply.is_login_wanted = true;
    }
    if (login->given.has_password) {
        http_exchange_delay(exchange, HTTP_REFUSAL_DELAY_MS);
    } else {
        http_exchange_ready(exchange);
    }
}

static void http_routes_on_login(void *context, struct http_login_ask *login) {
    struct http_exchange *exchange = login->exchange;
    struct request *request = exchange->own;
    request->login = NULL;
    if (exchange->stage != HTTP_WAITS) {
        return; /* it has waited too long */
    }
    if (login->verdict == HTTP_LOGIN_OK) {
        http_routes_run(context, request);
    } else {
        http_routes_refuse_login(exchange, login);
    }
}

static enum http_verdict http_routes_check_login(void *context, struct http_login *login) {
    const struct http_routes *http = context;
    return http->options.login(http->options.context, login);
}

/* ---- what comes ---- */

static void http_routes_handle(void *context, struct http_exchange *exchange) {
    struct http_routes *http = context;
    struct route *route = NULL;
    for (unsigned i = 0; i < http->route_count && route == NULL; i++) {
        bool is_it = strcmp(http->routes[i].is->path, exchange->path) == 0;
        route = is_it ? &http->routes[i] : NULL;
    }
    if (route == NULL) {
        http_reply_fill(exchange, 404, "there is no such page\n");
        for (unsigned i = 0; i < http->route_count; i++) {
            const char *path = http->routes[i].is->path;
            buffer_append(&exchange->reply.body, path, strlen(path));
            buffer_append(&exchange->reply.body, "\n", 1);
        }
        http_exchange_ready(exchange);
        return;
    }
    struct request *request = memory_allocate_zeroed(sizeof *request);
    if (request == NULL) {
        http_exchange_refuse(exchange, 503, "out of memory\n");
        return;
    }
    exchange->own = request;
    request->exchange = exchange;
    request->route = route;
    if (!route->is->needs_user) {
        http_routes_run(http, request);
        return;
    }
    struct http_login_ask *login =
        http_login_create(exchange, http_routes_check_login, http_routes_on_login);
    if (login == NULL) {
        return;
    }
    if (!http_login_take_header(login)) {
        login->verdict = HTTP_LOGIN_NEEDED;
        http_routes_refuse_login(exchange, login);
        http_login_destroy(login);
        return;
    }
    request->login = login;
    http_login_ask(login);
}

static void http_routes_leave(void *context, struct http_exchange *exchange) {
    struct request *request = exchange->own;
    (void)context;
    if (request != NULL) {
        http_routes_part(request);
        http_login_leave(request->login);
        memory_free(request);
    }
}

static void http_routes_step(void *context, int64_t now_ms) {
    struct http_routes *http = context;
    (void)now_ms;
    for (unsigned i = 0; i < http->route_count; i++) {
        http_routes_ask(http, &http->routes[i]);
    }
}

static void http_routes_drop(void *context, struct ask *ask) {
    (void)context;
    (void)http_login_drop(ask);
}

/* ---- beginning and end ---- */

struct http_routes *http_routes_start(int fd, uv_loop_t *engine_loop,
                                      const struct http_routes_options *options, char *error) {
    struct http_routes *http = memory_allocate_zeroed(sizeof *http);
    if (http == NULL) {
        close(fd);
        snprintf(error, HTTP_ERROR_MAX, "cannot serve HTTP: out of memory");
        return NULL;
    }
    http->options = *options;
    for (const struct http_route *route = options->routes; route->path != NULL; route++) {
        CHECK(http->route_count < HTTP_ROUTES_MAX);
        http->routes[http->route_count++] = (struct route){
            .ask = {.answer = http_routes_answer, .done = http_routes_on_answer},
            .is = route,
            .asked_ms = -HTTP_GATHER_MS,
        };
    }
    http->handler = (struct http_handler){
        .context = http,
        .engine_context = http,
        .handle = http_routes_handle,
        .leave = http_routes_leave,
        .step = http_routes_step,
        .drop = http_routes_drop,
    };
    const struct http_server_options server = {
        .handler = &http->handler,
        .place = &http->server,
        .connections_max = HTTP_CONNECTIONS_MAX,
        .hosts = options->hosts,
        .hosts_setting = "metrics-hosts",
        .certificate = options->certificate,
        .key = options->key,
    };
    if (http_server_start(fd, engine_loop, &server, error) == NULL) {
        memory_free(http);
        return NULL;
    }
    return http;
}

void http_routes_stop(struct http_routes *http) {
    http_server_stop(http->server);
}

void http_routes_destroy(struct http_routes *http) {
    http_server_destroy(http->server);
    memory_free(http);
}
