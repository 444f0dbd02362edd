/* Players' tokens of any header and claims, signed rightly: what a studio's login makes, and what an attacker would
 * like it to make. */
#ifndef TESTS_SUPPORT_JWT_MAKER_H
#define TESTS_SUPPORT_JWT_MAKER_H

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#include "codec/check.h"
#include "server/system/jwt.h"

/* The key pair of RFC 8037, A.1 and A.2, and an hs256 key. */
#define JWT_MAKER_PUBLIC "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
#define JWT_MAKER_SECRET "0123456789abcdef0123456789abcdef"
static const unsigned char jwt_maker_private[] = {
    0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
    0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60};

#define JWT_MAKER_HS256   "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"back\"}"
#define JWT_MAKER_ED25519 "{\"alg\":\"EdDSA\",\"typ\":\"JWT\",\"kid\":\"web\"}"

/* No padding: out is terminated and has room for 4/3 of it and a byte. */
static inline size_t jwt_maker_encode(const void *bytes, size_t size, char *out) {
    int written = EVP_EncodeBlock((unsigned char *)out, bytes, (int)size);
    size_t count = (size_t)written;
    while (count > 0 && out[count - 1] == '=') {
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = (char)(out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i]);
    }
    out[count] = '\0';
    return count;
}

/* The third part of a token, as bytes. Returns their number. */
static inline size_t jwt_maker_sign(enum jwt_algorithm algorithm, const char *text, size_t size,
                                    unsigned char out[64]) {
    const unsigned char *bytes = (const unsigned char *)text;
    if (algorithm == JWT_HS256) {
        unsigned count = 0;
        const unsigned char *made =
            HMAC(EVP_sha256(), JWT_MAKER_SECRET, (int)sizeof JWT_MAKER_SECRET - 1, bytes, size, out,
                 &count);
        CHECK(made != NULL);
        return count;
    }
    size_t count = 64;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, jwt_maker_private,
                                                 sizeof jwt_maker_private);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_made = key != NULL && context != NULL &&
                   EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
                   EVP_DigestSign(context, out, &count, bytes, size) == 1;
    CHECK(is_made);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    return count;
}

/* Two parts as they are, and a right signature of them. out: has room for 100 bytes more. Returns its size. */
static inline size_t jwt_maker_append(enum jwt_algorithm algorithm, char *out, size_t size) {
    unsigned char signature[64];
    size_t count = jwt_maker_sign(algorithm, out, size, signature);
    out[size++] = '.';
    return size + jwt_maker_encode(signature, count, out + size);
}

/* A whole one, of texts that may be anything. */
static inline size_t jwt_maker_make_of(enum jwt_algorithm algorithm, struct bytes header,
                                       struct bytes claims, char *out) {
    size_t size = jwt_maker_encode(header.at, header.size, out);
    out[size++] = '.';
    size += jwt_maker_encode(claims.at, claims.size, out + size);
    return jwt_maker_append(algorithm, out, size);
}

static inline size_t jwt_maker_make(enum jwt_algorithm algorithm, const char *header,
                                    const char *claims, char *out) {
    return jwt_maker_make_of(algorithm, bytes_from_text(header), bytes_from_text(claims), out);
}

/* What a login gives the player. */
static inline size_t jwt_maker_player(enum jwt_algorithm algorithm, const char *player,
                                      int64_t expires_s, char *out) {
    char claims[512];
    snprintf(claims, sizeof claims, "{\"sub\":\"%s\",\"exp\":%lld}", player, (long long)expires_s);
    return jwt_maker_make(algorithm, algorithm == JWT_HS256 ? JWT_MAKER_HS256 : JWT_MAKER_ED25519,
                          claims, out);
}

#endif
