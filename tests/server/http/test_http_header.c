/* What headers of HTTP requests mean. */
#include "tests/support/test.h"

#include "server/http/http.h"

TEST(addresses_and_names_without_a_dot_are_this_server) {
    static const char *const allowed[] = {
        "127.0.0.1", "127.0.0.1:9121", "10.1.2.3:80", "[::1]", "[::1]:9121", "[2001:db8::7]:1",
        "localhost", "localhost:9121", "LOCALHOST",   "db1",   "db1:9121",   "localhost.",
    };
    for (size_t i = 0; i < COUNT_OF(allowed); i++) {
        assert_true(http_request_allows_host(allowed[i], ""));
    }
    assert_true(http_request_allows_host(NULL, ""));
}

TEST(other_names_are_not_unless_they_are_listed) {
    static const char *const refused[] = {
        "evil.example",
        "evil.example:9121",
        "127.0.0.1.evil.example",
        "a.b",
        "",
        ":9121",
        "[::1",
        "[evil.example]",
        "[::1]x",
        "localhost:x",
        "1.2.3.4.5",
        "999.1.1.1",
        ".",
        "[]",
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_false(http_request_allows_host(refused[i], "boards.example.com"));
    }
    assert_true(http_request_allows_host("boards.example.com", "boards.example.com"));
    assert_true(
        http_request_allows_host("Boards.Example.COM.:9121", "  a.b boards.example.com c.d"));
    assert_false(http_request_allows_host("boards.example.co", "boards.example.com"));
    assert_false(http_request_allows_host("boards.example.comm", "boards.example.com"));
    assert_true(http_request_allows_host("evil.example", "a.b *"));
    char longest[400];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_false(http_request_allows_host(longest, "*"));
}

TEST(the_closest_range_of_an_accept_header_counts) {
    static const struct {
        const char *accept, *type;
        unsigned quality;
    } cases[] = {
        {NULL, "text/plain", 1000},
        {"", "text/plain", 0},
        {"*/*", "text/plain", 1000},
        {"text/*", "text/plain", 1000},
        {"text/*", "application/json", 0},
        {"text/html, text/plain;q=0.5", "text/plain", 500},
        {"text/plain;version=0.0.4;q=0.25,*/*;q=0.1", "text/plain", 250},
        {"text/plain;version=0.0.4;q=0.25,*/*;q=0.1", "application/openmetrics-text", 100},
        {"text/*;q=0.9, text/plain;q=0.001", "text/plain", 1},
        {"TEXT/Plain ; Q=0.3", "text/plain", 300},
        {"text/plain;q=0", "text/plain", 0},
        {"text/plain;q=nonsense", "text/plain", 0},
        {"text/plain;q=", "text/plain", 0},
        {",,, ;,text/plain", "text/plain", 1000},
        {"text/plainer", "text/plain", 0},
        {"application/openmetrics-text;version=1.0.0,application/"
         "openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         "application/openmetrics-text", 1000},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned quality = http_request_quality(cases[i].accept, cases[i].type);
        if (quality != cases[i].quality) {
            fail_msg("%s for %s: %u", cases[i].accept, cases[i].type, quality);
        }
    }
}

TEST(forwarded_addresses_are_taken_from_the_last_to_the_first) {
    const char *header = "2001:db8::1, 192.0.2.7:4000 ,[fd00::2]:99,\t[fd00::3],198.51.100.1";
    static const char *const addresses[] = {"198.51.100.1", "fd00::3", "fd00::2", "192.0.2.7",
                                            "2001:db8::1"};
    size_t size = strlen(header);
    struct subnet taken = {.bits = 128};
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        char text[SUBNET_TEXT_MAX];
        assert_true(http_request_take_forwarded(header, &size, taken.address));
        subnet_print(&taken, text);
        assert_string_equal(text, addresses[i]);
    }
    assert_int_equal(size, 0);
    assert_false(http_request_take_forwarded(header, &size, taken.address));
    assert_false(http_request_take_forwarded(NULL, &size, taken.address));
}

TEST(what_is_no_address_was_forwarded_by_nobody) {
    static const char *const headers[] = {"",          " ",
                                          ",",         "unknown",
                                          "_hidden",   "192.0.2.7/8",
                                          "fd00::/64", "192.0.2",
                                          "[fd00",     "[]",
                                          ":80",       "192.0.2.7.1",
                                          "fd00::1]",  "192.0.2.7:80:80x,",
                                          "localhost", "[::1%0",
                                          "1.2.3.4 5"};
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        uint8_t address[SUBNET_ADDRESS_SIZE] = {7};
        size_t size = strlen(headers[i]);
        if (http_request_take_forwarded(headers[i], &size, address) || address[0] != 7) {
            fail_msg("taken from '%s'", headers[i]);
        }
        assert_true(size < strlen(headers[i]) || size == 0);
    }
}

TEST(a_bearers_token_has_the_characters_of_one) {
    static const struct {
        const char *header, *token; /* NULL: of another scheme */
    } cases[] = {
        {"Bearer abc", "abc"},
        {"bearer   a-._~+/09Z==", "a-._~+/09Z=="},
        {"BEARER lbt_12", "lbt_12"},
        {"Bearer", NULL},
        {"", NULL},
        {"Bearerabc", NULL},
        {"Basic YW5u", NULL},
        {" Bearer abc", NULL},
        {"Bearer\tabc", NULL},
        {"Bearer ", ""},
        {"Bearer a b", ""},
        {"Bearer a, Basic b", ""},
        {"Bearer =", ""},
        {"Bearer a=b", ""},
        {"Bearer \"a\"", ""},
        {"Bearer a ", ""},
        {"Bearer \xc3\xa4", ""},
        {"Bearer a\x01", ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes token = BYTES("?");
        bool is_bearer = http_request_bearer(cases[i].header, &token);
        if (is_bearer != (cases[i].token != NULL) ||
            (is_bearer && !bytes_equal(token, bytes_from_text(cases[i].token)))) {
            fail_msg("'%s'", cases[i].header);
        }
    }
}

TEST(a_cookie_is_found_by_its_whole_name) {
    assert_true(bytes_equal(http_request_cookie("leaderboard=12", "leaderboard"), BYTES("12")));
    assert_true(
        bytes_equal(http_request_cookie("a=b; leaderboard=12; c=d", "leaderboard"), BYTES("12")));
    assert_true(
        bytes_equal(http_request_cookie("a=leaderboard=1;leaderboard=", "leaderboard"), BYTES("")));
    assert_null(
        http_request_cookie("xleaderboard=1; leaderboardx=2; leaderboard", "leaderboard").at);
    assert_null(http_request_cookie("", "leaderboard").at);
    assert_null(http_request_cookie(NULL, "leaderboard").at);
    assert_null(http_request_cookie(";;; ;", "leaderboard").at);
}
