/* A walk over all keys while they change, sentence by sentence. That its entries and the effects on keys
 * it has passed make the same registry is what tests/server/durability/test_snapshot.c is about. */
#include "skiplist/keyspace/registry_walk.h"

#include <stdlib.h>

#include "skiplist/keyspace/registry.h"
#include "tests/support/keyspace.h"
#include "tests/support/random.h"
#include "tests/support/registry_workload.h"
#include "tests/support/stored_text.h"

static struct registry *create_registry(void) {
    return workload_create_registry(1);
}

#define REGISTRY_TEST(name) REGISTRY_TEST_OF(name, create_registry)

static struct registry_key *write_key(struct registry *registry, const char *name, uint32_t count) {
    return key_create(registry, 0, name, count, 0);
}

REGISTRY_TEST(every_board_is_walked_once_from_its_best_member) {
    struct registry_walk_piece piece;
    struct board_stored entries[3];
    struct registry_key *key = write_key(registry, "p", 7);
    registry_walk_begin(registry);
    assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_AHEAD);
    for (uint32_t rank = 0; rank < 7; rank += 3) {
        assert_true(registry_walk_next(registry, entries, 3, &piece));
        assert_ptr_equal(piece.key, key);
        assert_int_equal(piece.is_first, rank == 0);
        assert_int_equal(piece.is_last, rank == 6);
        assert_int_equal(piece.count, rank == 6 ? 1 : 3);
        assert_int_equal(entries[0].key, 7 - rank);
    }
    assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_DONE);
    assert_false(registry_walk_next(registry, entries, 3, &piece));
    registry_walk_end(registry);
    assert_false(registry_walk_next(registry, entries, 3, &piece));
}

REGISTRY_TEST(an_empty_board_is_one_piece_without_entries) {
    struct registry_walk_piece piece;
    struct board_stored entry;
    write_key(registry, "p", 0);
    registry_walk_begin(registry);
    assert_true(registry_walk_next(registry, &entry, 1, &piece));
    assert_true(piece.is_first);
    assert_true(piece.is_last);
    assert_int_equal(piece.count, 0);
    assert_false(registry_walk_next(registry, &entry, 1, &piece));
    registry_walk_end(registry);
}

REGISTRY_TEST(what_comes_to_be_during_a_walk_is_done) {
    struct registry_walk_piece piece;
    struct board_stored entry;
    write_key(registry, "p", 2);
    registry_walk_begin(registry);
    const struct registry_key *key = write_key(registry, "q", 2);
    assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_DONE);
    for (int i = 0; i < 2; i++) {
        assert_true(registry_walk_next(registry, &entry, 1, &piece));
        assert_true(bytes_equal(registry_name(piece.key), BYTES("p")));
    }
    assert_false(registry_walk_next(registry, &entry, 1, &piece));
    registry_walk_end(registry);
}

/* Roll over after some pieces of the walk. The archive, if any, has the walk state of the board. */
static void begin_anew(const char *name, uint32_t pieces, bool has_archive) {
    struct registry *registry = workload_create_registry(1);
    struct registry_walk_piece piece;
    struct board_stored entry;
    struct board_options options = *workload_options(name[0]);
    options.is_created = true;
    const struct registry_key *key = key_create_like(registry, name, &options, 3, 0);
    registry_walk_begin(registry);
    for (uint32_t i = 0; i < pieces; i++) {
        assert_true(registry_walk_next(registry, &entry, 1, &piece));
    }
    assert_int_equal(registry_roll_due(registry, INT64_C(40) * 86400000, 1), 1);
    assert_int_equal(board_count(&key->board), 0);
    assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_DONE);
    for (uint32_t i = pieces; i < (has_archive ? 3 : pieces); i++) {
        assert_true(registry_walk_next(registry, &entry, 1, &piece));
        assert_ptr_not_equal(piece.key, key);
        assert_int_equal(piece.is_first, i == 0);
    }
    assert_false(registry_walk_next(registry, &entry, 1, &piece));
    registry_walk_end(registry);
    registry_destroy(registry);
}

TEST(a_board_that_begins_anew_is_done_whatever_it_was) {
    for (uint32_t pieces = 0; pieces <= 3; pieces++) {
        begin_anew("m", pieces, false);
        begin_anew("d", pieces, true);
    }
}

REGISTRY_TEST(the_walk_goes_on_in_a_board_that_is_renamed) {
    struct registry_walk_piece piece;
    struct board_stored entry;
    struct registry_key *key = write_key(registry, "p", 2);
    registry_walk_begin(registry);
    assert_true(registry_walk_next(registry, &entry, 1, &piece));
    assert_int_equal(registry_rename(registry, key, 5, BYTES("q"), 0), REGISTRY_OK);
    key = registry_find(registry, 5, BYTES("q"), 0);
    assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_OPEN);
    assert_true(registry_walk_next(registry, &entry, 1, &piece));
    assert_ptr_equal(piece.key, key);
    assert_false(piece.is_first);
    assert_true(piece.is_last);
    assert_true(bytes_equal(stored_text(entry.member), BYTES("m1")));
    registry_walk_end(registry);
}

/* A walk has passed m0, m1 and m2 of m0 to m6, whose keys are 7 to 1, when the board changes. */
TEST(what_comes_next_is_behind_what_was_passed_whatever_changes_in_the_board) {
    static char long_name[1000];
    static const struct {
        const char *sentence, *board, *member;
        uint64_t key; /* 0: the member is taken */
        uint32_t rank, count;
        bool has_no_memory;
        const char *next;
    } rows[] = {
        {"taken before it", "p", "m1", .next = "m3"},
        {"its last is taken", "p", "m2", .next = "m3"},
        {"taken behind it", "p", "m3", .next = "m4"},
        {"cut before it", "p", .rank = 0, .count = 2, .next = "m3"},
        {"cut across it", "p", .rank = 1, .count = 4, .next = "m5"},
        {"cut behind it", "p", .rank = 3, .count = 1, .next = "m4"},
        {"put before it", "p", "x", .key = 6, .next = "m3"},
        {"put behind it", "p", "x", .key = 4, .next = "m3"},
        {"put behind its equal", "p", "x", .key = 5, .next = "x"},
        {"put before its equal", "l", "x", .key = 5, .next = "m3"},
        {"moved to before it", "p", "m5", .key = 9, .next = "m3"},
        {"moved to behind it", "p", "m0", .key = 4, .next = "m3"},
        {"moved before it", "p", "m2", .key = 9, .next = "m3"},
        {"not put", "p", long_name, .key = 9, .has_no_memory = true, .next = "m3"},
    };
    memset(long_name, 'x', sizeof long_name - 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_row("%s", rows[i].sentence);
        struct registry *registry = create_registry();
        struct registry_walk_piece piece;
        struct board_stored entries[3];
        struct registry_key *key = write_key(registry, rows[i].board, 7);
        registry_walk_begin(registry);
        assert_true(registry_walk_next(registry, entries, 3, &piece));
        if (rows[i].member == NULL) {
            registry_board_cut(registry, key, rows[i].rank, rows[i].count);
        } else if (rows[i].key == 0) {
            struct board_member member;
            board_look_up(&key->board, bytes_from_text(rows[i].member), NULL, &member);
            registry_board_take(registry, key, &member);
        } else {
            memory_fail_at(rows[i].has_no_memory ? 1 : 0);
            assert_int_equal(key_put(registry, key, bytes_from_text(rows[i].member), rows[i].key),
                             !rows[i].has_no_memory);
            memory_fail_at(0);
        }
        assert_true(registry_walk_next(registry, entries, 1, &piece));
        assert_true(bytes_equal(stored_text(entries[0].member), bytes_from_text(rows[i].next)));
        registry_walk_end(registry);
        registry_destroy(registry);
    }
}

REGISTRY_TEST(a_hash_that_loses_what_was_passed_is_walked_to_its_end) {
    enum { FIELDS = 200 };
    static char value[2000];
    struct hash_pair pairs[FIELDS];
    struct registry_walk_piece piece;
    bool is_new, is_seen[FIELDS] = {false};
    uint32_t added;
    struct registry_key *key = registry_hash_find_or_create(registry, 0, BYTES("h"), 0, &is_new);
    for (int i = 0; i < FIELDS; i++) {
        const struct bytes pair[] = {bytes_from_text(formatted("%03d", i)), {value, sizeof value}};
        assert_int_equal(registry_hash_put(registry, &key, pair, 1, &added), HASH_OK);
    }
    registry_walk_begin(registry);
    uint32_t seen_count = 0;
    /* The first piece is bounded by its bytes, the others are by their count. */
    while (registry_walk_next(registry, pairs, seen_count == 0 ? FIELDS : 5, &piece)) {
        int passed[FIELDS];
        for (uint32_t i = 0; i < piece.count; i++) {
            char field[4] = "";
            memcpy(field, pairs[i].field.at, sizeof field - 1);
            passed[i] = (int)strtol(field, NULL, 10);
            assert_false(is_seen[passed[i]]);
            is_seen[passed[i]] = true;
        }
        for (uint32_t i = 0; i < piece.count && !piece.is_last; i++) {
            assert_true(
                registry_hash_remove(registry, key, bytes_from_text(formatted("%03d", passed[i]))));
        }
        seen_count += piece.count;
        assert_true(piece.count < FIELDS);
    }
    assert_int_equal(seen_count, FIELDS);
    registry_walk_end(registry);
}

REGISTRY_TEST(a_copy_is_ahead_unless_the_board_is_done) {
    struct registry_walk_piece piece;
    struct board_stored entry;
    struct registry_key *key = write_key(registry, "p", 2);
    static const char *const names[] = {"a", "b", "c"};
    static const enum registry_walk_state states[] = {REGISTRY_WALK_AHEAD, REGISTRY_WALK_AHEAD,
                                                      REGISTRY_WALK_DONE};
    registry_walk_begin(registry);
    for (int i = 0; i < 3; i++) {
        struct bytes name = bytes_from_text(names[i]);
        assert_int_equal(registry_copy(registry, key, 0, name, 0), REGISTRY_OK);
        assert_int_equal(registry_walk_state(registry, registry_find(registry, 0, name, 0)),
                         states[i]);
        if (i == 0) {
            /* The first copy is now walked to its end; then the board is opened. */
            for (int j = 0; j < 3; j++) {
                assert_true(registry_walk_next(registry, &entry, 1, &piece));
            }
            assert_ptr_equal(piece.key, key);
            assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_OPEN);
        } else if (i == 1) {
            assert_true(registry_walk_next(registry, &entry, 1, &piece));
            assert_true(piece.is_last);
        }
    }
    registry_walk_end(registry);
}

/* What is written down of a walk in one board. */
struct twin {
    const struct registry *walked;
    struct registry *registry;
    struct registry_key *key;
};

static void twin_receive(void *context, const struct effect *effect) {
    struct twin *twin = context;
    struct registry_walk_change change;
    uint32_t applied;
    if (registry_walk_trim(twin->walked, effect, &change)) {
        assert_int_equal(effect_apply(twin->registry, &change.effect, 1, &applied), EFFECT_OK);
    }
}

static void assert_is_beginning(const struct board *twin, const struct board *board) {
    ASSERT_VALID(board_validate, twin);
    for (uint32_t rank = 0; rank < board_count(twin); rank++) {
        struct board_stored a = board_at(twin, rank), b = board_at(board, rank);
        assert_true(bytes_equal(stored_text(a.member), stored_text(b.member)));
        assert_int_equal(a.key, b.key);
    }
}

TEST(what_was_passed_is_written_down_as_the_boards_first_entries_at_all_times) {
    static const char *const boards[] = {"p", "l"};
    struct random random = random_begin(__func__);
    for (int round = 0; round < 200; round++) {
        struct registry *registry = create_registry();
        struct twin twin = {.walked = registry, .registry = create_registry()};
        struct registry_key *key = write_key(registry, boards[round % 2], 40);
        struct effect_listener listener = {.receive = twin_receive, .context = &twin};
        struct registry_walk_piece piece;
        struct board_stored stored[7];
        uint32_t count;
        twin.key = write_key(twin.registry, boards[round % 2], 0);
        effect_listener_add(registry, &listener);
        registry_walk_begin(registry);
        do {
            struct board_entry entries[7];
            char texts[7][NAME_TEXT_ROOM];
            if (!registry_walk_next(registry, stored, 1 + (uint32_t)random_below(&random, 7),
                                    &piece)) {
                break;
            }
            count = piece.count;
            for (uint32_t i = 0; i < count; i++) {
                entries[i] = (struct board_entry){.member = name_text(stored[i].member, texts[i]),
                                                  .key = stored[i].key};
            }
            assert_int_equal(registry_append_loaded(twin.registry, twin.key, entries, count),
                             BOARD_OK);
            for (uint32_t i = (uint32_t)random_below(&random, 6); i > 0 && !piece.is_last; i--) {
                char name[16];
                struct board_member member;
                uint32_t members = board_count(&key->board);
                snprintf(name, sizeof name, "m%u", (unsigned)random_below(&random, 50));
                board_look_up(&key->board, bytes_from_text(name), NULL, &member);
                if (random_below(&random, 10) == 0 && members > 1) {
                    uint32_t rank = (uint32_t)random_below(&random, members - 1);
                    registry_board_cut(registry, key, rank,
                                       (uint32_t)random_below(&random, members - rank));
                } else if (member.is_there && members > 1 && random_below(&random, 3) == 0) {
                    registry_board_take(registry, key, &member);
                } else {
                    assert_true(key_put(registry, key, member.name, 1 + random_below(&random, 45)));
                }
                assert_is_beginning(&twin.key->board, &key->board);
            }
        } while (!piece.is_last);
        assert_int_equal(board_count(&twin.key->board), board_count(&key->board));
        assert_is_beginning(&twin.key->board, &key->board);
        registry_walk_end(registry);
        effect_listener_remove(registry, &listener);
        registry_destroy(registry);
        registry_destroy(twin.registry);
    }
}

REGISTRY_TEST(a_walk_needs_no_memory) {
    struct registry_walk_piece piece;
    struct board_stored entry;
    struct registry_key *key = write_key(registry, "p", 500);
    write_key(registry, "q", 5);
    uint64_t requests = memory_requests();
    registry_walk_begin(registry);
    for (int i = 0; i < 100; i++) {
        assert_true(registry_walk_next(registry, &entry, 1, &piece));
    }
    registry_remove(registry, key);
    while (registry_walk_next(registry, &entry, 1, &piece)) {}
    registry_walk_end(registry);
    assert_int_equal(memory_requests(), requests);
}
