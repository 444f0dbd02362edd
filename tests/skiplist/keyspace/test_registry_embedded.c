/* Keys of another host, in the registry while a command runs. */
#include "skiplist/keyspace/registry_embedded.h"
#include "tests/support/keyspace.h"
#include "tests/support/stored_text.h"

enum { DAY_MS = 24 * 3600 * 1000 };

#define REGISTRY_TEST(name) REGISTRY_TEST_OF(name, create_usual_registry)

/* A board with ann and bob, in no database. */
static struct registry_key *make_embedded_in(struct registry *registry, uint32_t database,
                                             struct bytes name) {
    struct board board;
    assert_true(registry_create_board(registry, name, DAY_MS, &board));
    struct registry_key *key = registry_embedded_create(
        registry, database, name, REGISTRY_BOARD, board_options_of(board_layout(&board)), NULL);
    assert_non_null(key);
    assert_int_equal(board_put(&board, BYTES("ann"), 7), BOARD_OK);
    assert_int_equal(board_put(&board, BYTES("bob"), 5), BOARD_OK);
    board_move_to(&board, &key->board);
    return key;
}

static struct registry_key *make_embedded(struct registry *registry, struct bytes name) {
    return make_embedded_in(registry, 0, name);
}

static void free_embedded(struct registry *registry, struct registry_key *key) {
    registry_embedded_release(registry, registry_embedded_free(key));
}

REGISTRY_TEST(an_embedded_key_is_found_while_it_is_there_and_only_then) {
    struct registry_key *key = make_embedded(registry, BYTES("daily"));
    assert_null(registry_find(registry, 0, BYTES("daily"), DAY_MS));
    for (int i = 0; i < 3; i++) {
        assert_true(registry_embedded_admit(registry, key));
        assert_ptr_equal(registry_find(registry, 0, BYTES("daily"), DAY_MS), key);
        assert_ptr_equal(registry_embedded_first(registry), key);
        assert_int_equal(registry_count(registry, 0), 1);
        assert_int_equal(registry_member_count(registry, 0), 2);
        registry_embedded_dismiss(registry, key);
        assert_null(registry_find(registry, 0, BYTES("daily"), DAY_MS));
        assert_null(registry_embedded_first(registry));
        assert_int_equal(registry_member_count(registry, 0), 0);
    }
    free_embedded(registry, key);
}

REGISTRY_TEST(an_embedded_key_is_in_its_own_database_under_every_name) {
    struct registry_key *key = make_embedded(registry, BYTES("daily"));
    struct registry_key *ids = make_embedded_in(registry, REGISTRY_ONCE, BYTES("weekly"));
    ids = registry_embedded_rename(registry, ids, BYTES("daily"));
    assert_non_null(ids);
    assert_true(registry_embedded_admit(registry, key));
    assert_true(registry_embedded_admit(registry, ids));
    assert_ptr_equal(registry_embedded_find(registry, BYTES("daily")), key);
    assert_ptr_equal(registry_embedded_find_in(registry, REGISTRY_ONCE, BYTES("daily")), ids);
    assert_null(registry_embedded_find_in(registry, REGISTRY_ONCE, BYTES("weekly")));
    registry_embedded_dismiss(registry, key);
    assert_null(registry_embedded_first(registry));
    assert_ptr_equal(registry_find(registry, REGISTRY_ONCE, BYTES("daily"), DAY_MS), ids);
    registry_embedded_dismiss(registry, ids);
    free_embedded(registry, key);
    free_embedded(registry, ids);
}

REGISTRY_TEST(a_lent_board_is_found_until_it_is_taken_back) {
    struct registry_key *key = make_embedded(registry, BYTES("daily"));
    registry_embedded_lend(registry, key);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(registry_find(registry, 0, BYTES("daily"), DAY_MS), key);
        assert_ptr_equal(registry_embedded_find(registry, BYTES("daily")), key);
        assert_null(registry_find(registry, 0, BYTES("weekly"), DAY_MS));
    }
    assert_null(registry_embedded_first(registry));
    registry_embedded_take_back(registry);
    assert_null(registry_find(registry, 0, BYTES("daily"), DAY_MS));
    free_embedded(registry, key);
}

REGISTRY_TEST(an_embedded_key_keeps_its_members_under_another_name) {
    struct registry_key *key = make_embedded(registry, BYTES("daily"));
    struct registry_key *named = registry_embedded_rename(registry, key, BYTES("weekly"));
    assert_non_null(named);
    assert_true(bytes_equal(registry_name(named), BYTES("weekly")));
    assert_int_equal(board_count(&named->board), 2);
    struct registry_key *copy = registry_embedded_copy(registry, named, BYTES("copy"));
    assert_non_null(copy);
    free_embedded(registry, named);
    assert_int_equal(board_count(&copy->board), 2);
    assert_true(bytes_equal(stored_text(board_at(&copy->board, 0).member), BYTES("ann")));
    free_embedded(registry, copy);
}

REGISTRY_TEST(what_needs_memory_and_gets_none_changes_nothing) {
    struct registry_key *key = make_embedded(registry, BYTES("daily"));
    memory_fail_at(1);
    assert_null(registry_embedded_rename(registry, key, BYTES("weekly")));
    assert_true(bytes_equal(registry_name(key), BYTES("daily")));
    for (uint64_t nth = 1; nth < 3; nth++) {
        memory_fail_at(nth);
        assert_null(registry_embedded_copy(registry, key, BYTES("copy")));
    }
    memory_fail_at(0);
    assert_int_equal(board_count(&key->board), 2);
    free_embedded(registry, key);
    /* A registry that never had a key. */
    struct registry *other = create_usual_registry();
    key = make_embedded(other, BYTES("daily"));
    free_embedded(other, key);
    key = registry_embedded_create(other, 0, BYTES("stranger"), REGISTRY_HASH, NULL, NULL);
    assert_non_null(key);
    assert_true(registry_embedded_admit(other, key));
    registry_embedded_dismiss(other, key);
    assert_null(registry_embedded_free(key));
    registry_destroy(other);
}

REGISTRY_TEST(an_embedded_key_whose_period_is_over_rolls_over_unless_that_is_held) {
    usual_options.period = (struct period){.unit = PERIOD_DAY, .every = 1};
    usual_options.archives_max = BOARD_ARCHIVES_ALL;
    usual_options.is_created = true;
    struct registry_key *key = make_embedded(registry, BYTES("daily"));
    assert_true(key->is_periodic);
    assert_true(registry_embedded_admit(registry, key));
    registry_embedded_hold_rolls(registry);
    assert_ptr_equal(registry_find(registry, 0, BYTES("daily"), 3 * (int64_t)DAY_MS), key);
    assert_int_equal(board_count(&key->board), 2);
    registry_embedded_dismiss(registry, key);
    assert_true(registry_embedded_admit(registry, key));
    assert_ptr_equal(registry_find(registry, 0, BYTES("daily"), 3 * (int64_t)DAY_MS), key);
    assert_int_equal(board_count(&key->board), 0);
    assert_int_equal(registry_count(registry, 0), 2);
    registry_embedded_dismiss(registry, key);
    struct registry_key *archive = registry_embedded_first(registry);
    assert_int_equal(board_count(&archive->board), 2);
    registry_embedded_dismiss(registry, archive);
    free_embedded(registry, archive);
    free_embedded(registry, key);
}

REGISTRY_TEST(an_embedded_key_leaves_with_its_remains) {
    struct registry_key *key = make_embedded(registry, BYTES("daily"));
    assert_true(board_fill(&key->board, 0, 5000));
    assert_true(registry_embedded_admit(registry, key));
    registry_board_cut(registry, key, 10, 4900);
    assert_true(board_has_remains(&key->board));
    assert_true(registry_embedded_keep_remains(registry));
    assert_false(registry_embedded_keep_remains(registry));
    registry_embedded_dismiss(registry, key);
    assert_int_equal(board_count(&key->board), 102);
    assert_true(board_has_remains(&key->board));
    uint32_t steps = 0;
    while (!board_free_step(&key->board, 256)) {
        steps++;
    }
    assert_true(steps > 4);
    assert_false(board_has_remains(&key->board));
    assert_true(registry_embedded_admit(registry, key));
    assert_int_equal(board_count(&key->board), 102);
    registry_embedded_dismiss(registry, key);
    free_embedded(registry, key);
}

REGISTRY_TEST(an_embedded_key_with_remains_is_freed_in_steps) {
    struct registry_key *key = make_embedded(registry, BYTES("daily"));
    assert_true(board_fill(&key->board, 0, 5000));
    assert_true(registry_embedded_admit(registry, key));
    registry_board_cut(registry, key, 10, 2000);
    assert_true(registry_embedded_keep_remains(registry));
    registry_embedded_dismiss(registry, key);
    registry_embedded_free_later(registry, key);
    uint32_t steps = 0;
    while (registry_free_step(registry, 256)) {
        steps++;
    }
    assert_true(steps > 8);
    assert_int_equal(registry_totals(registry)->unfreed, 0);
}
