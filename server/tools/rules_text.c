/* See rules_text.h. */
#include "server/tools/rules_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "server/settings/setting.h"

enum { WORDS_MAX = 1024 };

struct printer {
    char *out;
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void rules_text_put(struct printer *printer,
                                                                 const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size =
        vsnprintf(printer->out + printer->size, RULES_TEXT_MAX - printer->size, format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && printer->size + (size_t)size < RULES_TEXT_MAX);
    printer->size += (size_t)size;
}

static void rules_text_put_period(struct printer *printer, const struct rules *rules) {
    const struct period *period = &rules->period;
    char zone[PERIOD_ZONE_TEXT_MAX];
    char from[PERIOD_DATE_TEXT_MAX];
    rules_text_put(printer, " PERIOD %s", period_unit_name(period->unit));
    if (period->every > 1) {
        size_t size = period_print_date(from, period->from_day);
        rules_text_put(printer, " EVERY %u FROM %.*s", (unsigned)period->every, (int)size, from);
    }
    if (period->unit == PERIOD_WEEK) {
        rules_text_put(printer, " ON %s", period_weekday_name(period->weekday));
    }
    size_t size = period_print_zone(zone, period);
    rules_text_put(printer, " AT %u TZ %.*s", (unsigned)period->hour, (int)size, zone);
    if (rules->archives_max == RULES_ARCHIVES_ALL) {
        rules_text_put(printer, " ARCHIVE ALL");
    } else {
        rules_text_put(printer, " ARCHIVE %" PRIu32, rules->archives_max);
    }
    rules_text_put(printer, " ARCHIVED %s%s", rules->archives_are_writable ? "WRITABLE" : "FROZEN",
                   rules->copies ? " COPY" : "");
    if (rules->window.count > 0) {
        rules_text_put(printer, " WINDOW %u %s", (unsigned)rules->window.count,
                       rules->window.is_best ? "BEST" : "SUM");
    }
}

/* What LB.CREATE does not take. */
static void rules_text_put_contests(struct printer *printer, const struct rules *rules) {
    const struct rules_league *league = &rules->league;
    if (league->room > 0) {
        rules_text_put(printer, " LEAGUE %u %u %u %u %u", (unsigned)league->room,
                       (unsigned)league->tiers, (unsigned)league->up, (unsigned)league->down,
                       (unsigned)league->idle_goes_down);
    }
    if (rules->settlement != RULES_NO_ARCHIVE) {
        rules_text_put(printer, " %s ENDED %" PRId64,
                       rules->settlement == RULES_SETTLED ? "SETTLED" : "UNSETTLED",
                       rules->ended_ms);
    }
    if (rules->settled_expire_ms > 0) {
        rules_text_put(printer, " EXPIRES %" PRId64, rules->settled_expire_ms);
    }
    if (rules->window.is_share) {
        rules_text_put(printer, " SHARE %" PRId64, rules->window.from_ms);
    }
    if (rules->window.count > 0) {
        rules_text_put(printer, " COUNTS %" PRId64 " LEFT %" PRIu32 "%s", rules->window.from_ms,
                       rules->window.left, rules->window.is_anew ? " ANEW" : "");
    }
}

static void rules_text_put_stale(struct printer *printer, int64_t stale_ms) {
    enum { MINUTE_MS = 60000, HOUR_MS = 3600000, DAY_MS = 86400000 };
    int64_t unit_ms = stale_ms % DAY_MS == 0    ? DAY_MS
                      : stale_ms % HOUR_MS == 0 ? HOUR_MS
                                                : MINUTE_MS;
    rules_text_put(printer, " STALE %" PRId64 " %s", stale_ms / unit_ms,
                   unit_ms == DAY_MS    ? "DAY"
                   : unit_ms == HOUR_MS ? "HOUR"
                                        : "MINUTE");
}

size_t rules_text_print(const struct rules *rules, char *out) {
    struct printer printer = {.out = out, .size = layout_print(&rules->layout, out)};
    if (rules->cap > 0) {
        rules_text_put(&printer, " CAP %" PRIu32, rules->cap);
    }
    if (rules->limit > 0) {
        rules_text_put(&printer, " LIMIT %" PRIu32, rules->limit);
    }
    if (rules->keeps_best) {
        rules_text_put(&printer, " KEEP BEST");
    }
    if ((rules->guards & RULES_FROZEN) != 0) {
        rules_text_put(&printer, " FREEZE");
    }
    if ((rules->guards & RULES_OPENS) != 0) {
        rules_text_put(&printer, " OPENS %" PRId64, rules->opens_ms);
    }
    if ((rules->guards & RULES_CLOSES) != 0) {
        rules_text_put(&printer, " CLOSES %" PRId64, rules->closes_ms);
    }
    if (rules->stale_ms > 0) {
        rules_text_put_stale(&printer, rules->stale_ms);
    }
    if (rules->settles) {
        rules_text_put(&printer, " SETTLE YES");
    }
    if (rules->period.unit != PERIOD_NONE) {
        rules_text_put_period(&printer, rules);
    }
    rules_text_put_contests(&printer, rules);
    if (rules->is_created) {
        rules_text_put(&printer, " CREATED");
    }
    if (rules->period.unit != PERIOD_NONE) {
        rules_text_put(&printer, " STARTED %" PRId64 " ENDS %" PRId64, rules->period_start_ms,
                       rules->period_end_ms);
    }
    return printer.size;
}

/* Split at blanks. */
static size_t rules_text_split(struct bytes text, struct bytes *words) {
    size_t count = 0;
    while (text.size > 0 && count < WORDS_MAX) {
        words[count] = bytes_take_word(&text);
        count += words[count].size > 0;
    }
    return count;
}

/* Take a word and its number from the end. */
static bool rules_text_take_number(const struct bytes *words, size_t *count, const char *name,
                                   int64_t *number) {
    if (*count < 2 || !bytes_is(words[*count - 2], name) ||
        !bytes_parse_i64(words[*count - 1], number)) {
        return false;
    }
    *count -= 2;
    return true;
}

static bool rules_text_take_window(const struct bytes *words, size_t *count,
                                   struct rules_window *window) {
    int64_t left = 0;
    if (*count > 0 && bytes_is(words[*count - 1], "ANEW")) {
        window->is_anew = true;
        (*count)--;
    }
    if (rules_text_take_number(words, count, "LEFT", &left)) {
        window->left = (uint32_t)left;
        return left >= 0 && left <= UINT32_MAX &&
               rules_text_take_number(words, count, "COUNTS", &window->from_ms);
    }
    window->is_share = rules_text_take_number(words, count, "SHARE", &window->from_ms);
    return true;
}

/* Take what rules_text_put_contests has put from the end. false: it is wrong. */
static bool rules_text_take_contests(const struct bytes *words, size_t *count,
                                     struct rules *rules) {
    enum { LEAGUE_NUMBERS = 5 };
    if (!rules_text_take_window(words, count, &rules->window)) {
        return false;
    }
    (void)rules_text_take_number(words, count, "EXPIRES", &rules->settled_expire_ms);
    if (rules_text_take_number(words, count, "ENDED", &rules->ended_ms)) {
        bool is_settled = *count > 0 && bytes_is(words[*count - 1], "SETTLED");
        if (!is_settled && (*count == 0 || !bytes_is(words[*count - 1], "UNSETTLED"))) {
            return false;
        }
        rules->settlement = is_settled ? RULES_SETTLED : RULES_UNSETTLED;
        (*count)--;
    }
    if (*count <= LEAGUE_NUMBERS || !bytes_is(words[*count - LEAGUE_NUMBERS - 1], "LEAGUE")) {
        return true;
    }
    uint64_t numbers[LEAGUE_NUMBERS];
    static const uint64_t max[LEAGUE_NUMBERS] = {UINT16_MAX, UINT8_MAX, UINT16_MAX, UINT16_MAX, 1};
    for (size_t i = 0; i < LEAGUE_NUMBERS; i++) {
        if (!bytes_parse_u64(words[*count - LEAGUE_NUMBERS + i], &numbers[i]) ||
            numbers[i] > max[i]) {
            return false;
        }
    }
    rules->league = (struct rules_league){.room = (uint16_t)numbers[0],
                                          .tiers = (uint8_t)numbers[1],
                                          .up = (uint16_t)numbers[2],
                                          .down = (uint16_t)numbers[3],
                                          .idle_goes_down = numbers[4] != 0};
    rules->guards = RULES_LEAGUE;
    *count -= LEAGUE_NUMBERS + 1;
    return true;
}

bool rules_text_parse(struct bytes text, struct rules *rules, char *error) {
    struct bytes words[WORDS_MAX];
    size_t count = rules_text_split(text, words);
    const char *reason = NULL;
    char why[SETTING_ERROR_MAX] = ""; /* more than LAYOUT_ERROR_MAX */
    int64_t start_ms = 0;
    int64_t end_ms = 0;
    memset(rules, 0, sizeof *rules);
    bool has_period = rules_text_take_number(words, &count, "ENDS", &end_ms) &&
                      rules_text_take_number(words, &count, "STARTED", &start_ms);
    if (count > 0 && bytes_is(words[count - 1], "CREATED")) {
        rules->is_created = true;
        count--;
    }
    if (!rules_text_take_contests(words, &count, rules)) {
        snprintf(error, RULES_TEXT_ERROR_MAX,
                 "LEAGUE has five numbers, ENDED is behind SETTLED or UNSETTLED, and COUNTS "
                 "before LEFT");
        return false;
    }
    size_t layout_count = layout_count_words(words, count);
    if (layout_parse_words(words, layout_count, &rules->layout, why) != LAYOUT_OK ||
        !settings_parse_options(words + layout_count, count - layout_count, rules, why)) {
        snprintf(error, RULES_TEXT_ERROR_MAX, "%.900s", why);
        return false;
    }
    if (has_period != (rules->period.unit != PERIOD_NONE)) {
        snprintf(error, RULES_TEXT_ERROR_MAX, "STARTED and ENDS belong to PERIOD");
        return false;
    }
    rules->period_start_ms = start_ms;
    rules->period_end_ms = end_ms;
    if (!rules_validate(rules, &reason)) {
        snprintf(error, RULES_TEXT_ERROR_MAX, "%s", reason);
        return false;
    }
    return true;
}
