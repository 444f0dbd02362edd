/* Any bytes as the beginning of a balancer's connection: a header is found at the same place whatever
 * follows it, and every cut of it waits. */
#include "protocol/proxy_header.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *at = (const char *)data;
    struct proxy_header header;
    struct proxy_header cut;
    size_t used = 0;
    size_t cut_used = 0;
    enum proxy_header_status status = proxy_header_parse(at, size, &header, &used);
    if (status == PROXY_HEADER_MORE) {
        CHECK(size < PROXY_HEADER_MAX);
    }
    size_t end = status == PROXY_HEADER_OK ? used : size;
    CHECK(end <= size);
    if (status == PROXY_HEADER_OK) {
        CHECK(used <= PROXY_HEADER_MAX && used > 0);
        CHECK(proxy_header_parse(at, used, &cut, &cut_used) == PROXY_HEADER_OK);
        CHECK(cut_used == used && memcmp(&cut, &header, sizeof cut) == 0);
        CHECK(memchr(header.path, '\0', sizeof header.path) != NULL);
    }
    for (size_t i = 0; i < end && status != PROXY_HEADER_BAD; i++) {
        CHECK(proxy_header_parse(at, i, &cut, &cut_used) == PROXY_HEADER_MORE);
    }
    return 0;
}
