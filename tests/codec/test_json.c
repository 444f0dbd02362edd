/* JSON: as the page sends it, as the log has it, and read back. */
#include "tests/support/test.h"

#include "tests/support/random.h"

#include "codec/json.h"

enum { OUT_MAX = 4096 };
static struct {
    char at[OUT_MAX];
    size_t size;
} out;

static void append(void *context, const char *at, size_t size) {
    assert_true(context == &out && size <= OUT_MAX - out.size);
    memcpy(out.at + out.size, at, size);
    out.size += size;
}

static struct json begin(void) {
    out.size = 0;
    return (struct json){.append = append, .out = &out, .is_for_page = true};
}

static void check(const char *expected) {
    append(&out, "", 1);
    assert_string_equal(out.at, expected);
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

/* Short ones are written in one piece, and eight bytes at a time are looked at. */
TEST(a_text_is_escaped_as_its_characters_are) {
    struct random random = random_begin("a_text_is_escaped_as_its_characters_are");
    static const char odd[] = "\"\\<>&\x1f\x7f\x01\xff\x80\xc3\xab";
    for (int i = 0; i < 20000; i++) {
        char text[100];
        char whole[sizeof text * 8];
        size_t size = random_below(&random, i % 10 == 0 ? sizeof text : 24);
        for (size_t k = 0; k < size; k++) {
            bool is_odd = random_below(&random, 12) == 0;
            text[k] = is_odd ? odd[random_below(&random, sizeof odd - 1)]
                             : (char)(0x20 + random_below(&random, 0x5f));
        }
        struct json json = begin();
        json.is_for_page = i % 2 == 0;
        json_text(&json, NULL, (struct bytes){.at = text, .size = size});
        size_t whole_size = out.size;
        memcpy(whole, out.at, whole_size);
        out.size = 0;
        json.needs_comma = false;
        json_begin_text(&json, NULL);
        for (size_t k = 0; k < size;) {
            struct bytes rest = {.at = text + k, .size = size - k};
            size_t step = json_utf8_size(rest);
            rest.size = step > 0 ? step : 1;
            json_add_text(&json, rest);
            k += rest.size;
        }
        json_end_text(&json);
        assert_true(out.size == whole_size && memcmp(out.at, whole, whole_size) == 0);
        bool is_valid = true;
        for (size_t k = 0, step; k < size && is_valid; k += step) {
            step = json_utf8_size((struct bytes){.at = text + k, .size = size - k});
            is_valid = step > 0;
        }
        assert_int_equal(json_utf8_is_valid((struct bytes){.at = text, .size = size}), is_valid);
    }
}

TEST(keys_have_any_length) {
    char key[OUT_MAX / 8];
    for (size_t size = 0; size < sizeof key - 1; size++) {
        memset(key, 'k', size);
        key[size] = '\0';
        struct json json = begin();
        json_open(&json, NULL, '[');
        json_integer(&json, key, 1);
        json_text(&json, key, BYTES("v"));
        json_open(&json, key, '{');
        char expected[OUT_MAX];
        snprintf(expected, sizeof expected, "[\"%s\":1,\"%s\":\"v\",\"%s\":{", key, key, key);
        check(expected);
    }
}

TEST(every_byte_stands_for_itself_or_is_escaped) {
    for (int byte = 0; byte < 0x80; byte++) {
        for (int is_for_page = 0; is_for_page < 2; is_for_page++) {
            struct json json = begin();
            json.is_for_page = is_for_page != 0;
            const char text = (char)byte;
            bool is_control = byte < 0x20;
            bool is_mark = byte == '"' || byte == '\\';
            bool is_of_page = byte == '<' || byte == '>' || byte == '&' || byte == 0x7f;
            char expected[16];
            json_text(&json, NULL, (struct bytes){.at = &text, .size = 1});
            if (is_for_page != 0 && (is_control || is_mark || is_of_page)) {
                snprintf(expected, sizeof expected, "\"\\u00%02x\"", (unsigned)byte);
            } else {
                snprintf(expected, sizeof expected, is_mark ? "\"\\%c\"" : "\"%c\"",
                         is_control ? '?' : byte);
            }
            check(expected);
        }
    }
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
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
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
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        assert_true(json_utf8_is_valid(bytes_from_text(right[i])));
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(json_utf8_is_valid(bytes_from_text(wrong[i])));
    }
}

TEST(a_log_has_only_what_it_must_escape) {
    struct json json = begin();
    json.is_for_page = false;
    json_open(&json, NULL, '{');
    json_text(&json, "a", BYTES("\"\\/\n\x7f<&>zo\xc3\xab\xc3"));
    json_begin_text(&json, NULL);
    json_add_text(&json, BYTES("b"));
    json_add_text(&json, BYTES("_"));
    json_end_key(&json);
    json_verbatim(&json, NULL, BYTES("0.25"));
    json_close(&json, '}');
    check("{\"a\":\"\\\"\\\\/?\x7f<&>zo\xc3\xab\xef\xbf\xbd\",\"b_\":0.25}");
}

static bool reads(const char *text, bool takes_controls, const char *expected, size_t size_max) {
    struct json_reader reader = {
        .at = text, .end = text + strlen(text), .takes_controls = takes_controls};
    char read[64];
    size_t size;
    if (!json_take_text(&reader, read, size_max, &size)) {
        return false;
    }
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(read, expected, size);
    return json_is_over(&reader);
}

TEST(strings_are_read_as_they_are_written) {
    assert_true(reads(" \"a\\n\\\"\\\\\\/\\b\\f\\r\\t\" ", false, "a\n\"\\/\b\f\r\t", 64));
    assert_true(reads("\"\\u0041\\u00eb\\u20AC\"", false, "A\xc3\xab\xe2\x82\xac", 64));
    assert_true(reads("\"\\ud83d\\udc4b\"", false, "\xf0\x9f\x91\x8b", 64));
    assert_true(reads("\"abc\"", false, "abc", 3));
    assert_false(reads("\"abc\"", false, "", 2));
    assert_false(reads("\"\xc3\\u00eb\"", false, "", 2));
    assert_true(reads("\"a\tb\"", true, "a\tb", 64));
    assert_false(reads("\"a\tb\"", false, "", 64));
}

TEST(damaged_strings_are_refused) {
    static const char *const wrong[] = {"",
                                        "a",
                                        "\"",
                                        "\"a",
                                        "\"\\",
                                        "\"\\\"",
                                        "\"\\x41\"",
                                        "\"\\u12\"",
                                        "\"\\u12",
                                        "\"\\u12g4\"",
                                        "\"\\ud83d\"",
                                        "\"\\ud83d\\u0041\"",
                                        "\"\\ud83d\\",
                                        "\"\\udc4b\""};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(reads(wrong[i], true, "", 64));
    }
}

TEST(marks_and_numbers_are_taken_one_by_one) {
    const char *text = " { 12 : -0.5e3 , ";
    struct json_reader reader = {.at = text, .end = text + strlen(text)};
    struct bytes number;
    assert_false(json_take(&reader, '['));
    assert_true(json_take(&reader, '{'));
    assert_true(json_take_number(&reader, &number));
    assert_true(bytes_equal(number, BYTES("12")));
    assert_true(json_take(&reader, ':') && json_take_number(&reader, &number));
    assert_true(bytes_equal(number, BYTES("-0.5e3")));
    assert_false(json_is_over(&reader));
    assert_true(json_take(&reader, ',') && json_is_over(&reader));
    assert_false(json_take(&reader, ',') || json_take_number(&reader, &number));
}

/* Characters of every size, and those that are escaped. */
static size_t random_text(struct random *random, char *text) {
    static const uint32_t ends[] = {0x20, 0x80, 0x800, 0xd800, 0x10ffff};
    size_t size = 0;
    for (uint64_t left = random_below(random, 12); left > 0; left--) {
        size += json_utf8_print(text + size,
                                (uint32_t)random_below(random, ends[random_below(random, 5)]));
    }
    return size;
}

TEST(what_is_written_is_read_back) {
    struct random random = random_begin(__func__);
    for (int round = 0; round < 20000; round++) {
        char text[64], read[64];
        size_t size = random_text(&random, text), read_size;
        struct bytes whole = {.at = text, .size = size};
        if (!json_utf8_is_valid(whole)) {
            continue; /* a surrogate */
        }
        struct json json = begin();
        json_open(&json, NULL, '[');
        json_text(&json, NULL, whole);
        json_integer(&json, NULL, round);
        json_close(&json, ']');
        struct json_reader reader = {.at = out.at, .end = out.at + out.size};
        struct bytes number = {.size = 0};
        int64_t value;
        assert_true(json_take(&reader, '['));
        assert_true(json_take_text(&reader, read, sizeof read, &read_size));
        assert_true(bytes_equal(whole, (struct bytes){.at = read, .size = read_size}));
        assert_true(json_take(&reader, ',') && json_take_number(&reader, &number));
        assert_true(bytes_parse_i64(number, &value) && value == round);
        assert_true(json_take(&reader, ']') && json_is_over(&reader));
    }
}
