/* TLS on one client's socket, with OpenSSL; for transport.c, on the network's thread.
 *
 *     shaking --shaken--> open --the client's end--> half --error, tls_end--> ended
 *
 * Nothing here blocks: what cannot be done now is tried again when the socket is ready. Reading and
 * writing are as read() and write() are, but that input may be waiting here, of which poll knows
 * nothing: tls_has_input. What is not written must be written again, perhaps with more behind it.
 *
 * What an unauthenticated client can cost: a handshake has its limits in OpenSSL and in its context, and the
 * engine ends one that takes too long (loop/connection.c). Renegotiation is off. Of records that
 * hold no data (key updates, warnings) only a few may follow each other. */
#ifndef SERVER_TLS_H
#define SERVER_TLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "codec/memory.h"

/* What OpenSSL holds for a client that is connected and idle, measured: its own allocations, with
 * buffers released. */
enum { TLS_MEMORY_SIZE = 14 * 1024 };

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct tls;

enum tls_progress { TLS_IS_WAITING, TLS_IS_OPEN, TLS_HAS_FAILED };

/* Take the socket, which stays the caller's to close; the handshake has yet to begin. NULL: no
 * memory. */
MUST_CHECK struct tls *tls_create(struct ssl_ctx_st *context, int fd);
/* The same for the end that connects (a replica, to its master): the context is a client's. */
MUST_CHECK struct tls *tls_create_client(struct ssl_ctx_st *context, int fd);
/* Say good-bye, if that can be done at once: nothing can be read or written any more. */
void tls_end(struct tls *tls);
/* The same, and free it. */
void tls_destroy(struct tls *tls);

/* Go on with the handshake, as far as the socket lets it. */
enum tls_progress tls_handshake(struct tls *tls);
/* As read() and write() on a socket that does not block: 0: the client sends no more; -1 with errno
 * EAGAIN: not now; with another errno: broken. */
ssize_t tls_read(struct tls *tls, char *at, size_t room);
ssize_t tls_write(struct tls *tls, const char *at, size_t size);
/* Would tls_read have something to say, whatever poll reports? */
bool tls_has_input(const struct tls *tls);
/* Can the handshake, or reading, only go on once the socket can be written to? */
bool tls_wants_write(const struct tls *tls);
/* Why it is broken. Static text; NULL: it is not, or only the connection is lost. */
const char *tls_error(const struct tls *tls);
/* The common name in the certificate that the client has shown, terminated; NULL: none. Set by the
 * end of the handshake, and never changed. */
const char *tls_peer_name(const struct tls *tls);

/* ---- contexts ----
 *
 * What TLS connections share: certificate, key, trusted authorities, protocols and session tickets,
 * in a context of OpenSSL's. A context is never changed: new files make a new one, and connections
 * keep the one that they began with. Any thread may give its share back. */

enum { TLS_CONTEXT_ERROR_MAX = 256 };

enum tls_clients { /* must clients show a certificate? Numbered as the setting tls-auth-clients */
                   TLS_CLIENTS_UNKNOWN,
                   TLS_CLIENTS_KNOWN,
                   TLS_CLIENTS_OPTIONAL, /* one that is shown must be right */
};

/* Texts: NULL: not set. All is borrowed for the call. */
struct tls_context_options {
    const char *certificate_file; /* PEM, with the chain behind it */
    const char *key_file;
    char *key_password;
    const char *ca_file, *ca_directory;
    const char *protocols, *ciphers, *ciphersuites;
    const char *host; /* of tls_context_create_client: a name or an address */
    enum tls_clients clients;
    bool prefers_own_ciphers;
    bool has_session_caching;
    int64_t session_cache_size, session_cache_timeout_s;
};

/* Made of these files. NULL: *setting is the name of the setting that is wrong, and error
 * (TLS_CONTEXT_ERROR_MAX) says why. */
MUST_CHECK struct ssl_ctx_st *tls_context_create(const struct tls_context_options *options,
                                                 const char **setting, char *error);
/* For connections to another server, whose certificate must be of a trusted authority, and name
 * options->host; NULL: whatever it names. The own certificate is shown if one is set. */
MUST_CHECK struct ssl_ctx_st *tls_context_create_client(const struct tls_context_options *options,
                                                        const char **setting, char *error);
/* One more share of it. NULL is nobody's. */
struct ssl_ctx_st *tls_context_share(struct ssl_ctx_st *context);
void tls_context_release(struct ssl_ctx_st *context);

#endif
