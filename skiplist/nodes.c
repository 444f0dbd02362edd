/* The header tells what this is. Nothing here keeps keys in order or spans right. */
#include "skiplist/nodes.h"

#include "codec/memory.h"

/* ---- memory ---- */

struct index_block *nodes_create_index(struct skiplist *list, uint32_t capacity, unsigned level) {
    struct index_block *index = index_create(capacity, level == 1);
    if (index != NULL)
        list->memory_size += memory_size(index);
    return index;
}

void nodes_destroy_index(struct skiplist *list, struct index_block *index) {
    list->memory_size -= memory_size(index);
    index_destroy(index);
}

struct block *nodes_adopt_leaf(struct skiplist *list, struct block *block) {
    if (block != NULL)
        list->memory_size += memory_size(block);
    return block;
}

void nodes_destroy_leaf(struct skiplist *list, struct block *block) {
    list->memory_size -= memory_size(block);
    block_destroy(block);
}

void nodes_replace_leaf(struct skiplist *list, uint32_t id, struct block *block) {
    struct block *old = nodes_leaf(list, id);
    block->links = old->links;
    block_copy(block, 0, old, 0, old->count);
    skiplist_node(list, id)->block = block;
    nodes_destroy_leaf(list, old);
}

void nodes_free_long(struct skiplist *list, const struct block *block, uint32_t index,
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

bool nodes_reserve(struct skiplist *list, uint32_t count) {
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

size_t nodes_memory_size(const struct skiplist *list) {
    size_t size = list->segments == &list->first_segment ? 0 : memory_size(list->segments);
    for (uint32_t id = 0; id < list->node_capacity; id += SKIPLIST_SEGMENT_NODES)
        if (skiplist_node(list, id) != &list->first_node)
            size += memory_size(skiplist_node(list, id));
    return size;
}

void nodes_free_segment(struct skiplist *list) {
    CHECK(list->node_capacity > SKIPLIST_SEGMENT_NODES);
    list->node_capacity -= SKIPLIST_SEGMENT_NODES;
    struct skiplist_node *nodes = list->segments[list->node_capacity >> SKIPLIST_SEGMENT_BITS];
    list->memory_size -= memory_size(nodes);
    memory_free(nodes);
}

void nodes_free(struct skiplist *list) {
    list->memory_size -= nodes_memory_size(list);
    for (uint32_t id = 0; id < list->node_capacity; id += SKIPLIST_SEGMENT_NODES)
        if (skiplist_node(list, id) != &list->first_node)
            memory_free(skiplist_node(list, id));
    if (list->segments != &list->first_segment)
        memory_free(list->segments);
}

uint32_t nodes_take(struct skiplist *list, void *block, unsigned level) {
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

void nodes_give_back(struct skiplist *list, uint32_t id) {
    *skiplist_node(list, id) = (struct skiplist_node){.block = NULL, .parent = list->free_first};
    list->free_first = id;
    list->free_count++;
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
    if (previous != SKIPLIST_NONE)
        nodes_links(list, previous)->next = next;
    if (next != SKIPLIST_NONE)
        nodes_links(list, next)->previous = previous;
}
