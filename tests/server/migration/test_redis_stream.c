/* What a Redis sends, applied: copies and commands, however they are cut; what cannot be held. What is asked of it is in
 * test_redis_ask.c. The results of all commands under load are compared with those of a real redis-server by
 * tests/moving/test_follow.py. */
#include "tests/server/rdb/rdb_maker.h"

#include "server/migration/redis_stream.h"
#include "server/system/log.h"
#include "tests/support/harness.h"

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
    redis_stream_deinit(&follower->stream); /* lets go of options, too */
    ASSERT_VALID(registry_validate, follower->h->server.registry);
    harness_destroy(follower->h);
}

/* As redis_follow.c does, in pieces of this size. Of a command that it does not know, the source says that its key
 * is of another type. */
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
        if (stream->is_held && stream->apply.question == REDIS_QUESTION_COMMAND) {
            redis_apply_learn(&stream->apply,
                              &(struct redis_learned){
                                  .makes = REDIS_MAKES_OTHERS, .first = 1, .last = 1, .step = 1});
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
    ENDED_BY(buffer_deinit) struct buffer file;
    begin(follower);
    begin_file(&file);
    make_end(&file);
    feed(follower, (struct bytes){.at = file.at, .size = file.size}, SIZE_MAX);
    assert_int_equal(follower->stream.state, REDIS_STREAM_FOLLOWS);
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
    BUFFER(file, 0);
    make_file(&file);
    const char commands[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
                            "*4\r\n$4\r\nZADD\r\n$2\r\nz9\r\n$3\r\n1.5\r\n$3\r\nann\r\n"
                            "*1\r\n$5\r\nMULTI\r\n"
                            "*4\r\n$7\r\nzincrby\r\n$2\r\nz9\r\n$1\r\n1\r\n$3\r\nann\r\n"
                            "*1\r\n$4\r\nEXEC\r\n";
    size_t copy_size = file.size;
    MAKE_RAW(&file, commands);
    for (size_t piece = 1; piece <= file.size; piece = piece < 90 ? piece + 1 : piece * 3) {
        ENDED_BY(end) struct follower f;
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
    }
}

TEST(a_damaged_copy_leaves_what_is_there) {
    BUFFER(file, 0);
    make_file(&file);
    for (size_t at = 0; at < file.size; at++) {
        ENDED_BY(end) struct follower f;
        begin(&f);
        harness_run(f.h, f.s, "ZADD mine 1 ann");
        file.at[at] = (char)(file.at[at] ^ 0x55);
        feed(&f, (struct bytes){.at = file.at, .size = file.size}, SIZE_MAX);
        file.at[at] = (char)(file.at[at] ^ 0x55);
        assert_int_not_equal(f.stream.state, REDIS_STREAM_FOLLOWS);
        assert_int_not_equal(f.stream.state, REDIS_STREAM_LOADED);
        expect(&f, "ZSCORE mine ann", "$1\r\n1\r\n");
        expect(&f, "DBSIZE", ":1\r\n");
    }
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

FOLLOWER_TEST(equal_scores_stay_in_order_of_arrival) {
    feed_text(
        f, "ZADD low 5 zoe 5 ann 5 kim 4 bob 6 eve\r\nZADD high 5 zoe 5 ann 5 kim 4 bob 6 eve\r\n"
           "ZREM low ann\r\nZREM high eve zoe\r\n");
    expect(f, "ZRANGE low 0 -1", "*4\r\n$3\r\nbob\r\n$3\r\nzoe\r\n$3\r\nkim\r\n$3\r\neve\r\n");
    expect(f, "ZREVRANGE high 0 -1", "*3\r\n$3\r\nann\r\n$3\r\nkim\r\n$3\r\nbob\r\n");
    feed_text(f, "ZREM high ann kim\r\nZREM high bob\r\n");
    expect(f, "EXISTS high", ":0\r\n");
}

FOLLOWER_TEST(scores_are_added_as_doubles) {
    feed_text(f, "ZADD z1 0.5 ann 3 bob\r\nZINCRBY z1 0.25 ann\r\nZADD z1 GT 0.7 ann\r\n"
                 "ZADD z1 XX LT INCR -0.5 ann\r\nZADD z1 NX 9 bob\r\n");
    expect(f, "ZRANGE z1 0 -1 WITHSCORES",
           "*4\r\n$3\r\nann\r\n$4\r\n0.25\r\n$3\r\nbob\r\n$1\r\n3\r\n");
}

TEST(a_command_that_cannot_be_held_stops_all_that_follows) {
    static const char *const cases[][3] = {
        {"ZADD b 1 ann 1.5 bob\r\n", "'b' of database 0: member 'bob'", "1.5"},
        {"ZADD b inf ann\r\n", "'ann'", "inf"},
        {"ZINCRBY b 4294967295 old\r\n", "'old'", "4294967296"},
        {"ZADD few 1 a 2 b 3 c\r\n", "'few'", "at most 2"},
        {"SELECT 16\r\nZADD b 1 ann\r\n", "database 16", "16 here"},
        {"HSET b f v\r\n", "'b'", "refused here"},
        {"EVAL x 0\r\n", "EVAL", "cannot be followed"},
        {"TRIMSLOTS RANGES 1 0 5\r\n", "TRIMSLOTS", "cannot be followed"},
        {"FLUSHSLOT 5 ASYNC\r\n", "FLUSHSLOT", "cannot be followed"},
        {"CLUSTER SYNCSLOTS FINISH\r\n", "CLUSTER", "cannot be followed"},
        {"MOVE b what\r\n", "MOVE", "not understood"},
        {"ZUNIONSTORE\r\n", "ZUNIONSTORE", "not understood"},
        {"ZADD b 1\r\n", "ZADD", "not understood"},
        {"*1\r\n:7\r\n", "stream", "not made of commands"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ENDED_BY(end) struct follower f;
        begin_empty(&f);
        feed_text(&f, "ZADD b 1 old\r\n");
        feed_text(&f, cases[i][0]);
        feed_text(&f, "DEL b\r\n");
        expect_stopped(&f, cases[i][1], cases[i][2]);
        expect(&f, "ZRANGE b 0 -1 WITHSCORES", "*2\r\n$3\r\nold\r\n$1\r\n1\r\n");
    }
}

TEST(what_removes_a_key_by_name_removes_it_and_what_is_not_here_is_counted) {
    static const char *const removing[] = {
        "DEL a k",  "UNLINK k",   "RENAME text k", "COPY text k REPLACE", "FLUSHDB",
        "FLUSHALL", "SWAPDB 0 5", "MOVE k 4",      "ZREM k ann",          "RENAME k other",
    };
    for (size_t i = 0; i < COUNT_OF(removing); i++) {
        ENDED_BY(end) struct follower f;
        begin_empty(&f);
        feed_text(&f, "ZADD k 1 ann\r\nAPPEND t x\r\nLPUSH l 1\r\nlpush l 1\r\nPING\r\n");
        feed_text(&f, removing[i]);
        feed_text(&f, "\r\n");
        assert_int_equal(f.stream.state, REDIS_STREAM_FOLLOWS);
        assert_int_equal(f.stream.apply.skipped_count, 3);
        assert_string_equal(f.stream.apply.skipped[1].name, "lpush");
        assert_int_equal(f.stream.apply.skipped[1].count, 2);
        expect(&f, "EXISTS k", ":0\r\n");
    }
}

FOLLOWER_TEST(what_changes_no_value_is_passed_over_and_counted) {
    static const char *const passed[] = {
        "HPEXPIREAT h 4102444800000 FIELDS 1 a",
        "HPERSIST h FIELDS 1 a",
        "HEXPIRE h 10 FIELDS 1 a",
        "HGETEX h EX 10 FIELDS 1 a",
        "XGROUP CREATE k g 0",
        "FUNCTION FLUSH",
        "SCRIPT FLUSH",
        "LPUSH other 1",
        "NOARGUMENTS",
    };
    feed_text(f, "ZADD k 1 ann\r\nHSET h a b\r\n");
    for (size_t i = 0; i < COUNT_OF(passed); i++) {
        feed_text(f, passed[i]);
        feed_text(f, "\r\n");
        assert_int_equal(f->stream.apply.skipped_count, i + 1);
    }
    feed_text(f, "SELECT 99\r\nLPUSH k 1\r\n"); /* a database that is not here */
    assert_int_equal(f->stream.state, REDIS_STREAM_FOLLOWS);
    assert_int_equal(f->stream.apply.asked.count, 0);
    expect(f, "HGETALL h", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
}

FOLLOWER_TEST(keys_that_expire_stay_until_the_source_says_so) {
    registry_set_passive(f->h->server.registry, true);
    feed_text(f, "ZADD k 1 ann\r\nPEXPIREAT k 1000\r\n");
    expect(f, "EXISTS k", ":0\r\n");
    feed_text(f, "ZADD k XX 2 ann\r\nPERSIST k\r\n");
    expect(f, "ZSCORE k ann", "$1\r\n2\r\n");
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
