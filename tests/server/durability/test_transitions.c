/* Every row of persistence's tables of transitions is taken by a server that meets its cause, and
 * logged; and what CONFIG SET reserves. Each scene runs in a process of its own. */
#include "tests/support/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/durability/file_format.h"
#include "server/durability/staging.h"
#include "server/system/log.h"
#include "tests/support/failing_disk.h"
#include "tests/support/restart_history.h"

enum { ROWS_MAX = 64, SECONDS_MAX = 10000, TURNS = 200, ALLOCATIONS_MAX = 60 };

#define EVERYSEC "appendonly yes\nappendfsync everysec\n"
#define ALWAYS   "appendonly yes\nappendfsync always\n"
#define NOTHING  "appendonly no\nsave \"\"\n"

/* ---- a disk on which what the scene wants fails ---- */

static struct disk disk_below, disk_scene;
static atomic_bool fails_base, fails_journal, fails_sync, fails_rename, fails_directory;
static atomic_bool holds_rename;
static uint64_t failing_allocation;

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
static void put_members(struct durable_server *durable, uint32_t count, uint64_t score) {
    bool is_new;
    struct registry *registry = durable->server->registry;
    struct registry_key *key =
        registry_find_or_create(registry, 0, BYTES("pa"), history->workload.now_ms, &is_new);
    for (uint32_t i = 0; key != NULL && i < count; i++) {
        char name[128];
        struct board_member member;
        size_t size = (size_t)snprintf(name, sizeof name, "%0100u", i);
        board_look_up(&key->board, (struct bytes){.at = name, .size = size}, NULL, &member);
        (void)!registry_board_put(registry, key, &member, score);
    }
}

static void begin(struct durable_server *durable, const char *settings) {
    quick_disk_begin();
    disk_below = *disk;
    disk_scene = *disk;
    disk_scene.open_at = scene_open;
    disk_scene.sync_contents = scene_sync;
    disk_scene.rename_at = scene_rename;
    disk_scene.make_directory_at = scene_make_directory;
    disk = &disk_scene;
    log_set_level(LOG_DEBUG);
    history_begin_run(durable, settings);
    put_members(durable, 3, 7);
    durable_end_tick(durable);
}

/* Let seconds pass until it is so. */
static void wait_until(struct durable_server *durable,
                       bool (*is_so)(const struct durable_server *durable)) {
    for (int i = 0; !is_so(durable); i++) {
        CHECK(i < SECONDS_MAX);
        durable_second(durable);
        (void)!durable_settle(durable);
        durable_wait(durable);
    }
}

static bool is_refusing(const struct durable_server *durable) {
    return durable->server->durability.write_refusal != NULL;
}

static bool is_on(const struct durable_server *durable) {
    return durable_describe(durable).is_journal_on && !is_refusing(durable);
}

static bool is_off(const struct durable_server *durable) {
    return !durable_describe(durable).is_journal_on && !is_refusing(durable);
}

static bool has_failed_to_save(const struct durable_server *durable) {
    struct persistence_info info = durable_describe(durable);
    return !info.is_last_save_ok && !info.is_saving;
}

static void configure(struct durable_server *durable, bool appendonly) {
    durable->server->settings.appendonly = appendonly;
    wait_until(durable, appendonly ? is_on : is_off);
}

/* ---- scenes ---- */

static void turn_the_journal_on_and_off(struct durable_server *durable) {
    configure(durable, true);
    configure(durable, false);
}

static void save_with_a_journal(struct durable_server *durable) {
    CHECK(history_save(durable) == PERSISTENCE_OK);
}

static void load_damaged_files(struct durable_server *durable) {
    char name[64] = "kept/leaderboard.1.journal";
    durable_stop(durable);
    file_write(formatted("%s", directory_join(history->directory, name)),
               "damaged, and long enough for the head of a journal", 50);
    durable_start(durable, history->directory, EVERYSEC);
}

static void save_without_a_directory(struct durable_server *durable) {
    CHECK(history_save(durable) == PERSISTENCE_FAILED);
}

static void save_without_a_new_journal(struct durable_server *durable) {
    fails_journal = true;
    CHECK(history_save(durable) == PERSISTENCE_FAILED);
}

static void save_without_memory(struct durable_server *durable) {
    history_begin_snapshot(durable);
    memory_fail_at(1);
    durable_end_tick(durable);
    memory_fail_at(0);
    CHECK(!durable_describe(durable).is_saving);
}

static void save_without_a_base(struct durable_server *durable) {
    put_members(durable, 80000, 7); /* more than a walk goes ahead of the thread */
    fails_base = true;
    history_begin_snapshot(durable);
    durable_end_tick(durable);
    while (durable_describe(durable).is_saving) {
        durable_turn(durable);
    }
}

static void turn_the_journal_on_without_a_base(struct durable_server *durable) {
    CHECK(history_save(durable) == PERSISTENCE_OK);
    fails_rename = true;
    durable->server->settings.appendonly = true;
    wait_until(durable, has_failed_to_save);
    CHECK(is_off(durable));
}

static void break_and_repair(struct durable_server *durable) {
    fails_sync = true;
    fails_rename = true;
    wait_until(durable, is_refusing);
    fails_sync = false;
    wait_until(durable, has_failed_to_save);
    CHECK(is_refusing(durable));
    fails_rename = false;
    wait_until(durable, is_on);
}

static void break_and_turn_off(struct durable_server *durable) {
    fails_sync = true;
    fails_base = true;
    wait_until(durable, is_refusing);
    configure(durable, false);
}

static void fail_with_always(struct durable_server *durable) {
    (void)!durable_settle(durable);
    fails_sync = true;
    put_members(durable, 3, 8);
    durable_end_tick(durable);
    (void)!durable_settle(durable);
    CHECK(false); /* the host was to end */
}

/* While the journal waits for its base, one allocation fails. */
static void fail_to_buffer(struct durable_server *durable) {
    holds_rename = true;
    durable->server->settings.appendonly = true;
    while (!durable_describe(durable).is_saving) {
        durable_second(durable);
    }
    for (int i = 0; i < TURNS; i++) {
        durable_end_tick(durable);
        durable_turn(durable);
    }
    memory_fail_at(failing_allocation);
    put_members(durable, 3, 8);
    memory_fail_at(0);
    durable_end_tick(durable);
    holds_rename = false;
    wait_until(durable, is_on);
}

static void begin_a_journal_without_memory(struct durable_server *durable) {
    CHECK(history_save(durable) == PERSISTENCE_OK);
    fail_to_buffer(durable);
}

static void repair_a_journal_without_memory(struct durable_server *durable) {
    fails_sync = true;
    fails_base = true;
    wait_until(durable, is_refusing);
    wait_until(durable, has_failed_to_save);
    fails_sync = false;
    fails_base = false;
    fail_to_buffer(durable);
}

/* ---- a full copy, as a master sends it ---- */

/* Of the server's own keys. */
static void read_copy(struct durable_server *durable, struct buffer *copy) {
    static char piece[4096];
    char error[PERSISTENCE_ERROR_MAX];
    size_t size;
    buffer_init(copy, 0);
    CHECK(persistence_stream_begin(durable->persistence, error) == PERSISTENCE_OK);
    for (;;) {
        (void)persistence_step(durable->persistence);
        enum stream_status status =
            persistence_stream_read(durable->persistence, piece, sizeof piece, &size, error);
        CHECK(status != STREAM_FAILED);
        if (status == STREAM_END) {
            break;
        }
        if (status == STREAM_PIECE) {
            buffer_append(copy, piece, size);
        } else {
            durable_turn(durable);
        }
    }
    persistence_stream_end(durable->persistence);
    durable_turn(durable);
    CHECK(!copy->is_broken);
}

static enum staging_state receive(struct durable_server *durable, const struct buffer *copy) {
    char error[PERSISTENCE_ERROR_MAX];
    struct staging *staging = persistence_staging(durable->persistence);
    enum staging_state state = STAGING_NONE;
    while (persistence_begin_receive(durable->persistence, error) == PERSISTENCE_BUSY) {
        (void)!persistence_step_receive(durable->persistence, 1000);
        durable_turn(durable);
    }
    for (size_t at = 0; at < copy->size; at += 100) {
        size_t left = copy->size - at;
        staging_add(staging, copy->at + at, left < 100 ? left : 100);
    }
    staging_end(staging);
    for (int i = 0; i < SECONDS_MAX; i++) {
        (void)!persistence_step_receive(durable->persistence, 1000);
        durable_turn(durable);
        usleep(100);
        state = staging->state;
        if (state == STAGING_ADOPTED || state == STAGING_FAILED) {
            break;
        }
    }
    persistence_abandon_receive(durable->persistence);
    return state;
}

/* The copy, of boards with this digest, takes the place of what the server has had since. */
static void adopt(struct durable_server *durable, struct buffer *copy, uint64_t digest) {
    CHECK(receive(durable, copy) == STAGING_ADOPTED);
    buffer_deinit(copy);
    CHECK(workload_digest(durable->server->registry) == digest);
    CHECK(durable_describe(durable).is_journal_on);
    put_members(durable, 3, 9);
    durable_end_tick(durable);
}

static void take_a_copy(struct durable_server *durable) {
    struct buffer copy;
    read_copy(durable, &copy);
    uint64_t digest = workload_digest(durable->server->registry);
    put_members(durable, 5, 8);
    durable_end_tick(durable);
    CHECK(durable_settle(durable));
    CHECK(workload_digest(durable->server->registry) != digest);
    fails_rename = true;
    CHECK(receive(durable, &copy) == STAGING_FAILED);
    CHECK(workload_digest(durable->server->registry) != digest);
    fails_rename = false;
    adopt(durable, &copy, digest);
}

static void take_a_copy_where_the_journal_is_off(struct durable_server *durable) {
    struct buffer copy;
    read_copy(durable, &copy);
    uint64_t digest = workload_digest(durable->server->registry);
    durable->server->settings.appendonly = true;
    adopt(durable, &copy, digest);
}

static void take_a_copy_where_the_journal_is_broken(struct durable_server *durable) {
    struct buffer copy;
    read_copy(durable, &copy);
    uint64_t digest = workload_digest(durable->server->registry);
    put_members(durable, 5, 8);
    durable_end_tick(durable);
    fails_sync = true;
    fails_base = true;
    wait_until(durable, is_refusing);
    wait_until(durable, has_failed_to_save);
    fails_sync = false;
    fails_base = false;
    adopt(durable, &copy, digest);
}

/* ---- rows ---- */

static bool is_taken[ROWS_MAX];

static void note_rows(void) {
    const char *row;
    for (uint32_t i = 0; (row = persistence_transition(i)) != NULL; i++) {
        CHECK(i < ROWS_MAX);
        is_taken[i] = is_taken[i] || history_has_printed(formatted("debug persistence: %s\n", row));
    }
}

struct scene {
    const char *settings;
    void (*run)(struct durable_server *durable);
    /* NULL, or what is said when the allocation that fails is the journal's: each is tried. */
    const char *row;
    bool ends_the_process; /* the host ends: durable_server.c does it as main does */
    bool has_no_directory; /* from the start on */
};

static void run_scene(const void *context) {
    const struct scene *scene = context;
    ENDED_BY(durable_stop) struct durable_server durable;
    fails_directory = scene->has_no_directory;
    begin(&durable, scene->settings);
    scene->run(&durable);
}

static void play(const struct scene *scene) {
    failing_allocation = 0;
    do {
        failing_allocation++;
        history_begin(random_begin("transitions"));
        int status = history_run_process(run_scene, scene);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), scene->ends_the_process ? EXIT_FAILURE : 0);
        note_rows();
    } while (scene->row != NULL && !history_has_printed(scene->row) &&
             failing_allocation < ALLOCATIONS_MAX);
}

TEST(every_transition_is_reached) {
    static const struct scene scenes[] = {
        {.settings = NOTHING, .run = turn_the_journal_on_and_off},
        {.settings = EVERYSEC, .run = save_with_a_journal},
        {.settings = NOTHING, .run = save_without_a_directory, .has_no_directory = true},
        {.settings = EVERYSEC, .run = save_without_a_new_journal},
        {.settings = NOTHING, .run = save_without_memory},
        {.settings = NOTHING, .run = save_without_a_base},
        {.settings = NOTHING, .run = turn_the_journal_on_without_a_base},
        {.settings = EVERYSEC, .run = break_and_repair},
        {.settings = EVERYSEC "save \"\"\n", .run = break_and_turn_off},
        {.settings = EVERYSEC, .run = take_a_copy},
        {.settings = NOTHING, .run = take_a_copy_where_the_journal_is_off},
        {.settings = EVERYSEC, .run = take_a_copy_where_the_journal_is_broken},
        {.settings = EVERYSEC, .run = load_damaged_files, .ends_the_process = true},
        {.settings = ALWAYS, .run = fail_with_always, .ends_the_process = true},
        {.settings = NOTHING,
         .run = begin_a_journal_without_memory,
         .row = ": STARTING JOURNAL_GONE OFF"},
        {.settings = EVERYSEC,
         .run = repair_a_journal_without_memory,
         .row = ": RESTARTING JOURNAL_GONE BROKEN"},
    };
    for (size_t i = 0; i < COUNT_OF(scenes); i++) {
        test_row("scene %zu, with %s", i, scenes[i].settings);
        play(&scenes[i]);
    }
    uint32_t row = 0;
    for (; persistence_transition(row) != NULL; row++) {
        if (!is_taken[row]) {
            fail_msg("nothing has led to %s", persistence_transition(row));
        }
    }
    assert_int_equal(row, 32);
}

/* ---- settings ---- */

static void prepare_and_abandon(struct durable_server *durable) {
    char reason[SETTING_ERROR_MAX];
    fails_directory = false;
    struct settings wanted = durable->server->settings;
    wanted.appendonly = true;
    const char *path = formatted("%s", directory_join(history->directory, "kept"));
    CHECK(access(path, F_OK) != 0);
    CHECK(persistence_prepare_settings(durable->persistence, &wanted, reason) == NULL);
    CHECK(access(path, F_OK) == 0);
    persistence_abandon_settings(durable->persistence);
    CHECK(access(path, F_OK) != 0);
    fails_directory = true;
    CHECK(persistence_prepare_settings(durable->persistence, &wanted, reason) != NULL);
    fails_directory = false;
    CHECK(persistence_prepare_settings(durable->persistence, &wanted, reason) == NULL);
    persistence_commit_settings(durable->persistence);
    persistence_abandon_settings(durable->persistence); /* nothing: it is committed */
    CHECK(access(path, F_OK) == 0);
    configure(durable, true);
}

TEST(settings_that_are_abandoned_leave_nothing_behind) {
    play(
        &(struct scene){.settings = NOTHING, .run = prepare_and_abandon, .has_no_directory = true});
}

TEST_MAIN(history_set_up, history_tear_down)
