/* What survives the process, under storms of changes: servers that are stopped, killed or let down
 * by the disk, each in a process of its own, and what the next one finds.
 *
 * After each tick a digest of all boards is noted with the number of the tick's group. Whatever is
 * loaded must be one of these moments, and none from before the last one that was safe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/loading.h"
#include "server/log.h"
#include "tests/support/directory.h"
#include "tests/support/failing_disk.h"
#include "tests/support/kept_server.h"
#include "tests/support/registry_storm.h"

enum { MOMENTS_MAX = 8192, LIFE_SECONDS_MAX = 240 };

static bool is_short(void) {
    return getenv("LEADERBOARD_TEST_SHORT") != NULL;
}

/* ---- the story of a directory ---- */

struct moment {
    uint64_t group;
    uint64_t digest;
    int64_t time_us; /* when the group ended */
};

/* Shared by the processes that have it one after the other. */
struct story {
    char directory[DIRECTORY_PATH_MAX];
    struct storm storm;
    uint32_t count;
    uint32_t durable;    /* moments before this one may not come back */
    uint32_t save_begin; /* the moment at which the last snapshot began */
    uint64_t save_count; /* snapshots of this life that are on disk */
    uint64_t calls;      /* of a failing disk */
    uint64_t refused_ticks;
    bool is_orderly; /* the last life ended with everything on disk */
    /* Over all lives. */
    uint64_t tick_sum, save_sum, found_before_end, journal_changes;
    struct moment moments[MOMENTS_MAX];
};

static struct story *story;

static int begin_story(void **state) {
    (void)state;
    story = mmap(NULL, sizeof *story, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(story != MAP_FAILED);
    directory_make(story->directory);
    log_set_level(LOG_WARNING);
    return 0;
}

static int end_story(void **state) {
    (void)state;
    disk = &disk_system;
    directory_remove(story->directory);
    munmap(story, sizeof *story);
    return 0;
}

/* Begin with an empty directory, and a storm of this seed. */
static void tell_anew(struct random random) {
    char directory[DIRECTORY_PATH_MAX];
    directory_remove(story->directory);
    directory_make(directory);
    memset(story, 0, sizeof *story);
    memcpy(story->directory, directory, sizeof directory);
    story->storm = (struct storm){.random = random,
                                  .now_ms = INT64_C(1795000000000),
                                  .members_max = 12,
                                  .database_count = REGISTRY_DATABASES};
}

static uint32_t below(uint64_t limit) {
    return (uint32_t)random_below(&story->storm.random, limit);
}

static void note_moment(const struct kept_server *kept) {
    CHECK(story->count < MOMENTS_MAX);
    struct moment moment = {
        .group = persistence_last_group(kept->persistence),
        .digest = storm_digest(kept->server->registry),
        .time_us = kept->server->now_us,
    };
    if (story->count > 0 && moment.group == story->moments[story->count - 1].group) {
        moment.time_us = story->moments[story->count - 1].time_us;
    }
    story->moments[story->count++] = moment;
}

static void note_safe(const struct kept_server *kept) {
    struct persistence_info info = kept_describe(kept);
    uint64_t safe_group = persistence_safe_group(kept->persistence);
    CHECK(info.synced_group <= info.written_group && info.written_group <= info.group);
    for (uint32_t i = story->count; safe_group != UINT64_MAX && i-- > story->durable;) {
        if (story->moments[i].group <= safe_group) {
            story->durable = i;
        }
    }
    if (info.save_count > story->save_count) {
        story->save_count = info.save_count;
        story->save_sum++;
        if (story->durable < story->save_begin) {
            story->durable = story->save_begin;
        }
    }
}

/* What was found is a moment that may be found, and the clock has not gone behind it. */
static void check_found(uint64_t group, uint64_t digest, int64_t clock_us) {
    if (story->count == 0) {
        return; /* the first life */
    }
    for (uint32_t i = story->count; i-- > story->durable;) {
        if (story->moments[i].digest == digest && story->moments[i].group == group) {
            story->found_before_end += i + 1 < story->count;
            CHECK(clock_us >= story->moments[i].time_us);
            CHECK(!story->is_orderly || digest == story->moments[story->count - 1].digest);
            return;
        }
    }
    for (uint32_t i = 0; i < story->count; i++) {
        if (story->moments[i].digest == digest) {
            fprintf(stderr, "it is moment %u group %llu\n", i,
                    (unsigned long long)story->moments[i].group);
        }
    }
    fprintf(stderr,
            "found group %llu, which is not one of the moments %u to %u, groups %llu to %llu\n",
            (unsigned long long)group, story->durable, story->count - 1,
            (unsigned long long)story->moments[story->durable].group,
            (unsigned long long)story->moments[story->count - 1].group);
    CHECK(false);
}

static void check_valid(const struct registry *registry) {
    const char *reason = "";
    if (!registry_validate(registry, &reason)) {
        fprintf(stderr, "%s\n", reason);
        CHECK(false);
    }
}

/* ---- lives ---- */

/* Now everywhere, now where few boards change much; and now on one of them above all. */
static void pick_habits(struct storm *storm) {
    storm->members_max = below(6) == 0 ? 200 : 12;
    storm->database_count = below(2) == 0 ? REGISTRY_DATABASES : 1;
    storm->favourite_database = 0;
    storm->favourite_size = below(2) == 0
                                ? (size_t)snprintf(storm->favourite, sizeof storm->favourite,
                                                   "%c%u", "pltcdwm"[below(7)], below(3))
                                : 0;
}

static void begin_life(struct kept_server *kept, const char *settings) {
    kept_start(kept, story->directory, settings);
    check_valid(kept->server->registry);
    struct persistence_info info = kept_describe(kept);
    check_found(info.group, storm_digest(kept->server->registry), kept->server->clock.latest_us);
    story->storm.registry = kept->server->registry;
    story->count = 0;
    story->durable = 0;
    story->save_begin = 0;
    story->save_count = 0;
    story->is_orderly = false;
    pick_habits(&story->storm);
    note_moment(kept);
    kept_set_time(kept, story->storm.now_ms);
}

/* One tick: commands commands, and what belongs to its end. */
static void run_tick(struct kept_server *kept, uint32_t commands) {
    struct persistence_info before = kept_describe(kept);
    struct moment last = story->moments[story->count - 1];
    if (kept->server->write_refusal != NULL) {
        commands = 0;
        story->refused_ticks++;
    }
    while (commands-- > 0) {
        storm_step(&story->storm);
    }
    kept_set_time(kept, story->storm.now_ms);
    persistence_end_tick(kept->persistence);
    note_moment(kept);
    /* Nothing has changed that was not told. */
    const struct moment *now = &story->moments[story->count - 1];
    CHECK(!before.is_journal_on || now->group > last.group || now->digest == last.digest);
    CHECK(now->group <= last.group + 1);
    /* Walking takes many ticks where its steps are tiny. */
    for (uint32_t steps = 1 + below(24); steps > 0 && persistence_step(kept->persistence);
         steps--) {}
    note_safe(kept);
    story->tick_sum++;
}

static void turn(struct kept_server *kept) {
    kept_turn(kept);
    note_safe(kept);
}

static void begin_snapshot(struct kept_server *kept) {
    char error[PERSISTENCE_ERROR_MAX];
    if (!kept_describe(kept).is_saving) {
        story->save_begin = story->count - 1;
    }
    (void)!persistence_begin_snapshot(kept->persistence, error);
}

static void save(struct kept_server *kept) {
    char error[PERSISTENCE_ERROR_MAX];
    if (!kept_describe(kept).is_saving) {
        story->save_begin = story->count - 1;
        CHECK(persistence_save(kept->persistence, error) == PERSISTENCE_OK);
    } else {
        CHECK(persistence_save(kept->persistence, error) == PERSISTENCE_BUSY);
    }
}

/* A snapshot that begins by itself begins now at the earliest. */
static void let_a_second_pass(struct kept_server *kept) {
    bool was_saving = kept_describe(kept).is_saving;
    if (!was_saving) {
        story->save_begin = story->count - 1;
    }
    kept_second(kept);
}

struct plan {
    const char *settings;
    bool is_switching; /* appendonly, now and then */
    bool has_delays;   /* so that threads get ahead */
};

static void do_something_else(struct kept_server *kept, const struct plan *plan) {
    struct settings *settings = &kept->server->settings;
    switch (below(200)) {
    case 0:
        begin_snapshot(kept);
        break;
    case 1:
        if (below(4) == 0) {
            save(kept);
        }
        break;
    case 2:
        if (plan->is_switching) {
            settings->appendonly = !settings->appendonly;
            story->journal_changes++;
        }
        break;
    case 3:
        settings->appendfsync = (int)below(3);
        break;
    default:
        break;
    }
    if (below(12) == 0) {
        let_a_second_pass(kept);
    }
}

static void run_ticks(struct kept_server *kept, const struct plan *plan, uint32_t ticks) {
    while (ticks-- > 0) {
        do_something_else(kept, plan);
        note_safe(kept);
        run_tick(kept, below(5));
        for (uint32_t turns = below(3); turns > 0; turns--) {
            turn(kept);
        }
        if (plan->has_delays && below(16) == 0) {
            usleep(below(300));
        }
    }
}

static void end_life(struct kept_server *kept) {
    char error[PERSISTENCE_ERROR_MAX];
    enum persistence_ending ending =
        kept_describe(kept).is_journal_on ? PERSISTENCE_END_AS_SET : PERSISTENCE_END_SAVE;
    note_moment(kept);
    if (persistence_prepare_end(kept->persistence, ending, error) != PERSISTENCE_OK) {
        fprintf(stderr, "%s\n", error);
        CHECK(false);
    }
    story->is_orderly = true;
    story->durable = story->count - 1;
    kept_stop(kept);
}

/* Run it in a process of its own; returns how that ended. */
static int in_another_process(void (*run)(const void *context), const void *context) {
    fflush(stdout);
    fflush(stderr);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(LIFE_SECONDS_MAX);
        setenv("CMOCKA_TEST_ABORT", "1", 1); /* what fails here ends here */
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        run(context);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static bool was_killed(int status) {
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void assert_ended(int status) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("a process ended with status %x", (unsigned)status);
    }
}

static void live_and_end(const void *context) {
    const struct plan *plan = context;
    struct kept_server kept;
    quick_disk_begin();
    begin_life(&kept, plan->settings);
    run_ticks(&kept, plan, below(400));
    end_life(&kept);
}

static void live_and_be_killed(const void *context) {
    const struct plan *plan = context;
    struct kept_server kept;
    quick_disk_begin();
    begin_life(&kept, plan->settings);
    run_ticks(&kept, plan, below(300));
    usleep(below(500));
    raise(SIGKILL);
}

static void look_and_end(const void *context) {
    const struct plan *plan = context;
    struct kept_server kept;
    begin_life(&kept, plan->settings);
    end_life(&kept);
}

/* Many lives in the same directory, of which some end by a signal. */
static void run_lives(const char *test_name, const struct plan *plans, uint32_t plan_count,
                      uint32_t lives, bool has_kills) {
    tell_anew(random_begin(test_name));
    for (uint32_t i = 0; i < lives; i++) {
        const struct plan *plan = &plans[below(plan_count)];
        if (has_kills && below(4) != 0) {
            int status = in_another_process(live_and_be_killed, plan);
            if (!was_killed(status)) {
                fail_msg("a life ended with status %x", (unsigned)status);
            }
        } else {
            assert_ended(in_another_process(live_and_end, plan));
        }
    }
    assert_ended(in_another_process(look_and_end, &plans[0]));
    printf("%u lives, %llu ticks, %llu snapshots, %llu times the journal on or off, %llu times "
           "less than all was there\n",
           lives, (unsigned long long)story->tick_sum, (unsigned long long)story->save_sum,
           (unsigned long long)story->journal_changes, (unsigned long long)story->found_before_end);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_was_stopped_goes_on_as_it_was),
        cmocka_unit_test(with_and_without_a_journal_it_goes_on_as_it_was),
        cmocka_unit_test(a_server_that_was_killed_has_all_that_was_safe),
        cmocka_unit_test(with_and_without_a_journal_it_has_all_that_was_safe),
    };
    return cmocka_run_group_tests_name("persistence", tests, begin_story, end_story);
}
