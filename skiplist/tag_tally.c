/* Counting the members of a group by their values: see skiplist/tags.h. */
#include "codec/memory.h"
#include "skiplist/tag_filter.h"

enum { TALLY_FIRST_MAX = 8192 };

struct tally_entry {
    uint32_t code; /* of the tags counted by */
    uint32_t count;
};

/* An open hash table of codes. */
struct tally {
    struct tally_entry *entries;
    uint32_t capacity, count; /* capacity: a power of two */
    uint32_t first;           /* what the capacity begins with */
};

static struct tally_entry *tag_tally_at(const struct tally *tally, uint32_t code) {
    /* The low bits of a code may be those of other tags, which are 0 here: the high bits of the product depend on all. */
    uint32_t at = (uint32_t)((uint64_t)(code * UINT32_C(2654435761)) * tally->capacity >> 32);
    while (tally->entries[at].count != 0 && tally->entries[at].code != code) {
        at = (at + 1) & (tally->capacity - 1);
    }
    return &tally->entries[at];
}

static bool tag_tally_grow(struct tally *tally) {
    struct tally larger = {.capacity = tally->capacity > 0 ? 2 * tally->capacity : tally->first};
    larger.entries = memory_allocate_zeroed(larger.capacity * sizeof *larger.entries);
    if (larger.entries == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < tally->capacity; i++) {
        if (tally->entries[i].count != 0) {
            *tag_tally_at(&larger, tally->entries[i].code) = tally->entries[i];
        }
    }
    larger.count = tally->count;
    larger.first = tally->first;
    memory_free(tally->entries);
    *tally = larger;
    return true;
}

static bool tag_tally_add(struct tally *tally, uint32_t code, uint32_t count) {
    if (count > 0 && tally->count >= tally->capacity / 2 && !tag_tally_grow(tally)) {
        return false;
    }
    if (count > 0) {
        struct tally_entry *entry = tag_tally_at(tally, code);
        tally->count += entry->count == 0;
        entry->code = code;
        entry->count += count;
    }
    return true;
}

/* Room at once for so many codes as `count` entries can have of these tags, if they are not many. */
static uint32_t tag_tally_first(const struct tags *tags, unsigned by_mask, uint32_t count) {
    uint64_t codes = 1;
    uint32_t first = 64;
    for (unsigned i = 0; i < tags->count && codes < TALLY_FIRST_MAX; i++) {
        codes *= (by_mask >> i & 1) != 0 ? tags->slots[i]->values.count + 1 : 1;
    }
    codes = codes < count ? codes : count;
    while (first < TALLY_FIRST_MAX && first / 2 < codes) {
        first *= 2;
    }
    return first;
}

/* What a tally is made from. */
struct tally_task {
    const struct skiplist *list;
    const struct tag_filter *filter;    /* NULL: all */
    const struct tag_combination *rows; /* that have all tags in question; NULL: none */
    unsigned by_mask, tag_mask; /* the tags counted by, and those together with the filter's */
    uint32_t code_mask;         /* of the tags counted by */
    uint32_t work_left;
    struct tally tally;
};

static bool tag_tally_values(struct tally_task *task, const struct tag_combination *combination,
                             uint32_t values, uint32_t count) {
    const struct tags *tags = task->list->tags;
    uint32_t code = 0;
    if (count == 0 ||
        (task->filter != NULL && !tag_filter_matches_values(task->filter, combination, values))) {
        return true;
    }
    for (unsigned i = 0; i < tags->count; i++) {
        if ((task->by_mask >> i & 1) != 0) {
            uint32_t mask = UINT32_MAX >> (TAGS_BITS_MAX - tags->slots[i]->bits);
            code |= sheet_slot_deposit(tags->slots[i], values >> combination->shifts[i] & mask);
        }
    }
    return tag_tally_add(&task->tally, code, count);
}

/* Entries of a sheet, or of a block without one. */
static bool tag_tally_sheet(struct tally_task *task, const struct sheet *sheet, uint32_t from,
                            uint32_t to) {
    const struct tag_filter *filter = task->filter;
    if (sheet == NULL) {
        bool has_all = filter == NULL || tag_filter_matches(filter, 0);
        return tag_tally_add(&task->tally, 0, has_all ? to - from : 0);
    }
    for (uint32_t i = from; i < to; i++) {
        uint32_t code = sheet_get(sheet, i);
        if ((filter == NULL || tag_filter_matches(filter, code)) &&
            !tag_tally_add(&task->tally, code & task->code_mask, 1)) {
            return false;
        }
    }
    return true;
}

static bool tag_tally_block(struct tally_task *task, uint32_t id, uint32_t from, uint32_t to);

/* Children from .. to - 1 from the rows of their parent. *is_done: the rows have what is asked for. false: no memory. */
static bool tag_tally_rows(struct tally_task *task, uint32_t id, uint32_t from, uint32_t to,
                           bool *is_done) {
    const struct skiplist *list = task->list;
    const struct tag_counts_plan *plan = &list->tags->plan;
    struct tag_counts *counts =
        task->rows != NULL ? tag_counts_of(list, id, &task->work_left) : NULL;
    *is_done = counts != NULL;
    for (uint32_t i = from; i < to && *is_done; i++) {
        *is_done = tag_counts_know_child(list, id, counts, i, &task->work_left);
    }
    for (uint32_t value = 0; *is_done && value >> task->rows->bits == 0; value++) {
        uint32_t sum = 0;
        for (uint32_t i = from; i < to; i++) {
            sum += tag_counts_at(plan, counts, task->rows->first_row + value, i);
        }
        if (!tag_tally_values(task, task->rows, value, sum)) {
            return false;
        }
    }
    return true;
}

/* How many values that differ only in tags nobody asks for are side by side in a combination: a power of two. */
static uint32_t tag_tally_unasked(const struct tally_task *task,
                                  const struct tag_combination *combination) {
    uint32_t at = combination->count;
    while (at > 0 && (task->tag_mask >> combination->tags[at - 1] & 1) == 0) {
        at--;
    }
    return UINT32_C(1) << (at > 0 ? combination->shifts[combination->tags[at - 1]]
                                  : combination->bits);
}

static bool tag_tally_dense(struct tally_task *task, const struct tag_counts *counts) {
    const struct tag_combination *dense = &task->list->tags->plan.dense;
    uint32_t unasked = tag_tally_unasked(task, dense);
    for (uint32_t value = 0; value >> dense->bits == 0; value += unasked) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < unasked; i++) {
            sum += counts->dense[value + i];
        }
        if (!tag_tally_values(task, dense, value, sum)) {
            return false;
        }
    }
    return true;
}

static bool tag_tally_sorted(struct tally_task *task, const struct tag_combination *combination,
                             const struct tag_count *sorted, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (!tag_tally_values(task, combination, sorted[i].values, sorted[i].count)) {
            return false;
        }
    }
    return true;
}

/* All of a block above level 1 from its own numbers. The same. */
static bool tag_tally_all(struct tally_task *task, uint32_t id, bool *is_done) {
    const struct tag_counts_plan *plan = &task->list->tags->plan;
    const struct tag_counts *counts = tag_counts_of(task->list, id, &task->work_left);
    bool is_dense = (task->tag_mask & ~plan->dense.tag_mask) == 0;
    *is_done = counts != NULL;
    if (!*is_done || is_dense) {
        return !*is_done || tag_tally_dense(task, counts);
    }
    /* The shortest list that has all tags. */
    uint32_t at = plan->list_count - 1;
    while ((task->tag_mask & ~plan->lists[at].tag_mask) != 0) {
        at--;
    }
    const struct tag_list *list = &counts->lists[at];
    *is_done = !list->is_crowded;
    return tag_tally_sorted(task, &plan->lists[at], list->sorted, list->sorted_count) &&
           tag_tally_sorted(task, &plan->lists[at], list->latest, list->latest_count);
}

/* Whole children of a block above level 1. */
static bool tag_tally_children(struct tally_task *task, uint32_t id, uint32_t from, uint32_t to) {
    struct index_block *index = nodes_index(task->list, id);
    bool is_done = false;
    if (from < to && !tag_tally_rows(task, id, from, to, &is_done)) {
        return false;
    }
    for (uint32_t i = from; i < to && !is_done; i++) {
        uint32_t child = index_children(index)[i];
        bool has_all = false;
        if (skiplist_node(task->list, child)->level > 1 && !tag_tally_all(task, child, &has_all)) {
            return false;
        }
        if (!has_all && !tag_tally_block(task, child, 0, index_span(index, i))) {
            return false;
        }
    }
    return true;
}

/* Entries from .. to - 1 of those below an index block. */
static bool tag_tally_block(struct tally_task *task, uint32_t id, uint32_t from, uint32_t to) {
    struct index_block *index = nodes_index(task->list, id);
    if (index->is_lowest) {
        return tag_tally_sheet(task, sheet_of(task->list, index), from, to);
    }
    uint32_t first = 0, whole_from = 0, whole_to = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        uint32_t span = index_span(index, i), end = first + span;
        if (from <= first && end <= to) {
            whole_from = whole_from == whole_to ? i : whole_from;
            whole_to = i + 1;
        } else if (from < end && first < to) {
            uint32_t begin = from > first ? from - first : 0;
            if (!tag_tally_block(task, index_children(index)[i], begin,
                                 to < end ? to - first : span)) {
                return false;
            }
        }
        first = end;
    }
    return tag_tally_children(task, id, whole_from, whole_to);
}

bool tag_tally(const struct board *board, const struct tag_filter *filter, uint32_t from,
               uint32_t to, unsigned by_mask, tags_visit *visit, void *context) {
    const struct tags *tags = board_tags(board);
    struct tag_values values = {.mask = 0};
    struct tally_task task = {
        .filter = filter, .by_mask = by_mask, .work_left = TAG_COUNTS_READER_WORK};
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
    task.by_mask &= (1U << tags->count) - 1; /* tags that are there */
    task.tag_mask = task.by_mask | (filter != NULL ? filter->tag_mask : 0);
    task.rows = tag_filter_choose(&tags->plan, task.tag_mask);
    task.tally.first = tag_tally_first(tags, task.by_mask, to - from);
    for (unsigned i = 0; i < tags->count; i++) {
        task.code_mask |= (by_mask >> i & 1) != 0 ? tags->slots[i]->mask : 0;
    }
    const struct skiplist *list = task.list;
    uint32_t level = skiplist_node(list, list->root)->level;
    bool is_done = true, has_all = false;
    if (level > 1 && from == 0 && to == list->count && task.rows == NULL) {
        is_done = tag_tally_all(&task, list->root, &has_all);
    }
    if (is_done && !has_all) {
        is_done = level == 0 ? tag_tally_sheet(&task, sheet_of_leaf(list), from, to)
                             : tag_tally_block(&task, list->root, from, to);
    }
    for (uint32_t i = 0; is_done && i < task.tally.capacity; i++) {
        const struct tally_entry *entry = &task.tally.entries[i];
        if (entry->count > 0) {
            tags_read(tags, entry->code, task.by_mask, &values);
            visit(context, &values, entry->count);
        }
    }
    memory_free(task.tally.entries);
    return is_done;
}
