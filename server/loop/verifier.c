/* Tokens' signatures on a thread. See verifier.h. */
#include "server/loop/verifier.h"

#include "codec/list.h"
#include "server/acl/player.h"
#include "server/loop/connection.h"

enum { AT_ONCE_MAX = 16 };

struct verifier_item {
    struct verifier_item *next;
    struct connection *connection; /* NULL: it is gone */
    struct jwt_key key;
    int64_t now_s;
    struct session_verified *found; /* becomes the session's; NULL: it is a ticket */
    struct player_keys *keys;       /* of a ticket: whether it is right is put there */
    size_t token_size;
    char token[JWT_SIZE_MAX];
};

static void verifier_run(void *context) {
    const struct verifier *verifier = context;
    for (struct verifier_item *item = verifier->running; item != NULL; item = item->next) {
        const struct bytes token = {.at = item->token, .size = item->token_size};
        if (item->found == NULL) {
            (void)!player_keys_check(item->keys, &item->key, token);
            continue;
        }
        digest_make(token, item->found->digest);
        item->found->key_mark = item->key.mark;
        item->found->status = jwt_verify(&item->key, token, item->now_s, &item->found->claims);
    }
}

static void verifier_start(struct verifier *verifier) {
    if (verifier->worker.is_busy || verifier->first == NULL) {
        return;
    }
    struct verifier_item *last = verifier->first;
    for (unsigned i = 1; i < AT_ONCE_MAX && last->next != NULL; i++) {
        last = last->next;
    }
    verifier->running = verifier->first;
    verifier->first = last->next;
    verifier->last = verifier->first != NULL ? verifier->last : NULL;
    last->next = NULL;
    worker_start(&verifier->worker, verifier_run);
}

static void verifier_free(struct verifier_item *item) {
    explicit_bzero(item->token, item->token_size);
    memory_free(item->found);
    memory_free(item);
}

static void verifier_on_done(void *context) {
    struct verifier *verifier = context;
    struct verifier_item *next;
    for (struct verifier_item *item = verifier->running; item != NULL; item = next) {
        struct connection *connection = item->connection;
        next = item->next;
        if (connection != NULL) {
            if (item->found != NULL) {
                memory_free(connection->session.verified);
                connection->session.verified = item->found;
                item->found = NULL;
                connection->is_verified = true;
            }
            connection->verifying = NULL;
            connection_resume(connection);
            tick_wake(connection->tick);
        }
        verifier_free(item);
    }
    verifier->running = NULL;
    verifier_start(verifier);
}

static bool verifier_add(struct verifier *verifier, struct connection *connection,
                         struct bytes token, bool is_ticket) {
    const struct tick *tick = connection->tick;
    const struct settings *settings = &tick->server->settings;
    struct player_keys *keys = &tick->server->acl.player_keys;
    const struct jwt_key *key =
        jwt_choose_key(settings->player_keys, settings->player_key_count, token);
    if (key == NULL || key->algorithm == JWT_HS256 ||
        (is_ticket && player_keys_know(keys, key, token))) {
        return false;
    }
    bool has_thread =
        verifier->worker.is_started ||
        worker_init(&verifier->worker, tick->loop, WORKER_BEHIND, verifier_on_done, verifier);
    struct verifier_item *item = has_thread ? memory_allocate(sizeof *item) : NULL;
    struct session_verified *found =
        item != NULL && !is_ticket ? memory_allocate_zeroed(sizeof *found) : NULL;
    if (item == NULL || (found == NULL && !is_ticket)) {
        memory_free(item);
        return false;
    }
    *item = (struct verifier_item){.connection = connection,
                                   .key = *key,
                                   .now_s = tick->server->clock.now_ms / 1000,
                                   .found = found,
                                   .keys = keys,
                                   .token_size = token.size};
    memcpy(item->token, token.at, token.size);
    LIST_APPEND(verifier->first, verifier->last, item);
    connection->verifying = item;
    verifier_start(verifier);
    return true;
}

bool verifier_begin(struct verifier *verifier, struct connection *connection, struct bytes token) {
    return verifier_add(verifier, connection, token, false);
}

bool verifier_begin_ticket(struct verifier *verifier, struct connection *connection,
                           struct bytes ticket) {
    return verifier_add(verifier, connection, ticket, true);
}

void verifier_leave(struct connection *connection) {
    if (connection->verifying != NULL) {
        connection->verifying->connection = NULL;
        connection->verifying = NULL;
    }
}

void verifier_stop(struct verifier *verifier) {
    worker_deinit(&verifier->worker);
    for (struct verifier_item *item = verifier->first; item != NULL; item = verifier->first) {
        verifier->first = item->next;
        verifier_free(item);
    }
}
