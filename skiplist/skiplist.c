/* Invariants, beyond those of the header: no block is empty; a parent's span of a child is the
 * number of entries under it; all leaves are on level 0 and a child is one level below its parent;
 * the separator of an index block's first child is the key that leads to the block itself.
 *
 * A change goes: get memory (skiplist_reserve), divide full blocks (spans stay true, no entry is
 * added), insert the entry, add 1 to the spans above it. */
#include "skiplist/skiplist.h"

#include "codec/memory.h"
#include "skiplist/index.h"
#include "skiplist/prefetch.h"

/* Of the leaf where a key will go: header, marks and keys. What is moved behind the key is not
 * known before they have arrived; by then the processor sees the pattern itself. */
enum { PREFETCH_PLACE_SIZE = sizeof(struct block) + 10 * BLOCK_ENTRIES_MAX };

enum plan_change {
    PLAN_FITS,   /* the leaf has room */
    PLAN_GROW,   /* it moves to a larger piece of memory */
    PLAN_SPLIT,  /* half of it goes to a new leaf */
    PLAN_AFTER,  /* a new leaf at the end of the list: loads in order leave full leaves behind */
    PLAN_BEFORE, /* a new leaf at its beginning */
    PLAN_FIRST,  /* the list's first leaf */
};

static struct index_block *index_at(const struct skiplist *list, uint32_t id) {
    return skiplist_node(list, id)->block;
}

static struct block *leaf_at(const struct skiplist *list, uint32_t id) {
    return skiplist_node(list, id)->block;
}

static struct block_links *links_at(const struct skiplist *list, uint32_t id) {
    return skiplist_node(list, id)->block;
}

/* ---- memory ---- */

static struct index_block *branch_create(struct skiplist *list, uint32_t capacity, unsigned level) {
    struct index_block *index = index_create(capacity, level == 1);
    if (index != NULL)
        list->memory_size += memory_size(index);
    return index;
}

static void branch_destroy(struct skiplist *list, struct index_block *index) {
    list->memory_size -= memory_size(index);
    index_destroy(index);
}

static struct block *leaf_adopt(struct skiplist *list, struct block *block) {
    if (block != NULL)
        list->memory_size += memory_size(block);
    return block;
}

static void leaf_destroy(struct skiplist *list, struct block *block) {
    list->memory_size -= memory_size(block);
    block_destroy(block);
}

/* Put the leaf's entries into other memory, which has room. */
static void leaf_replace(struct skiplist *list, uint32_t id, struct block *block) {
    struct block *old = leaf_at(list, id);
    block->links = old->links;
    block_copy(block, 0, old, 0, old->count);
    skiplist_node(list, id)->block = block;
    leaf_destroy(list, old);
}

static void leaf_free_long(struct skiplist *list, const struct block *block, uint32_t index,
                           uint32_t count) {
    if (block->long_count == 0)
        return;
    const char *at = block_heap(block) + block_offset(block, index);
    for (uint32_t i = index; i < index + count; i++) {
        uint8_t len = block_len(block, i);
        if (len == BLOCK_LEN_LONG) {
            list->memory_size -= block_long_memory_size(at);
            block_long_destroy(at);
        }
        at += block_heap_size(len);
    }
}

/* ---- nodes ---- */

/* Nodes that count more ids need in all, beside those given back. */
static uint64_t nodes_needed(const struct skiplist *list, uint32_t count) {
    return count <= list->free_count ? 0 : (uint64_t)list->node_end + count - list->free_count;
}

size_t skiplist_growth_size(const struct skiplist *list, uint32_t count) {
    uint64_t needed = nodes_needed(list, count);
    if (needed <= list->node_capacity)
        return 0;
    /* A segment more than needed, and the table's pointers. */
    return (needed - list->node_capacity + SKIPLIST_SEGMENT_NODES) * sizeof(struct skiplist_node) +
           2 * (needed >> SKIPLIST_SEGMENT_BITS) * sizeof(void *);
}

/* Make the only segment larger. */
static bool grow_first_segment(struct skiplist *list, uint64_t needed) {
    uint64_t capacity = needed + needed / 4 + 2;
    if (capacity > SKIPLIST_SEGMENT_NODES)
        capacity = SKIPLIST_SEGMENT_NODES;
    bool is_inline = list->first_segment == &list->first_node;
    size_t size_before = is_inline ? 0 : memory_size(list->first_segment);
    struct skiplist_node *nodes =
        memory_resize(is_inline ? NULL : list->first_segment, capacity * sizeof *nodes);
    if (nodes == NULL)
        return false;
    if (is_inline)
        nodes[0] = list->first_node;
    list->memory_size += memory_size(nodes) - size_before;
    list->first_segment = nodes;
    list->node_capacity = (uint32_t)capacity;
    return true;
}

/* Make room in the table for one segment more. */
static bool grow_segment_table(struct skiplist *list, uint32_t segment_count) {
    bool is_inline = list->segments == &list->first_segment;
    size_t size_before = is_inline ? 0 : memory_size(list->segments);
    if (segment_count < size_before / sizeof(void *))
        return true;
    struct skiplist_node **segments =
        memory_resize(is_inline ? NULL : list->segments, segment_count * 2 * sizeof(void *));
    if (segments == NULL)
        return false;
    segments[0] = list->first_segment;
    list->memory_size += memory_size(segments) - size_before;
    list->segments = segments;
    return true;
}

static bool add_segment(struct skiplist *list) {
    uint32_t segment_count = list->node_capacity >> SKIPLIST_SEGMENT_BITS;
    if (!grow_segment_table(list, segment_count))
        return false;
    struct skiplist_node *nodes = memory_allocate(SKIPLIST_SEGMENT_NODES * sizeof *nodes);
    if (nodes == NULL)
        return false;
    list->memory_size += memory_size(nodes);
    list->segments[segment_count] = nodes;
    list->node_capacity += SKIPLIST_SEGMENT_NODES;
    return true;
}

/* Get room for count more ids. */
static bool nodes_reserve(struct skiplist *list, uint32_t count) {
    uint64_t needed = nodes_needed(list, count);
    if (needed > SKIPLIST_NONE - SKIPLIST_SEGMENT_NODES)
        return false;
    while (needed > list->node_capacity) {
        bool is_first = list->node_capacity < SKIPLIST_SEGMENT_NODES;
        if (!(is_first ? grow_first_segment(list, needed) : add_segment(list)))
            return false;
    }
    return true;
}

/* Bytes of the table and its segments. */
static size_t nodes_memory_size(const struct skiplist *list) {
    size_t size = list->segments == &list->first_segment ? 0 : memory_size(list->segments);
    for (uint32_t id = 0; id < list->node_capacity; id += SKIPLIST_SEGMENT_NODES)
        if (skiplist_node(list, id) != &list->first_node)
            size += memory_size(skiplist_node(list, id));
    return size;
}

static void nodes_free(struct skiplist *list) {
    list->memory_size -= nodes_memory_size(list);
    for (uint32_t id = 0; id < list->node_capacity; id += SKIPLIST_SEGMENT_NODES)
        if (skiplist_node(list, id) != &list->first_node)
            memory_free(skiplist_node(list, id));
    if (list->segments != &list->first_segment)
        memory_free(list->segments);
}

static uint32_t node_take(struct skiplist *list, void *block, unsigned level) {
    uint32_t id = list->free_first;
    if (id != SKIPLIST_NONE) {
        list->free_first = skiplist_node(list, id)->parent;
        list->free_count--;
    } else {
        CHECK(list->node_end < list->node_capacity);
        id = list->node_end++;
    }
    *skiplist_node(list, id) =
        (struct skiplist_node){.block = block, .parent = SKIPLIST_NONE, .level = (uint16_t)level};
    return id;
}

static void node_give_back(struct skiplist *list, uint32_t id) {
    *skiplist_node(list, id) = (struct skiplist_node){.block = NULL, .parent = list->free_first};
    list->free_first = id;
    list->free_count++;
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
        .is_latest = is_latest,
    };
}

void skiplist_deinit(struct skiplist *list) {
    while (!skiplist_deinit_step(list, UINT32_MAX))
        continue;
}

bool skiplist_deinit_step(struct skiplist *list, uint32_t work_max) {
    uint64_t work = 0;
    while (list->node_end > 0 && work < work_max) {
        const struct skiplist_node *node = skiplist_node(list, --list->node_end);
        work++;
        if (node->block == NULL)
            continue;
        if (node->level > 0) {
            branch_destroy(list, node->block);
        } else {
            struct block *block = node->block;
            work += block->count;
            leaf_free_long(list, block, 0, block->count);
            leaf_destroy(list, block);
        }
    }
    if (list->node_end > 0)
        return false;
    nodes_free(list);
    CHECK(list->memory_size == 0);
    skiplist_init(list, list->is_latest);
    return true;
}

/* ---- copy ---- */

static bool copy_long_members(struct skiplist *to, struct block *block) {
    if (block->long_count == 0)
        return true;
    uint32_t offset = 0;
    for (uint32_t i = 0; i < block->count; i++) {
        uint8_t len = block_len(block, i);
        if (len == BLOCK_LEN_LONG) {
            char heap_bytes[BLOCK_LONG_SIZE];
            if (!block_long_create(block_member(block, i, offset), heap_bytes)) {
                /* From here on the pieces are still the original's: they must not be freed. */
                block_remove(block, i, block->count - i);
                return false;
            }
            to->memory_size += block_long_memory_size(heap_bytes);
            block_long_set(block, offset, heap_bytes);
        }
        offset += block_heap_size(len);
    }
    return true;
}

static bool copy_leaf(struct skiplist *to, struct skiplist_node *node, const struct block *from) {
    struct block *block = leaf_adopt(to, block_create(from->count, from->heap_used));
    if (block == NULL)
        return false;
    block->links = from->links;
    block_copy(block, 0, from, 0, from->count);
    node->block = block;
    return copy_long_members(to, block);
}

static bool copy_index(struct skiplist *to, struct skiplist_node *node,
                       const struct index_block *from) {
    struct index_block *index = branch_create(to, from->capacity, node->level);
    if (index == NULL)
        return false;
    index_copy(index, from);
    node->block = index;
    return true;
}

bool skiplist_copy(const struct skiplist *list, struct skiplist *to) {
    if (!nodes_reserve(to, list->node_end))
        return false;
    for (uint32_t id = 0; id < list->node_end; id++) {
        struct skiplist_node *node = skiplist_node(to, id);
        *node = *skiplist_node(list, id);
        node->block = NULL;
        to->node_end = id + 1;
        void *from = skiplist_node(list, id)->block;
        if (from == NULL)
            continue;
        if (!(node->level == 0 ? copy_leaf(to, node, from) : copy_index(to, node, from))) {
            skiplist_deinit(to);
            return false;
        }
    }
    to->free_first = list->free_first;
    to->free_count = list->free_count;
    to->root = list->root;
    to->first = list->first;
    to->last = list->last;
    to->count = list->count;
    return true;
}

/* ---- finding ---- */

static uint32_t leaf_for(const struct skiplist *list, uint64_t key, bool or_equal) {
    uint32_t id = list->root;
    if (id == SKIPLIST_NONE)
        return id;
    for (uint32_t level = skiplist_node(list, id)->level; level > 0; level--) {
        struct index_block *index = index_at(list, id);
        id = index_children(index)[index_child_for(index, key, or_equal)];
    }
    return id;
}

struct skiplist_place skiplist_place_above(const struct skiplist *list, uint64_t key,
                                           bool or_equal) {
    struct skiplist_place place = {.leaf = leaf_for(list, key, or_equal)};
    if (place.leaf != SKIPLIST_NONE) {
        const struct block *block = leaf_at(list, place.leaf);
        place.index = block_keys_above(block_keys(block), block->count, key, or_equal);
    }
    return place;
}

struct skiplist_place skiplist_place_for(const struct skiplist *list, uint64_t key) {
    return skiplist_place_above(list, key, !list->is_latest);
}

struct skiplist_place skiplist_at(const struct skiplist *list, uint32_t rank) {
    CHECK(rank < list->count);
    uint32_t id = list->root;
    for (uint32_t level = skiplist_node(list, id)->level; level > 0; level--) {
        struct index_block *index = index_at(list, id);
        id = index_children(index)[index_child_at(index, &rank)];
    }
    return (struct skiplist_place){.leaf = id, .index = rank};
}

uint32_t skiplist_rank(const struct skiplist *list, struct skiplist_place place) {
    uint32_t rank = place.index;
    if (place.leaf == SKIPLIST_NONE)
        return 0;
    const struct skiplist_node *node = skiplist_node(list, place.leaf);
    if (node->parent == SKIPLIST_NONE)
        return rank;
    /* Of the lowest index block only the line of spans is read. */
    rank += index_narrow_sum(index_at(list, node->parent), node->position);
    for (node = skiplist_node(list, node->parent); node->parent != SKIPLIST_NONE;
         node = skiplist_node(list, node->parent))
        rank += index_wide_sum(index_at(list, node->parent), node->position);
    return rank;
}

/* ---- inserting: memory first ---- */

/* Memory for count entries of a leaf from index on, a newcomer of this many heap bytes among them,
 * and for a few to come. */
static struct block *plan_half(const struct block *block, uint32_t index, uint32_t count,
                               uint32_t size) {
    uint32_t heap = block_offset(block, index + count) - block_offset(block, index) + size;
    uint32_t more = BLOCK_GROW_ENTRIES;
    if (count + 1 + more > BLOCK_ENTRIES_MAX)
        more = BLOCK_ENTRIES_MAX - count - 1;
    return block_create(count + 1 + more, heap + more * (heap / (count + 1) + 1));
}

static bool plan_leaf(struct skiplist *list, struct skiplist_plan *plan, uint8_t len) {
    enum plan_change change = (enum plan_change)plan->change;
    const struct block *block = change == PLAN_FIRST ? NULL : leaf_at(list, plan->place.leaf);
    uint32_t size = block_heap_size(len);
    uint32_t entries = (BLOCK_GROW_ENTRIES + 1) / 2;
    if (change == PLAN_GROW) {
        plan->new_block = leaf_adopt(list, block_create_grown(block, len));
    } else if (change == PLAN_SPLIT) {
        /* Both halves move to memory of their own size: the old piece would be half empty. */
        uint32_t at = block_split_index(block);
        bool is_left = plan->place.index <= at;
        plan->left_block = leaf_adopt(list, plan_half(block, 0, at, is_left ? size : 0));
        plan->new_block =
            leaf_adopt(list, plan_half(block, at, block->count - at, is_left ? 0 : size));
        return plan->left_block != NULL && plan->new_block != NULL;
    } else {
        plan->new_block = leaf_adopt(list, block_create(entries, entries * size));
    }
    return plan->new_block != NULL;
}

/* Spare index blocks for every full ancestor, up to the first one with room. */
static bool plan_indexes(struct skiplist *list, struct skiplist_plan *plan) {
    uint32_t id = skiplist_node(list, plan->place.leaf)->parent;
    for (; id != SKIPLIST_NONE; id = skiplist_node(list, id)->parent) {
        const struct index_block *index = index_at(list, id);
        if (index->count < index->capacity)
            return true;
        bool grows = index->capacity < INDEX_FANOUT;
        uint32_t capacity = grows ? 2U * index->capacity : INDEX_FANOUT;
        struct index_block *spare = branch_create(list, capacity, skiplist_node(list, id)->level);
        if (spare == NULL)
            return false;
        CHECK(plan->index_count < SKIPLIST_LEVELS_MAX);
        plan->indexes[plan->index_count++] = spare;
        if (grows)
            return true;
    }
    plan->indexes[plan->index_count] =
        branch_create(list, INDEX_FANOUT_FIRST, skiplist_node(list, list->root)->level + 1U);
    return plan->indexes[plan->index_count++] != NULL;
}

static enum plan_change plan_change_for(const struct skiplist *list, struct skiplist_place place,
                                        uint8_t len) {
    if (place.leaf == SKIPLIST_NONE)
        return PLAN_FIRST;
    const struct block *block = leaf_at(list, place.leaf);
    if (block_has_room(block, len) && !block_is_full_for(block, len))
        return PLAN_FITS;
    if (!block_is_full_for(block, len))
        return PLAN_GROW;
    if (place.leaf == list->last && place.index == block->count)
        return PLAN_AFTER;
    if (place.leaf == list->first && place.index == 0)
        return PLAN_BEFORE;
    return PLAN_SPLIT;
}

bool skiplist_reserve(struct skiplist *list, struct skiplist_place place, uint8_t len,
                      struct skiplist_plan *plan) {
    enum plan_change change = plan_change_for(list, place, len);
    plan->place = place;
    plan->change = (uint8_t)change;
    plan->index_count = 0;
    plan->new_block = NULL;
    plan->left_block = NULL;
    if (change == PLAN_FITS)
        return true;
    bool has_all = plan_leaf(list, plan, len);
    if (has_all && skiplist_adds_leaf(plan))
        has_all = plan_indexes(list, plan);
    if (has_all && change != PLAN_GROW)
        has_all = nodes_reserve(list, 1U + plan->index_count);
    if (!has_all)
        skiplist_unreserve(list, plan);
    return has_all;
}

bool skiplist_adds_leaf(const struct skiplist_plan *plan) {
    return plan->change == PLAN_SPLIT || plan->change == PLAN_AFTER || plan->change == PLAN_BEFORE;
}

uint32_t skiplist_id_end(const struct skiplist *list, const struct skiplist_plan *plan) {
    return list->node_end + 1 + plan->index_count;
}

void skiplist_unreserve(struct skiplist *list, struct skiplist_plan *plan) {
    if (plan->new_block != NULL)
        leaf_destroy(list, plan->new_block);
    if (plan->left_block != NULL)
        leaf_destroy(list, plan->left_block);
    plan->new_block = NULL;
    plan->left_block = NULL;
    for (uint32_t i = 0; i < plan->index_count; i++)
        if (plan->indexes[i] != NULL)
            branch_destroy(list, plan->indexes[i]);
    plan->index_count = 0;
}

/* ---- inserting: dividing ---- */

/* The children from position on have come to stand in another place. */
static void renumber(struct skiplist *list, uint32_t id, uint32_t position) {
    struct index_block *index = index_at(list, id);
    const uint32_t *children = index_children(index);
    for (uint32_t i = position; i < index->count; i++) {
        skiplist_node(list, children[i])->parent = id;
        skiplist_node(list, children[i])->position = (uint16_t)i;
    }
}

static void put_child(struct skiplist *list, uint32_t id, uint32_t position, uint64_t key,
                      uint32_t span, uint32_t child) {
    index_insert(index_at(list, id), position, key, span, child);
    renumber(list, id, position);
}

/* Put a new block, on level 0 or above, into the chain behind (or before) another one. */
static void links_insert(struct skiplist *list, uint32_t id, uint32_t at, bool is_before) {
    struct block_links *links = links_at(list, id);
    struct block_links *beside = links_at(list, at);
    links->previous = is_before ? beside->previous : at;
    links->next = is_before ? at : beside->next;
    if (links->previous != SKIPLIST_NONE)
        links_at(list, links->previous)->next = id;
    if (links->next != SKIPLIST_NONE)
        links_at(list, links->next)->previous = id;
}

static void links_remove(struct skiplist *list, uint32_t id) {
    const struct block_links *links = links_at(list, id);
    if (links->previous != SKIPLIST_NONE)
        links_at(list, links->previous)->next = links->next;
    if (links->next != SKIPLIST_NONE)
        links_at(list, links->next)->previous = links->previous;
}

/* The spare blocks are used in the order in which they were planned: from below upwards. */
struct spares {
    void *const *indexes;
};

static void add_root(struct skiplist *list, struct spares *spares) {
    struct index_block *index = *spares->indexes++;
    uint32_t old_root = list->root;
    index->links = (struct block_links){.next = SKIPLIST_NONE, .previous = SKIPLIST_NONE};
    list->root = node_take(list, index, skiplist_node(list, old_root)->level + 1);
    put_child(list, list->root, 0, UINT64_MAX, list->count, old_root);
}

static void grow_index(struct skiplist *list, uint32_t id, struct spares *spares) {
    struct index_block *old = index_at(list, id);
    struct index_block *index = *spares->indexes++;
    index->links = old->links;
    index_move(index, old, 0);
    skiplist_node(list, id)->block = index;
    branch_destroy(list, old);
}

static void add_child(struct skiplist *list, uint32_t beside, uint32_t child, uint64_t key,
                      uint32_t span, struct spares *spares);

/* Divide a full index block for a new child at position. *id and *position are then where the
 * child goes. span is the child's, key its separator. */
static void split_index(struct skiplist *list, uint32_t *id, uint32_t *position, uint64_t key,
                        uint32_t span, struct spares *spares) {
    struct index_block *left = index_at(list, *id);
    struct index_block *right = *spares->indexes++;
    uint32_t right_id = node_take(list, right, skiplist_node(list, *id)->level);
    /* At the very end of the list the left block stays full, as with leaves. */
    bool is_at_end = left->links.next == SKIPLIST_NONE && *position == left->count;
    uint32_t at = is_at_end ? left->count : left->count / 2U;
    bool goes_right = is_at_end || *position > at;
    /* The child's span is no longer part of its neighbour's, but still of the parent's. */
    uint32_t right_span =
        index_span_sum(left, left->count) - index_span_sum(left, at) + (goes_right ? span : 0);
    links_insert(list, right_id, *id, false);
    index_move(right, left, at);
    renumber(list, right_id, 0);
    add_child(list, *id, right_id, is_at_end ? key : index_keys(right)[0], right_span, spares);
    if (goes_right) {
        *id = right_id;
        *position -= at;
    }
}

/* Put child into the index behind beside, of whose entries it has taken over span. */
static void add_child(struct skiplist *list, uint32_t beside, uint32_t child, uint64_t key,
                      uint32_t span, struct spares *spares) {
    if (skiplist_node(list, beside)->parent == SKIPLIST_NONE)
        add_root(list, spares);
    uint32_t parent = skiplist_node(list, beside)->parent;
    struct index_block *index = index_at(list, parent);
    uint32_t position = skiplist_node(list, beside)->position;
    index_add_span(index, position, 0U - span);
    position++;
    if (index->count == INDEX_FANOUT)
        split_index(list, &parent, &position, key, span, spares);
    else if (index->count == index->capacity)
        grow_index(list, parent, spares);
    put_child(list, parent, position, key, span, child);
}

/* Put child into the index before the list's first leaf, which keeps its entries. */
static void add_child_before(struct skiplist *list, uint32_t first, uint32_t child,
                             struct spares *spares) {
    const struct block *block = leaf_at(list, first);
    /* The new leaf takes over the old one's place, and the old one follows as a new child. */
    if (skiplist_node(list, first)->parent == SKIPLIST_NONE)
        add_root(list, spares);
    uint32_t parent = skiplist_node(list, first)->parent;
    struct index_block *index = index_at(list, parent);
    uint32_t position = skiplist_node(list, first)->position;
    index_children(index)[position] = child;
    skiplist_node(list, child)->parent = parent;
    skiplist_node(list, child)->position = (uint16_t)position;
    add_child(list, child, first, block_keys(block)[0], block->count, spares);
}

static uint32_t add_leaf(struct skiplist *list, struct skiplist_plan *plan) {
    struct block *block = plan->new_block;
    plan->new_block = NULL;
    block->links = (struct block_links){.next = SKIPLIST_NONE, .previous = SKIPLIST_NONE};
    return node_take(list, block, 0);
}

/* Halve the leaf; returns the new one, to its right. */
static uint32_t split_leaf(struct skiplist *list, struct skiplist_plan *plan,
                           struct skiplist_owner owner, struct spares *spares) {
    uint32_t left_id = plan->place.leaf;
    struct block *left = leaf_at(list, left_id);
    struct block *right = plan->new_block;
    uint32_t right_id = add_leaf(list, plan);
    uint32_t at = block_split_index(left);
    uint32_t count = left->count - at;
    links_insert(list, right_id, left_id, false);
    block_copy(right, 0, left, at, count);
    block_remove(left, at, count);
    leaf_replace(list, left_id, plan->left_block);
    if (list->last == left_id)
        list->last = right_id;
    add_child(list, left_id, right_id, block_keys(right)[0], count, spares);
    owner.moved(owner.owner, right, 0, count, left_id, right_id);
    return right_id;
}

/* Make the room that was planned; returns where the entry goes now. */
static struct skiplist_place make_room(struct skiplist *list, struct skiplist_plan *plan,
                                       struct skiplist_owner owner) {
    struct skiplist_place place = plan->place;
    struct spares spares = {.indexes = plan->indexes};
    switch ((enum plan_change)plan->change) {
    case PLAN_FITS:
        return place;
    case PLAN_GROW:
        leaf_replace(list, place.leaf, plan->new_block);
        return place;
    case PLAN_SPLIT: {
        uint32_t right_id = split_leaf(list, plan, owner, &spares);
        uint32_t left_count = leaf_at(list, place.leaf)->count;
        if (place.index <= left_count)
            return place;
        return (struct skiplist_place){.leaf = right_id, .index = place.index - left_count};
    }
    case PLAN_AFTER: {
        uint32_t id = add_leaf(list, plan);
        links_insert(list, id, place.leaf, false);
        list->last = id;
        /* The separator may be anything between the neighbours' keys. */
        const struct block *left = leaf_at(list, place.leaf);
        add_child(list, place.leaf, id, block_keys(left)[left->count - 1], 0, &spares);
        return (struct skiplist_place){.leaf = id, .index = 0};
    }
    case PLAN_BEFORE: {
        uint32_t id = add_leaf(list, plan);
        links_insert(list, id, place.leaf, true);
        list->first = id;
        add_child_before(list, place.leaf, id, &spares);
        return (struct skiplist_place){.leaf = id, .index = 0};
    }
    case PLAN_FIRST:
        list->root = list->first = list->last = add_leaf(list, plan);
        return (struct skiplist_place){.leaf = list->root, .index = 0};
    }
    CHECK(false);
    return place;
}

/* Add to the spans above a block. */
static void add_to_spans(struct skiplist *list, uint32_t id, uint32_t delta) {
    for (uint32_t parent; (parent = skiplist_node(list, id)->parent) != SKIPLIST_NONE;
         id = parent) {
        struct index_block *index = index_at(list, parent);
        index_add_span(index, skiplist_node(list, id)->position, delta);
    }
    list->count += delta;
}

uint32_t skiplist_insert(struct skiplist *list, struct skiplist_plan *plan,
                         const struct block_entry *entry, struct skiplist_owner owner) {
    struct skiplist_place place = make_room(list, plan, owner);
    block_insert(leaf_at(list, place.leaf), place.index, entry);
    if (entry->len == BLOCK_LEN_LONG)
        list->memory_size += block_long_memory_size(entry->at);
    add_to_spans(list, place.leaf, 1);
    return place.leaf;
}

void skiplist_shift(struct skiplist *list, struct skiplist_place place, uint32_t to, uint64_t key) {
    block_shift(leaf_at(list, place.leaf), place.index, to, key);
}

/* ---- removing ---- */

/* The root goes while it has one child only. */
static void shrink_root(struct skiplist *list) {
    while (skiplist_node(list, list->root)->level > 0) {
        struct index_block *index = index_at(list, list->root);
        if (index->count > 1)
            return;
        uint32_t child = index_children(index)[0];
        node_give_back(list, list->root);
        branch_destroy(list, index);
        list->root = child;
        skiplist_node(list, child)->parent = SKIPLIST_NONE;
    }
}

static void remove_child(struct skiplist *list, uint32_t id);

/* Merge an index block that has become small with a neighbour under the same parent. */
static void merge_index(struct skiplist *list, uint32_t id) {
    uint32_t parent_id = skiplist_node(list, id)->parent;
    struct index_block *parent = index_at(list, parent_id);
    uint32_t position = skiplist_node(list, id)->position;
    if (parent->count < 2)
        return;
    uint32_t left_at = position > 0 ? position - 1 : position;
    uint32_t left_id = index_children(parent)[left_at];
    uint32_t right_id = index_children(parent)[left_at + 1];
    struct index_block *left = index_at(list, left_id);
    struct index_block *right = index_at(list, right_id);
    uint32_t count = left->count + right->count;
    if (count > INDEX_FANOUT * 3 / 4 || count > left->capacity)
        return;
    uint32_t left_count = left->count;
    index_move(left, right, 0);
    index_set_key(left, left_count, index_keys(parent)[left_at + 1]);
    renumber(list, left_id, left_count);
    index_add_span(parent, left_at, index_span(parent, left_at + 1));
    remove_child(list, right_id);
}

/* Take a block that has become empty out of its level and its parent, and free it. */
static void remove_child(struct skiplist *list, uint32_t id) {
    struct skiplist_node node = *skiplist_node(list, id);
    links_remove(list, id);
    if (node.level > 0)
        branch_destroy(list, node.block);
    else
        leaf_destroy(list, node.block);
    if (node.parent == SKIPLIST_NONE) {
        node_give_back(list, id);
        list->root = SKIPLIST_NONE;
        return;
    }
    struct index_block *index = index_at(list, node.parent);
    uint32_t position = node.position;
    node_give_back(list, id);
    index_remove(index, position);
    renumber(list, node.parent, position);
    if (index->count == 0)
        remove_child(list, node.parent);
    else if (node.parent == list->root)
        shrink_root(list);
    else if (index->count <= INDEX_FANOUT / 4)
        merge_index(list, node.parent);
}

static void remove_leaf(struct skiplist *list, uint32_t id) {
    const struct block_links *links = links_at(list, id);
    if (list->first == id)
        list->first = links->next;
    if (list->last == id)
        list->last = links->previous;
    remove_child(list, id);
}

/* Make room in the leaf for all entries of another one. false: no memory. */
static bool make_room_for(struct skiplist *list, uint32_t id, const struct block *other) {
    const struct block *block = leaf_at(list, id);
    uint32_t count = block->count + other->count;
    uint32_t heap = (uint32_t)block->heap_used + other->heap_used;
    if (count <= block->capacity && heap <= block->heap_size)
        return true;
    struct block *larger = leaf_adopt(list, block_create(count, heap));
    if (larger == NULL)
        return false;
    leaf_replace(list, id, larger);
    return true;
}

/* Move the entries of the smaller of two neighbours under one parent to the larger one. */
static void merge_leaves(struct skiplist *list, struct index_block *parent, uint32_t left_at,
                         struct skiplist_owner owner) {
    uint32_t left_id = index_children(parent)[left_at];
    uint32_t right_id = index_children(parent)[left_at + 1];
    bool is_left_kept = leaf_at(list, left_id)->count >= leaf_at(list, right_id)->count;
    uint32_t kept_id = is_left_kept ? left_id : right_id;
    uint32_t gone_id = is_left_kept ? right_id : left_id;
    struct block *gone = leaf_at(list, gone_id);
    if (!make_room_for(list, kept_id, gone))
        return;
    struct block *kept = leaf_at(list, kept_id);
    uint32_t index = is_left_kept ? kept->count : 0;
    uint32_t count = gone->count;
    block_copy(kept, index, gone, 0, count);
    /* One of the two goes, whichever it is. */
    index_add_span(parent, left_at, index_span(parent, left_at + 1));
    index_set_span(parent, left_at + 1, index_span(parent, left_at));
    if (!is_left_kept)
        index_set_key(parent, left_at + 1, index_keys(parent)[left_at]);
    owner.moved(owner.owner, kept, index, count, gone_id, kept_id);
    remove_leaf(list, gone_id);
}

/* Merge a leaf that has become small, if a neighbour under the same parent has room. */
static void merge_leaf(struct skiplist *list, uint32_t id, struct skiplist_owner owner) {
    uint32_t parent_id = skiplist_node(list, id)->parent;
    if (parent_id == SKIPLIST_NONE)
        return;
    struct index_block *parent = index_at(list, parent_id);
    uint32_t position = skiplist_node(list, id)->position;
    const struct block *block = leaf_at(list, id);
    const uint32_t *children = index_children(parent);
    if (position > 0 && block_may_merge(leaf_at(list, children[position - 1]), block))
        merge_leaves(list, parent, position - 1, owner);
    else if (position + 1U < parent->count &&
             block_may_merge(block, leaf_at(list, children[position + 1])))
        merge_leaves(list, parent, position, owner);
}

/* Give memory back when the leaf needs less than half of it. Without memory for that it stays. */
static void leaf_trim(struct skiplist *list, uint32_t id) {
    struct block *block = leaf_at(list, id);
    if (!block_is_wasteful(block))
        return;
    struct block *trimmed = leaf_adopt(list, block_create_grown(block, 1));
    if (trimmed != NULL)
        leaf_replace(list, id, trimmed);
}

void skiplist_remove(struct skiplist *list, struct skiplist_place place, uint32_t count,
                     bool keeps_long, struct skiplist_owner owner) {
    struct block *block = leaf_at(list, place.leaf);
    if (keeps_long) {
        const char *at = block_heap(block) + block_offset(block, place.index);
        CHECK(count == 1);
        if (block_len(block, place.index) == BLOCK_LEN_LONG)
            list->memory_size -= block_long_memory_size(at);
    } else {
        leaf_free_long(list, block, place.index, count);
    }
    block_remove(block, place.index, count);
    add_to_spans(list, place.leaf, -count);
    if (block->count == 0) {
        remove_leaf(list, place.leaf);
        return;
    }
    leaf_trim(list, place.leaf);
    if (leaf_at(list, place.leaf)->count <= BLOCK_ENTRIES_MAX / 4)
        merge_leaf(list, place.leaf, owner);
}

/* ---- prefetching ---- */

void skiplist_prefetch_leaf(const struct skiplist *list, uint32_t id) {
    const struct skiplist_node *node = skiplist_node(list, id);
    /* The hint may be old, and the id free by now. */
    if (node->block == NULL)
        return;
    /* Header and marks of a full leaf; how many it has is not here yet. */
    prefetch_lines(node->block, sizeof(struct block) + 2 * BLOCK_ENTRIES_MAX);
    if (node->parent == SKIPLIST_NONE)
        return;
    prefetch_lines(index_narrow_spans(index_at(list, node->parent)), INDEX_FANOUT);
}

void skiplist_prefetch_entry(const struct skiplist *list, uint32_t id, uint8_t tag,
                             size_t member_size, bool is_change) {
    const struct block *block = skiplist_leaf(list, id);
    uint32_t index;
    if (block == NULL || !block_find_tag(block, tag, member_size, &index))
        return;
    const uint64_t *keys = block_keys(block);
    uint32_t offset = block_offset(block, index);
    const char *member = block_heap(block) + offset;
    if (is_change) {
        prefetch_lines(keys + index, (block->count - index) * sizeof *keys);
        prefetch_lines(member, block->heap_used - offset);
    } else {
        prefetch_line(keys + index);
        prefetch_lines(member, block_heap_size(block_len(block, index)));
    }
}

void skiplist_prefetch_place(const struct skiplist *list, uint64_t key) {
    const struct block *block = skiplist_leaf(list, leaf_for(list, key, !list->is_latest));
    if (block != NULL)
        prefetch_lines(block, PREFETCH_PLACE_SIZE);
}

uint32_t skiplist_prefetch_way(const struct skiplist *list, uint64_t key) {
    uint32_t id = list->root;
    if (id == SKIPLIST_NONE)
        return id;
    for (uint32_t level = skiplist_node(list, id)->level; level > 1; level--) {
        struct index_block *index = index_at(list, id);
        id = index_children(index)[index_child_for(index, key, !list->is_latest)];
    }
    prefetch_line(skiplist_node(list, id));
    return id;
}

/* The lowest index block with this id; NULL when there is none (any more), whatever id is. */
static struct index_block *lowest_index(const struct skiplist *list, uint32_t id) {
    if (id >= list->node_end || skiplist_node(list, id)->level != 1)
        return NULL;
    return index_at(list, id);
}

void skiplist_prefetch_way_index(const struct skiplist *list, uint32_t id) {
    const struct index_block *index = lowest_index(list, id);
    /* Fences and spans; of children and keys only a line each is read. */
    if (index != NULL)
        prefetch_lines(index, sizeof *index + INDEX_FANOUT);
}

uint32_t skiplist_prefetch_way_leaf(const struct skiplist *list, uint32_t id, uint64_t key) {
    struct index_block *index = lowest_index(list, id);
    if (index == NULL)
        return id;
    id = index_children(index)[index_child_for(index, key, !list->is_latest)];
    /* One line only, and the wait for the node between two of them: a processor keeps some twenty
     * fetches in flight and drops hints beyond that. */
    prefetch_line(skiplist_node(list, id)->block);
    return id;
}

void skiplist_prefetch_way_end(const struct skiplist *list, uint32_t id, uint64_t key) {
    const struct block *block = skiplist_leaf(list, id);
    if (block == NULL)
        return;
    const uint64_t *keys = block_keys(block);
    uint32_t index = block_keys_above(keys, block->count, key, !list->is_latest);
    uint32_t offset = block_offset(block, index);
    prefetch_lines(keys + index, (block->count - index + 1U) * sizeof *keys);
    prefetch_lines(block_heap(block) + offset, block->heap_used - offset + 1U);
}

/* ---- checking ---- */

struct check {
    const struct skiplist *list;
    const char *wrong;
    uint32_t node_count; /* blocks reached */
    size_t memory_size;
    uint32_t last_at[SKIPLIST_LEVELS_MAX]; /* the block met last on each level */
    uint64_t last_key;
};

static bool claim(struct check *check, bool holds, const char *wrong) {
    if (!holds && check->wrong == NULL)
        check->wrong = wrong;
    return holds;
}

static void check_links(struct check *check, uint32_t id, uint32_t level) {
    const struct skiplist *list = check->list;
    uint32_t before = check->last_at[level];
    claim(check, links_at(list, id)->previous == before, "skiplist: a link back is wrong");
    if (before != SKIPLIST_NONE)
        claim(check, links_at(list, before)->next == id, "skiplist: a link forward is wrong");
    else if (level == 0)
        claim(check, list->first == id, "skiplist: first is not the first leaf");
    check->last_at[level] = id;
}

static uint32_t check_leaf(struct check *check, uint32_t id, uint64_t separator) {
    const struct block *block = leaf_at(check->list, id);
    const char *reason = "";
    bool is_valid = block_validate(block, &reason);
    claim(check, is_valid, reason);
    if (!claim(check, block->count > 0, "skiplist: a leaf is empty"))
        return 0;
    claim(check, block_keys(block)[0] <= check->last_key, "skiplist: keys increase");
    claim(check, separator <= check->last_key, "skiplist: a separator is above the last key");
    claim(check, separator >= block_keys(block)[0], "skiplist: a separator is below the first key");
    check->last_key = block_keys(block)[block->count - 1];
    check->memory_size += memory_size(block);
    for (uint32_t i = 0; i < block->count && block->long_count > 0; i++)
        if (block_len(block, i) == BLOCK_LEN_LONG)
            check->memory_size +=
                block_long_memory_size(block_heap(block) + block_offset(block, i));
    return block->count;
}

static uint32_t check_subtree(struct check *check, uint32_t id, uint32_t parent, uint32_t level,
                              uint64_t separator) {
    const struct skiplist *list = check->list;
    if (!claim(check, id < list->node_end && skiplist_node(list, id)->block != NULL,
               "skiplist: a child is not in use"))
        return 0;
    check->node_count++;
    claim(check, skiplist_node(list, id)->parent == parent, "skiplist: a link up is wrong");
    if (parent != SKIPLIST_NONE)
        claim(check,
              index_children(index_at(list, parent))[skiplist_node(list, id)->position] == id,
              "skiplist: a child's position is wrong");
    if (!claim(check, skiplist_node(list, id)->level == level, "skiplist: a level is wrong"))
        return 0;
    check_links(check, id, level);
    if (level == 0)
        return check_leaf(check, id, separator);
    struct index_block *index = index_at(list, id);
    check->memory_size += memory_size(index);
    const char *reason = "";
    bool is_valid = index_validate(index, &reason);
    if (!claim(check, is_valid, reason))
        return 0;
    claim(check, index->is_lowest == (level == 1), "skiplist: an index block's spans are wrong");
    uint32_t count = 0;
    for (uint32_t i = 0; i < index->count && check->wrong == NULL; i++) {
        uint32_t child = index_children(index)[i];
        uint64_t key = i == 0 ? separator : index_keys(index)[i];
        uint32_t span = check_subtree(check, child, id, level - 1, key);
        claim(check, span == index_span(index, i), "skiplist: a span is wrong");
        count += span;
    }
    return count;
}

static void check_nodes(struct check *check) {
    const struct skiplist *list = check->list;
    uint32_t free_count = 0;
    for (uint32_t id = list->free_first; id != SKIPLIST_NONE;
         id = skiplist_node(list, id)->parent) {
        if (!claim(check, id < list->node_end && skiplist_node(list, id)->block == NULL,
                   "skiplist: a free id is in use"))
            return;
        if (!claim(check, ++free_count <= list->node_end, "skiplist: free ids go in a circle"))
            return;
    }
    claim(check, free_count == list->free_count, "skiplist: free ids are not counted right");
    claim(check, free_count + check->node_count == list->node_end, "skiplist: ids are lost");
    check->memory_size += nodes_memory_size(list);
    claim(check, check->memory_size == list->memory_size, "skiplist: memory is not counted right");
}

bool skiplist_validate(const struct skiplist *list, const char **reason) {
    struct check check = {.list = list, .last_key = UINT64_MAX};
    for (uint32_t i = 0; i < SKIPLIST_LEVELS_MAX; i++)
        check.last_at[i] = SKIPLIST_NONE;
    uint32_t count = 0;
    if (list->root != SKIPLIST_NONE) {
        uint32_t level = skiplist_node(list, list->root)->level;
        count = check_subtree(&check, list->root, SKIPLIST_NONE, level, UINT64_MAX);
        for (uint32_t i = 0; i <= level && check.wrong == NULL; i++)
            claim(&check, links_at(list, check.last_at[i])->next == SKIPLIST_NONE,
                  "skiplist: a level does not end");
    }
    claim(&check, count == list->count, "skiplist: entries are not counted right");
    if (check.wrong == NULL) {
        claim(&check, list->last == check.last_at[0], "skiplist: last is not the last leaf");
        check_nodes(&check);
    }
    if (check.wrong != NULL)
        *reason = check.wrong;
    return check.wrong == NULL;
}
