/* Settings with their defaults, and a directory with a file leaderboard.conf, for one test. */
#ifndef TESTS_SERVER_SETTINGS_FIXTURE_H
#define TESTS_SERVER_SETTINGS_FIXTURE_H

#include <unistd.h>

#include "server/settings/settings.h"
#include "tests/support/directory.h"
#include "tests/support/settings_file.h"
#include "tests/support/test.h"

struct fixture {
    struct settings settings;
    char error[SETTING_ERROR_MAX];
    uint64_t live_count_before;
    char directory[DIRECTORY_PATH_MAX];
    char path[DIRECTORY_PATH_MAX + 32]; /* of the file, which is written by write_file */
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->live_count_before = memory_live_count();
    assert_true(settings_init(&fixture->settings));
    directory_make(fixture->directory);
    snprintf(fixture->path, sizeof fixture->path, "%s/leaderboard.conf", fixture->directory);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    settings_deinit(&fixture->settings);
    assert_int_equal(memory_live_count(), fixture->live_count_before);
    directory_remove(fixture->directory);
    free(fixture);
    return 0;
}

#define FIXTURE_TEST(name) TEST_GIVEN(name, set_up, tear_down, struct fixture *fixture)

/* Returns its path. */
static inline const char *write_file(struct fixture *fixture, const char *text) {
    FILE *file = fopen(fixture->path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return fixture->path;
}

static inline bool set(struct fixture *fixture, const char *name, const char *value) {
    const struct bytes pair[] = {bytes_from_text(name), bytes_from_text(value)};
    return settings_set(&fixture->settings, pair, 1, NULL, NULL, fixture->error);
}

#endif
