/* The skiplist alone, with an owner that records the leaf of every entry from the callbacks. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/skiplist.h"
#include "tests/support/random.h"

enum { NUMBERS = 3000 };

/* Members are the four bytes of a number. */
struct owner {
    struct skiplist list;
    uint32_t leaf_of[NUMBERS]; /* SKIPLIST_NONE: not in the list */
};

static uint32_t number_at(const struct block *block, uint32_t index) {
    uint32_t number;
    struct name member = block_member(block, index, block_offset(block, index));
    assert_int_equal(member.size, sizeof number);
    memcpy(&number, member.at, sizeof number);
    return number;
}

static void owner_moved(void *context, const struct block *block, uint32_t index, uint32_t count,
                        uint32_t from, uint32_t to) {
    struct owner *owner = context;
    for (uint32_t i = index; i < index + count; i++) {
        uint32_t number = number_at(block, i);
        assert_int_equal(owner->leaf_of[number], from);
        owner->leaf_of[number] = to;
    }
}

static struct owner *owner_create(bool is_latest) {
    struct owner *owner = malloc(sizeof *owner);
    assert_non_null(owner);
    skiplist_init(&owner->list, is_latest);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        owner->leaf_of[i] = SKIPLIST_NONE;
    }
    return owner;
}

static void owner_destroy(struct owner *owner) {
    skiplist_deinit(&owner->list);
    free(owner);
}

/* A test with an owner of an empty list, and random numbers. */
#define OWNER_TEST(name)                                                                           \
    static void name##_of(struct owner *owner, struct random *random);                             \
    TEST(name) {                                                                                   \
        struct random random = random_begin(__func__);                                             \
        struct owner *owner = owner_create(false);                                                 \
        name##_of(owner, &random);                                                                 \
        owner_destroy(owner);                                                                      \
    }                                                                                              \
    static void name##_of(struct owner *owner, struct random *random)

static struct skiplist_owner told(struct owner *owner) {
    return (struct skiplist_owner){.moved = owner_moved, .owner = owner};
}

static void owner_insert(struct owner *owner, uint32_t number, uint64_t key) {
    struct skiplist *list = &owner->list;
    struct skiplist_place place = skiplist_place_for(list, key);
    struct block_entry entry = {.key = key, .at = (const char *)&number, .code = sizeof number};
    struct skiplist_plan plan;
    uint32_t rank = skiplist_rank(list, place);
    assert_true(skiplist_reserve(list, place, entry.code, &plan));
    uint32_t id_end = skiplist_id_end(list, &plan);
    owner->leaf_of[number] = skiplist_insert(list, &plan, &entry, told(owner));
    assert_true(owner->leaf_of[number] < id_end);
    assert_true(list->node_end <= id_end);
    place = skiplist_at(list, rank);
    assert_int_equal(number_at(skiplist_leaf(list, place.leaf), place.index), number);
}

static void owner_remove(struct owner *owner, uint32_t rank) {
    struct skiplist_place place = skiplist_at(&owner->list, rank);
    uint32_t number = number_at(skiplist_leaf(&owner->list, place.leaf), place.index);
    assert_int_equal(owner->leaf_of[number], place.leaf);
    owner->leaf_of[number] = SKIPLIST_NONE;
    skiplist_remove(&owner->list, place, 1, told(owner));
}

static void assert_valid(const struct owner *owner) {
    const struct skiplist *list = &owner->list;
    uint32_t rank = 0;
    ASSERT_VALID(skiplist_validate, list);
    for (uint32_t id = list->first; id != SKIPLIST_NONE;) {
        const struct block *block = skiplist_leaf(list, id);
        for (uint32_t i = 0; i < block->count; i++, rank++) {
            struct skiplist_place place = {.leaf = id, .index = i};
            assert_int_equal(owner->leaf_of[number_at(block, i)], id);
            assert_int_equal(skiplist_rank(list, place), rank);
            place = skiplist_at(list, rank);
            assert_int_equal(place.leaf, id);
            assert_int_equal(place.index, i);
        }
        id = block->links.next;
    }
    assert_int_equal(rank, list->count);
}

static uint32_t leaf_count(const struct skiplist *list) {
    uint32_t count = 0;
    for (uint32_t id = list->first; id != SKIPLIST_NONE; count++) {
        id = skiplist_leaf(list, id)->links.next;
    }
    return count;
}

TEST(the_owner_always_knows_the_leaf_of_every_entry) {
    struct random random = random_begin(__func__);
    for (int round = 0; round < 4; round++) {
        struct owner *owner = owner_create(round % 2 == 1);
        for (int i = 0; i < 4000; i++) {
            uint32_t number = (uint32_t)random_below(&random, NUMBERS);
            bool is_growing = i % 1500 < 1000;
            if (owner->leaf_of[number] == SKIPLIST_NONE && random_below(&random, 3) < 2) {
                owner_insert(owner, number, random_below(&random, 300));
            }
            for (int j = 0; j < (is_growing ? 0 : 2) && owner->list.count > 0; j++) {
                owner_remove(owner, (uint32_t)random_below(&random, owner->list.count));
            }
            if (i % 20 == 0) {
                assert_valid(owner);
            }
        }
        while (owner->list.count > 0) {
            owner_remove(owner, (uint32_t)random_below(&random, owner->list.count));
        }
        assert_valid(owner);
        assert_int_equal(owner->list.root, SKIPLIST_NONE);
        owner_destroy(owner);
    }
}

TEST(loads_in_order_leave_full_leaves_behind) {
    for (int is_ascending = 0; is_ascending < 2; is_ascending++) {
        struct owner *owner = owner_create(false);
        for (uint32_t i = 0; i < NUMBERS; i++) {
            owner_insert(owner, i, is_ascending ? i : NUMBERS - i);
        }
        assert_valid(owner);
        uint32_t leaves_least = (NUMBERS + BLOCK_ENTRIES_MAX - 1) / BLOCK_ENTRIES_MAX;
        assert_int_equal(leaf_count(&owner->list), leaves_least);
        owner_destroy(owner);
    }
}

OWNER_TEST(random_loads_leave_leaves_more_than_half_full) {
    for (uint32_t i = 0; i < NUMBERS; i++) {
        owner_insert(owner, i, random_next(random));
    }
    assert_true(leaf_count(&owner->list) < NUMBERS / (BLOCK_ENTRIES_MAX / 2));
}

OWNER_TEST(removals_leave_few_leaves) {
    for (uint32_t i = 0; i < NUMBERS; i++) {
        owner_insert(owner, i, random_next(random));
    }
    while (owner->list.count > NUMBERS / 20) {
        owner_remove(owner, (uint32_t)random_below(random, owner->list.count));
    }
    assert_valid(owner);
    /* Leaves at most a quarter full are merged if a sibling has room. */
    assert_true(leaf_count(&owner->list) <= owner->list.count / (BLOCK_ENTRIES_MAX / 4) + 1);
}

OWNER_TEST(a_reservation_given_back_changes_nothing) {
    struct skiplist *list = &owner->list;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        uint64_t key = random_below(random, 100);
        struct skiplist_plan plan;
        struct skiplist_place place = skiplist_place_for(list, key);
        /* The table of nodes may stay larger. */
        assert_true(skiplist_reserve(list, place, 4, &plan));
        skiplist_unreserve(list, &plan);
        size_t memory_before = list->memory_size;
        uint64_t live_before = memory_live_count();
        assert_true(skiplist_reserve(list, place, 4, &plan));
        skiplist_unreserve(list, &plan);
        assert_int_equal(list->memory_size, memory_before);
        assert_int_equal(memory_live_count(), live_before);
        owner_insert(owner, i, key);
    }
    assert_valid(owner);
}

/* Number of allocations that hold the nodes. */
static uint32_t node_pieces(const struct skiplist *list) {
    uint32_t pieces = list->segments != &list->first_segment;
    for (uint32_t id = 0; id < list->node_capacity; id += SKIPLIST_SEGMENT_NODES) {
        pieces += skiplist_node(list, id) != &list->first_node;
    }
    return pieces;
}

OWNER_TEST(a_failed_reservation_changes_nothing) {
    struct skiplist *list = &owner->list;
    int failures = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t key = i < 500 ? random_below(random, 100) : i;
        struct skiplist_plan plan;
        for (uint64_t nth = 1;; nth++) {
            uint64_t live_before = memory_live_count();
            uint32_t pieces_before = node_pieces(list);
            memory_fail_at(nth);
            bool is_reserved = skiplist_reserve(list, skiplist_place_for(list, key), 4, &plan);
            memory_fail_at(0);
            if (is_reserved) {
                skiplist_unreserve(list, &plan);
                break;
            }
            failures++;
            /* The table of nodes may have grown. */
            assert_int_equal(memory_live_count(), live_before + node_pieces(list) - pieces_before);
            assert_valid(owner);
        }
        owner_insert(owner, i, key);
    }
    assert_true(failures > 0);
}

OWNER_TEST(a_copy_has_the_same_ids) {
    struct owner *copy = owner_create(false);
    assert_true(skiplist_copy(&owner->list, &copy->list));
    assert_int_equal(copy->list.count, 0);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        owner_insert(owner, i, random_below(random, 100));
    }
    for (int i = 0; i < NUMBERS / 2; i++) {
        owner_remove(owner, (uint32_t)random_below(random, owner->list.count));
    }
    assert_true(skiplist_copy(&owner->list, &copy->list));
    memcpy(copy->leaf_of, owner->leaf_of, sizeof copy->leaf_of);
    skiplist_deinit(&owner->list);
    skiplist_init(&owner->list, false);
    assert_valid(copy);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        if (copy->leaf_of[i] == SKIPLIST_NONE) {
            owner_insert(copy, i, random_below(random, 100));
        }
    }
    assert_valid(copy);
    owner_destroy(copy);
}
