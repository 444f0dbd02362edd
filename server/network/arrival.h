/* Clients that come through a balancer: accepted, and yet to send their PROXY header
 * (protocol/proxy_header.h), which is read before anything else of the connection is.
 *
 *     acceptor --> arrival: header read, byte by byte to its end --> struct accepted --> engine
 *                     \-> no header, a bad one, too late: closed and counted
 *
 * Not a byte behind the header is taken: that is the client's, or its TLS handshake. What arrivals
 * hold is bounded: their number, the bytes of a header, and its time. */
#ifndef SERVER_ARRIVAL_H
#define SERVER_ARRIVAL_H

#include "server/network/acceptor.h"

enum { ARRIVALS_MAX = 64 };

/* Read the header of this client, whose descriptor is taken. May hand it over at once. */
void arrival_begin(struct acceptor *acceptor, const struct accepted *accepted);
/* The network has room for accepted clients: hand over those whose headers are complete. */
void arrival_resume(struct acceptor *acceptor);
/* Close those that have not sent their headers in time. */
void arrival_check_time(struct acceptor *acceptor);
/* Close all. */
void arrival_close_all(struct acceptor *acceptor);

#endif
