/* What a Redis sends, applied: copies and commands, however they are cut; what cannot be held. The results of
 * all commands under load are compared with those of a real redis-server by tests/moving/test_follow.py. */
#include "tests/server/rdb/rdb_maker.h"

#include <time.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/migration/redis_stream.h"
#include "server/system/log.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"

#define BUDGET_NS UINT64_MAX
#define SETTINGS                                                                                   \
    "layout wide FIELD score 48 SIGNED SCALE 2 TIME 16 D\nboard z* wide\n"                         \
    "layout low FIELD ms 33 SIGNED ASC TIME 31 S\nboard low* low\n"                                \
    "board top* default CAP 2\nboard few* default LIMIT 2\n"                                       \
    "board day* default PERIOD DAY\n"

struct follower {
    struct harness *h;
    struct session *s;
    struct redis_stream stream;
};

static void begin(struct follower *follower) {
    log_set_level(LOG_NOTHING);
    follower->h = harness_create(SETTINGS);
    follower->s = harness_connect(follower->h);
    harness_run(follower->h, follower->s, "PING"); /* reads the clock */
    redis_stream_init(&follower->stream, &follower->h->server, 7);
    redis_stream_restart(&follower->stream, 1000);
}

static void end(struct follower *follower) {
    const char *reason = "";
    redis_stream_deinit(&follower->stream); /* lets go of rules, too */
    assert_true(registry_validate(follower->h->server.registry, &reason));
    harness_destroy(follower->h);
}

/* As redis_follow.c does, in pieces of this size. */
static void feed(struct follower *follower, struct bytes bytes, size_t piece) {
    struct redis_stream *stream = &follower->stream;
    size_t at = 0;
    while (stream->state != REDIS_STREAM_STOPPED &&
           (at < bytes.size || redis_stream_has_work(stream))) {
        size_t left = bytes.size - at;
        at += redis_stream_take(
            stream, (struct bytes){.at = bytes.at + at, .size = left < piece ? left : piece},
            BUDGET_NS, follower->h->server.clock.now_us);
        if (stream->state == REDIS_STREAM_LOADED) {
            assert_true(redis_stream_exchange(stream));
        }
    }
}

static void feed_text(struct follower *follower, const char *commands) {
    feed(follower, bytes_from_text(commands), SIZE_MAX);
}

static void begin_file(struct buffer *out) {
    buffer_init(out, 0);
    MAKE_RAW(out, "REDIS0011");
}

/* Follows an empty copy. */
static void begin_empty(struct follower *follower) {
    struct buffer file;
    begin(follower);
    begin_file(&file);
    make_end(&file);
    feed(follower, (struct bytes){.at = file.at, .size = file.size}, SIZE_MAX);
    assert_int_equal(follower->stream.state, REDIS_STREAM_FOLLOWS);
    buffer_deinit(&file);
}

#define FOLLOWER_TEST(name)                                                                        \
    static void name##_of(struct follower *f);                                                     \
    TEST(name) {                                                                                   \
        struct follower f;                                                                         \
        begin_empty(&f);                                                                           \
        name##_of(&f);                                                                             \
        end(&f);                                                                                   \
    }                                                                                              \
    static void name##_of(struct follower *f)

static void expect(struct follower *follower, const char *line, const char *reply) {
    assert_string_equal(harness_run(follower->h, follower->s, line), reply);
}

static void expect_stopped(struct follower *follower, const char *first, const char *second) {
    assert_int_equal(follower->stream.state, REDIS_STREAM_STOPPED);
    assert_non_null(strstr(follower->stream.error, first));
    assert_non_null(strstr(follower->stream.error, second));
}

TEST(a_copy_and_commands_behind_it_may_be_cut_anywhere) {
    struct buffer file;
    buffer_init(&file, 0);
    make_file(&file);
    const char commands[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
                            "*4\r\n$4\r\nZADD\r\n$2\r\nz9\r\n$3\r\n1.5\r\n$3\r\nann\r\n"
                            "*1\r\n$5\r\nMULTI\r\n"
                            "*4\r\n$7\r\nzincrby\r\n$2\r\nz9\r\n$1\r\n1\r\n$3\r\nann\r\n"
                            "*1\r\n$4\r\nEXEC\r\n";
    size_t copy_size = file.size;
    MAKE_RAW(&file, commands);
    for (size_t piece = 1; piece <= file.size; piece = piece < 90 ? piece + 1 : piece * 3) {
        struct follower f;
        begin(&f);
        feed(&f, (struct bytes){.at = file.at, .size = file.size}, piece);
        assert_int_equal(f.stream.state, REDIS_STREAM_FOLLOWS);
        assert_int_equal(f.stream.offset, 1000 + file.size - copy_size);
        assert_int_equal(f.stream.load.board_count, MADE_ZSETS);
        expect(&f, "ZREVRANGE z0 0 -1",
               "*4\r\n$3\r\nzoe\r\n$3\r\nkim\r\n$3\r\nbob\r\n$2\r\n-7\r\n");
        expect(&f, "PEXPIRETIME z4", ":4102444800000\r\n");
        expect(&f, "HGET h1 a", "$1\r\n1\r\n");
        expect(&f, "SELECT 3", "+OK\r\n");
        expect(&f, "ZSCORE z9 ann", "$3\r\n2.5\r\n");
        end(&f);
    }
    buffer_deinit(&file);
}

TEST(a_damaged_copy_leaves_what_is_there) {
    struct buffer file;
    buffer_init(&file, 0);
    make_file(&file);
    for (size_t at = 0; at < file.size; at++) {
        struct follower f;
        begin(&f);
        harness_run(f.h, f.s, "ZADD mine 1 ann");
        file.at[at] = (char)(file.at[at] ^ 0x55);
        feed(&f, (struct bytes){.at = file.at, .size = file.size}, SIZE_MAX);
        file.at[at] = (char)(file.at[at] ^ 0x55);
        assert_int_not_equal(f.stream.state, REDIS_STREAM_FOLLOWS);
        assert_int_not_equal(f.stream.state, REDIS_STREAM_LOADED);
        expect(&f, "ZSCORE mine ann", "$1\r\n1\r\n");
        expect(&f, "DBSIZE", ":1\r\n");
        end(&f);
    }
    buffer_deinit(&file);
}

TEST(a_score_in_the_copy_that_no_board_holds_leaves_what_is_there) {
    struct follower f;
    struct buffer file;
    begin_file(&file);
    make_key(&file, 5, "few:1");
    make_length(&file, 1);
    make_text(&file, "ann");
    make_double(&file, 0.25);
    make_end(&file);
    begin(&f);
    harness_run(f.h, f.s, "ZADD mine 1 ann");
    feed(&f, (struct bytes){.at = file.at, .size = file.size}, 7);
    expect_stopped(&f, "key 'few:1' of database 0: member 'ann'", "0.25");
    expect(&f, "DBSIZE", ":1\r\n");
    end(&f);
    buffer_deinit(&file);
}

/* With so many members before the one that is there twice. */
static void make_twice(struct buffer *file, const char *key, unsigned before) {
    char member[16];
    begin_file(file);
    make_key(file, 5, "other");
    make_length(file, 1);
    make_text(file, "m0"); /* of another key: not the same */
    make_double(file, 1);
    make_key(file, 5, key);
    make_length(file, before + 1);
    for (unsigned i = 0; i <= before; i++) {
        snprintf(member, sizeof member, "m%u", i < before ? i : before / 2);
        make_text(file, member);
        make_double(file, i);
    }
}

static void expect_refused_before_loading(struct buffer *file, const char *first) {
    struct follower f;
    make_end(file);
    begin(&f);
    harness_run(f.h, f.s, "ZADD mine 1 ann");
    feed(&f, (struct bytes){.at = file->at, .size = file->size}, 4000);
    expect_stopped(&f, first, "is there twice");
    expect(&f, "ZSCORE mine ann", "$1\r\n1\r\n");
    expect(&f, "DBSIZE", ":1\r\n");
    end(&f);
    buffer_deinit(file);
}

TEST(what_is_in_the_copy_twice_leaves_what_is_there) {
    struct buffer file;
    make_twice(&file, "b", 1);
    expect_refused_before_loading(&file, "key 'b' of database 0: member 'm0'");
    make_twice(&file, "b", 200000);
    expect_refused_before_loading(&file, "key 'b' of database 0: member 'm100000'");
    make_twice(&file, "other", 0);
    expect_refused_before_loading(&file, "key 'other' of database 0");
    begin_file(&file);
    make_key(&file, 4, "h");
    make_length(&file, 2);
    for (int i = 0; i < 2; i++) {
        make_text(&file, "field");
        make_text(&file, "value");
    }
    expect_refused_before_loading(&file, "key 'h' of database 0: a field");
}

TEST(a_board_with_a_period_is_in_the_present_one) {
    struct follower f;
    struct buffer file;
    begin_file(&file);
    make_key(&file, 5, "day:1");
    make_length(&file, 1);
    make_text(&file, "ann");
    make_double(&file, 7);
    make_end(&file);
    begin(&f);
    feed(&f, (struct bytes){.at = file.at, .size = file.size}, 7);
    expect(&f, "ZRANGE day:1 0 -1", "*1\r\n$3\r\nann\r\n");
    f.h->wall_us += INT64_C(86400000000);
    expect(&f, "ZRANGE day:1 0 -1", "*0\r\n");
    end(&f);
    buffer_deinit(&file);
}

FOLLOWER_TEST(equal_scores_go_by_name_and_stay_in_order_of_arrival) {
    feed_text(
        f, "ZADD low 5 zoe 5 ann 5 kim 4 bob 6 eve\r\nZADD high 5 zoe 5 ann 5 kim 4 bob 6 eve\r\n"
           "ZREMRANGEBYRANK low 1 1\r\nZPOPMAX high 2\r\n");
    expect(f, "ZRANGE low 0 -1", "*4\r\n$3\r\nbob\r\n$3\r\nzoe\r\n$3\r\nkim\r\n$3\r\neve\r\n");
    expect(f, "ZREVRANGE high 0 -1", "*3\r\n$3\r\nann\r\n$3\r\nkim\r\n$3\r\nbob\r\n");
    feed_text(f, "ZREMRANGEBYRANK high 1 -1\r\nZPOPMIN high\r\n");
    expect(f, "EXISTS high", ":0\r\n");
}

FOLLOWER_TEST(scores_are_added_and_weighed_as_doubles) {
    feed_text(f, "ZADD z1 0.5 ann 3 bob\r\nZADD z2 0.25 ann\r\nZINCRBY z1 0.25 ann\r\n"
                 "ZADD z1 GT 0.7 ann\r\nZADD z1 XX LT INCR -0.5 ann\r\nZADD z1 NX 9 bob\r\n"
                 "ZUNIONSTORE z3 2 z1 z2 WEIGHTS 2 4 AGGREGATE MAX\r\n"
                 "ZDIFFSTORE z4 2 z1 z2\r\nZRANGESTORE z5 z1 1 0.3 BYSCORE REV LIMIT 0 1\r\n"
                 "ZINTERSTORE z6 2 z1 z0\r\n"
                 "ZUNIONSTORE z7 2 z1 z2 AGGREGATE COUNT\r\n"
                 "ZINTERSTORE z8 2 z1 z2 WEIGHTS 2 3 AGGREGATE COUNT\r\n");
    expect(f, "ZRANGE z3 0 -1 WITHSCORES",
           "*4\r\n$3\r\nann\r\n$1\r\n1\r\n$3\r\nbob\r\n$1\r\n6\r\n");
    expect(f, "ZRANGE z4 0 -1", "*1\r\n$3\r\nbob\r\n");
    expect(f, "EXISTS z5 z6", ":0\r\n");
    expect(f, "ZRANGE z7 0 -1 WITHSCORES",
           "*4\r\n$3\r\nbob\r\n$1\r\n1\r\n$3\r\nann\r\n$1\r\n2\r\n");
    expect(f, "ZRANGE z8 0 -1 WITHSCORES", "*2\r\n$3\r\nann\r\n$1\r\n5\r\n");
}

/* Of equal scores, the first by its bytes, and the last. */
FOLLOWER_TEST(members_move_as_redis_moves_them) {
    feed_text(f, "ZADD z 5 zoe 5 ann 5 kim 5 bob 7 top 1 low\r\nZADD to 9 ann\r\n"
                 "ZMOVE z to MIN COUNT 2\r\n");
    expect(f, "ZRANGE to 0 -1 WITHSCORES",
           "*4\r\n$3\r\nlow\r\n$1\r\n1\r\n$3\r\nann\r\n$1\r\n5\r\n");
    feed_text(f, "ZMOVE z to max COUNT 2\r\n");
    expect(f, "ZMSCORE to top zoe kim", "*3\r\n$1\r\n7\r\n$1\r\n5\r\n$-1\r\n");
    feed_text(f, "ZMOVE z new BYSCORE (4 5 COUNT 1\r\n");
    expect(f, "ZRANGE new 0 -1", "*1\r\n$3\r\nbob\r\n");
    feed_text(f, "BZMOVE z new MIN 0\r\nZMOVE z new MIN\r\nZMOVE new new MAX\r\n");
    expect(f, "EXISTS z", ":0\r\n");
    feed_text(f, "ZADD new 2.0 zoe\r\nZMOVEMEMBER to new NX MEMBERS 3 zoe none top\r\n"
                 "ZMOVEMEMBER to new XX MEMBERS 2 low zoe\r\n"
                 "ZMOVEMEMBER to other MEMBERS 2 ann ann\r\n");
    expect(f, "ZMSCORE new kim bob top zoe", "*4\r\n$1\r\n5\r\n$1\r\n5\r\n$1\r\n7\r\n$1\r\n5\r\n");
    expect(f, "ZRANGE to 0 -1", "*1\r\n$3\r\nlow\r\n");
    expect(f, "ZRANGE other 0 -1", "*1\r\n$3\r\nann\r\n");
    feed_text(f, "ZMOVE to none BYSCORE 50 60\r\nZMOVEMEMBER to none XX MEMBERS 1 low\r\n");
    expect(f, "EXISTS none", ":0\r\n");
}

TEST(a_command_that_cannot_be_held_stops_all_that_follows) {
    static const char *const cases[][3] = {
        {"ZADD b 1 ann 1.5 bob\r\n", "'b' of database 0: member 'bob'", "1.5"},
        {"ZADD b inf ann\r\n", "'ann'", "inf"},
        {"ZINCRBY b 4294967295 old\r\n", "'old'", "4294967296"},
        {"ZADD few 1 a 2 b 3 c\r\n", "'few'", "at most 2"},
        {"SADD s 1\r\nZUNIONSTORE out 2 b s\r\n", "'s'", "sets are not followed"},
        {"SELECT 16\r\nZADD b 1 ann\r\n", "database 16", "16 here"},
        {"HSET b f v\r\n", "'b'", "refused here"},
        {"EVAL x 0\r\n", "EVAL", "cannot be followed"},
        {"GEOSEARCHSTORE a b FROMMEMBER x\r\n", "GEOSEARCHSTORE", "cannot be followed"},
        {"ZADD b what ann\r\n", "ZADD", "not understood"},
        {"ZMOVE b c MID\r\n", "ZMOVE", "not understood"},
        {"ZMOVE b c MIN COUNT 0\r\n", "ZMOVE", "not understood"},
        {"ZMOVEMEMBER b c MEMBERS 2 old\r\n", "ZMOVEMEMBER", "not understood"},
        {"ZADD b 1\r\n", "ZADD", "not understood"},
        {"*1\r\n:7\r\n", "stream", "not made of commands"},
        {"RESTORE b 0 nonsense-of-some-length REPLACE\r\n", "'b'", "RDB version"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct follower f;
        begin_empty(&f);
        feed_text(&f, "ZADD b 1 old\r\n");
        feed_text(&f, cases[i][0]);
        feed_text(&f, "DEL b\r\n");
        expect_stopped(&f, cases[i][1], cases[i][2]);
        expect(&f, "ZRANGE b 0 -1 WITHSCORES", "*2\r\n$3\r\nold\r\n$1\r\n1\r\n");
        end(&f);
    }
}

TEST(what_overwrites_a_key_removes_it_and_what_is_not_here_is_counted) {
    static const char *const overwriting[] = {
        "SET k 1",
        "SETEX k 5 x",
        "GETSET k 1",
        "MSET a 1 k 2",
        "DEL a k",
        "UNLINK k",
        "RENAME text k",
        "COPY text k REPLACE",
        "SORT l STORE k",
        "BITOP OR k a b",
        "SUNIONSTORE k s",
        "FLUSHDB",
        "FLUSHALL",
        "PSETEX k 5 x",
        "SETNX k 1",
        "RENAME k other",
        "SWAPDB 0 5",
        "MOVE k 4",
        "ZREM k ann",
        "ZREMRANGEBYSCORE k (0 1",
        "ZPOPMIN k 9",
        "ZMOVE k to MIN",
        "ZMOVEMEMBER k to MEMBERS 1 ann",
        "ZDIFFSTORE k 1 x",
        "GETDEL k",
        "DELEX k",
        "DELEX k IFEQ a",
        "DELIFEQ k a",
        "MSETEX 2 a 1 k 2 NX EX 5",
        "MSETEX 1 k 2",
        "ZREMRANGEBYLEX k [a (b",
        "ZRANGESTORE k x 0 -1",
    };
    for (size_t i = 0; i < COUNT_OF(overwriting); i++) {
        struct follower f;
        begin_empty(&f);
        feed_text(&f, "ZADD k 1 ann\r\nAPPEND t x\r\nLPUSH l 1\r\nlpush l 1\r\nPING\r\n");
        feed_text(&f, overwriting[i]);
        feed_text(&f, "\r\n");
        assert_int_equal(f.stream.state, REDIS_STREAM_FOLLOWS);
        assert_int_equal(f.stream.apply.skipped_count, 3);
        assert_string_equal(f.stream.apply.skipped[1].name, "lpush");
        assert_int_equal(f.stream.apply.skipped[1].count, 2);
        expect(&f, "EXISTS k", ":0\r\n");
        end(&f);
    }
}

TEST(a_command_that_is_not_known_stops_at_a_key_that_is_here) {
    static const char *const refused[] = {
        "ZSHUFFLE k",        "LPUSH k 1",
        "HSHUFFLE h 1",      "TRIMSLOTS RANGES 1 0 5",
        "FLUSHSLOT 5 ASYNC", "MSETEX 2 k 1",
        "MSETEX x k 1",      "HGETDEL h FIELDS 2 a",
        "HGETDEL h A 1 a",   "CLUSTER SYNCSLOTS FINISH",
    };
    static const char *const passed[] = {
        "ZSHUFFLE other",
        "HPEXPIREAT h 4102444800000 FIELDS 1 a",
        "HPERSIST h FIELDS 1 a",
        "HEXPIRE h 10 FIELDS 1 a",
        "HGETEX h EX 10 FIELDS 1 a",
        "XGROUP CREATE k g 0",
        "FUNCTION FLUSH",
        "SCRIPT FLUSH",
        "NOARGUMENTS",
    };
    struct follower f;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        begin_empty(&f);
        feed_text(&f, "ZADD k 1 ann\r\nHSET h a b\r\n");
        feed_text(&f, refused[i]);
        feed_text(&f, "\r\nZADD k 2 bob\r\n");
        assert_int_equal(f.stream.state, REDIS_STREAM_STOPPED);
        assert_non_null(strstr(f.stream.error, "source's"));
        expect(&f, "ZCARD k", ":1\r\n");
        end(&f);
    }
    begin_empty(&f);
    feed_text(&f, "ZADD k 1 ann\r\nHSET h a b\r\n");
    for (size_t i = 0; i < COUNT_OF(passed); i++) {
        feed_text(&f, passed[i]);
        feed_text(&f, "\r\n");
        assert_int_equal(f.stream.apply.skipped_count, i + 1);
    }
    feed_text(&f, "HSET h c d e f\r\nHGETDEL h FIELDS 3 c x f\r\nHGETDEL h FIELDS 1 e\r\n");
    feed_text(&f, "SELECT 99\r\nZSHUFFLE k\r\n"); /* a database that is not here */
    assert_int_equal(f.stream.state, REDIS_STREAM_FOLLOWS);
    expect(&f, "HGETALL h", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    end(&f);
}

FOLLOWER_TEST(keys_that_expire_stay_until_the_source_says_so) {
    registry_set_passive(f->h->server.registry, true);
    feed_text(f, "ZADD k 1 ann\r\nPEXPIREAT k 1000\r\n");
    expect(f, "EXISTS k", ":0\r\n");
    feed_text(f, "ZADD k XX 2 ann\r\nPERSIST k\r\n");
    expect(f, "ZSCORE k ann", "$1\r\n2\r\n");
}

/* ---- equal scores, in Redis's order ---- */

struct listed {
    char name[16];
    int score;
};

static int compare_listed(const void *a, const void *b) {
    const struct listed *x = a, *y = b;
    return x->score != y->score ? x->score - y->score : strcmp(x->name, y->name);
}

/* The places that the bounds of a command name; equal scores by their bytes. */
static void find_listed(const struct listed *list, int count, const char *low, const char *high,
                        int *first, int *end) {
    *first = 0;
    while (*first < count && strcmp(list[*first].name, low) < 0) {
        ++*first;
    }
    *end = *first;
    while (*end < count && strcmp(list[*end].name, high) <= 0) {
        ++*end;
    }
}

static void check_list(struct follower *f, const char *key, const struct listed *list, int count) {
    char line[64], reply[64];
    snprintf(line, sizeof line, "ZCARD %s", key);
    snprintf(reply, sizeof reply, ":%d\r\n", count);
    expect(f, line, reply);
    for (int i = 0; i < count; i++) {
        snprintf(line, sizeof line, "ZSCORE %s %s", key, list[i].name);
        snprintf(reply, sizeof reply, "$%d\r\n%d\r\n", list[i].score > 9 ? 2 : 1, list[i].score);
        expect(f, line, reply);
    }
}

/* Removed and copied by names, by places, and from both ends: against a naive list. */
static void run_cut(struct follower *f, struct random *random, const char *key) {
    enum { MEMBERS_MAX = 40 };
    struct listed list[MEMBERS_MAX];
    char line[1024], low[8], high[8];
    int count = 0, first, end;
    int scores = 1 + (int)random_below(random, 4);
    feed_text(f, "FLUSHALL\r\n");
    for (int i = (int)random_below(random, MEMBERS_MAX); i >= 0; i--) {
        struct listed *one = &list[count];
        one->score = 1 + (int)random_below(random, (uint64_t)scores) * 5;
        snprintf(one->name, sizeof one->name, "m%02d", (i * 17) % 40);
        snprintf(line, sizeof line, "ZADD %s %d %s\r\n", key, one->score, one->name);
        feed_text(f, line);
        count++;
    }
    qsort(list, (size_t)count, sizeof *list, compare_listed);
    snprintf(low, sizeof low, "m%02d", (int)random_below(random, 45));
    snprintf(high, sizeof high, "m%02d", (int)random_below(random, 45));
    bool is_by_name = random_below(random, 2) == 0;
    if (is_by_name) {
        find_listed(list, count, low, high, &first, &end);
        snprintf(line, sizeof line,
                 "ZRANGESTORE %s:to %s [%s [%s BYLEX\r\nZREMRANGEBYLEX %s [%s [%s\r\n", key, key,
                 low, high, key, low, high);
    } else {
        first = (int)random_below(random, (uint64_t)count);
        end = first + 1 + (int)random_below(random, (uint64_t)(count - first));
        snprintf(line, sizeof line, "ZRANGESTORE %s:to %s %d %d\r\nZREMRANGEBYRANK %s %d %d\r\n",
                 key, key, first, end - 1, key, first, end - 1);
    }
    feed_text(f, line);
    snprintf(line, sizeof line, "%s:to", key);
    check_list(f, line, list + first, end - first);
    memmove(list + first, list + end, (size_t)(count - end) * sizeof *list);
    check_list(f, key, list, count - (end - first));
}

FOLLOWER_TEST(equal_scores_are_cut_as_a_naive_list_cuts_them) {
    struct random random = random_begin(__func__);
    for (int round = 0; round < 600; round++) {
        run_cut(f, &random, round % 2 == 0 ? "z" : "low");
    }
    assert_int_equal(f->stream.state, REDIS_STREAM_FOLLOWS);
}

static int compare_names(const void *a, const void *b) {
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

static uint64_t cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t feed_timed(struct follower *f, const char *line) {
    uint64_t begin = cpu_ns();
    feed_text(f, line);
    return cpu_ns() - begin;
}

/* Names of one score are in the order of arrival here, and sorting them all to find a few would
 * hold up every client: it costs more than what is wanted. */
FOLLOWER_TEST(a_cut_among_many_equal_scores_sorts_nothing) {
    enum { MEMBERS = 300000, NAME_SIZE = 17, ROUNDS = 5 };
    struct random random = random_begin(__func__);
    struct buffer line;
    struct bytes *names = calloc(MEMBERS, sizeof *names);
    char *texts = malloc((size_t)MEMBERS * (NAME_SIZE + 1));
    uint64_t sort_ns = UINT64_MAX, lex_ns = UINT64_MAX, rank_ns = UINT64_MAX;
    assert_true(names != NULL && texts != NULL);
    buffer_init(&line, 0);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        char *text = texts + (size_t)i * (NAME_SIZE + 1);
        snprintf(text, NAME_SIZE + 1, "m%016llx", (unsigned long long)random_next(&random));
        buffer_append(&line, "ZADD z 7 ", 9);
        buffer_append(&line, text, NAME_SIZE);
        buffer_append(&line, "\r\n", 2);
    }
    feed(f, (struct bytes){.at = line.at, .size = line.size}, SIZE_MAX);
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < MEMBERS; i++) {
            names[i] = (struct bytes){.at = texts + (size_t)i * (NAME_SIZE + 1), .size = NAME_SIZE};
        }
        uint64_t begin_ns = cpu_ns();
        qsort(names, MEMBERS, sizeof *names, compare_names);
        uint64_t took_ns = cpu_ns() - begin_ns;
        sort_ns = took_ns < sort_ns ? took_ns : sort_ns;
        took_ns = feed_timed(f, "ZREMRANGEBYLEX z [m8000 (m8001\r\n");
        lex_ns = took_ns < lex_ns ? took_ns : lex_ns;
        took_ns = feed_timed(f, "ZREMRANGEBYRANK z 100000 100009\r\n");
        rank_ns = took_ns < rank_ns ? took_ns : rank_ns;
    }
    print_message("sorting %.1f ms, by names %.1f ms, by places %.1f ms\n", (double)sort_ns / 1e6,
                  (double)lex_ns / 1e6, (double)rank_ns / 1e6);
    assert_true(lex_ns < sort_ns);
    assert_true(rank_ns < sort_ns);
    buffer_deinit(&line);
    free(names);
    free(texts);
}

/* `count` members of one score; all_collide: of the names that an unseeded hash puts into one slot
 * of 2^SLOT_BITS. */
static void fill_names(struct follower *f, const char *key, unsigned count, bool all_collide) {
    enum { SLOT_BITS = 14, NAME_SIZE = 12, DIGIT_BITS = 6 };
    struct buffer line;
    char name[NAME_SIZE];
    buffer_init(&line, 0);
    for (uint64_t number = 0, found = 0; found < count; number++) {
        for (unsigned i = 0; i < NAME_SIZE; i++) {
            name[i] = (char)('0' + (i * DIGIT_BITS < 60 ? number >> i * DIGIT_BITS & 63 : 0));
        }
        if (!all_collide || XXH3_64bits(name, NAME_SIZE) % (1 << SLOT_BITS) == 0) {
            buffer_append(&line, "ZADD ", 5);
            buffer_append(&line, key, strlen(key));
            buffer_append(&line, " 7 \"", 4);
            for (unsigned i = 0; i < NAME_SIZE; i++) {
                buffer_append(&line, name[i] == '\\' ? "\\\\" : &name[i], name[i] == '\\' ? 2 : 1);
            }
            buffer_append(&line, "\"\r\n", 3);
            found++;
        }
    }
    feed(f, (struct bytes){.at = line.at, .size = line.size}, SIZE_MAX);
    buffer_deinit(&line);
}

FOLLOWER_TEST(names_that_are_chosen_to_collide_make_a_union_no_slower) {
    enum { MEMBERS = 6000, ROUNDS = 5 };
    uint64_t chosen_ns = UINT64_MAX, other_ns = UINT64_MAX;
    fill_names(f, "z1", MEMBERS, true);
    fill_names(f, "z2", MEMBERS, false);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t took_ns = feed_timed(f, "ZUNIONSTORE z3 1 z1\r\n");
        chosen_ns = took_ns < chosen_ns ? took_ns : chosen_ns;
        took_ns = feed_timed(f, "ZUNIONSTORE z3 1 z2\r\n");
        other_ns = took_ns < other_ns ? took_ns : other_ns;
    }
    expect(f, "ZCARD z1", ":6000\r\n");
    expect(f, "ZCARD z3", ":6000\r\n");
    print_message("chosen %.1f ms, others %.1f ms\n", (double)chosen_ns / 1e6,
                  (double)other_ns / 1e6);
    assert_true(chosen_ns < 3 * other_ns);
}

FOLLOWER_TEST(a_cap_keeps_the_best) {
    feed_text(f, "ZADD top 1 a 2 b 3 c\r\nZADD top 5 d\r\n");
    expect(f, "ZREVRANGE top 0 -1", "*2\r\n$1\r\nd\r\n$1\r\nc\r\n");
}

FOLLOWER_TEST(a_transaction_waits_for_its_end_and_is_applied_as_a_whole) {
    feed_text(f, "MULTI\r\nZADD k 1 ann\r\n");
    expect(f, "EXISTS k", ":0\r\n");
    assert_int_equal(f->stream.offset, 1000);
    feed_text(f, "EXEC\r\n");
    expect(f, "ZCARD k", ":1\r\n");
    assert_int_equal(f->stream.offset, 1000 + 7 + 14 + 6);
}

TEST(names_of_sets_are_held_as_a_naive_list_holds_them) {
    enum { NAMES = 300, STEPS = 20000 };
    struct redis_names names = {.seed = 5};
    bool held[NAMES] = {false};
    uint64_t random = 12345;
    uint64_t count = 0;
    for (int step = 0; step < STEPS; step++) {
        char text[16];
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        unsigned which = (unsigned)(random >> 33) % NAMES;
        struct bytes name = {.at = text, .size = (size_t)snprintf(text, sizeof text, "s%u", which)};
        if ((random >> 60) < 8) {
            redis_names_put(&names, name);
            count += !held[which];
            held[which] = true;
        } else {
            assert_int_equal(redis_names_remove(&names, name), held[which]);
            count -= held[which];
            held[which] = false;
        }
        assert_int_equal(names.count, count);
        assert_int_equal(redis_names_hold(&names, name), held[which]);
    }
    for (unsigned which = 0; which < NAMES; which++) {
        char text[16];
        struct bytes name = {.at = text, .size = (size_t)snprintf(text, sizeof text, "s%u", which)};
        assert_int_equal(redis_names_hold(&names, name), held[which]);
    }
    redis_names_clear(&names);
}
