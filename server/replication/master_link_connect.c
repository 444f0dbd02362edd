/* Reaching the master: its address, the socket, TLS. See master_link.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "server/network/batch.h"
#include "server/network/tls.h"
#include "server/replication/master_link_parts.h"

/* ---- connecting ---- */

/* Outlives the attempt where that ends before the answer. */
struct master_link_question {
    uv_getaddrinfo_t request; /* first */
    struct master_link *link; /* NULL: nobody waits for the answer */
};

void master_link_drop_question(struct master_link *link) {
    if (link->question != NULL) {
        link->question->link = NULL;
        (void)uv_cancel((uv_req_t *)&link->question->request);
        link->question = NULL;
    }
}

static void master_link_connect_socket(struct master_link *link, const struct sockaddr *address,
                                       socklen_t size) {
    const int yes = 1;
    link->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->fd < 0) {
        master_link_fail(link, "cannot make a socket: %s", strerror(errno));
        return;
    }
    (void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(link->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    if (connect(link->fd, address, size) != 0 && errno != EINPROGRESS) {
        master_link_fail(link, "cannot connect: %s", strerror(errno));
        return;
    }
    link->poll = memory_allocate_zeroed(sizeof *link->poll);
    if (link->poll == NULL || uv_poll_init(link->loop, link->poll, link->fd) != 0) {
        memory_free(link->poll);
        link->poll = NULL;
        master_link_fail(link, "out of memory");
        return;
    }
    link->poll->data = link;
    uv_unref((uv_handle_t *)link->poll);
    if (link->quorum != NULL) {
        quorum_begin_link(link->quorum);
    }
    master_link_move(link, LINK_RESOLVED);
    master_link_watch(link);
}

static void master_link_connect_on_resolved(uv_getaddrinfo_t *request, int status,
                                            struct addrinfo *found) {
    struct master_link_question *question = (struct master_link_question *)request;
    struct master_link *link = question->link;
    if (link != NULL) {
        link->question = NULL;
        if (status != 0 || found == NULL) {
            master_link_fail(link, "cannot find the host: %s",
                             status != 0 ? uv_strerror(status) : "no address");
        } else {
            master_link_connect_socket(link, found->ai_addr, found->ai_addrlen);
        }
    }
    uv_freeaddrinfo(found);
    memory_free(question);
}

/* An address needs no resolver, and no thread. false: it is a name. */
static bool master_link_connect_to_address(struct master_link *link) {
    union socket_address address = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t size = 0;
    if (inet_pton(AF_INET, master_link_host(link), &address.v4.sin_addr) == 1) {
        address.v4.sin_family = AF_INET;
        address.v4.sin_port = htons(master_link_port(link));
        size = sizeof address.v4;
    } else if (inet_pton(AF_INET6, master_link_host(link), &address.v6.sin6_addr) == 1) {
        address.v6.sin6_family = AF_INET6;
        address.v6.sin6_port = htons(master_link_port(link));
        size = sizeof address.v6;
    }
    if (size > 0) {
        master_link_connect_socket(link, &address.any, size);
    }
    return size > 0;
}

void master_link_attempt(struct master_link *link) {
    char port[8];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    master_link_move(link, LINK_TRIED);
    link->heard_at_ms = link->server->clock.monotonic_ms;
    if (master_link_connect_to_address(link)) {
        return;
    }
    snprintf(port, sizeof port, "%u", (unsigned)master_link_port(link));
    struct master_link_question *question = memory_allocate_zeroed(sizeof *question);
    if (question == NULL) {
        master_link_fail(link, "out of memory");
        return;
    }
    question->link = link;
    int status = uv_getaddrinfo(link->loop, &question->request, master_link_connect_on_resolved,
                                master_link_host(link), port, &hints);
    if (status != 0) {
        memory_free(question);
        master_link_fail(link, "cannot look up the host: %s", uv_strerror(status));
        return;
    }
    link->question = question;
}

/* ---- the connection is there ---- */
/* The contents of the files as they are now: a link is made seldom. */
static bool master_link_connect_make_tls(struct master_link *link) {
    char error[TLS_CONTEXT_ERROR_MAX];
    const char *failed;
    const struct settings *settings = &link->server->settings;
    const struct tls_context_options options = {
        .certificate_file = settings->tls_cert_file,
        .key_file = settings->tls_key_file,
        .key_password = settings->tls_key_file_pass,
        .ca_file = settings->tls_ca_cert_file,
        .ca_directory = settings->tls_ca_cert_dir,
        .protocols = settings->tls_protocols,
        .ciphers = settings->tls_ciphers,
        .ciphersuites = settings->tls_ciphersuites,
        .host = settings->tls_replication_verify_name ? master_link_host(link) : NULL,
    };
    link->tls_context = tls_context_create_client(&options, &failed, error);
    if (link->tls_context == NULL) {
        master_link_fail(link, "TLS: %s: %s", failed, error);
        return false;
    }
    link->tls = tls_create_client(link->tls_context, link->fd);
    if (link->tls == NULL) {
        master_link_fail(link, "out of memory");
        return false;
    }
    return true;
}

void master_link_shake(struct master_link *link) {
    switch (tls_handshake(link->tls)) {
    case TLS_IS_WAITING:
        master_link_watch(link);
        return;
    case TLS_IS_OPEN:
        master_link_move(link, LINK_SHAKEN);
        master_link_greet(link);
        return;
    case TLS_HAS_FAILED:
        break;
    }
    const char *error = tls_error(link->tls);
    master_link_fail(link, "TLS: %s", error != NULL ? error : "the connection was closed");
}

void master_link_take_connection(struct master_link *link) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        master_link_fail(link, "cannot connect: %s", strerror(error != 0 ? error : errno));
        return;
    }
    if (link->server->settings.tls_replication) {
        if (master_link_connect_make_tls(link)) {
            master_link_move(link, LINK_TLS_OPEN);
            master_link_shake(link);
        }
        return;
    }
    master_link_move(link, LINK_OPEN);
    master_link_greet(link);
}
