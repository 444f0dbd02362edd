/* Options of requests, by a table that agrees with the entry's syntax. */
#include "tests/support/test.h"

#include "server/dispatch/options.h"
#include "server/dispatch/syntax.h"

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
};

static bool read_even(const struct call *call, uint32_t index, void *target) {
    ((struct target *)target)->read_index = index;
    return call_arg(call, index).size % 2 == 0 || call_refuse(call, "ERR odd");
}

static const struct option_row rows[] = {
    {"REV", OPTION_FLAG, offsetof(struct target, is_reverse), NULL},
    {"LIMIT", OPTION_INTEGERS, offsetof(struct target, limit), NULL},
    {"COUNT", OPTION_INTEGER, offsetof(struct target, count), NULL},
    {"AUTH", OPTION_TEXTS, offsetof(struct target, login), NULL},
    {"NAME", OPTION_TEXT, offsetof(struct target, name), NULL},
    {"EVEN", OPTION_READ, 0, read_even},
    {"FIELDS", OPTION_COUNTED, offsetof(struct target, fields), NULL},
    {"ONE", OPTION_TEXT_ONCE, offsetof(struct target, one), NULL},
    {"PAIR", OPTION_EACH_PAIR, offsetof(struct target, pairs), NULL},
    {"NOPAIR", OPTION_EACH_PAIR, offsetof(struct target, pairs), NULL},
    {"WORD", OPTION_EACH, offsetof(struct target, words), NULL},
    {0},
};

static void run(struct call *call) {
    (void)call;
}

static const struct command entry = {
    .name = "SAMPLE",
    .syntax =
        "key where=<MIN | MAX> sort=[REV] both=[LIMIT offset:integer count:integer] "
        "[COUNT count:integer] [AUTH user password] which=[NAME name | EVEN word] [FIELDS "
        "n:integer field...] [ONE word] [PAIR name value]... [NOPAIR name value]... [WORD word]...",
    .options = rows,
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

static void begin(struct sample *sample, const char *line) {
    *sample = (struct sample){.command = entry};
    syntax_apply(&sample->command, false);
    options_check(&sample->command);
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

/* error NULL: everything was read. */
static struct target expect(const char *line, const char *error) {
    struct sample sample;
    begin(&sample, line);
    assert_int_equal(options_read(&sample.call, 1, &sample.target), error == NULL);
    assert_int_equal(sample.out.size, error != NULL ? strlen(error) : 0);
    assert_memory_equal(sample.out.at != NULL ? sample.out.at : "", error != NULL ? error : "",
                        sample.out.size);
    buffer_deinit(&sample.out);
    return sample.target;
}

static int setup(void **state) {
    (void)state;
    syntax_reset();
    return 0;
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
    assert_true(options_read(&sample.call, 1, &sample.target));
    assert_int_equal(sample.target.pairs.count, 4);
    assert_int_equal(sample.target.pairs.first, places[0]);
    assert_int_equal(sample.target.words.count, 1);
    assert_int_equal(sample.target.words.first, 14);
    for (uint32_t at = places[0]; at < sample.request.count; at = options_next(&sample.call, at)) {
        assert_true(options_has_word(&sample.call, at));
        if (call_arg_is(&sample.call, at, "PAIR") || call_arg_is(&sample.call, at, "NOPAIR")) {
            assert_int_equal(at, places[found++]);
        }
    }
    assert_int_equal(found, 4);
    assert_false(options_has_word(&sample.call, 6));
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
        assert_true(options_read_to(&sample.call, &index, &sample.target));
        assert_int_equal(index, samples[i].index);
        assert_int_equal(sample.out.size, 0);
        buffer_deinit(&sample.out);
    }
}
