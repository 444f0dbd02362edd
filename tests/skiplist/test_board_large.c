/* Boards large enough for several levels: loads in order and at random, long runs of equals. */
#include "skiplist/large_board.h"
#include "tests/support/board_pair.h"

/* Members of a large board: fewer where the sanitizers or the tiny limits make each one
 * expensive. */
static uint32_t large(void) {
#ifdef SKIPLIST_TINY
    return is_short_run() ? 5000 : 50000;
#else
    return is_short_run() ? 50000 : 1000000;
#endif
}

static void put(struct board *board, uint32_t number, uint64_t key) {
    char text[PAIR_MEMBER_MAX];
    assert_int_equal(board_put(board, user_of(number, text), key), BOARD_OK);
}

/* The member with this number is at rank. */
static void assert_stands_at(const struct board *board, uint32_t number, uint32_t rank) {
    char text[PAIR_MEMBER_MAX];
    struct bytes member = user_of(number, text);
    struct board_member found;
    board_look_up(board, member, NULL, &found);
    assert_true(found.is_there);
    assert_int_equal(board_rank_of(board, &found), rank);
    assert_true(bytes_equal(stored_text(board_at(board, rank).member), member));
    assert_int_equal(board_at(board, rank).key, found.key);
}

PAIR_TEST(ascending_and_descending_loads_stand_in_order) {
    uint32_t members = large();
    for (int is_ascending = 0; is_ascending < 2; is_ascending++) {
        for (uint32_t i = 0; i < members; i++) {
            put(pair->board, i, is_ascending ? i : members - i);
        }
        ASSERT_VALID(board_validate, pair->board);
        assert_int_equal(board_count(pair->board), members);
        for (uint32_t i = 0; i < members; i += members / 1000) {
            assert_stands_at(pair->board, i, is_ascending ? members - 1 - i : i);
        }
        board_remove_range(pair->board, 0, members);
    }
}

PAIR_TEST(a_random_load_stands_in_order_through_moves_and_removals) {
    uint32_t members = large();
    char text[PAIR_MEMBER_MAX];
    for (uint32_t i = 0; i < members; i++) {
        put(pair->board, i, random_next(random) >> 40);
    }
    ASSERT_VALID(board_validate, pair->board);
    assert_int_equal(board_count(pair->board), members);
    for (uint32_t i = 0; i < members; i++) {
        put(pair->board, (uint32_t)random_below(random, members), random_next(random) >> 40);
    }
    ASSERT_VALID(board_validate, pair->board);
    assert_int_equal(board_count(pair->board), members);
    for (uint32_t i = 0; i < members; i++) {
        if (i % 10 != 0) {
            assert_true(remove_named(pair->board, user_of(i, text)));
        }
    }
    ASSERT_VALID(board_validate, pair->board);
    assert_int_equal(board_count(pair->board), (members + 9) / 10);
    while (board_count(pair->board) > 0) {
        uint32_t rank = (uint32_t)random_below(random, board_count(pair->board));
        uint64_t count = 1 + random_below(random, board_count(pair->board) - rank);
        board_remove_range(pair->board, rank, (uint32_t)count);
        ASSERT_VALID(board_validate, pair->board);
    }
}

#ifndef SKIPLIST_TINY
/* Each segment of 64 KiB is memory that the system has to bring. */
TEST(members_that_go_and_come_do_not_hurry_the_table_that_is_prepared) {
    enum { CHANGES = 100, SEGMENTS_MIN = 8 };
    ENDED_BY(pair_deinit) struct board_pair pair;
    pair_init(&pair, false, 42);
    uint32_t count = 0;
    while (count < 1000) {
        put(pair.board, count, count);
        count++;
    }
    const struct map *map = &pair.board->large->map;
    while (!map_has_next(map) || map->is_moving ||
           map_growth_size(map, 1, map->id_end) < SEGMENTS_MIN * UINT64_C(65536)) {
        put(pair.board, count, count);
        count++;
    }
    uint32_t segments = map->next.segment_count;
    for (uint32_t i = 0; i < CHANGES; i++) {
        char text[PAIR_MEMBER_MAX];
        assert_true(remove_named(pair.board, user_of(i, text)));
        put(pair.board, i, i);
    }
    assert_in_range(map->next.segment_count, segments, segments + 2);
    while (map_has_next(map)) {
        put(pair.board, count, count);
        count++;
    }
    ASSERT_VALID(board_validate, pair.board);
}
#endif

/* A run of equals with others around it: every rank is right. */
TEST(a_long_run_of_equals_keeps_arrival_order_or_the_reverse) {
    uint32_t members = large() / 4;
    for (int is_latest = 0; is_latest < 2; is_latest++) {
        ENDED_BY(pair_deinit) struct board_pair pair;
        pair_init(&pair, is_latest, 7);
        put(pair.board, members, 9);
        put(pair.board, members + 1, 3);
        for (uint32_t i = 0; i < members; i++) {
            put(pair.board, i, 5);
        }
        ASSERT_VALID(board_validate, pair.board);
        assert_int_equal(board_count_above(pair.board, 5), 1);
        assert_int_equal(board_count_from(pair.board, 5), members + 1);
        for (uint32_t i = 0; i < members; i += members / 1000) {
            assert_stands_at(pair.board, i, is_latest ? members - i : i + 1);
        }
        /* A member that leaves the run and returns is at its end, among the newest. */
        put(pair.board, 0, 9);
        assert_stands_at(pair.board, 0, is_latest ? 0 : 1);
        put(pair.board, 0, 5);
        assert_stands_at(pair.board, 0, is_latest ? 1 : members);
        ASSERT_VALID(board_validate, pair.board);
    }
}

PAIR_TEST(a_long_run_of_equals_survives_removals) {
    uint32_t members = large() / 4;
    char text[PAIR_MEMBER_MAX];
    OWNED bool *is_gone = calloc(members, sizeof *is_gone);
    assert_non_null(is_gone);
    for (uint32_t i = 0; i < members; i++) {
        put(pair->board, i, 5);
    }
    for (uint32_t i = 0; i < members / 2; i++) {
        uint32_t number = (uint32_t)random_below(random, members);
        assert_int_equal(remove_named(pair->board, user_of(number, text)), !is_gone[number]);
        is_gone[number] = true;
    }
    ASSERT_VALID(board_validate, pair->board);
    uint32_t rank = 0;
    struct board_cursor cursor;
    struct board_stored entry;
    board_cursor_seek(pair->board, 0, &cursor);
    for (uint32_t i = 0; i < members; i++) {
        if (is_gone[i]) {
            continue;
        }
        assert_true(board_cursor_read(&cursor, &entry));
        assert_true(bytes_equal(stored_text(entry.member), user_of(i, text)));
        if (i % 100 == 0) {
            assert_stands_at(pair->board, i, rank);
        }
        board_cursor_next(&cursor);
        rank++;
    }
    assert_int_equal(rank, board_count(pair->board));
}

/* A hot spot in the middle: every new key lands between two others that were close already. */
PAIR_TEST(insertions_at_one_place_split_again_and_again) {
    uint32_t members = large() / 10;
    uint64_t low = 0;
    uint64_t high = UINT64_MAX;
    for (uint32_t i = 0; i < members; i++) {
        uint64_t middle = low + (high - low) / 2;
        put(pair->board, i, middle);
        if (i % 2 == 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    ASSERT_VALID(board_validate, pair->board);
    assert_int_equal(board_count(pair->board), members);
}

/* Groups of every size, on boards of one, a few and many blocks. */
TEST(many_ranks_have_the_entries_of_each) {
    struct random random = random_begin(__func__);
    const uint32_t sizes[] = {1, 3, 40, 200, 3000, large()};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        ENDED_BY(pair_deinit) struct board_pair pair;
        pair_init(&pair, false, 42);
        for (uint32_t number = 0; number < sizes[i]; number++) {
            put(pair.board, number, random_below(&random, sizes[i]));
        }
        for (int round = 0; round < 2000; round++) {
            uint32_t ranks[BOARD_AT_MAX];
            struct board_stored entries[BOARD_AT_MAX];
            uint32_t count = (uint32_t)random_below(&random, BOARD_AT_MAX + 1);
            for (uint32_t at = 0; at < count; at++) {
                ranks[at] = (uint32_t)random_below(&random, sizes[i]);
            }
            board_at_many(pair.board, ranks, count, entries);
            for (uint32_t at = 0; at < count; at++) {
                struct board_stored entry = board_at(pair.board, ranks[at]);
                assert_int_equal(entries[at].key, entry.key);
                assert_true(name_equal(entries[at].member, entry.member));
            }
        }
    }
}
