/* SINCE archive and SINCE LAST of LB.GET, LB.RANGE and LB.AROUND: sentence by sentence, then at random against
 * LB.GET of the other board. */
#include "tests/server/failing_memory.h"
#include "tests/support/random.h"

enum { DAY_S = 24 * 60 * 60 };

static void set_up(struct harness *h) {
    zset_run(h, "ZADD bare:then 40 kim 30 ann 20 zoe");
    zset_run(h, "ZADD bare:k 50 zoe 40 kim 35 eve 30 ann");
}

ZSET_TEST(each_record_has_the_members_rank_on_the_other_board) {
    static const char *const rows[][2] = {
        {"LB.RANGE bare:k 0 -1 SINCE bare:then",
         "[[zoe :0 nil :50 :2] [kim :1 nil :40 :0] [eve :2 nil :35 nil] [ann :3 nil :30 :1]]"},
        {"LB.RANGE bare:k 0 1 REV since bare:then", "[[ann :3 nil :30 :1] [eve :2 nil :35 nil]]"},
        {"LB.RANGE bare:k 40 50 BYSCORE SINCE bare:then",
         "[[zoe :0 nil :50 :2] [kim :1 nil :40 :0]]"},
        {"LB.GET bare:k 4 ann none eve zoe SINCE bare:then",
         "[[ann :3 nil :30 :1] nil* [eve :2 nil :35 nil] [zoe :0 nil :50 :2]]"},
        {"LB.GET bare:k 3 ann none zoe SORT SINCE bare:then",
         "[[zoe :0 nil :50 :2] [ann :3 nil :30 :1] nil*]"},
        {"LB.GET bare:k 1 zoe SINCE bare:then PCT WITHKEY", "[[zoe :0 nil :50 100 50 :2]]"},
        {"LB.AROUND bare:k MEMBER eve 2 SINCE bare:then",
         "[[kim :1 nil :40 :0] [eve :2 nil :35 nil]]"},
        {"LB.AROUND bare:k SCORE 36 1 SINCE bare:then", "[[eve :2 nil :35 nil]]"},
        {"LB.RANGE bare:k 0 0 SINCE bare:k", "[[zoe :0 nil :50 :0]]"},
        {"LB.RANGE bare:k 0 0 SINCE none", "[[zoe :0 nil :50 nil]]"},
        {"LB.RANGE none 0 0 SINCE bare:then", "[]"},
        {"LB.GET none 2 zoe ann SINCE bare:then", "[nil* nil*]"},
        {"LB.AROUND none MEMBER zoe 2 SINCE bare:then", "[]"},
    };
    set_up(h);
    zset_expect_each(h, rows);
    zset_use_resp3(h);
    zset_expect(h, "LB.RANGE bare:k 1 2 SINCE bare:then STRINGS",
                "[[kim :1 _ 40 :0] [eve :2 _ 35 _]]");
}

ZSET_TEST(it_comes_after_tags_and_the_hash) {
    set_up(h);
    zset_run(h, "LB.CREATE t FIELD score 32 TAG country 8");
    zset_run(h, "LB.ADD t TAG country DE 9 zoe 8 kim");
    zset_run(h, "HSET p:zoe name Zoe");
    zset_expect(
        h, "LB.RANGE t 0 -1 SINCE bare:then DATA p:* TAGS",
        "[[zoe :0 nil :9 [country DE] [name Zoe] :2] [kim :1 nil :8 [country DE] nil* :0]]");
}

ZSET_TEST(a_member_or_a_value_may_have_the_words_name) {
    zset_run(h, "ZADD bare:then 40 since 30 LAST");
    zset_run(h, "ZADD bare:k 50 LAST 40 since");
    zset_run(h, "HSET p:since SINCE x");
    zset_expect(h, "LB.GET bare:k 2 SINCE LAST", "[nil* [LAST :0 nil :50]]");
    zset_expect(h, "LB.GET bare:k 2 since LAST SINCE bare:then",
                "[[since :1 nil :40 :0] [LAST :0 nil :50 :1]]");
    zset_expect(h, "LB.AROUND bare:k MEMBER since 1 SINCE bare:then", "[[since :1 nil :40 :0]]");
    zset_expect(h, "LB.GET bare:k 1 since DATA p:* FIELDS 2 SINCE LAST SINCE bare:then",
                "[[since :1 nil :40 [x nil] :0]]");
}

ZSET_TEST(with_comp_it_is_that_of_the_first_equal_there) {
    zset_run(h, "ZADD bare:then 40 kim 40 ann 20 zoe");
    zset_run(h, "ZADD bare:k 50 ann 50 zoe 50 kim");
    zset_expect(h, "LB.RANGE bare:k 0 -1 COMP SINCE bare:then",
                "[[ann :0 nil :50 :0] [zoe :0 nil :50 :2] [kim :0 nil :50 :0]]");
    zset_expect(h, "LB.GET bare:k 1 ann SINCE bare:then", "[[ann :0 nil :50 :1]]");
}

/* The tags are those of the time; only of WITHIN the values are those that members have now. */
ZSET_TEST(inside_a_group_it_is_the_rank_in_that_group) {
    static const char *const rows[][2] = {
        {"LB.RANGE k 0 -1 WHERE country DE SINCE then",
         "[[a :0 nil :90 :1] [c :1 nil :70 :0] [e :2 nil :50 nil] [f :3 nil :40 nil]]"},
        {"LB.GET k 3 a b c WHERE country DE PCT SINCE then",
         "[[a :0 nil :90 100 :1] nil* [c :1 nil :70 75 :0]]"},
        {"LB.GET k 4 d a b c WITHIN country SINCE then",
         "[[d :1 nil :60 :0] [a :0 nil :90 :1] [b :0 nil :80 :2] [c :1 nil :70 :0]]"},
        {"LB.GET k 2 e d WITHIN country SINCE then", "[[e :2 nil :50 nil] [d :1 nil :60 :0]]"},
        {"LB.AROUND k MEMBER c 3 WITHIN country SINCE then",
         "[[a :0 nil :90 :1] [c :1 nil :70 :0] [e :2 nil :50 nil]]"},
        {"LB.RANGE k 0 0 WHERENOT country DE SINCE then", "[[b :0 nil :80 :2]]"},
        {"LB.RANGE k 0 0 WHERE class mage SINCE then",
         "-ERR no tag 'class': this board has country, class2"},
        {"LB.GET k 1 a WHERE country DE SINCE none", "[[a :0 nil :90 nil]]"},
        {"LB.RANGE k 0 0 WHERE country DE SINCE bare",
         "-ERR no tag 'country': this board has no tags"},
    };
    zset_run(h, "LB.CREATE k FIELD score 33 TAG class 4 TAG country 8");
    zset_run(h, "LB.ADD k TAG country DE TAG class mage 90 a 70 c 50 e 40 f");
    zset_run(h, "LB.ADD k TAG country FR 80 b 60 d");
    zset_run(h, "LB.CREATE then FIELD score 33 TAG country 8 TAG class2 4");
    zset_run(h, "LB.ADD then TAG country FR 95 d 94 e 93 b");
    zset_run(h, "LB.ADD then TAG country DE 92 c 91 a");
    zset_run(h, "ZADD bare 1 a");
    zset_expect_each(h, rows);
}

/* ---- LAST ---- */

ZSET_TEST(last_is_the_newest_archive) {
    zset_run(h, "LB.CREATE d FIELD score 32 PERIOD DAY");
    zset_expect(h, "LB.RANGE d 0 -1 SINCE LAST", "[]");
    zset_run(h, "ZADD d 9 zoe 8 kim");
    zset_expect(h, "LB.RANGE d 0 0 SINCE LAST", "[[zoe :0 nil :9 nil]]");
    harness_pass_seconds(h, DAY_S);
    zset_run(h, "ZADD d 9 kim 8 eve");
    zset_expect(h, "LB.RANGE d 0 -1 SINCE last", "[[kim :0 nil :9 :1] [eve :1 nil :8 nil]]");
    zset_expect(h, "LB.GET d 1 kim SINCE d@2026-01-01", "[[kim :0 nil :9 :1]]");
    harness_pass_seconds(h, DAY_S);
    zset_run(h, "ZADD d 7 eve");
    zset_expect(h, "LB.RANGE d 0 -1 SINCE LAST", "[[eve :0 nil :7 :1]]");
    zset_expect(h, "LB.RANGE d 0 -1 SINCE d@2026-01-01", "[[eve :0 nil :7 nil]]");
    /* A period without results has no archive. */
    harness_pass_seconds(h, 2 * DAY_S);
    zset_run(h, "ZADD d 7 eve 5 zoe");
    zset_expect(h, "LB.AROUND d MEMBER eve 1 SINCE LAST", "[[eve :0 nil :7 :0]]");
}

/* The archive then has a number behind its name. */
ZSET_TEST(a_board_with_the_name_of_an_archive_is_none) {
    zset_run(h, "LB.CREATE d FIELD score 32 PERIOD DAY");
    zset_run(h, "ZADD d 9 zoe 8 kim");
    zset_run(h, "ZADD d@2026-01-01 1 kim");
    zset_expect(h, "LB.GET d 1 kim SINCE LAST", "[[kim :1 nil :8 nil]]");
    harness_pass_seconds(h, DAY_S);
    zset_run(h, "ZADD d 9 kim");
    zset_expect(h, "EXISTS d@2026-01-01.2", ":1");
    zset_expect(h, "LB.GET d 1 kim SINCE LAST", "[[kim :0 nil :9 :1]]");
    zset_run(h, "DEL d@2026-01-01.2");
    zset_expect(h, "LB.GET d 1 kim SINCE LAST", "[[kim :0 nil :9 nil]]");
    /* One that may be written. */
    zset_run(h, "DEL d d@2026-01-01");
    zset_run(h, "LB.CREATE d FIELD score 32 PERIOD DAY ARCHIVED WRITABLE");
    zset_run(h, "ZADD d 9 zoe");
    harness_pass_seconds(h, DAY_S);
    zset_run(h, "ZADD d 9 zoe");
    zset_expect(h, "LB.GET d 1 zoe SINCE LAST", "[[zoe :0 nil :9 :0]]");
}

ZSET_TEST(last_without_a_period_or_archives_is_nil) {
    zset_run(h, "ZADD bare:k 9 zoe");
    zset_run(h, "ZADD LAST 9 zoe");
    zset_expect(h, "LB.RANGE bare:k 0 0 SINCE LAST", "[[zoe :0 nil :9 nil]]");
    zset_run(h, "LB.CREATE d FIELD score 32 PERIOD DAY ARCHIVE 0");
    zset_run(h, "ZADD d 9 zoe");
    harness_pass_seconds(h, DAY_S);
    zset_run(h, "ZADD d 9 zoe");
    zset_expect(h, "LB.RANGE d 0 0 SINCE LAST", "[[zoe :0 nil :9 nil]]");
    zset_expect(h, "LB.GET none 1 zoe SINCE LAST", "[nil*]");
}

/* The period is over when the command runs: both boards are as they are then. */
ZSET_TEST(an_archive_that_is_due_is_made_first) {
    zset_run(h, "LB.CREATE d FIELD score 32 PERIOD DAY");
    zset_run(h, "ZADD d 9 zoe");
    zset_run(h, "ZADD bare:k 9 zoe");
    harness_pass_seconds(h, DAY_S);
    zset_expect(h, "LB.RANGE bare:k 0 0 SINCE d@2026-01-01", "[[zoe :0 nil :9 :0]]");
    zset_run(h, "ZADD d 9 zoe");
    harness_pass_seconds(h, DAY_S);
    zset_expect(h, "LB.GET d 1 zoe SINCE LAST", "[nil*]");
    zset_expect(h, "LB.RANGE d@2026-01-02 0 0 SINCE d", "[[zoe :0 nil :9 nil]]");
}

/* ---- PERIOD ... COPY ---- */

ZSET_TEST(with_copy_the_board_goes_on_and_since_last_compares_it) {
    zset_run(h, "LB.CREATE d FIELD score 32 TIME 31 S TAG country 8 PERIOD DAY COPY");
    zset_run(h, "LB.ADD d TAG country DE 9 zoe 8 kim");
    zset_run(h, "LB.ADD d TAG country FR 8 ann");
    harness_pass_seconds(h, DAY_S);
    zset_copy_archives(h);
    zset_expect(h, "LB.RANGE d 0 -1 SINCE LAST TAGS",
                "[[zoe :0 :1767225600000 :9 [country DE] :0] "
                "[kim :1 :1767225600000 :8 [country DE] :1] "
                "[ann :2 :1767225600000 :8 [country FR] :2]]");
    zset_run(h, "ZINCRBY d 5 ann");
    zset_run(h, "LB.TAG d ann country DE");
    zset_expect(h, "LB.GET d 2 ann zoe SINCE LAST",
                "[[ann :0 :1767312000000 :13 :2] [zoe :1 :1767225600000 :9 :0]]");
    zset_expect(h, "LB.GET d 1 ann WITHIN country SINCE LAST", "[[ann :0 :1767312000000 :13 nil]]");
    zset_expect(h, "LB.RANGE d@2026-01-01 0 -1 TAGS",
                "[[zoe :0 :1767225600000 :9 [country DE]] [kim :1 :1767225600000 :8 [country DE]] "
                "[ann :2 :1767225600000 :8 [country FR]]]");
    zset_expect_begin(h, "ZADD d@2026-01-01 1 x", "-FROZEN");
    zset_expect_part(h, "LB.INFO d", "archives [d@2026-01-01]");
    harness_pass_seconds(h, DAY_S);
    zset_copy_archives(h);
    zset_expect(h, "LB.GET d 2 ann kim SINCE LAST",
                "[[ann :0 :1767312000000 :13 :0] [kim :2 :1767225600000 :8 :2]]");
    zset_expect(h, "LB.GET d 1 ann SINCE d@2026-01-01", "[[ann :0 :1767312000000 :13 :2]]");
}

ZSET_TEST(copy_is_an_option_of_a_period_and_alter_gives_and_takes_it) {
    zset_expect(h, "LB.CREATE x COPY", "-ERR COPY requires PERIOD HOUR|DAY|WEEK|MONTH|YEAR");
    zset_expect(h, "LB.CREATE x PERIOD DAY COPY COPY", "-ERR COPY may be given only once");
    zset_expect(h, "LB.CREATE d FIELD score 32 PERIOD DAY", "+OK");
    zset_expect(h, "ZADD d 9 zoe", ":1");
    zset_expect(h, "LB.ALTER d COPY", "+OK");
    zset_expect(h, "LB.ALTER d PERIOD DAY", "+OK");
    zset_expect(h, "LB.ALTER d ARCHIVE 5 COPY", "+OK");
    zset_expect(h, "LB.ALTER d ARCHIVE ALL", "+OK");
    harness_pass_seconds(h, DAY_S);
    zset_copy_archives(h);
    zset_expect(h, "ZCARD d", ":1");
    zset_expect(h, "ZCARD d@2026-01-01", ":1");
    zset_expect(h, "LB.ALTER d PERIOD DAY", "+OK");
    harness_pass_seconds(h, DAY_S);
    zset_copy_archives(h);
    zset_expect(h, "ZCARD d", ":0");
    zset_expect(h, "ZCARD d@2026-01-02", ":1");
}

/* ---- refusals ---- */

ZSET_TEST(what_makes_no_sense_is_refused) {
    static const char *const reads[] = {"LB.RANGE bare:k 0 -1", "LB.GET bare:k 1 zoe",
                                        "LB.AROUND bare:k MEMBER zoe 1"};
    set_up(h);
    zset_run(h, "HSET hash a b");
    for (size_t i = 0; i < COUNT_OF(reads); i++) {
        zset_expect(h, formatted("%s SINCE", reads[i]), "-ERR syntax error");
        zset_expect(h, formatted("%s SINCE a SINCE b", reads[i]),
                    "-ERR ... comes again: SINCE is expected once");
        zset_expect_begin(h, formatted("%s SINCE hash", reads[i]), "-WRONGTYPE");
    }
}

ZSET_TEST(the_cost_counts_the_look_ups) {
    for (int i = 0; i < 5000; i++) {
        zset_run(h, "ZADD bare:k %d member:%d", i, i);
    }
    zset_run(h, "CONFIG SET busy-command-limit 1");
    assert_memory_equal(zset_run(h, "LB.RANGE bare:k 0 -1"), "[", 1);
    assert_memory_equal(zset_run(h, "LB.RANGE bare:k 0 -1 SINCE bare:k"), "-TOOLONG", 8);
    assert_memory_equal(zset_run(h, "LB.AROUND bare:k MEMBER member:7 4000 SINCE bare:k"),
                        "-TOOLONG", 8);
}

/* ---- at random ---- */

enum { MEMBERS = 60 };
static const char *const countries[] = {"DE", "FR", "CH", ""};

static void fill(struct harness *h, struct random *random, const char *key) {
    for (int i = 0; i < MEMBERS; i++) {
        if (random_below(random, 3) > 0) {
            zset_run(h, "LB.ADD %s TAG country \"%s\" %d m%d", key,
                     countries[random_below(random, 4)], (int)random_below(random, 20), i);
        }
    }
}

/* The last element of the only record. */
static int last_element(const char *reply) {
    const char *at = strrchr(reply, ' ');
    assert_non_null(at);
    return at[1] == ':' ? atoi(at + 2) : -1;
}

/* The rank in LB.GET's only record; -1: there is none. */
static int rank_in(const char *reply) {
    const char *at = strchr(reply, ' ');
    return at != NULL && at[1] == ':' ? atoi(at + 2) : -1;
}

static void compare(struct harness *h, struct random *random, int member) {
    static const char *const groups[] = {"", "WHERE country DE", "WHERENOT country FR",
                                         "WHERE country DE WHERE country \"\"", "WITHIN country"};
    const char *group = groups[random_below(random, COUNT_OF(groups))];
    const char *comp = random_below(random, 2) == 0 ? "" : "COMP";
    char same[128];
    OWNED char *reply = strdup(zset_run(h, "LB.GET k 1 m%d %s %s SINCE then", member, comp, group));
    if (strcmp(reply, "[nil*]") != 0) {
        snprintf(same, sizeof same, "%s", group);
        if (strncmp(group, "WITHIN", 6) == 0) {
            OWNED char *tags = strdup(zset_run(h, "LB.TAGS k m%d", member));
            char country[8] = "";
            (void)!sscanf(tags, "[[country %7[A-Z]", country);
            snprintf(same, sizeof same, "WHERE country \"%s\"", country);
        }
        assert_int_equal(last_element(reply),
                         rank_in(zset_run(h, "LB.GET then 1 m%d %s %s", member, comp, same)));
    }
}

/* All members in one command, whose look-ups on both boards go side by side, are what each one is by itself. */
static void compare_all(struct harness *h, const char *options) {
    char names[MEMBERS * 8] = "";
    char records[MEMBERS * 64] = "[";
    for (int i = 0; i < MEMBERS; i++) {
        const char *one = zset_run(h, "LB.GET k 1 m%d %s SINCE then", i, options);
        snprintf(names + strlen(names), sizeof names - strlen(names), " m%d", i);
        snprintf(records + strlen(records), sizeof records - strlen(records), "%s%.*s",
                 i > 0 ? " " : "", (int)strlen(one) - 2, one + 1);
    }
    strcat(records, "]");
    assert_string_equal(records,
                        zset_run(h, "LB.GET k %d%s %s SINCE then", (int)MEMBERS, names, options));
}

ZSET_TEST(it_is_what_lb_get_of_the_other_board_says) {
    struct random random = random_begin("lb since");
    int rounds = is_short_run() ? 3 : 30;
    for (int round = 0; round < rounds; round++) {
        zset_run(h, "DEL k then");
        zset_run(h, "LB.CREATE k FIELD score 8 TAG class 4 TAG country 8");
        zset_run(h, "LB.CREATE then FIELD score 8 TAG country 8");
        fill(h, &random, "k");
        fill(h, &random, "then");
        for (int i = 0; i < 2 * MEMBERS; i++) {
            compare(h, &random, (int)random_below(&random, MEMBERS));
        }
        compare_all(h, "");
        compare_all(h, "COMP PCT TAGS");
        compare_all(h, "WITHIN country");
        /* Of a range, which is looked up in groups, each record is that of LB.GET. */
        OWNED char *range = strdup(zset_run(h, "LB.RANGE k 0 -1 COMP WHERE country DE SINCE then"));
        char names[MEMBERS * 8] = "";
        int count = 0;
        for (const char *at = range; (at = strchr(at, 'm')) != NULL; at++) {
            snprintf(names + strlen(names), sizeof names - strlen(names), " m%d", atoi(at + 1));
            count++;
        }
        if (count > 0) {
            assert_string_equal(
                range, zset_run(h, "LB.GET k %d%s COMP WHERE country DE SINCE then", count, names));
        }
    }
}
