/* The checksum of RDB files and of DUMP payloads: CRC-64 with the polynomial ad93d23594c935a9,
 * reflected, beginning with 0. */
#ifndef SERVER_RDB_CRC_H
#define SERVER_RDB_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continue crc (0 at first) with these bytes. Any thread. */
uint64_t rdb_crc(uint64_t crc, const char *at, size_t size);

#endif
