/* Persistence under random changes: servers that are stopped or killed, and files that are cut or
 * damaged. */
#include "tests/support/test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/bytes.h"
#include "server/durability/loading.h"
#include "tests/support/failing_disk.h"
#include "tests/support/restart_history.h"

/* ---- lives ---- */

struct plan {
    const char *settings;
    bool is_switching; /* appendonly, from time to time */
    bool has_delays;   /* so that threads run ahead */
};

static void save(struct durable_server *durable) {
    bool was_saving = durable_describe(durable).is_saving;
    CHECK(history_save(durable) == (was_saving ? PERSISTENCE_BUSY : PERSISTENCE_OK));
}

static void do_something_else(struct durable_server *durable, const struct plan *plan) {
    struct settings *settings = &durable->server->settings;
    switch (history_below(200)) {
    case 0:
        history_begin_snapshot(durable);
        break;
    case 1:
        if (history_below(4) == 0) {
            save(durable);
        }
        break;
    case 2:
        if (plan->is_switching) {
            settings->appendonly = !settings->appendonly;
            history->switch_sum++;
        }
        break;
    case 3:
        settings->appendfsync = (int)history_below(3);
        break;
    default:
        break;
    }
    if (history_below(12) == 0) {
        history_second(durable);
    }
}

static void run_ticks(struct durable_server *durable, const struct plan *plan, uint32_t ticks) {
    while (ticks-- > 0) {
        do_something_else(durable, plan);
        history_note_safe(durable);
        history_tick(durable, history_below(5));
        for (uint32_t turns = history_below(3); turns > 0; turns--) {
            history_turn(durable);
        }
        if (plan->has_delays && history_below(16) == 0) {
            usleep(history_below(300));
        }
    }
}

static void run_and_end(const void *context) {
    const struct plan *plan = context;
    struct durable_server durable;
    quick_disk_begin();
    history_begin_run(&durable, plan->settings);
    run_ticks(&durable, plan, history_below(400));
    history_end_run(&durable);
}

static void run_and_be_killed(const void *context) {
    const struct plan *plan = context;
    struct durable_server durable;
    quick_disk_begin();
    history_begin_run(&durable, plan->settings);
    run_ticks(&durable, plan, history_below(300));
    usleep(history_below(500));
    raise(SIGKILL);
}

static void look_and_end(const void *context) {
    const struct plan *plan = context;
    struct durable_server durable;
    history_begin_run(&durable, plan->settings);
    history_end_run(&durable);
}

enum { RUNS_MORE = 10 }; /* times as many as asked, until there was a snapshot */

/* Many server runs in the same directory, some of which are killed. */
static void run_servers(const char *test_name, const struct plan *plans, uint32_t plan_count,
                        uint32_t lives, bool has_kills) {
    history_begin(random_begin(test_name));
    uint32_t lived = 0;
    for (; lived < lives || (history->save_sum == 0 && lived < RUNS_MORE * lives); lived++) {
        const struct plan *plan = &plans[history_below(plan_count)];
        if (has_kills && history_below(4) != 0) {
            int status = history_run_process(run_and_be_killed, plan);
            if (!history_was_killed(status)) {
                history_show_printed();
                fail_msg("a life ended with status %x", (unsigned)status);
            }
        } else {
            history_assert_ended(history_run_process(run_and_end, plan));
        }
    }
    history_assert_ended(history_run_process(look_and_end, &plans[0]));
    printf("%u lives, %llu ticks, %llu snapshots, %llu times the journal on or off, %llu times "
           "less than all was there\n",
           lived, (unsigned long long)history->tick_sum, (unsigned long long)history->save_sum,
           (unsigned long long)history->switch_sum, (unsigned long long)history->found_before_end);
    assert_true(history->save_sum > 0);
    assert_true(has_kills || history->found_before_end == 0);
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

TEST(a_server_that_was_stopped_goes_on_as_it_was) {
    run_servers(__func__, plans_journal, 4, test_rounds(15, 6), false);
}

TEST(with_and_without_a_journal_it_goes_on_as_it_was) {
    run_servers(__func__, plans_any, 5, test_rounds(15, 8), false);
}

static void expire_and_roll(const struct durable_server *durable, int64_t now_ms) {
    (void)registry_roll_due(durable->server->registry, now_ms, UINT32_MAX);
    (void)registry_expiry_remove_due(durable->server->registry, now_ms, UINT32_MAX);
}

/* What three days change is not given to the disk any more. */
static void live_three_days_and_be_killed(const void *context) {
    enum { HOUR_MS = 3600000, HOURS = 72 };
    struct durable_server durable;
    quick_disk_begin();
    history_begin_run(&durable, context);
    for (int i = 0; i < 100; i++) {
        history_tick(&durable, 3);
    }
    CHECK(history_settle(&durable));
    uint64_t before = workload_digest(durable.server->registry);
    for (int i = 0; i < HOURS; i++) {
        history->workload.now_ms += HOUR_MS;
        expire_and_roll(&durable, history->workload.now_ms);
    }
    history->digest = workload_digest(durable.server->registry);
    history->has_changed = history->digest != before;
    raise(SIGKILL);
}

static void start_and_be_the_same(const void *context) {
    struct durable_server durable;
    quick_disk_begin();
    int64_t now_ms = history->workload.now_ms;
    history_begin_run(&durable, context);
    expire_and_roll(&durable, now_ms);
    CHECK(workload_digest(durable.server->registry) == history->digest);
    history_end_run(&durable);
}

TEST(keys_expire_and_periods_end_while_it_is_down_as_if_it_had_run) {
    static const char settings[] = "appendonly yes\nappendfsync always\n";
    struct random random = random_begin(__func__);
    uint32_t rounds_with_changes = 0;
    for (uint32_t round = 0; round < test_rounds(50, 10); round++) {
        history_begin((struct random){.state = random_next(&random)});
        int status = history_run_process(live_three_days_and_be_killed, settings);
        if (!history_was_killed(status)) {
            history_show_printed();
            fail_msg("it ended with status %x", (unsigned)status);
        }
        history_assert_ended(history_run_process(start_and_be_the_same, settings));
        rounds_with_changes += history->has_changed;
    }
    printf("%u rounds with changes\n", rounds_with_changes);
    assert_true(rounds_with_changes > 0);
}

static void exchange_and_end(const void *settings) {
    struct durable_server durable;
    char error[PERSISTENCE_ERROR_MAX];
    history_begin_run(&durable, settings);
    history_tick(&durable, 20);
    CHECK(history_settle(&durable));
    struct registry *keys = registry_create_beside(durable.server->registry);
    CHECK(keys != NULL);
    CHECK(persistence_exchange_keys(durable.persistence, keys));
    CHECK(persistence_prepare_end(durable.persistence, PERSISTENCE_END_AS_SET, error) ==
          PERSISTENCE_OK);
    history_end_run(&durable);
    registry_destroy(keys);
}

/* As of a Redis that is followed. Its base is not on disk yet, and there are no save points. */
TEST(a_server_that_ends_right_behind_an_exchange_of_keys_has_the_new_ones) {
    static const char *const settings[] = {
        "appendonly yes\nappendfsync everysec\nsave \"\"\n",
        "appendonly yes\nappendfsync always\nsave \"\"\n",
    };
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        test_row("%s", settings[i]);
        history_begin(random_begin(__func__));
        history_assert_ended(history_run_process(exchange_and_end, settings[i]));
        history_assert_ended(history_run_process(look_and_end, &plans_journal[0]));
    }
}

TEST(a_server_that_was_killed_has_all_that_was_safe) {
    run_servers(__func__, plans_journal, 4, test_rounds(40, 10), true);
}

TEST(with_and_without_a_journal_it_has_all_that_was_safe) {
    run_servers(__func__, plans_any, 5, test_rounds(40, 10), true);
}

/* The first second is over as soon as the server has started, and its freed memory is reused. */
static void live_a_long_start(const void *context) {
    struct durable_server durable;
    char error[PERSISTENCE_ERROR_MAX];
    CHECK(durable_open(&durable, history->directory, context, error));
    durable_second(&durable);
    void *others = memory_allocate(sizeof(struct loading));
    CHECK(others != NULL);
    memset(others, 0xff, sizeof(struct loading));
    durable_turn(&durable);
    durable_second(&durable);
    memory_free(others);
    durable_stop(&durable);
}

TEST(a_start_may_take_longer_than_the_first_second) {
    history_begin(random_begin(__func__));
    history_assert_ended(history_run_process(live_a_long_start, "appendonly yes\n"));
    history_assert_ended(history_run_process(live_a_long_start, "appendonly yes\n"));
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
    const char *durable = directory_join(history->directory, "kept");
    DIR *listing = opendir(durable);
    CHECK(listing != NULL);
    memset(copies, 0, sizeof *copies);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (strncmp(entry->d_name, "leaderboard.", 12) == 0) {
            CHECK(copies->count < FILES_MAX);
            struct copy *copy = &copies->files[copies->count++];
            snprintf(copy->path, sizeof copy->path, "%s", directory_join(durable, entry->d_name));
            copy->bytes = file_read(copy->path, &copy->size);
        }
    }
    closedir(listing);
}

/* Afterwards the directory has no other files. */
static void put_back(const struct copies *copies) {
    const char *durable = directory_join(history->directory, "kept");
    directory_remove(durable);
    CHECK(mkdir(durable, 0755) == 0);
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
    if (store_open(&store, history->directory, "kept", STORE_READ, error) != STORE_OK) {
        assert_true(error[0] != '\0');
        return found;
    }
    memset(&loading, 0, sizeof loading);
    loading.registry = workload_create_registry(0xface);
    loading.store = &store;
    loading.changed = on_changed;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_true(loading_init(&loading, &loop));
    found.is_loaded = loading_run(&loading);
    assert_true(found.is_loaded || loading.error[0] != '\0');
    loading_deinit(&loading);
    history_check_valid(loading.registry);
    if (found.is_loaded) {
        found.is_torn = loading.journal.torn.size > 0;
        found.group = loading.sequence;
        found.digest = workload_digest(loading.registry);
    }
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    registry_destroy(loading.registry);
    store_close(&store);
    return found;
}

/* The digest at the end of a group. */
static uint64_t digest_of(uint64_t group) {
    for (uint32_t i = history->count; i-- > 0;) {
        if (history->states[i].group == group) {
            return history->states[i].digest;
        }
    }
    fail_msg("there was no group %llu", (unsigned long long)group);
    return 0;
}

static const struct plan plan_small = {
    .settings = "appendonly yes\nappendfsync no\nauto-aof-rewrite-percentage 0\n"};

static void settle(struct durable_server *durable) {
    CHECK(history_settle(durable));
}

static void live_for_files(const void *context) {
    const uint32_t *ticks = context;
    struct durable_server durable;
    quick_disk_begin();
    history_begin_run(&durable, plan_small.settings);
    history->workload.members_max = 6;
    for (uint32_t i = 0; i < *ticks; i++) {
        if (i == *ticks / 3) {
            history_begin_snapshot(&durable);
            settle(&durable);
        }
        history_tick(&durable, 2);
        settle(&durable); /* a write for each */
    }
    history_end_run(&durable);
}

static void make_files(const char *test_name, uint32_t ticks, struct copies *copies) {
    history_begin(random_begin(test_name));
    history_assert_ended(history_run_process(live_for_files, &ticks));
    take_copies(copies);
}

/* The valid groups in the first size bytes of the journal, and whether anything follows them. */
static uint64_t count_groups(const struct copy *journal, size_t size, bool *is_torn) {
    size_t at = JOURNAL_FILE_HEAD;
    size_t kept_size = at;
    uint64_t whole = 0;
    uint64_t count = 0;
    while (at + JOURNAL_GROUP_HEAD < size) {
        uint32_t word = bytes_get_u32(journal->bytes + at + 8);
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

TEST(a_journal_cut_anywhere_has_its_whole_groups) {
    struct copies copies;
    make_files(__func__, is_short_run() ? 20 : 60, &copies);
    struct copy *journal = find_copy(&copies, ".journal");
    struct found whole = look();
    bool is_torn;
    assert_true(whole.is_loaded && !whole.is_torn);
    uint64_t first = whole.group - count_groups(journal, journal->size, &is_torn);
    size_t step = test_step(1, 5);
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
    struct durable_server durable;
    quick_disk_begin();
    history_begin_run(&durable, plan_small.settings);
    for (uint32_t i = 0; i < 3; i++) {
        history_tick(&durable, 2);
        settle(&durable);
    }
    history_end_run(&durable);
}

TEST(behind_a_cut_it_goes_on) {
    struct copies copies;
    make_files(__func__, 12, &copies);
    struct history *before = malloc(sizeof *before);
    assert_non_null(before);
    *before = *history;
    struct copy *journal = find_copy(&copies, ".journal");
    size_t step = test_step(7, 61);
    for (size_t size = journal->size; size >= JOURNAL_FILE_HEAD;
         size -= size > step ? step : size) {
        put_back(&copies);
        file_write(journal->path, journal->bytes, size);
        *history = *before;
        history->is_orderly = false;
        history->durable = 0;
        history_assert_ended(history_run_process(look_and_go_on, NULL));
        /* The next start has everything. */
        history_assert_ended(history_run_process(look_and_go_on, NULL));
    }
    free(before);
    forget_copies(&copies);
}

TEST(a_flipped_bit_is_seen_or_only_cuts_the_tail) {
    struct copies copies;
    make_files(__func__, is_short_run() ? 9 : 25, &copies);
    uint32_t refused = 0;
    uint32_t torn = 0;
    size_t step = test_step(1, 3);
    for (uint32_t i = 0; i < copies.count; i++) {
        const struct copy *copy = &copies.files[i];
        bool is_journal = has_ending(copy->path, ".journal");
        OWNED char *bytes = malloc(copy->size);
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
    }
    assert_true(refused > 0);
    assert_true(torn > 0);
    struct found found = look();
    assert_true(found.is_loaded && !found.is_torn);
    forget_copies(&copies);
}

TEST_MAIN(history_set_up, history_tear_down)
