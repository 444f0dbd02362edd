/* libcrypto's SHA-256, and getrandom. See digest.h. */
#include "server/system/digest.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <sys/random.h>

static void digest_print_hex(const unsigned char *bytes, size_t size, char *out) {
    for (size_t i = 0; i < size; i++) {
        bytes_print_hex(bytes[i], out + 2 * i);
    }
}

void digest_make(struct bytes text, unsigned char out[DIGEST_SIZE]) {
    /* EVP_sha256() is looked up under a lock in each use, what has been fetched is not. */
    static _Atomic(EVP_MD *) sha256;
    unsigned size = 0;
    EVP_MD *known = atomic_load(&sha256);
    if (known == NULL) {
        EVP_MD *fetched = EVP_MD_fetch(NULL, "SHA256", NULL);
        if (atomic_compare_exchange_strong(&sha256, &known, fetched)) {
            known = fetched;
        } else {
            EVP_MD_free(fetched); /* another thread's came first */
        }
    }
    int status = EVP_Digest(text.size > 0 ? text.at : "", text.size, out, &size,
                            known != NULL ? known : EVP_sha256(), NULL);
    CHECK(status == 1);
    CHECK(size == DIGEST_SIZE);
}

void digest_print(struct bytes text, char out[DIGEST_TEXT_SIZE]) {
    unsigned char digest[DIGEST_SIZE];
    digest_make(text, digest);
    digest_print_hex(digest, DIGEST_SIZE, out);
}

bool digest_equal(const char a[DIGEST_TEXT_SIZE], const char b[DIGEST_TEXT_SIZE]) {
    return CRYPTO_memcmp(a, b, DIGEST_TEXT_SIZE) == 0;
}

bool digest_is_text(struct bytes text) {
    bool is_text = text.size == DIGEST_TEXT_SIZE;
    for (size_t i = 0; is_text && i < text.size; i++) {
        is_text =
            (text.at[i] >= '0' && text.at[i] <= '9') || (text.at[i] >= 'a' && text.at[i] <= 'f');
    }
    return is_text;
}

void digest_random(char *out, size_t size) {
    while (size > 0) {
        unsigned char bytes[DIGEST_SIZE];
        char text[DIGEST_TEXT_SIZE];
        ssize_t got = getrandom(bytes, sizeof bytes, 0);
        CHECK(got == (ssize_t)sizeof bytes || (got < 0 && errno == EINTR));
        if (got < 0) {
            continue;
        }
        size_t step = size < sizeof text ? size : sizeof text;
        digest_print_hex(bytes, sizeof bytes, text);
        memcpy(out, text, step);
        out += step;
        size -= step;
    }
}
