/* CONFIG: patterns, several pairs at once, refusals in Redis's words, statistics, the file. */
#include <unistd.h>

#include "server/dispatch/syntax.h"
#include "server/system/log.h"
#include "tests/support/harness.h"
#include "tests/support/settings_file.h"

struct fixture {
    struct harness *harness;
    struct session *session;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->harness = harness_create("layout laps FIELD t 32 ASC\n"
                                      "layout money FIELD b 40 SCALE 2\n"
                                      "board \"race *\" laps\n");
    fixture->session = harness_connect(fixture->harness);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    harness_destroy(fixture->harness);
    log_set_level(LOG_NOTICE);
    free(fixture);
    return 0;
}

static void expect(void **state, const char *line, const char *reply) {
    const struct fixture *fixture = *state;
    harness_expect(fixture->harness, fixture->session, line, reply);
}

static struct settings *settings_of(void **state) {
    return &((struct fixture *)*state)->harness->server.settings;
}

/* How many values the reply to a CONFIG GET in RESP2 announces. */
static long count_values(void **state, const char *line) {
    const struct fixture *fixture = *state;
    const char *reply = harness_run(fixture->harness, fixture->session, line);
    assert_int_equal(reply[0], '*');
    return strtol(reply + 1, NULL, 10);
}

/* ---- GET ---- */

TEST_WITH(get_answers_names_and_values_flat_in_resp2, set_up, tear_down) {
    expect(state, "CONFIG GET port", "*2\r\n$4\r\nport\r\n$4\r\n6379\r\n");
    expect(state, "config get PORT", "*2\r\n$4\r\nport\r\n$4\r\n6379\r\n");
    expect(state, "CONFIG GET nothing", "*0\r\n");
    expect(state, "CONFIG GET \"\"", "*0\r\n");
}

TEST_WITH(get_answers_a_map_in_resp3, set_up, tear_down) {
    ((struct fixture *)*state)->session->protocol = 3;
    expect(state, "CONFIG GET port", "%1\r\n$4\r\nport\r\n$4\r\n6379\r\n");
    expect(state, "CONFIG GET nothing", "%0\r\n");
}

TEST_WITH(get_takes_several_patterns_and_answers_each_setting_once_in_order, set_up, tear_down) {
    expect(state, "CONFIG GET tcp-* maxclients TCP-backlog t[ci]m*out",
           "*8\r\n$11\r\ntcp-backlog\r\n$3\r\n511\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"
           "$13\r\ntcp-keepalive\r\n$3\r\n300\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n");
}

TEST_WITH(get_star_answers_every_setting, set_up, tear_down) {
    long count = 0;
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        count += (setting->flags & SETTING_IN_FILE) != 0 ? 0 : 2;
    }
    for (const struct setting_alias *alias = setting_aliases; alias->name != NULL; alias++) {
        count += 2;
    }
    assert_int_equal(count_values(state, "CONFIG GET *"), count);
    assert_int_equal(count_values(state, "CONFIG GET * * port"), count);
    expect(state, "CONFIG GET rename-command", "*0\r\n");
    expect(state, "CONFIG SET rename-command \"ZADD x\"",
           "-ERR Unknown option or number of arguments for CONFIG SET - 'rename-command'\r\n");
}

TEST_WITH(old_names_of_settings_are_answered_as_they_were_asked, set_up, tear_down) {
    expect(state, "CONFIG GET slave-priority", "*2\r\n$14\r\nslave-priority\r\n$3\r\n100\r\n");
    expect(state, "CONFIG SET slave-priority 7", "+OK\r\n");
    expect(state, "CONFIG GET replica-priority *LAVE-PRI*",
           "*4\r\n$16\r\nreplica-priority\r\n$1\r\n7\r\n$14\r\nslave-priority\r\n$1\r\n7\r\n");
    expect(state, "CONFIG GET slaveof", "*2\r\n$7\r\nslaveof\r\n$0\r\n\r\n");
    expect(state, "CONFIG SET slaveof \"a 1\"",
           "-ERR CONFIG SET failed (possibly related to argument 'slaveof') - can't set immutable "
           "config\r\n");
    expect(state, "CONFIG SET slave-priority 1 replica-priority 2",
           "-ERR CONFIG SET failed (possibly related to argument 'replica-priority') - duplicate "
           "parameter\r\n");
}

TEST_WITH(get_answers_what_redis_benchmark_asks_at_its_start, set_up, tear_down) {
    expect(state, "CONFIG GET save", "*2\r\n$4\r\nsave\r\n$23\r\n3600 1 300 100 60 10000\r\n");
    expect(state, "CONFIG GET appendonly", "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
    expect(state, "CONFIG GET databases", "*2\r\n$9\r\ndatabases\r\n$2\r\n16\r\n");
    expect(state, "CONFIG GET maxmemory-policy",
           "*2\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n");
}

TEST_WITH(get_answers_repeated_settings_as_one_text_of_lines, set_up, tear_down) {
    expect(state, "CONFIG GET layout",
           "*2\r\n$6\r\nlayout\r\n$44\r\nlaps FIELD t 32 ASC\nmoney FIELD b 40 SCALE 2\r\n");
    expect(state, "CONFIG GET board", "*2\r\n$5\r\nboard\r\n$13\r\n\"race *\" laps\r\n");
    expect(state, "CONFIG GET default-layout", "*2\r\n$14\r\ndefault-layout\r\n$7\r\ndefault\r\n");
}

/* ---- SET ---- */

TEST_WITH(set_changes_several_settings, set_up, tear_down) {
    expect(state, "CONFIG SET timeout 30 MaxMemory 1gb requirepass \"a b\"", "+OK\r\n");
    assert_int_equal(settings_of(state)->timeout_s, 30);
    expect(state, "CONFIG GET maxmemory requirepass",
           "*4\r\n$11\r\nrequirepass\r\n$10\r\n(redacted)\r\n$9\r\nmaxmemory\r\n$"
           "10\r\n1073741824\r\n");
    expect(state, "CONFIG SET requirepass \"\" save \"\" appendonly no", "+OK\r\n");
    assert_null(settings_of(state)->requirepass);
}

TEST_WITH(set_is_all_or_nothing, set_up, tear_down) {
    expect(state, "CONFIG SET timeout 30 maxclients 0",
           "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be "
           "between 1 and 4294967295 inclusive\r\n");
    expect(state, "CONFIG SET timeout 30 foo 0",
           "-ERR Unknown option or number of arguments for CONFIG SET - 'foo'\r\n");
    expect(state, "CONFIG SET timeout 30 timeout 40",
           "-ERR CONFIG SET failed (possibly related to argument 'timeout') - duplicate "
           "parameter\r\n");
    expect(state, "CONFIG SET timeout 30 port 1",
           "-ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable "
           "config\r\n");
    assert_int_equal(settings_of(state)->timeout_s, 0);
}

TEST_WITH(set_takes_what_durability_may_be_changed_to, set_up, tear_down) {
    expect(state,
           "CONFIG SET appendonly yes appendfsync always save \"60 1 30 2\" "
           "auto-aof-rewrite-percentage 50 auto-aof-rewrite-min-size 1mb "
           "stop-writes-on-bgsave-error no",
           "+OK\r\n");
    expect(state, "CONFIG GET save", "*2\r\n$4\r\nsave\r\n$9\r\n60 1 30 2\r\n");
    expect(state, "CONFIG GET appendfsync", "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n");
    expect(state, "CONFIG SET save \"\"", "+OK\r\n");
    expect(state, "CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    expect(state, "CONFIG SET save \"60\"",
           "-ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save "
           "parameters\r\n");
    expect(state, "CONFIG SET dir /tmp",
           "-ERR CONFIG SET failed (possibly related to argument 'dir') - can't set immutable "
           "config\r\n");
}

TEST_WITH(set_with_a_name_that_breaks_lines_keeps_the_framing, set_up, tear_down) {
    expect(state, "CONFIG SET \"a\\r\\nb\" 1",
           "-ERR Unknown option or number of arguments for CONFIG SET - 'a??b'\r\n");
}

TEST_WITH(set_counts_its_arguments_as_redis_does, set_up, tear_down) {
    expect(state, "CONFIG SET", "-ERR wrong number of arguments for 'config|set' command\r\n");
    expect(state, "CONFIG SET timeout",
           "-ERR wrong number of arguments for 'config|set' command\r\n");
    expect(state, "CONFIG SET timeout 1 maxclients", "-ERR syntax error\r\n");
    expect(state, "CONFIG GET", "-ERR wrong number of arguments for 'config|get' command\r\n");
    expect(state, "CONFIG", "-ERR wrong number of arguments for 'config' command\r\n");
    expect(state, "CONFIG RESETSTAT x",
           "-ERR wrong number of arguments for 'config|resetstat' command\r\n");
    expect(state, "CONFIG FOO", "-ERR unknown subcommand 'FOO'. Try CONFIG HELP.\r\n");
}

/* Standard output while a line is logged at this level. */
static bool is_logged(enum log_level level) {
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    log_write(level, "probe");
    dup2(saved, STDOUT_FILENO);
    close(saved);
    fseek(file, 0, SEEK_END);
    bool has_text = ftell(file) > 0;
    fclose(file);
    return has_text;
}

TEST_WITH(set_loglevel_holds_at_once, set_up, tear_down) {
    assert_false(is_logged(LOG_DEBUG));
    expect(state, "CONFIG SET loglevel debug", "+OK\r\n");
    assert_true(is_logged(LOG_DEBUG));
    expect(state, "CONFIG SET loglevel warning", "+OK\r\n");
    assert_false(is_logged(LOG_NOTICE));
}

TEST_WITH(set_default_layout_holds_for_boards_made_afterwards, set_up, tear_down) {
    expect(state, "ZADD before 12 ann", ":1\r\n");
    expect(state, "CONFIG SET default-layout money", "+OK\r\n");
    expect(state, "ZADD after 12.34 ann", ":1\r\n");
    expect(state, "ZSCORE after ann", "$5\r\n12.34\r\n");
    expect(state, "ZADD before -5 bob", ":1\r\n");
    expect(state, "ZADD \"race 1\" 100 ann 90 bob", ":2\r\n");
    expect(state, "ZREVRANGE \"race 1\" 0 0", "*1\r\n$3\r\nann\r\n");
}

/* As CONFIG GET answers them: a line each, of which the first that matches a key counts. */
TEST_WITH(set_of_layouts_and_boards_holds_for_boards_made_afterwards, set_up, tear_down) {
    expect(state, "ZADD \"race 1\" 100 ann 90 bob", ":2\r\n");
    expect(state,
           "CONFIG SET layout \"laps FIELD t 30 SCALE 1\\n\\n# cents\\ncoins FIELD c 40 SCALE 2\" "
           "board \"c* coins CAP 2\\n* laps\" default-layout coins",
           "+OK\r\n");
    expect(state, "CONFIG GET layout",
           "*2\r\n$6\r\nlayout\r\n$48\r\nlaps FIELD t 30 SCALE 1\ncoins FIELD c 40 SCALE 2\r\n");
    expect(state, "CONFIG GET board", "*2\r\n$5\r\nboard\r\n$21\r\nc* coins CAP 2\n* laps\r\n");
    expect(state, "ZADD c1 1.25 ann 1.5 bob 1.75 cid", ":2\r\n");
    expect(state, "ZADD other 0.5 ann", ":1\r\n");
    expect(state, "ZREVRANGE other 0 0 WITHSCORES", "*2\r\n$3\r\nann\r\n$3\r\n0.5\r\n");
    /* A board keeps what it was made with. */
    expect(state, "ZREVRANGE \"race 1\" 0 0", "*1\r\n$3\r\nann\r\n");
    /* Layouts alone: the boards' lines go on with those of the same names. */
    expect(state, "CONFIG SET layout \"coins FIELD c 50\\nlaps FIELD t 30\"", "+OK\r\n");
    expect(state, "ZADD c2 1 ann 2 bob 3 cid", ":2\r\n");
    expect(state, "LB.CREATE c3 CAP 1", "+OK\r\n");
    /* Taken away, in one command, since each needs the other. */
    expect(state, "CONFIG SET layout \"\" board \"\"",
           "-ERR CONFIG SET failed (possibly related to argument 'layout') - default-layout: there "
           "is no layout 'coins'\r\n");
    expect(state, "CONFIG GET board", "*2\r\n$5\r\nboard\r\n$21\r\nc* coins CAP 2\n* laps\r\n");
    expect(state, "CONFIG SET layout \"\" board \"\" default-layout default", "+OK\r\n");
    expect(state, "CONFIG GET layout", "*2\r\n$6\r\nlayout\r\n$0\r\n\r\n");
    expect(state, "ZADD c4 1 ann 2 bob 3 cid", ":3\r\n");
    expect(state, "ZSCORE c1 cid", "$4\r\n1.75\r\n");
}

TEST_WITH(without_memory_layouts_and_boards_stay, set_up, tear_down) {
    const struct fixture *fixture = *state;
    const char *reply = "-";
    for (uint64_t nth = 1; reply[0] == '-'; nth++) {
        const struct bytes pairs[] = {BYTES("layout"), BYTES("laps FIELD t 30\ncoins FIELD c 40"),
                                      BYTES("timeout"), BYTES("7")};
        char error[SETTING_ERROR_MAX];
        memory_fail_at(nth);
        bool is_set = settings_set(&fixture->harness->server.settings, pairs, 2, NULL, NULL, error);
        memory_fail_at(0);
        reply = is_set ? "+" : "-";
        expect(state, "CONFIG GET layout",
               is_set ? "*2\r\n$6\r\nlayout\r\n$32\r\nlaps FIELD t 30\ncoins FIELD c 40\r\n"
                      : "*2\r\n$6\r\nlayout\r\n$44\r\nlaps FIELD t 32 ASC\nmoney FIELD b 40 SCALE "
                        "2\r\n");
        expect(state, "CONFIG GET board", "*2\r\n$5\r\nboard\r\n$13\r\n\"race *\" laps\r\n");
    }
    expect(state, "ZADD \"race 1\" 100 ann 90 bob", ":2\r\n");
    expect(state, "ZREVRANGE \"race 1\" 0 0", "*1\r\n$3\r\nann\r\n");
}

TEST_WITH(a_password_given_to_set_stays_out_of_the_slow_log, set_up, tear_down) {
    const struct fixture *fixture = *state;
    expect(state, "CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    expect(state, "CONFIG SET requirepass open-sesame", "+OK\r\n");
    const char *reply = harness_run(fixture->harness, fixture->session, "SLOWLOG GET -1");
    assert_null(strstr(reply, "sesame"));
    assert_non_null(strstr(reply, "redacted"));
    expect(state, "CONFIG SET requirepass \"\"", "+OK\r\n");
}

/* ---- RESETSTAT ---- */

TEST_WITH(resetstat_sets_the_counters_back, set_up, tear_down) {
    struct server *server = &((struct fixture *)*state)->harness->server;
    expect(state, "ZADD b 1 ann", ":1\r\n");
    expect(state, "ZSCORE b ann", "$1\r\n1\r\n");
    expect(state, "ZSCORE b ann x", "-ERR wrong number of arguments for 'zscore' command\r\n");
    uint32_t zscore = command_index(command_find(BYTES("zscore")));
    assert_int_equal(server->stats.commands[zscore].calls.count, 1);
    assert_int_equal(server->stats.error_replies, 1);
    assert_int_equal(server->stats.error_kind_count, 1);
    expect(state, "CONFIG RESETSTAT", "+OK\r\n");
    assert_int_equal(server->stats.commands[zscore].calls.count, 0);
    assert_int_equal(server->stats.commands[zscore].rejected_calls, 0);
    assert_int_equal(server->stats.error_replies, 0);
    assert_int_equal(server->stats.error_kind_count, 0);
    assert_int_equal(server->stats.keyspace_hits, 0);
}

/* ---- REWRITE ---- */

TEST_WITH(rewrite_without_a_file_is_an_error, set_up, tear_down) {
    expect(state, "CONFIG REWRITE", "-ERR The server is running without a config file\r\n");
}

TEST_WITH(rewrite_writes_the_file, set_up, tear_down) {
    char path[] = "/tmp/leaderboard-config-XXXXXX";
    char error[SETTING_ERROR_MAX];
    char text[256] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct settings *settings = settings_of(state);
    settings_deinit(settings);
    assert_true(settings_init(settings));
    assert_true(settings_load_file(settings, path, error));
    log_set_level(LOG_WARNING);
    expect(state, "CONFIG SET timeout 77 loglevel warning", "+OK\r\n");
    expect(state, "CONFIG REWRITE", "+OK\r\n");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_string_equal(text, "# Written by CONFIG REWRITE:\ntimeout 77\nloglevel warning\n");
    assert_int_equal(unlink(path), 0);
}

/* Lines in the file's order, more than there were and fewer. */
TEST_WITH(rewrite_keeps_layouts_and_boards, set_up, tear_down) {
    char path[] = "/tmp/leaderboard-config-XXXXXX";
    char error[SETTING_ERROR_MAX];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const char before[] = "# boards\nboard a* default\nlayout x FIELD s 3\n# end\n";
    assert_int_equal(write(fd, before, sizeof before - 1), sizeof before - 1);
    close(fd);
    struct settings *settings = settings_of(state);
    settings_deinit(settings);
    assert_true(settings_init(settings));
    assert_true(settings_load_file(settings, path, error));
    assert_true(settings_finish(settings, error));
    static const char *const samples[][2] = {
        {"CONFIG SET board \"b* default CAP 3\\na* x\" layout \"x FIELD s 4\\ny FIELD s 5\"",
         "# boards\nboard b* default CAP 3\nlayout x FIELD s 4\n# end\n"
         "# Written by CONFIG REWRITE:\nlayout y FIELD s 5\nboard a* x\n"},
        {"CONFIG SET board \"a* y\" layout \"y FIELD s 6\"",
         "# boards\nboard a* y\nlayout y FIELD s 6\n# end\n# Written by CONFIG REWRITE:\n"},
        {"CONFIG SET board \"\" layout \"\"", "# boards\n# end\n# Written by CONFIG REWRITE:\n"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        char text[512] = "";
        expect(state, samples[i][0], "+OK\r\n");
        expect(state, "CONFIG REWRITE", "+OK\r\n");
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_true(fread(text, 1, sizeof text - 1, file) > 0);
        fclose(file);
        assert_string_equal(text, samples[i][1]);
    }
    assert_int_equal(unlink(path), 0);
}

/* ---- HELP and the table ---- */

TEST_WITH(help_lists_the_subcommands, set_up, tear_down) {
    const struct fixture *fixture = *state;
    harness_expect_prefix(
        fixture->harness, fixture->session, "CONFIG HELP",
        "*11\r\n+CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"
        "+GET parameter [parameter ...]\r\n"
        "+    The settings whose names match the patterns, and their values.\r\n"
        "+HELP\r\n+    What the subcommands do.\r\n"
        "+RESETSTAT\r\n"
        "+    Reset the counters that INFO and LATENCY HISTOGRAM report.\r\n");
}

TEST_WITH(the_syntax_is_printed_from_the_arguments, set_up, tear_down) {
    assert_null(command_find(BYTES("CONFIG"))->run);
    char syntax[128];
    syntax_print(command_by_index(command_find_full_name(BYTES("config|set"))), syntax,
                 sizeof syntax);
    assert_string_equal(syntax, "parameter value [parameter value ...]");
    syntax_print(command_by_index(command_find_full_name(BYTES("config|get"))), syntax,
                 sizeof syntax);
    assert_string_equal(syntax, "parameter [parameter ...]");
}
