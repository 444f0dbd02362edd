/* The databases against a twin that is an array of (database, name, expiry). */
#include "tests/support/key_put.h"
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/map.h"
#include "tests/support/layout_text.h"
#include "tests/support/random.h"

/* ---- helpers ---- */

static struct rules usual_rules;
static struct rules other_rules;

/* Names that begin with 'o' get the other rules. */
static const struct rules *rules_for(void *context, struct bytes key) {
    (*(uint64_t *)context)++;
    return key.at[0] == 'o' ? &other_rules : &usual_rules;
}

static uint64_t rules_calls;

static void make_rules(void) {
    char error[LAYOUT_ERROR_MAX];
    layout_init_default(&usual_rules.layout);
    assert_int_equal(layout_parse(BYTES("FIELD a 30 FIELD b 20"), &other_rules.layout, error),
                     LAYOUT_OK);
}

static struct registry *create_registry(void) {
    struct registry *registry = registry_create(0x5eed, rules_for, &rules_calls);
    assert_non_null(registry);
    return registry;
}

static void assert_valid(const struct registry *registry) {
    const char *reason = "";
    if (!registry_validate(registry, &reason)) {
        fail_msg("%s", reason);
    }
}

static struct registry_key *create_key(struct registry *registry, uint32_t database,
                                       const char *name, int64_t now_ms) {
    bool is_new = false;
    struct registry_key *key =
        registry_find_or_create(registry, database, bytes_from_text(name), now_ms, &is_new);
    assert_non_null(key);
    assert_true(is_new);
    return key;
}

static struct registry_key *find_key(struct registry *registry, uint32_t database, const char *name,
                                     int64_t now_ms) {
    return registry_find(registry, database, bytes_from_text(name), now_ms);
}

/* Put count members on a board. The key of the first is mark, which identifies the board later. */
static bool fill_board(struct board *board, uint64_t mark, uint32_t count) {
    char member[32];
    if (board_put(board, BYTES("mark"), mark) != BOARD_OK) {
        return false;
    }
    for (uint32_t i = 1; i < count; i++) {
        int size = snprintf(member, sizeof member, "member:%u", i);
        if (board_put(board, (struct bytes){member, (size_t)size}, i) != BOARD_OK) {
            return false;
        }
    }
    return true;
}

/* The same on the board of a key. */
static bool fill_key(struct registry *registry, struct registry_key *key, uint64_t mark,
                     uint32_t count) {
    char member[32];
    bool is_put = key_put(registry, key, BYTES("mark"), mark);
    for (uint32_t i = 1; i < count && is_put; i++) {
        int size = snprintf(member, sizeof member, "member:%u", i);
        is_put = key_put(registry, key, (struct bytes){member, (size_t)size}, i);
    }
    return is_put;
}

static uint64_t board_mark(const struct board *board) {
    uint64_t mark = UINT64_MAX;
    return board_find(board, BYTES("mark"), &mark) ? mark : UINT64_MAX;
}

static void free_everything(struct registry *registry) {
    while (registry_free_step(registry, 10)) {}
    assert_int_equal(registry_totals(registry)->unfreed, 0);
}

/* ---- creating and removing keys ---- */

/* A test with an empty registry. */
#define REGISTRY_TEST(name)                                                                        \
    static void name##_in(struct registry *registry);                                              \
    TEST(name) {                                                                                   \
        struct registry *registry = create_registry();                                             \
        name##_in(registry);                                                                       \
        registry_set_listener(registry, NULL, NULL); /* what it tells may be gone */               \
        registry_destroy(registry);                                                                \
    }                                                                                              \
    static void name##_in(struct registry *registry)

REGISTRY_TEST(a_key_is_found_in_its_database_alone) {
    rules_calls = 0;
    struct registry_key *key = create_key(registry, 3, "daily", 0);
    assert_int_equal(rules_calls, 1);
    assert_true(bytes_equal(registry_name(key), BYTES("daily")));
    assert_int_equal(key->database, 3);
    assert_true(registry_expiry(registry, key) == REGISTRY_NO_EXPIRY);
    assert_true(rules_equal(registry_rules(key), &usual_rules));
    assert_int_equal(board_count(&key->board), 0);
    assert_ptr_equal(find_key(registry, 3, "daily", 0), key);
    assert_ptr_equal(registry_peek(registry, 3, BYTES("daily"), 0), key);
    assert_null(find_key(registry, 2, "daily", 0));
    assert_null(find_key(registry, 3, "dail", 0));
    assert_null(find_key(registry, 3, "dailyy", 0));
    assert_null(find_key(registry, 3, "", 0));
    assert_true(rules_equal(registry_rules(create_key(registry, 0, "other", 0)), &other_rules));
    bool is_new = true;
    assert_ptr_equal(registry_find_or_create(registry, 3, BYTES("daily"), 0, &is_new), key);
    assert_false(is_new);
    assert_int_equal(rules_calls, 2);
    assert_int_equal(registry_count(registry, 3), 1);
    assert_int_equal(registry_count(registry, 2), 0);
    assert_valid(registry);
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
    assert_valid(registry);
}

REGISTRY_TEST(other_keys_stay_where_they_are_when_one_goes) {
    struct registry_key *keys[200];
    char name[32];
    for (int i = 0; i < 200; i++) {
        keys[i] = create_key(registry, 0, formatted("key:%d", i), 0);
    }
    for (int i = 0; i < 200; i += 2) {
        registry_remove(registry, keys[i]);
    }
    for (int i = 1; i < 200; i += 2) {
        snprintf(name, sizeof name, "key:%d", i);
        assert_ptr_equal(find_key(registry, 0, name, 0), keys[i]);
        assert_true(bytes_equal(registry_name(keys[i]), bytes_from_text(name)));
    }
    assert_valid(registry);
}

/* ---- deferred freeing ---- */

REGISTRY_TEST(removing_takes_no_memory_and_frees_no_board) {
    struct registry_key *key = create_key(registry, 0, "big", 0);
    assert_true(fill_key(registry, key, 1, 5000));
    create_key(registry, 0, "other", 0);
    uint64_t live_before = memory_live_count();
    memory_fail_at(1);
    registry_remove(registry, key);
    memory_fail_at(0);
    assert_null(find_key(registry, 0, "big", 0));
    assert_true(memory_live_count() + 5 > live_before);
    assert_int_equal(registry_totals(registry)->unfreed, 1);
    assert_valid(registry);
}

REGISTRY_TEST(removed_boards_are_freed_in_bounded_steps) {
    struct registry_key *key = create_key(registry, 0, "big", 0);
    assert_true(fill_key(registry, key, 1, 20000));
    registry_remove(registry, key);
    int steps = 0;
    bool has_more = true;
    while (has_more) {
        uint64_t live_before = memory_live_count();
        has_more = registry_free_step(registry, 100);
        /* 100 members, at least two to a block; the index and the lists of blocks are few. */
        assert_true(live_before - memory_live_count() <= 120);
        assert_valid(registry);
        steps++;
    }
    /* The index of a tiny build has as many segments as blocks. */
    assert_in_range(steps, 100, 600);
    assert_int_equal(registry_totals(registry)->unfreed, 0);
    assert_int_equal(registry_totals(registry)->freed, 1);
    assert_false(registry_free_step(registry, 100));
}

REGISTRY_TEST(flushing_touches_no_key) {
    enum { KEYS = 5000 };
    for (int i = 0; i < KEYS; i++) {
        struct registry_key *key = create_key(registry, 5, formatted("key:%d", i), 0);
        assert_true(fill_key(registry, key, 1, 3));
        assert_int_equal(registry_set_expiry(registry, key, 1000 + i, false), REGISTRY_OK);
    }
    create_key(registry, 6, "stays", 0);
    uint64_t requests_before = memory_requests();
    uint64_t live_before = memory_live_count();
    assert_int_equal(registry_flush(registry, 5), KEYS);
    assert_int_equal(memory_requests(), requests_before);
    assert_int_equal(memory_live_count(), live_before);
    assert_int_equal(registry_count(registry, 5), 0);
    assert_int_equal(registry_expiring_count(registry, 5), 0);
    assert_true(registry_next_due(registry) == REGISTRY_NO_EXPIRY);
    assert_int_equal(registry_totals(registry)->unfreed, KEYS);
    assert_non_null(find_key(registry, 6, "stays", 0));
    assert_int_equal(registry_flush(registry, 5), 0);

    /* The database is used again while its old contents are being freed. */
    uint64_t freed = 0;
    for (int i = 0; registry_free_step(registry, 50); i++) {
        assert_true(registry_totals(registry)->freed - freed <= 50);
        freed = registry_totals(registry)->freed;
        create_key(registry, 5, formatted("key:%d", i), 0);
    }
    assert_int_equal(registry_totals(registry)->freed, KEYS);
    assert_valid(registry);
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
                create_key(registry, (uint32_t)i % 3, formatted("key:%d", i), 0);
            assert_true(fill_key(registry, key, 1, 20));
            assert_int_equal(registry_set_expiry(registry, key, i, false), REGISTRY_OK);
        }
        registry_remove(registry, find_key(registry, 0, "key:3", -1));
        registry_flush(registry, 1);
        registry_flush(registry, 2);
        create_key(registry, 1, "again", 0);
        (void)registry_free_step(registry, work);
        registry_destroy(registry);
        assert_int_equal(memory_live_count(), live_before);
    }
    registry_destroy(NULL);
}

/* ---- expiry ---- */

REGISTRY_TEST(a_key_goes_at_its_millisecond) {
    struct registry_key *key = create_key(registry, 0, "a", 0);
    assert_int_equal(registry_set_expiry(registry, key, 1000, false), REGISTRY_OK);
    assert_int_equal(registry_expiry(registry, key), 1000);
    assert_int_equal(registry_next_due(registry), 1000);
    assert_ptr_equal(find_key(registry, 0, "a", 999), key);
    assert_int_equal(registry_expire_due(registry, 999, 10), 0);
    assert_null(registry_peek(registry, 0, BYTES("a"), 1000));
    assert_int_equal(registry_count(registry, 0), 1);
    assert_int_equal(registry_totals(registry)->expired, 0);
    assert_null(find_key(registry, 0, "a", 1000));
    assert_int_equal(registry_count(registry, 0), 0);
    assert_int_equal(registry_totals(registry)->expired, 1);
    assert_true(registry_next_due(registry) == REGISTRY_NO_EXPIRY);
    key = create_key(registry, 0, "a", 1000);
    assert_true(registry_expiry(registry, key) == REGISTRY_NO_EXPIRY);
    assert_valid(registry);
}

/* A master that becomes a replica holds the times that its replicas were told, whatever clock it follows;
 * and so when it is a master again. */
REGISTRY_TEST(durations_shift_with_the_clock_but_not_while_passive) {
    struct registry_key *timed = create_key(registry, 0, "timed", 0);
    struct registry_key *lasting = create_key(registry, 0, "lasting", 0);
    registry_set_offset(registry, 100000);
    assert_int_equal(registry_set_expiry(registry, timed, 5000, false), REGISTRY_OK);
    assert_int_equal(registry_set_expiry(registry, lasting, 5000, true), REGISTRY_OK);
    registry_set_offset(registry, 105000);
    assert_int_equal(registry_expiry(registry, timed), 5000);
    assert_int_equal(registry_expiry(registry, lasting), 10000);
    registry_set_passive(registry, true);
    registry_set_offset(registry, 7000);
    registry_set_offset(registry, 9000);
    assert_int_equal(registry_expiry(registry, lasting), 10000);
    registry_set_passive(registry, false);
    registry_set_offset(registry, 17000);
    assert_int_equal(registry_expiry(registry, lasting), 10000);
    struct registry_key *later = create_key(registry, 1, "later", 0);
    assert_int_equal(registry_set_expiry(registry, later, 6000, true), REGISTRY_OK);
    registry_set_offset(registry, 16000);
    assert_int_equal(registry_expiry(registry, timed), 5000);
    assert_int_equal(registry_expiry(registry, lasting), 9000);
    assert_int_equal(registry_expiry(registry, later), 5000);
    assert_valid(registry);
}

REGISTRY_TEST(an_expiry_can_be_changed_and_taken_back) {
    struct registry_key *a = create_key(registry, 0, "a", 0);
    struct registry_key *b = create_key(registry, 0, "b", 0);
    assert_int_equal(registry_set_expiry(registry, a, 1000, false), REGISTRY_OK);
    assert_int_equal(registry_set_expiry(registry, b, 2000, false), REGISTRY_OK);
    assert_int_equal(registry_set_expiry(registry, a, 3000, false), REGISTRY_OK);
    assert_int_equal(registry_next_due(registry), 2000);
    assert_int_equal(registry_expiring_count(registry, 0), 2);
    assert_int_equal(registry_set_expiry(registry, b, REGISTRY_NO_EXPIRY, false), REGISTRY_OK);
    assert_int_equal(registry_set_expiry(registry, b, REGISTRY_NO_EXPIRY, false), REGISTRY_OK);
    assert_int_equal(registry_expiring_count(registry, 0), 1);
    assert_int_equal(registry_expire_due(registry, INT64_MAX, 10), 1);
    assert_ptr_equal(find_key(registry, 0, "b", INT64_MAX), b);
    /* Times before 1970 are times, too. */
    assert_int_equal(registry_set_expiry(registry, b, -5, false), REGISTRY_OK);
    assert_non_null(find_key(registry, 0, "b", -6));
    assert_null(find_key(registry, 0, "b", -5));
    assert_valid(registry);
}

static int compare_times(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

REGISTRY_TEST(keys_expire_in_the_order_of_their_times) {
    struct random random = random_begin(__func__);
    enum { KEYS = 2000 };
    static int64_t times[KEYS];
    for (int i = 0; i < KEYS; i++) {
        struct registry_key *key = create_key(registry, (uint32_t)i % 5, formatted("key:%d", i), 0);
        assert_int_equal(
            registry_set_expiry(registry, key, (int64_t)random_next(&random) >> 1, false),
            REGISTRY_OK);
        times[i] = (int64_t)random_below(&random, 1000);
        assert_int_equal(registry_set_expiry(registry, key, times[i], false), REGISTRY_OK);
    }
    qsort(times, KEYS, sizeof *times, compare_times);
    assert_valid(registry);
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(registry_next_due(registry), times[i]);
        assert_int_equal(registry_expire_due(registry, times[i] - 1, 1), 0);
        assert_int_equal(registry_expire_due(registry, times[i], 1), 1);
    }
    assert_int_equal(registry_totals(registry)->expired, KEYS);
    assert_valid(registry);
}

REGISTRY_TEST(expiring_stops_at_the_number_of_keys_asked_for) {
    for (int i = 0; i < 100; i++) {
        struct registry_key *key = create_key(registry, 0, formatted("key:%d", i), 0);
        assert_int_equal(registry_set_expiry(registry, key, i, false), REGISTRY_OK);
    }
    assert_int_equal(registry_expire_due(registry, 79, 0), 0);
    assert_int_equal(registry_expire_due(registry, 79, 50), 50);
    assert_int_equal(registry_next_due(registry), 50);
    assert_int_equal(registry_expire_due(registry, 79, 50), 30);
    assert_int_equal(registry_count(registry, 0), 20);
}

REGISTRY_TEST(the_average_is_of_the_milliseconds_left) {
    assert_int_equal(registry_average_ttl_ms(registry, 0, 0), 0);
    struct registry_key *a = create_key(registry, 0, "a", 0);
    struct registry_key *b = create_key(registry, 0, "b", 0);
    create_key(registry, 0, "c", 0);
    assert_int_equal(registry_average_ttl_ms(registry, 0, 0), 0);
    assert_int_equal(registry_set_expiry(registry, a, 1000, false), REGISTRY_OK);
    assert_int_equal(registry_set_expiry(registry, b, 4001, false), REGISTRY_OK);
    assert_int_equal(registry_average_ttl_ms(registry, 0, 0), 2500);
    assert_int_equal(registry_average_ttl_ms(registry, 0, 2000), 500);
    assert_int_equal(registry_average_ttl_ms(registry, 0, 9000), 0);
    assert_int_equal(registry_average_ttl_ms(registry, 1, 0), 0);
    assert_int_equal(registry_set_expiry(registry, a, INT64_MAX, false), REGISTRY_OK);
    assert_int_equal(registry_set_expiry(registry, b, INT64_MAX, false), REGISTRY_OK);
    assert_int_equal(registry_average_ttl_ms(registry, 0, 1), INT64_MAX - 1);
    assert_int_equal(registry_average_ttl_ms(registry, 0, -1000), INT64_MAX);
    assert_valid(registry);
}

/* ---- renaming and copying ---- */

REGISTRY_TEST(a_renamed_key_keeps_its_board_and_its_expiry) {
    struct registry_key *key = create_key(registry, 0, "from", 0);
    assert_true(fill_key(registry, key, 42, 1000));
    assert_int_equal(registry_set_expiry(registry, key, 5000, false), REGISTRY_OK);
    assert_int_equal(registry_rename(registry, key, 0, BYTES("to"), 0), REGISTRY_OK);
    assert_null(find_key(registry, 0, "from", 0));
    key = find_key(registry, 0, "to", 0);
    assert_int_equal(board_count(&key->board), 1000);
    assert_int_equal(board_mark(&key->board), 42);
    assert_int_equal(registry_expiry(registry, key), 5000);
    assert_valid(registry);
    /* Into another database, where a longer name exists. */
    create_key(registry, 9, "a longer name", 0);
    assert_int_equal(registry_rename(registry, key, 9, BYTES("to"), 0), REGISTRY_OK);
    assert_int_equal(registry_count(registry, 0), 0);
    assert_int_equal(registry_expiring_count(registry, 0), 0);
    key = find_key(registry, 9, "to", 0);
    assert_int_equal(board_count(&key->board), 1000);
    assert_int_equal(board_mark(&key->board), 42);
    assert_int_equal(key->database, 9);
    assert_int_equal(registry_expiring_count(registry, 9), 1);
    assert_int_equal(registry_next_due(registry), 5000);
    assert_int_equal(registry_totals(registry)->unfreed, 0);
    assert_valid(registry);
}

REGISTRY_TEST(a_key_renamed_onto_itself_stays) {
    struct registry_key *key = create_key(registry, 1, "same", 0);
    assert_int_equal(registry_set_expiry(registry, key, 5000, false), REGISTRY_OK);
    assert_true(fill_key(registry, key, 7, 3));
    memory_fail_at(1);
    assert_int_equal(registry_rename(registry, key, 1, registry_name(key), 0), REGISTRY_OK);
    assert_int_equal(registry_copy(registry, key, 1, BYTES("same"), 0), REGISTRY_OK);
    memory_fail_at(0);
    assert_ptr_equal(find_key(registry, 1, "same", 0), key);
    assert_int_equal(registry_expiry(registry, key), 5000);
    assert_int_equal(registry_totals(registry)->unfreed, 0);
    /* The same name elsewhere is another key. */
    assert_int_equal(registry_rename(registry, key, 2, registry_name(key), 0), REGISTRY_OK);
    assert_null(find_key(registry, 1, "same", 0));
    assert_int_equal(board_mark(&find_key(registry, 2, "same", 0)->board), 7);
    assert_valid(registry);
}

TEST(what_stood_at_the_destination_is_removed) {
    for (int is_copy = 0; is_copy < 2; is_copy++) {
        for (int is_expired = 0; is_expired < 2; is_expired++) {
            struct registry *registry = create_registry();
            struct registry_key *old = create_key(registry, 0, "to", 0);
            assert_int_equal(registry_set_expiry(registry, old, is_expired ? 50 : 500, false),
                             REGISTRY_OK);
            struct registry_key *key = create_key(registry, 0, "from", 0);
            assert_true(fill_key(registry, key, 42, 30));
            assert_int_equal(is_copy ? registry_copy(registry, key, 0, BYTES("to"), 100)
                                     : registry_rename(registry, key, 0, BYTES("to"), 100),
                             REGISTRY_OK);
            assert_int_equal(registry_totals(registry)->unfreed, 1);
            assert_int_equal(registry_totals(registry)->expired, is_expired);
            assert_int_equal(registry_count(registry, 0), 1 + is_copy);
            struct registry_key *to = find_key(registry, 0, "to", 100);
            assert_int_equal(board_mark(&to->board), 42);
            assert_true(registry_expiry(registry, to) == REGISTRY_NO_EXPIRY);
            assert_int_equal(registry_expiring_count(registry, 0), 0);
            assert_valid(registry);
            registry_destroy(registry);
        }
    }
}

REGISTRY_TEST(a_copy_is_a_board_of_its_own) {
    struct registry_key *key = create_key(registry, 0, "other", 0);
    assert_true(fill_key(registry, key, 7, 100));
    assert_int_equal(registry_set_expiry(registry, key, 900, false), REGISTRY_OK);
    assert_int_equal(registry_copy(registry, key, 4, BYTES("copy"), 0), REGISTRY_OK);
    struct registry_key *copy = find_key(registry, 4, "copy", 0);
    assert_ptr_not_equal(&copy->board, &key->board);
    assert_true(rules_equal(registry_rules(copy), &other_rules));
    assert_int_equal(board_count(&copy->board), 100);
    assert_int_equal(registry_expiry(registry, copy), 900);
    registry_remove(registry, key);
    free_everything(registry);
    assert_int_equal(board_mark(&copy->board), 7);
    assert_valid(registry);
}

/* ---- drawing ---- */

REGISTRY_TEST(a_board_is_put_in_place_of_what_stood_there) {
    struct registry_key *old = create_key(registry, 2, "daily", 0);
    assert_true(fill_key(registry, old, 1, 5));
    assert_int_equal(registry_set_expiry(registry, old, 5000, false), REGISTRY_OK);
    for (int i = 0; i < 2; i++) {
        struct bytes name = i == 0 ? BYTES("daily") : BYTES("other");
        /* The first one is large, the second one small. */
        uint32_t count = i == 0 ? 1000 : 3;
        struct board board;
        assert_true(registry_create_board(registry, name, 0, &board));
        assert_true(
            rules_equal(rules_of(board_layout(&board)), i == 0 ? &usual_rules : &other_rules));
        assert_true(fill_board(&board, 7, count));
        assert_int_equal(registry_put_board(registry, 2, name, &board, 1), REGISTRY_OK);
        const struct registry_key *key = registry_find(registry, 2, name, 6000);
        assert_non_null(key);
        assert_int_equal(board_mark(&key->board), 7);
        assert_int_equal(board_count(&key->board), count);
        assert_true(registry_expiry(registry, key) == REGISTRY_NO_EXPIRY);
        assert_valid(registry);
    }
    assert_int_equal(registry_count(registry, 2), 2);
    assert_int_equal(registry_expiring_count(registry, 2), 0);
    assert_int_equal(registry_totals(registry)->unfreed, 1);
    free_everything(registry);
}

REGISTRY_TEST(every_key_is_drawn_equally_often) {
    assert_null(registry_random(registry, 0, 0, 0));
    enum { KEYS = 100, DRAWS = 1 << 16 };
    for (int i = 0; i < KEYS; i++) {
        struct registry_key *key = create_key(registry, 0, formatted("key:%d", i), 0);
        assert_true(fill_key(registry, key, (uint64_t)i, 1));
    }
    int drawn[KEYS] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        drawn[board_mark(&registry_random(registry, 0, i << 48, 0)->board)]++;
    }
    for (int i = 0; i < KEYS; i++) {
        assert_in_range(drawn[i], DRAWS / KEYS, DRAWS / KEYS + 1);
    }
}

REGISTRY_TEST(an_expired_key_is_never_drawn) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 200; i++) {
        struct registry_key *key = create_key(registry, 0, formatted("key:%d", i), 0);
        assert_int_equal(registry_set_expiry(registry, key, i < 198 ? 10 : 1000, false),
                         REGISTRY_OK);
    }
    for (int i = 0; i < 300; i++) {
        struct registry_key *key = registry_random(registry, 0, random_next(&random), 10);
        assert_non_null(key);
        assert_int_equal(registry_expiry(registry, key), 1000);
    }
    assert_null(registry_random(registry, 0, random_next(&random), 1000));
    assert_int_equal(registry_count(registry, 0), 0);
    assert_int_equal(registry_totals(registry)->expired, 200);
    assert_valid(registry);
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
    return registry_scan(registry, 0, cursor, &limits, now_ms, note_seen, context);
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
        assert_valid(registry);
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
        assert_int_equal(registry_set_expiry(registry, key, 100, false), REGISTRY_OK);
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
        registry_each(registry, 0, 100, note_seen, &each);
        assert_int_equal(each.count, SCAN_STABLE - 1);
        registry_destroy(registry);
    }
}

/* ---- memory that fails ---- */

static bool fail_create(struct registry *registry) {
    bool is_new;
    return registry_find_or_create(registry, 1, BYTES("new"), 0, &is_new) != NULL;
}

static bool fail_rename(struct registry *registry) {
    struct registry_key *key = find_key(registry, 0, "key:2", 0);
    return registry_rename(registry, key, 1, BYTES("key:0"), 0) == REGISTRY_OK;
}

static bool fail_rename_here(struct registry *registry) {
    struct registry_key *key = find_key(registry, 0, "key:2", 0);
    return registry_rename(registry, key, 0, BYTES("key:1"), 0) == REGISTRY_OK;
}

static bool fail_copy(struct registry *registry) {
    struct registry_key *key = find_key(registry, 0, "key:2", 0);
    return registry_copy(registry, key, 2, BYTES("copy"), 0) == REGISTRY_OK;
}

static bool fail_put_board(struct registry *registry) {
    struct board board;
    if (!registry_create_board(registry, BYTES("key:0"), 0, &board)) {
        return false;
    }
    bool is_put = fill_board(&board, 99, 20) &&
                  registry_put_board(registry, 0, BYTES("key:0"), &board, 0) == REGISTRY_OK;
    if (!is_put) {
        registry_discard_board(registry, &board);
    }
    return is_put;
}

static bool fail_expiry(struct registry *registry) {
    struct registry_key *key = find_key(registry, 1, "key:0", 0);
    return registry_set_expiry(registry, key, 12345, false) == REGISTRY_OK;
}

struct census {
    const struct registry *registry;
    char text[4096];
    size_t size;
};

static void note_census(void *context, const struct registry_key *key) {
    struct census *census = context;
    census->size +=
        (size_t)snprintf(census->text + census->size, sizeof census->text - census->size,
                         "%u %.*s %" PRId64 " %p %u\n", key->database, (int)registry_name(key).size,
                         registry_name(key).at, registry_expiry(census->registry, key),
                         (const void *)&key->board, board_count(&key->board));
    CHECK(census->size < sizeof census->text);
}

static void take_census(const struct registry *registry, struct census *census) {
    *census = (struct census){.registry = registry};
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        registry_each(registry, i, INT64_MIN + 1, note_census, census);
    }
}

/* Six keys in database 0, of which the even ones expire, and one in database 1. */
static struct registry *create_small_world(void) {
    struct registry *registry = create_registry();
    for (int i = 0; i < 6; i++) {
        struct registry_key *key = create_key(registry, 0, formatted("key:%d", i), 0);
        assert_true(fill_key(registry, key, (uint64_t)i, 20));
        if (i % 2 == 0) {
            assert_int_equal(registry_set_expiry(registry, key, 1000 + i, false), REGISTRY_OK);
        }
    }
    create_key(registry, 1, "key:0", 0);
    return registry;
}

TEST(no_memory_leaves_the_registry_as_it_was) {
    bool (*const operations[])(struct registry *) = {fail_create, fail_rename,    fail_rename_here,
                                                     fail_copy,   fail_put_board, fail_expiry};
    for (size_t i = 0; i < COUNT_OF(operations); i++) {
        bool is_done = false;
        uint64_t nth = 1;
        for (; !is_done; nth++) {
            uint64_t live_before = memory_live_count();
            struct registry *registry = create_small_world();
            struct census before;
            struct census after;
            take_census(registry, &before);
            memory_fail_at(nth);
            is_done = operations[i](registry);
            memory_fail_at(0);
            take_census(registry, &after);
            assert_int_equal(strcmp(before.text, after.text) == 0, !is_done);
            assert_int_equal(is_done ? 0 : registry_totals(registry)->unfreed, 0);
            assert_valid(registry);
            if (!is_done) {
                assert_true(operations[i](registry));
                assert_valid(registry);
            }
            registry_destroy(registry);
            assert_int_equal(memory_live_count(), live_before);
        }
        assert_true(nth > 2);
    }
    memory_fail_at(1);
    assert_null(registry_create(1, rules_for, &rules_calls));
    memory_fail_at(0);
}

/* ---- the twin ---- */

enum { TWIN_NAMES = 40, TWIN_DATABASES = 3, TWIN_KEYS = TWIN_NAMES * TWIN_DATABASES };

struct twin_key {
    bool is_there;
    int64_t expire_at_ms;
    uint64_t mark;
    uint32_t member_count;
};

struct twin {
    struct registry *registry;
    struct random random;
    struct twin_key keys[TWIN_DATABASES][TWIN_NAMES];
    int64_t now_ms;
    uint64_t next_mark;
    uint64_t expired_count;
    uint64_t removed_count; /* boards queued for freeing */
    uint64_t failures;
};

static struct bytes twin_name(int number) {
    static char names[4][96];
    static unsigned turn;
    char *name = names[turn++ % 4];
    /* Some share long prefixes. */
    int size =
        snprintf(name, sizeof names[0], "%s%d",
                 number % 3 == 0 ? "a long name that many boards share, season " : "b", number);
    return (struct bytes){name, (size_t)size};
}

static bool twin_is_expired(const struct twin *twin, const struct twin_key *key) {
    return key->is_there && key->expire_at_ms != REGISTRY_NO_EXPIRY &&
           key->expire_at_ms <= twin->now_ms;
}

static void twin_remove(struct twin *twin, struct twin_key *key) {
    key->is_there = false;
    twin->removed_count++;
}

/* The effect of a look-up on the key. */
static void twin_look_up(struct twin *twin, struct twin_key *key) {
    if (twin_is_expired(twin, key)) {
        twin->expired_count++;
        twin_remove(twin, key);
    }
}

static struct twin_key *twin_pick(struct twin *twin, uint32_t *database, int *number) {
    *database = (uint32_t)random_below(&twin->random, TWIN_DATABASES);
    *number = (int)random_below(&twin->random, TWIN_NAMES);
    return &twin->keys[*database][*number];
}

static struct registry_key *twin_find(struct twin *twin, uint32_t database, int number) {
    struct twin_key *key = &twin->keys[database][number];
    struct registry_key *found =
        registry_find(twin->registry, database, twin_name(number), twin->now_ms);
    twin_look_up(twin, key);
    assert_int_equal(found != NULL, key->is_there);
    if (found != NULL) {
        assert_true(bytes_equal(registry_name(found), twin_name(number)));
        assert_int_equal(found->database, database);
        assert_int_equal(registry_expiry(twin->registry, found), key->expire_at_ms);
        assert_int_equal(board_count(&found->board), key->member_count);
        assert_int_equal(board_mark(&found->board), key->mark);
    }
    return found;
}

static void twin_create(struct twin *twin) {
    uint32_t database;
    int number;
    struct twin_key *key = twin_pick(twin, &database, &number);
    bool is_new = false;
    struct registry_key *found =
        registry_find_or_create(twin->registry, database, twin_name(number), twin->now_ms, &is_new);
    memory_fail_at(0);
    twin_look_up(twin, key);
    if (found == NULL) {
        twin->failures++;
        assert_false(key->is_there);
        return;
    }
    assert_int_equal(is_new, !key->is_there);
    if (is_new) {
        *key = (struct twin_key){.is_there = true,
                                 .expire_at_ms = REGISTRY_NO_EXPIRY,
                                 .mark = twin->next_mark++,
                                 .member_count = 1 + (uint32_t)random_below(&twin->random, 12)};
        assert_true(fill_key(twin->registry, found, key->mark, key->member_count));
    }
}

static void twin_take_away(struct twin *twin) {
    uint32_t database;
    int number;
    struct twin_key *key = twin_pick(twin, &database, &number);
    struct registry_key *found = twin_find(twin, database, number);
    if (found != NULL) {
        registry_remove(twin->registry, found);
        twin_remove(twin, key);
    }
    memory_fail_at(0);
}

static void twin_rename_or_copy(struct twin *twin, bool is_copy) {
    uint32_t database;
    uint32_t to_database;
    int number;
    int to_number;
    struct twin_key *key = twin_pick(twin, &database, &number);
    struct twin_key *to = twin_pick(twin, &to_database, &to_number);
    struct registry_key *found = twin_find(twin, database, number);
    if (found == NULL) {
        memory_fail_at(0);
        return;
    }
    struct bytes to_name = twin_name(to_number);
    enum registry_status status =
        is_copy ? registry_copy(twin->registry, found, to_database, to_name, twin->now_ms)
                : registry_rename(twin->registry, found, to_database, to_name, twin->now_ms);
    memory_fail_at(0);
    if (status != REGISTRY_OK) {
        twin->failures++;
        return;
    }
    if (to == key) {
        return;
    }
    if (to->is_there) {
        twin->expired_count += twin_is_expired(twin, to);
        twin_remove(twin, to);
    }
    *to = *key;
    key->is_there = is_copy;
}

static void twin_put_board(struct twin *twin) {
    uint32_t database;
    int number;
    struct twin_key *key = twin_pick(twin, &database, &number);
    struct twin_key fresh = {.is_there = true,
                             .expire_at_ms = REGISTRY_NO_EXPIRY,
                             .mark = twin->next_mark++,
                             .member_count = 1 + (uint32_t)random_below(&twin->random, 12)};
    struct board board;
    bool is_made = registry_create_board(twin->registry, twin_name(number), twin->now_ms, &board);
    bool is_put = is_made && fill_board(&board, fresh.mark, fresh.member_count) &&
                  registry_put_board(twin->registry, database, twin_name(number), &board,
                                     twin->now_ms) == REGISTRY_OK;
    memory_fail_at(0);
    if (!is_put) {
        twin->failures++;
        if (is_made) {
            registry_discard_board(twin->registry, &board);
        }
        return;
    }
    if (key->is_there) {
        twin->expired_count += twin_is_expired(twin, key);
        twin_remove(twin, key);
    }
    *key = fresh;
}

/* All keys of all databases as one sequence. */
static struct twin_key *twin_key_at(struct twin *twin, int index) {
    return &twin->keys[index / TWIN_NAMES][index % TWIN_NAMES];
}

static bool twin_has_time(struct twin *twin, int64_t time_ms) {
    for (int i = 0; i < TWIN_KEYS; i++) {
        const struct twin_key *key = twin_key_at(twin, i);
        if (key->is_there && key->expire_at_ms == time_ms) {
            return true;
        }
    }
    return false;
}

static void twin_set_expiry(struct twin *twin) {
    uint32_t database;
    int number;
    struct twin_key *key = twin_pick(twin, &database, &number);
    struct registry_key *found = twin_find(twin, database, number);
    /* No two keys expire at the same time, so that the order of expiry is known (a copy may have
     * the time of its source, though). */
    int64_t time_ms = REGISTRY_NO_EXPIRY;
    if (random_below(&twin->random, 5) != 0) {
        do {
            time_ms = twin->now_ms - 20 + (int64_t)random_below(&twin->random, 3000);
        } while (twin_has_time(twin, time_ms));
    }
    if (found != NULL) {
        if (registry_set_expiry(twin->registry, found, time_ms, false) == REGISTRY_OK) {
            key->expire_at_ms = time_ms;
        } else {
            twin->failures++;
        }
    }
    memory_fail_at(0);
}

static void twin_expire_due(struct twin *twin, uint32_t keys_max) {
    uint32_t expected = 0;
    bool is_clear = true; /* whether the expired keys are known: no ties at the limit */
    while (expected < keys_max) {
        struct twin_key *first = NULL;
        for (int i = 0; i < TWIN_KEYS; i++) {
            struct twin_key *key = twin_key_at(twin, i);
            if (twin_is_expired(twin, key) &&
                (first == NULL || key->expire_at_ms < first->expire_at_ms)) {
                first = key;
            }
        }
        if (first == NULL) {
            break;
        }
        first->is_there = false;
        is_clear = expected + 1 < keys_max || !twin_has_time(twin, first->expire_at_ms);
        twin->removed_count++;
        twin->expired_count++;
        expected++;
    }
    assert_int_equal(registry_expire_due(twin->registry, twin->now_ms, keys_max), expected);
    memory_fail_at(0);
    if (!is_clear) {
        twin_expire_due(twin, UINT32_MAX);
    }
}

static void twin_draw(struct twin *twin) {
    uint32_t database;
    int number;
    (void)twin_pick(twin, &database, &number);
    uint32_t alive = 0;
    for (int i = 0; i < TWIN_NAMES; i++) {
        struct twin_key *key = &twin->keys[database][i];
        alive += key->is_there && !twin_is_expired(twin, key);
    }
    struct registry_key *found =
        registry_random(twin->registry, database, random_next(&twin->random), twin->now_ms);
    memory_fail_at(0);
    assert_int_equal(found != NULL, alive > 0);
    if (found != NULL) {
        bool is_known = false;
        for (int i = 0; i < TWIN_NAMES; i++) {
            const struct twin_key *key = &twin->keys[database][i];
            is_known |= key->is_there && key->mark == board_mark(&found->board) &&
                        !twin_is_expired(twin, key) &&
                        bytes_equal(registry_name(found), twin_name(i));
        }
        assert_true(is_known);
    }
    /* Which expired keys it met is undefined; now all of them are removed. */
    uint64_t gone = registry_totals(twin->registry)->expired - twin->expired_count;
    uint32_t expected = 0;
    for (int i = 0; i < TWIN_KEYS; i++) {
        struct twin_key *key = twin_key_at(twin, i);
        if (twin_is_expired(twin, key)) {
            twin_look_up(twin, key);
            expected++;
        }
    }
    assert_true(gone <= expected);
    assert_int_equal(registry_expire_due(twin->registry, twin->now_ms, UINT32_MAX),
                     expected - gone);
}

static void twin_flush(struct twin *twin) {
    uint32_t database = (uint32_t)random_below(&twin->random, TWIN_DATABASES + 1);
    uint64_t expected = 0;
    for (uint32_t i = 0; i < TWIN_DATABASES; i++) {
        for (int j = 0; j < TWIN_NAMES; j++) {
            if (twin->keys[i][j].is_there && (i == database || database == TWIN_DATABASES)) {
                twin_remove(twin, &twin->keys[i][j]);
                expected++;
            }
        }
    }
    uint32_t which = database == TWIN_DATABASES ? REGISTRY_DATABASES : database;
    assert_int_equal(registry_flush(twin->registry, which), expected);
    memory_fail_at(0);
}

static void twin_step(struct twin *twin) {
    if (random_below(&twin->random, 4) == 0) {
        memory_fail_at(1 + random_below(&twin->random, 6));
    }
    uint64_t choice = random_below(&twin->random, 1000);
    if (choice < 300) {
        twin_create(twin);
    } else if (choice < 350) {
        twin_put_board(twin);
    } else if (choice < 450) {
        twin_take_away(twin);
    } else if (choice < 600) {
        twin_rename_or_copy(twin, choice < 510);
    } else if (choice < 750) {
        twin_set_expiry(twin);
    } else if (choice < 800) {
        twin_expire_due(twin, (uint32_t)random_below(&twin->random, 4));
    } else if (choice < 850) {
        twin_draw(twin);
    } else if (choice < 855) {
        twin_flush(twin);
    } else if (choice < 920) {
        twin->now_ms += (int64_t)random_below(&twin->random, 300);
    } else {
        uint64_t freed_before = registry_totals(twin->registry)->freed;
        uint32_t work = (uint32_t)random_below(&twin->random, 60);
        bool has_more = registry_free_step(twin->registry, work);
        assert_int_equal(has_more, registry_totals(twin->registry)->unfreed > 0);
        assert_true(registry_totals(twin->registry)->freed - freed_before <= work);
    }
    memory_fail_at(0);
}

static void assert_twins(const struct twin *twin) {
    assert_valid(twin->registry);
    int64_t next_ms = REGISTRY_NO_EXPIRY;
    for (uint32_t i = 0; i < TWIN_DATABASES; i++) {
        uint32_t count = 0;
        uint32_t expiring_count = 0;
        int64_t left_ms = 0;
        for (int j = 0; j < TWIN_NAMES; j++) {
            const struct twin_key *key = &twin->keys[i][j];
            const struct registry_key *found =
                registry_peek(twin->registry, i, twin_name(j), twin->now_ms);
            assert_int_equal(found != NULL, key->is_there && !twin_is_expired(twin, key));
            count += key->is_there;
            if (key->is_there && key->expire_at_ms != REGISTRY_NO_EXPIRY) {
                expiring_count++;
                left_ms += key->expire_at_ms - twin->now_ms;
                bool is_first = next_ms == REGISTRY_NO_EXPIRY || key->expire_at_ms < next_ms;
                next_ms = is_first ? key->expire_at_ms : next_ms;
            }
        }
        assert_int_equal(registry_count(twin->registry, i), count);
        assert_int_equal(registry_expiring_count(twin->registry, i), expiring_count);
        int64_t average_ms = left_ms > 0 ? left_ms / (int64_t)expiring_count : 0;
        assert_int_equal(registry_average_ttl_ms(twin->registry, i, twin->now_ms), average_ms);
    }
    assert_int_equal(registry_next_due(twin->registry), next_ms);
    assert_int_equal(registry_totals(twin->registry)->expired, twin->expired_count);
    assert_int_equal(registry_totals(twin->registry)->unfreed +
                         registry_totals(twin->registry)->freed,
                     twin->removed_count);
}

TEST(it_behaves_as_an_array_of_keys_does) {
    uint64_t live_before = memory_live_count();
    static struct twin twin;
    twin = (struct twin){.registry = create_registry(), .random = random_begin(__func__)};
    int steps = is_short_run() ? 4000 : 40000;
    for (int i = 0; i < steps; i++) {
        twin_step(&twin);
        assert_twins(&twin);
    }
    assert_true(twin.failures > 10);
    registry_destroy(twin.registry);
    assert_int_equal(memory_live_count(), live_before);
}

/* ---- many keys ---- */

TEST(many_small_boards_are_cheap) {
    size_t used_before = memory_used();
    uint64_t live_before = memory_live_count();
    struct registry *registry = create_registry();
#ifdef SKIPLIST_TINY
    enum { KEYS = 2000 };
#else
    enum { KEYS = 20000 };
#endif
    size_t boards_size = 0;
    for (int i = 0; i < KEYS; i++) {
        struct registry_key *key = create_key(registry, 0, formatted("board:%08d", i), 0);
        assert_true(fill_key(registry, key, (uint64_t)i, 10));
        boards_size += board_memory_size(&key->board);
    }
    size_t overhead = (memory_used() - used_before - boards_size) / KEYS;
    printf("%zu bytes a key beside its board, %zu a board of 10\n", overhead, boards_size / KEYS);
    assert_true(overhead <= 90);
    for (int i = 0; i < KEYS; i += 97) {
        assert_int_equal(board_mark(&find_key(registry, 0, formatted("board:%08d", i), 0)->board),
                         i);
    }
    for (int i = 0; i < KEYS - 10; i++) {
        registry_remove(registry, find_key(registry, 0, formatted("board:%08d", i), 0));
    }
    free_everything(registry);
    assert_valid(registry);
    /* Little is left: the list and the map have shrunk too. */
    assert_true(memory_used() - used_before <= 64 * 1024);
    registry_destroy(registry);
    assert_int_equal(memory_live_count(), live_before);
}

static int set_up_layouts(void **state) {
    (void)state;
    make_rules();
    return 0;
}

/* ---- listeners ---- */

/* Reported since the last check: "1:a 0:* " for key a of database 1, and for a flush. */
static char told[256];

static void note_change(void *context, uint32_t database, struct bytes name) {
    char *end = (char *)context + strlen(context);
    int size = name.at != NULL ? (int)name.size : 1;
    snprintf(end, sizeof told - strlen(context), "%u:%.*s ", database, size,
             name.at != NULL ? name.at : "*");
}

#define expect_told(expected)                                                                      \
    do {                                                                                           \
        assert_string_equal(told, (expected));                                                     \
        told[0] = '\0';                                                                            \
    } while (false)

REGISTRY_TEST(every_change_of_a_key_is_told_once_it_is_made) {
    registry_set_listener(registry, note_change, told);
    struct registry_key *key = create_key(registry, 0, "a", 1);
    expect_told("");
    assert_true(fill_key(registry, key, 1, 3));
    registry_tell_members(registry, key);
    expect_told("0:a ");
    registry_remove_range(registry, key, 0, 1);
    expect_told("0:a ");
    assert_int_equal(registry_set_expiry(registry, key, 50, false), REGISTRY_OK);
    expect_told("0:a ");
    assert_int_equal(registry_copy(registry, key, 1, BYTES("b"), 1), REGISTRY_OK);
    expect_told("1:b ");
    assert_int_equal(registry_rename(registry, key, 2, BYTES("c"), 1), REGISTRY_OK);
    expect_told("0:a 2:c ");
    registry_remove(registry, find_key(registry, 1, "b", 1));
    expect_told("1:b ");
    struct board board;
    assert_true(registry_create_board(registry, BYTES("b"), 0, &board));
    expect_told("");
    assert_int_equal(registry_put_board(registry, 1, BYTES("b"), &board, 1), REGISTRY_OK);
    expect_told("1:b ");
    registry_remove(registry, find_key(registry, 1, "b", 1));
    expect_told("1:b ");
    assert_null(find_key(registry, 2, "c", 50));
    expect_told("2:c ");
    (void)create_key(registry, 3, "d", 1);
    (void)create_key(registry, 5, "e", 1);
    assert_int_equal(registry_flush(registry, REGISTRY_DATABASES), 2);
    expect_told("3:* 5:* ");
}

REGISTRY_TEST(the_one_key_that_has_not_expired_is_drawn_among_thousands) {
    enum { KEYS = 16384, KEPT = 777 };
    for (int i = 0; i < KEYS; i++) {
        struct registry_key *key = create_key(registry, 0, formatted("key:%d", i), 1);
        if (i != KEPT) {
            assert_int_equal(registry_set_expiry(registry, key, 50, false), REGISTRY_OK);
        }
    }
    for (uint64_t i = 0; i < 16; i++) {
        const struct registry_key *drawn = registry_random(registry, 0, i << 60, 100);
        assert_non_null(drawn);
        assert_true(bytes_is(registry_name(drawn), "key:777"));
    }
    /* Expired keys are removed later, except a few. */
    assert_in_range(registry_totals(registry)->expired, 1, 16 * 64);
}

REGISTRY_TEST(what_comes_of_its_own_time_is_told) {
    registry_set_listener(registry, note_change, told);
    struct registry_key *key = create_key(registry, 0, "a", 1);
    assert_int_equal(registry_set_expiry(registry, key, 50, false), REGISTRY_OK);
    key = create_key(registry, 0, "b", 1);
    assert_int_equal(registry_set_expiry(registry, key, 60, false), REGISTRY_OK);
    told[0] = '\0';
    assert_int_equal(registry_expire_due(registry, 55, 9), 1);
    expect_told("0:a ");
    assert_null(registry_random(registry, 0, 7, 60));
    expect_told("0:b ");
}

REGISTRY_TEST(what_changes_nothing_is_not_told) {
    struct registry_key *key = create_key(registry, 0, "a", 1);
    registry_set_listener(registry, note_change, told);
    registry_take_back(registry, create_key(registry, 0, "new", 1));
    assert_int_equal(registry_rename(registry, key, 0, BYTES("a"), 1), REGISTRY_OK);
    assert_int_equal(registry_copy(registry, key, 0, BYTES("a"), 1), REGISTRY_OK);
    assert_int_equal(registry_flush(registry, 4), 0);
    assert_non_null(find_key(registry, 0, "a", 1));
    expect_told("");
    registry_set_listener(registry, NULL, NULL);
    registry_remove(registry, key);
    expect_told("");
}

TEST_MAIN(set_up_layouts, NULL)
