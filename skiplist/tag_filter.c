/* See the header. */
#include "skiplist/tag_filter.h"

#include <stdlib.h>

#include "codec/memory.h"

enum {
    READER_RANGES_MAX = 4096, /* more are not faster than the sheets */
    VALUES_FEW = 8,           /* are searched */
};

static int tag_filter_compare(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static bool tag_filter_has_value(const uint32_t *values, uint32_t count, uint32_t value) {
    uint32_t low = 0;
    while (count > 0) {
        uint32_t half = count / 2;
        bool is_behind = values[low + half] < value;
        low = is_behind ? low + half + 1 : low;
        count = is_behind ? count - half - 1 : half;
    }
    return values[low] == value;
}

static bool tag_filter_passes_value(const struct filter_test *test, uint32_t value) {
    bool is_in = test->count > 0 && value <= test->values[test->count - 1] &&
                 (test->set != NULL ? (test->set[value / 64] >> value % 64 & 1) != 0
                                    : tag_filter_has_value(test->values, test->count, value));
    return is_in != test->is_excluding;
}

static bool tag_filter_passes(const struct filter_test *test, uint32_t code) {
    return tag_filter_passes_value(test, tag_slot_extract(test->slot, code));
}

bool tag_filter_matches(const struct tag_filter *filter, uint32_t code) {
    if (filter->is_simple) {
        return ((code & filter->mask) == filter->equal) != filter->is_inverse;
    }
    if (filter->is_nobody) {
        return false;
    }
    for (uint32_t i = 0; i < filter->count; i++) {
        if (!tag_filter_passes(&filter->tests[i], code)) {
            return false;
        }
    }
    return true;
}

/* Collect the codes of the values chosen (or excluded) of one tag. false: a value chosen is nowhere. */
static uint32_t tag_filter_collect(const struct tag_slot *slot, const struct tag_choice *choices,
                                   uint32_t count, unsigned tag, bool is_excluded,
                                   uint32_t *values) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (choices[i].tag != tag || choices[i].is_excluded != is_excluded) {
            continue;
        }
        uint32_t value =
            choices[i].value.size > 0 ? tag_dictionary_find(&slot->values, choices[i].value) : 0;
        if (value != 0 || choices[i].value.size == 0) {
            values[found++] = value;
        }
    }
    if (found > 1) {
        qsort(values, found, sizeof *values, tag_filter_compare);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < found; i++) {
        if (kept == 0 || values[kept - 1] != values[i]) {
            values[kept++] = values[i];
        }
    }
    return kept;
}

static uint32_t tag_filter_subtract(uint32_t *values, uint32_t count, const uint32_t *others,
                                    uint32_t other_count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_out = other_count > 0 && values[i] <= others[other_count - 1] &&
                      tag_filter_has_value(others, other_count, values[i]);
        if (!is_out) {
            values[kept++] = values[i];
        }
    }
    return kept;
}

/* Without memory for it, they are searched. */
static void tag_filter_make_set(struct filter_test *test) {
    if (test->count <= VALUES_FEW) {
        return;
    }
    test->set =
        memory_allocate_zeroed((test->values[test->count - 1] / 64 + 1) * sizeof *test->set);
    for (uint32_t i = 0; i < test->count && test->set != NULL; i++) {
        test->set[test->values[i] / 64] |= UINT64_C(1) << test->values[i] % 64;
    }
}

/* The test for one tag; false: no memory. */
static bool tag_filter_add_test(struct tag_filter *filter, const struct tag_slot *slot,
                                unsigned tag, const struct tag_choice *choices, uint32_t count) {
    uint32_t wanted = 0, unwanted = 0;
    for (uint32_t i = 0; i < count; i++) {
        wanted += choices[i].tag == tag && !choices[i].is_excluded;
        unwanted += choices[i].tag == tag && choices[i].is_excluded;
    }
    if (wanted + unwanted == 0) {
        return true;
    }
    struct filter_test *test = &filter->tests[filter->count];
    *test = (struct filter_test){.tag = tag, .slot = slot, .is_excluding = wanted == 0};
    test->values = test->own;
    if (wanted + unwanted > TEST_VALUES) {
        test->values = memory_allocate((wanted + unwanted) * sizeof *test->values);
    }
    if (test->values == NULL) {
        return false;
    }
    filter->count++;
    filter->tag_mask |= 1U << tag;
    uint32_t *others = test->values + wanted;
    wanted = tag_filter_collect(slot, choices, count, tag, false, test->values);
    unwanted = tag_filter_collect(slot, choices, count, tag, true, others);
    if (test->is_excluding) {
        test->count = unwanted;
        tag_filter_make_set(test);
        return true;
    }
    test->count = tag_filter_subtract(test->values, wanted, others, unwanted);
    tag_filter_make_set(test);
    filter->is_nobody = filter->is_nobody || test->count == 0;
    return true;
}

static void tag_filter_simplify(struct tag_filter *filter) {
    filter->is_simple = !filter->is_nobody;
    filter->is_inverse = filter->count == 1 && filter->tests[0].is_excluding;
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct filter_test *test = &filter->tests[i];
        filter->is_simple =
            filter->is_simple && test->is_excluding == filter->is_inverse && test->count == 1;
        if (filter->is_simple) {
            filter->mask |= test->slot->mask;
            filter->equal |= tag_slot_deposit(test->slot, test->values[0]);
        }
    }
}

/* ---- reading counts ---- */

static const struct filter_test *tag_filter_test_of(const struct tag_filter *filter, unsigned tag) {
    for (uint32_t i = 0; i < filter->count; i++) {
        if (filter->tests[i].tag == tag) {
            return &filter->tests[i];
        }
    }
    return NULL;
}

static bool tag_filter_add_range(struct filter_reader *reader, uint32_t first, uint32_t count) {
    if (reader->range_count > 0) {
        struct filter_range *last = &reader->ranges[reader->range_count - 1];
        if (last->first + last->count == first) {
            last->count += count;
            return true;
        }
    }
    if (reader->range_count == READER_RANGES && reader->ranges == reader->own) {
        reader->ranges = memory_allocate(READER_RANGES_MAX * sizeof *reader->ranges);
        if (reader->ranges == NULL) {
            reader->ranges = reader->own;
            return false;
        }
        memcpy(reader->ranges, reader->own, sizeof reader->own);
    }
    if (reader->range_count == READER_RANGES_MAX) {
        return false;
    }
    reader->ranges[reader->range_count++] = (struct filter_range){first, count};
    return true;
}

/* Add the numbers that match, from the tag at this position of the combination on: prefix has the values
 * before it, tag_mask what is still asked for. false: too many ranges, or no memory. */
static bool tag_filter_find_ranges(const struct tag_filter *filter, unsigned tag_mask,
                                   struct filter_reader *reader, uint32_t position,
                                   uint32_t prefix) {
    const struct tag_combination *combination = reader->combination;
    uint32_t behind =
        position > 0 ? combination->shifts[combination->tags[position - 1]] : combination->bits;
    if (tag_mask == 0) {
        return tag_filter_add_range(reader, prefix << behind, UINT32_C(1) << behind);
    }
    unsigned tag = combination->tags[position];
    const struct filter_test *test =
        (tag_mask >> tag & 1) != 0 ? tag_filter_test_of(filter, tag) : NULL;
    uint32_t bits = behind - combination->shifts[tag];
    bool is_done = true;
    tag_mask &= ~(1U << tag);
    if (test != NULL && !test->is_excluding) {
        for (uint32_t i = 0; i < test->count && is_done; i++) {
            is_done = tag_filter_find_ranges(filter, tag_mask, reader, position + 1,
                                             prefix << bits | test->values[i]);
        }
        return is_done;
    }
    for (uint32_t value = 0; value >> bits == 0 && is_done; value++) {
        if (test == NULL || tag_filter_passes_value(test, value)) {
            is_done = tag_filter_find_ranges(filter, tag_mask, reader, position + 1,
                                             prefix << bits | value);
        }
    }
    return is_done;
}

static void tag_filter_deinit_reader(struct filter_reader *reader) {
    if (reader->ranges != reader->own) {
        memory_free(reader->ranges);
    }
    reader->ranges = reader->own;
    reader->combination = NULL;
}

/* Which sorted numbers are to be read: of their first tag's values, if that is asked for. */
static void tag_filter_choose_sorted(struct tag_filter *filter, const struct tag_combination *all) {
    const struct filter_test *test = tag_filter_test_of(filter, all->tags[0]);
    filter->sorted_test = test != NULL && (!test->is_excluding || filter->count == 1) ? test : NULL;
}

static void tag_filter_init_reader(const struct tag_filter *filter, unsigned tag_mask,
                                   const struct tag_combination *combination,
                                   struct filter_reader *reader) {
    reader->combination = combination;
    if (combination != NULL && !tag_filter_find_ranges(filter, tag_mask, reader, 0, 0)) {
        tag_filter_deinit_reader(reader);
    }
}

const struct tag_combination *tag_filter_choose(const struct tag_counts_plan *plan,
                                                unsigned tag_mask) {
    const struct tag_combination *best = NULL;
    for (uint32_t i = 0; i < plan->combination_count; i++) {
        const struct tag_combination *at = &plan->combinations[i];
        if ((at->tag_mask & tag_mask) == tag_mask && (best == NULL || at->bits < best->bits)) {
            best = at;
        }
    }
    return best;
}

static void tag_filter_init_readers(struct tag_filter *filter, const struct tags *tags) {
    const struct tag_counts_plan *plan = &tags->plan;
    unsigned mask = filter->tag_mask;
    tag_filter_init_reader(filter, mask, tag_filter_choose(plan, mask), &filter->rows);
    if (filter->rows.combination != NULL) {
        return;
    }
    for (uint32_t i = 0; i < filter->count; i++) {
        unsigned single = 1U << filter->tests[i].tag;
        tag_filter_init_reader(filter, single, tag_filter_choose(plan, single),
                               &filter->singles[i]);
    }
    if ((mask & ~plan->dense.tag_mask) == 0) {
        tag_filter_init_reader(filter, mask, &plan->dense, &filter->dense);
    }
    tag_filter_choose_sorted(filter, &plan->all);
}

bool tag_filter_matches_values(const struct tag_filter *filter,
                               const struct tag_combination *combination, uint32_t values) {
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct filter_test *test = &filter->tests[i];
        uint32_t mask = UINT32_MAX >> (TAGS_BITS_MAX - test->slot->bits);
        if (!tag_filter_passes_value(test, values >> combination->shifts[test->tag] & mask)) {
            return false;
        }
    }
    return true;
}

/* Sorted numbers from these values to those; of an inverse filter, of what does not match. */
static uint32_t tag_filter_sum_between(const struct tag_filter *filter,
                                       const struct tag_combination *all,
                                       const struct tag_count *sorted, uint32_t count,
                                       uint32_t first, uint32_t last) {
    uint32_t sum = 0;
    for (uint32_t at = tag_counts_find(sorted, count, first);
         at < count && sorted[at].values <= last; at++) {
        if (tag_filter_matches_values(filter, all, sorted[at].values) != filter->is_inverse) {
            sum += sorted[at].count;
        }
    }
    return sum;
}

static uint32_t tag_filter_sum_sorted(const struct tag_filter *filter,
                                      const struct tag_combination *all,
                                      const struct tag_count *sorted, uint32_t count) {
    const struct filter_test *test = filter->sorted_test;
    uint32_t sum = 0;
    if (test == NULL) {
        return tag_filter_sum_between(filter, all, sorted, count, 0, UINT32_MAX);
    }
    uint32_t shift = all->shifts[test->tag], others = (uint32_t)((UINT64_C(1) << shift) - 1);
    if (test->count > VALUES_FEW) {
        return tag_filter_sum_between(filter, all, sorted, count, test->values[0] << shift,
                                      test->values[test->count - 1] << shift | others);
    }
    for (uint32_t i = 0; i < test->count; i++) {
        uint32_t first = test->values[i] << shift;
        sum += tag_filter_sum_between(filter, all, sorted, count, first, first | others);
    }
    return sum;
}

bool tag_filter_sum(const struct tag_filter *filter, const struct tag_counts_plan *plan,
                    const struct tag_counts *counts, uint32_t count, uint32_t *sum) {
    *sum = 0;
    if (filter->dense.combination != NULL) {
        for (uint32_t r = 0; r < filter->dense.range_count; r++) {
            const struct filter_range *range = &filter->dense.ranges[r];
            for (uint32_t i = 0; i < range->count; i++) {
                *sum += counts->dense[range->first + i];
            }
        }
        return true;
    }
    /* If all sorted numbers were to be read, reading the codes of the sheets would be faster. */
    if (!plan->is_sparse || counts->is_crowded ||
        (filter->sorted_test == NULL && filter->is_simple)) {
        return false;
    }
    *sum = tag_filter_sum_sorted(filter, &plan->all, counts->sparse, counts->sparse_count) +
           tag_filter_sum_sorted(filter, &plan->all, counts->latest, counts->latest_count);
    *sum = filter->is_inverse ? count - *sum : *sum;
    return true;
}

uint32_t tag_filter_sum_children(const struct filter_reader *reader,
                                 const struct tag_counts_plan *plan, struct tag_counts *counts,
                                 uint32_t from, uint32_t to) {
    uint32_t sum = 0;
    for (uint32_t r = 0; r < reader->range_count; r++) {
        uint32_t row = reader->combination->first_row + reader->ranges[r].first;
        for (uint32_t i = 0; i < reader->ranges[r].count; i++) {
            const void *at = tag_counts_row(plan, counts, row + i);
            for (uint32_t c = from; c < to; c++) {
                sum += counts->is_narrow ? ((const uint16_t *)at)[c] : ((const uint32_t *)at)[c];
            }
        }
    }
    return sum;
}

/* ---- the life of a filter ---- */

/* On a board without values only the empty value matches. */
static void tag_filter_init_valueless(struct tag_filter *filter, const struct tag_choice *choices,
                                      uint32_t count) {
    for (unsigned tag = 0; tag < TAGS_MAX; tag++) {
        bool is_wanted = false, has_wish = false;
        for (uint32_t i = 0; i < count; i++) {
            if (choices[i].tag != tag) {
                continue;
            }
            bool is_empty = choices[i].value.size == 0;
            filter->is_nobody = filter->is_nobody || (choices[i].is_excluded && is_empty);
            has_wish = has_wish || !choices[i].is_excluded;
            is_wanted = is_wanted || (!choices[i].is_excluded && is_empty);
        }
        filter->is_nobody = filter->is_nobody || (has_wish && !is_wanted);
    }
    filter->is_simple = !filter->is_nobody;
}

struct tag_filter *tag_filter_create(const struct board *board, const struct tag_choice *choices,
                                     uint32_t count) {
    const struct tags *tags = tag_filter_tags(board);
    struct tag_filter *filter = memory_allocate_zeroed(sizeof *filter);
    if (filter == NULL) {
        return NULL;
    }
    filter->rows.ranges = filter->rows.own;
    filter->dense.ranges = filter->dense.own;
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        filter->singles[i].ranges = filter->singles[i].own;
    }
    if (tags == NULL) {
        tag_filter_init_valueless(filter, choices, count);
        return filter;
    }
    for (unsigned tag = 0; tag < tags->count; tag++) {
        if (!tag_filter_add_test(filter, tags->slots[tag], tag, choices, count)) {
            tag_filter_destroy(filter);
            return NULL;
        }
    }
    tag_filter_simplify(filter);
    if (!filter->is_nobody) {
        tag_filter_init_readers(filter, tags);
    }
    return filter;
}

void tag_filter_destroy(struct tag_filter *filter) {
    if (filter == NULL) {
        return;
    }
    for (uint32_t i = 0; i < filter->count; i++) {
        struct filter_test *test = &filter->tests[i];
        if (test->values != test->own) {
            memory_free(test->values);
        }
        memory_free(test->set);
        tag_filter_deinit_reader(&filter->singles[i]);
    }
    tag_filter_deinit_reader(&filter->rows);
    tag_filter_deinit_reader(&filter->dense);
    memory_free(filter);
}
