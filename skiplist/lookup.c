/* Each stage reads what the previous one fetched. It may run on results that other changes have
 * made stale, so it checks every id before it follows it. A small board is a single block, which
 * lookup_begin fetches directly. */
#include "skiplist/lookup.h"

#include "codec/memory.h"
#include "skiplist/index.h"
#include "skiplist/large_board.h"
#include "skiplist/sheet.h"

/* ---- the member ---- */

static void lookup_fetch_node(struct lookup *lookup) {
    const struct board *board = lookup->board;
    struct map_find find;
    if (!board->is_large) {
        lookup->leaf = 0;
        return;
    }
    map_find(&board->large->map, lookup->hash, &find);
    if (map_find_next(&find, &lookup->leaf)) {
        memory_prefetch(skiplist_node(&board->large->list, lookup->leaf));
    } else {
        lookup->leaf = SKIPLIST_NONE;
    }
}

/* What reading the leaf and its rank needs. */
static void lookup_fetch_leaf(const struct lookup *lookup) {
    const struct board *board = lookup->board;
    if (!board->is_large || lookup->leaf >= board->large->list.node_end) {
        return;
    }
    const struct skiplist *list = &board->large->list;
    const struct skiplist_node *node = skiplist_node(list, lookup->leaf);
    if (node->block == NULL) {
        return;
    }
    /* Header and marks of a full leaf; its count has not been loaded yet. */
    memory_prefetch_lines(node->block, sizeof(struct block) + 2 * BLOCK_ENTRIES_MAX);
    if (node->parent != SKIPLIST_NONE) {
        memory_prefetch_lines(index_narrow_spans(index_at(list, node->parent)), INDEX_FANOUT);
    }
}

/* About the offset of the member at index, as if all took the same room. An exact one is not worth the time. */
static uint32_t lookup_offset_near(const struct block *block, uint32_t index) {
    return block->only_code != 0 ? index * block_heap_size(block->only_code)
                                 : block->heap_used * index / (block->count + 1U);
}

/* What a change of the block moves from there on. */
static void lookup_prefetch_members(const struct block *block, uint32_t offset) {
    memory_prefetch_lines(block_heap(block) + offset, block->heap_used - offset + 1U);
}

static void lookup_fetch_entry(struct lookup *lookup) {
    const struct block *block = board_leaf(lookup->board, lookup->leaf);
    if (block == NULL || !block_find_tag(block, board_hash_tag(lookup->hash), &lookup->index)) {
        lookup->index = SKIPLIST_NONE;
        return;
    }
    const uint64_t *key = block_keys(block) + lookup->index;
    if (lookup->is_change) {
        memory_prefetch_lines(key, (block->count - lookup->index) * sizeof *key);
        lookup_prefetch_members(block, lookup_offset_near(block, lookup->index));
    } else {
        const char *member = block_heap(block) + lookup_offset_near(block, lookup->index);
        memory_prefetch(key);
        memory_prefetch_lines(member, 2 * block_heap_size(block_code(block, lookup->index)));
    }
}

/* ---- the place of a key ----
 *
 * The levels above the lowest index blocks are assumed to be in the cache. */

static const struct skiplist *lookup_list_of(const struct lookup *lookup) {
    return &lookup->board->large->list;
}

/* The lowest index block on the way to the key; NULL if there is none (any more). */
static struct index_block *lookup_target_index(const struct lookup *lookup) {
    uint32_t id = lookup->target;
    if (!lookup->board->is_large || id >= lookup_list_of(lookup)->node_end ||
        skiplist_node(lookup_list_of(lookup), id)->level != 1) {
        return NULL;
    }
    return index_at(lookup_list_of(lookup), id);
}

/* The leaf where the key belongs; NULL if there is none (any more). */
static const struct block *lookup_target_leaf(const struct lookup *lookup) {
    return lookup->board->is_large ? skiplist_leaf(lookup_list_of(lookup), lookup->target) : NULL;
}

static void lookup_fetch_target_index(const struct lookup *lookup) {
    const struct index_block *index = lookup_target_index(lookup);
    /* Fences and spans; of the children and the keys only one line each is read. */
    if (index != NULL) {
        memory_prefetch_lines(index, sizeof *index + INDEX_FANOUT);
    }
}

static void lookup_fetch_target_fences(const struct lookup *lookup) {
    struct index_block *index = lookup_target_index(lookup);
    if (index == NULL) {
        return;
    }
    uint32_t position = index_fences_above(index, lookup->key) * INDEX_STRIDE;
    memory_prefetch_lines(index_keys(index) + position, INDEX_STRIDE * sizeof(uint64_t));
    memory_prefetch_lines(index_children(index) + position, INDEX_STRIDE * sizeof(uint32_t));
}

static void lookup_fetch_target_node(struct lookup *lookup) {
    struct index_block *index = lookup_target_index(lookup);
    if (index == NULL) {
        return;
    }
    uint32_t position = index_child_for(index, lookup->key, !lookup_list_of(lookup)->is_latest);
    lookup->target = index_children(index)[position];
    memory_prefetch(skiplist_node(lookup_list_of(lookup), lookup->target));
    if (index->sheet != NULL) {
        sheet_prefetch(index->sheet, index_narrow_sum(index, position));
    }
}

/* Header, marks and keys of a full leaf; its count has not been loaded yet. A search of the keys would
 * wait for line after line. */
static void lookup_fetch_target_leaf(const struct lookup *lookup) {
    const struct block *block = lookup_target_leaf(lookup);
    if (block != NULL) {
        memory_prefetch_lines(block, sizeof *block + 10 * BLOCK_ENTRIES_MAX);
    }
}

/* The tags of the member where it is now. */
static void lookup_fetch_sheet(const struct lookup *lookup) {
    if (!lookup->is_change || !lookup->board->is_large || lookup_list_of(lookup)->tags == NULL) {
        return;
    }
    const struct skiplist *list = lookup_list_of(lookup);
    if (skiplist_leaf(list, lookup->leaf) == NULL) {
        return;
    }
    const struct skiplist_node *node = skiplist_node(list, lookup->leaf);
    if (node->parent != SKIPLIST_NONE) {
        struct index_block *index = index_at(list, node->parent);
        if (index->is_lowest && index->sheet != NULL) {
            sheet_prefetch(index->sheet, index_narrow_sum(index, node->position));
        }
    }
}

/* What an insertion moves. */
static void lookup_fetch_place(struct lookup *lookup) {
    const struct block *block = lookup_target_leaf(lookup);
    if (block == NULL) {
        return;
    }
    const uint64_t *keys = block_keys(block);
    uint32_t index =
        block_keys_above(keys, block->count, lookup->key, !lookup_list_of(lookup)->is_latest);
    lookup->place = index;
    memory_prefetch_lines(keys + index, (block->count - index + 1U) * sizeof *keys);
    lookup_prefetch_members(block, lookup_offset_near(block, index));
}

/* ---- stages ---- */

static inline void lookup_begin_hashed(struct lookup *lookup, const struct board *board,
                                       struct bytes member, uint64_t hash, bool is_change) {
    *lookup = (struct lookup){
        .board = board,
        .member = member,
        .hash_seed = board->hash_seed,
        .hash = hash,
        .leaf = SKIPLIST_NONE,
        .index = SKIPLIST_NONE,
        .target = SKIPLIST_NONE,
        .place = SKIPLIST_NONE,
        .is_change = is_change,
    };
    if (board->is_large) {
        map_prefetch(&board->large->map, lookup->hash);
    } else if (board->leaf != NULL) {
        memory_prefetch_lines(board->leaf, sizeof *board->leaf + 10 * BLOCK_ENTRIES_MAX);
    }
}

void lookup_begin(struct lookup *lookup, const struct board *board, struct bytes member,
                  bool is_change) {
    lookup_begin_hashed(lookup, board, member, board_hash(board, member), is_change);
}

void lookup_begin_like(struct lookup *lookup, const struct board *board, const struct lookup *other,
                       bool is_change) {
    uint64_t hash =
        other->hash_seed == board->hash_seed ? other->hash : board_hash(board, other->member);
    lookup_begin_hashed(lookup, board, other->member, hash, is_change);
}

struct lookup lookup_after_put(const struct lookup *lookup) {
    struct lookup after = *lookup;
    if (lookup->target != SKIPLIST_NONE) {
        after.leaf = lookup->target;
        after.index = lookup->place;
        if (lookup->leaf == lookup->target && lookup->place > lookup->index) {
            after.index--; /* what was behind it has moved up */
        }
    }
    return after;
}

void lookup_begin_place(struct lookup *lookup, uint64_t key) {
    lookup->key = key;
    if (!lookup->board->is_large || lookup_list_of(lookup)->root == SKIPLIST_NONE) {
        return;
    }
    lookup->target =
        skiplist_block_for(lookup_list_of(lookup), key, !lookup_list_of(lookup)->is_latest, 1);
    memory_prefetch(skiplist_node(lookup_list_of(lookup), lookup->target));
}

bool lookup_begin_place_like(struct lookup *lookup, const struct lookup *other) {
    if (other->target == SKIPLIST_NONE ||
        board_layout(other->board) != board_layout(lookup->board)) {
        return false;
    }
    lookup_begin_place(lookup, other->key);
    return true;
}

static inline __attribute__((always_inline)) void lookup_advance_member(struct lookup *lookup,
                                                                        enum lookup_stage stage) {
    if (stage == LOOKUP_NODE && lookup->member.size > 0) {
        lookup_fetch_node(lookup);
    } else if (stage == LOOKUP_LEAF) {
        lookup_fetch_leaf(lookup);
    } else if (stage == LOOKUP_ENTRY) {
        lookup_fetch_entry(lookup);
    }
}

static inline __attribute__((always_inline)) void lookup_advance_place(struct lookup *lookup,
                                                                       enum lookup_stage stage) {
    switch (stage) {
    case LOOKUP_NODE:
        lookup_fetch_target_index(lookup);
        break;
    case LOOKUP_FENCES:
        lookup_fetch_target_fences(lookup);
        break;
    case LOOKUP_CHILD:
        lookup_fetch_target_node(lookup);
        break;
    case LOOKUP_ENTRY:
        lookup_fetch_target_leaf(lookup);
        break;
    case LOOKUP_PLACE:
        lookup_fetch_place(lookup);
        lookup_fetch_sheet(lookup);
        break;
    case LOOKUP_LEAF:
    case LOOKUP_STAGES:
        break;
    }
}

void lookup_advance(struct lookup *const due[LOOKUP_STAGES]) {
#pragma GCC unroll 8
    for (unsigned stage = 0; stage < LOOKUP_STAGES; stage++) {
        if (due[stage] != NULL) {
            lookup_advance_member(due[stage], (enum lookup_stage)stage);
            lookup_advance_place(due[stage], (enum lookup_stage)stage);
        }
    }
}

void lookup_advance_ring(struct lookup ring[LOOKUP_RING], uint32_t now, uint32_t count) {
    struct lookup *due[LOOKUP_STAGES];
    if (now >= LOOKUP_STAGES && now <= count) {
        /* All stages of one turn, none of which is beside the first look-up or the last one. */
#pragma GCC unroll 8
        for (uint32_t stage = 0; stage < LOOKUP_STAGES; stage++) {
            struct lookup *lookup = &ring[(now - 1 - stage) % LOOKUP_RING];
            lookup_advance_member(lookup, (enum lookup_stage)stage);
            lookup_advance_place(lookup, (enum lookup_stage)stage);
        }
        return;
    }
    for (uint32_t stage = 0; stage < LOOKUP_STAGES; stage++) {
        uint32_t i = now - 1 - stage; /* before the first: wraps to a huge number */
        due[stage] = i < count ? &ring[i % LOOKUP_RING] : NULL;
    }
    lookup_advance(due);
}

static inline __attribute__((always_inline)) void
lookup_advance_all(struct lookup *lookups, unsigned count, bool are_puts, enum lookup_stage stage) {
    for (unsigned i = 0; i < count; i++) {
        lookup_advance_member(&lookups[i], stage);
        if (are_puts) {
            lookup_advance_place(&lookups[i], stage);
        }
    }
}

void lookup_run(struct lookup *lookups, unsigned count, enum lookup_stage stage) {
    lookup_advance_all(lookups, count, false, stage);
}

void lookup_finish(struct lookup *lookups, unsigned count) {
    bool are_puts = false;
    for (unsigned i = 0; i < count; i++) {
        are_puts = are_puts || lookups[i].target != SKIPLIST_NONE;
    }
    lookup_advance_all(lookups, count, are_puts, LOOKUP_NODE);
    lookup_advance_all(lookups, count, are_puts, LOOKUP_LEAF);
    if (are_puts) {
        lookup_advance_all(lookups, count, are_puts, LOOKUP_FENCES);
        lookup_advance_all(lookups, count, are_puts, LOOKUP_CHILD);
    }
    lookup_advance_all(lookups, count, are_puts, LOOKUP_ENTRY);
    if (are_puts) {
        lookup_advance_all(lookups, count, are_puts, LOOKUP_PLACE);
    }
}

/* ---- bounds of keys ---- */

/* The leaf with the only entry that may be the member's; NULL: there are none or several. */
static const struct skiplist_node *lookup_only_node(const struct lookup *lookup, bool *has_none) {
    struct map_find find;
    uint32_t leaf;
    uint32_t other;
    const struct large_board *large = lookup->board->large;
    map_find(&large->map, lookup->hash, &find);
    *has_none = !map_find_next(&find, &leaf);
    return *has_none || map_find_next(&find, &other) ? NULL : skiplist_node(&large->list, leaf);
}

void lookup_bounds(struct lookup *lookups, unsigned count, uint64_t *bounds) {
    const struct skiplist_node *nodes[LOOKUP_GROUP] = {NULL};
    CHECK(count <= LOOKUP_GROUP);
    for (unsigned i = 0; i < count; i++) {
        bool has_none = false;
        if (lookups[i].board->is_large && !board_has_detached(lookups[i].board)) {
            nodes[i] = lookup_only_node(&lookups[i], &has_none);
        }
        bounds[i] = has_none ? 0 : UINT64_MAX;
        if (nodes[i] != NULL) {
            memory_prefetch(nodes[i]);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        if (nodes[i] != NULL && nodes[i]->parent != SKIPLIST_NONE) {
            const struct index_block *index =
                index_at(lookup_list_of(&lookups[i]), nodes[i]->parent);
            memory_prefetch(index);
            memory_prefetch((const char *)(index + 1) +
                            INDEX_FANOUT * (sizeof(uint8_t) + sizeof(uint32_t)) +
                            nodes[i]->position * sizeof(uint64_t));
        }
    }
    /* The separator is above the leaf's keys, or equal to the first; the first of an index block has none there. */
    for (unsigned i = 0; i < count; i++) {
        const struct skiplist_node *node = nodes[i];
        if (node != NULL && node->parent != SKIPLIST_NONE && node->position > 0) {
            bounds[i] =
                index_keys(index_at(lookup_list_of(&lookups[i]), node->parent))[node->position];
        }
    }
}

/* ---- many members of one board ---- */

/* A single member has nothing to overlap with; small boards stay in the cache. */
static bool lookup_is_worth_it(const struct board *board, unsigned count) {
    return count > 1 && board_count(board) >= LOOKUP_BOARD_MIN;
}

/* keys: NULL if the members are not about to be put. */
static void lookup_look_up(const struct board *board, const struct bytes *names, uint32_t step,
                           unsigned count, const uint64_t *keys, bool is_change,
                           struct lookup *lookups) {
    bool is_staged = lookup_is_worth_it(board, count);
    for (unsigned i = 0; i < count; i++) {
        lookup_begin(&lookups[i], board, names[(size_t)i * step], is_change);
    }
    for (unsigned i = 0; i < count && is_staged && keys != NULL; i++) {
        lookup_begin_place(&lookups[i], keys[i]);
    }
    if (is_staged) {
        lookup_finish(lookups, count);
    }
}

void lookup_members(const struct board *board, const struct bytes *names, uint32_t step,
                    unsigned count, struct lookup *lookups) {
    lookup_look_up(board, names, step, count, NULL, false, lookups);
}

void lookup_members_to_take(const struct board *board, const struct bytes *names, uint32_t step,
                            unsigned count, struct lookup *lookups) {
    lookup_look_up(board, names, step, count, NULL, true, lookups);
}

void lookup_members_to_put(const struct board *board, const struct bytes *names, uint32_t step,
                           unsigned count, const uint64_t *keys, struct lookup *lookups) {
    lookup_look_up(board, names, step, count, keys, true, lookups);
}

void lookup_places(struct lookup *lookups, unsigned count, const uint64_t *keys) {
    static const enum lookup_stage stages[] = {LOOKUP_NODE, LOOKUP_FENCES, LOOKUP_CHILD,
                                               LOOKUP_ENTRY, LOOKUP_PLACE};
    if (count == 0 || !lookup_is_worth_it(lookups[0].board, count)) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        lookup_begin_place(&lookups[i], keys[i]);
    }
    for (unsigned at = 0; at < sizeof stages / sizeof stages[0]; at++) {
        for (unsigned i = 0; i < count; i++) {
            lookup_advance_place(&lookups[i], stages[at]);
        }
    }
}

/* ---- members that are only read ---- */

/* Where every member is found by the map. Elsewhere nothing is fetched ahead: a small board is one block, and of
 * one with remains some entries of the map are. */
static inline bool lookup_reads_map(const struct board *board) {
    return board->is_large && !board_has_detached(board);
}

static void lookup_reading_begin(const struct board *board, const struct bytes *names,
                                 unsigned count, struct lookup_reading *readings) {
    bool reads_map = lookup_reads_map(board);
    for (unsigned i = 0; i < count && reads_map; i++) {
        readings[i].hash = board_hash(board, names[i]);
        map_prefetch(&board->large->map, readings[i].hash);
    }
}

static void lookup_reading_find_node(const struct large_board *large, unsigned count,
                                     struct lookup_reading *readings) {
    struct map_find find;
    for (unsigned i = 0; i < count; i++) {
        struct lookup_reading *reading = &readings[i];
        map_find(&large->map, reading->hash, &find);
        reading->node = NULL;
        if (map_find_next(&find, &reading->leaf)) {
            reading->node = skiplist_node(&large->list, reading->leaf);
            memory_prefetch(reading->node);
        }
    }
}

static void lookup_reading_fetch_leaf(const struct large_board *large, unsigned count,
                                      struct lookup_reading *readings) {
    for (unsigned i = 0; i < count; i++) {
        const struct skiplist_node *node = readings[i].node;
        if (node != NULL) {
            /* Header and marks of a full leaf; its count has not been loaded yet. */
            memory_prefetch_lines(node->block, sizeof(struct block) + 2 * BLOCK_ENTRIES_MAX);
            readings[i].parent = NULL;
            if (node->parent != SKIPLIST_NONE) {
                readings[i].parent = skiplist_node(&large->list, node->parent);
                memory_prefetch_lines(index_narrow_spans(readings[i].parent->block), INDEX_FANOUT);
            }
        }
    }
}

static void lookup_reading_find_entry(unsigned count, struct lookup_reading *readings) {
    for (unsigned i = 0; i < count; i++) {
        struct lookup_reading *reading = &readings[i];
        if (reading->node == NULL) {
            continue;
        }
        const struct block *block = reading->node->block;
        if (block_find_tag(block, board_hash_tag(reading->hash), &reading->index)) {
            const char *member = block_heap(block) + lookup_offset_near(block, reading->index);
            memory_prefetch(block_keys(block) + reading->index);
            memory_prefetch(member);
            memory_prefetch(member + 24); /* most names end there; counting would take longer */
        } else {
            reading->index = SKIPLIST_NONE;
        }
    }
}

static void lookup_reading_run(const struct board *board, unsigned count, enum lookup_stage stage,
                               struct lookup_reading *readings) {
    if (!lookup_reads_map(board)) {
        return;
    }
    if (stage == LOOKUP_NODE) {
        lookup_reading_find_node(board->large, count, readings);
    } else if (stage == LOOKUP_LEAF) {
        lookup_reading_fetch_leaf(board->large, count, readings);
    } else {
        lookup_reading_find_entry(count, readings);
    }
}

/* The rank of an entry of a large board, and its place among those below the same lowest index block. */
static inline void lookup_read_rank(const struct large_board *large,
                                    const struct skiplist_node *node,
                                    const struct skiplist_node *parent,
                                    struct lookup_found *found) {
    if (parent == NULL) {
        found->below = (struct board_below){.block = found->leaf, .index = found->index};
        found->rank = found->index;
        return;
    }
    found->below.block = node->parent;
    found->below.index = found->index + index_narrow_sum(parent->block, node->position);
    found->rank = found->below.index + skiplist_rank_of_index(&large->list, parent);
}

void lookup_read_one(const struct board *board, struct bytes name, const struct lookup *ahead,
                     struct lookup_found *found) {
    struct board_member member;
    board_look_up(board, name, ahead, &member);
    if (!member.is_there) {
        found->rank = LOOKUP_NOWHERE;
        return;
    }
    found->key = member.key;
    found->leaf = member.leaf;
    found->index = member.index;
    found->rank = member.index;
    found->below = (struct board_below){.block = 0, .index = member.index};
    if (board->is_large) {
        const struct skiplist *list = &board->large->list;
        const struct skiplist_node *node = skiplist_node(list, member.leaf);
        lookup_read_rank(board->large, node,
                         node->parent != SKIPLIST_NONE ? skiplist_node(list, node->parent) : NULL,
                         found);
    }
}

/* Ranks are read here: of what they need, the levels above the lowest index blocks are in the cache. */
static void lookup_reading_end(const struct board *board, const struct bytes *names, unsigned count,
                               const struct lookup_reading *readings, struct lookup_found *found) {
    bool reads_map = lookup_reads_map(board);
    for (unsigned i = 0; i < count; i++) {
        const struct lookup_reading *reading = &readings[i];
        uint32_t offset;
        if (!reads_map) {
            lookup_read_one(board, names[i], NULL, &found[i]);
            continue;
        }
        if (reading->node == NULL) {
            found[i].rank = LOOKUP_NOWHERE;
            continue;
        }
        const struct block *block = reading->node->block;
        uint8_t tag = board_hash_tag(reading->hash);
        found[i].leaf = reading->leaf;
        found[i].index = reading->index;
        if (block_has(block, reading->index, tag, names[i], &offset) ||
            block_find(block, tag, names[i], &found[i].index, &offset)) {
            found[i].key = block_keys(block)[found[i].index];
            lookup_read_rank(board->large, reading->node, reading->parent, &found[i]);
        } else { /* another entry of the map may be its own */
            lookup_read_one(board, names[i], NULL, &found[i]);
        }
    }
}

static void lookup_read_stages(const struct board *board, const struct bytes *names, unsigned count,
                               struct lookup_reading *readings) {
    lookup_reading_begin(board, names, count, readings);
    lookup_reading_run(board, count, LOOKUP_NODE, readings);
    lookup_reading_run(board, count, LOOKUP_LEAF, readings);
    lookup_reading_run(board, count, LOOKUP_ENTRY, readings);
}

void lookup_read(const struct board *board, const struct bytes *names, unsigned count,
                 struct lookup_found *found) {
    struct lookup_reading readings[LOOKUP_GROUP];
    CHECK(count <= LOOKUP_GROUP);
    lookup_read_stages(board, names, count, readings);
    lookup_reading_end(board, names, count, readings, found);
}

void lookup_stream_begin(struct lookup_stream *stream, const struct board *board,
                         const struct bytes *names, uint32_t count) {
    stream->board = board;
    stream->names = names;
    stream->count = count;
    stream->next = 0;
    lookup_read_stages(board, names, lookup_group_size(count, 0), stream->groups[0]);
}

const struct lookup_found *lookup_stream_next(struct lookup_stream *stream) {
    uint32_t at = stream->next;
    uint32_t in_group = at % LOOKUP_GROUP;
    uint32_t begin = at - in_group + LOOKUP_GROUP; /* of the next group */
    unsigned turn = at / LOOKUP_GROUP % 2;
    stream->next += LOOKUP_TURN;
    if (in_group == 0) {
        lookup_reading_end(stream->board, &stream->names[at], lookup_group_size(stream->count, at),
                           stream->groups[turn], stream->found);
    }
    if (begin >= stream->count) {
        return &stream->found[in_group];
    }
    /* A stage of the next group: memory answers before its next one. */
    struct lookup_reading *readings = stream->groups[1 - turn];
    unsigned count = lookup_group_size(stream->count, begin);
    if (in_group == 0) {
        lookup_reading_begin(stream->board, &stream->names[begin], count, readings);
    } else {
        lookup_reading_run(stream->board, count,
                           in_group == LOOKUP_TURN       ? LOOKUP_NODE
                           : in_group == 2 * LOOKUP_TURN ? LOOKUP_LEAF
                                                         : LOOKUP_ENTRY,
                           readings);
    }
    return &stream->found[in_group];
}

/* ---- keys ---- */

void lookup_keys(const struct board *board, const uint64_t *keys, unsigned count) {
    struct lookup lookups[LOOKUP_GROUP];
    CHECK(count <= LOOKUP_GROUP);
    if (!lookup_is_worth_it(board, count)) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        lookups[i] =
            (struct lookup){.board = board, .leaf = SKIPLIST_NONE, .target = SKIPLIST_NONE};
        lookup_begin_place(&lookups[i], keys[i]);
    }
    lookup_finish(lookups, count);
}
