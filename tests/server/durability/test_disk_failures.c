/* Makes every disk call fail, once or until the disk recovers, while boards change, snapshots are
 * written, the journal begins, rotates and ends, and while a server starts: no acknowledged write
 * is lost, nothing is invented, and once the disk works everything is as before.
 *
 *     LEADERBOARD_DISK_ROUNDS=10    each call in turn, the whole run ten times */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "server/durability/persistence.h"
#include "server/durability/store.h"
#include "tests/support/failing_disk.h"
#include "tests/support/kept_story.h"

enum {
    EXIT_NOT_OPENED = 3,
    CALLS_MAX = 2000,
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
enum { SCENES = sizeof scenes / sizeof *scenes };

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
static uint64_t step_of(struct random *random, uint64_t step_max, uint64_t step_max_short) {
    bool is_short = getenv("LEADERBOARD_TEST_SHORT") != NULL;
    return rounds_asked() > 0 ? 1 : 1 + random_below(random, is_short ? step_max_short : step_max);
}

/* ---- while it runs ---- */

/* Every client that waited for the disk is answered, or its write is refused. */
static void settle(struct kept_server *kept) {
    bool is_settled = story_settle(kept);
    uint64_t last = persistence_last_group(kept->persistence);
    CHECK((is_settled && persistence_safe_group(kept->persistence) >= last) ||
          kept->server->durability.write_refusal != NULL);
}

static void run_some_ticks(struct kept_server *kept, uint32_t ticks) {
    for (uint32_t i = 0; i < ticks; i++) {
        story_tick(kept, 3);
        story_turn(kept);
        if (i % 3 == 2) {
            story_second(kept);
            story_turn(kept);
        }
    }
}

/* CONFIG SET, applied within a second. */
static void configure(struct kept_server *kept, bool appendonly, enum setting_appendfsync policy) {
    kept->server->settings.appendonly = appendonly;
    kept->server->settings.appendfsync = (int)policy;
    run_some_ticks(kept, 3);
    settle(kept);
}

/* Ticks, a background snapshot during ticks, a blocking one, and more ticks. */
static void run_script(struct kept_server *kept, const struct scene *scene) {
    const struct settings *settings = &kept->server->settings;
    enum setting_appendfsync policy = (enum setting_appendfsync)settings->appendfsync;
    if (scene->is_switched) {
        configure(kept, true, policy);
    }
    run_some_ticks(kept, 3);
    settle(kept);
    story_begin_snapshot(kept);
    run_some_ticks(kept, 5);
    settle(kept);
    if (scene->is_tightened) {
        policy = SETTING_APPENDFSYNC_ALWAYS;
        configure(kept, settings->appendonly, policy);
    }
    run_some_ticks(kept, 2);
    (void)!story_save(kept);
    run_some_ticks(kept, 3);
    settle(kept);
    if (scene->is_switched) {
        configure(kept, false, policy);
        configure(kept, true, policy);
    }
}

static bool is_as_before(const struct kept_server *kept) {
    const struct settings *settings = &kept->server->settings;
    struct persistence_info info = kept_describe(kept);
    return kept->server->durability.write_refusal == NULL &&
           info.is_journal_on == settings->appendonly &&
           (info.is_journal_on ? info.synced_group == info.group
                               : info.is_last_save_ok || settings->save_point_count == 0);
}

static void wait_until_as_before(struct kept_server *kept) {
    for (int i = 0; i < RECOVER_SECONDS && !is_as_before(kept); i++) {
        story_second(kept);
        kept_wait(kept);
        settle(kept);
    }
    if (!is_as_before(kept)) {
        struct persistence_info info = kept_describe(kept);
        fprintf(stderr,
                "refusal %s, saving %d, saved %d, journal on %d, ok %d, groups %llu %llu %llu\n",
                kept->server->durability.write_refusal != NULL
                    ? kept->server->durability.write_refusal
                    : "none",
                info.is_saving, info.is_last_save_ok, info.is_journal_on, info.is_journal_ok,
                (unsigned long long)info.group, (unsigned long long)info.written_group,
                (unsigned long long)info.synced_group);
        CHECK(false);
    }
}

/* The disk works: the server recovers by itself, accepts writes, and they are durable. */
static void recover(struct kept_server *kept) {
    failing_disk_heal();
    story_second(kept);
    wait_until_as_before(kept);
    story_tick(kept, 3);
    wait_until_as_before(kept);
    settle(kept);
    CHECK(story_save(kept) == PERSISTENCE_OK);
}

static void live_with_failures(const void *context) {
    const struct trial *trial = context;
    struct kept_server kept;
    quick_disk_begin();
    story_begin_life(&kept, trial->scene.settings);
    story_tick(&kept, 20);
    settle(&kept);
    uint64_t refused_before = story->refused_sum;
    failing_disk_begin_for(trial->failure, trial->nth, trial->count);
    run_script(&kept, &trial->scene);
    bool is_refused = story->refused_sum > refused_before;
    CHECK(!is_harmless(trial) || (!is_refused && kept_describe(&kept).is_last_save_ok));
    if (trial->is_killed) {
        raise(SIGKILL);
    }
    recover(&kept);
    /* Only journals are synced this way. One that is turned off is not needed any more. */
    is_refused = story->refused_sum > refused_before;
    CHECK(is_harmless(trial) || trial->failure == FAILURE_FULL || trial->scene.is_switched ||
          failing_disk_hit() != FAILING_SYNC_CONTENTS || is_refused);
    story_end_life(&kept);
}

static void look_and_end(const void *context) {
    const struct trial *trial = context;
    struct kept_server kept;
    quick_disk_begin();
    story_begin_life(&kept, trial->scene.settings);
    story_end_life(&kept);
}

static void live_and_end(const void *context) {
    const struct trial *trial = context;
    struct kept_server kept;
    quick_disk_begin();
    story_begin_life(&kept, trial->scene.settings);
    run_some_ticks(&kept, 6);
    story_begin_snapshot(&kept);
    settle(&kept);
    run_some_ticks(&kept, 6);
    story_end_life(&kept);
}

/* ---- every call in turn ---- */

struct tally {
    uint32_t trials, stopped, refused;
};

static bool has_stopped(int status, const char *said) {
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE && story_has_said(said);
}

/* Check that it ended as expected. Returns whether it exited by itself. */
static bool check_end(const struct trial *trial, int status) {
    bool is_as_planned = trial->is_killed ? story_was_killed(status) : status == 0;
    bool is_stopped =
        may_stop(trial) && has_stopped(status, "With appendfsync always no write can be confirmed");
    /* Only journals are synced this way. */
    bool must_stop =
        may_stop(trial) && begins_with_always(trial) && failing_disk_hit() == FAILING_SYNC_CONTENTS;
    if (!is_stopped && (must_stop || !is_as_planned)) {
        story_show_said();
        fail_msg("failure %d from call %llu (kind %d) on, %llu times, %s: it ended with status %x",
                 (int)trial->failure, (unsigned long long)trial->nth, (int)failing_disk_hit(),
                 (unsigned long long)trial->count, trial->scene.settings, (unsigned)status);
    }
    return is_stopped;
}

/* false: the scene makes fewer calls. */
static bool run_trial(struct trial *trial, struct tally *tally) {
    uint64_t refused_before = story->refused_sum;
    int status = story_run_apart(live_with_failures, trial);
    tally->stopped += check_end(trial, status);
    tally->trials++;
    tally->refused += story->refused_sum > refused_before;
    story_assert_ended(story_run_apart(look_and_end, trial));
    return failing_disk_hit() != FAILING_NOTHING;
}

static void run_trials(struct random *random, struct trial trial, struct tally *tally) {
    bool is_reached = true;
    story_begin((struct random){.state = random_next(random)});
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

static void an_error_of_the_disk_loses_nothing_that_was_safe(void **state) {
    (void)state;
    run_all_scenes(__func__, FAILURE_EIO, 1);
}

static void nor_does_a_disk_that_fails_until_it_heals(void **state) {
    (void)state;
    run_all_scenes(__func__, FAILURE_EIO, UINT64_MAX);
}

static void nor_a_disk_that_is_full_for_a_moment(void **state) {
    (void)state;
    run_all_scenes(__func__, FAILURE_ENOSPC, 1);
}

static void nor_one_that_is_full_until_there_is_room(void **state) {
    (void)state;
    run_all_scenes(__func__, FAILURE_ENOSPC, UINT64_MAX);
}

static void a_full_disk_never_ends_the_server(void **state) {
    (void)state;
    run_all_scenes(__func__, FAILURE_FULL, 1);
    run_all_scenes(__func__, FAILURE_FULL, 7);
    run_all_scenes(__func__, FAILURE_FULL, UINT64_MAX);
}

static void interruptions_are_not_noticed(void **state) {
    (void)state;
    run_all_scenes(__func__, FAILURE_EINTR, 1);
}

static void nor_are_short_reads_and_writes(void **state) {
    (void)state;
    run_all_scenes(__func__, FAILURE_SHORT, 1);
}

static void a_write_that_ends_half_way_for_good_loses_nothing_that_was_safe(void **state) {
    (void)state;
    run_all_scenes(__func__, FAILURE_CRASH, UINT64_MAX);
}

/* ---- a snapshot that fails ---- */

/* No save point is reached any more: nothing has changed, and writes are refused. */
static void live_with_a_failed_save(const void *context) {
    struct kept_server kept;
    quick_disk_begin();
    story_begin_life(&kept, context);
    story_tick(&kept, 20);
    CHECK(story_save(&kept) == PERSISTENCE_OK);
    failing_disk_begin_for(FAILURE_EIO, 1, UINT64_MAX);
    CHECK(story_save(&kept) == PERSISTENCE_FAILED);
    for (int i = 0; i < 20; i++) {
        CHECK(kept.server->durability.write_refusal != NULL);
        story_second(&kept);
        settle(&kept);
    }
    recover(&kept);
    story_end_life(&kept);
}

static void writers_that_a_failed_snapshot_stops_go_on_once_the_disk_works(void **state) {
    (void)state;
    story_begin(random_begin(__func__));
    story_assert_ended(story_run_apart(live_with_a_failed_save, "appendonly no\nsave 3600 1\n"));
    story_assert_ended(story_run_apart(live_with_a_failed_save, "appendonly no\nsave 3600 1\n"));
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
    struct kept_server kept;
    quick_disk_begin();
    const struct disk *quick = disk;
    struct disk narrow = *disk;
    narrow.open_at = open_no_base;
    story_begin_life(&kept, context);
    settle(&kept);
    disk = &narrow;
    for (int i = 0; i < 2 * STORE_JOURNALS_MAX; i++) {
        story_tick(&kept, 1);
        CHECK(story_save(&kept) == PERSISTENCE_FAILED);
        settle(&kept);
    }
    const char *directory = directory_join(story->directory, "kept");
    CHECK(directory_count(directory) >= STORE_JOURNALS_MAX);
    disk = quick;
    CHECK(story_save(&kept) == PERSISTENCE_OK);
    CHECK(directory_count(directory) < 6);
    story_tick(&kept, 20);
    CHECK(story_save(&kept) == PERSISTENCE_OK);
    story_tick(&kept, 20);
    story_end_life(&kept);
}

static void a_snapshot_succeeds_after_however_many_that_failed(void **state) {
    (void)state;
    static const char settings[] = EVERYSEC "auto-aof-rewrite-percentage 0\n";
    story_begin(random_begin(__func__));
    story_assert_ended(story_run_apart(live_with_many_failed_saves, settings));
    story_assert_ended(story_run_apart(live_with_many_failed_saves, settings));
}

/* ---- two commands of one tick that fail ---- */

/* SAVE, BGSAVE, and the snapshot that SHUTDOWN takes. */
static void save_now(struct kept_server *kept) {
    (void)!story_save(kept);
}

static void ask_to_end(struct kept_server *kept) {
    char error[PERSISTENCE_ERROR_MAX];
    (void)!persistence_prepare_end(kept->persistence, PERSISTENCE_END_AS_SET, error);
}

typedef void disk_command(struct kept_server *kept);
static disk_command *const disk_commands[] = {save_now, story_begin_snapshot, ask_to_end};
enum { DISK_COMMANDS = sizeof disk_commands / sizeof *disk_commands };

struct pair {
    const char *settings;
    disk_command *first, *second;
    uint64_t nth, count; /* disk calls that fail */
};

/* Both in one tick: the loop does not turn between them. */
static void live_with_two_that_fail(const void *context) {
    const struct pair *pair = context;
    struct kept_server kept;
    quick_disk_begin();
    story_begin_life(&kept, pair->settings);
    story_tick(&kept, 20);
    settle(&kept);
    failing_disk_begin_for(FAILURE_EIO, pair->nth, pair->count);
    pair->first(&kept);
    pair->second(&kept);
    story_tick(&kept, 3);
    story_turn(&kept);
    recover(&kept);
    story_end_life(&kept);
}

static void two_commands_of_one_tick_may_fail(void **state) {
    (void)state;
    static const char *const settings[] = {EVERYSEC, SAVE};
    uint64_t step = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 4 : 1;
    for (size_t i = 0; i < 2 * 2 * DISK_COMMANDS * DISK_COMMANDS; i++) {
        for (uint64_t nth = 1; nth <= PAIR_CALLS; nth += step) {
            struct pair pair = {
                .settings = settings[i % 2],
                .count = i / 2 % 2 == 0 ? 1 : UINT64_MAX,
                .first = disk_commands[i / 4 % DISK_COMMANDS],
                .second = disk_commands[i / 4 / DISK_COMMANDS],
                .nth = nth,
            };
            story_begin(random_begin(__func__));
            printf("pair %zu, from call %d on\n", i, (int)nth);
            story_assert_ended(story_run_apart(live_with_two_that_fail, &pair));
        }
    }
}

/* ---- while it starts ---- */

/* A server that starts has everything that was there, and serves once the disk works. */
static void start_with_failures(const void *context) {
    const struct trial *trial = context;
    char error[PERSISTENCE_ERROR_MAX] = "";
    struct kept_server kept;
    quick_disk_begin();
    failing_disk_begin_for(trial->failure, trial->nth, trial->count);
    if (!kept_open(&kept, story->directory, trial->scene.settings, error)) {
        CHECK(error[0] != '\0');
        _exit(EXIT_NOT_OPENED);
    }
    while (kept.server->durability.is_loading) {
        kept_load_step(&kept);
    }
    failing_disk_heal();
    story_begin_chapter(&kept);
    recover(&kept);
    story_end_life(&kept);
}

static bool is_start_refused(const struct trial *trial) {
    int status = story_run_apart(start_with_failures, trial);
    bool is_refused = (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_OPENED) ||
                      has_stopped(status, "cannot start: ");
    if (status != 0 && (!is_refused || is_harmless(trial))) {
        story_show_said();
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
        story_begin((struct random){.state = random_next(&random)});
        story_assert_ended(story_run_apart(live_and_end, &trial));
        for (trial.nth = 1; is_reached;
             trial.nth += step_of(&random, STEP_STARTING, STEP_STARTING_SHORT)) {
            assert_true(trial.nth < CALLS_MAX);
            refused += is_start_refused(&trial);
            starts++;
            is_reached = failing_disk_hit() != FAILING_NOTHING;
            story_assert_ended(story_run_apart(live_and_end, &trial));
        }
    }
    printf("%u starts, %u refused\n", starts, refused);
    bool are_all_fine = failure == FAILURE_EINTR || failure == FAILURE_SHORT;
    assert_true(are_all_fine == (refused == 0));
}

static void a_start_that_fails_has_changed_nothing(void **state) {
    (void)state;
    run_starts(__func__, FAILURE_EIO, 1);
    run_starts(__func__, FAILURE_ENOSPC, 1);
    run_starts(__func__, FAILURE_ENOSPC, UINT64_MAX);
    run_starts(__func__, FAILURE_CRASH, UINT64_MAX);
}

static void a_start_does_not_notice_interruptions_and_short_reads(void **state) {
    (void)state;
    run_starts(__func__, FAILURE_EINTR, 1);
    run_starts(__func__, FAILURE_SHORT, 1);
}

static int set_up(void **state) {
    failing_disk_share();
    return story_set_up(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_of_the_disk_loses_nothing_that_was_safe),
        cmocka_unit_test(nor_does_a_disk_that_fails_until_it_heals),
        cmocka_unit_test(nor_a_disk_that_is_full_for_a_moment),
        cmocka_unit_test(nor_one_that_is_full_until_there_is_room),
        cmocka_unit_test(a_full_disk_never_ends_the_server),
        cmocka_unit_test(interruptions_are_not_noticed),
        cmocka_unit_test(nor_are_short_reads_and_writes),
        cmocka_unit_test(a_write_that_ends_half_way_for_good_loses_nothing_that_was_safe),
        cmocka_unit_test(writers_that_a_failed_snapshot_stops_go_on_once_the_disk_works),
        cmocka_unit_test(a_snapshot_succeeds_after_however_many_that_failed),
        cmocka_unit_test(two_commands_of_one_tick_may_fail),
        cmocka_unit_test(a_start_that_fails_has_changed_nothing),
        cmocka_unit_test(a_start_does_not_notice_interruptions_and_short_reads),
    };
    return cmocka_run_group_tests_name("failures of the disk", tests, set_up, story_tear_down);
}
