/* PROXY headers of both versions: what they say, every cut, and what is refused. */
#include "tests/support/test.h"

#include <arpa/inet.h>

#include "protocol/proxy_header.h"

enum { BYTES_MAX = 2048 };
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

static struct proxy_header header;

/* The header and nothing else of these bytes; what follows it is left alone, and every cut waits. */
static void check_whole(struct bytes text) {
    char longer[BYTES_MAX];
    size_t used = 0;
    struct proxy_header cut;
    for (size_t size = 0; size < text.size; size++) {
        assert_int_equal(proxy_header_parse(text.at, size, &cut, &used), PROXY_HEADER_MORE);
    }
    memset(longer, 'P', sizeof longer);
    memcpy(longer, text.at, text.size);
    assert_int_equal(proxy_header_parse(longer, sizeof longer, &header, &used), PROXY_HEADER_OK);
    assert_int_equal(used, text.size);
    assert_int_equal(proxy_header_parse(text.at, text.size, &cut, &used), PROXY_HEADER_OK);
    assert_int_equal(used, text.size);
    assert_memory_equal(&cut, &header, sizeof cut);
}

static void check_bad(struct bytes text) {
    size_t used;
    if (proxy_header_parse(text.at, text.size, &header, &used) != PROXY_HEADER_BAD) {
        fail_msg("%s", bytes_show(text).text);
    }
}

static void check_address(int family, const uint8_t *address, const char *wanted) {
    char text[INET6_ADDRSTRLEN];
    assert_non_null(inet_ntop(family, address, text, sizeof text));
    assert_string_equal(text, wanted);
}

/* ---- version 1 ---- */

TEST(a_line_names_the_client) {
    check_whole(BYTES("PROXY TCP4 198.51.100.7 10.0.0.5 50412 6379\r\n"));
    assert_int_equal(header.family, PROXY_HEADER_IPV4);
    check_address(AF_INET, header.source, "198.51.100.7");
    check_address(AF_INET, header.destination, "10.0.0.5");
    assert_int_equal(header.source_port, 50412);
    assert_int_equal(header.destination_port, 6379);
    check_whole(BYTES("PROXY TCP6 fd00::7 ::1 0 65535\r\n"));
    assert_int_equal(header.family, PROXY_HEADER_IPV6);
    check_address(AF_INET6, header.source, "fd00::7");
    check_address(AF_INET6, header.destination, "::1");
    assert_int_equal(header.destination_port, 65535);
}

TEST(a_balancer_may_not_know_the_client) {
    check_whole(BYTES("PROXY UNKNOWN\r\n"));
    assert_int_equal(header.family, PROXY_HEADER_NONE);
    /* The longest line of the specification. */
    struct bytes longest = BYTES("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                                 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n");
    assert_int_equal(longest.size, PROXY_HEADER_V1_MAX);
    check_whole(longest);
    assert_int_equal(header.family, PROXY_HEADER_NONE);
}

TEST(a_longer_line_is_not_waited_for) {
    char text[PROXY_HEADER_V1_MAX + 1] = "PROXY UNKNOWN ";
    size_t used;
    memset(text + 14, 'x', sizeof text - 14);
    struct bytes line = {.at = text, .size = PROXY_HEADER_V1_MAX - 1};
    assert_int_equal(proxy_header_parse(line.at, line.size, &header, &used), PROXY_HEADER_MORE);
    line.size++;
    check_bad(line);
    text[PROXY_HEADER_V1_MAX - 1] = '\r'; /* its end would be too late */
    check_bad(line);
}

TEST(bad_lines_are_refused) {
    static const char *const wrong[] = {
        "X",
        "PING\r\n",
        "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4  1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 000001 2\r\n",
        "PROXY TCP4 ::1 ::1 1 2\r\n",
        "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\rX",
        "PROXY \r\n",
        "PROXY  UNKNOWN\r\n",
        "PROXYUNKNOWN\r\n",
        "\r\n\r\nX",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        check_bad(bytes_from_text(wrong[i]));
    }
    check_bad(BYTES("PROXY TCP4 1.2.3.4\0 1.2.3.4 1 2\r\n"));
}

/* ---- version 2 ---- */

static char built[BYTES_MAX];

/* first: version and command; second: family and transport. */
static struct bytes build(int first, int second, const void *rest, size_t size) {
    memcpy(built, SIGNATURE, 12);
    built[12] = (char)first;
    built[13] = (char)second;
    built[14] = (char)(size >> 8);
    built[15] = (char)size;
    if (size > 0) {
        memcpy(built + 16, rest, size);
    }
    return (struct bytes){.at = built, .size = 16 + size};
}

static const char v4_rest[] = "\xc6\x33\x64\x07\x0a\x00\x00\x05\xc4\xec\x18\xeb"
                              "\x04\x00\x03TLV"; /* a type-length-value, to be skipped */

TEST(binary_addresses_name_the_client) {
    check_whole(build(0x21, 0x11, v4_rest, 12));
    assert_int_equal(header.family, PROXY_HEADER_IPV4);
    check_address(AF_INET, header.source, "198.51.100.7");
    check_address(AF_INET, header.destination, "10.0.0.5");
    assert_int_equal(header.source_port, 50412);
    assert_int_equal(header.destination_port, 6379);
    check_whole(build(0x21, 0x11, v4_rest, sizeof v4_rest - 1));
    assert_int_equal(header.source_port, 50412);
    char v6[36] = {[0] = (char)0xfd, [15] = 7, [31] = 1, [33] = 5, [35] = 6};
    check_whole(build(0x21, 0x21, v6, sizeof v6));
    assert_int_equal(header.family, PROXY_HEADER_IPV6);
    check_address(AF_INET6, header.source, "fd00::7");
    check_address(AF_INET6, header.destination, "::1");
    assert_int_equal(header.source_port, 5);
    assert_int_equal(header.destination_port, 6);
}

TEST(a_unix_socket_of_the_balancer_is_named) {
    char rest[216] = "/client";
    strcpy(rest + 108, "/run/balancer");
    check_whole(build(0x21, 0x31, rest, sizeof rest));
    assert_int_equal(header.family, PROXY_HEADER_UNIX);
    assert_string_equal(header.path, "/run/balancer");
    memset(rest + 108, 'x', 108); /* without an end */
    check_whole(build(0x21, 0x31, rest, sizeof rest));
    assert_int_equal(strlen(header.path), PROXY_HEADER_PATH_MAX);
}

TEST(the_balancers_own_connections_have_no_client) {
    check_whole(build(0x20, 0x00, NULL, 0));
    assert_int_equal(header.family, PROXY_HEADER_NONE);
    check_whole(build(0x20, 0x11, v4_rest, sizeof v4_rest - 1)); /* LOCAL: skipped */
    assert_int_equal(header.family, PROXY_HEADER_NONE);
    check_whole(build(0x21, 0x00, v4_rest, sizeof v4_rest - 1)); /* UNSPEC */
    assert_int_equal(header.family, PROXY_HEADER_NONE);
    check_whole(build(0x21, 0x12, v4_rest, 12)); /* a datagram's */
    assert_int_equal(header.family, PROXY_HEADER_NONE);
}

TEST(bad_binary_headers_are_refused) {
    char rest[BYTES_MAX] = "";
    check_bad(build(0x11, 0x11, v4_rest, 12)); /* version 1 */
    check_bad(build(0x31, 0x11, v4_rest, 12)); /* version 3 */
    check_bad(build(0x22, 0x11, v4_rest, 12)); /* neither LOCAL nor PROXY */
    check_bad(build(0x21, 0x41, v4_rest, 12)); /* no such family */
    check_bad(build(0x21, 0x13, v4_rest, 12)); /* nor transport */
    check_bad(build(0x21, 0x11, v4_rest, 11)); /* too short */
    check_bad(build(0x21, 0x21, rest, 35));
    check_bad(build(0x21, 0x31, rest, 215));
    struct bytes longest = build(0x20, 0x00, rest, PROXY_HEADER_MAX - 16);
    check_whole(longest);
    check_bad(build(0x20, 0x00, rest, PROXY_HEADER_MAX - 15));
    /* Its length alone is enough to refuse it. */
    built[14] = (char)0xff;
    check_bad((struct bytes){.at = built, .size = 16});
}
