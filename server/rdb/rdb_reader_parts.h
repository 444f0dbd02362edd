/* Shared by the files of the reader alone: rdb_reader.c (keys and values), rdb_reader_pass.c (what is passed over),
 * rdb_reader_text.c (lengths and strings). Each calls only those behind it. */
#ifndef SERVER_RDB_READER_PARTS_H
#define SERVER_RDB_READER_PARTS_H

#include "server/rdb/rdb_reader.h"

/* Of a step: done; more bytes are needed, and nothing has changed; or the reader is at its end. */
enum found { FOUND, FOUND_TOO_FEW, FOUND_BAD };

/* ---- bytes ---- */

static inline size_t rdb_reader_available(const struct rdb_reader *reader) {
    return reader->input.size - reader->at;
}

static inline const unsigned char *rdb_reader_here(const struct rdb_reader *reader) {
    return (const unsigned char *)reader->input.at + reader->at;
}

static inline void rdb_reader_consume(struct rdb_reader *reader, size_t size) {
    reader->at += size;
    reader->offset += size;
}

/* error: format, and where. */
__attribute__((format(printf, 2, 3))) enum found rdb_reader_refuse(struct rdb_reader *reader,
                                                                   const char *format, ...);
enum found rdb_reader_lack_memory(struct rdb_reader *reader);

/* ---- lengths and strings, `from` bytes ahead ---- */

/* A string: where its bytes are, and what they become. */
struct text {
    size_t head;     /* bytes */
    uint64_t stored; /* bytes behind the head */
    uint64_t size;   /* of the string */
    unsigned integer_size;
    bool is_compressed;
};

/* *size: bytes that the length takes. */
enum found rdb_reader_find_plain_length(struct rdb_reader *reader, size_t from, uint64_t *length,
                                        size_t *size);
/* A string's head. */
enum found rdb_reader_find_text(struct rdb_reader *reader, size_t from, struct text *text);
/* The same for a string that is kept, of which all bytes must be there. */
enum found rdb_reader_find_whole_text(struct rdb_reader *reader, size_t from, struct text *text);
/* Its bytes, from the input, or expanded in room, or a number in number. */
enum found rdb_reader_take_text(struct rdb_reader *reader, size_t from, const struct text *text,
                                struct buffer *room, char *number, struct bytes *bytes);
/* Head and bytes, in text_room; *end: bytes ahead of what is behind it. */
enum found rdb_reader_take_string(struct rdb_reader *reader, size_t from, struct bytes *bytes,
                                  size_t *end);

/* ---- what is passed over ---- */

/* form: see rdb_reader_pass.c. */
void rdb_reader_begin_passing(struct rdb_reader *reader, const char *form, bool is_key);
/* FOUND with depth 0: everything is passed. */
enum found rdb_reader_pass(struct rdb_reader *reader);

#endif
