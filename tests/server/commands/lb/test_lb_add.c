/* LB.ADD, sentence by sentence. Random ones, on boards of every layout: test_lb_model.c. */
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"

#define START_MS (HARNESS_START_US / 1000)

static const char syntax[] = "-ERR syntax error";
static const char nx_xx[] = "-ERR ... comes after ...: one of them is expected";
static const char operators[] = "-ERR ... comes after ...: one of them is expected";
static const char times[] = "-ERR ... comes after ...: one of them is expected";
static const char packed_alone[] = "-ERR PACKED must be the only option";
static const char no_integer[] = "-ERR value is not an integer or out of range";

/* ---- values ---- */

ZSET_TEST(values_are_set_kept_added_or_the_best) {
    zset_expect(h, "LB.ADD three:k 10 1 -5 a 20 0 1023 b", ":2");
    zset_expect(h, "lb.add three:k SET 10 1 -5 a 20 0 1023 b", ":0");
    zset_expect(h, "LB.GET three:k 2 a b SORT",
                "[[b :0 :1767225600000 :20 :0 :1023] [a :1 :1767225600000 :10 :1 :-5]]");
    /* A star keeps a field, and is 0 for a new member. */
    zset_expect(h, "LB.ADD three:k * 0 * a", ":1");
    zset_expect(h, "LB.ADD three:k * * * a", ":0");
    zset_expect(h, "LB.ADD three:k * 1 * c", ":1");
    zset_expect(h, "LB.GET three:k 2 a c",
                "[[a :1 :1767225600000 :10 :0 :-5] [c :2 :1767225600000 :0 :1 :0]]");
    /* INCR adds, and an equals sign sets. */
    zset_expect(h, "LB.ADD three:k INCR 5 * -3 c", ":1");
    zset_expect(h, "LB.ADD three:k INCR -1 =0 =9 c", ":1");
    zset_expect(h, "LB.ADD three:k INCR 0 0 =9 c", ":0");
    zset_expect(h, "LB.GET three:k 1 c", "[[c :2 :1767225600000 :4 :0 :9]]");
    zset_expect(h, "LB.ADD three:k =1 =1 =1 c", ":1");
    zset_expect(h, "LB.ADD money:k INCR 0.1 a 0.2 a", ":2");
    zset_expect(h, "LB.GET money:k 1 a", "[[a :0 :1767225600000 0.3]]");
    /* As one after another: there and back is fine. */
    zset_expect(h, "LB.ADD three:k INCR * * 1023 d * * -1 d * * 1 d", ":3");
    /* BEST replaces only what is strictly better, and compares tuples, never single fields. */
    zset_expect(h, "LB.ADD mixed:k 1.5 100 0 7 a", ":1");
    zset_expect(h, "LB.ADD mixed:k BEST 1.4 0 1 -99 a", ":0");
    zset_expect(h, "LB.ADD mixed:k BEST 1.5 101 1 -99 a", ":0");
    zset_expect(h, "LB.ADD mixed:k BEST 1.5 100 0 7 a", ":0");
    zset_expect(h, "LB.ADD mixed:k BEST 1.5 100 0 6 a", ":1");
    zset_expect(h, "LB.ADD mixed:k BEST 1.6 1023 * * a", ":1");
    zset_expect(h, "LB.GET mixed:k 1 a", "[[a :0 :1767225600000 1.6 :1023 :0 :6]]");
    /* One member named again goes on from there. */
    zset_expect(h, "LB.ADD k 1 a 2 a 2 a 3 a", ":3");
    zset_expect(h, "LB.ADD k INCR 1 a 1 b 1 a 1 b", ":4");
    zset_expect(h, "LB.ADD k BEST 9 a 8 a 10 a", ":2");
    zset_expect(h, "LB.ADD k NX 5 a 6 c 7 c", ":1");
    zset_expect(h, "LB.ADD k XX 8 a 9 d", ":1");
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", "[b 2 c 6 a 8]");
    /* Without a time there is the order of arrival: b leaves its rank and returns to it. */
    zset_expect(h, "LB.ADD bare:k 5 b 5 c", ":2");
    zset_expect(h, "LB.ADD bare:k 6 b 5 b", ":2");
    zset_expect(h, "ZREVRANGE bare:k 0 -1", "[c b]");
    zset_expect(h, "LB.ADD bare:k TOUCH 5 c", ":1");
    zset_expect(h, "LB.ADD bare:k KEEPTIME 5 c", ":0");
    zset_expect(h, "ZREVRANGE bare:k 0 -1", "[b c]");
}

#define TAKES_3 "-ERR ...: this board takes 3 values before each member: score flag level"
#define TAKES_1 "-ERR ...: this board takes 1 value before each member: score"

ZSET_TEST(a_member_takes_a_value_for_every_field) {
    zset_expect(h, "LB.ADD three:k 10 1 a", TAKES_3);
    zset_expect(h, "LB.ADD three:k 10 1 2 a 4 c", TAKES_3);
    zset_expect(h, "LB.ADD k 10 a 5", TAKES_1);
    zset_expect(h, "LB.ADD k SET INCR", operators);
    zset_expect(h, "LB.ADD k SET WITHRANK", TAKES_1);
    /* What is not there is not made, nor what is there changed. */
    zset_expect(h, "LB.ADD none XX 8 a 9 c", ":0");
    zset_expect(h, "LB.ADD none XX INCR 1 a", ":0");
    /* Skipped values must be valid, but their sums need not fit. */
    zset_expect(h, "LB.ADD k XX 1.5 c",
                "-ERR value 1.5 has too many decimals: field 'score' keeps 0 (round it, or more "
                "by SCALE in the layout)");
    zset_expect(h, "LB.ADD k XX INCR x c", ERROR_NUMBER("score"));
    zset_expect(h, "LB.ADD k XX INCR 18446744073709551615 c", ":0");
    assert_int_equal(registry_count(h->server.registry, 0), 0);
}

ZSET_TEST(an_increment_past_the_field_is_an_error_and_changes_nothing) {
    zset_expect(h, "LB.ADD three:k 5 1 0 a", ":1");
    zset_expect_unchanged(h, "three:k", "LB.ADD three:k INCR 1 0 0 b 1 1 0 a",
                          "-ERR value 1 + 1 is out of range: field 'flag' takes 0..1");
    zset_expect_unchanged(h, "three:k", "LB.ADD three:k INCR -6 0 0 a",
                          "-ERR value 5 + -6 is out of range: field 'score' takes 0..1048575");
    zset_expect_unchanged(h, "three:k", "LB.ADD three:k INCR 3 * 1023 c 4 * 1 c",
                          "-ERR value 1023 + 1 is out of range: field 'level' takes -1024..1023");
    zset_expect_unchanged(h, "none", "LB.ADD none INCR 4294967296 c",
                          "-ERR value 0 + 4294967296 is out of range: field 'score' takes "
                          "-4294967296..4294967295");
}

ZSET_TEST(values_outside_their_field_name_field_value_and_range) {
    zset_expect(h, "LB.ADD three:k 1 1 1 a", ":1");
    static const char *const lines[][2] = {
        {"1 2 0 b", "-ERR value 2 is out of range: field 'flag' takes 0..1"},
        {"1 =2 0 b", "-ERR value 2 is out of range: field 'flag' takes 0..1"},
        {"-1 0 0 b", "-ERR value -1 is out of range: field 'score' takes 0..1048575"},
        {"1 0 1024 b", "-ERR value 1024 is out of range: field 'level' takes -1024..1023"},
        {"inf 0 0 b", "-ERR value inf is out of range: field 'score' takes 0..1048575"},
        {"1 -inf 0 b", "-ERR value -inf is out of range: field 'flag' takes 0..1"},
        {"1 0 1e400 b", "-ERR value 1e400 is out of range: field 'level' takes -1024..1023"},
        {"1 0 0.5 b",
         "-ERR value 0.5 has too many decimals: field 'level' keeps 0 (round it, or more by SCALE "
         "in the layout)"},
        {"1 x 0 b", ERROR_NUMBER("flag")},
        {"1 = 0 b", ERROR_NUMBER("flag")},
        {"1 ** 0 b", ERROR_NUMBER("flag")},
        {"1 =* 0 b", ERROR_NUMBER("flag")},
        {"\"\" 0 0 b", ERROR_NUMBER("score")},
        {"nan 0 0 b", ERROR_NUMBER("score")},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect_unchanged(h, "three:k", formatted("LB.ADD three:k %s", lines[i][0]),
                              lines[i][1]);
        zset_expect_unchanged(
            h, "three:k", formatted("LB.ADD three:k 5 0 0 a 6 0 0 c %s", lines[i][0]), lines[i][1]);
        zset_expect_unchanged(h, "three:none", formatted("LB.ADD three:none %s", lines[i][0]),
                              lines[i][1]);
    }
    assert_int_equal(registry_count(h->server.registry, 0), 1);
}

ZSET_TEST(options_stand_in_any_order_and_case) {
    zset_expect(h, "LB.ADD k withrank best nx keeptime 5 a", "[[[a :0 :1767225600000 :5] nil]]");
    zset_expect(h, "LB.ADD k At 1767225599000 xX iNcR 5 a", ":1");
    zset_expect(h, "LB.GET k 1 a", "[[a :0 :1767225599000 :10]]");
    zset_expect(h, "LB.ADD k NX NX INCR INCR 5 NX", ":1");
}

ZSET_TEST(options_that_contradict_are_refused) {
    zset_expect(h, "LB.ADD k NX XX 1 a", nx_xx);
    zset_expect(h, "LB.ADD k INCR BEST 1 a", operators);
    zset_expect(h, "LB.ADD k SET INCR 1 a", operators);
    zset_expect(h, "LB.ADD k BEST SET 1 a", operators);
    zset_expect(h, "LB.ADD k AT 5 TOUCH 1 a", times);
    zset_expect(h, "LB.ADD k TOUCH KEEPTIME 1 a", times);
    zset_expect(h, "LB.ADD k KEEPTIME AT 5 1 a", times);
    zset_expect(h, "LB.ADD k NX PACKED 1 a", packed_alone);
    zset_expect(h, "LB.ADD k WITHRANK PACKED 1 a", packed_alone);
    zset_expect(h, "LB.ADD k AT x 1 a", no_integer);
    zset_expect(h, "LB.ADD k AT 1.5 1 a", no_integer);
    zset_expect(h, "LB.ADD k NX AT", syntax);
    zset_expect(h, "LB.ADD bare:k AT 1571819021259 9 a",
                "-ERR AT is not allowed: this layout has no TIME");
    zset_expect(h, "LB.ADD k x a", ERROR_NUMBER("score"));
    zset_expect(h, "LB.ADD k 1 a 2 \"\"", "-ERR member is 0 bytes long: 1..65536 are allowed");
    assert_int_equal(registry_count(h->server.registry, 0), 0);
}

/* As many fields as there are bits. */
TEST(sixty_four_fields_are_a_members_own) {
    static char settings[4096], values[256], record[512];
    int size = snprintf(settings, sizeof(settings), "layout bits");
    for (int i = 0; i < 64; i++) {
        size += snprintf(settings + size, sizeof(settings) - (size_t)size,
                         " FIELD a-field-with-a-long-name-%02d 1", i);
        strcat(values, i % 3 == 0 ? " 1" : " 0");
        strcat(record, i % 3 == 0 ? " :1" : " :0");
    }
    strcat(settings, "\nboard k bits\n");
    struct harness *h = harness_create(settings);
    harness_connect(h);
    const char *expected = formatted("[[m :0 nil%s 100 10540996613548315209]]", record);
    assert_string_equal(zset_run(h, "LB.ADD k%s m", values), ":1");
    zset_expect(h, "LB.GET k 1 m PCT WITHKEY", expected);
    const char *answered = zset_run(h, "LB.ADD k%s", values);
    assert_non_null(strstr(answered, "this board takes 64 values before each member: "
                                     "a-field-with-a-long-name-00 a-field-with-a-long-name-01"));
    assert_in_range(strlen(answered), 100, 700);
    harness_destroy(h);
}

/* ---- times ---- */

/* What is there so many seconds later. */
ZSET_TEST(times_are_those_of_the_last_change_or_given_or_kept) {
    static const struct {
        int seconds;
        const char *line, *reply;
    } rows[] = {
        {0, "LB.ADD paid:k 5 0 a 5 0 b", ":2"},
        {10, "LB.ADD paid:k 5 0 a", ":0"},
        {0, "LB.ADD paid:k INCR 0 0 a", ":0"},
        {0, "LB.ADD paid:k * 1 a", ":1"},
        {0, "LB.GET paid:k 2 a b", "[[a :0 :1767225610000 :5 :1] [b :1 :1767225600000 :5 :0]]"},
        /* AT, also where no field changes; a time in the future is accepted. */
        {0, "LB.ADD paid:k AT 1571819021259 5 1 a 6 0 b", ":2"},
        {0, "LB.ADD paid:k AT 1571810001259 * * a", ":1"},
        {0, "LB.ADD paid:k AT 1571810001999 5 1 a", ":0"},
        {0, "LB.ADD paid:k BEST AT 1571810000000 5 0 a", ":0"},
        {0, "LB.ADD paid:k INCR AT 1800000000000 1 * b", ":1"},
        {0, "LB.GET paid:k 2 a b", "[[a :1 :1571810001000 :5 :1] [b :0 :1800000000000 :7 :0]]"},
        /* KEEPTIME; a new member has none to keep. */
        {0, "LB.ADD paid:k KEEPTIME INCR 3 =0 a", ":1"},
        {0, "LB.ADD paid:k KEEPTIME 8 0 a", ":0"},
        {0, "LB.ADD paid:k KEEPTIME 9 0 c", ":1"},
        {0, "LB.GET paid:k 2 a c", "[[a :1 :1571810001000 :8 :0] [c :0 :1767225610000 :9 :0]]"},
        /* TOUCH stamps also what does not change, and lets who is touched arrive anew. */
        {0, "LB.ADD k 5 a 5 b", ":2"},
        {0, "LB.ADD k TOUCH 5 a", ":1"},
        {0, "ZREVRANGE k 0 -1", "[b a]"},
        {3, "LB.ADD k TOUCH * b", ":1"},
        {0, "ZREVRANGE k 0 -1", "[a b]"},
        {3, "LB.ADD k BEST TOUCH 4 a", ":1"},
        {0, "LB.ADD k NX TOUCH 9 a", ":0"},
        {0, "LB.ADD k XX TOUCH 9 c", ":0"},
        {0, "LB.GET k 2 a b", "[[a :1 :1767225616000 :5] [b :0 :1767225613000 :5]]"},
        /* On a board with the latest first it is touched to the front. */
        {0, "LB.ADD latest:k 5 a 5 b", ":2"},
        {0, "LB.ADD latest:k TOUCH * a", ":1"},
        {0, "ZREVRANGE latest:k 0 -1", "[a b]"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        harness_pass_seconds(h, rows[i].seconds);
        zset_expect(h, rows[i].line, rows[i].reply);
    }
}

#define PAID_TIMES                                                                                 \
    " is out of range: this layout's TIME takes 2011-12-27T21:11:29Z..2028-12-31T16:00:00.999999Z"
#define OVER_TIMES                                                                                 \
    "-ERR time 2026-01-01T00:00:00Z is out of range: this layout's TIME takes "                    \
    "2020-01-01T00:00:00Z..2020-01-01T00:17:03.999999Z"

ZSET_TEST(a_time_outside_the_window_names_it) {
    static const char *const rows[][2] = {
        {"LB.ADD paid:k AT 1325020288999 1 0 a", "-ERR time 2011-12-27T21:11:28.999Z" PAID_TIMES},
        {"LB.ADD paid:k AT 1861891201000 1 0 a", "-ERR time 2028-12-31T16:00:01Z" PAID_TIMES},
        {"LB.ADD paid:k XX AT -1 1 0 none", "-ERR time 1969-12-31T23:59:59.999Z" PAID_TIMES},
        {"LB.ADD k AT 9223372036854775 1 a",
         "-ERR time 9223372036854775 is out of range: this layout's TIME takes "
         "2020-01-01T00:00:00Z..2088-01-19T03:14:07.999999Z"},
        {"LB.ADD k AT 9223372036854776 1 a", no_integer},
        {"LB.ADD k AT 9223372036854775807 1 a", no_integer},
        {"LB.ADD k AT -9223372036854775808 1 a", no_integer},
        {"LB.ADD over:k 1 a", OVER_TIMES},
    };
    zset_expect_each_unchanged(h, "k", rows);
    assert_int_equal(registry_count(h->server.registry, 0), 0);
    zset_expect(h, "LB.ADD paid:k AT 1325020289000 1 0 a", ":1");
    zset_expect(h, "LB.ADD paid:k AT 1861891200999 1 0 b", ":1");
    /* A late time stops the whole command: b is new, and has no time to keep. */
    zset_expect(h, "LB.ADD over:k AT 1577836801000 1 a", ":1");
    zset_expect_unchanged(h, "over:k", "LB.ADD over:k KEEPTIME 2 a 1 b", OVER_TIMES);
    zset_expect_unchanged(h, "over:k", "LB.ADD over:k 1 a", ":0");
    zset_expect(h, "LB.ADD over:k KEEPTIME 2 a", ":1");
}

ZSET_TEST(all_members_of_one_command_carry_one_time) {
    h->wall_us += 123456;
    zset_expect(h, "LB.ADD latest:k 1 a 2 b 3 c 9 a", ":4");
    for (const char *member = "abc"; *member != '\0'; member++) {
        char name[2] = {*member, '\0'};
        assert_int_equal(zset_time_ms(h, "latest:k", name), START_MS + 123);
    }
}

/* ---- packed keys ---- */

static const char example_ranking[] =
    "[[D :0 :1571819021000 :400 :0 429786801779] [E :1 :1571810001000 :200 :1 215575316911] "
    "[C :2 :1571819021000 :200 :1 215575307891] [B :3 :1571819021000 :200 :0 215038436979] "
    "[A :4 :1571819021000 :100 :0 107664254579]]";

ZSET_TEST(three_dimensions_rank_as_their_example_does) {
    zset_expect(h, "LB.ADD paid:at AT 1571819021259 100 0 A 200 0 B 200 1 C 400 0 D", ":4");
    zset_expect(h, "LB.ADD paid:at AT 1571810001259 200 1 E", ":1");
    zset_expect(h, "LB.GET paid:at 5 A B C D E SORT WITHKEY", example_ranking);
    zset_expect(h,
                "LB.ADD paid:packed PACKED 215038436979 B 215575307891 C 429786801779 D "
                "215575316911 E 107664254579 A",
                ":5");
    zset_expect(h, "LB.GET paid:packed 5 A B C D E SORT WITHKEY", example_ranking);
    zset_expect(h, "ZREVRANGE paid:packed 0 -1", "[D E C B A]");
}

ZSET_TEST(packed_keys_that_are_there_already_change_nothing) {
    zset_expect(h, "LB.ADD fine:k PACKED 7 a 7 b -7 c 7 b", ":3");
    zset_expect(h, "ZREVRANGE fine:k 0 -1 WITHSCORES", "[a 7 b 7 c -7]");
    zset_expect_unchanged(h, "fine:k", "LB.ADD fine:k PACKED 7 b 7 a", ":0");
    zset_expect(h, "LB.ADD fine:k packed 8 a 7 a", ":2");
    zset_expect(h, "ZREVRANGE fine:k 0 -1", "[b a c]");
}

ZSET_TEST(hand_packed_integers_are_exact_to_the_last_bit) {
    zset_expect(h,
                "LB.ADD fine:k PACKED 9223372036854775807 a 9223372036854775806 b "
                "-9223372036854775808 c -9223372036854775807 d 0 e",
                ":5");
    zset_expect(h, "ZREVRANGE fine:k 0 -1 WITHSCORES",
                "[a 9223372036854775807 b 9223372036854775806 e 0 d -9223372036854775807 c "
                "-9223372036854775808]");
    zset_expect(h, "LB.GET fine:k 2 a c WITHKEY",
                "[[a :0 nil :9223372036854775807 9223372036854775807] "
                "[c :4 nil :-9223372036854775808 -9223372036854775808]]");
    zset_expect(h, "LB.ADD wide:k PACKED 18446744073709551615 a 18446744073709551614 b", ":2");
    zset_expect(h, "LB.GET wide:k 2 a b WITHKEY",
                "[[a :0 nil 18446744073709551615 18446744073709551615] "
                "[b :1 nil 18446744073709551614 18446744073709551614]]");
}

ZSET_TEST(what_reads_as_a_packed_key_may_be_written_back) {
    for (int i = 0; i < ZSET_LAYOUTS; i++) {
        zset_run(h, "ZADD %sk 5 a 5 b", zset_layout_prefixes[i]);
        char record[256];
        strcpy(record, zset_run(h, "LB.GET %sk 1 b WITHKEY", zset_layout_prefixes[i]));
        record[strlen(record) - 2] = '\0';
        zset_expect(h, "DEL copy", i == 0 ? ":0" : ":1");
        zset_run(h, "COPY %sk copy", zset_layout_prefixes[i]);
        zset_run(h, "ZREM copy b");
        zset_run(h, "LB.ADD copy PACKED %s b", strrchr(record, ' ') + 1);
        OWNED char *wanted = zset_dump(h, "copy");
        OWNED char *dump = zset_dump(h, formatted("%sk", zset_layout_prefixes[i]));
        assert_string_equal(dump, wanted);
    }
}

ZSET_TEST(packed_keys_outside_the_layouts_bits_are_refused) {
    zset_expect(h, "LB.ADD paid:k PACKED 9223372036854775807 b 9223372036854775808 a",
                "-ERR packed key 9223372036854775808 is not an integer of this layout's 63 bits: "
                "0..9223372036854775807 are allowed");
    zset_expect(h, "LB.ADD paid:k PACKED -1 a",
                "-ERR packed key -1 is not an integer of this layout's 63 "
                "bits: 0..9223372036854775807 are allowed");
    zset_expect(
        h, "LB.ADD paid:k PACKED 1.3094266712875436e+18 a",
        "-ERR packed key 1.3094266712875436e+18 is not an integer of this layout's 63 bits: "
        "0..9223372036854775807 are allowed");
    zset_expect(h, "LB.ADD fine:k PACKED 9223372036854775808 a",
                "-ERR packed key 9223372036854775808 is not an integer of this layout's 64 bits: "
                "-9223372036854775808..9223372036854775807 are allowed");
    zset_expect(h, "LB.ADD fine:k PACKED * a",
                "-ERR packed key * is not an integer of this layout's 64 bits: "
                "-9223372036854775808..9223372036854775807 are allowed");
    zset_expect(h, "LB.ADD bare:k PACKED 2147483648 a",
                "-ERR packed key 2147483648 is not an integer of this layout's 32 bits: "
                "-2147483648..2147483647 are allowed");
    zset_expect(h, "LB.ADD bare:k PACKED 5 a 6", "-ERR ...: each follows its packed key");
    zset_expect(h, "LB.ADD bare:k PACKED WITHRANK 5 a", "-ERR ...: each follows its packed key");
    assert_int_equal(registry_count(h->server.registry, 0), 0);
}

/* ---- ranks in the answer ---- */

ZSET_TEST(withrank_answers_the_record_and_the_rank_before) {
    zset_expect(h, "LB.ADD k 10 a 20 b 30 c", ":3");
    zset_expect(h, "LB.ADD k WITHRANK 25 a", "[[[a :1 :1767225600000 :25] :2]]");
    zset_expect(h, "LB.ADD k WITHRANK INCR 9 d", "[[[d :3 :1767225600000 :9] nil]]");
    zset_expect(h, "LB.ADD k WITHRANK 25 a", "[[[a :1 :1767225600000 :25] :1]]");
    /* Ranks afterwards, and ranks before, of the whole command. */
    zset_expect(h, "LB.ADD k WITHRANK 1 c 2 b 40 e 50 c",
                "[[[c :0 :1767225600000 :50] :0] [[b :4 :1767225600000 :2] :2] "
                "[[e :1 :1767225600000 :40] nil] [[c :0 :1767225600000 :50] :0]]");
    zset_expect(h, "LB.ADD k XX WITHRANK 9 x 3 b", "[[nil* nil] [[b :4 :1767225600000 :3] :4]]");
    zset_use_resp3(h);
    zset_expect(h, "LB.ADD k XX WITHRANK 9 x", "[[_ _]]");
    zset_expect(h, "LB.ADD bare:k WITHRANK 5 a", "[[[a :0 _ :5] _]]");
    zset_expect(h, "LB.ADD money:k WITHRANK 1.50 a", "[[[a :0 :1767225600000 ,1.5] _]]");
    zset_expect(h, "LB.ADD none XX WITHRANK 9 x", "[[_ _]]");
    assert_null(zset_board(h, "none"));
}

/* ---- keys, members, many ---- */

ZSET_TEST(many_members_are_one_change) {
    enum { PAIRS = 500 };
    static char line[PAIRS * 16];
    size_t size = (size_t)snprintf(line, sizeof(line), "LB.ADD k");
    for (int i = 0; i < PAIRS; i++) {
        size += (size_t)snprintf(line + size, sizeof(line) - size, " %d m%d", i, i % 490);
    }
    zset_expect_unchanged(h, "k", strcat(line, " x last"), ERROR_NUMBER("score"));
    line[size] = '\0';
    zset_expect(h, line, ":500");
    zset_expect(h, "ZRANGE k 488 -1 WITHSCORES", "[m8 498 m9 499]");
    zset_expect(h, "ZCARD k", ":490");
    free(zset_dump(h, "k"));
}

ZSET_TEST(with_nocreate_a_board_that_is_not_there_is_no_board) {
    zset_expect(h, "LB.ADD bare:k NOCREATE 5 ann", "-ERR no such key");
    zset_expect(h, "LB.ADD bare:k NX NOCREATE WITHRANK 5 ann", "-ERR no such key");
    zset_expect(h, "LB.ADD bare:k ONCE a NOCREATE 5 ann", "-ERR no such key");
    zset_expect(h, "LB.SUBMIT 1 bare:k NOCREATE 5 ann", "-ERR no such key (board 'bare:k')");
    zset_expect(h, "EXISTS bare:k", ":0");
    zset_expect(h, "LB.ADD bare:k ONCE a 5 ann", ":1"); /* the refusal has left no id */
    zset_expect(h, "LB.SUBMIT 2 bare:k bare:l NOCREATE INCR 5 ann",
                "-ERR no such key (board 'bare:l')");
    zset_expect(h, "LB.ADD bare:k NOCREATE INCR 1 ann 2 bob", ":2");
    zset_expect(h, "LB.SUBMIT 1 bare:k NOCREATE INCR 5 ann", "[[[ann :0 nil :11] :0 :1]]");
    zset_expect(h, "ZRANGE bare:k 0 -1 WITHSCORES", "[bob 2 ann 11]");
    zset_expect(h, "PEXPIRE bare:k 1", ":1");
    shadow_end(h->shadow); /* in the module the ids go with their key: docs/reference/once.md */
    harness_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD bare:k NOCREATE 5 ann", "-ERR no such key");
    zset_expect(h, "LB.ADD bare:k ONCE a NOCREATE 5 ann", ":0"); /* it counted */
    zset_expect(h, "HSET h f v", ":1");
    zset_expect(h, "LB.ADD h NOCREATE 5 ann",
                "-WRONGTYPE Operation against a key holding the wrong kind of value");
}
