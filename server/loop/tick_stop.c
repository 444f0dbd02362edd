/* The end of a server: it retires, drains, lingers and stops. See dispatch/shutdown.h. */
#include "server/loop/tick_parts.h"

#include "server/dispatch/shutdown.h"
#include "server/system/log.h"

enum {
    DRAIN_MS = 5000,
    LINGER_MS = 500,
    RETIRED_LOOK_MAX = 16, /* clients: with more, some are surely no balancer's checks */
};

void tick_close_handle(uv_handle_t *handle) {
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

static void tick_stop_stop(struct tick *tick) {
    if (tick->is_stopping) {
        return;
    }
    tick->is_stopping = true;
    tick_drop_queue(tick);
    tick->server->ending.is_over = true;
    shutdown_finish(tick->server);
    while (tick->server->sessions.first != NULL) {
        connection_close(connection_of(tick->server->sessions.first), "shutdown");
    }
    while (tick->lists[TICK_DIRTY].first != NULL || tick->lists[TICK_PUSHED].first != NULL) {
        (void)tick_finish_pushed(tick);
        tick_finish_dirty(tick); /* again and again, where memory for a message is missing */
    }
    tick_join_networks(tick);
    tick_set_idle(tick, false);
    tick_close_handle((uv_handle_t *)&tick->check);
    tick_close_handle((uv_handle_t *)&tick->idle);
    tick_close_handle((uv_handle_t *)&tick->second);
    tick_close_handle((uv_handle_t *)&tick->wake);
    tick_close_handle((uv_handle_t *)&tick->drain);
}

/* Their clients are told nothing, and cannot know what has become of their writes. */
static void tick_stop_log_unanswered(const struct tick *tick) {
    unsigned count = 0;
    const struct connection *connection = tick->waiting_first;
    for (; connection != NULL; connection = connection->wait.next) {
        count++;
    }
    if (count > 0) {
        log_write(LOG_WARNING,
                  "shutdown: closing clients whose answers still wait for the disk or for replicas "
                  "count=%u waited_ms=%d",
                  count, (int)DRAIN_MS);
    } else {
        log_write(LOG_WARNING, "shutdown: some clients did not read their replies in time");
    }
}

static void tick_stop_on_drain_over(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    if (!tick->is_lingering) {
        tick_stop_log_unanswered(tick);
    }
    tick_stop_stop(tick);
}

void tick_shutdown(struct tick *tick, bool is_now) {
    if (tick->is_stopping) {
        return;
    }
    bool is_second = tick->is_draining;
    tick->is_draining = true;
    tick->server->ending.is_asked = true;
    if (!tick->server->ending.retiring.is_begun) {
        tick->server->ending.retiring = (struct server_retiring){
            .is_begun = true,
            .from_id = tick->server->sessions.next_id,
        };
    }
    if (!is_second) {
        log_write(LOG_NOTICE, "shutdown: clients=%u", tick->server->sessions.count);
        tick->stop_listening(tick->context);
        for (unsigned i = 0; i < tick->network_count; i++) {
            network_drain(&tick->networks[i]);
        }
    }
    if (is_now || is_second) {
        tick_stop_stop(tick);
        return;
    }
    struct session *session = tick->server->sessions.first;
    for (; session != NULL; session = session->next) {
        tick_mark_dirty(tick, connection_of(session));
    }
    uv_timer_start(&tick->drain, tick_stop_on_drain_over, DRAIN_MS, 0);
    tick_set_idle(tick, true);
}

/* Has every client received the replies to all that it had sent? */
static bool tick_stop_is_drained(const struct tick *tick) {
    if (tick->drain_others != NULL && !tick->drain_others(tick->others)) {
        return false;
    }
    for (unsigned i = 0; i < tick->network_count; i++) {
        if (!tick->networks[i].is_drained) {
            return false;
        }
    }
    struct session *session = tick->server->sessions.first;
    for (; session != NULL; session = session->next) {
        const struct connection *connection = connection_of(session);
        bool is_held = connection->held.count > 0 && connection->hold != CONNECTION_HELD_BY_WAIT &&
                       connection->hold != CONNECTION_HELD_BY_END;
        if (connection->queued > 0 || is_held || connection->hold == CONNECTION_HELD_BY_JOB ||
            connection_unsent_size(connection) > 0) {
            return false;
        }
    }
    return true;
}

/* Everybody has their replies. If a client's next request arrived after its socket was closed, TCP
 * would reset the connection, and a reply on its way could be lost: then the client could not know
 * that its request has run, and would repeat it. So the sockets of clients that were active just
 * now are first closed in one direction, and what still comes, which is not run, is read away. */
static void tick_stop_linger(struct tick *tick) {
    int64_t now_ms = tick->server->clock.monotonic_ms;
    struct session *session = tick->server->sessions.first;
    tick->is_lingering = true;
    while (session != NULL) {
        struct session *next = session->next;
        if (session->awaits_end || now_ms - session->active_at_ms > LINGER_MS ||
            !connection_end(connection_of(session))) {
            connection_close(connection_of(session), "shutdown");
        }
        session = next;
    }
    uv_timer_start(&tick->drain, tick_stop_on_drain_over, LINGER_MS, 0);
}

static void tick_stop_on_retired(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    tick->server->ending.retiring.is_over = true;
    tick_wake(tick);
}

/* Are only those connected who wait for the end? */
static bool tick_stop_is_deserted(const struct server *server) {
    if (server->sessions.count > RETIRED_LOOK_MAX) {
        return false;
    }
    const struct session *session = server->sessions.first;
    while (session != NULL && session->awaits_end) {
        session = session->next;
    }
    return session == NULL;
}

static void tick_stop_check_retiring(struct tick *tick) {
    struct server *server = tick->server;
    bool is_retiring = server->ending.retiring.is_begun && !server->ending.is_asked;
    if (is_retiring && (server->ending.retiring.is_over || tick_stop_is_deserted(server))) {
        shutdown_end_retiring(server);
        is_retiring = false;
    }
    if (is_retiring != tick->is_retiring) {
        tick->is_retiring = is_retiring;
        if (is_retiring) {
            int64_t left_ms = server->ending.retiring.until_ms - server->clock.monotonic_ms;
            uv_timer_start(&tick->drain, tick_stop_on_retired, left_ms > 0 ? (uint64_t)left_ms : 0,
                           0);
        } else {
            uv_timer_stop(&tick->drain);
        }
    }
}

void tick_check_shutdown(struct tick *tick) {
    struct server *server = tick->server;
    if ((server->ending.retiring.is_begun || tick->is_retiring) && !tick->is_draining) {
        tick_stop_check_retiring(tick);
    }
    if (server->ending.is_asked && !tick->is_draining) {
        tick_shutdown(tick, server->ending.is_now);
    }
    if (!tick->is_draining || tick->is_stopping) {
        return;
    }
    if (!tick->is_lingering && tick_stop_is_drained(tick)) {
        tick_stop_linger(tick);
    }
    if (tick->is_lingering && server->sessions.count == 0) {
        tick_stop_stop(tick);
    }
}
