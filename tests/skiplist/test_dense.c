/* Dense ranks: members of one score share one, and the next score's is one more. The twin counts from the best entry. */
#include "tests/support/board_pair.h"

/* A board whose key 10 * score + time has the score above so many bits. */
static void begin(struct board_pair *pair, bool is_dense, unsigned score_shift) {
    pair_init(pair, false, 42); /* even: not dense by itself */
    pair->layout.time.bits = (uint8_t)score_shift;
    assert_true(board_set_dense(pair->board, is_dense));
}

static uint32_t dense_rank_of(const struct board *board, const char *name) {
    struct board_member member;
    board_look_up(board, bytes_from_text(name), NULL, &member);
    assert_true(member.is_there);
    return board_dense_rank_of(board, &member);
}

TEST(members_of_one_score_share_a_rank_and_the_next_is_one_more) {
    ENDED_BY(pair_deinit) struct board_pair pair;
    begin(&pair, true, 4);
    assert_int_equal(board_dense_count(pair.board), 0);
    pair_put(&pair, BYTES("zoe"), 9 << 4 | 3);
    pair_put(&pair, BYTES("ann"), 7 << 4 | 9);
    pair_put(&pair, BYTES("bob"), 7 << 4 | 2);
    pair_put(&pair, BYTES("kim"), 1 << 4);
    assert_int_equal(dense_rank_of(pair.board, "zoe"), 0);
    assert_int_equal(dense_rank_of(pair.board, "ann"), 1);
    assert_int_equal(dense_rank_of(pair.board, "bob"), 1);
    assert_int_equal(dense_rank_of(pair.board, "kim"), 2);
    assert_int_equal(board_dense_count(pair.board), 3);
    /* The first of a score leaves it: the second one is first now. */
    pair_put(&pair, BYTES("ann"), 9 << 4 | 1);
    assert_int_equal(dense_rank_of(pair.board, "ann"), 0);
    assert_int_equal(dense_rank_of(pair.board, "bob"), 1);
    pair_remove(&pair, BYTES("bob"));
    assert_int_equal(dense_rank_of(pair.board, "kim"), 1);
    pair_compare(&pair);
}

/* Where the time has no bits, each key is a score. */
TEST(without_a_time_equal_keys_share_a_rank) {
    struct random random = random_begin("without a time");
    ENDED_BY(pair_deinit) struct board_pair pair;
    begin(&pair, true, 0);
    pair_fill(&pair, &random, 1000, 50);
    pair_compare(&pair);
}

/* A score whose members fill many leaves, and what is around it. */
TEST(a_score_may_have_more_members_than_an_index_block_has_below_it) {
    enum { MEMBERS = 6000 };
    ENDED_BY(pair_deinit) struct board_pair pair;
    begin(&pair, true, 40);
    char text[PAIR_MEMBER_MAX];
    pair_put(&pair, BYTES("best"), UINT64_C(3) << 40);
    pair_put(&pair, BYTES("worst"), UINT64_C(1) << 40);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(board_put(pair.board, user_of(i, text), (UINT64_C(2) << 40) + i % 7),
                         BOARD_OK);
    }
    ASSERT_VALID(board_validate, pair.board);
    assert_int_equal(dense_rank_of(pair.board, "worst"), 2);
    assert_int_equal(board_dense_rank(pair.board, MEMBERS / 2), 1);
    /* All but one go at once, and then that one. */
    board_remove_range(pair.board, 1, MEMBERS - 1);
    ASSERT_VALID(board_validate, pair.board);
    assert_int_equal(dense_rank_of(pair.board, "worst"), 2);
    board_remove_range(pair.board, 1, 1);
    ASSERT_VALID(board_validate, pair.board);
    assert_int_equal(dense_rank_of(pair.board, "worst"), 1);
}

/* Counting begins and ends while everything else goes on; without memory for it nothing changes. */
static void random_toggle(struct board_pair *pair, struct random *random) {
    bool begins = !board_is_dense(pair->board);
    if (begins && random_below(random, 2) == 0) {
        memory_fail_at(1 + random_below(random, 3));
        bool has_failed = !board_set_dense(pair->board, true);
        memory_fail_at(0);
        assert_int_equal(board_is_dense(pair->board), !has_failed);
        return;
    }
    assert_true(board_set_dense(pair->board, begins));
}

static void random_copy(struct board_pair *pair) {
    struct board_pair other = {.layout = pair->layout, .board = &other.own};
    assert_true(board_copy(pair->board, &other.own));
    assert_int_equal(board_is_dense(&other.own), board_is_dense(pair->board));
    twin_board_init(&other.twin, pair->twin.is_latest);
    twin_board_copy(&pair->twin, &other.twin);
    pair_compare(&other);
    /* The copy is the pair's board from now on. */
    board_deinit(pair->board);
    board_move_to(&other.own, pair->board);
    twin_board_deinit(&other.twin);
}

static void random_change(struct board_pair *pair, struct random *random, uint32_t members,
                          uint64_t keys) {
    char text[PAIR_MEMBER_MAX];
    struct bytes member = member_of((uint32_t)random_below(random, members), text);
    uint64_t dice = random_below(random, 100);
    if (dice < 60) {
        pair_put(pair, member, random_below(random, keys));
    } else if (dice < 90) {
        pair_remove(pair, member);
    } else if (dice < 94 && pair->twin.count > 0) {
        uint32_t rank = (uint32_t)random_below(random, pair->twin.count);
        uint32_t most = pair->twin.count - rank;
        pair_remove_range(pair, rank, (uint32_t)random_below(random, most + 1) / 4);
    } else {
        (void)board_free_step(pair->board, 1 + (uint32_t)random_below(random, 50));
    }
}

TEST(counting_begins_and_ends_at_any_moment) {
    static const struct {
        const char *name;
        uint32_t members;
        uint64_t keys;
        unsigned score_shift;
    } runs[] = {{"small", 60, 40, 2}, {"large", 1500, 3000, 3}, {"few scores", 1500, 200, 6}};
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        struct random random = random_begin(runs[i].name);
        uint64_t live_before = memory_live_count();
        struct board_pair pair;
        begin(&pair, false, runs[i].score_shift);
        pair_fill(&pair, &random, runs[i].members, runs[i].keys);
        for (int step = 0; step < 3000; step++) {
            random_change(&pair, &random, runs[i].members, runs[i].keys);
            if (random_below(&random, 20) == 0) {
                random_toggle(&pair, &random);
            }
            if (random_below(&random, 100) == 0) {
                random_copy(&pair);
            }
            if (step % 8 == 0) {
                pair_compare(&pair);
            }
        }
        pair_compare(&pair);
        pair_deinit(&pair);
        assert_int_equal(memory_live_count(), live_before);
    }
}

TEST(without_memory_for_it_nothing_is_counted) {
    struct random random = random_begin("without memory");
    ENDED_BY(pair_deinit) struct board_pair pair;
    begin(&pair, false, 2);
    pair_fill(&pair, &random, 1000, 500);
    memory_fail_at(1);
    assert_false(board_set_dense(pair.board, true));
    memory_fail_at(0);
    assert_false(board_is_dense(pair.board));
    pair_compare(&pair);
    assert_true(board_set_dense(pair.board, true));
    pair_compare(&pair);
}

/* As files are loaded: leaf by leaf, of a board that counts from the beginning. */
TEST(appended_members_are_counted) {
    enum { MEMBERS = 3000 };
    OWNED struct board_entry *entries = calloc(MEMBERS, sizeof *entries);
    char(*texts)[PAIR_MEMBER_MAX] = calloc(MEMBERS, sizeof *texts);
    assert_non_null(entries);
    assert_non_null(texts);
    struct board_pair pair;
    begin(&pair, true, 2);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        entries[i] = (struct board_entry){.key = MEMBERS - i, .member = user_of(i, texts[i])};
        twin_board_put(&pair.twin, entries[i].member, entries[i].key);
    }
    for (uint32_t at = 0; at < MEMBERS; at += 150) {
        assert_int_equal(board_append(pair.board, entries + at, 150), BOARD_OK);
    }
    assert_int_equal(board_append_end(pair.board), BOARD_OK);
    pair_compare(&pair);
    pair_deinit(&pair);
    free(texts);
}
