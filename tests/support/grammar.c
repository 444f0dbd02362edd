/* See grammar.h. */
#include "tests/support/grammar.h"

#include <strings.h>

enum { HOSTILE_ONE_IN = 50, TIMES_MAX = 9 };

static const char *const numbers[] = {"0",  "1",  "2",  "3",     "7", "10",
                                      "40", "99", "-1", "12.25", NULL};
static const char *const hostile[] = {"",
                                      "nan",
                                      "inf",
                                      "-inf",
                                      "(1",
                                      "[a",
                                      "+",
                                      "-0",
                                      "1e400",
                                      "1e18",
                                      "0x10",
                                      " 1",
                                      "4294967296",
                                      "*",
                                      "@",
                                      "b0@",
                                      "x@y",
                                      "LIMIT",
                                      "AT",
                                      "NX",
                                      "INCR",
                                      "COUNT",
                                      "DATA",
                                      "PACKED",
                                      "LAST",
                                      "WHERE",
                                      "TAG",
                                      "a\r\nb",
                                      "\xff\xfe",
                                      "999999999999999999999999",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "18446744073709551615",
                                      NULL};
static const char *const members[] = {"m0", "m1", "m2", "n1", "user:1", "user:22", NULL};
static const char *const times[] = {
    "2026-01-01T02:00:00Z", "2026-01-02", "+5m",  "NOW", "1767229200000",
    "1767225600",           "NONE",       "2026", "+1h", NULL};
static const char *const periods[] = {"1", "2", "3", "0", NULL};
static const char *const timeouts[] = {"0.1", "2", "20", NULL};
static const char *const patterns[] = {"*", "b*", "lim:*", "m*", "user:*", NULL};
static const char *const made[] = {"h:*", "b0:*", "h:%:*", "lim:*", NULL};
static const char *const positives[] = {"1", "2", "3", "5", NULL};

#define VALUES(...)                                                                                \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

/* By what the syntax calls an argument, or "TOKEN name" where that alone does not tell. */
static const struct {
    const char *name;
    const char *const *values;
} values_of[] = {
    {"age", VALUES("1", "2", "10", "NONE")},
    {"archive", VALUES("old0", "old1", "b0@2026-01-01", "b0@2026-01-01T00", "b1")},
    {"bits", VALUES("2", "9", "16", "20", "22", "31", "40")},
    {"cap", VALUES("2", "5", "20", "NONE")},
    {"cursor", VALUES("0")},
    {"DATA pattern", made},
    {"HSET pattern", made},
    {"data", made},
    {"date", VALUES("2026-01-01", "2025-12-30")},
    {"destination-db", VALUES("0", "1")},
    {"edge", VALUES("1", "2", "10", "40")},
    {"end", VALUES("2026-02-01T00:00:00Z", "2026-01-02", "2027-01-01")},
    {"from", members},
    {"half-life", VALUES("1", "30", "1000")},
    {"hour", VALUES("0", "5", "23")},
    {"id", VALUES("r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9")},
    {"limit", VALUES("3", "50", "NONE")},
    {"LIMIT limit", VALUES("0", "2", "10")},
    {"max", VALUES("40", "+inf", "(7", "99", "0")},
    {"member", members},
    {"milliseconds", VALUES("100", "4000", "100000")},
    {"min", VALUES("-inf", "0", "(2", "10")},
    {"LAYOUT name", VALUES("default", "money", "pair")},
    {"FIELD name", VALUES("a", "b", "score", "likes")},
    {"name", VALUES("clan", "clan", "clan", "country", "class")},
    {"packed-key", VALUES("0", "1", "1000000", "99999999999", "4611686018427387904")},
    {"pattern", patterns},
    {"PERIOD unit", VALUES("HOUR")},
    {"periods", periods},
    {"q", VALUES("0", "0.5", "1")},
    {"scale", VALUES("0", "1", "2")},
    {"seconds", VALUES("1", "2", "1000")},
    {"serialized-value", VALUES("x")},
    {"start", VALUES("0", "1", "-2", "2026-01-01", "2025-12-31T00:00:00Z")},
    {"tier", VALUES("0", "1", "2")},
    {"tiers", VALUES("1", "2", "3")},
    {"time", times},
    {"timeout", timeouts},
    {"to", members},
    {"ttl", VALUES("0", "1000", "5000")},
    {"units", positives},
    {"unix-time-milliseconds", VALUES("1767225600000", "1767226000000", "1767232800000")},
    {"unix-time-seconds", VALUES("1767225700", "1767232800")},
    {"value", VALUES("a", "b", "DE", "FR", "clan 1", "clan 2", "clan 3", "clan 4", "")},
    {"weekday", VALUES("MON", "SUN")},
    {"weight", VALUES("1", "2", "0.5")},
    {"window", VALUES("2", "3", "4", "NONE")},
    {"zone", VALUES("UTC", "Europe/Berlin", "+02:00")},
};

static uint64_t grammar_below(const struct grammar *grammar, uint64_t limit) {
    return random_below(grammar->random, limit);
}

static const char *grammar_one_of(const struct grammar *grammar, const char *const *values) {
    size_t count = 0;
    while (values[count] != NULL) {
        count++;
    }
    return values[grammar_below(grammar, count)];
}

/* ---- the focus ---- */

static bool grammar_matches(const char *word, const char *name) {
    size_t size = strlen(word);
    return size > 0 && word[size - 1] == '*' ? strncasecmp(word, name, size - 1) == 0
                                             : strcasecmp(word, name) == 0;
}

static bool grammar_is_among(const char *const *words, const char *name) {
    for (; words != NULL && *words != NULL; words++) {
        if (grammar_matches(*words, name)) {
            return true;
        }
    }
    return false;
}

static bool grammar_names_argument(const char *const *words, const struct argument *argument) {
    if (argument->token != NULL && grammar_is_among(words, argument->token)) {
        return true;
    }
    for (const struct argument *child = argument->children; child != NULL && child->name != NULL;
         child++) {
        if (grammar_names_argument(words, child)) {
            return true;
        }
    }
    return false;
}

static bool grammar_focuses_on(const struct grammar *grammar, const struct argument *argument) {
    for (int i = 0; i < GRAMMAR_FOCI; i++) {
        if (grammar_names_argument(grammar->focus[i], argument)) {
            return true;
        }
    }
    return false;
}

/* "LB.LEAGUE ADD", as the focus has it: commands' names have a '|' there. */
static const char *grammar_name_of(const struct command *command) {
    static char name[COMMAND_FULL_NAME_MAX];
    snprintf(name, sizeof name, "%s", command_full_name(command_index(command)));
    char *bar = strchr(name, '|');
    if (bar != NULL) {
        *bar = ' ';
    }
    return name;
}

bool grammar_is_named(const char *const *words, const struct command *command) {
    if (grammar_is_among(words, grammar_name_of(command))) {
        return true;
    }
    for (const struct argument *argument = command->arguments;
         argument != NULL && argument->name != NULL; argument++) {
        if (grammar_names_argument(words, argument)) {
            return true;
        }
    }
    return false;
}

bool grammar_has_focus(const struct grammar *grammar, const struct command *command) {
    for (int i = 0; i < GRAMMAR_FOCI; i++) {
        if (grammar_is_named(grammar->focus[i], command)) {
            return true;
        }
    }
    return false;
}

bool grammar_names_token(const char *const *words, const struct command *command,
                         const char *token) {
    return grammar_is_among(words, token) || grammar_is_among(words, grammar_name_of(command));
}

static void grammar_walk_tokens(const struct command *command, const struct argument *argument,
                                void (*each)(void *context, const struct command *command,
                                             const char *token),
                                void *context) {
    for (; argument != NULL && argument->name != NULL; argument++) {
        if (argument->token != NULL) {
            each(context, command, argument->token);
        }
        grammar_walk_tokens(command, argument->children, each, context);
    }
}

void grammar_each_token(const struct command *command,
                        void (*each)(void *context, const struct command *command,
                                     const char *token),
                        void *context) {
    grammar_walk_tokens(command, command->arguments, each, context);
}

/* ---- drawing ---- */

static void grammar_add(struct grammar *grammar, const char *name, const char *word, size_t size) {
    if (grammar->count < GRAMMAR_WORDS_MAX) {
        grammar->names[grammar->count] = name;
        grammar->words[grammar->count] = word;
        grammar->sizes[grammar->count++] = size;
    }
}

static void grammar_add_text(struct grammar *grammar, const char *name, const char *word) {
    grammar_add(grammar, name, word, strlen(word));
}

static const char *const *grammar_values_of(const char *token, const char *name) {
    char both[64];
    snprintf(both, sizeof both, "%s %s", token != NULL ? token : "", name);
    const char *const *found = NULL;
    for (size_t i = 0; i < sizeof values_of / sizeof values_of[0]; i++) {
        if (strcmp(values_of[i].name, both) == 0) {
            return values_of[i].values;
        }
        if (strcmp(values_of[i].name, name) == 0) {
            found = values_of[i].values;
        }
    }
    return found;
}

static void grammar_draw_value(struct grammar *grammar, const struct argument *argument,
                               const char *token) {
    const char *name = argument->name;
    const char *const *values =
        grammar_values_of(argument->token != NULL ? argument->token : token, name);
    bool may_wait_long = values == timeouts; /* so that no client waits for ever */
    if (!grammar->is_tame && !may_wait_long && grammar_below(grammar, HOSTILE_ONE_IN) == 0) {
        grammar_add_text(grammar, name, grammar_one_of(grammar, hostile));
    } else if (strcmp(name, "serialized-value") == 0 && grammar->payload.size > 0) {
        grammar_add(grammar, name, grammar->payload.at, grammar->payload.size);
    } else if (argument->type == ARGUMENT_KEY) {
        bool is_favourite = grammar->favourite != NULL && grammar_below(grammar, 2) == 0;
        grammar_add_text(grammar, name,
                         is_favourite ? grammar->favourite
                                      : grammar_one_of(grammar, grammar->keys));
    } else {
        grammar_add_text(grammar, name, grammar_one_of(grammar, values != NULL ? values : numbers));
    }
}

static void grammar_draw_argument(struct grammar *grammar, const struct argument *argument,
                                  const char *token);
static void grammar_draw_list(struct grammar *grammar, const struct argument *list,
                              const char *token);

static void grammar_draw_one(struct grammar *grammar, const struct argument *argument,
                             const char *token) {
    if (argument->type == ARGUMENT_ONEOF) {
        uint64_t count = 0;
        const struct argument *chosen = NULL;
        for (const struct argument *child = argument->children; child->name != NULL; child++) {
            count++;
            if (chosen == NULL && grammar_focuses_on(grammar, child) &&
                grammar_below(grammar, 4) != 0) {
                chosen = child;
            }
        }
        if (chosen == NULL) {
            chosen = &argument->children[grammar_below(grammar, count)];
        }
        grammar_draw_argument(grammar, chosen, token);
    } else if (argument->type == ARGUMENT_BLOCK) {
        grammar_draw_list(grammar, argument->children, token);
    } else if (argument->type != ARGUMENT_PURE_TOKEN) {
        grammar_draw_value(grammar, argument, token);
    }
}

static void grammar_draw_argument(struct grammar *grammar, const struct argument *argument,
                                  const char *token) {
    bool has_focus = grammar_focuses_on(grammar, argument);
    if ((argument->flags & ARGUMENT_OPTIONAL) != 0 &&
        grammar_below(grammar, 100) >= (has_focus ? 70 : 8)) {
        return;
    }
    uint64_t times_drawn = 1;
    if ((argument->flags & ARGUMENT_MULTIPLE) != 0) {
        static const uint8_t draws[] = {1, 1, 1, 2, 3, TIMES_MAX};
        times_drawn = draws[grammar_below(grammar, sizeof draws)];
    }
    for (uint64_t i = 0; i < times_drawn; i++) {
        if (argument->token != NULL &&
            (i == 0 || (argument->flags & ARGUMENT_MULTIPLE_TOKEN) != 0)) {
            grammar_add_text(grammar, argument->name, argument->token);
        }
        grammar_draw_one(grammar, argument, argument->token != NULL ? argument->token : token);
    }
}

static void grammar_draw_list(struct grammar *grammar, const struct argument *list,
                              const char *token) {
    for (const struct argument *argument = list; argument != NULL && argument->name != NULL;
         argument++) {
        grammar_draw_argument(grammar, argument, token);
        token = argument->token != NULL ? argument->token : token;
    }
}

/* Numbers that say how many arguments of one name follow. */
static void grammar_count(struct grammar *grammar) {
    static const char *const counts[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    for (uint32_t i = 1; i + 1 < grammar->count; i++) {
        if (strcmp(grammar->names[i], "numkeys") != 0 && strcmp(grammar->names[i], "n") != 0 &&
            strcmp(grammar->names[i], "num-members") != 0) {
            continue;
        }
        uint32_t same = 1;
        while (i + 1 + same < grammar->count &&
               grammar->names[i + 1 + same] == grammar->names[i + 1]) {
            same++;
        }
        if (same < sizeof counts / sizeof counts[0]) {
            grammar->words[i] = counts[same];
            grammar->sizes[i] = 1;
        }
    }
}

void grammar_draw(struct grammar *grammar, const struct command *command) {
    grammar->count = 0;
    if (command_is_subcommand(command_index(command))) {
        static char container[COMMAND_FULL_NAME_MAX];
        snprintf(container, sizeof container, "%s", grammar_name_of(command));
        *strchr(container, ' ') = '\0';
        grammar_add_text(grammar, "", container);
    }
    grammar_add_text(grammar, "", command->name);
    grammar_draw_list(grammar, command->arguments, NULL);
    grammar_count(grammar);
}
