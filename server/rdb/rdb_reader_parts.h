/* Shared by the files of the reader alone: rdb_reader.c (keys and values), rdb_reader_pass.c (what is passed over),
 * rdb_reader_text.c (lengths and strings). Each calls only those behind it.
 *
 * A step reads `ahead` of what is consumed. If all of its bytes are there, they are consumed at its end; else nothing
 * has changed, and it is done again with more. Once bytes are missing or wrong, what is read is 0, NULL or empty. */
#ifndef SERVER_RDB_READER_PARTS_H
#define SERVER_RDB_READER_PARTS_H

#include "server/rdb/rdb_reader.h"

static inline size_t rdb_reader_available(const struct rdb_reader *reader) {
    return reader->input.size - reader->at;
}
static inline bool rdb_reader_is_fine(const struct rdb_reader *reader) {
    return reader->found == RDB_FOUND;
}

/* error: format, and where. Not where bytes are missing: they may be another reason, or none. */
__attribute__((format(printf, 2, 3))) void rdb_reader_refuse(struct rdb_reader *reader,
                                                             const char *format, ...);
void rdb_reader_lack_memory(struct rdb_reader *reader);

/* A string: where its bytes are, and what they become. */
struct text {
    const unsigned char *at;
    uint64_t stored; /* bytes */
    uint64_t size;   /* of the string */
    unsigned integer_size;
    bool is_compressed;
};

/* So many bytes. */
const unsigned char *rdb_reader_get(struct rdb_reader *reader, uint64_t size);
uint64_t rdb_reader_get_length(struct rdb_reader *reader);
/* A string's head: all but `at`. */
struct text rdb_reader_get_head(struct rdb_reader *reader);
/* With its bytes, at most RDB_TEXT_MAX. */
struct text rdb_reader_get_text(struct rdb_reader *reader);
/* Its bytes, from the input, or expanded in room, or a number in number. */
struct bytes rdb_reader_take_text(struct rdb_reader *reader, const struct text *text,
                                  struct buffer *room, char *number);
/* Head and bytes, in text_room. */
struct bytes rdb_reader_take_string(struct rdb_reader *reader);

/* form: see rdb_reader_pass.c. */
void rdb_reader_begin_passing(struct rdb_reader *reader, const char *form, bool is_key);
/* Pass over a part. Fine, and depth is 0: that was all. */
void rdb_reader_pass(struct rdb_reader *reader);

#endif
