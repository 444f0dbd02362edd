/* Reading inside a group: see skiplist/tags.h.
 *
 * A rank inside a group is a sum, as a rank is: the matching codes in the sheet before the place, and on each
 * level above, what is counted below the blocks to the left. */
#include "codec/memory.h"
#include "skiplist/counts.h"
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

/* Matching entries among `count` from `from` on. */
static uint32_t tag_group_count_in(const struct sheet *sheet, const struct tag_filter *filter,
                                   uint32_t from, uint32_t count) {
    if (filter->is_nobody) {
        return 0;
    }
    if (sheet == NULL) {
        return tag_filter_matches(filter, 0) ? count : 0;
    }
    const char *codes = (const char *)sheet_codes(sheet) + (size_t)from * sheet->width;
    uint32_t sum = 0;
    if (filter->is_simple) {
        /* No code of this sheet has the bits beyond its width. */
        uint32_t width_mask = sheet->width == 4 ? UINT32_MAX : (1U << 8 * sheet->width) - 1;
        if ((filter->equal & ~width_mask) == 0) {
            sum = sheet->width == 1
                      ? tag_group_count8((const void *)codes, count, filter->mask, filter->equal)
                  : sheet->width == 2
                      ? tag_group_count16((const void *)codes, count, filter->mask, filter->equal)
                      : tag_group_count32((const void *)codes, count, filter->mask, filter->equal);
        }
        return filter->is_inverse ? count - sum : sum;
    }
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
                                      const struct tag_filter *filter, uint32_t *work_left);

/* Do the rows tell how many of a child match? Of a group that has none, only that it is nobody. */
static bool tag_group_rows_tell(const struct skiplist *list, const struct tag_filter *filter,
                                struct tag_counts *counts, uint32_t child, uint32_t *sum) {
    const struct tag_counts_plan *plan = &list->tags->plan;
    if (filter->rows.combination != NULL) {
        *sum = tag_filter_sum_children(&filter->rows, plan, counts, child, child + 1);
        return true;
    }
    *sum = 0;
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct filter_reader *reader = &filter->singles[i];
        if (reader->combination != NULL &&
            tag_filter_sum_children(reader, plan, counts, child, child + 1) == 0) {
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
    struct tag_counts *counts = counts_of(list, id, work_left);
    if (counts != NULL && counts_know_child(list, id, counts, child, work_left) &&
        tag_group_rows_tell(list, filter, counts, child, &sum)) {
        return sum;
    }
    struct index_block *below = nodes_index(list, child_id);
    if (below->is_lowest) {
        return tag_group_count_in(sheet_of(list, below), filter, 0, index_span(index, child));
    }
    const struct tag_counts *own =
        filter->rows.combination == NULL ? counts_of(list, child_id, work_left) : NULL;
    if (own != NULL &&
        tag_filter_sum(filter, &list->tags->plan, own, index_span(index, child), &sum)) {
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
                                     uint32_t to, const struct tag_filter *filter,
                                     uint32_t *work_left) {
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

/* The same of its first `count` children. Without rows, of more than half of them: all but the others. */
static uint32_t tag_group_count_first(const struct skiplist *list, uint32_t id, uint32_t count,
                                      const struct tag_filter *filter, uint32_t *work_left) {
    const struct index_block *index = nodes_index(list, id);
    const struct tag_counts_plan *plan = &list->tags->plan;
    bool has_rows = filter->rows.combination != NULL, is_most = count > index->count / 2U + 1;
    struct tag_counts *counts = has_rows || (is_most && filter->dense.combination != NULL)
                                    ? counts_of(list, id, work_left)
                                    : NULL;
    uint32_t sum, known = 0;
    if (counts == NULL || count == 0) {
        return tag_group_count_each(list, id, 0, count, filter, work_left);
    }
    if (!has_rows && count < index->count && tag_filter_sum(filter, plan, counts, 0, &sum)) {
        return sum - tag_group_count_each(list, id, count, index->count, filter, work_left);
    }
    while (has_rows && known < count && counts_know_child(list, id, counts, known, work_left)) {
        known++;
    }
    sum = known > 0 ? tag_filter_sum_children(&filter->rows, plan, counts, 0, known) : 0;
    return sum + tag_group_count_each(list, id, known, count, filter, work_left);
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
    const struct tag_counts *counts = counts_of(list, list->root, work_left);
    uint32_t sum;
    if (filter->rows.combination == NULL && counts != NULL &&
        tag_filter_sum(filter, &list->tags->plan, counts, list->count, &sum)) {
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
                                       const struct tag_filter *filter, uint32_t *work_left) {
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

uint32_t board_group_count(const struct board *board, const struct tag_filter *filter,
                           uint32_t ranks) {
    const struct tags *tags = tag_filter_tags(board);
    CHECK(ranks <= board_count(board));
    if (filter->is_nobody || ranks == 0) {
        return 0;
    }
    if (tags == NULL) {
        return ranks;
    }
    const struct skiplist *list = &board->large->list;
    uint32_t work_left = COUNTS_READER_WORK;
    if (ranks == list->count) {
        return tag_group_count_all(list, filter, &work_left);
    }
    struct skiplist_place last = skiplist_at(list, ranks - 1);
    last.index++;
    return tag_group_count_before(list, last, filter, &work_left);
}

uint32_t board_group_rank(const struct board *board, const struct tag_filter *filter,
                          const struct board_member *member) {
    struct skiplist_place place = {.leaf = member->leaf, .index = member->index};
    uint32_t work_left = COUNTS_READER_WORK;
    if (filter->is_nobody) {
        return 0;
    }
    if (tag_filter_tags(board) == NULL) {
        return board_rank_of(board, member);
    }
    return tag_group_count_before(&board->large->list, place, filter, &work_left);
}

/* The place, among the `span` entries below a block (or in the only leaf), of the nth that matches: there are so
 * many. */
static uint32_t tag_group_descend(const struct skiplist *list, uint32_t id, uint32_t span,
                                  const struct tag_filter *filter, uint32_t nth,
                                  uint32_t *work_left) {
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

bool board_group_find(const struct board *board, const struct tag_filter *filter, uint32_t nth,
                      uint32_t *rank) {
    if (filter->is_nobody || nth >= board_count(board)) {
        return false;
    }
    *rank = nth;
    if (tag_filter_tags(board) == NULL) {
        return true;
    }
    const struct skiplist *list = &board->large->list;
    uint32_t work_left = COUNTS_READER_WORK;
    if (nth >= tag_group_count_all(list, filter, &work_left)) {
        return false;
    }
    *rank = tag_group_descend(list, list->root, list->count, filter, nth, &work_left);
    return true;
}

bool board_group_has(const struct board *board, const struct tag_filter *filter,
                     const struct board_member *member) {
    const struct tags *tags = tag_filter_tags(board);
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
                                  const struct tag_filter *filter, uint32_t *rank) {
    uint32_t work_left = COUNTS_READER_WORK;
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

bool board_group_next(const struct board *board, const struct tag_filter *filter, uint32_t from,
                      uint32_t *rank) {
    if (from >= board_count(board) || filter->is_nobody) {
        return false;
    }
    if (tag_filter_tags(board) == NULL) {
        *rank = from;
        return true;
    }
    const struct skiplist *list = &board->large->list;
    struct skiplist_place place = skiplist_at(list, from);
    uint32_t first, count;
    const struct sheet *sheet = tag_group_sheet(list, place.leaf, &first, &count);
    uint32_t at = first + place.index, found = tag_group_next_in(sheet, filter, at, count);
    *rank = from + (found - at);
    return found < count || tag_group_next_behind(list, skiplist_node(list, place.leaf)->parent,
                                                  from + (count - at), filter, rank);
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
