/* From a name to its entry, refusals, key positions, syntax, and the counting around a run. */
#include <ctype.h>

#include "server/commands/table.h"
#include "server/dispatch/explain.h"
#include "server/dispatch/syntax.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"

static const struct stats_command *stats_of(struct harness *h, const char *name) {
    uint32_t index = command_index(command_find(bytes_from_text(name)));
    assert_true(index < command_count());
    return &h->server.stats.commands[index];
}

/* ---- lookup ---- */

SERVER_TEST(every_command_is_found_by_its_name_in_any_case) {
    struct random random = random_begin(__func__);
    for (const struct command_row *row = command_table; row->command != NULL; row++) {
        char name[64];
        size_t size = strlen(row->command->name);
        for (int round = 0; round < 20; round++) {
            for (size_t i = 0; i < size; i++) {
                char letter = row->command->name[i];
                name[i] = (char)(random_below(&random, 2) == 0 ? tolower(letter) : letter);
            }
            const struct command *found = command_find((struct bytes){.at = name, .size = size});
            assert_ptr_equal(found->name, row->command->name);
        }
    }
}

SERVER_TEST(a_name_that_differs_in_one_byte_is_not_found) {
    for (const struct command_row *row = command_table; row->command != NULL; row++) {
        char name[64];
        size_t size = strlen(row->command->name);
        for (size_t at = 0; at < size; at++) {
            for (int byte = 0; byte < 256; byte++) {
                memcpy(name, row->command->name, size);
                name[at] = (char)byte;
                const struct command *found =
                    command_find((struct bytes){.at = name, .size = size});
                bool is_same = tolower(byte) == tolower(row->command->name[at]);
                assert_int_equal(found != NULL && found->name == row->command->name, is_same);
            }
        }
    }
}

SERVER_TEST(a_longer_or_shorter_name_is_not_found) {
    assert_null(command_find(BYTES("")));
    assert_null(command_find(BYTES("P")));
    assert_null(command_find(BYTES("PIN")));
    assert_null(command_find(BYTES("PINGG")));
    assert_null(command_find(BYTES("PING\0")));
    assert_null(command_find(BYTES("ZREVRANGEBYSCOREZ")));
    assert_null(command_find(BYTES("ZREVRANGEBYSCORZREVRANGEBYSCORE")));
}

SERVER_TEST(numbers_cover_commands_and_subcommands_without_a_gap) {
    uint32_t count = 0;
    for (const struct command_row *row = command_table; row->command != NULL; row++) {
        const struct command *container = command_by_index(count);
        assert_ptr_equal(container->name, row->command->name);
        assert_int_equal(command_index(container), count);
        assert_false(command_is_subcommand(count));
        count++;
        const struct command *const *subcommand = row->command->subcommands;
        for (; subcommand != NULL && *subcommand != NULL; subcommand++, count++) {
            assert_ptr_equal(command_by_index(count)->name, (*subcommand)->name);
            assert_true(command_is_subcommand(count));
            assert_int_equal(command_find_full_name(bytes_from_text(command_full_name(count))),
                             count);
        }
    }
    assert_int_equal(command_count(), count);
}

SERVER_TEST(a_subcommands_full_name_has_a_bar) {
    const struct command *client = command_find(BYTES("client"));
    assert_string_equal(command_full_name(command_index(client)), "client");
    assert_string_equal(command_full_name(command_find_full_name(BYTES("client|setName"))),
                        "client|setname");
    assert_int_equal(command_find_full_name(BYTES("client|setnames")), COMMAND_NONE);
    assert_int_equal(command_find_full_name(BYTES("ping|setname")), COMMAND_NONE);
}

/* ---- every entry is whole ---- */

static void check_arguments(const struct argument *arguments) {
    for (; arguments->name != NULL; arguments++) {
        bool is_group = arguments->type == ARGUMENT_ONEOF || arguments->type == ARGUMENT_BLOCK;
        assert_int_equal(arguments->children != NULL, is_group);
        assert_true(arguments->type != ARGUMENT_PURE_TOKEN || arguments->token != NULL);
        if (is_group) {
            check_arguments(arguments->children);
        }
    }
}

static void check_entry(const struct command *command) {
    static const char *const groups[] = {"generic",    "sorted-set", "hash",   "leaderboard",
                                         "connection", "server",     "pubsub", "transactions"};
    bool is_in_group = false;
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        is_in_group |= strcmp(command->group, groups[i]) == 0;
    }
    assert_true(is_in_group);
    assert_true(command->summary[0] >= 'A' && command->summary[0] <= 'Z');
    assert_int_not_equal(command->summary[strlen(command->summary) - 1], '.');
    assert_non_null(command->complexity);
    assert_string_equal(command->since, "1.0.0");
    assert_true(command->arity != 0);
    assert_true(command->run != NULL || command->subcommands != NULL);
    if (command->first_key > 0) {
        assert_true(command->key_step > 0 && command->last_key != 0);
        assert_true(command->arity <= 0 || command->first_key < command->arity);
        assert_non_null(command->arguments);
    }
    if (command->member_arg > 0) {
        assert_true(command->first_key > 0 && command->first_key < command->member_arg);
    }
    if (command->arguments != NULL) {
        check_arguments(command->arguments);
    }
}

SERVER_TEST(every_entry_says_all_that_documentation_needs) {
    for (uint32_t i = 0; i < command_count(); i++) {
        print_message("%s\n", command_full_name(i));
        check_entry(command_by_index(i));
    }
}

/* ---- refusals, in the words of Redis ---- */

SERVER_TEST(an_unknown_command_is_named_with_its_first_arguments) {
    harness_expect(h, s, "foo", "-ERR unknown command 'foo', with args beginning with: \r\n");
    harness_expect(h, s, "foo a 'b c'",
                   "-ERR unknown command 'foo', with args beginning with: 'a' 'b c' \r\n");
}

SERVER_TEST(an_unknown_commands_arguments_cannot_break_the_reply) {
    harness_expect(h, s, "\"f\\r\\no\" \"a\\r\\n+OK\\r\\n\"",
                   "-ERR unknown command 'f  o', with args beginning with: 'a  +OK  ' \r\n");
}

SERVER_TEST(an_unknown_commands_long_words_are_cut_at_128_bytes) {
    char words[600];
    memset(words, 'x', sizeof words);
    const struct bytes args[] = {
        {.at = words, .size = 300}, {.at = words, .size = 300}, {.at = words, .size = 300}};
    const char *reply = harness_run_args(h, s, args, 3);
    char expected[600];
    snprintf(expected, sizeof expected,
             "-ERR unknown command '%.128s', with args beginning with: '%.128s' \r\n", words,
             words);
    assert_string_equal(reply, expected);
}

SERVER_TEST(every_container_names_its_subcommands_and_points_to_help) {
    unsigned containers = 0;
    for (const struct command_row *row = command_table; row->command != NULL; row++) {
        const struct command *const *entry = row->command->subcommands;
        if (entry == NULL) {
            continue;
        }
        containers++;
        const char *name = row->command->name;
        const char *reply = harness_run_format(h, s, "%s help", name);
        assert_int_equal(reply[0], '*');
        assert_non_null(strstr(
            reply, formatted("\r\n+%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n",
                             name)));
        for (; *entry != NULL; entry++) {
            assert_non_null(strstr(reply, formatted("\r\n+%s", (*entry)->name)));
        }
        const char *line = formatted("%s foo_bar x", name);
        harness_expect(h, s, line,
                       formatted("-ERR unknown subcommand 'foo_bar'. Try %s HELP.\r\n", name));
    }
    assert_true(containers > 5);
}

/* Each command and subcommand, with one word less than it needs, and one more than it takes. */
SERVER_TEST(every_command_refuses_a_wrong_number_of_arguments_by_its_name_in_lower_case) {
    static struct bytes args[32];
    const struct command *container = NULL;
    const char *reply;
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        uint32_t name_size = command_is_subcommand(i) ? 2 : 1;
        container = name_size == 1 ? command : container;
        if ((command->flags & COMMAND_RUNS_QUEUE) != 0) {
            continue; /* EXEC ends its transaction */
        }
        uint32_t count_min = (uint32_t)abs(command->arity);
        assert_true(count_min < COUNT_OF(args));
        for (uint32_t count = 1; count <= count_min + 1; count++) {
            if (count < name_size || count == count_min ||
                (count > count_min && command->arity < 0)) {
                continue;
            }
            for (uint32_t word = 0; word < count; word++) {
                args[word] = BYTES("1");
            }
            args[0] = bytes_from_text(container->name);
            args[name_size - 1] = bytes_from_text(command->name);
            reply = harness_run_args(h, s, args, count);
            if (explain_covers(command)) {
                assert_non_null(strstr(reply, formatted(" (%s", container->name)));
                continue;
            }
            assert_string_equal(reply,
                                formatted("-ERR wrong number of arguments for '%s' command\r\n",
                                          command_full_name(i)));
        }
    }
    harness_expect(h, s, "CLIENT SETNAME",
                   "-ERR wrong number of arguments for 'client|setname' command\r\n");
    harness_expect(h, s, "ZADD k 1", "-ERR wrong number of arguments for 'zadd' command\r\n");
}

SERVER_TEST(without_a_password_only_a_few_commands_run) {
    harness_expect(h, s, "CONFIG SET requirepass secret", "+OK\r\n");
    server_set_user(&h->server, s, s->user, false);
    harness_expect(h, s, "PING", "-NOAUTH Authentication required.\r\n");
    harness_expect(h, s, "CLIENT ID", "-NOAUTH Authentication required.\r\n");
    harness_expect(h, s, "CONFIG GET requirepass", "-NOAUTH Authentication required.\r\n");
    harness_expect(h, s, "RESET", "+RESET\r\n");
    /* What is no command, or has the wrong arity, is said first, as Redis does. */
    server_set_user(&h->server, s, s->user, false);
    harness_expect_prefix(h, s, "foo", "-ERR unknown command 'foo'");
    harness_expect_prefix(h, s, "ECHO", "-ERR wrong number of arguments");
}

SERVER_TEST(past_maxmemory_writers_that_may_need_memory_are_refused) {
    harness_expect(h, s, "ZADD k 1 a", ":1\r\n");
    h->server.settings.maxmemory = 1;
    harness_expect(h, s, "ZADD k 1 b",
                   "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    harness_expect(h, s, "ZCARD k", ":1\r\n");
    harness_expect(h, s, "ZREM k a", ":1\r\n");
    h->server.settings.maxmemory = 0;
    harness_expect(h, s, "ZADD k 1 b", ":1\r\n");
}

#define LOADING "-LOADING Redis is loading the dataset in memory\r\n"

SERVER_TEST(while_boards_are_loaded_only_what_needs_none_runs) {
    h->server.durability.is_loading = true;
    h->server.settings.slowlog_log_slower_than_us = -1; /* any command may be slow */
    for (const struct command_row *row = command_table; row->command != NULL; row++) {
        bool reads = (row->command->flags & (COMMAND_READ | COMMAND_WRITE)) != 0;
        if (reads) {
            assert_int_equal(row->command->flags & COMMAND_LOADING, 0);
        }
    }
    harness_expect(h, s, "PING", LOADING);
    harness_expect(h, s, "ECHO a", "$1\r\na\r\n");
    harness_expect(h, s, "SELECT 1", "+OK\r\n");
    harness_expect_prefix(h, s, "HELLO", "*14\r\n");
    harness_expect_prefix(h, s, "INFO", "$");
    harness_expect_prefix(h, s, "CLIENT LIST", "$");
    harness_expect_prefix(h, s, "COMMAND COUNT", ":");
    harness_expect_prefix(h, s, "CONFIG GET save", "*2\r\n");
    harness_expect(h, s, "SLOWLOG LEN", ":0\r\n");
    harness_expect(h, s, "LATENCY LATEST", "*0\r\n");
    harness_expect(h, s, "ZADD k 1 a", LOADING);
    harness_expect(h, s, "ZCARD k", LOADING);
    harness_expect(h, s, "DBSIZE", LOADING);
    harness_expect(h, s, "KEYS *", LOADING);
    harness_expect(h, s, "FLUSHALL", LOADING);
    harness_expect(h, s, "MEMORY STATS", LOADING);
    harness_expect(h, s, "WATCH k", "+OK\r\n");
    /* What is wrong with the request itself is said first. */
    harness_expect_prefix(h, s, "ZCARD", "-ERR wrong number of arguments");
    assert_int_equal(stats_of(h, "ZADD")->rejected_calls, 1);
    h->server.durability.is_loading = false;
    /* What was watched may have been loaded since. */
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "ZADD k 1 a", "+QUEUED\r\n");
    harness_expect(h, s, "EXEC", "*-1\r\n");
    harness_expect(h, s, "ZADD k 1 a", ":1\r\n");
}

SERVER_TEST(a_transaction_that_needs_boards_is_discarded_while_they_are_loaded) {
    h->server.durability.is_loading = true;
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "ECHO a", "+QUEUED\r\n");
    harness_expect(h, s, "ZCARD k", LOADING);
    harness_expect(h, s, "EXEC",
                   "-EXECABORT Transaction discarded because of previous errors.\r\n");
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "ECHO a", "+QUEUED\r\n");
    harness_expect(h, s, "EXEC", "*1\r\n$1\r\na\r\n");
    h->server.durability.is_loading = false;
}

#define DISK "MISCONF Errors writing to the disk\r\n"

SERVER_TEST(while_the_disk_fails_writers_are_refused_and_readers_are_not) {
    harness_expect(h, s, "ZADD k 1 a", ":1\r\n");
    h->server.durability.write_refusal = "MISCONF Errors writing to the disk";
    harness_expect(h, s, "ZADD k 1 b", "-" DISK);
    harness_expect(h, s, "ZREM k a", "-" DISK);
    harness_expect(h, s, "DEL k", "-" DISK);
    harness_expect(h, s, "FLUSHALL", "-" DISK);
    harness_expect(h, s, "LB.CREATE b", "-" DISK);
    harness_expect(h, s, "ZSCORE k a", "$1\r\n1\r\n");
    harness_expect(h, s, "CONFIG SET timeout 0", "+OK\r\n");
    harness_expect_prefix(h, s, "INFO errorstats", "$");
    assert_non_null(strstr(h->reply.at, "errorstat_MISCONF:count=5"));
    h->server.durability.write_refusal = NULL;
    harness_expect(h, s, "ZADD k 1 b", ":1\r\n");
}

SERVER_TEST(while_the_disk_fails_no_transaction_writes) {
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "ZADD k 1 a", "+QUEUED\r\n");
    h->server.durability.write_refusal = "MISCONF Errors writing to the disk";
    harness_expect(h, s, "EXEC", "-EXECABORT Transaction discarded because of: " DISK);
    harness_expect(h, s, "EXISTS k", ":0\r\n");
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "ZADD k 1 a", "-" DISK);
    harness_expect(h, s, "EXEC",
                   "-EXECABORT Transaction discarded because of previous errors.\r\n");
    harness_expect(h, s, "MULTI", "+OK\r\n");
    harness_expect(h, s, "EXISTS k", "+QUEUED\r\n");
    harness_expect(h, s, "EXEC", "*1\r\n:0\r\n");
    h->server.durability.write_refusal = NULL;
}

/* ---- key positions ---- */

static int positions_of(const char *const *words, uint32_t count, uint32_t *positions) {
    struct bytes args[16];
    for (uint32_t i = 0; i < count; i++) {
        args[i] = bytes_from_text(words[i]);
    }
    const struct request request = {.count = count, .args = args};
    return syntax_key_positions(command_find(args[0]), &request, positions);
}

SERVER_TEST(keys_stand_where_the_entry_says) {
    uint32_t at[8] = {0};
    const char *zadd[] = {"ZADD", "k", "1", "a"};
    assert_int_equal(positions_of(zadd, 4, at), 1);
    assert_int_equal(at[0], 1);
    const char *del[] = {"DEL", "a", "b", "c"};
    assert_int_equal(positions_of(del, 4, at), 3);
    assert_int_equal(at[2], 3);
    const char *ping[] = {"PING"};
    assert_int_equal(positions_of(ping, 1, at), 0);
    assert_int_equal(positions_of(del, 1, at), -1);
}

SERVER_TEST(counted_keys_must_all_be_there) {
    uint32_t at[8] = {0};
    const char *zmpop[] = {"ZMPOP", "2", "a", "b", "MIN"};
    assert_int_equal(positions_of(zmpop, 5, at), 2);
    assert_int_equal(at[0], 2);
    assert_int_equal(at[1], 3);
    static const char *const wrong[] = {
        "0", "-1", "5", "9223372036854775807", "-9223372036854775808", "x", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        zmpop[1] = wrong[i];
        assert_int_equal(positions_of(zmpop, 5, at), -1);
    }
}

/* ---- counting ---- */

SERVER_TEST(calls_failures_and_refusals_are_counted_apart) {
    harness_run(h, s, "ECHO a");
    harness_run(h, s, "ECHO");
    harness_run(h, s, "SELECT 99");
    assert_int_equal(stats_of(h, "ECHO")->calls.count, 1);
    assert_int_equal(stats_of(h, "ECHO")->failed_calls, 0);
    assert_int_equal(stats_of(h, "ECHO")->rejected_calls, 1);
    assert_int_equal(stats_of(h, "SELECT")->calls.count, 1);
    assert_int_equal(stats_of(h, "SELECT")->failed_calls, 1);
    assert_int_equal(h->server.stats.error_replies, 2);
    assert_int_equal(h->server.stats.commands_processed, 2);
    assert_int_equal(s->command_count, 3);
}

SERVER_TEST(errors_are_counted_by_their_first_word) {
    harness_run(h, s, "foo");
    harness_run(h, s, "AUTH a b");
    harness_run(h, s, "SELECT 99");
    assert_int_equal(h->server.stats.error_kind_count, 2);
    assert_string_equal(h->server.stats.errors[0].prefix, "ERR");
    assert_int_equal(h->server.stats.errors[0].count, 2);
    assert_string_equal(h->server.stats.errors[1].prefix, "WRONGPASS");
}

SERVER_TEST(lookups_of_readers_are_hits_or_misses) {
    harness_run(h, s, "ZADD k 1 a");
    assert_int_equal(h->server.stats.keyspace_hits + h->server.stats.keyspace_misses, 0);
    harness_run(h, s, "ZSCORE k a");
    harness_run(h, s, "ZSCORE none a");
    assert_int_equal(h->server.stats.keyspace_hits, 1);
    assert_int_equal(h->server.stats.keyspace_misses, 1);
}

SERVER_TEST(a_threshold_of_0_logs_everything_and_no_secret) {
    h->server.settings.slowlog_log_slower_than_us = 0;
    harness_run(h, s, "ECHO visible");
    harness_run(h, s, "AUTH default sesame");
    assert_int_equal(h->server.slowlog.count, 2);
    const struct slowlog_entry *auth = stats_slowlog_newest(&h->server.slowlog, 0);
    for (uint32_t i = 0; i < auth->arg_count; i++) {
        assert_null(strstr(auth->args[i], "sesame"));
    }
    assert_string_equal(stats_slowlog_newest(&h->server.slowlog, 1)->args[1], "visible");
    h->server.settings.slowlog_log_slower_than_us = -1;
    harness_run(h, s, "ECHO visible");
    assert_int_equal(h->server.slowlog.count, 2);
}

SERVER_TEST(a_session_remembers_its_last_command_and_when) {
    h->wall_us += 90 * 1000000;
    harness_run(h, s, "client id");
    assert_string_equal(command_full_name(command_index(s->last_command)), "client|id");
    assert_int_equal(s->active_at_ms, HARNESS_MONOTONIC_START_US / 1000 + 90000);
}
