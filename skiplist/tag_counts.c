/* See the header. */
#include "skiplist/tag_counts.h"

#include "codec/memory.h"
#include "skiplist/sheet.h"

enum { SPARSE_FIRST = 16 };

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

/* Tags in the order of their bits, the most first. */
static void tag_counts_sort(const struct tag_slot *const *slots, uint32_t count, uint8_t *tags) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && slots[tags[at - 1]]->bits < slots[i]->bits; at--) {
            tags[at] = tags[at - 1];
        }
        tags[at] = (uint8_t)i;
    }
}

void tag_counts_plan(struct tag_counts_plan *plan, const struct tag_slot *const *slots,
                     uint32_t count) {
    uint8_t tags[TAGS_MAX];
    *plan = (struct tag_counts_plan){.number = plan->number + 1};
    tag_counts_sort(slots, count, tags);
    for (uint32_t i = 0; i < count; i++) {
        tag_counts_choose(plan, tag_counts_combine(slots, &tags[i], 1));
    }
    for (uint32_t i = count; i-- > 0;) {
        tag_counts_choose(plan, tag_counts_combine(slots, &tags[i], count - i));
    }
    plan->all = tag_counts_combine(slots, tags, count);
    plan->dense = plan->all;
    for (uint32_t i = 1; plan->dense.bits > TAG_DENSE_BITS; i++) {
        plan->dense = tag_counts_combine(slots, &tags[i], count - i);
    }
    plan->is_sparse = plan->dense.count < count;
}

uint32_t tag_counts_values(const struct tags *tags, const struct tag_combination *combination,
                           uint32_t code) {
    uint32_t values = 0;
    for (uint32_t i = 0; i < combination->count; i++) {
        uint32_t tag = combination->tags[i];
        values |= tag_slot_extract(tags->slots[tag], code) << combination->shifts[tag];
    }
    return values;
}

static const struct tag_places *tag_counts_places(struct tags *tags, uint32_t code) {
    const struct tag_counts_plan *plan = &tags->plan;
    struct tag_places *places = &tags->places;
    if (places->number == plan->number && places->code == code) {
        return places;
    }
    places->number = plan->number;
    places->code = code;
    places->dense = tag_counts_values(tags, &plan->dense, code);
    places->all = plan->is_sparse ? tag_counts_values(tags, &plan->all, code) : 0;
    for (uint32_t i = 0; i < plan->combination_count; i++) {
        const struct tag_combination *combination = &plan->combinations[i];
        places->rows[i] = combination->first_row + tag_counts_values(tags, combination, code);
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

struct tag_counts *tag_counts_copy(const struct tag_counts_plan *plan,
                                   const struct tag_counts *counts) {
    size_t size = tag_counts_size(plan, counts->is_narrow);
    struct tag_counts *copy = memory_allocate(size);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, counts, size);
    copy->sparse = NULL;
    copy->sparse_capacity = counts->sparse_count;
    if (counts->sparse_count > 0) {
        copy->sparse = memory_allocate(counts->sparse_count * sizeof *copy->sparse);
        if (copy->sparse == NULL) {
            memory_free(copy);
            return NULL;
        }
        memcpy(copy->sparse, counts->sparse, counts->sparse_count * sizeof *copy->sparse);
    }
    return copy;
}

void tag_counts_destroy(struct tag_counts *counts) {
    if (counts != NULL) {
        memory_free(counts->sparse);
        memory_free(counts);
    }
}

size_t tag_counts_memory_size(const struct tag_counts *counts) {
    return memory_size(counts) + (counts->sparse != NULL ? memory_size(counts->sparse) : 0);
}

/* ---- numbers of the whole block ---- */

uint32_t tag_counts_find(const struct tag_counts *counts, uint32_t values) {
    uint32_t low = 0;
    for (uint32_t count = counts->sparse_count; count > 0;) {
        uint32_t half = count / 2;
        bool is_behind = counts->sparse[low + half].values < values;
        low = is_behind ? low + half + 1 : low;
        count = is_behind ? count - half - 1 : half;
    }
    return low;
}

static bool tag_counts_make_room(struct tag_counts *counts) {
    if (counts->sparse_count < counts->sparse_capacity) {
        return true;
    }
    uint32_t capacity = counts->sparse_capacity + counts->sparse_capacity / 4 + SPARSE_FIRST;
    struct tag_count *sparse = memory_resize(counts->sparse, capacity * sizeof *sparse);
    if (sparse == NULL) {
        return false;
    }
    counts->sparse = sparse;
    counts->sparse_capacity = capacity;
    return true;
}

static bool tag_counts_add_sparse(struct tag_counts *counts, uint32_t values, uint32_t more) {
    uint32_t at = tag_counts_find(counts, values);
    size_t behind = (counts->sparse_count - at) * sizeof *counts->sparse;
    if (at < counts->sparse_count && counts->sparse[at].values == values) {
        struct tag_count *count = &counts->sparse[at];
        count->count += more;
        if (count->count == 0) {
            memmove(count, count + 1, behind - sizeof *count);
            counts->sparse_count--;
        }
        return true;
    }
    if (more == 0) {
        return true;
    }
    if (!tag_counts_make_room(counts)) {
        return false;
    }
    memmove(&counts->sparse[at + 1], &counts->sparse[at], behind);
    counts->sparse[at] = (struct tag_count){.values = values, .count = more};
    counts->sparse_count++;
    return true;
}

bool tag_counts_add(struct tags *tags, struct tag_counts *counts, uint32_t code, uint32_t more) {
    const struct tag_places *places = tag_counts_places(tags, code);
    counts->dense[places->dense] += more;
    return !tags->plan.is_sparse || tag_counts_add_sparse(counts, places->all, more);
}

static bool tag_counts_merge(struct tag_counts *counts, const struct tag_counts *other) {
    uint32_t capacity = counts->sparse_count + other->sparse_count;
    struct tag_count *merged = memory_allocate((capacity + 1) * sizeof *merged);
    uint32_t a = 0, b = 0, count = 0;
    if (merged == NULL) {
        return false;
    }
    while (a < counts->sparse_count || b < other->sparse_count) {
        bool takes_a =
            b == other->sparse_count ||
            (a < counts->sparse_count && counts->sparse[a].values <= other->sparse[b].values);
        bool takes_b =
            a == counts->sparse_count ||
            (b < other->sparse_count && other->sparse[b].values <= counts->sparse[a].values);
        merged[count] = takes_a ? counts->sparse[a] : other->sparse[b];
        merged[count].count += takes_a && takes_b ? other->sparse[b].count : 0;
        a += takes_a;
        b += takes_b;
        count++;
    }
    memory_free(counts->sparse);
    counts->sparse = merged;
    counts->sparse_count = count;
    counts->sparse_capacity = capacity + 1;
    return true;
}

bool tag_counts_add_all(const struct tag_counts_plan *plan, struct tag_counts *counts,
                        const struct tag_counts *other, bool is_less) {
    for (uint32_t i = 0; i >> plan->dense.bits == 0; i++) {
        counts->dense[i] += is_less ? 0U - other->dense[i] : other->dense[i];
    }
    if (!is_less) {
        return !plan->is_sparse || tag_counts_merge(counts, other);
    }
    for (uint32_t i = 0; i < other->sparse_count; i++) {
        if (!tag_counts_add_sparse(counts, other->sparse[i].values, 0U - other->sparse[i].count)) {
            return false;
        }
    }
    return true;
}

bool tag_counts_equal(const struct tag_counts_plan *plan, const struct tag_counts *a,
                      const struct tag_counts *b) {
    return memcmp(a->dense, b->dense, tag_counts_dense_size(plan)) == 0 &&
           a->sparse_count == b->sparse_count &&
           (a->sparse_count == 0 ||
            memcmp(a->sparse, b->sparse, a->sparse_count * sizeof *a->sparse) == 0);
}

/* ---- rows ---- */

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
