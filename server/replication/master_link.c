/* See master_link.h.
 *
 * Invariant: taken_size <= whole_size <= parsed_size <= input.size; the group that apply is at begins at
 * taken_size, and then the input does not move. */
#include "server/replication/master_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/clients/failover.h"
#include "server/network/batch.h"
#include "server/network/tls_context.h"
#include "server/replication/history.h"
#include "server/system/log.h"

enum {
    LINE_MAX_SIZE = 1024, /* of an answer in the handshake */
#ifdef SERVER_TINY
    READ_SIZE = 64,
    INPUT_FULL = 512,
#else
    READ_SIZE = 256 * 1024,
    INPUT_FULL = 4 * 1024 * 1024, /* more is read only to complete a message, or linked groups */
#endif
    READS_MAX = 4, /* in one turn of the loop */
    INPUT_KEPT = 8 * 1024 * 1024,
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

static const struct transition {
    enum master_link_state from;
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
    ROW(LINK_WAITS, LINK_LOST, LINK_WAITS),
    ROW(LINK_RESOLVING, LINK_LOST, LINK_WAITS),
    ROW(LINK_CONNECTING, LINK_LOST, LINK_WAITS),
    ROW(LINK_SHAKING, LINK_LOST, LINK_WAITS),
    ROW(LINK_GREETING, LINK_LOST, LINK_WAITS),
    ROW(LINK_ASKING, LINK_LOST, LINK_WAITS),
    ROW(LINK_COPYING, LINK_LOST, LINK_WAITS),
    ROW(LINK_LOADING, LINK_LOST, LINK_WAITS),
    ROW(LINK_STREAMING, LINK_LOST, LINK_WAITS),
    ROW(LINK_OFF, LINK_STOPPED, LINK_OFF),
    ROW(LINK_WAITS, LINK_STOPPED, LINK_OFF),
    ROW(LINK_RESOLVING, LINK_STOPPED, LINK_OFF),
    ROW(LINK_CONNECTING, LINK_STOPPED, LINK_OFF),
    ROW(LINK_SHAKING, LINK_STOPPED, LINK_OFF),
    ROW(LINK_GREETING, LINK_STOPPED, LINK_OFF),
    ROW(LINK_ASKING, LINK_STOPPED, LINK_OFF),
    ROW(LINK_COPYING, LINK_STOPPED, LINK_OFF),
    ROW(LINK_LOADING, LINK_STOPPED, LINK_OFF),
    ROW(LINK_STREAMING, LINK_STOPPED, LINK_OFF),
#undef ROW
};
enum { TRANSITIONS = sizeof transitions / sizeof transitions[0] };

const char *master_link_transition(uint32_t index) {
    return index < TRANSITIONS ? transitions[index].text : NULL;
}

static struct replication *replication_of(const struct master_link *link) {
    return &link->server->replication;
}

static void move(struct master_link *link, enum master_link_event event) {
    const struct transition *row = transitions;
    while (row->from != link->state || row->event != event) {
        row++;
        CHECK(row < transitions + TRANSITIONS);
    }
    log_write(LOG_DEBUG, "replica: %s", row->text);
    link->state = row->to;
    if (replication_is_replica(replication_of(link))) {
        replication_of(link)->link = shown_as[link->state];
    }
}

static bool has_socket(const struct master_link *link) {
    return link->fd >= 0;
}

/* ---- the socket ---- */

static void free_poll(uv_handle_t *handle) {
    memory_free(handle);
}

static void on_ready(uv_poll_t *poll, int status, int events);

/* What is waited for: input, unless there is enough, and room for output. */
static void watch(struct master_link *link) {
    if (link->poll == NULL) {
        return;
    }
    bool is_connecting = link->state == LINK_CONNECTING;
    bool is_full =
        persistence_receive_is_full(link->server->persistence) || link->apply.is_going ||
        (link->input.size >= INPUT_FULL && link->whole_size > 0 && link->state != LINK_COPYING);
    bool wants_write = is_connecting || link->output.size > 0 ||
                       (link->tls != NULL && tls_wants_write(link->tls));
    bool wants_read = !is_connecting && !is_full && link->state != LINK_LOADING;
    int events = (wants_read ? UV_READABLE : 0) | (wants_write ? UV_WRITABLE : 0);
    if (events == link->polled) {
        return;
    }
    if (events == 0) {
        uv_poll_stop(link->poll);
        link->polled = 0;
    } else if (uv_poll_start(link->poll, events, on_ready) == 0) {
        link->polled = events;
    }
}

static void drop_question(struct master_link *link);

static void close_socket(struct master_link *link) {
    drop_question(link);
    uv_timer_stop(&link->timer);
    if (link->tls != NULL) {
        tls_destroy(link->tls);
        link->tls = NULL;
    }
    tls_context_release(link->tls_context);
    link->tls_context = NULL;
    if (link->poll != NULL) {
        uv_poll_stop(link->poll);
        uv_close((uv_handle_t *)link->poll, free_poll);
        link->poll = NULL;
        link->polled = 0;
    }
    if (link->fd >= 0) {
        close(link->fd);
        link->fd = -1;
    }
    apply_end(&link->apply);
    link->is_retrying = false;
    buffer_deinit(&link->input);
    buffer_deinit(&link->output);
    link->taken_size = 0;
    link->whole_size = 0;
    link->parsed_size = 0;
    link->wanted_size = 0;
    persistence_hold_walk(link->server->persistence, false);
    persistence_abandon_receive(link->server->persistence);
    replication_of(link)->copy_size = 0;
}

static void on_timer(uv_timer_t *timer);

static void wait_for_attempt(struct master_link *link) {
    unsigned shift = link->failures < 5 ? link->failures : 5;
    int64_t wait_ms = (int64_t)RETRY_FIRST_MS << shift;
    wait_ms = wait_ms < RETRY_LAST_MS ? wait_ms : RETRY_LAST_MS;
    (void)uv_timer_start(&link->timer, on_timer, (uint64_t)wait_ms, 0);
}

/* The same reason is logged once a minute. */
static void log_loss(struct master_link *link, enum master_link_state before) {
    const struct replication *replication = replication_of(link);
    int64_t now_ms = link->server->clock.monotonic_ms;
    if (before < LINK_COPYING && strcmp(link->reason, link->logged_reason) == 0 &&
        now_ms - link->logged_at_ms < LOG_AGAIN_MS) {
        return;
    }
    memcpy(link->logged_reason, link->reason, sizeof link->reason);
    link->logged_at_ms = now_ms;
    log_write(LOG_WARNING, "replica: no link to the master master=\"%s %u\" reason=\"%s\" group=%" PRIu64,
              replication->master_host, (unsigned)replication->master_port, link->reason,
              replication->group);
}

/* The attempt, or the link, has failed: the reason is set. */
static void lose(struct master_link *link) {
    struct replication *replication = replication_of(link);
    enum master_link_state before = link->state;
    if (before == LINK_OFF) {
        return;
    }
    close_socket(link);
    move(link, LINK_LOST);
    if (before == LINK_STREAMING) {
        replication->link_down_at_ms = link->server->clock.monotonic_ms;
        replication->counters.link_losses++;
    }
    log_loss(link, before);
    snprintf(replication->error, sizeof replication->error, "%s", link->reason);
    link->failures += link->failures < UINT32_MAX;
    if (link->wants_failover) {
        link->wants_failover = false;
        failover_end(link->server, false); /* which may end this link */
    }
    if (link->state == LINK_WAITS) {
        wait_for_attempt(link);
    }
    link->wake(link->context);
}

__attribute__((format(printf, 2, 3))) static void fail(struct master_link *link, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(link->reason, sizeof link->reason, format, arguments);
    va_end(arguments);
    lose(link);
}

void master_link_drop(struct master_link *link, const char *reason) {
    if (link->state != LINK_OFF && link->state != LINK_WAITS) {
        link->failures = 0;
        fail(link, "%s", reason);
    }
}

/* ---- connecting ---- */

/* Outlives the attempt where that ends before the answer. */
struct master_link_question {
    uv_getaddrinfo_t request; /* first */
    struct master_link *link;        /* NULL: nobody waits for the answer */
};

static void drop_question(struct master_link *link) {
    if (link->question != NULL) {
        link->question->link = NULL;
        (void)uv_cancel((uv_req_t *)&link->question->request);
        link->question = NULL;
    }
}

static void connect_socket(struct master_link *link, const struct sockaddr *address, socklen_t size) {
    const int yes = 1;
    link->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->fd < 0) {
        fail(link, "cannot make a socket: %s", strerror(errno));
        return;
    }
    (void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(link->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    if (connect(link->fd, address, size) != 0 && errno != EINPROGRESS) {
        fail(link, "cannot connect: %s", strerror(errno));
        return;
    }
    link->poll = memory_allocate_zeroed(sizeof *link->poll);
    if (link->poll == NULL || uv_poll_init(link->loop, link->poll, link->fd) != 0) {
        memory_free(link->poll);
        link->poll = NULL;
        fail(link, "out of memory");
        return;
    }
    link->poll->data = link;
    uv_unref((uv_handle_t *)link->poll);
    move(link, LINK_RESOLVED);
    watch(link);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found) {
    struct master_link_question *question = (struct master_link_question *)request;
    struct master_link *link = question->link;
    if (link != NULL) {
        link->question = NULL;
        if (status != 0 || found == NULL) {
            fail(link, "cannot find the host: %s", status != 0 ? uv_strerror(status) : "no address");
        } else {
            connect_socket(link, found->ai_addr, found->ai_addrlen);
        }
    }
    uv_freeaddrinfo(found);
    memory_free(question);
}

/* An address needs no resolver, and no thread. false: it is a name. */
static bool connect_to_address(struct master_link *link) {
    const struct replication *replication = replication_of(link);
    union socket_address address = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t size = 0;
    if (inet_pton(AF_INET, replication->master_host, &address.v4.sin_addr) == 1) {
        address.v4.sin_family = AF_INET;
        address.v4.sin_port = htons(replication->master_port);
        size = sizeof address.v4;
    } else if (inet_pton(AF_INET6, replication->master_host, &address.v6.sin6_addr) == 1) {
        address.v6.sin6_family = AF_INET6;
        address.v6.sin6_port = htons(replication->master_port);
        size = sizeof address.v6;
    }
    if (size > 0) {
        connect_socket(link, &address.any, size);
    }
    return size > 0;
}

static void attempt(struct master_link *link) {
    const struct replication *replication = replication_of(link);
    char port[8];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    move(link, LINK_TRIED);
    link->heard_at_ms = link->server->clock.monotonic_ms;
    if (connect_to_address(link)) {
        return;
    }
    snprintf(port, sizeof port, "%u", (unsigned)replication->master_port);
    struct master_link_question *question = memory_allocate_zeroed(sizeof *question);
    if (question == NULL) {
        fail(link, "out of memory");
        return;
    }
    question->link = link;
    int status = uv_getaddrinfo(link->loop, &question->request, on_resolved,
                                replication->master_host, port, &hints);
    if (status != 0) {
        memory_free(question);
        fail(link, "cannot look up the host: %s", uv_strerror(status));
        return;
    }
    link->question = question;
}

static void on_timer(uv_timer_t *timer) {
    struct master_link *link = timer->data;
    if (link->state == LINK_WAITS && !link->server->durability.is_loading) {
        attempt(link);
    } else if (link->state == LINK_WAITS) {
        wait_for_attempt(link);
    }
}

/* ---- sending ---- */

static bool send_output(struct master_link *link) {
    struct buffer *output = &link->output;
    while (output->size > 0) {
        ssize_t sent = link->tls != NULL
                           ? tls_write(link->tls, output->at, output->size)
                           : send(link->fd, output->at, output->size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && errno == EAGAIN) {
            return true;
        }
        if (sent < 0) {
            fail(link, "cannot send: %s", strerror(errno));
            return false;
        }
        buffer_drop_front(output, (size_t)sent);
    }
    return true;
}

/* One command of so many texts. */
static void say(struct master_link *link, const char *const *texts, unsigned count) {
    char number[32];
    struct buffer *output = &link->output;
    int size = snprintf(number, sizeof number, "*%u\r\n", count);
    buffer_append(output, number, (size_t)size);
    for (unsigned i = 0; i < count; i++) {
        size = snprintf(number, sizeof number, "$%zu\r\n", strlen(texts[i]));
        buffer_append(output, number, (size_t)size);
        buffer_append(output, texts[i], strlen(texts[i]));
        buffer_append(output, "\r\n", 2);
    }
    if (output->is_broken) {
        fail(link, "out of memory");
    } else if (send_output(link)) {
        watch(link);
    }
}

/* ---- the handshake ---- */

static bool is_said(const struct master_link *link, enum master_link_line line) {
    const struct settings *settings = &link->server->settings;
    switch (line) {
    case LINK_SAYS_AUTH:
        return settings->masterauth != NULL && settings->masterauth[0] != '\0';
    case LINK_SAYS_ADDRESS:
        return settings->replica_announce_ip != NULL && settings->replica_announce_ip[0] != '\0';
    case LINK_SAYS_PING:
    case LINK_SAYS_PORT:
    case LINK_SAYS_CAPABILITIES:
    case LINK_SAYS_VERSION:
    case LINK_SAYS_SYNC:
    case LINK_LINES:
        break;
    }
    return true;
}

static void say_auth(struct master_link *link) {
    const struct settings *settings = &link->server->settings;
    const char *const texts[] = {"AUTH", settings->masteruser, settings->masterauth};
    const char *const short_texts[] = {"AUTH", settings->masterauth};
    bool has_user = settings->masteruser != NULL && settings->masteruser[0] != '\0';
    say(link, has_user ? texts : short_texts, has_user ? 3 : 2);
}

static int64_t announced_port(const struct settings *settings) {
    return settings->replica_announce_port != 0 ? settings->replica_announce_port
           : settings->tls_replication          ? settings->tls_port
                                                : settings->port;
}

/* Ask for what follows the last group, if that is anything that the master can know. */
static void say_sync(struct master_link *link) {
    const struct replication *replication = replication_of(link);
    struct persistence *persistence = link->server->persistence;
    struct history history;
    char number[24];
    bool is_known = history_read(link->server->registry, &history) &&
                    strcmp(history.id, replication->id) == 0 && !persistence_has_gap(persistence) &&
                    replication->is_whole;
    bool is_named = is_known || link->wants_failover;
    link->next_group = persistence_last_group(persistence) + 1;
    snprintf(number, sizeof number, "%" PRIu64, is_named ? link->next_group : 0);
    const char *const texts[] = {"LB.SYNC", is_named ? replication->id : "?", number, "FAILOVER"};
    say(link, texts, link->wants_failover ? 4 : 3);
}

static void say_line(struct master_link *link) {
    const struct settings *settings = &link->server->settings;
    char number[24];
    switch (link->line) {
    case LINK_SAYS_PING:
        say(link, (const char *const[]){"PING"}, 1);
        break;
    case LINK_SAYS_AUTH:
        say_auth(link);
        break;
    case LINK_SAYS_PORT:
        snprintf(number, sizeof number, "%lld", (long long)announced_port(settings));
        say(link, (const char *const[]){"REPLCONF", "listening-port", number}, 3);
        break;
    case LINK_SAYS_ADDRESS:
        say(link, (const char *const[]){"REPLCONF", "ip-address", settings->replica_announce_ip}, 3);
        break;
    case LINK_SAYS_CAPABILITIES:
        say(link, (const char *const[]){"REPLCONF", "capa", "eof", "capa", "psync2"}, 5);
        break;
    case LINK_SAYS_VERSION:
        snprintf(number, sizeof number, "%d", (int)WIRE_VERSION);
        say(link, (const char *const[]){"REPLCONF", "leaderboard", number}, 3);
        break;
    case LINK_SAYS_SYNC:
        move(link, LINK_GREETED);
        say_sync(link);
        break;
    case LINK_LINES:
        CHECK(false);
    }
}

static void say_next(struct master_link *link) {
    do {
        link->line++;
    } while (!is_said(link, link->line));
    say_line(link);
}

static bool begins_with(struct bytes text, const char *wanted) {
    size_t size = strlen(wanted);
    return text.size >= size && memcmp(text.at, wanted, size) == 0;
}

static void fail_with_answer(struct master_link *link, const char *what, struct bytes answer) {
    fail(link, "%s: %s", what, log_quote(answer).text);
}

/* "+LEADERBOARD 4", or an error of a server that is none. */
static void take_version(struct master_link *link, struct bytes answer) {
    uint64_t version;
    if (begins_with(answer, "-ERR ") && !link->wants_failover) {
        link->has_found_redis = true;
        master_link_stop(link);
        link->wake(link->context);
        return;
    }
    if (!begins_with(answer, "+LEADERBOARD ")) {
        fail_with_answer(link, "the master is no leaderboard server", answer);
        return;
    }
    struct bytes number = {.at = answer.at + sizeof "+LEADERBOARD " - 1,
                           .size = answer.size - (sizeof "+LEADERBOARD " - 1)};
    if (!bytes_parse_u64(number, &version) || version + 1 < WIRE_VERSION ||
        version > WIRE_VERSION + 1) {
        fail(link,
             "the master's stream has version %.*s, and this server's %d: they may differ by one. "
             "Upgrade one of them step by step",
             (int)(number.size < 20 ? number.size : 20), number.at, (int)WIRE_VERSION);
        return;
    }
    say_next(link);
}

static void continue_stream(struct master_link *link, struct bytes id);
static void begin_copy(struct master_link *link);

static void take_sync(struct master_link *link, struct bytes answer) {
    enum { CONTINUE_SIZE = sizeof "+CONTINUE " - 1, FULL_SIZE = sizeof "+FULL " - 1 };
    struct bytes rest = {.at = NULL};
    bool is_continued = begins_with(answer, "+CONTINUE ");
    if (!is_continued && !begins_with(answer, "+FULL ")) {
        fail_with_answer(link, "the master refuses", answer);
        return;
    }
    size_t skipped = is_continued ? CONTINUE_SIZE : FULL_SIZE;
    rest = (struct bytes){.at = answer.at + skipped, .size = answer.size - skipped};
    if (!history_is_id(rest)) {
        fail_with_answer(link, "the master's answer is not valid", answer);
        return;
    }
    if (link->wants_failover) {
        link->wants_failover = false;
        failover_end(link->server, true);
    }
    if (is_continued) {
        continue_stream(link, rest);
    } else {
        begin_copy(link);
    }
}

static void take_line(struct master_link *link, struct bytes answer) {
    bool is_fine = answer.size > 0 && answer.at[0] == '+';
    switch (link->line) {
    case LINK_SAYS_PING:
        if (!is_fine && !begins_with(answer, "-NOAUTH") && !begins_with(answer, "-NOPERM") &&
            !begins_with(answer, "-ERR operation not permitted")) {
            fail_with_answer(link, "the master answers PING", answer);
            return;
        }
        break;
    case LINK_SAYS_AUTH:
        if (!is_fine) {
            fail_with_answer(link, "the master does not take masterauth", answer);
            return;
        }
        break;
    case LINK_SAYS_VERSION:
        take_version(link, answer);
        return;
    case LINK_SAYS_SYNC:
        take_sync(link, answer);
        return;
    case LINK_SAYS_PORT:
    case LINK_SAYS_ADDRESS:
    case LINK_SAYS_CAPABILITIES:
    case LINK_LINES:
        break; /* an old server may not know it */
    }
    say_next(link);
}

/* Lines of the handshake. true: the rest is messages. */
static bool take_lines(struct master_link *link) {
    while (link->state == LINK_GREETING || link->state == LINK_ASKING) {
        const char *end = memchr(link->input.at, '\n', link->input.size);
        if (end == NULL) {
            if (link->input.size > LINE_MAX_SIZE) {
                fail(link, "the master's answer is no line");
            }
            return false;
        }
        char line[LINE_MAX_SIZE + 1];
        size_t size = (size_t)(end - link->input.at);
        if (size > LINE_MAX_SIZE) {
            fail(link, "the master's answer is too long");
            return false;
        }
        memcpy(line, link->input.at, size);
        buffer_drop_front(&link->input, size + 1);
        size -= size > 0 && line[size - 1] == '\r';
        if (size > 0) { /* empty lines: the master is still there */
            take_line(link, (struct bytes){.at = line, .size = size});
        }
        if (link->input.size == 0) {
            break;
        }
    }
    return link->state >= LINK_COPYING;
}

/* ---- copies ---- */

static void begin_copy(struct master_link *link) {
    struct replication *replication = replication_of(link);
    char error[PERSISTENCE_ERROR_MAX];
    switch (persistence_begin_receive(link->server->persistence, error)) {
    case PERSISTENCE_OK:
        break;
    case PERSISTENCE_BUSY:
        fail(link, "a full copy cannot begin yet: the one before is still being cleared away");
        return;
    case PERSISTENCE_FAILED:
        fail(link, "a full copy cannot be received: %s", error);
        return;
    }
    replication->copy_read_size = 0;
    replication->copy_at_ms = link->server->clock.monotonic_ms;
    log_write(LOG_NOTICE, "replica: full copy begun master=\"%s %u\"", replication->master_host,
              (unsigned)replication->master_port);
    move(link, LINK_COPY_BEGUN);
}

static void take_piece(struct master_link *link, const struct wire_message *message) {
    struct replication *replication = replication_of(link);
    persistence_receive(link->server->persistence, message->at, message->size);
    replication->copy_read_size += message->size;
    replication->counters.received_copy_size += message->size;
    replication->copy_at_ms = link->server->clock.monotonic_ms;
}

/* It is loaded, and has replaced everything. */
static void note_adopted(struct master_link *link) {
    struct replication *replication = replication_of(link);
    struct history history;
    struct persistence *persistence = link->server->persistence;
    persistence_abandon_receive(persistence); /* what was replaced is freed */
    link->has_replaced = true;
    replication->group = persistence_last_group(persistence);
    if (!history_read(link->server->registry, &history)) {
        fail(link, "the full copy does not say which history it is of");
        return;
    }
    memcpy(replication->id, history.id, sizeof history.id);
    memcpy(replication->second_id, history.second_id, sizeof history.second_id);
    replication->second_until = history.second_until;
    replication->is_whole = true;
    persistence_clear_gap(persistence);
    link->next_group = replication->group + 1;
    link->wants_ack = true;
    replication->read_group = replication->group;
    log_write(LOG_NOTICE, "replica: full copy in place id=%s group=%" PRIu64, replication->id,
              replication->group);
    move(link, LINK_ADOPTED);
    link->failures = 0;
    replication->error[0] = '\0';
}

/* true: there is more to do at once. */
static bool step_copy(struct master_link *link, uint64_t budget_ns) {
    struct persistence *persistence = link->server->persistence;
    const char *error = NULL;
    bool has_more = persistence_step_receive(persistence, budget_ns);
    switch (persistence_received_state(persistence, &error)) {
    case RECEIVED_FAILED:
        fail(link, "the full copy cannot be taken: %s", error);
        return false;
    case RECEIVED_ADOPTED:
        note_adopted(link);
        watch(link);
        return true;
    case RECEIVED_NONE:
    case RECEIVED_RECEIVING:
    case RECEIVED_SYNCING:
    case RECEIVED_LOADING:
    case RECEIVED_LOADED:
    case RECEIVED_ADOPTING:
    case RECEIVED_STATES:
        break;
    }
    watch(link);
    return has_more;
}

/* ---- messages ---- */

static void continue_stream(struct master_link *link, struct bytes id) {
    struct replication *replication = replication_of(link);
    log_write(LOG_NOTICE, "replica: the stream continues master=\"%s %u\" id=%.*s group=%" PRIu64,
              replication->master_host, (unsigned)replication->master_port, (int)id.size, id.at,
              link->next_group - 1);
    replication->read_group = link->next_group - 1;
    move(link, LINK_CONTINUES);
    link->failures = 0;
    link->wants_ack = true;
    replication->error[0] = '\0';
}

static bool refuse(struct master_link *link, const char *reason) {
    snprintf(link->reason, sizeof link->reason, "the master's stream is not valid: %s", reason);
    return false;
}

/* false: it may not come now. */
static bool take_group(struct master_link *link, const struct wire_message *message) {
    struct replication *replication = replication_of(link);
    if (link->state != LINK_STREAMING) {
        return refuse(link, "a group before the copy is there");
    }
    if (message->head.sequence != link->next_group) {
        return refuse(link, "a group that is not the next one");
    }
    link->next_group++;
    if (!message->head.is_linked) {
        link->whole_size = link->parsed_size;
        replication->read_group = message->head.sequence;
    }
    replication->counters.received_size += message->whole_size;
    return true;
}

/* What is no group is taken at once. */
static bool take_message(struct master_link *link, const struct wire_message *message) {
    bool is_copying = link->state == LINK_COPYING;
    switch (message->kind) {
    case WIRE_GROUP:
        return take_group(link, message);
    case WIRE_PING:
        if (link->state == LINK_STREAMING) {
            clock_follow(&link->server->clock, message->time_us, false);
        }
        return true;
    case WIRE_PIECE:
        if (!is_copying) {
            return refuse(link, "a piece of a copy that was not asked for");
        }
        take_piece(link, message);
        return true;
    case WIRE_END:
        if (!is_copying) {
            return refuse(link, "the end of a copy that was not asked for");
        }
        persistence_end_receive(link->server->persistence);
        link->copy_group = message->group;
        move(link, LINK_COPY_ENDED);
        return true;
    case WIRE_GIVEN_UP:
        snprintf(link->reason, sizeof link->reason, "the master has given the copy up: %s",
                 log_quote((struct bytes){.at = message->at, .size = message->size}).text);
        return false;
    }
    return refuse(link, "an unknown message");
}

/* Does no group lie before parsed_size, so that what was taken can be dropped? */
static void drop_taken(struct master_link *link) {
    struct buffer *input = &link->input;
    if (link->apply.is_going) {
        return;
    }
    if (link->taken_size == link->whole_size && link->whole_size == link->parsed_size) {
        buffer_drop_front(input, link->parsed_size);
        link->taken_size = 0;
        link->whole_size = 0;
        link->parsed_size = 0;
        if (input->size == 0 && input->capacity > INPUT_KEPT) {
            buffer_deinit(input);
        }
    }
}

bool master_link_parse(struct master_link *link) {
    while (link->state >= LINK_COPYING && link->state != LINK_LOADING) {
        struct wire_message message;
        const char *reason;
        size_t left = link->input.size - link->parsed_size;
        if (left < link->wanted_size) {
            break;
        }
        enum wire_status status =
            wire_read(link->input.at + link->parsed_size, left, &message, &reason);
        link->wanted_size = message.whole_size;
        if (status == WIRE_PART) {
            break;
        }
        link->wanted_size = 0;
        if (status == WIRE_BAD) {
            return refuse(link, reason);
        }
        bool is_alone = link->parsed_size == link->whole_size;
        bool is_idle = is_alone && link->taken_size == link->whole_size && !link->apply.is_going;
        link->parsed_size += message.whole_size;
        if (!take_message(link, &message)) {
            return false;
        }
        if (message.kind != WIRE_GROUP && is_alone) {
            link->whole_size = link->parsed_size; /* nothing to be applied */
            link->taken_size = is_idle ? link->parsed_size : link->taken_size;
            drop_taken(link);
        }
    }
    return true;
}

/* ---- input ---- */

/* false: the link is lost. */
static bool read_some(struct master_link *link, bool *is_over) {
    char *at = buffer_reserve(&link->input, READ_SIZE);
    *is_over = true;
    if (at == NULL) {
        fail(link, "no memory for what the master sends");
        return false;
    }
    ssize_t size;
    do {
        size = link->tls != NULL ? tls_read(link->tls, at, READ_SIZE)
                                 : read(link->fd, at, READ_SIZE);
    } while (size < 0 && errno == EINTR);
    if (size < 0 && errno == EAGAIN) {
        return true;
    }
    if (size <= 0) {
        const char *reason = size == 0 ? "the master has closed the connection" : strerror(errno);
        fail(link, "%s", link->tls != NULL && tls_error(link->tls) != NULL ? tls_error(link->tls)
                                                                          : reason);
        return false;
    }
    buffer_commit(&link->input, (size_t)size);
    link->heard_at_ms = link->server->clock.monotonic_ms;
    replication_of(link)->heard_at_ms = link->heard_at_ms;
    *is_over = size < READ_SIZE && (link->tls == NULL || !tls_has_input(link->tls));
    return true;
}

static bool may_read(const struct master_link *link) {
    return has_socket(link) && !link->apply.is_going && link->state != LINK_LOADING &&
           !persistence_receive_is_full(link->server->persistence) &&
           (link->input.size < INPUT_FULL || link->whole_size == 0 ||
            link->state == LINK_COPYING);
}

static void take_input(struct master_link *link) {
    bool is_over = false;
    for (int i = 0; i < READS_MAX && !is_over && may_read(link); i++) {
        if (!read_some(link, &is_over)) {
            return;
        }
        if (link->state < LINK_COPYING && !take_lines(link)) {
            continue;
        }
        if (link->state >= LINK_COPYING && !master_link_parse(link)) {
            lose(link);
            return;
        }
    }
    link->wake(link->context);
}

/* ---- events of the socket ---- */

static void begin_tls(struct master_link *link);

static void take_connection(struct master_link *link) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        fail(link, "cannot connect: %s", strerror(error != 0 ? error : errno));
        return;
    }
    if (link->server->settings.tls_replication) {
        begin_tls(link);
        return;
    }
    move(link, LINK_OPEN);
    link->line = LINK_SAYS_PING;
    say_line(link);
}

static void shake(struct master_link *link) {
    switch (tls_handshake(link->tls)) {
    case TLS_IS_WAITING:
        watch(link);
        return;
    case TLS_IS_OPEN:
        move(link, LINK_SHAKEN);
        link->line = LINK_SAYS_PING;
        say_line(link);
        return;
    case TLS_HAS_FAILED:
        break;
    }
    const char *error = tls_error(link->tls);
    fail(link, "TLS: %s", error != NULL ? error : "the connection was closed");
}

static void begin_tls(struct master_link *link) {
    fail(link, "tls-replication is not there yet");
}

static void on_ready(uv_poll_t *poll, int status, int events) {
    struct master_link *link = poll->data;
    server_update_time(link->server);
    if (link->state == LINK_CONNECTING) {
        take_connection(link);
        return;
    }
    if (link->state == LINK_SHAKING) {
        shake(link);
        return;
    }
    if (status == 0 && (events & UV_WRITABLE) != 0 && !send_output(link)) {
        return;
    }
    if ((status != 0 || (events & UV_READABLE) != 0) && may_read(link)) {
        take_input(link);
    }
    watch(link);
}

/* ---- applying ---- */

static void take_history(struct master_link *link) {
    struct replication *replication = replication_of(link);
    struct history history;
    if (history_read(link->server->registry, &history)) {
        memcpy(replication->id, history.id, sizeof history.id);
        memcpy(replication->second_id, history.second_id, sizeof history.second_id);
        replication->second_until = history.second_until;
    }
}

/* The keys do not fit the stream: only a full copy helps. */
static void give_up_keys(struct master_link *link) {
    struct replication *replication = replication_of(link);
    log_write(LOG_WARNING, "replica: %s: the keys here are not those of the master; a full copy "
                           "will replace them",
              link->apply.error);
    replication_make_id(link->server, replication->id); /* which nobody knows */
    fail(link, "%s", link->apply.error);
}

/* The next group that has come whole. */
static void begin_group(struct master_link *link) {
    struct wire_message message;
    const char *reason;
    do {
        CHECK(wire_read(link->input.at + link->taken_size, link->whole_size - link->taken_size,
                        &message, &reason) == WIRE_MESSAGE);
        if (message.kind == WIRE_GROUP) {
            apply_begin(&link->apply, &message.head, wire_payload(&message));
            return;
        }
        link->taken_size += message.whole_size;
    } while (link->taken_size < link->whole_size);
}

static void note_applied(struct master_link *link) {
    struct replication *replication = replication_of(link);
    const struct apply *apply = &link->apply;
    link->taken_size += wire_group_size(&apply->head);
    replication->group = apply->head.sequence;
    link->wants_ack = true;
    if (apply->has_history) {
        take_history(link);
    }
    if (apply->head.time_us != 0) {
        clock_follow(&link->server->clock, (int64_t)apply->head.time_us, true);
    }
    persistence_hold_walk(link->server->persistence, apply->head.is_linked);
    link->is_retrying = false;
}

static bool has_groups(const struct master_link *link) {
    return link->apply.is_going || link->taken_size < link->whole_size;
}

/* true: there is more to do at once. */
static bool apply_some(struct master_link *link, uint64_t budget_ns) {
    struct persistence *persistence = link->server->persistence;
    uint64_t begin = clock_ticks();
    if (link->is_retrying) {
        return false;
    }
    while (has_groups(link)) {
        uint64_t spent_ns = clock_ticks_to_ns(clock_ticks() - begin);
        if (spent_ns >= budget_ns) {
            return true;
        }
        if (persistence_is_behind(persistence)) {
            return false; /* the loop is woken when the disk has taken some */
        }
        if (!link->apply.is_going) {
            begin_group(link);
            if (!link->apply.is_going) {
                break;
            }
        }
        switch (apply_step(&link->apply, budget_ns - spent_ns)) {
        case APPLY_DONE:
            note_applied(link);
            break;
        case APPLY_MORE:
            persistence_hold_walk(persistence, true);
            break;
        case APPLY_OUT_OF_MEMORY:
            log_write(LOG_WARNING, "replica: no memory to apply group %" PRIu64 ": tried again",
                      link->apply.head.sequence);
            persistence_hold_walk(persistence, true);
            link->is_retrying = true;
            return false;
        case APPLY_IMPOSSIBLE:
            give_up_keys(link);
            return false;
        }
    }
    drop_taken(link);
    return false;
}

bool master_link_step(struct master_link *link, uint64_t budget_ns) {
    if (link->state == LINK_COPYING || link->state == LINK_LOADING) {
        return step_copy(link, budget_ns);
    }
    bool is_clearing = persistence_step_receive(link->server->persistence, budget_ns / 2);
    if (link->state != LINK_STREAMING) {
        return is_clearing;
    }
    if (link->parsed_size < link->input.size && !link->apply.is_going && !master_link_parse(link)) {
        lose(link); /* what came behind a copy, or while a group was applied in part */
        return false;
    }
    bool has_more = apply_some(link, budget_ns);
    if (link->state == LINK_STREAMING && !link->apply.is_going) {
        watch(link);
        if (link->tls != NULL && tls_has_input(link->tls) && may_read(link)) {
            take_input(link);
        }
    }
    return has_more || is_clearing;
}

/* ---- acknowledging ---- */

static void acknowledge(struct master_link *link, uint64_t group) {
    char number[24], disk_number[24];
    const char *const texts[] = {"REPLCONF", "ACK", number, "FSYNC", disk_number};
    uint64_t disk_group = persistence_synced_group(link->server->persistence);
    bool has_disk = group > 0 && disk_group > 0;
    snprintf(number, sizeof number, "%" PRIu64, group);
    snprintf(disk_number, sizeof disk_number, "%" PRIu64, disk_group < group ? disk_group : group);
    say(link, texts, has_disk ? 5 : 3);
}

void master_link_acknowledge(struct master_link *link) {
    if (link->state != LINK_STREAMING || !link->wants_ack || link->output.size > 0) {
        return;
    }
    link->wants_ack = false;
    acknowledge(link, replication_of(link)->group);
}

void master_link_second(struct master_link *link) {
    const struct server *server = link->server;
    int64_t now_ms = server->clock.monotonic_ms;
    link->is_retrying = false;
    if (link->state == LINK_OFF || link->state == LINK_WAITS) {
        return;
    }
    if (link->state == LINK_LOADING || link->apply.is_going) {
        link->heard_at_ms = now_ms; /* nothing is read meanwhile */
    }
    if (now_ms - link->heard_at_ms > server->settings.repl_timeout_s * SECOND_MS) {
        fail(link, "the master said nothing for repl-timeout");
        return;
    }
    if (link->state == LINK_STREAMING) {
        link->wants_ack = true;
        master_link_acknowledge(link);
    } else if (link->state >= LINK_COPYING && link->output.size == 0) {
        acknowledge(link, 0);
    }
}

/* ---- the interface ---- */

bool master_link_init(struct master_link *link, struct server *server, uv_loop_t *loop) {
    link->server = server;
    link->loop = loop;
    link->fd = -1;
    link->timer.data = link;
    buffer_init(&link->input, 0);
    buffer_init(&link->output, 0);
    if (uv_timer_init(loop, &link->timer) != 0) {
        return false;
    }
    uv_unref((uv_handle_t *)&link->timer);
    return true;
}

void master_link_deinit(struct master_link *link) {
    link->wants_failover = false;
    close_socket(link);
    link->state = LINK_OFF;
    uv_close((uv_handle_t *)&link->timer, NULL);
}

void master_link_begin(struct master_link *link, bool wants_failover) {
    CHECK(link->state == LINK_OFF);
    link->failures = 0;
    link->wants_failover = wants_failover;
    link->logged_reason[0] = '\0';
    link->apply.registry = link->server->registry;
    link->apply.persistence = link->server->persistence;
    persistence_set_following(link->server->persistence, true);
    move(link, LINK_BEGUN);
    (void)uv_timer_start(&link->timer, on_timer, 0, 0);
}

void master_link_stop(struct master_link *link) {
    if (link->state == LINK_STREAMING) {
        link->is_retrying = false;
        while (link->state == LINK_STREAMING && has_groups(link) && !link->is_retrying) {
            (void)apply_some(link, UINT64_MAX);
        }
    }
    if (link->state == LINK_OFF) {
        return;
    }
    link->wants_failover = false;
    close_socket(link);
    move(link, LINK_STOPPED);
}
