/* Ranges removed from a board by detaching: what remains of them is invisible. */
#include "skiplist/skiplist.h"
#include "tests/support/board_pair.h"

enum {
#ifdef SKIPLIST_TINY
    NUMBERS = 400, /* members that a random test draws from */
    LARGE = 3000,
#else
    NUMBERS = 4000,
    LARGE = 60000,
#endif
};

/* The same for the board alone, with members of equal size. */
static void fill_board(struct board *board, uint32_t from, uint32_t count) {
    char text[PAIR_MEMBER_MAX];
    for (uint32_t i = from; i < from + count; i++) {
        assert_int_equal(board_put(board, user_of(i, text), i * 2654435761U), BOARD_OK);
    }
}

static void remove_random_range(struct board_pair *pair, struct random *random) {
    uint32_t count = board_count(pair->board);
    uint32_t rank = (uint32_t)random_below(random, count + 1);
    uint32_t limit = count - rank;
    if (random_below(random, 3) > 0) {
        limit = limit / 4;
    }
    pair_remove_range(pair, rank, (uint32_t)random_below(random, limit + 1));
}

static void compare_copy(const struct board_pair *pair) {
    struct board_pair copied = *pair;
    copied.board = &copied.own;
    assert_true(board_copy(pair->board, copied.board));
    assert_false(board_has_remains(copied.board));
    pair_compare(&copied);
    board_deinit(copied.board);
}

static void change_at_random(struct board_pair *pair, struct random *random, uint64_t keys) {
    char text[PAIR_MEMBER_MAX];
    switch (random_below(random, 8)) {
    case 0:
        remove_random_range(pair, random);
        break;
    case 1:
        if (board_has_remains(pair->board)) {
            (void)board_free_step(pair->board, (uint32_t)random_below(random, 40));
        }
        break;
    case 2:
        for (int i = 0; i < 5; i++) {
            pair_remove(pair, member_of((uint32_t)random_below(random, NUMBERS), text));
        }
        break;
    case 3:
        compare_copy(pair);
        break;
    default:
        for (int i = 0; i < NUMBERS / 40; i++) {
            pair_put(pair, member_of((uint32_t)random_below(random, NUMBERS), text),
                     random_below(random, keys));
        }
    }
}

static void run_at_random(struct random *random, bool is_latest, uint64_t keys) {
    ENDED_BY(pair_deinit) struct board_pair pair;
    char text[PAIR_MEMBER_MAX];
    pair_init(&pair, is_latest, random_next(random));
    pair_fill(&pair, random, NUMBERS, keys);
    for (uint32_t i = test_rounds(400, 100); i > 0; i--) {
        change_at_random(&pair, random, keys);
        pair_compare(&pair);
        for (int j = 0; j < 20; j++) {
            pair_compare_member(&pair, member_of((uint32_t)random_below(random, NUMBERS), text));
        }
        pair_compare_key(&pair, random_below(random, keys));
    }
}

TEST(bulk_removals_equal_the_twin_after_every_change) {
    struct random random = random_begin(__func__);
    run_at_random(&random, false, UINT64_MAX);
    run_at_random(&random, true, UINT64_MAX);
    run_at_random(&random, false, 20);
    run_at_random(&random, true, 20);
    run_at_random(&random, false, 1);
}

/* Every range of a board of several levels, each on its own copy. */
PAIR_TEST(every_range_can_be_cut_out) {
#ifdef SKIPLIST_TINY
    const uint32_t members = 120;
    const uint32_t stride = is_short_run() ? 7 : 1;
#else
    const uint32_t members = 5000;
    const uint32_t stride = is_short_run() ? 533 : 97;
#endif
    fill_board(pair->board, 0, members);
    for (uint32_t rank = 0; rank < members; rank += stride) {
        for (uint32_t count = 1; count <= members - rank; count += stride) {
            struct board copied;
            struct board *copy = &copied;
            assert_true(board_copy(pair->board, copy));
            board_remove_range(copy, rank, count);
            assert_int_equal(board_count(copy), members - count);
            ASSERT_VALID(board_validate, copy);
            if (rank > 0) {
                assert_int_equal(board_at(copy, rank - 1).key, board_at(pair->board, rank - 1).key);
            }
            if (rank + count < members) {
                assert_int_equal(board_at(copy, rank).key, board_at(pair->board, rank + count).key);
            }
            while (!board_free_step(copy, 64)) {}
            ASSERT_VALID(board_validate, copy);
            board_deinit(copy);
        }
    }
}

PAIR_TEST(a_cut_takes_and_frees_little_however_large_it_is) {
    fill_board(pair->board, 0, LARGE);
    uint64_t requests_before = memory_requests();
    uint64_t live_before = memory_live_count();
    board_remove_range(pair->board, LARGE / 10, LARGE / 10 * 8);
    /* Leaves at the edges are reallocated or merged, and so are index blocks on each level; but
     * those of the range stay. */
    assert_true(memory_requests() - requests_before <= 8);
    assert_true(live_before - memory_live_count() <= 40);
    assert_true(board_has_remains(pair->board));
    assert_int_equal(board_count(pair->board), LARGE / 10 * 2);
    ASSERT_VALID(board_validate, pair->board);
}

PAIR_TEST(a_cut_does_not_fail_for_want_of_memory) {
    for (uint64_t nth = 1; nth <= 8; nth++) {
        pair_fill(pair, random, NUMBERS, UINT64_MAX);
        memory_fail_at(nth);
        pair_remove_range(pair, NUMBERS / 10 + (uint32_t)nth, NUMBERS / 2);
        memory_fail_at(0);
        pair_compare(pair);
        memory_fail_at(nth);
        while (!board_free_step(pair->board, 10)) {}
        memory_fail_at(0);
        pair_compare(pair);
    }
}

PAIR_TEST(a_step_frees_no_more_than_it_was_asked) {
    fill_board(pair->board, 0, LARGE);
    size_t full_size = board_memory_size(pair->board);
    board_remove_range(pair->board, 1, LARGE - 2);
    uint64_t live = memory_live_count();
    bool is_over = false;
    while (!is_over) {
        is_over = board_free_step(pair->board, 64);
        /* 64 entries in leaves of at least one, and their index blocks. */
        assert_true(live <= memory_live_count() + 100);
        live = memory_live_count();
    }
    assert_false(board_has_remains(pair->board));
    ASSERT_VALID(board_validate, pair->board);
    /* Only the table of the ids is left, which are free now. */
    assert_true(board_memory_size(pair->board) < full_size / 4);
}

PAIR_TEST(a_dead_member_comes_back_as_a_new_one) {
    char text[PAIR_MEMBER_MAX];
    uint64_t key;
    fill_board(pair->board, 0, NUMBERS);
    board_remove_range(pair->board, 0, NUMBERS);
    assert_int_equal(board_count(pair->board), 0);
    assert_true(board_has_remains(pair->board));
    assert_false(board_find(pair->board, user_of(7, text), &key));
    assert_false(remove_named(pair->board, user_of(7, text)));
    assert_int_equal(board_put(pair->board, user_of(7, text), 42), BOARD_OK);
    assert_int_equal(board_put(pair->board, user_of(7, text), 43), BOARD_OK);
    assert_true(board_find(pair->board, user_of(7, text), &key));
    assert_int_equal(key, 43);
    assert_int_equal(board_count(pair->board), 1);
    ASSERT_VALID(board_validate, pair->board);
    while (!board_free_step(pair->board, 50)) {
        assert_true(board_find(pair->board, user_of(7, text), &key));
        assert_int_equal(key, 43);
    }
    ASSERT_VALID(board_validate, pair->board);
    assert_true(remove_named(pair->board, user_of(7, text)));
    ASSERT_VALID(board_validate, pair->board);
}

struct seen {
    uint32_t visits[LARGE];
};

static void see(void *context, const struct board_stored *entry) {
    struct seen *seen = context;
    char text[32];
    struct bytes member = stored_text(entry->member);
    assert_int_equal(member.size, 17);
    memcpy(text, member.at, 17);
    text[17] = '\0';
    uint32_t number = (uint32_t)strtoul(text + 5, NULL, 10);
    assert_true(number < LARGE);
    seen->visits[number]++;
}

PAIR_TEST(a_scan_meets_the_living_only_and_all_of_them) {
    char text[PAIR_MEMBER_MAX];
    static struct seen seen;
    seen = (struct seen){0};
    fill_board(pair->board, 0, LARGE);
    board_remove_range(pair->board, LARGE / 4, LARGE / 2);
    uint64_t cursor = 0;
    do {
        struct scan_limits limits = {.count = 10, .work_max = UINT64_MAX};
        cursor = board_cursor_scan(pair->board, cursor, &limits, see, &seen);
        (void)board_free_step(pair->board, 100);
    } while (cursor != 0);
    for (uint32_t i = 0; i < LARGE; i++) {
        uint64_t key;
        if (board_find(pair->board, user_of(i, text), &key)) {
            assert_true(seen.visits[i] > 0);
        } else {
            assert_int_equal(seen.visits[i], 0);
        }
    }
}

/* Here only the additions free remains. */
PAIR_TEST(a_board_emptied_and_filled_again_does_not_grow) {
    fill_board(pair->board, 0, LARGE);
    size_t full_size = board_memory_size(pair->board);
    for (int round = 1; round < 6; round++) {
        board_remove_range(pair->board, 10, board_count(pair->board) - 10);
        fill_board(pair->board, 0, LARGE);
        assert_true(board_memory_size(pair->board) < full_size * 5 / 4);
    }
    ASSERT_VALID(board_validate, pair->board);
}

/* Do all the deferred work for it. Returns the number of steps. */
static uint32_t free_all(struct board *board, uint32_t work_max) {
    uint32_t steps = 1;
    while (!board_free_step(board, work_max)) {
        assert_true(++steps < 1000000);
    }
    return steps;
}

/* The index grows by half each time: among these counts are some where it is about to grow, is
 * being prepared, and is being moved to. */
TEST(what_a_removed_range_held_is_given_back_wherever_growth_was) {
    enum { KEPT = 100 };
    ENDED_BY(pair_deinit) struct board_pair fresh;
    pair_init(&fresh, false, 5);
    fill_board(fresh.board, 0, KEPT);
    size_t size_needed = board_memory_size(fresh.board);
    for (uint32_t count = LARGE / 8; count <= LARGE; count += count / 16) {
        ENDED_BY(pair_deinit) struct board_pair pair;
        pair_init(&pair, false, 5);
        fill_board(pair.board, 0, count);
        board_remove_range(pair.board, KEPT / 2, count - KEPT);
        (void)free_all(pair.board, 500);
        assert_int_equal(board_count(pair.board), KEPT);
        ASSERT_VALID(board_validate, pair.board);
        assert_in_range(board_memory_size(pair.board), 0, 2 * size_needed + 6000);
    }
}

/* Range by range, each too small to be detached; only the changes free memory. A removal runs one
 * step, which moves an id down, frees a segment, or prepares a smaller index or moves ids to it. So
 * if the board keeps its size, it settles in fewer steps than there were members. Then, except for
 * a few, at least a third of the ids and of the index's slots are in use. */
PAIR_TEST(what_small_ranges_held_is_given_back_as_they_go) {
    enum { KEPT = 100 };
    char text[PAIR_MEMBER_MAX];
    ENDED_BY(pair_deinit) struct board_pair fresh;
    pair_init(&fresh, false, 5);
    fill_board(fresh.board, 0, KEPT);
    fill_board(pair->board, 0, LARGE);
    size_t size_full = board_memory_size(pair->board);
    while (board_count(pair->board) > KEPT) {
        board_remove_range(pair->board, KEPT / 2, board_count(pair->board) > KEPT + 10 ? 10 : 1);
    }
    ASSERT_VALID(board_validate, pair->board);
    assert_in_range(board_memory_size(pair->board), 0, size_full / 2);
    for (uint32_t i = 0; i < LARGE; i++) {
        assert_int_equal(board_put(pair->board, member_of(LARGE, text), i), BOARD_OK);
        assert_true(remove_named(pair->board, member_of(LARGE, text)));
    }
    ASSERT_VALID(board_validate, pair->board);
    assert_in_range(board_memory_size(pair->board), 0, 2 * board_memory_size(fresh.board) + 6000);
}

/* A board with few members left also frees memory in small pieces. */
PAIR_TEST(a_step_towards_less_memory_frees_little) {
    fill_board(pair->board, 0, LARGE);
    board_remove_range(pair->board, 100, LARGE - 100);
    while (board_has_remains(pair->board)) {
        (void)board_free_step(pair->board, 200);
    }
    uint64_t live = memory_live_count();
    bool is_done = false;
    while (!is_done) {
        is_done = board_free_step(pair->board, 1);
        assert_true(memory_live_count() + 12 >= live);
        live = memory_live_count();
    }
}

/* Members come and go while the ids are compacted and the index shrinks. */
TEST(a_board_changes_while_its_memory_comes_back) {
    struct random random = random_begin(__func__);
    char text[PAIR_MEMBER_MAX];
    for (int round = 0; round < 12; round++) {
        ENDED_BY(pair_deinit) struct board_pair pair;
        pair_init(&pair, round % 2 == 0, random_next(&random));
        pair_fill(&pair, &random, NUMBERS / 2 + (uint32_t)random_below(&random, NUMBERS / 2),
                  UINT64_MAX);
        uint32_t count = board_count(pair.board);
        pair_remove_range(&pair, count / 20, count - count / 10);
        for (int i = 0; i < 60; i++) {
            (void)board_free_step(pair.board, (uint32_t)random_below(&random, 100));
            struct bytes member = member_of((uint32_t)random_below(&random, NUMBERS), text);
            if (random_below(&random, 3) == 0) {
                pair_remove(&pair, member);
            } else {
                pair_put(&pair, member, random_next(&random));
            }
            pair_compare(&pair);
            pair_compare_member(&pair, member);
        }
        (void)free_all(pair.board, 50);
        pair_compare(&pair);
    }
}

TEST(a_board_with_remains_is_destroyed_whole) {
    uint64_t live_before = memory_live_count();
    for (uint32_t work = 1; work < NUMBERS; work = work * 3 + 1) {
        struct random random = {.state = work};
        struct board_pair pair;
        struct board_chain chain = {NULL};
        pair_init(&pair, false, 5);
        pair_fill(&pair, &random, NUMBERS, UINT64_MAX);
        pair_remove_range(&pair, NUMBERS / 3, NUMBERS / 2);
        board_chain_put(&chain, pair.board);
        (void)board_free_step(pair.board, work);
        assert_ptr_equal(chain.first, board_has_remains(pair.board) ? pair.board : chain.first);
        while (!board_deinit_step(pair.board, work)) {}
        assert_null(chain.first);
        twin_board_deinit(&pair.twin);
        assert_int_equal(memory_live_count(), live_before);
    }
}

TEST(boards_leave_their_chain_in_any_order) {
    enum { BOARDS = 5 };
    struct random random = random_begin(__func__);
    struct board_pair pairs[BOARDS];
    struct board_chain chain = {NULL};
    for (int i = 0; i < BOARDS; i++) {
        pair_init(&pairs[i], false, 5);
        board_chain_put(&chain, pairs[i].board); /* without remains: not put */
        assert_null(chain.first);
        fill_board(pairs[i].board, 0, NUMBERS);
    }
    for (int round = 0; round < 200; round++) {
        uint32_t i = (uint32_t)random_below(&random, BOARDS);
        struct board *board = pairs[i].board;
        if (random_below(&random, 2) == 0) {
            fill_board(board, 0, NUMBERS / 2);
            board_remove_range(board, 3, board_count(board) - 3);
            board_chain_put(&chain, board);
            board_chain_put(&chain, board);
        } else if (board_has_remains(board)) {
            (void)board_free_step(board, NUMBERS);
        }
        for (int j = 0; j < BOARDS; j++) {
            ASSERT_VALID(board_validate, pairs[j].board);
        }
    }
    while (chain.first != NULL) {
        (void)board_free_step(chain.first, 1000);
    }
    for (int i = 0; i < BOARDS; i++) {
        assert_false(board_has_remains(pairs[i].board));
        pair_deinit(&pairs[i]);
    }
}
