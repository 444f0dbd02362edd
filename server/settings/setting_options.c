/* Words <-> the options of a board beside its layout.
 *
 *     CAP 100 KEEP BEST         ->   .cap = 100, .keeps_best = true
 *     TAG country 8             ->   .layout.tags: another one, or other bits
 *     PERIOD WEEK TZ +08:00     ->   .period = {PERIOD_WEEK, .zone_minutes = 480}
 *     STALE 6 HOUR              ->   .stale_ms = 21600000
 *     WINDOW 24 SUM             ->   .window = {.count = 24} */
#include "server/settings/setting_private.h"

#include "codec/timestamp.h"
#include "server/system/tzdata.h"

/* A number of members; NONE is 0. */
static bool setting_options_parse_members(struct bytes word, uint32_t *count) {
    uint64_t value = 0;
    if (!bytes_is(word, "NONE") &&
        (!bytes_parse_u64(word, &value) || value < 1 || value > RULES_CAP_MAX)) {
        return false;
    }
    *count = (uint32_t)value;
    return true;
}

/* NONE is 0, and takes the guard away. */
static bool setting_options_parse_time(struct bytes word, struct rules *rules, uint8_t guard,
                                       int64_t *time_ms) {
    int64_t time_us = 0;
    if (!bytes_is(word, "NONE") && (!timestamp_parse(word, &time_us) || time_us < 1000)) {
        return false;
    }
    *time_ms = time_us / 1000;
    rules->guards = (uint8_t)(time_us > 0 ? rules->guards | guard : rules->guards & ~guard);
    return true;
}

/* A name is looked up afterwards: its error has a text of its own. */
static bool setting_options_parse_zone(struct bytes word, struct period *period) {
    int zone_minutes = 0;
    period->zone = NULL;
    if (!period_parse_zone(word, &zone_minutes) && !zone_is_name(word)) {
        return false;
    }
    period->zone_minutes = (int16_t)zone_minutes;
    return true;
}

static bool setting_options_parse_number(struct bytes word, uint64_t minimum, uint64_t maximum,
                                         uint64_t *number) {
    return bytes_parse_u64(word, number) && *number >= minimum && *number <= maximum;
}

enum {
    OPTION_CAP,
    OPTION_LIMIT,
    OPTION_KEEP,
    OPTION_FREEZE,
    OPTION_THAW,
    OPTION_OPENS,
    OPTION_CLOSES,
    OPTION_STALE,
    OPTION_SETTLE,
    OPTION_PERIOD,
    OPTION_EVERY,
    OPTION_ON,
    OPTION_AT,
    OPTION_FROM,
    OPTION_TZ,
    OPTION_ARCHIVE,
    OPTION_ARCHIVED,
    OPTION_COPY,
    OPTION_WINDOW,
    OPTION_COUNT
};

/* An option's value; of FREEZE, THAW and COPY the option itself. false: it is none. */
static bool setting_options_parse_value(size_t option, struct bytes word, struct rules *rules) {
    struct period *period = &rules->period;
    uint64_t number = 0;
    bool is_fine = true;
    switch (option) {
    case OPTION_CAP:
        return setting_options_parse_members(word, &rules->cap);
    case OPTION_LIMIT:
        return setting_options_parse_members(word, &rules->limit);
    case OPTION_KEEP:
        rules->keeps_best = bytes_is(word, "BEST");
        return rules->keeps_best || bytes_is(word, "LAST");
    case OPTION_FREEZE:
        rules->guards |= RULES_FROZEN;
        return true;
    case OPTION_THAW:
        rules->guards &= (uint8_t)~RULES_FROZEN;
        return true;
    case OPTION_OPENS:
        return setting_options_parse_time(word, rules, RULES_OPENS, &rules->opens_ms);
    case OPTION_CLOSES:
        return setting_options_parse_time(word, rules, RULES_CLOSES, &rules->closes_ms);
    case OPTION_SETTLE:
        rules->settles = bytes_is(word, "YES");
        return rules->settles || bytes_is(word, "NO");
    case OPTION_PERIOD:
        period->unit = period_parse_unit(word);
        return period->unit != PERIOD_NONE || bytes_is(word, "NONE");
    case OPTION_EVERY:
        is_fine = setting_options_parse_number(word, 1, PERIOD_EVERY_MAX, &number);
        period->every = (uint16_t)number;
        return is_fine;
    case OPTION_ON:
        return period_parse_weekday(word, &period->weekday);
    case OPTION_AT:
        is_fine = setting_options_parse_number(word, 0, 23, &number);
        period->hour = (uint8_t)number;
        return is_fine;
    case OPTION_FROM:
        return period_parse_date(word, &period->from_day);
    case OPTION_TZ:
        return setting_options_parse_zone(word, period);
    case OPTION_ARCHIVE:
        is_fine = bytes_is(word, "ALL") ||
                  setting_options_parse_number(word, 0, PERIOD_COUNT_MAX, &number);
        rules->archives_max = bytes_is(word, "ALL") ? RULES_ARCHIVES_ALL : (uint32_t)number;
        return is_fine;
    case OPTION_COPY:
        rules->copies = true;
        return true;
    default:
        CHECK(option == OPTION_ARCHIVED);
        rules->archives_are_writable = bytes_is(word, "WRITABLE");
        return rules->archives_are_writable || bytes_is(word, "FROZEN");
    }
}

static const struct option {
    const char *name;
    /* "CAP needs a number", "CAP 'x' is not a valid number" */
    const char *article, *error, *wanted; /* wanted NULL: the option has no value */
} options[OPTION_COUNT] = {
    {"CAP", "a ", "not a valid", "number of members: 1..4294967295"},
    {"LIMIT", "a ", "not a valid", "number of members: 1..4294967295"},
    {"KEEP", "", "unknown: use", "LAST or BEST"},
    {"FREEZE", NULL, NULL, NULL},
    {"THAW", NULL, NULL, NULL},
    {"OPENS", "a ", "not a", "time: ISO 8601 with an offset, or unix milliseconds"},
    {"CLOSES", "a ", "not a", "time: ISO 8601 with an offset, or unix milliseconds"},
    {"STALE", "a ", "not a valid", "number of units: 1..1000000"},
    {"SETTLE", "", "unknown: use", "YES or NO"},
    {"PERIOD", "", "unknown: use", "HOUR, DAY, WEEK, MONTH or YEAR"},
    {"EVERY", "a ", "not a valid", "number of periods in one: 1..1000"},
    {"ON", "a ", "not a", "weekday: MON, TUE, WED, THU, FRI, SAT or SUN"},
    {"AT", "an ", "not an", "hour of the day: 0..23"},
    {"FROM", "a ", "not a", "date: 2026-11-16"},
    {"TZ", "an ", "not a valid",
     "offset from UTC or name of a time zone: -12:00..+14:00, Europe/Berlin"},
    {"ARCHIVE", "a ", "not a valid", "number of periods: 0..1000000"},
    {"ARCHIVED", "", "unknown: use", "FROZEN or WRITABLE"},
    {"COPY", NULL, NULL, NULL},
    {"WINDOW", "a ", "not a valid", "number of periods: 2..1000"},
};
enum { STALE_MAX = 1000000 };
_Static_assert(STALE_MAX *INT64_C(86400000) == RULES_STALE_MAX_MS, "in days");
_Static_assert(RULES_CAP_MAX == 4294967295 && PERIOD_COUNT_MAX == 1000000 &&
                   PERIOD_EVERY_MAX == 1000 && RULES_WINDOW_MAX == 1000,
               "options name them");

/* What was parsed so far. */
struct parsing {
    struct rules *rules;
    bool has[OPTION_COUNT];
    struct tag_set given; /* tags that were named, each with one bit */
    char *reason;
};

static bool setting_options_fail_tag(const struct tag_set *tags, struct bytes name, char *reason) {
    size_t size = (size_t)snprintf(reason, SETTING_ERROR_MAX, "no tag '%s': the board has ",
                                   bytes_show(name).text);
    if (tags->count == 0) {
        snprintf(reason + size, SETTING_ERROR_MAX - size, "no tags");
    }
    for (unsigned i = 0; i < tags->count && size < SETTING_ERROR_MAX; i++) {
        size += (size_t)snprintf(reason + size, SETTING_ERROR_MAX - size, "%s%s", i > 0 ? ", " : "",
                                 tags->tags[i].name);
    }
    return false;
}

/* TAG name bits|NONE. A tag that is there gets other bits. */
static bool setting_options_parse_tag(struct parsing *parsing, const struct bytes *words,
                                      size_t word_count) {
    struct tag_set *tags = &parsing->rules->layout.tags;
    char ignored[TAG_ERROR_MAX];
    if (word_count < 3) {
        return setting_fail(parsing->reason, "TAG needs a name and a width: TAG name bits");
    }
    struct bytes name = words[1];
    struct bytes bits = words[2];
    int index = tag_set_find(tags, name);
    bool is_none = bytes_is(bits, "NONE");
    if (tag_set_find(&parsing->given, name) >= 0) {
        return setting_fail(parsing->reason, "TAG %s may be given only once",
                            bytes_show(name).text);
    }
    if (is_none && index < 0) {
        return setting_options_fail_tag(tags, name, parsing->reason);
    }
    if (is_none) {
        tag_set_remove(tags, (unsigned)index);
    } else if (!(index >= 0 ? tag_set_resize(tags, (unsigned)index, bits, parsing->reason)
                            : tag_set_add(tags, name, bits, parsing->reason))) {
        return false;
    }
    /* More of them than a set has cannot be given without naming one again. */
    return tag_set_add(&parsing->given, name, BYTES("1"), ignored) ||
           setting_fail(parsing->reason, "more than %d tags are named", (int)TAGS_MAX);
}

/* STALE n unit|NONE: *size words. */
static bool setting_options_parse_stale(struct parsing *parsing, const struct bytes *words,
                                        size_t word_count, size_t *size) {
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"MINUTE", 60000}, {"HOUR", 3600000}, {"DAY", 86400000}};
    enum { UNITS = sizeof units / sizeof units[0] };
    uint64_t count = 0;
    size_t i = 0;
    *size = 3;
    if (word_count >= 2 && bytes_is(words[1], "NONE")) {
        parsing->rules->stale_ms = 0;
        *size = 2;
        return true;
    }
    if (word_count < 3) {
        return setting_fail(parsing->reason,
                            "STALE needs a number and a unit: STALE n " SETTING_STALES);
    }
    if (!setting_options_parse_number(words[1], 1, STALE_MAX, &count)) {
        return setting_fail(parsing->reason, "STALE '%s' is %s %s", bytes_show(words[1]).text,
                            options[OPTION_STALE].error, options[OPTION_STALE].wanted);
    }
    while (i < UNITS && !bytes_is(words[2], units[i].name)) {
        i++;
    }
    if (i == UNITS) {
        return setting_fail(parsing->reason, "STALE %s '%s' is unknown: use MINUTE, HOUR or DAY",
                            bytes_show(words[1]).text, bytes_show(words[2]).text);
    }
    parsing->rules->stale_ms = (int64_t)count * units[i].ms;
    return true;
}

/* Does an option begin with this word, so that none of the words before it is left out? */
static bool setting_options_has_word(struct bytes word) {
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (bytes_is(word, options[i].name)) {
            return true;
        }
    }
    return bytes_is(word, "TAG");
}

/* WINDOW n SUM|BEST, or NONE: *size words. Where the window is does not change. Of a board that has one, n alone
 * leaves what its periods are to it. */
static bool setting_options_parse_window(struct parsing *parsing, const struct bytes *words,
                                         size_t word_count, size_t *size) {
    struct rules_window *window = &parsing->rules->window;
    uint64_t count = 0;
    *size = 3;
    if (word_count >= 2 && bytes_is(words[1], "NONE")) {
        *window = (struct rules_window){.count = 0};
        *size = 2;
        return true;
    }
    bool is_alone = word_count == 2 || (word_count > 2 && setting_options_has_word(words[2]));
    if (word_count < 2 || (is_alone && window->count == 0)) {
        return setting_fail(parsing->reason,
                            "WINDOW needs a number of periods and what they are to it: "
                            "WINDOW n SUM|BEST");
    }
    if (!setting_options_parse_number(words[1], 2, RULES_WINDOW_MAX, &count)) {
        return setting_fail(parsing->reason, "WINDOW '%s' is %s %s", bytes_show(words[1]).text,
                            options[OPTION_WINDOW].error, options[OPTION_WINDOW].wanted);
    }
    window->count = (uint16_t)count;
    if (is_alone) {
        *size = 2;
        return true;
    }
    window->is_best = bytes_is(words[2], "BEST");
    if (!window->is_best && !bytes_is(words[2], "SUM")) {
        return setting_fail(parsing->reason, "WINDOW %u '%s' is unknown: use SUM or BEST",
                            (unsigned)count, bytes_show(words[2]).text);
    }
    return true;
}

static bool setting_options_fail_unknown(struct bytes word, char *reason) {
    if (bytes_is(word, "FIELD") || bytes_is(word, "TIME") || bytes_is(word, "LAYOUT")) {
        return setting_fail(reason, "'%s' is misplaced: give one layout, before the options",
                            bytes_show(word).text);
    }
    return setting_fail(reason, "unknown board option '%s': allowed are " SETTING_OPTIONS,
                        bytes_show(word).text);
}

/* Parse words[0], the option's name, and its value: *size words. */
static bool setting_options_parse_option(struct parsing *parsing, const struct bytes *words,
                                         size_t word_count, size_t *size) {
    struct rules *rules = parsing->rules;
    char *reason = parsing->reason;
    size_t i = 0;
    *size = 3;
    if (bytes_is(words[0], "TAG")) {
        return setting_options_parse_tag(parsing, words, word_count);
    }
    while (i < OPTION_COUNT && !bytes_is(words[0], options[i].name)) {
        i++;
    }
    if (i == OPTION_COUNT) {
        return setting_options_fail_unknown(words[0], reason);
    }
    const struct option *option = &options[i];
    if (parsing->has[i]) {
        return setting_fail(reason, "%s may be given only once", option->name);
    }
    parsing->has[i] = true;
    *size = option->wanted != NULL ? 2 : 1;
    if (option->wanted == NULL) {
        return setting_options_parse_value(i, words[0], rules);
    }
    if (i == OPTION_STALE) {
        return setting_options_parse_stale(parsing, words, word_count, size);
    }
    if (i == OPTION_WINDOW) {
        return setting_options_parse_window(parsing, words, word_count, size);
    }
    if (word_count == 1) {
        return setting_fail(reason, "%s needs %s%s", option->name, option->article, option->wanted);
    }
    if (!setting_options_parse_value(i, words[1], rules)) {
        return setting_fail(reason, "%s '%s' is %s %s", option->name, bytes_show(words[1]).text,
                            option->error, option->wanted);
    }
    int offset;
    if (i == OPTION_TZ && !period_parse_zone(words[1], &offset)) {
        rules->period.zone = tzdata_find(words[1], reason);
        return rules->period.zone != NULL;
    }
    return true;
}

/* What else would change the members of a board with a WINDOW? */
static bool setting_options_finish_window(const struct rules *rules, char *reason) {
    const struct {
        const char *name;
        bool is_given;
    } others[] = {
        {"CAP", rules->cap > 0},
        {"LIMIT", rules->limit > 0},
        {"STALE", rules->stale_ms > 0},
        {"COPY", rules->copies},
        {"ARCHIVED WRITABLE", rules->archives_are_writable},
    };
    enum { OTHERS = sizeof others / sizeof others[0] };
    if (rules->window.count == 0) {
        return true;
    }
    for (size_t i = 0; i < OTHERS; i++) {
        if (others[i].is_given) {
            return setting_fail(reason, "WINDOW and %s exclude each other", others[i].name);
        }
    }
    return rules->archives_max >= rules->window.count ||
           setting_fail(reason, "WINDOW %u requires ARCHIVE %u or more: it ranks what they hold",
                        (unsigned)rules->window.count, (unsigned)rules->window.count);
}

/* Do the options of the period fit each other? A unit other than before begins without EVERY, ON
 * and FROM. */
static bool setting_options_finish_period(const bool *has, enum period_unit unit_before,
                                          struct rules *rules, char *reason) {
    struct period *period = &rules->period;
    if (period->unit == PERIOD_NONE) {
        for (size_t i = OPTION_EVERY; i <= OPTION_WINDOW; i++) {
            if (has[i]) {
                return setting_fail(reason, "%s requires PERIOD " SETTING_PERIODS, options[i].name);
            }
        }
        *period = (struct period){.unit = PERIOD_NONE};
        rules->archives_max = 0;
        rules->archives_are_writable = false;
        rules->copies = false;
        if (rules->window.count > 0) {
            rules->window = (struct rules_window){.count = 0};
        }
        rules->period_start_ms = 0;
        rules->period_end_ms = 0;
        return true;
    }
    if (rules->window.is_share) {
        rules->window = (struct rules_window){.count = 0};
    }
    if (period->unit != unit_before || has[OPTION_PERIOD]) {
        period->every = has[OPTION_EVERY] ? period->every : 1;
        period->weekday = has[OPTION_ON] ? period->weekday : 0;
        period->from_day = has[OPTION_FROM] ? period->from_day : 0;
        rules->copies = has[OPTION_COPY];
    }
    if (has[OPTION_ON] && period->unit != PERIOD_WEEK) {
        return setting_fail(reason, "ON requires PERIOD WEEK");
    }
    if (period->every == 1 && has[OPTION_FROM]) {
        return setting_fail(reason, "FROM requires EVERY 2 or more");
    }
    period->from_day = period->every == 1 ? 0 : period->from_day;
    if (unit_before == PERIOD_NONE && !has[OPTION_ARCHIVE]) {
        rules->archives_max = RULES_ARCHIVES_ALL;
    }
    if (rules->settles && rules->archives_max == 0) {
        return setting_fail(reason, "SETTLE YES requires ARCHIVE 1 or more: without an archive "
                                    "there is nothing to settle");
    }
    return setting_options_finish_window(rules, reason);
}

/* Do the options fit each other? */
static bool setting_options_finish(const bool *has, const struct rules *before, struct rules *rules,
                                   char *reason) {
    if (has[OPTION_FREEZE] && has[OPTION_THAW]) {
        return setting_fail(reason, "FREEZE and THAW exclude each other");
    }
    /* One that is given replaces the other of a `board` line, or of a living board. */
    if (rules->cap > 0 && rules->limit > 0) {
        if (has[OPTION_CAP] == has[OPTION_LIMIT]) {
            return setting_fail(reason, "CAP and LIMIT exclude each other: a full board either "
                                        "drops its last member or refuses newcomers");
        }
        rules->cap = has[OPTION_CAP] ? rules->cap : 0;
        rules->limit = has[OPTION_LIMIT] ? rules->limit : 0;
    }
    if (rules->opens_ms > 0 && rules->closes_ms > 0 && rules->opens_ms >= rules->closes_ms) {
        return setting_fail(reason, "OPENS must be before CLOSES");
    }
    return setting_options_finish_period(has, before->period.unit, rules, reason);
}

bool settings_parse_options(const struct bytes *words, size_t word_count, struct rules *rules,
                            char *reason) {
    struct rules parsed;
    struct parsing parsing = {.rules = &parsed, .reason = reason};
    rules_copy(rules, &parsed);
    size_t size = 0;
    for (size_t i = 0; i < word_count; i += size) {
        if (!setting_options_parse_option(&parsing, words + i, word_count - i, &size)) {
            return false;
        }
    }
    if (!setting_options_finish(parsing.has, rules, &parsed, reason)) {
        return false;
    }
    rules_copy(&parsed, rules);
    return true;
}

/* Bits needed to count the layout's time units in the longest period; at least 1. */
static unsigned setting_options_bits_for_period(const struct rules *rules) {
    uint64_t span_us = (uint64_t)period_longest_ms(&rules->period) * 1000;
    uint64_t last_unit = (span_us - 1) / (uint64_t)rules->layout.time.unit_us;
    return last_unit > 0 ? 64 - (unsigned)__builtin_clzll(last_unit) : 1;
}

bool settings_check_rules(const struct rules *rules, char *reason) {
    const struct layout_time *time = &rules->layout.time;
    if (rules->stale_ms > 0 && time->bits == 0) {
        return setting_fail(reason, "STALE requires a layout with a TIME");
    }
    if (rules->league.room > 0 && (rules->cap > 0 || rules->period.unit != PERIOD_NONE)) {
        return setting_fail(reason, "a league takes no CAP and no PERIOD: its rooms have them");
    }
    if (rules->window.count > 0 && layout_field_decays(&rules->layout.fields[0])) {
        return setting_fail(reason, "WINDOW and DECAY exclude each other: what members got either "
                                    "leaves with its period, or fades");
    }
    /* The times of a board with a WINDOW do not begin anew with each period. */
    if (rules->period.unit == PERIOD_NONE || time->bits == 0 || rules->window.count > 0) {
        return true;
    }
    unsigned bits = setting_options_bits_for_period(rules);
    if (time->bits >= bits) {
        return true;
    }
    const char *unit = layout_unit_name(time->unit);
    char every[16] = "";
    if (rules->period.every > 1) {
        snprintf(every, sizeof every, " EVERY %u", (unsigned)rules->period.every);
    }
    return setting_fail(
        reason, "PERIOD %s%s needs at least TIME %u %s: TIME %u %s has too few bits",
        period_unit_name(rules->period.unit), every, bits, unit, (unsigned)time->bits, unit);
}
