/* LB.CREATE, sentence by sentence. */
#include "codec/glob.h"
#include "tests/server/zset_fixture.h"

ZSET_TEST(layouts_for_times_are_built_in) {
    zset_expect(h, "LB.CREATE secs LAYOUT seconds", "+OK");
    zset_expect(h, "ZADD secs 1767225600.1234567 a -0.5 b 1767225600000.5 c",
                "-ERR value 1767225600000.5 is out of range: field 'score' takes "
                "-922337203685.4775808..922337203685.4775807");
    zset_expect(h, "ZADD secs 1767225600.1234567 a", ":1");
    zset_expect(h, "ZSCORE secs a", "1767225600.1234567");
    zset_expect(h, "LB.CREATE ms LAYOUT milliseconds", "+OK");
    zset_expect(h, "ZADD ms 1767225600123 a 1767225600123.4568 b 1767225600.25 c", ":3");
    zset_expect(h, "ZRANGE ms 0 -1 WITHSCORES",
                "[c 1767225600.25 a 1767225600123 b 1767225600123.4568]");
    zset_expect(h, "LB.CREATE ints LAYOUT int64", "+OK");
    zset_expect(h, "ZADD ints 1767225600123 ms 1767225600123456 us 1767225600123456789 ns", ":3");
    zset_expect(h, "ZRANGE ints 0 -1", "[ms us ns]");
}

HARNESS_TEST(a_line_may_give_the_name_of_a_built_in_layout_to_another,
             "default-layout seconds\nlayout seconds FIELD score 40\n") {
    zset_expect(h, "ZADD own 1.5 a",
                "-ERR value 1.5 has too many decimals: field 'score' keeps 0 (round it, or more by "
                "SCALE in the "
                "layout)");
}

ZSET_TEST(a_board_is_there_before_its_first_member) {
    zset_expect(h, "LB.CREATE k", "+OK");
    zset_expect(h, "EXISTS k", ":1");
    zset_expect(h, "TYPE k", "+zset");
    zset_expect(h, "ZCARD k", ":0");
    zset_expect(h, "OBJECT ENCODING k", "skiplist");
    zset_expect(h, "DBSIZE", ":1");
    zset_expect(h, "KEYS *", "[k]");
    zset_expect(h, "RANDOMKEY", "k");
    zset_expect(h, "TTL k", ":-1");
    zset_expect(h, "ZADD k 5 a", ":1");
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", "[a 5]");
}

ZSET_TEST(a_key_that_is_there_is_left_alone) {
    static const char busy[] = "-BUSYKEY Target key name already exists.";
    zset_expect(h, "LB.CREATE k", "+OK");
    zset_expect(h, "LB.CREATE k", busy);
    zset_expect(h, "ZADD written 5 a", ":1");
    zset_expect_unchanged(h, "written", "LB.CREATE written FIELD a 3", busy);
    /* Errors in the request itself are reported first. */
    zset_expect(h, "LB.CREATE k CAP", "-ERR CAP needs a number of members: 1..4294967295");
    zset_expect(h, "PEXPIRE k 5", ":1");
    h->wall_us += 5000;
    zset_expect(h, "LB.CREATE k", "+OK");
}

ZSET_TEST(it_stays_when_its_last_member_goes) {
    static const char *const removals[] = {
        "ZREM k a",
        "ZPOPMIN k",
        "ZPOPMAX k 10",
        "ZMPOP 2 none k MIN COUNT 3",
        "ZREMRANGEBYRANK k 0 -1",
        "ZREMRANGEBYSCORE k -inf +inf",
    };
    zset_expect(h, "LB.CREATE k FIELD points 22 CAP 3", "+OK");
    for (size_t i = 0; i < sizeof(removals) / sizeof(removals[0]); i++) {
        zset_expect(h, "ZADD k 5 a", ":1");
        zset_run(h, "%s", removals[i]);
        zset_expect(h, "ZCARD k", ":0");
        zset_expect(h, "EXISTS k", ":1");
        zset_expect_part(h, "LB.INFO k", "layout FIELD points 22 bits");
    }
    /* A write that fails leaves it, too. */
    zset_expect_unchanged(h, "k", "ZADD k 4194304 a",
                          "-ERR value 4194304 is out of range: field 'points' takes 0..4194303");
    zset_expect(h, "ZADD k XX 4 a", ":0");
    zset_expect(h, "EXISTS k", ":1");
    zset_expect(h, "DEL k", ":1");
    zset_expect(h, "EXISTS k", ":0");
}

ZSET_TEST(it_goes_by_its_time_and_when_it_is_removed) {
    zset_expect(h, "LB.CREATE k", "+OK");
    zset_expect(h, "PEXPIRE k 100", ":1");
    h->wall_us += 100000;
    zset_expect(h, "EXISTS k", ":0");
    zset_expect(h, "LB.CREATE k", "+OK");
    zset_expect(h, "UNLINK k", ":1");
    zset_expect(h, "LB.CREATE k", "+OK");
    zset_expect(h, "FLUSHALL", "+OK");
    zset_expect(h, "DBSIZE", ":0");
}

/* $ is the key. */
static const char *const on_emptiness[] = {
    "ZCARD $",
    "ZSCORE $ a",
    "ZMSCORE $ a b",
    "ZRANK $ a",
    "ZREVRANK $ a WITHSCORE",
    "ZCOUNT $ -inf +inf",
    "ZRANGE $ 0 -1",
    "ZRANGE $ 0 -1 REV WITHSCORES",
    "ZRANGE $ 1 5 BYSCORE LIMIT 0 3",
    "ZREVRANGE $ 0 -1",
    "ZRANGEBYSCORE $ -inf +inf",
    "ZREVRANGEBYSCORE $ +inf -inf WITHSCORES",
    "ZRANDMEMBER $",
    "ZRANDMEMBER $ 3 WITHSCORES",
    "ZRANDMEMBER $ -3",
    "ZPOPMIN $",
    "ZPOPMAX $ 3",
    "ZMPOP 1 $ MAX COUNT 2",
    "ZREM $ a",
    "ZREMRANGEBYRANK $ 0 -1",
    "ZREMRANGEBYSCORE $ 1 2",
    "ZADD $ XX 3 a",
    "LB.GET $ 2 a b COMP PCT WITHKEY SORT",
    "LB.RANGE $ 0 -1 COMP",
    "LB.RANGE $ -inf +inf BYSCORE",
    "LB.AROUND $ MEMBER a 3",
    "LB.AROUND $ SCORE 3 3 COMP",
    "LB.QUANTILE $ 0 0.5 1",
    "LB.HIST $ 1 5",
    "LB.ADD $ XX 3 a",
    "LB.ADD $ XX WITHRANK 3 a",
};

static const char *run_on(struct harness *h, const char *line, const char *key) {
    const char *dollar = strchr(line, '$');
    return zset_run(h, "%.*s%s%s", (int)(dollar - line), line, key, dollar + 1);
}

ZSET_TEST(an_empty_board_reads_as_a_key_that_is_not_there) {
    zset_expect(h, "LB.CREATE empty", "+OK");
    /* And one that has been large. */
    zset_expect(h, "LB.CREATE emptied", "+OK");
    for (int i = 0; i < 2000; i++) {
        zset_run(h, "ZADD emptied %d m%d", i, i);
    }
    zset_expect(h, "ZREMRANGEBYRANK emptied 0 -1", ":2000");
    for (size_t i = 0; i < 2 * sizeof(on_emptiness) / sizeof(on_emptiness[0]); i++) {
        const char *line = on_emptiness[i / 2];
        h->server.sessions.first->protocol = i % 2 == 0 ? 2 : 3;
        OWNED char *missing = strdup(run_on(h, line, "missing"));
        assert_string_equal(run_on(h, line, "empty"), missing);
        assert_string_equal(run_on(h, line, "emptied"), missing);
    }
    zset_use_resp3(h);
    zset_expect(h, "ZSCAN empty 0", "[0 []]");
    zset_expect(h, "EXISTS missing empty emptied", ":2");
}

ZSET_TEST(its_layout_is_given_by_name_or_by_words_or_by_its_own_name) {
    static const char *const samples[][2] = {
        {"LB.CREATE a LAYOUT laps", "layout FIELD ms 32 ASC TIME 31 S bits"},
        {"LB.CREATE laps:b", "layout FIELD ms 32 ASC TIME 31 S bits"},
        {"LB.CREATE laps:c LAYOUT default", "layout FIELD score 33 SIGNED TIME 31 S bits"},
        {"LB.CREATE d", "layout FIELD score 33 SIGNED TIME 31 S bits"},
        {"LB.CREATE laps:e FIELD cap 8 ASC field keep 9 SIGNED SCALE 2 TIME 20 H START "
         "2026-01-01T00:00:00+08:00 LATEST cap 3",
         "layout FIELD cap 8 ASC FIELD keep 9 SIGNED SCALE 2 TIME 20 H START "
         "2025-12-31T16:00:00Z LATEST bits"},
        {"LB.CREATE f FIELD score 64 SIGNED KEEP BEST", "layout FIELD score 64 SIGNED bits"},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        char key[16];
        zset_expect(h, samples[i][0], "+OK");
        assert_int_equal(sscanf(samples[i][0], "LB.CREATE %15s", key), 1);
        zset_expect_part(h, formatted("LB.INFO %s", key), samples[i][1]);
    }
    zset_expect(h, "LB.ADD laps:e 5 -1.25 m", ":1");
}

ZSET_TEST(a_period_is_what_lb_info_says) {
    static const char *const samples[][2] = {
        {"PERIOD DAY",
         "unit DAY tz +00:00 start :* end :* archive nil every :1 on nil at :0 from nil"},
        {"period hour every 6 at 5 tz -03:30 archive 4",
         "unit HOUR tz -03:30 start :* end :* archive :4 every :6 on nil at :5 from 1970-01-01"},
        {"TZ Europe/Berlin FROM 2026-11-16 EVERY 2 ON wed PERIOD WEEK",
         "unit WEEK tz Europe/Berlin start :* end :* archive nil every :2 on WED at :0 from "
         "2026-11-16"},
        {"PERIOD YEAR AT 23",
         "unit YEAR tz +00:00 start :* end :* archive nil every :1 on nil at :23 from nil"},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        zset_expect(h, formatted("LB.CREATE p%zu FIELD a 20 %s", i, samples[i][0]), "+OK");
        const char *info = zset_run(h, "LB.INFO p%zu", i);
        assert_true(
            glob_matches(bytes_from_text(formatted("*%s*", samples[i][1])), bytes_from_text(info)));
    }
}

static void expect_options(struct harness *h, const char *key, const char *options) {
    const char *info = zset_run(h, "LB.INFO %s", key);
    assert_non_null(strstr(info, " cap "));
    const char *end = strstr(info, " period nil limit nil frozen :0 opens nil closes nil stale nil "
                                   "settle :0 settled nil ended nil dense :0 rating nil limits nil "
                                   "tickets :0 hold nil held nil "
                                   "window nil archives [] tags []]");
    assert_non_null(end);
    size_t size = (size_t)(end - strstr(info, " cap ")) - 1;
    assert_int_equal(size, strlen(options));
    assert_memory_equal(strstr(info, " cap ") + 1, options, size);
}

HARNESS_TEST(what_is_not_said_is_as_the_settings_say, "layout laps FIELD ms 32 ASC\n"
                                                      "board top:* laps CAP 5 KEEP BEST\n") {
    zset_expect(h, "LB.CREATE top:a", "+OK");
    expect_options(h, "top:a", "cap :5 keep best created :1");
    zset_expect(h, "LB.CREATE top:b CAP 7", "+OK");
    expect_options(h, "top:b", "cap :7 keep best created :1");
    zset_expect(h, "LB.CREATE top:c keep LAST", "+OK");
    expect_options(h, "top:c", "cap :5 keep last created :1");
    /* A layout given here replaces all options from the settings. */
    zset_expect(h, "LB.CREATE top:d LAYOUT laps", "+OK");
    expect_options(h, "top:d", "cap nil keep last created :1");
    zset_expect(h, "ZADD top:e 5 a", ":1");
    expect_options(h, "top:e", "cap :5 keep best created :0");
    zset_expect(h, "ZADD other 5 a", ":1");
    expect_options(h, "other", "cap nil keep last created :0");
}

ZSET_TEST(tags_stand_behind_a_layout_or_among_the_options) {
    zset_expect(h, "LB.CREATE a FIELD p 20 TAG country 8 TAG class 4 CAP 5", "+OK");
    zset_expect(h, "LB.CREATE b FIELD p 20 TAG country 8 CAP 5 TAG class 4 TAG country 9", "+OK");
    zset_expect(h, "LB.CREATE c LAYOUT bare TAG country 8", "+OK");
    zset_expect(h, "LB.CREATE d TAG country 8 KEEP BEST", "+OK");
    zset_expect_part(h, "LB.INFO a", "[layout FIELD p 20 TAG country 8 TAG class 4 bits :20 ");
    zset_expect_part(h, "LB.INFO b", "[layout FIELD p 20 TAG country 9 TAG class 4 bits :20 ");
    zset_expect_part(h, "LB.INFO c", "[layout FIELD score 32 SIGNED TAG country 8 bits :32 ");
    zset_expect_part(h, "LB.INFO d",
                     "[layout FIELD score 33 SIGNED TIME 31 S TAG country 8 bits :64 ");
}

ZSET_TEST(what_is_wrong_is_named_and_makes_no_board) {
    static const char *const samples[][2] = {
        {"LB.CREATE \"\"", "-ERR key is 0 bytes long: 1..65536 are allowed"},
        {"LB.CREATE k LAYOUT", "-ERR LAYOUT needs the name of a configured layout"},
        {"LB.CREATE k LAYOUT lasp", "-ERR there is no layout 'lasp'; did you mean 'laps'?"},
        {"LB.CREATE k LAYOUT a\\nb", "-ERR there is no layout 'a\\nb'"},
        {"LB.CREATE k LAYOUT \"a\\nb\"", "-ERR there is no layout 'a?b'"},
        {"LB.CREATE k FIELD", "-ERR FIELD needs a name and a width: FIELD name bits [ASC|DESC] "
                              "[SIGNED] [SCALE d] [DOUBLE] [DECAY n S|M|H|D]"},
        {"LB.CREATE k FIELD cap 65", "-ERR field 'cap': '65' bits is out of range: 1..64 are "
                                     "allowed"},
        {"LB.CREATE k TIME 3 S", "-ERR TIME must be last, but no FIELD precedes it"},
        {"LB.CREATE k FIELD a 3 best",
         "-ERR unknown board option 'best': allowed are " SETTING_OPTIONS},
        {"LB.CREATE k \"did you mean\"",
         "-ERR unknown board option 'did you mean': allowed are " SETTING_OPTIONS},
        {"LB.CREATE k KEPP BEST", "-ERR unknown board option 'KEPP'; did you mean 'KEEP'?"},
        {"LB.CREATE k FIELD a 3 PERIODS WEEK",
         "-ERR unknown board option 'PERIODS'; did you mean 'PERIOD'?"},
        {"LB.CREATE k score 32",
         "-ERR unknown board option 'score': did you mean a layout, FIELD score 32?"},
        {"LB.CREATE k LAYOUT laps FIELD a 3",
         "-ERR 'FIELD' is misplaced: give one layout, before the options"},
        {"LB.CREATE k CAP 3 LAYOUT laps",
         "-ERR 'LAYOUT' is misplaced: give one layout, before the options"},
        {"LB.CREATE k TAG", "-ERR TAG needs a name and a width: TAG name bits"},
        {"LB.CREATE k TAG x", "-ERR TAG needs a name and a width: TAG name bits"},
        {"LB.CREATE k FIELD a 3 TAG", "-ERR TAG needs a name and a width: TAG name bits"},
        {"LB.CREATE k FIELD a 3 TAG x 0",
         "-ERR tag 'x': '0' bits is out of range: 1..32 are allowed"},
        {"LB.CREATE k CAP 3 TAG x y", "-ERR tag 'x': 'y' bits is out of range: 1..32 are allowed"},
        {"LB.CREATE k TAG tag 3",
         "-ERR tag name 'tag' is not allowed: 1..32 letters, digits, '_' and '-', with a letter "
         "among them, and not FIELD, TIME or TAG"},
        {"LB.CREATE k TAG x 3 TAG x 3", "-ERR TAG x may be given only once"},
        {"LB.CREATE k FIELD a 3 TAG x 3 TAG x 3", "-ERR duplicate tag name 'x'"},
        {"LB.CREATE k TAG x 30 TAG y 3",
         "-ERR tag 'y': 3 bits are too many: 2 of the 32 of all tags are left"},
        {"LB.CREATE k TAG x NONE", "-ERR no tag 'x': the board has no tags"},
        {"LB.CREATE k FIELD a 3 TAG x 3 CAP 2 TAG y NONE", "-ERR no tag 'y': the board has x"},
        {"LB.CREATE k FIELD a 3 TAG x 3 TIME 3 S", "-ERR TAG must be last, but TIME follows it"},
        {"LB.CREATE k CAP", "-ERR CAP needs a number of members: 1..4294967295"},
        {"LB.CREATE k CAP 0", "-ERR CAP '0' is not a valid number of members: 1..4294967295"},
        {"LB.CREATE k CAP 4294967296",
         "-ERR CAP '4294967296' is not a valid number of members: 1..4294967295"},
        {"LB.CREATE k CAP -1", "-ERR CAP '-1' is not a valid number of members: 1..4294967295"},
        {"LB.CREATE k CAP 1 CAP 1", "-ERR CAP may be given only once"},
        {"LB.CREATE k KEEP", "-ERR KEEP needs LAST or BEST"},
        {"LB.CREATE k KEEP CAP 3", "-ERR KEEP 'CAP' is unknown: use LAST or BEST"},
        {"LB.CREATE k KEEP BEST KEEP BEST", "-ERR KEEP may be given only once"},
        {"LB.CREATE k PERIOD", "-ERR PERIOD needs HOUR, DAY, WEEK, MONTH or YEAR"},
        {"LB.CREATE k PERIOD DECADE",
         "-ERR PERIOD 'DECADE' is unknown: use HOUR, DAY, WEEK, MONTH or YEAR"},
        {"LB.CREATE k PERIOD DAY PERIOD DAY", "-ERR PERIOD may be given only once"},
        {"LB.CREATE k PERIOD DAY TZ",
         "-ERR TZ needs an offset from UTC or name of a time zone: -12:00..+14:00, Europe/Berlin"},
        {"LB.CREATE k PERIOD DAY TZ +14:01", "-ERR TZ '+14:01' is not a valid offset from UTC or "
                                             "name of a time zone: -12:00..+14:00, Europe/Berlin"},
        {"LB.CREATE k PERIOD DAY TZ ../../etc/passwd",
         "-ERR TZ '../../etc/passwd' is not a valid offset from UTC or name of a time zone: "
         "-12:00..+14:00, Europe/Berlin"},
        {"LB.CREATE k PERIOD DAY TZ Europe/Bonn",
         "-ERR time zone 'Europe/Bonn' cannot be used: /usr/share/zoneinfo: there is no zone of "
         "this name (is the package tzdata installed?)"},
        {"LB.CREATE k PERIOD DAY TZ Europe",
         "-ERR time zone 'Europe' cannot be used: /usr/share/zoneinfo: there is no zone of "
         "this name (is the package tzdata installed?)"},
        {"LB.CREATE k PERIOD DAY EVERY 0",
         "-ERR EVERY '0' is not a valid number of periods in one: 1..1000"},
        {"LB.CREATE k PERIOD DAY EVERY 1001",
         "-ERR EVERY '1001' is not a valid number of periods in one: 1..1000"},
        {"LB.CREATE k PERIOD DAY ON MON", "-ERR ON requires PERIOD WEEK"},
        {"LB.CREATE k PERIOD WEEK ON MONDAY",
         "-ERR ON 'MONDAY' is not a weekday: MON, TUE, WED, THU, FRI, SAT or SUN"},
        {"LB.CREATE k PERIOD WEEK AT 24", "-ERR AT '24' is not an hour of the day: 0..23"},
        {"LB.CREATE k PERIOD WEEK FROM 2026-11-16", "-ERR FROM requires EVERY 2 or more"},
        {"LB.CREATE k PERIOD WEEK EVERY 2 FROM 2026-11-31",
         "-ERR FROM '2026-11-31' is not a date: 2026-11-16"},
        {"LB.CREATE k EVERY 2", "-ERR EVERY requires PERIOD HOUR|DAY|WEEK|MONTH|YEAR"},
        {"LB.CREATE k FIELD a 34 TIME 12 S PERIOD HOUR TZ Europe/Berlin",
         "-ERR PERIOD HOUR needs at least TIME 13 S: TIME 12 S has too few bits"},
        {"LB.CREATE k FIELD a 34 TIME 25 S PERIOD YEAR EVERY 2",
         "-ERR PERIOD YEAR EVERY 2 needs at least TIME 26 S: TIME 25 S has too few bits"},
        {"LB.CREATE k PERIOD DAY TZ Z TZ Z", "-ERR TZ may be given only once"},
        {"LB.CREATE k TZ +08:00", "-ERR TZ requires PERIOD HOUR|DAY|WEEK|MONTH|YEAR"},
        {"LB.CREATE k PERIOD DAY ARCHIVE", "-ERR ARCHIVE needs a number of periods: 0..1000000"},
        {"LB.CREATE k PERIOD DAY ARCHIVE 1000001",
         "-ERR ARCHIVE '1000001' is not a valid number of periods: 0..1000000"},
        {"LB.CREATE k PERIOD DAY ARCHIVE -1",
         "-ERR ARCHIVE '-1' is not a valid number of periods: 0..1000000"},
        {"LB.CREATE k ARCHIVE 3", "-ERR ARCHIVE requires PERIOD HOUR|DAY|WEEK|MONTH|YEAR"},
        {"LB.CREATE k FIELD a 34 TIME 29 MS PERIOD WEEK",
         "-ERR PERIOD WEEK needs at least TIME 30 MS: TIME 29 MS has too few bits"},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        zset_expect(h, samples[i][0], samples[i][1]);
        zset_expect(h, "DBSIZE", ":0");
    }
}

ZSET_TEST(renaming_and_copying_take_everything_along) {
    zset_expect(h, "LB.CREATE a FIELD points 9 CAP 3 KEEP BEST", "+OK");
    zset_expect(h, "COPY a laps:b", ":1");
    zset_expect(h, "RENAME a laps:c", "+OK");
    zset_expect(h, "ZADD written 1 m", ":1");
    zset_expect(h, "RENAME written a", "+OK");
    for (int i = 0; i < 2; i++) {
        const char *key = i == 0 ? "laps:b" : "laps:c";
        zset_expect_part(h, formatted("LB.INFO %s", key), "layout FIELD points 9 bits");
        expect_options(h, key, "cap :3 keep best created :1");
    }
    zset_expect(h, "ZADD laps:b 1 m 2 n 3 o 4 p", ":3");
    zset_expect(h, "ZREVRANGE laps:b 0 -1", "[p o n]");
    zset_expect(h, "ZREM laps:b n o p", ":3");
    zset_expect(h, "EXISTS laps:b", ":1");
    zset_expect(h, "ZREM a m", ":1");
    zset_expect(h, "EXISTS a", ":0");
}

ZSET_TEST(a_watched_key_has_changed_when_it_comes_to_be) {
    struct session *other = harness_connect(h);
    zset_expect(h, "WATCH k", "+OK");
    harness_expect(h, other, "LB.CREATE k", "+OK\r\n");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "ZADD k 1 a", "+QUEUED");
    zset_expect(h, "EXEC", "nil*");
    zset_expect(h, "WATCH k", "+OK");
    harness_expect(h, other, "LB.CREATE k", "-BUSYKEY Target key name already exists.\r\n");
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "ZADD k 1 a", "+QUEUED");
    zset_expect(h, "EXEC", "[:1]");
}
