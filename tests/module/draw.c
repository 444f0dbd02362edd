/* The random commands of tests/support/grammar.h for tests that are no C programs.
 *
 *     draw SEED KEYS FAVOURITE FEATURE ...      keys are separated by commas; draw alone prints the features
 *
 * Then a line says what is asked, and a line answers:
 *
 *     about NAME        1: the command or word is one of these features'
 *     concerns NAME     1: the command has a word of these features; -: there is no such command
 *     any NAME          a command, right or damaged: the number of its words, then each word's size on a line and
 *                       its bytes behind that
 *     tame NAME         the same with values that make sense alone */
#include "tests/support/grammar.h"

#include "server/commands/table.h"
#include "server/dispatch/execute.h"

enum { KEYS_MAX = 64, DAMAGE_ONE_IN = 10 };

static void answer(struct grammar *grammar, const char *verb, const char *name) {
    const struct command *command = grammar_find(name);
    bool is_about = false;
    if (strcmp(verb, "about") == 0) {
        for (int i = 0; i < GRAMMAR_FOCI; i++) {
            is_about |= grammar_is_among(grammar->focus[i], name);
        }
        puts(is_about ? "1" : "0");
    } else if (strcmp(verb, "concerns") == 0) {
        puts(command == NULL || command->run == NULL ? "-"
             : grammar_has_focus(grammar, command)   ? "1"
                                                     : "0");
    } else {
        CHECK(command != NULL);
        grammar->is_tame = strcmp(verb, "tame") == 0;
        grammar_draw(grammar, command);
        printf("%u\n", grammar->count);
        for (uint32_t i = 0; i < grammar->count; i++) {
            printf("%zu\n", grammar->sizes[i]);
            fwrite(grammar->words[i], 1, grammar->sizes[i], stdout);
        }
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    static struct grammar grammar;
    static struct random random;
    static const char *keys[KEYS_MAX + 1];
    if (argc < 4) {
        for (int i = 0; i < GRAMMAR_FEATURES; i++) {
            puts(grammar_features[i].name);
        }
        return 0;
    }
    random.state = strtoull(argv[1], NULL, 10);
    char *key = strtok(argv[2], ",");
    for (int i = 0; i < KEYS_MAX && key != NULL; i++, key = strtok(NULL, ",")) {
        keys[i] = key;
    }
    grammar = (struct grammar){
        .random = &random, .keys = keys, .favourite = argv[3], .damage_one_in = DAMAGE_ONE_IN};
    for (int i = 0; i < GRAMMAR_FOCI && i + 4 < argc; i++) {
        for (int k = 0; k < GRAMMAR_FEATURES; k++) {
            if (strcmp(grammar_features[k].name, argv[i + 4]) == 0) {
                grammar.focus[i] = grammar_features[k].words;
            }
        }
    }
    execute_init(command_table);
    char line[128], verb[16], name[64];
    while (fgets(line, sizeof line, stdin) != NULL &&
           sscanf(line, "%15s %63[^\n]", verb, name) == 2) {
        answer(&grammar, verb, name);
    }
    return 0;
}
