/* See redis_follow.h. */
#include "server/migration/redis_follow.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/durability/persistence.h"
#include "server/migration/redis_link.h"
#include "server/migration/redis_position.h"
#include "server/migration/redis_stream.h"
#include "server/system/log.h"

/* A connection and its spool. One that has ended is freed once its thread is through, which may take as long
 * as a name is looked up. */
struct source {
    struct source *next;
    struct redis_link *link;
    struct redis_spool spool;
};

struct redis_follow {
    struct server *server;
    uv_async_t async;
    struct source *source; /* NULL: nothing is received */
    struct source *ended;
    struct redis_stream stream;
    bool is_on; /* also while it is stopped by an error */
    bool has_stream;
    bool is_finishing; /* nothing more is received */
    struct redis_link_view view;
    struct redis_position position; /* as it is in the keys; id "": it is not */
};

/* The loop turns, and so does the tick. */
static void redis_follow_on_wake(uv_async_t *async) {
    (void)async;
}

static void redis_follow_wake(void *context) {
    struct redis_follow *follow = context;
    (void)uv_async_send(&follow->async);
}

struct redis_follow *redis_follow_create(struct server *server, uv_loop_t *loop) {
    struct redis_follow *follow = memory_allocate_zeroed(sizeof *follow);
    if (follow == NULL) {
        return NULL;
    }
    follow->server = server;
    if (uv_async_init(loop, &follow->async, redis_follow_on_wake) != 0) {
        memory_free(follow);
        return NULL;
    }
    uv_unref((uv_handle_t *)&follow->async);
    return follow;
}

/* ---- sources that have ended ---- */

static void redis_follow_free_source(struct source *source) {
    redis_link_destroy(source->link);
    redis_spool_close(&source->spool);
    memory_free(source);
}

static void redis_follow_free_ended(struct redis_follow *follow, bool is_waiting) {
    struct source **at = &follow->ended;
    while (*at != NULL) {
        struct source *source = *at;
        if (is_waiting || redis_link_is_over(source->link)) {
            *at = source->next;
            redis_follow_free_source(source);
        } else {
            at = &source->next;
        }
    }
}

static void redis_follow_leave_source(struct redis_follow *follow) {
    struct source *source = follow->source;
    if (source != NULL) {
        redis_link_end(source->link);
        source->next = follow->ended;
        follow->ended = source;
        follow->source = NULL;
    }
}

/* ---- the position ---- */

static void redis_follow_drop_position(struct redis_follow *follow) {
    redis_position_remove(follow->server->registry);
    follow->position = (struct redis_position){.offset = 0};
}

/* The one in the keys, if it is of this source. */
static void redis_follow_read_position(struct redis_follow *follow) {
    const struct replication *replication = &follow->server->replication;
    struct redis_position *position = &follow->position;
    if (!redis_position_read(follow->server->registry, position) ||
        strcmp(position->host, replication->master_host) != 0 ||
        position->port != replication->master_port) {
        redis_follow_drop_position(follow);
    }
}

/* At the end of a step, so that it is in the group of what was applied. Without memory the old one must go: it
 * would be wrong. So must it where a new copy is loaded. While it is checked, the boards are still those of the old position. */
static void redis_follow_write_position(struct redis_follow *follow) {
    const struct replication *replication = &follow->server->replication;
    const struct redis_stream *stream = &follow->stream;
    struct redis_position *position = &follow->position;
    if (stream->state == REDIS_STREAM_LOADS && position->id[0] != '\0') {
        redis_follow_drop_position(follow);
    }
    if (stream->state != REDIS_STREAM_FOLLOWS || follow->view.id[0] == '\0' ||
        (position->offset == stream->offset && strcmp(position->id, follow->view.id) == 0)) {
        return;
    }
    position->offset = stream->offset;
    position->database = stream->apply.database;
    position->port = replication->master_port;
    memcpy(position->id, follow->view.id, sizeof position->id);
    memcpy(position->host, replication->master_host, sizeof position->host);
    if (!redis_position_write(follow->server->registry, position)) {
        redis_follow_drop_position(follow);
    }
}

/* ---- beginning and ending ---- */

static void redis_follow_stop(struct redis_follow *follow, const char *error) {
    struct replication *replication = &follow->server->replication;
    snprintf(replication->error, sizeof replication->error, "%s", error);
    if (replication->link == REPLICATION_LINK_CONNECTED) {
        replication->link_down_at_ms = follow->server->clock.monotonic_ms;
    }
    replication->link = REPLICATION_LINK_STOPPED;
    replication->is_loading = false;
    redis_follow_drop_position(follow); /* the next REPLICAOF begins anew */
    redis_follow_leave_source(follow);
}

static void redis_follow_copy_text(char *to, size_t room, const char *from) {
    snprintf(to, room, "%s", from != NULL ? from : "");
}

static struct redis_link_options redis_follow_options_of(const struct redis_follow *follow,
                                                         SSL_CTX *tls) {
    const struct server *server = follow->server;
    const struct settings *settings = &server->settings;
    struct redis_link_options options = {
        .port = server->replication.master_port,
        .announced_port =
            (uint16_t)(settings->replica_announce_port != 0 ? settings->replica_announce_port
                                                            : server->tcp_port),
        .timeout_ms = settings->repl_timeout_s * 1000,
        .tls = tls,
        .offset = follow->position.offset,
    };
    memcpy(options.id, follow->position.id, sizeof options.id);
    redis_follow_copy_text(options.host, sizeof options.host, server->replication.master_host);
    redis_follow_copy_text(options.user, sizeof options.user, settings->masteruser);
    redis_follow_copy_text(options.password, sizeof options.password, settings->masterauth);
    redis_follow_copy_text(options.announced_ip, sizeof options.announced_ip,
                           settings->replica_announce_ip);
    return options;
}

static bool redis_follow_open_source(struct redis_follow *follow, SSL_CTX *tls, char *error) {
    const struct settings *settings = &follow->server->settings;
    struct source *source = memory_allocate_zeroed(sizeof *source);
    if (source == NULL) {
        snprintf(error, DISK_ERROR_MAX, "out of memory");
        return false;
    }
    if (!redis_spool_open(&source->spool, settings->dir, settings->replica_spool_size, error)) {
        memory_free(source);
        return false;
    }
    struct redis_link_options options = redis_follow_options_of(follow, tls);
    source->link = redis_link_start(&options, &source->spool, redis_follow_wake, follow, error);
    OPENSSL_cleanse(&options, sizeof options);
    if (source->link == NULL) {
        redis_spool_close(&source->spool);
        memory_free(source);
        return false;
    }
    follow->source = source;
    return true;
}

void redis_follow_begin(struct redis_follow *follow, SSL_CTX *tls) {
    char error[DISK_ERROR_MAX];
    redis_follow_end(follow);
    follow->is_on = true;
    follow->has_stream = true;
    follow->view = (struct redis_link_view){.state = REPLICATION_LINK_CONNECT};
    follow->server->replication.error[0] = '\0';
    redis_stream_init(&follow->stream, follow->server, disk_random_id());
    registry_set_passive(follow->server->registry, true);
    redis_follow_read_position(follow);
    if (follow->position.id[0] != '\0') {
        redis_stream_resume(&follow->stream, follow->position.offset, follow->position.database);
    }
    if (!redis_follow_open_source(follow, tls, error)) {
        SSL_CTX_free(tls);
        log_write(LOG_WARNING, "replication: Redis cannot be followed: %s", error);
        redis_follow_stop(follow, error);
    }
}

bool redis_follow_is_on(const struct redis_follow *follow) {
    return follow->is_on;
}

bool redis_follow_has_found_leaderboard(const struct redis_follow *follow) {
    return follow->is_on && follow->source != NULL && follow->view.is_leaderboard;
}

void redis_follow_drop(struct redis_follow *follow) {
    if (follow->source != NULL) {
        redis_link_drop(follow->source->link);
    }
}

void redis_follow_end(struct redis_follow *follow) {
    follow->is_finishing = false;
    redis_follow_leave_source(follow);
    redis_follow_free_ended(follow, false);
    if (follow->has_stream) {
        redis_stream_deinit(&follow->stream);
        follow->has_stream = false;
    }
    if (follow->is_on) {
        follow->is_on = false;
        follow->server->replication.is_loading = false;
        registry_set_passive(follow->server->registry, false);
    }
}

void redis_follow_close(struct redis_follow *follow) {
    redis_follow_end(follow);
    redis_follow_free_ended(follow, true);
    uv_close((uv_handle_t *)&follow->async, NULL);
}

void redis_follow_destroy(struct redis_follow *follow) {
    memory_free(follow);
}

/* ---- applying ---- */

static bool redis_follow_is_behind(const struct server *server) {
    return server->persistence != NULL && persistence_is_full(server->persistence);
}

/* One piece. false: there is nothing to do now. */
static bool redis_follow_take_piece(struct redis_follow *follow, uint64_t budget_ns) {
    struct redis_stream *stream = &follow->stream;
    struct redis_spool *spool = &follow->source->spool;
    if (redis_spool_look(spool)) {
        redis_follow_write_position(follow); /* of the stream that ends here */
        redis_link_look(follow->source->link, &follow->view);
        redis_stream_restart(stream, follow->view.begin_offset);
    }
    struct bytes piece = redis_spool_peek(spool);
    if (piece.size == 0 && !redis_stream_has_work(stream)) {
        return false;
    }
    size_t taken = redis_stream_take(stream, piece, budget_ns, follow->server->clock.now_us);
    if (taken > 0) {
        redis_spool_take(spool, taken);
    }
    if (stream->is_rewind_due) {
        stream->is_rewind_due = false;
        redis_spool_rewind(spool);
    }
    if (stream->is_copy_done) {
        stream->is_copy_done = false;
        redis_spool_release(spool);
    }
    if (stream->state == REDIS_STREAM_STOPPED) {
        redis_follow_stop(follow, stream->error);
        return false;
    }
    return true;
}

/* The link as it is; a copy that is not loaded is still a copy. */
static void redis_follow_show_link(struct redis_follow *follow) {
    struct replication *replication = &follow->server->replication;
    struct redis_link_view *view = &follow->view;
    enum replication_link before = replication->link;
    if (follow->source == NULL) {
        return;
    }
    redis_link_look(follow->source->link, view);
    enum redis_stream_state state = follow->stream.state;
    bool is_copied = state == REDIS_STREAM_FOLLOWS;
    replication->link = view->state == REPLICATION_LINK_CONNECTED && !is_copied
                            ? REPLICATION_LINK_SYNC
                            : view->state;
    if (before == REPLICATION_LINK_CONNECTED && replication->link != before) {
        replication->link_down_at_ms = follow->server->clock.monotonic_ms;
    }
    replication->is_loading = redis_stream_is_loading(&follow->stream);
    replication->is_whole = is_copied;
    replication->is_priority_zero = !is_copied;
    replication->heard_at_ms = view->heard_at_ms;
    replication->copy_at_ms = view->copy_at_ms;
    replication->copy_size = view->copy_size;
    replication->copy_read_size = view->copy_read_size;
    memcpy(replication->error, view->error, sizeof view->error);
}

bool redis_follow_step(struct redis_follow *follow, uint64_t budget_ns) {
    uint64_t begin_ticks = clock_ticks();
    redis_follow_free_ended(follow, false);
    if (follow->source == NULL) {
        return false;
    }
    bool has_more = true;
    uint64_t used_ns = 0;
    /* Where the disk is behind it wakes the loop. */
    bool is_held = redis_follow_is_behind(follow->server);
    while (has_more && used_ns < budget_ns && !is_held) {
        has_more = redis_follow_take_piece(follow, budget_ns - used_ns);
        is_held = has_more && redis_follow_is_behind(follow->server);
        used_ns = clock_ticks_to_ns(clock_ticks() - begin_ticks);
    }
    redis_follow_show_link(follow);
    redis_follow_write_position(follow);
    return has_more && !is_held;
}

/* Has what is received changed nothing yet? */
static bool redis_follow_is_untouched(const struct redis_follow *follow) {
    return follow->stream.state == REDIS_STREAM_CHECKS ||
           follow->stream.state == REDIS_STREAM_WAITS;
}

/* Apply more of what the thread had. true: that is all. */
static bool redis_follow_finish_some(struct redis_follow *follow, uint64_t budget_ns) {
    struct source *source = follow->source;
    uint64_t begin_ticks = clock_ticks();
    while (follow->source != NULL && !redis_follow_is_untouched(follow)) {
        bool is_quiet = redis_link_is_quiet(source->link);
        if (!redis_follow_take_piece(follow, budget_ns)) {
            return follow->source == NULL || (is_quiet && redis_spool_waiting(&source->spool) == 0);
        }
        if (clock_ticks_to_ns(clock_ticks() - begin_ticks) >= budget_ns ||
            redis_follow_is_behind(follow->server)) {
            return false;
        }
    }
    return true;
}

bool redis_follow_finish(struct redis_follow *follow, uint64_t budget_ns) {
    if (follow->source != NULL && !follow->is_finishing) {
        redis_link_close(follow->source->link);
        follow->is_finishing = true;
    }
    if (follow->source != NULL && !redis_follow_finish_some(follow, budget_ns)) {
        redis_follow_write_position(follow);
        return false;
    }
    if (follow->source != NULL) {
        redis_follow_show_link(follow);
        log_write(LOG_NOTICE,
                  "replication: Redis is followed no more source_id=%s received=%" PRIu64
                  " applied=%" PRIu64,
                  follow->view.id, follow->view.received_offset, follow->stream.offset);
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
static void redis_follow_print_passed(const struct redis_passed *passed, struct buffer *out) {
    bool is_done[RDB_TYPES] = {false};
    for (unsigned type = 0; type < RDB_TYPES; type++) {
        const char *name = rdb_type_name(type);
        uint64_t count = 0;
        for (unsigned other = type; other < RDB_TYPES; other++) {
            if (!is_done[other] && strcmp(rdb_type_name(other), name) == 0) {
                is_done[other] = true;
                count += passed->count[other];
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
    if (passed->function_count > 0) {
        redis_follow_put(out, "source_skipped_functions:%" PRIu64, passed->function_count);
    }
    if (passed->field_expiry_count > 0) {
        redis_follow_put(out, "source_fields_without_expiry:%" PRIu64, passed->field_expiry_count);
    }
}

void redis_follow_print(struct redis_follow *follow, struct buffer *out) {
    if (!follow->is_on || !follow->has_stream) {
        return;
    }
    const struct redis_stream *stream = &follow->stream;
    const struct redis_link_view *view = &follow->view;
    uint64_t waiting = follow->source != NULL ? redis_spool_waiting(&follow->source->spool) : 0;
    redis_follow_put(out, "source_type:redis");
    redis_follow_put(out, "source_state:%s", redis_stream_state_name(stream->state));
    redis_follow_put(out, "source_replid:%s", view->id);
    redis_follow_put(out, "source_received_offset:%" PRIu64, view->received_offset);
    /* Of the boards as clients see them: of a copy that is being read, nothing is. */
    redis_follow_put(out, "source_applied_offset:%" PRIu64,
                     stream->state == REDIS_STREAM_FOLLOWS || stream->state == REDIS_STREAM_STOPPED
                         ? stream->offset
                         : 0);
    redis_follow_put(out, "source_waiting_bytes:%" PRIu64, waiting);
    redis_follow_put(out, "source_spool_full:%d", view->is_full);
    redis_follow_put(out, "source_full_syncs:%" PRIu64, view->full_syncs);
    redis_follow_put(out, "source_partial_syncs:%" PRIu64, view->partial_syncs);
    redis_follow_put(out, "source_copied_boards:%" PRIu64, stream->board_count);
    redis_follow_put(out, "source_copied_module_boards:%" PRIu64, stream->module_board_count);
    redis_follow_put(out, "source_copied_members:%" PRIu64, stream->member_count);
    redis_follow_put(out, "source_copied_hashes:%" PRIu64, stream->hash_count);
    redis_follow_put(out, "source_copied_fields:%" PRIu64, stream->field_count);
    redis_follow_put(out, "source_copied_bans:%" PRIu64, stream->ban_count);
    redis_follow_print_passed(&stream->passed, out);
    redis_follow_put(out, "source_applied_commands:%" PRIu64, stream->apply.applied_count);
    redis_follow_put(out, "source_skipped_commands:%" PRIu64, stream->apply.skipped_count);
    for (uint32_t i = 0; i < stream->apply.skipped_used; i++) {
        redis_follow_put(out, "source_skipped_command_%s:%" PRIu64, stream->apply.skipped[i].name,
                         stream->apply.skipped[i].count);
    }
}
