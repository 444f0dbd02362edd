/* One client's TLS, and the contexts that connections share. See tls.h.
 *
 * OpenSSL talks to the socket through a BIO of our own: that raises no SIGPIPE, and says whether the
 * socket was empty or OpenSSL only had nothing to give.
 *
 * OpenSSL's queue of errors belongs to the thread: it is cleared before each call, as its functions
 * look into it to say what went wrong. */
#include "server/network/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/settings/settings.h"

enum {
    READS_MAX = 64,   /* records that one call reads; others have their turn as well */
    SILENT_MAX = 100, /* steps of OpenSSL's between two records with data: new keys take three */
    NAME_MAX_SIZE = 255,
};

enum tls_state { TLS_SHAKING, TLS_OPEN, TLS_HALF, TLS_ENDED };

struct tls {
    SSL *ssl;
    int fd;
    enum tls_state state;
    bool is_socket_empty; /* as the last read from it found */
    bool is_socket_over;
    bool wants_write;
    bool is_end_told;      /* that the client sends no more, or that it is broken */
    unsigned silent_count; /* steps for handshakes, new keys and alerts since data came last */
    size_t unwritten;      /* of output that OpenSSL has encrypted and not written */
    const char *error;
    char *peer_name; /* NULL: none */
};

/* ---- the socket ---- */

static int tls_read_socket(BIO *bio, char *at, int room) {
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t size = recv(tls->fd, at, (size_t)room, 0);
    tls->is_socket_over |= size == 0;
    tls->is_socket_empty = size < 0 && (errno == EAGAIN || errno == EINTR);
    if (tls->is_socket_empty) {
        BIO_set_retry_read(bio);
    }
    return (int)size;
}

static int tls_write_socket(BIO *bio, const char *at, int size) {
    const struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (tls->silent_count > SILENT_MAX) {
        return -1; /* not one more answer to a storm: OpenSSL's call ends here */
    }
    ssize_t written = send(tls->fd, at, (size_t)size, MSG_NOSIGNAL);
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) {
        BIO_set_retry_write(bio);
    }
    return (int)written;
}

static long tls_control_socket(BIO *bio, int command, long number, void *pointer) {
    const struct tls *tls = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH || (command == BIO_CTRL_EOF && tls->is_socket_over);
}

static BIO_METHOD *socket_method;
static CRYPTO_ONCE socket_method_once = CRYPTO_ONCE_STATIC_INIT;

static void tls_make_socket_method(void) {
    socket_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "client's socket");
    if (socket_method != NULL) {
        BIO_meth_set_read(socket_method, tls_read_socket);
        BIO_meth_set_write(socket_method, tls_write_socket);
        BIO_meth_set_ctrl(socket_method, tls_control_socket);
    }
}

/* OpenSSL deals by itself with records that hold no data, as many as it has read. */
static void tls_count_silent(const SSL *ssl, int where, int value) {
    struct tls *tls = SSL_get_app_data(ssl);
    (void)value;
    if (tls->state != TLS_SHAKING && (where & (SSL_CB_LOOP | SSL_CB_ALERT)) != 0) {
        tls->silent_count++;
    }
}

/* ---- begin and end ---- */

static struct tls *tls_create_side(struct ssl_ctx_st *context, int fd) {
    struct tls *tls = memory_allocate_zeroed(sizeof *tls);
    if (tls == NULL) {
        return NULL;
    }
    ERR_clear_error();
    tls->fd = fd;
    tls->ssl = SSL_new(context);
    BIO *bio = CRYPTO_THREAD_run_once(&socket_method_once, tls_make_socket_method) == 1 &&
                       socket_method != NULL
                   ? BIO_new(socket_method)
                   : NULL;
    if (tls->ssl == NULL || bio == NULL) {
        SSL_free(tls->ssl);
        BIO_free(bio);
        memory_free(tls);
        return NULL;
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_app_data(tls->ssl, tls);
    SSL_set_info_callback(tls->ssl, tls_count_silent);
    return tls;
}

struct tls *tls_create(struct ssl_ctx_st *context, int fd) {
    struct tls *tls = tls_create_side(context, fd);
    if (tls != NULL) {
        SSL_set_accept_state(tls->ssl);
    }
    return tls;
}

struct tls *tls_create_client(struct ssl_ctx_st *context, int fd) {
    struct tls *tls = tls_create_side(context, fd);
    if (tls != NULL) {
        SSL_set_connect_state(tls->ssl);
    }
    return tls;
}

void tls_end(struct tls *tls) {
    ERR_clear_error();
    if ((tls->state == TLS_OPEN || tls->state == TLS_HALF) && tls->unwritten == 0) {
        (void)SSL_shutdown(tls->ssl);
    }
    tls->state = TLS_ENDED;
    tls->is_end_told = true;
    tls->wants_write = false;
}

void tls_destroy(struct tls *tls) {
    tls_end(tls);
    SSL_free(tls->ssl);
    ERR_clear_error();
    memory_free(tls->peer_name);
    memory_free(tls);
}

/* ---- the client's name ---- */

static void tls_note_peer_name(struct tls *tls) {
    X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
    if (certificate == NULL || SSL_get_verify_result(tls->ssl) != X509_V_OK) {
        return;
    }
    X509_NAME *subject = X509_get_subject_name(certificate);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at >= 0) {
        /* A copy of the name; one that a client could shorten by a zero byte inside counts as none. */
        unsigned char *text = NULL;
        char *copy = NULL;
        int size =
            ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
        if (size > 0 && size <= NAME_MAX_SIZE && memchr(text, '\0', (size_t)size) == NULL) {
            copy = memory_allocate((size_t)size + 1);
        }
        if (copy != NULL) {
            memcpy(copy, text, (size_t)size);
            copy[size] = '\0';
        }
        OPENSSL_free(text);
        tls->peer_name = copy;
    }
}

const char *tls_peer_name(const struct tls *tls) {
    return tls->peer_name;
}

/* ---- handshake ---- */

static const char *tls_explain(const struct tls *tls, unsigned long code) {
    switch (ERR_GET_REASON(code)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
        return "this is not TLS: a client without TLS on the TLS port?";
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        break;
    default:
        return ERR_reason_error_string(code);
    }
    long verdict = SSL_get_verify_result(tls->ssl);
    return verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH
               ? "the certificate does not name the host that is connected to "
                 "(tls-replication-verify-name)"
               : X509_verify_cert_error_string(verdict);
}

static void tls_break_off(struct tls *tls) {
    unsigned long code = ERR_peek_last_error();
    if (tls->error == NULL && code != 0 && !ERR_SYSTEM_ERROR(code)) {
        tls->error = tls_explain(tls, code);
    }
    tls->state = TLS_ENDED;
}

enum tls_progress tls_handshake(struct tls *tls) {
    ERR_clear_error();
    tls->wants_write = false;
    int result = SSL_do_handshake(tls->ssl);
    if (result == 1) {
        tls->state = TLS_OPEN;
        tls_note_peer_name(tls);
        return TLS_IS_OPEN;
    }
    int error = SSL_get_error(tls->ssl, result);
    tls->wants_write = error == SSL_ERROR_WANT_WRITE;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        return TLS_IS_WAITING;
    }
    tls_break_off(tls);
    return TLS_HAS_FAILED;
}

/* ---- reading and writing ---- */

/* The result of an SSL_read that gave nothing. true: read on. */
static bool tls_handle_nothing(struct tls *tls, int result) {
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return !tls->is_socket_empty;
    case SSL_ERROR_WANT_WRITE:
        tls->wants_write = true;
        return false;
    case SSL_ERROR_ZERO_RETURN:
        tls->state = TLS_HALF;
        return false;
    default:
        break;
    }
    tls_break_off(tls);
    return false;
}

ssize_t tls_read(struct tls *tls, char *at, size_t room) {
    size_t size = 0;
    bool goes_on = tls->state == TLS_OPEN;
    tls->wants_write = false;
    for (int i = 0; goes_on && i < READS_MAX && size < room; i++) {
        size_t left = room - size < INT_MAX ? room - size : INT_MAX;
        ERR_clear_error();
        int result = SSL_read(tls->ssl, at + size, (int)left);
        if (tls->silent_count > SILENT_MAX) {
            tls->error = "too many new keys, handshakes or alerts";
            tls_break_off(tls);
            break;
        }
        if (result > 0) {
            size += (size_t)result;
            tls->silent_count = 0;
            goes_on = SSL_has_pending(tls->ssl) == 1;
        } else {
            goes_on = tls_handle_nothing(tls, result);
        }
    }
    if (size > 0) {
        return (ssize_t)size;
    }
    if (tls->state == TLS_OPEN || tls->state == TLS_SHAKING) {
        errno = EAGAIN;
        return -1;
    }
    tls->is_end_told = true;
    errno = EPROTO;
    return tls->state == TLS_HALF ? 0 : -1;
}

ssize_t tls_write(struct tls *tls, const char *at, size_t size) {
    size_t written = 0;
    CHECK(size >= tls->unwritten);
    while (written < size && (tls->state == TLS_OPEN || tls->state == TLS_HALF)) {
        size_t left = size - written < INT_MAX ? size - written : INT_MAX;
        ERR_clear_error();
        int result = SSL_write(tls->ssl, at + written, (int)left);
        if (result > 0) {
            written += (size_t)result;
            tls->unwritten = 0;
            continue;
        }
        int error = SSL_get_error(tls->ssl, result);
        if (error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ) {
            tls->unwritten = left < SSL3_RT_MAX_PLAIN_LENGTH ? left : SSL3_RT_MAX_PLAIN_LENGTH;
            break;
        }
        tls_break_off(tls);
    }
    if (written > 0 || size == 0) {
        return (ssize_t)written;
    }
    errno = tls->state == TLS_ENDED ? EPIPE : EAGAIN;
    return -1;
}

bool tls_has_input(const struct tls *tls) {
    if (tls->state == TLS_HALF || tls->state == TLS_ENDED) {
        return !tls->is_end_told;
    }
    return tls->state == TLS_OPEN && !tls->is_socket_empty && SSL_has_pending(tls->ssl) == 1;
}

bool tls_wants_write(const struct tls *tls) {
    return tls->wants_write;
}

const char *tls_error(const struct tls *tls) {
    return tls->error;
}

/* ---- contexts made of files ---- */

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
    const struct settings *settings;
    const char *host; /* NULL: any */
    bool is_client;
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
    const struct settings *settings = making->settings;
    if (settings->tls_cert_file == NULL) {
        return tls_context_fail(making, "tls-cert-file",
                                "it is not set, and tls-port needs a certificate");
    }
    if (settings->tls_key_file == NULL) {
        return tls_context_fail(making, "tls-key-file", "it is not set, and tls-port needs a key");
    }
    SSL_CTX_set_default_passwd_cb(making->context, tls_context_tell_password);
    SSL_CTX_set_default_passwd_cb_userdata(making->context, settings->tls_key_file_pass);
    bool is_certificate_fine =
        SSL_CTX_use_certificate_chain_file(making->context, settings->tls_cert_file) == 1;
    bool is_fine =
        is_certificate_fine &&
        SSL_CTX_use_PrivateKey_file(making->context, settings->tls_key_file, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(making->context, NULL);
    if (!is_fine) {
        return is_certificate_fine
                   ? tls_context_fail_with(making, "tls-key-file", settings->tls_key_file)
                   : tls_context_fail_with(making, "tls-cert-file", settings->tls_cert_file);
    }
    return SSL_CTX_check_private_key(making->context) == 1 ||
           tls_context_fail_with(making, "tls-key-file", settings->tls_key_file);
}

static bool tls_context_load_authorities(const struct making *making) {
    const struct settings *settings = making->settings;
    static const int modes[] = {
        [SETTING_TLS_CLIENTS_NO] = SSL_VERIFY_NONE,
        [SETTING_TLS_CLIENTS_YES] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
        [SETTING_TLS_CLIENTS_OPTIONAL] = SSL_VERIFY_PEER,
    };
    /* One that connects itself asks for the other end's certificate in any case. */
    int clients = making->is_client ? SETTING_TLS_CLIENTS_YES : settings->tls_auth_clients;
    SSL_CTX_set_verify(making->context, modes[clients], NULL);
    SSL_CTX_set_max_cert_list(making->context, CLIENT_CHAIN_MAX);
    if (settings->tls_ca_cert_file == NULL && settings->tls_ca_cert_dir == NULL) {
        return clients == SETTING_TLS_CLIENTS_NO ||
               tls_context_fail(
                   making, "tls-ca-cert-file",
                   "tls-ca-cert-file or tls-ca-cert-dir must be set: certificates are asked for "
                   "(of clients: tls-auth-clients no asks for none)");
    }
    if (settings->tls_ca_cert_file != NULL &&
        SSL_CTX_load_verify_file(making->context, settings->tls_ca_cert_file) != 1) {
        return tls_context_fail_with(making, "tls-ca-cert-file", settings->tls_ca_cert_file);
    }
    if (settings->tls_ca_cert_dir != NULL &&
        (access(settings->tls_ca_cert_dir, R_OK | X_OK) != 0 ||
         SSL_CTX_load_verify_dir(making->context, settings->tls_ca_cert_dir) != 1)) {
        return tls_context_fail(making, "tls-ca-cert-dir", "the directory cannot be read");
    }
    return true;
}

static bool tls_context_set_protocols(const struct making *making) {
    const char *at = making->settings->tls_protocols != NULL ? making->settings->tls_protocols
                                                             : "TLSv1.2 TLSv1.3";
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
    const struct settings *settings = making->settings;
    if (settings->tls_ciphers != NULL &&
        SSL_CTX_set_cipher_list(making->context, settings->tls_ciphers) != 1) {
        return tls_context_fail_with(making, "tls-ciphers", settings->tls_ciphers);
    }
    if (settings->tls_ciphersuites != NULL &&
        SSL_CTX_set_ciphersuites(making->context, settings->tls_ciphersuites) != 1) {
        return tls_context_fail_with(making, "tls-ciphersuites", settings->tls_ciphersuites);
    }
    if (settings->tls_prefer_server_ciphers) {
        SSL_CTX_set_options(making->context, SSL_OP_CIPHER_SERVER_PREFERENCE);
    }
    return true;
}

/* One ticket is enough: a client that comes back gets the next. */
static void tls_context_set_sessions(const struct making *making) {
    static const unsigned char name[] = "leaderboard";
    const struct settings *settings = making->settings;
    SSL_CTX *context = making->context;
    if (!settings->tls_session_caching) {
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(context, 0);
        return;
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(context, (long)settings->tls_session_cache_size);
    SSL_CTX_set_timeout(context, (long)settings->tls_session_cache_timeout_s);
    SSL_CTX_set_session_id_context(context, name, sizeof name - 1);
    SSL_CTX_set_num_tickets(context, 1);
}

/* As an address where it is one. Common names are of users (tls-auth-clients-user), and of
 * no host. */
static bool tls_context_expect_host(const struct making *making) {
    const char *host = making->host;
    X509_VERIFY_PARAM *wanted = SSL_CTX_get0_param(making->context);
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                                X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return host == NULL || X509_VERIFY_PARAM_set1_ip_asc(wanted, host) == 1 ||
           X509_VERIFY_PARAM_set1_host(wanted, host, 0) == 1 ||
           tls_context_fail(making, "tls-replication", "out of memory");
}

static struct ssl_ctx_st *tls_context_make(struct making *making) {
    bool is_client = making->is_client;
    bool has_certificate = making->settings->tls_cert_file != NULL;
    ERR_clear_error();
    SSL_CTX *context = making->context =
        SSL_CTX_new(is_client ? TLS_client_method() : TLS_server_method());
    if (context == NULL) {
        (void)tls_context_fail(making, is_client ? "tls-replication" : "tls-port", "out of memory");
        return NULL;
    }
    /* A client that leaves without a word has left: what it asked for ends where RESP says. Without AUTO_RETRY a
     * read returns where nothing is left but records that hold no data. */
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_dh_auto(context, 1);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_read_ahead(context, 1);
    if (!is_client) {
        tls_context_set_sessions(making);
    }
    if (!((is_client && !has_certificate) || tls_context_load_certificate(making)) ||
        !tls_context_load_authorities(making) || (is_client && !tls_context_expect_host(making)) ||
        !tls_context_set_protocols(making) || !tls_context_set_ciphers(making)) {
        SSL_CTX_free(context);
        making->context = NULL;
    }
    ERR_clear_error();
    return making->context;
}

struct ssl_ctx_st *tls_context_create_client(const struct settings *settings, const char *host,
                                             const char **setting, char *error) {
    struct making making = {
        .settings = settings, .host = host, .is_client = true, .setting = setting, .error = error};
    return tls_context_make(&making);
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

/* ---- what the settings describe ---- */

/* Make the context, if there is a tls-port, and see whether that of the link to a master (tls-replication), which makes
 * one of its own when it is made, could be. false: one of them cannot. */
static bool tls_settings_create(const struct settings *settings, struct ssl_ctx_st **context,
                                const char **failed, char *reason) {
    if (settings->tls_replication) {
        struct ssl_ctx_st *link = tls_context_create_client(settings, NULL, failed, reason);
        tls_context_release(link);
        if (link == NULL) {
            return false;
        }
    }
    if (settings->tls_port != 0) {
        struct making making = {.settings = settings, .setting = failed, .error = reason};
        *context = tls_context_make(&making);
    }
    return settings->tls_port == 0 || *context != NULL;
}

bool tls_settings_open(struct tls_settings *tls, const struct settings *settings, char *error) {
    char reason[TLS_CONTEXT_ERROR_MAX];
    const char *failed;
    bool is_fine = tls_settings_create(settings, &tls->context, &failed, reason);
    if (!is_fine) {
        snprintf(error, SETTING_ERROR_MAX, "%s: %s", failed, reason);
    }
    return is_fine;
}

void tls_settings_close(struct tls_settings *tls) {
    tls_context_release(tls->context);
    tls_context_release(tls->prepared);
    *tls = (struct tls_settings){.context = NULL};
}

const char *tls_settings_prepare(void *tls, const struct settings *wanted, char *reason) {
    struct tls_settings *settings = tls;
    char error[TLS_CONTEXT_ERROR_MAX];
    const char *failed;
    if (tls_settings_create(wanted, &settings->prepared, &failed, error)) {
        return NULL;
    }
    snprintf(reason, SETTING_ERROR_MAX, "Unable to update TLS configuration. %s", error);
    return failed;
}

void tls_settings_end(void *tls, bool is_set) {
    struct tls_settings *settings = tls;
    if (is_set && settings->prepared != NULL) {
        tls_context_release(settings->context);
        settings->context = settings->prepared;
    } else {
        tls_context_release(settings->prepared);
    }
    settings->prepared = NULL;
}
