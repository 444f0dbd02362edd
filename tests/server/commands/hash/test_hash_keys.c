/* Hashes among other keys: commands for the wrong kind, commands for keys, transactions. What Redis
 * has of these, at random: tests/integration/differential.c. */
#include "tests/server/zset_fixture.h"

static const char wrong[] = "-WRONGTYPE Operation against a key holding the wrong kind of value";

ZSET_TEST(commands_refuse_the_other_kind) {
    static const char *const lines[] = {
        "ZADD h 1 m",
        "HSET b f 1",
        "HGETALL b",
        "HSCAN b 0 FOO",
        "HRANDFIELD b -3 WITHVALUES",
        "ZREVRANK h m WITHSCORE",
        "ZRANGESTORE b h 0 -1",
        "ZPOPMAX h 2",
        "ZMPOP 2 none h MIN",
        "ZRANDMEMBER h 3",
        "ZUNION 2 b h",
        "ZINTER 2 h b WEIGHTS x y",
        "ZUNIONSTORE d 2 b h",
        "LB.ADD h 1 m",
        "LB.AROUND h MEMBER m 3",
        "LB.GET h 1 m",
        "LB.HIST h 1",
        "LB.ABOVE h 1",
        "LB.CUTS h 2",
        "LB.INFO h",
        "LB.QUANTILE h 0.5",
        "LB.RANGE h 0 -1",
        "LB.ROLL h archive",
    };
    zset_run(h, "ZADD b 1 m 2 n");
    zset_run(h, "HSET h f 1 g 2");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect_unchanged(h, "b", lines[i], wrong);
        zset_expect(h, "HGETALL h", "[f 1 g 2]");
        zset_expect(h, "DBSIZE", ":2");
    }
    zset_expect(h, "LB.CREATE h", "-BUSYKEY Target key name already exists.");
    zset_expect(h, "LB.ROLL b h", "-BUSYKEY Target key name already exists.");
    zset_expect(h, "ZLEXCOUNT h - +",
                "-ERR ZLEXCOUNT is not supported: equal scores are ordered by time, never by name");
    zset_expect(h, "HGETALL h", "[f 1 g 2]");
}

ZSET_TEST(what_is_stored_replaces_a_hash) {
    static const char *const lines[] = {"ZUNIONSTORE h 1 b", "ZRANGESTORE h b 0 -1", "RENAME c h",
                                        "COPY b h REPLACE"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_run(h, "DEL h");
        zset_run(h, "ZADD b 1 m 2 n");
        zset_run(h, "ZADD c 1 m 2 n");
        zset_run(h, "HSET h f 1");
        assert_memory_not_equal(zset_run(h, "%s", lines[i]), "-", 1);
        zset_expect(h, "TYPE h", "+zset");
        zset_expect(h, "ZCARD h", ":2");
    }
    zset_run(h, "DEL h");
    zset_run(h, "HSET h f 1");
    zset_expect(h, "ZUNIONSTORE h 1 none", ":0");
    zset_expect(h, "EXISTS h", ":0");
    zset_run(h, "HSET g f 1");
    zset_expect(h, "RENAME g b", "+OK");
    zset_expect(h, "TYPE b", "+hash");
    zset_expect(h, "HGETALL b", "[f 1]");
}

ZSET_TEST(key_commands_know_hashes) {
    zset_expect(h, "HSET h f 1 g 2", ":2");
    zset_expect(h, "ZADD b 1 m", ":1");
    zset_expect(h, "TYPE h", "+hash");
    zset_expect(h, "KEYS h*", "[h]");
    zset_expect(h, "SCAN 0 TYPE HASH MATCH x*", "[0 []]");
    zset_expect(h, "SCAN 0 TYPE hash", "[0 [h]]");
    zset_expect(h, "SCAN 0 TYPE zset", "[0 [b]]");
    zset_expect(h, "OBJECT REFCOUNT h", ":1");
    zset_expect(h, "EXPIRE h 100", ":1");
    zset_expect(h, "COPY h c", ":1");
    zset_expect(h, "TTL c", ":100");
    zset_expect(h, "HSET c f 3", ":0");
    zset_expect(h, "HGET h f", "1");
    zset_expect(h, "RENAMENX c b", ":0");
    zset_expect(h, "RENAME c e", "+OK");
    zset_expect(h, "PERSIST e", ":1");
    harness_pass_seconds(h, 100);
    zset_expect(h, "HGETALL h", "[]");
    zset_expect(h, "HGETALL e", "[f 3 g 2]");
    zset_expect(h, "DEL b", ":1");
    zset_expect(h, "RANDOMKEY", "e");
}

/* Redis's thresholds. As there, what was a table once stays one. */
ZSET_TEST(the_encoding_is_the_one_that_redis_names) {
    char value[66];
    memset(value, 'v', 65);
    value[65] = '\0';
    zset_run(h, "HSET k f %.64s %.64s 1", value, value);
    zset_expect(h, "OBJECT ENCODING k", "listpack");
    zset_run(h, "HSET k f %s", value);
    zset_expect(h, "OBJECT ENCODING k", "hashtable");
    zset_run(h, "HSET k f 1");
    zset_expect(h, "OBJECT ENCODING k", "hashtable");
    zset_run(h, "HSET l %s 1", value);
    zset_expect(h, "OBJECT ENCODING l", "hashtable");
    for (int i = 0; i < 512; i++) {
        zset_run(h, "HSET m %d 1", i);
    }
    zset_expect(h, "OBJECT ENCODING m", "listpack");
    zset_run(h, "HSET m 512 1");
    zset_expect(h, "OBJECT ENCODING m", "hashtable");
    zset_expect(h, "OBJECT ENCODING none", "nil");
}

ZSET_TEST(memory_is_measured) {
    zset_run(h, "HSET k f 1");
    long small = strtol(zset_run(h, "MEMORY USAGE k") + 1, NULL, 10);
    assert_in_range(small, 32,
                    200); /* 12 bytes of key, 1 of name, 19 of hash; an allocator rounds up */
    for (int i = 0; i < 1000; i++) {
        zset_run(h, "HSET k field:%d a:value:of:twenty", i);
    }
    long large = strtol(zset_run(h, "MEMORY USAGE k") + 1, NULL, 10);
    assert_in_range(large, 30000, 200000);
}

ZSET_TEST(the_profile_and_the_score_are_one_transaction) {
    zset_run(h, "MULTI");
    zset_expect(h, "HSET profile:zoe name Zoe tier gold", "+QUEUED");
    zset_expect(h, "ZADD board 700 zoe", "+QUEUED");
    zset_expect(h, "HSET board x 1", "+QUEUED");
    assert_string_equal(zset_run(h, "EXEC"), "[:2 :1 -WRONGTYPE Operation against a key holding "
                                             "the wrong kind of value]");
    zset_expect(h, "HGETALL profile:zoe", "[name Zoe tier gold]");
}

ZSET_TEST(hashes_are_refused_past_maxmemory_but_can_be_removed) {
    static const char oom[] = "-OOM command not allowed when used memory > 'maxmemory'.";
    static const char *const refused[] = {"HSET k f 2", "HMSET k f 2", "HSETNX k g 1",
                                          "HINCRBY k f 1", "HINCRBYFLOAT k f 1"};
    zset_run(h, "HSET k f 1 g 2");
    zset_run(h, "CONFIG SET maxmemory 1");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        zset_expect(h, refused[i], oom);
    }
    zset_expect(h, "HGET k f", "1");
    zset_expect(h, "HDEL k f", ":1");
    zset_expect(h, "HGETALL k", "[g 2]");
}
