/* Boards of the module in dump files: equal to the last bit, and every damage. */
#include "tests/server/rdb/board_maker.h"
#include "tests/server/rdb/rdb_loading.h"
#include "tests/support/stored_text.h"

#define TIME_US (HARNESS_START_US + 5000000)

static const struct registry_key *find(struct harness *h, const char *name) {
    const struct registry_key *key =
        registry_peek(h->server.registry, 0, bytes_from_text(name), HARNESS_START_US / 1000);
    assert_non_null(key);
    return key;
}

/* Boards of every kind: ties, several fields, the latest first and frozen, empty, in a period. */
static void make_boards(struct harness *h, struct session *s) {
    harness_run(h, s, "ZADD ties 7 zoe 7 ann 7 kim 9 bob 7 eve");
    harness_run(h, s, "LB.CREATE two FIELD a 20 FIELD b 9 ASC TIME 24 M");
    harness_run(h, s, "LB.ADD two 3 4 ann 3 1 bob 5 0 kim");
    harness_run(h, s, "LB.CREATE latest FIELD score 20 TIME 24 M LATEST CAP 9");
    harness_run(h, s, "ZADD latest 1 a 1 b 1 c 2 d");
    harness_run(h, s, "LB.ALTER latest CAP 2 FREEZE");
    harness_run(h, s, "LB.CREATE empty FIELD score 64 SIGNED");
    harness_run(h, s, "LB.CREATE hot FIELD score 60 SCALE 3 DECAY 6 H FIELD n 4");
    harness_run(h, s, "LB.ADD hot INCR 5 1 ann 2.5 0 bob 0 3 kim");
    harness_run(h, s, "LB.CREATE day PERIOD DAY ARCHIVE 3");
    harness_run(h, s, "ZADD day 5 ann");
    for (int i = 0; i < 1500; i++) {
        harness_run_format(h, s, "ZADD long %d member:%d", i % 5, i);
    }
    harness_run(h, s, "LB.CREATE tagged FIELD a 20 TAG country 8 TAG clan 12");
    for (int i = 0; i < 700; i++) {
        harness_run_format(h, s, "LB.ADD tagged TAG country c%d%s %d m%d", i % 200,
                           i % 9 == 0 ? "" : " TAG clan wolves", i % 5, i);
    }
}

static const char *const names[] = {"ties", "two", "latest", "empty",
                                    "hot",  "day", "long",   "tagged"};
enum { NAMES = COUNT_OF(names), MEMBERS = 5 + 3 + 2 + 0 + 3 + 1 + 1500 + 700 };

static void make_all(struct buffer *file, struct harness *h, uint32_t members_per_chunk) {
    begin_file(file);
    for (int i = 0; i < NAMES; i++) {
        make_board(file, names[i], find(h, names[i]), TIME_US, members_per_chunk);
    }
    make_end(file);
}

static void dump_all(struct harness *h, struct buffer *dumps) {
    struct session *s = harness_connect(h);
    for (int i = 0; i < NAMES; i++) {
        const char *reply = harness_run_format(h, s, "DUMP %s", names[i]);
        buffer_append(dumps, reply, h->reply.size);
    }
    harness_disconnect(h, s);
}

static void expect_loaded(const struct buffer *file, size_t piece, const struct buffer *dumps) {
    struct harness *loaded = harness_create("");
    struct rdb_load load;
    struct buffer found;
    buffer_init(&found, 0);
    rdb_load_init(&load, loaded->server.registry, 7, HARNESS_START_US);
    assert_int_equal(load_pieces(&load, loaded->server.registry, file, piece), RDB_LOAD_DONE);
    assert_string_equal(load.error, "");
    assert_int_equal(load.board_count, NAMES);
    assert_int_equal(load.module_board_count, NAMES);
    assert_int_equal(load.member_count, MEMBERS);
    assert_int_equal(load.latest_us, TIME_US);
    dump_all(loaded, &found);
    assert_int_equal(found.size, dumps->size);
    assert_memory_equal(found.at, dumps->at, dumps->size);
    rdb_load_deinit(&load);
    buffer_deinit(&found);
    harness_destroy(loaded);
}

RDB_TEST(a_board_is_the_same_to_the_last_bit_in_pieces_of_any_size, "") {
    static const size_t pieces[] = {1, 7, 64, 1000000};
    static const uint32_t members_per_chunk[] = {1, 100, 512};
    make_boards(h, s);
    BUFFER(dumps, 0);
    dump_all(h, &dumps);
    for (size_t i = 0; i < COUNT_OF(members_per_chunk); i++) {
        make_all(file, h, members_per_chunk[i]);
        for (size_t j = 0; j < COUNT_OF(pieces); j++) {
            expect_loaded(file, pieces[j], &dumps);
        }
    }
}

/* Without a checksum, so that damage is seen by what is damaged. */
RDB_TEST(no_changed_byte_makes_a_board_that_does_not_hold_together, "") {
    harness_run(h, s, "LB.CREATE k FIELD a 20 FIELD b 9 ASC TIME 24 M CAP 9 PERIOD DAY");
    harness_run(h, s, "LB.ADD k 3 4 ann 3 4 bob 5 0 kim 1 1 eve");
    harness_run(h, s, "LB.CREATE t FIELD a 20 TAG country 2 TAG class 1");
    harness_run(h, s, "LB.ADD t TAG country DE 3 ann 2 bob");
    harness_run(h, s, "LB.TAG t bob country FR class mage");
    for (int i = 0; i < 2; i++) {
        begin_file(file);
        make_board(file, "k", find(h, i == 0 ? "k" : "t"), TIME_US, 2);
        MAKE_RAW(file, "\xff\0\0\0\0\0\0\0\0");
        assert_true(flip_each_bit(h, file, 9, NULL) > file->size * 3);
    }
}

RDB_TEST(every_allocation_may_fail, "") {
    make_boards(h, s);
    make_all(file, h, 100);
    expect_any_allocation_may_fail(h, file, 4096, 10);
}

/* ---- what is refused ---- */

RDB_TEST(a_head_of_no_board_is_refused, "") {
    static const struct {
        uint64_t version, format, time_us, count;
        const char *told;
    } cases[] = {
        {RDB_BOARD_TYPE_VERSION, FILE_FORMAT + 1, TIME_US, 0, "a board of another format"},
        {RDB_BOARD_TYPE_VERSION, 0, TIME_US, 0, "a board of another format"},
        {RDB_BOARD_TYPE_VERSION + 1, FILE_FORMAT, TIME_US, 0, "a board of another format"},
        {RDB_BOARD_TYPE_VERSION, FILE_FORMAT, (uint64_t)1 << 63, 0, "damaged board"},
        {RDB_BOARD_TYPE_VERSION, FILE_FORMAT, TIME_US, (uint64_t)1 << 33, "damaged board"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_file(file);
        make_key(file, 7, "k");
        make_length(file, rdb_board_type_id() - RDB_BOARD_TYPE_VERSION + cases[i].version);
        make_number(file, cases[i].format);
        make_number(file, cases[i].time_us);
        make_number(file, cases[i].count);
        expect_refused(h, file, cases[i].told);
    }
    begin_file(file); /* a text instead of a number */
    make_key(file, 7, "k");
    make_length(file, rdb_board_type_id());
    make_length(file, 5);
    make_text(file, "x");
    expect_refused(h, file, "damaged board");
}

/* Two pieces of at most two entries behind so many OPENs, and the value's end. */
struct wrong_board {
    uint64_t count;
    int open_count;
    struct board_stored pieces[2][2];
    const char *told;
};

static void make_wrong_board(struct buffer *file, const struct wrong_board *wrong,
                             const struct registry_key *key) {
    begin_file(file);
    make_board_head(file, "k", FILE_FORMAT, TIME_US, wrong->count);
    for (int i = 0; i < wrong->open_count; i++) {
        make_open(file, key);
    }
    for (int i = 0; i < 2; i++) {
        uint32_t count = 0;
        while (count < 2 && wrong->pieces[i][count].member.size > 0) {
            count++;
        }
        if (count > 0) {
            make_piece(file, wrong->pieces[i], count);
        }
    }
    make_byte(file, 0);
}

RDB_TEST(chunks_of_no_board_are_refused, "") {
    const struct board_stored ann = {.key = 9, .member = stored_name(BYTES("ann"))};
    const struct board_stored bob = {.key = 7, .member = stored_name(BYTES("bob"))};
    const struct board_stored too_wide = {.key = (uint64_t)1 << 20,
                                          .member = stored_name(BYTES("ann"))};
    const struct wrong_board cases[] = {
        {2, 0, {{ann, bob}}, "damaged board"},   /* no OPEN */
        {2, 2, {{ann, bob}}, "damaged board"},   /* two */
        {1, 1, {{ann, bob}}, "damaged board"},   /* more than are announced */
        {1, 1, {{ann}, {bob}}, "damaged board"}, /* in another chunk */
        {3, 1, {{ann, bob}}, "damaged board"},   /* fewer */
        {2, 1, {{bob, ann}}, "damaged board"},   /* out of order */
        {2, 1, {{bob}, {ann}}, "damaged board"}, /* across two chunks */
        {1, 1, {{too_wide}}, "damaged board"},   {2, 1, {{ann, ann}}, "there twice"},
    };
    harness_run(h, s, "LB.CREATE k FIELD a 20");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        make_wrong_board(file, &cases[i], find(h, "k"));
        expect_refused(h, file, cases[i].told);
    }
    begin_file(file);
    make_board_head(file, "k", FILE_FORMAT, TIME_US, 1);
    make_open(file, find(h, "k"));
    make_chunk(file, &(struct buffer){.at = NULL});
    expect_refused(h, file, "damaged board");
}

/* The values of the first board, in the layout of the other one. */
RDB_TEST(values_of_tags_that_are_not_there_are_refused, "") {
    static const char *const told[] = {"damaged board",
                                       "member 'bob': one of its tags has too many different "
                                       "values"};
    harness_run(h, s, "LB.CREATE k FIELD a 20 TAG country 2");
    harness_run(h, s, "LB.ADD k TAG country DE 3 ann");
    harness_run(h, s, "LB.ADD k TAG country FR 2 bob");
    harness_run(h, s, "LB.CREATE none FIELD a 20");
    harness_run(h, s, "LB.CREATE one FIELD a 20 TAG country 1");
    const struct board *board = &find(h, "k")->board;
    const struct board_stored entries[] = {board_at(board, 0), board_at(board, 1)};
    for (int i = 0; i < 2; i++) {
        begin_file(file);
        make_board_head(file, "x", FILE_FORMAT, TIME_US, 2);
        make_open(file, find(h, i == 0 ? "none" : "one"));
        make_piece_of(file, board, 0, entries, 2);
        make_byte(file, 0);
        expect_refused(h, file, told[i]);
    }
}

static void make_notes(struct buffer *out, const struct registry_key *key) {
    struct effect_encoder encoder;
    BUFFER(chunk, 0);
    effect_bytes_encode_begin(&encoder, &chunk);
    for (uint32_t i = 0; effect_bytes_encode_next_note(&encoder, key, &i);) {}
    make_chunk(out, &chunk);
}

RDB_TEST(notes_may_stand_before_members, "") {
    harness_run(h, s, "LB.CREATE k RATING ELO");
    harness_run(h, s, "LB.MATCH k TEAM 1 ann TEAM 1 bob");
    const struct board_stored entries[] = {board_at(&find(h, "k")->board, 0),
                                           board_at(&find(h, "k")->board, 1)};
    begin_file(file);
    make_board_head(file, "x", FILE_FORMAT, TIME_US, 4);
    make_open(file, find(h, "k"));
    make_notes(file, find(h, "k"));
    make_piece(file, entries, 2);
    make_byte(file, 0);
    make_end(file);
    assert_int_equal(load_pieces(load, h->server.registry, file, 1), RDB_LOAD_DONE);
    harness_expect(h, s, "ZRANGE x 0 -1", "*2\r\n$3\r\nbob\r\n$3\r\nann\r\n");
    assert_int_equal(registry_note_count(find(h, "x")), 2);
}

RDB_TEST(values_of_other_modules_are_passed_over, "") {
    begin_file(file);
    make_key(file, 7, "other");
    make_length(file, rdb_board_type_id() ^ (1 << 10));
    make_number(file, 5);
    make_length(file, 5);
    make_text(file, "text");
    make_byte(file, 0);
    make_end(file);
    assert_int_equal(load_pieces(load, h->server.registry, file, 1), RDB_LOAD_DONE);
    assert_int_equal(load->skipped[7].count, 1);
    assert_int_equal(load->board_count, 0);
}

/* Ids of results, which the module keeps in a key's value: behind the board, or without one. */
static void make_ids(struct buffer *file, struct harness *h) {
    const struct registry_key *ids =
        registry_peek(h->server.registry, REGISTRY_ONCE, (struct bytes){.at = "", .size = 1},
                      HARNESS_START_US / 1000);
    assert_non_null(ids);
    const struct board_stored id = board_at(&ids->board, 0);
    make_number(file, FILE_FORMAT | RDB_BOARD_IS_IDS);
    make_number(file, TIME_US);
    make_number(file, 1);
    make_open(file, ids);
    make_piece(file, &id, 1);
    make_byte(file, 0);
}

RDB_TEST(ids_of_results_are_passed_over, "") {
    static const size_t pieces[] = {1, 5, 1000000};
    harness_run(h, s, "LB.CREATE k FIELD a 20");
    harness_run(h, s, "LB.ADD k ONCE x 5 ann");
    const struct board_stored ann = board_at(&find(h, "k")->board, 0);
    begin_file(file);
    make_board_head(file, "with", FILE_FORMAT | RDB_BOARD_HAS_IDS, TIME_US, 1);
    make_open(file, find(h, "k"));
    make_piece(file, &ann, 1);
    make_ids(file, h);
    make_key(file, 7, "only");
    make_length(file, rdb_board_type_id());
    make_ids(file, h);
    make_board(file, "behind", find(h, "k"), TIME_US, 1);
    make_end(file);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        struct harness *loaded = harness_create("");
        struct session *other = harness_connect(loaded);
        struct rdb_load again;
        rdb_load_init(&again, loaded->server.registry, 7, HARNESS_START_US);
        assert_int_equal(load_pieces(&again, loaded->server.registry, file, pieces[i]),
                         RDB_LOAD_DONE);
        assert_int_equal(again.board_count, 2);
        assert_int_equal(again.skipped[7].count, 1);
        rdb_load_deinit(&again);
        harness_expect(loaded, other, "ZSCORE with ann", "$1\r\n5\r\n");
        harness_expect(loaded, other, "EXISTS only", ":0\r\n");
        harness_expect(loaded, other, "ZSCORE behind ann", "$1\r\n5\r\n");
        harness_disconnect(loaded, other);
        harness_destroy(loaded);
    }
    begin_file(file); /* a board cannot be ids, and have some */
    make_board_head(file, "k", FILE_FORMAT | RDB_BOARD_HAS_IDS | RDB_BOARD_IS_IDS, TIME_US, 1);
    expect_refused(h, file, "a board of another format");
}

/* The same for changes. */
RDB_TEST(a_blob_of_another_format_is_told_from_a_damaged_one, "") {
    static struct effect_encoder encoder;
    struct bytes chunk;
    int64_t time_us;
    const struct effect put = {.kind = EFFECT_PUT, .name = BYTES("b"), .member = BYTES("ann")};
    BUFFER(blob, 0);
    effect_bytes_begin_blob(&encoder, &blob, TIME_US);
    effect_bytes_encode(&encoder, &put);
    assert_true(effect_bytes_open_blob(buffer_bytes(&blob), &time_us, &chunk));
    assert_int_equal(time_us, TIME_US);
    assert_false(effect_bytes_is_blob_of_another_format((struct bytes){blob.at, 1}));
    assert_false(effect_bytes_open_blob((struct bytes){blob.at, 1}, &time_us, &chunk));
    static const char others[] = {0, FILE_FORMAT + 1, 6, -1}; /* builds before 1.0 wrote 4 to 6 */
    for (size_t i = 0; i < sizeof others; i++) {
        blob.at[0] = others[i];
        assert_true(effect_bytes_is_blob_of_another_format(buffer_bytes(&blob)));
        assert_false(effect_bytes_open_blob(buffer_bytes(&blob), &time_us, &chunk));
    }
}

/* What a Redis computes from the name in its documentation of modules: 64 letters, six bits each. */
TEST(the_type_has_the_number_that_redis_gives_it) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t id = rdb_board_type_id();
    char name[10] = "";
    assert_int_equal(id & 1023, RDB_BOARD_TYPE_VERSION);
    for (int i = 8; i >= 0; i--) {
        name[i] = letters[id >> (10 + 6 * (8 - i)) & 63];
    }
    assert_string_equal(name, "LB-board1");
    assert_true(rdb_board_is_type(id + 5) && !rdb_board_is_type(id + 1024));
}
