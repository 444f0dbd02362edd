/* See login.h. */
#include "server/dispatch/login.h"

#include <stdio.h>

#include "server/dispatch/client_line.h"

/* The one place that learns of every attempt. */
static void login_note(struct server *server, struct session *session, struct bytes name,
                       struct bytes word, bool is_known, bool is_right) {
    /* A name that is unknown may be a password. */
    auth_guard_note(server, session, is_right, name, is_known ? name : BYTES("(unknown)"));
    if (is_right) {
        return;
    }
    struct buffer line;
    buffer_init(&line, 0);
    client_line_print(session, server->clock.monotonic_ms, &line);
    acl_log_add(&server->acl.log, (uint32_t)server->settings.acllog_max_len, "auth",
                session->transaction.is_open ? "multi" : "toplevel", word, name,
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
    login_note(server, session, name, word, user != NULL, is_right);
    if (is_right) {
        server_set_user(server, session, user, true);
    }
    return is_right;
}

enum login_outcome login_try_address(struct server *server, const char *address, struct bytes name,
                                     struct bytes password, struct acl_user **user,
                                     int64_t *retry_ms) {
    struct session session;
    session_init(&session, 0, server->clock.monotonic_ms);
    snprintf(session.address, sizeof session.address,
             strchr(address, ':') != NULL ? "[%.100s]:0" : "%.100s:0", address);
    server_reset_user(server, &session);
    *retry_ms =
        auth_guard_retry_ms(&server->acl.guard, &server->settings,
                            auth_guard_address(session.address), name, server->clock.monotonic_ms);
    if (*retry_ms > 0) {
        return LOGIN_TOO_SOON;
    }
    if (!login_try(server, &session, name, password, BYTES("HTTP"))) {
        return LOGIN_WRONG;
    }
    *user = session.user;
    return LOGIN_RIGHT;
}
