/* The story of a directory: servers (kept_server.h) that have it one after the other, each in a
 * process of its own, and what each of them finds. To be included behind cmocka.h.
 *
 *     story_begin(random_begin(__func__));
 *     story_assert_ended(story_run_apart(live, NULL));    in it: story_begin_life, story_tick ...
 *     story_assert_ended(story_run_apart(live, NULL));    finds what the first one has left
 *
 * After each tick a digest of all boards is noted with the number of the tick's group: a moment.
 * Whatever is loaded must be one of these, and none from before the last one that was safe. What
 * goes wrong stops the process that finds it. */
#ifndef TESTS_SUPPORT_KEPT_STORY_H
#define TESTS_SUPPORT_KEPT_STORY_H

#include "tests/support/directory.h"
#include "tests/support/kept_server.h"
#include "tests/support/registry_storm.h"

enum { STORY_MOMENTS_MAX = 8192 };

struct story_moment {
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
    bool is_orderly;     /* the last life ended with everything on disk */
    /* Over all lives. */
    uint64_t tick_sum, save_sum, found_before_end;
    uint64_t switch_sum;  /* the test's: settings that it has changed */
    uint64_t refused_sum; /* times that writers were seen refused */
    struct story_moment moments[STORY_MOMENTS_MAX];
};
extern struct story *story;

/* For cmocka's groups. */
int story_set_up(void **state);
int story_tear_down(void **state);

/* Begin with an empty directory, and a storm of this seed. */
void story_begin(struct random random);
/* By the storm's random numbers: 0 .. limit - 1. */
uint32_t story_below(uint64_t limit);

/* ---- processes ---- */

/* Run it in a process of its own; returns how that ended, as waitpid does. */
int story_run_apart(void (*run)(const void *context), const void *context);
/* Has the last one that was run apart printed or logged this? */
bool story_has_said(const char *text);
/* Print all that it has. */
void story_show_said(void);
bool story_was_killed(int status);
/* With exit status 0. */
void story_assert_ended(int status);

/* ---- lives, in such a process ---- */

/* Start a server: what it has loaded is what may be found. */
void story_begin_life(struct kept_server *kept, const char *settings);
/* The same of one that has been started, and that has loaded. */
void story_begin_chapter(struct kept_server *kept);
/* One tick: commands commands, none if writers are refused, and what belongs to its end. */
void story_tick(struct kept_server *kept, uint32_t commands);
void story_turn(struct kept_server *kept);
/* kept_settle. */
bool story_settle(struct kept_server *kept);
void story_second(struct kept_server *kept);
/* BGSAVE. */
void story_begin_snapshot(struct kept_server *kept);
/* SAVE. */
enum persistence_status story_save(struct kept_server *kept);
/* What is safe now may not be lost: to be called behind whatever else is done with kept. */
void story_note_safe(const struct kept_server *kept);
/* In order: the next life has to find everything. */
void story_end_life(struct kept_server *kept);

void story_check_valid(const struct registry *registry);

#endif
