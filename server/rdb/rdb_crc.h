/* The checksum of RDB files and of DUMP payloads: CRC-64 with the polynomial ad93d23594c935a9,
 * reflected, beginning with 0. */
#ifndef SERVER_RDB_CRC_H
#define SERVER_RDB_CRC_H

#include "codec/bytes.h"

/* Continue crc (0 at first) with these bytes. Any thread. */
uint64_t rdb_crc(uint64_t crc, const char *at, size_t size);

/* A DUMP payload taken apart. */
enum { RDB_FOOTER_SIZE = 10 };
struct rdb_payload {
    struct bytes value; /* borrowed */
    unsigned version;
    bool is_checked; /* it has the right checksum */
    bool is_open;    /* it has none, which is 0 */
};
/* false: it is too short. */
MUST_CHECK bool rdb_payload_open(struct bytes bytes, struct rdb_payload *payload);

#endif
