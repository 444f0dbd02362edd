/* See redis_stream.h. */
#include "server/migration/redis_stream.h"

#include <stdio.h>

#include "server/durability/persistence.h"
#include "server/migration/redis_apply_parts.h"
#include "server/rdb/rdb_state.h"
#include "server/system/log.h"

enum {
    PIECE_MAX = 16 * 1024, /* of the RDB file that is read in one go */
    FILL_STEP = 128,       /* entries put between two looks at the time */
    ARGS_MAX = 1024 * 1024,
    BULK_MAX = 512 * 1024 * 1024,
    INLINE_MAX = 65536,
};
#define MULTI_MAX (UINT64_C(1) << 30)

const char *redis_stream_state_name(enum redis_stream_state state) {
    static const char *const names[REDIS_STREAM_STATES] = {
        "waits", "loads", "loaded", "follows", "stopped",
    };
    CHECK(state < REDIS_STREAM_STATES);
    return names[state];
}

/* ---- states ---- */

static const struct transition {
    enum redis_stream_state from, to;
} transitions[] = {
    {REDIS_STREAM_WAITS, REDIS_STREAM_FOLLOWS},   {REDIS_STREAM_WAITS, REDIS_STREAM_LOADS},
    {REDIS_STREAM_LOADS, REDIS_STREAM_LOADS},     {REDIS_STREAM_LOADS, REDIS_STREAM_LOADED},
    {REDIS_STREAM_LOADS, REDIS_STREAM_STOPPED},   {REDIS_STREAM_LOADED, REDIS_STREAM_LOADS},
    {REDIS_STREAM_LOADED, REDIS_STREAM_FOLLOWS},  {REDIS_STREAM_FOLLOWS, REDIS_STREAM_LOADS},
    {REDIS_STREAM_FOLLOWS, REDIS_STREAM_STOPPED}, {REDIS_STREAM_FOLLOWS, REDIS_STREAM_WAITS},
};

static void redis_stream_change(struct redis_stream *stream, enum redis_stream_state to) {
    bool is_known = false;
    for (size_t i = 0; i < sizeof transitions / sizeof transitions[0]; i++) {
        is_known |= transitions[i].from == stream->state && transitions[i].to == to;
    }
    CHECK(is_known);
    log_write(LOG_DEBUG, "replication: redis stream %s -> %s offset=%llu",
              redis_stream_state_name(stream->state), redis_stream_state_name(to),
              (unsigned long long)stream->offset);
    stream->state = to;
}

/* Note why it is to stop. Always false. */
static bool redis_stream_stop(struct redis_stream *stream, const char *error) {
    if (stream->error[0] == '\0') {
        snprintf(stream->error, sizeof stream->error, "%s", error);
    }
    return false;
}

/* For what `apply` has said. */
static bool redis_stream_stop_applied(struct redis_stream *stream) {
    return redis_stream_stop(stream, stream->apply.error);
}

/* The name of the key that is read. */
static struct bytes redis_stream_name(const struct redis_stream *stream) {
    return (struct bytes){.at = stream->reader.name.at, .size = stream->reader.name.size};
}

void redis_stream_init(struct redis_stream *stream, struct server *server, uint64_t seed) {
    *stream = (struct redis_stream){.state = REDIS_STREAM_WAITS};
    redis_apply_init(&stream->apply, server, seed);
    buffer_init(&stream->pending, 0);
}

static void redis_stream_drop_multi(struct redis_stream *stream) {
    while (stream->multi_first != NULL) {
        struct redis_queued *next = stream->multi_first->next;
        memory_free(stream->multi_first);
        stream->multi_first = next;
    }
    stream->multi_last = NULL;
    stream->is_in_multi = false;
    stream->multi_size = 0;
}

static void redis_stream_drop_reader(struct redis_stream *stream) {
    if (stream->has_reader) {
        rdb_reader_deinit(&stream->reader);
        stream->has_reader = false;
    }
}

static void redis_stream_drop_request(struct redis_stream *stream) {
    redis_stream_drop_multi(stream);
    resp_parser_deinit(&stream->parser);
    resp_arena_deinit(&stream->arena);
    buffer_deinit(&stream->pending);
}

void redis_stream_deinit(struct redis_stream *stream) {
    redis_stream_drop_reader(stream);
    redis_stream_drop_request(stream);
    redis_apply_deinit(&stream->apply);
    registry_destroy(stream->beside);
}

struct registry *redis_stream_take_beside(struct redis_stream *stream) {
    struct registry *beside = stream->beside;
    redis_apply_turn_to(&stream->apply, stream->apply.server->registry);
    stream->beside = NULL;
    return beside;
}

static void redis_stream_begin_reading(struct redis_stream *stream) {
    redis_stream_drop_reader(stream);
    rdb_reader_init(&stream->reader);
    stream->has_reader = true;
    stream->board_count = stream->module_board_count = stream->member_count = 0;
    stream->hash_count = stream->field_count = 0;
    stream->ban_count = 0;
    stream->passed = (struct redis_passed){.function_count = 0};
    stream->filling.is_on = false;
    stream->is_hungry = true;
    redis_apply_reset(&stream->apply);
}

void redis_stream_restart(struct redis_stream *stream, uint64_t offset) {
    CHECK(stream->state != REDIS_STREAM_STOPPED);
    redis_stream_drop_request(stream);
    redis_stream_begin_reading(stream);
    stream->offset = offset;
    stream->unconfirmed = 0;
    stream->error[0] = '\0';
    CHECK(stream->beside == NULL);
    stream->beside = registry_create_beside(stream->apply.server->registry);
    if (stream->beside != NULL) {
        registry_set_passive(stream->beside, true);
        redis_apply_turn_to(&stream->apply, stream->beside);
    }
    redis_stream_change(stream, REDIS_STREAM_LOADS);
}

/* Which keys hold sets is not known any more. */
void redis_stream_resume(struct redis_stream *stream, uint64_t offset, uint64_t database) {
    redis_apply_reset(&stream->apply);
    stream->apply.database = database;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        stream->apply.sets[i].is_lost = true;
    }
    stream->offset = offset;
    stream->is_hungry = true;
    redis_stream_change(stream, REDIS_STREAM_FOLLOWS);
}

/* ---- the copy ---- */

static bool redis_stream_load_entry(struct redis_stream *stream) {
    const struct rdb_reader *reader = &stream->reader;
    if (reader->kind == RDB_ZSET) {
        stream->member_count++;
        return redis_apply_put_score(&stream->apply, redis_stream_name(stream), reader->text,
                                     reader->score) ||
               redis_stream_stop_applied(stream);
    }
    const struct bytes pair[2] = {reader->text, reader->value};
    uint32_t added_count;
    stream->field_count++;
    if (redis_apply_put_fields(&stream->apply, redis_stream_name(stream), pair, 1, &added_count) &&
        added_count == 0) {
        (void)redis_apply_fail_member(&stream->apply, redis_stream_name(stream), reader->text,
                                      "it is there twice");
    }
    return stream->apply.error[0] == '\0' || redis_stream_stop_applied(stream);
}

static bool redis_stream_load_key(struct redis_stream *stream) {
    const struct rdb_reader *reader = &stream->reader;
    struct redis_apply *apply = &stream->apply;
    apply->database = reader->database;
    if (reader->kind == RDB_OTHER) {
        stream->passed.count[reader->type]++;
        if (rdb_type_is_set(reader->type) && reader->database < REGISTRY_DATABASES) {
            redis_names_put(&apply->sets[reader->database], redis_stream_name(stream));
        }
        return true;
    }
    if (!redis_apply_check_key(apply, redis_stream_name(stream)) ||
        !redis_apply_check_new(apply, redis_stream_name(stream))) {
        return redis_stream_stop_applied(stream);
    }
    stream->board_count += reader->kind != RDB_HASH;
    stream->hash_count += reader->kind == RDB_HASH;
    if (reader->kind == RDB_BOARD) {
        stream->module_board_count++;
        redis_apply_raise_time(apply, reader->board->time_us);
        return redis_apply_begin_exact(apply, redis_stream_name(stream), reader->board) ||
               redis_stream_stop_applied(stream);
    }
    return reader->kind != RDB_ZSET || redis_apply_begin_board(apply, redis_stream_name(stream)) ||
           redis_stream_stop_applied(stream);
}

static bool redis_stream_set_expiry(struct redis_stream *stream) {
    const struct rdb_reader *reader = &stream->reader;
    return reader->expire_at_ms == RDB_NO_EXPIRY ||
           redis_apply_set_expiry(&stream->apply, redis_stream_name(stream),
                                  reader->expire_at_ms) ||
           redis_stream_stop_applied(stream);
}

static bool redis_stream_load_key_end(struct redis_stream *stream) {
    uint32_t count;
    if (stream->reader.kind == RDB_OTHER) {
        return true;
    }
    if (stream->reader.kind == RDB_HASH) {
        return redis_stream_set_expiry(stream);
    }
    if (!redis_apply_end_board(&stream->apply, redis_stream_name(stream), &count)) {
        return redis_stream_stop_applied(stream);
    }
    stream->filling = (struct redis_filling){.is_on = true, .count = count};
    return true;
}

static bool redis_stream_load_event(struct redis_stream *stream, enum rdb_event event) {
    const struct rdb_reader *reader = &stream->reader;
    switch (event) {
    case RDB_KEY:
        return redis_stream_load_key(stream);
    case RDB_ENTRY:
        return redis_stream_load_entry(stream);
    case RDB_ENTRIES:
        stream->member_count += reader->board->decoder.entry_count;
        return redis_apply_put_entries(&stream->apply, redis_stream_name(stream), reader->board) ||
               redis_stream_stop_applied(stream);
    case RDB_KEY_END:
        return redis_stream_load_key_end(stream);
    case RDB_STATE:
        return redis_apply_put_state(&stream->apply, reader->text) ||
               redis_stream_stop_applied(stream);
    case RDB_BAD:
    case RDB_OUT_OF_MEMORY:
    case RDB_MORE:
    case RDB_END:
        break;
    }
    return true;
}

/* true: the board is filled. */
static bool redis_stream_fill_some(struct redis_stream *stream) {
    struct redis_filling *filling = &stream->filling;
    uint32_t left = filling->count - filling->at;
    uint32_t step = left < FILL_STEP ? left : FILL_STEP;
    if (!redis_apply_fill(&stream->apply, redis_stream_name(stream), filling->count, filling->at,
                          filling->at + step)) {
        filling->is_on = false;
        return redis_stream_stop_applied(stream);
    }
    filling->at += step;
    if (filling->at == filling->count) {
        filling->is_on = false;
        return redis_stream_set_expiry(stream);
    }
    return true;
}

static void redis_stream_end_load(struct redis_stream *stream) {
    stream->ban_count = registry_count(stream->beside, RDB_STATE_BANS);
    stream->passed.function_count = stream->reader.function_count;
    stream->passed.field_expiry_count = stream->reader.field_expiry_count;
    struct bytes rest = rdb_reader_rest(&stream->reader);
    buffer_append(&stream->pending, rest.at, rest.size); /* broken: the next call stops */
    redis_stream_drop_reader(stream);
    stream->is_hungry = false;
    stream->apply.database = 0;
    redis_stream_change(stream, REDIS_STREAM_LOADED);
}

bool redis_stream_exchange(struct redis_stream *stream) {
    struct server *server = stream->apply.server;
    redis_apply_turn_to(&stream->apply, server->registry);
    if (server->persistence == NULL) {
        registry_exchange(server->registry, stream->beside);
    } else if (!persistence_exchange_keys(server->persistence, stream->beside)) {
        return false;
    }
    redis_stream_change(stream, REDIS_STREAM_FOLLOWS);
    log_write(LOG_NOTICE,
              "replication: the copy of Redis is in place boards=%llu members=%llu hashes=%llu "
              "fields=%llu bans=%llu; its commands follow from offset %llu",
              (unsigned long long)stream->board_count, (unsigned long long)stream->member_count,
              (unsigned long long)stream->hash_count, (unsigned long long)stream->field_count,
              (unsigned long long)stream->ban_count, (unsigned long long)stream->offset);
    return true;
}

struct deadline {
    uint64_t begin_ticks, budget_ns;
};
static bool redis_stream_is_over(const struct deadline *deadline) {
    return clock_ticks_to_ns(clock_ticks() - deadline->begin_ticks) >= deadline->budget_ns;
}

/* Read on until more bytes are needed, or time is over. false: error. */
static bool redis_stream_read_copy(struct redis_stream *stream, const struct deadline *deadline) {
    enum { LOOK_EVERY = 64 };
    stream->is_hungry = false;
    for (unsigned i = 1;; i++) {
        bool is_long = false;
        if (stream->filling.is_on) {
            if (!redis_stream_fill_some(stream)) {
                return false;
            }
        } else {
            enum rdb_event event = rdb_reader_next(&stream->reader);
            switch (event) {
            case RDB_BAD:
                return redis_stream_stop(stream, stream->reader.error);
            case RDB_OUT_OF_MEMORY:
                return redis_stream_stop(stream, "out of memory");
            case RDB_MORE:
                stream->is_hungry = true;
                return true;
            case RDB_END:
                redis_stream_end_load(stream);
                return true;
            case RDB_KEY:
            case RDB_ENTRY:
            case RDB_ENTRIES:
            case RDB_KEY_END:
            case RDB_STATE:
                if (!redis_stream_load_event(stream, event)) {
                    return false;
                }
                break;
            }
            is_long = event == RDB_ENTRIES || event == RDB_STATE;
        }
        if ((stream->filling.is_on || is_long || i % LOOK_EVERY == 0) &&
            redis_stream_is_over(deadline)) {
            return true;
        }
    }
}

/* ---- commands ---- */

static bool redis_stream_apply_one(struct redis_stream *stream, const struct request *request) {
    return redis_apply_run(&stream->apply, request) || redis_stream_stop_applied(stream);
}

static bool redis_stream_queue(struct redis_stream *stream, const struct request *request) {
    size_t size = sizeof(struct redis_queued) + request->count * sizeof(struct bytes);
    size_t text_size = 0;
    for (uint32_t i = 0; i < request->count; i++) {
        text_size += request->args[i].size;
    }
    stream->multi_size += size + text_size;
    if (stream->multi_size > MULTI_MAX) {
        return redis_stream_stop(stream, "a transaction of the source is longer than a gibibyte");
    }
    struct redis_queued *queued = memory_allocate(size + text_size);
    if (queued == NULL) {
        return redis_stream_stop(stream, "out of memory");
    }
    struct bytes *args = (struct bytes *)(queued + 1);
    char *text = (char *)(args + request->count);
    for (uint32_t i = 0; i < request->count; i++) {
        args[i] = (struct bytes){.at = text, .size = request->args[i].size};
        if (args[i].size > 0) {
            memcpy(text, request->args[i].at, args[i].size);
        }
        text += args[i].size;
    }
    *queued = (struct redis_queued){.request = *request};
    queued->request.args = args;
    if (stream->multi_last != NULL) {
        stream->multi_last->next = queued;
    } else {
        stream->multi_first = queued;
    }
    stream->multi_last = queued;
    return true;
}

static bool redis_stream_apply_multi(struct redis_stream *stream) {
    bool is_fine = true;
    for (const struct redis_queued *queued = stream->multi_first; queued != NULL && is_fine;
         queued = queued->next) {
        is_fine = redis_stream_apply_one(stream, &queued->request);
    }
    redis_stream_drop_multi(stream);
    return is_fine;
}

static bool redis_stream_take_request(struct redis_stream *stream, const struct request *request) {
    struct bytes name = request->args[0];
    if (bytes_is(name, "PING") || bytes_is(name, "REPLCONF")) {
        return true;
    }
    if (bytes_is(name, "MULTI")) {
        redis_stream_drop_multi(stream);
        stream->is_in_multi = true;
        return true;
    }
    if (bytes_is(name, "EXEC")) {
        return redis_stream_apply_multi(stream);
    }
    return stream->is_in_multi ? redis_stream_queue(stream, request)
                               : redis_stream_apply_one(stream, request);
}

/* The offset is that of the last command that is applied; a transaction is one. */
static bool redis_stream_take_commands(struct redis_stream *stream,
                                       const struct deadline *deadline) {
    static const struct resp_limits limits = {
        .args_max = ARGS_MAX,
        .bulk_size_max = BULK_MAX,
        .inline_size_max = INLINE_MAX,
        .is_authenticated = true,
    };
    enum { LOOK_EVERY = 16 };
    bool is_fine = true;
    stream->is_hungry = false;
    for (unsigned i = 1; is_fine; i++) {
        struct request request;
        const char *error;
        size_t used = 0;
        enum resp_status status =
            resp_parse(&stream->parser, stream->pending.at, stream->pending.size, &limits,
                       &stream->arena, &request, &used, &error);
        if (status == RESP_MORE) {
            stream->is_hungry = true;
            break;
        }
        if (status == RESP_OUT_OF_MEMORY) {
            return redis_stream_stop(stream, "out of memory");
        }
        if (status == RESP_ERROR || status == RESP_CLOSE) {
            return redis_stream_stop(stream, "the source's stream is not made of commands");
        }
        is_fine = status == RESP_SKIP || redis_stream_take_request(stream, &request);
        if (is_fine) {
            buffer_drop_front(&stream->pending, used);
            stream->unconfirmed += used;
            if (!stream->is_in_multi) {
                stream->offset += stream->unconfirmed;
                stream->unconfirmed = 0;
            }
        }
        resp_arena_reset(&stream->arena);
        if (i % LOOK_EVERY == 0 && redis_stream_is_over(deadline)) {
            break;
        }
    }
    return is_fine;
}

/* ---- taking bytes ---- */

static void redis_stream_end_with_error(struct redis_stream *stream) {
    redis_stream_drop_reader(stream);
    redis_stream_drop_request(stream);
    if (stream->apply.wants_copy) {
        log_write(LOG_NOTICE, "replication: Redis is asked for a new copy: %s", stream->error);
        redis_stream_change(stream, REDIS_STREAM_WAITS);
        return;
    }
    redis_stream_change(stream, REDIS_STREAM_STOPPED);
    log_write(LOG_WARNING,
              "replication: following Redis has stopped, nothing behind offset %llu is applied: %s",
              (unsigned long long)stream->offset, stream->error);
}

/* One piece at a time: all of it is taken, though its commands or entries may have to wait for the next
 * call. */
size_t redis_stream_take(struct redis_stream *stream, struct bytes piece, uint64_t budget_ns,
                         int64_t now_us) {
    const struct deadline deadline = {.begin_ticks = clock_ticks(), .budget_ns = budget_ns};
    bool is_reading = stream->state == REDIS_STREAM_LOADS;
    if (stream->state == REDIS_STREAM_LOADED) {
        return 0;
    }
    if (!is_reading && stream->state != REDIS_STREAM_FOLLOWS) {
        return piece.size; /* they are of no use */
    }
    redis_apply_begin(&stream->apply, now_us);
    size_t taken = 0;
    if (stream->is_hungry && piece.size > 0) {
        taken = piece.size < PIECE_MAX ? piece.size : PIECE_MAX;
        if (is_reading) {
            rdb_reader_feed(&stream->reader, (struct bytes){.at = piece.at, .size = taken});
        } else {
            buffer_append(&stream->pending, piece.at, taken);
        }
    }
    bool has_memory = !stream->pending.is_broken && (!is_reading || stream->beside != NULL);
    bool is_fine = has_memory || redis_stream_stop(stream, "out of memory");
    is_fine = is_fine && (is_reading ? redis_stream_read_copy(stream, &deadline)
                                     : redis_stream_take_commands(stream, &deadline));
    if (!is_fine) {
        redis_stream_end_with_error(stream);
    }
    return taken;
}
