/* What can fail of HTTP while the operator still sees the terminal: the listening socket, certificates. */
#ifndef SERVER_HTTP_LISTEN_H
#define SERVER_HTTP_LISTEN_H

#include <stdint.h>

#include "codec/check.h"

enum { HTTP_ERROR_MAX = 512, HTTP_PEM_SIZE_MAX = 64 * 1024 };

/* Listen: "127.0.0.1", "::1", "*" (every IPv4 address), "::*" (every IPv6 address). -1: error
 * (HTTP_ERROR_MAX) says why. family: of settings, "metrics" of metrics-port and metrics-bind. */
int http_listen(const char *family, const char *address, int64_t port, char *error);
/* The text of a PEM file, to be freed with memory_free. NULL: error (HTTP_ERROR_MAX) says why. */
MUST_CHECK char *http_read_pem(const char *path, char *error);

#endif
