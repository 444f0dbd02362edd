/* 64 rounds a block of 64 bytes, with the processor's instructions for them where it has some: a tenth of the
 * time. */
#include "codec/sha256.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__) && defined(__SSE2__)
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { BLOCK = 64, ROUNDS = 64, WORDS = 8 };

static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static const uint32_t first_state[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static inline uint32_t sha256_turn(uint32_t word, unsigned bits) {
    return word >> bits | word << (32 - bits);
}

static inline uint32_t sha256_read(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void sha256_write(uint8_t *at, uint32_t word) {
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(word >> (24 - 8 * i));
    }
}

/* The words of the standard, a to h, which move on by one in each round: here their places do. */
#define SHA256_WORD(index) s[((index)-i) % WORDS]

static void sha256_mix(uint32_t *state, const uint8_t *block) {
    uint32_t w[16];
    uint32_t s[WORDS];
    memcpy(s, state, sizeof s);
    /* Unrolled, all places are known: a third fewer instructions. */
#pragma GCC unroll 64
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t *word = &w[i % 16];
        if (i < 16) {
            *word = sha256_read(block + (size_t)i * 4);
        } else {
            uint32_t near = w[(i + 14) % 16];
            uint32_t far = w[(i + 1) % 16];
            *word += (sha256_turn(near, 17) ^ sha256_turn(near, 19) ^ near >> 10) +
                     w[(i + 9) % 16] + (sha256_turn(far, 7) ^ sha256_turn(far, 18) ^ far >> 3);
        }
        uint32_t a = SHA256_WORD(0);
        uint32_t e = SHA256_WORD(4);
        uint32_t first = SHA256_WORD(7) +
                         (sha256_turn(e, 6) ^ sha256_turn(e, 11) ^ sha256_turn(e, 25)) +
                         ((e & SHA256_WORD(5)) ^ (~e & SHA256_WORD(6))) + constants[i] + *word;
        uint32_t second =
            (sha256_turn(a, 2) ^ sha256_turn(a, 13) ^ sha256_turn(a, 22)) +
            ((a & SHA256_WORD(1)) ^ (a & SHA256_WORD(2)) ^ (SHA256_WORD(1) & SHA256_WORD(2)));
        SHA256_WORD(3) += first;
        SHA256_WORD(7) = first + second; /* the first one of the next round */
    }
    for (unsigned i = 0; i < WORDS; i++) {
        state[i] += s[i];
    }
}

#if defined(__x86_64__) && defined(__SSE2__)
/* Intel's instructions want the words in the order f e b a and h g d c. */
__attribute__((target("sha,sse4.1"))) static void sha256_mix_fast(uint32_t *state,
                                                                  const uint8_t *block) {
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i abcd = _mm_loadu_si128((const __m128i_u *)state);
    __m128i efgh = _mm_loadu_si128((const __m128i_u *)(state + 4));
    abcd = _mm_shuffle_epi32(abcd, 0xb1);
    efgh = _mm_shuffle_epi32(efgh, 0x1b);
    const __m128i abef_before = _mm_alignr_epi8(abcd, efgh, 8);
    const __m128i cdgh_before = _mm_blend_epi16(efgh, abcd, 0xf0);
    __m128i abef = abef_before;
    __m128i cdgh = cdgh_before;
    __m128i w[4];
    for (unsigned i = 0; i < ROUNDS / 4; i++) {
        __m128i *word = &w[i % 4];
        if (i < 4) {
            *word = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i_u *)(block + (size_t)i * 16)),
                                     order);
        } else {
            __m128i last = w[(i + 3) % 4];
            __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(*word, w[(i + 1) % 4]),
                                        _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
            *word = _mm_sha256msg2_epu32(sum, last);
        }
        __m128i sum =
            _mm_add_epi32(*word, _mm_loadu_si128((const __m128i_u *)(constants + (size_t)i * 4)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
    cdgh = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
    _mm_storeu_si128((__m128i_u *)state, _mm_blend_epi16(abef, cdgh, 0xf0));
    _mm_storeu_si128((__m128i_u *)(state + 4), _mm_alignr_epi8(cdgh, abef, 8));
}

static bool sha256_is_fast(void) {
    enum { SSE41 = 1 << 19, SHA = 1 << 29 };
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & SSE41) != 0 &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & SHA) != 0;
}
#else
#define sha256_mix_fast sha256_mix
static bool sha256_is_fast(void) {
    return false;
}
#endif

static void sha256_mix_block(uint32_t *state, const uint8_t *block) {
    static int is_fast = -1; /* not known yet */
    if (is_fast < 0) {
        is_fast = sha256_is_fast();
    }
    if (is_fast != 0) {
        sha256_mix_fast(state, block);
    } else {
        sha256_mix(state, block);
    }
}

void sha256(const struct bytes *parts, size_t count, uint8_t digest[SHA256_SIZE]) {
    uint32_t state[WORDS];
    uint8_t block[BLOCK] = {0};
    size_t used = 0;
    uint64_t size = 0;
    memcpy(state, first_state, sizeof state);
    for (size_t i = 0; i < count; i++) {
        struct bytes left = parts[i];
        size += left.size;
        while (left.size > 0) {
            size_t step = left.size < BLOCK - used ? left.size : BLOCK - used;
            memcpy(block + used, left.at, step);
            left = (struct bytes){.at = left.at + step, .size = left.size - step};
            used += step;
            if (used == BLOCK) {
                sha256_mix_block(state, block);
                used = 0;
            }
        }
    }
    block[used++] = 0x80;
    memset(block + used, 0, BLOCK - used);
    if (used > BLOCK - sizeof size) {
        sha256_mix_block(state, block);
        memset(block, 0, BLOCK);
    }
    sha256_write(block + BLOCK - 8, (uint32_t)(size >> 29));
    sha256_write(block + BLOCK - 4, (uint32_t)(size << 3));
    sha256_mix_block(state, block);
    for (unsigned i = 0; i < WORDS; i++) {
        sha256_write(digest + (size_t)i * 4, state[i]);
    }
}
