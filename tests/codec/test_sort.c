/* Sorting records, against an insertion sort. */
#include "tests/support/test.h"

#include "codec/sort.h"
#include "tests/support/random.h"

enum { COUNT_MAX = 3000 };

static struct sort_record records[COUNT_MAX], spare[COUNT_MAX], expected[COUNT_MAX];

static int compare(const void *left, const void *right) {
    const struct sort_record *a = left;
    const struct sort_record *b = right;
    if (a->word != b->word) {
        return a->word < b->word ? -1 : 1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

/* Words that differ only in the bits of mask. */
static void sort_and_compare(struct random *random, uint32_t count, uint64_t mask) {
    uint64_t base = random_next(random);
    for (uint32_t i = 0; i < count; i++) {
        records[i].word = (base & ~mask) | (random_next(random) & mask);
        records[i].index = i;
    }
    memcpy(expected, records, sizeof(records));
    qsort(expected, count, sizeof(expected[0]), compare);
    sort_records(records, spare, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(records[i].word, expected[i].word);
        assert_int_equal(records[i].index, expected[i].index);
    }
}

TEST(records_are_sorted_and_equal_words_keep_their_order) {
    struct random random = random_begin(__func__);
    static const uint64_t masks[] = {0,
                                     1,
                                     7,
                                     0xff,
                                     0xff00ff,
                                     UINT64_C(1) << 63,
                                     UINT64_C(0x8000000000000001),
                                     UINT64_C(0xff00000000000000),
                                     UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(masks); i++) {
        for (uint32_t count = 0; count < 120; count++) {
            sort_and_compare(&random, count, masks[i]);
        }
        for (int round = 0; round < 20; round++) {
            sort_and_compare(&random, (uint32_t)random_below(&random, COUNT_MAX + 1), masks[i]);
        }
    }
}

TEST(what_is_in_order_stays_as_it_is) {
    for (uint32_t i = 0; i < COUNT_MAX; i++) {
        records[i] = (struct sort_record){.word = i / 7 * 1000, .index = COUNT_MAX - i};
    }
    memcpy(expected, records, sizeof(records));
    sort_records(records, spare, COUNT_MAX);
    assert_memory_equal(records, expected, sizeof(records));
}

TEST(several_words_are_sorted_by_the_least_important_first) {
    struct random random = random_begin(__func__);
    static uint64_t high[COUNT_MAX], low[COUNT_MAX];
    for (uint32_t i = 0; i < COUNT_MAX; i++) {
        high[i] = random_below(&random, 20) << 40;
        low[i] = random_below(&random, 50);
        records[i] = (struct sort_record){.word = low[i], .index = i};
    }
    sort_records(records, spare, COUNT_MAX);
    for (uint32_t i = 0; i < COUNT_MAX; i++) {
        records[i].word = high[records[i].index];
    }
    sort_records(records, spare, COUNT_MAX);
    for (uint32_t i = 1; i < COUNT_MAX; i++) {
        uint32_t a = records[i - 1].index;
        uint32_t b = records[i].index;
        assert_true(high[a] <= high[b]);
        assert_true(high[a] < high[b] || low[a] <= low[b]);
        assert_true(high[a] < high[b] || low[a] < low[b] || a < b);
    }
}
