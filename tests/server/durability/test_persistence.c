/* Persistence under random changes: servers that are stopped or killed, and files that are cut or
 * damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/little.h"
#include "server/durability/loading.h"
#include "tests/support/failing_disk.h"
#include "tests/support/kept_story.h"

static bool is_short(void) {
    return getenv("LEADERBOARD_TEST_SHORT") != NULL;
}

/* ---- lives ---- */

struct plan {
    const char *settings;
    bool is_switching; /* appendonly, from time to time */
    bool has_delays;   /* so that threads run ahead */
};

static void save(struct kept_server *kept) {
    bool was_saving = kept_describe(kept).is_saving;
    CHECK(story_save(kept) == (was_saving ? PERSISTENCE_BUSY : PERSISTENCE_OK));
}

static void do_something_else(struct kept_server *kept, const struct plan *plan) {
    struct settings *settings = &kept->server->settings;
    switch (story_below(200)) {
    case 0:
        story_begin_snapshot(kept);
        break;
    case 1:
        if (story_below(4) == 0) {
            save(kept);
        }
        break;
    case 2:
        if (plan->is_switching) {
            settings->appendonly = !settings->appendonly;
            story->switch_sum++;
        }
        break;
    case 3:
        settings->appendfsync = (int)story_below(3);
        break;
    default:
        break;
    }
    if (story_below(12) == 0) {
        story_second(kept);
    }
}

static void run_ticks(struct kept_server *kept, const struct plan *plan, uint32_t ticks) {
    while (ticks-- > 0) {
        do_something_else(kept, plan);
        story_note_safe(kept);
        story_tick(kept, story_below(5));
        for (uint32_t turns = story_below(3); turns > 0; turns--) {
            story_turn(kept);
        }
        if (plan->has_delays && story_below(16) == 0) {
            usleep(story_below(300));
        }
    }
}

static void live_and_end(const void *context) {
    const struct plan *plan = context;
    struct kept_server kept;
    quick_disk_begin();
    story_begin_life(&kept, plan->settings);
    run_ticks(&kept, plan, story_below(400));
    story_end_life(&kept);
}

static void live_and_be_killed(const void *context) {
    const struct plan *plan = context;
    struct kept_server kept;
    quick_disk_begin();
    story_begin_life(&kept, plan->settings);
    run_ticks(&kept, plan, story_below(300));
    usleep(story_below(500));
    raise(SIGKILL);
}

static void look_and_end(const void *context) {
    const struct plan *plan = context;
    struct kept_server kept;
    story_begin_life(&kept, plan->settings);
    story_end_life(&kept);
}

enum { LIVES_MORE = 10 }; /* times as many as asked, until there was a snapshot */

/* Many server runs in the same directory, some of which are killed. */
static void run_lives(const char *test_name, const struct plan *plans, uint32_t plan_count,
                      uint32_t lives, bool has_kills) {
    story_begin(random_begin(test_name));
    uint32_t lived = 0;
    for (; lived < lives || (story->save_sum == 0 && lived < LIVES_MORE * lives); lived++) {
        const struct plan *plan = &plans[story_below(plan_count)];
        if (has_kills && story_below(4) != 0) {
            int status = story_run_apart(live_and_be_killed, plan);
            if (!story_was_killed(status)) {
                story_show_said();
                fail_msg("a life ended with status %x", (unsigned)status);
            }
        } else {
            story_assert_ended(story_run_apart(live_and_end, plan));
        }
    }
    story_assert_ended(story_run_apart(look_and_end, &plans[0]));
    printf("%u lives, %llu ticks, %llu snapshots, %llu times the journal on or off, %llu times "
           "less than all was there\n",
           lived, (unsigned long long)story->tick_sum, (unsigned long long)story->save_sum,
           (unsigned long long)story->switch_sum, (unsigned long long)story->found_before_end);
    assert_true(story->save_sum > 0);
    assert_true(has_kills || story->found_before_end == 0);
}

#define GROWTH "auto-aof-rewrite-percentage 50\nauto-aof-rewrite-min-size 30kb\n"

static const struct plan plans_journal[] = {
    {.settings = "appendonly yes\nappendfsync everysec\n" GROWTH},
    {.settings = "appendonly yes\nappendfsync always\n" GROWTH, .has_delays = true},
    {.settings = "appendonly yes\nappendfsync no\nauto-aof-rewrite-percentage 0\n"},
    {.settings = "appendonly yes\nappendfsync everysec\nauto-aof-rewrite-percentage 1\n"
                 "auto-aof-rewrite-min-size 1kb\n",
     .has_delays = true},
};

static const struct plan plans_any[] = {
    {.settings = "appendonly no\nsave 3600 100\n", .is_switching = true, .has_delays = true},
    {.settings = "appendonly yes\nappendfsync everysec\n" GROWTH, .is_switching = true},
    {.settings = "appendonly no\nsave \"\"\n", .has_delays = true},
    {.settings = "appendonly yes\nappendfsync always\nsave 1 1\n" GROWTH, .is_switching = true},
    {.settings = "appendonly no\nsave 60 1\n"},
};

static void a_server_that_was_stopped_goes_on_as_it_was(void **state) {
    (void)state;
    run_lives(__func__, plans_journal, 4, is_short() ? 6 : 15, false);
}

static void with_and_without_a_journal_it_goes_on_as_it_was(void **state) {
    (void)state;
    run_lives(__func__, plans_any, 5, is_short() ? 8 : 15, false);
}

static void a_server_that_was_killed_has_all_that_was_safe(void **state) {
    (void)state;
    run_lives(__func__, plans_journal, 4, is_short() ? 10 : 40, true);
}

static void with_and_without_a_journal_it_has_all_that_was_safe(void **state) {
    (void)state;
    run_lives(__func__, plans_any, 5, is_short() ? 10 : 40, true);
}

/* The first second is over as soon as the server has started, and its freed memory is reused. */
static void live_a_long_start(const void *context) {
    struct kept_server kept;
    char error[PERSISTENCE_ERROR_MAX];
    CHECK(kept_open(&kept, story->directory, context, error));
    kept_second(&kept);
    void *others = memory_allocate(sizeof(struct loading));
    CHECK(others != NULL);
    memset(others, 0xff, sizeof(struct loading));
    kept_turn(&kept);
    kept_second(&kept);
    memory_free(others);
    kept_stop(&kept);
}

static void a_start_may_take_longer_than_the_first_second(void **state) {
    (void)state;
    story_begin(random_begin(__func__));
    story_assert_ended(story_run_apart(live_a_long_start, "appendonly yes\n"));
    story_assert_ended(story_run_apart(live_a_long_start, "appendonly yes\n"));
}

/* ---- files that are cut or damaged ---- */

enum { FILES_MAX = 8 };

/* The files of a directory, as they were. */
struct copy {
    char path[2 * DIRECTORY_PATH_MAX];
    char *bytes;
    size_t size;
};

struct copies {
    struct copy files[FILES_MAX];
    uint32_t count;
};

static void take_copies(struct copies *copies) {
    const char *kept = directory_join(story->directory, "kept");
    DIR *listing = opendir(kept);
    CHECK(listing != NULL);
    memset(copies, 0, sizeof *copies);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (strncmp(entry->d_name, "leaderboard.", 12) == 0) {
            CHECK(copies->count < FILES_MAX);
            struct copy *copy = &copies->files[copies->count++];
            snprintf(copy->path, sizeof copy->path, "%s", directory_join(kept, entry->d_name));
            copy->bytes = file_read(copy->path, &copy->size);
        }
    }
    closedir(listing);
}

/* Afterwards the directory has no other files. */
static void put_back(const struct copies *copies) {
    const char *kept = directory_join(story->directory, "kept");
    directory_remove(kept);
    CHECK(mkdir(kept, 0755) == 0);
    for (uint32_t i = 0; i < copies->count; i++) {
        file_write(copies->files[i].path, copies->files[i].bytes, copies->files[i].size);
    }
}

static void forget_copies(struct copies *copies) {
    for (uint32_t i = 0; i < copies->count; i++) {
        free(copies->files[i].bytes);
    }
}

static bool has_ending(const char *text, const char *ending) {
    size_t size = strlen(text);
    return size >= strlen(ending) && strcmp(text + size - strlen(ending), ending) == 0;
}

/* The one with the largest number. */
static struct copy *find_copy(struct copies *copies, const char *ending) {
    struct copy *found = NULL;
    for (uint32_t i = 0; i < copies->count; i++) {
        struct copy *copy = &copies->files[i];
        if (has_ending(copy->path, ending) &&
            (found == NULL || strlen(copy->path) > strlen(found->path) ||
             (strlen(copy->path) == strlen(found->path) && strcmp(copy->path, found->path) > 0))) {
            found = copy;
        }
    }
    CHECK(found != NULL);
    return found;
}

static void on_changed(void *context) {
    (void)context;
}

struct found {
    bool is_loaded; /* otherwise it was refused */
    bool is_torn;
    uint64_t group;
    uint64_t digest;
};

/* Load the content of the directory, without changing it. */
static struct found look(void) {
    static struct loading loading;
    char error[DISK_ERROR_MAX] = "";
    uv_loop_t loop;
    struct store store;
    struct found found = {.is_loaded = false};
    if (store_open(&store, story->directory, "kept", STORE_READ, error) != STORE_OK) {
        assert_true(error[0] != '\0');
        return found;
    }
    memset(&loading, 0, sizeof loading);
    loading.registry = storm_create_registry(0xface);
    loading.store = &store;
    loading.changed = on_changed;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_true(loading_init(&loading, &loop));
    found.is_loaded = loading_run(&loading);
    assert_true(found.is_loaded || loading.error[0] != '\0');
    loading_deinit(&loading);
    story_check_valid(loading.registry);
    if (found.is_loaded) {
        found.is_torn = loading.journal.torn.size > 0;
        found.group = loading.sequence;
        found.digest = storm_digest(loading.registry);
    }
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    registry_destroy(loading.registry);
    store_close(&store);
    return found;
}

/* The digest at the end of a group. */
static uint64_t digest_of(uint64_t group) {
    for (uint32_t i = story->count; i-- > 0;) {
        if (story->moments[i].group == group) {
            return story->moments[i].digest;
        }
    }
    fail_msg("there was no group %llu", (unsigned long long)group);
    return 0;
}

static const struct plan plan_small = {
    .settings = "appendonly yes\nappendfsync no\nauto-aof-rewrite-percentage 0\n"};

static void settle(struct kept_server *kept) {
    CHECK(story_settle(kept));
}

static void live_for_files(const void *context) {
    const uint32_t *ticks = context;
    struct kept_server kept;
    quick_disk_begin();
    story_begin_life(&kept, plan_small.settings);
    story->storm.members_max = 6;
    for (uint32_t i = 0; i < *ticks; i++) {
        if (i == *ticks / 3) {
            story_begin_snapshot(&kept);
            settle(&kept);
        }
        story_tick(&kept, 2);
        settle(&kept); /* a write for each */
    }
    story_end_life(&kept);
}

static void make_files(const char *test_name, uint32_t ticks, struct copies *copies) {
    story_begin(random_begin(test_name));
    story_assert_ended(story_run_apart(live_for_files, &ticks));
    take_copies(copies);
}

/* The valid groups in the first size bytes of the journal, and whether anything follows them. */
static uint64_t count_groups(const struct copy *journal, size_t size, bool *is_torn) {
    size_t at = JOURNAL_FILE_HEAD;
    size_t kept_size = at;
    uint64_t whole = 0;
    uint64_t count = 0;
    while (at + JOURNAL_GROUP_HEAD < size) {
        uint32_t word = little_get_u32(journal->bytes + at + 8);
        bool is_linked = word >> 31 != 0;
        at += JOURNAL_GROUP_HEAD + (size_t)(word & INT32_MAX);
        if (at > size) {
            break;
        }
        whole++;
        count = is_linked ? count : whole;
        kept_size = is_linked ? kept_size : at;
    }
    *is_torn = kept_size != size;
    return count;
}

static void a_journal_cut_anywhere_has_its_whole_groups(void **state) {
    (void)state;
    struct copies copies;
    make_files(__func__, is_short() ? 20 : 60, &copies);
    struct copy *journal = find_copy(&copies, ".journal");
    struct found whole = look();
    bool is_torn;
    assert_true(whole.is_loaded && !whole.is_torn);
    uint64_t first = whole.group - count_groups(journal, journal->size, &is_torn);
    size_t step = is_short() ? 5 : 1;
    for (size_t left = journal->size + 1; left > 0; left -= left > step ? step : 1) {
        size_t size = left - 1;
        file_write(journal->path, journal->bytes, size);
        struct found found = look();
        if (size < JOURNAL_FILE_HEAD) {
            assert_false(found.is_loaded); /* it was synced before the manifest named it */
            continue;
        }
        uint64_t groups = count_groups(journal, size, &is_torn);
        assert_true(found.is_loaded);
        assert_int_equal(found.is_torn, is_torn);
        assert_int_equal(found.group, first + groups);
        assert_true(found.digest == digest_of(found.group));
    }
    forget_copies(&copies);
}

static void look_and_go_on(const void *context) {
    (void)context;
    struct kept_server kept;
    quick_disk_begin();
    story_begin_life(&kept, plan_small.settings);
    for (uint32_t i = 0; i < 3; i++) {
        story_tick(&kept, 2);
        settle(&kept);
    }
    story_end_life(&kept);
}

static void behind_a_cut_it_goes_on(void **state) {
    (void)state;
    struct copies copies;
    make_files(__func__, 12, &copies);
    struct story *before = malloc(sizeof *before);
    assert_non_null(before);
    *before = *story;
    struct copy *journal = find_copy(&copies, ".journal");
    size_t step = is_short() ? 61 : 7;
    for (size_t size = journal->size; size >= JOURNAL_FILE_HEAD;
         size -= size > step ? step : size) {
        put_back(&copies);
        file_write(journal->path, journal->bytes, size);
        *story = *before;
        story->is_orderly = false;
        story->durable = 0;
        story_assert_ended(story_run_apart(look_and_go_on, NULL));
        /* The next start has everything. */
        story_assert_ended(story_run_apart(look_and_go_on, NULL));
    }
    free(before);
    forget_copies(&copies);
}

static void a_flipped_bit_is_seen_or_only_cuts_the_tail(void **state) {
    (void)state;
    struct copies copies;
    make_files(__func__, is_short() ? 9 : 25, &copies);
    uint32_t refused = 0;
    uint32_t torn = 0;
    size_t step = is_short() ? 3 : 1;
    for (uint32_t i = 0; i < copies.count; i++) {
        const struct copy *copy = &copies.files[i];
        bool is_journal = has_ending(copy->path, ".journal");
        char *bytes = malloc(copy->size);
        assert_non_null(bytes);
        memcpy(bytes, copy->bytes, copy->size);
        for (size_t at = 0; at < copy->size; at += step) {
            bytes[at] ^= (char)(1 << at % 8);
            file_write(copy->path, bytes, copy->size);
            bytes[at] = copy->bytes[at];
            struct found found = look();
            assert_true(!found.is_loaded || (is_journal && found.is_torn));
            assert_true(!found.is_loaded || found.digest == digest_of(found.group));
            refused += !found.is_loaded;
            torn += found.is_torn;
        }
        file_write(copy->path, copy->bytes, copy->size);
        free(bytes);
    }
    assert_true(refused > 0);
    assert_true(torn > 0);
    struct found found = look();
    assert_true(found.is_loaded && !found.is_torn);
    forget_copies(&copies);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_was_stopped_goes_on_as_it_was),
        cmocka_unit_test(with_and_without_a_journal_it_goes_on_as_it_was),
        cmocka_unit_test(a_server_that_was_killed_has_all_that_was_safe),
        cmocka_unit_test(with_and_without_a_journal_it_has_all_that_was_safe),
        cmocka_unit_test(a_start_may_take_longer_than_the_first_second),
        cmocka_unit_test(a_journal_cut_anywhere_has_its_whole_groups),
        cmocka_unit_test(behind_a_cut_it_goes_on),
        cmocka_unit_test(a_flipped_bit_is_seen_or_only_cuts_the_tail),
    };
    return cmocka_run_group_tests_name("persistence", tests, story_set_up, story_tear_down);
}
