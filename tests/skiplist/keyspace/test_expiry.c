/* The heap of expiry times, against a linear search in an array. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/keyspace/expiry.h"
#include "tests/support/random.h"

enum { OWNERS = 300 };

struct model {
    int64_t times[OWNERS];
    uint32_t places[OWNERS];
    struct expiry expiry;
};

static void assert_agrees(const struct model *model) {
    ASSERT_VALID(expiry_validate, &model->expiry);
    uint32_t count = 0;
    int64_t first_ms = INT64_MAX;
    for (int i = 0; i < OWNERS; i++) {
        if (model->places[i] != EXPIRY_NOWHERE) {
            count++;
            first_ms = model->times[i] < first_ms ? model->times[i] : first_ms;
        }
    }
    assert_int_equal(model->expiry.count, count);
    if (count > 0) {
        struct expiry_entry first = expiry_first(&model->expiry);
        assert_int_equal(first.time_ms, first_ms);
        assert_int_equal(model->times[first.place - model->places], first_ms);
    } else {
        assert_true(model->expiry.sum_ms == 0);
    }
}

static int64_t random_time(struct random *random) {
    return random_below(random, 4) == 0 ? (int64_t)random_next(random)
                                        : (int64_t)random_below(random, 50);
}

TEST(the_earliest_is_first_whatever_is_changed) {
    struct random random = random_begin(__func__);
    static struct model model;
    model = (struct model){.times = {0}};
    for (int i = 0; i < OWNERS; i++) {
        model.places[i] = EXPIRY_NOWHERE;
    }
    for (int step = 0; step < 20000; step++) {
        int owner = (int)random_below(&random, OWNERS);
        uint32_t *place = &model.places[owner];
        int64_t time_ms = random_time(&random);
        /* Long phases of growing and shrinking, so that pages are allocated and freed. */
        bool is_growing = step / 1000 % 2 == 0;
        if (*place == EXPIRY_NOWHERE && is_growing) {
            assert_true(expiry_reserve(&model.expiry));
            expiry_put(&model.expiry, time_ms, place);
            model.times[owner] = time_ms;
        } else if (*place != EXPIRY_NOWHERE && !is_growing && random_below(&random, 2) == 0) {
            expiry_remove(&model.expiry, place);
            assert_int_equal(*place, EXPIRY_NOWHERE);
            expiry_trim(&model.expiry);
        } else if (*place != EXPIRY_NOWHERE) {
            expiry_change(&model.expiry, place, time_ms);
            model.times[owner] = time_ms;
        }
        assert_agrees(&model);
    }
    while (model.expiry.count > 0) {
        expiry_remove(&model.expiry, expiry_first(&model.expiry).place);
        assert_agrees(&model);
    }
    expiry_trim(&model.expiry);
}

TEST(no_memory_leaves_it_as_it_was) {
    struct expiry expiry = {.count = 0};
    uint32_t place = EXPIRY_NOWHERE;
    for (uint64_t nth = 1; nth <= 2; nth++) {
        memory_fail_at(nth);
        assert_false(expiry_reserve(&expiry));
        memory_fail_at(0);
        map_pages_deinit(&expiry.entries);
    }
    assert_true(expiry_reserve(&expiry));
    expiry_put(&expiry, 5, &place);
    assert_int_equal(place, 0);
    expiry_remove(&expiry, &place);
    expiry_trim(&expiry);
}

TEST(all_times_move_by_the_offset_and_keep_their_order) {
    struct expiry expiry = {.offset_ms = 1000};
    uint32_t places[4] = {EXPIRY_NOWHERE, EXPIRY_NOWHERE, EXPIRY_NOWHERE, EXPIRY_NOWHERE};
    static const int64_t times[4] = {5000, 3000, INT64_MAX, 4000};
    for (int i = 0; i < 4; i++) {
        assert_true(expiry_reserve(&expiry));
        expiry_put(&expiry, times[i], &places[i]);
    }
    assert_int_equal(expiry_first(&expiry).time_ms, 3000);
    expiry.offset_ms += 70;
    assert_int_equal(expiry_first(&expiry).time_ms, 3070);
    assert_int_equal(expiry_time_ms(&expiry, places[0]), 5070);
    /* Times that no longer fit are clamped. */
    expiry.offset_ms += 7000;
    assert_int_equal(expiry_time_ms(&expiry, places[2]), INT64_MAX);
    expiry_remove(&expiry, &places[2]);
    assert_true(expiry_sum_ms(&expiry) == 5000 + 3000 + 4000 + 3 * 7070);
    expiry_change(&expiry, &places[0], 8000);
    assert_int_equal(expiry_first(&expiry).time_ms, 8000);
    ASSERT_VALID(expiry_validate, &expiry);
    for (int i = 0; i < 4; i++) {
        if (places[i] != EXPIRY_NOWHERE) {
            expiry_remove(&expiry, &places[i]);
        }
    }
    expiry_trim(&expiry);
    map_pages_deinit(&expiry.entries);
}
