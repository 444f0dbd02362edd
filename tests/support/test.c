#include "tests/support/test.h"

#include "codec/memory.h"

enum { TESTS_MAX = 128, TEXTS_MAX = 64 };

static struct CMUnitTest tests_written[TESTS_MAX];
static int tests_lines[TESTS_MAX];
static size_t tests_count;
static const char *tests_file;

/* Sorted by line. */
void test_write(const char *file, int line, struct CMUnitTest test) {
    size_t at = tests_count++;
    tests_file = file;
    if (tests_count > TESTS_MAX) {
        abort();
    }
    for (; at > 0 && tests_lines[at - 1] > line; at--) {
        tests_lines[at] = tests_lines[at - 1];
        tests_written[at] = tests_written[at - 1];
    }
    tests_lines[at] = line;
    tests_written[at] = test;
}

int test_run(CMFixtureFunction set_up, CMFixtureFunction tear_down) {
    cmocka_set_test_filter(getenv("LEADERBOARD_TEST_ONLY"));
    int failed_count =
        _cmocka_run_group_tests(tests_file, tests_written, tests_count, set_up, tear_down);
    test_begin();
    return failed_count;
}

static char tests_row[256];
static uint64_t tests_live_before; /* allocations */

void test_row(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tests_row, sizeof tests_row, format, arguments);
    va_end(arguments);
}

/* A row that is left is of a test that failed. */
void test_begin(void) {
    if (tests_row[0] != '\0') {
        print_error("in the row \"%s\"\n", tests_row);
    }
    tests_row[0] = '\0';
    tests_live_before = memory_live_count();
}

void test_end(bool has_set_up) {
    tests_row[0] = '\0';
    if (!has_set_up) {
        assert_int_equal(memory_live_count(), tests_live_before);
    }
}

const char *formatted(const char *format, ...) {
    static char *texts[TEXTS_MAX];
    static unsigned calls;
    char **text = &texts[calls++ % TEXTS_MAX];
    free(*text);
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(text, format, arguments);
    va_end(arguments);
    assert_true(size >= 0);
    return *text;
}
