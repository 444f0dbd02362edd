/* Removing many entries at once: their leaves are detached from the list as they are, whole
 * subtrees at a time, and freed later, leaf by leaf.
 *
 *     level 2        [ a         b         c         d ]     b is detached with its subtree
 *     level 1   [ . . x x ]  [ x x x ]  [ x x . ]            its neighbours lose some children
 *     level 0    L L D D      D D D      D D L               D: detached, L: in the list
 *
 * A cut touches, on every level, the two index blocks at its edges, and the roots of the detached
 * subtrees. It takes a few microseconds for a thousand entries as well as for ten million, and
 * allocates nothing.
 *
 * Invariant: a detached subtree consists of a root without a parent and the blocks below it, whose
 * parent ids remain valid. The roots form a linked list from list->detached through links.next. So
 * a block is in the list if following its parents ends at the list's root. Spans, separators and
 * links of detached index blocks are meaningless. */
#include "codec/memory.h"
#include "skiplist/index.h"
#include "skiplist/sheet.h"
#include "skiplist/skiplist.h"

/* ---- cutting ---- */

/* Detach a block with its subtree. */
static void detach_add_detached(struct skiplist *list, uint32_t id) {
    skiplist_node(list, id)->parent = SKIPLIST_NONE;
    index_links(list, id)->next = list->detached;
    list->detached = id;
}

/* Detach the children from .. to - 1 of an index block that keeps others. */
static void detach_children(struct skiplist *list, uint32_t id, uint32_t from, uint32_t to) {
    struct index_block *index = index_at(list, id);
    uint32_t span = index_span_sum(index, to) - index_span_sum(index, from);
    CHECK(from < to);
    CHECK(to - from < index->count);
    for (uint32_t i = from; i < to; i++) {
        memory_prefetch(index_links(list, index_children(index)[i]));
    }
    for (uint32_t i = from; i < to; i++) {
        detach_add_detached(list, index_children(index)[i]);
    }
    if (list->tags != NULL) {
        sheet_detach(list, id, from, to);
    }
    if (list->is_dense) {
        uint32_t firsts = index_first_sum(index, to) - index_first_sum(index, from);
        dense_add_above(list, id, 0U - firsts);
    }
    index_remove(index, from, to - from);
    index_renumber(list, id, from);
    index_add_above(list, id, 0U - span);
}

/* Consecutive blocks of one level that are detached with their subtrees. */
struct run {
    uint32_t first;
    uint32_t last;
};

/* Remove the run from its parents. Parents left without children form the next run to be detached:
 * *run is then set to it. false: there is none. */
static bool detach_cut_off(struct skiplist *list, struct run *run) {
    const struct skiplist_node *first = skiplist_node(list, run->first);
    const struct skiplist_node *last = skiplist_node(list, run->last);
    uint32_t left = first->parent;
    uint32_t right = last->parent;
    uint32_t from = first->position;
    uint32_t to = last->position + 1U;
    uint32_t left_count = index_at(list, left)->count;
    bool loses_all_left = from == 0;
    bool loses_all_right = to == index_at(list, right)->count;
    if (left == right) {
        run->first = run->last = left;
        if (loses_all_left && loses_all_right) {
            return true;
        }
        detach_children(list, left, from, to);
        return false;
    }
    bool is_over = !loses_all_left && !loses_all_right && index_links(list, left)->next == right;
    run->first = loses_all_left ? left : index_links(list, left)->next;
    run->last = loses_all_right ? right : index_links(list, right)->previous;
    if (!loses_all_left) {
        detach_children(list, left, from, left_count);
    }
    if (!loses_all_right) {
        detach_children(list, right, 0, to);
    }
    return !is_over;
}

void detach_leaves(struct skiplist *list, uint32_t rank, uint32_t count) {
    CHECK(count > 0);
    struct skiplist_place begin = skiplist_at(list, rank);
    struct skiplist_place end = skiplist_at(list, rank + count - 1);
    CHECK(begin.index == 0);
    CHECK(end.index + 1U == index_leaf(list, end.leaf)->count);
    struct run run = {.first = begin.leaf, .last = end.leaf};
    uint32_t behind = index_links(list, run.last)->next;
    bool may_begin = list->is_dense && behind != SKIPLIST_NONE;
    bool has_begun = may_begin && dense_begins(list, behind);
    if (list->first == run.first) {
        list->first = index_links(list, run.last)->next;
    }
    if (list->last == run.last) {
        list->last = index_links(list, run.first)->previous;
    }
    do {
        index_unlink(list, run.first, run.last);
        if (run.first == list->root) {
            if (list->tags != NULL && skiplist_node(list, list->root)->level == 0) {
                sheet_free_leaf(list);
            }
            detach_add_detached(list, list->root);
            list->root = list->first = list->last = SKIPLIST_NONE;
            list->count = 0;
            list->firsts = 0;
            return;
        }
    } while (detach_cut_off(list, &run));
    if (may_begin) {
        dense_add_above(list, behind, (uint32_t)dense_begins(list, behind) - (uint32_t)has_begun);
    }
}

void detach_cut(struct skiplist *list, struct skiplist_place place, uint32_t count) {
    struct block *block = index_leaf(list, place.leaf);
    CHECK(count < block->count);
    index_free_long(list, block, place.index, count);
    if (list->has_more) {
        skiplist_note_go(list, place, count);
    }
    block_remove(block, place.index, count);
    index_add_above(list, place.leaf, 0U - count);
}

/* ---- rebalancing ---- */

/* Merge blocks that have become small, from the leaf with this entry upwards. */
static void detach_join_at(struct skiplist *list, uint32_t rank, struct skiplist_owner owner) {
    skiplist_settle_leaf(list, skiplist_at(list, rank).leaf, owner);
    uint32_t leaf = skiplist_at(list, rank).leaf;
    /* A merge may remove any block above the leaf, so look up every level again. */
    for (unsigned level = 1;; level++) {
        uint32_t id = leaf;
        for (unsigned i = 0; i < level && id != SKIPLIST_NONE; i++) {
            id = skiplist_node(list, id)->parent;
        }
        if (id == SKIPLIST_NONE) {
            return;
        }
        if (id != list->root && index_at(list, id)->count <= INDEX_FANOUT / 4) {
            skiplist_merge_index(list, id);
        }
    }
}

void detach_join(struct skiplist *list, uint32_t rank, struct skiplist_owner owner) {
    if (list->count == 0) {
        return;
    }
    skiplist_shrink_root(list);
    if (rank > 0) {
        detach_join_at(list, rank - 1, owner);
    }
    if (rank < list->count) {
        detach_join_at(list, rank, owner);
    }
}

/* ---- detached leaves ---- */

uint32_t detach_next_leaf(struct skiplist *list) {
    while (list->detached != SKIPLIST_NONE && skiplist_node(list, list->detached)->level > 0) {
        /* Split up the first detached block, which is not a leaf: its last child becomes the
         * first. */
        uint32_t id = list->detached;
        struct index_block *index = index_at(list, id);
        const uint32_t *children = index_children(index);
        uint32_t child = children[--index->count];
        if (index->count > 1) {
            memory_prefetch(skiplist_node(list, children[index->count - 2]));
        }
        if (index->count > 0) {
            memory_prefetch_lines(skiplist_node(list, children[index->count - 1])->block,
                                  sizeof(struct block));
        }
        if (index->count == 0) {
            list->detached = index->links.next;
            if (list->tags != NULL) {
                sheet_free(list, index);
            }
            index_destroy(list, index);
            index_node_give_back(list, id);
        }
        detach_add_detached(list, child);
    }
    return list->detached;
}

void detach_free_leaf(struct skiplist *list) {
    uint32_t id = list->detached;
    struct block *block = index_leaf(list, id);
    CHECK(skiplist_node(list, id)->level == 0);
    list->detached = block->links.next;
    index_free_long(list, block, 0, block->count);
    index_destroy(list, block);
    index_node_give_back(list, id);
}

static uint64_t detach_count_below(const struct skiplist *list, uint32_t id) {
    if (skiplist_node(list, id)->level == 0) {
        return index_leaf(list, id)->count;
    }
    struct index_block *index = index_at(list, id);
    uint64_t count = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        count += detach_count_below(list, index_children(index)[i]);
    }
    return count;
}

uint64_t detach_count(const struct skiplist *list) {
    uint64_t count = 0;
    for (uint32_t id = list->detached; id != SKIPLIST_NONE; id = index_links(list, id)->next) {
        count += detach_count_below(list, id);
    }
    return count;
}
