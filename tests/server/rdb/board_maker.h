/* A board as the module writes it into a dump file (server/rdb/rdb_board.h), part by part. */
#ifndef TESTS_SERVER_RDB_BOARD_MAKER_H
#define TESTS_SERVER_RDB_BOARD_MAKER_H

#include "tests/server/rdb/rdb_maker.h"

#include "server/durability/effect_bytes.h"
#include "server/durability/file_format.h"
#include "server/rdb/rdb_board.h"

static inline void make_number(struct buffer *out, uint64_t value) {
    make_length(out, 2);
    make_length(out, value);
}

/* What stands before the chunks. */
static inline void make_value_head(struct buffer *out, uint64_t format, uint64_t time_us,
                                   uint64_t count) {
    make_length(out, rdb_board_type_id());
    make_number(out, format);
    make_number(out, time_us);
    make_number(out, count);
}

/* The same behind the type and the key's name. */
static inline void make_board_head(struct buffer *out, const char *name, uint64_t format,
                                   uint64_t time_us, uint64_t count) {
    make_key(out, 7, name);
    make_value_head(out, format, time_us, count);
}

static inline void make_chunk(struct buffer *out, const struct buffer *chunk) {
    make_length(out, 5);
    make_bytes(out, chunk->at, chunk->size);
}

static inline void make_open(struct buffer *out, const struct registry_key *key) {
    ENDED_BY(buffer_deinit) struct buffer chunk;
    struct effect_encoder encoder;
    buffer_init(&chunk, 0);
    effect_bytes_encode_begin(&encoder, &chunk);
    effect_bytes_encode_open(&encoder, key, REGISTRY_NO_EXPIRY);
    make_chunk(out, &chunk);
}

static inline void make_piece(struct buffer *out, const struct board_stored *entries,
                              uint32_t count) {
    ENDED_BY(buffer_deinit) struct buffer chunk;
    struct effect_encoder encoder;
    buffer_init(&chunk, 0);
    effect_bytes_encode_begin(&encoder, &chunk);
    effect_bytes_encode_piece(&encoder, NULL, 0, entries, count);
    make_chunk(out, &chunk);
}

/* The same with the values of their tags: the entries of a board from this rank on. */
static inline void make_piece_of(struct buffer *out, const struct board *board, uint32_t rank,
                                 const struct board_stored *entries, uint32_t count) {
    ENDED_BY(buffer_deinit) struct buffer chunk;
    struct effect_encoder encoder;
    buffer_init(&chunk, 0);
    effect_bytes_encode_begin(&encoder, &chunk);
    effect_bytes_encode_piece(&encoder, board, rank, entries, count);
    make_chunk(out, &chunk);
}

/* All of a board's value, with so many members in each chunk (at most 512). */
static inline void make_value(struct buffer *out, const struct registry_key *key, uint64_t time_us,
                              uint32_t members_per_chunk) {
    enum { ENTRIES_MAX = 512 };
    struct board_stored entries[ENTRIES_MAX];
    struct board_cursor cursor;
    uint32_t count = 0;
    uint32_t rank = 0;
    make_value_head(out, FILE_FORMAT, time_us, board_count(&key->board));
    make_open(out, key);
    for (board_cursor_seek(&key->board, 0, &cursor); board_cursor_read(&cursor, &entries[count]);
         board_cursor_next(&cursor)) {
        if (++count == members_per_chunk) {
            make_piece_of(out, &key->board, rank, entries, count);
            rank += count;
            count = 0;
        }
    }
    if (count > 0) {
        make_piece_of(out, &key->board, rank, entries, count);
    }
    make_byte(out, 0);
}

static inline void make_board(struct buffer *out, const char *name, const struct registry_key *key,
                              uint64_t time_us, uint32_t members_per_chunk) {
    make_key(out, 7, name);
    make_value(out, key, time_us, members_per_chunk);
}

#endif
