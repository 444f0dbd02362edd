/* Servers whose machine has its clock set forward and back (libfaketime): what is "for so long"
 * does not notice, and what is stamped goes on. */
#include "tests/support/test.h"

#include <glob.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/wire.h"

enum { HOUR_S = 3600, DAY_S = 86400, NEAR_S = 55 };
#define YEARS_75_S INT64_C(2366841600)

struct machine {
    char preload[256], file_setting[128], file_name[64];
    const char *environment[5];
    int64_t offset_s; /* its clock is right, but for the time of day: about noon */
};

static struct machine machine;

static void step_clock(int64_t seconds) {
    const char *written = formatted("%s.new", machine.file_name);
    FILE *file = fopen(written, "w");
    assert_non_null(file);
    fprintf(file, "%+lld\n", (long long)(machine.offset_s + seconds));
    fclose(file);
    assert_int_equal(rename(written, machine.file_name), 0);
}

static int64_t right_time_s(void) {
    return (int64_t)time(NULL) + machine.offset_s;
}

/* No day of the machine ends within a test. */
FIXTURE(begin) {
    glob_t found = {.gl_pathc = 0};
    int result = glob("/usr/lib/*/faketime/libfaketime.so.1", 0, NULL, &found);
    snprintf(machine.preload, sizeof machine.preload, "LD_PRELOAD=%s",
             result == 0 ? found.gl_pathv[0] : "");
    globfree(&found);
    snprintf(machine.file_name, sizeof machine.file_name, "/tmp/leaderboard-clocks-%d",
             (int)getpid());
    snprintf(machine.file_setting, sizeof machine.file_setting, "FAKETIME_TIMESTAMP_FILE=%s",
             machine.file_name);
    const char *environment[] = {machine.preload, machine.file_setting, "FAKETIME_NO_CACHE=1",
                                 "FAKETIME_DONT_FAKE_MONOTONIC=1", NULL};
    memcpy(machine.environment, environment, sizeof environment);
    machine.offset_s = DAY_S / 2 - (int64_t)time(NULL) % DAY_S;
    step_clock(0);
    return result;
}

FIXTURE(end) {
    unlink(machine.file_name);
    return 0;
}

/* A sanitizer's allocator asks for the time while it takes memory; libfaketime, asked before its beginning, looks up a
 * function that libc lacks, whose message takes memory of the same class: they wait for each other for ever. tests/server/system/test_clock.c has the options without a process. */
static void skip_where_it_cannot_be_tried(void) {
    if (process_is_sanitized()) {
        skip();
    }
}

static struct wire start_with(struct process *server, const char *directory, const char *option,
                              const char *value) {
    const char *arguments[] = {"--appendonly", "yes", option, value, NULL};
    const struct process_options options = {
        .environment = machine.environment,
        .directory = directory,
        .arguments = arguments,
    };
    assert_true(process_start(server, &options));
    struct wire client = wire_open(process_connect_tcp(server));
    wire_wait_loaded(&client);
    return client;
}

static struct wire start(struct process *server, const char *directory, const char *option) {
    return start_with(server, directory, option, NULL);
}

static void stop(struct process *server, struct wire *client) {
    wire_close(client);
    assert_int_equal(process_stop(server), 0);
}

static int64_t time_of(struct wire *client) {
    return strtoll(strchr(wire_ask(client, "TIME"), '[') + 1, NULL, 10);
}

static void assert_near(struct wire *client, int64_t expected_s) {
    int64_t time_s = time_of(client);
    if (time_s < expected_s - NEAR_S || time_s > expected_s + NEAR_S) {
        fail_msg("the server's time is %lld, %lld was expected", (long long)time_s,
                 (long long)expected_s);
    }
}

/* TIME, and what is left of a key, go on. */
static void assert_time_passes(struct wire *client) {
    int64_t time_s = time_of(client);
    int64_t left_ms = wire_ask_integer(client, "PTTL lasting");
    process_sleep_ms(1300);
    assert_true(time_of(client) >= time_s + 1);
    assert_true(wire_ask_integer(client, "PTTL lasting") <= left_ms - 1000);
}

static void fill(struct wire *client) {
    wire_check(client, "ZADD lasting 1 m", ":1");
    wire_check(client, "EXPIRE lasting 100000", ":1");
    wire_check(client, "LB.CREATE day PERIOD DAY", "OK");
    wire_check(client, "ZADD day 5 ann", ":1");
}

/* Some turns of the loop, with writes, with the clock as it is. */
static void let_some_ticks_pass(struct wire *client) {
    for (int i = 0; i < 20; i++) {
        wire_check(client, "ZCARD day", ":1");
        wire_check_prefix(client, "ZADD ticks 1 m", ":");
        process_sleep_ms(50);
    }
}

TEST(three_days_forward_and_back_leave_no_trace) {
    skip_where_it_cannot_be_tried();
    char directory[DIRECTORY_PATH_MAX];
    directory_make(directory);
    struct process server;
    struct wire client = start(&server, directory, NULL);
    fill(&client);
    step_clock(3 * DAY_S);
    let_some_ticks_pass(&client);
    step_clock(0);
    let_some_ticks_pass(&client);
    assert_near(&client, right_time_s());
    assert_time_passes(&client);
    wire_check(&client, "EXISTS day", ":1");
    wire_check(&client, "ZREVRANGE day 0 -1", "[ann]");
    assert_true(process_has_logged(&server, "clock has stepped step_seconds=259200"));
    assert_true(process_has_logged(&server, "clock has stepped step_seconds=-259200"));
    stop(&server, &client);

    client = start(&server, directory, NULL);
    assert_near(&client, right_time_s());
    assert_time_passes(&client);
    wire_check(&client, "ZREVRANGE day 0 -1", "[ann]");
    stop(&server, &client);
    directory_remove(directory);
}

TEST(a_pause_of_half_a_second_lasts_that_though_the_clock_goes_back) {
    skip_where_it_cannot_be_tried();
    struct process server;
    struct wire client = start(&server, NULL, NULL);
    struct wire other = wire_open(process_connect_tcp(&server));
    step_clock(HOUR_S);
    wire_check(&client, "PING", "PONG");
    process_sleep_ms(50);
    int64_t begun_at = process_now_ms();
    wire_check(&client, "CLIENT PAUSE 500", "OK");
    step_clock(0);
    wire_check(&other, "PING", "PONG");
    assert_true(process_now_ms() - begun_at >= 400); /* and it does not wait for an hour */
    wire_close(&other);
    stop(&server, &client);
}

TEST(seventy_five_years_for_half_a_second_leave_no_trace) {
    skip_where_it_cannot_be_tried();
    struct process server;
    struct wire client = start(&server, NULL, NULL);
    fill(&client);
    step_clock(YEARS_75_S);
    for (int i = 0; i < 10; i++) {
        wire_check_prefix(&client, "ZADD ticks 1 m", ":");
        process_sleep_ms(50);
    }
    step_clock(0);
    process_sleep_ms(50);
    wire_check(&client, "ZADD b 1 m", ":1");
    assert_near(&client, right_time_s());
    assert_time_passes(&client);
    wire_check_prefix(&client, "INFO server", "# Server");
    assert_non_null(strstr(wire_ask(&client, "INFO server"), "clock_state:follows"));
    assert_non_null(strstr(wire_ask(&client, "INFO server"), "clock_steps:2"));
    stop(&server, &client);
}

/* What a wrong clock has left on disk is said at the start, with the way out of it. */
TEST(a_floor_ahead_is_said_and_can_be_reset) {
    skip_where_it_cannot_be_tried();
    char directory[DIRECTORY_PATH_MAX];
    directory_make(directory);
    struct process server;
    step_clock(3 * DAY_S); /* believed, for there is nothing else */
    struct wire client = start(&server, directory, NULL);
    fill(&client);
    assert_near(&client, right_time_s() + 3 * DAY_S);
    stop(&server, &client);

    step_clock(0);
    client = start(&server, directory, NULL);
    assert_near(&client, right_time_s() + 3 * DAY_S);
    assert_time_passes(&client);
    assert_true(process_has_logged(&server, "--reset-clock"));
    stop(&server, &client);

    client = start(&server, directory, "--reset-clock");
    assert_near(&client, right_time_s());
    assert_time_passes(&client);
    assert_true(process_has_logged(&server, "clock: reset to the machine's clock"));
    /* The board was in a period that has not begun: now it is in today's. */
    wire_check(&client, "ZCARD day", ":0");
    wire_check(&client, "ZADD day 7 bob", ":1");
    wire_check_prefix(&client, "KEYS day@*", "[day@");
    stop(&server, &client);

    client = start(&server, directory, NULL);
    assert_near(&client, right_time_s());
    assert_time_passes(&client);
    wire_check(&client, "ZREVRANGE day 0 -1", "[bob]");
    stop(&server, &client);
    directory_remove(directory);
}

/* Nothing is written after the reset: a snapshot keeps it. */
TEST(a_reset_lasts_though_nobody_writes) {
    skip_where_it_cannot_be_tried();
    char directory[DIRECTORY_PATH_MAX];
    directory_make(directory);
    struct process server;
    step_clock(DAY_S);
    struct wire client = start(&server, directory, NULL);
    wire_check(&client, "ZADD b 5 ann", ":1");
    stop(&server, &client);
    step_clock(0);
    client = start(&server, directory, "--reset-clock");
    wire_wait_info(&client, "rdb_saves", 1);
    stop(&server, &client);
    client = start(&server, directory, NULL);
    assert_near(&client, right_time_s());
    wire_check(&client, "ZREVRANGE b 0 -1", "[ann]");
    stop(&server, &client);
    directory_remove(directory);
}

static void wait_for_time_of(struct wire *replica, struct wire *master) {
    WAIT_UNTIL(strstr(wire_ask(replica, "INFO replication"), "master_link_status:up") != NULL &&
               time_of(replica) <= time_of(master) + NEAR_S);
}

/* By its own clock the board's day has ended, and the key has expired. */
TEST(a_replica_whose_machine_is_ahead_has_the_time_of_its_master) {
    skip_where_it_cannot_be_tried();
    struct process master, replica;
    char directory[DIRECTORY_PATH_MAX];
    directory_make(directory);
    struct wire to_master = start(&master, NULL, NULL);
    wire_check(&to_master, "LB.CREATE daily FIELD a 20 TIME 40 MS PERIOD DAY", "OK");
    wire_check(&to_master, "ZADD daily 1 ann", ":1");
    wire_check(&to_master, "ZADD short 1 bob", ":1");
    wire_check(&to_master, "EXPIRE short 3600", ":1");
    step_clock(2 * DAY_S); /* the master believes it after a minute */
    struct wire to_replica = start(&replica, directory, NULL);
    assert_near(&to_replica, right_time_s() + INT64_C(2) * DAY_S);
    wire_check(&to_replica, formatted("REPLICAOF 127.0.0.1 %u", master.port), "OK");
    wait_for_time_of(&to_replica, &to_master);
    wire_check(&to_replica, "ZCARD daily", ":1");
    wire_check(&to_replica, "ZCARD short", ":1");
    stop(&replica, &to_replica);
    to_replica =
        start_with(&replica, directory, "--replicaof", formatted("127.0.0.1 %u", master.port));
    wait_for_time_of(&to_replica, &to_master);
    wire_check(&to_replica, "ZCARD daily", ":1");
    wire_check(&to_replica, "ZCARD short", ":1");
    assert_int_equal(wire_info(&to_master, "sync_full"), 1);
    stop(&replica, &to_replica);
    stop(&master, &to_master);
    directory_remove(directory);
}

/* A copy brings the stamps of its master. Who takes over right behind it gives none before them, though no ping has
 * told it the time. */
TEST(a_replica_that_is_promoted_right_behind_its_copy_ranks_newcomers_last) {
    enum { AHEAD_S = 30 };
    skip_where_it_cannot_be_tried();
    struct process master, replica;
    struct wire to_master = start(&master, NULL, NULL);
    step_clock(AHEAD_S); /* the master follows at once, and comes back slowly */
    WAIT_UNTIL(time_of(&to_master) >= right_time_s() + AHEAD_S - 2);
    wire_check(&to_master, "ZADD board 1 first", ":1");
    step_clock(0);
    struct wire to_replica = start(&replica, NULL, NULL);
    wire_check(&to_replica, formatted("REPLICAOF 127.0.0.1 %u", master.port), "OK");
    while (wire_info(&to_replica, "slave_repl_offset") <
           wire_info(&to_master, "master_repl_offset")) {}
    wire_check(&to_replica, "REPLICAOF NO ONE", "OK");
    wire_check(&to_replica, "ZADD board 1 last", ":1");
    wire_check(&to_replica, "ZREVRANK board last", ":1");
    stop(&replica, &to_replica);
    stop(&master, &to_master);
}

/* What durations and times end at is the same on the master, on its replica, and in its files. */
static void assert_same_expiries(struct wire *master, struct wire *replica, const char *when) {
    static const char *const keys[] = {"PEXPIRETIME lasting", "PEXPIRETIME timed",
                                       "PEXPIRETIME copied", "PEXPIRETIME hash"};
    int64_t give_up_at = process_now_ms() + WIRE_LIMIT_MS;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0];) {
        int64_t on_master = wire_ask_integer(master, keys[i]);
        int64_t on_replica = wire_ask_integer(replica, keys[i]);
        if (on_master == on_replica && on_master > 0) {
            i++;
        } else if (process_now_ms() > give_up_at) {
            fail_msg("%s, %s: %lld on the master, %lld on the replica", when, keys[i],
                     (long long)on_master, (long long)on_replica);
        } else {
            process_sleep_ms(20);
        }
    }
}

/* The master's time follows the step, in so many seconds, and what was given as a duration still lasts. */
static void step_and_compare(struct wire *master, struct wire *replica, int64_t seconds,
                             int64_t wait_s) {
    char when[64];
    int64_t left_ms = wire_ask_integer(master, "PTTL lasting");
    int64_t begun_at = process_now_ms();
    step_clock(seconds);
    for (int64_t i = 0; i < wait_s * 10 + 3; i++) {
        wire_check(master, "ZCARD lasting", ":1");
        process_sleep_ms(100);
    }
    snprintf(when, sizeof when, "after a step to %lld s", (long long)seconds);
    assert_same_expiries(master, replica, when);
    int64_t passed_ms = process_now_ms() - begun_at;
    int64_t left_now_ms = wire_ask_integer(master, "PTTL lasting");
    assert_in_range(left_now_ms + passed_ms, left_ms - 2000, left_ms + 2000);
}

TEST(a_step_of_the_clock_shifts_durations_on_the_master_its_replica_and_in_its_files) {
    enum { BELIEVED_S = 62 };
    skip_where_it_cannot_be_tried();
    bool is_short = is_short_run();
    struct process master, replica;
    char directory[DIRECTORY_PATH_MAX];
    directory_make(directory);
    step_clock(0);
    struct wire to_master = start(&master, directory, NULL);
    struct wire to_replica = start(&replica, NULL, NULL);
    wire_check(&to_replica, formatted("REPLICAOF 127.0.0.1 %u", master.port), "OK");
    wire_check(&to_master, "ZADD lasting 1 m", ":1");
    wire_check(&to_master, "EXPIRE lasting 100000", ":1");
    wire_check(&to_master, "ZADD timed 1 m", ":1");
    wire_check(&to_master, formatted("EXPIREAT timed %lld", (long long)right_time_s() + 100000),
               ":1");
    wire_check(&to_master, "COPY lasting copied", ":1");
    wire_check(&to_master, "HSET hash f v", ":1");
    wire_check(&to_master, "PEXPIRE hash 98765432", ":1");
    assert_same_expiries(&to_master, &to_replica, "at first");
    step_and_compare(&to_master, &to_replica, 30, 0);
    step_and_compare(&to_master, &to_replica, 0, is_short ? 2 : 20);
    step_and_compare(&to_master, &to_replica, -30, is_short ? 2 : 20);
    if (!is_short) {
        step_and_compare(&to_master, &to_replica, HOUR_S, BELIEVED_S);
        step_and_compare(&to_master, &to_replica, 0, BELIEVED_S); /* which it does not follow */
    }
    assert_int_equal(wire_info(&to_master, "sync_full"), 1);
    process_signal(&master, SIGKILL);
    assert_true(process_wait(&master, WIRE_LIMIT_MS));
    wire_close(&to_master);
    to_master = start(&master, directory, NULL);
    wire_check(&to_replica, formatted("REPLICAOF 127.0.0.1 %u", master.port), "OK");
    assert_same_expiries(&to_master, &to_replica, "after a restart of the master");
    stop(&replica, &to_replica);
    stop(&master, &to_master);
    directory_remove(directory);
}

/* ---- a league over days, each of which the master is killed on ---- */

static void assert_same_league(struct wire *master, struct wire *replica) {
    static const char *const questions[] = {"LB.RANGE weekly 0 -1", "LB.LEAGUE INFO weekly",
                                            "DBSIZE"};
    char text[4096];
    wire_check(master, "WAIT 1 60000", ":1");
    for (size_t i = 0; i < COUNT_OF(questions); i++) {
        snprintf(text, sizeof text, "%s", wire_ask(master, questions[i]));
        assert_string_equal(wire_ask(replica, questions[i]), text);
    }
    for (int member = 0; member < 7; member++) {
        const char *question = formatted("LB.LEAGUE GET weekly m%d", member);
        snprintf(text, sizeof text, "%s", wire_ask(master, question));
        assert_string_equal(wire_ask(replica, question), text);
    }
}

TEST(a_league_goes_on_after_each_kill_and_on_its_replica) {
    skip_where_it_cannot_be_tried();
    struct process master, replica;
    char directory[DIRECTORY_PATH_MAX];
    directory_make(directory);
    step_clock(0);
    struct wire to_master = start_with(&master, directory, "--appendfsync", "always");
    struct wire to_replica = start(&replica, NULL, NULL);
    wire_check(&to_replica, formatted("REPLICAOF 127.0.0.1 %u", master.port), "OK");
    wire_check(&to_master,
               "LB.LEAGUE CREATE weekly FIELD points 22 PERIOD DAY ROOM 3 TIERS 4 UP 1 DOWN 1 "
               "ARCHIVE 1 IDLE DOWN",
               "OK");
    for (int day = 0; day < 6; day++) {
        /* m0 comes every day, m1 every second one, and so on: others are settled. */
        for (int member = 0; member < 7; member++) {
            if (day % (member + 1) == 0) {
                wire_check_prefix(
                    &to_master, formatted("LB.LEAGUE ADD weekly %d m%d", 7 - member, member), "[:");
            }
        }
        assert_same_league(&to_master, &to_replica);
        process_signal(&master, SIGKILL);
        assert_true(process_wait(&master, WIRE_LIMIT_MS));
        wire_close(&to_master);
        step_clock((day + 1) * INT64_C(86400));
        to_master = start_with(&master, directory, "--appendfsync", "always");
        wire_check(&to_replica, formatted("REPLICAOF 127.0.0.1 %u", master.port), "OK");
        assert_same_league(&to_master, &to_replica);
    }
    /* Always alone or the best of its room: one tier up a day, to the highest. */
    wire_check(&to_master, "LB.LEAGUE GET weekly m0", "[:4 nil nil nil down]");
    wire_check(&to_replica, "REPLICAOF NO ONE", "OK");
    wire_check(&to_replica, "LB.LEAGUE ADD weekly 1 m0", "[:4 :1 [m0 :0 nil :1] :4]");
    wire_check(&to_master, "LB.LEAGUE ADD weekly 1 m0", "[:4 :1 [m0 :0 nil :1] :4]");
    stop(&replica, &to_replica);
    stop(&master, &to_master);
    directory_remove(directory);
}

/* ---- PERIOD ... COPY ---- */

enum { COPIED_MEMBERS = 20000 };

static void fill_board(struct wire *client) {
    enum { AT_A_TIME = 20 };
    char line[AT_A_TIME * 24 + 16];
    wire_check(client, "LB.CREATE all FIELD a 20 TAG t 4 PERIOD DAY COPY", "OK");
    for (int i = 0; i < COPIED_MEMBERS; i += AT_A_TIME) {
        size_t size = (size_t)snprintf(line, sizeof line, "LB.ADD all TAG t %d", i % 7);
        for (int j = i; j < i + AT_A_TIME; j++) {
            size += (size_t)snprintf(line + size, sizeof line - size, " %d m%d", j % 100, j);
        }
        wire_check(client, line, ":20");
    }
}

/* Both have the same of a board. */
static void assert_same_board(struct wire *a, struct wire *b, const char *board) {
    for (int rank = 0; rank < COPIED_MEMBERS; rank += COPIED_MEMBERS / 20) {
        const char *command =
            formatted("LB.RANGE %s %d %d TAGS SINCE LAST", board, rank, rank + 20);
        OWNED char *of_a = strdup(wire_ask(a, command));
        assert_string_equal(of_a, wire_ask(b, command));
    }
}

/* A day later the copy is due. Below maxmemory it begins; it is made again if the kill comes before its end. The
 * replica's clock is the machine's, or that of its master: neither counts. */
TEST(an_archive_that_is_copied_outlives_a_kill_and_is_the_same_on_a_replica) {
    skip_where_it_cannot_be_tried();
    struct process master, replica;
    char directory[DIRECTORY_PATH_MAX];
    char day[16];
    directory_make(directory);
    step_clock(0);
    struct wire to_master = start(&master, directory, NULL);
    fill_board(&to_master);
    time_t day_s = (time_t)time_of(&to_master);
    strftime(day, sizeof day, "%Y-%m-%d", gmtime(&day_s));
    stop(&master, &to_master);
    step_clock(DAY_S);
    to_master = start_with(&master, directory, "--maxmemory", "1000000");
    wire_check(&to_master, formatted("EXISTS all@%s", day), ":0");
    wire_check(&to_master, "CONFIG SET maxmemory 0", "OK");
    process_signal(&master, SIGKILL);
    assert_true(process_wait(&master, WIRE_LIMIT_MS));
    wire_close(&to_master);
    to_master = start_with(&master, directory, "--maxmemory", "1000000");
    struct wire to_replica = start(&replica, NULL, NULL);
    wire_check(&to_replica, formatted("REPLICAOF 127.0.0.1 %u", master.port), "OK");
    WAIT_UNTIL(wire_ask_integer(&to_replica, "ZCARD all") == COPIED_MEMBERS);
    wire_check(&to_master, "CONFIG SET maxmemory 0", "OK");
    WAIT_UNTIL(wire_ask_integer(&to_master, formatted("EXISTS all@%s", day)) == 1);
    WAIT_UNTIL(wire_ask_integer(&to_replica, formatted("EXISTS all@%s", day)) == 1);
    assert_same_board(&to_master, &to_replica, "all");
    assert_same_board(&to_master, &to_replica, formatted("all@%s", day));
    wire_check(&to_master, formatted("ZCARD all@%s", day), formatted(":%d", COPIED_MEMBERS));
    wire_check(&to_master, "DBSIZE", ":2");
    stop(&replica, &to_replica);
    stop(&master, &to_master);
    directory_remove(directory);
}

/* ---- WINDOW ---- */

enum { WINDOW_MEMBERS = 100000, WINDOW_MEMBERS_SHORT = 20000, WINDOW_GROUP = 25 };

/* Every step-th member gets its number % 100 + 1 in the running hour. */
static void fill_window(struct wire *client, int count, int step) {
    static char line[WINDOW_GROUP * 32];
    for (int begin = 0; begin < count; begin += WINDOW_GROUP * step) {
        size_t size = (size_t)snprintf(line, sizeof line, "ZADD w");
        for (int i = begin; i < count && i < begin + WINDOW_GROUP * step; i += step) {
            size += (size_t)snprintf(line + size, sizeof line - size, " %d m%d", i % 100 + 1, i);
        }
        wire_check_prefix(client, line, ":");
    }
}

/* A server that keeps its boards, in a later hour: what has to leave begins to leave. */
static struct wire start_at_hour(struct process *server, const char *directory, int hour) {
    step_clock(hour * (int64_t)HOUR_S);
    return start(server, directory, NULL);
}

TEST(what_leaves_a_window_leaves_once_whatever_is_killed) {
    skip_where_it_cannot_be_tried();
    int count = is_short_run() ? WINDOW_MEMBERS_SHORT : WINDOW_MEMBERS;
    struct process server, replica;
    char directory[DIRECTORY_PATH_MAX];
    directory_make(directory);
    struct wire client = start_at_hour(&server, directory, 0);
    wire_check(&client, "LB.CREATE w FIELD a 33 SIGNED TIME 31 S PERIOD HOUR WINDOW 3 SUM", "OK");
    fill_window(&client, count, 1);
    stop(&server, &client);
    client = start_at_hour(&server, directory, 1);
    fill_window(&client, count, 2);
    wire_check(&client, "ZSCORE w m10", "22");
    wire_check(&client, "ZSCORE w m11", "12");
    wire_check(&client, "ZCARD w", formatted(":%d", count));
    stop(&server, &client);
    /* The first hour leaves; the server is killed again and again meanwhile. */
    for (int i = 0; i < 12; i++) {
        client = start_at_hour(&server, directory, 3);
        process_sleep_ms(i * 3);
        process_signal(&server, SIGKILL);
        assert_true(process_wait(&server, WIRE_LIMIT_MS));
        wire_close(&client);
    }
    client = start_at_hour(&server, directory, 3);
    struct wire follower = start_at_hour(&replica, NULL, 3);
    wire_check(&follower, formatted("REPLICAOF 127.0.0.1 %u", server.port), "OK");
    wire_check(&client, "EXISTS w", ":1"); /* what is due there is counted from now on */
    wire_wait_info(&client, "windows_behind", 0);
    wire_check(&client, "ZADD behind 1 all", ":1"); /* WAIT waits for what this client wrote */
    wire_check(&client, "WAIT 1 60000", ":1");
    for (int i = 0; i < 2; i++) {
        struct wire *asked = i == 0 ? &client : &follower;
        wire_check(asked, "ZCARD w", formatted(":%d", count / 2));
        wire_check(asked, "ZCOUNT w 1 1", formatted(":%d", count / 100));
        wire_check(asked, "ZCOUNT w 99 99", formatted(":%d", count / 100));
        wire_check(asked, "ZCOUNT w 2 2", ":0");
        wire_check(asked, "ZSCORE w m10", "11");
    }
    /* A replica whose master is gone goes on where that one was. */
    stop(&server, &client);
    wire_check(&follower, "REPLICAOF NO ONE", "OK");
    wire_check(&follower, "ZINCRBY w 5 m10", "16");
    stop(&replica, &follower);
    client = start_at_hour(&server, directory, 4);
    wire_check(&client, "EXISTS w", ":1");
    wire_wait_info(&client, "windows_behind", 0);
    wire_check(&client, "ZCARD w", ":0");
    stop(&server, &client);
    directory_remove(directory);
}

TEST_MAIN(begin, end)
