/* Sets of tags, and values as bytes. */
#include "tests/support/test.h"

#include "codec/tag.h"

static struct tag_set set_of(const char *const *words, unsigned count) {
    struct tag_set set = {.count = 0};
    char error[TAG_ERROR_MAX];
    for (unsigned i = 0; i < count; i++) {
        assert_true(tag_set_add(&set, bytes_from_text(words[2 * i]),
                                bytes_from_text(words[2 * i + 1]), error));
    }
    assert_null(tag_set_fault(&set));
    return set;
}

static const char *const three[] = {"country", "8", "class", "4", "clan", "10"};

TEST(a_tag_is_found_by_its_name_in_any_case) {
    struct tag_set set = set_of(three, 3);
    assert_int_equal(tag_set_find(&set, BYTES("country")), 0);
    assert_int_equal(tag_set_find(&set, BYTES("CLAN")), 2);
    assert_int_equal(tag_set_find(&set, BYTES("cla")), -1);
    assert_int_equal(tag_set_find(&set, BYTES("")), -1);
}

TEST(what_cannot_be_added_changes_nothing) {
    struct tag_set set = set_of(three, 3);
    struct tag_set before = set;
    char error[TAG_ERROR_MAX];
    assert_false(tag_set_add(&set, BYTES("Clan"), BYTES("3"), error));
    assert_string_equal(error, "duplicate tag name 'Clan'");
    assert_false(tag_set_add(&set, BYTES("x"), BYTES("11"), error));
    assert_string_equal(error, "tag 'x': 11 bits are too many: 10 of the 32 of all tags are left");
    assert_memory_equal(&set, &before, sizeof set);
}

TEST(a_tag_gets_other_bits_from_what_the_others_leave) {
    struct tag_set set = set_of(three, 3);
    struct tag_set before = set;
    char error[TAG_ERROR_MAX];
    assert_false(tag_set_resize(&set, 1, BYTES("15"), error));
    assert_string_equal(error,
                        "tag 'class': 15 bits are too many: 14 of the 32 of all tags are left");
    assert_false(tag_set_resize(&set, 1, BYTES("NO"), error));
    assert_string_equal(error, "tag 'class': 'NO' bits is out of range: 1..32 are allowed");
    assert_memory_equal(&set, &before, sizeof set);
    assert_true(tag_set_resize(&set, 1, BYTES("14"), error));
    assert_int_equal(set.tags[1].bits, 14);
    assert_null(tag_set_fault(&set));
}

TEST(those_behind_a_removed_tag_move_up) {
    static const char *const two[] = {"country", "8", "clan", "10"};
    struct tag_set set = set_of(three, 3);
    struct tag_set expected = set_of(two, 2);
    tag_set_remove(&set, 1);
    assert_memory_equal(&set, &expected, sizeof set);
    assert_true(tag_set_equal(&set, &expected));
    tag_set_remove(&set, 1);
    tag_set_remove(&set, 0);
    expected = (struct tag_set){.count = 0};
    assert_memory_equal(&set, &expected, sizeof set);
}

TEST(bits_say_how_many_values_there_are) {
    struct tag tag = {.bits = 1};
    assert_int_equal(tag_values_max(&tag), 1);
    tag.bits = 8;
    assert_int_equal(tag_values_max(&tag), 255);
    tag.bits = 32;
    assert_int_equal(tag_values_max(&tag), UINT32_MAX);
}

/* ---- values as bytes ---- */

static void assert_values_equal(const struct tag_values *a, const struct tag_values *b) {
    assert_int_equal(a->mask, b->mask);
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        if ((a->mask >> i & 1) != 0) {
            assert_true(bytes_equal(a->at[i], b->at[i]));
        }
    }
}

TEST(values_are_read_back) {
    char long_value[TAG_VALUE_MAX];
    char packed[TAG_VALUES_PACKED_MAX];
    memset(long_value, '\xff', sizeof long_value);
    for (unsigned mask = 0; mask < 1u << TAGS_MAX; mask++) {
        struct tag_values values = {.mask = mask};
        struct tag_values again;
        for (unsigned i = 0; i < TAGS_MAX; i++) {
            values.at[i] = (struct bytes){.at = long_value, .size = (mask + i * 9) % 65};
        }
        size_t size = tag_values_pack(&values, packed);
        assert_true(size <= sizeof packed);
        assert_true(
            tag_values_unpack((struct bytes){.at = packed, .size = size}, TAGS_MAX, &again));
        assert_values_equal(&values, &again);
    }
}

TEST(values_are_read_from_the_front) {
    struct bytes text = BYTES("\x05\x02"
                              "DE"
                              "\x00rest");
    struct tag_values values;
    assert_true(tag_values_take(&text, 3, &values));
    assert_int_equal(values.mask, 5);
    assert_true(bytes_equal(values.at[0], BYTES("DE")));
    assert_int_equal(values.at[2].size, 0);
    assert_true(bytes_equal(text, BYTES("rest")));
}

TEST(what_are_no_values_is_refused) {
    static const struct bytes wrong[] = {
        BYTES_INIT(""),     /* no mask */
        BYTES_INIT("\x01"), /* no size */
        BYTES_INIT("\x01\x02"
                   "D"), /* too short */
        BYTES_INIT("\x05\x02"
                   "DE"), /* the second is missing */
        BYTES_INIT("\x08\x01"
                   "a"), /* there is no fourth tag */
        BYTES_INIT("\x01\x41"
                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    };
    struct tag_values values;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct bytes text = wrong[i];
        assert_false(tag_values_take(&text, 3, &values));
        assert_true(text.at == wrong[i].at && text.size == wrong[i].size);
        assert_false(tag_values_unpack(text, 3, &values));
    }
    assert_false(tag_values_unpack(BYTES("\x01\x01"
                                         "ab"),
                                   3, &values)); /* something is behind */
}
