/* What a Redis is asked while it is followed, and what its answers do: against a source that is played here. What real
 * ones answer, is in tests/moving/test_follow.py. */
#include "tests/server/rdb/rdb_maker.h"

#include "protocol/resp.h"
#include "server/migration/redis_ask.h"
#include "server/system/log.h"
#include "tests/support/harness.h"

enum { BEGIN = 1000, WORDS_MAX = 64 };

/* A key of the source: a sorted set of these members and scores, or of another type. */
struct held {
    const char *name, *type;
    const char *const *members; /* name, score, name, score ..., NULL */
    int64_t expire_at_ms;       /* -1: none */
};

struct played {
    struct harness *h;
    struct session *s;
    struct redis_stream stream;
    struct redis_ask ask;
    const struct held *keys; /* until one without a name */
    uint64_t offset;         /* of the source */
    uint64_t received;
    const char *command_info; /* the answer to COMMAND INFO */
    const char *command_keys; /* the answer to COMMAND GETKEYSANDFLAGS and GETKEYS */
    unsigned version;         /* of its RDB */
    bool is_old;              /* before Redis 7 */
    bool is_damaged;
    const char *denied; /* a command */
    struct buffer said; /* all words that it was asked */
    size_t piece;       /* so many bytes of an answer come at once */
    size_t lost_after;  /* and the connection is lost behind these; 0: never */
};

/* ---- the source ---- */

static void put_bulk(struct buffer *out, const char *at, size_t size) {
    char head[32];
    snprintf(head, sizeof head, "$%zu\r\n", size);
    buffer_append_text(out, head);
    buffer_append(out, at, size);
    buffer_append_text(out, "\r\n");
}

static const struct held *find_held(const struct played *p, struct bytes name) {
    const struct held *held = p->keys;
    while (held != NULL && held->name != NULL && !bytes_equal(bytes_from_text(held->name), name)) {
        held++;
    }
    return held != NULL && held->name != NULL ? held : NULL;
}

static void put_dump(const struct played *p, const struct held *held, struct buffer *out) {
    uint64_t count = 0;
    BUFFER(payload, 0);
    while (held->members != NULL && held->members[count * 2] != NULL) {
        count++;
    }
    make_byte(&payload, held->members != NULL ? 5 : 0);
    if (held->members == NULL) {
        make_text(&payload, "a text");
    } else {
        make_length(&payload, count);
    }
    for (uint64_t i = 0; i < count; i++) {
        make_text(&payload, held->members[i * 2]);
        make_double(&payload, strtod(held->members[i * 2 + 1], NULL));
    }
    make_footer(&payload, p->version);
    payload.at[payload.size / 2] = (char)(payload.at[payload.size / 2] ^ (p->is_damaged ? 64 : 0));
    put_bulk(out, payload.at, payload.size);
}

static void put_answer(const struct played *p, const struct request *request, struct buffer *out) {
    struct bytes name = request->args[0];
    struct bytes key = request->count > 1 ? request->args[1] : name;
    const struct held *held = find_held(p, key);
    char text[64];
    if (bytes_is(name, "INFO")) {
        snprintf(text, sizeof text, "# Replication\r\nmaster_repl_offset:%llu\r\nx:1",
                 (unsigned long long)p->offset);
        put_bulk(out, text, strlen(text));
    } else if (bytes_is(name, "TYPE")) {
        snprintf(text, sizeof text, "+%s\r\n", held != NULL ? held->type : "none");
        buffer_append_text(out, text);
    } else if (bytes_is(name, "DUMP") && held != NULL) {
        put_dump(p, held, out);
    } else if (bytes_is(name, "DUMP")) {
        buffer_append_text(out, "$-1\r\n");
    } else if (bytes_is(name, "PEXPIRETIME") || bytes_is(name, "PTTL")) {
        snprintf(text, sizeof text, ":%lld\r\n",
                 held == NULL ? -2LL : (long long)held->expire_at_ms);
        buffer_append_text(out, text);
    } else if (bytes_is(name, "COMMAND")) {
        buffer_append_text(out, bytes_is(key, "INFO") ? p->command_info : p->command_keys);
    } else {
        buffer_append_text(out, "+OK\r\n");
    }
}

static const char *refusal_of(const struct played *p, const struct request *request) {
    struct bytes name = request->args[0];
    if (p->denied != NULL && bytes_is(name, p->denied)) {
        return "-NOPERM this user has no permissions to run the command\r\n";
    }
    if (p->is_old && bytes_is(name, "PEXPIRETIME")) {
        return "-ERR unknown command `PEXPIRETIME`, with args beginning with: \r\n";
    }
    if (p->is_old && request->count > 1 && bytes_is(request->args[1], "GETKEYSANDFLAGS")) {
        return "-ERR Unknown subcommand or wrong number of arguments\r\n";
    }
    return NULL;
}

/* Answers to all that it was asked. */
static void play(struct played *p, struct buffer *out) {
    static const struct resp_limits limits = {.args_max = 100,
                                              .bulk_size_max = 1 << 20,
                                              .inline_size_max = 100,
                                              .is_authenticated = true};
    struct resp_parser parser = {0};
    ENDED_BY(resp_arena_deinit) struct resp_arena arena = {0};
    uint32_t part_count = 0;
    bool is_in_multi = false;
    BUFFER(parts, 0);
    while (p->ask.output.size > 0) {
        struct request request;
        const char *error;
        size_t used;
        assert_int_equal(resp_parse(&parser, p->ask.output.at, p->ask.output.size, &limits, &arena,
                                    &request, &used, &error),
                         RESP_REQUEST);
        for (uint32_t i = 0; i < request.count; i++) {
            buffer_append_bytes(&p->said, request.args[i]);
            buffer_append_text(&p->said, i + 1 < request.count ? " " : "; ");
        }
        const char *refusal = refusal_of(p, &request);
        if (refusal != NULL) {
            buffer_append_text(out, refusal);
        } else if (bytes_is(request.args[0], "MULTI")) {
            is_in_multi = true;
            buffer_append_text(out, "+OK\r\n");
        } else if (bytes_is(request.args[0], "EXEC")) {
            char head[32];
            snprintf(head, sizeof head, "*%u\r\n", (unsigned)part_count);
            buffer_append_text(out, head);
            buffer_append(out, parts.at, parts.size);
            buffer_clear(&parts);
            is_in_multi = false;
            part_count = 0;
        } else if (is_in_multi) {
            buffer_append_text(out, "+QUEUED\r\n");
            put_answer(p, &request, &parts);
            part_count++;
        } else {
            put_answer(p, &request, out);
        }
        buffer_drop_front(&p->ask.output, used);
        resp_arena_reset(&arena);
    }
}

/* ---- both ---- */

static void wake(void *context) {
    (void)context;
}

/* The stream goes on as far as it may. */
static void go_on(struct played *p, struct bytes bytes) {
    size_t at = 0;
    p->received += bytes.size;
    do {
        at += redis_stream_take(&p->stream,
                                (struct bytes){.at = bytes.at + at, .size = bytes.size - at},
                                UINT64_MAX, p->h->server.clock.now_us);
    } while (p->stream.state == REDIS_STREAM_FOLLOWS && !p->stream.is_held &&
             (at < bytes.size || redis_stream_has_work(&p->stream)));
    assert_true(at == bytes.size || p->stream.state != REDIS_STREAM_FOLLOWS);
}

/* As a source that is asked at once when this has come. */
static void feed(struct played *p, const char *commands) {
    p->offset += strlen(commands);
    go_on(p, bytes_from_text(commands));
}

static bool ask(struct played *p) {
    redis_ask_send(&p->ask, p->received);
    return p->ask.output.size > 0;
}

/* What was asked is answered. false: what came cannot be held. */
static bool answer(struct played *p) {
    struct buffer out;
    bool is_fine = true;
    buffer_init(&out, 0);
    play(p, &out);
    for (size_t at = 0, size; at < out.size && is_fine && p->ask.state != REDIS_ASK_CLOSED;
         at += size) {
        size = out.size - at < p->piece ? out.size - at : p->piece;
        buffer_append(&p->ask.input, out.at + at, size);
        is_fine = redis_ask_take(&p->ask, UINT64_MAX);
        if (p->lost_after > 0 && at + size >= p->lost_after) {
            redis_ask_close(&p->ask);
        }
    }
    buffer_deinit(&out);
    go_on(p, BYTES(""));
    return is_fine;
}

static bool settle(struct played *p) {
    bool is_fine = true;
    for (int i = 0; i < 50 && is_fine && ask(p); i++) {
        is_fine = answer(p);
    }
    return is_fine;
}

static void begin(struct played *p) {
    static const struct held none = {.name = NULL};
    *p = (struct played){.keys = &none,
                         .offset = BEGIN,
                         .received = BEGIN,
                         .command_info = "*1\r\n*-1\r\n",
                         .command_keys = "*0\r\n",
                         .version = 11,
                         .piece = SIZE_MAX};
    log_set_level(LOG_NOTHING);
    buffer_init(&p->said, 0);
    p->h = harness_create("board top* default CAP 2\nboard few* default LIMIT 2\n");
    p->s = harness_connect(p->h);
    harness_run(p->h, p->s, "PING"); /* reads the clock */
    registry_set_passive(p->h->server.registry, true);
    redis_stream_init(&p->stream, &p->h->server, 7);
    assert_true(redis_stream_resume(&p->stream, BEGIN, 0));
    redis_ask_init(&p->ask, &p->stream, NULL, wake, NULL);
    redis_ask_greet(&p->ask, NULL, NULL);
}

static void greet(struct played *p) {
    assert_true(answer(p));
    assert_int_equal(p->ask.state, REDIS_ASK_READY);
    buffer_clear(&p->said);
}

static void end(struct played *p) {
    redis_ask_close(&p->ask);
    redis_stream_deinit(&p->stream);
    buffer_deinit(&p->said);
    ASSERT_VALID(registry_validate, p->h->server.registry);
    harness_destroy(p->h);
}

#define ASK_TEST(name)                                                                             \
    static void name##_of(struct played *p);                                                       \
    TEST(name) {                                                                                   \
        struct played *p = malloc(sizeof *p);                                                      \
        begin(p);                                                                                  \
        greet(p);                                                                                  \
        name##_of(p);                                                                              \
        end(p);                                                                                    \
        free(p);                                                                                   \
    }                                                                                              \
    static void name##_of(struct played *p)

static void expect(struct played *p, const char *line, const char *reply) {
    assert_string_equal(harness_run(p->h, p->s, line), reply);
}

static void expect_exact(struct played *p) {
    assert_int_equal(p->stream.apply.asked.count, 0);
    assert_int_equal(p->stream.offset, p->offset);
    assert_false(p->stream.is_held);
}

static bool was_said(const struct played *p, const char *words) {
    return p->said.size > 0 && memmem(p->said.at, p->said.size, words, strlen(words)) != NULL;
}

/* COMMAND INFO of one key, in this category. */
#define INFO_OF(category)                                                                          \
    "*1\r\n*7\r\n$1\r\nx\r\n:-2\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n*2\r\n+@write\r\n+" category  \
    "\r\n"
#define INFO_MOVABLE                                                                               \
    "*1\r\n*7\r\n$1\r\nx\r\n:-2\r\n*2\r\n+write\r\n+movablekeys\r\n:0\r\n:0\r\n:0\r\n*1\r\n+@"     \
    "write\r\n"

static const char *const of_ties[] = {"zoe", "7", "kim", "7", "bob", "9", NULL};
static const struct held ties[] = {{"z", "zset", of_ties, -1}, {.name = NULL}};

/* ---- tests ---- */

ASK_TEST(who_stays_keeps_place_among_equals_and_only_others_change) {
    feed(p, "ZADD z 7 kim 7 ann 7 zoe 1 low 8 bob\r\n");
    p->keys = ties;
    p->command_info = INFO_OF("@sortedset");
    feed(p, "ZPOPMIN z 2\r\n");
    assert_true(settle(p));
    expect(p, "ZREVRANGE z 0 -1 WITHSCORES",
           "*6\r\n$3\r\nbob\r\n$1\r\n9\r\n$3\r\nkim\r\n$1\r\n7\r\n$3\r\nzoe\r\n$1\r\n7\r\n");
    expect_exact(p);
}

ASK_TEST(a_key_is_asked_for_once_however_often_it_comes) {
    feed(p, "ZADD z 1 ann\r\n");
    p->keys = ties;
    feed(p, "ZUNIONSTORE z 1 a\r\nZADD z 5 eve\r\nZINTERSTORE z 1 a\r\nZREM z eve\r\n"
            "ZDIFFSTORE z 1 b\r\nZINCRBY z 5 kim\r\nPEXPIRE z 50\r\nPERSIST z\r\nHSET z f v\r\n");
    assert_int_equal(p->stream.apply.asked.total, 1);
    assert_true(settle(p));
    expect(p, "ZREVRANGE z 0 -1", "*3\r\n$3\r\nbob\r\n$3\r\nzoe\r\n$3\r\nkim\r\n");
    feed(p, "ZINCRBY z 5 kim\r\n"); /* behind the answer */
    expect(p, "ZSCORE z kim", "$2\r\n12\r\n");
    expect_exact(p);
}

/* 4,000 members, popped every ten milliseconds for ten seconds. */
ASK_TEST(a_large_board_that_is_popped_all_the_time_comes_with_a_megabyte_a_second_at_most) {
    enum { MEMBERS = 4000, POPS = 1000, POP_US = 10000, TEXT = 24 };
    static char texts[MEMBERS][2][TEXT];
    static const char *members[2 * MEMBERS + 1];
    static const struct held large[] = {{"z", "zset", members, -1}, {.name = NULL}};
    size_t size = 0;
    uint32_t asked_count = 0;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[2 * i] = texts[i][0];
        members[2 * i + 1] = texts[i][1];
        snprintf(texts[i][0], TEXT, "player-%012u", i);
        snprintf(texts[i][1], TEXT, "%u", i);
        size += strlen(texts[i][0]) + 9; /* its length, and a double */
    }
    p->keys = large;
    p->command_info = INFO_OF("@sortedset");
    for (uint32_t i = 0; i < POPS; i++) {
        p->h->server.clock.now_us += POP_US;
        feed(p, "ZPOPMIN z\r\n");
        asked_count += settle(p) && was_said(p, "DUMP z");
        buffer_clear(&p->said);
    }
    /* The first two come at once, and the rest in their time. */
    assert_in_range(asked_count * size, 5 * 1000 * 1000, POPS * POP_US + 3 * size);
    feed(p, "ZPOPMIN z\r\n");
    p->h->server.clock.now_us += 200 * 1000; /* nothing is written any more */
    go_on(p, BYTES(""));
    assert_true(settle(p));
    expect(p, "ZCARD z", ":4000\r\n");
    expect_exact(p);
}

/* What the source did up to the answer is in it already, and what comes later is not. */
ASK_TEST(the_stream_goes_on_at_the_offset_of_the_answer) {
    static const char before[] = "ZINCRBY z 2 zoe\r\nZINCRBY other 1 ann\r\n";
    static const char after[] = "ZINCRBY z 100 zoe\r\n";
    feed(p, "ZUNIONSTORE z 1 a\r\n");
    assert_true(ask(p));
    p->keys = ties;
    p->offset += sizeof before - 1; /* at the source, when the question is there */
    assert_true(answer(p));
    expect(p, "ZSCORE z zoe", "$1\r\n7\r\n");
    assert_int_equal(p->stream.apply.asked.count, 1);
    assert_int_equal(redis_apply_exact_offset(&p->stream.apply, p->stream.offset), BEGIN);
    go_on(p, bytes_from_text(before));
    expect(p, "ZSCORE z zoe", "$1\r\n7\r\n");
    expect(p, "ZSCORE other ann", "$1\r\n1\r\n");
    expect_exact(p);
    feed(p, after);
    expect(p, "ZSCORE z zoe", "$3\r\n107\r\n");
}

/* An answer is of no earlier offset than what had come before the question. */
ASK_TEST(nothing_is_applied_behind_what_had_come_before_the_question) {
    feed(p, "ZUNIONSTORE z 1 a\r\n");
    assert_true(ask(p));
    p->keys = ties;
    feed(p, "ZINCRBY z 2 zoe\r\nZINCRBY other 1 ann\r\n");
    assert_true(p->stream.is_held);
    expect(p, "EXISTS other", ":0\r\n");
    p->offset -= strlen("ZINCRBY other 1 ann\r\n");
    assert_true(answer(p));
    p->offset += strlen("ZINCRBY other 1 ann\r\n");
    expect(p, "ZSCORE z zoe", "$1\r\n7\r\n");
    expect(p, "ZSCORE other ann", "$1\r\n1\r\n");
    expect_exact(p);
}

TEST(an_answer_may_be_cut_anywhere) {
    for (size_t piece = 1; piece < 400; piece = piece < 20 ? piece + 1 : piece * 2) {
        OWNED struct played *p = malloc(sizeof *p);
        begin(p);
        greet(p);
        p->piece = piece;
        p->keys = ties;
        p->command_info = INFO_OF("@sortedset");
        feed(p, "ZADD z 7 zoe 1 ann\r\nZPOPMIN z\r\nZUNIONSTORE none 1 a\r\n");
        assert_true(settle(p));
        expect(p, "ZREVRANGE z 0 -1", "*3\r\n$3\r\nbob\r\n$3\r\nzoe\r\n$3\r\nkim\r\n");
        expect(p, "EXISTS none", ":0\r\n");
        expect_exact(p);
        end(p);
    }
}

/* Behind every byte of the answer. */
TEST(what_a_lost_connection_was_asked_is_asked_again) {
    for (size_t lost_after = 1; lost_after < 300; lost_after++) {
        OWNED struct played *p = malloc(sizeof *p);
        begin(p);
        greet(p);
        p->piece = 1;
        p->keys = ties;
        feed(p, "ZADD z 7 zoe 1 ann\r\nZUNIONSTORE z 1 a\r\n");
        p->lost_after = lost_after;
        assert_true(settle(p));
        p->lost_after = 0;
        if (p->ask.state == REDIS_ASK_CLOSED) {
            redis_ask_greet(&p->ask, NULL, NULL);
        }
        assert_true(settle(p));
        expect(p, "ZREVRANGE z 0 -1", "*3\r\n$3\r\nbob\r\n$3\r\nzoe\r\n$3\r\nkim\r\n");
        expect_exact(p);
        end(p);
    }
}

ASK_TEST(a_restart_knows_which_keys_were_not_answered) {
    feed(p, "ZADD z 1 ann\r\nZUNIONSTORE z 1 a\r\nSELECT 3\r\nZUNIONSTORE y 1 a\r\n");
    assert_true(ask(p));
    redis_ask_close(&p->ask);
    uint64_t offset = p->stream.offset;
    redis_stream_deinit(&p->stream);
    redis_stream_init(&p->stream, &p->h->server, 8);
    assert_true(redis_stream_resume(&p->stream, offset, 3));
    redis_ask_init(&p->ask, &p->stream, NULL, wake, NULL);
    redis_ask_greet(&p->ask, NULL, NULL);
    greet(p);
    assert_int_equal(p->stream.apply.asked.count, 2);
    p->keys = ties;
    feed(p, "ZADD y 4 eve\r\nSELECT 0\r\nZADD z 5 eve\r\n");
    assert_true(settle(p));
    expect(p, "ZREVRANGE z 0 -1", "*3\r\n$3\r\nbob\r\n$3\r\nzoe\r\n$3\r\nkim\r\n");
    expect_exact(p);
    struct redis_asked_keys kept;
    redis_stream_init_asked(&kept, p->h->server.registry);
    assert_true(redis_stream_resume_asked(&kept, 0));
    assert_int_equal(kept.count, 0);
}

ASK_TEST(keys_that_are_moved_before_the_answer_are_asked_for_too) {
    static const char *const lines[] = {
        "RENAME a z\r\n", "COPY a z REPLACE\r\n", "RENAME a b\r\nRENAME b z\r\n",
        "MOVE a 3\r\nSELECT 3\r\nMOVE a 0\r\nSELECT 0\r\nRENAME a z\r\n"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        p->keys = NULL;
        feed(p, "FLUSHALL\r\nZADD z 1 old\r\nZADD a 7 kim\r\nZUNIONSTORE a 2 c d\r\n");
        feed(p, lines[i]);
        p->keys = ties;
        assert_true(settle(p));
        expect(p, "ZREVRANGE z 0 -1", "*3\r\n$3\r\nbob\r\n$3\r\nzoe\r\n$3\r\nkim\r\n");
        expect(p, "EXISTS a b", ":0\r\n");
        expect_exact(p);
    }
}

/* An answer of later is in place, and then all keys of its database change, as they have before it. */
ASK_TEST(a_database_that_is_emptied_or_swapped_before_the_answers_offset) {
    static const char *const lines[] = {"FLUSHDB\r\n", "FLUSHALL\r\n", "SWAPDB 0 3\r\n"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        p->keys = NULL;
        feed(p, "FLUSHALL\r\nSELECT 3\r\nZADD z 1 old\r\nSELECT 0\r\nZUNIONSTORE z 2 c d\r\n");
        assert_true(ask(p));
        p->keys = ties;
        p->offset += strlen(lines[i]);
        assert_true(answer(p));
        assert_int_equal(p->stream.apply.asked.count, 1);
        go_on(p, bytes_from_text(lines[i]));
        assert_true(settle(p));
        expect(p, "ZREVRANGE z 0 -1", "*3\r\n$3\r\nbob\r\n$3\r\nzoe\r\n$3\r\nkim\r\n");
        expect_exact(p);
    }
}

ASK_TEST(a_transaction_ends_before_its_keys_are_answered) {
    p->keys = ties;
    feed(p, "MULTI\r\nZADD z 1 ann\r\nZUNIONSTORE z 1 a\r\n");
    assert_true(ask(p));
    feed(p, "ZADD z 1 bea\r\nZADD y 1 bea\r\n");
    expect(p, "EXISTS y", ":0\r\n");
    feed(p, "EXEC\r\n");
    assert_true(answer(p));
    assert_true(settle(p));
    expect(p, "ZCARD y", ":1\r\n");
    expect(p, "ZREVRANGE z 0 -1", "*3\r\n$3\r\nbob\r\n$3\r\nzoe\r\n$3\r\nkim\r\n");
    expect_exact(p);
}

ASK_TEST(a_key_of_another_type_takes_the_place_of_a_board) {
    static const struct held text[] = {
        {"z", "string", NULL, -1}, {"vectors", "vectorset", NULL, -1}, {.name = NULL}};
    feed(p, "ZADD z 1 ann\r\n");
    p->keys = text;
    p->command_info = INFO_OF("@string");
    feed(p, "SET z text\r\nAPPEND y text\r\n");
    assert_true(settle(p));
    expect(p, "EXISTS z", ":0\r\n");
    assert_true(was_said(p, "TYPE z"));
    assert_false(was_said(p, "DUMP z"));
    assert_false(was_said(p, "TYPE y"));
    assert_int_equal(p->stream.apply.skipped_count, 1);
    expect_exact(p);
    p->command_info = INFO_OF("@vectorset"); /* which may be anything */
    feed(p, "VADD vectors 1\r\n");
    assert_true(settle(p));
    assert_true(was_said(p, "TYPE vectors"));
    assert_false(was_said(p, "DUMP vectors"));
    expect_exact(p);
    p->command_info = INFO_OF("@sortedset"); /* although its value is none */
    feed(p, "ZADD z 1 ann\r\nZODD z\r\n");
    assert_true(settle(p));
    expect(p, "EXISTS z", ":0\r\n");
}

ASK_TEST(a_command_that_nobody_knows_is_asked_for_its_keys) {
    p->keys = ties;
    p->command_info = INFO_MOVABLE;
    p->command_keys =
        "*2\r\n*2\r\n$1\r\nz\r\n*2\r\n+OW\r\n+update\r\n*2\r\n$1\r\na\r\n*2\r\n+RO\r\n+access\r\n";
    feed(p, "ZADD a 1 ann\r\nZNEW 2 a z\r\nZADD a 2 bea\r\n");
    assert_true(p->stream.is_held);
    expect(p, "ZCARD a", ":1\r\n");
    assert_true(settle(p));
    assert_true(was_said(p, "COMMAND GETKEYSANDFLAGS ZNEW 2 a z; "));
    assert_false(was_said(p, "DUMP a"));
    expect(p, "ZCARD a", ":2\r\n");
    expect(p, "ZCARD z", ":3\r\n");
    expect_exact(p);
    buffer_clear(&p->said);
    p->command_keys = "-ERR The command has no key arguments\r\n";
    feed(p, "znew 0\r\n");
    assert_true(settle(p));
    assert_false(was_said(p, "INFO znew"));
    assert_true(was_said(p, "GETKEYSANDFLAGS znew 0; "));
    assert_int_equal(p->stream.apply.skipped_count, 1);
    expect_exact(p);
}

ASK_TEST(a_transaction_selects_the_database_of_its_keys) {
    p->keys = ties;
    feed(p, "MULTI\r\nZADD z 1 ann\r\nSELECT 3\r\nZUNIONSTORE z 1 a\r\nZADD y 1 bea\r\nEXEC\r\n");
    assert_true(settle(p));
    expect(p, "ZCARD z", ":1\r\n");
    expect(p, "EXISTS y", ":0\r\n");
    expect(p, "SELECT 3", "+OK\r\n");
    expect(p, "ZCARD z", ":3\r\n");
    expect(p, "ZCARD y", ":1\r\n");
    expect_exact(p);
}

/* In the transaction that it is in. */
ASK_TEST(an_unknown_command_in_a_transaction) {
    p->keys = ties;
    p->command_info = INFO_MOVABLE;
    p->command_keys = "*1\r\n*2\r\n$1\r\nz\r\n*1\r\n+RW\r\n";
    feed(p, "MULTI\r\nZADD z 1 ann\r\nZNEW z\r\nZADD y 1 bea\r\nEXEC\r\n");
    assert_true(settle(p));
    expect(p, "ZCARD z", ":3\r\n");
    expect(p, "ZCARD y", ":1\r\n");
    expect_exact(p);
}

/* SET comes behind what makes the board, and is looked at before. */
ASK_TEST(another_type_takes_the_place_of_a_board_of_the_same_transaction) {
    static const struct held text[] = {{"z", "string", NULL, -1}, {.name = NULL}};
    p->keys = text;
    p->command_info = INFO_OF("@string");
    feed(p,
         "SET y text\r\nMULTI\r\nSET x text\r\nZADD z 1 ann\r\nSET z text\r\nSELECT 3\r\nZADD z 1 "
         "bea\r\nSET y text\r\nEXEC\r\n");
    assert_true(settle(p));
    expect(p, "EXISTS z", ":0\r\n");
    assert_true(was_said(p, "TYPE z"));
    assert_false(was_said(p, "TYPE x"));
    assert_false(was_said(p, "TYPE y"));
    expect(p, "SELECT 3", "+OK\r\n");
    expect(p, "ZCARD z", ":1\r\n");
    expect_exact(p);
}

/* The same where the source has to say which keys the command has. */
ASK_TEST(another_type_of_an_unknown_command_takes_the_place_of_a_board_of_the_same_transaction) {
    static const struct held list[] = {{"z", "list", NULL, -1}, {.name = NULL}};
    p->keys = list;
    p->command_info =
        "*1\r\n*7\r\n$4\r\nsort\r\n:-2\r\n*1\r\n+movablekeys\r\n:1\r\n:1\r\n:1\r\n*1\r\n"
        "+@list\r\n";
    p->command_keys = "*1\r\n*2\r\n$1\r\nz\r\n*1\r\n+OW\r\n";
    feed(p, "MULTI\r\nZADD z 1 ann\r\nSORT s STORE z\r\nEXEC\r\n");
    assert_true(settle(p));
    expect(p, "EXISTS z", ":0\r\n");
    expect_exact(p);
}

ASK_TEST(an_option_that_is_not_known_here_is_asked_for) {
    p->keys = ties;
    feed(p, "ZADD z NEWER 1 ann\r\nZADD z what ann\r\n");
    assert_true(settle(p));
    expect(p, "ZCARD z", ":3\r\n");
    expect_exact(p);
}

ASK_TEST(an_expiry_comes_with_its_key) {
    static const struct held lasting[] = {{"z", "zset", of_ties, 4102444800000}, {.name = NULL}};
    feed(p, "ZADD z 1 ann\r\n");
    p->keys = lasting;
    feed(p, "ZUNIONSTORE z 1 a\r\n");
    assert_true(settle(p));
    expect(p, "PEXPIRETIME z", ":4102444800000\r\n");
    p->keys = ties;
    feed(p, "ZUNIONSTORE z 1 a\r\n");
    assert_true(settle(p));
    expect(p, "PEXPIRETIME z", ":-1\r\n");
}

TEST(a_source_before_redis_7_is_asked_otherwise) {
    static const struct held lasting[] = {{"z", "zset", of_ties, 60000}, {.name = NULL}};
    OWNED struct played *p = malloc(sizeof *p);
    begin(p);
    p->is_old = true;
    greet(p);
    p->keys = lasting;
    p->command_info = INFO_MOVABLE;
    p->command_keys = "*1\r\n$1\r\nz\r\n";
    feed(p, "ZADD z 1 ann\r\nPEXPIREAT z 4102444800000\r\nZNEW z\r\n");
    assert_true(settle(p));
    assert_true(was_said(p, "COMMAND GETKEYS ZNEW z; "));
    assert_true(was_said(p, "PTTL z; "));
    expect(p, "ZCARD z", ":3\r\n");
    assert_memory_not_equal(harness_run(p->h, p->s, "PEXPIRETIME z"), ":4102444800000", 14);
    expect_exact(p);
    end(p);
}

TEST(a_right_that_is_missing_is_named_at_the_start) {
    static const char *const needed[] = {"DUMP",   "TYPE", "INFO",    "MULTI",      "EXEC",
                                         "SELECT", "PTTL", "COMMAND", "PEXPIRETIME"};
    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        OWNED struct played *p = malloc(sizeof *p);
        begin(p);
        p->denied = needed[i];
        assert_true(answer(p));
        assert_true(p->ask.is_denied);
        assert_false(p->ask.has_greeted);
        assert_int_equal(p->ask.state, REDIS_ASK_CLOSED);
        assert_non_null(strstr(p->ask.error, needed[i]));
        assert_non_null(strstr(p->ask.error, "+dump"));
        end(p);
    }
}

TEST(an_answer_that_cannot_be_held_stops_it) {
    static const char *const of_halves[] = {"ann", "0.5", NULL};
    static const char *const of_many[] = {"a", "1", "b", "2", "c", "3", NULL};
    static const struct {
        struct held held;
        unsigned version;
        bool is_damaged;
        const char *told;
    } cases[] = {
        {{"few", "zset", of_many, -1}, 11, false, "LIMIT"},
        {{"few", "zset", of_halves, -1}, 11, false, "'ann'"},
        {{"few", "zset", of_ties, -1}, 17, false, "needs a newer server"},
        {{"few", "zset", of_ties, -1}, 80, false, "needs a newer server"},
        {{"few", "zset", of_ties, -1}, 11, true, "'few'"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        OWNED struct played *p = malloc(sizeof *p);
        const struct held keys[] = {cases[i].held, {.name = NULL}};
        begin(p);
        greet(p);
        p->keys = keys;
        p->version = cases[i].version;
        p->is_damaged = cases[i].is_damaged;
        feed(p, "ZADD few 1 old\r\nZUNIONSTORE few 1 a\r\n");
        assert_false(settle(p));
        assert_non_null(strstr(p->stream.apply.error, cases[i].told));
        end(p);
    }
}

ASK_TEST(an_answer_of_another_server_is_not_taken) {
    feed(p, "ZUNIONSTORE z 1 a\r\n");
    assert_true(ask(p));
    p->keys = ties;
    p->offset = BEGIN - 500;
    assert_true(answer(p));
    assert_int_equal(p->ask.state, REDIS_ASK_CLOSED);
    p->offset = BEGIN + 500;
    p->ask.id = "another-history";
    redis_ask_greet(&p->ask, NULL, NULL);
    assert_true(settle(p));
    assert_int_equal(p->ask.state, REDIS_ASK_CLOSED);
    assert_int_equal(p->stream.apply.asked.count, 1);
    expect(p, "EXISTS z", ":0\r\n");
}

ASK_TEST(many_keys_are_asked_for_in_turn_and_in_their_databases) {
    char line[64];
    p->keys = ties;
    for (int i = 0; i < 300; i++) {
        snprintf(line, sizeof line, "SELECT %d\r\nZUNIONSTORE z%d 1 a\r\nZUNIONSTORE z 1 a\r\n",
                 i % 3, i);
        feed(p, line);
    }
    assert_true(settle(p));
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line, "SELECT %d", i);
        expect(p, line, "+OK\r\n");
        expect(p, "ZCARD z", ":3\r\n");
        expect(p, "DBSIZE", ":1\r\n");
    }
    expect_exact(p);
}

ASK_TEST(memory_that_is_missing_leaves_keys_that_hold_together) {
    bool is_over = false;
    p->command_info = INFO_OF("@sortedset");
    for (uint64_t nth = 1; !is_over; nth++) {
        p->keys = NULL;
        feed(p, "FLUSHALL\r\nZADD z 7 zoe 1 ann\r\n");
        assert_true(settle(p));
        p->keys = ties;
        memory_fail_at(nth);
        bool is_asked = redis_apply_prepare(
            &p->stream.apply, &(struct request){.count = 3,
                                                .args = (struct bytes[]){BYTES("ZUNIONSTORE"),
                                                                         BYTES("z"), BYTES("1")}});
        is_asked =
            is_asked &&
            redis_apply_run(&p->stream.apply,
                            &(struct request){.count = 3,
                                              .args = (struct bytes[]){BYTES("ZUNIONSTORE"),
                                                                       BYTES("z"), BYTES("1")}});
        memory_fail_at(0);
        is_over = is_asked;
        p->stream.apply.error[0] = '\0';
        assert_true(settle(p));
        expect(p, "EXISTS z", ":1\r\n");
    }
    expect_exact(p);
}
