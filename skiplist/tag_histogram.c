/* See the header. */
#include "skiplist/tag_histogram.h"

#include <endian.h>

#include "codec/memory.h"
#include "codec/sort.h"
#include "skiplist/tag_filter.h"

enum {
    FIRST_MAX = 8192,
    /* A table with a place for each number is made at once if they have so many bits, and it has at most so many places for
     * each that is counted. */
    DIRECT_BITS = 16,
    DIRECT_PLACES = 4,
};

struct tag_histogram_table tag_histogram_begin(unsigned bits, uint32_t count, uint32_t first_max,
                                               uint64_t seed) {
    uint64_t all = UINT64_C(1) << bits;
    uint32_t first = 64;
    while (first < first_max && first / 2 < count) {
        first *= 2;
    }
    bool is_direct = all <= first || (bits <= DIRECT_BITS && all / DIRECT_PLACES <= count);
    return (struct tag_histogram_table){
        .first = is_direct ? (uint32_t)all : first, .bits = (uint8_t)bits, .seed = seed | 1};
}

bool tag_histogram_grow(struct tag_histogram_table *table) {
    struct tag_histogram_table larger = *table;
    larger.capacity = table->capacity > 0 ? 2 * table->capacity : table->first;
    larger.is_direct = larger.capacity >= UINT64_C(1) << table->bits;
    larger.shift = (uint8_t)(64 - __builtin_ctz(larger.capacity));
    larger.entries = memory_allocate_zeroed(larger.capacity * sizeof *larger.entries);
    if (larger.entries == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->entries[i].count != 0) {
            *tag_histogram_at(&larger, table->entries[i].number) = table->entries[i];
        }
    }
    memory_free(table->entries);
    *table = larger;
    return true;
}

/* What a histogram is made from. */
struct histogram_task {
    const struct skiplist *list;
    const struct tag_filter *filter;    /* NULL: all */
    const struct tag_combination *rows; /* that have all tags in question; NULL: none */
    unsigned tag_mask;                  /* the tags counted by, and those of the filter */
    uint32_t work_left;
    uint32_t by_count;
    const struct tag_histogram *made;       /* the tags counted by, */
    const struct tag_slot *slots[TAGS_MAX]; /* and of each of these what it has in codes */
    struct tag_histogram_table table;
};

static bool tag_histogram_add_values(struct histogram_task *task,
                                     const struct tag_combination *combination, uint32_t values,
                                     uint32_t count) {
    uint32_t own = 0;
    if (count == 0 ||
        (task->filter != NULL && !tag_filter_matches_values(task->filter, combination, values))) {
        return true;
    }
    for (uint32_t i = 0; i < task->by_count; i++) {
        const struct tag_histogram_by *by = &task->made->by[i];
        own |= (values >> combination->shifts[by->tag] & by->mask) << by->shift;
    }
    return tag_histogram_add(&task->table, own, count);
}

/* Entries of a sheet, or of a block without one. */
static bool tag_histogram_sheet(struct histogram_task *task, const struct sheet *sheet,
                                uint32_t from, uint32_t to) {
    const struct tag_filter *filter = task->filter;
    if (sheet == NULL) {
        bool has_all = filter == NULL || tag_filter_matches(filter, 0);
        return tag_histogram_add(&task->table, 0, has_all ? to - from : 0);
    }
    for (uint32_t i = from; i < to; i++) {
        uint32_t code = sheet_get(sheet, i), values = 0;
        if (filter != NULL && !tag_filter_matches(filter, code)) {
            continue;
        }
        for (uint32_t b = 0; b < task->by_count; b++) {
            values |= sheet_slot_extract(task->slots[b], code) << task->made->by[b].shift;
        }
        if (!tag_histogram_add(&task->table, values, 1)) {
            return false;
        }
    }
    return true;
}

static bool tag_histogram_block(struct histogram_task *task, uint32_t id, uint32_t from,
                                uint32_t to);

/* Children from .. to - 1 from the rows of their parent. *is_done: the rows have what is asked for. false: no memory. */
static bool tag_histogram_rows(struct histogram_task *task, uint32_t id, uint32_t from, uint32_t to,
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
        if (!tag_histogram_add_values(task, task->rows, value, sum)) {
            return false;
        }
    }
    return true;
}

static bool tag_histogram_dense(struct histogram_task *task, const struct tag_counts *counts) {
    const struct tag_combination *dense = &task->list->tags->plan.dense;
    /* How many values that differ only in tags nobody asks for are side by side: a power of two. */
    uint32_t at = dense->count;
    while (at > 0 && (task->tag_mask >> dense->tags[at - 1] & 1) == 0) {
        at--;
    }
    uint32_t unasked = UINT32_C(1) << (at > 0 ? dense->shifts[dense->tags[at - 1]] : dense->bits);
    for (uint32_t value = 0; value >> dense->bits == 0; value += unasked) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < unasked; i++) {
            sum += counts->dense[value + i];
        }
        if (!tag_histogram_add_values(task, dense, value, sum)) {
            return false;
        }
    }
    return true;
}

static bool tag_histogram_sorted(struct histogram_task *task,
                                 const struct tag_combination *combination,
                                 const struct tag_count *sorted, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (!tag_histogram_add_values(task, combination, sorted[i].values, sorted[i].count)) {
            return false;
        }
    }
    return true;
}

/* All of a block above level 1 from its own numbers. The same. */
static bool tag_histogram_all(struct histogram_task *task, uint32_t id, bool *is_done) {
    const struct tag_counts_plan *plan = &task->list->tags->plan;
    const struct tag_counts *counts = tag_counts_of(task->list, id, &task->work_left);
    bool is_dense = (task->tag_mask & ~plan->dense.tag_mask) == 0;
    *is_done = counts != NULL;
    if (!*is_done || is_dense) {
        return !*is_done || tag_histogram_dense(task, counts);
    }
    /* The shortest list that has all tags. */
    uint32_t at = plan->list_count - 1;
    while ((task->tag_mask & ~plan->lists[at].tag_mask) != 0) {
        at--;
    }
    const struct tag_list *list = &counts->lists[at];
    *is_done = !list->is_crowded;
    return tag_histogram_sorted(task, &plan->lists[at], list->sorted, list->sorted_count) &&
           tag_histogram_sorted(task, &plan->lists[at], list->latest, list->latest_count);
}

/* Whole children of a block above level 1. */
static bool tag_histogram_children(struct histogram_task *task, uint32_t id, uint32_t from,
                                   uint32_t to) {
    struct index_block *index = index_at(task->list, id);
    bool is_done = false;
    if (from < to && !tag_histogram_rows(task, id, from, to, &is_done)) {
        return false;
    }
    for (uint32_t i = from; i < to && !is_done; i++) {
        uint32_t child = index_children(index)[i];
        bool has_all = false;
        if (skiplist_node(task->list, child)->level > 1 &&
            !tag_histogram_all(task, child, &has_all)) {
            return false;
        }
        if (!has_all && !tag_histogram_block(task, child, 0, index_span(index, i))) {
            return false;
        }
    }
    return true;
}

/* Entries from .. to - 1 of those below an index block. */
static bool tag_histogram_block(struct histogram_task *task, uint32_t id, uint32_t from,
                                uint32_t to) {
    struct index_block *index = index_at(task->list, id);
    if (index->is_lowest) {
        return tag_histogram_sheet(task, sheet_of(task->list, index), from, to);
    }
    uint32_t first = 0, whole_from = 0, whole_to = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        uint32_t span = index_span(index, i), end = first + span;
        if (from <= first && end <= to) {
            whole_from = whole_from == whole_to ? i : whole_from;
            whole_to = i + 1;
        } else if (from < end && first < to) {
            uint32_t begin = from > first ? from - first : 0;
            if (!tag_histogram_block(task, index_children(index)[i], begin,
                                     to < end ? to - first : span)) {
                return false;
            }
        }
        first = end;
    }
    return tag_histogram_children(task, id, whole_from, whole_to);
}

/* Count what is asked for. false: no memory. */
static bool tag_histogram_list(struct histogram_task *task, uint32_t from, uint32_t to) {
    const struct skiplist *list = task->list;
    uint32_t level = skiplist_node(list, list->root)->level;
    bool is_done = true, has_all = false;
    if (level > 1 && from == 0 && to == list->count && task->rows == NULL) {
        is_done = tag_histogram_all(task, list->root, &has_all);
    }
    if (!is_done || has_all) {
        return is_done;
    }
    return level == 0 ? tag_histogram_sheet(task, sheet_of_leaf(list), from, to)
                      : tag_histogram_block(task, list->root, from, to);
}

static struct bytes tag_histogram_text(const struct tag_slot *slot, uint32_t value) {
    return value != 0 ? tags_dictionary_value(&slot->values, value) : (struct bytes){.size = 0};
}

/* Put entries in the order of their values, whose first `depth` bytes are equal: by the next eight bytes of each, then those
 * that have these in common by the next. */
static void tag_histogram_order_texts(const struct tag_slot *slot,
                                      const struct tag_histogram_table *used,
                                      struct sort_record *order, struct sort_record *spare,
                                      uint32_t count, uint32_t depth) {
    struct bytes first = tag_histogram_text(slot, used->entries[order[0].index].number);
    uint32_t from = depth,
             common =
                 (uint32_t)
                     first.size; /* bytes that all have in common, if they are more than eight */
    do {
        depth = from;
        for (uint32_t i = 0; i < count; i++) {
            struct bytes text = tag_histogram_text(slot, used->entries[order[i].index].number);
            uint64_t next = 0;
            if (text.size > depth) {
                memcpy(&next, text.at + depth,
                       text.size - depth < sizeof next ? text.size - depth : sizeof next);
            }
            order[i].word = depth <= TAG_VALUE_MAX ? be64toh(next) : text.size;
            while (common > depth + sizeof next &&
                   (text.size < common || memcmp(text.at, first.at, common) != 0)) {
                common--;
            }
        }
        from = common;
    } while (count > 1 && from > depth + sizeof order->word);
    sort_records(order, spare, count);
    for (uint32_t begin = 0, end = 0; begin < count && depth <= TAG_VALUE_MAX; begin = end) {
        while (end < count && order[end].word == order[begin].word) {
            end++;
        }
        if (end - begin > 1) {
            tag_histogram_order_texts(slot, used, order + begin, spare, end - begin,
                                      depth + (uint32_t)sizeof order->word);
        }
    }
}

/* Put values of a tag in order. The count of each becomes its place, and 1. false: no memory. */
static bool tag_histogram_order(const struct tag_slot *slot, struct tag_histogram_table *used,
                                struct tag_histogram_value **values) {
    struct sort_record *order = memory_allocate(2 * ((size_t)used->count + 1) * sizeof *order);
    uint32_t count = 0;
    *values = memory_allocate(((size_t)used->count + 1) * sizeof **values);
    if (order == NULL || *values == NULL) {
        memory_free(order);
        return false;
    }
    for (uint32_t i = 0; i < used->capacity; i++) {
        if (used->entries[i].count != 0) {
            order[count++].index = i;
        }
    }
    if (count > 0) {
        tag_histogram_order_texts(slot, used, order, order + count, count, 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct tag_histogram_entry *entry = &used->entries[order[i].index];
        (*values)[i].text = tag_histogram_text(slot, entry->number);
        entry->count = i + 1;
    }
    memory_free(order);
    return true;
}

/* Rows of what has been counted: the values of each tag by their places among all, then most first. order: room for two
 * records of each. false: no memory. */
static bool tag_histogram_sort(const struct histogram_task *task, struct tag_histogram *made,
                               struct sort_record *order) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < task->table.capacity; i++) {
        const struct tag_histogram_entry *entry = &task->table.entries[i];
        if (entry->count > 0) {
            uint64_t fewer = UINT32_MAX - entry->count;
            order[count++] = (struct sort_record){.word = fewer << 32, .index = entry->number};
        }
    }
    for (uint32_t b = 0; b < task->by_count; b++) {
        struct tag_histogram_by *by = &made->by[b];
        /* Made for all at once: they come in the order of the table they were counted in, which would fill a smaller one
         * from its beginning on, and each would be looked for behind those before it. */
        uint32_t values = task->slots[b]->values.count + 1;
        struct tag_histogram_table used = tag_histogram_begin(
            task->slots[b]->bits, values < count ? values : count, UINT32_MAX, task->table.seed);
        bool is_done = true;
        for (uint32_t i = 0; i < count && is_done; i++) {
            is_done = tag_histogram_add(&used, order[i].index >> by->shift & by->mask, 1);
        }
        is_done = is_done && tag_histogram_order(task->slots[b], &used, &by->values);
        for (uint32_t i = 0; i < count && is_done; i++) {
            uint32_t value = order[i].index >> by->shift & by->mask;
            order[i].word |= (uint64_t)(tag_histogram_at(&used, value)->count - 1) << by->shift;
        }
        memory_free(used.entries);
        if (!is_done) {
            return false;
        }
    }
    sort_records(order, order + count, count);
    made->count = count;
    for (uint32_t i = 0; i < count; i++) {
        made->rows[i] =
            (struct tag_histogram_row){.values = (uint32_t)order[i].word,
                                       .count = UINT32_MAX - (uint32_t)(order[i].word >> 32)};
    }
    return true;
}

/* The same, after counting. */
static bool tag_histogram_count(struct histogram_task *task, uint32_t from, uint32_t to,
                                struct tag_histogram *made) {
    if (!tag_histogram_list(task, from, to)) {
        return false;
    }
    size_t room = (size_t)task->table.count + 1;
    struct sort_record *order = memory_allocate(2 * room * sizeof *order);
    made->rows = memory_allocate(room * sizeof *made->rows);
    bool is_done = order != NULL && made->rows != NULL && tag_histogram_sort(task, made, order);
    memory_free(order);
    return is_done;
}

/* Of a board without values: all are in one row. */
static bool tag_histogram_valueless(uint32_t count, struct tag_histogram *made) {
    made->rows = memory_allocate(sizeof *made->rows);
    bool is_done = made->rows != NULL;
    for (uint32_t b = 0; b < made->by_count; b++) {
        made->by[b].values = memory_allocate_zeroed(sizeof *made->by[b].values);
        is_done = is_done && made->by[b].values != NULL;
    }
    if (is_done) {
        made->count = 1;
        made->rows[0] = (struct tag_histogram_row){.count = count};
    }
    return is_done;
}

bool tag_histogram_make(const struct board *board, const struct tag_filter *filter, uint32_t from,
                        uint32_t to, const unsigned *by, uint32_t by_count,
                        struct tag_histogram *made) {
    const struct tags *tags = board_tags(board);
    struct histogram_task task = {
        .filter = filter, .by_count = by_count, .made = made, .work_left = TAG_COUNTS_READER_WORK};
    unsigned bits = 0;
    CHECK(from <= to);
    CHECK(to <= board_count(board));
    CHECK(by_count <= TAGS_MAX);
    *made = (struct tag_histogram){.by_count = by_count};
    if (from == to || (filter != NULL && filter->is_nobody)) {
        return true;
    }
    if (tags == NULL) {
        return tag_histogram_valueless(to - from, made);
    }
    task.list = &board->large->list;
    task.tag_mask = filter != NULL ? filter->tag_mask : 0;
    for (uint32_t b = by_count; b-- > 0;) {
        CHECK(by[b] < tags->count);
        task.slots[b] = tags->slots[by[b]];
        task.tag_mask |= 1U << by[b];
        made->by[b] =
            (struct tag_histogram_by){.tag = (uint8_t)by[b],
                                      .shift = (uint8_t)bits,
                                      .mask = UINT32_MAX >> (TAGS_BITS_MAX - task.slots[b]->bits)};
        bits += task.slots[b]->bits;
    }
    task.rows = tag_filter_choose(&tags->plan, task.tag_mask);
    task.table = tag_histogram_begin(bits, to - from, FIRST_MAX, tags->hash_seed);
    bool is_done = tag_histogram_count(&task, from, to, made);
    memory_free(task.table.entries);
    return is_done;
}

void tag_histogram_deinit(struct tag_histogram *made) {
    for (uint32_t b = 0; b < made->by_count; b++) {
        memory_free(made->by[b].values);
    }
    memory_free(made->rows);
}
