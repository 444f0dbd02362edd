/* May a user run a request? Only asked for users who may not do everything (session->is_unlimited).
 *
 * Keys are those that the command's key specifications name. Commands that come to keys by a pattern
 * of their own (LB.FORGET MATCH x*, LB.RANGE DATA x*) need rights on all that the pattern can name:
 * ~*, or a pattern of the user's with which it begins (~x* for x:*). */
#ifndef SERVER_ACL_CHECK_H
#define SERVER_ACL_CHECK_H

#include "server/acl/acl.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"

/* *position: of the key or channel that is denied. */
MUST_CHECK enum acl_denial acl_check(const struct acl_user *user, uint32_t command,
                                     const struct request *request, uint32_t *position);
/* One key of a command that waited for it. */
MUST_CHECK bool acl_check_key(const struct acl_user *user, uint32_t command, struct bytes key);

/* Note in ACL LOG what was refused to a client. */
void acl_check_log(struct server *server, const struct session *session, enum acl_denial denial,
                   struct bytes object, struct bytes user);
/* Note a denied request in ACL LOG, and return Redis's error. text: ACL_DENIAL_MAX. is_changed: it
 * was queued by MULTI when it was still allowed. */
enum { ACL_DENIAL_MAX = 256 };
const char *acl_check_deny(struct server *server, const struct session *session, uint32_t command,
                           const struct request *request, enum acl_denial denial, uint32_t position,
                           bool is_changed, char *text);

/* May who runs a command run this one, too? Nothing is replied or noted. */
MUST_CHECK bool acl_check_also(const struct call *call, uint32_t command,
                               const struct request *request);

/* What a command comes to by a pattern: all keys that match it, or with is_key those that are made of
 * it by a member in the place of its first *. access: ACL_READ, ACL_WRITE. false: the error was
 * replied. */
MUST_CHECK bool acl_check_pattern(const struct call *call, struct bytes pattern, bool is_key,
                                  unsigned access);

/* The same of a key that a command has made of its arguments (LB.ADD HSET). beside: one that it names; in a cluster
 * both must be in one slot. */
MUST_CHECK bool acl_check_made_key(const struct call *call, struct bytes key, struct bytes beside,
                                   unsigned access);

/* After a change of users, refresh the rights of the sessions, and close subscribers that have no right
 * to one of their channels, or to the board that it is about, and monitors without the right to
 * MONITOR. user: the one that has changed; NULL: any may have. */
void acl_check_refresh(struct server *server, const struct acl_user *user);

#endif
