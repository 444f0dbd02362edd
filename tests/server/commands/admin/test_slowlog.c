/* SLOWLOG, by bytes in and bytes out. The log itself: test_stats.c. */
#include "tests/support/harness.h"

/* Nothing is kept but what a test adds: any command may be slow on a busy machine. */
#define SLOWLOG_TEST(name) HARNESS_TEST(name, "slowlog-log-slower-than -1\n")

/* Two entries: ZADD a 1 m at 1767225600 in 12 us, PING at +5 s in 99 us. */
static void add_two(struct harness *h) {
    const struct bytes zadd[] = {BYTES("ZADD"), BYTES("a"), BYTES("1"), BYTES("m")};
    const struct bytes ping[] = {BYTES("PING")};
    stats_slowlog_add(&h->server.slowlog, 128, &(struct request){.count = 4, .args = zadd}, false,
                      12, 1767225600, "127.0.0.1:50001", "");
    stats_slowlog_add(&h->server.slowlog, 128, &(struct request){.count = 1, .args = ping}, false,
                      99, 1767225605, "127.0.0.1:50002", "worker");
}

#define OLDER                                                                                      \
    "*6\r\n:0\r\n:1767225600\r\n:12\r\n*4\r\n$4\r\nZADD\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nm\r\n"      \
    "$15\r\n127.0.0.1:50001\r\n$0\r\n\r\n"
#define NEWER                                                                                      \
    "*6\r\n:1\r\n:1767225605\r\n:99\r\n*1\r\n$4\r\nPING\r\n$15\r\n127.0.0.1:50002\r\n"             \
    "$6\r\nworker\r\n"

SLOWLOG_TEST(entries_have_six_fields_newest_first) {
    harness_expect(h, s, "SLOWLOG GET", "*0\r\n");
    add_two(h);
    harness_expect(h, s, "SLOWLOG GET", "*2\r\n" NEWER OLDER);
    harness_expect(h, s, "slowlog get 1", "*1\r\n" NEWER);
    harness_expect(h, s, "SLOWLOG GET 0", "*0\r\n");
    s->protocol = 3;
    harness_expect(h, s, "SLOWLOG GET", "*2\r\n" NEWER OLDER);
}

SLOWLOG_TEST(ten_entries_are_given_unless_more_are_asked_for) {
    for (int i = 0; i < 20; i++) {
        add_two(h);
    }
    harness_expect_prefix(h, s, "SLOWLOG GET", "*10\r\n");
    harness_expect_prefix(h, s, "SLOWLOG GET 11", "*11\r\n");
    harness_expect_prefix(h, s, "SLOWLOG GET -1", "*40\r\n");
    harness_expect_prefix(h, s, "SLOWLOG GET 4611686018427387903", "*40\r\n");
    harness_expect_prefix(h, s, "SLOWLOG GET 9223372036854775807", "*40\r\n");
    harness_expect(h, s, "SLOWLOG LEN", ":40\r\n");
}

SLOWLOG_TEST(reset_empties_the_log_and_ids_go_on) {
    add_two(h);
    harness_expect(h, s, "SLOWLOG RESET", "+OK\r\n");
    harness_expect(h, s, "SLOWLOG LEN", ":0\r\n");
    add_two(h);
    harness_expect_prefix(h, s, "SLOWLOG GET", "*2\r\n*6\r\n:3\r\n");
}

SLOWLOG_TEST(every_command_is_kept_with_a_threshold_of_zero) {
    h->server.settings.slowlog_log_slower_than_us = 0;
    harness_run(h, s, "CLIENT SETNAME me");
    harness_run(h, s, "ZADD a 1 m");
    const char *reply = harness_run(h, s, "SLOWLOG GET 1");
    assert_non_null(strstr(reply, "*4\r\n$4\r\nZADD\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nm\r\n"));
    assert_non_null(strstr(reply, "$2\r\nme\r\n"));
    assert_non_null(strstr(reply, s->address));
}

SLOWLOG_TEST(a_password_is_never_kept) {
    h->server.settings.slowlog_log_slower_than_us = 0;
    harness_run(h, s, "AUTH hunter2");
    harness_run(h, s, "HELLO 2 AUTH default hunter2");
    const char *reply = harness_run(h, s, "SLOWLOG GET -1");
    assert_non_null(strstr(reply, "(redacted)"));
    assert_null(strstr(reply, "hunter2"));
}

SLOWLOG_TEST(a_negative_threshold_keeps_nothing) {
    h->server.settings.slowlog_log_slower_than_us = -1;
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "SLOWLOG LEN", ":0\r\n");
}

SLOWLOG_TEST(counts_are_minus_one_or_more) {
    const char *error = "-ERR count should be greater than or equal to -1\r\n";
    harness_expect(h, s, "SLOWLOG GET -2", error);
    harness_expect(h, s, "SLOWLOG GET -9223372036854775808", error);
    harness_expect(h, s, "SLOWLOG GET 9223372036854775808", error);
    harness_expect(h, s, "SLOWLOG GET x", error);
    harness_expect(h, s, "SLOWLOG get 1 2",
                   "-ERR unknown subcommand or wrong number of arguments for 'get'. Try SLOWLOG "
                   "HELP.\r\n");
}

SLOWLOG_TEST(help_lists_the_subcommands) {
    harness_expect(
        h, s, "SLOWLOG HELP",
        "*9\r\n+SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"
        "+GET [count]\r\n"
        "+    The newest entries: id, unix time, microseconds, arguments, client, its name.\r\n"
        "+HELP\r\n+    What the subcommands do.\r\n"
        "+LEN\r\n+    Counts the entries of the slow log.\r\n"
        "+RESET\r\n+    Empties the slow log.\r\n");
}
