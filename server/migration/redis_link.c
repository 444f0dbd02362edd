/* See redis_link.h. */
#include "server/migration/redis_link.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "codec/memory.h"
#include "codec/thread_signals.h"
#include "server/migration/redis_wire.h"
#include "server/replication/wire.h"
#include "server/system/clock.h"
#include "server/system/log.h"

enum {
    ACK_MS = 1000,
    PUMP_MS = 2, /* between two looks at a ring that was full */
    RETRY_MS = 1000,
    MARK_SIZE = 40, /* what ends a copy of unknown size */
    REPLY_MAX = 512,
    COMMAND_MAX = 2048,
};

struct redis_link {
    struct redis_link_options options;
    struct redis_spool *spool;
    void (*wake)(void *context);
    void *context;
    uv_thread_t thread;
    atomic_bool is_closed;  /* no more is received */
    atomic_bool is_ended;   /* and the thread ends */
    atomic_bool is_dropped; /* connect again */
    atomic_bool is_over;
    uv_mutex_t mutex;
    struct redis_link_view view; /* under the mutex */
    /* The thread's own. */
    struct redis_wire wire;
    char id[REPLICATION_ID_SIZE + 1];
    bool has_copy; /* a copy has come as a whole: what follows may go on from there */
    uint64_t received_offset;
    bool is_more; /* the spool's file has more than the ring takes */
    int64_t heard_at_ms, acked_at_ms;
    char failed[REDIS_LINK_ERROR_MAX];
};

static int64_t redis_link_now_ms(void) {
    return (int64_t)(clock_monotonic_us() / 1000);
}

/* ---- what the loop may know ---- */

static void redis_link_publish_state(struct redis_link *link, enum replication_link state) {
    uv_mutex_lock(&link->mutex);
    link->view.state = state;
    uv_mutex_unlock(&link->mutex);
    link->wake(link->context);
}

static void redis_link_publish_error(struct redis_link *link, const char *error) {
    uv_mutex_lock(&link->mutex);
    bool is_new = strcmp(link->view.error, error) != 0;
    snprintf(link->view.error, sizeof link->view.error, "%s", error);
    uv_mutex_unlock(&link->mutex);
    if (is_new && error[0] != '\0') {
        log_write(LOG_WARNING, "replication: %s source=%s:%u", error, link->options.host,
                  (unsigned)link->options.port);
    }
}

static void redis_link_publish_received(struct redis_link *link, uint64_t size, bool is_copy) {
    link->heard_at_ms = redis_link_now_ms();
    uv_mutex_lock(&link->mutex);
    link->view.received_size += size;
    link->view.heard_at_ms = link->heard_at_ms;
    if (is_copy) {
        link->view.copy_read_size += size;
        link->view.copy_at_ms = link->heard_at_ms;
    } else {
        link->view.received_offset = link->received_offset;
    }
    uv_mutex_unlock(&link->mutex);
    link->wake(link->context);
}

static bool redis_link_fail(struct redis_link *link, const char *why) {
    snprintf(link->failed, sizeof link->failed, "%s", why);
    return false;
}

static bool redis_link_fail_wire(struct redis_link *link) {
    return redis_link_fail(link, link->wire.error);
}

/* ---- sending ---- */

static bool redis_link_send_words(struct redis_link *link, const char *const *words,
                                  unsigned count) {
    char command[COMMAND_MAX];
    size_t size = (size_t)snprintf(command, sizeof command, "*%u\r\n", count);
    for (unsigned i = 0; i < count; i++) {
        int added = snprintf(command + size, sizeof command - size, "$%zu\r\n%s\r\n",
                             strlen(words[i]), words[i]);
        if (added < 0 || (size_t)added >= sizeof command - size) {
            return redis_link_fail(link, "a word of the handshake is too long");
        }
        size += (size_t)added;
    }
    return redis_wire_write(&link->wire, (struct bytes){.at = command, .size = size},
                            link->options.timeout_ms) ||
           redis_link_fail_wire(link);
}

#define SEND(link, ...)                                                                            \
    redis_link_send_words(link, (const char *const[]){__VA_ARGS__},                                \
                          sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static bool redis_link_read_line(struct redis_link *link, char *line) {
    if (!redis_wire_read_line(&link->wire, line, REPLY_MAX, link->options.timeout_ms)) {
        return redis_link_fail_wire(link);
    }
    return true;
}

static bool redis_link_begins(const char *line, const char *word) {
    return strncmp(line, word, strlen(word)) == 0;
}

static bool redis_link_fail_answer(struct redis_link *link, const char *what, const char *line) {
    char why[REDIS_LINK_ERROR_MAX];
    snprintf(why, sizeof why, "the source answers %s with: %s", what,
             bytes_show(bytes_from_text(line)).text);
    return redis_link_fail(link, why);
}

/* ---- the handshake ---- */

/* The one whose copies can be read: RDB version 80. */
#define VALKEY_VERSION "9.0.0"

bool redis_link_is_redis(struct bytes answer) {
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

/* Is it still a Redis? */
static bool redis_link_check_kind(struct redis_link *link) {
    char line[REPLY_MAX];
    char version[8];
    snprintf(version, sizeof version, "%d", (int)WIRE_VERSION);
    if (!SEND(link, "REPLCONF", "leaderboard", version) || !redis_link_read_line(link, line)) {
        return false;
    }
    if (redis_link_begins(line, "+LEADERBOARD ")) {
        uv_mutex_lock(&link->mutex);
        link->view.is_leaderboard = true;
        uv_mutex_unlock(&link->mutex);
        return redis_link_fail(link, "the source is a leaderboard server now");
    }
    return redis_link_is_redis(bytes_from_text(line)) ||
           redis_link_fail_answer(link, "REPLCONF leaderboard", line);
}

static bool redis_link_shake_hands(struct redis_link *link) {
    const struct redis_link_options *options = &link->options;
    char line[REPLY_MAX];
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)options->announced_port);
    if (!SEND(link, "PING") || !redis_link_read_line(link, line)) {
        return false;
    }
    if (line[0] != '+' && !redis_link_begins(line, "-NOAUTH") &&
        !redis_link_begins(line, "-NOPERM") &&
        !redis_link_begins(line, "-ERR operation not permitted")) {
        return redis_link_fail_answer(link, "PING", line);
    }
    if (options->password[0] != '\0') {
        bool is_sent = options->user[0] != '\0'
                           ? SEND(link, "AUTH", options->user, options->password)
                           : SEND(link, "AUTH", options->password);
        if (!is_sent || !redis_link_read_line(link, line)) {
            return false;
        }
        if (line[0] == '-') {
            return redis_link_fail_answer(link, "AUTH", line);
        }
    }
    if (!SEND(link, "REPLCONF", "listening-port", port) || !redis_link_read_line(link, line)) {
        return false;
    }
    if (options->announced_ip[0] != '\0' &&
        (!SEND(link, "REPLCONF", "ip-address", options->announced_ip) ||
         !redis_link_read_line(link, line))) {
        return false;
    }
    if (!SEND(link, "REPLCONF", "capa", "eof", "capa", "psync2") ||
        !redis_link_read_line(link, line) || !redis_link_check_kind(link)) {
        return false;
    }
    /* To a replica that does not say so Valkey 9 sends RDB version 11, and where that has no room for a value, such
     * as a hash with fields that expire, no copy at all. Others answer with an error, which says nothing. */
    return SEND(link, "REPLCONF", "version", VALKEY_VERSION) && redis_link_read_line(link, line);
}

/* ---- bytes into the spool ---- */

static bool redis_link_is_ended(void *context) {
    struct redis_link *link = context;
    return atomic_load(&link->is_ended) || atomic_load(&link->is_closed);
}

static bool redis_link_acknowledge(struct redis_link *link) {
    char offset[BYTES_INTEGER_TEXT_MAX + 1];
    snprintf(offset, sizeof offset, "%" PRIu64, link->received_offset);
    link->acked_at_ms = redis_link_now_ms();
    return SEND(link, "REPLCONF", "ACK", offset);
}

static void redis_link_pump(struct redis_link *link) {
    char error[DISK_ERROR_MAX];
    bool was_more = link->is_more;
    if (!redis_spool_pump(link->spool, &link->is_more, error)) {
        redis_link_publish_error(link, error);
        link->is_more = true; /* again and again */
    }
    if (was_more) {
        link->wake(link->context);
    }
}

static void redis_link_note_full(struct redis_link *link, bool is_full, const char *why) {
    uv_mutex_lock(&link->mutex);
    bool is_new = link->view.is_full != is_full;
    link->view.is_full = is_full;
    uv_mutex_unlock(&link->mutex);
    if (is_new) {
        redis_link_publish_error(link, is_full ? why : "");
    }
}

/* Nothing more is read meanwhile: TCP holds the source back, which keeps it in its output buffer. While a copy
 * comes, nothing may be sent. */
static bool redis_link_put(struct redis_link *link, struct bytes bytes, bool may_acknowledge) {
    enum { WAIT_MS = 20 };
    char error[DISK_ERROR_MAX];
    while (true) {
        enum redis_spool_status status = redis_spool_put(link->spool, bytes, error);
        if (status == REDIS_SPOOL_OK) {
            redis_link_note_full(link, false, "");
            return true;
        }
        redis_link_note_full(
            link, true,
            status == REDIS_SPOOL_FULL
                ? "the spool is full (replica-spool-size): nothing is received until what is "
                  "there was applied"
                : error);
        uv_sleep(WAIT_MS);
        redis_link_pump(link);
        if (redis_link_is_ended(link)) {
            return redis_link_fail(link, "it is closed here");
        }
        if (may_acknowledge && redis_link_now_ms() - link->acked_at_ms >= ACK_MS &&
            !redis_link_acknowledge(link)) {
            return false;
        }
    }
}

/* Wait for input, and pump meanwhile. Returns false at the end of the connection. */
static bool redis_link_wait_for_input(struct redis_link *link) {
    if (atomic_load(&link->is_closed) || atomic_load(&link->is_dropped)) {
        return redis_link_fail(link, "it is closed here");
    }
    while (true) {
        redis_link_pump(link);
        int ready = redis_wire_read(&link->wire, link->is_more ? PUMP_MS : ACK_MS / 2);
        if (ready != 0) {
            return ready > 0 || redis_link_fail_wire(link);
        }
        if (atomic_load(&link->is_closed) || atomic_load(&link->is_dropped)) {
            return redis_link_fail(link, "it is closed here");
        }
        if (redis_link_now_ms() - link->heard_at_ms > link->options.timeout_ms) {
            return redis_link_fail(link, "the source has said nothing for repl-timeout");
        }
        if (redis_link_now_ms() - link->acked_at_ms >= ACK_MS) {
            return true; /* nothing came, and an acknowledgement is due */
        }
    }
}

/* ---- the copy ---- */

static struct bytes redis_link_input(const struct redis_link *link, uint64_t size_max) {
    size_t size = link->wire.to - link->wire.from;
    size = size < size_max ? size : (size_t)size_max;
    return (struct bytes){.at = link->wire.input + link->wire.from, .size = size};
}

static bool redis_link_put_copy(struct redis_link *link, struct bytes piece) {
    if (piece.size > 0) {
        if (!redis_link_put(link, piece, false)) {
            return false;
        }
        link->wire.from += piece.size;
        redis_link_publish_received(link, piece.size, true);
    }
    return true;
}

static bool redis_link_receive_sized(struct redis_link *link, uint64_t left) {
    while (left > 0) {
        link->acked_at_ms = redis_link_now_ms(); /* none is due */
        if (link->wire.from == link->wire.to && !redis_link_wait_for_input(link)) {
            return false;
        }
        struct bytes piece = redis_link_input(link, left);
        left -= piece.size;
        if (!redis_link_put_copy(link, piece)) {
            return false;
        }
    }
    return true;
}

/* Until the mark: the last bytes may be its beginning, and wait. */
static bool redis_link_receive_marked(struct redis_link *link, const char *mark) {
    while (true) {
        struct bytes piece = redis_link_input(link, UINT64_MAX);
        const char *found =
            piece.size >= MARK_SIZE ? memmem(piece.at, piece.size, mark, MARK_SIZE) : NULL;
        if (found != NULL) {
            if (!redis_link_put_copy(
                    link, (struct bytes){.at = piece.at, .size = (size_t)(found - piece.at)})) {
                return false;
            }
            link->wire.from += MARK_SIZE;
            return true;
        }
        if (piece.size >= MARK_SIZE) {
            piece.size -= MARK_SIZE - 1;
            if (!redis_link_put_copy(link, piece)) {
                return false;
            }
        }
        link->acked_at_ms = redis_link_now_ms();
        if (!redis_link_wait_for_input(link)) {
            return false;
        }
    }
}

static bool redis_link_receive_copy(struct redis_link *link) {
    char line[REPLY_MAX];
    uint64_t size = 0;
    do {
        if (!redis_link_read_line(link, line)) {
            return false;
        }
        redis_link_publish_received(link, 0, true);
    } while (line[0] == '\0');
    bool is_marked = redis_link_begins(line, "$EOF:") && strlen(line) == 5 + MARK_SIZE;
    if (!is_marked && (line[0] != '$' || !bytes_parse_u64(bytes_from_text(line + 1), &size))) {
        return redis_link_fail_answer(link, "PSYNC", line);
    }
    uv_mutex_lock(&link->mutex);
    link->view.copy_size = size;
    link->view.copy_read_size = 0;
    uv_mutex_unlock(&link->mutex);
    if (!(is_marked ? redis_link_receive_marked(link, line + 5)
                    : redis_link_receive_sized(link, size))) {
        return false;
    }
    link->has_copy = true;
    return true;
}

/* ---- the stream ---- */

static bool redis_link_receive_stream(struct redis_link *link) {
    redis_link_publish_error(link, "");
    redis_link_publish_state(link, REPLICATION_LINK_CONNECTED);
    if (!redis_link_acknowledge(link)) {
        return false;
    }
    while (!redis_link_is_ended(link)) {
        struct bytes piece = redis_link_input(link, UINT64_MAX);
        if (piece.size > 0) {
            if (!redis_link_put(link, piece, true)) {
                return false;
            }
            link->wire.from += piece.size;
            link->received_offset += piece.size;
            redis_link_publish_received(link, piece.size, false);
        }
        if (redis_link_now_ms() - link->acked_at_ms >= ACK_MS && !redis_link_acknowledge(link)) {
            return false;
        }
        if (!redis_link_wait_for_input(link)) {
            return false;
        }
    }
    return redis_link_fail(link, "it is closed here");
}

/* "+FULLRESYNC <id> <offset>" */
static bool redis_link_begin_full(struct redis_link *link, const char *line) {
    const char *id = line + strlen("+FULLRESYNC ");
    uint64_t offset;
    if (strlen(id) < REPLICATION_ID_SIZE + 2 ||
        !bytes_parse_u64(bytes_from_text(id + REPLICATION_ID_SIZE + 1), &offset)) {
        return redis_link_fail_answer(link, "PSYNC", line);
    }
    memcpy(link->id, id, REPLICATION_ID_SIZE);
    link->id[REPLICATION_ID_SIZE] = '\0';
    link->received_offset = offset;
    link->has_copy = false;
    uv_mutex_lock(&link->mutex);
    memcpy(link->view.id, link->id, sizeof link->id);
    link->view.begin_offset = offset;
    link->view.received_offset = offset;
    link->view.copy_size = 0;
    link->view.copy_read_size = 0;
    link->view.full_syncs++;
    uv_mutex_unlock(&link->mutex);
    log_write(LOG_NOTICE, "replication: a full copy of Redis begins source=%s:%u id=%s offset=%llu",
              link->options.host, (unsigned)link->options.port, link->id,
              (unsigned long long)offset);
    redis_link_publish_state(link, REPLICATION_LINK_SYNC);
    return redis_spool_begin(link->spool, redis_link_is_ended, link) &&
           redis_link_receive_copy(link);
}

/* "+CONTINUE" or "+CONTINUE <new id>" */
static void redis_link_go_on(struct redis_link *link, const char *line) {
    const char *id = line + strlen("+CONTINUE");
    if (strlen(id) == 1 + REPLICATION_ID_SIZE) {
        memcpy(link->id, id + 1, REPLICATION_ID_SIZE + 1);
    }
    uv_mutex_lock(&link->mutex);
    memcpy(link->view.id, link->id, sizeof link->id);
    link->view.partial_syncs++;
    uv_mutex_unlock(&link->mutex);
    log_write(LOG_NOTICE, "replication: Redis goes on source=%s:%u id=%s offset=%llu",
              link->options.host, (unsigned)link->options.port, link->id,
              (unsigned long long)link->received_offset);
}

static bool redis_link_synchronize(struct redis_link *link) {
    char line[REPLY_MAX];
    char offset[BYTES_INTEGER_TEXT_MAX + 1] = "-1";
    if (link->has_copy) {
        snprintf(offset, sizeof offset, "%" PRIu64, link->received_offset + 1);
    }
    if (!SEND(link, "PSYNC", link->has_copy ? link->id : "?", offset)) {
        return false;
    }
    do {
        if (!redis_link_read_line(link, line)) {
            return false;
        }
    } while (line[0] == '\0');
    if (redis_link_begins(line, "+FULLRESYNC ")) {
        return redis_link_begin_full(link, line);
    }
    if (redis_link_begins(line, "+CONTINUE") && link->has_copy) {
        redis_link_go_on(link, line);
        return true;
    }
    return redis_link_fail_answer(link, "PSYNC", line);
}

/* ---- the thread ---- */

static bool redis_link_run_once(struct redis_link *link) {
    redis_link_publish_state(link, REPLICATION_LINK_CONNECTING);
    if (!redis_wire_connect(&link->wire, link->options.host, link->options.port, link->options.tls,
                            link->options.timeout_ms)) {
        return redis_link_fail_wire(link);
    }
    link->heard_at_ms = redis_link_now_ms();
    redis_link_publish_state(link, REPLICATION_LINK_HANDSHAKE);
    return redis_link_shake_hands(link) && redis_link_synchronize(link) &&
           redis_link_receive_stream(link);
}

/* What was received waits in the file, maybe, and must get into the ring. */
static void redis_link_rest(struct redis_link *link, int64_t until_ms) {
    while (!atomic_load(&link->is_ended) &&
           (redis_link_now_ms() < until_ms || atomic_load(&link->is_closed))) {
        redis_link_pump(link);
        uv_sleep(link->is_more ? PUMP_MS : 5 * PUMP_MS);
    }
}

static void redis_link_run(void *context) {
    struct redis_link *link = context;
    thread_signals_begin();
    while (!atomic_load(&link->is_ended)) {
        atomic_store(&link->is_dropped, false);
        if (!atomic_load(&link->is_closed)) {
            bool was_connected = link->has_copy;
            if (!redis_link_run_once(link) && !redis_link_is_ended(link)) {
                char why[REDIS_LINK_ERROR_MAX + 32];
                snprintf(why, sizeof why, "link to Redis: %.200s", link->failed);
                redis_link_publish_error(link, why);
            }
            uv_mutex_lock(&link->mutex);
            link->view.losses += was_connected;
            uv_mutex_unlock(&link->mutex);
        }
        redis_wire_close(&link->wire);
        redis_link_publish_state(link, REPLICATION_LINK_CONNECT);
        redis_link_rest(link, redis_link_now_ms() + RETRY_MS);
    }
    atomic_store(&link->is_over, true);
}

struct redis_link *redis_link_start(const struct redis_link_options *options,
                                    struct redis_spool *spool, void (*wake)(void *context),
                                    void *context, char *error) {
    struct redis_link *link = memory_allocate_zeroed(sizeof *link);
    snprintf(error, REDIS_LINK_ERROR_MAX, "out of memory, or no thread");
    if (link == NULL) {
        return NULL;
    }
    link->options = *options;
    link->spool = spool;
    link->wake = wake;
    link->context = context;
    link->wire.is_ended = &link->is_closed;
    link->view.state = REPLICATION_LINK_CONNECT;
    link->has_copy = options->id[0] != '\0';
    link->received_offset = options->offset;
    memcpy(link->id, options->id, sizeof link->id);
    memcpy(link->view.id, options->id, sizeof link->id);
    link->view.received_offset = options->offset;
    if (uv_mutex_init(&link->mutex) != 0) {
        memory_free(link);
        return NULL;
    }
    if (uv_thread_create(&link->thread, redis_link_run, link) != 0) {
        uv_mutex_destroy(&link->mutex);
        memory_free(link);
        return NULL;
    }
    return link;
}

void redis_link_close(struct redis_link *link) {
    atomic_store(&link->is_closed, true);
}

/* Before it synchronizes a link receives nothing, and one that is closed by then does not begin to. */
bool redis_link_is_quiet(struct redis_link *link) {
    struct redis_link_view view;
    redis_link_look(link, &view);
    return view.state != REPLICATION_LINK_SYNC && view.state != REPLICATION_LINK_CONNECTED;
}

void redis_link_drop(struct redis_link *link) {
    atomic_store(&link->is_dropped, true);
}

void redis_link_end(struct redis_link *link) {
    atomic_store(&link->is_closed, true);
    atomic_store(&link->is_ended, true);
}

bool redis_link_is_over(const struct redis_link *link) {
    return atomic_load(&link->is_over);
}

void redis_link_destroy(struct redis_link *link) {
    redis_link_end(link);
    uv_thread_join(&link->thread);
    uv_mutex_destroy(&link->mutex);
    SSL_CTX_free(link->options.tls);
    OPENSSL_cleanse(&link->options, sizeof link->options);
    memory_free(link);
}

void redis_link_look(struct redis_link *link, struct redis_link_view *view) {
    uv_mutex_lock(&link->mutex);
    *view = link->view;
    uv_mutex_unlock(&link->mutex);
}
