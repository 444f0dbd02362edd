/* Makes disk calls fail, once or until the disk recovers, while boards change, snapshots are
 * written, the journal begins, rotates and ends, and while a server starts: no acknowledged write
 * is lost, nothing is invented, and once the disk works everything is as before.
 *
 * A sample of the calls; make test-long takes each in turn:
 *
 *     LEADERBOARD_DISK_ROUNDS=10    each call in turn, the whole run ten times */
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "server/durability/persistence.h"
#include "server/durability/store.h"
#include "tests/support/failing_disk.h"
#include "tests/support/restart_history.h"

enum {
    EXIT_NOT_OPENED = 3,
    CALLS_MAX = 20000, /* of one scene; tiny blocks make some thousands */
    RECOVER_SECONDS = 2000,
    PAIR_CALLS = 14, /* one more call than SAVE and BGSAVE make together */
/* While a server runs, one call of this many fails, at random. */
#ifdef SERVER_TINY
    STEP_RUNNING = 120, /* it makes three times as many */
    STEP_RUNNING_SHORT = 300,
#else
    STEP_RUNNING = 40,
    STEP_RUNNING_SHORT = 100,
#endif
    STEP_STARTING = 16,
    STEP_STARTING_SHORT = 30,
};

/* The commands and settings of a server, at first and while it runs. */
struct scene {
    const char *settings;
    bool is_switched;  /* the journal on, off and on again */
    bool is_tightened; /* from everysec to always */
};

#define EVERYSEC "appendonly yes\nappendfsync everysec\n"
#define ALWAYS   "appendonly yes\nappendfsync always\n"
#define SAVE     "appendonly no\nsave 5 1\n"
#define NOTHING  "appendonly no\nsave \"\"\n"

static const struct scene scenes[] = {
    {.settings = EVERYSEC},
    {.settings = ALWAYS},
    {.settings = SAVE},
    {.settings = NOTHING "appendfsync everysec\n", .is_switched = true},
    {.settings = NOTHING "appendfsync everysec\n", .is_switched = true, .is_tightened = true},
    {.settings = EVERYSEC, .is_tightened = true},
};
enum { SCENES = COUNT_OF(scenes) };

struct trial {
    struct scene scene;
    enum failure failure;
    uint64_t nth;
    uint64_t count;
    bool is_killed; /* at the end, without recovery */
};

static bool is_harmless(const struct trial *trial) {
    return trial->failure == FAILURE_EINTR || trial->failure == FAILURE_SHORT;
}

static bool begins_with_always(const struct trial *trial) {
    return strstr(trial->scene.settings, "always") != NULL;
}

/* With always, a server that does not know what is on disk exits. */
static bool may_stop(const struct trial *trial) {
    bool is_always = begins_with_always(trial) || trial->scene.is_tightened;
    return is_always && !is_harmless(trial) && trial->failure != FAILURE_FULL;
}

/* 0: a sample of all calls, once. */
static uint32_t rounds_asked(void) {
    const char *given = getenv("LEADERBOARD_DISK_ROUNDS");
    return given != NULL ? (uint32_t)strtoul(given, NULL, 10) : 0;
}

/* The distance between two failing calls. */
static uint64_t step_of(struct random *random, uint32_t step_max, uint32_t step_max_short) {
    uint32_t step = test_step(step_max, step_max_short);
    return rounds_asked() > 0 ? 1 : 1 + random_below(random, step);
}

/* ---- while it runs ---- */

/* Is nothing left that a client waits for? */
static bool is_all_safe(const struct durable_server *durable) {
    return persistence_safe_group(durable->persistence) >=
           persistence_last_group(durable->persistence);
}

/* Every client that waited for the disk is answered, or its write is refused. What was written before
 * appendfsync became always is synced by the next seconds. */
static void settle(struct durable_server *durable) {
    bool is_settled = history_settle(durable);
    for (int i = 0; i < RECOVER_SECONDS && is_settled && !is_all_safe(durable); i++) {
        history_second(durable);
        durable_wait(durable);
        is_settled = history_settle(durable);
    }
    CHECK((is_settled && is_all_safe(durable)) ||
          durable->server->durability.write_refusal != NULL);
}

static void run_some_ticks(struct durable_server *durable, uint32_t ticks) {
    for (uint32_t i = 0; i < ticks; i++) {
        history_tick(durable, 3);
        history_turn(durable);
        if (i % 3 == 2) {
            history_second(durable);
            history_turn(durable);
        }
    }
}

/* CONFIG SET, applied within a second. */
static void configure(struct durable_server *durable, bool appendonly,
                      enum setting_appendfsync policy) {
    durable->server->settings.appendonly = appendonly;
    durable->server->settings.appendfsync = (int)policy;
    run_some_ticks(durable, 3);
    settle(durable);
}

/* Ticks, a background snapshot during ticks, a blocking one, and more ticks. */
static void run_script(struct durable_server *durable, const struct scene *scene) {
    const struct settings *settings = &durable->server->settings;
    enum setting_appendfsync policy = (enum setting_appendfsync)settings->appendfsync;
    if (scene->is_switched) {
        configure(durable, true, policy);
    }
    run_some_ticks(durable, 3);
    settle(durable);
    history_begin_snapshot(durable);
    run_some_ticks(durable, 5);
    settle(durable);
    if (scene->is_tightened) {
        policy = SETTING_APPENDFSYNC_ALWAYS;
        configure(durable, settings->appendonly, policy);
    }
    run_some_ticks(durable, 2);
    (void)!history_save(durable);
    run_some_ticks(durable, 3);
    settle(durable);
    if (scene->is_switched) {
        configure(durable, false, policy);
        configure(durable, true, policy);
    }
}

static bool is_as_before(const struct durable_server *durable) {
    const struct settings *settings = &durable->server->settings;
    struct persistence_info info = durable_describe(durable);
    return durable->server->durability.write_refusal == NULL &&
           info.is_journal_on == settings->appendonly &&
           (info.is_journal_on ? info.synced_group == info.group
                               : info.is_last_save_ok || settings->save_point_count == 0);
}

static void wait_until_as_before(struct durable_server *durable) {
    for (int i = 0; i < RECOVER_SECONDS && !is_as_before(durable); i++) {
        history_second(durable);
        durable_wait(durable);
        settle(durable);
    }
    if (!is_as_before(durable)) {
        struct persistence_info info = durable_describe(durable);
        fprintf(stderr,
                "refusal %s, saving %d, saved %d, journal on %d, ok %d, groups %llu %llu %llu\n",
                durable->server->durability.write_refusal != NULL
                    ? durable->server->durability.write_refusal
                    : "none",
                info.is_saving, info.is_last_save_ok, info.is_journal_on, info.is_journal_ok,
                (unsigned long long)info.group, (unsigned long long)info.written_group,
                (unsigned long long)info.synced_group);
        CHECK(false);
    }
}

/* The disk works: the server recovers by itself, accepts writes, and they are durable. */
static void recover(struct durable_server *durable) {
    failing_disk_heal();
    history_second(durable);
    wait_until_as_before(durable);
    history_tick(durable, 3);
    wait_until_as_before(durable);
    settle(durable);
    CHECK(history_save(durable) == PERSISTENCE_OK);
}

static void live_with_failures(const void *context) {
    const struct trial *trial = context;
    struct durable_server durable;
    quick_disk_begin();
    history_begin_run(&durable, trial->scene.settings);
    history_tick(&durable, 20);
    settle(&durable);
    uint64_t refused_before = history->refused_sum;
    failing_disk_begin_for(trial->failure, trial->nth, trial->count);
    run_script(&durable, &trial->scene);
    bool is_refused = history->refused_sum > refused_before;
    CHECK(!is_harmless(trial) || (!is_refused && durable_describe(&durable).is_last_save_ok));
    if (trial->is_killed) {
        raise(SIGKILL);
    }
    recover(&durable);
    /* Only journals are synced this way. One that is turned off is not needed any more. */
    is_refused = history->refused_sum > refused_before;
    CHECK(is_harmless(trial) || trial->failure == FAILURE_FULL || trial->scene.is_switched ||
          failing_disk_hit() != FAILING_SYNC_CONTENTS || is_refused);
    history_end_run(&durable);
}

static void look_and_end(const void *context) {
    const struct trial *trial = context;
    struct durable_server durable;
    quick_disk_begin();
    history_begin_run(&durable, trial->scene.settings);
    history_end_run(&durable);
}

static void run_and_end(const void *context) {
    const struct trial *trial = context;
    struct durable_server durable;
    quick_disk_begin();
    history_begin_run(&durable, trial->scene.settings);
    run_some_ticks(&durable, 6);
    history_begin_snapshot(&durable);
    settle(&durable);
    run_some_ticks(&durable, 6);
    history_end_run(&durable);
}

/* ---- every call in turn ---- */

struct tally {
    uint32_t trials, stopped, refused;
};

static bool has_stopped(int status, const char *said) {
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE && history_has_printed(said);
}

/* Check that it ended as expected. Returns whether it exited by itself. */
static bool check_end(const struct trial *trial, int status) {
    bool is_as_planned = trial->is_killed ? history_was_killed(status) : status == 0;
    bool is_stopped =
        may_stop(trial) && has_stopped(status, "With appendfsync always no write can be confirmed");
    /* Only journals are synced this way. */
    bool must_stop =
        may_stop(trial) && begins_with_always(trial) && failing_disk_hit() == FAILING_SYNC_CONTENTS;
    if (!is_stopped && (must_stop || !is_as_planned)) {
        history_show_printed();
        fail_msg("failure %d from call %llu (kind %d) on, %llu times, %s: it ended with status %x",
                 (int)trial->failure, (unsigned long long)trial->nth, (int)failing_disk_hit(),
                 (unsigned long long)trial->count, trial->scene.settings, (unsigned)status);
    }
    return is_stopped;
}

/* false: the scene makes fewer calls. */
static bool run_trial(struct trial *trial, struct tally *tally) {
    uint64_t refused_before = history->refused_sum;
    int status = history_run_process(live_with_failures, trial);
    tally->stopped += check_end(trial, status);
    tally->trials++;
    tally->refused += history->refused_sum > refused_before;
    history_assert_ended(history_run_process(look_and_end, trial));
    return failing_disk_hit() != FAILING_NOTHING;
}

static void run_trials(struct random *random, struct trial trial, struct tally *tally) {
    bool is_reached = true;
    history_begin((struct random){.state = random_next(random)});
    trial.nth = step_of(random, STEP_RUNNING, STEP_RUNNING_SHORT);
    while (is_reached) {
        assert_true(trial.nth < CALLS_MAX);
        trial.is_killed = random_below(random, 3) == 0;
        is_reached = run_trial(&trial, tally);
        trial.nth += step_of(random, STEP_RUNNING, STEP_RUNNING_SHORT);
    }
}

static void run_all_scenes(const char *test_name, enum failure failure, uint64_t count) {
    struct random random = random_begin(test_name);
    struct tally tally = {.trials = 0};
    uint32_t rounds = rounds_asked() > 0 ? rounds_asked() : 1;
    struct trial trial = {.failure = failure, .count = count};
    for (uint32_t i = 0; i < rounds * SCENES; i++) {
        trial.scene = scenes[i % SCENES];
        run_trials(&random, trial, &tally);
    }
    printf("%u trials, %u with writers refused, %u times the server ended itself\n", tally.trials,
           tally.refused, tally.stopped);
    bool is_noticed = tally.refused + tally.stopped > 0;
    assert_true(is_harmless(&trial) ? !is_noticed : is_noticed || rounds_asked() == 0);
}

TEST(an_error_of_the_disk_loses_nothing_that_was_safe) {
    run_all_scenes(__func__, FAILURE_EIO, 1);
}

TEST(nor_does_a_disk_that_fails_until_it_heals) {
    run_all_scenes(__func__, FAILURE_EIO, UINT64_MAX);
}

TEST(nor_a_disk_that_is_full_for_a_moment) {
    run_all_scenes(__func__, FAILURE_ENOSPC, 1);
}

TEST(nor_one_that_is_full_until_there_is_room) {
    run_all_scenes(__func__, FAILURE_ENOSPC, UINT64_MAX);
}

TEST(a_full_disk_never_ends_the_server) {
    run_all_scenes(__func__, FAILURE_FULL, 1);
    run_all_scenes(__func__, FAILURE_FULL, 7);
    run_all_scenes(__func__, FAILURE_FULL, UINT64_MAX);
}

TEST(interruptions_are_not_noticed) {
    run_all_scenes(__func__, FAILURE_EINTR, 1);
}

TEST(nor_are_short_reads_and_writes) {
    run_all_scenes(__func__, FAILURE_SHORT, 1);
}

TEST(a_write_that_ends_half_way_for_good_loses_nothing_that_was_safe) {
    run_all_scenes(__func__, FAILURE_CRASH, UINT64_MAX);
}

/* ---- a snapshot that fails ---- */

/* No save point is reached any more: nothing has changed, and writes are refused. */
static void live_with_a_failed_save(const void *context) {
    struct durable_server durable;
    quick_disk_begin();
    history_begin_run(&durable, context);
    history_tick(&durable, 20);
    CHECK(history_save(&durable) == PERSISTENCE_OK);
    failing_disk_begin_for(FAILURE_EIO, 1, UINT64_MAX);
    CHECK(history_save(&durable) == PERSISTENCE_FAILED);
    for (int i = 0; i < 20; i++) {
        CHECK(durable.server->durability.write_refusal != NULL);
        history_second(&durable);
        settle(&durable);
    }
    recover(&durable);
    history_end_run(&durable);
}

TEST(writers_that_a_failed_snapshot_stops_go_on_once_the_disk_works) {
    history_begin(random_begin(__func__));
    history_assert_ended(
        history_run_process(live_with_a_failed_save, "appendonly no\nsave 3600 1\n"));
    history_assert_ended(
        history_run_process(live_with_a_failed_save, "appendonly no\nsave 3600 1\n"));
}

static int open_no_base(int directory, const char *name, int flags, mode_t mode) {
    if (strstr(name, ".base") != NULL) {
        errno = ENOSPC;
        return -1;
    }
    return disk_system.open_at(directory, name, flags, mode);
}

/* Each begins a journal, and fails: the disk has room for the journals, but not for boards. */
static void live_with_many_failed_saves(const void *context) {
    struct durable_server durable;
    quick_disk_begin();
    const struct disk *quick = disk;
    struct disk narrow = *disk;
    narrow.open_at = open_no_base;
    history_begin_run(&durable, context);
    settle(&durable);
    disk = &narrow;
    for (int i = 0; i < 2 * STORE_JOURNALS_MAX; i++) {
        history_tick(&durable, 1);
        CHECK(history_save(&durable) == PERSISTENCE_FAILED);
        settle(&durable);
    }
    const char *directory = directory_join(history->directory, "kept");
    CHECK(directory_count(directory) >= STORE_JOURNALS_MAX);
    disk = quick;
    CHECK(history_save(&durable) == PERSISTENCE_OK);
    CHECK(directory_count(directory) < 6);
    history_tick(&durable, 20);
    CHECK(history_save(&durable) == PERSISTENCE_OK);
    history_tick(&durable, 20);
    history_end_run(&durable);
}

TEST(a_snapshot_succeeds_after_however_many_that_failed) {
    static const char settings[] = EVERYSEC "auto-aof-rewrite-percentage 0\n";
    history_begin(random_begin(__func__));
    history_assert_ended(history_run_process(live_with_many_failed_saves, settings));
    history_assert_ended(history_run_process(live_with_many_failed_saves, settings));
}

/* ---- two commands of one tick that fail ---- */

/* SAVE, BGSAVE, and the snapshot that SHUTDOWN takes. */
static void save_now(struct durable_server *durable) {
    (void)!history_save(durable);
}

static void ask_to_end(struct durable_server *durable) {
    char error[PERSISTENCE_ERROR_MAX];
    (void)!persistence_prepare_end(durable->persistence, PERSISTENCE_END_AS_SET, error);
}

typedef void disk_command(struct durable_server *durable);
static disk_command *const disk_commands[] = {save_now, history_begin_snapshot, ask_to_end};
enum { DISK_COMMANDS = COUNT_OF(disk_commands) };

struct pair {
    const char *settings;
    disk_command *first, *second;
    uint64_t nth, count; /* disk calls that fail */
};

/* Both in one tick: the loop does not turn between them. */
static void live_with_two_that_fail(const void *context) {
    const struct pair *pair = context;
    struct durable_server durable;
    quick_disk_begin();
    history_begin_run(&durable, pair->settings);
    history_tick(&durable, 20);
    settle(&durable);
    failing_disk_begin_for(FAILURE_EIO, pair->nth, pair->count);
    pair->first(&durable);
    pair->second(&durable);
    history_tick(&durable, 3);
    history_turn(&durable);
    recover(&durable);
    history_end_run(&durable);
}

TEST(two_commands_of_one_tick_may_fail) {
    static const char *const settings[] = {EVERYSEC, SAVE};
    uint64_t step = test_step(1, 4);
    struct random random = random_begin(__func__);
    for (size_t i = 0; i < 2 * 2 * DISK_COMMANDS * DISK_COMMANDS; i++) {
        for (uint64_t nth = 1 + random_below(&random, step); nth <= PAIR_CALLS; nth += step) {
            struct pair pair = {
                .settings = settings[i % 2],
                .count = i / 2 % 2 == 0 ? 1 : UINT64_MAX,
                .first = disk_commands[i / 4 % DISK_COMMANDS],
                .second = disk_commands[i / 4 / DISK_COMMANDS],
                .nth = nth,
            };
            history_begin(random_begin(__func__));
            printf("pair %zu, from call %d on\n", i, (int)nth);
            history_assert_ended(history_run_process(live_with_two_that_fail, &pair));
        }
    }
}

/* ---- while it starts ---- */

/* A server that starts has everything that was there, and serves once the disk works. */
static void start_with_failures(const void *context) {
    const struct trial *trial = context;
    char error[PERSISTENCE_ERROR_MAX] = "";
    struct durable_server durable;
    quick_disk_begin();
    failing_disk_begin_for(trial->failure, trial->nth, trial->count);
    if (!durable_open(&durable, history->directory, trial->scene.settings, error)) {
        CHECK(error[0] != '\0');
        _exit(EXIT_NOT_OPENED);
    }
    while (durable.server->durability.is_loading) {
        durable_load_step(&durable);
    }
    failing_disk_heal();
    history_adopt_run(&durable);
    recover(&durable);
    history_end_run(&durable);
}

static bool is_start_refused(const struct trial *trial) {
    int status = history_run_process(start_with_failures, trial);
    bool is_refused = (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_OPENED) ||
                      has_stopped(status, "cannot start: ");
    if (status != 0 && (!is_refused || is_harmless(trial))) {
        history_show_printed();
        fail_msg("failure %d from call %llu (kind %d) on: status %x", (int)trial->failure,
                 (unsigned long long)trial->nth, (int)failing_disk_hit(), (unsigned)status);
    }
    return is_refused;
}

static void run_starts(const char *test_name, enum failure failure, uint64_t count) {
    struct random random = random_begin(test_name);
    uint32_t starts = 0;
    uint32_t refused = 0;
    uint32_t rounds = rounds_asked() > 0 ? rounds_asked() : 1;
    for (uint32_t i = 0; i < 3 * rounds; i++) {
        struct trial trial = {.scene = scenes[i % 3], .failure = failure, .count = count};
        bool is_reached = true;
        history_begin((struct random){.state = random_next(&random)});
        history_assert_ended(history_run_process(run_and_end, &trial));
        for (trial.nth = 1; is_reached;
             trial.nth += step_of(&random, STEP_STARTING, STEP_STARTING_SHORT)) {
            assert_true(trial.nth < CALLS_MAX);
            refused += is_start_refused(&trial);
            starts++;
            is_reached = failing_disk_hit() != FAILING_NOTHING;
            history_assert_ended(history_run_process(run_and_end, &trial));
        }
    }
    printf("%u starts, %u refused\n", starts, refused);
    bool are_all_fine = failure == FAILURE_EINTR || failure == FAILURE_SHORT;
    assert_true(are_all_fine == (refused == 0));
}

TEST(a_start_that_fails_has_changed_nothing) {
    run_starts(__func__, FAILURE_EIO, 1);
    run_starts(__func__, FAILURE_ENOSPC, 1);
    run_starts(__func__, FAILURE_ENOSPC, UINT64_MAX);
    run_starts(__func__, FAILURE_CRASH, UINT64_MAX);
}

TEST(a_start_does_not_notice_interruptions_and_short_reads) {
    run_starts(__func__, FAILURE_EINTR, 1);
    run_starts(__func__, FAILURE_SHORT, 1);
}

static int set_up(void **state) {
    failing_disk_share();
    return history_set_up(state);
}

TEST_MAIN(set_up, history_tear_down)
