/* See login.h. */
#include "server/dispatch/login.h"

#include <stdio.h>

#include "server/acl/acl_check.h"
#include "server/acl/player.h"
#include "server/system/digest.h"
#include "server/system/log.h"

/* The one place that learns of every attempt. name: by which the guard knows it; logged, shown: the user's name
 * for ACL LOG and for the log. */
static void login_note(struct server *server, struct session *session, bool is_right,
                       struct bytes name, struct bytes logged, struct bytes shown,
                       struct bytes word) {
    auth_guard_note(server, session, is_right, name, shown);
    if (!is_right) {
        acl_check_log(server, session, ACL_DENIED_AUTH, word, logged);
    }
}

bool login_try(struct server *server, struct session *session, struct bytes name,
               struct bytes password, struct bytes word) {
    struct acl_user *user = acl_users_find(&server->acl.users, name);
    /* An unknown user takes as long as a known one. */
    bool is_right =
        acl_user_takes_password(user != NULL ? user : server->acl.users.default_user, password);
    is_right = is_right && user != NULL && user->is_on && !acl_is_of_players(name);
    /* A name that is unknown may be a password. */
    login_note(server, session, is_right, name, name, user != NULL ? name : BYTES("(unknown)"),
               word);
    if (is_right) {
        server_set_user(server, session, user, true);
    }
    return is_right;
}

/* ---- players ---- */

/* The session becomes the player's, if all is right. What is wrong of it otherwise; NULL: nothing. */
static const char *login_take_player(struct server *server, struct session *session,
                                     const char *kid, enum jwt_status status,
                                     const struct jwt_claims *claims, struct bytes word) {
    /* By whose rights the key's players act. */
    char name[sizeof ACL_PLAYER_PREFIX + JWT_KID_MAX];
    snprintf(name, sizeof name, ACL_PLAYER_PREFIX "%s", kid != NULL ? kid : "");
    struct acl_user *user =
        kid != NULL ? acl_users_find(&server->acl.users, bytes_from_text(name)) : NULL;
    user = user != NULL && user->is_on ? user : NULL;
    const char *wrong = status != JWT_RIGHT                 ? jwt_status_text(status)
                        : player_is_revoked(server, claims) ? "it was revoked"
                        : user == NULL                      ? PLAYER_NO_USER
                                                            : NULL;
    struct jwt_player *player = wrong == NULL ? memory_allocate_zeroed(sizeof *player) : NULL;
    if (wrong == NULL && player == NULL) {
        return "out of memory";
    }
    if (wrong == NULL || !jwt_is_signed(status)) {
        login_note(server, session, wrong == NULL, ACL_PLAYERS, ACL_PLAYERS,
                   kid != NULL ? bytes_from_text(kid) : BYTES("(unknown)"), word);
    }
    if (wrong != NULL) {
        log_write(LOG_VERBOSE, "player's token refused addr=%s kid=\"%s\" reason=\"%s\"",
                  session->address, kid != NULL ? kid : "", wrong);
        return wrong;
    }
    snprintf(player->kid, sizeof player->kid, "%s", kid);
    player->claims = *claims;
    server_set_user(server, session, user, true);
    session_set_player(session, player);
    server_refresh_rights(server, session);
    return NULL;
}

const char *login_try_player(struct server *server, struct session *session, struct bytes token,
                             struct bytes word) {
    const struct settings *settings = &server->settings;
    const struct jwt_key *key =
        jwt_choose_key(settings->player_keys, settings->player_key_count, token);
    struct jwt_claims claims = {.player_size = 0};
    enum jwt_status status = JWT_NO_KEY;
    bool is_verified = session->verified != NULL; /* a thread has looked at it, by whatever key */
    if (is_verified) {
        unsigned char digest[DIGEST_SIZE];
        digest_make(token, digest);
        is_verified = memcmp(session->verified->digest, digest, sizeof digest) == 0;
    }
    if (key != NULL && key->algorithm == JWT_ED25519 && server->acl.has_verifier && !is_verified) {
        return "it was not in its place: AUTH [player] TOKEN, or HELLO 3 AUTH player TOKEN";
    }
    if (key != NULL && is_verified && session->verified->key_mark == key->mark) {
        claims = session->verified->claims;
        status = session->verified->status;
    } else if (key != NULL) {
        status = jwt_verify(key, token, server->clock.now_ms / 1000, &claims);
    }
    memory_free(session->verified);
    session->verified = NULL;
    return login_take_player(server, session, key != NULL ? key->kid : NULL, status, &claims, word);
}

/* ---- over HTTP ---- */

/* A session for an attempt over HTTP. false: it comes too soon. */
static bool login_begin_address(struct server *server, struct session *session, const char *address,
                                struct bytes name, int64_t *retry_ms) {
    session_init(session, 0, server->clock.monotonic_ms);
    snprintf(session->address, sizeof session->address,
             strchr(address, ':') != NULL ? "[%.100s]:0" : "%.100s:0", address);
    server_reset_user(server, session);
    *retry_ms =
        auth_guard_retry_ms(&server->acl.guard, &server->settings,
                            auth_guard_address(session->address), name, server->clock.monotonic_ms);
    return *retry_ms == 0;
}

enum login_outcome login_try_address(struct server *server, const char *address, struct bytes name,
                                     struct bytes password, struct acl_user **user,
                                     int64_t *retry_ms) {
    struct session session;
    if (!login_begin_address(server, &session, address, name, retry_ms)) {
        return LOGIN_TOO_SOON;
    }
    if (!login_try(server, &session, name, password, BYTES("HTTP"))) {
        return LOGIN_WRONG;
    }
    *user = session.user;
    return LOGIN_RIGHT;
}

enum login_outcome login_try_token(struct server *server, const char *address, struct bytes token,
                                   struct acl_user **user, int64_t *retry_ms) {
    struct session session;
    unsigned char digest[DIGEST_SIZE];
    digest_make(token, digest);
    struct bytes name = {.at = (const char *)digest, .size = sizeof digest};
    if (!login_begin_address(server, &session, address, name, retry_ms)) {
        return LOGIN_TOO_SOON;
    }
    struct acl_user *found = acl_users_find_token(&server->acl.users, token);
    found = found != NULL && acl_is_of_players(found->name) ? NULL : found;
    login_note(server, &session, found != NULL, name, BYTES("(token)"), BYTES("(token)"),
               BYTES("HTTP"));
    if (found == NULL) {
        return LOGIN_WRONG;
    }
    *user = found;
    return LOGIN_RIGHT;
}

enum login_outcome login_try_player_address(struct server *server, const char *address,
                                            const struct jwt_player *given, enum jwt_status status,
                                            struct acl_user **user, const char **wrong,
                                            int64_t *retry_ms) {
    struct session session;
    /* What others behind the address guess is not for a token that is signed to wait for. */
    bool is_due = login_begin_address(server, &session, address, ACL_PLAYERS, retry_ms);
    if (!is_due && !jwt_is_signed(status)) {
        return LOGIN_TOO_SOON;
    }
    *retry_ms = 0;
    *wrong = login_take_player(server, &session, given->kid[0] != '\0' ? given->kid : NULL, status,
                               &given->claims, BYTES("HTTP"));
    *user = session.user;
    session_deinit(&session);
    return *wrong == NULL ? LOGIN_RIGHT : LOGIN_WRONG;
}
