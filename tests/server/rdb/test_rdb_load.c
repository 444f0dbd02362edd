/* Dump files into boards and hashes: every encoding, and every damage. */
#include "tests/server/rdb/rdb_loading.h"

#define SETTINGS                                                                                   \
    "layout wide FIELD score 48 SIGNED TIME 16 D\nboard z* wide\n"                                 \
    "layout low FIELD ms 33 SIGNED ASC TIME 31 S\nboard low* low\n"                                \
    "layout money FIELD m 40 SIGNED SCALE 2 TIME 24 M\nboard money* money CAP 2\n"                 \
    "board few* default LIMIT 1\nboard open* default LIMIT 9\n"

static void expect_made(struct harness *h) {
    struct session *s = harness_connect(h);
    harness_expect(
        h, s, "ZREVRANGE z0 0 -1 WITHSCORES",
        "*8\r\n$3\r\nzoe\r\n$3\r\n900\r\n$3\r\nkim\r\n$1\r\n7\r\n$3\r\nbob\r\n$1\r\n7\r\n"
        "$2\r\n-7\r\n$1\r\n0\r\n");
    harness_expect(h, s, "ZRANGE z1 0 -1 WITHSCORES",
                   "*6\r\n$5\r\n10000\r\n$2\r\n-5\r\n$3\r\nann\r\n$3\r\n100\r\n$3\r\nbob\r\n"
                   "$3\r\n100\r\n");
    harness_expect(h, s, "ZMSCORE z2 bob 5 ann cid dan eve",
                   "*6\r\n$2\r\n-1\r\n$3\r\n127\r\n$4\r\n1000\r\n$6\r\n100000\r\n"
                   "$10\r\n1500000000\r\n$10\r\n5000000000\r\n");
    harness_expect(h, s, "ZMSCORE z3 bob cid dan eve fay gus hal",
                   "*7\r\n$1\r\n0\r\n$2\r\n12\r\n$3\r\n100\r\n$4\r\n1000\r\n$6\r\n100000\r\n"
                   "$10\r\n1500000000\r\n$10\r\n1500000001\r\n");
    harness_expect(h, s, "ZRANGE z4 0 -1", "*1\r\n$20\r\naaaaaaaaaaaaaaaaaaax\r\n");
    harness_expect(h, s, "PEXPIRETIME z4", ":4102444800000\r\n");
    harness_expect(h, s, "PEXPIRETIME z3", ":-1\r\n");
    harness_expect(h, s, "HGETALL h0",
                   "*4\r\n$1\r\na\r\n$11\r\n-2147483648\r\n$0\r\n\r\n$5\r\nempty\r\n");
    harness_expect(h, s, "HGETALL h1", "*2\r\n$1\r\na\r\n$1\r\n1\r\n");
    harness_expect(h, s, "HGETALL h2", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    harness_expect(h, s, "HGETALL h3", "*4\r\n$1\r\na\r\n$2\r\nbc\r\n$1\r\nd\r\n$0\r\n\r\n");
    harness_expect(h, s, "HGETALL h4", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    for (int i = 5; i < MADE_HASHES; i++) {
        assert_string_equal(harness_run_format(h, s, "HGETALL h%d", i),
                            "*4\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n");
    }
    harness_expect(h, s, "DBSIZE", ":19\r\n");
    ASSERT_VALID(registry_validate, h->server.registry);
}

/* The expiries of types 22 to 25, and of Valkey: in the past, now, and later by a millisecond. */
RDB_TEST(fields_that_have_expired_are_left_out, NULL) {
    const uint64_t now_ms = HARNESS_START_US / 1000;
    for (unsigned type = 22; type <= 26; type++) {
        buffer_clear(file);
        BUFFER(pack, 0);
        bool is_valkey = type == 26;
        MAKE_RAW(file, "REDIS0013\xfe\x00");
        if (is_valkey) {
            memcpy(file->at, "VALKEY080", 9);
        }
        make_key(file, is_valkey ? 22 : type, "h");
        uint64_t base = now_ms - 1; /* of type 24, where 1 is the base */
        if (type == 24 || type == 25) {
            make_u64(file, base);
        }
        bool is_packed = type == 23 || type == 25;
        listpack_begin(&pack);
        if (!is_packed) {
            make_length(file, 4);
        }
        for (uint64_t i = 0; i < 4; i++) {
            const char name[2] = {(char)('a' + i), '\0'};
            uint64_t at_ms = i < 3 ? base + i : 0; /* the last one: none */
            char raw[9] = "\xf4";
            bytes_put_u64(raw + 1, at_ms);
            if (is_packed) {
                listpack_text(&pack, name);
                listpack_text(&pack, "x");
                listpack_raw(&pack, raw, sizeof raw);
                continue;
            }
            if (!is_valkey) {
                make_length(file, type == 24 && at_ms > 0 ? i + 1 : at_ms);
            }
            make_text(file, name);
            make_text(file, "x");
            if (is_valkey) {
                make_u64(file, at_ms > 0 ? at_ms : UINT64_MAX);
            }
        }
        if (is_packed) {
            listpack_end(&pack, 12, file);
        }
        make_end(file);
        (void)registry_flush(h->server.registry, REGISTRY_DATABASES);
        assert_int_equal(load_pieces(load, h->server.registry, file, 1), RDB_LOAD_DONE);
        assert_int_equal(load->reader.field_expiry_count, 3);
        assert_int_equal(load->expired_field_count, 2);
        assert_int_equal(load->field_count, 2);
        harness_expect(h, s, "HMGET h a b c d", "*4\r\n$-1\r\n$-1\r\n$1\r\nx\r\n$1\r\nx\r\n");
    }
}

TEST(every_encoding_is_read_in_pieces_of_any_size) {
    static const size_t pieces[] = {1, 2, 3, 7, 64, 1000000};
    struct rdb_load load;
    BUFFER(file, 0);
    make_file(&file);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        struct harness *h = harness_create(SETTINGS);
        rdb_load_init(&load, h->server.registry, 7, HARNESS_START_US);
        enum rdb_load_status status = load_pieces(&load, h->server.registry, &file, pieces[i]);
        assert_string_equal(load.error, "");
        assert_int_equal(status, RDB_LOAD_DONE);
        assert_int_equal(load.board_count, MADE_ZSETS);
        assert_int_equal(load.member_count, 4 + 3 + 6 + 7 + 1);
        assert_int_equal(load.hash_count, MADE_HASHES);
        assert_int_equal(load.reader.field_expiry_count, 4);
        assert_int_equal(load.reader.function_count, 1);
        assert_int_equal(load.reader.offset, file.size);
        uint64_t skipped = 0;
        for (int type = 0; type < RDB_TYPES; type++) {
            skipped += load.skipped[type].count;
        }
        assert_int_equal(skipped, MADE_SKIPPED);
        assert_string_equal(load.skipped[19].names[0].text, "stream 2");
        rdb_load_deinit(&load);
        expect_made(h);
        harness_destroy(h);
    }
}

RDB_TEST(a_file_that_is_cut_anywhere_is_never_whole, SETTINGS) {
    make_file(file);
    for (size_t size = 0; size < file->size; size++) {
        const struct buffer cut = {.at = file->at, .size = size};
        assert_int_equal(load_apart(h, &cut, size + 1, 0).status, RDB_LOAD_MORE);
    }
}

/* A version below 5 has no checksum: then the eight bytes are too many. */
static bool has_more(const struct trial *trial) {
    return trial->left > 0;
}

RDB_TEST(every_changed_byte_is_found, SETTINGS) {
    make_file(file);
    assert_true(flip_each_bit(h, file, 0, has_more) > file->size);
}

RDB_TEST(every_allocation_may_fail, SETTINGS) {
    make_file(file);
    expect_any_allocation_may_fail(h, file, 100, 20);
}

/* ---- what is refused ---- */

RDB_TEST(heads_that_are_not_known_are_refused, SETTINGS) {
    static const char *const heads[][2] = {
        {"REDIS0017", "unknown version 17"}, {"REDIS0000", "unknown version 0"},
        {"REDIS0080", "unknown version 80"}, {"VALKEY012", "unknown version 12"},
        {"VALKEY099", "unknown version 99"}, {"REDIS00x9", "no RDB file"},
        {"LBBASE033", "no RDB file"},        {"VALUE0009", "no RDB file"},
    };
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        buffer_clear(file);
        make_raw(file, heads[i][0], 9);
        expect_refused(h, file, heads[i][1]);
    }
}

RDB_TEST(types_and_opcodes_that_cannot_be_passed_over_are_refused, SETTINGS) {
    static const unsigned codes[] = {6, 8, 28, 33, 34, 100, 241, 246};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        begin_file(file);
        make_key(file, codes[i], "k");
        expect_refused(h, file,
                       codes[i] < 128 ? "of RDB 10: delete such keys at the source, or use a newer "
                                        "server here"
                                      : "of RDB 10: it needs a newer server here");
    }
}

/* ---- templates of hashes ---- */

static void begin_templates(struct buffer *file) {
    buffer_clear(file);
    MAKE_RAW(file, "REDIS0015");
    make_templates(file);
    MAKE_RAW(file, "\xfe\x00");
}

RDB_TEST(hashes_without_their_template_or_with_another_number_of_values_are_refused, NULL) {
    BUFFER(pack, 0);
    begin_templates(file);
    make_key(file, 32, "h");
    make_length(file, 6);
    expect_refused(h, file, "a hash of template 6, which is not there");
    begin_templates(file);
    make_key(file, 30, "h");
    make_values_listpack(file, &pack, 5); /* which has one field */
    expect_refused(h, file, "more or fewer values");
    begin_templates(file);
    make_key(file, 30, "h");
    listpack_begin(&pack);
    LISTPACK_RAW(&pack, "\x00");
    listpack_text(&pack, "b");
    listpack_end(&pack, 2, file);
    expect_refused(h, file, "more or fewer values");
    begin_templates(file);
    make_key(file, 30, "h");
    make_names_listpack(file, &pack);
    expect_refused(h, file, "without the number of its template");
}

RDB_TEST(templates_that_are_empty_twice_or_behind_a_key_are_refused, NULL) {
    begin_templates(file);
    MAKE_RAW(file, "\xf2\x09\x00");
    expect_refused(h, file, "a hash without fields");
    begin_templates(file);
    make_templates(file);
    make_key(file, 32, "h");
    make_length(file, 5);
    expect_refused(h, file, "two templates of hashes have the number 0");
    begin_templates(file);
    make_key(file, 32, "h");
    make_length(file, 5);
    make_text(file, "x");
    make_templates(file);
    expect_refused(h, file, "not in front of all keys");
    begin_file(file);
    make_key(file, 31, "h");
    make_byte(file, 2);
    expect_refused(h, file, "unknown form 2 of a hash's names");
    begin_file(file);
    make_key(file, 31, "h");
    make_byte(file, 1);
    make_length(file, 2);
    make_text(file, "a");
    make_text(file, "a");
    make_text(file, "1");
    make_text(file, "2");
    expect_refused(h, file, "a field is there twice");
}

RDB_TEST(slots_that_valkey_is_importing_are_refused, SETTINGS) {
    buffer_clear(file);
    MAKE_RAW(file, "VALKEY080\xf3\x03"
                   "job\x01\x00\x05");
    expect_refused(h, file, "being imported");
}

RDB_TEST(type_22_is_another_one_in_files_of_valkey, SETTINGS) {
    begin_file(file);
    memcpy(file->at, "VALKEY080", 9);
    make_key(file, 22, "h");
    make_length(file, 2);
    make_text(file, "a");
    make_text(file, "b");
    make_u64(file, UINT64_MAX);
    make_text(file, "c");
    make_text(file, "d");
    make_u64(file, 1);
    make_end(file);
    assert_int_equal(load_pieces(load, h->server.registry, file, 1), RDB_LOAD_DONE);
    assert_int_equal(load->field_count, 1); /* the other one has expired */
    assert_int_equal(load->reader.field_expiry_count, 1);
    begin_file(file);
    memcpy(file->at, "VALKEY080", 9);
    make_key(file, 24, "h");
    expect_refused(h, file, "unknown type 24");
}

RDB_TEST(what_a_board_cannot_hold_is_named, SETTINGS) {
    static const struct {
        const char *key;
        double score;
        const char *told;
    } cases[] = {
        {"open", 1.5, "key 'open' of database 0: member 'ann': value 1.5 has too many decimals"},
        {"plain", 1767225600123.5, "value 1767225600123.5 is out of range"},
        {"plain", 0.1 + 0.2, "value 0.30000000000000004 has too many decimals"},
        {"open", 5e9, "a board with FIELD score 40 SIGNED SCALE 0 TIME 24 M takes it"},
        {"plain", 1e300, "value 1e+300 is out of range"},
        {"plain", -1.0 / 0.0, "out of range"},
        {"money", 0.125, "with FIELD score 40 SIGNED SCALE 3 TIME 24 M"},
        {"money", 0.0 / 0.0, "a score that is not a number"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_file(file);
        make_key(file, 5, cases[i].key);
        make_length(file, 1);
        make_text(file, "ann");
        make_double(file, cases[i].score);
        expect_refused(h, file, cases[i].told);
    }
}

static void make_pairs(struct buffer *file, const char *key, const char *first,
                       const char *second) {
    make_key(file, 5, key);
    make_length(file, 2);
    make_text(file, first);
    make_double(file, 1);
    make_text(file, second);
    make_double(file, 2);
}

RDB_TEST(twins_impossible_names_and_full_boards_are_refused, SETTINGS) {
    static const struct {
        const char *before, *key, *first, *second;
        bool is_twice;
        const char *told;
    } cases[] = {
        {"", "k", "ann", "ann", false, "is there twice"},
        {"", "k", "ann", "", false, "it has 0 or more than"},
        {"", "", "ann", "bob", false, "a key has 1 to 65536 bytes"},
        {"", "few", "ann", "bob", false, "2 members, and the board's LIMIT is 1"},
        {"", "k", "ann", "bob", true, "key 'k' of database 0: it is there twice"},
        {"\xfe\x10", "k", "ann", "bob", false, "there are 16 databases"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        test_row("%s", cases[i].told);
        begin_file(file);
        make_raw(file, cases[i].before, strlen(cases[i].before));
        for (int times = 0; times <= cases[i].is_twice; times++) {
            make_pairs(file, cases[i].key, cases[i].first, cases[i].second);
        }
        expect_refused(h, file, cases[i].told);
    }
    begin_file(file);
    make_key(file, 4, "h");
    make_length(file, 2);
    make_text(file, "a");
    make_text(file, "b");
    make_text(file, "a");
    make_text(file, "c");
    expect_refused(h, file, "is there twice");
}

/* ---- order ---- */

/* Members with equal scores, in any order in the file, come out as Redis lists them. */
static void expect_order(const char *key, const char *const *members, const char *command,
                         const char *expected) {
    struct rdb_load load;
    struct harness *h = harness_create(SETTINGS);
    struct session *s = harness_connect(h);
    struct buffer file;
    buffer_init(&file, 0);
    begin_file(&file);
    rdb_load_init(&load, h->server.registry, 7, HARNESS_START_US);
    make_key(&file, 5, key);
    make_length(&file, 3);
    for (int i = 0; i < 3; i++) {
        make_text(&file, members[i]);
        make_double(&file, 5);
    }
    make_end(&file);
    assert_int_equal(load_pieces(&load, h->server.registry, &file, 5), RDB_LOAD_DONE);
    assert_string_equal(harness_run_format(h, s, "%s %s 0 -1", command, key), expected);
    rdb_load_deinit(&load);
    buffer_deinit(&file);
    harness_destroy(h);
}

TEST(equal_scores_have_the_order_of_redis) {
    static const char *const orders[][3] = {{"a", "ab", "b"}, {"b", "ab", "a"}, {"ab", "b", "a"}};
    static const char up[] = "*3\r\n$1\r\na\r\n$2\r\nab\r\n$1\r\nb\r\n";
    static const char down[] = "*3\r\n$1\r\nb\r\n$2\r\nab\r\n$1\r\na\r\n";
    for (int i = 0; i < 3; i++) {
        expect_order("high", orders[i], "ZRANGE", up);
        expect_order("high", orders[i], "ZREVRANGE", down);
        expect_order("low", orders[i], "ZRANGE", up);
        expect_order("low", orders[i], "ZREVRANGE", down);
        expect_order("money", orders[i], "ZREVRANGE", "*2\r\n$1\r\nb\r\n$2\r\nab\r\n");
    }
}

/* ---- the parts ---- */

TEST(the_checksum_is_that_of_redis) {
    assert_int_equal(rdb_bytes_crc(0, "123456789", 9), UINT64_C(0xe9c6d914c4b8d9ca));
    static const char text[] = "This is a test of the emergency broadcast system.";
    for (size_t cut = 0; cut < sizeof text; cut++) {
        assert_int_equal(rdb_bytes_crc(rdb_bytes_crc(0, text, cut), text + cut, sizeof text - cut),
                         rdb_bytes_crc(0, text, sizeof text));
    }
}

TEST(compressed_strings_that_are_damaged_are_refused) {
    BUFFER(out, 0);
    assert_true(rdb_bytes_expand(BYTES("\x00"
                                       "a\xe0\x09\x00\x00"
                                       "x"),
                                 20, &out));
    assert_memory_equal(out.at, "aaaaaaaaaaaaaaaaaaax", 20);
    assert_false(rdb_bytes_expand(BYTES("\x00"
                                        "a\xe0\x09\x00\x00"
                                        "x"),
                                  19, &out));
    assert_false(rdb_bytes_expand(BYTES("\x00"
                                        "a\xe0\x09\x00\x00"
                                        "x"),
                                  21, &out));
    assert_false(rdb_bytes_expand(BYTES("\x00"
                                        "a\x20\x01"),
                                  4, &out)); /* before the beginning */
    assert_false(rdb_bytes_expand(BYTES("\x05"
                                        "a"),
                                  6, &out));
    assert_false(rdb_bytes_expand(BYTES("\x00"
                                        "a\xe0"),
                                  4, &out));
}

TEST(scores_are_the_shortest_decimals_of_their_doubles) {
    static const struct {
        double score;
        const char *text;
    } cases[] = {{0, "0"},
                 {-0.0, "0"},
                 {1, "1"},
                 {-17, "-17"},
                 {0.1, "0.1"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {1.0 / 3, "0.3333333333333333"},
                 {0x1p53, "9007199254740992"},
                 {0x1p60, "1152921504606846976"},
                 {1e-7, "1e-07"},
                 {1e22, "1e+22"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[RDB_SCORE_TEXT_MAX] = "";
        text[rdb_value_print_score(cases[i].score, text)] = '\0';
        assert_string_equal(text, cases[i].text);
    }
}

RDB_TEST(decimals_come_as_they_were_written,
         "layout l FIELD m 60 SIGNED SCALE 6\ndefault-layout l\n") {
    enum { COUNT = 5000 };
    begin_file(file);
    make_key(file, 5, "k");
    make_length(file, COUNT);
    char text[40];
    for (int i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "%d.%06d", (i * 7919) % 100000, (int)((i * 104729L) % 1000000));
        make_text(file, text);
        make_double(file, strtod(text, NULL));
    }
    make_end(file);
    assert_int_equal(load_pieces(load, h->server.registry, file, 4096), RDB_LOAD_DONE);
    for (int i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "%d.%06d", (i * 7919) % 100000, (int)((i * 104729L) % 1000000));
        char *reply = strchr(harness_run_format(h, s, "ZSCORE k %s", text), '\n') + 1;
        reply[strcspn(reply, "\r")] = '\0';
        assert_true(strtod(reply, NULL) == strtod(text, NULL));
        assert_true(strlen(reply) <= strlen(text));
    }
}
