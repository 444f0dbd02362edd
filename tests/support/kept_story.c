/* See kept_story.h. */
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

#include "codec/memory.h"
#include "server/system/log.h"
#include "tests/support/kept_story.h"

enum { LIFE_SECONDS_MAX = 240, SAID_MAX = 1 << 20 };

struct story *story;

/* What the process that runs apart prints and logs. */
static FILE *said;

int story_set_up(void **state) {
    (void)state;
    story = mmap(NULL, sizeof *story, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(story != MAP_FAILED);
    directory_make(story->directory);
    log_set_level(LOG_WARNING);
    said = tmpfile();
    CHECK(said != NULL);
    return 0;
}

int story_tear_down(void **state) {
    (void)state;
    disk = &disk_system;
    directory_remove(story->directory);
    munmap(story, sizeof *story);
    fclose(said);
    return 0;
}

void story_begin(struct random random) {
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

uint32_t story_below(uint64_t limit) {
    return (uint32_t)random_below(&story->storm.random, limit);
}

/* ---- processes ---- */

static void be_another(void (*run)(const void *context), const void *context) {
    memory_init();
    alarm(LIFE_SECONDS_MAX);
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* what fails here ends here */
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    CHECK(dup2(fileno(said), STDOUT_FILENO) >= 0 && dup2(fileno(said), STDERR_FILENO) >= 0);
    run(context);
    fflush(stdout);
    _exit(0);
}

int story_run_apart(void (*run)(const void *context), const void *context) {
    fflush(stdout);
    fflush(stderr);
    CHECK(ftruncate(fileno(said), 0) == 0 && lseek(fileno(said), 0, SEEK_SET) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        be_another(run, context);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

/* Its size; text: SAID_MAX. */
static size_t read_said(char *text) {
    ssize_t size = pread(fileno(said), text, SAID_MAX - 1, 0);
    CHECK(size >= 0);
    text[size] = '\0';
    return (size_t)size;
}

bool story_has_said(const char *text) {
    static char all[SAID_MAX];
    (void)read_said(all);
    return strstr(all, text) != NULL;
}

void story_show_said(void) {
    static char all[SAID_MAX];
    fwrite(all, 1, read_said(all), stdout);
    fflush(stdout);
}

bool story_was_killed(int status) {
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

void story_assert_ended(int status) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        story_show_said();
        fail_msg("a process ended with status %x", (unsigned)status);
    }
}

/* ---- moments ---- */

static void note_moment(const struct kept_server *kept) {
    CHECK(story->count < STORY_MOMENTS_MAX);
    struct story_moment moment = {
        .group = persistence_last_group(kept->persistence),
        .digest = storm_digest(kept->server->registry),
        .time_us = kept->server->clock.now_us,
    };
    if (story->count > 0 && moment.group == story->moments[story->count - 1].group) {
        moment.time_us = story->moments[story->count - 1].time_us;
    }
    story->moments[story->count++] = moment;
}

void story_note_safe(const struct kept_server *kept) {
    struct persistence_info info = kept_describe(kept);
    uint64_t safe_group = persistence_safe_group(kept->persistence);
    CHECK(info.synced_group <= info.written_group && info.written_group <= info.group);
    story->refused_sum += kept->server->durability.write_refusal != NULL;
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

void story_check_valid(const struct registry *registry) {
    const char *reason = "";
    if (!registry_validate(registry, &reason)) {
        fprintf(stderr, "%s\n", reason);
        CHECK(false);
    }
}

/* ---- lives ---- */

/* Now everywhere, now where few boards change much; and now on one of them above all. */
static void pick_habits(struct storm *storm) {
    storm->members_max = story_below(6) == 0 ? 200 : 12;
    storm->database_count = story_below(2) == 0 ? REGISTRY_DATABASES : 1;
    storm->favourite_database = 0;
    storm->favourite_size =
        story_below(2) == 0 ? (size_t)snprintf(storm->favourite, sizeof storm->favourite, "%c%u",
                                               "pltcdwm"[story_below(7)], story_below(3))
                            : 0;
}

void story_begin_chapter(struct kept_server *kept) {
    story_check_valid(kept->server->registry);
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

void story_begin_life(struct kept_server *kept, const char *settings) {
    kept_start(kept, story->directory, settings);
    story_begin_chapter(kept);
}

void story_tick(struct kept_server *kept, uint32_t commands) {
    struct persistence_info before = kept_describe(kept);
    struct story_moment last = story->moments[story->count - 1];
    if (kept->server->durability.write_refusal != NULL) {
        commands = 0;
    }
    while (commands-- > 0) {
        storm_step(&story->storm);
    }
    kept_set_time(kept, story->storm.now_ms);
    persistence_end_tick(kept->persistence);
    note_moment(kept);
    /* Nothing has changed that was not told. */
    const struct story_moment *now = &story->moments[story->count - 1];
    CHECK(!before.is_journal_on || now->group > last.group || now->digest == last.digest);
    CHECK(now->group >= last.group); /* a tick whose effects are long takes several groups */
    /* Walking takes many ticks where its steps are tiny. */
    for (uint32_t steps = 1 + story_below(24); steps > 0 && persistence_step(kept->persistence);
         steps--) {}
    story_note_safe(kept);
    story->tick_sum++;
}

void story_turn(struct kept_server *kept) {
    kept_turn(kept);
    story_note_safe(kept);
}

bool story_settle(struct kept_server *kept) {
    bool is_settled = kept_settle(kept);
    story_note_safe(kept);
    return is_settled;
}

void story_begin_snapshot(struct kept_server *kept) {
    char error[PERSISTENCE_ERROR_MAX];
    if (!kept_describe(kept).is_saving) {
        story->save_begin = story->count - 1;
    }
    (void)!persistence_begin_snapshot(kept->persistence, error);
    story_note_safe(kept);
}

enum persistence_status story_save(struct kept_server *kept) {
    char error[PERSISTENCE_ERROR_MAX];
    if (!kept_describe(kept).is_saving) {
        story->save_begin = story->count - 1;
    }
    enum persistence_status status = persistence_save(kept->persistence, error);
    story_note_safe(kept);
    return status;
}

/* A snapshot that begins by itself begins now at the earliest. */
void story_second(struct kept_server *kept) {
    if (!kept_describe(kept).is_saving) {
        story->save_begin = story->count - 1;
    }
    kept_second(kept);
    story_note_safe(kept);
}

void story_end_life(struct kept_server *kept) {
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
