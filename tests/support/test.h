/* A test program: its tests, in the order of its file, and what cmocka needs before it.
 *
 *     TEST(equal_scores_rank_by_arrival) {
 *         assert_int_equal(...);
 *     }
 *
 * A test that is written runs: there is no list to forget it in, and no main to write.
 * LEADERBOARD_TEST_ONLY='a_link*' in the environment runs those of that name alone. */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/buffer.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Before a declaration: the function that takes its address where its block ends. */
#define ENDED_BY(function) __attribute__((cleanup(function)))
/* Before a pointer's declaration: what malloc gave it is freed where its block ends. */
#define OWNED ENDED_BY(test_release)
static inline void test_release(void *pointer) {
    void *at;
    memcpy(&at, pointer, sizeof at);
    free(at);
}
/* A buffer of that size at most, which is released where its block ends. */
#define BUFFER(name, size_max)                                                                     \
    ENDED_BY(buffer_deinit) struct buffer name;                                                    \
    buffer_init(&(name), (size_max))

/* What a structure's validate function says of it, of its arguments but the last. */
#define ASSERT_VALID(validate, ...)                                                                \
    do {                                                                                           \
        const char *invalid = "";                                                                  \
        if (!validate(__VA_ARGS__, &invalid)) {                                                    \
            fail_msg("%s", invalid);                                                               \
        }                                                                                          \
    } while (0)

/* Text made as by printf, until this has been called 64 times more. */
__attribute__((format(printf, 1, 2))) const char *formatted(const char *format, ...);

/* Is this the short form of the tests, as in make test? */
static inline bool is_short_run(void) {
    return getenv("LEADERBOARD_TEST_SHORT") != NULL;
}

/* How many times fewer random lives, cuts and failures than in the short form: CI asks for it where all takes several
 * times as long (Makefile, CHECK_PART). No kind of them is left out. */
static inline uint32_t test_part(void) {
    const char *given = getenv("LEADERBOARD_TEST_PART");
    uint32_t part = given != NULL ? (uint32_t)strtoul(given, NULL, 10) : 1;
    return is_short_run() && part > 0 ? part : 1;
}
/* How often something random is done in the long and in the short form. */
static inline uint32_t test_rounds(uint32_t in_full, uint32_t in_short) {
    uint32_t rounds = is_short_run() ? in_short / test_part() : in_full;
    return rounds > 0 ? rounds : 1;
}
/* The distance between two of what is tried one after another. */
static inline uint32_t test_step(uint32_t in_full, uint32_t in_short) {
    return is_short_run() ? in_short * test_part() : in_full;
}

/* The row of a table that a test is at, made like printf's: it is printed when the test fails there. */
__attribute__((format(printf, 1, 2))) void test_row(const char *format, ...);
/* Of TEST_WITH: before and after a test that does not fail. One without a set-up leaves no memory (codec/memory.h). */
void test_begin(void);
void test_end(bool has_set_up);

/* What TEST_WITH calls before main, in any order. */
void test_write(const char *file, int line, struct CMUnitTest test);
/* Run them all, between a set-up and a tear-down of the program, which may be NULL. */
int test_run(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* A set-up or a tear-down: it returns 0 when all went well. */
#define FIXTURE(name) static inline int name(__attribute__((unused)) void **state)

/* With a set-up and a tear-down, which may be NULL, that pass `state`. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
    static void name(void **state);                                                                \
    static void run_##name(void **state) {                                                         \
        test_begin();                                                                              \
        name(state);                                                                               \
        test_end((set_up) != NULL);                                                                \
    }                                                                                              \
    __attribute__((constructor)) static void write_##name(void) {                                  \
        test_write(__FILE__, __LINE__,                                                             \
                   (struct CMUnitTest){#name, run_##name, set_up, tear_down, NULL});               \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)
#define TEST(name) TEST_WITH(name, NULL, NULL)

/* With a parameter: what set_up has put into *state. */
#define TEST_GIVEN(name, set_up, tear_down, parameter)                                             \
    static void name##_given(parameter);                                                           \
    TEST_WITH(name, set_up, tear_down) {                                                           \
        name##_given(*state);                                                                      \
    }                                                                                              \
    static void name##_given(__attribute__((unused)) parameter)

/* For a program whose tests share a set-up and a tear-down. Others have the main of test_main.c. */
#define TEST_MAIN(set_up, tear_down)                                                               \
    int main(void) {                                                                               \
        return test_run(set_up, tear_down);                                                        \
    }

#endif
