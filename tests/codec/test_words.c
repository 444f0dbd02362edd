/* Words of a line; the inline commands and the settings have tests of their own. */
#include "tests/support/test.h"

#include "codec/bytes.h"

/* The words, each in brackets; "!" at the end: unbalanced quotes. */
static const char *split(struct bytes line) {
    static char result[256];
    char room[64];
    char *out = room;
    char *at = result;
    size_t size = line.size;
    struct bytes word;
    enum bytes_word_status status;
    while ((status = bytes_take_quoted(&line, &out, &word)) == BYTES_WORD_TAKEN) {
        *at++ = '[';
        memcpy(at, word.at, word.size);
        at += word.size;
        *at++ = ']';
        assert_true(out <= room + size);
    }
    *at++ = status == BYTES_WORD_UNBALANCED ? '!' : '\0';
    *at = '\0';
    return result;
}

TEST(words_are_separated_by_blanks) {
    assert_string_equal(split(BYTES("")), "");
    assert_string_equal(split(BYTES(" \t\r\n\v\f")), "");
    assert_string_equal(split(BYTES("a  bc\td\r\n")), "[a][bc][d]");
}

TEST(quotes_hold_blanks_and_may_begin_inside_a_word) {
    assert_string_equal(split(BYTES("a\"b c\"d")), "!");
    assert_string_equal(split(BYTES("a\"b c\" d")), "[ab c][d]");
    assert_string_equal(split(BYTES("'' \"\" x")), "[][][x]");
    assert_string_equal(split(BYTES("'o\\'clock' 'a\\n' '\"'")), "[o'clock][a\\n][\"]");
}

TEST(double_quotes_take_escapes) {
    assert_string_equal(split(BYTES("\"\\n\\r\\t\\a\\b\\\\\\\"\\q\"")), "[\n\r\t\a\b\\\"q]");
    assert_string_equal(split(BYTES("\"\\x41\\x7a\\x7A\\xg1\\x4\"")), "[Azzxg1x4]");
    assert_string_equal(split(BYTES("\\x41\\n")), "[\\x41\\n]");
}

TEST(a_quote_that_is_not_closed_is_reported) {
    assert_string_equal(split(BYTES("a \"b")), "[a]!");
    assert_string_equal(split(BYTES("'b\\'")), "!");
    assert_string_equal(split(BYTES("\"b\\")), "!");
    assert_string_equal(split(BYTES("'b'c")), "!");
}

TEST(a_zero_byte_is_part_of_a_word) {
    struct bytes line = BYTES("a\0b c");
    struct bytes word;
    char *out = NULL;
    assert_int_equal(bytes_take_quoted(&line, &out, &word), BYTES_WORD_TAKEN);
    assert_true(bytes_equal(word, BYTES("a\0b")));
}
