/* LB.INFO, sentence by sentence. */
#include "tests/server/zset_fixture.h"

/* Expect begin and end, with MEMORY USAGE's figure between them and the default options after
 * them. */
static void expect_info(struct harness *h, const char *key, const char *begin, const char *end) {
    long long memory = strtoll(zset_run(h, "MEMORY USAGE %s", key) + 1, NULL, 10);
    char line[64], expected[1024];
    snprintf(line, sizeof(line), "LB.INFO %s", key);
    snprintf(
        expected, sizeof(expected), "%s memory :%lld %s %s", begin, memory, end,
        begin[0] == '{'
            ? "cap _ keep last created #f period _ limit _ frozen #f opens _ "
              "closes _ stale _ settle #f settled _ ended _ dense #f rating _ limits _ tickets #f "
              "hold _ held "
              "_ window _ "
              "archives [] "
              "tags []}"
            : "cap nil keep last created :0 period nil limit nil frozen :0 opens "
              "nil closes nil stale nil settle :0 settled nil ended nil dense :0 rating nil limits "
              "nil tickets :0 hold nil held nil window "
              "nil "
              "archives [] tags []]");
    zset_expect(h, line, expected);
}

ZSET_TEST(a_board_tells_its_layout_and_what_it_holds) {
    zset_expect(h, "LB.ADD paid:k 1 0 a 2 1 b", ":2");
    expect_info(h, "paid:k",
                "[layout FIELD score 33 FIELD paid 1 TIME 29 S END 2028-12-31T16:00:00Z bits :63 "
                "count :2",
                "fields [[name score bits :33 order desc signed :0 scale :0 lowest :0 highest "
                ":8589934591] [name paid bits :1 order desc signed :0 scale :0 lowest :0 highest "
                ":1]] time [unit S bits :29 order earliest first :1325020289000 last "
                ":1861891200999]");
    zset_use_resp3(h);
    expect_info(h, "paid:k",
                "{layout FIELD score 33 FIELD paid 1 TIME 29 S END 2028-12-31T16:00:00Z bits :63 "
                "count :2",
                "fields [{name score bits :33 order desc signed #f scale :0 lowest :0 highest "
                ":8589934591} {name paid bits :1 order desc signed #f scale :0 lowest :0 highest "
                ":1}] time {unit S bits :29 order earliest first :1325020289000 last "
                ":1861891200999}");
}

ZSET_TEST(fields_and_times_of_every_kind) {
    zset_expect(h, "LB.ADD bare:k 1 a", ":1");
    expect_info(h, "bare:k", "[layout FIELD score 32 SIGNED bits :32 count :1",
                "fields [[name score bits :32 order desc signed :1 scale :0 lowest :-2147483648 "
                "highest :2147483647]] time nil");
    zset_expect(h, "LB.ADD mixed:k 1 2 0 4 a", ":1");
    expect_info(
        h, "mixed:k",
        "[layout FIELD points 12 SIGNED SCALE 1 FIELD laps 10 ASC FIELD flag 1 FIELD depth "
        "9 ASC SIGNED TIME 30 S LATEST bits :62 count :1",
        "fields [[name points bits :12 order desc signed :1 scale :1 lowest -204.8 highest "
        "204.7] [name laps bits :10 order asc signed :0 scale :0 lowest :0 highest :1023] "
        "[name flag bits :1 order desc signed :0 scale :0 lowest :0 highest :1] [name depth "
        "bits :9 order asc signed :1 scale :0 lowest :-256 highest :255]] time [unit S "
        "bits :30 order latest first :1577836800000 last :2651578623999]");
    zset_use_resp3(h);
    zset_expect(h, "LB.ADD wide:k 1 a", ":1");
    expect_info(h, "wide:k", "{layout FIELD score 64 bits :64 count :1",
                "fields [{name score bits :64 order desc signed #f scale :0 lowest :0 highest "
                "(18446744073709551615}] time _");
}

/* AT accepts exactly the times that LB.INFO reports. */
ZSET_TEST(the_window_is_what_at_takes) {
    static const char *const prefixes[] = {"", "money:", "latest:", "daily:", "paid:", "over:"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        const char *values = strcmp(prefixes[i], "paid:") == 0 ? "1 0" : "1";
        zset_run(h, "LB.ADD %sk AT 1577836801000 %s a", prefixes[i], values);
        const char *info = zset_run(h, "LB.INFO %sk", prefixes[i]);
        int64_t first_ms = strtoll(strstr(info, "first :") + 7, NULL, 10);
        int64_t last_ms = strtoll(strstr(info, "last :") + 6, NULL, 10);
        const int64_t taken[] = {first_ms, last_ms}, refused[] = {first_ms - 1, last_ms + 1};
        for (int edge = 0; edge < 2; edge++) {
            assert_int_equal(zset_run(h, "LB.ADD %sk AT %lld %s a", prefixes[i],
                                      (long long)taken[edge], values)[0],
                             ':');
            assert_memory_equal(zset_run(h, "LB.ADD %sk AT %lld %s a", prefixes[i],
                                         (long long)refused[edge], values),
                                "-ERR time ", 10);
        }
    }
}

ZSET_TEST(a_board_tells_its_options) {
    zset_expect(h, "LB.CREATE k FIELD a 8 CAP 4294967295 KEEP BEST", "+OK");
    zset_use_resp3(h);
    zset_expect_part(h, "LB.INFO k", " count :0 ");
    zset_expect_part(h, "LB.INFO k",
                     " cap :4294967295 keep best created #t period _ limit _ frozen #f "
                     "opens _ closes _ stale _ settle #f settled _ ended _ dense #f rating _ "
                     "limits _ tickets #f hold _ held _ window _ "
                     "archives [] tags []}");
}

ZSET_TEST(a_missing_key_is_an_error) {
    zset_expect(h, "LB.INFO none", "-ERR no such key");
}

ZSET_TEST(a_board_tells_its_tags_and_how_many_values_they_have) {
    zset_expect(h, "LB.CREATE k FIELD a 8 TAG country 8 TAG class 2", "+OK");
    zset_expect_part(h, "LB.INFO k",
                     " archives [] tags [[name country bits :8 values :0 values-max :255] [name "
                     "class bits :2 values :0 values-max :3]]]");
    zset_expect(h, "LB.ADD k TAG country DE TAG class mage 3 ann 2 bob", ":2");
    zset_expect(h, "LB.TAG k bob country FR", ":1");
    zset_expect_part(h, "LB.INFO k",
                     " tags [[name country bits :8 values :2 values-max :255] [name class bits "
                     ":2 values :1 values-max :3]]]");
    zset_expect(h, "ZREM k bob", ":1");
    zset_use_resp3(h);
    zset_expect_part(h, "LB.INFO k",
                     " tags [{name country bits :8 values :1 values-max :255} {name class bits :2 "
                     "values :1 values-max :3}]}");
}
