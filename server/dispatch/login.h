/* Logging in. Every authentication goes through here, whatever asks for it: AUTH, HELLO, a client's
 * certificate. */
#ifndef SERVER_LOGIN_H
#define SERVER_LOGIN_H

#include "server/clients/server.h"

/* Make the session that user's if the password is right and the user is on. word: what asked, for ACL
 * LOG. false: nothing has changed, and the failure is in ACL LOG. */
MUST_CHECK bool login_try(struct server *server, struct session *session, struct bytes name,
                          struct bytes password, struct bytes word);

#endif
