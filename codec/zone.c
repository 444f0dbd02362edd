/* Spans of equal offset: those between the changes of the file, then those of the rule in its last
 * line, which are computed from the year.
 *
 * libc has no part in this: it knows one zone at a time, in TZ, for the whole process. */
#include "codec/zone.h"

#include "codec/memory.h"
#include "codec/timestamp.h"

enum {
    S_PER_MINUTE = 60,
    S_PER_HOUR = 3600,
    S_PER_DAY = 86400,
    DAYS_PER_WEEK = 7,
    THURSDAY = 4, /* 1970-01-01, from Sunday */
};
#define YEAR_2000_S INT64_C(946684800)

/* One of the two dates of a rule, in local time before the change. */
struct rule_date {
    enum { DATE_JULIAN, DATE_DAY, DATE_WEEKDAY } kind; /* J60: no leap days; 59; M3.5.0 */
    int month, week, day;                              /* DATE_JULIAN, DATE_DAY: day alone */
    int32_t time_s;
};

struct zone {
    char name[ZONE_NAME_MAX + 1];
    bool is_missing;
    bool has_summer; /* the rule has summer time; it applies from the last change on */
    int32_t standard_s, summer_s;
    struct rule_date summer_begins, summer_ends;
    int32_t setback_s;
    int32_t first_offset_s; /* before the first change */
    uint32_t change_count;
    struct zone_change {
        int64_t time_s;
        int32_t offset_s;
    } changes[]; /* in ascending order */
};

/* A time of equal offset: begin_s <= t < end_s. */
struct span {
    int64_t begin_s, end_s;
    int32_t offset_s;
};

/* ---- the rule ---- */

static int64_t zone_day_of_rule(const struct rule_date *date, int64_t year) {
    if (date->kind == DATE_WEEKDAY) { /* of week 5 the last one */
        int64_t begin =
            timestamp_days_of((struct date){.year = year, .month = date->month, .day = 1});
        int64_t weekday =
            begin + THURSDAY - timestamp_floor_divide(begin + THURSDAY, 7) * DAYS_PER_WEEK;
        int64_t day = (date->day - weekday + DAYS_PER_WEEK) % DAYS_PER_WEEK;
        day += (int64_t)(date->week - 1) * DAYS_PER_WEEK;
        return begin +
               (day < timestamp_days_in_month(year, date->month) ? day : day - DAYS_PER_WEEK);
    }
    int64_t first = timestamp_days_of((struct date){.year = year, .month = 1, .day = 1});
    if (date->kind == DATE_DAY) {
        return first + date->day;
    }
    bool is_after_leap_day = date->day >= 60 && timestamp_days_in_month(year, 2) == 29;
    return first + date->day - 1 + is_after_leap_day;
}

static void zone_narrow(struct span *span, int64_t time_s, int64_t change_s, int32_t offset_s) {
    if (change_s > time_s) {
        span->end_s = change_s < span->end_s ? change_s : span->end_s;
    } else if (change_s >= span->begin_s) {
        span->begin_s = change_s;
        span->offset_s = offset_s;
    }
}

static struct span zone_span_of_rule(const struct zone *zone, int64_t time_s) {
    struct span span = {.begin_s = INT64_MIN, .end_s = INT64_MAX, .offset_s = zone->standard_s};
    int64_t day = timestamp_floor_divide(time_s, S_PER_DAY);
    day = day > TIMESTAMP_DAYS_MAX    ? TIMESTAMP_DAYS_MAX
          : day < -TIMESTAMP_DAYS_MAX ? -TIMESTAMP_DAYS_MAX
                                      : day;
    int64_t year = timestamp_date_of(day).year;
    /* A rule's time of day may be a week away from its day, on either side. */
    for (int64_t near = year - 2; near <= year + 2; near++) {
        const struct rule_date *ends = &zone->summer_ends;
        const struct rule_date *begins = &zone->summer_begins;
        zone_narrow(&span, time_s,
                    zone_day_of_rule(ends, near) * S_PER_DAY + ends->time_s - zone->summer_s,
                    zone->standard_s);
        zone_narrow(&span, time_s,
                    zone_day_of_rule(begins, near) * S_PER_DAY + begins->time_s - zone->standard_s,
                    zone->summer_s);
    }
    return span;
}

/* ---- spans ---- */

static struct span zone_span_at(const struct zone *zone, int64_t time_s) {
    uint32_t low = 0; /* changes at or before the time */
    uint32_t high = zone->change_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (zone->changes[middle].time_s <= time_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct zone_change *last = low > 0 ? &zone->changes[low - 1] : NULL;
    bool is_after_all = low == zone->change_count;
    if (is_after_all && zone->has_summer) {
        struct span span = zone_span_of_rule(zone, time_s);
        if (last != NULL && span.begin_s < last->time_s) {
            span.begin_s = last->time_s;
        }
        return span;
    }
    return (struct span){
        .begin_s = last != NULL ? last->time_s : INT64_MIN,
        .end_s = is_after_all ? INT64_MAX : zone->changes[low].time_s,
        .offset_s = last != NULL ? last->offset_s : zone->first_offset_s,
    };
}

int32_t zone_offset_s(const struct zone *zone, int64_t time_s) {
    return zone_span_at(zone, time_s).offset_s;
}

int64_t zone_reach_s(const struct zone *zone, int64_t local_s) {
    /* The clock has not shown it yet. */
    struct span span = zone_span_at(zone, local_s - ZONE_OFFSET_MAX);
    while (span.end_s != INT64_MAX && span.end_s + span.offset_s <= local_s) {
        span = zone_span_at(zone, span.end_s);
    }
    int64_t time_s = local_s - span.offset_s;
    return time_s < span.begin_s ? span.begin_s : time_s;
}

int32_t zone_setback_s(const struct zone *zone) {
    return zone->setback_s;
}

const char *zone_name(const struct zone *zone) {
    return zone->name;
}

bool zone_is_missing(const struct zone *zone) {
    return zone->is_missing;
}

bool zone_is_name(struct bytes name) {
    bool is_part = false; /* a part of the name has begun */
    for (size_t i = 0; i < name.size; i++) {
        char at = name.at[i];
        bool is_letter = (at >= 'A' && at <= 'Z') || (at >= 'a' && at <= 'z');
        bool is_other =
            (at >= '0' && at <= '9') || at == '_' || at == '-' || at == '+' || at == '/';
        if (!is_letter && (!is_other || !is_part)) {
            return false;
        }
        is_part = at != '/';
    }
    return is_part && name.size <= ZONE_NAME_MAX;
}

/* ---- reading the rule ---- */

/* Each read_* advances *at, and returns false if what it reads is invalid. The text ends with a
 * zero byte, which nothing accepts. */

static bool zone_read_number(const char **at, int minimum, int maximum, int *number) {
    int digits = 0;
    *number = 0;
    for (; **at >= '0' && **at <= '9' && digits < 3; digits++) {
        *number = *number * 10 + (*(*at)++ - '0');
    }
    return digits > 0 && *number >= minimum && *number <= maximum;
}

static bool zone_read_char(const char **at, char wanted) {
    bool is_there = **at == wanted;
    *at += is_there;
    return is_there;
}

/* [+-]hh[:mm[:ss]] */
static bool zone_read_duration(const char **at, int hours_max, int32_t *seconds) {
    int hours = 0;
    int minutes = 0;
    int rest = 0;
    bool is_negative = zone_read_char(at, '-');
    if (!is_negative) {
        (void)zone_read_char(at, '+');
    }
    if (!zone_read_number(at, 0, hours_max, &hours) ||
        (zone_read_char(at, ':') &&
         (!zone_read_number(at, 0, 59, &minutes) ||
          (zone_read_char(at, ':') && !zone_read_number(at, 0, 59, &rest))))) {
        return false;
    }
    int32_t sum = hours * S_PER_HOUR + minutes * S_PER_MINUTE + rest;
    *seconds = is_negative ? -sum : sum;
    return true;
}

/* CEST, or <+03>: at least three letters, or anything in brackets. */
static bool zone_read_abbreviation(const char **at) {
    size_t size = 0;
    if (zone_read_char(at, '<')) {
        for (; **at != '>' && **at != '\0'; size++) {
            (*at)++;
        }
        return size >= 3 && zone_read_char(at, '>');
    }
    for (; (**at >= 'A' && **at <= 'Z') || (**at >= 'a' && **at <= 'z'); size++) {
        (*at)++;
    }
    return size >= 3;
}

/* ,M3.5.0/2 */
static bool zone_read_date(const char **at, struct rule_date *date) {
    *date = (struct rule_date){.kind = DATE_DAY, .time_s = 2 * S_PER_HOUR};
    bool is_read = zone_read_char(at, ',');
    if (is_read && zone_read_char(at, 'M')) {
        date->kind = DATE_WEEKDAY;
        is_read = zone_read_number(at, 1, 12, &date->month) && zone_read_char(at, '.') &&
                  zone_read_number(at, 1, 5, &date->week) && zone_read_char(at, '.') &&
                  zone_read_number(at, 0, 6, &date->day);
    } else if (is_read && zone_read_char(at, 'J')) {
        date->kind = DATE_JULIAN;
        is_read = zone_read_number(at, 1, 365, &date->day);
    } else if (is_read) {
        is_read = zone_read_number(at, 0, 365, &date->day);
    }
    return is_read && (!zone_read_char(at, '/') || zone_read_duration(at, 167, &date->time_s));
}

/* The last line, without its line ends; "": no rule. The sign of offsets in it is that of POSIX:
 * ahead of UTC is negative. */
static bool zone_read_rule(struct zone *zone, const char *at) {
    int32_t behind_s = 0;
    if (*at == '\0') {
        return true;
    }
    if (!zone_read_abbreviation(&at) || !zone_read_duration(&at, 24, &behind_s)) {
        return false;
    }
    zone->standard_s = -behind_s;
    if (*at == '\0') {
        return true;
    }
    behind_s -= S_PER_HOUR;
    if (!zone_read_abbreviation(&at) || (*at != ',' && !zone_read_duration(&at, 24, &behind_s))) {
        return false;
    }
    zone->summer_s = -behind_s;
    zone->has_summer = true;
    return zone_read_date(&at, &zone->summer_begins) && zone_read_date(&at, &zone->summer_ends) &&
           *at == '\0';
}

/* ---- reading the file ---- */

enum {
    HEADER_SIZE = 44,
    TYPE_SIZE = 6,
    CHANGES_MAX = 8192,
    RULE_MAX = 256,
};

/* The counts of one of the two blocks; the sizes of times differ. */
struct block {
    uint64_t ut, standard, leaps, changes, types, letters;
};

static int64_t zone_read_big(const char *at, size_t size) {
    uint64_t value = (uint8_t)*at >= 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++) {
        value = value << 8 | (uint8_t)at[i];
    }
    return (int64_t)value;
}

static uint64_t zone_read_count(const char *header, size_t index) {
    return (uint32_t)zone_read_big(header + 20 + 4 * index, 4);
}

static bool zone_read_header(struct bytes file, size_t at, struct block *block) {
    if (file.size < at || file.size - at < HEADER_SIZE || memcmp(file.at + at, "TZif", 4) != 0) {
        return false;
    }
    const char *header = file.at + at;
    *block = (struct block){
        .ut = zone_read_count(header, 0),
        .standard = zone_read_count(header, 1),
        .leaps = zone_read_count(header, 2),
        .changes = zone_read_count(header, 3),
        .types = zone_read_count(header, 4),
        .letters = zone_read_count(header, 5),
    };
    return header[4] >= '2';
}

/* Bytes of a block behind its header. */
static uint64_t zone_block_size(const struct block *block, size_t time_size) {
    return block->changes * (time_size + 1) + block->types * TYPE_SIZE + block->letters +
           block->leaps * (time_size + 4) + block->standard + block->ut;
}

/* at: the changes' times, the indices of their types, and the types. */
static bool zone_read_changes(struct zone *zone, const char *at, const struct block *block) {
    const char *indices = at + block->changes * 8;
    const char *types = indices + block->changes;
    for (uint32_t i = 0; i < block->types; i++) {
        int64_t offset_s = zone_read_big(types + (size_t)i * TYPE_SIZE, 4);
        if (offset_s <= -ZONE_OFFSET_MAX || offset_s >= ZONE_OFFSET_MAX) {
            return false;
        }
    }
    zone->first_offset_s = (int32_t)zone_read_big(types, 4);
    for (uint32_t i = 0; i < block->changes; i++) {
        struct zone_change *change = &zone->changes[i];
        uint8_t type = (uint8_t)indices[i];
        change->time_s = zone_read_big(at + (size_t)i * 8, 8);
        if (type >= block->types || (i > 0 && change->time_s <= change[-1].time_s) ||
            change->time_s < -(INT64_C(1) << 60) || change->time_s > INT64_C(1) << 60) {
            return false;
        }
        change->offset_s = (int32_t)zone_read_big(types + (size_t)type * TYPE_SIZE, 4);
    }
    zone->change_count = (uint32_t)block->changes;
    return true;
}

static struct zone *zone_create_empty(struct bytes name, uint64_t changes_max) {
    CHECK(zone_is_name(name));
    size_t size = sizeof(struct zone) + changes_max * sizeof(struct zone_change);
    struct zone *zone = memory_allocate_zeroed(size);
    if (zone != NULL) {
        memcpy(zone->name, name.at, name.size);
    }
    return zone;
}

/* What is wrong with the second block, which begins at at, and with the rule; NULL: nothing. */
static const char *zone_read(struct zone *zone, struct bytes file, size_t at,
                             const struct block *block) {
    char rule[RULE_MAX];
    size_t rule_at = at + (size_t)zone_block_size(block, 8);
    if (!zone_read_changes(zone, file.at + at, block)) {
        return "its changes are not in order, or not of its types";
    }
    const char *line = file.at + rule_at + 1;
    size_t left = file.size - rule_at - 1;
    const char *end = memchr(line, '\n', left);
    if (file.at[rule_at] != '\n' || end == NULL || (size_t)(end - line) >= RULE_MAX ||
        memchr(line, '\0', (size_t)(end - line)) != NULL) {
        return "its last line, the rule, is missing, damaged or too long";
    }
    memcpy(rule, line, (size_t)(end - line));
    rule[end - line] = '\0';
    if (!zone_read_rule(zone, rule)) {
        return "the rule in its last line is not understood";
    }
    int32_t before_s = zone->first_offset_s;
    if (zone->has_summer) {
        int32_t shift_s = zone->summer_s - zone->standard_s;
        zone->setback_s = shift_s < 0 ? -shift_s : shift_s;
    }
    for (uint32_t i = 0; i < zone->change_count; i++) {
        int32_t setback_s = before_s - zone->changes[i].offset_s;
        before_s = zone->changes[i].offset_s;
        if (zone->changes[i].time_s >= YEAR_2000_S && setback_s > zone->setback_s) {
            zone->setback_s = setback_s;
        }
    }
    return NULL;
}

struct zone *zone_create(struct bytes name, struct bytes file, const char **reason) {
    struct block first;
    struct block second;
    if (file.size > ZONE_FILE_MAX || !zone_read_header(file, 0, &first)) {
        *reason = "it is not a file of tzdata, or one from before 2005";
        return NULL;
    }
    uint64_t at = HEADER_SIZE + zone_block_size(&first, 4);
    if (at > file.size || !zone_read_header(file, (size_t)at, &second) || second.types == 0 ||
        second.types > 256 || second.changes > CHANGES_MAX ||
        zone_block_size(&second, 8) >= file.size - at - HEADER_SIZE) {
        *reason = "it is incomplete";
        return NULL;
    }
    if (second.leaps > 0) {
        *reason = "it counts leap seconds, which unix time does not";
        return NULL;
    }
    struct zone *zone = zone_create_empty(name, second.changes);
    *reason =
        zone != NULL ? zone_read(zone, file, (size_t)at + HEADER_SIZE, &second) : "out of memory";
    if (zone != NULL && *reason != NULL) {
        zone_destroy(zone);
        zone = NULL;
    }
    return zone;
}

struct zone *zone_create_missing(struct bytes name) {
    struct zone *zone = zone_create_empty(name, 0);
    if (zone != NULL) {
        zone->is_missing = true;
    }
    return zone;
}

void zone_destroy(struct zone *zone) {
    memory_free(zone);
}
