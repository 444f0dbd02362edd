/* Who ranks first on a running server: equal scores rank by arrival. */
#include "tests/support/test.h"

#include <glob.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/wire.h"

enum {
    MEMBERS_LONG = 1000000,
    MEMBERS_SHORT = 100000, /* LEADERBOARD_TEST_SHORT: make test */
    MEMBERS_PER_COMMAND = 500,
    PAGE = 10000,
    STEP = 611953, /* prime to both counts: visits every name once, in no order */
};

static struct process server;
static struct wire wire;

FIXTURE(start_server) {
    return process_start(&server, NULL) ? 0 : -1;
}

FIXTURE(stop_server) {
    return process_stop(&server);
}

FIXTURE(connect_empty) {
    wire = wire_open(process_connect_tcp(&server));
    wire_check(&wire, "FLUSHALL", "OK");
    return 0;
}

FIXTURE(disconnect) {
    wire_close(&wire);
    return 0;
}

/* ---- arrival order ---- */

#define IN_TURN(name) TEST_WITH(name, connect_empty, disconnect)

IN_TURN(equal_scores_rank_by_arrival_inside_one_millisecond) {
    /* zoe is the first at 100 though adam had points first, and though her name sorts last. */
    struct text pipeline = {.at = NULL};
    text_command(&pipeline, "ZINCRBY b 50 adam");
    text_command(&pipeline, "ZINCRBY b 60 zoe");
    text_command(&pipeline, "ZINCRBY b 40 zoe");
    text_command(&pipeline, "ZINCRBY b 50 adam");
    wire_send(&wire, pipeline.at, pipeline.size);
    text_free(&pipeline);
    wire_expect(&wire, "$2\r\n50\r\n$2\r\n60\r\n$3\r\n100\r\n$3\r\n100\r\n");
    wire_check(&wire, "ZREVRANGE b 0 -1 WITHSCORES", "[zoe 100 adam 100]");
    wire_check(&wire, "ZRANGE b 0 -1 WITHSCORES", "[adam 100 zoe 100]");
    wire_check(&wire, "ZREVRANK b zoe", ":0");
    wire_check(&wire, "ZREVRANK b adam", ":1");

    /* The third comes in the same second, the fourth in a later one. */
    wire_check(&wire, "ZADD b 100 bob", ":1");
    process_sleep_ms(1100);
    wire_check(&wire, "ZINCRBY b 100 aaron", "100");
    wire_check(&wire, "ZREVRANGE b 0 -1", "[zoe adam bob aaron]");
    wire_check(&wire, "ZREVRANK b aaron", ":3");
    wire_check(&wire, "ZRANK b aaron", ":0");
    wire_check(&wire, "ZREVRANGEBYSCORE b 100 100", "[zoe adam bob aaron]");
    wire_check(&wire, "ZRANGEBYSCORE b 100 100 LIMIT 1 2", "[bob adam]");
}

/* ---- clocks ---- */

/* The server reads the file whenever it looks at the time: it must never be there half written. */
static void set_clock(const char *path, const char *offset) {
    const char *written = formatted("%s.new", path);
    FILE *file = fopen(written, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", offset);
    fclose(file);
    assert_int_equal(rename(written, path), 0);
}

static long long time_of(struct wire *client) {
    return strtoll(strchr(wire_ask(client, "TIME"), '[') + 1, NULL, 10);
}

/* libfaketime and a sanitizer's allocator may wait for each other for ever (tests/integration/clock.c). tests/server sets clocks back under sanitizers too, without a process. */
TEST(a_clock_set_back_one_hour_leaves_the_order_as_arrived) {
    if (process_is_sanitized()) {
        skip();
    }
    glob_t found = {.gl_pathc = 0};
    if (glob("/usr/lib/*/faketime/libfaketime.so.1", 0, NULL, &found) != 0) {
        globfree(&found);
        fail_msg("libfaketime is missing (Debian: libfaketime)");
    }
    char preload[256], file_name[64], file_setting[128];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", found.gl_pathv[0]);
    globfree(&found);
    snprintf(file_name, sizeof file_name, "/tmp/leaderboard-clock-%d", (int)getpid());
    snprintf(file_setting, sizeof file_setting, "FAKETIME_TIMESTAMP_FILE=%s", file_name);
    const char *environment[] = {preload, file_setting, "FAKETIME_NO_CACHE=1",
                                 "FAKETIME_DONT_FAKE_MONOTONIC=1", NULL};
    char directory[DIRECTORY_PATH_MAX];
    directory_make(directory);
    const char *arguments[] = {"--appendonly", "yes", NULL};
    struct process_options options = {
        .environment = environment, .arguments = arguments, .directory = directory};
    struct process stepped;
    set_clock(file_name, "+0");
    assert_true(process_start(&stepped, &options));
    struct wire client = wire_open(process_connect_tcp(&stepped));

    wire_check(&client, "ZADD b 10 z 10 y", ":2");
    long long begun_s = time_of(&client);
    set_clock(file_name, "-3600");
    wire_check(&client, "ZADD b 10 x", ":1");
    wire_check(&client, "ZINCRBY b 10 w", "10");
    process_sleep_ms(1100);
    wire_check(&client, "ZADD b 10 v", ":1");
    wire_check(&client, "ZREVRANGE b 0 -1", "[z y x w v]");
    set_clock(file_name, "+7200");
    wire_check(&client, "ZADD b 10 u", ":1");
    process_sleep_ms(10);
    assert_true(time_of(&client) >= begun_s + 1);
    assert_non_null(strstr(wire_ask(&client, "INFO server"), "clock_state:waits")); /* it sees it */
    set_clock(file_name, "+0");
    wire_check(&client, "ZADD b 10 t", ":1");
    wire_check(&client, "ZREVRANGE b 0 -1", "[z y x w v u t]");
    wire_check(&client, "ZRANGE b 0 -1", "[t u v w x y z]");

    /* Set back while it is down, after a kill; once its journal is all there is, once a base is. */
    for (int i = 0; i < 2; i++) {
        process_signal(&stepped, SIGKILL);
        assert_true(process_wait(&stepped, PROCESS_STOP_LIMIT_MS));
        wire_close(&client);
        process_stop(&stepped);
        set_clock(file_name, "-3600");
        assert_true(process_start(&stepped, &options));
        client = wire_open(process_connect_tcp(&stepped));
        wire_wait_loaded(&client);
        wire_check(&client, formatted("ZADD b 10 %c", i == 0 ? 's' : 'r'), ":1");
        wire_check(&client, "SAVE", "OK");
    }
    wire_check(&client, "ZREVRANGE b 0 -1", "[z y x w v u t s r]");

    wire_close(&client);
    unlink(file_name);
    assert_int_equal(process_stop(&stepped), 0);
    directory_remove(directory);
}

/* ---- many ---- */

static void check_page(uint32_t first, uint32_t count) {
    TEXT(command);
    TEXT(expected);
    text_command(&command, "ZREVRANGE b %u %u", first, first + PAGE - 1);
    text_format(&expected, "*%u\r\n", PAGE);
    for (uint32_t i = first; i < first + PAGE; i++) {
        text_format(&expected, "$7\r\nm%06u\r\n", (uint32_t)((uint64_t)i * STEP % count));
    }
    wire_send(&wire, command.at, command.size);
    wire_expect_bytes(&wire, expected.at, expected.size);
}

/* The first half comes hundreds a command, the second one a command: both ways are taken. */
IN_TURN(a_million_members_at_one_score_keep_arrival_order) {
    uint32_t count = is_short_run() ? MEMBERS_SHORT : MEMBERS_LONG;
    struct text pipeline = {.at = NULL};
    struct text replies = {.at = NULL};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t name = (uint32_t)((uint64_t)i * STEP % count);
        if (i >= count / 2) {
            text_format(&pipeline, "*4\r\n$4\r\nZADD\r\n$1\r\nb\r\n$2\r\n77\r\n$7\r\nm%06u\r\n",
                        name);
            text_format(&replies, ":1\r\n");
            continue;
        }
        if (i % MEMBERS_PER_COMMAND == 0) {
            text_format(&pipeline, "*%d\r\n$4\r\nZADD\r\n$1\r\nb\r\n", 2 + 2 * MEMBERS_PER_COMMAND);
            text_format(&replies, ":%d\r\n", MEMBERS_PER_COMMAND);
        }
        text_format(&pipeline, "$2\r\n77\r\n$7\r\nm%06u\r\n", name);
    }
    int64_t begun_at = process_now_ms();
    wire_send(&wire, pipeline.at, pipeline.size);
    wire_expect_bytes(&wire, replies.at, replies.size);
    printf("%u members at one score in %d ms\n", count, (int)(process_now_ms() - begun_at));
    text_free(&pipeline);
    text_free(&replies);

    wire_check(&wire, "ZADD b 77 aaa", ":1"); /* behind all of them */
    for (uint32_t first = 0; first < count; first += PAGE) {
        check_page(first, count);
    }
    for (uint32_t i = 0; i < count; i += count / 100) {
        const char *command = formatted("ZREVRANK b m%06u", (uint32_t)((uint64_t)i * STEP % count));
        wire_check(&wire, command, formatted(":%u", i));
    }
    wire_check(&wire, "ZRANGE b 0 0", "[aaa]");
    wire_check(&wire, "ZREVRANGE b -1 -1", "[aaa]");
}

TEST_MAIN(start_server, stop_server)
