/* The board against its naive twin: the same commands to both, compared after every step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/memory.h"
#include "skiplist/board.h"
#include "tests/support/random.h"
#include "tests/support/twin_board.h"

enum { MEMBER_ROOM = 512 };

static struct layout plain_layout;
static struct layout latest_layout;

/* Sizes on both sides of every limit: the shortest, the longest inline ones, the first that lie in
 * a piece of their own (of the tiny build, too). */
static const size_t edge_sizes[] = {4, 9, 17, 39, 40, 41, 120, 253, 254, 255, 256, 400};

/* The member with this number: its size depends on the number, so that it is always the same. */
static struct bytes member_of(uint32_t number, char *text) {
    size_t size =
        edge_sizes[(number * 2654435761U >> 16) % (sizeof edge_sizes / sizeof *edge_sizes)];
    if (number < 26) {
        text[0] = (char)('a' + number);
        return (struct bytes){.at = text, .size = 1};
    }
    memset(text, 'x', size);
    memcpy(text, &number, sizeof number);
    return (struct bytes){.at = text, .size = size};
}

/* Members of equal size, as real ones are. */
static struct bytes user_of(uint32_t number, char *text) {
    int size = snprintf(text, MEMBER_ROOM, "user:%012u", number);
    return (struct bytes){.at = text, .size = (size_t)size};
}

static void assert_valid(const struct board *board) {
    const char *reason = "";
    if (!board_validate(board, &reason))
        fail_msg("%s", reason);
}

struct pair {
    struct board *board;
    struct twin_board twin;
};

static struct pair pair_create(bool is_latest, uint64_t seed) {
    struct pair pair = {.board = board_create(is_latest ? &latest_layout : &plain_layout, seed)};
    assert_non_null(pair.board);
    twin_board_init(&pair.twin, is_latest);
    return pair;
}

static void pair_destroy(struct pair *pair) {
    board_destroy(pair->board);
    twin_board_deinit(&pair->twin);
}

static void pair_put(struct pair *pair, struct bytes member, uint64_t key) {
    assert_int_equal(board_put(pair->board, member, key), BOARD_OK);
    twin_board_put(&pair->twin, member, key);
}

static void pair_remove(struct pair *pair, struct bytes member) {
    assert_int_equal(board_remove(pair->board, member), twin_board_remove(&pair->twin, member));
}

static void pair_compare(const struct pair *pair) {
    assert_valid(pair->board);
    assert_true(twin_board_equals(&pair->twin, pair->board));
}

static void compare_lookup(const struct pair *pair, struct bytes member) {
    uint32_t rank = 0;
    uint32_t twin_rank = 0;
    uint64_t key = 0;
    uint64_t found_key = 0;
    bool is_there = twin_board_rank(&pair->twin, member, &twin_rank);
    assert_int_equal(board_rank(pair->board, member, &rank, &key), is_there);
    assert_int_equal(board_find(pair->board, member, &found_key), is_there);
    if (!is_there)
        return;
    assert_int_equal(rank, twin_rank);
    assert_int_equal(key, pair->twin.entries[rank].key);
    assert_int_equal(found_key, key);
    struct board_entry entry = board_at(pair->board, rank);
    assert_true(bytes_equal(entry.member, member));
}

static void compare_counts(const struct pair *pair, uint64_t key) {
    assert_int_equal(board_count_above(pair->board, key), twin_board_count_above(&pair->twin, key));
    assert_int_equal(board_count_from(pair->board, key), twin_board_count_from(&pair->twin, key));
}

/* How one random run behaves. */
struct run {
    uint32_t members; /* universe */
    uint32_t keys;
    int steps;
    int validate_every;
    bool is_latest;
    struct bytes (*member_of)(uint32_t number, char *text);
};

static uint64_t key_of(uint64_t number, uint32_t keys) {
    /* The ends of the range of keys, and what is between them. */
    if (number == 0)
        return 0;
    return number == keys - 1 ? UINT64_MAX : number * 1000003;
}

static void random_step(struct pair *pair, const struct run *run, struct random *random,
                        bool is_growing) {
    char text[MEMBER_ROOM];
    struct bytes member = run->member_of((uint32_t)random_below(random, run->members), text);
    uint64_t key = key_of(random_below(random, run->keys), run->keys);
    uint64_t dice = random_below(random, 100);
    if (dice < (is_growing ? 70U : 30U)) {
        pair_put(pair, member, key);
    } else if (dice < 90) {
        pair_remove(pair, member);
    } else if (dice < 97 || pair->twin.count == 0) {
        compare_lookup(pair, member);
        compare_counts(pair, key);
    } else {
        uint32_t rank = (uint32_t)random_below(random, pair->twin.count);
        uint32_t most = pair->twin.count - rank < 20 ? pair->twin.count - rank : 20;
        uint32_t count = (uint32_t)random_below(random, most + 1);
        board_remove_range(pair->board, rank, count);
        twin_board_remove_range(&pair->twin, rank, count);
    }
}

static void run_against_twin(const char *name, const struct run *run) {
    struct random random = random_begin(name);
    uint64_t live_before = memory_live_count();
    struct pair pair = pair_create(run->is_latest, random_next(&random));
    for (int i = 0; i < run->steps; i++) {
        random_step(&pair, run, &random, i / (run->steps / 6 + 1) % 2 == 0);
        if (i % run->validate_every == 0)
            pair_compare(&pair);
    }
    pair_compare(&pair);
    board_remove_range(pair.board, 0, board_count(pair.board));
    assert_valid(pair.board);
    assert_int_equal(board_count(pair.board), 0);
    pair_destroy(&pair);
    assert_int_equal(memory_live_count(), live_before);
}

static void few_members_and_keys_agree_with_the_twin(void **state) {
    (void)state;
    run_against_twin(
        __func__,
        &(struct run){
            .members = 40, .keys = 5, .steps = 6000, .validate_every = 1, .member_of = member_of});
}

static void some_members_and_keys_agree_with_the_twin(void **state) {
    (void)state;
    run_against_twin(__func__, &(struct run){.members = 400,
                                             .keys = 60,
                                             .steps = 6000,
                                             .validate_every = 1,
                                             .member_of = member_of});
}

static void latest_stands_before_its_equals(void **state) {
    (void)state;
    run_against_twin(__func__, &(struct run){.members = 400,
                                             .keys = 20,
                                             .steps = 6000,
                                             .validate_every = 1,
                                             .is_latest = true,
                                             .member_of = member_of});
}

static void many_members_agree_with_the_twin(void **state) {
    (void)state;
    run_against_twin(__func__, &(struct run){.members = 5000,
                                             .keys = 100000,
                                             .steps = 20000,
                                             .validate_every = 50,
                                             .member_of = user_of});
}

static int set_up_layouts(void **state) {
    (void)state;
    plain_layout = (struct layout){.field_count = 1};
    latest_layout = (struct layout){.field_count = 1, .time = {.bits = 8, .is_latest = true}};
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_members_and_keys_agree_with_the_twin),
        cmocka_unit_test(some_members_and_keys_agree_with_the_twin),
        cmocka_unit_test(latest_stands_before_its_equals),
        cmocka_unit_test(many_members_agree_with_the_twin),
    };
    return cmocka_run_group_tests_name("board", tests, set_up_layouts, NULL);
}
