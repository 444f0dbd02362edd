/* Certificates for a test, and the client's end of a connection with TLS, whose bytes the test moves
 * as it likes: in pieces of any size, or changed on their way. To be included behind cmocka.h. */
#ifndef TESTS_SUPPORT_TLS_PEER_H
#define TESTS_SUPPORT_TLS_PEER_H

#include <openssl/ssl.h>

#include "tests/support/directory.h"
#include "tests/support/random.h"

/* A directory with an authority, "ca.crt", and what it has signed: "NAME.crt" and "NAME.key". */
struct tls_files {
    char path[DIRECTORY_PATH_MAX];
    EVP_PKEY *key; /* the authority's */
    X509 *certificate;
};

/* With an authority and the certificate "server", of localhost and 127.0.0.1. */
void tls_files_make(struct tls_files *files);
void tls_files_remove(struct tls_files *files);
/* NAME.crt and NAME.key, of somebody whose common name has these bytes, and of no host. */
void tls_files_sign(const struct tls_files *files, const char *name, const char *common_name,
                    int size);

struct tls_peer {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in, *out; /* memory */
    int fd;        /* non-blocking; the caller's to close */
    bool is_over;  /* fd has reached its end */
};

/* certificate: NAME of files; NULL: shows none. version: the highest, TLS1_2_VERSION ...; 0: any. */
void tls_peer_begin(struct tls_peer *peer, const struct tls_files *files, const char *certificate,
                    int version, int fd);
void tls_peer_end(struct tls_peer *peer);
/* Move what there is, in both directions, to the server in pieces of up to piece_max bytes (0: all
 * that is there). Returns the bytes moved. */
size_t tls_peer_move(struct tls_peer *peer, size_t piece_max, struct random *random);

#endif
