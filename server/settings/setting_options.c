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

static const struct {
    const char *name;
    int64_t ms;
} ages[] = {{"MINUTE", 60000}, {"HOUR", 3600000}, {"DAY", 86400000}};
enum { AGES = sizeof ages / sizeof ages[0] };

/* ---- words -> options ---- */

/* What was parsed so far. */
struct parsing {
    struct board_options *options;
    struct board_state *state; /* NULL: its words are not taken */
    enum setting_takes takes;
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
        return setting_words_fail(reason, "%s is unknown: use %s", option->word, option->wanted);
    }
    if (word == NULL || option->is_of_league) {
        return setting_words_fail(reason, "%s needs %s%s%s", option->word,
                                  forms[option->form].article, option->wanted, range);
    }
    return setting_words_fail(reason, "%s '%s' is %s %s%s", option->word, bytes_show(*word).text,
                              forms[option->form].error, option->wanted, range);
}

/* TAG name bits|NONE. A tag that is there gets other bits. */
static bool setting_options_parse_tag(struct parsing *parsing, const struct bytes *words,
                                      size_t word_count) {
    struct tag_set *tags = &parsing->options->layout.tags;
    char ignored[TAG_ERROR_MAX];
    if (word_count < 3) {
        return setting_words_fail(parsing->reason, "TAG needs a name and a width: TAG name bits");
    }
    struct bytes name = words[1];
    struct bytes bits = words[2];
    int index = tag_set_find(tags, name);
    bool is_none = bytes_is(bits, "NONE");
    if (tag_set_find(&parsing->given, name) >= 0) {
        return setting_words_fail(parsing->reason, "TAG %s may be given only once",
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
           setting_words_fail(parsing->reason, "more than %d tags are named", (int)TAGS_MAX);
}

/* STALE n unit: *size words. */
static bool setting_options_parse_age(const struct parsing *parsing,
                                      const struct board_option *option, const struct bytes *words,
                                      size_t word_count, size_t *size) {
    int64_t count;
    size_t i = 0;
    *size = 3;
    if (word_count < 3) {
        return setting_words_fail(parsing->reason,
                                  "STALE needs a number and a unit: STALE n MINUTE|HOUR|DAY");
    }
    if (!setting_options_parse_number(option, words[1], &count)) {
        return setting_options_fail_value(option, &words[1], parsing->reason);
    }
    while (i < AGES && !bytes_is(words[2], ages[i].name)) {
        i++;
    }
    if (i == AGES) {
        return setting_words_fail(parsing->reason,
                                  "STALE %s '%s' is unknown: use MINUTE, HOUR or DAY",
                                  bytes_show(words[1]).text, bytes_show(words[2]).text);
    }
    board_options_set(option, parsing->options, parsing->state, count * ages[i].ms);
    return true;
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
static bool setting_options_end(const struct parsing *parsing, const struct bytes *words,
                                size_t word_count, size_t at) {
    return at >= word_count || bytes_is(words[at], "TAG") ||
           setting_options_find(words[at], parsing->takes) != NULL;
}

/* WINDOW n SUM|BEST: *size words. Where the window is does not change. Of a board that has one, n alone, where
 * none of the words before an option is left out, leaves what its periods are to it. */
static bool setting_options_parse_window(const struct parsing *parsing,
                                         const struct board_option *option,
                                         const struct bytes *words, size_t word_count,
                                         size_t *size) {
    struct board_window *window = &parsing->options->window;
    int64_t value;
    bool is_alone = word_count >= 2 && setting_options_end(parsing, words, word_count, 2);
    *size = is_alone ? 2 : 3;
    if (word_count < 2 || (is_alone && window->count == 0)) {
        return setting_words_fail(parsing->reason,
                                  "WINDOW needs a number of periods and what they are to it: "
                                  "WINDOW n SUM|BEST");
    }
    if (!setting_options_parse_number(option, words[1], &value)) {
        return setting_options_fail_value(option, &words[1], parsing->reason);
    }
    window->count = (uint16_t)value;
    if (!is_alone && !setting_options_parse_value(option + 1, words[2], &value)) {
        return setting_words_fail(parsing->reason, "WINDOW %u '%s' is unknown: use SUM or BEST",
                                  (unsigned)window->count, bytes_show(words[2]).text);
    }
    if (!is_alone) {
        board_options_set(option + 1, parsing->options, parsing->state, value);
    }
    return true;
}

/* The numbers behind LEAGUE, each a row. */
static bool setting_options_parse_league(const struct parsing *parsing,
                                         const struct board_option *option,
                                         const struct bytes *words, size_t word_count,
                                         size_t *size) {
    int64_t value;
    for (*size = 1; *size == 1 || option->is_more; (*size)++, option++) {
        if (*size == word_count || !setting_options_parse_number(option, words[*size], &value)) {
            return setting_words_fail(parsing->reason, "LEAGUE needs five numbers");
        }
        board_options_set(option, parsing->options, parsing->state, value);
    }
    return true;
}

/* ---- RATING system name value ... ---- */

/* What a name in RATING stands for: a parameter of the rule, or one of these, by which the board decides who is ranked. */
enum { RATING_MAXDEV = RATING_PARAMETERS, RATING_MINGAMES, RATING_NAMES };

static const char *setting_options_rating_name(unsigned name) {
    return name == RATING_MAXDEV     ? "MAXDEV"
           : name == RATING_MINGAMES ? "MINGAMES"
                                     : rating_parameter_name((enum rating_parameter)name);
}

static bool setting_options_rating_has(const struct rating_rule *rule, unsigned name) {
    return name < RATING_PARAMETERS
               ? rating_parameter_is_of((enum rating_parameter)name, rule->system)
               : name == RATING_MINGAMES || rule->system != RATING_ELO;
}

/* What a value may be. */
struct rating_range {
    unsigned decimals;
    int64_t least, most;
};

static struct rating_range setting_options_rating_range(const struct rating_rule *rule,
                                                        unsigned name) {
    enum rating_parameter parameter = (enum rating_parameter)name;
    return name == RATING_MAXDEV
               ? (struct rating_range){rating_decimals(rule->system), 0, RATING_LIMIT}
           : name == RATING_MINGAMES
               ? (struct rating_range){0, 0, UINT32_MAX}
               : (struct rating_range){rating_parameter_decimals(parameter, rule->system),
                                       rating_parameter_least(parameter, rule->system),
                                       rating_parameter_most(parameter, rule->system)};
}

static int64_t setting_options_rating_value(const struct board_rating *rating, unsigned name) {
    return name == RATING_MAXDEV     ? rating->dev_max
           : name == RATING_MINGAMES ? rating->games_min
                                     : rating->rule.of[name];
}

static size_t setting_options_print_rating(const struct board_rating *rating, char *out) {
    struct board_rating usual = {.dev_max = 0};
    char *at = out;
    rating_rule_init(&usual.rule, rating->rule.system);
    bool has_k = rating->rule.of[RATING_K] != usual.rule.of[RATING_K];
    at += sprintf(at, "%s", rating_system_name(rating->rule.system));
    for (unsigned name = 0; name < RATING_NAMES; name++) {
        int64_t value = setting_options_rating_value(rating, name);
        bool is_k = name == RATING_K_NEW || name == RATING_K_TOP; /* K alone says these, too */
        if (setting_options_rating_has(&rating->rule, name) &&
            (value != setting_options_rating_value(&usual, name) || (is_k && has_k))) {
            at += sprintf(at, " %s ", setting_options_rating_name(name));
            at += decimal_print(at, decimal_from_i64(value),
                                setting_options_rating_range(&rating->rule, name).decimals);
        }
    }
    return (size_t)(at - out);
}

/* The value of a name; false: the reason was given. */
static bool setting_options_parse_parameter(const struct parsing *parsing, unsigned name,
                                            struct bytes word) {
    struct board_rating *rating = &parsing->options->rating;
    struct rating_range range = setting_options_rating_range(&rating->rule, name);
    struct decimal value;
    bool is_number =
        decimal_parse(word, range.decimals, &value) == DECIMAL_OK && value.magnitude <= INT64_MAX;
    int64_t number = !is_number          ? 0
                     : value.is_negative ? -(int64_t)value.magnitude
                                         : (int64_t)value.magnitude;
    if (!is_number || number < range.least || number > range.most) {
        char limits[2][DECIMAL_TEXT_MAX + 1];
        limits[0][decimal_print(limits[0], decimal_from_i64(range.least), range.decimals)] = '\0';
        limits[1][decimal_print(limits[1], decimal_from_i64(range.most), range.decimals)] = '\0';
        return setting_words_fail(
            parsing->reason, "RATING %s %s '%s' is not a number with at most %u decimals: %s..%s",
            rating_system_name(rating->rule.system), setting_options_rating_name(name),
            bytes_show(word).text, range.decimals, limits[0], limits[1]);
    }
    if (name == RATING_MAXDEV) {
        rating->dev_max = number;
    } else if (name == RATING_MINGAMES) {
        rating->games_min = (uint32_t)number;
    } else {
        rating->rule.of[name] = number;
    }
    return true;
}

/* *size words. Where the board has this system already, what is not named stays. */
static bool setting_options_parse_rating(const struct parsing *parsing,
                                         const struct board_option *option,
                                         const struct bytes *words, size_t word_count,
                                         size_t *size) {
    struct board_options *options = parsing->options;
    struct board_rating *rating = &options->rating;
    bool has[RATING_NAMES] = {false};
    enum rating_parameter wrong;
    unsigned system = 0;
    while (word_count > 1 && system < RATING_SYSTEMS &&
           !bytes_is(words[1], rating_system_name((enum rating_system)system))) {
        system++;
    }
    if (word_count < 2 || system == RATING_SYSTEMS) {
        return setting_options_fail_value(option, word_count < 2 ? NULL : &words[1],
                                          parsing->reason);
    }
    if (!options->has_rating || rating->rule.system != (enum rating_system)system) {
        *rating = (struct board_rating){.dev_max = 0};
        rating_rule_init(&rating->rule, (enum rating_system)system);
    }
    options->has_rating = true;
    for (*size = 2; *size < word_count; *size += 2) {
        unsigned name = 0;
        while (name < RATING_NAMES &&
               !(setting_options_rating_has(&rating->rule, name) &&
                 bytes_is(words[*size], setting_options_rating_name(name)))) {
            name++;
        }
        if (name == RATING_NAMES) {
            break; /* the system has no such parameter */
        }
        if (has[name]) {
            return setting_words_fail(parsing->reason, "RATING %s %s may be given only once",
                                      rating_system_name((enum rating_system)system),
                                      setting_options_rating_name(name));
        }
        has[name] = true;
        if (*size + 1 == word_count) {
            return setting_words_fail(parsing->reason, "RATING %s %s needs a value",
                                      rating_system_name((enum rating_system)system),
                                      setting_options_rating_name(name));
        }
        if (!setting_options_parse_parameter(parsing, name, words[*size + 1])) {
            return false;
        }
    }
    /* K alone is that of all players. */
    for (unsigned name = RATING_K_NEW; has[RATING_K] && name <= RATING_K_TOP; name++) {
        if (!has[name]) {
            rating->rule.of[name] = rating->rule.of[RATING_K];
        }
    }
    return rating_rule_check(&rating->rule, &wrong) ||
           setting_words_fail(parsing->reason, "RATING %s %s does not fit the others",
                              rating_system_name((enum rating_system)system),
                              rating_parameter_name(wrong));
}

/* ---- LIMITS PLAYERS|ALL limit ... ---- */

/* The units of EVERY, and those behind PER. */
static const struct {
    const char *word, *window_word;
    int64_t ms;
} limit_units[] = {
    {"S", NULL, 1000}, {"M", "MINUTE", 60000}, {"H", "HOUR", 3600000}, {"D", "DAY", 86400000}};
enum { LIMIT_UNITS = sizeof limit_units / sizeof limit_units[0] };

static bool setting_options_parse_limit_unit(bool is_window, struct bytes word, int64_t *ms) {
    for (size_t i = 0; i < LIMIT_UNITS; i++) {
        const char *unit = is_window ? limit_units[i].window_word : limit_units[i].word;
        if (unit != NULL && bytes_is(word, unit)) {
            *ms = limit_units[i].ms;
            return true;
        }
    }
    return false;
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
    struct decimal value = {.magnitude = 0};
    unsigned scale = 0;
    int64_t unit_ms = 0;
    *size = is_window ? 3 : has == LIMIT_HAS_TIME ? 2 : 1;
    bool is_fine = word_count >= *size &&
                   decimal_parse_exact(words[0], &value, &scale) == DECIMAL_OK &&
                   value.magnitude <= INT64_MAX &&
                   ((has & LIMIT_HAS_VALUE) != 0 ||
                    (scale == 0 && value.magnitude >= 1 && value.magnitude <= LIMIT_COUNT_MAX)) &&
                   (!is_window || bytes_is(words[1], "PER")) &&
                   ((has & LIMIT_HAS_TIME) == 0 ||
                    setting_options_parse_limit_unit(is_window, words[*size - 1], &unit_ms));
    int64_t number = value.is_negative ? -(int64_t)value.magnitude : (int64_t)value.magnitude;
    if (is_fine) {
        rule->has = (uint8_t)(rule->has | 1U << limit);
        rule->of[limit] = has == LIMIT_HAS_TIME ? 0 : number;
        rule->scale[limit] = (uint8_t)scale;
        rule->time_ms[limit] = has == LIMIT_HAS_TIME && number <= LIMIT_TIME_MS_MAX / unit_ms
                                   ? number * unit_ms
                               : has == LIMIT_HAS_TIME ? 0
                                                       : unit_ms;
        is_fine = limits_validate(rule);
    }
    return is_fine || setting_words_fail(parsing->reason, "LIMITS %s%s%s is not valid: use %s %s",
                                         limit_rows[limit].name, word_count > 0 ? " " : "",
                                         word_count > 0 ? bytes_show(words[0]).text : "",
                                         limit_rows[limit].name, setting_options_limit_form(has));
}

/* *size words. All limits are said at once: those of before are gone. */
static bool setting_options_parse_limits(const struct parsing *parsing,
                                         const struct board_option *option,
                                         const struct bytes *words, size_t word_count,
                                         size_t *size) {
    struct board_options *options = parsing->options;
    bool is_for_all = word_count > 1 && bytes_is(words[1], "ALL");
    if (word_count < 2 || (!is_for_all && !bytes_is(words[1], "PLAYERS"))) {
        return setting_options_fail_value(option, word_count < 2 ? NULL : &words[1],
                                          parsing->reason);
    }
    options->has_limits = true;
    options->limits = (struct limits_rule){.has = 0};
    for (*size = 2; *size < word_count;) {
        unsigned limit = 0;
        size_t more;
        while (limit < LIMITS && !bytes_is(words[*size], limit_rows[limit].name)) {
            limit++;
        }
        /* A PERIOD has an EVERY, too, without a unit. */
        bool is_last = *size + 2 >= word_count;
        bool is_of_period = limit == LIMIT_EVERY &&
                            (is_last ? options->period.unit != PERIOD_NONE
                                     : setting_options_end(parsing, words, word_count, *size + 2));
        if (limit == LIMITS || is_of_period) {
            break;
        }
        if (limits_has(&options->limits, limit)) {
            return setting_words_fail(parsing->reason, "LIMITS %s may be given only once",
                                      limit_rows[limit].name);
        }
        if (!setting_options_parse_limit(parsing, limit, words + *size + 1, word_count - *size - 1,
                                         &more)) {
            return false;
        }
        *size += 1 + more;
    }
    options->limits.is_for_all = is_for_all;
    return options->limits.has != 0 ||
           setting_words_fail(parsing->reason,
                              "LIMITS %s needs limits behind it: MAX, MIN, STEP, "
                              "EVERY, RESULTS, GAIN or MINTIME",
                              is_for_all ? "ALL" : "PLAYERS");
}

size_t setting_options_print_limit(const struct limits_rule *rule, enum limit limit, char *out) {
    uint8_t has = limit_rows[limit].has;
    size_t unit = LIMIT_UNITS - 1;
    char *at = out + sprintf(out, "%s", limit_rows[limit].name);
    if (has != LIMIT_HAS_TIME) {
        *at++ = ' ';
        at += decimal_print(at, decimal_from_i64(rule->of[limit]), rule->scale[limit]);
        *at = '\0';
    }
    while ((has & LIMIT_HAS_TIME) != 0 && unit > 0 &&
           rule->time_ms[limit] % limit_units[unit].ms != 0) {
        unit--;
    }
    if (has == LIMIT_HAS_TIME) {
        at += sprintf(at, " %" PRId64 " %s", rule->time_ms[limit] / limit_units[unit].ms,
                      limit_units[unit].word);
    } else if ((has & LIMIT_HAS_TIME) != 0) {
        at += sprintf(at, " PER %s", limit_units[unit].window_word);
    }
    return (size_t)(at - out);
}

static size_t setting_options_print_limits(const struct limits_rule *rule, char *out) {
    size_t size = (size_t)sprintf(out, "%s", rule->is_for_all ? "ALL" : "PLAYERS");
    for (unsigned limit = 0; limit < LIMITS; limit++) {
        if (limits_has(rule, limit)) {
            out[size++] = ' ';
            size += setting_options_print_limit(rule, limit, out + size);
        }
    }
    return size;
}

/* ---- HOLD PLAYERS|ALL result ... ---- */

/* One of OVER v, TOP n, LIMITS, AUTO n H|D: *size words; 0: it is none of these. false: it is not right. */
static bool setting_options_parse_held(struct hold_rule *rule, const struct bytes *words,
                                       size_t word_count, size_t *size) {
    bool is_auto = bytes_is(words[0], "AUTO");
    *size = bytes_is(words[0], "OVER") || bytes_is(words[0], "TOP") ? 2 : is_auto ? 3 : 0;
    if (bytes_is(words[0], "LIMITS") &&
        (word_count < 2 || (!bytes_is(words[1], "PLAYERS") && !bytes_is(words[1], "ALL") &&
                            !bytes_is(words[1], "NONE")))) { /* not the option */
        *size = 1;
        rule->takes_limits = true;
        return true;
    }
    struct decimal value = {.magnitude = 0};
    unsigned scale = 0;
    if (*size == 0) {
        return true;
    }
    if (word_count < *size || decimal_parse_exact(words[1], &value, &scale) != DECIMAL_OK ||
        value.magnitude > INT64_MAX) {
        return false;
    }
    int64_t number = value.is_negative ? -(int64_t)value.magnitude : (int64_t)value.magnitude;
    if (bytes_is(words[0], "OVER")) {
        rule->has_over = true;
        rule->over = number;
        rule->scale = (uint8_t)scale;
        return true;
    }
    if (scale != 0 || number < 1) {
        return false;
    }
    if (!is_auto) {
        rule->top = number <= HOLD_TOP_MAX ? (uint32_t)number : 0;
        return rule->top > 0;
    }
    int64_t unit_ms = bytes_is(words[2], "H") ? 3600000 : bytes_is(words[2], "D") ? 86400000 : 0;
    rule->auto_ms = unit_ms > 0 && number <= HOLD_AUTO_MS_MAX / unit_ms ? number * unit_ms : 0;
    return rule->auto_ms > 0;
}

static bool setting_options_parse_hold(const struct parsing *parsing,
                                       const struct board_option *option, const struct bytes *words,
                                       size_t word_count, size_t *size) {
    struct board_options *options = parsing->options;
    struct hold_rule *rule = &options->hold;
    bool is_for_all = word_count > 1 && bytes_is(words[1], "ALL");
    size_t more = 1;
    if (word_count < 2 || (!is_for_all && !bytes_is(words[1], "PLAYERS"))) {
        return setting_options_fail_value(option, word_count < 2 ? NULL : &words[1],
                                          parsing->reason);
    }
    options->has_hold = true;
    *rule = (struct hold_rule){.is_for_all = is_for_all};
    for (*size = 2; *size < word_count && more > 0; *size += more) {
        const struct hold_rule before = *rule;
        const char *word = bytes_show(words[*size]).text;
        if (!setting_options_parse_held(rule, words + *size, word_count - *size, &more)) {
            return setting_words_fail(parsing->reason, "HOLD %s needs %s behind it", word,
                                      bytes_is(words[*size], "OVER") ? "a value"
                                      : bytes_is(words[*size], "TOP")
                                          ? "a number of places, 1 to 1000000"
                                          : "a time: n H|D");
        }
        if (more > 0 && ((before.has_over && bytes_is(words[*size], "OVER")) ||
                         (before.top > 0 && bytes_is(words[*size], "TOP")) ||
                         (before.takes_limits && bytes_is(words[*size], "LIMITS")) ||
                         (before.auto_ms > 0 && bytes_is(words[*size], "AUTO")))) {
            return setting_words_fail(parsing->reason, "HOLD %s may be given only once",
                                      bytes_show(words[*size]).text);
        }
    }
    return holds_validate(rule) ||
           setting_words_fail(parsing->reason, "HOLD %s needs OVER, TOP or LIMITS behind it",
                              is_for_all ? "ALL" : "PLAYERS");
}

static size_t setting_options_print_hold(const struct hold_rule *rule, char *out) {
    char *at = out + sprintf(out, "%s", rule->is_for_all ? "ALL" : "PLAYERS");
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
        bool is_days = rule->auto_ms % 86400000 == 0;
        at += sprintf(at, " AUTO %" PRId64 " %c", rule->auto_ms / (is_days ? 86400000 : 3600000),
                      is_days ? 'D' : 'H');
    }
    return (size_t)(at - out);
}

/* How an option is parsed whose value has several words; NULL: it has one. */
typedef bool setting_options_parse_words(const struct parsing *parsing,
                                         const struct board_option *option,
                                         const struct bytes *words, size_t word_count,
                                         size_t *size);
static setting_options_parse_words *setting_options_find_words(const struct board_option *option) {
    return option->form == BOARD_FORM_AGE                  ? setting_options_parse_age
           : option->form == BOARD_FORM_WINDOW             ? setting_options_parse_window
           : option->form == BOARD_FORM_RATING             ? setting_options_parse_rating
           : option->form == BOARD_FORM_LIMITS             ? setting_options_parse_limits
           : option->form == BOARD_FORM_HOLD               ? setting_options_parse_hold
           : option == &board_options[BOARD_OPTION_LEAGUE] ? setting_options_parse_league
                                                           : NULL;
}

/* false: the word is no option here; reason says what it is. */
static bool setting_options_fail_word(struct bytes word, char *reason) {
    const struct board_option *of_line = setting_options_find(word, SETTING_TAKES_LINE);
    if (of_line != NULL) {
        return setting_words_fail(reason, "%s is for `board` lines of leaderboard.conf",
                                  of_line->word);
    }
    bool is_of_layout =
        bytes_is(word, "FIELD") || bytes_is(word, "TIME") || bytes_is(word, "LAYOUT");
    return setting_words_fail(reason,
                              is_of_layout
                                  ? "'%s' is misplaced: give one layout, before the options"
                                  : "unknown board option '%s': allowed are " SETTING_OPTIONS,
                              bytes_show(word).text);
}

/* Parse words[0], the option's name, and its value: *size words. */
static bool setting_options_parse_option(struct parsing *parsing, const struct bytes *words,
                                         size_t word_count, size_t *size) {
    struct board_options *options = parsing->options;
    char *reason = parsing->reason;
    int64_t value;
    int offset;
    *size = 3;
    if (bytes_is(words[0], "TAG")) {
        return setting_options_parse_tag(parsing, words, word_count);
    }
    const struct board_option *option = setting_options_find(words[0], parsing->takes);
    if (option == NULL) {
        return setting_options_fail_word(words[0], reason);
    }
    if (parsing->has[option - board_options]) {
        return setting_words_fail(reason, "%s may be given only once", option->word);
    }
    parsing->has[option - board_options] = true;
    if (option->form == BOARD_FORM_FLAG) {
        *size = 1;
        board_options_set(option, options, parsing->state, option->value);
        options->is_archive |= option->is_of_state && option->needs == BOARD_NEEDS_END;
        return true;
    }
    bool is_none = option->none != NULL && word_count > 1 && bytes_is(words[1], option->none);
    setting_options_parse_words *parse_words = setting_options_find_words(option);
    if (option->form == BOARD_FORM_WINDOW && is_none) {
        options->window = (struct board_window){.count = 0};
    }
    if (parse_words != NULL && !is_none) {
        return parse_words(parsing, option, words, word_count, size);
    }
    if (option->form == BOARD_FORM_FRACTION && setting_options_end(parsing, words, word_count, 1)) {
        *size = 1;
        board_options_set(option, options, parsing->state, BOARD_FRACTION_IS_NOTHING);
        return true;
    }
    if (option->may_be_alone && setting_options_end(parsing, words, word_count, 1)) {
        *size = 1;
        board_options_set(option, options, parsing->state, 1);
        return true;
    }
    *size = 2;
    if (word_count == 1 || !setting_options_parse_value(option, words[1], &value)) {
        return setting_options_fail_value(option, word_count == 1 ? NULL : &words[1], reason);
    }
    board_options_set(option, options, parsing->state, value);
    if (option == &board_options[BOARD_OPTION_SHARE]) {
        options->window.is_share = true;
    }
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
    if (has_period ? options->window.is_share : options->window.count > 0) {
        options->window = (struct board_window){.count = 0};
    }
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        bool is_of_period =
            option->needs >= BOARD_NEEDS_PERIOD && option->needs <= BOARD_NEEDS_EVERY;
        if (!is_of_period) {
            continue;
        }
        if (!has_period && has[i]) {
            return setting_words_fail(reason, "%s requires PERIOD HOUR|DAY|WEEK|MONTH|YEAR",
                                      option->word);
        }
        if (!has_period) {
            board_options_set(option, options, NULL, 0);
        } else if (option->word != NULL && !has[i] &&
                   (unit_before == PERIOD_NONE || (restarts && option->restarts))) {
            board_options_set(option, options, NULL, option->usual);
        }
    }
    if (has[BOARD_OPTION_ON] && options->period.unit != PERIOD_WEEK) {
        return setting_words_fail(reason, "ON requires PERIOD WEEK");
    }
    if (has[BOARD_OPTION_FROM] && options->period.every == 1) {
        return setting_words_fail(reason, "FROM requires EVERY 2 or more");
    }
    options->period.from_day = options->period.every == 1 ? 0 : options->period.from_day;
    /* What else would change the members of a board with a WINDOW? */
    const struct board_option *other =
        options->window.count > 0 ? board_options_find_alone(options) : NULL;
    if (other != NULL) {
        return setting_words_fail(reason, "WINDOW and %s exclude each other", other->alone);
    }
    return options->archives_max >= options->window.count ||
           setting_words_fail(reason,
                              "WINDOW %u requires ARCHIVE %u or more: it ranks what they hold",
                              (unsigned)options->window.count, (unsigned)options->window.count);
}

bool setting_options_parse(enum setting_takes takes, const struct bytes *words, size_t word_count,
                           struct board_options *options, struct board_state *state, char *reason) {
    struct board_options parsed;
    struct parsing parsing = {.options = &parsed, .state = state, .takes = takes, .reason = reason};
    const bool *has = parsing.has;
    board_options_copy(options, &parsed);
    size_t size = 0;
    for (size_t i = 0; i < word_count; i += size) {
        if (!setting_options_parse_option(&parsing, words + i, word_count - i, &size)) {
            return false;
        }
    }
    /* Do they fit each other? One that is given replaces the other of a `board` line, or of a living board. */
    if (has[BOARD_OPTION_FREEZE] && has[BOARD_OPTION_THAW]) {
        return setting_words_fail(reason, "FREEZE and THAW exclude each other");
    }
    if (parsed.cap > 0 && parsed.limit > 0) {
        if (has[BOARD_OPTION_CAP] == has[BOARD_OPTION_LIMIT]) {
            return setting_words_fail(reason,
                                      "CAP and LIMIT exclude each other: a full board either "
                                      "drops its last member or refuses newcomers");
        }
        parsed.cap = has[BOARD_OPTION_CAP] ? parsed.cap : 0;
        parsed.limit = has[BOARD_OPTION_LIMIT] ? parsed.limit : 0;
    }
    parsed.guards = board_options_guards(&parsed);
    if (!setting_options_finish_period(has, options->period.unit, &parsed, reason)) {
        return false;
    }
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
    size_t unit = AGES - 1;
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
        while (unit > 0 && value % ages[unit].ms != 0) {
            unit--;
        }
        return (size_t)snprintf(out, SETTING_OPTION_TEXT_MAX, "%" PRId64 " %s",
                                value / ages[unit].ms, ages[unit].name);
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
        return setting_words_fail(reason, "%s", conflict);
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
    return setting_words_fail(
        reason, "PERIOD %s%s needs at least TIME %u %s: TIME %u %s has too few bits",
        period_unit_name(options->period.unit), every, bits, unit, (unsigned)time->bits, unit);
}
