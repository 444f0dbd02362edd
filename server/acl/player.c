/* What players may do. See player.h. */
#include "server/acl/player.h"

#include <stdio.h>

#include "server/dispatch/syntax.h"
#include "server/sessions/server.h"
#include "server/system/digest.h"

bool player_has_token(const struct server *server, struct bytes name, struct bytes password) {
    bool is_for_players = name.at == NULL || bytes_is(name, "player") || acl_is_of_players(name);
    return server->settings.player_key_count > 0 && is_for_players && jwt_is_like(password);
}

/* The key by which the player's token was checked. NULL: it is gone, or has changed. */
static const struct jwt_key *player_find_key(const struct server *server,
                                             const struct jwt_player *player) {
    const struct settings *settings = &server->settings;
    const struct jwt_key *key = jwt_find_key(settings->player_keys, settings->player_key_count,
                                             bytes_from_text(player->kid));
    return key != NULL && key->mark == player->claims.key_mark ? key : NULL;
}

static bool player_is_over(const struct server *server, const struct jwt_player *player) {
    return server->clock.now_ms / 1000 >= player->claims.expires_s + JWT_SKEW_S;
}

const char *player_find_fault(const struct server *server, const struct jwt_player *player) {
    const struct settings *settings = &server->settings;
    bool has_kid = jwt_find_key(settings->player_keys, settings->player_key_count,
                                bytes_from_text(player->kid)) != NULL;
    return !has_kid                                     ? jwt_status_text(JWT_NO_KEY)
           : player_find_key(server, player) == NULL    ? "its player-key is another one now"
           : player_is_over(server, player)             ? jwt_status_text(JWT_EXPIRED)
           : player_is_revoked(server, &player->claims) ? "it was revoked"
                                                        : NULL;
}

const char *player_find_denial(const struct server *server, const struct session *session,
                               uint32_t command, const struct request *request, char *text) {
    const struct jwt_player *player = session->player;
    const struct command *entry = command_by_index(command);
    if (player == NULL || (entry->flags & COMMAND_NO_AUTH) != 0) {
        return NULL;
    }
    const struct jwt_key *key = player_find_key(server, player);
    if (key == NULL) {
        snprintf(text, PLAYER_TEXT_MAX,
                 "NOAUTH the player-key '%s' is gone or another one: AUTH with a new token",
                 player->kid);
        return text;
    }
    if (player_is_over(server, player)) {
        return "NOAUTH the player's token has expired: AUTH with a new one";
    }
    if (player_is_revoked(server, &player->claims)) {
        return "NOAUTH the player's token was revoked: AUTH with a new one";
    }
    if ((entry->flags & COMMAND_ADMIN) != 0) {
        snprintf(text, PLAYER_TEXT_MAX, "NOPERM '%s' is for nobody who comes with a player's token",
                 command_full_name(command));
        return text;
    }
    if ((entry->flags & COMMAND_WRITE) != 0 && (entry->flags & COMMAND_OWN_MEMBER) == 0) {
        snprintf(text, PLAYER_TEXT_MAX,
                 "NOPERM players write results and tags of their own: not by '%s'",
                 command_full_name(command));
        return text;
    }
    bool is_of_hashes = strcmp(entry->group, "hash") == 0;
    struct request_keys keys = syntax_key_request_begin(command, request);
    for (uint32_t at;
         key->boards[0] != '\0' && !is_of_hashes && (at = syntax_key_request_next(&keys)) > 0;) {
        struct bytes name = request->args[at];
        if (!jwt_takes_board(key, name)) {
            snprintf(text, PLAYER_TEXT_MAX,
                     "NOPERM tokens of the player-key '%s' are not for the board '%.*s'", key->kid,
                     bytes_shown_size(name, 64), name.at);
            return text;
        }
    }
    return NULL;
}

bool player_may_name_hashes(const struct call *call, struct bytes pattern) {
    const struct acl_user *user = call->session->user;
    const struct jwt_player *player = call->session->player;
    if (player == NULL) {
        return true;
    }
    /* Who has chosen the own name would choose the key's, or take that of a board that is to come. */
    const struct jwt_key *key = player_find_key(call->server, player);
    bool is_of_boards = key == NULL || jwt_takes_board(key, pattern) || pattern.size == 1;
    bool is_named = false;
    for (uint32_t i = 0; i < user->selector_count && !is_named && !is_of_boards; i++) {
        const struct acl_text *same =
            acl_list_find(&user->selectors[i]->keys.list, pattern, ACL_LIST_ANY);
        is_named = same != NULL && (same->value & ACL_WRITE) != 0;
    }
    return is_named || call_refuse_format(call,
                                          "NOPERM HSET of a player takes a pattern that is one of "
                                          "its user's, and none of BOARDS, which the player-key "
                                          "must have: not '%.*s'",
                                          bytes_shown_size(pattern, 64), pattern.at);
}

bool player_may_write_hash(const struct call *call, struct bytes name) {
    const struct jwt_player *player = call->session->player;
    const struct jwt_key *key = player != NULL ? player_find_key(call->server, player) : NULL;
    return player == NULL || (key != NULL && !jwt_takes_board(key, name)) ||
           call_refuse_format(call, "NOPERM '%.*s' is a name of boards (BOARDS), not of hashes",
                              bytes_shown_size(name, 64), name.at);
}

/* ---- revoked tokens ---- */

static struct registry_key *player_find_revoked(struct registry *registry, struct bytes player,
                                                int64_t now_ms) {
    struct registry_key *key = registry_count(registry, REGISTRY_REVOKED) > 0
                                   ? registry_find(registry, REGISTRY_REVOKED, player, now_ms)
                                   : NULL;
    return key != NULL && key->kind == REGISTRY_HASH ? key : NULL;
}

int64_t player_revoked_ms(struct registry *registry, struct bytes player, int64_t now_ms) {
    const struct registry_key *key = player_find_revoked(registry, player, now_ms);
    struct bytes value;
    int64_t before_ms = 0;
    bool is_there = key != NULL && hash_find(registry_hash(key), BYTES("before"), &value) &&
                    bytes_parse_i64(value, &before_ms);
    return is_there ? before_ms : 0;
}

bool player_revoke(struct registry *registry, struct bytes player, int64_t before_ms,
                   int64_t now_ms) {
    struct registry_key *key = player_find_revoked(registry, player, now_ms);
    char text[BYTES_INTEGER_TEXT_MAX];
    struct bytes args[] = {BYTES("before"), {.at = text, .size = 0}};
    if (before_ms == 0) {
        if (key != NULL) {
            registry_remove(registry, key);
        }
        return true;
    }
    args[1].size = bytes_print_i64(text, before_ms);
    return registry_hash_put_own(registry, REGISTRY_REVOKED, player, args, 1, now_ms) != NULL;
}

bool player_is_revoked(const struct server *server, const struct jwt_claims *claims) {
    enum { MS_PER_S = 1000 };
    const struct bytes player = {.at = claims->player, .size = claims->player_size};
    int64_t before_ms = player_revoked_ms(server->registry, player, server->clock.now_ms);
    return before_ms > 0 && claims->issued_s * MS_PER_S < before_ms;
}

/* ---- keys for other threads ---- */

void player_keys_init(struct player_keys *keys) {
    int status = pthread_mutex_init(&keys->mutex, NULL);
    CHECK(status == 0);
}

void player_keys_set(struct player_keys *keys, const struct settings *settings) {
    pthread_mutex_lock(&keys->mutex);
    memcpy(keys->at, settings->player_keys, sizeof keys->at);
    keys->count = settings->player_key_count;
    pthread_mutex_unlock(&keys->mutex);
}

/* false: found is none. */
static bool player_keys_copy(const struct jwt_key *found, struct jwt_key *key) {
    if (found != NULL) {
        *key = *found;
    }
    return found != NULL;
}

bool player_keys_find(struct player_keys *keys, const char *kid, struct jwt_key *key) {
    pthread_mutex_lock(&keys->mutex);
    bool is_there =
        player_keys_copy(jwt_find_key(keys->at, keys->count, bytes_from_text(kid)), key);
    pthread_mutex_unlock(&keys->mutex);
    return is_there && key->algorithm == JWT_HS256;
}

bool player_keys_choose(struct player_keys *keys, struct bytes token, struct jwt_key *key) {
    pthread_mutex_lock(&keys->mutex);
    bool is_there = player_keys_copy(jwt_choose_key(keys->at, keys->count, token), key);
    pthread_mutex_unlock(&keys->mutex);
    return is_there;
}

static struct player_signature *player_keys_place(struct player_keys *keys,
                                                  const unsigned char digest[DIGEST_SIZE]) {
    return &keys->signatures[((unsigned)digest[0] << 8 | digest[1]) % PLAYER_SIGNATURES];
}

static bool player_keys_find_signature(struct player_keys *keys, const struct jwt_key *key,
                                       struct player_signature *signature) {
    const struct player_signature *place = player_keys_place(keys, signature->digest);
    pthread_mutex_lock(&keys->mutex);
    bool is_known =
        place->key_mark == key->mark && memcmp(place->digest, signature->digest, DIGEST_SIZE) == 0;
    signature->is_right = is_known && place->is_right;
    pthread_mutex_unlock(&keys->mutex);
    return is_known;
}

bool player_keys_know(struct player_keys *keys, const struct jwt_key *key, struct bytes ticket) {
    struct player_signature signature;
    digest_make(ticket, signature.digest);
    return player_keys_find_signature(keys, key, &signature);
}

bool player_keys_check(struct player_keys *keys, const struct jwt_key *key, struct bytes ticket) {
    struct player_signature signature = {.key_mark = key->mark};
    digest_make(ticket, signature.digest);
    if (!player_keys_find_signature(keys, key, &signature)) {
        signature.is_right = jwt_is_signed_by(key, ticket);
        pthread_mutex_lock(&keys->mutex);
        *player_keys_place(keys, signature.digest) = signature;
        pthread_mutex_unlock(&keys->mutex);
    }
    return signature.is_right;
}
