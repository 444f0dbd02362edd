/* Random changes of every kind as an RDB file and the commands behind it, as a Redis with the module gets them; followed
 * by what follows a Redis with the module here: equal after each. The module itself is in tests/module/test_leaving.py. */
#include "server/migration/feed_redis.h"
#include "server/migration/redis_stream.h"
#include "server/rdb/rdb.h"
#include "server/replication/wire.h"
#include "server/system/log.h"
#include "skiplist/keyspace/effect.h"
#include "tests/support/harness.h"
#include "tests/support/keyspace.h"
#include "tests/support/registry_workload.h"

enum { GROUPS = 1500, COMMANDS_MAX = 6, MEMBERS_MAX = 30, COMPARED_EVERY = 25, TOGETHER_MAX = 9 };

static struct workload workload;
static struct effect_encoder encoder;
static struct buffer group, messages, out;
static uint64_t sequence;
static bool is_in_chain; /* the last group is linked to the next */
static struct redis_encode encode;
static struct harness *ours;
static struct redis_stream stream;

static uint32_t below(uint64_t limit) {
    return (uint32_t)random_below(&workload.random, limit);
}

/* ---- the source ---- */

static void record(void *context, const struct effect *effect) {
    (void)context;
    if (effect->kind != EFFECT_FILL) {
        effect_bytes_encode(&encoder, effect);
        return;
    }
    struct effect_fill fill = {.whole = *effect};
    struct effect part;
    while (effect_fill_next(&fill, &part)) {
        effect_bytes_encode(&encoder, &part);
    }
}

/* A tick's changes; linked: the next ones belong to them. */
static void make_group(bool is_linked) {
    buffer_clear(&group);
    effect_bytes_encode_begin(&encoder, &group);
    for (uint32_t i = below(COMMANDS_MAX); i > 0; i--) {
        workload_step(&workload);
    }
    if (group.size == 0 && !is_linked && !is_in_chain) {
        return;
    }
    is_in_chain = is_linked;
    if (group.size == 0) { /* a group has something */
        effect_bytes_encode(
            &encoder, &(struct effect){.kind = EFFECT_FLUSH, .database = REGISTRY_DATABASES - 1});
        (void)registry_flush(workload.registry, REGISTRY_DATABASES - 1);
    }
    const struct journal_group_head head = {.size = (uint32_t)group.size,
                                            .is_linked = is_linked,
                                            .sequence = ++sequence,
                                            .time_us = (uint64_t)workload.now_ms * 1000};
    char *at = buffer_reserve(&messages, wire_group_size(&head));
    assert_non_null(at);
    wire_put_group(at, &head, group.at);
    buffer_commit(&messages, wire_group_size(&head));
}

/* ---- the follower ---- */

static void feed(struct bytes bytes) {
    size_t at = 0;
    while (stream.state != REDIS_STREAM_STOPPED &&
           (at < bytes.size || redis_stream_has_work(&stream))) {
        at +=
            redis_stream_take(&stream, (struct bytes){.at = bytes.at + at, .size = bytes.size - at},
                              UINT64_MAX, ours->server.clock.now_us);
        if (stream.state == REDIS_STREAM_LOADED) {
            assert_true(redis_stream_exchange(&stream));
        }
    }
    assert_string_equal(stream.error, "");
}

static bool put_piece(void *context, const char *at, size_t size) {
    buffer_append(context, at, size);
    return true;
}

/* One that no command has made (LB.CREATE) is no key in a server: a follower leaves it out. */
static void find_empty(void *context, const struct registry_key *key) {
    const struct registry_key **found = context;
    if (key->kind == REGISTRY_BOARD && board_count(&key->board) == 0) {
        *found = key;
    }
}

static void remove_empty_boards(void) {
    for (uint32_t i = 0; i < REGISTRY_DATABASES;) {
        const struct registry_key *found = NULL;
        registry_walk_each(workload.registry, i, INT64_MIN, find_empty, &found);
        if (found == NULL) {
            i++;
        } else {
            registry_remove(workload.registry,
                            registry_find(workload.registry, i, registry_name(found), INT64_MIN));
        }
    }
}

static void feed_copy(void) {
    BUFFER(file, 0);
    assert_true(rdb_write(workload.registry, workload.now_ms * 1000, put_piece, &file));
    feed((struct bytes){.at = file.at, .size = file.size});
    assert_int_equal(stream.state, REDIS_STREAM_FOLLOWS);
}

/* In steps of any size. */
static void feed_groups(void) {
    buffer_clear(&out);
    assert_true(feed_redis_encode_add(&encode, messages.at, messages.size));
    while (!feed_redis_encode_is_idle(&encode)) {
        assert_true(
            feed_redis_encode_step(&encode, &out, 1 + below(300), below(2) == 0 ? 0 : 100000));
    }
    assert_true(feed_redis_encode_is_between(&encode));
    assert_int_equal(encode.group, sequence);
    feed((struct bytes){.at = out.at, .size = out.size});
    buffer_clear(&messages);
}

static void begin(const char *name) {
    workload_begin(&workload, name, MEMBERS_MAX);
    log_set_level(LOG_NOTHING);
    sequence = 0;
    is_in_chain = false;
    feed_redis_encode_init(&encode);
    ours = harness_create("");
    registry_set_passive(ours->server.registry, true);
    redis_stream_init(&stream, &ours->server, 7);
    redis_stream_restart(&stream, 0);
}

/* What follows holds a board beside the keys until it ends: by then the keys are looked at one by one. */
static void expect_equal(void) {
    assert_int_equal(workload_digest(ours->server.registry), workload_digest(workload.registry));
}

static void end(void) {
    redis_stream_deinit(&stream);
    workload_assert_equal(workload.registry, ours->server.registry);
    feed_redis_encode_deinit(&encode);
    buffer_deinit(&group);
    buffer_deinit(&messages);
    buffer_deinit(&out);
    ours->live_count_before = 0;
    harness_destroy(ours);
    workload_end(&workload);
}

TEST(a_follower_of_the_copy_and_the_commands_has_equal_keys) {
    struct effect_listener recorder = {.receive = record};
    uint64_t transactions = 0;
    begin("redis_encode");
    for (uint32_t i = 0; i < 300; i++) {
        workload_step(&workload);
    }
    remove_empty_boards();
    feed_copy();
    expect_equal();
    effect_listener_add(workload.registry, &recorder);
    for (uint32_t i = 1; i <= GROUPS; i++) {
        bool is_linked = below(10) == 0;
        make_group(is_linked);
        if (!is_linked && messages.size > 0 && (below(3) == 0 || i % COMPARED_EVERY == 0)) {
            feed_groups();
            transactions += memmem(out.at, out.size, "EXEC", 4) != NULL;
        }
        (void)registry_free_step(ours->server.registry, 100);
        if (messages.size == 0 && i % COMPARED_EVERY == 0) {
            expect_equal();
        }
    }
    make_group(false);
    if (messages.size > 0) {
        feed_groups();
    }
    assert_true(transactions > 50);
    effect_listener_remove(workload.registry, &recorder);
    end();
}

static void add_group(void) {
    const struct journal_group_head head = {.size = (uint32_t)group.size, .sequence = ++sequence};
    char *at = buffer_reserve(&messages, wire_group_size(&head));
    assert_non_null(at);
    wire_put_group(at, &head, group.at);
    buffer_commit(&messages, wire_group_size(&head));
    buffer_clear(&group);
    effect_bytes_encode_begin(&encoder, &group);
}

/* It has no such board: it gets the whole, or must come anew. */
TEST(what_is_staged_is_not_sent_and_its_new_name_cannot_be) {
    struct effect_listener recorder = {.receive = record};
    begin("feed_redis_encode_staged");
    remove_empty_boards();
    feed_copy();
    effect_listener_add(workload.registry, &recorder);
    struct registry *registry = workload.registry;
    for (int is_told_whole = 1; is_told_whole >= 0; is_told_whole--) {
        uint64_t number;
        struct board board;
        buffer_clear(&group);
        effect_bytes_encode_begin(&encoder, &group);
        assert_true(registry_create_board(registry, BYTES("made"), workload.now_ms, &board));
        struct registry_key *key = registry_board_stage(registry, board_layout(&board), &number);
        assert_non_null(key);
        assert_true(key_put(registry, key, BYTES("ann"), 1));
        add_group();
        feed_groups();
        assert_int_equal(registry_count(ours->server.registry, REGISTRY_STAGING), 0);
        assert_int_equal(registry_board_unstage(registry, key, 0, BYTES("made"),
                                                board_options_of(board_layout(&board)),
                                                is_told_whole == 1, workload.now_ms),
                         REGISTRY_OK);
        registry_discard_board(registry, &board);
        add_group();
        if (is_told_whole == 1) {
            feed_groups();
            expect_equal();
        }
    }
    assert_true(feed_redis_encode_add(&encode, messages.at, messages.size));
    assert_false(feed_redis_encode_step(&encode, &out, 1000, UINT64_MAX));
    effect_listener_remove(registry, &recorder);
    registry_remove(registry, key_find(registry, 0, "made", workload.now_ms));
    registry_remove(ours->server.registry,
                    key_find(ours->server.registry, 0, "made", workload.now_ms));
    end();
}
