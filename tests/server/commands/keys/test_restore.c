/* DUMP and RESTORE, by bytes in and bytes out. */
#include "tests/server/rdb/board_maker.h"

#include "tests/support/harness.h"
#include "tests/support/random.h"

#define BAD_PAYLOAD "-ERR DUMP payload version or checksum are wrong\r\n"
#define BAD_FORMAT  "-ERR Bad data format\r\n"
#define THREE       "*6\r\n$3\r\nzoe\r\n$1\r\n9\r\n$3\r\nbob\r\n$1\r\n5\r\n$3\r\nann\r\n$1\r\n5\r\n"

#define RESTORE_TEST(name)                                                                         \
    HARNESS_TEST(name, "layout low FIELD ms 33 SIGNED ASC TIME 31 S\nboard low* low\n"             \
                       "board cap* default CAP 2\nboard few* default LIMIT 2\n"                    \
                       "board shut* default FREEZE\n"                                              \
                       "layout hot FIELD votes 60 DECAY 6 H\nboard hot* hot\n")

static const char *restore(struct harness *h, struct session *s, const char *key, const char *ttl,
                           struct bytes payload, const char *option) {
    const struct bytes args[] = {BYTES("RESTORE"), bytes_from_text(key), bytes_from_text(ttl),
                                 payload, bytes_from_text(option)};
    return harness_run_args(h, s, args, option[0] != '\0' ? 5 : 4);
}

/* The reply begins so. */
static void expect_restore(struct harness *h, struct session *s, const char *key, const char *ttl,
                           struct bytes payload, const char *option, const char *expected) {
    const char *reply = restore(h, s, key, ttl, payload, option);
    if (strncmp(reply, expected, strlen(expected)) != 0) {
        fail_msg("RESTORE %s %s %s: expected %s answered %s", key, ttl, option, expected, reply);
    }
}

/* A copy of the payload that DUMP replies, to be freed. */
static struct bytes dump(struct harness *h, struct session *s, const char *key) {
    const char *reply = harness_run_format(h, s, "DUMP %s", key);
    assert_int_equal(reply[0], '$');
    size_t size = strtoul(reply + 1, NULL, 10);
    char *copy = malloc(size);
    memcpy(copy, strchr(reply, '\n') + 1, size);
    return (struct bytes){.at = copy, .size = size};
}

static void drop(struct bytes payload) {
    free((void *)(uintptr_t)payload.at);
}

/* What was made, with its footer; static memory, until this has been called 8 times more. */
static struct bytes finish(struct buffer *out, unsigned version) {
    static char kept[8][1024];
    static unsigned calls;
    char *at = kept[calls++ % 8];
    make_footer(out, version);
    CHECK(out->size <= sizeof kept[0]);
    struct bytes payload = {.at = memcpy(at, out->at, out->size), .size = out->size};
    buffer_deinit(out);
    return payload;
}

static struct buffer begin(void) {
    struct buffer out;
    buffer_init(&out, 0);
    return out;
}

/* Sorted set of 3 members: zoe 9, bob 5, ann 5. */
static struct bytes make_zset(void) {
    struct buffer out = begin();
    make_byte(&out, 5);
    make_length(&out, 3);
    make_text(&out, "zoe");
    make_double(&out, 9);
    make_text(&out, "bob");
    make_double(&out, 5);
    make_text(&out, "ann");
    make_double(&out, 5);
    return finish(&out, 10);
}

RESTORE_TEST(a_sorted_set_of_redis_becomes_a_board) {
    struct bytes payload = make_zset();
    expect_restore(h, s, "k", "0", payload, "", "+OK\r\n");
    harness_expect(h, s, "ZREVRANGE k 0 -1 WITHSCORES", THREE);
    harness_expect(h, s, "PTTL k", ":-1\r\n");
    expect_restore(h, s, "k", "0", payload, "", "-BUSYKEY Target key name already exists.\r\n");
    harness_run(h, s, "ZADD k 7 new");
    expect_restore(h, s, "k", "1000", payload, "REPLACE", "+OK\r\n");
    harness_expect(h, s, "ZREVRANGE k 0 -1 WITHSCORES", THREE);
    assert_true(harness_run_integer(h, s, "PTTL k") > 990);
    expect_restore(h, s, "low", "4102444800000", payload, "ABSTTL", "+OK\r\n");
    harness_expect(h, s, "PEXPIRETIME low", ":4102444800000\r\n");
    harness_expect(h, s, "ZRANGE low 0 -1", "*3\r\n$3\r\nann\r\n$3\r\nbob\r\n$3\r\nzoe\r\n");
    harness_run(h, s, "HSET k2 a b");
    expect_restore(h, s, "k2", "0", payload, "REPLACE", "+OK\r\n");
    harness_expect(h, s, "TYPE k2", "+zset\r\n");
    h->wall_us += 2000000;
    harness_expect(h, s, "EXISTS k", ":0\r\n");
}

RESTORE_TEST(what_has_expired_removes_what_it_replaces) {
    struct bytes payload = make_zset();
    expect_restore(h, s, "k", "1", payload, "ABSTTL", "+OK\r\n");
    harness_run(h, s, "ZADD k 1 ann");
    const struct bytes args[] = {BYTES("RESTORE"), BYTES("k"),      BYTES("1"),
                                 payload,          BYTES("ABSTTL"), BYTES("REPLACE")};
    assert_string_equal(harness_run_args(h, s, args, 6), "+OK\r\n");
    harness_expect(h, s, "EXISTS k", ":0\r\n");
}

RESTORE_TEST(arguments_are_refused_as_redis_does) {
    struct bytes payload = make_zset();
    expect_restore(h, s, "k", "-1", payload, "", "-ERR Invalid TTL value, must be >= 0\r\n");
    expect_restore(h, s, "k", "x", payload, "", "-ERR value is not an integer or out of range\r\n");
    expect_restore(h, s, "k", "0", payload, "BOGUS", "-ERR syntax error\r\n");
    expect_restore(h, s, "k", "0", payload, "FREQ", "-ERR syntax error\r\n");
    harness_expect(h, s, "RESTORE k 0 x IDLETIME -1",
                   "-ERR Invalid IDLETIME value, must be >= 0\r\n");
    harness_expect(h, s, "RESTORE k 0 x FREQ 256",
                   "-ERR Invalid FREQ value, must be >= 0 and <= 255\r\n");
    harness_expect(h, s, "RESTORE k 0 x IDLETIME 1 FREQ 2", "-ERR syntax error\r\n");
    harness_expect(h, s, "RESTORE k 0 x IDLETIME 1", BAD_PAYLOAD);
    harness_expect(h, s, "RESTORE k 0 \"\" FREQ 1", BAD_PAYLOAD);
    harness_expect(h, s, "DUMP none", "$-1\r\n");
    harness_expect(h, s, "DBSIZE", ":0\r\n");
}

RESTORE_TEST(values_of_other_types_are_named) {
    struct buffer out = begin();
    make_byte(&out, 0);
    make_text(&out, "text");
    expect_restore(h, s, "k", "0", finish(&out, 10), "",
                   "-ERR no strings here: see docs/reference/differences-from-redis.md\r\n");
    out = begin();
    make_byte(&out, 0xfe); /* an opcode of files */
    expect_restore(h, s, "k", "0", finish(&out, 10), "", BAD_FORMAT);
}

RESTORE_TEST(a_board_whose_scores_decay_is_restored_with_its_results_and_takes_no_scores) {
    harness_expect(h, s, "ZINCRBY hot:a 8 ann", "$1\r\n8\r\n");
    struct bytes own = dump(h, s, "hot:a");
    h->wall_us += INT64_C(6) * 3600 * 1000 * 1000;
    expect_restore(h, s, "hot:b", "0", own, "", "+OK\r\n");
    harness_expect(h, s, "ZINCRBY hot:b 1 ann", "$1\r\n5\r\n");
    expect_restore(h, s, "hot:c", "0", make_zset(), "",
                   "-ERR member 'zoe': value 9 is refused: field 'votes' has DECAY and takes "
                   "increments only");
    harness_expect(h, s, "EXISTS hot:c", ":0\r\n");
    drop(own);
}

RESTORE_TEST(rules_of_the_board_hold) {
    struct bytes payload = make_zset();
    expect_restore(h, s, "cap", "0", payload, "", "+OK\r\n");
    harness_expect(h, s, "ZREVRANGE cap 0 -1", "*2\r\n$3\r\nzoe\r\n$3\r\nbob\r\n");
    expect_restore(h, s, "few", "0", payload, "", "-FULL board is full: at most 2 members\r\n");
    harness_expect_prefix(h, s, "EXISTS few", ":0");
    expect_restore(h, s, "shut", "0", payload, "", "-FROZEN");
    harness_run(h, s, "LB.BAN bob");
    expect_restore(h, s, "banned", "0", payload, "", "+OK\r\n");
    harness_expect(h, s, "ZREVRANGE banned 0 -1", "*2\r\n$3\r\nzoe\r\n$3\r\nann\r\n");
    harness_run(h, s, "LB.CREATE made FIELD a 40 SIGNED SCALE 1 TIME 24 M");
    expect_restore(h, s, "made", "0", payload, "REPLACE", "+OK\r\n");
    harness_expect(h, s, "ZINCRBY made 0.5 zoe", "$3\r\n9.5\r\n");
    harness_run(h, s, "LB.ALTER made FREEZE");
    expect_restore(h, s, "made", "0", payload, "REPLACE", "-FROZEN");
}

/* Ann's score is 3, bob's is this. */
static struct bytes make_scores(double score) {
    struct buffer out = begin();
    make_byte(&out, 5);
    make_length(&out, 2);
    make_text(&out, "ann");
    make_double(&out, 3);
    make_text(&out, "bob");
    make_double(&out, score);
    return finish(&out, 10);
}

RESTORE_TEST(a_board_gets_the_first_default_layout_that_takes_all_its_scores) {
    expect_restore(h, s, "whole", "0", make_scores(4), "", "+OK\r\n");
    harness_expect_prefix(h, s, "LB.INFO whole", "*54\r\n$6\r\nlayout\r\n$31\r\nFIELD score 33");
    expect_restore(h, s, "halves", "0", make_scores(1.5), "", "+OK\r\n");
    harness_expect(h, s, "ZRANGE halves 0 -1 WITHSCORES",
                   "*4\r\n$3\r\nbob\r\n$3\r\n1.5\r\n$3\r\nann\r\n$1\r\n3\r\n");
    expect_restore(h, s, "ms", "0", make_scores(1767225600123), "", "+OK\r\n");
    harness_expect(h, s, "ZSCORE ms bob", "$13\r\n1767225600123\r\n");
    harness_expect_prefix(h, s, "LB.INFO ms",
                          "*54\r\n$6\r\nlayout\r\n$21\r\nFIELD score 64 SIGNED");
    expect_restore(h, s, "none", "0", make_scores(0.1 + 0.2), "",
                   "-ERR member 'bob': value 0.30000000000000004 has too many decimals: field "
                   "'score' keeps 7");
    expect_restore(h, s, "cap", "0", make_scores(1.5), "",
                   "-ERR member 'bob': value 1.5 has too many decimals");
    harness_expect(h, s, "EXISTS none cap", ":0\r\n");
}

RESTORE_TEST(a_board_comes_back_to_the_last_bit) {
    harness_run(h, s,
                "LB.CREATE a FIELD p 14 FIELD q 8 TIME 42 MS LATEST CAP 3000 KEEP BEST "
                "TAG land 4");
    for (int i = 0; i < 2000; i++) {
        harness_run_format(h, s, "LB.ADD a %d %d m%d", i * 7 % 31, i % 3, i);
        harness_run_format(h, s, "LB.TAG a m%d land %s", i, i % 4 == 0 ? "DE" : "FR");
        h->wall_us += i % 5 == 0 ? 1000 : 0;
    }
    struct bytes payload = dump(h, s, "a");
    OWNED char *before = strdup(harness_run(h, s, "LB.RANGE a 0 -1 WITHKEY"));
    OWNED char *info = strdup(harness_run(h, s, "LB.INFO a"));
    OWNED char *germans = strdup(harness_run(h, s, "LB.RANGE a 0 -1 WHERE land DE"));
    assert_memory_equal(before, "*2000\r\n", 7);
    assert_memory_equal(germans, "*500\r\n", 6);
    h->wall_us += 1000000000;
    harness_run(h, s, "DEL a");
    expect_restore(h, s, "a", "0", payload, "", "+OK\r\n");
    harness_expect(h, s, "LB.RANGE a 0 -1 WITHKEY", before);
    /* All but its memory: it was filled in another order. */
    const char *info_after = harness_run(h, s, "LB.INFO a");
    assert_memory_equal(info_after, info, (size_t)(strstr(info, "memory") - info));
    assert_string_equal(strstr(info_after, "fields"), strstr(info, "fields"));
    harness_expect(h, s, "LB.RANGE a 0 -1 WHERE land DE", germans);
    struct bytes again = dump(h, s, "a");
    assert_true(bytes_equal(again, payload));
    /* A board made by LB.CREATE keeps its layout: this one cannot take these keys. */
    harness_run(h, s, "LB.CREATE b FIELD p 20");
    expect_restore(h, s, "b", "0", payload, "REPLACE",
                   "-ERR payload is of a board with another layout");
    harness_run(h, s, "LB.CREATE empty FIELD p 20 CAP 5");
    drop(payload);
    payload = dump(h, s, "empty");
    expect_restore(h, s, "other", "0", payload, "", "+OK\r\n");
    harness_expect(h, s, "EXISTS other", ":1\r\n");
    drop(payload);
    drop(again);
}

/* What a Redis with the module replies to DUMP of a board like this one. */
static struct bytes make_module_dump(struct harness *h, const char *name) {
    const struct registry_key *key =
        registry_peek(h->server.registry, 0, bytes_from_text(name), harness_now_us(h) / 1000);
    struct buffer out = begin();
    assert_non_null(key);
    make_byte(&out, 7);
    make_value(&out, key, (uint64_t)harness_now_us(h), 2);
    return finish(&out, 10);
}

RESTORE_TEST(tags_come_back) {
    harness_run(h, s, "LB.CREATE a FIELD p 20 TIME 34 S TAG country 8 TAG class 2");
    for (int i = 0; i < 1500; i++) {
        harness_run_format(h, s, "LB.ADD a TAG country c%d TAG class \"%s\" %d m%d", i % 200,
                           i % 5 == 0 ? "" : "mage", i * 7 % 31, i);
    }
    struct bytes payload = dump(h, s, "a");
    OWNED char *before = strdup(harness_run(h, s, "LB.RANGE a 0 -1 WITHKEY TAGS"));
    harness_expect(h, s, "LB.TAGS a m7",
                   "*1\r\n*4\r\n$7\r\ncountry\r\n$2\r\nc7\r\n$5\r\nclass\r\n"
                   "$4\r\nmage\r\n");
    harness_run(h, s, "DEL a");
    expect_restore(h, s, "a", "0", payload, "", "+OK\r\n");
    harness_expect(h, s, "LB.RANGE a 0 -1 WITHKEY TAGS", before);
    struct bytes again = dump(h, s, "a");
    assert_true(bytes_equal(again, payload));
    harness_run(h, s, "LB.CREATE other FIELD p 20 TIME 34 S");
    expect_restore(h, s, "other", "0", payload, "REPLACE",
                   "-ERR payload is of a board with another layout");
    drop(payload);
    drop(again);
}

RESTORE_TEST(tags_of_a_board_of_the_module_come_back) {
    harness_run(h, s, "LB.CREATE a FIELD p 20 TAG country 8 TAG class 2");
    harness_run(h, s, "LB.ADD a TAG country DE 9 ann 8 bob 7 cid");
    harness_run(h, s, "LB.TAG a cid country \"\" class mage");
    struct bytes was = dump(h, s, "a");
    struct bytes payload = make_module_dump(h, "a");
    harness_run(h, s, "DEL a");
    expect_restore(h, s, "a", "0", payload, "", "+OK\r\n");
    struct bytes is = dump(h, s, "a");
    assert_true(bytes_equal(was, is));
    drop(was);
    drop(is);
}

RESTORE_TEST(hashes_come_back) {
    for (int i = 0; i < 3000; i++) {
        harness_run_format(h, s, "HSET h field%d value%d", i, i * i);
    }
    struct bytes payload = dump(h, s, "h");
    assert_int_equal(payload.at[payload.size - 10], 9); /* for Redis from 5 on */
    expect_restore(h, s, "g", "0", payload, "", "+OK\r\n");
    harness_expect(h, s, "HLEN g", ":3000\r\n");
    harness_expect(h, s, "HGET g field2999", "$12\r\nvalue8994001\r\n");
    drop(payload);
}

/* Payloads of Redis's own tests (tests/unit/type/hash-templates.tcl), made whole: of 8.10, where names of fields that many
 * hashes have are kept once. */
RESTORE_TEST(hashes_with_names_of_their_template_are_read) {
    static const char packed[] =
        "\x1d\x00\x17\x17\x00\x00\x00\x02\x00\x86"
        "field1\x07\x86"
        "field2\x07\xff\x0d\x0d\x00\x00\x00\x03\x00\x00\x01\x01\x01\x02\x01\xff";
    static const char plain[] = "\x1f\x01\x02\x06"
                                "field1\x06"
                                "field2\xc0\x01\xc0\x02";
    static const char of_a_file[] = "\x20\x05\xc0\x01\xc0\x02";
    const struct bytes values[] = {{.at = packed, .size = sizeof packed - 1},
                                   {.at = plain, .size = sizeof plain - 1},
                                   {.at = of_a_file, .size = sizeof of_a_file - 1}};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        struct buffer out = begin();
        make_raw(&out, values[i].at, values[i].size);
        expect_restore(h, s, "k", "0", finish(&out, 15), "REPLACE", i < 2 ? "+OK\r\n" : BAD_FORMAT);
        harness_expect(h, s, "HGETALL k",
                       "*4\r\n$6\r\nfield1\r\n$1\r\n1\r\n$6\r\nfield2\r\n$1\r\n2\r\n");
    }
}

RESTORE_TEST(a_version_that_is_newer_is_named) {
    struct buffer out = begin();
    make_byte(&out, 5);
    make_length(&out, 1);
    make_text(&out, "ann");
    make_double(&out, 5);
    struct buffer other = begin();
    make_raw(&other, out.at, out.size);
    expect_restore(h, s, "k", "0", finish(&out, 16), "", "+OK\r\n");
    expect_restore(
        h, s, "l", "0", finish(&other, 17), "",
        "-ERR DUMP payload version or checksum are wrong: its RDB version is 17, and 16 of "
        "Redis and 81 of Valkey are the newest known here\r\n");
    harness_expect(h, s, "EXISTS l", ":0\r\n");
}

/* Every cut, and every flipped bit; then the same with a right checksum: an error, or some board that is
 * valid. */
static void damage(struct harness *h, struct session *s, struct bytes payload) {
    OWNED char *copy = malloc(payload.size);
    harness_run(h, s, "DEL k");
    harness_run(h, s, "ZADD k 1 untouched");
    for (size_t size = 0; size < payload.size; size++) {
        expect_restore(h, s, "k", "0", (struct bytes){.at = payload.at, .size = size}, "REPLACE",
                       BAD_PAYLOAD);
    }
    for (size_t bit = 0; bit < payload.size * 8; bit++) {
        memcpy(copy, payload.at, payload.size);
        copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
        expect_restore(h, s, "k", "0", (struct bytes){.at = copy, .size = payload.size}, "REPLACE",
                       BAD_PAYLOAD);
    }
    harness_expect(h, s, "ZRANGE k 0 -1", "*1\r\n$9\r\nuntouched\r\n");
    for (size_t bit = 0; bit < (payload.size - 10) * 8; bit++) {
        memcpy(copy, payload.at, payload.size);
        copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
        bytes_put_u64(copy + payload.size - 8, rdb_bytes_crc(0, copy, payload.size - 8));
        (void)restore(h, s, "k", "0", (struct bytes){.at = copy, .size = payload.size}, "REPLACE");
        ASSERT_VALID(registry_validate, h->server.registry);
    }
}

RESTORE_TEST(a_hash_with_a_field_that_expires_is_refused) {
    struct buffer out = begin();
    make_byte(&out, 24);
    make_u64(&out, 1000);
    make_length(&out, 2);
    for (uint64_t i = 0; i < 2; i++) {
        make_length(&out, i);
        make_text(&out, i == 0 ? "a" : "b");
        make_text(&out, "x");
    }
    harness_run(h, s, "HSET k old 1");
    expect_restore(h, s, "k", "0", finish(&out, 12), "REPLACE",
                   "-ERR field 'b' has an expiry, and only whole keys expire here: HPERSIST it "
                   "first\r\n");
    harness_expect(h, s, "HGETALL k", "*2\r\n$3\r\nold\r\n$1\r\n1\r\n");
}

RESTORE_TEST(damaged_payloads_change_nothing) {
    damage(h, s, make_zset());
    harness_run(h, s, "HSET h a 1 b 22 c 333");
    struct bytes payload = dump(h, s, "h");
    damage(h, s, payload);
    drop(payload);
    harness_run(h, s, "LB.CREATE d FIELD p 20 TIME 31 S PERIOD DAY CAP 9");
    harness_run(h, s, "ZADD d 1 ann 2 bob 2 cid");
    payload = dump(h, s, "d");
    damage(h, s, payload);
    drop(payload);
    harness_run(h, s, "LB.CREATE t FIELD p 20 TAG country 1 TAG class 3");
    harness_run(h, s, "LB.ADD t TAG country DE 3 ann 2 bob");
    harness_run(h, s, "LB.TAG t ann class mage");
    payload = dump(h, s, "t");
    damage(h, s, payload);
    drop(payload);
}

/* Without any memory but the handler's own. */
static const char *execute(struct harness *h, struct session *s, struct bytes payload) {
    struct bytes args[] = {BYTES("RESTORE"), BYTES("k"), BYTES("100000"), payload,
                           BYTES("REPLACE")};
    const struct request request = {.args = args, .count = 5, .size = payload.size + 25};
    struct reply reply;
    buffer_clear(&h->reply);
    reply_init(&reply, &h->reply, 2);
    server_update_time(&h->server);
    harness_execute(&h->server, s, &request, &reply);
    h->reply.at[h->reply.size] = '\0';
    return h->reply.at;
}

RESTORE_TEST(a_board_of_the_module_comes_back_as_it_was) {
    harness_run(h, s, "LB.CREATE k FIELD a 20 FIELD b 9 ASC TIME 24 M CAP 9");
    harness_run(h, s, "LB.ADD k 3 4 ann 3 4 bob 5 0 kim");
    harness_run(h, s, "LB.ALTER k FREEZE");
    struct bytes was = dump(h, s, "k");
    struct bytes payload = make_module_dump(h, "k");
    expect_restore(h, s, "k", "0", payload, "", "-BUSYKEY Target key name already exists.\r\n");
    harness_run(h, s, "DEL k");
    expect_restore(h, s, "k", "1000", payload, "", "+OK\r\n");
    assert_true(harness_run_integer(h, s, "PTTL k") > 990);
    struct bytes is = dump(h, s, "k");
    assert_true(bytes_equal(was, is));
    /* One made by LB.CREATE keeps its options, and takes no other layout. */
    harness_run(h, s, "LB.CREATE kept FIELD a 20 FIELD b 9 ASC TIME 24 M CAP 2");
    expect_restore(h, s, "kept", "0", payload, "REPLACE", "+OK\r\n");
    harness_expect(h, s, "ZRANGE kept 0 -1 REV", "*2\r\n$3\r\nkim\r\n$3\r\nann\r\n");
    harness_run(h, s, "LB.CREATE other FIELD a 20");
    harness_expect_prefix(h, s, "LB.INFO other", "*");
    expect_restore(h, s, "other", "0", payload, "REPLACE",
                   "-ERR payload is of a board with another layout than LB.CREATE gave this "
                   "one: DEL it first\r\n");
    drop(was);
    drop(is);
}

RESTORE_TEST(an_empty_board_of_the_module_stays_if_it_was_created) {
    harness_run(h, s, "LB.CREATE k FIELD a 64 SIGNED");
    struct bytes payload = make_module_dump(h, "k");
    expect_restore(h, s, "again", "0", payload, "", "+OK\r\n");
    harness_expect(h, s, "EXISTS again", ":1\r\n");
    harness_run(h, s, "ZADD again -9223372036854775808 ann");
    harness_expect(h, s, "ZSCORE again ann", "$20\r\n-9223372036854775808\r\n");
}

RESTORE_TEST(a_board_of_another_format_is_named) {
    harness_run(h, s, "ZADD k 7 ann");
    struct bytes payload = dump(h, s, "k");
    struct buffer other = begin();
    buffer_append(&other, payload.at, payload.size - 10);
    expect_restore(
        h, s, "x", "0", finish(&other, 'B' << 8 | 2), "",
        "-ERR Bad data format: a board in format 2, and this version reads format 1\r\n");
    other = begin();
    buffer_append(&other, payload.at, payload.size - 10);
    expect_restore(h, s, "x", "0", finish(&other, 'L' << 8 | 6), "",
                   "-ERR Bad data format: a board in format 6 of a version before 1.0, and this "
                   "version reads format 1\r\n");
    drop(payload);
    harness_expect(h, s, "EXISTS x", ":0\r\n");
}

RESTORE_TEST(a_damaged_board_of_the_module_is_refused) {
    harness_run(h, s, "ZADD k 7 ann 5 bob 3 kim");
    struct bytes payload = make_module_dump(h, "k");
    struct buffer damaged = begin();
    buffer_append(&damaged, payload.at, payload.size - 11); /* no end */
    expect_restore(h, s, "x", "0", finish(&damaged, 10), "", BAD_FORMAT);
    damaged = begin();
    make_byte(&damaged, 7);
    make_value_head(&damaged, FILE_FORMAT + 1, 0, 0);
    expect_restore(h, s, "x", "0", finish(&damaged, 10), "",
                   "-ERR Bad data format: a board of another format: a later version wrote it, "
                   "or one before 1.0\r\n");
    harness_expect(h, s, "EXISTS x", ":0\r\n");
}

/* Each allocation of a RESTORE made to fail: it is done, or nothing is. */
RESTORE_TEST(every_allocation_may_fail) {
    struct bytes payload = make_zset();
    harness_run(h, s, "HSET h a 1 b 2");
    struct bytes payloads[] = {payload, dump(h, s, "h"), {.at = NULL}, {.at = NULL}};
    harness_run(h, s, "LB.CREATE old FIELD score 33 TAG country 8");
    harness_run(h, s, "LB.ADD old TAG country DE 1 ann 2 bob");
    payloads[2] = dump(h, s, "old");
    payloads[3] = make_module_dump(h, "old");
    for (int i = 0; i < 4; i++) {
        bool is_done = false;
        for (uint64_t nth = 1; !is_done; nth++) {
            harness_run(h, s, "DEL k");
            harness_run(h, s, "ZADD k 1 untouched");
            memory_fail_at(nth);
            const char *reply = execute(h, s, payloads[i]);
            memory_fail_at(0);
            is_done = strcmp(reply, "+OK\r\n") == 0;
            if (!is_done) {
                assert_string_equal(reply, "-OOM out of memory\r\n");
                harness_expect(h, s, "ZRANGE k 0 -1", "*1\r\n$9\r\nuntouched\r\n");
            }
            assert_true(nth < 1000);
        }
    }
    drop(payloads[1]);
    drop(payloads[2]);
}

/* Random boards and hashes: what comes back has the same DUMP. */
RESTORE_TEST(random_keys_come_back) {
    struct random random = random_begin("random_keys_come_back");
    for (int round = 0; round < 60; round++) {
        bool is_hash = round % 3 == 0;
        harness_run(h, s, "DEL k");
        for (uint64_t left = 1 + random_below(&random, 700); left > 0; left--) {
            harness_run_format(h, s, is_hash ? "HSET k %d m%d" : "ZADD k %d m%d",
                               (int)random_below(&random, 50), (int)random_below(&random, 900));
            h->wall_us += (int64_t)random_below(&random, 3) * 400000;
        }
        struct bytes payload = dump(h, s, "k");
        expect_restore(h, s, "copy", "0", payload, "REPLACE", "+OK\r\n");
        harness_run(h, s, "RENAME copy k");
        struct bytes again = dump(h, s, "k");
        assert_true(bytes_equal(again, payload));
        drop(payload);
        drop(again);
    }
}
