/* Counters, the slow log and latency events as structures; the commands that read them have tests
 * of their own. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "server/sessions/stats.h"

static void add(struct slowlog *slowlog, uint32_t length_max, uint64_t elapsed_us) {
    const struct bytes args[] = {BYTES("PING")};
    stats_slowlog_add(slowlog, length_max, &(struct request){.count = 1, .args = args}, false,
                      elapsed_us, 1767225600, "127.0.0.1:50001", "");
}

/* ---- counters ---- */

TEST(a_call_is_counted_in_the_bucket_of_its_microseconds) {
    static const struct {
        uint64_t ns;
        int bucket;
    } cases[] = {{0, 0},
                 {999, 0},
                 {1999, 0},
                 {2000, 1},
                 {2999, 1},
                 {3000, 2},
                 {4000, 2},
                 {5000, 3},
                 {1024000, 10},
                 {1025000, 11},
                 {UINT64_C(1) << 62, DURATIONS_BUCKETS - 1},
                 {UINT64_MAX, DURATIONS_BUCKETS - 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stats_command command = {0};
        durations_add(&command.calls, cases[i].ns);
        assert_int_equal(command.calls.buckets[cases[i].bucket], 1);
        assert_int_equal(command.calls.count, 1);
        assert_int_equal(command.calls.total_ns, cases[i].ns);
    }
}

TEST(reset_zeroes_every_counter) {
    ENDED_BY(stats_deinit) struct stats stats;
    assert_true(stats_init(&stats, 3));
    size_t startup = stats.startup_memory_size;
    stats.commands_processed = stats.keyspace_hits = stats.tick_longest_us = 7;
    stats_count_error(&stats, "ERR");
    durations_add(&stats.commands[2].calls, 5000);
    stats_sample(&stats, 1000);
    stats_reset(&stats);
    assert_int_equal(stats.commands_processed, 0);
    assert_int_equal(stats.keyspace_hits, 0);
    assert_int_equal(stats.tick_longest_us, 0);
    assert_int_equal(stats.error_kind_count, 0);
    assert_int_equal(stats.commands[2].calls.count, 0);
    assert_int_equal(stats.commands[2].calls.buckets[3], 0);
    assert_int_equal(stats.startup_memory_size, startup);
    stats.commands_processed = 10;
    stats_sample(&stats, 2000);
    assert_true(stats.commands_per_second > 9.9 && stats.commands_per_second < 10.1);
}

TEST(errors_past_the_last_kind_are_left_out) {
    ENDED_BY(stats_deinit) struct stats stats;
    assert_true(stats_init(&stats, 1));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < STATS_ERROR_KINDS_MAX + 10; i++) {
            stats_count_error(&stats, formatted("KIND%d", i));
        }
    }
    assert_int_equal(stats.error_kind_count, STATS_ERROR_KINDS_MAX);
    assert_int_equal(stats.errors[STATS_ERROR_KINDS_MAX - 1].count, 2);
}

TEST(the_first_sample_gives_no_rate_and_a_clock_that_stands_still_leaves_it_alone) {
    ENDED_BY(stats_deinit) struct stats stats;
    assert_true(stats_init(&stats, 1));
    stats.commands_processed = 100;
    stats_sample(&stats, 1767225600000);
    assert_true(stats.commands_per_second < 0.001);
    stats.commands_processed = 200;
    stats_sample(&stats, 1767225601000);
    stats.commands_processed = 1000;
    stats_sample(&stats, 1767225601000);
    assert_true(stats.commands_per_second > 99 && stats.commands_per_second < 101);
}

TEST(a_percentile_is_the_upper_end_of_its_bucket) {
    struct stats_command command = {0};
    assert_int_equal(stats_percentile_us(&command, 0.5), 0);
    durations_add(&command.calls, 1000);
    durations_add(&command.calls, 100000);
    assert_int_equal(stats_percentile_us(&command, 0), 1);
    assert_int_equal(stats_percentile_us(&command, 0.5), 1);
    assert_int_equal(stats_percentile_us(&command, 0.51), 128);
    assert_int_equal(stats_percentile_us(&command, 1), 128);
}

/* ---- slow log ---- */

TEST(the_newest_entries_are_kept) {
    uint64_t live = memory_live_count();
    struct slowlog slowlog = {.count = 0};
    for (uint64_t i = 0; i < 100; i++) {
        add(&slowlog, 30, i);
    }
    assert_int_equal(slowlog.count, 30);
    for (uint32_t i = 0; i < 30; i++) {
        assert_int_equal(stats_slowlog_newest(&slowlog, i)->id, 99 - i);
        assert_int_equal(stats_slowlog_newest(&slowlog, i)->elapsed_us, 99 - i);
    }
    stats_slowlog_deinit(&slowlog);
    assert_int_equal(memory_live_count(), live);
}

TEST(a_smaller_length_drops_the_oldest_at_the_next_entry) {
    ENDED_BY(stats_slowlog_deinit) struct slowlog slowlog = {.count = 0};
    for (uint64_t i = 0; i < 50; i++) {
        add(&slowlog, 1000, i);
    }
    add(&slowlog, 3, 50);
    assert_int_equal(slowlog.count, 3);
    assert_int_equal(stats_slowlog_newest(&slowlog, 2)->id, 48);
    add(&slowlog, 100, 51);
    assert_int_equal(slowlog.count, 4);
    add(&slowlog, 0, 52);
    assert_int_equal(slowlog.count, 0);
}

TEST(arguments_are_shortened_with_a_word_of_what_was_left_out) {
    ENDED_BY(stats_slowlog_deinit) struct slowlog slowlog = {.count = 0};
    struct bytes args[40];
    char text[200];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 40; i++) {
        args[i] = (struct bytes){.at = text, .size = 127U + (unsigned)i};
    }
    stats_slowlog_add(&slowlog, 10, &(struct request){.count = 40, .args = args}, false, 1, 1, "",
                      "");
    const struct slowlog_entry *entry = stats_slowlog_newest(&slowlog, 0);
    assert_int_equal(entry->arg_count, SLOWLOG_ARGS_MAX);
    assert_int_equal(entry->arg_sizes[0], 127);
    assert_int_equal(entry->arg_sizes[1], 128);
    assert_memory_equal(entry->args[2] + 128, "... (1 more bytes)", entry->arg_sizes[2] - 128);
    assert_memory_equal(entry->args[30] + 128, "... (29 more bytes)", entry->arg_sizes[30] - 128);
    assert_string_equal(entry->args[31], "... (9 more arguments)");
    stats_slowlog_add(&slowlog, 10, &(struct request){.count = 32, .args = args}, false, 1, 1, "",
                      "");
    entry = stats_slowlog_newest(&slowlog, 0);
    assert_memory_equal(entry->args[31] + 128, "... (30 more bytes)", entry->arg_sizes[31] - 128);
}

TEST(a_secret_is_replaced_but_for_the_name) {
    ENDED_BY(stats_slowlog_deinit) struct slowlog slowlog = {.count = 0};
    const struct bytes args[] = {BYTES("AUTH"), BYTES("user"), BYTES("hunter2")};
    stats_slowlog_add(&slowlog, 10, &(struct request){.count = 3, .args = args}, true, 1, 1, "",
                      "");
    const struct slowlog_entry *entry = stats_slowlog_newest(&slowlog, 0);
    assert_string_equal(entry->args[0], "AUTH");
    assert_string_equal(entry->args[1], "(redacted)");
    assert_string_equal(entry->args[2], "(redacted)");
}

TEST(arguments_may_hold_any_byte_or_none) {
    ENDED_BY(stats_slowlog_deinit) struct slowlog slowlog = {.count = 0};
    const struct bytes args[] = {BYTES("a\0b"), {.at = NULL, .size = 0}};
    stats_slowlog_add(&slowlog, 10, &(struct request){.count = 2, .args = args}, false, 1, 1, "",
                      "");
    const struct slowlog_entry *entry = stats_slowlog_newest(&slowlog, 0);
    assert_int_equal(entry->arg_sizes[0], 3);
    assert_memory_equal(entry->args[0], "a\0b", 3);
    assert_int_equal(entry->arg_sizes[1], 0);
}

TEST(without_memory_an_entry_is_left_out) {
    uint64_t live = memory_live_count();
    for (uint64_t nth = 1; nth <= 3; nth++) {
        ENDED_BY(stats_slowlog_deinit) struct slowlog slowlog = {.count = 0};
        for (uint64_t i = 0; i < 16; i++) {
            add(&slowlog, 100, i);
        }
        memory_fail_at(nth);
        add(&slowlog, 100, 16);
        memory_fail_at(0);
        assert_int_equal(slowlog.count, nth < 3 ? 16 : 17);
        add(&slowlog, 100, 17);
        assert_int_equal(stats_slowlog_newest(&slowlog, 0)->elapsed_us, 17);
    }
    assert_int_equal(memory_live_count(), live);
}

/* ---- latency ---- */

TEST(one_sample_a_second_is_kept_the_longest) {
    struct latency latency = {.event_count = 0};
    stats_latency_add(&latency, "tick", 10, 1000);
    stats_latency_add(&latency, "tick", 30, 1000);
    stats_latency_add(&latency, "tick", 20, 1000);
    const struct latency_event *event = stats_latency_find(&latency, BYTES("tick"));
    assert_int_equal(event->count, 1);
    assert_int_equal(event->history[0].latency_ms, 30);
    stats_latency_add(&latency, "tick", 5, 1001);
    assert_int_equal(event->count, 2);
    assert_int_equal(event->longest_ms, 30);
}

TEST(events_past_the_last_are_left_out) {
    struct latency latency = {.event_count = 0};
    char name[32];
    for (int i = 0; i < LATENCY_EVENTS_MAX + 2; i++) {
        snprintf(name, sizeof name, "event-%d", i);
        stats_latency_add(&latency, name, 10, 1000);
    }
    assert_int_equal(latency.event_count, LATENCY_EVENTS_MAX);
    assert_null(stats_latency_find(&latency, bytes_from_text(name)));
    assert_int_equal(stats_latency_reset(&latency, BYTES("event-0")), 1);
    assert_int_equal(stats_latency_reset(&latency, BYTES("event-0")), 0);
    assert_non_null(stats_latency_find(&latency, BYTES("event-7")));
    stats_latency_add(&latency, name, 11, 1000);
    assert_int_equal(stats_latency_find(&latency, bytes_from_text(name))->longest_ms, 11);
    assert_int_equal(stats_latency_find(&latency, bytes_from_text(name))->count, 1);
    assert_int_equal(stats_latency_reset_all(&latency), LATENCY_EVENTS_MAX);
}
