/* The forms of names: each back to its text, one form for each name, and no wider than promised. */
#include "codec/name.h"

#include "tests/support/random.h"
#include "tests/support/test.h"

/* Fill what may not be read, and see what may not be written. */
static void check(struct bytes text, struct name *name, struct packed_name *form) {
    char room[NAME_TEXT_ROOM + 1];
    char exact[NAME_FORM_MAX];
    name_pack(text, form);
    *name = name_from(text, form);
    room[NAME_TEXT_ROOM] = 'x';
    assert_true(bytes_equal(name_text(*name, room), text));
    assert_int_equal(room[NAME_TEXT_ROOM], 'x');
    if (!name_is_packed(name->code)) {
        assert_ptr_equal(name->at, text.at);
        assert_int_equal(name->code, text.size <= NAME_TEXT_MAX ? text.size : (size_t)NAME_LONG);
        return;
    }
    assert_int_equal(name->size, name_stored_size(name->code));
    assert_int_equal(name_size(*name), text.size);
    assert_in_range(name->size, 1, NAME_FORM_MAX);
    assert_true(name->size <= text.size);
    /* Of nothing but its bytes, at the end of their memory. */
    memcpy(exact + NAME_FORM_MAX - name->size, name->at, name->size);
    struct name copy = *name;
    copy.at = exact + NAME_FORM_MAX - name->size;
    assert_true(bytes_equal(name_text(copy, room), text));
    assert_true(name_equal(copy, *name));
}

static uint32_t stored_size(const char *text) {
    struct name name;
    struct packed_name form;
    check(bytes_from_text(text), &name, &form);
    return name.size;
}

TEST(a_name_is_stored_in_as_many_bytes_as_its_kind_takes) {
    static const struct {
        const char *text;
        uint32_t size;
    } names[] = {
        {"0", 1},
        {"00", 1},
        {"145", 2},
        {"1234567", 4},
        {"4294967295", 5},
        {"000000123456", 6},
        {"9999999999999999999", 10},
        {"00000000000000000000", 10},
        {"000000000000000000000", 21},
        {"0000000000f", 11},
        {"123e4567-e89b-12d3-a456-426614174000", 16},
        {"123e4567-e89b-12d3-a456-42661417400g", 36},
        {"123e4567-e89b-12d3-a456_426614174000", 36},
        {"123E4567-e89b-12d3-a456-426614174000", 36},
        {"507f1f77bcf86cd799439011", 12},
        {"507f1f77bcf86cd79943901", 23},
        {"507f1f77bcf86cd79943901G", 24},
        {"d41d8cd98f00b204e9800998ecf8427e", 16},
        {"da39a3ee5e6b4b0d3255bfef95601890afd80709", 20},
        {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 32},
        {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85500", 66},
        {"user:1234567", 5},
        {"user:000000123456", 7},
        {"user:507f1f77bcf86cd799439011", 13},
        {"user:123e4567-e89b-12d3-a456-426614174000", 17},
        {"0xda39a3ee5e6b4b0d3255bfef95601890afd80709", 21},
        {"user:face", 9},
        {"user:", 5},
        {"users:17", 8},
        {"player17", 2},
        {"player_9", 2},
        {"abba", 2},
        {"ann", 3},
        {"/", 1},
        {":", 1},
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(stored_size(names[i].text), names[i].size);
    }
}

TEST(every_prefix_is_found) {
    for (size_t i = 0; i < NAME_PREFIXES && name_prefixes[i].size > 0; i++) {
        char text[NAME_PREFIX_MAX + 3] = {0};
        memcpy(text, name_prefixes[i].text, name_prefixes[i].size);
        memcpy(text + name_prefixes[i].size, "17", 2);
        assert_int_equal(stored_size(text), 2);
    }
    assert_int_equal(name_prefixes[NAME_NO_PREFIX].size, 0);
}

/* Texts that nearly are of a kind. */
static struct bytes draw(struct random *random, char *text) {
    static const char *const kinds[] = {"0123456789", "0123456789abcdef", "0123456789abcdefA-:_u",
                                        "/0123456789:", "`abcdefg"};
    static const char *const prefixes[] = {"", "", "user:", "0x", "p", "player_", "member:"};
    const char *kind = kinds[random_below(random, COUNT_OF(kinds))];
    struct bytes prefix = bytes_from_text(prefixes[random_below(random, COUNT_OF(prefixes))]);
    size_t size = random_below(random, 4) == 0 ? 36 : 1 + random_below(random, 140);
    memcpy(text, prefix.at, prefix.size);
    char *at = text + prefix.size;
    for (size_t i = 0; i < size; i++) {
        at[i] = kind[random_below(random, strlen(kind))];
    }
    if (size == 36) {
        at[8] = at[13] = at[18] = at[23] = '-';
    }
    if (random_below(random, 8) == 0) {
        at[random_below(random, size)] = (char)random_next(random);
    }
    return (struct bytes){.at = text, .size = prefix.size + size};
}

TEST(every_name_comes_back_and_has_one_form) {
    struct random random = random_begin(__func__);
    char texts[2][160];
    struct name names[2];
    struct packed_name forms[2];
    for (uint32_t i = 0; i < 300000; i++) {
        struct bytes text[2];
        for (int j = 0; j < 2; j++) {
            text[j] = draw(&random, texts[j]);
            check(text[j], &names[j], &forms[j]);
        }
        bool are_equal = bytes_equal(text[0], text[1]);
        assert_int_equal(name_equal(names[0], names[1]), are_equal);
        assert_int_equal(name_is(names[0], text[1]), are_equal);
        assert_true(name_is(names[0], text[0]));
    }
}
