/* See grammar.h. */
#include "tests/support/grammar.h"

#include <ctype.h>
#include <strings.h>

enum { HOSTILE_ONE_IN = 50, LOWER_ONE_IN = 40, TIMES_MAX = 9, LONG_MAX = 70000 };

static const char *const numbers[] = {"0",  "1",  "2",  "3",     "7",   "10", "40",
                                      "99", "-1", "-2", "12.25", "0.5", NULL};
/* Hostile by their length. */
static const size_t hostile_sizes[] = {64, 255, 256, 4096, 65535, 65536, LONG_MAX};
static const char *const members[] = {"m$3", "m$3", "n1", "user:1", "user:22", "user:$40", NULL};
static const char *const clocks[] = {
    "2026-01-01T02:00:00Z", "2026-01-02", "+5m",  "NOW", "1767229200000",
    "1767225600",           "NONE",       "2026", "+1h", NULL};
static const char *const timeouts[] = {"0.1", "2", "20", NULL};
static const char *const made[] = {"h:*", "b0:*", "h:%:*", "lim:*", "*", NULL};

#define VALUES GRAMMAR_WORDS
#define HOSTILE                                                                                    \
    VALUES("", " ", "nan", "inf", "-inf", "(1", "(inf", "[a", "+", "-", "-0", "+5", "1e400",       \
           "1e18", "1e-400", "0x10", "007", "1 ", " 1", "1.5", "4294967296", "-2147483649", "*",   \
           "[", "@", "b0@", "x@y", "@2026", "LIMIT", "AT", "NX", "GT", "INCR", "COUNT", "DATA",    \
           "PACKED", "LAST", "WHERE", "TAG", "LAYOUT", "FIELD", "WEIGHTS", "AGGREGATE", "SINCE",   \
           "WITHSCORES", "-1 -1", "%s%n", "a\r\nb", "*3\r\n$1\r\n", "\xff\xfe", "1970-01-01",      \
           "9999-12-31T23:59:59Z", "Europe/Berlin", "../../etc/passwd",                            \
           "999999999999999999999999", "9223372036854775807", "-9223372036854775808",              \
           "9223372036854775808", "18446744073709551615", "18446744073709551616")

/* What all tests use, where they have no values of their own. */
static const struct grammar_values values_of_all[] = {
    {"age", VALUES("1", "2", "10", "NONE")},
    {"archive", VALUES("old0", "old1", "b0@2026-01-01", "b0@2026-01-01T00", "b1")},
    {"bits", VALUES("1", "2", "9", "16", "20", "22", "31", "40")},
    {"cap", VALUES("1", "2", "5", "20", "NONE")},
    {"cursor", VALUES("0")},
    {"DATA pattern", made},
    {"HSET pattern", made},
    {"data", made},
    {"date", VALUES("2026-01-01", "2025-12-30", "2026-11-22")},
    {"deviation", VALUES("50", "350")},
    {"destination-db", VALUES("0", "1")},
    {"edge", VALUES("1", "2", "10", "40")},
    {"end", VALUES("2026-02-01T00:00:00Z", "2026-01-02", "2027-01-01")},
    {"from", members},
    {"gain", VALUES("50", "100000")},
    {"half-life", VALUES("1", "30", "1000")},
    {"hour", VALUES("0", "5", "23", "24")},
    {"id", VALUES("r$9", "r$30")},
    {"limit", VALUES("3", "50", "NONE")},
    {"LIMIT limit", VALUES("0", "2", "10")},
    {"MAX max", VALUES("40", "1000", "100000")},
    {"max", VALUES("40", "+inf", "(7", "99", "0")},
    {"member", members},
    {"milliseconds", VALUES("100", "4000", "100000")},
    {"MIN min", VALUES("0", "-100")},
    {"min", VALUES("-inf", "0", "(2", "10")},
    {"LAYOUT name", VALUES("default", "money", "pair")},
    {"FIELD name", VALUES("a", "b", "score", "likes")},
    {"name", VALUES("clan", "clan", "clan", "country", "class")},
    {"tag", VALUES("clan", "clan", "clan", "country", "class")},
    {"packed-key", VALUES("0", "1", "1000000", "99999999999", "4611686018427387904")},
    {"parameter", VALUES("MINGAMES", "KEEP-MATCHES", "KEEP-MATCHES", "RESET", "K", "TAU")},
    {"RATING value", VALUES("1", "1", "2", "20")},
    {"rating", VALUES("800", "1500", "1612.5", "2400")},
    {"pattern", VALUES("*", "b*", "lim:*", "m*", "user:*", "daily:*")},
    {"PERIOD unit", VALUES("HOUR")},
    {"periods", VALUES("0", "1", "2", "3")},
    {"q", VALUES("0", "0.5", "0.999", "1")},
    {"results", VALUES("1", "5", "1000")},
    {"scale", VALUES("0", "1", "2", "9")},
    {"seconds", VALUES("1", "2", "1000")},
    {"serialized-value", VALUES("x")},
    {"start", VALUES("0", "1", "-2", "2026-01-01", "2025-12-31T00:00:00Z")},
    {"step", VALUES("10", "100000")},
    {"ticket", VALUES("x", "eyJ.e30.e30")},
    {"tier", VALUES("0", "1", "2")},
    {"tiers", VALUES("1", "2", "3")},
    {"time", clocks},
    {"timeout", timeouts},
    {"to", members},
    {"ttl", VALUES("0", "5", "1000", "5000", "100000")},
    {"units", VALUES("1", "2", "3", "5")},
    {"unix-time-milliseconds", VALUES("1767225600000", "1767226000000", "1767232800000")},
    {"unix-time-seconds", VALUES("1767225700", "1767232800")},
    {"value", VALUES("a", "b", "DE", "FR", "clan $4", "clan $20", "")},
    {"weekday", VALUES("MON", "SUN")},
    {"weight", VALUES("1", "2", "0.5")},
    {"window", VALUES("2", "3", "4", "NONE")},
    {"zone", VALUES("UTC", "Europe/Berlin", "+02:00")},
    {NULL, NULL},
};

const struct grammar_feature grammar_features[GRAMMAR_FEATURES] = {
    {"cap", VALUES("CAP", "LIMIT")},
    {"keep-best", VALUES("KEEP", "BEST", "LAST")},
    {"tags",
     VALUES("TAG", "WHERE", "WHERENOT", "WITHIN", "TAGS", "BY", "LB.TAG", "LB.TAGS", "LB.COUNT")},
    {"stale", VALUES("STALE", "TOUCH")},
    {"settle", VALUES("SETTLE", "UNSETTLED", "LB.SETTLE", "ARCHIVE")},
    {"period", VALUES("PERIOD", "ARCHIVE", "EVERY", "ON", "FROM", "TZ")},
    {"copied-period", VALUES("COPY", "ARCHIVED", "PERIOD", "FROZEN", "WRITABLE")},
    {"window", VALUES("WINDOW", "SUM", "PERIOD")},
    {"closed", VALUES("FREEZE", "THAW", "OPENS", "CLOSES")},
    {"decay", VALUES("DECAY", "LB.HIST")},
    {"dense", VALUES("DENSE", "COMP", "LB.QUANTILE")},
    {"rating", VALUES("RATING", "ELO", "GLICKO2", "OPENSKILL", "TEAM", "LB.MATCH", "LB.PREDICT",
                      "LB.RATE", "LB.RATING", "LB.UNMATCH", "LB.REFUND")},
    {"limits",
     VALUES("LIMITS", "PLAYERS", "ALL", "MAX", "MIN", "STEP", "EVERY", "RESULTS", "GAIN")},
    {"tickets", VALUES("TICKETS", "TICKET", "LB.TICKET", "MINTIME", "LIMITS")},
    {"hold",
     VALUES("HOLD", "OVER", "TOP", "AUTO", "WITHHELD", "LB.HELD", "LB.APPROVE", "LB.REJECT")},
    {"fields", VALUES("FIELD", "TIME", "LATEST", "ASC", "DESC", "SIGNED", "SCALE", "DOUBLE",
                      "LAYOUT", "START", "END")},
    {"league", VALUES("LB.LEAGUE *", "ROOM", "TIERS", "UP", "DOWN", "IDLE")},
    {"once", VALUES("ONCE", "WITHREPEAT")},
    {"member-data", VALUES("HSET", "DATA", "FIELDS", "HSET*", "HDEL", "HMSET", "HINCR*")},
    {"since", VALUES("SINCE", "LB.GET", "LB.RANGE", "LB.AROUND")},
    {"times", VALUES("AT", "KEEPTIME", "TOUCH")},
    {"packed", VALUES("PACKED", "WITHKEY", "LB.CUTS", "LB.ABOVE", "LB.QUANTILE")},
    {"forget", VALUES("LB.FORGET", "LB.WHERE")},
    {"ban", VALUES("LB.BAN", "SHADOW", "LB.UNBAN", "LB.BANS", "LB.REVOKE", "BEFORE")},
    {"move", VALUES("LB.MOVE", "ZMOVE*")},
    {"alter", VALUES("LB.ALTER", "LB.INFO", "LB.LIST")},
    {"roll", VALUES("LB.ROLL")},
    {"submit", VALUES("LB.SUBMIT", "NOCREATE", "INCR", "SET")},
    {"combine",
     VALUES("ZUNION*", "ZINTER*", "ZDIFF*", "ZRANGESTORE", "AGGREGATE", "WEIGHTS", "COUNT")},
    {"pop", VALUES("ZPOP*", "ZMPOP", "BZ*")},
    {"remove", VALUES("ZREM*", "LB.LEAGUE REMOVE", "DEL", "UNLINK")},
    {"keys", VALUES("COPY", "RENAME", "RENAMENX", "MOVE", "SWAPDB", "DUMP", "RESTORE")},
    {"expiry", VALUES("EXPIRE*", "PEXPIRE*", "PERSIST", "EX")},
    {"transaction", VALUES("MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH")},
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

bool grammar_is_among(const char *const *words, const char *name) {
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

/* Has it a literal word, of its own or inside? */
static bool grammar_has_token(const struct argument *argument) {
    static const char *const any[] = {"*", NULL};
    return grammar_names_argument(any, argument);
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

const struct command *grammar_find(const char *name) {
    char full_name[COMMAND_FULL_NAME_MAX];
    snprintf(full_name, sizeof full_name, "%s", name);
    char *space = strchr(full_name, ' ');
    if (space != NULL) {
        *space = '|';
    }
    uint32_t index = command_find_full_name(bytes_from_text(full_name));
    return index == COMMAND_NONE ? NULL : command_by_index(index);
}

const struct command *grammar_choose(struct random *random, const struct grammar_weight *weights) {
    uint64_t total = 0;
    for (const struct grammar_weight *each = weights; each->weight > 0; each++) {
        total += each->weight;
    }
    uint64_t drawn = random_below(random, total);
    for (; drawn >= weights->weight; weights++) {
        drawn -= weights->weight;
    }
    return grammar_find(weights->command);
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

bool grammar_is_on_keys(const struct command *command) {
    static const char *const groups[] = {"sorted-set", "leaderboard", "generic", "hash", NULL};
    static const char *const never[] = {"WAIT", "KEYS", NULL};
    return command->run != NULL && (command->flags & COMMAND_ADMIN) == 0 &&
           !grammar_is_among(never, command->name) && grammar_is_among(groups, command->group);
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

/* A value whose "$<n>" are numbers; or a word, now and then in lower case. */
static void grammar_add_made(struct grammar *grammar, const char *name, const char *value,
                             bool is_lower) {
    char *out = grammar->text + grammar->text_size;
    size_t room = sizeof grammar->text - grammar->text_size;
    if (is_lower || strchr(value, '$') != NULL) {
        random_line(grammar->random, value, out, room);
        for (char *at = out; is_lower && *at != '\0'; at++) {
            *at = (char)tolower((unsigned char)*at);
        }
        grammar->text_size += strlen(out) + 1;
        value = out;
    }
    grammar_add_text(grammar, name, value);
}

static void grammar_add_token(struct grammar *grammar, const char *name, const char *token) {
    grammar_add_made(grammar, name, token,
                     !grammar->is_tame && grammar_below(grammar, LOWER_ONE_IN) == 0);
}

static void grammar_add_hostile(struct grammar *grammar, const char *name) {
    static char is_long[LONG_MAX + 1];
    if (is_long[0] == '\0') {
        memset(is_long, 'x', LONG_MAX);
    }
    if (grammar_below(grammar, 10) == 0) {
        size_t size =
            hostile_sizes[grammar_below(grammar, sizeof hostile_sizes / sizeof hostile_sizes[0])];
        grammar_add(grammar, name, is_long, size);
    } else {
        grammar_add_text(grammar, name, grammar_one_of(grammar, HOSTILE));
    }
}

/* The values for "TOKEN name", or else for "name". */
static const char *const *grammar_find_values(const struct grammar_values *rows, const char *token,
                                              const char *name) {
    const char *const *found = NULL;
    for (; rows != NULL && rows->name != NULL; rows++) {
        const char *space = strrchr(rows->name, ' ');
        if (space == NULL) {
            found = strcmp(rows->name, name) == 0 ? rows->values : found;
        } else if (token != NULL && strcmp(space + 1, name) == 0) {
            char before[64];
            snprintf(before, sizeof before, "%.*s", (int)(space - rows->name), rows->name);
            if (grammar_matches(before, token)) {
                return rows->values;
            }
        }
    }
    return found;
}

static void grammar_draw_value(struct grammar *grammar, const struct argument *argument,
                               const char *token) {
    const char *name = argument->name;
    token = argument->token != NULL ? argument->token : token;
    const char *const *values = grammar_find_values(grammar->values, token, name);
    if (values == NULL && argument->type == ARGUMENT_KEY) {
        values = grammar->keys;
    } else if (values == NULL) {
        values = grammar_find_values(values_of_all, token, name);
    }
    bool may_wait_long = strcmp(name, "timeout") == 0; /* so that no client waits for ever */
    if (!grammar->is_tame && !may_wait_long && grammar_below(grammar, HOSTILE_ONE_IN) == 0) {
        grammar_add_hostile(grammar, name);
    } else if (strcmp(name, "serialized-value") == 0 && grammar->payload.size > 0) {
        grammar_add(grammar, name, grammar->payload.at, grammar->payload.size);
    } else if (argument->type == ARGUMENT_KEY && grammar->favourite != NULL &&
               grammar_below(grammar, 2) == 0) {
        grammar_add_made(grammar, name, grammar->favourite, false);
    } else {
        const char *value = grammar_one_of(grammar, values != NULL ? values : numbers);
        grammar_add_made(grammar, name, value, false);
    }
}

static void grammar_draw_argument(struct grammar *grammar, const struct argument *argument,
                                  const char *token);
static void grammar_draw_list(struct grammar *grammar, const struct argument *list,
                              const char *token);

static void grammar_draw_one(struct grammar *grammar, const struct argument *argument,
                             const char *token) {
    if (argument->type == ARGUMENT_ONEOF) {
        const struct argument *allowed[32], *chosen = NULL;
        uint64_t count = 0;
        for (const struct argument *child = argument->children; child->name != NULL; child++) {
            if (grammar_names_argument(grammar->never, child)) {
                continue;
            }
            CHECK(count < sizeof allowed / sizeof allowed[0]);
            allowed[count++] = child;
            if (chosen == NULL && grammar_focuses_on(grammar, child) &&
                grammar_below(grammar, 4) != 0) {
                chosen = child;
            }
        }
        if (count == 0) {
            return;
        }
        chosen = chosen != NULL ? chosen : allowed[grammar_below(grammar, count)];
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
    unsigned percent = has_focus ? 70 : grammar_has_token(argument) ? 8 : 30;
    if ((argument->flags & ARGUMENT_OPTIONAL) != 0 &&
        (grammar_below(grammar, 100) >= percent ||
         (argument->token != NULL && grammar_is_among(grammar->never, argument->token)))) {
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
            grammar_add_token(grammar, argument->name, argument->token);
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
        uint32_t same = 1, first = i + 1;
        uint32_t step =
            first + 1 < grammar->count && grammar->names[first] != grammar->names[first + 1]
                ? 2
                : 1; /* of pairs */
        while (first + same * step < grammar->count &&
               grammar->names[first + same * step] == grammar->names[first]) {
            same++;
        }
        bool is_right = grammar->is_tame || grammar_below(grammar, HOSTILE_ONE_IN) != 0;
        if (is_right && same < sizeof counts / sizeof counts[0]) {
            grammar->words[i] = counts[same];
            grammar->sizes[i] = 1;
        }
    }
}

/* Words behind the name come twice, go, change places or are hostile. */
static void grammar_damage(struct grammar *grammar) {
    for (uint64_t times = 1 + grammar_below(grammar, 3); times > 0 && grammar->count > 2; times--) {
        uint32_t behind = grammar->count - 1;
        uint32_t at = 1 + (uint32_t)grammar_below(grammar, behind);
        uint32_t other = 1 + (uint32_t)grammar_below(grammar, behind);
        const char *word = grammar->words[at];
        size_t size = grammar->sizes[at];
        switch (grammar_below(grammar, 4)) {
        case 0:
            grammar_add(grammar, "", word, size);
            break;
        case 1:
            grammar->count = at;
            break;
        case 2:
            grammar_add_hostile(grammar, "");
            break;
        default:
            break;
        }
        if (at < grammar->count && other < grammar->count) {
            grammar->words[at] = grammar->words[other];
            grammar->sizes[at] = grammar->sizes[other];
            grammar->words[other] = word;
            grammar->sizes[other] = size;
        }
    }
}

void grammar_draw(struct grammar *grammar, const struct command *command) {
    grammar->count = 0;
    grammar->text_size = 0;
    const char *token = command->name;
    if (command_is_subcommand(command_index(command))) {
        static char container[COMMAND_FULL_NAME_MAX];
        snprintf(container, sizeof container, "%s", grammar_name_of(command));
        *strchr(container, ' ') = '\0';
        grammar_add_text(grammar, "", container);
        token = NULL;
    }
    grammar_add_token(grammar, "", command->name);
    grammar_draw_list(grammar, command->arguments, token);
    grammar_count(grammar);
    if (!grammar->is_tame && grammar->damage_one_in > 0 &&
        grammar_below(grammar, grammar->damage_one_in) == 0) {
        grammar_damage(grammar);
    }
}
