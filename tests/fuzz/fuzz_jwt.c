/* Any bytes as a player's token, and as the header and the claims of one that is signed rightly: refused, or the player
 * that jwt_sign would give the same claims, or a ticket likewise. The first line may be a line of the settings. */
#include "server/system/jwt.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/jwt_maker.h"

enum { WORDS_MAX = 64, NOW = 1767225600 };

static struct bytes cut(struct bytes *text, char mark) {
    const char *end = text->size > 0 ? memchr(text->at, mark, text->size) : NULL;
    struct bytes part = {.at = text->at,
                         .size = end != NULL ? (size_t)(end - text->at) : text->size};
    size_t step = part.size + (end != NULL);
    *text = (struct bytes){.at = text->at + step, .size = text->size - step};
    return part;
}

static struct jwt_key read_key(struct bytes line) {
    struct bytes words[WORDS_MAX];
    struct jwt_key key;
    char error[JWT_ERROR_MAX] = "";
    size_t count = 0;
    while (line.size > 0 && count < WORDS_MAX) {
        words[count++] = cut(&line, ' ');
    }
    if (jwt_read_key(words, count, &key, error)) {
        CHECK(key.kid[0] != '\0' && strlen(key.kid) <= JWT_KID_MAX);
        bool takes_any = jwt_takes_board(&key, BYTES("board"));
        CHECK(takes_any || key.boards[0] != '\0');
    } else {
        CHECK(error[0] != '\0');
    }
    const struct bytes usual[] = {BYTES("back"), BYTES("hs256"), BYTES(JWT_MAKER_SECRET)};
    bool is_right = jwt_read_key(usual, 3, &key, error);
    CHECK(is_right);
    return key;
}

static void check(const struct jwt_key *key, struct bytes token, bool may_be_right) {
    struct jwt_claims claims;
    char again[JWT_SIZE_MAX];
    (void)jwt_choose_key(key, 1, token);
    bool is_like = jwt_is_like(token);
    enum jwt_status status = jwt_verify(key, token, NOW, &claims);
    CHECK(status < JWT_STATUSES && jwt_status_text(status)[0] != '\0');
    if (status != JWT_RIGHT) {
        return;
    }
    CHECK(may_be_right && token.size <= JWT_SIZE_MAX);
    CHECK(is_like || memcmp(token.at, "ey", 2) != 0);
    CHECK(claims.player_size > 0 && claims.player_size <= JWT_CLAIM_MAX);
    CHECK(claims.expires_s + JWT_SKEW_S > NOW && claims.issued_s <= NOW + JWT_SKEW_S);
    struct bytes player = {.at = claims.player, .size = claims.player_size};
    size_t size = jwt_sign(key, player, NOW, claims.expires_s, again);
    CHECK(size <= JWT_SIZE_MAX);
    if (size > 0) {
        struct jwt_claims claims_again;
        status = jwt_verify(key, (struct bytes){.at = again, .size = size}, NOW, &claims_again);
        CHECK(status == JWT_RIGHT && claims_again.expires_s == claims.expires_s);
        bool is_same = claims_again.player_size == claims.player_size &&
                       memcmp(claims_again.player, claims.player, claims.player_size) == 0;
        CHECK(is_same);
    }
}

/* The same as a ticket: never right where the login is, and what the server makes of it names the same. */
static void check_ticket(const struct jwt_key *key, struct bytes token, bool may_be_right) {
    static struct jwt_ticket ticket, again;
    struct jwt_claims claims;
    char made[JWT_SIZE_MAX];
    enum jwt_status status = jwt_verify_ticket(key, token, NOW * INT64_C(1000), false, &ticket);
    CHECK(status < JWT_STATUSES && jwt_status_text(status)[0] != '\0');
    if (status != JWT_RIGHT) {
        return;
    }
    CHECK(may_be_right && jwt_verify(key, token, NOW, &claims) == JWT_TYPE);
    CHECK(ticket.boards_size > 2 && ticket.boards_size <= sizeof ticket.boards);
    CHECK(ticket.id > 0 && ticket.start_ms > 0 && jwt_is_signed_by(key, token));
    CHECK(ticket.claims.expires_s - ticket.claims.issued_s <= JWT_TICKET_MAX_S);
    struct bytes board = {.at = ticket.boards + 2,
                          .size = (size_t)(unsigned char)ticket.boards[0] << 8 |
                                  (unsigned char)ticket.boards[1]};
    CHECK(jwt_ticket_names(&ticket, board));
    struct jwt_key own = *key;
    own.kid[0] = '\0';
    own.issuer[0] = own.audience[0] = '\0';
    size_t size = jwt_sign_ticket(&own, &ticket, board, made);
    CHECK(size <= sizeof made);
    if (size > 0 && ticket.claims.expires_s > NOW) {
        status = jwt_verify_ticket(&own, (struct bytes){.at = made, .size = size},
                                   NOW * INT64_C(1000), false, &again);
        CHECK(status == JWT_RIGHT && again.id == ticket.id && again.start_ms == ticket.start_ms);
        CHECK(again.database == ticket.database && jwt_ticket_names(&again, board));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char token[4 * JWT_SIZE_MAX];
    struct bytes text = {.at = (const char *)data, .size = size};
    struct jwt_key key = read_key(cut(&text, '\n'));
    check(&key, text, false);
    check_ticket(&key, text, false);
    if (text.size > 2 * JWT_SIZE_MAX) {
        return 0;
    }
    struct bytes header = cut(&text, '\n');
    struct bytes token_text = {.at = token};
    token_text.size = jwt_maker_make_of(JWT_HS256, header, text, token);
    check(&key, token_text, true);
    check_ticket(&key, token_text, true);
    /* What is not signed by this secret is never right. */
    token[token_text.size - 5] = token[token_text.size - 5] == 'A' ? 'B' : 'A';
    check(&key, token_text, false);
    check_ticket(&key, token_text, false);
    return 0;
}
