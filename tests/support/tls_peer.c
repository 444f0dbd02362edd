/* See tls_peer.h. */
#include "tests/support/tls_peer.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/test.h"

/* ---- certificates ---- */

static void write_files(const struct tls_files *files, const char *name, X509 *certificate,
                        EVP_PKEY *key) {
    char file_name[64];
    snprintf(file_name, sizeof file_name, "%s.crt", name);
    FILE *file = fopen(directory_join(files->path, file_name), "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    snprintf(file_name, sizeof file_name, "%s.key", name);
    file = fopen(directory_join(files->path, file_name), "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

static void extend(X509 *certificate, int kind, const char *value) {
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* Of somebody with this name and a new key, and of these hosts (NULL: none); signed by the
 * authority, or (NULL) by itself. */
static X509 *make(const struct tls_files *authority, const char *common_name, int size,
                  const char *hosts, EVP_PKEY **key) {
    static long serial = 0;
    X509 *certificate = X509_new();
    assert_non_null(certificate);
    *key = EVP_EC_gen("P-256");
    assert_non_null(*key);
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName, MBSTRING_UTF8,
                               (const unsigned char *)common_name, size, -1, 0);
    X509_set_issuer_name(certificate, authority != NULL
                                          ? X509_get_subject_name(authority->certificate)
                                          : X509_get_subject_name(certificate));
    X509_set_pubkey(certificate, *key);
    if (authority == NULL) {
        extend(certificate, NID_basic_constraints, "critical,CA:TRUE");
    }
    if (hosts != NULL) {
        extend(certificate, NID_subject_alt_name, hosts);
    }
    assert_true(X509_sign(certificate, authority != NULL ? authority->key : *key, EVP_sha256()) >
                0);
    return certificate;
}

static void sign(const struct tls_files *files, const char *name, const char *common_name, int size,
                 const char *hosts) {
    EVP_PKEY *key;
    X509 *certificate = make(files, common_name, size, hosts, &key);
    write_files(files, name, certificate, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

void tls_files_sign(const struct tls_files *files, const char *name, const char *common_name,
                    int size) {
    sign(files, name, common_name, size, NULL);
}

void tls_files_make(struct tls_files *files) {
    directory_make(files->path);
    files->certificate = make(NULL, "authority", -1, NULL, &files->key);
    write_files(files, "ca", files->certificate, files->key);
    sign(files, "server", "server", -1, "DNS:localhost,IP:127.0.0.1");
}

void tls_files_remove(struct tls_files *files) {
    X509_free(files->certificate);
    EVP_PKEY_free(files->key);
    directory_remove(files->path);
}

/* ---- the client's end ---- */

void tls_peer_begin(struct tls_peer *peer, const struct tls_files *files, const char *certificate,
                    int version, int fd) {
    char name[64];
    *peer = (struct tls_peer){.context = SSL_CTX_new(TLS_client_method()), .fd = fd};
    assert_non_null(peer->context);
    assert_int_equal(SSL_CTX_load_verify_file(peer->context, directory_join(files->path, "ca.crt")),
                     1);
    SSL_CTX_set_verify(peer->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_max_proto_version(peer->context, version);
    if (certificate != NULL) {
        snprintf(name, sizeof name, "%s.crt", certificate);
        assert_int_equal(
            SSL_CTX_use_certificate_chain_file(peer->context, directory_join(files->path, name)),
            1);
        snprintf(name, sizeof name, "%s.key", certificate);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(
                             peer->context, directory_join(files->path, name), SSL_FILETYPE_PEM),
                         1);
    }
    peer->ssl = SSL_new(peer->context);
    peer->in = BIO_new(BIO_s_mem());
    peer->out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(peer->in, -1);
    SSL_set_bio(peer->ssl, peer->in, peer->out);
    SSL_set_connect_state(peer->ssl);
}

void tls_peer_end(struct tls_peer *peer) {
    SSL_free(peer->ssl);
    SSL_CTX_free(peer->context);
    ERR_clear_error();
}

static size_t move_out(struct tls_peer *peer, size_t piece_max, struct random *random) {
    char *at;
    long size = BIO_get_mem_data(peer->out, &at);
    char piece[16384];
    if (size <= 0) {
        return 0;
    }
    size_t wanted = (size_t)size < sizeof piece ? (size_t)size : sizeof piece;
    if (piece_max > 0 && wanted > piece_max) {
        wanted = piece_max;
    }
    if (random != NULL) {
        wanted = 1 + random_below(random, wanted);
    }
    ssize_t sent = send(peer->fd, at, wanted, MSG_NOSIGNAL);
    if (sent <= 0) {
        return 0;
    }
    assert_int_equal(BIO_read(peer->out, piece, (int)sent), (int)sent);
    return (size_t)sent;
}

static size_t move_in(struct tls_peer *peer) {
    char piece[16384];
    ssize_t size = read(peer->fd, piece, sizeof piece);
    peer->is_over |= size == 0 || (size < 0 && errno == ECONNRESET);
    if (size <= 0) {
        return 0;
    }
    assert_int_equal(BIO_write(peer->in, piece, (int)size), (int)size);
    return (size_t)size;
}

size_t tls_peer_move(struct tls_peer *peer, size_t piece_max, struct random *random) {
    return move_out(peer, piece_max, random) + move_in(peer);
}
