/* HSET, HMSET, HSETNX and HDEL, sentence by sentence. */
#include "tests/server/zset_fixture.h"

ZSET_TEST(hset_counts_the_new_fields) {
    zset_expect(h, "HSET k name zoe tier gold", ":2");
    zset_expect(h, "HSET k name ann tier gold avatar 7", ":1");
    zset_expect(h, "HSET k name ann", ":0");
    zset_expect(h, "HGETALL k", "[name ann tier gold avatar 7]");
}

ZSET_TEST(the_last_one_of_equal_fields_counts) {
    zset_expect(h, "HSET k a 1 b 2 a 3", ":2");
    zset_expect(h, "HGETALL k", "[a 3 b 2]");
    zset_expect(h, "HSET k b 5 b 6", ":0");
    zset_expect(h, "HGET k b", "6");
}

ZSET_TEST(hmset_replies_ok) {
    zset_expect(h, "HMSET k a 1 b 2", "+OK");
    zset_expect(h, "hmset k a 3", "+OK");
    zset_expect(h, "HGETALL k", "[a 3 b 2]");
}

ZSET_TEST(a_field_without_a_value_is_an_error) {
    zset_expect(h, "HSET k a 1 b", "-ERR wrong number of arguments for 'hset' command");
    zset_expect(h, "HMSET k a 1 b", "-ERR wrong number of arguments for 'hmset' command");
    zset_expect(h, "EXISTS k", ":0");
}

ZSET_TEST(hsetnx_sets_only_what_is_not_there) {
    zset_expect(h, "HSETNX k a 1", ":1");
    zset_expect(h, "HSETNX k a 2", ":0");
    zset_expect(h, "HSETNX k b 3", ":1");
    zset_expect(h, "HGETALL k", "[a 1 b 3]");
}

ZSET_TEST(fields_and_values_may_be_empty) {
    zset_expect(h, "HSET k \"\" \"\"", ":1");
    zset_expect(h, "HEXISTS k \"\"", ":1");
    zset_expect(h, "HGET k \"\"", "");
    zset_expect(h, "HDEL k \"\"", ":1");
    zset_expect(h, "EXISTS k", ":0");
}

ZSET_TEST(hdel_counts_and_removes_the_hash_with_its_last_field) {
    zset_run(h, "HSET k a 1 b 2 c 3");
    zset_expect(h, "HDEL k a x a", ":1");
    zset_expect(h, "HDEL k x", ":0");
    zset_expect(h, "HDEL k b c d", ":2");
    zset_expect(h, "EXISTS k", ":0");
    zset_expect(h, "HDEL k a", ":0");
}

ZSET_TEST(a_hash_of_many_fields_grows_and_shrinks) {
    enum { FIELDS = 3000 };
    for (int i = 0; i < FIELDS; i++) {
        assert_string_equal(zset_run(h, "HSET k f%d v%d", i, i), ":1");
    }
    for (int i = 0; i < FIELDS; i += 2) {
        assert_string_equal(zset_run(h, "HDEL k f%d", i), ":1");
    }
    assert_string_equal(zset_run(h, "HLEN k"), ":1500");
    for (int i = 0; i < FIELDS; i++) {
        assert_string_equal(zset_run(h, "HGET k f%d", i), formatted(i % 2 != 0 ? "v%d" : "nil", i));
    }
}

ZSET_TEST(a_key_has_the_bytes_that_any_key_has) {
    static const char expected[] = "-ERR key is 0 bytes long: 1..65536 are allowed";
    zset_expect(h, "HSET \"\" a 1", expected);
    zset_expect(h, "HSETNX \"\" a 1", expected);
    zset_expect(h, "HINCRBY \"\" a 1", expected);
    zset_expect(h, "HGET \"\" a", "nil");
    zset_expect(h, "DBSIZE", ":0");
}

ZSET_TEST(a_value_of_64_megabytes_is_kept) {
    const size_t size = (size_t)64 << 20;
    char *value = malloc(size);
    assert_non_null(value);
    memset(value, 'v', size);
    value[size - 1] = 'w';
    struct bytes set[] = {BYTES("HSET"), BYTES("k"), BYTES("f"), {value, size}};
    assert_string_equal(harness_run_args(h, s, set, 4), ":1\r\n");
    assert_string_equal(zset_run(h, "HSTRLEN k f"), ":67108864");
    const char *reply = harness_run(h, s, "HGET k f");
    assert_memory_equal(reply, "$67108864\r\n", 11);
    assert_memory_equal(reply + 11, value, size);
    struct bytes field[] = {BYTES("HSET"), BYTES("k"), {value, size}, BYTES("1")};
    assert_string_equal(harness_run_args(h, s, field, 4), ":1\r\n");
    struct bytes get[] = {BYTES("HGET"), BYTES("k"), {value, size}};
    assert_string_equal(harness_run_args(h, s, get, 3), "$1\r\n1\r\n");
    zset_expect(h, "HLEN k", ":2");
    free(value);
}

/* Each allocation fails in turn: the error, and the hash as it was. */
ZSET_TEST(without_memory_nothing_changes) {
    static const char long_text[] =
        "a value so long that room for it cannot be found beside what is there already, whatever "
        "is rounded up anywhere in the structure that holds it";
    struct bytes args[] = {BYTES("HSET"),    BYTES("k"), BYTES("a"),
                           BYTES(long_text), BYTES("b"), BYTES(long_text)};
    struct request request = {.args = args, .count = 6};
    static const char *const before[] = {"", "HSET k a 1 c 2"};
    static const char *const kept[] = {"[]", "[a 1 c 2]"};
    for (int i = 0; i < 2; i++) {
        uint32_t failures = 0;
        for (bool is_done = false; !is_done;) {
            zset_run(h, "DEL k");
            if (*before[i] != '\0') {
                zset_run(h, "%s", before[i]);
            }
            struct reply reply;
            assert_non_null(buffer_reserve(&h->reply, 1000));
            buffer_clear(&h->reply);
            reply_init(&reply, &h->reply, 2);
            memory_fail_at(++failures);
            harness_execute(&h->server, s, &request, &reply);
            memory_fail_at(0);
            is_done = h->reply.at[0] == ':';
            if (!is_done) {
                assert_memory_equal(h->reply.at, "-OOM out of memory\r\n", h->reply.size);
                zset_expect(h, "HGETALL k", kept[i]);
                assert_int_equal(strcmp(zset_run(h, "EXISTS k"), i == 0 ? ":0" : ":1"), 0);
            }
        }
        assert_in_range(failures, 2, 100);
    }
}
