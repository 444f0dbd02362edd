/* Bans and unfinished orders in dump files: the same after loading, and every damage. */
#include "server/system/log.h"
#include "tests/server/rdb/rdb_loading.h"
#include "tests/server/rdb/state_maker.h"

#define TIME_US (HARNESS_START_US + 5000000)

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

RDB_TEST(what_is_beside_the_keys_is_the_same_in_pieces_of_any_size, "") {
    enum { MANY = 3000 };
    static const size_t pieces[] = {1, 7, 4096, 1 << 24};
    ban_some(h);
    harness_run(h, s, "ZADD board 1 kim");
    for (int i = 0; i < MANY; i++) { /* several blobs */
        harness_run_format(h, s, "LB.BAN a-member-whose-name-is-somewhat-longer:%d MATCH p%d", i,
                           i % 10);
    }
    write_file(file, h->server.registry, TIME_US);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        struct registry *registry =
            registry_create(1, setting_board_options_for, &h->server.settings);
        assert_int_equal(load_pieces(load, registry, file, pieces[i]), RDB_LOAD_DONE);
        assert_string_equal(load->error, "");
        assert_int_equal(load->ban_count, MANY + 3);
        assert_int_equal(load->board_count, 1);
        assert_int_equal(load->latest_us, TIME_US);
        expect_same_state(h->server.registry, registry);
        ASSERT_VALID(registry_validate, registry);
        registry_destroy(registry);
    }
}

RDB_TEST(bans_whose_time_is_over_are_left_out, "") {
    ban_some(h);
    write_file(file, h->server.registry, TIME_US);
    struct registry *registry = registry_create(1, setting_board_options_for, &h->server.settings);
    rdb_load_deinit(load);
    rdb_load_init(load, registry, 7, HARNESS_START_US + INT64_C(1100000000));
    assert_int_equal(rdb_load_feed(load, (struct bytes){.at = file->at, .size = file->size}),
                     RDB_LOAD_DONE);
    assert_int_equal(load->ban_count, 2); /* bob's is over */
    assert_int_equal(registry_count(registry, REGISTRY_BANS), 2);
    registry_destroy(registry);
}

/* Without a checksum, so that damage is seen by what is damaged. */
RDB_TEST(no_changed_bit_makes_a_registry_that_does_not_hold_together, "") {
    ban_some(h);
    write_file(file, h->server.registry, TIME_US);
    memset(file->at + file->size - 8, 0, 8);
    assert_true(flip_each_bit(h, file, 9, NULL) > file->size);
}

RDB_TEST(every_allocation_may_fail, "") {
    ban_some(h);
    write_file(file, h->server.registry, TIME_US);
    expect_any_allocation_may_fail(h, file, 4096, 5);
}

/* ---- what is refused ---- */

#define OF_BAN                                                                                     \
    .key_kind = &key_kind_hash, .database = REGISTRY_BANS,                                         \
    .name = BYTES("\x0f"                                                                           \
                  "ann")
#define UNTIL .value = BYTES("\x01\x02\x03\x04\x05\x06\x07\x08")
#define REMOVE                                                                                     \
    { .kind = EFFECT_REMOVE, OF_BAN }
#define CREATE                                                                                     \
    { .kind = EFFECT_CREATE, OF_BAN }
#define PUT                                                                                        \
    { .kind = EFFECT_PUT, OF_BAN, .member = BYTES("*"), UNTIL }

RDB_TEST(blobs_that_are_not_of_whole_keys_are_refused, "") {
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
           .database = REGISTRY_BANS,
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
           .database = REGISTRY_BANS,
           .name = BYTES("\x01")}},
         1,
         damaged},
        {{{.kind = EFFECT_REMOVE,
           .key_kind = &key_kind_hash,
           .database = REGISTRY_BANS,
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
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_state(file, rdb_board_type_id());
        make_blob(file, cases[i].effects, cases[i].count);
        end_state(file);
        expect_refused(h, file, cases[i].told);
    }
}

RDB_TEST(a_whole_key_is_taken_and_the_last_one_stays, "") {
    const struct effect effects[] = {
        REMOVE, CREATE, {.kind = EFFECT_EXPIRE, OF_BAN, .expire_at_ms = INT64_MAX / 2},
        PUT,    REMOVE, CREATE,
        PUT,    PUT};
    begin_state(file, rdb_board_type_id());
    make_blob(file, effects, COUNT_OF(effects));
    end_state(file);
    make_end(file);
    assert_int_equal(load_pieces(load, h->server.registry, file, 1), RDB_LOAD_DONE);
    assert_int_equal(load->ban_count, 1);
    const struct registry_key *key = registry_peek(h->server.registry, REGISTRY_BANS,
                                                   BYTES("\x0f"
                                                         "ann"),
                                                   INT64_MIN);
    assert_int_equal(registry_expiry(h->server.registry, key), REGISTRY_NO_EXPIRY);
}

RDB_TEST(what_is_around_the_blobs_is_checked, "") {
    begin_state(file, rdb_board_type_id() + 1);
    end_state(file);
    expect_refused(h, file, "a later version has written");

    buffer_clear(file); /* when it was written is a text */
    MAKE_RAW(file, "REDIS0010\xf7");
    make_length(file, rdb_board_type_id());
    make_length(file, 5);
    make_text(file, "x");
    end_state(file);
    expect_refused(h, file, "damaged bans");

    begin_state(file, rdb_board_type_id()); /* the last blob is missing */
    make_byte(file, 0);
    expect_refused(h, file, "damaged bans");

    begin_state(file, rdb_board_type_id()); /* more behind it */
    make_length(file, 5);
    make_length(file, 0);
    make_length(file, 5);
    make_text(file, "x");
    expect_refused(h, file, "damaged bans");

    begin_state(file, rdb_board_type_id()); /* of a later version */
    make_length(file, 5);
    make_text(file, "\x7f________");
    end_state(file);
    expect_refused(h, file, "another version of the module wrote them, in another format");
}

RDB_TEST(what_another_module_keeps_is_passed_over, "") {
    begin_state(file, UINT64_C(1) << 50);
    make_number(file, 7);
    make_length(file, 5);
    make_text(file, "x");
    make_byte(file, 0);
    make_end(file);
    assert_int_equal(load_pieces(load, h->server.registry, file, 1), RDB_LOAD_DONE);
    assert_true(rdb_board_state_is_empty(h->server.registry));
}
