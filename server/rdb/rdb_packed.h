/* Small values of Redis, packed into one string: a listpack (since 7.0), a ziplist (before), a zipmap
 * (hashes, before 2.6).
 *
 *     zset   member score member score ...     hash   field value field value ...
 *
 * The bytes may be damaged in any way: nothing is read out of bounds, and each step goes forward. */
#ifndef SERVER_RDB_PACKED_H
#define SERVER_RDB_PACKED_H

#include "codec/bytes.h"

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
MUST_CHECK bool rdb_packed_begin(struct rdb_packed *packed, enum rdb_packed_form form,
                                 struct bytes bytes);
/* The next element, borrowed from the bytes or, a number, from room (BYTES_INTEGER_TEXT_MAX). */
MUST_CHECK enum rdb_packed_status rdb_packed_next(struct rdb_packed *packed, char *room,
                                                  struct bytes *value);

#endif
