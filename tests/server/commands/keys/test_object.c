/* OBJECT and MEMORY, by bytes in and bytes out. */
#include "tests/support/harness.h"

SERVER_TEST(a_board_is_encoded_as_a_skiplist) {
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "OBJECT ENCODING a", "$8\r\nskiplist\r\n");
    harness_expect(h, s, "object encoding a", "$8\r\nskiplist\r\n");
    harness_expect(h, s, "OBJECT REFCOUNT a", ":1\r\n");
}

SERVER_TEST(what_is_not_tracked_is_said) {
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "OBJECT IDLETIME a",
                   "-ERR Idle times are not tracked, as nothing is ever evicted\r\n");
    harness_expect(h, s, "OBJECT FREQ a",
                   "-ERR An LFU maxmemory policy is not selected, access frequency not tracked. "
                   "Please note that when switching between policies at runtime LRU and LFU data "
                   "will take some time to adjust.\r\n");
}

SERVER_TEST(a_missing_object_is_nil) {
    static const char *const names[] = {"ENCODING", "REFCOUNT", "IDLETIME", "FREQ"};
    for (size_t i = 0; i < 4; i++) {
        s->protocol = 2;
        assert_string_equal(harness_run_format(h, s, "OBJECT %s x", names[i]), "$-1\r\n");
        s->protocol = 3;
        assert_string_equal(harness_run_format(h, s, "OBJECT %s x", names[i]), "_\r\n");
    }
    harness_expect(h, s, "MEMORY USAGE x", "_\r\n");
}

SERVER_TEST(usage_grows_with_the_board_and_counts_board_and_name) {
    harness_run(h, s, "ZADD a 1 m");
    int64_t small = harness_run_integer(h, s, "MEMORY USAGE a");
    struct registry_key *key =
        registry_find(h->server.registry, 0, BYTES("a"), h->server.clock.now_ms);
    assert_true(small >= (int64_t)board_memory_size(&key->board) + 1);
    assert_true(small < 1000);
    for (int i = 0; i < 10000; i++) {
        harness_run_format(h, s, "ZADD a %d member:%08d", i, i);
    }
    int64_t large = harness_run_integer(h, s, "MEMORY USAGE a");
    assert_in_range(large, 10000 * (8 + 5), 10000 * (8 + 5 + 40)); /* names are packed */
    harness_run(h, s, "ZADD a-key-with-a-much-longer-name-than-the-other 1 m");
    int64_t long_name =
        harness_run_integer(h, s, "MEMORY USAGE a-key-with-a-much-longer-name-than-the-other");
    assert_true(long_name >= small + 40);
}

SERVER_TEST(usage_takes_samples_and_refuses_the_rest) {
    harness_run(h, s, "ZADD a 1 m");
    const char *syntax = "-ERR syntax error\r\n";
    const char *integer = "-ERR value is not an integer or out of range\r\n";
    int64_t size = harness_run_integer(h, s, "MEMORY USAGE a");
    assert_int_equal(harness_run_integer(h, s, "MEMORY USAGE a SAMPLES 0"), size);
    assert_int_equal(harness_run_integer(h, s, "MEMORY USAGE a samples 1 SAMPLES 5"), size);
    assert_int_equal(harness_run_integer(h, s, "MEMORY USAGE a SAMPLES 9223372036854775807"), size);
    harness_expect(h, s, "MEMORY USAGE a SAMPLES 4611686018427387903 x", syntax);
    harness_expect(h, s, "MEMORY USAGE a SAMPLES", syntax);
    harness_expect(h, s, "MEMORY USAGE x FOO 1", syntax);
    harness_expect(h, s, "MEMORY USAGE a SAMPLES -1", syntax);
    harness_expect(h, s, "MEMORY USAGE a SAMPLES -9223372036854775808", syntax);
    harness_expect(h, s, "MEMORY USAGE x SAMPLES x", integer);
    harness_expect(h, s, "MEMORY USAGE a SAMPLES 9223372036854775808", integer);
}

static int64_t memory_stat(struct harness *h, struct session *s, const char *name) {
    const char *wanted = formatted("$%zu\r\n%s\r\n:", strlen(name), name);
    const char *at = strstr(harness_run(h, s, "MEMORY STATS"), wanted);
    assert_non_null(at);
    return strtoll(at + strlen(wanted), NULL, 10);
}

SERVER_TEST(stats_tell_keys_and_their_bytes) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "ZADD b 1 m");
    harness_run(h, s, "SELECT 7");
    harness_run(h, s, "ZADD a 1 m");
    assert_int_equal(memory_stat(h, s, "keys.count"), 3);
    assert_true(memory_stat(h, s, "dataset.bytes") > 0);
    assert_int_equal(memory_stat(h, s, "keys.bytes-per-key"),
                     memory_stat(h, s, "dataset.bytes") / 3);
    assert_true(memory_stat(h, s, "peak.allocated") >= memory_stat(h, s, "total.allocated"));
    harness_expect_prefix(h, s, "MEMORY STATS", "*24\r\n$14\r\npeak.allocated\r\n:");
    s->protocol = 3;
    harness_expect_prefix(h, s, "MEMORY STATS", "%12\r\n$14\r\npeak.allocated\r\n:");
}
