/* The connection itself: its states, its socket, and what moves both. See master_link.h.
 *
 * Invariant: taken_size <= whole_size <= parsed_size <= input.size; the group that apply is at begins at
 * taken_size, and then the input does not move. */
#include "server/replication/master_link.h"
#include "protocol/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/network/tls_context.h"
#include "server/replication/failover.h"
#include "server/replication/master_link_parts.h"
#include "server/replication/replication.h"
#include "server/system/log.h"

enum {
#ifdef SERVER_TINY
    READ_SIZE = 64,
    INPUT_FULL = 512,
#else
    READ_SIZE = 256 * 1024,
    INPUT_FULL = 4 * 1024 * 1024, /* more is read only to complete a message, or linked groups */
#endif
    READS_MAX = 4, /* in one turn of the loop */
    RETRY_FIRST_MS = 100,
    RETRY_LAST_MS = 2000,
    SECOND_MS = 1000,
    LOG_AGAIN_MS = 60000,
};

/* ---- states ---- */

static const enum replication_link shown_as[LINK_STATES] = {
    [LINK_OFF] = REPLICATION_LINK_NONE,
    [LINK_WAITS] = REPLICATION_LINK_CONNECT,
    [LINK_RESOLVING] = REPLICATION_LINK_CONNECTING,
    [LINK_CONNECTING] = REPLICATION_LINK_CONNECTING,
    [LINK_SHAKING] = REPLICATION_LINK_HANDSHAKE,
    [LINK_GREETING] = REPLICATION_LINK_HANDSHAKE,
    [LINK_ASKING] = REPLICATION_LINK_HANDSHAKE,
    [LINK_COPYING] = REPLICATION_LINK_SYNC,
    [LINK_LOADING] = REPLICATION_LINK_SYNC,
    [LINK_STREAMING] = REPLICATION_LINK_CONNECTED,
};

enum { LINK_ANY = LINK_STATES };
static const struct transition {
    unsigned from; /* LINK_ANY: each */
    enum master_link_event event;
    enum master_link_state to;
    const char *text;
} transitions[] = {
#define ROW(from, event, to)                                                                       \
    { from, event, to, #from " " #event " " #to }
    ROW(LINK_OFF, LINK_BEGUN, LINK_WAITS),
    ROW(LINK_WAITS, LINK_TRIED, LINK_RESOLVING),
    ROW(LINK_RESOLVING, LINK_RESOLVED, LINK_CONNECTING),
    ROW(LINK_CONNECTING, LINK_OPEN, LINK_GREETING),
    ROW(LINK_CONNECTING, LINK_TLS_OPEN, LINK_SHAKING),
    ROW(LINK_SHAKING, LINK_SHAKEN, LINK_GREETING),
    ROW(LINK_GREETING, LINK_GREETED, LINK_ASKING),
    ROW(LINK_ASKING, LINK_CONTINUES, LINK_STREAMING),
    ROW(LINK_ASKING, LINK_COPY_BEGUN, LINK_COPYING),
    ROW(LINK_COPYING, LINK_COPY_ENDED, LINK_LOADING),
    ROW(LINK_LOADING, LINK_ADOPTED, LINK_STREAMING),
    ROW(LINK_COPYING, LINK_COPY_SPOOLED, LINK_STREAMING),
    ROW(LINK_ANY, LINK_LOST, LINK_WAITS),
    ROW(LINK_ANY, LINK_STOPPED, LINK_OFF),
#undef ROW
};
enum { TRANSITIONS = sizeof transitions / sizeof transitions[0] };

void master_link_move(struct master_link *link, enum master_link_event event) {
    const struct transition *row = transitions;
    while ((row->from != link->state && row->from != LINK_ANY) || row->event != event) {
        row++;
        CHECK(row < transitions + TRANSITIONS);
    }
    log_write(LOG_DEBUG, "replica: %s", row->text);
    link->state = row->to;
    link->has_followed |= link->state == LINK_STREAMING && !master_link_is_redis(link);
    if (replication_is_replica(replication_of(link))) {
        replication_of(link)->link = shown_as[link->state];
    }
}

/* ---- the socket ---- */

static void master_link_free_poll(uv_handle_t *handle) {
    memory_free(handle);
}

/* What is waited for: input, unless there is enough, and room for output. */
void master_link_watch(struct master_link *link) {
    if (link->poll == NULL) {
        return;
    }
    bool is_connecting = link->state == LINK_CONNECTING;
    bool wants_write =
        is_connecting || link->output.size > 0 || (link->tls != NULL && tls_wants_write(link->tls));
    bool wants_read = !is_connecting && master_link_may_read(link);
    int events = (wants_read ? UV_READABLE : 0) | (wants_write ? UV_WRITABLE : 0);
    if (events == link->polled) {
        return;
    }
    if (events == 0) {
        uv_poll_stop(link->poll);
        link->polled = 0;
    } else if (uv_poll_start(link->poll, events, master_link_on_ready) == 0) {
        link->polled = events;
    }
}

static void master_link_close_socket(struct master_link *link) {
    master_link_drop_question(link);
    uv_timer_stop(&link->timer);
    if (link->tls != NULL) {
        tls_destroy(link->tls);
        link->tls = NULL;
    }
    tls_context_release(link->tls_context);
    link->tls_context = NULL;
    if (link->poll != NULL) {
        uv_poll_stop(link->poll);
        uv_close((uv_handle_t *)link->poll, master_link_free_poll);
        link->poll = NULL;
        link->polled = 0;
    }
    if (link->fd >= 0) {
        close(link->fd);
        link->fd = -1;
    }
    buffer_deinit(&link->output);
    link->line = LINK_SAYS_PING;
    link->wanted_size = 0;
    persistence_abandon_receive(link->server->persistence);
    replication_of(link)->copy_size = 0;
}

void master_link_drop_groups(struct master_link *link) {
    apply_end(&link->apply);
    link->is_retrying = false;
    link->asked_group = 0;
    buffer_deinit(&link->input);
    link->taken_size = 0;
    link->whole_size = 0;
    link->parsed_size = 0;
    link->server->durability.is_walk_held = false;
}

/* What has come whole is applied without the connection, too: a group, or linked groups, that stay applied in
 * part would be no state of the master. What has not come whole comes again. */
static void master_link_keep_groups(struct master_link *link) {
    if (!master_link_has_groups(link)) {
        master_link_drop_groups(link);
        return;
    }
    buffer_cut(&link->input, link->whole_size);
    link->parsed_size = link->whole_size;
}

static void master_link_on_timer(uv_timer_t *timer);

static void master_link_wait_for_attempt(struct master_link *link) {
    unsigned shift = link->failures < 5 ? link->failures : 5;
    int64_t wait_ms = (int64_t)RETRY_FIRST_MS << shift;
    wait_ms = wait_ms < RETRY_LAST_MS ? wait_ms : RETRY_LAST_MS;
    (void)uv_timer_start(&link->timer, master_link_on_timer, (uint64_t)wait_ms, 0);
}

static void master_link_on_timer(uv_timer_t *timer) {
    struct master_link *link = timer->data;
    bool is_busy = link->server->durability.is_loading || master_link_has_groups(link);
    if (link->state == LINK_WAITS && !is_busy) {
        master_link_attempt(link);
    } else if (link->state == LINK_WAITS) {
        master_link_wait_for_attempt(link);
    }
}

void master_link_hurry(struct master_link *link) {
    link->failures = 0;
    if (link->state == LINK_WAITS) {
        (void)uv_timer_start(&link->timer, master_link_on_timer, 0, 0);
    }
}

/* The same reason is logged once a minute. */
static void master_link_log_loss(struct master_link *link, enum master_link_state before) {
    const struct replication *replication = replication_of(link);
    int64_t now_ms = link->server->clock.monotonic_ms;
    if (before < LINK_COPYING && strcmp(link->reason, link->logged_reason) == 0 &&
        now_ms - link->logged_at_ms < LOG_AGAIN_MS) {
        return;
    }
    memcpy(link->logged_reason, link->reason, sizeof link->reason);
    link->logged_at_ms = now_ms;
    log_write(
        LOG_WARNING, "replica: no link to the master master=\"%s %u\" reason=\"%s\" group=%" PRIu64,
        master_link_host(link), (unsigned)master_link_port(link), link->reason, replication->group);
}

/* The attempt, or the link, has failed: the reason is set. */
void master_link_lose(struct master_link *link) {
    struct replication *replication = replication_of(link);
    enum master_link_state before = link->state;
    if (before == LINK_OFF) {
        return;
    }
    master_link_close_socket(link);
    master_link_keep_groups(link);
    master_link_move(link, LINK_LOST);
    if (before == LINK_STREAMING) {
        replication->link_down_at_ms = link->server->clock.monotonic_ms;
        replication->counters.link_losses++;
    }
    master_link_log_loss(link, before);
    snprintf(replication->error, sizeof replication->error, "%s", link->reason);
    link->failures += link->failures < UINT32_MAX;
    if (link->wants_failover) {
        link->wants_failover = false;
        failover_end(link->server, false); /* which may end this link */
    }
    if (link->state == LINK_WAITS) {
        master_link_wait_for_attempt(link);
    }
    master_link_wake(link);
}

void master_link_fail(struct master_link *link, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(link->reason, sizeof link->reason, format, arguments);
    va_end(arguments);
    master_link_lose(link);
}

void master_link_fail_with_answer(struct master_link *link, const char *what, struct bytes answer) {
    char text[REPLICATION_ERROR_MAX];
    master_link_fail(link, "%s: %s", what, log_quote_into(text, sizeof text, answer));
}

void master_link_drop(struct master_link *link, const char *reason) {
    if (link->state != LINK_OFF && link->state != LINK_WAITS) {
        link->failures = 0;
        master_link_fail(link, "%s", reason);
    }
}

/* ---- sending ---- */

bool master_link_send(struct master_link *link) {
    struct buffer *output = &link->output;
    while (output->size > 0) {
        ssize_t sent = link->tls != NULL ? tls_write(link->tls, output->at, output->size)
                                         : send(link->fd, output->at, output->size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && errno == EAGAIN) {
            return true;
        }
        bool is_peer_gone = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
        if (is_peer_gone && link->state >= LINK_COPYING) {
            /* What the master sent before it ended is read first: reading finds the end. */
            buffer_clear(output);
            return true;
        }
        if (sent < 0) {
            master_link_fail(link, "cannot send: %s", strerror(errno));
            return false;
        }
        buffer_drop_front(output, (size_t)sent);
    }
    return true;
}

/* One command of so many texts. */
void master_link_say(struct master_link *link, const char *const *texts, unsigned count) {
    struct buffer *output = &link->output;
    request_append_head(output, count);
    for (unsigned i = 0; i < count; i++) {
        request_append_argument(output, bytes_from_text(texts[i]));
    }
    if (output->is_broken) {
        master_link_fail(link, "out of memory");
    } else if (master_link_send(link)) {
        master_link_watch(link);
    }
}

/* ---- input ---- */

/* false: the link is lost. */
static bool master_link_read_some(struct master_link *link, bool *is_over) {
    char *at = buffer_reserve(&link->input, READ_SIZE);
    *is_over = true;
    if (at == NULL) {
        master_link_fail(link, "no memory for what the master sends");
        return false;
    }
    ssize_t size;
    do {
        size =
            link->tls != NULL ? tls_read(link->tls, at, READ_SIZE) : read(link->fd, at, READ_SIZE);
    } while (size < 0 && errno == EINTR);
    if (size < 0 && errno == EAGAIN) {
        return true;
    }
    if (size <= 0) {
        const char *reason = size == 0 ? "the master has closed the connection" : strerror(errno);
        master_link_fail(link, "%s",
                         link->tls != NULL && tls_error(link->tls) != NULL ? tls_error(link->tls)
                                                                           : reason);
        return false;
    }
    buffer_commit(&link->input, (size_t)size);
    link->heard_at_ms = link->server->clock.monotonic_ms;
    replication_of(link)->heard_at_ms = link->heard_at_ms;
    *is_over = size < READ_SIZE && (link->tls == NULL || !tls_has_input(link->tls));
    return true;
}

bool master_link_may_read(const struct master_link *link) {
    return link->fd >= 0 && !apply_is_going(&link->apply) && link->state != LINK_LOADING &&
           !received_is_full(master_link_received(link)) && !master_link_redis_is_full(link) &&
           (link->input.size < INPUT_FULL || link->whole_size == 0 || link->state == LINK_COPYING);
}

/* Linked groups are applied when all have come, and a master may send any number. false: the link is lost. */
static bool master_link_is_bounded(struct master_link *link) {
    uint64_t limit = link->server->settings.client_query_buffer_limit;
    if (link->state != LINK_STREAMING || link->input.size - link->whole_size <= limit) {
        return true;
    }
    link->wants_copy = true;
    master_link_fail(link,
                     "a change of the master takes more than client-query-buffer-limit (%" PRIu64
                     " bytes): a full copy is asked for instead",
                     limit);
    return false;
}

void master_link_take_input(struct master_link *link) {
    bool is_over = false;
    for (int i = 0; i < READS_MAX && !is_over && master_link_may_read(link); i++) {
        if (!master_link_read_some(link, &is_over)) {
            return;
        }
        if (link->state < LINK_COPYING && !master_link_take_lines(link)) {
            continue;
        }
        bool is_redis = master_link_is_redis(link);
        if (link->state >= LINK_COPYING &&
            !(is_redis ? master_link_redis_parse(link) : master_link_parse(link))) {
            master_link_lose(link);
            return;
        }
        if (!master_link_is_bounded(link)) {
            return;
        }
    }
    master_link_wake(link);
}

/* ---- events of the socket ---- */

void master_link_on_ready(uv_poll_t *poll, int status, int events) {
    struct master_link *link = poll->data;
    server_update_time(link->server);
    if (status != 0) {
        link->polled = 0; /* libuv has stopped it; there may be more to read */
    }
    if (link->state == LINK_CONNECTING) {
        master_link_take_connection(link);
        return;
    }
    if (link->state == LINK_SHAKING) {
        master_link_shake(link);
        return;
    }
    if (status == 0 && (events & UV_WRITABLE) != 0 && !master_link_send(link)) {
        return;
    }
    if ((status != 0 || (events & UV_READABLE) != 0) && master_link_may_read(link)) {
        master_link_take_input(link);
    }
    master_link_watch(link);
}

/* ---- the interface ---- */

void master_link_second(struct master_link *link) {
    const struct server *server = link->server;
    int64_t now_ms = server->clock.monotonic_ms;
    link->is_retrying = false;
    if (link->state == LINK_OFF || link->state == LINK_WAITS) {
        return;
    }
    if (link->state == LINK_LOADING || apply_is_going(&link->apply) ||
        master_link_redis_is_full(link)) {
        link->heard_at_ms = now_ms; /* nothing is read meanwhile */
    }
    if (now_ms - link->heard_at_ms > server->settings.repl_timeout_s * SECOND_MS) {
        master_link_fail(link, "the master said nothing for repl-timeout");
        return;
    }
    if (master_link_is_redis(link)) {
        master_link_redis_second(link);
    } else if (link->state == LINK_STREAMING) {
        link->wants_ack = true;
        master_link_acknowledge(link);
    } else if (link->state >= LINK_COPYING && link->output.size == 0) {
        master_link_say_ack(link, 0);
    }
}

void master_link_init(struct master_link *link, struct server *server, uv_loop_t *loop) {
    link->server = server;
    link->loop = loop;
    link->fd = -1;
    link->timer.data = link;
    buffer_init(&link->input, 0);
    buffer_init(&link->output, 0);
    CHECK(uv_timer_init(loop, &link->timer) == 0); /* it never fails */
    uv_unref((uv_handle_t *)&link->timer);
}

void master_link_deinit(struct master_link *link) {
    link->wants_failover = false;
    master_link_close_socket(link);
    master_link_drop_groups(link);
    link->state = LINK_OFF;
    uv_close((uv_handle_t *)&link->timer, NULL);
}

void master_link_begin(struct master_link *link, bool wants_failover) {
    CHECK(link->state == LINK_OFF);
    link->failures = 0;
    link->wants_failover = wants_failover;
    link->has_followed = false;
    link->logged_reason[0] = '\0';
    link->apply.registry = link->server->registry;
    link->apply.persistence = link->server->persistence;
    persistence_set_following(link->server->persistence, true);
    master_link_move(link, LINK_BEGUN);
    (void)uv_timer_start(&link->timer, master_link_on_timer, 0, 0);
}

void master_link_begin_pull(struct master_link *link, const char *host, uint16_t port) {
    snprintf(link->pull_host, sizeof link->pull_host, "%s", host);
    link->pull_port = port;
    link->pull_group = replication_of(link)->group;
    link->pull_best = 0;
    master_link_begin(link, false);
}

/* Bytes of the next group come before a copy, which is loaded when all of it has come: each is further than
 * what is before it. */
bool master_link_advances(struct master_link *link) {
    const uint64_t copying = UINT64_C(1) << 62, loading = UINT64_C(1) << 63;
    const struct received *received = master_link_received(link);
    const struct replication *replication = replication_of(link);
    uint64_t at = link->input.size;
    bool is_further = replication->group > link->pull_group;
    if (is_further) {
        link->pull_group = replication->group;
        link->pull_best = 0;
    }
    if (link->state == LINK_COPYING) {
        at = copying + replication->copy_read_size;
    } else if (link->state == LINK_LOADING) {
        if (received->state == RECEIVED_LOADED || received->state == RECEIVED_ADOPTING ||
            (received->state == RECEIVED_SYNCING && link->pull_best < loading)) {
            return true; /* this server's disk is at work */
        }
        at = loading + received_loaded_size(received);
    } else if (apply_is_going(&link->apply) && !link->is_retrying) {
        return true;
    }
    is_further |= at > link->pull_best;
    link->pull_best = at > link->pull_best ? at : link->pull_best;
    return is_further;
}

void master_link_apply_rest(struct master_link *link) {
    link->is_retrying = false;
    while (master_link_has_groups(link) && !link->is_retrying) {
        (void)master_link_apply(link, UINT64_MAX);
    }
    if (apply_is_going(&link->apply)) {
        log_write(LOG_WARNING,
                  "replica: no memory to apply the rest of group %" PRIu64
                  ": the keys are no state of the master, and whoever follows copies anew",
                  link->apply.groups[link->apply.group_done].head.sequence);
        replication_make_id(link->server, replication_of(link)->id); /* which nobody knows */
    }
    master_link_drop_groups(link);
}

void master_link_stop(struct master_link *link) {
    if (link->state == LINK_OFF) {
        return;
    }
    link->wants_failover = false;
    master_link_close_socket(link);
    master_link_keep_groups(link);
    link->pull_port = 0;
    master_link_move(link, LINK_STOPPED);
}
