/* Reading inside a group: see skiplist/tags.h.
 *
 * A rank inside a group is a sum, as a rank is: the matching codes in the sheet before the place, and on each
 * level above, what is counted below the blocks to the left. */
#include "codec/memory.h"
#include "skiplist/board_parts.h"
#include "skiplist/sheet.h"
#include "skiplist/tags.h"

enum {
    READER_RANGES = 8,
    READER_RANGES_MAX = 4096, /* more are not faster than the sheets */
    /* Entries that one call may count anew, for those that come after it: about a millisecond. */
    GROUP_WORK = 128 << 10,
};

/* ---- filters ---- */

/* The values of one tag that match. */
struct filter_test {
    unsigned tag;
    const struct tag_slot *slot;
    bool is_excluding; /* all but these values match */
    uint32_t count;
    uint32_t *values; /* codes of values, ascending; 0: none */
};

/* Numbers side by side in a combination. */
struct group_range {
    uint32_t first, count;
};

/* How tests are read from rows: those of a combination that has all of their tags. */
struct group_reader {
    const struct tag_combination *combination; /* NULL: there is none */
    uint32_t range_count;
    struct group_range *ranges; /* own, or on the heap */
    struct group_range own[READER_RANGES];
};

struct tag_filter {
    /* All tests together, where each tag has one value: a code matches if (code & mask) == equal. */
    bool is_simple;
    bool is_nobody; /* no code matches */
    uint32_t mask, equal;
    unsigned tag_mask;
    uint32_t count;
    struct filter_test tests[TAGS_MAX];
    /* The whole group in rows; or where it has none, each test by itself: 0 is enough to know. */
    struct group_reader rows, singles[TAGS_MAX];
    /* The whole group in the numbers of all tags: dense ones, or (no combination) sorted ones from first_value to
     * last_value. */
    struct group_reader all;
    uint32_t first_value, last_value;
};

static int tag_group_compare(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static bool tag_group_has_value(const uint32_t *values, uint32_t count, uint32_t value) {
    uint32_t low = 0;
    while (count > 0) {
        uint32_t half = count / 2;
        bool is_behind = values[low + half] < value;
        low = is_behind ? low + half + 1 : low;
        count = is_behind ? count - half - 1 : half;
    }
    return values[low] == value;
}

static bool tag_group_passes_value(const struct filter_test *test, uint32_t value) {
    bool is_in = test->count > 0 && value <= test->values[test->count - 1] &&
                 tag_group_has_value(test->values, test->count, value);
    return is_in != test->is_excluding;
}

static bool tag_group_passes(const struct filter_test *test, uint32_t code) {
    return tag_group_passes_value(test, tag_slot_extract(test->slot, code));
}

static bool tag_group_matches(const struct tag_filter *filter, uint32_t code) {
    if (filter->is_simple) {
        return (code & filter->mask) == filter->equal;
    }
    if (filter->is_nobody) {
        return false;
    }
    for (uint32_t i = 0; i < filter->count; i++) {
        if (!tag_group_passes(&filter->tests[i], code)) {
            return false;
        }
    }
    return true;
}

static const struct tags *tag_group_tags(const struct board *board) {
    return board->is_large ? board->large->list.tags : NULL;
}

/* Collect the codes of the values chosen (or excluded) of one tag. false: a value chosen is nowhere. */
static uint32_t tag_group_collect(const struct tag_slot *slot, const struct tag_choice *choices,
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
    qsort(values, found, sizeof *values, tag_group_compare);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < found; i++) {
        if (kept == 0 || values[kept - 1] != values[i]) {
            values[kept++] = values[i];
        }
    }
    return kept;
}

static uint32_t tag_group_subtract(uint32_t *values, uint32_t count, const uint32_t *others,
                                   uint32_t other_count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_out = other_count > 0 && values[i] <= others[other_count - 1] &&
                      tag_group_has_value(others, other_count, values[i]);
        if (!is_out) {
            values[kept++] = values[i];
        }
    }
    return kept;
}

/* The test for one tag; false: no memory. */
static bool tag_group_add_test(struct tag_filter *filter, const struct tag_slot *slot, unsigned tag,
                               const struct tag_choice *choices, uint32_t count) {
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
    test->values = memory_allocate((wanted + unwanted) * sizeof *test->values);
    if (test->values == NULL) {
        return false;
    }
    filter->count++;
    filter->tag_mask |= 1U << tag;
    uint32_t *others = test->values + wanted;
    wanted = tag_group_collect(slot, choices, count, tag, false, test->values);
    unwanted = tag_group_collect(slot, choices, count, tag, true, others);
    if (test->is_excluding) {
        test->count = unwanted;
        return true;
    }
    test->count = tag_group_subtract(test->values, wanted, others, unwanted);
    filter->is_nobody = filter->is_nobody || test->count == 0;
    return true;
}

static void tag_group_simplify(struct tag_filter *filter) {
    filter->is_simple = !filter->is_nobody;
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct filter_test *test = &filter->tests[i];
        filter->is_simple = filter->is_simple && !test->is_excluding && test->count == 1;
        if (filter->is_simple) {
            filter->mask |= test->slot->mask;
            filter->equal |= tag_slot_deposit(test->slot, test->values[0]);
        }
    }
}

/* ---- reading counts ---- */

static const struct filter_test *tag_group_test_of(const struct tag_filter *filter, unsigned tag) {
    for (uint32_t i = 0; i < filter->count; i++) {
        if (filter->tests[i].tag == tag) {
            return &filter->tests[i];
        }
    }
    return NULL;
}

static bool tag_group_add_range(struct group_reader *reader, uint32_t first, uint32_t count) {
    if (reader->range_count > 0) {
        struct group_range *last = &reader->ranges[reader->range_count - 1];
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
    reader->ranges[reader->range_count++] = (struct group_range){first, count};
    return true;
}

/* Add the numbers that match, from the tag at this position of the combination on: prefix has the values
 * before it, tag_mask what is still asked for. false: too many ranges, or no memory. */
static bool tag_group_find_ranges(const struct tag_filter *filter, unsigned tag_mask,
                                  struct group_reader *reader, uint32_t position, uint32_t prefix) {
    const struct tag_combination *combination = reader->combination;
    uint32_t behind =
        position > 0 ? combination->shifts[combination->tags[position - 1]] : combination->bits;
    if (tag_mask == 0) {
        return tag_group_add_range(reader, prefix << behind, UINT32_C(1) << behind);
    }
    unsigned tag = combination->tags[position];
    const struct filter_test *test =
        (tag_mask >> tag & 1) != 0 ? tag_group_test_of(filter, tag) : NULL;
    uint32_t bits = behind - combination->shifts[tag];
    bool is_done = true;
    tag_mask &= ~(1U << tag);
    if (test != NULL && !test->is_excluding) {
        for (uint32_t i = 0; i < test->count && is_done; i++) {
            is_done = tag_group_find_ranges(filter, tag_mask, reader, position + 1,
                                            prefix << bits | test->values[i]);
        }
        return is_done;
    }
    for (uint32_t value = 0; value >> bits == 0 && is_done; value++) {
        if (test == NULL || tag_group_passes_value(test, value)) {
            is_done = tag_group_find_ranges(filter, tag_mask, reader, position + 1,
                                            prefix << bits | value);
        }
    }
    return is_done;
}

static void tag_group_deinit_reader(struct group_reader *reader) {
    if (reader->ranges != reader->own) {
        memory_free(reader->ranges);
    }
    reader->ranges = reader->own;
    reader->combination = NULL;
}

/* The sorted numbers between which the group is, if their first tag is asked for. */
static void tag_group_bound_values(struct tag_filter *filter, const struct tag_combination *all) {
    unsigned tag = all->tags[0];
    const struct filter_test *test = tag_group_test_of(filter, tag);
    filter->last_value = UINT32_MAX;
    if (test != NULL && !test->is_excluding) {
        uint32_t shift = all->shifts[tag];
        filter->first_value = test->values[0] << shift;
        filter->last_value =
            (test->values[test->count - 1] << shift) + (uint32_t)((UINT64_C(1) << shift) - 1);
    }
}

static void tag_group_init_reader(const struct tag_filter *filter, unsigned tag_mask,
                                  const struct tag_combination *combination,
                                  struct group_reader *reader) {
    reader->combination = combination;
    if (combination != NULL && !tag_group_find_ranges(filter, tag_mask, reader, 0, 0)) {
        tag_group_deinit_reader(reader);
    }
}

/* The smallest combination with rows that has these tags; NULL: none. */
static const struct tag_combination *tag_group_choose(const struct tag_counts_plan *plan,
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

static void tag_group_init_readers(struct tag_filter *filter, const struct tags *tags) {
    const struct tag_counts_plan *plan = &tags->plan;
    unsigned mask = filter->tag_mask;
    tag_group_init_reader(filter, mask, tag_group_choose(plan, mask), &filter->rows);
    if (filter->rows.combination != NULL) {
        return;
    }
    for (uint32_t i = 0; i < filter->count; i++) {
        unsigned single = 1U << filter->tests[i].tag;
        tag_group_init_reader(filter, single, tag_group_choose(plan, single), &filter->singles[i]);
    }
    if (plan->is_sparse) {
        tag_group_bound_values(filter, &plan->all);
    } else {
        tag_group_init_reader(filter, mask, &plan->all, &filter->all);
    }
}

static bool tag_group_passes_values(const struct tag_filter *filter,
                                    const struct tag_combination *combination, uint32_t values) {
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct filter_test *test = &filter->tests[i];
        uint32_t mask = UINT32_MAX >> (TAGS_BITS_MAX - test->slot->bits);
        if (!tag_group_passes_value(test, values >> combination->shifts[test->tag] & mask)) {
            return false;
        }
    }
    return true;
}

/* The group below an index block with these counts. false: more is to be read than the sheets are. */
static bool tag_group_sum_all(const struct tag_filter *filter, const struct tag_counts_plan *plan,
                              const struct tag_counts *counts, uint32_t *sum) {
    *sum = 0;
    if (plan->is_sparse) {
        for (uint32_t at = tag_counts_find(counts, filter->first_value);
             at < counts->sparse_count && counts->sparse[at].values <= filter->last_value; at++) {
            if (tag_group_passes_values(filter, &plan->all, counts->sparse[at].values)) {
                *sum += counts->sparse[at].count;
            }
        }
        return true;
    }
    for (uint32_t r = 0; r < filter->all.range_count; r++) {
        const struct group_range *range = &filter->all.ranges[r];
        for (uint32_t i = 0; i < range->count; i++) {
            *sum += counts->dense[range->first + i];
        }
    }
    return filter->all.combination != NULL;
}

static uint32_t tag_group_sum_child(const struct group_reader *reader,
                                    const struct tag_counts_plan *plan, struct tag_counts *counts,
                                    uint32_t child) {
    uint32_t sum = 0;
    for (uint32_t r = 0; r < reader->range_count; r++) {
        uint32_t row = reader->combination->first_row + reader->ranges[r].first;
        for (uint32_t i = 0; i < reader->ranges[r].count; i++) {
            sum += tag_counts_at(plan, counts, row + i, child);
        }
    }
    return sum;
}

/* The same of the first `count` children together. */
static uint32_t tag_group_sum_children(const struct group_reader *reader,
                                       const struct tag_counts_plan *plan,
                                       struct tag_counts *counts, uint32_t count) {
    uint32_t sum = 0;
    for (uint32_t r = 0; r < reader->range_count; r++) {
        uint32_t row = reader->combination->first_row + reader->ranges[r].first;
        for (uint32_t i = 0; i < reader->ranges[r].count; i++) {
            const void *at = tag_counts_row(plan, counts, row + i);
            for (uint32_t c = 0; c < count; c++) {
                sum += counts->is_narrow ? ((const uint16_t *)at)[c] : ((const uint32_t *)at)[c];
            }
        }
    }
    return sum;
}

/* ---- the life of a filter ---- */

/* On a board without values only the empty value matches. */
static void tag_group_init_valueless(struct tag_filter *filter, const struct tag_choice *choices,
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
    const struct tags *tags = tag_group_tags(board);
    struct tag_filter *filter = memory_allocate_zeroed(sizeof *filter);
    if (filter == NULL) {
        return NULL;
    }
    filter->rows.ranges = filter->rows.own;
    filter->all.ranges = filter->all.own;
    for (unsigned i = 0; i < TAGS_MAX; i++) {
        filter->singles[i].ranges = filter->singles[i].own;
    }
    if (tags == NULL) {
        tag_group_init_valueless(filter, choices, count);
        return filter;
    }
    for (unsigned tag = 0; tag < tags->count; tag++) {
        if (!tag_group_add_test(filter, tags->slots[tag], tag, choices, count)) {
            tag_filter_destroy(filter);
            return NULL;
        }
    }
    tag_group_simplify(filter);
    if (!filter->is_nobody) {
        tag_group_init_readers(filter, tags);
    }
    return filter;
}

void tag_filter_destroy(struct tag_filter *filter) {
    if (filter == NULL) {
        return;
    }
    for (uint32_t i = 0; i < filter->count; i++) {
        memory_free(filter->tests[i].values);
        tag_group_deinit_reader(&filter->singles[i]);
    }
    tag_group_deinit_reader(&filter->rows);
    tag_group_deinit_reader(&filter->all);
    memory_free(filter);
}

/* ---- in one sheet ---- */

typedef uint8_t codes8 __attribute__((vector_size(16)));
typedef uint16_t codes16 __attribute__((vector_size(16)));
typedef uint32_t codes32 __attribute__((vector_size(16)));

/* Codes among `count` that match a simple filter; 16 bytes at a time. */
#define COUNT_SIMPLE(name, type, vector, lanes, rounds)                                            \
    static uint32_t name(const type *codes, uint32_t count, uint32_t mask, uint32_t equal) {       \
        vector masks = (vector){0} + (type)mask, equals = (vector){0} + (type)equal;               \
        uint32_t sum = 0, i = 0;                                                                   \
        while (i + (lanes) <= count) {                                                             \
            vector matches = {0};                                                                  \
            for (uint32_t r = 0; r < (rounds) && i + (lanes) <= count; r++, i += (lanes)) {        \
                vector at;                                                                         \
                memcpy(&at, codes + i, sizeof at);                                                 \
                matches -= (vector)((at & masks) == equals);                                       \
            }                                                                                      \
            for (uint32_t lane = 0; lane < (lanes); lane++) {                                      \
                sum += matches[lane];                                                              \
            }                                                                                      \
        }                                                                                          \
        for (; i < count; i++) {                                                                   \
            sum += (codes[i] & mask) == equal;                                                     \
        }                                                                                          \
        return sum;                                                                                \
    }
COUNT_SIMPLE(tag_group_count8, uint8_t, codes8, 16, 255)
COUNT_SIMPLE(tag_group_count16, uint16_t, codes16, 8, 4096)
COUNT_SIMPLE(tag_group_count32, uint32_t, codes32, 4, 4096)

/* Matching entries among `count` from `from` on. */
static uint32_t tag_group_count_in(const struct sheet *sheet, const struct tag_filter *filter,
                                   uint32_t from, uint32_t count) {
    if (filter->is_nobody) {
        return 0;
    }
    if (sheet == NULL) {
        return tag_group_matches(filter, 0) ? count : 0;
    }
    const char *codes = (const char *)sheet_codes(sheet) + (size_t)from * sheet->width;
    if (filter->is_simple) {
        /* No code of this sheet has the bits beyond its width. */
        uint32_t width_mask = sheet->width == 4 ? UINT32_MAX : (1U << 8 * sheet->width) - 1;
        if ((filter->equal & ~width_mask) != 0) {
            return 0;
        }
        return sheet->width == 1
                   ? tag_group_count8((const void *)codes, count, filter->mask, filter->equal)
               : sheet->width == 2
                   ? tag_group_count16((const void *)codes, count, filter->mask, filter->equal)
                   : tag_group_count32((const void *)codes, count, filter->mask, filter->equal);
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += tag_group_matches(filter, sheet_get(sheet, from + i));
    }
    return sum;
}

enum { FIND_PIECE = 64 };

/* The nth matching entry of a sheet, which has so many, from `from` on. */
static uint32_t tag_group_find_in(const struct sheet *sheet, const struct tag_filter *filter,
                                  uint32_t from, uint32_t count, uint32_t nth) {
    uint32_t at = from, end = from + count;
    if (sheet == NULL) {
        return from + nth;
    }
    while (at + FIND_PIECE < end) {
        uint32_t here = tag_group_count_in(sheet, filter, at, FIND_PIECE);
        if (nth < here) {
            break;
        }
        nth -= here;
        at += FIND_PIECE;
    }
    for (;; at++) {
        CHECK(at < end);
        if (tag_group_matches(filter, sheet_get(sheet, at)) && nth-- == 0) {
            return at;
        }
    }
}

/* ---- in the list ---- */

static uint32_t tag_group_count_first(const struct skiplist *list, uint32_t id, uint32_t count,
                                      const struct tag_filter *filter, uint32_t *work_left);

/* Do the rows tell how many of a child match? Of a group that has none, only that it is nobody. */
static bool tag_group_rows_tell(const struct skiplist *list, const struct tag_filter *filter,
                                struct tag_counts *counts, uint32_t child, uint32_t *sum) {
    const struct tag_counts_plan *plan = &list->tags->plan;
    if (filter->rows.combination != NULL) {
        *sum = tag_group_sum_child(&filter->rows, plan, counts, child);
        return true;
    }
    *sum = 0;
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct group_reader *reader = &filter->singles[i];
        if (reader->combination != NULL && tag_group_sum_child(reader, plan, counts, child) == 0) {
            return true;
        }
    }
    return false;
}

/* Matching entries below a child of an index block above level 1. */
static uint32_t tag_group_count_child(const struct skiplist *list, uint32_t id, uint32_t child,
                                      const struct tag_filter *filter, uint32_t *work_left) {
    struct index_block *index = nodes_index(list, id);
    uint32_t child_id = index_children(index)[child], sum;
    struct tag_counts *counts = sheet_counts(list, id, work_left);
    if (counts != NULL && sheet_knows_child(list, id, counts, child, work_left) &&
        tag_group_rows_tell(list, filter, counts, child, &sum)) {
        return sum;
    }
    struct index_block *below = nodes_index(list, child_id);
    if (below->is_lowest) {
        return tag_group_count_in(sheet_of(list, below), filter, 0, index_span(index, child));
    }
    const struct tag_counts *own =
        filter->rows.combination == NULL ? sheet_counts(list, child_id, work_left) : NULL;
    if (own != NULL && tag_group_sum_all(filter, &list->tags->plan, own, &sum)) {
        return sum;
    }
    return tag_group_count_first(list, child_id, below->count, filter, work_left);
}

/* The same of its first `count` children. */
static uint32_t tag_group_count_first(const struct skiplist *list, uint32_t id, uint32_t count,
                                      const struct tag_filter *filter, uint32_t *work_left) {
    uint32_t sum = 0, known = 0;
    if (filter->rows.combination != NULL && count > 0) {
        struct tag_counts *counts = sheet_counts(list, id, work_left);
        while (counts != NULL && known < count &&
               sheet_knows_child(list, id, counts, known, work_left)) {
            known++;
        }
        sum =
            known > 0 ? tag_group_sum_children(&filter->rows, &list->tags->plan, counts, known) : 0;
    }
    for (uint32_t i = known; i < count; i++) {
        sum += tag_group_count_child(list, id, i, filter, work_left);
    }
    return sum;
}

/* All of a list. */
static uint32_t tag_group_count_all(const struct skiplist *list, const struct tag_filter *filter,
                                    uint32_t *work_left) {
    const struct skiplist_node *root = skiplist_node(list, list->root);
    if (root->level == 0) {
        return tag_group_count_in(sheet_of_leaf(list), filter, 0, list->count);
    }
    struct index_block *index = root->block;
    if (root->level == 1) {
        return tag_group_count_in(sheet_of(list, index), filter, 0, list->count);
    }
    const struct tag_counts *counts = sheet_counts(list, list->root, work_left);
    uint32_t sum;
    if (filter->rows.combination == NULL && counts != NULL &&
        tag_group_sum_all(filter, &list->tags->plan, counts, &sum)) {
        return sum;
    }
    return tag_group_count_first(list, list->root, index->count, filter, work_left);
}

/* The sheet above a leaf, the place of the leaf's first entry in it, and how many entries it is for. */
static const struct sheet *tag_group_sheet(const struct skiplist *list, uint32_t leaf,
                                           uint32_t *first, uint32_t *count) {
    const struct skiplist_node *node = skiplist_node(list, leaf);
    if (node->parent == SKIPLIST_NONE) {
        *first = 0;
        *count = nodes_leaf(list, leaf)->count;
        return sheet_of_leaf(list);
    }
    struct index_block *index = nodes_index(list, node->parent);
    *first = index_narrow_sum(index, node->position);
    *count = index_narrow_sum(index, index->count);
    return sheet_of(list, index);
}

uint32_t board_group_count(const struct board *board, const struct tag_filter *filter,
                           uint32_t ranks) {
    const struct tags *tags = tag_group_tags(board);
    CHECK(ranks <= board_count(board));
    if (filter->is_nobody || ranks == 0) {
        return 0;
    }
    if (tags == NULL) {
        return ranks;
    }
    const struct skiplist *list = &board->large->list;
    uint32_t work_left = GROUP_WORK;
    if (ranks == list->count) {
        return tag_group_count_all(list, filter, &work_left);
    }
    struct skiplist_place last = skiplist_at(list, ranks - 1);
    uint32_t first, count;
    const struct sheet *sheet = tag_group_sheet(list, last.leaf, &first, &count);
    uint32_t sum = tag_group_count_in(sheet, filter, 0, first + last.index + 1);
    const struct skiplist_node *node = skiplist_node(list, last.leaf);
    if (node->parent == SKIPLIST_NONE) {
        return sum;
    }
    for (node = skiplist_node(list, node->parent); node->parent != SKIPLIST_NONE;
         node = skiplist_node(list, node->parent)) {
        sum += tag_group_count_first(list, node->parent, node->position, filter, &work_left);
    }
    return sum;
}

bool board_group_find(const struct board *board, const struct tag_filter *filter, uint32_t nth,
                      uint32_t *rank) {
    const struct tags *tags = tag_group_tags(board);
    if (filter->is_nobody || nth >= board_count(board)) {
        return false;
    }
    *rank = nth;
    if (tags == NULL) {
        return true;
    }
    const struct skiplist *list = &board->large->list;
    uint32_t id = list->root, first = 0, span = list->count, work_left = GROUP_WORK;
    uint32_t level = skiplist_node(list, id)->level;
    if (nth >= tag_group_count_all(list, filter, &work_left)) {
        return false;
    }
    for (; level > 1; level--) {
        struct index_block *index = nodes_index(list, id);
        uint32_t i = 0, here;
        for (; span = index_span(index, i),
               nth >= (here = tag_group_count_child(list, id, i, filter, &work_left));
             i++) {
            nth -= here;
            first += span;
        }
        id = index_children(index)[i];
    }
    const struct sheet *sheet =
        level == 0 ? sheet_of_leaf(list) : sheet_of(list, nodes_index(list, id));
    *rank = first + tag_group_find_in(sheet, filter, 0, span, nth);
    return true;
}

bool board_group_has(const struct board *board, const struct tag_filter *filter, uint32_t rank) {
    const struct tags *tags = tag_group_tags(board);
    if (tags == NULL || filter->is_nobody) {
        return !filter->is_nobody;
    }
    const struct skiplist *list = &board->large->list;
    return tag_group_matches(filter, sheet_code(list, skiplist_at(list, rank)));
}

bool board_group_next(const struct board *board, const struct tag_filter *filter, uint32_t from,
                      uint32_t *rank) {
    if (from >= board_count(board) || filter->is_nobody) {
        return false;
    }
    if (tag_group_tags(board) == NULL) {
        *rank = from;
        return true;
    }
    const struct skiplist *list = &board->large->list;
    struct skiplist_place place = skiplist_at(list, from);
    uint32_t first, count;
    const struct sheet *sheet = tag_group_sheet(list, place.leaf, &first, &count);
    for (uint32_t at = first + place.index; at < count; at++) {
        if (tag_group_matches(filter, sheet != NULL ? sheet_get(sheet, at) : 0)) {
            *rank = from + (at - first - place.index);
            return true;
        }
    }
    uint32_t behind = from + (count - first - place.index);
    return behind < list->count &&
           board_group_find(board, filter, board_group_count(board, filter, behind), rank);
}

bool board_group_previous(const struct board *board, const struct tag_filter *filter, uint32_t from,
                          uint32_t *rank) {
    if (board_count(board) == 0) {
        return false;
    }
    if (from >= board_count(board)) {
        from = board_count(board) - 1;
    }
    uint32_t before = board_group_count(board, filter, from + 1);
    return before > 0 && board_group_find(board, filter, before - 1, rank);
}

/* ---- tallies ---- */

struct tally_entry {
    uint32_t code; /* of the tags counted by */
    uint32_t count;
};

/* An open hash table of codes. */
struct tally {
    struct tally_entry *entries;
    uint32_t capacity, count; /* capacity: a power of two */
};

static struct tally_entry *tag_group_tally_at(const struct tally *tally, uint32_t code) {
    uint32_t at = code * UINT32_C(2654435761) & (tally->capacity - 1);
    while (tally->entries[at].count != 0 && tally->entries[at].code != code) {
        at = (at + 1) & (tally->capacity - 1);
    }
    return &tally->entries[at];
}

static bool tag_group_tally_grow(struct tally *tally) {
    struct tally larger = {.capacity = tally->capacity > 0 ? 2 * tally->capacity : 64};
    larger.entries = memory_allocate_zeroed(larger.capacity * sizeof *larger.entries);
    if (larger.entries == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < tally->capacity; i++) {
        if (tally->entries[i].count != 0) {
            *tag_group_tally_at(&larger, tally->entries[i].code) = tally->entries[i];
        }
    }
    larger.count = tally->count;
    memory_free(tally->entries);
    *tally = larger;
    return true;
}

static bool tag_group_tally_add(struct tally *tally, uint32_t code, uint32_t count) {
    if (count > 0 && tally->count >= tally->capacity / 2 && !tag_group_tally_grow(tally)) {
        return false;
    }
    if (count > 0) {
        struct tally_entry *entry = tag_group_tally_at(tally, code);
        tally->count += entry->count == 0;
        entry->code = code;
        entry->count += count;
    }
    return true;
}

/* What a tally is made from. */
struct tally_task {
    const struct skiplist *list;
    const struct tag_filter *filter;    /* NULL: all */
    const struct tag_combination *rows; /* that have all tags in question; NULL: none */
    unsigned by_mask;
    uint32_t code_mask; /* of the tags counted by */
    uint32_t work_left;
    struct tally tally;
};

static bool tag_group_tally_values(struct tally_task *task,
                                   const struct tag_combination *combination, uint32_t values,
                                   uint32_t count) {
    const struct tags *tags = task->list->tags;
    uint32_t code = 0;
    if (count == 0 ||
        (task->filter != NULL && !tag_group_passes_values(task->filter, combination, values))) {
        return true;
    }
    for (unsigned i = 0; i < tags->count; i++) {
        if ((task->by_mask >> i & 1) != 0) {
            uint32_t mask = UINT32_MAX >> (TAGS_BITS_MAX - tags->slots[i]->bits);
            code |= tag_slot_deposit(tags->slots[i], values >> combination->shifts[i] & mask);
        }
    }
    return tag_group_tally_add(&task->tally, code, count);
}

/* Entries of a sheet, or of a block without one. */
static bool tag_group_tally_sheet(struct tally_task *task, const struct sheet *sheet, uint32_t from,
                                  uint32_t to) {
    const struct tag_filter *filter = task->filter;
    if (sheet == NULL) {
        bool has_all = filter == NULL || tag_group_matches(filter, 0);
        return tag_group_tally_add(&task->tally, 0, has_all ? to - from : 0);
    }
    for (uint32_t i = from; i < to; i++) {
        uint32_t code = sheet_get(sheet, i);
        if ((filter == NULL || tag_group_matches(filter, code)) &&
            !tag_group_tally_add(&task->tally, code & task->code_mask, 1)) {
            return false;
        }
    }
    return true;
}

static bool tag_group_tally_block(struct tally_task *task, uint32_t id, uint32_t from, uint32_t to);

/* Children from .. to - 1 from the rows of their parent. *is_done: the rows have what is asked for. false: no memory. */
static bool tag_group_tally_rows(struct tally_task *task, uint32_t id, uint32_t from, uint32_t to,
                                 bool *is_done) {
    const struct skiplist *list = task->list;
    const struct tag_counts_plan *plan = &list->tags->plan;
    struct tag_counts *counts =
        task->rows != NULL ? sheet_counts(list, id, &task->work_left) : NULL;
    *is_done = counts != NULL;
    for (uint32_t i = from; i < to && *is_done; i++) {
        *is_done = sheet_knows_child(list, id, counts, i, &task->work_left);
    }
    for (uint32_t value = 0; *is_done && value >> task->rows->bits == 0; value++) {
        uint32_t sum = 0;
        for (uint32_t i = from; i < to; i++) {
            sum += tag_counts_at(plan, counts, task->rows->first_row + value, i);
        }
        if (!tag_group_tally_values(task, task->rows, value, sum)) {
            return false;
        }
    }
    return true;
}

/* All of a block above level 1 from the numbers of all tags. The same. */
static bool tag_group_tally_all(struct tally_task *task, uint32_t id, bool *is_done) {
    const struct tag_counts_plan *plan = &task->list->tags->plan;
    const struct tag_counts *counts = sheet_counts(task->list, id, &task->work_left);
    *is_done = counts != NULL;
    if (counts == NULL) {
        return true;
    }
    for (uint32_t i = 0; i < counts->sparse_count; i++) {
        if (!tag_group_tally_values(task, &plan->all, counts->sparse[i].values,
                                    counts->sparse[i].count)) {
            return false;
        }
    }
    for (uint32_t value = 0; !plan->is_sparse && value >> plan->all.bits == 0; value++) {
        if (!tag_group_tally_values(task, &plan->all, value, counts->dense[value])) {
            return false;
        }
    }
    return true;
}

/* Whole children of a block above level 1. */
static bool tag_group_tally_children(struct tally_task *task, uint32_t id, uint32_t from,
                                     uint32_t to) {
    struct index_block *index = nodes_index(task->list, id);
    bool is_done = false;
    if (from < to && !tag_group_tally_rows(task, id, from, to, &is_done)) {
        return false;
    }
    for (uint32_t i = from; i < to && !is_done; i++) {
        uint32_t child = index_children(index)[i];
        bool has_all = false;
        if (skiplist_node(task->list, child)->level > 1 &&
            !tag_group_tally_all(task, child, &has_all)) {
            return false;
        }
        if (!has_all && !tag_group_tally_block(task, child, 0, index_span(index, i))) {
            return false;
        }
    }
    return true;
}

/* Entries from .. to - 1 of those below an index block. */
static bool tag_group_tally_block(struct tally_task *task, uint32_t id, uint32_t from,
                                  uint32_t to) {
    struct index_block *index = nodes_index(task->list, id);
    if (index->is_lowest) {
        return tag_group_tally_sheet(task, sheet_of(task->list, index), from, to);
    }
    uint32_t first = 0, whole_from = 0, whole_to = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        uint32_t span = index_span(index, i), end = first + span;
        if (from <= first && end <= to) {
            whole_from = whole_from == whole_to ? i : whole_from;
            whole_to = i + 1;
        } else if (from < end && first < to) {
            uint32_t begin = from > first ? from - first : 0;
            if (!tag_group_tally_block(task, index_children(index)[i], begin,
                                       to < end ? to - first : span)) {
                return false;
            }
        }
        first = end;
    }
    return tag_group_tally_children(task, id, whole_from, whole_to);
}

static bool tag_group_tally_run(struct tally_task *task, uint32_t from, uint32_t to) {
    const struct skiplist *list = task->list;
    if (skiplist_node(list, list->root)->level == 0) {
        return tag_group_tally_sheet(task, sheet_of_leaf(list), from, to);
    }
    return tag_group_tally_block(task, list->root, from, to);
}

bool board_tally(const struct board *board, const struct tag_filter *filter, uint32_t from,
                 uint32_t to, unsigned by_mask, tags_visit *visit, void *context) {
    const struct tags *tags = tag_group_tags(board);
    struct tag_values values = {.mask = 0};
    struct tally_task task = {.filter = filter, .by_mask = by_mask, .work_left = GROUP_WORK};
    CHECK(from <= to);
    CHECK(to <= board_count(board));
    if (from == to || (filter != NULL && filter->is_nobody)) {
        return true;
    }
    if (tags == NULL) {
        visit(context, &values, to - from);
        return true;
    }
    task.list = &board->large->list;
    task.rows = tag_group_choose(&tags->plan, by_mask | (filter != NULL ? filter->tag_mask : 0));
    for (unsigned i = 0; i < tags->count; i++) {
        task.code_mask |= (by_mask >> i & 1) != 0 ? tags->slots[i]->mask : 0;
    }
    bool is_done = tag_group_tally_run(&task, from, to);
    for (uint32_t i = 0; is_done && i < task.tally.capacity; i++) {
        const struct tally_entry *entry = &task.tally.entries[i];
        if (entry->count > 0) {
            tags_read(tags, entry->code, by_mask, &values);
            visit(context, &values, entry->count);
        }
    }
    memory_free(task.tally.entries);
    return is_done;
}
