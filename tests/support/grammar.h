/* Random commands from the table of commands: whatever an entry's syntax allows is drawn, so that a new option
 * or command is drawn from its first day.
 *
 *     static const char *const focus[] = {"WINDOW", "LB.FORGET", NULL};
 *     struct grammar grammar = {.random = &random, .keys = keys, .focus = {focus}};
 *     grammar_draw(&grammar, command);       "LB.CREATE b3 TIME 31 S PERIOD HOUR WINDOW 4 SUM"
 *     text_command_words(&out, grammar.words, grammar.sizes, grammar.count);
 *
 * Options that the focus names come often, others seldom. Numbers that say how many arguments follow are right,
 * and values mostly make sense; one word in fifty is hostile. */
#ifndef TESTS_SUPPORT_GRAMMAR_H
#define TESTS_SUPPORT_GRAMMAR_H

#include "server/dispatch/command.h"
#include "tests/support/random.h"

enum { GRAMMAR_WORDS_MAX = 256, GRAMMAR_FOCI = 3 };

struct grammar {
    struct random *random;
    const char *const *keys; /* ended by NULL */
    const char *favourite;   /* the half of all keys; NULL: none */
    /* Lists of words ended by NULL: literal words of the syntax, names of commands ("LB.LEAGUE ADD"), or their
     * beginnings ("ZREM*"). NULL: none. */
    const char *const *focus[GRAMMAR_FOCI];
    bool is_tame; /* no hostile words */
    /* A value of DUMP; a size of 0: there is none. */
    struct bytes payload;
    /* What was drawn; valid until the next call. */
    uint32_t count;
    const char *words[GRAMMAR_WORDS_MAX];
    size_t sizes[GRAMMAR_WORDS_MAX];
    const char *names[GRAMMAR_WORDS_MAX]; /* what the syntax calls them */
};

/* The name and the arguments of a command. */
void grammar_draw(struct grammar *grammar, const struct command *command);
/* Is the command named by the focus, or one of its words? */
bool grammar_has_focus(const struct grammar *grammar, const struct command *command);
/* Does one of these words name the command, or one of its words? */
bool grammar_is_named(const char *const *words, const struct command *command);
/* Is this literal word of the command's syntax among the words, or the command itself? */
bool grammar_names_token(const char *const *words, const struct command *command,
                         const char *token);
/* Call each with every literal word of the command's syntax. */
void grammar_each_token(const struct command *command,
                        void (*each)(void *context, const struct command *command,
                                     const char *token),
                        void *context);

#endif
