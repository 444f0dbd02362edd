/* Removing entries from the leaves of a skiplist, and merging blocks that have become small.
 * detach.c removes whole runs of leaves. */
#include "skiplist/removal.h"

#include "skiplist/counts.h"
#include "skiplist/nodes.h"
#include "skiplist/sheet.h"
#include "skiplist/skiplist.h"

void removal_shrink_root(struct skiplist *list) {
    while (skiplist_node(list, list->root)->level > 0) {
        struct index_block *index = nodes_index(list, list->root);
        if (index->count > 1) {
            return;
        }
        uint32_t child = index_children(index)[0];
        if (list->tags != NULL) {
            sheet_sink(list, index);
        }
        nodes_give_back(list, list->root);
        nodes_destroy(list, index);
        list->root = child;
        skiplist_node(list, child)->parent = SKIPLIST_NONE;
    }
}

static void removal_remove_child(struct skiplist *list, uint32_t id);

void removal_merge_index(struct skiplist *list, uint32_t id) {
    uint32_t parent_id = skiplist_node(list, id)->parent;
    struct index_block *parent = nodes_index(list, parent_id);
    uint32_t position = skiplist_node(list, id)->position;
    if (parent->count < 2) {
        return;
    }
    uint32_t left_at = position > 0 ? position - 1 : position;
    uint32_t left_id = index_children(parent)[left_at];
    uint32_t right_id = index_children(parent)[left_at + 1];
    struct index_block *left = nodes_index(list, left_id);
    struct index_block *right = nodes_index(list, right_id);
    uint32_t count = left->count + right->count;
    if (count > INDEX_FANOUT * 3 / 4 || count > left->capacity) {
        return;
    }
    if (list->tags != NULL && !sheet_merge(list, left_id, right_id)) {
        return;
    }
    uint32_t left_count = left->count;
    index_move(left, right, 0);
    index_set_key(left, left_count, index_keys(parent)[left_at + 1]);
    nodes_renumber(list, left_id, left_count);
    index_add_span(parent, left_at, index_span(parent, left_at + 1));
    removal_remove_child(list, right_id);
}

/* Remove an empty block from its level and its parent, and free it. */
static void removal_remove_child(struct skiplist *list, uint32_t id) {
    struct skiplist_node node = *skiplist_node(list, id);
    nodes_unlink(list, id, id);
    if (list->tags != NULL) {
        if (node.level > 0) {
            sheet_free(list, node.block);
        } else if (node.parent == SKIPLIST_NONE) {
            sheet_free_leaf(list);
        }
    }
    nodes_destroy(list, node.block);
    if (node.parent == SKIPLIST_NONE) {
        nodes_give_back(list, id);
        list->root = SKIPLIST_NONE;
        return;
    }
    struct index_block *index = nodes_index(list, node.parent);
    uint32_t position = node.position;
    nodes_give_back(list, id);
    if (list->tags != NULL) {
        counts_remove_children(list, node.parent, position, 1);
    }
    index_remove(index, position, 1);
    nodes_renumber(list, node.parent, position);
    if (index->count == 0) {
        removal_remove_child(list, node.parent);
    } else if (node.parent == list->root) {
        removal_shrink_root(list);
    } else if (index->count <= INDEX_FANOUT / 4) {
        removal_merge_index(list, node.parent);
    }
}

static void removal_remove_leaf(struct skiplist *list, uint32_t id) {
    const struct block_links *links = nodes_links(list, id);
    if (list->first == id) {
        list->first = links->next;
    }
    if (list->last == id) {
        list->last = links->previous;
    }
    removal_remove_child(list, id);
}

/* Make room in the leaf for all entries of another one. false: no memory. */
static bool removal_make_room_for(struct skiplist *list, uint32_t id, const struct block *other) {
    const struct block *block = nodes_leaf(list, id);
    uint32_t count = block->count + other->count;
    uint32_t heap = (uint32_t)block->heap_used + other->heap_used;
    if (count <= block->capacity && heap <= block->heap_size) {
        return true;
    }
    struct block *larger = nodes_adopt_leaf(list, block_create(count, heap));
    if (larger == NULL) {
        return false;
    }
    nodes_replace_leaf(list, id, larger);
    return true;
}

/* Move the entries of the smaller of two siblings to the larger one. */
static void removal_merge_leaves(struct skiplist *list, struct index_block *parent,
                                 uint32_t left_at, struct skiplist_owner owner) {
    uint32_t left_id = index_children(parent)[left_at];
    uint32_t right_id = index_children(parent)[left_at + 1];
    bool is_left_kept = nodes_leaf(list, left_id)->count >= nodes_leaf(list, right_id)->count;
    uint32_t kept_id = is_left_kept ? left_id : right_id;
    uint32_t gone_id = is_left_kept ? right_id : left_id;
    struct block *gone = nodes_leaf(list, gone_id);
    if (!removal_make_room_for(list, kept_id, gone)) {
        return;
    }
    struct block *kept = nodes_leaf(list, kept_id);
    uint32_t index = is_left_kept ? kept->count : 0;
    uint32_t count = gone->count;
    block_copy(kept, index, gone, 0, count);
    /* One of the two is removed, no matter which. */
    index_add_span(parent, left_at, index_span(parent, left_at + 1));
    index_set_span(parent, left_at + 1, index_span(parent, left_at));
    if (!is_left_kept) {
        index_set_key(parent, left_at + 1, index_keys(parent)[left_at]);
    }
    owner.moved(owner.owner, kept, index, count, gone_id, kept_id);
    removal_remove_leaf(list, gone_id);
}

/* Merge a leaf that has become small if a sibling has room. */
static void removal_merge_leaf(struct skiplist *list, uint32_t id, struct skiplist_owner owner) {
    uint32_t parent_id = skiplist_node(list, id)->parent;
    if (parent_id == SKIPLIST_NONE) {
        return;
    }
    struct index_block *parent = nodes_index(list, parent_id);
    uint32_t position = skiplist_node(list, id)->position;
    const struct block *block = nodes_leaf(list, id);
    const uint32_t *children = index_children(parent);
    if (position > 0 && block_may_merge(nodes_leaf(list, children[position - 1]), block)) {
        removal_merge_leaves(list, parent, position - 1, owner);
    } else if (position + 1U < parent->count &&
               block_may_merge(block, nodes_leaf(list, children[position + 1]))) {
        removal_merge_leaves(list, parent, position, owner);
    }
}

/* Shrink a leaf that needs less than half its memory. Without memory for the new block it is left
 * as it is. */
static void removal_leaf_trim(struct skiplist *list, uint32_t id) {
    struct block *block = nodes_leaf(list, id);
    if (!block_is_wasteful(block)) {
        return;
    }
    struct block *trimmed = nodes_adopt_leaf(list, block_create_grown(block, 1));
    if (trimmed != NULL) {
        nodes_replace_leaf(list, id, trimmed);
    }
}

void removal_settle_leaf(struct skiplist *list, uint32_t id, struct skiplist_owner owner) {
    removal_leaf_trim(list, id);
    if (nodes_leaf(list, id)->count <= BLOCK_ENTRIES_MAX / 4) {
        removal_merge_leaf(list, id, owner);
    }
}

/* count entries have been removed from the block of this leaf. */
static void removal_finish(struct skiplist *list, const struct block *block, uint32_t leaf,
                           uint32_t count, struct skiplist_owner owner) {
    nodes_add_to_spans(list, leaf, -count);
    if (block->count == 0) {
        removal_remove_leaf(list, leaf);
        return;
    }
    removal_settle_leaf(list, leaf, owner);
}

void skiplist_remove(struct skiplist *list, struct skiplist_place place, uint32_t count,
                     struct skiplist_owner owner) {
    struct block *block = nodes_leaf(list, place.leaf);
    nodes_free_long(list, block, place.index, count);
    if (list->tags != NULL) {
        sheet_remove(list, place, count);
    }
    block_remove(block, place.index, count);
    removal_finish(list, block, place.leaf, count, owner);
}

void skiplist_remove_moved(struct skiplist *list, struct skiplist_place place, uint32_t offset,
                           struct skiplist_owner owner) {
    struct block *block = nodes_leaf(list, place.leaf);
    if (block_code(block, place.index) == NAME_LONG) {
        list->memory_size -= block_long_memory_size(block_heap(block) + offset);
    }
    if (list->tags != NULL) {
        sheet_remove(list, place, 1);
    }
    block_remove_one(block, place.index, offset);
    removal_finish(list, block, place.leaf, 1, owner);
}
