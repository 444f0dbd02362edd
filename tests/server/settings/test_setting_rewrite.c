/* CONFIG REWRITE: comments and order are kept, changes are written, failures leave the file
 * unchanged. */
#include "tests/server/settings/fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/support/random.h"

static const char *read_back(const struct fixture *fixture) {
    static char text[65536];
    size_t size = 0;
    char *file = file_read(fixture->path, &size);
    assert_true(size < sizeof text);
    memcpy(text, file, size);
    text[size] = '\0';
    free(file);
    return text;
}

static void begin(struct fixture *fixture, const char *text) {
    (void)write_file(fixture, text);
    if (!settings_load_file(&fixture->settings, fixture->path, fixture->error)) {
        fail_msg("%s", fixture->error);
    }
}

static void change(struct fixture *fixture, const char *name, const char *value) {
    if (!set(fixture, name, value)) {
        fail_msg("%s", fixture->error);
    }
}

static void assert_rewrites(struct fixture *fixture, const char *expected) {
    if (!setting_file_rewrite(&fixture->settings, fixture->error)) {
        fail_msg("%s", fixture->error);
    }
    assert_string_equal(read_back(fixture), expected);
}

/* The file gives the same values as the settings. */
static void assert_reloads_equal(struct fixture *fixture) {
    static struct settings again;
    char a[SETTING_VALUE_MAX];
    char b[SETTING_VALUE_MAX];
    size_t size_a = 0;
    size_t size_b = 0;
    assert_true(settings_init(&again));
    if (!settings_load_file(&again, fixture->path, fixture->error)) {
        fail_msg("%s", fixture->error);
    }
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        for (uint32_t i = 0;; i++) {
            bool has_a = setting_value_print_line(&fixture->settings, setting, i, a, &size_a);
            bool has_b = setting_value_print_line(&again, setting, i, b, &size_b);
            assert_int_equal(has_a, has_b);
            if (!has_a) {
                break;
            }
            assert_int_equal(size_a, size_b);
            assert_memory_equal(a, b, size_a);
        }
    }
    settings_deinit(&again);
}

#define NEW "# Written by CONFIG REWRITE:\n"

FIXTURE_TEST(without_changes_the_file_stays_to_the_byte) {
    static const char text[] = "# hello\r\n\n  PORT   7000 \r\nmaxmemory 1024mb\nlogfile ''\n"
                               "timeout 1\ntimeout 2\nlayout l  field s 3\nboard 'a' l\n# end";
    begin(fixture, text);
    assert_rewrites(fixture, text);
    assert_rewrites(fixture, text);
}

FIXTURE_TEST(comments_and_order_are_kept) {
    begin(fixture, "# first\nport 7000\n\n# players wait\ntimeout 30 \nmaxclients 100\n"
                   "# last, without a line end");
    change(fixture, "timeout", "60");
    change(fixture, "loglevel", "debug");
    change(fixture, "requirepass", "a \"b\"\n");
    assert_rewrites(fixture, "# first\nport 7000\n\n# players wait\ntimeout 60\nmaxclients 100\n"
                             "# last, without a line end\n" NEW
                             "requirepass \"a \\\"b\\\"\\n\"\nloglevel debug\n");
    assert_reloads_equal(fixture);
    change(fixture, "maxmemory", "1048576");
    change(fixture, "loglevel", "notice");
    assert_rewrites(fixture, "# first\nport 7000\n\n# players wait\ntimeout 60\nmaxclients 100\n"
                             "# last, without a line end\n" NEW
                             "requirepass \"a \\\"b\\\"\\n\"\nloglevel notice\nmaxmemory 1mb\n");
    assert_reloads_equal(fixture);
}

FIXTURE_TEST(a_value_back_at_its_default_is_written_only_where_a_line_says_otherwise) {
    begin(fixture, "timeout 30\n");
    change(fixture, "timeout", "0");
    change(fixture, "maxclients", "10000");
    assert_rewrites(fixture, "timeout 0\n");
}

FIXTURE_TEST(of_several_lines_the_old_ones_go) {
    begin(fixture, "requirepass old\n# and\nrequirepass older\nport 7\n");
    change(fixture, "requirepass", "new");
    assert_rewrites(fixture, "requirepass new\n# and\nport 7\n");
}

FIXTURE_TEST(boards_and_layouts_that_were_taken_away_leave_no_line) {
    begin(fixture, "# boards\nboard a* x\nboard b* default\nlayout x FIELD s 3\n# end\n");
    change(fixture, "board", "");
    change(fixture, "layout", "");
    assert_rewrites(fixture, "# boards\n# end\n");
    assert_reloads_equal(fixture);
}

FIXTURE_TEST(renamed_commands_stay_as_they_are) {
    begin(fixture, "rename-command FLUSHALL \"\"\n# and\nrename-command  CONFIG \"a b\"\n");
    change(fixture, "timeout", "30");
    assert_rewrites(fixture, "rename-command FLUSHALL \"\"\n# and\nrename-command  CONFIG \"a b\"\n"
                             "# Written by CONFIG REWRITE:\ntimeout 30\n");
}

FIXTURE_TEST(lines_of_redis_that_are_ignored_stay_as_they_are) {
    begin(fixture, "hz  10\n# and\nloglevel notice\nhz 20\ncluster-enabled no\n");
    change(fixture, "loglevel", "debug");
    assert_rewrites(fixture, "hz  10\n# and\nloglevel debug\nhz 20\ncluster-enabled no\n");
}

FIXTURE_TEST(the_command_lines_settings_are_written_too) {
    (void)write_file(fixture, "# mine\nlayout a  FIELD s 3 # 1\n");
    assert_false(settings_load_file(&fixture->settings, fixture->path, fixture->error));
    (void)write_file(fixture, "# mine\nlayout a  FIELD s 3\n\nboard x a\nboard x  a\n# more\n");
    char *argv[] = {strdup("leaderboard-server"),
                    strdup(fixture->path),
                    strdup("--layout"),
                    strdup("b FIELD t 5"),
                    strdup("--board"),
                    strdup("y y*"),
                    strdup("--board"),
                    strdup("y*"),
                    strdup("b"),
                    strdup("--port"),
                    strdup("7009")};
    int argc = sizeof argv / sizeof argv[0];
    assert_false(
        setting_file_apply_arguments(&fixture->settings, argc, argv, NULL, fixture->error));
    strcpy(argv[5], "z a");
    assert_true(setting_file_apply_arguments(&fixture->settings, argc, argv, NULL, fixture->error));
    static const char expected[] =
        "# mine\nlayout a  FIELD s 3\n\nboard x a\nboard z a\n# more\n" NEW
        "port 7009\nlayout b FIELD t 5\nboard y* b\n";
    assert_rewrites(fixture, expected);
    assert_reloads_equal(fixture);
    /* The same command line still works, and the file does not grow. */
    settings_deinit(&fixture->settings);
    assert_true(settings_init(&fixture->settings));
    assert_true(setting_file_apply_arguments(&fixture->settings, argc, argv, NULL, fixture->error));
    assert_rewrites(fixture, expected);
    for (int i = 0; i < argc; i++) {
        free(argv[i]);
    }
}

FIXTURE_TEST(a_line_corrected_in_the_meantime_is_kept) {
    begin(fixture, "timeout 30\n");
    change(fixture, "timeout", "60");
    (void)write_file(fixture, "# sixty now\ntimeout   60\nport 6379\n");
    assert_rewrites(fixture, "# sixty now\ntimeout   60\nport 6379\n");
}

FIXTURE_TEST(layouts_that_left_the_file_are_written_again) {
    begin(fixture, "layout a FIELD s 3\nlayout b FIELD s 4\nboard x a\nboard y b\n");
    (void)write_file(fixture, "# only\nlayout b FIELD s 4\nboard y b\nboard z b\nboard q b\n");
    assert_rewrites(fixture, "# only\nlayout a FIELD s 3\nboard x a\nboard y b\n" NEW
                             "layout b FIELD s 4\n");
    assert_reloads_equal(fixture);
}

FIXTURE_TEST(rights_stay_as_they_were) {
    struct stat status;
    begin(fixture, "port 1\n");
    assert_int_equal(chmod(fixture->path, 0640), 0);
    change(fixture, "timeout", "1");
    assert_rewrites(fixture, "port 1\n" NEW "timeout 1\n");
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
}

FIXTURE_TEST(a_file_that_was_removed_is_written_anew_for_its_owner_alone) {
    struct stat status;
    begin(fixture, "port 1\n");
    assert_int_equal(unlink(fixture->path), 0);
    assert_rewrites(fixture, NEW "port 1\n");
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
}

FIXTURE_TEST(without_a_file_there_is_nothing_to_rewrite) {
    assert_false(setting_file_rewrite(&fixture->settings, fixture->error));
    assert_string_equal(fixture->error, "The server is running without a config file");
}

FIXTURE_TEST(a_file_with_an_error_in_it_is_not_touched) {
    begin(fixture, "port 1\n");
    change(fixture, "timeout", "1");
    (void)write_file(fixture, "port 1\nprot 2\n");
    assert_false(setting_file_rewrite(&fixture->settings, fixture->error));
    assert_non_null(strstr(fixture->error, "Rewriting config file: "));
    assert_non_null(strstr(fixture->error,
                           "leaderboard.conf:2: unknown setting 'prot'; did you mean "
                           "'port'?"));
    assert_string_equal(read_back(fixture), "port 1\nprot 2\n");
}

FIXTURE_TEST(a_directory_that_is_gone_is_an_error) {
    begin(fixture, "port 1\n");
    char moved[DIRECTORY_PATH_MAX + 8];
    snprintf(moved, sizeof moved, "%s.moved", fixture->directory);
    assert_int_equal(rename(fixture->directory, moved), 0);
    assert_false(setting_file_rewrite(&fixture->settings, fixture->error));
    assert_string_equal(fixture->error, "Rewriting config file: No such file or directory");
    assert_int_equal(rename(moved, fixture->directory), 0);
    assert_string_equal(read_back(fixture), "port 1\n");
}

FIXTURE_TEST(a_full_disk_leaves_the_file_as_it_was) {
    begin(fixture, "port 1\n# some text that is longer than the limit below\n");
    change(fixture, "timeout", "1");
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 10, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool is_fine = setting_file_rewrite(&fixture->settings, fixture->error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_false(is_fine);
    assert_string_equal(fixture->error, "Rewriting config file: File too large");
    assert_string_equal(read_back(fixture),
                        "port 1\n# some text that is longer than the limit below\n");
    assert_int_equal(directory_count(fixture->directory), 1); /* no temporary file is left */
}

FIXTURE_TEST(without_memory_the_file_stays_as_it_was) {
    begin(fixture, "port 1\nlayout a FIELD s 3\nboard x a\n");
    change(fixture, "timeout", "1");
    uint64_t live_count = memory_live_count();
    bool is_done = false;
    uint64_t failures = 0;
    for (uint64_t nth = 1; !is_done; nth++) {
        memory_fail_at(nth);
        is_done = setting_file_rewrite(&fixture->settings, fixture->error);
        memory_fail_at(0);
        assert_int_equal(memory_live_count(), live_count);
        assert_int_equal(directory_count(fixture->directory), 1);
        if (!is_done) {
            failures++;
            assert_non_null(strstr(fixture->error, "out of memory"));
            assert_string_equal(read_back(fixture), "port 1\nlayout a FIELD s 3\nboard x a\n");
        }
    }
    assert_true(failures > 10);
    assert_string_equal(read_back(fixture),
                        "port 1\nlayout a FIELD s 3\nboard x a\n" NEW "timeout 1\n");
}

/* Random files, random changes: the rewritten file has the current values, and its comments are
 * kept. */
FIXTURE_TEST(a_rewritten_file_says_what_holds) {
    struct random random = random_begin(__func__);
    static const char *const lines[] = {
        "# a comment\n",     "\n",
        "port 7000\n",       "timeout 5\n",
        "timeout 6\n",       "maxmemory 10mb\n",
        "loglevel debug\n",  "requirepass \"x y\"\n",
        "requirepass z\n",   "client-output-buffer-limit normal 1mb 1mb 1\n",
        "board a l\n",       "board b l\n",
        "board a l\n",       "bind 127.0.0.1\n",
        "board a l CAP 5\n", "board c  l keep best  cap 7\n",
    };
    static const char *const values[][2] = {
        {"timeout", "0"},
        {"timeout", "6"},
        {"maxmemory", "0"},
        {"maxmemory", "12345"},
        {"loglevel", "debug"},
        {"loglevel", "notice"},
        {"requirepass", ""},
        {"requirepass", "#q"},
        {"client-output-buffer-limit", "normal 0 0 0"},
    };
    for (int round = 0; round < 300; round++) {
        char text[2048] = "layout l FIELD s 9\n";
        unsigned comment_count = 0;
        for (uint64_t i = random_below(&random, 12); i > 0; i--) {
            uint64_t pick = random_below(&random, sizeof lines / sizeof lines[0]);
            strcat(text, lines[pick]);
            comment_count += pick == 0;
        }
        settings_deinit(&fixture->settings);
        assert_true(settings_init(&fixture->settings));
        begin(fixture, text);
        for (uint64_t i = random_below(&random, 5); i > 0; i--) {
            uint64_t pick = random_below(&random, sizeof values / sizeof values[0]);
            change(fixture, values[pick][0], values[pick][1]);
        }
        assert_true(setting_file_rewrite(&fixture->settings, fixture->error));
        assert_reloads_equal(fixture);
        const char *at = read_back(fixture);
        for (; (at = strstr(at, "# a comment\n")) != NULL; at++) {
            comment_count--;
        }
        assert_int_equal(comment_count, 0);
    }
}
