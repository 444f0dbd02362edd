/* Boards with remains in the registry: renamed, copied, expired, flushed, and freed in steps. */
#include "tests/support/key_put.h"
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/keyspace/registry.h"
#include "tests/support/random.h"

enum { MEMBERS = 5000 };

static struct rules usual_rules;

static const struct rules *rules_for(void *context, struct bytes key) {
    (void)context;
    (void)key;
    return &usual_rules;
}

static struct registry *create_registry(void) {
    struct registry *registry = registry_create(0x5eed, rules_for, NULL);
    assert_non_null(registry);
    return registry;
}

static void assert_valid(const struct registry *registry) {
    const char *reason = "";
    if (!registry_validate(registry, &reason)) {
        fail_msg("%s", reason);
    }
}

static void fill(struct registry *registry, struct registry_key *key, uint32_t count) {
    char member[32];
    for (uint32_t i = 0; i < count; i++) {
        int size = snprintf(member, sizeof member, "member:%u", i);
        assert_true(key_put(registry, key, (struct bytes){member, (size_t)size}, i));
    }
}

/* A key whose board was cut to its best ten members, and has remains. */
static struct registry_key *create_cut_key(struct registry *registry, uint32_t database,
                                           const char *name) {
    bool is_new;
    struct registry_key *key =
        registry_find_or_create(registry, database, bytes_from_text(name), 0, &is_new);
    assert_non_null(key);
    fill(registry, key, MEMBERS);
    registry_remove_range(registry, key, 10, MEMBERS - 10);
    assert_int_equal(board_count(&key->board), 10);
    assert_true(board_has_remains(&key->board));
    return key;
}

static void free_everything(struct registry *registry) {
    while (registry_free_step(registry, 100)) {}
    assert_int_equal(registry_totals(registry)->unfreed, 0);
    assert_valid(registry);
}

TEST(remains_are_freed_in_bounded_steps) {
    struct registry *registry = create_registry();
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
        assert_valid(registry);
    }
    assert_false(board_has_remains(&key->board));
    assert_int_equal(board_count(&key->board), 10);
    assert_true(board_memory_size(&key->board) < size_before / 2);
    assert_false(registry_free_step(registry, 100));
    registry_destroy(registry);
}

TEST(a_range_that_is_small_leaves_nothing_to_do) {
    struct registry *registry = create_registry();
    bool is_new;
    struct registry_key *key =
        registry_find_or_create(registry, 0, bytes_from_text("board"), 0, &is_new);
    assert_non_null(key);
    fill(registry, key, MEMBERS);
    registry_remove_range(registry, key, 7, 3);
    assert_int_equal(board_count(&key->board), MEMBERS - 3);
    assert_false(registry_free_step(registry, 100));
    registry_remove_range(registry, key, 0, 0);
    assert_int_equal(board_count(&key->board), MEMBERS - 3);
    registry_destroy(registry);
}

TEST(removing_a_range_needs_no_memory) {
    for (uint64_t nth = 1; nth <= 4; nth++) {
        struct registry *registry = create_registry();
        bool is_new;
        struct registry_key *key =
            registry_find_or_create(registry, 0, bytes_from_text("board"), 0, &is_new);
        assert_non_null(key);
        fill(registry, key, MEMBERS);
        memory_fail_at(nth);
        registry_remove_range(registry, key, MEMBERS / 7, MEMBERS / 2);
        (void)registry_free_step(registry, 1000);
        memory_fail_at(0);
        assert_int_equal(board_count(&key->board), MEMBERS - MEMBERS / 2);
        assert_valid(registry);
        registry_destroy(registry);
    }
}

TEST(a_board_with_remains_goes_where_its_key_goes) {
    struct registry *registry = create_registry();
    struct registry_key *key = create_cut_key(registry, 0, "board");
    assert_int_equal(registry_rename(registry, key, 3, bytes_from_text("other"), 0), REGISTRY_OK);
    assert_valid(registry);
    assert_true(registry_free_step(registry, 100));
    key = registry_find(registry, 3, bytes_from_text("other"), 0);
    assert_non_null(key);
    assert_true(board_has_remains(&key->board));
    assert_int_equal(registry_copy(registry, key, 4, bytes_from_text("copy"), 0), REGISTRY_OK);
    const struct registry_key *copy = registry_find(registry, 4, bytes_from_text("copy"), 0);
    assert_non_null(copy);
    assert_false(board_has_remains(&copy->board));
    assert_int_equal(board_count(&copy->board), 10);
    assert_valid(registry);
    free_everything(registry);
    assert_false(board_has_remains(&key->board));
    registry_destroy(registry);
}

TEST(a_board_with_remains_is_removed_as_any_other) {
    uint64_t live_before = memory_live_count();
    for (uint32_t work = 1; work < 3 * MEMBERS; work = work * 4 + 1) {
        struct registry *registry = create_registry();
        struct registry_key *removed = create_cut_key(registry, 0, "removed");
        struct registry_key *emptied = create_cut_key(registry, 0, "emptied");
        struct registry_key *expiring = create_cut_key(registry, 1, "expiring");
        (void)create_cut_key(registry, 2, "flushed");
        (void)create_cut_key(registry, 3, "stays");
        (void)registry_free_step(registry, work);
        assert_int_equal(registry_set_expiry(registry, expiring, 5, false), REGISTRY_OK);
        registry_remove(registry, removed);
        registry_remove_range(registry, emptied, 0, 10);
        assert_int_equal(board_count(&emptied->board), 0);
        registry_remove(registry, emptied);
        assert_int_equal(registry_flush(registry, 2), 1);
        assert_int_equal(registry_expire_due(registry, 5, 10), 1);
        assert_valid(registry);
        (void)registry_free_step(registry, work);
        assert_valid(registry);
        if (work % 2 == 1) {
            free_everything(registry);
        }
        assert_int_equal(registry_count(registry, 3), 1);
        registry_destroy(registry);
        assert_int_equal(memory_live_count(), live_before);
    }
}

/* Removing, cutting, refilling and stepping in any order, on a few keys. */
TEST(keys_and_steps_in_any_order_leave_nothing) {
    struct random random = random_begin(__func__);
    uint64_t live_before = memory_live_count();
    struct registry *registry = create_registry();
    const char *const names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 300; i++) {
        struct bytes name = bytes_from_text(names[random_below(&random, 4)]);
        bool is_new;
        struct registry_key *key = registry_find_or_create(registry, 0, name, 0, &is_new);
        assert_non_null(key);
        switch (random_below(&random, 5)) {
        case 0:
            fill(registry, key, (uint32_t)random_below(&random, 1000) + 1);
            break;
        case 1: {
            uint32_t rank = (uint32_t)random_below(&random, board_count(&key->board) + 1);
            registry_remove_range(registry, key, rank, board_count(&key->board) - rank);
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
        assert_valid(registry);
    }
    registry_destroy(registry);
    assert_int_equal(memory_live_count(), live_before);
}

int main(void) {
    layout_init_default(&usual_rules.layout);
    return test_run(NULL, NULL);
}
