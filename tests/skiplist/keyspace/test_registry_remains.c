/* Boards with remains in the registry: renamed, copied, expired, flushed, and freed in steps. */
#include "tests/support/keyspace.h"
#include "tests/support/random.h"

enum { MEMBERS = 5000 };

#define REGISTRY_TEST(name) REGISTRY_TEST_OF(name, create_usual_registry)

static struct registry_key *create_cut_key(struct registry *registry, uint32_t database,
                                           const char *name) {
    struct registry_key *key = key_create(registry, database, name, MEMBERS, 0);
    registry_board_cut(registry, key, 10, MEMBERS - 10);
    assert_int_equal(board_count(&key->board), 10);
    assert_true(board_has_remains(&key->board));
    return key;
}

REGISTRY_TEST(remains_are_freed_in_bounded_steps) {
    struct registry_key *key = create_cut_key(registry, 0, "board");
    size_t size_before = board_memory_size(&key->board);
    /* This queues no key for freeing. */
    assert_int_equal(registry_totals(registry)->unfreed, 0);
    bool has_more = true;
    for (int steps = 0; has_more; steps++) {
        uint64_t live_before = memory_live_count();
        has_more = registry_free_step(registry, 100);
        assert_true(live_before <= memory_live_count() + 140);
        assert_in_range(steps, 0, 2 * MEMBERS);
        ASSERT_VALID(registry_validate, registry);
    }
    assert_false(board_has_remains(&key->board));
    assert_int_equal(board_count(&key->board), 10);
    assert_true(board_memory_size(&key->board) < size_before / 2);
    assert_false(registry_free_step(registry, 100));
}

REGISTRY_TEST(a_range_that_is_small_leaves_nothing_to_do) {
    struct registry_key *key = key_create(registry, 0, "board", MEMBERS, 0);
    registry_board_cut(registry, key, 7, 3);
    assert_int_equal(board_count(&key->board), MEMBERS - 3);
    assert_false(registry_free_step(registry, 100));
    registry_board_cut(registry, key, 0, 0);
    assert_int_equal(board_count(&key->board), MEMBERS - 3);
}

REGISTRY_TEST(removing_a_range_needs_no_memory) {
    for (uint32_t nth = 1; nth <= 4; nth++) {
        struct registry_key *key = key_create(registry, nth, "board", MEMBERS, 0);
        memory_fail_at(nth);
        registry_board_cut(registry, key, MEMBERS / 7, MEMBERS / 2);
        (void)registry_free_step(registry, 1000);
        memory_fail_at(0);
        assert_int_equal(board_count(&key->board), MEMBERS - MEMBERS / 2);
        registry_free_all(registry);
    }
}

REGISTRY_TEST(a_board_with_remains_goes_where_its_key_goes) {
    struct registry_key *key = create_cut_key(registry, 0, "board");
    assert_int_equal(registry_rename(registry, key, 3, BYTES("other"), 0), REGISTRY_OK);
    ASSERT_VALID(registry_validate, registry);
    assert_true(registry_free_step(registry, 100));
    key = registry_find(registry, 3, BYTES("other"), 0);
    assert_non_null(key);
    assert_true(board_has_remains(&key->board));
    assert_int_equal(registry_copy(registry, key, 4, BYTES("copy"), 0), REGISTRY_OK);
    const struct registry_key *copy = registry_find(registry, 4, BYTES("copy"), 0);
    assert_non_null(copy);
    assert_false(board_has_remains(&copy->board));
    assert_int_equal(board_count(&copy->board), 10);
    ASSERT_VALID(registry_validate, registry);
    registry_free_all(registry);
    assert_false(board_has_remains(&key->board));
}

REGISTRY_TEST(boards_with_remains_go_where_their_registry_goes) {
    struct registry *other = registry_create_beside(registry);
    assert_non_null(other);
    (void)create_cut_key(registry, 0, "one");
    (void)create_cut_key(registry, 0, "two");
    (void)create_cut_key(other, 0, "three");
    registry_exchange(registry, other);
    ASSERT_VALID(registry_validate, registry);
    ASSERT_VALID(registry_validate, other);
    registry_free_all(other);
    assert_false(board_has_remains(&key_find(other, 0, "one", 0)->board));
    assert_false(board_has_remains(&key_find(other, 0, "two", 0)->board));
    assert_true(board_has_remains(&key_find(registry, 0, "three", 0)->board));
    registry_destroy(other);
}

TEST(a_board_with_remains_is_removed_as_any_other) {
    uint64_t live_before = memory_live_count();
    for (uint32_t work = 1; work < 3 * MEMBERS; work = work * 4 + 1) {
        struct registry *registry = create_usual_registry();
        struct registry_key *removed = create_cut_key(registry, 0, "removed");
        struct registry_key *emptied = create_cut_key(registry, 0, "emptied");
        struct registry_key *expiring = create_cut_key(registry, 1, "expiring");
        (void)create_cut_key(registry, 2, "flushed");
        (void)create_cut_key(registry, 3, "stays");
        (void)registry_free_step(registry, work);
        key_expire(registry, expiring, 5);
        registry_remove(registry, removed);
        registry_board_cut(registry, emptied, 0, 10);
        assert_int_equal(board_count(&emptied->board), 0);
        registry_remove(registry, emptied);
        assert_int_equal(registry_flush(registry, 2), 1);
        assert_int_equal(registry_expiry_remove_due(registry, 5, 10), 1);
        ASSERT_VALID(registry_validate, registry);
        (void)registry_free_step(registry, work);
        ASSERT_VALID(registry_validate, registry);
        if (work % 2 == 1) {
            registry_free_all(registry);
        }
        assert_int_equal(registry_count(registry, 3), 1);
        registry_destroy(registry);
        assert_int_equal(memory_live_count(), live_before);
    }
}

/* Removing, cutting, refilling and stepping in any order, on a few keys. */
REGISTRY_TEST(keys_and_steps_in_any_order_leave_nothing) {
    struct random random = random_begin(__func__);
    const char *const names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 300; i++) {
        struct bytes name = bytes_from_text(names[random_below(&random, 4)]);
        bool is_new;
        struct registry_key *key = registry_find_or_create(registry, 0, name, 0, &is_new);
        assert_non_null(key);
        switch (random_below(&random, 5)) {
        case 0:
            assert_true(key_fill(registry, key, 0, (uint32_t)random_below(&random, 1000) + 1));
            break;
        case 1: {
            uint32_t rank = (uint32_t)random_below(&random, board_count(&key->board) + 1);
            registry_board_cut(registry, key, rank, board_count(&key->board) - rank);
            break;
        }
        case 2:
            registry_remove(registry, key);
            break;
        case 3:
            registry_flush(registry, 0);
            break;
        default:
            (void)registry_free_step(registry, (uint32_t)random_below(&random, 300));
        }
        ASSERT_VALID(registry_validate, registry);
    }
}
