/* Dense ranks: how many different scores are above an entry's.
 *
 *     key       900    700    700    120        a score is the key without its time: key >> score_shift
 *     first      *      *             *         another score than the entry before it
 *     dense      0      1      1      2         first entries up to it, less one
 *
 * Two keys side by side tell whether an entry is first, so leaves store nothing. The index blocks of a list with
 * is_dense have a row of firsts beside their spans: of each child, how many entries below it are first. A list of one
 * leaf has no row, and counts its keys.
 *
 * skiplist.c and detach.c call this where entries come and go; they move firsts with spans themselves. */
#include "codec/memory.h"
#include "skiplist/index.h"

static inline bool dense_differ(const struct skiplist *list, uint64_t a, uint64_t b) {
    return (a ^ b) >> list->score_shift != 0;
}

/* Entries from .. to - 1 of a leaf that differ from the one before them; from is at least 1. */
static uint32_t dense_count_inside(const struct skiplist *list, const struct block *block,
                                   uint32_t from, uint32_t to) {
    const uint64_t *keys = block_keys(block);
    uint32_t count = 0;
    for (uint32_t i = from; i < to; i++) {
        count += dense_differ(list, keys[i - 1], keys[i]);
    }
    return count;
}

/* The key of the entry before this one; NULL: there is none. A leaf that has just been made may be empty. */
static const uint64_t *dense_find_before(const struct skiplist *list, const struct block *block,
                                         uint32_t index) {
    if (index > 0) {
        return block_keys(block) + index - 1;
    }
    if (block->links.previous == SKIPLIST_NONE) {
        return NULL;
    }
    block = index_leaf(list, block->links.previous);
    return block->count > 0 ? block_keys(block) + block->count - 1 : NULL;
}

bool dense_begins(const struct skiplist *list, uint32_t leaf) {
    const struct block *block = index_leaf(list, leaf);
    const uint64_t *before = dense_find_before(list, block, 0);
    return before == NULL || dense_differ(list, *before, block_keys(block)[0]);
}

uint32_t dense_count_leaf(const struct skiplist *list, uint32_t leaf) {
    const struct block *block = index_leaf(list, leaf);
    return dense_begins(list, leaf) + dense_count_inside(list, block, 1, block->count);
}

uint32_t dense_rank(const struct skiplist *list, struct skiplist_place place) {
    const struct block *block = index_leaf(list, place.leaf);
    const struct skiplist_node *node = skiplist_node(list, place.leaf);
    if (node->parent == SKIPLIST_NONE) {
        return dense_count_inside(list, block, 1, place.index + 1);
    }
    /* All of the leaf without those behind the entry: so nobody reads the leaf before it. */
    uint32_t firsts = index_first_sum(index_at(list, node->parent), node->position + 1U) -
                      dense_count_inside(list, block, place.index + 1, block->count);
    for (node = skiplist_node(list, node->parent); node->parent != SKIPLIST_NONE;
         node = skiplist_node(list, node->parent)) {
        firsts += index_first_sum(index_at(list, node->parent), node->position);
    }
    return firsts - 1;
}

/* ---- keeping the rows true ---- */

void dense_add_above(struct skiplist *list, uint32_t id, uint32_t delta) {
    if (delta == 0) {
        return;
    }
    for (uint32_t parent; (parent = skiplist_node(list, id)->parent) != SKIPLIST_NONE;
         id = parent) {
        index_add_firsts(index_at(list, parent), skiplist_node(list, id)->position, delta);
    }
    list->firsts += delta;
}

void dense_note(struct skiplist *list, struct skiplist_place place, uint32_t count, uint32_t by) {
    const struct block *block = index_leaf(list, place.leaf);
    const uint64_t *keys = block_keys(block) + place.index;
    const uint64_t *before = dense_find_before(list, block, place.index);
    const uint64_t *behind = keys + count;
    uint32_t behind_leaf = place.leaf;
    uint32_t firsts = (before == NULL || dense_differ(list, *before, keys[0])) +
                      dense_count_inside(list, block, place.index + 1, place.index + count);
    if (place.index + count == block->count) {
        behind_leaf = block->links.next;
        behind = behind_leaf != SKIPLIST_NONE ? block_keys(index_leaf(list, behind_leaf)) : NULL;
    }
    /* The entry behind them may be the first of its score with them, without them, both or neither. */
    uint32_t change = 0;
    if (behind != NULL) {
        change = (uint32_t)dense_differ(list, keys[count - 1], *behind) -
                 (uint32_t)(before == NULL || dense_differ(list, *before, *behind));
    }
    if (behind_leaf == place.leaf) {
        dense_add_above(list, place.leaf, by * (firsts + change));
        return;
    }
    dense_add_above(list, place.leaf, by * firsts);
    if (behind != NULL) {
        dense_add_above(list, behind_leaf, by * change);
    }
}

/* ---- beginning and ending ---- */

/* Set all rows below a block; returns what its own count is. */
static uint32_t dense_count_below(struct skiplist *list, uint32_t id) {
    enum { AHEAD = 4, AHEAD_BYTES = sizeof(struct block) + 10 * BLOCK_ENTRIES_MAX };
    uint32_t firsts = 0;
    if (skiplist_node(list, id)->level == 0) {
        return dense_count_leaf(list, id);
    }
    struct index_block *index = index_at(list, id);
    for (uint32_t i = 0; i < index->count; i++) {
        if (index->is_lowest && i + AHEAD < index->count) {
            uint32_t ahead = index_children(index)[i + AHEAD];
            memory_prefetch_lines(index_leaf(list, ahead), AHEAD_BYTES);
        }
        uint32_t below = dense_count_below(list, index_children(index)[i]);
        index_set_firsts(index, i, below);
        firsts += below;
    }
    return firsts;
}

bool dense_begin(struct skiplist *list, unsigned score_shift) {
    bool has_memory = true;
    list->is_dense = true;
    list->score_shift = (uint8_t)score_shift;
    /* What is detached needs none, but is not worth being told apart. */
    for (uint32_t id = 0; id < list->node_end && has_memory; id++) {
        const struct skiplist_node *node = skiplist_node(list, id);
        const struct index_block *index = node->level > 0 ? node->block : NULL;
        if (index != NULL && !index->has_firsts) {
            struct index_block *with_row = index_create(list, index->capacity, node->level);
            has_memory = with_row != NULL;
            if (has_memory) {
                index_replace(list, id, with_row);
            }
        }
    }
    if (!has_memory) {
        dense_end(list);
        return false;
    }
    list->firsts = list->root != SKIPLIST_NONE ? dense_count_below(list, list->root) : 0;
    skiplist_set_tags(list, list->tags);
    return true;
}

void dense_end(struct skiplist *list) {
    list->is_dense = false;
    list->firsts = 0;
    skiplist_set_tags(list, list->tags);
}
