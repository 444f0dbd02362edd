/* See restart_history.h. */
#include "tests/support/restart_history.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/system/log.h"
#include "tests/support/test.h"

enum { RUN_SECONDS_MAX = 800, PRINTED_MAX = 1 << 20 };

struct history *history;

/* What the process that runs apart prints and logs. */
static FILE *printed;

int history_set_up(void **state) {
    (void)state;
    history =
        mmap(NULL, sizeof *history, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(history != MAP_FAILED);
    directory_make(history->directory);
    log_set_level(LOG_WARNING);
    printed = tmpfile();
    CHECK(printed != NULL);
    return 0;
}

int history_tear_down(void **state) {
    (void)state;
    disk = &disk_system;
    directory_remove(history->directory);
    munmap(history, sizeof *history);
    fclose(printed);
    return 0;
}

void history_begin(struct random random) {
    char directory[DIRECTORY_PATH_MAX];
    directory_remove(history->directory);
    directory_make(directory);
    memset(history, 0, sizeof *history);
    memcpy(history->directory, directory, sizeof directory);
    history->workload = (struct workload){.random = random,
                                          .now_ms = INT64_C(1795000000000),
                                          .members_max = 12,
                                          .database_count = REGISTRY_DATABASES,
                                          .has_ids = true};
}

uint32_t history_below(uint64_t limit) {
    return (uint32_t)random_below(&history->workload.random, limit);
}

/* ---- processes ---- */

static void become_child(void (*run)(const void *context), const void *context) {
    memory_init();
    alarm(RUN_SECONDS_MAX);
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* what fails here ends here */
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    CHECK(dup2(fileno(printed), STDOUT_FILENO) >= 0 && dup2(fileno(printed), STDERR_FILENO) >= 0);
    run(context);
    fflush(stdout);
    _exit(0);
}

int history_run_process(void (*run)(const void *context), const void *context) {
    fflush(stdout);
    fflush(stderr);
    CHECK(ftruncate(fileno(printed), 0) == 0 && lseek(fileno(printed), 0, SEEK_SET) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        become_child(run, context);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

/* Its size; text: PRINTED_MAX. */
static size_t read_printed(char *text) {
    ssize_t size = pread(fileno(printed), text, PRINTED_MAX - 1, 0);
    CHECK(size >= 0);
    text[size] = '\0';
    return (size_t)size;
}

bool history_has_printed(const char *text) {
    static char all[PRINTED_MAX];
    (void)read_printed(all);
    return strstr(all, text) != NULL;
}

void history_show_printed(void) {
    static char all[PRINTED_MAX];
    fwrite(all, 1, read_printed(all), stdout);
    fflush(stdout);
}

bool history_was_killed(int status) {
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

void history_assert_ended(int status) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        history_show_printed();
        fail_msg("a process ended with status %x", (unsigned)status);
    }
}

/* ---- states ---- */

static void note_state(const struct durable_server *durable) {
    CHECK(history->count < HISTORY_STATES_MAX);
    struct history_state state = {
        .group = persistence_last_group(durable->persistence),
        .digest = workload_digest(durable->server->registry),
        .time_us = durable->server->clock.now_us,
    };
    if (history->count > 0 && state.group == history->states[history->count - 1].group) {
        state.time_us = history->states[history->count - 1].time_us;
    }
    history->states[history->count++] = state;
}

void history_note_safe(const struct durable_server *durable) {
    struct persistence_info info = durable_describe(durable);
    uint64_t safe_group = persistence_safe_group(durable->persistence);
    CHECK(info.synced_group <= info.written_group && info.written_group <= info.group);
    history->refused_sum += durable->server->durability.write_refusal != NULL;
    for (uint32_t i = history->count; safe_group != UINT64_MAX && i-- > history->durable;) {
        if (history->states[i].group <= safe_group) {
            history->durable = i;
        }
    }
    if (info.save_count > history->save_count) {
        history->save_count = info.save_count;
        history->save_sum++;
        if (history->durable < history->save_begin) {
            history->durable = history->save_begin;
        }
    }
}

/* What was found is a state that may be found, and the clock has not gone behind it. */
static void check_found(uint64_t group, uint64_t digest, int64_t clock_us) {
    if (history->count == 0) {
        return; /* the first run */
    }
    for (uint32_t i = history->count; i-- > history->durable;) {
        if (history->states[i].digest == digest && history->states[i].group == group) {
            history->found_before_end += i + 1 < history->count;
            CHECK(clock_us >= history->states[i].time_us);
            CHECK(!history->is_orderly || digest == history->states[history->count - 1].digest);
            return;
        }
    }
    for (uint32_t i = 0; i < history->count; i++) {
        if (history->states[i].digest == digest) {
            fprintf(stderr, "it is state %u group %llu\n", i,
                    (unsigned long long)history->states[i].group);
        }
    }
    fprintf(stderr,
            "found group %llu, which is not one of the states %u to %u, groups %llu to %llu\n",
            (unsigned long long)group, history->durable, history->count - 1,
            (unsigned long long)history->states[history->durable].group,
            (unsigned long long)history->states[history->count - 1].group);
    CHECK(false);
}

void history_check_valid(const struct registry *registry) {
    const char *reason = "";
    if (!registry_validate(registry, &reason)) {
        fprintf(stderr, "%s\n", reason);
        CHECK(false);
    }
}

/* ---- runs ---- */

/* Now everywhere, now where few boards change much; and now on one of them above all. */
static void pick_habits(struct workload *workload) {
    workload->members_max = history_below(6) == 0 ? 200 : 12;
    workload->database_count = history_below(2) == 0 ? REGISTRY_DATABASES : 1;
    workload->favourite_database = 0;
    workload->favourite_size =
        history_below(2) == 0
            ? (size_t)snprintf(workload->favourite, sizeof workload->favourite, "%c%u",
                               "pltcdwm"[history_below(7)], history_below(3))
            : 0;
}

/* Now and then so much that keys have expired and periods have ended. */
static void pass_time_without_a_server(void) {
    if (history_below(3) == 0) {
        history->workload.now_ms += history_below(UINT64_C(3000000000));
    }
}

void history_adopt_run(struct durable_server *durable) {
    history_check_valid(durable->server->registry);
    struct persistence_info info = durable_describe(durable);
    check_found(info.group, workload_digest(durable->server->registry),
                durable->server->clock.latest_us);
    history->workload.registry = durable->server->registry;
    history->count = 0;
    history->durable = 0;
    history->save_begin = 0;
    history->save_count = 0;
    history->is_orderly = false;
    pick_habits(&history->workload);
    note_state(durable);
    pass_time_without_a_server();
    durable_set_time(durable, history->workload.now_ms);
}

void history_begin_run(struct durable_server *durable, const char *settings) {
    durable_start(durable, history->directory, settings);
    history_adopt_run(durable);
}

void history_tick(struct durable_server *durable, uint32_t commands) {
    struct persistence_info before = durable_describe(durable);
    struct history_state last = history->states[history->count - 1];
    if (durable->server->durability.write_refusal != NULL) {
        commands = 0;
    }
    while (commands-- > 0) {
        workload_step(&history->workload);
    }
    durable_set_time(durable, history->workload.now_ms);
    persistence_end_tick(durable->persistence);
    note_state(durable);
    if (history->count == 2) {
        history_check_valid(durable->server->registry); /* time went by before the first tick */
    }
    /* Nothing has changed that was not told. */
    const struct history_state *now = &history->states[history->count - 1];
    CHECK(!before.is_journal_on || now->group > last.group || now->digest == last.digest);
    CHECK(now->group >= last.group); /* a tick whose effects are long takes several groups */
    /* Walking takes many ticks where its steps are tiny. */
    for (uint32_t steps = 1 + history_below(24);
         steps > 0 && persistence_step(durable->persistence); steps--) {}
    history_note_safe(durable);
    history->tick_sum++;
}

void history_turn(struct durable_server *durable) {
    durable_turn(durable);
    history_note_safe(durable);
}

bool history_settle(struct durable_server *durable) {
    bool is_settled = durable_settle(durable);
    history_note_safe(durable);
    return is_settled;
}

void history_begin_snapshot(struct durable_server *durable) {
    char error[PERSISTENCE_ERROR_MAX];
    if (!durable_describe(durable).is_saving) {
        history->save_begin = history->count - 1;
    }
    (void)!persistence_begin_snapshot(durable->persistence, error);
    history_note_safe(durable);
}

enum persistence_status history_save(struct durable_server *durable) {
    char error[PERSISTENCE_ERROR_MAX];
    if (!durable_describe(durable).is_saving) {
        history->save_begin = history->count - 1;
    }
    enum persistence_status status = persistence_save(durable->persistence, error);
    history_note_safe(durable);
    return status;
}

/* A snapshot that begins by itself begins now at the earliest. */
void history_second(struct durable_server *durable) {
    if (!durable_describe(durable).is_saving) {
        history->save_begin = history->count - 1;
    }
    durable_second(durable);
    history_note_safe(durable);
}

void history_end_run(struct durable_server *durable) {
    char error[PERSISTENCE_ERROR_MAX];
    enum persistence_ending ending =
        durable_describe(durable).is_journal_on ? PERSISTENCE_END_AS_SET : PERSISTENCE_END_SAVE;
    note_state(durable);
    if (persistence_prepare_end(durable->persistence, ending, error) != PERSISTENCE_OK) {
        fprintf(stderr, "%s\n", error);
        CHECK(false);
    }
    history->is_orderly = true;
    history->durable = history->count - 1;
    durable_stop(durable);
}
