/* A program of its own, with codec/ and libc alone: make rating-hash builds it with each compiler and optimization,
 * and for arm64. As a test it has the build at hand, and in short fewer matches. */
#include "tests/codec/rating_hash.h"

#include <stdbool.h>

enum { LONG_MATCHES = 1000000, SHORT_MATCHES = 20000 };
#define LONG_HASH  UINT64_C(0x916f94546f863b25)
#define SHORT_HASH UINT64_C(0xe95e84fb97ced360)

int main(void) {
    bool is_short = getenv("LEADERBOARD_TEST_SHORT") != NULL;
    uint32_t matches = is_short ? SHORT_MATCHES : LONG_MATCHES;
    uint64_t hash = rating_hash(matches);
    bool is_right = hash == (is_short ? SHORT_HASH : LONG_HASH);
    printf("%" PRIu32 " matches: %016" PRIx64 "\n", matches, hash);
    puts(is_right ? "1 passed, 0 failed" : "0 passed, 1 failed");
    return is_right ? 0 : 1;
}
