/* COMMAND, by bytes in and bytes out. What the entries promise: tests/server/dispatch/test_command.c. */
#include "server/commands/table.h"
#include "tests/support/harness.h"

static uint32_t table_size(void) {
    uint32_t count = 0;
    while (command_table[count].command != NULL) {
        count++;
    }
    return count;
}

/* The text after one RESP value. Fails the test if there is no value. */
static const char *skip_value(const char *at) {
    const char *line_end = strstr(at, "\r\n");
    assert_non_null(line_end);
    int64_t count = strtoll(at + 1, NULL, 10);
    const char *next = line_end + 2;
    switch (at[0]) {
    case '$':
        return count < 0 ? next : next + count + 2;
    case '%':
        count *= 2;
        break;
    case '*':
    case '~':
        break;
    default:
        assert_non_null(strchr("+:_,", at[0]));
        return next;
    }
    for (int64_t i = 0; i < count; i++) {
        next = skip_value(next);
    }
    return next;
}

/* ---- the whole table ---- */

SERVER_TEST(count_counts_the_commands_of_the_table) {
    assert_int_equal(harness_run_integer(h, s, "COMMAND COUNT"), table_size());
}

SERVER_TEST(every_form_is_one_whole_value_in_both_protocols) {
    static const char *const lines[] = {"COMMAND", "COMMAND INFO", "COMMAND DOCS", "COMMAND LIST",
                                        "COMMAND HELP"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        for (uint8_t protocol = 2; protocol <= 3; protocol++) {
            s->protocol = protocol;
            const char *reply = harness_run(h, s, lines[i]);
            assert_ptr_equal(skip_value(reply), reply + h->reply.size);
        }
    }
}

SERVER_TEST(command_and_command_info_tell_of_every_command) {
    char header[32];
    int size = snprintf(header, sizeof header, "*%u\r\n*10\r\n", table_size());
    assert_int_equal(strncmp(harness_run(h, s, "COMMAND"), header, (size_t)size), 0);
    assert_int_equal(strncmp(harness_run(h, s, "COMMAND INFO"), header, (size_t)size), 0);
    size = snprintf(header, sizeof header, "*%u\r\n$", 2 * table_size());
    assert_int_equal(strncmp(harness_run(h, s, "COMMAND DOCS"), header, (size_t)size), 0);
    s->protocol = 3;
    size = snprintf(header, sizeof header, "%%%u\r\n$", table_size());
    assert_int_equal(strncmp(harness_run(h, s, "COMMAND DOCS"), header, (size_t)size), 0);
}

/* ---- COMMAND INFO ---- */

SERVER_TEST(info_has_redis_shape) {
    harness_expect(h, s, "COMMAND INFO expire",
                   "*1\r\n*10\r\n$6\r\nexpire\r\n:-3\r\n*2\r\n+write\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
                   "*3\r\n+@keyspace\r\n+@write\r\n+@fast\r\n*0\r\n"
                   "*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RW\r\n+update\r\n"
                   "$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n"
                   "$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n"
                   "$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n"
                   "$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n"
                   "$5\r\nlimit\r\n:0\r\n*0\r\n");
    s->protocol = 3;
    harness_expect(h, s, "COMMAND INFO EXPIRE",
                   "*1\r\n*10\r\n$6\r\nexpire\r\n:-3\r\n~2\r\n+write\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
                   "~3\r\n+@keyspace\r\n+@write\r\n+@fast\r\n~0\r\n"
                   "~1\r\n%3\r\n$5\r\nflags\r\n~2\r\n+RW\r\n+update\r\n"
                   "$12\r\nbegin_search\r\n%2\r\n$4\r\ntype\r\n$5\r\nindex\r\n"
                   "$4\r\nspec\r\n%1\r\n$5\r\nindex\r\n:1\r\n"
                   "$9\r\nfind_keys\r\n%2\r\n$4\r\ntype\r\n$5\r\nrange\r\n"
                   "$4\r\nspec\r\n%3\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n"
                   "$5\r\nlimit\r\n:0\r\n~0\r\n");
}

SERVER_TEST(info_of_an_unknown_name_is_nil_in_its_place) {
    harness_expect(h, s, "COMMAND INFO foo zadd|foo object|foo \"\"",
                   "*4\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n");
    harness_expect_prefix(h, s, "COMMAND INFO foo ttl", "*2\r\n$-1\r\n*10\r\n$3\r\nttl\r\n");
    s->protocol = 3;
    harness_expect(h, s, "COMMAND INFO foo", "*1\r\n_\r\n");
}

SERVER_TEST(a_subcommand_is_found_by_its_full_name) {
    harness_expect_prefix(h, s, "COMMAND INFO OBJECT|encoding",
                          "*1\r\n*10\r\n$15\r\nobject|encoding\r\n:3\r\n*1\r\n+readonly\r\n"
                          ":2\r\n:2\r\n:1\r\n*3\r\n+@keyspace\r\n+@read\r\n+@slow\r\n");
    harness_expect_prefix(h, s, "COMMAND INFO slowlog",
                          "*1\r\n*10\r\n$7\r\nslowlog\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n"
                          "*1\r\n+@slow\r\n*0\r\n*0\r\n*4\r\n*10\r\n$11\r\nslowlog|get\r\n");
}

SERVER_TEST(two_keys_are_two_key_specifications) {
    const char *reply = harness_run(h, s, "COMMAND INFO copy");
    const char *source = strstr(reply, "*2\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n");
    assert_non_null(source);
    assert_non_null(strstr(source, "*2\r\n+OW\r\n+update\r\n"));
}

SERVER_TEST(keys_that_a_count_announces_are_a_keynum_specification) {
    harness_expect_part(h, s, "COMMAND INFO zmpop", "+movablekeys\r\n");
    harness_expect_part(h, s, "COMMAND INFO zmpop",
                        "$6\r\nkeynum\r\n$4\r\nspec\r\n*6\r\n$9\r\nkeynumidx\r\n:0\r\n"
                        "$8\r\nfirstkey\r\n:1\r\n$7\r\nkeystep\r\n:1\r\n");
}

SERVER_TEST(the_key_of_an_option_is_a_keyword_specification) {
    static const char *const commands[][2] = {
        {"lb.range", ":4"}, {"lb.around", ":5"}, {"lb.get", ":4"}};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const char *reply = harness_run_format(h, s, "COMMAND INFO %s", commands[i][0]);
        assert_non_null(strstr(reply, "+movablekeys\r\n"));
        const char *keys = strstr(reply, "*3\r\n+RO\r\n+access\r\n+incomplete\r\n");
        assert_non_null(keys);
        assert_non_null(strstr(
            keys, formatted("$7\r\nkeyword\r\n$4\r\nspec\r\n*4\r\n$7\r\nkeyword\r\n$5\r\nSINCE"
                            "\r\n$9\r\nstartfrom\r\n%s\r\n",
                            commands[i][1])));
    }
}

SERVER_TEST(sources_that_a_count_announces_are_only_read) {
    static const char stored[] = "*2\r\n*6\r\n$5\r\nflags\r\n*2\r\n+OW\r\n+update\r\n";
    static const char read[] = "*2\r\n+RO\r\n+access\r\n";
    static const char *const names[] = {"zunionstore", "zinterstore", "zdiffstore", "zrangestore"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *reply = harness_run_format(h, s, "COMMAND INFO %s", names[i]);
        bool is_counted = i < 3;
        assert_non_null(strstr(reply, is_counted ? "+movablekeys\r\n:1\r\n:1\r\n:1\r\n"
                                                 : "+denyoom\r\n:1\r\n:2\r\n:1\r\n"));
        const char *target = strstr(reply, stored);
        assert_non_null(target);
        const char *source = strstr(target, read);
        assert_non_null(source);
        assert_non_null(strstr(source, "$5\r\nindex\r\n:2\r\n"));
        assert_int_equal(strstr(source, "$6\r\nkeynum\r\n") != NULL, is_counted);
    }
}

/* ---- COMMAND DOCS ---- */

SERVER_TEST(docs_have_redis_shape) {
    harness_expect_prefix(h, s, "COMMAND DOCS copy",
                          "*2\r\n$4\r\ncopy\r\n*10\r\n$7\r\nsummary\r\n");
    const char *reply = h->reply.at;
    assert_non_null(strstr(reply, "$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$7\r\ngeneric\r\n"
                                  "$10\r\ncomplexity\r\n"));
    assert_non_null(strstr(
        reply, "$9\r\narguments\r\n*4\r\n"
               "*8\r\n$4\r\nname\r\n$6\r\nsource\r\n$4\r\ntype\r\n$3\r\nkey\r\n"
               "$12\r\ndisplay_text\r\n$6\r\nsource\r\n$14\r\nkey_spec_index\r\n:0\r\n"
               "*8\r\n$4\r\nname\r\n$11\r\ndestination\r\n$4\r\ntype\r\n$3\r\nkey\r\n"
               "$12\r\ndisplay_text\r\n$11\r\ndestination\r\n$14\r\nkey_spec_index\r\n:1\r\n"
               "*10\r\n$4\r\nname\r\n$14\r\ndestination-db\r\n$4\r\ntype\r\n$7\r\ninteger\r\n"
               "$12\r\ndisplay_text\r\n$14\r\ndestination-db\r\n$5\r\ntoken\r\n$2\r\nDB\r\n"
               "$5\r\nflags\r\n*1\r\n+optional\r\n"
               "*10\r\n$4\r\nname\r\n$7\r\nreplace\r\n$4\r\ntype\r\n$10\r\npure-token\r\n"
               "$12\r\ndisplay_text\r\n$7\r\nreplace\r\n$5\r\ntoken\r\n$7\r\nREPLACE\r\n"
               "$5\r\nflags\r\n*1\r\n+optional\r\n"));
}

SERVER_TEST(docs_nest_the_arguments_of_a_choice) {
    const char *reply = harness_run(h, s, "COMMAND DOCS expire");
    assert_non_null(strstr(reply,
                           "*8\r\n$4\r\nname\r\n$9\r\ncondition\r\n$4\r\ntype\r\n$5\r\noneof\r\n"
                           "$5\r\nflags\r\n*1\r\n+optional\r\n$9\r\narguments\r\n*4\r\n"
                           "*8\r\n$4\r\nname\r\n$2\r\nnx\r\n"));
    s->protocol = 3;
    reply = harness_run(h, s, "COMMAND DOCS expire");
    assert_non_null(strstr(reply,
                           "%4\r\n$4\r\nname\r\n$9\r\ncondition\r\n$4\r\ntype\r\n$5\r\noneof\r\n"
                           "$5\r\nflags\r\n~1\r\n+optional\r\n$9\r\narguments\r\n*4\r\n"
                           "%4\r\n$4\r\nname\r\n$2\r\nnx\r\n"));
}

SERVER_TEST(docs_leave_unknown_names_out) {
    harness_expect(h, s, "COMMAND DOCS foo", "*0\r\n");
    harness_expect_prefix(h, s, "COMMAND DOCS ttl foo TTL", "*4\r\n$3\r\nttl\r\n");
    s->protocol = 3;
    harness_expect(h, s, "COMMAND DOCS foo", "%0\r\n");
    harness_expect_prefix(h, s, "COMMAND DOCS ttl", "%1\r\n$3\r\nttl\r\n%5\r\n");
}

SERVER_TEST(docs_of_a_container_hold_its_subcommands) {
    harness_expect_part(h, s, "COMMAND DOCS slowlog",
                        "$11\r\nsubcommands\r\n*8\r\n$11\r\nslowlog|get\r\n*10\r\n");
    harness_expect_prefix(h, s, "COMMAND DOCS slowlog|get", "*2\r\n$11\r\nslowlog|get\r\n*10\r\n");
}

/* ---- COMMAND LIST ---- */

SERVER_TEST(list_names_commands_and_subcommands) {
    char header[32];
    int size = snprintf(header, sizeof header, "*%u\r\n", command_count());
    const char *reply = harness_run(h, s, "COMMAND LIST");
    assert_int_equal(strncmp(reply, header, (size_t)size), 0);
    assert_non_null(strstr(reply, "$4\r\nzadd\r\n"));
    assert_non_null(strstr(reply, "$15\r\nobject|encoding\r\n"));
}

SERVER_TEST(list_filters_by_pattern_in_any_case) {
    harness_expect(h, s, "COMMAND LIST FILTERBY PATTERN TT?", "*1\r\n$3\r\nttl\r\n");
    harness_expect(h, s, "COMMAND LIST filterby pattern *|REFCOUNT",
                   "*1\r\n$15\r\nobject|refcount\r\n");
    harness_expect(h, s, "COMMAND LIST FILTERBY PATTERN nothing*", "*0\r\n");
    harness_expect(h, s, "COMMAND LIST FILTERBY PATTERN \"\"", "*0\r\n");
}

SERVER_TEST(list_filters_by_category_and_module) {
    const char *reply = harness_run(h, s, "COMMAND LIST FILTERBY ACLCAT SortedSet");
    assert_non_null(strstr(reply, "$4\r\nzadd\r\n"));
    assert_null(strstr(reply, "$3\r\nttl\r\n"));
    reply = harness_run(h, s, "COMMAND LIST FILTERBY ACLCAT dangerous");
    assert_non_null(strstr(reply, "$4\r\nkeys\r\n"));
    assert_non_null(strstr(reply, "$8\r\nflushall\r\n"));
    harness_expect(h, s, "COMMAND LIST FILTERBY ACLCAT nothing", "*0\r\n");
    harness_expect(h, s, "COMMAND LIST FILTERBY ACLCAT @sortedset", "*0\r\n");
    harness_expect(h, s, "COMMAND LIST FILTERBY MODULE any", "*0\r\n");
}

SERVER_TEST(categories_are_those_of_redis) {
    static const char *const lines[][2] = {
        {"command|info", "+@slow\r\n+@connection\r\n"},
        {"client|info", "+@slow\r\n+@connection\r\n"},
        {"info", "+@slow\r\n+@dangerous\r\n"},
        {"flushdb", "+@keyspace\r\n+@write\r\n+@slow\r\n+@dangerous\r\n"},
        {"dbsize", "+@keyspace\r\n+@read\r\n+@fast\r\n"},
        {"zmpop", "+@write\r\n+@sortedset\r\n+@slow\r\n"},
        {"zunion", "+@read\r\n+@sortedset\r\n+@slow\r\n"},
        {"zinterstore", "+@write\r\n+@sortedset\r\n+@slow\r\n"},
        {"client", "+@slow\r\n"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        uint32_t count = 0;
        for (const char *at = lines[i][1]; (at = strchr(at, '@')) != NULL; at++) {
            count++;
        }
        assert_non_null(strstr(harness_run_format(h, s, "COMMAND INFO %s", lines[i][0]),
                               formatted("*%u\r\n%s*", count, lines[i][1])));
    }
}

SERVER_TEST(removed_keys_are_marked_as_removed) {
    harness_expect_part(h, s, "COMMAND INFO unlink", "*2\r\n+RM\r\n+delete\r\n");
}

SERVER_TEST(list_refuses_other_words) {
    static const char *const lines[] = {
        "COMMAND LIST FOO",
        "COMMAND LIST FILTERBY",
        "COMMAND LIST FILTERBY PATTERN",
        "COMMAND LIST FILTERBY FOO x",
        "COMMAND LIST FILTERBY PATTERN x y",
        "COMMAND LIST FOO PATTERN x",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        harness_expect(h, s, lines[i], "-ERR syntax error\r\n");
    }
}

/* ---- COMMAND GETKEYS ---- */

SERVER_TEST(getkeys_finds_the_keys_of_a_command) {
    static const char *const lines[][2] = {
        {"zadd a 1 m 2 n", "*1\r\n$1\r\na\r\n"},
        {"DEL a b a", "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\na\r\n"},
        {"copy a b DB 3", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
        {"zmpop 2 a b MIN COUNT 3", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
        {"zunion 2 a b WEIGHTS 1 2", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
        {"zunionstore d 2 a b WEIGHTS 1 2", "*3\r\n$1\r\nd\r\n$1\r\na\r\n$1\r\nb\r\n"},
        {"zrangestore d a 0 -1", "*2\r\n$1\r\nd\r\n$1\r\na\r\n"},
        {"object encoding a", "*1\r\n$1\r\na\r\n"},
        {"memory usage a", "*1\r\n$1\r\na\r\n"},
        {"lb.get a 2 SINCE x SORT", "*1\r\n$1\r\na\r\n"},
        {"lb.get a 2 SINCE x SORT SINCE b TAGS", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
        {"lb.get a 1 x WHERE SINCE c SINCE b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
        {"lb.get a x x SINCE b", "*1\r\n$1\r\na\r\n"},
        {"lb.get a 9 x SINCE b", "*1\r\n$1\r\na\r\n"},
        {"lb.range a 0 1 DATA p* FIELDS 2 SINCE f since b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
        {"lb.range a 0 1 DATA p* FIELDS 9 SINCE b", "*1\r\n$1\r\na\r\n"},
        {"lb.range a 0 1 SINCE LAST", "*1\r\n$1\r\na\r\n"},
        {"lb.range a 0 1 SINCE", "*1\r\n$1\r\na\r\n"},
        {"lb.around a MEMBER SINCE 1 SINCE b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_string_equal(harness_run_format(h, s, "COMMAND GETKEYS %s", lines[i][0]),
                            lines[i][1]);
    }
}

SERVER_TEST(getkeys_refuses_what_has_no_keys) {
    static const char *const lines[][2] = {
        {"foo", "-ERR Invalid command specified\r\n"},
        {"object foo a", "-ERR Invalid command specified\r\n"},
        {"ping", "-ERR The command has no key arguments\r\n"},
        {"object", "-ERR The command has no key arguments\r\n"},
        {"slowlog get 1", "-ERR The command has no key arguments\r\n"},
        {"zadd", "-ERR Invalid number of arguments specified for command\r\n"},
        {"zadd a 1", "-ERR Invalid number of arguments specified for command\r\n"},
        {"ttl a b", "-ERR Invalid number of arguments specified for command\r\n"},
        {"zmpop 9 a b MIN", "-ERR Invalid arguments specified for command\r\n"},
        {"zmpop 0 a MIN", "-ERR Invalid arguments specified for command\r\n"},
        {"zmpop -1 a MIN", "-ERR Invalid arguments specified for command\r\n"},
        {"zmpop x a MIN", "-ERR Invalid arguments specified for command\r\n"},
        {"zmpop 9223372036854775807 a MIN", "-ERR Invalid arguments specified for command\r\n"},
        {"zmpop 4611686018427387903 a MIN", "-ERR Invalid arguments specified for command\r\n"},
        {"zmpop -9223372036854775808 a MIN", "-ERR Invalid arguments specified for command\r\n"},
        {"zunionstore d 3 a b", "-ERR Invalid arguments specified for command\r\n"},
        {"zinter 0 a", "-ERR Invalid arguments specified for command\r\n"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_string_equal(harness_run_format(h, s, "COMMAND GETKEYS %s", lines[i][0]),
                            lines[i][1]);
    }
    harness_expect(h, s, "COMMAND GETKEYS",
                   "-ERR wrong number of arguments for 'command|getkeys' command\r\n");
}

/* ---- MODULE ---- */

SERVER_TEST(there_are_no_modules) {
    harness_expect(h, s, "MODULE LIST", "*0\r\n");
    harness_expect_prefix(h, s, "MODULE HELP",
                          "*5\r\n+MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    harness_expect(h, s, "MODULE LOAD x.so",
                   "-ERR unknown subcommand 'LOAD'. Try MODULE HELP.\r\n");
    harness_expect(h, s, "MODULE", "-ERR wrong number of arguments for 'module' command\r\n");
    harness_expect(h, s, "MODULE LIST x",
                   "-ERR wrong number of arguments for 'module|list' command\r\n");
}
