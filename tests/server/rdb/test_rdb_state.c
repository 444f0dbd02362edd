/* Bans and unfinished orders in dump files: the same after loading, and every damage. */
#include "tests/server/rdb/state_maker.h"

#include "server/rdb/rdb_load.h"
#include "server/system/log.h"
#include "tests/support/harness.h"

#define TIME_US (HARNESS_START_US + 5000000)

static enum rdb_load_status load_pieces(struct rdb_load *load, struct registry *registry,
                                        const struct buffer *file, size_t piece) {
    enum rdb_load_status status = RDB_LOAD_MORE;
    rdb_load_init(load, registry, 7, HARNESS_START_US);
    for (size_t at = 0; at < file->size && status == RDB_LOAD_MORE; at += piece) {
        size_t left = file->size - at;
        status = rdb_load_feed(
            load, (struct bytes){.at = file->at + at, .size = left < piece ? left : piece});
    }
    return status;
}

static void ban_some(struct harness *h) {
    log_set_level(LOG_NOTHING);
    struct session *s = harness_connect(h);
    harness_run(h, s, "LB.BAN ann");
    harness_run(h, s, "LB.BAN ann EX 100 MATCH daily:*");
    harness_run(h, s, "LB.BAN bob EX 1000");
    harness_run(h, s, "SELECT 15");
    harness_run(h, s, "LB.BAN ann MATCH b?");
    put_order(h->server.registry, "0123456789abcdef", "kim");
}

TEST(what_is_beside_the_keys_is_the_same_in_pieces_of_any_size) {
    enum { MANY = 3000 };
    static const size_t pieces[] = {1, 7, 4096, 1 << 24};
    struct harness *h = harness_create("");
    struct session *s = harness_connect(h);
    struct buffer file;
    ban_some(h);
    harness_run(h, s, "ZADD board 1 kim");
    for (int i = 0; i < MANY; i++) { /* several blobs */
        harness_run_format(h, s, "LB.BAN a-member-whose-name-is-somewhat-longer:%d MATCH p%d", i,
                           i % 10);
    }
    write_file(&file, h->server.registry, TIME_US);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        const char *reason = "";
        struct rdb_load load;
        struct registry *registry = registry_create(1, settings_rules_for, &h->server.settings);
        assert_int_equal(load_pieces(&load, registry, &file, pieces[i]), RDB_LOAD_DONE);
        assert_string_equal(load.error, "");
        assert_int_equal(load.ban_count, MANY + 3);
        assert_int_equal(load.board_count, 1);
        assert_int_equal(load.latest_us, TIME_US);
        expect_same_state(h->server.registry, registry);
        assert_true(registry_validate(registry, &reason));
        rdb_load_deinit(&load);
        registry_destroy(registry);
    }
    buffer_deinit(&file);
    harness_destroy(h);
}

TEST(bans_whose_time_is_over_are_left_out) {
    struct harness *h = harness_create("");
    struct buffer file;
    struct rdb_load load;
    ban_some(h);
    write_file(&file, h->server.registry, TIME_US);
    struct registry *registry = registry_create(1, settings_rules_for, &h->server.settings);
    rdb_load_init(&load, registry, 7, HARNESS_START_US + INT64_C(1100000000));
    assert_int_equal(rdb_load_feed(&load, (struct bytes){.at = file.at, .size = file.size}),
                     RDB_LOAD_DONE);
    assert_int_equal(load.ban_count, 2); /* bob's is over */
    assert_int_equal(registry_count(registry, RDB_STATE_BANS), 2);
    rdb_load_deinit(&load);
    registry_destroy(registry);
    buffer_deinit(&file);
    harness_destroy(h);
}

/* Without a checksum, so that damage is seen by what is damaged. */
TEST(no_changed_bit_makes_a_registry_that_does_not_hold_together) {
    struct harness *h = harness_create("");
    struct buffer file;
    struct rdb_load load;
    ban_some(h);
    write_file(&file, h->server.registry, TIME_US);
    memset(file.at + file.size - 8, 0, 8);
    uint64_t refused_count = 0;
    for (size_t bit = 72; bit < file.size * 8; bit++) {
        const char *reason = "";
        uint64_t live = memory_live_count();
        struct registry *registry = registry_create(1, settings_rules_for, &h->server.settings);
        file.at[bit / 8] = (char)(file.at[bit / 8] ^ (1 << bit % 8));
        enum rdb_load_status status = load_pieces(&load, registry, &file, file.size);
        assert_true((status == RDB_LOAD_FAILED) == (load.error[0] != '\0'));
        refused_count += status != RDB_LOAD_DONE;
        rdb_load_deinit(&load);
        assert_true(registry_validate(registry, &reason));
        registry_destroy(registry);
        assert_int_equal(memory_live_count(), live);
        file.at[bit / 8] = (char)(file.at[bit / 8] ^ (1 << bit % 8));
    }
    assert_true(refused_count > file.size);
    buffer_deinit(&file);
    harness_destroy(h);
}

TEST(every_allocation_may_fail) {
    struct harness *h = harness_create("");
    struct buffer file;
    struct rdb_load load;
    ban_some(h);
    write_file(&file, h->server.registry, TIME_US);
    uint64_t failed_count = 0;
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        uint64_t live = memory_live_count();
        struct registry *registry = registry_create(1, settings_rules_for, &h->server.settings);
        memory_fail_at(nth);
        is_done = load_pieces(&load, registry, &file, 4096) == RDB_LOAD_DONE;
        memory_fail_at(0);
        if (!is_done) {
            assert_string_equal(load.error, "out of memory");
            failed_count++;
        }
        rdb_load_deinit(&load);
        registry_destroy(registry);
        assert_int_equal(memory_live_count(), live);
    }
    assert_true(failed_count > 5);
    buffer_deinit(&file);
    harness_destroy(h);
}

/* ---- what is refused ---- */

static void expect_refused(struct harness *h, struct buffer *file, const char *told) {
    struct rdb_load load;
    struct registry *registry = registry_create(1, settings_rules_for, &h->server.settings);
    make_end(file);
    assert_int_equal(load_pieces(&load, registry, file, file->size), RDB_LOAD_FAILED);
    if (strstr(load.error, told) == NULL) {
        assert_string_equal(load.error, told);
    }
    rdb_load_deinit(&load);
    registry_destroy(registry);
    buffer_deinit(file);
}

#define OF_BAN                                                                                     \
    .key_kind = &key_kind_hash, .database = RDB_STATE_BANS,                                        \
    .name = BYTES("\x0f"                                                                           \
                  "ann")
#define UNTIL .value = BYTES("\x01\x02\x03\x04\x05\x06\x07\x08")
#define REMOVE                                                                                     \
    { .kind = EFFECT_REMOVE, OF_BAN }
#define CREATE                                                                                     \
    { .kind = EFFECT_CREATE, OF_BAN }
#define PUT                                                                                        \
    { .kind = EFFECT_PUT, OF_BAN, .member = BYTES("*"), UNTIL }

TEST(blobs_that_are_not_of_whole_keys_are_refused) {
    static const char damaged[] = "they are damaged";
    const struct {
        struct effect effects[4];
        size_t count;
        const char *told;
    } cases[] = {
        {{CREATE, PUT}, 2, damaged},
        {{PUT}, 1, damaged},
        {{REMOVE}, 1, damaged},
        {{REMOVE, CREATE}, 2, damaged},
        {{REMOVE, PUT}, 2, damaged},
        {{REMOVE, CREATE, PUT, CREATE}, 4, damaged},
        {{REMOVE, CREATE, PUT, {.kind = EFFECT_EXPIRE, OF_BAN, .expire_at_ms = 9}}, 4, damaged},
        {{REMOVE, CREATE, PUT, {.kind = EFFECT_TAKE, OF_BAN, .member = BYTES("*")}}, 4, damaged},
        {{REMOVE,
          CREATE,
          {.kind = EFFECT_PUT,
           .key_kind = &key_kind_hash,
           .database = RDB_STATE_BANS,
           .name = BYTES("\x0f"
                         "bob"),
           .member = BYTES("*"),
           UNTIL}},
         3,
         damaged},
        {{REMOVE,
          CREATE,
          {.kind = EFFECT_PUT, OF_BAN, .member = BYTES("*"), .value = BYTES("1234567")}},
         3,
         damaged},
        {{{.kind = EFFECT_REMOVE,
           .key_kind = &key_kind_hash,
           .database = RDB_STATE_BANS,
           .name = BYTES("\x01")}},
         1,
         damaged},
        {{{.kind = EFFECT_REMOVE,
           .key_kind = &key_kind_hash,
           .database = RDB_STATE_BANS,
           .name = BYTES("\x10"
                         "ann")}},
         1,
         "they are of database 16: there are 16 databases here, from 0 on"},
        {{{.kind = EFFECT_REMOVE, .key_kind = &key_kind_hash, .name = BYTES("k")}}, 1, damaged},
        {{{.kind = EFFECT_REMOVE,
           .key_kind = &key_kind_hash,
           .database = REGISTRY_HISTORY,
           .name = BYTES("id")}},
         1,
         damaged},
        {{{.kind = EFFECT_FLUSH}}, 1, damaged},
    };
    struct harness *h = harness_create("");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buffer file;
        begin_state(&file, rdb_board_type_id());
        make_blob(&file, cases[i].effects, cases[i].count);
        end_state(&file);
        expect_refused(h, &file, cases[i].told);
    }
    harness_destroy(h);
}

TEST(a_whole_key_is_taken_and_the_last_one_stays) {
    const struct effect effects[] = {
        REMOVE, CREATE, {.kind = EFFECT_EXPIRE, OF_BAN, .expire_at_ms = INT64_MAX / 2},
        PUT,    REMOVE, CREATE,
        PUT,    PUT};
    struct harness *h = harness_create("");
    struct buffer file;
    struct rdb_load load;
    begin_state(&file, rdb_board_type_id());
    make_blob(&file, effects, COUNT_OF(effects));
    end_state(&file);
    make_end(&file);
    assert_int_equal(load_pieces(&load, h->server.registry, &file, 1), RDB_LOAD_DONE);
    assert_int_equal(load.ban_count, 1);
    const struct registry_key *key = registry_peek(h->server.registry, RDB_STATE_BANS,
                                                   BYTES("\x0f"
                                                         "ann"),
                                                   INT64_MIN);
    assert_int_equal(registry_expiry(h->server.registry, key), REGISTRY_NO_EXPIRY);
    rdb_load_deinit(&load);
    buffer_deinit(&file);
    harness_destroy(h);
}

TEST(what_is_around_the_blobs_is_checked) {
    struct harness *h = harness_create("");
    struct buffer file;
    begin_state(&file, rdb_board_type_id() + 1);
    end_state(&file);
    expect_refused(h, &file, "a later version has written");

    buffer_init(&file, 0); /* when it was written is a text */
    MAKE_RAW(&file, "REDIS0010\xf7");
    make_length(&file, rdb_board_type_id());
    make_length(&file, 5);
    make_text(&file, "x");
    end_state(&file);
    expect_refused(h, &file, "damaged bans");

    begin_state(&file, rdb_board_type_id()); /* the last blob is missing */
    make_byte(&file, 0);
    expect_refused(h, &file, "damaged bans");

    begin_state(&file, rdb_board_type_id()); /* more behind it */
    make_length(&file, 5);
    make_length(&file, 0);
    make_length(&file, 5);
    make_text(&file, "x");
    expect_refused(h, &file, "damaged bans");

    begin_state(&file, rdb_board_type_id()); /* of a later version */
    make_length(&file, 5);
    make_text(&file, "\x7f________");
    end_state(&file);
    expect_refused(h, &file, "a later version of the module wrote them");
    harness_destroy(h);
}

TEST(what_another_module_keeps_is_passed_over) {
    struct harness *h = harness_create("");
    struct buffer file;
    struct rdb_load load;
    begin_state(&file, UINT64_C(1) << 50);
    make_number(&file, 7);
    make_length(&file, 5);
    make_text(&file, "x");
    make_byte(&file, 0);
    make_end(&file);
    assert_int_equal(load_pieces(&load, h->server.registry, &file, 1), RDB_LOAD_DONE);
    assert_true(rdb_state_is_empty(h->server.registry));
    rdb_load_deinit(&load);
    buffer_deinit(&file);
    harness_destroy(h);
}
