/* The board against its naive twin: the same commands to both, compared after every step. */
#include "skiplist/block.h"
#include "skiplist/lookup.h"
#include "tests/support/board_pair.h"

/* One random run; its name says what it proves. */
struct run {
    const char *name;
    uint32_t members; /* universe */
    uint32_t keys;
    uint32_t steps;
    uint32_t validate_every;
    bool is_latest;
    bool has_lookups;
    /* Now and then most of the board goes at once, and what is left of it in steps. */
    bool has_cuts;
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

static void run_against_twin(const struct run *run) {
    struct random random = random_begin(run->name);
    uint64_t live_before = memory_live_count();
    struct board_pair pair;
    pair_init(&pair, run->is_latest, random_next(&random));
    struct lookup lookup;
    lookup_begin(&lookup, pair.board, BYTES("nobody"), false);
    const uint32_t steps = test_rounds(run->steps, run->steps);
    for (uint32_t i = 0; i < steps; i++) {
        char text[PAIR_MEMBER_MAX];
        random_step(&pair, run, &random, i / (steps / 6 + 1) % 2 == 0);
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

TEST(a_board_agrees_with_its_twin) {
    static const struct run runs[] = {
        {"few members and keys", 40, 5, 6000, 1, .member_of = member_of},
        {"some members and keys", 400, 60, 6000, 1, .member_of = member_of},
        {"the latest stands before its equals", 400, 20, 6000, 1, true, .member_of = member_of},
        {"many members", 5000, 100000, 20000, 100, .member_of = user_of},
        {"prefetches at any moment", 300, 30, 4000, 1, false, true, .member_of = member_of},
        {"stale places", 900, 30, 4000, 4, false, true, .member_of = member_of},
        {"stale places, latest", 900, 5000, 4000, 4, true, true, .member_of = member_of},
        {"places that were cut off", 1500, 30, 4000, 4, false, true, true, member_of},
        {"places that were cut off, latest", 1500, 30, 4000, 4, true, true, true, member_of},
    };
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        run_against_twin(&runs[i]);
    }
}

PAIR_TEST(an_empty_board_answers) {
    struct board_cursor cursor;
    struct board_stored entry;
    assert_int_equal(board_count(pair->board), 0);
    assert_ptr_equal(board_layout(pair->board), &pair->layout);
    assert_false(remove_named(pair->board, BYTES("nobody")));
    pair_compare_member(pair, BYTES("nobody"));
    pair_compare_key(pair, 0);
    pair_compare_key(pair, UINT64_MAX);
    board_cursor_seek(pair->board, 0, &cursor);
    assert_false(board_cursor_read(&cursor, &entry));
    board_cursor_next(&cursor);
    board_cursor_previous(&cursor);
    assert_false(board_cursor_read(&cursor, &entry));
    pair_remove_range(pair, 0, 0);
    pair_compare(pair);
}

/* Members of every size that is treated differently, among others, moved and removed. */
PAIR_TEST(members_of_all_sizes_are_kept) {
    static const uint32_t sizes[] = {1,   2,   15,  16,  17,  40,   64,    65,    126,
                                     127, 128, 129, 255, 256, 4095, 65534, 65535, 65536};
    assert_int_equal(sizes[COUNT_OF(sizes) - 1], BOARD_MEMBER_MAX);
    OWNED char *text = malloc(BOARD_MEMBER_MAX);
    assert_non_null(text);
    for (int i = 0; i < 1500; i++) {
        /* Members of each size and kind that differ only in the last byte. */
        size_t size = sizes[random_below(random, COUNT_OF(sizes))];
        memset(text, "m0c"[random_below(random, 3)], size);
        text[size - 1] = "ab01"[random_below(random, 4)];
        struct bytes member = {.at = text, .size = size};
        if (random_below(random, 3) == 0) {
            pair_remove(pair, member);
        } else {
            pair_put(pair, member, random_below(random, 10));
        }
        pair_compare(pair);
        pair_compare_member(pair, member);
    }
}

PAIR_TEST(a_member_may_be_given_as_it_lies_on_the_board) {
    pair_fill(pair, random, 300, 50);
    for (int i = 0; i < 2000; i++) {
        uint32_t rank = (uint32_t)random_below(random, pair->twin.count);
        uint64_t key = random_below(random, 50);
        struct bytes member = stored_text(board_at(pair->board, rank).member);
        /* First on the board: there the borrowed bytes are about to move. */
        struct bytes twin_member = pair->twin.entries[rank].member;
        assert_int_equal(board_put(pair->board, member, key), BOARD_OK);
        twin_board_put(&pair->twin, twin_member, key);
        pair_compare(pair);
    }
    for (int i = 0; i < 200; i++) {
        uint32_t rank = (uint32_t)random_below(random, pair->twin.count);
        assert_true(remove_named(pair->board, stored_text(board_at(pair->board, rank).member)));
        twin_board_remove_range(&pair->twin, rank, 1);
        pair_compare(pair);
    }
}

/* The rank behind the last one that a walk from rank visits. */
static uint32_t end_of_walk(const struct board_pair *pair, uint32_t rank, bool is_forward) {
    return rank >= pair->twin.count ? rank : is_forward ? pair->twin.count : UINT32_MAX;
}

static void compare_entry(const struct board_pair *pair, uint32_t rank, uint64_t key,
                          struct name member) {
    assert_true(rank < pair->twin.count);
    assert_int_equal(key, pair->twin.entries[rank].key);
    assert_true(bytes_equal(stored_text(member), pair->twin.entries[rank].member));
}

static void compare_from(const struct board_pair *pair, uint32_t rank, bool is_forward) {
    struct board_cursor cursor;
    struct board_stored entry;
    uint32_t at = rank;
    board_cursor_seek(pair->board, rank, &cursor);
    for (; board_cursor_read(&cursor, &entry); at += is_forward ? 1U : UINT32_MAX) {
        compare_entry(pair, at, entry.key, entry.member);
        (is_forward ? board_cursor_next : board_cursor_previous)(&cursor);
    }
    assert_int_equal(at, end_of_walk(pair, rank, is_forward));
}

/* The same by runs of at most count_max entries. */
static void compare_runs_from(const struct board_pair *pair, uint32_t rank, bool is_forward,
                              uint32_t count_max) {
    struct board_cursor cursor;
    struct block_run run;
    uint64_t key;
    struct name member;
    uint32_t at = rank;
    board_cursor_seek(pair->board, rank, &cursor);
    while (board_cursor_run(&cursor, is_forward, count_max, &run)) {
        assert_in_range(run.count, 1, count_max);
        for (; block_run_read(&run, &key, &member); at += is_forward ? 1U : UINT32_MAX) {
            compare_entry(pair, at, key, member);
        }
    }
    assert_int_equal(at, end_of_walk(pair, rank, is_forward));
}

PAIR_TEST(cursors_and_runs_walk_to_both_ends_from_every_rank) {
    pair_fill(pair, random, 300, 40);
    static char long_member[1000];
    memset(long_member, 'l', sizeof long_member);
    for (size_t size = 200; size < sizeof long_member; size += 90) {
        pair_put(pair, (struct bytes){long_member, size}, random_below(random, 40));
    }
    for (uint32_t rank = 0; rank <= pair->twin.count + 1; rank++) {
        for (int is_forward = 0; is_forward < 2; is_forward++) {
            compare_from(pair, rank, is_forward);
            compare_runs_from(pair, rank, is_forward, UINT32_MAX);
            compare_runs_from(pair, rank, is_forward, 1 + (uint32_t)random_below(random, 20));
        }
    }
    /* Back and forth across a block boundary. */
    struct board_cursor cursor;
    struct board_stored entry;
    board_cursor_seek(pair->board, 100, &cursor);
    for (int i = 0; i < 80; i++) {
        (i < 40 ? board_cursor_next : board_cursor_previous)(&cursor);
    }
    assert_true(board_cursor_read(&cursor, &entry));
    compare_entry(pair, 100, entry.key, entry.member);
}

PAIR_TEST(a_cursor_begins_at_a_key_and_skips_entries) {
    for (uint32_t count = 0; count <= 300; count = 3 * count + 1) {
        pair_fill(pair, random, count, 40);
        for (uint64_t key = 0; key <= 41; key++) {
            uint32_t rank = board_count_above(pair->board, key);
            struct board_cursor cursor;
            struct board_stored entry;
            board_cursor_seek_key(pair->board, key, &cursor);
            while (board_cursor_read(&cursor, &entry)) {
                uint32_t step = (uint32_t)random_below(random, 100);
                compare_entry(pair, rank, entry.key, entry.member);
                board_cursor_skip(&cursor, step);
                rank += step;
            }
            assert_true(rank >= pair->twin.count);
            board_cursor_skip(&cursor, 1);
            assert_false(board_cursor_read(&cursor, &entry));
        }
    }
}

PAIR_TEST(ranges_of_any_size_are_removed) {
    for (int round = 0; round < 150; round++) {
        pair_fill(pair, random, (uint32_t)random_below(random, 500) + 1, 100);
        while (pair->twin.count > 0) {
            uint32_t rank = (uint32_t)random_below(random, pair->twin.count);
            uint64_t count = random_below(random, pair->twin.count - rank + 1U);
            pair_remove_range(pair, rank, (uint32_t)count);
            pair_compare(pair);
            if (random_below(random, 10) == 0) {
                pair_remove_range(pair, 0, pair->twin.count);
            }
        }
        pair_compare(pair);
    }
}
