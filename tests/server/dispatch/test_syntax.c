/* From the text of an entry to its arguments, arity and keys, and back to the manual's form; and
 * requests that are read by it. */
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

FIXTURE(setup) {
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

/* ---- requests ---- */

struct target {
    bool is_reverse;
    int64_t limit[2];
    int64_t count;
    struct bytes login[2];
    struct bytes name;
    uint32_t read_index;
    struct option_values fields;
    struct bytes one;
    struct option_uses pairs; /* of two options */
    struct option_uses words;
    bool is_alone;
    enum { WHERE_MIN, WHERE_MAX, WHERE_BETWEEN } where;
    enum { MODE_UNSAID, MODE_AT, MODE_SUM, MODE_LAST } mode;
    enum { AGGREGATE_SUM, AGGREGATE_MIN } aggregate;
    struct option_values range, members;
    int64_t number;
};

static bool read_even(const struct call *call, uint32_t index, void *target) {
    ((struct target *)target)->read_index = index;
    return call_arg(call, index).size % 2 == 0 || call_refuse(call, "ERR odd");
}

static const struct binding bindings[] = {
    {BIND("REV", struct target, is_reverse)},
    {BIND("LIMIT", struct target, limit[0])},
    {BIND("COUNT", struct target, count)},
    {BIND("AUTH", struct target, login[0])},
    {BIND("NAME", struct target, name)},
    {"EVEN", .read = read_even},
    {BIND("FIELDS", struct target, fields)},
    {BIND("ONE", struct target, one), .repeat = BINDING_ONCE_NAMED},
    {BIND("ALONE", struct target, is_alone), .repeat = BINDING_ONCE},
    {BIND("PAIR", struct target, pairs)},
    {BIND("NOPAIR", struct target, pairs)},
    {BIND("WORD", struct target, words)},
    {BIND("where", struct target, where)},
    {BIND("mode", struct target, mode)},
    {"AT", .read = read_even},
    {BIND("AGGREGATE", struct target, aggregate)},
    {BIND("range", struct target, range)},
    {BIND("member", struct target, members)},
    {BIND("number", struct target, number)},
    {0},
};

static const struct command entry = {
    .name = "SAMPLE",
    .syntax = "sort=[REV] both=[LIMIT offset:integer count:integer] "
              "[COUNT count:integer] [AUTH user password] which=[NAME name | EVEN word] [FIELDS "
              "n:integer field...] [ONE word] [ALONE] [PAIR name value]... [NOPAIR name value]... "
              "[WORD word]...",
    .bindings = bindings,
    .run = run,
};

/* The words of a line as a request, its reply, and what was read. */
struct sample {
    struct command command;
    struct bytes args[24];
    struct request request;
    struct buffer out;
    struct reply reply;
    struct call call;
    struct target target;
};

static void begin_as(struct sample *sample, const char *as, const char *hidden, const char *line) {
    *sample = (struct sample){.command = entry};
    sample->command.syntax = as;
    sample->command.hidden_syntax = hidden;
    syntax_apply(&sample->command, false);
    for (const char *at = line; *at != '\0'; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        sample->args[sample->request.count++] = (struct bytes){.at = at, .size = size};
        at += size;
    }
    sample->request.args = sample->args;
    buffer_init(&sample->out, 0);
    reply_init(&sample->reply, &sample->out, 2);
    sample->call = (struct call){
        .request = &sample->request, .command = &sample->command, .reply = &sample->reply};
}

static void begin(struct sample *sample, const char *line) {
    begin_as(sample, entry.syntax, NULL, line);
}

/* error NULL: everything was read. */
static struct target expect_as(const char *as, const char *hidden, const char *line,
                               const char *error) {
    struct sample sample;
    begin_as(&sample, as, hidden, line);
    assert_int_equal(syntax_read(&sample.call, &sample.target), error == NULL);
    assert_int_equal(sample.out.size, error != NULL ? strlen(error) : 0);
    assert_memory_equal(sample.out.at != NULL ? sample.out.at : "", error != NULL ? error : "",
                        sample.out.size);
    buffer_deinit(&sample.out);
    return sample.target;
}

static struct target expect(const char *line, const char *error) {
    return expect_as(entry.syntax, NULL, line, error);
}

TEST_WITH(options_come_in_any_order_and_case_and_the_last_one_counts, setup, NULL) {
    struct target target = expect("SAMPLE", NULL);
    assert_false(target.is_reverse);
    target =
        expect("SAMPLE count 1 LIMIT 2 -3 rev Count 7 NAME a AUTH u pw NAME bc EVEN four", NULL);
    assert_true(target.is_reverse);
    assert_int_equal(target.limit[0], 2);
    assert_int_equal(target.limit[1], -3);
    assert_int_equal(target.count, 7);
    assert_true(bytes_equal(target.login[0], BYTES("u")));
    assert_true(bytes_equal(target.login[1], BYTES("pw")));
    assert_true(bytes_equal(target.name, BYTES("bc")));
    assert_int_equal(target.read_index, 17);
}

TEST_WITH(counted_values_follow_their_number, setup, NULL) {
    assert_null(expect("SAMPLE REV", NULL).fields.at);
    struct target target = expect("SAMPLE FIELDS 1 x COUNT 4 FIELDS 3 a REV b COUNT 5", NULL);
    assert_int_equal(target.fields.count, 3);
    assert_int_equal(target.count, 5);
    assert_false(target.is_reverse);
    (void)expect("SAMPLE FIELDS 1", "-ERR syntax error\r\n");
    (void)expect("SAMPLE FIELDS x a", "-ERR value is not an integer or out of range\r\n");
    static const char *const lines[] = {"SAMPLE FIELDS 0 a b", "SAMPLE FIELDS 3 a b",
                                        "SAMPLE FIELDS -1 a b", "SAMPLE FIELDS 4294967297 a b"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        (void)expect(lines[i],
                     "-ERR FIELDS needs the number of values that follow it: 1..2 here\r\n");
    }
}

TEST_WITH(options_of_which_all_count_are_found_again, setup, NULL) {
    struct sample sample;
    static const uint32_t places[] = {2, 5, 11, 16};
    uint32_t found = 0;
    begin(&sample, "SAMPLE REV PAIR PAIR WORD NOPAIR a b FIELDS 1 PAIR PAIR c d WORD e PAIR f g");
    assert_true(syntax_read(&sample.call, &sample.target));
    assert_int_equal(sample.target.pairs.count, 4);
    assert_int_equal(sample.target.pairs.first, places[0]);
    assert_int_equal(sample.target.words.count, 1);
    assert_int_equal(sample.target.words.first, 14);
    struct option_uses left = sample.target.pairs;
    uint32_t at;
    for (const char *word; (word = syntax_take_use(&sample.call, &left, &at)) != NULL;) {
        assert_true(syntax_is_option(&sample.call, at));
        assert_string_equal(word, found == 1 ? "NOPAIR" : "PAIR");
        assert_int_equal(at, places[found++]);
    }
    assert_int_equal(found, 4);
    assert_false(syntax_is_option(&sample.call, 6));
    buffer_deinit(&sample.out);
    assert_int_equal(expect("SAMPLE REV", NULL).pairs.count, 0);
    (void)expect("SAMPLE PAIR a", "-ERR syntax error\r\n");
    (void)expect("SAMPLE WORD", "-ERR syntax error\r\n");
}

TEST_WITH(what_is_no_option_or_lacks_a_value_is_a_syntax_error, setup, NULL) {
    static const char *const lines[] = {"SAMPLE FOO",     "SAMPLE REV MIN", "SAMPLE LIMIT 1",
                                        "SAMPLE COUNT",   "SAMPLE AUTH u",  "SAMPLE NAME",
                                        "SAMPLE REVERSE", "SAMPLE REV 1"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        (void)expect(lines[i], "-ERR syntax error\r\n");
    }
}

TEST_WITH(the_first_mistake_decides_the_error, setup, NULL) {
    const char *integer = "-ERR value is not an integer or out of range\r\n";
    (void)expect("SAMPLE COUNT x FOO", integer);
    (void)expect("SAMPLE FOO COUNT x", "-ERR syntax error\r\n");
    (void)expect("SAMPLE LIMIT 1 9223372036854775808", integer);
    (void)expect("SAMPLE EVEN odd COUNT x", "-ERR odd\r\n");
    (void)expect("SAMPLE ONE a REV ONE a COUNT x", "-ERR ONE may be given once\r\n");
}

TEST_WITH(reading_to_the_first_other_argument_stops_there, setup, NULL) {
    static const struct {
        const char *line;
        uint32_t index;
    } samples[] = {
        {"SAMPLE REV COUNT 5 100 zoe REV", 4},
        {"SAMPLE 100 REV", 1},
        {"SAMPLE REV COUNT", 2},
        {"SAMPLE REV", 2},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        struct sample sample;
        begin(&sample, samples[i].line);
        uint32_t index = 1;
        assert_true(syntax_read_options(&sample.call, &index, &sample.target));
        assert_int_equal(index, samples[i].index);
        assert_int_equal(sample.out.size, 0);
        buffer_deinit(&sample.out);
    }
}

static const char syntax_error[] = "-ERR syntax error\r\n";

TEST_WITH(an_option_that_is_read_once_is_a_syntax_error_when_it_comes_again, setup, NULL) {
    assert_true(expect("SAMPLE ALONE", NULL).is_alone);
    (void)expect("SAMPLE ALONE REV alone", syntax_error);
}

TEST_WITH(of_alternatives_that_are_bound_one_may_be_given, setup, NULL) {
    static const char with_mode[] = "key mode=[AT time | SUM | LAST] [REV]";
    assert_int_equal(expect_as(with_mode, NULL, "SAMPLE k", NULL).mode, MODE_UNSAID);
    assert_int_equal(expect_as(with_mode, NULL, "SAMPLE k REV sum SUM", NULL).mode, MODE_SUM);
    struct target target = expect_as(with_mode, NULL, "SAMPLE k AT now1 REV", NULL);
    assert_int_equal(target.mode, MODE_AT);
    assert_int_equal(target.read_index, 3);
    (void)expect_as(with_mode, NULL, "SAMPLE k LAST REV AT now1",
                    "-ERR AT, SUM and LAST options at the same time are not compatible\r\n");
    (void)expect_as(with_mode, NULL, "SAMPLE k LAST AT odd", "-ERR odd\r\n");
}

TEST_WITH(a_value_may_be_one_of_several_words, setup, NULL) {
    static const char with_value[] = "[AGGREGATE <SUM | MIN>]";
    assert_int_equal(expect_as(with_value, NULL, "SAMPLE AGGREGATE min", NULL).aggregate,
                     AGGREGATE_MIN);
    (void)expect_as(with_value, NULL, "SAMPLE AGGREGATE max", syntax_error);
}

TEST_WITH(words_that_stand_by_their_places_come_before_the_options, setup, NULL) {
    static const char with_places[] =
        "key where=<MIN | MAX | between=(BETWEEN low high)> number:integer [REV]";
    struct target target = expect_as(with_places, NULL, "SAMPLE k max 7 REV", NULL);
    assert_int_equal(target.where, WHERE_MAX);
    assert_int_equal(target.number, 7);
    assert_true(target.is_reverse);
    target = expect_as(with_places, NULL, "SAMPLE k BETWEEN 1 2 8", NULL);
    assert_int_equal(target.where, WHERE_BETWEEN);
    assert_int_equal(target.number, 8);
    (void)expect_as(with_places, NULL, "SAMPLE k MIDDLE 7", syntax_error);
    (void)expect_as(with_places, NULL, "SAMPLE k BETWEEN 1", syntax_error);
    (void)expect_as(with_places, NULL, "SAMPLE k MIN REV",
                    "-ERR value is not an integer or out of range\r\n");
}

TEST_WITH(a_list_has_as_many_words_as_the_number_before_it, setup, NULL) {
    static const char per_key[] = "key number:integer member... [REV]";
    struct target target = expect_as(per_key, NULL, "SAMPLE k 2 REV b REV", NULL);
    assert_int_equal(target.members.count, 2);
    assert_true(bytes_equal(target.members.at[0], BYTES("REV")));
    assert_true(target.is_reverse);
    (void)expect_as(per_key, NULL, "SAMPLE k 2 a", syntax_error);
    (void)expect_as(per_key, NULL, "SAMPLE k 0 a", syntax_error);
}

TEST_WITH(a_list_without_a_number_ends_where_an_option_begins, setup, NULL) {
    static const char list[] = "key member... [REV]";
    struct target target = expect_as(list, NULL, "SAMPLE k 1 =x zoe rev", NULL);
    assert_int_equal(target.members.count, 3);
    assert_true(target.is_reverse);
    (void)expect_as(list, NULL, "SAMPLE k rev", syntax_error);
}

TEST_WITH(words_that_may_be_left_out_are_there_unless_an_option_is, setup, NULL) {
    static const char optional[] = "key range=[start stop [ALONE]] [REV]";
    assert_null(expect_as(optional, NULL, "SAMPLE k", NULL).range.at);
    assert_null(expect_as(optional, NULL, "SAMPLE k REV", NULL).range.at);
    struct target target = expect_as(optional, NULL, "SAMPLE k 0 rev REV ALONE", NULL);
    assert_int_equal(target.range.count, 2);
    assert_true(target.is_reverse && target.is_alone);
    (void)expect_as(optional, NULL, "SAMPLE k 0", syntax_error);
}

TEST_WITH(hidden_options_are_read_and_not_shown, setup, NULL) {
    char shown[64];
    struct sample sample;
    assert_true(expect_as("key [REV]", "[ALONE]", "SAMPLE k ALONE REV", NULL).is_alone);
    begin_as(&sample, "key [REV]", "[ALONE]", "SAMPLE k");
    (void)syntax_print(&sample.command, shown, sizeof shown);
    assert_string_equal(shown, "key [REV]");
    buffer_deinit(&sample.out);
}

TEST_WITH(an_options_value_is_found_in_requests_that_may_be_wrong, setup, NULL) {
    static const struct {
        const char *line;
        uint32_t index;
    } samples[] = {
        {"SAMPLE k 2 a b NAME c", 6},
        {"SAMPLE k 2 a b REV PAIR NAME x NAME c", 10},
        {"SAMPLE k 2 a b NAME LAST", 0},
        {"SAMPLE k 2 a b", 0},
        {"SAMPLE k 2 NAME b", 0},
        {"SAMPLE k 9 a NAME c", 0},
        {"SAMPLE k x a NAME c", 0},
        {"SAMPLE k 1 a FIELDS 1 x NAME c", 8},
        {"SAMPLE k 1 a FIELDS 9 NAME c", 0},
        {"SAMPLE k 1 a NAME", 0},
        {"SAMPLE k 1 a OTHER NAME c", 0},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        struct sample sample;
        begin_as(&sample,
                 "key number:integer member... [REV] [NAME name] [FIELDS n:integer field...] "
                 "[PAIR name value]...",
                 NULL, samples[i].line);
        assert_int_equal(syntax_options_at(&sample.command), 4);
        sample.command.key_option = "NAME";
        assert_int_equal(syntax_key_option(&sample.command, &sample.request), samples[i].index);
        buffer_deinit(&sample.out);
    }
}
