/* Ratings: published examples, random matches against decimals of 60 digits (rating_twin.py), what must hold of all, and
 * numbers as wild as a rule and a record can have. rating_hash.c: the same bits everywhere. */
#include "tests/support/test.h"

#include "codec/rating.h"
#include "tests/support/random.h"

#define MICRO INT64_C(1000000)
#define NANO  INT64_C(1000000000)
#define AT_MS INT64_C(1700000000000)

static struct rating_rule rule_of(enum rating_system system) {
    struct rating_rule rule;
    rating_rule_init(&rule, system);
    return rule;
}

/* Without what a match adds to deviations: most published numbers are so. */
static struct rating_rule skill_rule(enum rating_model model) {
    struct rating_rule rule = rule_of(RATING_OPENSKILL);
    rule.of[RATING_MODEL] = model;
    rule.of[RATING_TAU] = 0;
    return rule;
}

/* Lichess': one game after the other, deviations without growth. */
static struct rating_rule game_rule(void) {
    struct rating_rule rule = rule_of(RATING_GLICKO2);
    rule.of[RATING_TAU] = 750 * MICRO;
    rule.of[RATING_PERIOD_MS] = 0;
    return rule;
}

static void check_and_match(const struct rating_rule *rule, const struct rating_match *match,
                            struct rating_record *records) {
    enum rating_parameter wrong;
    assert_true(rating_rule_check(rule, &wrong));
    assert_int_equal(rating_match_check(rule, match), RATING_OK);
    rating_match(rule, match, records);
}

enum { PLAYERS_HERE = 16 };
/* Sizes of teams of one. */
static uint32_t ones[RATING_TEAMS_MAX];
static int fill_ones(__attribute__((unused)) void **state) {
    for (int i = 0; i < RATING_TEAMS_MAX; i++) {
        ones[i] = 1;
    }
    return 0;
}
TEST_MAIN(fill_ones, NULL)

/* Two players, of whom the first wins (1), loses (-1) or draws. */
static void duel(const struct rating_rule *rule, int result, struct rating_record *a,
                 struct rating_record *b) {
    struct rating_record records[] = {*a, *b};
    uint32_t ranks[] = {result < 0 ? 2 : 1, result > 0 ? 2 : 1};
    struct rating_match match = {.sizes = ones, .ranks = ranks, .teams = 2, .at_ms = AT_MS};
    check_and_match(rule, &match, records);
    *a = records[0];
    *b = records[1];
}

static void assert_near(int64_t number, int64_t expected, int64_t distance) {
    int64_t off = number - expected;
    test_row("%" PRId64 " where %" PRId64 " is expected", number, expected);
    assert_true(off <= distance && off >= -distance);
}

/* ---- rules ---- */

TEST(defaults_are_valid_and_a_wrong_parameter_is_named) {
    for (enum rating_system system = 0; system < RATING_SYSTEMS; system++) {
        struct rating_rule rule = rule_of(system);
        enum rating_parameter wrong;
        assert_true(rating_rule_check(&rule, &wrong));
        for (enum rating_parameter i = 0; i < RATING_PARAMETERS; i++) {
            bool is_of = rating_parameter_is_of(i, system);
            int64_t least = is_of ? rating_parameter_least(i, system) : 0;
            int64_t most = is_of ? rating_parameter_most(i, system) : 0;
            test_row("%s of %s", rating_parameter_name(i), rating_system_name(system));
            rule.of[i] = least - 1;
            assert_false(rating_rule_check(&rule, &wrong));
            assert_int_equal(wrong, i);
            rule.of[i] = most + 1;
            assert_false(rating_rule_check(&rule, &wrong));
            assert_int_equal(wrong, i);
            rule = rule_of(system);
        }
    }
}

TEST(a_start_outside_its_limits_is_refused) {
    static const enum rating_parameter starts[] = {RATING_START, RATING_START_DEV,
                                                   RATING_START_VOL};
    static const enum rating_parameter leasts[] = {RATING_MIN, RATING_DEV_MIN, RATING_VOL_MIN};
    static const enum rating_parameter mosts[] = {RATING_MAX, RATING_DEV_MAX, RATING_VOL_MAX};
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        struct rating_rule rule = rule_of(RATING_GLICKO2);
        enum rating_parameter wrong = RATING_PARAMETERS;
        rule.of[mosts[i]] = rule.of[starts[i]] - 1;
        assert_false(rating_rule_check(&rule, &wrong));
        assert_int_equal(wrong, starts[i]);
        rule = rule_of(RATING_GLICKO2);
        rule.of[leasts[i]] = rule.of[starts[i]] + 1;
        assert_false(rating_rule_check(&rule, &wrong));
        assert_int_equal(wrong, starts[i]);
    }
}

TEST(parameters_have_names_of_their_own_and_decimals) {
    for (enum rating_parameter i = 0; i < RATING_PARAMETERS; i++) {
        for (enum rating_parameter j = 0; j < i; j++) {
            assert_string_not_equal(rating_parameter_name(i), rating_parameter_name(j));
        }
    }
    assert_int_equal(rating_parameter_decimals(RATING_START, RATING_ELO), 6);
    assert_int_equal(rating_parameter_decimals(RATING_START, RATING_OPENSKILL), 9);
    assert_int_equal(rating_parameter_decimals(RATING_K, RATING_ELO), 0);
    assert_int_equal(rating_parameter_decimals(RATING_Z, RATING_GLICKO2), 3);
    assert_string_equal(rating_system_name(RATING_OPENSKILL), "OPENSKILL");
}

/* ---- records ---- */

TEST(a_match_is_taken_off_a_record) {
    struct rating_rule rule = game_rule();
    struct rating_record a = rating_record_start(&rule);
    struct rating_record b = a;
    struct rating_record first[2] = {a, a}, second[2];
    duel(&rule, 1, &a, &b);
    first[1] = second[0] = a;
    duel(&rule, 1, &a, &b);
    second[1] = a;
    /* The last one leaves no trace. */
    rating_record_take_back(&rule, &second[0], &second[1], &a);
    assert_memory_equal(&a, &first[1], sizeof a);
    /* Of an earlier one the change is subtracted, and what it told of the deviation: 1/350^2 is left of 1/290.2^2. */
    a = second[1];
    rating_record_take_back(&rule, &first[0], &first[1], &a);
    assert_int_equal(a.value - second[1].value, first[0].value - first[1].value);
    double known = 1 / (double)second[1].deviation / (double)second[1].deviation -
                   1 / (double)first[1].deviation / (double)first[1].deviation +
                   1 / (double)first[0].deviation / (double)first[0].deviation;
    double wanted = 1 / known;
    double got = (double)a.deviation * (double)a.deviation;
    assert_true(got / wanted < 1.000001 && wanted / got < 1.000001);
    assert_true(a.deviation > second[1].deviation && a.deviation < first[0].deviation);
    assert_int_equal(a.won, 1);
    assert_int_equal(a.last_ms, second[1].last_ms);
}

TEST(a_record_packs_to_its_bytes_and_back) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 10000; i++) {
        struct rating_record record = {
            .value = (int64_t)random_below(&random, 2 * RATING_LIMIT + 1) - RATING_LIMIT,
            .deviation = (int64_t)random_below(&random, RATING_LIMIT + 1),
            .last_ms = (int64_t)random_below(&random, RATING_MS_MAX + 1),
            .volatility = (uint32_t)random_below(&random, NANO + 1),
            .won = (uint32_t)random_next(&random),
            .drawn = (uint32_t)random_next(&random),
            .lost = (uint32_t)random_next(&random),
            .is_top = random_below(&random, 2) == 1,
        };
        struct rating_record read;
        char bytes[RATING_RECORD_BYTES];
        char again[RATING_RECORD_BYTES];
        memset(&read, 0, sizeof read);
        rating_pack(&record, bytes);
        assert_true(rating_unpack(bytes, &read));
        rating_pack(&read, again);
        assert_memory_equal(bytes, again, sizeof bytes);
        assert_int_equal(read.value, record.value);
        assert_int_equal(read.deviation, record.deviation);
        assert_int_equal(read.last_ms, record.last_ms);
        assert_int_equal(read.volatility, record.volatility);
        assert_int_equal(read.is_top, record.is_top);
        assert_int_equal(rating_games(&read), (uint64_t)record.won + record.drawn + record.lost);
    }
}

TEST(the_bytes_of_a_record_are_these) {
    static const char known[RATING_RECORD_BYTES] =
        "\xff\xff\xff\xff\xff\xff\xff\xff\x02\x01\x00\x00\x00\x00\x00\x00\x04\x03\x00\x00"
        "\x05\x00\x00\x00\x06\x00\x00\x00\x07\x00\x00\x00\x0d\x0c\x0b\x0a\x09\x08\x01";
    struct rating_record record = {.value = -1,
                                   .deviation = 0x102,
                                   .last_ms = 0x08090a0b0c0d,
                                   .volatility = 0x304,
                                   .won = 5,
                                   .drawn = 6,
                                   .lost = 7,
                                   .is_top = true};
    char bytes[RATING_RECORD_BYTES];
    rating_pack(&record, bytes);
    assert_memory_equal(bytes, known, sizeof bytes);
}

TEST(bytes_that_no_record_has_are_refused) {
    struct rating_rule rule = rule_of(RATING_GLICKO2);
    struct rating_record record = rating_record_start(&rule);
    struct rating_record read = {.won = 99};
    char good[RATING_RECORD_BYTES];
    char bytes[RATING_RECORD_BYTES];
    rating_pack(&record, good);
    static const int marks[] = {7, 15, 19, 38};
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        memcpy(bytes, good, sizeof bytes);
        bytes[marks[i]] = 0x7f;
        assert_false(rating_unpack(bytes, &read));
        assert_int_equal(read.won, 99);
    }
}

TEST(a_seed_is_kept_within_the_limits_and_games_stay) {
    struct rating_rule rule = rule_of(RATING_GLICKO2);
    struct rating_record record = rating_record_start(&rule);
    record.won = 7;
    rating_record_seed(&rule, &record, 20000 * MICRO, 1);
    assert_int_equal(record.value, 10000 * MICRO);
    assert_int_equal(record.deviation, 30 * MICRO);
    rating_record_seed(&rule, &record, 1800 * MICRO, -1);
    assert_int_equal(record.value, 1800 * MICRO);
    assert_int_equal(record.deviation, 30 * MICRO);
    assert_int_equal(record.won, 7);
}

/* ---- Elo ---- */

/* Rounded as FIDE's calculator rounds a list of one game. */
static int64_t elo_change(int64_t value, int64_t other, int result, int64_t k) {
    struct rating_rule rule = rule_of(RATING_ELO);
    struct rating_record a = rating_record_start(&rule);
    struct rating_record b = a;
    rule.of[RATING_K_NEW] = rule.of[RATING_K] = rule.of[RATING_K_TOP] = k;
    a.value = value * MICRO;
    b.value = other * MICRO;
    duel(&rule, result, &a, &b);
    int64_t change = a.value - value * MICRO;
    return (change + (change < 0 ? -MICRO / 2 : MICRO / 2)) / MICRO;
}

TEST(elo_changes_are_those_of_scalachess) {
    static const struct {
        int64_t value, other, k, won, lost, drawn;
    } known[] = {
        {1500, 1500, 40, 20, -20, 0}, {1500, 1900, 40, 37, -3, 17},  {1500, 2900, 40, 37, -3, 17},
        {1500, 1600, 40, 26, -14, 6}, {2000, 1900, 40, 14, -26, -6},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        test_row("%" PRId64 " and %" PRId64, known[i].value, known[i].other);
        assert_int_equal(elo_change(known[i].value, known[i].other, 1, known[i].k), known[i].won);
        assert_int_equal(elo_change(known[i].value, known[i].other, -1, known[i].k), known[i].lost);
        assert_int_equal(elo_change(known[i].value, known[i].other, 0, known[i].k), known[i].drawn);
    }
    assert_int_equal(elo_change(2800, 1800, 1, 10), 0);
}

TEST(differences_above_400_count_as_400_but_not_for_2650_and_more) {
    struct rating_rule rule = rule_of(RATING_ELO);
    struct rating_record strong = rating_record_start(&rule);
    struct rating_record weak = strong;
    strong.value = 2649 * MICRO;
    weak.value = 1500 * MICRO;
    rule.of[RATING_K_NEW] = 100;
    duel(&rule, 1, &strong, &weak);
    assert_int_equal(strong.value, 2657 * MICRO);
    assert_int_equal(weak.value, 1492 * MICRO);
    strong.value = 2650 * MICRO;
    weak.value = 1500 * MICRO;
    duel(&rule, 1, &strong, &weak);
    assert_int_equal(strong.value, 2650 * MICRO);
    assert_int_equal(weak.value, 1492 * MICRO);
    rule.of[RATING_GAP_MAX] = 0;
    weak.value = 1500 * MICRO;
    duel(&rule, 1, &strong, &weak);
    assert_int_equal(weak.value, 1500 * MICRO);
}

TEST(k_is_that_of_a_new_player_for_30_games_and_the_lowest_for_ever_after_2400) {
    struct rating_rule rule = rule_of(RATING_ELO);
    struct rating_record a = rating_record_start(&rule);
    struct rating_record b;
    for (int i = 0; i < 32; i++) {
        int64_t before = a.value;
        b = a;
        duel(&rule, 1, &a, &b);
        assert_int_equal(a.value - before, (i < 30 ? 20 : 10) * MICRO);
    }
    rating_record_seed(&rule, &a, 2399 * MICRO, -1);
    assert_false(a.is_top);
    b = a;
    duel(&rule, 1, &a, &b);
    assert_int_equal(a.value, 2409 * MICRO);
    assert_true(a.is_top);
    rating_record_seed(&rule, &a, 2000 * MICRO, -1);
    b = a;
    duel(&rule, 1, &a, &b);
    assert_int_equal(a.value, 2005 * MICRO);
}

TEST(teams_meet_by_their_means_and_each_player_has_its_own_k) {
    struct rating_rule rule = rule_of(RATING_ELO);
    struct rating_record records[3];
    uint32_t sizes[] = {2, 1};
    struct rating_match match = {.sizes = sizes, .teams = 2, .at_ms = AT_MS};
    for (int i = 0; i < 3; i++) {
        records[i] = rating_record_start(&rule);
    }
    records[0].value = 1400 * MICRO;
    records[1].value = 1800 * MICRO;
    records[1].lost = 30;
    check_and_match(&rule, &match, records);
    /* 1600 and 1500: 0.64 and 0.36 */
    assert_int_equal(records[0].value, 1400 * MICRO + 40 * 36 * MICRO / 100);
    assert_int_equal(records[1].value, 1800 * MICRO + 20 * 36 * MICRO / 100);
    assert_int_equal(records[2].value, 1500 * MICRO - 40 * 36 * MICRO / 100);
}

TEST(equal_k_sums_to_0_between_two_and_nearly_so_between_many) {
    struct random random = random_begin(__func__);
    struct rating_rule rule = rule_of(RATING_ELO);
    rule.of[RATING_GAP_FREE] = rating_parameter_most(RATING_GAP_FREE, RATING_ELO);
    for (uint32_t i = 0; i < test_rounds(100000, 5000); i++) {
        struct rating_record records[PLAYERS_HERE];
        uint32_t ranks[PLAYERS_HERE];
        uint32_t teams = 2 + (uint32_t)random_below(&random, PLAYERS_HERE - 1);
        struct rating_match match = {.sizes = ones, .ranks = ranks, .teams = teams, .at_ms = AT_MS};
        int64_t sum = 0;
        for (uint32_t j = 0; j < teams; j++) {
            records[j] = rating_record_start(&rule);
            records[j].value = (int64_t)random_below(&random, 2000 * MICRO) + 500 * MICRO;
            ranks[j] = (uint32_t)random_below(&random, teams);
            sum -= records[j].value;
        }
        check_and_match(&rule, &match, records);
        for (uint32_t j = 0; j < teams; j++) {
            sum += records[j].value;
        }
        assert_near(sum, 0, teams == 2 ? 0 : teams / 2);
    }
}

/* ---- Glicko-2 ---- */

TEST(the_paper_s_example_is_a_match_after_one_period) {
    struct rating_rule rule = rule_of(RATING_GLICKO2);
    uint32_t ranks[] = {2, 3, 1, 1};
    struct rating_match match = {.sizes = ones, .ranks = ranks, .teams = 4, .at_ms = AT_MS};
    struct rating_record records[] = {
        {.value = 1500 * MICRO, .deviation = 200 * MICRO, .volatility = 60000000},
        {.value = 1400 * MICRO, .deviation = 30 * MICRO, .volatility = 60000000},
        {.value = 1550 * MICRO, .deviation = 100 * MICRO, .volatility = 60000000},
        {.value = 1700 * MICRO, .deviation = 300 * MICRO, .volatility = 60000000},
    };
    records[0].last_ms = AT_MS - rule.of[RATING_PERIOD_MS];
    check_and_match(&rule, &match, records);
    assert_int_equal(records[0].value, 1464050671);
    assert_int_equal(records[0].deviation, 151516524);
    assert_int_equal(records[0].volatility, 59995984);
}

/* In 1e-6, but the volatility in 1e-9. */
struct numbers {
    int64_t value, deviation, volatility;
};

TEST(single_games_are_those_of_scalachess) {
    static const struct numbers start = {1500 * MICRO, 350 * MICRO, 60000000},
                                low = {1400 * MICRO, 79 * MICRO, 60000000},
                                high = {1550 * MICRO, 110 * MICRO, 65000000},
                                lowest = {1200 * MICRO, 60 * MICRO, 53000000},
                                highest = {1850 * MICRO, 200 * MICRO, 62000000};
    static const struct {
        const struct numbers *a, *b;
        int result;
        /* off is half of what the published last digit is worth, or more. */
        struct numbers a_after, b_after, off;
    } known[] = {
        {&start,
         &start,
         1,
         {1662212000, 290230500, 59999300},
         {1337788000, 290230500, 59999300},
         {50, 50, 50}},
        {&start,
         &start,
         0,
         {1500000000, 290230500, 59997700},
         {1500000000, 290230500, 59997700},
         {0, 50, 50}},
        {&low,
         &high,
         1,
         {1422630000, 77495600, 60000000},
         {1506320000, 105870600, 65000000},
         {5000, 50, 10000}},
        {&lowest,
         &highest,
         1,
         {1216730000, 59900600, 53013000},
         {1635990000, 196987300, 62028000},
         {5000, 50, 500}},
    };
    struct rating_rule rule = game_rule();
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        const struct numbers *before[] = {known[i].a, known[i].b};
        struct rating_record records[2];
        for (int k = 0; k < 2; k++) {
            records[k] = (struct rating_record){.value = before[k]->value,
                                                .deviation = before[k]->deviation,
                                                .volatility = (uint32_t)before[k]->volatility};
        }
        duel(&rule, known[i].result, &records[0], &records[1]);
        for (int k = 0; k < 2; k++) {
            const struct numbers *after = k == 0 ? &known[i].a_after : &known[i].b_after;
            assert_near(records[k].value, after->value, known[i].off.value);
            assert_near(records[k].deviation, after->deviation, known[i].off.deviation);
            assert_near(records[k].volatility, after->volatility, known[i].off.volatility);
        }
    }
}

TEST(lichess_limits_can_be_declared) {
    struct rating_rule rule = rule_of(RATING_GLICKO2);
    rule.of[RATING_MIN] = 400 * MICRO;
    rule.of[RATING_MAX] = 4000 * MICRO;
    rule.of[RATING_MOVE_MAX] = 700 * MICRO;
    rule.of[RATING_START_DEV] = rule.of[RATING_DEV_MAX] = 500 * MICRO;
    rule.of[RATING_DEV_MIN] = 45 * MICRO;
    rule.of[RATING_START_VOL] = 90000000;
    rule.of[RATING_VOL_MAX] = 100000000;
    rule.of[RATING_TAU] = 750000000;
    rule.of[RATING_PERIOD_MS] = 403060271;
    struct rating_record a = rating_record_start(&rule);
    struct rating_record b = a;
    a.value = 500 * MICRO;
    b.value = 3990 * MICRO;
    duel(&rule, 1, &a, &b);
    assert_int_equal(a.value, 1200 * MICRO);
    assert_int_equal(b.value, 3290 * MICRO);
    a.value = 401 * MICRO;
    b.value = 450 * MICRO;
    duel(&rule, -1, &a, &b);
    assert_int_equal(a.value, 400 * MICRO);
    /* RD 60 is 110 after a year, at a volatility of 0.06. */
    a.deviation = 60 * MICRO;
    a.volatility = 60000000;
    a.last_ms = AT_MS;
    assert_near(rating_now(&rule, &a, AT_MS + INT64_C(365) * 86400000), 110 * MICRO, MICRO / 20);
    assert_int_equal(rating_now(&rule, &a, AT_MS - 1), 60 * MICRO);
    assert_int_equal(rating_now(&rule, &a, RATING_MS_MAX), 500 * MICRO);
}

TEST(a_deviation_that_has_grown_is_what_a_match_begins_with) {
    struct rating_rule rule = rule_of(RATING_GLICKO2);
    struct rating_record a = rating_record_start(&rule);
    struct rating_record b = a;
    a.deviation = b.deviation = 50 * MICRO;
    a.last_ms = AT_MS - 20 * rule.of[RATING_PERIOD_MS];
    b.last_ms = AT_MS;
    struct rating_record late = a;
    duel(&rule, 1, &a, &b);
    /* 19 periods without games, then one with: steps 6, and the match of who has played one period ago. */
    late.deviation = rating_now(&rule, &late, AT_MS - rule.of[RATING_PERIOD_MS]);
    late.last_ms = AT_MS - rule.of[RATING_PERIOD_MS];
    struct rating_record other = {
        .value = 1500 * MICRO, .deviation = 50 * MICRO, .volatility = 60000000, .last_ms = AT_MS};
    duel(&rule, 1, &late, &other);
    assert_near(a.value, late.value, 1);
    assert_near(a.deviation, late.deviation, 1);
    assert_int_equal(b.value, other.value);
    assert_true(a.value - 1500 * MICRO > 1500 * MICRO - b.value);
}

/* ---- OpenSkill ---- */

static void assert_skills(const struct rating_rule *rule, uint32_t teams, const uint32_t *sizes,
                          const uint32_t *ranks, const uint32_t *weights, const int64_t (*after)[2],
                          int64_t off) {
    struct rating_record records[PLAYERS_HERE];
    struct rating_match match = {
        .sizes = sizes, .ranks = ranks, .weights = weights, .teams = teams, .at_ms = AT_MS};
    uint32_t players = 0;
    for (uint32_t i = 0; i < teams; i++) {
        players += sizes[i];
    }
    for (uint32_t i = 0; i < players; i++) {
        records[i] = rating_record_start(rule);
    }
    check_and_match(rule, &match, records);
    for (uint32_t i = 0; i < players; i++) {
        assert_near(records[i].value, after[i][0], off);
        assert_near(records[i].deviation, after[i][1], off);
    }
}

TEST(new_players_come_out_as_in_openskill_js) {
    static const int64_t pair[][2] = {{27635231383, 8065506316}, {22364768617, 8065506316}};
    static const int64_t luce[][2] = {
        {27868876553, 8204837031}, {25717219138, 8057829748}, {21413904309, 8057829748}};
    static const int64_t terry[][2] = {
        {30270462767, 7788474808}, {25000000000, 7788474808}, {19729537233, 7788474808}};
    static const int64_t teams[][2] = {{25939870822, 8247641552}, {25939870822, 8247641552},
                                       {25939870822, 8247641552}, {27213660205, 8274321318},
                                       {21846468973, 8213058173}, {21846468973, 8213058173}};
    static const uint32_t sizes[] = {3, 1, 2};
    struct rating_rule luce_rule = skill_rule(RATING_PLACKETT_LUCE);
    struct rating_rule terry_rule = skill_rule(RATING_BRADLEY_TERRY);
    assert_skills(&luce_rule, 2, ones, NULL, NULL, pair, 1);
    assert_skills(&terry_rule, 2, ones, NULL, NULL, pair, 1);
    assert_skills(&luce_rule, 3, ones, NULL, NULL, luce, 1);
    assert_skills(&terry_rule, 3, ones, NULL, NULL, terry, 1);
    assert_skills(&luce_rule, 3, sizes, NULL, NULL, teams, 1);
}

TEST(a_match_first_adds_tau_to_deviations) {
    static const int64_t after[][2] = {
        {23855123083, 8224478786}, {16847380170, 8179571171}, {16847380170, 8179571171}};
    static const uint32_t sizes[] = {1, 2};
    struct rating_rule rule = rule_of(RATING_OPENSKILL);
    rule.of[RATING_START] = 20351251626;
    rule.of[RATING_START_DEV] = 8331481124;
    assert_skills(&rule, 2, sizes, NULL, NULL, after, 1);
}

TEST(unequal_players_come_out_as_in_skillratings) {
    static const struct {
        int result;
        int64_t a, b;
    } known[] = {{1, 42026412401, 23914677769},
                 {-1, 41862153998, 30664283437},
                 {0, 41944283200, 27289480603}};
    for (int model = 0; model < RATING_MODELS; model++) {
        for (size_t i = 0; i < COUNT_OF(known); i++) {
            struct rating_rule rule = skill_rule((enum rating_model)model);
            struct rating_record a = {.value = 42 * NANO, .deviation = 1300000000};
            struct rating_record b = rating_record_start(&rule);
            duel(&rule, known[i].result, &a, &b);
            assert_near(a.value, known[i].a, 1);
            assert_near(b.value, known[i].b, 1);
            assert_near(a.deviation, 1299823053, 1);
            assert_near(b.deviation, 8029022446, 1);
        }
    }
}

/* What openskill.py 6.2.0 makes of teams of new players. */
TEST(ranks_ties_limits_and_weights_come_out_as_in_openskill_py) {
    enum { MATCHES = 5 };
    static const struct {
        uint32_t teams, sizes[4], ranks[4], weights[10];
        bool has_limit, has_weights;
    } matches[MATCHES] = {
        {2, {1, 2}, {1, 2}, {0}, false, false},
        {4, {1, 2, 1, 2}, {2, 1, 4, 3}, {0}, false, false},
        {3, {1, 2, 3}, {2, 1, 3}, {0}, true, false},
        {3, {1, 2, 3}, {1, 2, 1}, {0}, false, false},
        {4, {3, 2, 3, 2}, {2, 1, 4, 3}, {2, 0, 0, 1, 2, 0, 0, 1, 0, 1}, false, true},
    };
    static const struct {
        enum rating_model model;
        int64_t mu, sigma;
        int64_t after[MATCHES][10][2];
    } known[] = {
        {RATING_PLACKETT_LUCE,
         30922792908,
         6478417586,
         {{{33969011487, 6446958848}, {27876574329, 6433659614}, {27876574329, 6433659614}},
          {{32779944430, 6450747134},
           {32270750514, 6425889056},
           {32270750514, 6425889056},
           {30084029218, 6430997478},
           {28556447470, 6355257645},
           {28556447470, 6355257645}},
          {{33205293424, 6470524927},
           {32989621675, 6450310653},
           {32989621675, 6450310653},
           {26573463625, 6431144843},
           {26573463625, 6431144843},
           {26573463625, 6431144843}},
          {{32068814953, 6475053163},
           {30581864526, 6450310653},
           {30581864526, 6450310653},
           {30117699245, 6439033926},
           {30117699245, 6439033926},
           {30117699245, 6439033926}},
          {{31507472035, 6340057678},
           {31215132471, 6409881833},
           {31215132471, 6409881833},
           {32632635659, 6468668613},
           {34342478411, 6458367316},
           {27795446968, 6387195276},
           {27795446968, 6387195276},
           {29359119938, 6433238001},
           {32047956533, 6438991132},
           {33173120158, 6398779159}}}},
        {RATING_BRADLEY_TERRY,
         25884970437,
         14349296029,
         {{{31799361547, 14098799870}, {19970579326, 13993624905}, {19970579326, 13993624905}},
          {{34524595624, 13248550005},
           {33692759898, 13310912480},
           {33692759898, 13310912480},
           {16719168140, 13248550005},
           {18603358085, 13310912480},
           {18603358085, 13310912480}},
          {{29740773636, 13991468942},
           {32377929340, 13802441130},
           {32377929340, 13802441130},
           {15536208334, 13934801759},
           {15536208334, 13934801759},
           {15536208334, 13934801759}},
          {{34287943505, 13991468942},
           {18004925474, 13802441130},
           {18004925474, 13802441130},
           {25362042331, 13934801759},
           {25362042331, 13934801759},
           {25362042331, 13934801759}},
          {{26901621000, 12970585390},
           {26393295718, 13677450902},
           {26393295718, 13677450902},
           {38091253412, 13664826505},
           {50297536387, 12943945529},
           {14303990517, 13677450902},
           {14303990517, 13677450902},
           {20094480477, 14017523036},
           {24751342100, 13664826505},
           {25318156268, 14011365465}}}},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        for (size_t k = 0; k < MATCHES; k++) {
            struct rating_rule rule = rule_of(RATING_OPENSKILL);
            rule.of[RATING_MODEL] = known[i].model;
            rule.of[RATING_START] = known[i].mu;
            rule.of[RATING_START_DEV] = known[i].sigma;
            rule.of[RATING_LIMIT_SIGMA] = matches[k].has_limit;
            /* Their start has more digits than ours. */
            assert_skills(&rule, matches[k].teams, matches[k].sizes, matches[k].ranks,
                          matches[k].has_weights ? matches[k].weights : NULL, known[i].after[k], 2);
        }
    }
}

/* As openskill.js and openskill.py 6.2.0, whose mean of the changes has no effect. */
TEST(teams_that_tie_and_are_unequal_keep_changes_of_their_own) {
    for (int model = 0; model < RATING_MODELS; model++) {
        struct rating_rule rule = rule_of(RATING_OPENSKILL);
        struct rating_record strong = {.value = 30 * NANO, .deviation = 4 * NANO};
        struct rating_record weak = {.value = 20 * NANO, .deviation = 8 * NANO};
        rule.of[RATING_MODEL] = model;
        duel(&rule, 0, &strong, &weak);
        assert_near(strong.value, 29674525549, 1);
        assert_near(strong.deviation, 3979696665, 1);
        assert_near(weak.value, 21301474193, 1);
        assert_near(weak.deviation, 7655367840, 1);
    }
}

TEST(a_draw_of_many_equal_teams_changes_no_value) {
    for (enum rating_system system = 0; system < RATING_SYSTEMS; system++) {
        for (int model = 0; model < RATING_MODELS; model++) {
            struct rating_rule rule = rule_of(system);
            struct rating_record records[RATING_TEAMS_MAX];
            uint32_t ranks[RATING_TEAMS_MAX] = {0};
            struct rating_match match = {
                .sizes = ones, .ranks = ranks, .teams = RATING_TEAMS_MAX, .at_ms = AT_MS};
            rule.of[RATING_MODEL] = system == RATING_OPENSKILL ? model : 0;
            for (uint32_t i = 0; i < match.teams; i++) {
                records[i] = rating_record_start(&rule);
            }
            check_and_match(&rule, &match, records);
            for (uint32_t i = 0; i < match.teams; i++) {
                assert_int_equal(records[i].value, rule.of[RATING_START]);
                assert_int_equal(records[i].deviation, records[0].deviation);
                assert_int_equal(records[i].drawn, 1);
                assert_true(system != RATING_GLICKO2 ||
                            records[i].deviation < rule.of[RATING_START_DEV]);
            }
        }
    }
}

/* ---- all systems ---- */

TEST(matches_are_refused_by_what_is_wrong_with_them) {
    struct rating_rule rule = rule_of(RATING_OPENSKILL);
    uint32_t sizes[RATING_TEAMS_MAX + 1];
    uint32_t weights[RATING_PLAYERS_MAX] = {0};
    struct rating_match match = {.sizes = sizes, .teams = 2, .at_ms = AT_MS};
    for (uint32_t i = 0; i <= RATING_TEAMS_MAX; i++) {
        sizes[i] = RATING_PLAYERS_MAX / RATING_TEAMS_MAX;
    }
    assert_int_equal(rating_match_check(&rule, &match), RATING_OK);
    match.teams = 1;
    assert_int_equal(rating_match_check(&rule, &match), RATING_TEAMS_WRONG);
    match.teams = RATING_TEAMS_MAX + 1;
    assert_int_equal(rating_match_check(&rule, &match), RATING_TEAMS_WRONG);
    match.teams = RATING_TEAMS_MAX;
    assert_int_equal(rating_match_check(&rule, &match), RATING_OK);
    sizes[3]++;
    assert_int_equal(rating_match_check(&rule, &match), RATING_TEAMS_WRONG);
    sizes[3] = UINT32_MAX;
    assert_int_equal(rating_match_check(&rule, &match), RATING_TEAMS_WRONG);
    sizes[3] = 0;
    assert_int_equal(rating_match_check(&rule, &match), RATING_TEAMS_WRONG);
    sizes[3] = 1;
    match.at_ms = 0;
    assert_int_equal(rating_match_check(&rule, &match), RATING_TIME_WRONG);
    match.at_ms = RATING_MS_MAX + 1;
    assert_int_equal(rating_match_check(&rule, &match), RATING_TIME_WRONG);
    match.at_ms = RATING_MS_MAX;
    match.weights = weights;
    assert_int_equal(rating_match_check(&rule, &match), RATING_OK);
    weights[5] = RATING_WEIGHT_MAX + 1;
    assert_int_equal(rating_match_check(&rule, &match), RATING_WEIGHTS_WRONG);
    weights[5] = 0;
    rule = rule_of(RATING_ELO);
    assert_int_equal(rating_match_check(&rule, &match), RATING_WEIGHTS_WRONG);
}

TEST(games_are_counted_as_won_drawn_for_the_first_place_or_lost) {
    struct rating_rule rule = rule_of(RATING_ELO);
    struct rating_record records[3] = {{0}, {0}, {.lost = UINT32_MAX}};
    uint32_t ranks[] = {7, 2, 9};
    struct rating_match match = {.sizes = ones, .ranks = ranks, .teams = 3, .at_ms = AT_MS};
    check_and_match(&rule, &match, records);
    assert_int_equal(records[0].lost, 1);
    assert_int_equal(records[1].won, 1);
    assert_int_equal(records[2].lost, UINT32_MAX);
    ranks[0] = 2;
    match.at_ms = AT_MS - 1;
    check_and_match(&rule, &match, records);
    assert_int_equal(records[0].drawn, 1);
    assert_int_equal(records[1].drawn, 1);
    assert_int_equal(rating_games(&records[2]), UINT32_MAX);
    assert_int_equal(records[1].last_ms, AT_MS);
}

/* A random match of any system. */
struct scene {
    struct rating_rule rule;
    struct rating_match match;
    uint32_t sizes[RATING_TEAMS_MAX], ranks[RATING_TEAMS_MAX];
    uint32_t weights[RATING_PLAYERS_MAX];
    struct rating_record records[RATING_PLAYERS_MAX];
    uint32_t players;
};

static int64_t random_between(struct random *random, int64_t least, int64_t most) {
    return least + (int64_t)random_below(random, (uint64_t)(most - least) + 1);
}

static struct rating_record random_record(struct random *random, const struct rating_rule *rule) {
    struct rating_record record = rating_record_start(rule);
    if (rule->system == RATING_OPENSKILL) {
        record.value = random_between(random, 0, 50 * NANO);
        record.deviation = random_between(random, NANO / 2, 9 * NANO);
    } else {
        record.value = random_between(random, 500 * MICRO, 2800 * MICRO);
        record.deviation =
            rule->system == RATING_ELO ? 0 : random_between(random, 30 * MICRO, 350 * MICRO);
        record.last_ms = random_between(random, 0, 1) * random_between(random, 1, AT_MS);
    }
    record.won = (uint32_t)random_below(random, 60);
    return record;
}

static void scene_make(struct scene *scene, struct random *random, uint32_t teams_max) {
    scene->rule = rule_of((enum rating_system)random_below(random, RATING_SYSTEMS));
    if (scene->rule.system == RATING_OPENSKILL) {
        scene->rule.of[RATING_MODEL] = (int64_t)random_below(random, RATING_MODELS);
    }
    bool is_weighted = scene->rule.system == RATING_OPENSKILL && random_below(random, 2) == 0;
    scene->match = (struct rating_match){
        .sizes = scene->sizes,
        .ranks = scene->ranks,
        .weights = is_weighted ? scene->weights : NULL,
        .teams = 2 + (uint32_t)random_below(random, teams_max - 1),
        .at_ms = AT_MS,
    };
    scene->players = 0;
    for (uint32_t i = 0; i < scene->match.teams; i++) {
        scene->sizes[i] = 1 + (uint32_t)random_below(random, 3);
        scene->ranks[i] = (uint32_t)random_below(random, 4);
        scene->players += scene->sizes[i];
    }
    for (uint32_t i = 0; i < scene->players; i++) {
        scene->records[i] = random_record(random, &scene->rule);
        scene->weights[i] = (uint32_t)random_below(random, 4);
    }
}

static void assert_same(const struct rating_record *a, const struct rating_record *b) {
    char bytes_a[RATING_RECORD_BYTES];
    char bytes_b[RATING_RECORD_BYTES];
    rating_pack(a, bytes_a);
    rating_pack(b, bytes_b);
    assert_memory_equal(bytes_a, bytes_b, sizeof bytes_a);
}

TEST(the_order_of_teams_and_of_players_changes_no_bit) {
    struct random random = random_begin(__func__);
    static struct scene scene;
    static struct scene other;
    for (uint32_t round = 0; round < test_rounds(20000, 1500); round++) {
        uint32_t from[RATING_PLAYERS_MAX];
        uint32_t order[RATING_TEAMS_MAX] = {0};
        uint32_t starts[RATING_TEAMS_MAX] = {0};
        uint32_t chances[RATING_TEAMS_MAX];
        uint32_t other_chances[RATING_TEAMS_MAX];
        uint32_t quality;
        uint32_t other_quality;
        scene_make(&scene, &random, 12);
        uint32_t start = 0;
        for (uint32_t i = 0; i < scene.match.teams; i++) {
            uint32_t j = (uint32_t)random_below(&random, i + 1);
            order[i] = order[j];
            order[j] = i;
            starts[i] = start;
            start += scene.sizes[i];
        }
        other.rule = scene.rule;
        other.match = scene.match;
        other.match.sizes = other.sizes;
        other.match.ranks = other.ranks;
        other.match.weights = scene.match.weights != NULL ? other.weights : NULL;
        start = 0;
        for (uint32_t i = 0; i < scene.match.teams; i++) {
            uint32_t size = other.sizes[i] = scene.sizes[order[i]];
            uint32_t turn = (uint32_t)random_below(&random, size);
            other.ranks[i] = scene.ranks[order[i]];
            for (uint32_t j = 0; j < size; j++) {
                from[start] = starts[order[i]] + (j + turn) % size;
                other.records[start] = scene.records[from[start]];
                other.weights[start] = scene.weights[from[start]];
                start++;
            }
        }
        rating_predict(&scene.rule, &scene.match, scene.records, chances, &quality);
        rating_predict(&other.rule, &other.match, other.records, other_chances, &other_quality);
        assert_int_equal(quality, other_quality);
        for (uint32_t i = 0; i < scene.match.teams; i++) {
            assert_int_equal(other_chances[i], chances[order[i]]);
        }
        check_and_match(&scene.rule, &scene.match, scene.records);
        check_and_match(&other.rule, &other.match, other.records);
        for (uint32_t i = 0; i < scene.players; i++) {
            assert_same(&other.records[i], &scene.records[from[i]]);
        }
    }
}

TEST(who_wins_does_not_lose_and_a_draw_moves_two_towards_each_other) {
    struct random random = random_begin(__func__);
    for (uint32_t i = 0; i < test_rounds(50000, 5000); i++) {
        static struct scene scene;
        scene_make(&scene, &random, 2);
        struct rating_record a = scene.records[0];
        struct rating_record b = scene.records[scene.players - 1];
        int result = (int)random_below(&random, 3) - 1;
        int64_t value_a = a.value;
        int64_t value_b = b.value;
        duel(&scene.rule, result, &a, &b);
        int wanted = result != 0 ? result : value_a < value_b ? 1 : -1;
        assert_true((a.value - value_a) * wanted >= 0);
        assert_true((b.value - value_b) * wanted <= 0);
    }
}

/* ---- reading ---- */

TEST(chances_add_up_and_quality_is_1_for_equals) {
    struct random random = random_begin(__func__);
    static struct scene scene;
    uint32_t chances[RATING_TEAMS_MAX];
    uint32_t quality;
    for (uint32_t i = 0; i < test_rounds(50000, 3000); i++) {
        scene_make(&scene, &random, 16);
        int64_t sum = 0;
        rating_predict(&scene.rule, &scene.match, scene.records, chances, &quality);
        for (uint32_t j = 0; j < scene.match.teams; j++) {
            sum += chances[j];
        }
        assert_near(sum, RATING_CHANCE_ONE, scene.match.teams / 2 + 1);
        assert_in_range(quality, 0, RATING_CHANCE_ONE);
        for (uint32_t j = 0; j < scene.players; j++) {
            scene.records[j] = scene.records[0];
        }
        for (uint32_t j = 0; j < scene.match.teams; j++) {
            scene.sizes[j] = 1;
        }
        rating_predict(&scene.rule, &scene.match, scene.records, chances, &quality);
        assert_near(quality, RATING_CHANCE_ONE, 1);
        for (uint32_t j = 1; j < scene.match.teams; j++) {
            assert_int_equal(chances[j], chances[0]);
        }
    }
}

TEST(chances_of_two_are_the_expected_results) {
    struct rating_record records[2];
    uint32_t chances[2];
    uint32_t quality;
    struct rating_match match = {.sizes = ones, .teams = 2, .at_ms = AT_MS};
    struct rating_rule rule = rule_of(RATING_ELO);
    records[0] = records[1] = rating_record_start(&rule);
    records[0].value = 1900 * MICRO;
    rating_predict(&rule, &match, records, chances, &quality);
    assert_int_equal(chances[0], 920000);
    assert_int_equal(chances[1], 80000);
    assert_int_equal(quality, 294400);
    /* The paper's first game: E(1500, 1400, 30) = 0.639, had it no deviation of its own. */
    rule = rule_of(RATING_GLICKO2);
    rule.of[RATING_DEV_MIN] = 1;
    records[0] = (struct rating_record){.value = 1500 * MICRO, .deviation = 1};
    records[1] = (struct rating_record){.value = 1400 * MICRO, .deviation = 30 * MICRO};
    rating_predict(&rule, &match, records, chances, &quality);
    assert_near(chances[0], 639468, 1);
    rule = rule_of(RATING_OPENSKILL);
    records[0] = records[1] = rating_record_start(&rule);
    records[0].value = 50 * NANO;
    rating_predict(&rule, &match, records, chances, &quality);
    /* 1 / (1 + e^-(25 / sqrt(2 * (25/3)^2 + 2 * (25/6)^2))) */
    assert_near(chances[0], 869593, 1);
}

TEST(what_ranks_is_rounded_once_to_the_boards_decimals) {
    struct rating_rule rule = rule_of(RATING_OPENSKILL);
    struct rating_record record = {.value = 27635231383, .deviation = 8065506316};
    /* 3.438712435 */
    assert_int_equal(rating_ranks(&rule, &record, 0), 3);
    assert_int_equal(rating_ranks(&rule, &record, 3), 3439);
    assert_int_equal(rating_ranks(&rule, &record, 9), 3438712435);
    assert_int_equal(rating_ranks(&rule, &record, 12), 3438712435000);
    rule.of[RATING_FACTOR] = 24000;
    rule.of[RATING_OFFSET] = 1500 * NANO;
    assert_int_equal(rating_ranks(&rule, &record, 2), 158253);
    rule.of[RATING_FACTOR] = 1;
    rule.of[RATING_OFFSET] = 0;
    record.value = -500 * NANO;
    record.deviation = 1000000;
    rule.of[RATING_Z] = 0;
    assert_int_equal(rating_ranks(&rule, &record, 0), -1);
    rule = rule_of(RATING_GLICKO2);
    record = (struct rating_record){.value = 1500500000, .deviation = 100250000};
    assert_int_equal(rating_ranks(&rule, &record, 0), 1501);
    rule.of[RATING_Z] = 2000;
    assert_int_equal(rating_ranks(&rule, &record, 0), 1300);
    assert_int_equal(rating_ranks_least(&rule, 0), -700);
    assert_int_equal(rating_ranks_most(&rule, 2), 994000);
    assert_int_equal(rating_ranks_most(&rule, 18), INT64_MAX);
}

/* ---- against decimals of 60 digits ---- */

TEST(random_matches_are_those_of_60_digits) {
    static char line[1 << 16];
    struct random random = random_begin(__func__);
    uint32_t count = test_rounds(100000, 2000);
    uint32_t values = 0;
    uint32_t off = 0;
    snprintf(line, sizeof line, "python3 tests/codec/rating_twin.py matches %" PRIu64 " %" PRIu32,
             random_next(&random), count);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    for (uint32_t i = 0; i < count; i++) {
        struct rating_rule rule;
        struct rating_record records[PLAYERS_HERE * 2];
        int64_t after[PLAYERS_HERE * 2][3];
        uint32_t sizes[PLAYERS_HERE];
        uint32_t ranks[PLAYERS_HERE];
        uint32_t weights[PLAYERS_HERE * 2];
        char *at = line;
        assert_non_null(fgets(line, sizeof line, pipe));
#define NEXT() strtoll(at, &at, 10)
        rule.system = (enum rating_system)NEXT();
        for (int j = 0; j < RATING_PARAMETERS; j++) {
            rule.of[j] = NEXT();
        }
        struct rating_match match = {.sizes = sizes, .ranks = ranks, .at_ms = NEXT()};
        match.teams = (uint32_t)NEXT();
        uint32_t players = 0;
        for (uint32_t j = 0; j < match.teams; j++) {
            sizes[j] = (uint32_t)NEXT();
            players += sizes[j];
        }
        for (uint32_t j = 0; j < match.teams; j++) {
            ranks[j] = (uint32_t)NEXT();
        }
        match.weights = NEXT() == 1 ? weights : NULL;
        for (uint32_t j = 0; match.weights != NULL && j < players; j++) {
            weights[j] = (uint32_t)NEXT();
        }
        for (uint32_t j = 0; j < players; j++) {
            records[j] = (struct rating_record){.value = NEXT(), .deviation = NEXT()};
            records[j].volatility = (uint32_t)NEXT();
            records[j].lost = (uint32_t)NEXT();
            records[j].last_ms = NEXT();
            for (int k = 0; k < 3; k++) {
                after[j][k] = NEXT();
            }
        }
        check_and_match(&rule, &match, records);
        for (uint32_t j = 0; j < players; j++) {
            int64_t got[] = {records[j].value, records[j].deviation, records[j].volatility};
            for (int k = 0; k < 3; k++) {
                assert_near(got[k], after[j][k], 1);
                off += got[k] != after[j][k];
                values++;
            }
        }
    }
    assert_int_equal(pclose(pipe), 0);
    /* Where 60 digits are next to a half, doubles may round to its other side. */
    printf("%u of %u numbers are off by a unit\n", off, values);
    assert_true(off <= 2 + values / 10000);
}

/* ---- wild numbers ---- */

/* The ends, next to them, near them, and anything between. */
static int64_t wild(struct random *random, int64_t least, int64_t most) {
    int64_t near = (int64_t)random_below(random, UINT64_C(1) << random_below(random, 40));
    switch (random_below(random, 5)) {
    case 0:
        return least;
    case 1:
        return most;
    case 2:
        return near > most - least ? most : least + near;
    case 3:
        return near > most - least ? least : most - near;
    default:
        return random_between(random, least, most);
    }
}

static void wild_rule(struct random *random, struct rating_rule *rule) {
    enum rating_parameter wrong;
    static const enum rating_parameter triples[][3] = {
        {RATING_MIN, RATING_START, RATING_MAX},
        {RATING_DEV_MIN, RATING_START_DEV, RATING_DEV_MAX},
        {RATING_VOL_MIN, RATING_START_VOL, RATING_VOL_MAX},
    };
    *rule = rule_of((enum rating_system)random_below(random, RATING_SYSTEMS));
    for (enum rating_parameter i = 0; i < RATING_PARAMETERS; i++) {
        if (rating_parameter_is_of(i, rule->system) && random_below(random, 3) != 0) {
            rule->of[i] = wild(random, rating_parameter_least(i, rule->system),
                               rating_parameter_most(i, rule->system));
        }
    }
    for (size_t i = 0; i < COUNT_OF(triples); i++) {
        int64_t *least = &rule->of[triples[i][0]];
        int64_t *start = &rule->of[triples[i][1]];
        int64_t *most = &rule->of[triples[i][2]];
        int64_t swapped = *least;
        *least = *least < *most ? *least : *most;
        *most = swapped > *most ? swapped : *most;
        *start = *start < *least ? *least : *start > *most ? *most : *start;
    }
    assert_true(rating_rule_check(rule, &wrong));
}

TEST(the_wildest_numbers_stay_within_the_limits_and_are_never_nan) {
    struct random random = random_begin(__func__);
    static struct scene scene;
    for (uint32_t round = 0; round < test_rounds(100000, 6000); round++) {
        const int64_t *of = scene.rule.of;
        uint32_t chances[RATING_TEAMS_MAX];
        uint32_t quality;
        scene_make(&scene, &random, round % 50 == 0 ? RATING_TEAMS_MAX : 5);
        wild_rule(&random, &scene.rule);
        if (scene.rule.system != RATING_OPENSKILL) {
            scene.match.weights = NULL;
        }
        scene.match.at_ms = wild(&random, 1, RATING_MS_MAX);
        if (round % 50 == 1) {
            scene.sizes[0] = RATING_PLAYERS_MAX - scene.players + scene.sizes[0];
            scene.players = RATING_PLAYERS_MAX;
        }
        for (uint32_t i = 0; i < scene.players; i++) {
            scene.records[i] = (struct rating_record){
                .value = wild(&random, -RATING_LIMIT, RATING_LIMIT),
                .deviation = wild(&random, 0, RATING_LIMIT),
                .volatility = (uint32_t)wild(&random, 0, NANO),
                .last_ms = wild(&random, 0, RATING_MS_MAX),
                .won = (uint32_t)wild(&random, 0, UINT32_MAX),
                .is_top = random_below(&random, 2) == 1,
            };
            scene.weights[i] = (uint32_t)wild(&random, 0, RATING_WEIGHT_MAX);
        }
        rating_predict(&scene.rule, &scene.match, scene.records, chances, &quality);
        for (uint32_t i = 0; i < scene.match.teams; i++) {
            assert_in_range(chances[i], 0, RATING_CHANCE_ONE);
        }
        check_and_match(&scene.rule, &scene.match, scene.records);
        for (uint32_t i = 0; i < scene.players; i++) {
            const struct rating_record *record = &scene.records[i];
            unsigned decimals = (unsigned)random_below(&random, 19);
            int64_t now = rating_now(&scene.rule, record, wild(&random, 0, RATING_MS_MAX));
            int64_t ranks = rating_ranks(&scene.rule, record, decimals);
            assert_true(record->value >= of[RATING_MIN] && record->value <= of[RATING_MAX]);
            assert_true(record->deviation >= of[RATING_DEV_MIN] &&
                        record->deviation <= of[RATING_DEV_MAX]);
            assert_true(record->volatility >= of[RATING_VOL_MIN] &&
                        record->volatility <= of[RATING_VOL_MAX]);
            assert_true(now >= record->deviation && now <= of[RATING_DEV_MAX]);
            struct rating_record left = *record;
            rating_record_take_back(&scene.rule, &scene.records[(i + 1) % scene.players],
                                    &scene.records[(i + 2) % scene.players], &left);
            assert_true(left.value >= of[RATING_MIN] && left.value <= of[RATING_MAX]);
            assert_true(left.deviation >= of[RATING_DEV_MIN] &&
                        left.deviation <= of[RATING_DEV_MAX]);
            assert_true(left.volatility >= of[RATING_VOL_MIN] &&
                        left.volatility <= of[RATING_VOL_MAX]);
            assert_true(ranks >= rating_ranks_least(&scene.rule, decimals));
            assert_true(ranks <= rating_ranks_most(&scene.rule, decimals));
        }
    }
}

/* Whatever the sums of a period are. */
TEST(the_end_of_a_period_overflows_nothing) {
    static const int64_t sums[] = {-RATING_SUM_MAX, -1, 0, 1, RATING_SUM_MAX};
    static const int64_t deviations[] = {0, 1, RATING_LIMIT};
    struct rating_rule rule = rule_of(RATING_GLICKO2);
    enum rating_parameter wrong;
    rule.of[RATING_EVERY_HOURS] = 1;
    rule.of[RATING_START_DEV] = rule.of[RATING_DEV_MAX] =
        rating_parameter_most(RATING_DEV_MAX, RATING_GLICKO2);
    rule.of[RATING_DEV_MIN] = rating_parameter_least(RATING_DEV_MIN, RATING_GLICKO2);
    rule.of[RATING_TAU] = rating_parameter_most(RATING_TAU, RATING_GLICKO2);
    rule.of[RATING_MIN] = rating_parameter_least(RATING_MIN, RATING_GLICKO2);
    rule.of[RATING_MAX] = rating_parameter_most(RATING_MAX, RATING_GLICKO2);
    assert_true(rating_rule_check(&rule, &wrong));
    for (size_t i = 0; i < COUNT_OF(sums) * COUNT_OF(sums) * COUNT_OF(deviations) * 2; i++) {
        struct rating_record record = rating_record_start(&rule);
        record.learned = sums[i % COUNT_OF(sums)];
        record.gained = sums[i / COUNT_OF(sums) % COUNT_OF(sums)];
        record.deviation = deviations[i / COUNT_OF(sums) / COUNT_OF(sums) % COUNT_OF(deviations)];
        record.volatility = i % 2 == 0 ? NANO : 0;
        record.period_ms = 3600000;
        int64_t gained = record.gained;
        if (rating_record_end_period(&rule, &record, AT_MS)) {
            assert_true(record.value >= rule.of[RATING_MIN] && record.value <= rule.of[RATING_MAX]);
            assert_true(gained <= 0 || record.value >= rule.of[RATING_START]);
            assert_true(gained >= 0 || record.value <= rule.of[RATING_START]);
            assert_true(record.deviation >= rule.of[RATING_DEV_MIN] &&
                        record.deviation <= rule.of[RATING_DEV_MAX]);
        }
    }
}

/* What a game was sure to bring tells nothing of the deviation, but it counts if it came otherwise. */
TEST(a_period_of_one_upset_counts) {
    struct rating_rule rule = rule_of(RATING_GLICKO2);
    rule.of[RATING_EVERY_HOURS] = 1;
    struct rating_record a = rating_record_start(&rule);
    struct rating_record b = a;
    a.value = rule.of[RATING_MIN];
    b.value = rule.of[RATING_MAX];
    a.deviation = b.deviation = rule.of[RATING_DEV_MIN];
    rating_record_enter_period(&rule, &a, AT_MS);
    rating_record_enter_period(&rule, &b, AT_MS);
    duel(&rule, 1, &a, &b);
    assert_true(rating_record_end_period(&rule, &a, AT_MS + 3600000));
    assert_true(rating_record_end_period(&rule, &b, AT_MS + 3600000));
    assert_true(a.value > rule.of[RATING_MIN] && b.value < rule.of[RATING_MAX]);
}

/* Sums that end no period are not those of a later one. */
TEST(a_new_period_begins_with_nothing) {
    struct rating_rule rule = rule_of(RATING_GLICKO2);
    rule.of[RATING_EVERY_HOURS] = 1;
    struct rating_record record = rating_record_start(&rule);
    record.period_ms = 3600000;
    record.learned = -5;
    record.gained = 7;
    assert_false(rating_record_end_period(&rule, &record, AT_MS));
    rating_record_enter_period(&rule, &record, AT_MS);
    assert_int_equal(record.learned, 0);
    assert_int_equal(record.gained, 0);
}
