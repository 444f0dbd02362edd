/* The connection: its states, its socket, the handshake, and what moves them. See master_link.h.
 *
 * Invariant: taken_size <= whole_size <= parsed_size <= input.size; the group that apply is at begins at
 * taken_size, and then the input does not move. */
#include "server/replication/master_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/resp.h"
#include "server/durability/file_format.h"
#include "server/migration/redis_receive.h"
#include "server/network/batch.h"
#include "server/network/tls.h"
#include "server/replication/replication.h"
#include "server/system/log.h"

/* The events of its socket. */
static void master_link_on_ready(uv_poll_t *poll, int status, int events);
static void master_link_attempt(struct master_link *link);
/* The resolver's answer is not wanted any more. */
static void master_link_drop_question(struct master_link *link);
static void master_link_redis_second(struct master_link *link);

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
    if (replication_is_replica(&link->server->replication)) {
        link->server->replication.link = shown_as[link->state];
    }
}

void master_link_wake(const struct master_link *link) {
    replicator_wake(link->server->replication.replicator);
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
    master_link_stream_end_copy(link);
    link->server->replication.copy_size = 0;
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

/* The attempt, or the link, has failed: the reason is set. */
void master_link_lose(struct master_link *link) {
    struct replication *replication = &link->server->replication;
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
    /* The same reason is logged once a minute. */
    int64_t now_ms = link->server->clock.monotonic_ms;
    if (before >= LINK_COPYING || strcmp(link->reason, link->logged_reason) != 0 ||
        now_ms - link->logged_at_ms >= LOG_AGAIN_MS) {
        memcpy(link->logged_reason, link->reason, sizeof link->reason);
        link->logged_at_ms = now_ms;
        log_write(LOG_WARNING,
                  "replica: no link to the master master=\"%s %u\" reason=\"%s\" group=%" PRIu64,
                  master_link_host(link), (unsigned)master_link_port(link), link->reason,
                  replication->group);
    }
    snprintf(replication->error, sizeof replication->error, "%s", link->reason);
    link->failures += link->failures < UINT32_MAX;
    if (link->wants_failover) {
        link->wants_failover = false;
        replication_failover_end(link->server, false); /* which may end this link */
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

/* "what: answer" */
static void master_link_fail_with_answer(struct master_link *link, const char *what,
                                         struct bytes answer) {
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

/* Send what is in output, as far as the socket takes it. false: the link is lost. */
static bool master_link_send(struct master_link *link) {
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

/* ---- a Redis as the master ---- */

/* The one whose copies can be read: RDB version 80. */
#define VALKEY_VERSION "9.0.0"

/* Is this what a Redis answers to REPLCONF leaderboard, an option that it does not know? Any other
 * error may be that of a leaderboard server, too: one that is loading, or has too many clients. */
static bool master_link_redis_is_refusal(struct bytes answer) {
    static const char *const refusals[] = {
        "-ERR Unrecognized REPLCONF option", /* every version of Redis and Valkey */
        "-ERR unknown option",
        "-ERR unknown subcommand",
    };
    bool is_refusal = false;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        size_t size = strlen(refusals[i]);
        is_refusal |= answer.size >= size && strncasecmp(answer.at, refusals[i], size) == 0;
    }
    return is_refusal;
}

/* To a replica that does not say so Valkey 9 sends RDB version 11, and where that has no room for a value, such
 * as a hash with fields that expire, no copy at all. Others answer with an error, which says nothing. */
static void master_link_redis_say_version(struct master_link *link) {
    master_link_say(link, (const char *const[]){"REPLCONF", "version", VALKEY_VERSION}, 3);
}

static void master_link_redis_say_psync(struct master_link *link) {
    char offset[REDIS_RECEIVE_OFFSET_SIZE];
    const char *id = redis_receive_print_wish(link->redis, offset);
    master_link_say(link, (const char *const[]){"PSYNC", id, offset}, 3);
}

static void master_link_redis_take_answer(struct master_link *link, struct bytes answer) {
    struct redis_receive *redis = link->redis;
    if (!redis_receive_take_answer(redis, answer)) {
        master_link_fail_with_answer(link, "the source answers PSYNC with", answer);
        return;
    }
    bool is_full = redis->state == REDIS_RECEIVE_HEAD;
    log_write(LOG_NOTICE, "replication: %s source=%s:%u id=%s offset=%" PRIu64,
              is_full ? "a full copy of Redis begins" : "Redis goes on", master_link_host(link),
              (unsigned)master_link_port(link), redis->id, redis->received_offset);
    master_link_move(link, is_full ? LINK_COPY_BEGUN : LINK_CONTINUES);
    link->failures = 0;
    link->server->replication.error[0] = '\0';
    master_link_wake(link);
    master_link_redis_second(link);
}

/* What has come behind it. false: link->reason. */
static bool master_link_redis_parse(struct master_link *link) {
    struct redis_receive *redis = link->redis;
    const struct bytes input = {.at = link->input.at, .size = link->input.size};
    const char *error;
    size_t used;
    if (!redis_receive_take(redis, input, &used, &error)) {
        snprintf(link->reason, sizeof link->reason, "%s: %s", error, bytes_show(input).text);
        return false;
    }
    buffer_drop_front(&link->input, used);
    if (link->state == LINK_COPYING) {
        struct replication *replication = &link->server->replication;
        replication->copy_size = link->redis->copy_size;
        replication->copy_read_size = link->redis->copy_read_size;
        replication->copy_at_ms = link->server->clock.monotonic_ms;
    }
    if (link->state == LINK_COPYING && redis->state == REDIS_RECEIVE_STREAM) {
        master_link_move(link, LINK_COPY_SPOOLED);
        master_link_redis_second(link);
    }
    return true;
}

static bool master_link_redis_is_full(const struct master_link *link) {
    return master_link_is_redis(link) && redis_receive_spool_is_full(link->redis->spool);
}

/* While a copy comes nothing may be sent. */
static void master_link_redis_second(struct master_link *link) {
    char offset[REDIS_RECEIVE_OFFSET_SIZE];
    if (link->state == LINK_STREAMING && link->output.size == 0) {
        snprintf(offset, sizeof offset, "%" PRIu64, link->redis->received_offset);
        master_link_say(link, (const char *const[]){"REPLCONF", "ACK", offset}, 3);
    }
}

void master_link_read_on(struct master_link *link) {
    if (link->state >= LINK_COPYING && master_link_may_read(link)) {
        master_link_watch(link);
        if (link->tls != NULL && tls_has_input(link->tls)) {
            master_link_take_input(link);
        }
    }
}

/* ---- the handshake ---- */

enum {
    LINE_MAX_SIZE = 1024,   /* of an answer */
    REGISTER_AGAIN_MS = 20, /* between two REPLCONF PRESENT */
};

static void master_link_greet_say_auth(struct master_link *link) {
    const struct settings *settings = &link->server->settings;
    const char *const texts[] = {"AUTH", settings->masteruser, settings->masterauth};
    const char *const short_texts[] = {"AUTH", settings->masterauth};
    bool has_user = settings->masteruser != NULL && settings->masteruser[0] != '\0';
    master_link_say(link, has_user ? texts : short_texts, has_user ? 3 : 2);
}

/* Ask for what follows the last group, if that is anything that the master can know. */
static void master_link_greet_say_sync(struct master_link *link) {
    const struct replication *replication = &link->server->replication;
    struct persistence *persistence = link->server->persistence;
    struct history history;
    char number[24];
    bool is_known = replication_read_history(link->server->registry, &history) &&
                    strcmp(history.id, replication->id) == 0 && !link->server->durability.has_gap &&
                    replication->is_whole && !link->wants_copy;
    bool is_named = is_known || link->wants_failover;
    link->next_group = persistence_last_group(persistence) + 1;
    snprintf(number, sizeof number, "%" PRIu64, is_named ? link->next_group : 0);
    const char *const texts[] = {"LB.SYNC", is_named ? replication->id : "?", number,
                                 link->pull_port != 0 ? "PULL" : "FAILOVER",
                                 replication->sync.term.text};
    master_link_say(link, texts, link->pull_port != 0 ? 5 : link->wants_failover ? 4 : 3);
}

/* What this node has voted for, and how far it is (quorum.h). */
static void master_link_greet_say_registration(struct master_link *link) {
    struct sync_registration said;
    char node[TERM_NODE_SIZE + 1], number[24];
    quorum_describe(link->quorum, &said);
    snprintf(node, sizeof node, "%016" PRIx64, said.node);
    snprintf(number, sizeof number, "%" PRIu64, said.position.group);
    const char *const texts[] = {"REPLCONF",
                                 "PRESENT",
                                 node,
                                 said.voted.text,
                                 said.position.term.text,
                                 number,
                                 said.is_released           ? "2"
                                 : said.has_lost_durability ? "1"
                                                            : "0"};
    master_link_say(link, texts, sizeof texts / sizeof texts[0]);
}

static void master_link_greet_say_line(struct master_link *link);

/* Begin: the first line. */
static void master_link_greet(struct master_link *link) {
    link->line = LINK_SAYS_PING;
    master_link_greet_say_line(link);
}

void master_link_go_on_with_redis(struct master_link *link, struct redis_receive *redis) {
    link->redis = redis;
    if (link->state == LINK_GREETING && link->line == LINK_SAYS_VERSION) {
        link->line = LINK_SAYS_REDIS_VERSION;
        master_link_greet_say_line(link);
    }
}

static void master_link_greet_say_next(struct master_link *link);

static bool master_link_greet_begins_with(struct bytes text, const char *wanted) {
    size_t size = strlen(wanted);
    return text.size >= size && memcmp(text.at, wanted, size) == 0;
}

/* "+LEADERBOARD 1"; the error of a Redis, which does not know the option; or another error, for
 * which the next attempt asks again. */
static void master_link_greet_take_version(struct master_link *link, struct bytes answer) {
    uint64_t format;
    if (master_link_greet_begins_with(answer, "-" FILE_FORMAT_REFUSAL)) {
        master_link_fail_with_answer(link, "the master refuses", answer);
        return;
    }
    if (master_link_redis_is_refusal(answer) && !link->wants_failover) {
        if (link->has_followed) {
            master_link_fail(
                link,
                "the master was a leaderboard server, and is a Redis now: what is here stays. "
                "REPLICAOF NO ONE, and then REPLICAOF again, replaces it with the Redis's keys");
        } else if (link->redis != NULL) {
            master_link_go_on_with_redis(link, link->redis);
        } else {
            link->has_found_redis = true;
            master_link_wake(link);
        }
        return;
    }
    if (!master_link_greet_begins_with(answer, "+LEADERBOARD ")) {
        master_link_fail_with_answer(link,
                                     master_link_greet_begins_with(answer, "-NOAUTH")
                                         ? "the master wants a password, set masterauth"
                                         : "the master answers REPLCONF leaderboard",
                                     answer);
        return;
    }
    if (link->redis != NULL) {
        link->has_found_leaderboard = true;
        master_link_wake(link);
        return;
    }
    struct bytes number = {.at = answer.at + sizeof "+LEADERBOARD " - 1,
                           .size = answer.size - (sizeof "+LEADERBOARD " - 1)};
    if (!bytes_parse_u64(number, &format) || !file_format_is_read(format)) {
        master_link_fail(link, "the master's format is %.*s, this server's %d: %s",
                         (int)(number.size < 20 ? number.size : 20), number.at, (int)FILE_FORMAT,
                         FILE_FORMAT_ADVICE);
        return;
    }
    master_link_greet_say_next(link);
}

static void master_link_greet_on_register_again(uv_timer_t *timer) {
    struct master_link *link = timer->data;
    if (link->state == LINK_GREETING && link->line == LINK_SAYS_REGISTRATION) {
        server_update_time(link->server);
        master_link_greet_say_line(link);
    }
}

static void master_link_greet_take_advice(struct master_link *link, struct bytes answer) {
    char reason[REPLICATION_ERROR_MAX];
    switch (quorum_take_answer(link->quorum, answer, reason)) {
    case QUORUM_GO_ON:
        master_link_greet_say_next(link);
        return;
    case QUORUM_WAIT:
        (void)uv_timer_start(&link->timer, master_link_greet_on_register_again, REGISTER_AGAIN_MS,
                             0);
        return;
    case QUORUM_REFUSES:
        break;
    }
    master_link_fail(link, "%s", reason);
}

static void master_link_greet_take_sync(struct master_link *link, struct bytes answer) {
    enum { CONTINUE_SIZE = sizeof "+CONTINUE " - 1, FULL_SIZE = sizeof "+FULL " - 1 };
    struct bytes rest = {.at = NULL};
    bool is_continued = master_link_greet_begins_with(answer, "+CONTINUE ");
    if (link->wants_failover && bytes_equal(answer, BYTES("+AGREED"))) {
        link->wants_failover = false;
        replication_failover_end(link->server, true);
        master_link_fail(link, "the new master is not open yet");
        /* The next attempt is to come at once. */
        link->failures = 0;
        if (link->state == LINK_WAITS) {
            (void)uv_timer_start(&link->timer, master_link_on_timer, 0, 0);
        }
        return;
    }
    if (!is_continued && !master_link_greet_begins_with(answer, "+FULL ")) {
        master_link_fail_with_answer(link, "the master refuses", answer);
        return;
    }
    size_t skipped = is_continued ? CONTINUE_SIZE : FULL_SIZE;
    rest = (struct bytes){.at = answer.at + skipped, .size = answer.size - skipped};
    if (!term_is_id(rest)) {
        master_link_fail_with_answer(link, "the master's answer is not valid", answer);
        return;
    }
    if (link->quorum != NULL && !quorum_may_take(link->quorum, rest)) {
        master_link_fail(link, "the master's term has changed");
        return;
    }
    if (link->wants_failover) {
        link->wants_failover = false;
        replication_failover_end(link->server, true);
    }
    if (is_continued) {
        master_link_stream_continue(link, rest);
    } else {
        master_link_stream_begin_copy(link);
    }
}

/* ---- the lines ---- */

static void master_link_greet_say_ping(struct master_link *link) {
    master_link_say(link, (const char *const[]){"PING"}, 1);
}

static void master_link_greet_take_ping(struct master_link *link, struct bytes answer) {
    static const char of_lost_durability[] = "-" SYNC_PING_ERROR;
    static const char *const fine[] = {"+", "-NOAUTH", "-NOPERM", "-ERR operation not permitted",
                                       of_lost_durability};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        if (master_link_greet_begins_with(answer, fine[i])) {
            master_link_greet_say_next(link);
            return;
        }
    }
    master_link_fail_with_answer(link, "the master answers PING", answer);
}

static bool master_link_greet_has_auth(const struct master_link *link) {
    const char *auth = link->server->settings.masterauth;
    return auth != NULL && auth[0] != '\0';
}

static void master_link_greet_take_auth(struct master_link *link, struct bytes answer) {
    if (master_link_greet_begins_with(answer, "+")) {
        master_link_greet_say_next(link);
    } else {
        master_link_fail_with_answer(link, "the master does not take masterauth", answer);
    }
}

static void master_link_greet_say_port(struct master_link *link) {
    char number[24];
    const struct settings *settings = &link->server->settings;
    int64_t port = settings->replica_announce_port != 0 ? settings->replica_announce_port
                   : settings->tls_replication          ? settings->tls_port
                                                        : settings->port;
    snprintf(number, sizeof number, "%" PRId64, port);
    master_link_say(link, (const char *const[]){"REPLCONF", "listening-port", number}, 3);
}

static bool master_link_greet_has_address(const struct master_link *link) {
    const char *address = link->server->settings.replica_announce_ip;
    return address != NULL && address[0] != '\0';
}

static void master_link_greet_say_address(struct master_link *link) {
    const char *address = link->server->settings.replica_announce_ip;
    master_link_say(link, (const char *const[]){"REPLCONF", "ip-address", address}, 3);
}

static void master_link_greet_say_capabilities(struct master_link *link) {
    master_link_say(link, (const char *const[]){"REPLCONF", "capa", "eof", "capa", "psync2"}, 5);
}

static void master_link_greet_say_version(struct master_link *link) {
    char number[24];
    snprintf(number, sizeof number, "%d", (int)FILE_FORMAT);
    master_link_say(link, (const char *const[]){"REPLCONF", "leaderboard", number}, 3);
}

static bool master_link_greet_registers(const struct master_link *link) {
    return link->quorum != NULL && !link->wants_failover && link->pull_port == 0;
}

static const struct {
    bool (*is_said)(const struct master_link *link); /* NULL: always */
    void (*say)(struct master_link *link);
    /* NULL: whatever the answer is, as an old server may not know it, the next line is said. */
    void (*take)(struct master_link *link, struct bytes answer);
} lines[LINK_LINES] = {
    [LINK_SAYS_PING] = {NULL, master_link_greet_say_ping, master_link_greet_take_ping},
    [LINK_SAYS_AUTH] = {master_link_greet_has_auth, master_link_greet_say_auth,
                        master_link_greet_take_auth},
    [LINK_SAYS_PORT] = {NULL, master_link_greet_say_port, NULL},
    [LINK_SAYS_ADDRESS] = {master_link_greet_has_address, master_link_greet_say_address, NULL},
    [LINK_SAYS_CAPABILITIES] = {NULL, master_link_greet_say_capabilities, NULL},
    [LINK_SAYS_VERSION] = {NULL, master_link_greet_say_version, master_link_greet_take_version},
    [LINK_SAYS_REGISTRATION] = {master_link_greet_registers, master_link_greet_say_registration,
                                master_link_greet_take_advice},
    [LINK_SAYS_SYNC] = {NULL, master_link_greet_say_sync, master_link_greet_take_sync},
    [LINK_SAYS_REDIS_VERSION] = {NULL, master_link_redis_say_version, NULL},
    [LINK_SAYS_PSYNC] = {NULL, master_link_redis_say_psync, master_link_redis_take_answer},
};

static void master_link_greet_say_line(struct master_link *link) {
    if (link->line == LINK_SAYS_SYNC || link->line == LINK_SAYS_PSYNC) {
        master_link_move(link, LINK_GREETED);
    }
    lines[link->line].say(link);
}

static void master_link_greet_say_next(struct master_link *link) {
    do {
        link->line++;
        CHECK(link->line < LINK_LINES);
    } while (lines[link->line].is_said != NULL && !lines[link->line].is_said(link));
    master_link_greet_say_line(link);
}

/* Take the lines that have come. true: what follows is messages. */
static bool master_link_take_lines(struct master_link *link) {
    while (link->state == LINK_GREETING || link->state == LINK_ASKING) {
        const char *end = memchr(link->input.at, '\n', link->input.size);
        if (end == NULL) {
            if (link->input.size > LINE_MAX_SIZE) {
                master_link_fail(link, "the master's answer is no line");
            }
            return false;
        }
        char line[LINE_MAX_SIZE + 1];
        size_t size = (size_t)(end - link->input.at);
        if (size > LINE_MAX_SIZE) {
            master_link_fail(link, "the master's answer is too long");
            return false;
        }
        memcpy(line, link->input.at, size);
        buffer_drop_front(&link->input, size + 1);
        size -= size > 0 && line[size - 1] == '\r';
        if (size > 0) { /* empty lines: the master is still there */
            struct bytes answer = (struct bytes){.at = line, .size = size};
            if (lines[link->line].take != NULL) {
                lines[link->line].take(link, answer);
            } else {
                master_link_greet_say_next(link);
            }
        }
        if (link->input.size == 0) {
            break;
        }
    }
    return link->state >= LINK_COPYING;
}

/* ---- connecting ---- */

/* Outlives the attempt where that ends before the answer. */
struct master_link_question {
    uv_getaddrinfo_t request; /* first */
    struct master_link *link; /* NULL: nobody waits for the answer */
};

static void master_link_drop_question(struct master_link *link) {
    if (link->question != NULL) {
        link->question->link = NULL;
        (void)uv_cancel((uv_req_t *)&link->question->request);
        link->question = NULL;
    }
}

static void master_link_connect_socket(struct master_link *link, const struct sockaddr *address,
                                       socklen_t size) {
    const int yes = 1;
    link->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->fd < 0) {
        master_link_fail(link, "cannot make a socket: %s", strerror(errno));
        return;
    }
    (void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(link->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    if (connect(link->fd, address, size) != 0 && errno != EINPROGRESS) {
        master_link_fail(link, "cannot connect: %s", strerror(errno));
        return;
    }
    link->poll = memory_allocate_zeroed(sizeof *link->poll);
    if (link->poll == NULL || uv_poll_init(link->loop, link->poll, link->fd) != 0) {
        memory_free(link->poll);
        link->poll = NULL;
        master_link_fail(link, "out of memory");
        return;
    }
    link->poll->data = link;
    uv_unref((uv_handle_t *)link->poll);
    if (link->quorum != NULL) {
        quorum_begin_link(link->quorum);
    }
    master_link_move(link, LINK_RESOLVED);
    master_link_watch(link);
}

static void master_link_connect_on_resolved(uv_getaddrinfo_t *request, int status,
                                            struct addrinfo *found) {
    struct master_link_question *question = (struct master_link_question *)request;
    struct master_link *link = question->link;
    if (link != NULL) {
        link->question = NULL;
        if (status != 0 || found == NULL) {
            master_link_fail(link, "cannot find the host: %s",
                             status != 0 ? uv_strerror(status) : "no address");
        } else {
            master_link_connect_socket(link, found->ai_addr, found->ai_addrlen);
        }
    }
    uv_freeaddrinfo(found);
    memory_free(question);
}

static void master_link_attempt(struct master_link *link) {
    char port[8];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    master_link_move(link, LINK_TRIED);
    link->heard_at_ms = link->server->clock.monotonic_ms;
    /* An address needs no resolver, and no thread. */
    union socket_address address = {.any = {.sa_family = AF_UNSPEC}};
    if (inet_pton(AF_INET, master_link_host(link), &address.v4.sin_addr) == 1) {
        address.v4.sin_family = AF_INET;
        address.v4.sin_port = htons(master_link_port(link));
        master_link_connect_socket(link, &address.any, sizeof address.v4);
        return;
    }
    if (inet_pton(AF_INET6, master_link_host(link), &address.v6.sin6_addr) == 1) {
        address.v6.sin6_family = AF_INET6;
        address.v6.sin6_port = htons(master_link_port(link));
        master_link_connect_socket(link, &address.any, sizeof address.v6);
        return;
    }
    snprintf(port, sizeof port, "%u", (unsigned)master_link_port(link));
    struct master_link_question *question = memory_allocate_zeroed(sizeof *question);
    if (question == NULL) {
        master_link_fail(link, "out of memory");
        return;
    }
    question->link = link;
    int status = uv_getaddrinfo(link->loop, &question->request, master_link_connect_on_resolved,
                                master_link_host(link), port, &hints);
    if (status != 0) {
        memory_free(question);
        master_link_fail(link, "cannot look up the host: %s", uv_strerror(status));
        return;
    }
    link->question = question;
}

/* ---- the connection is there ---- */
/* The contents of the files as they are now: a link is made seldom. */
static bool master_link_connect_make_tls(struct master_link *link) {
    char error[TLS_CONTEXT_ERROR_MAX];
    const char *failed;
    const struct settings *settings = &link->server->settings;
    link->tls_context = tls_context_create_client(
        settings, settings->tls_replication_verify_name ? master_link_host(link) : NULL, &failed,
        error);
    if (link->tls_context == NULL) {
        master_link_fail(link, "TLS: %s: %s", failed, error);
        return false;
    }
    link->tls = tls_create_client(link->tls_context, link->fd);
    if (link->tls == NULL) {
        master_link_fail(link, "out of memory");
        return false;
    }
    return true;
}

/* Go on with the handshake of TLS. */
static void master_link_shake(struct master_link *link) {
    switch (tls_handshake(link->tls)) {
    case TLS_IS_WAITING:
        master_link_watch(link);
        return;
    case TLS_IS_OPEN:
        master_link_move(link, LINK_SHAKEN);
        master_link_greet(link);
        return;
    case TLS_HAS_FAILED:
        break;
    }
    const char *error = tls_error(link->tls);
    master_link_fail(link, "TLS: %s", error != NULL ? error : "the connection was closed");
}

/* The socket is connected, or cannot be. */
static void master_link_take_connection(struct master_link *link) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        master_link_fail(link, "cannot connect: %s", strerror(error != 0 ? error : errno));
        return;
    }
    if (link->server->settings.tls_replication) {
        if (master_link_connect_make_tls(link)) {
            master_link_move(link, LINK_TLS_OPEN);
            master_link_shake(link);
        }
        return;
    }
    master_link_move(link, LINK_OPEN);
    master_link_greet(link);
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
    link->server->replication.heard_at_ms = link->heard_at_ms;
    *is_over = size < READ_SIZE && (link->tls == NULL || !tls_has_input(link->tls));
    return true;
}

bool master_link_may_read(const struct master_link *link) {
    return link->fd >= 0 && !apply_is_going(&link->apply) && link->state != LINK_LOADING &&
           !staging_is_full(master_link_staging(link)) && !master_link_redis_is_full(link) &&
           (link->input.size < INPUT_FULL || link->whole_size == 0 || link->state == LINK_COPYING);
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
            !(is_redis ? master_link_redis_parse(link) : master_link_stream_parse(link))) {
            master_link_lose(link);
            return;
        }
        /* Linked groups are applied when all have come, and a master may send any number. */
        uint64_t limit = link->server->settings.client_query_buffer_limit;
        if (link->state == LINK_STREAMING && link->input.size - link->whole_size > limit) {
            link->wants_copy = true;
            master_link_fail(
                link,
                "a change of the master takes more than client-query-buffer-limit (%" PRIu64
                " bytes): a full copy is asked for instead",
                limit);
            return;
        }
    }
    master_link_wake(link);
}

/* ---- events of the socket ---- */

static void master_link_on_ready(uv_poll_t *poll, int status, int events) {
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
        master_link_stream_acknowledge(link);
    } else if (link->state >= LINK_COPYING && link->output.size == 0) {
        master_link_stream_say_ack(link, 0);
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
    link->pull_group = link->server->replication.group;
    link->pull_best = 0;
    master_link_begin(link, false);
}

/* Bytes of the next group come before a copy, which is loaded when all of it has come: each is further than
 * what is before it. */
bool master_link_advances(struct master_link *link) {
    const uint64_t copying = UINT64_C(1) << 62, loading = UINT64_C(1) << 63;
    const struct staging *staging = master_link_staging(link);
    const struct replication *replication = &link->server->replication;
    uint64_t at = link->input.size;
    bool is_further = replication->group > link->pull_group;
    if (is_further) {
        link->pull_group = replication->group;
        link->pull_best = 0;
    }
    if (link->state == LINK_COPYING) {
        at = copying + replication->copy_read_size;
    } else if (link->state == LINK_LOADING) {
        if (staging->state == STAGING_LOADED || staging->state == STAGING_ADOPTING ||
            (staging->state == STAGING_SYNCING && link->pull_best < loading)) {
            return true; /* this server's disk is at work */
        }
        at = loading + staging_loaded_size(staging);
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
        (void)master_link_stream_apply(link, UINT64_MAX);
    }
    if (apply_is_going(&link->apply)) {
        log_write(LOG_WARNING,
                  "replica: no memory to apply the rest of group %" PRIu64
                  ": the keys are no state of the master, and whoever follows copies anew",
                  link->apply.groups[link->apply.group_done].head.sequence);
        replication_make_id(link->server, link->server->replication.id); /* which nobody knows */
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
