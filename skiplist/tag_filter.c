/* See the header. */
#include "skiplist/tag_filter.h"

#include <stdlib.h>

#include "codec/memory.h"

enum {
    READER_RANGES_MAX = 4096, /* more are not faster than the sheets */
    VALUES_FEW = 8,           /* are searched */
    SORTED_SEARCH =
        32,           /* a search among sorted numbers takes as long as reading so many of them, */
    SORTED_CODES = 8, /* and reading one as long as so many codes of sheets */
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

/* Is it one of the test's values, whether these are taken in or left out? */
static bool tag_filter_names(const struct filter_test *test, uint32_t value) {
    return test->count > 0 && value <= test->values[test->count - 1] &&
           (test->set != NULL ? (test->set[value / 64] >> value % 64 & 1) != 0
                              : tag_filter_has_value(test->values, test->count, value));
}

bool tag_filter_passes_value(const struct filter_test *test, uint32_t value) {
    return tag_filter_names(test, value) != test->is_excluding;
}

bool tag_filter_matches(const struct tag_filter *filter, uint32_t code) {
    if (filter->is_simple) {
        return ((code & filter->mask) == filter->equal) != filter->is_inverse;
    }
    if (filter->is_nobody) {
        return false;
    }
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct filter_test *test = &filter->tests[i];
        if (!tag_filter_passes_value(test, sheet_slot_extract(test->slot, code))) {
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
            choices[i].value.size > 0 ? tags_dictionary_find(&slot->values, choices[i].value) : 0;
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
    if (test->count <= TEST_VALUES) {
        return;
    }
    test->set_bits = test->values[test->count - 1] + 1;
    test->set = memory_allocate_zeroed((test->set_bits / 64 + 1) * sizeof *test->set);
    for (uint32_t i = 0; i < test->count && test->set != NULL; i++) {
        test->set[test->values[i] / 64] |= UINT64_C(1) << test->values[i] % 64;
    }
}

static void tag_filter_deinit_test(struct filter_test *test) {
    if (!test->is_borrowed && test->values != test->own) {
        memory_free(test->values);
    }
    if (!test->is_borrowed) {
        memory_free(test->set);
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
    uint32_t *others = test->values + wanted;
    wanted = tag_filter_collect(slot, choices, count, tag, false, test->values);
    unwanted = tag_filter_collect(slot, choices, count, tag, true, others);
    if (test->is_excluding && unwanted == 0) { /* of values that nobody has */
        tag_filter_deinit_test(test);
        return true;
    }
    filter->count++;
    filter->tag_mask |= 1U << tag;
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

/* If the ranges are more than half of all numbers, the gaps between them are less to read. */
static void tag_filter_invert_ranges(struct filter_reader *reader) {
    uint32_t end = UINT32_C(1) << reader->combination->bits, sum = 0, first = 0, count = 0;
    for (uint32_t i = 0; i < reader->range_count; i++) {
        sum += reader->ranges[i].count;
    }
    if (sum <= end / 2 || reader->range_count == READER_RANGES ||
        reader->range_count == READER_RANGES_MAX) {
        return;
    }
    for (uint32_t i = 0; i <= reader->range_count; i++) {
        struct filter_range range =
            i < reader->range_count ? reader->ranges[i] : (struct filter_range){.first = end};
        if (range.first > first) {
            reader->ranges[count++] = (struct filter_range){first, range.first - first};
        }
        first = range.first + range.count;
    }
    reader->range_count = count;
    reader->is_inverse = true;
}

static void tag_filter_init_reader(const struct tag_filter *filter, unsigned tag_mask,
                                   const struct tag_combination *combination,
                                   struct filter_reader *reader) {
    reader->combination = combination;
    if (combination == NULL) {
        return;
    }
    if (tag_filter_find_ranges(filter, tag_mask, reader, 0, 0)) {
        tag_filter_invert_ranges(reader);
    } else {
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

/* Do the numbers of whole blocks tell of a group that has no rows? *lists: bit i, list i is read; *rest: the tags that
 * are asked for beside what the lists take in or leave out. */
static bool tag_filter_has_sums(const struct tag_counts_plan *plan, unsigned tag_mask,
                                unsigned excluding_mask, unsigned *lists, unsigned *rest) {
    *lists = 0;
    *rest = tag_mask;
    for (uint32_t i = 0; i < plan->list_count; i++) {
        unsigned first = 1U << plan->lists[i].tags[0];
        if ((*rest & first) != 0) {
            *lists |= 1U << i;
            *rest = (excluding_mask & first) != 0 ? *rest & ~first : 0;
        }
    }
    return *rest == 0 || (*rest & ~plan->dense.tag_mask) == 0 ||
           (*lists != 0 && tag_filter_choose(plan, *rest) != NULL);
}

static void tag_filter_init_sums(struct tag_filter *filter, const struct tag_counts_plan *plan) {
    unsigned lists, rest, excluding = 0;
    for (uint32_t i = 0; i < filter->count; i++) {
        excluding |= filter->tests[i].is_excluding ? 1U << filter->tests[i].tag : 0;
    }
    if (!tag_filter_has_sums(plan, filter->tag_mask, excluding, &lists, &rest)) {
        return;
    }
    for (uint32_t i = 0; i < plan->list_count; i++) {
        filter->sorted[i] =
            (lists >> i & 1) != 0 ? tag_filter_test_of(filter, plan->lists[i].tags[0]) : NULL;
    }
    if (rest != 0 && (rest & ~plan->dense.tag_mask) == 0) {
        tag_filter_init_reader(filter, rest, &plan->dense, &filter->dense);
    } else if (rest != 0) {
        tag_filter_init_reader(filter, rest, tag_filter_choose(plan, rest), &filter->rest);
    }
    filter->has_sums =
        rest == 0 || filter->dense.combination != NULL || filter->rest.combination != NULL;
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

/* Numbers of a list, in order, and the test of its first tag. */
struct sorted_read {
    const struct tag_filter *filter;
    const struct filter_test *test;
    const struct tag_combination *combination;
    const struct tag_count *sorted;
    uint32_t count;
};

/* Where those of one value of the test, or of all values up to another one, are. */
static struct filter_range tag_filter_find_sorted(const struct sorted_read *read, uint32_t first,
                                                  uint32_t last) {
    uint32_t shift = read->combination->shifts[read->test->tag];
    uint32_t others = (uint32_t)((UINT64_C(1) << shift) - 1);
    uint32_t begin = tag_counts_find(read->sorted, read->count, first << shift);
    uint32_t end = tag_counts_find(read->sorted, read->count, last << shift | others);
    end += end < read->count && read->sorted[end].values == (last << shift | others);
    return (struct filter_range){begin, end - begin};
}

/* Those that hold a value of the test, and pass all others of the list's tags. */
static uint32_t tag_filter_sum_range(const struct sorted_read *read, struct filter_range range) {
    const struct tag_filter *filter = read->filter;
    const struct tag_combination *combination = read->combination;
    uint32_t sum = 0;
    for (uint32_t at = range.first; at < range.first + range.count; at++) {
        bool is_in = true;
        for (uint32_t i = 0; i < filter->count && is_in; i++) {
            const struct filter_test *test = &filter->tests[i];
            uint32_t mask = UINT32_MAX >> (TAGS_BITS_MAX - test->slot->bits);
            uint32_t value = read->sorted[at].values >> combination->shifts[test->tag] & mask;
            is_in = test == read->test ? tag_filter_names(test, value)
                                       : (combination->tag_mask >> test->tag & 1) == 0 ||
                                             tag_filter_passes_value(test, value);
        }
        sum += is_in ? read->sorted[at].count : 0;
    }
    return sum;
}

/* false: there are more than *left to be read. */
static bool tag_filter_sum_sorted(const struct sorted_read *read, uint32_t *sum, uint64_t *left) {
    const struct filter_test *test = read->test;
    struct filter_range range =
        tag_filter_find_sorted(read, test->values[0], test->values[test->count - 1]);
    bool is_each = range.count / SORTED_SEARCH > test->count;
    for (uint32_t i = 0; i < (is_each ? test->count : 1); i++) {
        if (is_each) {
            range = tag_filter_find_sorted(read, test->values[i], test->values[i]);
        }
        uint64_t work = range.count + (is_each ? SORTED_SEARCH : 0);
        if (work > *left) {
            return false;
        }
        *left -= work;
        *sum += tag_filter_sum_range(read, range);
    }
    return true;
}

bool tag_filter_sum(const struct tag_filter *filter, const struct tag_counts_plan *plan,
                    const struct tag_counts *counts, uint32_t count, uint32_t in_rest,
                    uint32_t *sum, uint64_t *read) {
    uint64_t left_max = count / SORTED_CODES + (uint64_t)SORTED_SEARCH * 2 * VALUES_FEW;
    uint64_t left = left_max;
    uint32_t without = 0;
    if (!filter->has_sums) {
        return false;
    }
    *sum = filter->rest.combination != NULL ? in_rest : count;
    if (filter->dense.combination != NULL) {
        const struct filter_reader *dense = &filter->dense;
        uint32_t in_ranges = 0;
        for (uint32_t r = 0; r < dense->range_count; r++) {
            for (uint32_t i = 0; i < dense->ranges[r].count; i++) {
                in_ranges += counts->dense[dense->ranges[r].first + i];
            }
        }
        *sum = dense->is_inverse ? count - in_ranges : in_ranges;
    }
    for (uint32_t i = 0; i < plan->list_count; i++) {
        const struct filter_test *test = filter->sorted[i];
        const struct tag_list *list = &counts->lists[i];
        uint32_t named = 0;
        if (test == NULL) {
            continue;
        }
        const struct sorted_read sorted = {filter, test, &plan->lists[i], list->sorted,
                                           list->sorted_count};
        const struct sorted_read latest = {filter, test, &plan->lists[i], list->latest,
                                           list->latest_count};
        if (list->is_crowded || !tag_filter_sum_sorted(&sorted, &named, &left) ||
            !tag_filter_sum_sorted(&latest, &named, &left)) {
            return false;
        }
        if (test->is_excluding) {
            without += named;
        } else {
            *sum = named;
        }
    }
    *read += (left_max - left) * SORTED_CODES;
    *sum -= without;
    return true;
}

uint32_t tag_filter_sum_children(const struct filter_reader *reader,
                                 const struct tag_counts_plan *plan, struct index_block *index,
                                 uint32_t from, uint32_t to) {
    struct tag_counts *counts = index->counts;
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
    return reader->is_inverse ? index_span_sum(index, to) - index_span_sum(index, from) - sum : sum;
}

void tag_filter_sum_each(const struct filter_reader *reader, const struct tag_counts_plan *plan,
                         struct index_block *index, uint32_t *sums) {
    struct tag_counts *counts = index->counts;
    memset(sums, 0, INDEX_FANOUT * sizeof *sums);
    for (uint32_t r = 0; r < reader->range_count; r++) {
        uint32_t row = reader->combination->first_row + reader->ranges[r].first;
        for (uint32_t i = 0; i < reader->ranges[r].count; i++) {
            const void *at = tag_counts_row(plan, counts, row + i);
            const uint16_t *narrow = at;
            const uint32_t *wider = at;
            for (uint32_t c = 0; c < INDEX_FANOUT && counts->is_narrow; c++) {
                sums[c] += narrow[c];
            }
            for (uint32_t c = 0; c < INDEX_FANOUT && !counts->is_narrow; c++) {
                sums[c] += wider[c];
            }
        }
    }
    for (uint32_t c = 0; c < index->count && reader->is_inverse; c++) {
        sums[c] = index_span(index, c) - sums[c];
    }
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

static void tag_filter_init(struct tag_filter *filter) {
    memset(filter, 0, sizeof *filter);
    filter->rows.ranges = filter->rows.own;
    filter->dense.ranges = filter->dense.own;
    filter->rest.ranges = filter->rest.own;
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        filter->singles[i].ranges = filter->singles[i].own;
    }
}

static struct tag_filter *tag_filter_create_empty(void) {
    struct tag_filter *filter = memory_allocate(sizeof *filter);
    if (filter != NULL) {
        tag_filter_init(filter);
    }
    return filter;
}

/* After the tests. */
static void tag_filter_complete(struct tag_filter *filter, const struct tags *tags) {
    const struct tag_counts_plan *plan = &tags->plan;
    unsigned mask = filter->tag_mask;
    /* How codes are compared: all tests at once, side by side, or looked up in sets. */
    _Static_assert(TAGS_MAX * TEST_VALUES <= FILTER_CODES, "those without a set have room");
    uint32_t room = FILTER_CODES;
    for (uint32_t i = 0; i < filter->count; i++) {
        filter->tests[i].is_listed = filter->tests[i].count <= TEST_VALUES;
        room -= filter->tests[i].is_listed ? filter->tests[i].count : 0;
    }
    filter->is_listed = true;
    filter->is_simple = !filter->is_nobody;
    filter->is_inverse = filter->count == 1 && filter->tests[0].is_excluding;
    for (uint32_t i = 0; i < filter->count; i++) {
        struct filter_test *test = &filter->tests[i];
        if (!test->is_listed && test->count <= room) {
            test->is_listed = true;
            room -= test->count;
        }
        filter->is_listed = filter->is_listed && test->is_listed;
        filter->is_simple =
            filter->is_simple && test->is_excluding == filter->is_inverse && test->count == 1;
        if (filter->is_simple) {
            filter->mask |= test->slot->mask;
            filter->equal |= sheet_slot_deposit(test->slot, test->values[0]);
        }
        for (uint32_t v = 0; v < test->count && test->is_listed; v++) {
            filter->codes[filter->code_count++] = sheet_slot_deposit(test->slot, test->values[v]);
        }
    }
    if (filter->is_nobody) {
        return;
    }
    tag_filter_init_reader(filter, mask, tag_filter_choose(plan, mask), &filter->rows);
    if (filter->rows.combination != NULL) {
        return;
    }
    for (uint32_t i = 0; i < filter->count; i++) {
        unsigned single = 1U << filter->tests[i].tag;
        tag_filter_init_reader(filter, single, tag_filter_choose(plan, single),
                               &filter->singles[i]);
    }
    tag_filter_init_sums(filter, plan);
}

struct tag_filter *tag_filter_create(const struct board *board, const struct tag_choice *choices,
                                     uint32_t count) {
    const struct tags *tags = board_tags(board);
    struct tag_filter *filter = tag_filter_create_empty();
    if (filter == NULL) {
        return NULL;
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
    tag_filter_complete(filter, tags);
    return filter;
}

static void tag_filter_deinit(struct tag_filter *filter) {
    for (uint32_t i = 0; i < filter->count; i++) {
        tag_filter_deinit_test(&filter->tests[i]);
        tag_filter_deinit_reader(&filter->singles[i]);
    }
    tag_filter_deinit_reader(&filter->rows);
    tag_filter_deinit_reader(&filter->dense);
    tag_filter_deinit_reader(&filter->rest);
    memory_free(filter->marks.at);
}

void tag_filter_destroy(struct tag_filter *filter) {
    if (filter != NULL) {
        tag_filter_deinit(filter);
        memory_free(filter);
    }
}

void tag_filter_expect(struct tag_filter *filter, uint32_t count) {
    filter->marks.expected = count;
}

/* ---- a part of a group ---- */

bool tag_filter_narrow(const struct board *board, const struct tag_filter *whole, unsigned tag_mask,
                       const struct tag_values *values, struct tag_filter **part) {
    const struct tags *tags = board_tags(board);
    if (*part != NULL) {
        tag_filter_deinit(*part);
        tag_filter_init(*part);
    } else {
        *part = tag_filter_create_empty();
    }
    struct tag_filter *filter = *part;
    if (filter == NULL) {
        return false;
    }
    if (tags == NULL) {
        filter->is_nobody = whole->is_nobody || (values->mask & tag_mask) != 0;
        filter->is_simple = !filter->is_nobody;
        return true;
    }
    for (unsigned tag = 0; tag < tags->count; tag++) {
        const struct filter_test *test = tag_filter_test_of(whole, tag);
        if ((tag_mask >> tag & 1) != 0) {
            const struct tag_slot *slot = tags->slots[tag];
            bool has_value = (values->mask >> tag & 1) != 0 && values->at[tag].size > 0;
            struct filter_test *own = &filter->tests[filter->count++];
            *own = (struct filter_test){.tag = tag, .slot = slot, .count = 1};
            own->values = own->own;
            own->own[0] = has_value ? tags_dictionary_find(&slot->values, values->at[tag]) : 0;
            /* A value that nobody has stands for nobody. */
            filter->is_nobody = filter->is_nobody || (has_value && own->own[0] == 0);
            filter->tag_mask |= 1U << tag;
        } else if (test != NULL) {
            filter->tests[filter->count] = *test;
            filter->tests[filter->count++].is_borrowed = true;
            filter->tag_mask |= 1U << tag;
            filter->is_nobody = filter->is_nobody || (!test->is_excluding && test->count == 0);
        }
    }
    tag_filter_complete(filter, tags);
    return true;
}

/* ---- estimates ---- */

uint32_t tag_filter_reads(const struct board *board, unsigned tag_mask, unsigned excluding_mask) {
    enum { BLOCK = INDEX_FANOUT * INDEX_FANOUT * BLOCK_ENTRIES_MAX / 2 }; /* half of level 2 */
    const struct tags *tags = board_tags(board);
    uint32_t count = board_count(board);
    unsigned lists, rest;
    tag_mask &= tags != NULL ? (1U << tags->count) - 1 : 0;
    if (count == 0 || tag_mask == 0 || tag_filter_choose(&tags->plan, tag_mask) != NULL) {
        return 0;
    }
    bool has_sums = tag_filter_has_sums(&tags->plan, tag_mask, excluding_mask, &lists, &rest);
    /* A list may be kept below a block that has too much for it. */
    const struct skiplist *list = &board->large->list;
    uint32_t id = list->root;
    while (skiplist_node(list, id)->level > 2) {
        id = index_children(index_at(list, id))[0];
    }
    const struct tag_counts *counts =
        skiplist_node(list, id)->level == 2 ? index_at(list, id)->counts : NULL;
    for (uint32_t i = 0; counts != NULL && i < tags->plan.list_count; i++) {
        has_sums = has_sums && ((lists >> i & 1) == 0 || !counts->lists[i].is_crowded);
    }
    uint32_t reads = BLOCK + count / INDEX_FANOUT;
    return has_sums && count > reads ? reads : count;
}
