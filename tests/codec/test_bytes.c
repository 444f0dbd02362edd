/* Words compared without case, and integers as text exactly as Redis reads and writes them. */
#include "tests/support/test.h"

#include "codec/bytes.h"
#include "tests/support/random.h"

TEST(bytes_are_equal_by_size_and_content_whatever_the_content) {
    assert_true(bytes_equal(BYTES("a\0b"), BYTES("a\0b")));
    assert_false(bytes_equal(BYTES("a\0b"), BYTES("a\0c")));
    assert_false(bytes_equal(BYTES("ab"), BYTES("abc")));
    assert_true(bytes_equal((struct bytes){0}, BYTES("")));
    assert_true(bytes_equal(bytes_from_text("word"), BYTES("word")));
}

TEST(only_the_case_of_ascii_letters_is_ignored) {
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            char a_byte = (char)a;
            char b_byte = (char)b;
            bool is_letter_pair = (a ^ b) == 0x20 && (a | 0x20) >= 'a' && (a | 0x20) <= 'z';
            struct bytes a_bytes = {.at = &a_byte, .size = 1};
            struct bytes b_bytes = {.at = &b_byte, .size = 1};
            assert_int_equal(bytes_equal_ignoring_case(a_bytes, b_bytes), a == b || is_letter_pair);
        }
    }
}

TEST(a_word_is_itself_and_neither_its_beginning_nor_longer) {
    assert_true(bytes_is(BYTES("LiMiT"), "LIMIT"));
    assert_true(bytes_is(BYTES("LIMIT"), "limit"));
    assert_false(bytes_is(BYTES("LIMI"), "LIMIT"));
    assert_false(bytes_is(BYTES("LIMITS"), "LIMIT"));
    assert_false(bytes_is(BYTES("LIMIT\0"), "LIMIT"));
    assert_true(bytes_is(BYTES(""), ""));
}

static void assert_prints_u64(uint64_t value) {
    char expected[32];
    char out[BYTES_INTEGER_TEXT_MAX];
    int size = snprintf(expected, sizeof(expected), "%" PRIu64, value);
    assert_int_equal(bytes_print_u64(out, value), size);
    assert_memory_equal(out, expected, (size_t)size);
}

static void assert_prints_i64(int64_t value) {
    char expected[32];
    char out[BYTES_INTEGER_TEXT_MAX];
    int size = snprintf(expected, sizeof(expected), "%" PRId64, value);
    assert_int_equal(bytes_print_i64(out, value), size);
    assert_memory_equal(out, expected, (size_t)size);
    int64_t parsed;
    assert_true(bytes_parse_i64((struct bytes){.at = out, .size = (size_t)size}, &parsed));
    assert_int_equal(parsed, value);
}

TEST(integers_print_as_printf_prints_them) {
    for (uint64_t power = 1;; power *= 10) {
        assert_prints_u64(power - 1);
        assert_prints_u64(power);
        assert_prints_i64((int64_t)power);
        assert_prints_i64((int64_t)(0 - power));
        if (power == 10000000000000000000ULL) {
            break;
        }
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        assert_prints_u64((1ULL << bit) - 1);
        assert_prints_u64(1ULL << bit);
        assert_prints_i64((int64_t)(0 - (1ULL << bit)));
    }
    assert_prints_u64(UINT64_MAX);
    assert_prints_i64(INT64_MAX);
    assert_prints_i64(INT64_MIN);
    struct random random = random_begin(__func__);
    for (int i = 0; i < 50000; i++) {
        uint64_t value = random_next(&random) >> random_below(&random, 64);
        assert_prints_u64(value);
        assert_prints_i64((int64_t)value);
    }
}

TEST(integers_at_the_ends_of_their_range_parse) {
    int64_t i64 = 0;
    uint64_t u64 = 0;
    assert_true(bytes_parse_i64(BYTES("9223372036854775807"), &i64));
    assert_int_equal(i64, INT64_MAX);
    assert_true(bytes_parse_i64(BYTES("-9223372036854775808"), &i64));
    assert_int_equal(i64, INT64_MIN);
    assert_true(bytes_parse_i64(BYTES("0"), &i64));
    assert_int_equal(i64, 0);
    assert_true(bytes_parse_u64(BYTES("18446744073709551615"), &u64));
    assert_int_equal(u64, UINT64_MAX);
    assert_true(bytes_parse_u64(BYTES("0"), &u64));
    assert_int_equal(u64, 0);
}

TEST(text_that_is_no_integer_is_refused_and_changes_nothing) {
    static const struct bytes refused[] = {
        {0},
        BYTES_INIT(""),
        BYTES_INIT("-"),
        BYTES_INIT("+1"),
        BYTES_INIT(" 1"),
        BYTES_INIT("1 "),
        BYTES_INIT("01"),
        BYTES_INIT("00"),
        BYTES_INIT("-0"),
        BYTES_INIT("-01"),
        BYTES_INIT("--1"),
        BYTES_INIT("1-"),
        BYTES_INIT("1.0"),
        BYTES_INIT("1e3"),
        BYTES_INIT("0x1"),
        BYTES_INIT("1\0"),
        BYTES_INIT("/"),
        BYTES_INIT(":"),
        BYTES_INIT("\xff"),
        BYTES_INIT("18446744073709551616"),
        BYTES_INIT("-9223372036854775809"),
        BYTES_INIT("99999999999999999999"),
        BYTES_INIT("100000000000000000000"),
        BYTES_INIT("-100000000000000000000"),
        BYTES_INIT("184467440737095516150"),
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        int64_t i64 = 77;
        uint64_t u64 = 77;
        assert_false(bytes_parse_i64(refused[i], &i64));
        assert_int_equal(i64, 77);
        assert_false(bytes_parse_u64(refused[i], &u64));
        assert_int_equal(u64, 77);
    }
    int64_t i64 = 77;
    uint64_t u64 = 77;
    assert_false(bytes_parse_i64(BYTES("9223372036854775808"), &i64));
    assert_int_equal(i64, 77);
    assert_false(bytes_parse_u64(BYTES("-1"), &u64));
    assert_int_equal(u64, 77);
}

TEST(what_parses_prints_the_same) {
    static const char alphabet[] = "-00123456789 +";
    struct random random = random_begin(__func__);
    unsigned parsed_count = 0;
    for (int i = 0; i < 100000; i++) {
        char text[24];
        struct bytes bytes = {.at = text, .size = (size_t)random_below(&random, sizeof(text))};
        for (size_t at = 0; at < bytes.size; at++) {
            size_t letters = at == 0 ? sizeof(alphabet) - 1 : 12;
            text[at] = alphabet[random_below(&random, letters)];
        }
        int64_t value;
        char out[BYTES_INTEGER_TEXT_MAX];
        if (bytes_parse_i64(bytes, &value)) {
            parsed_count++;
            struct bytes printed = {.at = out, .size = bytes_print_i64(out, value)};
            assert_true(bytes_equal(printed, bytes));
        }
    }
    assert_true(parsed_count > 100);
}
