/* The history of a directory: the servers (durable_server.h) that had it, one after the other, each
 * in a process of its own, and what each of them found. To be included behind cmocka.h.
 *
 *     history_begin(random_begin(__func__));
 *     history_assert_ended(history_run_process(run, NULL));    in it: history_begin_run,
 * history_tick history_assert_ended(history_run_process(run, NULL));    finds what the first one
 * has left
 *
 * After each tick a digest of all boards is noted with the number of the tick's group: a state.
 * Whatever is loaded must be one of these, and none from before the last one that was safe. What
 * goes wrong stops the process that finds it. */
#ifndef TESTS_SUPPORT_RESTART_HISTORY_H
#define TESTS_SUPPORT_RESTART_HISTORY_H

#include "tests/support/directory.h"
#include "tests/support/durable_server.h"
#include "tests/support/registry_workload.h"

enum { HISTORY_STATES_MAX = 8192 };

struct history_state {
    uint64_t group;
    uint64_t digest;
    int64_t time_us; /* when the group ended */
};

/* Shared by the processes that have it one after the other. */
struct history {
    char directory[DIRECTORY_PATH_MAX];
    struct workload workload;
    uint32_t count;
    uint32_t durable;    /* states before this one may not come back */
    uint32_t save_begin; /* the state at which the last snapshot began */
    uint64_t save_count; /* snapshots of this run that are on disk */
    bool is_orderly;     /* the last run ended with everything on disk */
    /* Over all runs. */
    uint64_t tick_sum, save_sum, found_before_end;
    uint64_t switch_sum;  /* the test's: settings that it has changed */
    uint64_t refused_sum; /* times that writers were seen refused */
    /* The test's: a state that the next process must come to, and whether that takes a change. */
    uint64_t digest;
    bool has_changed;
    struct history_state states[HISTORY_STATES_MAX];
};
extern struct history *history;

/* For cmocka's groups. */
int history_set_up(void **state);
int history_tear_down(void **state);

/* Begin with an empty directory, and a workload of this seed. */
void history_begin(struct random random);
/* By the workload's random numbers: 0 .. limit - 1. */
uint32_t history_below(uint64_t limit);

/* ---- processes ---- */

/* Run it in a process of its own; returns how that ended, as waitpid does. */
int history_run_process(void (*run)(const void *context), const void *context);
/* Has the last one that was run apart printed or logged this? */
bool history_has_printed(const char *text);
/* Print all that it has. */
void history_show_printed(void);
bool history_was_killed(int status);
/* With exit status 0. */
void history_assert_ended(int status);

/* ---- runs of a server, in such a process ---- */

/* Start a server: what it has loaded is what may be found. Now and then days have gone by since the
 * last one. */
void history_begin_run(struct durable_server *durable, const char *settings);
/* The same of one that has been started, and that has loaded. */
void history_adopt_run(struct durable_server *durable);
/* One tick: commands commands, none if writers are refused, and what belongs to its end. */
void history_tick(struct durable_server *durable, uint32_t commands);
void history_turn(struct durable_server *durable);
/* durable_settle. */
bool history_settle(struct durable_server *durable);
void history_second(struct durable_server *durable);
/* BGSAVE. */
void history_begin_snapshot(struct durable_server *durable);
/* SAVE. */
enum persistence_status history_save(struct durable_server *durable);
/* What is safe now may not be lost: to be called after whatever else is done with the server. */
void history_note_safe(const struct durable_server *durable);
/* In order: the next run has to find everything. */
void history_end_run(struct durable_server *durable);

void history_check_valid(const struct registry *registry);

#endif
