/* See the header. */
#include "skiplist/tag_counts.h"

#include "codec/memory.h"
#include "skiplist/sheet.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* ---- the plan ---- */

/* A combination of these tags, most significant first. */
static struct tag_combination tag_counts_combine(const struct tag_slot *const *slots,
                                                 const uint8_t *tags, uint32_t count) {
    struct tag_combination combination = {.count = (uint8_t)count};
    for (uint32_t i = count; i-- > 0;) {
        combination.tags[i] = tags[i];
        combination.tag_mask |= 1U << tags[i];
        combination.shifts[tags[i]] = combination.bits;
        combination.bits = (uint8_t)(combination.bits + slots[tags[i]]->bits);
    }
    return combination;
}

/* Give it rows, if it is not too large. */
static void tag_counts_choose(struct tag_counts_plan *plan, struct tag_combination combination) {
    if (combination.bits > TAG_ROW_BITS) {
        return;
    }
    for (uint32_t i = 0; i < plan->combination_count; i++) {
        if (plan->combinations[i].tag_mask == combination.tag_mask) {
            return;
        }
    }
    combination.first_row = plan->row_count;
    plan->row_count += UINT32_C(1) << combination.bits;
    plan->combinations[plan->combination_count++] = combination;
}

void tag_counts_plan(struct tag_counts_plan *plan, const struct tag_slot *const *slots,
                     uint32_t count) {
    uint8_t tags[TAGS_MAX];
    *plan = (struct tag_counts_plan){.number = plan->number + 1};
    /* In the order of their bits, the most first. */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && slots[tags[at - 1]]->bits < slots[i]->bits; at--) {
            tags[at] = tags[at - 1];
        }
        tags[at] = (uint8_t)i;
    }
    for (uint32_t i = 0; i < count; i++) {
        tag_counts_choose(plan, tag_counts_combine(slots, &tags[i], 1));
    }
    for (uint32_t i = count; i-- > 0;) {
        tag_counts_choose(plan, tag_counts_combine(slots, &tags[i], count - i));
    }
    plan->dense = tag_counts_combine(slots, tags, count);
    for (uint32_t i = 0; plan->dense.bits > TAG_DENSE_BITS;) {
        /* A tag with rows of its own would have few values to be found by. */
        if (i == 0 || (i < TAG_LISTS_MAX && slots[tags[i]]->bits > TAG_ROW_BITS)) {
            plan->lists[plan->list_count++] = plan->dense;
        }
        i++;
        plan->dense = tag_counts_combine(slots, &tags[i], count - i);
    }
}

uint32_t tag_counts_values(const struct tags *tags, const struct tag_combination *combination,
                           uint32_t code) {
    uint32_t values = 0;
    for (uint32_t i = 0; i < combination->count; i++) {
        uint32_t tag = combination->tags[i];
        values |= sheet_slot_extract(tags->slots[tag], code) << combination->shifts[tag];
    }
    return values;
}

/* values: of each tag. */
static uint32_t tag_counts_join(const struct tag_combination *combination, const uint32_t *values) {
    uint32_t joined = 0;
    for (uint32_t i = 0; i < combination->count; i++) {
        joined |= values[combination->tags[i]] << combination->shifts[combination->tags[i]];
    }
    return joined;
}

static const struct tag_places *tag_counts_places(struct tags *tags, uint32_t code) {
    uint32_t values[TAGS_MAX];
    const struct tag_counts_plan *plan = &tags->plan;
    struct tag_places *places = &tags->places;
    if (places->number == plan->number && places->code == code) {
        return places;
    }
    places->number = plan->number;
    places->code = code;
    for (uint32_t i = 0; i < tags->count; i++) {
        values[i] = sheet_slot_extract(tags->slots[i], code);
    }
    places->dense = tag_counts_join(&plan->dense, values);
    for (uint32_t i = 0; i < plan->list_count; i++) {
        places->lists[i] = tag_counts_join(&plan->lists[i], values);
    }
    for (uint32_t i = 0; i < plan->combination_count; i++) {
        const struct tag_combination *combination = &plan->combinations[i];
        places->rows[i] = combination->first_row + tag_counts_join(combination, values);
    }
    return places;
}

/* ---- counts ---- */

static size_t tag_counts_dense_size(const struct tag_counts_plan *plan) {
    return sizeof(uint32_t) << plan->dense.bits;
}

static size_t tag_counts_size(const struct tag_counts_plan *plan, bool is_narrow) {
    size_t width = is_narrow ? sizeof(uint16_t) : sizeof(uint32_t);
    return sizeof(struct tag_counts) + tag_counts_dense_size(plan) +
           plan->row_count * INDEX_FANOUT * width;
}

struct tag_counts *tag_counts_create(const struct tag_counts_plan *plan, bool is_narrow) {
    struct tag_counts *counts = memory_allocate_zeroed(tag_counts_size(plan, is_narrow));
    if (counts != NULL) {
        counts->number = plan->number;
        counts->is_narrow = is_narrow;
        counts->unknown = UINT64_MAX;
    }
    return counts;
}

/* Keep nothing in it from now on. */
static void tag_counts_crowd(struct tag_list *list) {
    memory_free(list->sorted);
    memory_free(list->latest);
    *list = (struct tag_list){.is_crowded = true};
}

/* *to has the same numbers at other places; where there is no memory for them, it has none. */
static bool tag_counts_copy_list(const struct tag_list *from, struct tag_list *to) {
    *to = *from;
    to->sorted = from->sorted != NULL
                     ? memory_allocate((from->sorted_count + 1) * sizeof *to->sorted)
                     : NULL;
    to->latest =
        from->latest != NULL ? memory_allocate((TAG_LATEST_MAX + 1) * sizeof *to->latest) : NULL;
    if ((to->sorted == NULL) != (from->sorted == NULL) ||
        (to->latest == NULL) != (from->latest == NULL)) {
        tag_counts_crowd(to);
        return false;
    }
    if (to->sorted != NULL) {
        memcpy(to->sorted, from->sorted, from->sorted_count * sizeof *to->sorted);
    }
    if (to->latest != NULL) {
        memcpy(to->latest, from->latest, from->latest_count * sizeof *to->latest);
    }
    to->memory_size = (to->sorted != NULL ? memory_size(to->sorted) : 0) +
                      (to->latest != NULL ? memory_size(to->latest) : 0);
    return true;
}

struct tag_counts *tag_counts_copy(const struct tag_counts_plan *plan,
                                   const struct tag_counts *counts) {
    size_t size = tag_counts_size(plan, counts->is_narrow);
    struct tag_counts *copy = memory_allocate(size);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, counts, size);
    bool is_done = true;
    for (uint32_t i = 0; i < TAG_LISTS_MAX; i++) {
        is_done = tag_counts_copy_list(&counts->lists[i], &copy->lists[i]) && is_done;
    }
    if (!is_done) {
        tag_counts_destroy(copy);
        return NULL;
    }
    return copy;
}

void tag_counts_destroy(struct tag_counts *counts) {
    if (counts != NULL) {
        for (uint32_t i = 0; i < TAG_LISTS_MAX; i++) {
            memory_free(counts->lists[i].sorted);
            memory_free(counts->lists[i].latest);
        }
        memory_free(counts);
    }
}

size_t tag_counts_lists_size(const struct tag_counts *counts) {
    size_t size = 0;
    for (uint32_t i = 0; i < TAG_LISTS_MAX; i++) {
        size += counts->lists[i].memory_size;
    }
    return size;
}

size_t tag_counts_memory_size(const struct tag_counts *counts) {
    return memory_size(counts) + tag_counts_lists_size(counts);
}

/* ---- numbers of the whole block ---- */

uint32_t tag_counts_find(const struct tag_count *sorted, uint32_t count, uint32_t values) {
    uint32_t low = 0;
    while (count > 0) {
        uint32_t half = count / 2;
        bool is_behind = sorted[low + half].values < values;
        low = is_behind ? low + half + 1 : low;
        count = is_behind ? count - half - 1 : half;
    }
    return low;
}

/* Merge these with the sorted numbers, of which those that are 0 go. */
static bool tag_counts_merge(struct tag_list *list, const struct tag_count *other,
                             uint32_t other_count) {
    const struct tag_count *own = list->sorted;
    struct tag_count *merged =
        memory_allocate(((size_t)list->sorted_count + other_count + 1) * sizeof *merged);
    uint32_t a = 0, b = 0, count = 0;
    if (merged == NULL) {
        return false;
    }
    while (a < list->sorted_count || b < other_count) {
        bool takes_a =
            b == other_count || (a < list->sorted_count && own[a].values <= other[b].values);
        bool takes_b =
            a == list->sorted_count || (b < other_count && other[b].values <= own[a].values);
        merged[count] = takes_a ? own[a] : other[b];
        merged[count].count += takes_a && takes_b ? other[b].count : 0;
        a += takes_a;
        b += takes_b;
        count += merged[count].count != 0;
    }
    list->memory_size += memory_size(merged) - (own != NULL ? memory_size(own) : 0);
    memory_free(list->sorted);
    list->sorted = merged;
    list->sorted_count = count;
    list->zero_count = 0;
    if (count > TAG_SORTED_MAX) {
        tag_counts_crowd(list);
    }
    return true;
}

static bool tag_counts_merge_latest(struct tag_list *list) {
    bool is_done = tag_counts_merge(list, list->latest, list->latest_count);
    list->latest_count = is_done ? 0 : list->latest_count;
    return is_done;
}

/* The number of these values, wherever it is; NULL: it is 0. */
static struct tag_count *tag_counts_find_one(const struct tag_list *list, uint32_t values,
                                             uint32_t *latest_at) {
    uint32_t at = tag_counts_find(list->sorted, list->sorted_count, values);
    if (at < list->sorted_count && list->sorted[at].values == values) {
        return &list->sorted[at];
    }
    at = *latest_at = tag_counts_find(list->latest, list->latest_count, values);
    return at < list->latest_count && list->latest[at].values == values ? &list->latest[at] : NULL;
}

/* Sorted numbers are much to move, so new ones go to the latest, and of those that become 0 most stay for a while. */
static bool tag_counts_add_to_list(struct tag_list *list, uint32_t values, uint32_t more) {
    uint32_t at = 0;
    if (list->is_crowded || more == 0) {
        return true;
    }
    struct tag_count *count = tag_counts_find_one(list, values, &at);
    if (count != NULL) {
        list->zero_count -= count->count == 0;
        count->count += more;
        list->zero_count += count->count == 0;
        return list->zero_count <= list->sorted_count / 4 + TAG_LATEST_MAX ||
               tag_counts_merge_latest(list);
    }
    if (list->latest == NULL) {
        list->latest = memory_allocate((TAG_LATEST_MAX + 1) * sizeof *list->latest);
        if (list->latest == NULL) {
            return false;
        }
        list->memory_size += memory_size(list->latest);
    }
    memmove(&list->latest[at + 1], &list->latest[at],
            (list->latest_count - at) * sizeof *list->latest);
    list->latest[at] = (struct tag_count){.values = values, .count = more};
    list->latest_count++;
    return list->latest_count < TAG_LATEST_MAX || tag_counts_merge_latest(list);
}

/* Sort by some of the bits, keeping the order of the others. */
static void tag_counts_sort_digit(const uint32_t *from, uint32_t count, uint32_t shift,
                                  uint32_t *to) {
    uint32_t starts[DIGITS] = {0}, start = 0;
    for (uint32_t i = 0; i < count; i++) {
        starts[from[i] >> shift & (DIGITS - 1)]++;
    }
    for (uint32_t digit = 0; digit < DIGITS; digit++) {
        uint32_t here = starts[digit];
        starts[digit] = start;
        start += here;
    }
    for (uint32_t i = 0; i < count; i++) {
        to[starts[from[i] >> shift & (DIGITS - 1)]++] = from[i];
    }
}

bool tag_counts_add_sorted(struct tag_list *list, unsigned bits, uint32_t *values, uint32_t count) {
    struct tag_count *sums = memory_allocate((count + 1) * sizeof *sums);
    uint32_t *from = values, *to = (uint32_t *)(void *)sums, sum_count = 0;
    if (sums == NULL) {
        return false;
    }
    for (uint32_t shift = 0; shift < bits; shift += DIGIT_BITS) {
        tag_counts_sort_digit(from, count, shift, to);
        uint32_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != values) {
        memcpy(values, from, count * sizeof *values);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (sum_count == 0 || sums[sum_count - 1].values != values[i]) {
            sums[sum_count++] = (struct tag_count){.values = values[i]};
        }
        sums[sum_count - 1].count++;
    }
    bool is_done =
        list->is_crowded || (tag_counts_merge_latest(list) &&
                             (list->is_crowded || tag_counts_merge(list, sums, sum_count)));
    memory_free(sums);
    return is_done;
}

bool tag_counts_add(struct tags *tags, struct tag_counts *counts, uint32_t code, uint32_t more) {
    const struct tag_places *places = tag_counts_places(tags, code);
    counts->dense[places->dense] += more;
    for (uint32_t i = 0; i < tags->plan.list_count; i++) {
        if (!tag_counts_add_to_list(&counts->lists[i], places->lists[i], more)) {
            return false;
        }
    }
    return true;
}

static bool tag_counts_add_each(struct tag_list *list, const struct tag_count *sorted,
                                uint32_t count, bool is_less) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t more = is_less ? 0U - sorted[i].count : sorted[i].count;
        if (!tag_counts_add_to_list(list, sorted[i].values, more)) {
            return false;
        }
    }
    return true;
}

static bool tag_counts_add_list(struct tag_list *list, const struct tag_list *other, bool is_less) {
    if (list->is_crowded) {
        return true;
    }
    if (other->is_crowded) {
        tag_counts_crowd(list);
        return true;
    }
    /* Each is in the latest of one of them only once they are merged. */
    if (!is_less &&
        (!tag_counts_merge_latest(list) ||
         (!list->is_crowded && !tag_counts_merge(list, other->sorted, other->sorted_count)))) {
        return false;
    }
    return (!is_less || tag_counts_add_each(list, other->sorted, other->sorted_count, true)) &&
           tag_counts_add_each(list, other->latest, other->latest_count, is_less);
}

bool tag_counts_add_all(const struct tag_counts_plan *plan, struct tag_counts *counts,
                        const struct tag_counts *other, bool is_less) {
    for (uint32_t i = 0; i >> plan->dense.bits == 0; i++) {
        counts->dense[i] += is_less ? 0U - other->dense[i] : other->dense[i];
    }
    for (uint32_t i = 0; i < plan->list_count; i++) {
        if (!tag_counts_add_list(&counts->lists[i], &other->lists[i], is_less)) {
            return false;
        }
    }
    return true;
}

/* Are these numbers those of another list, too? */
static bool tag_counts_has_each(const struct tag_list *list, const struct tag_count *sorted,
                                uint32_t count) {
    uint32_t at;
    for (uint32_t i = 0; i < count; i++) {
        const struct tag_count *found = tag_counts_find_one(list, sorted[i].values, &at);
        if ((found != NULL ? found->count : 0) != sorted[i].count) {
            return false;
        }
    }
    return true;
}

static bool tag_counts_contains(const struct tag_list *list, const struct tag_list *other) {
    return tag_counts_has_each(list, other->sorted, other->sorted_count) &&
           tag_counts_has_each(list, other->latest, other->latest_count);
}

bool tag_counts_equal(const struct tag_counts_plan *plan, const struct tag_counts *a,
                      const struct tag_counts *b) {
    bool is_equal = memcmp(a->dense, b->dense, tag_counts_dense_size(plan)) == 0;
    for (uint32_t i = 0; i < plan->list_count; i++) {
        const struct tag_list *list = &a->lists[i], *other = &b->lists[i];
        is_equal =
            is_equal && (list->is_crowded || other->is_crowded ||
                         (tag_counts_contains(list, other) && tag_counts_contains(other, list)));
    }
    return is_equal;
}

/* ---- rows ---- */

void tag_counts_prefetch(struct tags *tags, struct tag_counts *counts, uint32_t child,
                         uint32_t code) {
    const struct tag_counts_plan *plan = &tags->plan;
    const struct tag_places *places = tag_counts_places(tags, code);
    size_t width = counts->is_narrow ? sizeof(uint16_t) : sizeof(uint32_t);
    prefetch_line(counts->dense + places->dense);
    for (uint32_t i = 0; i < plan->combination_count; i++) {
        prefetch_line((const char *)tag_counts_row(plan, counts, places->rows[i]) + child * width);
    }
}

void tag_counts_add_to_rows(struct tags *tags, struct tag_counts *counts, uint32_t child,
                            uint32_t code, uint32_t more) {
    const struct tag_counts_plan *plan = &tags->plan;
    const struct tag_places *places = tag_counts_places(tags, code);
    for (uint32_t i = 0; i < plan->combination_count; i++) {
        tag_counts_raise(plan, counts, places->rows[i], child, more);
    }
}

static uint64_t tag_counts_below(uint32_t child) {
    return child < 64 ? (UINT64_C(1) << child) - 1 : UINT64_MAX;
}

static size_t tag_counts_width(const struct tag_counts *counts) {
    return counts->is_narrow ? sizeof(uint16_t) : sizeof(uint32_t);
}

void tag_counts_insert_child(const struct tag_counts_plan *plan, struct tag_counts *counts,
                             uint32_t child) {
    size_t width = tag_counts_width(counts);
    uint64_t before = counts->unknown & tag_counts_below(child);
    for (uint32_t row = 0; row < plan->row_count; row++) {
        char *at = (char *)tag_counts_row(plan, counts, row) + child * width;
        memmove(at + width, at, (INDEX_FANOUT - 1 - child) * width);
    }
    counts->unknown = before | UINT64_C(1) << child |
                      (child < 63 ? (counts->unknown & ~tag_counts_below(child)) << 1 : 0);
}

void tag_counts_remove_children(const struct tag_counts_plan *plan, struct tag_counts *counts,
                                uint32_t child, uint32_t count) {
    size_t width = tag_counts_width(counts);
    uint64_t before = counts->unknown & tag_counts_below(child);
    for (uint32_t row = 0; row < plan->row_count; row++) {
        char *at = (char *)tag_counts_row(plan, counts, row) + child * width;
        memmove(at, at + count * width, (INDEX_FANOUT - child - count) * width);
    }
    uint64_t after = counts->unknown & ~tag_counts_below(child + count);
    counts->unknown =
        before | (count < 64 ? after >> count : 0) | ~tag_counts_below(INDEX_FANOUT - count);
}

void tag_counts_copy_children(const struct tag_counts_plan *plan, struct tag_counts *to,
                              uint32_t to_at, struct tag_counts *from, uint32_t from_at,
                              uint32_t count) {
    size_t width = tag_counts_width(to);
    for (uint32_t row = 0; row < plan->row_count && count > 0; row++) {
        memcpy((char *)tag_counts_row(plan, to, row) + to_at * width,
               (char *)tag_counts_row(plan, from, row) + from_at * width, count * width);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bit = from->unknown >> (from_at + i) & 1;
        to->unknown = (to->unknown & ~(UINT64_C(1) << (to_at + i))) | bit << (to_at + i);
    }
}

void tag_counts_clear_child(const struct tag_counts_plan *plan, struct tag_counts *counts,
                            uint32_t child) {
    for (uint32_t row = 0; row < plan->row_count; row++) {
        tag_counts_raise(plan, counts, row, child, 0U - tag_counts_at(plan, counts, row, child));
    }
}
