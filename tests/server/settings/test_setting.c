/* Settings: defaults, values, refusals, files, the command line, layouts, all or nothing. */
#include "tests/server/settings/fixture.h"

#include <sys/stat.h>

#include "server/system/log.h"

/* ---- Helpers ---- */

static bool load(struct fixture *fixture, const char *text) {
    return setting_file_apply_text(&fixture->settings, bytes_from_text(text), "leaderboard.conf",
                                   fixture->error);
}

static void assert_loads(struct fixture *fixture, const char *text) {
    if (!load(fixture, text)) {
        fail_msg("%s: %s", text, fixture->error);
    }
}

static void assert_refused(struct fixture *fixture, const char *text, const char *error) {
    if (load(fixture, text)) {
        fail_msg("%s: is taken", text);
    }
    assert_string_equal(fixture->error, error);
}

static const struct setting *setting_named(const char *name) {
    const struct setting *setting = settings_find(bytes_from_text(name));
    assert_non_null(setting);
    return setting;
}

/* The reply of CONFIG GET. */
static const char *value_of(const struct settings *settings, const char *name) {
    static char value[SETTING_VALUE_MAX + 1];
    value[setting_value_show(settings, setting_named(name), value)] = '\0';
    return value;
}

/* The line in a file; NULL: there is no such line. */
static const char *line_of(const struct settings *settings, const char *name, uint32_t index) {
    static char line[SETTING_VALUE_MAX + 1];
    size_t size;
    if (!setting_value_print_line(settings, setting_named(name), index, line, &size)) {
        return NULL;
    }
    line[size] = '\0';
    return line;
}

/* Every line that the settings would write, in one text that the caller frees. */
static char *print_all(const struct settings *settings) {
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        const char *line;
        for (uint32_t i = 0; (line = line_of(settings, setting->name, i)) != NULL; i++) {
            fprintf(file, "%s %s\n", setting->name, line);
        }
    }
    fclose(file);
    return text;
}

enum { ARGUMENTS_MAX = 16 };

/* arguments: those after the program's name, NULL-terminated. */
static bool load_arguments(struct fixture *fixture, const char *const *arguments) {
    char *argv[ARGUMENTS_MAX + 2] = {strdup("leaderboard-server")};
    int argc = 1;
    for (; arguments[argc - 1] != NULL; argc++) {
        assert_true(argc <= ARGUMENTS_MAX);
        argv[argc] = strdup(arguments[argc - 1]);
    }
    bool is_fine =
        setting_file_apply_arguments(&fixture->settings, argc, argv, NULL, fixture->error);
    for (int i = 0; i < argc; i++) {
        free(argv[i]);
    }
    return is_fine;
}

#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void assert_arguments_refused(struct fixture *fixture, const char *const *arguments,
                                     const char *error) {
    assert_false(load_arguments(fixture, arguments));
    assert_string_equal(fixture->error, error);
}

/* "3600/1 300/100 " */
static void assert_save_points(const struct settings *settings, const char *expected) {
    char text[4096] = "";
    size_t size = 0;
    for (uint32_t i = 0; i < settings->save_point_count; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%lld/%lld ",
                                 (long long)settings->save_points[i].seconds,
                                 (long long)settings->save_points[i].changes);
    }
    assert_string_equal(text, expected);
}

/* ---- Defaults ---- */

/* Those that are not shown as they are written; the others: docs/config.md. */
TEST_WITH(the_defaults_are_those_of_the_documentation, set_up, tear_down) {
    static const char *const defaults[][2] = {
        {"bind", "127.0.0.1 -::1"},
        {"proto-max-bulk-len", "67108864"},
        {"client-query-buffer-limit", "268435456"},
        {"client-output-buffer-limit",
         "normal 268435456 67108864 60 slave 268435456 67108864 60 pubsub 33554432 8388608 60"},
        {"auto-aof-rewrite-min-size", "67108864"},
        {"save", "3600 1 300 100 60 10000"},
        {"default-layout", "default decimals int64"},
    };
    const struct settings *settings = &((struct fixture *)*state)->settings;
    for (size_t i = 0; i < COUNT_OF(defaults); i++) {
        if (strcmp(value_of(settings, defaults[i][0]), defaults[i][1]) != 0) {
            fail_msg("%s: expected %s, is %s", defaults[i][0], defaults[i][1],
                     value_of(settings, defaults[i][0]));
        }
    }
    assert_int_equal(settings->bind.count, 2);
    assert_string_equal(settings->dir, "./");
    assert_int_equal(settings->layout_count, 1);
    assert_int_equal(settings->rule_count, 0);
    assert_null(settings->file_path);
}

TEST_WITH(every_entry_of_the_table_is_complete, set_up, tear_down) {
    const struct settings *settings = &((struct fixture *)*state)->settings;
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        bool repeats = (setting->flags & SETTING_REPEATS) != 0;
        assert_non_null(setting->section);
        char syntax[SETTING_SYNTAX_MAX];
        assert_true(strlen(setting_value_print_syntax(setting, syntax)) > 0);
        assert_true(strlen(setting->summary) > 20);
        assert_true(setting->default_value != NULL || setting->example != NULL);
        assert_int_equal(setting->default_value == NULL, repeats);
        if (!repeats) {
            assert_string_equal(line_of(settings, setting->name, 0), setting->default_value);
        }
        assert_null(line_of(settings, setting->name, 1));
        assert_ptr_equal(settings_find(bytes_from_text(setting->name)), setting);
    }
    assert_null(settings_find(BYTES("include")));
    assert_null(settings_find(BYTES("")));
    assert_ptr_equal(settings_find(BYTES("PORT")), settings_find(BYTES("port")));
}

/* ---- Values ---- */

/* A line, what CONFIG GET says of it, and what a file says if that is another text. */
static const char *const good_values[][3] = {
    {"bind *", "*"},
    {"bind 10.0.0.1 ::1 -fe80::1%eth0 -::*", "10.0.0.1 ::1 -fe80::1%eth0 -::*"},
    {"proxy-protocol 127.0.0.1", "127.0.0.1"},
    {"proxy-protocol 127.0.0.1 -::1", "127.0.0.1 -::1"},
    {"proxy-protocol \"\"", "", "\"\""},
    {"proxy-protocol-from 10.0.0.0/8 fd00::/8 192.0.2.7", "10.0.0.0/8 fd00::/8 192.0.2.7"},
    {"proxy-protocol-from \"\"", "", "\"\""},
    {"bind localhost -db-1.example", "localhost -db-1.example"},
    {"bind \"127.0.0.1 ::1\"", "127.0.0.1 ::1"},
    {"PORT 7000", "7000"},
    {"unixsocket /tmp/a.sock", "/tmp/a.sock"},
    {"unixsocket ''", "", "\"\""},
    {"unixsocketperm 700", "700"},
    {"unixsocketperm 0777", "777"},
    {"requirepass 'a b\"c'", "a b\"c", "\"a b\\\"c\""},
    {"requirepass \"\\x01\\n\\r\\t\\a\\b\\\\\\q\"", "\x01\n\r\t\a\b\\q",
     "\"\\x01\\n\\r\\t\\a\\b\\\\q\""},
    {"requirepass \xc3\xa9", "\xc3\xa9", "\"\\xc3\\xa9\""},
    {"requirepass a#b", "a#b", "\"a#b\""},
    /* Outside of quotes a backslash is a backslash. */
    {"requirepass a\\x00", "a\\x00", "\"a\\\\x00\""},
    {"maxmemory 1", "1"},
    {"maxmemory 100b", "100"},
    {"maxmemory 1k", "1000"},
    {"maxmemory 1kb", "1024", "1kb"},
    {"maxmemory 3M", "3000000"},
    {"maxmemory 3Mb", "3145728", "3mb"},
    {"maxmemory 2g", "2000000000", "1953125kb"},
    {"maxmemory 1GB", "1073741824", "1gb"},
    {"maxmemory 1536mb", "1610612736", "1536mb"},
    {"maxmemory-clients 0", "0"},
    {"maxmemory-clients 1g", "1000000000"},
    {"maxmemory-clients 64MB", "67108864", "64mb"},
    {"maxmemory-clients 5%", "5%"},
    {"maxmemory-clients 100%", "100%"},
    {"maxmemory-clients 0%", "0"},
    {"proto-max-bulk-len 1mb", "1048576", "1mb"},
    {"client-query-buffer-limit 1gb", "1073741824", "1gb"},
    {"client-output-buffer-limit normal 0 0 0",
     "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
     "normal 0 0 0 replica 256mb 64mb 60 pubsub 32mb 8mb 60"},
    {"client-output-buffer-limit \"normal 1mb 512kb 5\"",
     "normal 1048576 524288 5 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
     "normal 1mb 512kb 5 replica 256mb 64mb 60 pubsub 32mb 8mb 60"},
    {"client-output-buffer-limit PubSub 1mb 2 5\nclient-output-buffer-limit normal 1 2 3 pubsub 0 "
     "3 4",
     "normal 1 2 3 slave 268435456 67108864 60 pubsub 0 3 4",
     "normal 1 2 3 replica 256mb 64mb 60 pubsub 0 3 4"},
    {"client-output-buffer-limit slave 4 5 6", "normal 1 2 3 slave 4 5 6 pubsub 0 3 4",
     "normal 1 2 3 replica 4 5 6 pubsub 0 3 4"},
    {"replicaof 10.0.0.1 6379", "10.0.0.1 6379"},
    {"slaveof boards-1.example 65535", "boards-1.example 65535"},
    {"replicaof \"::1 7000\"", "::1 7000"},
    {"replicaof no one", "", "\"\""},
    {"replicaof \"\"", "", "\"\""},
    {"masteruser sync", "sync"},
    {"slave-serve-stale-data no", "no"},
    {"slave-priority 0", "0"},
    {"slave-announce-ip 203.0.113.7", "203.0.113.7"},
    {"repl-ping-slave-period 1", "1"},
    {"repl-backlog-size 64mb", "67108864", "64mb"},
    {"min-slaves-to-write 2", "2"},
    {"min-slaves-max-lag 3", "3"},
    {"pidfile /run/l.pid", "/run/l.pid"},
    {"logfile \"/var/my log\"", "/var/my log", "\"/var/my log\""},
    {"rename-command CONFIG \"a b\"", "CONFIG \"a b\""},
    {"save \"\"", "", "\"\""},
    {"save 900 1 60 0", "900 1 60 0"},
    {"save \"2147483647 9223372036854775807\"", "2147483647 9223372036854775807"},
    {"dir /no/such/directory", "/no/such/directory"},
    {"dir '/no such'", "/no such", "\"/no such\""},
    {"dir /tmp/../", "/", "/tmp/../"},
    {"appenddirname .boards", ".boards"},
    {"auto-aof-rewrite-min-size 1gb", "1073741824", "1gb"},
};

FIXTURE_TEST(good_values_are_taken_and_printed_as_redis_prints_them) {
    for (size_t i = 0; i < COUNT_OF(good_values); i++) {
        const char *line = good_values[i][0];
        const char *value = good_values[i][1];
        const char *in_file = good_values[i][2] != NULL ? good_values[i][2] : value;
        const char *name = formatted("%.*s", (int)strcspn(line, " "), line);
        assert_loads(fixture, line);
        assert_string_equal(formatted("%s: %s", line, value_of(&fixture->settings, name)),
                            formatted("%s: %s", line, value));
        assert_string_equal(formatted("%s: %s", line, line_of(&fixture->settings, name, 0)),
                            formatted("%s: %s", line, in_file));
    }
}

#define AT "leaderboard.conf:1: "

static void assert_taken(struct fixture *fixture, const char *name, const char *value,
                         const char *printed) {
    assert_loads(fixture, formatted("%s %s", name, value));
    assert_string_equal(value_of(&fixture->settings, name), printed);
    assert_string_equal(line_of(&fixture->settings, name, 0), printed);
}

/* What the table calls a number between two, yes or no, or one of some words. */
FIXTURE_TEST(every_number_and_every_word_is_taken_and_no_other) {
    unsigned numbers = 0, choices = 0;
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        char syntax[SETTING_SYNTAX_MAX], error[200];
        long long low, high;
        int end = 0;
        (void)setting_value_print_syntax(setting, syntax);
        if (sscanf(syntax, "%lld..%lld%n", &low, &high, &end) == 2 && syntax[end] != ',') {
            snprintf(error, sizeof error, AT "%s: argument must be between %lld and %lld inclusive",
                     setting->name, low, high);
            assert_taken(fixture, setting->name, formatted("%lld", low), formatted("%lld", low));
            assert_taken(fixture, setting->name, formatted("%lld", high), formatted("%lld", high));
            assert_refused(fixture, formatted("%s %lld", setting->name, low - 1), error);
            if (high < INT64_MAX) {
                assert_refused(fixture, formatted("%s %lld", setting->name, high + 1), error);
            }
            assert_refused(
                fixture, formatted("%s 1.5", setting->name),
                formatted(AT "%s: argument couldn't be parsed into an integer", setting->name));
            numbers++;
        } else if (strcmp(syntax, "yes|no") == 0) {
            assert_taken(fixture, setting->name, "YES", "yes");
            assert_taken(fixture, setting->name, "no", "no");
            assert_refused(fixture, formatted("%s maybe", setting->name),
                           formatted(AT "%s: argument must be 'yes' or 'no'", setting->name));
            choices++;
        } else if (strspn(syntax, "abcdefghijklmnopqrstuvwxyz0123456789-|") == strlen(syntax) &&
                   strchr(syntax, '|') != NULL) {
            for (char *word = strtok(syntax, "|"); word != NULL; word = strtok(NULL, "|")) {
                assert_taken(fixture, setting->name, word, word);
            }
            assert_false(load(fixture, formatted("%s nothing-of-these", setting->name)));
            assert_non_null(strstr(fixture->error, "must be one of the following: "));
            choices++;
        }
    }
    assert_true(numbers > 20 && choices > 10);
}

#define NO_ADDRESS                                                                                 \
    " is not an address: IPv4, IPv6, a host's name, * and ::* are allowed, with '-' in front if "  \
    "it may be missing"

/* A line, and what its setting's error says. */
static const char *const bad_values[][2] = {
    {"port x", "argument couldn't be parsed into an integer"},
    {"port ''", "argument couldn't be parsed into an integer"},
    {"port 99999999999999999999", "argument couldn't be parsed into an integer"},
    {"port", "wrong number of arguments, the form is: port 0..65535"},
    {"port 1 2", "wrong number of arguments, the form is: port 0..65535"},
    {"unixsocketperm 8", "argument couldn't be parsed as an octal number"},
    {"unixsocketperm ''", "argument couldn't be parsed as an octal number"},
    {"unixsocketperm -7", "argument couldn't be parsed as an octal number"},
    {"unixsocketperm 1000", "argument must be between 0 and 777 inclusive"},
    {"unixsocketperm 777777777777777777777777777777",
     "argument must be between 0 and 777 inclusive"},
    {"maxmemory 1zb", "argument must be a memory value"},
    {"maxmemory mb", "argument must be a memory value"},
    {"maxmemory -1", "argument must be a memory value"},
    {"maxmemory '1 mb'", "argument must be a memory value"},
    {"maxmemory 1.5gb", "argument must be a memory value"},
    {"maxmemory 18446744073709551615gb", "argument must be a memory value"},
    {"maxmemory 18446744073709551615",
     "argument must be between 0 and 9223372036854775807 inclusive"},
    {"maxmemory-clients 101%", "percentage argument must be less or equal to 100"},
    {"maxmemory-clients 5%%", "argument must be a memory or percent value"},
    {"maxmemory-clients -5%", "argument must be a memory or percent value"},
    {"maxmemory-clients %", "argument must be a memory or percent value"},
    {"maxmemory-clients -1", "argument must be a memory or percent value"},
    {"maxmemory-clients 18446744073709551615",
     "argument must be between 0 and 9223372036854775807 inclusive"},
    {"proto-max-bulk-len 1048575",
     "argument must be between 1048576 and 9223372036854775807 inclusive"},
    {"client-query-buffer-limit 1m",
     "argument must be between 1048576 and 9223372036854775807 inclusive"},
    {"client-output-buffer-limit normal 1 2",
     "Wrong number of arguments in buffer limit configuration."},
    {"client-output-buffer-limit master 32mb 8mb 60",
     "Invalid client class 'master' specified in buffer limit configuration: the classes are "
     "normal, replica and pubsub"},
    {"replicaof 10.0.0.1", "wrong number of arguments, the form is: replicaof host port | no one"},
    {"replicaof 10.0.0.1 0", "Invalid master port"},
    {"replicaof 10.0.0.1 65536", "Invalid master port"},
    {"replicaof 10.0.0.1 x", "Invalid master port"},
    {"replicaof 10.0.0.300 6379", "'10.0.0.300' is neither an address nor a host's name"},
    {"replicaof * 6379", "'*' is neither an address nor a host's name"},
    {"replicaof -10.0.0.1 6379", "'-10.0.0.1' is neither an address nor a host's name"},
    {"replicaof '' 6379", "'' is neither an address nor a host's name"},
    {"replica-read-only no", "a replica is an exact copy of its master, so the only value is yes"},
    {"replica-announce-ip \"a b\"", "'a b' is neither an address nor a host's name"},
    {"client-output-buffer-limit normal 1mb x 60",
     "Error in hard, soft or soft_seconds setting in buffer limit configuration."},
    {"client-output-buffer-limit normal 1mb 1mb -1",
     "Error in hard, soft or soft_seconds setting in buffer limit configuration."},
    {"loglevel loud",
     "argument(s) must be one of the following: debug, verbose, notice, warning, nothing"},
    {"bind 127.0.0.300", "'127.0.0.300'" NO_ADDRESS},
    {"bind a/b", "'a/b'" NO_ADDRESS},
    {"bind fe80::1%et/h", "'fe80::1%et/h'" NO_ADDRESS},
    {"bind fe80::1%", "'fe80::1%'" NO_ADDRESS},
    {"bind fe80::1%sixteen-letters-", "'fe80::1%sixteen-letters-'" NO_ADDRESS},
    {"bind --a", "'--a'" NO_ADDRESS},
    {"bind -", "'-'" NO_ADDRESS},
    {"proxy-protocol a/b", "'a/b' is neither an address nor unixsocket"},
    {"proxy-protocol-from 10.0.0.1/8", "'10.0.0.1/8' is not a network: 10.0.0.0/8, 192.0.2.7, "
                                       "fd00::/8 are; bits behind the prefix must be 0"},
    {"bind ''", "wrong number of arguments, the form is: bind address [address ...]"},
    {"bind 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", "at most 16 addresses are allowed"},
    {"unixsocket /23456789012345678901234567890123456789012345678901234567890123456789"
     "0123456789012345678901234567890123456789",
     "argument may have at most 107 bytes"},
    {"requirepass \"a\\x00b\"", "a zero byte is not allowed"},
    {"databases 4", "the number of databases is fixed, so the only value is 16"},
    {"syslog-ident \"\"", "argument can't be empty"},
    {"rename-command CONFIG",
     "wrong number of arguments, the form is: rename-command NAME NEW|\"\""},
    {"rename-command A B C",
     "wrong number of arguments, the form is: rename-command NAME NEW|\"\""},
    {"save",
     "wrong number of arguments, the form is: save seconds changes [seconds changes ...] | \"\""},
    {"save 3600", "Invalid save parameters"},
    {"save '3600 1 60'", "Invalid save parameters"},
    {"save 0 1", "Invalid save parameters"},
    {"save 60 -1", "Invalid save parameters"},
    {"save 60 x", "Invalid save parameters"},
    {"save 2147483648 1", "Invalid save parameters"},
    {"appendfsync hourly", "argument(s) must be one of the following: everysec, always, no"},
    {"dir ''", "argument can't be empty"},
    {"appenddirname ''", "argument can't be empty"},
    {"appenddirname a/b", "argument can't be a path, just a name"},
    {"appenddirname ..", "argument can't be a path, just a name"},
    {"auto-aof-rewrite-min-size 1zb", "argument must be a memory value"},
    {"maxmemory-policy allkeys-lru",
     "a member or a board is never dropped to make room, so the only value is noeviction"},
};

FIXTURE_TEST(bad_values_are_refused_with_what_is_allowed) {
    for (size_t i = 0; i < COUNT_OF(bad_values); i++) {
        const char *line = bad_values[i][0];
        assert_refused(fixture, line,
                       formatted(AT "%.*s: %s", (int)strcspn(line, " "), line, bad_values[i][1]));
    }
}

FIXTURE_TEST(a_string_may_have_4000_bytes_of_any_kind) {
    char line[12 + 4001 * 4 + 3];
    size_t size = (size_t)sprintf(line, "requirepass \"");
    for (int i = 0; i < 3600; i++) {
        size += (size_t)sprintf(line + size, "\\xff");
    }
    for (int i = 0; i < 400; i++) {
        line[size++] = 'a';
    }
    strcpy(line + size, "\"");
    assert_loads(fixture, line);
    assert_int_equal(strlen(fixture->settings.requirepass), 4000);
    char *printed = print_all(&fixture->settings);
    assert_loads(fixture, "requirepass ''");
    assert_loads(fixture, printed);
    assert_int_equal(strlen(fixture->settings.requirepass), 4000);
    free(printed);
    strcpy(line + size, "a\"");
    assert_refused(fixture, line, AT "requirepass: argument may have at most 4000 bytes");
}

/* ---- Lines ---- */

FIXTURE_TEST(blank_lines_and_comments_are_passed_over) {
    assert_loads(fixture, "");
    assert_loads(fixture, "\n\r\n \t\n# port 1\n   # 'unbalanced\n#\n\tport \t 7001 \r\n");
    assert_int_equal(fixture->settings.port, 7001);
    assert_loads(fixture, "port 7002"); /* no line end */
    assert_int_equal(fixture->settings.port, 7002);
    assert_refused(fixture, "port 1 # not a comment",
                   AT "port: wrong number of arguments, the form is: port 0..65535");
}

FIXTURE_TEST(the_last_line_of_a_setting_wins) {
    assert_loads(fixture, "port 1\nbind 10.0.0.1 10.0.0.2\nport 2\nbind 10.0.0.3\n");
    assert_int_equal(fixture->settings.port, 2);
    assert_int_equal(fixture->settings.bind.count, 1);
    assert_string_equal(fixture->settings.bind.at[0], "10.0.0.3");
    assert_null(fixture->settings.bind.at[1]);
}

FIXTURE_TEST(an_error_names_the_file_and_the_line) {
    assert_refused(fixture, "port 1\n\n# c\nport x\n",
                   "leaderboard.conf:4: port: argument couldn't be parsed into an integer");
    assert_refused(fixture, "\n\nlogfile \"a\n",
                   "leaderboard.conf:3: unbalanced quotes: a closing quote is missing, or is not "
                   "followed by a blank or the end of the line");
    assert_refused(fixture, "logfile 'a'b\n",
                   AT "unbalanced quotes: a closing quote is missing, or is not followed by a "
                      "blank or the end of the line");
    assert_refused(fixture, "logfile \"a\\\"\n",
                   AT "unbalanced quotes: a closing quote is missing, or is not followed by a "
                      "blank or the end of the line");
    assert_refused(fixture, "\"\" 1\n", AT "unknown setting ''");
}

FIXTURE_TEST(an_unknown_setting_is_refused_with_the_one_that_was_meant) {
    static const char *const samples[][2] = {
        {"prot 1", AT "unknown setting 'prot'; did you mean 'port'?"},
        {"timout 1", AT "unknown setting 'timout'; did you mean 'timeout'?"},
        {"max-memory 1", AT "unknown setting 'max-memory'; did you mean 'maxmemory'?"},
        {"require-pass 1", AT "unknown setting 'require-pass'; did you mean 'requirepass'?"},
        {"tcp_keepalive 1", AT "unknown setting 'tcp_keepalive'; did you mean 'tcp-keepalive'?"},
        {"boards x y", AT "unknown setting 'boards'; did you mean 'board'?"},
        {"x 1", AT "unknown setting 'x'"},
        {"a\x01\xff"
         "b 1",
         AT "unknown setting 'a??b'"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        assert_refused(fixture, samples[i][0], samples[i][1]);
    }
}

/* The names of the settings of Redis that were ignored, with a blank before each. */
static const char *ignored_names(const struct settings *settings) {
    static char names[8192];
    struct setting_redis_place place = {.row = NULL};
    struct bytes name;
    size_t size = 0;
    names[0] = '\0';
    while (setting_table_redis_next_ignored(settings, &place, &name)) {
        size +=
            (size_t)snprintf(names + size, sizeof names - size, " %.*s", (int)name.size, name.at);
    }
    return names;
}

FIXTURE_TEST(settings_of_redis_that_mean_nothing_here_are_ignored_and_noted_once) {
    assert_loads(fixture, "hz 10\nport 7000\nHZ 20\noom-score-adj-values 0 200 800\nlogfile ''\n"
                          "proc-title-template \"{title} {port}\"\nmaxmemory-samples\n");
    assert_int_equal(fixture->settings.port, 7000);
    assert_string_equal(ignored_names(&fixture->settings),
                        " hz maxmemory-samples oom-score-adj-values proc-title-template");
}

FIXTURE_TEST(what_is_only_safe_to_ignore_with_one_value_is_refused_with_another) {
    static const char *const samples[][2] = {
        {"cluster-enabled yes", AT "cluster-enabled: this server is no cluster node "
                                   "(docs/scale/cluster.md), so the only value is no"},
        {"cluster-enabled", AT "cluster-enabled: this server is no cluster node "
                               "(docs/scale/cluster.md), so the only value is no"},
        {"shutdown-on-sigterm save force",
         AT "shutdown-on-sigterm: signals end the server as SHUTDOWN without words does, so the "
            "only value is default"},
        {"include other.conf",
         AT "include: other files are not read: put their lines into this one"},
        {"loadmodule /m.so x", AT "loadmodule: modules of Redis cannot be loaded"},
        {"tls-cluster yes", AT "tls-cluster: this server is no cluster node "
                               "(docs/scale/cluster.md), so the only value is no"},
        {"maxmemory-policy allkeys-lru",
         AT "maxmemory-policy: a member or a board is never dropped to make room, so the only "
            "value is noeviction"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        assert_refused(fixture, samples[i][0], samples[i][1]);
    }
    assert_string_equal(ignored_names(&fixture->settings), "");
    assert_loads(fixture, "cluster-enabled NO\nshutdown-on-sigterm default\ninclude \"\"\n");
    assert_string_equal(ignored_names(&fixture->settings),
                        " cluster-enabled shutdown-on-sigterm include");
}

FIXTURE_TEST(each_setting_of_redis_is_ignored_or_takes_one_value_and_is_in_no_other_table) {
    struct setting_redis_place place = {.row = NULL};
    struct bytes name;
    while (setting_table_redis_take(&place, &name)) {
        char line[256], other[256];
        const char *only = place.row->only;
        snprintf(line, sizeof line, "%.*s \"%s\"\n", (int)name.size, name.at,
                 only != NULL ? only : "x");
        snprintf(other, sizeof other, "%.*s neverso\n", (int)name.size, name.at);
        assert_true(place.count <= SETTING_REDIS_MAX);
        assert_null(settings_find(name));
        struct setting_redis_place first = {.row = NULL};
        struct bytes before = {.size = 0};
        do {
            assert_true(setting_table_redis_take(&first, &before));
        } while (!bytes_equal(before, name));
        assert_int_equal(first.count, place.count); /* it stands there once */
        assert_loads(fixture, line);
        assert_true(fixture->settings.is_ignored[place.count - 1]);
        assert_int_equal(load(fixture, other), only == NULL);
    }
}

FIXTURE_TEST(on_the_command_line_settings_of_redis_are_ignored_or_refused_too) {
    char *argv[] = {"leaderboard-server", "--hz", "10", "--cluster-enabled", "yes"};
    assert_true(setting_file_apply_arguments(&fixture->settings, 3, argv, NULL, fixture->error));
    assert_string_equal(ignored_names(&fixture->settings), " hz");
    assert_false(setting_file_apply_arguments(&fixture->settings, 5, argv, NULL, fixture->error));
    assert_string_equal(fixture->error, "option --cluster-enabled: this server is no cluster node "
                                        "(docs/scale/cluster.md), so the only value is no");
}

/* What --check-config says of the text, without the file's path; the caller frees it. */
static char *checked(struct fixture *fixture, const char *text, bool is_fine) {
    char *said = NULL;
    size_t size;
    FILE *out = open_memstream(&said, &size);
    assert_non_null(out);
    assert_int_equal(setting_file_check(write_file(fixture, text), NULL, out), is_fine);
    fclose(out);
    size_t path_size = strlen(fixture->path);
    char *at = said;
    for (char *from = said; *from != '\0'; *at++ = *from++) {
        if (strncmp(from, fixture->path, path_size) == 0) {
            from += path_size;
        }
    }
    *at = '\0';
    return said;
}

FIXTURE_TEST(a_check_shows_what_of_a_redis_conf_is_used_ignored_or_refused) {
    OWNED char *said = checked(fixture,
                               "port 7000\nhz 10\nmaxmemory-samples 5\nslave-priority 5\n"
                               "dynamic-hz yes\nport 7001\n",
                               true);
    assert_string_equal(said, ": used: port replica-priority\n"
                              ": ignored (expiry, growth and freeing go in small steps, with "
                              "nothing to tune): hz dynamic-hz\n"
                              ": ignored (nothing is ever evicted): maxmemory-samples\n"
                              ": no errors\n");
    free(said);
    said = checked(fixture, "hz 10\nnosuch 1\ncluster-enabled yes\nport x\n", false);
    assert_string_equal(said, ":2: unknown setting 'nosuch'\n"
                              ":3: cluster-enabled: this server is no cluster node "
                              "(docs/scale/cluster.md), so the only value is no\n"
                              ":4: port: argument couldn't be parsed into an integer\n"
                              ": used:\n"
                              ": ignored (expiry, growth and freeing go in small steps, with "
                              "nothing to tune): hz\n");
    free(said);
    said = checked(fixture, "port 7000\n", true);
    assert_string_equal(said, ": no errors\n");
}

FIXTURE_TEST(names_that_valkey_gave_to_settings_are_taken) {
    assert_loads(fixture, "primaryauth pw\nprimaryuser me\ncommandlog-slow-execution-max-len 7\n"
                          "commandlog-execution-slower-than 9\n");
    assert_string_equal(fixture->settings.masterauth, "pw");
    assert_string_equal(fixture->settings.masteruser, "me");
    assert_int_equal(fixture->settings.slowlog_max_len, 7);
    assert_int_equal(fixture->settings.slowlog_log_slower_than_us, 9);
}

FIXTURE_TEST(texts_in_messages_are_shortened) {
    char line[200];
    memset(line, 'y', sizeof line);
    strcpy(line + sizeof line - 3, " 1");
    assert_refused(fixture, line,
                   AT "unknown setting "
                      "'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy...'");
    char name[200];
    memset(name, 'd', sizeof name);
    strcpy(name + sizeof name - 6, "/conf");
    assert_false(setting_file_apply_text(&fixture->settings, BYTES("x"), name, fixture->error));
    assert_string_equal(fixture->error,
                        "...dddddddddddddddddddddddddddddddddddddddddddddddddddddddd/conf:1: "
                        "unknown setting 'x'");
}

FIXTURE_TEST(lines_without_end_are_refused) {
    OWNED char *line = malloc(SETTING_VALUE_MAX + 2);
    memset(line, 'x', SETTING_VALUE_MAX + 1);
    line[SETTING_VALUE_MAX + 1] = '\0';
    assert_refused(fixture, line, AT "a line may have at most 16384 bytes");
    for (size_t i = 1; i < SETTING_VALUE_MAX; i += 2) {
        line[i] = ' ';
    }
    line[SETTING_VALUE_MAX] = '\0';
    assert_refused(fixture, line, AT "a line may have at most 1024 words");
    memset(line, '#', SETTING_VALUE_MAX + 1); /* a comment may be longer */
    assert_loads(fixture, line);
}

FIXTURE_TEST(a_bad_line_leaves_everything_as_it_was) {
    assert_loads(fixture, "port 7000\nlayout laps FIELD t 32 ASC\nboard a* laps\n");
    OWNED char *before = print_all(&fixture->settings);
    assert_false(load(fixture, "port 1\nbind 10.0.0.1\nlogfile x\nlayout b FIELD s 1\n"
                               "board b* b\ndefault-layout b\nprot 1\n"));
    OWNED char *after = print_all(&fixture->settings);
    assert_string_equal(after, before);
}

/* ---- Files ---- */

FIXTURE_TEST(a_file_is_read_and_remembered_by_its_absolute_path) {
    const char *path = write_file(fixture, "port 7003\n");
    char error[SETTING_ERROR_MAX];
    const char *link_path =
        formatted("%s/../%s/link", fixture->directory, strrchr(fixture->directory, '/') + 1);
    assert_int_equal(symlink(path, link_path), 0);
    assert_true(settings_load_file(&fixture->settings, link_path, error));
    assert_int_equal(fixture->settings.port, 7003);
    assert_string_equal(fixture->settings.file_path, path);
}

FIXTURE_TEST(a_file_that_cannot_be_read_is_named) {
    assert_false(settings_load_file(&fixture->settings, "/nowhere/l.conf", fixture->error));
    assert_string_equal(fixture->error, "cannot read /nowhere/l.conf: No such file or directory");
    assert_false(settings_load_file(&fixture->settings, "/tmp", fixture->error));
    assert_string_equal(fixture->error, "cannot read /tmp: Is a directory");
    assert_null(fixture->settings.file_path);
}

FIXTURE_TEST(a_file_of_gigabytes_is_not_read_to_its_end) {
    const char *path = write_file(fixture, "");
    assert_int_equal(truncate(path, 8 * 1024 * 1024 + 1), 0);
    char error[SETTING_ERROR_MAX];
    assert_false(settings_load_file(&fixture->settings, path, error));
    assert_non_null(strstr(error, "leaderboard.conf: it is larger than 8 MiB"));
    assert_false(settings_load_file(&fixture->settings, "/dev/zero", error));
    assert_string_equal(error, "cannot read /dev/zero: it is larger than 8 MiB");
}

/* ---- The command line ---- */

FIXTURE_TEST(the_command_line_wins_over_the_file) {
    const char *path = write_file(fixture, "port 7003\ntimeout 9\n");
    assert_true(load_arguments(fixture, ARGUMENTS(path, "--port", "7004", "--bind", "127.0.0.1",
                                                  "-::1", "::1", "--requirepass", "a b")));
    assert_int_equal(fixture->settings.port, 7004);
    assert_int_equal(fixture->settings.timeout_s, 9);
    assert_int_equal(fixture->settings.bind.count, 3);
    assert_string_equal(fixture->settings.bind.at[1], "-::1");
    assert_string_equal(fixture->settings.requirepass, "a b");
    assert_string_equal(fixture->settings.file_path, path);
}

FIXTURE_TEST(options_are_taken_as_redis_server_takes_them) {
    const struct settings *settings = &fixture->settings;
    assert_true(load_arguments(fixture, (const char *const[]){NULL}));
    assert_true(load_arguments(fixture, ARGUMENTS("--save", "", "--appendonly", "no")));
    assert_true(load_arguments(fixture, ARGUMENTS("--port 7005", "--TIMEOUT", "3")));
    assert_int_equal(settings->port, 7005);
    assert_int_equal(settings->timeout_s, 3);
    assert_true(load_arguments(fixture, ARGUMENTS("--bind", "10.0.0.1 10.0.0.2")));
    assert_int_equal(settings->bind.count, 2);
    assert_true(load_arguments(fixture, ARGUMENTS("--requirepass \"--dashes\"")));
    assert_string_equal(settings->requirepass, "--dashes");
    assert_true(load_arguments(
        fixture, ARGUMENTS("--client-output-buffer-limit", "normal", "1mb", "1mb", "1")));
    assert_int_equal(settings->output_limits[SETTING_OUTPUT_NORMAL].hard_bytes, 1048576);
    assert_true(
        load_arguments(fixture, ARGUMENTS("--layout", "laps", "FIELD", "t", "32", "ASC", "--board",
                                          "a*", "laps", "--port", "1", "--port", "2")));
    assert_int_equal(settings->port, 2);
    assert_string_equal(line_of(settings, "layout", 0), "laps FIELD t 32 ASC");
    assert_string_equal(line_of(settings, "board", 0), "a* laps");
    assert_null(settings->file_path);
}

FIXTURE_TEST(a_dash_reads_the_standard_input) {
    const char *const lines[] = {"port 7006\ntimeout 4\n", "port 7007\n", "port 7\nprot 1\n"};
    int saved = dup(STDIN_FILENO);
    assert_true(saved >= 0);
    for (size_t i = 0; i < 3; i++) {
        FILE *file = fopen(formatted("%s/stdin", fixture->directory), "w+");
        fputs(lines[i], file);
        rewind(file);
        assert_true(dup2(fileno(file), STDIN_FILENO) >= 0);
        fclose(file);
        if (i == 0) {
            assert_true(load_arguments(fixture, ARGUMENTS("-", "--timeout", "5")));
            assert_int_equal(fixture->settings.port, 7006);
            assert_int_equal(fixture->settings.timeout_s, 5);
        } else if (i == 1) {
            assert_true(load_arguments(fixture, ARGUMENTS("--timeout", "6", "-")));
            assert_int_equal(fixture->settings.port, 7007);
            assert_int_equal(fixture->settings.timeout_s, 6);
        } else {
            assert_arguments_refused(fixture, ARGUMENTS("-"),
                                     "stdin:2: unknown setting 'prot'; did you mean 'port'?");
        }
    }
    assert_null(fixture->settings.file_path);
    dup2(saved, STDIN_FILENO);
    close(saved);
}

FIXTURE_TEST(a_bad_option_is_named) {
    assert_arguments_refused(fixture, ARGUMENTS("--prot", "1"),
                             "option --prot: unknown setting 'prot'; did you mean 'port'?");
    assert_arguments_refused(fixture, ARGUMENTS("--port"), "option --port: a value is needed");
    assert_arguments_refused(fixture, ARGUMENTS("--port", "--timeout", "1"),
                             "option --port: a value is needed");
    assert_arguments_refused(fixture, ARGUMENTS("--port", "1", "2"),
                             "option --port: wrong number of arguments, the form is: port "
                             "0..65535");
    assert_arguments_refused(fixture, ARGUMENTS("--port", "x"),
                             "option --port: argument couldn't be parsed into an integer");
    assert_arguments_refused(fixture, ARGUMENTS("--"), "option --: a setting's name is needed");
    assert_arguments_refused(
        fixture, ARGUMENTS("-p", "1"),
        "argument '-p': only the first argument may be a file, and options begin with --name");
    const char *path = write_file(fixture, "timeout 1\n");
    assert_arguments_refused(fixture, ARGUMENTS(path, "other.conf"),
                             "argument 'other.conf': only the first argument may be a file, and "
                             "options begin with --name");
    assert_arguments_refused(fixture, ARGUMENTS("--logfile \"x", "y"),
                             "option --logfile \"x: unbalanced quotes: a closing quote is missing, "
                             "or is not followed by a blank or the end of the line");
    assert_arguments_refused(fixture, ARGUMENTS("nowhere.conf"),
                             "cannot read nowhere.conf: No such file or directory");
    assert_int_equal(fixture->settings.timeout_s, 0); /* the file was read, and discarded */
    assert_null(fixture->settings.file_path);
}

/* ---- Layouts ---- */

static const struct layout *layout_for(struct fixture *fixture, const char *key) {
    return &setting_board_options_for(&fixture->settings, bytes_from_text(key), 0)->layout;
}

static const struct layout *layout_named(struct fixture *fixture, const char *name) {
    const struct layout *layout = setting_board_layout(&fixture->settings, bytes_from_text(name));
    assert_non_null(layout);
    return layout;
}

static void assert_finishes(struct fixture *fixture) {
    if (!settings_finish(&fixture->settings, fixture->error)) {
        fail_msg("%s", fixture->error);
    }
}

static void assert_not_finished(struct fixture *fixture, const char *error) {
    assert_false(settings_finish(&fixture->settings, fixture->error));
    assert_string_equal(fixture->error, error);
}

FIXTURE_TEST(without_rules_every_board_has_the_built_in_layout) {
    struct layout expected;
    layout_init_default(&expected);
    assert_finishes(fixture);
    assert_true(layout_equal(layout_for(fixture, "any"), &expected));
    assert_ptr_equal(layout_for(fixture, ""), layout_named(fixture, "default"));
}

FIXTURE_TEST(the_first_rule_that_matches_wins) {
    assert_loads(fixture, "layout laps field t 32 asc time 32 s\n"
                          "layout money FIELD balance 40 SCALE 2 TIME 24 M\n"
                          "board race:final laps\n"
                          "board race:* money\n"
                          "board race:f* default\n"
                          "board 'a b*' laps\n");
    assert_finishes(fixture);
    assert_ptr_equal(layout_for(fixture, "race:final"), layout_named(fixture, "laps"));
    assert_ptr_equal(layout_for(fixture, "race:f1"), layout_named(fixture, "money"));
    assert_ptr_equal(layout_for(fixture, "race"), layout_named(fixture, "default"));
    assert_ptr_equal(layout_for(fixture, "a bc"), layout_named(fixture, "laps"));
    assert_true(layout_named(fixture, "laps")->fields[0].is_ascending);
    assert_string_equal(line_of(&fixture->settings, "layout", 0), "laps field t 32 asc time 32 s");
    assert_string_equal(line_of(&fixture->settings, "layout", 1),
                        "money FIELD balance 40 SCALE 2 TIME 24 M");
    assert_null(line_of(&fixture->settings, "layout", 2));
    assert_string_equal(line_of(&fixture->settings, "board", 3), "\"a b*\" laps");
}

FIXTURE_TEST(a_rule_says_how_its_boards_behave) {
    assert_loads(fixture, "board top:* laps cap 1000 KEEP best\n"
                          "board last:* laps KEEP LAST\n"
                          "board * laps\n"
                          "layout laps FIELD t 32 ASC\n");
    assert_finishes(fixture);
    const struct board_options *options =
        setting_board_options_for(&fixture->settings, BYTES("top:1"), 0);
    assert_int_equal(options->cap, 1000);
    assert_true(options->keeps_best);
    assert_false(options->is_created);
    assert_true(layout_equal(&options->layout, layout_named(fixture, "laps")));
    options = setting_board_options_for(&fixture->settings, BYTES("last:1"), 0);
    const struct board_options *plain =
        setting_board_options_for(&fixture->settings, BYTES("other"), 0);
    assert_true(board_options_equal(options, plain));
    assert_int_equal(plain->cap, 0);
    assert_false(plain->keeps_best);
    assert_string_equal(line_of(&fixture->settings, "board", 0), "top:* laps cap 1000 KEEP best");
    assert_string_equal(line_of(&fixture->settings, "board", 1), "last:* laps KEEP LAST");
    /* An identical line adds no rule; one with other options does. */
    assert_true(load_arguments(
        fixture, ARGUMENTS("--board", "top:*", "laps", "cap", "1000", "KEEP", "best")));
    assert_int_equal(fixture->settings.rule_count, 3);
    assert_true(load_arguments(fixture, ARGUMENTS("--board", "top:*", "laps", "CAP", "9")));
    assert_int_equal(fixture->settings.rule_count, 4);
    assert_finishes(fixture);
    assert_int_equal(setting_board_options_for(&fixture->settings, BYTES("top:1"), 0)->cap, 1000);
}

FIXTURE_TEST(a_rule_may_give_periods) {
    assert_loads(fixture, "board a* fine PERIOD week tz +05:45 ARCHIVE 4\n"
                          "board b* fine ARCHIVE 0 PERIOD DAY\n"
                          "board c* bare PERIOD MONTH\n"
                          "layout fine FIELD s 34 TIME 30 MS\n"
                          "layout bare FIELD s 34\n");
    assert_finishes(fixture);
    const struct board_options *options =
        setting_board_options_for(&fixture->settings, BYTES("a1"), 0);
    assert_int_equal(options->period.unit, PERIOD_WEEK);
    assert_int_equal(options->period.zone_minutes, 345);
    assert_int_equal(options->archives_max, 4);
    assert_int_equal(options->period_end_ms, 0);
    options = setting_board_options_for(&fixture->settings, BYTES("b1"), 0);
    assert_int_equal(options->period.unit, PERIOD_DAY);
    assert_int_equal(options->archives_max, 0);
    options = setting_board_options_for(&fixture->settings, BYTES("c1"), 0);
    assert_int_equal(options->period.unit, PERIOD_MONTH);
    assert_true(options->archives_max == BOARD_ARCHIVES_ALL);
    assert_string_equal(line_of(&fixture->settings, "board", 0),
                        "a* fine PERIOD week tz +05:45 ARCHIVE 4");
}

/* The bits and the unit that the longest period needs: one bit less is refused with that number. */
FIXTURE_TEST(a_period_needs_bits_for_its_times) {
    static const struct {
        const char *period, *unit;
        int bits;
    } samples[] = {
        {"DAY", "US", 37},   {"DAY", "MS", 27},   {"DAY", "S", 17},   {"DAY", "M", 11},
        {"DAY", "H", 5},     {"DAY", "D", 1},     {"WEEK", "US", 40}, {"WEEK", "MS", 30},
        {"WEEK", "S", 20},   {"WEEK", "M", 14},   {"WEEK", "H", 8},   {"WEEK", "D", 3},
        {"MONTH", "US", 42}, {"MONTH", "MS", 32}, {"MONTH", "S", 22}, {"MONTH", "M", 16},
        {"MONTH", "H", 10},  {"MONTH", "D", 5},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        for (int bits = samples[i].bits; bits > 0 && bits >= samples[i].bits - 1; bits--) {
            char expected[256];
            settings_deinit(&fixture->settings);
            assert_true(settings_init(&fixture->settings));
            assert_loads(fixture, formatted("layout l FIELD s 3 TIME %d %s\nboard x l PERIOD %s\n",
                                            bits, samples[i].unit, samples[i].period));
            if (bits == samples[i].bits) {
                assert_finishes(fixture);
                continue;
            }
            snprintf(expected, sizeof expected,
                     "leaderboard.conf:2: board: PERIOD %s needs at least TIME %d %s: TIME %d %s "
                     "has too few bits",
                     samples[i].period, samples[i].bits, samples[i].unit, bits, samples[i].unit);
            assert_not_finished(fixture, expected);
        }
    }
}

FIXTURE_TEST(a_rule_may_stand_before_its_layout) {
    assert_loads(fixture, "board race:* laps\ndefault-layout money\n"
                          "layout laps FIELD t 32 ASC\nlayout money FIELD b 40\n");
    assert_finishes(fixture);
    assert_ptr_equal(layout_for(fixture, "race:1"), layout_named(fixture, "laps"));
    assert_ptr_equal(layout_for(fixture, "x"), layout_named(fixture, "money"));
    assert_string_equal(value_of(&fixture->settings, "default-layout"), "money");
}

FIXTURE_TEST(a_layout_that_is_nowhere_is_refused_with_the_line_that_names_it) {
    assert_loads(fixture, "layout laps FIELD t 32 ASC\n\nboard race:* lasp\n");
    assert_not_finished(fixture, "leaderboard.conf:3: board: there is no layout 'lasp'; did you "
                                 "mean 'laps'?");
}

FIXTURE_TEST(a_default_that_is_nowhere_is_refused_with_its_line) {
    assert_loads(fixture, "\ndefault-layout weekly\n");
    assert_not_finished(fixture, "leaderboard.conf:2: default-layout: there is no layout 'weekly'");
    assert_true(load_arguments(fixture, ARGUMENTS("--default-layout", "monthly")));
    assert_not_finished(fixture, "option --default-layout: there is no layout 'monthly'");
    assert_true(load_arguments(fixture,
                               ARGUMENTS("--default-layout", "default", "--board", "x", "weekly")));
    assert_not_finished(fixture, "option --board: there is no layout 'weekly'");
}

static void assert_layout(struct fixture *fixture, const char *key, const char *expected) {
    char text[LAYOUT_TEXT_MAX];
    (void)layout_print(layout_for(fixture, key), text);
    assert_string_equal(text, expected);
}

FIXTURE_TEST(a_rule_has_the_tags_of_its_layout_and_of_its_options) {
    assert_loads(fixture, "board plain:* tagged\n"
                          "board more:* tagged CAP 5 TAG clan 10 TAG COUNTRY 9\n"
                          "board own:* default tag clan 10\n"
                          "layout tagged FIELD t 32 TAG country 8 TAG class 4\n");
    for (int i = 0; i < 2; i++) {
        assert_finishes(fixture);
        assert_layout(fixture, "plain:1", "FIELD t 32 TAG country 8 TAG class 4");
        assert_layout(fixture, "more:1", "FIELD t 32 TAG country 9 TAG class 4 TAG clan 10");
        assert_layout(fixture, "own:1", "FIELD score 33 SIGNED TIME 31 S TAG clan 10");
        assert_layout(fixture, "other", "FIELD score 33 SIGNED TIME 31 S");
    }
    assert_string_equal(line_of(&fixture->settings, "board", 1),
                        "more:* tagged CAP 5 TAG clan 10 TAG COUNTRY 9");
    assert_string_equal(line_of(&fixture->settings, "layout", 0),
                        "tagged FIELD t 32 TAG country 8 TAG class 4");
}

FIXTURE_TEST(tags_of_a_rule_must_fit_those_of_its_layout) {
    assert_loads(fixture, "layout tagged FIELD t 32 TAG country 8 TAG class 4\n"
                          "board a tagged TAG clan 21\n");
    assert_not_finished(fixture, "leaderboard.conf:2: board: tag 'clan': 21 bits are too many: 20 "
                                 "of the 32 of all tags are left");
}

FIXTURE_TEST(bad_layouts_and_rules_are_refused) {
    static const char *const samples[][2] = {
        {"layout",
         AT "layout: wrong number of arguments, the form is: layout NAME FIELD name bits "
            "[ASC|DESC] [SIGNED] [SCALE d] [DOUBLE] [DECAY n S|M|H|D] [FIELD ...] [TIME bits "
            "US|MS|S|M|H|D [START t|END t] [LATEST]] [TAG name bits ...]"},
        {"layout a/b FIELD s 1", AT "layout: 'a/b' cannot be a layout's name: 1 to 64 letters, "
                                    "digits, '_' and '-' are allowed"},
        {"layout default FIELD s 1",
         AT "layout: 'default' is built in and cannot be changed; give your layout another name "
            "and choose it with default-layout"},
        {"layout DEFAULT FIELD s 1",
         AT "layout: 'default' is built in and cannot be changed; give your layout another name "
            "and choose it with default-layout"},
        {"layout a FIELD s 1\nlayout a FIELD s 1",
         "leaderboard.conf:2: layout: layout 'a' already exists"},
        {"board race:*", AT "board: a pattern of keys and a layout's name are needed: board GLOB "
                            "NAME " SETTING_OPTIONS},
        /* More about options: tests/server/commands/lb/test_lb_create.c. */
        {"board a b c", AT "board: unknown board option 'c': allowed are " SETTING_OPTIONS},
        {"board a b CAP 1e3",
         AT "board: CAP '1e3' is not a valid number of members: 1..4294967295"},
        {"board a b CAP 1 KEEP BEST cap 1", AT "board: CAP may be given only once"},
        {"board a b PERIOD DAY ARCHIVE some",
         AT "board: ARCHIVE 'some' is not a valid number of periods: 0..1000000"},
        {"board a b FIELD s 3",
         AT "board: 'FIELD' is misplaced: give one layout, before the options"},
        {"board a b TAG x", AT "board: TAG needs a name and a width: TAG name bits"},
        {"board a b TAG x NONE", AT "board: no tag 'x': the board has no tags"},
        {"board a b TAG x 1 CAP 1 TAG X 2", AT "board: TAG X may be given only once"},
        {"layout a FIELD s 1 TAG x 33",
         AT "layout: tag 'x': '33' bits is out of range: 1..32 are allowed"},
        {"board '' default", AT "board: a pattern of 1 to 1024 bytes is needed"},
        {"board x a/b", AT "board: 'a/b' is not a layout name"},
        {"default-layout a/b", AT "default-layout: 'a/b' is not a layout name"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        assert_refused(fixture, samples[i][0], samples[i][1]);
    }
    assert_false(load(fixture, "layout a FIELD s 65"));
    assert_memory_equal(fixture->error, AT "layout: field 's': ", 37);
    assert_int_equal(fixture->settings.layout_count, 1);
    assert_int_equal(fixture->settings.rule_count, 0);
}

FIXTURE_TEST(the_command_line_may_repeat_a_layout_of_the_file) {
    assert_loads(fixture, "layout laps FIELD t 32 ASC\nboard a laps\n");
    assert_true(load_arguments(
        fixture, ARGUMENTS("--layout", "laps", "FIELD", "t", "32", "ASC", "--board", "a", "laps")));
    assert_int_equal(fixture->settings.layout_count, 2);
    assert_int_equal(fixture->settings.rule_count, 1);
    assert_arguments_refused(fixture, ARGUMENTS("--layout", "laps", "FIELD", "t", "33", "ASC"),
                             "option --layout: layout 'laps' already exists");
}

FIXTURE_TEST(there_are_at_most_255_layouts_and_1024_rules) {
    for (int i = 1; i < SETTING_LAYOUTS_MAX; i++) {
        assert_loads(fixture, formatted("layout l%d FIELD s 1", i));
    }
    assert_refused(fixture, "layout more FIELD s 1", AT "layout: at most 255 layouts are allowed");
    for (int i = 0; i < SETTING_RULES_MAX; i++) {
        assert_loads(fixture, formatted("board b%d l%d", i, i % 255 + 1));
    }
    assert_refused(fixture, "board more l1", AT "board: at most 1024 board rules are allowed");
    assert_finishes(fixture);
    assert_ptr_equal(layout_for(fixture, "b1023"), layout_named(fixture, "l4"));
}

FIXTURE_TEST(there_must_be_something_to_listen_on) {
    assert_loads(fixture, "port 0");
    assert_not_finished(
        fixture, "there is nothing to listen on: port and tls-port are 0 and unixsocket is not "
                 "set");
    assert_loads(fixture, "unixsocket /tmp/l.sock");
    assert_finishes(fixture);
}

FIXTURE_TEST(sync_replicas_needs_nodes_and_a_journal) {
    struct bytes off[] = {BYTES("appendonly"), BYTES("no")};
    struct bytes everysec[] = {BYTES("appendfsync"), BYTES("everysec")};
    assert_loads(fixture, "sync-replicas 2\nreplication-nodes 2");
    assert_not_finished(fixture,
                        "sync-replicas 2 needs replication-nodes 3 or more: how many servers there "
                        "are, the master included");
    assert_loads(fixture, "replication-nodes 3");
    assert_not_finished(fixture, "sync-replicas needs appendonly yes: what a server has voted "
                                 "and acknowledged must be on its disk");
    assert_loads(fixture, "appendonly yes\nsync-replicas-fsync yes");
    assert_not_finished(fixture, "sync-replicas-fsync yes needs appendfsync always");
    assert_loads(fixture, "appendfsync always");
    assert_finishes(fixture);
    assert_false(settings_set(&fixture->settings, off, 1, NULL, NULL, fixture->error));
    assert_string_equal(fixture->error,
                        "CONFIG SET failed (possibly related to argument 'appendonly') - "
                        "sync-replicas needs appendonly yes: what a server has voted and "
                        "acknowledged must be on its disk");
    assert_false(settings_set(&fixture->settings, everysec, 1, NULL, NULL, fixture->error));
    assert_string_equal(fixture->error,
                        "CONFIG SET failed (possibly related to argument 'appendfsync') - "
                        "sync-replicas-fsync yes needs appendfsync always");
    assert_true(fixture->settings.appendonly);
}

/* ---- CONFIG SET ---- */

#define FAILED(name) "CONFIG SET failed (possibly related to argument '" name "') - "

FIXTURE_TEST(set_is_all_or_nothing) {
    OWNED char *before = print_all(&fixture->settings);
    const struct bytes pairs[] = {BYTES("timeout"), BYTES("30"),         BYTES("requirepass"),
                                  BYTES("secret"),  BYTES("maxclients"), BYTES("0")};
    assert_false(settings_set(&fixture->settings, pairs, 3, NULL, NULL, fixture->error));
    assert_string_equal(fixture->error,
                        FAILED("maxclients") "argument must be between 1 and 4294967295 inclusive");
    OWNED char *after = print_all(&fixture->settings);
    assert_string_equal(after, before);
}

FIXTURE_TEST(set_refuses_in_the_words_of_redis) {
    static const char *const samples[][3] = {
        {"foo", "1", "Unknown option or number of arguments for CONFIG SET - 'foo'"},
        {"port", "1", FAILED("port") "can't set immutable config"},
        {"DATABASES", "16", FAILED("DATABASES") "can't set immutable config"},
        /* A value, as in a file. */
        {"TIMEOUT", "x", FAILED("timeout") "argument couldn't be parsed into an integer"},
        {"layout", "a FIELD s 1\nb FIELD s 65",
         FAILED("layout") "field 's': '65' bits is out of range: 1..64 are allowed"},
        {"layout", "a FIELD s 1\na FIELD s 2", FAILED("layout") "layout 'a' already exists"},
        {"board", "a* default\nb* defualt",
         FAILED("board") "board: there is no layout 'defualt'; did you mean 'default'?"},
        {"board", "a*",
         FAILED("board") "a pattern of keys and a layout's name are needed: board GLOB "
                         "NAME " SETTING_OPTIONS},
        {"board", "\"a\\x00*\" default", FAILED("board") "a zero byte is not allowed"},
        {"layout", "\"a\\x00\" FIELD s 1", FAILED("layout") "a zero byte is not allowed"},
        {"client-output-buffer-limit", "\"normal\\x00x\" 0 0 0",
         FAILED("client-output-buffer-limit") "a zero byte is not allowed"},
        {"dir", "/tmp", FAILED("dir") "can't set immutable config"},
        {"appenddirname", "a", FAILED("appenddirname") "can't set immutable config"},
        {"default-layout", "defualt",
         FAILED("default-layout") "there is no layout 'defualt'; did you mean 'default'?"},
        {"default-layout", "default second",
         FAILED("default-layout") "there is no layout 'second'; did you mean 'seconds'?"},
        {"default-layout", "int64 default int64",
         FAILED("default-layout") "layout 'int64' is given twice"},
        {"default-layout", "a b c d e f g h i",
         FAILED("default-layout") "at most 8 layouts are allowed"},
        {"default-layout", "",
         FAILED("default-layout") "wrong number of arguments, the form is: default-layout NAME "
                                  "[NAME ...]"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        assert_false(set(fixture, samples[i][0], samples[i][1]));
        assert_string_equal(fixture->error, samples[i][2]);
    }
    const struct bytes twice[] = {BYTES("timeout"), BYTES("1"), BYTES("TIMEOUT"), BYTES("2")};
    assert_false(settings_set(&fixture->settings, twice, 2, NULL, NULL, fixture->error));
    assert_string_equal(fixture->error, FAILED("TIMEOUT") "duplicate parameter");
    const struct bytes zero[] = {BYTES("requirepass"), BYTES("a\0b")};
    assert_false(settings_set(&fixture->settings, zero, 1, NULL, NULL, fixture->error));
    assert_string_equal(fixture->error, FAILED("requirepass") "a zero byte is not allowed");
}

FIXTURE_TEST(save_lines_of_one_place_add_up_and_take_the_place_of_others) {
    struct settings *settings = &fixture->settings;
    assert_loads(fixture, "save 900 1\nsave 300 10 60 20\n");
    assert_save_points(settings, "900/1 300/10 60/20 ");
    assert_string_equal(value_of(settings, "save"), "900 1 300 10 60 20");
    assert_loads(fixture, "save 900 1\nsave ''\nsave 60 5\n");
    assert_save_points(settings, "60/5 ");
    assert_true(load_arguments(fixture, ARGUMENTS("--save", "30", "3", "--save", "20 2")));
    assert_save_points(settings, "30/3 20/2 ");
    assert_true(set(fixture, "save", "10 1"));
    assert_save_points(settings, "10/1 ");
    assert_true(set(fixture, "save", "11 1 12 2"));
    assert_save_points(settings, "11/1 12/2 ");
    assert_true(set(fixture, "save", ""));
    assert_save_points(settings, "");
    assert_loads(fixture, "timeout 1\n");
    assert_save_points(settings, "");
}

FIXTURE_TEST(at_most_64_save_points_are_taken) {
    char text[1024] = "";
    for (int i = 1; i <= SETTING_SAVE_POINTS_MAX; i++) {
        size_t size = strlen(text);
        snprintf(text + size, sizeof text - size, "save %d 1\n", i);
    }
    assert_loads(fixture, text);
    assert_int_equal(fixture->settings.save_point_count, 64);
    assert_true(load_arguments(fixture, ARGUMENTS("--save", "1 2")));
    strcat(text, "save 9 9\n");
    assert_refused(fixture, text, "leaderboard.conf:65: save: at most 64 pairs are allowed");
    assert_save_points(&fixture->settings, "1/2 ");
}

TEST_WITH(the_directory_is_shown_whole, set_up, tear_down) {
    const struct settings *settings = &((struct fixture *)*state)->settings;
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_string_equal(value_of(settings, "dir"), here);
}

FIXTURE_TEST(set_default_layout_holds_for_new_boards_and_moves_no_layout) {
    assert_loads(fixture, "layout laps FIELD t 32 ASC\n");
    assert_finishes(fixture);
    const struct layout *laps = layout_named(fixture, "laps");
    const struct layout *before = layout_for(fixture, "x");
    assert_true(set(fixture, "default-layout", "laps"));
    assert_ptr_equal(layout_for(fixture, "x"), laps);
    assert_ptr_equal(layout_named(fixture, "laps"), laps);
    assert_ptr_equal(layout_named(fixture, "default"), before);
    assert_true(set(fixture, "timeout", "1"));
    assert_ptr_equal(layout_for(fixture, "x"), laps);
}

static const struct board_options *choice_for(struct fixture *fixture, const char *key,
                                              uint32_t choice) {
    return setting_board_options_for(&fixture->settings, bytes_from_text(key), choice);
}

FIXTURE_TEST(default_layouts_are_a_choice_only_where_no_board_line_names_the_key) {
    assert_loads(fixture, "default-layout seconds later default\nboard a* default\n"
                          "layout later FIELD t 32 ASC\n");
    assert_finishes(fixture);
    assert_string_equal(value_of(&fixture->settings, "default-layout"), "seconds later default");
    assert_ptr_equal(choice_for(fixture, "b", 1), choice_for(fixture, "c", 1));
    assert_ptr_equal(&choice_for(fixture, "b", 1)->layout, layout_named(fixture, "later"));
    assert_ptr_equal(&choice_for(fixture, "b", 2)->layout, layout_named(fixture, "default"));
    assert_null(choice_for(fixture, "b", 3));
    assert_ptr_equal(choice_for(fixture, "a", 0), choice_for(fixture, "b", 2));
    assert_null(choice_for(fixture, "a", 1));
    assert_true(set(fixture, "default-layout", "int64 decimals"));
    assert_string_equal(value_of(&fixture->settings, "default-layout"), "int64 decimals");
    assert_null(choice_for(fixture, "b", 2));
    assert_true(setting_board_is_default(&fixture->settings, "decimals"));
    assert_false(setting_board_is_default(&fixture->settings, "default"));
}

FIXTURE_TEST(set_leaves_the_other_strings_where_they_are) {
    const struct settings *settings = &fixture->settings;
    assert_loads(fixture, "pidfile /tmp/p\nlogfile /tmp/l\nrequirepass old\n");
    const char *pidfile = settings->pidfile;
    const char *logfile = settings->logfile;
    const char *address = settings->bind.at[0];
    assert_true(set(fixture, "requirepass", "new"));
    assert_ptr_equal(settings->pidfile, pidfile);
    assert_ptr_equal(settings->logfile, logfile);
    assert_ptr_equal(settings->bind.at[0], address);
    assert_string_equal(pidfile, "/tmp/p");
    assert_string_equal(settings->requirepass, "new");
}

/* ---- Failing allocations ---- */

#define FULL_TEXT                                                                                  \
    "bind 10.0.0.1 10.0.0.2\nunixsocket /tmp/s\nrequirepass 'a b'\npidfile /tmp/p\n"               \
    "logfile /tmp/k\nlogfile /tmp/l\nboard a* laps\nboard b* laps CAP 9 keep best PERIOD DAY\n"    \
    "layout laps FIELD t 32 ASC TIME 20 S\ndefault-layout laps\n"

TEST_WITH(without_memory_nothing_is_initialised, set_up, tear_down) {
    uint64_t live_count = memory_live_count();
    static struct settings settings;
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        memory_fail_at(nth);
        is_done = settings_init(&settings);
        memory_fail_at(0);
        assert_true(is_done || memory_live_count() == live_count);
    }
    settings_deinit(&settings);
    assert_int_equal(memory_live_count(), live_count);
}

FIXTURE_TEST(without_memory_set_changes_nothing) {
    assert_loads(fixture, FULL_TEXT);
    assert_finishes(fixture);
    OWNED char *before = print_all(&fixture->settings);
    uint64_t live_count = memory_live_count();
    const struct bytes pairs[] = {BYTES("requirepass"),    BYTES("new"),
                                  BYTES("timeout"),        BYTES("3"),
                                  BYTES("default-layout"), BYTES("default")};
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        memory_fail_at(nth);
        is_done = settings_set(&fixture->settings, pairs, 3, NULL, NULL, fixture->error);
        memory_fail_at(0);
        if (!is_done) {
            char *after = print_all(&fixture->settings);
            assert_string_equal(after, before);
            free(after);
            assert_ptr_equal(layout_for(fixture, "z"), layout_named(fixture, "laps"));
            assert_int_equal(memory_live_count(), live_count);
        }
    }
    assert_string_equal(fixture->settings.requirepass, "new");
    assert_ptr_equal(layout_for(fixture, "z"), layout_named(fixture, "default"));
}

FIXTURE_TEST(without_memory_a_file_leaves_the_settings_as_they_were) {
    assert_loads(fixture, "logfile before\nlayout l FIELD s 3\nboard x l\n");
    const char *path = write_file(fixture, FULL_TEXT);
    OWNED char *before = print_all(&fixture->settings);
    uint64_t live_count = memory_live_count();
    bool is_done = false;
    uint64_t failures = 0;
    for (uint64_t nth = 1; !is_done; nth++) {
        memory_fail_at(nth);
        is_done = settings_load_file(&fixture->settings, path, fixture->error);
        memory_fail_at(0);
        if (!is_done) {
            failures++;
            assert_non_null(strcasestr(fixture->error, "out of memory"));
            char *after = print_all(&fixture->settings);
            assert_string_equal(after, before);
            free(after);
            assert_null(fixture->settings.file_path);
            assert_int_equal(memory_live_count(), live_count);
        }
    }
    assert_true(failures > 15);
    assert_string_equal(fixture->settings.file_path, path);
    assert_finishes(fixture);
}

/* ---- Output of the table ---- */

FIXTURE_TEST(what_is_printed_loads_back_to_the_same) {
    assert_loads(fixture, FULL_TEXT "layout m FIELD b 40 SCALE 2\nboard \"q\\\"\\x01 *\" m\n"
                                    "maxmemory 3gb\nloglevel debug\n");
    OWNED char *printed = print_all(&fixture->settings);
    static struct settings again;
    assert_true(settings_init(&again));
    if (!setting_file_apply_text(&again, bytes_from_text(printed), "printed", fixture->error)) {
        fail_msg("%s", fixture->error);
    }
    OWNED char *printed_again = print_all(&again);
    assert_string_equal(printed_again, printed);
    settings_deinit(&again);
}

/* Not inlined: gcc would report the stream's buffer as a dangling pointer. */
__attribute__((noinline)) static char *written_by(void (*write)(FILE *file)) {
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    write(file);
    fclose(file);
    return text;
}

/* A page that is made of the table, as it is in the tree. */
static char *read_page(const char *name) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    assert_true(getdelim(&text, &size, '\0', file) > 0);
    fclose(file);
    return text;
}

/* Remove the "# " from the line of a setting. */
static void uncomment(char *text, const char *name) {
    const char *found = strstr(text, formatted("\n#\n# %s ", name));
    if (found == NULL) {
        fail_msg("leaderboard.conf has no line for %s", name);
    } else {
        size_t mark = (size_t)(found - text) + strlen("\n#\n");
        text[mark] = ' ';
    }
}

FIXTURE_TEST(the_example_file_changes_nothing_and_has_every_setting) {
    OWNED char *before = print_all(&fixture->settings);
    OWNED char *text = read_page("leaderboard.conf");
    assert_loads(fixture, text);
    OWNED char *after = print_all(&fixture->settings);
    assert_string_equal(after, before);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        uncomment(text, setting->name);
    }
    assert_loads(fixture, text);
    assert_finishes(fixture);
    assert_string_equal(line_of(&fixture->settings, "board", 0), "race:* laps");
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        if (setting->example == NULL) {
            assert_string_equal(line_of(&fixture->settings, setting->name, 0),
                                setting->default_value);
        }
    }
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        assert_true(strcspn(line, "\n") <= 100);
    }
}

/* The layouts shown in the explanations are valid. */
FIXTURE_TEST(the_examples_of_layouts_load) {
    const char *at = setting_named("layout")->summary;
    unsigned count = 0;
    while ((at = strstr(at, "\n    layout ")) != NULL) {
        assert_loads(fixture, formatted("%.*s", (int)strcspn(at + 1, "\n"), at + 1));
        count++;
        at++;
    }
    assert_int_equal(count, 3);
    assert_non_null(strstr(setting_named("layout")->summary, "\n    FIELD score 33 SIGNED TIME 31 "
                                                             "S\n"));
}

TEST_WITH(docs_and_help_name_every_setting, set_up, tear_down) {
    OWNED char *docs = read_page("docs/reference/settings.md");
    OWNED char *help = written_by(settings_write_help);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        assert_non_null(strstr(docs, formatted("\n### %s\n", setting->name)));
        assert_non_null(strstr(help, formatted("\n  --%s ", setting->name)));
    }
}
