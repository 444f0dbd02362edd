/* LATENCY, by bytes in and bytes out. */
#include "tests/support/harness.h"

/* ---- events ---- */

SERVER_TEST(latest_tells_the_newest_and_the_longest_of_each_event) {
    harness_expect(h, s, "LATENCY LATEST", "*0\r\n");
    stats_latency_add(&h->server.latency, "command", 30, 1767225600);
    stats_latency_add(&h->server.latency, "command", 20, 1767225601);
    stats_latency_add(&h->server.latency, "tick", 7, 1767225602);
    harness_expect(h, s, "LATENCY LATEST",
                   "*2\r\n*4\r\n$7\r\ncommand\r\n:1767225601\r\n:20\r\n:30\r\n"
                   "*4\r\n$4\r\ntick\r\n:1767225602\r\n:7\r\n:7\r\n");
}

SERVER_TEST(history_tells_an_event_oldest_first) {
    harness_expect(h, s, "LATENCY HISTORY command", "*0\r\n");
    stats_latency_add(&h->server.latency, "command", 30, 1767225600);
    stats_latency_add(&h->server.latency, "command", 20, 1767225601);
    harness_expect(h, s, "LATENCY HISTORY command",
                   "*2\r\n*2\r\n:1767225600\r\n:30\r\n*2\r\n:1767225601\r\n:20\r\n");
    harness_expect(h, s, "LATENCY HISTORY other", "*0\r\n");
}

SERVER_TEST(history_keeps_the_newest_160) {
    for (int i = 0; i < 200; i++) {
        stats_latency_add(&h->server.latency, "command", 10, 1767225600 + i);
    }
    harness_expect_prefix(h, s, "LATENCY HISTORY command", "*160\r\n*2\r\n:1767225640\r\n:10\r\n");
}

SERVER_TEST(reset_forgets_the_named_events_or_all) {
    harness_expect(h, s, "LATENCY RESET", ":0\r\n");
    stats_latency_add(&h->server.latency, "command", 30, 1767225600);
    stats_latency_add(&h->server.latency, "fast-command", 31, 1767225600);
    stats_latency_add(&h->server.latency, "tick", 32, 1767225600);
    harness_expect(h, s, "LATENCY RESET command nothing command", ":1\r\n");
    harness_expect(h, s, "LATENCY HISTORY command", "*0\r\n");
    harness_expect_prefix(h, s, "LATENCY LATEST", "*2\r\n*4\r\n$12\r\nfast-command\r\n");
    harness_expect(h, s, "LATENCY RESET", ":2\r\n");
    harness_expect(h, s, "LATENCY LATEST", "*0\r\n");
}

/* ---- HISTOGRAM ---- */

static void count_call(struct harness *h, const char *name, uint64_t elapsed_us) {
    uint32_t index = command_find_full_name(bytes_from_text(name));
    assert_int_not_equal(index, COMMAND_NONE);
    durations_add(&h->server.stats.commands[index].calls, elapsed_us * 1000);
}

SERVER_TEST(histograms_are_cumulative_and_leave_empty_buckets_out) {
    count_call(h, "zadd", 1);
    count_call(h, "zadd", 1);
    count_call(h, "zadd", 3);
    count_call(h, "zadd", 4);
    count_call(h, "zadd", 1000);
    harness_expect(h, s, "LATENCY HISTOGRAM zadd",
                   "*2\r\n$4\r\nzadd\r\n*4\r\n$5\r\ncalls\r\n:5\r\n$14\r\nhistogram_usec\r\n"
                   "*6\r\n:1\r\n:2\r\n:4\r\n:4\r\n:1024\r\n:5\r\n");
    s->protocol = 3;
    harness_expect(h, s, "LATENCY HISTOGRAM ZADD",
                   "%1\r\n$4\r\nzadd\r\n%2\r\n$5\r\ncalls\r\n:5\r\n$14\r\nhistogram_usec\r\n"
                   "%3\r\n:1\r\n:2\r\n:4\r\n:4\r\n:1024\r\n:5\r\n");
}

SERVER_TEST(a_container_stands_for_its_subcommands) {
    const char *encoding = "*2\r\n$15\r\nobject|encoding\r\n*4\r\n$5\r\ncalls\r\n:1\r\n"
                           "$14\r\nhistogram_usec\r\n*2\r\n:2\r\n:1\r\n";
    count_call(h, "object|encoding", 2);
    harness_expect(h, s, "LATENCY HISTOGRAM object", encoding);
    harness_expect(h, s, "LATENCY HISTOGRAM object|ENCODING", encoding);
    harness_expect(h, s, "LATENCY HISTOGRAM object|freq", "*0\r\n");
}

SERVER_TEST(without_names_every_called_command_is_told) {
    harness_expect(h, s, "LATENCY HISTOGRAM", "*0\r\n");
    count_call(h, "ping", 1);
    count_call(h, "zadd", 1);
    harness_expect_prefix(h, s, "LATENCY HISTOGRAM", "*6\r\n$4\r\nping\r\n");
}

SERVER_TEST(unknown_and_uncalled_names_are_left_out) {
    harness_expect(h, s, "LATENCY HISTOGRAM foo zadd zadd|foo object|foo | \"\"", "*0\r\n");
    s->protocol = 3;
    harness_expect(h, s, "LATENCY HISTOGRAM foo", "%0\r\n");
}
