/* Rollover of boards, sentence by sentence. */
#include "codec/timestamp.h"
#include "tests/support/keyspace.h"
#include "tests/support/registry_workload.h"

#define DAY_MS  INT64_C(86400000)
#define NOON_MS INT64_C(1794801600000) /* 2026-11-16T12:00:00+08:00 */
#define END_MS  INT64_C(1794844800000) /* 2026-11-17T00:00:00+08:00, the end of that day */

/* ---- helpers ---- */

/* The first letter of a name selects the options of its new board: workload_options. */
static struct registry *create_registry(void) {
    return workload_create_registry(0x5eed);
}

#define REGISTRY_TEST(name) REGISTRY_TEST_OF(name, create_registry)

static int64_t ms(const char *text) {
    int64_t time_us = 0;
    assert_true(timestamp_parse(bytes_from_text(text), &time_us));
    return time_us / 1000;
}

static struct registry_key *find(struct registry *registry, const char *name, int64_t now_ms) {
    return key_find(registry, 0, name, now_ms);
}

/* Number of members on the board; -1: no such key. */
static int64_t count_of(struct registry *registry, const char *name, int64_t now_ms) {
    const struct registry_key *key = find(registry, name, now_ms);
    return key != NULL ? (int64_t)board_count(&key->board) : -1;
}

static struct registry_key *write_key(struct registry *registry, const char *name, uint32_t count,
                                      int64_t now_ms) {
    return key_create(registry, 0, name, count, now_ms);
}

/* As LB.CREATE does. */
static struct registry_key *create_key(struct registry *registry, const char *name,
                                       char board_options_of, uint32_t count, int64_t now_ms) {
    struct board_options options = *workload_options(board_options_of);
    options.is_created = true;
    return key_create_like(registry, name, &options, count, now_ms);
}

/* ---- sentences ---- */

REGISTRY_TEST(a_written_board_becomes_its_archive_and_is_gone) {
    struct registry_key *key = write_key(registry, "daily", 3, NOON_MS);
    const struct board_options *options = registry_options(key);
    assert_true(options->period_start_ms == ms("2026-11-16T00:00:00+08:00"));
    assert_true(options->period_end_ms == END_MS);
    assert_true(layout_time_first_us(&options->layout) == options->period_start_ms * 1000);
    assert_true(registry_expiry_next_due(registry) == END_MS);
    assert_int_equal(count_of(registry, "daily", END_MS - 1), 3);
    assert_int_equal(count_of(registry, "daily@2026-11-16", END_MS - 1), -1);
    assert_int_equal(count_of(registry, "daily", END_MS), -1);
    assert_int_equal(count_of(registry, "daily@2026-11-16", END_MS), 3);
    assert_true(registry_expiry_next_due(registry) == REGISTRY_NO_EXPIRY);
    assert_int_equal(registry_count(registry, 0), 1);
    assert_int_equal(registry_totals(registry)->rolled, 1);
    ASSERT_VALID(registry_validate, registry);
    /* The next write creates it again, in the period of that time. */
    key = write_key(registry, "daily", 1, END_MS);
    assert_true(registry_options(key)->period_start_ms == END_MS);
}

REGISTRY_TEST(a_created_board_stays_and_is_empty) {
    int64_t now_ms = ms("2026-11-16T12:00:00Z");
    int64_t end_ms = ms("2026-11-23T00:00:00Z");
    struct registry_key *key = create_key(registry, "week", 'w', 5, now_ms);
    assert_int_equal(count_of(registry, "week", end_ms), 0);
    assert_int_equal(count_of(registry, "week@2026-11-16", end_ms), 5);
    key = find(registry, "week", end_ms);
    assert_true(registry_options(key)->is_created);
    assert_true(registry_options(key)->period_start_ms == end_ms);
    const struct board_options *archived =
        registry_options(find(registry, "week@2026-11-16", end_ms));
    assert_false(archived->is_created);
    assert_int_equal(archived->period.unit, PERIOD_NONE);
}

REGISTRY_TEST(an_archive_is_the_board_with_its_times_and_its_order) {
    int64_t now_ms = ms("2026-11-16T12:00:00Z");
    struct board_options options = *workload_options('d');
    options.cap = 7;
    options.keeps_best = true;
    struct registry_key *key = key_create_like(registry, "k", &options, 0, now_ms);
    for (int i = 0; i < 5; i++) {
        char member[2] = {(char)('e' - i), '\0'};
        assert_true(key_put(registry, key, bytes_from_text(member), 77));
    }
    int64_t start_us = layout_time_first_us(board_layout(&key->board));
    int64_t after_ms = now_ms + 3 * DAY_MS;
    const struct registry_key *archive = find(registry, "k@2026-11-16", after_ms);
    assert_non_null(archive);
    assert_int_equal(registry_options(archive)->cap, 7);
    assert_true(registry_options(archive)->keeps_best);
    assert_true(layout_time_first_us(board_layout(&archive->board)) == start_us);
    for (uint32_t rank = 0; rank < 5; rank++) {
        assert_int_equal(board_at(&archive->board, rank).member.at[0], 'e' - (int)rank);
        assert_int_equal(board_at(&archive->board, rank).key, 77);
    }
}

REGISTRY_TEST(an_empty_board_leaves_no_archive) {
    int64_t now_ms = ms("2026-11-16T12:00:00Z");
    struct registry_key *key = create_key(registry, "day", 'd', 0, now_ms);
    for (int day = 1; day < 5; day++) {
        assert_int_equal(count_of(registry, "day", now_ms + day * DAY_MS), 0);
        assert_int_equal(registry_count(registry, 0), 1);
    }
    /* Nor does one that was large, with remains. */
    now_ms += 5 * DAY_MS;
    key = find(registry, "day", now_ms);
    assert_true(key_fill(registry, key, 0, 5000));
    registry_board_cut(registry, key, 0, 5000);
    assert_int_equal(count_of(registry, "day", now_ms + DAY_MS), 0);
    assert_int_equal(registry_count(registry, 0), 1);
    registry_free_all(registry);
}

/* Large boards and their remains move as they are. */
REGISTRY_TEST(a_large_board_goes_over_at_once) {
    int64_t now_ms = ms("2026-11-16T12:00:00Z");
    struct registry_key *key = write_key(registry, "d", 9000, now_ms);
    registry_board_cut(registry, key, 100, 5000);
    uint64_t live_before = memory_live_count();
    assert_int_equal(registry_roll_due(registry, now_ms + DAY_MS, 10), 1);
    assert_in_range(memory_live_count() + 10 - live_before, 0, 20);
    assert_int_equal(count_of(registry, "d@2026-11-16", now_ms + DAY_MS), 4000);
    registry_free_all(registry);
}

REGISTRY_TEST(archives_live_for_their_number_of_periods) {
    int64_t week_ms = 7 * DAY_MS;
    int64_t begin_ms = ms("2026-11-16T00:00:00Z");
    create_key(registry, "week", 'w', 0, begin_ms); /* ARCHIVE 2 */
    for (int week = 0; week < 10; week++) {
        int64_t now_ms = begin_ms + week * week_ms;
        assert_true(key_fill(registry, find(registry, "week", now_ms), 0, 1 + (uint32_t)week));
        registry_expiry_remove_due(registry, now_ms, UINT32_MAX);
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
    registry_expiry_remove_due(registry, now_ms, UINT32_MAX);
    assert_int_equal(registry_count(registry, 0), 2);
}

REGISTRY_TEST(a_loaded_board_is_in_the_period_that_its_rules_say) {
    static char name_text[REGISTRY_NAME_MAX];
    struct board_options options = *workload_options('d');
    struct board board;
    board_options_begin_period(&options, NOON_MS);
    options.cap = 2; /* loading more is allowed */
    assert_true(registry_create_board_like(registry, &options, &board));
    for (int i = 0; i < 3; i++) {
        char member[2] = {(char)('e' - i), '\0'};
        struct board_entry entry = {.key = 77, .member = bytes_from_text(member)};
        assert_int_equal(board_append(&board, &entry, 1), BOARD_OK);
    }
    assert_int_equal(board_append_end(&board), BOARD_OK);
    memory_fail_at(1);
    assert_int_equal(registry_put_loaded(registry, 0, BYTES("d"), &board, NULL, NULL, NOON_MS),
                     REGISTRY_OUT_OF_MEMORY);
    memory_fail_at(0);
    assert_int_equal(board_count(&board), 3);
    /* At the time of the caller it has expired and its period is over; not before. */
    assert_int_equal(
        registry_put_loaded(registry, 0, BYTES("d"), &board, NULL, NULL, options.period_end_ms + 5),
        REGISTRY_OK);
    const struct registry_key *key = find(registry, "d", NOON_MS);
    assert_true(board_options_equal(registry_options(key), &options));
    assert_true(registry_expiry(registry, key) == options.period_end_ms + 5);
    assert_true(registry_expiry_next_due(registry) == options.period_end_ms);
    ASSERT_VALID(registry_validate, registry);
    assert_int_equal(count_of(registry, "d@2026-11-16", options.period_end_ms), 3);
    /* An archive may have a name longer than clients may use. */
    memset(name_text, 'x', sizeof name_text);
    struct bytes name = {name_text, sizeof name_text};
    assert_true(registry_create_board_like(registry, workload_options('p'), &board));
    assert_int_equal(registry_put_loaded(registry, 0, name, &board, NULL, NULL, REGISTRY_NO_EXPIRY),
                     REGISTRY_OK);
    assert_non_null(registry_find(registry, 0, name, NOON_MS));
}

REGISTRY_TEST(without_archives_the_members_are_gone) {
    int64_t now_ms = ms("2026-11-16T00:00:00Z");
    int64_t end_ms = ms("2026-12-01T00:00:00-03:30");
    write_key(registry, "m", 3, now_ms);
    create_key(registry, "created", 'm', 3000, now_ms);
    assert_int_equal(count_of(registry, "created", end_ms), 0);
    assert_int_equal(count_of(registry, "m", end_ms), -1);
    assert_int_equal(registry_count(registry, 0), 1);
    assert_int_equal(registry_totals(registry)->unfreed, 2);
    registry_free_all(registry);
}

static struct registry_key *create_plain(struct registry *registry, const char *name,
                                         uint32_t count, int64_t now_ms) {
    return key_create_like(registry, name, workload_options('p'), count, now_ms);
}

REGISTRY_TEST(what_has_the_archives_name_stays_and_the_archive_gets_a_number) {
    write_key(registry, "daily", 3, NOON_MS);
    create_plain(registry, "daily@2026-11-16", 9, NOON_MS);
    create_plain(registry, "daily@2026-11-16.2", 8, NOON_MS);
    /* It lives when the period ends, and so it keeps its name, whenever somebody looks. */
    struct registry_key *key = create_plain(registry, "daily@2026-11-16.3", 7, NOON_MS);
    key_expire(registry, key, END_MS + 1000);
    /* At that moment this one has gone. */
    key = create_plain(registry, "daily@2026-11-16.4", 6, NOON_MS);
    key_expire(registry, key, END_MS);
    int64_t later_ms = END_MS + 5000;
    registry_expiry_remove_due(registry, later_ms, UINT32_MAX);
    assert_int_equal(count_of(registry, "daily@2026-11-16", later_ms), 9);
    assert_int_equal(count_of(registry, "daily@2026-11-16.2", later_ms), 8);
    assert_int_equal(count_of(registry, "daily@2026-11-16.3", later_ms), -1);
    assert_int_equal(count_of(registry, "daily@2026-11-16.4", later_ms), 3);
    assert_true(registry_expiry(registry, find(registry, "daily@2026-11-16.4", later_ms)) ==
                REGISTRY_NO_EXPIRY);
}

REGISTRY_TEST(names_that_somebody_has_taken_on_purpose_do_not_hold_up_the_end) {
    write_key(registry, "daily", 3, NOON_MS);
    create_plain(registry, "daily@2026-11-16", 1, NOON_MS);
    for (int i = 2; i < 3000; i++) {
        create_plain(registry, formatted("daily@2026-11-16.%d", i), 1, NOON_MS);
    }
    assert_int_equal(count_of(registry, "daily", END_MS), -1);
    assert_int_equal(registry_count(registry, 0), 3000);
    assert_int_equal(registry_member_count(registry, 0), 2999 + 3);
}

/* The same period again, after the clock was set back. */
REGISTRY_TEST(no_archive_replaces_an_earlier_one) {
    struct registry_key *key = create_key(registry, "daily", 'd', 0, NOON_MS);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_true(key_fill(registry, key, 0, i));
        assert_int_equal(registry_roll_due(registry, END_MS, UINT32_MAX), 1);
        assert_int_equal(registry_roll_ahead(registry, NOON_MS), 1);
        key = find(registry, "daily", NOON_MS);
    }
    assert_int_equal(count_of(registry, "daily@2026-11-16", NOON_MS), 1);
    assert_int_equal(count_of(registry, "daily@2026-11-16.2", NOON_MS), 2);
    assert_int_equal(count_of(registry, "daily@2026-11-16.3", NOON_MS), 3);
}

REGISTRY_TEST(several_periods_without_anybody_are_one_roll) {
    create_key(registry, "day", 'd', 3, NOON_MS);
    int64_t later_ms = ms("2026-12-24T12:00:00+08:00");
    assert_int_equal(registry_roll_due(registry, later_ms, UINT32_MAX), 1);
    assert_int_equal(registry_count(registry, 0), 2);
    assert_int_equal(count_of(registry, "day@2026-11-16", later_ms), 3);
    assert_true(registry_options(find(registry, "day", later_ms))->period_start_ms ==
                ms("2026-12-24T00:00:00+08:00"));
}

REGISTRY_TEST(keys_that_are_removed_or_flushed_do_not_roll) {
    for (int i = 0; i < 1000; i++) {
        write_key(registry, formatted("d%d", i), 2, NOON_MS);
    }
    registry_remove(registry, find(registry, "d7", NOON_MS));
    ASSERT_VALID(registry_validate, registry);
    registry_flush(registry, 0);
    assert_true(registry_expiry_next_due(registry) == REGISTRY_NO_EXPIRY);
    assert_int_equal(registry_roll_due(registry, INT64_MAX, UINT32_MAX), 0);
    write_key(registry, "d", 2, NOON_MS);
    registry_free_all(registry);
    assert_int_equal(registry_roll_due(registry, NOON_MS + DAY_MS, UINT32_MAX), 1);
}

REGISTRY_TEST(ten_thousand_boards_roll_a_few_at_a_time_and_are_right_at_once) {
    enum { BOARDS = 10000 };
    char name[32];
    for (int i = 0; i < BOARDS; i++) {
        write_key(registry, formatted("d%d", i), 1 + (uint32_t)i % 3, NOON_MS);
    }
    struct random random = random_begin(__func__);
    uint32_t left = BOARDS;
    while (left > 0) {
        int i = (int)random_below(&random, BOARDS);
        snprintf(name, sizeof name, "d%d", i);
        assert_null(registry_peek(registry, 0, bytes_from_text(name), END_MS));
        if (i % 2 == 0) {
            assert_int_equal(count_of(registry, name, END_MS), -1);
        }
        strcat(name, "@2026-11-16");
        assert_int_equal(count_of(registry, name, END_MS), 1 + i % 3);
        assert_in_range(registry_roll_due(registry, END_MS, 16), 0, 16);
        left = BOARDS - (uint32_t)registry_totals(registry)->rolled;
    }
    assert_int_equal(registry_count(registry, 0), BOARDS);
}

REGISTRY_TEST(a_key_drawn_is_one_that_is_there) {
    write_key(registry, "day", 3, NOON_MS);
    const struct registry_key *drawn = registry_walk_random(registry, 0, 5, NOON_MS + DAY_MS);
    assert_true(bytes_equal(registry_name(drawn), BYTES("day@2026-11-16")));
}

REGISTRY_TEST(the_longest_names_have_archives) {
    static char name[REGISTRY_KEY_MAX + 11];
    bool is_new;
    memset(name, 'd', REGISTRY_KEY_MAX);
    struct bytes base = {name, REGISTRY_KEY_MAX};
    struct registry_key *key = registry_find_or_create(registry, 0, base, NOON_MS, &is_new);
    assert_non_null(key);
    assert_true(key_fill(registry, key, 0, 3));
    memcpy(name + REGISTRY_KEY_MAX, "@2026-11-16", 11);
    struct bytes archive = {name, sizeof name};
    assert_non_null(registry_find(registry, 0, archive, NOON_MS + DAY_MS));
}

REGISTRY_TEST(a_clock_that_steps_back_undoes_nothing) {
    write_key(registry, "day", 3, NOON_MS);
    assert_int_equal(count_of(registry, "day", END_MS), -1);
    assert_int_equal(count_of(registry, "day", NOON_MS), -1);
    assert_int_equal(count_of(registry, "day@2026-11-16", NOON_MS), 3);
    /* A board of the next day does not roll over earlier because of that. */
    write_key(registry, "day", 2, END_MS);
    assert_int_equal(registry_roll_due(registry, NOON_MS, 10), 0);
    assert_int_equal(count_of(registry, "day", NOON_MS), 2);
}

/* ---- manual rollover ---- */

REGISTRY_TEST(rolling_by_hand_is_at_any_time) {
    struct registry_key *key = write_key(registry, "plain", 3, 1000);
    assert_int_equal(registry_roll(registry, key, BYTES("old"), NULL, REGISTRY_NO_EXPIRY, 1000),
                     REGISTRY_OK);
    assert_int_equal(count_of(registry, "plain", 1000), -1);
    assert_int_equal(count_of(registry, "old", 1000), 3);
    ASSERT_VALID(registry_validate, registry);
    key = create_key(registry, "season", 'p', 5, 1000);
    assert_int_equal(registry_roll(registry, key, BYTES("season:1"), NULL, 5000, 1000),
                     REGISTRY_OK);
    assert_int_equal(count_of(registry, "season", 1000), 0);
    assert_int_equal(count_of(registry, "season:1", 4999), 5);
    assert_int_equal(count_of(registry, "season:1", 5000), -1);
    ASSERT_VALID(registry_validate, registry);
    /* An empty board gets no archive, and may get other options. */
    struct board_options next = *workload_options('p');
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
}

/* ---- listeners ---- */

struct names_told {
    char text[256];
};

static void note_told(void *context, uint32_t database, struct bytes name) {
    struct names_told *told = context;
    size_t size = strlen(told->text);
    snprintf(told->text + size, sizeof told->text - size, "%u:%.*s ", database, (int)name.size,
             name.at);
}

REGISTRY_TEST(both_names_have_changed) {
    struct names_told told = {.text = ""};
    write_key(registry, "day", 3, NOON_MS);
    create_key(registry, "empty", 'd', 0, NOON_MS);
    registry_set_listener(registry, note_told, &told);
    assert_int_equal(count_of(registry, "day@2026-11-16", NOON_MS + DAY_MS), 3);
    assert_string_equal(told.text, "0:day@2026-11-16 0:day ");
    told.text[0] = '\0';
    struct registry_key *key = find(registry, "day@2026-11-16", NOON_MS + DAY_MS);
    assert_string_equal(told.text, "");
    assert_int_equal(registry_roll(registry, key, BYTES("x"), NULL, REGISTRY_NO_EXPIRY, NOON_MS),
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
        {"day", DAY_MS, true, true},
        {"day", DAY_MS, false, true},
        {"day@2026-11-16", 0, true, false},
        {"day@2026-11-16", DAY_MS, true, true},
        {"day@2026-11-16", DAY_MS, false, true},
        {"day@2026-11-15", DAY_MS, true, false},
        {"expires", 999, true, false},
        {"expires", 1000, true, true},
        {"nothing", DAY_MS, true, false},
        {"nothing@2026-11-16", DAY_MS, true, false},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        test_row("%s after %d ms", samples[i].name, (int)samples[i].after_ms);
        struct registry *registry = create_registry();
        write_key(registry, "day", 3, NOON_MS);
        struct registry_key *key = write_key(registry, "expires", 3, NOON_MS);
        key_expire(registry, key, NOON_MS + 1000);
        struct kept_name kept = {.text = strdup(samples[i].name)};
        registry_set_listener(registry, forget_name, &kept);
        memory_fail_at(samples[i].has_memory ? 0 : 1);
        registry_roll_catch_up(registry, 0, bytes_from_text(kept.text),
                               NOON_MS + samples[i].after_ms);
        memory_fail_at(0);
        assert_int_equal(kept.told_count, samples[i].has_changed);
        registry_set_listener(registry, NULL, NULL);
        free(kept.text);
        ASSERT_VALID(registry_validate, registry);
        registry_destroy(registry);
    }
}

/* ---- memory ---- */

static struct registry *create_small_world(int64_t now_ms) {
    struct registry *registry = create_registry();
    for (int i = 0; i < 40; i++) {
        write_key(registry, formatted("plain%d", i), 2, now_ms);
    }
    struct registry_key *key = create_key(registry, "week", 'w', 0, now_ms);
    CHECK(key_fill(registry, key, 0, 7));
    write_key(registry, "day", 5, now_ms);
    key = create_key(registry, "x", 'm', 3000, now_ms);
    return registry;
}

/* What is tried when the week, the day and the month are over, by the name. */
enum attempt { FIND, WRITE, CREATE, RENAME, COPY, ROLL, ROLL_DUE };

static bool attempt(struct registry *registry, enum attempt what, const char *text,
                    int64_t now_ms) {
    struct bytes name = bytes_from_text(text);
    struct registry_key *plain = what < RENAME ? NULL : find(registry, "plain3", now_ms);
    bool is_new;
    switch (what) {
    case FIND:
        return registry_find(registry, 0, name, now_ms) != NULL;
    case WRITE:
        return registry_find_or_create(registry, 0, name, now_ms, &is_new) != NULL;
    case CREATE:
        return registry_find_or_create_like(registry, 0, name, workload_options('d'), NULL, now_ms,
                                            &is_new) != NULL;
    case RENAME:
        return registry_rename(registry, plain, 0, name, now_ms) == REGISTRY_OK;
    case COPY:
        return registry_copy(registry, plain, 0, name, now_ms) == REGISTRY_OK;
    case ROLL:
        return registry_roll(registry, plain, name, NULL, now_ms + 1000, now_ms) == REGISTRY_OK;
    case ROLL_DUE:
        break;
    }
    registry_roll_due(registry, now_ms, UINT32_MAX);
    return registry_expiry_next_due(registry) > now_ms;
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
    static const struct {
        enum attempt what;
        const char *name;
    } rows[] = {
        {FIND, "week"},
        {FIND, "week@2026-11-23"},
        {FIND, "day@2026-11-29"},
        {FIND, "x"},
        {WRITE, "day"},
        {WRITE, "day@2026-11-29"},
        {CREATE, "day"},
        {RENAME, "day"},
        {COPY, "day@2026-11-29"},
        {ROLL_DUE, "-"},
        {ROLL, "day"},
    };
    int64_t now_ms = ms("2026-11-29T22:00:00+08:00");
    int64_t later_ms = ms("2026-12-01T12:00:00+08:00");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_row("attempt %d of %s", (int)rows[i].what, rows[i].name);
        bool is_done = false;
        uint64_t failures = 0;
        for (uint64_t nth = 1; !is_done; nth++) {
            uint64_t live_before = memory_live_count();
            struct registry *registry = create_small_world(now_ms);
            uint64_t before = census(registry);
            uint64_t requests = memory_requests();
            memory_fail_at(nth);
            is_done = attempt(registry, rows[i].what, rows[i].name, later_ms);
            bool is_reached = memory_requests() - requests >= nth;
            memory_fail_at(0);
            ASSERT_VALID(registry_validate, registry);
            if (!is_done) {
                failures++;
                assert_true(is_reached);
                /* roll_due may have rolled over some boards, and rename the neighbours of its key,
                 * but each as a whole. */
                if (registry_totals(registry)->rolled == 0) {
                    assert_true(census(registry) == before);
                }
                assert_true(attempt(registry, rows[i].what, rows[i].name, later_ms + 1));
                ASSERT_VALID(registry_validate, registry);
            }
            registry_roll_due(registry, later_ms + 1, UINT32_MAX);
            assert_int_equal(count_of(registry, "week@2026-11-23", later_ms + 1), 7);
            ASSERT_VALID(registry_validate, registry);
            registry_destroy(registry);
            assert_int_equal(memory_live_count(), live_before);
        }
        assert_true(failures > 0);
    }
}

/* A command sees one state: what could not be rolled over is not rolled over by its next
 * look-up. */
REGISTRY_TEST(a_look_up_that_has_failed_fails_for_the_millisecond) {
    bool is_new;
    write_key(registry, "day", 3, NOON_MS);
    memory_fail_at(1);
    assert_null(find(registry, "day@2026-11-16", END_MS));
    memory_fail_at(0);
    assert_null(find(registry, "day@2026-11-16", END_MS));
    assert_null(find(registry, "day", END_MS));
    assert_null(registry_find_or_create(registry, 0, BYTES("day"), END_MS, &is_new));
    assert_non_null(find(registry, "day@2026-11-16", END_MS + 1));
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
