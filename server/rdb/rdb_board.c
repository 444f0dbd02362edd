/* See rdb_board.h. */
#include "server/rdb/rdb_board.h"

#include <stdio.h>

#include "codec/glob.h"
#include "server/durability/file_format.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_embedded.h"

uint64_t rdb_board_type_id(void) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t id = 0;
    for (const char *at = RDB_BOARD_TYPE_NAME; *at != '\0'; at++) {
        id = id << 6 | (uint64_t)(strchr(letters, *at) - letters);
    }
    return id << 10 | RDB_BOARD_TYPE_VERSION;
}

static enum rdb_board_event rdb_board_refuse(struct rdb_board *board, const char *why) {
    board->error = why;
    return RDB_BOARD_BAD;
}

bool rdb_board_begin(struct rdb_board *board, uint64_t version, uint64_t format, uint64_t time_us,
                     uint64_t member_count) {
    board->error = NULL;
    board->has_options = false;
    board->has_ids = (format & RDB_BOARD_HAS_IDS) != 0;
    board->is_ids = (format & RDB_BOARD_IS_IDS) != 0;
    format &= ~(uint64_t)(board->has_ids ? RDB_BOARD_HAS_IDS : RDB_BOARD_IS_IDS);
    board->last_key = UINT64_MAX;
    board->read_count = 0;
    board->member_count = member_count;
    board->time_us = 0;
    if (version != RDB_BOARD_TYPE_VERSION || !file_format_is_read(format)) {
        board->error = "a board of another format: a later version wrote it, or one before 1.0";
    } else if (member_count > 2 * (uint64_t)BOARD_MEMBERS_MAX || time_us > INT64_MAX) {
        board->error = "damaged board";
    } else {
        board->time_us = (int64_t)time_us;
    }
    return board->error == NULL;
}

void rdb_board_take(struct rdb_board *board, struct bytes chunk) {
    board->is_chunk_used = false;
    effect_bytes_decode_begin(&board->decoder, chunk);
}

static bool rdb_board_are_fit(struct rdb_board *board) {
    struct tag_values values;
    for (uint32_t i = 0; i < board->decoder.entry_count; i++) {
        const struct board_entry *entry = &board->decoder.entries[i];
        bool are_values_fit = !board->decoder.has_values ||
                              tag_values_unpack(board->decoder.entry_values[i],
                                                board->options.layout.tags.count, &values);
        if (entry->member.size == 0 || entry->member.size > BOARD_MEMBER_MAX ||
            !layout_has_room(&board->options.layout, entry->key) || !are_values_fit ||
            entry->key > board->last_key) {
            return false;
        }
        board->last_key = entry->key;
    }
    return true;
}

enum rdb_board_event rdb_board_next(struct rdb_board *board) {
    if (board->error != NULL) {
        return RDB_BOARD_BAD;
    }
    enum effect_record record = effect_bytes_decode(&board->decoder);
    if (board->decoder.missing_zone != NULL) {
        return rdb_board_refuse(board,
                                "its PERIOD is in a time zone that this machine does not know");
    }
    if (record == EFFECT_RECORD_END && board->is_chunk_used) {
        return RDB_BOARD_CHUNK_END;
    }
    board->is_chunk_used = true;
    switch (record) {
    case EFFECT_RECORD_OPEN:
        if (board->has_options) {
            break;
        }
        board_options_copy(board->decoder.effect.options, &board->options);
        board->state = board_options_have_state(&board->options)
                           ? board->decoder.state
                           : (struct board_state){.from_ms = 0};
        board->has_options = true;
        return RDB_BOARD_OPENED;
    case EFFECT_RECORD_ENTRIES:
        if (!board->has_options ||
            board->decoder.entry_count > board->member_count - board->read_count ||
            !rdb_board_are_fit(board)) {
            break;
        }
        board->read_count += board->decoder.entry_count;
        return RDB_BOARD_ENTRIES;
    case EFFECT_RECORD_EFFECT:
        if (!board->has_options || !board_options_have_notes(&board->options) ||
            board->decoder.effect.kind != EFFECT_NOTE || board->decoder.effect.value.size == 0 ||
            board->read_count == board->member_count) {
            break;
        }
        board->read_count++;
        return RDB_BOARD_NOTE;
    case EFFECT_RECORD_END:
    case EFFECT_RECORD_BAD:
    case EFFECT_RECORD_CLOSE:
        break;
    }
    return rdb_board_refuse(board, "damaged board");
}

/* ---- writing ---- */

enum { CHUNK_SIZE = 64 * 1024 };

struct writing {
    const struct rdb_board_sink *sink;
    struct effect_encoder encoder;
    struct buffer chunk;
};

static void rdb_board_end_chunk(struct writing *writing, size_t size_min) {
    struct buffer *chunk = &writing->chunk;
    if (chunk->size > size_min) {
        writing->sink->put_text(writing->sink->context, buffer_bytes(chunk));
        buffer_clear(chunk);
        effect_bytes_encode_begin(&writing->encoder, chunk);
    }
}

bool rdb_board_write(const struct registry_key *key, unsigned flags, int64_t time_us,
                     const struct rdb_board_sink *sink) {
    static struct writing writing; /* the encoder is large */
    writing.sink = sink;
    buffer_init(&writing.chunk, 0);
    effect_bytes_encode_begin(&writing.encoder, &writing.chunk);
    effect_bytes_encode_open(&writing.encoder, key, REGISTRY_NO_EXPIRY);
    sink->put_number(sink->context, FILE_FORMAT | flags);
    sink->put_number(sink->context, (uint64_t)time_us);
    sink->put_number(sink->context, (uint64_t)board_count(&key->board) + registry_note_count(key));
    rdb_board_end_chunk(&writing, 0);
    for (uint32_t rank = 0; effect_bytes_encode_next_piece(&writing.encoder, &key->board, &rank);) {
        rdb_board_end_chunk(&writing, CHUNK_SIZE);
    }
    for (uint32_t i = 0; effect_bytes_encode_next_note(&writing.encoder, key, &i);) {
        rdb_board_end_chunk(&writing, CHUNK_SIZE);
    }
    rdb_board_end_chunk(&writing, 0);
    bool is_written = !writing.chunk.is_broken;
    buffer_deinit(&writing.chunk);
    return is_written;
}

/* ---- what is kept beside the keys ---- */

/* About; a ban with all its patterns may be longer. One is applied in one go, which takes less than half a millisecond. */
enum { BLOB_SIZE = 8 * 1024 };

struct state_writing {
    const struct registry *registry;
    int64_t time_us;
    struct effect_encoder encoder;
    struct buffer blob;
    void (*take)(void *context, struct bytes blob);
    void *context;
    bool is_failed;
};

static void rdb_board_state_begin_blob(struct state_writing *writing) {
    effect_bytes_begin_blob(&writing->encoder, &writing->blob, writing->time_us);
}

static void rdb_board_state_end_blob(struct state_writing *writing) {
    writing->is_failed |= writing->blob.is_broken;
    if (!writing->is_failed) {
        writing->take(writing->context, buffer_bytes(&writing->blob));
    }
}

/* As it replaces what is there. */
static void rdb_board_state_write_key(void *context, const struct registry_key *key) {
    struct state_writing *writing = context;
    struct effect effect = {.kind = EFFECT_REMOVE,
                            .key_kind = &key_kind_hash,
                            .database = key->database,
                            .name = registry_name(key),
                            .expire_at_ms = registry_expiry(writing->registry, key),
                            .key = key};
    effect_bytes_encode(&writing->encoder, &effect);
    effect.kind = EFFECT_FILL;
    struct effect_fill fill = {.whole = effect};
    struct effect each;
    while (effect_fill_next(&fill, &each)) {
        effect_bytes_encode(&writing->encoder, &each);
    }
    if (writing->blob.size > BLOB_SIZE) {
        rdb_board_state_end_blob(writing);
        rdb_board_state_begin_blob(writing);
    }
}

bool rdb_board_state_is_empty(const struct registry *registry) {
    uint32_t count = 0;
    for (uint32_t database = REGISTRY_SYSTEM; registry_is_of_hosts(database); database++) {
        count += registry_count(registry, database);
    }
    return count == 0;
}

bool rdb_board_state_write(struct registry *registry, int64_t time_us,
                           void (*take)(void *context, struct bytes blob), void *context) {
    static struct state_writing writing; /* the encoder is large */
    writing.registry = registry;
    writing.time_us = time_us;
    writing.take = take;
    writing.context = context;
    writing.is_failed = false;
    buffer_init(&writing.blob, 0);
    rdb_board_state_begin_blob(&writing);
    size_t empty_size = writing.blob.size;
    for (uint32_t database = REGISTRY_SYSTEM; registry_is_of_hosts(database); database++) {
        registry_walk_each(registry, database, INT64_MIN, rdb_board_state_write_key, &writing);
    }
    if (writing.blob.size > empty_size || writing.blob.is_broken) {
        rdb_board_state_end_blob(&writing);
    }
    buffer_deinit(&writing.blob);
    return !writing.is_failed;
}

/* ---- checking what is kept beside the keys ---- */

/* Where a blob of whole keys is: REMOVE, CREATE, EXPIRE or none, PUT ..., and the next key. */
enum place { BETWEEN, REMOVED, CREATED, FILLED };

struct checking {
    enum rdb_state_form form;
    uint32_t database_end;
    enum place place;
    struct bytes name; /* of the key, unless BETWEEN */
    uint32_t database;
    char *why;
};

static bool rdb_board_state_follows(struct checking *checking, const struct effect *effect) {
    enum place place = checking->place;
    bool is_same = place != BETWEEN && effect->database == checking->database &&
                   bytes_equal(effect->name, checking->name);
    switch (effect->kind) {
    case EFFECT_REMOVE:
        checking->place = REMOVED;
        checking->database = effect->database;
        checking->name = effect->name;
        return place == BETWEEN || place == FILLED;
    case EFFECT_CREATE:
        checking->place = CREATED;
        return is_same && place == REMOVED;
    case EFFECT_EXPIRE:
        return is_same && place == CREATED;
    case EFFECT_PUT:
        checking->place = FILLED;
        return is_same && (place == CREATED || place == FILLED);
    case EFFECT_TAKE:
    case EFFECT_CUT:
    case EFFECT_FLUSH:
    case EFFECT_RENAME:
    case EFFECT_COPY:
    case EFFECT_OPTIONS:
    case EFFECT_FILL:
    case EFFECT_TAGS:
    case EFFECT_STATE:
    case EFFECT_NOTE:
        break;
    }
    return false;
}

/* As server/commands/ban.h has them. */
static bool rdb_board_state_is_ban(const struct checking *checking, const struct effect *effect) {
    bool has_field = effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE;
    if (effect->name.size < 2 || effect->name.size > 1 + BOARD_MEMBER_MAX ||
        (has_field && effect->member.size > GLOB_PATTERN_MAX) ||
        (effect->kind == EFFECT_PUT && effect->value.size != sizeof(int64_t))) {
        return false;
    }
    unsigned database = (uint8_t)effect->name.at[0];
    if (database >= checking->database_end) {
        snprintf(checking->why, RDB_STATE_ERROR_MAX,
                 "they are of database %u: there are %u databases here, from 0 on", database,
                 (unsigned)checking->database_end);
        return false;
    }
    return true;
}

static bool rdb_board_state_is_allowed(void *context, const struct effect *effect) {
    struct checking *checking = context;
    bool has_kind =
        effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE || effect->kind == EFFECT_CREATE;
    bool is_known = has_kind || effect->kind == EFFECT_REMOVE || effect->kind == EFFECT_EXPIRE;
    return is_known && registry_is_of_hosts(effect->database) &&
           (!has_kind || effect->key_kind == &key_kind_hash) &&
           (effect->database != REGISTRY_BANS || rdb_board_state_is_ban(checking, effect)) &&
           (checking->form != RDB_STATE_WHOLE || rdb_board_state_follows(checking, effect));
}

bool rdb_board_state_check(struct effect_decoder *decoder, struct bytes blob,
                           enum rdb_state_form form, uint32_t database_end, int64_t *time_us,
                           struct bytes *chunk, char why[static RDB_STATE_ERROR_MAX]) {
    struct checking checking = {.form = form, .database_end = database_end, .why = why};
    if (!effect_bytes_open_blob(blob, time_us, chunk)) {
        snprintf(
            why, RDB_STATE_ERROR_MAX,
            "they are damaged, or another version of the module wrote them, in another format");
        return false;
    }
    snprintf(why, RDB_STATE_ERROR_MAX, "they are damaged");
    return effect_bytes_check_blob(decoder, *chunk, rdb_board_state_is_allowed, &checking) &&
           (checking.place == BETWEEN || checking.place == FILLED);
}

/* ---- applying it ---- */

/* What is to be removed may be gone already: its time was over here, too, or it was never there. */
static bool rdb_board_state_visit(void *context, struct effect *effect) {
    const struct registry *registry = context;
    return effect->kind != EFFECT_REMOVE ||
           registry_peek(registry, effect->database, effect->name, INT64_MIN) != NULL;
}

enum effect_status rdb_board_state_apply(struct registry *registry, struct effect_decoder *decoder,
                                         struct bytes chunk) {
    return effect_bytes_apply_blob(registry, decoder, chunk, rdb_board_state_visit, registry);
}

bool rdb_board_state_clear(struct registry *registry, uint32_t keys_max) {
    uint32_t database = REGISTRY_SYSTEM;
    while (registry_is_of_hosts(database) && keys_max > 0) {
        struct registry_key *key = registry_embedded_first_of(registry, database);
        if (key == NULL) {
            database++;
        } else {
            registry_remove(registry, key);
            keys_max--;
        }
    }
    return rdb_board_state_is_empty(registry);
}
