/* A test program: its tests, in the order of its file, and what cmocka needs before it.
 *
 *     TEST(equal_scores_rank_by_arrival) {
 *         assert_int_equal(...);
 *     }
 *     TEST_MAIN(NULL, NULL)
 *
 * A test that is written runs: there is no list to forget it in. LEADERBOARD_TEST_ONLY='a_link*' in the
 * environment runs those of that name alone. */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TESTS_MAX = 128 };

static struct CMUnitTest tests_written[TESTS_MAX];
static int tests_lines[TESTS_MAX];
static size_t tests_count;

/* Constructors run in any order: sorted by line. */
static inline void test_write(int line, struct CMUnitTest test) {
    size_t at = tests_count++;
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

/* With a set-up and a tear-down, which may be NULL, that pass `state`. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void write_##name(void) {                                  \
        test_write(__LINE__,                                                                       \
                   (struct CMUnitTest)cmocka_unit_test_setup_teardown(name, set_up, tear_down));   \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)
#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Run them all, between a set-up and a tear-down of the program, which may be NULL. */
#define TEST_RUN(set_up, tear_down)                                                                \
    (cmocka_set_test_filter(getenv("LEADERBOARD_TEST_ONLY")),                                      \
     _cmocka_run_group_tests(__FILE__, tests_written, tests_count, set_up, tear_down))
#define TEST_MAIN(set_up, tear_down)                                                               \
    int main(void) {                                                                               \
        return TEST_RUN(set_up, tear_down);                                                        \
    }

#endif
