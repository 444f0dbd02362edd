/* See skiplist/sheet.h. */
#include "skiplist/sheet.h"

#include "codec/memory.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };
enum {
    /* What is as much work as one entry: so many numbers of rows; and what one more value in sorted numbers is. */
    ROWS_PER_WORK = 16,
    SORTED_WORK = 2,
    /* Counts begin by themselves if that is not more work; those of a new root's two children may be more. */
    BEGIN_WORK = 8192,
    BEGIN_WORK_ABOVE = 4 * BEGIN_WORK,
};

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

/* The values of a code side by side. */
static uint32_t tag_counts_values(const struct tags *tags,
                                  const struct tag_combination *combination, uint32_t code) {
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

/* Those of an index block: all 0, nothing known of children. NULL: no memory. */
static struct tag_counts *tag_counts_create(const struct skiplist *list, uint32_t id) {
    const struct tag_counts_plan *plan = &list->tags->plan;
    bool is_narrow = skiplist_node(list, id)->level == 2;
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

/* May be NULL. */
static void tag_counts_destroy(struct tag_counts *counts) {
    if (counts != NULL) {
        for (uint32_t i = 0; i < TAG_LISTS_MAX; i++) {
            memory_free(counts->lists[i].sorted);
            memory_free(counts->lists[i].latest);
        }
        memory_free(counts);
    }
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

/* The part of it that tag_counts_add may change. */
static size_t tag_counts_lists_size(const struct tag_counts *counts) {
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
static bool tag_counts_merge_sorted(struct tag_list *list, const struct tag_count *other,
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
    bool is_done = tag_counts_merge_sorted(list, list->latest, list->latest_count);
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

/* The same for the values, of so many bits, of entries that are in the dense numbers already, in one list. Changes their order. */
static bool tag_counts_add_sorted(struct tag_list *list, unsigned bits, uint32_t *values,
                                  uint32_t count) {
    struct tag_count *sums = memory_allocate((count + 1) * sizeof *sums);
    uint32_t *from = values, *to = (uint32_t *)(void *)sums, sum_count = 0;
    if (sums == NULL) {
        return false;
    }
    for (uint32_t shift = 0; shift < bits; shift += DIGIT_BITS) {
        /* Sort by some of the bits, keeping the order of the others. */
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
                             (list->is_crowded || tag_counts_merge_sorted(list, sums, sum_count)));
    memory_free(sums);
    return is_done;
}

/* `more` entries (as uint32_t: 0U - n is n fewer) with this code, in the numbers of the whole block. false: no memory; the counts are then wrong. */
static bool tag_counts_add(struct tags *tags, struct tag_counts *counts, uint32_t code,
                           uint32_t more) {
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
    if (!is_less && (!tag_counts_merge_latest(list) ||
                     (!list->is_crowded &&
                      !tag_counts_merge_sorted(list, other->sorted, other->sorted_count)))) {
        return false;
    }
    return (!is_less || tag_counts_add_each(list, other->sorted, other->sorted_count, true)) &&
           tag_counts_add_each(list, other->latest, other->latest_count, is_less);
}

/* Add (or subtract) the numbers of the whole block of other counts. false: as above. */
static bool tag_counts_add_all(const struct tag_counts_plan *plan, struct tag_counts *counts,
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

/* ---- rows ---- */

/* Add to a row. */
static void tag_counts_raise(const struct tag_counts_plan *plan, struct tag_counts *counts,
                             uint32_t row, uint32_t child, uint32_t more) {
    void *at = tag_counts_row(plan, counts, row);
    if (counts->is_narrow) {
        ((uint16_t *)at)[child] = (uint16_t)(((uint16_t *)at)[child] + more);
    } else {
        ((uint32_t *)at)[child] += more;
    }
}

/* As tag_counts_add, in the rows of a child. */
static void tag_counts_add_to_rows(struct tags *tags, struct tag_counts *counts, uint32_t child,
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

/* Children go. */
static void tag_counts_remove_from_rows(const struct tag_counts_plan *plan,
                                        struct tag_counts *counts, uint32_t child, uint32_t count) {
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

/* Copy what is known of children, from child `from_at` of the other counts on. */
static void tag_counts_copy_children(const struct tag_counts_plan *plan, struct tag_counts *to,
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

/* Set the numbers of a child in all rows to 0. */
static void tag_counts_clear_child(const struct tag_counts_plan *plan, struct tag_counts *counts,
                                   uint32_t child) {
    for (uint32_t row = 0; row < plan->row_count; row++) {
        tag_counts_raise(plan, counts, row, child, 0U - tag_counts_at(plan, counts, row, child));
    }
}

/* ---- of the index blocks of a list ---- */

void tag_counts_forget(struct tags *tags, struct index_block *index) {
    if (index->counts != NULL) {
        tags->memory_size -= tag_counts_memory_size(index->counts);
        tag_counts_destroy(index->counts);
        index->counts = NULL;
    }
}

/* The counts of an index block above level 1, of which some children are counted. NULL: none. */
static struct tag_counts *tag_counts_begun(const struct tags *tags,
                                           const struct index_block *index) {
    return index->counts != NULL && index->counts->number == (tags->plan.number | TAG_COUNTS_BEGUN)
               ? index->counts
               : NULL;
}

/* The known counts; those of another plan are forgotten. NULL: none. */
static struct tag_counts *tag_counts_known(struct tags *tags, struct index_block *index) {
    if (index->counts == NULL || index->counts->number == tags->plan.number) {
        return index->counts;
    }
    if (tag_counts_begun(tags, index) == NULL) {
        tag_counts_forget(tags, index);
    }
    return NULL;
}

void tag_counts_drop(struct skiplist *list, uint32_t id) {
    tags_note_gaps(list->tags);
    for (; id != SKIPLIST_NONE; id = skiplist_node(list, id)->parent) {
        if (skiplist_node(list, id)->level > 1) {
            tag_counts_forget(list->tags, index_at(list, id));
        }
    }
}

static bool tag_counts_spend(uint32_t *work_left, uint32_t work) {
    if (work > *work_left) {
        return false;
    }
    *work_left -= work;
    return true;
}

/* The numbers of a lowest index block, in the rows of its parent. false: too much work. */
static bool tag_counts_count_lowest(const struct skiplist *list, struct index_block *index,
                                    struct tag_counts *counts, uint32_t child,
                                    uint32_t *work_left) {
    const struct sheet *sheet = sheet_of(list, index);
    if (!tag_counts_spend(work_left, sheet != NULL ? sheet->count : 1)) {
        return false;
    }
    tag_counts_clear_child(&list->tags->plan, counts, child);
    if (sheet == NULL) {
        tag_counts_add_to_rows(list->tags, counts, child, 0, index_narrow_sum(index, index->count));
        return true;
    }
    for (uint32_t i = 0; i < sheet->count; i++) {
        tag_counts_add_to_rows(list->tags, counts, child, sheet_get(sheet, i), 1);
    }
    return true;
}

/* The same of a higher one: the sums of its own rows. */
static bool tag_counts_count_higher(const struct skiplist *list, uint32_t id,
                                    struct tag_counts *counts, uint32_t child,
                                    uint32_t *work_left) {
    const struct tag_counts_plan *plan = &list->tags->plan;
    const struct index_block *index = index_at(list, id);
    struct tag_counts *own = tag_counts_of(list, id, work_left);
    if (own == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < index->count; i++) {
        if (!tag_counts_know_child(list, id, own, i, work_left)) {
            return false;
        }
    }
    if (!tag_counts_spend(work_left, plan->row_count * INDEX_FANOUT / ROWS_PER_WORK)) {
        return false;
    }
    tag_counts_clear_child(plan, counts, child);
    for (uint32_t row = 0; row < plan->row_count; row++) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < index->count; i++) {
            sum += tag_counts_at(plan, own, row, i);
        }
        tag_counts_raise(plan, counts, row, child, sum);
    }
    return true;
}

bool tag_counts_count_child(const struct skiplist *list, uint32_t id, struct tag_counts *counts,
                            uint32_t child, uint32_t *work_left) {
    uint32_t child_id = index_children(index_at(list, id))[child];
    bool is_lowest = skiplist_node(list, child_id)->level == 1;
    bool is_known = is_lowest ? tag_counts_count_lowest(list, index_at(list, child_id), counts,
                                                        child, work_left)
                              : tag_counts_count_higher(list, child_id, counts, child, work_left);
    if (is_known) {
        counts->unknown &= ~(UINT64_C(1) << child);
    }
    return is_known;
}

/* Add what the sheets of children from .. to - 1 have. values: room for those of their entries, one list's after
 * another's, `room` each. false: no memory. */
static bool tag_counts_add_each_sheet(const struct skiplist *list, struct index_block *index,
                                      uint32_t from, uint32_t to, struct tag_counts *counts,
                                      uint32_t *values, uint32_t room) {
    struct tags *tags = list->tags;
    const struct tag_counts_plan *plan = &tags->plan;
    uint32_t count = 0;
    for (uint32_t i = from; i < to; i++) {
        const struct sheet *sheet = sheet_of(list, index_at(list, index_children(index)[i]));
        /* While a leaf is being inserted, the child's own spans may be without it. */
        if (sheet == NULL && !tag_counts_add(tags, counts, 0, index_span(index, i))) {
            return false;
        }
        for (uint32_t c = 0; sheet != NULL && c < sheet->count; c++, count++) {
            uint32_t code = sheet_get(sheet, c);
            counts->dense[tag_counts_values(tags, &plan->dense, code)]++;
            for (uint32_t l = 0; l < plan->list_count; l++) {
                values[(size_t)l * room + count] = tag_counts_values(tags, &plan->lists[l], code);
            }
        }
    }
    for (uint32_t l = 0; l < plan->list_count; l++) {
        if (!tag_counts_add_sorted(&counts->lists[l], plan->lists[l].bits,
                                   values + (size_t)l * room, count)) {
            return false;
        }
    }
    return true;
}

/* The same with the room for values. false: no memory, or too much work. */
static bool tag_counts_add_sheets(const struct skiplist *list, struct index_block *index,
                                  uint32_t from, uint32_t to, struct tag_counts *counts,
                                  uint32_t *work_left) {
    uint32_t *values = NULL, entry_count = 0, bare = 0, lists = list->tags->plan.list_count;
    for (uint32_t i = from; i < to; i++) {
        const struct sheet *sheet = index_at(list, index_children(index)[i])->sheet;
        entry_count += sheet != NULL ? sheet->count : 0;
        bare += sheet == NULL;
    }
    if (!tag_counts_spend(work_left, entry_count * (lists > 0 ? SORTED_WORK : 1) + bare)) {
        return false;
    }
    if (lists > 0) {
        values = memory_allocate(((size_t)entry_count * lists + 1) * sizeof *values);
        if (values == NULL) {
            return false;
        }
    }
    bool is_done = tag_counts_add_each_sheet(list, index, from, to, counts, values, entry_count);
    memory_free(values);
    return is_done;
}

/* What adding a child's counts takes. */
static uint32_t tag_counts_work_of(const struct tag_counts_plan *plan,
                                   const struct tag_counts *child) {
    uint32_t size = UINT32_C(1) << plan->dense.bits;
    for (uint32_t i = 0; i < plan->list_count; i++) {
        size += child->lists[i].sorted_count + child->lists[i].latest_count;
    }
    return size / ROWS_PER_WORK + 1;
}

/* The same of children of any level. */
static bool tag_counts_add_children(const struct skiplist *list, uint32_t id, uint32_t from,
                                    uint32_t to, struct tag_counts *counts, uint32_t *work_left) {
    const struct tag_counts_plan *plan = &list->tags->plan;
    struct index_block *index = index_at(list, id);
    uint64_t work = 0;
    if (skiplist_node(list, id)->level == 2) {
        return tag_counts_add_sheets(list, index, from, to, counts, work_left);
    }
    /* Nothing is added in vain, for whoever comes next would do it again. */
    for (uint32_t i = from; i < to; i++) {
        const struct tag_counts *child =
            tag_counts_known(list->tags, index_at(list, index_children(index)[i]));
        work += child != NULL ? tag_counts_work_of(plan, child) : 0;
    }
    if (work > *work_left) {
        return false;
    }
    for (uint32_t i = from; i < to; i++) {
        struct tag_counts *child = tag_counts_of(list, index_children(index)[i], work_left);
        if (child == NULL || !tag_counts_spend(work_left, tag_counts_work_of(plan, child)) ||
            !tag_counts_add_all(plan, counts, child, false)) {
            return false;
        }
    }
    return true;
}

struct tag_counts *tag_counts_of(const struct skiplist *list, uint32_t id, uint32_t *work_left) {
    struct tags *tags = list->tags;
    struct index_block *index = index_at(list, id);
    struct tag_counts *counts = tag_counts_known(tags, index);
    if (counts != NULL || *work_left == 0) {
        return counts;
    }
    counts = tag_counts_create(list, id);
    if (counts != NULL && !tag_counts_add_children(list, id, 0, index->count, counts, work_left)) {
        tag_counts_destroy(counts);
        counts = NULL;
    }
    if (counts != NULL) {
        tag_counts_forget(tags, index); /* what was begun */
        tags->memory_size += tag_counts_memory_size(counts);
        index->counts = counts;
    }
    return counts;
}

/* Of children that are not lowest index blocks: are their counts known? */
static bool tag_counts_are_known(const struct skiplist *list, uint32_t id, uint32_t from,
                                 uint32_t to) {
    struct index_block *index = index_at(list, id);
    for (uint32_t i = from; i < to && skiplist_node(list, id)->level > 2; i++) {
        const struct index_block *child = index_at(list, index_children(index)[i]);
        if (child->counts == NULL || child->counts->number != list->tags->plan.number) {
            return false;
        }
    }
    return true;
}

/* Count some more children of what has begun. false: no memory; it is forgotten. */
static bool tag_counts_go_on(const struct skiplist *list, uint32_t id, struct tag_counts *counts) {
    struct tags *tags = list->tags;
    struct index_block *index = index_at(list, id);
    uint32_t from = counts->begun, work = UINT32_MAX;
    /* One that has counts of its own may have long lists. */
    uint32_t more = skiplist_node(list, id)->level == 2 ? TAG_FILL_CHILDREN : 1;
    uint32_t to = from + more < index->count ? from + more : index->count;
    tags->memory_size -= tag_counts_lists_size(counts);
    bool is_done = tag_counts_add_children(list, id, from, to, counts, &work);
    tags->memory_size += tag_counts_lists_size(counts);
    if (!is_done) {
        tag_counts_forget(tags, index);
        return false;
    }
    counts->begun = (uint8_t)to;
    if (to == index->count) {
        counts->number = tags->plan.number;
    }
    return true;
}

/* A child whose turn is now, or soon, and which has no counts: it has lost them since they were made. */
static uint32_t tag_counts_find_lost(const struct skiplist *list, uint32_t id, uint32_t from) {
    struct index_block *index = index_at(list, id);
    uint32_t i = from;
    if (skiplist_node(list, id)->level == 2) {
        return SKIPLIST_NONE;
    }
    while (i < index->count && i < from + TAG_FILL_CHILDREN &&
           tag_counts_are_known(list, id, i, i + 1)) {
        i++;
    }
    return i < index->count && i < from + TAG_FILL_CHILDREN ? index_children(index)[i]
                                                            : SKIPLIST_NONE;
}

bool tag_counts_fill(const struct skiplist *list, uint32_t id, uint32_t *work_left) {
    struct tags *tags = list->tags;
    struct index_block *index = index_at(list, id);
    struct tag_counts *counts = tag_counts_known(tags, index);
    if (counts == NULL) {
        counts = tag_counts_begun(tags, index);
        if (counts == NULL) {
            counts = tag_counts_create(list, id);
            index->counts = counts;
            if (counts != NULL) {
                counts->number |= TAG_COUNTS_BEGUN;
                tags->memory_size += tag_counts_memory_size(counts);
            }
        }
        uint32_t lost =
            counts != NULL ? tag_counts_find_lost(list, id, counts->begun) : SKIPLIST_NONE;
        if (lost == SKIPLIST_NONE) {
            *work_left = 0;
            return counts == NULL || !tag_counts_go_on(list, id, counts);
        }
        bool is_over = tag_counts_fill(list, lost, work_left) &&
                       tag_counts_known(tags, index_at(list, lost)) == NULL;
        if (is_over) {
            tag_counts_forget(tags, index);
        }
        return is_over;
    }
    for (uint32_t i = 0; i < index->count; i++) {
        if ((counts->unknown >> i & 1) != 0) {
            uint32_t work = TAG_COUNTS_READER_WORK;
            bool is_known = tag_counts_count_child(list, id, counts, i, &work);
            work = TAG_COUNTS_READER_WORK - work;
            *work_left -= work < *work_left ? work : *work_left;
            return !is_known;
        }
    }
    return true;
}

void tag_counts_begin(const struct skiplist *list, uint32_t leaf) {
    uint32_t id = skiplist_node(list, leaf)->parent;
    while (id != SKIPLIST_NONE && (id = skiplist_node(list, id)->parent) != SKIPLIST_NONE) {
        uint32_t work_left = skiplist_node(list, id)->level == 2 ? BEGIN_WORK : BEGIN_WORK_ABOVE;
        (void)tag_counts_of(list, id, &work_left);
    }
}

void tag_counts_prefetch(const struct skiplist *list, uint32_t leaf, uint32_t code) {
    const struct skiplist_node *node = skiplist_node(list, leaf);
    if (node->parent == SKIPLIST_NONE) {
        return;
    }
    for (node = skiplist_node(list, node->parent); node->parent != SKIPLIST_NONE;
         node = skiplist_node(list, node->parent)) {
        struct tag_counts *counts = index_at(list, node->parent)->counts;
        if (counts != NULL && counts->number == list->tags->plan.number) {
            const struct tag_places *places = tag_counts_places(list->tags, code);
            const struct tag_counts_plan *plan = &list->tags->plan;
            memory_prefetch(counts->dense + places->dense);
            for (uint32_t i = 0; i < plan->combination_count; i++) {
                memory_prefetch((const char *)tag_counts_row(plan, counts, places->rows[i]) +
                                node->position * tag_counts_width(counts));
            }
        }
    }
}

void tag_counts_add_above(const struct skiplist *list, uint32_t leaf, uint32_t code,
                          uint32_t more) {
    struct tags *tags = list->tags;
    const struct skiplist_node *node = skiplist_node(list, leaf);
    if (node->parent == SKIPLIST_NONE) {
        return;
    }
    for (node = skiplist_node(list, node->parent); node->parent != SKIPLIST_NONE;
         node = skiplist_node(list, node->parent)) {
        struct index_block *index = index_at(list, node->parent);
        struct tag_counts *counts = tag_counts_known(tags, index);
        bool is_known = counts != NULL;
        if (!is_known) {
            counts = tag_counts_begun(tags, index);
            if (counts == NULL || node->position >= counts->begun) {
                continue;
            }
        }
        size_t before = tags->plan.list_count > 0 ? tag_counts_lists_size(counts) : 0;
        bool is_done = tag_counts_add(tags, counts, code, more);
        if (tags->plan.list_count > 0) {
            tags->memory_size += tag_counts_lists_size(counts) - before;
        }
        if (!is_done) { /* no memory for more: they are forgotten */
            tag_counts_forget(tags, index);
        } else if (is_known && (counts->unknown >> node->position & 1) == 0) {
            tag_counts_add_to_rows(tags, counts, node->position, code, more);
        }
    }
}

void tag_counts_split(struct skiplist *list, uint32_t left_id, struct index_block *right,
                      uint32_t at, bool goes_right) {
    struct tags *tags = list->tags;
    struct index_block *left = index_at(list, left_id);
    struct tag_counts *counts = tag_counts_known(tags, left);
    uint32_t from = goes_right ? 0 : at, to = goes_right ? at : left->count;
    uint32_t work_left = UINT32_MAX;
    /* No child's counts may be made now: it may be split itself, with a child of its own in neither half. */
    struct tag_counts *made = counts != NULL && tag_counts_are_known(list, left_id, from, to)
                                  ? tag_counts_create(list, left_id)
                                  : NULL;
    if (made == NULL) {
        tag_counts_forget(tags, left);
        return;
    }
    /* One side is counted, the other is what is left: so the child that is in neither is on its side. */
    tags->memory_size -= tag_counts_memory_size(counts);
    bool is_done = tag_counts_add_children(list, left_id, from, to, made, &work_left) &&
                   tag_counts_add_all(&tags->plan, counts, made, true);
    tags->memory_size += tag_counts_memory_size(counts);
    if (!is_done) {
        tag_counts_destroy(made);
        tag_counts_forget(tags, left);
        return;
    }
    tags->memory_size += tag_counts_memory_size(made);
    tag_counts_copy_children(&tags->plan, made, 0, counts, from, to - from);
    if (goes_right) {
        tag_counts_remove_from_rows(&tags->plan, counts, 0, at);
        left->counts = made;
        right->counts = counts;
    } else {
        right->counts = made;
    }
}

void tag_counts_forget_in_parent(struct skiplist *list, uint32_t id) {
    const struct skiplist_node *node = skiplist_node(list, id);
    if (node->parent != SKIPLIST_NONE && index_at(list, node->parent)->counts != NULL) {
        index_at(list, node->parent)->counts->unknown |= UINT64_C(1) << node->position;
    }
}

void tag_counts_put_child(struct skiplist *list, uint32_t id, uint32_t position) {
    struct index_block *index = index_at(list, id);
    if (index->is_lowest) {
        return;
    }
    const struct tag_counts_plan *plan = &list->tags->plan;
    struct tag_counts *counts = tag_counts_known(list->tags, index);
    if (counts != NULL) { /* nothing is known of the child */
        size_t width = tag_counts_width(counts);
        uint64_t below = tag_counts_below(position);
        for (uint32_t row = 0; row < plan->row_count; row++) {
            char *at = (char *)tag_counts_row(plan, counts, row) + position * width;
            memmove(at + width, at, (INDEX_FANOUT - 1 - position) * width);
        }
        counts->unknown = (counts->unknown & below) | UINT64_C(1) << position |
                          (position < 63 ? (counts->unknown & ~below) << 1 : 0);
    } else if (index->counts != NULL && position <= index->counts->begun) {
        index->counts->begun++; /* its entries are counted, as its neighbour's */
    }
    uint32_t child = index_children(index)[position];
    uint32_t neighbour = index_links(list, child)->previous;
    if (neighbour != SKIPLIST_NONE) {
        tag_counts_forget_in_parent(list, neighbour);
    }
}

void tag_counts_remove_children(struct skiplist *list, uint32_t id, uint32_t position,
                                uint32_t count) {
    struct index_block *index = index_at(list, id);
    if (index->is_lowest) {
        return;
    }
    if (tag_counts_known(list->tags, index) != NULL) {
        tag_counts_remove_from_rows(&list->tags->plan, index->counts, position, count);
    } else {
        tag_counts_forget(list->tags, index);
    }
}

void tag_counts_merge(struct tags *tags, struct index_block *left, struct index_block *right) {
    struct tag_counts *counts = tag_counts_known(tags, left),
                      *other = tag_counts_known(tags, right);
    bool is_done = false;
    if (counts != NULL && other != NULL) {
        tags->memory_size -= tag_counts_memory_size(counts);
        is_done = tag_counts_add_all(&tags->plan, counts, other, false);
        tags->memory_size += tag_counts_memory_size(counts);
    }
    if (is_done) {
        tag_counts_copy_children(&tags->plan, counts, left->count, other, 0, right->count);
    } else {
        tag_counts_forget(tags, left);
    }
    tag_counts_forget(tags, right);
}

/* ---- checking ---- */

const char *tag_counts_check(const struct skiplist *list, uint32_t id) {
    struct index_block *index = index_at(list, id);
    struct tag_counts *counts = index->counts;
    const struct tag_counts_plan *plan = &list->tags->plan;
    const char *wrong = NULL;
    uint32_t work_left = UINT32_MAX;
    bool is_begun = tag_counts_begun(list->tags, index) != NULL;
    uint32_t counted = is_begun ? counts->begun : index->count;
    if ((counts->number != plan->number && !is_begun) || !skiplist_is_alive(list, id)) {
        return NULL;
    }
    if (counted > index->count) {
        return "tags: more children are counted than there are";
    }
    if (!tag_counts_are_known(list, id, 0, counted)) {
        return NULL; /* checking must not make any */
    }
    struct tag_counts *anew = tag_counts_create(list, id);
    CHECK(anew != NULL);
    if (tag_counts_add_children(list, id, 0, counted, anew, &work_left)) {
        bool is_equal = memcmp(counts->dense, anew->dense, tag_counts_dense_size(plan)) == 0;
        for (uint32_t i = 0; i < plan->list_count && is_equal; i++) {
            const struct tag_list *own = &counts->lists[i], *other = &anew->lists[i];
            is_equal = own->is_crowded || other->is_crowded ||
                       (tag_counts_contains(own, other) && tag_counts_contains(other, own));
        }
        wrong = is_equal ? NULL : "tags: entries with some values are not counted right";
    }
    for (uint32_t i = 0; i < index->count && wrong == NULL && !is_begun; i++) {
        bool is_known =
            (counts->unknown >> i & 1) == 0 && tag_counts_know_child(list, id, anew, i, &work_left);
        for (uint32_t row = 0; is_known && row < plan->row_count; row++) {
            if (tag_counts_at(plan, counts, row, i) != tag_counts_at(plan, anew, row, i)) {
                wrong = "tags: a child's entries are not counted right";
            }
        }
    }
    tag_counts_destroy(anew);
    return wrong;
}
