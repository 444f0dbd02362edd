/* CONFIG: patterns, several pairs at once, refusals in Redis's words, statistics, the file. */
#include <unistd.h>

#include "server/dispatch/syntax.h"
#include "server/system/log.h"
#include "tests/support/directory.h"
#include "tests/support/harness.h"
#include "tests/support/settings_file.h"

#define CONFIG_TEST(name)                                                                          \
    HARNESS_TEST(name, "layout laps FIELD t 32 ASC\nlayout money FIELD b 40 SCALE 2\n"             \
                       "board \"race *\" laps\n")
#define EXPECT(line, reply) harness_expect(h, s, line, reply)

/* How many values the reply to a CONFIG GET in RESP2 announces. */
static long count_values(struct harness *h, struct session *s, const char *line) {
    const char *reply = harness_run(h, s, line);
    assert_int_equal(reply[0], '*');
    return strtol(reply + 1, NULL, 10);
}

/* ---- GET ---- */

CONFIG_TEST(get_answers_names_and_values_flat_in_resp2) {
    EXPECT("CONFIG GET port", "*2\r\n$4\r\nport\r\n$4\r\n6379\r\n");
    EXPECT("config get PORT", "*2\r\n$4\r\nport\r\n$4\r\n6379\r\n");
    EXPECT("CONFIG GET nothing", "*0\r\n");
    EXPECT("CONFIG GET \"\"", "*0\r\n");
}

CONFIG_TEST(get_answers_a_map_in_resp3) {
    s->protocol = 3;
    EXPECT("CONFIG GET port", "%1\r\n$4\r\nport\r\n$4\r\n6379\r\n");
    EXPECT("CONFIG GET nothing", "%0\r\n");
}

CONFIG_TEST(get_takes_several_patterns_and_answers_each_setting_once_in_order) {
    EXPECT("CONFIG GET tcp-* maxclients TCP-backlog t[ci]m*out",
           "*8\r\n$11\r\ntcp-backlog\r\n$3\r\n511\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"
           "$13\r\ntcp-keepalive\r\n$3\r\n300\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n");
}

CONFIG_TEST(get_star_answers_every_setting) {
    long count = 0;
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        count += (setting->flags & SETTING_IN_FILE) != 0 ? 0 : 2;
    }
    for (const struct setting_alias *alias = settings_aliases; alias->name != NULL; alias++) {
        count += 2;
    }
    assert_int_equal(count_values(h, s, "CONFIG GET *"), count);
    assert_int_equal(count_values(h, s, "CONFIG GET * * port"), count);
    EXPECT("CONFIG GET rename-command", "*0\r\n");
    EXPECT("CONFIG SET rename-command \"ZADD x\"",
           "-ERR Unknown option or number of arguments for CONFIG SET - 'rename-command'\r\n");
}

CONFIG_TEST(old_names_of_settings_are_answered_as_they_were_asked) {
    EXPECT("CONFIG GET slave-priority", "*2\r\n$14\r\nslave-priority\r\n$3\r\n100\r\n");
    EXPECT("CONFIG SET slave-priority 7", "+OK\r\n");
    EXPECT("CONFIG GET replica-priority *LAVE-PRI*",
           "*4\r\n$16\r\nreplica-priority\r\n$1\r\n7\r\n$14\r\nslave-priority\r\n$1\r\n7\r\n");
    EXPECT("CONFIG GET slaveof", "*2\r\n$7\r\nslaveof\r\n$0\r\n\r\n");
    EXPECT("CONFIG SET slaveof \"a 1\"",
           "-ERR CONFIG SET failed (possibly related to argument 'slaveof') - can't set immutable "
           "config\r\n");
    EXPECT("CONFIG SET slave-priority 1 replica-priority 2",
           "-ERR CONFIG SET failed (possibly related to argument 'replica-priority') - duplicate "
           "parameter\r\n");
}

CONFIG_TEST(get_answers_repeated_settings_as_one_text_of_lines) {
    EXPECT("CONFIG GET layout",
           "*2\r\n$6\r\nlayout\r\n$44\r\nlaps FIELD t 32 ASC\nmoney FIELD b 40 SCALE 2\r\n");
    EXPECT("CONFIG GET board", "*2\r\n$5\r\nboard\r\n$13\r\n\"race *\" laps\r\n");
    EXPECT("CONFIG GET default-layout",
           "*2\r\n$14\r\ndefault-layout\r\n$22\r\ndefault decimals int64\r\n");
}

/* ---- SET ---- */

CONFIG_TEST(set_changes_several_settings) {
    EXPECT("CONFIG SET timeout 30 MaxMemory 1gb requirepass \"a b\"", "+OK\r\n");
    assert_int_equal(h->server.settings.timeout_s, 30);
    EXPECT("CONFIG GET maxmemory requirepass",
           "*4\r\n$11\r\nrequirepass\r\n$10\r\n(redacted)\r\n$9\r\nmaxmemory\r\n$"
           "10\r\n1073741824\r\n");
    EXPECT("CONFIG SET requirepass \"\" save \"\" appendonly no", "+OK\r\n");
    assert_null(h->server.settings.requirepass);
}

CONFIG_TEST(set_takes_what_durability_may_be_changed_to) {
    EXPECT("CONFIG SET appendonly yes appendfsync always save \"60 1 30 2\" "
           "auto-aof-rewrite-percentage 50 auto-aof-rewrite-min-size 1mb "
           "stop-writes-on-bgsave-error no",
           "+OK\r\n");
    EXPECT("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$9\r\n60 1 30 2\r\n");
    EXPECT("CONFIG GET appendfsync", "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n");
    EXPECT("CONFIG SET save \"\"", "+OK\r\n");
    EXPECT("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    EXPECT("CONFIG SET save \"60\"",
           "-ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save "
           "parameters\r\n");
    EXPECT("CONFIG SET dir /tmp",
           "-ERR CONFIG SET failed (possibly related to argument 'dir') - can't set immutable "
           "config\r\n");
}

CONFIG_TEST(set_with_a_name_that_breaks_lines_keeps_the_framing) {
    EXPECT("CONFIG SET \"a\\r\\nb\" 1",
           "-ERR Unknown option or number of arguments for CONFIG SET - 'a??b'\r\n");
}

CONFIG_TEST(set_counts_its_arguments_as_redis_does) {
    EXPECT("CONFIG SET timeout 1 maxclients", "-ERR syntax error\r\n");
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

CONFIG_TEST(set_loglevel_holds_at_once) {
    assert_false(is_logged(LOG_DEBUG));
    EXPECT("CONFIG SET loglevel debug", "+OK\r\n");
    assert_true(is_logged(LOG_DEBUG));
    EXPECT("CONFIG SET loglevel warning", "+OK\r\n");
    assert_false(is_logged(LOG_NOTICE));
    log_set_level(LOG_NOTICE);
}

CONFIG_TEST(set_default_layout_holds_for_boards_made_afterwards) {
    EXPECT("ZADD before 12 ann", ":1\r\n");
    EXPECT("CONFIG SET default-layout money", "+OK\r\n");
    EXPECT("ZADD after 12.34 ann", ":1\r\n");
    EXPECT("ZSCORE after ann", "$5\r\n12.34\r\n");
    EXPECT("ZADD before -5 bob", ":1\r\n");
    EXPECT("ZADD \"race 1\" 100 ann 90 bob", ":2\r\n");
    EXPECT("ZREVRANGE \"race 1\" 0 0", "*1\r\n$3\r\nann\r\n");
}

/* As CONFIG GET answers them: a line each, of which the first that matches a key counts. */
CONFIG_TEST(set_of_layouts_and_boards_holds_for_boards_made_afterwards) {
    EXPECT("ZADD \"race 1\" 100 ann 90 bob", ":2\r\n");
    EXPECT("CONFIG SET layout \"laps FIELD t 30 SCALE 1\\n\\n# cents\\ncoins FIELD c 40 SCALE 2\" "
           "board \"c* coins CAP 2\\n* laps\" default-layout coins",
           "+OK\r\n");
    EXPECT("CONFIG GET layout",
           "*2\r\n$6\r\nlayout\r\n$48\r\nlaps FIELD t 30 SCALE 1\ncoins FIELD c 40 SCALE 2\r\n");
    EXPECT("CONFIG GET board", "*2\r\n$5\r\nboard\r\n$21\r\nc* coins CAP 2\n* laps\r\n");
    EXPECT("ZADD c1 1.25 ann 1.5 bob 1.75 cid", ":2\r\n");
    EXPECT("ZADD other 0.5 ann", ":1\r\n");
    EXPECT("ZREVRANGE other 0 0 WITHSCORES", "*2\r\n$3\r\nann\r\n$3\r\n0.5\r\n");
    /* A board keeps what it was made with. */
    EXPECT("ZREVRANGE \"race 1\" 0 0", "*1\r\n$3\r\nann\r\n");
    /* Layouts alone: the boards' lines go on with those of the same names. */
    EXPECT("CONFIG SET layout \"coins FIELD c 50\\nlaps FIELD t 30\"", "+OK\r\n");
    EXPECT("ZADD c2 1 ann 2 bob 3 cid", ":2\r\n");
    EXPECT("LB.CREATE c3 CAP 1", "+OK\r\n");
    /* Taken away, in one command, since each needs the other. */
    EXPECT("CONFIG SET layout \"\" board \"\"",
           "-ERR CONFIG SET failed (possibly related to argument 'layout') - default-layout: there "
           "is no layout 'coins'\r\n");
    EXPECT("CONFIG GET board", "*2\r\n$5\r\nboard\r\n$21\r\nc* coins CAP 2\n* laps\r\n");
    EXPECT("CONFIG SET layout \"\" board \"\" default-layout default", "+OK\r\n");
    EXPECT("CONFIG GET layout", "*2\r\n$6\r\nlayout\r\n$0\r\n\r\n");
    EXPECT("ZADD c4 1 ann 2 bob 3 cid", ":3\r\n");
    EXPECT("ZSCORE c1 cid", "$4\r\n1.75\r\n");
}

CONFIG_TEST(without_memory_layouts_and_boards_stay) {
    const char *reply = "-";
    for (uint64_t nth = 1; reply[0] == '-'; nth++) {
        const struct bytes pairs[] = {BYTES("layout"), BYTES("laps FIELD t 30\ncoins FIELD c 40"),
                                      BYTES("timeout"), BYTES("7")};
        char error[SETTING_ERROR_MAX];
        memory_fail_at(nth);
        bool is_set = settings_set(&h->server.settings, pairs, 2, NULL, NULL, error);
        memory_fail_at(0);
        reply = is_set ? "+" : "-";
        EXPECT("CONFIG GET layout",
               is_set ? "*2\r\n$6\r\nlayout\r\n$32\r\nlaps FIELD t 30\ncoins FIELD c 40\r\n"
                      : "*2\r\n$6\r\nlayout\r\n$44\r\nlaps FIELD t 32 ASC\nmoney FIELD b 40 SCALE "
                        "2\r\n");
        EXPECT("CONFIG GET board", "*2\r\n$5\r\nboard\r\n$13\r\n\"race *\" laps\r\n");
    }
    EXPECT("ZADD \"race 1\" 100 ann 90 bob", ":2\r\n");
    EXPECT("ZREVRANGE \"race 1\" 0 0", "*1\r\n$3\r\nann\r\n");
}

CONFIG_TEST(a_password_given_to_set_stays_out_of_the_slow_log) {
    EXPECT("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    EXPECT("CONFIG SET requirepass open-sesame", "+OK\r\n");
    const char *reply = harness_run(h, s, "SLOWLOG GET -1");
    assert_null(strstr(reply, "sesame"));
    assert_non_null(strstr(reply, "redacted"));
    EXPECT("CONFIG SET requirepass \"\"", "+OK\r\n");
}

/* ---- RESETSTAT ---- */

CONFIG_TEST(resetstat_sets_the_counters_back) {
    struct server *server = &h->server;
    EXPECT("ZADD b 1 ann", ":1\r\n");
    EXPECT("ZSCORE b ann", "$1\r\n1\r\n");
    EXPECT("ZSCORE b ann x", "-ERR wrong number of arguments for 'zscore' command\r\n");
    uint32_t zscore = command_index(command_find(BYTES("zscore")));
    assert_int_equal(server->stats.commands[zscore].calls.count, 1);
    assert_int_equal(server->stats.error_replies, 1);
    assert_int_equal(server->stats.error_kind_count, 1);
    EXPECT("CONFIG RESETSTAT", "+OK\r\n");
    assert_int_equal(server->stats.commands[zscore].calls.count, 0);
    assert_int_equal(server->stats.commands[zscore].rejected_calls, 0);
    assert_int_equal(server->stats.error_replies, 0);
    assert_int_equal(server->stats.error_kind_count, 0);
    assert_int_equal(server->stats.keyspace_hits, 0);
}

/* ---- REWRITE ---- */

CONFIG_TEST(rewrite_without_a_file_is_an_error) {
    EXPECT("CONFIG REWRITE", "-ERR The server is running without a config file\r\n");
}

/* Lines in the file's order, more than there were and fewer. */
CONFIG_TEST(rewrite_writes_the_file) {
    static const char *const rows[][2] = {
        {"CONFIG SET timeout 77 loglevel warning",
         "# boards\nboard a* default\nlayout x FIELD s 3\n# end\n"
         "# Written by CONFIG REWRITE:\ntimeout 77\nloglevel warning\n"},
        {"CONFIG SET timeout 0 loglevel notice board \"b* default CAP 3\\na* x\" layout \"x FIELD "
         "s "
         "4\\ny FIELD s 5\"",
         "# boards\nboard b* default CAP 3\nlayout x FIELD s 4\n# end\n"
         "# Written by CONFIG REWRITE:\ntimeout 0\nloglevel notice\nlayout y FIELD s 5\nboard a* "
         "x\n"},
        {"CONFIG SET board \"a* y\" layout \"y FIELD s 6\"",
         "# boards\nboard a* y\nlayout y FIELD s 6\n# end\n"
         "# Written by CONFIG REWRITE:\ntimeout 0\nloglevel notice\n"},
        {"CONFIG SET board \"\" layout \"\"",
         "# boards\n# end\n# Written by CONFIG REWRITE:\ntimeout 0\nloglevel notice\n"},
    };
    static const char before[] = "# boards\nboard a* default\nlayout x FIELD s 3\n# end\n";
    char directory[DIRECTORY_PATH_MAX], error[SETTING_ERROR_MAX];
    directory_make(directory);
    const char *path = directory_join(directory, "leaderboard.conf");
    file_write(path, before, sizeof before - 1);
    settings_deinit(&h->server.settings);
    assert_true(settings_init(&h->server.settings));
    assert_true(settings_load_file(&h->server.settings, path, error));
    assert_true(settings_finish(&h->server.settings, error));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        size_t size;
        EXPECT(rows[i][0], "+OK\r\n");
        EXPECT("CONFIG REWRITE", "+OK\r\n");
        OWNED char *text = file_read(path, &size);
        assert_int_equal(size, strlen(rows[i][1]));
        assert_memory_equal(text, rows[i][1], size);
    }
    log_set_level(LOG_NOTICE);
    directory_remove(directory);
}

/* ---- HELP and the table ---- */

CONFIG_TEST(help_lists_the_subcommands) {
    harness_expect_prefix(
        h, s, "CONFIG HELP",
        "*11\r\n+CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"
        "+GET parameter [parameter ...]\r\n"
        "+    The settings whose names match the patterns, and their values.\r\n"
        "+HELP\r\n+    What the subcommands do.\r\n"
        "+RESETSTAT\r\n"
        "+    Reset the counters that INFO and LATENCY HISTOGRAM report.\r\n");
}

CONFIG_TEST(the_syntax_is_printed_from_the_arguments) {
    assert_null(command_find(BYTES("CONFIG"))->run);
    char syntax[128];
    syntax_print(command_by_index(command_find_full_name(BYTES("config|set"))), syntax,
                 sizeof syntax);
    assert_string_equal(syntax, "parameter value [parameter value ...]");
    syntax_print(command_by_index(command_find_full_name(BYTES("config|get"))), syntax,
                 sizeof syntax);
    assert_string_equal(syntax, "parameter [parameter ...]");
}
