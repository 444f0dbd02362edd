/* See http.h.
 *
 * libmicrohttpd runs in our loop: it has an epoll descriptor, which the loop watches, and all of its
 * functions are called on this thread alone. A request that waits for the engine, or for a moment before a
 * refusal, is suspended, and in the list `waiting`.
 *
 * Invariant: a suspended request is in the list, and leaves it when its reply is ready. A login that
 * the engine still has outlives its request. */
#include "server/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/thread_signals.h"
#include "server/http/ask.h"
#include "server/http/http_header.h"
#include "server/system/worker.h"

enum {
    WAIT_STEP_MS = 10,
    SWEEP_MS = 100,
    BACKLOG = 256,
    PEERS_KEPT = HTTP_CONNECTIONS_MAX * 3 / 4,
    SILENT_MS = 200,
};

#define PLAIN_TEXT "text/plain; charset=utf-8"

/* A connection, and since when it is in its phase. */
struct peer {
    struct peer *next, *previous;
    int fd;
    int64_t since_ms, limit_ms; /* limit_ms 0: none */
    bool is_cut;
};

struct route {
    struct ask ask; /* first */
    const struct http_route *is;
    bool is_asked;
    int64_t asked_ms;
};

struct login {
    struct ask ask; /* first */
    struct http_login given;
    enum http_verdict verdict;
    struct request *request; /* NULL: it has been given up */
};

enum stage {
    STAGE_NEW,
    STAGE_LOGIN,   /* the engine has the login */
    STAGE_GATHERS, /* its route is to be asked */
    STAGE_ASKED,   /* the engine has the route's question */
    STAGE_DELAYED, /* its refusal waits */
    STAGE_READY,
};

struct request {
    struct http *http;
    struct MHD_Connection *connection;
    struct peer *peer;
    struct request *next, *previous; /* of those that wait */
    struct route *route;
    struct login *login; /* in STAGE_LOGIN */
    enum stage stage;
    bool is_suspended;
    int64_t due_ms;
    struct http_reply reply;
    bool is_login_wanted; /* 401 */
};

struct http {
    struct MHD_Daemon *daemon;
    struct asks asks;
    uv_loop_t loop;
    uv_thread_t thread;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_idle_t idle;
    uv_check_t check;
    struct http_options options;
    struct route routes[HTTP_ROUTES_MAX];
    unsigned route_count;
    struct peer *peer_first;
    unsigned peer_count;
    struct request *waiting_first;
    uint64_t timer_ms; /* 0: it does not run */
    _Atomic bool is_stopping;
    bool is_ended;
};

/* ---- replies ---- */

__attribute__((format(printf, 3, 4))) static void fill(struct http_reply *reply, unsigned status,
                                                       const char *format, ...) {
    char text[HTTP_ERROR_MAX];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    buffer_clear(&reply->body);
    buffer_append(&reply->body, text,
                  size < (int)sizeof text ? (size_t)(size > 0 ? size : 0) : sizeof text - 1);
    reply->status = status;
    reply->content_type = PLAIN_TEXT;
}

static void begin_phase(struct http *http, struct peer *peer, int64_t limit_ms) {
    if (peer != NULL) {
        peer->since_ms = (int64_t)uv_now(&http->loop);
        peer->limit_ms = limit_ms;
    }
}

static enum MHD_Result send_reply(struct request *request) {
    struct http_reply *reply = &request->reply;
    if (reply->body.is_broken) {
        fill(reply, MHD_HTTP_INTERNAL_SERVER_ERROR, "the reply is too long, or out of memory\n");
    }
    /* The library only reads, though its parameter is not const. */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(reply->body.size, reply->body.at, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (reply->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    if (reply->status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    enum MHD_Result result =
        request->is_login_wanted
            ? MHD_queue_basic_auth_fail_response(request->connection, "leaderboard", response)
            : MHD_queue_response(request->connection, reply->status, response);
    MHD_destroy_response(response);
    begin_phase(request->http, request->peer, HTTP_SEND_LIMIT_MS);
    return result;
}

/* ---- requests that wait ---- */

static void set_timer(struct http *http);

static void wait_in(struct request *request, enum stage stage, int64_t wait_ms) {
    struct http *http = request->http;
    request->stage = stage;
    request->due_ms = (int64_t)uv_now(&http->loop) + wait_ms;
    if (request->is_suspended) {
        return;
    }
    request->is_suspended = true;
    request->previous = NULL;
    request->next = http->waiting_first;
    if (http->waiting_first != NULL) {
        http->waiting_first->previous = request;
    }
    http->waiting_first = request;
    MHD_suspend_connection(request->connection);
    set_timer(http);
}

static void leave_login(struct request *request) {
    if (request->login != NULL) {
        request->login->request = NULL;
        request->login = NULL;
    }
}

static void leave_waiting(struct request *request) {
    struct http *http = request->http;
    leave_login(request);
    if (request->previous != NULL) {
        request->previous->next = request->next;
    } else {
        http->waiting_first = request->next;
    }
    if (request->next != NULL) {
        request->next->previous = request->previous;
    }
    request->is_suspended = false;
}

/* Its reply is filled in. */
static void get_ready(struct request *request) {
    request->stage = STAGE_READY;
    if (request->is_suspended) {
        leave_waiting(request);
        MHD_resume_connection(request->connection); /* and wakes the loop */
    }
}

static void ask_route(struct http *http, struct route *route) {
    int64_t now_ms = (int64_t)uv_now(&http->loop);
    if (route->is_asked || now_ms - route->asked_ms < HTTP_GATHER_MS) {
        return;
    }
    bool is_wanted = false;
    for (struct request *request = http->waiting_first; request; request = request->next) {
        if (request->route == route && request->stage == STAGE_GATHERS) {
            request->stage = STAGE_ASKED;
            is_wanted = true;
        }
    }
    if (is_wanted) {
        route->is_asked = true;
        route->asked_ms = now_ms;
        asks_put(&http->asks, &route->ask);
    }
}

static void answer_route(void *context, struct ask *ask) {
    const struct http *http = context;
    const struct route *route = (struct route *)ask;
    route->is->look(http->options.context, route->is->view);
}

static void route_is_answered(void *context, struct ask *ask) {
    struct http *http = context;
    struct route *route = (struct route *)ask;
    struct request *next;
    route->is_asked = false;
    for (struct request *request = http->waiting_first; request != NULL; request = next) {
        next = request->next;
        if (request->route == route && request->stage == STAGE_ASKED) {
            route->is->write(route->is->view,
                             MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
                                                         MHD_HTTP_HEADER_ACCEPT),
                             &request->reply);
            get_ready(request);
        }
    }
    ask_route(http, route);
}

/* The user may. */
static void run_route(struct request *request) {
    struct route *route = request->route;
    if (route->is->look == NULL) {
        route->is->write(route->is->view, NULL, &request->reply);
        get_ready(request);
        return;
    }
    wait_in(request, STAGE_GATHERS, HTTP_ASK_LIMIT_MS);
    ask_route(request->http, route);
}

/* ---- logging in ---- */

static void answer_login(void *context, struct ask *ask) {
    struct login *login = (struct login *)ask;
    const struct http *http = context;
    login->verdict = http->options.login(http->options.context, &login->given);
}

static void refuse_login(struct request *request, const struct login *login) {
    if (login->verdict == HTTP_LOGIN_REFUSED) {
        fill(&request->reply, MHD_HTTP_FORBIDDEN,
             "not from %s: without a password (requirepass) only this machine is let in while "
             "protected-mode is on; with one, the user must be allowed to run INFO\n",
             login->given.address);
    } else {
        fill(&request->reply, MHD_HTTP_UNAUTHORIZED, "a user and a password are needed\n");
        request->is_login_wanted = true;
    }
    if (login->given.has_password) {
        wait_in(request, STAGE_DELAYED, HTTP_REFUSAL_DELAY_MS);
    } else {
        get_ready(request);
    }
}

static void free_login(struct login *login) {
    memset(&login->given, 0, sizeof login->given);
    memory_free(login);
}

static void login_is_answered(void *context, struct ask *ask) {
    struct login *login = (struct login *)ask;
    struct request *request = login->request;
    (void)context;
    if (request != NULL) {
        request->login = NULL;
        if (login->verdict == HTTP_LOGIN_OK) {
            run_route(request);
        } else {
            refuse_login(request, login);
        }
    }
    free_login(login);
}

static void print_peer(const struct request *request, struct http_login *given) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info != NULL ? info->client_addr : NULL;
    snprintf(given->address, sizeof given->address, "?");
    if (address != NULL && address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        inet_ntop(AF_INET, &v4->sin_addr, given->address, sizeof given->address);
        given->is_local = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    } else if (address != NULL && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)address;
        inet_ntop(AF_INET6, &v6->sin6_addr, given->address, sizeof given->address);
        given->is_local = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
}

/* false: what was given fits no user. */
static bool take_credentials(const struct request *request, struct http_login *given) {
    char *password = NULL;
    char *user = MHD_basic_auth_get_username_password(request->connection, &password);
    bool is_fit = true;
    if (user != NULL) {
        given->has_password = true;
        is_fit = strlen(user) < sizeof given->user && password != NULL &&
                 strlen(password) < sizeof given->password;
    }
    if (user != NULL && is_fit) {
        snprintf(given->user, sizeof given->user, "%s", user);
        snprintf(given->password, sizeof given->password, "%s", password);
    }
    MHD_free(user);
    MHD_free(password);
    return is_fit;
}

static void ask_login(struct request *request) {
    struct login *login = memory_allocate_zeroed(sizeof *login);
    if (login == NULL) {
        fill(&request->reply, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
        get_ready(request);
        return;
    }
    login->ask.answer = answer_login;
    login->ask.done = login_is_answered;
    print_peer(request, &login->given);
    if (!take_credentials(request, &login->given)) {
        login->verdict = HTTP_LOGIN_NEEDED;
        refuse_login(request, login);
        free_login(login);
        return;
    }
    login->request = request;
    request->login = login;
    wait_in(request, STAGE_LOGIN, HTTP_ASK_LIMIT_MS);
    asks_put(&request->http->asks, &login->ask);
}

/* ---- what comes ---- */

static struct route *find_route(struct http *http, const char *path) {
    for (unsigned i = 0; i < http->route_count; i++) {
        if (strcmp(http->routes[i].is->path, path) == 0) {
            return &http->routes[i];
        }
    }
    return NULL;
}

static const char *header(const struct request *request, const char *name) {
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/* Fill in why the request is refused. false: it is not. */
static bool refuse(struct request *request, const char *path, const char *method) {
    struct http *http = request->http;
    const char *size = header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (!http_header_allows_host(header(request, MHD_HTTP_HEADER_HOST), http->options.hosts)) {
        fill(&request->reply, 421,
             "this server does not know itself by that name: ask it by its address, or add the "
             "name to metrics-hosts\n");
    } else if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
               strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        fill(&request->reply, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    } else if ((size != NULL && strcmp(size, "0") != 0) ||
               header(request, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL) {
        fill(&request->reply, 413, "a request has no body here\n");
    } else if ((request->route = find_route(http, path)) == NULL) {
        fill(&request->reply, MHD_HTTP_NOT_FOUND, "there is no such page\n");
        for (unsigned i = 0; i < http->route_count; i++) {
            buffer_append(&request->reply.body, http->routes[i].is->path,
                          strlen(http->routes[i].is->path));
            buffer_append(&request->reply.body, "\n", 1);
        }
    } else {
        return false;
    }
    request->stage = STAGE_READY;
    return true;
}

static struct request *create_request(struct http *http, struct MHD_Connection *connection) {
    struct request *request = memory_allocate_zeroed(sizeof *request);
    if (request == NULL) {
        return NULL;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->http = http;
    request->connection = connection;
    request->peer = info != NULL ? info->socket_context : NULL;
    request->reply = (struct http_reply){.status = MHD_HTTP_OK, .content_type = PLAIN_TEXT};
    buffer_init(&request->reply.body, HTTP_REPLY_SIZE_MAX);
    begin_phase(http, request->peer, 0); /* from here on it waits for us */
    return request;
}

/* The library calls this when the headers are there, once more for each piece of a body and once when
 * all is there; and again when the connection was resumed. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **own) {
    struct http *http = context;
    struct request *request = *own;
    (void)version;
    (void)upload;
    if (request == NULL) {
        request = create_request(http, connection);
        *own = request;
        if (request == NULL) {
            return MHD_NO;
        }
        return refuse(request, path, method) ? send_reply(request) : MHD_YES;
    }
    if (*upload_size > 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    if (request->stage == STAGE_NEW) {
        if (request->route->is->needs_user) {
            ask_login(request);
        } else {
            run_route(request);
        }
    }
    return request->stage == STAGE_READY ? send_reply(request) : MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **own,
                         enum MHD_RequestTerminationCode code) {
    struct request *request = *own;
    (void)connection;
    (void)code;
    if (request == NULL) {
        return;
    }
    begin_phase(context, request->peer, HTTP_IDLE_LIMIT_MS);
    if (request->is_suspended) {
        leave_waiting(request);
    }
    leave_login(request);
    buffer_deinit(&request->reply.body);
    memory_free(request);
    *own = NULL;
}

static void begin_peer(struct http *http, struct MHD_Connection *connection, void **own) {
    struct peer *peer = memory_allocate_zeroed(sizeof *peer);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (peer == NULL || info == NULL) {
        memory_free(peer);
        return;
    }
    peer->fd = info->connect_fd;
    begin_phase(http, peer, HTTP_REQUEST_LIMIT_MS);
    peer->next = http->peer_first;
    if (http->peer_first != NULL) {
        http->peer_first->previous = peer;
    }
    http->peer_first = peer;
    http->peer_count++;
    *own = peer;
    set_timer(http);
}

static void end_peer(struct http *http, struct peer *peer) {
    if (peer->previous != NULL) {
        peer->previous->next = peer->next;
    } else {
        http->peer_first = peer->next;
    }
    if (peer->next != NULL) {
        peer->next->previous = peer->previous;
    }
    http->peer_count--;
    memory_free(peer);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **own,
                          enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        begin_peer(context, connection, own);
    } else if (*own != NULL) {
        end_peer(context, *own);
        *own = NULL;
    }
}

/* ---- the thread ---- */

static void on_idle(uv_idle_t *idle) {
    (void)idle; /* an active idle handle only keeps poll from blocking */
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    (void)poll; /* the work is done in check */
    (void)status;
    (void)events;
}

/* Nothing has come for so long that it may go where there are many: so those who connect and say
 * nothing do not keep others out. */
static bool is_silent(const struct peer *peer, int64_t now_ms) {
    return (peer->limit_ms == HTTP_REQUEST_LIMIT_MS || peer->limit_ms == HTTP_IDLE_LIMIT_MS) &&
           now_ms - peer->since_ms >= SILENT_MS;
}

/* A peer whose time is over is shut down: the library then sees its end. */
static void sweep_peers(struct http *http, int64_t now_ms) {
    bool is_full = http->peer_count > PEERS_KEPT;
    for (struct peer *peer = http->peer_first; peer != NULL; peer = peer->next) {
        bool is_over = peer->limit_ms > 0 && now_ms - peer->since_ms >= peer->limit_ms;
        if (!peer->is_cut && (is_over || (is_full && is_silent(peer, now_ms)))) {
            peer->is_cut = true;
            (void)shutdown(peer->fd, SHUT_RDWR);
        }
    }
}

static void sweep_waiting(struct http *http, int64_t now_ms) {
    struct request *next;
    for (struct request *request = http->waiting_first; request != NULL; request = next) {
        next = request->next;
        if (now_ms < request->due_ms) {
            continue;
        }
        if (request->stage != STAGE_DELAYED) {
            fill(&request->reply, MHD_HTTP_SERVICE_UNAVAILABLE,
                 "busy: the server runs a long command, or has no processor time\n");
        }
        get_ready(request);
    }
}

static void on_timer(uv_timer_t *timer) {
    struct http *http = timer->data;
    int64_t now_ms = (int64_t)uv_now(&http->loop);
    sweep_waiting(http, now_ms);
    sweep_peers(http, now_ms);
    for (unsigned i = 0; i < http->route_count; i++) {
        ask_route(http, &http->routes[i]);
    }
    set_timer(http);
}

/* Every few milliseconds while a request waits, ten times a second while somebody is connected. */
static void set_timer(struct http *http) {
    uint64_t step_ms = http->waiting_first != NULL ? WAIT_STEP_MS
                       : http->peer_first != NULL  ? SWEEP_MS
                                                   : 0;
    if (step_ms == http->timer_ms) {
        return;
    }
    http->timer_ms = step_ms;
    if (step_ms > 0) {
        uv_timer_start(&http->timer, on_timer, step_ms, step_ms);
    } else {
        uv_timer_stop(&http->timer);
    }
}

static void close_handles(struct http *http) {
    uv_close((uv_handle_t *)&http->poll, NULL);
    uv_close((uv_handle_t *)&http->timer, NULL);
    uv_close((uv_handle_t *)&http->idle, NULL);
    uv_close((uv_handle_t *)&http->check, NULL);
    asks_detach(&http->asks);
}

static void end(struct http *http) {
    http->is_ended = true;
    while (http->waiting_first != NULL) {
        fill(&http->waiting_first->reply, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends\n");
        get_ready(http->waiting_first);
    }
    MHD_run(http->daemon);
    MHD_stop_daemon(http->daemon);
    http->daemon = NULL;
    close_handles(http);
}

static void on_check(uv_check_t *check) {
    struct http *http = check->data;
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    if (atomic_load_explicit(&http->is_stopping, memory_order_acquire)) {
        end(http);
        return;
    }
    unsigned count;
    do { /* once there is room again, the library listens again at the beginning of a run */
        count = http->peer_count;
        MHD_run(http->daemon);
    } while (http->peer_count < count);
    if (MHD_get_timeout(http->daemon, &wait_ms) == MHD_YES && wait_ms == 0) {
        uv_idle_start(&http->idle, on_idle);
    } else {
        uv_idle_stop(&http->idle);
    }
    set_timer(http);
}

static void run_thread(void *context) {
    struct http *http = context;
    thread_signals_begin();
    (void)pthread_setname_np(pthread_self(), "leaderboard-web");
    worker_step_behind();
    uv_run(&http->loop, UV_RUN_DEFAULT);
}

/* ---- beginning and end ---- */

int http_listen(const char *address, int64_t port, char *error) {
    char service[16];
    const char *host = strcmp(address, "*") == 0     ? "0.0.0.0"
                       : strcmp(address, "::*") == 0 ? "::"
                                                     : address;
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int on = 1;
    snprintf(service, sizeof service, "%lld", (long long)port);
    int status = getaddrinfo(host, service, &hints, &found);
    if (status != 0) {
        snprintf(error, HTTP_ERROR_MAX, "metrics-bind: cannot listen on address %.100s: %s",
                 address, gai_strerror(status));
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool is_bound = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                    (found->ai_family != AF_INET6 ||
                     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0) &&
                    bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    int code = errno;
    freeaddrinfo(found);
    if (!is_bound) {
        snprintf(error, HTTP_ERROR_MAX,
                 "metrics-port: cannot listen on address %.100s port %lld: %s%s", address,
                 (long long)port, strerror(code),
                 code == EADDRINUSE ? "; another program listens there: choose another port" : "");
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

char *http_read_pem(const char *path, char *error) {
    FILE *file = fopen(path, "re");
    char *text = memory_allocate_zeroed(HTTP_PEM_SIZE_MAX);
    size_t size = 0;
    errno = file != NULL ? ENOMEM : errno;
    if (file != NULL && text != NULL) {
        errno = EIO;
        size = fread(text, 1, HTTP_PEM_SIZE_MAX, file);
    }
    if (size == 0 || size == HTTP_PEM_SIZE_MAX || ferror(file)) {
        snprintf(error, HTTP_ERROR_MAX, "cannot read %.300s: %s", path,
                 size == 0 ? strerror(errno) : "it is too long");
        memory_free(text);
        text = NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return text;
}

static struct MHD_Daemon *start_daemon(struct http *http, int fd) {
    const struct http_options *options = &http->options;
    const struct MHD_OptionItem with_tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem without_tls[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    flags |= options->certificate != NULL ? (unsigned)MHD_USE_TLS : 0;
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONNECTION_SIZE,
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
                            MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY,
                            options->certificate != NULL ? with_tls : without_tls, MHD_OPTION_END);
}

static bool init_handles(struct http *http) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    http->poll.data = http->timer.data = http->check.data = http;
    return info != NULL && uv_poll_init(&http->loop, &http->poll, info->epoll_fd) == 0 &&
           uv_timer_init(&http->loop, &http->timer) == 0 &&
           uv_idle_init(&http->loop, &http->idle) == 0 &&
           uv_check_init(&http->loop, &http->check) == 0 &&
           uv_poll_start(&http->poll, UV_READABLE, on_poll) == 0 &&
           uv_check_start(&http->check, on_check) == 0 && asks_attach(&http->asks, &http->loop);
}

/* What a program can do nothing about, and that happens to none: out of memory or descriptors in the
 * middle of the start. */
static struct http *fail(const char *what, char *error) {
    snprintf(error, HTTP_ERROR_MAX, "cannot serve HTTP: %s", what);
    return NULL;
}

struct http *http_start(int fd, uv_loop_t *engine_loop, const struct http_options *options,
                        char *error) {
    struct http *http = memory_allocate_zeroed(sizeof *http);
    if (http == NULL) {
        close(fd);
        return fail("out of memory", error);
    }
    http->options = *options;
    for (const struct http_route *route = options->routes; route->path != NULL; route++) {
        CHECK(http->route_count < HTTP_ROUTES_MAX);
        http->routes[http->route_count++] = (struct route){
            .ask = {.answer = answer_route, .done = route_is_answered},
            .is = route,
            .asked_ms = -HTTP_GATHER_MS,
        };
    }
    http->daemon = start_daemon(http, fd);
    if (http->daemon == NULL) {
        close(fd);
        memory_free(http);
        return fail(options->certificate != NULL ? "the certificate and its key do not fit"
                                                 : "out of memory or descriptors",
                    error);
    }
    if (uv_loop_init(&http->loop) != 0 || !asks_init(&http->asks, engine_loop, http, http) ||
        !init_handles(http) || uv_thread_create(&http->thread, run_thread, http) != 0) {
        /* The handles cannot be taken back without turning the engine's loop: the server does not start,
         * and the process ends. */
        return fail("out of memory, descriptors or threads", error);
    }
    return http;
}

static void drop(void *context, struct ask *ask) {
    (void)context;
    if (ask->done == login_is_answered) {
        free_login((struct login *)ask);
    }
}

void http_stop(struct http *http) {
    atomic_store_explicit(&http->is_stopping, true, memory_order_release);
    asks_wake_asker(&http->asks);
    uv_thread_join(&http->thread);
    CHECK(uv_loop_close(&http->loop) == 0);
    asks_close(&http->asks, drop);
}

void http_destroy(struct http *http) {
    asks_deinit(&http->asks);
    memory_free(http);
}
