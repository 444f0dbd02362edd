/* Every row of persistence's tables of transitions is taken by a server that meets its cause, and
 * logged; and what CONFIG SET reserves. Each scene runs in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/system/log.h"
#include "tests/support/failing_disk.h"
#include "tests/support/kept_story.h"

enum { ROWS_MAX = 64, SECONDS_MAX = 10000, TURNS = 200, ALLOCATIONS_MAX = 60 };

#define EVERYSEC "appendonly yes\nappendfsync everysec\n"
#define ALWAYS   "appendonly yes\nappendfsync always\n"
#define NOTHING  "appendonly no\nsave \"\"\n"

/* ---- a disk on which what the scene wants fails ---- */

static struct disk disk_below, disk_scene;
static atomic_bool fails_base, fails_journal, fails_sync, fails_rename, fails_directory;
static atomic_bool holds_rename;

static int fail_if(bool is_failing, int error) {
    errno = error;
    return is_failing ? -1 : 0;
}

static int scene_open(int directory, const char *name, int flags, mode_t mode) {
    bool is_failing = (fails_base && strstr(name, ".base") != NULL) ||
                      (fails_journal && strstr(name, ".journal") != NULL);
    return fail_if(is_failing, ENOSPC) != 0 ? -1 : disk_below.open_at(directory, name, flags, mode);
}

static int scene_sync(int fd) {
    return fail_if(fails_sync, EIO) != 0 ? -1 : disk_below.sync_contents(fd);
}

static int scene_rename(int directory, const char *from, const char *to) {
    while (holds_rename) {
        usleep(100);
    }
    return fail_if(fails_rename, EIO) != 0 ? -1 : disk_below.rename_at(directory, from, to);
}

static int scene_make_directory(int directory, const char *name, mode_t mode) {
    return fail_if(fails_directory, EACCES) != 0
               ? -1
               : disk_below.make_directory_at(directory, name, mode);
}

/* Without memory it puts fewer. */
static void put_members(struct kept_server *kept, uint32_t count, uint64_t score) {
    bool is_new;
    struct registry *registry = kept->server->registry;
    struct registry_key *key =
        registry_find_or_create(registry, 0, BYTES("pa"), story->storm.now_ms, &is_new);
    for (uint32_t i = 0; key != NULL && i < count; i++) {
        char name[128];
        struct board_member member;
        size_t size = (size_t)snprintf(name, sizeof name, "%0100u", i);
        board_look_up(&key->board, (struct bytes){.at = name, .size = size}, NULL, &member);
        (void)!registry_put_member(registry, key, &member, score);
    }
}

static void begin(struct kept_server *kept, const char *settings) {
    quick_disk_begin();
    disk_below = *disk;
    disk_scene = *disk;
    disk_scene.open_at = scene_open;
    disk_scene.sync_contents = scene_sync;
    disk_scene.rename_at = scene_rename;
    disk_scene.make_directory_at = scene_make_directory;
    disk = &disk_scene;
    log_set_level(LOG_DEBUG);
    story_begin_life(kept, settings);
    put_members(kept, 3, 7);
    kept_end_tick(kept);
}

/* Let seconds pass until it is so. */
static void wait_until(struct kept_server *kept, bool (*is_so)(const struct kept_server *kept)) {
    for (int i = 0; !is_so(kept); i++) {
        CHECK(i < SECONDS_MAX);
        kept_second(kept);
        (void)!kept_settle(kept);
        kept_wait(kept);
    }
}

static bool is_refusing(const struct kept_server *kept) {
    return kept->server->durability.write_refusal != NULL;
}

static bool is_on(const struct kept_server *kept) {
    return kept_describe(kept).is_journal_on && !is_refusing(kept);
}

static bool is_off(const struct kept_server *kept) {
    return !kept_describe(kept).is_journal_on && !is_refusing(kept);
}

static bool has_failed_to_save(const struct kept_server *kept) {
    struct persistence_info info = kept_describe(kept);
    return !info.is_last_save_ok && !info.is_saving;
}

static void configure(struct kept_server *kept, bool appendonly) {
    kept->server->settings.appendonly = appendonly;
    wait_until(kept, appendonly ? is_on : is_off);
}

/* ---- scenes ---- */

static void turn_the_journal_on_and_off(const void *context) {
    (void)context;
    struct kept_server kept;
    begin(&kept, NOTHING);
    configure(&kept, true);
    configure(&kept, false);
    kept_stop(&kept);
}

static void save_with_a_journal(const void *context) {
    (void)context;
    struct kept_server kept;
    begin(&kept, EVERYSEC);
    CHECK(story_save(&kept) == PERSISTENCE_OK);
    kept_stop(&kept);
}

static void load_damaged_files(const void *context) {
    (void)context;
    char name[64] = "kept/leaderboard.1.journal";
    char path[2 * DIRECTORY_PATH_MAX];
    struct kept_server kept;
    begin(&kept, EVERYSEC);
    kept_stop(&kept);
    snprintf(path, sizeof path, "%s", directory_join(story->directory, name));
    file_write(path, "damaged, and long enough for the head of a journal", 50);
    kept_start(&kept, story->directory, EVERYSEC);
}

static void save_without_a_directory(const void *context) {
    (void)context;
    struct kept_server kept;
    begin(&kept, NOTHING);
    fails_directory = true;
    CHECK(story_save(&kept) == PERSISTENCE_FAILED);
    kept_stop(&kept);
}

static void save_without_a_new_journal(const void *context) {
    (void)context;
    struct kept_server kept;
    begin(&kept, EVERYSEC);
    fails_journal = true;
    CHECK(story_save(&kept) == PERSISTENCE_FAILED);
    kept_stop(&kept);
}

static void save_without_memory(const void *context) {
    (void)context;
    struct kept_server kept;
    begin(&kept, NOTHING);
    story_begin_snapshot(&kept);
    memory_fail_at(1);
    kept_end_tick(&kept);
    memory_fail_at(0);
    CHECK(!kept_describe(&kept).is_saving);
    kept_stop(&kept);
}

static void save_without_a_base(const void *context) {
    (void)context;
    struct kept_server kept;
    begin(&kept, NOTHING);
    put_members(&kept, 80000, 7); /* more than a walk goes ahead of the thread */
    fails_base = true;
    story_begin_snapshot(&kept);
    kept_end_tick(&kept);
    while (kept_describe(&kept).is_saving) {
        kept_turn(&kept);
    }
    kept_stop(&kept);
}

static void turn_the_journal_on_without_a_base(const void *context) {
    (void)context;
    struct kept_server kept;
    begin(&kept, NOTHING);
    CHECK(story_save(&kept) == PERSISTENCE_OK);
    fails_rename = true;
    kept.server->settings.appendonly = true;
    wait_until(&kept, has_failed_to_save);
    CHECK(is_off(&kept));
    kept_stop(&kept);
}

static void break_and_repair(const void *context) {
    (void)context;
    struct kept_server kept;
    begin(&kept, EVERYSEC);
    fails_sync = true;
    fails_rename = true;
    wait_until(&kept, is_refusing);
    fails_sync = false;
    wait_until(&kept, has_failed_to_save);
    CHECK(is_refusing(&kept));
    fails_rename = false;
    wait_until(&kept, is_on);
    kept_stop(&kept);
}

static void break_and_turn_off(const void *context) {
    (void)context;
    struct kept_server kept;
    begin(&kept, EVERYSEC "save \"\"\n");
    fails_sync = true;
    fails_base = true;
    wait_until(&kept, is_refusing);
    configure(&kept, false);
    kept_stop(&kept);
}

static void fail_with_always(const void *context) {
    (void)context;
    struct kept_server kept;
    begin(&kept, ALWAYS);
    (void)!kept_settle(&kept);
    fails_sync = true;
    put_members(&kept, 3, 8);
    kept_end_tick(&kept);
    (void)!kept_settle(&kept);
    CHECK(false); /* the host was to end */
}

/* While the journal waits for its base, one allocation fails. */
static void fail_to_buffer(struct kept_server *kept, uint64_t nth) {
    holds_rename = true;
    kept->server->settings.appendonly = true;
    while (!kept_describe(kept).is_saving) {
        kept_second(kept);
    }
    for (int i = 0; i < TURNS; i++) {
        kept_end_tick(kept);
        kept_turn(kept);
    }
    memory_fail_at(nth);
    put_members(kept, 3, 8);
    memory_fail_at(0);
    kept_end_tick(kept);
    holds_rename = false;
    wait_until(kept, is_on);
    kept_stop(kept);
}

static void begin_a_journal_without_memory(const void *context) {
    const uint64_t *nth = context;
    struct kept_server kept;
    begin(&kept, NOTHING);
    CHECK(story_save(&kept) == PERSISTENCE_OK);
    fail_to_buffer(&kept, *nth);
}

static void repair_a_journal_without_memory(const void *context) {
    const uint64_t *nth = context;
    struct kept_server kept;
    begin(&kept, EVERYSEC);
    fails_sync = true;
    fails_base = true;
    wait_until(&kept, is_refusing);
    wait_until(&kept, has_failed_to_save);
    fails_sync = false;
    fails_base = false;
    fail_to_buffer(&kept, *nth);
}

/* ---- rows ---- */

static bool is_taken[ROWS_MAX];

static void note_rows(void) {
    const char *row;
    for (uint32_t i = 0; (row = persistence_transition(i)) != NULL; i++) {
        char line[128];
        CHECK(i < ROWS_MAX);
        snprintf(line, sizeof line, "debug persistence: %s\n", row);
        is_taken[i] = is_taken[i] || story_has_said(line);
    }
}

static void play(void (*scene)(const void *context), uint64_t nth) {
    story_begin(random_begin("transitions"));
    story_assert_ended(story_run_apart(scene, &nth));
    note_rows();
}

/* The host ends: kept_server.c does it as main does. */
static void play_to_the_end_of_the_process(void (*scene)(const void *context)) {
    story_begin(random_begin("transitions"));
    int status = story_run_apart(scene, NULL);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
    note_rows();
}

/* Which allocation is the journal's depends on the command. */
static void play_until_said(void (*scene)(const void *context), const char *row) {
    uint64_t nth = 1;
    do {
        play(scene, nth++);
    } while (!story_has_said(row) && nth < ALLOCATIONS_MAX);
}

static void every_transition_is_reached(void **state) {
    (void)state;
    play(turn_the_journal_on_and_off, 0);
    play(save_with_a_journal, 0);
    play(save_without_a_directory, 0);
    play(save_without_a_new_journal, 0);
    play(save_without_memory, 0);
    play(save_without_a_base, 0);
    play(turn_the_journal_on_without_a_base, 0);
    play(break_and_repair, 0);
    play(break_and_turn_off, 0);
    play_to_the_end_of_the_process(load_damaged_files);
    play_to_the_end_of_the_process(fail_with_always);
    play_until_said(begin_a_journal_without_memory, ": STARTING JOURNAL_GONE OFF");
    play_until_said(repair_a_journal_without_memory, ": RESTARTING JOURNAL_GONE BROKEN");
    uint32_t row = 0;
    for (; persistence_transition(row) != NULL; row++) {
        if (!is_taken[row]) {
            fail_msg("nothing has led to %s", persistence_transition(row));
        }
    }
    assert_int_equal(row, 26);
}

/* ---- settings ---- */

static void prepare_and_abandon(const void *context) {
    (void)context;
    char reason[SETTING_ERROR_MAX];
    char path[DIRECTORY_PATH_MAX];
    struct kept_server kept;
    begin(&kept, NOTHING);
    struct settings wanted = kept.server->settings;
    wanted.appendonly = true;
    snprintf(path, sizeof path, "%s", directory_join(story->directory, "kept"));
    CHECK(access(path, F_OK) != 0);
    CHECK(persistence_prepare_settings(kept.persistence, &wanted, reason) == NULL);
    CHECK(access(path, F_OK) == 0);
    persistence_abandon_settings(kept.persistence);
    CHECK(access(path, F_OK) != 0);
    fails_directory = true;
    CHECK(persistence_prepare_settings(kept.persistence, &wanted, reason) != NULL);
    fails_directory = false;
    CHECK(persistence_prepare_settings(kept.persistence, &wanted, reason) == NULL);
    persistence_commit_settings(kept.persistence);
    persistence_abandon_settings(kept.persistence); /* nothing: it is committed */
    CHECK(access(path, F_OK) == 0);
    configure(&kept, true);
    kept_stop(&kept);
}

static void settings_that_are_abandoned_leave_nothing_behind(void **state) {
    (void)state;
    play(prepare_and_abandon, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_transition_is_reached),
        cmocka_unit_test(settings_that_are_abandoned_leave_nothing_behind),
    };
    return cmocka_run_group_tests_name("transitions", tests, story_set_up, story_tear_down);
}
