/* The text of layouts: what is accepted, the messages for what is refused, and printing. */
#include "tests/support/test.h"

#include "codec/layout.h"
#include "tests/support/layout_text.h"
#include "tests/support/random.h"

static struct layout parse(const char *text) {
    struct layout layout;
    char error[LAYOUT_ERROR_MAX] = "";
    if (layout_parse(bytes_from_text(text), &layout, error) != LAYOUT_OK) {
        fail_msg("'%s': %s", text, error);
    }
    const char *reason;
    if (!layout_validate(&layout, &reason)) {
        fail_msg("'%s': %s", text, reason);
    }
    assert_null(reason);
    return layout;
}

static void assert_canonical(const char *text, const char *canonical) {
    struct layout layout = parse(text);
    char out[LAYOUT_TEXT_MAX];
    size_t size = layout_print(&layout, out);
    assert_int_equal(size, strlen(out));
    assert_string_equal(out, canonical);
    struct layout again = parse(out);
    assert_true(layout_equal(&layout, &again));
}

TEST(the_default_layout_is_a_signed_score_and_seconds_until_2088) {
    struct layout layout;
    layout_init_default(&layout);
    ASSERT_VALID(layout_validate, &layout);
    struct layout parsed = parse("FIELD score 33 SIGNED TIME 31 S");
    assert_true(layout_equal(&layout, &parsed));
    assert_int_equal(layout.bits_total, 64);
    assert_int_equal(layout.fields[0].shift, 31);
    assert_int_equal(layout_field_lowest(&layout.fields[0]).magnitude, 4294967296);
    assert_true(layout_field_lowest(&layout.fields[0]).is_negative);
    assert_int_equal(layout_field_highest(&layout.fields[0]).magnitude, 4294967295);
    assert_int_equal(layout_time_first_us(&layout), 1577836800000000);
    assert_int_equal(layout_time_last_us(&layout), 3725320447999999);
}

TEST(text_is_parsed_into_fields_and_time) {
    struct layout layout = parse("FIELD score 20 ASC SIGNED SCALE 2 FIELD flag 1 TIME 29 MS START "
                                 "2021-01-01T00:00:00Z LATEST");
    assert_int_equal(layout.field_count, 2);
    assert_int_equal(layout.bits_total, 50);
    assert_string_equal(layout.fields[0].name, "score");
    assert_int_equal(layout.fields[0].bits, 20);
    assert_int_equal(layout.fields[0].shift, 30);
    assert_int_equal(layout.fields[0].scale, 2);
    assert_true(layout.fields[0].is_signed);
    assert_true(layout.fields[0].is_ascending);
    assert_int_equal(layout.fields[0].mask, (1 << 20) - 1);
    assert_string_equal(layout.fields[1].name, "flag");
    assert_int_equal(layout.fields[1].shift, 29);
    assert_false(layout.fields[1].is_signed);
    assert_false(layout.fields[1].is_ascending);
    assert_int_equal(layout.time.bits, 29);
    assert_int_equal(layout.time.unit, LAYOUT_UNIT_MS);
    assert_int_equal(layout.time.unit_us, 1000);
    assert_int_equal(layout.time.start_us, 1609459200000000);
    assert_true(layout.time.is_latest);
    assert_false(layout.time.is_given_by_end);
}

TEST(text_out_is_canonical) {
    assert_canonical("field Score 33 signed desc time 31 s", "FIELD Score 33 SIGNED TIME 31 S");
    assert_canonical(" \t FIELD\ta 1   SCALE 0 ", "FIELD a 1");
    assert_canonical("FIELD a 4 SCALE 18 SIGNED ASC", "FIELD a 4 ASC SIGNED SCALE 18");
    assert_canonical("FIELD a 1 TIME 3 D START 2020-01-01T00:00:00Z", "FIELD a 1 TIME 3 D");
    assert_canonical("FIELD a 1 TIME 3 H LATEST START 0",
                     "FIELD a 1 TIME 3 H START 1970-01-01T00:00:00Z LATEST");
    assert_canonical("FIELD a 1 TIME 3 M END 2029-01-01T00:00:00+08:00 LATEST",
                     "FIELD a 1 TIME 3 M END 2028-12-31T16:00:00Z LATEST");
    assert_canonical("FIELD a 1 TIME 3 US START 2022-12-15T13:30:30.250001Z",
                     "FIELD a 1 TIME 3 US START 2022-12-15T13:30:30.250001Z");
    assert_canonical("FIELD a 1 TIME 3 S START -9223372036854775",
                     "FIELD a 1 TIME 3 S START -9223372036854775");
    assert_canonical("FIELD a 1 TIME 3 S START 9223372036854775",
                     "FIELD a 1 TIME 3 S START 9223372036854775");
    assert_canonical("FIELD a 1 TIME 3 S END 9223372036854775",
                     "FIELD a 1 TIME 3 S END 9223372036854775");
    assert_canonical("FIELD a 1 TIME 63 US END 0", "FIELD a 1 TIME 63 US END 1970-01-01T00:00:00Z");
    assert_canonical("FIELD a 64 SIGNED", "FIELD a 64 SIGNED");
    assert_canonical("FIELD asc 2 ASC FIELD 9lives 3 FIELD -_x 4",
                     "FIELD asc 2 ASC FIELD 9lives 3 FIELD -_x 4");
}

TEST(sixty_four_fields_of_the_longest_text_fit) {
    char text[LAYOUT_TEXT_MAX];
    char *at = text;
    for (int i = 0; i < 63; i++) {
        at += sprintf(at, "%sFIELD %s%02d 1 ASC SIGNED SCALE 18", i == 0 ? "" : " ",
                      "a23456789012345678901234567890", i);
    }
    sprintf(at, " TIME 1 MS START 2022-12-15T13:30:30.250001Z LATEST");
    assert_canonical(text, text);
    sprintf(at, " FIELD a2345678901234567890123456789063 1 ASC SIGNED SCALE 18");
    assert_canonical(text, text);
}

TEST(words_parse_as_the_text_they_were_cut_from) {
    static const struct bytes words[] = {
        BYTES_INIT("FIELD"), BYTES_INIT("points"),
        BYTES_INIT("30"),    BYTES_INIT("TIME"),
        BYTES_INIT("34"),    BYTES_INIT("MS"),
        BYTES_INIT("END"),   BYTES_INIT("2023-03-05T23:59:59.000+08:00"),
    };
    struct layout layout;
    char error[LAYOUT_ERROR_MAX];
    assert_int_equal(layout_parse_words(words, COUNT_OF(words), &layout, error), LAYOUT_OK);
    struct layout from_text = parse("FIELD points 30 TIME 34 MS END 2023-03-05T23:59:59.000+08:00");
    assert_true(layout_equal(&layout, &from_text));
}

TEST(the_words_of_a_layout_end_where_something_else_begins) {
    static const struct {
        const char *text;
        size_t count;
    } samples[] = {
        {"", 0},
        {"cap 3", 0},
        {"FIELD a 3", 3},
        {"FIELD a 3 KEEP BEST", 3},
        {"field cap 3 signed desc scale 2 asc CAP 3", 8},
        {"FIELD field 3 FIELD keep 4 TIME 3 S START 5 LATEST KEEP LAST", 12},
        {"TIME 3 S END 5 PERIOD DAY", 5},
        {"FIELD a 3 SCALE", 4},
        {"FIELD a", 2},
        {"FIELD", 1},
        {"FIELD a cap 3", 3},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct bytes words[32];
        size_t count = 0;
        char text[128];
        strcpy(text, samples[i].text);
        for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
            words[count++] = bytes_from_text(word);
        }
        assert_int_equal(layout_count_words(words, count), samples[i].count);
    }
}

TEST(a_word_with_a_blank_inside_is_no_two_words) {
    static const struct bytes words[] = {BYTES_INIT("FIELD a 3")};
    struct layout layout;
    char error[LAYOUT_ERROR_MAX];
    assert_int_equal(layout_parse_words(words, 1, &layout, error), LAYOUT_BAD_TEXT);
}

struct refusal {
    struct bytes text;
    const char *error;
};

#define REFUSAL(text_literal, error_literal)                                                       \
    { BYTES_INIT(text_literal), error_literal }

#define FIELD_FORM "FIELD name bits [ASC|DESC] [SIGNED] [SCALE d] [DOUBLE] [DECAY n S|M|H|D]"
#define TIME_FORM  "TIME bits US|MS|S|M|H|D [START t | END t] [LATEST]"
#define TAG_FORM   "TAG name bits"
#define NAME_RULE                                                                                  \
    "' is not allowed: 1..32 letters, digits, '_' and '-', with a letter among them, and not "     \
    "FIELD or TIME"
#define TAG_NAME_RULE                                                                              \
    "' is not allowed: 1..32 letters, digits, '_' and '-', with a letter among them, and not "     \
    "FIELD, TIME or TAG"
#define TIME_FORMS "ISO 8601 with an offset, or unix milliseconds"

static const struct refusal refusals[] = {
    REFUSAL("", "a layout needs at least one FIELD: " FIELD_FORM),
    REFUSAL("  \t", "a layout needs at least one FIELD: " FIELD_FORM),
    REFUSAL("score 33",
            "unexpected word 'score': " FIELD_FORM ", then " TIME_FORM ", then " TAG_FORM),
    REFUSAL("FIELD a 3 BIG",
            "unexpected word 'BIG': " FIELD_FORM ", then " TIME_FORM ", then " TAG_FORM),
    REFUSAL("FIELD a 3 LATEST",
            "unexpected word 'LATEST': " FIELD_FORM ", then " TIME_FORM ", then " TAG_FORM),
    REFUSAL("FIELD a 3 TIME 3 S FAST", "unexpected word 'FAST': " TIME_FORM ", then " TAG_FORM),
    REFUSAL("FIELD a 3 TIME 3 S ASC", "unexpected word 'ASC': " TIME_FORM ", then " TAG_FORM),
    REFUSAL("FIELD", "FIELD needs a name and a width: " FIELD_FORM),
    REFUSAL("FIELD a", "FIELD needs a name and a width: " FIELD_FORM),
    REFUSAL("FIELD 33 3", "field name '33" NAME_RULE),
    REFUSAL("FIELD -5 3", "field name '-5" NAME_RULE),
    REFUSAL("FIELD a.b 3", "field name 'a.b" NAME_RULE),
    REFUSAL("FIELD a\r\n\x80 3", "field name 'a???" NAME_RULE),
    REFUSAL("FIELD time 3", "field name 'time" NAME_RULE),
    REFUSAL("FIELD FIELD 3", "field name 'FIELD" NAME_RULE),
    REFUSAL("FIELD a23456789012345678901234567890123 3",
            "field name 'a23456789012345678901234567890123" NAME_RULE),
    REFUSAL(
        "FIELD a2345678901234567890123456789012345678901234567890123456789012345 3",
        "field name 'a234567890123456789012345678901234567890123456789012345678901..." NAME_RULE),
    REFUSAL("FIELD a 3 FIELD A 3", "duplicate field name 'A'"),
    REFUSAL("FIELD a 0", "field 'a': '0' bits is out of range: 1..64 are allowed"),
    REFUSAL("FIELD a 65", "field 'a': '65' bits is out of range: 1..64 are allowed"),
    REFUSAL("FIELD a -1", "field 'a': '-1' bits is out of range: 1..64 are allowed"),
    REFUSAL("FIELD a x", "field 'a': 'x' bits is out of range: 1..64 are allowed"),
    REFUSAL("FIELD a 03", "field 'a': '03' bits is out of range: 1..64 are allowed"),
    REFUSAL("FIELD a 99999999999999999999",
            "field 'a': '99999999999999999999' bits is out of range: 1..64 are allowed"),
    REFUSAL("FIELD a 40 FIELD b 25", "field 'b': 25 bits are too many: 24 of a key's 64 are left"),
    REFUSAL("FIELD a 64 FIELD b 1", "field 'b': no bits left: a key has 64"),
    REFUSAL("FIELD a 3 SCALE", "field 'a': SCALE needs a number of decimals, 0..18"),
    REFUSAL("FIELD a 3 SCALE 19", "field 'a': SCALE '19' is out of range: 0..18 are allowed"),
    REFUSAL("FIELD a 3 SCALE TIME", "field 'a': SCALE 'TIME' is out of range: 0..18 are allowed"),
    REFUSAL("FIELD a 3 ASC DESC", "field 'a': ASC or DESC may be given only once"),
    REFUSAL("FIELD a 3 DESC DESC", "field 'a': ASC or DESC may be given only once"),
    REFUSAL("FIELD a 3 SIGNED SIGNED", "field 'a': SIGNED may be given only once"),
    REFUSAL("FIELD a 3 SCALE 1 SCALE 1", "field 'a': SCALE may be given only once"),
    REFUSAL("FIELD a 60 DECAY", "field 'a': DECAY needs a half-life, such as DECAY 6 H"),
    REFUSAL("FIELD a 60 DECAY 6", "field 'a': DECAY needs a half-life, such as DECAY 6 H"),
    REFUSAL("FIELD a 60 DECAY x H", "field 'a': DECAY 'x' is out of range: 1..1000000 are allowed"),
    REFUSAL("FIELD a 60 DECAY 0 H", "field 'a': DECAY '0' is out of range: 1..1000000 are allowed"),
    REFUSAL("FIELD a 60 DECAY 1000001 H",
            "field 'a': DECAY '1000001' is out of range: 1..1000000 are allowed"),
    REFUSAL("FIELD a 60 DECAY 6 MS", "field 'a': DECAY: unit 'MS' is unknown: use S, M, H or D"),
    REFUSAL("FIELD a 60 DECAY 6 H DECAY 6 H", "field 'a': DECAY may be given only once"),
    REFUSAL("FIELD a 3 FIELD b 60 DECAY 6 H",
            "field 'b': only the first field of a layout may have DECAY"),
    REFUSAL("FIELD a 60 SIGNED DECAY 6 H",
            "field 'a': SIGNED and DECAY exclude each other: results are never negative"),
    REFUSAL("FIELD a 52 DECAY 6 H",
            "field 'a': 52 bits are too few for DECAY 6 H: 53 are needed, 36 for a part in a "
            "million and 17 for the half-lives until 2070"),
    REFUSAL("FIELD a 3 DECAY 6 H",
            "field 'a': 3 bits are too few for DECAY 6 H: 53 are needed, 36 for a part in a "
            "million and 17 for the half-lives until 2070"),
    REFUSAL("FIELD a 48 DECAY 1 D TIME 13 D",
            "field 'a': 48 bits are too few for DECAY 1 D: 50 are needed, 36 for a part in a "
            "million and 14 for the half-lives until the end of TIME"),
    REFUSAL("FIELD a 1 DECAY 1 S TIME 63 D",
            "field 'a': 1 bits are too few for DECAY 1 S: 81 are needed, 36 for a part in a "
            "million and 45 for the half-lives until the end of TIME (a longer half-life, or a "
            "TIME that ends earlier, needs fewer)"),
    REFUSAL("FIELD a 3 TIME 3 S FIELD b 3", "TIME must be last, but a FIELD follows it"),
    REFUSAL("TIME 3 S FIELD a 3", "TIME must be last, but no FIELD precedes it"),
    REFUSAL("FIELD a 3 TIME 3 S TIME 3 S", "TIME may be given only once"),
    REFUSAL("FIELD a 64 TIME 1 S", "TIME: no bits left: a key has 64"),
    REFUSAL("FIELD a 3 TIME", "TIME needs a width and a unit: " TIME_FORM),
    REFUSAL("FIELD a 3 TIME 3", "TIME needs a width and a unit: " TIME_FORM),
    REFUSAL("FIELD a 3 TIME 0 S", "TIME: '0' bits is out of range: 1..63 are allowed"),
    REFUSAL("FIELD a 3 TIME 64 S", "TIME: '64' bits is out of range: 1..63 are allowed"),
    REFUSAL("FIELD a 33 TIME 32 S", "TIME: 32 bits are too many: 31 of a key's 64 are left"),
    REFUSAL("FIELD a 3 TIME 3 W", "TIME: unit 'W' is unknown: use US, MS, S, M, H or D"),
    REFUSAL("FIELD a 3 TIME 3 S START", "TIME: START needs a time: " TIME_FORMS),
    REFUSAL("FIELD a 3 TIME 3 S END", "TIME: END needs a time: " TIME_FORMS),
    REFUSAL("FIELD a 3 TIME 3 S START noon", "TIME: START 'noon' is not a time: use " TIME_FORMS),
    REFUSAL("FIELD a 3 TIME 3 S END 2021-02-29T00:00:00Z",
            "TIME: END '2021-02-29T00:00:00Z' is not a time: use " TIME_FORMS),
    REFUSAL("FIELD a 3 TIME 3 S START 0 END 0", "TIME: START or END may be given only once"),
    REFUSAL("FIELD a 3 TIME 3 S START 0 START 0", "TIME: START or END may be given only once"),
    REFUSAL("FIELD a 3 TIME 3 S LATEST LATEST", "TIME: LATEST may be given only once"),
    REFUSAL("FIELD a 1 TIME 63 D END 0",
            "TIME: END '0' is too early: START, 2^63 - 1 D before it, does not fit 64 bits of "
            "microseconds; use fewer bits or a smaller unit"),
    REFUSAL("FIELD a 1 TIME 60 MS END 0",
            "TIME: END '0' is too early: START, 2^60 - 1 MS before it, does not fit 64 bits of "
            "microseconds; use fewer bits or a smaller unit"),
    REFUSAL("FIELD a 3 TAG", "TAG needs a name and a width: " TAG_FORM),
    REFUSAL("FIELD a 3 TAG b", "TAG needs a name and a width: " TAG_FORM),
    REFUSAL("TAG b 3 FIELD a 3", "TAG must be last, but no FIELD precedes it"),
    REFUSAL("FIELD a 3 TAG b 3 FIELD c 3", "TAG must be last, but a FIELD follows it"),
    REFUSAL("FIELD a 3 TAG b 3 TIME 3 S", "TAG must be last, but TIME follows it"),
    REFUSAL("FIELD a 3 TIME 3 S TAG b 3 LATEST", "unexpected word 'LATEST': " TAG_FORM),
    REFUSAL("FIELD a 3 TAG 33 3", "tag name '33" TAG_NAME_RULE),
    REFUSAL("FIELD a 3 TAG b.c 3", "tag name 'b.c" TAG_NAME_RULE),
    REFUSAL("FIELD a 3 TAG time 3", "tag name 'time" TAG_NAME_RULE),
    REFUSAL("FIELD a 3 TAG tag 3", "tag name 'tag" TAG_NAME_RULE),
    REFUSAL("FIELD a 3 TAG Field 3", "tag name 'Field" TAG_NAME_RULE),
    REFUSAL("FIELD a 3 TAG b23456789012345678901234567890123 3",
            "tag name 'b23456789012345678901234567890123" TAG_NAME_RULE),
    REFUSAL("FIELD a 3 TAG b 3 TAG B 3", "duplicate tag name 'B'"),
    REFUSAL("FIELD a 3 TAG b 0", "tag 'b': '0' bits is out of range: 1..32 are allowed"),
    REFUSAL("FIELD a 3 TAG b 33", "tag 'b': '33' bits is out of range: 1..32 are allowed"),
    REFUSAL("FIELD a 3 TAG b x", "tag 'b': 'x' bits is out of range: 1..32 are allowed"),
    REFUSAL("FIELD a 3 TAG b 20 TAG c 13",
            "tag 'c': 13 bits are too many: 12 of the 32 of all tags are left"),
    REFUSAL("FIELD a 3 TAG b 32 TAG c 1",
            "tag 'c': 1 bits are too many: 0 of the 32 of all tags are left"),
    REFUSAL("FIELD a 3 TAG b 1 TAG c 1 TAG d 1 TAG e 1 TAG f 1 TAG g 1 TAG h 1 TAG i 1 TAG j 1",
            "tag 'j': there are too many: 8 are allowed"),
    REFUSAL("FIELD a 3\0", "field 'a': '3?' bits is out of range: 1..64 are allowed"),
};

TEST(what_is_wrong_is_said_with_its_place_and_what_is_allowed) {
    struct layout untouched;
    memset(&untouched, 0x5a, sizeof(untouched));
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        struct layout layout = untouched;
        char error[LAYOUT_ERROR_MAX];
        memset(error, 'x', sizeof(error));
        assert_int_equal(layout_parse(refusals[i].text, &layout, error), LAYOUT_BAD_TEXT);
        assert_string_equal(error, refusals[i].error);
        assert_memory_equal(&layout, &untouched, sizeof(layout));
    }
}

TEST(more_words_than_any_layout_has_are_refused) {
    static char text[2 * 513];
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = i % 2 == 0 ? 'a' : ' ';
    }
    struct layout layout;
    char error[LAYOUT_ERROR_MAX];
    struct bytes bytes = {.at = text, .size = sizeof(text)};
    assert_int_equal(layout_parse(bytes, &layout, error), LAYOUT_BAD_TEXT);
    assert_string_equal(error, "a layout has at most 512 words");
    bytes.size -= 2;
    assert_int_equal(layout_parse(bytes, &layout, error), LAYOUT_BAD_TEXT);
    assert_string_equal(error,
                        "unexpected word 'a': " FIELD_FORM ", then " TIME_FORM ", then " TAG_FORM);
}

TEST(tags_stand_behind_what_the_key_consists_of) {
    struct layout layout = parse("FIELD tag 3 TIME 3 S tag Country 8 TAG tag-2 24");
    assert_int_equal(layout.bits_total, 6);
    assert_int_equal(layout.tags.count, 2);
    assert_string_equal(layout.tags.tags[0].name, "Country");
    assert_int_equal(layout.tags.tags[0].bits, 8);
    assert_string_equal(layout.tags.tags[1].name, "tag-2");
    assert_int_equal(layout.tags.tags[1].bits, 24);
    assert_canonical("field tag 3 time 3 s tag tag-2 24 tag b 8",
                     "FIELD tag 3 TIME 3 S TAG tag-2 24 TAG b 8");
    assert_canonical("FIELD a 3 TAG a 32", "FIELD a 3 TAG a 32");
}

TEST(layouts_that_differ_in_tags_have_equal_keys) {
    struct layout bare = parse("FIELD a 3 TIME 3 S");
    struct layout tagged = parse("FIELD a 3 TIME 3 S TAG b 3");
    struct layout other = parse("FIELD a 4 TIME 3 S TAG b 3");
    assert_true(layout_keys_equal(&bare, &tagged));
    assert_false(layout_equal(&bare, &tagged));
    assert_false(layout_keys_equal(&other, &tagged));
}

TEST(words_of_tags_belong_to_the_layout) {
    const struct bytes words[] = {BYTES("FIELD"), BYTES("a"), BYTES("3"),   BYTES("tag"),
                                  BYTES("b"),     BYTES("3"), BYTES("CAP"), BYTES("5")};
    assert_int_equal(layout_count_words(words, 8), 6);
    assert_int_equal(layout_count_words(words, 5), 5);
}

TEST(layouts_are_equal_when_their_texts_are) {
    static const char *const texts[] = {
        "FIELD a 3",
        "FIELD b 3",
        "FIELD A 3",
        "FIELD a 4",
        "FIELD a 3 ASC",
        "FIELD a 3 SIGNED",
        "FIELD a 3 SCALE 1",
        "FIELD a 3 FIELD b 3",
        "FIELD a 3 TIME 3 S",
        "FIELD a 3 TIME 4 S",
        "FIELD a 3 TIME 3 MS",
        "FIELD a 3 TIME 3 S LATEST",
        "FIELD a 3 TIME 3 S START 0",
        "FIELD a 3 TIME 3 S END 0",
        "FIELD a 3 TIME 3 S END 7000",
        "FIELD a 60 DECAY 6 H",
        "FIELD a 60 DECAY 7 H",
        "FIELD a 60 DECAY 6 D",
        "FIELD a 60",
        "FIELD a 60 DECAY 6 H TIME 4 D",
        "FIELD a 60 DECAY 6 H TIME 4 D START 0",
        "FIELD a 3 TAG b 3",
        "FIELD a 3 TAG B 3",
        "FIELD a 3 TAG b 4",
        "FIELD a 3 TAG b 3 TAG c 3",
        "FIELD a 3 TAG c 3 TAG b 3",
        "FIELD a 3 TIME 3 S TAG b 3",
    };
    size_t count = COUNT_OF(texts);
    for (size_t a = 0; a < count; a++) {
        for (size_t b = 0; b < count; b++) {
            struct layout layout_a = parse(texts[a]);
            struct layout layout_b = parse(texts[b]);
            assert_int_equal(layout_equal(&layout_a, &layout_b), a == b);
        }
    }
}

static void assert_fault(const struct layout *layout, const char *expected) {
    const char *reason = NULL;
    assert_false(layout_validate(layout, &reason));
    assert_string_equal(reason, expected);
}

TEST(a_half_life_that_does_not_hold_together_is_found) {
    const struct layout good = parse("FIELD a 55 DECAY 6 H FIELD b 3 TIME 6 D START 0");
    struct layout bad = good;
    bad.fields[0].decay.count = 0;
    assert_fault(&bad, "a half-life is out of range");
    bad.fields[0].decay.count = DECAY_COUNT_MAX + 1;
    assert_fault(&bad, "a half-life is out of range");
    bad = good;
    bad.fields[0].decay.unit = LAYOUT_UNIT_MS;
    assert_fault(&bad, "a half-life is out of range");
    bad.fields[0].decay.unit = LAYOUT_UNIT_D + 1;
    assert_fault(&bad, "a half-life is out of range");
    bad = good;
    bad.fields[0].decay.epoch_us++;
    assert_fault(&bad, "a field's epoch or fraction does not follow from the layout");
    bad = good;
    bad.fields[0].decay.fraction_bits--;
    assert_fault(&bad, "a field's epoch or fraction does not follow from the layout");
    bad = good;
    bad.fields[0].decay.half_life_us = 0;
    assert_fault(&bad, "a field's epoch or fraction does not follow from the layout");
    bad = good;
    bad.fields[0].is_signed = true;
    assert_fault(&bad, "a field that decays is signed, of doubles or too narrow");
    bad = good;
    bad.fields[0].bits = 40;
    layout_complete(&bad);
    assert_fault(&bad, "a field that decays is signed, of doubles or too narrow");
    bad = good;
    bad.fields[1].decay = good.fields[0].decay;
    assert_fault(&bad, "a field that is not the first one decays");
    bad = good;
    bad.fields[1].decay.half_life_us = 1;
    assert_fault(&bad, "a field's epoch or fraction does not follow from the layout");
}

TEST(a_score_decays_from_the_layouts_start) {
    struct layout layout = parse("FIELD a 55 SCALE 2 DECAY 6 H TIME 9 D START 0");
    struct layout_field *lead = &layout.fields[0];
    assert_int_equal(lead->decay.half_life_us, INT64_C(6) * 3600 * 1000 * 1000);
    assert_int_equal(lead->decay.epoch_us, 0);
    assert_int_equal(lead->decay.fraction_bits, 55 - 12);
    layout_set_start(&layout, 5000000);
    assert_int_equal(lead->decay.epoch_us, 5000000);
    assert_int_equal(layout_set_end(&layout, INT64_C(511) * 86400 * 1000 * 1000), LAYOUT_OK);
    assert_int_equal(lead->decay.epoch_us, 0);
    layout = parse("FIELD a 64 DECAY 6 H");
    assert_int_equal(layout.fields[0].decay.epoch_us, 1577836800000000);
    assert_int_equal(layout.fields[0].decay.fraction_bits, 47);
    layout = parse("FIELD a 64 DECAY 1000000 D");
    assert_int_equal(layout.fields[0].decay.fraction_bits, DECAY_FRACTION_BITS_MAX);
    assert_canonical("field a 60 decay 6 h desc scale 2", "FIELD a 60 SCALE 2 DECAY 6 H");
    assert_canonical("FIELD a 60 DECAY 1000000 D ASC FIELD b 3",
                     "FIELD a 60 ASC DECAY 1000000 D FIELD b 3");
}

TEST(words_of_decay_belong_to_the_layout) {
    const struct bytes words[] = {BYTES("FIELD"), BYTES("a"), BYTES("60"),  BYTES("decay"),
                                  BYTES("6"),     BYTES("H"), BYTES("CAP"), BYTES("5")};
    assert_int_equal(layout_count_words(words, 8), 6);
    assert_int_equal(layout_count_words(words, 5), 5);
}

TEST(tags_that_do_not_hold_together_are_found) {
    struct layout layout = parse("FIELD a 3 TAG b 3 TAG c 3");
    struct layout wrong = layout;
    wrong.tags.count = 9;
    assert_fault(&wrong, "there are more than 8 tags");
    wrong = layout;
    wrong.tags.tags[1].name[0] = '.';
    assert_fault(&wrong, "a tag's name is not allowed");
    wrong = layout;
    memset(wrong.tags.tags[1].name, 'x', sizeof wrong.tags.tags[1].name);
    assert_fault(&wrong, "a tag's name is not allowed");
    wrong = layout;
    wrong.tags.tags[1].name[0] = 'B';
    assert_fault(&wrong, "two tags have one name");
    wrong = layout;
    wrong.tags.tags[1].bits = 0;
    assert_fault(&wrong, "a tag's width is not 1..32");
    wrong = layout;
    wrong.tags.tags[1].bits = 33;
    assert_fault(&wrong, "a tag's width is not 1..32");
    wrong = layout;
    wrong.tags.tags[1].bits = 30;
    assert_fault(&wrong, "all tags together have more than 32 bits");
    wrong = layout;
    wrong.tags.count = 1;
    assert_fault(&wrong, "a tag that is not there has a name or bits");
}

TEST(a_field_that_does_not_hold_together_is_found) {
    const struct layout good = parse("FIELD a 30 SCALE 2 FIELD b 3 TIME 31 S END 0");
    struct layout bad = good;
    bad.field_count = 0;
    assert_fault(&bad, "the number of fields is not 1..64");
    bad.field_count = LAYOUT_FIELDS_MAX + 1;
    assert_fault(&bad, "the number of fields is not 1..64");
    bad = good;
    bad.fields[1].name[0] = '\0';
    assert_fault(&bad, "a field's name is not allowed");
    memset(bad.fields[1].name, 'n', sizeof(bad.fields[1].name));
    assert_fault(&bad, "a field's name is not allowed");
    strcpy(bad.fields[1].name, "A");
    assert_fault(&bad, "two fields have one name");
    bad = good;
    bad.fields[0].bits = 0;
    assert_fault(&bad, "a field's width is not 1..64");
    bad.fields[0].bits = 65;
    assert_fault(&bad, "a field's width is not 1..64");
    bad = good;
    bad.fields[0].mask++;
    assert_fault(&bad, "a field's mask does not follow from its width");
    bad = good;
    bad.fields[0].scale = DECIMAL_SCALE_MAX + 1;
    assert_fault(&bad, "a field's scale is too large");
    bad = good;
    bad.fields[0].shift++;
    assert_fault(&bad, "a field's shift does not follow from the widths below it");
    bad = good;
    bad.bits_total--;
    assert_fault(&bad, "the sum of the widths is wrong");
    bad = good;
    bad.fields[0].bits = 31;
    bad.fields[0].mask = (1ULL << 31) - 1;
    bad.bits_total = 65;
    assert_fault(&bad, "the sum of the widths is wrong");
}

TEST(a_time_that_does_not_hold_together_is_found) {
    const struct layout good = parse("FIELD a 30 SCALE 2 FIELD b 3 TIME 31 S END 0");
    struct layout bad = good;
    bad.time.bits = 64;
    assert_fault(&bad, "the time's width is not 1..63");
    bad = good;
    bad.time.mask >>= 1;
    assert_fault(&bad, "the time's mask does not follow from its width");
    bad = good;
    bad.time.unit_us++;
    assert_fault(&bad, "the time's unit is unknown");
    bad = good;
    bad.time.unit = (enum layout_unit)(LAYOUT_UNIT_D + 1);
    assert_fault(&bad, "the time's unit is unknown");
    bad = good;
    bad.time.start_us = INT64_MAX;
    assert_fault(&bad, "the time's end is not in range");
    bad = good;
    bad.time.start_us = INT64_MIN + 1;
    bad.time.is_given_by_end = false;
    assert_fault(&bad, "the time's start or end has no exact text");
    bad = parse("FIELD a 3");
    bad.time.mask = 1;
    assert_fault(&bad, "there is no time, but something is said about it");
}

static void make_tags(struct random *random, char *at) {
    unsigned left = TAGS_BITS_MAX;
    for (uint64_t i = random_below(random, TAGS_MAX + 1); i > 0 && left > 0; i--) {
        unsigned bits = 1 + (unsigned)random_below(random, left);
        left -= bits;
        at += sprintf(at, " tag t%u %u", (unsigned)i, bits);
    }
}

/* Any layout at all, as text in canonical words but with options in any order. */
static void make_text(struct random *random, char *text) {
    static const char *const units[] = {"us", "MS", "s", "M", "H", "D"};
    char *at = text;
    unsigned left = 64;
    unsigned field_count = 1 + (unsigned)random_below(random, 6);
    for (unsigned i = 0; i < field_count && left > 0; i++) {
        unsigned bits = 1 + (unsigned)random_below(random, left);
        left -= bits;
        bool is_scale_first = random_below(random, 2) == 0;
        unsigned scale = (unsigned)random_below(random, DECIMAL_SCALE_MAX + 1);
        at += sprintf(at, "%sFIELD f%u %u", i == 0 ? "" : "  ", i, bits);
        at += is_scale_first ? sprintf(at, " SCALE %u", scale) : 0;
        at += sprintf(at, "%s", random_below(random, 2) == 0 ? " Signed" : "");
        at += sprintf(at, "%s", random_below(random, 2) == 0 ? " ASC" : "");
        at += is_scale_first ? 0 : sprintf(at, " SCALE %u", scale);
    }
    if (left == 0) {
        make_tags(random, at);
        return;
    }
    unsigned bits = 1 + (unsigned)random_below(random, left < 48 ? left : 48);
    at += sprintf(at, "\tTIME %u %s", bits, units[random_below(random, bits > 40 ? 2 : 6)]);
    at += sprintf(at, "%s", random_below(random, 2) == 0 ? " LATEST" : "");
    int64_t time_ms = (int64_t)(random_next(random) >> (10 + random_below(random, 30)));
    if (random_below(random, 3) > 0) {
        at += sprintf(at, " %s %" PRId64, random_below(random, 2) == 0 ? "START" : "END",
                      time_ms % 4102444800000 - 2000);
    }
    make_tags(random, at);
}

TEST(random_layouts_print_and_parse_to_themselves) {
    struct random random = random_begin(__func__);
    unsigned parsed_count = 0;
    for (int i = 0; i < 10000; i++) {
        char text[LAYOUT_TEXT_MAX];
        char error[LAYOUT_ERROR_MAX];
        make_text(&random, text);
        struct layout layout;
        if (layout_parse(bytes_from_text(text), &layout, error) != LAYOUT_OK) {
            assert_non_null(strstr(error, "is too early"));
            continue;
        }
        parsed_count++;
        char printed[LAYOUT_TEXT_MAX];
        layout_print(&layout, printed);
        struct layout again = parse(printed);
        assert_true(layout_equal(&layout, &again));
        char printed_again[LAYOUT_TEXT_MAX];
        layout_print(&again, printed_again);
        assert_string_equal(printed_again, printed);
    }
    assert_true(parsed_count > 5000);
}
