/* Scores that decay: against numbers of 200 digits (decay_cases.h), and against a twin of integers, whose
 * results come at whole half-lives: then all weights are powers of 2. */
#include "tests/support/test.h"

#include "codec/decay.h"
#include "codec/decimal.h"
#include "tests/codec/decay_cases.h"
#include "tests/support/random.h"

#define HOUR_US  (INT64_C(3600) * 1000 * 1000)
#define EPOCH_US INT64_C(1577836800000000)
/* A part in a million. */
#define MILLION 1000000

static const struct decay hot = {
    .half_life_us = 6 * HOUR_US, .epoch_us = EPOCH_US, .count = 6, .fraction_bits = 47};
static const struct decay narrow = {
    .half_life_us = 6 * HOUR_US, .epoch_us = EPOCH_US, .count = 6, .fraction_bits = 36};
static const uint64_t ordinals = UINT64_MAX;

static uint64_t distance(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

static uint64_t add(const struct decay *decay, uint64_t ordinal, uint64_t units, int64_t time_us) {
    uint64_t sum = 0;
    assert_int_equal(decay_add(decay, ordinals, ordinal, units, time_us, time_us, &sum), DECAY_OK);
    return sum;
}

/* ---- against 200 digits ---- */

TEST(logarithms_are_off_by_less_than_2_to_the_minus_56) {
    for (size_t i = 0; i < COUNT_OF(log2_cases); i++) {
        assert_true(distance(decay_log2(log2_cases[i].number), log2_cases[i].value) < 1 << 6);
    }
}

TEST(powers_are_off_by_less_than_2_to_the_minus_56) {
    for (size_t i = 0; i < COUNT_OF(exp2_cases); i++) {
        assert_true(distance(decay_exp2(exp2_cases[i].number), exp2_cases[i].value) < 1 << 6);
    }
    for (uint64_t below = 1; below < 5000; below++) {
        uint64_t power = decay_exp2((UINT64_C(1) << DECAY_POINT) - below);
        assert_true(power < UINT64_C(1) << (DECAY_POINT + 1));
        assert_true(power > (UINT64_C(1) << (DECAY_POINT + 1)) - 2 * below - (1 << 6));
    }
}

TEST(a_score_is_the_sum_of_its_results_weights_to_a_part_in_a_million) {
    for (size_t i = 0; i < COUNT_OF(histories); i++) {
        const struct history *history = &histories[i];
        struct decay decay = hot;
        uint64_t ordinal = 0;
        decay.half_life_us = history->half_life_us;
        for (decay.fraction_bits = DECAY_FRACTION_BITS_MIN;
             decay.fraction_bits <= DECAY_FRACTION_BITS_MAX &&
             decay_last_us(&decay, 64) > history->read_us;
             decay.fraction_bits++) {
            ordinal = 0;
            for (unsigned j = 0; j < history->count; j++) {
                const struct history_result *result = &history->results[j];
                /* Units of 2^-20, so that rounding the score does not count. */
                ordinal = add(&decay, ordinal, result->units << 20, result->time_us);
            }
            uint64_t score = decay_score(&decay, ordinal, history->read_us);
            uint64_t bound =
                (uint64_t)((wide)history->score * history->count * 37 / 100 >> decay.fraction_bits);
            assert_true(distance(score, history->score) <= bound + 1);
            assert_true(distance(score, history->score) <= history->score / MILLION + 1);
        }
    }
}

/* ---- against integers ---- */

/* The sum in units of 2^-40 at a time of whole half-lives. */
struct whole {
    wide sum;
    int64_t half_lives;
};

static void whole_move(struct whole *whole, int64_t half_lives) {
    int64_t passed = half_lives - whole->half_lives;
    whole->sum = passed < 100 ? whole->sum >> passed : 0;
    whole->half_lives = half_lives;
}

TEST(results_at_whole_half_lives_are_as_a_sum_of_integers) {
    struct random random = random_begin(__func__);
    for (int round = 0; round < (is_short_run() ? 100 : 3000); round++) {
        struct whole twin = {.half_lives = (int64_t)random_below(&random, 30000)};
        struct decay decay = random_below(&random, 2) == 0 ? hot : narrow;
        uint64_t ordinal = 0;
        for (int i = 0; i < 50; i++) {
            uint64_t units = random_below(&random, UINT64_C(1) << random_below(&random, 40));
            whole_move(&twin, twin.half_lives + (int64_t)random_below(&random, 4));
            int64_t time_us = EPOCH_US + twin.half_lives * decay.half_life_us;
            twin.sum += (wide)units << 40;
            ordinal = add(&decay, ordinal, units, time_us);
            uint64_t expected = (uint64_t)((twin.sum + ((wide)1 << 39)) >> 40);
            uint64_t score = decay_score(&decay, ordinal, time_us);
            assert_true(distance(score, expected) <= 1 + expected / MILLION);
        }
    }
}

TEST(rounding_adds_up_to_less_than_a_part_in_a_million_over_180000_results) {
    uint64_t ordinal = 0;
    uint64_t sum = 0;
    int64_t time_us = EPOCH_US + 12345678901;
    uint32_t count = is_short_run() ? 20000 : 180000;
    ordinal = add(&narrow, ordinal, UINT64_C(1) << 40, time_us);
    sum = UINT64_C(1) << 40;
    for (uint32_t i = 0; i < count; i++) {
        /* The worst: a little more or less than half a unit of the ordinal, 2^40 * ln(2) / 2^37. */
        uint64_t units = (uint64_t[]){5, 6, 5, 17, 3}[i % 5];
        ordinal = add(&narrow, ordinal, units, time_us);
        sum += units;
    }
    assert_true(distance(decay_score(&narrow, ordinal, time_us), sum) < sum / MILLION);
}

TEST(votes_of_one_add_up_to_their_number) {
    uint64_t ordinal = 0;
    uint32_t count = is_short_run() ? 20000 : 1000000;
    for (uint32_t i = 0; i < count; i++) {
        ordinal = add(&hot, ordinal, 1, EPOCH_US + 20 * 365 * 24 * HOUR_US);
    }
    assert_int_equal(decay_score(&hot, ordinal, EPOCH_US + 20 * 365 * 24 * HOUR_US), count);
}

/* ---- by sentences ---- */

TEST(a_result_reads_as_it_came_and_as_half_a_half_life_later) {
    int64_t time_us = EPOCH_US + 54321 * HOUR_US + 987654;
    for (uint64_t units = 1; units < UINT64_C(1) << 30; units = units * 3 + 1) {
        uint64_t ordinal = add(&hot, 0, units, time_us);
        assert_int_equal(decay_score(&hot, ordinal, time_us), units);
        assert_int_equal(decay_score(&hot, ordinal, time_us - hot.half_life_us), 2 * units);
        assert_true(distance(2 * decay_score(&hot, ordinal, time_us + hot.half_life_us), units) <=
                    1);
    }
}

TEST(a_score_below_half_a_unit_reads_as_0_and_the_order_stays) {
    uint64_t more = add(&hot, 0, 101, EPOCH_US);
    uint64_t less = add(&hot, 0, 100, EPOCH_US);
    int64_t later_us = EPOCH_US + 40 * 365 * 24 * HOUR_US;
    assert_int_equal(decay_score(&hot, more, later_us), 0);
    assert_true(more > less);
    assert_int_equal(decay_score(&hot, add(&hot, less, 7, later_us), later_us), 7);
}

TEST(no_result_is_ordinal_0_and_a_result_of_0_changes_nothing) {
    uint64_t ordinal = add(&hot, 0, 5, EPOCH_US + HOUR_US);
    assert_int_equal(add(&hot, 0, 0, EPOCH_US + HOUR_US), 0);
    assert_int_equal(add(&hot, ordinal, 0, EPOCH_US + 2 * HOUR_US), ordinal);
    assert_int_equal(decay_score(&hot, 0, EPOCH_US), 0);
}

TEST(the_order_of_results_matters_by_less_than_their_rounding) {
    int64_t a_us = EPOCH_US + 100 * HOUR_US;
    int64_t b_us = a_us + 7 * HOUR_US;
    uint64_t forth = add(&hot, add(&hot, 0, 1000, a_us), 3, b_us);
    uint64_t back = add(&hot, add(&hot, 0, 3, b_us), 1000, a_us);
    assert_true(distance(forth, back) <= 2);
}

TEST(a_sum_that_is_too_large_or_outside_the_times_is_refused) {
    uint64_t sum = 77;
    int64_t time_us = EPOCH_US + 10 * HOUR_US;
    uint64_t most = add(&hot, 0, UINT64_MAX / 2, time_us);
    assert_int_equal(decay_add(&hot, ordinals, most, UINT64_MAX, time_us, time_us, &sum),
                     DECAY_TOO_LARGE);
    assert_int_equal(decay_add(&hot, ordinals, 0, 1, EPOCH_US - 1, EPOCH_US - 1, &sum),
                     DECAY_OUTSIDE_TIME);
    assert_int_equal(decay_add(&hot, most - 1, 0, UINT64_MAX / 2, time_us, time_us, &sum),
                     DECAY_OUTSIDE_TIME);
    assert_int_equal(decay_add(&hot, ordinals, 0, 1, INT64_MAX, INT64_MAX, &sum),
                     DECAY_OUTSIDE_TIME);
    assert_int_equal(sum, 77);
    assert_int_equal(decay_add(&hot, most, 0, UINT64_MAX / 2, time_us, time_us, &sum), DECAY_OK);
    assert_int_equal(sum, most);
}

/* Its score at the time of a late result may be one that no score can be. */
TEST(a_late_result_is_what_is_left_of_it) {
    uint64_t sum = 77;
    int64_t now_us = EPOCH_US + 1000 * HOUR_US;
    uint64_t before = add(&hot, 0, UINT64_MAX / 4, now_us);
    for (int64_t late = 0; late < 1000 * HOUR_US; late += 7 * HOUR_US) {
        int64_t time_us = now_us - late;
        assert_int_equal(decay_add(&hot, ordinals, before, UINT64_MAX, time_us, now_us, &sum),
                         late < 6 * HOUR_US ? DECAY_TOO_LARGE : DECAY_OK);
        if (late >= 6 * HOUR_US) {
            uint64_t left = decay_score(&hot, add(&hot, 0, UINT64_MAX, time_us), now_us);
            assert_true(distance(sum, add(&hot, before, left, now_us)) <= 2);
        }
    }
    assert_int_equal(sum, before);
}

TEST(the_last_time_has_room_for_the_largest_score) {
    const struct decay decay = {
        .half_life_us = HOUR_US, .epoch_us = EPOCH_US, .count = 1, .fraction_bits = 40};
    uint64_t mask = (UINT64_C(1) << 50) - 1;
    uint64_t sum;
    int64_t last_us = decay_last_us(&decay, 50);
    assert_int_equal(last_us, EPOCH_US + (1023 - 64) * HOUR_US);
    assert_int_equal(decay_add(&decay, mask, 0, UINT64_MAX / 2, last_us, last_us, &sum), DECAY_OK);
    assert_int_equal(
        decay_add(&decay, mask, 0, 1, last_us + 65 * HOUR_US, last_us + 65 * HOUR_US, &sum),
        DECAY_OUTSIDE_TIME);
    assert_int_equal(decay_whole_bits((uint64_t)HOUR_US, (uint64_t)(last_us - EPOCH_US) - 1), 10);
    assert_int_equal(decay_whole_bits((uint64_t)HOUR_US, (uint64_t)(last_us - EPOCH_US)), 11);
}

TEST(sums_of_any_keys_hold) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 100000; i++) {
        struct decay decay = hot;
        decay.fraction_bits = (uint8_t)(36 + random_below(&random, 13));
        /* With fractions close to a whole number, too. */
        uint64_t ordinal = random_next(&random) >> random_below(&random, 64);
        uint64_t near = random_below(&random, 2) == 0 ? ordinal : ordinal | 0xffffffffffff;
        uint64_t units = random_next(&random) >> random_below(&random, 64);
        /* As long after the epoch as times go. */
        int64_t after_us = (int64_t)(random_next(&random) >> (1 + random_below(&random, 60)));
        int64_t time_us = after_us < INT64_MAX - EPOCH_US ? EPOCH_US + after_us : INT64_MAX;
        uint64_t sum = near;
        enum decay_status added = decay_add(&decay, ordinals, near, units, time_us, time_us, &sum);
        assert_true(sum >= near);
        assert_true(added == DECAY_OK || sum == near);
        sum = near;
        enum decay_status joined = decay_join(&decay, ordinals, near, ordinal, time_us, &sum);
        assert_true(sum >= near);
        assert_true(joined == DECAY_OK || sum == near);
    }
}

TEST(two_scores_join_as_one_that_had_all_results) {
    int64_t a_us = EPOCH_US + 5000 * HOUR_US;
    int64_t b_us = a_us + 3 * HOUR_US;
    uint64_t a = add(&hot, 0, 1000, a_us);
    uint64_t b = add(&hot, 0, 70, b_us);
    uint64_t sum;
    assert_int_equal(decay_join(&hot, ordinals, a, b, b_us, &sum), DECAY_OK);
    assert_true(distance(sum, add(&hot, a, 70, b_us)) <= 1);
    assert_int_equal(decay_join(&hot, ordinals, 0, b, b_us, &sum), DECAY_OK);
    assert_int_equal(sum, b);
    assert_int_equal(decay_join(&hot, ordinals, a, 0, b_us, &sum), DECAY_OK);
    assert_int_equal(sum, a);
    a = add(&hot, 0, UINT64_MAX, a_us);
    assert_int_equal(decay_join(&hot, ordinals, a, a, a_us, &sum), DECAY_TOO_LARGE);
}

TEST(the_first_ordinal_of_a_score_is_found) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < (is_short_run() ? 2000 : 100000); i++) {
        const struct decay *decay = random_below(&random, 2) == 0 ? &hot : &narrow;
        int64_t time_us = EPOCH_US + (int64_t)random_below(&random, 50ULL * 365 * 86400 * MILLION);
        uint64_t units = random_next(&random) >> random_below(&random, 64);
        uint64_t ordinal = 99;
        assert_true(decay_find(decay, ordinals, units, time_us, &ordinal));
        assert_true(decay_score(decay, ordinal, time_us) >= units);
        assert_true(ordinal == 0 || decay_score(decay, ordinal - 1, time_us) < units);
    }
}

TEST(a_score_that_no_ordinal_has_is_not_found) {
    uint64_t ordinal;
    uint64_t last = add(&hot, 0, 1000, EPOCH_US + HOUR_US);
    assert_true(decay_find(&hot, last, 1000, EPOCH_US + HOUR_US, &ordinal));
    assert_true(distance(ordinal, last) < UINT64_C(1) << 40);
    assert_false(decay_find(&hot, last, 1002, EPOCH_US + HOUR_US, &ordinal));
    assert_true(decay_find(&hot, last, 1, EPOCH_US - 1000 * HOUR_US, &ordinal));
    assert_int_equal(ordinal, 1);
}

TEST(scores_rise_with_ordinals_and_fall_with_time) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 20000; i++) {
        uint64_t ordinal = random_next(&random) >> random_below(&random, 64);
        int64_t time_us = (int64_t)(random_next(&random) >> (1 + random_below(&random, 60)));
        ordinal -= ordinal == UINT64_MAX;
        uint64_t score = decay_score(&hot, ordinal, time_us);
        assert_true(decay_score(&hot, ordinal + 1, time_us) >= score);
        assert_true(time_us == INT64_MAX || decay_score(&hot, ordinal, time_us + 1) <= score);
    }
}
