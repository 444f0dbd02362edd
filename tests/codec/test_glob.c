/* Patterns match as in Redis, and hostile ones terminate. */
#include "tests/support/test.h"

#include <time.h>

#include "codec/glob.h"
#include "codec/memory.h"
#include "tests/support/random.h"

struct sample {
    struct bytes pattern;
    struct bytes text;
    bool matches;
};

static void assert_samples(const struct sample *samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (glob_matches(samples[i].pattern, samples[i].text) != samples[i].matches) {
            fail_msg("sample %zu: pattern '%.*s'", i, (int)samples[i].pattern.size,
                     samples[i].pattern.at);
        }
    }
}

#define SAMPLE(pattern_text, text_text, answer)                                                    \
    { BYTES_INIT(pattern_text), BYTES_INIT(text_text), answer }
#define ASSERT_SAMPLES(samples) assert_samples(samples, sizeof(samples) / sizeof((samples)[0]))

TEST(plain_bytes_match_themselves_alone) {
    static const struct sample samples[] = {
        SAMPLE("", "", true),
        SAMPLE("", "a", false),
        SAMPLE("a", "", false),
        SAMPLE("board", "board", true),
        SAMPLE("board", "Board", false),
        SAMPLE("board", "boar", false),
        SAMPLE("boar", "board", false),
        SAMPLE("a\0b", "a\0b", true),
        SAMPLE("a\0b", "a\0c", false),
        SAMPLE("\xff", "\xff", true),
        SAMPLE("]", "]", true),
        SAMPLE("-", "-", true),
    };
    ASSERT_SAMPLES(samples);
}

TEST(a_star_is_any_run_and_a_question_mark_one_byte) {
    static const struct sample samples[] = {
        SAMPLE("*", "", true),           SAMPLE("*", "anything", true),
        SAMPLE("**", "a", true),         SAMPLE("a*", "a", true),
        SAMPLE("a*", "ba", false),       SAMPLE("*a", "ba", true),
        SAMPLE("*a", "ab", false),       SAMPLE("a*c", "abbbc", true),
        SAMPLE("a*c", "abbbcd", false),  SAMPLE("*ab*ab*", "abaab", true),
        SAMPLE("*ab*ab*", "aba", false), SAMPLE("a*b*c", "axxbyyc", true),
        SAMPLE("*aab", "aaab", true),    SAMPLE("?", "", false),
        SAMPLE("?", "a", true),          SAMPLE("?", "\0", true),
        SAMPLE("?", "ab", false),        SAMPLE("h?llo", "hello", true),
        SAMPLE("*?", "", false),         SAMPLE("?*?", "ab", true),
        SAMPLE("?*?", "a", false),
    };
    ASSERT_SAMPLES(samples);
}

TEST(a_class_is_one_byte_out_of_several) {
    static const struct sample samples[] = {
        SAMPLE("[abc]", "b", true),      SAMPLE("[abc]", "d", false),
        SAMPLE("[abc]", "", false),      SAMPLE("[^abc]", "d", true),
        SAMPLE("[^abc]", "a", false),    SAMPLE("[a-c]", "b", true),
        SAMPLE("[a-c]", "-", false),     SAMPLE("[c-a]", "b", true),
        SAMPLE("[^a-c]", "b", false),    SAMPLE("[a-]", "-", false),
        SAMPLE("[-a]", "-", true),       SAMPLE("[\x01-\xff]", "\x80", true),
        SAMPLE("[\\]]", "]", true),      SAMPLE("[\\a]", "a", true),
        SAMPLE("[\\a]", "\\", false),    SAMPLE("[\\^a]", "^", true),
        SAMPLE("[a^]", "^", true),       SAMPLE("[*]", "*", true),
        SAMPLE("[*]", "x", false),       SAMPLE("*[0-9]", "week12", true),
        SAMPLE("*[0-9]", "week", false),
    };
    ASSERT_SAMPLES(samples);
}

TEST(odd_ends_of_patterns_are_read_as_redis_reads_them) {
    static const struct sample samples[] = {
        SAMPLE("[ab", "a", true),   SAMPLE("[ab", "c", false),    SAMPLE("[", "[", false),
        SAMPLE("[]", "]", false),   SAMPLE("[^]", "x", true),     SAMPLE("[^", "x", true),
        SAMPLE("[a-]", "^", true),  SAMPLE("[\\", "\\", true),    SAMPLE("\\", "\\", true),
        SAMPLE("a\\", "a\\", true), SAMPLE("\\*", "*", true),     SAMPLE("\\*", "a", false),
        SAMPLE("\\\\", "\\", true), SAMPLE("\\?", "?", true),     SAMPLE("\\a", "a", true),
        SAMPLE("*\\*", "a*", true), SAMPLE("\\[a]", "[a]", true),
    };
    ASSERT_SAMPLES(samples);
}

/* One element of a pattern, as a set of bytes. The naive twin spells every set out. */
struct element {
    bool is_star;
    bool takes[256];
};

static size_t parse_class(struct bytes pattern, size_t i, struct element *element) {
    bool is_negated = i < pattern.size && pattern.at[i] == '^';
    i += is_negated ? 1 : 0;
    for (; i < pattern.size && pattern.at[i] != ']'; i++) {
        unsigned low = (unsigned char)pattern.at[i];
        unsigned high = low;
        if (low == '\\' && i + 1 < pattern.size) {
            i++;
            low = high = (unsigned char)pattern.at[i];
        } else if (i + 2 < pattern.size && pattern.at[i + 1] == '-') {
            high = (unsigned char)pattern.at[i + 2];
            i += 2;
        }
        for (unsigned byte = 0; byte < 256; byte++) {
            bool is_between = (byte >= low && byte <= high) || (byte >= high && byte <= low);
            element->takes[byte] = element->takes[byte] || is_between;
        }
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        element->takes[byte] = element->takes[byte] != is_negated;
    }
    return i < pattern.size ? i + 1 : i;
}

static size_t parse_elements(struct bytes pattern, struct element *elements) {
    size_t count = 0;
    for (size_t i = 0; i < pattern.size;) {
        struct element *element = &elements[count++];
        memset(element, 0, sizeof(*element));
        char byte = pattern.at[i++];
        if (byte == '[') {
            i = parse_class(pattern, i, element);
            continue;
        }
        element->is_star = byte == '*';
        if (byte == '?') {
            memset(element->takes, true, sizeof(element->takes));
        } else if (byte == '\\' && i < pattern.size) {
            byte = pattern.at[i++];
        }
        element->takes[(unsigned char)byte] = true;
    }
    return count;
}

static bool naive_matches(const struct element *elements, size_t count, struct bytes text) {
    if (count == 0) {
        return text.size == 0;
    }
    struct bytes rest = {.at = text.at + 1, .size = text.size - 1};
    if (elements[0].is_star) {
        return naive_matches(elements + 1, count - 1, text) ||
               (text.size > 0 && naive_matches(elements, count, rest));
    }
    return text.size > 0 && elements[0].takes[(unsigned char)text.at[0]] &&
           naive_matches(elements + 1, count - 1, rest);
}

TEST(random_patterns_match_as_a_naive_recursive_matcher_says) {
    static const char pattern_bytes[] = "aabbc***??[[]]^-\\";
    static const char text_bytes[] = "aaabbbcc-]^\\*[";
    struct random random = random_begin(__func__);
    unsigned match_count = 0;
    for (int i = 0; i < 200000; i++) {
        char pattern_text[10];
        char text[10];
        struct element elements[10] = {{.is_star = false}};
        struct bytes pattern = {.at = pattern_text, .size = (size_t)random_below(&random, 11)};
        struct bytes bytes = {.at = text, .size = (size_t)random_below(&random, 11)};
        for (size_t at = 0; at < pattern.size; at++) {
            pattern_text[at] = pattern_bytes[random_below(&random, sizeof(pattern_bytes) - 1)];
        }
        uint64_t letters = random_below(&random, 2) == 0 ? 6 : sizeof(text_bytes) - 1;
        for (size_t at = 0; at < bytes.size; at++) {
            text[at] = text_bytes[random_below(&random, letters)];
        }
        bool expected = naive_matches(elements, parse_elements(pattern, elements), bytes);
        match_count += expected;
        if (glob_matches(pattern, bytes) != expected) {
            fail_msg("pattern '%.*s' text '%.*s': expected %d", (int)pattern.size, pattern_text,
                     (int)bytes.size, text, expected);
        }
    }
    assert_true(match_count > 1000);
}

/* One of the ways to write an element that matches the byte; returns its size. */
static size_t print_element(char *out, uint64_t form, char byte) {
    switch (form) {
    case 0:
        return (size_t)sprintf(out, "\\%c", byte);
    case 1:
        return (size_t)sprintf(out, "[x%c]", byte);
    case 2:
        return (size_t)sprintf(out, "[^y-z]");
    case 3:
        return (size_t)sprintf(out, "?");
    default:
        return (size_t)sprintf(out, "%c", byte);
    }
}

/* Long segments, more than one word of states: copied from the text, so that they match, and
 * altered every other time. */
TEST(long_segments_are_found_where_an_element_by_element_search_finds_them) {
    enum { TEXT_MAX = 3000, SEGMENT_MAX = 170 };
    static char text[TEXT_MAX];
    static char pattern[6 * SEGMENT_MAX + 3];
    static struct element elements[SEGMENT_MAX];
    struct random random = random_begin(__func__);
    unsigned match_count = 0;
    for (int round = 0; round < 2000; round++) {
        size_t text_size = 1 + (size_t)random_below(&random, TEXT_MAX);
        for (size_t i = 0; i < text_size; i++) {
            text[i] = random_below(&random, 50) == 0 ? 'b' : 'a';
        }
        size_t longest = text_size < SEGMENT_MAX ? text_size : SEGMENT_MAX;
        size_t size = 1 + (size_t)random_below(&random, longest);
        size_t from = (size_t)random_below(&random, text_size - size + 1);
        size_t spoiled = (size_t)random_below(&random, 2 * size);
        struct bytes bytes = {.at = pattern, .size = 0};
        pattern[bytes.size++] = '*';
        for (size_t i = 0; i < size; i++) {
            char byte = i == spoiled ? 'b' : text[from + i];
            bytes.size += print_element(pattern + bytes.size, random_below(&random, 5), byte);
        }
        struct bytes segment = {.at = pattern + 1, .size = bytes.size - 1};
        assert_int_equal(parse_elements(segment, elements), size);
        bool expected = false;
        for (size_t place = 0; place + size <= text_size && !expected; place++) {
            size_t i = 0;
            while (i < size && elements[i].takes[(unsigned char)text[place + i]]) {
                i++;
            }
            expected = i == size;
        }
        match_count += expected;
        pattern[bytes.size++] = '*';
        assert_int_equal(glob_matches(bytes, (struct bytes){.at = text, .size = text_size}),
                         expected);
    }
    assert_in_range(match_count, 900, 1990);
}

TEST(a_long_segment_stands_at_any_place_of_a_long_text) {
    enum { TEXT_SIZE = 140000, SIZE = 300 };
    static const size_t places[] = {0, 1, 63, 64, 70000, TEXT_SIZE - SIZE - 1, TEXT_SIZE - SIZE};
    char *text = memory_allocate(TEXT_SIZE);
    assert_non_null(text);
    char pattern[SIZE + 8];
    size_t size = (size_t)sprintf(pattern, "*[b]");
    memset(pattern + size, 'c', SIZE - 1);
    size += SIZE - 1;
    pattern[size++] = '*';
    pattern[size] = 'a';
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct bytes bytes = {.at = text, .size = TEXT_SIZE};
        memset(text, 'a', TEXT_SIZE);
        text[places[i]] = 'b';
        memset(text + places[i] + 1, 'c', SIZE - 1);
        assert_true(glob_matches((struct bytes){.at = pattern, .size = size}, bytes));
        assert_int_equal(glob_matches((struct bytes){.at = pattern, .size = size + 1}, bytes),
                         places[i] + SIZE < TEXT_SIZE);
        text[places[i] + SIZE / 2] = 'a';
        assert_false(glob_matches((struct bytes){.at = pattern, .size = size}, bytes));
    }
    memory_free(text);
}

TEST(a_prepared_pattern_serves_many_texts) {
    struct glob glob;
    assert_true(glob_prepare(&glob, BYTES("w?ek:*[0-9]*\\*")));
    assert_int_equal(glob.size_min, 7);
    assert_true(glob_takes(&glob, BYTES("week:1*")));
    assert_true(glob_takes(&glob, BYTES("week:of 2026*")));
    assert_false(glob_takes(&glob, BYTES("week:1")));
    assert_false(glob_takes(&glob, BYTES("week:*1")));
    assert_false(glob_takes(&glob, BYTES("")));
}

TEST(a_pattern_in_lower_case_is_read_as_such) {
    struct glob glob;
    assert_true(glob_prepare_lower(&glob, BYTES("MAX[A-C]\\D*")));
    assert_true(glob_takes(&glob, BYTES("maxbd")));
    assert_false(glob_takes(&glob, BYTES("maxdd")));
}

TEST(a_pattern_has_1024_bytes_at_most) {
    struct glob glob;
    char pattern[GLOB_PATTERN_MAX + 1];
    struct bytes longest = {.at = pattern, .size = GLOB_PATTERN_MAX};
    struct bytes too_long = {.at = pattern, .size = GLOB_PATTERN_MAX + 1};
    memset(pattern, '*', sizeof pattern);
    assert_true(glob_prepare(&glob, longest));
    assert_true(glob_takes(&glob, BYTES("")));
    assert_true(glob_takes(&glob, BYTES("anything")));
    assert_false(glob_prepare(&glob, too_long));
    assert_false(glob_prepare_lower(&glob, too_long));
    memset(pattern, 'A', sizeof pattern);
    assert_true(glob_prepare(&glob, longest));
    assert_true(glob_takes(&glob, longest));
    assert_false(glob_takes(&glob, (struct bytes){.at = pattern, .size = GLOB_PATTERN_MAX - 1}));
    assert_false(glob_takes(&glob, too_long));
    assert_true(glob_prepare_lower(&glob, longest));
    assert_false(glob_takes(&glob, longest));
}

/* A backtracking matcher takes 2^24 or more steps for each of these texts, and one that also
 * backtracks over stars practically for ever. */
TEST(hostile_patterns_take_a_thousand_of_the_longest_texts_in_seconds) {
    enum { TEXT_SIZE = 65536, ROUNDS = 250 };
    static const char *const units[] = {"*a", "?", "[b-a]", "*"};
    char *text = memory_allocate(TEXT_SIZE);
    assert_non_null(text);
    memset(text, 'a', TEXT_SIZE);
    struct glob glob;
    clock_t begin = clock();
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        char pattern[GLOB_PATTERN_MAX];
        size_t size = 0;
        pattern[size++] = '*';
        while (size + strlen(units[i]) < sizeof pattern) {
            memcpy(pattern + size, units[i], strlen(units[i]));
            size += strlen(units[i]);
        }
        pattern[size++] = 'c';
        assert_true(glob_prepare(&glob, (struct bytes){.at = pattern, .size = size}));
        for (int round = 0; round < ROUNDS; round++) {
            assert_false(glob_takes(&glob, (struct bytes){.at = text, .size = TEXT_SIZE}));
        }
    }
    assert_in_range((clock() - begin) / CLOCKS_PER_SEC, 0, 15);
    memory_free(text);
}
