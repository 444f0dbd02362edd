/* See rdb_board.h. */
#include "server/rdb/rdb_board.h"

#include "server/durability/file_format.h"

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
