/* A tool's connection to a server: TCP, a unix socket, or TLS.
 *
 * hiredis connects and reads replies: it is what Redis's own tools use, is in every distribution, and
 * takes what a server may send in any pieces. TLS is put between it and the socket here, because its
 * own TLS is not in every version that distributions have.
 *
 * Not with server/network/tls.h: that serves sockets that never block, on a loop, and its contexts know the server's
 * settings. A tool waits in each call, has one connection, and trusts the system's authorities. */
#ifndef SERVER_TOOLS_LINK_H
#define SERVER_TOOLS_LINK_H

#include <hiredis/hiredis.h>
#include <openssl/ssl.h>
#include <stdbool.h>

#include "codec/check.h"

struct link_options {
    bool has_tls;
    const char *ca_file;           /* NULL: the system's authorities */
    const char *certificate, *key; /* the client's own; NULL: none */
    const char *user;              /* NULL: default */
    const char *password;          /* NULL: nobody logs in */
};

/* Zero-initialised: not connected. */
struct tools_link {
    redisContext *context;
    SSL_CTX *tls_context;
    SSL *tls;        /* NULL: none */
    char error[256]; /* "": none */
};

/* address: PORT, of this machine; HOST:PORT, [IPv6]:PORT, or the path of a unix socket, with a '/'. With TLS the
 * server's certificate must be of a trusted authority, and for that host; for any host if there is only a PORT.
 * limit_s: for connecting. false: link->error says why. */
MUST_CHECK bool link_open(struct tools_link *link, const char *address,
                          const struct link_options *options, int limit_s);
void link_close(struct tools_link *link);
/* How long a reply may take. */
void link_set_limit(struct tools_link *link, int limit_s);

/* Send a command, in redisCommand's form. false: link->error says why. */
MUST_CHECK bool link_send(struct tools_link *link, const char *format, ...);
/* Log in, if the options have a password. NULL: it is let in, or link->error says why there was no answer; else the
 * refusal, to be freed with freeReplyObject. */
MUST_CHECK redisReply *link_log_in(struct tools_link *link, const struct link_options *options);
/* The next reply, to be freed with freeReplyObject. NULL: link->error says why there is none. */
MUST_CHECK redisReply *link_reply(struct tools_link *link);

#endif
