/* A copy of Redis before anything is changed: do the boards take each member and each score, and is each key and each
 * member there once? See redis_stream.h. */
#include <stdio.h>

#include "server/migration/redis_apply_parts.h"
#include "server/migration/redis_stream_parts.h"

static bool redis_stream_check_begin(struct redis_stream *stream) {
    char why[LAYOUT_ERROR_MAX];
    struct redis_apply *apply = &stream->apply;
    stream->rules = settings_rules_for(&apply->server->settings, redis_stream_name(stream));
    stream->layout = &stream->rules->layout;
    uint64_t key;
    if (stream->rules->period.unit == PERIOD_NONE &&
        layout_stamp(stream->layout, layout_zero_key(stream->layout), apply->now_us, &key) !=
            LAYOUT_OK) {
        layout_explain_time(stream->layout, apply->now_us, why);
        return redis_stream_stop(stream, why);
    }
    return true;
}

static bool redis_stream_check_member(struct redis_stream *stream) {
    char why[RDB_VALUE_ERROR_MAX];
    const struct rdb_reader *reader = &stream->reader;
    uint64_t ordinal;
    if (reader->text.size == 0 || reader->text.size > BOARD_MEMBER_MAX) {
        snprintf(why, sizeof why, "it is %zu bytes long: 1..%d are allowed", reader->text.size,
                 (int)BOARD_MEMBER_MAX);
    } else if (stream->rules->limit > 0 && stream->key_count >= stream->rules->limit) {
        snprintf(why, sizeof why, "the board is full, it takes at most %u members",
                 (unsigned)stream->rules->limit);
    } else if (rdb_value_find_ordinal(&stream->layout->fields[0], reader->score, &ordinal, why) ==
               RDB_VALUE_OK) {
        return true;
    }
    (void)redis_apply_fail_member(&stream->apply, redis_stream_name(stream), reader->text, why);
    return redis_stream_stop_applied(stream);
}

static bool redis_stream_check_key_once(struct redis_stream *stream) {
    switch (redis_seen_add(&stream->keys, stream->reader.database, redis_stream_name(stream))) {
    case REDIS_NAMES_NEW:
        return true;
    case REDIS_NAMES_THERE:
        (void)redis_apply_fail_key(&stream->apply, redis_stream_name(stream), "it is there twice");
        break;
    case REDIS_NAMES_NO_MEMORY:
        (void)redis_apply_fail_memory(&stream->apply);
        break;
    }
    return redis_stream_stop_applied(stream);
}

static bool redis_stream_check_once(struct redis_stream *stream, struct bytes member) {
    switch (redis_seen_add(&stream->members, 0, member)) {
    case REDIS_NAMES_NEW:
        return true;
    case REDIS_NAMES_THERE:
        (void)redis_apply_fail_member(&stream->apply, redis_stream_name(stream), member,
                                      "it is there twice");
        break;
    case REDIS_NAMES_NO_MEMORY:
        (void)redis_apply_fail_memory(&stream->apply);
        break;
    }
    return redis_stream_stop_applied(stream);
}

static bool redis_stream_check_entries(struct redis_stream *stream) {
    const struct effect_decoder *decoder = &stream->reader.board->decoder;
    for (uint32_t i = 0; i < decoder->entry_count; i++) {
        if (!redis_stream_check_once(stream, decoder->entries[i].member)) {
            return false;
        }
    }
    return true;
}

bool redis_stream_check(struct redis_stream *stream, enum rdb_event event) {
    const struct rdb_reader *reader = &stream->reader;
    switch (event) {
    case RDB_KEY:
        stream->key_count = 0;
        redis_seen_clear(&stream->members);
        stream->apply.database = reader->database;
        if (reader->kind == RDB_OTHER) {
            stream->passed.count[reader->type]++;
            return true;
        }
        return redis_apply_check_key(&stream->apply, redis_stream_name(stream))
                   ? redis_stream_check_key_once(stream) &&
                         (reader->kind != RDB_ZSET || redis_stream_check_begin(stream))
                   : redis_stream_stop_applied(stream);
    case RDB_ENTRY:
        if ((reader->kind == RDB_ZSET && !redis_stream_check_member(stream)) ||
            !redis_stream_check_once(stream, reader->text)) {
            return false;
        }
        stream->key_count++;
        return true;
    case RDB_ENTRIES: /* the reader has checked what they are */
        return redis_stream_check_entries(stream);
    case RDB_STATE:
        return redis_apply_check_state(&stream->apply, reader->text) ||
               redis_stream_stop_applied(stream);
    case RDB_KEY_END:
    case RDB_BAD:
    case RDB_OUT_OF_MEMORY:
    case RDB_MORE:
    case RDB_END:
        break;
    }
    return true;
}
