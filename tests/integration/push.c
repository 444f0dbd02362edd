/* What clients receive without asking, beside redis-server: messages to channels. */
#include "tests/support/test.h"

#include <time.h>

#include "codec/timestamp.h"
#include "tests/support/random.h"
#include "tests/support/stage.h"

/* ---- channels and patterns ---- */

TEST(every_reply_and_error_is_as_redis_has_it) {
    STAGE(stage, 3, NULL);
    STAGE_STEPS(&stage, 0, "SUBSCRIBE a", "ZCARD x", "PING", "PING abc", "PING a b", "ZADD k 1 a",
                "SUBSCRIBE", "EXEC", "config get x", "client list", "HELLO 3", "SUBSCRIBE a a b",
                "PSUBSCRIBE a* a?", "SSUBSCRIBE a", "UNSUBSCRIBE a a nope", "PUNSUBSCRIBE a* nope",
                "SUNSUBSCRIBE nope", "SUNSUBSCRIBE", "SUNSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE",
                "ZCARD k", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE x", "RESET", "ZCARD k");
    STAGE_STEPS(&stage, 0, "MULTI;SUBSCRIBE a;ZCARD k;SSUBSCRIBE a;EXEC", "ZCARD k", "UNSUBSCRIBE",
                "MULTI;PUBLISH a x;UNSUBSCRIBE;PUBSUB NUMPAT;EXEC");
    for (int i = 0; i < 2; i++) {
        stage_step(&stage, 1, "SUBSCRIBE a b b");
        STAGE_STEPS(&stage, 2, "PUBLISH a x", "PUBLISH b \"two words\"", "PUBLISH c x", "PUBLISH a",
                    "PUBLISH", "PUBLISH a b c", "SPUBLISH a x", "SPUBLISH a", "PUBSUB", "PUBSUB X",
                    "PUBSUB CHANNELS x*", "PUBSUB CHANNELS a", "PUBSUB CHANNELS a b",
                    "PUBSUB NUMSUB", "PUBSUB NUMSUB a b c a", "PUBSUB NUMPAT", "PUBSUB NUMPAT x",
                    "PUBSUB SHARDCHANNELS", "PUBSUB SHARDNUMSUB a b", "PUBSUB SHARDNUMSUB");
        STAGE_STEPS(&stage, 1, "PSUBSCRIBE a*", "SSUBSCRIBE a");
        STAGE_STEPS(&stage, 2, "PUBLISH a x", "PUBLISH ab y", "SPUBLISH a z", "PUBSUB NUMPAT",
                    "PUBSUB SHARDCHANNELS", "PUBSUB SHARDNUMSUB a",
                    "MULTI;PUBLISH a 1;SPUBLISH a 2;EXEC", "CLIENT KILL TYPE replica",
                    "CLIENT LIST TYPE replica");
        stage_step(&stage, 1, "RESET");
        stage_step(&stage, 1, i == 0 ? "CLIENT SETNAME x" : "CLIENT GETNAME");
    }
}

TEST(resp3_mixes_pushes_and_replies_as_redis_does) {
    STAGE(stage, 2, NULL);
    /* HELLO names another server. */
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < 2; i++) {
            wire_check_prefix(&stage.wires[side][i], "HELLO 3", "{server ");
        }
    }
    /* Redis 7.0 sends what a client publishes to itself before the reply, and inside that of EXEC; later ones,
     * and this server, behind it (tests/server/loop/test_push.c). */
    stage_step(&stage, 0, "SUBSCRIBE a a b");
    stage_step(&stage, 1, "PUBLISH a hi");
    stage_step(&stage, 0, "PSUBSCRIBE a*");
    stage_step(&stage, 1, "PUBLISH a hi");
    STAGE_STEPS(&stage, 0, "MULTI;PUBLISH z x;PING;SUBSCRIBE c;SSUBSCRIBE d;UNSUBSCRIBE b;EXEC",
                "PING x", "SSUBSCRIBE s1");
    stage_step(&stage, 1, "SPUBLISH s1 m");
    STAGE_STEPS(
        &stage, 0, "SUNSUBSCRIBE", "SUNSUBSCRIBE", "SUNSUBSCRIBE q r", "ZADD k 1 a",
        "PUBSUB NUMSUB a b c",
        "CLIENT REPLY OFF;PUBLISH a a;SUBSCRIBE a;PUBLISH a z;UNSUBSCRIBE a;CLIENT REPLY ON",
        "CLIENT REPLY SKIP;SUBSCRIBE q w", "CLIENT REPLY SKIP;PUBLISH q x", "PUNSUBSCRIBE",
        "UNSUBSCRIBE nope");
    stage_step(&stage, 1, "PUBLISH q y;PUBLISH w y");
    STAGE_STEPS(&stage, 0, "RESET", "PING");
}

/* To Redis, * does not match the empty channel; to us it does. */
static const char *const channels[] = {"a", "b", "ab", "abc", "news.1", "news.2", "*"};
static const char *const patterns[] = {"*",    "a*",   "*b", "a?c",   "[ab]", "news.*",
                                       "\"\"", "news", "?",  "\\\\*", "**",   "n*s.[^2]"};
#define PICK(random, list) ((list)[random_below((random), sizeof(list) / sizeof((list)[0]))])

static void random_step(struct stage *stage, struct random *random) {
    char line[256];
    int client = (int)random_below(random, (uint64_t)stage->client_count);
    const char *channel = PICK(random, channels);
    const char *pattern = PICK(random, patterns);
    switch (random_below(random, 20)) {
    case 0:
    case 1:
        snprintf(line, sizeof line, "SUBSCRIBE %s %s", channel, PICK(random, channels));
        break;
    case 2:
    case 3:
        snprintf(line, sizeof line, "PSUBSCRIBE %s", pattern);
        break;
    case 4:
        snprintf(line, sizeof line, "SSUBSCRIBE %s", channel);
        break;
    case 5:
    case 6:
        snprintf(line, sizeof line, "UNSUBSCRIBE %s", random_below(random, 4) > 0 ? channel : "");
        break;
    case 7:
        snprintf(line, sizeof line, "PUNSUBSCRIBE %s", random_below(random, 4) > 0 ? pattern : "");
        break;
    case 8:
        snprintf(line, sizeof line, "SUNSUBSCRIBE %s", random_below(random, 4) > 0 ? channel : "");
        break;
    case 9:
        snprintf(line, sizeof line, "RESET");
        break;
    case 10:
        snprintf(line, sizeof line, "PUBSUB NUMSUB %s %s", channel, PICK(random, channels));
        break;
    case 11:
        snprintf(line, sizeof line, "PUBSUB NUMPAT");
        break;
    case 12:
        snprintf(line, sizeof line, "PUBSUB SHARDNUMSUB %s", channel);
        break;
    case 13:
        snprintf(line, sizeof line, "SPUBLISH %s m%u", channel, (unsigned)random_below(random, 9));
        break;
    default:
        snprintf(line, sizeof line, "PUBLISH %s m%u", channel, (unsigned)random_below(random, 9));
    }
    stage_step_unordered(stage, client, line);
}

static void compare_at_random(const char *config, const char *name) {
    struct random random = random_begin(name);
    int steps = is_short_run() ? 1500 : 30000;
    STAGE(stage, 5, config);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < 2; i++) {
            wire_check_prefix(&stage.wires[side][i], "HELLO 3", "{server ");
        }
    }
    for (int i = 0; i < steps; i++) {
        random_step(&stage, &random);
    }
}

TEST(random_subscriptions_and_messages_are_as_redis_has_them) {
    compare_at_random(NULL, __func__);
}

TEST(they_are_with_threads_and_a_journal_too) {
    compare_at_random("io-threads 2\nappendonly yes\nappendfsync always\n", __func__);
}

/* ---- events of keys ---- */

static const char *const event_lines[] = {
    "ZADD $k $s m$m",
    "ZADD $k $s m$m $s m$m $s m$m",
    "ZADD $k XX $s m$m",
    "ZADD $k NX CH $s m$m",
    "ZADD $k INCR $s m$m",
    "ZADD $k XX INCR $s m$m",
    "ZINCRBY $k $s m$m",
    "ZREM $k m$m m$m",
    "ZREMRANGEBYRANK $k 0 1",
    "ZREMRANGEBYSCORE $k 1 $s",
    "ZPOPMIN $k",
    "ZPOPMAX $k 2",
    "ZPOPMIN $k 0",
    "ZMPOP 2 $k $k MAX COUNT 2",
    "BZPOPMIN $k 0.001",
    "BZMPOP 0.001 2 $k $k MAX",
    "ZUNIONSTORE $k 2 $k $k AGGREGATE MAX",
    "ZINTERSTORE $k 1 $k",
    "ZDIFFSTORE $k 2 $k $k",
    "ZRANGESTORE $k $k 0 3",
    "DEL $k $k",
    "UNLINK $k",
    "EXPIRE $k 1000",
    "PEXPIREAT $k 1",
    "EXPIRE $k 1000 NX",
    "EXPIRE $k -1",
    "PERSIST $k",
    "RENAME $k $k",
    "RENAMENX $k $k",
    "COPY $k $k",
    "COPY $k $k REPLACE",
    "COPY $k $k DB 1 REPLACE",
    "SELECT 1;COPY $k $k DB 0;ZADD $k $s m$m;DEL $k;SELECT 0",
    "FLUSHDB",
    "ZADD $k x y",
    "ZSCORE $k m$m",
    "ZCARD $k",
    "ZRANGE $k 0 -1",
    "ZRANK $k m$m",
    "EXISTS $k $k",
    "MULTI;ZADD $k $s m$m;ZPOPMIN $k;DEL $k;ZSCORE $k m;EXEC",
};

/* Fill in keys, members, and scores that never repeat. */
static void fill_line(struct random *random, const char *pattern, uint64_t *score, char *line) {
    for (; *pattern != '\0'; pattern++) {
        if (*pattern != '$') {
            *line++ = *pattern;
            continue;
        }
        pattern++;
        if (*pattern == 's') {
            line += sprintf(line, "%llu",
                            (unsigned long long)(*score += 1 + random_below(random, 1000000000)));
        } else {
            line +=
                sprintf(line, *pattern == 'k' ? "k%u" : "%u", (unsigned)random_below(random, 4));
        }
    }
    *line = '\0';
}

TEST(random_commands_cause_the_events_that_redis_sends) {
    static const char *const classes[] = {"KEA", "KEAn", "KEzn", "Kg", "Ez", "An", "KE", "KExg"};
    struct random random = random_begin(__func__);
    int steps = is_short_run() ? 2500 : 60000;
    uint64_t score = 1;
    size_t received = 0;
    STAGE(stage, 3, "layout l FIELD score 64 SIGNED\nboard * l\n");
    stage_step(&stage, 1, "PSUBSCRIBE __key*__:*");
    stage_step(&stage, 2, "SUBSCRIBE __keyevent@0__:zadd __keyspace@0__:k1");
    for (int i = 0; i < steps; i++) {
        char line[512];
        if (i % 300 == 0) {
            snprintf(line, sizeof line, "CONFIG SET notify-keyspace-events %s",
                     i == 0 ? classes[0] : PICK(&random, classes));
        } else {
            fill_line(&random, PICK(&random, event_lines), &score, line);
        }
        stage_step(&stage, 0, line);
        received += strlen(stage_received(&stage, 1));
    }
    assert_true(received > 300 * 5); /* of all classes, at least */
}

TEST(reading_a_missing_key_is_an_event_where_it_is_asked_for) {
    STAGE(stage, 2, NULL);
    stage_step(&stage, 0, "CONFIG SET notify-keyspace-events KEm");
    stage_step(&stage, 1, "PSUBSCRIBE __key*__:*");
    STAGE_STEPS(&stage, 0, "ZSCORE k m", "ZCARD k", "ZRANGE k 0 -1", "ZRANK k m", "EXISTS k j",
                "TTL k", "TYPE k", "ZCOUNT k 1 2", "TOUCH k", "ZADD k 1 m", "ZCARD k", "DEL k j");
}

TEST(the_setting_is_read_and_printed_as_in_redis) {
    STAGE(stage, 1, NULL);
    static const char *const values[] = {"KEA", "Kn",   "mEg", "xK", "AK$lshzxetd", "g$lshzxetdKE",
                                         "E",   "KExg", "q",   "A",  "KK",          "nmz"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char line[128];
        snprintf(line, sizeof line,
                 "CONFIG SET notify-keyspace-events %s;CONFIG GET notify-keyspace-events",
                 values[i]);
        stage_step(&stage, 0, line);
    }
    stage_step(&stage, 0,
               "CONFIG SET notify-keyspace-events \"\";CONFIG GET notify-keyspace-events");
}

/* ---- many ---- */

/* Nobody else is refused or left without memory; what one client holds is shown, bounded and freed. */
TEST(a_hundred_thousand_subscriptions_of_one_client) {
    enum { MANY = 100000, AT_ONCE = 1000 };
    SERVER(server, NULL);
    struct wire ann = wire_open(process_connect_unix(&server));
    WIRE(bob, process_connect_unix(&server));
    for (int i = 0; i < MANY; i += AT_ONCE) {
        TEXT(request);
        text_format(&request, "PSUBSCRIBE");
        for (int j = 0; j < AT_ONCE; j++) {
            text_format(&request, " pattern:%d:*", i + j);
        }
        text_format(&request, "\r\n");
        wire_send(&ann, request.at, request.size);
        for (int j = 0; j < AT_ONCE; j++) {
            wire_reply(&ann);
        }
    }
    assert_int_equal(wire_info(&bob, "pubsub_patterns"), MANY);
    wire_check(&bob, "PUBLISH pattern:7:x hello", ":1");
    assert_string_equal(wire_reply(&ann), "[pmessage pattern:7:* pattern:7:x hello]");
    wire_send_text(&ann, "PUNSUBSCRIBE\r\n");
    for (int i = 0; i < MANY; i++) {
        wire_reply(&ann);
    }
    wire_check(&bob, "PUBSUB NUMPAT", ":0");
    wire_send_text(&ann, "PSUBSCRIBE again\r\n");
    wire_reply(&ann);
    wire_close(&ann);
    wire_wait_info(&bob, "pubsub_clients", 0);
    wire_check(&bob, "PUBLISH again x", ":0");
}

TEST(subscriptions_are_within_the_query_buffer_limit) {
    SERVER(server, &(struct process_options){.config = "client-query-buffer-limit 1mb\n"});
    WIRE(ann, process_connect_unix(&server));
    WIRE(bob, process_connect_unix(&server));
    TEXT(request);
    for (int i = 0; i < 20000; i++) {
        text_format(&request, "SUBSCRIBE channel:%d\r\n", i);
    }
    (void)wire_push(&ann, request.at, request.size, 1000);
    wire_wait_info(&bob, "pubsub_clients", 0);
    assert_true(wire_is_closed(&ann, WIRE_LIMIT_MS));
}

/* ---- events of boards ---- */

/* In RESP3 it is a push: the text begins with >. */
static void hear(struct wire *wire, bool is_push, const char *expected) {
    const char *reply = wire_reply(wire);
    assert_int_equal(reply[0] == '>', is_push);
    assert_string_equal(reply + is_push, expected);
}

static void follow_in(unsigned version, const char *settings) {
    bool is_push = version == 3;
    SERVER(server, &(struct process_options){.config = settings});
    WIRE(ann, process_connect_unix(&server));
    WIRE(bob, process_connect_unix(&server));
    wire_check_prefix(&ann, is_push ? "HELLO 3" : "HELLO 2", is_push ? "{" : "[");
    wire_send_text(&ann, "SUBSCRIBE __toplist@0__:2:k\r\n");
    hear(&ann, is_push, "[subscribe __toplist@0__:2:k :1]");
    wire_send_text(&ann, "SUBSCRIBE __board@0__:k\r\n");
    hear(&ann, is_push, "[subscribe __board@0__:k :2]");
    wire_check(&bob, "ZADD k 1 a 2 b", ":2");
    hear(&ann, is_push, "[message __toplist@0__:2:k [[\"b\",\"2\"],[\"a\",\"1\"]]]");
    /* While the board rests: told once the rest is over, without any other request. */
    wire_check(&bob, "DEL k", ":1");
    hear(&ann, is_push, "[message __toplist@0__:2:k []]");
    wire_check(&bob, "LB.CREATE k OPENS 2026-01-01T00:00:00Z CLOSES 2087-01-01T00:00:00Z", "OK");
    wire_check(&bob, "ZADD k 3 c", ":1");
    hear(&ann, is_push, "[message __toplist@0__:2:k [[\"c\",\"3\"]]]");
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    char text[TIMESTAMP_TEXT_MAX + 1];
    text[timestamp_print(text, (now_ms + 2000) * 1000)] = '\0';
    wire_check(&bob, formatted("LB.ALTER k CLOSES %s", text), "OK");
    hear(&ann, is_push, "[message __board@0__:k closed]");
    wire_check(&bob, "LB.ALTER k CLOSES NONE", "OK");
    hear(&ann, is_push, "[message __board@0__:k opened]");
}

TEST(boards_are_followed_in_both_protocols) {
    follow_in(2, "notify-board-events yes\n");
    follow_in(3, "notify-board-events yes\n");
}

TEST(they_are_with_threads_and_a_journal) {
    follow_in(3, "notify-board-events yes\nio-threads 2\nappendonly yes\nappendfsync always\n");
}
