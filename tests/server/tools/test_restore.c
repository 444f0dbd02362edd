/* A restore to a moment gives what was there at that moment: random changes over several runs of a
 * server that keeps what its snapshots supersede, and restores to random ticks. */
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/memory.h"
#include "server/durability/verify.h"
#include "server/system/log.h"
#include "server/tools/tools.h"
#include "tests/support/failing_disk.h"
#include "tests/support/restart_history.h"

enum { RUNS_MAX = 30 }; /* until there was a snapshot; of 80 or 320 ticks at most */

#define KEEPING "appendonly yes\nappendfsync no\nappendonly-keep-days 100\n"

static char path[DIRECTORY_PATH_MAX + 16];

static const char *target(void) {
    snprintf(path, sizeof path, "%s/target", history->directory);
    return path;
}

static void run_ticks(struct durable_server *durable, const char *settings) {
    quick_disk_begin();
    log_set_level(LOG_WARNING);
    history_begin_run(durable, settings);
    uint32_t ticks = 20 + history_below(is_short_run() ? 60 : 300);
    for (uint32_t i = 0; i < ticks; i++) {
        history_tick(durable, history_below(6));
        history_turn(durable);
        if (history_below(25) == 0) {
            (void)history_save(durable);
        }
    }
}

static void run_server(const void *context) {
    struct durable_server durable;
    run_ticks(&durable, context);
    history_end_run(&durable);
}

/* All is written, and nothing is closed. */
static void run_and_be_killed(const void *context) {
    struct durable_server durable;
    run_ticks(&durable, context);
    CHECK(history_settle(&durable));
    raise(SIGKILL);
}

/* As it was at this time: the last tick that is not after it. */
static const struct history_state *state_at(int64_t time_us) {
    const struct history_state *found = NULL;
    for (uint32_t i = 0; i < history->count; i++) {
        if (history->states[i].time_us <= time_us) {
            found = &history->states[i];
        }
    }
    return found;
}

static bool restore(int64_t until_us) {
    const struct restore_options options = {.until_us = until_us};
    const char *source = formatted("%s/kept", history->directory);
    return restore_run(source, target(), &options);
}

static uint64_t digest_of_target(void) {
    char error[DISK_ERROR_MAX];
    uint64_t time_us;
    struct registry *registry = workload_create_registry(0xface);
    if (!verify_load(target(), registry, &time_us, error)) {
        fail_msg("%s", error);
    }
    uint64_t digest = workload_digest(registry);
    registry_destroy(registry);
    return digest;
}

static void check_restore(int64_t until_us) {
    const struct history_state *state = state_at(until_us);
    assert_true(restore(until_us));
    assert_true(digest_of_target() == state->digest);
    directory_remove(target());
}

TEST(a_restore_gives_what_was_there_at_that_moment) {
    clock_calibrate();
    history_begin(random_begin(__func__));
    for (int run = 0; run < 3 || (history->save_sum == 0 && run < RUNS_MAX); run++) {
        if (run % 2 == 1) {
            history_assert_ended(history_run_process(run_server, KEEPING));
        } else if (!history_was_killed(history_run_process(run_and_be_killed, KEEPING))) {
            history_show_printed();
            fail();
        }
    }
    assert_true(history->save_sum > 0);
    uint32_t rounds = is_short_run() ? 40 : 300;
    for (uint32_t i = 0; i < rounds; i++) {
        const struct history_state *tick = &history->states[history_below(history->count)];
        int64_t until_us = tick->time_us;
        if (tick->group > 0) {
            check_restore(until_us + (int64_t)history_below(2) * 400);
        }
    }
    check_restore(INT64_MAX);
}

TEST(without_keeping_an_earlier_moment_is_refused) {
    clock_calibrate();
    history_begin(random_begin(__func__));
    /* The last one may have come too late for what is before it to be removed. */
    for (int run = 0; history->save_sum < 2 && run < RUNS_MAX; run++) {
        history_assert_ended(history_run_process(run_server, "appendonly yes\n"));
    }
    assert_false(restore(history->states[0].time_us - 1000000));
    assert_false(file_exists(target()));
}

TEST(a_target_that_is_not_empty_stays_as_it_is) {
    history_begin(random_begin(__func__));
    history_assert_ended(history_run_process(run_server, KEEPING));
    assert_int_equal(mkdir(target(), 0700), 0);
    file_write(directory_join(target(), "mine"), "x", 1);
    assert_false(restore(INT64_MAX));
    assert_int_equal(directory_count(target()), 1);
    assert_int_equal(unlink(directory_join(target(), "mine")), 0);
    assert_true(restore(INT64_MAX));
    assert_false(restore(INT64_MAX)); /* now it is in use */
    assert_true(digest_of_target() == state_at(INT64_MAX)->digest);
}

/* ---- damage ---- */

static const char *source_path(const char *name) {
    static char at[DIRECTORY_PATH_MAX + 64];
    snprintf(at, sizeof at, "%s/kept/%s", history->directory, name);
    return at;
}

enum { NAMES_MAX = 500 };
static char names[NAMES_MAX][64];
static uint32_t name_count;

/* The files of the source: those in use, those kept, the manifest. */
static void list_names(const char *inner) {
    DIR *directory = opendir(source_path(inner));
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        if (strncmp(entry->d_name, "leaderboard.", 12) == 0 && name_count < NAMES_MAX) {
            snprintf(names[name_count++], sizeof names[0], "%s%.40s", inner, entry->d_name);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

static void flip(const char *name, uint64_t bit) {
    char byte;
    int fd = open(source_path(name), O_RDWR);
    assert_true(pread(fd, &byte, 1, (off_t)(bit / 8)) == 1);
    byte = (char)(byte ^ (1 << bit % 8));
    assert_true(pwrite(fd, &byte, 1, (off_t)(bit / 8)) == 1);
    close(fd);
}

static bool restore_file(const char *name) {
    const struct restore_options options = {.until_us = INT64_MAX};
    const char *source = formatted("%s", source_path(name));
    return restore_run(source, target(), &options);
}

static uint64_t random_bit_of(const char *name) {
    struct stat status;
    assert_int_equal(stat(source_path(name), &status), 0);
    return history_below((uint32_t)status.st_size * 8);
}

/* The first bits and the last ones: heads, footers, and the last group's. */
static uint64_t bit_of(const char *name, uint32_t round) {
    enum { EDGE_BITS = 8 * 80 };
    struct stat status;
    assert_int_equal(stat(source_path(name), &status), 0);
    uint64_t bits = (uint64_t)status.st_size * 8;
    uint64_t edge = history_below(bits < EDGE_BITS ? (uint32_t)bits : EDGE_BITS);
    return round % 3 == 0 ? edge : round % 3 == 1 ? bits - 1 - edge : random_bit_of(name);
}

static void run_until_saved(uint32_t saves) {
    history_begin(random_begin("flips"));
    for (int run = 0; run < 2 || (history->save_sum < saves && run < RUNS_MAX); run++) {
        history_assert_ended(history_run_process(run_server, KEEPING));
    }
    name_count = 0;
    list_names("");
    list_names("kept/");
}

TEST(a_flipped_bit_anywhere_in_a_backup_is_found) {
    clock_calibrate();
    run_until_saved(1);
    for (uint32_t i = 0; i < name_count; i++) {
        if (strstr(names[i], ".base") == NULL) {
            continue;
        }
        for (uint32_t round = 0; round < (is_short_run() ? 60 : 2000); round++) {
            uint64_t bit = bit_of(names[i], round);
            flip(names[i], bit);
            assert_false(restore_file(names[i]));
            assert_false(file_exists(target()));
            flip(names[i], bit);
        }
        assert_true(restore_file(names[i]));
        directory_remove(target());
    }
}

/* Either it is refused, or the journals hold what the damaged file holds. */
TEST(a_flipped_bit_anywhere_in_a_directory_never_gives_less_than_there_was) {
    uint32_t refused = 0, restored = 0;
    clock_calibrate();
    run_until_saved(2);
    uint64_t digest = state_at(INT64_MAX)->digest;
    for (uint32_t round = 0; round < (is_short_run() ? 300 : 10000); round++) {
        const char *name = names[history_below(name_count)];
        uint64_t bit = bit_of(name, round);
        flip(name, bit);
        if (restore(INT64_MAX)) {
            assert_true(digest_of_target() == digest);
            directory_remove(target());
            restored++;
        } else {
            assert_false(file_exists(target()));
            refused++;
        }
        flip(name, bit);
    }
    assert_true(restored > 0 && refused > 0);
    assert_true(restore(INT64_MAX));
    assert_true(digest_of_target() == digest);
}

/* After each of them the target is either whole or none that a server would take for whole. */
TEST(each_file_call_of_a_restore_may_fail) {
    history_begin(random_begin(__func__));
    history_assert_ended(history_run_process(run_server, KEEPING));
    uint64_t nth = 0;
    uint32_t failed = 0;
    bool is_reached = true;
    while (is_reached) {
        failing_disk_begin(FAILURE_EIO, ++nth);
        bool is_done = restore(INT64_MAX);
        is_reached = failing_disk_end() >= nth;
        quick_disk_begin();
        failed += !is_done;
        assert_true(is_done ||
                    !file_exists(directory_join(target(), "appendonlydir/" STORE_MANIFEST_NAME)));
        assert_true(is_reached || is_done);
        assert_true(!is_done || digest_of_target() == state_at(INT64_MAX)->digest);
        if (file_exists(target())) {
            directory_remove(target());
        }
    }
    assert_true(failed > 10);
}

TEST(each_allocation_of_a_restore_may_fail) {
    history_begin(random_begin(__func__));
    history_assert_ended(history_run_process(run_server, KEEPING));
    bool is_done = false;
    uint64_t nth = 0;
    while (!is_done) {
        uint64_t live_before = memory_live_count();
        memory_fail_at(++nth);
        is_done = restore(INT64_MAX);
        memory_fail_at(0);
        assert_int_equal(memory_live_count(), live_before);
    }
    assert_true(nth > 2);
}

TEST_MAIN(history_set_up, history_tear_down)
