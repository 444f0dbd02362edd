/* Rollover of boards: sentence by sentence, and against a twin that is a list of keys and carries
 * out everything at its time. */
#include "tests/support/key_put.h"
#include "tests/support/test.h"

#include "codec/memory.h"
#include "codec/timestamp.h"
#include "skiplist/keyspace/registry.h"
#include "tests/support/layout_text.h"
#include "tests/support/random.h"

/* ---- helpers ---- */

/* The first letter of a name selects the rules of its new board. */
enum kind { PLAIN, DAYS, WEEKS, MONTHS, KINDS };
static struct rules kinds[KINDS];

static enum kind kind_of(struct bytes name) {
    return name.at[0] == 'd'   ? DAYS
           : name.at[0] == 'w' ? WEEKS
           : name.at[0] == 'm' ? MONTHS
                               : PLAIN;
}

static const struct rules *rules_for(void *context, struct bytes key) {
    (void)context;
    return &kinds[kind_of(key)];
}

static int make_kinds(void **state) {
    (void)state;
    static const char *const layouts[] = {"FIELD a 30 TIME 30 S", "FIELD a 30 TIME 27 MS",
                                          "FIELD a 30", "FIELD a 30 TIME 22 S LATEST"};
    char error[LAYOUT_ERROR_MAX];
    for (int i = 0; i < KINDS; i++) {
        if (layout_parse(bytes_from_text(layouts[i]), &kinds[i].layout, error) != LAYOUT_OK) {
            return -1;
        }
    }
    kinds[DAYS].period.unit = PERIOD_DAY;
    kinds[DAYS].period.every = 1;
    kinds[DAYS].period.zone_minutes = 480;
    kinds[DAYS].archives_max = RULES_ARCHIVES_ALL;
    kinds[WEEKS].period.unit = PERIOD_WEEK;
    kinds[WEEKS].period.every = 1;
    kinds[WEEKS].archives_max = 2;
    kinds[MONTHS].period.unit = PERIOD_MONTH;
    kinds[MONTHS].period.every = 1;
    kinds[MONTHS].period.zone_minutes = -210;
    kinds[MONTHS].archives_max = 0;
    return 0;
}

static struct registry *create_registry(void) {
    struct registry *registry = registry_create(0x5eed, rules_for, NULL);
    assert_non_null(registry);
    return registry;
}

static void assert_valid(const struct registry *registry) {
    const char *reason = "";
    if (!registry_validate(registry, &reason)) {
        fail_msg("%s", reason);
    }
}

static int64_t ms(const char *text) {
    int64_t time_us = 0;
    assert_true(timestamp_parse(bytes_from_text(text), &time_us));
    return time_us / 1000;
}

static struct registry_key *find(struct registry *registry, const char *name, int64_t now_ms) {
    return registry_find(registry, 0, bytes_from_text(name), now_ms);
}

/* Number of members on the board; -1: no such key. */
static int64_t count_of(struct registry *registry, const char *name, int64_t now_ms) {
    const struct registry_key *key = find(registry, name, now_ms);
    return key != NULL ? (int64_t)board_count(&key->board) : -1;
}

static bool fill(struct registry *registry, struct registry_key *key, uint64_t mark,
                 uint32_t count) {
    char member[32];
    for (uint32_t i = 0; i < count; i++) {
        int size = snprintf(member, sizeof member, "member:%u", i);
        if (!key_put(registry, key, (struct bytes){member, (size_t)size}, mark + count - i)) {
            return false;
        }
    }
    return true;
}

static struct registry_key *write_key(struct registry *registry, const char *name, uint32_t count,
                                      int64_t now_ms) {
    bool is_new;
    struct registry_key *key =
        registry_find_or_create(registry, 0, bytes_from_text(name), now_ms, &is_new);
    assert_non_null(key);
    assert_true(fill(registry, key, 0, count));
    return key;
}

/* As LB.CREATE does. */
static struct registry_key *create_key(struct registry *registry, const char *name, enum kind kind,
                                       int64_t now_ms) {
    struct rules rules = kinds[kind];
    bool is_new;
    rules.is_created = true;
    struct registry_key *key =
        registry_find_or_create_like(registry, 0, bytes_from_text(name), &rules, now_ms, &is_new);
    assert_non_null(key);
    assert_true(is_new);
    return key;
}

/* ---- sentences ---- */

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

REGISTRY_TEST(a_written_board_becomes_its_archive_and_is_gone) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    struct registry_key *key = write_key(registry, "daily", 3, now_ms);
    const struct rules *rules = registry_rules(key);
    assert_true(rules->period_start_ms == ms("2026-11-16T00:00:00+08:00"));
    assert_true(rules->period_end_ms == end_ms);
    assert_true(layout_time_first_us(&rules->layout) == rules->period_start_ms * 1000);
    assert_true(registry_next_due(registry) == end_ms);
    assert_int_equal(count_of(registry, "daily", end_ms - 1), 3);
    assert_int_equal(count_of(registry, "daily@2026-11-16", end_ms - 1), -1);
    assert_int_equal(count_of(registry, "daily", end_ms), -1);
    assert_int_equal(count_of(registry, "daily@2026-11-16", end_ms), 3);
    assert_true(registry_next_due(registry) == REGISTRY_NO_EXPIRY);
    assert_int_equal(registry_count(registry, 0), 1);
    assert_int_equal(registry_totals(registry)->rolled, 1);
    assert_valid(registry);
    /* The next write creates it again, in the period of that time. */
    key = write_key(registry, "daily", 1, end_ms);
    assert_true(registry_rules(key)->period_start_ms == end_ms);
    assert_valid(registry);
}

REGISTRY_TEST(a_created_board_stays_and_is_empty) {
    int64_t now_ms = ms("2026-11-16T12:00:00Z");
    int64_t end_ms = ms("2026-11-23T00:00:00Z");
    struct registry_key *key = create_key(registry, "week", WEEKS, now_ms);
    assert_true(fill(registry, key, 0, 5));
    assert_int_equal(count_of(registry, "week", end_ms), 0);
    assert_int_equal(count_of(registry, "week@2026-11-16", end_ms), 5);
    key = find(registry, "week", end_ms);
    assert_true(registry_rules(key)->is_created);
    assert_true(registry_rules(key)->period_start_ms == end_ms);
    const struct rules *archived = registry_rules(find(registry, "week@2026-11-16", end_ms));
    assert_false(archived->is_created);
    assert_int_equal(archived->period.unit, PERIOD_NONE);
    assert_valid(registry);
}

REGISTRY_TEST(an_archive_is_the_board_with_its_times_and_its_order) {
    int64_t now_ms = ms("2026-11-16T12:00:00Z");
    struct rules rules = kinds[DAYS];
    bool is_new;
    rules.cap = 7;
    rules.keeps_best = true;
    struct registry_key *key =
        registry_find_or_create_like(registry, 0, BYTES("k"), &rules, now_ms, &is_new);
    assert_non_null(key);
    for (int i = 0; i < 5; i++) {
        char member[2] = {(char)('e' - i), '\0'};
        assert_true(key_put(registry, key, bytes_from_text(member), 77));
    }
    int64_t start_us = layout_time_first_us(board_layout(&key->board));
    int64_t after_ms = now_ms + 3 * INT64_C(86400000);
    const struct registry_key *archive = find(registry, "k@2026-11-16", after_ms);
    assert_non_null(archive);
    assert_int_equal(registry_rules(archive)->cap, 7);
    assert_true(registry_rules(archive)->keeps_best);
    assert_true(layout_time_first_us(board_layout(&archive->board)) == start_us);
    for (uint32_t rank = 0; rank < 5; rank++) {
        assert_int_equal(board_at(&archive->board, rank).member.at[0], 'e' - (int)rank);
        assert_int_equal(board_at(&archive->board, rank).key, 77);
    }
}

REGISTRY_TEST(an_empty_board_leaves_no_archive) {
    int64_t now_ms = ms("2026-11-16T12:00:00Z");
    struct registry_key *key = create_key(registry, "day", DAYS, now_ms);
    for (int day = 1; day < 5; day++) {
        assert_int_equal(count_of(registry, "day", now_ms + day * INT64_C(86400000)), 0);
        assert_int_equal(registry_count(registry, 0), 1);
    }
    /* Nor does one that was large, with remains. */
    now_ms += 5 * INT64_C(86400000);
    key = find(registry, "day", now_ms);
    assert_true(fill(registry, key, 0, 5000));
    registry_remove_range(registry, key, 0, 5000);
    assert_int_equal(count_of(registry, "day", now_ms + 86400000), 0);
    assert_int_equal(registry_count(registry, 0), 1);
    assert_valid(registry);
    while (registry_free_step(registry, 100)) {}
    assert_valid(registry);
}

/* Large boards and their remains move as they are. */
REGISTRY_TEST(a_large_board_goes_over_at_once) {
    int64_t now_ms = ms("2026-11-16T12:00:00Z");
    struct registry_key *key = write_key(registry, "d", 9000, now_ms);
    registry_remove_range(registry, key, 100, 5000);
    uint64_t live_before = memory_live_count();
    assert_int_equal(registry_roll_due(registry, now_ms + 86400000, 10), 1);
    assert_in_range(memory_live_count() + 10 - live_before, 0, 20);
    assert_int_equal(count_of(registry, "d@2026-11-16", now_ms + 86400000), 4000);
    assert_valid(registry);
    while (registry_free_step(registry, 100)) {}
    assert_valid(registry);
}

REGISTRY_TEST(archives_live_for_their_number_of_periods) {
    int64_t week_ms = 7 * INT64_C(86400000);
    int64_t begin_ms = ms("2026-11-16T00:00:00Z");
    create_key(registry, "week", WEEKS, begin_ms); /* ARCHIVE 2 */
    for (int week = 0; week < 10; week++) {
        int64_t now_ms = begin_ms + week * week_ms;
        assert_true(fill(registry, find(registry, "week", now_ms), 0, 1 + (uint32_t)week));
        registry_expire_due(registry, now_ms, UINT32_MAX);
        assert_int_equal(registry_count(registry, 0), week < 2 ? week + 1 : 3);
    }
    int64_t now_ms = begin_ms + 9 * week_ms + week_ms / 2;
    assert_int_equal(count_of(registry, "week@2026-12-28", now_ms), -1);
    assert_int_equal(count_of(registry, "week@2027-01-04", now_ms), 8);
    assert_int_equal(count_of(registry, "week@2027-01-11", now_ms), 9);
    assert_int_equal(count_of(registry, "week", now_ms), 10);
    assert_true(registry_expiry(registry, find(registry, "week@2027-01-04", now_ms)) ==
                begin_ms + 10 * week_ms);
    /* Archives expire on time even if nobody writes. What is already too old never appears; a key that
     * has its name stays. */
    now_ms = begin_ms + 12 * week_ms;
    write_key(registry, "plain", 3, begin_ms + 9 * week_ms);
    assert_int_equal(registry_rename(registry, find(registry, "plain", begin_ms + 9 * week_ms), 0,
                                     BYTES("week@2027-01-18"), begin_ms + 9 * week_ms),
                     REGISTRY_OK);
    assert_int_equal(count_of(registry, "week@2027-01-18", now_ms), 3);
    assert_int_equal(count_of(registry, "week@2027-01-11", now_ms), -1);
    registry_expire_due(registry, now_ms, UINT32_MAX);
    assert_int_equal(registry_count(registry, 0), 2);
    assert_valid(registry);
}

REGISTRY_TEST(a_loaded_board_is_in_the_period_that_its_rules_say) {
    static char name_text[REGISTRY_NAME_MAX];
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    struct rules rules = kinds[DAYS];
    struct board board;
    rules_begin_period(&rules, now_ms);
    rules.cap = 2; /* loading more is allowed */
    assert_true(registry_create_board_like(registry, &rules, &board));
    for (int i = 0; i < 3; i++) {
        char member[2] = {(char)('e' - i), '\0'};
        struct board_entry entry = {.key = 77, .member = bytes_from_text(member)};
        assert_int_equal(board_append(&board, &entry, 1), BOARD_OK);
    }
    assert_int_equal(board_append_end(&board), BOARD_OK);
    memory_fail_at(1);
    assert_int_equal(registry_put_loaded(registry, 0, BYTES("d"), &board, now_ms),
                     REGISTRY_OUT_OF_MEMORY);
    memory_fail_at(0);
    assert_int_equal(board_count(&board), 3);
    /* At the time of the caller it has expired and its period is over; not before. */
    assert_int_equal(registry_put_loaded(registry, 0, BYTES("d"), &board, rules.period_end_ms + 5),
                     REGISTRY_OK);
    const struct registry_key *key = find(registry, "d", now_ms);
    assert_true(rules_equal(registry_rules(key), &rules));
    assert_true(registry_expiry(registry, key) == rules.period_end_ms + 5);
    assert_true(registry_next_due(registry) == rules.period_end_ms);
    assert_valid(registry);
    assert_int_equal(count_of(registry, "d@2026-11-16", rules.period_end_ms), 3);
    /* An archive may have a name longer than clients may use. */
    memset(name_text, 'x', sizeof name_text);
    struct bytes name = {name_text, sizeof name_text};
    assert_true(registry_create_board_like(registry, &kinds[PLAIN], &board));
    assert_int_equal(registry_put_loaded(registry, 0, name, &board, REGISTRY_NO_EXPIRY),
                     REGISTRY_OK);
    assert_non_null(registry_find(registry, 0, name, now_ms));
    assert_valid(registry);
}

REGISTRY_TEST(without_archives_the_members_are_gone) {
    int64_t now_ms = ms("2026-11-16T00:00:00Z");
    int64_t end_ms = ms("2026-12-01T00:00:00-03:30");
    write_key(registry, "m", 3, now_ms);
    struct registry_key *key = create_key(registry, "created", MONTHS, now_ms);
    assert_true(fill(registry, key, 0, 3000));
    assert_int_equal(count_of(registry, "created", end_ms), 0);
    assert_int_equal(count_of(registry, "m", end_ms), -1);
    assert_int_equal(registry_count(registry, 0), 1);
    assert_int_equal(registry_totals(registry)->unfreed, 2);
    assert_valid(registry);
    while (registry_free_step(registry, 100)) {}
    assert_valid(registry);
}

static struct registry_key *create_plain(struct registry *registry, const char *name,
                                         uint32_t count, int64_t now_ms) {
    bool is_new;
    struct registry_key *key = registry_find_or_create_like(registry, 0, bytes_from_text(name),
                                                            &kinds[PLAIN], now_ms, &is_new);
    assert_non_null(key);
    assert_true(fill(registry, key, 0, count));
    return key;
}

REGISTRY_TEST(what_has_the_archives_name_stays_and_the_archive_gets_a_number) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    write_key(registry, "daily", 3, now_ms);
    create_plain(registry, "daily@2026-11-16", 9, now_ms);
    create_plain(registry, "daily@2026-11-16.2", 8, now_ms);
    /* It lives when the period ends, and so it keeps its name, whenever somebody looks. */
    struct registry_key *key = create_plain(registry, "daily@2026-11-16.3", 7, now_ms);
    assert_int_equal(registry_set_expiry(registry, key, end_ms + 1000, false), REGISTRY_OK);
    /* At that moment this one has gone. */
    key = create_plain(registry, "daily@2026-11-16.4", 6, now_ms);
    assert_int_equal(registry_set_expiry(registry, key, end_ms, false), REGISTRY_OK);
    int64_t later_ms = end_ms + 5000;
    registry_expire_due(registry, later_ms, UINT32_MAX);
    assert_int_equal(count_of(registry, "daily@2026-11-16", later_ms), 9);
    assert_int_equal(count_of(registry, "daily@2026-11-16.2", later_ms), 8);
    assert_int_equal(count_of(registry, "daily@2026-11-16.3", later_ms), -1);
    assert_int_equal(count_of(registry, "daily@2026-11-16.4", later_ms), 3);
    assert_true(registry_expiry(registry, find(registry, "daily@2026-11-16.4", later_ms)) ==
                REGISTRY_NO_EXPIRY);
    assert_valid(registry);
}

REGISTRY_TEST(names_that_somebody_has_taken_on_purpose_do_not_hold_up_the_end) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    write_key(registry, "daily", 3, now_ms);
    create_plain(registry, "daily@2026-11-16", 1, now_ms);
    for (int i = 2; i < 3000; i++) {
        create_plain(registry, formatted("daily@2026-11-16.%d", i), 1, now_ms);
    }
    assert_int_equal(count_of(registry, "daily", end_ms), -1);
    assert_int_equal(registry_count(registry, 0), 3000);
    assert_int_equal(registry_member_count(registry, 0), 2999 + 3);
    assert_valid(registry);
}

/* The same period again, after the clock was set back. */
REGISTRY_TEST(no_archive_replaces_an_earlier_one) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    struct registry_key *key = create_key(registry, "daily", DAYS, now_ms);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_true(fill(registry, key, 0, i));
        assert_int_equal(registry_roll_due(registry, end_ms, UINT32_MAX), 1);
        assert_int_equal(registry_roll_ahead(registry, now_ms), 1);
        key = find(registry, "daily", now_ms);
    }
    assert_int_equal(count_of(registry, "daily@2026-11-16", now_ms), 1);
    assert_int_equal(count_of(registry, "daily@2026-11-16.2", now_ms), 2);
    assert_int_equal(count_of(registry, "daily@2026-11-16.3", now_ms), 3);
    assert_valid(registry);
}

REGISTRY_TEST(several_periods_without_anybody_are_one_roll) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    struct registry_key *key = create_key(registry, "day", DAYS, now_ms);
    assert_true(fill(registry, key, 0, 3));
    int64_t later_ms = ms("2026-12-24T12:00:00+08:00");
    assert_int_equal(registry_roll_due(registry, later_ms, UINT32_MAX), 1);
    assert_int_equal(registry_count(registry, 0), 2);
    assert_int_equal(count_of(registry, "day@2026-11-16", later_ms), 3);
    assert_true(registry_rules(find(registry, "day", later_ms))->period_start_ms ==
                ms("2026-12-24T00:00:00+08:00"));
}

TEST(an_expiry_and_a_period_come_in_their_order) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    for (int by_look_up = 0; by_look_up < 2; by_look_up++) {
        for (int difference = -1; difference <= 1; difference++) {
            struct registry *registry = create_registry();
            struct registry_key *key = create_key(registry, "day", DAYS, now_ms);
            assert_true(fill(registry, key, 0, 3));
            assert_int_equal(registry_set_expiry(registry, key, end_ms + difference, false),
                             REGISTRY_OK);
            int64_t later_ms = end_ms + 10;
            if (!by_look_up) {
                assert_int_equal(registry_expire_due(registry, later_ms, 10),
                                 difference < 0 ? 1 : 2);
            }
            assert_int_equal(count_of(registry, "day", later_ms), -1);
            assert_int_equal(count_of(registry, "day@2026-11-16", later_ms),
                             difference < 0 ? -1 : 3);
            assert_int_equal(registry_totals(registry)->expired, 1);
            assert_valid(registry);
            registry_destroy(registry);
        }
    }
}

/* The expiry belongs to the key: it stays if the key stays, and is removed with it. */
REGISTRY_TEST(an_expiry_does_not_go_over_to_the_archive) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    struct registry_key *created = create_key(registry, "x", DAYS, now_ms);
    assert_true(fill(registry, created, 0, 3));
    struct registry_key *written = write_key(registry, "d", 3, now_ms);
    assert_int_equal(registry_set_expiry(registry, created, end_ms + 5000, false), REGISTRY_OK);
    assert_int_equal(registry_set_expiry(registry, written, end_ms + 5000, false), REGISTRY_OK);
    assert_int_equal(registry_roll_due(registry, end_ms, 10), 2);
    assert_int_equal(registry_expiring_count(registry, 0), 1);
    assert_true(registry_expiry(registry, find(registry, "x", end_ms)) == end_ms + 5000);
    assert_int_equal(registry_expire_due(registry, end_ms + 5000, 10), 1);
    assert_int_equal(count_of(registry, "x@2026-11-16", end_ms + 5000), 3);
    assert_int_equal(count_of(registry, "d@2026-11-16", end_ms + 5000), 3);
    assert_valid(registry);
}

REGISTRY_TEST(a_renamed_board_rolls_under_its_new_name) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    struct registry_key *key = create_key(registry, "a", DAYS, now_ms);
    assert_true(fill(registry, key, 0, 3));
    assert_int_equal(registry_copy(registry, key, 5, BYTES("copy"), now_ms), REGISTRY_OK);
    assert_int_equal(registry_rename(registry, key, 0, BYTES("b"), now_ms), REGISTRY_OK);
    assert_valid(registry);
    assert_int_equal(registry_roll_due(registry, end_ms, 10), 2);
    assert_int_equal(count_of(registry, "a@2026-11-16", end_ms), -1);
    assert_int_equal(count_of(registry, "b@2026-11-16", end_ms), 3);
    assert_int_equal(count_of(registry, "b", end_ms), 0);
    assert_non_null(registry_find(registry, 5, BYTES("copy"), end_ms));
    assert_non_null(registry_find(registry, 5, BYTES("copy@2026-11-16"), end_ms));
    assert_valid(registry);
}

TEST(renaming_over_a_board_that_is_due_leaves_its_archive) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    for (int i = 0; i < 3; i++) {
        struct registry *registry = create_registry();
        write_key(registry, "day", 3, now_ms);
        struct registry_key *key = write_key(registry, "plain", 5, now_ms);
        struct board board;
        if (i == 0) {
            assert_int_equal(registry_rename(registry, key, 0, BYTES("day"), end_ms), REGISTRY_OK);
        } else if (i == 1) {
            assert_int_equal(registry_copy(registry, key, 0, BYTES("day"), end_ms), REGISTRY_OK);
        } else {
            assert_true(registry_create_board(registry, BYTES("day"), end_ms, &board));
            assert_int_equal(board_put(&board, BYTES("a"), 1), BOARD_OK);
            assert_int_equal(registry_put_board(registry, 0, BYTES("day"), &board, end_ms),
                             REGISTRY_OK);
        }
        assert_int_equal(count_of(registry, "day@2026-11-16", end_ms), 3);
        assert_int_equal(count_of(registry, "day", end_ms), i < 2 ? 5 : 1);
        assert_valid(registry);
        registry_destroy(registry);
    }
}

REGISTRY_TEST(keys_that_are_removed_or_flushed_do_not_roll) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    for (int i = 0; i < 1000; i++) {
        write_key(registry, formatted("d%d", i), 2, now_ms);
    }
    registry_remove(registry, find(registry, "d7", now_ms));
    assert_valid(registry);
    registry_flush(registry, 0);
    assert_true(registry_next_due(registry) == REGISTRY_NO_EXPIRY);
    assert_int_equal(registry_roll_due(registry, INT64_MAX, UINT32_MAX), 0);
    write_key(registry, "d", 2, now_ms);
    assert_valid(registry);
    while (registry_free_step(registry, 100)) {}
    assert_int_equal(registry_roll_due(registry, now_ms + 86400000, UINT32_MAX), 1);
    assert_valid(registry);
}

REGISTRY_TEST(ten_thousand_boards_roll_a_few_at_a_time_and_are_right_at_once) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    enum { BOARDS = 10000 };
    char name[32];
    for (int i = 0; i < BOARDS; i++) {
        write_key(registry, formatted("d%d", i), 1 + (uint32_t)i % 3, now_ms);
    }
    struct random random = random_begin(__func__);
    uint32_t left = BOARDS;
    while (left > 0) {
        int i = (int)random_below(&random, BOARDS);
        snprintf(name, sizeof name, "d%d", i);
        assert_null(registry_peek(registry, 0, bytes_from_text(name), end_ms));
        if (i % 2 == 0) {
            assert_int_equal(count_of(registry, name, end_ms), -1);
        }
        strcat(name, "@2026-11-16");
        assert_int_equal(count_of(registry, name, end_ms), 1 + i % 3);
        assert_in_range(registry_roll_due(registry, end_ms, 16), 0, 16);
        left = BOARDS - (uint32_t)registry_totals(registry)->rolled;
    }
    assert_int_equal(registry_count(registry, 0), BOARDS);
    assert_valid(registry);
}

REGISTRY_TEST(a_key_drawn_is_one_that_is_there) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    write_key(registry, "day", 3, now_ms);
    const struct registry_key *drawn = registry_random(registry, 0, 5, now_ms + 86400000);
    assert_true(bytes_equal(registry_name(drawn), BYTES("day@2026-11-16")));
}

REGISTRY_TEST(the_longest_names_have_archives) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    static char name[REGISTRY_KEY_MAX + 11];
    bool is_new;
    memset(name, 'd', REGISTRY_KEY_MAX);
    struct bytes base = {name, REGISTRY_KEY_MAX};
    struct registry_key *key = registry_find_or_create(registry, 0, base, now_ms, &is_new);
    assert_non_null(key);
    assert_true(fill(registry, key, 0, 3));
    memcpy(name + REGISTRY_KEY_MAX, "@2026-11-16", 11);
    struct bytes archive = {name, sizeof name};
    assert_non_null(registry_find(registry, 0, archive, now_ms + 86400000));
    assert_valid(registry);
}

REGISTRY_TEST(a_clock_that_steps_back_undoes_nothing) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    write_key(registry, "day", 3, now_ms);
    assert_int_equal(count_of(registry, "day", end_ms), -1);
    assert_int_equal(count_of(registry, "day", now_ms), -1);
    assert_int_equal(count_of(registry, "day@2026-11-16", now_ms), 3);
    /* A board of the next day does not roll over earlier because of that. */
    write_key(registry, "day", 2, end_ms);
    assert_int_equal(registry_roll_due(registry, now_ms, 10), 0);
    assert_int_equal(count_of(registry, "day", now_ms), 2);
    assert_valid(registry);
}

/* ---- manual rollover ---- */

REGISTRY_TEST(rolling_by_hand_is_at_any_time) {
    struct registry_key *key = write_key(registry, "plain", 3, 1000);
    assert_int_equal(registry_roll(registry, key, BYTES("old"), NULL, REGISTRY_NO_EXPIRY, 1000),
                     REGISTRY_OK);
    assert_int_equal(count_of(registry, "plain", 1000), -1);
    assert_int_equal(count_of(registry, "old", 1000), 3);
    assert_valid(registry);
    key = create_key(registry, "season", PLAIN, 1000);
    assert_true(fill(registry, key, 0, 5));
    assert_int_equal(registry_roll(registry, key, BYTES("season:1"), NULL, 5000, 1000),
                     REGISTRY_OK);
    assert_int_equal(count_of(registry, "season", 1000), 0);
    assert_int_equal(count_of(registry, "season:1", 4999), 5);
    assert_int_equal(count_of(registry, "season:1", 5000), -1);
    assert_valid(registry);
    /* An empty board gets no archive, and may get other rules. */
    struct rules next = kinds[PLAIN];
    next.is_created = true;
    layout_set_start(&next.layout, 0);
    key = find(registry, "season", 1000);
    assert_int_equal(registry_roll(registry, key, BYTES("season:2"), &next, 5000, 1000),
                     REGISTRY_OK);
    assert_int_equal(count_of(registry, "season:2", 1000), -1);
    assert_true(layout_time_first_us(board_layout(&find(registry, "season", 1000)->board)) == 0);
    /* So may one created by a write, which then stays. */
    key = write_key(registry, "plain2", 3, 1000);
    assert_int_equal(registry_roll(registry, key, BYTES("before"), &next, REGISTRY_NO_EXPIRY, 1000),
                     REGISTRY_OK);
    assert_int_equal(count_of(registry, "plain2", 1000), 0);
    assert_int_equal(count_of(registry, "before", 1000), 3);
    assert_int_equal(registry_totals(registry)->rolled, 0);
    assert_valid(registry);
}

REGISTRY_TEST(rolling_by_hand_leaves_the_period_as_it_is) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    struct registry_key *key = create_key(registry, "day", DAYS, now_ms);
    assert_true(fill(registry, key, 0, 5));
    assert_int_equal(registry_roll(registry, key, BYTES("noon"), NULL, REGISTRY_NO_EXPIRY, now_ms),
                     REGISTRY_OK);
    assert_valid(registry);
    assert_true(fill(registry, find(registry, "day", now_ms), 0, 2));
    assert_int_equal(count_of(registry, "day@2026-11-16", end_ms), 2);
    assert_int_equal(count_of(registry, "noon", end_ms), 5);
    assert_int_equal(registry_rules(find(registry, "noon", end_ms))->period.unit, PERIOD_NONE);
    assert_valid(registry);
}

/* ---- listeners ---- */

struct told {
    char text[256];
};

static void note_told(void *context, uint32_t database, struct bytes name) {
    struct told *told = context;
    size_t size = strlen(told->text);
    snprintf(told->text + size, sizeof told->text - size, "%u:%.*s ", database, (int)name.size,
             name.at);
}

REGISTRY_TEST(both_names_have_changed) {
    struct told told = {.text = ""};
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    write_key(registry, "day", 3, now_ms);
    create_key(registry, "empty", DAYS, now_ms);
    registry_set_listener(registry, note_told, &told);
    assert_int_equal(count_of(registry, "day@2026-11-16", now_ms + 86400000), 3);
    assert_string_equal(told.text, "0:day@2026-11-16 0:day ");
    told.text[0] = '\0';
    struct registry_key *key = find(registry, "day@2026-11-16", now_ms + 86400000);
    assert_string_equal(told.text, "");
    assert_int_equal(registry_roll(registry, key, BYTES("x"), NULL, REGISTRY_NO_EXPIRY, now_ms),
                     REGISTRY_OK);
    assert_string_equal(told.text, "0:x 0:day@2026-11-16 ");
}

/* A name owned by a listener, which frees it when the key has changed. */
struct kept_name {
    char *text;
    unsigned told_count;
};

static void forget_name(void *context, uint32_t database, struct bytes name) {
    struct kept_name *kept = context;
    assert_int_equal(database, 0);
    if (kept->text != NULL && bytes_equal(name, bytes_from_text(kept->text))) {
        kept->told_count++;
        free(kept->text);
        kept->text = NULL;
    }
}

TEST(a_name_may_be_gone_as_soon_as_it_has_changed) {
    static const struct {
        const char *name;
        int64_t after_ms;
        bool has_memory, has_changed;
    } samples[] = {
        {"day", 0, true, false},
        {"day", 86400000, true, true},
        {"day", 86400000, false, true},
        {"day@2026-11-16", 0, true, false},
        {"day@2026-11-16", 86400000, true, true},
        {"day@2026-11-16", 86400000, false, true},
        {"day@2026-11-15", 86400000, true, false},
        {"expires", 999, true, false},
        {"expires", 1000, true, true},
        {"nothing", 86400000, true, false},
        {"nothing@2026-11-16", 86400000, true, false},
    };
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct registry *registry = create_registry();
        write_key(registry, "day", 3, now_ms);
        struct registry_key *key = write_key(registry, "expires", 3, now_ms);
        assert_int_equal(registry_set_expiry(registry, key, now_ms + 1000, false), REGISTRY_OK);
        struct kept_name kept = {.text = strdup(samples[i].name)};
        registry_set_listener(registry, forget_name, &kept);
        memory_fail_at(samples[i].has_memory ? 0 : 1);
        registry_catch_up(registry, 0, bytes_from_text(kept.text), now_ms + samples[i].after_ms);
        memory_fail_at(0);
        assert_int_equal(kept.told_count, samples[i].has_changed);
        registry_set_listener(registry, NULL, NULL);
        free(kept.text);
        assert_valid(registry);
        registry_destroy(registry);
    }
}

/* ---- memory ---- */

static struct registry *create_small_world(int64_t now_ms) {
    struct registry *registry = create_registry();
    for (int i = 0; i < 40; i++) {
        write_key(registry, formatted("plain%d", i), 2, now_ms);
    }
    struct registry_key *key = create_key(registry, "week", WEEKS, now_ms);
    CHECK(fill(registry, key, 0, 7));
    write_key(registry, "day", 5, now_ms);
    key = create_key(registry, "x", MONTHS, now_ms);
    CHECK(fill(registry, key, 0, 3000));
    return registry;
}

/* Operations to try when the week, the day and the month are over. */
static bool try_find(struct registry *registry, const char *name, int64_t now_ms) {
    return find(registry, name, now_ms) != NULL;
}

static bool try_week(struct registry *registry, int64_t now_ms) {
    return try_find(registry, "week", now_ms);
}

static bool try_week_archive(struct registry *registry, int64_t now_ms) {
    return try_find(registry, "week@2026-11-23", now_ms);
}

static bool try_day_archive(struct registry *registry, int64_t now_ms) {
    return try_find(registry, "day@2026-11-29", now_ms);
}

static bool try_month(struct registry *registry, int64_t now_ms) {
    return try_find(registry, "x", now_ms);
}

static bool try_write(struct registry *registry, int64_t now_ms) {
    bool is_new;
    return registry_find_or_create(registry, 0, BYTES("day"), now_ms, &is_new) != NULL;
}

static bool try_write_archive(struct registry *registry, int64_t now_ms) {
    bool is_new;
    return registry_find_or_create(registry, 0, BYTES("day@2026-11-29"), now_ms, &is_new) != NULL;
}

static bool try_create(struct registry *registry, int64_t now_ms) {
    bool is_new;
    return registry_find_or_create_like(registry, 0, BYTES("day"), &kinds[DAYS], now_ms, &is_new) !=
           NULL;
}

static bool try_rename(struct registry *registry, int64_t now_ms) {
    struct registry_key *key = find(registry, "plain3", now_ms);
    return registry_rename(registry, key, 0, BYTES("day"), now_ms) == REGISTRY_OK;
}

static bool try_copy(struct registry *registry, int64_t now_ms) {
    const struct registry_key *key = find(registry, "plain3", now_ms);
    return registry_copy(registry, key, 0, BYTES("day@2026-11-29"), now_ms) == REGISTRY_OK;
}

static bool try_roll_due(struct registry *registry, int64_t now_ms) {
    registry_roll_due(registry, now_ms, UINT32_MAX);
    return registry_next_due(registry) > now_ms;
}

static bool try_roll(struct registry *registry, int64_t now_ms) {
    struct registry_key *key = find(registry, "plain3", now_ms);
    return registry_roll(registry, key, BYTES("day"), NULL, now_ms + 1000, now_ms) == REGISTRY_OK;
}

/* What is in the registry, including what is due. */
static uint64_t census(const struct registry *registry) {
    uint64_t sum = 0;
    static const char *const names[] = {"week",          "day", "x", "plain3", "week@2026-11-23",
                                        "day@2026-11-29"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct registry_key *key =
            registry_peek(registry, 0, bytes_from_text(names[i]), INT64_MIN);
        sum = sum * 10000 + (key != NULL ? board_count(&key->board) + 1 : 0);
    }
    return sum * 1000 + registry_count(registry, 0);
}

TEST(without_memory_nothing_rolls_and_nobody_sees_what_is_over) {
    bool (*const tries[])(struct registry *, int64_t) = {
        try_week,   try_week_archive, try_day_archive, try_month,    try_write, try_write_archive,
        try_create, try_rename,       try_copy,        try_roll_due, try_roll};
    int64_t now_ms = ms("2026-11-29T22:00:00+08:00");
    int64_t later_ms = ms("2026-12-01T12:00:00+08:00");
    for (size_t i = 0; i < COUNT_OF(tries); i++) {
        bool is_done = false;
        uint64_t failures = 0;
        for (uint64_t nth = 1; !is_done; nth++) {
            uint64_t live_before = memory_live_count();
            struct registry *registry = create_small_world(now_ms);
            uint64_t before = census(registry);
            uint64_t requests = memory_requests();
            memory_fail_at(nth);
            is_done = tries[i](registry, later_ms);
            bool is_reached = memory_requests() - requests >= nth;
            memory_fail_at(0);
            assert_valid(registry);
            if (!is_done) {
                failures++;
                assert_true(is_reached);
                /* roll_due may have rolled over some boards, and rename the neighbours of its key,
                 * but each as a whole. */
                if (registry_totals(registry)->rolled == 0) {
                    assert_true(census(registry) == before);
                }
                assert_true(tries[i](registry, later_ms + 1));
                assert_valid(registry);
            }
            registry_roll_due(registry, later_ms + 1, UINT32_MAX);
            assert_int_equal(count_of(registry, "week@2026-11-23", later_ms + 1), 7);
            assert_valid(registry);
            registry_destroy(registry);
            assert_int_equal(memory_live_count(), live_before);
        }
        assert_true(failures > 0);
    }
}

/* A command sees one state: what could not be rolled over is not rolled over by its next
 * look-up. */
REGISTRY_TEST(a_look_up_that_has_failed_fails_for_the_millisecond) {
    int64_t now_ms = ms("2026-11-16T12:00:00+08:00");
    int64_t end_ms = ms("2026-11-17T00:00:00+08:00");
    bool is_new;
    write_key(registry, "day", 3, now_ms);
    memory_fail_at(1);
    assert_null(find(registry, "day@2026-11-16", end_ms));
    memory_fail_at(0);
    assert_null(find(registry, "day@2026-11-16", end_ms));
    assert_null(find(registry, "day", end_ms));
    assert_null(registry_find_or_create(registry, 0, BYTES("day"), end_ms, &is_new));
    assert_non_null(find(registry, "day@2026-11-16", end_ms + 1));
    assert_valid(registry);
}

/* A million periodic boards should cost little more than others. */
TEST(waiting_for_a_period_is_cheap) {
    enum { BOARDS = 20000 };
    size_t sizes[2];
    for (int periodic = 0; periodic < 2; periodic++) {
        struct registry *registry = create_registry();
        size_t before = memory_used();
        for (int i = 0; i < BOARDS; i++) {
            write_key(registry, formatted("%cabcdefghijk%06d", periodic ? 'd' : 'p', i), 1, 0);
        }
        sizes[periodic] = (memory_used() - before) / BOARDS;
        registry_destroy(registry);
    }
    printf("%zu bytes a board, %zu with a period\n", sizes[0], sizes[1]);
#ifndef SKIPLIST_TINY
    assert_true(sizes[1] <= sizes[0] + 48);
#endif
}

/* ---- the twin ---- */

enum { TWIN_KEYS = 200, TWIN_NAME = 96, TWIN_DATABASES = 2 };

struct twin_key {
    bool is_there;
    uint32_t database;
    char name[TWIN_NAME];
    struct rules rules;
    uint64_t mark;
    uint32_t count;
    int64_t expire_at_ms;
};

struct twin {
    struct registry *registry;
    struct random random;
    int64_t now_ms;
    uint64_t marks;
    struct twin_key keys[TWIN_KEYS];
};

static struct twin_key *twin_find(struct twin *twin, uint32_t database, const char *name) {
    for (int i = 0; i < TWIN_KEYS; i++) {
        struct twin_key *key = &twin->keys[i];
        if (key->is_there && key->database == database && strcmp(key->name, name) == 0) {
            return key;
        }
    }
    return NULL;
}

/* A slot for a key of this name; an existing key is removed. */
static struct twin_key *twin_make(struct twin *twin, uint32_t database, const char *name) {
    struct twin_key *key = twin_find(twin, database, name);
    for (int i = 0; key == NULL; i++) {
        assert_true(i < TWIN_KEYS);
        key = twin->keys[i].is_there ? NULL : &twin->keys[i];
    }
    key->is_there = true;
    key->database = database;
    strcpy(key->name, name);
    key->expire_at_ms = REGISTRY_NO_EXPIRY;
    return key;
}

static void twin_begin_period(struct twin_key *key, int64_t now_ms) {
    struct rules *rules = &key->rules;
    if (rules->period.unit != PERIOD_NONE) {
        rules->period_start_ms = period_start(&rules->period, now_ms);
        rules->period_end_ms = period_start_after(&rules->period, rules->period_start_ms, 1);
    }
}

static void twin_archive(struct twin *twin, const struct twin_key *key, const char *name,
                         int64_t expire_at_ms) {
    struct twin_key copy = *key;
    struct twin_key *archive = twin_make(twin, key->database, name);
    archive->rules = copy.rules;
    archive->rules.is_created = false;
    archive->rules.period = (struct period){.unit = PERIOD_NONE};
    archive->mark = copy.mark;
    archive->count = copy.count;
    archive->expire_at_ms = expire_at_ms;
}

static void twin_roll(struct twin *twin, struct twin_key *key) {
    const struct rules *rules = &key->rules;
    char date[PERIOD_NAME_TEXT_MAX];
    char name[TWIN_NAME];
    size_t size = period_print_name(date, &rules->period, rules->period_start_ms);
    snprintf(name, sizeof name, "%.60s@%.*s", key->name, (int)size, date);
    const struct twin_key *taken = twin_find(twin, key->database, name);
    for (int i = 2; taken != NULL && (taken->expire_at_ms == REGISTRY_NO_EXPIRY ||
                                      taken->expire_at_ms > rules->period_end_ms);
         i++) {
        snprintf(name, sizeof name, "%.60s@%.*s.%d", key->name, (int)size, date, i);
        taken = twin_find(twin, key->database, name);
    }
    if (key->count > 0 && rules->archives_max > 0) {
        int64_t end_ms = rules->period_end_ms;
        for (uint32_t i = 0; rules->archives_max != RULES_ARCHIVES_ALL && i < rules->archives_max;
             i++) {
            end_ms = period_start_after(&rules->period, end_ms, 1);
        }
        twin_archive(twin, key, name,
                     rules->archives_max == RULES_ARCHIVES_ALL ? REGISTRY_NO_EXPIRY : end_ms);
    }
    key->count = 0;
    key->is_there = rules->is_created;
    twin_begin_period(key, rules->period_end_ms);
}

/* Carry out everything that is due, in order. */
static void twin_catch_up(struct twin *twin) {
    for (;;) {
        struct twin_key *first = NULL;
        int64_t first_ms = INT64_MAX;
        bool is_roll = false;
        for (int i = 0; i < TWIN_KEYS; i++) {
            struct twin_key *key = &twin->keys[i];
            if (!key->is_there) {
                continue;
            }
            /* At the same time the end of a period precedes the expiry of its key. */
            if (key->rules.period.unit != PERIOD_NONE && key->rules.period_end_ms < first_ms) {
                first = key;
                first_ms = key->rules.period_end_ms;
                is_roll = true;
            }
            if (key->expire_at_ms != REGISTRY_NO_EXPIRY && key->expire_at_ms < first_ms) {
                first = key;
                first_ms = key->expire_at_ms;
                is_roll = false;
            }
        }
        if (first == NULL || first_ms > twin->now_ms) {
            return;
        }
        if (is_roll) {
            twin_roll(twin, first);
        } else {
            first->is_there = false;
        }
    }
}

/* The name of a board, or now and then that of an existing or possible archive. */
static const char *twin_name(struct twin *twin, bool may_be_archive) {
    static const char *const names[] = {"day", "day2", "week", "week2", "month", "plain", "other"};
    static char picked[TWIN_NAME];
    snprintf(picked, sizeof picked, "%s",
             names[random_below(&twin->random, COUNT_OF(names))]);
    if (may_be_archive && random_below(&twin->random, 3) == 0) {
        int index = (int)random_below(&twin->random, TWIN_KEYS);
        for (int i = 0; i < TWIN_KEYS; i++) {
            const struct twin_key *key = &twin->keys[(index + i) % TWIN_KEYS];
            if (key->is_there && strchr(key->name, '@') != NULL) {
                return strcpy(picked, key->name);
            }
        }
    }
    return picked;
}

static uint32_t twin_database(struct twin *twin) {
    return (uint32_t)random_below(&twin->random, TWIN_DATABASES);
}

static struct registry_key *twin_check(struct twin *twin, uint32_t database, const char *name) {
    struct registry_key *found =
        registry_find(twin->registry, database, bytes_from_text(name), twin->now_ms);
    const struct twin_key *key = twin_find(twin, database, name);
    if ((found != NULL) != (key != NULL)) {
        fail_msg("%s is %sthere", name, found != NULL ? "" : "not ");
    }
    if (found == NULL) {
        return NULL;
    }
    const struct rules *rules = registry_rules(found);
    assert_int_equal(board_count(&found->board), key->count);
    if (key->count > 0) {
        assert_int_equal(board_at(&found->board, 0).key, key->mark + key->count);
    }
    assert_true(registry_expiry(twin->registry, found) == key->expire_at_ms);
    assert_true(period_equal(&rules->period, &key->rules.period));
    assert_int_equal(rules->is_created, key->rules.is_created);
    if (rules->period.unit != PERIOD_NONE) {
        assert_true(rules->period_start_ms == key->rules.period_start_ms);
        assert_true(rules->period_end_ms == key->rules.period_end_ms);
    }
    return found;
}

static void step_write(struct twin *twin) {
    const char *name = twin_name(twin, false);
    uint32_t database = twin_database(twin);
    bool is_created = random_below(&twin->random, 2) == 0;
    struct rules rules = kinds[random_below(&twin->random, KINDS)];
    bool is_new;
    rules.is_created = true;
    struct registry_key *found =
        is_created ? registry_find_or_create_like(twin->registry, database, bytes_from_text(name),
                                                  &rules, twin->now_ms, &is_new)
                   : registry_find_or_create(twin->registry, database, bytes_from_text(name),
                                             twin->now_ms, &is_new);
    struct twin_key *key = twin_find(twin, database, name);
    assert_non_null(found);
    assert_int_equal(is_new, key == NULL);
    if (is_new) {
        key = twin_make(twin, database, name);
        key->rules = is_created ? rules : kinds[kind_of(bytes_from_text(name))];
        key->count = 0;
        twin_begin_period(key, twin->now_ms);
    }
    if (key->count == 0) {
        key->mark = 1000 * ++twin->marks;
        key->count = is_created && is_new ? 0 : 1 + (uint32_t)random_below(&twin->random, 30);
        assert_true(fill(twin->registry, found, key->mark, key->count));
    }
}

static void step_remove(struct twin *twin) {
    const char *name = twin_name(twin, true);
    uint32_t database = twin_database(twin);
    struct registry_key *found = twin_check(twin, database, name);
    if (found != NULL) {
        registry_remove(twin->registry, found);
        twin_find(twin, database, name)->is_there = false;
    }
}

/* No board with a period gets the name of an archive: the order of two periods that end at the same
 * time is undefined. */
static void step_rename_or_copy(struct twin *twin) {
    char from[TWIN_NAME];
    char to[TWIN_NAME];
    uint32_t database = twin_database(twin);
    uint32_t to_database = twin_database(twin);
    strcpy(from, twin_name(twin, true));
    struct registry_key *found = twin_check(twin, database, from);
    strcpy(to, twin_name(twin, found != NULL && registry_rules(found)->period.unit == PERIOD_NONE));
    if (found == NULL) {
        return;
    }
    bool is_copy = random_below(&twin->random, 2) == 0;
    struct bytes to_name = bytes_from_text(to);
    assert_int_equal(
        is_copy ? registry_copy(twin->registry, found, to_database, to_name, twin->now_ms)
                : registry_rename(twin->registry, found, to_database, to_name, twin->now_ms),
        REGISTRY_OK);
    if (database == to_database && strcmp(from, to) == 0) {
        return;
    }
    struct twin_key copy = *twin_find(twin, database, from);
    twin_find(twin, database, from)->is_there = is_copy;
    struct twin_key *key = twin_make(twin, to_database, to);
    copy.database = to_database;
    strcpy(copy.name, to);
    *key = copy;
}

static void step_expire(struct twin *twin) {
    static const int64_t spans_ms[] = {1, 3600000, 86400000, 14 * INT64_C(86400000)};
    const char *name = twin_name(twin, true);
    uint32_t database = twin_database(twin);
    struct registry_key *found = twin_check(twin, database, name);
    if (found != NULL) {
        struct twin_key *key = twin_find(twin, database, name);
        key->expire_at_ms = twin->now_ms + spans_ms[random_below(&twin->random, 4)];
        if (random_below(&twin->random, 4) == 0) {
            key->expire_at_ms = REGISTRY_NO_EXPIRY;
        } else if (random_below(&twin->random, 4) == 0 && key->rules.period.unit != PERIOD_NONE) {
            key->expire_at_ms = key->rules.period_end_ms;
        }
        assert_int_equal(registry_set_expiry(twin->registry, found, key->expire_at_ms, false),
                         REGISTRY_OK);
    }
}

static void step_roll_by_hand(struct twin *twin) {
    char name[TWIN_NAME];
    char archive[TWIN_NAME];
    uint32_t database = twin_database(twin);
    strcpy(name, twin_name(twin, true));
    strcpy(archive, twin_name(twin, true));
    struct registry_key *found = twin_check(twin, database, name);
    if (found == NULL || twin_check(twin, database, archive) != NULL) {
        return;
    }
    struct twin_key *key = twin_find(twin, database, name);
    bool is_kept = key->rules.is_created || random_below(&twin->random, 2) == 0;
    struct rules next;
    rules_copy(registry_rules(found), &next);
    next.is_created = true;
    assert_int_equal(registry_roll(twin->registry, found, bytes_from_text(archive),
                                   is_kept && !key->rules.is_created ? &next : NULL,
                                   twin->now_ms + 5000, twin->now_ms),
                     REGISTRY_OK);
    if (key->count > 0) {
        twin_archive(twin, key, archive, twin->now_ms + 5000);
    }
    key->count = 0;
    key->is_there = is_kept;
    key->rules.is_created = true;
}

/* To the next event, close to it, or any time. */
static void step_clock(struct twin *twin) {
    static const int64_t spans_ms[] = {
        1, 1000, 3600000, 86400000, 5 * INT64_C(86400000), 40 * INT64_C(86400000)};
    int64_t due_ms = registry_next_due(twin->registry);
    int64_t to_ms = twin->now_ms + spans_ms[random_below(&twin->random, 6)];
    if (due_ms != REGISTRY_NO_EXPIRY && random_below(&twin->random, 2) == 0) {
        to_ms = due_ms + (int64_t)random_below(&twin->random, 3) - 1;
    }
    twin->now_ms = to_ms > twin->now_ms ? to_ms : twin->now_ms;
    twin_catch_up(twin);
}

static void step_tick(struct twin *twin) {
    registry_roll_due(twin->registry, twin->now_ms, (uint32_t)random_below(&twin->random, 4));
    registry_expire_due(twin->registry, twin->now_ms, (uint32_t)random_below(&twin->random, 4));
    (void)registry_free_step(twin->registry, (uint32_t)random_below(&twin->random, 100));
}

static void step_look(struct twin *twin) {
    twin_check(twin, twin_database(twin), twin_name(twin, true));
}

struct counting {
    struct twin *twin;
    uint32_t database;
    uint32_t count;
};

static void count_key(void *context, const struct registry_key *key) {
    struct counting *counting = context;
    char name[TWIN_NAME];
    struct bytes bytes = registry_name(key);
    memcpy(name, bytes.at, bytes.size);
    name[bytes.size] = '\0';
    if (twin_find(counting->twin, counting->database, name) == NULL) {
        fail_msg("%s is there", name);
    }
    counting->count++;
}

static void twin_compare(struct twin *twin) {
    registry_roll_due(twin->registry, twin->now_ms, UINT32_MAX);
    assert_valid(twin->registry);
    for (uint32_t database = 0; database < TWIN_DATABASES; database++) {
        struct counting counting = {.twin = twin, .database = database};
        uint32_t count = 0;
        registry_each(twin->registry, database, twin->now_ms, count_key, &counting);
        for (int i = 0; i < TWIN_KEYS; i++) {
            count += twin->keys[i].is_there && twin->keys[i].database == database;
        }
        assert_int_equal(counting.count, count);
    }
    for (int i = 0; i < TWIN_KEYS; i++) {
        if (twin->keys[i].is_there) {
            twin_check(twin, twin->keys[i].database, twin->keys[i].name);
        }
    }
}

/* The twin must not run out of slots for archives that are kept for ever. */
static void twin_tidy(struct twin *twin) {
    int count = 0;
    for (int i = 0; i < TWIN_KEYS; i++) {
        count += twin->keys[i].is_there;
    }
    if (count < TWIN_KEYS / 2) {
        return;
    }
    registry_flush(twin->registry, REGISTRY_DATABASES);
    for (int i = 0; i < TWIN_KEYS; i++) {
        twin->keys[i].is_there = false;
    }
}

TEST(a_registry_of_periods_is_as_its_naive_twin) {
    static void (*const steps[])(struct twin *) = {
        step_write,          step_write,  step_write,        step_write, step_remove,
        step_rename_or_copy, step_expire, step_roll_by_hand, step_clock, step_clock,
        step_tick,           step_look,   step_look};
    static struct twin twin;
    twin = (struct twin){.registry = create_registry(), .random = random_begin(__func__)};
    twin.now_ms = ms("2026-02-26T23:59:00Z");
    int count = is_short_run() ? 20000 : 100000;
    for (int step = 0; step < count; step++) {
        steps[random_below(&twin.random, COUNT_OF(steps))](&twin);
        if (step % 50 == 0) {
            twin_compare(&twin);
            twin_tidy(&twin);
        }
    }
    assert_true(registry_totals(twin.registry)->rolled > (uint64_t)count / 100);
    registry_destroy(twin.registry);
}

TEST_MAIN(make_kinds, NULL)
