/* board_cursor_scan's guarantee: what is on the board throughout is visited, whatever changes meanwhile;
 * what was never there is not visited, and nothing is visited twice within one call. */
#include "skiplist/block.h"
#include "tests/support/board_pair.h"

enum { MEMBERS = 4000 };

struct world {
    struct board_pair pair; /* the twin is not used */
    bool was_there[MEMBERS];
    bool is_lasting[MEMBERS];
    uint32_t visits[MEMBERS];
    uint32_t visits_in_call[MEMBERS];
    uint32_t visited_in_call;
};

static uint32_t number_of(struct bytes member) {
    uint32_t number = 0;
    for (size_t i = member.size - 12; i < member.size; i++) {
        number = number * 10 + (uint32_t)(member.at[i] - '0');
    }
    return number;
}

static void visit(void *context, const struct board_stored *entry) {
    struct world *world = context;
    uint32_t number = number_of(stored_text(entry->member));
    assert_true(number < MEMBERS);
    assert_true(world->was_there[number]);
    world->visits[number]++;
    world->visited_in_call++;
    assert_int_equal(++world->visits_in_call[number], 1);
}

static uint64_t scan(struct world *world, uint64_t cursor, struct scan_limits limits) {
    memset(world->visits_in_call, 0, sizeof world->visits_in_call);
    world->visited_in_call = 0;
    return board_cursor_scan(world->pair.board, cursor, &limits, visit, world);
}

static uint64_t scan_by_count(struct world *world, uint64_t cursor, uint32_t count) {
    return scan(world, cursor, (struct scan_limits){.count = count, .work_max = UINT64_MAX});
}

static void put(struct world *world, uint32_t number, uint64_t key) {
    char text[PAIR_MEMBER_MAX];
    assert_int_equal(board_put(world->pair.board, user_of(number, text), key), BOARD_OK);
    world->was_there[number] = true;
}

static void drop(struct world *world, uint32_t number) {
    char text[PAIR_MEMBER_MAX];
    (void)remove_named(world->pair.board, user_of(number, text));
}

static struct world *world_create(struct random *random) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    pair_init(&world->pair, false, random_next(random));
    return world;
}

static void world_destroy(struct world *world) {
    ASSERT_VALID(board_validate, world->pair.board);
    pair_deinit(&world->pair);
    free(world);
}

/* A test with an empty world and random numbers. */
#define WORLD_TEST(name)                                                                           \
    static void name##_in(struct world *world, struct random *random);                             \
    TEST(name) {                                                                                   \
        struct random random = random_begin(__func__);                                             \
        struct world *world = world_create(&random);                                               \
        name##_in(world, &random);                                                                 \
        world_destroy(world);                                                                      \
    }                                                                                              \
    static void name##_in(struct world *world, __attribute__((unused)) struct random *random)

static void change(struct world *world, struct random *random, int growing_percent) {
    uint32_t number = (uint32_t)random_below(random, MEMBERS);
    if (world->is_lasting[number] || random_below(random, 100) < (uint64_t)growing_percent) {
        put(world, number, random_below(random, 1000));
    } else {
        drop(world, number);
    }
}

static void scan_while(struct random *random, uint32_t lasting, uint32_t fleeting,
                       int growing_percent, uint32_t count, int changes_per_call) {
    struct world *world = world_create(random);
    for (uint32_t i = 0; i < lasting + fleeting; i++) {
        uint32_t number = i * (MEMBERS / (lasting + fleeting));
        world->is_lasting[number] = i % (lasting + fleeting) < lasting;
        put(world, number, random_below(random, 1000));
    }
    uint64_t cursor = 0;
    do {
        uint64_t next = scan_by_count(world, cursor, count);
        assert_true(next == 0 || next > cursor);
        assert_true(next < UINT64_C(1) << 48);
        cursor = next;
        for (int i = 0; i < changes_per_call; i++) {
            change(world, random, growing_percent);
        }
    } while (cursor != 0);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_true(world->visits[i] > 0 || !world->is_lasting[i]);
    }
    world_destroy(world);
}

TEST(what_stays_is_seen_while_nothing_changes) {
    struct random random = random_begin(__func__);
    for (uint32_t members = 1; members <= MEMBERS; members = members * 3 / 2 + 1) {
        scan_while(&random, members, 0, 0, 10, 0);
    }
}

TEST(what_stays_is_seen_while_the_board_changes) {
    static const struct {
        const char *change;
        int rounds;
        uint32_t lasting, fleeting;
        int growing_percent;
        uint32_t count;
        int changes_per_call;
    } rows[] = {
        {"it grows", 5, 200, 200, 95, 10, 100},
        {"it shrinks", 5, 200, 3000, 3, 10, 100},
        {"one block is left", 15, 3, 300, 3, 1, 200},
        {"one block is left and others come", 15, 3, 300, 70, 1, 200},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct random random = random_begin(rows[i].change);
        for (int round = 0; round < rows[i].rounds; round++) {
            scan_while(&random, rows[i].lasting, rows[i].fleeting, rows[i].growing_percent,
                       rows[i].count, rows[i].changes_per_call);
        }
    }
}

/* Half of the transient members are added, then most of them are removed at once, and so on: the
 * index is growing when a range is removed, and shrinking when members are added. The lasting ones
 * rank above all others. */
static void grow_and_cut(struct world *world, struct random *random, uint32_t lasting) {
    uint64_t dice = random_below(random, 12);
    uint32_t count = board_count(world->pair.board);
    if (dice == 0 && count > lasting + 10) {
        uint32_t left = (uint32_t)random_below(random, 10);
        board_remove_range(world->pair.board, lasting + left, count - lasting - left);
    } else if (dice < 4) {
        (void)board_free_step(world->pair.board, (uint32_t)random_below(random, 200));
    } else {
        for (int i = 0; i < MEMBERS / 40; i++) {
            uint32_t number = lasting + (uint32_t)random_below(random, MEMBERS - lasting);
            put(world, number, random_below(random, 1000));
        }
    }
}

TEST(what_stays_is_seen_while_ranges_go_amid_growth) {
    enum { LASTING = 60 };
    struct random random = random_begin(__func__);
    for (int round = 0; round < 60; round++) {
        struct world *world = world_create(&random);
        for (uint32_t i = 0; i < LASTING; i++) {
            put(world, i, 1000000 + i);
        }
        for (uint64_t i = random_below(&random, 60); i > 0; i--) {
            grow_and_cut(world, &random, LASTING);
        }
        uint64_t cursor = 0;
        do {
            struct scan_limits limits = {.count = 1 + (uint32_t)random_below(&random, 20),
                                         .work_max = random_below(&random, 20000)};
            uint64_t next = scan(world, cursor, limits);
            assert_true(next == 0 || next > cursor);
            cursor = next;
            grow_and_cut(world, &random, LASTING);
        } while (cursor != 0);
        for (uint32_t i = 0; i < LASTING; i++) {
            assert_true(world->visits[i] > 0);
        }
        world_destroy(world);
    }
}

/* However little work a call may do, it makes progress; and all calls together visit every member
 * once. */
TEST(a_scan_by_work_alone_visits_each_member_once) {
    struct random random = random_begin(__func__);
    for (uint64_t work_max = 0; work_max < 1000000; work_max = work_max * 4 + 1) {
        struct world *world = world_create(&random);
        uint32_t members = work_max == 85 ? 3 : MEMBERS;
        for (uint32_t i = 0; i < members; i++) {
            put(world, i, i);
        }
        uint64_t cursor = 0;
        do {
            struct scan_limits limits = {.count = UINT32_MAX, .work_max = work_max, .byte_work = 3};
            cursor = scan(world, cursor, limits);
            assert_true(world->visited_in_call <= work_max / 100 + 2);
        } while (cursor != 0);
        for (uint32_t i = 0; i < members; i++) {
            assert_int_equal(world->visits[i], 1);
        }
        world_destroy(world);
    }
}

WORLD_TEST(a_scan_ends_from_any_cursor) {
    for (uint32_t i = 0; i < 1000; i++) {
        put(world, i, i);
    }
    assert_int_equal(scan_by_count(world, UINT64_C(1) << 32, 10), 0);
    assert_int_equal(scan_by_count(world, UINT64_MAX, 10), 0);
    assert_int_equal(world->visited_in_call, 0);
    uint64_t cursor = random_below(random, UINT64_C(1) << 32);
    for (int calls = 0; cursor != 0; calls++) {
        assert_true(calls < 1000);
        cursor = scan_by_count(world, cursor, 5);
    }
}

WORLD_TEST(a_call_visits_about_as_many_as_asked_for) {
    for (uint32_t i = 0; i < MEMBERS; i++) {
        put(world, i, i);
    }
    for (uint64_t cursor = 0; cursor < UINT64_C(1) << 32;) {
        uint64_t next = scan_by_count(world, cursor, 100);
        assert_true(next == 0 || world->visited_in_call >= 100);
        assert_true(world->visited_in_call < 100 + 64);
        cursor = next == 0 ? UINT64_C(1) << 32 : next;
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(world->visits[i], 1);
    }
}

WORLD_TEST(a_small_board_is_visited_at_once) {
    assert_int_equal(scan_by_count(world, 0, 10), 0);
    for (uint32_t i = 0; i < 4; i++) {
        put(world, i, i);
    }
    assert_int_equal(scan_by_count(world, 0, 1), 0);
    assert_int_equal(world->visited_in_call, 4);
}

#ifndef SKIPLIST_TINY
WORLD_TEST(a_board_without_an_index_is_visited_as_asked) {
    enum { COUNT = BLOCK_ALONE_ENTRIES_MAX - 5 };
    for (uint32_t i = 0; i < COUNT; i++) {
        put(world, i, i % 7);
    }
    assert_int_equal(scan_by_count(world, 0, 1000000), 0);
    assert_int_equal(world->visited_in_call, COUNT);
    /* A few at a time: each once, and what was visited before the cursor comes no more. */
    memset(world->visits, 0, sizeof world->visits);
    uint64_t cursor = 0;
    uint32_t calls = 0;
    do {
        cursor = scan(world, cursor, (struct scan_limits){.count = 5, .work_max = 400});
        calls++;
    } while (cursor != 0);
    assert_in_range(calls, 5, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(world->visits[i], 1);
    }
}
#endif
