/* See redis_stream.h. */
#include "server/migration/redis_stream.h"

#include <inttypes.h>
#include <stdio.h>

#include "codec/list.h"
#include "server/durability/persistence.h"
#include "server/replication/term.h"
#include "server/system/log.h"
#include "skiplist/keyspace/registry.h"

enum {
    PIECE_MAX = 16 * 1024, /* of the RDB file that is read in one go */
    ARGS_MAX = 1024 * 1024,
    BULK_MAX = 512 * 1024 * 1024,
    INLINE_MAX = 65536,
};
#define MULTI_MAX (UINT64_C(1) << 30)

/* ---- the position ---- */

enum { POSITION_MAX = REPLICATION_ID_SIZE + REPLICATION_HOST_MAX + 64 };
#define KEY_NAME BYTES("redis")
#define FIELD    BYTES("position")

/* Nothing in this database expires. */
#define ANY_TIME INT64_MIN

static struct registry_key *redis_stream_find_kept(struct registry *registry) {
    return registry_find(registry, REGISTRY_HISTORY, KEY_NAME, ANY_TIME);
}

bool redis_stream_read_position(struct registry *registry, struct redis_position *position) {
    const struct registry_key *key = redis_stream_find_kept(registry);
    struct bytes text;
    uint64_t port;
    *position = (struct redis_position){.offset = 0};
    if (key == NULL || key->kind != REGISTRY_HASH || !hash_find(registry_hash(key), FIELD, &text)) {
        return false;
    }
    struct bytes id = bytes_take_word(&text);
    if (!term_is_id(id) || !bytes_parse_u64(bytes_take_word(&text), &position->offset) ||
        !bytes_parse_u64(bytes_take_word(&text), &position->database) ||
        !bytes_parse_u64(bytes_take_word(&text), &port) || port > UINT16_MAX ||
        text.size > REPLICATION_HOST_MAX) {
        return false;
    }
    memcpy(position->id, id.at, id.size);
    memcpy(position->host, text.at, text.size);
    position->port = (uint16_t)port;
    return true;
}

/* false: no memory; nothing has changed. */
static bool redis_stream_put_field(struct registry *registry, struct bytes field,
                                   struct bytes value) {
    const struct bytes args[] = {field, value};
    return registry_hash_put_own(registry, REGISTRY_HISTORY, KEY_NAME, args, 1, ANY_TIME) != NULL;
}

static void redis_stream_remove_field(struct registry *registry, struct bytes field) {
    struct registry_key *key = redis_stream_find_kept(registry);
    if (key != NULL && registry_hash_remove(registry, key, field) &&
        hash_count(registry_hash(key)) == 0) {
        registry_remove(registry, key);
    }
}

bool redis_stream_write_position(struct registry *registry, const struct redis_position *position) {
    char text[POSITION_MAX];
    int size =
        snprintf(text, sizeof text, "%s %" PRIu64 " %" PRIu64 " %u %s", position->id,
                 position->offset, position->database, (unsigned)position->port, position->host);
    bool is_put =
        redis_stream_put_field(registry, FIELD, (struct bytes){.at = text, .size = (size_t)size});
    if (!is_put) {
        redis_stream_remove_field(registry, FIELD);
    }
    return is_put;
}

void redis_stream_remove_position(struct registry *registry) {
    struct registry_key *key = redis_stream_find_kept(registry);
    if (key != NULL) {
        registry_remove(registry, key);
    }
}

/* ---- keys that the source is asked for ---- */

/* The name of its field. No memory: it is broken, and so is what follows. */
static struct bytes redis_stream_asked_field(struct redis_asked_keys *keys, uint32_t database,
                                             struct bytes name) {
    char head = (char)database;
    buffer_clear(&keys->field);
    buffer_append(&keys->field, &head, 1);
    buffer_append_bytes(&keys->field, name);
    return buffer_bytes(&keys->field);
}

void redis_stream_init_asked(struct redis_asked_keys *keys, struct registry *registry) {
    *keys = (struct redis_asked_keys){.registry = registry};
    buffer_init(&keys->field, 0);
}

void redis_stream_forget_asked(struct redis_asked_keys *keys) {
    struct redis_asked *asked;
    LIST_TAKE_EACH(keys->first, asked) {
        memory_free(asked);
    }
    keys->last = NULL;
    keys->count = 0;
    keys->total = 0;
    buffer_deinit(&keys->field);
}

/* false: no memory. */
static bool redis_stream_append_asked(struct redis_asked_keys *keys, uint32_t database,
                                      struct bytes name, bool wants_value, uint64_t since) {
    struct redis_asked *asked = memory_allocate(sizeof *asked + name.size);
    if (asked == NULL) {
        return false;
    }
    *asked = (struct redis_asked){.wants_value = wants_value,
                                  .database = database,
                                  .since = since,
                                  .name_size = (uint32_t)name.size};
    memcpy(asked->name, name.at, name.size);
    LIST_APPEND(keys->first, keys->last, asked);
    keys->count++;
    return true;
}

bool redis_stream_resume_asked(struct redis_asked_keys *keys, uint64_t since) {
    const struct registry_key *key = redis_stream_find_kept(keys->registry);
    if (key == NULL || key->kind != REGISTRY_HASH) {
        return true;
    }
    struct hash_cursor cursor = hash_begin(registry_hash(key));
    struct hash_pair pair;
    bool is_fine = true;
    while (is_fine && hash_next(&cursor, &pair)) {
        uint8_t database = pair.field.size > 1 ? (uint8_t)pair.field.at[0] : REGISTRY_DATABASES;
        if (database < REGISTRY_DATABASES) { /* else it is the position */
            is_fine = redis_stream_append_asked(keys, database, bytes_behind(pair.field, 1), false,
                                                since);
        }
    }
    return is_fine;
}

bool redis_stream_is_asked(struct redis_asked_keys *keys, uint32_t database, struct bytes name) {
    struct bytes value;
    const struct registry_key *key =
        keys->count > 0 ? redis_stream_find_kept(keys->registry) : NULL;
    return key != NULL &&
           hash_find(registry_hash(key), redis_stream_asked_field(keys, database, name), &value);
}

bool redis_stream_ask(struct redis_asked_keys *keys, uint32_t database, struct bytes name,
                      bool wants_value, uint64_t since) {
    if (redis_stream_is_asked(keys, database, name)) {
        return true;
    }
    struct bytes field = redis_stream_asked_field(keys, database, name);
    bool is_noted = !keys->field.is_broken &&
                    redis_stream_put_field(keys->registry, field, BYTES("")) &&
                    redis_stream_append_asked(keys, database, name, wants_value, since);
    keys->total += is_noted;
    return is_noted;
}

void redis_stream_ask_again(struct redis_asked_keys *keys, uint64_t database) {
    for (struct redis_asked *at = keys->first; at != NULL; at = at->next) {
        if (at->database == database || database == REGISTRY_DATABASES) {
            at->is_void = at->state == REDIS_ASKED_SENT;
            at->state = at->state == REDIS_ASKED_ANSWERED ? REDIS_ASKED_WAITS : at->state;
        }
    }
}

bool redis_stream_swap_asked(struct redis_asked_keys *keys, uint32_t a, uint32_t b,
                             uint64_t since) {
    const struct redis_asked *last = keys->last;
    bool is_fine = true;
    redis_stream_ask_again(keys, a);
    redis_stream_ask_again(keys, b);
    for (struct redis_asked *at = keys->first; at != NULL && is_fine; at = at->next) {
        if (at->database == a || at->database == b) {
            is_fine = redis_stream_ask(keys, at->database == a ? b : a, redis_stream_asked_name(at),
                                       false, since);
        }
        if (at == last) {
            break;
        }
    }
    return is_fine;
}

uint64_t redis_stream_end_asked(struct redis_asked_keys *keys, uint64_t offset) {
    struct redis_asked **at = &keys->first;
    uint64_t next = UINT64_MAX;
    keys->last = NULL;
    while (*at != NULL) {
        struct redis_asked *asked = *at;
        if (asked->state == REDIS_ASKED_ANSWERED && asked->until <= offset) {
            *at = asked->next;
            redis_stream_remove_field(
                keys->registry,
                redis_stream_asked_field(keys, asked->database, redis_stream_asked_name(asked)));
            keys->count--;
            memory_free(asked);
        } else {
            bool is_next = asked->state == REDIS_ASKED_ANSWERED && asked->until < next;
            next = is_next ? asked->until : next;
            keys->last = asked;
            at = &asked->next;
        }
    }
    return next;
}

/* ---- states ---- */

const char *redis_stream_state_name(enum redis_stream_state state) {
    static const char *const names[REDIS_STREAM_STATES] = {
        "waits", "loads", "loaded", "follows", "stopped",
    };
    CHECK(state < REDIS_STREAM_STATES);
    return names[state];
}

static const struct transition {
    enum redis_stream_state from, to;
} transitions[] = {
    {REDIS_STREAM_WAITS, REDIS_STREAM_FOLLOWS},   {REDIS_STREAM_WAITS, REDIS_STREAM_LOADS},
    {REDIS_STREAM_LOADS, REDIS_STREAM_LOADS},     {REDIS_STREAM_LOADS, REDIS_STREAM_LOADED},
    {REDIS_STREAM_LOADS, REDIS_STREAM_STOPPED},   {REDIS_STREAM_LOADED, REDIS_STREAM_LOADS},
    {REDIS_STREAM_LOADED, REDIS_STREAM_FOLLOWS},  {REDIS_STREAM_FOLLOWS, REDIS_STREAM_LOADS},
    {REDIS_STREAM_FOLLOWS, REDIS_STREAM_STOPPED}, {REDIS_STREAM_LOADED, REDIS_STREAM_STOPPED},
    {REDIS_STREAM_WAITS, REDIS_STREAM_STOPPED},
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
        snprintf(stream->error, sizeof stream->error, "%.*s", (int)sizeof stream->error - 1, error);
    }
    return false;
}

void redis_stream_init(struct redis_stream *stream, struct server *server, uint64_t seed) {
    *stream = (struct redis_stream){
        .state = REDIS_STREAM_WAITS, .seed = seed, .limit = UINT64_MAX, .answered = UINT64_MAX};
    redis_apply_init(&stream->apply, server, seed);
    buffer_init(&stream->pending, 0);
}

static void redis_stream_drop_multi(struct redis_stream *stream) {
    struct redis_queued *queued;
    LIST_TAKE_EACH(stream->multi_first, queued) {
        memory_free(queued);
    }
    stream->multi_last = NULL;
    stream->is_in_multi = false;
    stream->multi_size = 0;
}

static void redis_stream_end_load(struct redis_stream *stream) {
    if (stream->has_load) {
        rdb_load_deinit(&stream->load);
        stream->has_load = false;
    }
}

static void redis_stream_drop_request(struct redis_stream *stream) {
    redis_stream_drop_multi(stream);
    resp_parser_deinit(&stream->parser);
    resp_arena_deinit(&stream->arena);
    buffer_deinit(&stream->pending);
}

void redis_stream_deinit(struct redis_stream *stream) {
    redis_stream_end_load(stream);
    redis_stream_drop_request(stream);
    redis_apply_deinit(&stream->apply);
    registry_destroy(stream->beside);
}

struct registry *redis_stream_take_beside(struct redis_stream *stream) {
    struct registry *beside = stream->beside;
    redis_stream_end_load(stream);
    stream->beside = NULL;
    return beside;
}

void redis_stream_restart(struct redis_stream *stream, uint64_t offset) {
    CHECK(stream->state != REDIS_STREAM_STOPPED && stream->beside == NULL);
    redis_stream_drop_request(stream);
    redis_apply_reset(&stream->apply);
    stream->offset = stream->apply.offset = offset;
    stream->unconfirmed = 0;
    stream->error[0] = '\0';
    stream->is_hungry = true;
    stream->beside = registry_create_beside(stream->apply.server->registry);
    if (stream->beside != NULL) {
        registry_set_passive(stream->beside, true);
    }
    redis_stream_end_load(stream);
    rdb_load_init(&stream->load, stream->beside, stream->seed, stream->apply.now_us);
    stream->load.keeps_expired = true;
    stream->has_load = true;
    redis_stream_change(stream, REDIS_STREAM_LOADS);
}

bool redis_stream_resume(struct redis_stream *stream, uint64_t offset, uint64_t database) {
    stream->offset = offset;
    stream->is_hungry = true;
    redis_stream_change(stream, REDIS_STREAM_FOLLOWS);
    return redis_apply_resume(&stream->apply, offset, database);
}

/* ---- the copy ---- */

bool redis_stream_exchange(struct redis_stream *stream) {
    struct server *server = stream->apply.server;
    const struct rdb_load *load = &stream->load;
    if (server->persistence == NULL) {
        registry_exchange(server->registry, stream->beside);
    } else if (!persistence_exchange_keys(server->persistence, stream->beside)) {
        return false;
    }
    redis_stream_change(stream, REDIS_STREAM_FOLLOWS);
    log_write(LOG_NOTICE,
              "replication: the copy of Redis is in place boards=%llu members=%llu hashes=%llu "
              "fields=%llu bans=%llu; its commands follow from offset %llu",
              (unsigned long long)load->board_count, (unsigned long long)load->member_count,
              (unsigned long long)load->hash_count, (unsigned long long)load->field_count,
              (unsigned long long)load->ban_count, (unsigned long long)stream->offset);
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
    enum rdb_load_status status = RDB_LOAD_STEP;
    struct bytes rest;
    stream->is_hungry = false;
    stream->load.now_us = stream->apply.now_us;
    while (status == RDB_LOAD_STEP && !redis_stream_is_over(deadline)) {
        status = rdb_load_step(&stream->load);
    }
    redis_apply_raise_time(&stream->apply, stream->load.latest_us);
    switch (status) {
    case RDB_LOAD_STEP:
        break;
    case RDB_LOAD_MORE:
        stream->is_hungry = true;
        break;
    case RDB_LOAD_DONE:
        rest = rdb_reader_rest(&stream->load.reader);
        buffer_append(&stream->pending, rest.at, rest.size); /* broken: the next call stops */
        redis_stream_end_load(stream);
        stream->is_hungry = false;
        redis_stream_change(stream, REDIS_STREAM_LOADED);
        break;
    case RDB_LOAD_FAILED:
        return redis_stream_stop(stream, stream->load.error);
    }
    return true;
}

/* ---- commands ---- */

static bool redis_stream_apply_one(struct redis_stream *stream, const struct request *request) {
    return redis_apply_run(&stream->apply, request) ||
           redis_stream_stop(stream, stream->apply.error);
}

static bool redis_stream_queue(struct redis_stream *stream, const struct request *request,
                               bool is_other) {
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
    *queued = (struct redis_queued){.request = *request, .is_other = is_other};
    queued->request.args = args;
    LIST_APPEND(stream->multi_first, stream->multi_last, queued);
    return true;
}

static bool redis_stream_take_request(struct redis_stream *stream, const struct request *request) {
    struct bytes name = request->args[0];
    if (bytes_is(name, "PING") || bytes_is(name, "REPLCONF")) {
        return true;
    }
    if (bytes_is(name, "MULTI")) {
        redis_stream_drop_multi(stream);
        stream->is_in_multi = true;
        stream->multi_database = stream->apply.database;
        return true;
    }
    if (bytes_is(name, "EXEC")) {
        bool is_fine = true;
        for (const struct redis_queued *queued = stream->multi_first; queued != NULL && is_fine;
             queued = queued->next) {
            is_fine = !queued->is_other
                          ? redis_stream_apply_one(stream, &queued->request)
                          : redis_apply_take_other(&stream->apply, queued->request.args[0]) ||
                                redis_stream_stop(stream, stream->apply.error);
        }
        redis_stream_drop_multi(stream);
        return is_fine;
    }
    if (!stream->is_in_multi) {
        return redis_stream_apply_one(stream, request);
    }
    if (!redis_apply_only_asks(request)) {
        if (bytes_is(name, "SELECT") && request->count == 2) {
            (void)!bytes_parse_u64(request->args[1], &stream->multi_database);
        }
        return redis_stream_queue(stream, request, false);
    }
    /* The keys are not known from now on, before the rest of the transaction; but what another type takes from a board
     * that this makes is known in its turn. */
    uint64_t database = stream->apply.database;
    struct bytes key;
    stream->apply.database = stream->multi_database;
    bool is_fine = redis_apply_run_ahead(&stream->apply, request) ||
                   redis_stream_stop(stream, stream->apply.error);
    stream->apply.database = database;
    for (size_t at = 0; is_fine && stream->multi_first != NULL &&
                        redis_apply_next_other(&stream->apply, &at, &key);) {
        is_fine = redis_stream_queue(stream, &(struct request){.args = &key, .count = 1}, true);
    }
    return is_fine;
}

/* Has it to wait: for what the source says of a key, or of the command? */
static bool redis_stream_must_wait(struct redis_stream *stream, const struct request *request) {
    static const char *const known[] = {"PING", "REPLCONF", "MULTI", "EXEC"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (bytes_is(request->args[0], known[i])) {
            return false;
        }
    }
    return !redis_apply_prepare(&stream->apply, request);
}

static void redis_stream_advance(struct redis_stream *stream) {
    stream->offset += stream->unconfirmed;
    stream->apply.offset = stream->offset;
    stream->unconfirmed = 0;
    if (stream->offset >= stream->answered) {
        stream->answered = redis_stream_end_asked(&stream->apply.asked, stream->offset);
    }
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
        if (!stream->is_in_multi && (stream->offset >= stream->limit ||
                                     stream->apply.asked.count >= REDIS_APPLY_ASKED_MAX)) {
            stream->is_held = true;
            break;
        }
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
        if (status != RESP_SKIP && redis_stream_must_wait(stream, &request)) {
            stream->is_held = true;
            resp_arena_reset(&stream->arena);
            break;
        }
        is_fine = status == RESP_SKIP || redis_stream_take_request(stream, &request);
        if (is_fine) {
            buffer_drop_front(&stream->pending, used);
            stream->unconfirmed += used;
            if (!stream->is_in_multi) {
                redis_stream_advance(stream);
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
    redis_stream_end_load(stream);
    redis_stream_drop_request(stream);
    redis_stream_change(stream, REDIS_STREAM_STOPPED);
    log_write(LOG_WARNING,
              "replication: following Redis has stopped, nothing behind offset %llu is applied: %s",
              (unsigned long long)stream->offset, stream->error);
}

void redis_stream_fail(struct redis_stream *stream, const char *error) {
    (void)redis_stream_stop(stream, error);
    redis_stream_end_with_error(stream);
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
    stream->apply.now_us = now_us;
    stream->is_held = false;
    size_t taken = 0;
    if (stream->is_hungry && piece.size > 0) {
        taken = piece.size < PIECE_MAX ? piece.size : PIECE_MAX;
        if (is_reading) {
            rdb_reader_feed(&stream->load.reader, (struct bytes){.at = piece.at, .size = taken});
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
