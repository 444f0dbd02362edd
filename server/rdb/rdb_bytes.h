/* Bytes in RDB files and DUMP payloads: the checksum around them, compressed strings, small values packed into one. */
#ifndef SERVER_RDB_BYTES_H
#define SERVER_RDB_BYTES_H

#include "codec/buffer.h"
#include "codec/bytes.h"

/* CRC-64 with the polynomial ad93d23594c935a9, reflected: continue crc (0 at first) with these bytes. Any thread. */
uint64_t rdb_bytes_crc(uint64_t crc, const char *at, size_t size);

/* A DUMP payload taken apart. */
enum { RDB_FOOTER_SIZE = 10 };
struct rdb_payload {
    struct bytes value; /* borrowed */
    unsigned version;
    bool is_checked; /* it has the right checksum */
    bool is_open;    /* it has none, which is 0 */
};
/* false: it is too short. */
MUST_CHECK bool rdb_bytes_open_payload(struct bytes bytes, struct rdb_payload *payload);

/* A score as Redis writes and reads it: strtod of the whole text, of at most 255 bytes, no blanks in front, not nan. false:
 * it is none. */
MUST_CHECK bool rdb_bytes_parse_score(struct bytes text, double *score);

/* LZF, as Redis compresses long strings.
 *
 *     000lllll           l + 1 bytes follow as they are
 *     lllddddd d         l + 2 bytes from d + 1 bytes before; l = 7: another byte is added to l, and
 *                        stands before the last byte of d
 *
 * Replace the buffer's content with what the bytes expand to, which must be of this size. The buffer
 * grows with what is written, not with what is announced. false: the bytes are damaged, or there is
 * no memory (out->is_broken). */
MUST_CHECK bool rdb_bytes_expand(struct bytes from, size_t size, struct buffer *out);

/* Small values of Redis, packed into one string: a listpack (since 7.0), a ziplist (before), a zipmap
 * (hashes, before 2.6).
 *
 *     zset   member score member score ...     hash   field value field value ...
 *
 * The bytes may be damaged in any way: nothing is read out of bounds, and each step goes forward. */

enum rdb_packed_form { RDB_LISTPACK, RDB_ZIPLIST, RDB_ZIPMAP };

struct rdb_packed {
    enum rdb_packed_form form;
    const unsigned char *at, *end; /* end: of the last element */
    uint32_t count;                /* elements, as the head says */
    uint32_t read_count;
    bool has_count;   /* the head says how many */
    bool is_at_value; /* zipmap: a value is next */
};

enum rdb_packed_status { RDB_PACKED_VALUE, RDB_PACKED_END, RDB_PACKED_BAD };

/* bytes are borrowed. false: this is not of the form. */
MUST_CHECK bool rdb_bytes_begin_packed(struct rdb_packed *packed, enum rdb_packed_form form,
                                       struct bytes bytes);
/* The next element, borrowed from the bytes or, a number, from room (BYTES_INTEGER_TEXT_MAX). */
MUST_CHECK enum rdb_packed_status rdb_bytes_next_packed(struct rdb_packed *packed, char *room,
                                                        struct bytes *value);

#endif
