/* What survives a server: orderly ends, kill -9, snapshots, settings changed on the run, loading,
 * backups, a directory that is taken or cannot be written, and a full disk. */
#include "tests/support/test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/commands.h"
#include "tests/support/directory.h"
#include "tests/support/process.h"
#include "tests/support/registry_workload.h"
#include "tests/support/wire.h"

enum {
    LONG_BOARD = 3000000,
    LONG_BOARD_SHORT = 600000,
    MEMBERS_PER_COMMAND = 500,
    WAIT_LIMIT_MS = 60000,
    WORDS_MAX = 16,
};

static struct process server;
static struct wire wire;
static char directory[DIRECTORY_PATH_MAX]; /* of all servers of one test */

static const char *const no_words[] = {NULL};
static const char *const with_journal[] = {"--appendonly", "yes", NULL};
static const char *const with_always[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
static const char *const with_save[] = {"--save", "3600 1000000", NULL};

/* ---- fixture ---- */

FIXTURE(make_directory) {
    directory_make(directory);
    return 0;
}

FIXTURE(remove_directory) {
    wire_close(&wire);
    process_stop(&server);
    directory_remove(directory);
    return 0;
}

static void start(const char *const *words) {
    const struct process_options options = {.directory = directory, .arguments = words};
    assert_true(process_start(&server, &options));
    wire = wire_open(process_connect_unix(&server));
    wire_wait_loaded(&wire);
}

/* The signal ends it, and with 0 unless it is SIGKILL. */
static void end(int signal_number) {
    wire_close(&wire);
    process_signal(&server, signal_number);
    assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(server.exit_status, signal_number == SIGKILL ? 128 + SIGKILL : 0);
}

static void check_start_refused(const char *const *words, const char *const *told) {
    const struct process_options options = {.arguments = words};
    assert_true(process_start_is_refused(&options, told));
}

/* INFO's field, "" if it is not there; valid until the next call. */
static const char *info(const char *name) {
    static char value[128];
    const char *wanted = formatted("\n%s:", name);
    const char *at = strstr(wire_ask(&wire, "INFO persistence"), wanted);
    value[0] = '\0';
    if (at) {
        at += strlen(wanted);
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
    }
    return value;
}

static void wait_for_info(const char *name, const char *value) {
    WAIT_UNTIL(strcmp(info(name), value) == 0);
}

static void save_in_background(void) {
    char before[128]; /* formatted() forgets it while this waits */
    snprintf(before, sizeof before, "%s", info("rdb_saves"));
    wire_check(&wire, "BGSAVE", "Background saving started");
    wait_for_info("rdb_bgsave_in_progress", "0");
    assert_string_equal(info("rdb_last_bgsave_status"), "ok");
    assert_string_not_equal(info("rdb_saves"), before);
}

/* Members m0 .. m<count-1> on one board, each with its number as score. */
static void fill(const char *board, int count) {
    TEXT(requests);
    for (int first = 0; first < count; first += MEMBERS_PER_COMMAND) {
        int last = first + MEMBERS_PER_COMMAND < count ? first + MEMBERS_PER_COMMAND : count;
        text_format(&requests, "*%d\r\n$4\r\nZADD\r\n$%zu\r\n%s\r\n", 2 + 2 * (last - first),
                    strlen(board), board);
        for (int i = first; i < last; i++) {
            char number[16];
            int size = snprintf(number, sizeof number, "%d", i);
            text_format(&requests, "$%d\r\n%s\r\n$%d\r\nm%s\r\n", size, number, size + 1, number);
        }
    }
    wire_send(&wire, requests.at, requests.size);
    for (int first = 0; first < count; first += MEMBERS_PER_COMMAND) {
        assert_int_equal(wire_reply(&wire)[0], ':');
    }
}

/* One of everything that has to be there again. */
static void write_story(void) {
    wire_check(&wire, "ZADD arena 100 zoe 90 ann", ":2");
    wire_check(&wire, "ZINCRBY arena 10 ann", "100");
    wire_check(&wire, "ZADD arena 100 bob 250 kim 1 gone", ":3");
    wire_check(&wire, "ZREM arena gone", ":1");
    wire_check(&wire, "LB.CREATE laps FIELD ms 32 ASC TIME 32 S CAP 2 KEEP BEST", "OK");
    wire_check(&wire, "ZADD laps 300 a 200 b 100 c", ":2");
    wire_check(&wire, "LB.CREATE empty FIELD s 20 TIME 44 MS", "OK");
    wire_check(&wire, "LB.CREATE altered FIELD s 20", "OK");
    wire_check(&wire, "ZADD altered 1 a 2 b 3 c", ":3");
    wire_check(&wire, "LB.ALTER altered CAP 2 PERIOD YEAR EVERY 1000 AT 7 TZ Asia/Tokyo", "OK");
    wire_check(&wire, "LB.ALTER altered CLOSES 2001-01-01T00:00:00Z", "OK");
    wire_check(&wire, "LB.CREATE lodge LIMIT 1 FREEZE", "OK");
    wire_check(&wire, "LB.ALTER lodge THAW", "OK");
    wire_check(&wire, "ZADD lodge 5 a", ":1");
    wire_check(&wire, "LB.CREATE hot FIELD s 60 SCALE 3 DECAY 1000000 D", "OK");
    wire_check(&wire, "ZINCRBY hot 5 ann", "5");
    wire_check(&wire, "LB.ADD hot INCR 2.5 ann 7 bob", ":2");
    wire_check(&wire, "LB.CREATE ranks FIELD s 20 TAG country 8 TAG claimed 1", "OK");
    wire_check(&wire, "LB.ADD ranks TAG country DE 3 ann 2 bob", ":2");
    wire_check(&wire, "LB.TAG ranks bob country FR claimed 1", ":1");
    wire_check(&wire, "LB.ALTER ranks TAG clan 10 TAG claimed NONE", "OK");
    wire_check(&wire, "LB.TAG ranks bob clan wolves", ":1");
    wire_check(&wire, "SELECT 9", "OK");
    wire_check(&wire, "ZADD far 7 away", ":1");
    wire_check(&wire, "EXPIREAT far 4102444800", ":1");
    wire_check(&wire, "ZADD short 7 lived", ":1");
    wire_check(&wire, "PEXPIRE short 1", ":1");
    wire_check(&wire, "SELECT 0", "OK");
    wire_check(&wire, "RENAME arena hall", "OK");
    wire_check(&wire, "COPY hall arena", ":1");
    wire_check(&wire, "DEL hall", ":1");
}

static void check_story(void) {
    wire_check(&wire, "ZREVRANGE arena 0 -1 WITHSCORES", "[kim 250 zoe 100 ann 100 bob 100]");
    wire_check(&wire, "ZRANGE laps 0 -1 WITHSCORES", "[c 100 b 200]");
    wire_check(&wire, "EXISTS arena laps empty hall", ":3");
    /* Options hold for what comes. */
    wire_check(&wire, "ZRANGE altered 0 -1", "[b c]");
    wire_check(&wire, "ZREM altered b", "-CLOSED board has been closed since 2001-01-01T00:00:00Z");
    wire_check(&wire, "ZADD lodge 6 b", "-FULL board is full: at most 1 members");
    wire_check(&wire, "LB.LIST MATCH altered COUNT 50",
               "[0 [[name altered layout FIELD s 20 count :2 cap :2 keep last "
               "created :1 period [unit YEAR tz Asia/Tokyo start :-7200000 end :31556988000000 "
               "archive nil every :1000 "
               "on nil at :7 from 1970-01-01 archived frozen copy :0] limit nil frozen :0 opens "
               "nil closes "
               ":978307200000 stale nil settle :0 settled nil ended nil dense :0 rating nil limits "
               "nil tickets :0 hold nil held nil window "
               "nil archives [] "
               "tags []]]]");
    wire_check(&wire, "ZRANGE hot 0 -1 WITHSCORES", "[bob 7 ann 7.5]");
    wire_check(&wire, "LB.TAGS ranks ann bob", "[[country DE] [country FR clan wolves]]");
    wire_check(&wire, "ZREVRANGE ranks 0 -1", "[ann bob]");
    wire_check(&wire, "MULTI", "OK");
    wire_check(&wire, "ZADD laps 90 d 500 c", "QUEUED");
    wire_check(&wire, "ZRANGE laps 0 -1 WITHSCORES", "QUEUED");
    wire_check(&wire, "EXEC", "[:1 [d 90 c 100]]");
    wire_check(&wire, "ZREM laps d", ":1");
    wire_check(&wire, "ZADD laps 200 b", ":1");
    wire_check(&wire, "SELECT 9", "OK");
    wire_check(&wire, "ZSCORE far away", "7");
    wire_check(&wire, "EXPIRETIME far", ":4102444800");
    wire_check(&wire, "EXISTS short", ":0");
    wire_check(&wire, "SELECT 0", "OK");
}

/* ---- ends and beginnings ---- */

#define IN_FIXTURE(name) TEST_WITH(name, make_directory, remove_directory)

IN_FIXTURE(an_end_and_a_kill_at_any_time_keep_everything) {
    static const struct {
        const char *const *words;
        int end;
    } rows[] = {{with_journal, SIGTERM}, {with_always, SIGTERM},  {with_save, SIGTERM},
                {with_save, SIGINT},     {with_journal, SIGKILL}, {with_always, SIGKILL}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        start(rows[i].words);
        wire_check(&wire, "FLUSHALL", "OK");
        write_story();
        for (int times = 0; times < 3; times++) {
            end(rows[i].end);
            start(rows[i].words);
            check_story();
        }
        end(rows[i].end);
    }
}

/* Random commands on one of three databases, and what those have not: a long value, and a flush of what
 * an earlier round has written. */
static void write_round(int round) {
    enum { VALUE_SIZE = 300000 };
    static char value[VALUE_SIZE + 1];
    memset(value, 'a' + round, VALUE_SIZE);
    wire_check(&wire, formatted("SELECT %d", 5 + round % 2), "OK");
    wire_check(&wire, "FLUSHDB", "OK");
    wire_check(&wire, formatted("HSET long first 1 field %s last 2", value), ":3");
    wire_check(&wire, formatted("SELECT %d", round % 3), "OK");
    commands_write(&wire, is_short_run() ? 300 : 2000);
}

/* All that the server holds, as of the group that is returned. */
static int64_t take_copy(struct registry **copy) {
    for (int64_t give_up_at = process_now_ms() + WAIT_LIMIT_MS;;) {
        int64_t group = wire_info(&wire, "master_repl_offset");
        *copy = commands_copy(&server, formatted("%s/copy", directory));
        if (wire_info(&wire, "master_repl_offset") == group) {
            return group;
        }
        registry_destroy(*copy); /* a key has expired meanwhile */
        assert_true(process_now_ms() < give_up_at);
    }
}

/* Also in ranks, times, options and expiries. */
IN_FIXTURE(all_kinds_of_commands_are_there_whole_after_a_kill) {
    static const char *const fsyncs[] = {"always", "everysec", "no"};
    const int rounds = (int)test_rounds(12, 12); /* each fsync, at least */
    int compared = 0;
    commands_begin("persistence");
    for (int round = 0; round < rounds; round++) {
        const char *const words[] = {"--appendonly", "yes", "--appendfsync", fsyncs[round % 3],
                                     NULL};
        struct registry *wanted, *found;
        start(words);
        if (round == 0) {
            commands_make_kinds(&wire);
        }
        write_round(round);
        int64_t group = take_copy(&wanted);
        end(SIGKILL);
        start(words);
        int64_t found_group = take_copy(&found);
        assert_true(found_group >= group);
        if (found_group == group) { /* no key has expired meanwhile */
            workload_assert_equal(wanted, found);
            compared++;
        }
        registry_destroy(wanted);
        registry_destroy(found);
        end(SIGKILL);
    }
    assert_true(compared >= rounds / 2);
}

IN_FIXTURE(what_was_saved_is_loaded_with_either_setting_of_appendonly) {
    start(with_journal);
    write_story();
    end(SIGKILL);
    start(no_words);
    check_story();
    wire_check(&wire, "ZADD late 1 x", ":1");
    end(SIGKILL); /* appendonly no: nothing of that was kept */
    start(with_journal);
    check_story();
    wire_check(&wire, "EXISTS late", ":0");
}

IN_FIXTURE(without_a_journal_a_crash_leaves_the_last_snapshot) {
    start(no_words);
    write_story();
    wire_check(&wire, "SELECT 9", "OK");
    while (strcmp(wire_ask(&wire, "EXISTS short"), ":0") != 0) {} /* its end is a change, too */
    wire_check(&wire, "SELECT 0", "OK");
    int64_t started_s = wire_ask_integer(&wire, "LASTSAVE");
    save_in_background();
    assert_true(wire_ask_integer(&wire, "LASTSAVE") >= started_s);
    assert_string_equal(info("rdb_changes_since_last_save"), "0");
    wire_check(&wire, "ZADD late 1 x", ":1");
    assert_string_equal(info("rdb_changes_since_last_save"), "1");
    end(SIGKILL);
    start(no_words);
    check_story();
    wire_check(&wire, "EXISTS late", ":0");
    wire_check(&wire, "ZADD late 1 x", ":1");
    wire_check(&wire, "SAVE", "OK");
    end(SIGKILL);
    start(no_words);
    wire_check(&wire, "EXISTS late", ":1");
}

IN_FIXTURE(with_a_journal_a_snapshot_takes_its_place) {
    start(with_journal);
    write_story();
    fill("big", 20000);
    long long size_before = atoll(info("aof_current_size"));
    for (int times = 0; times < 50; times++) {
        fill("big", 20000);
        wire_check(&wire, "DEL big", ":1");
    }
    assert_true(atoll(info("aof_current_size")) > size_before);
    wire_check(&wire, "BGREWRITEAOF", "Background append only file rewriting started");
    wait_for_info("aof_rewrite_in_progress", "0");
    assert_true(atoll(info("aof_current_size")) < size_before);
    wire_check(&wire, "ZADD late 1 x", ":1");
    end(SIGKILL);
    start(with_journal);
    check_story();
    wire_check(&wire, "EXISTS late big", ":1");
}

/* Members go at both ends of what is walked: few, and more than are told one by one. */
IN_FIXTURE(a_snapshot_is_exact_while_writers_go_on) {
    start(with_journal);
    write_story();
    fill("big", 200000);
    for (int round = 0; round < 5; round++) {
        wire_check(&wire, "BGSAVE", "Background saving started");
        for (int i = 0; i < 300; i++) {
            const char *line = formatted("ZINCRBY sum:%d 1 ann", i % 7);
            assert_int_equal(wire_ask_integer(&wire, "ZREMRANGEBYRANK big 0 9"), 10);
            (void)wire_ask(&wire, line);
            assert_int_equal(wire_ask_integer(&wire, "ZREMRANGEBYRANK big -5 -1"), 5);
            if (i == 10) {
                wire_check(&wire, "ZREMRANGEBYRANK big 0 4999", ":5000");
                wire_check(&wire, "RENAME big large", "OK");
                wire_check(&wire, "COPY large big", ":1");
                wire_check(&wire, "DEL large", ":1");
            }
        }
        wait_for_info("rdb_bgsave_in_progress", "0");
    }
    assert_string_equal(info("rdb_last_bgsave_status"), "ok");
    end(SIGKILL);
    start(no_words);
    check_story();
    wire_check(&wire, "ZCARD big", ":152500");
    wire_check(&wire, "ZRANGE big 0 0", "[m40000]");
    wire_check(&wire, "ZRANGE big -1 -1", "[m192499]");
    wire_check(&wire, "ZSCORE sum:0 ann", "215");
    wire_check(&wire, "ZSCORE sum:6 ann", "210");
}

IN_FIXTURE(shutdown_saves_or_not_as_it_is_told) {
    start(no_words);
    write_story();
    wire_send_text(&wire, "SHUTDOWN SAVE\r\n");
    assert_true(wire_is_closed(&wire, PROCESS_STOP_LIMIT_MS));
    assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(server.exit_status, 0);
    wire_close(&wire);
    start(with_save);
    check_story();
    wire_check(&wire, "ZADD late 1 x", ":1");
    wire_send_text(&wire, "SHUTDOWN NOSAVE\r\n");
    assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(server.exit_status, 0);
    wire_close(&wire);
    start(with_save);
    check_story();
    wire_check(&wire, "EXISTS late", ":0");
}

/* ---- settings changed on the run ---- */

IN_FIXTURE(the_journal_can_be_turned_on_and_off) {
    start(no_words);
    write_story();
    assert_string_equal(info("aof_enabled"), "0");
    wire_check(&wire, "CONFIG SET appendonly yes", "OK");
    wait_for_info("aof_enabled", "1");
    wire_check(&wire, "ZADD late 1 x", ":1");
    end(SIGKILL);
    start(with_journal);
    check_story();
    wire_check(&wire, "EXISTS late", ":1");
    wire_check(&wire, "CONFIG SET appendfsync always", "OK");
    wire_check(&wire, "ZADD late 2 y", ":1");
    wire_check(&wire, "CONFIG SET appendfsync no", "OK");
    wire_check(&wire, "ZADD late 3 z", ":1");
    wire_check(&wire, "CONFIG SET appendonly no", "OK");
    wait_for_info("aof_enabled", "0");
    wire_check(&wire, "ZADD later 1 x", ":1");
    end(SIGKILL);
    start(no_words);
    check_story();
    wire_check(&wire, "ZCARD late", ":3");
    wire_check(&wire, "EXISTS later", ":0");
    /* On once more: the old journals must not come back behind the new snapshot. */
    wire_check(&wire, "CONFIG SET appendonly yes", "OK");
    wait_for_info("aof_enabled", "1");
    wire_check(&wire, "DEL late", ":1");
    end(SIGKILL);
    start(no_words);
    check_story();
    wire_check(&wire, "EXISTS late later", ":0");
}

/* Until a snapshot has the last so many changes, which were made together. */
static void wait_until_saved(long changes) {
    WAIT_UNTIL(strtol(info("rdb_changes_since_last_save"), NULL, 10) < changes);
}

IN_FIXTURE(save_points_write_snapshots_by_themselves) {
    start((const char *[]){"--save", "1 3", NULL});
    wire_check(&wire, "ZADD a 1 x", ":1");
    wire_check(&wire, "ZADD a 2 y", ":1");
    process_sleep_ms(2500);
    assert_string_equal(info("rdb_saves"), "0");
    write_story();
    /* One may have begun in the middle of the story: the one that counts has these three, too,
     * which are made at once. */
    wire_send_text(&wire, "MULTI\r\nZADD last 1 x\r\nZADD last 2 y\r\nZADD last 3 z\r\nEXEC\r\n");
    wire_expect(&wire, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n:1\r\n:1\r\n");
    wait_until_saved(3);
    end(SIGKILL);
    start(no_words);
    check_story();
    wire_check(&wire, "ZCARD last", ":3");
    static const char set[] = "*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$4\r\nsave\r\n$3\r\n1 1\r\n";
    wire_send_text(&wire, set);
    wire_expect(&wire, "+OK\r\n");
    wire_check(&wire, "ZADD late 1 x", ":1");
    wait_until_saved(1);
    end(SIGKILL);
    start(no_words);
    wire_check(&wire, "EXISTS late", ":1");
}

/* ---- loading ---- */

static int long_board(void) {
    return is_short_run() ? LONG_BOARD_SHORT : LONG_BOARD;
}

static void page_has(const char *name, const char *text) {
    size_t size;
    OWNED char *page = file_read(name, &size);
    if (page == NULL || strstr(page, text) == NULL) {
        fail_msg("%s does not have %s", name, text);
    }
}

/* The health check of docs/operate/durability.md, behind redis-cli. */
#define LOADED_CHECK "tr -d '\\r' | grep -qx loading:0"

static bool check_says_loaded(const char *text) {
    FILE *check = popen(LOADED_CHECK, "w");
    assert_non_null(check);
    assert_true(fputs(text, check) >= 0);
    return pclose(check) == 0;
}

IN_FIXTURE(the_documented_health_check_is_the_one_that_is_tested) {
    page_has("docs/operate/durability.md", "redis-cli INFO persistence | " LOADED_CHECK "\n");
    assert_true(check_says_loaded("# Persistence\r\nloading:0\r\nasync_loading:0\r\n"));
    assert_false(check_says_loaded("# Persistence\r\nloading:1\r\nasync_loading:0\r\n"));
}

/* Ready is who serves the boards. */
static void check_order_in_log(void) {
    OWNED char *log = process_log(&server);
    const char *loaded = NULL;
    const char *ready = NULL;
    for (const char *at = log; (at = strstr(at, "notice loaded ")) != NULL; at++) {
        loaded = at;
    }
    for (const char *at = log; (at = strstr(at, "notice ready ")) != NULL; at++) {
        ready = at;
    }
    assert_true(loaded != NULL && ready != NULL && loaded < ready);
}

/* Start, and wait until it has loaded; returns how often it was seen loading. */
static int watch_loading(void) {
    const struct process_options options = {.directory = directory, .arguments = with_journal};
    assert_true(process_start(&server, &options));
    wire = wire_open(process_connect_unix(&server));
    int loading_count = 0;
    while (strncmp(wire_ask(&wire, "PING"), "-LOADING", 8) == 0) {
        assert_string_equal(wire.reply.at, "-LOADING Redis is loading the dataset in memory");
        const char *text = wire_ask(&wire, "INFO persistence");
        bool is_loading = strstr(text, "\nloading:1\r") != NULL;
        assert_int_equal(check_says_loaded(text), !is_loading);
        if (is_loading) {
            assert_non_null(strstr(text, "\nloading_loaded_perc:"));
            loading_count++;
        }
        process_sleep_ms(2);
    }
    return loading_count;
}

IN_FIXTURE(while_boards_are_loaded_clients_are_told_so) {
    start(with_journal);
    write_story();
    fill("big", long_board());
    end(SIGTERM);
    int loading_count = watch_loading();
    for (int more = 0; loading_count == 0 && more < 20; more++) {
        end(SIGTERM); /* it was faster than this test */
        loading_count = watch_loading();
    }
    const char *count = formatted(":%d", long_board());
    assert_string_equal(wire.reply.at, "PONG");
    wire_check(&wire, "ZCARD big", count);
    assert_string_equal(info("loading"), "0");
    assert_true(loading_count > 0);
    check_story();
    check_order_in_log();
}

IN_FIXTURE(a_server_that_loads_can_be_stopped_and_loses_nothing) {
    start(with_journal);
    fill("big", long_board());
    save_in_background();
    wire_check(&wire, "ZADD late 1 x", ":1");
    end(SIGKILL);
    static const int signals[] = {SIGTERM, SIGKILL};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        const struct process_options options = {.directory = directory, .arguments = with_journal};
        assert_true(process_start(&server, &options));
        end(signals[i]);
    }
    start(with_journal);
    assert_int_equal(wire_ask_integer(&wire, "ZCARD big"), long_board());
    wire_check(&wire, "EXISTS late", ":1");
}

/* ---- directories ---- */

IN_FIXTURE(a_second_server_on_the_same_directory_is_refused) {
    start(with_journal);
    write_story();
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)server.pid);
    const char *words[] = {"--dir", directory, "--appendonly", "yes", NULL};
    check_start_refused(words, (const char *[]){"another server", pid, "appendonlydir", NULL});
    const char *reading[] = {"--dir", directory, NULL};
    check_start_refused(reading, (const char *[]){"another server", pid, NULL});
    check_story();
    end(SIGKILL); /* its lock goes with it */
    start(with_journal);
    check_story();
}

/* ---- servers that start together ---- */

enum { RIVALS = 6 };
static pid_t rivals[RIVALS];
static unsigned rival_count;
static char rival_socket[RIVALS][PROCESS_PATH_MAX];

static void start_rival(int i, const char *const *words) {
    const char *program = process_default_program();
    snprintf(rival_socket[i], sizeof rival_socket[i], "%.70s/rival-%u", directory, rival_count++);
    fflush(NULL);
    rivals[i] = fork();
    assert_true(rivals[i] >= 0);
    if (rivals[i] == 0) {
        const char *all[WORDS_MAX] = {program,         "--port", "0",      "--unixsocket",
                                      rival_socket[i], "--dir",  directory};
        int count = 7;
        for (; *words != NULL; words++) {
            all[count++] = *words;
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        FILE *log = freopen("/dev/null", "w", stdout);
        (void)!dup2(log != NULL ? fileno(log) : -1, STDERR_FILENO);
        execv(program, (char **)(uintptr_t)all);
        _exit(127);
    }
}

static bool is_refused(int i) {
    int status;
    if (rivals[i] != 0 && waitpid(rivals[i], &status, WNOHANG) == rivals[i]) {
        assert_int_equal(WEXITSTATUS(status), 1);
        rivals[i] = 0;
    }
    return rivals[i] == 0;
}

static void await_end(pid_t rival) {
    int status;
    assert_int_equal(waitpid(rival, &status, 0), rival);
    assert_int_equal(status, 0);
}

static void check_serves(int i) {
    struct process rival = {.pid = rivals[i]};
    memcpy(rival.socket_path, rival_socket[i], sizeof rival.socket_path);
    int fd = process_connect_unix(&rival);
    WAIT_UNTIL(fd >= 0 ||
               (fd = process_connect_unix(&rival)) >= 0); /* bound, it does not listen yet */
    WIRE(own, fd);
    wire_wait_loaded(&own);
    wire_check_prefix(&own, "ZADD a 1 x", ":");
}

/* Wait until all have ended but one at most; with is_one, exactly one. Returns that one; -1: there is none. */
static int wait_for_winner(bool is_one) {
    int64_t give_up_at = process_now_ms() + WAIT_LIMIT_MS;
    for (;;) {
        int winner = -1, count = 0;
        for (int i = 0; i < RIVALS; i++) {
            if (!is_refused(i)) {
                winner = i;
                count++;
            }
        }
        if (count == 0 || (count == 1 && access(rival_socket[winner], F_OK) == 0)) {
            assert_true(count == 1 || !is_one);
            if (count == 1) {
                check_serves(winner);
            }
            return winner;
        }
        assert_true(process_now_ms() < give_up_at);
        process_sleep_ms(2);
    }
}

static void compete(const char *const *words) {
    int winner = -1;
    for (uint32_t round = test_rounds(30, 5); round > 0; round--) {
        for (int i = 0; i < RIVALS; i++) {
            start_rival(i, words);
        }
        winner = wait_for_winner(true);
        /* Others come while it ends, and takes its directory away. */
        pid_t last = rivals[winner];
        kill(last, SIGTERM);
        for (int i = 0; i < RIVALS; i++) {
            start_rival(i, words);
        }
        await_end(last);
        winner = wait_for_winner(false);
        if (winner >= 0) {
            kill(rivals[winner], SIGTERM);
            await_end(rivals[winner]);
        }
    }
}

IN_FIXTURE(of_servers_that_start_in_a_new_directory_together_one_runs) {
    compete((const char *[]){"--save", "", NULL});
    compete(no_words);
    compete(with_journal);
}

IN_FIXTURE(a_server_that_has_kept_nothing_leaves_no_directory) {
    start(no_words);
    wire_check(&wire, "ZADD a 1 x", ":1");
    end(SIGTERM);
    assert_false(file_exists(directory_join(directory, "appendonlydir")));
}

IN_FIXTURE(a_directory_in_use_is_not_restored_imported_or_fixed_into) {
    static const char *const words[][3] = {{"--restore", "table", ""},
                                           {"--import", "table", "--format csv"},
                                           {"--check", "", "--fix"}};
    char other[DIRECTORY_PATH_MAX];
    directory_make(other);
    start(no_words); /* and has no manifest */
    wire_check(&wire, "ZADD a 1 x", ":1");
    file_write(directory_join(other, "table"), "x", 1);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        bool has_source = words[i][1][0] != '\0';
        assert_int_not_equal(
            system(formatted("%s %s %s/%s %s %s >%s/said 2>&1", process_default_program(),
                             words[i][0], has_source ? other : directory, words[i][1],
                             has_source ? directory : "", words[i][2], other)),
            0);
    }
    directory_remove(other);
    wire_check(&wire, "SAVE", "OK");
    end(SIGTERM);
    start(no_words);
    wire_check(&wire, "ZSCORE a x", "1");
}

IN_FIXTURE(a_directory_that_cannot_be_used_is_named) {
    const char *missing[] = {"--dir", "/no-such-directory", "--appendonly", "yes", NULL};
    check_start_refused(missing,
                        (const char *[]){"/no-such-directory", "No such file or directory", NULL});
    const char *unwritable[] = {"--dir", "/proc", "--appendonly", "yes", NULL};
    check_start_refused(unwritable, (const char *[]){"/proc/appendonlydir", NULL});
    const char *a_file[] = {"--dir", directory, "--appenddirname", "taken", "--appendonly",
                            "yes",   NULL};
    FILE *file = fopen(formatted("%s/taken", directory), "w");
    assert_non_null(file);
    fclose(file);
    check_start_refused(a_file, (const char *[]){"taken", "Not a directory", NULL});
}

IN_FIXTURE(a_journal_is_not_turned_on_where_the_directory_cannot_be_used) {
    start((const char *[]){"--dir", "/proc", "--save", "", NULL});
    const char *answer = wire_ask(&wire, "CONFIG SET maxclients 77 appendonly yes");
    const char *expected = "-ERR CONFIG SET failed (possibly related to argument 'appendonly') - "
                           "cannot make the directory /proc/appendonlydir: ";
    assert_memory_equal(answer, expected, strlen(expected));
    wire_check(&wire, "CONFIG GET appendonly", "[appendonly no]");
    wire_check(&wire, "CONFIG GET maxclients", "[maxclients 10000]");
    wire_check(&wire, "ZADD board 1 a", ":1");
}

IN_FIXTURE(without_a_journal_the_directory_is_not_needed_until_something_is_saved) {
    start((const char *[]){"--dir", "/proc", NULL});
    wire_check(&wire, "ZADD a 1 x", ":1");
    wire_check_prefix(&wire, "BGSAVE", "-ERR ");
    assert_non_null(strstr(wire.reply.at, "/proc"));
    wire_check_prefix(&wire, "SAVE", "-ERR ");
    assert_string_equal(info("rdb_last_bgsave_status"), "err");
    wire_check(&wire, "SHUTDOWN SAVE", "-ERR Errors trying to SHUTDOWN. Check logs.");
    wire_check(&wire, "ZADD a 2 y", ":1");
}

/* As docs/operate/durability.md has it. */
IN_FIXTURE(a_copy_of_a_running_servers_directory_is_a_backup) {
    start(with_journal);
    write_story();
    fill("big", 100000);
    save_in_background();
    for (int i = 0; i < 100; i++) {
        wire_check_prefix(&wire, "ZINCRBY votes 1 ann", "");
    }
    assert_int_equal(system(formatted("cp -a %s/appendonlydir %s/copy", directory, directory)), 0);
    assert_int_equal(system(formatted("%s --check %s/copy >%s/check", process_default_program(),
                                      directory, directory)),
                     0);
    wire_check(&wire, "FLUSHALL", "OK");
    end(SIGTERM);
    start((const char *[]){"--appenddirname", "copy", "--appendonly", "yes", NULL});
    check_story();
    wire_check(&wire, "ZCARD big", ":100000");
    wire_check(&wire, "ZSCORE votes ann", "100");
}

/* ---- full disks ---- */

/* A small disk of our own, which goes with this program. */
static bool mount_small_disk(void) {
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", directory, "tmpfs", 0, "size=4m") == 0;
}

static void write_filler(const char *path, size_t size) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < size; i += 4096) {
        char page[4096] = {0};
        fwrite(page, 1, sizeof page, file);
    }
    fclose(file);
}

/* Take all room, and write until a reply waits for the disk. Returns how many came; `waiting` is
 * left with the one that did not, and `wire` is a new client. */
static int write_until_full(struct wire *waiting) {
    int count = 0;
    write_filler(directory_join(directory, "filler"), 16 * 1024 * 1024);
    *waiting = wire;
    wire = wire_open(process_connect_unix(&server));
    for (;;) {
        wire_send_text(waiting, formatted("ZADD late %d player-%d\r\n", count, count));
        /* A slow reply is no reply that waits: all before it were written, this one was not. */
        while (wire_is_silent(waiting, 100)) {
            if (strcmp(info("aof_last_write_status"), "err") == 0) {
                return count;
            }
        }
        assert_string_equal(wire_reply(waiting), ":1");
        count++;
        assert_true(count < 200000);
    }
}

IN_FIXTURE(on_a_full_disk_writers_are_refused_until_there_is_room) {
    if (!mount_small_disk()) {
        print_message("skipped, a disk cannot be mounted here: %s\n", strerror(errno));
        skip();
    }
    start(with_journal);
    write_story();
    struct wire waiting;
    int acknowledged = write_until_full(&waiting);
    const char *refusal = "-MISCONF Errors writing to the AOF file: No space left on device";
    wire_check(&wire, "ZADD late 1 other", refusal);
    page_has("docs/operate/at-3-am.md", formatted("`%s`", refusal));
    wire_check_prefix(&wire, "DEL arena", "-MISCONF ");
    /* What comes behind the write that waits, waits too. */
    wire_send_text(&waiting, "ZSCORE arena kim\r\n");
    assert_true(wire_is_silent(&waiting, 200));
    assert_string_equal(info("aof_last_write_status"), "err");
    wire_check_prefix(&wire, "SAVE", "-ERR ");
    wire_check(&wire, "SHUTDOWN", "-ERR Errors trying to SHUTDOWN. Check logs.");
    wire_check(&wire, "ZSCORE arena kim", "250");
    assert_int_equal(unlink(directory_join(directory, "filler")), 0);
    wait_for_info("aof_last_write_status", "ok");
    assert_string_equal(wire_reply(&waiting), ":1");
    assert_string_equal(wire_reply(&waiting), "250");
    wire_close(&waiting);
    wire_check(&wire, "ZADD room 1 x", ":1");
    end(SIGKILL);
    start(with_journal);
    check_story();
    assert_int_equal(wire_ask_integer(&wire, "ZCARD late"), acknowledged + 1);
    wire_check(&wire, "EXISTS room", ":1");
    wire_close(&wire);
    process_stop(&server);
    umount2(directory, MNT_DETACH);
}

IN_FIXTURE(on_a_full_disk_the_server_can_be_forced_to_end) {
    if (!mount_small_disk()) {
        print_message("skipped, a disk cannot be mounted here: %s\n", strerror(errno));
        skip();
    }
    start(with_journal);
    write_story();
    struct wire waiting;
    int acknowledged = write_until_full(&waiting);
    process_signal(&server, SIGTERM);
    process_sleep_ms(200);
    wire_check(&wire, "ZSCORE arena kim", "250"); /* it goes on */
    wire_send_text(&wire, "SHUTDOWN FORCE\r\n");
    assert_true(process_wait(&server, PROCESS_STOP_LIMIT_MS));
    assert_int_equal(server.exit_status, 1);
    assert_null(wire_try_reply(&waiting));
    wire_close(&waiting);
    wire_close(&wire);
    assert_int_equal(unlink(directory_join(directory, "filler")), 0);
    start(with_journal);
    check_story();
    assert_int_equal(wire_ask_integer(&wire, "ZCARD late"), acknowledged);
    wire_close(&wire);
    process_stop(&server);
    umount2(directory, MNT_DETACH);
}
