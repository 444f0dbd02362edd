/* Runs each stage for the whole group before the next: a stage reads what the previous one
 * fetched. */
#include "skiplist/lookup.h"

/* A single member has nothing to overlap with. */
static bool is_worth_it(const struct board *board, unsigned count) {
    return count > 1 && board_count(board) >= LOOKUP_BOARD_MIN;
}

static void fetch_slots(const struct board *board, const struct bytes *names, uint32_t step,
                        unsigned count, struct board_prefetch *ahead) {
    for (unsigned i = 0; i < count; i++) {
        board_prefetch_slots(board, names[(size_t)i * step], &ahead[i]);
    }
}

static void fetch_descriptors(struct board_prefetch *ahead, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        board_prefetch_descriptor(&ahead[i]);
    }
}

static void fetch_blocks(const struct board_prefetch *ahead, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        board_prefetch_block(&ahead[i]);
    }
}

static void fetch_entries(struct board_prefetch *ahead, unsigned count, bool is_change) {
    for (unsigned i = 0; i < count; i++) {
        board_prefetch_entry(&ahead[i], is_change);
    }
}

static void begin_ways(const struct board *board, const uint64_t *keys, unsigned count,
                       struct board_way *ways) {
    for (unsigned i = 0; i < count; i++) {
        board_prefetch_way(board, keys[i], &ways[i]);
    }
}

static void fetch_way_indexes(const struct board_way *ways, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        board_prefetch_way_index(&ways[i]);
    }
}

static void fetch_way_leaves(struct board_way *ways, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        board_prefetch_way_leaf(&ways[i]);
    }
}

static void fetch_way_ends(const struct board_way *ways, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        board_prefetch_way_end(&ways[i]);
    }
}

static void look_up(const struct board *board, const struct bytes *names, uint32_t step,
                    unsigned count, bool is_change, struct board_prefetch *ahead) {
    CHECK(count <= LOOKUP_GROUP);
    fetch_slots(board, names, step, count, ahead);
    if (is_worth_it(board, count)) {
        fetch_descriptors(ahead, count);
        fetch_blocks(ahead, count);
        fetch_entries(ahead, count, is_change);
    }
}

void lookup_members(const struct board *board, const struct bytes *names, uint32_t step,
                    unsigned count, struct board_prefetch *ahead) {
    look_up(board, names, step, count, false, ahead);
}

void lookup_members_to_take(const struct board *board, const struct bytes *names, uint32_t step,
                            unsigned count, struct board_prefetch *ahead) {
    look_up(board, names, step, count, true, ahead);
}

void lookup_members_to_put(const struct board *board, const struct bytes *names, uint32_t step,
                           unsigned count, const uint64_t *keys, struct board_prefetch *ahead) {
    struct board_way ways[LOOKUP_GROUP];
    CHECK(count <= LOOKUP_GROUP);
    fetch_slots(board, names, step, count, ahead);
    if (!is_worth_it(board, count)) {
        return;
    }
    begin_ways(board, keys, count, ways);
    fetch_descriptors(ahead, count);
    fetch_way_indexes(ways, count);
    fetch_blocks(ahead, count);
    fetch_way_leaves(ways, count);
    for (unsigned i = 0; i < count; i++) {
        ahead[i].target = ways[i].block;
    }
    fetch_entries(ahead, count, true);
    fetch_way_ends(ways, count);
}

void lookup_keys(const struct board *board, const uint64_t *keys, unsigned count) {
    struct board_way ways[LOOKUP_GROUP];
    CHECK(count <= LOOKUP_GROUP);
    if (is_worth_it(board, count)) {
        begin_ways(board, keys, count, ways);
        fetch_way_indexes(ways, count);
        fetch_way_leaves(ways, count);
        fetch_way_ends(ways, count);
    }
}
