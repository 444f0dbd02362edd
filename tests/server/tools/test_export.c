/* Boards and hashes as text and back: equal to the last bit. Random ones of every kind, every rule, and
 * lines that are wrong. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "server/durability/verify.h"
#include "server/settings/settings.h"
#include "server/system/clock.h"
#include "server/system/tzdata.h"
#include "server/tools/tools.h"
#include "skiplist/keyspace/registry.h"
#include "tests/support/directory.h"
#include "tests/support/registry_workload.h"

static char error[IMPORT_ERROR_MAX];

static char *export_text(const struct registry *registry, enum record_format format, size_t *size) {
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    assert_non_null(out);
    assert_true(export_records(registry, format, out));
    fclose(out);
    return text;
}

static bool import_text(struct registry *registry, enum record_format format, const char *text,
                        size_t size) {
    /* fmemopen has no empty files. */
    FILE *in = size > 0 ? fmemopen((void *)(uintptr_t)text, size, "r") : fopen("/dev/null", "r");
    assert_non_null(in);
    bool is_done = import_records(registry, format, in, error);
    fclose(in);
    return is_done;
}

/* ---- round trips ---- */

static void check_round_trip(const struct registry *registry, enum record_format format) {
    size_t size = 0;
    OWNED char *text = export_text(registry, format, &size);
    struct registry *again = workload_create_registry(0xface);
    if (!import_text(again, format, text, size)) {
        fail_msg("%s", error);
    }
    ASSERT_VALID(registry_validate, again);
    assert_true(workload_digest(again) == workload_digest(registry));
    registry_destroy(again);
}

/* Names and values that need every kind of quoting. */
static void put_odd_hash(struct workload *workload) {
    char name[64];
    char value[64];
    bool is_new;
    uint32_t added;
    struct bytes pair[2] = {{.at = name}, {.at = value}};
    for (int i = 0; i < 2; i++) {
        char *at = i == 0 ? name : value;
        pair[i].size = 1 + random_below(&workload->random, 60);
        for (size_t k = 0; k < pair[i].size; k++) {
            static const char odd[] =
                "\\\",\n\r\t x\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\x00\xff\x7f";
            at[k] = random_below(&workload->random, 4) == 0
                        ? (char)random_below(&workload->random, 256)
                        : odd[random_below(&workload->random, sizeof odd)];
        }
    }
    struct registry_key *key =
        registry_hash_find_or_create(workload->registry, 3, pair[1], workload->now_ms, &is_new);
    if (key != NULL && key->kind == REGISTRY_HASH) {
        assert_int_equal(registry_hash_put(workload->registry, &key, pair, 1, &added), HASH_OK);
    }
}

TEST(what_is_imported_is_what_was_exported) {
    ENDED_BY(workload_end) struct workload workload;
    workload_begin(&workload, __func__, 40);
    workload.has_ids = true;
    for (int round = 0; round < (is_short_run() ? 15 : 200); round++) {
        for (int i = 0; i < 60; i++) {
            workload_step(&workload);
            put_odd_hash(&workload);
        }
        check_round_trip(workload.registry, RECORD_CSV);
        check_round_trip(workload.registry, RECORD_JSONL);
    }
}

TEST(an_empty_server_is_exported_too) {
    struct registry *registry = workload_create_registry(1);
    check_round_trip(registry, RECORD_CSV);
    check_round_trip(registry, RECORD_JSONL);
    registry_destroy(registry);
}

TEST(what_is_saved_is_loaded) {
    char directory[DIRECTORY_PATH_MAX];
    char load_error[DISK_ERROR_MAX];
    uint64_t time_us;
    struct workload workload;
    clock_calibrate();
    directory_make(directory);
    workload_begin(&workload, __func__, 200);
    workload.has_ids = true;
    for (int i = 0; i < 200; i++) {
        workload_step(&workload);
    }
    assert_true(import_save(workload.registry, directory));
    struct registry *again = workload_create_registry(0xface);
    assert_true(verify_load(directory, again, &time_us, load_error));
    assert_true(workload_digest(again) == workload_digest(workload.registry));
    assert_false(import_save(again, directory)); /* it is not empty any more */
    registry_destroy(again);
    workload_end(&workload);
    directory_remove(directory);
}

/* ---- options ---- */

static void check_options(const char *text) {
    struct board_options options;
    struct board_options again;
    struct board_state happened;
    struct board_state state_again;
    char printed[RECORD_RULES_MAX];
    if (!record_parse_options(bytes_from_text(text), &options, &happened, error)) {
        fail_msg("%s: %s", text, error);
    }
    size_t size = record_print_options(&options, &happened, printed);
    assert_true(record_parse_options((struct bytes){.at = printed, .size = size}, &again,
                                     &state_again, error));
    assert_true(board_options_equal(&options, &again));
    assert_memory_equal(&happened, &state_again, sizeof happened);
    assert_int_equal(options.is_created, again.is_created);
}

static void check_period(const char *given) {
    struct board_options options;
    struct board_state happened;
    struct bytes words[32];
    char text[256];
    char printed[RECORD_RULES_MAX];
    size_t count = 0;
    assert_true(record_parse_options(BYTES("FIELD a 20 TIME 44 MS"), &options, &happened, error));
    snprintf(text, sizeof text, "%s", given);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        words[count++] = bytes_from_text(word);
    }
    assert_true(setting_options_parse(SETTING_TAKES_OPTIONS, words, count, &options, NULL, error));
    board_options_begin_period(&options, INT64_C(1795368440000));
    size_t size = record_print_options(&options, &happened, printed);
    struct board_options again;
    if (!record_parse_options((struct bytes){.at = printed, .size = size}, &again, &happened,
                              error)) {
        fail_msg("%.*s: %s", (int)size, printed, error);
    }
    assert_true(board_options_equal(&options, &again));
}

TEST(every_option_of_a_board_is_read_back) {
    check_options("FIELD score 33 SIGNED TIME 31 S");
    check_options(
        "FIELD laps 20 ASC SCALE 2 FIELD x 8 TIME 30 MS LATEST START 2026-11-16T00:00:00Z");
    check_options("FIELD a 60 ASC SCALE 3 DECAY 6 H FIELD b 4 CAP 7");
    check_options("FIELD score 30 TIME 34 MS END 1804262399000 PACKED CAP 7");
    check_options("FIELD score 33 SIGNED TIME 31 S SCORE+FRACTION 4102415999000 KEEP BEST");
    check_options("FIELD score 33 SIGNED TIME 31 S SCORE+FRACTION CAP 9");
    check_options("FIELD a 64 SIGNED CAP 100 KEEP BEST CREATED");
    check_options("FIELD a 64 LIMIT 7 FREEZE OPENS 5 CLOSES 1763890000000");
    check_options("FIELD a 34 TIME 30 MS STALE 6 HOUR SETTLE YES CREATED");
    check_options("FIELD a 64 FREEZE UNSETTLED ENDED -5 EXPIRES 1763890000000");
    check_options("FIELD a 64 SETTLED ENDED 1763890000000");
    check_options("FIELD a 64 FREEZE UNSETTLED ENDED 1763892000000 SHARE 1763888400000");
    check_options(
        "FIELD a 64 PERIOD HOUR AT 0 TZ +00:00 ARCHIVE ALL ARCHIVED FROZEN WINDOW 24 BEST "
        "COUNTS 1763884800000 LEFT 4294967295 ANEW CREATED STARTED 1763888400000 ENDS "
        "1763892000000");
    check_options(
        "FIELD a 64 PERIOD HOUR AT 0 TZ +00:00 ARCHIVE 1000 ARCHIVED FROZEN WINDOW 1000 SUM "
        "COUNTS 1763888400000 LEFT 0 STARTED 1763888400000 ENDS 1763892000000");
    check_options("FIELD a 8 FIELD b 24 FIELD c 32 LEAGUE 30 10 5 6 1 CREATED");
    check_period("PERIOD DAY AT 3 TZ +08:00 ARCHIVE ALL");
    check_period("PERIOD HOUR ARCHIVE 0 ARCHIVED FROZEN");
    check_period("PERIOD MONTH EVERY 3 FROM 2026-11-16 CAP 5 KEEP BEST");
    check_period("PERIOD WEEK EVERY 2 FROM 2026-11-16 ON WED AT 5 TZ Europe/Berlin ARCHIVE 3 "
                 "ARCHIVED WRITABLE");
    tzdata_deinit();
}

TEST(rules_that_contradict_themselves_are_refused) {
    struct board_options options;
    struct board_state happened;
    const char *const texts[] = {"",
                                 "CREATED",
                                 "FIELD a 65",
                                 "FIELD a 20 CAP",
                                 "FIELD a 20 CAP 1 LIMIT 1",
                                 "FIELD a 20 STARTED 1 ENDS 2",
                                 "FIELD a 20 COUNTS 5",
                                 "FIELD a 20 SETTLED ENDED 1 EXPIRES 5",
                                 "FIELD a 20 PERIOD DAY",
                                 "FIELD a 20 NONSENSE"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        error[0] = '\0';
        assert_false(record_parse_options(bytes_from_text(texts[i]), &options, &happened, error));
        assert_true(error[0] != '\0');
    }
}

/* ---- lines that are wrong ---- */

#define HEAD   "database,key,kind,member,score,time,value,rules,expires\n"
#define BOARD  "0,b,board,,,,,FIELD a 10 TIME 31 S,\n"
#define TAGGED "0,b,board,,,,,FIELD a 10 TAG country 8 TAG class 1,\n"

static void check_refused(enum record_format format, const char *text, const char *said) {
    struct registry *registry = workload_create_registry(1);
    assert_false(import_text(registry, format, text, strlen(text)));
    if (strstr(error, said) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", said, error);
    }
    registry_destroy(registry);
}

TEST(a_wrong_line_is_named_with_its_offset) {
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"x\n", "line 1 at offset 0: there are fewer"},
        {"a,b,c,d,e,f,g,h,i\n", "the first line does not name"},
        {HEAD "0,b\n", "line 2 at offset 56: there are fewer"},
        {HEAD "0,b,board,,,,,,,\n", "more than 9"},
        {HEAD "0,\"b,board,,,,,,\n", "the quotes"},
        {HEAD "0,b\"c,board,,,,,,\n", "the quotes"},
        {HEAD "0,b\\x0,board,,,,,,\n", "a backslash"},
        {HEAD "0,b,thing,,,,,,\n", "the kind is not board"},
        {HEAD "18,b,hash,,,,,,\n", "the database"},
        {HEAD "-1,b,hash,,,,,,\n", "the database"},
        {HEAD "16,b,board,,,,,FIELD a 10,\n", "hashes only"},
        {HEAD "0,,hash,,,,,,\n", "the key's name"},
        {HEAD "0,b,hash,,,,,,never\n", "the expiry"},
        {HEAD "0,b,hash,,,,,,\n0,b,hash,,,,,,\n", "line 3 at offset 71: this key is there already"},
        {HEAD "0,b,board,,,,,,\n", "line 2"},
        {HEAD "0,b,member,m,1,0,,,\n", "no line of this board"},
        {HEAD BOARD "0,c,member,m,1,0,,,\n", "no line of this board"},
        {HEAD BOARD "1,b,member,m,1,0,,,\n", "no line of this board"},
        {HEAD BOARD "0,b,field,m,,,x,,\n", "no line of this hash"},
        {HEAD BOARD "0,b,member,,1,0,,,\n", "the member's name"},
        {HEAD BOARD "0,b,member,m,,0,,,\n", "fewer numbers"},
        {HEAD BOARD "0,b,member,m,1 2,0,,,\n", "more numbers"},
        {HEAD BOARD "0,b,member,m,1024,0,,,\n", "out of range"},
        {HEAD BOARD "0,b,member,m,1.5,0,,,\n", "too many decimals"},
        {HEAD BOARD "0,b,member,m,1,soon,,,\n", "the time is no number"},
        {HEAD BOARD "0,b,member,m,1,-1,,,\n", "time "},
        {HEAD BOARD "0,b,member,m,#-1,,,,\n", "packed"},
        {HEAD TAGGED "0,b,member,m,1,,clan x,,\n", "no such tag"},
        {HEAD TAGGED "0,b,member,m,1,,class x class y,,\n", "named twice"},
        {HEAD TAGGED "0,b,member,m,1,,class,,\n", "no value"},
        {HEAD TAGGED "0,b,member,m,1,,\"class \"\"\"\"\",,\n", "no value"},
        {HEAD TAGGED "0,b,member,m,1,,\"class \"\"x\",,\n", "the quotes of a tag's value"},
        {HEAD TAGGED "0,b,member,m,1,,class x,,\n0,b,member,n,1,,class y,,\n",
         "more different values"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        check_refused(RECORD_CSV, wrong[i].text, wrong[i].said);
    }
}

TEST(a_wrong_line_of_json_is_named) {
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"[]\n", "line 1 at offset 0: it does not begin with {"},
        {"{}\n", "the name of a field"},
        {"{\"key\":\"b\",\"key\":\"c\"}\n", "there twice"},
        {"{\"colour\":\"b\"}\n", "unknown"},
        {"{\"key\" \"b\"}\n", "the name of a field"},
        {"{\"key\":b}\n", "neither a string nor a number"},
        {"{\"key\":\"b\\q\"}\n", "neither a string nor a number"},
        {"{\"key\":\"\\ud800\"}\n", "neither a string nor a number"},
        {"{\"key\":\"\\\\q\"}\n", "a backslash"},
        {"{\"key\":\"b\"\n", "it does not end"},
        {"{\"key\":\"b\"} x\n", "something follows"},
        {"{\"key\":\"b\",\"kind\":\"hash\"}\n", "the database"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        check_refused(RECORD_JSONL, wrong[i].text, wrong[i].said);
    }
}

TEST(what_others_write_is_read) {
    struct registry *registry = workload_create_registry(1);
    struct bytes value;
    const char *json =
        "{ \"database\" : 2, \"key\":\"\\u00e4\\ud83d\\ude00\\/\",\"kind\":\"hash\" }\r\n\n"
        "{\"database\":2,\"key\":\"\xc3\xa4\xf0\x9f\x98\x80/\",\"kind\":\"field\","
        "\"member\":\"a\\tb\",\"value\":-1.5}";
    if (!import_text(registry, RECORD_JSONL, json, strlen(json))) {
        fail_msg("%s", error);
    }
    const struct registry_key *key =
        registry_peek(registry, 2, BYTES("\xc3\xa4\xf0\x9f\x98\x80/"), 0);
    assert_non_null(key);
    assert_true(hash_find(registry_hash(key), BYTES("a\tb"), &value));
    assert_true(bytes_equal(value, BYTES("-1.5")));
    registry_destroy(registry);
}

static const struct registry_key *board_of(const struct registry *registry) {
    const struct registry_key *key = registry_peek(registry, 0, BYTES("b"), 0);
    assert_non_null(key);
    return key;
}

TEST(tags_are_words_of_a_members_line) {
    struct registry *registry = workload_create_registry(1);
    struct tag_values values;
    size_t size;
    const char *csv = HEAD TAGGED "0,b,member,m,2,,CLASS mage country DE,,\n"
                                  "0,b,member,n,1,,\"country \"\"a b,\\\\x00\"\"\",,\n"
                                  "0,b,member,o,0,,,,\n";
    if (!import_text(registry, RECORD_CSV, csv, strlen(csv))) {
        fail_msg("%s", error);
    }
    tags_at(&board_of(registry)->board, 0, &values);
    assert_true(bytes_equal(values.at[0], BYTES("DE")) && bytes_equal(values.at[1], BYTES("mage")));
    tags_at(&board_of(registry)->board, 1, &values);
    assert_int_equal(values.mask, 1);
    assert_true(bytes_equal(values.at[0], BYTES("a b,\0")));
    OWNED char *text = export_text(registry, RECORD_CSV, &size);
    assert_non_null(strstr(text, "0,b,member,m,2,,country DE class mage,,\n"
                                 "0,b,member,n,1,,\"country \"\"a b,\\\\x00\"\"\",,\n"
                                 "0,b,member,o,0,,,,\n"));
    registry_destroy(registry);
}

TEST(the_key_of_tickets_is_in_no_export) {
    struct registry *registry = workload_create_registry(0xface);
    const struct bytes secret[] = {BYTES("secret"), BYTES("s3cr3t")};
    const struct bytes used[] = {BYTES("mark"), BYTES("1767225600000")};
    size_t size = 0;
    assert_non_null(registry_hash_put_own(registry, REGISTRY_TICKETS, BYTES("key"), secret, 1, 0));
    assert_non_null(registry_hash_put_own(registry, REGISTRY_TICKETS, BYTES("19654"), used, 1, 0));
    for (int i = 0; i < 2; i++) {
        OWNED char *text = export_text(registry, i == 0 ? RECORD_CSV : RECORD_JSONL, &size);
        assert_null(strstr(text, "s3cr3t"));
        assert_non_null(strstr(text, "1767225600000"));
    }
    registry_destroy(registry);
}

TEST(each_allocation_of_an_import_may_fail) {
    struct workload workload;
    size_t size = 0;
    workload_begin(&workload, __func__, 10);
    for (int i = 0; i < 60; i++) {
        workload_step(&workload);
    }
    char *text = export_text(workload.registry, RECORD_JSONL, &size);
    bool is_done = false;
    uint64_t nth = 0;
    while (!is_done) {
        uint64_t live_before = memory_live_count();
        struct registry *registry = workload_create_registry(1);
        memory_fail_at(++nth);
        is_done = import_text(registry, RECORD_JSONL, text, size);
        memory_fail_at(0);
        assert_true(is_done || strstr(error, "memory") != NULL);
        registry_destroy(registry);
        assert_int_equal(memory_live_count(), live_before);
        nth += is_short_run() ? nth / 8 : 0;
    }
    assert_true(nth > 5);
    free(text);
    workload_end(&workload);
}
