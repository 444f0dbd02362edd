/* See the header. */
#include "skiplist/tag_counts.h"

#include "codec/memory.h"
#include "skiplist/sheet.h"

enum { SPARSE_FIRST = 16 };

/* ---- the plan ---- */

static void tag_counts_choose(struct tag_counts_plan *plan, const struct tag_slot *const *slots,
                              const uint8_t *tags, uint32_t count, bool is_sparse) {
    struct tag_combination *combination = &plan->at[plan->count];
    *combination = (struct tag_combination){.count = (uint8_t)count, .is_sparse = is_sparse};
    for (uint32_t i = count; i-- > 0;) {
        combination->tags[i] = tags[i];
        combination->tag_mask |= 1U << tags[i];
        combination->shifts[tags[i]] = combination->bits;
        combination->bits = (uint8_t)(combination->bits + slots[tags[i]]->bits);
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->at[i].tag_mask == combination->tag_mask) {
            return;
        }
    }
    combination->offset = plan->size;
    plan->size += is_sparse ? 0 : UINT32_C(1) << combination->bits;
    plan->count++;
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
                     uint32_t count, bool is_narrow) {
    uint32_t bits_max = is_narrow ? TAG_DENSE_BITS_LOW : TAG_DENSE_BITS_HIGH, bits = 0;
    uint8_t tags[TAGS_MAX];
    *plan = (struct tag_counts_plan){.number = plan->number + 1, .is_narrow = is_narrow};
    tag_counts_sort(slots, count, tags);
    for (uint32_t i = 0; i < count; i++) {
        if (slots[tags[i]]->bits <= bits_max) {
            tag_counts_choose(plan, slots, &tags[i], 1, false);
        }
    }
    for (uint32_t i = count; i-- > 0 && bits + slots[tags[i]]->bits <= bits_max;) {
        bits += slots[tags[i]]->bits;
        tag_counts_choose(plan, slots, &tags[i], count - i, false);
    }
    if (!is_narrow && count > 0) {
        bits = 0;
        for (uint32_t i = 0; i < count; i++) {
            bits += slots[i]->bits;
        }
        tag_counts_choose(plan, slots, tags, count, bits > TAG_DENSE_BITS_ALL);
    }
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

/* ---- counts ---- */

struct tag_counts *tag_counts_create(const struct tag_counts_plan *plan) {
    size_t width = plan->is_narrow ? sizeof(uint16_t) : sizeof(uint32_t);
    struct tag_counts *counts = memory_allocate_zeroed(sizeof *counts + plan->size * width);
    if (counts != NULL) {
        counts->number = plan->number;
    }
    return counts;
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

static bool tag_counts_add_sparse(struct tag_counts *counts, uint32_t values, uint32_t more) {
    uint32_t at = tag_counts_find(counts, values);
    struct tag_count *count = &counts->sparse[at];
    size_t behind = (counts->sparse_count - at) * sizeof *count;
    if (at < counts->sparse_count && count->values == values) {
        count->count += more;
        if (count->count == 0) {
            memmove(count, count + 1, behind - sizeof *count);
            counts->sparse_count--;
        }
        return true;
    }
    if (counts->sparse_count == counts->sparse_capacity) {
        uint32_t capacity = counts->sparse_capacity + counts->sparse_capacity / 4 + SPARSE_FIRST;
        struct tag_count *sparse = memory_resize(counts->sparse, capacity * sizeof *sparse);
        if (sparse == NULL) {
            return false;
        }
        counts->sparse = sparse;
        counts->sparse_capacity = capacity;
        count = &sparse[at];
    }
    memmove(count + 1, count, behind);
    *count = (struct tag_count){.values = values, .count = more};
    counts->sparse_count++;
    return true;
}

bool tag_counts_add(const struct tags *tags, const struct tag_counts_plan *plan,
                    struct tag_counts *counts, uint32_t code, uint32_t more) {
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct tag_combination *combination = &plan->at[i];
        uint32_t values = tag_counts_values(tags, combination, code);
        if (combination->is_sparse) {
            if (!tag_counts_add_sparse(counts, values, more)) {
                return false;
            }
        } else if (plan->is_narrow) {
            uint16_t *dense = (uint16_t *)(void *)counts->dense + combination->offset;
            dense[values] = (uint16_t)(dense[values] + more);
        } else {
            counts->dense[combination->offset + values] += more;
        }
    }
    return true;
}
