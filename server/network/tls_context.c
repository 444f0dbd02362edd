/* Contexts made of files. See tls_context.h. */
#include "server/network/tls_context.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* A chain of certificates that a client sends may take so much. */
enum { CLIENT_CHAIN_MAX = 32 * 1024 };

static const struct {
    const char *name;
    uint64_t without; /* switches it off */
} protocols[] = {
    {"TLSv1", SSL_OP_NO_TLSv1},
    {"TLSv1.1", SSL_OP_NO_TLSv1_1},
    {"TLSv1.2", SSL_OP_NO_TLSv1_2},
    {"TLSv1.3", SSL_OP_NO_TLSv1_3},
};
enum { PROTOCOL_COUNT = sizeof protocols / sizeof protocols[0] };

/* One context that is being made, and what is wrong with it. */
struct making {
    const struct tls_context_options *options;
    SSL_CTX *context;
    const char **setting;
    char *error;
};

static bool tls_context_fail(const struct making *making, const char *setting, const char *error) {
    *making->setting = setting;
    snprintf(making->error, TLS_CONTEXT_ERROR_MAX, "%s", error);
    return false;
}

/* With OpenSSL's words, or those of the system: the first error is the cause of the others. */
static bool tls_context_fail_with(const struct making *making, const char *setting,
                                  const char *file) {
    unsigned long code = ERR_peek_error();
    const char *reason =
        ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
    *making->setting = setting;
    snprintf(making->error, TLS_CONTEXT_ERROR_MAX, "%.150s: %s", file,
             reason != NULL ? reason : "it cannot be used");
    return false;
}

/* OpenSSL would ask at the terminal. */
static int tls_context_tell_password(char *at, int room, int is_writing, void *password) {
    (void)is_writing;
    int size = password != NULL ? (int)strlen(password) : 0;
    if (size > room) {
        return 0;
    }
    memcpy(at, password != NULL ? password : "", (size_t)size);
    return size;
}

static bool tls_context_load_certificate(const struct making *making) {
    const struct tls_context_options *options = making->options;
    if (options->certificate_file == NULL) {
        return tls_context_fail(making, "tls-cert-file",
                                "it is not set, and tls-port needs a certificate");
    }
    if (options->key_file == NULL) {
        return tls_context_fail(making, "tls-key-file", "it is not set, and tls-port needs a key");
    }
    SSL_CTX_set_default_passwd_cb(making->context, tls_context_tell_password);
    SSL_CTX_set_default_passwd_cb_userdata(making->context, options->key_password);
    bool is_certificate_fine =
        SSL_CTX_use_certificate_chain_file(making->context, options->certificate_file) == 1;
    bool is_fine =
        is_certificate_fine &&
        SSL_CTX_use_PrivateKey_file(making->context, options->key_file, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(making->context, NULL);
    if (!is_fine) {
        return is_certificate_fine
                   ? tls_context_fail_with(making, "tls-key-file", options->key_file)
                   : tls_context_fail_with(making, "tls-cert-file", options->certificate_file);
    }
    return SSL_CTX_check_private_key(making->context) == 1 ||
           tls_context_fail_with(making, "tls-key-file", options->key_file);
}

static bool tls_context_load_authorities(const struct making *making) {
    const struct tls_context_options *options = making->options;
    static const int modes[] = {
        [TLS_CLIENTS_UNKNOWN] = SSL_VERIFY_NONE,
        [TLS_CLIENTS_KNOWN] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
        [TLS_CLIENTS_OPTIONAL] = SSL_VERIFY_PEER,
    };
    SSL_CTX_set_verify(making->context, modes[options->clients], NULL);
    SSL_CTX_set_max_cert_list(making->context, CLIENT_CHAIN_MAX);
    if (options->ca_file == NULL && options->ca_directory == NULL) {
        return options->clients == TLS_CLIENTS_UNKNOWN ||
               tls_context_fail(
                   making, "tls-ca-cert-file",
                   "tls-ca-cert-file or tls-ca-cert-dir must be set: certificates are asked for "
                   "(of clients: tls-auth-clients no asks for none)");
    }
    if (options->ca_file != NULL &&
        SSL_CTX_load_verify_file(making->context, options->ca_file) != 1) {
        return tls_context_fail_with(making, "tls-ca-cert-file", options->ca_file);
    }
    if (options->ca_directory != NULL &&
        (access(options->ca_directory, R_OK | X_OK) != 0 ||
         SSL_CTX_load_verify_dir(making->context, options->ca_directory) != 1)) {
        return tls_context_fail(making, "tls-ca-cert-dir", "the directory cannot be read");
    }
    return true;
}

static bool tls_context_set_protocols(const struct making *making) {
    const char *at =
        making->options->protocols != NULL ? making->options->protocols : "TLSv1.2 TLSv1.3";
    uint64_t without = 0;
    for (size_t i = 0; i < PROTOCOL_COUNT; i++) {
        without |= protocols[i].without;
    }
    for (at += strspn(at, " "); *at != '\0'; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        size_t i = 0;
        while (i < PROTOCOL_COUNT && (strlen(protocols[i].name) != size ||
                                      strncasecmp(protocols[i].name, at, size) != 0)) {
            i++;
        }
        if (i == PROTOCOL_COUNT) {
            return tls_context_fail(
                making, "tls-protocols",
                "Invalid tls-protocols specified. Use a combination of 'TLSv1', "
                "'TLSv1.1', 'TLSv1.2' and 'TLSv1.3'.");
        }
        without &= ~protocols[i].without;
        at += size;
    }
    SSL_CTX_set_options(making->context, without);
    return true;
}

static bool tls_context_set_ciphers(const struct making *making) {
    const struct tls_context_options *options = making->options;
    if (options->ciphers != NULL &&
        SSL_CTX_set_cipher_list(making->context, options->ciphers) != 1) {
        return tls_context_fail_with(making, "tls-ciphers", options->ciphers);
    }
    if (options->ciphersuites != NULL &&
        SSL_CTX_set_ciphersuites(making->context, options->ciphersuites) != 1) {
        return tls_context_fail_with(making, "tls-ciphersuites", options->ciphersuites);
    }
    if (options->prefers_own_ciphers) {
        SSL_CTX_set_options(making->context, SSL_OP_CIPHER_SERVER_PREFERENCE);
    }
    return true;
}

/* One ticket is enough: a client that comes back gets the next. */
static void tls_context_set_sessions(const struct making *making) {
    static const unsigned char name[] = "leaderboard";
    const struct tls_context_options *options = making->options;
    SSL_CTX *context = making->context;
    if (!options->has_session_caching) {
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(context, 0);
        return;
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(context, (long)options->session_cache_size);
    SSL_CTX_set_timeout(context, (long)options->session_cache_timeout_s);
    SSL_CTX_set_session_id_context(context, name, sizeof name - 1);
    SSL_CTX_set_num_tickets(context, 1);
}

/* A client that leaves without a word has left: what it asked for ends where RESP says. Without
 * AUTO_RETRY a read returns where nothing is left but records that hold no data. */
static void tls_context_set_modes(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_dh_auto(context, 1);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_read_ahead(context, 1);
}

/* As an address where it is one. Common names are of users (tls-auth-clients-user), and of
 * no host. */
static bool tls_context_expect_host(const struct making *making) {
    const char *host = making->options->host;
    X509_VERIFY_PARAM *wanted = SSL_CTX_get0_param(making->context);
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                                X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return host == NULL || X509_VERIFY_PARAM_set1_ip_asc(wanted, host) == 1 ||
           X509_VERIFY_PARAM_set1_host(wanted, host, 0) == 1 ||
           tls_context_fail(making, "tls-replication", "out of memory");
}

static bool tls_context_fill(const struct making *making, bool is_client) {
    bool has_certificate = making->options->certificate_file != NULL;
    tls_context_set_modes(making->context);
    if (!is_client) {
        tls_context_set_sessions(making);
    }
    return ((is_client && !has_certificate) || tls_context_load_certificate(making)) &&
           tls_context_load_authorities(making) &&
           (!is_client || tls_context_expect_host(making)) && tls_context_set_protocols(making) &&
           tls_context_set_ciphers(making);
}

static struct ssl_ctx_st *tls_context_make(struct making *making, bool is_client) {
    ERR_clear_error();
    making->context = SSL_CTX_new(is_client ? TLS_client_method() : TLS_server_method());
    if (making->context == NULL) {
        (void)tls_context_fail(making, is_client ? "tls-replication" : "tls-port", "out of memory");
        return NULL;
    }
    if (!tls_context_fill(making, is_client)) {
        SSL_CTX_free(making->context);
        making->context = NULL;
    }
    ERR_clear_error();
    return making->context;
}

struct ssl_ctx_st *tls_context_create(const struct tls_context_options *options,
                                      const char **setting, char *error) {
    struct making making = {.options = options, .setting = setting, .error = error};
    return tls_context_make(&making, false);
}

struct ssl_ctx_st *tls_context_create_client(const struct tls_context_options *options,
                                             const char **setting, char *error) {
    struct tls_context_options wanted = *options;
    wanted.clients = TLS_CLIENTS_KNOWN; /* so is the other end's certificate, too */
    struct making making = {.options = &wanted, .setting = setting, .error = error};
    return tls_context_make(&making, true);
}

struct ssl_ctx_st *tls_context_share(struct ssl_ctx_st *context) {
    if (context != NULL) {
        SSL_CTX_up_ref(context);
    }
    return context;
}

void tls_context_release(struct ssl_ctx_st *context) {
    SSL_CTX_free(context);
}
