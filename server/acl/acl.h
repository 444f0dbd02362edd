/* Users, and what they may do.
 *
 *     user "app" -- passwords, tokens   SHA-256 only
 *                -- selectors[0]        commands, keys and channels together: the user's own rules
 *                -- selectors[1] ...    further sets of rights: ( ... )
 *
 * A request is allowed if one selector allows all of it. Rules are read and written by
 * server/acl/acl_rules.h, which knows the commands' names; here commands are numbers.
 *
 * How this room works: rules are text in files and commands (acl_rules.h), and are applied to users
 * here; acl_check.h asks whether a user may run a request; what is refused is noted (struct acl_log), and
 * wrong passwords make the next attempt wait (auth_guard.h).
 *
 * A user is changed on a copy, which then takes its place (acl_users_replace); the user keeps its
 * address, so that sessions may point to it. The user "default" is always there. */
#ifndef SERVER_ACL_H
#define SERVER_ACL_H

#include "codec/bytes.h"
#include "server/system/digest.h"

struct acl_text {
    struct bytes text; /* owned */
    uint32_t hash;
    uint32_t value; /* what the list's owner keeps of it */
};
/* Zero-initialised: empty. */
struct acl_list {
    struct acl_text *at;
    uint32_t count, capacity;
};

void acl_list_deinit(struct acl_list *list);
/* The element with this text and, unless it is ACL_LIST_ANY, this value. NULL: there is none. */
#define ACL_LIST_ANY UINT32_MAX
struct acl_text *acl_list_find(const struct acl_list *list, struct bytes text, uint32_t value);
/* Append a copy. false: out of memory. */
MUST_CHECK bool acl_list_add(struct acl_list *list, struct bytes text, uint32_t value);
/* The others stay in order. */
void acl_list_remove(struct acl_list *list, uint32_t index);

struct acl_user;
struct server;
struct session;

/* ---- tokens ----
 *
 * Tokens of users: secrets that say by themselves whose they are (HTTP's Bearer). No passwords: AUTH takes none.
 *
 *     token>label            make one of 256 random bits: ACL SETUSER alone, whose reply shows it, once
 *     token#SHA256[:label]   what is kept of it, and written to files
 *     token<label            remove it; or by its SHA-256
 *
 * A user's are texts "SHA256" or "SHA256:label". The index below leads from a token to its user in one step,
 * however many there are: by some digits of the SHA-256, which tell nothing of the token. The whole is then
 * compared with each of the user's, in a time that does not depend on where they differ. */

enum {
    ACL_TOKENS_MAX = 100, /* of one user */
    ACL_TOKEN_LABEL_MAX = 64,
    ACL_TOKEN_SIZE = 4 + DIGEST_TEXT_SIZE, /* "lbt_" and digits, of those that are made here */
    ACL_TOKEN_SIGN = 5,                    /* where a rule's sign is */
    ACL_TOKEN_RULE_MAX = ACL_TOKEN_SIGN + 1 + DIGEST_TEXT_SIZE + 1 + ACL_TOKEN_LABEL_MAX,
};

/* The sign of a rule about a token, '>' '#' '<'; 0: it is another rule. */
char acl_token_sign(struct bytes rule);
/* "SHA256" or "SHA256:label". */
MUST_CHECK bool acl_token_is_kept(struct bytes text);
/* Of a kept one; empty: it has none. */
struct bytes acl_token_label(struct bytes kept);
/* The user's token of this SHA-256 or label; its index in the list, or the count: there is none. */
uint32_t acl_token_find(const struct acl_list *tokens, struct bytes name);

struct acl_token_made {
    char token[ACL_TOKEN_SIZE]; /* a secret */
    char rule[ACL_TOKEN_RULE_MAX];
    size_t rule_size;
};
/* For the rule "token>label" a token, and the rule that keeps it: "token#SHA256:label". false: the label is none. */
MUST_CHECK bool acl_token_make(struct bytes rule, struct acl_token_made *made);

struct acl_token_place {
    uint64_t key;          /* of the SHA-256 */
    struct acl_user *user; /* NULL: it is free */
};
/* Zero-initialised: empty. */
struct acl_tokens {
    struct acl_token_place *at;
    uint32_t count, capacity; /* a power of two, at least twice the count */
};

/* Whose is it? NULL: nobody's. */
struct acl_user *acl_tokens_find(const struct acl_tokens *tokens,
                                 const char digest[DIGEST_TEXT_SIZE]);

/* ---- users ---- */

enum {
    ACL_COMMANDS_MAX = 512,
    ACL_USERS_MAX = 10000,
    /* Of one user, over all selectors: */
    ACL_SELECTORS_MAX = 100,
    ACL_PASSWORDS_MAX = 100,
    ACL_PATTERNS_MAX = 20000,    /* keys and channels */
    ACL_SLOW_PATTERNS_MAX = 200, /* those with more than a * at their end */
    ACL_FIRST_ARGS_MAX = 1000,
    ACL_RULES_MAX = 2000,     /* about commands; of one selector */
    ACL_PASSWORD_MAX = 16384, /* bytes: hashing longer ones would take others\' time */
    ACL_TEXT_MAX = 1024,      /* bytes of a user's name, a pattern, or a first argument */
};

/* What a pattern permits, and what a command needs. */
enum { ACL_READ = 1, ACL_WRITE = 2, ACL_ALL = ACL_READ | ACL_WRITE };

/* A pattern, ready to be looked up: an exact name, or everything that begins like it. */
struct acl_prefix {
    struct bytes text;        /* of the list */
    uint32_t parent_plus_one; /* the longest other one that this one begins with; 0: none */
    uint8_t access;
    bool is_whole; /* the name alone */
};

struct acl_patterns {
    struct acl_list list;        /* value: access */
    struct acl_prefix *prefixes; /* sorted; made by acl_user_finish */
    uint32_t prefix_count;
    const struct acl_text **slow; /* the others */
    uint32_t slow_count;
};

struct acl_selector {
    bool has_all_keys, has_all_channels, has_all_commands;
    bool is_from_all; /* its rules begin with +@all */
    uint64_t commands[ACL_COMMANDS_MAX / 64];
    struct acl_list rules;      /* "+@read", "-zadd": after +@all or -@all, in order */
    struct acl_list first_args; /* value: a command that is allowed with this argument */
    struct acl_patterns keys, channels;
};

enum acl_sanitize { ACL_SANITIZE_UNSAID, ACL_SANITIZE_YES, ACL_SANITIZE_SKIP };

struct acl_user {
    struct bytes name; /* owned */
    bool is_on, has_no_password;
    enum acl_sanitize sanitize; /* for Redis's RESTORE; only kept and shown */
    struct acl_list passwords;  /* DIGEST_TEXT_SIZE bytes each */
    struct acl_list tokens;     /* "SHA256" or "SHA256:label" */
    struct acl_selector **selectors;
    uint32_t selector_count; /* at least 1 */
};

struct acl_users {
    struct acl_user **at; /* sorted by name */
    uint32_t count, capacity;
    struct acl_tokens tokens;
    struct acl_user *default_user;
};

static inline bool acl_selector_has_bit(const struct acl_selector *selector, uint32_t command) {
    return (selector->commands[command / 64] >> (command % 64) & 1) != 0;
}

/* A new user: off, without password and rights, but for all channels if has_all_channels. NULL: out
 * of memory. */
MUST_CHECK struct acl_user *acl_user_create(struct bytes name, bool has_all_channels);
void acl_user_destroy(struct acl_user *user);
/* NULL: out of memory. */
MUST_CHECK struct acl_user *acl_user_copy(const struct acl_user *user);
/* A selector without rights at the end of the user's. NULL: out of memory. */
MUST_CHECK struct acl_selector *acl_user_add_selector(struct acl_user *user, bool has_all_channels);
/* Drop all selectors but the first count_left. */
void acl_user_cut_selectors(struct acl_user *user, uint32_t count_left);
/* Make patterns ready, after all changes and before the user is used. false: out of memory. */
MUST_CHECK bool acl_user_finish(struct acl_user *user);
/* The password alone, or none if it is NULL, as requirepass has it. false: out of memory. */
MUST_CHECK bool acl_user_set_password(struct acl_user *user, const char *password);
/* Is it the SHA-256 of one of the passwords, or none needed? */
MUST_CHECK bool acl_user_has_password(const struct acl_user *user,
                                      const char digest[DIGEST_TEXT_SIZE]);
/* Is this one of the passwords, or none needed? */
MUST_CHECK bool acl_user_takes_password(const struct acl_user *user, struct bytes password);
/* May it run every command on all keys and channels? */
MUST_CHECK bool acl_user_may_everything(const struct acl_user *user);

/* May one of its sets of rights read the key? */
MUST_CHECK bool acl_user_may_read(const struct acl_user *user, struct bytes key);

/* Does a pattern with this access take the name? */
MUST_CHECK bool acl_patterns_take(const struct acl_patterns *patterns, struct bytes name,
                                  unsigned access);
/* Does a pattern with this access take everything that begins with the prefix? */
MUST_CHECK bool acl_patterns_cover(const struct acl_patterns *patterns, struct bytes prefix,
                                   unsigned access);

/* The default user may do everything, and needs the password if there is one. false: out of
 * memory. */
MUST_CHECK bool acl_users_init(struct acl_users *users, const char *password);
void acl_users_deinit(struct acl_users *users);
/* A user who may do everything, without a password: the default user at first. NULL: out of
 * memory. */
MUST_CHECK struct acl_user *acl_users_create_default(void);
/* Users by whose rights players act are called player:KID. Nobody logs in as one of them but with a player's token. */
#define ACL_PLAYER_PREFIX "player:"
/* What the guard against guessing calls all of them: no user is called so, because of the blank. */
#define ACL_PLAYERS BYTES("(a player)")
static inline bool acl_is_of_players(struct bytes name) {
    const size_t size = sizeof ACL_PLAYER_PREFIX - 1;
    return name.size > size && memcmp(name.at, ACL_PLAYER_PREFIX, size) == 0;
}
/* NULL: there is none. */
struct acl_user *acl_users_find(const struct acl_users *users, struct bytes name);
/* Make room for one more with its tokens. false: out of memory. */
MUST_CHECK bool acl_users_reserve(struct acl_users *users);
/* Give the draft, which is finished, to the user of its name, or add it; there is room. The draft is
 * then gone. Returns the user. */
struct acl_user *acl_users_replace(struct acl_users *users, struct acl_user *draft);
/* The user that is on whose token this is; NULL: there is none. In O(1), and the same time for every token that
 * is nobody's. */
MUST_CHECK struct acl_user *acl_users_find_token(const struct acl_users *users, struct bytes token);
/* Has another user one of its tokens? Such a draft may not be given to acl_users_replace. */
MUST_CHECK bool acl_users_have_token_of(const struct acl_users *users,
                                        const struct acl_user *draft);
/* Exchange both; but users whose name is in both keep the address they have in users. */
void acl_users_exchange(struct acl_users *users, struct acl_users *fresh);
/* It is not the default user. */
void acl_users_remove(struct acl_users *users, struct acl_user *user);

/* Can a client that has not authenticated run nothing? */
static inline bool acl_users_need_password(const struct acl_users *users) {
    return !users->default_user->has_no_password || !users->default_user->is_on;
}

MUST_CHECK bool acl_users_validate(const struct acl_users *users, const char **reason);

/* ---- ACL LOG ----
 *
 * What was refused to whom: logins that failed, and requests beyond a user's rights. What is refused again within a
 * minute is counted. */

enum { ACL_LOG_TEXT_MAX = 1024 }; /* bytes kept of a key's, channel's or user's name */

/* What a request lacks the right to; AUTH: a login that failed. */
enum acl_denial {
    ACL_ALLOWED,
    ACL_DENIED_COMMAND,
    ACL_DENIED_KEY,
    ACL_DENIED_CHANNEL,
    ACL_DENIED_AUTH,
    ACL_DENIALS
};
extern const char *const acl_denial_names[ACL_DENIALS]; /* "command" */

struct acl_log_entry {
    struct acl_log_entry *next; /* the one before it */
    uint64_t count;
    uint64_t id; /* of the first refusal that it counts, ascending */
    int64_t first_time_ms;
    enum acl_denial denial;
    const char *context;               /* "toplevel", "multi"; static */
    struct bytes object, user, client; /* session_print_line, without its end */
    int64_t time_ms;
    char texts[]; /* object and user */
};
/* Zero-initialised: empty. */
struct acl_log {
    struct acl_log_entry *first; /* the newest */
    uint32_t count;
    uint64_t next_id;
    uint64_t denied[ACL_DENIALS]; /* since the start, whether they are kept or not */
};

/* Without memory nothing is kept. context is static. */
void acl_log_add(struct acl_log *log, uint32_t length_max, enum acl_denial denial,
                 const char *context, struct bytes object, struct bytes user, struct bytes client,
                 int64_t now_ms);
void acl_log_clear(struct acl_log *log);

#endif
