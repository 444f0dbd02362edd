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
        {"000000000000000000000", 17},
        {"0000000000f", 11},
        {"123e4567-e89b-12d3-a456-426614174000", 16},
        {"123e4567-e89b-12d3-a456-42661417400g", 28},
        {"123e4567-e89b-12d3-a456_426614174000", 28},
        {"123E4567-e89b-12d3-a456-426614174000", 36},
        {"507f1f77bcf86cd799439011", 12},
        {"507f1f77bcf86cd79943901", 19},
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
        {"nora.lopez+17@gmail.com", 11},
        {"nora.lopez+1@gmail.com", 10},
        {"Nora.lopez@gmail.com", 20},
        {"nora.lopez@Gmail.com", 20},
        {"nora.lopez@gmail.co", 19},
        {"nora.lopez@gmail.com ", 17},
        {"nora.lopez@xgmail.com", 14},
        {"nora.lopez@gmail.com@gmail.com", 16},
        {"a@gmail.com", 2},
        {"@gmail.com", 10},
        {"a@qq.com", 2},
        {"a@x.com", 7},
        {"somebody@company.com", 13},
        {"somebody@company.travel", 19},
        {"nothing_but_letters", 19},
        {"nothing_but_letters_", 16},
        {"fewer_letters", 13},
        {"a~b_c'd(e)f*g+h,i/j:k;l<m=n>o?p!q", 26},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmno@gmail.com", 32},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnop@gmail.com", 52},
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

TEST(every_ending_is_found_and_nothing_that_resembles_it) {
    static const char *const endings[] = {"@gmail.com",
                                          "@hotmail.com",
                                          "@yahoo.com",
                                          "@outlook.com",
                                          "@icloud.com",
                                          "@qq.com",
                                          "@163.com",
                                          "@mail.ru",
                                          "@aol.com",
                                          "@live.com",
                                          "@msn.com",
                                          "@gmx.de",
                                          "@web.de",
                                          "@gmx.net",
                                          "@yandex.ru",
                                          "@googlemail.com",
                                          "@protonmail.com",
                                          "@proton.me",
                                          "@t-online.de",
                                          "@naver.com",
                                          "@126.com",
                                          "@hotmail.co.uk",
                                          "@yahoo.co.uk",
                                          "@hotmail.fr",
                                          "@orange.fr",
                                          "@libero.it",
                                          "@example.com",
                                          ".com",
                                          ".net",
                                          ".org",
                                          ".de"};
    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        char text[64];
        size_t size = (size_t)snprintf(text, sizeof text, "four_five_six_%s", endings[i]);
        assert_int_equal(stored_size(text), 1 + 11);
        for (size_t at = 14; at < size; at++) {
            char right = text[at];
            /* Each of these characters is a letter; as many are stored as there are then, unless it is shorter. */
            text[at] = right == '_' ? 'x' : '_';
            assert_true(stored_size(text) > 1 + 11);
            text[at] = right;
        }
    }
}

/* Texts that nearly are of a kind. */
static struct bytes draw(struct random *random, char *text) {
    static const char *const kinds[] = {
        "0123456789",
        "0123456789abcdef",
        "0123456789abcdefA-:_u",
        "/0123456789:",
        "`abcdefg",
        "abcdefghijklmnopqrstuvwxyz0123456789._-+@",
        " !\"#$%&'()*+,-./0123456789:;<=>?@_abcdefghijklmnopqrstuvwxyz{|}~",
        "a{|}~^`@_? AZ[\x7f\x80"};
    static const char *const prefixes[] = {"", "", "user:", "0x", "p", "player_", "member:"};
    static const char *const endings[] = {"",         "@gmail.com",     "@gmail.co",
                                          "@@qq.com", "@hotmail.co.uk", ".de",
                                          ".com",     "@company.com",   "@protonmail.com"};
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
    if (random_below(random, 2) == 0) {
        size = random_below(random, 2) == 0 ? size : 1 + size % 48;
        struct bytes ending = bytes_from_text(endings[random_below(random, COUNT_OF(endings))]);
        memcpy(at + size, ending.at, ending.size);
        size += ending.size;
    }
    if (random_below(random, 16) == 0) {
        at[size - 1] = (char)random_next(random);
    }
    return (struct bytes){.at = text, .size = prefix.size + size};
}

/* The letters of six bits each and their ending, read one by one. */
static void check_letters(struct bytes text, struct name name) {
    static const char letters[] =
        " !\"#$%&'()*+,-./0123456789:;<=>?@abcdefghijklmnopqrstuvwxyz{|}~_";
    if (!name_is_packed(name.code) || !name_has_letters(name)) {
        return;
    }
    size_t bits = 8 * (size_t)(name.size - 1);
    size_t count = bits / 6 - ((uint8_t)name.at[0] / 32 % 2);
    assert_in_range(count, 1, text.size);
    assert_int_equal(name_letters_size(name.at, name.size), text.size);
    for (size_t i = 0; i < bits; i++) {
        unsigned letter = i / 6 < count ? (unsigned)(strchr(letters, text.at[i / 6]) - letters) : 0;
        assert_int_equal((uint8_t)name.at[1 + i / 8] >> i % 8 & 1, letter >> i % 6 & 1);
    }
    assert_true(name.size + 4 <= text.size);
}

TEST(every_name_comes_back_and_has_one_form) {
    struct random random = random_begin(__func__);
    char texts[2][192];
    struct name names[2];
    struct packed_name forms[2];
    for (uint32_t i = 0; i < 300000; i++) {
        struct bytes text[2];
        for (int j = 0; j < 2; j++) {
            text[j] = draw(&random, texts[j]);
            if (j == 1 && random_below(&random, 2) == 0) {
                /* The same but for a byte, or its last one. */
                memcpy(texts[1], texts[0], text[0].size);
                text[1].size = text[0].size - (text[0].size > 1 && random_below(&random, 4) == 0);
                texts[1][random_below(&random, (uint32_t)text[1].size)] ^=
                    (char)(1U << random_below(&random, 8));
            }
            check(text[j], &names[j], &forms[j]);
            check_letters(text[j], names[j]);
        }
        bool are_equal = bytes_equal(text[0], text[1]);
        assert_int_equal(name_equal(names[0], names[1]), are_equal);
        assert_int_equal(name_is(names[0], text[1]), are_equal);
        assert_true(name_is(names[0], text[0]));
    }
}
