/* See the header. Nothing here maintains key order or spans. */
#include "skiplist/nodes.h"

#include "codec/memory.h"

enum {
    /* Ids are compacted when this many more are free than in use. */
    COMPACT_FREE_MIN = SKIPLIST_SEGMENT_NODES / 256 + 1,
    /* Free ids skipped in one step. */
    COMPACT_IDS = 32,
};

/* ---- memory ---- */

struct index_block *nodes_create_index(struct skiplist *list, uint32_t capacity, unsigned level) {
    struct index_block *index = index_create(capacity, level == 1, list->is_dense);
    if (index != NULL) {
        list->memory_size += memory_size(index);
    }
    return index;
}

struct block *nodes_adopt_leaf(struct skiplist *list, struct block *block) {
    if (block != NULL) {
        list->memory_size += memory_size(block);
    }
    return block;
}

void nodes_destroy(struct skiplist *list, void *block) {
    list->memory_size -= memory_size(block);
    memory_free(block);
}

size_t nodes_leaf_memory_size(const struct block *block) {
    size_t size = memory_size(block);
    const char *at = block_heap(block);
    for (uint32_t i = 0; i < block->count && block->long_count > 0; i++) {
        uint8_t code = block_code(block, i);
        if (code == NAME_LONG) {
            size += block_long_memory_size(at);
        }
        at += block_heap_size(code);
    }
    return size;
}

void nodes_replace_leaf(struct skiplist *list, uint32_t id, struct block *block) {
    struct block *old = nodes_leaf(list, id);
    block->links = old->links;
    block_copy(block, 0, old, 0, old->count);
    skiplist_node(list, id)->block = block;
    nodes_destroy(list, old);
}

void nodes_replace_index(struct skiplist *list, uint32_t id, struct index_block *index) {
    struct index_block *old = nodes_index(list, id);
    index->links = old->links;
    index->sheet = old->sheet;
    index_move(index, old, 0);
    skiplist_node(list, id)->block = index;
    nodes_destroy(list, old);
}

void nodes_free_long(struct skiplist *list, const struct block *block, uint32_t index,
                     uint32_t count) {
    if (block->long_count == 0) {
        return;
    }
    const char *at = block_heap(block) + block_offset(block, index);
    for (uint32_t i = index; i < index + count; i++) {
        uint8_t code = block_code(block, i);
        if (code == NAME_LONG) {
            list->memory_size -= block_long_memory_size(at);
            block_long_destroy(at);
        }
        at += block_heap_size(code);
    }
}

/* ---- nodes ---- */

/* Enlarge or shrink the only segment. false: no memory. */
static bool nodes_resize_first_segment(struct skiplist *list, uint64_t capacity) {
    bool is_inline = list->first_segment == &list->first_node;
    size_t size_before = is_inline ? 0 : memory_size(list->first_segment);
    struct skiplist_node *nodes =
        memory_resize(is_inline ? NULL : list->first_segment, capacity * sizeof *nodes);
    if (nodes == NULL) {
        return false;
    }
    if (is_inline) {
        nodes[0] = list->first_node;
    }
    list->memory_size += memory_size(nodes) - size_before;
    list->first_segment = nodes;
    list->node_capacity = (uint32_t)capacity;
    return true;
}

static bool nodes_add_segment(struct skiplist *list) {
    uint32_t segment_count = list->node_capacity >> SKIPLIST_SEGMENT_BITS;
    bool is_inline = list->segments == &list->first_segment;
    size_t size_before = is_inline ? 0 : memory_size(list->segments);
    if (segment_count >= size_before / sizeof(void *)) {
        /* Make room in the table for one more segment. */
        struct skiplist_node **segments =
            memory_resize(is_inline ? NULL : list->segments, segment_count * 2 * sizeof(void *));
        if (segments == NULL) {
            return false;
        }
        segments[0] = list->first_segment;
        list->memory_size += memory_size(segments) - size_before;
        list->segments = segments;
    }
    struct skiplist_node *nodes = memory_allocate(SKIPLIST_SEGMENT_NODES * sizeof *nodes);
    if (nodes == NULL) {
        return false;
    }
    list->memory_size += memory_size(nodes);
    list->segments[segment_count] = nodes;
    list->node_capacity += SKIPLIST_SEGMENT_NODES;
    return true;
}

bool nodes_reserve(struct skiplist *list, uint32_t count) {
    uint64_t needed = nodes_needed(list, count);
    if (needed > SKIPLIST_NONE - SKIPLIST_SEGMENT_NODES) {
        return false;
    }
    uint64_t capacity = needed + needed / 8 + 1;
    if (capacity > SKIPLIST_SEGMENT_NODES) {
        capacity = SKIPLIST_SEGMENT_NODES;
    }
    while (needed > list->node_capacity) {
        bool is_first = list->node_capacity < SKIPLIST_SEGMENT_NODES;
        if (!(is_first ? nodes_resize_first_segment(list, capacity) : nodes_add_segment(list))) {
            return false;
        }
    }
    return true;
}

size_t nodes_memory_size(const struct skiplist *list) {
    size_t size = list->segments == &list->first_segment ? 0 : memory_size(list->segments);
    for (uint32_t id = 0; id < list->node_capacity; id += SKIPLIST_SEGMENT_NODES) {
        if (skiplist_node(list, id) != &list->first_node) {
            size += memory_size(skiplist_node(list, id));
        }
    }
    return size;
}

void nodes_free_segment(struct skiplist *list) {
    CHECK(list->node_capacity > SKIPLIST_SEGMENT_NODES);
    list->node_capacity -= SKIPLIST_SEGMENT_NODES;
    struct skiplist_node *nodes = list->segments[list->node_capacity >> SKIPLIST_SEGMENT_BITS];
    list->memory_size -= memory_size(nodes);
    memory_free(nodes);
    if (list->node_capacity > SKIPLIST_SEGMENT_NODES) {
        return;
    }
    /* The one remaining segment needs no table. */
    list->memory_size -= memory_size(list->segments);
    memory_free(list->segments);
    list->segments = &list->first_segment;
}

void nodes_free(struct skiplist *list) {
    list->memory_size -= nodes_memory_size(list);
    for (uint32_t id = 0; id < list->node_capacity; id += SKIPLIST_SEGMENT_NODES) {
        if (skiplist_node(list, id) != &list->first_node) {
            memory_free(skiplist_node(list, id));
        }
    }
    if (list->segments != &list->first_segment) {
        memory_free(list->segments);
    }
}

/* Unlink a free id from the free list. */
static void nodes_unchain(struct skiplist *list, uint32_t id) {
    const struct skiplist_node *node = skiplist_node(list, id);
    if (node->previous_free == SKIPLIST_NONE) {
        list->free_first = node->parent;
    } else {
        skiplist_node(list, node->previous_free)->parent = node->parent;
    }
    if (node->parent != SKIPLIST_NONE) {
        skiplist_node(list, node->parent)->previous_free = node->previous_free;
    }
    list->free_count--;
}

uint32_t nodes_take(struct skiplist *list, void *block, unsigned level) {
    uint32_t id = list->free_first;
    if (id != SKIPLIST_NONE) {
        nodes_unchain(list, id);
    } else {
        CHECK(list->node_end < list->node_capacity);
        id = list->node_end++;
    }
    *skiplist_node(list, id) =
        (struct skiplist_node){.block = block, .parent = SKIPLIST_NONE, .level = (uint16_t)level};
    return id;
}

void nodes_give_back(struct skiplist *list, uint32_t id) {
    *skiplist_node(list, id) = (struct skiplist_node){
        .block = NULL, .parent = list->free_first, .previous_free = SKIPLIST_NONE};
    if (list->free_first != SKIPLIST_NONE) {
        skiplist_node(list, list->free_first)->previous_free = id;
    }
    list->free_first = id;
    list->free_count++;
}

/* ---- compacting ids ---- */

/* Give a block another id: the most recently freed one. */
static void nodes_change_id(struct skiplist *list, uint32_t from, struct skiplist_owner owner) {
    struct skiplist_node node = *skiplist_node(list, from);
    uint32_t to = nodes_take(list, node.block, node.level);
    struct block_links links = *(struct block_links *)node.block;
    *skiplist_node(list, to) = node;
    if (node.parent != SKIPLIST_NONE) {
        index_children(nodes_index(list, node.parent))[node.position] = to;
    }
    if (links.previous != SKIPLIST_NONE) {
        nodes_links(list, links.previous)->next = to;
    }
    if (links.next != SKIPLIST_NONE) {
        nodes_links(list, links.next)->previous = to;
    }
    list->root = list->root == from ? to : list->root;
    list->first = list->first == from ? to : list->first;
    list->last = list->last == from ? to : list->last;
    if (node.level > 0) {
        nodes_renumber(list, to, 0);
    } else {
        const struct block *block = node.block;
        owner.moved(owner.owner, block, 0, block->count, from, to);
    }
    nodes_give_back(list, from);
}

/* Lower node_end while the last ids are free, or by moving one block to a lower id. */
static void nodes_lower_end(struct skiplist *list, struct skiplist_owner owner) {
    if (list->free_count == list->node_end) {
        list->node_end = 0;
        list->free_count = 0;
        list->free_first = SKIPLIST_NONE;
        return;
    }
    if (skiplist_node(list, list->node_end - 1)->block != NULL) {
        nodes_change_id(list, list->node_end - 1, owner);
    }
    for (int i = 0; i < COMPACT_IDS && skiplist_node(list, list->node_end - 1)->block == NULL;
         i++) {
        nodes_unchain(list, --list->node_end);
    }
}

/* Are there several segments, at least two of them unused? */
static bool nodes_has_spare_segment(const struct skiplist *list) {
    return list->node_capacity > SKIPLIST_SEGMENT_NODES &&
           list->node_capacity >= list->node_end + 2 * SKIPLIST_SEGMENT_NODES;
}

/* Is the only segment mostly empty? */
static bool nodes_has_spare(const struct skiplist *list) {
    return list->node_capacity <= SKIPLIST_SEGMENT_NODES &&
           list->node_capacity / 4 > list->node_end + COMPACT_FREE_MIN;
}

static bool nodes_has_spare_ids(const struct skiplist *list) {
    return list->free_count > list->node_end / 2 + COMPACT_FREE_MIN;
}

bool nodes_compact_step(struct skiplist *list, struct skiplist_owner owner) {
    CHECK(list->detached == SKIPLIST_NONE);
    if (nodes_has_spare_ids(list)) {
        nodes_lower_end(list, owner);
    } else if (nodes_has_spare_segment(list)) {
        nodes_free_segment(list);
    } else if (nodes_has_spare(list) &&
               !nodes_resize_first_segment(list, 2 * (list->node_end + COMPACT_FREE_MIN))) {
        return false;
    }
    return nodes_has_spare_ids(list) || nodes_has_spare_segment(list) || nodes_has_spare(list);
}

/* ---- levels ---- */

void nodes_renumber(struct skiplist *list, uint32_t id, uint32_t position) {
    struct index_block *index = nodes_index(list, id);
    const uint32_t *children = index_children(index);
    for (uint32_t i = position; i < index->count; i++) {
        skiplist_node(list, children[i])->parent = id;
        skiplist_node(list, children[i])->position = (uint16_t)i;
    }
}

void nodes_unlink(struct skiplist *list, uint32_t first, uint32_t last) {
    uint32_t previous = nodes_links(list, first)->previous;
    uint32_t next = nodes_links(list, last)->next;
    if (previous != SKIPLIST_NONE) {
        nodes_links(list, previous)->next = next;
    }
    if (next != SKIPLIST_NONE) {
        nodes_links(list, next)->previous = previous;
    }
}
