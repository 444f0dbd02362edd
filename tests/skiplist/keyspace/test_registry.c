/* The databases, sentence by sentence. */
#include "skiplist/map.h"
#include "tests/support/keyspace.h"
#include "tests/support/layout_text.h"
#include "tests/support/random.h"

/* ---- helpers ---- */

static struct board_options other_options;
static uint64_t rules_calls;

/* Names that begin with 'o' get the other options. */
static const struct board_options *options_for(void *context, struct bytes key, uint32_t choice) {
    rules_calls++;
    return key.at[0] == 'o' && choice == 0 ? &other_options
                                           : usual_options_for(context, key, choice);
}

static struct registry *create_registry(void) {
    char error[LAYOUT_ERROR_MAX];
    layout_init_default(&usual_options.layout);
    assert_int_equal(layout_parse(BYTES("FIELD a 30 FIELD b 20"), &other_options.layout, error),
                     LAYOUT_OK);
    struct registry *registry = registry_create(0x5eed, options_for, NULL);
    assert_non_null(registry);
    return registry;
}

#define REGISTRY_TEST(name) REGISTRY_TEST_OF(name, create_registry)

/* ---- creating and removing keys ---- */

REGISTRY_TEST(a_key_is_found_in_its_database_alone) {
    rules_calls = 0;
    struct registry_key *key = key_create(registry, 3, "daily", 0, 0);
    assert_int_equal(rules_calls, 1);
    assert_true(bytes_equal(registry_name(key), BYTES("daily")));
    assert_int_equal(key->database, 3);
    assert_true(registry_expiry(registry, key) == REGISTRY_NO_EXPIRY);
    assert_true(board_options_equal(registry_options(key), &usual_options));
    assert_int_equal(board_count(&key->board), 0);
    assert_ptr_equal(key_find(registry, 3, "daily", 0), key);
    assert_ptr_equal(registry_peek(registry, 3, BYTES("daily"), 0), key);
    assert_null(key_find(registry, 2, "daily", 0));
    assert_null(key_find(registry, 3, "dail", 0));
    assert_null(key_find(registry, 3, "dailyy", 0));
    assert_null(key_find(registry, 3, "", 0));
    assert_true(board_options_equal(registry_options(key_create(registry, 0, "other", 0, 0)),
                                    &other_options));
    bool is_new = true;
    assert_ptr_equal(registry_find_or_create(registry, 3, BYTES("daily"), 0, &is_new), key);
    assert_false(is_new);
    assert_int_equal(rules_calls, 2);
    assert_int_equal(registry_count(registry, 3), 1);
    assert_int_equal(registry_count(registry, 2), 0);
}

REGISTRY_TEST(names_hold_any_byte_and_64_kib) {
    static char name[REGISTRY_KEY_MAX];
    bool is_new;
    struct bytes names[] = {
        {name, 1}, {name, 2}, {name, REGISTRY_KEY_MAX - 1}, {name, REGISTRY_KEY_MAX}};
    for (size_t i = 0; i < 4; i++) {
        struct registry_key *key = registry_find_or_create(registry, 0, names[i], 0, &is_new);
        assert_non_null(key);
        assert_true(is_new);
        assert_true(bytes_equal(registry_name(key), names[i]));
        assert_true(registry_name(key).at != name);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(registry_name(registry_find(registry, 0, names[i], 0)).size,
                         names[i].size);
    }
}

REGISTRY_TEST(other_keys_stay_where_they_are_when_one_goes) {
    struct registry_key *keys[200];
    for (int i = 0; i < 200; i++) {
        keys[i] = key_create(registry, 0, formatted("key:%d", i), 0, 0);
    }
    for (int i = 0; i < 200; i += 2) {
        registry_remove(registry, keys[i]);
    }
    for (int i = 1; i < 200; i += 2) {
        assert_ptr_equal(key_find(registry, 0, formatted("key:%d", i), 0), keys[i]);
        assert_true(bytes_is(registry_name(keys[i]), formatted("key:%d", i)));
    }
}

/* ---- deferred freeing ---- */

REGISTRY_TEST(removing_takes_no_memory_and_frees_no_board) {
    struct registry_key *key = key_create(registry, 0, "big", 0, 0);
    assert_true(key_fill(registry, key, 1, 5000));
    key_create(registry, 0, "other", 0, 0);
    uint64_t live_before = memory_live_count();
    memory_fail_at(1);
    registry_remove(registry, key);
    memory_fail_at(0);
    assert_null(key_find(registry, 0, "big", 0));
    assert_true(memory_live_count() + 5 > live_before);
    assert_int_equal(registry_totals(registry)->unfreed, 1);
}

REGISTRY_TEST(removed_boards_are_freed_in_bounded_steps) {
    struct registry_key *key = key_create(registry, 0, "big", 0, 0);
    assert_true(key_fill(registry, key, 1, 20000));
    registry_remove(registry, key);
    int steps = 0;
    bool has_more = true;
    while (has_more) {
        uint64_t live_before = memory_live_count();
        has_more = registry_free_step(registry, 100);
        /* 100 members, at least two to a block; the index and the lists of blocks are few. */
        assert_true(live_before - memory_live_count() <= 120);
        ASSERT_VALID(registry_validate, registry);
        steps++;
    }
    /* The index of a tiny build has as many segments as blocks. */
    assert_in_range(steps, 100, 600);
    assert_int_equal(registry_totals(registry)->unfreed, 0);
    assert_int_equal(registry_totals(registry)->freed, 1);
    assert_false(registry_free_step(registry, 100));
}

REGISTRY_TEST(a_large_board_that_is_discarded_is_freed_in_steps) {
    struct board board;
    assert_true(registry_create_board(registry, BYTES("large"), 0, &board));
    assert_true(board_fill(&board, 1, 5000));
    registry_discard_board(registry, &board);
    assert_int_equal(registry_totals(registry)->unfreed, 1);
    assert_true(registry_free_step(registry, 1000));
    while (registry_free_step(registry, 1000)) {}
    assert_int_equal(registry_totals(registry)->freed, 1);
    assert_int_equal(registry_count(registry, 0), 0);
}

REGISTRY_TEST(flushing_touches_no_key) {
    enum { KEYS = 5000 };
    for (int i = 0; i < KEYS; i++) {
        struct registry_key *key = key_create(registry, 5, formatted("key:%d", i), 0, 0);
        assert_true(key_fill(registry, key, 1, 3));
        key_expire(registry, key, 1000 + i);
    }
    key_create(registry, 6, "stays", 0, 0);
    uint64_t requests_before = memory_requests();
    uint64_t live_before = memory_live_count();
    assert_int_equal(registry_flush(registry, 5), KEYS);
    assert_int_equal(memory_requests(), requests_before);
    assert_int_equal(memory_live_count(), live_before);
    assert_int_equal(registry_count(registry, 5), 0);
    assert_int_equal(registry_expiry_count(registry, 5), 0);
    assert_true(registry_expiry_next_due(registry) == REGISTRY_NO_EXPIRY);
    assert_int_equal(registry_totals(registry)->unfreed, KEYS);
    assert_non_null(key_find(registry, 6, "stays", 0));
    assert_int_equal(registry_flush(registry, 5), 0);

    /* The database is used again while its old contents are being freed. */
    uint64_t freed = 0;
    for (int i = 0; registry_free_step(registry, 50); i++) {
        assert_true(registry_totals(registry)->freed - freed <= 50);
        freed = registry_totals(registry)->freed;
        key_create(registry, 5, formatted("key:%d", i), 0, 0);
    }
    assert_int_equal(registry_totals(registry)->freed, KEYS);
    ASSERT_VALID(registry_validate, registry);
    uint64_t keys = registry_count(registry, 5) + (uint64_t)1;
    assert_int_equal(registry_flush(registry, REGISTRY_DATABASES), keys);
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        assert_int_equal(registry_count(registry, i), 0);
    }
    assert_int_equal(registry_totals(registry)->unfreed, keys);
}

TEST(destroying_leaves_nothing_whatever_is_half_freed) {
    uint64_t live_before = memory_live_count();
    for (uint32_t work = 0; work < 400; work += 7) {
        struct registry *registry = create_registry();
        for (int i = 0; i < 20; i++) {
            struct registry_key *key =
                key_create(registry, (uint32_t)i % 3, formatted("key:%d", i), 0, 0);
            assert_true(key_fill(registry, key, 1, 20));
            key_expire(registry, key, i);
        }
        registry_remove(registry, key_find(registry, 0, "key:3", -1));
        registry_flush(registry, 1);
        registry_flush(registry, 2);
        key_create(registry, 1, "again", 0, 0);
        (void)registry_free_step(registry, work);
        registry_destroy(registry);
        assert_int_equal(memory_live_count(), live_before);
    }
    registry_destroy(NULL);
    memory_fail_at(1);
    assert_null(registry_create(1, options_for, NULL));
    memory_fail_at(0);
}

REGISTRY_TEST(notes_that_are_all_removed_go_with_their_board) {
    enum { PLAYERS = 1000 };
    struct board_options options = usual_options;
    bool is_new;
    options.has_rating = true;
    options.is_created = true;
    rating_rule_init(&options.rating, RATING_ELO);
    struct registry_key *key =
        registry_find_or_create_like(registry, 0, BYTES("ladder"), &options, NULL, 0, &is_new);
    assert_non_null(key);
    for (int i = 0; i < PLAYERS; i++) {
        assert_true(registry_note_put(registry, key, bytes_from_text(formatted("p%d", i)),
                                      BYTES("played")));
    }
    assert_true(hash_is_large(registry_note_hash(key)));
    for (int i = 0; i < PLAYERS; i++) {
        assert_true(registry_note_remove(registry, key, bytes_from_text(formatted("p%d", i))));
    }
    assert_true(registry_board_is_empty(key));
    registry_remove(registry, key);
    registry_free_all(registry);
}

/* Names that have a short form, such forms, bytes that look like them, and others. */
static size_t draw_name(struct random *random, char text[256]) {
    enum { MARKS = 0xf8 };
    unsigned number = (unsigned)(random_next(random) >> random_below(random, 64));
    size_t size = 1 + (size_t)random_below(random, random_below(random, 2) == 0 ? 40 : 200);
    struct registry_note_room room;
    struct bytes field;
    switch (random_below(random, 7)) {
    case 0:
        return (size_t)sprintf(text, "player:%u", number);
    case 4:
        return (size_t)sprintf(text, "nora.lopez+%u@%s", number,
                               number % 2 == 0 ? "gmail.com" : "mail.test");
    case 1:
        return (size_t)sprintf(text, "%u", number);
    case 2:
        return (size_t)sprintf(text, "%08x-12d3-a456-e89b-42661417%04x", number, number & 0xffff);
    case 3:
        field = registry_note_field(
            &usual_options, (struct bytes){text, (size_t)sprintf(text, "user_%u", number)}, &room);
        memcpy(text, field.at, field.size);
        text[random_below(random, field.size)] ^= (char)(random_below(random, 3) == 0);
        return field.size;
    default:
        for (size_t i = 0; i < size; i++) {
            unsigned byte = (unsigned)random_next(random);
            text[i] =
                (char)(i == 0 ? byte | MARKS : byte & (random_below(random, 9) ? 0x77 : 0xff));
        }
        return size;
    }
}

static void assert_turned_and_back(struct bytes name, size_t *field_size) {
    struct registry_note_room room, back;
    struct bytes field = registry_note_field(&usual_options, name, &room);
    assert_true(bytes_equal(registry_note_field(&usual_options, field, &back), name));
    *field_size = field.size;
}

TEST(names_of_one_and_two_bytes_are_their_fields) {
    size_t field_size;
    for (unsigned i = 0; i < 1U << 16; i++) {
        const char text[] = {(char)(i >> 8), (char)i};
        for (size_t size = 1; size <= sizeof text; size++) {
            assert_turned_and_back((struct bytes){text, size}, &field_size);
            assert_int_equal(field_size, size);
        }
    }
}

TEST(a_member_has_one_field_whatever_its_name_looks_like) {
    struct random random = random_begin("fields");
    uint32_t short_count = 0;
    uint32_t swapped_count = 0;
    for (int round = 0; round < 100000; round++) {
        char text[256];
        struct bytes name = {text, draw_name(&random, text)};
        size_t field_size;
        assert_turned_and_back(name, &field_size);
        short_count += field_size < name.size;
        swapped_count += field_size > name.size;
    }
    assert_true(short_count > 0 && swapped_count > 0);
}

TEST(names_of_digits_have_fields_of_half_their_size) {
    struct registry_note_room room;
    assert_int_equal(registry_note_field(&usual_options, BYTES("player:1234567"), &room).size, 6);
    assert_int_equal(registry_note_field(&usual_options, BYTES("1234567"), &room).size, 5);
    assert_int_equal(
        registry_note_field(&usual_options, BYTES("123e4567-e89b-12d3-a456-426614174000"), &room)
            .size,
        17);
    assert_int_equal(registry_note_field(&usual_options, BYTES("ann"), &room).size, 3);
}

/* ---- expiry ---- */

REGISTRY_TEST(a_key_goes_at_its_millisecond) {
    struct registry_key *key = key_create(registry, 0, "a", 0, 0);
    key_expire(registry, key, 1000);
    assert_int_equal(registry_expiry(registry, key), 1000);
    assert_int_equal(registry_expiry_next_due(registry), 1000);
    assert_ptr_equal(key_find(registry, 0, "a", 999), key);
    assert_int_equal(registry_expiry_remove_due(registry, 999, 10), 0);
    assert_null(registry_peek(registry, 0, BYTES("a"), 1000));
    assert_int_equal(registry_count(registry, 0), 1);
    assert_int_equal(registry_totals(registry)->expired, 0);
    assert_null(key_find(registry, 0, "a", 1000));
    assert_int_equal(registry_count(registry, 0), 0);
    assert_int_equal(registry_totals(registry)->expired, 1);
    assert_true(registry_expiry_next_due(registry) == REGISTRY_NO_EXPIRY);
    key = key_create(registry, 0, "a", 0, 1000);
    assert_true(registry_expiry(registry, key) == REGISTRY_NO_EXPIRY);
}

/* A master that becomes a replica holds the times that its replicas were told, whatever clock it follows;
 * and so when it is a master again. */
REGISTRY_TEST(durations_shift_with_the_clock_but_not_while_passive) {
    struct registry_key *timed = key_create(registry, 0, "timed", 0, 0);
    struct registry_key *lasting = key_create(registry, 0, "lasting", 0, 0);
    registry_expiry_set_offset(registry, 100000);
    key_expire(registry, timed, 5000);
    assert_int_equal(registry_expiry_set(registry, lasting, 5000, true), REGISTRY_OK);
    registry_expiry_set_offset(registry, 105000);
    assert_int_equal(registry_expiry(registry, timed), 5000);
    assert_int_equal(registry_expiry(registry, lasting), 10000);
    registry_set_passive(registry, true);
    registry_expiry_set_offset(registry, 7000);
    registry_expiry_set_offset(registry, 9000);
    assert_int_equal(registry_expiry(registry, lasting), 10000);
    registry_set_passive(registry, false);
    registry_expiry_set_offset(registry, 17000);
    assert_int_equal(registry_expiry(registry, lasting), 10000);
    struct registry_key *later = key_create(registry, 1, "later", 0, 0);
    assert_int_equal(registry_expiry_set(registry, later, 6000, true), REGISTRY_OK);
    registry_expiry_set_offset(registry, 16000);
    assert_int_equal(registry_expiry(registry, timed), 5000);
    assert_int_equal(registry_expiry(registry, lasting), 9000);
    assert_int_equal(registry_expiry(registry, later), 5000);
}

REGISTRY_TEST(an_expiry_can_be_changed_and_taken_back) {
    struct registry_key *a = key_create(registry, 0, "a", 0, 0);
    struct registry_key *b = key_create(registry, 0, "b", 0, 0);
    key_expire(registry, a, 1000);
    key_expire(registry, b, 2000);
    key_expire(registry, a, 3000);
    assert_int_equal(registry_expiry_next_due(registry), 2000);
    assert_int_equal(registry_expiry_count(registry, 0), 2);
    key_expire(registry, b, REGISTRY_NO_EXPIRY);
    key_expire(registry, b, REGISTRY_NO_EXPIRY);
    assert_int_equal(registry_expiry_count(registry, 0), 1);
    assert_int_equal(registry_expiry_remove_due(registry, INT64_MAX, 10), 1);
    assert_ptr_equal(key_find(registry, 0, "b", INT64_MAX), b);
    /* Times before 1970 are times, too. */
    key_expire(registry, b, -5);
    assert_non_null(key_find(registry, 0, "b", -6));
    assert_null(key_find(registry, 0, "b", -5));
}

REGISTRY_TEST(keys_expire_in_the_order_of_their_times) {
    struct random random = random_begin(__func__);
    enum { KEYS = 2000, TIMES = 1000 };
    uint32_t due_counts[TIMES] = {0};
    for (int i = 0; i < KEYS; i++) {
        struct registry_key *key = key_create(registry, (uint32_t)i % 5, formatted("k%d", i), 0, 0);
        key_expire(registry, key, (int64_t)random_next(&random) >> 1);
        uint64_t time_ms = random_below(&random, TIMES);
        key_expire(registry, key, (int64_t)time_ms);
        due_counts[time_ms]++;
    }
    ASSERT_VALID(registry_validate, registry);
    for (int64_t time_ms = 0; time_ms < TIMES; time_ms++) {
        for (uint32_t i = 0; i < due_counts[time_ms]; i++) {
            assert_int_equal(registry_expiry_next_due(registry), time_ms);
            assert_int_equal(registry_expiry_remove_due(registry, time_ms - 1, 1), 0);
            assert_int_equal(registry_expiry_remove_due(registry, time_ms, 1), 1);
        }
    }
    assert_int_equal(registry_totals(registry)->expired, KEYS);
}

REGISTRY_TEST(expiring_stops_at_the_number_of_keys_asked_for) {
    for (int i = 0; i < 100; i++) {
        struct registry_key *key = key_create(registry, 0, formatted("key:%d", i), 0, 0);
        key_expire(registry, key, i);
    }
    assert_int_equal(registry_expiry_remove_due(registry, 79, 0), 0);
    assert_int_equal(registry_expiry_remove_due(registry, 79, 50), 50);
    assert_int_equal(registry_expiry_next_due(registry), 50);
    assert_int_equal(registry_expiry_remove_due(registry, 79, 50), 30);
    assert_int_equal(registry_count(registry, 0), 20);
}

REGISTRY_TEST(the_average_is_of_the_milliseconds_left) {
    assert_int_equal(registry_expiry_average_ttl_ms(registry, 0, 0), 0);
    struct registry_key *a = key_create(registry, 0, "a", 0, 0);
    struct registry_key *b = key_create(registry, 0, "b", 0, 0);
    key_create(registry, 0, "c", 0, 0);
    assert_int_equal(registry_expiry_average_ttl_ms(registry, 0, 0), 0);
    key_expire(registry, a, 1000);
    key_expire(registry, b, 4001);
    assert_int_equal(registry_expiry_average_ttl_ms(registry, 0, 0), 2500);
    assert_int_equal(registry_expiry_average_ttl_ms(registry, 0, 2000), 500);
    assert_int_equal(registry_expiry_average_ttl_ms(registry, 0, 9000), 0);
    assert_int_equal(registry_expiry_average_ttl_ms(registry, 1, 0), 0);
    key_expire(registry, a, INT64_MAX);
    key_expire(registry, b, INT64_MAX);
    assert_int_equal(registry_expiry_average_ttl_ms(registry, 0, 1), INT64_MAX - 1);
    assert_int_equal(registry_expiry_average_ttl_ms(registry, 0, -1000), INT64_MAX);
}

/* ---- renaming and copying ---- */

REGISTRY_TEST(a_key_renamed_onto_itself_stays) {
    struct registry_key *key = key_create(registry, 1, "same", 0, 0);
    key_expire(registry, key, 5000);
    assert_true(key_fill(registry, key, 7, 3));
    memory_fail_at(1);
    assert_int_equal(registry_rename(registry, key, 1, registry_name(key), 0), REGISTRY_OK);
    assert_int_equal(registry_copy(registry, key, 1, BYTES("same"), 0), REGISTRY_OK);
    memory_fail_at(0);
    assert_ptr_equal(key_find(registry, 1, "same", 0), key);
    assert_int_equal(registry_expiry(registry, key), 5000);
    assert_int_equal(registry_totals(registry)->unfreed, 0);
    /* The same name elsewhere is another key. */
    assert_int_equal(registry_rename(registry, key, 2, registry_name(key), 0), REGISTRY_OK);
    assert_null(key_find(registry, 1, "same", 0));
    assert_int_equal(board_mark(&key_find(registry, 2, "same", 0)->board), 7);
}

REGISTRY_TEST(a_copy_is_a_board_of_its_own) {
    struct registry_key *key = key_create(registry, 0, "other", 0, 0);
    assert_true(key_fill(registry, key, 7, 100));
    key_expire(registry, key, 900);
    assert_int_equal(registry_copy(registry, key, 4, BYTES("copy"), 0), REGISTRY_OK);
    struct registry_key *copy = key_find(registry, 4, "copy", 0);
    assert_ptr_not_equal(&copy->board, &key->board);
    assert_true(board_options_equal(registry_options(copy), &other_options));
    assert_int_equal(board_count(&copy->board), 100);
    assert_int_equal(registry_expiry(registry, copy), 900);
    registry_remove(registry, key);
    registry_free_all(registry);
    assert_int_equal(board_mark(&copy->board), 7);
}

/* ---- drawing ---- */

REGISTRY_TEST(a_board_is_put_in_place_of_what_stood_there) {
    struct registry_key *old = key_create(registry, 2, "daily", 0, 0);
    assert_true(key_fill(registry, old, 1, 5));
    key_expire(registry, old, 5000);
    for (int i = 0; i < 2; i++) {
        struct bytes name = i == 0 ? BYTES("daily") : BYTES("other");
        /* The first one is large, the second one small. */
        uint32_t count = i == 0 ? 1000 : 3;
        struct board board;
        assert_true(registry_create_board(registry, name, 0, &board));
        assert_true(board_options_equal(board_options_of(board_layout(&board)),
                                        i == 0 ? &usual_options : &other_options));
        assert_true(board_fill(&board, 7, count));
        assert_int_equal(registry_put_board(registry, 2, name, &board, 1), REGISTRY_OK);
        const struct registry_key *key = registry_find(registry, 2, name, 6000);
        assert_non_null(key);
        assert_int_equal(board_mark(&key->board), 7);
        assert_int_equal(board_count(&key->board), count);
        assert_true(registry_expiry(registry, key) == REGISTRY_NO_EXPIRY);
        ASSERT_VALID(registry_validate, registry);
    }
    assert_int_equal(registry_count(registry, 2), 2);
    assert_int_equal(registry_expiry_count(registry, 2), 0);
    assert_int_equal(registry_totals(registry)->unfreed, 1);
    registry_free_all(registry);
}

REGISTRY_TEST(every_key_is_drawn_equally_often) {
    assert_null(registry_walk_random(registry, 0, 0, 0));
    enum { KEYS = 100, DRAWS = 1 << 16 };
    for (int i = 0; i < KEYS; i++) {
        struct registry_key *key = key_create(registry, 0, formatted("key:%d", i), 0, 0);
        assert_true(key_fill(registry, key, (uint64_t)i, 1));
    }
    int drawn[KEYS] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        drawn[board_mark(&registry_walk_random(registry, 0, i << 48, 0)->board)]++;
    }
    for (int i = 0; i < KEYS; i++) {
        assert_in_range(drawn[i], DRAWS / KEYS, DRAWS / KEYS + 1);
    }
}

/* ---- scanning ---- */

enum { SCAN_STABLE = 300, SCAN_PASSING = 600 };

struct seen {
    uint32_t stable[SCAN_STABLE];
    uint32_t passing[SCAN_PASSING];
    uint32_t count;
};

static void note_seen(void *context, const struct registry_key *key) {
    struct seen *seen = context;
    assert_int_equal(registry_name(key).size, 6);
    uint64_t number = 0; /* the name has no terminator */
    for (int i = 2; i < 6; i++) {
        number = number * 10 + (uint64_t)(registry_name(key).at[i] - '0');
    }
    if (registry_name(key).at[0] == 's') {
        seen->stable[number]++;
    } else {
        seen->passing[number]++;
    }
    seen->count++;
}

static uint64_t scan_by_count(const struct registry *registry, uint64_t cursor, uint32_t count,
                              int64_t now_ms, void *context) {
    struct scan_limits limits = {.count = count, .work_max = UINT64_MAX};
    return registry_walk_scan(registry, 0, cursor, &limits, now_ms, note_seen, context);
}

static struct bytes scan_name(char *name, char kind, int number) {
    snprintf(name, 16, "%c:%04d", kind, number);
    return (struct bytes){name, 6};
}

TEST(scanning_visits_what_stays_whatever_changes) {
    struct random random = random_begin(__func__);
    char name[16];
    for (int round = 0; round < (is_short_run() ? 10 : 60); round++) {
        struct registry *registry = create_registry();
        bool is_new;
        for (int i = 0; i < SCAN_STABLE; i++) {
            assert_non_null(
                registry_find_or_create(registry, 0, scan_name(name, 's', i), 0, &is_new));
        }
        /* Grow and shrink in turns, so that the scan crosses a rehash. */
        struct seen seen = {.count = 0};
        bool was_there[SCAN_PASSING] = {false};
        bool is_growing = round % 2 == 0;
        uint64_t cursor = 0;
        do {
            uint32_t seen_before = seen.count;
            uint32_t count = 1 + (uint32_t)random_below(&random, 20);
            cursor = scan_by_count(registry, cursor, count, 0, &seen);
            assert_true(cursor < UINT64_C(1) << 48);
            /* A bucket more than asked for, at most, and those it overflows into. */
            assert_true(seen.count - seen_before <= count + 64);
            for (int change = 0; change < 40; change++) {
                int number = (int)random_below(&random, SCAN_PASSING);
                if (is_growing == (random_below(&random, 8) != 0)) {
                    assert_non_null(registry_find_or_create(
                        registry, 0, scan_name(name, 'p', number), 0, &is_new));
                    was_there[number] = true;
                } else {
                    struct registry_key *key =
                        registry_find(registry, 0, scan_name(name, 'p', number), 0);
                    if (key != NULL) {
                        registry_remove(registry, key);
                    }
                }
            }
            is_growing = random_below(&random, 10) == 0 ? !is_growing : is_growing;
        } while (cursor != 0);
        for (int i = 0; i < SCAN_STABLE; i++) {
            assert_true(seen.stable[i] >= 1);
        }
        for (int i = 0; i < SCAN_PASSING; i++) {
            assert_true(seen.passing[i] == 0 || was_there[i]);
        }
        ASSERT_VALID(registry_validate, registry);
        registry_destroy(registry);
    }
}

TEST(an_unchanged_database_is_scanned_once_each) {
    for (uint32_t count = 0; count <= 1000; count = count * 3 + 1) {
        struct registry *registry = create_registry();
        struct seen empty = {.count = 0};
        assert_int_equal(scan_by_count(registry, 0, count, 0, &empty), 0);
        bool is_new;
        char name[16];
        for (int i = 0; i < SCAN_STABLE; i++) {
            assert_non_null(
                registry_find_or_create(registry, 0, scan_name(name, 's', i), 0, &is_new));
        }
        struct registry_key *key = registry_find(registry, 0, scan_name(name, 's', 17), 0);
        key_expire(registry, key, 100);
        struct seen seen = {.count = 0};
        uint64_t cursor = 0;
        do {
            cursor = scan_by_count(registry, cursor, count, 100, &seen);
        } while (cursor != 0);
        for (int i = 0; i < SCAN_STABLE; i++) {
            assert_int_equal(seen.stable[i], i != 17);
        }
        /* Cursors that were never returned end the scan or start somewhere. */
        const uint64_t cursors[] = {1, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX};
        for (int i = 0; i < 4; i++) {
            cursor = scan_by_count(registry, cursors[i], count, 0, &seen);
            assert_true(cursor <= UINT32_MAX);
        }
        struct seen each = {.count = 0};
        registry_walk_each(registry, 0, 100, note_seen, &each);
        assert_int_equal(each.count, SCAN_STABLE - 1);
        registry_destroy(registry);
    }
}

enum { REMOVED_KEYS = 5000, LEFT_KEYS = 250 };

struct to_remove {
    uint32_t count;
    struct bytes names[REMOVED_KEYS];
};

static void note_to_remove(void *context, const struct registry_key *key) {
    struct to_remove *to_remove = context;
    assert_in_range(to_remove->count, 0, REMOVED_KEYS - 1);
    to_remove->names[to_remove->count++] = registry_name(key);
}

/* What is left crowds few buckets of the map, more names than a step has room for. */
TEST(a_scan_most_of_whose_keys_are_removed_ends_in_steps_of_bounded_work) {
    static struct to_remove to_remove;
    struct registry *registry = create_registry();
    const struct scan_limits limits = {.count = 16, .work_max = 10000};
    uint64_t cursor = 0, before;
    uint32_t seen = 0;
    bool is_new;
    char name[16];
    for (int i = 0; i < REMOVED_KEYS; i++) {
        assert_non_null(registry_find_or_create(registry, 0, scan_name(name, 's', i), 0, &is_new));
    }
    do {
        before = cursor;
        to_remove.count = 0;
        cursor = registry_walk_scan(registry, 0, cursor, &limits, 0, note_to_remove, &to_remove);
        assert_true(cursor == 0 || cursor > before);
        assert_in_range(to_remove.count, 0, 144);
        for (; to_remove.count > 0 && registry_count(registry, 0) > LEFT_KEYS; seen++) {
            char text[16];
            struct bytes found = to_remove.names[--to_remove.count];
            memcpy(text, found.at, found.size);
            registry_remove(registry,
                            registry_find(registry, 0, (struct bytes){text, found.size}, 0));
        }
        seen += to_remove.count;
    } while (cursor != 0);
    assert_int_equal(seen, REMOVED_KEYS);
    ASSERT_VALID(registry_validate, registry);
    registry_destroy(registry);
}

/* ---- many keys ---- */

TEST(a_key_takes_no_more_memory_than_a_board_and_its_places) {
    assert_int_equal(sizeof(struct registry_key), sizeof(struct board) + 16);
    assert_int_equal(offsetof(struct registry_key, name_at), sizeof(struct board) + 12);
    assert_int_equal(sizeof(struct board), sizeof(((struct registry_key *)NULL)->value));
}

TEST(many_small_boards_are_cheap) {
    size_t used_before = memory_used();
    uint64_t live_before = memory_live_count();
    struct registry *registry = create_registry();
#ifdef SKIPLIST_TINY
    enum { KEYS = 4000 };
#else
    enum { KEYS = 20000 };
#endif
    size_t boards_size = 0;
    for (int i = 0; i < KEYS; i++) {
        struct registry_key *key = key_create(registry, 0, formatted("board:%08d", i), 0, 0);
        assert_true(key_fill(registry, key, (uint64_t)i, 10));
        boards_size += board_memory_size(&key->board);
    }
    size_t overhead = (memory_used() - used_before - boards_size) / KEYS;
    printf("%zu bytes a key beside its board, %zu a board of 10\n", overhead, boards_size / KEYS);
    assert_true(overhead <= 90);
    for (int i = 0; i < KEYS; i += 97) {
        assert_int_equal(board_mark(&key_find(registry, 0, formatted("board:%08d", i), 0)->board),
                         i);
    }
    for (int i = 0; i < KEYS - 10; i++) {
        registry_remove(registry, key_find(registry, 0, formatted("board:%08d", i), 0));
    }
    registry_free_all(registry);
    ASSERT_VALID(registry_validate, registry);
    /* Little is left: the list and the map have shrunk too. */
    assert_true(memory_used() - used_before <= 64 * 1024);
    registry_destroy(registry);
    assert_int_equal(memory_live_count(), live_before);
}

/* ---- listeners ---- */

/* Reported since the last check: "1:a 0:* " for key a of database 1, and for a flush. */
static char told_names[256];

static void note_change(void *context, uint32_t database, struct bytes name) {
    char *end = (char *)context + strlen(context);
    int size = name.at != NULL ? (int)name.size : 1;
    snprintf(end, sizeof told_names - strlen(context), "%u:%.*s ", database, size,
             name.at != NULL ? name.at : "*");
}

#define expect_told_names(expected)                                                                \
    do {                                                                                           \
        assert_string_equal(told_names, (expected));                                               \
        told_names[0] = '\0';                                                                      \
    } while (false)

REGISTRY_TEST(every_change_of_a_key_is_told_once_it_is_made) {
    registry_set_listener(registry, note_change, told_names);
    struct registry_key *key = key_create(registry, 0, "a", 0, 1);
    expect_told_names("");
    assert_true(key_fill(registry, key, 1, 3));
    registry_tell_members(registry, key);
    expect_told_names("0:a ");
    registry_board_cut(registry, key, 0, 1);
    expect_told_names("0:a ");
    key_expire(registry, key, 50);
    expect_told_names("0:a ");
    assert_int_equal(registry_copy(registry, key, 1, BYTES("b"), 1), REGISTRY_OK);
    expect_told_names("1:b ");
    assert_int_equal(registry_rename(registry, key, 2, BYTES("c"), 1), REGISTRY_OK);
    expect_told_names("0:a 2:c ");
    registry_remove(registry, key_find(registry, 1, "b", 1));
    expect_told_names("1:b ");
    struct board board;
    assert_true(registry_create_board(registry, BYTES("b"), 0, &board));
    expect_told_names("");
    assert_int_equal(registry_put_board(registry, 1, BYTES("b"), &board, 1), REGISTRY_OK);
    expect_told_names("1:b ");
    registry_remove(registry, key_find(registry, 1, "b", 1));
    expect_told_names("1:b ");
    assert_null(key_find(registry, 2, "c", 50));
    expect_told_names("2:c ");
    (void)key_create(registry, 3, "d", 0, 1);
    (void)key_create(registry, 5, "e", 0, 1);
    assert_int_equal(registry_flush(registry, REGISTRY_DATABASES), 2);
    expect_told_names("3:* 5:* ");
}

REGISTRY_TEST(the_one_key_that_has_not_expired_is_drawn_among_thousands) {
    enum { KEYS = 16384, KEPT = 777 };
    for (int i = 0; i < KEYS; i++) {
        struct registry_key *key = key_create(registry, 0, formatted("key:%d", i), 0, 1);
        if (i != KEPT) {
            key_expire(registry, key, 50);
        }
    }
    for (uint64_t i = 0; i < 16; i++) {
        const struct registry_key *drawn = registry_walk_random(registry, 0, i << 60, 100);
        assert_non_null(drawn);
        assert_true(bytes_is(registry_name(drawn), "key:777"));
    }
    /* Expired keys are removed later, except a few. */
    assert_in_range(registry_totals(registry)->expired, 1, 16 * 64);
}

REGISTRY_TEST(what_comes_of_its_own_time_is_told) {
    registry_set_listener(registry, note_change, told_names);
    struct registry_key *key = key_create(registry, 0, "a", 0, 1);
    key_expire(registry, key, 50);
    key = key_create(registry, 0, "b", 0, 1);
    key_expire(registry, key, 60);
    told_names[0] = '\0';
    assert_int_equal(registry_expiry_remove_due(registry, 55, 9), 1);
    expect_told_names("0:a ");
    assert_null(registry_walk_random(registry, 0, 7, 60));
    expect_told_names("0:b ");
}

REGISTRY_TEST(what_changes_nothing_is_not_told) {
    struct registry_key *key = key_create(registry, 0, "a", 0, 1);
    registry_set_listener(registry, note_change, told_names);
    registry_take_back(registry, key_create(registry, 0, "new", 0, 1));
    assert_int_equal(registry_rename(registry, key, 0, BYTES("a"), 1), REGISTRY_OK);
    assert_int_equal(registry_copy(registry, key, 0, BYTES("a"), 1), REGISTRY_OK);
    assert_int_equal(registry_flush(registry, 4), 0);
    assert_non_null(key_find(registry, 0, "a", 1));
    expect_told_names("");
    registry_set_listener(registry, NULL, NULL);
    registry_remove(registry, key);
    expect_told_names("");
}
