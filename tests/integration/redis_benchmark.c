/* redis-benchmark, as people run it, against a running server: every test ends with a figure, and
 * not one error or warning is printed. */
#include "tests/support/test.h"

#include <strings.h>

#include "tests/support/process.h"
#include "tests/support/wire.h"

static struct process server;

FIXTURE(start_server) {
    return process_start(&server, NULL) ? 0 : -1;
}

FIXTURE(stop_server) {
    return process_stop(&server);
}

/* Run it; every line must be a figure, and figures are counted. */
static int run_benchmark(const char *words) {
    char line[65536]; /* progress of a slow machine is one long line */
    FILE *output =
        popen(formatted("redis-benchmark -p %u %s 2>&1 </dev/null", server.port, words), "r");
    assert_non_null(output);
    int figures = 0;
    while (fgets(line, sizeof line, output)) {
        /* Progress is written over itself; what stays stands behind the last return. */
        line[strcspn(line, "\n")] = '\0';
        const char *last = strrchr(line, '\r');
        const char *shown = last ? last + 1 : line;
        if (strcasestr(line, "error") || strcasestr(line, "warning")) {
            fail_msg("redis-benchmark %s: %s", words, line);
        }
        figures += strstr(shown, "requests per second") != NULL;
    }
    assert_int_equal(pclose(output), 0);
    return figures;
}

static const char *requests(void) {
    return is_short_run() ? "-n 10000" : "-n 100000";
}

static void check_benchmark(const char *words, int figures) {
    assert_int_equal(run_benchmark(formatted("%s -q %s", requests(), words)), figures);
}

TEST(zadd_and_zpopmin_run_clean) {
    check_benchmark("-t zadd,zpopmin", 2);
}

TEST(zadd_and_zpopmin_run_clean_pipelined) {
    check_benchmark("-t zadd,zpopmin -P 16", 2);
}

TEST(random_members_in_resp3_from_threads_run_clean) {
    check_benchmark("-t ping,zadd,zpopmin -r 100000 -P 16 -3 --threads 2", 4);
}

/* Has a line of the page, read from the repository's root, this text? */
static bool has_text(const char *path, const char *sought) {
    char text[4096];
    bool is_found = false;
    FILE *page = fopen(path, "r");
    assert_non_null(page);
    while (!is_found && fgets(text, sizeof text, page)) {
        is_found = strstr(text, sought) != NULL;
    }
    assert_int_equal(fclose(page), 0);
    return is_found;
}

TEST(the_tests_that_the_pages_name_run_clean) {
#define TESTS      "-t ping,hset,zadd,zpopmin"
#define MANY_TESTS "redis-benchmark " TESTS " -n 1000000 -r 1000000 -P 32 -q\n"
    assert_true(has_text("README.md", "`redis-benchmark " TESTS " -q`"));
    assert_true(has_text("docs/internals/benchmarks.md", MANY_TESTS));
    assert_true(has_text("docs/reference/differences-from-redis.md", MANY_TESTS));
    check_benchmark(TESTS " -r 1000000 -P 32", 5);
}

TEST(commands_of_ones_own_run_clean) {
    check_benchmark("-r 100000 -P 32 zadd board __rand_int__ user:__rand_int__", 1);
    check_benchmark("-r 100000 -P 32 zincrby board 3 user:__rand_int__", 1);
    check_benchmark("-r 100000 -P 32 zrevrank board user:__rand_int__", 1);
    check_benchmark("-P 32 zrevrange board 0 9 withscores", 1);
}

TEST(no_command_failed) {
    WIRE(wire, process_connect_tcp(&server));
    const char *statistics = wire_ask(&wire, "INFO stats");
    assert_non_null(strstr(statistics, "total_error_replies:0\r\n"));
}

TEST_MAIN(start_server, stop_server)
