/* Boards bulk-loaded in rank order are then like any other board. */
#include "skiplist/large_board.h"
#include "tests/support/board_pair.h"

enum { ENTRIES_MAX = 3000, PORTION = 128 };

/* Members in rank order, with their own texts. */
struct ranking {
    struct board_entry entries[ENTRIES_MAX];
    char texts[ENTRIES_MAX][PAIR_MEMBER_MAX];
    uint32_t count;
};

static void make_ranking(struct ranking *ranking, struct random *random, uint32_t count,
                         bool are_users) {
    uint64_t key = UINT64_MAX - random_below(random, 3);
    ranking->count = count;
    for (uint32_t i = 0; i < count; i++) {
        key -= random_below(random, 4) == 0 ? random_below(random, 1000) : 0;
        ranking->entries[i] = (struct board_entry){
            .key = key,
            .member = are_users ? user_of(i, ranking->texts[i]) : member_of(i, ranking->texts[i]),
        };
    }
}

/* The same members in the same order, put one by one. */
static void put_ranking(struct board_pair *pair, const struct ranking *ranking, bool is_latest) {
    for (uint32_t i = 0; i < ranking->count; i++) {
        uint32_t at = is_latest ? ranking->count - 1 - i : i;
        twin_board_put(&pair->twin, ranking->entries[at].member, ranking->entries[at].key);
    }
}

/* At once, or in steps of some members. */
static enum board_status end_ranking(struct board *board, struct random *random) {
    if (random_below(random, 2) == 0) {
        return board_append_end(board);
    }
    struct board_indexing progress = {0};
    enum board_status status = BOARD_OK;
    for (bool is_done = false; !is_done && status == BOARD_OK;) {
        uint32_t before = progress.indexed_count;
        uint32_t work_max = 1 + (uint32_t)random_below(random, 200);
        status = board_append_end_step(board, &progress, work_max, &is_done);
        assert_true(progress.indexed_count - before < work_max + BLOCK_ENTRIES_MAX);
    }
    return status;
}

/* In portions of random size. */
static enum board_status append_ranking(struct board *board, const struct ranking *ranking,
                                        struct random *random, uint32_t portion_max) {
    enum board_status status = BOARD_OK;
    for (uint32_t at = 0; at < ranking->count && status == BOARD_OK;) {
        uint32_t left = ranking->count - at;
        uint32_t portion = (uint32_t)random_below(random, portion_max + 1);
        portion = portion < left ? portion : left;
        status = board_append(board, ranking->entries + at, portion);
        at += portion;
    }
    return status == BOARD_OK ? end_ranking(board, random) : status;
}

static void change_at_random(struct board_pair *pair, struct random *random, uint32_t members) {
    char text[PAIR_MEMBER_MAX];
    for (int i = 0; i < 300; i++) {
        struct bytes member = member_of((uint32_t)random_below(random, members + 50), text);
        uint64_t choice = random_below(random, 20);
        if (choice < 12) {
            pair_put(pair, member, UINT64_MAX - random_below(random, 2000));
        } else if (choice < 19) {
            pair_remove(pair, member);
        } else if (pair->twin.count > 0) {
            uint32_t rank = (uint32_t)random_below(random, pair->twin.count);
            uint32_t left = pair->twin.count - rank;
            pair_remove_range(pair, rank, (uint32_t)random_below(random, left < 9 ? left : 9));
        }
        if (i % 25 == 0) {
            pair_compare(pair);
        }
    }
    pair_compare(pair);
}

static struct ranking ranking;

TEST(a_board_appended_to_is_like_one_that_was_put) {
    struct random random = random_begin(__func__);
    static const uint32_t portions[] = {1, 3, 40, 128, ENTRIES_MAX};
    int rounds = is_short_run() ? 30 : 150;
    for (int round = 0; round < rounds; round++) {
        bool is_latest = round % 2 == 1;
        ENDED_BY(pair_deinit) struct board_pair pair;
        pair_init(&pair, is_latest, random_next(&random));
        uint32_t most = round < 80 ? 80 : ENTRIES_MAX;
        make_ranking(&ranking, &random, (uint32_t)random_below(&random, most), false);
        assert_int_equal(append_ranking(pair.board, &ranking, &random, portions[round % 5]),
                         BOARD_OK);
        put_ranking(&pair, &ranking, is_latest);
        pair_compare(&pair);
        for (uint32_t i = 0; i < ranking.count; i += 7) {
            pair_compare_member(&pair, ranking.entries[i].member);
        }
        change_at_random(&pair, &random, ranking.count);
    }
}

/* Each piece is behind all that is there, which changes between two of them. */
TEST(a_board_in_use_is_appended_to_and_its_members_are_found) {
    struct random random = random_begin(__func__);
    for (int round = 0; round < (is_short_run() ? 10 : 60); round++) {
        enum { PIECES = 30, PIECE_MAX = 90 };
        ENDED_BY(pair_deinit) struct board_pair pair;
        uint32_t id = 0;
        pair_init(&pair, round % 2 == 1, random_next(&random));
        for (uint64_t piece = 0; piece < PIECES; piece++) {
            struct board_entry entries[PIECE_MAX];
            char texts[PIECE_MAX][PAIR_MEMBER_MAX];
            uint32_t count = (uint32_t)random_below(&random, PIECE_MAX);
            uint64_t key = (PIECES - piece) * 1000;
            for (uint32_t i = 0; i < count; i++) {
                entries[i] =
                    (struct board_entry){.key = key - i, .member = member_of(id++, texts[i])};
                twin_board_put(&pair.twin, entries[i].member, entries[i].key);
            }
            assert_int_equal(board_append_indexed(pair.board, entries, count), BOARD_OK);
            for (int i = 0; i < 20 && id > 0; i++) {
                char text[PAIR_MEMBER_MAX];
                struct bytes member = member_of((uint32_t)random_below(&random, id), text);
                if (random_below(&random, 3) == 0) {
                    pair_remove(&pair, member);
                } else {
                    pair_put(&pair, member, key + random_below(&random, 2000));
                }
            }
            if (pair.twin.count > 10 && random_below(&random, 8) == 0) {
                pair_remove_range(&pair, pair.twin.count / 2, pair.twin.count / 3);
            }
            pair_compare(&pair);
        }
    }
}

PAIR_TEST(nothing_appended_is_an_empty_board) {
    char text[PAIR_MEMBER_MAX];
    assert_int_equal(board_append(pair->board, NULL, 0), BOARD_OK);
    assert_int_equal(board_append_end(pair->board), BOARD_OK);
    pair_compare(pair);
    pair_put(pair, user_of(1, text), 5);
    pair_compare(pair);
}

TEST(without_memory_the_board_is_only_destroyed) {
    struct random random = random_begin(__func__);
    uint64_t live_before = memory_live_count();
    static const uint32_t counts[] = {1, 30, 400};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        make_ranking(&ranking, &random, counts[i], false);
        uint64_t nth = 0;
        enum board_status status;
        do {
            struct board_pair pair;
            pair_init(&pair, false, 1);
            memory_fail_at(++nth);
            status = append_ranking(pair.board, &ranking, &random, 128);
            memory_fail_at(0);
            assert_true(status == BOARD_OK || status == BOARD_OUT_OF_MEMORY);
            pair_deinit(&pair);
            assert_int_equal(memory_live_count(), live_before);
        } while (status != BOARD_OK);
        assert_true(nth > 1);
    }
}

static uint32_t count_leaves(const struct board *board) {
    const struct skiplist *list = &board->large->list;
    uint32_t count = 0;
    for (uint32_t id = list->first; id != SKIPLIST_NONE; count++) {
        const struct block *leaf = skiplist_node(list, id)->block;
        id = leaf->links.next;
    }
    return count;
}

TEST(few_leaves_of_a_board_that_was_appended_split_when_members_move) {
    struct random random = random_begin(__func__);
    ENDED_BY(pair_deinit) struct board_pair pair;
    pair_init(&pair, false, 1);
    make_ranking(&ranking, &random, ENTRIES_MAX, true);
    assert_int_equal(board_append(pair.board, ranking.entries, ranking.count), BOARD_OK);
    assert_int_equal(board_append_end(pair.board), BOARD_OK);
    uint32_t before = count_leaves(pair.board);
    uint32_t moves = before / 2;
    for (uint32_t i = 0; i < moves; i++) {
        const struct board_entry *from = &ranking.entries[random_below(&random, ranking.count)];
        const struct board_entry *to = &ranking.entries[random_below(&random, ranking.count)];
        assert_int_equal(board_put(pair.board, from->member, to->key), BOARD_OK);
    }
    ASSERT_VALID(board_validate, pair.board);
    printf("%u leaves, %u after %u moves\n", before, count_leaves(pair.board), moves);
    assert_true(count_leaves(pair.board) <= before + moves / 4);
}

TEST(however_many_are_appended_at_once_no_leaf_is_nearly_empty) {
    enum { AT_ONCE = 2 * BLOCK_ENTRIES_MAX, LEAST = (BLOCK_LOADED_MAX + 1) / 2 };
    struct random random = random_begin(__func__);
    ENDED_BY(pair_deinit) struct board_pair pair;
    pair_init(&pair, false, 1);
    make_ranking(&ranking, &random, ENTRIES_MAX, true);
    uint32_t done = 300;
    assert_int_equal(board_append_indexed(pair.board, ranking.entries, done), BOARD_OK);
    while (done < ENTRIES_MAX - AT_ONCE) {
        uint32_t count = 1 + (uint32_t)random_below(&random, AT_ONCE);
        uint32_t before = count_leaves(pair.board);
        assert_int_equal(board_append_indexed(pair.board, ranking.entries + done, count), BOARD_OK);
        uint32_t come = count_leaves(pair.board) - before;
        assert_true(come == 1 || come * LEAST <= count);
        done += count;
    }
    ASSERT_VALID(board_validate, pair.board);
}

TEST(appending_takes_about_as_much_memory_as_putting_in_order) {
    struct random random = random_begin(__func__);
    struct board_pair appended;
    struct board_pair put;
    pair_init(&appended, false, 1);
    pair_init(&put, false, 1);
    make_ranking(&ranking, &random, ENTRIES_MAX, true);
    for (uint32_t at = 0; at < ranking.count; at += PORTION) {
        uint32_t left = ranking.count - at;
        assert_int_equal(
            board_append(appended.board, ranking.entries + at, left < PORTION ? left : PORTION),
            BOARD_OK);
    }
    assert_int_equal(board_append_end(appended.board), BOARD_OK);
    for (uint32_t i = 0; i < ranking.count; i++) {
        assert_int_equal(board_put(put.board, ranking.entries[i].member, ranking.entries[i].key),
                         BOARD_OK);
    }
    printf("%zu bytes appended, %zu put\n", board_memory_size(appended.board),
           board_memory_size(put.board));
    /* The index is allocated at its final size, and leaves have room; tiny ones are few entries each. */
    size_t share = BLOCK_ENTRIES_MAX > 4 ? 8 : 2;
    assert_true(board_memory_size(appended.board) <=
                board_memory_size(put.board) * (share + 1) / share);
    pair_deinit(&appended);
    pair_deinit(&put);
}
