/* Reading inside a group: see skiplist/tags.h.
 *
 * A rank inside a group is a sum, as a rank is: the matching codes in the sheet before the place, and on each
 * level above, what is counted below the blocks to the left. */
#include "codec/memory.h"
#include "skiplist/tag_filter.h"

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

/* The same of a filter whose values are listed as codes, 32 bytes at a time. A value with bits beyond the type's is in
 * none of them; values of one test differ, so a code is flipped once at most. */
#define COUNT_LISTED(name, type, vector, rounds)                                                   \
    static uint32_t name(const type *codes, uint32_t count, const struct tag_filter *filter) {     \
        vector equals[FILTER_CODES], masks[TAGS_MAX], flips[TAGS_MAX];                             \
        uint32_t ends[TAGS_MAX], end = 0, code = 0, sum = 0, i = 0;                                \
        enum { LANES = sizeof(vector) / sizeof(type) };                                            \
        const uint32_t tests = filter->count;                                                      \
        for (uint32_t t = 0; t < tests; t++) {                                                     \
            const struct filter_test *test = &filter->tests[t];                                    \
            masks[t] = (vector){0} + (type)test->slot->mask;                                       \
            flips[t] = (vector){0} + (type)(test->is_excluding ? -1 : 0);                          \
            for (uint32_t v = 0; v < test->count; v++, code++) {                                   \
                equals[end] = (vector){0} + (type)filter->codes[code];                             \
                end += filter->codes[code] == (type)filter->codes[code];                           \
            }                                                                                      \
            ends[t] = end;                                                                         \
        }                                                                                          \
        while (i + 2 * LANES <= count) {                                                           \
            vector matches = {0};                                                                  \
            for (uint32_t r = 0; r < (rounds) && i + 2 * LANES <= count; r++, i += 2 * LANES) {    \
                vector left, right, all_left = ~(vector){0}, all_right = ~(vector){0};             \
                memcpy(&left, codes + i, sizeof left);                                             \
                memcpy(&right, codes + i + LANES, sizeof right);                                   \
                for (uint32_t t = 0, v = 0; t < tests; t++) {                                      \
                    vector value_left = left & masks[t], value_right = right & masks[t];           \
                    vector is_left = flips[t], is_right = flips[t];                                \
                    for (; v < ends[t]; v++) {                                                     \
                        is_left ^= (vector)(value_left == equals[v]);                              \
                        is_right ^= (vector)(value_right == equals[v]);                            \
                    }                                                                              \
                    all_left &= is_left;                                                           \
                    all_right &= is_right;                                                         \
                }                                                                                  \
                matches -= all_left + all_right;                                                   \
            }                                                                                      \
            for (uint32_t lane = 0; lane < LANES; lane++) {                                        \
                sum += matches[lane];                                                              \
            }                                                                                      \
        }                                                                                          \
        for (; i < count; i++) {                                                                   \
            sum += tag_filter_matches(filter, codes[i]);                                           \
        }                                                                                          \
        return sum;                                                                                \
    }
COUNT_LISTED(tag_group_listed8, uint8_t, codes8, 127)
COUNT_LISTED(tag_group_listed16, uint16_t, codes16, 2048)
COUNT_LISTED(tag_group_listed32, uint32_t, codes32, 2048)

/* No code of a sheet has the bits beyond its width. */
/* Matching entries among `count` from `from` on. */
static uint32_t tag_group_count_in(const struct sheet *sheet, const struct tag_filter *filter,
                                   uint32_t from, uint32_t count) {
    if (filter->is_nobody) {
        return 0;
    }
    if (sheet == NULL) {
        return tag_filter_matches(filter, 0) ? count : 0;
    }
    const void *codes = (const char *)sheet_codes(sheet) + (size_t)from * sheet->width;
    if (filter->is_simple) {
        uint32_t mask = filter->mask, equal = filter->equal, sum = 0;
        if (sheet->width == 4 || equal >> 8 * sheet->width == 0) {
            sum = sheet->width == 1   ? tag_group_count8(codes, count, mask, equal)
                  : sheet->width == 2 ? tag_group_count16(codes, count, mask, equal)
                                      : tag_group_count32(codes, count, mask, equal);
        }
        return filter->is_inverse ? count - sum : sum;
    }
    if (filter->code_count > 0) {
        return sheet->width == 1   ? tag_group_listed8(codes, count, filter)
               : sheet->width == 2 ? tag_group_listed16(codes, count, filter)
                                   : tag_group_listed32(codes, count, filter);
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += tag_filter_matches(filter, sheet_get(sheet, from + i));
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
        if (tag_filter_matches(filter, sheet_get(sheet, at)) && nth-- == 0) {
            return at;
        }
    }
}

/* ---- in the list ---- */

static uint32_t tag_group_count_first(const struct skiplist *list, uint32_t id, uint32_t count,
                                      struct tag_filter *filter, uint32_t *work_left);

/* Do the rows tell how many of a child match? Of a group that has none, only that it is nobody. */
static bool tag_group_rows_tell(const struct skiplist *list, const struct tag_filter *filter,
                                struct index_block *index, uint32_t child, uint32_t *sum) {
    const struct tag_counts_plan *plan = &list->tags->plan;
    if (filter->rows.combination != NULL) {
        *sum = tag_filter_sum_children(&filter->rows, plan, index, child, child + 1);
        return true;
    }
    *sum = 0;
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct filter_reader *reader = &filter->singles[i];
        if (reader->combination != NULL &&
            tag_filter_sum_children(reader, plan, index, child, child + 1) == 0) {
            return true;
        }
    }
    return false;
}

/* Matching entries below a child of an index block above level 1. */
static uint32_t tag_group_count_child(const struct skiplist *list, uint32_t id, uint32_t child,
                                      struct tag_filter *filter, uint32_t *work_left) {
    struct index_block *index = nodes_index(list, id);
    const struct tag_counts_plan *plan = &list->tags->plan;
    uint32_t child_id = index_children(index)[child], sum;
    struct tag_counts *counts = tag_counts_of(list, id, work_left);
    if (counts != NULL && tag_counts_know_child(list, id, counts, child, work_left) &&
        tag_group_rows_tell(list, filter, index, child, &sum)) {
        return sum;
    }
    struct index_block *below = nodes_index(list, child_id);
    uint32_t span = index_span(index, child), in_rest = 0;
    if (below->is_lowest) {
        filter->marks.read += span;
        return tag_group_count_in(sheet_of(list, below), filter, 0, span);
    }
    const struct tag_counts *own =
        filter->has_sums ? tag_counts_of(list, child_id, work_left) : NULL;
    if (own != NULL && filter->rest.combination != NULL) {
        bool is_known = counts != NULL && tag_counts_know_child(list, id, counts, child, work_left);
        own = is_known ? own : NULL;
        in_rest =
            is_known ? tag_filter_sum_children(&filter->rest, plan, index, child, child + 1) : 0;
    }
    if (own != NULL &&
        tag_filter_sum(filter, plan, own, span, in_rest, &sum, &filter->marks.read)) {
        return sum;
    }
    return tag_group_count_first(list, child_id, below->count, filter, work_left);
}

/* Start the cache misses of children that are going to be read one after another: nodes, blocks, sheets. */
static void tag_group_fetch_children(const struct skiplist *list, uint32_t id, uint32_t from,
                                     uint32_t to, const struct tag_filter *filter) {
    const uint32_t *children = index_children(nodes_index(list, id));
    bool is_lowest = skiplist_node(list, id)->level == 2;
    for (uint32_t i = from; i < to; i++) {
        prefetch_line(skiplist_node(list, children[i]));
    }
    for (uint32_t i = from; i < to; i++) {
        prefetch_line(&nodes_index(list, children[i])->sheet);
    }
    for (uint32_t i = from; i < to && is_lowest; i++) {
        const struct sheet *sheet = nodes_index(list, children[i])->sheet;
        if (sheet != NULL) {
            prefetch_lines(sheet, sizeof *sheet + 128);
        }
    }
    for (uint32_t i = from; i < to && !is_lowest; i++) {
        const struct tag_counts *counts = nodes_index(list, children[i])->counts;
        if (counts != NULL && filter->dense.range_count > 0) {
            prefetch_line(counts);
            prefetch_line(counts->dense + filter->dense.ranges[0].first);
        }
    }
}

/* The same of one that is next, as a whole. */
static void tag_group_fetch_sheet(const struct skiplist *list, uint32_t id, uint32_t child) {
    const struct index_block *index =
        nodes_index(list, index_children(nodes_index(list, id))[child]);
    if (index->is_lowest && index->sheet != NULL) {
        prefetch_lines(index->sheet,
                       sizeof *index->sheet + (size_t)index->sheet->count * index->sheet->width);
    }
}

/* The same of children from .. to - 1, one by one. */
static uint32_t tag_group_count_each(const struct skiplist *list, uint32_t id, uint32_t from,
                                     uint32_t to, struct tag_filter *filter, uint32_t *work_left) {
    uint32_t sum = 0;
    if (from < to) {
        tag_group_fetch_children(list, id, from, to, filter);
    }
    for (uint32_t i = from; i < to; i++) {
        if (i + 1 < to) {
            tag_group_fetch_sheet(list, id, i + 1);
        }
        sum += tag_group_count_child(list, id, i, filter, work_left);
    }
    return sum;
}

/* Do its own numbers tell all that is below an index block? */
static bool tag_group_sum_own(const struct skiplist *list, uint32_t id, struct tag_filter *filter,
                              uint32_t *work_left, uint32_t *sum) {
    struct index_block *index = nodes_index(list, id);
    if (!filter->has_sums || filter->rest.combination != NULL) {
        return false;
    }
    const struct tag_counts *counts = tag_counts_of(list, id, work_left);
    return counts != NULL &&
           tag_filter_sum(filter, &list->tags->plan, counts, index_span_sum(index, index->count), 0,
                          sum, &filter->marks.read);
}

/* The same of its first `count` children. Without rows, of more than half of them: all but the others. */
static uint32_t tag_group_count_first(const struct skiplist *list, uint32_t id, uint32_t count,
                                      struct tag_filter *filter, uint32_t *work_left) {
    struct index_block *index = nodes_index(list, id);
    bool has_rows = filter->rows.combination != NULL;
    struct tag_counts *counts = has_rows && count > 0 ? tag_counts_of(list, id, work_left) : NULL;
    uint32_t sum, known = 0;
    if (!has_rows && count > index->count / 2U + 1 && count < index->count &&
        tag_group_sum_own(list, id, filter, work_left, &sum)) {
        return sum - tag_group_count_each(list, id, count, index->count, filter, work_left);
    }
    while (counts != NULL && known < count &&
           tag_counts_know_child(list, id, counts, known, work_left)) {
        known++;
    }
    sum =
        known > 0 ? tag_filter_sum_children(&filter->rows, &list->tags->plan, index, 0, known) : 0;
    return sum + tag_group_count_each(list, id, known, count, filter, work_left);
}

/* All of a list. */
static uint32_t tag_group_count_all(const struct skiplist *list, struct tag_filter *filter,
                                    uint32_t *work_left) {
    const struct skiplist_node *root = skiplist_node(list, list->root);
    if (root->level == 0) {
        return tag_group_count_in(sheet_of_leaf(list), filter, 0, list->count);
    }
    struct index_block *index = root->block;
    if (root->level == 1) {
        return tag_group_count_in(sheet_of(list, index), filter, 0, list->count);
    }
    uint32_t sum;
    if (filter->rows.combination == NULL &&
        tag_group_sum_own(list, list->root, filter, work_left, &sum)) {
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

/* Matching entries above a place, also one behind a leaf's last. */
static uint32_t tag_group_count_before(const struct skiplist *list, struct skiplist_place place,
                                       struct tag_filter *filter, uint32_t *work_left) {
    uint32_t first, count;
    const struct sheet *sheet = tag_group_sheet(list, place.leaf, &first, &count);
    uint32_t sum = tag_group_count_in(sheet, filter, 0, first + place.index);
    const struct skiplist_node *node = skiplist_node(list, place.leaf);
    if (node->parent == SKIPLIST_NONE) {
        return sum;
    }
    for (node = skiplist_node(list, node->parent); node->parent != SKIPLIST_NONE;
         node = skiplist_node(list, node->parent)) {
        sum += tag_group_count_first(list, node->parent, node->position, filter, work_left);
    }
    return sum;
}

/* ---- marks ---- */

/* Mark the lowest index blocks below a block. */
static void tag_group_mark(const struct skiplist *list, uint32_t id, struct tag_filter *filter,
                           uint32_t *rank, uint32_t *inside) {
    struct index_block *index = nodes_index(list, id);
    struct filter_marks *marks = &filter->marks;
    if (!index->is_lowest) {
        tag_group_fetch_children(list, id, 0, index->count, filter);
        for (uint32_t i = 0; i < index->count; i++) {
            if (i + 1U < index->count) {
                tag_group_fetch_sheet(list, id, i + 1);
            }
            tag_group_mark(list, index_children(index)[i], filter, rank, inside);
        }
        return;
    }
    uint32_t span = index_narrow_sum(index, index->count);
    marks->at[marks->count++] = (struct filter_mark){id, *rank, *inside};
    *rank += span;
    *inside += tag_group_count_in(sheet_of(list, index), filter, 0, span);
}

static uint32_t tag_group_count_lowest(const struct skiplist *list, uint32_t id) {
    struct index_block *index = nodes_index(list, id);
    uint32_t count = 0;
    if (skiplist_node(list, id)->level == 2) {
        return index->count;
    }
    for (uint32_t i = 0; i < index->count; i++) {
        count += tag_group_count_lowest(list, index_children(index)[i]);
    }
    return count;
}

/* Are there marks? They are made when it is time for it. Without memory for them the group is read as before. */
static bool tag_group_has_marks(const struct skiplist *list, struct tag_filter *filter) {
    struct filter_marks *marks = &filter->marks;
    uint32_t rank = 0, inside = 0;
    if (marks->at == NULL && marks->read > list->count &&
        skiplist_node(list, list->root)->level > 1) {
        marks->read = 0;
        marks->at = memory_allocate(tag_group_count_lowest(list, list->root) * sizeof *marks->at);
        if (marks->at != NULL) {
            tag_group_mark(list, list->root, filter, &rank, &inside);
        }
    }
    return marks->at != NULL;
}

/* The last mark whose rank (or place inside the group) is at most this one. */
static const struct filter_mark *tag_group_find_mark(const struct filter_marks *marks,
                                                     uint32_t place, bool is_inside) {
    uint32_t low = 0, count = marks->count;
    while (count > 1) {
        uint32_t half = count / 2;
        const struct filter_mark *mark = &marks->at[low + half];
        bool is_behind = (is_inside ? mark->inside : mark->rank) <= place;
        low = is_behind ? low + half : low;
        count = is_behind ? count - half : half;
    }
    return &marks->at[low];
}

static uint32_t tag_group_count_marked(const struct skiplist *list, const struct tag_filter *filter,
                                       uint32_t ranks) {
    const struct filter_mark *mark = tag_group_find_mark(&filter->marks, ranks - 1, false);
    return mark->inside + tag_group_count_in(sheet_of(list, nodes_index(list, mark->id)), filter, 0,
                                             ranks - mark->rank);
}

/* false: the group has no more. */
static bool tag_group_find_marked(const struct skiplist *list, const struct tag_filter *filter,
                                  uint32_t nth, uint32_t *rank) {
    const struct filter_mark *mark = tag_group_find_mark(&filter->marks, nth, true);
    struct index_block *index = nodes_index(list, mark->id);
    const struct sheet *sheet = sheet_of(list, index);
    uint32_t span = index_narrow_sum(index, index->count);
    bool is_last = mark == &filter->marks.at[filter->marks.count - 1];
    if (is_last && nth - mark->inside >= tag_group_count_in(sheet, filter, 0, span)) {
        return false;
    }
    *rank = mark->rank + tag_group_find_in(sheet, filter, 0, span, nth - mark->inside);
    return true;
}

/* ---- what is asked for ---- */

uint32_t tag_group_count(const struct board *board, struct tag_filter *filter, uint32_t ranks) {
    const struct tags *tags = board_tags(board);
    CHECK(ranks <= board_count(board));
    if (filter->is_nobody || ranks == 0) {
        return 0;
    }
    if (tags == NULL) {
        return ranks;
    }
    const struct skiplist *list = &board->large->list;
    uint32_t work_left = TAG_COUNTS_READER_WORK;
    if (tag_group_has_marks(list, filter)) {
        return tag_group_count_marked(list, filter, ranks);
    }
    if (ranks == list->count) {
        return tag_group_count_all(list, filter, &work_left);
    }
    struct skiplist_place last = skiplist_at(list, ranks - 1);
    last.index++;
    return tag_group_count_before(list, last, filter, &work_left);
}

uint32_t tag_group_rank(const struct board *board, struct tag_filter *filter,
                        const struct board_member *member) {
    struct skiplist_place place = {.leaf = member->leaf, .index = member->index};
    uint32_t work_left = TAG_COUNTS_READER_WORK;
    if (filter->is_nobody) {
        return 0;
    }
    if (board_tags(board) == NULL) {
        return board_rank_of(board, member);
    }
    if (tag_group_has_marks(&board->large->list, filter)) {
        return tag_group_count(board, filter, board_rank_of(board, member));
    }
    return tag_group_count_before(&board->large->list, place, filter, &work_left);
}

/* The place, among the `span` entries below a block (or in the only leaf), of the nth that matches: there are so
 * many. */
static uint32_t tag_group_descend(const struct skiplist *list, uint32_t id, uint32_t span,
                                  struct tag_filter *filter, uint32_t nth, uint32_t *work_left) {
    uint32_t first = 0, level = skiplist_node(list, id)->level;
    for (; level > 1; level--) {
        struct index_block *index = nodes_index(list, id);
        uint32_t i = 0, here;
        for (; span = index_span(index, i),
               nth >= (here = tag_group_count_child(list, id, i, filter, work_left));
             i++) {
            nth -= here;
            first += span;
        }
        id = index_children(index)[i];
    }
    const struct sheet *sheet =
        level == 0 ? sheet_of_leaf(list) : sheet_of(list, nodes_index(list, id));
    return first + tag_group_find_in(sheet, filter, 0, span, nth);
}

bool tag_group_find(const struct board *board, struct tag_filter *filter, uint32_t nth,
                    uint32_t *rank) {
    if (filter->is_nobody || nth >= board_count(board)) {
        return false;
    }
    *rank = nth;
    if (board_tags(board) == NULL) {
        return true;
    }
    const struct skiplist *list = &board->large->list;
    uint32_t work_left = TAG_COUNTS_READER_WORK;
    if (tag_group_has_marks(list, filter)) {
        return tag_group_find_marked(list, filter, nth, rank);
    }
    if (nth >= tag_group_count_all(list, filter, &work_left)) {
        return false;
    }
    *rank = tag_group_descend(list, list->root, list->count, filter, nth, &work_left);
    return true;
}

bool tag_group_has(const struct board *board, const struct tag_filter *filter,
                   const struct board_member *member) {
    const struct tags *tags = board_tags(board);
    if (tags == NULL || filter->is_nobody) {
        return !filter->is_nobody;
    }
    const struct skiplist *list = &board->large->list;
    struct skiplist_place place = {.leaf = member->leaf, .index = member->index};
    return tag_filter_matches(filter, sheet_code(list, place));
}

/* The first of a sheet that matches, from `at` to `end` - 1; end: none. */
static uint32_t tag_group_next_in(const struct sheet *sheet, const struct tag_filter *filter,
                                  uint32_t at, uint32_t end) {
    enum { NEAR = 16 }; /* of a large group one is near */
    for (uint32_t i = 0; i < NEAR && at < end; i++, at++) {
        if (tag_filter_matches(filter, sheet != NULL ? sheet_get(sheet, at) : 0)) {
            return at;
        }
    }
    return tag_group_count_in(sheet, filter, at, end - at) > 0
               ? tag_group_find_in(sheet, filter, at, end - at, 0)
               : end;
}

/* The first that matches behind everything below a lowest index block. behind: its rank, if it is there. */
static bool tag_group_next_behind(const struct skiplist *list, uint32_t id, uint32_t behind,
                                  struct tag_filter *filter, uint32_t *rank) {
    uint32_t work_left = TAG_COUNTS_READER_WORK;
    for (; id != SKIPLIST_NONE; id = skiplist_node(list, id)->parent) {
        const struct skiplist_node *node = skiplist_node(list, id);
        struct index_block *above =
            node->parent != SKIPLIST_NONE ? nodes_index(list, node->parent) : NULL;
        for (uint32_t i = node->position + 1U; above != NULL && i < above->count; i++) {
            uint32_t span = index_span(above, i);
            if (tag_group_count_child(list, node->parent, i, filter, &work_left) > 0) {
                *rank = behind + tag_group_descend(list, index_children(above)[i], span, filter, 0,
                                                   &work_left);
                return true;
            }
            behind += span;
        }
    }
    return false;
}

bool tag_group_next(const struct board *board, struct tag_filter *filter, uint32_t from,
                    uint32_t *rank) {
    if (from >= board_count(board) || filter->is_nobody) {
        return false;
    }
    if (board_tags(board) == NULL) {
        *rank = from;
        return true;
    }
    const struct skiplist *list = &board->large->list;
    struct skiplist_place place = skiplist_at(list, from);
    uint32_t first, count;
    const struct sheet *sheet = tag_group_sheet(list, place.leaf, &first, &count);
    uint32_t at = first + place.index, found = tag_group_next_in(sheet, filter, at, count);
    *rank = from + (found - at);
    if (found == count && tag_group_has_marks(list, filter)) {
        return tag_group_find_marked(list, filter, tag_group_count_marked(list, filter, from + 1),
                                     rank);
    }
    return found < count || tag_group_next_behind(list, skiplist_node(list, place.leaf)->parent,
                                                  from + (count - at), filter, rank);
}

bool tag_group_previous(const struct board *board, struct tag_filter *filter, uint32_t from,
                        uint32_t *rank) {
    if (board_count(board) == 0) {
        return false;
    }
    if (from >= board_count(board)) {
        from = board_count(board) - 1;
    }
    uint32_t before = tag_group_count(board, filter, from + 1);
    return before > 0 && tag_group_find(board, filter, before - 1, rank);
}
