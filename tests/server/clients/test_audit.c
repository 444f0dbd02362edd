/* The audit log: which commands leave a line, what it says, and what it does not. */
#include <unistd.h>

#include "server/system/log.h"
#include "tests/support/directory.h"
#include "tests/support/harness.h"

static char directory[DIRECTORY_PATH_MAX];

struct audited {
    struct harness *harness;
    struct session *session;
};

static int begin_with(void **state, const char *settings) {
    struct audited *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->harness = harness_create(settings);
    f->session = harness_connect(f->harness);
    unlink(directory_join(directory, "log"));
    assert_true(log_open(directory_join(directory, "log"), LOG_WARNING));
    *state = f;
    return 0;
}

static int begin(void **state) {
    return begin_with(state, NULL);
}

static int begin_silent(void **state) {
    return begin_with(state, "audit-log no\n");
}

static int end(void **state) {
    struct audited *f = *state;
    assert_true(log_open(NULL, LOG_WARNING));
    harness_destroy(f->harness);
    free(f);
    return 0;
}

#define FIXTURE_TEST(name) TEST_GIVEN(name, begin, end, struct audited *f)

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
static void expect_line(struct audited *f, const char *request, const char *expected) {
    (void)!truncate(directory_join(directory, "log"), 0);
    (void)harness_run(f->harness, f->session, request);
    assert_string_equal(lines(), expected);
}

FIXTURE_TEST(what_an_operator_has_to_account_for_leaves_one_line) {
    expect_line(f, "FLUSHALL", "audit command=flushall" WHO "db=0 result=ok\n");
    expect_line(f, "SELECT 3", "");
    expect_line(f, "FLUSHDB ASYNC", "audit command=flushdb" WHO "db=3 result=ok\n");
    expect_line(f, "FLUSHDB NOW", "audit command=flushdb" WHO "db=3 result=error\n");
    expect_line(f, "SHUTDOWN ABORT", "audit command=shutdown" WHO "db=3 result=error\n");
    expect_line(f, "CONFIG REWRITE",
                "warning settings not written error=\"The server is running without a config "
                "file\"\naudit command=config|rewrite" WHO "db=3 result=error\n");
    expect_line(f, "ZADD b 1 m", "");
    expect_line(f, "CONFIG GET *", "");
    expect_line(f, "ZREM b m", "");
}

FIXTURE_TEST(of_settings_the_names_are_logged_and_the_values_are_not) {
    expect_line(f, "CONFIG SET maxmemory 1gb REQUIREPASS secret",
                "audit command=config|set" WHO
                "db=0 result=ok settings=\"maxmemory requirepass\"\n");
    expect_line(f, "CONFIG SET timeout x",
                "audit command=config|set" WHO "db=0 result=error settings=\"timeout\"\n");
    expect_line(f, "CONFIG SET timeout 1 secret 2",
                "audit command=config|set" WHO "db=0 result=error settings=\"timeout ?\"\n");
    (void)harness_run(f->harness, f->session, "CONFIG SET requirepass \"\"");
}

FIXTURE_TEST(a_long_list_of_settings_is_cut) {
    char request[8192] = "CONFIG SET";
    for (int i = 0; i < 200; i++) {
        strcat(request, " client-query-buffer-limit 1mb");
    }
    (void)harness_run(f->harness, f->session, request);
    const char *line = lines();
    assert_int_equal(count_lines(), 1);
    assert_in_range(strlen(line), 400, 700);
    assert_string_equal(line + strlen(line) - 2, "\"\n");
}

FIXTURE_TEST(members_are_not_logged) {
    (void)harness_run(f->harness, f->session, "ZADD b 1 ann");
    expect_line(f, "LB.BAN ann", "audit command=lb.ban" WHO "db=0 result=begun\n");
    expect_line(f, "LB.UNBAN ann", "audit command=lb.unban" WHO "db=0 result=ok\n");
    expect_line(f, "LB.FORGET ann", "audit command=lb.forget" WHO "db=0 result=begun\n");
    expect_line(f, "LB.MOVE ann bob", "audit command=lb.move" WHO "db=0 result=begun\n");
}

FIXTURE_TEST(within_exec_each_command_leaves_its_line) {
    expect_line(f, "MULTI", "");
    expect_line(f, "FLUSHDB", "");
    expect_line(f, "FLUSHALL", "");
    expect_line(f, "EXEC",
                "audit command=flushdb" WHO "db=0 result=ok\n"
                "audit command=flushall" WHO "db=0 result=ok\n");
}

FIXTURE_TEST(a_wrong_password_is_told_without_it) {
    (void)harness_run(f->harness, f->session, "CONFIG SET requirepass right");
    expect_line(f, "AUTH wr0ng", "audit auth failed" WHO "failures=1 delay_ms=0\n");
    expect_line(f, "AUTH right", "");
    expect_line(f, "AUTH wr0ng secret",
                "audit auth failed user=\"(unknown)\" addr=127.0.0.1:50001 id=1 failures=1 "
                "delay_ms=0\n");
    expect_line(f, "HELLO 3 AUTH default wr0ng", "audit auth failed" WHO "failures=2 delay_ms=0\n");
    (void)harness_run(f->harness, f->session, "CONFIG SET requirepass \"\"");
}

FIXTURE_TEST(that_maxmemory_was_reached_is_told_once_a_minute) {
    (void)harness_run(f->harness, f->session, "CONFIG SET maxmemory 1");
    (void)!truncate(directory_join(directory, "log"), 0);
    for (int i = 0; i < 100; i++) {
        (void)harness_run(f->harness, f->session, "ZADD b 1 m");
    }
    assert_int_equal(count_lines(), 1);
    assert_non_null(strstr(lines(), "audit maxmemory reached" WHO "command=zadd used="));
    f->harness->wall_us += INT64_C(60000000);
    (void)harness_run(f->harness, f->session, "ZADD b 1 m");
    assert_int_equal(count_lines(), 3);
    assert_non_null(strstr(lines(), "audit lines left out class=maxmemory count=99\n"));
}

FIXTURE_TEST(of_many_lines_of_a_kind_some_are_counted_and_others_are_not_held_back) {
    for (int i = 0; i < 1000; i++) {
        (void)harness_run(f->harness, f->session, "FLUSHALL NOW");
    }
    assert_int_equal(count_lines(), 20);
    (void)harness_run(f->harness, f->session, "CONFIG SET timeout 0");
    assert_int_equal(count_lines(), 21);
    audit_second(&f->harness->server);
    assert_int_equal(count_lines(), 21);
    f->harness->wall_us += INT64_C(10000000);
    server_update_time(&f->harness->server);
    audit_second(&f->harness->server);
    audit_second(&f->harness->server);
    assert_int_equal(count_lines(), 22);
    assert_non_null(strstr(lines(), "audit lines left out class=flush count=980\n"));
    (void)harness_run(f->harness, f->session, "FLUSHALL NOW");
    assert_int_equal(count_lines(), 23);
}

/* A stranger's attempts hide nothing, nor do many that worked. */
FIXTURE_TEST(what_was_carried_out_is_never_left_out) {
    for (int i = 0; i < 100; i++) {
        (void)harness_run(f->harness, f->session, "SHUTDOWN ABORT");
        (void)harness_run(f->harness, f->session, "FLUSHDB NOW");
    }
    assert_int_equal(count_lines(), 40);
    for (int i = 0; i < 100; i++) {
        (void)harness_run(f->harness, f->session, "FLUSHDB");
    }
    assert_int_equal(count_lines(), 140);
    (void)harness_run(f->harness, f->session, "FLUSHDB NOW");
    assert_int_equal(count_lines(), 140);
    (void)!truncate(directory_join(directory, "log"), 0);
    (void)harness_run(f->harness, f->session, "SHUTDOWN NOSAVE");
    assert_string_equal(lines(), "audit command=shutdown" WHO "db=0 result=ok\n");
}

TEST_WITH(without_audit_log_there_is_no_line, begin_silent, end) {
    struct audited *f = *state;
    expect_line(f, "FLUSHALL", "");
    expect_line(f, "CONFIG SET audit-log yes",
                "audit command=config|set" WHO "db=0 result=ok settings=\"audit-log\"\n");
}

static int setup(void **state) {
    (void)state;
    directory_make(directory);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    directory_remove(directory);
    return 0;
}

TEST_MAIN(setup, teardown)
