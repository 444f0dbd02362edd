/* The audit log: which commands leave a line, what it says, and what it does not. */
#include <unistd.h>

#include "server/system/log.h"
#include "tests/support/directory.h"
#include "tests/support/harness.h"

static char directory[DIRECTORY_PATH_MAX];

static int begin_with(void **state, const char *settings) {
    *state = harness_create(settings);
    unlink(directory_join(directory, "log"));
    assert_true(log_open(directory_join(directory, "log"), LOG_WARNING));
    return 0;
}

static int begin(void **state) {
    return begin_with(state, NULL);
}

static int begin_silent(void **state) {
    return begin_with(state, "audit-log no\n");
}

#define AUDIT_TEST(name) HARNESS_TEST_WITH(name, begin)

/* The log so far, without times; static memory. */
static const char *lines(void) {
    static char out[65536];
    size_t size = 0;
    size_t used = 0;
    char *log = file_read(directory_join(directory, "log"), &size);
    for (size_t at = 0; at < size;) {
        const char *line_end = memchr(log + at, '\n', size - at);
        assert_non_null(line_end);
        size_t line_size = (size_t)(line_end - log) - at + 1;
        assert_true(line_size > 28 && used + line_size < sizeof out);
        memcpy(out + used, log + at + 28, line_size - 28);
        used += line_size - 28;
        at += line_size;
    }
    out[used] = '\0';
    free(log);
    return out;
}

static unsigned count_lines(void) {
    unsigned count = 0;
    for (const char *at = lines(); (at = strchr(at, '\n')) != NULL; at++) {
        count++;
    }
    return count;
}

#define WHO " user=\"default\" addr=127.0.0.1:50001 id=1 "

/* The request leaves exactly this line; "": none. */
static void expect_line(struct harness *h, struct session *s, const char *request,
                        const char *expected) {
    (void)!truncate(directory_join(directory, "log"), 0);
    harness_run(h, s, request);
    assert_string_equal(lines(), expected);
}

AUDIT_TEST(what_an_operator_has_to_account_for_leaves_one_line) {
    expect_line(h, s, "FLUSHALL", "audit command=flushall" WHO "db=0 result=ok\n");
    expect_line(h, s, "SELECT 3", "");
    expect_line(h, s, "FLUSHDB ASYNC", "audit command=flushdb" WHO "db=3 result=ok\n");
    expect_line(h, s, "FLUSHDB NOW", "audit command=flushdb" WHO "db=3 result=error\n");
    expect_line(h, s, "SHUTDOWN ABORT", "audit command=shutdown" WHO "db=3 result=error\n");
    expect_line(h, s, "CONFIG REWRITE",
                "warning settings not written error=\"The server is running without a config "
                "file\"\naudit command=config|rewrite" WHO "db=3 result=error\n");
    expect_line(h, s, "ZADD b 1 m", "");
    expect_line(h, s, "CONFIG GET *", "");
    expect_line(h, s, "ZREM b m", "");
}

AUDIT_TEST(of_settings_the_names_are_logged_and_the_values_are_not) {
    expect_line(h, s, "CONFIG SET maxmemory 1gb REQUIREPASS secret",
                "audit command=config|set" WHO
                "db=0 result=ok settings=\"maxmemory requirepass\"\n");
    expect_line(h, s, "CONFIG SET timeout x",
                "audit command=config|set" WHO "db=0 result=error settings=\"timeout\"\n");
    expect_line(h, s, "CONFIG SET timeout 1 secret 2",
                "audit command=config|set" WHO "db=0 result=error settings=\"timeout ?\"\n");
    harness_run(h, s, "CONFIG SET requirepass \"\"");
}

AUDIT_TEST(a_long_list_of_settings_is_cut) {
    char request[8192] = "CONFIG SET";
    for (int i = 0; i < 200; i++) {
        strcat(request, " client-query-buffer-limit 1mb");
    }
    harness_run(h, s, request);
    const char *line = lines();
    assert_int_equal(count_lines(), 1);
    assert_in_range(strlen(line), 400, 700);
    assert_string_equal(line + strlen(line) - 2, "\"\n");
}

AUDIT_TEST(members_are_not_logged) {
    harness_run(h, s, "ZADD b 1 ann");
    expect_line(h, s, "LB.BAN ann", "audit command=lb.ban" WHO "db=0 result=begun\n");
    expect_line(h, s, "LB.UNBAN ann", "audit command=lb.unban" WHO "db=0 result=ok\n");
    expect_line(h, s, "LB.FORGET ann", "audit command=lb.forget" WHO "db=0 result=begun\n");
    expect_line(h, s, "LB.MOVE ann bob", "audit command=lb.move" WHO "db=0 result=begun\n");
}

AUDIT_TEST(within_exec_each_command_leaves_its_line) {
    expect_line(h, s, "MULTI", "");
    expect_line(h, s, "FLUSHDB", "");
    expect_line(h, s, "FLUSHALL", "");
    expect_line(h, s, "EXEC",
                "audit command=flushdb" WHO "db=0 result=ok\n"
                "audit command=flushall" WHO "db=0 result=ok\n");
}

AUDIT_TEST(a_wrong_password_is_told_without_it) {
    harness_run(h, s, "CONFIG SET requirepass right");
    expect_line(h, s, "AUTH wr0ng", "audit auth failed" WHO "failures=1 delay_ms=0\n");
    expect_line(h, s, "AUTH right", "");
    expect_line(h, s, "AUTH wr0ng secret",
                "audit auth failed user=\"(unknown)\" addr=127.0.0.1:50001 id=1 failures=1 "
                "delay_ms=0\n");
    expect_line(h, s, "HELLO 3 AUTH default wr0ng",
                "audit auth failed" WHO "failures=2 delay_ms=0\n");
    harness_run(h, s, "CONFIG SET requirepass \"\"");
}

AUDIT_TEST(that_maxmemory_was_reached_is_told_once_a_minute) {
    harness_run(h, s, "CONFIG SET maxmemory 1");
    (void)!truncate(directory_join(directory, "log"), 0);
    for (int i = 0; i < 100; i++) {
        harness_run(h, s, "ZADD b 1 m");
    }
    assert_int_equal(count_lines(), 1);
    assert_non_null(strstr(lines(), "audit maxmemory reached" WHO "command=zadd used="));
    h->wall_us += INT64_C(60000000);
    harness_run(h, s, "ZADD b 1 m");
    assert_int_equal(count_lines(), 3);
    assert_non_null(strstr(lines(), "audit lines left out class=maxmemory count=99\n"));
}

AUDIT_TEST(of_many_lines_of_a_kind_some_are_counted_and_others_are_not_held_back) {
    for (int i = 0; i < 1000; i++) {
        harness_run(h, s, "FLUSHALL NOW");
    }
    assert_int_equal(count_lines(), 20);
    harness_run(h, s, "CONFIG SET timeout 0");
    assert_int_equal(count_lines(), 21);
    server_audit_second(&h->server);
    assert_int_equal(count_lines(), 21);
    h->wall_us += INT64_C(10000000);
    server_update_time(&h->server);
    server_audit_second(&h->server);
    server_audit_second(&h->server);
    assert_int_equal(count_lines(), 22);
    assert_non_null(strstr(lines(), "audit lines left out class=flush count=980\n"));
    harness_run(h, s, "FLUSHALL NOW");
    assert_int_equal(count_lines(), 23);
}

/* A stranger's attempts hide nothing, nor do many that worked. */
AUDIT_TEST(what_was_carried_out_is_never_left_out) {
    for (int i = 0; i < 100; i++) {
        harness_run(h, s, "SHUTDOWN ABORT");
        harness_run(h, s, "FLUSHDB NOW");
    }
    assert_int_equal(count_lines(), 40);
    for (int i = 0; i < 100; i++) {
        harness_run(h, s, "FLUSHDB");
    }
    assert_int_equal(count_lines(), 140);
    harness_run(h, s, "FLUSHDB NOW");
    assert_int_equal(count_lines(), 140);
    (void)!truncate(directory_join(directory, "log"), 0);
    harness_run(h, s, "SHUTDOWN NOSAVE");
    assert_string_equal(lines(), "audit command=shutdown" WHO "db=0 result=ok\n");
}

HARNESS_TEST_WITH(without_audit_log_there_is_no_line, begin_silent) {
    expect_line(h, s, "FLUSHALL", "");
    expect_line(h, s, "CONFIG SET audit-log yes",
                "audit command=config|set" WHO "db=0 result=ok settings=\"audit-log\"\n");
}

FIXTURE(setup) {
    directory_make(directory);
    return 0;
}

FIXTURE(teardown) {
    assert_true(log_open(NULL, LOG_WARNING));
    directory_remove(directory);
    return 0;
}

TEST_MAIN(setup, teardown)
