/* JSON as the page sends it. */
#include "tests/support/test.h"

#include "server/web/json.h"

static struct buffer out;

static struct json begin(void) {
    buffer_init(&out, 0);
    return (struct json){.out = &out};
}

static void check(const char *expected) {
    buffer_append(&out, "", 1);
    assert_false(out.is_broken);
    assert_string_equal(out.at, expected);
    buffer_deinit(&out);
}

TEST(commas_come_by_themselves) {
    struct json json = begin();
    json_open(&json, NULL, '{');
    json_integer(&json, "a", INT64_MIN);
    json_open(&json, "b", '[');
    json_null(&json, NULL);
    json_boolean(&json, NULL, true);
    json_open(&json, NULL, '{');
    json_close(&json, '}');
    json_number(&json, NULL, 2.5);
    json_number(&json, NULL, 3);
    json_number(&json, NULL, 0.0004);
    json_close(&json, ']');
    json_time_ms(&json, "c", 1500);
    json_pair(&json, BYTES("x\"y"), (struct bytes){.at = NULL});
    json_close(&json, '}');
    check("{\"a\":-9223372036854775808,\"b\":[null,true,{},2.5,3,0],"
          "\"c\":\"1970-01-01T00:00:01.500Z\",\"x\\u0022y\":null}");
}

TEST(texts_are_escaped) {
    struct json json = begin();
    json_text(&json, NULL, BYTES("\"\\/\n\x01\x7f<script>&\0z"));
    check("\"\\u0022\\u005c/\\u000a\\u0001\\u007f\\u003cscript\\u003e\\u0026\\u0000z\"");
    json = begin();
    json_text(&json, NULL, BYTES("zo\xc3\xab \xf0\x9f\x91\x8b"));
    check("\"zo\xc3\xab \xf0\x9f\x91\x8b\"");
}

TEST(what_is_not_utf8_has_its_bytes_beside_it) {
    static const struct {
        const char *bytes, *expected;
    } cases[] = {
        {"a", "{\"m\":\"a\"}"},
        {"a\xff", "{\"m\":\"a\\\\xff\",\"m_base64\":\"Yf8=\"}"},
        {"\xff", "{\"m\":\"\\\\xff\",\"m_base64\":\"/w==\"}"},
        {"ab\x80", "{\"m\":\"ab\\\\x80\",\"m_base64\":\"YWKA\"}"},
        {"\xc3", "{\"m\":\"\\\\xc3\",\"m_base64\":\"ww==\"}"},
        {"\xed\xa0\x80", "{\"m\":\"\\\\xed\\\\xa0\\\\x80\",\"m_base64\":\"7aCA\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct json json = begin();
        json_open(&json, NULL, '{');
        json_bytes(&json, "m", bytes_from_text(cases[i].bytes));
        json_close(&json, '}');
        check(cases[i].expected);
    }
}

TEST(utf8_is_what_unicode_says) {
    static const char *const right[] = {"",
                                        "a",
                                        "\xc2\x80",
                                        "\xdf\xbf",
                                        "\xe0\xa0\x80",
                                        "\xef\xbf\xbf",
                                        "\xf0\x90\x80\x80",
                                        "\xf4\x8f\xbf\xbf",
                                        "\xed\x9f\xbf"};
    static const char *const wrong[] = {
        "\x80",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xe2\x82",     "\xf0\x9f\x91",     "\xe2\x82x",        "\xfe"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_true(json_is_utf8(bytes_from_text(right[i])));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(json_is_utf8(bytes_from_text(wrong[i])));
    }
}
