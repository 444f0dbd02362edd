/* Errors of LB. commands say which word does not fit, what was expected, and the syntax. What is sent is drawn from the
 * table of commands, and then each of its words is missing, doubled and misspelled. */
#include "server/dispatch/explain.h"

#include "tests/server/zset_fixture.h"
#include "tests/support/grammar.h"

/* What an error said that explained nothing. */
static const char *const bare[] = {
    "-ERR syntax error",
    "-ERR value is not an integer",
    "-ERR value is not a valid float",
    "-ERR wrong number of arguments",
    "-ERR min or max",
};

/* "LB.LEAGUE ADD" */
static void print_name(uint32_t index, char *out) {
    snprintf(out, COMMAND_FULL_NAME_MAX, "%s", command_full_name(index));
    for (char *at = out; *at != '\0'; at++) {
        *at = *at == '|' ? ' ' : *at >= 'a' && *at <= 'z' ? (char)(*at & ~0x20) : *at;
    }
}

/* Where the syntax begins: " (LB.GET key ...". NULL: there is none. */
static const char *find_syntax(const char *reply, const char *name) {
    return strstr(reply, formatted(" (%s", name));
}

static bool has_word(const char *text, size_t size, const struct bytes *words, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct bytes word = words[i];
        word.size = word.size < 30 ? word.size : 30;
        if (word.size > 0 && memmem(text, size, word.at, word.size) != NULL) {
            return true;
        }
        if (word.size == 0 && memmem(text, size, "''", 2) != NULL) {
            return true;
        }
    }
    return false;
}

struct seen {
    uint32_t explained, bare;
};

static void check_error(struct harness *h, struct session *s, uint32_t index,
                        const struct bytes *words, uint32_t count, struct seen *seen) {
    char name[COMMAND_FULL_NAME_MAX];
    const char *reply = harness_run_args(h, s, words, count);
    if (reply[0] != '-') {
        return;
    }
    print_name(index, name);
    const char *syntax = find_syntax(reply, name);

    seen->explained += syntax != NULL;
    bool is_bare = syntax != NULL && strncmp(reply, "-ERR syntax error (", 19) == 0;
    for (size_t i = 0; i < COUNT_OF(bare); i++) {
        is_bare = is_bare || (syntax == NULL && strncmp(reply, bare[i], strlen(bare[i])) == 0);
    }
    bool names_word = syntax == NULL || has_word(reply, (size_t)(syntax - reply), words, count);
    if (is_bare || !names_word || strlen(reply) > EXPLAIN_MAX + 256) {
        for (uint32_t i = 0; i < count; i++) {
            print_error("%.*s ", bytes_shown_size(words[i], 100), words[i].at);
        }
        print_error("explains nothing: %s", reply);
        seen->bare++;
    }
}

/* Each word missing, doubled and misspelled. */
static void check_variants(struct harness *h, struct session *s, uint32_t index,
                           const struct grammar *grammar, uint32_t first, struct seen *seen) {
    struct bytes words[GRAMMAR_WORDS_MAX + 1];
    char misspelled[128];
    for (uint32_t at = first; at < grammar->count; at++) {
        for (int variant = 0; variant < 3; variant++) {
            uint32_t count = 0;
            for (uint32_t i = 0; i < grammar->count; i++) {
                struct bytes word = {.at = grammar->words[i], .size = grammar->sizes[i]};
                if (i == at && variant == 0) {
                    continue;
                }
                if (i == at && variant == 1) {
                    words[count++] = word;
                }
                if (i == at && variant == 2) {
                    int size = snprintf(misspelled, sizeof misspelled, "%.*sq",
                                        bytes_shown_size(word, 60), word.at);
                    word = (struct bytes){.at = misspelled, .size = (size_t)size};
                }
                words[count++] = word;
            }
            check_error(h, s, index, words, count, seen);
        }
    }
}

static const char *const keys[] = {"b0", "b1", "b2", NULL};

HARNESS_TEST(every_error_of_every_lb_command_names_a_word_and_shows_the_syntax,
             "default-layout likes\nlayout likes FIELD score 20 TIME 40 MS\n") {
    enum { TIMES = 40 };
    struct random random = random_begin(__func__);
    uint32_t commands = 0, bare_count = 0;
    harness_run(h, s,
                "LB.CREATE b0 FIELD score 20 TIME 40 MS TAG clan 8 TAG country 8 TAG class 8");
    harness_run(h, s, "LB.ADD b1 5 m1 6 m2");
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        struct seen seen = {0};
        if (!explain_covers(command) || command->run == NULL ||
            strcmp(command->group, "leaderboard") != 0) {
            continue;
        }
        commands++;
        for (int j = 0; j < TIMES; j++) {
            struct grammar grammar = {.random = &random, .keys = keys, .is_tame = true};
            grammar_draw(&grammar, command);
            check_variants(h, s, i, &grammar, command_is_subcommand(i) ? 2 : 1, &seen);
        }
        bare_count += seen.bare;
        if (command->arguments != NULL && seen.explained == 0) {
            fail_msg("%s: no error shows its syntax", command_full_name(i));
        }
    }
    assert_int_equal(bare_count, 0);
    assert_true(commands > 30);
}

/* What is right is found to be right: so the mistake that is found in another request is one. */
SERVER_TEST(a_request_that_fits_the_syntax_is_matched_whole) {
    enum { TIMES = 200 };
    struct random random = random_begin(__func__);
    char error[EXPLAIN_MAX];
    for (uint32_t i = 0; i < command_count(); i++) {
        const struct command *command = command_by_index(i);
        for (int j = 0; j < TIMES && command->run != NULL && explain_covers(command); j++) {
            struct bytes words[GRAMMAR_WORDS_MAX];
            struct grammar grammar = {.random = &random, .keys = keys, .is_tame = true};
            grammar_draw(&grammar, command);
            for (uint32_t k = 0; k < grammar.count; k++) {
                words[k] = (struct bytes){.at = grammar.words[k], .size = grammar.sizes[k]};
            }
            const struct request request = {.args = words, .count = grammar.count};
            if (explain_request(command, &request, error) && strstr(error, " integer") == NULL) {
                for (uint32_t k = 0; k < grammar.count; k++) {
                    print_error("%.*s ", (int)words[k].size, words[k].at);
                }
                fail_msg("is right, but not for: %s", error);
            }
        }
    }
}

#define GET    " (LB.GET key n member ...)"
#define SUBMIT " (LB.SUBMIT numkeys key ... [option ...] field ... member)"
#define ADD    " (LB.ADD key [option ...] <field ... member ... | PACKED packed-key member ...>)"
#define RANGE  " (LB.RANGE key start stop ...)"
#define WHERE  " (LB.RANGE key start stop [WHERE tag value ...] ...)"

HARNESS_TEST(the_usual_mistakes_are_told_in_words, "") {
    static const char *const rows[][2] = {
        {"LB.GET w ann bob", "-ERR number of members expected before 'ann'" GET},
        {"LB.SUBMIT w INCR 10 ann", "-ERR number of boards expected before 'w'" SUBMIT},
        {"LB.ADD w ann 100", "-ERR 'ann' is not a score: values come before the member" ADD},
        {"LB.RANGE w 0 9 WITHSCORES", "-ERR records have scores already; without WITHSCORES" RANGE},
        {"LB.RANGE w 0 9 WHERE country=DE",
         "-ERR WHERE takes a tag and a value: WHERE country DE" WHERE},
        {"LB.RANGE w 0 9 WHERE country=DE COMP",
         "-ERR WHERE takes a tag and a value: WHERE country DE" WHERE},
        {"LB.TOP w", "-ERR unknown command 'LB.TOP', with args beginning with: 'w' (did you mean "
                     "LB.RANGE w 0 9?)"},
        {"lb.rank w ann", "-ERR unknown command 'lb.rank', with args beginning with: 'w' 'ann' "
                          "(did you mean LB.GET w 1 ann?)"},
        {"LB.INCR w", "-ERR unknown command 'LB.INCR', with args beginning with: 'w' (did you mean "
                      "LB.ADD w INCR 1 member?)"},
        {"LB.INCR w 10 ann", "-ERR unknown command 'LB.INCR', with args beginning with: 'w' '10' "
                             "'ann' (did you mean LB.ADD w INCR 10 ann?)"},
        {"LB.INCRBY w ann 2.5", "-ERR unknown command 'LB.INCRBY', with args beginning with: 'w' "
                                "'ann' '2.5' (did you mean LB.ADD w INCR 2.5 ann?)"},
        {"LB.SET w 90 7", "-ERR unknown command 'LB.SET', with args beginning with: 'w' '90' '7' "
                          "(did you mean LB.ADD w 90 7?)"},
        {"LB.SET w ann", "-ERR unknown command 'LB.SET', with args beginning with: 'w' 'ann' "
                         "(did you mean LB.ADD w 100 ann?)"},
        {"LB.NEAR w 7 5", "-ERR unknown command 'LB.NEAR', with args beginning with: 'w' '7' '5' "
                          "(did you mean LB.AROUND w MEMBER 7 5?)"},
        {"LB.RNAGE", "-ERR unknown command 'LB.RNAGE', with args beginning with: (did you mean "
                     "LB.RANGE?)"},
        {"ZREVRNAGE", "-ERR unknown command 'ZREVRNAGE', with args beginning with: (did you mean "
                      "ZREVRANGE?)"},
        {"LB.ABCDE", "-ERR unknown command 'LB.ABCDE', with args beginning with: "},
        {"LB.GET", "-ERR key expected after 'LB.GET'" GET},
        {"LB.GET w 0 ann", "-ERR n must be at least 1, not '0'" GET},
        {"LB.GET w 3 ann bob", "-ERR member expected after 'bob'" GET},
        {"LB.GET w 1 ann COMPP", "-ERR 'COMPP' is not expected here: did you mean COMP?" GET},
        {"LB.GET w 1 ann bob", "-ERR 'bob' is not expected here, but COMP, DENSE, SORT, PCT, "
                               "WITHKEY, WITHHELD, STRINGS, WHERE, "
                               "WHERENOT, WITHIN, TAGS, RATING, DATA, FIELDS or SINCE" GET},
        {"LB.RANGE w 0 x", "-ERR stop must be a 64-bit integer, not 'x'" RANGE},
        {"LB.RANGE w a 5 BYSCORE", "-ERR 'a' is not a score" RANGE},
        {"LB.RANGE w 0 9 LIMIT 5", "-ERR count expected after '5' (LB.RANGE key start stop [LIMIT "
                                   "offset count] ...)"},
        {"LB.MOVE a b BEST SUM",
         "-ERR 'SUM' comes after BEST: one of them is expected (LB.MOVE from to ...)"},
        {"LB.ROLL k a EX 5 EX 5",
         "-ERR 'EX' comes again: EX is expected once (LB.ROLL key archive ...)"},
        {"LB.INFO w w",
         "-ERR 'w' is one word too many: the end is expected after 'w' (LB.INFO key)"},
        {"LB.LEAGUE", "-ERR subcommand expected after 'LB.LEAGUE' (LB.LEAGUE <ADD | CREATE | GET | "
                      "INFO | REMOVE | SET | HELP> ...)"},
        {"LB.LEAGUE GET w", "-ERR member expected after 'w' (LB.LEAGUE GET key member)"},
        {"LB.ADD w GT 100 ann", "-ERR BEST keeps the better result; without GT" ADD},
        {"LB.ADD w INCRR 10 ann", "-ERR 'INCRR' is not a score: this board takes 1 value before "
                                  "each member: score, or did you mean INCR?" ADD},
        {"LB.ADD w 100 ann BEST", "-ERR 'BEST' is an option: options come before the values" ADD},
        {"LB.ADD w 100 ann ONCE id",
         "-ERR 'ONCE' is an option: options come before the values" ADD},
        {"LB.HELP", "-ERR unknown command 'LB.HELP', with args beginning with: (did you mean "
                    "COMMAND DOCS, or help @leaderboard in redis-cli?)"},
    };
    zset_run(h, "LB.CREATE w FIELD score 32 TIME 31 S TAG country 8");
    zset_expect_each(h, rows);
}

SERVER_TEST(long_and_binary_words_are_shown_shortened_and_escaped) {
    char word[5000];
    memset(word, 'x', sizeof word);
    const struct bytes words[] = {
        BYTES("LB.GET"), BYTES("w"), {.at = word, .size = sizeof word}, BYTES("ann")};
    const char *reply = harness_run_args(h, s, words, 4);
    assert_true(strlen(reply) < 256);
    assert_non_null(strstr(reply, "xxx...'" GET));
    const struct bytes binary[] = {BYTES("LB.GET"), BYTES("w"), BYTES("a\r\n'\xff\0b"), BYTES("c")};
    assert_string_equal(harness_run_args(h, s, binary, 4),
                        "-ERR number of members expected before 'a\\x0d\\x0a\\x27\\xff\\x00b'" GET
                        "\r\n");
}

SERVER_TEST(a_mistake_at_the_end_of_a_long_request_is_found) {
    enum { COUNT = 9000 };
    OWNED struct bytes *words = malloc((COUNT + 3) * sizeof *words);
    assert_non_null(words);
    words[0] = BYTES("LB.ABOVE");
    words[1] = BYTES("w");
    for (uint32_t i = 0; i < COUNT; i++) {
        words[i + 2] = BYTES("12");
    }
    words[COUNT + 2] = BYTES("WHERE");
    assert_string_equal(harness_run_args(h, s, words, COUNT + 3),
                        "-ERR tag expected after 'WHERE' (LB.ABOVE key packed-key ... [WHERE tag "
                        "value ...] ...)\r\n");
}

SERVER_TEST(commands_of_redis_say_what_redis_says) {
    zset_expect(h, "ZADD", "-ERR wrong number of arguments for 'zadd' command");
    zset_expect(h, "ZRANGE k 0 x", "-ERR value is not an integer or out of range");
    zset_expect(h, "ZRANGE k 0 1 FOO", "-ERR syntax error");
    zset_expect(h, "ZCOUNT k a b", "-ERR min or max is not a float");
    zset_expect(h, "SCAN 0 COUNT 0", "-ERR syntax error");
    zset_expect(h, "CLIENT FOO", "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.");
}
