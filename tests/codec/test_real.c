/* Powers of e against decimals of 60 digits (rating_twin.py), and the bits of some, which every build must have. */
#include "tests/support/test.h"

#include "codec/rating.h"
#include "tests/support/random.h"

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TEST(a_power_of_e_is_off_by_at_most_one_unit_of_its_last_place) {
    struct random random = random_begin(__func__);
    char line[128];
    uint32_t count = test_rounds(200000, 5000);
    uint32_t exact = 0;
    snprintf(line, sizeof line, "python3 tests/codec/rating_twin.py powers %" PRIu64 " %" PRIu32,
             random_next(&random), count);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    for (uint32_t i = 0; i < count; i++) {
        char *end;
        assert_non_null(fgets(line, sizeof line, pipe));
        double x = strtod(line, &end);
        int64_t off = (int64_t)(bits_of(rating_exp(x)) - bits_of(strtod(end, NULL)));
        assert_in_range(off + 1, 0, 2);
        exact += off == 0;
    }
    assert_int_equal(pclose(pipe), 0);
    assert_true(exact > count / 100 * 80);
}

TEST(powers_of_e_have_the_same_bits_on_every_machine) {
    static const struct {
        double x;
        uint64_t bits;
    } known[] = {
        {0, 0x3ff0000000000000},      {1, 0x4005bf0a8b14576a},      {-1, 0x3fd78b56362cef38},
        {0.34, 0x3ff67aaa532108be},   {-23.75, 0x3dcaa610a1c7025e}, {700, 0x7f0d945df4f8ec8e},
        {-700, 0x00d14f2b0fb9307f},   {1e300, 0x7f0d945df4f8ec8e},  {-1e300, 0x00d14f2b0fb9307f},
        {1e-300, 0x3ff0000000000000},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        test_row("e^%g is %016" PRIx64, known[i].x, bits_of(rating_exp(known[i].x)));
        assert_true(bits_of(rating_exp(known[i].x)) == known[i].bits);
    }
}

TEST(powers_of_e_rise) {
    struct random random = random_begin(__func__);
    for (uint32_t i = 0; i < test_rounds(1000000, 50000); i++) {
        double x = ((double)random_below(&random, 1400000) - 700000) / 1000;
        assert_true(rating_exp(x) < rating_exp(x + 0x1p-20));
    }
}

TEST(rounding_is_to_the_nearest_and_halves_go_away_from_0) {
    static const struct {
        double x;
        int64_t rounded;
    } known[] = {
        {0, 0},
        {0.5, 1},
        {-0.5, -1},
        {1.5, 2},
        {2.5, 3},
        {-2.5, -3},
        {0.49999999999999994, 0},
        {-0.49999999999999994, 0},
        {4503599627370497.5, 4503599627370498},
        {-4503599627370497.5, -4503599627370498},
        {0x1.fffffffffffffp61, INT64_C(0x3ffffffffffffe00)},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        assert_int_equal(rating_round(known[i].x), known[i].rounded);
    }
}

TEST(roots_are_the_nearest_double) {
    struct random random = random_begin(__func__);
    for (uint32_t i = 0; i < 10000; i++) {
        uint64_t whole = random_next(&random) >> 38;
        assert_true(rating_sqrt((double)(whole * whole)) == (double)whole);
    }
    assert_true(bits_of(rating_sqrt(2)) == 0x3ff6a09e667f3bcd);
}
