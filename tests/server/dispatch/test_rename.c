/* rename-command: which names are found afterwards, the errors, and chains of them. With the next
 * harness all names are back. */
#include "server/commands/table.h"
#include "tests/support/harness.h"
#include "tests/support/random.h"

static const char *give_name(const char *name, const char *new_name) {
    return command_set_name(bytes_from_text(name), bytes_from_text(new_name));
}

SERVER_TEST(a_renamed_command_runs_by_its_new_name_alone) {
    assert_null(give_name("zadd", "Put"));
    harness_expect(h, s, "PUT b 1 m", ":1\r\n");
    harness_expect_prefix(h, s, "ZADD b 1 m", "-ERR unknown command 'ZADD'");
    harness_expect(h, s, "put b 1", "-ERR wrong number of arguments for 'zadd' command\r\n");
    harness_expect(h, s, "COMMAND GETKEYS put b 1 m", "*1\r\n$1\r\nb\r\n");
}

SERVER_TEST(a_name_may_be_longer_than_any_commands) {
    assert_null(give_name("CONFIG", "b840fc02d524045429941cc15f59e41cb7be6c52"));
    harness_expect(h, s, "B840fc02d524045429941cc15f59e41cb7be6c52 GET port",
                   "*2\r\n$4\r\nport\r\n$4\r\n6379\r\n");
    harness_expect_prefix(h, s, "CONFIG GET port", "-ERR unknown command 'CONFIG'");
    char name[SETTING_RENAME_SIZE_MAX + 2];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_non_null(give_name("ZADD", name));
    name[sizeof name - 2] = '\0';
    assert_null(give_name("ZADD", name));
}

SERVER_TEST(with_an_empty_name_nobody_runs_it) {
    int64_t count = harness_run_integer(h, s, "COMMAND COUNT");
    assert_null(give_name("CONFIG", ""));
    harness_expect_prefix(h, s, "CONFIG GET port", "-ERR unknown command 'CONFIG'");
    assert_int_equal(harness_run_integer(h, s, "COMMAND COUNT"), count - 1);
    harness_expect(h, s, "COMMAND LIST FILTERBY PATTERN config*", "*0\r\n");
    harness_expect(h, s, "COMMAND INFO config", "*1\r\n$-1\r\n");
    harness_expect(h, s, "COMMAND DOCS config|get", "*0\r\n");
}

SERVER_TEST(the_errors_are_those_of_redis) {
    assert_string_equal(give_name("NOTHING", "x"), "No such command in rename-command");
    assert_string_equal(give_name("", "x"), "No such command in rename-command");
    assert_string_equal(give_name("config|get", "x"), "No such command in rename-command");
    assert_string_equal(give_name("ZADD", "zrem"), "Target command name already exists");
    assert_string_equal(give_name("ZADD", "zadd"), "Target command name already exists");
    assert_null(give_name("ZADD", ""));
    assert_string_equal(give_name("ZADD", "x"), "No such command in rename-command");
    assert_null(give_name("ZREM", "ZADD"));
    assert_string_equal(give_name("ZSCORE", "ZADD"), "Target command name already exists");
}

SERVER_TEST(names_may_be_passed_on) {
    assert_null(give_name("ZADD", "a"));
    assert_null(give_name("A", "b"));
    assert_null(give_name("ZREM", "ZADD"));
    assert_null(give_name("b", "ZREM"));
    harness_expect(h, s, "ZREM b 1 m", ":1\r\n");
    harness_expect(h, s, "ZADD b m", ":1\r\n");
    harness_expect_prefix(h, s, "b x", "-ERR unknown command 'b'");
}

SERVER_TEST(orders_of_players_find_their_command_by_its_own_name) {
    assert_null(give_name("LB.FORGET", "erase"));
    const struct command *forget = command_find(BYTES("erase"));
    assert_non_null(forget);
    assert_int_equal(command_find_original(BYTES("LB.Forget")), command_index(forget));
    assert_int_equal(command_find_original(BYTES("erase")), COMMAND_NONE);
    uint32_t get = command_find_full_name(BYTES("config|get"));
    assert_null(give_name("CONFIG", "settings"));
    assert_int_equal(command_find_full_name(BYTES("config|get")), COMMAND_NONE);
    assert_int_equal(command_find_full_name(BYTES("settings|get")), get);
    assert_int_equal(command_find_original(BYTES("CONFIG|GET")), get);
    assert_int_equal(command_find_original(BYTES("settings|get")), COMMAND_NONE);
}

/* The twin: the new name of each command, in the order of the table. */
SERVER_TEST(random_names_are_found_as_in_a_list) {
    enum { COMMANDS = 200, NAME_SIZE = 24, RENAMED = 60 };
    static char names[COMMANDS][NAME_SIZE];
    struct random random = random_begin(__func__);
    size_t count = 0;
    for (; command_table[count].command != NULL; count++) {
        assert_true(count < COMMANDS);
        snprintf(names[count], NAME_SIZE, "%s", command_table[count].command->name);
    }
    unsigned renamed = 0;
    for (int step = 0; step < 3000; step++) {
        size_t from = random_below(&random, count);
        size_t to = random_below(&random, count);
        char new_name[NAME_SIZE];
        bool is_own = random_below(&random, 2) == 0;
        if (is_own) {
            snprintf(new_name, sizeof new_name, "%s", command_table[to].command->name);
        } else {
            snprintf(new_name, sizeof new_name, "name-%d", (int)random_below(&random, 50));
        }
        bool is_taken = false;
        for (size_t i = 0; i < count; i++) {
            is_taken |= strcasecmp(names[i], new_name) == 0;
        }
        if (renamed == RENAMED || names[from][0] == '\0') {
            break;
        }
        const char *error = give_name(names[from], new_name);
        assert_int_equal(error != NULL, is_taken);
        if (error == NULL) {
            renamed += strcmp(names[from], command_table[from].command->name) == 0;
            snprintf(names[from], NAME_SIZE, "%s", new_name);
        }
        for (size_t i = 0; i < count; i++) {
            const struct command *found = command_find(bytes_from_text(names[i]));
            assert_non_null(found);
            assert_string_equal(found->name, command_table[i].command->name);
        }
    }
    assert_true(renamed > 10);
}
