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

struct settings;
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

/* As the settings describe it, for connections to another server, whose certificate must be of a trusted authority, and name
 * this host (a name or an address); NULL: whatever it names. The own certificate is shown if one is set. NULL: *setting is the
 * name of the one that is wrong, and error (TLS_CONTEXT_ERROR_MAX) says why. */
MUST_CHECK struct ssl_ctx_st *tls_context_create_client(const struct settings *settings,
                                                        const char *host, const char **setting,
                                                        char *error);
/* One more share of it. NULL is nobody's. */
struct ssl_ctx_st *tls_context_share(struct ssl_ctx_st *context);
void tls_context_release(struct ssl_ctx_st *context);

/* The context of clients: made at start, and by CONFIG SET of a tls- setting, also of one that names the same file again,
 * which may have new contents. Clients that are connected keep the context that they began with. Zero-initialised: no TLS. */
struct tls_settings {
    struct ssl_ctx_st *context;  /* NULL: tls-port is 0 */
    struct ssl_ctx_st *prepared; /* by tls_settings_prepare */
};

/* Before clients come. false: error (SETTING_ERROR_MAX) names the setting. */
MUST_CHECK bool tls_settings_open(struct tls_settings *tls, const struct settings *settings,
                                  char *error);
void tls_settings_close(struct tls_settings *tls);
/* As settings_check: make the context of what is wanted. tls is a struct tls_settings. */
const char *tls_settings_prepare(void *tls, const struct settings *wanted, char *reason);
/* It becomes the context of new clients, or is dropped. */
void tls_settings_end(void *tls, bool is_set);

#endif
