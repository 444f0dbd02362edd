/* Tokens of users: secrets that say by themselves whose they are (HTTP's Bearer). No passwords: AUTH takes none.
 *
 *     token>label            make one of 256 random bits: ACL SETUSER alone, whose reply shows it, once
 *     token#SHA256[:label]   what is kept of it, and written to files
 *     token<label            remove it; or by its SHA-256
 *
 * A user's are texts "SHA256" or "SHA256:label". The index below leads from a token to its user in one step,
 * however many there are: by some digits of the SHA-256, which tell nothing of the token. The whole is then
 * compared with each of the user's, in a time that does not depend on where they differ. */
#ifndef SERVER_ACL_TOKEN_H
#define SERVER_ACL_TOKEN_H

#include "server/system/digest.h"

struct acl_user;
struct acl_list;

enum {
    ACL_TOKENS_MAX = 100, /* of one user */
    ACL_TOKEN_LABEL_MAX = 64,
    ACL_TOKEN_SIZE = 4 + DIGEST_TEXT_SIZE, /* "lbt_" and digits, of those that are made here */
    ACL_TOKEN_SIGN = 5,                    /* where a rule's sign is */
    ACL_TOKEN_RULE_MAX = ACL_TOKEN_SIGN + 1 + DIGEST_TEXT_SIZE + 1 + ACL_TOKEN_LABEL_MAX,
};

/* ---- rules ---- */

/* The sign of a rule about a token, '>' '#' '<'; 0: it is another rule. */
char acl_token_sign(struct bytes rule);
/* A name of at most ACL_TOKEN_LABEL_MAX (bytes_are_name), and no SHA-256. */
MUST_CHECK bool acl_token_is_label(struct bytes text);
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

/* ---- the index ---- */

struct acl_token_place {
    uint64_t key;          /* of the SHA-256 */
    struct acl_user *user; /* NULL: it is free */
};
/* Zero-initialised: empty. */
struct acl_tokens {
    struct acl_token_place *at;
    uint32_t count, capacity; /* a power of two, at least twice the count */
};

void acl_tokens_deinit(struct acl_tokens *tokens);
/* Room for ACL_TOKENS_MAX more. false: out of memory. */
MUST_CHECK bool acl_tokens_reserve(struct acl_tokens *tokens);
/* There is room. */
void acl_tokens_put_user(struct acl_tokens *tokens, struct acl_user *user);
/* All of the user's, which are there. */
void acl_tokens_take_user(struct acl_tokens *tokens, const struct acl_user *user);
void acl_tokens_clear(struct acl_tokens *tokens);
/* Whose is it? NULL: nobody's. */
struct acl_user *acl_tokens_find(const struct acl_tokens *tokens,
                                 const char digest[DIGEST_TEXT_SIZE]);

#endif
