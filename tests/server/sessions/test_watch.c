/* WATCH and UNWATCH by bytes in and bytes out, and watch.h by itself: against a list of pairs, and
 * with every allocation failing in turn. Random transactions, beside Redis:
 * tests/integration/transactions.c. */
#include <time.h>

#include "codec/memory.h"
#include "server/commands/table.h"
#include "server/sessions/tracking.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"
#include "tests/support/stored_text.h"
#include "tests/support/twin_requests.h"

#define OK   "+OK\r\n"
#define DONE "*1\r\n+PONG\r\n"
#define NIL  "*-1\r\n"

static const char *exec_ping(struct harness *h, struct session *s) {
    harness_expect(h, s, "MULTI", OK);
    harness_expect(h, s, "PING", "+QUEUED\r\n");
    return harness_run(h, s, "EXEC");
}

#define expect_exec(h, s, expected) assert_string_equal(exec_ping((h), (s)), (expected))

/* ---- which commands change a key ---- */

/* Lines parted by ';'. */
static void run_lines(struct harness *h, struct session *s, const char *lines) {
    while (*lines != '\0') {
        char line[256];
        size_t size = strcspn(lines, ";");
        assert_true(size < sizeof line);
        memcpy(line, lines, size);
        line[size] = '\0';
        harness_run(h, s, line);
        lines += size + (lines[size] == ';');
    }
}

static const struct change {
    const char *before, *line;
    bool is_change;
} changes[] = {
    {"", "ZADD k 1 a", true},
    {"ZADD k 1 a", "ZADD k 1 b", true},
    {"ZADD k 1 a", "ZADD k 2 a", true},
    {"ZADD k 1 a", "ZADD k 1 a", false},
    {"ZADD k 1 a", "ZADD k NX 2 a", false},
    {"ZADD k 1 a", "ZADD k XX 2 b", false},
    {"ZADD k 1 a", "ZADD k GT 1 a", false},
    {"ZADD k 1 a", "ZADD k GT 1 a 2 a", true},
    {"ZADD k 1 a", "ZADD k LT 1 a", false},
    {"ZADD k 1 a", "ZADD k INCR 0 a", false},
    {"ZADD k 1 a", "ZADD k NX INCR 1 a", false},
    {"ZADD k 1 a", "ZADD k INCR 1 a", true},
    {"ZADD k 1 a", "ZADD k x a", false},
    {"ZADD k 1 a", "ZADD k 2 a x b", false},
    {"", "ZADD k XX 1 a", false},
    {"", "ZADD k x a", false},
    {"", "ZADD k 1 a x b", false},
    {"", "ZADD j 1 a", false},
    {"", "RESTORE k 0 \"\\x04\\x01\\x01a\\x011\\t\\x00~\\xc4\\x0c\\xa4n\\xfe\\xbe\\xa1\"", true},
    {"ZADD k 1 a", "RESTORE k 0 \"\\x04\\x01\\x01a\\x011\\t\\x00~\\xc4\\x0c\\xa4n\\xfe\\xbe\\xa1\"",
     false},
    {"ZADD k 1 a",
     "RESTORE k 0 \"\\x04\\x01\\x01a\\x011\\t\\x00~\\xc4\\x0c\\xa4n\\xfe\\xbe\\xa1\" REPLACE",
     true},
    {"", "RESTORE k 0 damaged", false},
    {"ZADD k 1 a", "ZINCRBY k 0 a", false},
    {"ZADD k 1 a", "ZINCRBY k 1 a", true},
    {"", "ZINCRBY k 0 a", true},
    {"", "ZINCRBY k 1e300 a", false},
    {"ZADD k 1 a 2 b", "ZREM k a", true},
    {"ZADD k 1 a", "ZREM k a", true},
    {"ZADD k 1 a", "ZREM k b", false},
    {"", "ZREM k a", false},
    {"ZADD k 1 a 2 b", "ZREMRANGEBYRANK k 0 0", true},
    {"ZADD k 1 a", "ZREMRANGEBYRANK k 0 0", true},
    {"ZADD k 1 a", "ZREMRANGEBYRANK k 5 6", false},
    {"ZADD k 1 a", "ZREMRANGEBYSCORE k 1 1", true},
    {"ZADD k 1 a", "ZREMRANGEBYSCORE k 2 3", false},
    {"ZADD k 1 a", "ZREMRANGEBYSCORE k x 3", false},
    {"ZADD k 1 a", "ZREMRANGEBYLEX k - +", false},
    {"ZADD k 1 a 2 b", "ZPOPMIN k", true},
    {"ZADD k 1 a 2 b", "ZPOPMAX k 5", true},
    {"ZADD k 1 a", "ZPOPMIN k 0", false},
    {"", "ZPOPMIN k", false},
    {"ZADD k 1 a", "ZMPOP 2 j k MIN", true},
    {"ZADD k 1 a", "BZMPOP 1 2 j k MIN", true},
    {"ZADD k 1 a", "BZMOVE k j MIN 1", true},
    {"ZADD k 1 a", "ZMOVE k j MAX", true},
    {"ZADD k 1 a", "ZMOVEMEMBER k j MEMBERS 1 a", true},
    {"ZADD k 1 a", "BZPOPMIN j k 1", true},
    {"ZADD k 1 a", "BZPOPMAX k j 1", true},
    {"ZADD k 1 a;ZADD j 1 a", "BZPOPMAX j k 1", false},
    {"ZADD k 1 a;ZADD j 1 a", "ZMPOP 2 j k MIN", false},
    {"ZADD j 1 a", "ZUNIONSTORE k 1 j", true},
    {"ZADD k 1 a", "ZUNIONSTORE k 1 k", true},
    {"ZADD k 1 a", "ZUNIONSTORE j 1 k", false},
    {"ZADD k 1 a", "ZUNIONSTORE k 1 k WEIGHTS 0.00000001", false},
    {"ZADD k 1 a", "ZINTERSTORE k 1 j", true},
    {"", "ZDIFFSTORE k 1 j", false},
    {"ZADD j 1 a", "ZRANGESTORE k j 0 -1", true},
    {"ZADD k 1 a", "ZRANGESTORE k j 0 -1", true},
    {"", "ZRANGESTORE k j 0 -1", false},
    {"ZADD k 1 a", "ZUNION 1 k", false},
    {"", "LB.ADD k 1 a", true},
    {"", "LB.ADD k XX 1 a", false},
    {"", "LB.ADD k x a", false},
    {"", "LB.ADD k 1 a x b", false},
    {"ZADD k 1 a", "LB.ADD k 1 a", false},
    {"ZADD k 1 a", "LB.ADD k 1 a 1 b", true},
    {"ZADD k 1 a", "LB.ADD k INCR 0 a", false},
    {"ZADD k 1 a", "LB.ADD k INCR 1 a", true},
    {"ZADD k 1 a", "LB.ADD k BEST 0 a", false},
    {"ZADD k 1 a", "LB.ADD k NX 2 a 3 a", false},
    {"ZADD k 1 a", "LB.ADD k TOUCH 1 a", true},
    {"LB.CREATE k FIELD s 9 TAG t 1;ZADD k 1 a", "LB.ADD k TAG t x 1 a", true},
    {"LB.CREATE k FIELD s 9 TAG t 1;ZADD k 1 a", "LB.ADD k TAG t \"\" 1 a", false},
    {"LB.CREATE k FIELD s 9 TAG t 1;ZADD k 1 a", "LB.ADD k TAG u x 2 a", false},
    {"LB.CREATE k FIELD s 9 TAG t 1;ZADD k 1 a", "LB.SUBMIT 1 k TAG t x 1 a", true},
    {"LB.CREATE k FIELD s 9 TAG t 1;ZADD k 1 a", "LB.TAG k a t x", true},
    {"LB.CREATE k FIELD s 9 TAG t 1;ZADD k 1 a", "LB.TAG k a t \"\"", false},
    {"LB.CREATE k FIELD s 9 TAG t 1;ZADD k 1 a", "LB.TAG k a t x IF t y", false},
    {"LB.CREATE k FIELD s 9 TAG t 1;ZADD k 1 a", "LB.TAG k b t x", false},
    {"", "LB.CREATE k", true},
    {"", "LB.CREATE k CAP 0", false},
    {"ZADD k 1 a", "LB.CREATE k", false},
    {"LB.CREATE k CAP 1", "ZADD k 1 a", true},
    {"LB.CREATE k CAP 1", "ZADD k XX 1 a", false},
    {"LB.CREATE k KEEP BEST", "ZREM k a", false},
    {"LB.CREATE k PERIOD DAY", "LB.CREATE k PERIOD DAY", false},
    {"ZADD k 1 a", "LB.ROLL k j", true},
    {"ZADD j 1 a", "LB.ROLL j k", true},
    {"ZADD j 1 a", "LB.ROLL k j", false},
    {"ZADD k 1 a", "LB.ROLL k j EX 0", false},
    {"LB.CREATE k", "LB.ROLL k j", true},
    {"ZADD j 1 a;LB.ROLL j k", "LB.SETTLE k", true},
    {"ZADD k 1 a", "LB.SETTLE k", false},
    {"", "LB.SUBMIT 2 j k 5 a", true},
    {"ZADD k 5 a", "LB.SUBMIT 2 j k 5 a", false},
    {"ZADD j 1 a", "LB.FORGET b", false},
    {"ZADD j 1 a", "LB.MOVE b c", false},
    {"ZADD j 1 a", "LB.BAN b", false},
    {"", "LB.UNBAN b", false},
    {"ZADD k 1 b", "LB.REVOKE b", false},
    {"LB.CREATE k TICKETS YES", "LB.TICKET k a", false},
    {"LB.CREATE k RATING ELO", "LB.MATCH k TEAM 1 a TEAM 1 b", true},
    {"LB.CREATE k RATING ELO MINGAMES 5", "LB.MATCH k TEAM 1 a TEAM 1 b", true},
    {"LB.CREATE k RATING ELO;LB.MATCH k ONCE m TEAM 1 a TEAM 1 b",
     "LB.MATCH k ONCE m TEAM 1 a TEAM 1 b", false},
    {"LB.CREATE k RATING ELO", "LB.MATCH k TEAM 1 a TEAM 1 a", false},
    {"ZADD k 1 a", "LB.MATCH k TEAM 1 a TEAM 1 b", false},
    {"LB.CREATE k RATING ELO", "LB.RATE k a 1600", true},
    {"LB.CREATE k RATING ELO;LB.RATE k a 1600", "ZREM k a", true},
    /* The id is used once, and the rows are run several times: LB.REFUND shows what LB.UNMATCH does, too. */
    {"LB.CREATE k RATING ELO KEEP-MATCHES 9;LB.MATCH k ONCE u TEAM 1 a TEAM 1 b;LB.UNMATCH k u",
     "LB.UNMATCH k u", false},
    {"LB.UNBAN a;LB.CREATE k RATING ELO KEEP-MATCHES 9;LB.MATCH k TEAM 1 a TEAM 1 b;LB.BAN a",
     "LB.REFUND k a SINCE 0", true},
    {"LB.UNBAN a;LB.CREATE k RATING ELO KEEP-MATCHES 9;LB.MATCH k TEAM 1 a TEAM 1 b;LB.BAN b",
     "LB.REFUND k b SINCE 5000000000000", false},
    {"LB.CREATE k HOLD ALL OVER 5;LB.ADD k 9 a", "LB.APPROVE k a", true},
    {"LB.CREATE k HOLD ALL OVER 5;LB.ADD k 9 a", "LB.APPROVE k b", false},
    {"LB.CREATE k HOLD ALL OVER 5;LB.ADD k 9 a", "LB.REJECT k a 1", true},
    {"LB.CREATE k HOLD ALL OVER 5;LB.ADD k 9 a", "LB.REJECT k a 2", false},
    {"LB.CREATE k HOLD ALL OVER 5", "LB.ADD k 9 a", false},
    {"LB.CREATE k RATING ELO MINGAMES 5;LB.RATE k a 1600", "ZREM k a", true},
    {"LB.CREATE k RATING ELO", "LB.RATE k a 1600 50", false},
    {"ZADD k 1 a", "LB.ALTER k CAP 3", true},
    {"ZADD k 1 a", "LB.ALTER k PERIOD DAY", true},
    {"ZADD k 1 a", "LB.ALTER k CAP NONE", false},
    {"ZADD j 1 a", "LB.ALTER j CAP 3", false},
    {"LB.CREATE j", "LB.ROLL j k", false},
    {"ZADD k 1 a", "LB.GET k 1 a", false},
    {"", "HSET k f 1", true},
    {"HSET k f 1", "HSET k f 1", true},
    {"HSET k f 1", "HSET k f", false},
    {"ZADD k 1 a", "HSET k f 1", false},
    {"HSET k f 1", "ZADD k 1 a", false},
    {"HSET j f 1", "ZUNIONSTORE k 1 j", false},
    {"HSET k f 1", "ZUNIONSTORE k 1 j", true},
    {"", "HMSET k f 1 g 2", true},
    {"HSET k f 1", "HSETNX k g 1", true},
    {"HSET k f 1", "HSETNX k f 2", false},
    {"HSET k f 1 g 2", "HDEL k f", true},
    {"HSET k f 1", "HDEL k f", true},
    {"HSET k f 1", "HDEL k g", false},
    {"", "HINCRBY k f 1", true},
    {"HSET k f x", "HINCRBY k f 1", false},
    {"", "HINCRBYFLOAT k f 1", true},
    {"HSET k f x", "HINCRBYFLOAT k f 1", false},
    {"HSET k f 1", "HGETALL k", false},
    {"HSET k f 1", "DEL k", true},
    {"HSET k f 1", "RENAME k j", true},
    {"HSET j f 1", "COPY j k", true},
    {"HSET k f 1", "EXPIRE k 100", true},
    {"ZADD k 1 a", "DEL k", true},
    {"ZADD k 1 a", "DEL j k", true},
    {"ZADD k 1 a", "UNLINK k", true},
    {"", "DEL k", false},
    {"ZADD k 1 a", "RENAME k j", true},
    {"ZADD j 1 a", "RENAME j k", true},
    {"ZADD k 1 a;ZADD j 1 a", "RENAME j k", true},
    {"ZADD k 1 a", "RENAME k k", false},
    {"", "RENAME k j", false},
    {"ZADD j 1 a", "RENAMENX j k", true},
    {"ZADD k 1 a;ZADD j 1 a", "RENAMENX j k", false},
    {"ZADD k 1 a", "COPY k j", false},
    {"ZADD j 1 a", "COPY j k", true},
    {"ZADD k 1 a;ZADD j 1 a", "COPY j k", false},
    {"ZADD k 1 a;ZADD j 1 a", "COPY j k REPLACE", true},
    {"ZADD j 1 a", "COPY j k DB 1", false},
    {"", "COPY j k", false},
    {"ZADD k 1 a", "EXPIRE k 100", true},
    {"ZADD k 1 a", "EXPIRE k -1", true},
    {"ZADD k 1 a", "PEXPIRE k 5000", true},
    {"ZADD k 1 a", "EXPIREAT k 9999999999", true},
    {"ZADD k 1 a", "PEXPIREAT k 1", true},
    {"ZADD k 1 a", "EXPIRE k 100 XX", false},
    {"ZADD k 1 a;EXPIRE k 50", "EXPIRE k 100 LT", false},
    {"", "EXPIRE k 100", false},
    {"ZADD k 1 a;EXPIRE k 50", "PERSIST k", true},
    {"ZADD k 1 a", "PERSIST k", false},
    {"ZADD k 1 a", "FLUSHDB", true},
    {"ZADD k 1 a", "FLUSHALL", true},
    {"ZADD k 1 a", "FLUSHDB nonsense", false},
    {"", "FLUSHDB", false},
    {"ZADD j 1 a", "FLUSHALL", false},
    {"ZADD k 1 a", "ZRANGE k 0 -1", false},
    {"ZADD k 1 a", "TOUCH k", false},
    {"ZADD k 1 a", "CONFIG RESETSTAT", false},
};

/* Who has read k and tracks is told of it, in whatever database it is, or, where one was flushed, of all keys. */
static void expect_told(struct harness *h, struct session *tracker, const struct change *change) {
    (void)tracking_step(&h->server);
    const char *output = harness_output(tracker);
    bool is_flush = strncmp(change->line, "FLUSH", 5) == 0;
    bool is_told = change->is_change || strstr(change->line, " k DB 1") != NULL;
    if (!is_flush || is_told) {
        assert_int_equal(output[0] != '\0', is_told);
        assert_int_equal(strstr(output, is_flush ? "_\r\n" : "*1\r\n$1\r\nk\r\n") != NULL, is_told);
    }
}

/* By another client, by the same one, and inside another client's transaction. */
SERVER_TEST(a_write_touches_the_key_that_it_changes_and_no_other) {
    struct session *other = harness_connect(h);
    struct session *tracker = harness_connect(h);
    harness_run(h, tracker, "HELLO 3");
    harness_run(h, tracker, "CLIENT TRACKING ON");
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const struct change *change = &changes[i];
        print_message("%s; %s\n", change->before, change->line);
        for (int way = 0; way < 3; way++) {
            harness_run(h, other, "FLUSHALL");
            run_lines(h, other, change->before);
            (void)tracking_step(&h->server);
            (void)harness_output(tracker);
            harness_run(h, tracker, "EXISTS k untouched");
            harness_expect(h, s, "WATCH untouched k", OK);
            if (way == 2) {
                harness_run(h, other, "MULTI");
            }
            harness_run(h, way == 1 ? s : other, change->line);
            if (way == 2) {
                harness_run(h, other, "EXEC");
            }
            ASSERT_VALID(watch_validate, &h->server.watches);
            expect_told(h, tracker, change);
            assert_int_equal(s->watches.is_stale, change->is_change);
            assert_int_equal(watch_count(&s->watches), change->is_change ? 0 : 2);
            expect_exec(h, s, change->is_change ? NIL : DONE);
        }
    }
}

/* A new command that writes needs a line above. */
TEST(every_command_that_writes_is_among_them) {
    execute_init(command_table);
    for (const struct command_row *row = command_table; row->command != NULL; row++) {
        bool is_there = (row->command->flags & COMMAND_WRITE) == 0;
        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
            struct bytes name = {.at = changes[i].line, .size = strcspn(changes[i].line, " ")};
            is_there |= bytes_is(name, row->command->name);
        }
        if (!is_there) {
            fail_msg("changes[] does not say when %s changes a key", row->command->name);
        }
    }
}

/* ---- nothing changes in silence ---- */

enum { KEYS_MAX = 512, KEY_NAME_MAX = 64 };

/* A key's content when last checked, and whether a change was reported since. */
struct seen_key {
    uint32_t database;
    char name[KEY_NAME_MAX];
    uint64_t content; /* 0: there is no such key */
    uint64_t content_now;
    bool is_told;
};

struct census {
    struct registry *registry;
    struct seen_key keys[KEYS_MAX];
    uint32_t count;
    uint64_t changes, told;
};

static struct seen_key *seen_key_of(struct census *census, uint32_t database, struct bytes name) {
    for (uint32_t i = 0; i < census->count; i++) {
        struct seen_key *seen = &census->keys[i];
        if (seen->database == database && bytes_equal(bytes_from_text(seen->name), name)) {
            return seen;
        }
    }
    CHECK(census->count < KEYS_MAX && name.size < KEY_NAME_MAX);
    struct seen_key *seen = &census->keys[census->count++];
    *seen = (struct seen_key){.database = database};
    memcpy(seen->name, name.at, name.size);
    return seen;
}

static void note_told(void *context, uint32_t database, struct bytes name) {
    struct census *census = context;
    census->told++;
    if (name.at != NULL) {
        seen_key_of(census, database, name)->is_told = true;
        return;
    }
    for (uint32_t i = 0; i < census->count; i++) {
        census->keys[i].is_told |= census->keys[i].database == database;
    }
}

static uint64_t mix(uint64_t sum, const void *at, size_t size) {
    for (size_t i = 0; i < size; i++) {
        sum = (sum ^ ((const unsigned char *)at)[i]) * 0x100000001b3U; /* FNV-1a */
    }
    return sum;
}

static void look_at(void *context, const struct registry_key *key) {
    struct census *census = context;
    uint64_t sum = 1;
    struct board_cursor cursor;
    struct board_stored entry;
    for (board_cursor_seek(&key->board, 0, &cursor); board_cursor_read(&cursor, &entry);
         board_cursor_next(&cursor)) {
        sum = mix(sum, &entry.key, sizeof entry.key);
        struct bytes member = stored_text(entry.member);
        sum = mix(sum, member.at, member.size);
    }
    for (uint32_t i = 0; i < registry_note_count(key); i++) {
        struct hash_pair note;
        hash_at(registry_note_hash(key), i, &note);
        sum = mix(sum, note.field.at, note.field.size);
        sum = mix(sum, note.value.at, note.value.size);
    }
    int64_t expire_at_ms = registry_expiry(census->registry, key);
    sum = mix(sum, &expire_at_ms, sizeof expire_at_ms);
    seen_key_of(census, key->database, registry_name(key))->content_now = sum | 1;
}

/* Every key whose content has changed must have been reported. */
static void compare_census(struct census *census, const char *command) {
    for (uint32_t database = 0; database < REGISTRY_DATABASES; database++) {
        registry_walk_each(census->registry, database, INT64_MIN + 1, look_at, census);
    }
    for (uint32_t i = 0; i < census->count; i++) {
        struct seen_key *seen = &census->keys[i];
        bool is_changed = seen->content != seen->content_now;
        if (is_changed && !seen->is_told) {
            fail_msg("%s changed %s of database %u, and nobody was told", command, seen->name,
                     seen->database);
        }
        census->changes += is_changed;
        seen->content = seen->content_now;
        seen->content_now = 0;
        seen->is_told = false;
    }
}

TEST(whatever_changes_a_key_is_told) {
    static struct census census;
    static struct twin_requests requests;
    struct random random = random_begin(__func__);
    struct harness *h = harness_create(NULL);
    struct session *s = harness_connect(h);
    census = (struct census){.registry = h->server.registry};
    twin_requests_begin(&requests, &random);
    registry_set_listener(h->server.registry, note_told, &census);
    int steps = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 3000 : 15000;
    for (int step = 0; step < steps; step++) {
        h->wall_us += (int64_t)random_below(&random, 20000);
        if (random_below(&random, 50) == 0) {
            harness_run_format(h, s, "SELECT %d",
                               (int)random_below(&random, TWIN_REQUESTS_DATABASES));
        }
        twin_requests_make(&requests);
        harness_run_args(h, s, requests.args, requests.arg_count);
        compare_census(&census, requests.args[0].at);
        if (random_below(&random, 20) == 0) {
            registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 1);
            compare_census(&census, "expiry");
        }
    }
    printf("%llu changes, told %llu times\n", (unsigned long long)census.changes,
           (unsigned long long)census.told);
    assert_true(census.changes > (uint64_t)steps / 10);
    harness_destroy(h);
}

/* ---- the options ---- */

SERVER_TEST(nil_is_a_resp3_null) {
    struct session *other = harness_connect(h);
    s->protocol = 3;
    harness_expect(h, s, "WATCH k", OK);
    harness_run(h, other, "ZADD k 1 a");
    expect_exec(h, s, "_\r\n");
}

SERVER_TEST(watches_add_up_and_all_of_them_count) {
    struct session *other = harness_connect(h);
    harness_expect(h, s, "WATCH a", OK);
    harness_expect(h, s, "WATCH b c b", OK);
    assert_int_equal(watch_count(&s->watches), 3);
    harness_run(h, other, "ZADD c 1 x");
    /* The list is stale already, so further keys are not watched. */
    harness_expect(h, s, "WATCH d", OK);
    assert_int_equal(watch_count(&s->watches), 0);
    expect_exec(h, s, NIL);
}

SERVER_TEST(the_same_name_in_another_database_is_another_key) {
    struct session *other = harness_connect(h);
    harness_expect(h, s, "WATCH k", OK);
    harness_run(h, s, "SELECT 1");
    harness_run(h, other, "SELECT 1");
    harness_run(h, other, "ZADD k 1 a");
    harness_run(h, other, "FLUSHDB");
    expect_exec(h, s, DONE);
    harness_expect(h, s, "WATCH k", OK);
    harness_run(h, s, "SELECT 0");
    harness_run(h, other, "ZADD k 1 a");
    expect_exec(h, s, NIL);
}

SERVER_TEST(unwatch_discard_reset_and_exec_forget_watches_and_what_befell_them) {
    struct session *other = harness_connect(h);
    static const char *const lines[] = {"UNWATCH",    "MULTI;DISCARD",  "RESET",
                                        "MULTI;EXEC", "MULTI;FOO;EXEC", "EXEC x"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        for (int is_before = 0; is_before < 2; is_before++) {
            harness_run(h, other, "FLUSHALL");
            harness_expect(h, s, "WATCH k", OK);
            if (is_before) {
                harness_run(h, other, "ZADD k 1 a");
            }
            run_lines(h, s, lines[i]);
            assert_int_equal(h->server.watches.client_count, 0);
            assert_int_equal(watch_key_count(&h->server.watches), 0);
            harness_run(h, other, "ZADD k 2 a");
            expect_exec(h, s, DONE);
        }
    }
}

SERVER_TEST(a_refused_command_weighs_more_than_a_changed_key) {
    struct session *other = harness_connect(h);
    harness_expect(h, s, "WATCH k", OK);
    harness_expect(h, s, "MULTI", OK);
    harness_run(h, other, "ZADD k 1 a");
    harness_run(h, s, "FOO");
    harness_expect(h, s, "EXEC",
                   "-EXECABORT Transaction discarded because of previous errors.\r\n");
}

/* ---- expiry ---- */

SERVER_TEST(a_key_that_expires_meanwhile_has_changed) {
    struct session *other = harness_connect(h);
    /* Not accessed; accessed; removed by the loop; flushed. */
    static const char *const meanwhile[] = {"PING", "EXISTS k", NULL, "FLUSHALL", "ZADD k 1 a"};
    for (size_t i = 0; i < sizeof meanwhile / sizeof meanwhile[0]; i++) {
        harness_run(h, other, "FLUSHALL");
        harness_run(h, other, "ZADD k 1 a");
        harness_run(h, other, "PEXPIRE k 10");
        harness_expect(h, s, "WATCH j k l", OK);
        h->wall_us += 10000;
        if (meanwhile[i] != NULL) {
            harness_run(h, other, meanwhile[i]);
        } else {
            server_update_time(&h->server);
            assert_int_equal(
                registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 9), 1);
        }
        expect_exec(h, s, NIL);
    }
}

SERVER_TEST(a_key_that_had_expired_before_has_not_changed) {
    struct session *other = harness_connect(h);
    static const char *const meanwhile[] = {"PING", "EXISTS k", "FLUSHALL"};
    for (size_t i = 0; i < sizeof meanwhile / sizeof meanwhile[0]; i++) {
        harness_run(h, other, "ZADD k 1 a");
        harness_run(h, other, "PEXPIRE k 10");
        h->wall_us += 10000;
        harness_expect(h, s, "WATCH k", OK);
        harness_run(h, other, meanwhile[i]);
        expect_exec(h, s, DONE);
    }
    harness_run(h, other, "ZADD k 1 a");
    harness_run(h, other, "PEXPIRE k 10");
    h->wall_us += 10000;
    harness_expect(h, s, "WATCH k", OK);
    harness_run(h, other, "ZADD k 1 b");
    expect_exec(h, s, NIL);
}

/* ---- flushing ---- */

/* With a look-up per key this took 0.9 s. */
SERVER_TEST(a_flush_takes_no_step_for_each_watched_key) {
    struct session *other = harness_connect(h);
    enum { KEYS = 300000 };
    for (int i = 0; i < KEYS; i++) {
        char name[16];
        int size = snprintf(name, sizeof name, "%d", i);
        const struct bytes key = {.at = name, .size = (size_t)size};
        const struct bytes zadd[] = {BYTES("ZADD"), key, BYTES("1"), BYTES("m")};
        const struct bytes watch[] = {BYTES("WATCH"), key};
        assert_string_equal(harness_run_args(h, other, zadd, 4), ":1\r\n");
        assert_string_equal(harness_run_args(h, s, watch, 2), OK);
    }
    clock_t begin = clock();
    harness_expect(h, other, "FLUSHALL", OK);
    assert_true(clock() - begin < CLOCKS_PER_SEC / 20);
    expect_exec(h, s, NIL);
}

/* ---- watch.h by itself ---- */

enum { LISTS = 40, NAMES = 300 }; /* enough for some lists to detach their watches */

struct model {
    struct watches watches;
    struct watch_list lists[LISTS];
    bool are_watched[LISTS][NAMES];
    bool are_held[LISTS][3]; /* by database: a key that existed is watched */
    bool are_stale[LISTS];
};

static struct bytes name_of(uint64_t number) {
    static char text[32];
    int size = snprintf(text, sizeof text, "name:%d", (int)number);
    return (struct bytes){.at = text, .size = (size_t)size};
}

static void compare(struct model *model) {
    ASSERT_VALID(watch_validate, &model->watches);
    while (watch_free_step(&model->watches, 50)) {}
    uint32_t clients = 0;
    uint32_t keys = 0;
    for (int i = 0; i < LISTS; i++) {
        uint32_t count = 0;
        for (int name = 0; name < NAMES; name++) {
            count += model->are_watched[i][name];
        }
        clients += count > 0;
        assert_int_equal(watch_count(&model->lists[i]), count);
        assert_int_equal(model->lists[i].is_stale, model->are_stale[i]);
        assert_int_equal(model->lists[i].keys.memory_size > 0, count > 0);
    }
    for (int name = 0; name < NAMES; name++) {
        bool is_watched = false;
        for (int i = 0; i < LISTS; i++) {
            is_watched |= model->are_watched[i][name];
        }
        keys += is_watched;
    }
    assert_int_equal(model->watches.client_count, clients);
    assert_int_equal(watch_key_count(&model->watches), keys);
    ASSERT_VALID(watch_validate, &model->watches);
}

static void model_forget(struct model *model, uint64_t list, bool is_stale) {
    model->are_stale[list] = is_stale;
    memset(model->are_watched[list], 0, sizeof model->are_watched[list]);
    memset(model->are_held[list], 0, sizeof model->are_held[list]);
}

static void model_touch(struct model *model, uint64_t name) {
    watch_touch(&model->watches, (uint32_t)name % 3, name_of(name));
    for (uint64_t i = 0; i < LISTS; i++) {
        if (model->are_watched[i][name]) {
            model_forget(model, i, true);
        }
    }
}

static void model_touch_all(struct model *model, uint64_t database) {
    watch_touch_all(&model->watches, (uint32_t)database);
    for (uint64_t i = 0; i < LISTS; i++) {
        if (model->are_held[i][database]) {
            model_forget(model, i, true);
        }
    }
}

/* Few names exist. */
static void model_add(struct model *model, uint64_t list, uint64_t name) {
    bool is_held = name % 61 == 0;
    assert_true(watch_add(&model->watches, &model->lists[list], (uint32_t)name % 3, name_of(name),
                          is_held));
    model->are_watched[list][name] = true;
    model->are_held[list][name % 3] |= is_held;
}

/* A WATCH of several names that runs out of memory after some of them. */
static void model_add_and_cut(struct model *model, uint64_t list, uint64_t name) {
    struct watch_mark mark = watch_mark(&model->lists[list]);
    assert_true(
        watch_add(&model->watches, &model->lists[list], (uint32_t)name % 3, name_of(name), true));
    watch_cut(&model->watches, &model->lists[list], mark);
}

TEST(random_watches_and_changes_are_as_a_plain_list_has_them) {
    struct random random = random_begin(__func__);
    struct model *model = memory_allocate_zeroed(sizeof *model);
    assert_non_null(model);
    model->watches.keys.hash_seed = random_next(&random);
    for (int step = 0; step < 50000; step++) {
        uint64_t list = random_below(&random, LISTS);
        uint64_t name = random_below(&random, NAMES);
        uint64_t kind = random_below(&random, 100);
        if (kind == 0) {
            model_touch(model, name);
        } else if (kind == 1) {
            (void)watch_free_step(&model->watches, (uint32_t)random_below(&random, 100));
        } else if (kind == 2 || model->are_stale[list]) {
            watch_clear(&model->watches, &model->lists[list]);
            model_forget(model, list, false);
        } else if (kind == 3 && step % 8 == 0) {
            model_touch_all(model, name % 3);
        } else if (kind < 10) {
            model_add_and_cut(model, list, name);
        } else {
            model_add(model, list, name);
        }
        if (step % 64 == 0) {
            compare(model);
        }
    }
    for (int i = 0; i < LISTS; i++) {
        watch_clear(&model->watches, &model->lists[i]);
    }
    watch_deinit(&model->watches);
    assert_null(model->watches.keys.topics[SUBSCRIPTION_KEY].links);
    assert_null(model->watches.keys.pairs.links);
    memory_free(model);
}

SERVER_TEST(names_of_any_bytes_and_none_are_watched) {
    struct session *other = harness_connect(h);
    const struct bytes names[] = {BYTES(""), BYTES("\0"), BYTES("\0\0"), BYTES("a\r\nb")};
    struct bytes args[5] = {BYTES("WATCH")};
    memcpy(args + 1, names, sizeof names);
    assert_string_equal(harness_run_args(h, s, args, 5), OK);
    assert_int_equal(watch_count(&s->watches), 4);
    const struct bytes zadd[] = {BYTES("ZADD"), BYTES("\0\0"), BYTES("1"), BYTES("m")};
    assert_string_equal(harness_run_args(h, other, zadd, 4), ":1\r\n");
    expect_exec(h, s, NIL);
}

/* Each allocation of a WATCH fails in turn; no further key may then be watched. */
SERVER_TEST(a_watch_without_memory_changes_nothing) {
    struct session *other = harness_connect(h);
    harness_expect(h, other, "WATCH c x", OK);
    for (int watched = 0; watched < 2; watched++) {
        bool is_done = false;
        for (uint64_t nth = 1; !is_done; nth++) {
            assert_true(nth < 100);
            if (watched == 1) {
                harness_expect(h, s, "WATCH a", OK);
            }
            is_done = harness_run_failing(h, s, "WATCH b c a d", nth)[0] == '+';
            assert_int_equal(watch_count(&s->watches), is_done ? 4 : watched);
            assert_int_equal(watch_key_count(&h->server.watches),
                             is_done ? 5 : 2 + (uint32_t)watched);
            ASSERT_VALID(watch_validate, &h->server.watches);
            harness_expect(h, s, "UNWATCH", OK);
        }
    }
    assert_int_equal(watch_count(&other->watches), 2);
}

TEST(many_clients_watch_many_keys) {
    enum { CLIENTS = 200, KEYS = 500 };
    struct watches watches = {.keys.hash_seed = 5};
    struct watch_list *lists = memory_allocate_zeroed(CLIENTS * sizeof *lists);
    assert_non_null(lists);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            for (uint64_t key = 0; key < KEYS; key++) {
                assert_true(watch_add(&watches, &lists[i], 0, name_of(key), false));
            }
        }
        assert_int_equal(watches.keys.pairs.count, CLIENTS * KEYS);
        assert_int_equal(watch_key_count(&watches), KEYS);
    }
    ASSERT_VALID(watch_validate, &watches);
    watch_touch(&watches, 0, name_of(3));
    assert_int_equal(watches.client_count, 0);
    for (int i = 0; i < CLIENTS; i++) {
        assert_true(lists[i].is_stale);
        assert_int_equal(watch_count(&lists[i]), 0);
    }
    /* The detached watches are freed in steps and belong to no client meanwhile. */
    assert_int_equal(watches.keys.pairs.count, CLIENTS * KEYS - 64);
    /* The changed key has left already: no later change meets its watches. */
    assert_int_equal(watch_key_count(&watches), KEYS - 1);
    lists[7].is_stale = false;
    assert_true(watch_add(&watches, &lists[7], 0, name_of(4), false));
    assert_true(watch_free_step(&watches, 1000));
    assert_int_equal(watches.keys.pairs.count, CLIENTS * KEYS - 64 + 1 - 2 - 1000);
    ASSERT_VALID(watch_validate, &watches);
    watch_touch(&watches, 0, name_of(5));
    assert_false(lists[7].is_stale);
    watch_touch(&watches, 0, name_of(4));
    assert_true(lists[7].is_stale);
    while (watch_free_step(&watches, 1000)) {}
    assert_int_equal(watch_key_count(&watches), 0);
    watch_deinit(&watches);
    memory_free(lists);
}

/* Setting and dropping watches in a loop also frees the detached ones. */
TEST(watches_left_behind_do_not_pile_up) {
    enum { KEYS = 1000, ROUNDS = 50 };
    struct watches watches = {.keys.hash_seed = 5};
    struct watch_list list = {0};
    for (int round = 0; round < ROUNDS; round++) {
        for (uint64_t key = 0; key < KEYS; key++) {
            assert_true(watch_add(&watches, &list, 0, name_of(key), false));
        }
        watch_clear(&watches, &list);
        assert_in_range(watches.keys.pairs.count, KEYS - 64, KEYS);
    }
    watch_deinit(&watches);
    assert_int_equal(watch_key_count(&watches), 0);
}
