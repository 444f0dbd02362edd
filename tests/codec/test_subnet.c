/* Networks: what is one, what is in it, and how it is printed. */
#include "tests/support/test.h"

#include <arpa/inet.h>

#include "codec/subnet.h"
#include "tests/support/random.h"

static bool parses(const char *text) {
    struct subnet subnet;
    return subnet_parse(bytes_from_text(text), &subnet);
}

static void address_of(const char *text, uint8_t *address) {
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        assert_true(subnet_take_address((const struct sockaddr *)&v4, address));
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, address), 1);
    }
}

static bool has(const char *subnet_text, const char *address_text) {
    struct subnet subnet;
    uint8_t address[SUBNET_ADDRESS_SIZE];
    assert_true(subnet_parse(bytes_from_text(subnet_text), &subnet));
    address_of(address_text, address);
    return subnet_has(&subnet, address);
}

TEST(what_is_no_network_is_refused) {
    static const char *const wrong[] = {
        "",
        "/",
        "/8",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/8 ",
        "10.0.0/8",
        "10.0.0.1/8",
        "10.0.0.0/8/8",
        "fd00::/129",
        "fd00::1/8",
        "localhost",
        "*",
        "::g",
        "10.0.0.0/4294967304",
        "1.2.3.4.5",
        "0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        if (parses(wrong[i])) {
            fail_msg("%s", wrong[i]);
        }
    }
    struct subnet subnet;
    assert_false(subnet_parse((struct bytes){.at = "10.0.0.1\0x", .size = 10}, &subnet));
}

TEST(an_address_is_in_the_networks_that_it_begins_with) {
    assert_true(has("10.0.0.0/8", "10.255.0.1"));
    assert_false(has("10.0.0.0/8", "11.0.0.1"));
    assert_true(has("192.0.2.7", "192.0.2.7"));
    assert_false(has("192.0.2.7", "192.0.2.6"));
    assert_true(has("0.0.0.0/0", "203.0.113.9"));
    assert_false(has("0.0.0.0/0", "fd00::1"));
    assert_true(has("::/0", "fd00::1"));
    assert_true(has("::/0", "203.0.113.9"));
    assert_true(has("fd00::/8", "fd12::1"));
    assert_false(has("fd00::/8", "fe80::1"));
    assert_true(has("10.0.0.0/8", "::ffff:10.1.2.3")); /* a client of an IPv6 socket */
    assert_true(has("10.128.0.0/9", "10.129.0.0"));
    assert_false(has("10.128.0.0/9", "10.127.0.0"));
}

TEST(what_is_printed_is_parsed_to_the_same) {
    static const char *const texts[] = {
        "10.0.0.0/8", "192.0.2.7", "0.0.0.0/0", "::1", "fd00::/8", "::/0", "::fffe:0:0/95",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct subnet subnet;
        char text[SUBNET_TEXT_MAX];
        assert_true(subnet_parse(bytes_from_text(texts[i]), &subnet));
        subnet_print(&subnet, text);
        assert_string_equal(text, texts[i]);
    }
}

/* The twin compares bit by bit. */
TEST(random_networks_have_what_their_bits_say) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 20000; i++) {
        struct subnet subnet;
        uint8_t address[SUBNET_ADDRESS_SIZE];
        char text[SUBNET_TEXT_MAX];
        subnet.bits = (unsigned)random_below(&random, 129);
        for (unsigned byte = 0; byte < SUBNET_ADDRESS_SIZE; byte++) {
            subnet.address[byte] = (uint8_t)random_below(&random, 256);
            address[byte] = subnet.address[byte];
        }
        for (unsigned bit = subnet.bits; bit < 128; bit++) {
            subnet.address[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
        }
        unsigned flipped = (unsigned)random_below(&random, 128);
        address[flipped / 8] ^= (uint8_t)(0x80 >> flipped % 8);
        assert_int_equal(subnet_has(&subnet, address), flipped >= subnet.bits);
        struct subnet again;
        subnet_print(&subnet, text);
        assert_true(subnet_parse(bytes_from_text(text), &again));
        assert_int_equal(again.bits, subnet.bits);
        assert_memory_equal(again.address, subnet.address, SUBNET_ADDRESS_SIZE);
    }
}
