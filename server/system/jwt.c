/* Reading, checking and making JSON Web Tokens, with OpenSSL's HMAC-SHA256 and Ed25519. See jwt.h. */
#include "server/system/jwt.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdarg.h>
#include <stdio.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/glob.h"
#include "codec/json.h"

enum {
    SHA256_SIZE = 32,
    ED25519_KEY_SIZE = 32,
    ED25519_SIGNATURE_SIZE = 64,
    DEPTH_MAX = 8, /* of values that nobody reads */
    MS_PER_S = 1000,
};

static bool jwt_equals(struct bytes text, const char *other) {
    return bytes_equal(text, bytes_from_text(other));
}

/* ---- base64 ---- */

static const char digits_of_urls[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Of either alphabet if it may be; -1: none. */
static int jwt_digit(char digit, bool takes_both) {
    const char *found = digit != '\0' ? strchr(digits_of_urls, digit) : NULL;
    if (found != NULL) {
        return (int)(found - digits_of_urls);
    }
    return takes_both && digit == '+' ? 62 : takes_both && digit == '/' ? 63 : -1;
}

/* out has room for 3/4 of the text. false: it is none, or another text stands for the same bytes. */
static bool jwt_decode(struct bytes text, bool takes_both, unsigned char *out, size_t *size) {
    uint32_t bits = 0;
    unsigned bit_count = 0;
    *size = 0;
    for (size_t i = 0; i < text.size; i++) {
        int digit = jwt_digit(text.at[i], takes_both);
        if (digit < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)digit;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            out[(*size)++] = (unsigned char)(bits >> bit_count);
            bits &= (1U << bit_count) - 1;
        }
    }
    return bit_count < 6 && bits == 0;
}

static size_t jwt_encode(struct bytes bytes, char *out) {
    size_t size = 0;
    uint32_t bits = 0;
    unsigned bit_count = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        bits = bits << 8 | (unsigned char)bytes.at[i];
        for (bit_count += 8; bit_count >= 6; bit_count -= 6) {
            out[size++] = digits_of_urls[bits >> (bit_count - 6) & 63];
        }
    }
    if (bit_count > 0) {
        out[size++] = digits_of_urls[bits << (6 - bit_count) & 63];
    }
    return size;
}

/* ---- keys ---- */

__attribute__((format(printf, 2, 3))) static bool jwt_fail(char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, JWT_ERROR_MAX, format, arguments);
    va_end(arguments);
    return false;
}

static bool jwt_copy(struct bytes word, size_t size_max, char *out, char *error) {
    if (word.size == 0 || word.size > size_max) {
        return jwt_fail(error, "'%s' is empty or too long", bytes_show(word).text);
    }
    memcpy(out, word.at, word.size);
    out[word.size] = '\0';
    return true;
}

/* Base64 with or without padding. */
static bool jwt_decode_key(struct bytes text, struct jwt_key *key) {
    while (text.size > 0 && text.at[text.size - 1] == '=') {
        text.size--;
    }
    return text.size * 3 / 4 <= sizeof key->secret &&
           jwt_decode(text, true, key->secret, &key->secret_size);
}

static bool jwt_read_secret(struct bytes text, struct jwt_key *key) {
    static const char prefix[] = "base64:";
    size_t prefix_size = sizeof prefix - 1;
    if (text.size > prefix_size && memcmp(text.at, prefix, prefix_size) == 0) {
        return jwt_decode_key(
                   (struct bytes){.at = text.at + prefix_size, .size = text.size - prefix_size},
                   key) &&
               key->secret_size >= JWT_SECRET_MIN;
    }
    key->secret_size = text.size;
    if (text.size > sizeof key->secret || text.size < JWT_SECRET_MIN) {
        return false;
    }
    memcpy(key->secret, text.at, text.size);
    return true;
}

/* RFC 8410: what stands before the bytes of an Ed25519 key in a file of openssl's. */
static const unsigned char der_prefix[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                           0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

static bool jwt_read_public(struct bytes text, struct jwt_key *key) {
    if (!jwt_decode_key(text, key)) {
        return false;
    }
    if (key->secret_size == sizeof der_prefix + ED25519_KEY_SIZE &&
        memcmp(key->secret, der_prefix, sizeof der_prefix) == 0) {
        memmove(key->secret, key->secret + sizeof der_prefix, ED25519_KEY_SIZE);
        key->secret_size = ED25519_KEY_SIZE;
    }
    return key->secret_size == ED25519_KEY_SIZE;
}

static bool jwt_read_boards(const struct bytes *words, size_t count, struct jwt_key *key,
                            char *error) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (words[i].size == 0 || words[i].size > GLOB_PATTERN_MAX ||
            size + 1 + words[i].size > JWT_BOARDS_MAX || memchr(words[i].at, ' ', words[i].size)) {
            return jwt_fail(error, "BOARDS: '%s' is empty, has a blank, or is too much",
                            bytes_show(words[i]).text);
        }
        key->boards[size] = ' ';
        size += size > 0;
        memcpy(key->boards + size, words[i].at, words[i].size);
        size += words[i].size;
        key->boards[size] = '\0';
    }
    return count > 0 || jwt_fail(error, "BOARDS takes patterns of keys");
}

static bool jwt_read_words(const struct bytes *words, size_t count, struct jwt_key *key,
                           char *error) {
    enum { KID, ALGORITHM, KEY, OPTIONS };
    *key = (struct jwt_key){.algorithm = JWT_HS256};
    if (count < OPTIONS) {
        return jwt_fail(error, "the form is: kid hs256|ed25519 key");
    }
    for (size_t i = 0; i < words[KID].size; i++) {
        char each = words[KID].at[i];
        if (each <= ' ' || each > '~') {
            return jwt_fail(error, "'%s': a kid has letters, digits and signs",
                            bytes_show(words[KID]).text);
        }
    }
    bool is_public = bytes_is(words[ALGORITHM], "ed25519");
    if (!is_public && !bytes_is(words[ALGORITHM], "hs256")) {
        return jwt_fail(error, "'%s' is neither hs256 nor ed25519",
                        bytes_show(words[ALGORITHM]).text);
    }
    key->algorithm = is_public ? JWT_ED25519 : JWT_HS256;
    if (!jwt_copy(words[KID], JWT_KID_MAX, key->kid, error)) {
        return false;
    }
    if (words[KEY].size >= sizeof key->text ||
        !(is_public ? jwt_read_public(words[KEY], key) : jwt_read_secret(words[KEY], key))) {
        return jwt_fail(
            error,
            is_public ? "kid '%s': no ed25519 key: base64 of its 32 bytes is expected"
                      : "kid '%s': an hs256 key has 32 to 256 bytes, as text or as base64:...",
            bytes_show(words[KID]).text);
    }
    memcpy(key->text, words[KEY].at, words[KEY].size);
    for (size_t i = OPTIONS; i < count; i += 2) {
        bool is_issuer = bytes_is(words[i], "ISS");
        if (bytes_is(words[i], "BOARDS")) {
            return jwt_read_boards(words + i + 1, count - i - 1, key, error);
        }
        if ((!is_issuer && !bytes_is(words[i], "AUD")) || i + 1 == count) {
            return jwt_fail(error,
                            "'%s': ISS issuer, AUD audience and BOARDS pattern ... may follow",
                            bytes_show(words[i]).text);
        }
        char *text = is_issuer ? key->issuer : key->audience;
        if (text[0] != '\0') {
            return jwt_fail(error, "%s comes twice", is_issuer ? "ISS" : "AUD");
        }
        if (!jwt_copy(words[i + 1], JWT_CLAIM_MAX, text, error)) {
            return false;
        }
    }
    return true;
}

bool jwt_read_key(const struct bytes *words, size_t count, struct jwt_key *key, char *error) {
    if (!jwt_read_words(words, count, key, error)) {
        return false;
    }
    key->mark = XXH3_64bits_withSeed(key->secret, key->secret_size, (uint64_t)key->algorithm);
    key->mark = XXH3_64bits_withSeed(key->issuer, strlen(key->issuer), key->mark);
    key->mark = XXH3_64bits_withSeed(key->audience, strlen(key->audience), key->mark);
    return true;
}

bool jwt_takes_board(const struct jwt_key *key, struct bytes board) {
    const char *at = key->boards;
    while (*at != '\0') {
        size_t size = strcspn(at, " ");
        if (glob_matches((struct bytes){.at = at, .size = size}, board)) {
            return true;
        }
        at += size + (at[size] == ' ');
    }
    return key->boards[0] == '\0';
}

const struct jwt_key *jwt_find_key(const struct jwt_key *keys, uint32_t count, struct bytes kid) {
    for (uint32_t i = 0; i < count; i++) {
        if (jwt_equals(kid, keys[i].kid)) {
            return &keys[i];
        }
    }
    return NULL;
}

/* ---- JSON ---- */

/* The parts, as they stand in the token. */
struct jwt_parts {
    struct bytes header, claims, signature, is_signed;
};

static bool jwt_split(struct bytes token, struct jwt_parts *parts) {
    const char *dots[2];
    const char *end = token.at + token.size;
    dots[0] = token.size <= JWT_SIZE_MAX ? memchr(token.at, '.', token.size) : NULL;
    dots[1] = dots[0] != NULL ? memchr(dots[0] + 1, '.', (size_t)(end - dots[0] - 1)) : NULL;
    if (dots[1] == NULL) {
        return false;
    }
    parts->header = (struct bytes){.at = token.at, .size = (size_t)(dots[0] - token.at)};
    parts->claims = (struct bytes){.at = dots[0] + 1, .size = (size_t)(dots[1] - dots[0] - 1)};
    parts->signature = (struct bytes){.at = dots[1] + 1, .size = (size_t)(end - dots[1] - 1)};
    parts->is_signed = (struct bytes){.at = token.at, .size = (size_t)(dots[1] - token.at)};
    return parts->header.size > 0 && parts->claims.size > 0;
}

/* An object that is read member by member. */
struct jwt_object {
    unsigned char text[JWT_SIZE_MAX];
    struct json_reader reader;
    char value[JWT_SIZE_MAX]; /* the last text */
    size_t value_size;
};

static bool jwt_take_value(struct jwt_object *object) {
    return json_take_text(&object->reader, object->value, sizeof object->value,
                          &object->value_size);
}

/* What the last text is; a zero byte in it makes it none of ours. */
static struct bytes jwt_value(const struct jwt_object *object) {
    return (struct bytes){.at = object->value, .size = object->value_size};
}

static bool jwt_take_word(struct json_reader *reader, const char *word) {
    size_t size = strlen(word);
    bool is_there =
        (size_t)(reader->end - reader->at) >= size && memcmp(reader->at, word, size) == 0;
    reader->at += is_there ? size : 0;
    return is_there;
}

static bool jwt_skip_value(struct jwt_object *object, unsigned depth);

/* The rest of a list or an object. */
static bool jwt_skip_rest(struct jwt_object *object, char end, unsigned depth) {
    struct json_reader *reader = &object->reader;
    if (json_take(reader, end)) {
        return true;
    }
    do {
        bool is_named = end != '}' || (jwt_take_value(object) && json_take(reader, ':'));
        if (!is_named || !jwt_skip_value(object, depth + 1)) {
            return false;
        }
    } while (json_take(reader, ','));
    return json_take(reader, end);
}

static bool jwt_skip_value(struct jwt_object *object, unsigned depth) {
    struct json_reader *reader = &object->reader;
    struct bytes number;
    if (depth > DEPTH_MAX) {
        return false;
    }
    if (json_take(reader, '{')) {
        return jwt_skip_rest(object, '}', depth);
    }
    if (json_take(reader, '[')) {
        return jwt_skip_rest(object, ']', depth);
    }
    if (json_take_number(reader, &number) || jwt_take_word(reader, "true") ||
        jwt_take_word(reader, "false") || jwt_take_word(reader, "null")) {
        return true;
    }
    return jwt_take_value(object);
}

/* The members that are read; each may come once. */
enum jwt_member {
    MEMBER_ALG,
    MEMBER_KID,
    MEMBER_TYP,
    MEMBER_CRIT,
    MEMBER_SUB,
    MEMBER_EXP,
    MEMBER_NBF,
    MEMBER_IAT,
    MEMBER_ISS,
    MEMBER_AUD,
    MEMBER_BOARDS, /* this and what follows is of tickets */
    MEMBER_JTI,
    MEMBER_DB,
    MEMBERS
};
static const char *const member_names[MEMBERS] = {
    "alg", "kid", "typ", "crit", "sub", "exp", "nbf", "iat", "iss", "aud", "boards", "jti", "db"};

/* Read the object of a part; take is called for each member that is read, in front of its value. */
typedef bool jwt_take_member(void *context, struct jwt_object *object, enum jwt_member member);
static bool jwt_read_object(struct bytes part, jwt_take_member *take, void *context) {
    struct jwt_object object;
    unsigned seen = 0;
    size_t size;
    if (!jwt_decode(part, false, object.text, &size)) {
        return false;
    }
    const char *text = (const char *)object.text;
    object.reader = (struct json_reader){.at = text, .end = text + size};
    if (!json_take(&object.reader, '{')) {
        return false;
    }
    do {
        if (!jwt_take_value(&object) || !json_take(&object.reader, ':')) {
            return false;
        }
        unsigned member = 0;
        while (member < MEMBERS && !jwt_equals(jwt_value(&object), member_names[member])) {
            member++;
        }
        bool is_twice = member < MEMBERS && (seen >> member & 1) != 0;
        seen |= 1U << member;
        if (is_twice || !(member < MEMBERS ? take(context, &object, (enum jwt_member)member)
                                           : jwt_skip_value(&object, 0))) {
            return false;
        }
    } while (json_take(&object.reader, ','));
    return json_take(&object.reader, '}') && json_is_over(&object.reader);
}

/* ---- the header ---- */

struct jwt_header {
    char algorithm[16], kid[JWT_KID_MAX + 1];
    size_t kid_size;
    bool is_of_ticket;
};
#define TICKET_TYPE "ticket+jwt"

static bool jwt_take_of_header(void *context, struct jwt_object *object, enum jwt_member member) {
    struct jwt_header *header = context;
    if (member == MEMBER_CRIT) {
        return false; /* what must be understood is not */
    }
    if (member != MEMBER_ALG && member != MEMBER_KID && member != MEMBER_TYP) {
        return jwt_skip_value(object, 0);
    }
    if (!jwt_take_value(object)) {
        return false;
    }
    if (member == MEMBER_TYP) {
        header->is_of_ticket = bytes_equal_ignoring_case(jwt_value(object), BYTES(TICKET_TYPE));
        return header->is_of_ticket || bytes_equal_ignoring_case(jwt_value(object), BYTES("JWT"));
    }
    if (member == MEMBER_KID) {
        header->kid_size = object->value_size;
        bool is_kid = header->kid_size > 0 && header->kid_size < sizeof header->kid;
        memcpy(header->kid, object->value, is_kid ? header->kid_size : 0);
        return is_kid;
    }
    bool is_text = object->value_size < sizeof header->algorithm &&
                   memchr(object->value, '\0', object->value_size) == NULL;
    memcpy(header->algorithm, object->value, is_text ? object->value_size : 0);
    return is_text;
}

static bool jwt_read_header(struct bytes token, struct jwt_parts *parts,
                            struct jwt_header *header) {
    *header = (struct jwt_header){.kid_size = 0};
    return jwt_split(token, parts) && jwt_read_object(parts->header, jwt_take_of_header, header);
}

bool jwt_is_like(struct bytes text) {
    struct jwt_parts parts;
    bool is_like = text.size > 2 && memcmp(text.at, "ey", 2) == 0 && jwt_split(text, &parts);
    for (size_t i = 0; is_like && i < text.size; i++) {
        is_like = text.at[i] == '.' || jwt_digit(text.at[i], false) >= 0;
    }
    return is_like;
}

const struct jwt_key *jwt_choose_key(const struct jwt_key *keys, uint32_t count,
                                     struct bytes token) {
    struct jwt_parts parts;
    struct jwt_header header;
    if (!jwt_read_header(token, &parts, &header)) {
        return NULL;
    }
    return header.kid_size > 0
               ? jwt_find_key(keys, count,
                              (struct bytes){.at = header.kid, .size = header.kid_size})
           : count == 1 && !header.is_of_ticket ? &keys[0]
                                                : NULL;
}

/* ---- signatures ---- */

static void jwt_hash(const struct jwt_key *key, struct bytes text, unsigned char out[SHA256_SIZE]) {
    unsigned size = 0;
    const unsigned char *made = HMAC(EVP_sha256(), key->secret, (int)key->secret_size,
                                     (const unsigned char *)text.at, text.size, out, &size);
    CHECK(made != NULL);
    CHECK(size == SHA256_SIZE);
}

static bool jwt_check_signature(const struct jwt_key *key, const struct jwt_parts *parts) {
    unsigned char given[JWT_SIZE_MAX], own[SHA256_SIZE];
    size_t size;
    if (!jwt_decode(parts->signature, false, given, &size)) {
        return false;
    }
    if (key->algorithm == JWT_HS256) {
        jwt_hash(key, parts->is_signed, own);
        return size == sizeof own && CRYPTO_memcmp(given, own, sizeof own) == 0;
    }
    if (size != ED25519_SIGNATURE_SIZE) {
        return false;
    }
    EVP_PKEY *public =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key->secret, key->secret_size);
    EVP_MD_CTX *context = public != NULL ? EVP_MD_CTX_new() : NULL;
    bool is_right =
        context != NULL && EVP_DigestVerifyInit(context, NULL, NULL, NULL, public) == 1 &&
        EVP_DigestVerify(context, given, size, (const unsigned char *)parts->is_signed.at,
                         parts->is_signed.size) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(public);
    return is_right;
}

/* ---- claims ---- */

struct jwt_reading {
    const struct jwt_key *key;
    struct jwt_claims *claims;
    struct jwt_ticket *ticket; /* NULL: it is a login */
    int64_t begins_s;
    bool has_end, has_start, has_issuer, is_issuer, has_audience, is_audience, is_player;
    bool has_boards;
};

/* Seconds since 1970; of a fraction the milliseconds. */
static bool jwt_take_time(struct json_reader *reader, int64_t *seconds, unsigned *ms) {
    enum { DIGITS_MAX = 12 };
    struct bytes text;
    if (!json_take_number(reader, &text)) {
        return false;
    }
    const char *point = memchr(text.at, '.', text.size);
    struct bytes whole = {.at = text.at,
                          .size = point != NULL ? (size_t)(point - text.at) : text.size};
    *ms = 0;
    for (size_t i = whole.size + 1, unit = 100; i < text.size; i++, unit /= 10) {
        if (text.at[i] < '0' || text.at[i] > '9') {
            return false;
        }
        *ms += (unsigned)(text.at[i] - '0') * (unsigned)unit;
    }
    return whole.size <= DIGITS_MAX && bytes_parse_i64(whole, seconds) && *seconds >= 0;
}

/* One text, or a list of them. */
static bool jwt_take_audience(struct jwt_object *object, struct jwt_reading *reading) {
    struct json_reader *reader = &object->reader;
    bool is_list = json_take(reader, '[');
    reading->has_audience = true;
    if (is_list && json_take(reader, ']')) {
        return true;
    }
    do {
        if (!jwt_take_value(object)) {
            return false;
        }
        reading->is_audience |= jwt_equals(jwt_value(object), reading->key->audience);
    } while (is_list && json_take(reader, ','));
    return !is_list || json_take(reader, ']');
}

/* One name, or a list of them. */
static bool jwt_take_boards(struct jwt_object *object, struct jwt_reading *reading) {
    struct jwt_ticket *ticket = reading->ticket;
    struct json_reader *reader = &object->reader;
    bool is_list = json_take(reader, '[');
    reading->has_boards = true;
    do {
        if (!jwt_take_value(object)) {
            return false;
        }
        if (object->value_size == 0 ||
            object->value_size + 2 > sizeof ticket->boards - ticket->boards_size) {
            reading->has_boards = false;
            continue;
        }
        char *at = ticket->boards + ticket->boards_size;
        at[0] = (char)(object->value_size >> 8);
        at[1] = (char)object->value_size;
        memcpy(at + 2, object->value, object->value_size);
        ticket->boards_size += 2 + object->value_size;
    } while (is_list && json_take(reader, ','));
    return !is_list || json_take(reader, ']');
}

/* jti: a text, which is the id if it is a number. */
static bool jwt_take_id(struct jwt_object *object, struct jwt_reading *reading) {
    int64_t id;
    if (!jwt_take_value(object)) {
        return false;
    }
    bool is_own = reading->key->kid[0] == '\0' && bytes_parse_i64(jwt_value(object), &id) && id > 0;
    reading->ticket->id = is_own ? (uint64_t)id : 0;
    return true;
}

static bool jwt_take_player(struct jwt_object *object, struct jwt_reading *reading) {
    struct jwt_claims *claims = reading->claims;
    if (!jwt_take_value(object)) {
        return false;
    }
    reading->is_player = object->value_size > 0 && object->value_size <= JWT_CLAIM_MAX;
    if (reading->is_player) {
        memcpy(claims->player, object->value, object->value_size);
        claims->player[object->value_size] = '\0';
        claims->player_size = object->value_size;
    }
    return true;
}

static bool jwt_take_of_claims(void *context, struct jwt_object *object, enum jwt_member member) {
    struct jwt_reading *reading = context;
    struct jwt_claims *claims = reading->claims;
    struct bytes number;
    int64_t database;
    unsigned ms;
    if (member >= MEMBER_BOARDS && reading->ticket == NULL) {
        return jwt_skip_value(object, 0);
    }
    switch (member) {
    case MEMBER_SUB:
        return jwt_take_player(object, reading);
    case MEMBER_EXP:
        reading->has_end = true;
        return jwt_take_time(&object->reader, &claims->expires_s, &ms);
    case MEMBER_NBF:
        return jwt_take_time(&object->reader, &reading->begins_s, &ms);
    case MEMBER_IAT:
        if (!jwt_take_time(&object->reader, &claims->issued_s, &ms)) {
            return false;
        }
        reading->has_start = true;
        if (reading->ticket != NULL) {
            reading->ticket->start_ms = claims->issued_s * MS_PER_S + ms;
        }
        return true;
    case MEMBER_BOARDS:
        return jwt_take_boards(object, reading);
    case MEMBER_JTI:
        return jwt_take_id(object, reading);
    case MEMBER_DB:
        if (!json_take_number(&object->reader, &number) || !bytes_parse_i64(number, &database) ||
            database < 0) {
            return false;
        }
        reading->ticket->database = (uint64_t)database;
        return true;
    case MEMBER_ISS:
        if (!jwt_take_value(object)) {
            return false;
        }
        reading->has_issuer = true;
        reading->is_issuer = jwt_equals(jwt_value(object), reading->key->issuer);
        return true;
    case MEMBER_AUD:
        return jwt_take_audience(object, reading);
    case MEMBER_ALG:
    case MEMBER_KID:
    case MEMBER_TYP:
    case MEMBER_CRIT:
    case MEMBERS:
        break;
    }
    return jwt_skip_value(object, 0);
}

/* Its header is for this key, and signed by it. */
static enum jwt_status jwt_check_header(const struct jwt_key *key, struct bytes token,
                                        bool is_of_ticket, bool is_signed,
                                        struct jwt_parts *parts) {
    static const char *const names[] = {[JWT_HS256] = "HS256", [JWT_ED25519] = "EdDSA"};
    struct jwt_header header;
    if (!jwt_read_header(token, parts, &header)) {
        return JWT_MALFORMED;
    }
    if (strcmp(header.algorithm, names[key->algorithm]) != 0) {
        return JWT_ALGORITHM;
    }
    if (header.is_of_ticket != is_of_ticket) {
        return JWT_TYPE;
    }
    if (is_of_ticket && (header.kid_size > 0) != (key->kid[0] != '\0')) {
        return JWT_NO_KEY;
    }
    return is_signed || jwt_check_signature(key, parts) ? JWT_RIGHT : JWT_SIGNATURE;
}

/* What logins and tickets have. */
static enum jwt_status jwt_check_claims(const struct jwt_reading *reading, int64_t now_s) {
    const struct jwt_key *key = reading->key;
    const struct jwt_claims *claims = reading->claims;
    int64_t skew_s = key->kid[0] != '\0' ? JWT_SKEW_S : 0;
    if (!reading->is_player) {
        return JWT_NO_PLAYER;
    }
    if (!reading->has_end) {
        return JWT_NO_END;
    }
    if (now_s >= claims->expires_s + skew_s) {
        return JWT_EXPIRED;
    }
    if (reading->begins_s > now_s + JWT_SKEW_S || claims->issued_s > now_s + JWT_SKEW_S) {
        return JWT_NOT_YET;
    }
    if (key->issuer[0] != '\0' && !reading->is_issuer) {
        return JWT_ISSUER;
    }
    bool names_audience = key->audience[0] != '\0';
    return names_audience != reading->has_audience || (names_audience && !reading->is_audience)
               ? JWT_AUDIENCE
               : JWT_RIGHT;
}

enum jwt_status jwt_verify(const struct jwt_key *key, struct bytes token, int64_t now_s,
                           struct jwt_claims *claims) {
    struct jwt_parts parts;
    struct jwt_claims read = {.player_size = 0};
    struct jwt_reading reading = {.key = key, .claims = &read};
    enum jwt_status status = jwt_check_header(key, token, false, false, &parts);
    if (status != JWT_RIGHT) {
        return status;
    }
    if (!jwt_read_object(parts.claims, jwt_take_of_claims, &reading)) {
        return JWT_MALFORMED;
    }
    status = jwt_check_claims(&reading, now_s);
    if (status == JWT_RIGHT) {
        read.key_mark = key->mark;
        *claims = read;
    }
    return status;
}

enum jwt_status jwt_verify_ticket(const struct jwt_key *key, struct bytes token, int64_t now_ms,
                                  bool is_signed, struct jwt_ticket *ticket) {
    struct jwt_parts parts;
    struct jwt_reading reading = {.key = key, .claims = &ticket->claims, .ticket = ticket};
    ticket->claims = (struct jwt_claims){.player_size = 0};
    ticket->boards_size = 0;
    ticket->id = ticket->database = 0;
    enum jwt_status status = jwt_check_header(key, token, true, is_signed, &parts);
    if (status != JWT_RIGHT) {
        return status;
    }
    if (!jwt_read_object(parts.claims, jwt_take_of_claims, &reading)) {
        return JWT_MALFORMED;
    }
    status = jwt_check_claims(&reading, now_ms / MS_PER_S);
    if (status != JWT_RIGHT) {
        return status;
    }
    if (!reading.has_start || ticket->start_ms <= 0) {
        return JWT_NO_START;
    }
    if (!reading.has_boards) {
        return JWT_NO_BOARD;
    }
    int64_t start_s = (ticket->start_ms + MS_PER_S - 1) / MS_PER_S;
    if (ticket->claims.expires_s - start_s > JWT_TICKET_MAX_S) {
        return JWT_TOO_LONG;
    }
    ticket->claims.key_mark = key->mark;
    ticket->id = ticket->id > 0 ? ticket->id : (uint64_t)ticket->start_ms;
    return JWT_RIGHT;
}

bool jwt_is_signed_by(const struct jwt_key *key, struct bytes token) {
    struct jwt_parts parts;
    return jwt_split(token, &parts) && jwt_check_signature(key, &parts);
}

bool jwt_ticket_names(const struct jwt_ticket *ticket, struct bytes board) {
    const unsigned char *at = (const unsigned char *)ticket->boards;
    for (size_t i = 0; i < ticket->boards_size;) {
        size_t size = (size_t)at[i] << 8 | at[i + 1];
        if (size == board.size && memcmp(at + i + 2, board.at, size) == 0) {
            return true;
        }
        i += 2 + size;
    }
    return false;
}

const char *jwt_status_text(enum jwt_status status) {
    static const char *const texts[JWT_STATUSES] = {
        [JWT_RIGHT] = "it is right",
        [JWT_MALFORMED] = "it is no token that is understood",
        [JWT_NO_KEY] = "no player-key has its kid",
        [JWT_ALGORITHM] = "its algorithm is not the key's",
        [JWT_TYPE] = "its typ is that of another kind of token: tickets have ticket+jwt",
        [JWT_SIGNATURE] = "its signature is wrong",
        [JWT_NO_PLAYER] = "it names no player (sub, 1 to 255 bytes)",
        [JWT_NO_END] = "it has no end (exp)",
        [JWT_EXPIRED] = "it has expired",
        [JWT_NOT_YET] = "it does not hold yet",
        [JWT_ISSUER] = "its issuer is not the key's",
        [JWT_AUDIENCE] = "its audience is not the key's",
        [JWT_NO_START] = "it does not say when the run began (iat)",
        [JWT_NO_BOARD] = "it names no board (boards, 1 to 1,000 bytes in all)",
        [JWT_TOO_LONG] = "it is for more than a day (iat to exp)",
    };
    return texts[status];
}

/* ---- making one ---- */

struct jwt_text {
    char at[JWT_SIZE_MAX / 4 * 3];
    size_t size;
};

static void jwt_append(void *out, const char *at, size_t size) {
    struct jwt_text *text = out;
    CHECK(size <= sizeof text->at - text->size);
    memcpy(text->at + text->size, at, size);
    text->size += size;
}

static size_t jwt_encode_text(const struct jwt_text *text, char *out) {
    return jwt_encode((struct bytes){.at = text->at, .size = text->size}, out);
}

/* A name that is the same in JSON that is made here: others have a '?' in the place of what cannot be there. */
static bool jwt_may_name(struct bytes name) {
    bool is_fine = name.size > 0 && json_utf8_is_valid(name);
    for (size_t i = 0; i < name.size && is_fine; i++) {
        is_fine = (unsigned char)name.at[i] >= ' ';
    }
    return is_fine;
}

/* The three parts, of claims that are not closed yet. */
static size_t jwt_finish(const struct jwt_key *key, const char *type, struct json *json,
                         const struct jwt_text *claims, char *out) {
    struct jwt_text header = {.size = 0};
    unsigned char hash[SHA256_SIZE];
    json_close(json, '}');
    struct json head = {.append = jwt_append, .out = &header};
    json_open(&head, NULL, '{');
    json_text(&head, "alg", BYTES("HS256"));
    json_text(&head, "typ", bytes_from_text(type));
    if (key->kid[0] != '\0') {
        json_text(&head, "kid", bytes_from_text(key->kid));
    }
    json_close(&head, '}');
    size_t size = jwt_encode_text(&header, out);
    out[size++] = '.';
    size += jwt_encode_text(claims, out + size);
    jwt_hash(key, (struct bytes){.at = out, .size = size}, hash);
    out[size++] = '.';
    return size +
           jwt_encode((struct bytes){.at = (const char *)hash, .size = sizeof hash}, out + size);
}

size_t jwt_sign(const struct jwt_key *key, struct bytes player, int64_t now_s, int64_t expires_s,
                char *out) {
    struct jwt_text claims = {.size = 0};
    struct json json = {.append = jwt_append, .out = &claims};
    if (key->algorithm != JWT_HS256 || player.size > JWT_CLAIM_MAX || !jwt_may_name(player)) {
        return 0;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "sub", player);
    if (key->issuer[0] != '\0') {
        json_text(&json, "iss", bytes_from_text(key->issuer));
    }
    if (key->audience[0] != '\0') {
        json_text(&json, "aud", bytes_from_text(key->audience));
    }
    json_integer(&json, "iat", now_s);
    json_integer(&json, "exp", expires_s);
    return jwt_finish(key, "JWT", &json, &claims, out);
}

size_t jwt_sign_ticket(const struct jwt_key *key, const struct jwt_ticket *ticket,
                       struct bytes board, char *out) {
    struct jwt_text claims = {.size = 0};
    struct json json = {.append = jwt_append, .out = &claims};
    struct bytes player = {.at = ticket->claims.player, .size = ticket->claims.player_size};
    char id[BYTES_INTEGER_TEXT_MAX], start[BYTES_INTEGER_TEXT_MAX + 4];
    if (key->algorithm != JWT_HS256 || !jwt_may_name(player) || !jwt_may_name(board) ||
        board.size + 2 > JWT_TICKET_BOARDS_MAX) {
        return 0;
    }
    struct bytes text = {.at = id, .size = bytes_print_u64(id, ticket->id)};
    json_open(&json, NULL, '{');
    json_text(&json, "sub", player);
    json_text(&json, "boards", board);
    if (ticket->database > 0) {
        json_integer(&json, "db", (int64_t)ticket->database);
    }
    snprintf(start, sizeof start, "%lld.%03u", (long long)(ticket->start_ms / MS_PER_S),
             (unsigned)(ticket->start_ms % MS_PER_S));
    json_verbatim(&json, "iat", bytes_from_text(start));
    json_integer(&json, "exp", ticket->claims.expires_s);
    json_text(&json, "jti", text);
    return jwt_finish(key, TICKET_TYPE, &json, &claims, out);
}
