/* Connections: since when each is in its phase, and how many an address has.
 *
 *     direct      accept: counted, or told that there are too many (is_excess), or refused
 *     by a proxy  each request: counted for the client that X-Forwarded-For names, until its reply is sent
 *
 * An IPv6 network of 64 bits is one address here, as one customer of a provider has that many. */
#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#include "server/http/http_header.h"
#include "server/http/http_server_parts.h"

enum { SILENT_MS = 200, NETWORK_V6_SIZE = 8 };

int64_t http_server_now(const struct http_server *server) {
    return (int64_t)uv_now(&server->loop);
}

void http_peer_begin_phase(struct http_server *server, struct http_peer *peer, int64_t limit_ms) {
    if (peer != NULL) {
        peer->since_ms = http_server_now(server);
        peer->limit_ms = limit_ms;
    }
}

/* ---- addresses ---- */

static bool http_peer_is_same_client(const uint8_t *a, const uint8_t *b) {
    return memcmp(a, b, subnet_is_v4(a) ? SUBNET_ADDRESS_SIZE : NETWORK_V6_SIZE) == 0;
}

static bool http_peer_is_proxy(const struct http_server *server, const uint8_t *address) {
    return subnet_list_has(server->options.proxies, server->options.proxy_count, address);
}

/* Of those that count; excess: of those that do not, in place of that. */
static unsigned http_peer_count_of(const struct http_server *server, const uint8_t *client,
                                   bool is_excess) {
    unsigned count = 0;
    for (const struct http_peer *peer = server->peer_first; peer != NULL; peer = peer->next) {
        bool is_wanted = is_excess ? peer->is_excess : peer->is_counted;
        count += is_wanted && http_peer_is_same_client(peer->client, client);
    }
    return count;
}

static bool http_peer_is_limited(const struct http_server *server, const uint8_t *client) {
    return server->options.address_connections_max > 0 && !subnet_is_loopback(client) &&
           !http_peer_is_proxy(server, client);
}

static bool http_peer_has_enough(const struct http_server *server, const uint8_t *client) {
    return http_peer_is_limited(server, client) &&
           http_peer_count_of(server, client, false) >= server->options.address_connections_max;
}

/* ---- coming and going ---- */

enum MHD_Result http_peer_accept(void *context, const struct sockaddr *from, socklen_t size) {
    const struct http_server *server = context;
    uint8_t address[SUBNET_ADDRESS_SIZE];
    (void)size;
    bool is_refused = subnet_take_address(from, address) && http_peer_has_enough(server, address) &&
                      http_peer_count_of(server, address, true) >= HTTP_EXCESS_MAX;
    return is_refused ? MHD_NO : MHD_YES;
}

static void http_peer_begin(struct http_server *server, struct MHD_Connection *connection,
                            void **own) {
    struct http_peer *peer = memory_allocate_zeroed(sizeof *peer);
    const union MHD_ConnectionInfo *socket =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (peer == NULL || socket == NULL) {
        memory_free(peer);
        return;
    }
    peer->fd = socket->connect_fd;
    bool has_address = subnet_take_address(from != NULL ? from->client_addr : NULL, peer->address);
    memcpy(peer->client, peer->address, sizeof peer->client);
    peer->is_proxy = has_address && http_peer_is_proxy(server, peer->address);
    peer->is_excess = has_address && http_peer_has_enough(server, peer->address);
    peer->is_counted = !peer->is_excess && !peer->is_proxy;
    http_peer_begin_phase(server, peer, HTTP_REQUEST_LIMIT_MS);
    LIST_JOIN(server->peer_first, peer);
    server->peer_count++;
    *own = peer;
}

static void http_peer_end(struct http_server *server, struct http_peer *peer) {
    LIST_PART(server->peer_first, peer);
    server->peer_count--;
    memory_free(peer);
}

void http_peer_notify(void *context, struct MHD_Connection *connection, void **own,
                      enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        http_peer_begin(context, connection, own);
    } else if (*own != NULL) {
        http_peer_end(context, *own);
        *own = NULL;
    }
}

/* ---- behind proxies ---- */

/* Proxies add a header of their own behind those that came, or their word to the last one. */
static enum MHD_Result http_peer_keep_last(void *own, enum MHD_ValueKind kind, const char *name,
                                           const char *value) {
    const char **last = own;
    (void)kind;
    if (value != NULL && strcasecmp(name, HTTP_FORWARDED_FOR) == 0) {
        *last = value;
    }
    return MHD_YES;
}

/* The last address that is no proxy's. Those before it are what somebody says. */
static void http_peer_take_client(const struct http_server *server,
                                  struct http_exchange *exchange) {
    const char *value = NULL;
    uint8_t address[SUBNET_ADDRESS_SIZE];
    struct http_peer *peer = exchange->peer;
    (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, http_peer_keep_last,
                                    &value);
    size_t size = value != NULL ? strlen(value) : 0;
    while (http_header_take_forwarded(value, &size, address)) {
        memcpy(peer->client, address, sizeof peer->client);
        if (!http_peer_is_proxy(server, address)) {
            return;
        }
    }
}

bool http_peer_begin_request(struct http_exchange *exchange) {
    struct http_server *server = exchange->server;
    struct http_peer *peer = exchange->peer;
    if (peer == NULL || !peer->is_proxy) {
        return peer == NULL || !peer->is_excess;
    }
    memcpy(peer->client, peer->address, sizeof peer->client);
    http_peer_take_client(server, exchange);
    peer->is_counted = !http_peer_has_enough(server, peer->client);
    return peer->is_counted;
}

void http_peer_end_request(struct http_exchange *exchange) {
    struct http_peer *peer = exchange->peer;
    if (peer != NULL && peer->is_proxy) {
        peer->is_counted = false;
    }
}

bool http_exchange_peer(const struct http_exchange *exchange, char *text) {
    const struct http_peer *peer = exchange->peer;
    snprintf(text, HTTP_ADDRESS_MAX, "?");
    if (peer == NULL) {
        return false;
    }
    struct subnet client = {.bits = 8 * SUBNET_ADDRESS_SIZE};
    char shown[SUBNET_TEXT_MAX];
    memcpy(client.address, peer->client, sizeof client.address);
    subnet_print(&client, shown);
    snprintf(text, HTTP_ADDRESS_MAX, "%s", shown);
    return subnet_is_loopback(peer->address);
}

bool http_exchange_is_local(const struct http_exchange *exchange) {
    static const char *const names[] = {HTTP_FORWARDED_FOR, "Forwarded", "X-Real-IP",
                                        "X-Forwarded-Host"};
    const struct http_peer *peer = exchange->peer;
    if (peer == NULL || !subnet_is_loopback(peer->address) || !subnet_is_loopback(peer->client)) {
        return false;
    }
    for (size_t i = 0; !peer->is_proxy && i < sizeof names / sizeof names[0]; i++) {
        if (MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, names[i]) != NULL) {
            return false;
        }
    }
    return true;
}

/* ---- time ---- */

/* Nothing has come for so long that it may go where there are many: so those who connect and say
 * nothing do not keep others out. */
static bool http_peer_is_silent(const struct http_peer *peer, int64_t now_ms) {
    return (peer->limit_ms == HTTP_REQUEST_LIMIT_MS || peer->limit_ms == HTTP_IDLE_LIMIT_MS) &&
           now_ms - peer->since_ms >= SILENT_MS;
}

void http_peer_cut(struct http_peer *peer) {
    if (!peer->is_cut) {
        peer->is_cut = true;
        (void)shutdown(peer->fd, SHUT_RDWR);
    }
}

void http_peer_sweep(struct http_server *server, int64_t now_ms) {
    bool is_full = server->peer_count > server->options.connections_max * 3 / 4;
    for (struct http_peer *peer = server->peer_first; peer != NULL; peer = peer->next) {
        bool is_over = peer->limit_ms > 0 && now_ms - peer->since_ms >= peer->limit_ms;
        if (is_over || (is_full && http_peer_is_silent(peer, now_ms))) {
            http_peer_cut(peer);
        }
    }
}
