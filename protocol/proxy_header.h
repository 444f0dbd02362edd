/* The PROXY protocol (haproxy.org, proxy-protocol.txt): what a balancer sends before a client's first
 * byte, so that the server sees the client's address instead of the balancer's.
 *
 *     version 1   PROXY TCP4 198.51.100.7 10.0.0.5 50412 6379\r\n      107 bytes at most
 *     version 2   \r\n\r\n\0\r\nQUIT\n  command  family  size  addresses  TLVs
 *
 * TLVs are skipped. A balancer's own connection, such as a check (LOCAL), and a client of which it knows
 * no address (UNKNOWN, UNSPEC) have none. Only streams: datagrams cannot be here. */
#ifndef PROTOCOL_PROXY_HEADER_H
#define PROTOCOL_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/bytes.h"

enum {
    PROXY_HEADER_V1_MAX = 107,
    PROXY_HEADER_MAX = 1024, /* bytes; a longer one is bad */
    PROXY_HEADER_PATH_MAX = 108,
};

enum proxy_header_family {
    PROXY_HEADER_NONE, /* the connection's own addresses count */
    PROXY_HEADER_IPV4,
    PROXY_HEADER_IPV6,
    PROXY_HEADER_UNIX,
};

struct proxy_header {
    enum proxy_header_family family;
    /* Network order; of IPv4 the first four bytes count. */
    uint8_t source[16], destination[16];
    uint16_t source_port, destination_port; /* host order */
    /* UNIX: the balancer's socket; "": unknown; terminated. */
    char path[PROXY_HEADER_PATH_MAX + 1];
};

enum proxy_header_status {
    PROXY_HEADER_MORE, /* all of the input belongs to a header that is not complete */
    PROXY_HEADER_OK,   /* used: how many bytes it has; what follows is the client's */
    PROXY_HEADER_BAD,
};

/* Parse the beginning of a connection, at[0 .. size-1]. Each cut before a header's end gives MORE. */
MUST_CHECK enum proxy_header_status proxy_header_parse(const char *at, size_t size,
                                                       struct proxy_header *header, size_t *used);

#endif
