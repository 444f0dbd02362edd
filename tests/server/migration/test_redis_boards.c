/* Boards of a Redis with the module, followed: copies of them, and changes as LB.APPLY; its bans and unfinished orders,
 * and changes as LB.APPLYSTATE. The source here is a server of
 * the tests whose effects become blobs as the module makes them; the module itself is in
 * tests/module/test_replicaof.py. */
#include "tests/server/rdb/state_maker.h"

#include "server/commands/ban.h"
#include "server/migration/redis_stream.h"
#include "server/system/log.h"
#include "skiplist/keyspace/effect.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"

struct moving {
    struct harness *source, *ours;
    struct session *theirs, *s;
    struct redis_stream stream;
    struct effect_listener listener;
    struct effect_encoder encoder, state_encoder;
    struct buffer blob, state_blob, wire;
    bool has_effects, has_state;
};

/* ---- the source ---- */

static void receive(void *context, const struct effect *effect) {
    struct moving *m = context;
    if (effect->database >= REGISTRY_SYSTEM) {
        m->has_state = true;
        effect_bytes_encode(&m->state_encoder, effect);
        return;
    }
    m->has_effects = true;
    if (effect->kind != EFFECT_FILL) {
        effect_bytes_encode(&m->encoder, effect);
        return;
    }
    struct effect_fill fill = {.whole = *effect};
    struct effect each;
    while (effect_fill_next(&fill, &each)) {
        effect_bytes_encode(&m->encoder, &each);
    }
}

static void make_word(struct buffer *out, const char *at, size_t size) {
    char head[32];
    int head_size = snprintf(head, sizeof head, "$%zu\r\n", size);
    buffer_append(out, head, (size_t)head_size);
    buffer_append(out, at, size);
    buffer_append(out, "\r\n", 2);
}

static void feed(struct moving *m, struct bytes bytes) {
    size_t at = 0;
    while (m->stream.state != REDIS_STREAM_STOPPED &&
           (at < bytes.size || redis_stream_has_work(&m->stream))) {
        at += redis_stream_take(&m->stream,
                                (struct bytes){.at = bytes.at + at, .size = bytes.size - at},
                                UINT64_MAX, m->ours->server.clock.now_us);
        if (m->stream.state == REDIS_STREAM_LOADED) {
            assert_true(redis_stream_exchange(&m->stream));
        }
    }
}

static void feed_blob(struct moving *m, const char *name, struct bytes blob) {
    buffer_clear(&m->wire);
    buffer_append(&m->wire, "*3\r\n", 4);
    make_word(&m->wire, "LB.APPLY", 8);
    make_word(&m->wire, name, strlen(name));
    make_word(&m->wire, blob.at, blob.size);
    feed(m, (struct bytes){.at = m->wire.at, .size = m->wire.size});
}

static void feed_state(struct moving *m, struct bytes blob) {
    buffer_clear(&m->wire);
    buffer_append(&m->wire, "*2\r\n", 4);
    make_word(&m->wire, "LB.APPLYSTATE", 13);
    make_word(&m->wire, blob.at, blob.size);
    feed(m, (struct bytes){.at = m->wire.at, .size = m->wire.size});
}

static struct bytes blob_of(const struct moving *m) {
    return (struct bytes){.at = m->blob.at, .size = m->blob.size};
}

static void begin_blob(struct moving *m) {
    m->has_effects = false;
    m->has_state = false;
    effect_bytes_begin_blob(&m->encoder, &m->blob, harness_now_us(m->source));
    effect_bytes_begin_blob(&m->state_encoder, &m->state_blob, harness_now_us(m->source));
}

static void change(struct moving *m, const char *line) {
    begin_blob(m);
    harness_run(m->source, m->theirs, line);
    if (m->has_effects) {
        feed_blob(m, "k0", blob_of(m));
    }
    if (m->has_state) {
        feed_state(m, (struct bytes){.at = m->state_blob.at, .size = m->state_blob.size});
    }
}

/* ---- both ---- */

static void begin(struct moving *m) {
    *m = (struct moving){.has_effects = false};
    log_set_level(LOG_NOTHING);
    buffer_init(&m->blob, 0);
    buffer_init(&m->state_blob, 0);
    buffer_init(&m->wire, 0);
    m->source =
        harness_create("layout two FIELD a 20 FIELD b 9 ASC TIME 24 M LATEST\nboard k1 two\n"
                       "board k2 default CAP 20\n");
    m->theirs = harness_connect(m->source);
    m->ours = harness_create("layout other FIELD a 9\nboard k* other LIMIT 2\n");
    m->ours->live_count_before = 0; /* both leaks are found at the source's end */
    m->s = harness_connect(m->ours);
    harness_run(m->ours, m->s, "PING"); /* reads the clock */
    harness_run(m->source, m->theirs, "PING");
    registry_set_passive(m->ours->server.registry, true);
    redis_stream_init(&m->stream, &m->ours->server, 7);
    redis_stream_restart(&m->stream, 0);
    m->listener = (struct effect_listener){.receive = receive, .context = m};
}

static void feed_copy(struct moving *m) {
    struct buffer file;
    buffer_init(&file, 0);
    MAKE_RAW(&file, "REDIS0010\xfe\x00");
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "k%d", i);
        const struct registry_key *key = registry_peek(
            m->source->server.registry, 0, bytes_from_text(name), harness_now_us(m->source) / 1000);
        if (key != NULL) {
            make_board(&file, name, key, (uint64_t)harness_now_us(m->source), 100);
        }
    }
    make_end(&file);
    feed(m, (struct bytes){.at = file.at, .size = file.size});
    buffer_deinit(&file);
    effect_listener_add(m->source->server.registry, &m->listener);
}

static void end(struct moving *m) {
    effect_listener_remove(m->source->server.registry, &m->listener);
    buffer_deinit(&m->blob);
    buffer_deinit(&m->state_blob);
    buffer_deinit(&m->wire);
    redis_stream_deinit(&m->stream);
    ASSERT_VALID(registry_validate, m->ours->server.registry);
    harness_destroy(m->ours);
    harness_destroy(m->source);
}

#define MOVING_TEST(name)                                                                          \
    static void name##_of(struct moving *m);                                                       \
    TEST(name) {                                                                                   \
        struct moving m;                                                                           \
        begin(&m);                                                                                 \
        name##_of(&m);                                                                             \
        end(&m);                                                                                   \
    }                                                                                              \
    static void name##_of(struct moving *m)

/* To the last bit: DUMP has layout, options, order and times. */
static void expect_equal(struct moving *m) {
    assert_string_equal(m->stream.error, "");
    for (int i = 0; i < 3; i++) {
        char line[32];
        snprintf(line, sizeof line, "DUMP k%d", i);
        struct bytes ours = {.at = harness_run(m->ours, m->s, line)};
        struct bytes theirs = {.at = harness_run(m->source, m->theirs, line)};
        ours.size = m->ours->reply.size;
        theirs.size = m->source->reply.size;
        assert_true(bytes_equal(ours, theirs));
    }
    expect_same_state(m->source->server.registry, m->ours->server.registry);
    expect_same_state(m->ours->server.registry, m->source->server.registry);
}

/* @ becomes a key, # a number, ~ a member. */
static void expand(const char *form, struct random *random, char *line, size_t room) {
    size_t size = 0;
    for (; *form != '\0' && size + 8 < room; form++) {
        int number = (int)random_below(random, *form == '@' ? 3 : *form == '#' ? 500 : 50);
        if (*form == '@' || *form == '#' || *form == '~') {
            size += (size_t)snprintf(line + size, room - size, "%s%d",
                                     *form == '@'   ? "k"
                                     : *form == '~' ? "m"
                                                    : "",
                                     number);
        } else {
            line[size++] = *form;
        }
    }
    line[size] = '\0';
}

MOVING_TEST(every_change_makes_the_same_board_to_the_last_bit) {
    static const char *const changes[] = {
        "ZADD @ # ~ # ~ # ~",
        "ZADD @ 5 ~ 5 ~ 5 ~",
        "ZADD @ GT CH # ~",
        "LB.ADD k1 # 3 ~",
        "LB.ADD k1 * 5 ~",
        "ZINCRBY @ 3 ~",
        "ZREM @ ~ ~ ~",
        "ZREMRANGEBYRANK @ 0 1",
        "ZREMRANGEBYSCORE @ 5 #",
        "ZPOPMAX @ 2",
        "ZUNIONSTORE @ 2 @ @",
        "ZRANGESTORE @ @ 0 9",
        "DEL @",
        "RENAME @ @",
        "COPY @ @ REPLACE",
        "LB.ROLL @ archive#",
        "LB.CREATE @",
        "LB.CREATE @ FIELD a 20 FIELD b 9 TIME 30 S LATEST",
        "LB.ALTER @ CAP #",
        "LB.ALTER @ CAP NONE",
        "LB.ALTER @ LIMIT 3#",
        "LB.ALTER @ THAW",
        "EXPIRE @ 100#",
        "PERSIST @",
        "LB.SUBMIT 2 k0 k2 INCR 5 ~",
        "LB.BAN ~",
        "LB.BAN ~ EX 1#",
        "LB.BAN ~ MATCH @",
        "LB.UNBAN ~",
        "LB.UNBAN ~",
        "LB.UNBAN ~",
        "LB.FORGET ~",
    };
    struct random random = random_begin(__func__);
    for (int i = 0; i < 400; i++) {
        harness_run_format(m->source, m->theirs, "ZADD k%d %d m%d", i % 2 * 2, i % 7, i);
    }
    harness_run(m->source, m->theirs, "LB.CREATE k1 FIELD a 20 FIELD b 9 TIME 30 S CAP 90");
    feed_copy(m);
    assert_int_equal(m->stream.load.module_board_count, 3);
    expect_equal(m);
    for (int i = 0; i < 3000; i++) {
        char line[128];
        expand(changes[random_below(&random, COUNT_OF(changes))], &random, line, sizeof line);
        m->source->wall_us += (int64_t)random_below(&random, 2000);
        change(m, line);
        expect_equal(m);
    }
}

MOVING_TEST(changes_go_to_the_database_that_is_selected) {
    feed_copy(m);
    feed(m, BYTES("SELECT 3\r\n"));
    change(m, "ZADD k0 7 ann 8 bob");
    change(m, "RENAME k0 k1");
    feed(m, BYTES("COPY k1 k2 DB 0\r\nPEXPIREAT k1 4102444800000\r\n"));
    harness_expect(m->ours, m->s, "ZRANGE k2 0 -1", "*2\r\n$3\r\nann\r\n$3\r\nbob\r\n");
    harness_expect(m->ours, m->s, "SELECT 3", "+OK\r\n");
    harness_expect(m->ours, m->s, "ZRANGE k1 0 -1", "*2\r\n$3\r\nann\r\n$3\r\nbob\r\n");
    harness_expect(m->ours, m->s, "PEXPIRETIME k1", ":4102444800000\r\n");
    harness_expect(m->ours, m->s, "EXISTS k0", ":0\r\n");
}

/* At the source a board replaces a key of another type, which is not here. */
MOVING_TEST(what_is_not_here_may_be_replaced) {
    feed_copy(m);
    begin_blob(m); /* what the module has on its stage for a set */
    harness_run(m->source, m->theirs, "HSET k0 f v");
    change(m, "DEL k0");
    change(m, "ZADD k0 7 ann");
    harness_expect(m->ours, m->s, "ZRANGE k0 0 -1", "*1\r\n$3\r\nann\r\n");
    assert_string_equal(m->stream.error, "");
}

/* The source's registry knows no expiry, as in the module, where that is the host's. */
MOVING_TEST(a_board_that_rolls_over_expires_as_before_and_its_archive_as_an_archive) {
    feed_copy(m);
    for (int i = 0; i < 3; i++) {
        char line[64];
        snprintf(line, sizeof line, "LB.CREATE k%d PERIOD DAY ARCHIVE 3", i);
        change(m, line);
        snprintf(line, sizeof line, "LB.ADD k%d 7 ann", i);
        change(m, line);
    }
    feed(m, BYTES("PEXPIREAT k0 4102444800000\r\nPEXPIREAT k2 4102444800002\r\n"));
    m->source->wall_us += 86400 * 1000000LL;
    change(m, "LB.SUBMIT 3 k0 k1 k2 8 bob"); /* rolls all three */
    assert_string_equal(m->stream.error, "");
    harness_expect(m->ours, m->s, "EXISTS k0 k1 k2", ":3\r\n");
    harness_expect(m->ours, m->s, "PEXPIRETIME k0", ":4102444800000\r\n");
    harness_expect(m->ours, m->s, "PEXPIRETIME k1", ":-1\r\n");
    harness_expect(m->ours, m->s, "PEXPIRETIME k2", ":4102444800002\r\n");
    const char *reply = harness_run(m->ours, m->s, "KEYS k0@*"); /* one name */
    assert_memory_equal(reply, "*1\r\n", 4);
    char archive[64];
    assert_int_equal(sscanf(reply + 4, "$%*d\r\n%63s", archive), 1);
    harness_run_format(m->source, m->theirs, "PEXPIRETIME %s", archive);
    harness_run_format(m->ours, m->s, "PEXPIRETIME %s", archive);
    assert_string_equal(m->ours->reply.at, m->source->reply.at);
}

MOVING_TEST(server_time_is_at_least_that_of_the_source) {
    feed_copy(m);
    m->source->wall_us += 30 * 1000000;
    change(m, "ZADD k0 7 ann");
    int64_t time_us = harness_now_us(m->source);
    harness_run(m->ours, m->s, "PING");
    assert_true(m->ours->server.clock.now_us >= time_us - 1000);
    assert_true(m->stream.apply.now_us >= time_us - 1000);
}

/* ---- bans ---- */

static void feed_whole_copy(struct moving *m) {
    struct buffer file;
    buffer_init(&file, 0);
    write_file(&file, m->source->server.registry, harness_now_us(m->source));
    feed(m, (struct bytes){.at = file.at, .size = file.size});
    buffer_deinit(&file);
    effect_listener_add(m->source->server.registry, &m->listener);
}

MOVING_TEST(a_copy_replaces_bans_and_orders) {
    enum { MANY = 1000 }; /* they go in steps */
    registry_set_passive(m->ours->server.registry, false);
    for (int i = 0; i < MANY; i++) {
        harness_run_format(m->ours, m->s, "LB.BAN ours%d", i);
    }
    harness_run(m->ours, m->s, "LB.BAN ann MATCH ours*");
    put_order(m->ours->server.registry, "ours567890123456", "ann");
    registry_set_passive(m->ours->server.registry, true);
    for (int i = 0; i < MANY; i++) {
        harness_run_format(m->source, m->theirs, "LB.BAN user%d MATCH k%d", i, i % 3);
    }
    harness_run(m->source, m->theirs, "LB.BAN ann EX 100");
    put_order(m->source->server.registry, "theirs7890123456", "bob");
    feed_whole_copy(m);
    assert_int_equal(m->stream.state, REDIS_STREAM_FOLLOWS);
    assert_int_equal(m->stream.load.ban_count, MANY + 1);
    expect_equal(m);
    change(m, "LB.UNBAN ann");
    change(m, "LB.BAN user7");
    expect_equal(m);
    assert_int_equal(m->stream.apply.skipped_count, 0);
}

/* The time of a ban is over here before the source says so. */
MOVING_TEST(what_is_gone_already_may_be_removed) {
    feed_whole_copy(m);
    change(m, "LB.BAN ann EX 100");
    struct registry_key *key =
        registry_find(m->ours->server.registry, REGISTRY_BANS, BYTES("\0ann"), INT64_MIN);
    assert_non_null(key);
    registry_remove(m->ours->server.registry, key);
    change(m, "LB.UNBAN ann");
    change(m, "LB.BAN bob");
    expect_equal(m);
}

/* In any database of the source's stream: they are of none. */
MOVING_TEST(bans_come_whatever_database_is_selected) {
    feed_whole_copy(m);
    feed(m, BYTES("SELECT 99\r\n"));
    change(m, "LB.BAN ann");
    feed(m, BYTES("SELECT 0\r\n"));
    expect_equal(m);
}

MOVING_TEST(damaged_bans_in_a_copy_change_nothing) {
    const struct effect one = {.kind = EFFECT_CREATE,
                               .key_kind = &key_kind_hash,
                               .database = REGISTRY_BANS,
                               .name = BYTES("\0ann")};
    struct buffer file;
    registry_set_passive(m->ours->server.registry, false);
    harness_run(m->ours, m->s, "ZADD k0 7 ann");
    harness_run(m->ours, m->s, "LB.BAN eve");
    registry_set_passive(m->ours->server.registry, true);
    buffer_init(&file, 0);
    begin_state(&file, rdb_board_type_id());
    make_blob(&file, &one, 1);
    end_state(&file);
    make_end(&file);
    feed(m, (struct bytes){.at = file.at, .size = file.size});
    buffer_deinit(&file);
    assert_int_equal(m->stream.state, REDIS_STREAM_STOPPED);
    assert_non_null(strstr(m->stream.error, "the bans before offset"));
    harness_expect(m->ours, m->s, "ZRANGE k0 0 -1", "*1\r\n$3\r\nann\r\n");
    assert_int_equal(registry_count(m->ours->server.registry, REGISTRY_BANS), 1);
    effect_listener_add(m->source->server.registry, &m->listener);
}

static void expect_stopped(struct moving *m, const char *why) {
    assert_int_equal(m->stream.state, REDIS_STREAM_STOPPED);
    if (strstr(m->stream.error, why) == NULL) {
        assert_string_equal(m->stream.error, why);
    }
    harness_expect(m->ours, m->s, "ZRANGE k0 0 -1", "*1\r\n$3\r\nann\r\n");
}

TEST(what_is_no_change_of_a_board_stops_it) {
    const struct effect cases[] = {
        {.kind = EFFECT_FLUSH, .database = 0},
        {.kind = EFFECT_TAKE, .database = 1, .name = BYTES("k0"), .member = BYTES("ann")},
        {.kind = EFFECT_TAKE,
         .database = 0,
         .name = BYTES("k0"),
         .key_kind = &key_kind_hash,
         .member = BYTES("ann")},
        {.kind = EFFECT_TAKE, .database = 0, .name = BYTES("k0"), .member = BYTES("kim")},
        {.kind = EFFECT_PUT, .database = 0, .name = BYTES("k9"), .member = BYTES("kim")},
        {.kind = EFFECT_CUT, .database = 0, .name = BYTES("k0"), .rank = 1, .count = 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ENDED_BY(end) struct moving m;
        begin(&m);
        feed_copy(&m);
        change(&m, "ZADD k0 7 ann");
        begin_blob(&m);
        effect_bytes_encode(&m.encoder, &cases[i]);
        feed_blob(&m, "k0", blob_of(&m));
        expect_stopped(&m, i < 3 ? "LB.APPLY: it is damaged" : "does not fit the keys");
    }
}

TEST(a_blob_of_another_format_or_none_stops_it) {
    static const char *const blobs[] = {"", "\x01", "\x7f________", "\x04________",
                                        "\x01_______\xff"};
    for (size_t i = 0; i < COUNT_OF(blobs); i++) {
        ENDED_BY(end) struct moving m;
        begin(&m);
        feed_copy(&m);
        change(&m, "ZADD k0 7 ann");
        feed_blob(&m, "k0", bytes_from_text(blobs[i]));
        expect_stopped(&m, "another version of the module sent it, in another format");
    }
}

TEST(what_is_no_change_of_bans_stops_it) {
    static const char damaged[] = "the source's bans: they are damaged";
    static const char no_fit[] = "the source's bans: they do not fit those that are here";
    const struct {
        struct effect effect;
        const char *told;
    } cases[] = {
        {{.kind = EFFECT_FLUSH}, damaged},
        {{.kind = EFFECT_REMOVE, .name = BYTES("k0")}, damaged},
        {{.kind = EFFECT_REMOVE, .database = REGISTRY_HISTORY, .name = BYTES("id")}, damaged},
        {{.kind = EFFECT_REMOVE,
          .database = REGISTRY_BANS,
          .name = BYTES("\x11"
                        "a")},
         "they are of database 17: there are 16 databases here"},
        {{.kind = EFFECT_EXPIRE, .database = REGISTRY_BANS, .name = BYTES("\0kim")}, no_fit},
        {{.kind = EFFECT_TAKE,
          .database = REGISTRY_BANS,
          .key_kind = &key_kind_hash,
          .name = BYTES("\0eve"),
          .member = BYTES("other")},
         no_fit},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ENDED_BY(end) struct moving m;
        begin(&m);
        feed_copy(&m);
        change(&m, "ZADD k0 7 ann");
        change(&m, "LB.BAN eve");
        begin_blob(&m);
        effect_bytes_encode(&m.state_encoder, &cases[i].effect);
        feed_state(&m, (struct bytes){.at = m.state_blob.at, .size = m.state_blob.size});
        expect_stopped(&m, cases[i].told);
        assert_int_equal(registry_count(m.ours->server.registry, REGISTRY_BANS), 1);
    }
}

MOVING_TEST(a_request_of_other_words_stops_it) {
    feed_copy(m);
    change(m, "ZADD k0 7 ann");
    feed(m, BYTES("LB.APPLYSTATE one two\r\n"));
    expect_stopped(m, "LB.APPLYSTATE of 3 words is not understood");
}

/* Every bit of a blob: it stops, or the keys hold together; server time is not part of what is tried. */
TEST(a_damaged_change_leaves_keys_that_hold_together) {
    enum { HEAD_SIZE = 9 };
    for (size_t bit = 0;; bit++) {
        struct moving m;
        begin(&m);
        feed_copy(&m);
        change(&m, "ZADD k0 7 ann");
        begin_blob(&m);
        harness_run(m.source, m.theirs, "LB.SUBMIT 2 k0 k2 INCR 5 ann");
        harness_run(m.source, m.theirs, "LB.ALTER k0 CAP 5");
        size_t at = HEAD_SIZE + bit / 8;
        bool is_over = at >= m.blob.size;
        if (!is_over) {
            m.blob.at[at] = (char)(m.blob.at[at] ^ (1 << bit % 8));
            feed_blob(&m, "k0", blob_of(&m));
            assert_true((m.stream.state == REDIS_STREAM_STOPPED) == (m.stream.error[0] != '\0'));
        }
        end(&m); /* validates */
        if (is_over) {
            assert_true(bit > 200);
            break;
        }
    }
}

/* The same of bans; what other bans there were, stays. */
TEST(a_damaged_change_of_bans_leaves_keys_that_hold_together) {
    enum { HEAD_SIZE = 9 };
    uint64_t stopped_count = 0;
    size_t bit = 0;
    for (bool is_over = false; !is_over; bit++) {
        struct moving m;
        begin(&m);
        feed_copy(&m);
        change(&m, "LB.BAN ann");
        change(&m, "LB.BAN eve MATCH k*");
        begin_blob(&m);
        harness_run(m.source, m.theirs, "LB.BAN ann EX 1000 MATCH d*");
        harness_run(m.source, m.theirs, "LB.UNBAN eve");
        size_t at = HEAD_SIZE + bit / 8;
        is_over = at >= m.state_blob.size;
        if (!is_over) {
            m.state_blob.at[at] = (char)(m.state_blob.at[at] ^ (1 << bit % 8));
            feed_state(&m, (struct bytes){.at = m.state_blob.at, .size = m.state_blob.size});
            assert_true((m.stream.state == REDIS_STREAM_STOPPED) == (m.stream.error[0] != '\0'));
            stopped_count += m.stream.state == REDIS_STREAM_STOPPED;
            assert_true(ban_holds(m.ours->server.registry, 0, BYTES("any"), BYTES("ann"),
                                  m.ours->server.clock.now_ms) ||
                        m.stream.state != REDIS_STREAM_STOPPED);
        }
        end(&m); /* validates */
    }
    assert_true(bit > 500 && stopped_count > 100);
}
