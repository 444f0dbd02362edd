/* From the text of an entry to its arguments, arity and keys, and back to the manual's form. */
#include "tests/support/test.h"

#include "server/dispatch/syntax.h"

static void run(struct call *call) {
    (void)call;
}

static struct command apply(const char *syntax, bool is_subcommand) {
    struct command command = {.name = "SAMPLE", .syntax = syntax, .run = run};
    syntax_apply(&command, is_subcommand);
    return command;
}

static int setup(void **state) {
    (void)state;
    syntax_reset();
    return 0;
}

TEST_WITH(syntax_is_printed_as_in_the_manual_of_redis, setup, NULL) {
    static const struct {
        const char *syntax, *printed;
    } samples[] = {
        {"key member", "key member"},
        {"a:integer b:double c:unix-time", "a b c"},
        {"[username] password", "[username] password"},
        {"key...", "key [key ...]"},
        {"[name...]", "[name [name ...]]"},
        {"condition=[NX | XX]", "[NX | XX]"},
        {"where=<MIN | MAX> [COUNT count:integer]", "<MIN | MAX> [COUNT count]"},
        {"where=<MEMBER member | SCORE score> n", "<MEMBER member | SCORE score> n"},
        {"[LIMIT offset count]", "[LIMIT offset count]"},
        {"[WEIGHTS weight...]", "[WEIGHTS weight [weight ...]]"},
        {"[AGGREGATE <SUM | MIN>]", "[AGGREGATE <SUM | MIN>]"},
        {"data=(score member)...", "score member [score member ...]"},
        {"(PREFIX prefix)...", "PREFIX prefix [PREFIX prefix ...]"},
        {"all=<pair=(key value)... | PACKED item=(value key)...>",
         "<key value [key value ...] | PACKED value key [value key ...]>"},
        {"options=[count [WITHSCORES]]", "[count [WITHSCORES]]"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        char out[256];
        struct command command = apply(samples[i].syntax, false);
        assert_int_equal(syntax_print(&command, out, sizeof out), strlen(samples[i].printed));
        assert_string_equal(out, samples[i].printed);
    }
}

TEST_WITH(syntax_is_cut_where_there_is_no_room, setup, NULL) {
    struct command command = apply("key condition=[NX | XX]", false);
    char out[8];
    assert_int_equal(syntax_print(&command, out, sizeof out), 7);
    assert_string_equal(out, "key [NX");
    assert_int_equal(syntax_print(&command, out, 1), 0);
    assert_string_equal(out, "");
    command = apply(NULL, false);
    assert_null(command.arguments);
    assert_int_equal(syntax_print(&command, out, sizeof out), 0);
}

TEST_WITH(an_argument_has_the_name_and_the_type_that_are_written, setup, NULL) {
    struct command command = apply("key to:key n:integer text [MATCH pattern] change=[CH] "
                                   "[AT time:unix-time] both=[LIMIT offset count] [X <A | B>]",
                                   false);
    static const struct {
        const char *name, *token;
        enum argument_type type;
    } expected[] = {
        {"key", NULL, ARGUMENT_KEY},
        {"to", NULL, ARGUMENT_KEY},
        {"n", NULL, ARGUMENT_INTEGER},
        {"text", NULL, ARGUMENT_STRING},
        {"pattern", "MATCH", ARGUMENT_PATTERN},
        {"change", "CH", ARGUMENT_PURE_TOKEN},
        {"time", "AT", ARGUMENT_UNIX_TIME},
        {"both", "LIMIT", ARGUMENT_BLOCK},
        {"x", "X", ARGUMENT_ONEOF},
    };
    const struct argument *argument = command.arguments;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++, argument++) {
        assert_string_equal(argument->name, expected[i].name);
        assert_int_equal(argument->type, expected[i].type);
        assert_int_equal(argument->flags, i < 4 ? 0 : ARGUMENT_OPTIONAL);
        if (expected[i].token == NULL) {
            assert_null(argument->token);
        } else {
            assert_string_equal(argument->token, expected[i].token);
        }
    }
    assert_null(argument->name);
}

TEST_WITH(the_arity_is_the_fewest_words_and_negative_if_there_may_be_more, setup, NULL) {
    static const struct {
        const char *syntax;
        int arity;
    } samples[] = {
        {NULL, 1},
        {"key", 2},
        {"key...", -2},
        {"[message]", -1},
        {"key [NX]", -2},
        {"where=<MEMBER member | SCORE score> n", 4},
        {"which=<a... | b=(c d)>", -2},
        {"filter=<old | new=<[ID id] | [TYPE type]>...>", -2},
        {"data=(score member)...", -3},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        struct command command = apply(samples[i].syntax, false);
        int args_min = samples[i].arity > 0 ? samples[i].arity : -samples[i].arity;
        assert_int_equal(command.arity, samples[i].arity);
        assert_int_equal(command.args_min, args_min);
        assert_int_equal(command.args_more,
                         samples[i].arity > 0 ? 0 : UINT32_MAX - (uint32_t)args_min);
        int subcommand = samples[i].arity + (samples[i].arity > 0 ? 1 : -1);
        assert_int_equal(apply(samples[i].syntax, true).arity, subcommand);
    }
    struct command odd = {.name = "ODD", .arity = -1, .run = run};
    syntax_apply(&odd, false);
    assert_int_equal(odd.arity, -1);
    struct command container = {.name = "CONTAINER"};
    syntax_apply(&container, false);
    assert_int_equal(container.arity, -2);
    for (uint32_t count = 0; count < 100; count++) {
        assert_true(count - container.args_min > container.args_more);
    }
}

TEST_WITH(keys_are_where_the_syntax_has_them, setup, NULL) {
    static const struct {
        const char *syntax;
        int first, last, step, count_arg;
    } samples[] = {
        {"pattern", 0, 0, 0, 0},
        {"key member...", 1, 1, 1, 0},
        {"key...", 1, -1, 1, 0},
        {"key newkey:key [EX seconds]", 1, 2, 1, 0},
        {"parameter key", 2, 2, 1, 0},
        {"numkeys:integer key... [LIMIT limit]", 0, 0, 0, 1},
        {"destination:key numkeys:integer key...", 1, 1, 1, 2},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        struct command command = apply(samples[i].syntax, false);
        assert_int_equal(command.first_key, samples[i].first);
        assert_int_equal(command.last_key, samples[i].last);
        assert_int_equal(command.key_step, samples[i].step);
        assert_int_equal(command.key_count_arg, samples[i].count_arg);
        assert_int_equal((command.flags & COMMAND_MOVABLE_KEYS) != 0, samples[i].count_arg > 0);
    }
    assert_int_equal(apply("key [SAMPLES count]", true).first_key, 2);
}
