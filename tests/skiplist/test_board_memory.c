/* Memory of a board: failing allocations, copies, freeing in steps, small boards. */
#include "skiplist/block.h"
#include "skiplist/board.h"
#include "skiplist/tags.h"
#include "tests/support/board_pair.h"

/* Put with the first allocation failing, then the second, and so on until the put succeeds
 * (possibly without the memory: a larger map can wait). After each failure the board is unchanged.
 * Returns the number of failures. */
static int put_with_failures(struct board_pair *pair, struct bytes member, uint64_t key) {
    for (uint64_t nth = 1;; nth++) {
        memory_fail_at(nth);
        enum board_status status = board_put(pair->board, member, key);
        memory_fail_at(0);
        if (status == BOARD_OK) {
            twin_board_put(&pair->twin, member, key);
            pair_compare(pair);
            return (int)nth - 1;
        }
        assert_int_equal(status, BOARD_OUT_OF_MEMORY);
        pair_compare(pair);
    }
}

/* Random changes in a universe of members and keys, whatever allocation fails. */
static void run_failures(struct board_pair *pair, struct random *random, uint32_t members,
                         uint32_t keys, int steps) {
    char text[PAIR_MEMBER_MAX];
    int failures = 0;
    for (int i = 0; i < steps; i++) {
        struct bytes member = member_of((uint32_t)random_below(random, members), text);
        if (random_below(random, 4) == 0) {
            /* A removal needs no memory: without it, blocks stay larger than necessary. */
            memory_fail_at(1 + random_below(random, 2));
            pair_remove(pair, member);
            memory_fail_at(0);
            pair_compare(pair);
        } else {
            failures += put_with_failures(pair, member, random_below(random, keys));
        }
    }
    assert_true(failures > 0);
}

/* Half of the allocations move. */
static void *move_some(void *context, void *allocation) {
    size_t size = memory_size(allocation);
    char *moved = random_below(context, 2) == 0 ? memory_allocate(size) : NULL;
    if (moved != NULL) {
        memcpy(moved, allocation, size);
        memset(allocation, 0xee, size);
        memory_free(allocation);
    }
    return moved;
}

/* The board too, in the middle of a walk over the blocks. */
static void relocate(struct board_pair *pair, struct random *random, uint32_t *position) {
    if (random_below(random, 4) == 0) {
        static struct board homes[2];
        struct board *home = pair->board == &homes[0] ? &homes[1] : &homes[0];
        memcpy(home, pair->board, sizeof *home);
        memset(pair->board, 0xee, sizeof *pair->board);
        pair->board = home;
        board_relocated(home);
    }
    uint32_t count = 1 + (uint32_t)random_below(random, 20);
    *position = board_relocate(pair->board, *position, count, move_some, random);
}

/* If the board has a tag and the member is there. */
static void tag_member(struct board_pair *pair, struct random *random, struct bytes name) {
    static const char values[] = "abcdefg";
    struct board_member member;
    unsigned full;
    board_look_up(pair->board, name, NULL, &member);
    if (pair->layout.tags.count > 0 && member.is_there) {
        struct tag_values value = {.mask = 1};
        value.at[0] = (struct bytes){values + random_below(random, 7), random_below(random, 2)};
        assert_in_range(tags_set(pair->board, &member, &value, &full), TAGS_OK, TAGS_SAME);
    }
}

static void run_relocations(struct board_pair *pair, struct random *random, uint32_t members,
                            int steps) {
    char text[PAIR_MEMBER_MAX];
    uint32_t position = 0;
    int ends = 0, remains = 0;
    for (int i = 0; i < steps; i++) {
        struct bytes member = member_of((uint32_t)random_below(random, members), text);
        if (random_below(random, 3) == 0) {
            pair_remove(pair, member);
        } else {
            pair_put(pair, member, random_below(random, 50));
        }
        tag_member(pair, random, member);
        if (members > 1000 && i % 1500 == 1499) {
            pair_remove_range(pair, pair->twin.count / 5, pair->twin.count / 2);
            remains += board_has_remains(pair->board);
        }
        relocate(pair, random, &position);
        (void)board_free_step(pair->board, 1);
        ends += position == 0;
        if (i % 16 == 0) {
            pair_compare(pair);
        }
    }
    assert_true(ends > 1);
    assert_int_equal(remains, members > 1000 ? steps / 1500 : 0);
    pair_compare(pair);
}

PAIR_TEST(blocks_of_a_small_board_move) {
    run_relocations(pair, random, 20, 3000);
}

PAIR_TEST(blocks_of_a_large_board_move_while_it_changes) {
    run_relocations(pair, random, 2000, 6000);
}

PAIR_TEST(blocks_of_a_board_with_tags_move_while_it_changes) {
    char error[TAG_ERROR_MAX];
    assert_true(tag_set_add(&pair->layout.tags, BYTES("clan"), BYTES("3"), error));
    run_relocations(pair, random, 2000, 6000);
}

PAIR_TEST(a_failed_put_leaves_a_small_board_as_it_was) {
    run_failures(pair, random, 60, 10, 2500);
}

PAIR_TEST(a_failed_put_leaves_a_board_as_it_was) {
    run_failures(pair, random, 1000, 1000, 3000);
}

PAIR_TEST(a_failed_put_in_order_leaves_a_board_as_it_was) {
    char text[PAIR_MEMBER_MAX];
    for (int is_descending = 0; is_descending < 2; is_descending++) {
        int failures = 0;
        for (uint32_t i = 0; i < 600; i++) {
            failures += put_with_failures(pair, user_of(i, text), is_descending ? 1000 - i : i);
        }
        assert_true(failures > 0);
        pair_remove_range(pair, 0, 600);
    }
}

PAIR_TEST(a_failed_copy_leaves_nothing_behind) {
    pair_fill(pair, random, 400, 100);
    uint64_t live_before = memory_live_count();
    size_t used_before = memory_used();
    ENDED_BY(board_deinit) struct board copy;
    bool is_copied = false;
    for (uint64_t nth = 1; !is_copied; nth++) {
        memory_fail_at(nth);
        is_copied = board_copy(pair->board, &copy);
        memory_fail_at(0);
        if (!is_copied) {
            assert_int_equal(board_count(&copy), 0);
            assert_int_equal(memory_live_count(), live_before);
            assert_int_equal(memory_used(), used_before);
        }
    }
    pair_compare(pair);
}

TEST(a_copy_is_equal_and_independent) {
    struct random random = random_begin(__func__);
    char text[PAIR_MEMBER_MAX];
    for (int round = 0; round < 60; round++) {
        struct board_pair pair;
        ENDED_BY(pair_deinit) struct board_pair copy;
        pair_init(&pair, round % 2 == 0, random_next(&random));
        pair_fill(&pair, &random, (uint32_t)random_below(&random, 500), 100);
        for (int i = 0; i < 200; i++) {
            pair_remove(&pair, member_of((uint32_t)random_below(&random, 500), text));
        }
        copy.board = &copy.own;
        assert_true(board_copy(pair.board, copy.board));
        assert_ptr_equal(board_layout(copy.board), &pair.layout);
        twin_board_copy(&pair.twin, &copy.twin);
        pair_compare(&copy);
        for (int i = 0; i < 300; i++) {
            struct board_pair *changed = random_below(&random, 2) == 0 ? &pair : &copy;
            struct bytes member = member_of((uint32_t)random_below(&random, 500), text);
            if (random_below(&random, 3) == 0) {
                pair_remove(changed, member);
            } else {
                pair_put(changed, member, random_below(&random, 100));
            }
        }
        pair_compare(&pair);
        pair_compare(&copy);
        pair_deinit(&pair);
        pair_compare(&copy);
    }
}

PAIR_TEST(a_board_is_freed_in_steps) {
    uint64_t live_before = memory_live_count();
    size_t used_before = memory_used();
    pair_fill(pair, random, 2000, 100);
    uint64_t live = memory_live_count();
    int steps = 1;
    for (; !board_deinit_step(pair->board, 10); steps++) {
        /* Each step frees something, and not much more than asked for. */
        assert_true(memory_live_count() < live);
        live = memory_live_count();
    }
    assert_true(steps > 2000 / (10 + 64));
    assert_int_equal(memory_live_count(), live_before);
    assert_int_equal(memory_used(), used_before);
    assert_int_equal(board_count(pair->board), 0);
}

PAIR_TEST(memory_size_is_all_that_a_board_holds) {
    char text[PAIR_MEMBER_MAX];
    size_t used_before = memory_used();
    for (int i = 0; i < 6000; i++) {
        struct bytes member = member_of((uint32_t)random_below(random, 900), text);
        if (random_below(random, 100) < (i < 4000 ? 20U : 70U)) {
            (void)remove_named(pair->board, member);
        } else {
            assert_int_equal(board_put(pair->board, member, random_below(random, 100)), BOARD_OK);
        }
        assert_int_equal(board_memory_size(pair->board), memory_used() - used_before);
    }
}

PAIR_TEST(emptied_boards_give_their_memory_back) {
    size_t size_empty = board_memory_size(pair->board);
    pair_fill(pair, random, 3000, 100);
    size_t size_full = board_memory_size(pair->board);
    while (board_count(pair->board) > 30) {
        pair_remove_range(pair, 5, 10);
    }
    pair_compare(pair);
    /* The table of nodes keeps its size; everything else is in proportion to the members. */
    assert_true(board_memory_size(pair->board) < size_full / 3);
    pair_remove_range(pair, 0, board_count(pair->board));
    assert_true(board_memory_size(pair->board) < size_full / 3);
    assert_true(board_memory_size(pair->board) >= size_empty);
    pair_compare(pair);
}

/* Members without an allocation of their own, of different sizes. */
static struct bytes short_of(uint32_t number, char *text) {
    if (number % 3 == 0) {
        return packed_kind_text(number % PACKED_KINDS, number, text);
    }
    return user_of(number, text);
}

/* Is each member found at its rank? */
static void compare_members(const struct board_pair *pair, uint32_t members) {
    char text[PAIR_MEMBER_MAX];
    for (uint32_t i = 0; i < members; i++) {
        pair_compare_member(pair, short_of(i, text));
    }
}

static void compare_copy(const struct board_pair *pair) {
    ENDED_BY(board_deinit) struct board copy;
    assert_true(board_copy(pair->board, &copy));
    ASSERT_VALID(board_validate, &copy);
    assert_true(twin_board_equals(&pair->twin, &copy));
}

/* Around the sizes at which a board gets an index and loses it again. */
PAIR_TEST(boards_of_every_size_grow_and_shrink_whatever_allocation_fails) {
    enum { MEMBERS = 300 };
    char text[PAIR_MEMBER_MAX];
    for (uint32_t i = 0; i < MEMBERS; i++) {
        (void)put_with_failures(pair, short_of(i, text), random_below(random, 100));
        pair_put(pair, short_of((uint32_t)random_below(random, i + 1), text),
                 random_below(random, 100));
        pair_compare(pair);
        if (i % 16 == 15) {
            compare_members(pair, MEMBERS);
            compare_copy(pair);
        }
        if (i % 30 == 29) {
            struct bytes longer = {.at = text, .size = 200};
            memset(text, 'y', longer.size);
            (void)put_with_failures(pair, longer, random_below(random, 100));
            pair_remove(pair, longer);
            pair_compare(pair);
        }
    }
    for (uint32_t count = MEMBERS; count > 0; count = board_count(pair->board)) {
        memory_fail_at(random_below(random, 3));
        if (count % 20 == 0) {
            pair_remove_range(pair, (uint32_t)random_below(random, count - 2), 3);
        } else {
            pair_remove(pair, short_of((uint32_t)random_below(random, MEMBERS), text));
        }
        memory_fail_at(0);
        pair_compare(pair);
        if (count % 16 == 0) {
            compare_members(pair, MEMBERS);
            compare_copy(pair);
        }
    }
}

/* Appended in pieces, in the order of ranks, and changed then. */
PAIR_TEST(a_board_of_any_size_is_appended_and_changes) {
    char texts[3][PAIR_MEMBER_MAX];
    for (uint32_t count = 1; count <= 300; count += 1 + count / 16) {
        for (uint32_t done = 0; done < count;) {
            struct board_entry entries[3];
            uint32_t n = 0;
            for (; n < 3 && done < count; n++, done++) {
                entries[n] =
                    (struct board_entry){.key = 1000 - done, .member = short_of(done, texts[n])};
                twin_board_put(&pair->twin, entries[n].member, entries[n].key);
            }
            assert_int_equal(board_append(pair->board, entries, n), BOARD_OK);
        }
        assert_int_equal(board_append_end(pair->board), BOARD_OK);
        pair_compare(pair);
        compare_members(pair, count);
        for (uint32_t i = 0; i < 20; i++) {
            pair_put(pair, short_of((uint32_t)random_below(random, count + 2), texts[0]),
                     random_below(random, 1000));
        }
        pair_compare(pair);
        pair_remove_range(pair, 0, board_count(pair->board));
        board_deinit(pair->board);
    }
}

#ifndef SKIPLIST_TINY
PAIR_TEST(a_board_of_ten_members_takes_little_more_than_its_entries) {
    char text[PAIR_MEMBER_MAX];
    for (uint32_t i = 0; i < 10; i++) {
        pair_put(pair, user_of(i, text), i);
    }
    /* 7 bytes of name each (packed), 8 of key and 2 of mark. */
    assert_true(board_memory_size(pair->board) < 10 * (7 + 8 + 2) + 50);
}

PAIR_TEST(no_index_is_paid_for_by_boards_of_a_few_hundred) {
    char text[PAIR_MEMBER_MAX];
    for (uint32_t i = 0; i < BLOCK_ALONE_ENTRIES_MAX; i++) {
        pair_put(pair, user_of(i, text), random_below(random, 1000));
        assert_true(board_memory_size(pair->board) <= (i + 1) * (7 + 8 + 2) * 17 / 16 + 110);
    }
    pair_put(pair, user_of(BLOCK_ALONE_ENTRIES_MAX, text), 0);
    assert_true(board_memory_size(pair->board) < BLOCK_ALONE_ENTRIES_MAX * (7 + 8 + 2 + 10));
    while (board_count(pair->board) > BLOCK_ALONE_ENTRIES_MAX / 2) {
        pair_remove_range(pair, 7, 1);
    }
    assert_true(board_memory_size(pair->board) <= BLOCK_ALONE_ENTRIES_MAX / 2 * (7 + 8 + 2) + 100);
    pair_compare(pair);
}

/* Of names that take 7 bytes, which is three more than the shortest widespread ones (docs/internals/benchmarks.md). */
PAIR_TEST(no_size_from_ten_to_a_thousand_takes_many_bytes_a_member) {
    char text[PAIR_MEMBER_MAX];
    for (uint32_t i = 0; i < 1000; i++) {
        pair_put(pair, user_of(i, text), random_below(random, 1000));
        assert_true(i < 9 || board_memory_size(pair->board) <= (i + 1) * 51 / 2);
    }
    pair_compare(pair);
    for (uint32_t i = 1000; i > 0; i--) {
        pair_remove_range(pair, (uint32_t)random_below(random, i), 1);
        if (i % 50 == 0) {
            pair_compare(pair);
        }
    }
}
#endif
