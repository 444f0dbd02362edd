/* See the header. */
#include "skiplist/counts.h"

#include "codec/memory.h"
#include "skiplist/skiplist.h"

enum {
    /* What is as much work as one entry: so many numbers of rows; and what one more value in sorted numbers is. */
    ROWS_PER_WORK = 16,
    SORTED_WORK = 2,
    /* Counts begin by themselves if that is not more work; those of a new root's two children may be more. */
    BEGIN_WORK = 8192,
    BEGIN_WORK_ABOVE = 4 * BEGIN_WORK,
};

static void counts_destroy(struct tags *tags, struct tag_counts *counts) {
    if (counts != NULL) {
        tags->memory_size -= tag_counts_memory_size(counts);
        tag_counts_destroy(counts);
    }
}

/* The known counts of an index block above level 1; those of another plan are forgotten. NULL: none. */
static struct tag_counts *counts_known(struct tags *tags, struct index_block *index) {
    if (index->counts != NULL && index->counts->number != tags->plan.number) {
        counts_destroy(tags, index->counts);
        index->counts = NULL;
    }
    return index->counts;
}

void counts_forget(struct tags *tags, struct index_block *index) {
    counts_destroy(tags, index->counts);
    index->counts = NULL;
}

void counts_drop(struct skiplist *list, uint32_t id) {
    tags_note_gaps(list->tags);
    for (; id != SKIPLIST_NONE; id = skiplist_node(list, id)->parent) {
        if (skiplist_node(list, id)->level > 1) {
            counts_forget(list->tags, nodes_index(list, id));
        }
    }
}

static bool counts_spend(uint32_t *work_left, uint32_t work) {
    if (work > *work_left) {
        return false;
    }
    *work_left -= work;
    return true;
}

/* The numbers of a lowest index block, in the rows of its parent. false: too much work. */
static bool counts_count_lowest(const struct skiplist *list, struct index_block *index,
                                struct tag_counts *counts, uint32_t child, uint32_t *work_left) {
    const struct sheet *sheet = sheet_of(list, index);
    if (!counts_spend(work_left, sheet != NULL ? sheet->count : 1)) {
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
static bool counts_count_higher(const struct skiplist *list, uint32_t id, struct tag_counts *counts,
                                uint32_t child, uint32_t *work_left) {
    const struct tag_counts_plan *plan = &list->tags->plan;
    const struct index_block *index = nodes_index(list, id);
    struct tag_counts *own = counts_of(list, id, work_left);
    if (own == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < index->count; i++) {
        if (!counts_know_child(list, id, own, i, work_left)) {
            return false;
        }
    }
    if (!counts_spend(work_left, plan->row_count * INDEX_FANOUT / ROWS_PER_WORK)) {
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

bool counts_count_child(const struct skiplist *list, uint32_t id, struct tag_counts *counts,
                        uint32_t child, uint32_t *work_left) {
    uint32_t child_id = index_children(nodes_index(list, id))[child];
    bool is_lowest = skiplist_node(list, child_id)->level == 1;
    bool is_known =
        is_lowest ? counts_count_lowest(list, nodes_index(list, child_id), counts, child, work_left)
                  : counts_count_higher(list, child_id, counts, child, work_left);
    if (is_known) {
        counts->unknown &= ~(UINT64_C(1) << child);
    }
    return is_known;
}

/* Is there work left for what the sheets of children from .. to - 1 have? entry_count: how many entries that is. */
static bool counts_spend_for_sheets(const struct skiplist *list, struct index_block *index,
                                    uint32_t from, uint32_t to, uint32_t *work_left,
                                    uint32_t *entry_count) {
    uint32_t each = list->tags->plan.list_count > 0 ? SORTED_WORK : 1, bare = 0;
    *entry_count = 0;
    for (uint32_t i = from; i < to; i++) {
        const struct sheet *sheet = nodes_index(list, index_children(index)[i])->sheet;
        *entry_count += sheet != NULL ? sheet->count : 0;
        bare += sheet == NULL;
    }
    return counts_spend(work_left, *entry_count * each + bare);
}

/* Add what the sheets of children from .. to - 1 have. values: room for those of their entries, one list's after
 * another's, `room` each. false: no memory. */
static bool counts_add_each_sheet(const struct skiplist *list, struct index_block *index,
                                  uint32_t from, uint32_t to, struct tag_counts *counts,
                                  uint32_t *values, uint32_t room) {
    struct tags *tags = list->tags;
    const struct tag_counts_plan *plan = &tags->plan;
    uint32_t count = 0;
    for (uint32_t i = from; i < to; i++) {
        const struct sheet *sheet = sheet_of(list, nodes_index(list, index_children(index)[i]));
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
static bool counts_add_sheets(const struct skiplist *list, struct index_block *index, uint32_t from,
                              uint32_t to, struct tag_counts *counts, uint32_t *work_left) {
    uint32_t *values = NULL, entry_count, lists = list->tags->plan.list_count;
    if (!counts_spend_for_sheets(list, index, from, to, work_left, &entry_count)) {
        return false;
    }
    if (lists > 0) {
        values = memory_allocate(((size_t)entry_count * lists + 1) * sizeof *values);
        if (values == NULL) {
            return false;
        }
    }
    bool is_done = counts_add_each_sheet(list, index, from, to, counts, values, entry_count);
    memory_free(values);
    return is_done;
}

/* What adding a child's counts takes. */
static uint32_t counts_work_of(const struct tag_counts_plan *plan, const struct tag_counts *child) {
    uint32_t size = UINT32_C(1) << plan->dense.bits;
    for (uint32_t i = 0; i < plan->list_count; i++) {
        size += child->lists[i].sorted_count + child->lists[i].latest_count;
    }
    return size / ROWS_PER_WORK + 1;
}

/* The same of children of any level. */
static bool counts_add_children(const struct skiplist *list, uint32_t id, uint32_t from,
                                uint32_t to, struct tag_counts *counts, uint32_t *work_left) {
    const struct tag_counts_plan *plan = &list->tags->plan;
    struct index_block *index = nodes_index(list, id);
    uint64_t work = 0;
    if (skiplist_node(list, id)->level == 2) {
        return counts_add_sheets(list, index, from, to, counts, work_left);
    }
    /* Nothing is added in vain, for whoever comes next would do it again. */
    for (uint32_t i = from; i < to; i++) {
        const struct tag_counts *child =
            counts_known(list->tags, nodes_index(list, index_children(index)[i]));
        work += child != NULL ? counts_work_of(plan, child) : 0;
    }
    if (work > *work_left) {
        return false;
    }
    for (uint32_t i = from; i < to; i++) {
        struct tag_counts *child = counts_of(list, index_children(index)[i], work_left);
        if (child == NULL || !counts_spend(work_left, counts_work_of(plan, child)) ||
            !tag_counts_add_all(plan, counts, child, false)) {
            return false;
        }
    }
    return true;
}

static struct tag_counts *counts_create(const struct skiplist *list, uint32_t id) {
    return tag_counts_create(&list->tags->plan, skiplist_node(list, id)->level == 2);
}

struct tag_counts *counts_of(const struct skiplist *list, uint32_t id, uint32_t *work_left) {
    struct tags *tags = list->tags;
    struct index_block *index = nodes_index(list, id);
    struct tag_counts *counts = counts_known(tags, index);
    if (counts != NULL || *work_left == 0) {
        return counts;
    }
    counts = counts_create(list, id);
    if (counts != NULL && !counts_add_children(list, id, 0, index->count, counts, work_left)) {
        tag_counts_destroy(counts);
        counts = NULL;
    }
    if (counts != NULL) {
        tags->memory_size += tag_counts_memory_size(counts);
        index->counts = counts;
    }
    return counts;
}

/* Add to an index block's counts, which are forgotten if there is no memory for more. */
static void counts_add(struct tags *tags, struct index_block *index, uint32_t child, uint32_t code,
                       uint32_t more) {
    struct tag_counts *counts = index->counts;
    size_t before = tags->plan.list_count > 0 ? tag_counts_lists_size(counts) : 0;
    bool is_done = tag_counts_add(tags, counts, code, more);
    if (tags->plan.list_count > 0) {
        tags->memory_size += tag_counts_lists_size(counts) - before;
    }
    if (!is_done) {
        counts_forget(tags, index);
    } else if ((counts->unknown >> child & 1) == 0) {
        tag_counts_add_to_rows(tags, counts, child, code, more);
    }
}

void counts_begin(const struct skiplist *list, uint32_t leaf) {
    uint32_t id = skiplist_node(list, leaf)->parent;
    while (id != SKIPLIST_NONE && (id = skiplist_node(list, id)->parent) != SKIPLIST_NONE) {
        uint32_t work_left = skiplist_node(list, id)->level == 2 ? BEGIN_WORK : BEGIN_WORK_ABOVE;
        (void)counts_of(list, id, &work_left);
    }
}

void counts_prefetch(const struct skiplist *list, uint32_t leaf, uint32_t code) {
    const struct skiplist_node *node = skiplist_node(list, leaf);
    if (node->parent == SKIPLIST_NONE) {
        return;
    }
    for (node = skiplist_node(list, node->parent); node->parent != SKIPLIST_NONE;
         node = skiplist_node(list, node->parent)) {
        struct tag_counts *counts = nodes_index(list, node->parent)->counts;
        if (counts != NULL && counts->number == list->tags->plan.number) {
            tag_counts_prefetch(list->tags, counts, node->position, code);
        }
    }
}

void counts_add_above(const struct skiplist *list, uint32_t leaf, uint32_t code, uint32_t more) {
    const struct skiplist_node *node = skiplist_node(list, leaf);
    if (node->parent == SKIPLIST_NONE) {
        return;
    }
    for (node = skiplist_node(list, node->parent); node->parent != SKIPLIST_NONE;
         node = skiplist_node(list, node->parent)) {
        struct index_block *index = nodes_index(list, node->parent);
        if (counts_known(list->tags, index) != NULL) {
            counts_add(list->tags, index, node->position, code, more);
        }
    }
}

/* Of children that are not lowest index blocks: are their counts known? */
static bool counts_are_known(const struct skiplist *list, uint32_t id, uint32_t from, uint32_t to) {
    struct index_block *index = nodes_index(list, id);
    for (uint32_t i = from; i < to && skiplist_node(list, id)->level > 2; i++) {
        struct index_block *child = nodes_index(list, index_children(index)[i]);
        if (counts_known(list->tags, child) == NULL) {
            return false;
        }
    }
    return true;
}

void counts_split(struct skiplist *list, uint32_t left_id, struct index_block *right, uint32_t at,
                  bool goes_right) {
    struct tags *tags = list->tags;
    struct index_block *left = nodes_index(list, left_id);
    struct tag_counts *counts = counts_known(tags, left);
    uint32_t from = goes_right ? 0 : at, to = goes_right ? at : left->count;
    uint32_t work_left = UINT32_MAX;
    /* No child's counts may be made now: it may be split itself, with a child of its own in neither half. */
    struct tag_counts *made = counts != NULL && counts_are_known(list, left_id, from, to)
                                  ? counts_create(list, left_id)
                                  : NULL;
    if (made == NULL) {
        counts_forget(tags, left);
        return;
    }
    /* One side is counted, the other is what is left: so the child that is in neither is on its side. */
    tags->memory_size -= tag_counts_memory_size(counts);
    bool is_done = counts_add_children(list, left_id, from, to, made, &work_left) &&
                   tag_counts_add_all(&tags->plan, counts, made, true);
    tags->memory_size += tag_counts_memory_size(counts);
    if (!is_done) {
        tag_counts_destroy(made);
        counts_forget(tags, left);
        return;
    }
    tags->memory_size += tag_counts_memory_size(made);
    tag_counts_copy_children(&tags->plan, made, 0, counts, from, to - from);
    if (goes_right) {
        tag_counts_remove_children(&tags->plan, counts, 0, at);
        left->counts = made;
        right->counts = counts;
    } else {
        right->counts = made;
    }
}

void counts_forget_in_parent(struct skiplist *list, uint32_t id) {
    const struct skiplist_node *node = skiplist_node(list, id);
    if (node->parent != SKIPLIST_NONE && nodes_index(list, node->parent)->counts != NULL) {
        nodes_index(list, node->parent)->counts->unknown |= UINT64_C(1) << node->position;
    }
}

void counts_put_child(struct skiplist *list, uint32_t id, uint32_t position) {
    struct index_block *index = nodes_index(list, id);
    if (index->is_lowest) {
        return;
    }
    if (counts_known(list->tags, index) != NULL) {
        tag_counts_insert_child(&list->tags->plan, index->counts, position);
    }
    uint32_t child = index_children(index)[position];
    uint32_t neighbour = nodes_links(list, child)->previous;
    if (neighbour != SKIPLIST_NONE) {
        counts_forget_in_parent(list, neighbour);
    }
}

void counts_remove_children(struct skiplist *list, uint32_t id, uint32_t position, uint32_t count) {
    struct index_block *index = nodes_index(list, id);
    if (!index->is_lowest && counts_known(list->tags, index) != NULL) {
        tag_counts_remove_children(&list->tags->plan, index->counts, position, count);
    }
}

void counts_merge(struct tags *tags, struct index_block *left, struct index_block *right) {
    struct tag_counts *counts = counts_known(tags, left), *other = counts_known(tags, right);
    bool is_done = false;
    if (counts != NULL && other != NULL) {
        tags->memory_size -= tag_counts_memory_size(counts);
        is_done = tag_counts_add_all(&tags->plan, counts, other, false);
        tags->memory_size += tag_counts_memory_size(counts);
    }
    if (is_done) {
        tag_counts_copy_children(&tags->plan, counts, left->count, other, 0, right->count);
    } else {
        counts_forget(tags, left);
    }
    counts_forget(tags, right);
}

/* ---- checking ---- */

const char *counts_check(const struct skiplist *list, uint32_t id) {
    struct index_block *index = nodes_index(list, id);
    struct tag_counts *counts = index->counts;
    const struct tag_counts_plan *plan = &list->tags->plan;
    const char *wrong = NULL;
    uint32_t work_left = UINT32_MAX;
    if (counts->number != plan->number || !skiplist_is_alive(list, id)) {
        return NULL;
    }
    if (!counts_are_known(list, id, 0, index->count)) {
        return NULL; /* checking must not make any */
    }
    struct tag_counts *anew = counts_create(list, id);
    CHECK(anew != NULL);
    if (counts_add_children(list, id, 0, index->count, anew, &work_left)) {
        wrong = tag_counts_equal(plan, counts, anew)
                    ? NULL
                    : "tags: entries with some values are not counted right";
    }
    for (uint32_t i = 0; i < index->count && wrong == NULL; i++) {
        bool is_known =
            (counts->unknown >> i & 1) == 0 && counts_know_child(list, id, anew, i, &work_left);
        for (uint32_t row = 0; is_known && row < plan->row_count; row++) {
            if (tag_counts_at(plan, counts, row, i) != tag_counts_at(plan, anew, row, i)) {
                wrong = "tags: a child's entries are not counted right";
            }
        }
    }
    tag_counts_destroy(anew);
    return wrong;
}
