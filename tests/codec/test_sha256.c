/* SHA-256. On a processor with instructions for it the others are tested without SSE2 (make no-sse). */
#include "tests/support/test.h"

#include "codec/sha256.h"
#include "tests/support/random.h"

static void expect_digest(const struct bytes *parts, size_t count, const char *expected) {
    uint8_t digest[SHA256_SIZE];
    char text[2 * SHA256_SIZE + 1];
    sha256(parts, count, digest);
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
    assert_string_equal(text, expected);
}

TEST(the_examples_of_the_standard) {
    const struct {
        struct bytes text;
        const char *expected;
    } samples[] = {
        {BYTES(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {BYTES("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {BYTES("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        expect_digest(&samples[i].text, 1, samples[i].expected);
    }
}

/* As Python's hashlib has it: the digest of the digests of texts of 0 to 300 bytes. */
TEST(parts_are_one_text_of_any_length) {
    enum { SIZES = 301 };
    static uint8_t digests[SIZES][SHA256_SIZE];
    struct random random = random_begin("parts_are_one_text_of_any_length");
    char text[SIZES];
    for (size_t size = 0; size < SIZES; size++) {
        for (size_t i = 0; i < size; i++) {
            text[i] = (char)(i * 7 + size);
        }
        size_t cut = random_below(&random, size + 1);
        const struct bytes parts[] = {{.at = text, .size = cut},
                                      {.at = text + cut, .size = size - cut}};
        sha256(parts, COUNT_OF(parts), digests[size]);
    }
    const struct bytes all = {.at = (const char *)digests, .size = sizeof digests};
    expect_digest(&all, 1, "60d63ff40b5558727a9b786ac0be9300f7ca58fd9ddd3b2f3681b369018a87dc");
}
