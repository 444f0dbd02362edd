/* What stands behind GET. */
#include "tests/support/test.h"

#include "server/http/http.h"

enum { TEXT_MAX = 256 };

static char text[TEXT_MAX];

static const char *parse(const char *given, struct http_target *target) {
    assert_true(strlen(given) < sizeof text);
    snprintf(text, sizeof text, "%s", given);
    return http_request_parse_target(text, target);
}

static void check_bytes(struct bytes bytes, const char *expected, size_t size) {
    assert_int_equal(bytes.size, size);
    assert_memory_equal(bytes.at, expected, size);
}

TEST(a_path_and_a_query_are_taken_apart) {
    struct http_target target;
    assert_null(parse("/api/v1/boards/week%2F47/page?from=0&name=a+b%2b&&x&from=9", &target));
    assert_int_equal(target.segment_count, 5);
    check_bytes(target.segments[0], "api", 3);
    check_bytes(target.segments[3], "week/47", 7);
    check_bytes(target.segments[4], "page", 4);
    assert_int_equal(target.parameter_count, 4);
    check_bytes(http_request_parameter(&target, "from"), "0", 1);
    check_bytes(http_request_parameter(&target, "name"), "a b+", 4);
    check_bytes(http_request_parameter(&target, "x"), "", 0);
    assert_non_null(http_request_parameter(&target, "x").at);
    assert_null(http_request_parameter(&target, "fro").at);
}

TEST(parts_may_be_empty_and_hold_any_bytes) {
    struct http_target target;
    assert_null(parse("/", &target));
    assert_int_equal(target.segment_count, 1);
    check_bytes(target.segments[0], "", 0);
    assert_null(parse("//a/", &target));
    assert_int_equal(target.segment_count, 3);
    check_bytes(target.segments[1], "a", 1);
    check_bytes(target.segments[2], "", 0);
    assert_null(parse("/a%00%ff%FE+?q=%00=", &target));
    check_bytes(target.segments[0], "a\0\xff\xfe+", 5);
    check_bytes(http_request_parameter(&target, "q"), "\0=", 2);
}

#define SIXTEEN "a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p"

TEST(what_is_malformed_is_refused) {
    static const char *const refused[] = {
        "",
        "a",
        "*",
        "?a=b",
        "/%",
        "/%4",
        "/%4g",
        "/a?%",
        "/a?b=%f",
        "/a?b=%%20",
        "/1/2/3/4/5/6/7/8/9",
        "/?" SIXTEEN "&" SIXTEEN "&" SIXTEEN "&q",
    };
    struct http_target target;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_non_null(parse(refused[i], &target));
    }
    assert_null(parse("/1/2/3/4/5/6/7/8?" SIXTEEN "&" SIXTEEN "&" SIXTEEN, &target));
}
