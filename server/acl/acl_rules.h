/* Users as text: the rules of a user, which are Redis's, and `user` lines of leaderboard.conf or of the aclfile.
 *
 *     on >secret ~app:* &app:* +@read -lb.forget +config|get (%R~top:* +@read)
 *
 * and our own about tokens (acl.h).
 *
 * What is printed makes the same user when it is applied to a new one. Rules about commands are kept
 * in the order in which they were given, without those that later ones replace; a rule may also name
 * a command that Redis has and this server has not, since users' files are written for both. */
#ifndef SERVER_ACL_RULES_H
#define SERVER_ACL_RULES_H

#include "codec/buffer.h"
#include "server/acl/acl.h"
#include "server/sessions/server.h"

enum acl_status {
    ACL_OK,
    ACL_SYNTAX,
    ACL_UNKNOWN_NAME,
    ACL_KEYS_BEHIND_ALL,
    ACL_CHANNELS_BEHIND_ALL,
    ACL_NO_SUCH_PASSWORD,
    ACL_BAD_HASH,
    ACL_FIRST_ARG_OF_SUBCOMMAND,
    ACL_UNMATCHED_PARENTHESIS, /* of acl_rules_apply_all */
    ACL_BAD_TOKEN,
    ACL_NO_SUCH_TOKEN,
    ACL_LABEL_TAKEN,
    ACL_TOKEN_TAKEN,
    ACL_TOKEN_NOT_MADE,
    ACL_TEXT_TOO_LONG,
    ACL_TOO_MANY,
    ACL_OUT_OF_MEMORY,
};
/* Redis's text: "Syntax error". */
const char *acl_rules_status_text(enum acl_status status);

/* Can a user have this name? */
MUST_CHECK bool acl_rules_is_name(struct bytes name);
/* Apply a rule to a draft; see acl_user_finish. has_all_channels: new selectors and `reset` begin with
 * all channels (acl-pubsub-default). After an error the draft is good for nothing. */
MUST_CHECK enum acl_status acl_rules_apply(struct acl_user *draft, struct bytes rule,
                                           bool has_all_channels);
/* Apply all, joining "(~app:*" and "+get)", and finish the draft, which is to be one of these users. On an error *failed is the rule, or where its parenthesis
 * begins; joined holds it and must outlive its use (buffer_init by the caller). */
MUST_CHECK enum acl_status acl_rules_apply_all(struct acl_user *draft,
                                               const struct acl_users *users,
                                               const struct bytes *rules, uint32_t count,
                                               bool has_all_channels, struct buffer *joined,
                                               struct bytes *failed);

/* "on #9f86... ~app:* resetchannels -@all +@read (~top:* resetchannels -@all +get)" */
void acl_rules_print(const struct acl_user *user, struct buffer *out);
/* The same behind the name and a blank: a `user` line without its first word. */
void acl_rules_print_named(const struct acl_user *user, struct buffer *out);
/* Parts of it: "-@all +@read", "~app:* %R~top:*", "&app:*". */
void acl_rules_print_commands(const struct acl_selector *selector, struct buffer *out);
void acl_rules_print_keys(const struct acl_selector *selector, struct buffer *out);
void acl_rules_print_channels(const struct acl_selector *selector, struct buffer *out);
/* "on", "nopass", "sanitize-payload"; NULL after the last. */
const char *acl_rules_flag(const struct acl_user *user, uint32_t nth);

/* ---- users in files ---- */

enum { ACL_FILE_ERROR_MAX = 4096 };

/* Make server->acl.users from the settings, and from the aclfile if there is one, whose absolute path is
 * then server->acl.path. Call before server_life_init; execute_init has been called. false: error
 * (SETTING_ERROR_MAX) says why. */
MUST_CHECK bool acl_rules_begin(struct server *server, char *error);
/* ACL LOAD: all users as the file has them, or on an error nothing. Clients of users that are gone are
 * closed, but the caller gets its reply. error: ACL_FILE_ERROR_MAX, one line that names each bad line. */
MUST_CHECK bool acl_rules_load(struct server *server, const struct session *caller, char *error);
/* ACL SAVE: temporary file, fsync, rename. error: ACL_FILE_ERROR_MAX. */
MUST_CHECK bool acl_rules_save(const struct server *server, char *error);
/* Before CONFIG REWRITE: make the settings' `user` lines those of the users there are. Lines that say
 * what holds stay as they are. false: out of memory, or a user has too many rules for a line; error
 * (SETTING_ERROR_MAX). */
MUST_CHECK bool acl_rules_to_settings(struct server *server, char *error);
/* Close the clients of a user that is to be removed; the one that runs a command gets its reply
 * first. */
void acl_rules_close_clients(struct server *server, const struct acl_user *user,
                             const struct session *caller);

#endif
