/* What headers of a request mean. */
#ifndef SERVER_HTTP_HEADER_H
#define SERVER_HTTP_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/bytes.h"
#include "codec/subnet.h"

#define HTTP_FORWARDED_FOR "X-Forwarded-For"

/* Does the Host header name this server? An address does, "localhost", any other name without a dot
 * (such names are nobody's to register), and a name that is listed. names: words separated by blanks; "*" allows
 * all. Without a header (NULL) the request comes from no browser, and is fine.
 *
 * A page that a browser has loaded from evil.example may give that name this server's address, and then
 * read from it (DNS rebinding). Its requests name evil.example. */
bool http_header_allows_host(const char *host, const char *names);

/* How welcome a media type, "text/plain", is by an Accept header, or "gzip" by Accept-Encoding: 0 (not at all) .. 1000. Parameters
 * beside q are ignored. NULL: everything is welcome. */
unsigned http_header_quality(const char *accept, const char *type);

/* Take the last of the addresses, which commas separate, from the first *size bytes of an X-Forwarded-For
 * header, and shorten *size to what is before it. A port behind it is no part of it. false: there is none, or it
 * is no address. header may be NULL if *size is 0. */
MUST_CHECK bool http_header_take_forwarded(const char *header, size_t *size,
                                           uint8_t address[SUBNET_ADDRESS_SIZE]);

/* Is it an Authorization header with a token, "Bearer lbt_8f3e" (RFC 6750)? token: empty, if what follows is none;
 * else of the characters that it may have. */
MUST_CHECK bool http_header_bearer(const char *header, struct bytes *token);

/* The value of a cookie in the Cookie header; at NULL: there is none. header may be NULL. */
struct bytes http_header_find_cookie(const char *header, const char *name);

#endif
