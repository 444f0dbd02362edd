/* Any bytes as what RESTORE takes, with a right checksum: an error that changes nothing, or a key that
 * is valid, and whose own DUMP comes back as the same bytes. The first byte picks the version. */
#include "codec/bytes.h"
#include "server/durability/file_format.h"
#include "server/rdb/rdb_bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/harness.h"

enum { FOOTER = 10, SIZE_MAX_TRIED = 65536 };

static const char *restore(struct harness *h, struct session *s, struct bytes payload) {
    const struct bytes args[] = {BYTES("RESTORE"), BYTES("k"), BYTES("0"), payload,
                                 BYTES("REPLACE")};
    return harness_run_args(h, s, args, 5);
}

static struct bytes dump(struct harness *h, struct session *s, char *room) {
    const char *reply = harness_run(h, s, "DUMP k");
    CHECK(reply[0] == '$');
    size_t size = strtoul(reply + 1, NULL, 10);
    CHECK(size <= h->reply.size);
    memcpy(room, strchr(reply, '\n') + 1, size);
    return (struct bytes){.at = room, .size = size};
}

static void check_restored(struct harness *h, struct session *s) {
    size_t room = 64 * SIZE_MAX_TRIED;
    char *first = malloc(room);
    char *second = malloc(room);
    CHECK(first != NULL && second != NULL);
    struct bytes payload = dump(h, s, first);
    CHECK(strcmp(restore(h, s, payload), "+OK\r\n") == 0);
    struct bytes again = dump(h, s, second);
    CHECK(bytes_equal(payload, again));
    free(first);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint16_t versions[] = {9, 12, 80, ('B' << 8) + FILE_FORMAT};
    if (size < 2 || size > SIZE_MAX_TRIED) {
        return 0;
    }
    char *bytes = malloc(size - 1 + FOOTER);
    CHECK(bytes != NULL);
    uint16_t version = versions[data[0] % 4];
    memcpy(bytes, data + 1, size - 1);
    bytes[size - 1] = (char)(version & 0xff);
    bytes[size] = (char)(version >> 8);
    bytes_put_u64(bytes + size + 1, rdb_bytes_crc(0, bytes, size + 1));
    struct harness *h = harness_create(NULL);
    struct session *s = harness_connect(h);
    harness_run(h, s, "HSET k untouched 1");
    const char *reply = restore(h, s, (struct bytes){.at = bytes, .size = size - 1 + FOOTER});
    bool is_restored = reply[0] == '+';
    const char *reason;
    CHECK(registry_validate(h->server.registry, &reason));
    if (!is_restored) {
        CHECK(strcmp(harness_run(h, s, "HGET k untouched"), "$1\r\n1\r\n") == 0);
    } else if (harness_run(h, s, "EXISTS k")[1] == '1') { /* its period may be over */
        check_restored(h, s);
    }
    harness_destroy(h);
    free(bytes);
    return 0;
}
