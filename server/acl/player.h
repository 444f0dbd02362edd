/* Players: clients that nobody trusts, each of which has a token (server/system/jwt.h) that says who it is.
 *
 *     player-key web ed25519 ...     whoever shows a token of this key acts by the rights of the user player:web,
 *     user player:web ...            and writes of the member that the token names
 *
 * What a player may do is what its user may, and less than that:
 *
 *   - of commands that write only those which name the members that they change (COMMAND_OWN_MEMBER), and of members
 *     only the own one (call_check_own)
 *   - no time of its own (AT, PACKED), which would win ties
 *   - no new board; no hash, but one whose name follows from a pattern that is one of its user's, to the letter, and none
 *     of BOARDS
 *   - nothing that administers the server (COMMAND_ADMIN)
 *   - by name only boards that the key's BOARDS take; hashes are left to the user's rights
 *   - nothing once the token is over, or its key is gone
 *
 * Whoever is logged in as a player:KID without a token does not exist: see acl_is_of_players. */
#ifndef SERVER_ACL_PLAYER_H
#define SERVER_ACL_PLAYER_H

#include "server/dispatch/call.h"

/* Is what was given as a password the token of a player? name: the user that was named; at NULL: none. */
MUST_CHECK bool player_has_token(const struct server *server, struct bytes name,
                                 struct bytes password);

enum { PLAYER_TEXT_MAX = 256 };
/* Why a session with a player may not run it. NULL: it may, as far as that is known before it runs. text: has room for
 * PLAYER_TEXT_MAX bytes. */
const char *player_find_denial(const struct server *server, const struct session *session,
                               uint32_t command, const struct request *request, char *text);
/* May a player write hashes that are named by this pattern? false: the error was replied. */
MUST_CHECK bool player_may_name_hashes(const struct call *call, struct bytes pattern);
/* And this hash, which one of them names: is it none of the boards that there may be? */
MUST_CHECK bool player_may_write_hash(const struct call *call, struct bytes name);
#define PLAYER_NO_USER "there is no user player:KID of its kid, or it is off"
/* Why a token that was right counts no more, as jwt_status_text says it. NULL: it counts. */
const char *player_find_fault(const struct server *server, const struct jwt_player *player);

/* ---- revoked tokens ----
 *
 * A player whose tokens of before a time count no more is a hash in a database of the server's own: its key the player,
 * its only field "before", unix milliseconds. So this is in the journal and in snapshots as any hash. */

/* 0: all count. */
int64_t player_revoked_ms(struct registry *registry, struct bytes player, int64_t now_ms);
/* before_ms 0: all count again. false: out of memory, and nothing has changed. */
MUST_CHECK bool player_revoke(struct registry *registry, struct bytes player, int64_t before_ms,
                              int64_t now_ms);
/* Was this token made too early? One that does not say when it was, if any of the player's are. */
MUST_CHECK bool player_is_revoked(const struct server *server, const struct jwt_claims *claims);

/* ---- keys for other threads ---- */

/* Before anybody asks for keys. */
void player_keys_init(struct player_keys *keys);
/* Take them from the settings. */
void player_keys_set(struct player_keys *keys, const struct settings *settings);
/* Copy the hs256 key of this name, by which tokens can be made; from any thread. false: there is none. */
MUST_CHECK bool player_keys_find(struct player_keys *keys, const char *kid, struct jwt_key *key);
/* Copy the key that a token names; from any thread. false: there is none. */
MUST_CHECK bool player_keys_choose(struct player_keys *keys, struct bytes token,
                                   struct jwt_key *key);
/* Is a ticket's signature right? Where that takes long another thread asks first, and the engine finds the answer; a few
 * thousand others later, or in place of that thread, it looks itself. */
MUST_CHECK bool player_keys_check(struct player_keys *keys, const struct jwt_key *key,
                                  struct bytes ticket);
/* Was it asked that before? */
MUST_CHECK bool player_keys_know(struct player_keys *keys, const struct jwt_key *key,
                                 struct bytes ticket);

#endif
