/* See tools.h. */
#include "server/tools/tools.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "codec/bytes.h"

enum { HOST_MAX = 256, PIECE_SIZE = 16 * 1024 };

__attribute__((format(printf, 2, 3))) static bool link_fail(struct tools_link *link,
                                                            const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(link->error, sizeof link->error, format, arguments);
    va_end(arguments);
    return false;
}

static const char *link_reason_of(int number) {
    return number == 0                                 ? "the connection was closed"
           : number == EAGAIN || number == EWOULDBLOCK ? "no answer in time"
                                                       : strerror(number);
}

/* What OpenSSL says, or the system. */
static bool link_fail_tls(struct tools_link *link, const char *what) {
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    long verdict = link->tls != NULL ? SSL_get_verify_result(link->tls) : X509_V_OK;
    if (verdict != X509_V_OK) {
        reason = X509_verify_cert_error_string(verdict);
    } else if (reason == NULL) {
        reason = link_reason_of(errno);
    }
    ERR_clear_error();
    return link_fail(link, "%s: %s", what, reason);
}

/* "HOST:PORT", "[IPv6]:PORT", or "PORT" of this machine, whose certificate may be for any name. */
static bool link_split(const char *address, char *host, int *port, bool *is_port_alone) {
    const char *colon = strrchr(address, ':');
    uint64_t number;
    *is_port_alone = colon == NULL;
    if (!bytes_parse_u64(bytes_from_text(colon != NULL ? colon + 1 : address), &number) ||
        number == 0 || number > UINT16_MAX) {
        return false;
    }
    *port = (int)number;
    if (colon == NULL) {
        snprintf(host, HOST_MAX, "127.0.0.1");
        return true;
    }
    size_t size = (size_t)(colon - address);
    if (size > 1 && address[0] == '[' && colon[-1] == ']') {
        address++;
        size -= 2;
    }
    if (size == 0 || size >= HOST_MAX) {
        return false;
    }
    memcpy(host, address, size);
    host[size] = '\0';
    return true;
}

/* host: NULL: the server's certificate may be for any. */
static bool link_shake_hands(struct tools_link *link, const char *host,
                             const struct link_options *options) {
    link->tls_context = SSL_CTX_new(TLS_client_method());
    if (link->tls_context == NULL) {
        return link_fail_tls(link, "TLS");
    }
    SSL_CTX *context = link->tls_context;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (options->ca_file != NULL ? SSL_CTX_load_verify_file(context, options->ca_file) != 1
                                 : SSL_CTX_set_default_verify_paths(context) != 1) {
        return link_fail_tls(link, options->ca_file != NULL ? options->ca_file : "authorities");
    }
    if (options->certificate != NULL &&
        SSL_CTX_use_certificate_chain_file(context, options->certificate) != 1) {
        return link_fail_tls(link, options->certificate);
    }
    if (options->key != NULL &&
        SSL_CTX_use_PrivateKey_file(context, options->key, SSL_FILETYPE_PEM) != 1) {
        return link_fail_tls(link, options->key);
    }
    link->tls = SSL_new(context);
    if (link->tls == NULL || SSL_set_fd(link->tls, link->context->fd) != 1) {
        return link_fail_tls(link, "TLS");
    }
    X509_VERIFY_PARAM *wanted = SSL_get0_param(link->tls);
    if (host != NULL && X509_VERIFY_PARAM_set1_ip_asc(wanted, host) != 1 &&
        (SSL_set1_host(link->tls, host) != 1 ||
         /* OpenSSL's macro for this casts const away. */
         SSL_ctrl(link->tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  (void *)(uintptr_t)host) != 1)) {
        return link_fail_tls(link, "TLS");
    }
    ERR_clear_error();
    return SSL_connect(link->tls) == 1 || link_fail_tls(link, "TLS");
}

void link_set_limit(struct tools_link *link, int limit_s) {
    const struct timeval limit = {.tv_sec = limit_s};
    (void)redisSetTimeout(link->context, limit);
}

bool link_open(struct tools_link *link, const char *address, const struct link_options *options,
               int limit_s) {
    const struct timeval limit = {.tv_sec = limit_s};
    char host[HOST_MAX];
    int port;
    bool is_port_alone = false;
    if (strchr(address, '/') != NULL) {
        link->context = redisConnectUnixWithTimeout(address, limit);
        snprintf(host, sizeof host, "localhost");
    } else if (link_split(address, host, &port, &is_port_alone)) {
        link->context = redisConnectWithTimeout(host, port, limit);
    } else {
        return link_fail(link, "it is not PORT, HOST:PORT or the path of a socket");
    }
    if (link->context == NULL || link->context->err != 0) {
        return link_fail(link, "%s",
                         link->context != NULL ? link->context->errstr : "out of memory");
    }
    if (link->context->connection_type == REDIS_CONN_TCP) {
        (void)redisEnableKeepAlive(link->context);
    }
    link_set_limit(link, limit_s);
    return !options->has_tls || link_shake_hands(link, is_port_alone ? NULL : host, options);
}

void link_close(struct tools_link *link) {
    if (link->tls != NULL) {
        (void)SSL_shutdown(link->tls);
    }
    SSL_free(link->tls);
    SSL_CTX_free(link->tls_context);
    if (link->context != NULL) {
        redisFree(link->context);
    }
    *link = (struct tools_link){.context = NULL};
}

bool link_send(struct tools_link *link, const char *format, ...) {
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int size = redisvFormatCommand(&text, format, arguments);
    va_end(arguments);
    if (size < 0) {
        return link_fail(link, "out of memory");
    }
    bool is_sent = true;
    if (link->tls == NULL) {
        is_sent = redisAppendFormattedCommand(link->context, text, (size_t)size) == REDIS_OK ||
                  link_fail(link, "%s", link->context->errstr);
    }
    for (int sent = 0, part; link->tls != NULL && is_sent && sent < size; sent += part) {
        part = SSL_write(link->tls, text + sent, size - sent);
        is_sent = part > 0 || link_fail_tls(link, "TLS");
    }
    redisFreeCommand(text);
    return is_sent;
}

/* hiredis has read what came before it says that the connection is at its end. */
redisReply *link_reply(struct tools_link *link) {
    void *reply = NULL;
    char piece[PIECE_SIZE];
    if (link->tls == NULL) {
        if (redisGetReply(link->context, &reply) != REDIS_OK) {
            bool is_late = link->context->err == REDIS_ERR_IO && errno == EAGAIN;
            (void)link_fail(link, "%s", is_late ? link_reason_of(EAGAIN) : link->context->errstr);
        }
        return reply;
    }
    while (redisReaderGetReply(link->context->reader, &reply) == REDIS_OK) {
        if (reply != NULL) {
            return reply;
        }
        errno = 0;
        int size = SSL_read(link->tls, piece, sizeof piece);
        if (size <= 0) {
            (void)link_fail_tls(link, "TLS");
            return NULL;
        }
        if (redisReaderFeed(link->context->reader, piece, (size_t)size) != REDIS_OK) {
            break;
        }
    }
    (void)link_fail(link, "%s", link->context->reader->errstr);
    return NULL;
}

redisReply *link_log_in(struct tools_link *link, const struct link_options *options) {
    if (options->password == NULL) {
        return NULL;
    }
    bool is_sent = options->user != NULL
                       ? link_send(link, "AUTH %s %s", options->user, options->password)
                       : link_send(link, "AUTH %s", options->password);
    redisReply *reply = is_sent ? link_reply(link) : NULL;
    if (reply != NULL && reply->type != REDIS_REPLY_ERROR) {
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}
