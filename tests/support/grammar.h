/* The random commands of all tests, from the table of commands: whatever an entry's syntax allows is drawn, so that
 * a new option or command is drawn from its first day. What a test knows beyond the syntax, such as few keys and
 * scores that tie, is rows of data: values by the names of the syntax, and weights of commands.
 *
 *     static const char *const focus[] = {"WINDOW", "LB.FORGET", NULL};
 *     struct grammar grammar = {.random = &random, .keys = keys, .focus = {focus}};
 *     grammar_draw(&grammar, command);       "LB.CREATE b3 TIME 31 S PERIOD HOUR WINDOW 4 SUM"
 *     text_command_words(&out, grammar.words, grammar.sizes, grammar.count);
 *
 * Options that the focus names come often, others seldom. Numbers that say how many arguments follow are right, and
 * values mostly make sense; one word in fifty is hostile. Tests in Python ask tests/module/draw.c for them. */
#ifndef TESTS_SUPPORT_GRAMMAR_H
#define TESTS_SUPPORT_GRAMMAR_H

#include "server/dispatch/command.h"
#include "tests/support/random.h"

enum { GRAMMAR_WORDS_MAX = 256, GRAMMAR_TEXT_MAX = 16384, GRAMMAR_FOCI = 3 };

/* A list that NULL ends. */
#define GRAMMAR_WORDS(...)                                                                         \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

/* By what the syntax calls an argument; "TOKEN name" and "ZUNION* name", behind that word or in these commands
 * alone, go before "name". In a value $<n> is a number below n. */
struct grammar_values {
    const char *name;
    const char *const *values; /* ended by NULL */
};
struct grammar_weight {
    unsigned weight;
    const char *command;
};

/* By the words of the syntax and the commands that are about them. */
struct grammar_feature {
    const char *name;
    const char *const *words;
};
enum { GRAMMAR_FEATURES = 34 };
extern const struct grammar_feature grammar_features[GRAMMAR_FEATURES];

struct grammar {
    struct random *random;
    const char *const *keys; /* ended by NULL */
    const char *favourite;   /* the half of all keys; NULL: none */
    /* Lists of words ended by NULL: literal words of the syntax, names of commands ("LB.LEAGUE ADD"), or their
     * beginnings ("ZREM*"). NULL: none. */
    const char *const *focus[GRAMMAR_FOCI];
    const struct grammar_values
        *values;              /* before those that all tests use; ended by one without a name */
    const char *const *never; /* options that are not drawn */
    bool is_tame;             /* no hostile words */
    unsigned damage_one_in;   /* so many commands have words that are others, or gone; 0: none */
    /* A value of DUMP; a size of 0: there is none. */
    struct bytes payload;
    /* What was drawn; valid until the next call. */
    uint32_t count;
    const char *words[GRAMMAR_WORDS_MAX];
    size_t sizes[GRAMMAR_WORDS_MAX];
    const char *names[GRAMMAR_WORDS_MAX]; /* what the syntax calls them */
    char text[GRAMMAR_TEXT_MAX];          /* of those that were made */
    size_t text_size;
};

/* One of the commands, ended by a weight of 0; "LB.LEAGUE ADD" as the focus. */
const struct command *grammar_choose(struct random *random, const struct grammar_weight *weights);
/* The entry of "LB.LEAGUE ADD"; NULL: there is none. */
const struct command *grammar_find(const char *name);

/* The name and the arguments of a command. */
void grammar_draw(struct grammar *grammar, const struct command *command);
/* Is the command named by the focus, or one of its words? */
bool grammar_has_focus(const struct grammar *grammar, const struct command *command);
/* Does one of these words name the command, or one of its words? */
bool grammar_is_named(const char *const *words, const struct command *command);
/* Is it of boards, hashes and keys, does it answer once, and end nothing? */
bool grammar_is_on_keys(const struct command *command);
/* Is it among the words, or does it begin as one of them, "ZREM*"? */
bool grammar_is_among(const char *const *words, const char *name);
/* Is this literal word of the command's syntax among the words, or the command itself? */
bool grammar_names_token(const char *const *words, const struct command *command,
                         const char *token);
/* Call each with every literal word of the command's syntax. */
void grammar_each_token(const struct command *command,
                        void (*each)(void *context, const struct command *command,
                                     const char *token),
                        void *context);

#endif
