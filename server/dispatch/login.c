/* See login.h. */
#include "server/dispatch/login.h"

#include <stdio.h>

#include "server/dispatch/client_line.h"
#include "server/system/digest.h"

/* The one place that learns of every attempt. name: by which the guard knows it; logged, shown: the user's name
 * for ACL LOG and for the log. */
static void login_note(struct server *server, struct session *session, bool is_right,
                       struct bytes name, struct bytes logged, struct bytes shown,
                       struct bytes word) {
    auth_guard_note(server, session, is_right, name, shown);
    if (is_right) {
        return;
    }
    struct buffer line;
    buffer_init(&line, 0);
    client_line_print(session, server->clock.monotonic_ms, &line);
    acl_log_add(&server->acl.log, (uint32_t)server->settings.acllog_max_len, "auth",
                session->transaction.is_open ? "multi" : "toplevel", word, logged,
                client_line_text(&line), server->clock.now_ms);
    buffer_deinit(&line);
}

bool login_try(struct server *server, struct session *session, struct bytes name,
               struct bytes password, struct bytes word) {
    struct acl_user *user = acl_users_find(&server->acl.users, name);
    /* An unknown user takes as long as a known one. */
    bool is_right =
        acl_user_takes_password(user != NULL ? user : server->acl.users.default_user, password);
    is_right = is_right && user != NULL && user->is_on;
    /* A name that is unknown may be a password. */
    login_note(server, session, is_right, name, name, user != NULL ? name : BYTES("(unknown)"),
               word);
    if (is_right) {
        server_set_user(server, session, user, true);
    }
    return is_right;
}

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
    login_note(server, &session, found != NULL, name, BYTES("(token)"), BYTES("(token)"),
               BYTES("HTTP"));
    if (found == NULL) {
        return LOGIN_WRONG;
    }
    *user = found;
    return LOGIN_RIGHT;
}
