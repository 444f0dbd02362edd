/* The board against its naive twin: the same commands to both, compared after every step. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/lookup.h"
#include "skiplist/run.h"
#include "tests/support/board_pair.h"
#include "tests/support/random.h"

/* Parameters of one random run. */
struct run {
    uint32_t members; /* universe */
    uint32_t keys;
    int steps;
    int validate_every;
    bool is_latest;
    bool has_lookups;
    bool
        has_cuts; /* now and then most of the board goes at once, and what is left of it in steps */
    struct bytes (*member_of)(uint32_t number, char *text);
};

/* The ends of the range of keys, and what is between them. */
static uint64_t key_of(uint64_t number, uint32_t keys) {
    if (number == 0) {
        return 0;
    }
    return number == keys - 1 ? UINT64_MAX : number * 1000003;
}

static void random_stage(struct random *random, const struct board *board, struct bytes member,
                         uint64_t key, struct lookup *lookup) {
    /* The stages of one command, with changes between them as by other commands. */
    struct lookup *due[LOOKUP_STAGES] = {NULL};
    due[random_below(random, LOOKUP_STAGES)] = lookup;
    switch (random_below(random, 4)) {
    case 0:
        lookup_begin(lookup, board, member, random_below(random, 2) == 0);
        break;
    case 1:
        lookup_begin_place(lookup, key);
        break;
    case 2:
        lookup_finish(lookup, 1);
        break;
    default:
        lookup_advance(due);
    }
}

static void random_step(struct board_pair *pair, const struct run *run, struct random *random,
                        bool is_growing) {
    char text[PAIR_MEMBER_MAX];
    struct bytes member = run->member_of((uint32_t)random_below(random, run->members), text);
    uint64_t key = key_of(random_below(random, run->keys), run->keys);
    uint64_t dice = random_below(random, 100);
    if (dice < (is_growing ? 70U : 30U)) {
        pair_put(pair, member, key);
    } else if (dice < 90) {
        pair_remove(pair, member);
    } else if (dice < 97 || pair->twin.count == 0) {
        pair_compare_member(pair, member);
        pair_compare_key(pair, key);
    } else {
        uint32_t rank = (uint32_t)random_below(random, pair->twin.count);
        uint32_t most = pair->twin.count - rank < 20 ? pair->twin.count - rank : 20;
        pair_remove_range(pair, rank, (uint32_t)random_below(random, most + 1));
    }
}

static void random_cut(struct board_pair *pair, struct random *random) {
    uint64_t dice = random_below(random, 60);
    if (dice == 0 && pair->twin.count > 0) {
        uint32_t rank = (uint32_t)random_below(random, pair->twin.count);
        pair_remove_range(pair, random_below(random, 2) == 0 ? 0 : rank / 4,
                          pair->twin.count - rank);
    } else if (dice < 20) {
        (void)board_free_step(pair->board, 1 + (uint32_t)random_below(random, 50));
    }
}

/* Puts whose look-ups are some changes old, each in another stage, as commands and effects have them. */
struct pending_put {
    char text[PAIR_MEMBER_MAX];
    struct bytes member;
    uint64_t key;
};

enum { PENDING = 9 };

static void put_all_looked_up(struct board_pair *pair, const struct run *run,
                              struct random *random) {
    static struct pending_put puts[PENDING];
    struct lookup ring[LOOKUP_RING];
    uint32_t done = 0;
    for (uint32_t now = 0; done < PENDING; now++) {
        if (now < PENDING) {
            struct pending_put *put = &puts[now];
            put->member = run->member_of((uint32_t)random_below(random, run->members), put->text);
            put->key = key_of(random_below(random, run->keys), run->keys);
            lookup_begin(&ring[now % LOOKUP_RING], pair->board, put->member, true);
            lookup_begin_place(&ring[now % LOOKUP_RING], put->key);
        }
        lookup_advance_ring(ring, now, PENDING);
        if (random_below(random, 2) == 0) {
            random_step(pair, run, random, true);
        }
        if (run->has_cuts) {
            random_cut(pair, random);
        }
        if (now > LOOKUP_STAGES) {
            /* Now and then with another key than was looked up. */
            uint64_t key = puts[done].key ^ (random_below(random, 8) == 0);
            pair_put_looked_up(pair, puts[done].member, key, &ring[done % LOOKUP_RING]);
            done++;
        }
    }
}

static void run_against_twin(const char *name, const struct run *run) {
    struct random random = random_begin(name);
    uint64_t live_before = memory_live_count();
    struct board_pair pair;
    pair_init(&pair, run->is_latest, random_next(&random));
    struct lookup lookup;
    lookup_begin(&lookup, pair.board, BYTES("nobody"), false);
    for (int i = 0; i < run->steps; i++) {
        char text[PAIR_MEMBER_MAX];
        random_step(&pair, run, &random, i / (run->steps / 6 + 1) % 2 == 0);
        if (run->has_lookups) {
            random_stage(&random, pair.board,
                         run->member_of((uint32_t)random_below(&random, run->members), text),
                         random_next(&random), &lookup);
        }
        if (run->has_lookups && i % 8 == 0) {
            put_all_looked_up(&pair, run, &random);
        }
        if (i % run->validate_every == 0) {
            pair_compare(&pair);
        }
    }
    pair_compare(&pair);
    pair_remove_range(&pair, 0, pair.twin.count);
    pair_compare(&pair);
    pair_deinit(&pair);
    assert_int_equal(memory_live_count(), live_before);
}

TEST(few_members_and_keys_agree_with_the_twin) {
    struct run run = {.members = 40, .keys = 5, .steps = 6000, .validate_every = 1};
    run.member_of = member_of;
    run_against_twin(__func__, &run);
}

TEST(some_members_and_keys_agree_with_the_twin) {
    struct run run = {.members = 400, .keys = 60, .steps = 6000, .validate_every = 1};
    run.member_of = member_of;
    run_against_twin(__func__, &run);
}

TEST(latest_stands_before_its_equals) {
    struct run run = {.members = 400, .keys = 20, .steps = 6000, .validate_every = 1};
    run.is_latest = true;
    run.member_of = member_of;
    run_against_twin(__func__, &run);
}

TEST(many_members_agree_with_the_twin) {
    struct run run = {.members = 5000, .keys = 100000, .steps = 20000, .validate_every = 100};
    run.member_of = user_of;
    run_against_twin(__func__, &run);
}

TEST(prefetches_at_any_moment_change_nothing) {
    struct run run = {.members = 300, .keys = 30, .steps = 4000, .validate_every = 1};
    run.has_lookups = true;
    run.member_of = member_of;
    run_against_twin(__func__, &run);
}

TEST(looked_up_places_that_are_stale_change_nothing) {
    struct run run = {.members = 900, .keys = 30, .steps = 4000, .validate_every = 4};
    run.has_lookups = true;
    run.member_of = member_of;
    run_against_twin(__func__, &run);
    run.keys = 5000;
    run.is_latest = true;
    run_against_twin(__func__, &run);
}

TEST(looked_up_places_that_were_cut_off_change_nothing) {
    struct run run = {.members = 1500, .keys = 30, .steps = 4000, .validate_every = 4};
    run.has_lookups = true;
    run.has_cuts = true;
    run.member_of = member_of;
    run_against_twin(__func__, &run);
    run.is_latest = true;
    run_against_twin(__func__, &run);
}

TEST(an_empty_board_answers) {
    struct board_pair pair;
    struct board_cursor cursor;
    struct board_entry entry;
    pair_init(&pair, false, 1);
    assert_int_equal(board_count(pair.board), 0);
    assert_ptr_equal(board_layout(pair.board), &pair.layout);
    assert_false(remove_named(pair.board, BYTES("nobody")));
    pair_compare_member(&pair, BYTES("nobody"));
    pair_compare_key(&pair, 0);
    pair_compare_key(&pair, UINT64_MAX);
    board_seek(pair.board, 0, &cursor);
    assert_false(board_cursor_read(&cursor, &entry));
    board_cursor_next(&cursor);
    board_cursor_previous(&cursor);
    assert_false(board_cursor_read(&cursor, &entry));
    pair_remove_range(&pair, 0, 0);
    pair_compare(&pair);
    pair_deinit(&pair);
}

/* Members of every size that is treated differently, among others, moved and removed. */
TEST(members_of_all_sizes_are_kept) {
    static const size_t sizes[] = {1,
                                   2,
                                   15,
                                   16,
                                   17,
                                   39,
                                   40,
                                   41,
                                   127,
                                   128,
                                   253,
                                   254,
                                   255,
                                   256,
                                   257,
                                   4095,
                                   65534,
                                   65535,
                                   BOARD_MEMBER_MAX};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct random random = random_begin(__func__);
    uint64_t live_before = memory_live_count();
    char *text = malloc(BOARD_MEMBER_MAX);
    assert_non_null(text);
    struct board_pair pair;
    pair_init(&pair, false, random_next(&random));
    for (int i = 0; i < 1500; i++) {
        /* Two members of each size that differ only in the last byte. */
        size_t size = sizes[random_below(&random, SIZES)];
        memset(text, 'm', size);
        text[size - 1] = random_below(&random, 2) == 0 ? 'a' : 'b';
        struct bytes member = {.at = text, .size = size};
        if (random_below(&random, 3) == 0) {
            pair_remove(&pair, member);
        } else {
            pair_put(&pair, member, random_below(&random, 10));
        }
        pair_compare(&pair);
        pair_compare_member(&pair, member);
    }
    pair_deinit(&pair);
    free(text);
    assert_int_equal(memory_live_count(), live_before);
}

TEST(a_member_may_be_given_as_it_lies_on_the_board) {
    struct random random = random_begin(__func__);
    struct board_pair pair;
    pair_init(&pair, false, random_next(&random));
    char text[PAIR_MEMBER_MAX];
    for (uint32_t i = 0; i < 300; i++) {
        pair_put(&pair, member_of(i, text), random_below(&random, 50));
    }
    for (int i = 0; i < 2000; i++) {
        uint32_t rank = (uint32_t)random_below(&random, pair.twin.count);
        uint64_t key = random_below(&random, 50);
        struct bytes member = board_at(pair.board, rank).member;
        /* First on the board: there the borrowed bytes are about to move. */
        struct bytes twin_member = pair.twin.entries[rank].member;
        assert_int_equal(board_put(pair.board, member, key), BOARD_OK);
        twin_board_put(&pair.twin, twin_member, key);
        pair_compare(&pair);
    }
    for (int i = 0; i < 200; i++) {
        uint32_t rank = (uint32_t)random_below(&random, pair.twin.count);
        assert_true(remove_named(pair.board, board_at(pair.board, rank).member));
        twin_board_remove_range(&pair.twin, rank, 1);
        pair_compare(&pair);
    }
    pair_deinit(&pair);
}

TEST(putting_the_same_key_again_goes_behind_its_equals) {
    struct board_pair pair;
    pair_init(&pair, false, 1);
    pair_put(&pair, BYTES("ann"), 7);
    pair_put(&pair, BYTES("bob"), 7);
    pair_put(&pair, BYTES("kim"), 7);
    pair_put(&pair, BYTES("ann"), 7);
    assert_true(bytes_equal(board_at(pair.board, 2).member, BYTES("ann")));
    pair_compare(&pair);
    pair_deinit(&pair);
}

static void compare_from(const struct board_pair *pair, uint32_t rank, bool is_forward) {
    struct board_cursor cursor;
    struct board_entry entry;
    board_seek(pair->board, rank, &cursor);
    uint32_t at = rank;
    while (board_cursor_read(&cursor, &entry)) {
        assert_true(at < pair->twin.count);
        assert_int_equal(entry.key, pair->twin.entries[at].key);
        assert_true(bytes_equal(entry.member, pair->twin.entries[at].member));
        if (is_forward) {
            board_cursor_next(&cursor);
        } else {
            board_cursor_previous(&cursor);
        }
        at += is_forward ? 1U : UINT32_MAX;
    }
    assert_int_equal(at, is_forward ? (rank < pair->twin.count ? pair->twin.count : rank)
                                    : (rank < pair->twin.count ? UINT32_MAX : rank));
}

/* The same by runs of at most count_max entries. */
static void compare_runs_from(const struct board_pair *pair, uint32_t rank, bool is_best_first,
                              uint32_t count_max) {
    struct board_cursor cursor;
    struct board_run run;
    uint64_t key;
    struct bytes member;
    uint32_t at = rank;
    board_seek(pair->board, rank, &cursor);
    while (board_cursor_run(&cursor, is_best_first, count_max, &run)) {
        assert_true(run.count >= 1);
        assert_true(run.count <= count_max);
        while (board_run_read(&run, &key, &member)) {
            assert_true(at < pair->twin.count);
            assert_int_equal(key, pair->twin.entries[at].key);
            assert_true(bytes_equal(member, pair->twin.entries[at].member));
            at += is_best_first ? 1U : UINT32_MAX;
        }
    }
    assert_int_equal(at, is_best_first ? (rank < pair->twin.count ? pair->twin.count : rank)
                                       : (rank < pair->twin.count ? UINT32_MAX : rank));
}

TEST(runs_walk_to_both_ends_from_every_rank) {
    struct random random = random_begin(__func__);
    struct board_pair pair;
    char text[PAIR_MEMBER_MAX];
    pair_init(&pair, false, random_next(&random));
    for (uint32_t i = 0; i < 300; i++) {
        pair_put(&pair, member_of(i, text), random_below(&random, 40));
    }
    static char long_member[1000];
    memset(long_member, 'l', sizeof long_member);
    for (size_t size = 200; size < sizeof long_member; size += 90) {
        pair_put(&pair, (struct bytes){long_member, size}, random_below(&random, 40));
    }
    for (uint32_t rank = 0; rank <= pair.twin.count + 1; rank++) {
        compare_runs_from(&pair, rank, true, UINT32_MAX);
        compare_runs_from(&pair, rank, false, UINT32_MAX);
        compare_runs_from(&pair, rank, true, 1 + (uint32_t)random_below(&random, 20));
        compare_runs_from(&pair, rank, false, 1 + (uint32_t)random_below(&random, 20));
    }
    pair_deinit(&pair);
}

TEST(cursors_walk_to_both_ends_from_every_rank) {
    struct random random = random_begin(__func__);
    struct board_pair pair;
    char text[PAIR_MEMBER_MAX];
    pair_init(&pair, false, random_next(&random));
    for (uint32_t i = 0; i < 300; i++) {
        pair_put(&pair, member_of(i, text), random_below(&random, 40));
    }
    for (uint32_t rank = 0; rank <= pair.twin.count + 1; rank++) {
        compare_from(&pair, rank, true);
        compare_from(&pair, rank, false);
    }
    /* Back and forth across a block boundary. */
    struct board_cursor cursor;
    struct board_entry entry;
    board_seek(pair.board, 100, &cursor);
    for (int i = 0; i < 40; i++) {
        board_cursor_next(&cursor);
    }
    for (int i = 0; i < 40; i++) {
        board_cursor_previous(&cursor);
    }
    assert_true(board_cursor_read(&cursor, &entry));
    assert_true(bytes_equal(entry.member, pair.twin.entries[100].member));
    pair_deinit(&pair);
}

TEST(ranges_of_any_size_are_removed) {
    struct random random = random_begin(__func__);
    char text[PAIR_MEMBER_MAX];
    for (int round = 0; round < 150; round++) {
        struct board_pair pair;
        pair_init(&pair, false, random_next(&random));
        uint32_t members = (uint32_t)random_below(&random, 500) + 1;
        for (uint32_t i = 0; i < members; i++) {
            pair_put(&pair, member_of(i, text), random_below(&random, 100));
        }
        while (pair.twin.count > 0) {
            uint32_t rank = (uint32_t)random_below(&random, pair.twin.count);
            uint64_t count = random_below(&random, pair.twin.count - rank + 1U);
            pair_remove_range(&pair, rank, (uint32_t)count);
            pair_compare(&pair);
            if (random_below(&random, 10) == 0) {
                pair_remove_range(&pair, 0, pair.twin.count);
            }
        }
        pair_compare(&pair);
        pair_deinit(&pair);
    }
}
