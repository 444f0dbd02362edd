/* HGET HMGET HGETALL HKEYS HVALS HLEN HEXISTS HSTRLEN, sentence by sentence. */
#include "tests/server/zset_fixture.h"

ZSET_TEST(a_field_has_its_value) {
    zset_run(h, "HSET k name zoe tier gold");
    zset_expect(h, "HGET k name", "zoe");
    zset_expect(h, "HGET k none", "nil");
    zset_expect(h, "HGET none name", "nil");
    zset_use_resp3(h);
    zset_expect(h, "HGET k none", "_");
    zset_expect(h, "HGET none name", "_");
}

ZSET_TEST(several_fields_come_in_the_order_they_are_asked_for) {
    zset_run(h, "HSET k name zoe tier gold");
    zset_expect(h, "HMGET k tier none name tier", "[gold nil zoe gold]");
    zset_expect(h, "HMGET none tier name", "[nil nil]");
    zset_use_resp3(h);
    zset_expect(h, "HMGET k none name", "[_ zoe]");
}

ZSET_TEST(the_whole_hash_is_flat_in_resp2_and_a_map_in_resp3) {
    zset_run(h, "HSET k name zoe tier gold");
    zset_expect(h, "HGETALL k", "[name zoe tier gold]");
    zset_expect(h, "HGETALL none", "[]");
    zset_use_resp3(h);
    zset_expect(h, "HGETALL k", "{name zoe tier gold}");
    zset_expect(h, "HGETALL none", "{}");
}

ZSET_TEST(names_and_values_are_arrays) {
    zset_run(h, "HSET k name zoe tier gold");
    for (int protocol = 2; protocol <= 3; protocol++) {
        h->server.sessions.first->protocol = (uint8_t)protocol;
        zset_expect(h, "HKEYS k", "[name tier]");
        zset_expect(h, "HVALS k", "[zoe gold]");
        zset_expect(h, "HKEYS none", "[]");
        zset_expect(h, "HVALS none", "[]");
    }
}

ZSET_TEST(sizes_are_counted) {
    zset_run(h, "HSET k name zoe empty \"\"");
    zset_expect(h, "HLEN k", ":2");
    zset_expect(h, "HLEN none", ":0");
    zset_expect(h, "HEXISTS k empty", ":1");
    zset_expect(h, "HEXISTS k none", ":0");
    zset_expect(h, "HEXISTS none name", ":0");
    zset_expect(h, "HSTRLEN k name", ":3");
    zset_expect(h, "HSTRLEN k empty", ":0");
    zset_expect(h, "HSTRLEN k none", ":0");
    zset_expect(h, "HSTRLEN none name", ":0");
}

ZSET_TEST(a_large_hash_comes_whole) {
    enum { FIELDS = 5000 };
    static bool is_seen[FIELDS];
    memset(is_seen, 0, sizeof(is_seen));
    for (int i = 0; i < FIELDS; i++) {
        zset_run(h, "HSET k %d %d", i, i * 3);
    }
    const char *at = zset_run(h, "HGETALL k") + 1;
    for (int i = 0; i < FIELDS; i++) {
        char *end;
        long field = strtol(at, &end, 10);
        long value = strtol(end, &end, 10);
        assert_in_range(field, 0, FIELDS - 1);
        assert_int_equal(value, field * 3);
        assert_false(is_seen[field]);
        is_seen[field] = true;
        at = end + 1;
    }
}

/* The reply is given up as soon as its buffer is. */
ZSET_TEST(a_reply_that_nobody_can_read_ends_early) {
    for (int i = 0; i < 1000; i++) {
        zset_run(h, "HSET k field:%d a:value:of:twenty", i);
    }
    static const char *const names[] = {"HGETALL", "HKEYS", "HVALS"};
    for (int i = 0; i < 3; i++) {
        struct bytes args[] = {bytes_from_text(names[i]), BYTES("k")};
        struct request request = {.args = args, .count = 2};
        struct buffer small;
        struct reply reply;
        buffer_init(&small, 1000);
        reply_init(&reply, &small, 2);
        harness_execute(&h->server, h->server.sessions.first, &request, &reply);
        assert_true(small.is_broken);
        buffer_deinit(&small);
    }
}

ZSET_TEST(a_long_command_is_refused_where_the_limit_says_so) {
    for (int i = 0; i < 50000; i++) {
        zset_run(h, "HSET k field:%d a:value:of:twenty", i);
    }
    zset_run(h, "CONFIG SET busy-command-limit 1");
    static const char *const lines[] = {"HGETALL k", "HKEYS k", "HVALS k", "HRANDFIELD k -1000000"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_memory_equal(zset_run(h, "%s", lines[i]), "-TOOLONG", 8);
    }
    zset_expect(h, "HGET k field:7", "a:value:of:twenty");
    zset_expect(h, "HLEN k", ":50000");
    assert_memory_equal(zset_run(h, "HSCAN k 0"), "[", 1);
    /* COPY runs in steps, but not in a transaction. */
    zset_expect(h, "MULTI", "+OK");
    zset_run(h, "COPY k l");
    assert_memory_equal(zset_run(h, "EXEC"), "-EXECABORT", 10);
    zset_expect(h, "EXISTS l", ":0");
    zset_expect(h, "COPY k l", ":1");
    zset_expect(h, "HLEN l", ":50000");
    zset_expect(h, "DEL l", ":1");
    /* Also with what the transaction itself will have put there. */
    zset_expect(h, "MULTI", "+OK");
    zset_run(h, "RENAME k l");
    zset_run(h, "HGETALL l");
    assert_memory_equal(zset_run(h, "EXEC"), "-EXECABORT", 10);
}
