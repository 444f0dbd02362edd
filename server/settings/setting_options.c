/* Words <-> the options of a board beside its layout.
 *
 *     CAP 100 KEEP BEST         ->   .cap = 100, .keeps_best = true
 *     PERIOD WEEK TZ +08:00     ->   .period = PERIOD_WEEK, .zone_minutes = 480 */
#include "server/settings/setting_private.h"

static bool parse_cap(struct bytes word, struct rules *rules) {
    uint64_t cap;
    if (!bytes_parse_u64(word, &cap) || cap < 1 || cap > RULES_CAP_MAX) {
        return false;
    }
    rules->cap = (uint32_t)cap;
    return true;
}

static bool parse_keep(struct bytes word, struct rules *rules) {
    rules->keeps_best = bytes_is(word, "BEST");
    return rules->keeps_best || bytes_is(word, "LAST");
}

static bool parse_period(struct bytes word, struct rules *rules) {
    rules->period = period_parse_unit(word);
    return rules->period != PERIOD_NONE;
}

static bool parse_zone(struct bytes word, struct rules *rules) {
    int zone_minutes;
    if (!period_parse_zone(word, &zone_minutes)) {
        return false;
    }
    rules->zone_minutes = (int16_t)zone_minutes;
    return true;
}

static bool parse_archive(struct bytes word, struct rules *rules) {
    uint64_t count;
    if (!bytes_parse_u64(word, &count) || count > PERIOD_COUNT_MAX) {
        return false;
    }
    rules->archives_max = (uint32_t)count;
    return true;
}

enum { OPTION_CAP, OPTION_KEEP, OPTION_PERIOD, OPTION_TZ, OPTION_ARCHIVE, OPTION_COUNT };

static const struct option {
    const char *name;
    bool (*parse)(struct bytes word, struct rules *rules);
    /* "CAP needs a number", "CAP 'x' is not a valid number" */
    const char *article, *error, *wanted;
} options[OPTION_COUNT] = {
    {"CAP", parse_cap, "a ", "not a valid", "number of members: 1..4294967295"},
    {"KEEP", parse_keep, "", "unknown: use", "LAST or BEST"},
    {"PERIOD", parse_period, "", "unknown: use", "DAY, WEEK or MONTH"},
    {"TZ", parse_zone, "an ", "not a valid", "offset from UTC: -12:00..+14:00"},
    {"ARCHIVE", parse_archive, "a ", "not a valid", "number of periods: 0..1000000"},
};
_Static_assert(RULES_CAP_MAX == 4294967295 && PERIOD_COUNT_MAX == 1000000, "options name them");

static bool fail_unknown(struct bytes word, char *reason) {
    if (bytes_is(word, "FIELD") || bytes_is(word, "TIME") || bytes_is(word, "LAYOUT")) {
        return setting_fail(reason, "'%s' is misplaced: give one layout, before the options",
                            bytes_show(word).text);
    }
    return setting_fail(reason, "unknown board option '%s': allowed are " SETTING_OPTIONS,
                        bytes_show(word).text);
}

/* Parse words[0], the option's name, and its value; has: the options parsed so far. */
static bool parse_option(const struct bytes *words, size_t word_count, bool *has,
                         struct rules *rules, char *reason) {
    size_t i = 0;
    while (i < OPTION_COUNT && !bytes_is(words[0], options[i].name)) {
        i++;
    }
    if (i == OPTION_COUNT) {
        return fail_unknown(words[0], reason);
    }
    const struct option *option = &options[i];
    if (has[i]) {
        return setting_fail(reason, "%s may be given only once", option->name);
    }
    if (word_count == 1) {
        return setting_fail(reason, "%s needs %s%s", option->name, option->article, option->wanted);
    }
    has[i] = true;
    return option->parse(words[1], rules) ||
           setting_fail(reason, "%s '%s' is %s %s", option->name, bytes_show(words[1]).text,
                        option->error, option->wanted);
}

bool settings_parse_options(const struct bytes *words, size_t word_count, struct rules *rules,
                            char *reason) {
    struct rules parsed;
    bool has[OPTION_COUNT] = {false};
    rules_copy(rules, &parsed);
    for (size_t i = 0; i < word_count; i += 2) {
        if (!parse_option(words + i, word_count - i, has, &parsed, reason)) {
            return false;
        }
    }
    if (parsed.period == PERIOD_NONE && (has[OPTION_TZ] || has[OPTION_ARCHIVE])) {
        return setting_fail(reason, "%s requires PERIOD DAY|WEEK|MONTH",
                            has[OPTION_TZ] ? "TZ" : "ARCHIVE");
    }
    if (rules->period == PERIOD_NONE && has[OPTION_PERIOD] && !has[OPTION_ARCHIVE]) {
        parsed.archives_max = RULES_ARCHIVES_ALL;
    }
    rules_copy(&parsed, rules);
    return true;
}

/* Bits needed to count the layout's time units in the longest period; at least 1. */
static unsigned bits_for_period(const struct rules *rules) {
    uint64_t span_us = (uint64_t)period_longest_ms(rules->period) * 1000;
    uint64_t last_unit = (span_us - 1) / (uint64_t)rules->layout.time.unit_us;
    return last_unit > 0 ? 64 - (unsigned)__builtin_clzll(last_unit) : 1;
}

bool settings_check_rules(const struct rules *rules, char *reason) {
    const struct layout_time *time = &rules->layout.time;
    if (rules->period == PERIOD_NONE || time->bits == 0) {
        return true;
    }
    unsigned bits = bits_for_period(rules);
    if (time->bits >= bits) {
        return true;
    }
    const char *unit = layout_unit_name(time->unit);
    return setting_fail(reason, "PERIOD %s needs at least TIME %u %s: TIME %u %s has too few bits",
                        period_unit_name(rules->period), bits, unit, (unsigned)time->bits, unit);
}
