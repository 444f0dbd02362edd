/* DECAY, sentence by sentence: how a score that loses half its weight in every half-life is written and
 * read by each command, and a naive twin that keeps every result. */
#include "tests/server/zset_fixture.h"
#include "tests/support/random.h"

#define HOUR_US (INT64_C(3600) * 1000 * 1000)

static const char decay_settings[] = "layout hot FIELD hot 64 SCALE 3 DECAY 6 H\n"
                                     "layout day FIELD hot 54 DECAY 1 D TIME 10 D "
                                     "START 2026-01-01T00:00:00Z\n"
                                     "layout two FIELD hot 55 DECAY 7 D FIELD votes 9\n"
                                     "layout least FIELD hot 60 ASC DECAY 1 H\n"
                                     "layout sum FIELD sum 40 SCALE 6 TIME 24 M\n"
                                     "board hot* hot\n"
                                     "board day* day\n"
                                     "board two* two\n"
                                     "board least* least\n"
                                     "board sum* sum\n";
#define DECAY_TEST(name) HARNESS_TEST(name, decay_settings)

#define REFUSED                                                                                    \
    " is refused: field 'hot' has DECAY and takes increments only, of "                            \
    "0..18446744073709551.615"

DECAY_TEST(a_score_halves_in_every_half_life) {
    static const char *const now[][2] = {
        {"ZINCRBY hot 5 ann", "5"},
        {"ZADD hot INCR 2.5 bob", "2.5"},
        {"LB.ADD hot INCR 10 cid", ":1"},
        {"ZINCRBY hot 0.001 dan", "0.001"},
        {"ZSCORE hot ann", "5"},
        {"ZINCRBY hot 3 ann", "8"},
        {"ZMSCORE hot ann bob", "[8 2.5]"},
        {"ZREVRANGE hot 0 -1", "[cid ann bob dan]"},
    };
    static const char *const later[][2] = {
        {"ZSCORE hot ann", "4"},
        {"ZSCORE hot bob", "1.25"},
        {"ZSCORE hot dan", "0.001"},
        {"ZINCRBY hot 2 ann", "6"},
        {"ZREVRANGE hot 0 1 WITHSCORES", "[ann 6 cid 5]"},
    };
    static const char *const much_later[][2] = {
        {"ZREVRANGE hot 0 -1 WITHSCORES", "[ann 0 cid 0 bob 0 dan 0]"},
        {"ZINCRBY hot 0.001 dan", "0.001"},
        {"ZREVRANGE hot 0 -1", "[dan ann cid bob]"},
        {"ZCOUNT hot 0.001 inf", ":1"},
        {"ZCOUNT hot 0 0", ":3"},
    };
    zset_expect_each(h, now);
    h->wall_us += 6 * HOUR_US;
    zset_expect_each(h, later);
    h->wall_us += 3 * HOUR_US;
    zset_expect(h, "ZSCORE hot ann", "4.243");
    h->wall_us += 1000 * HOUR_US;
    zset_expect_each(h, much_later);
}

DECAY_TEST(every_reader_gives_the_score_now) {
    static const char *const rows[][2] = {
        {"ZRANGE hot 0 -1 WITHSCORES", "[bob 1.5 ann 2]"},
        {"ZREVRANK hot ann WITHSCORE", "[:0 2]"},
        {"ZSCAN hot 0", "[0 [bob 1.5 ann 2]]"},
        {"ZRANDMEMBER hot 2 WITHSCORES", NULL},
        {"LB.GET hot 2 ann bob", "[[ann :0 nil 2] [bob :1 nil 1.5]]"},
        {"LB.GET hot 1 ann PCT", "[[ann :0 nil 2 100]]"},
        {"LB.AROUND hot MEMBER ann 1", "[[ann :0 nil 2]]"},
        {"LB.AROUND hot SCORE 1.7 2", "[[ann :0 nil 2] [bob :1 nil 1.5]]"},
        {"LB.QUANTILE hot 0", "[[bob :1 nil 1.5]]"},
        {"LB.HIST hot 1 1.5 2 3", "[:0 :0 :1 :1 :0]"},
        {"LB.COUNT hot 1.5 1.5 BYSCORE", ":1"},
        {"ZRANGE hot (1.5 2 BYSCORE", "[ann]"},
        {"ZRANGE hot -5 1.5 BYSCORE WITHSCORES", "[bob 1.5]"},
        {"ZCOUNT hot -5 -1", ":0"},
        {"ZCOUNT hot 18446744073709551.615 inf", ":0"},
        {"ZUNION 1 hot WITHSCORES", "[bob 1.5 ann 2]"},
        {"ZINTER 2 hot hot WEIGHTS 2 1 WITHSCORES", "[bob 4.5 ann 6]"},
        {"ZPOPMAX hot", "[ann 2]"},
        {"ZREMRANGEBYSCORE hot 1.5 1.5", ":1"},
    };
    zset_expect(h, "LB.SUBMIT 2 hot hot:b INCR 4 ann",
                "[[[ann :0 nil 4] nil :1] [[ann :0 nil 4] nil :1]]");
    zset_expect(h, "ZINCRBY hot 3 bob", "3");
    h->wall_us += 6 * HOUR_US;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i][1] != NULL) {
            zset_expect(h, rows[i][0], rows[i][1]);
        }
    }
}

DECAY_TEST(only_increments_are_taken) {
    static const char *const rows[][2] = {
        {"ZADD hot 5 ann", "-ERR value 5" REFUSED},
        {"ZADD hot XX GT 5 ann", "-ERR value 5" REFUSED},
        {"LB.ADD hot 5 ann", "-ERR value 5" REFUSED},
        {"LB.ADD hot BEST 5 ann", "-ERR value 5" REFUSED},
        {"LB.ADD hot INCR =5 ann", "-ERR value 5" REFUSED},
        {"LB.SUBMIT 1 hot 5 ann", "-ERR value 5" REFUSED " (board 'hot')"},
        {"ZINCRBY hot -1 ann", "-ERR value -1" REFUSED},
        {"LB.ADD hot INCR -0.5 ann", "-ERR value -0.5" REFUSED},
        {"ZINCRBY hot 1e30 ann", "-ERR value 1e30" REFUSED},
        {"ZINCRBY hot inf ann", "-ERR value inf" REFUSED},
        {"LB.AROUND hot SCORE -1 3", "-ERR value -1" REFUSED},
        {"ZINCRBY hot 0.0001 ann", "-ERR value 0.0001 has too many decimals: field 'hot' keeps 3 "
                                   "(round it, or more by SCALE in the layout)"},
        {"ZINCRBY hot 18446744073709551.615 ann", "-ERR value 1 + 18446744073709551.615 is out of "
                                                  "range: the score of field 'hot' is at most "
                                                  "18446744073709551.615"},
        {"LB.ADD hot INCR 2 bob -1 ann", "-ERR value -1" REFUSED},
        {"ZRANGE hot 0 -1 WITHSCORES", "[ann 1]"},
    };
    zset_expect(h, "ZINCRBY hot 1 ann", "1");
    zset_expect_each(h, rows);
}

DECAY_TEST(an_increment_of_0_changes_nothing_and_a_new_member_has_0) {
    static const char *const rows[][2] = {
        {"ZINCRBY day 0 ann", "0"},       {"ZINCRBY day 7 bob", "7"},
        {"LB.ADD day INCR 0 bob", ":0"},  {"LB.ADD day * cid", ":1"},
        {"LB.ADD day TOUCH * ann", ":1"}, {"ZRANGE day 0 -1 WITHSCORES", "[ann 0 cid 0 bob 7]"},
    };
    zset_expect_each(h, rows);
}

DECAY_TEST(conditions_of_zadd_hold_for_increments) {
    static const char *const rows[][2] = {
        {"ZADD hot XX INCR 1 ann", "nil"}, {"ZADD hot NX INCR 1 ann", "1"},
        {"ZADD hot NX INCR 1 ann", "nil"}, {"ZADD hot GT INCR 1 ann", "2"},
        {"ZADD hot LT INCR 1 ann", "nil"}, {"ZSCORE hot ann", "2"},
    };
    zset_expect_each(h, rows);
}

DECAY_TEST(a_result_counts_from_the_time_that_AT_gives) {
    h->wall_us = zset_us("2026-03-10T00:00:00Z");
    zset_expect(h, "LB.ADD day INCR AT 1772928000000 800 ann", ":1"); /* two days ago */
    zset_expect(h, "ZSCORE day ann", "200");
    zset_expect(h, "ZINCRBY day 300 bob", "300");
    zset_expect(h, "LB.RANGE day 0 -1",
                "[[bob :0 :1773100800000 :300] [ann :1 :1772928000000 :200]]");
    zset_expect(h, "LB.ADD day INCR AT 1577836800000 1 ann",
                "-ERR time 2020-01-01T00:00:00Z is out of range: this layout's TIME takes "
                "2026-01-01T00:00:00Z..2028-10-20T23:59:59.999999Z");
}

/* A day is a half-life. */
DECAY_TEST(a_result_may_come_after_all_its_weight_has_gone) {
    static const char *const rows[][2] = {
        {"ZINCRBY day 1000000 ann", "1000000"},
        {"LB.ADD day INCR AT 1772323200000 1000000 ann", ":0"}, /* a hundred days ago */
        {"LB.ADD day INCR WITHRANK AT 1772323200000 1 ann",
         "[[[ann :0 :1780963200000 :1000000] :0]]"},
        {"LB.SUBMIT 1 day INCR AT 1772323200000 7 ann",
         "[[[ann :0 :1780963200000 :1000000] :0 :0]]"},
        {"LB.ADD day INCR AT 1772323200000 7 bob", ":1"},
        {"LB.RANGE day 0 -1", "[[ann :0 :1780963200000 :1000000] [bob :1 :1772323200000 :0]]"},
        /* Ten days ago: 2^-10 is left. */
        {"LB.ADD day INCR AT 1780099200000 1024000 ann", ":1"},
        {"ZSCORE day ann", "1001000"},
    };
    h->wall_us = zset_us("2026-06-09T00:00:00Z");
    zset_expect_each(h, rows);
}

DECAY_TEST(after_its_last_time_a_board_takes_no_more) {
    zset_expect(h, "ZINCRBY hot 1 ann", "1");
    h->wall_us = zset_us("2070-01-01T00:00:00Z");
    zset_expect(h, "ZINCRBY hot 1 ann", "1");
    h->wall_us = zset_us("2115-01-01T00:00:00Z");
    zset_expect(h, "ZINCRBY hot 1 ann",
                "-ERR time 2115-01-01T00:00:00Z is out of range: field 'hot' with its DECAY takes "
                "2020-01-01T00:00:00Z..2109-09-02T18:00:00Z");
    zset_expect(h, "ZSCORE hot ann", "0");
}

DECAY_TEST(the_fields_behind_it_are_as_ever) {
    zset_expect(h, "LB.ADD two INCR 10 1 ann", ":1");
    zset_expect(h, "LB.ADD two INCR 10 1 ann", ":1");
    zset_expect(h, "LB.ADD two * 7 bob", ":1");
    zset_expect(h, "LB.ADD two 3 7 bob",
                "-ERR value 3 is refused: field 'hot' has DECAY and takes "
                "increments only, of 0..18446744073709551615");
    zset_expect(h, "LB.RANGE two 0 -1", "[[ann :0 nil :20 :2] [bob :1 nil :0 :7]]");
    zset_expect(h, "LB.ADD two INCR 5 =9 ann", ":1");
    zset_expect(h, "LB.GET two 1 ann", "[[ann :0 nil :25 :9]]");
}

DECAY_TEST(least_may_be_best) {
    zset_expect(h, "ZINCRBY least 5 ann", "5");
    zset_expect(h, "ZINCRBY least 3 bob", "3");
    zset_expect(h, "ZINCRBY least 0 cid", "0");
    zset_expect(h, "LB.RANGE least 0 -1", "[[cid :0 nil :0] [bob :1 nil :3] [ann :2 nil :5]]");
    zset_expect(h, "ZRANGE least 3 5 BYSCORE", "[bob ann]");
    zset_expect(h, "LB.HIST least 3", "[:1 :2]");
}

DECAY_TEST(combined_boards_take_scores_as_they_are_now_and_results_decay_from_now) {
    static const char *const rows[][2] = {
        {"ZUNIONSTORE hot:all 2 hot:a hot:b", ":2"},
        {"ZREVRANGE hot:all 0 -1 WITHSCORES", "[ann 5 bob 1]"},
        {"ZUNIONSTORE sum 2 hot:a hot:b", ":2"},
        {"ZREVRANGE sum 0 -1 WITHSCORES", "[ann 5 bob 1]"},
        {"ZRANGESTORE hot:c hot:a 0 -1", ":2"},
        {"ZREVRANGE hot:c 0 -1 WITHSCORES", "[ann 2 bob 1]"},
        {"ZUNIONSTORE hot:d 1 hot:a WEIGHTS -1", "-ERR member 'bob': value -1" REFUSED},
        {"ZUNIONSTORE day 1 hot:a WEIGHTS 0.25",
         "-ERR member 'ann': value 0.5 has too many decimals: field 'hot' keeps 0 (round it, or "
         "more by SCALE "
         "in the layout)"},
    };
    zset_expect(h, "LB.ADD hot:a INCR 4 ann 2 bob", ":2");
    h->wall_us += 6 * HOUR_US;
    zset_expect(h, "ZINCRBY hot:b 3 ann", "3");
    zset_expect_each(h, rows);
    h->wall_us += 6 * HOUR_US;
    zset_expect(h, "ZREVRANGE hot:all 0 -1 WITHSCORES", "[ann 2.5 bob 0.5]");
    zset_expect(h, "ZREVRANGE sum 0 -1 WITHSCORES", "[ann 5 bob 1]");
    zset_expect(h, "ZREVRANGE hot:c 0 -1 WITHSCORES", "[ann 1 bob 0.5]");
}

DECAY_TEST(a_packed_key_is_the_whole_state_of_a_member) {
    zset_expect(h, "ZINCRBY hot 12.345 ann", "12.345");
    const char *reply = zset_run(h, "LB.GET hot 1 ann WITHKEY");
    char key[32];
    assert_int_equal(sscanf(reply, "[[ann :0 nil 12.345 %31[0-9]", key), 1);
    zset_expect(h, formatted("LB.ADD hot:copy PACKED %s ann 0 bob", key), ":2");
    zset_expect(h, "LB.RANGE hot:copy 0 -1", "[[ann :0 nil 12.345] [bob :1 nil 0]]");
    zset_expect(h, "LB.ADD hot:copy PACKED 18446744073709551615 ann", ":1");
    zset_expect(h, "ZSCORE hot:copy ann", "18446744073709551.615");
    zset_expect_part(h, "ZINCRBY hot:copy 1 ann",
                     "-ERR value 18446744073709551.615 + 1 is out of ");
}

DECAY_TEST(a_period_begins_anew_and_its_archive_goes_on_decaying) {
    h->wall_us = zset_us("2026-03-10T12:00:00Z");
    zset_expect(h, "LB.CREATE d FIELD hot 55 SCALE 2 DECAY 6 H TIME 9 M PERIOD HOUR ARCHIVE 9000",
                "+OK");
    zset_expect(h, "ZINCRBY d 8 ann", "8");
    h->wall_us += HOUR_US;
    zset_expect(h, "ZINCRBY d 1 bob", "1");
    zset_expect(h, "ZSCORE d ann", "nil");
    h->wall_us += 5 * HOUR_US;
    zset_expect(h, "ZSCORE d@2026-03-10T12 ann", "4");
    zset_expect(h, "ZINCRBY d 1 bob", "1");
}

DECAY_TEST(one_can_be_merged_into_another) {
    zset_expect(h, "LB.ADD hot INCR 4 ann 2 bob", ":2");
    h->wall_us += 6 * HOUR_US;
    zset_expect(h, "ZINCRBY hot 5 bob", "6");
    zset_expect(h, "LB.MOVE bob ann SUM", "[:1 :0]");
    zset_expect(h, "ZRANGE hot 0 -1 WITHSCORES", "[ann 8]");
}

DECAY_TEST(a_wall_clock_that_is_set_back_changes_no_score) {
    zset_expect(h, "ZINCRBY hot 8 ann", "8");
    h->wall_us -= 24 * HOUR_US;
    zset_expect(h, "ZSCORE hot ann", "8");
    zset_expect(h, "ZINCRBY hot 1 ann", "9");
    harness_set_clock(h, h->wall_us - 6 * HOUR_US); /* of another machine: it is earlier there */
    zset_expect(h, "ZINCRBY hot 1 bob", "1");
}

DECAY_TEST(lb_info_has_the_half_life_and_the_highest_score) {
    zset_expect(h, "ZINCRBY hot 8 ann", "8");
    zset_expect_part(h, "LB.INFO hot",
                     "[layout FIELD hot 64 SCALE 3 DECAY 6 H bits :64 count :1 memory ");
    zset_expect_part(h, "LB.INFO hot",
                     "fields [[name hot bits :64 order desc signed :0 scale :3 lowest 0 highest "
                     "18446744073709551.615 half-life :21600000]] time nil");
}

DECAY_TEST(layouts_that_cannot_hold_it_are_refused) {
    static const char *const rows[][2] = {
        {"LB.CREATE k FIELD s 40 DECAY 6 H",
         "-ERR field 's': 40 bits are too few for DECAY 6 H: 53 are needed, 36 for a part in a "
         "million and 17 for the half-lives until 2070"},
        {"LB.CREATE k FIELD s 53 DECAY 6 H", "+OK"},
        {"LB.CREATE j FIELD s 33 DECAY 1 D TIME 31 S",
         "-ERR field 's': 33 bits are too few for DECAY 1 D: 51 are needed, 36 for a part in a "
         "million and 15 for the half-lives until the end of TIME"},
        {"LB.CREATE j FIELD s 64 DECAY 1 S",
         "-ERR field 's': 64 bits are too few for DECAY 1 S: 67 are needed, 36 for a part in a "
         "million and 31 for the half-lives until 2070 (a longer half-life, or a TIME that ends "
         "earlier, needs fewer)"},
        {"LB.CREATE j FIELD s 60 SIGNED DECAY 1 H",
         "-ERR field 's': SIGNED and DECAY exclude each other: results are never negative"},
        {"LB.CREATE j FIELD a 3 FIELD s 60 DECAY 1 H",
         "-ERR field 's': only the first field of a layout may have DECAY"},
        {"LB.CREATE j FIELD s 60 DECAY", "-ERR field 's': DECAY needs a half-life, such as DECAY 6 "
                                         "H"},
        {"LB.CREATE j FIELD s 60 DECAY 6 W",
         "-ERR field 's': DECAY: unit 'W' is unknown: use S, M, H or D"},
        {"LB.CREATE j FIELD s 60 DECAY 0 H",
         "-ERR field 's': DECAY '0' is out of range: 1..1000000 are allowed"},
        {"LB.CREATE j FIELD s 60 DECAY 1 H DECAY 2 H",
         "-ERR field 's': DECAY may be given only once"},
        {"EXISTS j", ":0"},
    };
    zset_expect_each(h, rows);
}

/* ---- the naive twin: it keeps every result ---- */

enum { TWIN_MEMBERS = 12, TWIN_RESULTS = 400, TWIN_STEPS = 1200, TWIN_POINT = 40 };

/* Results come and are read at whole half-lives, so that weights are powers of 2. */
struct twin {
    struct {
        unsigned member, half_lives;
        uint64_t units;
    } results[TWIN_RESULTS];
    unsigned count;
};

/* In units of 2^-TWIN_POINT. */
__extension__ typedef unsigned __int128 twin_score;

static twin_score twin_sum(const struct twin *twin, unsigned member, unsigned half_lives) {
    twin_score sum = 0;
    for (unsigned i = 0; i < twin->count; i++) {
        unsigned age = half_lives - twin->results[i].half_lives;
        if (twin->results[i].member == member && age < 2 * TWIN_POINT) {
            sum += ((twin_score)twin->results[i].units << TWIN_POINT) >> age;
        }
    }
    return sum;
}

/* What zset_run has replied, in thousandths. */
static uint64_t thousandths(const char *text) {
    struct decimal value;
    assert_int_equal(decimal_parse(bytes_from_text(text), 3, &value), DECIMAL_OK);
    return value.magnitude;
}

static void twin_check_score(struct harness *h, const struct twin *twin, unsigned member,
                             unsigned half_lives) {
    uint64_t expected =
        (uint64_t)((twin_sum(twin, member, half_lives) + ((twin_score)1 << (TWIN_POINT - 1))) >>
                   TWIN_POINT);
    const char *reply = zset_run(h, "ZSCORE hot m%u", member);
    uint64_t score = strcmp(reply, "nil") == 0 ? 0 : thousandths(reply);
    uint64_t distance = score > expected ? score - expected : expected - score;
    assert_true(distance <= 1 + expected / 1000000);
}

static void twin_check_order(struct harness *h, const struct twin *twin, unsigned half_lives) {
    const char *reply = zset_run(h, "ZREVRANGE hot 0 -1");
    twin_score last = 0;
    bool is_first = true;
    for (const char *at = strchr(reply, 'm'); at != NULL; at = strchr(at + 1, 'm')) {
        twin_score sum = twin_sum(twin, (unsigned)strtoul(at + 1, NULL, 10), half_lives);
        assert_true(is_first || sum <= last + last / 1000000 + 1);
        last = sum;
        is_first = false;
    }
}

/* Ranges are as the scores that are shown. */
static void twin_check_ranges(struct harness *h, struct random *random) {
    uint64_t low = random_below(random, UINT64_C(1) << random_below(random, 24));
    uint64_t high = low + random_below(random, UINT64_C(1) << random_below(random, 24));
    unsigned below = 0;
    unsigned inside = 0;
    unsigned above = 0;
    for (unsigned member = 0; member < TWIN_MEMBERS; member++) {
        const char *reply = zset_run(h, "ZSCORE hot m%u", member);
        if (strcmp(reply, "nil") != 0) {
            uint64_t score = thousandths(reply);
            below += score < low;
            inside += score >= low && score <= high;
            above += score > high;
        }
    }
    zset_expect(h, formatted("ZCOUNT hot %" PRIu64 "e-3 %" PRIu64 "e-3", low, high),
                formatted(":%u", inside));
    zset_expect(h, formatted("LB.HIST hot %" PRIu64 "e-3 %" PRIu64 "e-3", low, high + 1),
                formatted("[:%u :%u :%u]", below, inside, above));
}

DECAY_TEST(a_twin_that_keeps_every_result_reads_the_same) {
    struct random random = random_begin(__func__);
    static struct twin twin;
    unsigned half_lives = 0;
    twin.count = 0;
    int64_t begin_us = h->wall_us;
    for (unsigned step = 0; step < TWIN_STEPS; step++) {
        unsigned member = (unsigned)random_below(&random, TWIN_MEMBERS);
        half_lives += random_below(&random, 3) == 0 ? (unsigned)random_below(&random, 4) : 0;
        h->wall_us = begin_us + half_lives * 6 * HOUR_US;
        if (twin.count < TWIN_RESULTS && random_below(&random, 2) == 0) {
            uint64_t units = random_below(&random, UINT64_C(1) << random_below(&random, 24));
            twin.results[twin.count].member = member;
            twin.results[twin.count].half_lives = half_lives;
            twin.results[twin.count++].units = units;
            zset_run(h, "%s %" PRIu64 "e-3 m%u",
                     (const char *[]){"ZINCRBY hot", "ZADD hot INCR", "LB.ADD hot INCR"}[step % 3],
                     units, member);
        }
        twin_check_score(h, &twin, member, half_lives);
        twin_check_order(h, &twin, half_lives);
        twin_check_ranges(h, &random);
    }
}

/* ---- with other options ---- */

DECAY_TEST(who_gets_no_votes_any_more_goes_with_STALE) {
    h->wall_us = zset_us("2026-03-10T12:00:00Z");
    zset_expect(h,
                "LB.CREATE k FIELD votes 51 SCALE 2 DECAY 6 H TIME 12 D START 2026-01-01T00:00:00Z "
                "STALE 2 DAY",
                "+OK");
    zset_expect(h, "LB.ADD k INCR 5 ann 3 bob", ":2");
    h->wall_us += 48 * HOUR_US;
    zset_expect(h, "ZINCRBY k 1 bob", "1.01");
    h->wall_us += 48 * HOUR_US;
    server_update_time(&h->server);
    shadow_end(h->shadow); /* its own clock decides there */
    harness_drop_stale(h);
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", "[bob 0]");
}

DECAY_TEST(the_best_are_kept_and_the_rest_is_cut) {
    zset_expect(h, "LB.CREATE k FIELD votes 60 SCALE 1 DECAY 6 H CAP 2", "+OK");
    zset_expect(h, "LB.ADD k INCR 8 ann 4 bob", ":2");
    zset_expect(h, "ZADD k INCR 3 cid", "nil");
    h->wall_us += 6 * HOUR_US;
    zset_expect(h, "ZADD k INCR 3 cid", "3");
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", "[cid 3 ann 4]");
}

DECAY_TEST(all_or_none_of_a_transaction_and_of_several_boards) {
    zset_expect(h, "MULTI", "+OK");
    zset_expect(h, "ZINCRBY hot 5 ann", "+QUEUED");
    zset_expect(h, "ZADD hot 5 ann", "+QUEUED");
    zset_expect(h, "ZSCORE hot ann", "+QUEUED");
    zset_expect(h, "EXEC", "[5 -ERR value 5" REFUSED " 5]");
    zset_expect(h, "LB.SUBMIT 2 plain hot 5 bob", "-ERR value 5" REFUSED " (board 'hot')");
    zset_expect(h, "EXISTS plain", ":0");
    zset_expect(h, "LB.SUBMIT 2 plain hot INCR 5 bob",
                "[[[bob :0 :1767225600000 :5] nil :1] [[bob :1 nil 5] nil :1]]");
}

DECAY_TEST(records_are_numbers_or_strings_as_of_other_fields) {
    static const char *const rows[][2] = {
        {"LB.GET two 1 ann", "[[ann :0 _ :7 :2]]"},
        {"LB.GET two 1 ann STRINGS", "[[ann :0 _ 7 2]]"},
        {"LB.GET hot 1 ann", "[[ann :0 _ ,1.5]]"},
        {"ZSCORE hot ann", ",1.5"},
        {"ZRANGE two 0 -1 WITHSCORES", "[[ann ,7]]"},
    };
    zset_expect(h, "LB.ADD two INCR 7 2 ann", ":1");
    zset_expect(h, "ZINCRBY hot 1.5 ann", "1.5");
    zset_run(h, "HELLO 3");
    zset_expect_each(h, rows);
}
