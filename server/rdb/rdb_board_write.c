/* See rdb_board_write.h. */
#include "server/rdb/rdb_board_write.h"

#include "server/durability/effect_bytes.h"
#include "server/durability/file_format.h"

enum { CHUNK_SIZE = 64 * 1024 };

struct writing {
    const struct rdb_board_sink *sink;
    struct effect_encoder encoder;
    struct buffer chunk;
};

static void rdb_board_write_end_chunk(struct writing *writing, size_t size_min) {
    struct buffer *chunk = &writing->chunk;
    if (chunk->size > size_min) {
        writing->sink->put_text(writing->sink->context,
                                (struct bytes){.at = chunk->at, .size = chunk->size});
        buffer_clear(chunk);
        effect_encode_begin(&writing->encoder, chunk);
    }
}

static void rdb_board_write_entries(struct writing *writing, const struct board *board) {
    struct board_cursor cursor;
    board_seek(board, 0, &cursor);
    while (effect_encode_next_piece(&writing->encoder, &cursor)) {
        rdb_board_write_end_chunk(writing, CHUNK_SIZE);
    }
    rdb_board_write_end_chunk(writing, 0);
}

bool rdb_board_write(const struct registry_key *key, int64_t time_us,
                     const struct rdb_board_sink *sink) {
    static struct writing writing; /* the encoder is large */
    writing.sink = sink;
    buffer_init(&writing.chunk, 0);
    effect_encode_begin(&writing.encoder, &writing.chunk);
    effect_encode_open(&writing.encoder, key, REGISTRY_NO_EXPIRY);
    sink->put_number(sink->context, FILE_FORMAT);
    sink->put_number(sink->context, (uint64_t)time_us);
    sink->put_number(sink->context, board_count(&key->board));
    rdb_board_write_end_chunk(&writing, 0);
    rdb_board_write_entries(&writing, &key->board);
    bool is_written = !writing.chunk.is_broken;
    buffer_deinit(&writing.chunk);
    return is_written;
}
