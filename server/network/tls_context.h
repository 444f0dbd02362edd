/* What TLS connections share: certificate, key, trusted authorities, protocols and session tickets,
 * in a context of OpenSSL's. A context is never changed: new files make a new one, and connections
 * keep the one that they began with. Any thread may give its share back. */
#ifndef SERVER_TLS_CONTEXT_H
#define SERVER_TLS_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/check.h"

enum { TLS_CONTEXT_ERROR_MAX = 256 };

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

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
