/* A copy made in steps while anything changes: when it is whole, it is the original. */
#include "skiplist/keyspace/registry.h"
#include "skiplist/keyspace/registry_mirror.h"
#include "skiplist/large_board.h"
#include "tests/support/keyspace.h"
#include "tests/support/registry_workload.h"

static void assert_same_hashes(const struct hash *a, const struct hash *b) {
    struct hash_cursor at_a = hash_begin(a);
    struct hash_cursor at_b = hash_begin(b);
    struct hash_pair pair_a, pair_b;
    assert_int_equal(hash_count(a), hash_count(b));
    assert_string_equal(hash_encoding(a), hash_encoding(b));
    while (hash_next(&at_a, &pair_a)) {
        assert_true(hash_next(&at_b, &pair_b));
        assert_true(bytes_equal(pair_a.field, pair_b.field));
        assert_true(bytes_equal(pair_a.value, pair_b.value));
    }
}

/* In any order. */
static void assert_same_notes(const struct registry_key *a, const struct registry_key *b) {
    struct registry_note_room room;
    struct hash_pair pair;
    struct bytes note;
    assert_int_equal(registry_note_count(a), registry_note_count(b));
    for (uint32_t i = 0; i < registry_note_count(a); i++) {
        registry_note_at(a, i, &pair, &room);
        assert_true(registry_note_find(b, pair.field, &note));
        assert_true(bytes_equal(note, pair.value));
    }
}

/* Copy at once and by the mirror, and compare. */
static void check_whole(struct workload *workload, struct registry_mirror *mirror) {
    struct registry *registry = workload->registry;
    struct bytes names[] = {BYTES("mirror at once"), BYTES("mirror in steps")};
    struct registry_key *copies[2];
    int64_t expire_at_ms = registry_expiry(registry, mirror->key);
    const struct board_options *options =
        mirror->key->kind == REGISTRY_BOARD ? registry_options(mirror->key) : NULL;
    assert_int_equal(registry_copy(registry, mirror->key, 0, names[0], workload->now_ms),
                     REGISTRY_OK);
    assert_int_equal(registry_mirror_copy_to(mirror, 0, names[1], workload->now_ms), REGISTRY_OK);
    ASSERT_VALID(registry_validate, registry);
    for (int i = 0; i < 2; i++) {
        copies[i] = registry_find(registry, 0, names[i], INT64_MIN);
        assert_non_null(copies[i]);
        assert_true(registry_expiry(registry, copies[i]) == expire_at_ms);
    }
    if (options != NULL) {
        bool is_archive = options->is_archive; /* of which a copy is none */
        assert_ptr_equal(registry_options(copies[1]), registry_options(copies[0]));
        assert_int_equal(board_options_equal(registry_options(copies[1]), options), !is_archive);
        assert_same_boards(&copies[0]->board, &copies[1]->board);
        assert_same_notes(copies[0], copies[1]);
    } else {
        assert_same_hashes(registry_hash(copies[0]), registry_hash(copies[1]));
    }
    registry_remove(registry, copies[0]);
    registry_remove(registry, copies[1]);
}

/* One of so many names gets a note, or loses it. */
static void change_note(struct workload *workload, struct registry_key *key, uint32_t names,
                        uint64_t removed_one_in) {
    static const char text[] = "a note of some bytes, as long as any";
    struct bytes name =
        bytes_from_text(formatted("p%u", (unsigned)random_below(&workload->random, names)));
    size_t size = 1 + random_below(&workload->random, sizeof text - 1);
    if (random_below(&workload->random, removed_one_in) == 0) {
        (void)registry_note_remove(workload->registry, key, name);
    } else {
        assert_true(registry_note_put(workload->registry, key, name, (struct bytes){text, size}));
    }
}

static struct registry_key *pick(struct workload *workload) {
    return registry_walk_random(workload->registry, (uint32_t)random_below(&workload->random, 2),
                                random_next(&workload->random), workload->now_ms);
}

TEST(a_copy_made_between_changes_is_the_original_when_it_is_whole) {
    const uint32_t rounds = test_rounds(30000, 2000);
    ENDED_BY(workload_end) struct workload workload;
    uint32_t whole_count = 0, whole_hashes = 0, lost_count = 0;
    workload_begin(&workload, __func__, 300);
    workload.database_count = 2;
    for (uint32_t round = 0; round < rounds; round++) {
        struct registry_mirror mirror;
        workload_step(&workload);
        struct registry_key *key = pick(&workload);
        if (key == NULL) {
            continue;
        }
        workload.favourite_database = key->database;
        workload.favourite_size = key->name_size < WORKLOAD_NAME_MAX ? key->name_size : 0;
        memcpy(workload.favourite, key->name_at, workload.favourite_size);
        bool is_hash = key->kind == REGISTRY_HASH;
        assert_true(registry_mirror_begin(&mirror, workload.registry, key));
        enum registry_mirror_status status = REGISTRY_MIRROR_MORE;
        uint32_t part = 1 + (uint32_t)random_below(&workload.random, 40);
        while ((status = registry_mirror_step(&mirror, part)) == REGISTRY_MIRROR_MORE) {
            workload_step(&workload);
        }
        if (status == REGISTRY_MIRROR_WHOLE) {
            check_whole(&workload, &mirror);
            whole_count++;
            whole_hashes += is_hash;
        } else {
            assert_int_equal(status, REGISTRY_MIRROR_LOST);
            lost_count++;
        }
        registry_mirror_end(&mirror);
        workload.favourite_size = 0;
    }
    print_message("whole %u, of hashes %u, lost %u\n", whole_count, whole_hashes, lost_count);
    assert_true(whole_count > rounds / 10 && whole_hashes > 10 && lost_count > 10);
}

/* Notes are followed wherever they are removed: nothing is lost by that. */
TEST(a_copy_follows_notes_that_come_change_and_go) {
    ENDED_BY(workload_end) struct workload workload;
    workload_begin(&workload, __func__, 300);
    for (uint32_t round = test_rounds(2000, 100); round > 0; round--) {
        struct registry_mirror mirror;
        bool is_new;
        struct registry_key *key =
            registry_find_or_create_like(workload.registry, 0, BYTES("ladder"),
                                         workload_options('r'), NULL, workload.now_ms, &is_new);
        assert_non_null(key);
        uint32_t names = 1 + (uint32_t)random_below(&workload.random, 2000);
        for (uint32_t left = names; left > 0; left--) {
            change_note(&workload, key, names, 10);
        }
        assert_true(registry_mirror_begin(&mirror, workload.registry, key));
        enum registry_mirror_status status;
        while ((status = registry_mirror_step(&mirror, 20)) == REGISTRY_MIRROR_MORE) {
            for (uint64_t left = random_below(&workload.random, 10); left > 0; left--) {
                change_note(&workload, key, names, 2);
            }
        }
        assert_int_equal(status, REGISTRY_MIRROR_WHOLE);
        assert_same_notes(key, mirror.copy);
        check_whole(&workload, &mirror);
        registry_mirror_end(&mirror);
        if (random_below(&workload.random, 2) == 0) {
            registry_remove(workload.registry, key);
        }
        (void)registry_free_step(workload.registry, 10000);
    }
}

TEST(a_copy_of_the_members_alone_has_no_notes) {
    struct workload workload;
    struct registry_mirror mirror;
    enum registry_mirror_status status;
    bool is_new;
    workload_begin(&workload, __func__, 300);
    struct registry_key *key =
        registry_find_or_create_like(workload.registry, 0, BYTES("ladder"), workload_options('r'),
                                     NULL, workload.now_ms, &is_new);
    assert_non_null(key);
    assert_true(key_fill(workload.registry, key, 1, 500));
    for (int i = 0; i < 1000; i++) {
        change_note(&workload, key, 1000, 10);
    }
    assert_true(registry_mirror_begin_members(&mirror, workload.registry, key));
    while ((status = registry_mirror_step(&mirror, 20)) == REGISTRY_MIRROR_MORE) {
        change_note(&workload, key, 1000, 2);
    }
    change_note(&workload, key, 1000, 2);
    assert_int_equal(registry_mirror_step(&mirror, 0), REGISTRY_MIRROR_WHOLE);
    assert_same_boards(&key->board, &mirror.copy->board);
    assert_int_equal(registry_note_count(mirror.copy), 0);
    registry_mirror_end(&mirror);
    workload_end(&workload);
}

/* Begin a workload, and change until there is a board of some size. */
static struct registry_key *begin_with_board(struct workload *workload, const char *test_name) {
    struct registry_key *key = NULL;
    workload_begin(workload, test_name, 300);
    while (key == NULL || key->kind != REGISTRY_BOARD || board_count(&key->board) < 50) {
        workload_step(workload);
        key = pick(workload);
    }
    return key;
}

/* As many leaves as what is loaded has. */
TEST(the_leaves_of_a_copy_have_room_for_members_that_come) {
    enum { MEMBERS = 3000 };
    struct registry_mirror mirror;
    struct registry *registry = create_usual_registry();
    struct registry_key *key = key_create(registry, 0, "w", MEMBERS, 0);
    uint32_t leaves = 0;
    assert_true(registry_mirror_begin(&mirror, registry, key));
    while (registry_mirror_step(&mirror, REGISTRY_MIRROR_STEP) == REGISTRY_MIRROR_MORE) {}
    assert_same_boards(&mirror.copy->board, &key->board);
    const struct skiplist *list = &mirror.copy->board.large->list;
    for (uint32_t id = list->first; id != SKIPLIST_NONE; leaves++) {
        const struct block *leaf = skiplist_node(list, id)->block;
        id = leaf->links.next;
    }
    assert_true(leaves >= 2 * MEMBERS / (BLOCK_LOADED_MIN + BLOCK_LOADED_MAX));
    registry_mirror_end(&mirror);
    registry_destroy(registry);
}

/* With its PERIOD the board moves to another key. */
TEST(a_board_that_gets_a_window_meanwhile_is_lost) {
    struct registry_mirror mirror;
    struct registry *registry = create_usual_registry();
    struct registry_key *key = key_create(registry, 0, "w", 50, 0);
    struct board_options options;
    board_options_copy(registry_options(key), &options);
    options.is_created = true;
    assert_true(registry_mirror_begin(&mirror, registry, key));
    assert_int_equal(registry_mirror_step(&mirror, 20), REGISTRY_MIRROR_MORE);
    registry_board_cut(registry, key, 0, 50);
    options.period = (struct period){.unit = PERIOD_HOUR, .every = 1};
    options.archives_max = 2;
    options.window.count = 2;
    options.guards = BOARD_WINDOW;
    board_options_enter_period(&options, 0);
    assert_non_null(registry_board_alter(registry, key, &options, NULL));
    assert_int_equal(registry_mirror_step(&mirror, 20), REGISTRY_MIRROR_LOST);
    registry_mirror_end(&mirror);
    registry_destroy(registry);
}

static void tag_one(struct workload *workload, struct registry_key *key, const char *member,
                    const char *value) {
    struct tag_values values = {.mask = 1, .at = {bytes_from_text(value)}};
    struct board_member found;
    unsigned full;
    board_look_up(&key->board, bytes_from_text(member), NULL, &found);
    assert_true(found.is_there);
    assert_int_equal(registry_board_tag(workload->registry, key, &found, &values, &full), TAGS_OK);
}

/* A CAP cuts members, who hold the values of a tag until they are freed: in the copy, too. */
TEST(a_full_tag_whose_members_are_cut_does_not_end_a_copy) {
    enum { MEMBERS = 20000 };
    struct workload workload;
    struct registry_mirror mirror;
    char name[16];
    bool is_new;
    workload_begin(&workload, __func__, 0);
    /* Its tag class has one bit: a single value. */
    struct registry_key *key = registry_find_or_create_like(
        workload.registry, 0, BYTES("c"), workload_options('c'), NULL, workload.now_ms, &is_new);
    assert_non_null(key);
    for (int i = 0; i < MEMBERS; i++) {
        struct board_member member;
        snprintf(name, sizeof name, "m%d", i);
        board_look_up(&key->board, bytes_from_text(name), NULL, &member);
        assert_int_equal(
            registry_board_put(workload.registry, key, &member, (uint64_t)(MEMBERS - i)), BOARD_OK);
        if (i > 100) {
            tag_one(&workload, key, name, "old");
        }
    }
    assert_true(registry_mirror_begin(&mirror, workload.registry, key));
    assert_int_equal(registry_mirror_step(&mirror, MEMBERS - 1), REGISTRY_MIRROR_MORE);
    registry_board_cut(workload.registry, key, 101, MEMBERS - 101);
    tag_one(&workload, key, "m7", "new");
    assert_int_equal(registry_mirror_step(&mirror, 1), REGISTRY_MIRROR_WHOLE);
    assert_same_boards(&mirror.copy->board, &key->board);
    registry_mirror_end(&mirror);
    workload_end(&workload);
}

/* The original is large until nothing is left of it, whatever its copy is; with names and fields of any size. */
TEST(a_large_hash_of_which_one_field_is_left_is_copied_as_that) {
    struct registry *registry = create_usual_registry();
    char text[2][32];
    for (unsigned round = 0; round < 3 * 16; round++) {
        unsigned size = 8 + round / 16;
        struct registry_mirror mirror;
        struct bytes name = BYTES("copied in steps--------");
        const struct bytes big = BYTES("big");
        uint32_t added_count;
        bool is_new;
        struct registry_key *key = registry_hash_find_or_create(registry, 0, big, 0, &is_new);
        for (unsigned i = 0; i < 600; i++) {
            int width = i == 0 ? (int)size : 6;
            snprintf(text[0], sizeof text[0], "%0*u", width, i);
            snprintf(text[1], sizeof text[1], "%0*u", width, i);
            struct bytes args[] = {bytes_from_text(text[0]), bytes_from_text(text[1])};
            assert_int_equal(registry_hash_put(registry, &key, args, 1, &added_count), HASH_OK);
        }
        assert_true(registry_mirror_begin(&mirror, registry, key));
        for (unsigned i = 1; i < 600; i++) {
            snprintf(text[0], sizeof text[0], "%06u", i);
            assert_true(registry_hash_remove(registry, key, bytes_from_text(text[0])));
        }
        registry_tell_members(registry, key);
        while (registry_mirror_step(&mirror, 100) == REGISTRY_MIRROR_MORE) {}
        name.size = 1 + round % 16;
        assert_int_equal(registry_mirror_copy_to(&mirror, 0, name, 0), REGISTRY_OK);
        registry_mirror_end(&mirror);
        struct registry_key *copy = registry_find(registry, 0, name, 0);
        assert_int_equal(hash_count(registry_hash(copy)), 1);
        registry_remove(registry, copy);
        registry_remove(registry, key);
        ASSERT_VALID(registry_validate, registry);
    }
    registry_destroy(registry);
}

TEST(what_is_left_of_an_unfinished_copy_is_freed_in_steps) {
    ENDED_BY(workload_end) struct workload workload;
    struct registry_mirror mirror;
    struct registry_key *key = begin_with_board(&workload, __func__);
    uint64_t live = 0;
    /* The table of keys may grow with the first one, and be two for a while. */
    for (int i = 0; i < 5; i++) {
        while (registry_free_step(workload.registry, 1000)) {}
        live = i < 2 ? memory_live_count() : live;
        assert_true(registry_mirror_begin(&mirror, workload.registry, key));
        assert_int_equal(registry_mirror_step(&mirror, 20), REGISTRY_MIRROR_MORE);
        assert_true(i < 2 || memory_live_count() >= live);
        registry_mirror_end(&mirror);
        registry_mirror_end(&mirror);
    }
    while (registry_free_step(workload.registry, 1000)) {}
    assert_true(memory_live_count() <= live);
}

TEST(a_copy_without_memory_is_given_up_and_nothing_changes) {
    ENDED_BY(workload_end) struct workload workload;
    struct registry_key *key = begin_with_board(&workload, __func__);
    uint64_t digest = workload_digest(workload.registry);
    bool is_done = false;
    uint64_t nth = 0;
    while (!is_done) {
        struct registry_mirror mirror;
        enum registry_mirror_status status = REGISTRY_MIRROR_OUT_OF_MEMORY;
        memory_fail_at(++nth);
        if (registry_mirror_begin(&mirror, workload.registry, key)) {
            while ((status = registry_mirror_step(&mirror, 7)) == REGISTRY_MIRROR_MORE) {}
        }
        memory_fail_at(0);
        is_done = status == REGISTRY_MIRROR_WHOLE;
        assert_true(is_done || status == REGISTRY_MIRROR_OUT_OF_MEMORY);
        registry_mirror_end(&mirror);
        ASSERT_VALID(registry_validate, workload.registry);
        assert_true(workload_digest(workload.registry) == digest);
    }
    assert_true(nth > 2);
}
