/* Checks every invariant stated in skiplist.h and nodes.h. */
#include "codec/memory.h"
#include "skiplist/nodes.h"
#include "skiplist/skiplist.h"

struct check {
    const struct skiplist *list;
    const char *wrong;
    uint32_t node_count; /* blocks reached */
    size_t memory_size;
    uint32_t last_at[SKIPLIST_LEVELS_MAX]; /* the last block seen on each level */
    uint64_t last_key;
};

static bool validation_claim(struct check *check, bool holds, const char *wrong) {
    if (!holds && check->wrong == NULL) {
        check->wrong = wrong;
    }
    return holds;
}

static void validation_check_links(struct check *check, uint32_t id, uint32_t level) {
    const struct skiplist *list = check->list;
    uint32_t before = check->last_at[level];
    validation_claim(check, nodes_links(list, id)->previous == before,
                     "skiplist: a link back is wrong");
    if (before != SKIPLIST_NONE) {
        validation_claim(check, nodes_links(list, before)->next == id,
                         "skiplist: a link forward is wrong");
    } else if (level == 0) {
        validation_claim(check, list->first == id, "skiplist: first is not the first leaf");
    }
    check->last_at[level] = id;
}

/* The entries and the memory of a leaf; false: it is empty, or was found wrong. */
static bool validation_check_block(struct check *check, const struct block *block,
                                   const char *empty) {
    const char *reason = NULL;
    bool is_valid = block_validate(block, &reason);
    check->memory_size += nodes_leaf_memory_size(block);
    return validation_claim(check, is_valid, reason) &&
           validation_claim(check, block->count > 0, empty);
}

static uint32_t validation_check_leaf(struct check *check, uint32_t id, uint64_t separator) {
    const struct block *block = nodes_leaf(check->list, id);
    if (!validation_check_block(check, block, "skiplist: a leaf is empty")) {
        return 0;
    }
    validation_claim(check, block_keys(block)[0] <= check->last_key, "skiplist: keys increase");
    validation_claim(check, separator <= check->last_key,
                     "skiplist: a separator is above the last key");
    validation_claim(check, separator >= block_keys(block)[0],
                     "skiplist: a separator is below the first key");
    check->last_key = block_keys(block)[block->count - 1];
    return block->count;
}

static uint32_t validation_check_subtree(struct check *check, uint32_t id, uint32_t parent,
                                         uint32_t level, uint64_t separator) {
    const struct skiplist *list = check->list;
    if (!validation_claim(check, id < list->node_end && skiplist_node(list, id)->block != NULL,
                          "skiplist: a child is not in use")) {
        return 0;
    }
    check->node_count++;
    validation_claim(check, skiplist_node(list, id)->parent == parent,
                     "skiplist: a link up is wrong");
    if (parent != SKIPLIST_NONE) {
        validation_claim(
            check,
            index_children(nodes_index(list, parent))[skiplist_node(list, id)->position] == id,
            "skiplist: a child's position is wrong");
    }
    if (!validation_claim(check, skiplist_node(list, id)->level == level,
                          "skiplist: a level is wrong")) {
        return 0;
    }
    validation_check_links(check, id, level);
    if (level == 0) {
        return validation_check_leaf(check, id, separator);
    }
    struct index_block *index = nodes_index(list, id);
    check->memory_size += memory_size(index);
    const char *reason = "";
    bool is_valid = index_validate(index, &reason);
    if (!validation_claim(check, is_valid, reason)) {
        return 0;
    }
    validation_claim(check, index->is_lowest == (level == 1),
                     "skiplist: an index block's spans are wrong");
    uint32_t count = 0;
    for (uint32_t i = 0; i < index->count && check->wrong == NULL; i++) {
        uint32_t child = index_children(index)[i];
        uint64_t key = i == 0 ? separator : index_keys(index)[i];
        uint32_t span = validation_check_subtree(check, child, id, level - 1, key);
        validation_claim(check, span == index_span(index, i), "skiplist: a span is wrong");
        count += span;
    }
    return count;
}

/* The children of a detached block have it as parent, and the entries of its leaves are valid. */
static void validation_check_detached(struct check *check, uint32_t id, uint32_t parent,
                                      uint32_t level) {
    const struct skiplist *list = check->list;
    if (!validation_claim(check, id < list->node_end && skiplist_node(list, id)->block != NULL,
                          "skiplist: a detached block is not in use")) {
        return;
    }
    if (!validation_claim(check, ++check->node_count <= list->node_end,
                          "skiplist: the detached go in a circle")) {
        return;
    }
    validation_claim(check, skiplist_node(list, id)->parent == parent,
                     "skiplist: a detached link up is wrong");
    if (!validation_claim(check, skiplist_node(list, id)->level == level,
                          "skiplist: a detached level is wrong")) {
        return;
    }
    validation_claim(check, id != list->root, "skiplist: the root is detached");
    if (level == 0) {
        validation_check_block(check, nodes_leaf(list, id), "skiplist: a detached leaf is empty");
        return;
    }
    struct index_block *index = nodes_index(list, id);
    check->memory_size += memory_size(index);
    validation_claim(check, index->count > 0, "skiplist: a detached index block is empty");
    for (uint32_t i = 0; i < index->count && check->wrong == NULL; i++) {
        validation_check_detached(check, index_children(index)[i], id, level - 1);
    }
}

static void validation_check_all_detached(struct check *check) {
    const struct skiplist *list = check->list;
    for (uint32_t id = list->detached; id != SKIPLIST_NONE && check->wrong == NULL;
         id = nodes_links(list, id)->next) {
        if (validation_claim(check, id < list->node_end && skiplist_node(list, id)->block != NULL,
                             "skiplist: a detached root is not in use")) {
            validation_check_detached(check, id, SKIPLIST_NONE, skiplist_node(list, id)->level);
        }
    }
}

static void validation_check_nodes(struct check *check) {
    const struct skiplist *list = check->list;
    uint32_t free_count = 0;
    uint32_t previous = SKIPLIST_NONE;
    for (uint32_t id = list->free_first; id != SKIPLIST_NONE;
         previous = id, id = skiplist_node(list, id)->parent) {
        if (!validation_claim(check, id < list->node_end && skiplist_node(list, id)->block == NULL,
                              "skiplist: a free id is in use")) {
            return;
        }
        validation_claim(check, skiplist_node(list, id)->previous_free == previous,
                         "skiplist: a free id's link back is wrong");
        if (!validation_claim(check, ++free_count <= list->node_end,
                              "skiplist: free ids go in a circle")) {
            return;
        }
    }
    validation_claim(check, list->node_end <= list->node_capacity, "skiplist: ids have no nodes");
    validation_claim(check, free_count == list->free_count,
                     "skiplist: free ids are not counted right");
    validation_claim(check, free_count + check->node_count == list->node_end,
                     "skiplist: ids are lost");
    check->memory_size += nodes_memory_size(list);
    validation_claim(check, check->memory_size == list->memory_size,
                     "skiplist: memory is not counted right");
}

static uint64_t validation_count_below(const struct skiplist *list, uint32_t id) {
    if (skiplist_node(list, id)->level == 0) {
        return nodes_leaf(list, id)->count;
    }
    struct index_block *index = nodes_index(list, id);
    uint64_t count = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        count += validation_count_below(list, index_children(index)[i]);
    }
    return count;
}

uint64_t skiplist_count_detached(const struct skiplist *list) {
    uint64_t count = 0;
    for (uint32_t id = list->detached; id != SKIPLIST_NONE; id = nodes_links(list, id)->next) {
        count += validation_count_below(list, id);
    }
    return count;
}

bool skiplist_validate(const struct skiplist *list, const char **reason) {
    struct check check = {.list = list, .last_key = UINT64_MAX};
    for (uint32_t i = 0; i < SKIPLIST_LEVELS_MAX; i++) {
        check.last_at[i] = SKIPLIST_NONE;
    }
    uint32_t count = 0;
    if (list->root != SKIPLIST_NONE) {
        uint32_t level = skiplist_node(list, list->root)->level;
        count = validation_check_subtree(&check, list->root, SKIPLIST_NONE, level, UINT64_MAX);
        for (uint32_t i = 0; i <= level && check.wrong == NULL; i++) {
            validation_claim(&check, nodes_links(list, check.last_at[i])->next == SKIPLIST_NONE,
                             "skiplist: a level does not end");
        }
    }
    validation_claim(&check, count == list->count, "skiplist: entries are not counted right");
    if (check.wrong == NULL) {
        validation_check_all_detached(&check);
    }
    if (check.wrong == NULL) {
        validation_claim(&check, list->last == check.last_at[0],
                         "skiplist: last is not the last leaf");
        validation_check_nodes(&check);
    }
    return check_passed(check.wrong, reason);
}
