/* See redis_follow.h. */
#include "server/migration/redis_follow.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "server/durability/persistence.h"
#include "server/migration/redis_ask.h"
#include "server/migration/redis_receive.h"
#include "server/migration/redis_stream.h"
#include "server/replication/replication.h"
#include "server/system/log.h"

struct redis_follow {
    struct server *server;
    uv_loop_t *loop;
    struct master_link *link; /* borrowed: what comes of it goes to receive */
    struct redis_receive receive;
    struct redis_spool *spool; /* NULL: nothing is received */
    struct redis_spool *ended; /* freed when the loop has turned */
    struct redis_stream stream;
    struct redis_ask ask;     /* of the same server as the link */
    struct registry *dropped; /* is freed in steps */
    bool is_on;               /* also while it is stopped by an error */
    bool has_stream;
    bool has_told_rounded;          /* what doubles have lost, of this copy */
    struct redis_position position; /* as it is in the keys; id "": it is not */
};

struct redis_follow *redis_follow_create(struct server *server, struct master_link *link,
                                         uv_loop_t *loop) {
    struct redis_follow *follow = memory_allocate_zeroed(sizeof *follow);
    if (follow != NULL) {
        follow->server = server;
        follow->link = link;
        follow->loop = loop;
    }
    return follow;
}

/* ---- the spool ---- */

static void redis_follow_wake(void *context) {
    struct redis_follow *follow = context;
    replicator_wake(follow->server->replication.replicator);
}

static void redis_follow_free_ended(struct redis_follow *follow) {
    struct redis_spool **at = &follow->ended;
    while (*at != NULL) {
        struct redis_spool *spool = *at;
        if (spool->worker.is_closed) {
            *at = spool->next;
            redis_receive_spool_free(spool);
        } else {
            at = &spool->next;
        }
    }
}

/* Nothing more is received. */
static void redis_follow_close_spool(struct redis_follow *follow) {
    follow->link->redis = NULL;
    if (follow->spool != NULL) {
        redis_receive_spool_close(follow->spool);
        follow->spool->next = follow->ended;
        follow->ended = follow->spool;
        follow->spool = NULL;
    }
}

/* ---- what was beside the keys ---- */

static void redis_follow_free_later(struct redis_follow *follow) {
    struct registry *beside = redis_stream_take_beside(&follow->stream);
    if (beside != NULL) {
        registry_destroy(follow->dropped);
        registry_clear(beside);
        follow->dropped = beside;
    }
}

bool redis_follow_free_some(struct redis_follow *follow, uint64_t budget_ns) {
    enum { FREE_WORK = 4096 };
    uint64_t begin_ticks = clock_ticks();
    while (follow->dropped != NULL && clock_ticks_to_ns(clock_ticks() - begin_ticks) <= budget_ns) {
        if (!registry_free_step(follow->dropped, FREE_WORK)) {
            registry_destroy(follow->dropped);
            follow->dropped = NULL;
        }
    }
    return follow->dropped != NULL;
}

/* ---- the position ---- */

static void redis_follow_drop_position(struct redis_follow *follow) {
    redis_stream_remove_position(follow->server->registry);
    follow->position = (struct redis_position){.offset = 0};
}

/* At the end of a step, so that it is in the group of what was applied. Without memory the old one must go: it
 * would be wrong. While a copy is loaded beside the keys, the boards are still those of the old position. */
static void redis_follow_write_position(struct redis_follow *follow) {
    const struct replication *replication = &follow->server->replication;
    const struct redis_stream *stream = &follow->stream;
    struct redis_position *position = &follow->position;
    if (stream->state != REDIS_STREAM_FOLLOWS || follow->receive.is_restarted ||
        (position->offset == stream->offset && strcmp(position->id, follow->receive.id) == 0)) {
        return;
    }
    position->offset = stream->offset;
    position->database = stream->apply.database;
    position->port = replication->master_port;
    memcpy(position->id, follow->receive.id, sizeof position->id);
    memcpy(position->host, replication->master_host, sizeof position->host);
    if (!redis_stream_write_position(follow->server->registry, position)) {
        *position = (struct redis_position){.offset = 0};
    }
}

/* ---- beginning and ending ---- */

static void redis_follow_stop(struct redis_follow *follow, const char *error) {
    struct replication *replication = &follow->server->replication;
    snprintf(replication->error, sizeof replication->error, "%s", error);
    if (replication->link == REPLICATION_LINK_CONNECTED) {
        replication->link_down_at_ms = follow->server->clock.monotonic_ms;
    }
    master_link_stop(follow->link);
    replication->link = REPLICATION_LINK_STOPPED;
    redis_follow_drop_position(follow); /* the next REPLICAOF begins anew */
    redis_ask_close(&follow->ask);
    redis_follow_close_spool(follow);
}

void redis_follow_begin(struct redis_follow *follow) {
    char error[DISK_ERROR_MAX];
    const struct settings *settings = &follow->server->settings;
    struct replication *replication = &follow->server->replication;
    redis_follow_end(follow);
    follow->is_on = true;
    follow->has_stream = true;
    follow->has_told_rounded = false;
    replication->error[0] = '\0';
    redis_stream_init(&follow->stream, follow->server, disk_random_id());
    redis_ask_init(&follow->ask, &follow->stream, follow->loop, redis_follow_wake, follow);
    follow->ask.id = follow->receive.id;
    registry_set_passive(follow->server->registry, true);
    /* The position in the keys, if it is of this source. */
    if (!redis_stream_read_position(follow->server->registry, &follow->position) ||
        strcmp(follow->position.host, replication->master_host) != 0 ||
        follow->position.port != replication->master_port) {
        redis_follow_drop_position(follow);
    }
    bool has_memory =
        follow->position.id[0] == '\0' ||
        redis_stream_resume(&follow->stream, follow->position.offset, follow->position.database);
    snprintf(error, sizeof error, "out of memory");
    follow->spool = has_memory ? redis_receive_spool_open(follow->loop, settings->dir,
                                                          settings->replica_spool_size,
                                                          redis_follow_wake, follow, error)
                               : NULL;
    redis_receive_init(&follow->receive, follow->spool, follow->position.id,
                       follow->position.offset);
    if (follow->spool == NULL) {
        log_write(LOG_WARNING, "replication: Redis cannot be followed: %s", error);
        redis_follow_stop(follow, error);
    } else {
        master_link_go_on_with_redis(follow->link, &follow->receive);
    }
}

bool redis_follow_is_on(const struct redis_follow *follow) {
    return follow->is_on;
}

void redis_follow_end(struct redis_follow *follow) {
    redis_follow_close_spool(follow);
    redis_follow_free_ended(follow);
    if (follow->has_stream) {
        redis_ask_close(&follow->ask);
        redis_follow_free_later(follow);
        redis_stream_deinit(&follow->stream);
        follow->has_stream = false;
    }
    if (follow->is_on) {
        follow->is_on = false;
        registry_set_passive(follow->server->registry, false);
    }
}

void redis_follow_destroy(struct redis_follow *follow) {
    if (follow != NULL) {
        registry_destroy(follow->dropped);
        redis_follow_free_ended(follow);
        memory_free(follow);
    }
}

/* ---- applying ---- */

static bool redis_follow_is_behind(const struct server *server) {
    return server->persistence != NULL && persistence_is_full(server->persistence);
}

/* ---- asking ---- */

static int64_t redis_follow_now_ms(void) {
    return (int64_t)(clock_monotonic_us() / 1000);
}

/* Take answers, and ask. false: it has stopped. */
static bool redis_follow_ask(struct redis_follow *follow, uint64_t budget_ns) {
    struct redis_ask *ask = &follow->ask;
    int64_t timeout_ms = follow->server->settings.repl_timeout_s * 1000;
    follow->stream.apply.now_us = follow->server->clock.now_us;
    bool is_fine = redis_ask_step(ask, follow->receive.received_offset, redis_follow_now_ms(),
                                  timeout_ms, budget_ns);
    if (!is_fine) {
        redis_stream_fail(&follow->stream, follow->stream.apply.error);
    } else if (ask->is_denied) {
        redis_stream_fail(&follow->stream, ask->error);
    }
    if (!is_fine || ask->is_denied) {
        redis_follow_stop(follow, follow->stream.error);
    }
    return is_fine && !ask->is_denied;
}

/* ---- pieces ---- */

/* One piece. false: there is nothing to do now. */
static bool redis_follow_take_piece(struct redis_follow *follow, uint64_t budget_ns) {
    struct redis_stream *stream = &follow->stream;
    struct redis_spool *spool = follow->spool;
    if (follow->receive.is_restarted) {
        follow->receive.is_restarted = false;
        follow->has_told_rounded = false;
        redis_follow_free_later(follow);
        redis_ask_close(&follow->ask);
        follow->ask.retry_at_ms = 0;
        redis_stream_restart(stream, follow->receive.begin_offset);
    }
    /* What the source refuses to say is known before anything changes. */
    if (stream->state == REDIS_STREAM_LOADED) {
        if (!follow->ask.has_greeted || !redis_stream_exchange(stream)) {
            return false;
        }
        /* The copy is in the place of the keys, with all that they say of their history. */
        follow->position = (struct redis_position){.offset = 0};
        redis_follow_free_later(follow);
        replication_note_copy(follow->server);
    }
    struct bytes piece = redis_receive_spool_peek(spool);
    if (piece.size == 0 && !redis_stream_has_work(stream)) {
        return false;
    }
    size_t taken = redis_stream_take(stream, piece, budget_ns, follow->server->clock.now_us);
    if (taken > 0) {
        redis_receive_spool_take(spool, taken);
    }
    if (stream->state == REDIS_STREAM_STOPPED) {
        redis_follow_stop(follow, stream->error);
        return false;
    }
    return taken > 0 || !stream->is_held;
}

/* ---- what doubles have lost ---- */

static struct rdb_rounded redis_follow_rounded(const struct redis_follow *follow) {
    const struct redis_stream *stream = &follow->stream;
    struct rdb_rounded rounded = stream->load.value.rounded;
    rdb_value_add_rounded(&rounded, &stream->apply.rounded);
    rdb_value_add_rounded(&rounded, &stream->apply.load.value.rounded);
    return rounded;
}

/* What cannot be received, and what has come as a whole, but is not loaded. */
static void redis_follow_show(struct redis_follow *follow) {
    struct replication *replication = &follow->server->replication;
    char error[DISK_ERROR_MAX] = "";
    bool is_copied = follow->stream.state == REDIS_STREAM_FOLLOWS;
    if (follow->spool == NULL) {
        return;
    }
    bool is_connected = follow->link->state == LINK_STREAMING;
    if (is_connected) {
        replication->link = is_copied ? REPLICATION_LINK_CONNECTED : REPLICATION_LINK_SYNC;
    }
    replication->is_whole = is_copied;
    replication->is_priority_zero = !is_copied;
    bool is_fine = redis_receive_spool_check(follow->spool, error);
    if (is_fine && redis_receive_spool_is_over_limit(follow->spool)) {
        snprintf(error, sizeof error,
                 "the spool is full (replica-spool-size): nothing is received until what is there "
                 "was applied");
        is_fine = false;
    }
    if (is_fine && follow->ask.state == REDIS_ASK_CLOSED && follow->ask.error[0] != '\0') {
        snprintf(error, sizeof error, "the source cannot be asked: %s", follow->ask.error);
    }
    if (!is_fine && strncmp(replication->error, error, sizeof replication->error - 1) != 0) {
        log_write(LOG_WARNING, "replication: %s", error);
    }
    if (!is_fine || is_connected) {
        snprintf(replication->error, sizeof replication->error, "%.*s",
                 (int)sizeof replication->error - 1, error);
    }
}

bool redis_follow_step(struct redis_follow *follow, uint64_t budget_ns) {
    uint64_t begin_ticks = clock_ticks();
    redis_follow_free_ended(follow);
    if (follow->spool == NULL) {
        return false;
    }
    /* The source is asked on a connection of its own, which is there as long as the link is. */
    const struct settings *settings = &follow->server->settings;
    const struct master_link *link = follow->link;
    struct redis_ask *ask = &follow->ask;
    int64_t now_ms = redis_follow_now_ms();
    bool is_linked = link->state >= LINK_ASKING && link->redis != NULL;
    if (!is_linked && link->state != LINK_GREETING) {
        redis_ask_close(ask);
        ask->retry_at_ms = 0;
    } else if (is_linked && ask->state == REDIS_ASK_CLOSED && now_ms >= ask->retry_at_ms) {
        redis_ask_open(ask, link->fd, link->tls_context, settings->masteruser, settings->masterauth,
                       now_ms);
    }
    bool has_more = redis_follow_ask(follow, budget_ns / 2);
    uint64_t used_ns = 0;
    /* Where the disk is behind it wakes the loop. */
    bool is_held = redis_follow_is_behind(follow->server);
    while (has_more && used_ns < budget_ns && !is_held) {
        has_more = redis_follow_take_piece(follow, budget_ns - used_ns);
        is_held = has_more && redis_follow_is_behind(follow->server);
        used_ns = clock_ticks_to_ns(clock_ticks() - begin_ticks);
    }
    if (follow->spool != NULL) {
        redis_ask_flush(ask, follow->receive.received_offset);
    }
    has_more |= ask->has_work;
    redis_follow_show(follow);
    const struct rdb_rounded rounded = redis_follow_rounded(follow);
    if (follow->stream.state == REDIS_STREAM_FOLLOWS && !follow->has_told_rounded &&
        rounded.count > 0) {
        char text[RDB_ROUNDED_TEXT_MAX];
        follow->has_told_rounded = true; /* once in a copy and what follows it */
        rdb_value_print_rounded(&rounded, text);
        log_write(LOG_NOTICE,
                  "replication: some scores are packed into more digits than the double of a Redis "
                  "has: what is gone there is gone here %s",
                  text);
    }
    redis_follow_write_position(follow);
    master_link_read_on(follow->link);
    return has_more && !is_held;
}

/* What has come is applied: are all keys known, too? Answers of a later time are as good as any now. */
static bool redis_follow_finish_asking(struct redis_follow *follow, uint64_t budget_ns) {
    struct redis_apply *apply = &follow->stream.apply;
    if (!redis_follow_ask(follow, budget_ns)) {
        return true;
    }
    (void)redis_stream_end_asked(&apply->asked, UINT64_MAX);
    if (apply->asked.count > 0 && follow->ask.state != REDIS_ASK_CLOSED) {
        return false;
    }
    if (apply->asked.count > 0) {
        log_write(LOG_WARNING,
                  "replication: the source cannot be asked any more: keys that are not as it has "
                  "them count=%u first=\"%s\"",
                  (unsigned)apply->asked.count,
                  bytes_show(redis_stream_asked_name(apply->asked.first)).text);
    }
    return true;
}

/* Apply more of what has come. true: that is all. */
static bool redis_follow_finish_some(struct redis_follow *follow, uint64_t budget_ns) {
    uint64_t begin_ticks = clock_ticks();
    while (follow->spool != NULL && !follow->receive.is_restarted &&
           follow->stream.state == REDIS_STREAM_FOLLOWS) {
        if (!redis_follow_ask(follow, budget_ns)) {
            return true;
        }
        bool has_more = redis_follow_take_piece(follow, budget_ns);
        bool is_held = follow->stream.is_held && follow->ask.state != REDIS_ASK_CLOSED;
        if (follow->spool == NULL) {
            return true;
        }
        if (!has_more && !is_held && redis_receive_spool_waiting(follow->spool) == 0) {
            return redis_follow_finish_asking(follow, budget_ns);
        }
        if (!has_more && follow->stream.is_held && !is_held) {
            log_write(LOG_WARNING,
                      "replication: the source cannot be asked any more: nothing behind offset "
                      "%" PRIu64 " is applied",
                      follow->stream.offset);
            return true;
        }
        if (!has_more || clock_ticks_to_ns(clock_ticks() - begin_ticks) >= budget_ns ||
            redis_follow_is_behind(follow->server)) {
            return false;
        }
    }
    return true;
}

bool redis_follow_finish(struct redis_follow *follow, uint64_t budget_ns) {
    if (follow->spool != NULL && !redis_follow_finish_some(follow, budget_ns)) {
        redis_follow_write_position(follow);
        return false;
    }
    if (follow->spool != NULL) {
        log_write(LOG_NOTICE,
                  "replication: Redis is followed no more source_id=%s received=%" PRIu64
                  " applied=%" PRIu64,
                  follow->receive.id, follow->receive.received_offset, follow->stream.offset);
    }
    redis_follow_drop_position(follow);
    redis_follow_end(follow);
    return true;
}

/* ---- INFO ---- */

__attribute__((format(printf, 2, 3))) static void redis_follow_put(struct buffer *out,
                                                                   const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size = size < (int)sizeof line ? size : (int)sizeof line - 1;
    buffer_append(out, line, (size_t)size);
    buffer_append(out, "\r\n", 2);
}

/* Several types of Redis's files are one kind: their counts are added. */
static void redis_follow_print_passed(const struct rdb_load *load, struct buffer *out) {
    bool is_done[RDB_TYPES] = {false};
    for (unsigned type = 0; type < RDB_TYPES; type++) {
        const char *name = rdb_reader_type_name(type);
        uint64_t count = 0;
        for (unsigned other = type; other < RDB_TYPES; other++) {
            if (!is_done[other] && strcmp(rdb_reader_type_name(other), name) == 0) {
                is_done[other] = true;
                count += load->skipped[other].count;
            }
        }
        if (count > 0) {
            char field[64];
            snprintf(field, sizeof field, "%s", name);
            for (char *at = field; *at != '\0'; at++) {
                *at = *at == ' ' || *at == '\'' ? '_' : *at;
            }
            redis_follow_put(out, "source_skipped_keys_%s:%" PRIu64, field, count);
        }
    }
    if (load->reader.function_count > 0) {
        redis_follow_put(out, "source_skipped_functions:%" PRIu64, load->reader.function_count);
    }
    if (load->reader.field_expiry_count > 0) {
        redis_follow_put(out, "source_fields_without_expiry:%" PRIu64,
                         load->reader.field_expiry_count);
    }
}

void redis_follow_print(struct redis_follow *follow, struct buffer *out) {
    if (!follow->is_on || !follow->has_stream) {
        return;
    }
    const struct redis_stream *stream = &follow->stream;
    const struct rdb_load *load = &stream->load;
    const struct redis_receive *receive = &follow->receive;
    uint64_t waiting = follow->spool != NULL ? redis_receive_spool_waiting(follow->spool) : 0;
    bool is_full = follow->spool != NULL && redis_receive_spool_is_over_limit(follow->spool);
    redis_follow_put(out, "source_type:redis");
    redis_follow_put(out, "source_state:%s", redis_stream_state_name(stream->state));
    redis_follow_put(out, "source_replid:%s", receive->id);
    redis_follow_put(out, "source_received_offset:%" PRIu64, receive->received_offset);
    /* Of the boards as clients see them: of a copy that is being read, nothing is. */
    redis_follow_put(out, "source_applied_offset:%" PRIu64,
                     stream->state == REDIS_STREAM_FOLLOWS || stream->state == REDIS_STREAM_STOPPED
                         ? redis_apply_exact_offset(&stream->apply, stream->offset)
                         : 0);
    redis_follow_put(out, "source_waiting_bytes:%" PRIu64, waiting);
    redis_follow_put(out, "source_spool_full:%d", is_full);
    redis_follow_put(out, "source_asked_keys:%" PRIu64, stream->apply.asked.total);
    redis_follow_put(out, "source_open_keys:%u", (unsigned)stream->apply.asked.count);
    redis_follow_put(out, "source_full_syncs:%" PRIu64, receive->full_syncs);
    redis_follow_put(out, "source_partial_syncs:%" PRIu64, receive->partial_syncs);
    redis_follow_put(out, "source_copied_boards:%" PRIu64, load->board_count);
    redis_follow_put(out, "source_copied_module_boards:%" PRIu64, load->module_board_count);
    redis_follow_put(out, "source_copied_members:%" PRIu64, load->member_count);
    redis_follow_put(out, "source_copied_hashes:%" PRIu64, load->hash_count);
    redis_follow_put(out, "source_copied_fields:%" PRIu64, load->field_count);
    redis_follow_put(out, "source_copied_bans:%" PRIu64, load->ban_count);
    redis_follow_print_passed(load, out);
    const struct rdb_rounded rounded = redis_follow_rounded(follow);
    if (rounded.taken_count > 0) {
        redis_follow_put(out, "source_packed_scores:%" PRIu64, rounded.taken_count);
        redis_follow_put(out, "source_rounded_scores:%" PRIu64, rounded.count);
        redis_follow_put(out, "source_rounded_fields:%" PRIu64, rounded.field_count);
        redis_follow_put(out, "source_rounded_within_ms:%" PRIu64, (rounded.time_us + 999) / 1000);
    }
    redis_follow_put(out, "source_applied_commands:%" PRIu64, stream->apply.applied_count);
    redis_follow_put(out, "source_skipped_commands:%" PRIu64, stream->apply.skipped_count);
    for (uint32_t i = 0; i < stream->apply.skipped_used; i++) {
        redis_follow_put(out, "source_skipped_command_%s:%" PRIu64, stream->apply.skipped[i].name,
                         stream->apply.skipped[i].count);
    }
}
