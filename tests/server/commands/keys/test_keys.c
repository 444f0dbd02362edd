/* DEL UNLINK EXISTS TOUCH TYPE RENAME RENAMENX COPY, by bytes in and bytes out. Random ones, among
 * databases and with expiry: tests/integration/twin.c and differential.c. */
#include "tests/support/harness.h"

#define SAME            "-ERR source and destination objects are the same\r\n"
#define KEYS_TEST(name) HARNESS_TEST(name, "layout lap FIELD seconds 32 ASC\nboard lap:* lap\n")

/* ---- DEL, UNLINK ---- */

KEYS_TEST(a_key_named_twice_is_removed_once_and_counted_twice) {
    static const char *const rows[][2] = {
        {"ZADD a 1 m", ":1\r\n"},         {"ZADD b 1 m", ":1\r\n"},
        {"EXISTS a a missing", ":2\r\n"}, {"TOUCH a missing a a", ":3\r\n"},
        {"TYPE a", "+zset\r\n"},          {"TYPE missing", "+none\r\n"},
        {"DEL a missing a", ":1\r\n"},    {"UNLINK b b missing", ":1\r\n"},
        {"ZSCORE b m", "$-1\r\n"},        {"DBSIZE", ":0\r\n"},
    };
    harness_expect_each(h, s, rows);
}

KEYS_TEST(a_removed_board_is_buried_and_then_freed_in_steps) {
    for (int i = 0; i < 1000; i++) {
        harness_run_format(h, s, "ZADD a %d m%d", i, i);
    }
    harness_run(h, s, "DEL a");
    assert_int_equal(registry_totals(h->server.registry)->unfreed, 1);
    int steps = 0;
    while (registry_free_step(h->server.registry, 10)) {
        steps++;
    }
    assert_true(steps > 1);
    assert_int_equal(registry_totals(h->server.registry)->unfreed, 0);
    assert_int_equal(registry_totals(h->server.registry)->freed, 1);
}

KEYS_TEST(keys_that_cannot_be_are_simply_missing) {
    OWNED char *long_key = malloc(REGISTRY_KEY_MAX + 1);
    assert_non_null(long_key);
    memset(long_key, 'k', REGISTRY_KEY_MAX + 1);
    static const char *const names[] = {"DEL", "UNLINK", "EXISTS", "TOUCH"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct bytes args[] = {
            bytes_from_text(names[i]),
            BYTES(""),
            {.at = long_key, .size = REGISTRY_KEY_MAX + 1},
        };
        assert_string_equal(harness_run_args(h, s, args, 3), ":0\r\n");
    }
}

/* ---- EXISTS, TOUCH, TYPE ---- */

KEYS_TEST(reads_of_keys_count_hits_and_misses_once_and_writes_none) {
    harness_run(h, s, "ZADD a 1 m");
    struct stats *stats = &h->server.stats;
    stats->keyspace_hits = stats->keyspace_misses = 0;
    harness_run(h, s, "EXISTS a a missing");
    harness_run(h, s, "TYPE a");
    harness_run(h, s, "TTL missing");
    assert_int_equal(stats->keyspace_hits, 3);
    assert_int_equal(stats->keyspace_misses, 2);
    harness_run(h, s, "DEL missing");
    harness_run(h, s, "EXPIRE a 100");
    harness_run(h, s, "RENAME a b");
    harness_run(h, s, "MEMORY USAGE b");
    assert_int_equal(stats->keyspace_hits, 3);
    assert_int_equal(stats->keyspace_misses, 2);
}

/* ---- RENAME, RENAMENX ---- */

KEYS_TEST(rename_moves_the_board_with_its_layout_times_and_expiry) {
    harness_run(h, s, "ZADD lap:1 30 ann 20 bob");
    harness_run(h, s, "PEXPIREAT lap:1 1767225700000");
    harness_expect(h, s, "RENAME lap:1 best", "+OK\r\n");
    harness_expect(h, s, "EXISTS lap:1", ":0\r\n");
    harness_expect(h, s, "ZRANGE best 0 -1", "*2\r\n$3\r\nbob\r\n$3\r\nann\r\n");
    harness_expect(h, s, "PEXPIRETIME best", ":1767225700000\r\n");
    harness_expect_prefix(h, s, "ZADD best -1 kim",
                          "-ERR value -1 is out of range: field 'seconds'");
}

KEYS_TEST(names_are_taken_left_alone_and_missing) {
    harness_expect(h, s, "ZADD a 1 m", ":1\r\n");
    harness_expect(h, s, "ZADD b 2 n", ":1\r\n");
    harness_expect(h, s, "EXPIRE b 100", ":1\r\n");
    harness_expect(h, s, "RENAME a a", "+OK\r\n");
    harness_expect(h, s, "RENAMENX a a", ":0\r\n");
    harness_expect(h, s, "RENAMENX a b", ":0\r\n");
    harness_expect(h, s, "COPY a b", ":0\r\n");
    harness_expect(h, s, "RENAME x y", "-ERR no such key\r\n");
    harness_expect(h, s, "RENAME x x", "-ERR no such key\r\n");
    harness_expect(h, s, "RENAMENX x y", "-ERR no such key\r\n");
    harness_expect(h, s, "COPY x y", ":0\r\n");
    harness_expect(h, s, "COPY x x", SAME);
    harness_expect(h, s, "COPY a a DB 0 REPLACE", SAME);
    harness_expect(h, s, "RENAME a b", "+OK\r\n");
    harness_expect(h, s, "TTL b", ":-1\r\n");
    harness_expect(h, s, "ZREVRANGE b 0 -1 WITHSCORES", "*2\r\n$1\r\nm\r\n$1\r\n1\r\n");
    harness_expect(h, s, "COPY b b REPLACE DB 15 DB 3 REPLACE", ":1\r\n");
    harness_expect(h, s, "SELECT 3", "+OK\r\n");
    harness_expect(h, s, "ZSCORE b m", "$1\r\n1\r\n");
    harness_expect(h, s, "DBSIZE", ":1\r\n");
}

/* ---- COPY ---- */

KEYS_TEST(copy_takes_layout_order_times_and_expiry_along) {
    harness_run(h, s, "ZADD lap:1 30 zoe");
    harness_run(h, s, "ZADD lap:1 30 ann");
    harness_run(h, s, "ZADD lap:1 30 kim");
    harness_run(h, s, "PEXPIREAT lap:1 1767225700000");
    harness_expect(h, s, "COPY lap:1 other", ":1\r\n");
    harness_expect(h, s, "ZRANGE other 0 -1", "*3\r\n$3\r\nzoe\r\n$3\r\nann\r\n$3\r\nkim\r\n");
    harness_expect(h, s, "PEXPIRETIME other", ":1767225700000\r\n");
    harness_run(h, s, "ZREM other zoe");
    harness_expect(h, s, "ZCARD lap:1", ":3\r\n");
}

KEYS_TEST(copy_refuses_bad_options_and_changes_nothing) {
    harness_run(h, s, "ZADD a 1 m");
    const char *integer = "-ERR value is not an integer or out of range\r\n";
    const char *range = "-ERR DB index is out of range\r\n";
    const char *c_int =
        "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n";
    harness_expect(h, s, "COPY a b NOW", "-ERR syntax error\r\n");
    harness_expect(h, s, "COPY a b DB", "-ERR syntax error\r\n");
    harness_expect(h, s, "COPY a b DB x", integer);
    harness_expect(h, s, "COPY a b DB 9223372036854775808", integer);
    harness_expect(h, s, "COPY a b DB 9223372036854775807", c_int);
    harness_expect(h, s, "COPY a b DB 4611686018427387903", c_int);
    harness_expect(h, s, "COPY a b DB -9223372036854775808", c_int);
    harness_expect(h, s, "COPY a b DB -1", range);
    harness_expect(h, s, "COPY a b DB 16", range);
    harness_expect(h, s, "COPY x b DB 16", range);
    harness_expect(h, s, "DBSIZE", ":1\r\n");
}

/* ---- names of destinations ---- */

static void expect_name_refused(struct harness *h, struct session *s, const char *command,
                                size_t size) {
    char *name = malloc(size + 1);
    assert_non_null(name);
    memset(name, 'n', size + 1);
    const struct bytes args[] = {bytes_from_text(command), BYTES("a"), {.at = name, .size = size}};
    const char *reply = harness_run_args(h, s, args, 3);
    assert_int_equal(reply[0], '-');
    assert_non_null(strstr(reply, "1..65536"));
    free(name);
    harness_expect(h, s, "ZSCORE a m", "$1\r\n1\r\n");
    harness_expect(h, s, "DBSIZE", ":1\r\n");
}

KEYS_TEST(a_new_name_has_1_to_65536_bytes) {
    static const char *const commands[] = {"RENAME", "RENAMENX", "COPY"};
    harness_run(h, s, "ZADD a 1 m");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        expect_name_refused(h, s, commands[i], 0);
        expect_name_refused(h, s, commands[i], REGISTRY_KEY_MAX + 1);
    }
    OWNED char *name = malloc(REGISTRY_KEY_MAX);
    assert_non_null(name);
    memset(name, 'n', REGISTRY_KEY_MAX);
    const struct bytes args[] = {
        BYTES("RENAME"), BYTES("a"), {.at = name, .size = REGISTRY_KEY_MAX}};
    assert_string_equal(harness_run_args(h, s, args, 3), "+OK\r\n");
}

KEYS_TEST(names_may_hold_any_byte) {
    harness_run(h, s, "ZADD \"a\\x00\\r\\nb\" 1 m");
    harness_expect(h, s, "EXISTS \"a\\x00\\r\\nb\"", ":1\r\n");
    harness_expect(h, s, "EXISTS a", ":0\r\n");
    harness_expect(h, s, "RENAME \"a\\x00\\r\\nb\" \"\\xff\"", "+OK\r\n");
    harness_expect(h, s, "TYPE \"\\xff\"", "+zset\r\n");
}

/* ---- memory ---- */

KEYS_TEST(removal_needs_no_memory) {
    static const char *const lines[] = {"DEL a b", "UNLINK a b"};
    for (size_t i = 0; i < 2; i++) {
        for (uint64_t nth = 1; nth <= 4; nth++) {
            harness_run(h, s, "ZADD a 2 m");
            harness_run(h, s, "ZADD b 2 m");
            assert_string_equal(harness_run_failing(h, s, lines[i], nth), ":2\r\n");
            harness_expect(h, s, "DBSIZE", ":0\r\n");
        }
    }
}
