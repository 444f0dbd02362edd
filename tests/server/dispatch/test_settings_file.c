/* A file of settings that cannot be written when the role changes. See server/dispatch/settings_file.h. */
#include "server/dispatch/settings_file.h"
#include "tests/support/directory.h"
#include "tests/support/failing_disk.h"
#include "tests/support/harness.h"
#include "tests/support/settings_file.h"
#include "tests/support/test.h"

enum { ALL = 1000000 };
#define BEGIN    "port 7\n# Written by CONFIG REWRITE:\n"
#define REPLICA  BEGIN "replicaof 127.0.0.1 7001\n"
#define PROMOTED BEGIN "replicaof \"\"\n"
#define FULL     "-ERR Rewriting config file: No space left on device\r\n"

struct fixture {
    struct harness *harness;
    struct session *session;
    char directory[DIRECTORY_PATH_MAX], path[DIRECTORY_PATH_MAX + 32];
};

static void end(struct fixture *f) {
    (void)failing_disk_end();
    harness_destroy(f->harness);
    directory_remove(f->directory);
}

static void ask(struct fixture *f, const char *request, const char *expected) {
    harness_expect(f->harness, f->session, request, expected);
}

static void assert_file(struct fixture *f, const char *expected) {
    size_t size;
    OWNED char *text = file_read(f->path, &size);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(text, expected, size);
}

static void begin(struct fixture *f) {
    char error[SETTING_ERROR_MAX];
    f->harness = harness_create(NULL);
    f->session = harness_connect(f->harness);
    directory_make(f->directory);
    snprintf(f->path, sizeof f->path, "%s", directory_join(f->directory, "leaderboard.conf"));
    file_write(f->path, "port 7\n", 7);
    struct settings *settings = &f->harness->server.settings;
    settings_deinit(settings);
    assert_true(settings_init(settings) && settings_load_file(settings, f->path, error) &&
                settings_finish(settings, error));
    ask(f, "SLAVEOF 127.0.0.1 7001", "+OK\r\n");
    ask(f, "CONFIG REWRITE", "+OK\r\n");
    assert_file(f, REPLICA);
}

static bool says(struct fixture *f, const char *line) {
    const char *reply = harness_run(f->harness, f->session, "INFO server");
    return strstr(reply, line) != NULL;
}

/* So many seconds, each with its chance to write. */
static void pass(struct fixture *f, int seconds) {
    for (int i = 0; i < seconds; i++) {
        f->harness->wall_us += 1000000;
        server_update_time(&f->harness->server);
        settings_file_second(&f->harness->server);
    }
}

TEST(a_role_that_the_file_does_not_say_is_written_once_the_disk_has_room) {
    ENDED_BY(end) struct fixture f;
    begin(&f);
    ask(&f, "SLAVEOF NO ONE", "+OK\r\n");
    failing_disk_begin_for(FAILURE_FULL, 1, ALL);
    ask(&f, "CONFIG REWRITE", FULL);
    assert_true(says(&f, "config_rewrite_status:err\r\n"));
    pass(&f, 300);
    assert_file(&f, REPLICA);
    assert_true(says(&f, "config_rewrite_status:err\r\n"));
    failing_disk_heal();
    pass(&f, 64); /* the longest pause */
    assert_file(&f, PROMOTED);
    assert_true(says(&f, "config_rewrite_status:ok\r\n"));
}

TEST(the_pauses_between_tries_double_and_end_at_a_minute) {
    static const int seconds[] = {1, 2, 4, 8, 16, 32, 64, 64};
    ENDED_BY(end) struct fixture f;
    begin(&f);
    ask(&f, "SLAVEOF NO ONE", "+OK\r\n");
    failing_disk_begin_for(FAILURE_FULL, 1, ALL);
    ask(&f, "CONFIG REWRITE", FULL);
    for (size_t i = 0; i < COUNT_OF(seconds); i++) {
        pass(&f, seconds[i] - 1);
        assert_int_equal(f.harness->server.rewrite.try_count, i + 1);
        pass(&f, 1);
        assert_int_equal(f.harness->server.rewrite.try_count, i + 2);
    }
}

TEST(a_server_that_ends_tries_once_more) {
    ENDED_BY(end) struct fixture f;
    begin(&f);
    ask(&f, "SLAVEOF NO ONE", "+OK\r\n");
    failing_disk_begin_for(FAILURE_FULL, 1, ALL);
    ask(&f, "CONFIG REWRITE", FULL);
    failing_disk_heal();
    assert_file(&f, REPLICA);
    settings_file_end(&f.harness->server);
    assert_file(&f, PROMOTED);
}

/* Whoever asked for it has been told, and the next start takes the role that the server has. */
TEST(other_settings_are_not_written_behind_an_error) {
    ENDED_BY(end) struct fixture f;
    begin(&f);
    ask(&f, "CONFIG SET timeout 30", "+OK\r\n");
    failing_disk_begin_for(FAILURE_FULL, 1, ALL);
    ask(&f, "CONFIG REWRITE", FULL);
    assert_true(says(&f, "config_rewrite_status:ok\r\n"));
    failing_disk_heal();
    pass(&f, 100);
    assert_file(&f, REPLICA);
}

TEST(a_role_that_comes_back_is_owed_no_more) {
    ENDED_BY(end) struct fixture f;
    begin(&f);
    ask(&f, "SLAVEOF NO ONE", "+OK\r\n");
    failing_disk_begin_for(FAILURE_FULL, 1, ALL);
    ask(&f, "CONFIG REWRITE", FULL);
    ask(&f, "SLAVEOF 127.0.0.1 7001", "+OK\r\n");
    pass(&f, 1);
    assert_true(says(&f, "config_rewrite_status:ok\r\n"));
    failing_disk_heal();
    pass(&f, 100);
    assert_file(&f, REPLICA);
}

TEST_MAIN(NULL, NULL)
