/* Words <-> the options of a board beside its layout, by the rows of skiplist/keyspace/board_options.h.
 *
 *     CAP 100 KEEP BEST         <->   .cap = 100, .keeps_best = true
 *     TAG country 8              ->   .layout.tags: another one, or other bits
 *     PERIOD WEEK TZ +08:00     <->   .period = {PERIOD_WEEK, .zone_minutes = 480}
 *     STALE 6 HOUR              <->   .stale_ms = 21600000
 *     WINDOW 24 SUM             <->   .window = {.count = 24} */
#include "server/settings/setting_private.h"

#include <inttypes.h>

#include "codec/timestamp.h"
#include "server/system/tzdata.h"
#include "skiplist/keyspace/board_options.h"

/* "CAP needs a number", "CAP 'x' is not a valid number" */
static const struct {
    const char *article, *error;
} forms[] = {
    [BOARD_FORM_YES_NO] = {"", "unknown: use"},  [BOARD_FORM_CHOICE] = {"", "unknown: use"},
    [BOARD_FORM_NUMBER] = {"a ", "not a valid"}, [BOARD_FORM_HOUR] = {"an ", "not an"},
    [BOARD_FORM_TIME] = {"a ", "not a"},         [BOARD_FORM_AGE] = {"a ", "not a valid"},
    [BOARD_FORM_UNIT] = {"", "unknown: use"},    [BOARD_FORM_WEEKDAY] = {"a ", "not a"},
    [BOARD_FORM_DATE] = {"a ", "not a"},         [BOARD_FORM_ZONE] = {"an ", "not a valid"},
    [BOARD_FORM_WINDOW] = {"a ", "not a valid"}, [BOARD_FORM_FRACTION] = {"a ", "not a"},
    [BOARD_FORM_RATING] = {"", "unknown: use"},  [BOARD_FORM_LIMITS] = {"", "unknown: use"},
    [BOARD_FORM_HOLD] = {"", "unknown: use"},
};

/* Of STALE and of windows the words, of other times the letters. */
static const struct {
    const char *letter, *word;
    int64_t ms;
} units[] = {
    {"S", NULL, 1000}, {"M", "MINUTE", 60000}, {"H", "HOUR", 3600000}, {"D", "DAY", 86400000}};
enum { UNIT_S, UNIT_MINUTE, UNIT_H, UNITS = sizeof units / sizeof units[0] };

/* A letter or, of a word, a word; the first of them is least. 0: none. */
static int64_t setting_options_unit_ms(struct bytes text, bool is_word, unsigned least) {
    while (least < UNITS && !bytes_is(text, is_word ? units[least].word : units[least].letter)) {
        least++;
    }
    return least < UNITS ? units[least].ms : 0;
}

/* The largest that divides the time, or least. */
static unsigned setting_options_find_unit(int64_t ms, unsigned least) {
    unsigned unit = UNITS - 1;
    while (unit > least && ms % units[unit].ms != 0) {
        unit--;
    }
    return unit;
}

/* ---- words -> options ---- */

/* What was parsed so far. */
struct parsing {
    struct board_options *options;
    struct board_state *state; /* NULL: its words are not taken */
    enum setting_takes takes;
    const struct bytes *words; /* from the option's own on */
    size_t word_count;
    bool has[BOARD_OPTION_COUNT];
    struct tag_set given; /* tags that were named, each with one bit */
    char *reason;
};

static bool setting_options_parse_number(const struct board_option *option, struct bytes word,
                                         int64_t *value) {
    uint64_t natural = 0;
    if (option->minimum < 0) {
        if (!bytes_parse_i64(word, value)) {
            return false;
        }
    } else if (bytes_parse_u64(word, &natural) && natural <= INT64_MAX) {
        *value = (int64_t)natural;
    } else {
        return false;
    }
    return *value >= option->minimum && *value <= option->maximum;
}

/* A number of as many decimals as it has. */
static bool setting_options_parse_decimal(struct bytes word, int64_t *number, uint8_t *scale) {
    struct decimal value;
    unsigned decimals;
    if (decimal_parse_exact(word, &value, &decimals) != DECIMAL_OK || value.magnitude > INT64_MAX) {
        return false;
    }
    *number = value.is_negative ? -(int64_t)value.magnitude : (int64_t)value.magnitude;
    *scale = (uint8_t)decimals;
    return true;
}

/* The value of an option that has one word. A zone's name is looked up afterwards: its error has a text of its
 * own. */
static bool setting_options_parse_value(const struct board_option *option, struct bytes word,
                                        int64_t *value) {
    int64_t time_us = 0;
    int32_t day = 0;
    uint8_t weekday = 0;
    int zone_minutes = 0;
    bool is_fine = true;
    *value = option->usual;
    if (option->none != NULL && bytes_is(word, option->none)) {
        return true;
    }
    switch ((enum board_option_form)option->form) {
    case BOARD_FORM_YES_NO:
    case BOARD_FORM_CHOICE:
        *value = bytes_is(word, option->words[1]);
        return *value != 0 || bytes_is(word, option->words[0]);
    case BOARD_FORM_TIME:
        is_fine = timestamp_parse(word, &time_us) && time_us >= 1000;
        *value = time_us / 1000;
        return is_fine;
    case BOARD_FORM_UNIT:
        *value = period_parse_unit(word);
        return *value != PERIOD_NONE;
    case BOARD_FORM_WEEKDAY:
        is_fine = period_parse_weekday(word, &weekday);
        *value = weekday;
        return is_fine;
    case BOARD_FORM_DATE:
        is_fine = period_parse_date(word, &day);
        *value = day;
        return is_fine;
    case BOARD_FORM_ZONE:
        is_fine = period_parse_zone(word, &zone_minutes) || zone_is_name(word);
        *value = zone_minutes;
        return is_fine;
    case BOARD_FORM_NUMBER:
    case BOARD_FORM_HOUR:
    case BOARD_FORM_AGE:
    case BOARD_FORM_WINDOW:
    case BOARD_FORM_FLAG:
    case BOARD_FORM_POINTER:
    case BOARD_FORM_RATING:
    case BOARD_FORM_LIMITS:
    case BOARD_FORM_HOLD:
        break;
    case BOARD_FORM_FRACTION:
        is_fine = timestamp_parse(word, &time_us);
        *value = time_us / 1000;
        return is_fine && *value > BOARD_FRACTION_IS_NOTHING &&
               board_options_may_be(option, *value);
    }
    return setting_options_parse_number(option, word, value);
}

/* "CAP 'x' is not a valid number of members: 1..4294967295"; word NULL: "CAP needs a number of ..." */
static bool setting_options_fail_value(const struct board_option *option, const struct bytes *word,
                                       char *reason) {
    char range[64] = "";
    if (option->maximum != 0) {
        snprintf(range, sizeof range, ": %" PRId64 "..%" PRId64, option->minimum, option->maximum);
    }
    if (option->is_of_league && option->form == BOARD_FORM_CHOICE) {
        return setting_value_fail(reason, "%s is unknown: use %s", option->word, option->wanted);
    }
    if (word == NULL || option->is_of_league) {
        return setting_value_fail(reason, "%s needs %s%s%s", option->word,
                                  forms[option->form].article, option->wanted, range);
    }
    return setting_value_fail(reason, "%s '%s' is %s %s%s", option->word, bytes_show(*word).text,
                              forms[option->form].error, option->wanted, range);
}

/* TAG name bits|NONE. A tag that is there gets other bits. */
static bool setting_options_parse_tag(struct parsing *parsing) {
    struct tag_set *tags = &parsing->options->layout.tags;
    char ignored[TAG_ERROR_MAX];
    if (parsing->word_count < 3) {
        return setting_value_fail(parsing->reason, "TAG needs a name and a width: TAG name bits");
    }
    struct bytes name = parsing->words[1];
    struct bytes bits = parsing->words[2];
    int index = tag_set_find(tags, name);
    bool is_none = bytes_is(bits, "NONE");
    if (tag_set_find(&parsing->given, name) >= 0) {
        return setting_value_fail(parsing->reason, "TAG %s may be given only once",
                                  bytes_show(name).text);
    }
    if (is_none && index < 0) {
        char *reason = parsing->reason;
        size_t size = (size_t)snprintf(reason, SETTING_ERROR_MAX, "no tag '%s': the board has %s",
                                       bytes_show(name).text, tags->count == 0 ? "no tags" : "");
        for (unsigned i = 0; i < tags->count && size < SETTING_ERROR_MAX; i++) {
            size += (size_t)snprintf(reason + size, SETTING_ERROR_MAX - size, "%s%s",
                                     i > 0 ? ", " : "", tags->tags[i].name);
        }
        return false;
    }
    if (is_none) {
        tag_set_remove(tags, (unsigned)index);
    } else if (!(index >= 0 ? tag_set_resize(tags, (unsigned)index, bits, parsing->reason)
                            : tag_set_add(tags, name, bits, parsing->reason))) {
        return false;
    }
    /* More of them than a set has cannot be given without naming one again. */
    return tag_set_add(&parsing->given, name, BYTES("1"), ignored) ||
           setting_value_fail(parsing->reason, "more than %d tags are named", (int)TAGS_MAX);
}

/* The row of an option that begins with this word; NULL: none. */
static const struct board_option *setting_options_find(struct bytes word,
                                                       enum setting_takes takes) {
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        bool is_taken = option->is_state       ? takes == SETTING_TAKES_STATE
                        : option->is_of_league ? takes == SETTING_TAKES_LEAGUE
                        : option->is_of_line
                            ? takes == SETTING_TAKES_LINE || takes == SETTING_TAKES_STATE
                            : true;
        if (option->word != NULL && is_taken && bytes_is(word, option->word)) {
            return option;
        }
    }
    return NULL;
}

/* Does another option begin here, or is there no word? */
static bool setting_options_end(const struct parsing *parsing, size_t at) {
    return at >= parsing->word_count || bytes_is(parsing->words[at], "TAG") ||
           setting_options_find(parsing->words[at], parsing->takes) != NULL;
}

/* STALE n unit, WINDOW n SUM|BEST: *size words. Of a board with a WINDOW n alone, where none of the words before an
 * option is left out, leaves what its periods are to it. */
static bool setting_options_parse_pair(const struct parsing *parsing,
                                       const struct board_option *option, size_t *size) {
    struct board_options *options = parsing->options;
    const struct bytes *words = parsing->words;
    bool is_age = option->form == BOARD_FORM_AGE;
    bool is_alone = !is_age && parsing->word_count >= 2 && setting_options_end(parsing, 2);
    int64_t value;
    int64_t second = 0;
    *size = is_alone ? 2 : 3;
    if (is_alone ? options->window.count == 0 : parsing->word_count < 3) {
        return setting_value_fail(parsing->reason, "%s needs %s", option->word, option->behind);
    }
    if (!setting_options_parse_number(option, words[1], &value)) {
        return setting_options_fail_value(option, &words[1], parsing->reason);
    }
    if (is_age) {
        second = setting_options_unit_ms(words[2], true, UNIT_MINUTE);
    } else if (!is_alone && setting_options_parse_value(option + 1, words[2], &second)) {
        board_options_set(option + 1, options, NULL, second);
        second = 1;
    }
    board_options_set(option, options, NULL, is_age ? value * second : value);
    return is_alone || second != 0 ||
           setting_value_fail(parsing->reason, "%s %" PRId64 " '%s' is unknown: use %s",
                              option->word, value, bytes_show(words[2]).text, option->second);
}

/* The numbers behind LEAGUE, each a row. */
static bool setting_options_parse_league(const struct parsing *parsing,
                                         const struct board_option *option, size_t *size) {
    int64_t value;
    for (*size = 1; *size == 1 || option->is_more; (*size)++, option++) {
        if (*size == parsing->word_count ||
            !setting_options_parse_number(option, parsing->words[*size], &value)) {
            return setting_value_fail(parsing->reason, "LEAGUE needs five numbers");
        }
        board_options_set(option, parsing->options, NULL, value);
    }
    return true;
}

/* ---- RATING system name value ... ---- */

static size_t setting_options_print_rating(const struct rating_rule *rule, char *out) {
    struct rating_rule usual;
    char *at = out + sprintf(out, "%s", rating_system_name(rule->system));
    rating_rule_init(&usual, rule->system);
    bool has_k = rule->of[RATING_K] != usual.of[RATING_K];
    for (enum rating_parameter i = 0; i < RATING_PARAMETERS; i++) {
        bool is_k = i == RATING_K_NEW || i == RATING_K_TOP; /* K alone says these, too */
        if (rule->of[i] != usual.of[i] || (is_k && has_k)) {
            at += sprintf(at, " %s ", rating_parameter_name(i));
            at += decimal_print(at, decimal_from_i64(rule->of[i]),
                                rating_parameter_decimals(i, rule->system));
        }
    }
    return (size_t)(at - out);
}

/* The value of a parameter; false: the reason was given. */
static bool setting_options_parse_parameter(const struct parsing *parsing,
                                            enum rating_parameter parameter, struct bytes word) {
    struct rating_rule *rule = &parsing->options->rating;
    unsigned decimals = rating_parameter_decimals(parameter, rule->system);
    int64_t least = rating_parameter_least(parameter, rule->system);
    int64_t most = rating_parameter_most(parameter, rule->system);
    struct decimal value;
    bool is_number =
        decimal_parse(word, decimals, &value) == DECIMAL_OK && value.magnitude <= INT64_MAX;
    int64_t number = !is_number          ? 0
                     : value.is_negative ? -(int64_t)value.magnitude
                                         : (int64_t)value.magnitude;
    if (!is_number || number < least || number > most) {
        char range[2][DECIMAL_TEXT_MAX + 1];
        range[0][decimal_print(range[0], decimal_from_i64(least), decimals)] = '\0';
        range[1][decimal_print(range[1], decimal_from_i64(most), decimals)] = '\0';
        return setting_value_fail(
            parsing->reason, "RATING %s %s '%s' is not a number with at most %u decimals: %s..%s",
            rating_system_name(rule->system), rating_parameter_name(parameter),
            bytes_show(word).text, decimals, range[0], range[1]);
    }
    rule->of[parameter] = number;
    return true;
}

/* *size words. Where the board has this system already, what is not named stays. */
static bool setting_options_parse_rating(const struct parsing *parsing,
                                         const struct board_option *option, size_t *size) {
    const struct bytes *words = parsing->words;
    struct board_options *options = parsing->options;
    struct rating_rule *rule = &options->rating;
    bool has[RATING_PARAMETERS] = {false};
    enum rating_parameter wrong;
    enum rating_system system = 0;
    while (parsing->word_count > 1 && system < RATING_SYSTEMS &&
           !bytes_is(words[1], rating_system_name(system))) {
        system++;
    }
    if (parsing->word_count < 2 || system == RATING_SYSTEMS) {
        return setting_options_fail_value(option, parsing->word_count < 2 ? NULL : &words[1],
                                          parsing->reason);
    }
    if (!options->has_rating || rule->system != system) {
        rating_rule_init(rule, system);
    }
    options->has_rating = true;
    for (*size = 2; *size < parsing->word_count; *size += 2) {
        enum rating_parameter i = 0;
        while (i < RATING_PARAMETERS && !(rating_parameter_is_of(i, system) &&
                                          bytes_is(words[*size], rating_parameter_name(i)))) {
            i++;
        }
        if (i == RATING_PARAMETERS) {
            break; /* the system has no such parameter */
        }
        if (has[i] || *size + 1 == parsing->word_count) {
            return setting_value_fail(parsing->reason, "RATING %s %s %s",
                                      rating_system_name(system), rating_parameter_name(i),
                                      has[i] ? "may be given only once" : "needs a value");
        }
        has[i] = true;
        if (!setting_options_parse_parameter(parsing, i, words[*size + 1])) {
            return false;
        }
    }
    /* K alone is that of all players. */
    for (unsigned i = RATING_K_NEW; has[RATING_K] && i <= RATING_K_TOP; i++) {
        rule->of[i] = has[i] ? rule->of[i] : rule->of[RATING_K];
    }
    return rating_rule_check(rule, &wrong) ||
           setting_value_fail(parsing->reason, "RATING %s %s does not fit the others",
                              rating_system_name(system), rating_parameter_name(wrong));
}

/* ---- LIMITS and HOLD PLAYERS|ALL ... ---- */

static bool setting_options_parse_whom(const struct parsing *parsing,
                                       const struct board_option *option, bool *is_for_all) {
    const struct bytes *word = parsing->word_count > 1 ? &parsing->words[1] : NULL;
    *is_for_all = word != NULL && bytes_is(*word, "ALL");
    return *is_for_all || (word != NULL && bytes_is(*word, "PLAYERS")) ||
           setting_options_fail_value(option, word, parsing->reason);
}

static const char *setting_options_whom(bool is_for_all) {
    return is_for_all ? "ALL" : "PLAYERS";
}

/* What a limit looks like, as its error shows it. */
static const char *setting_options_limit_form(uint8_t has) {
    return has == LIMIT_HAS_VALUE         ? "value"
           : has == LIMIT_HAS_TIME        ? "n S|M|H|D"
           : (has & LIMIT_HAS_COUNT) != 0 ? "n PER MINUTE|HOUR|DAY"
                                          : "value PER MINUTE|HOUR|DAY";
}

/* The words behind the name of a limit: *size of them. false: the reason was given. */
static bool setting_options_parse_limit(const struct parsing *parsing, enum limit limit,
                                        const struct bytes *words, size_t word_count,
                                        size_t *size) {
    struct limits_rule *rule = &parsing->options->limits;
    uint8_t has = limit_rows[limit].has;
    bool is_window = (has & LIMIT_HAS_TIME) != 0 && has != LIMIT_HAS_TIME;
    int64_t number = 0;
    uint8_t scale = 0;
    int64_t unit_ms = 0;
    *size = is_window ? 3 : has == LIMIT_HAS_TIME ? 2 : 1;
    bool is_fine = word_count >= *size &&
                   setting_options_parse_decimal(words[0], &number, &scale) &&
                   ((has & LIMIT_HAS_VALUE) != 0 ||
                    (scale == 0 && number >= 1 && number <= LIMIT_COUNT_MAX)) &&
                   (!is_window || bytes_is(words[1], "PER"));
    if (is_fine && (has & LIMIT_HAS_TIME) != 0) {
        unit_ms =
            setting_options_unit_ms(words[*size - 1], is_window, is_window ? UNIT_MINUTE : UNIT_S);
        is_fine = unit_ms > 0;
    }
    if (is_fine) {
        rule->has = (uint8_t)(rule->has | 1U << limit);
        rule->of[limit] = has == LIMIT_HAS_TIME ? 0 : number;
        rule->scale[limit] = scale;
        rule->time_ms[limit] = has == LIMIT_HAS_TIME && number <= LIMIT_TIME_MS_MAX / unit_ms
                                   ? number * unit_ms
                               : has == LIMIT_HAS_TIME ? 0
                                                       : unit_ms;
        is_fine = limits_validate(rule);
    }
    return is_fine || setting_value_fail(parsing->reason, "LIMITS %s%s%s is not valid: use %s %s",
                                         limit_rows[limit].name, word_count > 0 ? " " : "",
                                         word_count > 0 ? bytes_show(words[0]).text : "",
                                         limit_rows[limit].name, setting_options_limit_form(has));
}

/* *size words. All limits are said at once: those of before are gone. */
static bool setting_options_parse_limits(const struct parsing *parsing,
                                         const struct board_option *option, size_t *size) {
    const struct bytes *words = parsing->words;
    size_t word_count = parsing->word_count;
    struct board_options *options = parsing->options;
    bool is_for_all;
    if (!setting_options_parse_whom(parsing, option, &is_for_all)) {
        return false;
    }
    options->has_limits = true;
    options->limits = (struct limits_rule){.is_for_all = is_for_all};
    for (*size = 2; *size < word_count;) {
        unsigned limit = 0;
        size_t more;
        while (limit < LIMITS && !bytes_is(words[*size], limit_rows[limit].name)) {
            limit++;
        }
        /* A PERIOD has an EVERY, too, without a unit. */
        bool is_of_period = limit == LIMIT_EVERY &&
                            (*size + 2 >= word_count ? options->period.unit != PERIOD_NONE
                                                     : setting_options_end(parsing, *size + 2));
        if (limit == LIMITS || is_of_period) {
            break;
        }
        if (limits_has(&options->limits, limit)) {
            return setting_value_fail(parsing->reason, "LIMITS %s may be given only once",
                                      limit_rows[limit].name);
        }
        if (!setting_options_parse_limit(parsing, limit, words + *size + 1, word_count - *size - 1,
                                         &more)) {
            return false;
        }
        *size += 1 + more;
    }
    return options->limits.has != 0 ||
           setting_value_fail(parsing->reason, "LIMITS %s needs %s",
                              setting_options_whom(is_for_all), option->behind);
}

size_t setting_options_print_limit(const struct limits_rule *rule, enum limit limit, char *out) {
    uint8_t has = limit_rows[limit].has;
    char *at = out + sprintf(out, "%s", limit_rows[limit].name);
    if (has != LIMIT_HAS_TIME) {
        *at++ = ' ';
        at += decimal_print(at, decimal_from_i64(rule->of[limit]), rule->scale[limit]);
        *at = '\0';
    }
    if (has == LIMIT_HAS_TIME) {
        unsigned unit = setting_options_find_unit(rule->time_ms[limit], UNIT_S);
        at += sprintf(at, " %" PRId64 " %s", rule->time_ms[limit] / units[unit].ms,
                      units[unit].letter);
    } else if ((has & LIMIT_HAS_TIME) != 0) {
        unsigned unit = setting_options_find_unit(rule->time_ms[limit], UNIT_MINUTE);
        at += sprintf(at, " PER %s", units[unit].word);
    }
    return (size_t)(at - out);
}

static size_t setting_options_print_limits(const struct limits_rule *rule, char *out) {
    size_t size = (size_t)sprintf(out, "%s", setting_options_whom(rule->is_for_all));
    for (unsigned limit = 0; limit < LIMITS; limit++) {
        if (limits_has(rule, limit)) {
            out[size++] = ' ';
            size += setting_options_print_limit(rule, limit, out + size);
        }
    }
    return size;
}

/* What HOLD holds. */
enum held { HELD_OVER, HELD_TOP, HELD_LIMITS, HELD_AUTO, HELD };
static const struct {
    const char *word, *wanted;
    size_t size; /* in words */
} held_rows[HELD] = {
    [HELD_OVER] = {"OVER", "a value", 2},
    [HELD_TOP] = {"TOP", "a number of places, 1 to 1000000", 2},
    [HELD_LIMITS] = {"LIMITS", NULL, 1},
    [HELD_AUTO] = {"AUTO", "a time: n H|D", 3},
};

/* The words of one. false: they are not right. */
static bool setting_options_parse_held(struct hold_rule *rule, enum held held,
                                       const struct bytes *words, size_t word_count) {
    int64_t number = 0;
    uint8_t scale = 0;
    if (held == HELD_LIMITS) {
        rule->takes_limits = true;
        return true;
    }
    if (word_count < held_rows[held].size ||
        !setting_options_parse_decimal(words[1], &number, &scale)) {
        return false;
    }
    if (held == HELD_OVER) {
        rule->has_over = true;
        rule->over = number;
        rule->scale = scale;
        return true;
    }
    if (scale != 0 || number < 1) {
        return false;
    }
    if (held == HELD_TOP) {
        rule->top = number <= HOLD_TOP_MAX ? (uint32_t)number : 0;
        return rule->top > 0;
    }
    int64_t unit_ms = setting_options_unit_ms(words[2], false, UNIT_H);
    rule->auto_ms = unit_ms > 0 && number <= HOLD_AUTO_MS_MAX / unit_ms ? number * unit_ms : 0;
    return rule->auto_ms > 0;
}

static bool setting_options_parse_hold(const struct parsing *parsing,
                                       const struct board_option *option, size_t *size) {
    const struct bytes *words = parsing->words;
    size_t word_count = parsing->word_count;
    struct hold_rule *rule = &parsing->options->hold;
    bool has[HELD] = {false};
    bool is_for_all;
    if (!setting_options_parse_whom(parsing, option, &is_for_all)) {
        return false;
    }
    parsing->options->has_hold = true;
    *rule = (struct hold_rule){.is_for_all = is_for_all};
    for (*size = 2; *size < word_count;) {
        enum held held = 0;
        struct bytes_shown word = bytes_show(words[*size]);
        while (held < HELD && !bytes_is(words[*size], held_rows[held].word)) {
            held++;
        }
        const struct bytes *next = *size + 1 < word_count ? &words[*size + 1] : NULL;
        bool is_option =
            held == HELD_LIMITS && next != NULL &&
            (bytes_is(*next, "PLAYERS") || bytes_is(*next, "ALL") || bytes_is(*next, "NONE"));
        if (held == HELD || is_option) {
            break;
        }
        if (!setting_options_parse_held(rule, held, words + *size, word_count - *size)) {
            return setting_value_fail(parsing->reason, "HOLD %s needs %s behind it", word.text,
                                      held_rows[held].wanted);
        }
        if (has[held]) {
            return setting_value_fail(parsing->reason, "HOLD %s may be given only once", word.text);
        }
        has[held] = true;
        *size += held_rows[held].size;
    }
    return board_options_hold_is_right(rule) ||
           setting_value_fail(parsing->reason, "HOLD %s needs %s", setting_options_whom(is_for_all),
                              option->behind);
}

static size_t setting_options_print_hold(const struct hold_rule *rule, char *out) {
    char *at = out + sprintf(out, "%s", setting_options_whom(rule->is_for_all));
    if (rule->has_over) {
        at += sprintf(at, " OVER ");
        at += decimal_print(at, decimal_from_i64(rule->over), rule->scale);
    }
    if (rule->top > 0) {
        at += sprintf(at, " TOP %" PRIu32, rule->top);
    }
    if (rule->takes_limits) {
        at += sprintf(at, " LIMITS");
    }
    if (rule->auto_ms > 0) {
        unsigned unit = setting_options_find_unit(rule->auto_ms, UNIT_H);
        at +=
            sprintf(at, " AUTO %" PRId64 " %s", rule->auto_ms / units[unit].ms, units[unit].letter);
    }
    return (size_t)(at - out);
}

/* How an option is parsed whose value has several words; NULL: it has one. */
typedef bool setting_options_parse_words(const struct parsing *parsing,
                                         const struct board_option *option, size_t *size);
static setting_options_parse_words *setting_options_find_words(const struct board_option *option) {
    return option->form == BOARD_FORM_AGE || option->form == BOARD_FORM_WINDOW
               ? setting_options_parse_pair
           : option->form == BOARD_FORM_RATING             ? setting_options_parse_rating
           : option->form == BOARD_FORM_LIMITS             ? setting_options_parse_limits
           : option->form == BOARD_FORM_HOLD               ? setting_options_parse_hold
           : option == &board_options[BOARD_OPTION_LEAGUE] ? setting_options_parse_league
                                                           : NULL;
}

/* What a misspelled word may have been meant to be. */
static const char *setting_options_next_word(const void *unused, uint32_t index) {
    (void)unused;
    if (index == BOARD_OPTION_COUNT) {
        return NULL;
    }
    const struct board_option *option = &board_options[index];
    bool is_given =
        option->word != NULL && !option->is_state && !option->is_of_league && !option->is_of_line;
    return is_given ? option->word : "";
}

/* false: the first word is no option here; reason says what it is. */
static bool setting_options_fail_word(const struct parsing *parsing) {
    struct bytes word = parsing->words[0];
    char *reason = parsing->reason;
    const struct board_option *of_line = setting_options_find(word, SETTING_TAKES_LINE);
    uint64_t bits;
    if (of_line != NULL) {
        return setting_value_fail(reason, "%s is for `board` lines of leaderboard.conf",
                                  of_line->word);
    }
    if (bytes_is(word, "FIELD") || bytes_is(word, "TIME") || bytes_is(word, "LAYOUT")) {
        return setting_value_fail(reason, "'%s' is misplaced: give one layout, before the options",
                                  bytes_show(word).text);
    }
    if (parsing->takes != SETTING_TAKES_LINE && parsing->word_count > 1 &&
        bytes_parse_u64(parsing->words[1], &bits) && bits <= 64) {
        return setting_value_fail(reason,
                                  "unknown board option '%s': did you mean a layout, FIELD %s %u?",
                                  bytes_show(word).text, bytes_show(word).text, (unsigned)bits);
    }
    return setting_value_fail_unknown(reason, "unknown board option", word,
                                      setting_options_next_word, NULL,
                                      ": allowed are " SETTING_OPTIONS);
}

/* Parse the option's name and its value: *size words. */
static bool setting_options_parse_option(struct parsing *parsing, size_t *size) {
    const struct bytes *words = parsing->words;
    struct board_options *options = parsing->options;
    char *reason = parsing->reason;
    int offset;
    *size = 3;
    if (bytes_is(words[0], "TAG")) {
        return setting_options_parse_tag(parsing);
    }
    const struct board_option *option = setting_options_find(words[0], parsing->takes);
    if (option == NULL) {
        return setting_options_fail_word(parsing);
    }
    if (parsing->has[option - board_options]) {
        return setting_value_fail(reason, "%s may be given only once", option->word);
    }
    parsing->has[option - board_options] = true;
    bool is_none =
        option->none != NULL && parsing->word_count > 1 && bytes_is(words[1], option->none);
    setting_options_parse_words *parse_words = setting_options_find_words(option);
    if (parse_words != NULL && !is_none) {
        return parse_words(parsing, option, size);
    }
    bool is_flag = option->form == BOARD_FORM_FLAG;
    bool is_alone = is_flag || (option->may_be_alone && setting_options_end(parsing, 1));
    int64_t value = is_flag ? option->value : 1;
    *size = is_alone ? 1 : 2;
    if (!is_alone &&
        (parsing->word_count == 1 || !setting_options_parse_value(option, words[1], &value))) {
        return setting_options_fail_value(option, parsing->word_count == 1 ? NULL : &words[1],
                                          reason);
    }
    board_options_set(option, options, parsing->state, value);
    options->is_archive |= is_flag && option->needs == BOARD_NEEDS_END;
    options->window.is_share |= option->needs == BOARD_NEEDS_SHARE;
    if (option->form == BOARD_FORM_ZONE && !period_parse_zone(words[1], &offset)) {
        options->period.zone = tzdata_find(words[1], reason);
        return options->period.zone != NULL;
    }
    return true;
}

/* Do the options of the period fit each other? A unit other than before begins without EVERY, ON, FROM and COPY. */
static bool setting_options_finish_period(const bool *has, enum period_unit unit_before,
                                          struct board_options *options, char *reason) {
    bool has_period = options->period.unit != PERIOD_NONE;
    bool restarts = has_period && (has[BOARD_OPTION_PERIOD] || options->period.unit != unit_before);
    options->window.is_share &= !has_period;
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        if (option->needs < BOARD_NEEDS_PERIOD || option->needs > BOARD_NEEDS_WINDOW) {
            continue;
        }
        bool applies = board_options_applies(option, options);
        if (!applies && has[i] && option->needs != BOARD_NEEDS_WINDOW) {
            return setting_value_fail(reason, "%s requires %s", option->word,
                                      !has_period ? "PERIOD HOUR|DAY|WEEK|MONTH|YEAR"
                                      : option->needs == BOARD_NEEDS_WEEK ? "PERIOD WEEK"
                                                                          : "EVERY 2 or more");
        }
        if (!applies) {
            board_options_set(option, options, NULL, 0);
        } else if (option->word != NULL && !has[i] &&
                   (unit_before == PERIOD_NONE || (restarts && option->restarts))) {
            board_options_set(option, options, NULL, option->usual);
        }
    }
    /* What else would change the members of a board with a WINDOW? */
    const struct board_option *other =
        options->window.count > 0 ? board_options_find_alone(options) : NULL;
    if (other != NULL) {
        return setting_value_fail(reason, "WINDOW and %s exclude each other", other->alone);
    }
    return options->archives_max >= options->window.count ||
           setting_value_fail(reason,
                              "WINDOW %u requires ARCHIVE %u or more: it ranks what they hold",
                              (unsigned)options->window.count, (unsigned)options->window.count);
}

bool setting_options_parse(enum setting_takes takes, const struct bytes *words, size_t word_count,
                           struct board_options *options, struct board_state *state, char *reason) {
    struct board_options parsed;
    struct parsing parsing = {.options = &parsed,
                              .state = state,
                              .takes = takes,
                              .words = words,
                              .word_count = word_count,
                              .reason = reason};
    const bool *has = parsing.has;
    board_options_copy(options, &parsed);
    size_t size = 0;
    for (; parsing.word_count > 0; parsing.words += size, parsing.word_count -= size) {
        if (!setting_options_parse_option(&parsing, &size)) {
            return false;
        }
    }
    /* Do they fit each other? One that is given replaces the other of a `board` line, or of a living board. */
    if (has[BOARD_OPTION_FREEZE] && has[BOARD_OPTION_THAW]) {
        return setting_value_fail(reason, "FREEZE and THAW exclude each other");
    }
    if (parsed.cap > 0 && parsed.limit > 0) {
        if (has[BOARD_OPTION_CAP] == has[BOARD_OPTION_LIMIT]) {
            return setting_value_fail(reason,
                                      "CAP and LIMIT exclude each other: a full board either "
                                      "drops its last member or refuses newcomers");
        }
        parsed.cap = has[BOARD_OPTION_CAP] ? parsed.cap : 0;
        parsed.limit = has[BOARD_OPTION_LIMIT] ? parsed.limit : 0;
    }
    if (!setting_options_finish_period(has, options->period.unit, &parsed, reason)) {
        return false;
    }
    parsed.guards = board_options_guards(&parsed);
    /* Its records stay when nobody is ranked. */
    parsed.is_created |= (parsed.has_rating || parsed.has_limits || parsed.has_hold) &&
                         takes != SETTING_TAKES_STATE && takes != SETTING_TAKES_LEAGUE;
    board_options_copy(&parsed, options);
    return true;
}

/* ---- options -> words ---- */

size_t setting_options_print_one(const struct board_option *option,
                                 const struct board_options *options,
                                 const struct board_state *state, char *out) {
    int64_t value = board_options_get(option, options, state);
    const char *text = NULL;
    unsigned unit;
    switch ((enum board_option_form)option->form) {
    case BOARD_FORM_FLAG:
    case BOARD_FORM_POINTER:
        return 0;
    case BOARD_FORM_YES_NO:
    case BOARD_FORM_CHOICE:
        text = option->words[value];
        break;
    case BOARD_FORM_UNIT:
        text = period_unit_name(options->period.unit);
        break;
    case BOARD_FORM_WEEKDAY:
        text = period_weekday_name(options->period.weekday);
        break;
    case BOARD_FORM_DATE:
        return period_print_date(out, options->period.from_day);
    case BOARD_FORM_ZONE:
        return period_print_zone(out, &options->period);
    case BOARD_FORM_AGE:
        unit = setting_options_find_unit(value, UNIT_MINUTE);
        return (size_t)snprintf(out, SETTING_OPTION_TEXT_MAX, "%" PRId64 " %s",
                                value / units[unit].ms, units[unit].word);
    case BOARD_FORM_RATING:
        return setting_options_print_rating(&options->rating, out);
    case BOARD_FORM_LIMITS:
        return setting_options_print_limits(&options->limits, out);
    case BOARD_FORM_HOLD:
        return setting_options_print_hold(&options->hold, out);
    case BOARD_FORM_NUMBER:
    case BOARD_FORM_HOUR:
    case BOARD_FORM_TIME:
    case BOARD_FORM_WINDOW:
    case BOARD_FORM_FRACTION:
        return bytes_print_i64(out, value);
    }
    return (size_t)snprintf(out, SETTING_OPTION_TEXT_MAX, "%s", text);
}

size_t setting_options_print(const struct board_options *options, const struct board_state *state,
                             char *out) {
    size_t size = 0;
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        int64_t value = board_options_get(option, options, state);
        bool is_usual = option->form == BOARD_FORM_FLAG
                            ? value != option->value || (value == 0 && !option->is_of_state)
                        : option->form == BOARD_FORM_ZONE
                            ? value == 0 && options->period.zone == NULL
                            : value == option->usual;
        if (option->word == NULL || option->is_of_league || is_usual ||
            !board_options_applies(option, options)) {
            continue;
        }
        size += (size_t)snprintf(out + size, SETTING_OPTION_TEXT_MAX, " %s", option->word);
        bool is_alone = option->form == BOARD_FORM_FLAG ||
                        (option->form == BOARD_FORM_FRACTION && value == BOARD_FRACTION_IS_NOTHING);
        for (size_t more = i;
             !is_alone && more < BOARD_OPTION_COUNT && (more == i || board_options[more].is_more);
             more++) {
            out[size++] = ' ';
            size +=
                board_options[more].is_of_league
                    ? bytes_print_i64(out + size,
                                      board_options_get(&board_options[more], options, NULL))
                    : setting_options_print_one(&board_options[more], options, state, out + size);
        }
    }
    out[size] = '\0';
    return size;
}

/* ---- options and layout ---- */

bool setting_options_check(const struct board_options *options, char *reason) {
    const struct layout_time *time = &options->layout.time;
    const char *conflict = board_options_find_conflict(options);
    if (conflict != NULL) {
        return setting_value_fail(reason, "%s", conflict);
    }
    /* The times of a board with a WINDOW do not begin anew with each period. */
    if (options->period.unit == PERIOD_NONE || time->bits == 0 || options->window.count > 0) {
        return true;
    }
    /* To count the layout's time units in the longest period; at least 1. */
    uint64_t span_us = (uint64_t)period_longest_ms(&options->period) * 1000;
    uint64_t last_unit = (span_us - 1) / (uint64_t)time->unit_us;
    unsigned bits = last_unit > 0 ? 64 - (unsigned)__builtin_clzll(last_unit) : 1;
    if (time->bits >= bits) {
        return true;
    }
    const char *unit = layout_unit_name(time->unit);
    char every[16] = "";
    if (options->period.every > 1) {
        snprintf(every, sizeof every, " EVERY %u", (unsigned)options->period.every);
    }
    return setting_value_fail(
        reason, "PERIOD %s%s needs at least TIME %u %s: TIME %u %s has too few bits",
        period_unit_name(options->period.unit), every, bits, unit, (unsigned)time->bits, unit);
}
