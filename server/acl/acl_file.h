/* Users in files: `user` lines of leaderboard.conf, or the aclfile. */
#ifndef SERVER_ACL_FILE_H
#define SERVER_ACL_FILE_H

#include "server/sessions/server.h"

enum { ACL_FILE_ERROR_MAX = 4096 };

/* Make server->acl.users from the settings, and from the aclfile if there is one, whose absolute path is
 * then server->acl.path. Call before server_life_init; execute_init has been called. false: error
 * (SETTING_ERROR_MAX) says why. */
MUST_CHECK bool acl_file_begin(struct server *server, char *error);
/* ACL LOAD: all users as the file has them, or on an error nothing. Clients of users that are gone are
 * closed, but the caller gets its reply. error: ACL_FILE_ERROR_MAX, one line that names each bad line. */
MUST_CHECK bool acl_file_load(struct server *server, const struct session *caller, char *error);
/* ACL SAVE: temporary file, fsync, rename. error: ACL_FILE_ERROR_MAX. */
MUST_CHECK bool acl_file_save(const struct server *server, char *error);
/* Before CONFIG REWRITE: make the settings' `user` lines those of the users there are. Lines that say
 * what holds stay as they are. false: out of memory, or a user has too many rules for a line; error
 * (SETTING_ERROR_MAX). */
MUST_CHECK bool acl_file_to_settings(struct server *server, char *error);
/* Close the clients of a user that is to be removed; the one that runs a command gets its reply
 * first. */
void acl_file_close_clients(struct server *server, const struct acl_user *user,
                            const struct session *caller);

#endif
