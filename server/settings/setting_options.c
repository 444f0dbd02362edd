/* Words <-> the options of a board beside its layout.
 *
 *     CAP 100 KEEP BEST         ->   .cap = 100, .keeps_best = true
 *     PERIOD WEEK TZ +08:00     ->   .period = PERIOD_WEEK, .zone_minutes = 480 */
#include "server/settings/setting_private.h"

struct option_parser {
    const struct bytes *words;
    size_t word_count;
    size_t next;
    struct rules *rules;
    char *reason;
    bool has_cap, has_keep, has_period, has_zone, has_archive;
};

/* Consume the next word if it is this one. */
static bool take_word(struct option_parser *parser, const char *word) {
    if (parser->next == parser->word_count || !bytes_is(parser->words[parser->next], word)) {
        return false;
    }
    parser->next++;
    return true;
}

static bool is_at_end(const struct option_parser *parser) {
    return parser->next == parser->word_count;
}

/* The next word as the user wrote it, for messages. */
static struct setting_shown show_next(const struct option_parser *parser) {
    return setting_show(parser->words[parser->next]);
}

static bool parse_cap(struct option_parser *parser) {
    uint64_t cap;
    if (is_at_end(parser)) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "CAP needs a number of members: 1..%u", (unsigned)RULES_CAP_MAX);
    }
    if (!bytes_parse_u64(parser->words[parser->next], &cap) || cap < 1 || cap > RULES_CAP_MAX) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "CAP '%s' is not a valid number of members: 1..%u",
                            show_next(parser).text, (unsigned)RULES_CAP_MAX);
    }
    parser->next++;
    parser->rules->cap = (uint32_t)cap;
    return true;
}

static bool parse_keep(struct option_parser *parser) {
    bool is_best = take_word(parser, "BEST");
    if (!is_best && !take_word(parser, "LAST")) {
        return is_at_end(parser)
                   ? setting_fail(parser->reason, SETTING_REASON_MAX, "KEEP needs LAST or BEST")
                   : setting_fail(parser->reason, SETTING_REASON_MAX,
                                  "KEEP '%s' is unknown: use LAST or BEST", show_next(parser).text);
    }
    parser->rules->keeps_best = is_best;
    return true;
}

/* Without ARCHIVE all archives are kept. */
static bool parse_period(struct option_parser *parser) {
    struct rules *rules = parser->rules;
    if (is_at_end(parser)) {
        return setting_fail(parser->reason, SETTING_REASON_MAX, "PERIOD needs DAY, WEEK or MONTH");
    }
    enum period_unit unit = period_parse_unit(parser->words[parser->next]);
    if (unit == PERIOD_NONE) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "PERIOD '%s' is unknown: use DAY, WEEK or MONTH",
                            show_next(parser).text);
    }
    parser->next++;
    if (rules->period == PERIOD_NONE && !parser->has_archive) {
        rules->archives_max = RULES_ARCHIVES_ALL;
    }
    rules->period = unit;
    return true;
}

static bool parse_zone(struct option_parser *parser) {
    int zone_minutes;
    if (is_at_end(parser)) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "TZ needs an offset from UTC: -12:00..+14:00");
    }
    if (!period_parse_zone(parser->words[parser->next], &zone_minutes)) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "TZ '%s' is not a valid offset from UTC: -12:00..+14:00",
                            show_next(parser).text);
    }
    parser->next++;
    parser->rules->zone_minutes = (int16_t)zone_minutes;
    return true;
}

static bool parse_archive(struct option_parser *parser) {
    uint64_t count;
    if (is_at_end(parser)) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "ARCHIVE needs a number of periods: 0..%d", PERIOD_COUNT_MAX);
    }
    if (!bytes_parse_u64(parser->words[parser->next], &count) || count > PERIOD_COUNT_MAX) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "ARCHIVE '%s' is not a valid number of periods: 0..%d",
                            show_next(parser).text, PERIOD_COUNT_MAX);
    }
    parser->next++;
    parser->rules->archives_max = (uint32_t)count;
    return true;
}

typedef bool parse_option(struct option_parser *parser);

static bool parse_once(struct option_parser *parser, const char *name, bool *has_option,
                       parse_option *parse) {
    if (*has_option) {
        return setting_fail(parser->reason, SETTING_REASON_MAX, "%s may be given only once", name);
    }
    *has_option = true;
    return parse(parser);
}

static bool parse_one(struct option_parser *parser) {
    if (take_word(parser, "CAP")) {
        return parse_once(parser, "CAP", &parser->has_cap, parse_cap);
    }
    if (take_word(parser, "KEEP")) {
        return parse_once(parser, "KEEP", &parser->has_keep, parse_keep);
    }
    if (take_word(parser, "PERIOD")) {
        return parse_once(parser, "PERIOD", &parser->has_period, parse_period);
    }
    if (take_word(parser, "TZ")) {
        return parse_once(parser, "TZ", &parser->has_zone, parse_zone);
    }
    if (take_word(parser, "ARCHIVE")) {
        return parse_once(parser, "ARCHIVE", &parser->has_archive, parse_archive);
    }
    if (bytes_is(parser->words[parser->next], "FIELD") ||
        bytes_is(parser->words[parser->next], "TIME") ||
        bytes_is(parser->words[parser->next], "LAYOUT")) {
        return setting_fail(parser->reason, SETTING_REASON_MAX,
                            "'%s' is misplaced: give one layout, before the options",
                            show_next(parser).text);
    }
    return setting_fail(parser->reason, SETTING_REASON_MAX,
                        "unknown board option '%s': allowed are " SETTING_OPTIONS,
                        show_next(parser).text);
}

bool settings_parse_options(const struct bytes *words, size_t word_count, struct rules *rules,
                            char *reason) {
    struct rules parsed;
    struct option_parser parser = {
        .words = words, .word_count = word_count, .rules = &parsed, .reason = reason};
    rules_copy(rules, &parsed);
    while (!is_at_end(&parser)) {
        if (!parse_one(&parser)) {
            return false;
        }
    }
    if (parsed.period == PERIOD_NONE && (parser.has_zone || parser.has_archive)) {
        return setting_fail(reason, SETTING_REASON_MAX, "%s requires PERIOD DAY|WEEK|MONTH",
                            parser.has_zone ? "TZ" : "ARCHIVE");
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
    return setting_fail(reason, SETTING_REASON_MAX,
                        "PERIOD %s needs at least TIME %u %s: TIME %u %s has too few bits",
                        period_unit_name(rules->period), bits, unit, (unsigned)time->bits, unit);
}
