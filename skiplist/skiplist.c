/* Invariants, beyond those of the header: no block is empty; a parent's span of a child is the
 * number of entries under it; all leaves are on level 0, and a child is one level below its parent;
 * the separator of an index block's first child is the key that leads to the block itself.
 *
 * Steps of an insertion: allocate (skiplist_reserve), split full blocks (spans stay correct, no
 * entry is added yet), insert the entry, add 1 to the spans above it. */
#include "skiplist/skiplist.h"

#include "codec/memory.h"
#include "skiplist/index.h"
#include "skiplist/sheet.h"

enum plan_change {
    PLAN_FITS,   /* the leaf has room */
    PLAN_GROW,   /* it moves to a larger allocation */
    PLAN_SPLIT,  /* half of it moves to a new leaf */
    PLAN_AFTER,  /* a new leaf at the end of the list, so that sequential loads leave full leaves */
    PLAN_BEFORE, /* a new leaf at the start of the list */
    PLAN_FIRST,  /* the list's first leaf */
};

size_t skiplist_growth_size(const struct skiplist *list, uint32_t count) {
    uint64_t needed = index_nodes_needed(list, count);
    if (needed <= list->node_capacity) {
        return 0;
    }
    /* One segment more than needed, and the table's pointers. */
    return (needed - list->node_capacity + SKIPLIST_SEGMENT_NODES) * sizeof(struct skiplist_node) +
           2 * (needed >> SKIPLIST_SEGMENT_BITS) * sizeof(void *);
}

void skiplist_init(struct skiplist *list, bool is_latest) {
    *list = (struct skiplist){
        .segments = &list->first_segment,
        .first_segment = &list->first_node,
        .node_capacity = 1,
        .free_first = SKIPLIST_NONE,
        .root = SKIPLIST_NONE,
        .first = SKIPLIST_NONE,
        .last = SKIPLIST_NONE,
        .detached = SKIPLIST_NONE,
        .is_latest = is_latest,
    };
}

void skiplist_init_leaf(struct skiplist *list, bool is_latest, struct block *leaf) {
    skiplist_init(list, is_latest);
    if (leaf == NULL) {
        return;
    }
    list->first_node = (struct skiplist_node){.block = leaf, .parent = SKIPLIST_NONE};
    list->node_end = 1;
    list->root = list->first = list->last = 0;
    list->count = leaf->count;
    list->memory_size = index_leaf_memory_size(leaf);
}

struct block *skiplist_only_leaf(const struct skiplist *list) {
    CHECK(list->root == list->first);
    CHECK(list->first_segment == &list->first_node);
    return list->root != SKIPLIST_NONE ? list->first_node.block : NULL;
}

struct block *skiplist_take_leaf(struct skiplist *list) {
    CHECK(list->root == list->first);
    CHECK(list->detached == SKIPLIST_NONE);
    struct block *leaf = list->root != SKIPLIST_NONE ? index_leaf(list, list->root) : NULL;
    index_nodes_free(list);
    skiplist_init(list, list->is_latest);
    return leaf;
}

void skiplist_deinit(struct skiplist *list) {
    while (!skiplist_deinit_step(list, UINT32_MAX)) {
        continue;
    }
}

bool skiplist_deinit_step(struct skiplist *list, uint32_t work_max) {
    uint64_t work = 0;
    while (list->node_end > 0 && work < work_max) {
        const struct skiplist_node *node = skiplist_node(list, --list->node_end);
        work++;
        if (node->block == NULL) {
            continue;
        }
        if (node->level == 0) {
            const struct block *block = node->block;
            work += block->count;
            index_free_long(list, block, 0, block->count);
        } else if (list->tags != NULL) {
            sheet_forget(list, node->block);
        }
        index_destroy(list, node->block);
        /* Ten million entries have a hundred segments, so these are freed one by one too. */
        if (list->node_capacity >= list->node_end + 2 * SKIPLIST_SEGMENT_NODES) {
            index_nodes_free_segment(list);
        }
    }
    if (list->node_end > 0) {
        return false;
    }
    index_nodes_free(list);
    CHECK(list->memory_size == 0);
    struct tags *tags = list->tags;
    skiplist_init(list, list->is_latest);
    skiplist_set_tags(list, tags);
    return true;
}

/* ---- copy ---- */

static bool skiplist_copy_long_members(struct skiplist *to, struct block *block) {
    if (block->long_count == 0) {
        return true;
    }
    uint32_t offset = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        uint8_t code = block_code(block, i);
        if (code == NAME_LONG) {
            char heap_bytes[BLOCK_LONG_SIZE];
            if (!block_long_create(block_member(block, i, offset), heap_bytes)) {
                /* From here on the allocations still belong to the original and must not be freed.
                 */
                block_remove(block, i, block->count - i);
                return false;
            }
            to->memory_size += block_long_memory_size(heap_bytes);
            block_long_set(block, offset, heap_bytes);
        }
        offset += block_heap_size(code);
    }
    return true;
}

static bool skiplist_copy_leaf(struct skiplist *to, struct skiplist_node *node,
                               const struct block *from) {
    struct block *block = index_adopt_leaf(to, block_create(from->count, from->heap_used));
    if (block == NULL) {
        return false;
    }
    block->links = from->links;
    block_copy(block, 0, from, 0, from->count);
    node->block = block;
    return skiplist_copy_long_members(to, block);
}

static bool skiplist_copy_index(struct skiplist *to, struct skiplist_node *node,
                                const struct index_block *from) {
    struct index_block *index = index_copy(to, from);
    if (index == NULL) {
        return false;
    }
    node->block = index;
    if (to->tags == NULL) {
        index->sheet = NULL;
        return true;
    }
    return sheet_copy(to, index, from);
}

bool skiplist_copy(const struct skiplist *list, struct skiplist *to) {
    if (!index_nodes_reserve(to, list->node_end)) {
        return false;
    }
    for (uint32_t id = 0; id < list->node_end; id++) {
        struct skiplist_node *node = skiplist_node(to, id);
        *node = *skiplist_node(list, id);
        node->block = NULL;
        to->node_end = id + 1;
        void *from = skiplist_node(list, id)->block;
        if (from == NULL || (skiplist_has_detached(list) && !skiplist_is_alive(list, id))) {
            index_node_give_back(to, id);
            continue;
        }
        if (!(node->level == 0 ? skiplist_copy_leaf(to, node, from)
                               : skiplist_copy_index(to, node, from))) {
            skiplist_deinit(to);
            return false;
        }
    }
    if (to->tags != NULL && !sheet_copy_leaf(to, list)) {
        skiplist_deinit(to);
        return false;
    }
    to->root = list->root;
    to->first = list->first;
    to->last = list->last;
    to->count = list->count;
    to->is_dense = list->is_dense;
    to->score_shift = list->score_shift;
    to->firsts = list->firsts;
    skiplist_set_tags(to, to->tags);
    return true;
}

/* ---- finding ---- */

uint32_t skiplist_block_for(const struct skiplist *list, uint64_t key, bool or_equal,
                            uint32_t level_min) {
    uint32_t id = list->root;
    if (id == SKIPLIST_NONE) {
        return id;
    }
    for (uint32_t level = skiplist_node(list, id)->level; level > level_min; level--) {
        struct index_block *index = index_at(list, id);
        id = index_children(index)[index_child_for(index, key, or_equal)];
    }
    return id;
}

struct skiplist_place skiplist_place_above(const struct skiplist *list, uint64_t key,
                                           bool or_equal) {
    struct skiplist_place place = {.leaf = skiplist_block_for(list, key, or_equal, 0)};
    if (place.leaf != SKIPLIST_NONE) {
        const struct block *block = index_leaf(list, place.leaf);
        place.index = block_keys_above(block_keys(block), block->count, key, or_equal);
    }
    return place;
}

void skiplist_places_above(const struct skiplist *list, const uint64_t *keys, uint32_t count,
                           bool or_equal, struct skiplist_place *places) {
    bool has_index = skiplist_node(list, list->root)->level > 0;
    CHECK(count <= SKIPLIST_AT_MAX);
    for (uint32_t i = 0; i < count; i++) {
        places[i].leaf = skiplist_block_for(list, keys[i], or_equal, 1);
        if (has_index) {
            memory_prefetch_lines(index_at(list, places[i].leaf),
                                  sizeof(struct index_block) + INDEX_FANOUT);
        }
    }
    for (uint32_t i = 0; i < count && has_index; i++) {
        struct index_block *index = index_at(list, places[i].leaf);
        uint32_t position = index_fences_above(index, keys[i]) * INDEX_STRIDE;
        memory_prefetch_lines(index_keys(index) + position, INDEX_STRIDE * sizeof(uint64_t));
        memory_prefetch(index_children(index) + position);
    }
    for (uint32_t i = 0; i < count && has_index; i++) {
        struct index_block *index = index_at(list, places[i].leaf);
        places[i].leaf = index_children(index)[index_child_for(index, keys[i], or_equal)];
        memory_prefetch(skiplist_node(list, places[i].leaf));
    }
    for (uint32_t i = 0; i < count; i++) {
        memory_prefetch(index_leaf(list, places[i].leaf));
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct block *block = index_leaf(list, places[i].leaf);
        memory_prefetch_lines(block_keys(block), block->count * sizeof keys[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct block *block = index_leaf(list, places[i].leaf);
        places[i].index = block_keys_above(block_keys(block), block->count, keys[i], or_equal);
    }
}

struct skiplist_place skiplist_place_for(const struct skiplist *list, uint64_t key) {
    return skiplist_place_above(list, key, !list->is_latest);
}

struct skiplist_place skiplist_at(const struct skiplist *list, uint32_t rank) {
    CHECK(rank < list->count);
    if (rank == 0) {
        return (struct skiplist_place){.leaf = list->first, .index = 0};
    }
    uint32_t id = list->root;
    for (uint32_t level = skiplist_node(list, id)->level; level > 0; level--) {
        struct index_block *index = index_at(list, id);
        id = index_children(index)[index_child_at(index, &rank)];
    }
    return (struct skiplist_place){.leaf = id, .index = rank};
}

void skiplist_begin_place(const struct skiplist *list, uint32_t rank,
                          struct skiplist_place *place) {
    *place = (struct skiplist_place){.leaf = list->root, .index = rank};
    uint32_t level = skiplist_node(list, place->leaf)->level;
    for (; level > 1; level--) {
        struct index_block *index = index_at(list, place->leaf);
        place->leaf = index_children(index)[index_child_at(index, &place->index)];
    }
    if (level == 1) {
        memory_prefetch_lines(index_at(list, place->leaf),
                              sizeof(struct index_block) + INDEX_FANOUT);
    }
}

void skiplist_at_many(const struct skiplist *list, const uint32_t *ranks, uint32_t count,
                      struct skiplist_place *places) {
    uint32_t positions[SKIPLIST_AT_MAX];
    CHECK(count <= SKIPLIST_AT_MAX);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(ranks[i] < list->count);
        skiplist_begin_place(list, ranks[i], &places[i]);
    }
    if (skiplist_node(list, list->root)->level > 0) {
        for (uint32_t i = 0; i < count; i++) {
            /* Determine the child and prefetch its id. */
            struct index_block *index = index_at(list, places[i].leaf);
            positions[i] = index_child_at(index, &places[i].index);
            memory_prefetch(index_children(index) + positions[i]);
        }
        for (uint32_t i = 0; i < count; i++) {
            places[i].leaf = index_children(index_at(list, places[i].leaf))[positions[i]];
            memory_prefetch(skiplist_node(list, places[i].leaf));
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        memory_prefetch_lines(index_leaf(list, places[i].leaf),
                              sizeof(struct block) + 2 * BLOCK_ENTRIES_MAX);
    }
}

uint32_t skiplist_rank_of_index(const struct skiplist *list, const struct skiplist_node *node) {
    uint32_t rank = 0;
    for (; node->parent != SKIPLIST_NONE; node = skiplist_node(list, node->parent)) {
        rank += index_wide_sum(skiplist_node(list, node->parent)->block, node->position);
    }
    return rank;
}

uint32_t skiplist_rank(const struct skiplist *list, struct skiplist_place place) {
    if (place.leaf == SKIPLIST_NONE) {
        return 0;
    }
    const struct skiplist_node *node = skiplist_node(list, place.leaf);
    if (node->parent == SKIPLIST_NONE) {
        return place.index;
    }
    /* Of the lowest index block, only the line of spans is read. */
    const struct skiplist_node *parent = skiplist_node(list, node->parent);
    uint32_t rank = place.index + index_narrow_sum(parent->block, node->position);
    return rank + skiplist_rank_of_index(list, parent);
}

/* ---- inserting: allocation ---- */

/* A block for count entries of a leaf from index on. The half that receives the new entry, of size
 * heap bytes, has room for one more. For the other half size is 0; it may never grow. */
static struct block *skiplist_plan_half(const struct block *block, uint32_t index, uint32_t count,
                                        uint32_t size) {
    uint32_t heap = block_offset(block, index + count) - block_offset(block, index) + size;
    uint32_t entries = size > 0 ? count + 2 : count;
    if (entries > BLOCK_ENTRIES_MAX) {
        entries = BLOCK_ENTRIES_MAX;
    }
    uint32_t more = size > 0 ? entries - count - 1 : 0;
    return block_create(entries, heap + more * (heap / (count + 1) + (block->only_code == 0)));
}

static bool skiplist_plan_leaf(struct skiplist *list, struct skiplist_plan *plan, uint8_t code) {
    enum plan_change change = (enum plan_change)plan->change;
    const struct block *block = change == PLAN_FIRST ? NULL : index_leaf(list, plan->place.leaf);
    uint32_t size = block_heap_size(code);
    uint32_t entries = (BLOCK_GROW_ENTRIES + 1) / 2;
    if (change == PLAN_GROW) {
        plan->new_block = index_adopt_leaf(list, block_create_grown(block, code));
    } else if (change == PLAN_SPLIT) {
        /* Both halves move to allocations of their own size; the old one would be half empty. */
        uint32_t at = block_split_index(block);
        bool is_left = plan->place.index <= at;
        plan->left_block =
            index_adopt_leaf(list, skiplist_plan_half(block, 0, at, is_left ? size : 0));
        plan->new_block = index_adopt_leaf(
            list, skiplist_plan_half(block, at, block->count - at, is_left ? 0 : size));
        return plan->left_block != NULL && plan->new_block != NULL;
    } else {
        plan->new_block = index_adopt_leaf(list, block_create(entries, entries * size));
    }
    return plan->new_block != NULL;
}

/* Allocate spare index blocks for every full ancestor, up to the first one with room. */
static bool skiplist_plan_indexes(struct skiplist *list, struct skiplist_plan *plan,
                                  uint32_t count) {
    uint32_t id = skiplist_node(list, plan->place.leaf)->parent;
    for (; id != SKIPLIST_NONE; id = skiplist_node(list, id)->parent) {
        const struct index_block *index = index_at(list, id);
        if (index->count < index->capacity) {
            return true;
        }
        bool grows = index->capacity < INDEX_FANOUT;
        uint32_t capacity = grows ? 2U * index->capacity : INDEX_FANOUT;
        struct index_block *spare = index_create(list, capacity, skiplist_node(list, id)->level);
        if (spare == NULL) {
            return false;
        }
        CHECK(plan->index_count < SKIPLIST_LEVELS_MAX);
        plan->indexes[plan->index_count++] = spare;
        if (grows) {
            return true;
        }
        if (list->tags != NULL && !sheet_reserve_split(list, index_at(list, id), spare, count)) {
            return false;
        }
    }
    plan->indexes[plan->index_count] =
        index_create(list, INDEX_FANOUT_FIRST, skiplist_node(list, list->root)->level + 1U);
    return plan->indexes[plan->index_count++] != NULL;
}

static enum plan_change skiplist_plan_change_for(const struct skiplist *list,
                                                 struct skiplist_place place, uint8_t code) {
    if (place.leaf == SKIPLIST_NONE) {
        return PLAN_FIRST;
    }
    const struct block *block = index_leaf(list, place.leaf);
    bool is_full =
        list->is_small ? block_is_full_alone(block, code) : block_is_full_for(block, code);
    if (!is_full) {
        return block_has_room(block, code) ? PLAN_FITS : PLAN_GROW;
    }
    if (place.leaf == list->last && place.index == block->count) {
        return PLAN_AFTER;
    }
    if (place.leaf == list->first && place.index == 0) {
        return PLAN_BEFORE;
    }
    return PLAN_SPLIT;
}

/* Reserve what a planned leaf needs above it. false: no memory, or none for the leaf itself;
 * nothing is reserved. */
static bool skiplist_reserve_above(struct skiplist *list, struct skiplist_plan *plan, bool has_leaf,
                                   uint32_t count) {
    bool grows = plan->change == PLAN_GROW;
    bool has_all =
        has_leaf &&
        (grows || plan->change == PLAN_FIRST || skiplist_plan_indexes(list, plan, count)) &&
        (grows || index_nodes_reserve(list, 1U + plan->index_count));
    if (!has_all) {
        skiplist_unreserve(list, plan);
    }
    return has_all;
}

bool skiplist_reserve(struct skiplist *list, struct skiplist_place place, uint8_t code,
                      struct skiplist_plan *plan) {
    enum plan_change change = skiplist_plan_change_for(list, place, code);
    plan->place = place;
    plan->change = (uint8_t)change;
    plan->index_count = 0;
    plan->index_used = 0;
    plan->new_block = NULL;
    plan->left_block = NULL;
    if (list->tags != NULL && !sheet_reserve(list, place.leaf, 1)) {
        return false;
    }
    if (change == PLAN_FITS) {
        return true;
    }
    return skiplist_reserve_above(list, plan, skiplist_plan_leaf(list, plan, code), 1);
}

uint32_t skiplist_id_end(const struct skiplist *list, const struct skiplist_plan *plan) {
    return list->node_end + 1 + plan->index_count;
}

void skiplist_unreserve(struct skiplist *list, struct skiplist_plan *plan) {
    if (plan->new_block != NULL) {
        index_destroy(list, plan->new_block);
    }
    if (plan->left_block != NULL) {
        index_destroy(list, plan->left_block);
    }
    plan->new_block = NULL;
    plan->left_block = NULL;
    for (uint32_t i = 0; i < plan->index_count; i++) {
        if (plan->indexes[i] != NULL) {
            if (list->tags != NULL) {
                sheet_forget(list, plan->indexes[i]);
            }
            index_destroy(list, plan->indexes[i]);
        }
    }
    plan->index_count = 0;
}

/* ---- inserting: splitting ---- */

/* Entries below a child, and how many of them are the first of their score: 0 unless the list is dense. */
struct skiplist_share {
    uint32_t span, firsts;
};

static void skiplist_put_child(struct skiplist *list, uint32_t id, uint32_t position, uint64_t key,
                               struct skiplist_share share, uint32_t child) {
    index_insert(index_at(list, id), position, key, share.span, child);
    if (list->is_dense) {
        index_set_firsts(index_at(list, id), position, share.firsts);
    }
    index_renumber(list, id, position);
    if (list->tags != NULL) {
        tag_counts_put_child(list, id, position);
    }
}

/* Link a new block of any level behind (or before) another one. */
static void skiplist_links_insert(struct skiplist *list, uint32_t id, uint32_t at, bool is_before) {
    struct block_links *links = index_links(list, id);
    struct block_links *beside = index_links(list, at);
    links->previous = is_before ? beside->previous : at;
    links->next = is_before ? at : beside->next;
    if (links->previous != SKIPLIST_NONE) {
        index_links(list, links->previous)->next = id;
    }
    if (links->next != SKIPLIST_NONE) {
        index_links(list, links->next)->previous = id;
    }
}

/* Spare blocks are used in the order in which they were planned: from the bottom up. */
static struct index_block *skiplist_take_spare(struct skiplist_plan *plan) {
    CHECK(plan->index_used < plan->index_count);
    return plan->indexes[plan->index_used++];
}

static void skiplist_add_root(struct skiplist *list, struct skiplist_plan *plan) {
    struct index_block *index = skiplist_take_spare(plan);
    uint32_t old_root = list->root;
    index->links = (struct block_links){.next = SKIPLIST_NONE, .previous = SKIPLIST_NONE};
    list->root = index_node_take(list, index, skiplist_node(list, old_root)->level + 1);
    skiplist_put_child(list, list->root, 0, UINT64_MAX,
                       (struct skiplist_share){list->count, list->firsts}, old_root);
    if (list->tags != NULL) {
        sheet_rise(list, index);
    }
}

static void skiplist_add_child(struct skiplist *list, uint32_t beside, uint32_t child, uint64_t key,
                               struct skiplist_share share, struct skiplist_plan *plan);

/* Where to split a full index block. At the ends of the list, where (nearly) sequential loads
 * insert, most of it stays together, because it may never get another child. */
static uint32_t skiplist_index_split_at(const struct index_block *index, uint32_t position) {
    if (index->links.next == SKIPLIST_NONE) {
        return position == index->count ? index->count : index->count * 3U / 4;
    }
    if (index->links.previous == SKIPLIST_NONE) {
        return position <= 1 ? 1 : index->count / 4U;
    }
    return index->count / 2U;
}

/* Split a full index block for a new child at position. *id and *position are then the child's
 * place. share is the child's, key its separator. */
static void skiplist_split_index(struct skiplist *list, uint32_t *id, uint32_t *position,
                                 uint64_t key, struct skiplist_share share,
                                 struct skiplist_plan *plan) {
    struct index_block *left = index_at(list, *id);
    struct index_block *right = skiplist_take_spare(plan);
    uint32_t right_id = index_node_take(list, right, skiplist_node(list, *id)->level);
    uint32_t at = skiplist_index_split_at(left, *position);
    bool is_at_end = at == left->count;
    bool goes_right = is_at_end || *position > at;
    /* The child's share is no longer part of its neighbour's, but still part of the parent's. */
    struct skiplist_share right_share = goes_right ? share : (struct skiplist_share){0, 0};
    right_share.span += index_span_sum(left, left->count) - index_span_sum(left, at);
    if (list->is_dense) {
        right_share.firsts += index_first_sum(left, left->count) - index_first_sum(left, at);
    }
    skiplist_links_insert(list, right_id, *id, false);
    if (list->tags != NULL) {
        if (left->is_lowest) {
            sheet_split(list, left, right,
                        index_span_sum(left, at) + (goes_right ? 0 : share.span));
        } else {
            tag_counts_split(list, *id, right, at, goes_right);
        }
    }
    index_move(right, left, at);
    index_renumber(list, right_id, 0);
    skiplist_add_child(list, *id, right_id, is_at_end ? key : index_keys(right)[0], right_share,
                       plan);
    if (goes_right) {
        *id = right_id;
        *position -= at;
    }
}

/* Add child to the index behind `beside`, from which it has taken over its share. */
static void skiplist_add_child(struct skiplist *list, uint32_t beside, uint32_t child, uint64_t key,
                               struct skiplist_share share, struct skiplist_plan *plan) {
    if (skiplist_node(list, beside)->parent == SKIPLIST_NONE) {
        skiplist_add_root(list, plan);
    }
    uint32_t parent = skiplist_node(list, beside)->parent;
    struct index_block *index = index_at(list, parent);
    uint32_t position = skiplist_node(list, beside)->position;
    index_add_span(index, position, 0U - share.span);
    if (list->is_dense) {
        index_add_firsts(index, position, 0U - share.firsts);
    }
    position++;
    if (index->count == INDEX_FANOUT) {
        skiplist_split_index(list, &parent, &position, key, share, plan);
    } else if (index->count == index->capacity) {
        index_replace(list, parent, skiplist_take_spare(plan));
    }
    skiplist_put_child(list, parent, position, key, share, child);
}

/* Add child to the index before the list's first leaf, which keeps its entries. */
static void skiplist_add_child_before(struct skiplist *list, uint32_t first, uint32_t child,
                                      struct skiplist_plan *plan) {
    const struct block *block = index_leaf(list, first);
    /* The new leaf takes the place of the old one, which is then added as a new child. */
    if (skiplist_node(list, first)->parent == SKIPLIST_NONE) {
        skiplist_add_root(list, plan);
    }
    uint32_t parent = skiplist_node(list, first)->parent;
    struct index_block *index = index_at(list, parent);
    uint32_t position = skiplist_node(list, first)->position;
    index_children(index)[position] = child;
    skiplist_node(list, child)->parent = parent;
    skiplist_node(list, child)->position = (uint16_t)position;
    struct skiplist_share share = {block->count,
                                   list->is_dense ? dense_count_leaf(list, first) : 0};
    skiplist_add_child(list, child, first, block_keys(block)[0], share, plan);
}

static uint32_t skiplist_add_leaf(struct skiplist *list, struct skiplist_plan *plan) {
    struct block *block = plan->new_block;
    plan->new_block = NULL;
    block->links = (struct block_links){.next = SKIPLIST_NONE, .previous = SKIPLIST_NONE};
    return index_node_take(list, block, 0);
}

/* Split the leaf in half; returns the new one, on the right. */
static uint32_t skiplist_split_leaf(struct skiplist *list, struct skiplist_plan *plan,
                                    struct skiplist_owner owner) {
    uint32_t left_id = plan->place.leaf;
    struct block *left = index_leaf(list, left_id);
    struct block *right = plan->new_block;
    uint32_t right_id = skiplist_add_leaf(list, plan);
    uint32_t at = block_split_index(left);
    uint32_t count = left->count - at;
    skiplist_links_insert(list, right_id, left_id, false);
    block_copy(right, 0, left, at, count);
    block_remove(left, at, count);
    index_replace_leaf(list, left_id, plan->left_block);
    if (list->last == left_id) {
        list->last = right_id;
    }
    struct skiplist_share share = {count, list->is_dense ? dense_count_leaf(list, right_id) : 0};
    skiplist_add_child(list, left_id, right_id, block_keys(right)[0], share, plan);
    owner.moved(owner.owner, right, 0, count, left_id, right_id);
    return right_id;
}

/* Carry out the plan; returns where the entry belongs now. */
static struct skiplist_place skiplist_make_room(struct skiplist *list, struct skiplist_plan *plan,
                                                struct skiplist_owner owner) {
    struct skiplist_place place = plan->place;
    switch ((enum plan_change)plan->change) {
    case PLAN_FITS:
        return place;
    case PLAN_GROW:
        index_replace_leaf(list, place.leaf, plan->new_block);
        return place;
    case PLAN_SPLIT: {
        uint32_t right_id = skiplist_split_leaf(list, plan, owner);
        uint32_t left_count = index_leaf(list, place.leaf)->count;
        if (place.index <= left_count) {
            return place;
        }
        return (struct skiplist_place){.leaf = right_id, .index = place.index - left_count};
    }
    case PLAN_AFTER: {
        uint32_t id = skiplist_add_leaf(list, plan);
        skiplist_links_insert(list, id, place.leaf, false);
        list->last = id;
        /* The separator may be anything between the neighbouring keys. */
        const struct block *left = index_leaf(list, place.leaf);
        skiplist_add_child(list, place.leaf, id, block_keys(left)[left->count - 1],
                           (struct skiplist_share){0, 0}, plan);
        return (struct skiplist_place){.leaf = id, .index = 0};
    }
    case PLAN_BEFORE: {
        uint32_t id = skiplist_add_leaf(list, plan);
        skiplist_links_insert(list, id, place.leaf, true);
        list->first = id;
        skiplist_add_child_before(list, place.leaf, id, plan);
        return (struct skiplist_place){.leaf = id, .index = 0};
    }
    case PLAN_FIRST:
        list->root = list->first = list->last = skiplist_add_leaf(list, plan);
        return (struct skiplist_place){.leaf = list->root, .index = 0};
    }
    CHECK(false);
    return place;
}

/* count entries have come. */
static void skiplist_note_come(struct skiplist *list, struct skiplist_place place, uint32_t count) {
    if (list->tags != NULL) {
        sheet_insert(list, place, count);
    }
    if (list->is_dense) {
        dense_note(list, place, count, 1);
    }
}

uint32_t skiplist_insert(struct skiplist *list, struct skiplist_plan *plan,
                         const struct block_entry *entry, struct skiplist_owner owner) {
    struct skiplist_place place = skiplist_make_room(list, plan, owner);
    block_insert(index_leaf(list, place.leaf), place.index, entry);
    if (entry->code == NAME_LONG) {
        list->memory_size += block_long_memory_size(entry->at);
    }
    if (list->has_more) {
        skiplist_note_come(list, place, 1);
    }
    index_add_above(list, place.leaf, 1);
    return place.leaf;
}

/* A new last leaf takes no entries from others. */
static void skiplist_nothing_moves(void *owner, const struct block *block, uint32_t index,
                                   uint32_t count, uint32_t from, uint32_t to) {
    (void)owner, (void)block, (void)index, (void)count, (void)from, (void)to;
    CHECK(false);
}

bool skiplist_append(struct skiplist *list, const struct block_entry *entries, uint32_t count) {
    bool is_first = list->last == SKIPLIST_NONE;
    struct skiplist_plan plan = {
        .place = {.leaf = list->last},
        .change = (uint8_t)(is_first ? PLAN_FIRST : PLAN_AFTER),
    };
    if (!is_first) {
        const struct block *last = index_leaf(list, list->last);
        CHECK(entries[0].key <= block_keys(last)[last->count - 1]);
    }
    /* Reserve a leaf for exactly these entries, and everything the index needs for it. */
    uint32_t heap = 0;
    for (uint32_t i = 0; i < count; i++) {
        heap += block_heap_size(entries[i].code);
    }
    plan.new_block = index_adopt_leaf(list, block_create(count, heap));
    bool has_leaf = plan.new_block != NULL &&
                    (list->tags == NULL || sheet_reserve(list, plan.place.leaf, count));
    if (!skiplist_reserve_above(list, &plan, has_leaf, count)) {
        return false;
    }
    uint32_t id =
        skiplist_make_room(list, &plan, (struct skiplist_owner){.moved = skiplist_nothing_moves})
            .leaf;
    for (uint32_t i = 0; i < count; i++) {
        CHECK(i == 0 || entries[i].key <= entries[i - 1].key);
        block_insert(index_leaf(list, id), i, &entries[i]);
        if (entries[i].code == NAME_LONG) {
            list->memory_size += block_long_memory_size(entries[i].at);
        }
    }
    if (list->has_more) {
        skiplist_note_come(list, (struct skiplist_place){.leaf = id}, count);
    }
    index_add_above(list, id, count);
    return true;
}

/* ---- removing, and merging blocks that have become small ---- */

void skiplist_shrink_root(struct skiplist *list) {
    while (skiplist_node(list, list->root)->level > 0) {
        struct index_block *index = index_at(list, list->root);
        if (index->count > 1) {
            return;
        }
        uint32_t child = index_children(index)[0];
        if (list->tags != NULL) {
            sheet_sink(list, index);
        }
        index_node_give_back(list, list->root);
        index_destroy(list, index);
        list->root = child;
        skiplist_node(list, child)->parent = SKIPLIST_NONE;
    }
}

static void skiplist_remove_child(struct skiplist *list, uint32_t id);

/* A child gets the share of the one to its right; is_either: and the other way round. */
static void skiplist_join_shares(const struct skiplist *list, struct index_block *parent,
                                 uint32_t left_at, bool is_either) {
    index_add_span(parent, left_at, index_span(parent, left_at + 1));
    if (list->is_dense) {
        index_add_firsts(parent, left_at, index_first_count(parent, left_at + 1));
    }
    if (is_either) {
        index_set_span(parent, left_at + 1, index_span(parent, left_at));
        if (list->is_dense) {
            index_set_firsts(parent, left_at + 1, index_first_count(parent, left_at));
        }
    }
}

void skiplist_merge_index(struct skiplist *list, uint32_t id) {
    uint32_t parent_id = skiplist_node(list, id)->parent;
    struct index_block *parent = index_at(list, parent_id);
    uint32_t position = skiplist_node(list, id)->position;
    if (parent->count < 2) {
        return;
    }
    uint32_t left_at = position > 0 ? position - 1 : position;
    uint32_t left_id = index_children(parent)[left_at];
    uint32_t right_id = index_children(parent)[left_at + 1];
    struct index_block *left = index_at(list, left_id);
    struct index_block *right = index_at(list, right_id);
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
    index_renumber(list, left_id, left_count);
    skiplist_join_shares(list, parent, left_at, false);
    skiplist_remove_child(list, right_id);
}

/* Remove an empty block from its level and its parent, and free it. */
static void skiplist_remove_child(struct skiplist *list, uint32_t id) {
    struct skiplist_node node = *skiplist_node(list, id);
    index_unlink(list, id, id);
    if (list->tags != NULL) {
        if (node.level > 0) {
            sheet_free(list, node.block);
        } else if (node.parent == SKIPLIST_NONE) {
            sheet_free_leaf(list);
        }
    }
    index_destroy(list, node.block);
    if (node.parent == SKIPLIST_NONE) {
        index_node_give_back(list, id);
        list->root = SKIPLIST_NONE;
        return;
    }
    struct index_block *index = index_at(list, node.parent);
    uint32_t position = node.position;
    index_node_give_back(list, id);
    if (list->tags != NULL) {
        tag_counts_remove_children(list, node.parent, position, 1);
    }
    index_remove(index, position, 1);
    index_renumber(list, node.parent, position);
    if (index->count == 0) {
        skiplist_remove_child(list, node.parent);
    } else if (node.parent == list->root) {
        skiplist_shrink_root(list);
    } else if (index->count <= INDEX_FANOUT / 4) {
        skiplist_merge_index(list, node.parent);
    }
}

static void skiplist_remove_leaf(struct skiplist *list, uint32_t id) {
    const struct block_links *links = index_links(list, id);
    if (list->first == id) {
        list->first = links->next;
    }
    if (list->last == id) {
        list->last = links->previous;
    }
    skiplist_remove_child(list, id);
}

/* Move the entries of the smaller of two siblings to the larger one. */
static void skiplist_merge_leaves(struct skiplist *list, struct index_block *parent,
                                  uint32_t left_at, struct skiplist_owner owner) {
    uint32_t left_id = index_children(parent)[left_at];
    uint32_t right_id = index_children(parent)[left_at + 1];
    bool is_left_kept = index_leaf(list, left_id)->count >= index_leaf(list, right_id)->count;
    uint32_t kept_id = is_left_kept ? left_id : right_id;
    uint32_t gone_id = is_left_kept ? right_id : left_id;
    struct block *gone = index_leaf(list, gone_id), *kept = index_leaf(list, kept_id);
    uint32_t count = gone->count, heap = (uint32_t)kept->heap_used + gone->heap_used;
    if (kept->count + count > kept->capacity || heap > kept->heap_size) {
        struct block *larger = index_adopt_leaf(list, block_create(kept->count + count, heap));
        if (larger == NULL) {
            return;
        }
        index_replace_leaf(list, kept_id, larger);
        kept = larger;
    }
    uint32_t index = is_left_kept ? kept->count : 0;
    block_copy(kept, index, gone, 0, count);
    /* One of the two is removed, no matter which. */
    skiplist_join_shares(list, parent, left_at, true);
    if (!is_left_kept) {
        index_set_key(parent, left_at + 1, index_keys(parent)[left_at]);
    }
    owner.moved(owner.owner, kept, index, count, gone_id, kept_id);
    skiplist_remove_leaf(list, gone_id);
}

void skiplist_settle_leaf(struct skiplist *list, uint32_t id, struct skiplist_owner owner) {
    struct block *block = index_leaf(list, id);
    if (block_is_wasteful(block)) {
        struct block *trimmed = index_adopt_leaf(list, block_create_grown(block, 1));
        if (trimmed != NULL) {
            index_replace_leaf(list, id, trimmed);
        }
    }
    uint32_t parent_id = skiplist_node(list, id)->parent;
    block = index_leaf(list, id);
    if (block->count > BLOCK_ENTRIES_MAX / 4 || parent_id == SKIPLIST_NONE) {
        return;
    }
    /* It is merged if a sibling has room. */
    struct index_block *parent = index_at(list, parent_id);
    uint32_t position = skiplist_node(list, id)->position;
    const uint32_t *children = index_children(parent);
    if (position > 0 && block_may_merge(index_leaf(list, children[position - 1]), block)) {
        skiplist_merge_leaves(list, parent, position - 1, owner);
    } else if (position + 1U < parent->count &&
               block_may_merge(block, index_leaf(list, children[position + 1]))) {
        skiplist_merge_leaves(list, parent, position, owner);
    }
}

void skiplist_note_go(struct skiplist *list, struct skiplist_place place, uint32_t count) {
    if (list->tags != NULL) {
        sheet_remove(list, place, count);
    }
    if (list->is_dense) {
        dense_note(list, place, count, 0U - 1);
    }
}

/* count entries have been removed from the block of this leaf. */
static void skiplist_finish(struct skiplist *list, const struct block *block, uint32_t leaf,
                            uint32_t count, struct skiplist_owner owner) {
    index_add_above(list, leaf, -count);
    if (block->count == 0) {
        skiplist_remove_leaf(list, leaf);
        return;
    }
    skiplist_settle_leaf(list, leaf, owner);
}

void skiplist_remove(struct skiplist *list, struct skiplist_place place, uint32_t count,
                     struct skiplist_owner owner) {
    struct block *block = index_leaf(list, place.leaf);
    index_free_long(list, block, place.index, count);
    if (list->has_more) {
        skiplist_note_go(list, place, count);
    }
    block_remove(block, place.index, count);
    skiplist_finish(list, block, place.leaf, count, owner);
}

void skiplist_remove_moved(struct skiplist *list, struct skiplist_place place, uint32_t offset,
                           struct skiplist_owner owner) {
    struct block *block = index_leaf(list, place.leaf);
    if (block_code(block, place.index) == NAME_LONG) {
        list->memory_size -= block_long_memory_size(block_heap(block) + offset);
    }
    if (list->has_more) {
        skiplist_note_go(list, place, 1);
    }
    block_remove_one(block, place.index, offset);
    skiplist_finish(list, block, place.leaf, 1, owner);
}

bool skiplist_is_alive(const struct skiplist *list, uint32_t id) {
    uint32_t parent;
    while ((parent = skiplist_node(list, id)->parent) != SKIPLIST_NONE) {
        id = parent;
    }
    return id == list->root;
}

/* ---- checking ---- */

struct skiplist_check {
    const struct skiplist *list;
    const char *wrong;
    uint32_t node_count; /* blocks reached */
    size_t memory_size;
    uint32_t last_at[SKIPLIST_LEVELS_MAX]; /* the last block seen on each level */
    uint64_t last_key;
    uint32_t firsts; /* of the entries seen */
};

static bool skiplist_claim(struct skiplist_check *check, bool holds, const char *wrong) {
    if (!holds && check->wrong == NULL) {
        check->wrong = wrong;
    }
    return holds;
}

static void skiplist_check_links(struct skiplist_check *check, uint32_t id, uint32_t level) {
    const struct skiplist *list = check->list;
    uint32_t before = check->last_at[level];
    skiplist_claim(check, index_links(list, id)->previous == before,
                   "skiplist: a link back is wrong");
    if (before != SKIPLIST_NONE) {
        skiplist_claim(check, index_links(list, before)->next == id,
                       "skiplist: a link forward is wrong");
    } else if (level == 0) {
        skiplist_claim(check, list->first == id, "skiplist: first is not the first leaf");
    }
    check->last_at[level] = id;
}

/* The entries and the memory of a leaf; false: it is empty, or was found wrong. */
static bool skiplist_check_block(struct skiplist_check *check, const struct block *block,
                                 const char *empty) {
    const char *reason = NULL;
    bool is_valid = block_validate(block, &reason);
    check->memory_size += index_leaf_memory_size(block);
    return skiplist_claim(check, is_valid, reason) &&
           skiplist_claim(check, block->count > 0, empty);
}

static uint32_t skiplist_check_leaf(struct skiplist_check *check, uint32_t id, uint64_t separator) {
    const struct block *block = index_leaf(check->list, id);
    if (!skiplist_check_block(check, block, "skiplist: a leaf is empty")) {
        return 0;
    }
    skiplist_claim(check, check->list->is_small || !block_is_over(block),
                   "skiplist: a leaf has more than it may beside others");
    skiplist_claim(check, block_keys(block)[0] <= check->last_key, "skiplist: keys increase");
    skiplist_claim(check, separator <= check->last_key,
                   "skiplist: a separator is above the last key");
    skiplist_claim(check, separator >= block_keys(block)[0],
                   "skiplist: a separator is below the first key");
    for (uint32_t i = 0; i < block->count; i++) {
        uint64_t key = block_keys(block)[i];
        bool is_first = check->list->first == id && i == 0;
        bool differs = (key ^ check->last_key) >> check->list->score_shift != 0;
        check->firsts += is_first || differs;
        check->last_key = key;
    }
    return block->count;
}

static uint32_t skiplist_check_subtree(struct skiplist_check *check, uint32_t id, uint32_t parent,
                                       uint32_t level, uint64_t separator) {
    const struct skiplist *list = check->list;
    if (!skiplist_claim(check, id < list->node_end && skiplist_node(list, id)->block != NULL,
                        "skiplist: a child is not in use")) {
        return 0;
    }
    check->node_count++;
    skiplist_claim(check, skiplist_node(list, id)->parent == parent,
                   "skiplist: a link up is wrong");
    if (parent != SKIPLIST_NONE) {
        skiplist_claim(
            check, index_children(index_at(list, parent))[skiplist_node(list, id)->position] == id,
            "skiplist: a child's position is wrong");
    }
    if (!skiplist_claim(check, skiplist_node(list, id)->level == level,
                        "skiplist: a level is wrong")) {
        return 0;
    }
    skiplist_check_links(check, id, level);
    if (level == 0) {
        return skiplist_check_leaf(check, id, separator);
    }
    struct index_block *index = index_at(list, id);
    check->memory_size += memory_size(index);
    const char *reason = "";
    bool is_valid = index_validate(index, &reason);
    if (!skiplist_claim(check, is_valid, reason)) {
        return 0;
    }
    skiplist_claim(check, index->is_lowest == (level == 1),
                   "skiplist: an index block's spans are wrong");
    uint32_t count = 0;
    for (uint32_t i = 0; i < index->count && check->wrong == NULL; i++) {
        uint32_t child = index_children(index)[i];
        uint64_t key = i == 0 ? separator : index_keys(index)[i];
        uint32_t firsts_before = check->firsts;
        uint32_t span = skiplist_check_subtree(check, child, id, level - 1, key);
        skiplist_claim(check, span == index_span(index, i), "skiplist: a span is wrong");
        skiplist_claim(check,
                       !list->is_dense || (index->has_firsts && index_first_count(index, i) ==
                                                                    check->firsts - firsts_before),
                       "skiplist: first entries are not counted right");
        count += span;
    }
    return count;
}

/* The children of a detached block have it as parent, and the entries of its leaves are valid. */
static void skiplist_check_detached(struct skiplist_check *check, uint32_t id, uint32_t parent,
                                    uint32_t level) {
    const struct skiplist *list = check->list;
    if (!skiplist_claim(check, id < list->node_end && skiplist_node(list, id)->block != NULL,
                        "skiplist: a detached block is not in use")) {
        return;
    }
    if (!skiplist_claim(check, ++check->node_count <= list->node_end,
                        "skiplist: the detached go in a circle")) {
        return;
    }
    skiplist_claim(check, skiplist_node(list, id)->parent == parent,
                   "skiplist: a detached link up is wrong");
    if (!skiplist_claim(check, skiplist_node(list, id)->level == level,
                        "skiplist: a detached level is wrong")) {
        return;
    }
    skiplist_claim(check, id != list->root, "skiplist: the root is detached");
    if (level == 0) {
        skiplist_check_block(check, index_leaf(list, id), "skiplist: a detached leaf is empty");
        return;
    }
    struct index_block *index = index_at(list, id);
    check->memory_size += memory_size(index);
    skiplist_claim(check, index->count > 0, "skiplist: a detached index block is empty");
    for (uint32_t i = 0; i < index->count && check->wrong == NULL; i++) {
        skiplist_check_detached(check, index_children(index)[i], id, level - 1);
    }
}

static void skiplist_check_nodes(struct skiplist_check *check) {
    const struct skiplist *list = check->list;
    uint32_t free_count = 0;
    uint32_t previous = SKIPLIST_NONE;
    for (uint32_t id = list->free_first; id != SKIPLIST_NONE;
         previous = id, id = skiplist_node(list, id)->parent) {
        if (!skiplist_claim(check, id < list->node_end && skiplist_node(list, id)->block == NULL,
                            "skiplist: a free id is in use")) {
            return;
        }
        skiplist_claim(check, skiplist_node(list, id)->previous_free == previous,
                       "skiplist: a free id's link back is wrong");
        if (!skiplist_claim(check, ++free_count <= list->node_end,
                            "skiplist: free ids go in a circle")) {
            return;
        }
    }
    skiplist_claim(check, list->node_end <= list->node_capacity, "skiplist: ids have no nodes");
    skiplist_claim(check, free_count == list->free_count,
                   "skiplist: free ids are not counted right");
    skiplist_claim(check, free_count + check->node_count == list->node_end,
                   "skiplist: ids are lost");
    check->memory_size += index_nodes_memory_size(list);
    skiplist_claim(check, check->memory_size == list->memory_size,
                   "skiplist: memory is not counted right");
}

bool skiplist_validate(const struct skiplist *list, const char **reason) {
    struct skiplist_check check = {.list = list, .last_key = UINT64_MAX};
    for (uint32_t i = 0; i < SKIPLIST_LEVELS_MAX; i++) {
        check.last_at[i] = SKIPLIST_NONE;
    }
    uint32_t count = 0;
    if (list->root != SKIPLIST_NONE) {
        uint32_t level = skiplist_node(list, list->root)->level;
        count = skiplist_check_subtree(&check, list->root, SKIPLIST_NONE, level, UINT64_MAX);
        for (uint32_t i = 0; i <= level && check.wrong == NULL; i++) {
            skiplist_claim(&check, index_links(list, check.last_at[i])->next == SKIPLIST_NONE,
                           "skiplist: a level does not end");
        }
    }
    skiplist_claim(&check, count == list->count, "skiplist: entries are not counted right");
    skiplist_claim(&check, list->firsts == (list->is_dense ? check.firsts : 0),
                   "skiplist: all first entries are not counted right");
    skiplist_claim(&check, list->has_more == (list->is_dense || list->tags != NULL),
                   "skiplist: it does not know what it has");
    if (check.wrong == NULL) {
        for (uint32_t id = list->detached; id != SKIPLIST_NONE && check.wrong == NULL;
             id = index_links(list, id)->next) {
            if (skiplist_claim(&check,
                               id < list->node_end && skiplist_node(list, id)->block != NULL,
                               "skiplist: a detached root is not in use")) {
                skiplist_check_detached(&check, id, SKIPLIST_NONE, skiplist_node(list, id)->level);
            }
        }
    }
    if (check.wrong == NULL) {
        skiplist_claim(&check, list->last == check.last_at[0],
                       "skiplist: last is not the last leaf");
        skiplist_check_nodes(&check);
    }
    return check_passed(check.wrong, reason);
}
