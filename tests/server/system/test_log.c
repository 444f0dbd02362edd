/* Lines of the log: their two forms, levels, and readers that are slow, gone or out of room. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/system/log.h"
#include "tests/support/directory_test.h"
#include "tests/support/random.h"

static const char *json_of(const char *text, size_t size) {
    static char out[LOG_JSON_MAX(4096) + 1];
    size_t printed =
        log_json_print(out, BYTES("T"), "notice", (struct bytes){.at = text, .size = size});
    assert_in_range(printed, 1, LOG_JSON_MAX(size));
    out[printed] = '\0';
    return out;
}

#define HEAD "{\"time\":\"T\",\"level\":\"notice\",\"message\":"

static void expect_json(const char *text, const char *expected) {
    assert_string_equal(json_of(text, strlen(text)), formatted(HEAD "%s}", expected));
}

TEST(fields_are_members_and_the_other_words_the_message) {
    expect_json("ready", "\"ready\"");
    expect_json("", "\"\"");
    expect_json("ready version=1.0.0 pid=7 dir=\"a b\"",
                "\"ready\",\"version\":\"1.0.0\",\"pid\":7,\"dir\":\"a b\"");
    expect_json("a=1 in the middle b=", "\"in the middle\",\"a\":1,\"b\":\"\"");
    expect_json("maxmemory-clients=3 members/s=4", "\"\",\"maxmemory-clients\":3,\"members/s\":4");
    expect_json("claim: a == b", "\"claim: a == b\"");
    expect_json("open=\"never closed", "\"\",\"open\":\"never closed\"");
    expect_json("x=\"a\",b=2", "\"\",\"x\":\"a\"");
}

TEST(numbers_are_those_that_json_has) {
    expect_json("a=0 b=-12 c=0.25 d=10", "\"\",\"a\":0,\"b\":-12,\"c\":0.25,\"d\":10");
    expect_json("a=01 b=- c=1. d=.5 e=1.0.0 f=1e5",
                "\"\",\"a\":\"01\",\"b\":\"-\",\"c\":\"1.\",\"d\":\".5\",\"e\":\"1.0.0\",\"f\":"
                "\"1e5\"");
    expect_json("a=\"7\" b=1234567890123456", "\"\",\"a\":\"7\",\"b\":\"1234567890123456\"");
}

TEST(a_field_does_not_replace_the_lines_own) {
    expect_json("x level=9 time=1 message=m", "\"x\",\"level_\":9,\"time_\":1,\"message_\":\"m\"");
}

TEST(quotes_and_backslashes_are_escaped) {
    expect_json("a\\b \"c\"", "\"a\\\\b \\\"c\\\"\"");
    expect_json("f=a\"b\\", "\"\",\"f\":\"a\\\"b\\\\\"");
}

TEST(bytes_that_are_no_utf8_are_replaced) {
    expect_json("gr\xc3\xbc\xc3\x9f \xf0\x9f\x8f\x86", "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x8f\x86\"");
    expect_json("\xff\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    expect_json("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* a surrogate */
    expect_json("\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    expect_json("m=\xe2\x82", "\"\",\"m\":\"\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* Is every quote and backslash in its place, and are there no control characters? */
static bool is_one_object(const char *text) {
    bool is_inside = false;
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ') {
            return false;
        }
        if (is_inside && *text == '\\') {
            text++;
            if (*text != '"' && *text != '\\') {
                return false;
            }
        } else if (*text == '"') {
            is_inside = !is_inside;
        }
    }
    return !is_inside;
}

TEST(any_bytes_give_one_object_within_the_promised_size) {
    static const char alphabet[] = "a1 =\"\\\x01\xc3\xbc\xff-.";
    struct random random = random_begin(__func__);
    for (int round = 0; round < 20000; round++) {
        char text[64];
        size_t size = random_below(&random, sizeof text);
        for (size_t i = 0; i < size; i++) {
            text[i] = alphabet[random_below(&random, sizeof alphabet - 1)];
        }
        const char *json = json_of(text, size);
        if (!is_one_object(json)) {
            fail_msg("%.*s: %s", (int)size, text, json);
        }
    }
}

/* ---- the file ---- */

static const char *log_path(void) {
    return directory_join(directory, "log");
}

static char *read_log(void) {
    size_t size = 0;
    char *log = file_read(log_path(), &size);
    char *text = realloc(log, size + 1);
    assert_non_null(text);
    text[size] = '\0';
    return text;
}

FIXTURE(open_log) {
    unlink(log_path());
    log_set_json(false);
    return log_open(log_path(), LOG_NOTICE) ? 0 : -1;
}

FIXTURE(close_log) {
    log_set_json(false);
    return log_open(NULL, LOG_NOTICE) ? 0 : -1;
}

TEST_WITH(a_line_is_time_level_and_message, open_log, close_log) {
    log_write(LOG_NOTICE, "ready pid=%d", 7);
    OWNED char *log = read_log();
    assert_int_equal(strlen(log), strlen("2026-11-21T10:59:01.250000Z notice ready pid=7\n"));
    assert_int_equal(log[10], 'T');
    assert_int_equal(log[26], 'Z');
    assert_string_equal(log + 27, " notice ready pid=7\n");
}

TEST_WITH(json_has_the_time_to_the_millisecond, open_log, close_log) {
    log_set_json(true);
    log_write(LOG_WARNING, "ready pid=%d\n", 7);
    OWNED char *log = read_log();
    assert_memory_equal(log, "{\"time\":\"2", 10);
    assert_string_equal(log + strlen("{\"time\":\"2026-11-21T10:59:01.250"),
                        "Z\",\"level\":\"warning\",\"message\":\"ready\",\"pid\":\"7?\"}\n");
}

TEST_WITH(levels_below_the_wanted_are_not_written, open_log, close_log) {
    static const enum log_level levels[] = {LOG_DEBUG, LOG_VERBOSE, LOG_NOTICE, LOG_WARNING};
    for (size_t least = 0; least < 4; least++) {
        (void)!truncate(log_path(), 0);
        log_set_level(levels[least]);
        for (size_t i = 0; i < 4; i++) {
            log_write(levels[i], "line");
        }
        log_write(LOG_AUDIT, "who");
        OWNED char *log = read_log();
        size_t lines = 0;
        for (const char *at = log; (at = strchr(at, '\n')) != NULL; at++) {
            lines++;
        }
        assert_int_equal(lines, 4 - least + 1);
        assert_non_null(strstr(log, " audit who\n"));
    }
}

TEST_WITH(with_nothing_only_signals_write, open_log, close_log) {
    log_set_level(LOG_NOTHING);
    log_write(LOG_WARNING, "line");
    log_write(LOG_AUDIT, "line");
    log_write_from_signal(LOG_WARNING, "report", 6);
    OWNED char *log = read_log();
    assert_string_equal(log + 27, " warning report\n");
}

TEST_WITH(a_long_line_is_cut, open_log, close_log) {
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_write(LOG_NOTICE, "%s", text);
    log_write_from_signal(LOG_NOTICE, text, sizeof text - 1);
    OWNED char *log = read_log();
    assert_int_equal(strlen(log), 2 * (1024 + strlen("2026-11-21T10:59:01.250000Z notice \n")));
}

TEST_WITH(after_a_move_a_reopened_log_goes_on_in_a_new_file, open_log, close_log) {
    log_write(LOG_NOTICE, "before");
    const char *moved = formatted("%s", directory_join(directory, "log.1"));
    assert_int_equal(rename(log_path(), moved), 0);
    log_write(LOG_NOTICE, "still there");
    assert_true(log_reopen());
    log_write(LOG_NOTICE, "after");
    char *log = read_log();
    assert_string_equal(log + 27, " notice after\n");
    free(log);
    unlink(moved);
}

TEST(a_pipe_that_nobody_reads_holds_up_nobody_and_is_told_what_it_missed) {
    char path[DIRECTORY_PATH_MAX];
    static char text[1 << 20];
    snprintf(path, sizeof path, "%s", directory_join(directory, "pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_true(log_open(path, LOG_NOTICE));
    for (int i = 0; i < 10000; i++) {
        log_write(LOG_NOTICE, "line number=%d", i); /* more than a pipe holds */
    }
    ssize_t size = read(reader, text, sizeof text - 1);
    assert_true(size > 0);
    text[size] = '\0';
    unsigned whole = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        whole++;
    }
    assert_int_equal(text[size - 1], '\n');
    assert_in_range(whole, 100, 9999);
    log_write(LOG_NOTICE, "read again");
    size = read(reader, text, sizeof text - 1);
    assert_true(size > 0);
    text[size] = '\0';
    assert_non_null(
        strstr(text, formatted("warning log: lines were dropped count=%u\n", 10000 - whole)));
    assert_non_null(strstr(text, "notice read again\n"));
    assert_true(log_open(NULL, LOG_NOTICE));
    close(reader);
}

TEST(a_full_disk_holds_up_nobody) {
    if (access("/dev/full", W_OK) != 0) {
        skip();
    }
    assert_true(log_open("/dev/full", LOG_NOTICE));
    for (int i = 0; i < 1000; i++) {
        log_write(LOG_NOTICE, "line");
    }
    assert_true(log_open(NULL, LOG_NOTICE));
}

TEST(a_path_that_cannot_be_opened_leaves_the_old_log) {
    assert_int_equal(open_log(NULL), 0);
    assert_false(log_open(directory_join(directory, "no/such"), LOG_NOTICE));
    assert_int_equal(errno, ENOENT);
    log_write(LOG_NOTICE, "here");
    char *log = read_log();
    assert_non_null(strstr(log, " notice here\n"));
    free(log);
    assert_int_equal(close_log(NULL), 0);
}

/* As systemd starts a service: its standard output is the stream that JOURNAL_STREAM names. */
static char *write_with(const char *journal_stream, bool is_json) {
    int log = open(log_path(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    int own = dup(STDOUT_FILENO);
    struct stat status;
    assert_int_equal(fstat(log, &status), 0);
    const char *stream = formatted("%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    setenv("JOURNAL_STREAM", journal_stream != NULL ? journal_stream : stream, 1);
    log_set_json(is_json);
    dup2(log, STDOUT_FILENO);
    bool is_open = log_open(NULL, LOG_DEBUG);
    log_write(LOG_WARNING, "a");
    log_write(LOG_NOTICE, "b");
    log_write(LOG_AUDIT, "c");
    log_write(LOG_VERBOSE, "d");
    log_write(LOG_DEBUG, "e");
    log_write_from_signal(LOG_WARNING, "f", 1);
    unsetenv("JOURNAL_STREAM");
    dup2(own, STDOUT_FILENO);
    close(own);
    close(log);
    assert_true(is_open && log_open(NULL, LOG_NOTICE));
    log_set_json(false);
    return read_log();
}

TEST(lines_in_the_journal_begin_with_their_priority) {
    for (int is_json = 0; is_json < 2; is_json++) {
        OWNED char *log = write_with(NULL, is_json);
        char *at = log;
        for (const char *priority = "455674"; *priority != '\0'; priority++) {
            assert_int_equal(at[0], '<');
            assert_int_equal(at[1], *priority);
            assert_int_equal(at[2], '>');
            assert_int_equal(at[3], is_json ? '{' : '2');
            at = strchr(at, '\n') + 1;
        }
        assert_int_equal(*at, '\0');
    }
    OWNED char *log = write_with("0:1", false);
    assert_int_equal(log[0], '2');
}

TEST(a_value_is_quoted) {
    assert_string_equal(log_quote(BYTES("ann")).text, "ann");
    assert_string_equal(log_quote(BYTES("a\"b\\c\n\x7f")).text, "a\\x22b\\x5cc\\x0a\\x7f");
    assert_string_equal(log_quote(BYTES("gr\xc3\xbcn")).text, "gr\xc3\xbcn");
    char text[1000];
    memset(text, '"', sizeof text);
    assert_int_equal(strlen(log_quote((struct bytes){.at = text, .size = sizeof text}).text),
                     LOG_QUOTED_MAX);
}

TEST_MAIN(directory_set_up, directory_tear_down)
