/* Redis servers as replicas: the stream's bytes, what they acknowledge, and the copies in front. See feed_redis.h. */
#include "server/migration/feed_redis.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/resp.h"
#include "server/durability/persistence.h"
#include "server/rdb/rdb_board.h"
#include "server/replication/feed.h"
#include "server/replication/replication.h"
#include "server/replication/wire.h"
#include "server/system/clock.h"
#include "server/system/log.h"
#include "skiplist/keyspace/effect.h"

enum {
    WORDS_MAX = 5,
    NUMBER_SIZE = 24,
    BLOB_MAX = 1 << 20,          /* about: then another one is begun */
    GATHERED_MAX = 64 * 1024,    /* of a transaction; more makes its beginning leave */
    EFFECTS_AT_ONCE = 64,        /* between two looks at the time */
    INPUT_KEPT_MAX = 512 * 1024, /* memory that stays */
};

void feed_redis_encode_init(struct redis_encode *encode) {
    *encode = (struct redis_encode){.database = UINT32_MAX};
    buffer_init(&encode->input, 0);
    buffer_init(&encode->commands, 0);
    buffer_init(&encode->blob, 0);
}

void feed_redis_encode_deinit(struct redis_encode *encode) {
    buffer_deinit(&encode->input);
    buffer_deinit(&encode->commands);
    buffer_deinit(&encode->blob);
}

/* ---- words ---- */

static void feed_redis_encode_put_words(struct buffer *out, const struct bytes *words,
                                        uint32_t count) {
    request_append_head(out, count);
    for (uint32_t i = 0; i < count; i++) {
        request_append_argument(out, words[i]);
    }
}

static void feed_redis_encode_put_command(struct redis_encode *encode, const struct bytes *words,
                                          uint32_t count) {
    feed_redis_encode_put_words(&encode->commands, words, count);
    encode->command_count++;
}

static void feed_redis_encode_put_number(struct bytes *word, char *text, int64_t number) {
    word->at = text;
    word->size = (size_t)snprintf(text, NUMBER_SIZE, "%" PRId64, number);
}

static void feed_redis_encode_select_database(struct redis_encode *encode, uint32_t database) {
    char text[NUMBER_SIZE];
    struct bytes words[] = {BYTES("SELECT"), {.at = NULL}};
    if (encode->database != database) {
        feed_redis_encode_put_number(&words[1], text, database);
        feed_redis_encode_put_command(encode, words, 2);
        encode->database = database;
    }
}

/* ---- blobs ---- */

static void feed_redis_encode_end_blob(struct redis_encode *encode) {
    struct bytes blob = {.at = encode->blob.at, .size = encode->blob.size};
    const struct bytes board[] = {BYTES("LB.APPLY"), encode->blob_key, blob};
    const struct bytes state[] = {BYTES("LB.APPLYSTATE"), blob};
    switch (encode->blob_kind) {
    case REDIS_ENCODE_NO_BLOB:
        return;
    case REDIS_ENCODE_BOARD_BLOB:
        feed_redis_encode_put_command(encode, board, 3);
        break;
    case REDIS_ENCODE_STATE_BLOB:
        feed_redis_encode_put_command(encode, state, 2);
        break;
    }
    encode->blob_kind = REDIS_ENCODE_NO_BLOB;
}

static void feed_redis_encode_begin_blob(struct redis_encode *encode) {
    effect_bytes_begin_blob(&encode->encoder, &encode->blob, (int64_t)encode->head.time_us);
}

/* Blobs are of the database that is selected: in them it is 0. */
static void feed_redis_encode_add_to_board(struct redis_encode *encode,
                                           const struct effect *effect) {
    bool goes_on = encode->blob_kind == REDIS_ENCODE_BOARD_BLOB && encode->blob.size < BLOB_MAX &&
                   encode->database == effect->database &&
                   bytes_equal(encode->blob_key, effect->name);
    if (!goes_on) {
        feed_redis_encode_end_blob(encode);
        feed_redis_encode_select_database(encode, effect->database);
        feed_redis_encode_begin_blob(encode);
        encode->blob_kind = REDIS_ENCODE_BOARD_BLOB;
        encode->blob_key = effect->name;
    }
    struct effect moved = *effect;
    moved.database = 0;
    effect_bytes_encode(&encode->encoder, &moved);
}

/* RENAME and COPY within a database: the options may change with the name. */
static void feed_redis_encode_move_board(struct redis_encode *encode, const struct effect *effect) {
    struct effect moved = *effect;
    feed_redis_encode_select_database(encode, effect->database);
    feed_redis_encode_begin_blob(encode);
    moved.database = 0;
    moved.to_database = 0;
    effect_bytes_encode(&encode->encoder, &moved);
    const struct bytes words[] = {BYTES("LB.APPLY"),
                                  effect->name,
                                  {.at = encode->blob.at, .size = encode->blob.size},
                                  effect->to_name,
                                  BYTES("")};
    feed_redis_encode_put_command(encode, words, 5);
}

/* ---- effects ---- */

static void feed_redis_encode_put_expiry(struct redis_encode *encode, struct bytes name,
                                         int64_t expire_at_ms) {
    char text[NUMBER_SIZE];
    struct bytes words[] = {BYTES("PEXPIREAT"), name, {.at = NULL}};
    if (expire_at_ms == REGISTRY_NO_EXPIRY) {
        words[0] = BYTES("PERSIST");
        feed_redis_encode_put_command(encode, words, 2);
    } else {
        feed_redis_encode_put_number(&words[2], text, expire_at_ms);
        feed_redis_encode_put_command(encode, words, 3);
    }
}

/* Of a hash, or to another database, where Redis has no RENAME. */
static void feed_redis_encode_move_key(struct redis_encode *encode, const struct effect *effect) {
    char text[NUMBER_SIZE];
    bool is_rename = effect->kind == EFFECT_RENAME;
    bool is_copy = !is_rename || effect->to_database != effect->database;
    const struct bytes unlink[] = {BYTES("UNLINK"), effect->name};
    struct bytes words[] = {is_copy ? BYTES("COPY") : BYTES("RENAME"),
                            effect->name,
                            effect->to_name,
                            BYTES("DB"),
                            {.at = NULL}};
    feed_redis_encode_put_number(&words[4], text, effect->to_database);
    feed_redis_encode_select_database(encode, effect->database);
    feed_redis_encode_put_command(encode, words, is_copy ? 5 : 3);
    if (is_copy && is_rename) {
        feed_redis_encode_put_command(encode, unlink, 2);
    }
    feed_redis_encode_select_database(encode, effect->to_database);
    feed_redis_encode_put_expiry(encode, effect->to_name, effect->expire_at_ms);
}

/* A hash, or a key whatever it is. */
static void feed_redis_encode_change_key(struct redis_encode *encode, const struct effect *effect) {
    const struct bytes flush[] = {BYTES("FLUSHDB")};
    const struct bytes unlink[] = {BYTES("UNLINK"), effect->name};
    const struct bytes put[] = {BYTES("HSET"), effect->name, effect->member, effect->value};
    const struct bytes take[] = {BYTES("HDEL"), effect->name, effect->member};
    feed_redis_encode_end_blob(encode);
    if (effect->kind == EFFECT_CREATE) {
        return; /* it comes to be with its first field */
    }
    feed_redis_encode_select_database(encode, effect->database);
    if (effect->kind == EFFECT_FLUSH) {
        feed_redis_encode_put_command(encode, flush, 1);
    } else if (effect->kind == EFFECT_REMOVE) {
        feed_redis_encode_put_command(encode, unlink, 2);
    } else if (effect->kind == EFFECT_EXPIRE) {
        feed_redis_encode_put_expiry(encode, effect->name, effect->expire_at_ms);
    } else if (effect->kind == EFFECT_PUT) {
        feed_redis_encode_put_command(encode, put, 4);
    } else {
        feed_redis_encode_put_command(encode, take, 3);
    }
}

/* false: it cannot be said. A Redis is not sent what is staged, and a master that has one reports the whole instead;
 * but this may have been reported before it came. */
static bool feed_redis_encode_effect(struct redis_encode *encode, const struct effect *effect) {
    bool is_of_board = effect->key_kind == NULL || effect->key_kind == &key_kind_board;
    if (effect->database >= REGISTRY_SYSTEM) {
        if (registry_is_of_hosts(effect->database)) {
            if (encode->blob_kind != REDIS_ENCODE_STATE_BLOB || encode->blob.size >= BLOB_MAX) {
                feed_redis_encode_end_blob(encode);
                feed_redis_encode_begin_blob(encode);
                encode->blob_kind = REDIS_ENCODE_STATE_BLOB;
            }
            effect_bytes_encode(&encode->encoder, effect);
        }
        return effect->database != REGISTRY_STAGING || effect->kind != EFFECT_RENAME;
    }
    switch (effect->kind) {
    case EFFECT_PUT:
    case EFFECT_TAKE:
    case EFFECT_CUT:
    case EFFECT_CREATE:
    case EFFECT_OPTIONS:
    case EFFECT_TAGS:
    case EFFECT_STATE:
    case EFFECT_NOTE:
        if (is_of_board) {
            feed_redis_encode_add_to_board(encode, effect);
        } else {
            feed_redis_encode_change_key(encode, effect);
        }
        return true;
    case EFFECT_RENAME:
    case EFFECT_COPY:
        feed_redis_encode_end_blob(encode);
        if (effect->options != NULL && effect->database == effect->to_database) {
            feed_redis_encode_move_board(encode, effect);
        } else {
            feed_redis_encode_move_key(encode, effect);
            if (effect->options != NULL && effect->kind == EFFECT_RENAME &&
                effect->options->is_archive) {
                /* It is a copy there, which is no archive. */
                feed_redis_encode_add_to_board(encode,
                                               &(struct effect){.kind = EFFECT_OPTIONS,
                                                                .database = effect->to_database,
                                                                .name = effect->to_name,
                                                                .options = effect->options,
                                                                .state = effect->state});
            }
        }
        return true;
    case EFFECT_REMOVE:
    case EFFECT_FLUSH:
    case EFFECT_EXPIRE:
        feed_redis_encode_change_key(encode, effect);
        return true;
    case EFFECT_FILL:
        break; /* is encoded as its parts */
    }
    CHECK(false);
    return false;
}

/* ---- the stream ---- */

static void feed_redis_encode_put_plain(struct redis_encode *encode, const char *at, size_t size) {
    buffer_append(encode->out, at, size);
    encode->offset += size;
}

static void feed_redis_encode_put_multi(struct redis_encode *encode) {
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n";
    if (!encode->has_multi) {
        feed_redis_encode_put_plain(encode, multi, sizeof multi - 1);
        encode->has_multi = true;
    }
}

static void feed_redis_encode_put_commands(struct redis_encode *encode) {
    struct buffer *commands = &encode->commands;
    feed_redis_encode_put_plain(encode, commands->at, commands->size);
    buffer_clear(commands);
}

/* false: it is damaged, or cannot be said. */
static bool feed_redis_encode_some(struct redis_encode *encode) {
    if (!encode->is_decoding) {
        struct wire_message message;
        wire_read_again(encode->input.at + encode->input_at, &message);
        encode->is_decoding = true;
        encode->head = message.head;
        effect_bytes_decode_begin(&encode->decoder, (struct bytes){.at = wire_payload(&message),
                                                                   .size = message.head.size});
    }
    for (uint32_t i = 0; i < EFFECTS_AT_ONCE; i++) {
        enum effect_record record = effect_bytes_decode(&encode->decoder);
        if (record == EFFECT_RECORD_END) {
            feed_redis_encode_end_blob(encode);
            encode->is_decoding = false;
            encode->input_at += wire_group_size(&encode->head);
            if (!encode->head.is_linked) {
                /* Of groups that belong together. */
                static const char exec[] = "*1\r\n$4\r\nEXEC\r\n";
                if (encode->command_count > 1) {
                    feed_redis_encode_put_multi(encode);
                }
                feed_redis_encode_put_commands(encode);
                if (encode->has_multi) {
                    feed_redis_encode_put_plain(encode, exec, sizeof exec - 1);
                }
                encode->has_multi = false;
                encode->command_count = 0;
                encode->group = encode->head.sequence;
            }
            return true;
        }
        if (record != EFFECT_RECORD_EFFECT ||
            !feed_redis_encode_effect(encode, &encode->decoder.effect)) {
            return false;
        }
    }
    if (encode->commands.size > GATHERED_MAX) {
        feed_redis_encode_put_multi(encode);
        feed_redis_encode_put_commands(encode);
    }
    return true;
}

bool feed_redis_encode_add(struct redis_encode *encode, const char *at, size_t size) {
    CHECK(feed_redis_encode_is_idle(encode));
    if (encode->input.capacity > INPUT_KEPT_MAX) {
        buffer_deinit(&encode->input);
    }
    buffer_clear(&encode->input);
    encode->input_at = 0;
    buffer_append(&encode->input, at, size);
    return !encode->input.is_broken;
}

bool feed_redis_encode_step(struct redis_encode *encode, struct buffer *out, size_t size_max,
                            uint64_t budget_ns) {
    uint64_t begin = clock_ticks();
    size_t size_end = out->size + size_max;
    encode->out = out;
    while (!feed_redis_encode_is_idle(encode) && out->size < size_end) {
        if (!feed_redis_encode_some(encode) || encode->commands.is_broken ||
            encode->blob.is_broken) {
            return false;
        }
        if (feed_redis_encode_is_between(encode) ||
            clock_ticks_to_ns(clock_ticks() - begin) >= budget_ns) {
            break;
        }
    }
    return !out->is_broken;
}

enum { SECOND_MS = 1000 };

/* ---- coming and going ---- */

/* Can it go on from the first byte that it wants? */
static bool feed_redis_resume(const struct feed *feed, struct feed_redis *redis, uint64_t offset) {
    const struct feed_redis_mark *found = NULL; /* the place of a stream of one byte less */
    if (offset > 0 && redis->acked.offset == offset - 1) {
        found = &redis->acked;
    }
    for (uint32_t i = 0; i < redis->mark_count && offset > 0 && found == NULL; i++) {
        const struct feed_redis_mark *mark =
            &redis->marks[(redis->mark_first + i) % FEED_REDIS_MARKS_MAX];
        found = mark->offset == offset - 1 ? mark : NULL;
    }
    if (found == NULL || !feed_is_at_hand(feed, found->group + 1)) {
        return false;
    }
    redis->acked = *found;
    redis->mark_first = 0;
    redis->mark_count = 0;
    redis->encode.offset = redis->acked.offset;
    redis->encode.group = redis->acked.group;
    redis->encode.database = redis->acked.database;
    return true;
}

bool feed_redis_join(struct feed *feed, struct replica *replica,
                     const struct replication_wish *wish, uint64_t *group) {
    struct feed_redis *redis = NULL; /* the stream with this id that somebody has left */
    *group = 0;
    for (struct feed_redis **at = &feed->left; *at != NULL && !wish->is_old;
         at = &(*at)->next_left) {
        if (bytes_equal(bytes_from_text((*at)->id), wish->id)) {
            redis = *at;
            *at = redis->next_left;
            break;
        }
    }
    if (redis != NULL && feed_redis_resume(feed, redis, wish->group)) {
        *group = redis->acked.group + 1;
    } else {
        memory_free(redis);
        redis = memory_allocate_zeroed(sizeof *redis);
        if (redis == NULL) {
            return false;
        }
        feed_redis_encode_init(&redis->encode);
        replication_make_id(feed->server, redis->id);
    }
    redis->is_copy_enough = replica->is_copy_enough;
    redis->input_bytes = replica->session->input_bytes;
    redis->ping_at_ms = feed->server->clock.monotonic_ms;
    feed_place_of(replica)->redis = redis;
    replica->is_redis = true;
    return true;
}

static void feed_redis_free_left(struct feed_redis **at) {
    struct feed_redis *redis = *at;
    *at = redis->next_left;
    memory_free(redis);
}

void feed_redis_leave(struct feed *feed, struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    struct feed_redis *redis = place->redis;
    uint32_t count = 0;
    if (redis == NULL) {
        return;
    }
    place->redis = NULL;
    feed_redis_encode_deinit(&redis->encode);
    if (replica->state != REPLICA_ONLINE || replica->is_failed || !feed->is_open) {
        memory_free(redis);
        return;
    }
    feed_redis_encode_init(&redis->encode);
    redis->left_at_ms = feed->server->clock.monotonic_ms;
    redis->next_left = feed->left;
    feed->left = redis;
    for (struct feed_redis **at = &feed->left; *at != NULL;) {
        if (++count > FEED_REDIS_LEFT_MAX) {
            feed_redis_free_left(at);
        } else {
            at = &(*at)->next_left;
        }
    }
}

void feed_redis_forget(struct feed *feed) {
    while (feed->left != NULL) {
        feed_redis_free_left(&feed->left);
    }
}

void feed_redis_forget_old(struct feed *feed) {
    int64_t ttl_ms = feed->server->settings.repl_backlog_ttl_s * SECOND_MS;
    for (struct feed_redis **at = &feed->left; *at != NULL;) {
        if (ttl_ms > 0 && feed->server->clock.monotonic_ms - (*at)->left_at_ms > ttl_ms) {
            feed_redis_free_left(at);
        } else {
            at = &(*at)->next_left;
        }
    }
}

void feed_redis_answer(const struct replica *replica, bool is_old, bool is_continued,
                       struct reply *reply) {
    char text[sizeof "FULLRESYNC  0" + REPLICATION_ID_SIZE];
    const struct session *session = replica->session;
    const struct feed_redis *redis = feed_place_of(replica)->redis;
    if (is_continued) {
        snprintf(text, sizeof text, "CONTINUE %s", redis->id);
    } else {
        snprintf(text, sizeof text, "FULLRESYNC %s 0", redis->id);
    }
    if (!is_old) {
        reply_simple(reply, text);
    }
    log_write(LOG_NOTICE, "a Redis %s id=%llu addr=%s port=%u",
              is_continued ? "goes on where it was"
                           : "wants a full copy: it needs the module, or it will refuse it; "
                             "settings and users stay here",
              (unsigned long long)session->id, session->address, replica->port);
}

bool feed_redis_is_idle(const struct feed_place *place) {
    return place->redis == NULL || feed_redis_encode_is_idle(&place->redis->encode);
}

/* ---- the stream ---- */

/* If there are too many to be kept, the last one is replaced: who stops between them needs a copy. */
static void feed_redis_mark_position(struct feed_redis *redis) {
    const struct redis_encode *encode = &redis->encode;
    if (redis->mark_count < FEED_REDIS_MARKS_MAX) {
        redis->mark_count++;
    }
    redis->marks[(redis->mark_first + redis->mark_count - 1) % FEED_REDIS_MARKS_MAX] =
        (struct feed_redis_mark){
            .offset = encode->offset, .group = encode->group, .database = encode->database};
}

bool feed_redis_encode(struct feed *feed, struct replica *replica, uint64_t budget_ns) {
    struct feed_redis *redis = feed_place_of(replica)->redis;
    size_t unsent = feed_unsent(replica);
    size_t size_max = unsent < FEED_UNSENT_MAX ? FEED_UNSENT_MAX - unsent : 0;
    if (!feed_redis_encode_step(&redis->encode, feed_output(replica), size_max, budget_ns)) {
        feed_give_up(feed, replica, "what it is sent has no memory, or takes another full copy");
        return false;
    }
    if (feed_redis_encode_is_between(&redis->encode)) {
        feed_redis_mark_position(redis);
    }
    return true;
}

void feed_take_bytes_ack(struct feed *feed, struct replica *replica, uint64_t offset) {
    struct feed_place *place = feed_place_of(replica);
    struct feed_redis *redis = place->redis;
    uint64_t group = 0;
    if (redis->awaits_ack) {
        redis->awaits_ack = false;
        redis->acked =
            (struct feed_redis_mark){.group = place->online_from, .database = UINT32_MAX};
        place->is_streaming = true;
        group = place->online_from;
        replicator_wake(feed->server->replication.replicator);
    }
    while (redis->mark_count > 0 && redis->marks[redis->mark_first].offset <= offset) {
        redis->acked = redis->marks[redis->mark_first];
        group = redis->acked.group;
        redis->mark_first = (redis->mark_first + 1) % FEED_REDIS_MARKS_MAX;
        redis->mark_count--;
    }
    replication_take_ack(feed->server, replica, group);
}

/* ---- keeping the connection ---- */

/* Put a command of these words, if that may stand here, between two transactions. */
static void feed_redis_put(struct replica *replica, const char *const *words, uint32_t count) {
    const struct feed_place *place = feed_place_of(replica);
    struct redis_encode *encode = &place->redis->encode;
    struct buffer *out = feed_output(replica);
    size_t size = out->size;
    struct bytes texts[WORDS_MAX];
    if (!place->is_streaming || !feed_redis_encode_is_between(encode) ||
        feed_unsent(replica) >= FEED_UNSENT_MAX) {
        return;
    }
    CHECK(count <= WORDS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        texts[i] = bytes_from_text(words[i]);
    }
    feed_redis_encode_put_words(out, texts, count);
    encode->offset += out->size - size;
    feed_redis_mark_position(place->redis);
}

void feed_redis_ask(struct replica *replica) {
    feed_redis_put(replica, (const char *const[]){"REPLCONF", "GETACK", "*"}, 3);
}

void feed_redis_second(struct feed *feed, struct replica *replica) {
    struct feed_redis *redis = feed_place_of(replica)->redis;
    int64_t now_ms = feed->server->clock.monotonic_ms;
    bool is_copying = replica->state != REPLICA_ONLINE;
    /* While it waits for its copy it says nothing, and while it loads it, empty lines. */
    if (is_copying && (!redis->awaits_ack || redis->input_bytes != replica->session->input_bytes)) {
        replica->ack_at_ms = now_ms;
    }
    redis->input_bytes = replica->session->input_bytes;
    if (is_copying && !redis->has_head) {
        buffer_append(feed_output(replica), "\n", 1);
    }
    if (now_ms - redis->ping_at_ms >=
        feed->server->settings.repl_ping_replica_period_s * SECOND_MS) {
        redis->ping_at_ms = now_ms;
        feed_redis_put(replica, (const char *const[]){"PING"}, 1);
    }
}

/* ---- copies: RDB files, made by a child process ---- */

void feed_redis_copy_end(struct feed_redis_copy *copy) {
    process_kill_child(&copy->child);
    persistence_stream_close_pipe(&copy->out);
}

/* When the snapshot is closed before all of it is in the child's pipe. */
static void feed_redis_copy_end_child(void *context) {
    struct feed_redis_copy *copy = context;
    process_kill_child(&copy->child);
}

bool feed_redis_copy_may_begin(const struct feed_redis_copy *copy) {
    return copy->out.state == STREAM_UNUSED && copy->child.state == CHILD_NONE;
}

bool feed_redis_copy_begin(struct feed *feed, struct feed_redis_copy *copy, char *error) {
    static const char *const arguments[] = {"leaderboard-server", "--export", "-", "-",
                                            "--format",           "rdb",      NULL};
    copy->is_read = false;
    copy->size = 0;
    copy->begin_ms = feed->server->clock.monotonic_ms;
    copy->moved_at_ms = copy->begin_ms;
    copy->child_time_ns = 0;
    replication_make_id(feed->server, copy->mark);
    if (persistence_stream_open_pipe(&copy->out, feed->loop)) {
        int input =
            persistence_stream_share(feed->server->persistence, feed_redis_copy_end_child, copy);
        bool is_started =
            input >= 0 && process_start_child(&copy->child, arguments, feed->server->settings.dir,
                                              input, copy->out.writer);
        int why = errno;
        disk_close(input);
        disk_close(copy->out.writer); /* the child has it */
        copy->out.writer = -1;
        errno = why;
        if (is_started) {
            return true;
        }
    }
    snprintf(error, PERSISTENCE_ERROR_MAX, "cannot start a process that makes it: %s",
             strerror(errno));
    return false;
}

void feed_redis_copy_put_piece(const struct feed_redis_copy *copy, struct replica *replica,
                               const char *at, size_t size) {
    struct feed_redis *redis = feed_place_of(replica)->redis;
    struct buffer *out = feed_output(replica);
    if (!redis->has_head) {
        buffer_append(out, "$EOF:", 5);
        buffer_append(out, copy->mark, FEED_REDIS_MARK_SIZE);
        buffer_append(out, "\r\n", 2);
        redis->has_head = true;
    }
    buffer_append(out, at, size);
}

bool feed_redis_copy_put_end(struct feed *feed, const struct feed_copy *copy,
                             struct replica *replica) {
    struct feed_redis *redis = feed_place_of(replica)->redis;
    buffer_append(feed_output(replica), copy->redis.mark, FEED_REDIS_MARK_SIZE);
    if (redis->is_copy_enough) {
        replica->session->is_close_after_reply = true;
        replica->is_failed = true; /* it gets nothing more */
        return false;
    }
    redis->awaits_ack = true;
    redis->encode.group = copy->group;
    replica->ack_at_ms = feed->server->clock.monotonic_ms;
    return true;
}

enum stream_status feed_redis_copy_read(struct feed *feed, struct feed_copy *copy, size_t *size,
                                        char *error) {
    struct feed_redis_copy *redis = &copy->redis;
    enum stream_status status =
        redis->is_read
            ? STREAM_END
            : persistence_stream_read_pipe(&redis->out, feed->piece, sizeof feed->piece, size);
    if (status == STREAM_PIECE || status == STREAM_WAITS) {
        redis->size += *size;
        return status;
    }
    redis->is_read = true;
    enum child_end end = process_look_at_child(&redis->child);
    if (end == CHILD_GOES_ON) {
        return STREAM_WAITS;
    }
    if (end == CHILD_IS_DONE && copy->state == FEED_COPY_SENDS) {
        log_write(LOG_NOTICE,
                  "copy for Redis sent bytes=%" PRIu64 " group=%" PRIu64 " seconds=%.2f",
                  redis->size, copy->group,
                  (double)(feed->server->clock.monotonic_ms - redis->begin_ms) / 1000);
        return STREAM_END;
    }
    snprintf(error, PERSISTENCE_ERROR_MAX,
             "the process that makes it has failed: its standard error says why");
    return STREAM_FAILED;
}

void feed_redis_copy_reap(struct feed_redis_copy *copy) {
    if (copy->child.state == CHILD_KILLED) {
        (void)process_look_at_child(&copy->child);
    }
}

bool feed_redis_copy_is_stuck(const struct feed *feed, struct feed_copy *copy) {
    struct feed_redis_copy *redis = &copy->redis;
    int64_t now_ms = feed->server->clock.monotonic_ms;
    uint64_t time_ns = process_child_time_ns(&redis->child);
    if (time_ns != redis->child_time_ns || feed_is_copy_slow(feed, true)) {
        redis->child_time_ns = time_ns;
        redis->moved_at_ms = now_ms;
    }
    return now_ms - redis->moved_at_ms > feed->server->settings.repl_timeout_s * SECOND_MS;
}
