/* Logging in. Every authentication goes through here, whatever asks for it: AUTH, HELLO, a client's
 * certificate, HTTP. */
#ifndef SERVER_LOGIN_H
#define SERVER_LOGIN_H

#include "server/sessions/server.h"

/* Make the session that user's if the password is right and the user is on. word: what asked, for ACL
 * LOG. false: nothing has changed, and the failure is in ACL LOG. */
MUST_CHECK bool login_try(struct server *server, struct session *session, struct bytes name,
                          struct bytes password, struct bytes word);

/* The same with a player's token (server/acl/player.h). NULL: it is right; otherwise what is wrong with it. */
MUST_CHECK const char *login_try_player(struct server *server, struct session *session,
                                        struct bytes token, struct bytes word);

/* Over HTTP there is neither a session nor anything that could wait. */
enum login_outcome { LOGIN_RIGHT, LOGIN_WRONG, LOGIN_TOO_SOON };
/* address: without a port, "10.0.0.9" or "::1". RIGHT: *user. TOO_SOON: nothing was looked at; this
 * address may try again in *retry_ms. */
MUST_CHECK enum login_outcome login_try_address(struct server *server, const char *address,
                                                struct bytes name, struct bytes password,
                                                struct acl_user **user, int64_t *retry_ms);
/* The same with a token, which says by itself whose it is. The guard knows it by its SHA-256 instead of a name. */
MUST_CHECK enum login_outcome login_try_token(struct server *server, const char *address,
                                              struct bytes token, struct acl_user **user,
                                              int64_t *retry_ms);
/* The same with a player's token, which the HTTP thread has looked at: whose it says it is, and whether that is right.
 * WRONG: *wrong says why. */
MUST_CHECK enum login_outcome login_try_player_address(struct server *server, const char *address,
                                                       const struct jwt_player *given,
                                                       enum jwt_status status,
                                                       struct acl_user **user, const char **wrong,
                                                       int64_t *retry_ms);

#endif
