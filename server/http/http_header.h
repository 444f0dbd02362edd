/* What headers of a request mean. */
#ifndef SERVER_HTTP_HEADER_H
#define SERVER_HTTP_HEADER_H

#include <stdbool.h>

/* Does the Host header name this server? An address does, "localhost", any other name without a dot
 * (such names are nobody's to register), and a name that is listed. names: words separated by blanks; "*" allows
 * all. Without a header (NULL) the request comes from no browser, and is fine.
 *
 * A page that a browser has loaded from evil.example may give that name this server's address, and then
 * read from it (DNS rebinding). Its requests name evil.example. */
bool http_header_allows_host(const char *host, const char *names);

/* How welcome a media type, "text/plain", is by an Accept header: 0 (not at all) .. 1000. Parameters
 * beside q are ignored. NULL: everything is welcome. */
unsigned http_header_quality(const char *accept, const char *type);

#endif
