#include "tests/support/test.h"

enum { TESTS_MAX = 128 };

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
    return _cmocka_run_group_tests(tests_file, tests_written, tests_count, set_up, tear_down);
}
