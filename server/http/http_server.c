/* See http_server.h.
 *
 * libmicrohttpd runs in our loop: it has an epoll descriptor, which the loop watches, and all of its
 * functions are called on this thread alone. A request that waits for the engine, or for a moment before a
 * refusal, is suspended, and in the list `waiting`. A stream that has nothing to send is suspended, too.
 *
 * Invariant: a suspended request is in one of the lists, and leaves `waiting` when its reply is ready. */
#include "server/http/http_server.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "codec/thread_signals.h"
#include "server/http/http_server_parts.h"
#include "server/system/worker.h"

enum { WAIT_STEP_MS = 10, STREAM_STEP_MS = 25, SWEEP_MS = 100 };

/* ---- for handlers ---- */

void http_server_ask(struct http_server *server, struct ask *ask) {
    asks_put(&server->asks, ask);
}

struct asks *http_server_asks(struct http_server *server) {
    return &server->asks;
}

unsigned http_server_connections(const struct http_server *server) {
    return server->peer_count;
}

bool http_server_is_secure(const struct http_server *server) {
    return server->options.certificate != NULL;
}
/* ---- the thread ---- */

static void http_server_on_idle(uv_idle_t *idle) {
    (void)idle; /* an active idle handle only keeps poll from blocking */
}

static void http_server_on_poll(uv_poll_t *poll, int status, int events) {
    (void)poll; /* the work is done in check */
    (void)status;
    (void)events;
}

static void http_server_on_timer(uv_timer_t *timer);

/* At the end of each turn of the loop: every few milliseconds while a request waits, ten times a second while somebody
 * is connected. */
static void http_server_set_timer(struct http_server *server) {
    uint64_t step_ms = server->waiting_first != NULL  ? WAIT_STEP_MS
                       : server->stream_first != NULL ? STREAM_STEP_MS
                       : server->peer_first != NULL   ? SWEEP_MS
                                                      : server->options.handler->step_ms;
    if (step_ms == server->timer_ms) {
        return;
    }
    server->timer_ms = step_ms;
    if (step_ms > 0) {
        uv_timer_start(&server->timer, http_server_on_timer, step_ms, step_ms);
    } else {
        uv_timer_stop(&server->timer);
    }
}

static void http_server_on_timer(uv_timer_t *timer) {
    struct http_server *server = timer->data;
    const struct http_handler *handler = server->options.handler;
    int64_t now_ms = http_server_now(server);
    http_exchange_sweep(server, now_ms);
    http_peer_sweep(server, now_ms);
    http_stream_sweep(server, now_ms);
    if (handler->step != NULL) {
        handler->step(handler->context, now_ms);
    }
    http_server_set_timer(server);
}

static void http_server_close_handles(struct http_server *server) {
    uv_close((uv_handle_t *)&server->poll, NULL);
    uv_close((uv_handle_t *)&server->timer, NULL);
    uv_close((uv_handle_t *)&server->idle, NULL);
    uv_close((uv_handle_t *)&server->check, NULL);
    asks_detach(&server->asks);
}

static void http_server_end(struct http_server *server) {
    const struct http_handler *handler = server->options.handler;
    server->is_ended = true;
    while (server->waiting_first != NULL) {
        http_exchange_fill(server->waiting_first, MHD_HTTP_SERVICE_UNAVAILABLE,
                           "the server ends\n");
        http_exchange_ready(server->waiting_first);
    }
    for (struct http_exchange *each = server->stream_first; each != NULL; each = each->next) {
        http_stream_end(each);
    }
    MHD_run(server->daemon);
    MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
    if (handler->end != NULL) {
        handler->end(handler->context);
    }
    http_server_close_handles(server);
}

static void http_server_on_check(uv_check_t *check) {
    struct http_server *server = check->data;
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    if (server->is_ended) {
        return;
    }
    if (atomic_load_explicit(&server->is_stopping, memory_order_acquire)) {
        http_server_end(server);
        return;
    }
    unsigned count;
    do { /* once there is room again, the library listens again at the beginning of a run */
        count = server->peer_count;
        MHD_run(server->daemon);
    } while (server->peer_count < count);
    if (MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES && wait_ms == 0) {
        uv_idle_start(&server->idle, http_server_on_idle);
    } else {
        uv_idle_stop(&server->idle);
    }
    http_server_set_timer(server);
}

static void http_server_run_thread(void *context) {
    struct http_server *server = context;
    thread_signals_begin();
    (void)pthread_setname_np(pthread_self(), "leaderboard-web");
    worker_step_behind();
    uv_run(&server->loop, UV_RUN_DEFAULT);
}
/* ---- beginning and end ---- */

/* The target is kept as it was sent, and the path that the library shows is decoded. */
static struct MHD_Daemon *http_server_start_daemon(struct http_server *server, int fd) {
    const struct http_server_options *options = &server->options;
    const struct MHD_OptionItem with_tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem without_tls[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    flags |= options->certificate != NULL ? (unsigned)MHD_USE_TLS : 0;
    return MHD_start_daemon(
        flags, 0, http_peer_accept, server, http_request_take, server, MHD_OPTION_EXTERNAL_LOGGER,
        http_request_log, server,
#if MHD_VERSION >= 0x00097701
        MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,
#endif
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, options->connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONNECTION_SIZE,
        MHD_OPTION_NOTIFY_COMPLETED, http_request_end, server, MHD_OPTION_URI_LOG_CALLBACK,
        http_request_begin, server, MHD_OPTION_NOTIFY_CONNECTION, http_peer_notify, server,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY,
        options->certificate != NULL ? with_tls : without_tls, MHD_OPTION_END);
}

static bool http_server_init_handles(struct http_server *server) {
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->poll.data = server->timer.data = server->check.data = server;
    if (info == NULL || uv_poll_init(&server->loop, &server->poll, info->epoll_fd) != 0 ||
        uv_timer_init(&server->loop, &server->timer) != 0 ||
        uv_idle_init(&server->loop, &server->idle) != 0 ||
        uv_check_init(&server->loop, &server->check) != 0 ||
        uv_poll_start(&server->poll, UV_READABLE, http_server_on_poll) != 0 ||
        uv_check_start(&server->check, http_server_on_check) != 0) {
        return false;
    }
    http_server_set_timer(server);
    return asks_attach(&server->asks, &server->loop);
}

/* What a program can do nothing about, and that happens to none: out of memory or descriptors in the
 * middle of the start. */
static struct http_server *http_server_fail(const char *what, char *error) {
    snprintf(error, HTTP_ERROR_MAX, "cannot serve HTTP: %s", what);
    return NULL;
}

static struct http_server *http_server_create(const struct http_server_options *options) {
    struct http_server *server = memory_allocate_zeroed(sizeof *server);
    struct pollfd *streams = memory_allocate_zeroed((options->streams_max + 1) * sizeof *streams);
    if (server == NULL || streams == NULL) {
        memory_free(server);
        memory_free(streams);
        return NULL;
    }
    server->options = *options;
    server->streams = streams;
    return server;
}

struct http_server *http_server_start(int fd, uv_loop_t *engine_loop,
                                      const struct http_server_options *options, char *error) {
    struct http_server *server = http_server_create(options);
    if (server == NULL) {
        close(fd);
        return http_server_fail("out of memory", error);
    }
    server->daemon = http_server_start_daemon(server, fd);
    if (server->daemon == NULL) {
        close(fd);
        memory_free(server->streams);
        memory_free(server);
        return http_server_fail(options->certificate != NULL
                                    ? "the certificate and its key do not fit"
                                    : "out of memory or descriptors",
                                error);
    }
    *options->place = server;
    if (uv_loop_init(&server->loop) != 0 ||
        !asks_init(&server->asks, engine_loop, options->handler->engine_context,
                   options->handler->context) ||
        !http_server_init_handles(server) ||
        uv_thread_create(&server->thread, http_server_run_thread, server) != 0) {
        /* The handles cannot be taken back without turning the engine's loop: the server does not start,
         * and the process ends. */
        return http_server_fail("out of memory, descriptors or threads", error);
    }
    return server;
}

static void http_server_drop_nothing(void *context, struct ask *ask) {
    (void)context;
    (void)ask;
}

void http_server_stop(struct http_server *server) {
    const struct http_handler *handler = server->options.handler;
    atomic_store_explicit(&server->is_stopping, true, memory_order_release);
    asks_wake_asker(&server->asks);
    uv_thread_join(&server->thread);
    CHECK(uv_loop_close(&server->loop) == 0);
    asks_close(&server->asks, handler->drop != NULL ? handler->drop : http_server_drop_nothing);
}

void http_server_destroy(struct http_server *server) {
    asks_deinit(&server->asks);
    memory_free(server->streams);
    memory_free(server);
}
