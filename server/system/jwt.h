/* Tokens that say who a player is: JSON Web Tokens (RFC 7519), signed by whoever has logged the player in.
 *
 *     base64url(header) . base64url(claims) . base64url(signature)
 *
 *     header    alg, and kid: which of our keys; it is needed if there are several
 *     claims    sub: the player; exp: until when; may have nbf, iat, iss, aud
 *
 * Tickets (server/commands/ticketing.h) are such tokens of another type, so that neither passes for the other:
 *
 *     header    typ: ticket+jwt; kid, but not in those that the server makes
 *     claims    sub, iat: when the run began, exp, boards: a name or a list of names; may have nbf, iss, aud, jti, db
 *
 * What RFC 8725 asks for: a key has one algorithm, whatever the header says, and the signature is looked at before any
 * claim is; no key or certificate is taken from a token; nothing is compressed or encrypted; `crit` is refused; no
 * member of header or claims may come twice; base64 has one form, without padding and without loose bits. */
#ifndef SERVER_JWT_H
#define SERVER_JWT_H

#include "codec/bytes.h"

enum {
    JWT_KEYS_MAX = 16,
    JWT_KID_MAX = 64,     /* bytes */
    JWT_SECRET_MIN = 32,  /* bytes of an hs256 key: as many as the hash has (RFC 7518, 3.2) */
    JWT_SECRET_MAX = 256, /* bytes */
    JWT_CLAIM_MAX = 255,  /* bytes of iss, aud and sub */
    JWT_BOARDS_MAX = 512, /* bytes of all patterns, one blank between each two */
    JWT_SIZE_MAX = 4096,  /* bytes of a token */
    JWT_ERROR_MAX = 512,
    JWT_SKEW_S = 60,              /* how far the clock of who signs may be from ours */
    JWT_TICKET_BOARDS_MAX = 1024, /* bytes of all names of a ticket's boards, each with two more */
    JWT_TICKET_MAX_S = 86400,     /* from iat to exp */
};

enum jwt_algorithm { JWT_HS256, JWT_ED25519 };

/* Texts are terminated; "" where a key does not have it. */
struct jwt_key {
    enum jwt_algorithm algorithm;
    char kid[JWT_KID_MAX + 1];
    char text[2 * JWT_SECRET_MAX + 1]; /* the key as it was written */
    unsigned char secret[JWT_SECRET_MAX];
    size_t secret_size;
    char issuer[JWT_CLAIM_MAX + 1], audience[JWT_CLAIM_MAX + 1];
    uint64_t mark; /* of what tokens are checked by: another key, issuer or audience has another */
    char boards[JWT_BOARDS_MAX + 1]; /* patterns; "": the rights of its user alone */
};

/* The words of a line: kid hs256|ed25519 key [ISS issuer] [AUD audience] [BOARDS pattern ...]. An hs256 key is text, or
 * bytes in base64 behind "base64:"; an ed25519 key is base64 of the 32 bytes, or of what openssl writes between the
 * lines of a PEM file. error: JWT_ERROR_MAX bytes. */
MUST_CHECK bool jwt_read_key(const struct bytes *words, size_t count, struct jwt_key *key,
                             char *error);
/* May tokens of this key be used on this board? */
MUST_CHECK bool jwt_takes_board(const struct jwt_key *key, struct bytes board);
/* NULL: there is none. */
const struct jwt_key *jwt_find_key(const struct jwt_key *keys, uint32_t count, struct bytes kid);

enum jwt_status {
    JWT_RIGHT,
    JWT_MALFORMED,
    JWT_NO_KEY,    /* no key of this kid, or there are several and it names none */
    JWT_ALGORITHM, /* another one than the key's */
    JWT_TYPE,      /* a ticket where a login is asked for, or the other way round */
    JWT_SIGNATURE,
    JWT_NO_PLAYER, /* sub is missing, empty or too long */
    JWT_NO_END,    /* exp is missing */
    JWT_EXPIRED,
    JWT_NOT_YET,
    JWT_ISSUER,
    JWT_AUDIENCE, /* also if the token names one and the key does not */
    JWT_NO_START, /* of a ticket: iat is missing */
    JWT_NO_BOARD, /* of a ticket: boards is missing, empty or too long */
    JWT_TOO_LONG, /* of a ticket: more than JWT_TICKET_MAX_S from iat to exp */
    JWT_STATUSES,
};
/* Is the signature right, whatever the claims are? Who has such a token guesses nothing. */
static inline bool jwt_is_signed(enum jwt_status status) {
    return status == JWT_RIGHT || status > JWT_SIGNATURE;
}
/* "the signature is wrong": for the client, too: it tells nothing that helps to make one. */
const char *jwt_status_text(enum jwt_status status);

struct jwt_claims {
    char player[JWT_CLAIM_MAX + 1];
    size_t player_size;
    int64_t expires_s; /* as in the token: it holds for JWT_SKEW_S longer */
    int64_t issued_s;  /* 0: not said */
    uint64_t key_mark; /* of the key that it was checked by */
};
/* Whose token it is. */
struct jwt_player {
    char kid[JWT_KID_MAX + 1]; /* of the key; "": it is of none */
    struct jwt_claims claims;
};

/* Has the text the form of one: three parts of base64url, of which the first can be an object? Tokens that are made here
 * (acl.h) and nearly all passwords have not. */
MUST_CHECK bool jwt_is_like(struct bytes text);
/* With which of the keys is it signed, as it says? Not verified: only to copy that key. NULL: none; a ticket has to name
 * one. */
const struct jwt_key *jwt_choose_key(const struct jwt_key *keys, uint32_t count,
                                     struct bytes token);
/* Is it right, by this key and this time? claims: set if it is. 3 us with hs256, 60 with ed25519. */
MUST_CHECK enum jwt_status jwt_verify(const struct jwt_key *key, struct bytes token, int64_t now_s,
                                      struct jwt_claims *claims);
/* Make one, with an hs256 key, for a player whose name is UTF-8 without control characters. out has JWT_SIZE_MAX bytes.
 * Returns its size; 0: not with this key, or not for this name. */
size_t jwt_sign(const struct jwt_key *key, struct bytes player, int64_t now_s, int64_t expires_s,
                char *out);

/* ---- tickets ---- */

struct jwt_ticket {
    struct jwt_claims claims;
    int64_t start_ms; /* iat, to the millisecond */
    uint64_t id;      /* jti, if it is a number; of other tickets start_ms */
    uint64_t database;
    char boards[JWT_TICKET_BOARDS_MAX]; /* of each name its size, in two bytes, and the name */
    size_t boards_size;
};
/* Is it right? A key without kid, of the server's own, is for tickets without one, and its clock is ours. signature: has
 * the signature been looked at before, and found right? 3 us with hs256, 60 with ed25519, 2 without. */
MUST_CHECK enum jwt_status jwt_verify_ticket(const struct jwt_key *key, struct bytes token,
                                             int64_t now_ms, bool is_signed,
                                             struct jwt_ticket *ticket);
/* Is its signature right, whatever else it is? */
MUST_CHECK bool jwt_is_signed_by(const struct jwt_key *key, struct bytes token);
MUST_CHECK bool jwt_ticket_names(const struct jwt_ticket *ticket, struct bytes board);
/* Make one, with an hs256 key; as jwt_sign. Of ticket: claims.player, claims.expires_s, start_ms, id, database. */
size_t jwt_sign_ticket(const struct jwt_key *key, const struct jwt_ticket *ticket,
                       struct bytes board, char *out);

#endif
