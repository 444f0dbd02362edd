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

static bool claim(struct check *check, bool holds, const char *wrong) {
    if (!holds && check->wrong == NULL) {
        check->wrong = wrong;
    }
    return holds;
}

static void check_links(struct check *check, uint32_t id, uint32_t level) {
    const struct skiplist *list = check->list;
    uint32_t before = check->last_at[level];
    claim(check, nodes_links(list, id)->previous == before, "skiplist: a link back is wrong");
    if (before != SKIPLIST_NONE) {
        claim(check, nodes_links(list, before)->next == id, "skiplist: a link forward is wrong");
    } else if (level == 0) {
        claim(check, list->first == id, "skiplist: first is not the first leaf");
    }
    check->last_at[level] = id;
}

/* The entries and the memory of a leaf; false: it is empty, or was found wrong. */
static bool check_block(struct check *check, const struct block *block, const char *empty) {
    const char *reason = NULL;
    bool is_valid = block_validate(block, &reason);
    check->memory_size += nodes_leaf_memory_size(block);
    return claim(check, is_valid, reason) && claim(check, block->count > 0, empty);
}

static uint32_t check_leaf(struct check *check, uint32_t id, uint64_t separator) {
    const struct block *block = nodes_leaf(check->list, id);
    if (!check_block(check, block, "skiplist: a leaf is empty")) {
        return 0;
    }
    claim(check, block_keys(block)[0] <= check->last_key, "skiplist: keys increase");
    claim(check, separator <= check->last_key, "skiplist: a separator is above the last key");
    claim(check, separator >= block_keys(block)[0], "skiplist: a separator is below the first key");
    check->last_key = block_keys(block)[block->count - 1];
    return block->count;
}

static uint32_t check_subtree(struct check *check, uint32_t id, uint32_t parent, uint32_t level,
                              uint64_t separator) {
    const struct skiplist *list = check->list;
    if (!claim(check, id < list->node_end && skiplist_node(list, id)->block != NULL,
               "skiplist: a child is not in use")) {
        return 0;
    }
    check->node_count++;
    claim(check, skiplist_node(list, id)->parent == parent, "skiplist: a link up is wrong");
    if (parent != SKIPLIST_NONE) {
        claim(check,
              index_children(nodes_index(list, parent))[skiplist_node(list, id)->position] == id,
              "skiplist: a child's position is wrong");
    }
    if (!claim(check, skiplist_node(list, id)->level == level, "skiplist: a level is wrong")) {
        return 0;
    }
    check_links(check, id, level);
    if (level == 0) {
        return check_leaf(check, id, separator);
    }
    struct index_block *index = nodes_index(list, id);
    check->memory_size += memory_size(index);
    const char *reason = "";
    bool is_valid = index_validate(index, &reason);
    if (!claim(check, is_valid, reason)) {
        return 0;
    }
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

/* The children of a detached block have it as parent, and the entries of its leaves are valid. */
static void check_detached(struct check *check, uint32_t id, uint32_t parent, uint32_t level) {
    const struct skiplist *list = check->list;
    if (!claim(check, id < list->node_end && skiplist_node(list, id)->block != NULL,
               "skiplist: a detached block is not in use")) {
        return;
    }
    if (!claim(check, ++check->node_count <= list->node_end,
               "skiplist: the detached go in a circle")) {
        return;
    }
    claim(check, skiplist_node(list, id)->parent == parent,
          "skiplist: a detached link up is wrong");
    if (!claim(check, skiplist_node(list, id)->level == level,
               "skiplist: a detached level is wrong")) {
        return;
    }
    claim(check, id != list->root, "skiplist: the root is detached");
    if (level == 0) {
        check_block(check, nodes_leaf(list, id), "skiplist: a detached leaf is empty");
        return;
    }
    struct index_block *index = nodes_index(list, id);
    check->memory_size += memory_size(index);
    claim(check, index->count > 0, "skiplist: a detached index block is empty");
    for (uint32_t i = 0; i < index->count && check->wrong == NULL; i++) {
        check_detached(check, index_children(index)[i], id, level - 1);
    }
}

static void check_all_detached(struct check *check) {
    const struct skiplist *list = check->list;
    for (uint32_t id = list->detached; id != SKIPLIST_NONE && check->wrong == NULL;
         id = nodes_links(list, id)->next) {
        if (claim(check, id < list->node_end && skiplist_node(list, id)->block != NULL,
                  "skiplist: a detached root is not in use")) {
            check_detached(check, id, SKIPLIST_NONE, skiplist_node(list, id)->level);
        }
    }
}

static void check_nodes(struct check *check) {
    const struct skiplist *list = check->list;
    uint32_t free_count = 0;
    uint32_t previous = SKIPLIST_NONE;
    for (uint32_t id = list->free_first; id != SKIPLIST_NONE;
         previous = id, id = skiplist_node(list, id)->parent) {
        if (!claim(check, id < list->node_end && skiplist_node(list, id)->block == NULL,
                   "skiplist: a free id is in use")) {
            return;
        }
        claim(check, skiplist_node(list, id)->previous_free == previous,
              "skiplist: a free id's link back is wrong");
        if (!claim(check, ++free_count <= list->node_end, "skiplist: free ids go in a circle")) {
            return;
        }
    }
    claim(check, list->node_end <= list->node_capacity, "skiplist: ids have no nodes");
    claim(check, free_count == list->free_count, "skiplist: free ids are not counted right");
    claim(check, free_count + check->node_count == list->node_end, "skiplist: ids are lost");
    check->memory_size += nodes_memory_size(list);
    claim(check, check->memory_size == list->memory_size, "skiplist: memory is not counted right");
}

static uint64_t count_below(const struct skiplist *list, uint32_t id) {
    if (skiplist_node(list, id)->level == 0) {
        return nodes_leaf(list, id)->count;
    }
    struct index_block *index = nodes_index(list, id);
    uint64_t count = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        count += count_below(list, index_children(index)[i]);
    }
    return count;
}

uint64_t skiplist_count_detached(const struct skiplist *list) {
    uint64_t count = 0;
    for (uint32_t id = list->detached; id != SKIPLIST_NONE; id = nodes_links(list, id)->next) {
        count += count_below(list, id);
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
        count = check_subtree(&check, list->root, SKIPLIST_NONE, level, UINT64_MAX);
        for (uint32_t i = 0; i <= level && check.wrong == NULL; i++) {
            claim(&check, nodes_links(list, check.last_at[i])->next == SKIPLIST_NONE,
                  "skiplist: a level does not end");
        }
    }
    claim(&check, count == list->count, "skiplist: entries are not counted right");
    if (check.wrong == NULL) {
        check_all_detached(&check);
    }
    if (check.wrong == NULL) {
        claim(&check, list->last == check.last_at[0], "skiplist: last is not the last leaf");
        check_nodes(&check);
    }
    return check_passed(check.wrong, reason);
}
